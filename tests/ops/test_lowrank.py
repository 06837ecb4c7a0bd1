"""svd_lowrank, pca_lowrank, lobpcg and the older names of norms beside PyTorch."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck
from torch_compare import ours, same, torch


def low_rank(*shape, rank=3, seed=0):
    rng = torch.Generator().manual_seed(seed)
    batch, (m, n) = shape[:-2], shape[-2:]
    return torch.randn(*batch, m, rank, generator=rng, dtype=torch.float64) @ torch.randn(*batch, rank, n, generator=rng, dtype=torch.float64)


def test_seeds_give_pytorchs_values():
    """The random directions are PyTorch's; the signs of singular vectors are those of the LAPACK at hand."""
    for shape in ((9, 5), (5, 9), (2, 8, 6)):
        a = low_rank(*shape)
        for call in (
            lambda lib, x: lib.svd_lowrank(x, 3),
            lambda lib, x: lib.svd_lowrank(x, 4, niter=1, M=x * 0.5),
            lambda lib, x: lib.pca_lowrank(x, 3),
            lambda lib, x: lib.pca_lowrank(x, 2, center=False, niter=0),
        ):
            torch.manual_seed(3)
            trt.manual_seed(3)
            (u, s, v), (mine_u, mine_s, mine_v) = call(torch, a), call(trt, ours(a))
            same(mine_s, s, "values", 1e-9)
            k = 2  # vectors of zeros are arbitrary
            same((mine_u[..., :k] * mine_s[..., None, :k]) @ mine_v[..., :k].mT, (u[..., :k] * s[..., None, :k]) @ v[..., :k].mT, "approximation", 1e-8)
    with pytest.raises(ValueError, match="must be non-negative integer and not greater than"):
        trt.pca_lowrank(trt.zeros(4, 5), 6)


def test_gradient_of_a_low_rank_approximation():
    def call(x):
        trt.manual_seed(0)
        return trt.svd_lowrank(x, 2)[1]

    assert gradcheck(call, (trt.randn(6, 4, dtype=trt.float64, requires_grad=True),), atol=1e-4)


def symmetric(m, seed, definite=False):
    x = torch.randn(m, m, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x @ x.mT / m + torch.eye(m, dtype=torch.float64) if definite else (x + x.mT) / 2


def test_eigenpairs():
    a, b = symmetric(30, 1), symmetric(30, 2, definite=True)
    for largest in (True, False):
        for product in (None, b):
            values, vectors = trt.lobpcg(ours(a), 3, B=None if product is None else ours(product), largest=largest, n=4)
            wanted = torch.linalg.eigvals(a if product is None else torch.linalg.solve(product, a)).real.sort(descending=largest).values[:3]
            same(values, wanted, "values", 1e-6)
            bx = vectors if product is None else ours(product) @ vectors
            assert (ours(a) @ vectors - bx * values).norm() < 1e-4 and (vectors.mT @ bx - trt.eye(3, dtype=trt.float64)).abs().max() < 1e-8
    batch = torch.stack([symmetric(12, 3), symmetric(12, 4)])
    same(trt.lobpcg(ours(batch), 2)[0], torch.linalg.eigvalsh(batch).flip(-1)[:, :2], "batch", 1e-6)
    preconditioned = trt.lobpcg(ours(b), 1, iK=ours(torch.linalg.inv(b)), largest=False, X=ours(torch.ones(30, 1, dtype=torch.float64)))
    same(preconditioned[0], torch.linalg.eigvalsh(b)[:1], "preconditioned", 1e-6)
    with pytest.raises(ValueError, match="smaller than 3 x the number of requested eigenpairs"):
        trt.lobpcg(trt.eye(5), 2)
    with pytest.raises(RuntimeError, match="initial vectors are zero"):
        trt.lobpcg(trt.eye(5), X=trt.zeros(5, 1))
    with pytest.raises(TypeError, match="must be Tensor, not int"):
        trt.svd_lowrank(trt.eye(5), 2, 1, 3)


def test_derivatives_of_eigenpairs():
    start = ours(torch.randn(10, 2, generator=torch.Generator().manual_seed(5), dtype=torch.float64))
    a, b = ours(symmetric(10, 6).requires_grad_()), ours(symmetric(10, 7, definite=True).requires_grad_())

    def call(a, b):
        values, vectors = trt.lobpcg((a + a.mT) / 2, B=(b + b.mT) / 2, X=start, tol=1e-12)
        return values, vectors.abs()

    assert gradcheck(call, (a, b), atol=1e-4)


def test_older_names_of_norms():
    x = torch.randn(3, 4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(8))
    for call in (
        lambda lib, x: lib.nuclear_norm(x[0]),
        lambda lib, x: lib.nuclear_norm(x[0], True),
        lambda lib, x: lib.nuclear_norm(x, (0, 2)),
        lambda lib, x: lib.nuclear_norm(x, dim=(1, 2), keepdim=True),
        lambda lib, x: lib.frobenius_norm(x, (0, 1)),
        lambda lib, x: lib.frobenius_norm(x, dim=[2], keepdim=True),
    ):
        same(call(trt, ours(x)), call(torch, x), "norm", 1e-11)
    out = trt.empty(0, dtype=trt.float64)
    assert trt.frobenius_norm(ours(x), (0, 1), out=out) is out and out.shape == (5,)


def test_lobpcg_of_no_pairs_says_so():
    """PyTorch divides by a norm of nothing."""
    with pytest.raises(ValueError, match="at least one eigenpair"):
        trt.lobpcg(trt.eye(6), 0)
