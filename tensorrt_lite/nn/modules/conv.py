"""Convolutions and transposed convolutions in one, two and three dimensions."""

from __future__ import annotations

import math
from typing import Any

from tensorrt_lite import _root as trt

from .. import functional as F
from .. import init
from ..parameter import Parameter
from ._own_init import own_init
from ._typed import TensorModule
from .utils import _reverse_repeat_tuple, ntuple

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(TensorModule):
    """What all convolutions share: arguments, weight (out, in / groups, *kernel) or transposed, bias, printing."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]
    weight: Parameter
    bias: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: Any,
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}")
            if padding == "same" and any(step != 1 for step in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        # What functional.pad needs for a padding mode other than zeros: (left, right) per dimension, last first.
        if isinstance(padding, str):
            pads: list[int] = [0, 0] * len(kernel_size)
            if padding == "same":
                for d, k, i in zip(dilation, kernel_size, range(len(kernel_size) - 1, -1, -1), strict=True):
                    total = d * (k - 1)
                    pads[2 * i] = total // 2
                    pads[2 * i + 1] = total - total // 2
            self._reversed_padding_repeated_twice = pads
        else:
            self._reversed_padding_repeated_twice = _reverse_repeat_tuple(padding, 2)  # type: ignore[assignment]
        shape = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(trt.empty((*shape, *kernel_size), device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(trt.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws weight and bias from U(-1 / sqrt(fan_in), 1 / sqrt(fan_in))."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def _padded(self, input: Any) -> tuple[Any, Any]:
        """The input padded in the padding mode, and the padding left for the convolution."""
        if self.padding_mode == "zeros":
            return input, self.padding
        padded = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
        return padded, (0,) * len(self.kernel_size)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if self.padding != (0,) * len(self.padding):
            text += f", padding={self.padding}"
        if self.dilation != (1,) * len(self.dilation):
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * len(self.output_padding):
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


class _Conv(_ConvNd):
    """A convolution of `_dims` spatial dimensions."""

    _dims = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self._dims
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, n),
            ntuple(stride, n),
            padding if isinstance(padding, str) else ntuple(padding, n),
            ntuple(dilation, n),
            False,
            (0,) * n,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv1d(_Conv):
    """Slides filters over the input: a convolution, or more exactly a cross-correlation.

    input: (N, C_in, L) or (C_in, L), output: (N, C_out, L'), weight: (C_out, C_in / groups, k), bias: (C_out).
    L' = ((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1, rounded down.

    Parameters:
        in_channels (int): the number of channels of the input
        out_channels (int): the number of channels of the result
        kernel_size (int or tuple of ints): the size of the filters
        stride (int or tuple of ints, default 1): how far the filter moves each time
        padding (int, tuple of ints or str, default 0): how much is added at both ends of each spatial dimension;
            'valid' for none, or 'same' for a result of the input's size
        dilation (int or tuple of ints, default 1): the distance between the elements of a filter
        groups (int, default 1): how many groups the channels are split into; divides both numbers of channels
        bias (bool, default True): whether there is a bias, which is learned
        padding_mode (str, default 'zeros'): what is added: 'zeros', 'reflect', 'replicate' or 'circular'
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> trt.nn.Conv1d(4, 8, kernel_size=3, padding=1)(trt.randn(2, 4, 20)).shape
    torch.Size([2, 8, 20])
    >>> trt.nn.Conv1d(4, 8, kernel_size=5, stride=2)(trt.randn(4, 20)).shape  # one sample
    torch.Size([8, 8])
    """

    _dims = 1

    def forward(self, input: Any) -> Any:
        input, padding = self._padded(input)
        return F.conv1d(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """Slides filters over the input: a convolution, or more exactly a cross-correlation.

    input: (N, C_in, H, W) or (C_in, H, W), output: (N, C_out, H', W'), weight: (C_out, C_in / groups, kH, kW), bias: (C_out).
    H' = ((H + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1, rounded down.

    Parameters:
        in_channels (int): the number of channels of the input
        out_channels (int): the number of channels of the result
        kernel_size (int or tuple of ints): the size of the filters
        stride (int or tuple of ints, default 1): how far the filter moves each time
        padding (int, tuple of ints or str, default 0): how much is added at both ends of each spatial dimension;
            'valid' for none, or 'same' for a result of the input's size
        dilation (int or tuple of ints, default 1): the distance between the elements of a filter
        groups (int, default 1): how many groups the channels are split into; divides both numbers of channels
        bias (bool, default True): whether there is a bias, which is learned
        padding_mode (str, default 'zeros'): what is added: 'zeros', 'reflect', 'replicate' or 'circular'
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> conv = trt.nn.Conv2d(3, 6, kernel_size=3, stride=2, padding=1)
    >>> conv(trt.randn(1, 3, 32, 32)).shape
    torch.Size([1, 6, 16, 16])
    >>> depthwise = trt.nn.Conv2d(6, 6, kernel_size=(3, 5), padding="same", groups=6)
    >>> depthwise(trt.randn(1, 6, 16, 16)).shape, depthwise.weight.shape
    (torch.Size([1, 6, 16, 16]), torch.Size([6, 1, 3, 5]))
    """

    _dims = 2

    def forward(self, input: Any) -> Any:
        input, padding = self._padded(input)
        return F.conv2d(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv3d(_Conv):
    """Slides filters over the input: a convolution, or more exactly a cross-correlation.

    input: (N, C_in, D, H, W) or (C_in, D, H, W), output: (N, C_out, D', H', W'), weight: (C_out, C_in / groups, kD, kH, kW), bias: (C_out).
    D' = ((D + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1, rounded down.

    Parameters:
        in_channels (int): the number of channels of the input
        out_channels (int): the number of channels of the result
        kernel_size (int or tuple of ints): the size of the filters
        stride (int or tuple of ints, default 1): how far the filter moves each time
        padding (int, tuple of ints or str, default 0): how much is added at both ends of each spatial dimension;
            'valid' for none, or 'same' for a result of the input's size
        dilation (int or tuple of ints, default 1): the distance between the elements of a filter
        groups (int, default 1): how many groups the channels are split into; divides both numbers of channels
        bias (bool, default True): whether there is a bias, which is learned
        padding_mode (str, default 'zeros'): what is added: 'zeros', 'reflect', 'replicate' or 'circular'
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> conv = trt.nn.Conv3d(1, 4, kernel_size=(1, 3, 3), padding=(0, 1, 1))  # each frame by itself
    >>> conv(trt.randn(2, 1, 5, 8, 8)).shape
    torch.Size([2, 4, 5, 8, 8])
    """

    _dims = 3

    def forward(self, input: Any) -> Any:
        input, padding = self._padded(input)
        return F.conv3d(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution of `_dims` spatial dimensions; weight (C_in, C_out / groups, *kernel)."""

    _dims = 0

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        n = self._dims
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, n),
            ntuple(stride, n),
            ntuple(padding, n),
            ntuple(dilation, n),
            True,
            ntuple(output_padding, n),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Any,
        output_size: Any,
        stride: Any,
        padding: Any,
        kernel_size: Any,
        num_spatial_dims: int,
        dilation: Any = None,
    ) -> Any:
        """The output padding that yields `output_size`; ValueError when no output padding can.

        The signature is PyTorch's: packages call this as a function, with an object of their own that has `output_padding` as `self`.
        """
        if output_size is None:
            return ntuple(self.output_padding, num_spatial_dims)
        n = num_spatial_dims
        before = 2 if input.dim() == n + 2 else 1
        if len(output_size) == before + n:
            output_size = output_size[before:]
        if len(output_size) != n:
            raise ValueError(f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {before + n} elements (got {len(output_size)})")
        low, high = [], []
        for d in range(n):
            reach = (1 if dilation is None else dilation[d]) * (kernel_size[d] - 1)
            size = (input.size(d + before) - 1) * stride[d] - 2 * padding[d] + reach + 1
            low.append(size)
            high.append(size + stride[d] - 1)
        if any(not lo <= size <= hi for size, lo, hi in zip(output_size, low, high, strict=True)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {low} to {high} (for an input of {input.size()[2:]})"
            )
        return [size - lo for size, lo in zip(output_size, low, strict=True)]

    def _extra(self, input: Any, output_size: Any) -> Any:
        if output_size is None:
            return self.output_padding
        return self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, self._dims, self.dilation)


