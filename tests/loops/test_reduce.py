"""Reductions and scans: against NumPy in float64, on special values, and bit for bit across splits."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import kernel_library as kl

OPS = kl.operations("reduction", "REDUCE")
SCANS = kl.operations("reduction", "SCAN")
MEAN, SQRT = 1, 2
ROWS = (kl.pointer, kl.i64, kl.i64, kl.i64, kl.pointer, kl.i64, kl.i64, kl.i64, kl.pointer)
COLS = (kl.pointer, kl.i64, kl.i64, kl.pointer, kl.i64, kl.i64, kl.pointer)
CHUNKS = (kl.pointer, kl.i64, kl.i64, kl.i64, kl.pointer, kl.i64, kl.i64, kl.pointer)
COMBINE = (kl.pointer, kl.i64, kl.i64, kl.pointer, kl.pointer)
REAL_OF = {"c64": "f32", "c128": "f64"}


class Params(ctypes.Structure):
    _fields_ = [
        ("p", ctypes.c_double),
        ("correction", ctypes.c_double),
        ("second", ctypes.c_void_p),
        ("second_stride", ctypes.c_int64),
        ("operation", ctypes.c_int),
        ("flags", ctypes.c_int),
        ("reduced", ctypes.c_uint8 * 64),
    ]


def params(p=3.0, correction=1.0, flags=0, second=None):
    block = Params(p, correction, kl.address(second), second.itemsize if second is not None else 0, 0, flags)
    return ctypes.byref(block)


def kernel(op: str, dtype: str, field: int, argtypes):
    address = kl.table("reduce_table", len(OPS), 4)[OPS.index(op)][kl.DTYPES.index(dtype)][field]
    return kl.function(address, *argtypes) if address else None


def out_dtype(op: str, dtype: str) -> str:
    if op in ("any", "all"):
        return "b8"
    if op in ("argmin", "argmax", "count_nonzero") or (op in ("sum", "prod") and dtype in kl.DTYPES[:6]):
        return "i64"
    return REAL_OF.get(dtype, dtype) if op in ("abs_sum", "sq_sum", "norm_p", "abs_max", "abs_min") else dtype


def logsumexp(x, axis):
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isinf(top), 0, top)
    with np.errstate(divide="ignore"):
        return np.log(np.exp(x - top).sum(axis)) + top.squeeze(axis)


REFERENCE = {
    "sum": lambda x, a: x.sum(a, dtype=np.int64 if x.dtype.kind in "bui" else None),
    "prod": lambda x, a: x.prod(a, dtype=np.int64 if x.dtype.kind in "bui" else None),
    "min": lambda x, a: x.min(a),
    "max": lambda x, a: x.max(a),
    "argmin": lambda x, a: x.argmin(a),
    "argmax": lambda x, a: x.argmax(a),
    "any": lambda x, a: (x != 0).any(a),
    "all": lambda x, a: (x != 0).all(a),
    "count_nonzero": lambda x, a: (x != 0).sum(a),
    "abs_sum": lambda x, a: abs(x).sum(a),
    "sq_sum": lambda x, a: (abs(x) ** 2).sum(a),
    "norm_p": lambda x, a: (abs(x) ** 3).sum(a) ** (1 / 3),
    "abs_max": lambda x, a: abs(x).max(a),
    "abs_min": lambda x, a: abs(x).min(a),
    "var": lambda x, a: x.var(a, ddof=1),
    "logsumexp": logsumexp,
    "nan_sum": lambda x, a: np.nansum(x, a),
}
CASES = [(op, dtype) for op in OPS for dtype in kl.DTYPES]
NEEDS_ELEMENTS = ("min", "max", "argmin", "argmax", "abs_max", "abs_min")


def reduce_rows(op, dtype, x, parts=None, row_stride=None, elem_stride=None, shape=None, **options):
    rows, n = shape or x.shape
    out = np.zeros(rows, kl.NUMPY[out_dtype(op, dtype)])
    run = kernel(op, dtype, 0, ROWS)
    row_stride = x.strides[0] if row_stride is None else row_stride
    elem_stride = x.strides[1] if elem_stride is None else elem_stride
    for begin, end in parts or [(0, rows)]:
        run(kl.address(x), row_stride, elem_stride, n, kl.address(out), out.itemsize, begin, end, params(**options))
    return out


def reduce_cols(op, dtype, x, parts=None, **options):
    n, cols = x.shape
    out = np.zeros(cols, kl.NUMPY[out_dtype(op, dtype)])
    run = kernel(op, dtype, 1, COLS)
    for begin, end in parts or [(0, cols)]:
        run(kl.address(x), x.strides[0], n, kl.address(out), begin, end, params(**options))
    return out


def reduce_all(op, dtype, x, chunk=16384, parts=None, **options):
    n = x.size
    count = max(1, -(-n // chunk))
    partials = np.zeros(count * 32, np.uint8)
    out = np.zeros(1, kl.NUMPY[out_dtype(op, dtype)])
    for begin, end in parts(count) if parts else [(0, count)]:
        run = kernel(op, dtype, 2, CHUNKS)
        run(kl.address(x), x.itemsize, n, chunk, kl.address(partials), begin, end, params(**options))
    kernel(op, dtype, 3, COMBINE)(kl.address(partials), count, n, kl.address(out), params(**options))
    return out


def small(rng, shape, op, dtype):
    """Input whose product or p-th powers stay within the dtype's range."""
    x = kl.sample(rng, shape, dtype)
    if op == "prod" and dtype in kl.REALS + ["b8"] and dtype not in kl.FLOATS:
        return (x % 3 + (1 if dtype != "b8" else 0)).astype(x.dtype)
    if op == "prod":
        return kl.encode(np.exp(0.02 * kl.decode(x, dtype)), dtype)
    return x


