"""Convolutions against PyTorch: geometry, groups, layouts, element types, derivatives of both orders, errors."""

from __future__ import annotations


import pytest

pytest.importorskip("torch")

import torch
from torch_compare import compare, normal, ours, same, second_order

import tensorrt_lite as trt
from tensorrt_lite import _ops

F = torch.nn.functional
CASES = [
    ("conv2d", (2, 3, 8, 9), (4, 3, 3, 3), {}),
    ("conv2d", (2, 3, 8, 9), (4, 3, 1, 1), {}),
    ("conv2d", (2, 4, 9, 11), (6, 2, 3, 2), {"groups": 2, "stride": 2, "padding": 1, "dilation": 2}),
    ("conv2d", (2, 4, 9, 11), (6, 4, 3, 2), {"stride": (2, 3), "padding": (0, 2), "dilation": (1, 3)}),
    ("conv2d", (2, 6, 7, 7), (6, 1, 3, 3), {"groups": 6, "padding": 1}),
    ("conv2d", (2, 6, 7, 7), (12, 1, 3, 3), {"groups": 6, "padding": "same"}),
    ("conv2d", (1, 20, 12, 12), (33, 20, 5, 5), {"padding": "valid"}),
    ("conv2d", (3, 8, 9), (4, 3, 3, 3), None),
    ("conv1d", (2, 3, 20), (5, 3, 4), {"stride": 3, "padding": 2}),
    ("conv1d", (3, 20), (5, 3, 3), {"padding": "same"}),
    ("conv3d", (2, 4, 6, 7, 8), (6, 2, 3, 2, 3), {"groups": 2, "stride": (2, 1, 2), "padding": (1, 0, 1), "dilation": (1, 2, 1)}),
    ("conv3d", (1, 2, 4, 5, 5), (3, 2, 1, 1, 1), {}),
    ("conv_transpose1d", (2, 4, 5), (4, 3, 3), {"stride": 2}),
    ("conv_transpose2d", (2, 4, 5, 6), (4, 3, 3, 3), {"groups": 2, "stride": 2, "padding": 1, "output_padding": 1}),
    ("conv_transpose2d", (2, 4, 5, 6), (4, 3, 2, 3), {"dilation": 2}),
    ("conv_transpose2d", (2, 2, 4, 4), (2, 2, 4, 5), {"stride": (3, 2), "padding": (1, 2), "output_padding": (2, 3), "groups": 2, "dilation": 4}),
    # kernels that move along rows: one and several output rows at a time, ends of rows, gaps between taps, strides of rows, groups; few channels on one side
    ("conv2d", (2, 5, 13, 21), (7, 5, 5, 4), {"padding": (2, 3)}),
    ("conv2d", (5, 6, 12, 12), (16, 3, 5, 5), {"groups": 2, "stride": (2, 1), "padding": 1}),
    ("conv2d", (1, 3, 6, 600), (4, 3, 1, 9), {"padding": (0, 8), "dilation": (1, 2)}),
    ("conv2d", (1, 40, 22, 70), (9, 40, 7, 3), {"padding": (6, 0)}),
    ("conv2d", (2, 2, 9, 7), (13, 2, 9, 7), {}),
    ("conv_transpose2d", (2, 6, 9, 11), (6, 5, 5, 5), {"padding": 1}),
    # outputs larger than their inputs without any padding, as the forward pass of the reversed problem
    ("conv_transpose2d", (3, 64, 8, 9), (64, 48, 1, 1), {"dilation": 2, "output_padding": 1}),
    ("conv_transpose2d", (2, 20, 6, 5), (20, 17, 3, 3), {"padding": 4, "dilation": 2, "output_padding": 1}),
    ("conv_transpose3d", (2, 4, 3, 4, 5), (4, 3, 2, 3, 2), {"stride": 2, "dilation": 2}),
]


def channels_out(name: str, weight: tuple[int, ...], options: dict) -> int:
    return weight[1] * options.get("groups", 1) if "transpose" in name else weight[0]


