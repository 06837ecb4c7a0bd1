"""Products, normalizations, embeddings and attention of jagged tensors."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._subclasses.composite_tensor import name_of
from tensorrt_lite.nn import functional as F
from tensorrt_lite.nested._elementwise import mismatch, pointwise, same_ragged
from tensorrt_lite.nested._tensor import NestedTensor, from_rows, from_sequences, operator


@operator("linear")
def _linear(func: Any, input: Any, weight: Any, bias: Any = None) -> NestedTensor:
    if isinstance(weight, NestedTensor) or isinstance(bias, NestedTensor):
        raise mismatch(func, input, weight)
    if input._ragged_idx == input.dim() - 1:
        raise RuntimeError("linear(): not supported for NestedTensor on a ragged last dimension")
    return input._with_part(F.linear(input._values, weight, bias))  # type: ignore[no-any-return]


def _pair(func: Any, a: Any, b: Any) -> tuple[list[Any], list[Any], NestedTensor]:
    """The operands' matrices for each sequence."""
    nt = a if isinstance(a, NestedTensor) else b
    batch = nt._structure.batch

    def parts(t: Any) -> list[Any]:
        if isinstance(t, NestedTensor):
            return t._sequences()
        if t.dim() < nt.dim():
            return [t] * batch
        if t.dim() > nt.dim() or t.shape[0] not in (1, batch):
            raise mismatch(func, a, b)
        return [t[0]] * batch if t.shape[0] == 1 else list(t.unbind(0))

    return parts(a), parts(b), nt


@operator("matmul", "bmm", "mm", "__rmatmul__")
def _matmul(func: Any, input: Any, other: Any = None, mat2: Any = None) -> Any:
    other = other if other is not None else mat2
    a, b = (other, input) if name_of(func) == "__rmatmul__" else (input, other)
    if name_of(func) == "bmm" and (a.dim() != 3 or b.dim() != 3):
        raise RuntimeError(f"bmm(): batch1 and batch2 must be 3D tensors, got {a.dim()}D and {b.dim()}D")
    if name_of(func) == "mm":
        raise RuntimeError("mm(): nested tensors have no two-dimensional form")
    both = isinstance(a, NestedTensor) and isinstance(b, NestedTensor)
    if both and a._structure.batch != b._structure.batch:
        raise mismatch(func, a, b)
    if (
        isinstance(a, NestedTensor)
        and not both
        and (b.dim() <= 2 or b.shape[0] == 1 and b.dim() == 3 and a.dim() == 3)
        and a._ragged_idx < a.dim() - (b.dim() > 0)
    ):
        weight = b[0] if b.dim() == 3 else b
        if a._ragged_idx == a.dim() - 1:
            raise mismatch(func, a, b)
        values = trt.matmul(a._values, weight)
        return NestedTensor(values, a._structure, a._ragged_idx)
    if isinstance(b, NestedTensor) and not both and a.dim() == 2 and b._ragged_idx != b.dim() - 2 and b.dim() > 2:
        if b._ragged_idx == b.dim() - 1:
            rows = trt.matmul(a, b._values)
            return NestedTensor(rows, b._structure, b._ragged_idx)
    left, right, nt = _pair(func, a, b)
    rows_ragged = isinstance(a, NestedTensor) and a._ragged_idx == a.dim() - 2
    columns_ragged = isinstance(b, NestedTensor) and b._ragged_idx == b.dim() - 1
    if rows_ragged and columns_ragged:
        raise RuntimeError(f"{name_of(func)}(): the result of shapes {tuple(a.shape)} and {tuple(b.shape)} would have two ragged dimensions")
    if both and not rows_ragged and not columns_ragged and a._ragged_idx == a.dim() - 1 and b._ragged_idx == b.dim() - 2:
        same_ragged(func, [a.transpose(-1, -2), b])
        return trt.stack([trt.matmul(x, y) for x, y in zip(left, right, strict=True)])
    products = [trt.matmul(x, y) for x, y in zip(left, right, strict=True)]
    source = a if rows_ragged else b if columns_ragged else nt
    if both and not rows_ragged and not columns_ragged:
        same_ragged(func, [a, b])
    place = (
        products[0].dim() - (1 if rows_ragged else 0) if rows_ragged or columns_ragged else source._ragged_idx + products[0].dim() + 1 - source.dim()
    )
    return from_sequences(products, source._structure.compact, place)


