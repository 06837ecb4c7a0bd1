"""What has to be seen on a machine with a GPU: installs from carried wheels, runs the CUDA tests for real, times the benchmark's rows beside
PyTorch's, and writes one report.

    python -m tools.gpu_check [--wheels FOLDER] [--out FOLDER] [--sanitizer] [--no-tests] [--no-bench] [--minutes 25]

--wheels installs tensorrt_lite and what it needs (numpy, scipy-openblas32, pytest, the compiler's wheels) from a folder without a network, into
an environment that sees the machine's own packages (PyTorch, CUDA); without it, this checkout's build is used, made where there is none.
--sanitizer repeats the tests under compute-sanitizer. The report is OUT/gpu_report.md; OUT/bench_cuda.json has the figures. Exit status 1 when
a test fails or nothing could be run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Report:
    """Sections of the report, written after each so that a run that is cut short leaves what it has."""

    def __init__(self, path: Path) -> None:
        self.path, self.parts = path, [f"# CUDA on a GPU, {datetime.date.today().isoformat()}\n"]

    def add(self, title: str, text: str) -> None:
        self.parts.append(f"## {title}\n\n{text.rstrip()}\n")
        self.path.write_text("\n".join(self.parts))
        print(f"== {title}\n{text.rstrip()}\n", flush=True)


def run(command: list[str], environment: dict[str, str], seconds: float) -> tuple[int, str]:
    """(exit status, the end of what it printed); 124 after `seconds`."""
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=max(seconds, 1))
        return done.returncode, done.stdout[-8000:]
    except subprocess.TimeoutExpired as expired:
        printed = expired.stdout or b""
        return 124, (printed.decode(errors="replace") if isinstance(printed, bytes) else printed)[-8000:] + f"\nstopped after {seconds:.0f} s"


def install(wheels: Path, out: Path) -> str:
    """A virtual environment that sees the machine's packages and has the carried wheels; its interpreter."""
    place = out / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", str(place)], check=True)
    python = str(place / "bin" / "python")
    found = sorted(str(p) for p in wheels.glob("*.whl"))
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--find-links", str(wheels), *found], check=True)
    return python


FACTS = """
import json, sys, tensorrt_lite as trt
c = trt.cuda
facts = {"python": sys.version.split()[0], "tensorrt_lite": trt.__version__, "available": c.is_available()}
if c.is_available():
    p = c.get_device_properties(0)
    facts.update(card=p.name, capability=f"{p.major}.{p.minor}", memory_gib=round(p.total_memory / 2**30, 1), driver=__import__("tensorrt_lite._C.cuda.driver", fromlist=["x"]).driver_version())
try:
    import torch
    facts["torch"] = torch.__version__
except ImportError:
    facts["torch"] = None
print(json.dumps(facts))
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "gpu")
    parser.add_argument("--sanitizer", action="store_true")
    parser.add_argument("--no-tests", action="store_true")
    parser.add_argument("--no-bench", action="store_true")
    parser.add_argument("--minutes", type=float, default=25.0, help="the whole run's limit")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * given.minutes
    report = Report(given.out / "gpu_report.md")

    environment = {k: v for k, v in os.environ.items() if k not in ("TENSORRT_LITE_CUDA", "TENSORRT_LITE_LIBCUDA")}
    environment["TENSORRT_LITE_CUDA_CACHE"] = str(given.out / "kernels")
    if given.wheels:
        python = install(given.wheels, given.out)
        environment.pop("PYTHONPATH", None)
        # the tests of the checkout, the package of the wheel
        where = given.out / "tests"
        shutil.copytree(ROOT / "tests", where, dirs_exist_ok=True)
    else:
        python, where = sys.executable, ROOT / "tests"
        environment["PYTHONPATH"] = str(ROOT)
        if not list((ROOT / "tensorrt_lite" / "_C" / "cuda").glob("backend*.so")):
            subprocess.run([python, "-m", "tools.build_core"], cwd=ROOT, check=True)

    status, text = run([python, "-c", FACTS], environment, 300)
    report.add("Machine", text)
    if status or not json.loads(text.strip().splitlines()[-1])["available"]:
        report.add("Result", "No CUDA device could be used: nothing was run.")
        return 1

    failed = False
    if not given.no_tests:
        tests = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(where / "cuda" / "device")]
        status, text = run(tests, environment, end - time.monotonic())
        failed |= status != 0
        report.add("Tests", f"exit status {status}\n\n```\n{text}\n```")
        status, text = run([python, "-m", "tests.conformance.device", "--jobs", "8"], {**environment, "PYTHONPATH": str(where.parent)}, end - time.monotonic())
        failed |= status != 0
        report.add("Operators beside the CPU", f"exit status {status}\n\n```\n{text}\n```")
        sanitizer = shutil.which("compute-sanitizer")
        if given.sanitizer and sanitizer:
            status, text = run([sanitizer, "--tool", "memcheck", "--error-exitcode", "9", *tests], environment, end - time.monotonic())
            failed |= status != 0
            report.add("compute-sanitizer", f"exit status {status}\n\n```\n{text}\n```")
    if not given.no_bench:
        command = [python, "-m", "tensorrt_lite.bench", "cuda", "--against", "torch", "--threads", "1", "--json", str(given.out / "bench_cuda.json")]
        status, text = run(command, environment, end - time.monotonic())
        report.add("Benchmark", f"exit status {status}\n\n```\n{text}\n```")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
