"""What sparse tensors are made of, and the primitives that carry gradients between them and their values."""

from __future__ import annotations

import math
from typing import Any, Callable, NamedTuple

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core import sparse as _core
from tensorrt_lite._C.core.device import sparse_bsc, sparse_bsr, sparse_coo, sparse_csc, sparse_csr, strided
from tensorrt_lite._C.core.dispatch import is_grad_enabled
from tensorrt_lite._C.core.dtype import _dtype_by_name
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite.autograd import Function
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_convert = _LazyModule("tensorrt_lite._sparse.convert")
_pointwise = _LazyModule("tensorrt_lite._sparse.pointwise")

ops = namespace()
int64, int32 = _dtype_by_name("int64"), _dtype_by_name("int32")
COO, CSR, CSC, BSR, BSC = 1, 2, 3, 4, 5
LAYOUTS = (strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)
NUMBERS = {layout: i for i, layout in enumerate(LAYOUTS)}


def layout_number(layout: Any, operator: str) -> int:
    """The number of a layout; TypeError for anything else."""
    for known, number in NUMBERS.items():
        if layout is known:
            return number
    raise TypeError(f"{operator}(): argument 'layout' must be torch.layout, not {type(layout).__name__}")
NAMES = ("Strided", "Sparse", "SparseCsr", "SparseCsc", "SparseBsr", "SparseBsc", "Jagged")
is_sparse = _core.is_sparse


def number_of(t: Any) -> int:
    """The tensor's layout as a number, of which NAMES has the names: 0 strided, COO, CSR, CSC, BSR, BSC; the last of nested tensors."""
    return NUMBERS.get(t.layout, len(NAMES) - 1)


class Parts(NamedTuple):
    """layout: a number; the indices of COO are in `indices`, those of the others in `compressed` and `plain`."""

    layout: int
    indices: Any
    compressed: Any
    plain: Any
    values: Any
    sparse_dim: int
    dense_dim: int
    coalesced: bool


def parts(t: Any) -> Parts:
    """The parts of a sparse tensor, without history."""
    layout, sparse_dim, dense_dim, coalesced = _core.layout_of(t)
    found = _core.parts_of(t)
    if layout == COO:
        return Parts(layout, found[0], None, None, found[1], sparse_dim, dense_dim, coalesced)
    return Parts(layout, None, found[0], found[1], found[2], sparse_dim, dense_dim, coalesced)


def batch_dims(p: Parts) -> int:
    """The number of batch dimensions of a compressed tensor."""
    return p.compressed.dim() - 1


def is_blocked(layout: int) -> bool:
    return layout in (BSR, BSC)


def has_rows(layout: int) -> bool:
    """Whether it is rows that are compressed."""
    return layout in (CSR, BSR)


def make_coo(indices: Any, values: Any, size: Any, coalesced: bool = False) -> Any:
    """A sparse_coo tensor over parts without history."""
    n = indices.size(0)
    return _core.make(COO, tuple(size), (indices, values), n, values.dim() - 1, coalesced or values.size(0) < 2 and n > 0 or values.size(0) == 0)


def make_compressed(layout: int, compressed: Any, plain: Any, values: Any, size: Any) -> Any:
    """A tensor of a compressed layout over parts without history."""
    dense = values.dim() - plain.dim() - (2 if is_blocked(layout) else 0)
    return _core.make(layout, tuple(size), (compressed, plain, values), 2, dense, False)


def rebuilt(t: Any, values: Any) -> Any:
    """A sparse tensor with the indices of `t` and other values, without history."""
    p = parts(t)
    if p.layout == COO:
        size = (*t.shape[: p.sparse_dim], *values.shape[1:])
        return _core.make(COO, size, (p.indices, values), p.sparse_dim, values.dim() - 1, p.coalesced)
    return make_compressed(p.layout, p.compressed, p.plain, values, t.shape)


# ---- gradients ------------------------------------------------------------------------------------------------------


