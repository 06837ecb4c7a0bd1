"""The page of tables that `bench --markdown FILE` keeps: a section for each processor, in it a table for each suite with the date of its run.

A run replaces the tables of the suites that it measured in the section of its own processor and leaves all others as they are.
"""

from __future__ import annotations

import datetime
import math
import re
from typing import TYPE_CHECKING, Any

from .report import quantity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

INTRODUCTION = """# Performance

How long operators and training steps take here and in PyTorch, measured on the same machine. Both libraries run alternately; a ratio is our time divided by
PyTorch's, the median over the rounds, with its quartiles. The command below each table repeats the measurement and replaces the table:

    tensorrt-lite bench SUITE ... --against torch --threads 1 --markdown docs/performance.md

`tensorrt-lite bench --list` names suites and rows, `tensorrt-lite info` which kernels serve a processor.
"""


def processor(cpu: dict[str, Any], build: dict[str, Any]) -> str:
    """The heading of a machine's section: `AMD EPYC, 2 cores, avx512, bf16 products by pairs`."""
    served = [str(build[key]) for key in ("instruction_set",) if build.get(key)]
    if products := build.get("bfloat16_products"):
        served.append(f"bf16 products by {products}")
    return ", ".join([str(cpu["model"]), f"{cpu['cores']} cores", *served])


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(run: dict[str, Any], suite: str, day: datetime.date, command: str, load: float) -> str:
    """One suite of a saved run as a table, headed `### suite`, with its date, libraries, geometric means and how busy the machine was."""
    libraries = [run["library"], *run["against"]]
    versions = ", ".join(f"{name} {run['facts']['libraries'][name]['version']}" for name in libraries)
    found = [row for row in run["rows"] if row["suite"] == suite]
    lines = [f"### {suite}", "", f"*{day}, {versions}; load average {load:.1f}.* `{command}`", ""]
    for name in run["against"]:
        ratios = [row["ratios"][name]["median"] for row in found if name in row["ratios"]]
        if ratios:
            over = sum(ratio > 1.05 for ratio in ratios)
            lines += [f"Geometric mean beside {name} {geometric_mean(ratios):.2f} over {len(ratios)} rows, {over} of them above 1.05.", ""]
    lines += ["| " + " | ".join(["row", "threads", *libraries, *(f"ratio to {name}" for name in run["against"])]) + " |"]
    lines += ["|---|" + "--:|" * (1 + len(libraries) + len(run["against"]))]
    for row in found:
        times = [quantity(row["figures"][name]["median"], row["unit"]) if name in row["figures"] else "-" for name in libraries]
        spreads = [row["ratios"].get(name) for name in run["against"]]
        ratios = [f"{s['median']:.2f} ({s['q1']:.2f} to {s['q3']:.2f})" if s else "" for s in spreads]
        lines.append("| " + " | ".join([row["name"], str(row["threads"]), *times, *ratios]) + " |")
    return "\n".join(lines) + "\n"


def replaced(text: str, machine: str, tables: dict[str, str]) -> str:
    """The page with the tables of these suites in the section of this machine."""
    if not text:
        text = INTRODUCTION
    head, *sections = re.split(r"(?m)^(?=## )", text)
    named = {section.split("\n", 1)[0][3:]: section for section in sections}
    own, *suites = re.split(r"(?m)^(?=### )", named.get(machine, f"## {machine}\n\n"))
    kept = {suite.split("\n", 1)[0][4:]: suite for suite in suites}
    kept |= tables
    named[machine] = own + "\n".join(kept[name].rstrip("\n") + "\n" for name in sorted(kept))
    return head.rstrip("\n") + "\n\n" + "\n".join(section.rstrip("\n") + "\n" for section in named.values())


def write(run: dict[str, Any], path: Path, machine: str, command: str, load: float) -> None:
    """Bring the page at `path` up to date with a run; it is made where it does not exist."""
    suites = dict.fromkeys(row["suite"] for row in run["rows"])
    day = datetime.date.today()
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    path.write_text(replaced(text, machine, {name: table(run, name, day, command, load) for name in suites}), encoding="utf-8")
