"""The programs of `examples` that are written for PyTorch, under PyTorch and under `tensorrt-lite run`: losses, time and memory.

    python -m tools.example_runs [name ...] [--steps N] [--markdown docs/examples.md]

One process per library imports what the programs import and forks for each of them, so that imports are paid for once and count for neither; both run at
a time with one thread each unless `--in-turns` is given. Times are the processor's, which other processes hardly change; memory is the peak of the steps above what was
resident before them.
"""

from __future__ import annotations

import argparse
import compileall
import json
import math
import os
import re
import runpy
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
OURS, THEIRS = "tensorrt_lite", "torch"
BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
SUMMARY = re.compile(r"^(\d+) steps in (\S+) s \((\S+) s of CPU\), at most (\S+) MB more than before$", re.M)


@dataclass
class Run:
    """What a program came to with a library."""

    losses: list[float]
    seconds: float
    memory: float
    score: str
    value: float
    pictures: int


def compile_package() -> None:
    """Bytecode of the package, as an installation writes it: PyTorch's is there, and with PYTHONDONTWRITEBYTECODE each process would compile a checkout's sources anew."""
    compileall.compile_dir(str(ROOT / "tensorrt_lite"), quiet=1)


def programs() -> list[str]:
    """The names of the programs that import torch."""
    return sorted(path.stem for path in EXAMPLES.glob("[!_]*.py") if re.search(r"^import torch$", path.read_text(), re.M))


def run_all(names: list[str], steps: dict[str, int], out: Path) -> None:
    """In a process of one library: each program in a fork of its own, its output in `out/<name>/output.txt`."""
    import matplotlib.figure  # noqa: F401
    import sklearn.datasets  # noqa: F401
    import torch.nn.functional
    import torch.utils.data
    import tqdm  # noqa: F401

    torch.set_num_threads(1)
    weight = torch.zeros(1, requires_grad=True)  # PyTorch imports its compiler with the first optimizer
    weight.sum().backward()
    torch.optim.SGD([weight]).step()
    sys.path.insert(0, str(EXAMPLES))
    import _common  # noqa: F401

    for name in names:
        folder = out / name
        folder.mkdir(parents=True)
        if (child := os.fork()) == 0:
            output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.argv = [name, "--out", str(folder), *(["--steps", str(steps[name])] if name in steps else [])]
            status = 1
            try:
                runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
                status = 0
            except BaseException:
                import traceback

                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        (folder / "status").write_text(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


def read_run(folder: Path) -> Run:
    """RuntimeError with the program's output where it failed."""
    output = (folder / "output.txt").read_text() if (folder / "output.txt").exists() else "it has not run"
    status, summary = folder / "status", SUMMARY.search(output)
    if not status.exists() or status.read_text() != "0" or summary is None:
        raise RuntimeError(f"{folder.name}: {output}")
    score, _, value = output.splitlines()[-1].rpartition(": ")
    losses = [float(line) for line in (folder / "losses.txt").read_text().split()]
    pictures = sum(path.read_bytes().startswith(b"\x89PNG") for path in folder.glob("*.png"))
    return Run(losses, float(summary[3]), float(summary[4]), score, float(value), pictures)


def start(library: str, names: list[str], steps: dict[str, int], out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, *(["-m", "tensorrt_lite", "run"] if library == OURS else []), "-m", "tools.example_runs"]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    task = json.dumps({"names": names, "steps": steps, "out": str(out)})
    return subprocess.Popen([*command, "--task", task], cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def run_both(names: list[str], steps: dict[str, int], out: Path, in_turns: bool = False) -> None:
    """Runs the programs with both libraries into `out/<library>/<name>`, which `read_run` reads. RuntimeError where a library's process fails."""
    compile_package()
    started: list[subprocess.Popen[str]] = []
    try:
        for library in (OURS, THEIRS):
            started.append(start(library, names, steps, out / library))
            if in_turns:
                started[-1].wait()
        for process in started:
            said, _ = process.communicate()
            if process.returncode:
                raise RuntimeError(said)
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()


def largest_distance(ours: list[float], theirs: list[float]) -> float:
    """The largest difference of losses, relative to the larger of PyTorch's loss and the mean of its magnitudes (a loss may pass zero)."""
    if len(ours) != len(theirs):
        return math.inf
    scale = sum(map(abs, theirs)) / len(theirs)
    return max(abs(a - b) / max(abs(b), scale) for a, b in zip(ours, theirs))


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def table(names: list[str], out: Path) -> str:
    """A Markdown table of the runs below `out`."""
    rows = [
        "| program | steps | CPU time, s | PyTorch's | ratio | memory, MB | PyTorch's | ratio | losses differ by | score | here | PyTorch's |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|--:|--:|",
    ]
    times, memories = [], []
    for name in names:
        a, b = (read_run(out / library / name) for library in (OURS, THEIRS))
        times.append(a.seconds / max(b.seconds, 0.01))
        memories.append(max(a.memory, 0.1) / max(b.memory, 0.1))
        cells = [f"`{name}`", len(a.losses), f"{a.seconds:.2f}", f"{b.seconds:.2f}", f"{times[-1]:.2f}", f"{a.memory:.1f}", f"{b.memory:.1f}", f"{memories[-1]:.2f}"]
        cells += [f"{largest_distance(a.losses, b.losses):.1e}", a.score, f"{a.value:.4g}", f"{b.value:.4g}"]
        rows.append(f"| {' | '.join(map(str, cells))} |")
    rows.append(f"| geometric mean | | | | {geometric_mean(times):.2f} | | | {geometric_mean(memories):.2f} | | | | |")
    return "\n".join(rows) + "\n"


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="name", help=f"{', '.join(programs())}; all when left out")
    parser.add_argument("--steps", type=int, help="of every program; each has its own number when left out")
    parser.add_argument("--in-turns", action="store_true", help="one library after the other")
    parser.add_argument("--markdown", type=Path, help="a file whose figures are replaced")
    parser.add_argument("--task", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.task:
        task = json.loads(options.task)
        run_all(task["names"], task["steps"], Path(task["out"]))
        return
    if unknown := set(options.names) - set(programs()):
        parser.error(f"unknown program {', '.join(sorted(unknown))}; there are {', '.join(programs())}")
    names = options.names or programs()
    steps = dict.fromkeys(names, options.steps) if options.steps else {}
    with tempfile.TemporaryDirectory() as folder:
        run_both(names, steps, Path(folder), options.in_turns)
        figures = table(names, Path(folder))
    print(figures)
    if options.markdown:
        import tensorrt_lite

        import torch

        said = " ".join(["python -m tools.example_runs", *(argv if argv is not None else sys.argv[1:])])
        note = f"*{date.today()}, tensorrt_lite {tensorrt_lite.__version__}, torch {torch.__version__}, one thread each.* `{said}`\n"
        before, rest = options.markdown.read_text().split(BEGIN)
        options.markdown.write_text(f"{before}{BEGIN}\n{note}\n{figures}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
