"""Errors of kernels name operators. A kernel's error ends a real device's context, so each has a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

import tensorrt_lite as trt

PROGRAM = """
import os, tensorrt_lite as trt
cuda = trt.cuda
x = trt.ones(1000, device="cuda")
wild = trt.empty(0, device="cuda").set_(cuda._backend()._opened_storage(1 << 45, 4000, 0, None), 0, (1000,), (1,))
y = x.exp()
z = trt.sum(x, 0)
try:
    w = wild * 3
    print("queued")
    v = x.sin()
    cuda.synchronize()
except RuntimeError as error:
    print(error)
print(flush=True)
os._exit(0)
"""


def run(program, **environment):
    environment = {k: v for k, v in os.environ.items() if k != "CUDA_LAUNCH_BLOCKING"} | environment
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize("streams", ["late", "eager"])
def test_a_blocking_launch_names_its_operator(streams):
    said = run(PROGRAM, CUDA_LAUNCH_BLOCKING="1", CUEMU_STREAMS=streams)
    assert "illegal memory access" in said and "(operator mul)" in said and "queued" not in said


def test_a_late_error_lists_the_last_operators():
    said = run(PROGRAM, CUEMU_STREAMS="late", CUEMU_ERRORS="sticky")
    assert said.startswith("queued") and "illegal memory access" in said
    # a card may have failed before `sin` is launched
    assert re.search("latest first: (sin, )?mul, kernel reduce.inner, exp", said), said


def test_blocking_launches_may_be_recorded():
    said = run("""
import tensorrt_lite as trt
x, g = trt.ones(4, device="cuda"), trt.cuda.CUDAGraph()
y = x * 2 + 1
with trt.cuda.graph(g):
    y = x * 2 + 1
x.fill_(4)
g.replay()
print(y.tolist())
""", CUDA_LAUNCH_BLOCKING="1")  # fmt: skip
    assert said == "[9.0, 9.0, 9.0, 9.0]\n"


def test_a_family_imported_alone_waits_for_the_others():
    said = run("""
import tensorrt_lite._C.cuda.linalg
import tensorrt_lite as trt
print(trt.arange(4.0, device="cuda").flip(0).sort()[1].tolist())
""")  # fmt: skip
    assert said == "[3, 2, 1, 0]\n"


@pytest.mark.parametrize(
    "call",
    ["x[i]", "x[:, i]", "x[i > 0]", "x.index_put_((i,), trt.ones(3))", "x.__setitem__(i, 1.0)", "trt.nn.Embedding(3, 2, max_norm=1.0)(i)"],
)
def test_indices_on_the_device_do_not_reach_host_memory(call):
    x, i = trt.ones(3, 3), trt.tensor([0], device="cuda")
    with pytest.raises(RuntimeError, match="device|cuda"):
        eval(call, {"x": x, "i": i, "trt": trt})


def test_storages_and_gradients_of_another_device_are_refused():
    x = trt.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="expected device cpu but got cuda:0"):
        (x * 2).backward(trt.ones(2, device="cuda"))
    (x * 2).sum().backward(trt.tensor(2.0, device="cuda"))  # a single number is moved, as PyTorch does
    assert x.grad.tolist() == [4, 4]
    with pytest.raises(RuntimeError, match="devices must match"):
        trt.ones(2).set_(trt.ones(2, device="cuda"))
