"""Attention over bfloat16 heads by AMX's tiles (cysrc/loops/attention.c) against float64: by the emulation of the instructions in C, and by the
processor where it has them. Lengths end inside tiles, blocks of keys and blocks of queries."""

from __future__ import annotations

import ctypes
import math
import subprocess

import numpy as np
import pytest

from tensorrt_lite._C.ops.matmul.packed import bf16_kernel
from tests.loops.test_casts import MARCH, bf16_bits, cpu_runs
from tests.loops.test_gemm import EMULATION, FLAGS, LOOPS

UNMASKED, ALLOWED, ADDED = range(3)


class Operand(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("batch", ctypes.c_int64), ("head", ctypes.c_int64), ("row", ctypes.c_int64)]


class Arguments(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("batches", "heads", "key_heads", "queries", "keys", "width", "value_width")),
        ("scale", ctypes.c_float), ("causal", ctypes.c_int), ("mask_kind", ctypes.c_int), ("mask", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("mask_batch", "mask_head", "mask_row", "mask_column")),
        *((name, Operand) for name in ("q", "k", "v", "out", "grad", "dq", "dk", "dv")), ("lse", ctypes.c_void_p), ("failed", ctypes.c_int),
    ]  # fmt: skip


@pytest.fixture(scope="module", params=["emulated", "processor"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not cpu_runs("avx512"):
        pytest.skip("this CPU has no avx512")
    if request.param == "processor" and bf16_kernel() != "tiles":
        pytest.skip("this processor has no tiles")
    folder = tmp_path_factory.mktemp("attention")
    (folder / "attention.c").write_text(
        '#include "loops/attention.c"\nvoid run(attention_args* a, int64_t tasks) { attention_base.forward_tiles(a, 0, tasks); }\n'
        'void run_backward(attention_args* a, int64_t tasks) { attention_base.backward_tiles(a, 0, tasks); }\n'
    )
    tiles = [f'-DGEMM_TILES="{EMULATION}"'] if request.param == "emulated" else []
    command = ["gcc", *FLAGS, *tiles, *MARCH["avx512"], f"-I{LOOPS.parent}", f"-I{LOOPS}", f"-I{LOOPS.parent / 'core'}", str(folder / "attention.c"), "-o", str(folder / "attention.so"), "-lm"]
    subprocess.run(command, check=True)
    lib = ctypes.CDLL(str(folder / "attention.so"))
    lib.run.argtypes = lib.run_backward.argtypes = [ctypes.POINTER(Arguments), ctypes.c_int64]
    return lib


def values(bits: np.ndarray) -> np.ndarray:
    return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def operand(bits: np.ndarray) -> Operand:
    batch, head, row, _ = (stride // 2 for stride in bits.strides)
    return Operand(bits.ctypes.data, batch, head, row)


@pytest.mark.parametrize("mask", ["none", "causal", "allowed", "added"])
@pytest.mark.parametrize("shape", [(1, 2, 2, 5, 7, 32, 32), (2, 4, 2, 33, 130, 64, 32), (1, 1, 1, 515, 40, 32, 96)])
def test_heads_and_gradients_equal_float64(library: ctypes.CDLL, shape: tuple[int, ...], mask: str) -> None:
    batches, heads, key_heads, queries, keys, width, value_width = shape
    rng = np.random.default_rng(sum(shape))
    q = bf16_bits(rng.standard_normal((batches, queries, heads, width))).transpose(0, 2, 1, 3)   # heads beside one another, as layers have them
    k = bf16_bits(rng.standard_normal((batches, key_heads, keys, width)))
    v = bf16_bits(rng.standard_normal((batches, key_heads, keys, value_width)))
    out, lse = np.zeros((batches, heads, queries, value_width), np.uint16), np.zeros((batches, heads, queries), np.float32)
    allowed = rng.random((queries, keys)) < 0.6
    allowed[1] = False                                                                            # a row that sees nothing is zero
    added = bf16_bits(rng.standard_normal((queries, keys)))
    table = {"allowed": allowed.astype(np.uint8), "added": added}.get(mask)
    arguments = Arguments(*shape, 1 / math.sqrt(width), mask == "causal", {"allowed": ALLOWED, "added": ADDED}.get(mask, UNMASKED),
                          None if table is None else table.ctypes.data, 0, 0, keys, 1, operand(q), operand(k), operand(v), operand(out))  # fmt: skip
    arguments.lse = lse.ctypes.data
    library.run(ctypes.byref(arguments), batches * heads * -(-queries // 512))
    assert not arguments.failed
    group = heads // key_heads
    scores = values(q) @ np.repeat(values(k), group, 1).swapaxes(2, 3) / math.sqrt(width)
    if mask == "causal":
        scores[..., ~np.tri(queries, keys, dtype=bool)] = -np.inf
    elif mask == "allowed":
        scores[..., ~allowed] = -np.inf
    elif mask == "added":
        scores += values(added)
    top = scores.max(-1, keepdims=True)
    top[np.isinf(top)] = 0
    weights = np.exp(scores - top)
    total = weights.sum(-1, keepdims=True)
    want = weights @ np.repeat(values(v), group, 1) / np.where(total == 0, 1, total)
    # weights and results are rounded to bfloat16
    size = weights @ np.abs(np.repeat(values(v), group, 1)) / np.where(total == 0, 1, total)
    assert (np.abs(values(out) - want) <= 0.004 * np.abs(want) + 0.004 * size + 1e-6).all()
    seen = total[..., 0] > 0
    assert np.allclose(lse[seen], (top + np.log(np.where(total == 0, 1, total)))[..., 0][seen], atol=2e-3) and np.isposinf(lse[~seen]).all()

    # gradients, which round weights and their gradients once more; a head of keys sums over the heads that share it
    grad = bf16_bits(rng.standard_normal(out.shape))
    dq, dk, dv = np.zeros(q.shape, np.uint16), np.zeros(k.shape, np.uint16), np.zeros(v.shape, np.uint16)
    arguments.grad, arguments.dq, arguments.dk, arguments.dv = operand(grad), operand(dq), operand(dk), operand(dv)
    library.run_backward(ctypes.byref(arguments), batches * key_heads)
    assert not arguments.failed
    p, g = weights / np.where(total == 0, 1, total), values(grad)
    ds = p * (g @ np.repeat(values(v), group, 1).swapaxes(2, 3) - (g * values(out)).sum(-1, keepdims=True)) / math.sqrt(width)
    shared = (batches, key_heads, group, keys)
    for got, exact in (
        (dq, ds @ np.repeat(values(k), group, 1)),
        (dk, (ds.swapaxes(2, 3) @ values(q)).reshape(*shared, width).sum(2)),
        (dv, (p.swapaxes(2, 3) @ g).reshape(*shared, value_width).sum(2)),
    ):
        assert np.linalg.norm(values(got) - exact) <= 0.006 * np.linalg.norm(exact)
        assert (np.abs(values(got) - exact) <= 0.01 * np.abs(exact) + 0.02 * np.abs(exact).max()).all()
