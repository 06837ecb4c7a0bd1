"""Multi-head attention as a function of its weights."""

from __future__ import annotations

import math
import warnings
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import _ops


def _check_shapes(query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any, num_heads: int) -> bool:
    """True for batched inputs (L, N, E), False for (L, E); AssertionError when the ranks disagree."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    kind, rank = ("batched (3-D)", 3) if batched else ("unbatched (2-D)", 2)
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.dim() not in (2, 3):
        raise AssertionError(
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor "
            "instead"
        )
    if attn_mask is not None and not batched and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(attn_mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _float_mask(mask: Any, name: str, other: Any, other_name: str, dtype: Any, check_other: bool = True) -> Any:
    """A boolean mask (True: not attended) as an additive one; float masks pass. AssertionError for any other dtype."""
    if mask is None:
        return None
    is_float = mask.is_floating_point()
    if mask.dtype != trt.bool and not is_float:
        raise AssertionError(f"only bool and floating types of {name} are supported")
    if check_other and other is not None and mask.dtype != other.dtype:
        warnings.warn(
            f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.",
            stacklevel=3,
        )
    if is_float:
        return mask
    return trt.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask, float("-inf"))


def _project_packed(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
    """Query, key and value projected by one (3E, E) weight: in one product where the inputs are the same tensor."""
    width = query.size(-1)
    if key is value and query is key:
        return _ops.linear(query, weight, bias).chunk(3, -1)
    if key is value:
        wq, wkv = weight.split([width, width * 2])
        bq, bkv = (None, None) if bias is None else bias.split([width, width * 2])
        return (_ops.linear(query, wq, bq), *_ops.linear(key, wkv, bkv).chunk(2, -1))
    weights = weight.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return tuple(  # type: ignore[return-value]
        _ops.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )


def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Attention (Vaswani et al. 2017) of query (L, N, E) over key and value (S, N, E), or the same without N.

    Returns the output like query and, with need_weights, the weights (N, L, S), per head (N, H, L, S) when not
    averaged; else None.
    """
    batched = _check_shapes(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    if not batched:
        same_kv, same_q = key is value, query is key
        query = query.unsqueeze(1)
        key = query if same_q else key.unsqueeze(1)
        value = key if same_kv else value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    source = key.shape[0]
    key_padding_mask = _float_mask(key_padding_mask, "key_padding_mask", attn_mask, "attn_mask", query.dtype)
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = None
    else:
        attn_mask = _float_mask(attn_mask, "attn_mask", None, "", query.dtype, check_other=False)
        if key_padding_mask is not None:
            is_causal = False
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    head_dim = width // num_heads
    if head_dim * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")

    if use_separate_proj_weight:
        biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
        q = _ops.linear(query, q_proj_weight, biases[0])
        k = _ops.linear(key, k_proj_weight, biases[1])
        v = _ops.linear(value, v_proj_weight, biases[2])
    else:
        q, k, v = _project_packed(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        if attn_mask.dim() == 2:
            if tuple(attn_mask.shape) != (length, source):
                raise RuntimeError(
                    f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(length, source)}."
                )
            attn_mask = attn_mask.unsqueeze(0)
        elif tuple(attn_mask.shape) != (batch * num_heads, length, source):
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be "
                f"{(batch * num_heads, length, source)}."
            )

    def padded(mask: Any) -> Any:
        return None if mask is None else _ops.pad(mask, [0, 1])

    if bias_k is not None and bias_v is not None:
        if static_k is not None or static_v is not None:
            raise AssertionError("bias cannot be added to static key or value.")
        k = trt.cat([k, bias_k.repeat(1, batch, 1)])
        v = trt.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = padded(attn_mask), padded(key_padding_mask)

    heads = batch * num_heads

    def by_head(x: Any) -> Any:
        return x.reshape(x.shape[0], heads, head_dim).transpose(0, 1)

    q = by_head(q)
    k = by_head(k) if static_k is None else _checked_static(static_k, "k", heads, head_dim)
    v = by_head(v) if static_v is None else _checked_static(static_v, "v", heads, head_dim)
    if add_zero_attn:
        k = trt.cat([k, k.new_zeros(heads, 1, head_dim)], 1)
        v = trt.cat([v, v.new_zeros(heads, 1, head_dim)], 1)
        attn_mask, key_padding_mask = padded(attn_mask), padded(key_padding_mask)
    source = k.size(1)
    if key_padding_mask is not None:
        for dim, size in enumerate((batch, source)):
            if key_padding_mask.shape[dim] != size:
                raise AssertionError(f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {key_padding_mask.shape[dim]}")
        by_sample = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(heads, 1, source)
        attn_mask = by_sample if attn_mask is None else attn_mask + by_sample
    if not training:
        dropout_p = 0.0

    weights = None
    if need_weights:
        q = q * math.sqrt(1.0 / head_dim)
        scores = q.bmm(k.transpose(-2, -1)) if attn_mask is None else _ops.baddbmm(attn_mask, q, k.transpose(-2, -1))
        weights = scores.softmax(-1)
        if dropout_p > 0.0:
            weights = _ops.dropout(weights, dropout_p, True)
        output = weights.bmm(v)
        output = output.transpose(0, 1).reshape(length * batch, width)
        weights = weights.view(batch, num_heads, length, source)
        if average_attn_weights:
            weights = weights.mean(1)
    else:
        if attn_mask is not None:
            single = attn_mask.size(0) == 1 and attn_mask.dim() == 3
            attn_mask = attn_mask.unsqueeze(0) if single else attn_mask.view(batch, num_heads, attn_mask.size(1), source)  # 1, or length
        output = _ops.scaled_dot_product_attention(
            q.view(batch, num_heads, length, head_dim),
            k.view(batch, num_heads, source, head_dim),
            v.view(batch, num_heads, source, head_dim),
            attn_mask,
            dropout_p,
            is_causal,
        )
        output = output.permute(2, 0, 1, 3).reshape(batch * length, width)
    output = _ops.linear(output, out_proj_weight, out_proj_bias).view(length, batch, out_proj_weight.size(0))
    if not batched:
        output = output.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return output, weights


def _checked_static(tensor: Any, name: str, heads: int, head_dim: int) -> Any:
    if tensor.size(0) != heads:
        raise AssertionError(f"expecting static_{name}.size(0) of {heads}, but got {tensor.size(0)}")
    if tensor.size(2) != head_dim:
        raise AssertionError(f"expecting static_{name}.size(2) of {head_dim}, but got {tensor.size(2)}")
    return tensor
