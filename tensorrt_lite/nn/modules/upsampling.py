"""Resizing of signals, images and volumes."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._typed import TensorModule


class Upsample(TensorModule):
    """Resizes the spatial dimensions of input (N, C, *) to `size` or by `scale_factor`.

    Parameters:
        size (int or tuple of ints, default None): the spatial size of the result
        scale_factor (number or tuple of numbers, default None): the factor of the spatial size, instead of size
        mode (str, default 'nearest'): 'nearest', 'linear', 'bilinear', 'bicubic' or 'trilinear'
        align_corners (bool or None, default None): whether the centres of the corner pixels stay in place, not the
            outer edges
        recompute_scale_factor (bool or None, default None): whether the factor is computed again from the rounded size

    >>> import tensorrt_lite as trt
    >>> x = trt.tensor([[[1.0, 3.0]]])
    >>> trt.nn.Upsample(scale_factor=2)(x)
    tensor([[[1., 1., 3., 3.]]])
    >>> trt.nn.Upsample(size=5, mode="linear", align_corners=True)(x)
    tensor([[[1.0000, 1.5000, 2.0000, 2.5000, 3.0000]]])
    """

    __constants__ = ["size", "scale_factor", "mode", "align_corners", "name", "recompute_scale_factor"]

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        if isinstance(scale_factor, tuple):
            self.scale_factor: Any = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Any) -> Any:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        how = f"scale_factor={self.scale_factor!r}" if self.scale_factor is not None else f"size={self.size!r}"
        return f"{how}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Upsample of images, mode nearest.

    Parameters:
        size (int or tuple of ints, default None): the spatial size of the result
        scale_factor (number or tuple of numbers, default None): the factor of the spatial size, instead of size

    >>> import tensorrt_lite as trt
    >>> trt.nn.UpsamplingNearest2d(scale_factor=2)(trt.tensor([[[[1.0, 2.0]]]]))
    tensor([[[[1., 1., 2., 2.],
              [1., 1., 2., 2.]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Upsample of images, mode bilinear with aligned corners.

    Parameters:
        size (int or tuple of ints, default None): the spatial size of the result
        scale_factor (number or tuple of numbers, default None): the factor of the spatial size, instead of size

    >>> import tensorrt_lite as trt
    >>> trt.nn.UpsamplingBilinear2d(size=(2, 3))(trt.tensor([[[[1.0, 2.0], [3.0, 4.0]]]]))
    tensor([[[[1.0000, 1.5000, 2.0000],
              [3.0000, 3.5000, 4.0000]]]])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
