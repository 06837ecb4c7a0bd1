"""What is measured (`TaskSpec`), what came of it (`Measurement`), and how times are written."""

from __future__ import annotations

import math
import textwrap
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from statistics import fmean, pstdev
from typing import Any

from tensorrt_lite import _root as trt

__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english"]

_MOST_FIGURES = 4
_LEAST_INTERVAL = 25e-9  # seconds: a clock cannot be trusted further
_IQR_WARN_THRESHOLD = 0.1
_IQR_GROSS_WARN_THRESHOLD = 0.25
_UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1.0)}


@dataclass(repr=False, frozen=True)
class TaskSpec:
    """A statement, and the words that tell it from others in a table."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is None and "\n" in self.stmt:
            name = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{name}\n{textwrap.indent(self.stmt, '  ')}"
        return (self.stmt if self.label is None else self.label) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """The setup, unless there is none."""
        if not self.setup or self.setup == "pass":
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, where there are such."""
        return "\n".join(f"{part}\n" if "\n" in part else part for part in (self.title, self.description or "", self.setup_str()) if part)


def _quantile(ordered: list[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


@dataclass(repr=False)
class Measurement:
    """Times of a statement: `raw_times` (seconds) of number_per_run runs each. Attributes of its task are its own, too."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _TASK_FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Seconds of one run, by measurement."""
        return [time / self.number_per_run for time in self.raw_times]

    @property
    def _ordered(self) -> list[float]:
        return sorted(self.times)

    @property
    def median(self) -> float:
        return _quantile(self._ordered, 0.5) if self.raw_times else -1.0

    @property
    def mean(self) -> float:
        return fmean(self.times) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The interquartile range."""
        return _quantile(self._ordered, 0.75) - _quantile(self._ordered, 0.25) if self.raw_times else 0.0

    @property
    def significant_figures(self) -> int:
        """How many figures of the median mean something, 1 to 4: those that a confidence interval of 90 % around the middle half leaves."""
        ordered = self._ordered
        inner = ordered[len(ordered) // 4 : math.ceil(3 * len(ordered) / 4)]
        interval = max(1.645 * pstdev(inner) / math.sqrt(len(inner)), _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_FIGURES)

    @property
    def _warnings(self) -> tuple[str, ...]:
        if not self.raw_times or self.meets_confidence():
            return ()
        gross = not self.meets_confidence(_IQR_GROSS_WARN_THRESHOLD)
        what = "This suggests significant environmental influence." if gross else "This could indicate system fluctuation."
        return (f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n           {what}",)

    @property
    def has_warnings(self) -> bool:
        """Whether the times scatter so much that the printed form says so."""
        return bool(self._warnings)

    def meets_confidence(self, threshold: float = _IQR_WARN_THRESHOLD) -> bool:
        """Whether the interquartile range is below a share of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str:
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count, threads = len(self.raw_times), self.task_spec.num_threads
        unit, scale = select_unit(self.median)
        quarters = (_quantile(self._ordered, q) / scale for q in (0.25, 0.75)) if count else (0.0, 0.0)
        lines = [object.__repr__(self), self.task_spec.summarize(), f"  {'Median: ' if count > 1 else ''}{self.median / scale:.2f} {unit}"]
        if count >= 4:
            low, high = quarters
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        lines.append(
            f"  {count} measurement{'s' * (count > 1)}, {self.number_per_run} runs {'per measurement,' if count > 1 else ','} {threads} thread{'s' * (threads > 1)}"
        )
        return "\n".join([*lines, *self._warnings]).strip()

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, of the times of all of them."""
        groups: dict[TaskSpec, list[float]] = defaultdict(list)
        for measurement in measurements:
            groups[measurement.task_spec].extend(measurement.times)
        return [Measurement(1, times, task) for task, times in groups.items()]


_TASK_FIELDS = frozenset(field.name for field in fields(TaskSpec))


def select_unit(t: float) -> tuple[str, float]:
    """(unit, its seconds) in which a time is written."""
    power = math.trunc(math.log10(t) // 3) if t > 0 else 0
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(power, "s")
    return unit, _UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """The unit's name."""
    return _UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """x rounded to n significant figures."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Each element once, in the order of its first place."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """So many threads for operators inside."""
    before = trt.get_num_threads()
    trt.set_num_threads(n)
    try:
        yield
    finally:
        trt.set_num_threads(before)
