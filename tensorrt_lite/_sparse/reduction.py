"""Reductions of sparse tensors, and softmax over their stored entries."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._sparse.convert import to_dense, to_layout, to_sparse
from tensorrt_lite._sparse.parts import (
    COO,
    CSR,
    coalesce,
    coo_of,
    group_sums,
    grouped,
    int64,
    is_sparse,
    linear_keys,
    make_compressed,
    number_of,
    ops,
    parts,
    run_starts,
    values_of,
    with_values,
)
from tensorrt_lite._sparse.shape import unsqueeze
from tensorrt_lite._sparse.table import operator, public


def _dims(t: Any, dim: Any) -> list[int]:
    given = list(dim) if isinstance(dim, (tuple, list)) else [dim]
    n = max(t.dim(), 1)
    found = []
    for d in given:
        if not -n <= d < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
        if d % n in found:
            raise RuntimeError(f"dim {d % n} appears multiple times in the list of dims")
        found.append(d % n)
    return sorted(found)


def _total_type(v: Any, dtype: Any) -> Any:
    return v if dtype is None else v.to(dtype)


def sparse_sum(t: Any, dim: Any = None, dtype: Any = None, keepdim: bool = False) -> Any:
    """The sum over dim; sparse while a sparse dimension is left."""
    if dim is None or isinstance(dim, (tuple, list)) and not dim:
        total = ops.sum(_total_type(values_of(t), dtype))
        return total.reshape((1,) * t.dim()) if keepdim and t.dim() else total
    if number_of(t) != COO:
        return _compressed_sum(t, dim, dtype, keepdim)
    p = parts(t)
    dims = _dims(t, dim)
    v = _total_type(values_of(t), dtype)
    over = [d for d in dims if d < p.sparse_dim]
    inside = [d - p.sparse_dim + 1 for d in dims if d >= p.sparse_dim]
    if inside:
        v = ops.sum(v, inside)
    elif dtype is None and not (v.is_floating_point() or v.is_complex()):
        v = v.to(ops.sum(v.reshape(-1)[:0]).dtype)
    left = [d for d in range(p.sparse_dim) if d not in over]
    if not left:
        made = ops.sum(v, 0)
    else:
        size = (*(t.shape[d] for d in left), *v.shape[1:])
        made = coo_of(ops.stack([p.indices[d] for d in left]), v, size, p.coalesced and not over)
        made = coalesce(made) if over else made
    for d in dims if keepdim else ():
        made = unsqueeze(made, d) if left else made.unsqueeze(d)  # at the border a kept dimension becomes a sparse one, as in PyTorch
    return made


def _compressed_sum(t: Any, dim: Any, dtype: Any, keepdim: bool) -> Any:
    dims = _dims(t, dim)
    if parts(t).compressed.dim() > 1 or number_of(t) != 2 or not keepdim or t.dim() != 2:
        raise RuntimeError(
            f"sum: reductions of {t.layout} tensors over dimensions need keepdim=True, and a sparse_csr matrix without batch and dense dimensions"
        )
    if dims == [1]:
        return _row_sums(t, dtype)
    made = sparse_sum(to_sparse(t), dims, dtype, True)
    return to_layout(made if is_sparse(made) else to_sparse(made), "csr", None, None)


def _row_sums(t: Any, dtype: Any) -> Any:
    """The sums of a sparse_csr matrix's rows that have entries, as a sparse_csr column."""
    p = parts(t)
    v = _total_type(values_of(t), dtype)
    if dtype is None and not (v.is_floating_point() or v.is_complex()):
        v = v.to(int64)
    starts = p.compressed.to(int64)
    filled = ops.gt(starts[1:], starts[:-1])
    rows = filled.nonzero().reshape(-1)
    sums = group_sums(v, ops.arange(v.size(0), device=v.device), starts).index_select(0, rows)
    compressed = ops.pad(filled.cumsum(0), (1, 0)).to(p.compressed.dtype)
    pattern = make_compressed(CSR, compressed, ops.zeros(rows.size(0), dtype=p.plain.dtype, device=v.device), sums.detach(), (t.size(0), 1))
    return with_values(pattern, sums)