def check(op, dtype, actual, reference_input, axis):
    if op == "var" and reference_input.shape[axis] < 2:
        assert np.isnan(kl.decode(actual, dtype)).all()
        return
    with np.errstate(over="ignore"):
        expected = REFERENCE[op](reference_input, axis)
    out = out_dtype(op, dtype)
    scale = 4 + abs(reference_input).sum(axis).max() if op == "sum" else 30
    kl.assert_close(kl.decode(actual, out), expected, out, scale)


def available(op, dtype):
    if kernel(op, dtype, 0, ROWS) is None:
        assert dtype in ("c64", "c128") or op in OPS[9:]
        return False
    return True


@pytest.mark.parametrize("op,dtype", CASES)
def test_rows_agree_with_numpy(op, dtype):
    if not available(op, dtype):
        return
    rng = np.random.default_rng(0)
    for n in (1, 2, 7, 16, 63, 64, 65, 130, 1023, 1024, 1025, 5000):
        x = small(rng, (3, n), op, dtype)
        check(op, dtype, reduce_rows(op, dtype, x), kl.decode(x, dtype), 1)


@pytest.mark.parametrize("op,dtype", CASES)
def test_strided_and_broadcast_rows(op, dtype):
    if not available(op, dtype):
        return
    rng = np.random.default_rng(1)
    x = small(rng, (40, 9), op, dtype)
    check(op, dtype, reduce_rows(op, dtype, x.T), kl.decode(x, dtype), 0)
    check(op, dtype, reduce_rows(op, dtype, x[::-1, ::-2]), kl.decode(x[::-1, ::-2], dtype), 1)
    repeated = np.repeat(kl.decode(x[:, :1], dtype), 33, axis=1)
    check(op, dtype, reduce_rows(op, dtype, x, elem_stride=0, shape=(40, 33)), repeated, 1)


@pytest.mark.parametrize("op,dtype", CASES)
def test_columns_agree_with_numpy(op, dtype):
    if not available(op, dtype):
        return
    rng = np.random.default_rng(2)
    for n, cols in ((1, 1), (2, 5), (5, 64), (64, 33), (65, 257), (131, 100), (200, 1030)):
        x = small(rng, (n, cols), op, dtype)
        check(op, dtype, reduce_cols(op, dtype, x), kl.decode(x, dtype), 0)


@pytest.mark.parametrize("op,dtype", CASES)
def test_full_reduction_agrees_with_numpy(op, dtype):
    if not available(op, dtype):
        return
    rng = np.random.default_rng(3)
    for n in (1, 100, 4097, 40000):
        if op == "prod" and n > 100:
            continue
        x = small(rng, (n,), op, dtype)
        check(op, dtype, reduce_all(op, dtype, x), kl.decode(x, dtype)[None], 1)


