"""Linear algebra: identities of the factorisations, batches, memory order, derivatives, errors."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tensorrt_lite as trt
from tensorrt_lite import linalg
from tensorrt_lite.autograd import gradcheck, gradgradcheck

DTYPES = [trt.float32, trt.float64, trt.complex64, trt.complex128]
BATCHES: list[tuple[int, ...]] = [(), (3,), (2, 3), (0,)]
SIZES = [0, 1, 4, 7]


def drawn(*shape: int, dtype: Any = trt.float64, seed: int = 3) -> Any:
    trt.manual_seed(seed)
    return trt.randn(shape, dtype=dtype)


def well(*shape: int, dtype: Any = trt.float64, seed: int = 3) -> Any:
    """Square matrices far from singular."""
    return drawn(*shape, dtype=dtype, seed=seed) + shape[-1] * trt.eye(shape[-1], dtype=dtype)


def positive(*shape: int, dtype: Any = trt.float64) -> Any:
    a = drawn(*shape, dtype=dtype)
    return a @ a.mH + trt.eye(shape[-1], dtype=dtype)


def near(a: Any, b: Any, factor: float = 1) -> None:
    tolerance = (2e-4 if a.dtype in (trt.float32, trt.complex64) else 1e-11) * factor
    assert a.dtype == b.dtype
    assert tuple(a.shape) == tuple(b.shape)
    assert not a.numel() or (a - b).abs().max().item() <= tolerance


def orthonormal(q: Any) -> None:
    n = q.shape[-1]
    near(q.mH @ q, trt.eye(n, dtype=q.dtype).expand(*q.shape[:-2], n, n))


every = pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: str(d).rpartition(".")[2])
batches = pytest.mark.parametrize("batch", BATCHES, ids=str)
square_sizes = pytest.mark.parametrize("n", SIZES)
rectangles = pytest.mark.parametrize(("m", "n"), [(4, 4), (5, 3), (3, 5), (3, 0), (0, 3), (1, 1)])


@every
@batches
@square_sizes
def test_a_matrix_times_its_inverse_is_one(dtype: Any, batch: tuple[int, ...], n: int) -> None:
    a = well(*batch, n, n, dtype=dtype)
    one = trt.eye(n, dtype=dtype).expand(a.shape)
    for inverse in (linalg.inv(a), trt.inverse(a), a.inverse(), linalg.inv_ex(a).inverse, linalg.solve(a, one)):
        near(a @ inverse, one)
        near(inverse @ a, one)
    near(linalg.pinv(a), linalg.inv(a))


@every
@batches
@square_sizes
def test_solutions_solve(dtype: Any, batch: tuple[int, ...], n: int) -> None:
    a = well(*batch, n, n, dtype=dtype)
    b, v, w = drawn(*batch, n, 2, dtype=dtype), drawn(*batch, n, dtype=dtype), drawn(*batch, 2, n, dtype=dtype)
    near(a @ linalg.solve(a, b), b)
    near((a @ linalg.solve(a, v).unsqueeze(-1)).squeeze(-1), v)
    near(linalg.solve(a, w, left=False) @ a, w)
    packed, pivots = linalg.lu_factor(a)
    near(a @ linalg.lu_solve(packed, pivots, b), b)
    near(a.mH @ linalg.lu_solve(packed, pivots, b, adjoint=True), b)
    near(linalg.lu_solve(packed, pivots, w, left=False) @ a, w)
    near(linalg.lu_solve(packed, pivots, w, left=False, adjoint=True) @ a.mH, w)
    near(trt.lu_solve(b, packed, pivots), linalg.solve(a, b))


@pytest.mark.parametrize("dtype", [trt.float32, trt.float64])
def test_larger_systems_by_blocks(dtype: Any) -> None:
    """LU, its solutions and triangular systems on both sides of where halves, panels and vectors of columns end; the same in one thread and in a batch."""
    for n, k in ((47, 9), (48, 8), (63, 33), (64, 64), (65, 1), (97, 70), (130, 257), (200, 16)):
        a, b = drawn(n, n, dtype=dtype, seed=n), drawn(n, k, dtype=dtype, seed=k)
        a[n // 2] *= 1e3  # a pivot from far away
        factor = 20 * n
        near(a @ linalg.solve(a, b), b, factor)
        near(a @ linalg.inv(a), trt.eye(n, dtype=dtype), factor)
        lu, pivots = linalg.lu_factor(a)
        p, lower, upper = trt.lu_unpack(lu, pivots)
        near(p @ lower @ upper, a, 1e3)
        assert lower.abs().max() <= 1
        near(a.mT @ linalg.lu_solve(lu, pivots, b, adjoint=True), b, factor)
        near(linalg.lu_solve(lu, pivots, b.mT, left=False) @ a, b.mT, factor)
        batch = linalg.solve(a.expand(3, n, n), b)
        assert all(bool((x == linalg.solve(a, b)).all()) for x in batch)
        for upper_, unit in ((False, False), (True, False), (False, True), (True, True)):
            t = (a / 1e3 / n if unit else a / 1e3) + (n * trt.eye(n, dtype=dtype))
            triangle = (t.triu() if upper_ else t.tril()).fill_diagonal_(1) if unit else t.triu() if upper_ else t.tril()
            for transposed in (t, t.mT.contiguous().mT):
                near(triangle @ linalg.solve_triangular(transposed, b, upper=upper_, unitriangular=unit), b, factor)
                near(linalg.solve_triangular(transposed, b.mT, upper=upper_, unitriangular=unit, left=False) @ triangle, b.mT, factor)


def test_triangular_solve_transposes_without_conjugating():
    a = trt.tensor([[1 + 2j, 3 - 1j], [0, 2 - 1j]], dtype=trt.complex128)
    b = trt.tensor([[1j], [2.0]], dtype=trt.complex128)
    near(a.mT @ trt.triangular_solve(b, a, transpose=True).solution, b)
    near(a @ trt.triangular_solve(b, a).solution, b)


def test_lu_of_empty_matrices_needs_no_pivots():
    assert [tuple(t.shape) for t in linalg.lu(trt.ones(2, 0, 3), pivot=False)[1:]] == [(2, 0, 0), (2, 0, 3)]


def test_distances_of_rows_without_elements_and_of_no_norm():
    for p in (0.0, 1.0, 2.0, float("inf")):
        assert trt.cdist(trt.ones(3, 0), trt.ones(2, 0), p=p).tolist() == [[0.0, 0.0]] * 3 and trt.pdist(trt.ones(3, 0), p=p).tolist() == [0.0] * 3
    for call in (lambda: trt.cdist(trt.ones(1, 1), trt.ones(1, 1), p=math.nan), lambda: trt.pdist(trt.ones(2, 1), p=math.nan)):
        with pytest.raises(RuntimeError, match="only supports non-negative p values"):
            call()
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times"):
        trt.hash_tensor(trt.ones(3, 4), dim=(0, -2))



@pytest.mark.parametrize(("m", "n"), [(48, 200), (200, 48), (100, 131), (65, 64)])
def test_larger_rectangles_by_blocks(m: int, n: int) -> None:
    a = drawn(m, n)
    p, lower, upper = linalg.lu(a)
    near(p @ lower @ upper, a)
    singular = trt.ones(m, m, dtype=trt.float64)
    assert linalg.lu_factor_ex(singular).info == 2 and linalg.inv_ex(singular).info == 2 and linalg.det(singular) == 0
    a[0, 0] = math.nan
    assert linalg.lu_factor(a)[1].min() >= 1


def test_batches_of_systems_broadcast() -> None:
    a, b = well(3, 1, 4, 4), drawn(2, 4, 5)
    x = linalg.solve(a, b)
    assert tuple(x.shape) == (3, 2, 4, 5)
    near(a @ x, b.expand(3, 2, 4, 5))
    lower = a.tril()
    near(lower @ linalg.solve_triangular(lower, b, upper=False), b.expand(3, 2, 4, 5))


@every
@batches
@rectangles
def test_lu_gives_the_matrix(dtype: Any, batch: tuple[int, ...], m: int, n: int) -> None:
    a = drawn(*batch, m, n, dtype=dtype)
    p, lower, upper = linalg.lu(a)
    near(p @ lower @ upper, a)
    near(lower.tril(), lower, 0)
    near(upper.triu(), upper, 0)
    packed, pivots, info = linalg.lu_factor_ex(a)
    assert info.dtype == trt.int32 and not info.any()
    again = trt.lu_unpack(packed, pivots)
    near(again.P @ again.L @ again.U, a)
    assert trt.lu_unpack(packed, pivots, unpack_data=False).L.numel() == 0


@every
@batches
@square_sizes
def test_determinants(dtype: Any, batch: tuple[int, ...], n: int) -> None:
    a = well(*batch, n, n, dtype=dtype) / max(n, 1)
    expected = linalg.eigvals(a).prod(-1)
    expected = expected if expected.dtype == dtype else expected.real
    near(trt.det(a), expected)
    sign, logarithm = linalg.slogdet(a)
    near(sign * logarithm.exp(), expected)
    near(trt.logdet(a @ a.mH).exp(), expected * expected.conj(), 10)
    near(trt.det(a.mT), expected)


@every
@batches
@square_sizes
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky(dtype: Any, batch: tuple[int, ...], n: int, upper: bool) -> None:
    a = positive(*batch, n, n, dtype=dtype)
    f = linalg.cholesky(a, upper=upper)
    near(f.mH @ f if upper else f @ f.mH, a, 10)
    near(f.triu() if upper else f.tril(), f, 0)
    b = drawn(*batch, n, 2, dtype=dtype)
    near(a @ trt.cholesky_solve(b, f, upper), b, 10)
    near(a @ trt.cholesky_inverse(f, upper), trt.eye(n, dtype=dtype).expand(a.shape), 10)


@every
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_systems_read_one_triangle(dtype: Any, upper: bool, left: bool, unit: bool) -> None:
    a = well(2, 5, 5, dtype=dtype)
    b = drawn(2, 5, 3, dtype=dtype) if left else drawn(2, 3, 5, dtype=dtype)
    t = a.triu() if upper else a.tril()
    if unit:
        t = t - trt.diag_embed(t.diagonal(0, -2, -1)) + trt.eye(5, dtype=dtype)
    for matrix in (a, a.mT.contiguous().mT, a.expand(2, 5, 5)):
        x = linalg.solve_triangular(matrix, b, upper=upper, left=left, unitriangular=unit)
        near(t @ x if left else x @ t, b, 50)


@every
@batches
@pytest.mark.parametrize("hermitian", [False, True])
def test_ldl(dtype: Any, batch: tuple[int, ...], hermitian: bool) -> None:
    a = drawn(*batch, 5, 5, dtype=dtype)
    a = a + (a.mH if hermitian else a.mT)
    packed, pivots = linalg.ldl_factor(a, hermitian=hermitian)
    b = drawn(*batch, 5, 2, dtype=dtype)
    near(a @ linalg.ldl_solve(packed, pivots, b, hermitian=hermitian), b, 10)
    for integer in (trt.int64, trt.int16, trt.uint8) if not (pivots < 0).any() else (trt.int64, trt.int16):
        assert trt.equal(linalg.ldl_solve(packed, pivots.to(integer), b, hermitian=hermitian), linalg.ldl_solve(packed, pivots, b, hermitian=hermitian))


@every
@batches
@rectangles
def test_qr(dtype: Any, batch: tuple[int, ...], m: int, n: int) -> None:
    a = drawn(*batch, m, n, dtype=dtype)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(a, mode)
        near(q @ r, a)
        orthonormal(q)
        near(r.triu(), r, 0)
        assert q.shape[-1] == (m if mode == "complete" else min(m, n))
    empty, r = linalg.qr(a, "r")
    assert empty.numel() == 0
    near(r, linalg.qr(a).R, 0)
    packed, tau = trt.geqrf(a)
    near(packed.narrow(-2, 0, min(m, n)).triu(), r, 0)
    if m >= n:
        near(linalg.householder_product(packed, tau), linalg.qr(a).Q)


@every
@batches
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_ormqr_multiplies_with_the_whole_q(dtype: Any, batch: tuple[int, ...], left: bool, transpose: bool) -> None:
    a = drawn(*batch, 5, 3, dtype=dtype)
    c = drawn(*batch, 5, 2, dtype=dtype) if left else drawn(*batch, 2, 5, dtype=dtype)
    q = linalg.qr(a, "complete").Q
    q = q.mH if transpose else q
    near(trt.ormqr(*trt.geqrf(a), c, left, transpose), q @ c if left else c @ q)


reals = pytest.mark.parametrize("dtype", [trt.float32, trt.float64])


@reals
@pytest.mark.parametrize(("m", "n"), [(8, 8), (9, 8), (31, 33), (33, 31), (64, 39), (70, 70), (97, 40), (40, 97), (261, 100), (150, 150)])
def test_blocks_of_reflectors(dtype: Any, m: int, n: int) -> None:
    """QR and products with Q on both sides of where blocks of reflectors, groups of columns and vectors of rows end; the same in a batch."""
    a = drawn(m, n, dtype=dtype, seed=m)
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(a, mode)
        near(q @ r, a)
        orthonormal(q)
        near(r.triu(), r, 0)
        batch = linalg.qr(a.expand(3, m, n), mode)
        assert all(bool((x == q).all()) for x in batch.Q) and all(bool((x == r).all()) for x in batch.R)
    near(linalg.qr(a, "r").R, linalg.qr(a).R, 0)
    packed, tau = trt.geqrf(a)
    near(packed.narrow(-2, 0, min(m, n)).triu(), linalg.qr(a).R, 0)
    if m >= n:
        near(linalg.householder_product(packed, tau), linalg.qr(a).Q)
        few = linalg.householder_product(packed, tau[:9])
        near(few[:, :9], linalg.qr(a[:, :9]).Q)
        orthonormal(few)
    q = linalg.qr(a, "complete").Q
    c = drawn(m, 13, dtype=dtype, seed=4)
    packed, tau = packed[:, : min(m, n)], tau[: min(m, n)]
    near(trt.ormqr(packed, tau, c), q @ c)
    near(trt.ormqr(packed, tau, c, True, True), q.mT @ c)
    near(trt.ormqr(packed, tau, c.mT, False), c.mT @ q)
    near(trt.ormqr(packed, tau, c.mT, False, True), c.mT @ q.mT)


@reals
def test_reflectors_of_numbers_at_the_ends_of_the_range(dtype: Any) -> None:
    """Squares that underflow or overflow are had in other units; columns of zeros are no reflection, and NaN stays."""
    limits = trt.finfo(dtype)
    a = drawn(20, 12, dtype=dtype)
    a[:, 5] = 0
    a[7] = 0
    for scale in (2.0**-limits.bits, 2.0 ** (limits.bits - 1), limits.tiny * 2, limits.max / 64):
        q, r = linalg.qr(a * scale)
        orthonormal(q)
        near(q @ (r / scale), a)
    one = trt.zeros(20, 12, dtype=dtype)
    one.diagonal().fill_(1)
    one[19, 0] = limits.tiny  # its square is nothing beside 1
    q, r = linalg.qr(one)
    near(q @ r, one)
    a[3, 3] = math.nan
    assert bool(linalg.qr(a).R.isnan().any())


@every
@batches
@square_sizes
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_eigenvalues_of_hermitian_matrices(dtype: Any, batch: tuple[int, ...], n: int, uplo: str) -> None:
    a = drawn(*batch, n, n, dtype=dtype)
    triangle = a.tril(-1) if uplo == "L" else a.triu(1)
    whole = triangle + triangle.mH + trt.diag_embed(a.diagonal(0, -2, -1).real.to(dtype))
    w, v = linalg.eigh(a, uplo)
    near((v * w.unsqueeze(-2)) @ v.mH, whole, 10)
    orthonormal(v)
    near(linalg.eigvalsh(a, uplo), w)
    assert all(x <= y for row in w.reshape(-1, n).tolist() for x, y in zip(row, row[1:])) if n else True


@reals
@pytest.mark.parametrize("n", [8, 9, 15, 16, 17, 31, 33, 50, 64, 97, 128, 200, 261])
def test_symmetric_matrices_by_blocks_of_reflectors(dtype: Any, n: int) -> None:
    """On both sides of where blocks, groups of columns and vectors of rows end; one triangle is read; the same in a batch, and with values alone."""
    a = drawn(n, n, dtype=dtype, seed=n)
    for uplo in ("L", "U"):
        triangle = a.tril() if uplo == "L" else a.triu()
        whole = triangle + triangle.mT - trt.diag(a.diagonal())
        w, v = linalg.eigh(a, uplo)
        near((v * w) @ v.mT, whole, 4)
        orthonormal(v)
        near(linalg.eigvalsh(a, uplo), w, 4)
        batch = linalg.eigh(a.expand(3, n, n), uplo)
        assert all(bool((x == w).all()) for x in batch.eigenvalues) and all(bool((x == v).all()) for x in batch.eigenvectors)
        by_columns = linalg.eigh(a.mT.contiguous().mT, uplo)
        assert bool((by_columns.eigenvalues == w).all()) and bool((by_columns.eigenvectors == v).all())


@reals
def test_symmetric_matrices_with_little_to_reduce(dtype: Any) -> None:
    """Zeros, multiples of one, diagonals, matrices of low rank or of blocks, and numbers at the ends of the range."""
    n, limits = 40, trt.finfo(dtype)
    low = drawn(n, 2, dtype=dtype)
    blocks = trt.block_diag(positive(7, 7, dtype=dtype), trt.eye(12, dtype=dtype), positive(21, 21, dtype=dtype))
    one = trt.eye(n, dtype=dtype)
    for a in (0 * one, 3 * one, trt.diag(drawn(n, dtype=dtype)), low @ low.mT, blocks, trt.ones(n, n, dtype=dtype)):
        w, v = linalg.eigh(a)
        near((v * w) @ v.mT, a, 10)
        orthonormal(v)
        for scale in (2.0 ** (limits.bits - 1), 2.0 ** (limits.bits // 2), 2.0 ** -(limits.bits - 1)):
            w, v = linalg.eigh(a * scale)
            near((v * (w / scale)) @ v.mT, a, 10)
            orthonormal(v)


@reals
@pytest.mark.parametrize("n", [9, 31, 32, 33, 64, 65, 100, 161])
def test_symmetric_matrices_whose_eigenvalues_are_close_or_far(dtype: Any, n: int) -> None:
    """On both sides of where divide and conquer begins: pairs that agree to an ulp, clusters, elements that grow or fall by the whole range, leaves that are tilted."""
    tridiagonal = trt.diag(trt.ones(n - 1, dtype=dtype), 1) + trt.diag(trt.ones(n - 1, dtype=dtype), -1)
    wilkinson = tridiagonal + trt.diag((trt.arange(n, dtype=dtype) - n // 2).abs())
    glued = wilkinson.clone()
    glued[n // 2, n // 2 - 1] = glued[n // 2 - 1, n // 2] = trt.finfo(dtype).eps
    falling = trt.logspace(0, -0.4 * trt.finfo(dtype).bits, n, dtype=dtype)
    noise = drawn(n, n, dtype=dtype, seed=n)
    noise = noise + noise.mT
    cluster = trt.eye(n, dtype=dtype) + 1e-5 * noise
    for a in (tridiagonal - 2 * trt.eye(n, dtype=dtype), wilkinson, glued, cluster, falling * noise * falling[:, None], falling.flip(0) * noise * falling.flip(0)[:, None], 1e-12 * noise, 1e12 * noise):
        w, v = linalg.eigh(a)
        exact, largest = a.double(), a.abs().max().double()
        limit = 10 * n * trt.finfo(dtype).eps
        assert float((exact @ v.double() - v.double() * w.double()).abs().max()) <= limit * float(largest)
        assert float((v.double().mT @ v.double() - trt.eye(n, dtype=trt.float64)).abs().max()) <= limit
        assert bool((w[1:] >= w[:-1]).all())


@every
@batches
@square_sizes
def test_eigenvalues_of_any_matrices(dtype: Any, batch: tuple[int, ...], n: int) -> None:
    a = drawn(*batch, n, n, dtype=dtype)
    w, v = linalg.eig(a)
    assert w.is_complex() and v.is_complex()
    near(a.to(v.dtype) @ v, v * w.unsqueeze(-2), 10)
    near((v.abs() ** 2).sum(-2), trt.ones_like(w.real))
    near(linalg.eigvals(a).sum(-1), w.sum(-1), 10)


@every
@pytest.mark.parametrize("driver", [None, "gels", "gelsy", "gelsd", "gelss"])
@pytest.mark.parametrize(("m", "n"), [(6, 3), (4, 4), (3, 6)])
def test_least_squares(dtype: Any, driver: str | None, m: int, n: int) -> None:
    a, b = drawn(2, m, n, dtype=dtype), drawn(2, m, 2, dtype=dtype, seed=4)
    found = linalg.lstsq(a, b, driver=driver)
    near(found.solution, linalg.pinv(a) @ b, 10)
    near(a.mH @ (a @ found.solution), a.mH @ b, 10)
    if m > n and driver not in (None, "gelsy"):
        near(found.residuals, ((a @ found.solution - b).abs() ** 2).sum(-2), 10)
    else:
        assert found.residuals.numel() == 0
    assert found.rank.tolist() == ([] if driver == "gels" else [min(m, n)] * 2)
    assert (found.singular_values.numel() > 0) == (driver in ("gelsd", "gelss"))


def test_least_squares_of_a_deficient_matrix_is_the_shortest() -> None:
    a = drawn(5, 2) @ drawn(2, 4, seed=5)
    b = drawn(5, 1, seed=6)
    for driver in ("gelsy", "gelsd", "gelss"):
        found = linalg.lstsq(a, b, rcond=1e-10, driver=driver)
        assert found.rank.item() == 2
        near(found.solution, linalg.pinv(a, rtol=1e-10) @ b, 100)


@reals
@pytest.mark.parametrize(("m", "n"), [(8, 8), (20, 9), (9, 20), (50, 33), (33, 50), (100, 64), (64, 131), (261, 100), (90, 90)])
def test_least_squares_by_pivoted_blocks(dtype: Any, m: int, n: int) -> None:
    """Of full rank, and of a rank that is lower by a column or much: PyTorch's rank and the shortest solution; the same in a batch and by columns."""
    least = min(m, n)
    single = dtype == trt.float32
    for rank in (least, least - 1, 5):
        u, v = linalg.qr(drawn(m, rank, seed=m)).Q, linalg.qr(drawn(n, rank, seed=n + 1)).Q
        a64 = (u * trt.linspace(1, 3, rank, dtype=trt.float64)) @ v.mT
        a64 = a64 * trt.linspace(1, 9, n, dtype=trt.float64)[trt.randperm(n)] if rank == least else a64
        a, b = a64.to(dtype), drawn(m, 9, dtype=dtype, seed=4)
        found = linalg.lstsq(a, b, rcond=1e-4 if single else 1e-9)
        assert found.rank.item() == rank
        near(found.solution, (linalg.pinv(a64, rtol=1e-6) @ b.double()).to(dtype), 10)
        near(linalg.lstsq(a, b[:, :1], rcond=1e-4 if single else 1e-9).solution, found.solution[:, :1], 1)
        for same in (linalg.lstsq(a.expand(2, m, n), b.expand(2, m, 9), rcond=1e-4 if single else 1e-9).solution[1],
                     linalg.lstsq(a.mT.contiguous().mT, b.mT.contiguous().mT, rcond=1e-4 if single else 1e-9).solution):
            assert bool((same == found.solution).all())