@operator("sum")
def row_sum(t: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    return sparse_sum(t, dim, dtype, keepdim)


@operator("any")
def row_any(t: Any, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is not None and dim != ():
        return NotImplemented
    return ops.any(values_of(coalesce(t) if number_of(t) == COO else t))


@public("norm", "frobenius_norm", "vector_norm", "linalg_vector_norm")
def norm(t: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None, **options: Any) -> Any:
    if dim is not None and sorted(_dims(t, dim)) != list(range(t.dim())):
        return NotImplemented
    order = 2.0 if p is None or p == "fro" else p
    v = values_of(coalesce(t) if number_of(t) == COO else t)
    if isinstance(order, (int, float)) and order <= 0:
        return NotImplemented
    return ops.norm(v.reshape(-1) if dtype is None else v.reshape(-1).to(dtype), order)


@public("mean")
def mean(t: Any, *args: Any, **kwargs: Any) -> Any:
    return NotImplemented


# ---- softmax --------------------------------------------------------------------------------------------------------


def softmax(t: Any, dim: int, dtype: Any, log: bool) -> Any:
    """softmax along dim over the stored entries: what is not stored counts as minus infinity."""
    name = "log_softmax" if log else "softmax"
    if not is_sparse(t) or number_of(t) != COO:
        raise RuntimeError(f"sparse.{name}: expected a sparse_coo tensor, got {t.layout}")
    if not -t.dim() <= dim < t.dim():
        raise IndexError(f"Dimension out of range (expected to be in range of [{-t.dim()}, {t.dim() - 1}], but got {dim})")
    t = coalesce(t)
    p = parts(t)
    d = dim % t.dim()
    v = _total_type(values_of(t), dtype)
    if d >= p.sparse_dim:
        f = ops.log_softmax if log else ops.softmax
        return coo_of(p.indices, f(v, d - p.sparse_dim + 1), t.shape, True)
    if not v.numel():
        return coo_of(p.indices, v, t.shape, True)
    rest = [k for k in range(p.sparse_dim) if k != d]
    order, starts = None, ops.tensor([0, v.size(0)], device=v.device)
    if rest:
        keys = linear_keys(p.indices.index_select(0, ops.tensor(rest, device=v.device)), [t.shape[k] for k in rest])
        # lines along the last sparse dimension follow one another
        order, starts = grouped(keys) if d < p.sparse_dim - 1 else (None, run_starts(keys))
    group = ops.repeat_interleave(ops.arange(starts.size(0) - 1, device=v.device), starts[1:] - starts[:-1])
    flat = v.reshape(v.size(0), -1)
    found = flat.detach()
    if order is not None:
        group, found = ops.empty_like(order).index_copy(0, order, group), found.index_select(0, order)
    largest = ops.segment_reduce(found, "max", offsets=starts)
    largest = ops.where(largest.isinf(), ops.zeros_like(largest), largest)
    shifted = flat - largest.index_select(0, group)
    exponent = shifted.exp()
    total = ops.zeros_like(largest).index_add(0, group, exponent).index_select(0, group)
    found = shifted - total.log() if log else exponent / total
    return coo_of(p.indices, found.reshape(v.shape), t.shape, True)


@public("softmax")
def public_softmax(t: Any, dim: Any = None, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return (
        softmax(t, dim, dtype if not args or args[-1] is None or isinstance(args[-1], int) else args[-1], False)
        if number_of(t) == COO and dim is not None
        else NotImplemented
    )


@public("log_softmax")
def public_log_softmax(t: Any, dim: Any = None, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
    return (
        softmax(t, dim, dtype if not args or args[-1] is None or isinstance(args[-1], int) else args[-1], True)
        if number_of(t) == COO and dim is not None
        else NotImplemented
    )


__all__ = ["norm", "softmax", "sparse_sum", "to_dense"]
