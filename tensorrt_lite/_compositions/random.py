"""Dropout of channels and for SELU networks: a product with drawn noise."""

from __future__ import annotations

from math import sqrt

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.ops.support import float_argument, tensor_argument

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()
_SELU_FLOOR = 1.7580993408473766  # -selu(-infinity): alpha dropout puts its negative in the place of dropped elements


def _dropped(name: str, input: Any, p: Any, train: Any, channels: bool, alpha: bool) -> Any:
    x, q, inplace = tensor_argument(input, name, "input"), float_argument(p, name, "p"), name.endswith("_")
    if not 0 <= q <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {q:g}")
    if q == 0 or not train or x.numel() == 0:
        return x
    multiply = _ops.mul_ if inplace else _ops.mul
    if q == 1:
        return multiply(x, _ops.zeros((), dtype=x.dtype, device=x.device))
    if channels and x.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    noise = x.new_empty((*x.shape[:2], *[1] * (x.dim() - 2))) if channels else _ops.empty_like(x)
    noise.bernoulli_(1 - q)
    if not alpha:
        return multiply(x, noise.div_(1 - q))
    a = 1 / sqrt((_SELU_FLOOR * _SELU_FLOOR * q + 1) * (1 - q))
    shift = noise.add(-1).mul_(_SELU_FLOOR * a).add_(_SELU_FLOOR * a * q)
    product = multiply(x, noise.mul_(a))
    return _ops.add_(product, shift)  # of which the gradient needs nothing


def feature_dropout(input: Any, p: Any, train: Any) -> Tensor:
    """Dropout of whole channels: input (N, C, *)."""
    return _dropped("feature_dropout", input, p, train, True, False)


def feature_dropout_(input: Any, p: Any, train: Any) -> Tensor:
    """feature_dropout in place."""
    return _dropped("feature_dropout_", input, p, train, True, False)


def alpha_dropout(input: Any, p: Any, train: Any) -> Tensor:
    """Dropout that keeps mean and variance of SELU networks (Klambauer et al. 2017, section 3)."""
    return _dropped("alpha_dropout", input, p, train, False, True)


def alpha_dropout_(input: Any, p: Any, train: Any) -> Tensor:
    """alpha_dropout in place."""
    return _dropped("alpha_dropout_", input, p, train, False, True)


def feature_alpha_dropout(input: Any, p: Any, train: Any) -> Tensor:
    """alpha_dropout of whole channels: input (N, C, *)."""
    return _dropped("feature_alpha_dropout", input, p, train, True, True)


def feature_alpha_dropout_(input: Any, p: Any, train: Any) -> Tensor:
    """feature_alpha_dropout in place."""
    return _dropped("feature_alpha_dropout_", input, p, train, True, True)
