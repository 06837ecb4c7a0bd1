"""Embedding lookups."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite import _ops

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def _row_index(padding_idx: int | None, weight: Any) -> int:
    """padding_idx counted from the front, -1 for none; ValueError when out of range."""
    if padding_idx is None:
        return -1
    rows = weight.size(0)
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + rows if padding_idx < 0 else padding_idx


def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of weight (V, D) named by integer input (*), as (*, D); row padding_idx gets no gradient."""
    padding = -1 if padding_idx is None else _row_index(padding_idx, weight)
    if max_norm is not None:
        _ops.embedding_renorm_(weight, input, max_norm, norm_type)
    return _ops.embedding(weight, input, padding, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Any,
    weight: Any,
    offsets: Any = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Sum, mean or maximum of bags of embeddings: input (B, N), or (N) with the bags' starts in offsets (B)."""
    if weight.dtype == trt.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                f"sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = trt.arange(input.size(0), device=input.device) * input.size(1)
        include_last_offset = False
        input = input.reshape(-1)
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            f"embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' "
            f"(got mode='{mode}'). Please open a feature request on GitHub."
        )

    padding = _row_index(padding_idx, weight)
    if max_norm is not None:
        _ops.embedding_renorm_(weight, input, max_norm, norm_type)
    number = {"sum": 0, "mean": 1, "max": 2}[mode]
    return _ops.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, number, sparse, per_sample_weights, include_last_offset, None if padding < 0 else padding
    )[0]
