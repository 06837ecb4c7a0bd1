"""`python -m tests.recording`: what modes see, beside PyTorch's, over its operator database and the steps of twenty models.

    python -m tests.recording                                          # all kinds, samples and models, with a table
    python -m tests.recording --kinds fake --ops add,nn.functional.conv2d --failures 5
    python -m tests.recording --kinds sequence --ops none --models cnn,gpt
    python -m tests.recording --save                                   # write docs/benchmarks/recording.json
    python -m tests.recording --update                                 # write the lists of what falls short
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from tests.conformance import opinfo, vmap

from . import kinds, lists, models

SAVED = Path(__file__).parents[2] / "docs" / "benchmarks" / "recording.json"


def totals(reports: dict[str, kinds.Report]) -> dict[str, int]:
    """Sums over what was compared: of operators or models, samples or steps, and recorded operators."""
    counted = [r for r in reports.values() if r.passed + r.failed]
    return {
        "names": len(counted), "complete": sum(r.ok for r in counted), "samples": sum(r.passed + r.failed for r in counted), "passed": sum(r.passed for r in counted),
        "refused": sum(r.refused for r in reports.values()), "calls": sum(r.total for r in counted), "calls alike": sum(r.common for r in counted),
    }  # fmt: skip


def describe(what: str, kind: str, found: dict[str, int]) -> str:
    text = f"{kind}, {what}: {found['complete']} of {found['names']} complete, {found['passed']} of {found['samples']} samples or steps"
    if found["calls"]:
        text += f", {found['calls alike']} of {found['calls']} calls ({found['calls alike'] / found['calls']:.1%})"
    return text + (f", {found['refused']} refused as PyTorch refuses them" if found["refused"] else "")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.recording", description=__doc__.splitlines()[0])
    parser.add_argument("--kinds", default="sequence,reissue,fake,counts")
    parser.add_argument("--ops", default="database", help="operators of PyTorch's database, comma-separated; none")
    parser.add_argument("--models", default=",".join(models.MODELS), help="comma-separated; none")
    parser.add_argument("--modules", default="all", help="nn modules on fake tensors, comma-separated; none")
    parser.add_argument("--samples", type=int, help="samples of an operator; default all")
    parser.add_argument("--dtypes", help="comma-separated; default the first of float32, int64, bool, complex64 that the operator takes")
    parser.add_argument("--failures", type=int, default=1, help="failures to describe, of an operator or model")
    parser.add_argument("--jobs", type=int, default=2, help="processes; 0: none, for a debugger")
    parser.add_argument("--timeout", type=float, default=240.0, help="seconds per operator")
    parser.add_argument("--save", action="store_true", help="write the figures")
    parser.add_argument("--update", action="store_true", help="write the lists")
    given = parser.parse_args(arguments)
    operators = {} if given.ops == "none" else {name: op for name, op in opinfo.entries(given.ops.split(",")).items() if op.name not in kinds.SKIPPED}
    chosen = [] if given.models == "none" else given.models.split(",")
    wanted = given.kinds.split(",")
    tables: dict[tuple[str, str], dict[str, kinds.Report]] = {}
    for name, reports in over_operators(operators, [kind for kind in wanted if kind in kinds.OPERATOR_KINDS], given):
        for kind, report in reports.items():
            tables.setdefault((kind, "operators"), {})[name] = report
    for kind in wanted:
        tables[kind, "models"] = {name: kinds.MODEL_KINDS[kind](name) for name in chosen}
    if "fake" in wanted and given.modules != "none":
        found = kinds.modules()
        tables["fake", "modules"] = {name: kinds.fake_of_module(found[name], given.samples) for name in (found if given.modules == "all" else given.modules.split(","))}
    figures: dict[str, Any] = {}
    new: list[str] = []
    for (kind, what), table in sorted(tables.items()):
        if not table:
            continue
        for name, report in sorted(table.items()):
            if not report.ok and given.failures:
                print(f"{kind} {name}: {report.failed} of {report.failed + report.passed} fail", *(text[:300] for text in report.failures[: given.failures]), sep="\n    ")
        figures.setdefault(kind, {})[what] = totals(table)
        new += [f"{kind}:{name}" for name, report in sorted(table.items()) if not report.ok and name not in lists.read(kind, what)]
        if given.update:
            lists.update(kind, what, table)
        print(describe(what, kind, figures[kind][what]), flush=True)
    if given.save:
        saved = json.loads(SAVED.read_text()) if SAVED.exists() else {}
        for kind, row in figures.items():
            saved.setdefault("now", {}).setdefault(kind, {}).update(row)
        SAVED.write_text(json.dumps(saved, indent=1) + "\n")
    print("short and not listed:", *new)
    return bool(new)


def over_operators(operators: dict[str, Any], wanted: list[str], given: argparse.Namespace) -> Iterator[tuple[str, dict[str, kinds.Report]]]:
    """Reports by kind of each operator, made in processes of their own."""
    dtypes = tuple(getattr(torch, name) for name in given.dtypes.split(",")) if given.dtypes else None
    if not wanted:
        return

    def work(op: Any, limit: int | None) -> dict[str, kinds.Report]:
        return kinds.run_operator(op, limit, wanted, dtypes)

    if given.jobs == 0:
        yield from ((name, work(op, given.samples)) for name, op in operators.items())
        return
    for name, found in vmap.run_all(operators, given.samples, given.jobs, given.timeout, work):
        if not isinstance(found, dict):  # the process crashed or took too long
            found = {kind: kinds.Report(failed=1, failures=found.failures) for kind in wanted}
        yield name, found


if __name__ == "__main__":
    sys.exit(main())
