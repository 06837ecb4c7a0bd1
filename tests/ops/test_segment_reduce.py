"""segment_reduce beside PyTorch: operations, empty segments, lengths and offsets of several dimensions, gradients, errors."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import grad, gradcheck
from torch_compare import compare, ours, same, torch

OPERATIONS = ("sum", "mean", "max", "min", "prod")


def test_lengths_and_offsets():
    rng = torch.Generator().manual_seed(0)
    cases = [((6, 2), [2, 0, 4], 0), ((7,), [3, 3, 1], 0), ((2, 5, 3), [[2, 2, 1], [0, 5, 0]], 1), ((2, 5), [[2, 3], [4, 1]], -1)]
    for shape, lengths, axis in cases:
        counts = torch.tensor(lengths)
        starts = torch.nn.functional.pad(counts.cumsum(-1), (1, 0))
        for operation in OPERATIONS:
            for initial in (None, 2.0):
                for dtype in (torch.float64, torch.float32):
                    x = torch.randn(shape, generator=rng, dtype=torch.float64).to(dtype)
                    compare(
                        lambda x, n, o=operation, i=initial: trt.segment_reduce(x, o, lengths=n, axis=axis, initial=i),
                        lambda x, n, o=operation, i=initial: torch.segment_reduce(x, o, lengths=n, axis=axis, initial=i), x.requires_grad_(), counts,
                    )  # fmt: skip
                expected = torch.segment_reduce(x, operation, offsets=starts, axis=axis, initial=initial)
                same(trt.segment_reduce(ours(x), operation, offsets=ours(starts), axis=axis, initial=initial), expected, operation)


def test_equal_extremes_share_a_gradient():
    """PyTorch divides it where it is positive alone."""
    for cotangent in (1.0, -1.0):
        x = trt.tensor([2.0, 2, 1, 3], requires_grad=True)
        (g,) = grad(trt.segment_reduce(x, "max", lengths=trt.tensor([3, 1])).sum() * cotangent, x)
        assert g.tolist() == [cotangent / 2, cotangent / 2, 0, cotangent]


def test_zeros_of_products_and_nan_of_extremes():
    x = torch.tensor([2.0, 0, 3, 0, 0, 5, 7, float("nan"), 1], dtype=torch.float64).requires_grad_()
    counts = torch.tensor([3, 3, 1, 2])
    compare(lambda x, n: trt.segment_reduce(x, "max", lengths=n), lambda x, n: torch.segment_reduce(x, "max", lengths=n), x, counts)
    # PyTorch's gradient is NaN around zeros where there is a NaN behind them alone
    y, n = x.detach()[:7].requires_grad_(), counts[:3]
    compare(lambda x, n: trt.segment_reduce(x, "prod", lengths=n), lambda x, n: torch.segment_reduce(x, "prod", lengths=n), y, n)


def test_lengths_that_leave_elements_out():
    x, counts = torch.randn(6, 2, dtype=torch.float64).requires_grad_(), torch.tensor([2, 3])
    for operation in OPERATIONS:
        compare(
            lambda x, n, o=operation: trt.segment_reduce(x, o, lengths=n, unsafe=True),
            lambda x, n, o=operation: torch.segment_reduce(x, o, lengths=n, unsafe=True), x, counts,
        )  # fmt: skip
    assert trt.segment_reduce(trt.ones(3), "sum", offsets=trt.tensor([1, 2, 9])).tolist() == [1, 1]


def test_half_types_and_derivatives():
    counts = trt.tensor([3, 1, 2])
    for dtype in (trt.float16, trt.bfloat16):
        assert trt.segment_reduce(trt.ones(6, dtype=dtype), "mean", lengths=counts).dtype is dtype
    for operation in OPERATIONS:
        x = trt.randn(6, 2, dtype=trt.float64, requires_grad=True)
        assert gradcheck(lambda x, o=operation: trt.segment_reduce(x, o, lengths=counts, initial=0.3), (x,))
    (first,) = grad(trt.segment_reduce(x, "prod", lengths=counts).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="_segment_reduce_backward"):
        grad(first.sum(), x)


def test_meta_and_errors():
    x, counts = trt.zeros(6, 2), trt.tensor([2, 4])
    assert trt.segment_reduce(x.to("meta"), "sum", lengths=counts.to("meta")).shape == (2, 2)
    cases = [
        (lambda: trt.segment_reduce(x, "sum"), "Either lengths or offsets must be defined"),
        (lambda: trt.segment_reduce(x, "sum", indices=counts), "indices based reduction is not supported"),
        (lambda: trt.segment_reduce(x, "median", lengths=counts), "reduce argument must be either"),
        (lambda: trt.segment_reduce(x, "sum", lengths=counts - 1), "to sum to data.size"),
        (lambda: trt.segment_reduce(x, "sum", lengths=trt.tensor([-1, 7])), "negative value"),
        (lambda: trt.segment_reduce(x, "sum", lengths=counts, axis=1), "Expected axis to be the last dimension of lengths but got 1"),
        (lambda: trt.segment_reduce(x, "sum", lengths=trt.ones(5, 2, dtype=trt.int64), axis=1), "of the data's sizes before axis"),
    ]
    for call, message in cases:
        with pytest.raises(RuntimeError, match=message):
            call()
    with pytest.raises(NotImplementedError, match="not implemented for 'Int'"):
        trt.segment_reduce(x.int(), "sum", lengths=counts)
    with pytest.raises(NotImplementedError, match="not implemented for 'Float'"):
        trt.segment_reduce(x, "sum", lengths=counts.float())
