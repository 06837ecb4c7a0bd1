"""Modes of tools/fuzz.py in which somebody else changes the tensors of a call while it runs.

`filters`: functions with out=, whose output has another shape, so that PyTorch's warning is given, under a filter of warnings that
resizes, sets, retypes and transposes the tensors of the call. `threads`: operators on tensors large enough that kernels release the
GIL, while another thread does the same and refills indices. `dispatch`: any operator under a TorchDispatchMode that does so whenever an operator
inside of it passes: what `threads` finds where Python runs within an operator, found at every such place, and found again by a replay. `answers`: any
operator under a mode that answers some calls with something else: another type, number, shape, element type or device. Values may
be any then; memory has to stay inside (docs/safety.md). `names`: names of shared memory as a message may bring them; no file but those of the package changes.
"""

from __future__ import annotations

import atexit
import inspect
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable

from tools.fuzz_arguments import Arguments

LARGE = [(300, 300), (130, 130), (64, 300), (300, 64), (17000,), (300,), (2, 3, 70, 70), (4, 70, 70), (1, 3, 130, 130), (3, 1, 300, 20), (64, 80), (2, 4, 12, 12, 12), (4, 4, 3, 3, 3)]  # some between 4096 and what a call holds
REPEATS = 4  # calls with the same arguments: another thread needs time to meddle with them


class FilterArguments(Arguments):
    """Always an output, mostly of a shape that does not fit; one in ten is an operand."""

    always = frozenset({"out"})
    meddling = 1.0

    def named(self, name: str) -> Any:
        if name == "out":
            kind = self.draw.random()
            if kind < 0.1 and self.pool:
                return self.related(self.draw.choice(self.pool))
            dtype = self.dtype_of_most if kind < 0.9 else self.draw.choice(["float32", "int64", "bool"])
            made = self.values(dtype, self.draw.choice([(1,), (3,), (2, 3), (5, 1, 2), (64,)]))
            self.pool.append(made)
            return made if self.draw.random() < 0.8 else (made, self.values("int64", (3,)))
        return super().named(name)

    def meddle(self) -> None:
        for _ in range(self.draw.choice([1, 2, 5])):
            super().meddle()


class LargeArguments(Arguments):
    """Operands of some ten thousand elements, half of the time all of one shape."""

    def __init__(self, trt: Any, draw: random.Random) -> None:
        super().__init__(trt, draw)
        self.common = draw.choice(LARGE) if draw.random() < 0.7 else None
        self.sizes = []

    def shape(self) -> tuple[int, ...]:
        if self.draw.random() < 0.15:
            return super().shape()
        return self.common if self.common and self.draw.random() < 0.8 else self.draw.choice(LARGE)


def changeable(tensors: list[Any]) -> list[tuple[Any, tuple[int, ...]]]:
    """Tensors of a program that somebody else may change, with their shapes."""
    return [(t, tuple(t.shape)) for t in tensors if not t.is_nested and t.numel() < 10**6]


def change(trt: Any, draw: random.Random, t: Any, shape: tuple[int, ...]) -> None:
    """Give a tensor, which had `shape` once, another geometry, memory or values."""
    other = draw.choice([(1,), (2, 2), shape[::-1], (3, *shape), shape])
    with trt.no_grad():
        match draw.randrange(9):
            case 0:
                t.data = trt.zeros(other, dtype=t.dtype)
            case 1 | 2:
                t.data = trt.ones(shape, dtype=t.dtype)
            case 3:
                t.resize_(other)
            case 4:
                t.set_(trt.ones(other, dtype=t.dtype))
            case 5:
                t.untyped_storage().resize_(draw.choice([0, 400, 10**6]))
            case 6:
                t.transpose_(0, -1)
            case 7:
                t.fill_(draw.choice([0, 1, 299, 2**40, -(2**40)]))
            case 8:
                t.data = trt.ones(shape, dtype=t.dtype, device="cpu" if t.is_meta else "meta")


