"""torch.sparse: products, sums and softmax of sparse tensors, checks of their invariants, and SciPy's matrices both ways.

docs/sparse.md says which operators take which layouts.
"""

from __future__ import annotations

from functools import wraps as _wraps
from typing import Any

from tensorrt_lite import _root as trt
import tensorrt_lite._sparse as _sparse
from tensorrt_lite.tensor import Tensor as Tensor
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_missing = _LazyModule("tensorrt_lite._names.missing")
_typed_tensors = _LazyModule("tensorrt_lite._legacy.typed_tensors")

__all__ = [
    "addmm", "as_sparse_gradcheck", "check_sparse_tensor_invariants", "from_scipy", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags", "spsolve", "sum",
    "to_scipy", "to_sparse_semi_structured",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _typed_tensors.SPARSE_NAMES:
        raise _missing.error("sparse", name)
    globals()[name] = _typed_tensors.typed_class(name, sparse=True)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_typed_tensors.SPARSE_NAMES})


@_sparse.batches.mapped
def mm(mat1: Any, mat2: Any, reduce: str | None = None) -> Any:
    """The product of a sparse matrix and a dense or sparse one: (n, m), (m, p) -> (n, p), sparse where both are.

    reduce: "sum", "mean", "amax" or "amin" of the products of each row instead, of a sparse_csr and a dense matrix. RuntimeError where shapes, layouts or
    types do not fit.

    Parameters:
        mat1 (Tensor): a sparse matrix, (N, M)
        mat2 (Tensor): a matrix, (M, P)
        reduce (str or None, default None): 'sum', 'mean', 'amax' or 'amin' of the products; None is 'sum'

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sparse.mm(trt.eye(2).to_sparse(), trt.tensor([[1.0], [2.0]]))
        tensor([[1.],
                [2.]])
    """
    if reduce is not None:
        return _sparse.matmul.mm_reduce(mat1, mat2, reduce)
    if not (_is_sparse(mat1) or _is_sparse(mat2)):
        raise RuntimeError("torch.sparse.mm: expected a sparse matrix")
    return _sparse.matmul.mm(mat1, mat2)


@_sparse.batches.mapped
def addmm(mat: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0) -> Any:
    """beta * mat + alpha * (mat1 @ mat2) with a sparse mat1: mat (n, p), mat1 (n, m), mat2 (m, p).

    Parameters:
        mat (Tensor): the matrix that is added, (N, P)
        mat1 (Tensor): a sparse matrix, (N, M)
        mat2 (Tensor): the second matrix, (M, P)
        beta (number, default 1.0): the factor of the matrix that is added
        alpha (number, default 1.0): the factor of the product

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sparse.addmm(trt.ones(2, 2), trt.eye(2).to_sparse(), trt.eye(2))
        tensor([[2., 1.],
                [1., 2.]])
    """
    return _sparse.matmul.addmm(mat, mat1, mat2, beta, alpha)


def sampled_addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1.0, alpha: Any = 1.0, out: Any = None) -> Any:
    """beta * input + alpha * (mat1 @ mat2) at the places of input's entries. input: sparse_csr (*, n, p); mat1 (*, n, m), mat2 (*, m, p) dense.

    Parameters:
        input (Tensor): of the layout sparse_csr, (*, N, P)
        mat1 (Tensor): the first matrix, (N, M)
        mat2 (Tensor): the second matrix, (M, P)
        beta (number, default 1.0): the factor of the matrix that is added
        alpha (number, default 1.0): the factor of the product
        out (Tensor or None, default None): where the result is written

    Example:
        >>> import tensorrt_lite as trt
        >>> x = trt.eye(2).to_sparse_csr()
        >>> trt.sparse.sampled_addmm(x, trt.ones(2, 3), trt.ones(3, 2)).to_dense()
        tensor([[4., 0.],
                [0., 4.]])
    """
    made = _sparse.matmul.sampled_addmm(input, mat1, mat2, beta, alpha)
    return made if out is None else _sparse.parts.assign(out, made, "sampled_addmm")


@_sparse.batches.mapped
def sum(input: Any, dim: Any = None, dtype: Any = None) -> Any:
    """The sum of a sparse tensor's elements, over dim where it is given: sparse while a sparse dimension is left, else dense.

    Parameters:
        input (Tensor): a sparse tensor
        dim (int, tuple of ints or None, default None): the dimensions that are reduced; None is all
        dtype (dtype or None, default None): the type of the result; None is the default

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sparse.sum(trt.eye(3).to_sparse())
        tensor(3.)
    """
    if not _is_sparse(input):
        raise RuntimeError(f"sparse.sum: expected a sparse tensor, got {input.layout}")
    return _sparse.reduction.sparse_sum(input, dim, dtype)