class ConvTranspose1d(_ConvTransposeNd):
    """Goes from the result of a convolution back to its input's shape: the gradient of a Conv1d, used to enlarge.

    input: (N, C_in, L) or (C_in, L), output: (N, C_out, L'), weight: (C_in, C_out / groups, k), bias: (C_out).
    L' = (L - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.

    Parameters:
        in_channels (int): the number of channels of the input
        out_channels (int): the number of channels of the result
        kernel_size (int or tuple of ints): the size of the filters
        stride (int or tuple of ints, default 1): how far the filter moves each time
        padding (int or tuple of ints, default 0): how much is cut from both ends of each spatial dimension of the
            result, less dilation (kernel_size - 1)
        output_padding (int or tuple of ints, default 0): what is added to the size of the result at one end of each
            dimension
        groups (int, default 1): how many groups the channels are split into; divides both numbers of channels
        bias (bool, default True): whether there is a bias, which is learned
        dilation (int or tuple of ints, default 1): the distance between the elements of a filter
        padding_mode (str, default 'zeros'): what is added: 'zeros', 'reflect', 'replicate' or 'circular'
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> up = trt.nn.ConvTranspose1d(4, 2, kernel_size=4, stride=2, padding=1)  # twice the length
    >>> up(trt.randn(1, 4, 10)).shape, up.weight.shape
    (torch.Size([1, 2, 20]), torch.Size([4, 2, 4]))
    """

    _dims = 1

    def forward(self, input: Any, output_size: Any = None) -> Any:
        extra = self._extra(input, output_size)
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose2d(_ConvTransposeNd):
    """Goes from the result of a convolution back to its input's shape: the gradient of a Conv2d, used to enlarge.

    input: (N, C_in, H, W) or (C_in, H, W), output: (N, C_out, H', W'), weight: (C_in, C_out / groups, kH, kW), bias: (C_out).
    H' = (H - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.

    Parameters:
        in_channels (int): the number of channels of the input
        out_channels (int): the number of channels of the result
        kernel_size (int or tuple of ints): the size of the filters
        stride (int or tuple of ints, default 1): how far the filter moves each time
        padding (int or tuple of ints, default 0): how much is cut from both ends of each spatial dimension of the
            result, less dilation (kernel_size - 1)
        output_padding (int or tuple of ints, default 0): what is added to the size of the result at one end of each
            dimension
        groups (int, default 1): how many groups the channels are split into; divides both numbers of channels
        bias (bool, default True): whether there is a bias, which is learned
        dilation (int or tuple of ints, default 1): the distance between the elements of a filter
        padding_mode (str, default 'zeros'): what is added: 'zeros', 'reflect', 'replicate' or 'circular'
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> x = trt.randn(1, 3, 12, 12)
    >>> down = trt.nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1)
    >>> up = trt.nn.ConvTranspose2d(8, 3, kernel_size=3, stride=2, padding=1)
    >>> up(down(x)).shape, up(down(x), output_size=x.shape).shape
    (torch.Size([1, 3, 11, 11]), torch.Size([1, 3, 12, 12]))
    """

    _dims = 2

    def forward(self, input: Any, output_size: Any = None) -> Any:
        extra = self._extra(input, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


class ConvTranspose3d(_ConvTransposeNd):
    """Goes from the result of a convolution back to its input's shape: the gradient of a Conv3d, used to enlarge.

    input: (N, C_in, D, H, W) or (C_in, D, H, W), output: (N, C_out, D', H', W'), weight: (C_in, C_out / groups, kD, kH, kW), bias: (C_out).
    D' = (D - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.

    Parameters:
        in_channels (int): the number of channels of the input
        out_channels (int): the number of channels of the result
        kernel_size (int or tuple of ints): the size of the filters
        stride (int or tuple of ints, default 1): how far the filter moves each time
        padding (int or tuple of ints, default 0): how much is cut from both ends of each spatial dimension of the
            result, less dilation (kernel_size - 1)
        output_padding (int or tuple of ints, default 0): what is added to the size of the result at one end of each
            dimension
        groups (int, default 1): how many groups the channels are split into; divides both numbers of channels
        bias (bool, default True): whether there is a bias, which is learned
        dilation (int or tuple of ints, default 1): the distance between the elements of a filter
        padding_mode (str, default 'zeros'): what is added: 'zeros', 'reflect', 'replicate' or 'circular'
        device (device or None, default None): where the parameters are; None is the default device
        dtype (dtype or None, default None): the type of the parameters; None is the default

    >>> import tensorrt_lite as trt
    >>> up = trt.nn.ConvTranspose3d(4, 2, kernel_size=2, stride=2)
    >>> up(trt.randn(1, 4, 3, 5, 5)).shape
    torch.Size([1, 2, 6, 10, 10])
    """

    _dims = 3

    def forward(self, input: Any, output_size: Any = None) -> Any:
        extra = self._extra(input, output_size)
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )


own_init(Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)