class SparseOperator(Function):
    """A Node of sparse tensors. derive(gradient, which inputs need one, *inputs) returns a gradient or None for each input. Inside a functional transform run is called
    below the level: other tensors that it reads must be integers or patterns, which it takes by `here`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(run: Any, derive: Any, *tensors: Any) -> Any:
        return run(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.derive = inputs[1]
        ctx.save_for_backward(*inputs[2:])

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        tensors = ctx.saved_tensors
        grads = ctx.derive(grad, ctx.needs_input_grad[2:], *tensors)
        return (None, None, *(_fitting(g, t) for g, t in zip(grads, tensors)))

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        raise NotImplementedError(
            "Trying to use forward AD with an operator of sparse tensors that does not support it because it has not been implemented yet."
        )


def _fitting(grad: Any, t: Any) -> Any:
    """A gradient as the Node of `t` takes it: that of a sparse result is sparse."""
    if grad is None or not is_sparse(t) or is_sparse(grad) or t.is_leaf:
        return grad

    p = parts(t)
    return _convert.to_sparse(grad, p.sparse_dim if p.layout == COO else None)


def recorded(run: Callable[..., Any], derive: Callable[..., Any], *tensors: Any) -> Any:
    """run(*tensors), with a Node where one of them requires a gradient. derive must compute with operators that record themselves."""
    if is_grad_enabled() and any(t.requires_grad for t in tensors) or _core.is_transforming():  # at a level of vmap, histories are those of the values below
        return SparseOperator.apply(run, derive, *tensors)
    for t in tensors:
        _core.check_no_tangent(t)
    return run(*tensors)


here = _core.below_ended_levels  # what a function of `recorded` reads beside its arguments


def stored(values: Any) -> Any:
    """Values as a sparse tensor keeps them: without a history that this level sees, with those of levels below."""
    _core.check_no_tangent(values)
    return values if _core.is_transforming() and not values.requires_grad else values.detach()


def values_of(t: Any) -> Any:
    """The stored values of a sparse tensor, with a history: the gradient is a sparse tensor of the same indices."""
    if not (t.requires_grad and is_grad_enabled()):
        _core.check_no_tangent(t)
        return parts(t).values
    return recorded(lambda x: parts(x).values.detach(), lambda grad, needs, x: (_gradient_of_entries(x, grad),), t)


def _gradient_of_entries(t: Any, grad: Any) -> Any:
    """The gradient of a sparse tensor from those of its entries. What is computed with entries of equal indices is linear in them, so that they have equal
    gradients, which are the element's: it has one of them, not their sum."""
    p = parts(t)
    if p.layout != COO or p.coalesced:
        return with_values(t, grad)
    order, starts = grouped(linear_keys(p.indices, t.shape[: p.sparse_dim]))
    first = order.index_select(0, starts[:-1])
    return coo_of(p.indices.index_select(1, first), grad.index_select(0, first), t.shape, True)


def with_values(t: Any, values: Any) -> Any:
    """A sparse tensor with the indices of `t` and these values, and their history."""
    if not (values.requires_grad and is_grad_enabled()):
        return rebuilt(t, stored(values) if values.requires_grad else values)
    pattern = t.detach() if t.requires_grad else t
    return recorded(lambda v: rebuilt(here(pattern), v.detach()), lambda grad, needs, v: (values_at(grad, here(pattern), v),), values)


def coo_of(indices: Any, values: Any, size: Any, coalesced: bool = False) -> Any:
    """A sparse_coo tensor of indices and values, with the history of the values."""
    return (
        with_values(make_coo(indices, values.detach(), size, coalesced), values)
        if values.requires_grad and is_grad_enabled()
        else make_coo(indices, stored(values), size, coalesced)
    )


def compressed_of(layout: int, compressed: Any, plain: Any, values: Any, size: Any) -> Any:
    """A tensor of a compressed layout, with the history of the values."""
    if values.requires_grad and is_grad_enabled():
        return with_values(make_compressed(layout, compressed, plain, values.detach(), size), values)
    return make_compressed(layout, compressed, plain, stored(values), size)