@pytest.mark.parametrize("name,x,w,options", [c for c in CASES if c[3] is not None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_matches_pytorch(name, x, w, options, dtype):
    bias = normal(channels_out(name, w, options), dtype=dtype)
    compare(getattr(trt, name), getattr(F, name), normal(*x, dtype=dtype), normal(*w, dtype=dtype), bias, **options)
    compare(getattr(trt, name), getattr(F, name), normal(*x, dtype=dtype), normal(*w, dtype=dtype), **options)


@pytest.mark.parametrize("name,x,w,options", [CASES[2], CASES[4], CASES[8], CASES[10], CASES[13]])
def test_second_derivatives(name, x, w, options):
    bias = normal(channels_out(name, w, options))
    second_order(getattr(trt, name), getattr(F, name), normal(*x), normal(*w), bias, **options)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.complex64, torch.complex128])
def test_element_types(dtype):
    x, w, b = normal(2, 4, 7, 6), normal(6, 2, 3, 3), normal(6)
    if dtype.is_complex:
        x, w, b = (torch.complex(t.detach(), t.detach().flip(0)).to(dtype).requires_grad_() for t in (x, w, b))
    else:
        x, w, b = (t.detach().to(dtype).requires_grad_() for t in (x, w, b))
    compare(trt.conv2d, F.conv2d, x, w, b, groups=2, padding=1)


def test_integers_are_exact():
    x = torch.arange(2 * 3 * 5 * 5).reshape(2, 3, 5, 5) * (1 << 40)
    w = torch.arange(4 * 3 * 3 * 2).reshape(4, 3, 3, 2) - 20
    same(trt.conv2d(ours(x), ours(w), padding=1), F.conv2d(x, w, padding=1))


@pytest.mark.parametrize("last", [(True, False), (False, True), (True, True)])
def test_channels_last(last):
    compare(trt.conv2d, F.conv2d, normal(2, 4, 7, 6, last=last[0]), normal(6, 4, 3, 3, last=last[1]), normal(6))
    options = {"dilation": 2, "output_padding": 1}      # reads beyond the image, which has no padding
    compare(trt.conv_transpose2d, F.conv_transpose2d, normal(3, 20, 5, 6, last=last[0], grad=False), normal(20, 7, 1, 1, last=last[1], grad=False), **options)


