"""What has to be seen on a machine with a GPU, in the order in which one failure would explain the next ones: the driver, one kernel, the tensor
cores' instructions, the checks of every operator family, the device's tests, operators beside the CPU, compute-sanitizer, the benchmark beside PyTorch.

    python -m tools.gpu_check [--wheels FOLDER] [--kernels FOLDER] [--units FILE] [--out FOLDER] [--sanitizer [TOOLS]] [--no-tests] [--no-bench]
                             [--jobs 8] [--minutes 25]
    python -m tools.gpu_check --emulator --no-bench       # a rehearsal

--wheels installs tensorrt_lite and what it needs (numpy, scipy-openblas32, pytest, NVRTC and its headers, unless the machine has them) from a
folder without a network, beside the machine's own packages (PyTorch, CUDA); without it, this checkout's build is used, made where there is none.
--kernels is a cache that tools/compile_kernels.py --fill has made for this card (docs/gpu.md says how both are carried), --units what its --list
has printed: units that all jobs compile there first, since a process of checks compiles them one after the other. --sanitizer repeats the
families under compute-sanitizer's memcheck, racecheck and synccheck, or those named. The report is OUT/gpu_report.md; OUT/bench_cuda.json has the figures. Exit status 1
when something fails or nothing could be run.
"""

from __future__ import annotations

import argparse
import concurrent.futures
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


def run(command: list[str], environment: dict[str, str], seconds: float, folder: Path) -> tuple[int, str]:
    """(exit status, the end of what it printed); 124 after `seconds`."""
    try:
        done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=max(seconds, 1))
        return done.returncode, done.stdout[-8000:]
    except subprocess.TimeoutExpired as expired:
        printed = expired.stdout or b""
        return 124, (printed.decode(errors="replace") if isinstance(printed, bytes) else printed)[-8000:] + f"\nstopped after {seconds:.0f} s"


def install(wheels: Path, out: Path) -> Path:
    """A folder with the carried wheels' contents, for PYTHONPATH: what the machine has besides them (PyTorch, CUDA) stays in sight, whether its Python
    is a virtual environment or not."""
    place = out / "site"
    found = sorted(str(p) for p in wheels.glob("*.whl"))
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--upgrade", "--target", str(place), *found], check=True)
    return place


FACTS = """
import json, sys, tensorrt_lite as trt
c = trt.cuda
facts = {"python": sys.version.split()[0], "tensorrt_lite": trt.__version__, "available": c.is_available()}
if c.is_available():
    from tensorrt_lite.cuda import _driver as driver
    from tensorrt_lite.cuda import _compiler, _libraries
    p = c.get_device_properties(0)
    facts.update(card=p.name, capability=f"{p.major}.{p.minor}", memory_gib=round(p.total_memory / 2**30, 1), driver=driver.driver_version())
    try:
        facts.update(compiler=_compiler._device_compiler().label, cublaslt=_libraries.cublaslt())
    except RuntimeError as error:
        facts.update(compiler=str(error))
try:
    import torch
    facts["torch"] = torch.__version__
except ImportError:
    facts["torch"] = None
print(json.dumps(facts))
"""
ONE_KERNEL = """
import time, tensorrt_lite as trt
start = time.perf_counter()
x = trt.arange(1000.0, device="cuda") + 1
assert x.sum().item() == 500500, x
print(f"arange, add and sum: right after {time.perf_counter() - start:.1f} s")
"""


