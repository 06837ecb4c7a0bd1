"""Modes and helpers over `__torch_dispatch__`: what programs import from PyTorch's module of the same name.

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            print(func)
            return func(*args, **(kwargs or {}))

    with Log():
        x.add(1)        # aten.add.Tensor

A mode sees every operator of its thread below autograd; inside its method it is not active. Modes nest, the innermost is asked first.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core import python_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["BaseTorchDispatchMode", "TorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing", "transform_subclass"]


class TorchDispatchMode:
    """A context inside which `__torch_dispatch__(func, types, args, kwargs)` runs in the place of each operator.

    func: the operator, an object of `ops.aten` or of a library; a call goes on to the next mode or to the kernel. types: the classes with
    `__torch_dispatch__` among the arguments. Returns what the operator is to return, NotImplemented to leave it to those classes.
    """

    def __torch_dispatch__(self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        raise NotImplementedError(f"{type(self).__name__} needs a method __torch_dispatch__")

    def __enter__(self) -> TorchDispatchMode:
        python_key.push_mode(self)
        return self

    def __exit__(self, *exception: object) -> None:
        python_key.pop_mode()

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> TorchDispatchMode:
        """An instance; the same as calling the class."""
        return cls(*args, **kwargs)


class BaseTorchDispatchMode(TorchDispatchMode):
    """The mode that changes nothing."""

    def __torch_dispatch__(self, func: Any, types: tuple[type, ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        return func(*args, **(kwargs or {}))


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, or None."""
    stack = python_key.mode_stack()
    return stack[-1] if stack else None


def _get_current_dispatch_mode_stack() -> list[Any]:
    """All active modes, outermost first."""
    return list(python_key.mode_stack())


def _push_mode(mode: Any) -> None:
    python_key.push_mode(mode)


def _pop_mode() -> Any:
    return python_key.pop_mode()


@contextlib.contextmanager
def _pop_mode_temporarily() -> Iterator[Any]:
    """Without the innermost mode, which is what `as` gives."""
    mode = python_key.pop_mode()
    try:
        yield mode
    finally:
        python_key.push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """Without any mode."""
    modes = []
    while python_key.mode_stack():
        modes.append(python_key.pop_mode())
    try:
        yield modes[::-1]
    finally:
        for mode in reversed(modes):
            python_key.push_mode(mode)


def is_traceable_wrapper_subclass(t: Any) -> bool:
    """Whether a tensor is of a subclass that says of which tensors it is made: `__tensor_flatten__` and `__tensor_unflatten__`."""
    return isinstance(t, trt.Tensor) and type(t) is not trt.Tensor and hasattr(t, "__tensor_flatten__") and hasattr(type(t), "__tensor_unflatten__")


def transform_subclass(t: Any, callback: Callable[[str, Any], Any], outer_size: Any = None, outer_stride: Any = None) -> Any:
    """A wrapper of the same kind around `callback(attribute's name, inner tensor)` of each inner tensor."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    return type(t).__tensor_unflatten__(inner, context, t.size() if outer_size is None else outer_size, t.stride() if outer_stride is None else outer_stride)


def return_and_correct_aliasing(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """What a wrapper's `__torch_dispatch__` returns: of an operator that writes, the tensor that it wrote to; else `out`."""
    if getattr(func, "mode", 0) == 2:
        return args[0]
    if getattr(func, "mode", 0) == 1:
        return kwargs["out"]
    return out
