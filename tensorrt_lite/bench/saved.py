"""`tensorrt-lite bench draw` and `tensorrt-lite bench compare`: what is done with saved runs, without measuring."""

from __future__ import annotations

import argparse
import math
import re
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import report, svg
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_chart = _LazyModule("tensorrt_lite.bench.chart")

if TYPE_CHECKING:
    from collections.abc import Sequence


def shared(run: dict[str, Any], facts: dict[str, Any], load: float) -> dict[str, Any]:
    """A run with what another reader needs to judge it, and no path of this machine. facts: those of `info.collect()`."""
    kept = {name: facts[name] for name in ("version", "python", "system", "blas", "build", "handicaps")}
    kept["openmp"] = {"threads": facts["openmp"]["threads"], "runtimes": len(facts["openmp"]["runtimes"])}
    described = {**run, "facts": {**run["facts"], "installation": kept, "load": round(load, 2)}}
    return _without_paths(described)


def _without_paths(value: Any) -> Any:
    """The same with the last part alone of texts that are paths."""
    if isinstance(value, dict):
        return {key: _without_paths(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_paths(item) for item in value]
    return re.sub(r"[^\s,:=]*/([^/\s,:=]+)", r"\1", value) if isinstance(value, str) and value.startswith(("/", "~", ".")) else value


def write_chart(run: dict[str, Any], chart: Sequence[svg.Bar], path: Path, theme: str) -> None:
    """Draw as the path's suffix says: SVG by ourselves, other formats by matplotlib. ValueError without bars, ImportError without matplotlib."""
    axis = f"time of {run['library']} over time of {run['against'][0]} (median, quartiles)"
    if path.suffix == ".svg":
        path.write_text(svg.svg(chart, f"{run['library']} and {run['against'][0]}", axis, theme), encoding="utf-8")
        return

    _chart.draw_bars([("", chart, axis)], path)


def _load(path: Path, parser: argparse.ArgumentParser) -> dict[str, Any]:
    try:
        return report.load(path)
    except ValueError as error:
        parser.error(str(error))


def draw(argv: list[str]) -> int:
    """`bench draw RUN`: the ratios of a saved run in the terminal, or as an image; the exit status."""
    parser = argparse.ArgumentParser(prog="tensorrt-lite bench draw", description="Draw the ratios of a saved run: in the terminal, or as an image.")
    parser.add_argument("run", type=Path, metavar="RUN.json")
    parser.add_argument("--rows", default="", metavar="REGEX", help="only rows whose suite/name matches")
    parser.add_argument("--threads", type=int, metavar="N", help="only rows of this many threads")
    parser.add_argument("--summary", action="store_true", help="a bar for each suite, the geometric mean")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="write .svg, or with matplotlib .png, .pdf")
    parser.add_argument("--theme", choices=tuple(svg.THEMES), default="light", help="colours of an SVG")
    options = parser.parse_args(argv)
    run = _load(options.run, parser)
    try:
        pattern = re.compile(options.rows)
    except re.error as error:
        parser.error(f"--rows: {error}")
    rows = [r for r in run["rows"] if pattern.search(f"{r['suite']}/{r['name']}") and options.threads in (None, r["threads"])]
    if not run["against"]:
        parser.error(f"{options.run}: a chart shows ratios, and this run is of one library")
    chart = (svg.summary if options.summary else svg.bars)(rows, run["against"][0])
    try:
        if options.chart:
            write_chart(run, chart, options.chart, options.theme)
        else:
            print(f"time of {run['library']} over time of {run['against'][0]}; left of the line is faster")
            print("\n".join(svg.lines(chart, shutil.get_terminal_size((80, 24)).columns)))
    except ValueError as error:
        parser.error(str(error))
    except ImportError as error:
        print(f"tensorrt-lite: {options.chart.suffix} needs matplotlib ({error}); .svg does not", file=sys.stderr)
        return 1
    return 0


def compare(argv: list[str]) -> int:
    """`bench compare BEFORE AFTER`: rows of both runs side by side, and which are slower beyond noise; the exit status."""
    parser = argparse.ArgumentParser(
        prog="tensorrt-lite bench compare",
        description="Compare two saved runs row by row: of two versions, or of two machines.",
        epilog="exit status: 0 fine; 1 with --fail where a row is slower beyond noise; 2 usage, or no row in both",
    )
    parser.add_argument("before", type=Path, metavar="BEFORE.json")
    parser.add_argument("after", type=Path, metavar="AFTER.json")
    parser.add_argument("--all", action="store_true", help="print every row, not those that differ by 5 % beyond noise")
    parser.add_argument("--fail", action="store_true", help="exit status 1 where a row is slower beyond noise")
    options = parser.parse_args(argv)
    runs = [_load(path, parser) for path in (options.before, options.after)]
    for mark, path, run in zip("AB", (options.before, options.after), runs, strict=True):
        facts = run["facts"]
        version = facts["libraries"][run["library"]]["version"]
        load = f", load average {facts['load']}" if "load" in facts else ""
        print(f"{mark}  {path.name}: {run['library']} {version}, {facts['cpu']['model']}, {facts['cpu']['cores']} cores{load}")
    before = {(r["suite"], r["name"], r["threads"]): r["figures"].get(runs[0]["library"]) for r in runs[0]["rows"]}
    changes, printed, slower = [], [], 0
    for row in runs[1]["rows"]:
        key = (row["suite"], row["name"], row["threads"])
        was, now = before.get(key), row["figures"].get(runs[1]["library"])
        if not was or not now or was["median"] <= 0 or now["median"] <= 0:
            continue
        change = now["median"] / was["median"]
        changes.append(change)
        noise = now["q1"] <= was["q3"] and was["q1"] <= now["q3"] or 0.95 < change < 1.05
        slower += not noise and change > 1
        if options.all or not noise:
            unit = row["unit"]
            name = f"{row['suite']}/{row['name']}, {row['threads']} thread{'s' * (row['threads'] > 1)}"
            printed.append(
                (change, f"{name:<52} {report.quantity(was['median'], unit):>10} {report.quantity(now['median'], unit):>10}  {change:.2f}")
            )
    if not changes:
        print("no row is in both runs", file=sys.stderr)
        return 2
    if printed:
        print(f"{'':<52} {'A':>10} {'B':>10}  B/A")
        print("\n".join(line for _, line in sorted(printed, reverse=True)))
    mean = math.exp(sum(map(math.log, changes)) / len(changes))
    print(
        f"{len(changes)} rows in both, geometric mean of B/A {mean:.2f}; {slower} slower beyond noise, {len(changes) - len(printed) if not options.all else 0} within it not listed"
    )
    return 1 if options.fail and slower else 0
