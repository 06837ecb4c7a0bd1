"""The programs in the README run and do what they say, and its figures are those of the saved runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


README = (ROOT / "README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", README, re.S)


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_programs_print_what_their_comments_say(program: str, tmp_path: Path) -> None:
    expected = re.findall(r"^print\(.*\)  # (.*?)(?:, as in PyTorch)?$", program, re.M)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert expected and done.stdout.splitlines() == expected, done.stderr


def test_the_figures_are_those_of_the_saved_runs() -> None:
    """Ratios of the first table, from docs/benchmarks, to two digits."""

    def ratio(run: str, name: str) -> str:
        rows = json.loads((ROOT / "docs" / "benchmarks" / f"{run}.json").read_text())["rows"]
        [row] = [r for r in rows if name in r.values()]
        return f"{row['ratios']['torch']['median']:.2f}"

    def memory(library: str) -> str:
        rows = json.loads((ROOT / "docs" / "benchmarks" / "startup.json").read_text())["rows"]
        [row] = [r for r in rows if r["name"] == "memory after import"]
        return f"{row['figures'][library]['median'] / 1e6:.0f}"

    small, recorded, step = (ratio("overhead", name) for name in ("add, 4 elements", "add, recorded node", "MLP training step, batch 4"))
    assert f"| import | {ratio('startup', 'import')} of the time; {memory('tensorrt_lite')} MB of memory instead of {memory('torch')} MB |" in README
    assert f"recorded for a backward pass) | {small} of the time ({recorded}) |" in README
    cnn, gpt = ratio("train", "digits CNN, batch 64"), ratio("train", "char GPT 6 layers, width 384, batch 16x256")
    assert f"| {step}; {cnn} and {gpt} of the time |" in README


def test_folders_of_the_table_exist() -> None:
    folders = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "development.md").read_text(), re.M)
    assert len(folders) > 5
    assert [f for f in folders if not (ROOT / f).is_dir()] == []
