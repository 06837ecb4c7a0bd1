"""torch.linalg's names: norms, products and singular values; other factorisations are not implemented and say so when called."""

from __future__ import annotations

from typing import Any

import tensorrt_lite as trt
from tensorrt_lite import _ops

vector_norm = _ops.linalg_vector_norm
multi_dot = _ops.linalg_multi_dot
cross = _ops.linalg_cross
vecdot = _ops.linalg_vecdot
matrix_power = _ops.matrix_power
matmul = _ops.matmul
svd = _ops.linalg_svd
svdvals = _ops.linalg_svdvals


class LinAlgError(RuntimeError):
    """A matrix for which the asked-for factorisation does not exist."""


def matrix_norm(
    A: Any, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Any:
    """The norm of matrices over two dimensions: 'fro', 1, -1, inf or -inf, or of singular values: 2, -2 or 'nuc'."""
    first, second = (d % A.dim() for d in dim)
    if first == second:
        raise RuntimeError(f"linalg.matrix_norm: dims must be different. Got {tuple(dim)}")
    if ord == "fro":
        return vector_norm(A, 2, (first, second), keepdim, dtype=dtype, out=out)
    if ord in (2, -2, "nuc"):
        if dtype is not None:
            A = A.to(dtype)
        values = svdvals(A.movedim((first, second), (-2, -1)))
        result = values.sum(-1) if ord == "nuc" else values.amax(-1) if ord == 2 else values.amin(-1)
        if keepdim:
            result = result.unsqueeze(min(first, second)).unsqueeze(max(first, second))
        return result if out is None else _into(out, result)
    if ord not in (1, -1, float("inf"), float("-inf")):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord!r} not supported.")
    if ord in (1, -1):
        summed, other = first, second
    else:
        summed, other = second, first
    sums = vector_norm(A, 1, (summed,), True, dtype=dtype)
    result = sums.amax((other,), True) if ord > 0 else sums.amin((other,), True)
    if not keepdim:
        result = result.squeeze((first, second))
    return result if out is None else _into(out, result)


def _into(out: Any, result: Any) -> Any:
    if out.dtype != result.dtype:
        raise RuntimeError(f"linalg.matrix_norm: Expected out tensor to have dtype {result.dtype}, but got {out.dtype} instead")
    return out.resize_(result.shape).copy_(result)


def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None
) -> Any:
    """The 2-norm of all elements; with `ord` or two dimensions that of vectors or matrices."""
    if dim is not None and not isinstance(dim, int) and len(dim) == 2 and ord is not None:
        return matrix_norm(A, ord, dim, keepdim, dtype=dtype, out=out)
    if ord is None:
        return vector_norm(A, 2, dim, keepdim, dtype=dtype, out=out)
    if dim is None and A.dim() == 2:
        return matrix_norm(A, ord, (0, 1), keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: Order {ord!r} is not supported for vectors")
    if dim is None and A.dim() != 1:
        raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.".format(A.dim()))
    return vector_norm(A, ord, dim, keepdim, dtype=dtype, out=out)


def diagonal(A: Any, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """trt.diagonal of the last two dimensions."""
    return trt.diagonal(A, offset, dim1, dim2)


_MISSING = {
    "inv", "inv_ex", "pinv", "solve", "solve_ex", "solve_triangular", "lstsq", "cholesky", "cholesky_ex", "qr", "eig", "eigvals",
    "eigh", "eigvalsh", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "ldl_factor", "ldl_factor_ex", "ldl_solve", "det", "slogdet", "cond",
    "matrix_rank", "matrix_exp", "householder_product", "tensorinv", "tensorsolve", "vander",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MISSING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"linalg.{name} is not implemented (docs/gaps.md)")

    missing.__name__ = name
    return missing
