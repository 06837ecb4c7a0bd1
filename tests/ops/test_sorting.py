"""Sorting, selection and distinct elements: their own properties over dtypes, layouts and patterns, and PyTorch's results."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch_compare import KINDS, compare, normal, ours, same

import tensorrt_lite as trt

REAL = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64]
DTYPES = [torch.bool, *REAL]
KINDS.update({torch.int8: "int8", torch.int16: "int16"})
# around the sizes at which the method changes: ranks, merged blocks, radix passes of 8 and 11 bits, selection
SIZES = [1, 2, 17, 64, 65, 130, 2048, 2049, 5000]
PATTERNS = ["random", "equal", "ascending", "descending", "saw", "organ", "two", "special"]


def made(pattern: str, n: int, dtype: torch.dtype, rows: int = 3) -> torch.Tensor:
    """(rows, n) with many or no duplicates, in orders that are bad for some method."""
    g = torch.Generator().manual_seed(n)
    i = torch.arange(n, dtype=torch.float64).expand(rows, n)
    x = {
        "random": torch.randn(rows, n, generator=g, dtype=torch.float64) * 1e3,
        "equal": torch.full((rows, n), 7.0, dtype=torch.float64),
        "ascending": i,
        "descending": -i,
        "saw": i % 13,
        "organ": torch.minimum(i, n - 1 - i),
        "two": (torch.rand(rows, n, generator=g) < 0.3).double() * 100,
        "special": torch.randn(rows, n, generator=g, dtype=torch.float64),
    }[pattern].clone()
    if pattern == "random" and dtype == torch.int64:
        return torch.randint(-(2**63), 2**63 - 1, (rows, n), generator=g)
    if pattern == "special" and dtype.is_floating_point:
        flat = x.view(-1)
        for start, value in ((0, float("nan")), (1, 0.0), (2, -0.0), (3, float("inf")), (4, -float("inf")), (5, 1e-30)):
            flat[start::7] = value
    return x.clamp(-120 if dtype != torch.uint8 else 0, 120).to(dtype) if not dtype.is_floating_point and dtype != torch.bool else x.to(dtype)


def theirs(t: trt.Tensor) -> torch.Tensor:
    kind = {v: k for k, v in KINDS.items()}[str(t.dtype).split(".")[-1]]
    return torch.tensor(t.tolist(), dtype=kind).reshape(tuple(t.shape))


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Values, with NaN equal to NaN."""
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_sort_is_the_stable_order(pattern, dtype):
    for n in SIZES:
        x = made(pattern, n, dtype)
        mine = ours(x)
        for descending in (False, True):
            values, indices = mine.sort(1, descending)
            wanted = x.sort(dim=1, descending=descending, stable=True)
            assert equal(theirs(values), wanted.values), (n, descending)
            assert torch.equal(theirs(indices), wanted.indices), (n, descending)
            if dtype.is_floating_point:  # -0.0 stays what it is
                assert torch.equal(torch.signbit(theirs(values).nan_to_num()), torch.signbit(x.gather(1, wanted.indices).nan_to_num()))
            assert torch.equal(theirs(mine.argsort(1, descending)), wanted.indices)
            assert equal(theirs(trt.msort(mine)), torch.msort(x))


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_topk_is_the_beginning_of_the_order(pattern, dtype):
    for n in SIZES:
        x = made(pattern, n, dtype)
        mine = ours(x)
        for k in sorted({0, 1, min(n, 10), n // 9, n // 2, n}):
            for largest in (False, True):
                values, indices = mine.topk(k, 1, largest)
                order = x.sort(dim=1, descending=largest, stable=True)
                assert equal(theirs(values), order.values[:, :k]), (n, k, largest)
                assert torch.equal(theirs(indices), order.indices[:, :k]), (n, k, largest)
                values, indices = mine.topk(k, 1, largest, False)
                assert torch.equal(theirs(indices).sort(1).values, order.indices[:, :k].sort(1).values), (n, k, largest)


@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_one_element_of_a_line(pattern, dtype):
    for n in SIZES:
        x = made(pattern, n, dtype)
        mine = ours(x)
        for name, args in (("median", ()), ("nanmedian", ()), ("kthvalue", (1,)), ("kthvalue", (n // 2 + 1,)), ("kthvalue", (n,))):
            values, indices = getattr(mine, name)(*args, 1)
            wanted = getattr(x, name)(*args, 1).values
            assert equal(theirs(values), wanted), (name, args, n)
            assert equal(x.gather(1, theirs(indices)[:, None])[:, 0], wanted), (name, args, n)
        same(mine.median(), x.median())
        same(mine.nanmedian(), x.nanmedian())
        if pattern != "special":
            values, indices = mine.mode(1)
            assert equal(theirs(values), x.mode(1).values)
            assert equal(x.gather(1, theirs(indices)[:, None])[:, 0], theirs(values))


@pytest.mark.parametrize("shape,dim", [((5, 3), 0), ((70, 33), 0), ((4, 6, 5), 1), ((3, 2100, 2), 1), ((2, 3, 40, 3), -2), ((40,), 0), ((), 0)])
def test_every_dimension_and_stride(shape, dim):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    variants = [x, x.transpose(0, -1) if x.dim() else x, x.flip(0) if x.dim() else x, x[..., ::2] if x.dim() else x, x.expand(2, *shape)]
    for v in variants:
        d = min(dim if dim >= 0 else dim + v.dim(), v.dim() - 1) if v.dim() else 0
        m = ours(x)
        mine = [m, m.transpose(0, -1) if x.dim() else m, m.flip(0) if x.dim() else m, m[..., ::2] if x.dim() else m, m.expand(2, *shape)]
        a = mine[next(i for i, y in enumerate(variants) if y is v)]
        n = v.size(d) if v.dim() else 1
        for name, args in (("sort", (d,)), ("topk", (max(n // 2, 1), d)), ("median", (d,)), ("mode", (d,)), ("kthvalue", (n, d))):
            # contiguous: PyTorch's median of an expanded dimension is not that of its values
            got, wanted = getattr(a, name)(*args), getattr(v.contiguous(), name)(*args)
            same(got[0], wanted[0], name)
            if name in ("sort", "topk"):
                same(got[1], wanted[1], name)


@pytest.mark.usefixtures("split_small_work")
def test_results_do_not_depend_on_threads():
    x = trt.randn(200_000)
    m = x[:190_000].reshape(190, 1000)
    results = []
    before = trt.get_num_threads()
    for threads in (1, 2, 3):
        trt.set_num_threads(threads)
        results.append([x.sort(), x.topk(500), m.sort(0), m.sort(1), m.topk(7, 0), x.unique(return_inverse=True), (x.median(),)])
    trt.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other):
            assert all(trt.equal(p, q) for p, q in zip(a, b))


def test_outputs_and_overlap():
    x = trt.tensor([3.0, 1.0, 2.0])
    values, indices = trt.empty(0), trt.empty(0, dtype=trt.int64)
    r = trt.sort(x, out=(values, indices))
    assert r[0] is values and r[1] is indices
    assert values.tolist() == [1.0, 2.0, 3.0] and indices.tolist() == [1, 2, 0]
    trt.sort(x, descending=True, out=(x, indices))  # in place of its input
    assert x.tolist() == [3.0, 2.0, 1.0]
    with pytest.raises(RuntimeError):
        trt.sort(x, out=(trt.empty(3), trt.empty(3)))
    with pytest.raises(RuntimeError):
        trt.sort(x, out=(trt.empty(1).expand(3), indices))


def test_empty_and_meta():
    for shape, dim in (((0,), 0), ((3, 0), 1), ((0, 3), 1), ((3, 0), 0)):
        x = torch.zeros(shape)
        same(ours(x).sort(dim), x.sort(dim))
        same(ours(x).topk(0, dim), x.topk(0, dim))
        same(ours(x).unique(return_inverse=True, return_counts=True), x.unique(return_inverse=True, return_counts=True))
    with pytest.raises(IndexError):
        trt.zeros(0, 3).median(0)
    m = trt.empty(3, 4, device="meta")
    assert m.sort(0)[1].shape == (3, 4) and m.topk(2)[0].shape == (3, 2) and m.kthvalue(1).values.device.type == "meta"
    assert m.median(1, True).indices.shape == (3, 1) and m.median().shape == ()
    with pytest.raises(NotImplementedError):
        m.unique()


@pytest.mark.parametrize(
    "call,error",
    [
        (lambda x: x.sort(2), IndexError),
        (lambda x: x.topk(4), RuntimeError),
        (lambda x: x.topk(-1), RuntimeError),
        (lambda x: x.kthvalue(0), RuntimeError),
        (lambda x: x.kthvalue(4), RuntimeError),
        (lambda x: x.median(5), IndexError),
        (lambda x: (x + 0j).sort(), RuntimeError),
        (lambda x: (x + 0j).median(), NotImplementedError),
        (lambda x: (x > 0).topk(1), RuntimeError),
        (lambda x: x.quantile(1.5), RuntimeError),
        (lambda x: x.quantile(0.5, interpolation="no"), RuntimeError),
        (lambda x: x.long().quantile(0.5), RuntimeError),
        (lambda x: x.histc(0), RuntimeError),
        (lambda x: x.histc(3, 2, 1), RuntimeError),
        (lambda x: x.diff(-1), RuntimeError),
        (lambda x: x.unique(dim=3), IndexError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call(trt.randn(2, 3))


def test_gradients_of_both_orders():
    x = normal(4, 9, dtype=torch.float64)
    for name, args in (("sort", (1,)), ("sort", (0, True)), ("topk", (3, 1)), ("kthvalue", (2, 0)), ("median", (1,)), ("mode", (1,)), ("nanmedian", (0, True))):
        compare(getattr(trt.Tensor, name), getattr(torch.Tensor, name), x, *args)
    for name in ("median", "nanmedian", "msort"):
        compare(getattr(trt.Tensor, name), getattr(torch.Tensor, name), x)
    for f in (lambda t: t.sort(1)[0], lambda t: t.topk(3, 0)[0], lambda t: t.quantile(0.3, 1), lambda t: t.diff(n=2), lambda t: t.median()):
        p, q = x.detach().clone().requires_grad_(), ours(x.detach()).requires_grad_()
        g, = torch.autograd.grad((f(p) ** 3).sum(), p, create_graph=True)
        h, = trt.autograd.grad((f(q) ** 3).sum(), q, create_graph=True)
        same(h, g)
        same(trt.autograd.grad((h * h).sum(), q)[0], torch.autograd.grad((g * g).sum(), p)[0])
    ties = torch.tensor([1.0, 2.0, 2.0, 3.0, 2.0], requires_grad=True)
    compare(trt.Tensor.median, torch.Tensor.median, ties)
    with pytest.raises(NotImplementedError):
        ours(ties).unique().sum().backward()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_distinct_elements(pattern, dtype):
    for n in (1, 17, 200, 3000):
        x = made(pattern, n, dtype)
        for name in ("unique", "unique_consecutive"):
            got = getattr(trt, name)(ours(x), return_inverse=True, return_counts=True)
            wanted = getattr(torch, name)(x, return_inverse=True, return_counts=True)
            assert equal(theirs(got[0]), wanted[0]), (name, n)
            assert int(got[2].sum()) == x.numel()
            back = theirs(got[0])[theirs(got[1])]
            assert equal(back, x), (name, n)
            same(getattr(trt, name)(ours(x)), wanted[0])


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(7, 2), (40, 3, 2), (3, 50), (1, 4), (0, 3)])
def test_distinct_slices(shape, dtype):
    x = torch.randint(0, 2, shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    for name in ("unique", "unique_consecutive"):
        for dim in range(len(shape)):
            if 0 in [s for d, s in enumerate(shape) if d != dim]:
                continue
            wanted = getattr(torch, name)(x, dim=dim, return_inverse=True, return_counts=True)
            same(getattr(trt, name)(ours(x), dim=dim, return_inverse=True, return_counts=True), wanted, f"{name} {dim}")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(interpolation, dtype):
    x = normal(6, 11, dtype=dtype)
    holed = x.detach().clone()
    holed[1, 3] = holed[2] = float("nan")
    for t in (x, holed):
        for q in (0.0, 0.3, 1.0, torch.tensor([0.1, 0.25, 0.9], dtype=dtype)):
            for options in ({}, {"dim": 1}, {"dim": 0, "keepdim": True}, {"keepdim": True}):
                compare(trt.quantile, torch.quantile, t, q, interpolation=interpolation, **options)
                compare(trt.nanquantile, torch.nanquantile, t, q, interpolation=interpolation, **options)


def test_histograms():
    x = torch.randn(1000, generator=torch.Generator().manual_seed(3))
    for args in ((), (10,), (7, -1, 2), (5, 3.0, 3.0)):
        same(ours(x).histc(*args), x.histc(*args))
    many = torch.linspace(-3, 5, 200_003, dtype=torch.float64)  # several blocks, the last of them shorter
    same(ours(many).histc(7), many.histc(7))
    same(ours(many.reshape(1, -1)[:, ::3]).histc(50, -1, 1), many[::3].histc(50, -1, 1))
    w = torch.rand(1000, generator=torch.Generator().manual_seed(4))
    edges = torch.tensor([-3.0, -1.0, 0.0, 0.5, 4.0])
    for options in ({}, {"density": True}, {"weight": w}):
        theirs_too = {k: ours(v) for k, v in options.items()}
        same(trt.histogram(ours(x), ours(edges), **theirs_too), torch.histogram(x, edges, **options))
        same(trt.histogram(ours(x), 9, range=(-2.0, 2.0), **theirs_too), torch.histogram(x, 9, range=(-2.0, 2.0), **options))
    points = x.reshape(-1, 2)
    mine, wanted = trt.histogramdd(ours(points), [4, 5]), torch.histogramdd(points, [4, 5])
    same(mine.hist, wanted.hist)
    same(mine.bin_edges, wanted.bin_edges)
    i = torch.randint(0, 50, (1000,), generator=torch.Generator().manual_seed(5))
    for args in ((), (w,), (w.double(),), (None, 100)):
        same(ours(i).bincount(*[ours(a) for a in args]), i.bincount(*args))


def test_search_in_sorted_rows():
    g = torch.Generator().manual_seed(6)
    for dtype in REAL:
        rows = made("saw", 37, dtype).sort(1).values
        values = made("random", 21, dtype)
        for right in (False, True):
            same(trt.searchsorted(ours(rows), ours(values), right=right), torch.searchsorted(rows, values, right=right))
            same(trt.bucketize(ours(values), ours(rows[0]), right=right), torch.bucketize(values, rows[0].contiguous(), right=right))
    x = torch.randn(5, 40, generator=g)
    order = x.argsort(1)
    v = torch.cat([torch.randn(5, 9, generator=g), torch.full((5, 1), float("nan")), x[:, :1]], 1)
    same(trt.searchsorted(ours(x), ours(v), sorter=ours(order)), torch.searchsorted(x, v, sorter=order))
    same(trt.searchsorted(trt.zeros(0), trt.randn(3)), torch.zeros(3, dtype=torch.int64))


@pytest.mark.parametrize("boundaries", DTYPES)
def test_search_compares_different_types_in_the_promoted_one(boundaries):
    """Numbers and 0-dimensional tensors are weak: float16 beside 1.0001 stays float16."""
    sorted_sequence = torch.tensor([0.0, 1.0, 1.25, 3.0]).to(boundaries).unique()
    for dtype in DTYPES:
        if dtype is boundaries is torch.bool:
            continue
        for values in (torch.tensor([-1.0, 0.0, 1.0, 1.0001, 1.5, 2.0, 300.0]).to(dtype), torch.tensor(1.0001).to(dtype)):
            for right in (False, True):
                same(trt.searchsorted(ours(sorted_sequence), ours(values), right=right), torch.searchsorted(sorted_sequence, values, right=right))
                same(trt.bucketize(ours(values), ours(sorted_sequence), right=right), torch.bucketize(values, sorted_sequence, right=right))
    for number in (1.5, -1.5, 1 + 1e-12, 2.0**24, 2, -1, 300, 2**33):
        same(trt.searchsorted(ours(sorted_sequence), number), torch.searchsorted(sorted_sequence, number))
        same(trt.bucketize(number, ours(sorted_sequence), right=True), torch.bucketize(number, sorted_sequence, right=True))
    with pytest.raises(NotImplementedError):
        trt.searchsorted(ours(sorted_sequence), 1j)


def test_search_beside_integers_takes_numbers_with_fractions():
    edges, values = trt.tensor([1, 2, 3]), trt.tensor([1.5])
    assert trt.bucketize(1.5, edges).item() == trt.searchsorted(edges, 1.5).item() == 1
    out = trt.empty(1, dtype=trt.int64)
    assert trt.searchsorted(edges, values, out=out) is out and out.tolist() == [1]
    assert trt.searchsorted(trt.tensor([3, 1, 2]), values, sorter=trt.tensor([1, 2, 0])).tolist() == [1]
    assert trt.func.vmap(lambda v: trt.searchsorted(edges, v))(trt.tensor([[1.5], [2.0]])).tolist() == [[1], [1]]
    assert trt.searchsorted(edges.to("meta"), values.to("meta")).shape == (1,)


def test_differences():
    x = normal(4, 7, dtype=torch.float64)
    for args in ((), (2,), (1, 0), (9,)):
        compare(trt.diff, torch.diff, x, *args)
    compare(trt.diff, torch.diff, x, 1, 1, normal(4, 2, dtype=torch.float64), normal(4, 1, dtype=torch.float64))
    t = torch.tensor([0.0, 0.5, 0.7, 1.4, 2.0, 2.1, 3.0], dtype=torch.float64)
    for options in ({}, {"spacing": 0.3}, {"dim": 1, "edge_order": 2}, {"dim": (0, 1), "spacing": (2.0, 0.5)}):
        compare(trt.gradient, torch.gradient, x, **options)
    same(trt.gradient(ours(x), spacing=[ours(t)], dim=1, edge_order=2), torch.gradient(x, spacing=[t], dim=1, edge_order=2))


@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(3, 40), (2, 50, 150), (1, 1), (30, 300)])
def test_running_extremes(name, dtype, shape):
    """Equals move the index on; NaN stays, and a later NaN takes over."""
    n = 1
    for size in shape:
        n *= size
    x = (torch.arange(n) * 7919 % 31 - (0 if dtype in (torch.bool, torch.uint8) else 15)).reshape(shape).to(dtype)
    if dtype.is_floating_point and n > 1:
        x[..., 5] = float("nan")
        x[0, ..., 17] = x[-1, ..., 17] = float("nan")
        x[1, ..., 0] = -float("inf")
    for dim in range(x.dim()):
        theirs, mine = getattr(torch, name)(x, dim), getattr(trt, name)(ours(x), dim)
        assert str(mine[0].tolist()) == str(theirs[0].tolist()) and mine[1].tolist() == theirs[1].tolist()
        theirs, mine = getattr(torch, name)(x.transpose(0, 1), dim), getattr(trt, name)(ours(x).transpose(0, 1), dim)
        assert str(mine[0].tolist()) == str(theirs[0].tolist()) and mine[1].tolist() == theirs[1].tolist()


@pytest.mark.parametrize("n", [1, 2, 5, 16, 17, 40, 300, 3000])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
def test_mode_of_lines_with_nan(n, dtype):
    """NaN equals nothing, and lies where PyTorch's sort leaves it: values and positions."""
    for many in (0.1, 0.5, 0.95):
        for values in (3, 50):
            x = torch.randint(0, values, (8, n)).to(dtype)
            x[torch.rand(8, n) < many] = float("nan")
            x = x[torch.isnan(x).any(1)]
            expected = x.mode(1)
            found, places = ours(x).mode(1)
            same(found, expected.values)
            assert places.tolist() == expected.indices.tolist()
