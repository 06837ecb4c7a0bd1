"""Matrix products against NumPy: every dtype, stride and size class (tiles, skinny, packed, BLAS), derivatives, errors, out=."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite import _ops
from tensorrt_lite.autograd import gradcheck, gradgradcheck

SIZES = [(4, 4, 4), (1, 7, 9), (3, 300, 5), (17, 33, 29), (64, 64, 64), (70, 65, 80), (2, 100, 90), (100, 90, 2), (129, 1, 130), (1, 1, 1), (5, 600, 1), (1, 400, 300)]
EMPTY = [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
TOLERANCE = {"float32": 1e-5, "float64": 1e-13, "complex64": 1e-5, "complex128": 1e-13}


def array(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype in INTEGERS:
        return rng.integers(-100, 100, shape).astype(dtype)
    x = rng.standard_normal(shape)
    return (x + 1j * rng.standard_normal(shape)).astype(dtype) if dtype.startswith("complex") else x.astype(dtype)


def tensor(x: np.ndarray) -> trt.Tensor:
    return trt.tensor(x.tolist(), dtype=getattr(trt, str(x.dtype))).reshape(x.shape)


def back(t: trt.Tensor) -> np.ndarray:
    return np.array(t.tolist(), dtype=str(t.dtype).split(".")[-1]).reshape(tuple(t.shape))


def close(t: trt.Tensor, expected: np.ndarray, depth: int = 1) -> None:
    assert tuple(t.shape) == expected.shape
    got = back(t)
    assert got.dtype == expected.dtype
    if str(expected.dtype) in INTEGERS:
        assert (got == expected).all()
    elif expected.size:
        scale = max(1.0, float(np.abs(expected).max())) * math.sqrt(max(depth, 1))
        assert np.abs(got - expected).max() <= TOLERANCE[str(expected.dtype)] * scale


def draw(*shape: int, seed: int = 0, complex_: bool = False) -> trt.Tensor:
    rng = np.random.default_rng(seed + sum(shape))
    return tensor(array(rng, shape, "complex128" if complex_ else "float64")).requires_grad_()


@pytest.mark.parametrize("dtype", [*TOLERANCE, *INTEGERS])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_mm(dtype, transpose_a, transpose_b):
    rng = np.random.default_rng(1)
    for m, k, n in SIZES + EMPTY:
        a, b = array(rng, (m, k), dtype), array(rng, (k, n), dtype)
        ta = tensor(np.ascontiguousarray(a.T)).t() if transpose_a else tensor(a)
        tb = tensor(np.ascontiguousarray(b.T)).t() if transpose_b else tensor(b)
        close(trt.mm(ta, tb), a @ b, k)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "int32"])
def test_strides_that_blas_does_not_take(dtype):
    rng = np.random.default_rng(2)
    for m, k, n in [(5, 6, 7), (40, 50, 60), (2, 300, 100)]:
        a, b = array(rng, (2 * m, 3 * k), dtype), array(rng, (k, 2 * n), dtype)
        ta, tb = tensor(a)[::2, ::3], tensor(b)[:, ::2]
        close(ta @ tb, a[::2, ::3] @ b[:, ::2], k)
        row = array(rng, (n,), dtype)
        close(ta @ tensor(row[:1]).expand(k, n), a[::2, ::3] @ np.broadcast_to(row[:1], (k, n)), k)
    window = tensor(np.arange(30, dtype=dtype)).as_strided((10, 4), (2, 1))        # rows overlap
    x = np.lib.stride_tricks.sliding_window_view(np.arange(30, dtype=dtype), 4)[:20:2]
    for n in (3, 40, 400):
        b = array(rng, (4, n), dtype)
        close(window @ tensor(b), x @ b)
        close(tensor(np.ascontiguousarray(b.T)) @ window.t(), b.T @ x.T)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_products_accumulate_in_float32(dtype):
    a = trt.full((3, 4096), 1.0, dtype=getattr(trt, dtype))
    assert (a @ a.t()).tolist() == [[4096.0] * 3] * 3      # accumulating in half precision would stop at 2048 or 256
    bias = trt.full((3, 3), 8.0, dtype=getattr(trt, dtype))
    assert trt.addmm(bias, a, a.t(), beta=2, alpha=0.5).tolist() == [[2064.0] * 3] * 3 or dtype == "bfloat16"


def test_bool_is_refused():
    a = trt.ones(2, 2, dtype=trt.bool)
    with pytest.raises(RuntimeError, match="Bool"):
        a @ a


SHAPES = [((3,), (3,)), ((3, 4), (4,)), ((4,), (4, 3)), ((2, 3, 4), (4,)), ((4,), (2, 4, 3)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5)),
          ((2, 1, 3, 4), (5, 4, 6)), ((1, 3, 4), (5, 4, 6)), ((2, 3, 1, 4), (4, 2)), ((0, 3, 4), (4, 5)), ((2, 3, 0), (2, 0, 5)), ((2, 2, 2, 3, 4), (2, 1, 4, 1))]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_matmul_of_all_dimensions(a, b):
    rng = np.random.default_rng(3)
    x, y = array(rng, a, "float64"), array(rng, b, "float64")
    close(tensor(x) @ tensor(y), np.asarray(x @ y), a[-1])
    if min(a) > 0:
        xs, ys = draw(*a), draw(*b, seed=5)
        assert gradcheck(trt.matmul, (xs, ys))
        assert gradgradcheck(trt.matmul, (xs, ys))


def test_matmul_operator_refuses_numbers():
    with pytest.raises(TypeError):
        trt.ones(2, 2) @ 3
    with pytest.raises(TypeError):
        3 @ trt.ones(2, 2)


@pytest.mark.parametrize("n", [0, 1, 5, 1000, 200001])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_dot(n, dtype):
    rng = np.random.default_rng(4)
    a, b = array(rng, (n,), dtype), array(rng, (n,), dtype)
    close(trt.dot(tensor(a), tensor(b)), np.asarray(np.sum(a * b, dtype=dtype) if dtype == "int16" else a @ b), n)


@pytest.mark.usefixtures("split_small_work")
def test_large_vectors_and_skinny_products_do_not_depend_on_threads():
    before = trt.get_num_threads()
    rng = np.random.default_rng(5)
    a, x = tensor(array(rng, (700, 333), "float32")), tensor(array(rng, (333,), "float32"))
    long = tensor(array(rng, (150000,), "float32"))
    few = tensor(array(rng, (3, 700), "float32"))
    results = []
    try:
        for n in (1, 2, 3):
            trt.set_num_threads(n)
            results.append([trt.mv(a, x), trt.mv(a.t(), few.select(0, 0)), few @ a, a.t() @ few.t(), trt.dot(long, long)])
    finally:
        trt.set_num_threads(before)
    for other in results[1:]:
        assert all(p.tolist() == q.tolist() for p, q in zip(results[0], other, strict=True))


@pytest.mark.usefixtures("split_small_work")
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16"])
def test_packed_products_do_not_depend_on_threads(dtype):
    """Sizes at which panels, tasks, columns or items of the batch are shared out."""
    before, results = trt.get_num_threads(), []
    operands = [[trt.randn(*shape).to(getattr(trt, dtype)) for shape in pair] for pair in
                [((200, 300), (300, 150)), ((20, 1200), (1200, 90)), ((90, 600), (600, 20)), ((5, 40, 130), (5, 130, 60)), ((2, 150, 130), (2, 130, 200))]]  # fmt: skip
    bias = trt.randn(150).to(getattr(trt, dtype))
    try:
        for n in (1, 2, 3):
            trt.set_num_threads(n)
            results.append([a @ b for a, b in operands] + [(b.transpose(-1, -2) @ a.transpose(-1, -2)).transpose(-1, -2) for a, b in operands[3:]])
            results[-1].append(trt.addmm(bias, *operands[0], beta=0.5))
    finally:
        trt.set_num_threads(before)
    for other in results[1:]:
        assert all(trt.equal(p, q) for p, q in zip(results[0], other, strict=True))


@pytest.mark.parametrize("kernel", ["widened", "pairs", "tiles"])
def test_kernels_of_bfloat16_agree(kernel):
    """Each that this processor has; all of them add in float32 and round once."""
    from tensorrt_lite._C.ops.matmul import packed

    try:
        if packed._use_bf16_kernel(kernel) != kernel:
            pytest.skip(f"this processor has no {kernel}")
        for shape_a, shape_b in [((70, 1100), (1100, 90)), ((3, 20, 33), (3, 33, 50)), ((6, 500), (500, 40))]:
            a, b = trt.randn(*shape_a).bfloat16(), trt.randn(*shape_b).bfloat16()
            exact = a.double() @ b.double()
            size = a.double().abs() @ b.double().abs()
            for got in (a @ b, (b.mT @ a.mT).mT, a.mT.contiguous().mT @ b, a @ b.mT.contiguous().mT):
                assert bool(((got.double() - exact).abs() <= 0.004 * exact.abs() + 1e-6 * size).all())
    finally:
        packed._use_bf16_kernel("tiles")


@pytest.mark.parametrize(("precision", "bits"), [("high", 16), ("medium", 7)])
def test_lower_precisions_of_float32_leave_out_low_bits_where_tiles_multiply(precision, bits):
    from tensorrt_lite._C.ops.matmul.packed import bf16_kernel

    a, b = trt.randn(130, 170, requires_grad=True), trt.randn(90, 170)
    exact, size = a.double() @ b.double().t(), a.double().abs() @ b.double().abs().t()
    highest = trt.nn.functional.linear(a, b)
    before = trt.get_float32_matmul_precision()
    try:
        trt.set_float32_matmul_precision(precision)
        got = trt.nn.functional.linear(a, b)
        got.sum().backward()
        small = trt.randn(8, 8)
        small_product = small @ small
    finally:
        trt.set_float32_matmul_precision(before)
    assert bool(((got - exact).abs() <= size * 2.0**-bits).all())
    assert trt.allclose(a.grad, b.sum(0).expand_as(a), rtol=2.0 ** (3 - bits), atol=2.0 ** (3 - bits))
    assert trt.equal(small_product, small @ small)
    assert trt.equal(got, highest) == (bf16_kernel() != "tiles")
    assert trt.equal(trt.nn.functional.linear(a, b), highest)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products_of_two_python_threads_at_once(dtype):
    """The packed GEMM holds no lock; each has a workspace of its own."""
    from concurrent.futures import ThreadPoolExecutor

    a, b = trt.randn(160, 200).to(getattr(trt, dtype)), trt.randn(200, 170).to(getattr(trt, dtype))
    want = a @ b
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda _: trt.equal(a @ b, want), range(40)))


def test_an_addend_of_zero_weight_is_not_read():
    a, b = trt.randn(70, 300), trt.randn(300, 90)
    assert trt.equal(trt.addmm(trt.full((90,), math.nan), a, b, beta=0), a @ b)
    out = trt.full((70, 90), math.nan)
    trt.mm(a, b, out=out)
    assert trt.equal(out, a @ b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("n", [3, 40])
def test_factors_of_zero_weight_are_not_read(dtype, n):
    kind = getattr(trt, dtype)
    addend, left, right = trt.full((n, n), 3, dtype=kind), trt.full((n, n), math.nan, dtype=kind), trt.full((n, n), math.inf, dtype=kind)
    for beta in (0, 1, 2):
        want = addend * beta
        for x in (left, left.t()):
            assert trt.equal(trt.addmm(addend, x, right, beta=beta, alpha=0), want)
            assert trt.equal(trt.addmm(addend[0], x, right, beta=beta, alpha=0), want)
            assert trt.equal(addend.clone().addmm_(x, right, beta=beta, alpha=0), want)
            assert trt.equal(trt.addbmm(addend, trt.stack([x, x]), trt.stack([right, x]), beta=beta, alpha=0), want)
            assert trt.equal(trt.addmv(addend[0], x, right[0], beta=beta, alpha=0), want[0])
        if n == 40:  # PyTorch's loop for small batched matrices reads them
            assert trt.equal(trt.baddbmm(addend[None], left[None], right[None], beta=beta, alpha=0)[0], want)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_products_into_their_own_operands_and_strided_outputs(dtype):
    a, b = trt.randn(90, 90).to(getattr(trt, dtype)), trt.randn(90, 90).to(getattr(trt, dtype))
    want = a @ b
    strided = trt.zeros(180, 180).to(getattr(trt, dtype))[::2, ::2]
    trt.mm(a, b, out=strided)
    assert trt.equal(strided, want)
    assert trt.equal(a.clone().addmm_(a, b, beta=2.0), trt.addmm(a, a, b, beta=2.0))
    turned = trt.zeros(90, 90).to(getattr(trt, dtype)).t()
    assert trt.equal(trt.addmm(a, a, b, beta=2.0, out=turned), trt.addmm(a, a, b, beta=2.0))
    c = a.clone()
    trt.mm(c, b, out=c)
    assert trt.equal(c, want)


@pytest.mark.parametrize(("name", "shapes"), [
    ("addmm", ((6,), (5, 4), (4, 6))), ("addmm", ((5, 1), (5, 4), (4, 6))), ("addmm", ((), (5, 4), (4, 6))), ("baddbmm", ((3, 5, 6), (3, 5, 4), (3, 4, 6))),
    ("baddbmm", ((5, 1), (3, 5, 4), (3, 4, 6))), ("addmv", ((5,), (5, 4), (4,))), ("addbmm", ((5, 6), (3, 5, 4), (3, 4, 6))), ("addr", ((5, 4), (5,), (4,))),
])  # fmt: skip
def test_products_with_an_addend(name, shapes):
    rng = np.random.default_rng(6)
    s, x, y = (array(rng, z, "float64") for z in shapes)
    value = np.outer(x, y) if name == "addr" else (x @ y).sum(0) if name == "addbmm" else x @ y
    f = getattr(trt, name)
    close(f(tensor(s), tensor(x), tensor(y)), s + value)
    close(f(tensor(s), tensor(x), tensor(y), beta=2, alpha=-0.5), 2 * s - 0.5 * value)
    nan = tensor(np.full(s.shape, np.nan))
    close(f(nan, tensor(x), tensor(y), beta=0), value)             # beta = 0: the addend does not count
    if s.shape == value.shape:
        t = tensor(s)
        assert getattr(t, name + "_")(tensor(x), tensor(y), beta=3) is t
        close(t, 3 * s + value)
    inputs = tuple(tensor(z).requires_grad_() for z in (s, x, y))
    assert gradcheck(lambda *a: f(*a, beta=2, alpha=-0.5), inputs)
    assert gradgradcheck(lambda *a: f(*a, beta=2, alpha=-0.5), inputs)


@pytest.mark.parametrize("shape", [(37, 41, 33), (14, 600, 64), (130, 9, 129), (5, 700, 40), (64, 64, 64), (9, 300, 17)])
def test_int64_products_are_exact_modulo_2_to_the_64(shape):
    """By the packed GEMM: all layouts, blocks of the depth, numbers beyond 2**53."""
    m, k, n = shape
    rng = np.random.default_rng(m)
    a, b, c = (rng.integers(-(2**62), 2**62, s) for s in ((m, k), (k, n), (m, n)))
    product = (a.astype(object) @ b.astype(object) & (2**64 - 1)).astype(np.uint64).view(np.int64)
    for left in (trt.from_numpy(a), trt.from_numpy(np.asfortranarray(a)), trt.from_numpy(np.repeat(a, 2, 1))[:, ::2]):
        for right in (trt.from_numpy(b), trt.from_numpy(np.asfortranarray(b)), trt.from_numpy(b[::-1].copy()).flip(0)):
            assert np.array_equal((left @ right).numpy(), product)
    alpha, beta = 2**61 + 3, -(2**60) - 1
    with np.errstate(over="ignore"):
        wanted = product * np.int64(alpha) + c * np.int64(beta)
    assert np.array_equal(trt.addmm(trt.from_numpy(c), left, right, alpha=alpha, beta=beta).numpy(), wanted)
    out = trt.empty(n, m, dtype=trt.int64).t()
    assert np.array_equal(trt.addmm(trt.from_numpy(c), left, right, alpha=alpha, beta=beta, out=out).numpy(), wanted)
    x = trt.from_numpy(c.copy())
    x.addmm_(left, right)
    assert np.array_equal(x.numpy(), product + c)
    batch = trt.bmm(trt.stack([left, left + 1]), trt.stack([right, right]))
    assert np.array_equal(batch[0].numpy(), product) and np.array_equal(batch[1].numpy(), product + b.sum(0))


def test_integer_addmm_wraps():
    a = trt.full((2, 2), 100, dtype=trt.int8)
    assert trt.addmm(a, a, a, beta=3, alpha=2).tolist() == [[((300 + 2 * 20000) + 128) % 256 - 128] * 2] * 2


@pytest.mark.parametrize("factors", [(2.0, 3.0), (1.0, -1.0), (0.2, 0.6), (1.7, -2.9), (0.0, 1.0), (True, 2)])
def test_factors_of_integer_products_lose_their_fractions(factors):
    torch = pytest.importorskip("torch")
    beta, alpha = factors
    for name, shapes in (("addmv", ((2,), (2, 3), (3,))), ("addmm", ((2, 2), (2, 3), (3, 2))), ("addbmm", ((2, 2), (4, 2, 3), (4, 3, 2))),
                         ("baddbmm", ((4, 2, 2), (4, 2, 3), (4, 3, 2)))):  # fmt: skip
        operands = [torch.randint(-9, 9, shape) for shape in shapes]
        got = getattr(trt, name)(*(trt.tensor(x.tolist()) for x in operands), beta=beta, alpha=alpha)
        assert got.tolist() == getattr(torch, name)(*operands, beta=beta, alpha=alpha).tolist(), name


@pytest.mark.parametrize("shape", [(16,), (4, 16), (2, 3, 16), (300, 16), (0, 16)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(shape, bias):
    rng = np.random.default_rng(7)
    x, w, b = array(rng, shape, "float64"), array(rng, (8, 16), "float64"), array(rng, (8,), "float64")
    close(_ops.linear(tensor(x), tensor(w), tensor(b) if bias else None), x @ w.T + (b if bias else 0), 16)
    if shape[0] in (300, 0):
        return
    inputs = tuple(tensor(z).requires_grad_() for z in ((x, w, b) if bias else (x, w)))
    assert gradcheck(_ops.linear, inputs)
    assert gradgradcheck(_ops.linear, inputs)


def test_linear_computes_only_the_gradients_that_are_wanted():
    x, w, b = (draw(3, 4), draw(5, 4), draw(5))
    for wanted in range(1, 8):
        inputs = [t.detach().requires_grad_(bool(wanted >> i & 1)) for i, t in enumerate((x, w, b))]
        y = _ops.linear(*inputs)
        y.backward(trt.ones(3, 5, dtype=trt.float64))
        expected = [back(w).sum(0) * np.ones((3, 1)), np.ones((5, 1)) * back(x).sum(0), np.full(5, 3.0)]
        for i, t in enumerate(inputs):
            assert (t.grad is None) == (not wanted >> i & 1)
            if t.grad is not None:
                close(t.grad, expected[i])


def test_linear_with_a_vector_as_weight_and_strided_input():
    rng = np.random.default_rng(8)
    x, w = array(rng, (6, 5), "float64"), array(rng, (5,), "float64")
    close(_ops.linear(tensor(x), tensor(w)), x @ w)
    v = array(rng, (5, 6), "float64")
    close(_ops.linear(tensor(v).t(), tensor(x)), v.T @ x.T)


EQUATIONS = [
    ("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)), ("ij->ji", (3, 4)), ("ii->i", (3, 3)), ("ii", (3, 3)), ("ij->", (3, 4)), ("i,j->ij", (3,), (4,)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)), ("bhqd,bhkd->bhqk", (2, 2, 3, 4), (2, 2, 5, 4)),
    ("i,i->i", (4,), (4,)), ("i,i", (4,), (4,)), ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)), ("...,...->...", (2, 3), (3,)), ("i...->...", (2, 3, 4)),
    ("aij,bij->ab", (2, 3, 4), (5, 3, 4)), ("iij,jk->ik", (3, 3, 4), (4, 2)), ("ab,cd->abcd", (2, 3), (4, 5)), ("ijk,ilm,njm,nlk,abc->", *((2,) * 3,) * 5),
]  # fmt: skip


@pytest.mark.parametrize("case", EQUATIONS, ids=lambda c: c[0])
def test_einsum(case):
    rng = np.random.default_rng(9)
    xs = [array(rng, s, "float64") for s in case[1:]]
    close(trt.einsum(case[0], *map(tensor, xs)), np.asarray(np.einsum(case[0], *xs)), 64)
    close(trt.einsum(" ".join(case[0]).replace(". . .", "...").replace("- >", "->"), list(map(tensor, xs))), np.asarray(np.einsum(case[0], *xs)), 64)
    if len(xs) < 4:
        assert gradcheck(lambda *a: trt.einsum(case[0], *a), tuple(tensor(x).requires_grad_() for x in xs))


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk", [(2, 3), (2, 3)]), ("ij,ij", [(2, 3), (4, 3)]), ("ii", [(2, 3)]), ("...i,...i", [(2, 3), (4, 3)]), ("ij,jk,kl->il", [(2, 3), (3, 4), (5, 6)]),
        ("aa,a", [(2, 2), (3,)]), ("i...,i...", [(2, 3), (2, 4)]), ("i...j,...kj", [(2, 3, 5, 4), (6, 2, 4)]), ("Zi,iZ", [(2, 3), (3, 5)]),
    ],
)  # fmt: skip
def test_einsum_names_the_subscript_that_does_not_fit(equation, shapes):
    torch = pytest.importorskip("torch")
    said = []
    for lib in (trt, torch):
        with pytest.raises(RuntimeError) as error:
            lib.einsum(equation, *map(lib.ones, shapes))
        said.append(str(error.value))
    assert said[0] == said[1]


@pytest.mark.parametrize("equation", ["bij,bjk->bki", "ij,jk->ki", "bij,bkj->bki", "i,j->ji", "abcd,cdef->efab", "...ij,...jk->...ki", "ij,bjk->bki",
                                      "ij,k->kij", "ai,bi,ci->cab", "ij,jk,kl->li", "ijk->kj", "ij,jk->ik", "bij,jk->bik"])  # fmt: skip
@pytest.mark.parametrize("transposed", [False, True])
def test_einsum_gives_contiguous_results_where_pytorchs_are(equation, transposed):
    """Programs take view() of them: operands change places where the labels of the second come first in the output."""
    size = dict(zip("abcdefijkl", (2, 3, 4, 5, 6, 7, 3, 2, 4, 5)))
    operands = []
    for labels in equation.split("->")[0].split(","):
        shape = [size[x] for x in labels.replace("...", "ab")]
        x = trt.randn(*shape[::-1]).permute(*range(len(shape))[::-1]) if transposed else trt.randn(*shape)
        operands.append(x)
    r = trt.einsum(equation, *operands)
    assert r.is_contiguous()
    assert np.allclose(r.numpy(), np.einsum(equation, *[x.numpy() for x in operands]), atol=1e-5)
    swapped = [x.clone().requires_grad_() for x in operands]
    trt.einsum(equation, *swapped).square().sum().backward()
    exact = [x.double().requires_grad_() for x in operands]
    trt.einsum(equation, *exact).square().sum().backward()
    for x, wanted in zip(swapped, exact):
        assert trt.allclose(x.grad.double(), wanted.grad, rtol=1e-4, atol=1e-4)


def test_einsum_sublists_and_broadcast_sizes():
    rng = np.random.default_rng(10)
    a, b = array(rng, (3, 4), "float64"), array(rng, (4, 5), "float64")
    close(trt.einsum(tensor(a), [0, 1], tensor(b), [1, 2], [2, 0]), (a @ b).T)
    close(trt.einsum(tensor(a), [0, 1], tensor(b), [1, 2]), a @ b)
    one = array(rng, (1, 4), "float64")
    close(trt.einsum("ij,ij->ij", tensor(one), tensor(a)), one * a)
    close(trt.einsum("ij,ik->jk", tensor(one), tensor(a)), np.einsum("j,ik->jk", one[0], a))


@pytest.mark.parametrize(("equation", "shapes", "text"), [
    ("ij,jk", [(2, 3)], "fewer operands"), ("ij", [(2, 3), (3, 4)], "more operands"), ("ijk", [(2, 3)], "does not match the number of dimensions"),
    ("ii", [(2, 3)], "don't match"), ("ij,jk", [(2, 3), (4, 5)], "does not broadcast"), ("ij->ik", [(2, 3)], "does not appear"), ("ij->ii", [(2, 3)], "more than once"),
    ("i1", [(2, 3)], "invalid subscript"), ("i.j", [(2, 3)], "ellipsis"),
])  # fmt: skip
def test_einsum_errors(equation, shapes, text):
    with pytest.raises(RuntimeError, match=text):
        trt.einsum(equation, *[trt.ones(s) for s in shapes])


def test_composed_products():
    rng = np.random.default_rng(11)
    a, b = array(rng, (2, 3, 4), "float64"), array(rng, (4, 3, 5), "float64")
    close(trt.tensordot(tensor(a), tensor(b), ([2, 1], [0, 1])), np.tensordot(a, b, ([2, 1], [0, 1])))
    close(trt.tensordot(tensor(a), tensor(b[:, 0]), 1), np.tensordot(a, b[:, 0], 1))
    close(trt.inner(tensor(a), tensor(a)), np.inner(a, a))
    close(trt.outer(tensor(a[0, 0]), tensor(b[0, 0])), np.outer(a[0, 0], b[0, 0]))
    close(trt.kron(tensor(a[0]), tensor(b)), np.kron(a[0], b))
    u, v = array(rng, (5, 3), "float64"), array(rng, (5, 3), "float64")
    close(trt.trace(tensor(u)), np.asarray(np.trace(u)))
    chain = [array(rng, s, "float64") for s in ((3, 7), (7, 2), (2, 9), (9, 4))]
    close(trt.chain_matmul(*map(tensor, chain)), np.linalg.multi_dot(chain), 9)
    close(_ops.linalg_multi_dot([tensor(chain[0][0]), *map(tensor, chain[1:])]), np.linalg.multi_dot([chain[0][0], *chain[1:]]), 9)
    square = array(rng, (2, 3, 3), "float64")
    close(trt.matrix_power(tensor(square), 5), np.linalg.matrix_power(square, 5), 9)
    weight, bias = array(rng, (4, 3, 3), "float64"), array(rng, (4,), "float64")
    close(_ops.bilinear(tensor(u), tensor(v), tensor(weight), tensor(bias)), np.einsum("ni,oij,nj->no", u, weight, v) + bias, 9)


def test_vecdot_of_vectors_is_vdot():
    u, v = (tensor(np.random.default_rng(k).standard_normal(70) + 1j) for k in (1, 2))
    assert complex(_ops.linalg_vecdot(u, v)) == complex(_ops.vdot(u, v))
    with pytest.raises(RuntimeError, match="inconsistent|same number|size"):
        _ops.linalg_vecdot(u, v[:1])
    with pytest.raises(RuntimeError, match="linalg.vecdot: Expected a floating point or complex tensor as input. Got Long"):
        _ops.linalg_vecdot(trt.arange(3), trt.arange(3))
    with pytest.raises(RuntimeError, match="linalg.vecdot: Expected x and y to have the same dtype, but found x of type ComplexDouble and y of type Double"):
        _ops.linalg_vecdot(u, v.real)


def test_cross():
    rng = np.random.default_rng(12)
    u, v = array(rng, (5, 3), "float64"), array(rng, (5, 3), "float64")
    close(trt.cross(tensor(u), tensor(v)), np.cross(u, v))
    close(_ops.linalg_cross(tensor(u.T.copy()), tensor(v.T.copy()), dim=0), np.cross(u, v).T)


def test_complex_derivatives():
    a, b, v = draw(3, 4, complex_=True), draw(4, 2, complex_=True), draw(4, complex_=True)
    for f, inputs in ((trt.mm, (a, b)), (trt.mv, (a, v)), (trt.dot, (v, v.detach().clone().requires_grad_())), (trt.vdot, (v, v.detach().clone().requires_grad_())),
                      (lambda x, w: _ops.linear(x, w), (a, draw(2, 4, complex_=True)))):  # fmt: skip
        assert gradcheck(f, inputs)
        assert gradgradcheck(f, inputs)


def test_gradients_of_tiny_float32_layers_agree_with_numpy():
    rng = np.random.default_rng(13)
    x, w, b, g = (array(rng, s, "float32") for s in ((4, 16), (32, 16), (32,), (4, 32)))
    tx, tw, tb = (tensor(z).requires_grad_() for z in (x, w, b))
    y = _ops.linear(tx, tw, tb)
    y.backward(tensor(g))
    close(y.detach(), x @ w.T + b, 16)
    close(tx.grad, g @ w, 32)
    close(tw.grad, g.T @ x, 4)
    close(tb.grad, g.sum(0), 4)


def test_out():
    a, b = draw(3, 4).detach(), draw(4, 5).detach()
    expected = back(a) @ back(b)
    strided = trt.full((5, 6), float("nan"), dtype=trt.float64).t()[:3]
    result = trt.empty(0, dtype=trt.float64)
    assert trt.mm(a, b, out=result) is result
    close(result, expected)
    trt.mm(a, b, out=strided[:, :5])
    close(strided[:, :5], expected)
    square = draw(4, 4).detach()
    value = back(square)
    trt.mm(square, square, out=square)                     # the output is an operand
    close(square, value @ value)
    with pytest.raises(RuntimeError, match="dtype"):
        trt.mm(a, b, out=trt.empty(3, 5))
    with pytest.raises(RuntimeError):
        trt.mm(a.requires_grad_(), b, out=trt.empty(3, 5, dtype=trt.float64))


@pytest.mark.parametrize(("f", "shapes", "text"), [
    (trt.mm, ((2, 3), (4, 5)), r"\(2x3 and 4x5\)"), (trt.mm, ((2,), (2, 3)), "matrix"), (trt.bmm, ((2, 3, 4), (2, 3, 4)), "batch2"), (trt.mv, ((2, 3), (4,)), "size mismatch"),
    (trt.dot, ((2,), (3,)), "same number of elements"), (trt.matmul, ((2, 3, 4), (3, 4, 5)), "must match"), (trt.matmul, ((), (2,)), "at least 1D"),
    (_ops.linear, ((2, 3), (4, 5)), r"\(2x3 and 5x4\)"), (trt.inner, ((2, 3), (2, 4)), "last dimension"),
])  # fmt: skip
def test_errors_name_the_shapes(f, shapes, text):
    with pytest.raises(RuntimeError, match=text):
        f(*[trt.ones(s) for s in shapes])


def test_dtypes_must_agree():
    for f in (trt.mm, _ops.linear, trt.matmul):
        with pytest.raises(RuntimeError, match="same dtype"):
            f(trt.ones(2, 2), trt.ones(2, 2, dtype=trt.float64))


def test_meta_tensors_give_shapes():
    a = trt.empty(2, 3, 4, device="meta")
    assert tuple((a @ trt.empty(4, 5, device="meta")).shape) == (2, 3, 5)
    assert tuple(_ops.linear(a, trt.empty(7, 4, device="meta"), trt.empty(7, device="meta")).shape) == (2, 3, 7)
    assert tuple(trt.bmm(a, trt.empty(2, 4, 6, device="meta")).shape) == (2, 3, 6)


# Around the borders of the tiles, of the few-row loops, of the panels' depth, of a deep product's pieces, and beyond into BLAS.
ROWS_AND_COLUMNS = (1, 2, 3, 4, 5, 8, 9, 13, 17, 33)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_every_way_through_a_product_agrees_with_the_definition(dtype, layout):
    rng = np.random.default_rng(3)
    bound = 2e-6 if dtype == "float32" else 4e-15
    shapes = [(m, n, k) for m in ROWS_AND_COLUMNS for n in ROWS_AND_COLUMNS for k in (1, 5, 40)]
    shapes += [(m, n, k) for m, n in ((3, 100), (5, 12), (33, 70)) for k in (255, 256, 257, 600)]
    shapes += [(64, 48, 8192), (7, 128, 12289), (129, 100, 300), (100, 300, 129)]
    # on both sides of where tiles over operands as they lie end with AVX-512
    shapes += [(17, 300, 200), (33, 1000, 64), (200, 13, 900), (121, 70, 300), (64, 256, 193), (18, 21, 2048), (18, 81, 2049), (150, 150, 150), (163, 160, 161)]
    for m, n, k in shapes:
        a, b, c = rng.standard_normal((m, k)), rng.standard_normal((k, n)), rng.standard_normal((m, n))
        ta = trt.tensor(a if layout[0] == "n" else a.T.copy(), dtype=getattr(trt, dtype))
        tb = trt.tensor(b if layout[1] == "n" else b.T.copy(), dtype=getattr(trt, dtype))
        ta, tb = ta if layout[0] == "n" else ta.t(), tb if layout[1] == "n" else tb.t()
        tc = trt.tensor(c, dtype=getattr(trt, dtype))
        a, b, c = (t.double().numpy() for t in (ta, tb, tc))
        scale = np.abs(a) @ np.abs(b) + np.abs(c)
        assert np.all(np.abs((ta @ tb).double().numpy() - a @ b) <= bound * scale), (m, n, k)
        got = trt.addmm(tc, ta, tb, beta=0.5, alpha=-2)
        assert np.all(np.abs(got.double().numpy() - (0.5 * c - 2 * (a @ b))) <= 3 * bound * scale), (m, n, k)
        wide = trt.full((m, 2 * n + 1), 7, dtype=getattr(trt, dtype))
        trt.mm(ta, tb, out=wide[:, :n])
        assert np.all(np.abs(wide[:, :n].double().numpy() - a @ b) <= bound * scale) and (wide[:, n:] == 7).all(), (m, n, k)


def test_einsum_multiplies_in_the_cheapest_order(monkeypatch):
    """(2000, 2) (2, 2000) (2000, 2): from left to right through 2000 x 2000 elements, from the right through 2 x 2."""
    operands = [trt.randn(*shape, dtype=trt.float64) for shape in ((2000, 2), (2, 2000), (2000, 2))]

    def peak() -> int:
        trt.cpu.reset_peak_memory_stats()
        before = trt.cpu.memory_allocated()
        assert trt.einsum("ij,jk,kl->il", *operands).shape == (2000, 2)
        return trt.cpu.max_memory_allocated() - before

    assert peak() < 1e6
    monkeypatch.setattr(trt.backends.opt_einsum, "enabled", False)
    assert peak() > 3e7


@pytest.mark.parametrize("operands", [3, 4, 6, 7, 9])
def test_einsum_of_many_operands(operands):
    rng = np.random.default_rng(operands)
    sizes = dict(zip("abcdefgh", (7, 2, 9, 5, 3, 8, 1, 6)))
    for _ in range(20):
        parts = ["".join(rng.choice(list(sizes), rng.integers(1, 4), replace=False)) for _ in range(operands)]
        letters = sorted(set("".join(parts)))
        equation = ",".join(parts) + "->" + "".join(rng.permutation(letters)[: rng.integers(0, min(4, len(letters)) + 1)])
        arrays = [rng.standard_normal([sizes[x] for x in part]) for part in parts]
        expected = np.einsum(equation, *arrays, optimize=True)
        got = trt.einsum(equation, *(trt.tensor(x) for x in arrays)).numpy()
        assert got.shape == expected.shape and np.allclose(got, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max(initial=1)), equation


@pytest.mark.parametrize("operands", [1, 2, 3])
def test_einsum_of_repeated_and_lonely_labels(operands):
    """Diagonals, labels of one operand that the output lacks, elementwise factors, outputs in any order; views where NumPy has them."""
    rng = np.random.default_rng(operands)
    sizes = dict(zip("abcd", (3, 2, 4, 1)))
    for _ in range(150):
        parts = ["".join(rng.choice(list(sizes), rng.integers(0, 5))) for _ in range(operands)]
        letters = sorted(set("".join(parts)))
        equation = ",".join(parts) + "->" + "".join(rng.permutation(letters)[: rng.integers(0, len(letters) + 1)])
        arrays = [rng.standard_normal([sizes[x] for x in part]) for part in parts]
        tensors = [trt.tensor(x) for x in arrays]
        expected, got = np.einsum(equation, *arrays), trt.einsum(equation, *tensors)
        assert got.shape == expected.shape and np.allclose(got.numpy(), expected, rtol=1e-12, atol=1e-12), equation
        assert got is not tensors[0], equation
        if operands == 1 and expected.base is not None:
            assert got.untyped_storage().data_ptr() == tensors[0].untyped_storage().data_ptr(), equation
    x = trt.zeros(3, 3)
    trt.einsum("ii->i", x).fill_(1)
    assert trt.equal(x, trt.eye(3))


def test_an_exponent_that_lies_about_its_sign_is_its_value():
    class Liar(int):
        def __lt__(self, other):
            return False

    x = trt.tensor([[2.0, 0.0], [0.0, 4.0]])
    assert trt.linalg.matrix_power(x, Liar(-2)).tolist() == [[0.25, 0], [0, 0.0625]]
    assert trt.linalg.matrix_power(x, Liar(3)).tolist() == [[8, 0], [0, 64]]


@pytest.mark.parametrize("dtype", [trt.float32, trt.float64], ids=str)
def test_many_rows_by_a_few_columns(dtype):
    """Into fresh memory, beside other columns, with an addend; a NaN stays in its row."""
    tolerance = 2e-5 if dtype == trt.float32 else 1e-12
    for m in (32, 33, 47, 1001):
        for n in (1, 2, 3, 4, 5, 8, 9, 15, 16, 17):
            for k in (1, 2, 3, 17, 64, 256):
                a, b, d = trt.randn(m, k, dtype=dtype), trt.randn(k, n, dtype=dtype), trt.randn(m, n, dtype=dtype)
                want, what = (a[:, :, None].double() * b[None].double()).sum(1), (m, n, k)
                close = lambda got, to: trt.allclose(got.double(), to, rtol=tolerance, atol=tolerance * 4 * k**0.5)
                assert close(a @ b, want) and close(a @ b.t().contiguous().t(), want) and close(b.t() @ a.t(), want.t()), what
                assert close(trt.addmm(d, a, b, beta=0.5, alpha=2.0), 0.5 * d.double() + 2 * want), what
                assert close(trt.nn.functional.linear(a, b.t().contiguous(), d[0]), want + d[0].double()), what
                wide = trt.full((m, n + 3), 7.0, dtype=dtype)
                trt.mm(a, b, out=wide[:, 1 : n + 1])
                assert close(wide[:, 1 : n + 1], want) and bool((wide[:, 0] == 7).all()) and bool((wide[:, n + 1 :] == 7).all()), what
                a[5] = float("nan")
                for got in (a @ b, trt.addmm(d, a, b)):
                    assert got.isnan().any(1).tolist() == [i == 5 for i in range(m)], what


@pytest.mark.parametrize("dtype", [trt.float32, trt.float64], ids=str)
def test_few_rows_and_columns_of_a_deep_product(dtype):
    """Gram matrices and weight gradients: every layout of operands and result, an addend, batches, the ends of sums at 4096."""
    tolerance = 2e-5 if dtype == trt.float32 else 1e-12
    for k in (64, 65, 127, 4095, 4097, 9001):
        for m, n in ((1, 3), (2, 2), (3, 3), (5, 3), (3, 7), (7, 16), (16, 16), (13, 9), (8, 17)):
            a, b, d = trt.randn(k, m, dtype=dtype), trt.randn(k, n, dtype=dtype), trt.randn(m, n, dtype=dtype)
            want, what = trt.einsum("km,kn->mn", a.double(), b.double()), (m, n, k)
            close = lambda got, to: trt.allclose(got.double(), to, rtol=tolerance, atol=tolerance * 2 * k**0.5)
            columns = a.t().contiguous()
            assert close(a.t() @ b, want) and close(columns @ b, want) and close(a.t() @ b.t().contiguous().t(), want) and close(b.t() @ a, want.t()), what
            assert close(trt.addmm(d, a.t(), b, beta=0.5, alpha=2.0), 0.5 * d.double() + 2 * want), what
            parts = trt.randn(k, m + n + 3, dtype=dtype)
            left, right = parts[:, 1 : m + 1], parts[:, m + 2 : m + n + 2]
            assert close(left.t() @ right, trt.einsum("km,kn->mn", left.double(), right.double())), what
            wide, turned = trt.full((m, n + 3), 7.0, dtype=dtype), trt.empty(n, m, dtype=dtype).t()
            trt.mm(a.t(), b, out=wide[:, 1 : n + 1])
            trt.mm(a.t(), b, out=turned)
            assert close(wide[:, 1 : n + 1], want) and bool((wide[:, 0] == 7).all()) and bool((wide[:, n + 1 :] == 7).all()) and close(turned, want), what
            a[k - 1, 0] = float("nan")
            assert (a.t() @ b).isnan().any(1).tolist() == [i == 0 for i in range(m)], what
    a, b = trt.randn(3, 5000, 4, dtype=dtype), trt.randn(3, 5000, 3, dtype=dtype)
    assert trt.allclose((a.mT @ b).double(), trt.einsum("bkm,bkn->bmn", a.double(), b.double()), rtol=tolerance, atol=tolerance * 100)


@pytest.mark.parametrize("dtype", [trt.float32, trt.float64], ids=str)
def test_few_rows_by_many_short_columns(dtype):
    """As rows of B and as its columns, in one piece or beside others, by one row to thirteen; a NaN stays in its column."""
    tolerance = 1e-5 if dtype == trt.float32 else 1e-12
    for n in (130, 4099):
        for k in (1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 31, 32, 33):
            for m in (1, 2, 3, 4, 7, 12, 13):
                a, b, d = trt.randn(m, k, dtype=dtype), trt.randn(n, k + 2, dtype=dtype), trt.randn(m, n, dtype=dtype)
                columns, what = b[:, 1 : k + 1], (m, k, n)
                want = a.double() @ columns.double().t()
                close = lambda got, to: trt.allclose(got.double(), to, rtol=tolerance, atol=tolerance * 4 * k**0.5)
                assert close(a @ columns.t(), want) and close(a @ columns.contiguous().t(), want) and close(a @ columns.t().contiguous(), want), what
                assert close(columns @ a.t(), want.t()) and close(trt.addmm(d, a, columns.t(), beta=0.5, alpha=2.0), 0.5 * d.double() + 2 * want), what
                assert close(columns @ a[0], want[0]), what
                columns[5] = float("nan")
                assert (a @ columns.t()).isnan().any(0).nonzero().flatten().tolist() == [5], what


def test_a_bias_of_a_few_columns_may_lie_in_the_output():
    out = trt.randn(1000, 4)
    x, w, bias = trt.randn(1000, 3), trt.randn(3, 4), out[0]
    want = bias + x @ w
    trt.addmm(bias, x, w, out=out)
    assert trt.equal(out, want)


def test_few_columns_do_not_depend_on_threads():
    a, b, d = trt.randn(50_001, 7), trt.randn(7, 3), trt.randn(3)
    results = []
    for threads in (1, 2):
        trt.set_num_threads(threads)
        results.append((a @ b, trt.addmm(d, a, b), b.t() @ a.t(), a.t() @ a, trt.addmm(d, a[:, :3].t(), a[:, 4:], beta=0.3), b.t() @ a.t().contiguous()))
    trt.set_num_threads(1)
    assert all(trt.equal(x, y) for x, y in zip(*results))


@pytest.mark.parametrize("dtype", [trt.float32, trt.float64], ids=str)
def test_batches_of_tiny_products(dtype):
    """Items of at most 64 multiplications, in every layout, with an addend."""
    tolerance = 1e-5 if dtype == trt.float32 else 1e-13
    for m, k, n in ((1, 3, 1), (3, 3, 3), (4, 4, 4), (2, 2, 2), (3, 5, 1), (1, 1, 7), (2, 16, 2)):
        a, b, d = trt.randn(60, m, k, dtype=dtype), trt.randn(60, k, n, dtype=dtype), trt.randn(60, m, n, dtype=dtype)
        want = (a[:, :, :, None].double() * b[:, None].double()).sum(2)
        turned = trt.empty(60, n, m, dtype=dtype).transpose(1, 2)
        trt.bmm(a, b, out=turned)
        for got in (a @ b, a.transpose(1, 2).contiguous().transpose(1, 2) @ b, a @ b.transpose(1, 2).contiguous().transpose(1, 2), turned):
            assert trt.allclose(got.double(), want, rtol=tolerance, atol=4 * tolerance), (m, k, n)
        assert trt.allclose(trt.baddbmm(d, a, b, beta=0.5, alpha=2.0).double(), 0.5 * d.double() + 2 * want, rtol=tolerance, atol=8 * tolerance), (m, k, n)
        assert trt.allclose((a[:1].expand(60, m, k) @ b).double(), (a[0, :, :, None].double() * b[:, None].double()).sum(2), rtol=tolerance, atol=4 * tolerance)


def test_einsum_of_two_operands_has_one_result_with_and_without_a_plan():
    """Random equations, also wrong ones: the ways of `_pair_plan` and of `_contract` are the same."""
    import random

    from tensorrt_lite._compositions import matmul as compositions

    draw, size, planned = random.Random(0), {"i": 2, "j": 3, "k": 4, "l": 1, "m": 5, "A": 2, "B": 3}, 0

    def outcome(*args):
        try:
            return trt.einsum(*args)
        except RuntimeError as error:
            return str(error)

    for _ in range(600):
        operands, terms = [], []
        for _ in range(2):
            labels = draw.sample(sorted(size), draw.randint(0, 4))
            shape, dots = [size[x] for x in labels], draw.choice((None, None, 0, 1, 2))
            if dots is not None:
                place = draw.randint(0, len(labels))
                labels.insert(place, "...")
                shape[place:place] = (3, 2)[2 - dots :]
            if shape and draw.random() < 0.1:
                shape[0] = draw.choice((1, 7))
            operands.append(trt.randn(shape))
            terms.append("".join(labels))
        letters = sorted({x for term in terms for x in term.replace("...", "")})
        output = draw.sample(letters, draw.randint(0, len(letters)))
        if any("..." in term for term in terms):
            output.insert(draw.randint(0, len(output)), "...")
        equation = ",".join(terms) + draw.choice(("->" + "".join(output),) * 4 + ("",))
        got = outcome(equation, *operands)
        planned += compositions._pair_plan(equation, *(tuple(t.shape) for t in operands)) is not None
        want = outcome(equation, operands)  # a list takes the general way
        assert isinstance(got, str) and got == want or got.shape == want.shape and trt.allclose(got, want, atol=1e-5), equation
    assert planned > 100
