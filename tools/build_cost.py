"""What a build from nothing costs in processor time, beside the saved one: `python -m tools.build_cost [FOLDER]`.

A build leaves `build_cost.json` in its folder (build/core): processor time by kind of step, and how many steps it did not
have to run. Only a build that ran all of them is compared. Machines differ, so both times are divided by that of a
calibrating compile, a fixed program of a second; processor time does not depend on what else the machine does, but two
processes that share a core slow each other down, which the tolerance covers.

`--save` writes docs/benchmarks/build.json. Exit status 1: the build costs more than the saved one and the tolerance.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SAVED = ROOT / "docs" / "benchmarks" / "build.json"
TOLERANCE = 1.3
# functions of one form: what gcc does for them is what it does for the core
FUNCTION = """
static double f%d(const double* x, double* y, long n, int k) {
  double sum = 0, least = x[0];
  for (long i = 0; i < n; i++) {
    double v = x[i] * %d + (k & 1 ? y[i] : -y[i]);
    if (v < least) least = v;
    y[i] = v > 0 ? v : least;
    sum += y[i] * x[n - i - 1];
  }
  switch (k %% 5) { case 0: return sum; case 1: return least; case 2: return sum - least; default: return k > 2 ? f%d(y, y, n / 2, k - 1) : 0; }
}
"""


def calibration_program(count: int = 250) -> str:
    first = "static double f0(const double* x, double* y, long n, int k) { return x[0] + y[n] + k; }\n"
    calls = "".join(f"  s += f{i}(x, y, n, {i});\n" for i in range(1, count))
    return first + "".join(FUNCTION % (i, i, i - 1) for i in range(1, count)) + f"double all(const double* x, double* y, long n) {{\n  double s = 0;\n{calls}  return s;\n}}\n"


def calibrate() -> float:
    """Seconds of processor time for the fixed program; the least of three."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "calibration.c"
        source.write_text(calibration_program())
        times = []
        for _ in range(3):
            process = subprocess.Popen([*os.environ.get("CC", "gcc").split(), "-O2", "-c", str(source), "-o", str(source.with_suffix(".o"))])
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise SystemExit("the calibrating program does not compile")
            times.append(usage.ru_utime + usage.ru_stime)
    return min(times)


def kind(build: dict) -> str:
    return "quick" if build["quick"] else "native" if build["native"] else "wheel"


def verdict(build: dict, calibration: float, saved: dict, tolerance: float = TOLERANCE) -> tuple[bool, str]:
    """Whether a build passes, and why."""
    total = sum(build["seconds"].values())
    if build["reused"]:
        return True, f"{build['reused']} results were taken from an earlier build or the cache: nothing to compare"
    if kind(build) not in saved:
        return True, f"{total:.0f} s of processor time; no {kind(build)} build is saved"
    before = saved[kind(build)]
    ratio = total / calibration / (sum(before["seconds"].values()) / before["calibration"])
    parts = ", ".join(f"{name} {seconds:.0f}" for name, seconds in build["seconds"].items())
    text = f"{total:.0f} s of processor time ({parts}), {ratio:.2f} of the saved {kind(build)} build's where the machine's speed is divided out"
    return ratio <= tolerance, text + (f": more than {tolerance}" if ratio > tolerance else "")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "core")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args(arguments)
    path = options.folder / "build_cost.json"
    if not path.exists():
        print(f"{path} is not there: nothing was built here")
        return 0
    build = json.loads(path.read_text())
    saved = json.loads(SAVED.read_text()) if SAVED.exists() else {}
    calibration = calibrate()
    if options.save:
        if build["reused"]:
            raise SystemExit(f"{build['reused']} results were reused: a build to save begins with an empty folder and cache")
        saved[kind(build)] = {"seconds": {k: round(v, 1) for k, v in build["seconds"].items()}, "calibration": round(calibration, 3)}
        SAVED.write_text(json.dumps(dict(sorted(saved.items())), indent=1) + "\n")
        return 0
    passed, text = verdict(build, calibration, saved)
    print(text)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
