"""Trading channels for resolution, and back."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._typed import TensorModule


class PixelShuffle(TensorModule):
    """Moves channels into height and width: (*, C * r * r, H, W) to (*, C, H * r, W * r).

    Parameters:
        upscale_factor (int): the factor r of height and width

    >>> import tensorrt_lite as trt
    >>> x = trt.arange(4.0).reshape(4, 1, 1)
    >>> trt.nn.PixelShuffle(upscale_factor=2)(x)
    tensor([[[0., 1.],
             [2., 3.]]])
    >>> trt.nn.PixelShuffle(3)(trt.randn(1, 18, 4, 5)).shape
    torch.Size([1, 2, 12, 15])
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(TensorModule):
    """Moves height and width into channels: (*, C, H * r, W * r) to (*, C * r * r, H, W).

    Parameters:
        downscale_factor (int): the factor r of height and width

    >>> import tensorrt_lite as trt
    >>> x = trt.arange(4.0).reshape(1, 2, 2)
    >>> trt.nn.PixelUnshuffle(downscale_factor=2)(x).tolist()
    [[[0.0]], [[1.0]], [[2.0]], [[3.0]]]
    >>> trt.nn.PixelUnshuffle(3)(trt.randn(1, 2, 12, 15)).shape
    torch.Size([1, 18, 4, 5])
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Any) -> Any:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"
