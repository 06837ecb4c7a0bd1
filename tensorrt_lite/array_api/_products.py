"""Products of arrays, which the namespace and its extension linalg share. Unsigned integers are multiplied modulo their range."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.array_api import _unsigned
from tensorrt_lite.array_api._dtypes import require_array, together


def _product(function: Callable[[Tensor, Tensor], Tensor], a: Tensor, b: Tensor) -> Tensor:
    return _unsigned.modular(function, a, b) if a.dtype in _unsigned.WIDE else function(a, b)


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Matrix products. x1: (*, m, k) or (k), x2: (*, k, n) or (k) -> (*, m, n), without the axes that a vector lacks; leading axes broadcast.

    ValueError for arrays of no dimensions.
    """
    a, b = together("matmul", require_array("matmul", x1), require_array("matmul", x2))
    if a.dim() == 0 or b.dim() == 0:
        raise ValueError("matmul(): arrays of no dimensions have no product; use multiply()")
    return _product(trt.matmul, a, b)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """A view of the matrices transposed. x: (*, m, n) -> (*, n, m). RuntimeError for fewer than two dimensions."""
    return require_array("matrix_transpose", x).mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: Any = 2) -> Tensor:
    """The sum of products over axes: the last of x1 with the first of x2 where axes is a number, else pairs from two sequences of them."""
    a, b = together("tensordot", require_array("tensordot", x1), require_array("tensordot", x2))
    dims = axes if isinstance(axes, int) else tuple(list(one) for one in axes)
    return _product(lambda s, t: trt.tensordot(s, t, dims=dims), a, b)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Dot products along an axis of both, of complex vectors with the conjugate of x1; the other axes broadcast. x1, x2: (*, n) -> (*).

    ValueError where the vectors have different lengths.
    """
    a, b = together("vecdot", require_array("vecdot", x1), require_array("vecdot", x2))
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot(): vectors of {a.shape[axis]} and {b.shape[axis]} elements along axis {axis}")
    a, b = a.movedim(axis, -1), b.movedim(axis, -1)
    if a.is_floating_point() or a.is_complex():
        return linalg.vecdot(a, b)
    return _product(lambda s, t: trt.sum(s * t, -1).to(s.dtype), a, b)