@reals
def test_least_squares_where_norms_lose_their_digits(dtype: Any) -> None:
    """Nearly parallel columns: what is left of their norms is had again, so that pivots and the rank are right. Zeros; numbers at the ends of the range."""
    a = drawn(60, 1, dtype=dtype) + (1e-3 if dtype == trt.float32 else 1e-9) * drawn(60, 40, dtype=dtype, seed=5)
    x = drawn(40, 3, dtype=dtype, seed=6)
    found = linalg.lstsq(a, a @ x)
    assert found.rank.item() == 40
    near(a @ found.solution, a @ x, 10)
    zero = linalg.lstsq(0 * a, a @ x)
    assert zero.rank.item() == 0 and bool((zero.solution == 0).all())
    for scale in (2.0 ** (trt.finfo(dtype).bits - 1), 2.0 ** -(trt.finfo(dtype).bits - 1)):
        full = drawn(60, 40, dtype=dtype, seed=7)
        near(linalg.lstsq(full * scale, full @ x).solution * scale, x, 10)


@every
def test_pseudoinverses(dtype: Any) -> None:
    for a in (drawn(2, 5, 3, dtype=dtype), drawn(2, 3, 5, dtype=dtype), drawn(2, 5, 2, dtype=dtype) @ drawn(2, 2, 4, dtype=dtype)):
        p = linalg.pinv(a, rtol=1e-4)
        near(a @ p @ a, a, 10)
        near(p @ a @ p, p, 10)
        near((a @ p).mH, a @ p, 10)
        near((p @ a).mH, p @ a, 10)
    h = positive(4, 4, dtype=dtype)
    near(linalg.pinv(h, hermitian=True), linalg.inv(h), 100)


