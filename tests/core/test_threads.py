"""Threads that share weights, views, generators, plans and memory: every one gets what it would get alone.

With the GIL they take turns; in an interpreter without one they meet in the core's own state (docs/state.md), which is what these tests are for.
"""

from __future__ import annotations

import collections
import subprocess
import sys
import sysconfig
import threading

import pytest

import tensorrt_lite as trt
from tensorrt_lite._C.core.profiler import join_recording
from tensorrt_lite.autograd import forward_ad
from tensorrt_lite.nn import functional as F
from tensorrt_lite.profiler import profile
from tests.free_threading import FREE_THREADED

ROUNDS = 1500 if FREE_THREADED else 200


def run_together(function, threads: int = 4) -> list:
    """`function(number)` in threads that begin at once; its results, or the first exception."""
    results, failures = [None] * threads, []
    barrier = threading.Barrier(threads)

    def body(number: int) -> None:
        try:
            barrier.wait()
            results[number] = function(number)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=body, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return results


def test_importing_the_package_leaves_the_gil_off():
    if not hasattr(sys, "_is_gil_enabled"):
        pytest.skip("an interpreter with the GIL")
    assert sys._is_gil_enabled() == (not sysconfig.get_config_var("Py_GIL_DISABLED"))


FIRST_CALLS = """
import gc, threading
import tensorrt_lite as trt

calls = [(name, getattr(trt, name)) for name in (%s)]
x = trt.full((3, 3), 0.5)
barrier, failures = threading.Barrier(8), []

def work():
    for name, function in calls:
        barrier.wait()
        try:
            y = function(x.clone().requires_grad_())             # the call that takes the schema apart, and makes the grad_fn's class
            y.sum().backward()
            assert type(y.grad_fn).__name__ == y.grad_fn.name(), name
            function(input=x)                                    # by the names that it keeps
        except Exception as error:
            failures.append((name, repr(error)))

threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads:
    t.start()
for t in threads:
    t.join()
gc.collect()
for name, function in calls:
    function(input=x)
assert not failures, failures
"""
UNARY = ("abs", "acos", "asin", "asinh", "atan", "ceil", "cos", "cosh", "deg2rad", "digamma", "erf", "erfc", "exp", "exp2", "expm1", "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "logit",
         "mean", "neg", "rad2deg", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "sign", "sin", "sinc", "sinh", "sqrt", "square", "sum", "t", "tan", "tanh", "trace", "trunc", "var", "std")  # fmt: skip


def test_first_calls_of_several_threads():
    """What an operator keeps from its first call is made once, whoever else calls it for the first time meanwhile."""
    subprocess.run([sys.executable, "-c", FIRST_CALLS % ", ".join(map(repr, UNARY))], check=True, timeout=300)


def test_small_operators_of_several_threads():
    def work(number: int) -> float:
        x = trt.full((4, 4), float(number))
        for _ in range(ROUNDS):
            y = (x + 1) * 2 - x
            y = y.t().reshape(-1)[2:9].sum()
        return y.item()

    assert run_together(work) == [7.0 * (2 * (n + 1) - n) for n in range(4)]


