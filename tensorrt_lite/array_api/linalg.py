"""Linear algebra of the array API standard: functions of matrices in the last two axes, (*, m, n), each of floating-point dtype unless said otherwise."""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite.tensor import Tensor
from tensorrt_lite.array_api import _unsigned
from tensorrt_lite.array_api._dtypes import require_array, together
from tensorrt_lite.array_api._manipulation import Axes, axes_of
from tensorrt_lite.array_api._products import matmul, matrix_transpose, tensordot, vecdot
from tensorrt_lite.array_api._statistical import sum as _sum

__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip


class EighResult(NamedTuple):
    eigenvalues: Tensor
    eigenvectors: Tensor


class QRResult(NamedTuple):
    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    sign: Tensor
    logabsdet: Tensor


class SVDResult(NamedTuple):
    U: Tensor
    S: Tensor
    Vh: Tensor


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular factor of positive definite matrices. x: (*, n, n) -> (*, n, n). LinAlgError for others."""
    return linalg.cholesky(require_array("cholesky", x), upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Cross products of vectors of three elements along an axis; the other axes broadcast. ValueError for another length. Any numeric dtype."""
    a, b = together("cross", require_array("cross", x1), require_array("cross", x2))
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(f"cross(): vectors of 3 elements are expected, not of {a.shape[axis]} and {b.shape[axis]}")
    a, b = trt.broadcast_tensors(a, b)
    if a.dtype in _unsigned.WIDE:
        return _unsigned.modular(lambda s, t: linalg.cross(s, t, dim=axis), a, b)
    return linalg.cross(a, b, dim=axis)


def det(x: Tensor, /) -> Tensor:
    """Determinants. x: (*, n, n) -> (*)."""
    return linalg.det(require_array("det", x))


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """A view of the diagonals (positive offset: above the main one). x: (*, m, n), any dtype -> (*, k)."""
    return linalg.diagonal(require_array("diagonal", x), offset=offset)


def eigh(x: Tensor, /) -> EighResult:
    """Eigenvalues in ascending order and eigenvectors of symmetric or Hermitian matrices. x: (*, n, n) -> (*, n), real, and (*, n, n)."""
    return EighResult(*linalg.eigh(require_array("eigh", x)))


def eigvalsh(x: Tensor, /) -> Tensor:
    """Eigenvalues of symmetric or Hermitian matrices in ascending order. x: (*, n, n) -> (*, n), real."""
    return linalg.eigvalsh(require_array("eigvalsh", x))


def inv(x: Tensor, /) -> Tensor:
    """Inverses. x: (*, n, n) -> (*, n, n). LinAlgError for singular matrices."""
    return linalg.inv(require_array("inv", x))


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """Norms of matrices: ord is 'fro', 'nuc', 1, -1, 2, -2, inf, -inf; None stands for 'fro'. x: (*, m, n) -> (*), real."""
    return linalg.matrix_norm(require_array("matrix_norm", x), "fro" if ord is None else ord, keepdim=keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Matrices multiplied n times by themselves; their inverses for negative n. x: (*, m, m) -> (*, m, m)."""
    return linalg.matrix_power(require_array("matrix_power", x), n)


def matrix_rank(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """How many singular values exceed rtol (a number or (*)) times the greatest one; default max(m, n) * eps. x: (*, m, n) -> (*), int64."""
    if require_array("matrix_rank", x).dim() < 2:
        raise ValueError(f"matrix_rank(): an array of two or more dimensions is expected, not of {x.dim()}")
    return linalg.matrix_rank(x, rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Products of all pairs. x1: (m), x2: (n), any numeric dtype -> (m, n). ValueError for other numbers of dimensions."""
    a, b = together("outer", require_array("outer", x1), require_array("outer", x2))
    if a.dim() != 1 or b.dim() != 1:
        raise ValueError(f"outer(): arrays of one dimension are expected, not of {a.dim()} and {b.dim()}")
    return _unsigned.modular(trt.outer, a, b) if a.dtype in _unsigned.WIDE else trt.outer(a, b)


def pinv(x: Tensor, /, *, rtol: Any = None) -> Tensor:
    """Pseudoinverses; singular values up to rtol times the greatest count as zero, default max(m, n) * eps. x: (*, m, n) -> (*, n, m)."""
    return linalg.pinv(require_array("pinv", x), rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> QRResult:
    """Orthonormal columns and upper triangles whose product is x. x: (*, m, n) -> (*, m, k), (*, k, n); k is m where mode is 'complete', else min(m, n)."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"qr(): mode must be 'reduced' or 'complete', not {mode!r}")
    return QRResult(*linalg.qr(require_array("qr", x), mode))


def slogdet(x: Tensor, /) -> SlogdetResult:
    """Signs and logarithms of the magnitudes of determinants. x: (*, n, n) -> (*), and (*), real."""
    return SlogdetResult(*linalg.slogdet(require_array("slogdet", x)))


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The solutions of x1 @ x = x2. x1: (*, n, n); x2: (n), a vector, or (*, n, k) -> x2's shape with the leading axes broadcast. LinAlgError for singular x1."""
    a, b = together("solve", require_array("solve", x1), require_array("solve", x2))
    if b.dim() == 1:
        return linalg.solve(a, b.unsqueeze(-1)).squeeze(-1)
    # a stack of vectors is PyTorch's reading of (*, n); here it is always matrices
    leading = trt.broadcast_shapes(tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    return linalg.solve(a.expand((*leading, *a.shape[-2:])), b.expand((*leading, *b.shape[-2:])))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular value decompositions U @ diag(S) @ Vh. x: (*, m, n) -> (*, m, m), (*, k), (*, n, n) with k = min(m, n); k columns and rows unless full_matrices."""
    return SVDResult(*linalg.svd(require_array("svd", x), full_matrices=full_matrices))


def svdvals(x: Tensor, /) -> Tensor:
    """Singular values in descending order. x: (*, m, n) -> (*, min(m, n)), real."""
    return linalg.svdvals(require_array("svdvals", x))


def trace(x: Tensor, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sums of diagonals, in dtype or in that of sum(). x: (*, m, n), any numeric dtype -> (*)."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """Norms of order ord (any number, inf and -inf) of vectors along axes, of all elements where axis is None. -> real."""
    axes = axes_of(axis, require_array("vector_norm", x).dim())
    if not axes:
        return x.abs() if ord != 0 else (x != 0).to(x.abs().dtype)
    return linalg.vector_norm(x, ord, axes, keepdims)
