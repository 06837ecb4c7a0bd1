"""torch.utils.throughput_benchmark: how many calls of a module threads make in a second."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(time_us: float | None = None, time_ms: float | None = None, time_s: float | None = None) -> str:
    """A time in one of three units, as "12.000us", "1.200ms" or "3.400s". AssertionError unless exactly one is given."""
    if sum(value is not None for value in (time_us, time_ms, time_s)) != 1:
        raise AssertionError("format_time: expected one of time_us, time_ms and time_s")
    us = time_us if time_us is not None else time_ms * 1e3 if time_ms is not None else time_s * 1e6  # type: ignore[operator]
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= limit:
            return f"{us / limit:.3f}{unit}"
    return f"{us:.3f}us"


class ExecutionStats:
    """What a run measured."""

    def __init__(self, latency_avg_ms: float, num_iters: int, num_calling_threads: int) -> None:
        self._latency = latency_avg_ms
        self._iterations = num_iters
        self._threads = num_calling_threads

    @property
    def latency_avg_ms(self) -> float:
        """Mean time of a call in milliseconds."""
        return self._latency

    @property
    def num_iters(self) -> int:
        """How many calls were timed."""
        return self._iterations

    @property
    def iters_per_second(self) -> float:
        """Calls in a second, of all threads together."""
        return self._threads * 1000 / self._latency

    @property
    def total_time_seconds(self) -> float:
        """The time of all calls by the threads beside each other."""
        return self._iterations / self.iters_per_second

    def __str__(self) -> str:
        return "\n".join([
            f"Average latency per example: {format_time(time_ms=self._latency)}",
            f"Total number of iterations: {self._iterations}",
            f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}",
            f"Total time: {format_time(time_s=self.total_time_seconds)}",
        ])  # fmt: skip


class ThroughputBenchmark:
    """Calls a module with inputs that were added, chosen at random, from several threads, and times the calls."""

    def __init__(self, module: Callable[..., Any]) -> None:
        self._module = module
        self._inputs: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def run_once(self, *args: Any, **kwargs: Any) -> Any:
        """A call, for its result."""
        return self._module(*args, **kwargs)

    def add_input(self, *args: Any, **kwargs: Any) -> None:
        """Add the arguments of a call."""
        self._inputs.append((args, kwargs))

    def benchmark(
        self, num_calling_threads: int = 1, num_warmup_iters: int = 10, num_iters: int = 100, profiler_output_path: str = ""
    ) -> ExecutionStats:
        """Time num_iters calls after num_warmup_iters of each thread. RuntimeError without an input; NotImplementedError for profiler_output_path."""
        if not self._inputs:
            raise RuntimeError("ThroughputBenchmark.benchmark(): add_input() has not been called")
        if profiler_output_path:
            raise NotImplementedError("ThroughputBenchmark.benchmark(): profiler_output_path is not implemented; use profiler.profile around it")
        left = iter(range(num_iters))
        lock = threading.Lock()
        begin = threading.Barrier(num_calling_threads)
        times: list[float] = []
        errors: list[BaseException] = []

        def call() -> None:
            args, kwargs = random.choice(self._inputs)
            self._module(*args, **kwargs)

        def work() -> None:
            try:
                for _ in range(num_warmup_iters):
                    call()
                begin.wait()
                while True:
                    with lock:
                        if next(left, None) is None:
                            return
                    start = time.perf_counter()
                    call()
                    times.append(time.perf_counter() - start)
            except BaseException as error:
                begin.abort()
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(num_calling_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for error in errors:
            if not isinstance(error, threading.BrokenBarrierError):
                raise error
        return ExecutionStats(1000 * sum(times) / max(len(times), 1), len(times), num_calling_threads)
