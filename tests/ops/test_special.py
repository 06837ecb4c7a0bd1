"""torch.special, igamma, frexp and signal.windows beside PyTorch: what the rows' own tests (test_declared.py) do not see."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch")


def test_the_module_has_pytorchs_names() -> None:
    assert set(trt.special.__all__) == set(torch.special.__all__)
    assert set(trt.signal.windows.__all__) == set(torch.signal.windows.__all__)


@pytest.mark.parametrize("name", ["igamma", "igammac", "special.zeta"])
def test_derivatives_that_pytorch_has_not(name: str) -> None:
    """The result requires a gradient; asking for that of the first argument raises, that of the second is there to any order."""
    function = getattr(trt.special, name.removeprefix("special.")) if "." in name else getattr(trt, name)
    a, x = trt.tensor([1.5, 2.5, 4.0], dtype=trt.float64, requires_grad=True), trt.tensor([2.0, 0.7, 5.0], dtype=trt.float64, requires_grad=True)
    result = function(a, x)
    assert result.requires_grad
    with pytest.raises(NotImplementedError, match="the derivative for '"):
        result.sum().backward()
    fixed = a.detach()
    assert gradcheck(lambda x: function(fixed, x), (x,))
    assert gradgradcheck(lambda x: function(fixed, x), (x,)) or name == "special.zeta"


def test_functions_without_derivatives_write_to_any_out() -> None:
    out = trt.empty(2, requires_grad=True)
    assert not trt.special.bessel_j0(trt.tensor([1.0, 2.0], requires_grad=True)).requires_grad
    assert trt.special.airy_ai(trt.tensor([1.0, 2.0]), out=out) is out
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        trt.special.i1(trt.tensor([1.0, 2.0]), out=out)


def test_types() -> None:
    """Integers become the default type; half types where PyTorch has them, its error elsewhere."""
    for name in sorted({*trt.special.__all__} - {"round"}):  # PyTorch has no decimals of integers
        ours, theirs = getattr(trt.special, name), getattr(torch.special, name)
        for kind in ("int64", "bool", "float16", "bfloat16", "complex64"):
            for extra in ((), (2,)):
                try:
                    expected = theirs(torch.ones(2, dtype=getattr(torch, kind)), *extra).dtype
                except (TypeError, IndexError):
                    continue
                except (RuntimeError, NotImplementedError) as error:
                    if "not implemented" in str(error):
                        with pytest.raises((RuntimeError, NotImplementedError)):
                            ours(trt.ones(2, dtype=getattr(trt, kind)), *extra)
                    continue
                assert str(ours(trt.ones(2, dtype=getattr(trt, kind)), *extra).dtype) == str(expected), (name, kind)


def test_frexp_of_every_half() -> None:
    for kind in ("float16", "bfloat16"):
        bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
        theirs = torch.frexp(bits.view(getattr(torch, kind)))
        ours = trt.frexp(trt.tensor(bits.numpy()).view(getattr(trt, kind)))
        assert ours.exponent.dtype == trt.int32
        finite = bits.view(getattr(torch, kind)).isfinite()
        assert torch.equal(torch.tensor(ours.exponent.numpy())[finite], theirs.exponent[finite])
        assert torch.equal(torch.tensor(ours.mantissa.view(trt.int16).numpy())[finite], theirs.mantissa.view(torch.int16)[finite])


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_ldexp_of_integers_is_rounded_once(kind: str) -> None:
    """From the least to the largest exponent, subnormal numbers and results among them; beside math.ldexp."""
    info = torch.finfo(getattr(torch, kind))
    span = math.frexp(info.max)[1] - math.frexp(info.tiny)[1] + 60
    generator = torch.Generator().manual_seed(5)
    exponents = torch.randint(-2 * span, 2 * span, (4000,), generator=generator)
    scales = torch.randint(-span // 2, math.frexp(info.max)[1] - 1, (4000,), generator=generator)
    given = torch.tensor([math.ldexp(m, int(e)) for m, e in zip((torch.rand(4000, generator=generator) + 0.5).tolist(), scales)], dtype=torch.float64).to(getattr(torch, kind))
    given[:6] = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), info.tiny * info.eps, -info.max])
    exact = []
    for x, e in zip(given.tolist(), exponents.tolist()):
        try:
            exact.append(math.ldexp(x, e))
        except OverflowError:
            exact.append(math.copysign(float("inf"), x))
    x, e = trt.tensor(given.double().numpy()).to(getattr(trt, kind)), trt.tensor(exponents.numpy())
    made = trt.ldexp(x, e)
    assert made.dtype is getattr(trt, kind)
    assert torch.equal(torch.tensor(made.double().numpy()), torch.tensor(exact, dtype=torch.float64).to(getattr(torch, kind)).double())
    assert trt.equal(x.clone().ldexp_(e), made) and trt.equal(trt.ldexp(x, e, out=trt.empty_like(x)), made)
    y = trt.tensor([1.5, -2.0], requires_grad=True)
    trt.ldexp(y, trt.tensor([3, -1])).sum().backward()
    assert y.grad.tolist() == [8.0, 0.5]


def test_nextafter_of_every_half() -> None:
    for kind in ("float16", "bfloat16"):
        bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
        theirs, ours = bits.view(getattr(torch, kind)), trt.tensor(bits.numpy()).view(getattr(trt, kind))
        number = ~theirs.isnan()
        for target in (float("inf"), float("-inf"), 0.0, 1.0):
            expected = torch.nextafter(theirs, torch.full_like(theirs, target)).view(torch.int16)
            got = torch.tensor(trt.nextafter(ours, trt.full_like(ours, target)).view(trt.int16).numpy())
            assert torch.equal(got[number], expected[number]), (kind, target)
    x = trt.tensor([1.5, 2.0], dtype=trt.float64, requires_grad=True)
    trt.nextafter(x, trt.tensor([2.0, 2.0], dtype=trt.float64)).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0]


def test_mvlgamma_in_place() -> None:
    x = trt.tensor([3.0, 4.5])
    assert x.mvlgamma_(2) is x and x.tolist() == pytest.approx(torch.mvlgamma(torch.tensor([3.0, 4.5]), 2).tolist(), rel=1e-6)
    with pytest.raises(RuntimeError, match="can't be cast"):
        trt.tensor([3]).mvlgamma_(1)


def test_windows_require_gradients_and_refuse_types() -> None:
    assert trt.signal.windows.hann(4, requires_grad=True).requires_grad and trt.signal.windows.kaiser(0, requires_grad=True).requires_grad
    with pytest.raises(ValueError, match="float32 or float64"):
        trt.signal.windows.cosine(4, dtype=trt.float16)


def test_hash_tensor() -> None:
    """The exclusive or of the elements' bits, along dimensions and of all; lengths that are no powers of two."""
    cases = [
        ((7,), (), False), ((2, 3), (1,), False), ((2, 3), (0, 1), True), ((3, 5, 4), (0, 2), False), ((3, 5, 4), (-2,), True), ((0, 3), (1,), False), ((), (), False),
        ((), (0,), True), ((4, 1), (1,), False),
    ]  # fmt: skip
    for kind in ("float32", "float64", "bfloat16", "float16", "int8", "int64", "bool", "uint8"):
        for shape, dim, keepdim in cases:
            torch.manual_seed(0)
            theirs = (torch.randn(shape) * 50).to(getattr(torch, kind))
            ours = trt.tensor(theirs.tolist(), dtype=getattr(trt, kind)).reshape(shape)
            expected = torch.hash_tensor(theirs, dim, keepdim=keepdim)
            assert trt.hash_tensor(ours, dim, keepdim=keepdim).tolist() == expected.tolist(), (kind, shape, dim)
    x = trt.tensor([3])
    hashed = x.hash_tensor()
    x.zero_()
    assert hashed.tolist() == 3  # no view of its input
    with pytest.raises(RuntimeError, match="Unknown hash_tensor mode"):
        trt.hash_tensor(x, mode=1)
    with pytest.raises(RuntimeError, match="reduction dim to be specified"):
        trt.hash_tensor(trt.empty(0))
    with pytest.raises(IndexError, match="non-zero size"):
        trt.hash_tensor(trt.empty(0, 3), 0)
    with pytest.raises(RuntimeError, match="dtype uint64"):
        trt.hash_tensor(x, out=trt.empty(0, dtype=trt.int64))
    with pytest.raises(NotImplementedError):
        trt.hash_tensor(trt.tensor([1j]))