@pytest.mark.parametrize("op,dtype", CASES)
def test_bits_do_not_depend_on_the_split(op, dtype):
    if not available(op, dtype):
        return
    rng = np.random.default_rng(4)
    x, tall = small(rng, (7, 1500), op, dtype), small(rng, (150, 41), op, dtype)
    whole, columns = reduce_rows(op, dtype, x), reduce_cols(op, dtype, tall)
    for parts in kl.splits(7):
        assert reduce_rows(op, dtype, x, parts).tobytes() == whole.tobytes()
    for parts in kl.splits(41):
        assert reduce_cols(op, dtype, tall, parts).tobytes() == columns.tobytes()
    flat = x.reshape(-1)
    everything = reduce_all(op, dtype, flat, chunk=1000)
    assert reduce_all(op, dtype, flat, 1000, lambda count: kl.splits(count)[1]).tobytes() == everything.tobytes()
    # nor on the alignment of the input
    shifted = np.empty(flat.size + 3, flat.dtype)[3:]
    shifted[:] = flat
    assert reduce_rows(op, dtype, shifted.reshape(7, 1500)).tobytes() == whole.tobytes()


@pytest.mark.parametrize("dtype", kl.DTYPES)
def test_no_elements(dtype):
    x = np.zeros((3, 0), kl.NUMPY[dtype])
    tall = np.zeros((0, 3), kl.NUMPY[dtype])
    expected = {"sum": 0, "prod": 1, "any": 0, "all": 1, "count_nonzero": 0, "abs_sum": 0, "sq_sum": 0, "norm_p": 0}
    expected |= {"var": np.nan, "logsumexp": -np.inf}
    for op, value in expected.items():
        if available(op, dtype):
            out = out_dtype(op, dtype)
            for actual in (reduce_rows(op, dtype, x), reduce_cols(op, dtype, tall), reduce_all(op, dtype, x[0])):
                np.testing.assert_array_equal(kl.decode(actual, out), np.full(actual.shape, value))


@pytest.mark.parametrize("dtype", kl.FLOATS)
def test_nan_wins_every_order_reduction(dtype):
    rng = np.random.default_rng(5)
    values = rng.standard_normal((4, 3000))
    values[1, 2500] = values[1, 2700] = values[2, 0] = values[3, 2999] = np.nan
    values[0, 17] = np.inf
    x, where = kl.encode(values, dtype), np.array([2500, 0, 2999])
    for op in ("min", "max", "abs_max", "abs_min"):
        for actual in (reduce_rows(op, dtype, x), reduce_cols(op, dtype, np.ascontiguousarray(x.T))):
            assert np.isnan(kl.decode(actual, dtype)).tolist() == [False, True, True, True]
    for op in ("argmin", "argmax"):
        for reduce, source in ((reduce_rows, x), (reduce_cols, np.ascontiguousarray(x.T))):
            values2 = np.zeros(4, x.dtype)
            assert (reduce(op, dtype, source, second=values2)[1:] == where).all()
            assert np.isnan(kl.decode(values2, dtype)).tolist() == [False, True, True, True]
    assert reduce_rows("argmax", dtype, x)[0] == 17
    assert reduce_all("argmax", dtype, x[1], chunk=128)[0] == 2500
    assert np.isnan(kl.decode(reduce_all("max", dtype, x[1], chunk=128), dtype))[0]


@pytest.mark.parametrize("dtype", ["u8", "i64", "f16", "f32", "f64"])
def test_first_of_equal_extremes(dtype):
    x = kl.encode(np.ones((2, 3000)), dtype)
    x[1, 2100] = x[1, 2900] = kl.encode(np.array(5.0), dtype)
    assert reduce_rows("argmax", dtype, x).tolist() == [0, 2100]
    assert reduce_cols("argmax", dtype, np.ascontiguousarray(x.T)).tolist() == [0, 2100]
    assert reduce_all("argmax", dtype, x[1], chunk=500)[0] == 2100
    assert reduce_rows("argmin", dtype, x).tolist() == [0, 0]