class Run:
    """One run's interpreter, tests, environment and limit, and whether anything has failed."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.end, self.jobs = time.monotonic() + 60 * given.minutes, given.jobs
        given.out = given.out.resolve()
        given.out.mkdir(parents=True, exist_ok=True)
        self.report = Report(given.out / "gpu_report.md")
        self.failed = False
        self.python = sys.executable
        self.environment = {k: v for k, v in os.environ.items() if k not in ("TENSORRT_LITE_CUDA", "TENSORRT_LITE_LIBCUDA")}
        self.environment["TENSORRT_LITE_CUDA_CACHE"] = str(given.out / "kernels")
        if given.emulator:
            self.environment |= {"TENSORRT_LITE_CUDA": "emulate", "TENSORRT_LITE_CUDA_CACHE": os.environ.get("TENSORRT_LITE_CUDA_CACHE", str(given.out / "kernels"))}
        if given.kernels:
            shutil.copytree(given.kernels, given.out / "kernels", dirs_exist_ok=True)
        if given.wheels:
            site, self.root = install(given.wheels, given.out), given.out / "checkout"
            # the tests of the checkout, the package of the wheel
            for part in ("tests", "tools", "examples"):
                shutil.copytree(ROOT / part, self.root / part, dirs_exist_ok=True)
            shutil.copy(ROOT / "pyproject.toml", self.root)
            self.environment["PYTHONPATH"] = f"{self.root}{os.pathsep}{site}"
        else:
            self.root = ROOT
            self.environment["PYTHONPATH"] = str(ROOT)
            if not list((ROOT / "tensorrt_lite" / "_C" / "cuda").glob("backend*.so")):
                subprocess.run([self.python, "-m", "tools.build_core"], cwd=ROOT, check=True)
        self.checks = self.root / "tests" / "cuda"

    def command(self, *arguments: str) -> tuple[int, str]:
        """(exit status, what was printed) of the run's Python, in what is left of the time."""
        return run([self.python, *arguments], self.environment, self.end - time.monotonic(), self.root)

    def step(self, title: str, *arguments: str, counts: bool = True) -> bool:
        """Run one thing and report it; whether it passed."""
        status, text = self.command(*arguments)
        self.failed |= counts and status != 0
        self.report.add(title, f"exit status {status}\n\n```\n{text}\n```")
        return status == 0

    def several(self, title: str, commands: dict[str, list[str]], before: tuple[str, ...] = ()) -> None:
        """Named commands side by side: compilers fill the processor's cores while kernels take turns. What passes is a line."""
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            left = {name: pool.submit(run, [*before, self.python, *c], self.environment, self.end - time.monotonic(), self.root) for name, c in commands.items()}
            found = {name: future.result() for name, future in left.items()}
        failures = {name: text for name, (status, text) in found.items() if status}
        self.failed |= bool(failures)
        details = "".join(f"\n\n### {name}: exit status {found[name][0]}\n\n```\n{text}\n```" for name, text in failures.items())
        self.report.add(title, f"{len(found) - len(failures)} of {len(found)} pass: {', '.join(name for name in found if name not in failures)}{details}")

    def families(self) -> dict[str, list[str]]:
        """The command of each family's checks."""
        files = sorted(path for path in self.checks.glob("*_checks.py") if "device_checks import" in path.read_text())
        return {file.stem.removesuffix("_checks"): [str(self.checks / "device_checks.py"), str(file)] for file in files}

    def sanitized_families(self) -> dict[str, list[str]]:
        """Those that use the card (compute-sanitizer fails without a call of the driver's) and make no call that the driver refuses on purpose."""
        left_out = {name for name in self.families() if "EMULATOR_ONLY = True" in (self.checks / f"{name}_checks.py").read_text()} | {"library"}
        return {name: command for name, command in self.families().items() if name not in left_out}


def driver_says() -> str:
    """nvidia-smi's table, or why there is none."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return "nvidia-smi is not installed"
    return subprocess.run([tool], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--wheels", type=Path)
    p.add_argument("--kernels", type=Path)
    p.add_argument("--units", type=Path)
    p.add_argument("--out", type=Path, default=ROOT / "out" / "gpu")
    p.add_argument("--emulator", action="store_true", help="a rehearsal on the emulator")
    p.add_argument("--sanitizer", nargs="?", const="memcheck,racecheck,synccheck", metavar="TOOLS", help="tools of compute-sanitizer, all three without a value")
    p.add_argument("--no-tests", action="store_true")
    p.add_argument("--no-bench", action="store_true")
    p.add_argument("--jobs", type=int, default=8, help="families at a time")
    p.add_argument("--minutes", type=float, default=25.0, help="the whole run's limit")
    return p


def main(arguments: list[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    r = Run(given)

    r.report.add("Driver", f"```\n{driver_says()}\n```")
    status, text = r.command("-c", FACTS)
    r.report.add("Machine", text)
    if status or not json.loads(text.strip().splitlines()[-1])["available"]:
        r.report.add("Result", "No CUDA device could be used: nothing was run.")
        return 1
    if not r.step("One kernel", "-c", ONE_KERNEL):
        r.report.add("Result", "Not even one operator ran: nothing else was tried.")
        return 1
    if given.units:
        capability = json.loads(text.strip().splitlines()[-1])["capability"].replace(".", "")
        fill = ["--arch", f"sm_{capability}", "--fill", r.environment["TENSORRT_LITE_CUDA_CACHE"], "--jobs", str(r.jobs)]
        r.step("Kernels", "-m", "tools.compile_kernels", "--units", str(given.units.resolve()), *fill)
    if not given.no_tests:
        mma = str(r.checks / "mma_checks.py")
        r.several("Tensor cores", {check: [mma, check, "compile"] for check in ("products", "loads", "async_copies", "half_arithmetic")})
        r.several("Families", r.families())
        r.step("Tests", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", str(r.jobs), "--dist", "loadfile", str(r.checks / "device"))
        r.step("Operators beside the CPU", "-m", "tests.conformance.device", "--jobs", str(r.jobs))
        sanitizer = shutil.which("compute-sanitizer")
        for tool in given.sanitizer.split(",") if given.sanitizer and sanitizer else ():
            r.several(f"compute-sanitizer: {tool}", r.sanitized_families(), (str(sanitizer), "--tool", tool, "--error-exitcode", "9"))
        if given.sanitizer and not sanitizer:
            r.report.add("compute-sanitizer", "not installed")
    if not given.no_bench:
        bench = ["-m", "tensorrt_lite.bench", "cuda", "--against", "torch", "--threads", "1", "--json", str(given.out / "bench_cuda.json")]
        r.step("Benchmark", *bench, counts=False)
    r.report.add("Result", "Something failed." if r.failed else "Everything passed.")
    return int(r.failed)


if __name__ == "__main__":
    sys.exit(main())