@_sparse.batches.mapped
def softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """softmax along dim over the stored entries of a sparse_coo tensor: what is not stored counts as minus infinity.

    Parameters:
        input (Tensor): of the layout sparse_coo
        dim (int): the dimension along which the result sums to 1
        dtype (dtype or None, default None): the type of the result; None is the default

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sparse.softmax(trt.tensor([[1.0, 0.0], [1.0, 1.0]]).to_sparse(), dim=1).values()
        tensor([1.0000, 0.5000, 0.5000])
    """
    return _sparse.reduction.softmax(input, dim, dtype, False)


@_sparse.batches.mapped
def log_softmax(input: Any, dim: int, *, dtype: Any = None) -> Any:
    """The logarithm of `softmax`.

    Parameters:
        input (Tensor): of the layout sparse_coo
        dim (int): the dimension along which exp(result) sums to 1
        dtype (dtype or None, default None): the type of the result; None is the default

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sparse.log_softmax(trt.tensor([[1.0, 0.0], [1.0, 1.0]]).to_sparse(), dim=1).values()
        tensor([ 0.0000, -0.6931, -0.6931])
    """
    return _sparse.reduction.softmax(input, dim, dtype, True)


def spdiags(diagonals: Any, offsets: Any, shape: tuple[int, int], layout: Any = None) -> Any:
    """A sparse matrix whose diagonals are the rows of `diagonals`, (count, n): row k on the diagonal offsets[k], its element j in column j.

    offsets: int64 (count,), different from each other. layout: sparse_coo (None), sparse_csr or sparse_csc. RuntimeError for other arguments.

    Parameters:
        diagonals (Tensor): the diagonals, (K, N)
        offsets (Tensor): which diagonals they are, of int64, (K)
        shape (tuple[int, int]): the shape of the result
        layout (default None): (layout or None) that of the result; None is sparse_coo

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.sparse.spdiags(trt.tensor([[1.0, 2.0]]), trt.tensor([0]), (2, 2)).to_dense()
        tensor([[1., 0.],
                [0., 2.]])
    """
    if layout is not None and layout not in (trt.sparse_coo, trt.sparse_csr, trt.sparse_csc):
        raise RuntimeError(f"spdiags(): only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}")
    lines = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    places = offsets.unsqueeze(0) if offsets.dim() == 0 else offsets
    if lines.dim() != 2:
        raise RuntimeError("spdiags(): Diagonals must be vector or matrix")
    if places.dim() != 1:
        raise RuntimeError("spdiags(): Offsets must be scalar or vector")
    if len(shape) != 2:
        raise RuntimeError(f"spdiags(): Output shape must be 2d, got {tuple(shape)}")
    if lines.size(0) != places.size(0):
        raise RuntimeError(f"spdiags(): Number of diagonals ({lines.size(0)}) does not match the number of offsets ({places.size(0)})")
    if places.dtype is not trt.int64:
        raise RuntimeError("spdiags(): Offset Tensor must have dtype Long but got " + str(places.dtype))
    if places.unique().size(0) != places.size(0):
        raise RuntimeError("spdiags(): Offset tensor contains duplicate values")
    rows, columns = int(shape[0]), int(shape[1])
    across = trt.arange(lines.size(1), device=lines.device).expand(lines.shape)
    down = across - places.unsqueeze(1)
    kept = ((down >= 0) & (down < rows) & (across < columns)).nonzero().t()
    at = tuple(kept)
    made = trt.sparse_coo_tensor(trt.stack([down[at], across[at]]), lines[at], (rows, columns))
    return made if layout is None or layout is trt.sparse_coo else made.to_sparse(layout=layout)


def spsolve(input: Any, other: Any, *, left: bool = True) -> Any:
    """Solutions of sparse systems: PyTorch has them through cuDSS on CUDA alone, and here there are none. NotImplementedError."""
    raise NotImplementedError("torch.sparse.spsolve is not implemented (docs/gaps.md): use linalg.solve(input.to_dense(), other)")


def to_sparse_semi_structured(original_tensor: Any, transposed: bool = False) -> Any:
    """Two of four elements stored, which is for CUDA's sparse tensor cores. NotImplementedError."""
    raise NotImplementedError("semi-structured sparsity is not implemented (docs/gaps.md)")


def _is_sparse(t: Any) -> bool:
    return _sparse.parts.is_sparse(t)


