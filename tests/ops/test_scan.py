"""Running logarithms of sums of exponentials."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck, gradgradcheck

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    "values, expected",
    [
        ([0.0, 1000.0, -1000.0], [0.0, 1000.0, 1000.0]),
        ([1.0, 2.0, NAN, 3.0], [1.0, 2.3132617, NAN, NAN]),
        ([1.0, INF, 2.0, NAN], [1.0, INF, INF, NAN]),
        ([-INF, -INF, 1.0], [-INF, -INF, 1.0]),
        ([5.0], [5.0]),
        ([], []),
    ],
)
@pytest.mark.parametrize("dtype", [trt.float32, trt.float64, trt.bfloat16])
def test_no_element_reaches_those_before_it(values, expected, dtype):
    made = trt.tensor(values, dtype=dtype).logcumsumexp(0)
    assert made.dtype == dtype
    trt.testing.assert_close(made, trt.tensor(expected, dtype=dtype), equal_nan=True)


def test_any_length_along_any_dimension():
    for n in (1, 2, 3, 7, 8, 9, 100):
        x = trt.randn(3, n, 2, dtype=trt.float64)
        by_hand = trt.stack([x[:, : i + 1].logsumexp(1) for i in range(n)], 1)
        trt.testing.assert_close(x.logcumsumexp(1), by_hand)
    assert trt.autograd.gradcheck(lambda x: x.logcumsumexp(-1), trt.randn(2, 5, dtype=trt.float64, requires_grad=True))


def test_complex_sums_agree_with_pytorch():
    torch = pytest.importorskip("torch")
    from torch_compare import ours, same

    torch.manual_seed(0)
    for dtype in (torch.complex64, torch.complex128):
        x = torch.randn(5, 40, dtype=dtype) * 3
        x[1, 3], x[2, 5:] = complex(-INF, 1), complex(-INF, 2)
        for dim in (0, 1, -1):
            same(ours(x).logcumsumexp(dim), x.logcumsumexp(dim))
    assert trt.tensor(1j).logcumsumexp(0).item() == 1j
    x = ours(torch.randn(3, 4, dtype=torch.complex128)).requires_grad_()
    assert gradcheck(lambda x: x.logcumsumexp(1), (x,)) and gradgradcheck(lambda x: x.logcumsumexp(1), (x,))
