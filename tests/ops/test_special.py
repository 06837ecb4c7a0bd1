"""torch.special, igamma, frexp and signal.windows beside PyTorch: what the rows' own tests (test_declared.py) do not see."""

from __future__ import annotations

import math
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


def test_series_end_where_infinities_of_both_signs_meet() -> None:
    """Terms of zeta of a huge odd order: -inf at -0.3, inf at 0.7; their sum is no number, and adding on would take hours."""
    x = trt.tensor([-0.3, -1.5, 0.5, 2.5, 1e6, math.inf, -math.inf, math.nan], dtype=trt.float64)
    for n in (2**40, 2**40 + 1):
        assert trt.polygamma(n, x).shape == x.shape
        assert trt.special.zeta(trt.tensor(float(n), dtype=trt.float64), x).shape == x.shape
