"""`tools.beside_busy`: the command's status and runs, and that nothing busy is left behind."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(("program", "status", "runs"), [("pass", 0, 2), ("import sys; sys.exit(3)", 3, 1)])
def test_a_command_beside_busy_processes(program, status, runs):
    done = subprocess.run(
        [sys.executable, "-m", "tools.beside_busy", "--times", "2", "--", sys.executable, "-c", f"import time; time.sleep(0.3); {program}"],
        cwd=ROOT, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == status
    lines = done.stdout.splitlines()
    assert len(lines) == runs
    for number, line in enumerate(lines, 1):
        assert re.fullmatch(rf"run {number} of 2: status {status}, \d+ s, of which the command computed \d+ s and 2 busy processes \d+ s", line), line
