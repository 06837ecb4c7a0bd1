"""futures, monitor, utils.weak, module_tracker, swap_tensors, ThroughputBenchmark, collect_env, deterministic: beside PyTorch's where it has a result to compare."""

from __future__ import annotations

import threading
import time
import warnings
from datetime import datetime, timedelta
from importlib import import_module

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")


def of(library, name):
    return import_module(f"{library.__name__}.{name}")


def futures_story(m):
    f = of(m, "futures")
    seen = []
    first, second = f.Future(), f.Future()
    first.add_done_callback(lambda x: seen.append(("done", x.value())))
    doubled = first.then(lambda x: x.wait() * 2)
    failing = first.then(lambda x: 1 // 0)
    both = f.collect_all([first, second])
    seen.append((first.done(), doubled.done(), both.done()))
    thread = threading.Thread(target=lambda: (first.set_result(3), second.set_result(4)))
    thread.start()
    seen.append(f.wait_all([first, second, doubled]))
    thread.join()
    seen.append([x.wait() for x in both.wait()])
    for act in (failing.wait, lambda: first.set_result(1), lambda: f.Future().set_exception("no exception"), lambda: f.Future().value()):
        try:
            act()
        except Exception as error:
            seen.append(type(error).__name__ if isinstance(error, AssertionError) else isinstance(error, Exception))
    broken = f.Future()
    broken.set_exception(ValueError("given"))
    try:
        broken.wait()
    except ValueError as error:
        seen.append(str(error))
    return seen


def test_futures_as_pytorchs():
    ours, theirs = futures_story(trt), futures_story(torch)
    assert [x if not isinstance(x, str) or x == "given" else True for x in theirs] == [
        x if not isinstance(x, str) or x == "given" else True for x in ours
    ]


def monitor_story(m):
    mon = of(m, "monitor")
    kinds = ["MEAN", "COUNT", "SUM", "MAX", "MIN"]
    events = []
    handle = mon.register_event_handler(lambda e: events.append((e.name, dict(e.data))))
    window = mon.Stat("loss", [getattr(mon.Aggregation, k) for k in kinds], timedelta(milliseconds=20))
    counted = mon.Stat("n", [mon.Aggregation.SUM], timedelta(hours=1), 2)
    seen = [window.name, window.count]
    for v in (3, 5):
        window.add(v)
    seen.append(window.count)
    time.sleep(0.03)
    window.add(1.5)
    seen += [{k.name: v for k, v in window.get().items()}, window.count]
    for v in (1, 2, 3):
        counted.add(v)
    seen += [counted.count, {k.name: v for k, v in counted.get().items()}]
    event = mon.Event("x", datetime.now(), {"a": 1, "b": 2.5, "c": "s", "d": True})
    mon.log_event(event)
    mon.unregister_event_handler(handle)
    mon.log_event(event)
    return seen, [e for e in events]


def test_monitor_as_pytorchs():
    assert monitor_story(trt) == monitor_story(torch)


def test_weak_dictionaries_compare_by_identity():
    for m in (trt, torch):
        weak = of(m, "utils.weak")
        a, b = m.ones(2), m.ones(2)
        table = weak.WeakTensorKeyDictionary({a: 1})
        table[b] = 2
        assert (table[a], table[b], len(table), a in table, m.ones(2) in table) == (1, 2, 2, True, False)
        reference = weak.TensorWeakRef(a)
        assert reference() is a
        del a
        assert len(table) == 1 and reference() is None and list(table.values()) == [2]
        assert table.copy() == table and (table | {b: 5})[b] == 5
        assert weak.WeakIdRef(b) == weak.WeakIdRef(b) and hash(weak.WeakIdRef(b)) == id(b)


def tracker_story(m):
    seen = []

    class Inner(m.nn.Module):
        def forward(self, x):
            seen.append(sorted(tracker.parents))
            x.register_hook(lambda g: seen.append((sorted(tracker.parents), tracker.is_bw)))
            return x * 2

    class Outer(m.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x + 1).sum()

    with of(m, "utils.module_tracker").ModuleTracker() as tracker:
        (Outer()(m.ones(3, requires_grad=True)) * 2).backward()
        seen.append((sorted(tracker.parents), tracker.is_bw))
    return seen


def test_module_tracker_as_pytorchs():
    assert tracker_story(trt) == tracker_story(torch)


def test_swap_tensors():
    for m in (trt, torch):
        a, b = m.nn.Parameter(m.ones(2)), m.zeros(3, dtype=m.float64)
        b.mark = "b"
        a.grad = m.full((2,), 7.0)
        m.utils.swap_tensors(a, b)
        assert (a.tolist(), a.dtype, a.requires_grad, a.grad, a.mark) == ([0, 0, 0], m.float64, False, None, "b")
        assert (b.tolist(), b.requires_grad, b.grad.tolist()) == ([1, 1], True, [7, 7]) and type(b) is m.nn.Parameter and type(a) is m.Tensor
        b.sum().backward()
        assert b.grad.tolist() == [8, 8]
    with pytest.raises(RuntimeError, match="no leaf"):
        trt.utils.swap_tensors(trt.ones(1, requires_grad=True) * 2, trt.ones(1))


def test_throughput_benchmark_calls_from_threads():
    called = []
    bench = trt.utils.ThroughputBenchmark(lambda x, scale=1: called.append(threading.get_ident()) or x * scale)
    with pytest.raises(RuntimeError):
        bench.benchmark()
    bench.add_input(trt.ones(2), scale=3)
    stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=20)
    assert stats.num_iters == 20 and len(called) == 22 and len(set(called)) == 2
    assert stats.iters_per_second == pytest.approx(2000 / stats.latency_avg_ms) and "Total number of iterations: 20" in str(stats)
    assert bench.run_once(trt.ones(2), 4).tolist() == [4, 4]
    format_time = of(torch, "utils.throughput_benchmark").format_time
    ours = of(trt, "utils.throughput_benchmark").format_time
    assert [ours(**kw) for kw in ({"time_us": 12}, {"time_ms": 2.5}, {"time_s": 3})] == [
        format_time(**kw) for kw in ({"time_us": 12}, {"time_ms": 2.5}, {"time_s": 3})
    ]
    failing = trt.utils.ThroughputBenchmark(lambda: 1 // 0)
    failing.add_input()
    with pytest.raises(ZeroDivisionError):
        failing.benchmark(num_calling_threads=2)


def test_collect_env_names_version_and_system():
    ours, theirs = (of(m, "utils.collect_env") for m in (trt, torch))
    text = ours.get_pretty_env_info()
    assert f"PyTorch version: {trt.__version__}" in text and "numpy==" in text
    mine, other = ours.get_env_info(), theirs.get_env_info()
    for field in ("libc_version", "os", "gcc_version", "python_platform", "is_cuda_available"):
        assert getattr(mine, field) == getattr(other, field), field


def test_deterministic_switch_is_kept():
    for m in (trt, torch):
        switch = of(m, "utils.deterministic")
        assert switch.fill_uninitialized_memory is True
        switch.fill_uninitialized_memory = False
        assert switch.fill_uninitialized_memory is False
        switch.fill_uninitialized_memory = True
        with pytest.raises(RuntimeError):
            switch.fill_uninitialized_memory = 1


def test_hooks_marked_unserializable_are_not_warned_of():
    for m in (trt, torch):
        hooks = of(m, "utils.hooks")
        x = m.ones(1, requires_grad=True)
        x.register_hook(hooks.unserializable_hook(lambda g: g))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            hooks.warn_if_has_hooks(x)
        x.register_hook(lambda g: g)
        with pytest.warns(UserWarning, match="will not be serialized"):
            hooks.warn_if_has_hooks(x)


def test_backtrace_has_frames():
    assert "frame #0" in trt.utils.get_cpp_backtrace() and len(trt.utils.get_cpp_backtrace(maximum_number_of_frames=2).splitlines()) == 2
