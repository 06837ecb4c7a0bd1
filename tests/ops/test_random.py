# ruff: noqa: B023 - every lambda is called within its own iteration
"""Random operators beside PyTorch: the same seed gives the same numbers, and leaves the generator in the same state."""

import itertools
import threading

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite import _ops

torch = pytest.importorskip("torch")

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTS = ["uint8", "int8", "int16", "int32", "int64"]
SHAPES = [(), (1,), (7,), (15,), (16,), (17,), (100,), (3, 5), (2, 3, 40), (0,), (4, 0)]


def ordinals(t):
    """Floats as integers in which neighbours differ by one, so that a difference counts units in the last place."""
    a = t.detach().cpu()
    kind = {2: torch.int16, 4: torch.int32, 8: torch.int64}[a.element_size()]
    bits = a.contiguous().view(kind).to(torch.int64)
    return torch.where(bits < 0, torch.iinfo(kind).min - bits, bits)


def to_torch(t):
    kind = getattr(torch, str(t.dtype).rpartition(".")[2])
    return torch.tensor(t.detach().tolist(), dtype=torch.complex128 if kind.is_complex else torch.float64 if kind.is_floating_point else None).to(kind).reshape(tuple(t.shape))


def assert_same(ours, theirs, ulp=2):
    ours = to_torch(ours)
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    if theirs.dtype.is_complex:
        ours, theirs = torch.view_as_real(ours), torch.view_as_real(theirs)
    if not theirs.is_floating_point():
        assert torch.equal(ours, theirs)
    elif theirs.numel():
        assert int((ordinals(ours) - ordinals(theirs)).abs().max()) <= ulp


def same_stream():
    assert bytes(trt.get_rng_state().tolist()) == bytes(torch.get_rng_state().tolist())


def both(call, seed=5, ulp=2, advance=0):
    """Run `call(module)` on both sides from the same seed; results and generator states must agree."""
    results = []
    for module in (trt, torch):
        module.manual_seed(seed)
        for _ in range(advance):
            module.randn(1)
        results.append(call(module))
    assert_same(*results, ulp=ulp)
    same_stream()
    return results


FILLS = {
    "uniform_": [(), (-2.0, 3.5)],
    "normal_": [(), (1.5, 0.25), (0.0, 0.0)],
    "exponential_": [(), (2.5,)],
    "cauchy_": [(), (1.0, 2.0)],
    "log_normal_": [(), (0.25, 0.5)],
    "geometric_": [(0.3,)],
    "bernoulli_": [(), (0.25,), (0,), (1,)],
    "random_": [(), (100,), (3, 9)],
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FILLS)
def test_fills_of_floats(name, dtype):
    for args, shape in itertools.product(FILLS[name], SHAPES):
        both(lambda m: getattr(m.zeros(shape, dtype=getattr(m, dtype)), name)(*args))


@pytest.mark.parametrize("dtype", [*INTS, "bool"])
def test_fills_of_integers(dtype):
    for name, args in [("random_", ()), ("bernoulli_", (0.3,)), ("random_", (0, 2)), ("random_", (1,)), ("random_", (1, None))]:
        both(lambda m: getattr(m.zeros(37, dtype=getattr(m, dtype)), name)(*args))
    if dtype != "bool":
        both(lambda m: m.zeros(37, dtype=getattr(m, dtype)).random_(-0, 100))
        both(lambda m: m.zeros(37, dtype=getattr(m, dtype)).geometric_(0.4))
    if dtype not in ("bool", "uint8"):
        both(lambda m: m.zeros(37, dtype=getattr(m, dtype)).random_(-100, 27))
        both(lambda m: m.zeros(37, dtype=getattr(m, dtype)).random_(-100, None))


