"""Linear algebra on CUDA beside the CPU's; run by test_families.py through device_checks.py.

Small matrices are one block's, those of 100 rows and more are cut into panels and products. Where a result is unique up to phases,
what it must satisfy is compared.
"""

from __future__ import annotations

import os
from typing import Any

import tensorrt_lite as torch
from device_checks import agree, assert_same, raises
from tensorrt_lite.cuda import _kernels  # noqa: F401 (before a family alone is imported)
from tensorrt_lite._C.cuda.linalg import _rotate_device_wide_from  # isort: skip

TYPES = (torch.float32, torch.complex128)


def well_conditioned(*shape: int, dtype: Any = torch.float32) -> Any:
    """Matrices whose singular values lie within a small factor of each other."""
    return torch.randn(*shape, dtype=dtype) + 2 * max(shape[-2:]) ** 0.5 * torch.eye(*shape[-2:], dtype=dtype)


def positive(n: int, *batch: int, dtype: Any = torch.float32) -> Any:
    """Hermitian positive-definite matrices."""
    x = torch.randn(*batch, n, n, dtype=dtype)
    return x @ x.mH / n + torch.eye(n, dtype=dtype)


def check_lu(order: str) -> None:
    """Factors, pivots and solutions, of one block and of many."""
    for dtype in TYPES:
        for shape in ((3, 5, 5), (2, 70, 90), (1, 130, 110)) if order == "forward" else ((7, 5), (90, 95)):
            agree(torch.linalg.lu_factor, well_conditioned(*shape, dtype=dtype).flip(-2) / max(shape) ** 0.5)
        a = well_conditioned(2, 33, 33, dtype=dtype)
        agree(torch.linalg.solve, a, torch.randn(2, 33, 3, dtype=dtype))
        agree(torch.linalg.slogdet, a)


def check_lu_solve() -> None:
    """Both sides, the adjoint, batches that broadcast, vectors, strided and column-major operands, gradients."""
    for dtype in TYPES:
        a = well_conditioned(2, 5, 5, dtype=dtype)
        lu, pivots = torch.linalg.lu_factor(a.mT)
        for left in (True, False):
            for adjoint in (True, False):
                b = torch.randn(3, 1, 5, 4, dtype=dtype)
                agree(torch.linalg.lu_solve, lu, pivots, b if left else b.mT, left=left, adjoint=adjoint)
        agree(torch.linalg.solve, a, torch.randn(2, 5, dtype=dtype))
        agree(torch.linalg.solve, a[:, ::2, ::2], torch.randn(2, 4, 3, dtype=dtype), left=False)
        agree(torch.linalg.inv, a)
        agree(torch.linalg.det, a)
    a, b = well_conditioned(4, 4).requires_grad_(), torch.randn(4, 2, dtype=torch.float32, requires_grad=True)
    for call in (torch.linalg.inv, torch.linalg.det, torch.logdet, torch.linalg.lu_factor):
        agree(call, a)
    agree(torch.linalg.solve, a, b)
    agree(torch.linalg.lu, torch.randn(2, 6, 4, dtype=torch.float32))
    for shape in ((0, 3, 3), (2, 0, 0)):
        agree(torch.linalg.inv, torch.zeros(*shape, dtype=torch.float32))
        agree(torch.linalg.det, torch.zeros(*shape, dtype=torch.float32))
    x = torch.randn(3, 3, dtype=torch.float32)
    assert torch.isnan(torch.linalg.lu_solve(x.cuda(), torch.tensor([9, 2, 3], dtype=torch.int32).cuda(), x.cuda())).any()
    # without pivots, which the CPU does not have
    a = well_conditioned(100, 100)
    p, lower, upper = torch.linalg.lu(a.cuda(), pivot=False)
    assert p.numel() == 0
    assert_same(lower @ upper, a, "lu without pivots")


def check_cholesky(order: str) -> None:
    """Both triangles, one block and many, what is solved with the factor, gradients."""
    for dtype in TYPES:
        a = positive(120 if order == "forward" else 90, dtype=dtype)
        agree(torch.linalg.cholesky, a)
        agree(torch.linalg.cholesky, a, upper=True)
        a, b = positive(35, 2, dtype=dtype), torch.randn(2, 35, 3, dtype=dtype)
        for upper in (False, True):
            factor = torch.linalg.cholesky(a, upper=upper)
            agree(torch.cholesky_solve, b, factor, upper)
            agree(torch.cholesky_inverse, factor, upper)
    agree(torch.linalg.cholesky, positive(4, 2).requires_grad_())
    agree(torch.linalg.cholesky, torch.zeros(2, 0, 0, dtype=torch.float32))


