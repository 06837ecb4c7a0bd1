"""Types of custom Functions: forward, backward and their kin are static methods of any signature."""

from collections.abc import Callable
from typing import Any, TypeVar

from tensorrt_lite import Tensor

_F = TypeVar("_F", bound=Callable[..., Any])

class FunctionCtx:
    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    def save_for_backward(self, *tensors: Tensor | None) -> None: ...
    def save_for_forward(self, *tensors: Tensor | None) -> None: ...
    def mark_dirty(self, *args: Tensor) -> None: ...
    def mark_non_differentiable(self, *args: Tensor) -> None: ...
    def set_materialize_grads(self, value: bool) -> None: ...
    # what a forward keeps for its backward
    def __setattr__(self, name: str, value: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

BackwardCFunction = FunctionCtx

class Function:
    forward: Callable[..., Any]
    setup_context: Callable[..., Any]
    backward: Callable[..., Any]
    vjp: Callable[..., Any]
    jvp: Callable[..., Any]
    vmap: Callable[..., Any]
    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any: ...

class InplaceFunction(Function):
    def __init__(self, inplace: bool = ...) -> None: ...

class NestedIOFunction(Function): ...

def once_differentiable(fn: _F) -> _F: ...