def values_at(source: Any, pattern: Any, like: Any) -> Any:
    """The elements of a tensor, sparse or not, at the indices of a sparse tensor, in the shape of its values."""
    p = parts(pattern)
    if is_sparse(source):
        q = parts(source)
        if (
            q.layout == p.layout
            and all(
                a is b or a is not None and a.shape == b.shape and (a.data_ptr() == b.data_ptr() or ops.equal(a, b))
                for a, b in ((p.indices, q.indices), (p.compressed, q.compressed), (p.plain, q.plain))
            )
            and q.values.shape == like.shape
        ):
            return values_of(source)
        if p.layout == COO:
            return _found(source, p, pattern, like)
        source = source.to_dense()
    return dense_at(source, pattern).reshape(like.shape)


def _found(source: Any, p: Parts, pattern: Any, like: Any) -> Any:
    """values_at of a sparse source: its entries are searched for the pattern's."""
    source = source if parts(source).layout == COO else source.to_sparse(p.sparse_dim)
    if parts(source).sparse_dim != p.sparse_dim:
        return dense_at(source.to_dense(), pattern).reshape(like.shape)
    source = coalesce(source)
    q = parts(source)
    values = values_of(source)
    if q.values.size(0) == 0:
        return values.new_zeros(like.shape)
    size = tuple(pattern.shape[: p.sparse_dim])
    keys, wanted = linear_keys(q.indices, size), linear_keys(p.indices, size)
    at = ops.searchsorted(keys, wanted).clamp_max(keys.size(0) - 1)
    hit = ops.eq(keys.index_select(0, at), wanted)
    found = values.index_select(0, at)
    return found.masked_fill(~hit.reshape((-1, *(1,) * (found.dim() - 1))), 0).reshape(like.shape)


def element_indices(t: Any) -> tuple[Any, Any]:
    """(indices (dimensions, count) of the entries of a compressed tensor, or of the blocks' corners; the batch of each): batch dimensions first."""
    p = parts(t)
    n = batch_dims(p)
    batch = p.compressed.shape[:-1]
    count = p.plain.size(-1)
    flat = p.compressed.reshape(-1, p.compressed.size(-1)).to(int64)
    lengths = (flat[:, 1:] - flat[:, :-1]).reshape(-1)
    if lengths.numel() and (int(lengths.min()) < 0 or int(lengths.sum()) != p.plain.numel()):
        raise RuntimeError("sparse tensor: the compressed indices must lead from 0 to the number of entries without falling")
    lines = ops.arange(flat.size(1) - 1, device=flat.device).repeat(flat.size(0))
    compressed = ops.repeat_interleave(lines, lengths)
    plain = p.plain.reshape(-1).to(int64)
    if compressed.size(0) != plain.size(0):
        raise RuntimeError(f"sparse tensor: the compressed indices name {compressed.size(0)} entries, the plain indices {plain.size(0)}")
    pair = (compressed, plain) if has_rows(p.layout) else (plain, compressed)
    if not n:
        return ops.stack(pair), None
    which = ops.arange(flat.size(0), device=flat.device).repeat_interleave(count)
    batches, rest = [], which
    for extent in reversed(batch):
        batches.append(rest % extent)
        rest = rest // extent
    return ops.stack([*reversed(batches), *pair]), which


def dense_at(source: Any, pattern: Any) -> Any:
    """The elements of a strided tensor at the indices of a sparse one, in the shape of its values (the batches of compressed ones in one)."""
    p = parts(pattern)
    if p.layout == COO:
        return source[tuple(p.indices)] if p.sparse_dim else source.unsqueeze(0).expand(p.values.shape)
    at, _ = element_indices(pattern)
    if not is_blocked(p.layout):
        return source[tuple(at)]
    n = batch_dims(p)
    height, width = p.values.shape[n + 1 : n + 3]
    rows = at[-2] * height
    columns = at[-1] * width
    rows = rows.reshape(-1, 1, 1) + ops.arange(height, device=rows.device).reshape(1, -1, 1)
    columns = columns.reshape(-1, 1, 1) + ops.arange(width, device=rows.device).reshape(1, 1, -1)
    return source[(*(b.reshape(-1, 1, 1) for b in at[:-2]), rows, columns)]


# ---- order ----------------------------------------------------------------------------------------------------------


def linear_keys(indices: Any, size: Any) -> Any:
    """Each column of indices as one number, in row-major order of `size`."""
    keys = None
    for d, extent in enumerate(size):
        keys = indices[d] if keys is None else ops.add(indices[d], keys, alpha=extent)
    return ops.zeros(indices.size(1), dtype=int64, device=indices.device) if keys is None else keys


