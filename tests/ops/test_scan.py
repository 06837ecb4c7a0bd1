"""Running logarithms of sums of exponentials."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

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
