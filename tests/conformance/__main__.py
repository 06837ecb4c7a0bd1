"""`python -m tests.conformance`: runs the comparison, prints the table, saves it or compares it with a saved one."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from pathlib import Path

from . import opinfo, runner
from .kinds import KINDS


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

    started = time.monotonic()
    table = runner.run_all(
        operators,
        kinds,
        importlib.import_module(options.module),
        limit=options.max_samples,
        timeout=options.timeout,
        jobs=options.jobs,
        progress=progress,
    )
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
