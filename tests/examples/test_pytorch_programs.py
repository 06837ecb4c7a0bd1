"""The examples that are written for PyTorch run unchanged with both libraries and come to the same losses, with less memory here.

`python -m tools.example_runs` runs them at their full length and prints the ratios of time.
"""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.example_runs import EXAMPLES, OURS, ROOT, THEIRS, Run, largest_distance, programs, read_run, run_both

torch = pytest.importorskip("torch")
for needed in ("sklearn", "matplotlib", "tqdm"):
    pytest.importorskip(needed)

# Steps, and how far the losses may part (tools.example_runs.largest_distance). Rounding decides a ReLU, a maximum or a clipped gradient differently now and
# then (docs/decisions/seed_parity.md), from where on float32 losses part faster: such programs have few steps here. LBFGS runs in double precision.
STEPS = {
    "char_lstm": (6, 1e-5),
    "diffusion": (8, 1e-5),
    "gan": (4, 2e-3),
    "graph_network": (20, 1e-5),
    "image_classifier": (10, 1e-4),
    "lora": (10, 1e-5),
    "policy_gradient": (3, 1e-4),
    "resnet": (4, 1e-3),
    "siamese": (6, 1e-3),
    "super_resolution": (6, 1e-4),
    "time_series": (2, 1e-9),
    "vae": (30, 1e-5),
    "vision_transformer": (8, 1e-5),
    "word_transformer": (4, 1e-5),
}
DROPOUT = {"graph_network", "image_classifier"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the short runs of all programs, two processes for all; workers of a parallel run share it."""
    folder = tmp_path_factory.getbasetemp().parent if "PYTEST_XDIST_WORKER" in os.environ else tmp_path_factory.mktemp("programs")
    out = folder / "runs"
    with open(folder / "runs.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not out.exists():
            run_both(list(STEPS), {name: steps for name, (steps, _) in STEPS.items()}, out)
    return out


def both(runs: Path, name: str) -> tuple[Run, Run]:
    return read_run(runs / OURS / name), read_run(runs / THEIRS / name)


def pytorch_takes_dropout_from_mkl() -> bool:
    """PyTorch with MKL, on some of Intel's processors, takes dropout's masks from a stream of MKL's own."""
    generator = torch.Generator().manual_seed(1)
    torch.empty(10).bernoulli_(0.5, generator=generator)
    return int.from_bytes(bytes(generator.get_state()[16:24].tolist()), "little") == 1


def test_every_program_for_pytorch_is_tested_and_listed():
    assert programs() == sorted(STEPS)
    listed = (ROOT / "docs" / "examples.md").read_text()
    assert [name for name in STEPS if f"`examples/{name}.py`" not in listed] == []


@pytest.mark.parametrize("name", STEPS)
def test_losses_and_score_are_pytorchs(runs: Path, name: str):
    if name in DROPOUT and pytorch_takes_dropout_from_mkl():
        pytest.skip("PyTorch takes bernoulli_ from MKL on this processor")
    ours, theirs = both(runs, name)
    steps, tolerance = STEPS[name]
    assert len(ours.losses) == steps and len(set(ours.losses)) == steps  # it trains
    assert largest_distance(ours.losses, theirs.losses) <= tolerance
    assert ours.score == theirs.score
    assert ours.value == pytest.approx(theirs.value, rel=10 * tolerance, abs=0.02)
    assert ours.pictures == theirs.pictures == 1


@pytest.mark.parametrize("name", STEPS)
def test_memory_is_at_most_pytorchs(runs: Path, name: str):
    ours, theirs = both(runs, name)
    assert ours.memory <= theirs.memory


@pytest.mark.parametrize("name", STEPS)
def test_programs_name_nothing_but_pytorch(name: str):
    """They are models for readers who know PyTorch: no name of this package, and at most 160 lines."""
    text = (EXAMPLES / f"{name}.py").read_text()
    assert not re.search(r"tensorrt|\btrt\b", text)
    assert len(text.splitlines()) <= 160


def test_a_program_by_the_command_line(tmp_path: Path):
    """As a user types it, from another folder: the default output, and lines without a bar where there is no terminal."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "tensorrt_lite", "run", str(EXAMPLES / "graph_network.py"), "--steps", "20", "--seed", "1"]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "step    20 of 20: loss" in done.stdout and "\r" not in done.stdout + done.stderr
    assert re.fullmatch(r"accuracy on the other nodes: 0\.\d+", done.stdout.splitlines()[-1])
    assert (tmp_path / "out" / "graph_network" / "graph_network.png").read_bytes().startswith(b"\x89PNG")
