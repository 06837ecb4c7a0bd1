"""The executor under load: long chains, wide graphs, threads, errors in the middle, memory; anomaly mode and the graph module."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from time import thread_time

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import anomaly_mode


def test_long_chain_neither_recurses_nor_leaks() -> None:
    """The chain of a million Nodes is in tools/soak.py; this one is beyond any recursion limit, too."""
    x, one = trt.ones(1, requires_grad=True), trt.ones(1)
    y = x
    for _ in range(100_000):
        y = y + one
    y.backward()
    assert x.grad.tolist() == [1.0]
    del y
    y = x
    for _ in range(100_000):
        y = y * y
    start = thread_time()
    del y
    assert thread_time() - start < 5


def test_wide_graph_adds_everything() -> None:
    x = trt.ones(4, requires_grad=True)
    h = x * 1
    parts = [h * i for i in range(500)]
    while len(parts) > 1:
        parts = [a + b for a, b in zip(parts[::2], parts[1::2])] + parts[len(parts) // 2 * 2 :]
    parts[0].backward(trt.ones(4))
    assert x.grad.tolist() == [float(sum(range(500)))] * 4


def test_diamonds_run_each_node_once() -> None:
    """2^60 paths: only a run that waits for all gradients of a Node ends."""
    x = trt.ones(1, dtype=trt.float64, requires_grad=True)
    y = x
    for _ in range(60):
        y = y * 0.5 + y * 0.5
    y.backward()
    assert x.grad.tolist() == [1.0]


def test_two_threads_share_leaves() -> None:
    n, rounds = 70_000, 15
    x = trt.ones(n, requires_grad=True)
    failures = []

    def work() -> None:
        try:
            for _ in range(rounds):
                (x * 2 + x * x).backward(trt.ones(n))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures
    assert set(x.grad.tolist()) == {4.0 * 2 * rounds}


def test_two_threads_run_one_graph() -> None:
    x = trt.ones(50_000, requires_grad=True)
    y = x
    for _ in range(20):
        y = y * 1.0 + 0.0
    results = []

    def work() -> None:
        for _ in range(5):
            results.append(trt.autograd.grad(y, x, trt.ones(50_000), retain_graph=True)[0].select(0, 7).item())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [1.0] * 10


FREES = """
import threading
import tensorrt_lite as trt

trt.set_num_threads(1)

def work(keep):
    try:
        z.backward(retain_graph=keep)
    except RuntimeError as error:
        assert "a second time" in str(error)

for _ in range(60):
    x, w = (trt.rand(200_000, requires_grad=True) for _ in range(2))
    y = x.exp()
    z = trt.addcmul((y * w).sin() * (y / (w + 1)), y * 2, w * 3).sum()
    del y
    threads = [threading.Thread(target=work, args=(keep,)) for keep in (True, False, True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_a_thread_frees_the_graph_that_others_run() -> None:
    """What a Node has saved stays for the length of its own run. In a process of its own: it was a crash."""
    done = subprocess.run([sys.executable, "-c", FREES], cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]


def test_an_error_leaves_a_usable_state() -> None:
    x = trt.ones(3, requires_grad=True)
    y = x * 2

    def fail(g):
        raise KeyError("from the hook")

    handle = y.register_hook(fail)
    z = y * y
    with pytest.raises(KeyError, match="from the hook"):
        z.backward(trt.ones(3), retain_graph=True)
    assert trt.is_grad_enabled() and x.grad is None
    handle.remove()
    z.backward(trt.ones(3))
    assert x.grad.tolist() == [8.0] * 3


def test_training_steps_leave_no_garbage_and_flat_memory() -> None:
    w = [trt.ones(20, 20, requires_grad=True) for _ in range(3)]
    x = trt.ones(20, 20)

    def step() -> None:
        h = x
        for p in w:
            h = (h * p + h).tanh()
        row = h.select(0, 0)
        (row * h.narrow(0, 0, 1)).backward(trt.ones(1, 20))
        with trt.no_grad():
            for p in w:
                p.sub_(p.grad * 0.01)
                p.grad = None

    for _ in range(50):
        step()
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(200):
            step()
        assert len(gc.get_objects()) - before < 50
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_gradient_is_handed_on_without_a_copy_only_when_nobody_else_holds_it() -> None:
    x = trt.ones(3, requires_grad=True)
    g = trt.ones(3)
    (x + 0).backward(g)
    x.grad.add_(1)
    assert g.tolist() == [1.0] * 3


def test_anomaly_mode_names_the_forward_call() -> None:
    x = trt.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as seen, trt.autograd.set_detect_anomaly(True, check_nan=False):
        warnings.simplefilter("always")
        assert anomaly_mode.is_anomaly_enabled() and not anomaly_mode.is_anomaly_check_nan_enabled()
        y = x * 1
        z = y * y  # the line that the traceback shows
        with trt.no_grad():
            y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward(trt.ones(2))
    assert not anomaly_mode.is_anomaly_enabled()
    text = str(seen[0].message)
    assert "MulBackward0" in text and "the line that the traceback shows" in text


def test_anomaly_mode_finds_nan() -> None:
    x = trt.zeros(1, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with trt.autograd.detect_anomaly():
            y = (x * 0).sqrt() * 0
            with pytest.raises(RuntimeError, match="returned nan values in its 0th output"):
                y.backward()
    (x * 0).sqrt().mul(0).backward()


def test_variable_and_batched_gradients() -> None:
    t = trt.ones(1)
    assert isinstance(t, trt.autograd.Variable)
    assert trt.autograd.Variable(t, requires_grad=True).requires_grad
    x = trt.ones(2, requires_grad=True)
    assert trt.autograd.grad(x * 2, x, trt.ones(3, 2), is_grads_batched=True)[0].tolist() == [[2.0, 2.0]] * 3
