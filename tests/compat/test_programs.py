"""The programs of `tests/programs`, on the subjects of PyTorch's tutorials, print the same with both libraries.

`python -m tools.program_runs` runs each in processes of its own and measures time and memory.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tools.program_runs import OURS, ROOT, THEIRS, command, distance, environment, tutorials

torch = pytest.importorskip("torch")
pytest.importorskip("tensorboard")

# How far printed numbers may part, relative where they exceed 1: 1e-4 where nothing is said. Rounding decides a maximum or a step of Adam differently in these.
TOLERANCE = {"spatial_transformer": 2e-3, "reinforce_actor_critic": 1e-3}
# PyTorch with MKL, on some of Intel's processors, takes dropout's masks from a stream of MKL's own.
DROPOUT = {"seq2seq_attention", "spatial_transformer", "fgsm", "checkpoint_resume"}


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what each program prints, one process for each library."""
    out = tmp_path_factory.mktemp("programs")
    started = [
        subprocess.Popen(
            command(library, "--forked", str(out / library), *tutorials()), cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True
        )
        for library in (OURS, THEIRS)
    ]
    for process in started:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    return out


def takes_dropout_from_mkl() -> bool:
    generator = torch.Generator().manual_seed(1)
    torch.empty(10).bernoulli_(0.5, generator=generator)
    return int.from_bytes(bytes(generator.get_state()[16:24].tolist()), "little") == 1


@pytest.mark.parametrize("name", tutorials())
def test_a_program_prints_what_it_prints_under_pytorch(printed: Path, name: str):
    if name in DROPOUT and takes_dropout_from_mkl():
        pytest.skip("PyTorch takes bernoulli_ from MKL on this processor")
    ours, theirs = ((printed / library / f"{name}.txt").read_text() for library in (OURS, THEIRS))
    assert "Traceback" not in theirs and "ended with" not in theirs and len(theirs.splitlines()) > 3, theirs
    assert "Traceback" not in ours and "ended with" not in ours, ours
    largest, others = distance(ours, theirs)
    assert others == []
    assert largest <= TOLERANCE.get(name, 1e-4)


def test_programs_name_nothing_but_pytorch_and_are_listed():
    listed = (ROOT / "docs" / "running_programs.md").read_text()
    for name, path in tutorials().items():
        text = path.read_text()
        assert not re.search(r"tensorrt|\btrt\b", text), name
        assert "def main():" in text and f"`{name}`" in listed, name
