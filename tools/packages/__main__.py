"""Cases over published packages (transformers, timm, einops, torchmetrics, ...) with both libraries, in turns: the same numbers, and in which time.

    python -m tools.packages --ours OURS/bin/python --theirs THEIRS/bin/python [--only REGEX] [--rounds 3] [--json FILE] [--markdown docs/running_programs.md]

OURS is a Python without PyTorch, THEIRS one with it; both have the packages, and OURS finds tensorrt_lite. A package that is not installed is a case that fails with both.
Each round is a process for each library with one thread; times are the least of all rounds (of the processor).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
MODULES = ("transformers_cases", "timm_cases", "small_cases")
BEGIN, END = "<!-- packages -->\n", "<!-- end of packages -->\n"


def run_here(only: str, out: Path) -> None:
    """In a process of one library: numbers and seconds of each case, or its error."""
    warnings.filterwarnings("ignore")
    import torch

    from tools.packages._cases import CASES, numbers

    torch.set_num_threads(1)
    if "trtlite" not in torch.__version__:  # torchvision of another build has no operators, for which it registers shapes
        registered = torch.library.register_fake
        torch.library.define("torchvision::nms", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        torch.library.register_fake = lambda name, *args, **kwargs: (
            (lambda f: f) if str(name).startswith("torchvision::") else registered(name, *args, **kwargs)
        )
    found: dict[str, Any] = {}
    for module in MODULES:
        try:
            importlib.import_module(f"tools.packages.{module}")
        except ImportError as error:
            found[module] = {"error": repr(error)}
    for name, function in CASES.items():
        if not re.search(only, name):
            continue
        torch.manual_seed(0)
        start = time.process_time()
        try:
            result = function()
            seconds = time.process_time() - start
            timed = isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], float)
            found[name] = {"numbers": numbers(result[0] if timed else result), "seconds": result[1] if timed else seconds, "steps": timed}
        except Exception as error:
            traceback.print_exc()
            found[name] = {"error": repr(error)}
    out.write_text(json.dumps(found))


def run(command: list[str], only: str) -> dict[str, Any]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.json"
        subprocess.run(
            [*command, "-m", "tools.packages", "--inside", str(out), "--only", only],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            check=True,
        )
        return json.loads(out.read_text())


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ours", default=sys.executable, help="a Python without PyTorch")
    parser.add_argument("--theirs", default=sys.executable, help="a Python with PyTorch")
    parser.add_argument("--theirs-path", help="a folder of packages for it")
    parser.add_argument("--only", default="", help="cases whose name matches")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.inside:
        run_here(options.only, options.inside)
        return 0
    theirs_command = ["env", f"PYTHONPATH={options.theirs_path}{os.pathsep}{ROOT}", options.theirs] if options.theirs_path else [options.theirs]
    rounds = [(run([options.ours, "-m", "tensorrt_lite", "run"], options.only), run(theirs_command, options.only)) for _ in range(options.rounds)]
    rows, bad = {}, 0
    lines = ["| case | numbers | differ by | of a step, ms | PyTorch's | ratio |", "|---|--:|--:|--:|--:|--:|"]
    for name in rounds[0][1]:
        ours, theirs = rounds[0][0].get(name, {"error": "absent"}), rounds[0][1][name]
        if "error" in ours or "error" in theirs:
            rows[name] = {"ours": ours.get("error"), "theirs": theirs.get("error")}
            bad += 1
            print(f"{name}: {ours.get('error')} / PyTorch: {theirs.get('error')}")
            continue
        a, b = ours["numbers"], theirs["numbers"]
        apart = max((abs(x - y) / max(1.0, abs(y)) for x, y in zip(a, b) if x == x or y == y), default=0.0) if len(a) == len(b) else float("inf")
        mine, its = (min(r[i][name]["seconds"] for r in rounds) for i in (0, 1))
        rows[name] = {"numbers": len(b), "apart": apart, "seconds": mine, "pytorch_seconds": its, "steps": ours["steps"]}
        times = [f"{1e3 * mine:.2f}", f"{1e3 * its:.2f}", f"{mine / its:.2f}"] if ours["steps"] and its else ["", "", ""]
        lines.append(f"| {' | '.join([name, str(len(b)), 'the same' if apart == 0 else f'{apart:.0e}', *times])} |")
        print(lines[-1], flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if options.markdown:
        before, rest = options.markdown.read_text().split(BEGIN)
        options.markdown.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n\n{END}{rest.split(END)[1]}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
