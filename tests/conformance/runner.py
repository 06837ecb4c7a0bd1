"""Runs the cases of (operator, kind) pairs, counts, and tabulates.

The pairs of an operator run in a forked child, so that a crash or a hang of the library under test is a result like any other
and no operator sees another's state; the pairs after one that crashes run in the next child. Called by `__main__` and by the tests.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import json
import operator
import os
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NoReturn

import torch
from torch.testing._internal.opinfo.core import OpInfo

from . import opinfo
from .compare import SOFT, Judge, Mismatch
from .kinds import KINDS, applies
from .library import Library, Missing

# Failures beyond this many are counted but not described.
DESCRIBED = 10


@dataclass
class Report:
    """What one kind of one operator came to; status: ok, failed, missing, crashed, timeout.

    nearer: of the passed, those outside the tolerance around PyTorch's value and no further from the exact one.
    refused: not in total; samples for which PyTorch has no implementation and the library under test computes.
    """

    passed: int = 0
    total: int = 0
    strides: int = 0
    nearer: int = 0
    refused: int = 0
    status: str = "ok"
    failures: list[str] = field(default_factory=list)

    def text(self) -> str:
        if self.status in ("missing", "crashed", "timeout"):
            return self.status
        return f"{self.passed}/{self.total}" if self.total else "-"


def run(op: OpInfo, kind: str, module: Any, limit: int | None = None) -> Report:
    """Runs up to `limit` cases of one kind in this process."""
    reference, library = Library(torch), Library(module)
    judge = Judge(opinfo.tolerances(op), values=op.name not in opinfo.UNINITIALISED, precision=1.6e-2 if kind == "autocast" else 0.0)
    report = Report()
    if not applies(op, kind):
        return report
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in KINDS[kind](op):
            if report.total == limit:
                break
            report.total += 1
            expected = case.run(reference)
            try:
                actual = case.run(library)
            except Missing as error:
                return Report(total=report.total, status="missing", failures=[str(error)])
            if kind != "errors" and actual.error is None and _lacks_implementation(expected.error):
                report.total -= 1
                report.refused += 1
                continue
            found = judge(actual, expected)
            if case.exact is not None and _judges_values(found) and not _hard(judge(actual, expected, case.exact())):
                report.nearer += 1
                found = [item for item in found if item.level in SOFT]
            report.strides += any(item.level in SOFT for item in found)
            hard = _hard(found)
            if not hard:
                report.passed += 1
            elif len(report.failures) < DESCRIBED:
                report.failures.append(f"{case.label}: {hard[0].level}: {hard[0].message}")
    if report.passed < report.total:
        report.status = "failed"
    return report


def _hard(found: list[Mismatch]) -> list[Mismatch]:
    return [item for item in found if item.level not in SOFT]


def _judges_values(found: list[Mismatch]) -> bool:
    """Whether values differ and nothing else does."""
    hard = _hard(found)
    return bool(hard) and all(item.level in ("value", "mutation") for item in hard)


def _lacks_implementation(error: BaseException | None) -> bool:
    """PyTorch's refusals of arguments that it means to accept, told by their text."""
    return error is not None and any(text in str(error) for text in ("not implemented", "Unsupported dtype"))


Call = tuple[Any, Callable[[], Report]]  # name and call


class _Child:
    """A forked process that makes `calls` one after the other and writes each report to a pipe, a line each."""

    def __init__(self, calls: list[Call], timeout: float) -> None:
        self.timeout = timeout
        self.deadline = time.monotonic() + timeout
        self.left = calls
        self._rest = b""
        self.pipe, write_end = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.pipe)
            _serve(calls, write_end)
        os.close(write_end)

    def read(self) -> Iterator[tuple[Any, Report]]:
        """Takes what the pipe holds: reports that came whole, or that of the call that the child ended in."""
        chunk = os.read(self.pipe, 1 << 16)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            yield self._pop(), Report(**json.loads(line))
            self.deadline = time.monotonic() + self.timeout
        if chunk:
            return
        code = self._reap()
        if self.left:
            cause = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
            yield self._pop(), Report(status="crashed", failures=[f"the process ended with {cause}"])

    def kill(self) -> tuple[Any, Report]:
        os.kill(self._pid, signal.SIGKILL)
        self._reap()
        return self._pop(), Report(status="timeout", failures=[f"no answer within {self.timeout:g} s"])

    def _pop(self) -> Any:
        (name, _), *self.left = self.left
        return name

    def _reap(self) -> int:
        os.close(self.pipe)
        self.pipe = -1
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def _serve(calls: list[Call], write_end: int) -> NoReturn:
    """The child's life: it never returns into the parent's stack."""
    status = 1
    try:
        # Children of a process that has used OpenMP must stay serial.
        torch.set_num_threads(1)
        with os.fdopen(write_end, "w") as stream:
            for _, call in calls:
                stream.write(json.dumps(asdict(call())) + "\n")
                stream.flush()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def run_isolated(calls: Iterable[Call], timeout: float, jobs: int = 1, together: Callable[[Any], Any] | None = None) -> Iterator[tuple[Any, Report]]:
    """(name, report) of each (name, call) as they end, up to `jobs` children at a time.

    "crashed" is the status of a call whose child died, "timeout" of one that took longer than `timeout` seconds. Each call has a
    child of its own; or successive ones of the same `together(name)` have one, as long as none crashes or hangs.
    """
    groups = itertools.groupby(calls, lambda call: together(call[0])) if together else ((None, [call]) for call in calls)
    waiting, active = (list(group) for _, group in groups), {}
    while True:
        for group in itertools.islice(waiting, jobs - len(active)):
            child = _Child(group, timeout)
            active[child.pipe] = child
        if not active:
            return
        patience = max(0.0, min(child.deadline for child in active.values()) - time.monotonic())
        ready, _, _ = select.select(list(active), [], [], patience)
        for pipe, child in list(active.items()):
            if pipe in ready:
                yield from child.read()
            elif time.monotonic() >= child.deadline:
                yield child.kill()
            if child.pipe < 0:
                del active[pipe]
                if child.left:
                    child = _Child(child.left, timeout)
                    active[child.pipe] = child


