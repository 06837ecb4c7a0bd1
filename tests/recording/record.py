"""Recorders over either library: the operators that a TorchDispatchMode sees, and this library's calls with copies of what they were given."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Callable
from typing import Any

import tensorrt_lite as trt
from tensorrt_lite._declared import shapes
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode

# What shows allocations and handles rather than arithmetic.
LEFT_OUT = ("detach", "empty", "new_empty", "lift_fresh", "lift")


def counted(name: str) -> bool:
    """Whether an operator belongs to the sequences that are compared."""
    namespace, base = name.split(".")[:2]
    return namespace != "profiler" and base not in LEFT_OUT and not base.startswith(("empty", "new_empty"))


def names_in_torch(run: Callable[[], Any]) -> list[str]:
    """The operators of `run` that PyTorch's mode sees, as namespace.name.overload."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode as TheirMode

    names: list[str] = []

    class Names(TheirMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.mkldnn.flags(enabled=False), Names():  # its recurrent layers are operators that no other build of PyTorch has
            run()
    return [name for name in names if counted(name)]


class Names(TorchDispatchMode):
    """The operators that a mode of this library sees."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def names_here(run: Callable[[], Any]) -> list[str]:
    with Names() as mode:
        run()
    return [name for name in mode.names if counted(name)]


def agreement(ours: list[str], theirs: list[str]) -> tuple[int, int]:
    """(operators in common and in order, operators of the longer sequence)."""
    common = sum(block.size for block in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_matching_blocks())
    return common, max(len(ours), len(theirs))


def difference(ours: list[str], theirs: list[str]) -> str:
    """The first places where two sequences differ, in a line."""
    parts = []
    for tag, a, b, c, d in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            parts.append(f"{' '.join(ours[a:b]) or 'nothing'} for {' '.join(theirs[c:d]) or 'nothing'}")
    return "; ".join(parts)[:400]


# ---- calls issued again --------------------------------------------------------------------------------------------


class Copier:
    """Copies of arguments; what shares a storage shares the copy's."""

    def __init__(self) -> None:
        self.storages: dict[int, tuple[Any, Any]] = {}
        self.tensors: dict[int, tuple[Any, Any]] = {}

    def __call__(self, value: Any) -> Any:
        if isinstance(value, trt.Tensor):
            if id(value) not in self.tensors:
                self.tensors[id(value)] = value, self.tensor(value)
            return self.tensors[id(value)][1]
        if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
            parts = [self(x) for x in value]
            return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
        if isinstance(value, dict):
            return {name: self(x) for name, x in value.items()}
        return value

    def tensor(self, value: Any) -> Any:
        value = value.detach()
        if type(value) is not trt.Tensor or value.layout is not trt.strided or value.is_quantized:
            return value.clone()
        storage = value.untyped_storage()
        if id(storage) not in self.storages:
            self.storages[id(storage)] = storage, storage.clone()
        copied = trt.empty(0, dtype=value.dtype, device=value.device).set_(self.storages[id(storage)][1], value.storage_offset(), tuple(value.shape), value.stride())
        copied = copied._conj() if value.is_conj() else copied
        return copied._neg_view() if value.is_neg() else copied


def generators(*values: Any) -> list[Any]:
    """The generators that a call draws from: the default one and those among its arguments."""
    found = [trt.default_generator]
    for value in values:
        for x in value if isinstance(value, (list, tuple)) else value.values() if isinstance(value, dict) else ():
            if isinstance(x, trt.Generator):
                found.append(x)
    return found


class Call:
    """A recorded call: what it was given, what it gave and left behind."""

    def __init__(self, func: Any, args: Any, kwargs: Any) -> None:
        copier = Copier()
        self.func, self.args, self.kwargs = func, copier(args), copier(kwargs)
        self.generators = [(g, g.get_state()) for g in generators(args, kwargs)]

    def finish(self, result: Any, args: Any, kwargs: Any) -> None:
        self.after = Copier()((result, args, kwargs))

    def again(self) -> str:
        """Issue the call once more from Python; what is different now, "" where nothing is."""
        found = find(self.func)
        if found is not self.func:
            return f"{self.func}: ops has {found!r} under this name"
        now = [(g, g.get_state()) for g, _ in self.generators]
        for g, state in self.generators:
            g.set_state(state)
        try:
            with trt.no_grad():
                result = self.func(*self.args, **self.kwargs)
        except Exception as error:  # noqa: BLE001
            return f"{self.func}: {type(error).__name__}: {str(error)[:100]}"
        finally:
            for g, state in now:
                g.set_state(state)
        wrong = unlike((result, self.args, self.kwargs), self.after)
        return f"{self.func}: {wrong}" if wrong else ""


def find(func: Any) -> Any:
    """The operator of this name and overload in `ops`."""
    namespace, name, overload = str(func).split(".")
    try:
        return getattr(getattr(getattr(trt.ops, namespace), name), overload)
    except AttributeError as error:
        return error


def unlike(a: Any, b: Any) -> str:
    """How two nested values differ, to the bit; "" where they are equal."""
    if isinstance(a, trt.Tensor) and isinstance(b, trt.Tensor):
        if (a.shape, a.dtype, a.device) != (b.shape, b.dtype, b.device):
            return f"{a.dtype}{list(a.shape)} on {a.device} instead of {b.dtype}{list(b.shape)} on {b.device}"
        if a.layout is trt.strided and a.stride() != b.stride():
            return f"strides {a.stride()} instead of {b.stride()}"
        return "" if a.device.type == "meta" or bits(a) == bits(b) else "other bits"
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        if len(a) != len(b):
            return f"{len(a)} results instead of {len(b)}"
        return next(filter(None, (unlike(x, y) for x, y in zip(a, b))), "")
    if isinstance(a, dict) and isinstance(b, dict):
        return unlike(list(a.values()), list(b.values()))
    if isinstance(a, float) and isinstance(b, float) and a != a and b != b:
        return ""
    return "" if a is b or a == b or isinstance(a, trt.Generator) else f"{a!r} instead of {b!r}"


def bits(t: Any) -> bytes:
    if t.layout is not trt.strided:
        t = t.to_dense()
    t = t.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return t.view(trt.uint8).numpy().tobytes() if t.numel() else b""


class Calls(TorchDispatchMode):
    """Every call with copies of its arguments and results."""

    def __init__(self, most: int | None = None) -> None:
        self.calls: list[Call] = []
        self.most = most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.most is not None and len(self.calls) >= self.most:
            return func(*args, **kwargs)
        call = Call(func, args, kwargs)
        result = func(*args, **kwargs)
        call.finish(result, args, kwargs)
        self.calls.append(call)
        return result


def is_uninitialised(call: Call) -> bool:
    base = str(call.func).split(".")[1]
    return base.startswith(("empty", "new_empty"))


def issue_again(run: Callable[[], Any]) -> tuple[int, list[str]]:
    """(calls that gave the same bits again, what was wrong with the others)."""
    with Calls() as mode:
        run()
    found = [call.again() for call in mode.calls if not is_uninitialised(call)]
    wrong = [text for text in found if text]
    return len(found) - len(wrong), wrong


# ---- rules of sizes and dtypes -------------------------------------------------------------------------------------


class Rules(TorchDispatchMode):
    """Compares results with what the rows say of their sizes and dtypes; calls that write to an argument are left out."""

    def __init__(self) -> None:
        self.right, self.wrong = 0, []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        expected = None
        if not func._schema.is_mutable and all(t.layout is trt.strided for t in tensors_of((args, kwargs))):
            try:
                expected = shapes.infer_call(func, args, kwargs)
            except NotImplementedError:  # sizes that depend on elements, or a number: there is no rule
                pass
            except Exception as error:  # noqa: BLE001
                expected = f"{type(error).__name__}: {error}"
        result = func(*args, **kwargs)
        if expected is not None:
            found = [shapes.Spec(x.shape, x.dtype) for x in tensors_of(result)]
            if isinstance(expected, str) or found != [x for x in expected if x is not None]:
                self.wrong.append(f"{func} gives {found}, the row says {expected}")
            else:
                self.right += 1
        return result


def tensors_of(value: Any) -> list[Any]:
    if isinstance(value, trt.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for x in value for t in tensors_of(x)] if isinstance(value, (list, tuple)) and not hasattr(value, "numel") else []


def compare_rules(run: Callable[[], Any]) -> tuple[int, list[str]]:
    """(calls as the rows say, what differs)."""
    with Rules() as mode:
        run()
    return mode.right, mode.wrong
