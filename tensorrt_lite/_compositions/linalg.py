"""Decompositions of low rank and extreme eigenpairs, composed of products and small dense decompositions; older names of norms."""

from __future__ import annotations

from tensorrt_lite._C.autograd.node import namespace
from tensorrt_lite._C.core.device import strided
from tensorrt_lite._C.core.dtype import _dtype_by_name, get_default_dtype as _get_default_dtype
from tensorrt_lite._C.ops.support import deliver_result, tensor_argument
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_grad_mode = _LazyModule("tensorrt_lite.autograd.grad_mode")

TYPE_CHECKING = False  # `typing` and what it imports would be a quarter of the package's import time
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tensorrt_lite import Tensor

_ops = namespace()


def _in_floating_type(x: Any) -> Any:
    return x if x.is_floating_point() or x.is_complex() else x.to(_get_default_dtype())


# ---- low rank (Halko, Martinsson and Tropp 2009) ------------------------------------------------------------------------


def _range_basis(a: Any, q: int, niter: int) -> Any:
    """An orthonormal basis of q dimensions close to the range of a (*, m, n): algorithm 4.4, a subspace iteration from random directions."""
    directions = _ops.randn(a.size(-1), q, dtype=a.dtype, device=a.device)
    basis = _ops.linalg_qr(_ops.matmul(a, directions))[0]
    for _ in range(niter):
        basis = _ops.linalg_qr(_ops.matmul(a.mH, basis))[0]
        basis = _ops.linalg_qr(_ops.matmul(a, basis))[0]
    return basis


def _low_rank(a: Any, q: int, niter: int) -> tuple[Any, Any, Any]:
    wide = a.size(-2) < a.size(-1)
    if wide:
        a = a.mH
    basis = _range_basis(a, q, niter)
    u, s, vh = _ops.linalg_svd(_ops.matmul(basis.mH, a), False)
    u, v = _ops.matmul(basis, u), vh.mH
    return (v, s, u) if wide else (u, s, v)


def svd_lowrank(A: Any, q: int | None = 6, niter: int | None = 2, M: Any = None) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V), the largest singular values and their vectors of A, or A - M."""
    A = tensor_argument(A, "svd_lowrank", "A")
    if M is not None:
        A = A - tensor_argument(M, "svd_lowrank", "M").expand(A.shape)
    return _low_rank(_in_floating_type(A), 6 if q is None else q, 2 if niter is None else niter)


def pca_lowrank(A: Any, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) of the centred rows of A."""
    A = tensor_argument(A, "pca_lowrank", "A")
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    A = _in_floating_type(A)
    if center and A.layout is not strided:  # what is centred has no zeros
        A = A.to_dense()
    return _low_rank(A - A.mean(-2, True) if center else A, q, niter)


# ---- lobpcg (Knyazev 2001) ----------------------------------------------------------------------------------------------


def _times(matrix: Any, x: Any) -> Any:
    return x if matrix is None else _ops.matmul(matrix, x)


def _orthonormal(s: Any, b: Any) -> Any:
    """A basis of the columns' span, orthonormal in the product of B, by the eigenvectors of the scaled Gram matrix (Stathopoulos and Wu 2002).
    Directions that rounding made of others are dropped."""
    for _ in range(2):
        gram = _ops.matmul(s.mT, _times(b, s))
        scale = gram.diagonal().clamp_min(0).sqrt()
        scale = _ops.where(scale > 0, 1 / scale, _ops.zeros_like(scale))
        values, vectors = _ops.linalg_eigh(gram * scale * scale.unsqueeze(1))
        kept = values > values.max() * (1e-12 if s.dtype == _dtype_by_name("float64") else 1e-6)
        count = int(kept.sum())
        values, vectors = values[-count:], vectors[:, -count:]
        s = _ops.matmul(s * scale, vectors / values.sqrt())
    return s


def _ritz(s: Any, a: Any, b: Any, n: int, largest: bool) -> tuple[Any, Any, Any]:
    """(values, coefficients, basis) of the n extreme Ritz pairs in the span of s."""
    basis = _orthonormal(s, b)
    values, vectors = _ops.linalg_eigh(_ops.matmul(basis.mT, _times(a, basis)))
    if largest:
        values, vectors = values.flip(0), vectors.flip(1)
    return values[:n], vectors[:, :n], basis


def _extreme_pairs(a: Any, b: Any, x: Any, preconditioner: Any, k: int, niter: int, tol: float, largest: bool) -> tuple[Any, Any]:
    """k eigenpairs of one problem, from the block x of initial vectors."""
    n = x.size(1)
    size = float(x.norm())
    if size == 0:
        raise RuntimeError("lobpcg: the initial vectors are zero")
    a_norm, b_norm = float(_times(a, x).norm()) / size, float(_times(b, x).norm()) / size
    values, vectors, basis = _ritz(x, a, b, n, largest)
    x, step = _ops.matmul(basis, vectors), None
    for _ in range(niter):
        residual = _times(a, x) - _times(b, x) * values
        error = residual.norm(2, 0) / (x.norm(2, 0) * (a_norm + values.abs() * b_norm))
        if bool((error[:k] < tol).all()):
            break
        residual = _times(preconditioner, residual)
        # against what is there already, so that the Gram matrix stays well conditioned near convergence
        residual = residual - _ops.matmul(x, _ops.matmul(x.mT, _times(b, residual)))
        found, vectors, basis = _ritz(_ops.cat([x, residual] if step is None else [x, residual, step], 1), a, b, n, largest)
        following = _ops.matmul(basis, vectors)
        step = following - _ops.matmul(x, _ops.matmul(x.mT, _times(b, following)))
        x, values = following, found
    return values[:k], x[:, :k]


