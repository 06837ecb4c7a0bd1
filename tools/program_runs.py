"""Programs on the subjects of PyTorch's tutorials (`tests/programs`) and the examples for PyTorch, under both libraries: what they print, time and memory.

    python -m tools.program_runs [name ...] [--json docs/benchmarks/programs.json] [--markdown docs/running_programs.md]

Each program runs with each library in a process of its own, ours and PyTorch's in turns, with one thread. The program's module is imported first, so that imports
count for nothing; memory is what is resident at the end and at the peak, above what was before `main()`. Times are the processor's.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.example_runs import BEGIN, END, EXAMPLES, OURS, ROOT, THEIRS, compile_package, geometric_mean
from tools.example_runs import programs as examples

TUTORIALS = ROOT / "tests" / "programs"
NUMBER = re.compile(r"[-+]?\d*\.?\d+(?:e[-+]?\d+)?")
SMALL_MB = 16.0  # below it a ratio says more about the allocators' step than about the program
FACTOR = 1.1


@dataclass
class Measured:
    """Seconds of the processor and MB above the import of a program."""

    seconds: float
    peak: float
    end: float


def tutorials() -> dict[str, Path]:
    return {path.stem: path for path in sorted(TUTORIALS.glob("[!_]*.py"))}


def all_programs() -> dict[str, Path]:
    return tutorials() | {name: EXAMPLES / f"{name}.py" for name in examples()}


def resident_mb(field: str) -> float:
    return int(Path("/proc/self/status").read_text().split(f"{field}:")[1].split()[0]) / 1024


def load(path: Path) -> Any:
    """The program as a module, under a name by which pickled classes find it."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location("program", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["program"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def first_step() -> None:
    """PyTorch imports its compiler with the first optimizer."""
    import torch

    weight = torch.zeros(1, requires_grad=True)
    weight.sum().backward()
    torch.optim.SGD([weight]).step()


def run_here(path: Path, figures: Path | None) -> None:
    """In a process of one library: the program's `main()`, and what it took into `figures`."""
    import torch

    torch.set_num_threads(1)
    sys.argv = [path.stem, "--out", tempfile.mkdtemp()] if path.parent == EXAMPLES else [path.stem]
    if path.parent == EXAMPLES:
        import matplotlib.figure  # noqa: F401
        import sklearn.datasets  # noqa: F401
    module = load(path)
    first_step()
    gc.collect()
    before = resident_mb("VmRSS")
    if figures is not None:
        Path("/proc/self/clear_refs").write_text("5")  # the peak from here on
    start = time.process_time()
    module.main()
    seconds = time.process_time() - start
    end = resident_mb("VmRSS")
    if figures is not None:
        figures.write_text(json.dumps({"seconds": seconds, "peak": resident_mb("VmHWM") - before, "end": end - before}))


def run_forked(paths: list[Path], out: Path) -> None:
    """In a process of one library: each program in a fork of its own, what it prints in `out/<name>.txt`; quicker, and good for its output alone."""
    import torch
    import torch.profiler
    import torch.utils.benchmark
    import torch.utils.data
    import torch.utils.tensorboard  # noqa: F401

    torch.set_num_threads(1)
    first_step()
    torch.func.vmap(torch.func.grad(torch.sin))(torch.zeros(2))
    out.mkdir(parents=True)
    for path in paths:
        if (child := os.fork()) == 0:
            output = os.open(out / f"{path.stem}.txt", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            status = 1
            try:
                run_here(path, None)
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
            os._exit(status)
        if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            with open(out / f"{path.stem}.txt", "a") as text:
                text.write(f"ended with {status}\n")


def command(library: str, *arguments: str) -> list[str]:
    return [sys.executable, *(["-m", "tensorrt_lite", "run"] if library == OURS else []), "-m", "tools.program_runs", *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])), "OMP_NUM_THREADS": "1"}


def run(library: str, path: Path) -> tuple[str, Measured]:
    """What the program prints with a library, and what it takes. RuntimeError with its output where it fails."""
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        done = subprocess.run(
            command(library, "--child", str(path), "--figures", str(figures)), cwd=ROOT, env=environment(), capture_output=True, text=True
        )
        if done.returncode:
            raise RuntimeError(f"{path.stem} with {library}: {done.stdout}{done.stderr}")
        return done.stdout, Measured(**json.loads(figures.read_text()))


