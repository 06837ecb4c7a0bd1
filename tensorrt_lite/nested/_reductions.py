"""Reductions, scans and sorts of jagged tensors along dimensions.

Along a dimension that is not ragged the operator runs on the values. Along the ragged one a reduction that has an element which leaves its result alone runs on padded
sequences; the others run on one sequence after the other.
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import iinfo
from tensorrt_lite._subclasses.composite_tensor import name_of
from tensorrt_lite.nested._elementwise import same_ragged
from tensorrt_lite.nested._shape import inner_dim, rows_like, wrapped
from tensorrt_lite.nested._tensor import NestedTensor, from_rows, from_sequences, operator, table


def _lowest(t: Any) -> Any:
    return float("-inf") if t.dtype.is_floating_point else False if t.dtype == trt.bool else iinfo(t.dtype).min


def _highest(t: Any) -> Any:
    return float("inf") if t.dtype.is_floating_point else True if t.dtype == trt.bool else iinfo(t.dtype).max


# What a reduction pads with; the others run by sequences.
_PADDING = {
    "sum": lambda t: 0, "nansum": lambda t: 0, "prod": lambda t: 1, "amax": _lowest, "amin": _highest, "max": _lowest, "min": _highest, "argmax": _lowest, "argmin": _highest,
    "all": lambda t: True, "any": lambda t: False, "count_nonzero": lambda t: 0,
}  # fmt: skip
# The places of arguments; "dim" and "keepdim" are this module's.
_ARGUMENTS = {
    "norm": ("input", "p", "dim", "keepdim", "dtype"), "vector_norm": ("input", "ord", "dim", "keepdim"), "count_nonzero": ("input", "dim"),
    "argmax": ("input", "dim", "keepdim"), "std": ("input", "dim", "unbiased", "keepdim"), "var": ("input", "dim", "unbiased", "keepdim"),
    "std_mean": ("input", "dim", "unbiased", "keepdim"), "var_mean": ("input", "dim", "unbiased", "keepdim"),
    "quantile": ("input", "q", "dim", "keepdim"), "nanquantile": ("input", "q", "dim", "keepdim"),
}  # fmt: skip


def _mapped(result: Any, f: Any) -> Any:
    """f of a tensor, or of each of several, in a tuple of the same type."""
    if not isinstance(result, tuple):
        return f(result)
    return result._make(map(f, result)) if hasattr(result, "_make") else type(result)(map(f, result))


def _reduce(func: Any, args: Any, kwargs: Any) -> Any:
    name = name_of(func)
    if name in ("std", "var", "std_mean", "var_mean") and len(args) == 2 and isinstance(args[1], bool):
        args, kwargs = args[:1], {"unbiased": args[1]} | kwargs
    given = dict(zip(_ARGUMENTS.get(name, ("input", "dim", "keepdim")), args, strict=False)) | kwargs
    for numpy_name, ours in (("axis", "dim"), ("keepdims", "keepdim"), ("self", "input"), ("x", "input")):
        if numpy_name in given:
            given[ours] = given.pop(numpy_name)
    input, dim, keepdim = given.pop("input"), given.pop("dim", None), given.pop("keepdim", False)
    other = given.pop("other", dim)
    if isinstance(other, trt.Tensor):  # maximum and minimum by the names of max and min
        return trt.maximum(input, other) if name == "max" else trt.minimum(input, other)
    if dim is None or dim == () or dim == []:
        extra = {} if not keepdim else {"keepdim": True}
        out = func(input._compacted()._values, **given, **extra)
        return _mapped(out, lambda t: t.unsqueeze(0)) if keepdim else out
    r = input._ragged_idx
    one = isinstance(dim, int)
    dims = [wrapped(d, input.dim()) for d in ([dim] if one else dim)]
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"{name}(): dim appears multiple times in the list of dims")
    if 0 in dims and r not in dims:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0 without the ragged dimension {r}")
    if keepdim:
        given["keepdim"] = True
    inner = [d - 1 for d in dims if d]
    argument: Any = inner[0] if one and inner else inner
    if 0 in dims:
        compact = input._compacted()
        out = func(compact._values, dim=argument, **given)
        return _mapped(out, lambda t: t.unsqueeze(0)) if keepdim else out
    if r not in dims:
        place = r if keepdim else r - sum(d < r for d in dims)
        return _mapped(func(input._values, dim=argument, **given), lambda t: NestedTensor(t, input._structure, place))
    if name == "mean" and input._structure.batch:
        total = _padded_reduction(func, trt.sum, input, 0, dims, given)
        width = 1
        for d in inner:
            width *= 1 if d == r - 1 else input._values.shape[d]
        counts = input._structure.counts_tensor.to(total.dtype) * width
        return total / counts.reshape(-1, *(1,) * (total.dim() - 1))
    if name in _PADDING and input._structure.shortest > 0 and (name not in ("argmax", "argmin") or one):
        return _padded_reduction(func, func, input, _PADDING[name](input), dims if not one else dims[0], given)
    parts = [func(t, dim=argument, **given) for t in input._sequences()]
    if not parts or not isinstance(parts[0], tuple):
        return trt.stack(parts)
    joined = [trt.stack(p) for p in zip(*parts, strict=True)]
    return parts[0]._make(joined) if hasattr(parts[0], "_make") else tuple(joined)


def _padded_reduction(func: Any, reduction: Any, input: Any, padding: Any, dims: Any, given: dict[str, Any]) -> Any:
    return reduction(input._padded(padding), dim=dims, **given)


for _name in (
    *_PADDING, "mean", "nanmean", "std", "var", "std_mean", "var_mean", "logsumexp", "norm", "vector_norm", "median", "nanmedian", "mode", "aminmax", "quantile", "nanquantile",
):  # fmt: skip
    table[_name] = _reduce


# ---- along one dimension, with results of the same shape -----------------------------------------------------------

_ALONG = {
    "cumsum": -1, "cumprod": -1, "cummax": -1, "cummin": -1, "logcumsumexp": -1, "flip": -1, "sort": -1, "argsort": -1, "topk": -1, "kthvalue": -1, "roll": -1,
    "softmin": None, "normalize": 1, "glu": -1, "diff": -1, "renorm": None, "gather": None,
}  # fmt: skip
_BEHIND = {"topk": ("input", "k", "dim"), "kthvalue": ("input", "k", "dim"), "flip": ("input", "dims"), "roll": ("input", "shifts", "dims"), "normalize": ("input", "p", "dim"),
           "renorm": ("input", "p", "dim", "maxnorm"), "diff": ("input", "n", "dim"), "gather": ("input", "dim", "index")}  # fmt: skip


def _along(func: Any, args: Any, kwargs: Any) -> Any:
    name = name_of(func)
    given = dict(zip(_BEHIND.get(name, ("input", "dim")), args, strict=False)) | kwargs
    rest = args[len(_BEHIND.get(name, ("input", "dim"))) :]
    key = "dims" if "dims" in given else "dim"
    input, dim = given.pop("input"), given.pop(key, _ALONG[name])
    if isinstance(dim, (tuple, list)) and len(dim) == 1:
        dim = dim[0]
    if not isinstance(dim, int):
        raise NotImplementedError(f"{name}() of nested tensors takes one dimension (docs/gaps.md)")
    d = inner_dim(func, input, dim, ragged=True)
    k = given.pop("k", None)
    front = () if k is None else (k,)
    if key == "dims":
        d_argument: Any = {"dims": (d,)}
    else:
        d_argument = {"dim": d}

    def dense(value: Any, i: int | None) -> Any:
        return value if not isinstance(value, NestedTensor) else value._values if i is None else value._sequences()[i]

    if d != input._ragged_idx - 1:
        if isinstance(given.get("index"), NestedTensor):
            same_ragged(func, [input, given["index"]])
        out = func(input._values, *front, *rest, **d_argument, **{n: dense(v, None) for n, v in given.items()})
        return _mapped(
            out, lambda t: NestedTensor(t, input._structure, input._ragged_idx - (t.dim() < input._values.dim() and d < input._ragged_idx - 1))
        )
    if name in ("topk", "kthvalue"):
        parts = [func(t, *front, *rest, **d_argument, **given) for t in input._sequences()]
        return type(parts[0])([trt.stack(p) for p in zip(*parts, strict=True)])
    parts = [func(t, *front, *rest, **d_argument, **{n: dense(v, i) for n, v in given.items()}) for i, t in enumerate(input._sequences())]
    joined = [from_sequences(list(p), ragged_idx=input._ragged_idx) for p in (zip(*parts, strict=True) if isinstance(parts[0], tuple) else [parts])]
    if name not in ("diff", "gather", "glu"):
        joined = [NestedTensor(t._values, input._structure.compact, t._ragged_idx) for t in joined]
    if not isinstance(parts[0], tuple):
        return joined[0]
    return parts[0]._make(joined) if hasattr(parts[0], "_make") else type(parts[0])(joined)


for _name in _ALONG:
    table[_name] = _along


@operator("softmax", "log_softmax")
def _softmax(func: Any, input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None, **extra: Any) -> NestedTensor:
    name = name_of(func)
    if dim is None:
        raise RuntimeError(f"{name}(): dim must be given for nested tensors")
    d = wrapped(dim, input.dim())
    if d == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    operation = trt.softmax if name == "softmax" else trt.log_softmax
    if d != input._ragged_idx:
        return input._with_part(operation(input._values, d - 1, dtype=dtype))  # type: ignore[no-any-return]
    rows, s = input._rows() if dtype is None else input._rows().to(dtype), input._structure
    if not s.total:
        return rows_like(input, rows)
    # Per sequence and column: subtract the largest, sum exponentials. Nothing is padded, the gradient needs none of the largest.
    index = s.sequence.reshape(-1, *(1,) * (rows.dim() - 1)).expand(rows.shape)
    largest = trt.full((s.batch, *rows.shape[1:]), float("-inf"), dtype=rows.dtype, device=rows.device).scatter_reduce(
        0, index, rows.detach(), "amax"
    )
    shifted = rows - largest.masked_fill(largest == float("-inf"), 0).index_select(0, s.sequence)
    powers = shifted.exp()
    sums = trt.zeros_like(largest).index_add(0, s.sequence, powers)
    out = powers / sums.index_select(0, s.sequence) if name == "softmax" else shifted - sums.log().index_select(0, s.sequence)
    return from_rows(out, s.compact, input._ragged_idx)
