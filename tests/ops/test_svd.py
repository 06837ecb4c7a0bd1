"""Singular values and what is computed from them: reconstruction, derivatives, norms, complex logsumexp."""

from __future__ import annotations

import math

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck, gradgradcheck

SHAPES = [(3, 3), (2, 4), (4, 2), (2, 3, 2), (1, 1)]
DTYPES = [trt.float32, trt.float64, trt.complex64, trt.complex128]


def drawn(shape: tuple[int, ...], dtype: trt.dtype = trt.float64) -> trt.Tensor:
    trt.manual_seed(3)
    return trt.randn(shape, dtype=dtype)


def near(a: trt.Tensor, b: trt.Tensor, tolerance: float) -> bool:
    return a.shape == b.shape and (not a.numel() or (a - b).abs().max().item() <= tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("full", [True, False])
def test_the_factors_give_the_matrix(shape: tuple[int, ...], dtype: trt.dtype, full: bool) -> None:
    a = drawn(shape, dtype)
    u, s, vh = trt.linalg.svd(a, full_matrices=full)
    m, n = shape[-2:]
    k = min(m, n)
    assert tuple(u.shape[-2:]) == (m, m if full else k)
    assert tuple(vh.shape[-2:]) == (n if full else k, n)
    assert s.dtype == (trt.float32 if dtype in (trt.float32, trt.complex64) else trt.float64)
    tolerance = 1e-5 if s.dtype == trt.float32 else 1e-13
    assert near((u[..., :k] * s.unsqueeze(-2)) @ vh[..., :k, :], a, tolerance)
    for q in (u, vh.transpose(-2, -1).conj()):
        eye = trt.eye(q.shape[-1], dtype=dtype).expand(*q.shape[:-2], -1, -1)
        assert near(q.transpose(-2, -1).conj() @ q, eye, tolerance)
    assert all(x >= y >= 0 for row in s.reshape(-1, k).tolist() for x, y in zip(row, row[1:]))
    assert near(trt.linalg.svdvals(a), s, tolerance)
    old = trt.svd(a, some=not full)
    assert near(old.V.transpose(-2, -1).conj(), vh, 0)


def test_known_singular_values() -> None:
    assert near(trt.linalg.svdvals(trt.tensor([[3.0, 0.0], [0.0, -4.0]])), trt.tensor([4.0, 3.0]), 1e-6)
    # the matrix's columns have length 5 and are parallel
    assert near(trt.linalg.svdvals(trt.tensor([[3.0, 3.0], [4.0, 4.0]])), trt.tensor([math.sqrt(50), 0.0]), 1e-5)


def test_the_layout_of_the_matrix_does_not_matter() -> None:
    a = drawn((4, 6))
    assert trt.linalg.svdvals(a[:, ::2]).tolist() == trt.linalg.svdvals(a[:, ::2].contiguous()).tolist()
    before = a.tolist()
    trt.linalg.svd(a)
    assert a.tolist() == before


@pytest.mark.usefixtures("split_small_work")
def test_bits_do_not_depend_on_threads() -> None:
    a = drawn((3, 90, 70))
    threads = trt.get_num_threads()
    try:
        results = []
        for n in (1, 2):
            trt.set_num_threads(n)
            results.append([t.tolist() for t in trt.linalg.svd(a)])
        assert results[0] == results[1]
    finally:
        trt.set_num_threads(threads)


def test_empty_matrices() -> None:
    u, s, vh = trt.linalg.svd(trt.empty(2, 3, 0))
    assert (tuple(s.shape), tuple(vh.shape)) == ((2, 0), (2, 0, 0))
    assert u.tolist() == trt.eye(3).expand(2, 3, 3).tolist()
    assert tuple(trt.linalg.svdvals(trt.empty(0, 3, 2)).shape) == (0, 2)
    assert trt.linalg.svd(trt.empty(2, 3, device="meta")).S.shape == (2,)


def test_refusals_name_the_reason() -> None:
    with pytest.raises(RuntimeError, match="at least 2 dimensions"):
        trt.linalg.svd(trt.ones(3))
    with pytest.raises(RuntimeError, match="floating point or complex"):
        trt.linalg.svd(trt.ones(2, 2, dtype=trt.int64))
    with pytest.raises(RuntimeError, match="Low precision"):
        trt.linalg.svd(trt.ones(2, 2, dtype=trt.bfloat16))
    with pytest.raises(trt.linalg.LinAlgError, match="non-finite"):
        trt.linalg.svd(trt.tensor([[float("nan"), 1.0], [1.0, 1.0]]))
    with pytest.raises(RuntimeError, match="cuSOLVER"):
        trt.linalg.svdvals(trt.ones(2, 2), driver="gesvd")


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (4, 2), (2, 3, 2)])
@pytest.mark.parametrize("dtype", [trt.float64, trt.complex128])
def test_derivatives(shape: tuple[int, ...], dtype: trt.dtype) -> None:
    a = drawn(shape, dtype).requires_grad_()
    assert gradcheck(lambda x: trt.linalg.svdvals(x), (a,))
    assert gradgradcheck(lambda x: trt.linalg.svdvals(x), (a,))

    def unmoved_by_phase(x: trt.Tensor) -> tuple[trt.Tensor, ...]:
        u, s, vh = trt.linalg.svd(x, full_matrices=False)
        return u.abs(), vh.abs(), (u * s.unsqueeze(-2).sqrt()) @ vh

    assert gradcheck(unmoved_by_phase, (a,))
    assert gradgradcheck(unmoved_by_phase, (a,))