def grouped(keys: Any) -> tuple[Any, Any]:
    """(order, starts): the stable order of keys, and where each run of equal ones begins in it, with the end of the last."""
    ordered, order = ops.sort(keys, dim=0, stable=True)
    return order, run_starts(ordered)


def run_starts(keys: Any) -> Any:
    """Where each run of equal keys begins, with the end of the last."""
    _, counts = ops.unique_consecutive(keys, return_counts=True)
    return ops.pad(counts.cumsum(0), (1, 0))


def merged(p: Parts, q: Parts, size: Any, common: bool) -> tuple[Any, Any, Any] | None:
    """_csr_merge of two tensors of one layout and size, coalesced where they are in coordinates, which are one row then. None where it is not to be had: on devices
    without the kernel, of batches, where indices are not in order or blocks differ."""
    if p.values.device.type != "cpu" or p.values.device != q.values.device:
        return None
    if p.layout == COO:
        keys = [linear_keys(x.indices, size[: p.sparse_dim]) for x in (p, q)]
        lines = [ops.tensor([0, x.size(0)]) for x in keys]
    else:
        if p.compressed.dim() > 1 or p.values.shape[1:] != q.values.shape[1:]:
            return None
        keys, lines = [x.plain.to(int64) for x in (p, q)], [x.compressed.to(int64) for x in (p, q)]
    found = ops._csr_merge(lines[0], keys[0], lines[1], keys[1], common)
    return found if found[0].numel() else None


def group_sums(values: Any, order: Any, starts: Any) -> Any:
    """Sums of values (count, *) over groups: entry order[k] for k from starts[i] up to starts[i + 1]. -> (groups, *)"""

    def run(v: Any) -> Any:
        flat = v.detach().reshape(v.size(0), math.prod(v.shape[1:]))  # -1 would be ambiguous of no values
        return ops._csr_mm(here(starts), here(order), None, flat).reshape(starts.size(0) - 1, *v.shape[1:])

    def derive(grad: Any, needs: Any, v: Any) -> Any:
        at, end = here(order), here(starts)
        group = ops.repeat_interleave(ops.arange(end.size(0) - 1, device=end.device), end[1:] - end[:-1])
        return (grad.index_select(0, ops.empty_like(at).index_copy(0, at, group)),)

    return recorded(run, derive, values)


def coalesce(t: Any) -> Any:
    expect(t, COO, "coalesce")
    p = parts(t)
    if p.coalesced:
        return t
    if p.values.size(0) < 2:
        return with_coalesced(t)
    order, starts = grouped(linear_keys(p.indices, t.shape[: p.sparse_dim]))
    indices = p.indices.index_select(1, order.index_select(0, starts[:-1]))
    return coo_of(indices, group_sums(values_of(t), order, starts), t.shape, True)


def with_coalesced(t: Any) -> Any:
    """The tensor, declared coalesced."""
    p = parts(t)
    return coo_of(p.indices, values_of(t), t.shape, True)


def check_places(indices: Any, size: Any) -> None:
    """RuntimeError where an index is outside of its dimension: before something is allocated or counted by indices."""
    if not indices.numel():
        return
    low, high = indices.amin(1).tolist(), indices.amax(1).tolist()
    for d in range(indices.size(0)):
        if low[d] < 0:
            raise RuntimeError(f"found negative index {low[d]} for dim {d}")
        if high[d] >= size[d]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {d}, size is {size[d]} but found index {high[d]}")


# ---- attributes -----------------------------------------------------------------------------------------------------


def expect(t: Any, layout: int, name: str) -> None:
    """RuntimeError unless the layout is COO."""
    if number_of(t) != layout:
        raise RuntimeError(f"{name} expected sparse coordinate tensor layout but got {NAMES[number_of(t)]}")


def is_coalesced(t: Any) -> bool:
    expect(t, COO, "is_coalesced")
    return parts(t).coalesced


def declare_coalesced(t: Any, coalesced: bool) -> Any:
    expect(t, COO, "_coalesced_")
    _core.mark_coalesced(t, bool(coalesced))
    return t