class Meddler:
    """A thread that changes the tensors of whichever program runs."""

    def __init__(self, trt: Any) -> None:
        self.trt = trt
        self.tensors: list[tuple[Any, tuple[int, ...]]] = []
        self.draw = random.Random(0)
        self.work = threading.Event()
        threading.Thread(target=self.run, daemon=True).start()

    def start(self, tensors: list[Any], seed: int) -> None:
        self.tensors = changeable(tensors)
        self.draw = random.Random(seed)
        if self.tensors:
            self.work.set()

    def stop(self) -> None:
        self.work.clear()

    def run(self) -> None:
        while True:
            self.work.wait()
            try:
                change(self.trt, self.draw, *self.draw.choice(self.tensors))
            except Exception:
                pass
            time.sleep(0)


def with_out(table: list[tuple[str, Callable]]) -> list[tuple[str, Callable]]:
    """The rows whose function takes out=."""
    found = []
    for name, function in table:
        try:
            if "out" in inspect.signature(function).parameters:
                found.append((name, function))
        except (TypeError, ValueError):
            continue
    return found or table


meddlers: dict[int, Meddler] = {}


def beside_a_thread(trt: Any, arguments: Arguments, call: Callable[[], Any]) -> Any:
    """What the last of some calls returns or raises, while a thread meddles with the operands."""
    if not meddlers:
        sys.setswitchinterval(2e-5)
        meddlers[0] = Meddler(trt)
    meddlers[0].start(list(arguments.pool), arguments.draw.getrandbits(32))
    try:
        for _ in range(REPEATS - 1):
            try:
                call()
            except Exception:
                pass
        return call()
    finally:
        meddlers[0].stop()