def test_wide_integer_ranges():
    for low, high in [(0, 2**28 - 1), (0, 2**28), (-(2**40), 2**50), (-(2**63), 2**63 - 1), (5, 2**62)]:
        both(lambda m: m.randint(low, high, (33,)))
    both(lambda m: m.zeros(9, dtype=m.int64).random_(-(2**63), None))
    both(lambda m: m.zeros(9, dtype=m.float64).random_(-(2**63), None))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex(dtype):
    for shape in [(3,), (40,), (4, 9)]:
        both(lambda m: m.randn(*shape, dtype=getattr(m, dtype)))
        both(lambda m: m.rand(*shape, dtype=getattr(m, dtype)))
    both(lambda m: m.zeros(20, dtype=getattr(m, dtype)).normal_(1.5, 2.0))


LAYOUTS = {
    "transposed": lambda m, d: m.zeros(6, 7, dtype=d).t(),
    "permuted": lambda m, d: m.zeros(3, 4, 5, dtype=d).permute(2, 0, 1),
    "sliced": lambda m, d: m.zeros(6, 8, dtype=d)[:, ::2],
    "sliced transposed": lambda m, d: m.zeros(6, 8, dtype=d)[1:5, ::3].t(),
    "channels last": lambda m, d: m.empty(2, 3, 4, 5, dtype=d, memory_format=m.channels_last).zero_(),
    "size one": lambda m, d: m.zeros(4, 1, 5, dtype=d).permute(1, 2, 0),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["uniform_", "normal_", "bernoulli_", "random_", "exponential_"])
def test_fills_follow_memory(name, layout):
    for dtype in ("float32", "float64", "bfloat16"):
        both(lambda m: getattr(LAYOUTS[layout](m, getattr(m, dtype)), name)())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_like_and_dropout_follow_memory(layout):
    both(lambda m: m.rand_like(LAYOUTS[layout](m, m.float32)))
    both(lambda m: m.randn_like(LAYOUTS[layout](m, m.float32)))
    both(lambda m: m.randint_like(LAYOUTS[layout](m, m.float32), 3, 50))
    both(lambda m: m.dropout(LAYOUTS[layout](m, m.float32).uniform_(), 0.4, True))
    both(lambda m: m.native_dropout(LAYOUTS[layout](m, m.float32).uniform_(), 0.4, True)[0])
    both(lambda m: m.bernoulli(LAYOUTS[layout](m, m.float32).uniform_()))
    both(lambda m: LAYOUTS[layout](m, m.float32).bernoulli_(m.rand(LAYOUTS[layout](m, m.float32).shape)))


def test_factories():
    for shape in SHAPES[1:]:
        both(lambda m: m.rand(*shape))
        both(lambda m: m.randn(shape))
        both(lambda m: m.randint(10, shape))
        both(lambda m: m.randint(-5, 10, shape))
    both(lambda m: m.randint(high=5, size=(4,)))
    both(lambda m: m.randint(2, 5, size=(4,), dtype=m.float32))
    both(lambda m: m.rand(size=(3,), dtype=m.float64))
    both(lambda m: m.rand(3, out=m.zeros(2)))
    both(lambda m: m.randn(20, out=m.zeros(5, dtype=m.float64)))
    both(lambda m: m.randint(9, (6,), out=m.zeros(0, dtype=m.int32)))
    assert trt.rand(3, requires_grad=True).requires_grad
    assert trt.rand(2, 3, device="meta").is_meta


def test_meta_and_empty_tensors_draw_nothing():
    state = trt.get_rng_state().tolist()
    trt.rand(5, device="meta").normal_()
    trt.empty(0).uniform_()
    trt.dropout(trt.empty(3, device="meta"), 0.5, True)
    trt.dropout(trt.ones(3), 0.0, True)
    trt.dropout(trt.ones(3), 1.0, True)
    trt.dropout(trt.ones(3), 0.5, False)
    trt.dropout(trt.empty(0), 0.5, True)
    assert trt.get_rng_state().tolist() == state


