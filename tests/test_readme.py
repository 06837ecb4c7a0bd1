"""The program in the README runs and does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_first_look() -> None:
    [program] = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "True\n", done.stderr


def test_folders_of_the_table_exist() -> None:
    folders = re.findall(r"^\| `([^`]+)` \|", (ROOT / "README.md").read_text(), re.M)
    assert len(folders) > 5
    assert [f for f in folders if not (ROOT / f).is_dir()] == []
