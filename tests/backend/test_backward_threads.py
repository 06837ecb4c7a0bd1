"""Backward passes over custom devices: in threads of their own, on the streams of the forward calls. Each test is a program of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.free_threading import devices_have_threads

ROOT = Path(__file__).resolve().parents[2]

START = """
import os, signal, sys, threading
sys.path.insert(0, "examples")
import tensorrt_lite as trt
from custom_device import interface, npu

main = threading.get_ident()

def leaf(place, n=3):
    return trt.ones(n, device=place, requires_grad=True)
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", START + program], capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False, timeout=120
    )  # fmt: skip
    assert done.returncode == 0 and "Exception ignored" not in done.stderr, (done.returncode, done.stdout, done.stderr[-3000:])
    return done.stdout


@devices_have_threads
def test_each_device_has_a_thread() -> None:
    run("""
together = threading.Barrier(3)
seen = {}
leaves = {place: leaf(place) for place in ("cpu", "npu:0", "npu:1")}
total = trt.zeros(3)
for place, x in leaves.items():
    def hook(g, place=place):
        together.wait(60)
        seen[place] = threading.get_ident(), npu.current_device()
    y = x * 2
    y.register_hook(hook)
    total = total + y.cpu()
total.sum().backward()
assert seen["cpu"] == (main, 0) and seen["npu:0"][1] == 0 and seen["npu:1"][1] == 1
assert len({thread for thread, _ in seen.values()}) == 3
assert all(x.grad.tolist() == [2.0] * 3 and x.grad.device == x.device for x in leaves.values())
with trt.autograd.set_multithreading_enabled(False):
    y = leaves["npu:1"] * 2
    y.register_hook(lambda g: seen.update(single=threading.get_ident()))
    y.sum().backward()
assert seen["single"] == main
""")


def test_memory_that_is_left_at_the_end_waits_for_nobody() -> None:
    """Threads stop where they are when the interpreter ends, also one that holds what `release` waits for; the memory goes with the process."""
    run("""
held, lock = threading.Event(), threading.Lock()

def hold():
    with lock:
        held.set()
        threading.Event().wait()

original = npu._core.release

def release(*arguments, lock=lock, original=original):  # globals are gone by then
    with lock:
        original(*arguments)

npu._core.release = release
trt.kept = leaf("npu:0")  # goes when modules do
threading.Thread(target=hold, daemon=True).start()
held.wait()
""")


def test_backward_runs_on_the_streams_of_forward() -> None:
    """With a thread and without: hooks and kernels of a Node meet its forward call's stream, which the caller's waits for at the end."""
    run("""
from tensorrt_lite.autograd import set_multithreading_enabled

for threads in (True, False):
    with set_multithreading_enabled(threads):
        for place in (0, 1):
            first, second = npu.Stream(place), npu.Stream(place)
            x = leaf(f"npu:{place}", 1000)
            ran = []
            note = lambda name: lambda g: ran.append((name, npu.current_stream(place).stream_id, npu.current_device()))
            first.wait_stream(npu.current_stream(place))  # which fills x
            with first:
                y = x * 2
                y.register_hook(note("first"))
            second.wait_stream(first)
            with second:
                z = y * y
                z.register_hook(note("second"))
                z2 = z.sum()
            npu.current_stream(place).wait_stream(second)
            waits = []
            original = interface.wait_event
            interface.wait_event = lambda index, stream, event: (waits.append((index, stream)), original(index, stream, event))
            try:
                (z2 * 1).backward()
            finally:
                interface.wait_event = original
            assert ran == [("second", second.stream_id, place), ("first", first.stream_id, place)], (threads, ran)
            assert (place, first.stream_id) in waits and (place, 0) in waits, waits
            assert npu.current_stream(place) == npu.default_stream(place) and npu.current_device() == 0
            assert x.grad.tolist() == [8.0] * 1000
""")


def test_a_slow_stream_is_waited_for() -> None:
    """Work of the forward call's stream that is late: what other streams do with its gradients comes after it."""
    run("""
import time
for _ in range(20):
    slow = npu.Stream()
    x = leaf("npu:0", 100)
    with slow:
        y = x * 3
        interface.launch(0, lambda: time.sleep(0.01))
    npu.current_stream().wait_stream(slow)
    with trt.no_grad():
        z = y.detach()
    w = (y * 2).sum()
    with slow:
        interface.launch(0, lambda: time.sleep(0.01))
    w.backward()
    assert x.grad.tolist() == [6.0] * 100
""")


@devices_have_threads
def test_fork_and_exit() -> None:
    """A child has workers of its own; a process ends while one waits in a hook."""
    assert run("""
def train():
    x = leaf("npu:1")
    thread = []
    x.register_hook(lambda g: thread.append(threading.get_ident()))
    (x * 2).cpu().sum().backward()
    assert x.grad.cpu().tolist() == [2.0] * 3 and thread != [main]

from tensorrt_lite.backend import HostMemoryInterface, register_device
npu = register_device("plain", HostMemoryInterface("plain"))
npu.fall_back_to_cpu()

def plain():
    x = leaf("plain")
    thread = []
    x.register_hook(lambda g: thread.append(threading.get_ident()))
    (x * 2).cpu().sum().backward()
    assert x.grad.tolist() == [2.0] * 3 and thread != [main]

train(); plain()
child = os.fork()
if child == 0:
    try:
        plain(); plain()
    except BaseException:
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
plain()
y = leaf("plain") * 2
entered = threading.Event()
y.register_hook(lambda g: entered.set() or threading.Event().wait())
threading.Thread(target=y.sum().backward, daemon=True).start()
entered.wait(60)
print("ends")
""") == "ends\n"  # fmt: skip


INTERRUPTED = """
signal.signal(signal.SIGINT, signal.default_int_handler)
forever = threading.Event()
x = leaf("npu:0")
y = x * 2
y.register_hook(lambda g: print("starts", flush=True) or (forever.wait(60) and None))
try:
    y.sum().cpu().backward()
except KeyboardInterrupt:
    print("interrupted", x.grad is None, trt.is_grad_enabled(), flush=True)
forever.set()
z = leaf("npu:0")
(z * 2).sum().backward()
print(z.grad.tolist())
"""


@devices_have_threads
def test_ctrl_c_while_a_worker_runs() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", START + INTERRUPTED], stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    try:
        assert child.stdout.readline() == "starts\n"
        os.kill(child.pid, signal.SIGINT)
        output, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert output.splitlines() == ["interrupted True True", "[2.0, 2.0, 2.0]"]