def indices(t: Any) -> Any:
    expect(t, COO, "indices")
    p = parts(t)
    if not p.coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return p.indices.detach()


def values(t: Any) -> Any:
    if not is_sparse(t):
        raise RuntimeError(f"values expected sparse tensor layout but got {NAMES[number_of(t)]}")
    p = parts(t)
    if p.layout == COO and not p.coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return values_of(t) if t.requires_grad and is_grad_enabled() else p.values.detach()


def raw_indices(t: Any) -> Any:
    expect(t, COO, "_indices")
    return parts(t).indices.detach()


def raw_values(t: Any) -> Any:
    expect(t, COO, "_values")
    return parts(t).values.detach()


def compressed_indices(t: Any, name: str) -> Any:
    rows = name in ("crow_indices", "col_indices")
    if number_of(t) not in ((CSR, BSR) if rows else (CSC, BSC)):
        raise RuntimeError(f"{name} expected sparse {'row' if rows else 'column'} compressed tensor layout but got {NAMES[number_of(t)]}")
    p = parts(t)
    return (p.compressed if name in ("crow_indices", "ccol_indices") else p.plain).detach()


def nnz(t: Any) -> int:
    if not is_sparse(t):
        raise RuntimeError(f"_nnz expected sparse tensor layout but got {NAMES[number_of(t)]}")
    p = parts(t)
    return p.values.size(0) if p.layout == COO else p.plain.size(-1)


def dims(t: Any) -> tuple[int, int]:
    """(sparse dimensions, dense dimensions)"""
    if not is_sparse(t):
        return 0, t.dim()
    return _core.layout_of(t)[1:3]


# ---- writes ---------------------------------------------------------------------------------------------------------


class Aliased(Function):
    """The entries of a tensor under another one, which later writes to the first do not change."""

    @staticmethod
    def forward(t: Any) -> Any:
        return rebuilt(t, parts(t).values.detach())

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad


class Written(Function):
    """A tensor that has taken over another one's entries, and its history; its own one ends, with zeros where the new entries do not come from it."""

    @staticmethod
    def forward(target: Any, result: Any, zeros: Any) -> Any:
        return _take_over(target, result, False)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.zeros = inputs[2]
        ctx.mark_dirty(inputs[0])  # which raises the version

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return ctx.zeros, grad, None


def refuse_leaf(target: Any) -> None:
    """RuntimeError where a recorded write would end a leaf."""
    if target.requires_grad and target.is_leaf:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")


def before_writing(target: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of an operator in place, whose history shall know the target as it is now."""
    if not is_grad_enabled() or not any(isinstance(x, TensorBase) and x.requires_grad for x in arguments):
        return arguments
    refuse_leaf(target)
    now = Aliased.apply(target) if target.requires_grad else rebuilt(target, parts(target).values)
    return tuple(now if x is target else x for x in arguments)


def assign(target: Any, result: Any, name: str, from_target: bool = True) -> Any:
    """Give a sparse tensor the entries of another; the type stays. from_target: they have been computed of its own."""
    if not is_sparse(result):
        raise RuntimeError(f"{name}: a strided result cannot be written to a sparse tensor")
    p, q = parts(target), parts(result)
    if p.layout != q.layout:
        raise RuntimeError(f"{name}: the result is {result.layout}, the tensor that it is to be written to {target.layout}")
    if result.dtype is not target.dtype:
        result = with_values(result, values_of(result).to(target.dtype))
    if not (is_grad_enabled() and (target.requires_grad or result.requires_grad)):
        return _take_over(target, result)
    refuse_leaf(target)
    zeros = None
    if target.requires_grad and not from_target:
        zeros = _pointwise.empty_like(target.detach())
    return Written.apply(target, result, zeros)


def _take_over(target: Any, result: Any, bump: bool = True) -> Any:
    q = parts(result)
    found = (q.indices, q.values) if q.layout == COO else (q.compressed, q.plain, q.values)
    _core.replace(target, tuple(x.detach() for x in found), q.coalesced, tuple(result.shape), q.sparse_dim, q.dense_dim, bump)
    return target
