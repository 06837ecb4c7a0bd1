"""Dtypes of the standard: kinds, promotion, limits, what Python's numbers become beside an array.

Promotion here looks at dtypes alone: an array of no dimensions counts as any other, unlike PyTorch's operators, and uint16, uint32 and uint64 take part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import finfo as _finfo
from tensorrt_lite._functions.dtype_limits import iinfo as _iinfo
from tensorrt_lite.tensor import Tensor

DType = trt.dtype

SIGNED = {"int8": trt.int8, "int16": trt.int16, "int32": trt.int32, "int64": trt.int64}
UNSIGNED = {"uint8": trt.uint8, "uint16": trt.uint16, "uint32": trt.uint32, "uint64": trt.uint64}
KINDS: dict[str, dict[str, Any]] = {
    "bool": {"bool": trt.bool},
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": {**SIGNED, **UNSIGNED},
    "real floating": {"float32": trt.float32, "float64": trt.float64},
    "complex floating": {"complex64": trt.complex64, "complex128": trt.complex128},
}
KINDS["numeric"] = {**KINDS["integral"], **KINDS["real floating"], **KINDS["complex floating"]}
ALL: dict[str, Any] = {**KINDS["bool"], **KINDS["numeric"]}

_BITS = {kind: 8 * kind.itemsize for kind in KINDS["integral"].values()}
_SIGNED = frozenset(SIGNED.values())
_WIDE = {trt.uint16, trt.uint32, trt.uint64}  # which PyTorch promotes with nothing but themselves
_SIGNED_OF_BITS = {8: trt.int8, 16: trt.int16, 32: trt.int32, 64: trt.int64}


def promote(first: Any, second: Any) -> Any:
    """The dtype that two dtypes promote to. TypeError for uint64 beside a signed integer, which the standard leaves without one."""
    if first is second or first == second:
        return first
    if first in _BITS and second in _BITS:
        if (first in _SIGNED) == (second in _SIGNED):
            return first if _BITS[first] > _BITS[second] else second
        signed, unsigned = (first, second) if first in _SIGNED else (second, first)
        bits = max(_BITS[signed], 2 * _BITS[unsigned])
        if bits > 64:
            raise TypeError(f"{first} and {second} have no common dtype")
        return _SIGNED_OF_BITS[bits]
    if first in _WIDE:  # beside a bool or a floating-point type
        return first if second == trt.bool else second
    if second in _WIDE:
        return second if first == trt.bool else first
    return trt.promote_types(first, second)


def of_scalar(value: Any, beside: Any) -> Any:
    """The dtype that a Python number takes beside an array of a dtype: the array's where it can hold the kind of number, else the default of that kind."""
    if isinstance(value, bool):
        return beside
    if isinstance(value, int):
        return trt.int64 if beside == trt.bool else beside
    if isinstance(value, float):
        return beside if beside.is_floating_point or beside.is_complex else trt.get_default_dtype()
    if beside.is_complex:
        return beside
    return (beside if beside.is_floating_point else trt.get_default_dtype()).to_complex()


def is_scalar(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex))


def common(name: str, *operands: Any) -> Any:
    """The dtype of arrays, dtypes and Python numbers together. TypeError without an array or dtype among them, or for other objects."""
    kinds = []
    for value in operands:
        if isinstance(value, Tensor):
            kinds.append(value.dtype)
        elif isinstance(value, DType):
            kinds.append(value)
        elif not is_scalar(value):
            raise TypeError(f"{name}(): expected arrays, dtypes or Python numbers, not {type(value).__name__}")
    if not kinds:
        raise TypeError(f"{name}(): at least one argument must be an array or a dtype")
    result = kinds[0]
    try:
        for kind in kinds[1:]:
            result = promote(result, kind)
    except TypeError as error:
        raise TypeError(f"{name}(): {error}") from None
    for value in operands:
        if is_scalar(value):
            result = promote(result, of_scalar(value, result))
    return result


def together(name: str, *operands: Any) -> list[Tensor]:
    """Arrays and Python numbers as arrays of their common dtype, on the arrays' device."""
    kind = common(name, *operands)
    device = next(value.device for value in operands if isinstance(value, Tensor))
    return [value.to(kind) if isinstance(value, Tensor) else trt.tensor(value, dtype=kind, device=device) for value in operands]


def require_array(name: str, x: Any) -> Tensor:
    """x itself. TypeError unless it is an array."""
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): expected an array (Tensor), not {type(x).__name__}")
    return x


def dtype_of(name: str, value: Any) -> Any:
    """The dtype that an array or a dtype stands for."""
    if isinstance(value, Tensor):
        return value.dtype
    if isinstance(value, DType):
        return value
    raise TypeError(f"{name}(): expected an array or a dtype, not {type(value).__name__}")


class finfo_object(NamedTuple):
    """Limits of a real floating-point dtype, as Python floats; bits is an int, dtype the dtype itself."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: Any


class iinfo_object(NamedTuple):
    """Limits of an integer dtype, as ints; dtype is the dtype itself."""

    bits: int
    max: int
    min: int
    dtype: Any


def finfo(type: Any, /) -> finfo_object:
    """Limits of a floating-point dtype, or of an array's: bits, eps, max, min, smallest_normal, dtype; those of the parts for a complex one.

    TypeError for other dtypes.
    """
    kind = dtype_of("finfo", type)
    limits = _finfo(kind)
    return finfo_object(limits.bits, limits.eps, limits.max, limits.min, limits.smallest_normal, getattr(trt, limits.dtype))


def iinfo(type: Any, /) -> iinfo_object:
    """Limits of an integer dtype, or of an array's: bits, max, min, dtype. TypeError for other dtypes."""
    kind = dtype_of("iinfo", type)
    limits = _iinfo(kind)
    return iinfo_object(limits.bits, limits.max, limits.min, kind)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether dtype is of a kind: a dtype, 'bool', 'signed integer', 'unsigned integer', 'integral', 'real floating', 'complex floating', 'numeric',
    or one of a tuple of these. ValueError for another name, TypeError for another object."""
    if not isinstance(dtype, DType):
        raise TypeError(f"isdtype(): expected a dtype, not {type(dtype).__name__}")
    if isinstance(kind, tuple):
        return any([isdtype(dtype, one) for one in kind])  # each is looked at, so that a misspelt one is found
    if isinstance(kind, str):
        if kind not in KINDS:
            raise ValueError(f"isdtype(): unknown kind {kind!r}; there are {', '.join(map(repr, KINDS))}")
        if kind == "real floating" or kind == "numeric" and dtype.is_floating_point:
            return dtype.is_floating_point  # bfloat16 and its kin, too
        if kind == "complex floating" or kind == "numeric" and dtype.is_complex:
            return dtype.is_complex
        return dtype in KINDS[kind].values()
    if isinstance(kind, DType):
        return dtype == kind
    raise TypeError(f"isdtype(): kind must be a dtype, a name or a tuple of them, not {type(kind).__name__}")


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether promotion leads from a dtype, or an array's, to another one."""
    first, second = dtype_of("can_cast", from_), dtype_of("can_cast", to)
    try:
        return promote(first, second) == second
    except TypeError:
        return False


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that arrays, dtypes and Python numbers promote to. TypeError where there is none."""
    return common("result_type", *arrays_and_dtypes)


def astype(x: Tensor, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x in another dtype, and on a device; x itself where nothing changes and copy is False."""
    return require_array("astype", x).to(device=x.device if device is None else device, dtype=dtype, copy=copy)
