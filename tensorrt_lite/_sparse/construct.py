"""Constructors of sparse tensors, the checks of their invariants, and changes of their size."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.core import sparse as _core
from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._sparse.parts import (
    BSC,
    BSR,
    COO,
    CSC,
    CSR,
    LAYOUTS,
    batch_dims,
    check_places,
    coo_of,
    expect,
    has_rows,
    int32,
    int64,
    is_blocked,
    is_sparse,
    layout_number,
    linear_keys,
    make_compressed,
    ops,
    parts,
    with_values,
)
from tensorrt_lite._sparse.table import public
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_parts = _LazyModule("tensorrt_lite._sparse.parts")

_NAMED = {"csr": CSR, "csc": CSC, "bsr": BSR, "bsc": BSC}
_checking = False
_CHUNK = 1 << 16  # indices that are checked at once: files may be checked in little memory beside their own


def checks_invariants() -> bool:
    """Whether constructors look at indices where they are not told."""
    return _checking


def set_checks(on: bool) -> None:
    global _checking
    _checking = bool(on)


def _tensor(data: Any, dtype: Any, device: Any) -> Any:
    t = data if isinstance(data, TensorBase) else ops.tensor(data)
    return t.to(device=device, dtype=dtype) if dtype is not None or device is not None else t


def _sizes(size: Any) -> tuple[int, ...]:
    return tuple(int(n) for n in size)


def _is_size(x: Any) -> bool:
    return isinstance(x, (tuple, list)) and all(isinstance(n, int) and not isinstance(n, bool) for n in x)


def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
    layout: Any = None,
) -> Any:
    if values is None:
        size = indices if size is None else size
        if not _is_size(size):
            raise TypeError("sparse_coo_tensor(): expected indices and values, or a size")
        size = _sizes(size)
        empty = ops.zeros((0,), dtype=dtype, device=device)
        made = coo_of(ops.zeros((len(size), 0), dtype=int64, device=device), empty, size, True)
        return made.requires_grad_() if requires_grad else made
    v = _tensor(values, dtype, device)
    i = _tensor(indices, None, device if device is not None else v.device)
    if i.dim() != 2 and i.numel() == 0:
        i = i.reshape(0 if not i.dim() else i.size(0), 0)
    if i.is_floating_point() and i.numel() == 0 or i.dtype != int64:
        i = i.to(int64)
    if i.device != v.device:
        i = i.to(v.device)
    if i.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(i.shape)}")
    if v.dim() < 1:
        if i.size(1) != 1:
            raise RuntimeError("values must be at least 1-dimensional")
        v = v.expand(1)
    count = i.size(1)
    if v.size(0) != count:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {count}, nnz from values: {v.size(0)}")
    if size is None:
        extents = (i.amax(1) + 1).tolist() if count else [0] * i.size(0)
        if count and bool((i < 0).any()):
            raise RuntimeError(f"found negative index {int(i.min())} for dim {int((i < 0).any(1).nonzero()[0])}")
        size = (*extents, *v.shape[1:])
    size = _sizes(size)
    if len(size) != i.size(0) + v.dim() - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {i.size(0)}, dense_dim = {v.dim() - 1}"
        )
    if tuple(v.shape[1:]) != size[i.size(0) :]:
        raise RuntimeError(f"values has incorrect size, expected {[count, *size[i.size(0) :]]}, got {list(v.shape)}")
    if _checking if check_invariants is None else check_invariants:
        check_coo(i, size, bool(is_coalesced))
    made = coo_of(i.detach(), v if not requires_grad else v.detach(), size, bool(is_coalesced))
    return made.requires_grad_() if requires_grad else made


def check_coo(i: Any, size: Any, coalesced: bool) -> None:
    """RuntimeError where an index is outside of its dimension, or where indices that are said to be coalesced are not."""
    if i.is_meta:
        return  # there is nothing to look at
    check_places(i, size)
    if coalesced and i.numel():
        for start in range(0, i.size(1) - 1, _CHUNK):
            keys = linear_keys(i[:, start : start + _CHUNK + 1], size[: i.size(0)])
            if not bool((keys[1:] > keys[:-1]).all()):
                raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def sparse_compressed_tensor(
    compressed: Any,
    plain: Any,
    values: Any = None,
    size: Any = None,
    *,
    named: str | None = None,
    layout: Any = None,
    dtype: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Any:
    what = f"sparse_{named or 'compressed'}_tensor"
    if named is None and (layout is None or layout_number(layout, "sparse_compressed_tensor") <= COO):
        raise RuntimeError(
            f"{what}(): expected layout to be one of torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc, got {layout}"
        )
    kind = _NAMED[named] if named else layout_number(layout, "sparse_compressed_tensor")
    if named and layout is not None and layout is not LAYOUTS[kind]:
        raise RuntimeError(f"{what}(): expected layout {LAYOUTS[kind]}, got {layout}")
    if values is None:
        raise TypeError(f"{what}(): missing the argument 'values'")
    v = _tensor(values, dtype, device)
    c, p = (_tensor(x, None, device if device is not None else v.device) for x in (compressed, plain))
    block = 2 if is_blocked(kind) else 0
    batch = c.dim() - 1
    if batch < 0:
        raise RuntimeError(f"{what}: compressed_indices must have dimensionality >= 1 but got {c.dim()}")
    if p.dim() != c.dim():
        raise RuntimeError(
            f"{what}: compressed_indices and plain_indices dimensionalities must be equal but got {c.dim()} and {p.dim()}, respectively"
        )
    if v.dim() < batch + 1 + block:
        raise RuntimeError(
            f"{what}: values must have dimensionality > sum of batch and block dimensionalities (={batch} + {block}) but got {v.dim()}"
        )
    if c.dtype != p.dtype or c.dtype not in (int32, int64):
        raise RuntimeError(
            f"{what}: compressed_indices and plain_indices must be int32 or int64, and of the same dtype, but got {c.dtype} and {p.dtype}, respectively"
        )
    dense = tuple(v.shape[batch + 1 + block :])
    height, width = v.shape[batch + 1 : batch + 3] if block else (1, 1)
    if size is None:
        lines = (c.size(-1) - 1) * (height if has_rows(kind) else width)
        across = (int(p.max()) + 1 if p.numel() else 0) * (width if has_rows(kind) else height)
        size = (*c.shape[:-1], *((lines, across) if has_rows(kind) else (across, lines)), *dense)
    size = _sizes(size)
    if len(size) != batch + 2 + len(dense):
        raise RuntimeError(
            f"{what}: tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {len(dense)}) but got {len(size)}"
        )
    if size[batch + 2 :] != dense:
        raise RuntimeError(f"{what}: values shape {list(v.shape)} does not fit the dense dimensions of size {list(size)}")
    if block and (not height or not width or size[batch] % height or size[batch + 1] % width):
        raise RuntimeError(
            f"{what}: tensor shape[{batch}] (={size[batch]}) and shape[{batch + 1}] (={size[batch + 1]}) must be divisible with blocksize ({height}, {width}) as defined by values shape"
        )
    lines = size[batch] // height if has_rows(kind) else size[batch + 1] // width
    if c.size(-1) != lines + 1:
        raise RuntimeError(
            f"{what}: compressed_indices.shape[-1] must be equal to the number of compressed {'rows' if has_rows(kind) else 'columns'} + 1 (={lines + 1}), but got {c.size(-1)}"
        )
    if tuple(c.shape[:-1]) != size[:batch] or tuple(p.shape[:-1]) != size[:batch] or tuple(v.shape[:batch]) != size[:batch]:
        raise RuntimeError(
            f"{what}: all batch dimensions of compressed_indices {list(c.shape[:-1])}, plain_indices {list(p.shape[:-1])}, and values {list(v.shape[:batch])} must be equal to tensor batch dimensions {list(size[:batch])}"
        )
    if p.size(-1) != v.size(batch):
        raise RuntimeError(f"{what}: plain_indices.shape[-1] must be equal to the number of values (={v.size(batch)}), but got {p.size(-1)}")
    if _checking if check_invariants is None else check_invariants:
        check_compressed(kind, c, p, size, batch, height, width)
    pattern = make_compressed(kind, c.detach(), p.detach(), v.detach(), size)
    if requires_grad:
        return pattern.requires_grad_()
    return with_values(pattern, v)


def check_compressed(kind: int, c: Any, p: Any, size: Any, batch: int, height: int, width: int) -> None:
    """RuntimeError where compressed indices do not lead from 0 to the count, or where plain indices are outside or out of order."""
    if c.is_meta or p.is_meta:
        return
    rows = has_rows(kind)
    name, other = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
    count = p.size(-1)
    if not bool((c[..., 0] == 0).all()):
        raise RuntimeError(f"`{name}[..., 0] == 0` is not satisfied.")
    if not bool((c[..., -1] == count).all()):
        raise RuntimeError(f"`{name}[..., -1] == nnz` is not satisfied.")
    across = size[batch + 1] // width if rows else size[batch] // height
    flat = c.reshape(-1, c.size(-1))
    if not _steps_within(flat, across):
        raise RuntimeError(f"`0 <= {name}[..., 1:] - {name}[..., :-1] <= {'ncols' if rows else 'nrows'}` is not satisfied.")
    if not p.numel():
        return
    if int(p.min()) < 0:
        raise RuntimeError(f"`0 <= {other}` is not satisfied.")
    if int(p.max()) >= across:
        raise RuntimeError(f"`{other} < {'ncols' if rows else 'nrows'}` is not satisfied.")
    if not _sorted_and_distinct(flat, p.reshape(-1, count)):
        raise RuntimeError(
            f"`{other}[..., {name}[..., i - 1]:{name}[..., i]] for all i = 1, ..., {'nrows' if rows else 'ncols'} are sorted and distinct along the last dimension values` is not satisfied."
        )


def _blocks(batches: int, width: int) -> Any:
    """(first batch, end) of blocks of batches of so many indices each that are checked at once."""
    many = max(1, _CHUNK // max(1, width))
    return ((b, min(b + many, batches)) for b in range(0, batches, many))


def _steps_within(lines: Any, across: int) -> bool:
    """Whether compressed indices (batches, lines + 1) rise by 0 to `across` each."""
    for b, end in _blocks(*lines.shape):
        for start in range(0, lines.size(1) - 1, _CHUNK):
            part = lines[b:end, start : start + _CHUNK + 1]
            steps = part[:, 1:] - part[:, :-1]
            if not bool(((steps >= 0) & (steps <= across)).all()):
                return False
    return True


def _sorted_and_distinct(lines: Any, plain: Any) -> bool:
    """Whether plain indices (batches, count) rise within each line of their batch: where they do not, a line begins. lines: (batches, lines + 1)."""
    batches, count = plain.shape
    for b, end in _blocks(batches, max(count, lines.size(1))):
        if end - b == 1:
            begins = lines[b].contiguous()
        else:
            begins = (lines[b:end].to(int64) + ops.arange(0, (end - b) * (count + 1), count + 1).unsqueeze(1)).reshape(-1)
        for start in range(0, count - 1, _CHUNK):
            part = plain[b:end, start : start + _CHUNK + 1]
            batch, at = (part[:, 1:] <= part[:, :-1]).nonzero().unbind(1)
            if at.numel():
                falls = (batch * (count + 1) + at + (start + 1)).to(begins.dtype)
                found = ops.searchsorted(begins, falls).clamp_max(begins.size(0) - 1)
                if not bool((begins.index_select(0, found) == falls).all()):
                    return False
    return True


def validate(t: Any) -> None:
    """Check the invariants of a sparse tensor."""
    p = parts(t)
    if p.layout == COO:
        check_coo(p.indices, t.shape, p.coalesced)
        return
    n = batch_dims(p)
    height, width = p.values.shape[n + 1 : n + 3] if is_blocked(p.layout) else (1, 1)
    check_compressed(p.layout, p.compressed, p.plain, t.shape, n, height, width)


def _new(name: str) -> Any:
    def run(t: Any, *size: Any, dtype: Any = None, device: Any = None, layout: Any = None, requires_grad: bool = False, pin_memory: Any = False) -> Any:
        if layout is not None and layout_number(layout, name) == 0 or not is_sparse(t):
            return NotImplemented
        wanted = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        options = {"layout": layout or t.layout, "dtype": dtype or t.dtype, "device": device or t.device}
        return ops.zeros(_sizes(wanted), requires_grad=requires_grad, **options)

    return run


for _name in ("new_empty", "new_zeros"):
    public(_name)(_new(_name))


# ---- sizes ----------------------------------------------------------------------------------------------------------


def resize(t: Any, size: Any, sparse_dim: int, dense_dim: int, clear: bool) -> Any:
    name = "sparse_resize_and_clear_" if clear else "sparse_resize_"
    expect(t, COO, name)
    size = _sizes(size)
    if sparse_dim + dense_dim != len(size):
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse_dim}, dense_dim = {dense_dim}"
        )
    if t.requires_grad and t.is_leaf:
        raise RuntimeError(f"{name}: cannot resize a sparse tensor that requires grad")
    p = parts(t)
    count = p.values.size(0)
    if clear or count == 0:
        _core.replace(t, (p.indices.new_empty((sparse_dim, 0)), p.values.new_empty((0, *size[sparse_dim:]))), True, size, sparse_dim, dense_dim)
        return t
    if sparse_dim != p.sparse_dim or dense_dim != p.dense_dim:
        which = "sparse" if sparse_dim != p.sparse_dim else "dense"
        raise RuntimeError(
            f"changing the number of {which} dimensions (from {p.sparse_dim if which == 'sparse' else p.dense_dim} to "
            f"{sparse_dim if which == 'sparse' else dense_dim}) on a non-empty sparse tensor is not supported."
        )
    before = tuple(t.shape)
    if any(new < old for new, old in zip(size, before)):
        which = "sparse" if any(new < old for new, old in zip(size[:sparse_dim], before[:sparse_dim])) else "dense"
        raise RuntimeError(
            f"shrinking the size of {which} dimensions (from {list(before)} to {list(size)}) on a non-empty sparse tensor is not supported."
        )
    values = p.values
    if size[sparse_dim:] != before[sparse_dim:]:
        values = values.new_zeros((count, *size[sparse_dim:]))
        values[tuple(slice(0, n) for n in p.values.shape)] = p.values
    _core.replace(t, (p.indices, values), p.coalesced, size, sparse_dim, dense_dim)
    return t


def resize_as(t: Any, like: Any) -> Any:
    if not is_sparse(t) or not is_sparse(like):
        raise RuntimeError("resize_as_sparse_: self and other must be sparse tensors")
    if tuple(t.shape) == tuple(like.shape) and t.layout is like.layout and parts(t).layout != COO:
        return t
    if parts(t).layout != COO or parts(like).layout != COO:
        return _parts.assign(t, like.to(t.dtype).clone(), "resize_as_sparse_")
    p = parts(like)
    if tuple(t.shape) == tuple(like.shape) and parts(t).sparse_dim == p.sparse_dim:
        return t
    return resize(t, like.shape, p.sparse_dim, p.dense_dim, False)