@every
def test_ranks_and_condition(dtype: Any) -> None:
    a = drawn(2, 5, 2, dtype=dtype) @ drawn(2, 2, 4, dtype=dtype)
    assert linalg.matrix_rank(a).tolist() == [2, 2]
    assert linalg.matrix_rank(a @ a.mH, hermitian=True).tolist() == [2, 2]
    assert linalg.matrix_rank(a, atol=1e9).tolist() == [0, 0]
    d = trt.diag_embed(trt.tensor([4.0, -2.0, 1.0])).to(dtype)
    for p, expected in ((None, 4.0), (2, 4.0), (-2, 0.25), (1, 4.0), (math.inf, 4.0), (-1, 0.25), ("fro", math.sqrt(21 * 1.3125)), ("nuc", 7 * 1.75)):
        assert abs(linalg.cond(d, p).item() - expected) < 1e-4, p
    assert linalg.cond(trt.zeros(3, 3, dtype=dtype), 1).item() == math.inf
    for p in (1, -1, math.inf, -math.inf):
        assert linalg.cond(trt.zeros(2, 3, 0, dtype=dtype), p).tolist() == [0.0, 0.0]
        with pytest.raises(RuntimeError, match=rf"linalg.cond\(ord={p}\): A must be batches of square matrices, but they are 2 by 3 matrices"):
            linalg.cond(trt.zeros(2, 3, dtype=dtype), p)
    with pytest.raises(RuntimeError, match=r"linalg.cond\(ord=fro\): A must be batches of square matrices"):
        linalg.cond(trt.zeros(2, 3, 0, dtype=dtype), "fro")


