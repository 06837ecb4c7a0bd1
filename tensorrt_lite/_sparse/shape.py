"""Reordering, selecting and joining sparse tensors: work on the indices, and indexing of the values."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._sparse.parts import (
    BSC,
    BSR,
    COO,
    CSC,
    CSR,
    coalesce,
    coo_of,
    is_blocked,
    is_sparse,
    make_compressed,
    number_of,
    ops,
    parts,
    values_of,
    with_values,
)
from tensorrt_lite._sparse.table import operator, public
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_convert = _LazyModule("tensorrt_lite._sparse.convert")
_parts = _LazyModule("tensorrt_lite._sparse.parts")

_TURNED = {CSR: CSC, CSC: CSR, BSR: BSC, BSC: BSR}


def _wrap(d: Any, n: int) -> int:
    n = max(n, 1)
    if not -n <= d < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
    return d % n


@operator("permute")
def permute(t: Any, dims: Any) -> Any:
    if len(dims) != t.dim():
        raise RuntimeError(
            f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {t.dim()} "
            f"is not equal to len(dims) = {len(dims)}"
        )
    order = [_wrap(d, t.dim()) for d in dims]
    if len(set(order)) != len(order):
        raise RuntimeError("permute(sparse_coo): duplicate dims are not allowed")
    if number_of(t) != COO:
        if t.dim() == 2 and order == [1, 0]:
            return transpose(t, 0, 1)
        return t if order == list(range(t.dim())) else NotImplemented
    p = parts(t)
    n = p.sparse_dim
    if any((d < n) != (i < n) for i, d in enumerate(order)):
        raise RuntimeError("permute(sparse_coo): sparse and dense dimensions cannot change places")
    size = [t.shape[d] for d in order]
    v = values_of(t)
    v = v.permute([0, *(d - n + 1 for d in order[n:])]) if order[n:] != list(range(n, t.dim())) else v
    indices = ops.stack([p.indices[d] for d in order[:n]]) if n else p.indices
    return coo_of(indices, v, size, p.coalesced and order[:n] == list(range(n)))


@operator("transpose")
def transpose(t: Any, dim0: int, dim1: int) -> Any:
    a, b = _wrap(dim0, t.dim()), _wrap(dim1, t.dim())
    if a == b:
        return t
    if number_of(t) == COO:
        order = list(range(t.dim()))
        order[a], order[b] = order[b], order[a]
        return permute(t, order)
    p = parts(t)
    n = p.compressed.dim() - 1
    if {a, b} != {n, n + 1}:
        raise RuntimeError(f"transpose(): of {t.layout} only the two sparse dimensions can change places, got {dim0} and {dim1}")
    v = values_of(t)
    v = v.transpose(n + 1, n + 2).contiguous() if is_blocked(p.layout) else v
    size = list(t.shape)
    size[a], size[b] = size[b], size[a]
    made = make_compressed(_TURNED[p.layout], p.compressed, p.plain, v.detach(), size)
    return with_values(made, v)


@operator("t")
def turned(t: Any) -> Any:
    if t.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {t.dim()}D")
    return t if t.dim() < 2 else transpose(t, 0, 1)


@public("t_", "transpose_", "swapaxes_", "swapdims_")
def transpose_in_place(t: Any, *dims: int) -> Any:
    if number_of(t) != COO:
        return NotImplemented
    target, (t,) = t, _parts.before_writing(t, (t,))
    return _parts.assign(target, transpose(t, *(dims or (0, 1))) if t.dim() > 1 else t, "transpose_")


def _coordinates(t: Any, name: str) -> Any:
    if number_of(t) != COO:
        raise RuntimeError(f"{name}: not implemented for {t.layout} tensors: convert with to_sparse() first")
    return parts(t)


@operator("unsqueeze")
def unsqueeze(t: Any, dim: int) -> Any:
    p = _coordinates(t, "unsqueeze")
    d = _wrap(dim, t.dim() + 1)
    size = (*t.shape[:d], 1, *t.shape[d:])
    if d <= p.sparse_dim:
        indices = ops.cat([p.indices[:d], ops.zeros((1, p.indices.size(1)), dtype=p.indices.dtype, device=t.device), p.indices[d:]])
        return coo_of(indices, values_of(t), size, p.coalesced)
    return coo_of(p.indices, values_of(t).unsqueeze(d - p.sparse_dim + 1), size, p.coalesced)


@operator("squeeze")
def squeeze(t: Any, dim: Any = None) -> Any:
    p = _coordinates(t, "squeeze")
    chosen = range(t.dim()) if dim is None else [_wrap(d, t.dim()) for d in (dim if isinstance(dim, (tuple, list)) else [dim])]
    gone = {d for d in chosen if t.shape[d] == 1}
    kept = [d for d in range(p.sparse_dim) if d not in gone]
    v = values_of(t)
    v = v.reshape(v.size(0), *(t.shape[d] for d in range(p.sparse_dim, t.dim()) if d not in gone))
    indices = ops.stack([p.indices[d] for d in kept]) if kept else p.indices[:0]
    return coo_of(indices, v, [n for d, n in enumerate(t.shape) if d not in gone], p.coalesced)


@public("view")
def view(t: Any, *args: Any, **kwargs: Any) -> Any:
    key = ("Sparse" if number_of(t) == COO else "SparseCsr") + t.device.type.upper()
    raise NotImplementedError(f"Could not run 'aten::view' with arguments from the '{key}' backend.")


@public("reshape", "flatten", "ravel", "unflatten")
def reshape(t: Any, *args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("reshape is not implemented for sparse tensors")


# ---- selection ------------------------------------------------------------------------------------------------------


def _kept(t: Any, p: Any, chosen: Any, indices: Any, size: Any) -> Any:
    """The entries of a coordinate tensor that a mask chooses, under other indices."""
    at = chosen.nonzero().reshape(-1)
    return coo_of(indices.index_select(1, at), values_of(t).index_select(0, at), size, p.coalesced)


@operator("select")
def select(t: Any, dim: int, index: int) -> Any:
    if t.dim() == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = _wrap(dim, t.dim())
    n = t.shape[d]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(t.shape)} at dimension {d}")
    if number_of(t) != COO:
        p = parts(t)
        batch = p.compressed.dim() - 1
        if d >= batch:
            return select(_convert.to_sparse(t), d, index) if not batch else NotImplemented
        v = values_of(t).select(d, index % n)
        made = make_compressed(
            p.layout, p.compressed.select(d, index % n), p.plain.select(d, index % n), v.detach(), [x for k, x in enumerate(t.shape) if k != d]
        )
        return with_values(made, v)
    p = parts(t)
    size = [x for k, x in enumerate(t.shape) if k != d]
    if d >= p.sparse_dim:
        return coo_of(p.indices, values_of(t).select(d - p.sparse_dim + 1, index % n), size, p.coalesced)
    chosen = ops.eq(p.indices[d], index % n)
    if p.sparse_dim == 1:
        return values_of(t).index_select(0, chosen.nonzero().reshape(-1)).sum(0, dtype=t.dtype)
    return _kept(t, p, chosen, ops.cat([p.indices[:d], p.indices[d + 1 :]]), size)


def narrowed(t: Any, dim: int, start: int, length: int) -> Any:
    """The part of a dimension from start on."""
    p = _coordinates(t, "narrow_copy")
    d = _wrap(dim, t.dim())
    size = list(t.shape)
    if not 0 <= start <= size[d] or length < 0 or start + length > size[d]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size[d]}).")
    size[d] = length
    if d >= p.sparse_dim:
        return coo_of(p.indices, values_of(t).narrow(d - p.sparse_dim + 1, start, length), size, p.coalesced)
    line = p.indices[d]
    shifted = ops.cat([p.indices[:d], (line - start).unsqueeze(0), p.indices[d + 1 :]])
    return _kept(t, p, (line >= start) & (line < start + length), shifted, size)


@public("narrow_copy", "narrow")
def narrow_copy(t: Any, dim: int, start: Any, length: int) -> Any:
    start = int(start)
    return narrowed(t, dim, start + t.shape[dim] if start < 0 else start, length)


@operator("slice")
def slice_(t: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    d = _wrap(dim, t.dim())
    begin, stop, _ = slice(start, end, 1).indices(t.shape[d])
    if step != 1:
        return index_select(t, d, ops.arange(begin, stop, step, device=t.device))
    return narrowed(t, d, begin, max(stop - begin, 0))


@operator("index_select")
def index_select(t: Any, dim: int, index: Any) -> Any:
    if not is_sparse(t):
        return NotImplemented
    p = _coordinates(t, "index_select")
    d = _wrap(dim, t.dim())
    if index.dim() > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    index = index.reshape(-1).to(p.indices.dtype)
    n, count = t.shape[d], index.size(0)
    if count and (int(index.min()) < -n or int(index.max()) >= n):
        raise IndexError(f"index_select(): index contains a value that is out of range for tensor of size {list(t.shape)} at dimension {d}")
    index = ops.where(index < 0, index + n, index)
    size = list(t.shape)
    size[d] = count
    if d >= p.sparse_dim:
        return coo_of(p.indices, values_of(t).index_select(d - p.sparse_dim + 1, index), size, p.coalesced)
    ordered, order = ops.sort(index, dim=0, stable=True)
    line = p.indices[d].contiguous()
    first, last = ops.searchsorted(ordered, line), ops.searchsorted(ordered, line, right=True)
    times = last - first
    which = ops.repeat_interleave(ops.arange(line.size(0), device=line.device), times)
    offset = ops.arange(which.size(0), device=line.device) - (times.cumsum(0) - times).index_select(0, which)
    place = order.index_select(0, first.index_select(0, which) + offset)
    indices = p.indices.index_select(1, which)
    indices = ops.cat([indices[:d], place.unsqueeze(0), indices[d + 1 :]])
    return coo_of(indices, values_of(t).index_select(0, which), size)


@operator("embedding")
def embedding(weight: Any, indices: Any, *options: Any) -> Any:
    """Rows of a sparse matrix by a vector of indices."""
    return index_select(weight, 0, indices) if is_sparse(weight) and number_of(weight) == COO and indices.dim() == 1 else NotImplemented


@public("__getitem__")
def getitem(t: Any, index: Any) -> Any:
    found, d = t, 0
    items = index if isinstance(index, tuple) else (index,)
    if sum(x is Ellipsis for x in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    wanted = sum(x is not None and x is not Ellipsis for x in items)
    if wanted > t.dim():
        raise IndexError(f"too many indices for tensor of dimension {t.dim()}")
    for x in items:
        if x is Ellipsis:
            d += t.dim() - wanted
        elif x is None:
            found, d = unsqueeze(found, d), d + 1
        elif isinstance(x, bool):
            return NotImplemented
        elif isinstance(x, int) or hasattr(x, "__index__") and not hasattr(x, "dim"):
            found = select(found, d, int(x)) if is_sparse(found) else found.select(d, int(x))
        elif isinstance(x, slice):
            if x != slice(None):
                found = slice_(found, d, x.start, x.stop, x.step or 1)
            d += 1
        elif hasattr(x, "dim") and x.dim() == 1 and not is_sparse(x):
            found, d = index_select(found, d, x.nonzero().reshape(-1) if str(x.dtype) == "torch.bool" else x), d + 1
        else:
            return NotImplemented
    return found


@public("__setitem__")
def setitem(t: Any, index: Any, value: Any) -> None:
    if is_sparse(t):  # what an index selects of it is a copy
        raise TypeError("Cannot assign to a sparse tensor")
    t[index] = value


@public("unbind")
def unbind(t: Any, dim: int = 0) -> Any:
    d = _wrap(dim, t.dim())
    return tuple(select(t, d, i) for i in range(t.shape[d]))


# ---- joining --------------------------------------------------------------------------------------------------------


@operator("cat")
def cat(tensors: Any, dim: int = 0) -> Any:
    if not all(is_sparse(t) for t in tensors):
        raise RuntimeError("Concatenating sparse tensors, but a dense tensor was found")
    found = [_coordinates(t, "cat") for t in tensors]
    first = tensors[0]
    d = _wrap(dim, first.dim())
    n = found[0].sparse_dim
    for k, (t, p) in enumerate(zip(tensors, found)):
        if p.sparse_dim != n or t.dim() != first.dim():
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {n}, {found[0].dense_dim}, but tensor at position {k} has {p.sparse_dim}, {p.dense_dim}"
            )
        if any(a != b for i, (a, b) in enumerate(zip(t.shape, first.shape)) if i != d):
            raise RuntimeError(
                f"All tensors must have the same shape: {list(first.shape)} (except in the concatenating dimension), but found shape: {list(t.shape)} at position {k}"
            )
    size = list(first.shape)
    size[d] = sum(t.shape[d] for t in tensors)
    indices, values, begin = [], [], 0
    for t, p in zip(tensors, found):
        v, end = values_of(t), begin + t.shape[d]
        if d < n:
            indices.append(ops.cat([p.indices[:d], p.indices[d : d + 1] + begin, p.indices[d + 1 :]]))
        else:
            indices.append(p.indices)
            v = ops.pad(v, [*(0, 0) * (t.dim() - 1 - d), begin, size[d] - end])
        values.append(v)
        begin = end
    joined = ops.cat(indices, 1)
    return coo_of(joined, ops.cat(values), size, len(tensors) == 1 and found[0].coalesced or d == 0 and d < n and all(p.coalesced for p in found))


@public("stack")
def stack(tensors: Any, dim: int = 0) -> Any:
    return cat([unsqueeze(t, dim) for t in tensors], dim if dim >= 0 else dim + tensors[0].dim() + 1)


__all__ = ["coalesce", "permute", "select", "transpose"]