# every method of the kernels, beyond the sizes that are summed in double: Winograd, direct, few channels, strided, pointwise, depthwise
METHODS = [
    ((2, 32, 13, 18), (24, 32, 3, 3), {"padding": 1}),
    ((3, 64, 9, 7), (20, 64, 3, 3), {"padding": (0, 2)}),
    ((2, 20, 12, 12), (33, 20, 5, 5), {"padding": 2, "dilation": 2}),
    ((2, 3, 33, 35), (24, 3, 7, 7), {"stride": 2, "padding": 3}),
    ((2, 3, 16, 16), (16, 3, 3, 3), {"padding": 1}),
    ((2, 24, 14, 15), (40, 24, 3, 3), {"stride": 2, "padding": 1}),
    ((3, 70, 9, 8), (50, 70, 1, 1), {}),
    ((2, 24, 9, 8), (36, 12, 3, 3), {"groups": 2, "padding": 1}),
    ((2, 19, 17, 15), (19, 1, 3, 3), {"groups": 19, "padding": 1}),
    ((2, 19, 17, 15), (38, 1, 5, 3), {"groups": 19, "stride": 2}),
    ((2, 19, 17, 35), (19, 1, 5, 5), {"groups": 19, "padding": 2}),
    ((2, 19, 30, 67), (19, 1, 3, 3), {"groups": 19, "padding": 1, "stride": 2}),
    ((2, 37, 14, 14), (37, 1, 5, 5), {"groups": 37, "padding": 2, "stride": 2}),
    ((2, 24, 11, 9), (24, 1, 7, 7), {"groups": 24, "padding": 3}),
    ((2, 24, 12, 31), (24, 1, 3, 5), {"groups": 24, "padding": (0, 4), "dilation": (2, 1)}),
    ((2, 32, 9, 7), (32, 1, 3, 3), {"groups": 32, "padding": 1}),
    ((2, 48, 16, 31), (48, 1, 3, 3), {"groups": 48, "padding": 1, "stride": 2}),
    ((2, 6, 12, 31), (6, 1, 7, 7), {"groups": 6, "padding": 1, "stride": 3}),
    ((1, 48, 70, 100), (48, 1, 5, 5), {"groups": 48, "padding": 2, "stride": 2}),  # several bands of lines
    ((1, 33, 61, 150), (33, 1, 3, 4), {"groups": 33, "padding": (0, 5), "dilation": (3, 1)}),
    ((2, 17, 13, 12), (17, 1, 4, 5), {"groups": 17, "padding": (3, 1), "stride": (3, 2), "dilation": (1, 2)}),
    ((3, 64, 4, 4), (40, 64, 3, 3), {"padding": 1}),
    ((6, 72, 4, 4), (80, 72, 3, 3), {"padding": 1}),
    ((17, 70, 2, 2), (40, 70, 3, 3), {"padding": 1}),
    ((5, 72, 5, 5), (40, 72, 3, 3), {"padding": 1}),
    ((16, 40, 16, 16), (24, 40, 3, 3), {"padding": 1, "stride": 2}),
    # tap by tap: maps that are mostly margin, strides on small maps, blocks of samples and of channels, parts of vectors
    ((3, 33, 5, 5), (50, 33, 5, 5), {"padding": 2}),
    ((70, 20, 5, 5), (40, 20, 5, 5), {"padding": 2}),
    ((8, 64, 7, 7), (130, 64, 3, 3), {"stride": 2, "padding": 1}),
    ((5, 49, 9, 7), (33, 49, 5, 3), {"stride": (2, 3), "padding": (2, 1)}),
    ((2, 300, 6, 20), (31, 300, 3, 5), {"stride": (2, 1), "padding": (1, 2)}),
    ((4, 30, 13, 11), (20, 30, 3, 3), {"padding": 4, "dilation": 4}),
    ((3, 24, 14, 17), (70, 24, 5, 5), {"padding": 2}),
    ((3, 16, 7, 7), (16, 16, 7, 7), {"padding": 3, "stride": 3}),
    ((1, 40, 6, 6), (48, 40, 3, 3), {"padding": 1}),
    ((2, 260, 24, 13), (510, 260, 3, 3), {"padding": 1, "stride": 2}),
    # GEMMs: single images, positions of all samples as columns, 1x1 of stride 2
    ((1, 72, 9, 8), (64, 72, 1, 1), {}),
    ((3, 150, 13, 11), (230, 150, 1, 1), {}),  # a GEMM for each image, in all three passes
    ((5, 16, 16, 15), (16, 16, 1, 1), {}),
    ((3, 64, 5, 7), (70, 64, 1, 1), {}),
    ((3, 64, 4, 2), (33, 64, 3, 2), {"padding": 1}),
    ((5, 40, 9, 14), (33, 40, 3, 3), {"stride": 2, "padding": (1, 0)}),
    ((2, 40, 15, 14), (65, 40, 1, 1), {"stride": 2}),
    ((2, 40, 15, 24), (65, 40, 1, 1), {"stride": (2, 3), "padding": 1}),
    ((5, 64, 3, 2), (40, 64, 3, 3), {"padding": 2, "dilation": 2}),
    ((2, 40, 15, 14), (64, 40, 3, 3), {"padding": 1, "stride": 2}),
    ((9, 96, 1, 1), (50, 96, 1, 1), {}),
    ((9, 96, 3, 3), (50, 96, 1, 1), {}),
    # im2col of some samples at a time, the last of them fewer: gradients of weights, long strides, large kernels, many channels
    ((5, 64, 24, 24), (40, 64, 4, 4), {"stride": 2}),
    ((5, 64, 44, 46), (40, 64, 4, 4), {"stride": 4, "padding": 1}),
    ((3, 3, 160, 150), (24, 3, 16, 16), {"stride": (8, 5), "padding": (0, 3)}),
    ((3, 256, 19, 20), (24, 256, 3, 3), {"stride": 2, "dilation": (1, 2)}),
    # few outputs, whose gradients of weights are sums over positions
    ((4, 20, 40, 41), (2, 20, 1, 1), {}),
    ((2, 20, 30, 37), (3, 20, 5, 5), {"padding": 2}),
    ((3, 8, 20, 31), (8, 8, 7, 7), {"padding": 3}),
    ((2, 24, 25, 33), (10, 12, 3, 3), {"groups": 2, "stride": 2}),
    ((2, 9, 40, 33), (1, 9, 3, 3), {"padding": 1}),
    ((2, 60, 24, 23), (7, 60, 3, 3), {}),
]