def distance(ours: str, theirs: str) -> tuple[float, list[tuple[str, str]]]:
    """The largest difference of printed numbers, relative where they exceed 1, and the lines whose words differ. Classes of either library count as the same."""
    largest, others = 0.0, []
    a, b = ours.splitlines(), theirs.splitlines()
    for mine, its in zip(a + [""] * (len(b) - len(a)), b + [""] * (len(a) - len(b))):
        if NUMBER.sub("#", mine) != NUMBER.sub("#", its):
            others.append((mine, its))
            continue
        for x, y in zip(NUMBER.findall(mine), NUMBER.findall(its)):
            largest = max(largest, abs(float(x) - float(y)) / max(1.0, abs(float(y))))
    return largest, others


def within(ours: float, theirs: float) -> bool:
    return ours <= max(FACTOR * theirs, theirs + SMALL_MB)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(all_programs())}; all when left out")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each; the least of each figure counts")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    parser.add_argument("--markdown", type=Path, help="a file whose figures are replaced")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--figures", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--forked", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        run_here(options.child, options.figures)
        return 0
    if unknown := set(options.names) - set(all_programs()):
        parser.error(f"unknown program {', '.join(sorted(unknown))}; there are {', '.join(all_programs())}")
    chosen = {name: path for name, path in all_programs().items() if not options.names or name in options.names}
    if options.forked:
        run_forked(list(chosen.values()), options.forked)
        return 0
    compile_package()
    rows: dict[str, Any] = {}
    lines = [
        "| program | CPU time, s | PyTorch's | ratio | peak, MB | PyTorch's | end, MB | PyTorch's | numbers differ by |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, path in chosen.items():
        taken: dict[str, list[Measured]] = {OURS: [], THEIRS: []}
        printed = {}
        for _ in range(options.rounds):
            for library in (OURS, THEIRS):
                printed[library], measured = run(library, path)
                taken[library].append(measured)
        a, b = (Measured(*(min(getattr(m, f) for m in taken[library]) for f in ("seconds", "peak", "end"))) for library in (OURS, THEIRS))
        apart = distance(printed[OURS], printed[THEIRS]) if path.parent == TUTORIALS else None
        passed = within(a.peak, b.peak) and within(a.end, b.end)
        rows[name] = {OURS: vars(a), THEIRS: vars(b), "numbers": apart and apart[0], "other_lines": apart and len(apart[1]), "memory_passed": passed}
        cells = [
            f"`{name}`",
            f"{a.seconds:.2f}",
            f"{b.seconds:.2f}",
            f"{a.seconds / b.seconds:.2f}",
            f"{a.peak:.1f}",
            f"{b.peak:.1f}",
            f"{a.end:.1f}",
            f"{b.end:.1f}",
        ]
        cells.append("docs/examples.md" if apart is None else f"{apart[0]:.0e}" + (f", {len(apart[1])} lines" if apart[1] else ""))
        lines.append(f"| {' | '.join(cells)} |")
        print(lines[-1] + ("" if passed else " over"), flush=True)
    times = [row[OURS]["seconds"] / row[THEIRS]["seconds"] for row in rows.values()]
    good = sum(row["memory_passed"] for row in rows.values())
    ended = f"{len(rows)} programs: geometric mean of the time {geometric_mean(times):.2f}, most {max(times):.2f}; {good} within {FACTOR} of PyTorch's memory or {SMALL_MB:.0f} MB at peak and end"
    print(ended)
    if options.json:
        options.json.write_text(json.dumps({"python": platform.python_version(), "machine": platform.machine(), "rows": rows}, indent=1) + "\n")
    if options.markdown:
        before, rest = options.markdown.read_text().split(BEGIN)
        options.markdown.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n\n{ended}.\n\n{END}{rest.split(END)[1]}")
    return int(good < len(rows))


if __name__ == "__main__":
    sys.exit(main())
