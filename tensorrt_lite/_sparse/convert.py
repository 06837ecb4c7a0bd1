"""Conversions between strided tensors and the sparse layouts. All are composed of indexing, so that gradients follow."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._sparse.parts import (
    BSC,
    BSR,
    COO,
    CSC,
    CSR,
    LAYOUTS,
    NAMES,
    batch_dims,
    check_places,
    coalesce,
    coo_of,
    element_indices,
    has_rows,
    int64,
    is_blocked,
    is_sparse,
    layout_number,
    linear_keys,
    make_compressed,
    make_coo,
    number_of,
    ops,
    parts,
    recorded,
    values_at,
    values_of,
    with_values,
)

_NAMED = {"coo": COO, "csr": CSR, "csc": CSC, "bsr": BSR, "bsc": BSC}


def to_dense(t: Any, dtype: Any = None, masked_grad: bool | None = None) -> Any:
    """All elements, strided."""
    if not is_sparse(t):
        if masked_grad is not None and not isinstance(masked_grad, bool):
            raise TypeError("to_dense(): argument 'masked_grad' must be bool")
        return t if dtype is None or dtype is t.dtype else t.to(dtype)
    if masked_grad is False:
        r = recorded(lambda x: spread(x.detach()), lambda grad, needs, x: (grad,), t)
    else:
        r = spread(t)
    return r if dtype is None else r.to(dtype)


def spread(t: Any) -> Any:
    """The strided tensor, composed of the values."""
    p = parts(t)
    v = values_of(t)
    out = v.detach().new_zeros(tuple(t.shape))
    if p.layout == COO:
        if not p.sparse_dim:
            return v.sum(0) if v.dtype.is_floating_point or v.dtype.is_complex else v.sum(0).to(v.dtype)
        if not v.numel():
            return _without_entries(out, v)
        return out.index_put(tuple(p.indices), v, accumulate=not p.coalesced)
    if not v.numel():
        return _without_entries(out, v)
    n = batch_dims(p)
    at, _ = element_indices(t)
    if not is_blocked(p.layout):
        return out.index_put(tuple(at), v.reshape(-1, *v.shape[n + 1 :]), accumulate=True)
    return out.index_put(block_places(at, p, n), v.reshape(-1, *v.shape[n + 1 :]), accumulate=True)


def _without_entries(zeros: Any, v: Any) -> Any:
    """Zeros, with a history where the values, of which there are none, have one."""
    return zeros + v.sum().to(zeros.dtype) if v.requires_grad else zeros


def block_places(at: Any, p: Any, n: int) -> tuple[Any, ...]:
    """Indices of the elements of all blocks, as they broadcast to (blocks, block rows, block columns)."""
    height, width = p.values.shape[n + 1 : n + 3]
    rows = (at[-2] * height).reshape(-1, 1, 1) + ops.arange(height, device=at.device).reshape(1, -1, 1)
    columns = (at[-1] * width).reshape(-1, 1, 1) + ops.arange(width, device=at.device).reshape(1, 1, -1)
    return (*(b.reshape(-1, 1, 1) for b in at[:-2]), rows, columns)


# ---- to sparse ------------------------------------------------------------------------------------------------------


def to_sparse(t: Any, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None) -> Any:
    """In coordinates, or in another layout."""
    if layout is not None and sparse_dim is not None:
        raise TypeError("to_sparse() received an invalid combination of arguments: sparse_dim and layout")
    number = COO if layout is None else layout_number(layout, "to_sparse")
    if number != COO:
        if number == 0:
            if is_sparse(t):
                return t.to_dense()
            raise RuntimeError("to_sparse: conversion from Strided to Strided is not supported")
        return to_layout(t, str(layout).rpartition("_")[2], blocksize, dense_dim)
    if blocksize is not None:
        raise RuntimeError("to_sparse: conversion to Sparse layout with blocksize argument given is not supported")
    if not is_sparse(t):
        n = t.dim() if sparse_dim is None else int(sparse_dim)
        if dense_dim is not None:
            n = t.dim() - dense_dim
        return coordinates_of(t, n)
    p = parts(t)
    if p.layout == COO:
        if sparse_dim is not None and sparse_dim != p.sparse_dim:
            raise RuntimeError("to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported")
        return t
    if sparse_dim is not None and sparse_dim != 2 + batch_dims(p):
        raise RuntimeError(f"to_sparse: conversion from {NAMES[p.layout]} to Sparse with sparse_dim argument != {2 + batch_dims(p)} is not supported")
    return compressed_to_coo(t)


def coordinates_of(t: Any, sparse_dim: int) -> Any:
    """The elements of a strided tensor that are not zero."""
    if t.dim() == 0:
        zero = not bool(t.detach() != 0)
        v = t.reshape(1)[:0] if zero else t.reshape(1)
        return coo_of(ops.zeros((0, v.size(0)), dtype=int64, device=t.device), v, (), True)
    if not 0 < sparse_dim <= t.dim():
        raise RuntimeError(f"to_sparse: sparse_dim argument must be in range [1, {t.dim()}], but {sparse_dim} was given")
    chosen = ops.ne(t.detach(), 0)
    if sparse_dim < t.dim():
        chosen = chosen.reshape(*t.shape[:sparse_dim], -1).any(-1) if t.numel() else chosen.new_zeros(t.shape[:sparse_dim])
    at = chosen.nonzero().t().contiguous()
    return coo_of(at, t[tuple(at)], t.shape, True)


def compressed_to_coo(t: Any) -> Any:
    """A compressed tensor in coordinates; the elements of blocks one by one."""
    p = parts(t)
    n = batch_dims(p)
    at, _ = element_indices(t)
    v = values_of(t)
    v = v.reshape(-1, *v.shape[n + 1 :]) if v.numel() else v.reshape(at.size(1), *v.shape[n + 1 :])
    if is_blocked(p.layout):
        places = [x.expand(v.shape[:3]).reshape(-1) for x in block_places(at, p, n)]
        at, v = ops.stack(places), v.reshape(-1, *v.shape[3:]) if v.numel() else v.reshape(0, *v.shape[3:])
    if p.layout != CSR and at.size(1) > 1:
        order = ops.sort(linear_keys(at, t.shape[: n + 2]), dim=0, stable=True)[1]
        at, v = at.index_select(1, order), v.index_select(0, order)
    return coo_of(at, v, t.shape, True)


def _blocks(blocksize: Any, name: str) -> tuple[int, int]:
    if type(blocksize) is int:
        blocksize = (blocksize, blocksize)
    if not isinstance(blocksize, (tuple, list)) or len(blocksize) != 2:
        raise RuntimeError(
            f"{name}: blocksize needs to be a tuple of size 2, but got {len(blocksize) if isinstance(blocksize, (tuple, list)) else blocksize}"
        )
    height, width = (int(b) for b in blocksize)
    if height <= 0 or width <= 0:
        raise RuntimeError(f"{name}: blocksize needs to be positive, but got ({height}, {width})")
    return height, width


def to_layout(t: Any, named: str, blocksize: Any, dense_dim: int | None) -> Any:
    """In one of the compressed layouts."""
    kind = _NAMED[named]
    name = f"to_sparse_{named}"
    if is_blocked(kind):
        blocksize = _blocks(blocksize, name)
    elif blocksize is not None:
        raise RuntimeError(f"to_sparse for {NAMES[number_of(t)]} to {NAMES[kind]} conversion does not use specified blocksize")
    if not is_sparse(t):
        return _compress(t, kind, blocksize, dense_dim or 0, name)
    if dense_dim is not None and dense_dim != parts(t).dense_dim:
        raise RuntimeError(f"{name}: conversion from {NAMES[number_of(t)]} to {NAMES[kind]} with dense_dim argument given is not supported")
    p = parts(t)
    if p.layout == kind and (not is_blocked(kind) or tuple(p.values.shape[batch_dims(p) + 1 : batch_dims(p) + 3]) == blocksize):
        return t
    if p.layout == COO:
        if p.sparse_dim != 2:
            raise RuntimeError(
                f"Only tensors with two sparse dimensions can be converted to the {NAMES[kind]} layout, got self with {p.sparse_dim} sparse dimensions."
            )
        return _from_coo(coalesce(t), kind, blocksize, name)
    if batch_dims(p):
        return _compress(t.to_dense(), kind, blocksize, p.dense_dim, name)
    return _from_coo(compressed_to_coo(t), kind, blocksize, name)


def _check_blocks(size: Any, n: int, blocksize: tuple[int, int], name: str) -> None:
    for d, b in zip((n, n + 1), blocksize):
        if size[d] % b:
            raise RuntimeError(
                f"{name}: tensor sparse size ({size[n]},{size[n + 1]}) must be divisible by given blocksize ({blocksize[0]},{blocksize[1]})"
            )


def _compress(t: Any, kind: int, blocksize: Any, dense_dim: int, name: str) -> Any:
    """A strided tensor (*batch, rows, columns, *dense)."""
    n = t.dim() - 2 - dense_dim
    if n < 0 or dense_dim < 0:
        raise RuntimeError(f"{name}: expected at least two dimensions beside {dense_dim} dense ones, got a tensor of shape {list(t.shape)}")
    size, batch, dense = tuple(t.shape), tuple(t.shape[:n]), tuple(t.shape[n + 2 :])
    height, width = blocksize or (1, 1)
    _check_blocks(size, n, (height, width), name)
    rows, columns = size[n] // height, size[n + 1] // width
    count = 1
    for extent in batch:
        count *= extent
    # (batch, rows, columns, block rows, block columns, *dense)
    cells = t.reshape(count, rows, height, columns, width, *dense).transpose(2, 3)
    chosen = ops.ne(cells.detach(), 0)
    if not t.numel():
        chosen = ops.zeros((count, rows, columns), dtype=chosen.dtype, device=t.device)
    elif height * width > 1 or dense:
        chosen = chosen.reshape(count, rows, columns, -1).any(-1)
    else:
        chosen = chosen.reshape(count, rows, columns)
    if not has_rows(kind):
        chosen, cells = chosen.transpose(1, 2), cells.transpose(1, 2)
    lengths = chosen.sum(-1)
    each = lengths.sum(-1)
    if count > 1 and not bool((each == each[0]).all()):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    entries = int(each[0]) if count else 0
    at = chosen.nonzero()
    found = cells[at[:, 0], at[:, 1], at[:, 2]]
    block = (height, width) if is_blocked(kind) else ()
    compressed = (
        ops.pad(lengths.cumsum(-1), (1, 0)).reshape(*batch, -1) if count else ops.zeros((*batch, chosen.size(1) + 1), dtype=int64, device=t.device)
    )
    found = found.reshape(*batch, entries, *block, *dense)
    pattern = make_compressed(kind, compressed, at[:, 2].reshape(*batch, entries).contiguous(), found.detach(), size)
    return with_values(pattern, found)


def _from_coo(t: Any, kind: int, blocksize: Any, name: str) -> Any:
    """A coalesced tensor with two sparse dimensions."""
    p = parts(t)
    size = tuple(t.shape)
    check_places(p.indices, size)
    v = values_of(t)
    rows, columns = p.indices[0], p.indices[1]
    if is_blocked(kind):
        height, width = blocksize
        _check_blocks(size, 0, blocksize, name)
        across = (size[1] // width) if kind == BSR else (size[0] // height)
        line, plain = (rows // height, columns // width) if kind == BSR else (columns // width, rows // height)
        keys, inverse = ops.unique(line * across + plain, return_inverse=True)
        found = v.new_zeros((keys.size(0), height, width, *size[2:]))
        if v.numel():
            found = found.index_put((inverse, rows % height, columns % width), v)
        lines = size[0] // height if kind == BSR else size[1] // width
        line, plain, v = (keys // across, keys % across, found) if across else (keys, keys, found)
    else:
        line, plain, lines = (rows, columns, size[0]) if kind == CSR else (columns, rows, size[1])
        if kind == CSC and line.size(0) > 1:
            order = ops.sort(line, dim=0, stable=True)[1]
            line, plain, v = line.index_select(0, order), plain.index_select(0, order), v.index_select(0, order)
    # where a line begins among the sorted ones
    compressed = ops.searchsorted(line.contiguous(), ops.arange(lines + 1, device=line.device))
    pattern = make_compressed(kind, compressed, plain.contiguous(), v.detach(), size)
    return with_values(pattern, v)


# ---- masks ----------------------------------------------------------------------------------------------------------


def sparse_mask(t: Any, mask: Any) -> Any:
    """The elements at the indices of a sparse tensor, in its layout."""
    if not is_sparse(mask):
        if is_sparse(t):
            raise RuntimeError("sparse_mask: expected a sparse mask, got a strided one")
        raise RuntimeError("sparse_mask(): argument 'mask' must be a sparse tensor")
    if tuple(t.shape) != tuple(mask.shape):
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(t.shape)} but mask has size {list(mask.shape)}")
    p = parts(mask)
    pattern = mask.detach() if mask.requires_grad else mask
    like = p.values if p.values.dtype is t.dtype else p.values.to(t.dtype)
    if p.layout == COO and not p.coalesced and not is_sparse(t):
        pattern = coalesce(pattern)
        like = parts(pattern).values.to(t.dtype)
    found = values_at(t, pattern, like)
    if p.layout == COO:
        q = parts(pattern)
        made = make_coo(q.indices, found.detach(), t.shape, q.coalesced)
    else:
        made = make_compressed(p.layout, p.compressed, p.plain, found.detach(), t.shape)
    return with_values(made, found)


__all__ = ["LAYOUTS", "coordinates_of", "sparse_mask", "spread", "to_dense", "to_layout", "to_sparse"]
