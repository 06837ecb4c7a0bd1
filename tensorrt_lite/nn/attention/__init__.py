"""Which implementation scaled_dot_product_attention uses: PyTorch's `torch.nn.attention` over the flags of `backends.cuda`."""

from __future__ import annotations

import enum
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tensorrt_lite.backends import cuda as _cuda

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """Implementations by PyTorch's names and numbers. FLASH_ATTENTION, EFFICIENT_ATTENTION and CUDNN_ATTENTION all mean the one tiled kernel here,
    MATH the composition of products and softmax."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict[str, object]]:
    """Allow only these implementations inside a ``with`` block, on the CPU as on CUDA.

    set_priority is accepted: the tiled kernel comes first where it is allowed and takes the operands. TypeError for anything but SDPBackends.
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(chosen, list) or not all(isinstance(b, SDPBackend) for b in chosen):
        raise TypeError(f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}")
    with _cuda.sdp_kernel(
        SDPBackend.FLASH_ATTENTION in chosen,
        SDPBackend.MATH in chosen,
        SDPBackend.EFFICIENT_ATTENTION in chosen,
        SDPBackend.CUDNN_ATTENTION in chosen,
    ):
        yield {}
