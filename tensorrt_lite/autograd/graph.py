"""Looking at and steering the graph: Node, GradientEdge, hooks on saved tensors, version counters."""

from __future__ import annotations

from typing import NamedTuple

from tensorrt_lite._C.autograd import function as _compiled
from tensorrt_lite._C.autograd.hooks import RemovableHandle
from tensorrt_lite._C.autograd.node import Node
from tensorrt_lite._C.autograd.node import _bump_version, _gradient_node

__all__ = ["Node", "GradientEdge", "get_gradient_edge", "increment_version", "saved_tensors_hooks", "save_on_cpu", "RemovableHandle"]


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
    """Inside, what custom Functions save passes through ``pack_hook``, and through ``unpack_hook`` when backward reads it.

    Compiled operators keep their inputs as they are: their Nodes hold references, which cost no memory of their own.
    """

    def __init__(self, pack_hook, unpack_hook) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _compiled._saved_hooks_push(self.pack_hook, self.unpack_hook)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _compiled._saved_hooks_pop()


class save_on_cpu(saved_tensors_hooks):
    """Inside, what custom Functions save is kept on the CPU and brought back when backward reads it."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        def pack(tensor):
            return tensor.device, tensor if tensor.device.type == "cpu" else tensor.cpu()

        def unpack(packed):
            device, tensor = packed
            return tensor.to(device)

        super().__init__(pack, unpack)


def __getattr__(name: str) -> object:
    from tensorrt_lite._missing import error

    raise error("autograd.graph", name)
