"""Dropout layers: active in training mode only."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._typed import TensorModule


class _DropoutNd(TensorModule):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability p in training, and scales the rest by 1 / (1 - p). input, output: (*).

    Parameters:
        p (float, default 0.5): the probability that an element becomes zero
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> dropout = trt.nn.Dropout(p=0.75)
    >>> dropout(trt.ones(1000)).unique()
    tensor([0., 4.])
    >>> dropout.eval()(trt.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of input (N, C, L) or (C, L).

    Parameters:
        p (float, default 0.5): the probability that a channel becomes zero
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> y = trt.nn.Dropout1d(p=0.5)(trt.ones(100, 10, 4))
    >>> y.unique(), bool((y == y[..., :1]).all())
    (tensor([0., 2.]), True)
    """

    def forward(self, input: Any) -> Any:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of input (N, C, H, W).

    Parameters:
        p (float, default 0.5): the probability that a channel becomes zero
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> y = trt.nn.Dropout2d(p=0.5)(trt.ones(100, 10, 2, 2))
    >>> y.sum(dim=(2, 3)).unique()  # four pixels, all of them kept and doubled or none
    tensor([0., 8.])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of input (N, C, D, H, W) or (C, D, H, W).

    Parameters:
        p (float, default 0.5): the probability that a channel becomes zero
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> y = trt.nn.Dropout3d(p=0.5)(trt.ones(100, 10, 2, 2, 2))
    >>> y.sum(dim=(2, 3, 4)).unique()  # eight voxels
    tensor([ 0., 16.])
    """

    def forward(self, input: Any) -> Any:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean and variance of SELU networks.

    Parameters:
        p (float, default 0.5): the probability that an element becomes zero
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> dropout = trt.nn.AlphaDropout(p=0.5)
    >>> dropout(trt.zeros(1000)).unique()  # dropped and kept ones: the mean stays 0
    tensor([-0.7792,  0.7792])
    >>> dropout.eval()(trt.zeros(3))
    tensor([0., 0., 0.])
    """

    def forward(self, input: Any) -> Any:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels of input (N, C, *).

    Parameters:
        p (float, default 0.5): the probability that a channel is dropped
        inplace (bool, default False): whether the input is overwritten with the result

    >>> import tensorrt_lite as trt
    >>> y = trt.nn.FeatureAlphaDropout(p=0.5)(trt.ones(8, 3, 10))
    >>> y.shape, bool((y == y[..., :1]).all())
    (torch.Size([8, 3, 10]), True)
    """

    def forward(self, input: Any) -> Any:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
