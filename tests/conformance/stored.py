"""Operators on the types without loops (uint16, uint32, uint64, complex32, float8) against PyTorch: forward calls on OpInfo's samples.

    python -m tests.conformance.stored [--ops a,b] [--dtypes uint16,complex32] [--samples 6] [--failures 3]

OpInfo declares few of these types, so samples are drawn in a type that an operator declares (whole numbers for the unsigned ones) and cast. What PyTorch
computes must agree; where it raises, an error of its type must be raised, or the operator computes more than PyTorch's (it moves elements, say).
stored_incomplete.txt lists what falls short, with reasons.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from . import kinds, opinfo
from .compare import SOFT, Judge
from .library import Library, Missing
from .runner import Report

LISTED = Path(__file__).parent / "stored_incomplete.txt"
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz, torch.float8_e8m0fnu)
DTYPES = (*UNSIGNED, torch.complex32, *FLOAT8)
# Families that are other storeys' (sparse, quantized).
LEFT_OUT = {"to_sparse", "sparse.mm", "sparse.sampled_addmm"}


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def drawn_in(op: OpInfo, dtype: torch.dtype) -> torch.dtype | None:
    """The type that samples are drawn in: one that the operator declares."""
    whole, complexes, reals = (torch.uint8, torch.int64), (torch.complex64,), (torch.float32, torch.float64)
    order = (*whole, *reals) if dtype in UNSIGNED else (*complexes, *reals) if dtype is torch.complex32 else (*reals, *whole)
    return next((base for base in order if op.supports_dtype(base, "cpu")), None)


def samples(op: OpInfo, dtype: torch.dtype, limit: int) -> list[SampleInput]:
    base = drawn_in(op, dtype)
    if base is None:
        return []

    def cast(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.detach().to(dtype) if value.dtype is base else value.detach()
        return dtype if value is base else value

    return [sample.transform(cast) for sample in itertools.islice(opinfo.samples(op, base), limit)]


def run(op: OpInfo, dtype: torch.dtype, limit: int) -> Report:
    """`refused` counts samples that PyTorch has no kernel for and this library computes."""
    import tensorrt_lite

    reference, library = Library(torch), Library(tensorrt_lite)
    tolerances = opinfo.tolerances(op)
    tolerances = {**tolerances, **dict.fromkeys(FLOAT8, (0.13, 0.02)), torch.complex32: (2e-3, 1e-2)}
    judge = Judge(tolerances, values=op.name not in opinfo.UNINITIALISED | opinfo.RANDOM)
    report = Report()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in samples(op, dtype, limit):
            case = kinds._call_case(op, kinds._label(dtype, sample), sample, lambda given: given.function(op))
            expected = case.run(reference)
            report.total += 1
            try:
                actual = case.run(library)
            except Missing as error:
                return Report(total=report.total, status="missing", failures=[str(error)])
            if expected.error is not None and actual.error is None:
                report.refused += 1
                report.passed += 1
                continue
            hard = [item for item in judge(actual, expected) if item.level not in SOFT]
            if hard and case.exact is not None and all(item.level in ("value", "mutation") for item in hard):
                hard = [item for item in judge(actual, expected, case.exact()) if item.level not in SOFT]
            if expected.error is not None and hard and isinstance(actual.error, (NotImplementedError, RuntimeError, TypeError, ValueError)) and isinstance(expected.error, RuntimeError):
                hard = []  # two names for "not for this type"
            if not hard:
                report.passed += 1
            elif len(report.failures) < 6:
                report.failures.append(f"{case.label}: {hard[0].level}: {hard[0].message}")
    if report.passed < report.total:
        report.status = "failed"
    return report


def incomplete() -> dict[str, str]:
    """{"operator dtype": reason} of stored_incomplete.txt; `*` stands for all of the types."""
    found = {}
    for line in LISTED.read_text().splitlines():
        entry, _, reason = line.partition("#")
        if entry.strip():
            name, *types = entry.split()
            found.update({f"{name} {t}": reason.strip() for t in ((name_of(d) for d in DTYPES) if types == ["*"] else types)})
    return found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", help="comma-separated names")
    parser.add_argument("--dtypes", help="comma-separated names")
    parser.add_argument("--samples", type=int, default=6)
    parser.add_argument("--failures", type=int, default=2)
    given = parser.parse_args(arguments)
    wanted = [d for d in DTYPES if given.dtypes is None or name_of(d) in given.dtypes.split(",")]
    table: dict[str, Report] = {}
    for name, op in opinfo.entries(given.ops.split(",") if given.ops else None).items():
        if op.name in LEFT_OUT:
            continue
        for dtype in wanted:
            report = table[f"{name} {name_of(dtype)}"] = run(op, dtype, given.samples)
            if report.status != "ok":
                print(f"{name} {name_of(dtype)}: {report.text()}", *report.failures[: given.failures], sep="\n    ", flush=True)
    listed = incomplete()
    short = {entry for entry, report in table.items() if report.status != "ok"}
    for dtype in wanted:
        reports = [r for entry, r in table.items() if entry.endswith(" " + name_of(dtype)) and r.total]
        print(f"{name_of(dtype)}: {sum(r.status == 'ok' for r in reports)} of {len(reports)} operators, {sum(r.passed for r in reports)} of {sum(r.total for r in reports)} samples; "
              f"{sum(r.refused for r in reports)} that PyTorch has no kernel for")
    print("short and not listed:", *sorted(short - set(listed)))
    stale = sorted(entry for entry in listed if entry in table and entry not in short)
    print("listed and complete:", *stale)
    return 1 if short - set(listed) or stale else 0


if __name__ == "__main__":
    sys.exit(main())
