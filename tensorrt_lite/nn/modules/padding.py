"""Padding layers: how many elements to add at each end of the last dimensions, and with what."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._own_init import own_init
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
    """Pads the last dimension with `value`.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut
        value (float): what is added

    >>> import tensorrt_lite as trt
    >>> trt.nn.ConstantPad1d((1, 2), value=9.0)(trt.tensor([[1.0, 2.0]]))
    tensor([[9., 1., 2., 9., 9.]])
    """

    _dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Pads the last two dimensions with `value`.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut
        value (float): what is added

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([[[1.0, 2.0], [3.0, 4.0]]])
    >>> trt.nn.ConstantPad2d((1, 0, 0, 1), value=9.0)(x)  # left, right, top, bottom
    tensor([[[9., 1., 2.],
             [9., 3., 4.],
             [9., 9., 9.]]])
    """

    _dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Pads the last three dimensions with `value`.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut
        value (float): what is added

    >>> import tensorrt_lite as trt
    >>> pad = trt.nn.ConstantPad3d((1, 1, 2, 2, 0, 3), value=0.5)
    >>> pad(trt.randn(2, 4, 5, 6)).shape
    torch.Size([2, 7, 9, 8])
    """

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Pads the last dimension with zeros.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> trt.nn.ZeroPad1d((2, 1))(trt.tensor([[1.0, 2.0]]))
    tensor([[0., 0., 1., 2., 0.]])
    >>> trt.nn.ZeroPad1d((-1, 0))(trt.tensor([[1.0, 2.0]]))  # a negative padding crops
    tensor([[2.]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Pads the last two dimensions with zeros.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> trt.nn.ZeroPad2d(1)(trt.ones(1, 1, 2))
    tensor([[[0., 0., 0., 0.],
             [0., 1., 1., 0.],
             [0., 0., 0., 0.]]])
    """

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Pads the last three dimensions with zeros.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> trt.nn.ZeroPad3d(1)(trt.ones(2, 3, 4, 5)).shape
    torch.Size([2, 5, 6, 7])
    """

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
    """Pads the last dimension with its other end.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> trt.nn.CircularPad1d((2, 1))(trt.tensor([[1.0, 2.0, 3.0]]))
    tensor([[2., 3., 1., 2., 3., 1.]])
    """

    _dims = 1


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions with their other ends.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> trt.nn.CircularPad2d((1, 0, 0, 1))(trt.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[2., 1., 2.],
             [4., 3., 4.],
             [2., 1., 2.]]])
    """

    _dims = 2


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions with their other ends.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> x = trt.arange(3.0).reshape(1, 3, 1, 1)
    >>> trt.nn.CircularPad3d((0, 0, 0, 0, 1, 2))(x).flatten()
    tensor([2., 0., 1., 2., 0., 1.])
    """

    _dims = 3


class ReflectionPad1d(_PadNd):
    """Pads the last dimension with its reflection about the edge.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> trt.nn.ReflectionPad1d(2)(trt.tensor([[1.0, 2.0, 3.0]]))
    tensor([[3., 2., 1., 2., 3., 2., 1.]])
    """

    _dims, _mode = 1, "reflect"


class ReflectionPad2d(_PadNd):
    """Pads the last two dimensions with their reflections about the edges.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> trt.nn.ReflectionPad2d((1, 0, 0, 1))(trt.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[2., 1., 2.],
             [4., 3., 4.],
             [2., 1., 2.]]])
    """

    _dims, _mode = 2, "reflect"


class ReflectionPad3d(_PadNd):
    """Pads the last three dimensions with their reflections about the edges.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> x = trt.arange(3.0).reshape(1, 3, 1, 1)
    >>> trt.nn.ReflectionPad3d((0, 0, 0, 0, 2, 1))(x).flatten()
    tensor([2., 1., 0., 1., 2., 1.])
    """

    _dims, _mode = 3, "reflect"


class ReplicationPad1d(_PadNd):
    """Pads the last dimension with its edge values.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> trt.nn.ReplicationPad1d((2, 1))(trt.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 1., 2., 3., 3.]])
    """

    _dims, _mode = 1, "replicate"


class ReplicationPad2d(_PadNd):
    """Pads the last two dimensions with their edge values.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> trt.nn.ReplicationPad2d((1, 0, 0, 1))(trt.tensor([[[1.0, 2.0], [3.0, 4.0]]]))
    tensor([[[1., 1., 2.],
             [3., 3., 4.],
             [3., 3., 4.]]])
    """

    _dims, _mode = 2, "replicate"


class ReplicationPad3d(_PadNd):
    """Pads the last three dimensions with their edge values.

    Parameters:
        padding (int or tuple of ints): how much is added before and behind, in pairs, the last dimension first;
            negative numbers cut

    >>> import tensorrt_lite as trt
    >>> x = trt.arange(3.0).reshape(1, 3, 1, 1)
    >>> trt.nn.ReplicationPad3d((0, 0, 0, 0, 2, 1))(x).flatten()
    tensor([0., 0., 0., 1., 2., 2.])
    """

    _dims, _mode = 3, "replicate"


own_init(ConstantPad1d, ConstantPad2d, ConstantPad3d, CircularPad1d, CircularPad2d, CircularPad3d)
own_init(ReflectionPad1d, ReflectionPad2d, ReflectionPad3d, ReplicationPad1d, ReplicationPad2d, ReplicationPad3d)
