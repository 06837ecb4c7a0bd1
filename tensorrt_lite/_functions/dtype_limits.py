"""finfo and iinfo: the limits of floating-point and integer dtypes, as in PyTorch. Imported on first use."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tensorrt_lite import _root
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.dtype import dtype as _dtype
from tensorrt_lite._C.core.dtype import get_default_dtype
from tensorrt_lite._C.core.dtype import limits as _limits

if TYPE_CHECKING:
    from tensorrt_lite import dtype

# PyTorch's constant for the step after 1, which is the next finer format's.
_EPS = {"float8_e5m2fnuz": 0.125}


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
        kind = _dtype_by_name(name)
        if kind.is_complex:
            kind = kind.to_real()
            name = kind.name
        if not kind.is_floating_point:
            raise TypeError("torch.finfo() requires a floating point input type. Use torch.iinfo to handle 'torch.finfo'")
        exact, largest, encoding = _limits(kind)
        self._name = name
        self.bits = 8 * kind.itemsize
        self.eps = _EPS.get(name, 2.0 ** (1 - exact))
        self.max = largest
        alone = encoding == "POWER"                # an exponent without sign and significand, and no subnormal numbers
        bias = 2 ** (self.bits - exact - (not alone)) - 1 + (encoding == "FNUZ")
        self.tiny = self.smallest_normal = 2.0 ** ((not alone) - bias)
        self.min = self.tiny if alone else -largest
        self.resolution = float(f"1e-{int((exact - 1) * math.log10(2))}")
        self.dtype = name

    def __reduce__(self) -> tuple:
        return finfo, (getattr(_root, self._name),)

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
        kind = _dtype_by_name(name)
        if kind.is_floating_point or kind.is_complex:
            raise TypeError("torch.iinfo() requires an integer input type. Use torch.finfo to handle 'torch.iinfo'")
        if name == "bool":
            raise TypeError(f"torch.{name} is not supported by torch.iinfo")
        self.bits = 8 * kind.itemsize
        self.max = (1 << _limits(kind)[0]) - 1
        self.min = -self.max - 1 if kind.is_signed else 0
        self.dtype = name

    def __reduce__(self) -> tuple:
        return iinfo, (getattr(_root, self.dtype),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, iinfo) and self.dtype == other.dtype

    def __repr__(self) -> str:
        return f"iinfo(min={float(self.min):g}, max={float(self.max):g}, dtype={self.dtype})"
