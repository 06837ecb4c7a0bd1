"""Functions that search, sort and compare elements: indices, sets, orders. Indices are int64."""

from __future__ import annotations

from typing import NamedTuple

from tensorrt_lite import _root as trt
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.array_api import _unsigned
from tensorrt_lite.array_api._dtypes import require_array, together
from tensorrt_lite.array_api._manipulation import Axes, axes_of


def _extreme_index(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    x = _unsigned.ordered(require_array(name, x))
    x = x.to(trt.uint8) if x.dtype == trt.bool else x
    function = trt.argmax if name == "argmax" else trt.argmin
    if axis is None:
        result = function(x.reshape(-1), 0)
        return result.reshape((1,) * x.dim()) if keepdims else result
    return function(x, axis, keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the first greatest element lies along an axis, in the flattened array where it is None."""
    return _extreme_index("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Where the first least element lies along an axis, in the flattened array where it is None."""
    return _extreme_index("argmin", x, axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """How many elements along axes are not zero."""
    found = require_array("count_nonzero", x) != 0
    axes = axes_of(axis, x.dim())
    return found.sum(axes, keepdims) if axes else found.to(trt.int64)


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """The indices of elements that are not zero, an array (n) for each axis. ValueError for an array of no dimensions."""
    if require_array("nonzero", x).dim() == 0:
        raise ValueError("nonzero(): an array of no dimensions has no indices")
    return tuple(trt.nonzero(x, as_tuple=True))


def searchsorted(x1: Tensor, x2: Tensor, /, *, side: str = "left", sorter: Tensor | None = None) -> Tensor:
    """Where elements of x2 belong in x1, which is in ascending order or brought into it by the indices sorter. x1: (n), x2: (*) -> (*).

    side: 'left' before equal elements, 'right' behind them.
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted(): side must be 'left' or 'right', not {side!r}")
    values, wanted = (_unsigned.ordered(x) for x in together("searchsorted", x1, x2))
    if sorter is not None:
        values = values.index_select(0, sorter.to(trt.int64))
    return trt.searchsorted(values, wanted.contiguous(), side=side)


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The indices that sort an axis; equal elements stay in their order."""
    return trt.sort(_unsigned.ordered(require_array("argsort", x)), dim=axis, descending=descending, stable=True).indices


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements sorted along an axis; equal ones stay in their order, NaN counts as the greatest."""
    ordered = _unsigned.ordered(require_array("sort", x))
    return _unsigned.restored(trt.sort(ordered, dim=axis, descending=descending, stable=True).values, x.dtype)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The elements at indices along an axis, which only an array of one dimension may leave out. indices: (n), negative ones count from the end.

    x: (*, m, *) -> (*, n, *). IndexError for indices out of range.
    """
    if axis is None:
        if require_array("take", x).dim() != 1:
            raise ValueError(f"take(): axis is needed for an array of {x.dim()} dimensions")
        axis = 0
    if require_array("take", indices).dim() != 1:
        raise ValueError(f"take(): indices of one dimension are expected, not of {indices.dim()}")
    indices = indices.to(trt.int64)
    return x.index_select(axis, trt.where(indices < 0, indices + x.shape[axis], indices))


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """The elements at each line's own indices along an axis, negative ones from the end; the other axes broadcast. IndexError for indices out of range."""
    if require_array("take_along_axis", x).dim() != require_array("take_along_axis", indices).dim():
        raise ValueError(f"take_along_axis(): x has {x.dim()} dimensions, indices {indices.dim()}")
    return trt.take_along_dim(x, indices.to(trt.int64), axis)


class UniqueAllResult(NamedTuple):
    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCountsResult(NamedTuple):
    values: Tensor
    counts: Tensor


class UniqueInverseResult(NamedTuple):
    values: Tensor
    inverse_indices: Tensor


def _unique(name: str, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Sorted distinct elements (each NaN is one), where each element went, how often each occurs."""
    flat = require_array(name, x).reshape(-1)
    if flat.is_complex():
        # a complex number is a row of its parts; adding 0 makes -0 and 0 the same
        rows, inverse, counts = trt.unique(trt.view_as_real(flat) + 0.0, return_inverse=True, return_counts=True, dim=0)
        values = trt.view_as_complex(rows.contiguous())
    else:
        values, inverse, counts = trt.unique(_unsigned.ordered(flat), return_inverse=True, return_counts=True)
        values = _unsigned.restored(values, x.dtype)
    return values, inverse.reshape(x.shape), counts


def unique_all(x: Tensor, /) -> UniqueAllResult:
    """The distinct elements in order, where each first occurs in the flattened array, which one each element is, how often each occurs.

    x: (*) -> values, indices, counts: (n); inverse_indices: (*). Each NaN is an element of its own.
    """
    values, inverse, counts = _unique("unique_all", x)
    positions = trt.arange(x.numel(), device=x.device)
    first = trt.full((values.shape[0],), x.numel(), dtype=trt.int64, device=x.device).scatter_reduce(0, inverse.reshape(-1), positions, "amin")
    return UniqueAllResult(values, first, inverse, counts)


def unique_counts(x: Tensor, /) -> UniqueCountsResult:
    """The distinct elements in order and how often each occurs. x: (*) -> values, counts: (n)."""
    values, _, counts = _unique("unique_counts", x)
    return UniqueCountsResult(values, counts)


def unique_inverse(x: Tensor, /) -> UniqueInverseResult:
    """The distinct elements in order and which one each element is. x: (*) -> values: (n), inverse_indices: (*)."""
    values, inverse, _ = _unique("unique_inverse", x)
    return UniqueInverseResult(values, inverse)


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements in order. x: (*) -> (n)."""
    return _unique("unique_values", x)[0]