def under_a_dispatch_mode(trt: Any, arguments: Arguments, call: Callable[[], Any]) -> Any:
    """What a call returns or raises under a mode that changes the operands before and after the operators that pass through it."""
    tensors, draw = changeable(list(arguments.pool)), random.Random(arguments.draw.getrandbits(32))

    def maybe_change() -> None:
        if tensors and draw.random() < 0.4:
            try:
                change(trt, draw, *draw.choice(tensors))
            except Exception:
                pass

    class Changing(trt.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            maybe_change()
            result = function(*args, **(kwargs or {}))
            maybe_change()
            return result

    with Changing():
        return call()


class Lengthless(tuple):
    """Says that it has no elements, and yields others than it has."""

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Any:
        return iter((1, 2, 3))


def another_tensor(trt: Any, draw: random.Random, t: Any, arguments: tuple) -> Any:
    """A tensor in the place of `t`: of another geometry, element type or device, a view, or an argument of the call."""
    shape = tuple(t.shape) if t.dim() < 8 else (2,)
    match draw.randrange(10):
        case 0:
            return trt.zeros(draw.choice([(), (0,), (1,), (1000,), (2, 2), (0, 3), shape[::-1], (3, *shape), shape[:-1], shape[1:]]), dtype=t.dtype)
        case 1:
            return trt.zeros(shape, dtype=getattr(trt, draw.choice(["int64", "bool", "float64", "float32", "uint8", "complex64", "bfloat16", "float8_e5m2", "uint16"])))
        case 2:
            return trt.zeros(shape, dtype=t.dtype, device="meta")
        case 3:
            return trt.zeros((), dtype=t.dtype).expand(shape)
        case 4:
            return t.t() if t.dim() == 2 else t.reshape(-1)
        case 5:
            return t.detach().clone().fill_(draw.choice([0, 1, -1, 100, 127]))
        case 6:
            return trt.full(shape, draw.choice([2**62, -(2**62), 10**9, -1]), dtype=trt.int64).to(t.dtype)
        case 7:
            return trt.zeros([2 * n for n in shape], dtype=t.dtype)[tuple(slice(None, None, 2) for _ in shape)]
        case 8:
            given = [x for x in arguments if isinstance(x, trt.Tensor)]
            return draw.choice(given) if given else t
        case _:
            return trt.rand(shape).requires_grad_()


def another_answer(trt: Any, draw: random.Random, result: Any, arguments: tuple) -> Any:
    """What a mode says in the place of a result."""
    if draw.random() < 0.2:
        return draw.choice([None, 3, "ab", range(2), (), [], {}, NotImplemented, (None,), (trt.zeros(3),) * 900, Lengthless((trt.zeros(3), trt.zeros(3))), trt.zeros(1000)])
    if isinstance(result, trt.Tensor):
        return another_tensor(trt, draw, result, arguments)
    if isinstance(result, (tuple, list)) and result:
        parts = list(result)
        k = draw.randrange(len(parts))
        match draw.randrange(6):
            case 0:
                del parts[k]
            case 1:
                parts.append(parts[k])
            case 2:
                parts[k] = draw.choice([None, 3, "a", parts])
            case 3:
                parts = [parts[k]] * len(parts)
            case _:
                if isinstance(parts[k], trt.Tensor):
                    parts[k] = another_tensor(trt, draw, parts[k], arguments)
        return draw.choice([tuple, list])(parts)
    return draw.choice([None, trt.zeros(3)])


def under_an_answering_mode(trt: Any, arguments: Arguments, call: Callable[[], Any]) -> Any:
    """What a call returns or raises under a mode that gives some operators' results as others."""
    draw = random.Random(arguments.draw.getrandbits(32))
    share = draw.choice([1.0, 0.5, 0.2])
    lies = [draw.randint(1, 3)]

    class Answering(trt.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
            result = function(*args, **(kwargs or {}))
            if lies[0] and draw.random() < share:
                lies[0] -= 1
                return another_answer(trt, draw, result, args)
            return result

    inside = draw.random() < 0.4  # the backward pass, too
    with Answering():
        result = call()
        if inside:
            from tools.fuzz import use

            use(trt, result)
    return result


folders: list[Path] = []


def open_a_name(trt: Any, table: Any, seed: int, number: int, show: Callable[[str], None] | None = None) -> str | None:
    """A program of the mode `names`: opens a name as shared memory and reads it; what is wrong where a file that is not ours changed."""
    from tools.fuzz import ALLOWED

    draw = random.Random(f"{seed}:{number}")
    if not folders:
        folders.append(Path(tempfile.mkdtemp(prefix="tensorrt_lite_names_", dir="/dev/shm")))
        atexit.register(lambda: [*map(os.unlink, folders[0].iterdir()), folders[0].rmdir()])
    victim = folders[0] / "victim"
    content = draw.choice([bytes(200), b"x" * 200, (1).to_bytes(8, "little") + bytes(100), b"", bytes(8)])
    victim.write_bytes(content)
    link = f"/{folders[0].name}_link"
    storage = trt.UntypedStorage._new_using_filename_cpu(draw.choice([8, 100]))
    _, own, size = storage._share_filename_cpu_()
    names = [f"/{folders[0].name}/victim", f"/../../{folders[0]}/victim", f"//{folders[0].name}/victim", str(victim), link, f"/{folders[0].name}", "/..", "/.", "/", "", "x", "/a/b", "/\0", "/" + "n" * 5000, "/no_such"]
    name = draw.choice([own, own[:-1], own + b"/", b"/" + own, bytes(draw.randrange(256) for _ in range(draw.randrange(12)))]) if draw.random() < 0.3 else draw.choice(names).encode()
    if show:
        show(f"{name!r} of {len(content)} bytes")
    made = None
    try:
        os.symlink(victim, "/dev/shm" + link)
        made = trt.UntypedStorage._new_shared_filename_cpu(b"", name, draw.choice([size, 1, 64, 0, -1, 2**40, 2**62]))
        made[0]
        if draw.random() < 0.5:
            made._shared_decref()
    except ALLOWED as error:
        if show:
            show(f"    {type(error).__name__}: {error}")
    finally:
        os.unlink("/dev/shm" + link)
    wrong = "opened" if made is not None and name != own else None
    del made, storage
    if not victim.exists() or victim.read_bytes() != content:
        wrong = "changed a file"
    return f"the name {name!r} {wrong}" if wrong else None
