"""Pooling layers: the arguments of the functions of the same names, kept."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._own_init import own_init
from ._typed import TensorModule
from .module import Module
from .utils import ntuple


class _MaxPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"]

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Takes the maximum of each window, with its position if return_indices.

    input: (N, C, L) or (C, L), output: (N, C, L').
    L' = ((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1, rounded down, or up with ceil_mode.

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        padding (int or tuple of ints, default 0): how much is added at both ends, at most half of the window; it is
            never the maximum
        dilation (int or tuple of ints, default 1): the distance between the elements of a window
        return_indices (bool, default False): whether the positions of the maxima are returned, too
        ceil_mode (bool, default False): whether sizes are rounded up, so that the last window may go over the edge

    >>> import tensorrt_lite as trt
    >>> pool = trt.nn.MaxPool1d(kernel_size=2, return_indices=True)
    >>> pool(trt.tensor([[1.0, 3.0, 5.0, 4.0]]))
    (tensor([[3., 5.]]), tensor([[1, 2]]))
    """

    def forward(self, input: Any) -> Any:
        return F.max_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool2d(_MaxPoolNd):
    """Takes the maximum of each window, with its position if return_indices.

    input: (N, C, H, W) or (C, H, W), output: (N, C, H', W').
    H' = ((H + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1, rounded down, or up with ceil_mode.

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        padding (int or tuple of ints, default 0): how much is added at both ends, at most half of the window; it is
            never the maximum
        dilation (int or tuple of ints, default 1): the distance between the elements of a window
        return_indices (bool, default False): whether the positions of the maxima are returned, too
        ceil_mode (bool, default False): whether sizes are rounded up, so that the last window may go over the edge

    >>> import tensorrt_lite as trt
    >>> trt.nn.MaxPool2d(2)(trt.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 5.,  7.],
             [13., 15.]]])
    >>> trt.nn.MaxPool2d(kernel_size=3, stride=2, padding=1)(trt.randn(1, 8, 32, 32)).shape
    torch.Size([1, 8, 16, 16])
    """

    def forward(self, input: Any) -> Any:
        return F.max_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class MaxPool3d(_MaxPoolNd):
    """Takes the maximum of each window, with its position if return_indices.

    input: (N, C, D, H, W) or (C, D, H, W), output: (N, C, D', H', W').
    D' = ((D + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1, rounded down, or up with ceil_mode.

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        padding (int or tuple of ints, default 0): how much is added at both ends, at most half of the window; it is
            never the maximum
        dilation (int or tuple of ints, default 1): the distance between the elements of a window
        return_indices (bool, default False): whether the positions of the maxima are returned, too
        ceil_mode (bool, default False): whether sizes are rounded up, so that the last window may go over the edge

    >>> import tensorrt_lite as trt
    >>> x = trt.randn(1, 2, 5, 8, 8)
    >>> trt.nn.MaxPool3d(2)(x).shape, trt.nn.MaxPool3d(2, ceil_mode=True)(x).shape
    (torch.Size([1, 2, 2, 4, 4]), torch.Size([1, 2, 3, 4, 4]))
    """

    def forward(self, input: Any) -> Any:
        return F.max_pool3d(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )


