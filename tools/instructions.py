"""Instructions that small calls execute, counted by valgrind: a figure that a busy machine does not change and that no repeat is needed for.

    TENSORRT_LITE_ISA=avx2 TENSORRT_LITE_NATIVE=1 python -m tools.build_core      # valgrind knows no AVX-512
    python -m tools.instructions [--only REGEX]             # of the build in place
    python -m tools.instructions --against ../before        # beside the build in another checkout: ratios, the geometric mean last

What the interpreter executes for `lambda: None` in a loop is subtracted; no collection, one seed of hashes, so that two counts of one build are
equal. Instructions are not time: caches and branches are not seen (docs/decisions.md).
"""

from __future__ import annotations

import argparse
import gc
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
CALLS, WARM_UP = 300, 30
NOTHING = "lambda: None"


def cases() -> dict[str, Callable[[], Any]]:
    """Calls by name, on tensors of 64 elements."""
    import tensorrt_lite as trt

    trt.set_num_threads(1)
    F = trt.nn.functional
    a, b, v, w = trt.ones(8, 8), trt.ones(8, 8), trt.ones(64), trt.zeros(8, 8)
    r, leaf = (trt.ones(8, 8, requires_grad=True) for _ in range(2))
    linear, classes = trt.nn.Linear(8, 8), trt.zeros(8, dtype=trt.int64)
    return {
        "a + b": lambda: a + b, "a * b": lambda: a * b, "a + 1.0": lambda: a + 1.0, "w.add_(b)": lambda: w.add_(b), "a == b": lambda: a == b, "a.relu()": lambda: a.relu(),
        "a.exp()": lambda: a.exp(), "where(a > 0, a, b)": lambda: trt.where(a > 0, a, b), "r + b, recorded": lambda: r + b, "r * b, recorded": lambda: r * b,
        "r.relu(), recorded": lambda: r.relu(), "a.sum()": lambda: a.sum(), "a.sum(1)": lambda: a.sum(1), "a.mean()": lambda: a.mean(), "a.max()": lambda: a.max(),
        "a.argmax()": lambda: a.argmax(), "a @ b": lambda: a @ b, "F.linear(a, r)": lambda: F.linear(a, r), "Linear(8, 8)(a)": lambda: linear(a),
        "a.softmax(1)": lambda: a.softmax(1), "F.layer_norm(a, (8,))": lambda: F.layer_norm(a, (8,)), "F.dropout(a, 0.5)": lambda: F.dropout(a, 0.5),
        "F.cross_entropy(a, classes)": lambda: F.cross_entropy(a, classes), "(leaf * a).sum().backward()": lambda: (leaf * a).sum().backward(),
        "a.view(64)": lambda: a.view(64), "a.reshape(64)": lambda: a.reshape(64), "a.t()": lambda: a.t(), "a.permute(1, 0)": lambda: a.permute(1, 0), "a[1]": lambda: a[1],
        "a[1:3]": lambda: a[1:3], "a.select(0, 1)": lambda: a.select(0, 1), "a.unsqueeze(0)": lambda: a.unsqueeze(0), "r.detach()": lambda: r.detach(), "a.shape": lambda: a.shape,
        "v[0].item()": lambda: v[0].item(), "empty(8, 8)": lambda: trt.empty(8, 8), "zeros(8, 8)": lambda: trt.zeros(8, 8), "a.clone()": lambda: a.clone(),
        "a.to(float64)": lambda: a.to(trt.float64), "cat([a, b])": lambda: trt.cat([a, b]), "stack([v, v])": lambda: trt.stack([v, v]),
    }  # fmt: skip


def call_cases(only: str) -> None:
    """In the process that valgrind runs: print the cases' names, call each in turn and dump what was counted, by its number."""

    def control(*arguments: str) -> None:
        subprocess.run(["callgrind_control", *arguments, str(os.getpid())], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)

    found = {NOTHING: lambda: None, **{name: call for name, call in cases().items() if re.search(only, name)}}
    for call in found.values():
        for _ in range(WARM_UP):
            call()
    control("--instr=on")
    gc.disable()
    repeats = range(CALLS)
    print("\n".join(found), flush=True)
    for number, call in enumerate(found.values()):
        control("--zero")
        for _ in repeats:
            call()
        control(f"--dump={number}")


def count(checkout: Path, only: str) -> dict[str, float]:
    """Instructions of a call, by case, of the build in a checkout."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out", sys.executable, __file__, "--worker", "--only", only]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(checkout), "PYTHONHASHSEED": "0"}, cwd=folder, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{checkout}: status {done.returncode}\n{done.stderr[-2000:]}")
        names, totals = done.stdout.splitlines(), {}
        for dump in Path(folder).glob("out.*"):
            text = dump.read_text()
            if number := re.search(r"^desc: Trigger: dump (\d+)$", text, re.M):
                totals[names[int(number[1])]] = int(re.search(r"^totals: (\d+)", text, re.M)[1])
    nothing = totals.pop(NOTHING)
    return {name: (total - nothing) / CALLS for name, total in totals.items()}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.instructions", description=__doc__.split("\n")[0])
    parser.add_argument("--against", type=Path, help="another checkout, built for the same instruction set")
    parser.add_argument("--only", default="", help="cases whose name matches a regular expression")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.worker:
        call_cases(options.only)
        return 0
    if not shutil.which("valgrind"):
        raise SystemExit("valgrind is not installed")
    own = count(ROOT, options.only)
    other = count(options.against.resolve(), options.only) if options.against else {}
    for name in sorted(own, key=lambda name: -own[name] / other[name] if other else 0):
        print(f"{own[name]:8.0f}" + (f" {other[name]:8.0f} {own[name] / other[name]:6.3f}" if other else "") + f"  {name}")
    if other:
        print(f"geometric mean of {len(own)}: {math.exp(sum(math.log(own[name] / other[name]) for name in own) / len(own)):.3f}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
