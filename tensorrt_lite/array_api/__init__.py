"""The Python array API standard, version 2024.12 (https://data-apis.org/array-api/2024.12): functions over tensors with the standard's names, signatures,
promotion and results. Tensors stay PyTorch's; `Tensor.__array_namespace__()` answers with this module.

>>> import tensorrt_lite as trt
>>> x = trt.asarray([[1.0, 2.0], [3.0, 4.0]])
>>> xp = x.__array_namespace__()
>>> xp.sum(x, axis=0, keepdims=True).tolist()
[[4.0, 6.0]]

docs/interop.md lists in what tensors differ from the standard's array object.
"""

from __future__ import annotations

import sys as _sys

from tensorrt_lite._root import bool, complex64, complex128, e, float32, float64, inf, int8, int16, int32, int64, nan, newaxis, pi, uint8, uint16, uint32, uint64
from tensorrt_lite.array_api import fft, linalg
from tensorrt_lite.array_api._creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from tensorrt_lite.array_api._dtypes import astype, can_cast, finfo, iinfo, isdtype, result_type
from tensorrt_lite.array_api._elementwise import (
    abs,
    acos,
    acosh,
    add,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    ceil,
    clip,
    conj,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    expm1,
    floor,
    floor_divide,
    greater,
    greater_equal,
    hypot,
    imag,
    isfinite,
    isinf,
    isnan,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    multiply,
    negative,
    nextafter,
    not_equal,
    positive,
    pow,
    real,
    reciprocal,
    remainder,
    round,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    trunc,
    where,
)
from tensorrt_lite.array_api._info import __array_namespace_info__
from tensorrt_lite.array_api._manipulation import (
    broadcast_arrays,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from tensorrt_lite.array_api._products import matmul, matrix_transpose, tensordot, vecdot
from tensorrt_lite.array_api._searching import (
    argmax,
    argmin,
    argsort,
    count_nonzero,
    nonzero,
    searchsorted,
    sort,
    take,
    take_along_axis,
    unique_all,
    unique_counts,
    unique_inverse,
    unique_values,
)
from tensorrt_lite.array_api._statistical import all, any, cumulative_prod, cumulative_sum, diff, max, mean, min, prod, std, sum, var

__array_api_version__ = "2024.12"

_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")  # each later one contains the earlier ones

__all__ = sorted(name for name in globals() if not name.startswith("_") and name != "annotations")
__all__ += ["__array_api_version__", "__array_namespace_info__"]


def _namespace(api_version: str | None) -> object:
    """This module, for a version of the standard that it conforms to. ValueError for another one."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ValueError(f"__array_namespace__(): version {api_version!r} of the array API standard is not supported; {', '.join(_VERSIONS)} are")
    return _sys.modules[__name__]
