"""Operators of sparse tensors beside PyTorch: values, layouts, gradients; and products beside float64 and finite differences."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tensorrt_lite as trt  # noqa: E402

from sparse_compare import check, dense_of, ours  # noqa: E402
from test_layouts import converted, matrix  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
UNARY = ("abs", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac", "log1p", "neg", "rad2deg", "relu", "round", "sgn", "sign", "sin",
         "sinh", "sqrt", "tan", "tanh", "trunc", "isinf", "isnan", "isposinf", "isneginf", "signbit", "nan_to_num", "positive")  # fmt: skip


def sample(seed=0, shape=(4, 5), sparse_dim=2, count=9, dtype=torch.float64):
    """An uncoalesced sparse_coo tensor."""
    g = torch.Generator().manual_seed(seed)
    i = torch.stack([torch.randint(0, n, (count,), generator=g) for n in shape[:sparse_dim]])
    v = torch.rand((count, *shape[sparse_dim:]), generator=g, dtype=torch.float64) * 0.4 + 0.05
    return torch.sparse_coo_tensor(i, v.to(dtype), shape)


def compare(function, *tensors, gradients=True, **options):
    """The function with both packages, and the gradients of sum(result ** 2) on the indices that both have."""
    theirs = [t.detach().clone().requires_grad_(t.is_floating_point() and gradients) if isinstance(t, torch.Tensor) else t for t in tensors]
    mine = [ours(t, True) for t in theirs]
    e, a = function(torch, *theirs), function(trt, *mine)
    check(a, e, **options)
    leaves = [(x, y) for x, y in zip(theirs, mine) if isinstance(x, torch.Tensor) and x.requires_grad]
    if not gradients:
        return
    (e.to_dense() ** 2).sum().backward()
    (a.to_dense() ** 2).sum().backward()
    for x, y in leaves:
        check(y.grad, x.grad, exact_layout=False)


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_functions_that_keep_zeros(layout):
    d = matrix() * 0.1
    t = converted(d, layout, torch)
    m = converted(ours(d), layout, trt)
    for name in UNARY:
        if name == "nan_to_num" and layout != "sparse_coo":
            continue
        check(getattr(trt, name)(m), getattr(torch, name)(t))
    u, v = sample(), ours(sample())
    if layout == "sparse_coo":
        for name in ("sin", "sqrt", "neg", "abs"):
            check(getattr(trt, name)(v), getattr(torch, name)(u))
        x, y = u.clone(), v.clone()
        check(y.neg_(), x.neg_())
        check(y.mul_(2), x.mul_(2))
        check(y.coalesce().sin_(), x.coalesce().sin_())


BINARY = {
    "add": lambda lib, a, b: a + b,
    "add_alpha": lambda lib, a, b: lib.add(a, b, alpha=2.5),
    "sub": lambda lib, a, b: a - b,
    "mul": lambda lib, a, b: a * b,
}


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64, torch.int32, torch.bool])
def test_sparse_operands_of_every_layout_and_type(name, layout, dtype):
    if dtype == torch.bool and name != "mul" or dtype == torch.int32 and name == "add_alpha":
        return
    g = torch.Generator().manual_seed(3)
    for density in ((0.5, 0.4), (0.0, 0.5), (1.0, 1.0), (0.3, 0.0)):
        dense = [(torch.rand(6, 9, generator=g) < d) * torch.randint(1, 7, (6, 9), generator=g) for d in density]
        a, b = (converted(ours(x.to(dtype)), layout, trt) for x in dense)
        expected = BINARY[name](torch, *(x.to(dtype) for x in dense))
        found = BINARY[name](trt, a, b)
        assert found.layout is a.layout and found.dtype is a.dtype
        assert torch.equal(dense_of(found), expected)
        if layout in ("sparse_coo", "sparse_csr", "sparse_csc"):
            first, second = (x != 0 for x in dense)
            assert found._nnz() == int(((first & second) if name == "mul" else (first | second)).sum())


def test_compressed_operands_whose_columns_are_not_in_order():
    crow, col = trt.tensor([0, 3, 4]), trt.tensor([2, 0, 1, 1])
    a = trt.sparse_csr_tensor(crow, col, trt.tensor([1.0, 2.0, 3.0, 4.0]), (2, 3))
    b = trt.sparse_csr_tensor(trt.tensor([0, 1, 2]), trt.tensor([0, 2]), trt.tensor([5.0, 6.0]), (2, 3))
    for x, y in ((a, b), (b, a), (a, a)):
        assert trt.equal((x + y).to_dense(), x.to_dense() + y.to_dense())
        assert trt.equal((x * y).to_dense(), x.to_dense() * y.to_dense())


def test_sums_keep_the_type_of_compressed_indices():
    a = trt.sparse_csr_tensor(trt.tensor([0, 1, 2], dtype=trt.int32), trt.tensor([1, 0], dtype=trt.int32), trt.tensor([1.0, 2.0]), (2, 2))
    assert {(a + a).crow_indices().dtype, (a + a).col_indices().dtype, (a * a).col_indices().dtype} == {trt.int32}


@pytest.mark.parametrize("name", BINARY)
def test_two_sparse_operands(name):
    for shape, sparse_dim in (((4, 5), 2), ((6, 3), 1), ((3, 4, 2), 2)):
        a, b = sample(1, shape, sparse_dim), sample(2, shape, sparse_dim)
        compare(BINARY[name], a.coalesce(), b.coalesce(), gradients=name != "mul")
        compare(BINARY[name], a, b, gradients=False, pattern=False)
    a, b = sample(1).coalesce().to_sparse_csr(), sample(2).coalesce().to_sparse_csr()
    check(BINARY[name](trt, ours(a), ours(b)).to_dense(), BINARY[name](torch, a.to_dense(), b.to_dense()))


def test_dense_plus_sparse_and_products_with_dense():
    d = torch.rand(4, 5, dtype=torch.float64)
    check(trt.add(ours(d), ours(sample()), alpha=3), torch.add(d, sample(), alpha=3))
    x, y = d.clone(), ours(d)
    check(y.add_(ours(sample())), x.add_(sample()))
    check(ours(sample()) * ours(d), sample() * d)
    check(ours(d) * ours(sample().coalesce()), d * sample().coalesce())
    check(ours(sample()) * 2.5, sample() * 2.5)
    check(3 * ours(sample()), 3 * sample())
    check(ours(sample()) / 4, sample() / 4)
    check(ours(sample()) / trt.tensor(4.0, dtype=trt.float64), sample() / torch.tensor(4.0, dtype=torch.float64))
    check(ours(sample()) ** 2, sample() ** 2)
    hybrid = sample(3, (4, 3), 1)
    check(ours(hybrid) * ours(torch.arange(3.0, dtype=torch.float64)), hybrid * torch.arange(3.0, dtype=torch.float64), pattern=False)


MATRICES = {
    "mm": lambda lib, a, b: lib.sparse.mm(a, b),
    "matmul": lambda lib, a, b: a @ b,
    "mv": lambda lib, a, b: a @ b[:, 0],
    "addmm": lambda lib, a, b: lib.sparse.addmm(lib.ones(4, 3, dtype=lib.float64), a, b, beta=0.5, alpha=2.0),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_times_dense(name, layout):
    b = torch.rand(5, 3, dtype=torch.float64)
    a = sample().coalesce() if layout == "sparse_coo" else sample().coalesce().to_sparse(layout=getattr(torch, layout))
    compare(MATRICES[name], a, b, gradients=layout == "sparse_coo" and name == "mm")
    if layout == "sparse_coo":
        compare(MATRICES[name], sample(), b, gradients=False)


def test_products_of_all_types():
    for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128, torch.int64, torch.int32):
        a = (sample() * 10).to(dtype)
        b = (torch.rand(5, 70, dtype=torch.float64) * 10).to(dtype)
        want = torch.matmul(a.to_dense(), b)
        torch.testing.assert_close(dense_of(ours(a) @ ours(b)), want)
    a, b = sample().float(), torch.rand(5, 7)
    for dtype in (torch.bfloat16, torch.float16):
        torch.testing.assert_close(dense_of(ours(a.to(dtype)) @ ours(b.to(dtype))).float(), a.to_dense() @ b, rtol=3e-2, atol=3e-2)


@pytest.mark.parametrize("columns", [1, 2, 5, 16, 31, 64, 100, 128, 200])
def test_products_of_every_width(columns):
    g = torch.Generator().manual_seed(columns)
    d = torch.rand(50, 40, generator=g, dtype=torch.float64) * (torch.rand(50, 40, generator=g) < 0.2)
    b = torch.rand(40, columns, generator=g, dtype=torch.float64)
    for dtype in (torch.float32, torch.float64):
        got = ours(d.to(dtype)).to_sparse_csr() @ ours(b.to(dtype))
        torch.testing.assert_close(dense_of(got).double(), d @ b, rtol=1e-5, atol=1e-5)


def test_a_product_does_not_depend_on_the_number_of_threads():
    g = torch.Generator().manual_seed(0)
    d = torch.randn(400, 300, generator=g) * (torch.rand(400, 300, generator=g) < 0.1)
    a, b = ours(d).to_sparse_csr(), ours(torch.randn(300, 96, generator=g))
    before, results = trt.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            trt.set_num_threads(threads)
            results.append((a @ b).tolist())
    finally:
        trt.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_sparse_times_sparse():
    a, b = sample(1, (4, 5)).coalesce(), sample(2, (5, 6)).coalesce()
    compare(lambda lib, x, y: lib.sparse.mm(x, y), a, b, pattern=False)
    check(ours(a).to_sparse_csr() @ ours(b).to_sparse_csr(), a.to_sparse_csr() @ b.to_sparse_csr(), pattern=False)


def test_batches_of_products():
    a, b = sample(4, (3, 4, 5), 3, 20), torch.rand(3, 5, 2, dtype=torch.float64)
    compare(lambda lib, x, y: lib.bmm(x, y), a.coalesce(), b, gradients=False)
    check(ours(a) @ ours(b), a.to_dense() @ b)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_products_with_another_reduction(reduce):
    a = sample(1, (6, 5), 2, 12).coalesce().to_sparse_csr()
    compare(lambda lib, x, y: lib.sparse.mm(x, y, reduce), a, torch.randn(5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64))


def test_sampled_products():
    c = sample(1, (4, 5)).coalesce().to_sparse_csr()
    g = torch.Generator().manual_seed(1)
    x, y = torch.rand(4, 7, generator=g, dtype=torch.float64), torch.rand(7, 5, generator=g, dtype=torch.float64)
    for options in ({}, {"beta": 0.5, "alpha": 2.0}, {"beta": 0.0}):
        want = torch.sparse.sampled_addmm(c, x, y, **options)
        check(trt.sparse.sampled_addmm(ours(c), ours(x), ours(y), **options), want)
    batch = torch.stack([c.to_dense()] * 2).to_sparse_csr()
    many = torch.stack([x, 2 * x]), torch.stack([y, y + 1])
    got = trt.sparse.sampled_addmm(ours(batch), *map(ours, many))
    torch.testing.assert_close(dense_of(got), batch.to_dense() + (many[0] @ many[1]) * (batch.to_dense() != 0))


def test_other_products():
    a, b, c = sample(1, (4, 5)).coalesce(), torch.rand(5, 3, dtype=torch.float64), sample(2, (4, 3)).coalesce()
    check(trt.smm(ours(a), ours(b)), torch.smm(a, b), pattern=False)
    check(trt.sspaddmm(ours(c), ours(a), ours(b), beta=2, alpha=3), torch.sspaddmm(c, a, b, beta=2, alpha=3), pattern=False)
    check(trt.hspmm(ours(a), ours(b)), torch.hspmm(a, b))


REDUCTIONS = {
    "all": lambda lib, x: lib.sparse.sum(x),
    "rows": lambda lib, x: lib.sparse.sum(x, 0),
    "last": lambda lib, x: lib.sparse.sum(x, -1),
    "pair": lambda lib, x: lib.sparse.sum(x, (0, 1)),
    "outer": lambda lib, x: lib.sparse.sum(x, (0, 2)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
def test_sums(name):
    compare(REDUCTIONS[name], sample(1, (4, 5, 3), 2).coalesce())
    compare(REDUCTIONS[name], sample(1, (4, 5, 3), 2), gradients=False, pattern=False)
    check(trt.norm(ours(sample())), torch.norm(sample()))
    assert bool(ours(sample()).any())


@pytest.mark.parametrize("log", [False, True])
def test_softmax(log):
    def f(lib, x, d):
        return (lib.sparse.log_softmax if log else lib.sparse.softmax)(x, d)

    for d in (0, 1, 2):
        compare(lambda lib, x, d=d: f(lib, x, d), sample(1, (4, 5, 3), 2, 12).coalesce())
        compare(lambda lib, x, d=d: f(lib, x, d), sample(1, (3, 4, 2), 3, 15), gradients=False)


SHAPES = {
    "t": lambda lib, x: x[..., 0].t() if x.dense_dim() else x.t(),
    "transpose": lambda lib, x: x.transpose(0, 1),
    "permute": lambda lib, x: x.permute(1, 0, *range(2, x.dim())),
    "select": lambda lib, x: x[1],
    "select_dense": lambda lib, x: x.select(-1, 1),
    "narrow": lambda lib, x: lib.narrow_copy(x, 0, 1, 2),
    "index_select": lambda lib, x: x.index_select(0, lib.tensor([2, 0, 2])),
    "index_select_last": lambda lib, x: x.index_select(-1, lib.tensor([1, 0])),
    "unsqueeze": lambda lib, x: x.unsqueeze(1),
    "cat": lambda lib, x: lib.cat([x, 2 * x], 0),
    "cat_columns": lambda lib, x: lib.cat([x, x], 1),
    "cat_last": lambda lib, x: lib.cat([x, x], -1),
    "zeros_like": lambda lib, x: lib.zeros_like(x),
    "clone": lambda lib, x: x.clone(),
    "detach": lambda lib, x: x.detach(),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    gradients = name not in ("zeros_like", "detach", "select", "cat", "cat_columns", "cat_last", "narrow")
    for x in (sample(1, (4, 5)).coalesce(), sample(2, (4, 5, 3), 2).coalesce()):
        if name == "t" and x.dim() > 2:
            continue
        compare(SHAPES[name], x, gradients=gradients and name not in ("t", "select_dense", "index_select", "index_select_last", "unsqueeze"))
    compare(SHAPES[name], sample(1, (4, 5)), gradients=False)


def test_conversions_carry_gradients():
    d = matrix()
    compare(lambda lib, x: x.to_sparse() * 2, d)
    compare(lambda lib, x: x.to_sparse_csr().to_dense() * 3, d)
    compare(lambda lib, i, v: lib.sparse_coo_tensor(i, v, (4, 5)).coalesce(), sample()._indices(), sample()._values())
    compare(lambda lib, x: x.coalesce().values() * 2, sample())
    compare(lambda lib, x, m: x.sparse_mask(m.detach()), torch.rand(4, 5, dtype=torch.float64), sample().coalesce(), gradients=False)


def test_gradients_by_finite_differences():
    check_sparse = trt.sparse.as_sparse_gradcheck(trt.autograd.gradcheck)
    a, c = ours(sample().coalesce()).requires_grad_(), ours(sample(3).coalesce()).requires_grad_()
    b = ours(torch.rand(5, 3, dtype=torch.float64)).requires_grad_()
    for f, inputs in (
        (trt.sparse.mm, (a, b)), (lambda x, y: x * y, (a, c)), (lambda x, y: trt.sparse.mm(x, y.t()), (a, c)), (lambda x: trt.sparse.softmax(x, 0), (a,)),
        (lambda x: trt.sparse.log_softmax(x, 1), (a,)), (lambda x: x.t().sin(), (a,)), (lambda x: trt.cat([x, x.select(0, 1).unsqueeze(0)]), (a,)),
        (lambda x: x.index_select(1, trt.tensor([0, 0, 3])), (a,)), (lambda x, y: x + 2 * y, (a, c)), (lambda x: trt.sparse.sum(x, 1), (a,)),
        (lambda x: x.norm(), (a,)), (lambda x: x.to_sparse_csr() @ b.detach(), (a,)),
    ):  # fmt: skip
        assert check_sparse(f, inputs)
    rows = a.detach().to_sparse_csr()
    values = rows.values().clone().requires_grad_()

    def product(v, d):
        return trt.sparse_csr_tensor(rows.crow_indices(), rows.col_indices(), v, (4, 5)) @ d

    assert trt.autograd.gradcheck(product, (values, b)) and trt.autograd.gradgradcheck(product, (values, b))


def test_gradients_of_leaves_add_up_as_pytorchs():
    for first, second in (("sparse", "sparse"), ("sparse", "dense"), ("dense", "sparse")):
        grads = []
        for lib in (torch, trt):
            e = lib.ones(4, 5, dtype=lib.float64).requires_grad_()
            for kind in (first, second):
                i = lib.tensor([[1, 1, 2]])
                if kind == "sparse":
                    lib.nn.functional.embedding(i[0], e, sparse=True).sum().backward()
                else:
                    (e * 2).sum().backward()
            grads.append(e.grad)
        check(grads[1], grads[0])


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "bsc"])
def test_other_values_at_the_same_places(layout):
    made = []
    for library in (trt, torch):
        x = getattr(library.eye(4), f"to_sparse_{layout}")(*([(2, 2)] if layout.startswith("b") else []))
        made.append([library.ones_like(x).to_dense().tolist(), library.full_like(x, 2.5, dtype=library.float64).to_dense().tolist()])
    assert made[0] == made[1]


def test_low_rank_forms_and_rows_of_sparse_matrices():
    x = np.round(np.random.default_rng(0).standard_normal((12, 12)), 2)
    x = x @ x.T * (np.abs(x @ x.T) > 4)
    found = []
    for library in (trt, torch):
        s = library.from_numpy(x).to_sparse()
        library.manual_seed(0)
        values = library.pca_lowrank(s, 12)[1].tolist() + library.lobpcg(s, 1)[0].tolist() + library.lobpcg(s.to_sparse_csr(), 1)[0].tolist()
        found.append([*values, *library.nn.functional.embedding(library.tensor([3, 0, 3]), s).to_dense().flatten().tolist()])
    assert found[0] == pytest.approx(found[1], rel=1e-6, abs=1e-9)
