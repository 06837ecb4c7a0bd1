"""The suites that published packages bring, unchanged, with both libraries: which tests that pass over PyTorch pass over tensorrt_lite.

    python -m tools.packages.suites --ours OURS/bin/python --theirs THEIRS/bin/python --sources FOLDER [--only REGEX] [--json FILE] [--markdown docs/running_programs.md]

OURS is a Python without PyTorch that finds tensorrt_lite, THEIRS one with PyTorch; both have the packages, their requirements, pytest and pytest-timeout. FOLDER keeps the
source distributions, which `pip download` fetches where they are absent. Each suite runs as `python -m tensorrt_lite run -m pytest` and as `python -m pytest` for at most
`--limit` seconds. A test counts when it passes over PyTorch and both runs reached it. `--failures` prints how the others end over tensorrt_lite.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- suites -->\n", "<!-- end of suites -->\n"


@dataclass(frozen=True)
class Suite:
    """A package's name in the index, its tests (files and folders of its source distribution) and further arguments of pytest."""

    name: str
    tests: str
    arguments: tuple[str, ...] = ()


SUITES = [
    Suite("accelerate", "tests", ("-k", "not launch and not cli and not deepspeed and not fsdp")),
    Suite("e3nn", "tests"),
    Suite("einops", "einops/tests"),
    Suite("ema-pytorch", "tests"),
    Suite("entmax", "entmax"),
    Suite("gpytorch", "test/kernels test/likelihoods test/distributions test/constraints test/priors test/means test/variational test/functions"),
    Suite("linear-operator", "test"),
    Suite("nflows", "tests"),
    Suite("normflows", "normflows"),
    Suite("opt-einsum", "opt_einsum/tests"),
    Suite("peft", "tests/test_config.py tests/test_mapping.py tests/test_initialization.py tests/test_tuners_utils.py tests/test_lora_variants.py"),
    Suite("pyro-ppl", "tests"),
    Suite(
        "pytorch-ignite",
        "tests/ignite/engine tests/ignite/handlers tests/ignite/test_utils.py tests/ignite/metrics",
        ("-m", "not distributed and not tpu"),
    ),
    Suite("pytorch-optimizer", "tests"),
    Suite("pytorch-wavelets", "tests"),
    Suite("skorch", "skorch/tests"),
    Suite("torch-optimizer", "tests"),
    Suite("torchopt", "tests"),
    Suite("torchsde", "tests"),
    Suite("transformers", "tests"),
    Suite("unfoldNd", "test"),
    Suite("zuko", "tests"),
]


def unpacked(name: str, sources: Path, python: str) -> Path:
    """The folder of a package's source distribution, fetched where it is absent."""
    found = version_of(name, python)
    stem = re.compile(rf"{re.sub('[-_.]+', '[-_.]+', name)}-{re.escape(found)}$", re.I)
    for path in sources.iterdir():
        if path.is_dir() and stem.match(path.name):
            return with_packages(path)
    command = [
        python,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-binary",
        ":all:",
        "-d",
        str(sources),
        f"{name}=={found}",
    ]
    subprocess.run(command, check=True)
    for path in sources.glob("*.tar.gz"):
        if stem.match(path.name.removesuffix(".tar.gz")):
            with tarfile.open(path) as file:
                file.extractall(sources, filter="data")
            return with_packages(sources / path.name.removesuffix(".tar.gz"))
    raise FileNotFoundError(f"{name} {found}: no source distribution in {sources}")


def with_packages(folder: Path) -> Path:
    """Some source distributions leave out the __init__.py of test folders whose modules import one another by `from . import`."""
    for path in folder.rglob("*.py"):
        if "test" in path.name and re.search(r"^\s*from \.", path.read_text(errors="replace"), re.M) and not (path.parent / "__init__.py").exists():
            (path.parent / "__init__.py").touch()
    return folder


def version_of(name: str, python: str) -> str:
    if python == sys.executable:
        return version(name)
    code = "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))"
    return subprocess.run([python, "-c", code, name], check=True, capture_output=True, text=True).stdout.strip()


def run(command: list[str], suite: Suite, folder: Path, limit: float) -> dict[str, tuple[str, str]]:
    """Each test's outcome and message; the run is interrupted after `limit` seconds and gives what it reached."""
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "out.xml"
        options = ["-q", "-o", "addopts=", "-p", "no:cacheprovider", "--timeout", "60", "--continue-on-collection-errors", "--tb=short"]
        process = subprocess.Popen(
            [*command, "-m", "pytest", *options, *suite.arguments, f"--junitxml={out}", *suite.tests.split()],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored in what a shell starts in the background
        )
        try:
            process.wait(limit)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGINT)
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
        if not out.exists():
            return {}
        return {f"{case.get('classname')}::{case.get('name')}": outcome(case) for case in ET.parse(out).iter("testcase")}


def outcome(case: ET.Element) -> tuple[str, str]:
    for kind in ("error", "failure", "skipped"):
        part = case.find(kind)
        if part is not None:
            return kind, f"{part.get('message')}\n{part.text}"
    return "passed", ""


