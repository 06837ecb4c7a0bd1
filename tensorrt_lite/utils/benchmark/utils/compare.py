"""Tables of measurements: a table for each label, a row for each statement or sub_label (by threads and env), a column for each description."""

from __future__ import annotations

import enum
import math
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from typing import Any

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

_BOLD, _END = "\033[1m", "\033[0m"
_BEST, _GOOD, _BAD, _VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"


class Colorize(enum.Enum):
    """What a time's colour compares it with."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _coloured(text: str, value: float, best: float) -> str:
    """A cell in the colour of its distance from the best."""
    if value <= best * 1.01 or value <= best + 1e-7:
        return _BEST + _BOLD + text + _END * 2
    if value <= best * 1.1:
        return _GOOD + _BOLD + text + _END * 2
    if value >= best * 5:
        return _VERY_BAD + _BOLD + text + _END * 2
    return _BAD + text + _END * 2 if value >= best * 2 else text


class _Column:
    """How the times of a column are written: with as many digits as its numbers need."""

    def __init__(self, results: list[Measurement], scale: float, trim: bool, highlight: bool) -> None:
        self._scale, self._trim = scale, trim
        self._highlight = highlight and any(r.has_warnings for r in results)
        leading = [math.ceil(math.log10(r.median / scale)) for r in results]
        self._decimals = min(max(r.significant_figures - digits, 0) for digits, r in zip(leading, results, strict=True)) if trim else 1
        self._width = max(leading) + self._decimals + (1 if self._decimals else 0)

    def text(self, result: Measurement | None) -> str:
        """A cell."""
        if result is None:
            return " " * len(self._number(1, 1, None))
        return self._number(result.median / self._scale, result.significant_figures, result.iqr / result.median if result.has_warnings else None)

    def _number(self, value: float, figures: int, spread: float | None) -> str:
        note = f" (! {spread * 100:.0f}%)" if self._highlight and spread is not None else ""
        return f"{trim_sigfig(value, figures) if self._trim else value:>{self._width}.{self._decimals}f}{note:>{7 if self._highlight else 0}}"


class Table:
    """The table of one label."""

    def __init__(self, results: list[Measurement], colorize: Colorize, trim_significant_figures: bool, highlight_warnings: bool) -> None:
        if len({r.label for r in results}) != 1:
            raise AssertionError("All results must share the same label")
        self.results, self.label = results, results[0].label
        self._colorize, self._highlight = colorize, highlight_warnings
        self.time_unit, self.time_scale = select_unit(min(r.median for r in results))
        self.row_keys = sorted(ordered_unique(map(self.row_fn, results)), key=lambda key: key[:2])
        self.column_keys = ordered_unique(map(self.col_fn, results))
        self._cells = {(self.row_fn(r), self.col_fn(r)): r for r in results}
        self._columns = [
            _Column([r for row in self.row_keys if (r := self._cells.get((row, c)))], self.time_scale, trim_significant_figures, highlight_warnings) for c in self.column_keys
        ]

    @staticmethod
    def row_fn(m: Measurement) -> tuple[int, str, str]:
        """What a row is of."""
        return m.num_threads, m.env, m.as_row_name

    @staticmethod
    def col_fn(m: Measurement) -> str | None:
        """What a column is of."""
        return m.description

    def _names(self) -> list[str]:
        """The first cells of the rows: environments are named where there are several, in the first row of each."""
        environments = {key[1] for key in self.row_keys}
        width = max(map(len, environments)) if len(environments) > 1 else 0
        names, before = [], None
        for threads, env, name in self.row_keys:
            shown = f"({env})" if len(environments) > 1 and (threads, env) != before else ""
            names.append("  " + shown.ljust(width + 4) + name)
            before = threads, env
        return names

    def _best(self, row: Any, column: Any) -> float | None:
        """What a cell's colour compares it with."""
        if self._colorize == Colorize.ROWWISE:
            group = [self._cells.get((row, c)) for c in self.column_keys]
        else:
            group = [self._cells.get((key, column)) for key in self.row_keys if key[0] == row[0]]
        return min((r.median for r in group if r is not None), default=None)

    def render(self) -> str:
        """The table as text."""
        names = self._names()
        texts = [[column.text(self._cells.get((row, key))) for column, key in zip(self._columns, self.column_keys, strict=True)] for row in self.row_keys]
        heads = ["", *(key or "" for key in self.column_keys)]
        widths = [max(map(len, cells)) for cells in zip(heads, *([name, *row] for name, row in zip(names, texts, strict=True)), strict=True)]
        lines = ["  |  ".join(head.center(width) for head, width in zip(heads, widths, strict=True))]
        whole = len(lines[0])
        for threads, rows in groupby(range(len(names)), lambda place: self.row_keys[place][0]):
            lines.append(f"{threads} threads: ".ljust(whole, "-"))
            for place in rows:
                cells = [names[place].ljust(widths[0])]
                for key, text, width in zip(self.column_keys, texts[place], widths[1:], strict=True):
                    result, cell = self._cells.get((self.row_keys[place], key)), text.center(width)
                    best = self._best(self.row_keys[place], key) if self._colorize != Colorize.NONE else None
                    cells.append(cell if result is None or best is None else _coloured(cell, result.median, best))
                lines.append("  |  ".join(cells))
        title = f"[{(' ' + (self.label or '') + ' ').center(whole - 2, '-')}]"
        warned = self._highlight and any(r.has_warnings for r in self.results)
        note = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n" if warned else ""
        return "\n".join([title, *lines]) + f"\n\nTimes are in {unit_to_english(self.time_unit)}s ({self.time_unit}).\n{note}"


class Compare:
    """Tables of measurements, by `print` or `str`. Times of one task are merged. ValueError for what is no Measurement."""

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """More measurements."""
        results = list(results)
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Write only figures that mean something."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour times by their distance from the best of their column, or row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark times that scatter."""
        self._highlight_warnings = True

    def __str__(self) -> str:
        groups: dict[str | None, list[Measurement]] = defaultdict(list)
        for result in Measurement.merge(self._results):
            groups[result.label].append(result)
        return "\n".join(Table(group, self._colorize, self._trim_significant_figures, self._highlight_warnings).render() for group in groups.values())

    def print(self) -> None:
        """Print the tables."""
        print(str(self))