def check_triangular() -> None:
    """Either triangle and side, ones for a diagonal, any strides, gradients."""
    for dtype in TYPES:
        for n in (6, 80):
            a = well_conditioned(n, n, dtype=dtype) / n**0.5
            for upper in (False, True):
                for left in (False, True):
                    b = torch.randn(2, n, 40, dtype=dtype)
                    agree(torch.linalg.solve_triangular, a.mT if left else a, b if left else b.mT, upper=upper, left=left)
    a, b = well_conditioned(5, 5).requires_grad_(), torch.randn(5, 3, dtype=torch.float32, requires_grad=True)
    agree(torch.linalg.solve_triangular, a, b, upper=True, unitriangular=True)
    agree(torch.triangular_solve, b, a, transpose=True)


def check_qr(order: str) -> None:
    """LAPACK's conventions make R, tau and Q the CPU's."""
    for dtype in TYPES:
        for shape in ((2, 6, 4), (4, 6), (110, 70), (70, 110)) if order == "forward" else ((6, 4), (100, 80)):
            x = torch.randn(*shape, dtype=dtype)
            for mode in ("reduced", "complete", "r"):
                agree(torch.linalg.qr, x, mode)
            a, tau = torch.geqrf(x)
            for left in (True, False):
                for adjoint in (True, False):
                    other = torch.randn(*shape[:-1], 5, dtype=dtype)
                    agree(torch.ormqr, a, tau, other if left else other.mT, left, adjoint)
        agree(torch.geqrf, x)
        agree(torch.linalg.householder_product, *torch.geqrf(torch.randn(7, 5, dtype=dtype)))
        for shape in ((9, 4), (4, 9)):
            agree(torch.linalg.lstsq, torch.randn(*shape, dtype=dtype), torch.randn(shape[0], 2, dtype=dtype), driver="gels")
    agree(torch.linalg.qr, torch.randn(5, 3, dtype=torch.float32, requires_grad=True))
    agree(torch.geqrf, torch.zeros(3, 2, dtype=torch.float32))
    agree(torch.linalg.qr, torch.zeros(3, 0, 4, dtype=torch.float32))


def satisfied(what: str, result: Any, expected: Any) -> None:
    """Equal within the rounding of a small matrix's decomposition."""
    result = result.detach().cpu()
    expected = expected.detach().to(result.dtype)
    tolerance = 1e-4 if result.dtype in (torch.float32, torch.complex64) else 1e-11
    assert torch.allclose(result, expected.expand(result.shape), rtol=tolerance, atol=tolerance), f"{what}: {result} expected {expected}"


def check_eigh(order: str) -> None:
    """Eigenvalues are the CPU's, vectors orthonormal and what they should be; by one block and by the whole device."""
    for dtype in TYPES:
        for n, launches in ((1, 257), (5, 257), (12, 10), (13, 10), (80, 257)) if order == "forward" else ((12, 10), (7, 257)):
            a = torch.randn(2, n, n, dtype=dtype) if n < 80 else torch.randn(1, n, n, dtype=dtype)
            a = (a + a.mH) / 2
            before = _rotate_device_wide_from(launches)
            for half, uplo in ((a.tril(), "L"), (a.triu(), "U")):
                values, vectors = (t.cpu() for t in torch.linalg.eigh(half.cuda(), uplo))
                satisfied("eigenvalues", values, torch.linalg.eigvalsh(a))
                satisfied("orthogonality", vectors.mH @ vectors, torch.eye(n, dtype=dtype))
                satisfied("eigenvectors", (vectors * values.unsqueeze(-2)) @ vectors.mH, a)
            satisfied("values alone", torch.linalg.eigvalsh(a.cuda()), torch.linalg.eigvalsh(a))
            _rotate_device_wide_from(before)
    a = positive(4)
    a.requires_grad_()
    agree(torch.linalg.eigvalsh, a)
    agree(lambda x: torch.linalg.eigh(x)[1].abs(), a + torch.diag_embed(torch.arange(4.0)))
    agree(torch.linalg.matrix_rank, a.detach(), hermitian=True)
    raises(torch.linalg.LinAlgError, "non-finite", torch.linalg.eigh, torch.full((2, 2), float("nan")).cuda())