@every
def test_matrix_exponentials(dtype: Any) -> None:
    a = drawn(2, 3, 4, 4, dtype=dtype)
    near(linalg.matrix_exp(a) @ linalg.matrix_exp(-a), trt.eye(4, dtype=dtype).expand(a.shape), 100)
    near(trt.det(a.matrix_exp()), linalg.matrix_exp(a.diagonal(0, -2, -1).sum(-1).reshape(2, 3, 1, 1)).reshape(2, 3), 100)
    d = trt.tensor([0.0, 1.0, -30.0, 2.5]).to(dtype)
    near(linalg.matrix_exp(trt.diag(d)), trt.diag(d.exp()), 10)
    turn = trt.tensor([[0.0, -7.0], [7.0, 0.0]]).to(dtype)
    near(linalg.matrix_exp(turn), trt.tensor([[math.cos(7), -math.sin(7)], [math.sin(7), math.cos(7)]], dtype=trt.float64).to(dtype))
    # every matrix is scaled by its own power of two
    mixed = trt.stack((turn / 1e3, turn * 3))
    near(linalg.matrix_exp(mixed)[0], linalg.matrix_exp(turn / 1e3))


def test_tensor_equations() -> None:
    a = well(6, 6).reshape(2, 3, 6)
    inverse = linalg.tensorinv(a, ind=2)
    near(trt.tensordot(a, inverse, 1).reshape(6, 6), trt.eye(6, dtype=trt.float64))
    b = drawn(2, 3)
    near(trt.tensordot(a, linalg.tensorsolve(a, b), 1), b)
    near(linalg.tensorsolve(a.movedim(2, 0), b, dims=(0,)), linalg.tensorsolve(a, b))
    assert linalg.vander(trt.tensor([2, 3]), N=4).tolist() == [[1, 2, 4, 8], [1, 3, 9, 27]]


