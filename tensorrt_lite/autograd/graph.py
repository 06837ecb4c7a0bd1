"""Looking at and steering the graph: Node, GradientEdge, hooks on saved tensors, version counters."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorrt_lite._C.autograd import saved_tensors as _saved
from tensorrt_lite._C.autograd.hooks import RemovableHandle
from tensorrt_lite._C.autograd.node import Node
from tensorrt_lite._C.autograd.node import _bump_version, _gradient_node

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
    "RemovableHandle",
]


class GradientEdge(NamedTuple):
    """Where a gradient goes: output ``output_nr`` of ``node``."""

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
            import tensorrt_lite as trt

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


def __getattr__(name: str) -> object:
    from tensorrt_lite._missing import error

    raise error("autograd.graph", name)
