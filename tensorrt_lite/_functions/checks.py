"""`torch._check` and its kin: errors of a condition, whose message is made only if it does not hold. Imported on first use."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule

_functions_symbolic = LazyModule("tensorrt_lite._functions.symbolic")

_Message = Callable[[], str] | None
_NO_MESSAGE = "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request to PyTorch.)"


def _check_with(error_type: type[Exception], cond: bool, message: _Message) -> None:
    """error_type with what message() returns, unless cond. TypeError for a cond that is no bool, or a message that can't be called."""
    if not isinstance(cond, (bool, _functions_symbolic.SymBool)):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(_NO_MESSAGE)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond: bool, message: _Message = None) -> None:
    """RuntimeError unless cond."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond: bool, message: _Message = None) -> None:
    """IndexError unless cond."""
    _check_with(IndexError, cond, message)


def _check_value(cond: bool, message: _Message = None) -> None:
    """ValueError unless cond."""
    _check_with(ValueError, cond, message)


def _check_type(cond: bool, message: _Message = None) -> None:
    """TypeError unless cond."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond: bool, message: _Message = None) -> None:
    """NotImplementedError unless cond."""
    _check_with(NotImplementedError, cond, message)


def _check_tensor_all_with(error_type: type[Exception], cond: Any, message: _Message = None) -> None:
    """error_type unless all elements of a bool tensor hold. TypeError for what is none."""
    if not isinstance(cond, trt.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != trt.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: Any, message: _Message = None) -> None:
    """RuntimeError unless all elements of a bool tensor hold."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _check_is_size(i: int, message: _Message = None, *, max: int | None = None) -> None:
    """RuntimeError unless 0 <= i, and i <= max where that is given."""
    warnings.warn("_check_is_size will be removed in a future PyTorch release along with guard_size_oblivious", FutureWarning, stacklevel=2)
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)
