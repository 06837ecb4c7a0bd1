"""Functions that make arrays. dtype: by the values where left out; device: the default one, or that of the array which the new one is like."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.array_api import _unsigned
from tensorrt_lite.array_api._dtypes import require_array

_interop_dlpack = LazyModule("tensorrt_lite._interop.dlpack")


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array of an array, a number, nested sequences of numbers, or an object of the buffer protocol or DLPack.

    copy: True always copies, False never does (ValueError where it would have to), None where it must.
    """
    return trt.asarray(obj, dtype=dtype, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from start up to stop, which is left out, by step; from 0 to start where stop is None. -> (ceil((stop - start) / step)), empty where
    stop lies on the wrong side."""
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ValueError("arange(): step must not be 0")
    if dtype is None:
        dtype = trt.int64 if all(isinstance(v, int) for v in (start, stop, step)) else trt.get_default_dtype()
    if (stop - start) * step <= 0:
        return trt.empty((0,), dtype=dtype, device=device)
    if dtype in _unsigned.WIDE:
        first = trt.tensor(start, dtype=dtype, device=device)
        count = -((start - stop) // step)
        return _unsigned.modular(lambda x: x + trt.arange(count, dtype=x.dtype, device=device) * step, first)
    return trt.arange(start, stop, step, dtype=dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of a shape, whose values are whatever the memory held."""
    return trt.empty(shape, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape, whose values are whatever the memory held."""
    return trt.empty_like(require_array("empty_like", x), dtype=dtype, device=device)


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the k-th diagonal (0: the main one, positive: above it), zeros elsewhere. -> (n_rows, n_cols)."""
    n_cols = n_rows if n_cols is None else n_cols
    result = trt.zeros((n_rows, n_cols), dtype=dtype, device=device)
    if -n_rows < k < n_cols:
        result.diagonal(k).fill_(1)
    return result


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """An array over the memory of an object with `__dlpack__`; copy and device as in `tensorrt_lite.from_dlpack`."""
    return _interop_dlpack.from_dlpack(x, device=device, copy=copy)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of a shape with one value everywhere; without dtype in the default one of the value's kind."""
    return (
        trt.tensor(fill_value, dtype=dtype, device=device)
        .expand((shape,) if isinstance(shape, int) else tuple(shape))
        .clone(memory_format=trt.contiguous_format)
    )


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape and dtype with one value everywhere."""
    require_array("full_like", x)
    return full(tuple(x.shape), fill_value, dtype=x.dtype if dtype is None else dtype, device=x.device if device is None else device)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True) -> Tensor:
    """num numbers at equal distances from start to stop, which endpoint=False leaves out. -> (num)."""
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = trt.get_default_dtype().to_complex()
    if endpoint:
        return trt.linspace(start, stop, num, dtype=dtype, device=device)
    return trt.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid from those of its axes. arrays: (n_i) each -> as many of (n_0, n_1, ...), 'xy' with the first two axes exchanged.

    ValueError for arrays of several dtypes and for another indexing.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid(): indexing must be 'xy' or 'ij', not {indexing!r}")
    if len({x.dtype for x in arrays}) > 1:
        raise ValueError(f"meshgrid(): arrays of one dtype are expected, not {', '.join(str(x.dtype) for x in arrays)}")
    return tuple(trt.meshgrid(*arrays, indexing=indexing)) if arrays else ()


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of a shape with 1 everywhere."""
    return trt.ones(shape, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape with 1 everywhere."""
    return trt.ones_like(require_array("ones_like", x), dtype=dtype, device=device)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices' elements on and below the k-th diagonal, zeros above. x: (*, m, n) -> (*, m, n)."""
    return trt.tril(require_array("tril", x), k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The matrices' elements on and above the k-th diagonal, zeros below. x: (*, m, n) -> (*, m, n)."""
    return trt.triu(require_array("triu", x), k)


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of a shape with 0 everywhere."""
    return trt.zeros(shape, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of x's shape with 0 everywhere."""
    return trt.zeros_like(require_array("zeros_like", x), dtype=dtype, device=device)