def test_covariances() -> None:
    x = drawn(3, 8)
    centred = x - x.mean(1, keepdim=True)
    near(trt.cov(x), centred @ centred.T / 7)
    counts = trt.tensor([1, 2, 1, 3, 1, 1, 2, 1])
    repeated = x.repeat_interleave(counts, 1) if hasattr(x, "repeat_interleave") else trt.cat([x[:, i : i + 1].expand(3, k) for i, k in enumerate(counts.tolist())], 1)
    near(trt.cov(x, fweights=counts), trt.cov(repeated))
    near(trt.corrcoef(x).diagonal(), trt.ones(3, dtype=trt.float64))
    near(trt.corrcoef(x), trt.cov((x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True)))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0, math.inf])
def test_distances_of_rows(p: float) -> None:
    a, b = drawn(2, 1, 4, 3), drawn(3, 5, 3, seed=4)
    expected = trt.stack([trt.stack([(a[..., i, :] - b[..., j, :]).norm(p, -1) for j in range(5)], -1) for i in range(4)], -2)
    near(trt.cdist(a, b, p), expected)
    rows = drawn(4, 3)
    pairs = [(rows[i] - rows[j]).norm(p) for i in range(4) for j in range(i + 1, 4)]
    near(trt.pdist(rows, p), trt.stack(pairs))
    if p:
        assert gradcheck(lambda x, y: trt.cdist(x, y, p), (rows.requires_grad_(), drawn(2, 3, seed=5).requires_grad_()), atol=1e-5)