class check_sparse_tensor_invariants:  # noqa: N801 (PyTorch's name)
    """Whether constructors look at the indices that they are given: `enable()`, `disable()`, `is_enabled()`; a context and a decorator, too."""

    @staticmethod
    def is_enabled() -> bool:
        """Whether the checks are on."""
        return _sparse.construct.checks_invariants()

    @staticmethod
    def enable() -> None:
        """Check from now on."""
        _sparse.construct.set_checks(True)

    @staticmethod
    def disable() -> None:
        """Check no longer."""
        _sparse.construct.set_checks(False)

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError("This context manager instance is already activated. Use a different context manager instance for context nesting.")
        self.saved_state = self.is_enabled()
        _sparse.construct.set_checks(self.state)

    def __exit__(self, *exception: Any) -> None:
        assert self.saved_state is not None
        _sparse.construct.set_checks(self.saved_state)
        self.saved_state = None

    def __call__(self, function: Any) -> Any:
        @_wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


def as_sparse_gradcheck(gradcheck: Any) -> Any:
    """A gradcheck that takes sparse inputs, and functions that return sparse tensors.

    The function is checked as one of the values at the indices that the inputs have (masked=True, the only form here).

    Parameters:
        gradcheck (function): such as trt.autograd.gradcheck

    Example:
        >>> import tensorrt_lite as trt
        >>> check = trt.sparse.as_sparse_gradcheck(trt.autograd.gradcheck)
        >>> x = trt.eye(2, dtype=trt.float64).to_sparse().requires_grad_()
        >>> check(lambda x: trt.sparse.sum(x), x)
        True
    """
    @_wraps(gradcheck)
    def checked(function: Any, inputs: Any, **options: Any) -> Any:
        if options.pop("masked", True) is not True:
            raise NotImplementedError("as_sparse_gradcheck(masked=False) is not implemented (docs/gaps.md): gradients are those of stored entries")
        options.pop("check_sparse_nnz", None)
        given = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
        plain = tuple(x.detach().clone().coalesce() if _is_sparse(x) and x.is_sparse else x for x in given)
        values = tuple(p.values().detach().clone().requires_grad_(x.requires_grad) if _is_sparse(x) else x for x, p in zip(given, plain))

        def on_values(*parts: Any) -> Any:
            results = function(*(_sparse.parts.with_values(p, v) if _is_sparse(p) else v for p, v in zip(plain, parts)))
            several = results if isinstance(results, (tuple, list)) else (results,)
            strided = tuple(r.to_dense() if _is_sparse(r) else r for r in several)
            return strided if isinstance(results, (tuple, list)) else strided[0]

        return gradcheck(on_values, values, **options)

    return checked


# ---- SciPy ----------------------------------------------------------------------------------------------------------


def from_scipy(matrix: Any) -> Any:
    """A sparse tensor of SciPy's array or matrix: csr, csc, bsr and coo in their layouts over copies of their memory, others as sparse_coo."""
    kind = getattr(matrix, "format", None)
    if kind is None:
        raise TypeError(f"from_scipy() takes a sparse array or matrix of SciPy, got {type(matrix).__name__}")
    if kind in ("csr", "csc", "bsr"):
        first, second = (trt.from_numpy(x.copy()) for x in (matrix.indptr, matrix.indices))
        make = {"csr": trt.sparse_csr_tensor, "csc": trt.sparse_csc_tensor, "bsr": trt.sparse_bsr_tensor}[kind]
        return make(first, second, trt.from_numpy(matrix.data.copy()), matrix.shape, check_invariants=False)
    import numpy

    found = matrix.tocoo()
    places = found.coords if hasattr(found, "coords") else (found.row, found.col)
    return trt.sparse_coo_tensor(
        trt.from_numpy(numpy.stack(places).astype("int64")), trt.from_numpy(found.data.copy()), found.shape, check_invariants=True
    )


def to_scipy(t: Any) -> Any:
    """SciPy's array of a sparse matrix on the CPU without batch and dense dimensions: coo_array, csr_array, csc_array or bsr_array over copies. ImportError without SciPy."""
    import scipy.sparse

    if not _is_sparse(t) or t.dense_dim() or t.dim() != 2:
        raise TypeError(f"to_scipy() takes a sparse matrix without dense dimensions, got {t.layout} of shape {list(t.shape)}")
    p = _sparse.parts.parts(t.detach().cpu())
    values = p.values.numpy().copy()
    if t.layout is trt.sparse_coo:
        return scipy.sparse.coo_array((values, tuple(p.indices.numpy().copy())), shape=tuple(t.shape))
    if t.layout is trt.sparse_bsc:
        t = t.to_sparse_bsr(p.values.shape[1:3])
        p = _sparse.parts.parts(t.detach())
        values = p.values.numpy().copy()
    make = {trt.sparse_csr: scipy.sparse.csr_array, trt.sparse_csc: scipy.sparse.csc_array, trt.sparse_bsr: scipy.sparse.bsr_array}[t.layout]
    return make((values, p.plain.numpy().copy(), p.compressed.numpy().copy()), shape=tuple(t.shape))
