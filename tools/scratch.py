"""Each operator's peak scratch memory beside PyTorch's, over PyTorch's operator database.

    python -m tools.scratch [--ops add,sort] [--samples 4] [--jobs 2] [--json FILE] [--check]

Scratch is what a call has allocated at its worst moment beyond its operands and beyond what it leaves (results): bytes of the C heap, counted by
tools/scratch_counter.c, so tensors, workspaces of loops and lists alike. Samples are those of the database with every size above one multiplied
alike, until the largest tensor has some 2 MB, and with elements drawn from the sample's; where PyTorch refuses that (a size among the arguments), the
next sample is tried. A call is counted the second time, in one thread: caches are filled. --check fails where an operator needs 1 MB more than PyTorch
and tests/conformance/scratch_allowed.txt does not name it with a reason. Linux with gcc.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import gc
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "tools" / "scratch_counter.c"
LIBRARY = ROOT / "build" / "scratch" / "scratch_counter.so"
ALLOWED = ROOT / "tests" / "conformance" / "scratch_allowed.txt"
ALLOWANCE = 1 << 20
TARGETS = (1 << 21, 1 << 19, 1 << 16)  # bytes of the largest operand; results may be much larger
MOST_MEMORY = 6 << 30


def environment() -> dict[str, str]:
    """What a counted process needs; compiles the counter where it is older than its source."""
    if not LIBRARY.exists() or LIBRARY.stat().st_mtime < SOURCE.stat().st_mtime:
        LIBRARY.parent.mkdir(parents=True, exist_ok=True)
        made = LIBRARY.with_suffix(f".{os.getpid()}")
        subprocess.run([*os.environ.get("CC", "gcc").split(), "-O2", "-Wall", "-fno-builtin", "-shared", "-fPIC", str(SOURCE), "-o", str(made)], check=True)
        made.replace(LIBRARY)
    return {**os.environ, "LD_PRELOAD": str(LIBRARY), "TENSORRT_LITE_CPU_ALLOCATOR": "system", "TENSORRT_LITE_SCRATCH": "1", "MKL_DISABLE_FAST_MM": "1"}


def tensors_of(value: Any, tensor: type) -> list[Any]:
    """Those of a class in nested lists, tuples and dictionaries."""
    if isinstance(value, tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for item in value for t in tensors_of(item, tensor)] if isinstance(value, (list, tuple)) else []


def enlarged(value: Any, factor: float, definite: bool) -> Any:
    """The argument with larger tensors: sizes above one times `factor`, elements drawn from the tensor's own; square ones positive definite."""
    import torch

    if isinstance(value, torch.Tensor):
        shape = [n if n <= 1 else max(2, round(n * factor)) for n in value.shape]
        if value.numel() == 0 or shape == list(value.shape):
            return value.detach().clone()
        t = value.detach().contiguous().flatten()[torch.randint(value.numel(), (math.prod(shape),))].reshape(shape)
        if definite and t.dim() > 1 and shape[-1] == shape[-2] and t.is_floating_point():
            t = t @ t.mT / shape[-1] + torch.eye(shape[-1])
        return t
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(enlarged(item, factor, definite) for item in value)
    if isinstance(value, dict):
        return {name: enlarged(item, factor, definite) for name, item in value.items()}
    return value


def peak(counter: Any, tensor: type, call: Any) -> int:
    """Bytes that the call's second run took at most beyond its results; memory that a result keeps and has no use for counts."""
    call()
    gc.disable()
    before = counter.scratch_live()
    counter.scratch_reset()
    result = call()
    most, left = counter.scratch_peak() - before, counter.scratch_live() - before
    sizes = {t.data_ptr(): t.numel() * t.element_size() for t in tensors_of(result, tensor)}
    return int(most - min(left, sum(sizes.values())))


