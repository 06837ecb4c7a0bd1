"""The chart of a run: one horizontal bar a row, the ratio to another library on a logarithmic axis."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .measure import Result

_FASTER, _SLOWER = "#2a7f62", "#b4472e"


def draw(results: Sequence[Result], libraries: Sequence[str], path: Path) -> None:
    """Write the chart as an image, one panel a compared library; ValueError when no row has a ratio."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    others = [name for name in libraries[1:] if any(name in result.ratios for result in results)]
    if not others:
        raise ValueError("a chart shows ratios: measure against another library")
    several_threads = len({result.threads for result in results}) > 1
    panels = [[result for result in results if other in result.ratios] for other in others]
    height = 1.4 + 0.24 * max(len(panel) for panel in panels)
    figure = Figure(figsize=(4.5 + 4.5 * len(others), height), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, other, panel in zip(figure.subplots(1, len(others), squeeze=False)[0], others, panels, strict=True):
        ratios = [result.ratios[other] for result in panel]
        medians = [max(spread.median, 1e-6) for spread in ratios]
        errors = [
            [max(spread.median - spread.q1, 0.0) for spread in ratios],
            [max(spread.q3 - spread.median, 0.0) for spread in ratios],
        ]
        positions = range(len(panel))
        # Bars grow from 1: to the left faster, to the right slower.
        axes.barh(
            positions,
            [value - 1 for value in medians],
            left=1,
            color=[_FASTER if value <= 1 else _SLOWER for value in medians],
            xerr=errors,
            error_kw={"elinewidth": 0.8, "ecolor": "#333333"},
        )
        labels = [
            f"{result.row.suite}: {result.row.name}" + (f" ({result.threads} threads)" if several_threads else "")
            for result in panel
        ]
        axes.set_yticks(positions, labels, fontsize=7)
        axes.invert_yaxis()
        axes.margins(y=0.01)
        axes.set_xscale("log")
        axes.set_xlim(min(0.5, *medians) / 1.3, max(2.0, *medians) * 1.3)
        axes.axvline(1, color="#333333", linewidth=0.8)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.grid(axis="x", which="both", linewidth=0.3)
        axes.set_axisbelow(True)
        axes.set_xlabel(f"time of {libraries[0]} over time of {other} (median, interquartile range)")
    figure.savefig(path, dpi=150)