def _normalized(func: Any, input: Any, shape: Any) -> bool:
    """Whether the last dimensions, which are normalized over, include the ragged one. RuntimeError where the sizes differ."""
    n = len(shape)
    if n >= input.dim() or tuple(shape) != tuple(input.shape[input.dim() - n :]):
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got input of size {list(input.shape)}"
        )
    return bool(input._ragged_idx >= input.dim() - n)


@operator("layer_norm", "rms_norm")
def _norm(func: Any, input: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: Any = None) -> NestedTensor:
    name = name_of(func)
    if name == "rms_norm":
        bias, eps = None, bias if eps is None else eps
    elif eps is None:
        eps = 1e-5
    function = F.layer_norm if name == "layer_norm" else F.rms_norm
    extra = (weight, bias) if name == "layer_norm" else (weight,)
    shape = tuple(normalized_shape)
    if not _normalized(func, input, shape):
        return input._with_part(function(input._values, shape, *extra, eps))  # type: ignore[no-any-return]
    if weight is not None or bias is not None:
        raise RuntimeError(f"{name}(): weight and bias are not supported where the ragged dimension is normalized over")
    n = len(shape)
    return from_sequences(
        [function(t, tuple(t.shape[t.dim() - n :]), *extra, eps) for t in input._sequences()], input._structure.compact, input._ragged_idx
    )


@operator("prelu")
def _prelu(func: Any, input: Any, weight: Any) -> NestedTensor:
    if weight.numel() == 1:
        return input._with_part(F.prelu(input._values, weight.reshape(1)))  # type: ignore[no-any-return]
    if input._ragged_idx == 1:
        raise RuntimeError("prelu(): the channels' dimension is ragged")
    shape = (-1,) + (1,) * (input._values.dim() - 1)
    values = input._values
    return input._with_part(trt.where(values > 0, values, weight.reshape(shape) * values))  # type: ignore[no-any-return]


@operator("embedding")
def _embedding(func: Any, input: Any, weight: Any = None, *args: Any, **kwargs: Any) -> Any:
    if isinstance(weight, NestedTensor):  # trt.embedding(weight, indices)
        input, weight = weight, input
    if not isinstance(input, NestedTensor):
        raise mismatch(func, input, weight)
    return NestedTensor(F.embedding(input._values, weight, *args, **kwargs), input._structure, input._ragged_idx)


@operator("embedding_bag")
def _embedding_bag(func: Any, input: Any, weight: Any, offsets: Any = None, *args: Any, per_sample_weights: Any = None, **kwargs: Any) -> Any:
    """(B, D): a bag for each sequence of (B, j) indices."""
    if isinstance(weight, NestedTensor):
        input, weight = weight, input
    if offsets is not None or input.dim() != 2:
        raise ValueError(f"embedding_bag(): nested input is (B, j) and brings its own offsets, got {tuple(input.shape)}")
    compact = input._compacted()
    if isinstance(per_sample_weights, NestedTensor):
        per_sample_weights = same_ragged(func, [input, per_sample_weights])[1]._rows()
    return F.embedding_bag(compact._values, weight, compact._structure.offsets[:-1], *args, per_sample_weights=per_sample_weights, **kwargs)


@operator("dropout", "alpha_dropout", "feature_alpha_dropout", "native_dropout")
def _dropout(func: Any, *args: Any, **kwargs: Any) -> Any:
    return pointwise(func, args, kwargs)


# ---- attention -----------------------------------------------------------------------------------------------------


def _heads_first(func: Any, t: Any) -> list[Any]:
    """The sequences as (1, H, L, D)."""
    return [x.unsqueeze(0) for x in t._sequences()]


