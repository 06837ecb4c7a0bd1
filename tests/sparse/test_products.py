"""Products of two sparse matrices: elements and stored entries beside PyTorch, gradients beside finite differences, wrong places."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")

import tensorrt_lite as trt  # noqa: E402
from tensorrt_lite._C.autograd.node import namespace  # noqa: E402
from tensorrt_lite.autograd import gradcheck, gradgradcheck  # noqa: E402

from sparse_compare import check, ours  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def some(m, n, share, dtype=torch.float64):
    """A matrix of which about a share is not zero; small integers, so that sums are exact."""
    g = torch.Generator().manual_seed(m * 1000 + n)
    x = torch.randint(-3, 4, (m, n), generator=g).to(dtype)
    return torch.where(torch.rand(m, n, generator=g) < share, x + (x * 1j if dtype.is_complex else 0), torch.zeros((), dtype=dtype))


# few columns of many, most columns, rows beyond a level of the column set, nothing at all
@pytest.mark.parametrize("size", [(5, 7, 9, 0.3), (40, 30, 20, 0.9), (6, 50, 5000, 0.02), (3, 4, 300_000, 0.0001), (4, 5, 6, 0.0), (0, 3, 4, 0.5), (3, 0, 4, 0.5), (3, 4, 0, 0.5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64, torch.complex128])
def test_products(size, dtype):
    m, k, n, share = size
    a, b = some(m, k, max(share, 0.3) if n > 1000 else share, dtype), some(k, n, share, dtype)
    for layout in ("to_sparse_csr", "to_sparse"):
        x, y = getattr(a, layout)(), getattr(b, layout)()
        check(ours(x) @ ours(y), x @ y)


def test_integers_and_halves():
    a, b = some(9, 8, 0.5), some(8, 7, 0.5)
    for dtype in (trt.int64, trt.float16, trt.bfloat16):
        x, y = ours(a).to(dtype), ours(b).to(dtype)
        found = x.to_sparse_csr() @ y.to_sparse_csr()
        assert found.dtype is dtype and found.to_dense().double().tolist() == (a @ b).tolist()


def test_columns_are_in_order_and_entries_that_stand_twice_add_up():
    t = trt.sparse_csr_tensor([0, 3, 5], [1, 1, 0, 1, 0], trt.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), (2, 2))
    found = trt.ones(1, 2).to_sparse_csr() @ t
    assert found.col_indices().tolist() == [0, 1] and found.values().tolist() == [8.0, 7.0]


def test_results_do_not_depend_on_threads():
    a = ours(torch.randn(300, 400) * (torch.rand(300, 400) < 0.2)).to_sparse_csr()
    b = ours(torch.randn(400, 500) * (torch.rand(400, 500) < 0.2)).to_sparse_csr()
    before, found = trt.get_num_threads(), []
    try:
        for n in (1, 4):
            trt.set_num_threads(n)
            found.append(a @ b)
    finally:
        trt.set_num_threads(before)
    assert trt.equal(*found)


def test_derivatives():
    a, b = (ours(some(*size, 0.6)).requires_grad_() for size in ((4, 5), (5, 3)))

    def call(a, b):
        return (a.to_sparse_csr() @ b.to_sparse_csr()).to_dense()

    def weighted(a, b):
        kept = (a.to_sparse() @ b.to_sparse()).coalesce()
        return kept.values() ** 2

    x, y = (ours(some(*size, 1.0) + 5).requires_grad_() for size in ((3, 2), (2, 4)))
    assert gradcheck(call, (x, y)) and gradcheck(weighted, (x, y)) and gradgradcheck(call, (x, y))
    call(a, b).sum().backward()
    assert trt.equal(a.grad, (trt.ones(4, 3, dtype=trt.float64) @ b.detach().t()) * (a.detach() != 0))
    z = trt.ones(3, 3, dtype=trt.complex128).to_sparse_csr().requires_grad_()
    (z @ z).to_dense().abs().sum().backward()
    assert z.grad.to_dense().tolist() == [[6.0] * 3] * 3  # each element is in three sums on either side


def test_wrong_places_are_refused():
    ops = namespace()
    crow, col, v = trt.tensor([0, 1, 2]), trt.tensor([0, 1]), trt.ones(2)
    assert ops._csr_product(crow, col, v, crow, col, v, 2)[2].tolist() == [1.0, 1.0]
    for wrong in ((trt.tensor([0, 3, 2]), col), (trt.tensor([1, 1, 2]), col), (crow, trt.tensor([0, 2])), (crow, trt.tensor([-1, 0]))):
        for arguments in ((*wrong, v, crow, col, v, 2), (crow, col, v, *wrong, v, 2)):
            with pytest.raises(RuntimeError, match="compressed indices"):
                ops._csr_product(*arguments)
    for arguments in ((crow, col, trt.ones(3), crow, col, v, 2), (crow, col, v.double(), crow, col, v, 2), (crow.int(), col, v, crow, col, v, 2), (crow, col, v, crow, col, v, -1)):
        with pytest.raises(RuntimeError, match="_csr_product"):
            ops._csr_product(*arguments)


def test_merges_of_compressed_rows():
    ops = namespace()
    rng = np.random.default_rng(0)
    for rows, columns, most in ((1, 50, 30), (7, 9, 9), (4, 3, 0)):
        sides = [[np.sort(rng.choice(columns, rng.integers(0, most + 1), replace=False)) for _ in range(rows)] for _ in range(2)]
        crows = [trt.tensor([0, *np.cumsum([len(r) for r in side]).tolist()]) for side in sides]
        cols = [trt.from_numpy(np.concatenate(side).astype(np.int64)) for side in sides]
        for common, joined in ((True, np.intersect1d), (False, np.union1d)):
            crow, left, right = ops._csr_merge(crows[0], cols[0], crows[1], cols[1], common)
            expected = [joined(x, y) for x, y in zip(*sides)]
            col = np.concatenate(expected).astype(np.int64)
            assert crow.tolist() == [0, *np.cumsum([len(r) for r in expected]).tolist()]
            for found, given in ((left, cols[0].numpy()), (right, cols[1].numpy())):
                at = found.numpy()
                np.testing.assert_array_equal(given[at] if common else col[at], col if common else given)


def test_merges_refuse_wrong_rows():
    ops = namespace()
    crow, col = trt.tensor([0, 1, 2]), trt.tensor([0, 1])
    for wrong in ((trt.tensor([0, 3, 2]), col), (trt.tensor([1, 1, 2]), col), (trt.tensor([0, 1, 3]), col)):
        for arguments in ((*wrong, crow, col), (crow, col, *wrong)):
            with pytest.raises(RuntimeError, match="compressed indices"):
                ops._csr_merge(*arguments, False)
    for arguments in ((crow.int(), col, crow, col), (crow, col, crow[:2], col[:1]), (crow[:0], col, crow[:0], col), (crow, col[None], crow, col)):
        with pytest.raises(RuntimeError, match="_csr_merge"):
            ops._csr_merge(*arguments, True)
    assert ops._csr_merge(trt.tensor([0, 2]), trt.tensor([1, 1]), trt.tensor([0, 1]), trt.tensor([0]), False)[0].numel() == 0


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr", "to_sparse_csc"])
def test_a_strided_tensor_times_a_sparse_one(layout):
    b = some(4, 5, 0.6)
    for a in (some(3, 4, 1.0), some(4, 4, 1.0), some(1, 4, 1.0)[0]):
        x, y = ours(a), getattr(ours(b), layout)()
        assert (x @ y).tolist() == (a @ b).tolist()
        assert gradcheck(lambda x: x @ y, (x.clone().requires_grad_(),))
    square = some(4, 4, 0.5)
    assert (ours(a) @ getattr(ours(square), layout)()).tolist() == (a @ square).tolist()
    rows = trt.func.vmap(lambda row: row @ getattr(ours(square), layout)())(ours(some(4, 4, 1.0)))
    assert rows.tolist() == (some(4, 4, 1.0) @ square).tolist()


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
@pytest.mark.parametrize("size", [(2, 3, 4), (2, 1, 3, 4), (0, 3, 4)])
def test_a_batch_times_a_sparse_matrix(layout, size):
    g = torch.Generator().manual_seed(0)
    a, b = torch.randint(-3, 4, size, generator=g).double(), some(4, 5, 0.6)
    y = getattr(b, layout)()
    found = ours(a) @ ours(y)
    assert tuple(found.shape) == (*size[:-1], 5) and found.tolist() == (a @ y).tolist() == trt.matmul(ours(a), ours(y)).tolist()
    if a.numel():
        assert gradcheck(lambda x: x @ ours(y), (ours(a).requires_grad_(),))