class _MaxUnpoolNd(TensorModule):
    _dims = 0

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, self._dims)
        self.stride = ntuple(stride if stride is not None else kernel_size, self._dims)
        self.padding = ntuple(padding, self._dims)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Undoes MaxPool1d: writes each value to the position that the pooling returned, and zeros elsewhere.

    input and indices: (N, C, L) or (C, L), output: (N, C, L').

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        padding (int or tuple of ints, default 0): how much is added at both ends of each spatial dimension

    >>> import tensorrt_lite as trt
    >>> pool = trt.nn.MaxPool1d(2, return_indices=True)
    >>> values, indices = pool(trt.tensor([[1.0, 3.0, 5.0, 4.0]]))
    >>> trt.nn.MaxUnpool1d(2)(values, indices)
    tensor([[0., 3., 5., 0.]])
    """

    _dims = 1

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpoolNd):
    """Undoes MaxPool2d: writes each value to the position that the pooling returned, and zeros elsewhere.

    input and indices: (N, C, H, W) or (C, H, W), output: (N, C, H', W').

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        padding (int or tuple of ints, default 0): how much is added at both ends of each spatial dimension

    >>> import tensorrt_lite as trt
    >>> x = trt.randn(1, 3, 7, 7)
    >>> values, indices = trt.nn.MaxPool2d(2, return_indices=True)(x)
    >>> trt.nn.MaxUnpool2d(2)(values, indices, output_size=x.shape).shape  # 6 x 6 without output_size
    torch.Size([1, 3, 7, 7])
    """

    _dims = 2

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpoolNd):
    """Undoes MaxPool3d: writes each value to the position that the pooling returned, and zeros elsewhere.

    input and indices: (N, C, D, H, W) or (C, D, H, W), output: (N, C, D', H', W').

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        padding (int or tuple of ints, default 0): how much is added at both ends of each spatial dimension

    >>> import tensorrt_lite as trt
    >>> values, indices = trt.nn.MaxPool3d(2, return_indices=True)(trt.ones(1, 1, 4, 4, 4))
    >>> unpooled = trt.nn.MaxUnpool3d(2)(values, indices)
    >>> unpooled.shape, unpooled.sum().item()  # one element of each window
    (torch.Size([1, 1, 4, 4, 4]), 8.0)
    """

    _dims = 3

    def forward(self, input: Any, indices: Any, output_size: Any = None) -> Any:
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _AvgPoolNd(TensorModule):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Averages each window.

    input: (N, C, L) or (C, L), output: (N, C, L').
    L' = ((L + 2 padding - kernel_size) / stride) + 1, rounded down, or up with ceil_mode.

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        padding (int or tuple of ints, default 0): how much is added at both ends of each spatial dimension
        ceil_mode (bool, default False): whether sizes are rounded up, so that the last window may go over the edge
        count_include_pad (bool, default True): whether added zeros count in the mean

    >>> import tensorrt_lite as trt
    >>> trt.nn.AvgPool1d(kernel_size=2, stride=1)(trt.tensor([[1.0, 3.0, 5.0, 4.0]]))
    tensor([[2.0000, 4.0000, 4.5000]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, 1)
        self.stride = ntuple(stride if stride is not None else kernel_size, 1)
        self.padding = ntuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Any) -> Any:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPoolWithDivisor(_AvgPoolNd):
    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override


class AvgPool2d(_AvgPoolWithDivisor):
    """Averages each window.

    input: (N, C, H, W) or (C, H, W), output: (N, C, H', W').
    H' = ((H + 2 padding - kernel_size) / stride) + 1, rounded down, or up with ceil_mode.

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        padding (int or tuple of ints, default 0): how much is added at both ends of each spatial dimension
        ceil_mode (bool, default False): whether sizes are rounded up, so that the last window may go over the edge
        count_include_pad (bool, default True): whether added zeros count in the mean
        divisor_override (int or None, default None): the divisor of each mean; None is the size of the window

    >>> import tensorrt_lite as trt
    >>> trt.nn.AvgPool2d(2)(trt.arange(16.0).reshape(1, 4, 4))
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    >>> trt.nn.AvgPool2d(3, padding=1, count_include_pad=False)(trt.ones(1, 3, 3))
    tensor([[[1.]]])
    """

    def forward(self, input: Any) -> Any:
        return F.avg_pool2d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool3d(_AvgPoolWithDivisor):
    """Averages each window.

    input: (N, C, D, H, W) or (C, D, H, W), output: (N, C, D', H', W').
    D' = ((D + 2 padding - kernel_size) / stride) + 1, rounded down, or up with ceil_mode.

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        padding (int or tuple of ints, default 0): how much is added at both ends of each spatial dimension
        ceil_mode (bool, default False): whether sizes are rounded up, so that the last window may go over the edge
        count_include_pad (bool, default True): whether added zeros count in the mean
        divisor_override (int or None, default None): the divisor of each mean; None is the size of the window

    >>> import tensorrt_lite as trt
    >>> trt.nn.AvgPool3d((1, 2, 2))(trt.randn(2, 3, 5, 8, 8)).shape
    torch.Size([2, 3, 5, 4, 4])
    """

    def forward(self, input: Any) -> Any:
        return F.avg_pool3d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class _FractionalMaxPoolNd(Module):
    _dims = 0

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Any = None,
    ) -> None:
        super().__init__()
        n = self._dims
        name = type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if output_ratio is not None:
            output_ratio = ntuple(output_ratio, n)
            if not all(0 < ratio < 1 for ratio in output_ratio):
                raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")
        self.kernel_size = ntuple(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = ntuple(output_size, n) if output_size is not None else None
        self.output_ratio = output_ratio


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Takes the maximum of windows at random steps (Graham 2014), so that sizes shrink by fractions.

    input: (N, C, H, W) or (C, H, W), output: (N, C, *output_size).

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        output_size (int or tuple of ints, default None): the spatial size of the result; None in a tuple keeps the
            input's
        output_ratio (float or tuple of floats, default None): the size of the result as a part of the input's, instead
            of output_size
        return_indices (bool, default False): whether the positions of the maxima are returned, too
        _random_samples (Tensor or None, default None): random numbers in [0, 1), which place the windows; None draws
            them

    >>> import tensorrt_lite as trt
    >>> trt.nn.FractionalMaxPool2d(kernel_size=2, output_size=(9, 7))(trt.randn(1, 3, 16, 12)).shape
    torch.Size([1, 3, 9, 7])
    >>> trt.nn.FractionalMaxPool2d(kernel_size=2, output_ratio=0.75)(trt.randn(1, 3, 16, 12)).shape
    torch.Size([1, 3, 12, 9])
    """

    _dims = 2

    def forward(self, input: Any) -> Any:
        return F.fractional_max_pool2d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Takes the maximum of windows at random steps (Graham 2014), so that sizes shrink by fractions.

    input: (N, C, D, H, W) or (C, D, H, W), output: (N, C, *output_size).

    Parameters:
        kernel_size (int or tuple of ints): the size of the window
        output_size (int or tuple of ints, default None): the spatial size of the result; None in a tuple keeps the
            input's
        output_ratio (float or tuple of floats, default None): the size of the result as a part of the input's, instead
            of output_size
        return_indices (bool, default False): whether the positions of the maxima are returned, too
        _random_samples (Tensor or None, default None): random numbers in [0, 1), which place the windows; None draws
            them

    >>> import tensorrt_lite as trt
    >>> pool = trt.nn.FractionalMaxPool3d(kernel_size=2, output_size=4, return_indices=True)
    >>> values, indices = pool(trt.randn(1, 2, 6, 7, 8))
    >>> values.shape == indices.shape, values.shape
    (True, torch.Size([1, 2, 4, 4, 4]))
    """

    _dims = 3

    def forward(self, input: Any) -> Any:
        return F.fractional_max_pool3d(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class _LPPoolNd(TensorModule):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """Takes the p-norm of each window.

    input: (N, C, L) or (C, L), output: (N, C, L'). L' = ((L - kernel_size) / stride) + 1, rounded down, or up with ceil_mode.

    Parameters:
        norm_type (float): the exponent p of the norm
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        ceil_mode (bool, default False): whether sizes are rounded up, so that the last window may go over the edge

    >>> import tensorrt_lite as trt
    >>> trt.nn.LPPool1d(norm_type=2, kernel_size=2)(trt.tensor([[3.0, 4.0, 1.0, 1.0]]))
    tensor([[5.0000, 1.4142]])
    """

    def forward(self, input: Any) -> Any:
        return F.lp_pool1d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """Takes the p-norm of each window.

    input: (N, C, H, W) or (C, H, W), output: (N, C, H', W'). H' = ((H - kernel_size) / stride) + 1, rounded down, or up with ceil_mode.

    Parameters:
        norm_type (float): the exponent p of the norm
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        ceil_mode (bool, default False): whether sizes are rounded up, so that the last window may go over the edge

    >>> import tensorrt_lite as trt
    >>> trt.nn.LPPool2d(norm_type=1, kernel_size=2)(trt.arange(16.0).reshape(1, 4, 4) / 4)  # sums
    tensor([[[ 2.5000,  4.5000],
             [10.5000, 12.5000]]])
    """

    def forward(self, input: Any) -> Any:
        return F.lp_pool2d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """Takes the p-norm of each window.

    input: (N, C, D, H, W) or (C, D, H, W), output: (N, C, D', H', W'). D' = ((D - kernel_size) / stride) + 1, rounded down, or up with ceil_mode.

    Parameters:
        norm_type (float): the exponent p of the norm
        kernel_size (int or tuple of ints): the size of the window
        stride (int or tuple of ints, default None): how far the window moves each time; None is kernel_size
        ceil_mode (bool, default False): whether sizes are rounded up, so that the last window may go over the edge

    >>> import tensorrt_lite as trt
    >>> trt.nn.LPPool3d(norm_type=2, kernel_size=2, stride=1)(trt.randn(1, 2, 4, 5, 6)).shape
    torch.Size([1, 2, 3, 4, 5])
    """

    def forward(self, input: Any) -> Any:
        return F.lp_pool3d(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Takes the maximum of windows whose size and place follow from the size of the result.

    input: (N, C, L) or (C, L), output: (N, C, output_size).

    Parameters:
        output_size (int or tuple of ints): the spatial size of the result; None in a tuple keeps the input's
        return_indices (bool, default False): whether the positions of the maxima are returned, too

    >>> import tensorrt_lite as trt
    >>> trt.nn.AdaptiveMaxPool1d(2)(trt.tensor([[1.0, 3.0, 5.0, 4.0, 2.0]]))
    tensor([[5., 5.]])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Takes the maximum of windows whose size and place follow from the size of the result.

    input: (N, C, H, W) or (C, H, W), output: (N, C, *output_size).

    Parameters:
        output_size (int or tuple of ints): the spatial size of the result; None in a tuple keeps the input's
        return_indices (bool, default False): whether the positions of the maxima are returned, too

    >>> import tensorrt_lite as trt
    >>> values, indices = trt.nn.AdaptiveMaxPool2d(1, return_indices=True)(trt.arange(12.0).reshape(1, 3, 4))
    >>> values.item(), indices.item()
    (11.0, 11)
    >>> trt.nn.AdaptiveMaxPool2d((None, 2))(trt.randn(1, 8, 5, 7)).shape
    torch.Size([1, 8, 5, 2])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Takes the maximum of windows whose size and place follow from the size of the result.

    input: (N, C, D, H, W) or (C, D, H, W), output: (N, C, *output_size).

    Parameters:
        output_size (int or tuple of ints): the spatial size of the result; None in a tuple keeps the input's
        return_indices (bool, default False): whether the positions of the maxima are returned, too

    >>> import tensorrt_lite as trt
    >>> trt.nn.AdaptiveMaxPool3d((2, 3, 4))(trt.randn(1, 2, 5, 8, 9)).shape
    torch.Size([1, 2, 2, 3, 4])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(TensorModule):
    __constants__ = ["output_size"]

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Averages windows whose size and place follow from the size of the result.

    input: (N, C, L) or (C, L), output: (N, C, output_size).

    Parameters:
        output_size (int or tuple of ints): the spatial size of the result; None in a tuple keeps the input's

    >>> import tensorrt_lite as trt
    >>> trt.nn.AdaptiveAvgPool1d(2)(trt.tensor([[1.0, 3.0, 5.0, 4.0]]))
    tensor([[2.0000, 4.5000]])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Averages windows whose size and place follow from the size of the result.

    input: (N, C, H, W) or (C, H, W), output: (N, C, *output_size).

    Parameters:
        output_size (int or tuple of ints): the spatial size of the result; None in a tuple keeps the input's

    >>> import tensorrt_lite as trt
    >>> pool = trt.nn.AdaptiveAvgPool2d(1)  # global pooling, for images of any size
    >>> pool(trt.randn(2, 8, 7, 7)).shape, pool(trt.randn(2, 8, 10, 13)).shape
    (torch.Size([2, 8, 1, 1]), torch.Size([2, 8, 1, 1]))
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Averages windows whose size and place follow from the size of the result.

    input: (N, C, D, H, W) or (C, D, H, W), output: (N, C, *output_size).

    Parameters:
        output_size (int or tuple of ints): the spatial size of the result; None in a tuple keeps the input's

    >>> import tensorrt_lite as trt
    >>> trt.nn.AdaptiveAvgPool3d((1, None, 2))(trt.randn(2, 3, 4, 5, 6)).shape
    torch.Size([2, 3, 1, 5, 2])
    """

    def forward(self, input: Any) -> Any:
        return F.adaptive_avg_pool3d(input, self.output_size)


own_init(AvgPool2d, AvgPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d, FractionalMaxPool2d, FractionalMaxPool3d)
