"""softmax() and log_softmax() with a conversion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def _converted(self: Tensor, dtype: Any) -> Tensor:
    return self if dtype is None or self.dtype is dtype else self.to(dtype)


def softmax(self: Tensor, dim: int, dtype: Any) -> Tensor:
    """exp(self) by its sum along `dim`, in `dtype`."""
    return _ops._softmax(_converted(self, dtype), dim, False)


def log_softmax(self: Tensor, dim: int, dtype: Any) -> Tensor:
    """The logarithm of softmax() along `dim`, in `dtype`."""
    return _ops._log_softmax(_converted(self, dtype), dim, False)
