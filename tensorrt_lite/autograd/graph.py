"""Looking at and steering the graph: Node, GradientEdge, hooks on saved tensors, version counters."""

from __future__ import annotations

import threading
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorrt_lite import _root as trt
from tensorrt_lite._C.autograd import engine as _engine
from tensorrt_lite._C.autograd import saved_tensors as _saved
from tensorrt_lite._C.autograd.hooks import RemovableHandle
from tensorrt_lite._C.autograd.node import Node
from tensorrt_lite._C.autograd.node import _bump_version, _gradient_node
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_missing = _LazyModule("tensorrt_lite._names.missing")

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tensorrt_lite.tensor import Tensor

__all__ = [
    "Node",
    "GradientEdge",
    "get_gradient_edge",
    "increment_version",
    "saved_tensors_hooks",
    "disable_saved_tensors_hooks",
    "save_on_cpu",
    "register_multi_grad_hook",
    "allow_mutation_on_saved_tensors",
    "RemovableHandle",
]


class GradientEdge(NamedTuple):
    """Where a gradient goes: output ``output_nr`` of ``node``. `autograd.grad` and `autograd.backward` take edges in place of tensors."""

    node: Node
    output_nr: int


def get_gradient_edge(tensor) -> GradientEdge:
    """The edge to which a gradient of ``tensor`` goes. RuntimeError when it requires none."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(_gradient_node(tensor), tensor.output_nr if tensor.grad_fn is not None else 0)


def increment_version(tensor) -> None:
    """Count a write that autograd cannot see. tensor: a tensor or several."""
    for t in (tensor,) if hasattr(tensor, "requires_grad") else tensor:
        _bump_version(t)


class saved_tensors_hooks:
    """Inside, in this thread, Nodes keep ``pack_hook(tensor)`` in place of each tensor that they save, and give the backward pass ``unpack_hook`` of it.

    pack_hook: takes a tensor and returns anything; it must not write to the tensor (RuntimeError). unpack_hook: takes what
    pack_hook returned and returns a tensor of the same shape, type, device and values; for operators that are not pointwise
    RuntimeError when shape, type or device differ. Both run with recording off. Of nested contexts the innermost acts.
    TypeError when something else than a tensor is unpacked or a hook cannot be called.

    >>> import tensorrt_lite as trt
    >>> x = trt.ones(2, requires_grad=True)
    >>> with trt.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda values: trt.tensor(values)):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _saved.push_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, exc_type: object, exc_value: object, traceback: object) -> None:
        _saved.pop_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Inside, what Nodes save is kept on the CPU and brought back to its device when the backward pass reads it.

    pin_memory: keep it in page-locked memory, with copies that do not wait. device_type: accepted for programs that name it.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor: Tensor) -> tuple[Any, Tensor]:
            if not pin_memory or tensor.device.type == "cpu":
                return tensor.device, tensor.cpu()

            kept = trt.empty(tensor.size(), dtype=tensor.dtype, pin_memory=True)
            kept.copy_(tensor, non_blocking=True)
            return tensor.device, kept

        def unpack(packed: tuple[Any, Tensor]) -> Tensor:
            device, tensor = packed
            return tensor.to(device, non_blocking=pin_memory)

        super().__init__(pack, unpack)


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, in this thread, opening saved_tensors_hooks raises RuntimeError(error_message); so does entering where one is open."""
    before = _saved.set_refusal(error_message)
    try:
        yield
    finally:
        _saved.set_refusal(before)


@contextmanager
def _no_saved_tensors_hooks() -> Iterator[None]:
    """Inside, the hooks open in this thread do not act; for graphs that the library itself records and throws away."""
    before = _saved.exchange_stack([])
    try:
        yield
    finally:
        _saved.exchange_stack(before)


class _Handles:
    """The handles of several hooks as one."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Take the hooks away."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode: str = "all") -> _Handles:
    """Call ``fn`` once in each backward pass, when gradients of several tensors are known.

    mode: "all", fn([gradient or None of each]) after the last one that the pass computes; "any", fn(gradient) after the first. Each tensor must require gradients.
    ValueError for another mode. Returns a handle with remove().
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock = threading.Lock()
    if mode == "any":
        seen: set[int] = set()

        def first(grad) -> None:
            task = _engine.current_task_id()
            with lock:
                if task in seen:
                    return
                seen.clear()
                seen.add(task)
            fn(grad)

        return _Handles(tuple(t.register_hook(first) for t in tensors if t.requires_grad))

    nodes = [_gradient_node(t) for t in tensors]
    running: dict[int, tuple[list, list[int]]] = {}  # of each pass: gradients, and how many are still to come

    def hook_of(index: int) -> Callable[[Any], None]:
        def hook(grad) -> None:
            task = _engine.current_task_id()
            with lock:
                if task not in running:
                    running[task] = [None] * len(nodes), [sum(map(_engine.will_execute, nodes))]
                grads, left = running[task]
                grads[index] = grad
                left[0] -= 1
                done = left[0] == 0
                if done:
                    del running[task]
            if done:
                fn(grads)

        return hook

    return _Handles(tuple(t.register_hook(hook_of(i)) for i, t in enumerate(tensors)))


# ---- writes to what was saved -----------------------------------------------------------------------------------------


class _Saved:
    """What a Node keeps in place of a tensor while writes to it are allowed."""

    __slots__ = ("__weakref__", "value", "copied")

    def __init__(self, value: Tensor) -> None:
        self.value = value
        self.copied = False


class _AllowMutation:
    """The tensors that Nodes saved in the context, by the memory that they lie in."""

    def __init__(self) -> None:
        self.saved: dict[int, weakref.WeakSet[_Saved]] = {}
        self.open = True

    def pack(self, tensor: Tensor) -> _Saved:
        made = _Saved(tensor)
        self.saved.setdefault(tensor.untyped_storage().data_ptr(), weakref.WeakSet()).add(made)
        return made

    def unpack(self, saved: _Saved) -> Tensor:
        if not self.open:
            raise AssertionError("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was originally recorded.")
        return saved.value

    def before_write(self, tensor: Tensor) -> None:
        """Copy what was saved of the memory that a write is about to change."""
        for saved in self.saved.get(tensor.untyped_storage().data_ptr(), ()):
            if not saved.copied:
                saved.value = saved.value.detach().clone()
                saved.copied = True

    def clear(self) -> None:
        self.open = False
        self.saved.clear()


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_AllowMutation]:
    """Inside, tensors that Nodes saved may be written to: a write copies them first, and the backward pass, which must be in the context too, sees the copies.

    RuntimeError for a context in a context. Writes through NumPy arrays or other views of the memory are not seen.

    >>> import tensorrt_lite as trt
    >>> with trt.autograd.graph.allow_mutation_on_saved_tensors():
    ...     x = trt.ones(2, requires_grad=True)
    ...     y = x.clone()
    ...     z = (y * y).sum()
    ...     y.mul_(3)
    ...     z.backward()
    tensor([3., 3.], grad_fn=<MulBackward0>)
    >>> x.grad
    tensor([2., 2.])
    """
    global _mutation_allowed
    from tensorrt_lite.utils._python_dispatch import TorchDispatchMode

    class CopyBeforeWrite(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            kwargs = kwargs or {}
            for written in _written_by(func, args, kwargs):
                context.before_write(written)
            return func(*args, **kwargs)

    if _mutation_allowed:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _AllowMutation()
    with saved_tensors_hooks(context.pack, context.unpack), CopyBeforeWrite():
        _mutation_allowed = True
        try:
            yield context
        finally:
            _mutation_allowed = False
            context.clear()


_mutation_allowed = False


def _written_by(func: Any, args: Any, kwargs: Any) -> list[Tensor]:
    """The tensors that a call writes to: the first argument in place, `out`, and what the schema of a custom operator names."""
    parts = str(func).split(".")
    first = 1 if len(parts) > 1 and parts[1].endswith("_") and not parts[1].endswith("__") else 0
    given = [*args[:first], kwargs.get("out")]
    for i in func._schema.written:
        given.append(args[i] if i < len(args) else kwargs.get(func._schema.arguments[i].name))
    return [t for value in given for t in (value if isinstance(value, (list, tuple)) else (value,)) if hasattr(t, "untyped_storage")]


def __getattr__(name: str) -> object:
    raise _missing.error("autograd.graph", name)