@pytest.mark.parametrize("last", [False, True], ids=["NCHW", "channels_last"])
@pytest.mark.parametrize("x,w,options", METHODS)
def test_methods_in_single_precision(x, w, options, last):
    operands = [torch.randn(size, generator=torch.Generator().manual_seed(len(size))) for size in (x, w)]
    if last:
        operands = [t.contiguous(memory_format=torch.channels_last) for t in operands]
    operands = [t.requires_grad_() for t in (*operands, torch.randn(w[0]))]
    compare(trt.conv2d, F.conv2d, *operands, tolerance=2e-4, **options)


@pytest.mark.parametrize("x,w,options", METHODS[-6:])
def test_few_outputs_in_double_precision(x, w, options):
    operands = [torch.randn(size, generator=torch.Generator().manual_seed(len(size)), dtype=torch.float64).requires_grad_() for size in (x, w)]
    compare(trt.conv2d, F.conv2d, *operands, tolerance=1e-10, **options)


@pytest.mark.parametrize("last", [False, True], ids=["NCHW", "channels_last"])
def test_taps_in_the_padding_are_not_multiplied(last):
    """Of a kernel of 7x7 on maps of 2x2 only 3x3 taps ever meet the map: what the others hold has no consequence."""
    x, w, dy = (torch.randn(size, generator=torch.Generator().manual_seed(7)) for size in ((8, 16, 2, 2), (24, 16, 7, 7), (8, 24, 2, 2)))
    inner = w[:, :, 2:5, 2:5].clone()
    w[:] = float("nan")
    w[:, :, 2:5, 2:5] = inner
    if last:
        x, w = x.contiguous(memory_format=torch.channels_last), w.contiguous(memory_format=torch.channels_last)
    a, b = ours(x).requires_grad_(), ours(w).requires_grad_()
    y = trt.conv2d(a, b, padding=3)
    y.backward(ours(dy))
    p, q = x.double().requires_grad_(), inner.double().requires_grad_()
    expected = F.conv2d(p, q, padding=1)
    expected.backward(dy.double())
    for got, want in ((y.detach(), expected), (a.grad, p.grad), (b.grad[:, :, 2:5, 2:5], q.grad)):
        assert abs(got.numpy() - want.detach().numpy()).max() < 1e-4
    assert not b.grad[:, :, :2].any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("x,w,options", [METHODS[6], METHODS[-11], METHODS[-9], METHODS[-8], METHODS[-7]])
def test_gemm_of_halves(x, w, options, dtype):
    """1x1 kernels and small images are multiplied without widening: float32 sums, rounded once."""
    operands = [torch.randn(size, generator=torch.Generator().manual_seed(len(size))).to(dtype).requires_grad_() for size in (x, w, w[:1])]
    y = F.conv2d(*(t.double() for t in operands), **options)
    cotangent = torch.randn(y.shape, generator=torch.Generator().manual_seed(1)).to(dtype)
    exact = [y, *torch.autograd.grad(y, operands, cotangent.double())]
    mine = [ours(t) for t in operands]
    result = trt.conv2d(*mine, **options)
    eps = torch.finfo(dtype).eps
    for got, want in zip([result, *trt.autograd.grad(result, mine, ours(cotangent))], exact, strict=True):
        error = (torch.tensor(got.double().tolist(), dtype=torch.float64) - want.double()).abs()
        assert (error <= eps * (want.double().abs() + 0.05 * want.double().abs().max())).all()


@pytest.mark.parametrize("samples,side", [(2, 16), (32, 5), (32, 2)])
def test_error_of_winograd(samples, side):
    """Root mean square error within twice that of one chain of additions over all 9 * 64 products."""
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(samples, 64, side, side, generator=generator), torch.randn(32, 64, 3, 3, generator=generator)
    exact = F.conv2d(x.double(), w.double(), padding=1)
    got = torch.tensor(trt.conv2d(ours(x), ours(w), padding=1).tolist(), dtype=torch.float64)
    columns, rows = F.unfold(x, 3, padding=1), w.reshape(32, -1)
    chain = torch.zeros(samples, 32, side * side)
    for k in range(9 * 64):
        chain = (chain.double() + rows[:, k, None].double() * columns[:, None, k].double()).float()
    error = (chain.reshape(exact.shape).double() - exact).square().mean().sqrt()
    assert 0 < (got - exact).square().mean().sqrt() < 2 * error


