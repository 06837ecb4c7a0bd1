"""Convolution kernels: forward and both gradients against NumPy in float64, and across splits."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import kernel_library as kl

PROBLEM = (
    "samples c_in in_h in_w c_out out_h out_w kernel_h kernel_w stride_h stride_w pad_h pad_w dilation_h dilation_w groups "
    "last w_first w_group w_out w_in w_tap"
).split()
P, N = kl.pointer, kl.i64
FORWARD, INPUT, WEIGHT = range(3)


class Problem(ctypes.Structure):
    _fields_ = [(field, ctypes.c_int64) for field in PROBLEM]


class Work(ctypes.Structure):
    _fields_ = [
        ("problem", Problem),
        ("direction", ctypes.c_int64),
        *[(field, ctypes.c_void_p) for field in ("a", "b", "bias", "out")],
        *[(field, ctypes.c_int64) for field in ("method", "phases", "shared_bytes", "workspace_bytes", "block", "chunk", "splits")],
        ("shared", ctypes.c_void_p),
    ]


def make_shape(samples, c_in, h, w, c_out, kernel, stride=(1, 1), pad=(0, 0), dilation=(1, 1), groups=1):
    sizes = zip((h, w), kernel, stride, pad, dilation)
    out = [(size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in sizes]
    return Problem(samples, c_in, h, w, c_out, *out, *kernel, *stride, *pad, *dilation, groups)


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
    make_shape(2, 19, 13, 22, 21, (3, 3), (1, 1), (1, 1)),
    make_shape(3, 70, 9, 7, 66, (3, 3), (1, 1), (0, 2)),
    make_shape(1, 16, 16, 390, 17, (3, 3), (1, 1), (1, 1)),
    make_shape(2, 33, 10, 9, 40, (3, 3), (2, 2), (1, 1)),
    make_shape(2, 6, 9, 9, 3, (3, 3), (1, 1), (1, 1), (1, 1), 3),
    make_shape(2, 19, 15, 17, 19, (3, 3), (2, 2), (1, 1), (1, 1), 19),
    make_shape(1, 34, 5, 700, 6, (2, 3), (1, 1), (0, 1), (1, 2)),
    make_shape(1, 5, 4, 4, 6, (3, 3), (1, 1), (3, 3)),
    make_shape(3, 80, 12, 9, 130, (1, 1)),
    make_shape(0, 3, 5, 5, 2, (3, 3)),
    make_shape(2, 33, 9, 15, 33, (5, 5), (1, 1), (2, 2), (1, 1), 33),
    make_shape(1, 16, 9, 9, 16, (7, 7), (1, 1), (3, 3), (1, 1), 16),
    make_shape(1, 20, 17, 16, 20, (5, 5), (2, 2), (2, 2), (1, 1), 20),
    make_shape(1, 16, 12, 23, 16, (3, 3), (2, 2), (0, 1), (1, 1), 16),
    make_shape(1, 16, 12, 11, 16, (3, 3), (1, 1), (3, 3), (1, 2), 16),
    make_shape(1, 5, 21, 70, 20, (4, 4), (2, 2), (1, 1)),
    # Winograd's tiles: fewer than the kernel's output channels, with a rest of every block; so many that their transforms come in chunks
    make_shape(5, 150, 4, 3, 69, (3, 3), (1, 1), (1, 1)),
    make_shape(1, 65, 7, 9, 70, (3, 3), (1, 1), (2, 1)),
    make_shape(1, 17, 60, 390, 18, (3, 3), (1, 1), (1, 1)),
    # maps that are one tile
    make_shape(7, 70, 2, 2, 35, (3, 3), (1, 1), (1, 1)),
    make_shape(200, 33, 2, 2, 18, (3, 3), (1, 1), (1, 1)),
    make_shape(5, 17, 5, 5, 66, (3, 3), (1, 1), (1, 1)),
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
            y[:, o][:, :, oh, ow] += np.einsum("oi,nihw->nohw", w, xs, optimize=True)
            dx[:, i][:, :, r, c] += np.einsum("oi,nohw->nihw", w, gs, optimize=True)
            dw[o, :, kh, kw] += np.einsum("nohw,nihw->oi", gs, xs, optimize=True)
    return y, dx, dw


def aligned(size):
    raw = np.full(size + 64, 0xFF, np.uint8)  # NaN bits: reading what was never written shows
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def in_layout(array, last):
    """The array's elements in memory order of the layout: (N, C, H, W) or (N, H, W, C)."""
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1) if last else array)