def test_distances_by_products() -> None:
    a, b = drawn(30, 6), drawn(40, 6, seed=4)
    plain = trt.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    near(trt.cdist(a, b), plain, 1e3)
    same = a.clone().requires_grad_()
    trt.cdist(same, same).sum().backward()
    assert not same.grad.isnan().any()
    assert tuple(trt.cdist(trt.zeros(0, 3), trt.zeros(4, 3)).shape) == (0, 4)
    assert tuple(trt.pdist(trt.zeros(1, 3)).shape) == (0,)


def test_integrals() -> None:
    x = trt.linspace(0, 2, 201, dtype=trt.float64)
    assert abs(trt.trapezoid(x * x, x).item() - 8 / 3) < 1e-4
    assert abs(trt.trapezoid(x * x, dx=0.01).item() - 8 / 3) < 1e-4
    near(trt.cumulative_trapezoid(trt.stack((x, 2 * x)), x)[1], x[1:] ** 2, 1)


# ---- memory order, threads, meta


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "inv": linalg.inv, "det": linalg.det, "slogdet": linalg.slogdet, "lu_factor": linalg.lu_factor, "lu": linalg.lu, "qr": linalg.qr, "eigh": linalg.eigh,
    "eigvals": linalg.eigvals, "svd": linalg.svd, "pinv": linalg.pinv, "matrix_exp": linalg.matrix_exp, "solve": lambda a: linalg.solve(a, a),
    "cholesky_ex": linalg.cholesky_ex, "geqrf": trt.geqrf, "ldl_factor": linalg.ldl_factor, "lstsq": lambda a: linalg.lstsq(a, a, driver="gelsd"),
    "solve_triangular": lambda a: linalg.solve_triangular(a, a, upper=True), "cholesky_inverse": trt.cholesky_inverse,
    "cond": linalg.cond, "norm": lambda a: linalg.matrix_norm(a, "nuc"), "cholesky_solve": lambda a: trt.cholesky_solve(a, a),
}  # fmt: skip


# of products whose bits depend on the library's threads
COMPOSED = ("pinv", "matrix_exp")


def listed(result: Any) -> list[Any]:
    return [t.tolist() for t in result] if isinstance(result, tuple) else [result.tolist()]


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.usefixtures("split_small_work")
def test_results_do_not_depend_on_memory_order_or_threads(name: str) -> None:
    operator = OPERATORS[name]
    a = positive(6, 9, 9)
    expected = listed(operator(a))
    wide = trt.zeros(6, 18, 27, dtype=trt.float64)
    wide[:, ::2, ::3] = a
    before = trt.get_num_threads()
    try:
        trt.set_num_threads(2)
        for same in (a.mT.contiguous().mT, a.permute(2, 0, 1).contiguous().permute(1, 2, 0), wide[:, ::2, ::3]):
            assert listed(operator(same)) == expected
        large = positive(1, 150, 150)[0]
        two = listed(operator(large))
        trt.set_num_threads(1)
        assert listed(operator(large)) == two or name in COMPOSED
    finally:
        trt.set_num_threads(before)


@pytest.mark.parametrize("name", OPERATORS)
def test_meta_tensors_have_the_shapes(name: str) -> None:
    operator = OPERATORS[name]
    real = operator(positive(2, 3, 3))
    meta = operator(trt.empty(2, 3, 3, dtype=trt.float64, device="meta"))
    pairs = zip(real, meta) if isinstance(real, tuple) else [(real, meta)]
    for r, m in pairs:
        assert m.device.type == "meta"
        assert (tuple(r.shape), r.dtype) == (tuple(m.shape), m.dtype)


def test_results_have_names() -> None:
    a = positive(3, 3)
    assert linalg.slogdet(a)._fields == ("sign", "logabsdet")
    assert linalg.eigh(a).eigenvalues.shape == (3,)
    assert "torch.return_types.linalg_qr(" in repr(linalg.qr(a))
    out = (trt.empty(0, dtype=trt.float64), trt.empty(0, dtype=trt.float64))
    assert linalg.qr(a, out=out).Q is out[0]
    near(out[0] @ out[1], a)


# ---- derivatives

