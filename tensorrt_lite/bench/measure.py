"""Times one row in several libraries, round by round in turns, and reduces the rounds to medians and ratios.

A round times one block of calls in each library, the order rotating, so that a change of clock speed or a neighbour's
load meets all of them; a ratio is taken within each round and its spread is the interquartile range over the rounds.
A `Side` is one library: here in this process, or in a worker process (`worker.WorkerSide`) behind the same methods.
"""

from __future__ import annotations

import gc
import importlib
import time
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .rows import Row

# Exceptions that say that the library lacks the operator rather than that the row is wrong.
_MISSING = (AttributeError, NotImplementedError, ImportError)


@dataclass(frozen=True)
class Plan:
    """How long to measure: seconds a timed block aims at, rounds at most and at least, seconds a side may take."""

    block: float = 4e-3
    rounds: int = 25
    least: int = 7
    budget: float = 1.5


QUICK = Plan(block=1e-3, rounds=5, least=3, budget=0.1)


@dataclass(frozen=True)
class Spread:
    """A median with the quartiles around it."""

    median: float
    q1: float
    q3: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        q1, _, q3 = quantiles(values, n=4, method="inclusive")
        return cls(median(values), q1, q3)


@dataclass
class Result:
    """One row at one thread count: figures by library, ratios of the first library to each other, what went wrong."""

    row: Row
    threads: int
    figures: dict[str, Spread] = field(default_factory=dict)
    ratios: dict[str, Spread] = field(default_factory=dict)
    status: dict[str, str] = field(default_factory=dict)
    rounds: int = 0


class Side(Protocol):
    """A library that can build a row and time blocks of it."""

    name: str

    def build(self, row: Row, threads: int) -> str:
        """Prepare the row; "ok", "missing: why" or "failed: why"."""

    def once(self) -> float:
        """Seconds of one call after a warm-up, to choose the size of a block."""

    def block(self, number: int) -> float:
        """The figure of one block: seconds a call, or what a row with its own clock returned."""

    def close(self) -> None: ...


def empty() -> None:
    """What the loop calls when its own cost is measured."""


def time_calls(work: Callable[[], object], number: int, clock: Callable[[], float] | None = None) -> float:
    """Seconds that `number` calls took together, the loop included."""
    clock = clock or time.perf_counter
    start = clock()
    for _ in repeat(None, number):
        work()
    return clock() - start


def import_library(name: str) -> Any:
    """The library's module with the submodules loaded that rows reach through attributes."""
    module = importlib.import_module(name)
    if name != "numpy":
        for part in ("nn", "nn.functional", "optim"):
            try:
                importlib.import_module(f"{name}.{part}")
            except ModuleNotFoundError:
                break
    return module


def set_threads(name: str, module: Any, threads: int) -> None:
    """Limit the library to that many threads; NumPy's BLAS is reached through threadpoolctl where it is installed."""
    if name != "numpy":
        module.set_num_threads(threads)
        return
    try:
        import threadpoolctl
    except ModuleNotFoundError:
        return
    controller = threadpoolctl.ThreadpoolController().select(user_api="blas")
    for library in controller.lib_controllers:
        if "numpy" in library.filepath:
            library.set_num_threads(threads)


class LocalSide:
    """A library in this process."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module: Any = None
        self._row: Row | None = None
        self._work: Callable[[], object] = empty

    def load(self) -> None:
        """Import the library now; rows of the startup suite do without."""
        if self.module is None:
            self.module = import_library(self.name)

    def build(self, row: Row, threads: int) -> str:
        self._work, self._row = empty, row
        gc.collect()
        try:
            builder = row.builder(self.name)
            if row.suite == "startup":
                self._work = builder(self.name, threads)
            else:
                self.load()
                set_threads(self.name, self.module, threads)
                self._work = builder(self.module, threads)
            if not row.own_clock:
                self._work()
        except _MISSING as error:
            return f"missing: {_brief(error)}"
        except Exception as error:
            return f"failed: {_brief(error)}"
        return "ok"

    def once(self) -> float:
        assert self._row is not None
        if self._row.own_clock:
            start = time.perf_counter()
            self._work()
            return time.perf_counter() - start
        clock = self._clock()
        number = 1
        while (taken := time_calls(self._work, number, clock)) < 2e-4:
            number *= 4
        if taken < 0.05:
            # A neighbour's time slice in this one sample would choose a block of a single call.
            taken = min(taken, time_calls(self._work, number, clock), time_calls(self._work, number, clock))
        return taken / number

    def block(self, number: int) -> float:
        assert self._row is not None
        if self._row.own_clock:
            value = self._work()
            assert isinstance(value, (int, float))
            return float(value)
        clock = self._clock()
        collecting = gc.isenabled()
        gc.disable()
        try:
            # The other side had the caches, and an idle pool of threads may sleep: the first call is not counted.
            time_calls(self._work, max(1, number // 20))
            taken = time_calls(self._work, number, clock)
            if self._row.subtract_loop:
                taken = max(taken - time_calls(empty, number), 0.0)
        finally:
            if collecting:
                gc.enable()
        return taken / number

    def _clock(self) -> Callable[[], float] | None:
        return time.process_time if self._row is not None and self._row.processor else None

    def close(self) -> None:
        self._work = empty


def _brief(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0][:160] if text else ''}"


def measure(row: Row, sides: Sequence[Side], threads: int, plan: Plan) -> Result:
    """Time one row on every side that can build it; the first side is the library under test."""
    result = Result(row, threads)
    ready: dict[str, tuple[Side, int]] = {}
    slowest = 0.0
    for side in sides:
        status = _attempt(partial(side.build, row, threads))
        if status == "ok":
            once = _attempt(side.once)
            if isinstance(once, float):
                number = 1 if row.own_clock else max(1, round(plan.block / max(once, 1e-9)))
                slowest = max(slowest, once * number * (1 + 1 / 20))
                ready[side.name] = (side, number)
            else:
                status = once
        result.status[side.name] = status
    rounds = max(plan.least, min(plan.rounds, int(plan.budget / max(slowest, 1e-9))))
    values: dict[str, list[float]] = {name: [] for name in ready}
    for turn in range(rounds):
        order = list(ready.values())
        shift = turn % len(order) if order else 0
        for side, number in order[shift:] + order[:shift]:
            figure = _attempt(partial(side.block, number))
            if isinstance(figure, float):
                values[side.name].append(figure)
            else:
                result.status[side.name] = figure
                del ready[side.name], values[side.name]
    result.rounds = rounds
    result.figures = {name: Spread.of(figures) for name, figures in values.items()}
    first = sides[0].name
    for name in values:
        if name != first and first in values:
            pairs = [own / other for own, other in zip(values[first], values[name], strict=True) if other > 0]
            if pairs:
                result.ratios[name] = Spread.of(pairs)
    return result


def _attempt(step: Callable[[], Any]) -> Any:
    """What the step returned, or "failed: why": one row or one dead worker does not end the run."""
    try:
        return step()
    except Exception as error:
        return f"failed: {_brief(error)}"
