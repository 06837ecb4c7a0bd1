"""Pooling against PyTorch: windows, ceil_mode, layouts, indices with ties and NaN, derivatives of both orders, errors."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch_compare import compare, normal, ours, same, second_order

import tensorrt_lite as trt
from tensorrt_lite.nn import functional as TF

F = torch.nn.functional
CASES = [
    ("max_pool1d", (2, 3, 17), (3,), {"padding": 1, "dilation": 2}),
    ("max_pool1d", (3, 17), (3, 2), {"ceil_mode": True}),
    ("max_pool2d", (2, 3, 9, 10), (2,), {}),
    ("max_pool2d", (2, 3, 9, 10), (3, 2, 1), {"ceil_mode": True}),
    ("max_pool2d", (3, 9, 10), ((3, 2), (1, 3), (1, 0), (2, 1)), {}),
    ("max_pool3d", (2, 3, 5, 6, 7), (2,), {"stride": 1, "padding": 1}),
    ("max_pool3d", (3, 5, 6, 7), ((2, 3, 2),), {"ceil_mode": True}),
    ("avg_pool1d", (2, 3, 17), (3, 2, 1), {"count_include_pad": False}),
    ("avg_pool2d", (2, 3, 9, 10), (2,), {}),
    ("avg_pool2d", (2, 3, 9, 10), (3, 2, 1), {"ceil_mode": True}),
    ("avg_pool2d", (2, 3, 9, 10), (3, 2, 1), {"ceil_mode": True, "count_include_pad": False}),
    ("avg_pool2d", (3, 9, 10), ((3, 2),), {"divisor_override": 5}),
    ("avg_pool3d", (2, 3, 5, 6, 7), (3, 2, 1), {"ceil_mode": True, "count_include_pad": False}),
    ("avg_pool3d", (2, 3, 5, 6, 7), (2,), {"divisor_override": 3}),
    ("adaptive_avg_pool1d", (2, 3, 17), (5,), {}),
    ("adaptive_avg_pool2d", (2, 3, 9, 10), ((4, 3),), {}),
    ("adaptive_avg_pool2d", (3, 9, 10), ((None, 7),), {}),
    ("adaptive_avg_pool3d", (2, 3, 5, 6, 7), ((2, 3, 4),), {}),
    ("adaptive_max_pool1d", (2, 3, 17), (5,), {}),
    ("adaptive_max_pool2d", (2, 3, 9, 10), ((4, 3),), {}),
    ("adaptive_max_pool3d", (2, 3, 5, 6, 7), ((2, 3, 4),), {}),
]


@pytest.mark.parametrize("name,x,args,options", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_matches_pytorch(name, x, args, options, dtype):
    compare(getattr(TF, name), getattr(F, name), normal(*x, dtype=dtype), *args, **options)
    if "max" in name:
        compare(getattr(TF, name), getattr(F, name), normal(*x, dtype=dtype), *args, return_indices=True, **options)


@pytest.mark.parametrize("name,x,args,options", CASES)
def test_second_derivatives(name, x, args, options):
    second_order(getattr(TF, name), getattr(F, name), normal(*x), *args, **options)


@pytest.mark.parametrize(
    "name,args", [("max_pool2d", (3, 2, 1)), ("avg_pool2d", (3, 2, 1)), ("adaptive_avg_pool2d", ((3, 4),)), ("adaptive_max_pool2d", ((3, 4),))]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_channels_last_and_halves(name, args, dtype):
    for last in (False, True):
        compare(getattr(TF, name), getattr(F, name), normal(2, 5, 9, 8, dtype=dtype, last=last), *args)


@pytest.mark.parametrize(
    "shape,args",
    [
        ((1, 700, 6, 5), (3, 1, 1)),  # more channels than a block
        ((2, 5, 9, 8), ((2, 3), (3, 2))),  # gaps between windows
        ((1, 20, 12, 13), (7, 1, 3)),  # many windows over a pixel
        ((1, 3, 36, 35), (33, 1)),  # more than are kept
        ((1, 4, 9, 11), (3, 2, 1, True, False)),
    ],
)
def test_channels_last_averages(shape, args):
    compare(TF.avg_pool2d, F.avg_pool2d, normal(*shape, last=True), *args)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.int8, torch.int16, torch.int32])
def test_integer_maxima(dtype):
    x = (torch.arange(2 * 3 * 6 * 7) * 37 % 101).reshape(2, 3, 6, 7).to(dtype)
    for layout in (torch.contiguous_format, torch.channels_last):
        x = x.contiguous(memory_format=layout)
        compare(TF.max_pool2d, F.max_pool2d, x, 2, return_indices=True)
    assert trt.max_pool2d(ours(x).to("meta"), 2).dtype == ours(x).dtype


def test_ties_and_nan():
    x = torch.zeros(1, 1, 4, 6)
    x[0, 0, 1, 2] = float("nan")
    compare(TF.max_pool2d, F.max_pool2d, x, 2, return_indices=True)
    compare(TF.max_pool3d, F.max_pool3d, x.unsqueeze(1), (1, 2, 2), return_indices=True)
    compare(TF.adaptive_max_pool2d, F.adaptive_max_pool2d, x, (2, 3), return_indices=True)


def test_batch_of_none():
    compare(TF.max_pool2d, F.max_pool2d, normal(0, 3, 6, 6), 2)
    compare(TF.avg_pool2d, F.avg_pool2d, normal(0, 3, 6, 6), 2)


@pytest.mark.parametrize(
    "call,text",
    [
        (lambda x: TF.max_pool2d(x, 0), "kernel size should be greater than zero"),
        (lambda x: TF.max_pool2d(x, 2, 0), "stride should not be zero"),
        (lambda x: TF.max_pool2d(x, 2, padding=2), "at most half"),
        (lambda x: TF.max_pool2d(x, 9), "Output size is too small"),
        (lambda x: TF.max_pool2d(x, (1, 2, 3)), "tuple of two ints"),
        (lambda x: TF.avg_pool2d(x, 2, divisor_override=0), "divisor must be not zero"),
        (lambda x: TF.max_pool2d(x[0, 0], 2), "Expected 3D"),
        (lambda x: TF.avg_pool2d(x, 1 << 62), "value cannot be converted to type int without overflow"),
    ],
)
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(trt.zeros(1, 2, 5, 5))


@pytest.mark.parametrize("options", [
    {"kernel_size": 2}, {"kernel_size": (2, 3, 4), "stride": (1, 2, 2), "padding": (0, 1, 2)}, {"kernel_size": 3, "padding": 1, "count_include_pad": False},
    {"kernel_size": 3, "stride": 2, "padding": 1, "ceil_mode": True}, {"kernel_size": 2, "divisor_override": 3},
])  # fmt: skip
def test_volumes_are_rounded_once(options):
    x = torch.randint(-999, 999, (2, 3, 5, 6, 7))
    assert TF.avg_pool3d(trt.tensor(x.tolist()), **options).tolist() == F.avg_pool3d(x, **options).tolist()
    for dtype in (torch.bfloat16, torch.float16):
        x = torch.randn(2, 3, 5, 6, 7).to(dtype)
        same(TF.avg_pool3d(ours(x), **options), F.avg_pool3d(x.double(), **options).to(dtype), tolerance=0.008 if dtype == torch.bfloat16 else 0.001)
    same(TF.adaptive_avg_pool3d(ours(x), (2, 3, 4)), torch.nn.functional.adaptive_avg_pool3d(x.double(), (2, 3, 4)).to(dtype), tolerance=0.001)


def test_average_of_integers_is_refused():
    with pytest.raises(NotImplementedError, match="not implemented for 'Bool'"):
        TF.avg_pool2d(trt.zeros(1, 1, 4, 4, dtype=trt.bool), 2)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
@pytest.mark.parametrize("size", [(9, 10), (40, 56)])
@pytest.mark.parametrize("last", [False, True])
def test_adaptive_maxima_choose_as_pytorch_does(dtype, size, last):
    """Many equals, some NaN."""

    def result(module):
        x = (module.arange(2 * 5 * size[0] * size[1]) * 7919 % 13).reshape(2, 5, *size).to(getattr(module, dtype))
        x[0, 1, 2, 3] = x[0, 1, 3, 1] = x[1, 2, 0, 0] = x[1, 3, 7, 9] = float("nan")
        x = x.to(memory_format=module.channels_last) if last else x
        results = [module.nn.functional.adaptive_max_pool2d(x, target, True) for target in ((1, 1), (4, 3), (2, 1))]
        return [(str(y.tolist()), at.tolist(), y.stride() if y.shape[2] > 1 else None) for y, at in results]

    assert result(trt) == result(torch)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64"])
def test_maxima_of_many_small_planes(dtype):
    """Planes of few outputs are taken several at a time: more planes than a block holds, the last ones fewer; NaN, ties and nothing but -inf."""
    for height, width, kernel, stride, dilation in ((4, 4, 2, 2, 1), (2, 2, 2, 2, 1), (5, 7, 3, 2, 1), (9, 8, 2, 3, 1), (8, 8, 3, 1, 1), (9, 9, 3, 2, 2), (3, 40, 2, 1, 1), (40, 64, 2, 2, 1)):
        x = torch.randint(-3, 3, (23, 31, height, width), generator=torch.Generator().manual_seed(0)).to(getattr(torch, dtype))
        if x.is_floating_point():
            x[1, 2, :, 1], x[3, 4] = float("nan"), -float("inf")
        values, indices = torch.nn.functional.max_pool2d(x, kernel, stride, 0, dilation, return_indices=True)
        y = trt.tensor(x.double().numpy(), dtype=getattr(trt, dtype))
        got, positions = trt.nn.functional.max_pool2d(y, kernel, stride, 0, dilation, return_indices=True)
        assert np.array_equal(got.double().numpy(), values.double().numpy(), equal_nan=True), (height, width, kernel)
        assert positions.tolist() == indices.tolist(), (height, width, kernel)
        if x.is_floating_point():
            x.requires_grad_(), y.requires_grad_()
            torch.nn.functional.max_pool2d(x, kernel, stride, 0, dilation).nansum().backward()
            trt.nn.functional.max_pool2d(y, kernel, stride, 0, dilation).nansum().backward()
            assert np.array_equal(y.grad.double().numpy(), x.grad.double().numpy()), (height, width, kernel)


def test_autocast_leaves_maxima_with_indices_in_their_type():
    for lib in (torch, trt):
        x = lib.ones(1, 1, 4, 4, 4, dtype=lib.bfloat16)
        with lib.autocast("cpu", dtype=lib.bfloat16):
            assert lib.nn.functional.max_pool3d(x, 2, return_indices=True)[0].dtype == lib.bfloat16
            assert lib.nn.functional.max_pool3d(x, 2).dtype == lib.float32
