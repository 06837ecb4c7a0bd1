"""Charts of saved runs without another package: bars of ratios as SVG, light and dark, or as lines of a terminal.

A bar grows from 1 on a logarithmic axis: to the left where the library under test needs less than the other, to the right where it needs more.
The same rows give the same bytes, so that a chart can be compared with the run it is of.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from .markdown import geometric_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# Background, text, lines of the grid, less, more.
THEMES = {
    "light": ("#ffffff", "#24292f", "#d0d7de", "#2a7f62", "#b4472e"),
    "dark": ("#0d1117", "#d6dde4", "#30363d", "#4fb992", "#e0785c"),
}
_ROW, _LABEL, _WIDTH, _VALUE = 22, 300, 380, 60  # pixels: height of a row, widths of names, bars and numbers


class Bar(NamedTuple):
    """A row of a chart: its name, the ratio and its quartiles."""

    name: str
    ratio: float
    low: float
    high: float


def bars(rows: Iterable[dict[str, Any]], other: str, with_suite: bool = True) -> list[Bar]:
    """The rows of a saved run that have a ratio to `other`; names say suite and threads where rows differ in them."""
    found = [row for row in rows if other in row["ratios"]]
    several = len({row["threads"] for row in found}) > 1
    made = []
    for row in found:
        name = (f"{row['suite']}: " if with_suite and len({r["suite"] for r in found}) > 1 else "") + row["name"]
        spread = row["ratios"][other]
        made.append(Bar(name + (f" ({row['threads']} threads)" if several else ""), spread["median"], spread["q1"], spread["q3"]))
    return made


def summary(rows: Iterable[dict[str, Any]], other: str) -> list[Bar]:
    """A bar for each suite and number of threads: the geometric mean of its ratios, with the quartiles among its rows."""
    groups: dict[tuple[str, int], list[float]] = {}
    for row in rows:
        if other in row["ratios"]:
            groups.setdefault((row["suite"], row["threads"]), []).append(row["ratios"][other]["median"])
    made = []
    for (suite, threads), ratios in groups.items():
        ordered = sorted(ratios)
        low, high = ordered[len(ordered) // 4], ordered[min(3 * len(ordered) // 4, len(ordered) - 1)]
        made.append(Bar(f"{suite}, {len(ordered)} rows, {threads} thread{'s' * (threads > 1)}", geometric_mean(ordered), low, high))
    return made


def number(ratio: float) -> str:
    """A ratio with two digits that count: 0.024, 0.42, 1.3."""
    return f"{ratio:.2g}" if ratio < 0.1 else f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def _range(chart: Sequence[Bar]) -> tuple[float, float]:
    """The ends of the axis: they hold every ratio, and 1."""
    return min(0.5, *(b.ratio for b in chart)) / 1.15, max(2.0, *(b.ratio for b in chart)) * 1.15


def _ticks(low: float, high: float) -> list[float]:
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    candidates = (1, 2, 5) if high / low < 60 else (1,) if high / low > 3000 else (1, 3)
    return [tick for d in decades for c in candidates if low <= (tick := c * 10.0**d) <= high]


def svg(chart: Sequence[Bar], title: str, axis: str, theme: str = "light") -> str:
    """The chart as the text of an SVG file; ValueError where there is no bar."""
    if not chart:
        raise ValueError("a chart shows ratios: measure against another library")
    background, text, grid, less, more = THEMES[theme]
    low, high = _range(chart)
    scale = _WIDTH / math.log(high / low)

    def x(ratio: float) -> float:
        return _LABEL + math.log(min(max(ratio, low), high) / low) * scale

    top, width = 44, _LABEL + _WIDTH + _VALUE
    bottom = top + _ROW * len(chart)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 50}" width="{width}" height="{bottom + 50}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{text}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" fill="{background}"/>',
        f'<text x="12" y="26" font-size="15" font-weight="600">{escape(title)}</text>',
    ]
    for tick in _ticks(low, high):
        strong = f' stroke="{text}"' if tick == 1 else f' stroke="{grid}"'
        out.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top - 4}" y2="{bottom + 4}"{strong}/>')
        out.append(f'<text x="{x(tick):.1f}" y="{bottom + 20}" text-anchor="middle">{tick:g}</text>')
    for i, bar in enumerate(chart):
        y = top + _ROW * i
        left, right = sorted((x(bar.ratio), x(1.0)))
        colour = less if bar.ratio <= 1 else more
        out.append(f'<text x="{_LABEL - 10}" y="{y + 15}" text-anchor="end">{escape(bar.name)}</text>')
        out.append(f'<rect x="{left:.1f}" y="{y + 4}" width="{max(right - left, 1):.1f}" height="{_ROW - 8}" fill="{colour}"/>')
        if bar.high > bar.low:
            out.append(
                f'<line x1="{x(bar.low):.1f}" x2="{x(bar.high):.1f}" y1="{y + _ROW / 2:.0f}" y2="{y + _ROW / 2:.0f}" stroke="{text}" stroke-width="1.5"/>'
            )
        out.append(f'<text x="{width - _VALUE + 12}" y="{y + 15}" font-weight="600">{number(bar.ratio)}</text>')
    out.append(f'<text x="{_LABEL + _WIDTH / 2:.0f}" y="{bottom + 40}" text-anchor="middle">{escape(axis)}</text>')
    return "\n".join([*out, "</svg>", ""])


def lines(chart: Sequence[Bar], width: int = 80) -> list[str]:
    """The chart as lines of text, `width` columns each; ValueError where there is no bar."""
    if not chart:
        raise ValueError("a chart shows ratios: measure against another library")
    low, high = _range(chart)
    label = min(max(len(bar.name) for bar in chart), max(width // 2, 16))
    room = max(width - label - 9, 10)
    scale = room / math.log(high / low)
    one = round(-math.log(low) * scale)
    made = []
    for bar in chart:
        end = min(max(round(math.log(bar.ratio / low) * scale), 0), room)
        cells = [" "] * (room + 1)
        for i in range(min(end, one), max(end, one)):
            cells[i] = "█" if bar.ratio <= 1 else "▒"
        cells[one] = "│"
        name = bar.name if len(bar.name) <= label else bar.name[: label - 1] + "…"
        made.append(f"{name:<{label}} {''.join(cells)} {number(bar.ratio):>6}".rstrip())
    return made