def _attached(a: Any, b: Any, values: Any, vectors: Any) -> tuple[Any, Any]:
    """The eigenpairs as functions of the matrices: their values unchanged, their first derivatives those of the problem, by one bordered system
    for each pair, which is regular for simple eigenvalues."""
    ax = _ops.matmul(a, vectors)
    bx = _times(b, vectors)
    norms = (vectors * bx).sum(0)
    values = (vectors * ax).sum(0) - values * (norms - 1)
    columns = []
    fixed_a, fixed_b = a.detach(), None if b is None else b.detach()
    m = a.size(0)
    for i in range(vectors.size(1)):
        value, x = values[i].detach(), vectors[:, i]
        border = _times(fixed_b, x).unsqueeze(1)
        product = _ops.eye(m, dtype=a.dtype, device=a.device) if fixed_b is None else fixed_b
        system = _ops.cat([_ops.cat([fixed_a - value * product, border], 1), _ops.cat([border.mT, border.new_zeros((1, 1))], 1)])
        right = _ops.cat([-(ax[:, i] - values[i] * bx[:, i]), (1 - norms[i]).reshape(1) / 2])
        columns.append(x + _ops.linalg_solve(system, right - right.detach())[:m])
    return values, _ops.stack(columns, 1)


def lobpcg(
    A: Any,
    k: int | None = None,
    B: Any = None,
    X: Any = None,
    n: int | None = None,
    iK: Any = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """(eigenvalues, eigenvectors) at one end of the spectrum."""
    A = _in_floating_type(tensor_argument(A, "lobpcg", "A"))
    if A.dim() < 2 or A.size(-1) != A.size(-2):
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if B is not None and B.shape != A.shape:
        raise AssertionError(f"A and B must have same shape, got {A.shape} vs {B.shape}")
    if method not in (None, "ortho", "basic"):
        raise ValueError(f"lobpcg: there is no method {method!r}")
    if tracker is not None:
        raise NotImplementedError("lobpcg: tracker is not implemented (docs/gaps.md)")
    m = A.size(-1)
    k = (1 if X is None else X.size(-1)) if k is None else k
    n = (k if n is None else n) if X is None else X.size(-1)
    if k < 1 or n < 1:
        raise ValueError(f"lobpcg: expected at least one eigenpair, got k={k}, n={n}")
    if m < 3 * n:
        raise ValueError(f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested eigenpairs (={n})")
    if tol is None:
        tol = (2.23e-16 if A.dtype == _dtype_by_name("float64") else 1.2e-07) ** 0.5
    recorded = A.requires_grad or B is not None and B.requires_grad
    if recorded:
        # gradients of symmetric matrices are symmetric
        A, B = (A + A.mT) / 2, None if B is None else (B + B.mT) / 2
    batch = A.shape[:-2]
    many = lambda t: [None] * count if t is None else [t] if t.dim() == 2 else t.reshape((count, *t.shape[-2:])).unbind(0)  # noqa: E731
    count = 1
    for size in batch:
        count *= size
    values, vectors = [], []
    for a, b, x in zip(many(A), many(B), many(X), strict=True):
        x = _ops.randn(m, n, dtype=A.dtype, device=A.device) if x is None else x
        with _grad_mode.no_grad():
            e, v = _extreme_pairs(a.detach(), None if b is None else b.detach(), x.detach(), iK, k, 1000 if niter is None else niter, tol, largest is None or largest)
        if recorded:
            e, v = _attached(a, b, e, v)
        values.append(e)
        vectors.append(v)
    return _ops.stack(values).reshape((*batch, k)), _ops.stack(vectors).reshape((*batch, m, k))


# ---- norms under their older names --------------------------------------------------------------------------------------


def nuclear_norm(input: Any, dim: Sequence[int] | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The sum of the singular values of matrices."""
    if isinstance(dim, bool):  # the overload without dimensions has keepdim in its place
        dim, keepdim = None, dim
    x = tensor_argument(input, "nuclear_norm", "input")
    if dim is None and x.dim() != 2:
        raise RuntimeError(f"Expected a tensor with 2 dimensions, but got a tensor with {x.dim()} dimension{'s' if x.dim() != 1 else ''} instead.")
    return deliver_result("nuclear_norm", _ops.linalg_matrix_norm(x, "nuc", (0, 1) if dim is None else tuple(dim), keepdim), out)


def frobenius_norm(input: Any, dim: Sequence[int], keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The root of the sum of squares over one or two dimensions."""
    x = tensor_argument(input, "frobenius_norm", "input")
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) > 2:
        raise RuntimeError(f"Expected at most 2 dimensions, but got {len(dims)} dimensions instead.")
    return deliver_result("frobenius_norm", _ops.linalg_vector_norm(x, 2, list(dims) if dims else None, keepdim), out)
