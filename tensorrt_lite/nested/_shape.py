"""Sizes, views, selections and joins of jagged tensors."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._subclasses.composite_tensor import name_of
from tensorrt_lite._size import Size
from tensorrt_lite.nested._elementwise import mismatch, same_ragged
from tensorrt_lite.nested._structure import NestedInt, structure_of
from tensorrt_lite.nested._tensor import NestedTensor, from_rows, from_sequences, operator
from tensorrt_lite.nested._elementwise import aligned as _aligned

_nn = LazyModule("tensorrt_lite.nn")


def wrapped(dim: int, ndim: int) -> int:
    """A dimension counted from the front. IndexError for absent ones."""
    if not -ndim <= dim < ndim:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
    return dim % ndim


def inner_dim(func: Any, input: Any, dim: int, ragged: bool = False) -> int:
    """The dimension of the values. RuntimeError for the batch's and, unless `ragged`, for the ragged one."""
    d = wrapped(dim, input.dim())
    if d == 0 or d == input._ragged_idx and not ragged:
        raise RuntimeError(f"{name_of(func)}(): not supported for NestedTensor on dim={d}, the {'batch' if d == 0 else 'ragged'} dimension")
    return d - 1


@operator("size")
def _size(func: Any, input: Any, dim: int | None = None) -> Any:
    return input.shape if dim is None else input.shape[wrapped(dim, input.dim())]


@operator("dim", "ndimension")
def _dim(func: Any, input: Any) -> int:
    return int(input.ndim)


