"""Sliding blocks of images as columns, and back."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._typed import TensorModule


class Unfold(TensorModule):
    """Sliding blocks as columns: input (N, C, H, W), output (N, C * kH * kW, L).

    Parameters:
        kernel_size (int or tuple of ints): the size of each block
        dilation (int or tuple of ints, default 1): the distance between the elements of a block
        padding (int or tuple of ints, default 0): how much is added at both ends of each spatial dimension
        stride (int or tuple of ints, default 1): the distance between blocks

    >>> import tensorrt_lite as trt
    >>> x = trt.arange(9.0).reshape(1, 1, 3, 3)
    >>> trt.nn.Unfold(kernel_size=2)(x)
    tensor([[[0., 1., 3., 4.],
             [1., 2., 4., 5.],
             [3., 4., 6., 7.],
             [4., 5., 7., 8.]]])
    """

    __constants__ = ["kernel_size", "dilation", "padding", "stride"]

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(TensorModule):
    """Sums columns back into images: input (N, C * kH * kW, L), output (N, C, *output_size).

    Parameters:
        output_size (int or tuple of ints): the spatial size of the result, (H, W)
        kernel_size (int or tuple of ints): the size of each block
        dilation (int or tuple of ints, default 1): the distance between the elements of a block
        padding (int or tuple of ints, default 0): how much is added at both ends of each spatial dimension
        stride (int or tuple of ints, default 1): the distance between blocks

    >>> import tensorrt_lite as trt
    >>> fold = trt.nn.Fold(output_size=(3, 3), kernel_size=2)
    >>> fold(trt.ones(1, 4, 4))  # how many of the four blocks cover each pixel
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])
    """

    __constants__ = ["output_size", "kernel_size", "dilation", "padding", "stride"]

    def __init__(
        self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Any) -> Any:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, "
            f"padding={self.padding}, stride={self.stride}"
        )