def test_blocks_that_another_thread_gives_back():
    """One half makes tensors, the other lets go of them: figures and memory are as before."""
    before = trt._C.core.allocator.memory_stats()["allocated_bytes.current"]
    queues = [collections.deque() for _ in range(2)]

    def work(number: int) -> float:
        queue, total = queues[number // 2], 0.0
        if number % 2:
            for i in range(ROUNDS):
                queue.append(trt.full((i % 40 + 1,), 2.0))
            queue.append(None)
            return 0.0
        while True:
            if not queue:
                continue
            t = queue.popleft()
            if t is None:
                return total
            total += t.sum().item() / t.numel()
            del t

    assert run_together(work) == [2.0 * ROUNDS, 0.0] * 2
    assert trt._C.core.allocator.memory_stats()["allocated_bytes.current"] == before


def test_gradients_of_shared_weights():
    """Passes of several threads meet at the leaves: no contribution is lost, whoever makes the accumulator."""
    w = trt.ones(3, 3, requires_grad=True)
    rounds = ROUNDS // 5

    def work(number: int) -> None:
        x = trt.full((2, 3), 1.0)
        for _ in range(rounds):
            (x @ w).sum().backward()

    run_together(work)
    assert w.grad.tolist() == [[2.0 * 4 * rounds] * 3] * 3


def test_passes_over_a_shared_graph():
    x = trt.ones(8, requires_grad=True)
    shared = (x * 2).exp()
    expected = trt.autograd.grad(shared.sum(), x, retain_graph=True)[0].tolist()

    def work(number: int) -> bool:
        return all(trt.autograd.grad((shared * 1.0).sum(), x, retain_graph=True)[0].tolist() == expected for _ in range(ROUNDS // 10))

    assert all(run_together(work))


def test_views_of_a_shared_base():
    """The list of a base's views and the counter of its writes are the threads' common ones."""
    base = trt.zeros(16, 16)
    before = base._version

    def work(number: int) -> None:
        for i in range(ROUNDS):
            views = [base[number], base.t(), base.reshape(4, 64)]
            views[0].add_(1)
            del views

    run_together(work)
    assert base._version == before + 4 * ROUNDS
    assert base[:4].tolist() == [[float(ROUNDS)] * 16] * 4


def test_numbers_of_a_shared_generator():
    """Fills interleave as wholes: together the threads draw what one thread draws."""
    generator = trt.Generator().manual_seed(3)
    rounds = ROUNDS // 10
    drawn = run_together(lambda number: [tuple(trt.rand(5, generator=generator).tolist()) for _ in range(rounds)])
    generator.manual_seed(3)
    alone = [tuple(trt.rand(5, generator=generator).tolist()) for _ in range(4 * rounds)]
    assert sorted(sum(drawn, [])) == sorted(alone)


def test_plans_of_transforms():
    lengths = [*range(2, 60), 97, 101, 256]
    signals = {n: trt.arange(n, dtype=trt.float64) for n in lengths}
    expected = {n: trt.fft.fft(signals[n]).tolist() for n in lengths}

    def work(number: int) -> bool:
        return all(trt.fft.fft(signals[n]).tolist() == expected[n] for _ in range(3) for n in (lengths if number % 2 else lengths[::-1]))

    assert all(run_together(work))


def test_lazy_clones():
    """Clones that share memory until somebody writes: each writer gets a copy of its own."""
    for _ in range(ROUNDS // 20):
        source = trt.arange(64.0)
        clones = [trt._lazy_clone(source) for _ in range(4)]
        run_together(lambda number: clones[number].add_(number))
        assert [c[0].item() for c in clones] == [0.0, 1.0, 2.0, 3.0]
        assert source.tolist() == list(map(float, range(64)))


def test_tangents_of_several_threads():
    rounds = ROUNDS // 10
    with forward_ad.dual_level():

        def work(number: int) -> bool:
            one = trt.ones(3)
            for _ in range(rounds):
                dual = forward_ad.make_dual(one * number, one)
                if forward_ad.unpack_dual(dual * dual).tangent.tolist() != [2.0 * number] * 3:
                    return False
            return True

        assert all(run_together(work))


def test_training_of_several_models():
    """Models, optimizers and losses of their own: as if alone."""

    def train(number: int) -> list:
        generator = trt.Generator().manual_seed(5)
        model = trt.nn.Sequential(trt.nn.Linear(6, 16), trt.nn.ReLU(), trt.nn.Linear(16, 3))
        with trt.no_grad():
            for p in model.parameters():
                p.copy_(trt.rand(p.shape, generator=generator) - 0.5)
        x, y = trt.rand(20, 6, generator=generator), trt.arange(20) % 3
        optimizer = trt.optim.Adam(model.parameters(), lr=0.01)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    alone = train(0)
    assert alone[-1] < alone[0]
    assert run_together(train) == [alone] * 4


def test_recordings_that_end_while_others_run():
    """The profiler stops in one thread while others still call operators that it records."""
    failures = []

    def work(begun: threading.Event) -> None:
        try:
            join_recording()
            begun.set()
            x = trt.ones(4)
            for _ in range(1000):
                x = (x + 1).sin()
        except BaseException as error:
            failures.append(error)

    for _ in range(10):
        begun = threading.Event()
        with profile(record_shapes=True) as recorded:
            worker = threading.Thread(target=work, args=(begun,))
            worker.start()
            begun.wait()
            for _ in range(5):
                trt.ones(3) * 2
        worker.join()
        assert any(row.key == "aten::mul" for row in recorded.key_averages())
    assert not failures