@operator("numel", "nelement")
def _numel(func: Any, input: Any) -> int:
    rows = input._values.shape[input._ragged_idx - 1]
    return int(input._values.numel() // rows * input._structure.total) if rows else 0


@operator("stride")
def _stride(func: Any, input: Any, dim: int | None = None) -> Any:
    """Strides of the values; that of the batch is a multiple of the ragged size."""
    inner = input._values.stride()
    below = inner[input._ragged_idx - 1]
    strides = (input._structure.size * below if below else 0, *inner)
    return strides if dim is None else strides[wrapped(dim, input.dim())]


@operator("storage_offset")
def _storage_offset(func: Any, input: Any) -> int:
    return int(input._values.storage_offset())


@operator("__len__")
def _len(func: Any, input: Any) -> int:
    return int(input._structure.batch)


@operator("transpose", "swapaxes", "swapdims")
def _transpose(func: Any, input: Any, dim0: int, dim1: int) -> NestedTensor:
    a, b = wrapped(dim0, input.dim()), wrapped(dim1, input.dim())
    if a == b:
        return input  # type: ignore[no-any-return]
    if 0 in (a, b):
        raise RuntimeError("transpose(): not supported for NestedTensor on dim=0")
    r = input._ragged_idx
    return NestedTensor(input._values.transpose(a - 1, b - 1), input._structure, b if r == a else a if r == b else r)


@operator("mT.__get__", "adjoint")
def _matrix_transpose(func: Any, input: Any) -> NestedTensor:
    return _transpose(func, input, -2, -1)


@operator("permute")
def _permute(func: Any, input: Any, *dims: Any) -> NestedTensor:
    order = dims[0] if len(dims) == 1 and isinstance(dims[0], (list, tuple)) else dims
    if len(order) != input.dim():
        raise RuntimeError(
            f"permute(): number of dimensions in the tensor input ({input.dim()}) does not match the length of the desired ordering of dimensions ({len(order)})."
        )
    order = [wrapped(d, input.dim()) for d in order]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    if order[0] != 0:
        raise RuntimeError("Permute is not supported on the batch dimension for jagged NT")
    return NestedTensor(input._values.permute([d - 1 for d in order[1:]]), input._structure, order.index(input._ragged_idx))


@operator("movedim", "moveaxis")
def _movedim(func: Any, input: Any, source: Any, destination: Any) -> NestedTensor:
    places = trt.empty((0,) * input.dim()).dim()
    order = trt.arange(places).tolist()
    moved = [source] if isinstance(source, int) else list(source)
    to = [destination] if isinstance(destination, int) else list(destination)
    moved, to = [wrapped(d, places) for d in moved], [wrapped(d, places) for d in to]
    rest = [d for d in order if d not in moved]
    for target, d in sorted(zip(to, moved, strict=True)):
        rest.insert(target, d)
    return _permute(func, input, rest)


def _sizes(func: Any, size: Any, kwargs: Any, *names: str) -> list[Any]:
    """Sizes given one by one, as one list, or by one of these names. TypeError without any."""
    if not size:
        size = tuple(kwargs[name] for name in names if name in kwargs)
        if not size:
            raise TypeError(f'{name_of(func)}() missing 1 required positional arguments: "{names[0]}"')
    return list(size[0]) if len(size) == 1 and isinstance(size[0], (list, tuple)) else list(size)


@operator("view", "reshape", "_unsafe_view")
def _view(func: Any, input: Any, *size: Any, **kwargs: Any) -> NestedTensor:
    if len(size) == 1 and isinstance(size[0], trt.dtype):
        return input._with_part(input._values.view(size[0]))  # type: ignore[no-any-return]
    sizes = _sizes(func, size, kwargs, "shape", "size")
    shape, r = input.shape, input._ragged_idx
    refused = RuntimeError(f"{name_of(func)}(): cannot view shape {tuple(shape)} as {tuple(sizes)}: batch and ragged dimension must stay")
    if len(sizes) < 2 or sizes[0] not in (-1, shape[0]):
        raise refused
    places = [i for i, n in enumerate(sizes) if isinstance(n, NestedInt)]
    if not places:
        places = [i for i, n in enumerate(sizes) if i and n == -1]
    if len(places) != 1 or isinstance(sizes[places[0]], NestedInt) and sizes[places[0]] != shape[r]:
        raise refused
    place = places[0]
    inner = sizes[1:]
    inner[place - 1] = input._values.shape[r - 1]
    before = 1
    for n in shape[1:r]:
        before *= n
    ahead = 1
    for n in inner[: place - 1]:
        ahead *= n
    if -1 not in inner[: place - 1] and ahead != before:
        raise refused
    return NestedTensor(getattr(input._values, name_of(func))(inner), input._structure, place)


@operator("reshape_as", "view_as")
def _view_as(func: Any, input: Any, other: Any) -> NestedTensor:
    return _view(trt.Tensor.reshape if name_of(func) == "reshape_as" else trt.Tensor.view, input, other.shape)


@operator("flatten")
def _flatten(func: Any, input: Any, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    start, end = wrapped(start_dim, input.dim()), wrapped(end_dim, input.dim())
    if start == end:
        return input  # type: ignore[no-any-return]
    if start == 0 or start <= input._ragged_idx <= end:
        raise RuntimeError("flatten(): not supported for NestedTensor over the batch or the ragged dimension")
    r = input._ragged_idx
    return NestedTensor(input._values.flatten(start - 1, end - 1), input._structure, r if r < start else r - (end - start))


@operator("unflatten")
def _unflatten(func: Any, input: Any, dim: int, sizes: Any) -> NestedTensor:
    d = inner_dim(func, input, dim)
    r = input._ragged_idx
    return NestedTensor(input._values.unflatten(d, tuple(sizes)), input._structure, r if r - 1 < d else r + len(sizes) - 1)


@operator("squeeze", "squeeze_copy")
def _squeeze(func: Any, input: Any, dim: Any = None) -> NestedTensor:
    dims = range(1, input.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    wanted = [wrapped(d, input.dim()) for d in dims]
    if dim is not None and (0 in wanted or input._ragged_idx in wanted):
        raise RuntimeError("squeeze(): not supported for NestedTensor on the batch or the ragged dimension")
    gone = sorted(d for d in wanted if d != input._ragged_idx and input.shape[d] == 1)
    values = input._values.squeeze(tuple(d - 1 for d in gone)) if gone else input._values
    return NestedTensor(values, input._structure, input._ragged_idx - sum(d < input._ragged_idx for d in gone))


@operator("unsqueeze")
def _unsqueeze(func: Any, input: Any, dim: int) -> NestedTensor:
    d = wrapped(dim, input.dim() + 1)
    if d == 0:
        raise RuntimeError("unsqueeze(): not supported for NestedTensor on dim=0")
    return NestedTensor(input._values.unsqueeze(d - 1), input._structure, input._ragged_idx + (d <= input._ragged_idx))


def _batch_slice(input: Any, start: int, stop: int, step: int = 1) -> NestedTensor:
    """Sequences start to stop."""
    s = input._structure
    if step != 1:
        return from_sequences(input._sequences()[start:stop:step], ragged_idx=input._ragged_idx)
    first = s.starts[start] if start < s.batch else 0
    offsets = s.offsets[start : max(stop, start) + 1]
    if stop <= start:
        return NestedTensor(
            input._values.narrow(input._ragged_idx - 1, 0, 0),
            structure_of(trt.zeros(1, dtype=s.offsets.dtype, device=s.offsets.device)),
            input._ragged_idx,
        )
    end = s.starts[stop - 1] + s.counts[stop - 1]
    if s.lengths is None:
        part = structure_of(offsets - first)
        values = input._values.narrow(input._ragged_idx - 1, first, end - first)
    else:
        part, values = structure_of(offsets, s.lengths[start:stop]), input._values
    return NestedTensor(values, part, input._ragged_idx)


@operator("split", "split_with_sizes", "unsafe_split")
def _split(
    func: Any, tensor: Any, split_size: Any = None, dim: int = 0, *, split_size_or_sections: Any = None, split_sizes: Any = None
) -> tuple[NestedTensor, ...]:
    size = next(s for s in (split_size, split_size_or_sections, split_sizes) if s is not None)
    if wrapped(dim, tensor.dim()) == 0:
        batch, ends = tensor._structure.batch, []
        sizes = [size] * -(-batch // max(size, 1)) if isinstance(size, int) else list(size)
        for n in sizes:
            ends.append((ends[-1] if ends else 0) + n)
        return tuple(_batch_slice(tensor, min(e - n, batch), min(e, batch)) for e, n in zip(ends, sizes, strict=True))
    return tuple(tensor._with_part(v) for v in tensor._values.split(size, inner_dim(func, tensor, dim)))


@operator("chunk", "unsafe_chunk")
def _chunk(func: Any, input: Any, chunks: int, dim: int = 0) -> tuple[NestedTensor, ...]:
    if chunks <= 0:
        raise RuntimeError("chunk expects `chunks` to be greater than 0")
    if wrapped(dim, input.dim()) == 0:
        batch = input._structure.batch
        step = -(-batch // chunks)
        return tuple(_batch_slice(input, i, min(i + step, batch)) for i in range(0, batch, step))
    return tuple(input._with_part(v) for v in input._values.chunk(chunks, inner_dim(func, input, dim)))


@operator("tensor_split")
def _tensor_split(func: Any, input: Any, indices_or_sections: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
    return tuple(input._with_part(v) for v in input._values.tensor_split(indices_or_sections, inner_dim(func, input, dim)))


@operator("narrow")
def _narrow(func: Any, input: Any, dim: int, start: int, length: int) -> NestedTensor:
    d = wrapped(dim, input.dim())
    if d == 0:
        batch = input._structure.batch
        start = start + batch if start < 0 else start
        if not 0 <= start <= batch or length < 0 or start + length > batch:
            raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({batch}).")
        return _batch_slice(input, start, start + length)
    return input._with_part(input._values.narrow(inner_dim(func, input, dim), start, length))  # type: ignore[no-any-return]


@operator("select")
def _select(func: Any, input: Any, dim: int, index: int) -> Any:
    d, s, r = wrapped(dim, input.dim()), input._structure, input._ragged_idx
    if d == 0:
        if not -s.batch <= index < s.batch:
            raise IndexError(f"select(): index {index} out of range for nested tensor of batch size {s.batch}")
        index %= s.batch
        return input._values.narrow(r - 1, s.starts[index], s.counts[index])
    if d == r:
        if any(not -n <= index < n for n in s.counts):
            raise IndexError(f"select(): index {index} out of range for sequences of lengths {s.counts}")
        places = [a + index % n for a, n in zip(s.starts, s.counts, strict=True)]
        rows = input._values.index_select(r - 1, trt.tensor(places, device=input.device))
        return rows if r == 1 else rows.movedim(r - 1, 0)
    return NestedTensor(input._values.select(d - 1, index), s, r - (d < r))


@operator("index_select")
def _index_select(func: Any, input: Any, dim: int, index: Any) -> NestedTensor:
    if wrapped(dim, input.dim()) == 0:
        parts = input._sequences()
        return from_sequences([parts[i] for i in index.tolist()], ragged_idx=input._ragged_idx)
    return input._with_part(input._values.index_select(inner_dim(func, input, dim), index))  # type: ignore[no-any-return]


@operator("__getitem__")
def _getitem(func: Any, input: Any, index: Any) -> Any:
    if isinstance(index, NestedTensor):
        return _masked_select(func, input, index).values()
    items = list(index) if isinstance(index, tuple) else [index]
    used = sum(item is not None and item is not Ellipsis for item in items)
    for place in [i for i, item in enumerate(items) if item is Ellipsis][:1]:
        items[place : place + 1] = [slice(None)] * (input.dim() - used)
    if used > input.dim():
        raise IndexError(f"too many indices for tensor of dimension {input.dim()}")
    out, dim = input, 0
    for i, item in enumerate(items):
        if not isinstance(out, NestedTensor):  # one sequence was chosen: the rest is for a dense tensor
            return out[(slice(None),) * dim + tuple(items[i:])]
        if item is None:
            out, dim = out.unsqueeze(dim), dim + 1
        elif isinstance(item, int) and not isinstance(item, bool):
            out = out.select(dim, item)
        elif isinstance(item, slice):
            out, dim = _slice(func, out, dim, item), dim + 1
        else:
            raise NotImplementedError(f"indexing a nested tensor with {type(item).__name__} is not implemented (docs/gaps.md)")
    return out


def _slice(func: Any, input: Any, dim: int, item: slice) -> Any:
    if item == slice(None):
        return input
    if dim == 0:
        return _batch_slice(input, *item.indices(input._structure.batch))
    if dim == input._ragged_idx:
        return from_sequences([t[(slice(None),) * (dim - 1) + (item,)] for t in input._sequences()], ragged_idx=dim)
    return input._with_part(input._values[(slice(None),) * (dim - 1) + (item,)])


@operator("unbind")
def _unbind(func: Any, input: Any, dim: int = 0) -> Any:
    d = wrapped(dim, input.dim())
    if d == 0:
        return tuple(input._sequences())
    r = input._ragged_idx
    return tuple(NestedTensor(v, input._structure, r - (d < r)) for v in input._values.unbind(inner_dim(func, input, d)))


@operator("__iter__")
def _iter(func: Any, input: Any) -> Any:
    return iter(input._sequences())


@operator("cat", "concat", "concatenate")
def _cat(func: Any, tensors: Any, dim: int = 0, *, axis: int | None = None) -> NestedTensor:
    nested = [t for t in tensors if isinstance(t, NestedTensor)]
    d = wrapped(dim if axis is None else axis, nested[0].dim())
    if d == 0:
        if len(nested) != len(tensors) or len({t._ragged_idx for t in nested}) > 1:
            raise mismatch(func, *tensors)
        parts = [t._compacted() for t in nested]
        return from_sequences([s for t in parts for s in t._sequences()], ragged_idx=nested[0]._ragged_idx)
    whole = [t if isinstance(t, NestedTensor) else _expand_to(func, t, nested[0]) for t in tensors]
    if d == nested[0]._ragged_idx:
        if any(t._ragged_idx != d or t._structure.batch != nested[0]._structure.batch for t in whole):
            raise mismatch(func, *tensors)
        return from_sequences([trt.cat(parts, d - 1) for parts in zip(*(t._sequences() for t in whole), strict=True)], ragged_idx=d)
    whole = same_ragged(func, whole)
    return whole[0]._with_part(trt.cat([t._values for t in whole], d - 1))


def _expand_to(func: Any, dense: Any, nt: NestedTensor) -> NestedTensor:
    """A dense tensor as one of the raggedness of `nt`, repeated along it."""
    values = _aligned(func, dense, nt)
    sizes = list(values.shape)
    sizes[nt._ragged_idx - 1 - nt._values.dim()] = nt._values.shape[nt._ragged_idx - 1]
    return nt._with_part(values.expand(sizes))


@operator("stack")
def _stack(func: Any, tensors: Any, dim: int = 0) -> NestedTensor:
    whole = same_ragged(func, list(tensors))
    d = wrapped(dim, whole[0].dim() + 1)
    if d == 0:
        raise RuntimeError("stack(): not supported for NestedTensor on dim=0")
    r = whole[0]._ragged_idx
    return NestedTensor(trt.stack([t._values for t in whole], d - 1), whole[0]._structure, r + (d <= r))


@operator("expand", "broadcast_to")
def _expand(func: Any, input: Any, *size: Any, **kwargs: Any) -> Any:
    sizes = _sizes(func, size, kwargs, "size")
    nested = [n for n in sizes if isinstance(n, NestedInt)]
    r = input._ragged_idx
    if len(sizes) != input.dim() or sizes[0] not in (-1, input.shape[0]) or sizes[r] not in (-1, input.shape[r]) or len(nested) > 1:
        raise RuntimeError(f"{name_of(func)}(): cannot expand shape {tuple(input.shape)} -> {tuple(sizes)}")
    return input._with_part(input._values.expand([-1 if d == r else n for d, n in enumerate(sizes)][1:]))


@operator("expand_as")
def _expand_as(func: Any, input: Any, other: Any) -> Any:
    if isinstance(other, NestedTensor):
        return _expand(func, input, other.shape) if isinstance(input, NestedTensor) else _expand_to(func, input, other)
    raise mismatch(func, input, other)


@operator("broadcast_tensors")
def _broadcast_tensors(func: Any, *tensors: Any) -> Any:
    tensors = tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    [nt, *_] = [t for t in tensors if isinstance(t, NestedTensor)]
    return tuple(t if isinstance(t, NestedTensor) else _expand_to(func, t, nt) for t in tensors)


@operator("to_padded_tensor", "to_padded")
def _to_padded_tensor(func: Any, input: Any, padding: float, output_size: Any = None) -> Any:
    if output_size is None:
        return input._padded(padding)
    r, sizes = input._ragged_idx, tuple(output_size)
    longest = input._structure.longest
    if len(sizes) != input.dim() or sizes[r] < longest or any(n < m for d, (n, m) in enumerate(zip(sizes, input.shape, strict=True)) if d != r):
        raise RuntimeError(f"to_padded_tensor(): output_size {Size(sizes)} is less than what the tensor {tuple(input.shape)} needs")
    padded = input._padded(padding, sizes[r])
    extra = [0] * (2 * len(sizes))
    for d, (n, m) in enumerate(zip(sizes, padded.shape, strict=True)):
        extra[2 * (len(sizes) - 1 - d) + 1] = n - m
    return _nn.functional.pad(padded, extra, value=padding) if any(extra) else padded


@operator("masked_select")
def _masked_select(func: Any, input: Any, mask: Any) -> NestedTensor:
    """(B, j): the elements of each sequence where the mask is True."""
    if not isinstance(mask, NestedTensor):
        mask = _expand_to(func, mask, input)
    pairs = zip(input._sequences(), mask._sequences(), strict=True)
    return from_sequences([trt.masked_select(t, m) for t, m in pairs], ragged_idx=1)


@operator("new_empty", "new_zeros", "new_ones", "new_full", "new_tensor")
def _new(func: Any, input: Any, *args: Any, **kwargs: Any) -> Any:
    return func(input._values, *args, **kwargs)


@operator("index_put", "index_put_", "__setitem__")
def _index_put(func: Any, input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """input[indices] = values: by one index the sequences, by two rows in them, by more elements."""
    name = name_of(func)
    given = list(indices) if isinstance(indices, (tuple, list)) else [indices]
    if not all(isinstance(i, trt.Tensor) and i.dtype not in (trt.bool,) for i in given) or input._ragged_idx != 1:
        raise NotImplementedError(f"{name}() of nested tensors takes tensors of integers for a ragged second dimension (docs/gaps.md)")
    out = input if name.endswith("_") else input._with_part(input._values.clone())
    s = input._structure
    starts = s.offsets[:-1].to(trt.int64)
    if len(given) == 1:
        chosen = trt.isin(s.sequence, given[0].to(trt.int64)).nonzero().flatten()
        rows = chosen if s.rows is None else s.rows.index_select(0, chosen)
        inner = [rows]
    else:
        batch, place = trt.broadcast_tensors(given[0].to(trt.int64), given[1].to(trt.int64))
        if bool((place >= s.counts_tensor.to(trt.int64)[batch]).any()):
            raise IndexError(f"{name}(): an index is out of range for sequences of lengths {s.counts}")
        inner = [starts[batch] + place, *given[2:]]
    out._values.index_put_(tuple(inner), values if isinstance(values, trt.Tensor) else trt.tensor(values, dtype=input.dtype), accumulate)
    return None if name == "__setitem__" else out


def rows_like(input: Any, rows: Any) -> NestedTensor:
    """Compacted rows as a nested tensor of the input's structure without holes."""
    return from_rows(rows, input._structure.compact, input._ragged_idx)