def run(shape, direction, last, dtype, a, b, bias, out, cut):
    """One pass through the table, with the item ranges of `cut(items)` and a fresh workspace for each range."""
    plan, items, run_items = kl.flat_table("conv_table", 6)[3 * (dtype == "f64") :][:3]
    s = Problem.from_buffer_copy(shape)
    ins, taps = s.c_in // s.groups, s.kernel_h * s.kernel_w
    s.last, s.w_out, s.w_group = last, ins * taps, s.c_out // s.groups * ins * taps
    s.w_in, s.w_tap = (1, ins) if last else (taps, 1)
    work = Work(s, direction, kl.address(a), kl.address(b), kl.address(bias), kl.address(out))
    at = ctypes.addressof(work)
    kl.function(plan, P)(at)
    shared = aligned(work.shared_bytes)
    work.shared = kl.address(shared)
    for phase in range(work.phases):
        for begin, end in cut(ctypes.CFUNCTYPE(N, P, N)(items)(at, phase)):
            workspace = aligned(work.workspace_bytes)
            kl.function(run_items, P, N, P, N, N)(at, phase, kl.address(workspace), begin, end)


def convolve(s, dtype, last, x, weight, bias, grad, cut):
    """y, dx and dw, as (N, C, H, W)."""
    sources = [in_layout(v, last) for v in (x, weight, grad)]
    y, dx, dw = np.full_like(sources[2], 7), np.full_like(sources[0], 7), np.full_like(sources[1], 7)
    x, weight, grad = sources
    run(s, FORWARD, last, dtype, x, weight, bias, y, cut)
    run(s, INPUT, last, dtype, grad, weight, None, dx, cut)
    run(s, WEIGHT, last, dtype, grad, x, None, dw, cut)
    return [v.transpose(0, 3, 1, 2) if last else v for v in (y, dx, dw)]


@pytest.mark.parametrize("last", [False, True], ids=["NCHW", "channels_last"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("index", range(len(SHAPES)))
def test_convolution(dtype, index, last):
    s = SHAPES[index]
    rng = np.random.default_rng(index)
    x = kl.sample(rng, (s.samples, s.c_in, s.in_h, s.in_w), dtype)
    weight = kl.sample(rng, (s.c_out, s.c_in // s.groups, s.kernel_h, s.kernel_w), dtype)
    grad = kl.sample(rng, (s.samples, s.c_out, s.out_h, s.out_w), dtype)
    for bias in (None, kl.sample(rng, (s.c_out,), dtype)):
        results = convolve(s, dtype, last, x, weight, bias, grad, lambda items: [(0, items)])
        for actual, expected in zip(results, reference(s, x, weight, bias, grad)):
            scale = abs(expected).max(initial=1.0)
            np.testing.assert_allclose(actual, expected, rtol=0, atol=4 * scale * kl.TOLERANCE[dtype])
        for split in (1, 2):
            again = convolve(s, dtype, last, x, weight, bias, grad, lambda items: kl.splits(items)[split] if items else [])
            assert [v.tobytes() for v in again] == [v.tobytes() for v in results]


def test_a_transformed_kernel_larger_than_the_caches():
    """Its transform is written past them: every element has arrived when the products begin."""
    s = make_shape(1, 342, 16, 16, 342, (3, 3), (1, 1), (1, 1))
    rng = np.random.default_rng(0)
    x, weight = kl.sample(rng, (1, 342, 16, 16), "f32"), kl.sample(rng, (342, 342, 3, 3), "f32")
    y = np.full((1, 342, 16, 16), np.nan, np.float32)
    run(s, FORWARD, False, "f32", x, weight, None, y, lambda items: [(0, items)])
    padded = np.pad(x[0].astype(np.float64), [(0, 0), (1, 1), (1, 1)])
    columns = np.stack([padded[:, h : h + 16, w : w + 16] for h in range(3) for w in range(3)], 1).reshape(342 * 9, 256)
    expected = (weight.reshape(342, 342 * 9).astype(np.float64) @ columns).reshape(y.shape)
    np.testing.assert_allclose(y, expected, rtol=0, atol=4 * abs(expected).max() * kl.TOLERANCE["f32"])
