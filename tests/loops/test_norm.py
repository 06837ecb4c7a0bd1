"""layer_norm, rms_norm, group_norm and batch_norm kernels against NumPy in float64, and across splits."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import kernel_library as kl

P, N, D = kl.pointer, kl.i64, ctypes.c_double
EPS = 1e-5
NORM_ROWS = 32  # cysrc/ops/norm/steps.yaml
COMPUTE = {"f16": np.float32, "bf16": np.float32, "f32": np.float32, "f64": np.float64}
a = kl.address


def kernels(name, dtype, fields):
    return kl.table(name, 1, fields)[0][kl.DTYPES.index(dtype)]


def run(address, types, args, parts):
    for begin, end in parts:
        kl.function(address, *types, N, N)(*args, begin, end)


def close(actual, expected, dtype, scale=1.0):
    tolerance = kl.TOLERANCE[dtype] * 4 * scale
    np.testing.assert_allclose(kl.decode(actual, dtype), expected, rtol=tolerance, atol=tolerance)


def moments(x, axis, centred):
    mean = x.mean(axis, keepdims=True) if centred else np.zeros_like(x.mean(axis, keepdims=True))
    return mean, 1 / np.sqrt(((x - mean) ** 2).mean(axis, keepdims=True) + EPS)


def normalised_gradient(g, xhat, rstd, axis, centred):
    mean_g = g.mean(axis, keepdims=True) if centred else 0
    return rstd * (g - mean_g - xhat * (g * xhat).mean(axis, keepdims=True))


@pytest.mark.parametrize("dtype", kl.FLOATS)
@pytest.mark.parametrize("op", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("affine", [False, True])
def test_row_norms(op, dtype, affine):
    rng = np.random.default_rng(0)
    forward, backward, params = kernels(f"{op}_table", dtype, 3)
    for rows, n in ((1, 1), (3, 7), (5, 64), (70, 33), (2, 3000)):
        x, grad = kl.sample(rng, (rows, n + 2), dtype)[:, :n], kl.sample(rng, (rows, n), dtype)
        w, b = (kl.sample(rng, (n,), dtype), kl.sample(rng, (n,), dtype)) if affine else (None, None)
        wide = [None if v is None else kl.decode(v, dtype) for v in (x, grad, w, b)]
        mean, rstd = moments(wide[0], 1, op == "layer_norm")
        xhat, weight = (wide[0] - mean) * rstd, np.ones(n) if w is None else wide[2]
        results = []
        for parts in kl.splits(rows)[:3]:
            y, dx, means, rstds = np.empty((rows, n), x.dtype), np.empty((rows, n), x.dtype), *np.zeros((2, rows), COMPUTE[dtype])
            args = (a(x), x.strides[0], a(y), y.strides[0], n, a(w), a(b), EPS, a(means), a(rstds))
            run(forward, (P, N, P, N, N, P, P, D, P, P), args, parts)
            items = (rows + NORM_ROWS - 1) // NORM_ROWS
            partials, alone = np.empty((items, 2, n), COMPUTE[dtype]), np.empty((items, 2, n), COMPUTE[dtype])
            for out, sums in ((dx, partials), (None, alone)):
                args = (a(grad), grad.strides[0], a(x), x.strides[0], a(w), a(means), a(rstds), a(out), dx.strides[0], a(sums), n, rows)
                run(backward, (P, N, P, N, P, P, P, P, N, P, N, N), args, kl.splits(items)[len(results)])
            assert partials.tobytes() == alone.tobytes()
            dw, db = np.empty(n, x.dtype), np.empty(n, x.dtype)
            run(params, (P, N, N, P, P), (a(partials), items, n, a(dw), a(db)), [(0, n // 2), (n // 2, n)])
            results.append([v.tobytes() for v in (y, dx, dw, db, means, rstds)])
        assert results[0] == results[1] == results[2]
        close(y, xhat * weight + (0 if b is None else wide[3]), dtype, 4)
        close(dx, normalised_gradient(wide[1] * weight, xhat, rstd, 1, op == "layer_norm"), dtype, 4 * max(1, rstd.max()))
        close(dw, (wide[1] * xhat).sum(0), dtype, 8)
        close(db, wide[1].sum(0), dtype, 8)
        np.testing.assert_allclose(means, mean[:, 0], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(rstds, rstd[:, 0], rtol=1e-5)


@pytest.mark.parametrize("dtype", kl.FLOATS)
@pytest.mark.parametrize("affine", [False, True])
def test_group_norm(dtype, affine):
    rng = np.random.default_rng(1)
    forward, backward, params = kernels("group_norm_table", dtype, 3)
    for samples, channels, hw, groups in ((2, 6, 5, 3), (1, 4, 1500, 1), (3, 4, 16, 4)):
        shape = (samples, channels, hw)
        x, grad = kl.sample(rng, shape, dtype), kl.sample(rng, shape, dtype)
        w, b = (kl.sample(rng, (channels,), dtype), kl.sample(rng, (channels,), dtype)) if affine else (None, None)
        weight = np.ones(channels) if w is None else kl.decode(w, dtype)
        bias = np.zeros(channels) if b is None else kl.decode(b, dtype)
        grouped = (samples, groups, -1)
        wide, g = kl.decode(x, dtype).reshape(grouped), kl.decode(grad, dtype)
        mean, rstd = moments(wide, 2, True)
        xhat, items = (wide - mean) * rstd, samples * groups
        results = []
        for parts in kl.splits(items)[:3]:
            y, dx, means, rstds = np.empty(shape, x.dtype), np.empty(shape, x.dtype), *np.zeros((2, items), COMPUTE[dtype])
            args = (a(x), a(y), channels, hw, groups, a(w), a(b), EPS, a(means), a(rstds))
            run(forward, (P, P, N, N, N, P, P, D, P, P), args, parts)
            sums = np.zeros((samples, channels, 2))
            args = (a(grad), a(x), channels, hw, groups, a(w), a(means), a(rstds), a(dx), a(sums))
            run(backward, (P, P, N, N, N, P, P, P, P, P), args, parts)
            dw, db = np.empty(channels, x.dtype), np.empty(channels, x.dtype)
            run(params, (P, N, N, P, P), (a(sums), samples, channels, a(dw), a(db)), [(0, 1), (1, channels)])
            results.append([v.tobytes() for v in (y, dx, dw, db)])
        assert results[0] == results[1] == results[2]
        close(y, xhat.reshape(shape) * weight[:, None] + bias[:, None], dtype, 4)
        scaled = (g * weight[:, None]).reshape(grouped)
        close(dx, normalised_gradient(scaled, xhat, rstd, 2, True).reshape(shape), dtype, 8)
        close(dw, (g * xhat.reshape(shape)).sum((0, 2)), dtype, 20)
        close(db, g.sum((0, 2)), dtype, 20)


@pytest.mark.parametrize("dtype", kl.FLOATS)
@pytest.mark.parametrize("layout", ["planes", "last"])
def test_batch_norm(dtype, layout):
    rng = np.random.default_rng(2)
    table = kernels("batch_norm_table", dtype, 8)[layout == "last" :: 2]
    for samples, channels, hw in ((2, 3, 5), (4, 300, 7), (3, 2, 1200), (100, 5, 1)):
        shape = (samples, channels, hw) if layout == "planes" else (samples, hw, channels)
        x, grad = kl.sample(rng, shape, dtype), kl.sample(rng, shape, dtype)
        axes, per_channel = ((0, 2), (1, -1, 1)) if layout == "planes" else ((0, 1), (1, 1, -1))
        wide, g = kl.decode(x, dtype), kl.decode(grad, dtype)
        strides = x.strides[:2] if layout == "planes" else (x.strides[1],)
        sizes = (samples, hw) if layout == "planes" else (samples * hw,)
        items = samples * channels if layout == "planes" else samples * hw
        geometry = (channels, hw) if layout == "planes" else (channels,)
        s, z = (N,) * len(strides), (N,) * len(sizes)
        results = []
        for parts in (kl.splits(channels)[0], kl.splits(channels)[2]):
            mean, var, total, dot = np.zeros((4, channels), COMPUTE[dtype])
            run(table[0], (P, *s, *z, P, P), (a(x), *strides, *sizes, a(mean), a(var)), parts)
            args = (a(grad), *strides, a(x), *strides, *sizes, a(mean), a(total), a(dot))
            run(table[2], (P, *s, P, *s, *z, P, P, P), args, parts)
            scale, shift, back, bias = rng.standard_normal((4, channels)).astype(COMPUTE[dtype])
            results.append([v.tobytes() for v in (mean, var, total, dot)])
        assert results[0] == results[1]
        np.testing.assert_allclose(mean, wide.mean(axes), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(var, wide.var(axes), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(total, g.sum(axes), rtol=1e-4, atol=1e-4)
        deviation = wide - mean.astype(np.float64).reshape(per_channel)
        np.testing.assert_allclose(dot, (g * deviation).sum(axes), rtol=1e-4, atol=1e-4)
        outs = []
        for parts in kl.splits(items)[:3:2]:
            y, dx = np.empty(shape, x.dtype), np.empty(shape, x.dtype)
            args = (a(x), *strides, a(y), *strides, *geometry, a(scale), a(shift))
            run(table[1], (P, *s, P, *s, *[N] * len(geometry), P, P), args, parts)
            args = (a(grad), *strides, a(x), *strides, a(dx), *strides, *geometry, a(mean), a(scale), a(back), a(bias))
            run(table[3], (P, *s, P, *s, P, *s, *[N] * len(geometry), P, P, P, P), args, parts)
            outs.append((y.tobytes(), dx.tobytes()))
        assert outs[0] == outs[1]
        factor = [v.astype(np.float64).reshape(per_channel) for v in (scale, shift, back, bias)]
        close(y, wide * factor[0] + factor[1], dtype, 8)
        close(dx, g * factor[0] + deviation * factor[2] + factor[3], dtype, 8)


def test_batch_norm_statistics_of_a_large_offset():
    x = (1000 + np.random.default_rng(3).standard_normal((64, 8, 100))).astype(np.float32)
    stats = kernels("batch_norm_table", "f32", 8)
    for layout, values in ((0, x), (1, np.ascontiguousarray(x.transpose(0, 2, 1)))):
        mean, var = np.zeros((2, 8), np.float32)
        strides, sizes = (values.strides[:2], (64, 100)) if layout == 0 else ((values.strides[1],), (6400,))
        types = (P, *[N] * (len(strides) + len(sizes)), P, P)
        run(stats[layout], types, (a(values), *strides, *sizes, a(mean), a(var)), [(0, 8)])
        np.testing.assert_allclose(var, x.astype(np.float64).var((0, 2)), rtol=1e-5)
