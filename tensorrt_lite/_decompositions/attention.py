"""Attention as PyTorch chooses it on the CPU: its flash kernel, or products and a softmax."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core.dtype import _dtype_by_name

if TYPE_CHECKING:
    from tensorrt_lite import Tensor


def attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, is_causal: bool, scale: float, dropout_p: float, seed: int, offset: int, state: int
) -> Any:
    """(output, logsumexp) without dropout; what a dropout of CUDA's kernel keeps follows from its seed, so the row itself runs."""
    if dropout_p > 0:
        return NotImplemented
    return _ops._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Tensor:
    """softmax(query key^T scale + mask) value."""
    if attn_mask is not None and not (attn_mask.is_floating_point() or attn_mask.requires_grad):
        zero = _ops.zeros((), dtype=query.dtype, device=query.device)
        attn_mask = _ops.where(attn_mask, zero, _ops.full((), float("-inf"), dtype=query.dtype, device=query.device))
    if _takes_flash(query, key, value, attn_mask, dropout_p, enable_gqa):
        return _ops._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal, attn_mask=attn_mask, scale=scale)[0]
    return _by_products(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)


def _takes_flash(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, enable_gqa: bool) -> bool:
    if dropout_p > 0 or not query.dim() == key.dim() == value.dim() == 4 or attn_mask is not None and (attn_mask.requires_grad or attn_mask.dtype is not query.dtype):
        return False
    if not query.shape[3] == key.shape[3] == value.shape[3] or query.shape[0] != key.shape[0] or key.shape[:3] != value.shape[:3]:
        return False
    if not query.numel() or not key.numel() or not enable_gqa and query.shape[1] != key.shape[1]:
        return False
    return all(x.stride(3) == 1 or x.shape[3] == 1 for x in (query, key, value))


def _by_products(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None, dropout_p: float, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Tensor:
    factor = 1.0 / (query.shape[-1] ** 0.5 or 1.0) if scale is None else scale
    root = abs(factor) ** 0.5
    query = query * (root if factor >= 0 else -root)
    if is_causal:
        seen = _ops.ones((query.shape[-2], key.shape[-2]), dtype=_dtype_by_name("bool"), device=query.device).tril()
        zero = _ops.zeros((), dtype=query.dtype, device=query.device)
        attn_mask = _ops.where(seen, zero, _ops.full((), float("-inf"), dtype=query.dtype, device=query.device))
    if enable_gqa:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    weights = _ops.matmul(query, key.transpose(-2, -1) * root)
    if attn_mask is not None:
        weights = weights + attn_mask
    weights = _ops._safe_softmax(weights, -1)
    if dropout_p > 0:
        weights = _ops.dropout(weights, dropout_p, True)
    return _ops.matmul(weights, value)