def test_seldom_types() -> None:
    """What the comparison of all operators in seldom types found: bool bounds, halves rounded once, shared memory of unsafe_split, sums in tensordot."""
    for name in ("clamp_min", "clamp_max"):
        a, b = [True, False, True, False], [True, True, False, False]
        assert getattr(trt, name)(trt.tensor(a), trt.tensor(b)).tolist() == getattr(torch, name)(torch.tensor(a), torch.tensor(b)).tolist()
    x = trt.zeros(4)
    first, _ = trt.unsafe_split(x, 2)
    first.fill_(1)
    assert x.tolist() == [1, 1, 0, 0] and trt.unsafe_chunk(x, 2)[0].data_ptr() == x.data_ptr()
    y = (trt.ones(4, requires_grad=True) * 2).unsafe_split(2)[0]
    assert y.mul_(3).tolist() == [6, 6]  # a recorded one may be written to
    small = trt.ones(1, 1, 1, dtype=trt.int8), trt.ones(2, 1, 2, dtype=trt.int8)
    assert trt.tensordot(*small, dims=([0, 1], [2, 0])).dtype == trt.int8
    assert trt.logspace(4.3, 0, 1, dtype=trt.bfloat16).tolist() == torch.logspace(4.3, 0, 1, dtype=torch.bfloat16).tolist()
    assert trt.tensor([4.0]).__rdiv__(2.0).tolist() == [0.5]
    torch.manual_seed(1)
    m, u, v = torch.randn(5, 7).half(), torch.randn(5).half(), torch.randn(7).half()
    ours = trt.addr(*(trt.tensor(t.numpy()) for t in (m, u, v)), beta=0.6, alpha=0.2)
    exact = 0.6 * m.double() + 0.2 * torch.outer(u.double(), v.double())
    assert (torch.tensor(ours.numpy()).double() - exact).abs().max() <= 2e-3 * exact.abs().max()
    assert torch.equal(torch.tensor(trt.renorm(trt.tensor(m.numpy()), 2, 0, 0.5).numpy()), torch.renorm(m, 2, 0, 0.5))