def test_norms_of_singular_values() -> None:
    a = drawn((3, 2, 4))
    for i in range(3):
        s = trt.linalg.svdvals(a[i])
        assert near(trt.norm(a[i], "nuc"), s.sum(), 1e-13)
        assert near(trt.linalg.matrix_norm(a[i], 2), s[0], 1e-13)
        assert near(trt.linalg.norm(a[i], -2), s[1], 1e-13)
    nuclear = trt.stack([trt.linalg.svdvals(m).sum() for m in a.transpose(1, 2)])
    assert near(trt.norm(a, "nuc", (2, 1)), nuclear, 1e-13)
    assert tuple(trt.norm(a, "nuc", (0, 2), keepdim=True).shape) == (1, 2, 1)
    out = trt.empty(0, dtype=trt.float64)
    assert trt.norm(a, "nuc", (1, 2), out=out) is out
    assert near(out, nuclear, 1e-13)
    with pytest.raises(RuntimeError, match="dtype"):
        trt.norm(a, "nuc", (1, 2), out=trt.empty(0))
    with pytest.raises(RuntimeError, match="matrix"):
        trt.norm(a, "nuc")


# ---- complex numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1, (0, 1)])
def test_logsumexp_of_complex_numbers(dim: int | tuple[int, ...], keepdim: bool) -> None:
    z = drawn((3, 4), trt.complex128)
    expected = z.exp().sum(dim, keepdim).log()
    assert near(trt.logsumexp(z, dim, keepdim), expected, 1e-13)
    # beyond the range of exp
    assert near(trt.logsumexp(z + 1000, dim, keepdim), expected + 1000, 1e-10)
    assert gradcheck(lambda x: trt.logsumexp(x, dim, keepdim), (z.requires_grad_(),))
    assert gradgradcheck(lambda x: trt.logsumexp(x, dim, keepdim), (z,))


def test_logsumexp_of_extreme_complex_numbers() -> None:
    inf = float("inf")
    assert trt.logsumexp(trt.tensor([complex(-inf, 0), complex(-inf, 0)]), 0).item().real == -inf
    assert trt.logsumexp(trt.zeros(0, dtype=trt.complex64), 0).item().real == -inf
    assert trt.logsumexp(trt.tensor(1 + 2j), 0).item() == pytest.approx(1 + 2j)


@pytest.mark.parametrize("n", [1, 4, 10])
def test_small_complex_products_are_rounded_once(n: int) -> None:
    a, b = drawn((2, 5, n), trt.complex64), drawn((2, n, 7), trt.complex64)
    exact = a.to(trt.complex128) @ b.to(trt.complex128)
    assert trt.bmm(a, b).tolist() == exact.to(trt.complex64).tolist()
    assert trt.bmm(a.transpose(1, 2).contiguous().transpose(1, 2), b).tolist() == exact.to(trt.complex64).tolist()
    c = drawn((5, 7), trt.complex64)
    added = trt.addmm(c, a[0], b[0], beta=1 + 2j, alpha=2 - 1j)
    wide = trt.addmm(c.to(trt.complex128), a[0].to(trt.complex128), b[0].to(trt.complex128), beta=1 + 2j, alpha=2 - 1j)
    assert near(added, wide.to(trt.complex64), 2e-6)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)])
def test_a_loss_that_depends_on_the_phase_of_complex_vectors_is_refused(shape: tuple[int, ...], full: bool) -> None:
    a = drawn(shape, trt.complex128).requires_grad_()
    k = min(shape[-2:])
    for loss in (lambda u, vh: u.real.sum(), lambda u, vh: vh.imag.sum(), lambda u, vh: (u[..., :k].real + vh[..., :k, :].mT.real[..., : u.shape[-2], :k].sum(-2, True)).sum()):
        u, _, vh = trt.linalg.svd(a, full_matrices=full)
        with pytest.raises(RuntimeError, match=r"svd_backward: The singular vectors in the complex case .* depends on this phase term"):
            loss(u, vh).backward()
    with pytest.raises(RuntimeError, match="svd_backward"):
        trt.svd(a)[2].real.sum().backward()
    # a vector's length, and the product of a left and a right one, have no phase
    for loss in (lambda u, vh: u[..., :k].abs().pow(3).sum(), lambda u, vh: vh[..., :k, :].abs().pow(3).sum(), lambda u, vh: (u[..., :k] @ vh[..., :k, :]).real.sum()):
        u, _, vh = trt.linalg.svd(a, full_matrices=full)
        assert trt.autograd.grad(loss(u, vh), a)[0].isfinite().all()
