"""log(e^x + e^y) of complex numbers: values at infinities and NaN, derivatives, refusals beside PyTorch."""

from __future__ import annotations

import itertools

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck, gradgradcheck

torch = pytest.importorskip("torch")

from torch_compare import ours, same  # noqa: E402 (needs PyTorch)

INF, NAN = float("inf"), float("nan")
VALUES = [0, 1 + 2j, 3 - 1j, 1e5 + 1j, 1e5 + 2j, -1e5 - 3j, complex(-INF, 1), complex(-INF, 2), complex(INF, 1), complex(INF, 2), complex(NAN, 0), complex(0, NAN), 1 + 3j, 1 - 3j]


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_values(dtype):
    x, y = (torch.tensor(v, dtype=dtype) for v in zip(*itertools.product(VALUES, VALUES), strict=True))
    expected, found = torch.logaddexp(x, y), trt.logaddexp(ours(x), ours(y))
    same(found.real, expected.real)
    same(found.imag, expected.imag)
    x, y = torch.randn(300, dtype=dtype) * 20, torch.randn(300, dtype=dtype) * 20
    same(trt.logaddexp(ours(x), ours(y)), torch.logaddexp(x, y))


def test_derivatives():
    trt.manual_seed(0)
    x, y = (trt.randn(4, 3, dtype=trt.complex128).requires_grad_() for _ in "xy")
    assert gradcheck(trt.logaddexp, (x, y), check_forward_ad=True) and gradgradcheck(trt.logaddexp, (x, y))


def test_base_two_is_refused():
    with pytest.raises(NotImplementedError, match="logaddexp2"):
        trt.logaddexp2(trt.tensor(1j), trt.tensor(1j))