def measure(op: Any, limit: int) -> Any:
    """A Report whose failures are the JSON of (label, bytes of the largest operand, our scratch, PyTorch's) of samples that both compute."""
    import torch

    import tensorrt_lite
    from tests.conformance import opinfo
    from tests.conformance.library import Library
    from tests.conformance.runner import Report

    counter = ctypes.CDLL(str(LIBRARY))
    counter.scratch_live.restype = counter.scratch_peak.restype = ctypes.c_long  # results may be larger than an int
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    for module in (torch, tensorrt_lite):
        module.set_num_threads(1)
    dtype = torch.float32 if op.supports_dtype(torch.float32, "cpu") else opinfo.dtypes(op)[0]
    definite = op.name.startswith("linalg.") or "cholesky" in op.name or op.name in ("ormqr", "logdet", "inverse", "pinverse")
    reference, library, report = Library(torch), Library(tensorrt_lite), Report()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for sample in itertools.islice(opinfo.samples(op, dtype), 200):
            values = (sample.input, list(sample.args), dict(sample.kwargs))
            largest = max(tensors_of(values, torch.Tensor), key=torch.Tensor.numel, default=None)
            if largest is None or largest.numel() < 2:
                continue
            grown = sum(n > 1 for n in largest.shape)
            for target in TARGETS:
                factor = (target / largest.element_size() / largest.numel()) ** (1 / grown)
                sides = []
                try:
                    given = enlarged(values, factor, definite)
                    for side in (reference, library):
                        first, args, kwargs = side.arguments(*given)
                        sides.append(peak(counter, side.Tensor, functools.partial(side.function(op), first, *args, **kwargs)))
                except Exception as error:
                    if len(sides) == 1:
                        report.status, report.failures = "failed", [*report.failures, json.dumps([opinfo.describe(sample)[:200], 0, -1, str(error)[:200]])]
                        break
                    continue
                report.failures.append(json.dumps([opinfo.describe(sample)[:200], target, sides[1], sides[0]]))
                report.total += 1
                break
            if report.total == limit:
                break
    return report


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ops", help="comma-separated names")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--verbose", action="store_true", help="every sample as it is measured")
    options = parser.parse_args(arguments)
    if "TENSORRT_LITE_SCRATCH" not in os.environ:
        return subprocess.run([sys.executable, "-m", "tools.scratch", *arguments], env=environment(), cwd=ROOT).returncode

    import torch  # noqa: F401  (before the forks)

    import tensorrt_lite  # noqa: F401
    from tests.conformance import opinfo
    from tests.conformance.runner import run_isolated

    operators = opinfo.entries(options.ops.split(",") if options.ops else None)
    table: dict[str, dict[str, Any]] = {}
    unmeasured: dict[str, str] = {}
    for name, report in run_isolated([(name, functools.partial(measure, op, options.samples)) for name, op in operators.items()], options.timeout, options.jobs):
        if options.verbose:
            print(f"{len(table) + len(unmeasured) + 1} of {len(operators)}: {name} {report.failures}", file=sys.stderr, flush=True)
        rows = [row for row in map(json.loads, report.failures) if row[2] >= 0] if report.status in ("ok", "failed") else []
        if not rows:
            unmeasured[name] = report.status if report.status != "ok" else "no enlarged sample"
            continue
        label, operand, ours, theirs = max(rows, key=lambda row: row[2] - row[3])
        table[name] = {"operand": operand, "ours": ours, "torch": theirs, "sample": label}
    over = {name: row for name, row in table.items() if row["ours"] > row["torch"] + ALLOWANCE}
    for name, row in sorted(over.items(), key=lambda item: item[1]["torch"] - item[1]["ours"]):
        print(f"{name:40s} {row['ours'] / 2**20:8.1f} MB, PyTorch {row['torch'] / 2**20:8.1f}; operand {row['operand'] / 2**20:.2f}: {row['sample'][:120]}")
    print(f"{len(table)} operators measured, {len(over)} need over 1 MB more than PyTorch; {len(unmeasured)} not measured: {', '.join(sorted(unmeasured))}")
    if options.json:
        options.json.write_text(json.dumps({"operators": dict(sorted(table.items())), "not measured": dict(sorted(unmeasured.items()))}, indent=1) + "\n")
    if not options.check:
        return 0
    allowed = {line.partition("#")[0].strip() for line in ALLOWED.read_text().splitlines()} - {""}
    unlisted = sorted(set(over) - allowed)
    if unlisted:
        print("over and not listed:", *unlisted)
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