def isolated(call: Callable[[], Report], timeout: float) -> Report:
    """`call()` in a child of its own."""
    return next(report for _, report in run_isolated([(None, call)], timeout))


def run_all(
    operators: dict[str, OpInfo],
    kinds: Iterable[str],
    module: Any,
    limit: int | None = None,
    timeout: float = 300.0,
    jobs: int = 1,
    progress: Callable[[str, str, Report], None] | None = None,
) -> dict[str, dict[str, Report]]:
    """Reports by operator key and kind; with `jobs` 0 everything runs in this process."""
    table = {name: {kind: Report() for kind in kinds} for name in operators}
    for name in ("torch._decomp.decompositions_for_jvp", *(f"{module.__name__}.{part}" for part in ("nn.functional", "autograd.forward_ad", "amp"))):
        importlib.import_module(name)  # what each child would import when it is first needed, a third of a second together
    calls = [
        ((name, kind), functools.partial(run, op, kind, module, limit))
        for name, op in operators.items()
        for kind in table[name]
        if applies(op, kind)
    ]
    done = run_isolated(calls, timeout, jobs, together=operator.itemgetter(0)) if jobs else ((pair, call()) for pair, call in calls)
    for (name, kind), report in done:
        table[name][kind] = report
        if progress is not None:
            progress(name, kind, report)
    return table


def as_json(table: dict[str, dict[str, Report]]) -> dict[str, Any]:
    return {name: {kind: asdict(report) for kind, report in row.items()} for name, row in table.items()}


def as_text(table: dict[str, dict[str, Report]]) -> str:
    """as_json in text, one line per operator and kind."""
    rows = []
    for name, kinds in as_json(table).items():
        lines = ",\n".join(f"  {json.dumps(kind)}: {json.dumps(report)}" for kind, report in kinds.items())
        rows.append(f" {json.dumps(name)}: {{\n{lines}\n }}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def losses(table: dict[str, dict[str, Report]], saved: dict[str, Any]) -> list[str]:
    """Lines for every pair that passed more samples in the saved run than in this one; pairs not run now are left."""
    lines = []
    for name, row in table.items():
        for kind, report in row.items():
            before = saved.get(name, {}).get(kind)
            if before is not None and report.passed < before["passed"]:
                lines.append(f"{name} {kind}: {report.text()}, in the saved run {before['passed']}/{before['total']}")
    return lines


def render(table: dict[str, dict[str, Report]]) -> str:
    """The table operator x kind with passed/total samples and, last, outputs with other strides than PyTorch's."""
    kinds = list(dict.fromkeys(kind for row in table.values() for kind in row))
    rows = [["operator", *kinds, "strides"]]
    for name, row in table.items():
        rows.append([name, *(row[kind].text() for kind in kinds), str(sum(r.strides for r in row.values()) or "-")])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def summary(table: dict[str, dict[str, Report]]) -> str:
    """Totals by kind, and the operators that the library lacks."""
    reports = [(name, kind, report) for name, row in table.items() for kind, report in row.items()]
    lines = []
    for kind in dict.fromkeys(kind for _, kind, _ in reports):
        own = [report for _, other, report in reports if other == kind]
        line = f"{kind}: {sum(r.passed for r in own)} of {sum(r.total for r in own)} samples pass"
        if nearer := sum(r.nearer for r in own):
            line += f", {nearer} of them as near to the exact value as PyTorch's"
        if refused := sum(r.refused for r in own):
            line += f"; {refused} more that PyTorch has no implementation for"
        lines.append(line)
    for status in ("missing", "crashed", "timeout"):
        names = list(dict.fromkeys(f"{name}[{kind}]" for name, kind, r in reports if r.status == status))
        if names:
            lines.append(f"{status} ({len(names)}): {', '.join(names)}")
    return "\n".join(lines)
