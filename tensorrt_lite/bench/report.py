"""How results are shown and kept: tables on the terminal, JSON files, and the comparison with a saved run."""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

from .rows import NO_COUNTERPART

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .measure import Result, Spread

FORMAT = 1
_NOISE_FREE = 1.05  # a row counts as slower above this ratio, and only when the quartiles do not overlap


def quantity(value: float, unit: str) -> str:
    """A figure with the unit that suits its size: `96 ns`, `1.38 ms`, `12.4 MB`, `71 modules`."""
    if unit == "s":
        scales = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
    elif unit == "bytes":
        scales = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
    else:
        return f"{value:.0f} {unit}"
    for scale, name in scales:
        if abs(value) >= scale or (scale, name) == scales[-1]:
            scaled = value / scale
            return f"{scaled:.{0 if abs(scaled) >= 100 else 1 if abs(scaled) >= 10 else 2}f} {name}"
    raise AssertionError("unreachable: the last scale takes every value")


def ratio(spread: Spread) -> str:
    """A ratio with its interquartile range: `0.118 [0.116, 0.121]`."""
    return f"{spread.median:.3g} [{spread.q1:.3g}, {spread.q3:.3g}]"


def over_limit(result: Result, reference: str = "torch") -> str | None:
    """Why the row misses the budget it declares, or None; medians count, spreads do not."""
    row, own = result.row, next(iter(result.status))
    spread, figure = result.ratios.get(reference), result.figures.get(own)
    if row.limit is not None and spread is not None and spread.median > row.limit:
        return f"{spread.median:.2f} of {reference}'s time, allowed {row.limit:.2f}"
    if row.limit_seconds is not None and figure is not None and figure.median > row.limit_seconds:
        return f"{quantity(figure.median, row.unit)}, allowed {quantity(row.limit_seconds, row.unit)}"
    return None


def cells(result: Result, libraries: Sequence[str], verdict: str | None = None) -> list[str]:
    """One table row: name, threads, each library's figure, each ratio, verdict on the row's own budget."""
    line = [result.row.name, str(result.threads)]
    for name in libraries:
        figure = result.figures.get(name)
        status = result.status[name]
        without = "-" if status.endswith(NO_COUNTERPART) else status.partition(":")[0]
        line.append(quantity(figure.median, result.row.unit) if figure else without)
    line.extend(ratio(result.ratios[name]) if name in result.ratios else "" for name in libraries[1:])
    return [*line, verdict or ""]


def print_table(title: str, results: Sequence[Result], libraries: Sequence[str], verdicts: Sequence[str]) -> None:
    """A table of one suite on standard output; aligned plain text where rich is not installed or nobody watches."""
    header = ["row", "threads", *libraries, *(f"{libraries[0]} / {name}" for name in libraries[1:]), "budget"]
    body = [cells(result, libraries, verdict) for result, verdict in zip(results, verdicts, strict=True)]
    if not any(line[-1] for line in body):
        header, body = header[:-1], [line[:-1] for line in body]
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
        except ModuleNotFoundError:
            pass
        else:
            table = Table(title=title, title_justify="left", header_style="bold")
            for index, name in enumerate(header):
                table.add_column(name, justify="left" if index in (0, len(header) - 1) else "right", no_wrap=index == 0)
            for line in body:
                table.add_row(*line)
            Console().print(table)
            return
    widths = [max(len(line[index]) for line in [header, *body]) for index in range(len(header))]
    print(f"\n{title}")
    for line in [header, *body]:
        figures = (cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))
        print("  ".join([line[0].ljust(widths[0]), *figures]).rstrip())


def as_json(results: Sequence[Result], libraries: Sequence[str], facts: dict[str, Any]) -> dict[str, Any]:
    """The whole run as one object; `compare` reads it back."""
    return {
        "format": FORMAT,
        "library": libraries[0],
        "against": list(libraries[1:]),
        "facts": facts,
        "rows": [
            {
                "suite": result.row.suite,
                "name": result.row.name,
                "threads": result.threads,
                "unit": result.row.unit,
                "rounds": result.rounds,
                "status": result.status,
                "figures": {name: vars(spread) for name, spread in result.figures.items()},
                "ratios": {name: vars(spread) for name, spread in result.ratios.items()},
            }
            for result in results
        ],
    }


def save(run: dict[str, Any], path: Path) -> None:
    """Write a run where `load` finds it."""
    text = json.dumps(run, indent=1) + "\n"
    # of a library's path what is the same on every machine: a saved run may be published
    path.write_text(re.sub(r'"[^"\n]*/(site-packages/[^"\n]*)"', r'"\1"', text), encoding="utf-8")


def load(path: Path) -> dict[str, Any]:
    """A saved run; ValueError when the file is not one."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise ValueError(f"{path}: not a benchmark run of format {FORMAT}")
    return saved


def slower(saved: dict[str, Any], current: dict[str, Any]) -> list[str]:
    """Rows that got slower by more than 5 % beyond noise, each as a line of text.

    Beyond noise: the current lower quartile lies above the saved upper quartile. Rows of only one run are left out.
    """
    before = {(row["suite"], row["name"], row["threads"]): row for row in saved["rows"]}
    found = []
    for row in current["rows"]:
        old = before.get((row["suite"], row["name"], row["threads"]))
        was = old and old["figures"].get(saved["library"])
        now = row["figures"].get(current["library"])
        if not was or not now or was["median"] <= 0:
            continue
        change = now["median"] / was["median"]
        if change > _NOISE_FREE and now["q1"] > was["q3"]:
            figures = f"{quantity(was['median'], row['unit'])} to {quantity(now['median'], row['unit'])}"
            found.append(f"{row['suite']}/{row['name']}, {row['threads']} threads: {figures} ({change:.2f} times)")
    return found
