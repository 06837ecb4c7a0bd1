"""Pooling kernels against plain NumPy loops in float64, in both layouts, and across splits."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import kernel_library as kl

FIELDS = (
    "channels in_h in_w out_h out_w kernel_h kernel_w stride_h stride_w pad_h pad_w dilation_h dilation_w "
    "count_include_pad divisor_override"
).split()
PLANES, LAST = 0, 1


class Shape(ctypes.Structure):
    _fields_ = [*((field, ctypes.c_int64) for field in FIELDS), ("last", ctypes.c_int), ("adaptive", ctypes.c_int)]


def out_size(size, kernel, stride, pad, dilation, ceil_mode):
    """PyTorch's output size: with ceil_mode the last window still starts inside the input or its left padding."""
    span = size + 2 * pad - dilation * (kernel - 1) - 1
    out = (-(-span // stride) if ceil_mode else span // stride) + 1
    return out - 1 if ceil_mode and (out - 1) * stride >= size + pad else out


def shape_of(x, kernel, stride, pad=0, dilation=1, ceil_mode=False, include_pad=True, divisor=0, out=None):
    _, channels, h, w = x.shape
    out_h, out_w = out or (out_size(size, kernel, stride, pad, dilation, ceil_mode) for size in (h, w))
    values = (channels, h, w, out_h, out_w, kernel, kernel, stride, stride, pad, pad, dilation, dilation)
    return Shape(*values, include_pad, divisor)


def windows(s, oh, ow):
    for kh in range(s.kernel_h):
        for kw in range(s.kernel_w):
            h, w = oh * s.stride_h - s.pad_h + kh * s.dilation_h, ow * s.stride_w - s.pad_w + kw * s.dilation_w
            if 0 <= h < s.in_h and 0 <= w < s.in_w:
                yield h, w


def to_layout(x, layout):
    return np.ascontiguousarray(x if layout == PLANES else x.transpose(0, 2, 3, 1))


def from_layout(x, layout):
    return x if layout == PLANES else x.transpose(0, 3, 1, 2)


def call(table, dtype, field, arrays, s, items, parts=None):
    address = kl.table(table, 1, 4)[0][kl.DTYPES.index(dtype)][field]
    types = [kl.pointer] * (len(arrays) + 1) + [kl.i64, kl.i64]
    for begin, end in parts or [(0, items)]:
        kl.function(address, *types)(*[kl.address(v) for v in arrays], ctypes.addressof(s), begin, end)


CASES = [(2, 2, 0, 1, False), (3, 2, 1, 1, False), (3, 1, 1, 2, False), (3, 2, 1, 1, True), (2, 3, 1, 1, True), (1, 1, 0, 1, False)]


@pytest.mark.parametrize("dtype", kl.REALS[3:])  # smaller integers are converted
@pytest.mark.parametrize("layout", [PLANES, LAST])
@pytest.mark.parametrize("case", CASES)
def test_max_pool(dtype, layout, case):
    kernel, stride, pad, dilation, ceil_mode = case
    x = kl.sample(np.random.default_rng(0), (2, 3, 9, 20), dtype)
    values = kl.decode(x, dtype).copy()
    if dtype in kl.FLOATS:
        values[0, 1, 4, 5] = np.nan
        values[1, 0] = -np.inf
        x = kl.encode(values, dtype)
    s = shape_of(x, kernel, stride, pad, dilation, ceil_mode)
    out_shape = (2, 3, s.out_h, s.out_w)
    expected, where = np.empty(out_shape, values.dtype), np.empty(out_shape, np.int64)
    for n, c, oh, ow in np.ndindex(*out_shape):
        best, at = None, None
        for h, w in windows(s, oh, ow):
            v = values[n, c, h, w]
            if best is None or v > best or v != v:
                best, at = v, h * s.in_w + w
        expected[n, c, oh, ow], where[n, c, oh, ow] = best, at
    source = to_layout(x, layout)
    out = to_layout(np.zeros(out_shape, x.dtype), layout)
    indices = np.zeros(out.shape, np.int64)
    items = 6 if layout == PLANES else 2 * s.out_h
    for parts in kl.splits(items):
        call("max_pool_table", dtype, layout, (source, out, indices), s, items, parts)
        np.testing.assert_array_equal(kl.decode(from_layout(out, layout), dtype), expected)
        np.testing.assert_array_equal(from_layout(indices, layout), where)
    grad = to_layout(kl.encode(np.random.default_rng(1).integers(0, 4, out_shape), dtype), layout)
    grad_in = np.full(source.shape, 1, x.dtype)
    wide = from_layout(kl.decode(grad, dtype), layout)
    gradient = np.zeros((2, 3, s.in_h * s.in_w), wide.dtype)
    for n, c, oh, ow in np.ndindex(*out_shape):
        gradient[n, c, where[n, c, oh, ow]] += wide[n, c, oh, ow]
    items = 6 if layout == PLANES else 2
    for parts in kl.splits(items):
        call("max_pool_table", dtype, layout + 2, (grad, indices, grad_in), s, items, parts)
        np.testing.assert_array_equal(kl.decode(from_layout(grad_in, layout), dtype), gradient.reshape(x.shape))


@pytest.mark.parametrize("layout", [PLANES, LAST])
def test_max_pool_of_rows_and_channels_longer_than_a_block(layout):
    shape = (1, 1, 3, 1300) if layout == PLANES else (1, 1100, 3, 3)
    x = kl.sample(np.random.default_rng(2), shape, "f32")
    s = shape_of(x, 2, 1)
    expected = np.maximum.reduce([x[..., i : i + s.out_h, j : j + s.out_w] for i in (0, 1) for j in (0, 1)])
    out = to_layout(np.zeros(expected.shape, np.float32), layout)
    call("max_pool_table", "f32", layout, (to_layout(x, layout), out, None), s, 1 if layout == PLANES else s.out_h)
    np.testing.assert_array_equal(from_layout(out, layout), expected)


def average_matrix(s, adaptive):
    """(out_h * out_w, in_h * in_w) matrix that averages; the backward is its transpose."""
    matrix = np.zeros((s.out_h, s.out_w, s.in_h, s.in_w))
    for oh, ow in np.ndindex(s.out_h, s.out_w):
        if adaptive:
            rows = slice(oh * s.in_h // s.out_h, -(-(oh + 1) * s.in_h // s.out_h))
            cols = slice(ow * s.in_w // s.out_w, -(-(ow + 1) * s.in_w // s.out_w))
            matrix[oh, ow, rows, cols] = 1 / ((rows.stop - rows.start) * (cols.stop - cols.start))
            continue
        inside = list(windows(s, oh, ow))
        h0, w0 = oh * s.stride_h - s.pad_h, ow * s.stride_w - s.pad_w
        padded = (min(h0 + s.kernel_h, s.in_h + s.pad_h) - h0) * (min(w0 + s.kernel_w, s.in_w + s.pad_w) - w0)
        divisor = s.divisor_override or (padded if s.count_include_pad else len(inside))
        for h, w in inside:
            matrix[oh, ow, h, w] = 1 / divisor
    return matrix.reshape(s.out_h * s.out_w, -1)


def check_average(table, dtype, layout, x, s, adaptive):
    matrix, out_shape = average_matrix(s, adaptive), (2, 3, s.out_h, s.out_w)
    source, out = to_layout(x, layout), to_layout(np.zeros(out_shape, x.dtype), layout)
    expected = (kl.decode(x, dtype).reshape(6, -1) @ matrix.T).reshape(out_shape)
    items = 6 if layout == PLANES else 2 * s.out_h
    reference = None
    for parts in kl.splits(items):
        call(table, dtype, layout, (source, out), s, items, parts)
        reference = reference or out.tobytes()
        assert out.tobytes() == reference
    kl.assert_close(kl.decode(from_layout(out, layout), dtype), expected, dtype, 4)
    grad = kl.sample(np.random.default_rng(3), out_shape, dtype)
    gradient = (kl.decode(grad, dtype).reshape(6, -1) @ matrix).reshape(x.shape)
    grad_in = np.full(source.shape, 1, x.dtype)
    items, reference = 6 if layout == PLANES else 2 * s.in_h, None
    for parts in kl.splits(items):
        call(table, dtype, layout + 2, (to_layout(grad, layout), grad_in), s, items, parts)
        reference = reference or grad_in.tobytes()
        assert grad_in.tobytes() == reference
    kl.assert_close(kl.decode(from_layout(grad_in, layout), dtype), gradient, dtype, 8)


@pytest.mark.parametrize("dtype", kl.FLOATS)
@pytest.mark.parametrize("layout", [PLANES, LAST])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("include_pad,divisor", [(True, 0), (False, 0), (True, 3)])
def test_avg_pool(dtype, layout, case, include_pad, divisor):
    kernel, stride, pad, _, ceil_mode = case
    x = kl.sample(np.random.default_rng(4), (2, 3, 9, 20), dtype)
    s = shape_of(x, kernel, stride, pad, 1, ceil_mode, include_pad, divisor)
    check_average("avg_pool_table", dtype, layout, x, s, adaptive=False)


@pytest.mark.parametrize("dtype", kl.FLOATS)
@pytest.mark.parametrize("layout", [PLANES, LAST])
@pytest.mark.parametrize("out", [(1, 1), (4, 7), (9, 20), (11, 23)])
def test_adaptive_avg_pool(dtype, layout, out):
    x = kl.sample(np.random.default_rng(5), (2, 3, 9, 20), dtype)
    check_average("adaptive_avg_pool_table", dtype, layout, x, shape_of(x, 1, 1, out=out), adaptive=True)