def cause(message: str) -> str:
    """The line of a failure's text that names the error."""
    lines = [line[1:].strip() for line in message.splitlines() if line.startswith("E ")]
    return (lines[0] if lines else message.strip().splitlines()[0] if message.strip() else "")[:160]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ours", default=sys.executable, help="a Python without PyTorch")
    parser.add_argument("--theirs", default=sys.executable, help="a Python with PyTorch")
    parser.add_argument("--sources", type=Path, required=True, help="a folder for the source distributions")
    parser.add_argument("--only", default="", help="packages whose name matches")
    parser.add_argument("--limit", type=float, default=300, help="seconds for each suite and library")
    parser.add_argument("--tests", help="files of the suites, in place of all")
    parser.add_argument("--failures", action="store_true", help="print each test that fails over tensorrt_lite alone, and how")
    parser.add_argument("--reference", type=Path, help="a file that keeps PyTorch's outcomes, read where it has them")
    parser.add_argument("--reference-only", action="store_true", help="run PyTorch alone, for --reference")
    parser.add_argument("--json", type=Path, help="docs/benchmarks/packages.json: gets the rows under `suites`")
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args(argv)
    options.sources.mkdir(parents=True, exist_ok=True)
    rows: dict[str, Any] = {}
    kept = json.loads(options.reference.read_text()) if options.reference and options.reference.exists() else {}
    for suite in SUITES:
        if not re.search(options.only, suite.name):
            continue
        folder = unpacked(suite.name, options.sources, options.theirs)
        suite = Suite(suite.name, options.tests or suite.tests, suite.arguments)
        key = f"{folder.name} {suite.tests} {options.limit}"
        theirs = kept.get(key) or run([options.theirs], suite, folder, options.limit)
        kept[key] = theirs
        if options.reference:
            print(f"{suite.name}: PyTorch passes {sum(kind == 'passed' for kind, _ in theirs.values())} of {len(theirs)}", flush=True)
            options.reference.write_text(json.dumps(kept))
        if options.reference_only:
            continue
        ours = run([options.ours, "-m", "tensorrt_lite", "run"], suite, folder, options.limit)
        rows[suite.name] = row = compare(ours, theirs)
        row["version"] = version_of(suite.name, options.theirs)
        print(f"{suite.name} {row['version']}: {row['passed']} of {row['run']}; collected {len(ours)} / PyTorch {len(theirs)}", flush=True)
        for name, count in sorted(row["causes"].items(), key=lambda item: -item[1]):
            print(f"    {count:5d}  {name}")
        if options.failures:
            for name, (kind, _) in theirs.items():
                if kind == "passed" and name in ours and ours[name][0] != "passed":
                    print(f"--- {name}\n{ours[name][1][-2500:]}")
            for name, (kind, message) in ours.items():
                if kind == "error" and name not in theirs:
                    print(f"--- collecting {name}\n{message[-2500:]}")
    if options.json:
        saved = json.loads(options.json.read_text())
        suites = saved.setdefault("suites", {})
        for name, row in rows.items():
            suites[name] = {**row, "reason": suites.get(name, {}).get("reason", "")}  # reasons are written by hand
        options.json.write_text(json.dumps(saved, indent=1) + "\n")
        rows = saved["suites"]
    if options.markdown:
        before, rest = options.markdown.read_text().split(BEGIN)
        options.markdown.write_text(f"{before}{BEGIN}\n{table(rows)}\n\n{END}{rest.split(END)[1]}")
    return 0


def compare(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, Any]:
    """Tests that pass over PyTorch: how many were run here, how many passed, and what the others say. A file that fails to be collected here loses all of its tests."""
    broken = [name for name, (kind, _) in ours.items() if kind == "error" and name not in theirs]
    modules = [name.replace("::", ".").strip(".") for name in broken]
    passed, total, causes = 0, 0, {}
    for name, (kind, _) in theirs.items():
        lost = next((i for i, module in enumerate(modules) if name.startswith(f"{module}::") or name.startswith(f"{module}.")), None)
        if kind != "passed" or (name not in ours and lost is None):
            continue
        total += 1
        if name in ours and ours[name][0] == "passed":
            passed += 1
            continue
        message = ours[name][1] if name in ours else ours[broken[lost]][1]  # type: ignore[index]
        causes[cause(message)] = causes.get(cause(message), 0) + 1
    return {"passed": passed, "run": total, "causes": causes}


def table(rows: dict[str, Any]) -> str:
    lines = ["| package | passed of run | the others |", "|---|--:|---|"]
    for name in sorted(rows):
        row = rows[name]
        lines.append(f"| {name} {row['version']} | {row['passed']:,} of {row['run']:,} | {row.get('reason', '')} |")
    passed, total = (sum(row[key] for row in rows.values()) for key in ("passed", "run"))
    return "\n".join([*lines, f"| {len(rows)} packages | {passed:,} of {total:,} | |"])


if __name__ == "__main__":
    sys.exit(main())