@operator("scaled_dot_product_attention")
def _attention(
    func: Any,
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: Any = None,
    enable_gqa: bool = False,
) -> Any:
    """Each sequence attends to its own: query (B, H, jq, D), key (B, H, jk, D), value (B, H, jk, E) -> (B, H, jq, E), or the same without H.

    The dense kernel runs sequence by sequence, so that nothing is padded. RuntimeError for an attn_mask.
    """
    if attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention(): attn_mask must not be set for nested tensors of the jagged layout")
    if not all(isinstance(t, NestedTensor) for t in (query, key, value)):
        raise RuntimeError("scaled_dot_product_attention(): query, key and value must all be nested or all be dense")
    if {query.dim(), key.dim(), value.dim()} not in ({3}, {4}):
        raise RuntimeError(
            f"scaled_dot_product_attention(): nested query, key and value must be 3- or 4-dimensional, got {query.dim()}, {key.dim()} and {value.dim()}"
        )
    place = query.dim() - 2
    for t in (query, key, value):
        if t._ragged_idx != place:
            raise RuntimeError(f"scaled_dot_product_attention(): the ragged dimension must be the last but one, got shape {tuple(t.shape)}")
    if key._structure.size != value._structure.size and key._structure.counts != value._structure.counts:
        raise RuntimeError("scaled_dot_product_attention(): key and value must have the same ragged structure")
    if not query._structure.batch == key._structure.batch == value._structure.batch:
        raise mismatch(func, query, key, value)
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    split = [t._sequences() for t in (query, key, value)]
    four = query.dim() == 4
    lead = (lambda x: x.unsqueeze(0)) if four else (lambda x: x.unsqueeze(0).unsqueeze(0))
    outputs = []
    for q, k, v in zip(*split, strict=True):
        if not k.shape[-2]:
            outputs.append(q.new_zeros((q.shape[-2], *((q.shape[0],) if four else ()), v.shape[-1])))
            continue
        out = F.scaled_dot_product_attention(lead(q), lead(k), lead(v), **options)
        outputs.append(out[0].transpose(0, 1) if four else out[0, 0])
    rows = trt.cat(outputs)
    return from_rows(rows, query._structure.compact, place)


@operator("multi_head_attention_forward")
def _multi_head_attention(
    func: Any, query: Any, key: Any, value: Any, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any, in_proj_bias: Any, bias_k: Any, bias_v: Any,
    add_zero_attn: bool, dropout_p: float, out_proj_weight: Any, out_proj_bias: Any, training: bool = True, key_padding_mask: Any = None, need_weights: bool = True,
    attn_mask: Any = None, use_separate_proj_weight: bool = False, q_proj_weight: Any = None, k_proj_weight: Any = None, v_proj_weight: Any = None,
    static_k: Any = None, static_v: Any = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> tuple[Any, Any]:  # fmt: skip
    """query (B, j, E), key and value (B, k, E), nested: attention within each sequence. Returns the output like query, and None."""
    refused = [
        name
        for name, given in (
            ("bias_k", bias_k), ("bias_v", bias_v), ("add_zero_attn", add_zero_attn or None), ("key_padding_mask", key_padding_mask),
            ("attn_mask", None if is_causal else attn_mask), ("static_k", static_k), ("static_v", static_v), ("need_weights", need_weights or None),
        )
        if given is not None
    ]  # fmt: skip
    if refused:
        hint = "; pass need_weights=False, each sequence has weights of its own shape" if need_weights else ""
        raise RuntimeError(f"multi_head_attention_forward(): not supported with nested tensors: {', '.join(refused)}{hint}")
    if not all(isinstance(t, NestedTensor) and t.dim() == 3 and t._ragged_idx == 1 for t in (query, key, value)):
        raise RuntimeError("multi_head_attention_forward(): query, key and value must be nested tensors (B, j, E)")
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (F.linear(t, w, b) for t, w, b in zip((query, key, value), weights, biases, strict=True))
    elif query is key and key is value:
        q, k, v = F.linear(query, in_proj_weight, in_proj_bias).chunk(3, -1)
    else:
        biases = (None,) * 3 if in_proj_bias is None else in_proj_bias.chunk(3)
        q, k, v = (F.linear(t, w, b) for t, w, b in zip((query, key, value), in_proj_weight.chunk(3), biases, strict=True))
    q, k, v = (t.unflatten(-1, (num_heads, t.shape[-1] // num_heads)).transpose(1, 2) for t in (q, k, v))
    out = F.scaled_dot_product_attention(q, k, v, None, dropout_p if training else 0.0, is_causal)
    return F.linear(out.transpose(1, 2).flatten(2, 3), out_proj_weight, out_proj_bias), None