SQUARE: dict[str, Callable[[Any], Any]] = {
    "inv": linalg.inv, "det": linalg.det, "logdet": lambda a: linalg.slogdet(a).logabsdet, "lu_factor": lambda a: linalg.lu_factor(a)[0],
    "lu": lambda a: linalg.lu(a)[1:], "matrix_exp": linalg.matrix_exp, "qr": linalg.qr,
    "sign": lambda a: linalg.slogdet(a).sign, "eigvals": lambda a: linalg.eigvals(a).abs(), "eig": lambda a: linalg.eig(a).eigenvectors.abs(),
    "lu_solve": lambda a: linalg.lu_solve(*linalg.lu_factor(a), a[..., :2] * 2), "power": lambda a: linalg.matrix_power(a, -2),
    "triangular": lambda a: linalg.solve_triangular(a, a[..., :2] * 1, upper=True), "inv_norm": lambda a: linalg.cond(a, "fro"),
}  # fmt: skip
HERMITIAN: dict[str, Callable[[Any], Any]] = {
    "cholesky": linalg.cholesky, "cholesky_upper": lambda a: linalg.cholesky(a, upper=True),
    "cholesky_solve": lambda a: trt.cholesky_solve(a[..., :1] * 1, linalg.cholesky(a)), "cholesky_inverse": lambda a: trt.cholesky_inverse(linalg.cholesky(a)),
    "eigvalsh": linalg.eigvalsh, "eigh": lambda a: linalg.eigh(a).eigenvectors.abs(), "pinv": lambda a: linalg.pinv(a, hermitian=True),
}  # fmt: skip
RECTANGULAR: dict[str, Callable[[Any], Any]] = {
    "qr": linalg.qr, "lu_factor": lambda a: linalg.lu_factor(a)[0], "pinv": linalg.pinv, "svdvals": linalg.svdvals,
    "lstsq": lambda a: linalg.lstsq(a, a[..., :, :1] * 2).solution, "residuals": lambda a: linalg.lstsq(a[..., :2], a[..., 2:], driver="gelsd").residuals,
    "svd": lambda a: (linalg.svd(a, False).U.abs(), linalg.svd(a, False).Vh.abs()), "nuc": lambda a: linalg.matrix_norm(a, "nuc"),
}  # fmt: skip
numbers = pytest.mark.parametrize("dtype", [trt.float64, trt.complex128], ids=["real", "complex"])


def differentiates(function: Callable[[Any], Any], a: Any) -> None:
    a = a.detach().requires_grad_()
    assert gradcheck(function, (a,), atol=1e-5)
    assert gradgradcheck(function, (a,), atol=1e-4)


@numbers
@pytest.mark.parametrize("name", SQUARE)
def test_derivatives_of_square_matrices(name: str, dtype: Any) -> None:
    if name == "sign" and not dtype.is_complex:
        return
    differentiates(SQUARE[name], well(2, 3, 3, dtype=dtype) / 2)


@numbers
@pytest.mark.parametrize("name", HERMITIAN)
def test_derivatives_of_hermitian_matrices(name: str, dtype: Any) -> None:
    differentiates(lambda a: HERMITIAN[name]((a + a.mH) / 2), positive(2, 3, 3, dtype=dtype))


@numbers
@pytest.mark.parametrize(("m", "n"), [(4, 3), (3, 4)])
@pytest.mark.parametrize("name", RECTANGULAR)
def test_derivatives_of_rectangular_matrices(name: str, dtype: Any, m: int, n: int) -> None:
    if name == "residuals" and n == 4:
        return
    differentiates(RECTANGULAR[name], drawn(m, n, dtype=dtype))


@numbers
@pytest.mark.parametrize("left", [False, True])
def test_derivatives_of_systems(dtype: Any, left: bool) -> None:
    a, b = well(2, 1, 3, 3, dtype=dtype).requires_grad_(), (drawn(2, 3, 2, dtype=dtype) if left else drawn(2, 2, 3, dtype=dtype)).requires_grad_()
    for function in (
        lambda a, b: linalg.solve(a, b, left=left),
        lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, left=left, adjoint=True),
        lambda a, b: linalg.solve_triangular(a, b, upper=False, left=left),
        lambda a, b: linalg.solve_triangular(a, b, upper=True, left=left, unitriangular=True),
    ):
        assert gradcheck(function, (a, b), atol=1e-5)
        assert gradgradcheck(function, (a, b), atol=1e-4)


@numbers
def test_derivatives_of_reflections(dtype: Any) -> None:
    packed, tau = (t.detach().requires_grad_() for t in trt.geqrf(drawn(2, 4, 3, dtype=dtype)))
    assert gradcheck(linalg.householder_product, (packed, tau), atol=1e-5)
    assert gradgradcheck(linalg.householder_product, (packed, tau), atol=1e-4)
    for left in (True, False):
        for transpose in (True, False):
            c = drawn(2, 4, 2, dtype=dtype) if left else drawn(2, 2, 4, dtype=dtype)
            assert gradcheck(lambda p, t, c: trt.ormqr(p, t, c, left, transpose), (packed, tau, c.requires_grad_()), atol=1e-5)  # noqa: B023


def test_the_derivative_of_a_singular_determinant_is_its_adjugate() -> None:
    a = trt.tensor([[1.0, 2.0], [2.0, 4.0]], dtype=trt.float64, requires_grad=True)
    linalg.det(a).backward()
    near(a.grad, trt.tensor([[4.0, -2.0], [-2.0, 1.0]], dtype=trt.float64))


# ---- errors


def test_singular_matrices_raise_and_the_process_lives() -> None:
    a = trt.stack((trt.eye(3), trt.zeros(3, 3)))
    with pytest.raises(linalg.LinAlgError, match=r"linalg.inv: \(Batch element 1\): The diagonal element 1 is zero, the inversion could not be completed"):
        linalg.inv(a)
    with pytest.raises(linalg.LinAlgError, match="linalg.inv: The diagonal element 3 is zero"):
        linalg.inv(trt.diag(trt.tensor([1.0, 1.0, 0.0])))
    with pytest.raises(linalg.LinAlgError, match=r"linalg.solve: \(Batch element 1\): The solver failed because the input matrix is singular"):
        linalg.solve(a, trt.ones(2, 3))
    with pytest.raises(linalg.LinAlgError, match=r"linalg.cholesky: \(Batch element 1\): .* not positive-definite \(the leading minor of order 1"):
        linalg.cholesky(a)
    with pytest.raises(linalg.LinAlgError, match=r"linalg.lu_factor: .*U\[1,1\] is zero"):
        linalg.lu_factor(a)
    assert linalg.inv_ex(a).info.tolist() == [0, 1]
    assert linalg.solve_ex(a, trt.ones(2, 3)).info.tolist() == [0, 1]
    assert linalg.det(a).tolist() == [1.0, 0.0]
    assert linalg.slogdet(a).logabsdet.tolist() == [0.0, -math.inf]
    assert isinstance(linalg.LinAlgError(""), RuntimeError)


