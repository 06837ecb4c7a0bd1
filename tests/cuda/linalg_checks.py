"""Linear algebra on CUDA beside the CPU's; run by test_families.py through device_checks.py.

Small matrices are one block's, those of 100 rows and more are cut into panels and products. Where a result is unique up to phases,
what it must satisfy is compared.
"""

from __future__ import annotations

import os
from typing import Any

import tensorrt_lite as torch
from device_checks import agree, assert_same, raises

TYPES = (torch.float64, torch.complex64)


def well_conditioned(*shape: int, dtype: Any = torch.float64) -> Any:
    """Matrices whose singular values lie within a small factor of each other."""
    return torch.randn(*shape, dtype=dtype) + 2 * max(shape[-2:]) ** 0.5 * torch.eye(*shape[-2:], dtype=dtype)


def positive(n: int, *batch: int, dtype: Any = torch.float64) -> Any:
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
    a, b = well_conditioned(4, 4).requires_grad_(), torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    for call in (torch.linalg.inv, torch.linalg.det, torch.logdet, torch.linalg.lu_factor):
        agree(call, a)
    agree(torch.linalg.solve, a, b)
    agree(torch.linalg.lu, torch.randn(2, 6, 4, dtype=torch.float64))
    agree(torch.linalg.matrix_exp, a)
    for shape in ((0, 3, 3), (2, 0, 0)):
        agree(torch.linalg.inv, torch.zeros(*shape, dtype=torch.float64))
        agree(torch.linalg.det, torch.zeros(*shape, dtype=torch.float64))
    x = torch.randn(3, 3, dtype=torch.float64)
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
    agree(torch.linalg.cholesky, torch.zeros(2, 0, 0, dtype=torch.float64))


def check_triangular() -> None:
    """Either triangle and side, ones for a diagonal, any strides, gradients."""
    for dtype in TYPES:
        for n in (6, 80):
            a = well_conditioned(n, n, dtype=dtype) / n**0.5
            for upper in (False, True):
                for left in (False, True):
                    b = torch.randn(2, n, 40, dtype=dtype)
                    agree(torch.linalg.solve_triangular, a.mT if left else a, b if left else b.mT, upper=upper, left=left)
    a, b = well_conditioned(5, 5).requires_grad_(), torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
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
    agree(torch.linalg.qr, torch.randn(5, 3, dtype=torch.float64, requires_grad=True))
    agree(torch.geqrf, torch.zeros(3, 2, dtype=torch.float64))
    agree(torch.linalg.qr, torch.zeros(3, 0, 4, dtype=torch.float64))


def check_errors() -> None:
    """What has no result raises, with the place in the batch; the _ex forms give the CPU's codes."""
    a = torch.eye(3, dtype=torch.float64).repeat(2, 1, 1)
    a[1, 1] = 0
    for call in (torch.linalg.inv, torch.linalg.cholesky, torch.linalg.lu_factor):
        raises(torch.linalg.LinAlgError, "(Batch element 1)", call, a.cuda())
    for call in (torch.linalg.inv_ex, torch.linalg.cholesky_ex, torch.linalg.lu_factor_ex):
        assert torch.equal(call(a.cuda())[-1].cpu(), call(a)[-1])
    raises(RuntimeError, "same device", torch.linalg.solve, a.cuda(), a)
    raises(RuntimeError, "driver", torch.linalg.lstsq, a.cuda(), a.cuda(), driver="gelsd")
    large = torch.eye(120, dtype=torch.float64)
    large[100, 100] = -1
    assert int(torch.linalg.cholesky_ex(large.cuda())[1]) == 101
    large[100, 100] = 0
    assert int(torch.linalg.lu_factor_ex(large.cuda())[2]) == 101


def check_same_bits() -> None:
    """The same bits in every order of threads and blocks."""
    x, results = torch.randn(90, 90, dtype=torch.float64).cuda(), []
    for order in ("forward", "reverse", "random"):
        os.environ["CUEMU_ORDER"] = order
        results.append(torch.cat([t.flatten() for t in (*torch.linalg.qr(x), torch.linalg.inv(x), torch.linalg.cholesky(x @ x.mT))]).cpu())
    assert torch.equal(results[0], results[1]) and torch.equal(results[0], results[2])
