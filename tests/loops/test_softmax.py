"""softmax, log_softmax, cross entropy, forward and backward: against NumPy in float64, and across splits."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import kernel_library as kl

ROWS = (kl.pointer, kl.i64, kl.pointer) + (kl.i64,) * 4
COLS = (kl.pointer, kl.i64, kl.i64, kl.pointer) + (kl.i64,) * 6
APPLY = (kl.pointer, kl.pointer, kl.i64, kl.i64, ctypes.c_double, ctypes.c_double)
BACKWARD_ROWS = (kl.pointer, kl.i64) * 3 + (kl.i64,) * 3
BACKWARD_COLS = (kl.pointer, kl.i64, kl.i64) * 3 + (kl.i64,) * 4
OPS = kl.operations("reduction", "SOFTMAX")
REDUCTIONS = kl.operations("reduction", "REDUCE")
CASES = [(op, dtype) for op in OPS for dtype in kl.FLOATS]
COLUMNS = 256


def kernel(op, dtype, field, argtypes):
    return kl.function(kl.table("softmax_table", 2, 5)[OPS.index(op)][kl.DTYPES.index(dtype)][field], *argtypes)


def softmax(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def log_softmax(x, axis):
    d = x - x.max(axis, keepdims=True)
    return d - np.log(np.exp(d).sum(axis, keepdims=True))


REFERENCE = {"softmax": softmax, "log_softmax": log_softmax}


def forward_rows(op, dtype, x, parts=None):
    out = np.empty(x.shape, x.dtype)
    for begin, end in parts or [(0, x.shape[0])]:
        args = (kl.address(x), x.strides[0], kl.address(out), out.strides[0], x.shape[1], begin, end)
        kernel(op, dtype, 0, ROWS)(*args)
    return out


def items(outer, inner):
    return outer * -(-inner // COLUMNS)


def forward_cols(op, dtype, x, parts=None):
    out = np.empty(x.shape, x.dtype)
    outer, n, inner = x.shape
    for begin, end in parts or [(0, items(outer, inner))]:
        args = (kl.address(x), *x.strides[:2], kl.address(out), *out.strides[:2], n, inner, begin, end)
        kernel(op, dtype, 1, COLS)(*args)
    return out


def backward_rows(op, dtype, grad, result, parts=None):
    out = np.empty(grad.shape, grad.dtype)
    arrays = [v for a in (grad, result, out) for v in (kl.address(a), a.strides[0])]
    for begin, end in parts or [(0, grad.shape[0])]:
        kernel(op, dtype, 3, BACKWARD_ROWS)(*arrays, grad.shape[1], begin, end)
    return out


def backward_cols(op, dtype, grad, result, parts=None):
    out = np.empty(grad.shape, grad.dtype)
    outer, n, inner = grad.shape
    arrays = [v for a in (grad, result, out) for v in (kl.address(a), *a.strides[:2])]
    for begin, end in parts or [(0, items(outer, inner))]:
        kernel(op, dtype, 4, BACKWARD_COLS)(*arrays, n, inner, begin, end)
    return out


def close(op, dtype, actual, expected):
    relative = 4 if op == "log_softmax" else 2
    np.testing.assert_allclose(kl.decode(actual, dtype), expected, rtol=kl.TOLERANCE[dtype] * relative, atol=1e-6)


@pytest.mark.parametrize("op,dtype", CASES)
def test_rows(op, dtype):
    rng = np.random.default_rng(0)
    for rows, n in ((3, 1), (2, 7), (4, 16), (3, 100), (2, 1025), (2, 5000), (1, 70000)):
        x = kl.encode(4 * rng.standard_normal((rows, n + 3)), dtype)[:, :n]
        close(op, dtype, forward_rows(op, dtype, x), REFERENCE[op](kl.decode(x, dtype), 1))
    assert forward_rows(op, dtype, kl.sample(rng, (3, 0), dtype)).size == 0


@pytest.mark.parametrize("op,dtype", CASES)
def test_columns(op, dtype):
    rng = np.random.default_rng(1)
    for shape in ((2, 1, 3), (1, 5, 300), (3, 70, 7), (2, 300, 257), (9, 40, 8), (11, 65, 8), (30, 20, 5), (2, 5000, 3), (2, 24, 100), (1, 5003, 15), (3, 4097, 1)):
        x = kl.encode(4 * rng.standard_normal(shape), dtype)
        close(op, dtype, forward_cols(op, dtype, x), REFERENCE[op](kl.decode(x, dtype), 1))


@pytest.mark.parametrize("op,dtype", CASES)
def test_infinities_stay_in_their_columns(op, dtype):
    """Whatever way a column takes: a maximum of infinity, nothing but -inf and NaN make it NaN, a -inf among others is 0 or -inf."""
    for shape in ((1, 9, 70), (1, 40, 20), (1, 30, 5), (1, 5000, 5)):
        x = np.random.default_rng(6).standard_normal(shape)
        x[0, 3, 0], x[0, :, 1], x[0, -1, 2], x[0, -2, 3] = np.inf, -np.inf, np.nan, -np.inf
        got = kl.decode(forward_cols(op, dtype, kl.encode(x, dtype)), dtype)
        assert np.isnan(got[0, :, :3]).all(), shape
        assert got[0, -2, 3] == (0 if op == "softmax" else -np.inf) and np.isfinite(np.delete(got[0, :, 3], -2)).all() and np.isfinite(got[0, :, 4:]).all(), shape


@pytest.mark.parametrize("op,dtype", CASES)
def test_one_row_cut_between_threads(op, dtype):
    x = kl.sample(np.random.default_rng(2), (50_000,), dtype)
    reductions = kl.table("reduce_table", len(REDUCTIONS), 4)[REDUCTIONS.index("logsumexp")][kl.DTYPES.index(dtype)]
    partials, out, chunk = np.zeros(32 * 13, np.uint8), np.empty_like(x), 4096
    chunks = kl.function(reductions[2], kl.pointer, *[kl.i64] * 3, kl.pointer, kl.i64, kl.i64, kl.pointer)
    chunks(kl.address(x), x.itemsize, x.size, chunk, kl.address(partials), 0, 13, None)
    top, total = ctypes.c_double(), ctypes.c_double()
    address = ctypes.c_size_t.in_dll(kl.library(), f"softmax_combine_{kl.instruction_set()}").value
    kl.function(address, *[kl.pointer, kl.i64, kl.pointer, kl.pointer])(kl.address(partials), 13, ctypes.addressof(top), ctypes.addressof(total))
    for begin, end in ((0, 20_001), (20_001, x.size)):
        kernel(op, dtype, 2, APPLY)(kl.address(x), kl.address(out), begin, end, top.value, total.value)
    close(op, dtype, out, REFERENCE[op](kl.decode(x, dtype), 0))


def gradient(op, grad, result, axis):
    if op == "softmax":
        return result * (grad - (grad * result).sum(axis, keepdims=True))
    return grad - np.exp(result) * grad.sum(axis, keepdims=True)


@pytest.mark.parametrize("op,dtype", CASES)
def test_backward(op, dtype):
    rng = np.random.default_rng(3)
    for shape in ((2, 1, 3), (3, 33, 7), (2, 300, 300), (2, 5003, 3)):
        result = kl.encode(REFERENCE[op](rng.standard_normal(shape), 1), dtype)
        grad = kl.sample(rng, shape, dtype)
        wide = kl.decode(grad, dtype), kl.decode(result, dtype)
        tolerance = {"rtol": 4 * kl.TOLERANCE[dtype], "atol": 20 * kl.TOLERANCE[dtype]}
        actual = kl.decode(backward_cols(op, dtype, grad, result), dtype)
        np.testing.assert_allclose(actual, gradient(op, *wide, 1), **tolerance)
        rows = [np.ascontiguousarray(a.transpose(0, 2, 1).reshape(-1, shape[1])) for a in (grad, result)]
        actual = kl.decode(backward_rows(op, dtype, *rows), dtype)
        expected = gradient(op, *[kl.decode(a, dtype) for a in rows], 1)
        np.testing.assert_allclose(actual, expected, **tolerance)


@pytest.mark.parametrize("op,dtype", CASES)
def test_bits_do_not_depend_on_the_split(op, dtype):
    rng = np.random.default_rng(4)
    x, y = kl.sample(rng, (7, 1100), dtype), kl.sample(rng, (2, 90, 300), dtype)
    whole, columns = forward_rows(op, dtype, x), forward_cols(op, dtype, y)
    back, back_columns = backward_rows(op, dtype, x, whole), backward_cols(op, dtype, y, columns)
    for parts in kl.splits(7):
        assert forward_rows(op, dtype, x, parts).tobytes() == whole.tobytes()
        assert backward_rows(op, dtype, x, whole, parts).tobytes() == back.tobytes()
    for parts in kl.splits(4):
        assert forward_cols(op, dtype, y, parts).tobytes() == columns.tobytes()
        assert backward_cols(op, dtype, y, columns, parts).tobytes() == back_columns.tobytes()


@pytest.mark.parametrize("op,dtype", CASES)
def test_special_values(op, dtype):
    values = np.array([[0.0, -np.inf, 1.0], [-np.inf] * 3, [np.inf, 1.0, 2.0], [np.nan, 1.0, 2.0], [300.0, 0.0, -300.0]])
    x = kl.encode(values, dtype)
    with np.errstate(invalid="ignore", divide="ignore"):
        expected = REFERENCE[op](values, 1)
    for n in (3, 5000):  # the second is the staged and the running-sum path
        wide = np.full((5, n), -np.inf)
        wide[:, :3] = kl.decode(x, dtype)
        close(op, dtype, forward_rows(op, dtype, kl.encode(wide, dtype))[:, :3], expected)
    cube = np.ascontiguousarray(x.T)[None]
    close(op, dtype, forward_cols(op, dtype, cube)[0].T, expected)


def cross_entropy(x, target, weight, ignore, smoothing, dtype, parts):
    rows, classes = x.shape
    outs = [np.full(rows, 7, x.dtype) for _ in range(3)]
    forward, backward = kl.table("cross_entropy_table", 1, 2)[0][kl.DTYPES.index(dtype)]
    types = (kl.pointer, kl.i64, kl.i64, kl.pointer, kl.pointer, kl.i64, ctypes.c_double)
    forward = ctypes.CFUNCTYPE(kl.i64, *types, *[kl.pointer] * 3, kl.i64, kl.i64)(forward)
    tail = (kl.pointer, kl.pointer, kl.i64, ctypes.c_double, kl.pointer, kl.i64, kl.i64, kl.i64)
    backward = ctypes.CFUNCTYPE(kl.i64, *types, *tail)(backward)
    grad, out = np.full(1, 0.5, x.dtype), np.empty_like(x)
    head = (kl.address(x), x.strides[0], classes, kl.address(target), kl.address(weight), ignore, smoothing)
    bad = []
    for begin, end in parts:
        bad.append(forward(*head, *[kl.address(o) for o in outs], begin, end))
        back = (kl.address(outs[1]), kl.address(grad), 0, 2.0, kl.address(out), out.strides[0], begin, end)
        assert backward(*head, *back) == bad[-1]
    return outs, out, bad


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(dtype, smoothing, weighted):
    rng = np.random.default_rng(5)
    for rows, classes in ((5, 1), (6, 10), (3, 3000)):
        x = kl.sample(rng, (rows, classes), dtype)
        target = rng.integers(0, classes, rows)
        target[1] = -100
        weight = np.abs(kl.sample(rng, (classes,), dtype)) if weighted else None
        w = np.ones(classes) if weight is None else weight.astype(np.float64)
        log_p = log_softmax(x.astype(np.float64), 1)
        used = target != -100
        safe = np.where(used, target, 0)
        picked = -log_p[np.arange(rows), safe] * w[safe]
        loss = ((1 - smoothing) * picked - smoothing / classes * (log_p * w).sum(1)) * used
        one_hot = np.eye(classes)[safe]
        expected = (1 - smoothing) * w[safe][:, None] * (np.exp(log_p) - one_hot)
        expected += smoothing / classes * (np.exp(log_p) * w.sum() - w)
        outs, grad, bad = cross_entropy(x, target, weight, -100, smoothing, dtype, [(0, rows)])
        assert bad == [-1]
        tolerance = {"rtol": 10 * kl.TOLERANCE[dtype], "atol": 4 * kl.TOLERANCE[dtype]}
        np.testing.assert_allclose(outs[0], loss, **tolerance)
        np.testing.assert_allclose(outs[2], w[safe] * used, **tolerance)
        np.testing.assert_allclose(grad, expected * used[:, None], **tolerance)
        for parts in kl.splits(rows):
            again, grad_again, _ = cross_entropy(x, target, weight, -100, smoothing, dtype, parts)
            assert [a.tobytes() for a in again] == [o.tobytes() for o in outs]
            assert grad_again.tobytes() == grad.tobytes()


def test_cross_entropy_reports_the_first_target_out_of_range():
    x, target = np.zeros((4, 3), np.float32), np.array([0, 3, -1, 2])
    assert cross_entropy(x, target, None, -100, 0.0, "f32", [(0, 4), (2, 4)])[2] == [1, 2]