def test_series_end_where_infinities_of_both_signs_meet() -> None:
    """Terms of zeta of a huge odd order: -inf at -0.3, inf at 0.7; their sum is no number, and adding on would take hours."""
    x = trt.tensor([-0.3, -1.5, 0.5, 2.5, 1e6, math.inf, -math.inf, math.nan], dtype=trt.float64)
    for n in (2**40, 2**40 + 1):
        assert trt.polygamma(n, x).shape == x.shape
        assert trt.special.zeta(trt.tensor(float(n), dtype=trt.float64), x).shape == x.shape


def test_derivatives_of_samples_by_their_shapes():
    """-(dF/da) / f of gamma and beta distributions beside mpmath, both tails, shapes far from each other, large and small ones."""
    mp = pytest.importorskip("mpmath").mp.clone()
    mp.dps = 60

    def slope(cdf, density, a):
        step = a * mp.mpf(10) ** -20
        return -(cdf(a + step) - cdf(a - step)) / (2 * step) / density

    def gamma(a, x):
        a, x = mp.mpf(a), mp.mpf(x)
        tail = (lambda a: mp.gammainc(a, 0, x, regularized=True)) if x < a else (lambda a: -mp.gammainc(a, x, mp.inf, regularized=True))
        return slope(tail, x ** (a - 1) * mp.exp(-x) / mp.gamma(a), a)

    def beta(x, a, total):
        x, a, b = mp.mpf(x), mp.mpf(a), mp.mpf(total) - mp.mpf(a)
        density = x ** (a - 1) * (1 - x) ** (b - 1) / mp.beta(a, b)
        return slope(lambda a: mp.betainc(a, b, 0, x, regularized=True), density, a) / (1 - x)

    pairs = [(1e-3, 1e-30), (1e-3, 0.5), (0.3, 1e-4), (0.3, 0.25), (0.3, 3.0), (1.0, 1.0), (2.5, 0.1), (2.5, 9.0), (40.0, 38.0), (1000.0, 1010.0), (1000.0, 900.0)]
    ours = trt._standard_gamma_grad(*(trt.tensor(column, dtype=trt.float64) for column in zip(*pairs, strict=True))).tolist()
    np.testing.assert_allclose(ours, [float(gamma(*pair)) for pair in pairs], rtol=1e-13)
    triples = [(1e-6, 0.05, 1.05), (0.3, 0.5, 1.5), (0.999, 0.5, 1.0), (0.2, 3.0, 3.25), (0.5, 20.0, 50.0), (0.35, 100.0, 300.0), (0.01, 2.0, 9.0), (0.9, 1.0, 2.0)]
    ours = trt._dirichlet_grad(*(trt.tensor(column, dtype=trt.float64) for column in zip(*triples, strict=True))).tolist()
    np.testing.assert_allclose(ours, [float(beta(*triple)) for triple in triples], rtol=1e-12)
    shapes, numbers = trt.tensor([-1.0, 0.0, float("nan"), 1.0, 1.0]), trt.tensor([1.0, 1.0, 1.0, -1.0, 0.0])
    assert trt._standard_gamma_grad(shapes, numbers)[:4].isnan().all() and trt._standard_gamma_grad(shapes, numbers)[4] == 0
    assert trt._dirichlet_grad(trt.tensor([-0.1, 1.1, 0.5]), trt.tensor([1.0, 1.0, 2.0]), trt.tensor([2.0, 2.0, 1.0])).isnan().all()


def test_hashes_of_many_blocks():
    """Dimensions reduced in any order of memory, of more elements than are held at a time, with rests."""
    views = (
        lambda x: x, lambda x: x.permute(2, 0, 1), lambda x: x[:, ::2].transpose(0, 2), lambda x: x[:1].expand(3, 130, 301), lambda x: x.reshape(-1),
        lambda x: x.double(), lambda x: (x * 100).int(), lambda x: (x * 100).long(), lambda x: x > 0, lambda x: x.bfloat16(),
    )  # fmt: skip
    numbers = np.random.default_rng(0).standard_normal((7, 130, 301)).astype(np.float32)
    for view in views:
        mine, theirs = view(trt.from_numpy(numbers)), view(torch.from_numpy(numbers))
        for dim in ((), 0, -1, *((1, (0, 2), (1, 2)) if theirs.dim() == 3 else ())):
            for keepdim in (False, True):
                found, expected = trt.hash_tensor(mine, dim, keepdim=keepdim), torch.hash_tensor(theirs, dim, keepdim=keepdim)
                assert found.shape == expected.shape
                assert found.tolist() == expected.tolist()
