"""Convolutions of bfloat16 by AMX's tiles (cysrc/loops/conv_tiles.c, cysrc/ops/conv/tiles.pyx) against float64: the kernels by the emulation of the
instructions in C, all passes by the processor where it has them."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tensorrt_lite as trt
from tensorrt_lite._C.ops.matmul.packed import bf16_kernel
from tests.loops.test_attention_tiles import values
from tests.loops.test_casts import MARCH, bf16_bits, cpu_runs
from tests.loops.test_gemm import EMULATION, FLAGS, LOOPS

F = trt.nn.functional
TILE = 32
SOURCE = """
#include "loops/conv_tiles.c"
void run(int what, conv_tiles* p, int64_t tasks) {
  (what == 0 ? trt_conv_tiles_base.forward : what == 1 ? trt_conv_tiles_base.weight : trt_conv_tiles_base.pack)(p, 0, tasks);
}
"""


class Call(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("samples", "c_in", "c_out", "taps", "row")), ("shift", ctypes.c_int64 * 64), ("place", ctypes.c_int64 * 64), ("places", ctypes.c_int64),
        *((name, ctypes.c_int64) for name in ("out_h", "out_w", "stride_h", "stride_w")), ("image", ctypes.c_void_p), ("image_bytes", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("weight", "bias", "out")), *((name, ctypes.c_int64) for name in ("out_sample", "out_row", "out_pixel")), ("planes", ctypes.c_void_p),
        ("plane", ctypes.c_int64), ("steps", ctypes.c_int64), *((name, ctypes.c_void_p) for name in ("grad", "dw", "rows", "panels")), ("depth", ctypes.c_int64),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not cpu_runs("avx512"):
        pytest.skip("this CPU has no avx512")
    folder = tmp_path_factory.mktemp("conv")
    (folder / "conv.c").write_text(SOURCE)
    command = ["gcc", *FLAGS, f'-DGEMM_TILES="{EMULATION}"', *MARCH["avx512"], f"-I{Path(LOOPS).parent}", f"-I{LOOPS}", f"-I{LOOPS.parent / 'core'}", str(folder / "conv.c"), "-o", str(folder / "conv.so")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "conv.so"))


@pytest.mark.parametrize("stride", [1, 2])
def test_kernels_equal_float64(kernels: ctypes.CDLL, stride: int) -> None:
    """Two samples of 32 channels at 9x11, padded already, with 64 filters of 3x2: outputs, and for stride 1 the gradient of the weight."""
    rng = np.random.default_rng(stride)
    n, c, o, h, w, kh, kw = 2, TILE, 2 * TILE, 9, 11, 3, 2
    out_h, out_w = (h - kh) // stride + 1, (w - kw) // stride + 1
    image = bf16_bits(rng.standard_normal((n * h * w + TILE, c)))
    weight, bias = bf16_bits(rng.standard_normal((kh * kw, c, o))), rng.standard_normal(o).astype(np.float32)
    panels, out = np.zeros(weight.size, np.uint16), np.zeros((n, out_h, out_w, o), np.uint16)
    call = Call(samples=n, c_in=c, c_out=o, taps=kh * kw, row=w, places=kh * kw, out_h=out_h, out_w=out_w, stride_h=stride, stride_w=stride, image=image.ctypes.data,
                image_bytes=h * w * c * 2, weight=panels.ctypes.data, bias=bias.ctypes.data, out=out.ctypes.data, out_sample=out_h * out_w * o * 2, out_row=out_w * o * 2,
                out_pixel=o * 2, rows=weight.ctypes.data, panels=panels.ctypes.data, depth=kh * kw * c)  # fmt: skip
    for tap in range(kh * kw):
        call.shift[tap], call.place[tap] = tap // kw * w + tap % kw, tap
    kernels.run(2, ctypes.byref(call), o // TILE)
    kernels.run(0, ctypes.byref(call), n * (o // TILE))
    x, filters = values(image[: n * h * w]).reshape(n, h, w, c), values(weight)
    met = [x[:, i : i + (out_h - 1) * stride + 1 : stride, j : j + (out_w - 1) * stride + 1 : stride] for i in range(kh) for j in range(kw)]
    want = sum(part @ filters[tap] for tap, part in enumerate(met)) + bias
    assert np.abs(values(out) - want).max() <= 0.004 * np.abs(want).max()
    if stride > 1:
        return
    grad = rng.standard_normal((n, out_h, out_w, o))
    steps = ((out_h - 1) * w + out_w + TILE - 1) // TILE
    laid = np.zeros((n, steps * TILE, o), np.uint16)
    for i in range(out_h):
        laid[:, i * w : i * w + out_w] = bf16_bits(grad[:, i])
    planes = np.zeros((n, c, h * w + 2 * TILE), np.uint16)
    planes[:, :, : h * w] = image[: n * h * w].reshape(n, h * w, c).swapaxes(1, 2)
    packed, dw = np.zeros(laid.size, np.uint16), np.zeros((kh * kw, c, o), np.float32)
    call.rows, call.panels, call.depth = laid.ctypes.data, packed.ctypes.data, steps * TILE
    kernels.run(2, ctypes.byref(call), n * (o // TILE))
    call.planes, call.plane, call.steps, call.grad, call.dw = planes.ctypes.data, planes.shape[2], steps, packed.ctypes.data, dw.ctypes.data
    kernels.run(1, ctypes.byref(call), kh * kw)
    rounded = values(bf16_bits(grad))
    exact = np.stack([np.einsum("nhwc,nhwo->co", part, rounded) for part in met])
    assert np.abs(dw - exact).max() <= 1e-5 * np.abs(exact).max()


SHAPES = [  # samples, channels, filters, height, width, kernel, stride, padding, dilation
    (2, 32, 64, 14, 14, (3, 3), (1, 1), (1, 1), (1, 1)), (1, 64, 32, 30, 28, (3, 3), (1, 1), (0, 2), (1, 1)), (2, 64, 64, 15, 17, (3, 3), (2, 2), (1, 1), (1, 1)),
    (2, 32, 96, 20, 20, (5, 3), (1, 2), (2, 0), (1, 1)), (2, 32, 32, 20, 20, (3, 3), (1, 1), (2, 2), (2, 2)), (2, 64, 128, 28, 28, (1, 1), (2, 2), (0, 0), (1, 1)),
    (2, 32, 32, 23, 31, (3, 3), (3, 2), (2, 4), (2, 1)), (3, 64, 64, 16, 16, (2, 2), (2, 2), (0, 0), (1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
def test_passes_equal_float64(shape: tuple, channels_last: bool) -> None:
    """Forward and both gradients; the same bits whatever the number of threads."""
    if bf16_kernel() != "tiles":
        pytest.skip("this processor has no tiles")
    n, c, o, h, w, kernel, stride, padding, dilation = shape
    generator = trt.Generator().manual_seed(h)
    x, weight, bias = (trt.randn(*size, generator=generator).bfloat16() for size in ((n, c, h, w), (o, c, *kernel), (o,)))
    if channels_last:
        x = x.to(memory_format=trt.channels_last)
    exact = [t.double().requires_grad_() for t in (x, weight, bias)]
    want = F.conv2d(*exact, stride, padding, dilation)
    grad = trt.randn(*want.shape, generator=generator).bfloat16()
    want.backward(grad.double())
    results = []
    before = trt.get_num_threads()
    for threads in (1, 2):
        trt.set_num_threads(threads)
        leaves = [t.detach().requires_grad_() for t in (x, weight, bias)]
        out = F.conv2d(*leaves, stride, padding, dilation)
        out.backward(grad)
        results.append([out.detach(), *(leaf.grad for leaf in leaves)])
    trt.set_num_threads(before)
    assert all(trt.equal(a, b) for a, b in zip(*results, strict=True))
    for got, reference in zip(results[0], [want.detach(), *(t.grad for t in exact)], strict=True):
        assert float((got.double() - reference).norm()) <= 0.004 * float(reference.norm())