@pytest.mark.parametrize("dtype", kl.FLOATS)
def test_infinities(dtype):
    values = np.array([[1.0, np.inf, 2.0], [-np.inf, -np.inf, -np.inf], [np.inf, -np.inf, 0.0], [np.nan, 1.0, 2.0]])
    x = kl.encode(values, dtype)
    for actual in (reduce_rows("sum", dtype, x), reduce_cols("sum", dtype, np.ascontiguousarray(x.T))):
        np.testing.assert_array_equal(kl.decode(actual, dtype), [np.inf, -np.inf, np.nan, np.nan])
    for actual in (reduce_rows("logsumexp", dtype, x), reduce_cols("logsumexp", dtype, np.ascontiguousarray(x.T))):
        np.testing.assert_array_equal(kl.decode(actual, dtype), [np.inf, -np.inf, np.inf, np.nan])


@pytest.mark.parametrize("dtype", kl.FLOATS)
def test_mean_std_and_norm_flags(dtype):
    rng = np.random.default_rng(6)
    x = kl.sample(rng, (3, 777), dtype)
    tall, wide = np.ascontiguousarray(x.T), kl.decode(x, dtype)
    for reduce, source in ((reduce_rows, x), (reduce_cols, tall)):
        kl.assert_close(kl.decode(reduce("sum", dtype, source, flags=MEAN), dtype), wide.mean(1), dtype, 4)
        kl.assert_close(kl.decode(reduce("sq_sum", dtype, source, flags=SQRT), dtype), np.sqrt((wide**2).sum(1)), dtype, 4)
        mean = np.zeros(3, x.dtype)
        std = reduce("var", dtype, source, flags=SQRT, correction=0.0, second=mean)
        kl.assert_close(kl.decode(std, dtype), wide.std(1), dtype, 4)
        kl.assert_close(kl.decode(mean, dtype), wide.mean(1), dtype, 4)


def test_variance_of_a_large_offset_is_stable():
    x = (1e6 + np.random.default_rng(7).standard_normal((2, 100_000))).astype(np.float32)
    expected = x.astype(np.float64).var(1, ddof=1)
    np.testing.assert_allclose(reduce_rows("var", "f32", x), expected, rtol=1e-5)
    np.testing.assert_allclose(reduce_cols("var", "f32", np.ascontiguousarray(x.T)), expected, rtol=1e-3)
    np.testing.assert_allclose(reduce_all("var", "f32", x[0])[0], expected[0], rtol=1e-5)


def test_sum_of_many_floats_is_accurate():
    x = np.random.default_rng(8).random((1, 4_000_000), dtype=np.float32)
    exact = x.sum(dtype=np.float64)
    for actual in (reduce_rows("sum", "f32", x)[0], reduce_all("sum", "f32", x[0])[0], reduce_cols("sum", "f32", x.T)[0]):
        assert abs(actual - exact) / exact < 1e-6


SCAN_LINES = (kl.pointer, kl.i64, kl.i64, kl.pointer, kl.i64, kl.i64, kl.i64, kl.i64, kl.i64)
SCAN_COLS = (kl.pointer, kl.i64, kl.pointer, kl.i64, kl.i64, kl.i64, kl.i64)


@pytest.mark.parametrize("dtype", kl.DTYPES)
@pytest.mark.parametrize("op", ["cumsum", "cumprod"])
def test_scans(op, dtype):
    rng = np.random.default_rng(9)
    kernels = kl.table("scan_table", len(SCANS), 2)[SCANS.index(op.removeprefix("cum"))][kl.DTYPES.index(dtype)]
    out_type = "i64" if dtype in kl.DTYPES[:6] else dtype
    for rows, n in ((3, 0), (2, 1), (5, 40), (300, 7)):
        x = small(rng, (rows, n), "prod", dtype)
        expected = getattr(np, op)(kl.decode(x, dtype), axis=1, dtype=np.int64 if out_type == "i64" else None)
        out, out_t = np.zeros((rows, n), kl.NUMPY[out_type]), np.zeros((n, rows), kl.NUMPY[out_type])
        for begin, end in ((0, rows // 2), (rows // 2, rows)):
            run = kl.function(kernels[0], *SCAN_LINES)
            run(kl.address(x), *x.strides, kl.address(out), *out.strides, n, begin, end)
            tall = np.ascontiguousarray(x.T)
            run = kl.function(kernels[1], *SCAN_COLS)
            run(kl.address(tall), tall.strides[0], kl.address(out_t), out_t.strides[0], n, begin, end)
        kl.assert_close(kl.decode(out, out_type), expected, out_type, 40)
        assert out_t.T.tobytes() == out.tobytes()
