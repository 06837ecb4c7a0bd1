"""Selecting and writing by positions, diagonals and views; norms of slices; membership. Gradients follow from the parts."""

from __future__ import annotations

from tensorrt_lite._C.autograd.forward import get_tangent
from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.python_key import is_transformed
from tensorrt_lite._C.core.dispatch import is_grad_enabled
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._C.ops.indexing import _checked_rows
from tensorrt_lite._C.ops.support import check_output, deliver_result, float_argument, holds_elements, int_argument, tensor_argument, type_name, wrapped_dim
from tensorrt_lite._C.core.warning import warn_once
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_elements = _LazyModule("tensorrt_lite._transforms.elements")
_grad_mode = _LazyModule("tensorrt_lite.autograd.grad_mode")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()
_int64, _int32, _float32, _bool = _dtype_by_name("int64"), _dtype_by_name("int32"), _dtype_by_name("float32"), _dtype_by_name("bool")
_BAG_TYPES = (_float32, *(_dtype_by_name(name) for name in ("float64", "bfloat16", "float16")))
# elements of rows that are scaled at a time
_RENORMED = 1 << 16


def take_along_dim(input: Any, indices: Any, dim: Any = None, *, out: Any = None) -> Tensor:
    """input's elements along dim at indices (from the end where negative), broadcast in the other dimensions; over the flat input without dim."""
    x, i = tensor_argument(input, "take_along_dim", "input"), tensor_argument(indices, "take_along_dim", "indices")
    if i.dtype != _int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {type_name(i.dtype)}")
    if dim is None:
        return _ops.gather(x.reshape(-1), 0, i.reshape(-1), out=out)
    if x.requires_grad and is_grad_enabled():
        # the gradient reads a copy: the indices may be written to, as PyTorch's may
        i = i.clone()
    if x.dim() != i.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{x.dim()} dimensions for input, and {i.dim()} dimensions for indices"
        )
    d = wrapped_dim(int_argument(dim, "take_along_dim", "dim"), x.dim())
    of_input, of_indices = list(x.shape), list(i.shape)
    for k, (a, b) in enumerate(zip(x.shape, i.shape)):
        if k == d:
            continue
        if a != b and a != 1 and b != 1:
            raise RuntimeError(f"The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {k} (take_along_dim)")
        of_input[k] = of_indices[k] = b if a == 1 else a
    if not i.is_cpu or is_transformed([i]) or not holds_elements(i) or i.numel() and i.min().item() < 0:
        i = _ops.where(_ops.lt(i, 0), _ops.add(i, of_input[d]), i)
    return _ops.gather(x.expand(of_input), d, i.expand(of_indices), out=out)


def nonzero_static(input: Any, *, size: Any, fill_value: Any = -1, out: Any = None) -> Tensor:
    """The first `size` rows of nonzero(input), with rows of fill_value when there are fewer."""
    x = tensor_argument(input, "nonzero_static", "input")
    n = int_argument(size, "nonzero_static", "size")
    if n < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, but got {n}")
    if is_transformed([x]):
        r = _elements.for_each_element("nonzero_static", lambda x: nonzero_static(x, size=n, fill_value=fill_value), x.detach())
        return deliver_result("nonzero_static", r, out, True)
    r = _ops.full((n, x.dim()), fill_value, dtype=_int64, device=x.device)
    if holds_elements(x):
        found = _ops.nonzero(x)
        count = min(n, found.size(0))
        r.narrow(0, 0, count).copy_(found.narrow(0, 0, count))
    return deliver_result("nonzero_static", r, out, True)


