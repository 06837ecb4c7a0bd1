"""Interleaving groups of channels."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from ._typed import TensorModule


class ChannelShuffle(TensorModule):
    """Interleaves groups of channels: input (N, C, *).

    Parameters:
        groups (int): how many groups the channels are split into

    >>> import tensorrt_lite as trt
    >>> x = trt.arange(6.0).reshape(1, 6, 1)
    >>> trt.nn.ChannelShuffle(groups=2)(x).flatten()
    tensor([0., 3., 1., 4., 2., 5.])
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Any) -> Any:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
