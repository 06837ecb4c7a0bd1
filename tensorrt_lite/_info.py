"""finfo and iinfo: the limits of floating-point and integer dtypes, as in PyTorch. Imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.dtype import dtype as _dtype
from tensorrt_lite._C.core.dtype import get_default_dtype

if TYPE_CHECKING:
    from tensorrt_lite import dtype

# name: (mantissa bits without the leading one, smallest normal exponent, largest exponent, decimal digits that survive). float8_e4m3fn gives
# the exponent of an infinity to numbers, all but the largest mantissa.
_FLOATS = {
    "float16": (10, -14, 15, 3),
    "bfloat16": (7, -126, 127, 2),
    "float32": (23, -126, 127, 6),
    "float64": (52, -1022, 1023, 15),
    "float8_e4m3fn": (3, -6, 8, 0),
    "float8_e5m2": (2, -14, 15, 0),
}
_REAL = {"complex64": "float32", "complex128": "float64"}
_INTEGERS = {"uint8": (0, 8), "int8": (1, 8), "int16": (1, 16), "int32": (1, 32), "int64": (1, 64), "uint16": (0, 16), "uint32": (0, 32), "uint64": (0, 64)}


def _name(kind: object, owner: str) -> str:
    if kind in (float, int, bool, complex):
        return {float: "float64", int: "int64", bool: "bool", complex: "complex128"}[kind]  # type: ignore[index]
    if not isinstance(kind, _dtype):
        raise TypeError(f"{owner}(): argument 'type' (position 1) must be torch.dtype, not {type(kind).__name__}")
    return str(kind).rpartition(".")[2]


class finfo:
    """Limits of a floating-point dtype (of its parts, for a complex one): bits, eps, max, min, tiny, smallest_normal, resolution, dtype."""

    __slots__ = ("_name", "bits", "dtype", "eps", "max", "min", "resolution", "smallest_normal", "tiny")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, type: dtype | None = None) -> None:
        name = _name(get_default_dtype() if type is None else type, "finfo")
        name = _REAL.get(name, name)
        if name not in _FLOATS:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
        mantissa, lowest, highest, digits = _FLOATS[name]
        self._name = name
        self.bits = 8 * _dtype_by_name(name).itemsize
        self.eps = 2.0**-mantissa
        self.max = (2.0 - self.eps * (2 if name == "float8_e4m3fn" else 1)) * 2.0**highest
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0**lowest
        self.resolution = float(f"1e-{digits}")
        self.dtype = name

    def __reduce__(self) -> tuple:
        import tensorrt_lite

        return finfo, (getattr(tensorrt_lite, self._name),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, finfo) and self._name == other._name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
            f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})"
        )


class iinfo:
    """Limits of an integer dtype: bits, max, min, dtype."""

    __slots__ = ("bits", "dtype", "max", "min")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, type: dtype) -> None:
        name = _name(type, "iinfo")
        if name in _FLOATS or name in _REAL:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if name not in _INTEGERS:
            raise TypeError(f"torch.{name} is not supported by torch.iinfo")
        signed, self.bits = _INTEGERS[name]
        self.max = (1 << (self.bits - signed)) - 1
        self.min = -self.max - 1 if signed else 0
        self.dtype = name

    def __reduce__(self) -> tuple:
        import tensorrt_lite

        return iinfo, (getattr(tensorrt_lite, self.dtype),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __repr__(self) -> str:
        return f"iinfo(min={float(self.min):g}, max={float(self.max):g}, dtype={self.dtype})"