def unravel_index(indices: Any, shape: Any) -> tuple[Tensor, ...]:
    """Positions in a flattened array of the given shape as a tuple of one tensor a dimension."""
    i = tensor_argument(indices, "unravel_index", "indices")
    if i.is_floating_point() or i.is_complex() or i.dtype == _dtype_by_name("bool"):
        raise TypeError(f"expected 'indices' to be integer dtype, but got {i.dtype}")
    if not isinstance(shape, (int, tuple, list)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    total = 1
    for s in sizes:
        if not isinstance(s, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(s)}")
        if s < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
        total *= s
    if is_transformed([i]):
        return _elements.for_each_element("unravel_index", lambda i: unravel_index(i, sizes), i)
    if holds_elements(i) and i.numel():
        low, high = (bound.item() for bound in _ops.aminmax(i))
        if low < -total or high >= total:
            raise ValueError(f"unravel_index: indices from {low} to {high} are out of bounds for shape {tuple(sizes)}")
    i = i.long()
    found, rest = [], _ops.remainder(i, total) if total else i
    for s in reversed(sizes):
        found.append(_ops.remainder(rest, s) if s else rest)
        rest = _ops.floor_divide(rest, s) if s else rest
    return tuple(reversed(found))


def fill_diagonal_(self: Any, fill_value: Any, wrap: Any = False) -> Tensor:
    """Fill the diagonal in place; wrap: again below, with a row between, where a matrix is taller than wide."""
    t = tensor_argument(self, "fill_diagonal_", "self")
    if t.dim() < 2:
        raise RuntimeError("dimensions must larger than 1")
    if t.dim() > 2 and any(n != t.size(0) for n in t.shape):
        raise RuntimeError("all dimensions of input must be of equal length")
    least = min(t.shape)
    if least == 0:
        return self
    _ops.as_strided(t, (least,), (sum(t.stride()),), t.storage_offset()).fill_(fill_value)
    if wrap and t.dim() == 2:
        high, step = t.size(0), t.size(1) + 1
        for k in range(step, high, step):
            fill_diagonal_(t.narrow(0, k, high - k), fill_value)
    return self


def renorm(input: Any, p: Any, dim: Any, maxnorm: Any, *, out: Any = None) -> Tensor:
    """input with each slice along dim scaled down to a p-norm of at most maxnorm."""
    x = tensor_argument(input, "renorm", "input")
    power, most = float_argument(p, "renorm", "p"), float_argument(maxnorm, "renorm", "maxnorm")
    if not power > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not most >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {most}")
    if x.dim() < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x.dim()} dimensions")
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"renorm: expected a floating point or complex tensor, got {type_name(x.dtype)}")
    d = wrapped_dim(int_argument(dim, "renorm", "dim"), x.dim())
    if out is not None:
        check_output(out, "renorm")
        if out.dtype != x.dtype:
            raise RuntimeError(f"Expected out tensor to have dtype {x.dtype}, but got {out.dtype} instead (renorm)")
    half = x.is_floating_point() and x.element_size() == 2
    norms = _ops.linalg_vector_norm(x, power, [k for k in range(x.dim()) if k != d], True, dtype=_float32 if half else None)
    factor = _ops.where(norms > most, most / (norms + 1e-7), _ops.ones_like(norms))
    r = _ops.mul(x, factor.to(x.dtype) if half else factor, out=out)
    return r if out is not None else r.contiguous()


def renorm_(self: Any, p: Any, dim: Any, maxnorm: Any) -> Tensor:
    """renorm in place."""
    tensor_argument(self, "renorm_", "self")
    return self.copy_(renorm(self.clone(), p, dim, maxnorm))


# ---- scatter into views ---------------------------------------------------------------------------------------------


def _written(name: str, input: Any, src: Any, viewed: Any, out: Any = None) -> Any:
    """A copy of input with src written into a view of it. Shapes must agree exactly."""
    tensor_argument(input, name, "input")
    tensor_argument(src, name, "src")
    r = input.clone()
    view = viewed(r)
    if src.shape != view.shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = {list(view.shape)}")
    view.copy_(src)
    return deliver_result(name, r, out)


def select_scatter(input: Any, src: Any, dim: Any, index: Any, *, out: Any = None) -> Tensor:
    """A copy of input with src written into input.select(dim, index)."""
    return _written("select_scatter", input, src, lambda r: r.select(dim, index), out)


def slice_scatter(input: Any, src: Any, dim: Any = 0, start: Any = None, end: Any = None, step: Any = 1, *, out: Any = None) -> Tensor:
    """A copy of input with src written into input[..., start:end:step, ...]."""
    along, by = int_argument(dim, "slice_scatter", "dim"), int_argument(step, "slice_scatter", "step")
    last = 2**63 - 1 if end is None else end
    return _written("slice_scatter", input, src, lambda r: _ops.slice(r, along, 0 if start is None else start, last, by), out)


