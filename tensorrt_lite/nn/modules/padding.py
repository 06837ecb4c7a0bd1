"""Padding layers: how many elements to add at each end of the last dimensions, and with what."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._typed import TensorModule
from .utils import ntuple


class _PadNd(TensorModule):
    """Pads the last `_dims` dimensions; padding is a number or (left, right, top, bottom, front, back)."""

    __constants__ = ["padding"]
    _dims = 0
    _mode = ""

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = ntuple(padding, 2 * self._dims)

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_PadNd):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Any) -> Any:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Pads the last dimension with `value`."""

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`."""

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Pads the last dimension with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads the last two dimensions with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads the last three dimensions with zeros."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _CircularPadNd(_PadNd):
    _mode = "circular"

    def forward(self, input: Any) -> Any:
        n = self._dims
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")
        return F.pad(input, self.padding, "circular")


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension with its other end."""

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with their other ends."""

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with their other ends."""

    _dims = 3


class ReflectionPad1d(_PadNd):
    """Pads the last dimension with its reflection about the edge."""

    _dims, _mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """Pads the last two dimensions with their reflections about the edges."""

    _dims, _mode = 2, "reflect"


class ReflectionPad3d(_PadNd):
    """Pads the last three dimensions with their reflections about the edges."""

    _dims, _mode = 3, "reflect"


class ReplicationPad1d(_PadNd):
    """Pads the last dimension with its edge values."""

    _dims, _mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """Pads the last two dimensions with their edge values."""

    _dims, _mode = 2, "replicate"


class ReplicationPad3d(_PadNd):
    """Pads the last three dimensions with their edge values."""

    _dims, _mode = 3, "replicate"