def check_svd(order: str) -> None:
    """Tall, wide, square and singular matrices, reduced and full, of any scale; by one block and by the whole device."""
    for dtype in TYPES:
        for shape, rank, scale, launches in (
            ((2, 6, 4), 9, 1.0, 257), ((4, 6), 9, 1e30, 257), ((12, 12), 9, 1e-30, 10), ((20, 13), 9, 1.0, 10), ((7, 7), 3, 1.0, 257), ((60, 20), 9, 1.0, 257), ((3, 5), 0, 1.0, 257),
        ) if order == "forward" else (((12, 12), 99, 1.0, 10), ((7, 5), 3, 1.0, 257)):  # fmt: skip
            a = torch.randn(*shape[:-1], rank, dtype=dtype) @ torch.randn(*shape[:-2], rank, shape[-1], dtype=dtype)
            before, k = _rotate_device_wide_from(launches), min(shape[-2:])
            for full in (False, True):
                u, s, vh = (t.cpu() for t in torch.linalg.svd((a * scale).cuda(), full_matrices=full))
                s = s / scale
                satisfied("singular values", s, torch.linalg.svdvals(a))
                satisfied("columns of U", u.mH @ u, torch.eye(u.shape[-1], dtype=dtype))
                satisfied("rows of Vh", vh @ vh.mH, torch.eye(vh.shape[-2], dtype=dtype))
                satisfied("product", (u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a)
            satisfied("values alone", torch.linalg.svdvals((a * scale).cuda()).cpu() / scale, torch.linalg.svdvals(a))
            _rotate_device_wide_from(before)
    agree(torch.linalg.svdvals, well_conditioned(4, 3).requires_grad_())
    for call in (torch.linalg.pinv, torch.linalg.matrix_rank, torch.linalg.cond, lambda x: torch.linalg.norm(x, "nuc")):
        agree(call, torch.randn(5, 3) + 2 * torch.eye(5, 3))
    for driver in ("gelsy", "gelsd", "gelss"):
        agree(torch.linalg.lstsq, torch.randn(6, 2) @ torch.randn(2, 4), torch.randn(6, 2), driver=driver)
    agree(torch.linalg.svd, torch.zeros(2, 0, 3))


def check_ldl(order: str) -> None:
    """LAPACK's pivots make the factors the CPU's; in shared and in global memory."""
    for dtype in TYPES:
        for n in (6, 70) if order == "forward" and dtype == torch.complex128 else (9,):
            a = torch.randn(n, n, dtype=dtype)
            for hermitian in (False, True):
                x = (a + (a.mH if hermitian else a.mT)) / 2
                agree(torch.linalg.ldl_factor_ex, x, hermitian=hermitian)
                ld, pivots = torch.linalg.ldl_factor(x, hermitian=hermitian)
                satisfied("solution", x @ torch.linalg.ldl_solve(ld.cuda(), pivots.cuda(), x.cuda(), hermitian=hermitian).cpu(), x)


def check_eig() -> None:
    """A V = V diag(w) with vectors of norm 1, real values and pairs of real matrices exactly so; gradients."""
    for dtype in TYPES:
        for a in (*(torch.randn(2, n, n, dtype=dtype) for n in (1, 2, 7)), torch.randn(1, 56, 56, dtype=dtype), torch.zeros(3, 3, dtype=dtype), torch.randn(5, 5, dtype=dtype).triu()):
            values, vectors = (t.cpu() for t in torch.linalg.eig(a.cuda()))
            satisfied("A V", a.to(values.dtype) @ vectors, vectors * values.unsqueeze(-2))
            satisfied("norms", vectors.abs().square().sum(-2), torch.ones(1))
            expected = torch.linalg.eigvals(a)
            satisfied("number of real values", (values.imag == 0).sum().double(), (expected.imag == 0).sum().double())
            for found in (values, torch.linalg.eigvals(a.cuda()).cpu()):
                distances = (found.unsqueeze(-1) - expected.unsqueeze(-2)).abs()
                satisfied("eigenvalues", torch.maximum(distances.amin(-1), distances.amin(-2)), torch.zeros(1))
    agree(lambda x: torch.linalg.eigvals(x).abs().sum(), torch.randn(4, 4, dtype=torch.complex128, requires_grad=True))
    raises(RuntimeError, "infs or NaNs", torch.linalg.eig, torch.full((2, 2), float("inf")).cuda())


def check_errors() -> None:
    """What has no result raises, with the place in the batch; the _ex forms give the CPU's codes."""
    a = torch.eye(3, dtype=torch.float32).repeat(2, 1, 1)
    a[1, 1] = 0
    for call in (torch.linalg.inv, torch.linalg.cholesky, torch.linalg.lu_factor):
        raises(torch.linalg.LinAlgError, "(Batch element 1)", call, a.cuda())
    for call in (torch.linalg.inv_ex, torch.linalg.cholesky_ex, torch.linalg.lu_factor_ex):
        assert torch.equal(call(a.cuda())[-1].cpu(), call(a)[-1])
    raises(RuntimeError, "same device", torch.linalg.solve, a.cuda(), a)
    large = torch.eye(120, dtype=torch.float32)
    large[100, 100] = -1
    assert int(torch.linalg.cholesky_ex(large.cuda())[1]) == 101
    large[100, 100] = 0
    assert int(torch.linalg.lu_factor_ex(large.cuda())[2]) == 101


def check_same_bits() -> None:
    """The same bits in every order of threads and blocks."""
    x, results = torch.randn(90, 90, dtype=torch.float32).cuda(), []
    for order in ("forward", "reverse", "random"):
        os.environ["CUEMU_ORDER"] = order
        results.append(torch.cat([t.flatten() for t in (*torch.linalg.qr(x), torch.linalg.inv(x), torch.linalg.cholesky(x @ x.mT))]).cpu())
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
