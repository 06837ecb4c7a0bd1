"""The chart of a run as an image: one horizontal bar a row, the ratio to another library on a logarithmic axis. By matplotlib, or `svg` without it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import svg

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_FASTER, _SLOWER = svg.THEMES["light"][3:]


def draw(run: dict[str, Any], path: Path) -> None:
    """Write the chart of a run, one panel a compared library (an SVG has the first); ValueError when no row has a ratio."""
    panels = [(other, svg.bars(run["rows"], other), f"time of {run['library']} over time of {other} (median, quartiles)") for other in run["against"]]
    panels = [panel for panel in panels if panel[1]]
    if not panels:
        raise ValueError("a chart shows ratios: measure against another library")
    if path.suffix == ".svg":
        other, bars, axis = panels[0]
        path.write_text(svg.svg(bars, f"{run['library']} and {other}", axis), encoding="utf-8")
    else:
        draw_bars(panels, path)


def draw_bars(panels: Sequence[tuple[str, Sequence[svg.Bar], str]], path: Path) -> None:
    """Write panels of bars (title, bars, text of the axis) side by side in the format of the path's suffix. ValueError for one that matplotlib lacks."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    height = 1.4 + 0.24 * max(len(bars) for _, bars, _ in panels)
    figure = Figure(figsize=(4.5 + 4.5 * len(panels), height), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (title, bars, axis) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        medians = [max(bar.ratio, 1e-6) for bar in bars]
        errors = [[max(bar.ratio - bar.low, 0.0) for bar in bars], [max(bar.high - bar.ratio, 0.0) for bar in bars]]
        positions = range(len(bars))
        # Bars grow from 1: to the left faster, to the right slower.
        axes.barh(
            positions,
            [value - 1 for value in medians],
            left=1,
            color=[_FASTER if value <= 1 else _SLOWER for value in medians],
            xerr=errors,
            error_kw={"elinewidth": 0.8, "ecolor": "#333333"},
        )
        axes.set_yticks(positions, [bar.name for bar in bars], fontsize=7)
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
        axes.set_title(title, fontsize=9)
        axes.set_xlabel(axis)
    figure.savefig(path, dpi=150)