def diagonal_scatter(input: Any, src: Any, offset: Any = 0, dim1: Any = 0, dim2: Any = 1, *, out: Any = None) -> Tensor:
    """A copy of input with src written into its diagonal."""
    return _written("diagonal_scatter", input, src, lambda r: r.diagonal(offset, dim1, dim2), out)


def as_strided_scatter(input: Any, src: Any, size: Any, stride: Any, storage_offset: Any = None, *, out: Any = None) -> Tensor:
    """A copy of input (contiguous) with src written into its as_strided view."""
    return _written("as_strided_scatter", input, src, lambda r: r.as_strided(size, stride, storage_offset), out)


# ---- index_reduce ---------------------------------------------------------------------------------------------------


def index_reduce(input: Any, dim: Any, index: Any, source: Any, reduce: Any, *, include_self: Any = True, out: Any = None) -> Tensor:
    """A copy of input in which the slices of source are combined with those that index names: prod, mean, amin or amax."""
    x, s = tensor_argument(input, "index_reduce", "input"), tensor_argument(source, "index_reduce", "source")
    i = tensor_argument(index, "index_reduce", "index")
    d = wrapped_dim(int_argument(dim, "index_reduce", "dim"), x.dim())
    if reduce not in ("prod", "mean", "amin", "amax"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    i = _checked_rows("index_reduce", x, d, i, s)
    whole = i.reshape([i.numel() if k == d else 1 for k in range(max(s.dim(), 1))]).expand(s.shape or (1,))
    warn_once("index_reduce() is in beta and the API may change at any time.")
    try:
        return _ops.scatter_reduce(x, d, whole.reshape(s.shape) if x.dim() == 0 else whole, s, reduce, include_self=include_self, out=out)
    except RuntimeError as error:
        if "is out of bounds for dimension" not in str(error):
            raise
        raise IndexError(f"index out of range in self (index_reduce: {str(error).removesuffix(' (scatter_reduce)')})") from None


def index_reduce_(self: Any, dim: Any, index: Any, source: Any, reduce: Any, *, include_self: Any = True) -> Tensor:
    """index_reduce in place."""
    return self.copy_(index_reduce(self.clone(), dim, index, source, reduce, include_self=include_self))


# ---- membership -----------------------------------------------------------------------------------------------------


def isin(elements: Any, test_elements: Any, *, assume_unique: Any = False, invert: Any = False, out: Any = None) -> Tensor:
    """Whether each of elements is among test_elements, as a bool tensor of its shape."""
    if isinstance(elements, TensorBase) and not isinstance(test_elements, TensorBase):
        r = _ops.eq(elements, test_elements)
        return deliver_result("isin", _ops.logical_not(r) if invert else r, out, True)
    if not isinstance(elements, TensorBase):
        elements = _ops.tensor(elements, device=test_elements.device if isinstance(test_elements, TensorBase) else None)
    if not isinstance(test_elements, TensorBase):
        dtype = elements.dtype if not isinstance(test_elements, float) else None
        test_elements = _ops.tensor(test_elements, dtype=dtype, device=elements.device)
    flat = test_elements.reshape(-1)
    n = flat.numel()
    if n == 0:
        r = _ops.zeros(tuple(elements.shape), dtype=_dtype_by_name("bool"), device=elements.device)
    elif n <= 4:
        r = _ops.eq(elements, flat[0])
        for k in range(1, n):
            r = _ops.logical_or(r, _ops.eq(elements, flat[k]))
    else:
        ordered = _ops.sort(flat)[0].to(elements.dtype)
        r = _ops.eq(ordered[_ops.searchsorted(ordered, elements).clamp(max=n - 1)], elements)
    return deliver_result("isin", _ops.logical_not(r) if invert else r, out, True)


# ---- embeddings -------------------------------------------------------------------------------------------------------------


def embedding_renorm_(input: Any, indices: Any, max_norm: float, norm_type: float) -> Tensor:
    """The rows that indices name scaled in place to a norm of max_norm at most."""
    weight = tensor_argument(input, "embedding_renorm_", "input")
    with _grad_mode.no_grad():
        index = tensor_argument(indices, "embedding_renorm_", "indices").reshape(-1)
        target = weight.detach()
        step = max(1, _RENORMED // max(1, weight.size(1)) if index.device.type == "cpu" else weight.size(0))
        if index.numel() > min(step, weight.size(0)) and not index.is_meta:  # each row once, and all checked before the first is written
            named = _ops.zeros((weight.size(0),), dtype=_bool, device=index.device)
            named[index] = True
            index = named.nonzero().reshape(-1)
        for part in index.split(step):
            rows = target[part]
            norm = rows.norm(norm_type, 1, True)
            target[part] = rows * _ops.where(norm > max_norm, max_norm / (norm + 1e-7), _ops.ones_like(norm))
    return input


def _bag_ends(offsets: Any, count: int, include_last_offset: bool) -> Any:
    """Where bags begin and, behind them, the last one ends: int64 (bags + 1)."""
    offsets = offsets.to(_int64)
    if not include_last_offset:
        offsets = _ops.pad(offsets, (0, 1), value=count)
    if not holds_elements(offsets):
        return offsets
    if offsets.numel() and int(offsets[0]) != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. " f"However, got {int(offsets[0])}"
        )
    if offsets.numel() and (int(offsets[-1]) > count or bool((offsets[1:] < offsets[:-1]).any())):
        raise RuntimeError(f"offsets have to rise and stay within the input's length {count}, got {offsets.tolist()}")
    return offsets


def _bag_of_each(ends: Any, indices: Any) -> Any:
    """The bag of each index: int64 (N)."""
    if not holds_elements(ends):
        return _ops.empty((indices.size(0),), dtype=_int64, device=indices.device)
    return _ops.repeat_interleave(_ops.arange(ends.size(0) - 1, device=indices.device), ends[1:] - ends[:-1], output_size=indices.size(0))


def _largest_of_bags(rows: Any, indices: Any, keep: Any, ends: Any, bag: Any) -> tuple[Any, Any]:
    """(maxima of each bag (B, D), 0 of those without rows; which of `indices` they are): the first of equals."""
    count, bags = rows.size(0), ends.size(0) - 1
    if count == 0 or bags == 0:
        # the sum of no rows: zeros, in the weight's graph
        return rows.narrow(0, 0, 0).sum(0, True).expand(bags, rows.size(1)).contiguous(), indices.new_zeros((bags, rows.size(1)))
    seen = rows.detach() if keep is None else rows.detach().masked_fill(~keep.unsqueeze(1), float("-inf"))
    most = _ops.segment_reduce(seen, "max", offsets=ends, initial=float("-inf"))
    chosen = _ops.eq(seen, most.index_select(0, bag)) | seen.isnan()
    if keep is not None:
        chosen = chosen & keep.unsqueeze(1)
    places = _ops.where(chosen, _ops.arange(count, device=rows.device).unsqueeze(1), _ops.full((), count, dtype=_int64, device=rows.device))
    first = _ops.full((bags, rows.size(1)), count, dtype=_int64, device=rows.device).scatter_reduce(0, bag.unsqueeze(1).expand_as(places), places, "amin")
    empty, first = first == count, first.clamp_max(count - 1)
    return rows.gather(0, first).masked_fill(empty, 0), indices[first].masked_fill(empty, 0)


def _error_of_bags(error: Exception, weight: Any, indices: Any) -> Exception:
    """PyTorch's error for an index outside of the table, where rows are taken first and in maxima; other errors are passed on."""
    wrong = indices[(indices < 0) | (indices >= weight.size(0))][:1].tolist()
    if not wrong:
        return error
    return hinted("embedding", RuntimeError(f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {wrong[0]}"))


def _rows_of_bags(weight: Any, indices: Any, padding: int, scale_grad_by_freq: Any, sparse: Any) -> Any:
    try:
        return _ops.embedding(weight, indices, padding, scale_grad_by_freq, sparse)
    except IndexError as error:
        raise _error_of_bags(error, weight, indices) from None


def _has_largest_step(weight: Any) -> bool:
    """Whether maxima of bags have a kernel: on the CPU, of types with loops, outside of transforms and forward mode, and for rows that 32 bits count."""
    return (
        weight.device.type in ("cpu", "meta")
        and weight.dim() == 2
        and weight.dtype in _BAG_TYPES
        and weight.size(0) < 1 << 32
        and get_tangent(weight) is None
        and not is_transformed([weight])
    )


def embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """(sums, means or maxima of bags of rows; the bag of each index; indices of each bag; rows of maxima)."""
    w, i = tensor_argument(weight, "embedding_bag", "weight"), tensor_argument(indices, "embedding_bag", "indices")
    starts = tensor_argument(offsets, "embedding_bag", "offsets")
    if mode not in (0, 1, 2):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    for what, t in (("indices", i), ("offsets", starts)):
        if t.dtype not in (_int64, _int32):
            raise RuntimeError(f"Expected tensor for argument '{what}' to have one of the following scalar types: Long, Int; but got {type_name(t.dtype)} (while checking arguments for embedding_bag)")
        if t.dim() != 1:
            raise RuntimeError(f"embedding_bag: expected {what} of 1 dimension, got {t.dim()}")
    if per_sample_weights is not None and mode != 0:
        raise RuntimeError("embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum'")
    rows = w.size(0)
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}")
    padding = -1 if padding_idx is None else padding_idx % rows if rows else -1
    if include_last_offset and starts.numel() == 0:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    given = i.size(0)
    ends = _bag_ends(starts, given, include_last_offset)
    bags = ends.size(0) - 1
    if include_last_offset and holds_elements(ends):
        i = i[: int(ends[-1])]
        per_sample_weights = None if per_sample_weights is None else per_sample_weights[: i.size(0)]
    direct = mode == 2 and _has_largest_step(w) and not (scale_grad_by_freq or sparse)
    taking = mode == 2 and not direct or scale_grad_by_freq or sparse  # composed of rows that are taken first
    keep = None if padding < 0 else i != padding
    bag = None if mode == 0 and keep is None and not taking else _bag_of_each(ends, i)
    sizes = None if mode == 0 else ends[1:] - ends[:-1]
    if mode and keep is not None:
        sizes = _ops.zeros_like(sizes).index_add(0, bag, keep.to(_int64))
    if direct:
        try:
            result, largest = _ops._embedding_bag_largest(w, i, ends, padding)
        except RuntimeError as error:
            raise _error_of_bags(error, w, i) from None
        if holds_elements(sizes) and bool((sizes == 0).any()):
            largest = largest.clamp_min(0)
        return result, bag.to(i.dtype), sizes.to(i.dtype), largest.to(i.dtype)
    if mode == 2:
        taken = _rows_of_bags(w, i, padding, scale_grad_by_freq, sparse)
        result, largest = _largest_of_bags(taken, i, keep, ends, bag)
        return result, bag.to(i.dtype), sizes.to(i.dtype), largest.to(i.dtype)
    if taking:
        taken = _rows_of_bags(w, i, padding, scale_grad_by_freq, sparse)
        if per_sample_weights is not None:
            taken = taken * per_sample_weights.unsqueeze(-1)
        if keep is not None:
            taken = taken * keep.to(taken.dtype).unsqueeze(-1)
        result = _ops.zeros((bags, w.size(1)), dtype=taken.dtype, device=taken.device).index_add(0, bag, taken)
    else:
        result = _ops._embedding_bag_sums(w, i, ends, per_sample_weights, padding)
    if mode == 0:
        # what PyTorch leaves of the other results where sums need none of them
        nothing = i.new_zeros(starts.size(0))
        return result, i.new_zeros(0) if keep is None else bag.to(i.dtype), nothing, nothing.clone()
    return result / sizes.clamp_min(1).unsqueeze(-1), bag.to(i.dtype), sizes.to(i.dtype), sizes.to(i.dtype)
