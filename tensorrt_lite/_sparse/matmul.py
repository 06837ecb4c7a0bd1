"""Products of sparse matrices. Kernels do that of a matrix in compressed rows and a dense one and that of chosen elements of a dense product, each the
other's derivative, so that all of them can be differentiated as often as one likes; another one is the product of two sparse matrices."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorrt_lite._C.core.tensor import TensorBase
from tensorrt_lite._sparse.convert import coordinates_of, to_dense, to_layout, to_sparse
from tensorrt_lite._sparse.parts import (
    BSR,
    COO,
    CSR,
    NAMES,
    check_places,
    coalesce,
    coo_of,
    group_sums,
    here,
    int64,
    is_sparse,
    linear_keys,
    make_compressed,
    nnz,
    number_of,
    ops,
    parts,
    recorded,
    stored,
    values_of,
    with_values,
)
from tensorrt_lite._sparse.table import operator, public
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_shape = _LazyModule("tensorrt_lite._sparse.shape")


class Rows(NamedTuple):
    """The places of the entries of a sparse matrix in compressed rows: crow (rows + 1), col (count), both int64."""

    crow: Any
    col: Any
    columns: int

    def here(self) -> Rows:
        """The places for a function of `recorded`."""
        return Rows(here(self.crow), here(self.col), self.columns)

    def lines(self) -> Any:
        """The row of each entry."""
        return ops.repeat_interleave(ops.arange(self.crow.size(0) - 1, device=self.crow.device), self.crow[1:] - self.crow[:-1])

    def transposed(self) -> tuple[Rows, Any]:
        """(the places of the transposed matrix, which entry each of its entries was)"""
        order = ops.sort(self.col, dim=0, stable=True)[1]
        return Rows(starts_of(self.col, self.columns), self.lines().index_select(0, order), self.crow.size(0) - 1), order


def starts_of(lines: Any, count: int) -> Any:
    """Where each of `count` lines begins among entries that are ordered by line, with the end of the last."""
    return ops.pad(ops.bincount(lines, minlength=count).cumsum(0), (1, 0))


def rows_of(t: Any) -> tuple[Rows, Any]:
    """(places, values) of a sparse matrix."""
    p = parts(t)
    if p.dense_dim or p.layout == COO and p.sparse_dim != 2 or p.layout != COO and p.compressed.dim() != 1:
        raise RuntimeError(
            f"expected a sparse matrix of two sparse dimensions and no dense ones, got {list(t.shape)} with {p.sparse_dim} sparse and {p.dense_dim} dense dimensions"
        )
    if p.layout == CSR:
        return Rows(p.compressed.to(int64), p.plain.to(int64), t.size(1)), values_of(t)
    t = coalesce(to_sparse(t))
    at = parts(t).indices
    check_places(at, t.shape)
    return Rows(starts_of(at[0], t.size(0)), at[1], t.size(1)), values_of(t)


def _conj(x: Any) -> Any:
    return ops.conj_physical(x) if x.is_complex() else x


def product(rows: Rows, values: Any, dense: Any) -> Any:
    """The sparse matrix of `values` times a dense one: (rows, n)."""

    def derive(grad: Any, needs: Any, v: Any, d: Any) -> Any:
        at = rows.here()
        gv = sampled(at, grad, _conj(d)) if needs[0] else None
        if not needs[1]:
            return gv, None
        turned, order = at.transposed()
        return gv, product(turned, _conj(v).index_select(0, order), grad)

    return recorded(lambda v, d: ops._csr_mm(*rows.here()[:2], v.detach(), d.detach()), derive, values, dense)


def sampled(rows: Rows, left: Any, right: Any) -> Any:
    """Of left @ right.t() the elements at the places of the entries: (count,)."""

    def derive(grad: Any, needs: Any, x: Any, y: Any) -> Any:
        at = rows.here()
        gx = product(at, grad, _conj(y)) if needs[0] else None
        if not needs[1]:
            return gx, None
        turned, order = at.transposed()
        return gx, product(turned, grad.index_select(0, order), _conj(x))

    return recorded(lambda x, y: ops._csr_sampled(*rows.here()[:2], x.detach(), y.detach()), derive, left, right)


def _same_type(name: str, a: Any, b: Any) -> None:
    if a.dtype is not b.dtype:
        raise RuntimeError(f"{name}: expected both matrices to have the same dtype, got {a.dtype} and {b.dtype}")


def _check(name: str, a: Any, b: Any, n: int = 2) -> None:
    _expect_tensors(name, a, b)
    if a.dim() != n or b.dim() != n:
        raise RuntimeError(f"{name}: Expected {n}-D matrices, got a tensor of {a.dim()} and one of {b.dim()} dimensions")
    if a.size(-1) != b.size(-2):
        raise RuntimeError(f"{name}: mat1 and mat2 shapes cannot be multiplied ({a.size(-2)}x{a.size(-1)} and {b.size(-2)}x{b.size(-1)})")
    _same_type(name, a, b)


@operator("mm")
def mm(a: Any, b: Any, *options: Any) -> Any:
    _check("mm", a, b)
    if is_sparse(a) and is_sparse(b):
        return _sparse_product(a, b)
    if is_sparse(a):
        return product(*rows_of(a), b)
    turned, order = (found := rows_of(b))[0].transposed()
    return product(turned, found[1].index_select(0, order), a.t()).t()


def _sparse_product(a: Any, b: Any) -> Any:
    """Of two sparse matrices: in coordinates where one of them is, else as the left one."""
    left, v = rows_of(a)
    right, w = rows_of(b)
    places: list[Any] = []

    def run(v: Any, w: Any) -> Any:
        crow, col, values = ops._csr_product(*left.here()[:2], v.detach(), *right.here()[:2], w.detach(), right.columns)
        places[:] = [crow, col]
        return values

    def derive(grad: Any, needs: Any, v: Any, w: Any) -> Any:
        which, at, place = meetings(left.here(), right.here(), Rows(*places, right.columns).here())
        grad = grad.index_select(0, place)
        gv = gw = None
        if needs[0]:
            counts = ops.bincount(which, minlength=v.size(0))
            gv = group_sums(grad * _conj(w).index_select(0, at), ops.arange(at.size(0), device=at.device), ops.pad(counts.cumsum(0), (1, 0)))
        if needs[1]:
            gw = group_sums(grad * _conj(v).index_select(0, which), ops.sort(at, dim=0, stable=True)[1], starts_of(at, w.size(0)))
        return gv, gw

    values = recorded(run, derive, v, w)
    crow, col = places
    made = Rows(crow, col, right.columns)
    size = (a.size(0), b.size(1))
    if number_of(a) in (CSR, BSR) and number_of(b) != COO:
        return with_values(make_compressed(CSR, crow, col, stored(values), size), values)
    found = coo_of(ops.stack([made.lines(), col]), values, size, True)
    return found if COO in (number_of(a), number_of(b)) else to_layout(found, "csc", None, None)


def meetings(left: Rows, right: Rows, made: Rows) -> tuple[Any, Any, Any]:
    """Every entry of the left matrix meets the row of the right one that its column names: (the left entry, the right entry, the product's entry) of each pair."""
    lengths = (right.crow[1:] - right.crow[:-1]).index_select(0, left.col)
    which = ops.repeat_interleave(ops.arange(left.col.size(0), device=left.col.device), lengths)
    offset = ops.arange(which.size(0), device=which.device) - (lengths.cumsum(0) - lengths).index_select(0, which)
    at = right.crow.index_select(0, left.col.index_select(0, which)) + offset
    size = (left.crow.size(0) - 1, made.columns)
    keys = linear_keys((left.lines().index_select(0, which), right.col.index_select(0, at)), size)
    return which, at, ops.searchsorted(linear_keys((made.lines(), made.col), size), keys)


@operator("mv")
def mv(a: Any, x: Any) -> Any:
    if not is_sparse(a) or is_sparse(x):
        return NotImplemented
    if a.dim() != 2 or x.dim() != 1 or a.size(1) != x.size(0):
        raise RuntimeError(f"size mismatch, got input ({list(a.shape)}), vec ({list(x.shape)})")
    return mm(a, x.unsqueeze(1)).squeeze(1)


@operator("bmm")
def bmm(a: Any, b: Any, *options: Any) -> Any:
    _check("bmm", a, b, 3)
    if a.size(0) != b.size(0):
        raise RuntimeError(f"bmm: expected batches of the same size, got {a.size(0)} and {b.size(0)}")
    if is_sparse(b):
        if is_sparse(a):
            return NotImplemented
        return bmm(_turned(b), a.transpose(1, 2)).transpose(1, 2)
    batch, m, k = a.shape
    t = coalesce(to_sparse(a))
    p = parts(t)
    if p.dense_dim or p.sparse_dim != 3:
        raise RuntimeError("bmm_sparse: Tensor 'self' must have three sparse dimensions and no dense ones")
    check_places(p.indices, t.shape)
    # one matrix with the batches along its diagonal
    line = p.indices[0] * m + p.indices[1]
    rows = Rows(starts_of(line, batch * m), p.indices[0] * k + p.indices[2], batch * k)
    return product(rows, values_of(t), b.reshape(batch * k, b.size(2))).reshape(batch, m, b.size(2))


def _turned(t: Any) -> Any:
    return _shape.permute(to_sparse(t), (0, 2, 1))


def _expect_tensors(name: str, *operands: Any) -> None:
    for x in operands:
        if not isinstance(x, TensorBase):
            raise TypeError(f"{name}(): expected Tensors, got {type(x).__name__}")


@public("matmul", "__matmul__")
def matmul(a: Any, b: Any, **options: Any) -> Any:
    _expect_tensors("matmul", a, b)
    if a.dim() == 2 and b.dim() == 2:
        return mm(a, b)
    if a.dim() == 2 and b.dim() == 1 and is_sparse(a):
        return mv(a, b)
    if a.dim() == 1 and b.dim() == 2 and is_sparse(b) and not is_sparse(a):
        return mm(a.unsqueeze(0), b).squeeze(0)
    if a.dim() == 3 and b.dim() == 3:
        return bmm(a, b)
    if a.dim() > 2 and b.dim() == 2 and is_sparse(b) and not is_sparse(a):
        return mm(a.reshape(-1, a.size(-1)), b).reshape(*a.shape[:-1], b.size(1))
    return NotImplemented


@public("__rmatmul__")
def rmatmul(b: Any, a: Any, **options: Any) -> Any:
    # Python calls it for a @ b where b alone is sparse: a subclass goes first
    return matmul(a, b, **options)


def _weighted(base: Any, beta: Any, found: Any, alpha: Any) -> Any:
    """beta * base + alpha * found; base does not count where beta is zero."""
    found = found if alpha == 1 else found * alpha
    if beta == 0:
        return found
    base = base if beta == 1 else base * beta
    return found + base if is_sparse(found) and not is_sparse(base) else base + found


@operator("addmm")
def addmm(base: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1, *options: Any) -> Any:
    if not is_sparse(a) and not is_sparse(b):
        return NotImplemented
    _check("addmm", a, b)
    found = mm(a, b)
    if is_sparse(found) and not is_sparse(base):
        found = to_dense(found)
    if is_sparse(base) and not is_sparse(found):
        raise RuntimeError("addmm: expected a strided input for a strided product, got a sparse one: use sspaddmm")
    if not is_sparse(base):
        base = base.expand(found.shape)
    elif number_of(base) != number_of(found):
        found = to_sparse(found) if number_of(base) == COO else to_layout(to_sparse(found), NAMES[number_of(base)][6:].lower(), None, None)
    return _weighted(base, beta, found, alpha)


@operator("addmv")
def addmv(base: Any, a: Any, x: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    if not is_sparse(a) or is_sparse(base):
        return NotImplemented
    return _weighted(base, beta, mv(a, x), alpha)


@operator("baddbmm")
def baddbmm(base: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1, *options: Any) -> Any:
    if is_sparse(base):
        return NotImplemented
    return _weighted(base, beta, bmm(a, b), alpha)


@public("linear")
def linear(x: Any, weight: Any, bias: Any = None) -> Any:
    _expect_tensors("linear", x, weight)
    if is_sparse(x) or not is_sparse(weight):
        if is_sparse(x) and x.dim() == 2 and not is_sparse(weight):
            found = mm(x, weight.t())
            return found if bias is None else found + bias
        return NotImplemented
    found = mm(weight, x.reshape(-1, x.size(-1)).t()).t().reshape(*x.shape[:-1], weight.size(0))
    return found if bias is None else found + bias


def smm(a: Any, b: Any) -> Any:
    _check("smm", a, b)
    return coordinates_of(mm(a, to_dense(b)), 2)


def sspaddmm(base: Any, a: Any, b: Any, beta: Any = 1, alpha: Any = 1) -> Any:
    if not is_sparse(base) or not is_sparse(a):
        raise RuntimeError("sspaddmm: expected 'input' and 'mat1' to be sparse_coo")
    return _weighted(base, beta, smm(a, b), alpha)


def hspmm(a: Any, b: Any) -> Any:
    """The rows that have entries, each dense."""
    _check("hspmm", a, b)
    rows, values = rows_of(a)
    kept = (rows.crow[1:] > rows.crow[:-1]).nonzero().reshape(-1)
    return coo_of(kept.reshape(1, -1), product(rows, values, b).index_select(0, kept), (a.size(0), b.size(1)), True)


# ---- torch.sparse ---------------------------------------------------------------------------------------------------


def mm_reduce(a: Any, b: Any, reduce: str) -> Any:
    """The product with another reduction than a sum: of each row's products the "mean", the "amax" or "amin"."""
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(f"reduce argument must be either sum, mean, amax or amin, got {reduce}")
    _check("sparse.mm", a, b)
    if not is_sparse(a) or is_sparse(b):
        raise RuntimeError("sparse.mm with a reduction: expected a sparse_csr matrix and a dense one")
    if number_of(a) != CSR:
        raise RuntimeError(f"torch.sparse.mm: expect self to be SparseCsr, got {a.layout}")
    rows, values = rows_of(a)
    if reduce == "sum":
        return product(rows, values, b)
    if reduce == "mean":
        counts = (rows.crow[1:] - rows.crow[:-1]).clamp_min(1).to(b.dtype)
        return product(rows, values, b) / counts.unsqueeze(1)
    which = ops._csr_extreme(rows.crow, rows.col, values.detach(), b.detach(), reduce == "amax")[1]
    empty = which < 0
    at = which.clamp_min(0)
    if not rows.col.size(0):
        return b.new_zeros(which.shape)
    chosen = values.index_select(0, at.reshape(-1)).reshape(which.shape) * b.gather(0, rows.col.index_select(0, at.reshape(-1)).reshape(which.shape))
    return chosen.masked_fill(empty, 0)


def sampled_addmm(t: Any, a: Any, b: Any, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """beta * t + alpha * (a @ b) at the places of t's entries."""
    name = "sampled_addmm"
    if not is_sparse(t) or number_of(t) != CSR:
        raise RuntimeError(f"{name}: Expected self to have sparse csr layout, but got {t.layout}")
    if is_sparse(a) or is_sparse(b):
        raise RuntimeError(f"{name}: Expected mat1 and mat2 to have strided layout, but got {a.layout} and {b.layout}")
    if a.dim() < 2 or b.dim() < 2 or a.dim() != t.dim() or b.dim() != t.dim() or a.shape[:-2] != b.shape[:-2] or a.shape[:-2] != t.shape[:-2]:
        raise RuntimeError(
            f"{name}: expected matrices of the same batch dimensions as input, got {list(t.shape)}, {list(a.shape)} and {list(b.shape)}"
        )
    if a.size(-1) != b.size(-2):
        raise RuntimeError(f"{name}: mat1 and mat2 shapes cannot be multiplied ({a.size(-2)}x{a.size(-1)} and {b.size(-2)}x{b.size(-1)})")
    if t.size(-2) != a.size(-2) or t.size(-1) != b.size(-1):
        raise RuntimeError(f"{name}: self.shape[-2:] must match the product's, got {list(t.shape[-2:])} and {[a.size(-2), b.size(-1)]}")
    _same_type(name, a, b)
    _same_type(name, t, a)
    p = parts(t)
    batch, m, n, k = 1, t.size(-2), t.size(-1), a.size(-1)
    for extent in t.shape[:-2]:
        batch *= extent
    count = nnz(t)
    crow = p.compressed.reshape(batch, m + 1).to(int64)
    shift = ops.arange(batch, device=crow.device).unsqueeze(1)
    # batches one below the other; the last row of one ends where the first of the next begins
    starts = ops.cat([(crow[:, :-1] + shift * count).reshape(-1), ops.full((1,), batch * count, dtype=int64, device=crow.device)])
    rows = Rows(starts, (p.plain.reshape(batch, count).to(int64) + shift * n).reshape(-1), batch * n)
    found = sampled(rows, a.reshape(batch * m, k), b.transpose(-2, -1).reshape(batch * n, k)).reshape(p.values.shape)
    values = values_of(t)
    total = found if alpha == 1 else found * alpha
    total = total if beta == 0 else total + (values if beta == 1 else values * beta)
    pattern = make_compressed(CSR, p.compressed, p.plain, p.values, t.shape)
    return with_values(pattern, total)
