"""Operators on a device against the same operators on the CPU: forward and gradient on OpInfo's float32 samples.

    python -m tests.conformance.device [--ops a,b] [--samples 6] [--jobs 2] [--failures 3]

An operator is `missing` when it raises NotImplementedError for want of a kernel; device_missing.txt lists those that may be. On the emulator each
operator runs in a child of this process. On a card some run one after the other in an interpreter of their own (--worker), since PyTorch opens NVIDIA's
libraries when it is imported, and those do not work in what a process forks afterwards.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import dataclasses
import functools
import itertools
import json
import os
import queue
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo

from . import kinds, opinfo
from .compare import Judge, Observed
from .kinds import Case
from .library import Library
from .runner import Report, run_isolated

LISTED = Path(__file__).parent / "device_missing.txt"
# Their samples' outcome is drawn by the device's own generator, or is memory that nobody wrote.
_UNCOMPARED = opinfo.RANDOM | opinfo.UNINITIALISED
# Eigenvalues come in no order: tests/cuda/linalg_checks.py compares what they satisfy.
_UNCOMPARED |= {"linalg.eig", "linalg.eigvals"}
# Samples so ill-conditioned that float32 results of two correct methods differ in the fourth digit.
_ILL_CONDITIONED = {"linalg.pinv.hermitian"}


class OnDevice(Library):
    """The library under test with every tensor on a device."""

    def __init__(self, module: Any, device: str) -> None:
        super().__init__(module)
        self.device = device

    def _flat(self, source: torch.Tensor) -> Any:
        return super()._flat(source).to(self.device)

    def _from_torch(self, value: Any, storages: dict[Any, Any], seen: dict[int, Any]) -> Any:
        if isinstance(value, torch.device) and value.type == "cpu" or isinstance(value, str) and value == "cpu":
            return self.module.device(self.device)
        return super()._from_torch(value, storages, seen)

    def to_torch(self, value: Any) -> Any:
        return super().to_torch(value.cpu() if self.is_tensor(value) else value)


def listed_missing() -> set[str]:
    """Operators that have no kernel yet."""
    return {line.partition("#")[0].strip() for line in LISTED.read_text().splitlines()} - {""}


def cases(op: OpInfo, limit: int) -> list[tuple[str, Any]]:
    """(label, function of a Library) for forward calls and gradients of the first float32 samples (of another dtype where there is no float32)."""
    dtype = torch.float32 if op.supports_dtype(torch.float32, "cpu") else opinfo.dtypes(op)[0]
    found: list[tuple[str, Any]] = []
    for sample in itertools.islice(opinfo.samples(op, dtype), limit):
        case: Case = kinds._call_case(op, opinfo.describe(sample), sample, lambda library: library.function(op))
        found.append((case.label, case.run))
    if op.supports_autograd and dtype == torch.float32:
        for sample in itertools.islice(opinfo.samples(op, dtype, requires_grad=True), limit):
            found.append(
                (
                    "gradient: " + opinfo.describe(sample),
                    lambda library, sample=sample: kinds._attempt(
                        lambda: kinds.derivatives(op, library, library.function(op), sample, 1, False)
                    ),
                )
            )
    return found


def _lacks_kernel(found: Observed) -> bool:
    return isinstance(found.error, NotImplementedError)


def run(op: OpInfo, device: str, limit: int) -> Report:
    """Compares up to `limit` samples; missing when any of them wants a kernel that does not exist."""
    import tensorrt_lite

    cpu, there = Library(tensorrt_lite), OnDevice(tensorrt_lite, device)
    inexact = {dtype: pair for dtype, pair in opinfo.tolerances(op).items() if dtype.is_floating_point or dtype.is_complex}
    least = 2e-3 if opinfo.key(op) in _ILL_CONDITIONED else 1e-4
    tolerances = {dtype: (max(rtol, least), max(atol, 1e-5)) for dtype, (rtol, atol) in inexact.items()}
    values = op.name not in _UNCOMPARED
    judge, shapes = Judge(tolerances, values), Judge(tolerances, values=False)
    report = Report()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for label, call in cases(op, limit):
            expected, actual = call(cpu), call(there)
            report.total += 1
            if _lacks_kernel(actual) and not _lacks_kernel(expected):
                return Report(total=report.total, status="missing", failures=[str(actual.error).splitlines()[0]])
            draws = values and "dropout_p=0.5" in label  # other masks than the CPU's
            hard = [item for item in (shapes if draws else judge)(actual, expected) if item.level not in ("strides", "aliases")]
            if not hard:
                report.passed += 1
            elif len(report.failures) < 3:
                report.failures.append(f"{label}: {hard[0].level}: {hard[0].message}")
    if report.passed < report.total:
        report.status = "failed"
    return report


def run_in_interpreters(names: list[str], options: list[str], timeout: float, jobs: int) -> Iterator[tuple[str, Report]]:
    """(name, report) of operators that `jobs` interpreters take turns at. One that dies, or is silent for `timeout` seconds, is followed by another one
    for the rest of its share."""
    found: queue.SimpleQueue[tuple[str, Report]] = queue.SimpleQueue()

    def serve(share: list[str]) -> None:
        while share:
            command = [sys.executable, "-m", "tests.conformance.device", "--worker", "--ops", ",".join(share), *options]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
                assert worker.stdout is not None
                late = threading.Event()
                while share:
                    watchdog = threading.Timer(timeout, lambda: (late.set(), worker.kill()))
                    watchdog.start()
                    line = worker.stdout.readline()
                    watchdog.cancel()
                    if not line:
                        break
                    if not line.startswith("["):  # something else has printed it
                        continue
                    name, report = json.loads(line)
                    share.remove(name)
                    found.put((name, Report(**report)))
            if share:
                status = "timeout" if late.is_set() else "crashed"
                found.put((share.pop(0), Report(status=status, failures=[f"the interpreter ended with {worker.returncode}"])))

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        running = [pool.submit(serve, names[i::jobs]) for i in range(jobs)]
        for _ in names:
            yield found.get()
        for future in running:
            future.result()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", help="comma-separated names")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--failures", type=int, default=3)
    parser.add_argument("--timeout", type=float, default=300.0)
    parser.add_argument("--worker", action="store_true", help="run the operators in this process, a line of JSON each")
    given = parser.parse_args(arguments)
    operators = opinfo.entries(given.ops.split(",") if given.ops else None)
    if given.worker:
        for name in given.ops.split(","):
            op = operators[name]
            print(json.dumps((name, dataclasses.asdict(run(op, given.device, given.samples)))), flush=True)
        return 0
    table = {}
    if os.environ.get("TENSORRT_LITE_CUDA") == "emulate":
        calls = [(name, functools.partial(run, op, given.device, given.samples)) for name, op in operators.items()]
        reports = run_isolated(calls, given.timeout, given.jobs)
    else:
        reports = run_in_interpreters(list(operators), ["--device", given.device, "--samples", str(given.samples)], given.timeout, given.jobs)
    for name, report in reports:
        table[name] = report
        if report.status not in ("ok", "missing") or given.ops:
            print(f"{name}: {report.status} {report.text()}", *report.failures[: given.failures], sep="\n    ", flush=True)
    status = {s: sorted(n for n, r in table.items() if r.status == s) for s in ("ok", "missing", "failed", "crashed", "timeout")}
    passed = sum(r.passed for r in table.values())
    print(f"{passed} samples of {len(status['ok'])} operators agree; " + ", ".join(f"{s} {len(n)}" for s, n in status.items() if s != "ok"))
    print("missing:", *status["missing"])
    wrong = [n for s in ("failed", "crashed", "timeout") for n in status[s]]
    allowed = listed_missing()
    unlisted, stale = sorted(set(status["missing"]) - allowed), sorted(allowed & set(status["ok"]))
    if unlisted:
        print("missing and not listed:", *unlisted)
    if stale:
        print("listed as missing and present:", *stale)
    return 1 if wrong or unlisted or stale else 0


if __name__ == "__main__":
    sys.exit(main())