def test_strided_input():
    x = ours(normal(2, 8, 9, 9, grad=False))[:, ::2, 1:, :-1]
    want = F.conv2d(normal(2, 8, 9, 9, grad=False)[:, ::2, 1:, :-1], normal(3, 4, 3, 3, grad=False))
    same(trt.conv2d(x, ours(normal(3, 4, 3, 3, grad=False))), want)


def test_empty():
    compare(trt.conv2d, F.conv2d, normal(0, 3, 5, 5), normal(4, 3, 3, 3), normal(4))
    assert trt.conv2d(trt.zeros(1, 2, 5, 5), trt.zeros(4, 2, 3, 3), trt.ones(4)).sum().item() == 36


@pytest.mark.usefixtures("split_small_work")
@pytest.mark.parametrize("x,w,options", [((8, 16, 20, 20), (32, 16, 3, 3), {"padding": 1}), ((300, 24, 2, 2), (40, 24, 3, 3), {"padding": 1}), ((1, 64, 9, 8), (72, 64, 1, 1), {}), ((3, 64, 9, 8), (40, 64, 3, 3), {"stride": 2}), ((150, 40, 5, 5), (48, 40, 5, 5), {"padding": 2}), ((9, 40, 8, 8), (48, 40, 3, 3), {"stride": 2, "padding": 1}), ((4, 20, 30, 37), (3, 20, 5, 5), {"padding": 2}), ((5, 64, 44, 46), (40, 64, 4, 4), {"stride": 4}), ((3, 64, 15, 13), (3, 64, 1, 1), {})])
def test_threads_do_not_change_results(x, w, options):
    x, w = ours(normal(*x, dtype=torch.float32)), ours(normal(*w, dtype=torch.float32))
    before, runs = trt.get_num_threads(), []
    try:
        for threads in (1, 2):
            trt.set_num_threads(threads)
            y = trt.conv2d(x, w, **options)
            runs.append([t.tolist() for t in (y, *trt.autograd.grad(y, [x, w], trt.ones_like(y)))])
    finally:
        trt.set_num_threads(before)
    assert runs[0] == runs[1]


def test_meta():
    y = trt.conv2d(trt.empty(2, 3, 8, 8, device="meta"), trt.empty(4, 3, 3, 3, device="meta"), stride=2)
    assert tuple(y.shape) == (2, 4, 3, 3)
    assert y.device.type == "meta"


@pytest.mark.parametrize(
    "x,w,options,text",
    [
        ((2, 4, 8, 8), (4, 3, 3, 3), {}, "to have 3 channels, but got 4 channels"),
        ((2, 3, 2, 2), (4, 3, 3, 3), {}, "Kernel size can't be greater than actual input size"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"stride": 0}, "non-positive stride"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"padding": -1}, "negative padding"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"dilation": 0}, "dilation should be greater than zero"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"groups": 0}, "non-positive groups"),
        ((2, 4, 8, 8), (5, 2, 3, 3), {"groups": 2}, "divisible by 2"),
        ((8, 8), (4, 3, 3, 3), {}, "Expected 3D \\(unbatched\\) or 4D"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"stride": (1, 2, 3)}, "stride"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"padding": "same", "stride": 2}, "not supported for strided"),
        ((2, 3, 8, 8), (4, 3, 3, 3), {"padding": 1 << 60}, "too large"),
    ],
)
def test_errors(x, w, options, text):
    with pytest.raises(RuntimeError, match=text):
        trt.conv2d(trt.zeros(x), trt.zeros(w), **options)


def test_gradient_kernels_check_sizes():
    for mask in ([True, False, False], [False, True, False]):
        with pytest.raises(RuntimeError, match="expected a gradient of size"):
            _ops.convolution_backward(trt.zeros(1, 4, 9, 9), trt.zeros(1, 3, 5, 5), trt.zeros(4, 3, 3, 3), None, 1, 0, 1, False, 0, 1, mask)
