"""CUDA C++ of one's own on the emulated device: compilation, arguments, errors, operators made of it."""

from __future__ import annotations

import ctypes
import os
import tempfile
from pathlib import Path

import tensorrt_lite as torch
from device_checks import raises

SOURCE = r"""
#include <cuda_fp16.h>
#include "iteration.cuh"
struct Pair { int a; double b; };
// every kind of parameter, at the places where C puts them: extern "C" __global__ void not_a_kernel(int)
extern "C" __global__ void __launch_bounds__(256) everything(const float* __restrict__ x, double* out, bool flag, signed char i8, short i16, int i32, long long i64, float f, double d, unsigned u,
                                      size_t z, __half h, Pair pair, const void* nothing) {
    const double values[] = {x[1], flag ? 1. : 0., double(i8), double(i16), double(i32), double(i64), f, d, double(u), double(z), double(__half2float(h)), pair.a + pair.b, nothing ? 1. : 0.};
    for (int i = threadIdx.x; i < 13; i += blockDim.x) out[i] = values[i];
}
extern "C" __global__ void reversed(const long long* x, long long* out, int n) {
    extern __shared__ long long held[];
    held[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = held[n - 1 - threadIdx.x];
}
"""


class Pair(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]


def check_arguments() -> None:
    """Numbers of all sizes, structures, null pointers, shared memory; what does not fit is named."""
    code = torch.cuda.compile_source(SOURCE)
    assert code.kernels == ["everything", "reversed"]
    x, out = torch.tensor([1.0, 2.5]).cuda(), torch.zeros(13, dtype=torch.float64, device="cuda")
    numbers = [True, -3, -300, 1 << 30, -(1 << 40), 0.5, 0.1, (1 << 32) - 1, 1 << 50, 0.25]
    code.everything((1,), (32,), (x, out, *numbers, Pair(3, 0.5), None))
    assert out.tolist() == [2.5, 1, -3, -300, 1 << 30, -(1 << 40), 0.5, 0.1, (1 << 32) - 1, 1 << 50, 0.25, 3.5, 0]
    values = torch.randint(0, 100, (64,))
    result = torch.empty_like(values.cuda())
    code["reversed"](1, (64, 1), (values.cuda(), result, 64), shared_mem=64 * 8)
    assert torch.equal(result.cpu(), values.flip(0))
    everything = lambda *changes: code.everything((1,), (1,), [dict(changes).get(i, v) for i, v in enumerate((x, out, *numbers, Pair(), None))])  # noqa: E731
    raises(TypeError, "takes a tensor of torch.float64, got torch.float32", everything, (1, x))
    raises(TypeError, "argument 1 (double* out) takes a tensor or None, got int", everything, (1, 3))
    raises(TypeError, "argument 3 (signed char i8) cannot take 1000", everything, (3, 1000))
    raises(TypeError, "argument 5 (int i32) cannot take 0.5", everything, (5, 0.5))
    raises(TypeError, "takes a ctypes structure", everything, (12, 3))
    raises(RuntimeError, "argument 0 is on cpu", everything, (0, x.cpu()))
    raises(TypeError, "expected 3 arguments", code["reversed"], (1,), (1,), ())
    raises(ValueError, "one to three numbers", code["reversed"], (1, 1, 1, 1), (1,), (result, result, 1))
    raises(RuntimeError, "CUDA error", code["reversed"], (1,), (4096,), (result, result, 1))
    raises(AttributeError, "no kernel 'nothing'", getattr, code, "nothing")
    raises(RuntimeError, "has no kernel", torch.cuda.compile_source, "__global__ void f(int) {}")
    raises(RuntimeError, "undeclared_name", torch.cuda.compile_source, 'extern "C" __global__ void f(int* x) { *x = undeclared_name; }')


def check_files_and_streams() -> None:
    """A file with a header beside it; another stream, late; a part of a graph."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "add.cuh").write_text("__device__ inline float plus(float x) { return x + 1; }\n")
        Path(folder, "add.cu").write_text('#include "add.cuh"\nextern "C" __global__ void add(float* x) { x[threadIdx.x] = plus(x[threadIdx.x]); }\n')
        code = torch.cuda.compile_source(Path(folder, "add.cu"))
        same = torch.cuda.compile_source(Path(folder, "add.cu").read_text(), include=[folder])
    os.environ["CUEMU_STREAMS"] = "late"
    try:
        x = torch.zeros(32, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        code.add((1,), (32,), (x,), stream=side)
        torch.cuda.current_stream().wait_stream(side)
        same.add((1,), (32,), (x,))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            code.add((1,), (32,), (x,))
        graph.replay()
        graph.replay()
        assert (x == 4).all()
    finally:
        os.environ["CUEMU_STREAMS"] = "eager"


def check_operator() -> None:
    """A kernel for each device; tensors of two devices go to the device's; gradients on the device; the version of what a kernel writes."""
    code = torch.cuda.compile_source('extern "C" __global__ void twice(const float* x, float* out) { out[threadIdx.x] = 2 * x[threadIdx.x]; }')

    @torch.library.custom_op("checks::twice", mutates_args=(), device_types="cuda")
    def twice(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        code.twice((1,), (x.numel(),), (x, out))
        return out

    raises(NotImplementedError, "Could not run 'checks::twice' with arguments from the 'CPU' backend", twice, torch.ones(3))
    twice.register_kernel("cpu")(lambda x: x * 2)
    twice.register_fake(lambda x: torch.empty_like(x))
    twice.register_autograd(lambda ctx, grad: 2 * grad)
    for device in ("cpu", "cuda"):
        x = torch.randn(40, device=device, requires_grad=True)
        assert torch.library.opcheck(twice, (x,))["test_faketensor"] == "SUCCESS"
        y = twice(x)
        y.sum().backward()
        assert torch.equal(y, 2 * x) and (x.grad == 2).all()

    @torch.library.custom_op("checks::overwrite", mutates_args={"out"}, device_types="cuda")
    def overwrite(x: torch.Tensor, out: torch.Tensor) -> None:
        code.twice((1,), (x.numel(),), (x, out))

    out = torch.zeros(40, device="cuda")
    version = out._version
    overwrite(x.detach(), out)
    assert torch.equal(out, 2 * x) and out._version == version + 1
