"""A device of one's own, whose memory the host cannot address: its allocator, streams, kernels and steps, and a model trained on it beside the CPU.

    python examples/custom_device.py [--steps 20]

The device is made of threads: a stream is a thread that runs what it is given in order, so kernels and copies return before they are done. Its memory is a
table of buffers behind addresses that mean nothing to the processor; a library's driver would stand in their place. The kernels compute with the CPU's
operators on views of these buffers.
"""

from __future__ import annotations

import argparse
import bisect
import collections
import ctypes
import itertools
import queue
import threading
from typing import TYPE_CHECKING, Any

import tensorrt_lite as trt
import tensorrt_lite.nn.functional as F
from tensorrt_lite import backend, nn

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = trt.Tensor


class Queue:
    """A stream: a thread that runs tasks in the order in which it has been given them."""

    def __init__(self) -> None:
        # memory goes back at any allocation of Python's, so also while this thread puts a task: Queue.put would wait for itself then
        self.tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.unfinished: collections.deque[None] = collections.deque()
        self.failure: Exception | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            task = self.tasks.get()
            try:
                task()
            except Exception as error:  # reported where the host waits
                self.failure = error
            self.unfinished.pop()

    def put(self, task: Callable[[], None]) -> None:
        self.unfinished.append(None)
        self.tasks.put(task)

    def wait(self) -> None:
        done = threading.Event()
        self.put(done.set)
        done.wait()
        if self.failure is not None:
            error, self.failure = self.failure, None
            raise error


class Npu(backend.DeviceInterface):
    """Two devices with memory, streams and events."""

    def __init__(self) -> None:
        self._bases: list[list[int]] = [[], []]  # of each device, ascending
        self._buffers: dict[int, bytearray] = {}
        self._next = itertools.count(1 << 40, 1 << 32)
        self._queues: dict[tuple[int, int], Queue] = {}
        self._lock = threading.RLock()  # memory may go back at any allocation of Python's
        self._current = threading.local()

    def device_count(self) -> int:
        return 2

    # -- memory ----------------------------------------------------------------------------------------------------------

    def allocate(self, nbytes: int, index: int) -> int:
        with self._lock:
            base = next(self._next)
            self._buffers[base] = bytearray(nbytes)
            self._bases[index].append(base)
        return base

    def release(self, address: int, nbytes: int, index: int) -> None:
        self.launch(index, lambda: self._forget(address, index))  # behind the work that uses it

    def _forget(self, address: int, index: int) -> None:
        with self._lock:
            del self._buffers[address]
            self._bases[index].remove(address)

    def find(self, address: int, index: int) -> tuple[bytearray, int]:
        """The buffer that an address lies in, and where."""
        bases = self._bases[index]
        base = bases[bisect.bisect_right(bases, address) - 1]
        return self._buffers[base], address - base

    def to_host(self, destination: int, source: int, nbytes: int, index: int, non_blocking: bool) -> None:
        def copy() -> None:
            buffer, at = self.find(source, index)
            ctypes.memmove(destination, (ctypes.c_char * nbytes).from_buffer(buffer, at), nbytes)

        self.launch(index, copy, wait=not non_blocking)

    def to_device(self, destination: int, source: int, nbytes: int, index: int, non_blocking: bool) -> None:
        def copy() -> None:
            buffer, at = self.find(destination, index)
            ctypes.memmove((ctypes.c_char * nbytes).from_buffer(buffer, at), source, nbytes)

        self.launch(index, copy, wait=not non_blocking)

    # -- streams and events ----------------------------------------------------------------------------------------------

    def queue(self, index: int, stream: int | None = None) -> Queue:
        number: int = getattr(self._current, "streams", {}).get(index, 0) if stream is None else stream
        with self._lock:
            if (index, number) not in self._queues:
                self._queues[index, number] = Queue()
            return self._queues[index, number]

    def launch(self, index: int, task: Callable[[], None], wait: bool = False) -> None:
        """Give the thread's current stream a task."""
        found = self.queue(index)
        found.put(task)
        if wait:
            found.wait()

    def set_current_stream(self, index: int, stream: int) -> None:
        self._current.streams = {**getattr(self._current, "streams", {}), index: stream}

    def synchronize(self, index: int) -> None:
        for (i, _), found in list(self._queues.items()):
            if i == index:
                found.wait()

    def synchronize_stream(self, index: int, stream: int) -> None:
        self.queue(index, stream).wait()

    def query_stream(self, index: int, stream: int) -> bool:
        return not self.queue(index, stream).unfinished

    def record_event(self, index: int, stream: int, event: Any, timing: bool) -> Any:
        mark = threading.Event()
        self.queue(index, stream).put(mark.set)
        return mark

    def wait_event(self, index: int, stream: int, event: Any) -> None:
        self.queue(index, stream).put(event.wait)

    def query_event(self, index: int, event: threading.Event) -> bool:
        return event.is_set()

    def synchronize_event(self, index: int, event: Any) -> None:
        event.wait()


