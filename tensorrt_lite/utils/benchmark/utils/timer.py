"""Times statements, as `timeit` does, and waits for devices before it reads the clock."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from statistics import median
from typing import Any

import tensorrt_lite as trt

from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

_MOST_RUNS = 2**31 - 1


def timer() -> float:
    """The clock, in seconds, after all work of the accelerator."""
    if trt.accelerator.is_available():
        trt.accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """Of a statement; C++ is not implemented."""

    PYTHON = 0
    CPP = 1


def _tidied(code: str) -> str:
    code = textwrap.dedent(code)
    return code.removeprefix("\n").rstrip()


class Timer:
    """Times stmt, a text, after setup, in num_threads threads. globals: names that both know; the package is known as `torch`.

    label, sub_label, description and env name the measurement in tables (`Compare`): a table has a label, a row a sub_label, a column a description.
    ValueError for what is no text; NotImplementedError for C++ and for `collect_callgrind`.
    """

    _timer_cls: type[timeit.Timer] = timeit.Timer

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise NotImplementedError("Timer: statements in C++ are not implemented (docs/gaps.md)")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`.")
        self._globals = {"torch": trt, **(globals or {})}
        stmt, setup = _tidied(stmt), _tidied(setup)
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)  # a clock may stand still

    def _measurement(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of so many runs, after a hundredth of them to warm up."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return self._measurement(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """NotImplementedError, as in PyTorch: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], object] | None = None) -> None:
        """NotImplementedError, as in PyTorch: see `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """Runs, a power of ten, beside which the timing itself costs nothing."""
        overhead = median(self._timeit(0) for _ in range(5))
        number = 1
        while True:
            taken = self._timeit(number)
            enough = overhead <= 1e-4 * taken and taken >= min_run_time / 1000
            if enough or taken > min_run_time or number * 10 > _MOST_RUNS:
                return number
            number *= 10

    def _measure(
        self, block_time: float, least: float, most: float | None, stop: Callable[[Measurement], bool], callback: Callable[[int, float], object] | None
    ) -> Measurement:
        """Blocks for `least` seconds and until `stop` is content, or for `most` seconds."""
        times: list[float] = []
        total = 0.0
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(block_time)
            while True:
                times.append(self._timeit(number))
                total += times[-1]
                if callback is not None:
                    callback(number, times[-1])
                measurement = self._measurement(number, times)
                if (total >= least and stop(measurement)) or (most is not None and total > most):
                    return measurement

    def blocked_autorange(self, callback: Callable[[int, float], object] | None = None, min_run_time: float = 0.2) -> Measurement:
        """Blocks of as many runs as hide the cost of timing, for min_run_time seconds. callback: called with runs and seconds of each."""
        return self._measure(min_run_time, min_run_time, None, lambda measurement: True, callback)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Callable[[int, float], object] | None = None
    ) -> Measurement:
        """Blocks, more than three, until the interquartile range is below a share of the median, for at most max_run_time seconds."""
        return self._measure(0.05, min_run_time, max_run_time, lambda m: len(m.raw_times) > 3 and m.meets_confidence(threshold), callback)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> None:
        """NotImplementedError."""
        raise NotImplementedError("Timer.collect_callgrind: counting instructions is not implemented (docs/gaps.md)")
