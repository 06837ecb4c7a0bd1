"""Reductions: statistics, sums and products, all() and any(), differences. axis: one, several, or None for all; () reduces none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.array_api import _unsigned
from tensorrt_lite.array_api._dtypes import UNSIGNED, require_array, together
from tensorrt_lite.array_api._manipulation import Axes, axes_of

_UNSIGNED = frozenset(UNSIGNED.values())


def _logical(name: str, x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    truths = require_array(name, x) != 0
    axes = axes_of(axis, x.dim())
    return getattr(trt, name)(truths, axes, keepdims) if axes else truths


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether all elements along axes are true (not zero); True of none."""
    return _logical("all", x, axis, keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Whether an element along axes is true (not zero); False of none."""
    return _logical("any", x, axis, keepdims)


def _extreme(name: str, x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    axes = axes_of(axis, require_array(name, x).dim())
    function = trt.amax if name == "max" else trt.amin
    return _unsigned.choosing(lambda t: function(t, axes, keepdims), x) if axes else x.clone()


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The greatest element along axes; NaN where there is one. Of no elements an error."""
    return _extreme("max", x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The least element along axes; NaN where there is one. Of no elements an error."""
    return _extreme("min", x, axis, keepdims)


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """The arithmetic mean along axes; NaN of no elements. x: floating-point."""
    axes = axes_of(axis, require_array("mean", x).dim())
    return trt.mean(x, axes, keepdims) if axes else x.clone()


def _accumulated(x: Tensor, dtype: Any) -> Any:
    """The dtype of a sum or product: 64 bits for integers, unsigned of unsigned ones."""
    if dtype is not None:
        return dtype
    if x.dtype in _UNSIGNED:
        return trt.uint64
    return x.dtype if x.is_floating_point() or x.is_complex() else trt.int64


def _in_dtype(function: Callable[[Tensor], Tensor], x: Tensor, dtype: Any) -> Tensor:
    """A sum or product in a dtype."""
    x = x.to(dtype)
    return _unsigned.modular(function, x) if dtype in _unsigned.WIDE else function(x).to(dtype)


def sum(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum along axes, in dtype: where it is left out int64 and uint64 for integers, x's for others. 0 of no elements."""
    axes = axes_of(axis, require_array("sum", x).dim())
    return _in_dtype(lambda t: trt.sum(t, axes, keepdims) if axes else t.clone(), x, _accumulated(x, dtype))


def prod(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product along axes, in dtype: where it is left out int64 and uint64 for integers, x's for others. 1 of no elements."""
    axes = sorted((a % require_array("prod", x).dim() for a in axes_of(axis, x.dim())), reverse=True)

    def product(t: Tensor) -> Tensor:
        for a in axes:
            t = trt.prod(t, a, keepdims)
        return t if axes else t.clone()

    return _in_dtype(product, x, _accumulated(x, dtype))


def _spread(name: str, x: Tensor, axis: Axes, correction: float, keepdims: bool) -> Tensor:
    axes = axes_of(axis, require_array(name, x).dim())
    count = math.prod(x.shape[a] for a in axes)
    if not axes:
        return trt.full_like(x, 0.0 if correction < 1 else trt.nan)
    if count <= correction:  # PyTorch divides by zero, which is infinite for different numbers
        return trt.full_like(trt.sum(x, axes, keepdims), trt.nan)
    return getattr(trt, name)(x, axes, correction=correction, keepdim=keepdims)


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation along axes; sums of squares are divided by n - correction, and NaN where that is not positive. x: floating-point."""
    return _spread("std", x, axis, correction, keepdims)


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance along axes; sums of squares are divided by n - correction, and NaN where that is not positive. x: floating-point."""
    return _spread("var", x, axis, correction, keepdims)


def _cumulative(name: str, x: Tensor, axis: int | None, dtype: Any, include_initial: bool) -> Tensor:
    if axis is None:
        if require_array(name, x).dim() > 1:
            raise ValueError(f"{name}(): axis is needed for an array of {x.dim()} dimensions")
        axis = 0
    if x.dim() == 0:
        raise ValueError(f"{name}(): an array of no dimensions has no axis")
    function, initial = (trt.cumsum, 0) if name == "cumulative_sum" else (trt.cumprod, 1)

    def run(t: Tensor) -> Tensor:
        result = function(t, axis).to(t.dtype)
        if include_initial:
            start = list(t.shape)
            start[axis] = 1
            result = trt.cat([trt.full(start, initial, dtype=t.dtype, device=t.device), result], axis)
        return result

    return _in_dtype(run, x, _accumulated(x, dtype))


def cumulative_prod(x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Products of the elements up to each position of an axis, which only an array of one dimension may leave out; include_initial puts a 1 in front."""
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial)


def cumulative_sum(x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """Sums of the elements up to each position of an axis, which only an array of one dimension may leave out; include_initial puts a 0 in front."""
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial)


def diff(x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """Differences of neighbours along an axis, n times; prepend and append are put before and behind the axis first."""
    operands = together("diff", x, *(t for t in (prepend, append) if t is not None))
    x = operands[0]
    ends = {key: value for key, value in (("prepend", prepend), ("append", append)) if value is not None}
    ends = dict(zip(ends, operands[1:]))
    if x.dtype not in _unsigned.WIDE:
        return trt.diff(x, n, axis, **ends)
    return _unsigned.modular(lambda t, *rest: trt.diff(t, n, axis, **dict(zip(ends, rest))), x, *ends.values())
