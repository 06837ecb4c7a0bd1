"""The loader's side of its workers: processes behind sockets, or threads behind queues. Both are sent tasks, and give messages as they come."""

from __future__ import annotations

import multiprocessing
import os
import queue
import select
import signal
import socket
import threading
import time
from collections import deque
from pickle import PicklingError
from typing import Any

from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite.utils._exception_wrapper import ExceptionWrapper

from .pin_memory import pin_memory
from .transport import Connection
from .worker import CHECK_SECONDS, Job, ThreadEnd, process_main, thread_main

_accelerator = LazyModule("tensorrt_lite.accelerator")

__all__ = ["PinningThread", "Processes", "Threads"]


def _obituary(process: Any) -> str:
    """What is known of the end of a process."""
    code = process.exitcode
    if code is not None and code < 0:
        name = signal.strsignal(-code) or f"unknown signal {-code}"
        hint = " It is possible that dataloader's workers are out of shared memory." if -code == signal.SIGBUS else ""
        return f"DataLoader worker (pid {process.pid}) is killed by signal: {name}.{hint}"
    return (
        f"DataLoader worker (pid {process.pid}) exited unexpectedly with exit code {code}. Details are lost due to multiprocessing. Rerunning with "
        "num_workers=0 may give better error trace."
    )


class Processes:
    """Worker processes. One that ends unasked (`failed`) is noticed at once, by the system's word, while the loader waits for a message."""

    failed = False

    def __init__(self, context: Any, job: Job) -> None:
        self._owner = os.getpid()
        context = context or multiprocessing.get_context()
        self.members: list[Any] = []
        self._connections: list[Connection] = []
        self._poll = select.poll()
        self._worker_of: dict[int, int] = {}  # by the descriptors of connections and sentinels
        self._messages: deque[Any] = deque()
        self._closed = False
        try:
            for worker in range(job.num_workers):
                self._start(context, job, worker)
        except BaseException:
            self.close()
            raise

    def _start(self, context: Any, job: Job, worker: int) -> None:
        ours, theirs = socket.socketpair()
        self._connections.append(Connection(ours))
        forked = context.get_start_method() == "fork"
        inherited = [connection.fileno() for connection in self._connections] if forked else []
        process = context.Process(target=process_main, args=(job, worker, Connection(theirs), inherited), daemon=True)
        try:
            process.start()
        except (PicklingError, AttributeError, TypeError) as error:  # what versions of Python raise for an object that they cannot pickle
            if not forked:
                hinted("pickle", error, context.get_start_method())
            raise
        finally:
            theirs.close()
        self.members.append(process)
        for descriptor in (ours.fileno(), process.sentinel):
            self._worker_of[descriptor] = worker
            self._poll.register(descriptor, select.POLLIN)

    def send(self, worker: int, message: Any) -> None:
        """Send a task. What workers send meanwhile is taken in, so that neither side waits for the other."""
        try:
            self._connections[worker].send(message, lambda: self._wait_for_room(worker))
        except OSError:
            self._died([worker])

    def _wait_for_room(self, worker: int) -> None:
        room = select.poll()
        room.register(self._connections[worker].fileno(), select.POLLOUT)
        while not room.poll(10):
            self._take(0)

    def get(self, timeout: float) -> Any:
        """The next message. queue.Empty after timeout seconds; RuntimeError when a worker has ended unasked."""
        end = time.monotonic() + timeout
        while not self._messages:
            rest = end - time.monotonic()
            if rest <= 0:
                raise queue.Empty
            self._take(rest)
        return self._messages.popleft()

    def _take(self, seconds: float) -> None:
        """Wait up to some seconds, then take in what has come."""
        ended = []
        for descriptor, _ in self._poll.poll(1000 * min(seconds, CHECK_SECONDS)):
            worker = self._worker_of.get(descriptor)
            if worker is None:
                continue
            if descriptor != self._connections[worker].fileno():
                ended.append(worker)
            elif not self._receive(worker):
                ended.append(worker)
        for worker in ended:  # what it has sent before counts
            rest = select.poll()
            rest.register(self._connections[worker].fileno(), select.POLLIN)
            while rest.poll(0) and self._receive(worker):
                pass
        if ended and not self._messages:
            self._died(ended)

    def _receive(self, worker: int) -> bool:
        try:
            self._messages.append(self._connections[worker].recv())
        except (EOFError, ConnectionResetError):
            return False
        return True

    def _died(self, workers: list[int]) -> None:
        if self._closed:
            raise queue.Empty
        self.failed = True
        for worker in workers:
            self.members[worker].join(1)
        self._forget(workers)
        told = RuntimeError(" ".join(_obituary(self.members[worker]) for worker in sorted(set(workers))))
        numbers = ", ".join(str(self.members[worker].pid) for worker in sorted(set(workers)))
        raise RuntimeError(f"DataLoader worker (pid(s) {numbers}) exited unexpectedly") from told

    def _forget(self, workers: list[int]) -> None:
        for descriptor in [d for d, worker in self._worker_of.items() if worker in workers]:
            del self._worker_of[descriptor]
            self._poll.unregister(descriptor)

    def stop(self, worker: int) -> None:
        """Let a worker end that has nothing more to do."""
        self._forget([worker])
        self._connections[worker].end()

    def close(self) -> None:
        """End all workers: those that do not within some seconds are killed. Nothing in a process that was forked meanwhile."""
        if self._closed or self._owner != os.getpid():
            return
        self._closed = True
        for connection in self._connections:
            connection.end()
        end = time.monotonic() + CHECK_SECONDS
        for process in self.members:
            process.join(max(0, end - time.monotonic()))
        for process in self.members:
            if process.is_alive():
                process.terminate()
                process.join(1)
            if process.is_alive():
                process.kill()
                process.join()

    def __del__(self) -> None:
        for connection in self._connections:
            connection.close()