@pytest.mark.parametrize("n", [2, 5, 100])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_the_inverse_of_a_singular_matrix_has_no_finite_quotients(n: int, dtype: str) -> None:
    """`inv_ex` does not raise: what it returns must not look like an inverse."""
    a = trt.eye(n, dtype=getattr(trt, dtype)).repeat(2, 1, 1)
    a[1] = 1
    found = linalg.inv_ex(a)
    assert found.info.tolist() == [0, 2] and trt.equal(found.inverse[0], a[0])
    assert not found.inverse[1].isfinite().any() and not linalg.inv_ex(a[1] * 0).inverse.isfinite().any()


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("name", OPERATORS)
def test_non_finite_matrices_return_or_raise(name: str, value: float) -> None:
    a = trt.full((5, 5), value, dtype=trt.float64)
    try:
        OPERATORS[name](a)
    except RuntimeError as error:
        assert "failed" in str(error) or "infs or NaNs" in str(error) or "could not be" in str(error) or "singular" in str(error) or "is zero" in str(error)


NOT_FINITE = """
import itertools
import math
import subprocess
import sys
import tensorrt_lite as trt
from tests.ops.test_linalg import OPERATORS

for name, dtype, value, at, n in itertools.product(OPERATORS, (trt.float32, trt.complex128), (math.nan, math.inf), ((0, 0), (1, 2), (-1, -1)), (1, 4)):
    a = trt.eye(n, dtype=dtype) * 3 + trt.arange(n * n).reshape(n, n) / 7
    a[tuple(i % n if i >= 0 else i for i in at)] = value
    try:
        OPERATORS[name](a)
    except RuntimeError:
        pass
"""


def test_lapack_neither_hangs_on_numbers_that_are_not_finite_nor_writes_to_stderr() -> None:
    done = subprocess.run([sys.executable, "-c", NOT_FINITE], cwd=Path(__file__).parent.parent.parent, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("shape", [(1, 1), (4, 4), (5, 3), (2, 3, 5)])
@pytest.mark.parametrize("dtype", [trt.float32, trt.float64, trt.complex64, trt.complex128])
def test_singular_values_of_an_infinite_matrix_are_nan_as_pytorchs(shape: tuple[int, ...], dtype: Any) -> None:
    a = trt.arange(math.prod(shape)).reshape(shape).to(dtype)
    a[..., 0, 0] = math.inf
    assert linalg.svdvals(a).isnan().all()
    for factor in linalg.svd(a, full_matrices=False):
        assert factor.abs().isnan().all()
    u, s, vh = linalg.svd(a)
    assert (u.shape[-1], vh.shape[-1]) == shape[-2:] and s.isnan().all()
    one_of_two = trt.stack([a, trt.zeros_like(a)])
    assert linalg.svdvals(one_of_two)[1].count_nonzero() == 0
    a[..., 0, 0] = math.nan
    with pytest.raises(linalg.LinAlgError, match="contained non-finite values"):
        linalg.svdvals(a)


def test_wrong_shapes_and_types_are_named() -> None:
    with pytest.raises(RuntimeError, match="linalg.inv: A must be batches of square matrices, but they are 2 by 3 matrices"):
        linalg.inv(trt.ones(2, 3))
    with pytest.raises(RuntimeError, match="linalg.inv: Expected a floating point or complex tensor as input. Got Long"):
        linalg.inv(trt.ones(2, 2, dtype=trt.int64))
    with pytest.raises(RuntimeError, match="linalg.qr: The input tensor A must have at least 2 dimensions"):
        linalg.qr(trt.ones(2))
    with pytest.raises(RuntimeError, match="linalg.solve: Expected A and B to have the same dtype"):
        linalg.solve(trt.eye(2), trt.ones(2, dtype=trt.float64))
    with pytest.raises(RuntimeError, match="linalg.solve: Incompatible shapes of A and B"):
        linalg.solve(trt.eye(2), trt.ones(3, 2))
    with pytest.raises(TypeError, match="linalg_inv"):
        linalg.inv([[1.0]])


def test_pivots_that_no_factorisation_returned_are_refused() -> None:
    packed = trt.eye(3)
    for wrong in (0, 4, -7, 2**30):
        with pytest.raises(RuntimeError, match="pivots"):
            linalg.lu_solve(packed, trt.full((3,), wrong, dtype=trt.int32), trt.ones(3, 1))
        with pytest.raises(RuntimeError, match="pivots"):
            trt.lu_unpack(packed, trt.full((3,), wrong, dtype=trt.int32))
    for wrong in ([1, 2, -3], [1, 2, 9], [-1, 2, 3], [0, 1, 2]):
        with pytest.raises(RuntimeError, match="pivots"):
            linalg.ldl_solve(packed, trt.tensor(wrong, dtype=trt.int32), trt.ones(3, 1))


def test_lu_names_its_results() -> None:
    a = trt.randn(3, 3)
    with_info = trt.lu(a, get_infos=True)
    assert with_info.LU is with_info[0] and with_info.pivots is with_info[1] and with_info.info.tolist() == 0
    assert type(with_info).__name__ == "_lu_with_info" and a.lu(get_infos=True).LU.shape == (3, 3)
    assert type(trt.lu(a)) is tuple and len(trt.lu(a)) == 2
    unpacked = trt.lu_unpack(*trt.lu(a))
    trt.testing.assert_close(unpacked.P @ unpacked.L @ unpacked.U, a)
