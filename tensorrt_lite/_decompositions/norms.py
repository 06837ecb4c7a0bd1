"""Normalisations that the core computes in one pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tensorrt_lite import Tensor


def fused_rms_norm(input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: float | None) -> Any:
    """On the CPU as PyTorch composes it there; on CUDA PyTorch has the row."""
    if input.is_cuda:
        return NotImplemented
    x = input.float() if input.dtype.itemsize == 2 else input
    if eps is None:
        eps = 2.0**-52 if x.dtype.itemsize == 8 else 2.0**-23
    square = x.pow(2).mean(list(range(x.dim() - len(normalized_shape), x.dim())), True)
    scale = _ops.rsqrt(square.add_(eps))
    result = x * scale
    if weight is not None:
        result = result * weight
    return result.type_as(input), scale