class Threads:
    """Worker threads: for datasets that release the GIL, or cannot be copied. They share the process's memory, and its random state."""

    failed = False

    def __init__(self, job: Job) -> None:
        self._results: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._tasks: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(job.num_workers)]
        self.members = [
            threading.Thread(target=thread_main, args=(job, worker, ThreadEnd(tasks, self._results)), name=f"data_worker_{worker}", daemon=True)
            for worker, tasks in enumerate(self._tasks)
        ]
        for thread in self.members:
            thread.start()

    def send(self, worker: int, message: Any) -> None:
        """Send a task."""
        self._tasks[worker].put(message)

    def get(self, timeout: float) -> Any:
        """The next message. queue.Empty after timeout seconds."""
        return self._results.get(timeout=timeout)

    def stop(self, worker: int) -> None:
        """Let a worker end that has nothing more to do."""
        self._tasks[worker].put(None)

    def close(self) -> None:
        """End all workers; those that are at a task end after it, later than this returns where it takes more than some seconds."""
        for tasks in self._tasks:
            while True:
                try:
                    tasks.get_nowait()
                except queue.Empty:
                    break
            tasks.put(None)
        self._results.put(None)
        end = time.monotonic() + CHECK_SECONDS
        for thread in self.members:
            if thread is not threading.current_thread():
                thread.join(max(0, end - time.monotonic()))


class PinningThread:
    """Takes the workers' messages and puts their batches into page-locked memory, beside the program."""

    def __init__(self, workers: Processes | Threads, device: int) -> None:
        self._workers, self._device = workers, device
        self._pinned: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="data_pin", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        _accelerator.set_device_index(self._device)
        while not self._done.is_set():
            try:
                message = self._workers.get(0.5)
            except queue.Empty:
                continue
            except BaseException as error:
                self._pinned.put(error)
                return
            if message is None:  # the workers have ended
                return
            epoch, place, worker, data = message
            if not isinstance(data, ExceptionWrapper):
                try:
                    data = pin_memory(data)
                except Exception:
                    data = ExceptionWrapper(where=f"in pin memory thread for device {self._device}")
            self._pinned.put((epoch, place, worker, data))

    def get(self, timeout: float) -> Any:
        """The next message. queue.Empty after timeout seconds; what the workers' raised."""
        message = self._pinned.get(timeout=timeout)
        if isinstance(message, BaseException):
            raise message
        return message

    def close(self) -> None:
        """End the thread, and before it the workers, whose end wakes it."""
        self._done.set()
        self._workers.close()
        if self._thread is not threading.current_thread():
            self._thread.join(CHECK_SECONDS)
