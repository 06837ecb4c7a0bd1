"""mma_kernels.cu against NumPy: what tests/cuda/test_emulator_mma.py runs in a process of its own on the emulator, and tools/gpu_check.py on a card,
where `compile` stands for a module's path."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
from emulated_checks import ORDERS, DeviceArray, driver, launch
from emulated_checks import load as load_file

ON_A_CARD = len(sys.argv) > 2 and sys.argv[2] == "compile"


def load(path: str) -> driver.Module:
    """The module of a file, or mma_kernels.cu compiled for the device."""
    if path != "compile":
        return load_file(path)
    from tensorrt_lite.cuda._compiler import compile_unit

    return driver.Module(compile_unit((Path(__file__).parent / "mma_kernels.cu").read_text(), 0))


def products(path: str) -> None:
    """Every instruction's product, in every thread order."""
    module, random = load(path), np.random.default_rng(0)

    def bfloat16(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        word = x.astype(np.float32).view(np.uint32) & 0xFFFF0000
        return (word >> 16).astype(np.uint16), word.view(np.float32)

    def tf32(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        word = x.astype(np.float32).view(np.uint32)
        return word.view(np.float32), ((word + 0x1000) & 0xFFFFE000).astype(np.uint32).view(np.float32)

    def same(dtype: type) -> object:
        return lambda x: (x.astype(dtype), x.astype(dtype))

    cases = {
        "product_f16": (16, 16, same(np.float16), np.float32),
        "product_bf16": (16, 16, bfloat16, np.float32),
        "product_tf32": (16, 8, tf32, np.float32),
        "product_s8": (16, 32, same(np.int8), np.int32),
        "product_f64": (8, 4, same(np.float64), np.float64),
    }
    for order in ORDERS:
        os.environ["CUEMU_ORDER"] = order
        for name, (m, k, encode, sums) in cases.items():
            scale = 100 if sums is np.int32 else 1
            (a, wide_a), (b, wide_b) = (
                encode(scale * random.standard_normal(shape).clip(-1.2, 1.2)) for shape in ((m, k), (k, 8))
            )
            c = random.integers(-9, 9, (m, 8)).astype(sums)
            out = DeviceArray(c)
            launch(module, name, (1,), (32,), out, DeviceArray(a), DeviceArray(b))
            expected = c + wide_a.astype(np.float64) @ wide_b.astype(np.float64)
            np.testing.assert_allclose(out.get(), expected, rtol=1e-6, atol=1e-6, err_msg=f"{name} {order}")


def loads(path: str) -> None:
    """ldmatrix.trans: a lane gets two neighbours of a column, first row first."""
    module, x = load(path), np.arange(64, dtype=np.uint16)
    out = DeviceArray(np.zeros(5 * 32, np.uint32))
    launch(module, "transpose", (1,), (32,), out, DeviceArray(x))
    lane = np.arange(32)
    low = lane % 4 * 2 * 8 + lane // 4
    expected = low | (low + 8) << 16
    np.testing.assert_array_equal(out.get().reshape(5, 32), np.tile(expected, (5, 1)))


def async_copies(path: str) -> None:
    """A ring of stages sums what it should; every forgotten wait or barrier gives a wrong result."""
    module, random = load(path), np.random.default_rng(1)
    x = random.standard_normal((5, 64, 4)).astype(np.float32)
    expected = (x * (np.arange(5)[:, None, None] * 64 + np.arange(64)[:, None] < 4 * 64 + 50)).sum((0, 2))[::-1]
    for order in ORDERS:
        os.environ["CUEMU_ORDER"] = order
        for mistake in range(1 if ON_A_CARD else 4):  # a race shows on the emulator every time
            out = DeviceArray(np.zeros(64, np.float32))
            launch(module, "staged_sum", (1,), (64,), out, DeviceArray(x), 5, 50, mistake)
            assert np.allclose(out.get(), expected, atol=1e-4) == (mistake == 0), (order, mistake)


def half_arithmetic(path: str) -> None:
    """Pairs, fused multiply-adds, atomics on half types, doubles, 64-bit and 16-bit words, 64-bit shuffles."""
    module, lane = load(path), np.arange(32)
    out, half_sum = DeviceArray(np.zeros((32, 4), np.float32)), DeviceArray(np.zeros(1, np.float16))
    bfloat16_sum, double_sum = DeviceArray(np.zeros(1, np.uint16)), DeviceArray(np.zeros(1))
    word_sum, count = DeviceArray(np.zeros(1, np.uint64)), DeviceArray(np.zeros(1, np.uint16))
    arguments = (out, half_sum, bfloat16_sum, double_sum, word_sum, count)
    launch(module, "half_arithmetic", (1,), (32,), *arguments)
    a = (1.5 + lane).astype(np.float16)
    result = out.get()
    np.testing.assert_array_equal(result[:, 0], (a * np.float16(0.25) + (a + np.float16(0.25))).astype(np.float16))
    np.testing.assert_array_equal(result[:, 1], np.float16(-2.0 * 0.25 - 1.75))
    squares = (lane.astype(np.float32) ** 2).view(np.uint32)
    rounded = ((squares + 0x7FFF + (squares >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    np.testing.assert_array_equal(result[:, 2], np.maximum(rounded, 50))
    np.testing.assert_array_equal(result[:, 3], np.float32(np.exp(np.float16(0.5), dtype=np.float16)))
    assert half_sum.get()[0] == 16 and bfloat16_sum.get()[0] == 0x4280 and count.get()[0] == 32
    np.testing.assert_allclose(double_sum.get()[0], 3.2, rtol=1e-15)
    assert word_sum.get()[0] == 32 << 40


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
