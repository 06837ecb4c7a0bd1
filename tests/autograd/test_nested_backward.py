"""Backward passes inside of backward passes, beyond any recursion limit; Ctrl-C in the middle of a pass."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import tensorrt_lite as trt

ROOT = Path(__file__).resolve().parents[2]
DEPTH = 900


class Nested(trt.autograd.Function):
    """y = x; backward runs a pass of one level less, and `at_the_end` in the innermost."""

    at_the_end = staticmethod(lambda: None)

    @staticmethod
    def forward(ctx, x, level):
        ctx.level = level
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        if ctx.level == 0:
            Nested.at_the_end()
            return g, None
        with trt.enable_grad():
            x = g.detach().requires_grad_()
            (inner,) = trt.autograd.grad(Nested.apply(x, ctx.level - 1), x, trt.ones(1))
        return g * inner, None


def run(depth: int = DEPTH, at_the_end=lambda: None) -> trt.Tensor:
    Nested.at_the_end = staticmethod(at_the_end)
    try:
        x = trt.ones(1, requires_grad=True)
        Nested.apply(x * 3, depth).backward()
    finally:
        Nested.at_the_end = staticmethod(lambda: None)
    return x.grad


def test_passes_nest_beyond_the_recursion_limit() -> None:
    assert sys.getrecursionlimit() <= 10 * DEPTH
    assert run().tolist() == [3.0]


def test_passes_nest_on_a_small_stack() -> None:
    """A thread of 256 KB, as libraries make them."""
    result: list = []
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=lambda: result.append(run(300).tolist()))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert result == [[3.0]]


def test_state_and_exceptions_travel() -> None:
    seen = []

    def look() -> None:
        seen.append((trt.is_grad_enabled(), trt.is_inference_mode_enabled(), threading.get_ident() != threading.main_thread().ident))
        seen.append(trt.rand(1).item())

    with trt.enable_grad():
        trt.manual_seed(5)
        run(100, look)
        trt.manual_seed(5)
    assert seen == [(False, False, True), trt.rand(1).item()]

    def fail() -> None:
        raise KeyError("from level 0")

    for _ in range(2):
        with pytest.raises(KeyError, match="from level 0"):
            run(100, fail)
    assert trt.is_grad_enabled()
    assert run(50).tolist() == [3.0]


def test_hooks_on_saved_tensors_travel() -> None:
    class Square(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    packed = []

    def save() -> None:
        with trt.enable_grad():
            Square.apply(trt.ones(1, requires_grad=True))

    with trt.autograd.graph.saved_tensors_hooks(lambda t: packed.append(threading.get_ident()) or t, lambda t: t):
        run(100, save)
    assert len(packed) == 1 and packed[0] != threading.get_ident()


def test_threads_nest_side_by_side() -> None:
    results: list = []
    threads = [threading.Thread(target=lambda: results.append(run(120).tolist())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[3.0]] * 3


INTERRUPTED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell starts background jobs without it
import tensorrt_lite as trt
trt.set_num_threads(1)

class Nested(trt.autograd.Function):
    @staticmethod
    def forward(ctx, x, level):
        ctx.level = level
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        with trt.enable_grad():
            x = g.detach().requires_grad_()
            if ctx.level:
                trt.autograd.grad(Nested.apply(x, ctx.level - 1), x, g)
            else:
                long_pass(x)
        return g, None

def long_pass(x):
    w = trt.eye(400, dtype=trt.float64)
    y = (x * w).mm(w)
    for _ in range(100):
        y = y.mm(w)
    print("starts", flush=True)
    y.sum().backward()

x = trt.ones(1, dtype=trt.float64, requires_grad=True)
try:
    {work}
except KeyboardInterrupt:
    print("interrupted", x.grad is None, trt.is_grad_enabled())
(x * 2).sum().backward()
print(x.grad.tolist())
"""


@pytest.mark.parametrize("work", ["long_pass(x)", "Nested.apply(x, 60).backward()"])
def test_ctrl_c_ends_a_pass_at_the_next_node(work) -> None:
    """A pass of about half a second, in the calling thread and in one that goes on for it; the signal comes at its beginning."""
    child = subprocess.Popen([sys.executable, "-c", INTERRUPTED.replace("{work}", work)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert child.stdout.readline() == "starts\n"
        os.kill(child.pid, signal.SIGINT)
        output, _ = child.communicate(timeout=120)
    finally:
        child.kill()
    assert output.splitlines() == ["interrupted True True", "[2.0]"]