interface = Npu()
npu = backend.register_device("npu", interface)

# ---- kernels -------------------------------------------------------------------------------------------------------------


def view(t: Tensor) -> Tensor:
    """A tensor of the device as a kernel sees it: over its buffer."""
    buffer, at = interface.find(t.data_ptr(), t.get_device())
    return trt.frombuffer(buffer, dtype=trt.uint8)[at:].view(t.dtype).as_strided(t.shape, t.stride()) if t.numel() else trt.empty(t.shape, dtype=t.dtype)


def launch(result: Tensor, compute: Callable[..., Any], *operands: Any) -> None:
    """Queue `result = compute(operands)`; the views hold the buffers until it has run."""
    to, given = view(result), [view(x) if isinstance(x, Tensor) else x for x in operands]

    @trt.no_grad()
    def task() -> None:
        to.copy_(compute(*given))

    interface.launch(result.get_device(), task)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": lambda a, b, alpha: trt.add(a, b, alpha=alpha), "sub": lambda a, b, alpha: trt.sub(a, b, alpha=alpha), "mul": trt.mul, "div": trt.div, "relu": trt.relu,
    "tanh": trt.tanh, "sqrt": trt.sqrt, "neg": trt.neg, "gt": trt.gt, "where": trt.where,
    "relu_backward_self": lambda grad, result: grad * (result > 0),
}  # fmt: skip


@npu.elementwise
def elementwise(name: str, result: Tensor, operands: list[Any], numbers: list[Any]) -> Any:
    """Pointwise operators. Shapes, types, in-place and out= forms are the package's work, and so are gradients."""
    if name not in FUNCTIONS:
        return NotImplemented  # another operator falls back, a fused derivative is composed of what is there
    launch(result, lambda *given: FUNCTIONS[name](*[x if isinstance(x, Tensor) else trt.tensor(x) for x in given], *numbers), *operands)
    return None


@npu.step("copy")
def copy(result: Tensor, source: Any) -> None:
    """Copies on the device, conversions and fills."""
    launch(result, lambda x: x if isinstance(x, Tensor) else trt.tensor(x), source)


@npu.step("reduce")
def reduce(call: Any, source: Tensor, result: Tensor, second: Tensor | None) -> None:
    """Sums and means; the struct says over which dimensions."""
    operations = backend.constants()
    if call.operation != operations["REDUCE_SUM"] or call.flags & ~operations["REDUCE_MEAN"]:
        raise NotImplementedError(f"reduction {call.operation} of the device 'npu'")
    dims, mean = [d for d in range(source.dim()) if call.reduced[d]], bool(call.flags)
    launch(result, lambda x: (trt.mean if mean else trt.sum)(x, dims, dtype=result.dtype).reshape(result.shape) if dims else x.reshape(result.shape), source)


@npu.kernel("mm")
def mm(a: Tensor, b: Tensor, out: Tensor | None) -> Tensor:
    """A whole operator: it makes its result itself."""
    result = trt.empty(a.shape[0], b.shape[1], dtype=a.dtype, device=a.device) if out is None else out
    launch(result, trt.mm, a, b)
    return result


@npu.kernel("linear")
def linear(x: Tensor, weight: Tensor, bias: Tensor | None, out: Tensor | None) -> Tensor:
    """x @ weight.T + bias"""
    result = trt.empty(*x.shape[:-1], weight.shape[0], dtype=x.dtype, device=x.device) if out is None else out
    launch(result, F.linear, x, weight, bias)
    return result


npu.fall_back_to_cpu(warn=True)  # all others, cross_entropy among them


# ---- a program -----------------------------------------------------------------------------------------------------------


def train(device: str, steps: int) -> list[float]:
    """The losses of a small classifier."""
    trt.manual_seed(0)
    points, labels = trt.randn(64, 2), trt.randint(0, 3, (64,))
    model = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 3))
    model, points, labels = model.to(device), points.to(device), labels.to(device)
    optimizer = trt.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(points), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def side_streams() -> float:
    """Work of two streams, one behind an event of the other: the sum of 1000 ones twice."""
    npu: Any = trt.get_device_module("npu")
    first, second = npu.Stream(), npu.Stream()
    with npu.stream(first):
        x = trt.ones(1000, device="npu")
        done = first.record_event()
    with npu.stream(second):
        second.wait_event(done)
        y = (x + x).sum()
        second.synchronize()
        return y.item()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20)
    steps = parser.parse_args(arguments).steps
    here, there = train("cpu", steps), train("npu:1", steps)
    for i in range(0, steps, max(1, steps // 4)):
        print(f"step {i:3}: loss on the CPU {here[i]:.5f}, on the device {there[i]:.5f}")
    print(f"largest difference {max(abs(a - b) for a, b in zip(here, there, strict=True)):.1e}")
    print(f"two streams: {side_streams():.0f}")


if __name__ == "__main__":
    main()