def test_a_kept_normal_survives_between_calls():
    both(lambda m: m.randn(3), advance=1)
    both(lambda m: m.randn(20), advance=1)
    both(lambda m: m.zeros(5).log_normal_(), advance=1)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "float32", "float64", "float16"])
def test_randperm(dtype):
    for n in (0, 1, 2, 10, 1000):
        both(lambda m: m.randperm(n, dtype=getattr(m, dtype)))
    both(lambda m: m.randperm(10, out=m.zeros(20, dtype=getattr(m, dtype))[::2]))


def test_normal_overloads():
    for mean, std in [((4, 5), (4, 5)), ((4, 5), (5,)), ((3,), (20, 1)), ((20,), ()), ((3,), (3,))]:
        both(lambda m: m.normal(m.full(mean, 1.5), m.full(std, 0.5)))
    both(lambda m: m.normal(m.arange(20.0), 2.0))
    both(lambda m: m.normal(1.5, m.full((20,), 0.3)))
    both(lambda m: m.normal(1.5, 2.0, (20,)))
    both(lambda m: m.normal(1, 2, size=(3,), dtype=m.float64))
    both(lambda m: m.normal(m.zeros(20, dtype=m.float64), m.ones(20)))
    both(lambda m: m.normal(m.zeros(20), m.ones(20, dtype=m.float64)))
    both(lambda m: m.normal(mean=m.zeros(2)))
    both(lambda m: m.normal(m.ones(5), 0.5, out=m.zeros(5)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_bernoulli(dtype):
    p = [0.0, 0.25, 0.5, 0.75, 1.0] * 8
    both(lambda m: m.bernoulli(m.tensor(p, dtype=getattr(m, dtype))))
    both(lambda m: m.zeros(3, 40, dtype=m.int64).bernoulli_(m.tensor(p, dtype=getattr(m, dtype))))
    both(lambda m: m.zeros(40, dtype=getattr(m, dtype)).bernoulli_(m.tensor(0.3)))
    both(lambda m: m.bernoulli(m.zeros(40, dtype=getattr(m, dtype)), 0.3))
    both(lambda m: m.zeros(40, dtype=m.int32).bernoulli(0.3))
    both(lambda m: m.bernoulli(m.tensor(p, dtype=getattr(m, dtype)), out=m.zeros(0, dtype=m.int64)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_multinomial(dtype):
    weights = [[0.5, 2.0, 0.0, 1.0, 3.0, 0.25], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [0.0, 5.0, 0.0, 1.0, 9.0, 2.0]]
    for samples, again in [(1, False), (1, True), (4, False), (7, True), (100, True)]:
        both(lambda m: m.multinomial(m.tensor(weights, dtype=getattr(m, dtype)), samples, again))
        both(lambda m: m.multinomial(m.tensor(weights[0], dtype=getattr(m, dtype)), samples, again))
    if dtype in ("float32", "float64"):
        # half types tie: which of two equal ratios comes first is not defined
        both(lambda m: m.multinomial(m.rand(50, 4, dtype=getattr(m, dtype)).add(0.125).t(), 40))


def test_multinomial_of_many_categories():
    both(lambda m: m.multinomial(m.rand(3, 5000), 1000))


def test_binomial():
    """PyTorch's numbers: both algorithms, both halves of probabilities, edges, broadcast."""
    counts = [0.0, 1.0, 5.0, 19.0, 21.0, 100.0, 4000.0, 2.5]
    chances = [0.0, 0.01, 0.3, 0.5, 0.51, 0.97, 1.0, float("nan")]
    for dtype in ("float32", "float64"):
        both(lambda m: m.binomial(m.tensor([[c] * 8 for c in counts] * 8, dtype=getattr(m, dtype)), m.tensor([chances] * 64, dtype=getattr(m, dtype))))
        both(lambda m: m.binomial(m.tensor(counts, dtype=getattr(m, dtype)).unsqueeze(1), m.tensor(chances, dtype=getattr(m, dtype))))
    assert trt.binomial(trt.tensor([float("nan"), float("inf")]), trt.tensor(0.5)).isnan().all()
    assert trt.binomial(trt.zeros(3, device="meta"), trt.zeros(2, 1, device="meta")).shape == (2, 3)
    for call, kind, message in (
        (lambda: trt.binomial(trt.ones(2).long(), trt.ones(2)), ValueError, "only supports floating-point dtypes for count, got: Long"),
        (lambda: trt.binomial(trt.ones(2).double(), trt.ones(2)), RuntimeError, "Found dtype Float but expected Double"),
        (lambda: trt.binomial(trt.ones(2).half(), trt.ones(2).half()), NotImplementedError, "not implemented for 'Half'"),
        (lambda: trt.binomial(trt.ones(2), trt.ones(2, requires_grad=True)).sum().backward(), RuntimeError, "derivative for aten::binomial is not implemented"),
    ):  # fmt: skip
        with pytest.raises(kind, match=message):
            call()


def test_poisson():
    for dtype in ("float32", "float64"):
        both(lambda m: m.poisson(m.tensor([0.0, 0.1, 1.0, 5.0, 9.9, 10.0, 30.0, 1000.0] * 20, dtype=getattr(m, dtype))))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gamma_and_dirichlet(dtype):
    """PyTorch's numbers, shapes below and above 1; numbers that are no shape never end in a loop."""
    shapes = [[1e-3, 0.02, 0.3, 0.99, 1.0, 1.5, 7.0, 1e3, 1e9, 0.0]] * 40
    both(lambda m: m._standard_gamma(m.tensor(shapes, dtype=getattr(m, dtype))), ulp=0)
    both(lambda m: m._standard_gamma(m.tensor(shapes, dtype=getattr(m, dtype)).t()), ulp=0)
    both(lambda m: m._sample_dirichlet(m.tensor(shapes, dtype=getattr(m, dtype))[:, 1:8]), ulp=0 if dtype == "float32" else 8)  # sums round in another order
    both(lambda m: m._sample_dirichlet(m.full((3, 2), 1e-3, dtype=getattr(m, dtype))), ulp=0)
    none = trt._standard_gamma(trt.tensor([-1.0, float("nan"), float("inf")], dtype=getattr(trt, dtype)))
    assert none[:2].isnan().all() and none[2] == float("inf")
    assert trt._sample_dirichlet(trt.ones(0, 3)).shape == (0, 3) and trt._sample_dirichlet(trt.ones(2, 3, device="meta")).shape == (2, 3)
    for name in ("_standard_gamma", "_sample_dirichlet"):
        with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
            getattr(trt, name)(trt.ones(2, dtype=trt.float16))


def test_gradients_of_gamma_and_dirichlet():
    """PyTorch's, which are approximations: within 3e-3 of each. Of each coordinate of a Dirichlet distribution, PyTorch's formula."""
    def gamma(m):
        shape = m.tensor([[0.05, 0.3, 1.0, 2.5, 7.0, 40.0, 2000.0]] * 30, dtype=m.float64, requires_grad=True)
        return m.autograd.grad(m._standard_gamma(shape).sum(), shape)[0]

    def dirichlet(m):
        shape = m.tensor([[0.3, 1.0, 2.5, 7.0]] * 30, dtype=m.float64, requires_grad=True)
        weight = m.tensor([3.0, -1.0, 0.5, 2.0], dtype=m.float64)
        if m is trt:
            return trt.autograd.grad((trt._sample_dirichlet(shape) * weight).sum(), shape)[0]
        return torch.autograd.grad((torch.distributions.Dirichlet(shape).rsample() * weight).sum(), shape)[0]

    for call in (gamma, dirichlet):
        ours, theirs = [], []
        for m, found in ((trt, ours), (torch, theirs)):
            m.manual_seed(3)
            found += call(m).flatten().tolist()
        np.testing.assert_allclose(ours, theirs, rtol=3e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.77, 1.0])
def test_dropout(dtype, p):
    def inputs(m):
        return m.randn(3, 4, 50, dtype=m.float64).to(getattr(m, dtype))

    both(lambda m: m.dropout(inputs(m), p, True), ulp=2)
    both(lambda m: m.dropout_(inputs(m), p, True))
    both(lambda m: m.native_dropout(inputs(m), p, True)[0])
    both(lambda m: m.native_dropout(inputs(m), p, True)[1])
    both(lambda m: m.feature_dropout(inputs(m), p, True))
    x = [float("inf"), float("-inf"), float("nan"), -0.0] * 5
    ours, theirs = [], []
    for m, kept in ((trt, ours), (torch, theirs)):
        m.manual_seed(1)
        kept.append(m.dropout(m.tensor(x, dtype=getattr(m, dtype)), p, True).tolist())
    assert np.array_equal(np.array(ours), np.array(theirs), equal_nan=True)


def test_alpha_dropout():
    both(lambda m: m.alpha_dropout(m.randn(60), 0.3, True), ulp=8)
    both(lambda m: m.feature_alpha_dropout(m.randn(3, 4, 5), 0.3, True), ulp=8)
    both(lambda m: m.alpha_dropout_(m.randn(60, dtype=m.float64), 0.3, True), ulp=8)


def test_dropout_gradient():
    for shape in [(50,), (3, 4, 5)]:
        got = []
        for m in (trt, torch):
            m.manual_seed(3)
            x = m.randn(*shape, requires_grad=True)
            y = m.dropout(x * 1, 0.4, True)
            (g,) = m.autograd.grad(y, x, m.ones_like(y) * 3, create_graph=True)
            got.append((y, g))
        assert_same(got[0][0], got[1][0].detach())
        assert_same(got[0][1], got[1][1].detach())
    x = trt.ones(10, requires_grad=True)
    y = trt.dropout_(x * 1, 0.5, True)
    y.backward(trt.ones(10))
    assert x.grad.tolist() == y.tolist()


def test_writing_random_numbers_ends_the_history():
    for name, args in [("uniform_", ()), ("normal_", ()), ("bernoulli_", (0.5,)), ("exponential_", ()), ("random_", ()), ("cauchy_", ()), ("log_normal_", ()), ("geometric_", (0.5,))]:
        x = trt.ones(4, requires_grad=True)
        y = x * 2
        getattr(y, name)(*args)
        y.backward(trt.ones(4))
        assert x.grad.tolist() == [0.0] * 4, name
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            getattr(x, name)(*args)
        before = y.detach()._version
        with trt.no_grad():
            getattr(y, name)(*args)
        assert y._version == before + 1
    p = trt.full((4,), 0.5, requires_grad=True)
    trt.bernoulli(p).backward(trt.ones(4))
    assert p.grad.tolist() == [0.0] * 4
    mean = trt.full((4,), 0.5, requires_grad=True)
    trt.normal(mean, 1.0).backward(trt.ones(4))
    assert mean.grad.tolist() == [0.0] * 4


def test_rrelu():
    def call(m, training, dtype):
        f = _ops.rrelu if m is trt else torch.rrelu
        return f(m.randn(100, dtype=getattr(m, dtype)), 0.1, 0.4, training)

    for training, dtype in itertools.product((True, False), ("float32", "float64")):
        both(lambda m: call(m, training, dtype))
    x = trt.randn(50, requires_grad=True)
    y = _ops.rrelu(x, 0.1, 0.4, True)
    y.backward(trt.ones(50))
    kept = np.array(y.tolist()) / np.array(x.tolist())
    assert np.allclose(np.array(x.grad.tolist()), kept, rtol=1e-6)


def test_generators():
    g, h = trt.Generator(), torch.Generator()
    g.manual_seed(11)
    h.manual_seed(11)
    for call in (
        lambda m, k: m.rand(5, generator=k), lambda m, k: m.randn(20, generator=k), lambda m, k: m.randint(9, (5,), generator=k),
        lambda m, k: m.randperm(9, generator=k), lambda m, k: m.bernoulli(m.full((9,), 0.5), generator=k),
        lambda m, k: m.multinomial(m.full((9,), 0.5), 3, generator=k), lambda m, k: m.normal(m.zeros(5), 1.0, generator=k),
        lambda m, k: m.zeros(4).uniform_(generator=k), lambda m, k: m.zeros(4).exponential_(generator=k), lambda m, k: m.poisson(m.full((5,), 3.0), generator=k),
    ):  # fmt: skip
        assert_same(call(trt, g), call(torch, h))
    assert g.get_state().tolist() == h.get_state().tolist()
    assert g.get_state().dtype == trt.uint8 and g.device == trt.device("cpu") and g.initial_seed() == 11
    twin = g.clone_state()
    assert trt.rand(4, generator=twin).tolist() == trt.rand(4, generator=g).tolist()
    g.set_state(trt.tensor(h.get_state().tolist(), dtype=trt.uint8))
    assert_same(trt.randn(3, generator=g), torch.randn(3, generator=h))
    with pytest.raises(TypeError, match="generator"):
        trt.rand(3, generator=5)
    with pytest.raises(RuntimeError):
        g.set_state(trt.zeros(5, dtype=trt.uint8))
    with pytest.raises(TypeError):
        g.set_state(trt.zeros(5056))
    with pytest.raises(TypeError):
        g.set_state([1, 2])
    with pytest.raises(RuntimeError):
        trt.Generator("cuda")


def test_seeds():
    for seed in (0, 1, -3, 2**63, 2**64 - 1):
        trt.manual_seed(seed)
        torch.manual_seed(seed)
        assert trt.initial_seed() == torch.initial_seed()
        same_stream()
    assert trt.seed() != trt.seed()
    trt.manual_seed(1)
    first = trt.rand(3).tolist()
    with trt.random.fork_rng():
        trt.rand(100)
    second = trt.rand(3).tolist()
    trt.manual_seed(1)
    assert trt.rand(6).tolist() == first + second
    assert trt.manual_seed(4) is trt.default_generator


def test_threads_with_their_own_generators():
    expected = trt.rand(1000, generator=trt.Generator().manual_seed(2)).tolist()
    got = [None] * 4

    def draw(k):
        g = trt.Generator().manual_seed(2)
        got[k] = [v for _ in range(100) for v in trt.rand(10, generator=g).tolist()]

    threads = [threading.Thread(target=draw, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(g == expected for g in got)


ERRORS = [
    lambda m: m.zeros(3, dtype=m.int64).uniform_(), lambda m: m.zeros(3, dtype=m.int64).normal_(), lambda m: m.zeros(3, dtype=m.int64).exponential_(),
    lambda m: m.zeros(3, dtype=m.bool).geometric_(0.5), lambda m: m.zeros(3, dtype=m.complex64).random_(), lambda m: m.zeros(3, dtype=m.complex64).random_(0, 5),
    lambda m: m.zeros(3, dtype=m.complex64).bernoulli_(0.5), lambda m: m.zeros(3).uniform_(2, 1), lambda m: m.zeros(3).uniform_(-3e38, 3e38),
    lambda m: m.zeros(3).uniform_(1e39, 1e40), lambda m: m.zeros(3).normal_(0, -1), lambda m: m.zeros(3).normal_(0, float("nan")),
    lambda m: m.zeros(3).exponential_(0), lambda m: m.zeros(3).cauchy_(0, 0), lambda m: m.zeros(3).log_normal_(0, 0), lambda m: m.zeros(3).geometric_(0),
    lambda m: m.zeros(3).geometric_(1), lambda m: m.zeros(3).bernoulli_(2), lambda m: m.zeros(3).bernoulli_(m.tensor([2.0, 0, 0])),
    lambda m: m.zeros(3).bernoulli_(m.tensor([1, 0, 0])), lambda m: m.zeros(3).bernoulli_(m.zeros(2)), lambda m: m.zeros(3).random_(5, 5),
    lambda m: m.zeros(3).random_(1.5), lambda m: m.zeros(3, dtype=m.uint8).random_(300), lambda m: m.zeros(3, dtype=m.uint8).random_(-1, 5),
    lambda m: m.zeros(3, dtype=m.bool).random_(5), lambda m: m.zeros(3, dtype=m.float16).random_(0, 70000), lambda m: m.rand(2, dtype=m.int64),
    lambda m: m.zeros(3, dtype=m.uint8).random_(-(2**63), None), lambda m: m.rand(-1), lambda m: m.rand(), lambda m: m.randint(5, 2, (3,)),
    lambda m: m.randint(5, 3), lambda m: m.randint(300, (2,), dtype=m.uint8), lambda m: m.randint(1.5, (2,)), lambda m: m.randn(3, dtype=m.int32),
    lambda m: m.randperm(-1), lambda m: m.randperm(300, dtype=m.uint8), lambda m: m.randperm(5000, dtype=m.float16), lambda m: m.randperm(3, dtype=m.bool),
    lambda m: m.randperm(2.5), lambda m: m.normal(m.zeros(3), -1.0), lambda m: m.normal(m.zeros(3), m.tensor([1.0, -1, 1])),
    lambda m: m.normal(m.zeros(3), m.ones(2)), lambda m: m.normal(m.zeros(3, dtype=m.int64), m.ones(3)), lambda m: m.normal(2.0, 3.0),
    lambda m: m.bernoulli(m.tensor([0.5, 2])), lambda m: m.bernoulli(m.tensor([1, 0])), lambda m: m.multinomial(m.zeros(3), 1),
    lambda m: m.multinomial(m.tensor([1.0, -1, 0]), 1), lambda m: m.multinomial(m.tensor([1.0, -1, 0]), 2, True), lambda m: m.multinomial(m.ones(3), 4),
    lambda m: m.multinomial(m.tensor([1.0, float("inf")]), 2, True), lambda m: m.multinomial(m.zeros(3), 2, True),
    lambda m: m.multinomial(m.ones(3), 0), lambda m: m.multinomial(m.ones(2, 2, 2), 1), lambda m: m.multinomial(m.ones(3, dtype=m.int64), 1),
    lambda m: m.multinomial(m.ones(0), 1), lambda m: m.poisson(m.tensor([-1.0])), lambda m: m.dropout(m.ones(3), 1.5, True),
    lambda m: m.dropout(m.ones(3, dtype=m.complex64), 0.5, True), lambda m: m.feature_dropout(m.ones(3), 0.5, True),
    lambda m: m.zeros(1).expand(3).normal_(), lambda m: m.zeros(1).expand(3).bernoulli_(0.5), lambda m: m.zeros(1).expand(3).random_(),
    lambda m: m.rand(3, out=m.zeros(0, dtype=m.float64), dtype=m.float32), lambda m: m.multinomial(m.ones(3), 1, out=m.zeros(0, dtype=m.int32)),
    lambda m: m.rand(3, generator=5), lambda m: m.dropout(m.ones(3, dtype=m.int64), 0.5, True),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_are_pytorchs(number):
    with pytest.raises(Exception) as theirs:
        ERRORS[number](torch)
    with pytest.raises(type(theirs.value)) as ours:
        ERRORS[number](trt)
    if theirs.type is not TypeError:
        first = str(theirs.value).split("\n")[0].split("  (Could")[0]
        assert str(ours.value).startswith(first)
