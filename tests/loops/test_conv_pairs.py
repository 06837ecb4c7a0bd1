"""Convolutions of bfloat16 by AVX512-BF16's sums of pairs (cysrc/loops/conv_pairs.c) against float64: the kernels with the instruction as two FMAs on any
processor with AVX-512, all passes by the processor where it has them."""

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
from tests.loops.test_gemm import FLAGS, LOOPS

F = trt.nn.functional
SOURCE = """
#define PAIRS_BY_FMA
#include "loops/conv_pairs.c"
/* problem: the fields of conv_problem in their order; each item by a call of its own, in a workspace of its own */
void run(const int64_t* problem, int64_t pass, const char* a, const char* b, const char* bias, char* out) {
  conv_work work = {.pass = pass, .a = a, .b = b, .bias = bias, .out = out};
  memcpy(&work.s, problem, sizeof work.s);
  trt_conv_pairs_base.plan(&work);
  work.shared = aligned_alloc(64, (work.shared_bytes + 127) / 64 * 64);
  for (int64_t phase = 0; phase < work.phases; phase++)
    for (int64_t i = 0; i < trt_conv_pairs_base.items(&work, phase); i++) {
      char* workspace = aligned_alloc(64, (work.workspace_bytes + 127) / 64 * 64);
      memset(workspace, 0xff, work.workspace_bytes);
      trt_conv_pairs_base.run(&work, phase, workspace, i, i + 1);
      free(workspace);
    }
  free(work.shared);
}
"""
SHAPES = [  # samples, channels, filters, height, width, kernel, stride, padding, dilation
    (2, 3, 16, 12, 13, (3, 3), (1, 1), (1, 1), (1, 1)), (2, 16, 33, 9, 15, (3, 2), (1, 1), (1, 0), (1, 1)), (1, 64, 40, 8, 7, (1, 1), (1, 1), (0, 0), (1, 1)),
    (2, 5, 7, 11, 12, (3, 3), (2, 2), (1, 1), (1, 1)), (3, 16, 32, 10, 17, (3, 3), (2, 1), (1, 1), (1, 1)), (2, 8, 300, 6, 6, (2, 2), (2, 2), (0, 0), (1, 1)),
    (1, 100, 17, 9, 20, (3, 5), (1, 1), (2, 4), (2, 2)), (2, 33, 16, 14, 14, (5, 5), (3, 2), (6, 1), (1, 2)), (2, 1, 8, 20, 30, (7, 7), (1, 1), (3, 3), (1, 1)),
    (1, 6, 64, 13, 13, (1, 1), (2, 2), (0, 0), (1, 1)), (2, 3, 24, 16, 16, (4, 4), (4, 4), (0, 0), (1, 1)), (1, 12, 12, 70, 5, (3, 3), (1, 1), (1, 1), (1, 1)),
]  # fmt: skip


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    if not cpu_runs("avx512"):
        pytest.skip("this CPU has no avx512")
    folder = tmp_path_factory.mktemp("conv")
    (folder / "conv.c").write_text(SOURCE)
    command = ["gcc", *FLAGS, *MARCH["avx512"], f"-I{Path(LOOPS).parent}", f"-I{LOOPS}", f"-I{LOOPS.parent / 'core'}", str(folder / "conv.c"), "-o", str(folder / "conv.so")]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(folder / "conv.so"))


def exact_passes(shape: tuple) -> tuple[list[trt.Tensor], list[trt.Tensor]]:
    """Operands (input, weight, bias, gradient of the output) that bfloat16 holds, and in float64 the output and the gradients of input and weight."""
    n, c, o, h, w, kernel, stride, padding, dilation = shape
    generator = trt.Generator().manual_seed(c + o)
    x, weight, bias = (trt.randn(*size, generator=generator).bfloat16().double().requires_grad_() for size in ((n, c, h, w), (o, c, *kernel), (o,)))
    y = F.conv2d(x, weight, bias, stride, padding, dilation)
    grad = trt.randn(*y.shape, generator=generator).bfloat16().double()
    y.backward(grad)
    return [x.detach(), weight.detach(), bias.detach(), grad], [y.detach(), x.grad, weight.grad]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
def test_kernels_equal_float64(kernels: ctypes.CDLL, shape: tuple, channels_last: bool) -> None:
    """All passes over images and weights in both orders; the workspace holds NaN before."""
    n, c, o, h, w, kernel, stride, padding, dilation = shape
    (x, weight, bias, grad), exact = exact_passes(shape)
    taps = kernel[0] * kernel[1]
    order = (c * taps, 1, c) if channels_last else (c * taps, taps, 1)
    problem = np.array([n, c, h, w, o, *grad.shape[2:], *kernel, *stride, *padding, *dilation, 1, channels_last, 0, o * c * taps, *order], np.int64)

    def bits(t: trt.Tensor) -> np.ndarray:
        return bf16_bits(np.ascontiguousarray(t.numpy().transpose(0, 2, 3, 1) if channels_last else t.numpy()))

    operands = {0: (x, weight), 1: (grad, weight), 2: (grad, x)}
    start = bias.float().numpy()
    for what, want in enumerate(exact):
        a, b = (bits(t) for t in operands[what])
        out = np.full(want.numel(), 0xffff, np.uint16)
        kernels.run(problem.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(what), *(ctypes.c_void_p(t.ctypes.data) for t in (a, b)),
                    ctypes.c_void_p(start.ctypes.data if what == 0 else None), ctypes.c_void_p(out.ctypes.data))  # fmt: skip
        sizes = want.shape
        got = values(out).reshape((sizes[0], *sizes[2:], sizes[1])).transpose(0, 3, 1, 2) if channels_last else values(out).reshape(sizes)
        assert np.linalg.norm(got - want.numpy()) <= 0.004 * np.linalg.norm(want.numpy()), ("output", "input", "weight")[what]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("channels_last", [False, True])
def test_passes_equal_float64(shape: tuple, channels_last: bool) -> None:
    """Forward and both gradients; the same bits whatever the number of threads."""
    if bf16_kernel() != "pairs":
        pytest.skip("this processor has no AVX512-BF16, or tiles")
    (x, weight, bias, grad), exact = exact_passes(shape)
    to = {"memory_format": trt.channels_last} if channels_last else {}
    results = []
    before = trt.get_num_threads()
    for threads in (1, 2):
        trt.set_num_threads(threads)
        leaves = [x.bfloat16().to(**to).requires_grad_(), weight.bfloat16().to(**to).requires_grad_(), bias.bfloat16().requires_grad_()]
        out = F.conv2d(*leaves, *shape[6:])
        out.backward(grad.bfloat16().to(**to))
        results.append([out.detach(), leaves[0].grad, leaves[1].grad])
    trt.set_num_threads(before)
    assert all(trt.equal(a, b) for a, b in zip(*results, strict=True))
    for got, reference in zip(results[0], exact, strict=True):
        assert float((got.double() - reference).norm()) <= 0.004 * float(reference.norm())
