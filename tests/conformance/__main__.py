"""`python -m tests.conformance`: runs the comparison, prints the table, saves it or compares it with a saved one."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import opinfo, runner
from .kinds import KINDS


def each_dtype(run: Callable[[], dict[str, dict[str, runner.Report]]], dtypes: list[str], path: Path) -> int:
    """Run in one dtype after the other; print and save how many operators are complete and what the others pass."""
    found: dict[str, dict[str, Any]] = {}
    for name in dtypes:
        opinfo.choose_dtypes([name])
        compared = {op: row for op, row in run().items() if any(report.total or report.status != "ok" for report in row.values())}
        incomplete = {op: row for op, row in compared.items() if any(report.status != "ok" for report in row.values())}
        found[name] = {
            "operators": len(compared),
            "complete": len(compared) - len(incomplete),
            "incomplete": {op: {kind: f"{r.status} {r.passed}/{r.total}" for kind, r in row.items() if r.status != "ok"} for op, row in incomplete.items()},
        }
        share = found[name]["complete"] / max(len(compared), 1)
        print(f"{name}: {found[name]['complete']} of {len(compared)} operators complete ({share:.1%}); the others: {', '.join(incomplete)}", flush=True)
        path.write_text(json.dumps(found, indent=1) + "\n")
    return int(any(row["incomplete"] for row in found.values()))


def main(arguments: list[str] | None = None) -> int:
    """Exit status 0 when every sample passes or, with --compare, when nothing passes fewer samples than saved."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--ops", help="operators, comma-separated (OpInfo names, or name.variant; database: all that users call); default those of operators.txt")
    parser.add_argument("--kinds", help=f"comma-separated, of {','.join(KINDS)}; default all")
    parser.add_argument("--dtypes", help=f"comma-separated; default {','.join(opinfo.describe_dtypes())}")
    parser.add_argument("--module", default="tensorrt_lite", help="the library under test (default %(default)s)")
    parser.add_argument("--max-samples", type=int, help="cases per operator and kind")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds per operator and kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time; 0: none, for a debugger")
    parser.add_argument("--failures", type=int, default=2, help="described failures per operator and kind")
    parser.add_argument("--json", type=Path, help="save the reports here")
    parser.add_argument("--each-dtype", type=Path, help="run dtype by dtype and save here which operators are incomplete in each")
    parser.add_argument("--compare", type=Path, help="fail only where fewer samples pass than in this saved run")
    options = parser.parse_args(arguments)

    kinds = options.kinds.split(",") if options.kinds else list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown kinds: {', '.join(sorted(unknown))}")
    if options.dtypes:
        opinfo.choose_dtypes(options.dtypes.split(","))
    try:
        operators = opinfo.entries(options.ops.split(",") if options.ops else None)
    except ValueError as error:
        parser.error(str(error))

    def progress(name: str, kind: str, report: runner.Report) -> None:
        for line in report.failures[: options.failures]:
            print(f"{name} {kind}: {line}", flush=True)

    def run() -> dict[str, dict[str, runner.Report]]:
        return runner.run_all(
            operators,
            kinds,
            importlib.import_module(options.module),
            limit=options.max_samples,
            timeout=options.timeout,
            jobs=options.jobs,
            progress=progress,
        )

    if options.each_dtype:
        return each_dtype(run, opinfo.describe_dtypes(), options.each_dtype)
    started = time.monotonic()
    table = run()
    print(runner.render(table))
    print(runner.summary(table))
    print(f"{time.monotonic() - started:.0f} s")
    if options.json:
        options.json.write_text(runner.as_text(table))
    if options.compare:
        lost = runner.losses(table, json.loads(options.compare.read_text()))
        print("\n".join(lost) or "nothing passes fewer samples than in the saved run")
        return bool(lost)
    return int(any(report.status != "ok" for row in table.values() for report in row.values()))


if __name__ == "__main__":
    sys.exit(main())
