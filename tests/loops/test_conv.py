"""Convolution kernels: forward and both gradients against NumPy in float64, and across splits."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import kernel_library as kl

FIELDS = (
    "samples c_in in_h in_w c_out out_h out_w kernel_h kernel_w stride_h stride_w pad_h pad_w dilation_h dilation_w groups"
).split()
P, N = kl.pointer, kl.i64


class Shape(ctypes.Structure):
    _fields_ = [(field, ctypes.c_int64) for field in FIELDS]


def make_shape(samples, c_in, h, w, c_out, kernel, stride=(1, 1), pad=(0, 0), dilation=(1, 1), groups=1):
    sizes = zip((h, w), kernel, stride, pad, dilation)
    out = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in sizes]
    return Shape(samples, c_in, h, w, c_out, *out, *kernel, *stride, *pad, *dilation, groups)


# each row is one shape: few channels, pointwise, strided, dilated, grouped, depthwise, tails of every blocking
SHAPES = [
    make_shape(1, 1, 1, 1, 1, (1, 1)),
    make_shape(2, 3, 9, 11, 5, (3, 3)),
    make_shape(1, 3, 40, 37, 30, (7, 7), (2, 2), (3, 3)),
    make_shape(2, 5, 8, 9, 14, (1, 1)),
    make_shape(1, 4, 7, 6, 3, (1, 1), (2, 2)),
    make_shape(2, 40, 9, 10, 33, (3, 3), (1, 1), (1, 1)),
    make_shape(1, 6, 12, 13, 7, (3, 2), (1, 2), (2, 1), (2, 3)),
    make_shape(2, 6, 13, 12, 12, (3, 3), (2, 2), (1, 1), (1, 1), 3),
    make_shape(2, 5, 9, 40, 5, (3, 3), (1, 1), (1, 1), (1, 1), 5),
    make_shape(1, 4, 12, 12, 8, (5, 5), (2, 2), (2, 2), (1, 1), 4),
    make_shape(1, 2, 6, 7, 4, (3, 3), (3, 3), (4, 4), (1, 1), 2),
    make_shape(1, 2, 300, 3, 2, (3, 3), (1, 1), (1, 1)),
    make_shape(0, 3, 5, 5, 2, (3, 3)),
]


def windows(s):
    """(kh, kw, input rows, input columns, output rows, output columns) with every index inside."""
    for kh, kw in np.ndindex(s.kernel_h, s.kernel_w):
        rows = np.arange(s.out_h) * s.stride_h - s.pad_h + kh * s.dilation_h
        cols = np.arange(s.out_w) * s.stride_w - s.pad_w + kw * s.dilation_w
        oh, ow = np.flatnonzero((rows >= 0) & (rows < s.in_h)), np.flatnonzero((cols >= 0) & (cols < s.in_w))
        yield kh, kw, np.ix_(rows[oh], cols[ow]), np.ix_(oh, ow)


def reference(s, x, weight, bias, grad):
    x, weight, grad = (v.astype(np.float64) for v in (x, weight, grad))
    y = np.zeros(grad.shape) + (0 if bias is None else bias.astype(np.float64)[:, None, None])
    dx, dw = np.zeros(x.shape), np.zeros(weight.shape)
    ins, outs = s.c_in // s.groups, s.c_out // s.groups
    for g in range(s.groups):
        i, o = slice(g * ins, (g + 1) * ins), slice(g * outs, (g + 1) * outs)
        for kh, kw, (r, c), (oh, ow) in windows(s):
            w = weight[o, :, kh, kw]
            xs, gs = x[:, i][:, :, r, c], grad[:, o][:, :, oh, ow]
            y[:, o][:, :, oh, ow] += np.einsum("oi,nihw->nohw", w, xs)
            dx[:, i][:, :, r, c] += np.einsum("oi,nohw->nihw", w, gs)
            dw[o, :, kh, kw] += np.einsum("nohw,nihw->oi", gs, xs)
    return y, dx, dw


def aligned(size):
    raw = np.full(size + 64, 0xFF, np.uint8)  # NaN bits: reading what was never written shows
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def convolve(s, dtype, x, weight, bias, grad, cut):
    """Runs the three kernels with the item ranges of `cut(items)`, a fresh workspace for each range."""
    k = kl.table("conv_table", 1, 10)[0][kl.DTYPES.index(dtype)]
    shape, a = ctypes.addressof(s), kl.address
    packed_bytes, workspace_bytes, *items = [ctypes.CFUNCTYPE(N, P)(address)(shape) for address in k[:5]]
    packed = aligned(packed_bytes)
    y, dx, dw = np.full(grad.shape, 7, x.dtype), np.full(x.shape, 7, x.dtype), np.full(weight.shape, 7, x.dtype)
    steps = [
        (k[5], k[7], 7, (a(x), a(packed), a(weight), a(bias), a(y)), items[0]),
        (k[6], k[8], 6, (a(grad), a(packed), a(weight), a(dx)), items[1]),
        (None, k[9], 5, (a(grad), a(x), a(dw)), items[2]),
    ]
    for pack, kernel, pointers, arrays, count in steps:
        if pack:
            kl.function(pack, P, P, P)(shape, a(weight), a(packed))
        for begin, end in cut(count):
            workspace = aligned(workspace_bytes)
            kl.function(kernel, *[P] * pointers, N, N)(shape, *arrays, a(workspace), begin, end)
    return y, dx, dw


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("index", range(len(SHAPES)))
def test_convolution(dtype, index):
    s = SHAPES[index]
    rng = np.random.default_rng(index)
    x = kl.sample(rng, (s.samples, s.c_in, s.in_h, s.in_w), dtype)
    weight = kl.sample(rng, (s.c_out, s.c_in // s.groups, s.kernel_h, s.kernel_w), dtype)
    grad = kl.sample(rng, (s.samples, s.c_out, s.out_h, s.out_w), dtype)
    for bias in (None, kl.sample(rng, (s.c_out,), dtype)):
        results = convolve(s, dtype, x, weight, bias, grad, lambda items: [(0, items)])
        for actual, expected in zip(results, reference(s, x, weight, bias, grad)):
            scale = abs(expected).max(initial=1.0)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=4 * scale * kl.TOLERANCE[dtype])
        for split in (1, 2):
            again = convolve(s, dtype, x, weight, bias, grad, lambda items: kl.splits(items)[split] if items else [])
            assert [v.tobytes() for v in again] == [v.tobytes() for v in results]
