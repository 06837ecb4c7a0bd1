"""Operators on jagged tensors that work element by element: pointwise ones, copies, conversions, factories of the same shape."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._subclasses.composite_tensor import name_of, writes_in_place
from tensorrt_lite.masked._tensor import pointwise_names
from tensorrt_lite.nested._tensor import NestedTensor, from_rows, operator


def mismatch(func: Any, *tensors: Any) -> RuntimeError:
    shapes = " and ".join(str(tuple(t.shape)) for t in tensors)
    return RuntimeError(f"{name_of(func)}: cannot combine nested tensors with inputs of shapes {shapes}")


def _row_places(nt: NestedTensor) -> tuple[Any, Any]:
    """(sequence, position) of each row of the values, those in holes included."""
    s, rows = nt._structure, nt._values.shape[nt._ragged_idx - 1]
    if s.rows is None and rows == s.total:
        return s.sequence, s.position
    every = trt.arange(rows, device=s.offsets.device)
    sequence = trt.bucketize(every, s.offsets[1:].contiguous(), right=True).clamp(max=s.batch - 1)
    return sequence, every - s.offsets.to(trt.int64).index_select(0, sequence)


def aligned(func: Any, dense: Any, nt: NestedTensor) -> Any:
    """A dense operand as one that broadcasts to the values of `nt`: over the batch, along the ragged dimension, or padded to the longest sequence.
    RuntimeError where it does not broadcast."""
    n, r, batch = nt.dim(), nt._ragged_idx, nt._structure.batch
    while dense.dim() > 0 and dense.dim() >= n and dense.shape[0] == 1 and (dense.dim() > n or batch != 1 or dense.shape[r] == 1):
        dense = dense.squeeze(0)
    if dense.dim() > n:
        raise mismatch(func, nt, dense)
    if dense.dim() < n:
        place = r - (n - dense.dim())
        if place >= 0 and dense.shape[place] != 1:
            raise mismatch(func, nt, dense)
        return dense
    if dense.shape[0] != batch:
        raise mismatch(func, nt, dense)
    sequence, position = _row_places(nt)
    if dense.shape[r] == 1:
        rows = dense.select(r, 0).index_select(0, sequence)
    elif dense.shape[r] == nt._structure.longest:
        padded = dense.movedim(r, 1)
        places = sequence * padded.shape[1] + position.clamp(max=padded.shape[1] - 1)
        rows = padded.reshape(batch * padded.shape[1], *padded.shape[2:]).index_select(0, places)
    else:
        raise mismatch(func, nt, dense)
    return rows if r == 1 else rows.movedim(0, r - 1)


def same_ragged(func: Any, tensors: list[NestedTensor]) -> list[NestedTensor]:
    """The tensors over one structure. RuntimeError unless all have the same ragged size in the same place."""
    first = tensors[0]
    for other in tensors[1:]:
        if (
            other._structure.size != first._structure.size
            or other._ragged_idx - other.dim() != first._ragged_idx - first.dim()
            or other.dim() != first.dim()
        ):
            raise mismatch(func, first, other)
    rows = first._values.shape[first._ragged_idx - 1]
    if any(t._structure is not first._structure or t._values.shape[t._ragged_idx - 1] != rows for t in tensors):
        compacted = [t._compacted() for t in tensors]
        return [NestedTensor(t._values, compacted[0]._structure, t._ragged_idx) for t in compacted]
    return tensors


def pointwise(func: Any, args: Any, kwargs: Any) -> Any:
    """On the values. Nested operands must have the same raggedness; dense ones broadcast."""
    if kwargs.get("out") is not None:
        raise NotImplementedError(f"{name_of(func)}(out=) is not implemented for nested tensors (docs/gaps.md)")
    everything = (*args, *kwargs.values())
    nested = [a for a in everything if isinstance(a, NestedTensor)]
    placed = dict(zip(map(id, nested), same_ragged(func, nested) if len(nested) > 1 else nested, strict=True))
    like = placed[id(nested[0])]

    def dense(value: Any) -> Any:
        if isinstance(value, NestedTensor):
            return placed[id(value)]._values
        if isinstance(value, trt.Tensor) and value.dim():
            return aligned(func, value, like)
        return value

    name = name_of(func)
    in_place = writes_in_place(name)
    if in_place and like is not nested[0]:
        raise mismatch(func, *nested)
    result = func(*map(dense, args), **{k: dense(v) for k, v in kwargs.items()})
    if in_place:
        return args[0]
    if isinstance(result, tuple):
        parts = [like._with_part(x) for x in result]
        return result._make(parts) if hasattr(result, "_make") else type(result)(parts)
    if not isinstance(result, trt.Tensor):
        return result
    if result.shape[like._ragged_idx - 1 - like._values.dim()] != like._values.shape[like._ragged_idx - 1]:
        raise mismatch(func, *(t for t in everything if isinstance(t, trt.Tensor)))
    return NestedTensor(result, like._structure, like._ragged_idx + result.dim() - like._values.dim())


for _name in (
    *pointwise_names(), "where", "masked_fill", "masked_fill_", "relu6", "gelu", "glu_jvp", "silu", "hardtanh", "threshold", "dropout", "alpha_dropout", "feature_alpha_dropout",
    "celu", "selu", "elu", "rrelu", "logsigmoid", "mish", "softplus", "softsign", "tanhshrink", "hardshrink", "softshrink", "hardswish", "hardsigmoid", "leaky_relu",
    "relu", "relu_", "polygamma", "mvlgamma", "multigammaln", "isin", "bernoulli", "bernoulli_", "normal_", "uniform_", "zero_", "fill_", "fill", "logical_not", "nan_to_num_",
    "isreal", "isposinf", "isneginf", "isfinite", "isinf", "signbit", "float_power", "xlogy", "special_xlog1py", "view_as_real", "clone", "contiguous",
    "copysign", "resolve_conj", "resolve_neg", "cpu", "float", "double", "half", "bfloat16", "int", "long", "short", "char", "byte", "bool", "cfloat", "chalf", "cdouble", "type",
    "type_as", "alias", "lerp", "ldexp", "ldexp_", "addcmul", "addcdiv", "clip_", "clamp_", "copysign_",
):  # fmt: skip
    if _name not in ("contiguous", "clone", "view_as_real", "type_as"):
        NestedTensor._table[_name] = pointwise


@operator("clone")
def _clone(func: Any, input: Any, *, memory_format: Any = None) -> NestedTensor:
    if memory_format == trt.contiguous_format and not _is_contiguous(None, input):
        return _contiguous(func, input)
    return input._with_part(input._values.clone())  # type: ignore[no-any-return]


@operator("is_contiguous")
def _is_contiguous(func: Any, input: Any, memory_format: Any = None) -> bool:
    """Whether the ragged dimension follows the batch, without holes, over contiguous values."""
    return input._ragged_idx == 1 and input._structure.lengths is None and bool(input._values.is_contiguous())


@operator("contiguous")
def _contiguous(func: Any, input: Any, memory_format: Any = None) -> NestedTensor:
    if _is_contiguous(func, input):
        return input  # type: ignore[no-any-return]
    compact = input._compacted() if input._structure.lengths is not None else input
    rows = compact._values.movedim(compact._ragged_idx - 1, 0).contiguous()
    return from_rows(rows, compact._structure, compact._ragged_idx)


@operator("to")
def _to(func: Any, input: Any, *args: Any, **kwargs: Any) -> NestedTensor:
    layout = kwargs.pop("layout", None)
    if layout not in (None, trt.jagged):
        raise NotImplementedError(f"to(): a nested tensor of the jagged layout cannot become one of layout {layout} (docs/gaps.md)")
    args = tuple(a._values if isinstance(a, NestedTensor) else a for a in args)
    values = input._values.to(*args, **kwargs)
    return input if values is input._values else input._with_part(values)  # type: ignore[no-any-return]


@operator("cuda", "type_as", "requires_grad_to", "ones_like", "zeros_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like")
def _of_values(func: Any, input: Any, *args: Any, **kwargs: Any) -> NestedTensor:
    if kwargs.get("layout") is trt.jagged:
        kwargs.pop("layout")
    return input._with_part(func(input._values, *(a._values if isinstance(a, NestedTensor) else a for a in args), **kwargs))  # type: ignore[no-any-return]


@operator("copy_")
def _copy(func: Any, input: Any, src: Any, non_blocking: bool = False) -> Any:
    if isinstance(src, NestedTensor):
        if src._structure.size != input._structure.size and src._structure.counts != input._structure.counts or src.dim() != input.dim():
            raise mismatch(func, input, src)
        src = src._values if src._ragged_idx == input._ragged_idx else mismatch(func, input, src)
    elif src.dim():
        src = aligned(func, src, input)
    if isinstance(src, RuntimeError):
        raise src
    input._values.copy_(src)
    return input


@operator("is_same_size")
def _is_same_size(func: Any, input: Any, other: Any) -> bool:
    for name, t in (("self", input), ("other", other)):
        if not isinstance(t, NestedTensor):
            raise ValueError(f"NestedTensor is_same_size(): expected {name} to be a jagged layout NestedTensor, but got {t.layout} of shape {list(t.shape)}")
    return bool(input.shape == other.shape)


@operator("equal")
def _equal(func: Any, input: Any, other: Any) -> bool:
    if not (isinstance(input, NestedTensor) and isinstance(other, NestedTensor)):
        return False
    return (
        input._structure.counts == other._structure.counts
        and input._ragged_idx == other._ragged_idx
        and bool(trt.equal(input._rows(), other._rows()))
    )


@operator("allclose")
def _allclose(func: Any, input: Any, other: Any, *args: Any, **kwargs: Any) -> bool:
    a, b = same_ragged(func, [input, other]) if isinstance(other, NestedTensor) else (input, input._with_part(aligned(func, other, input)))
    return bool(func(a._values, b._values, *args, **kwargs))
