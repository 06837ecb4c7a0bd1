"""A test that hangs ends its process and says where, even where it holds the GIL."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

HANGING = """
import ctypes
import time

def test_before():
    pass

def test_that_hangs():
    ctypes.PyDLL(None).sleep(100)  # with the GIL

def test_after():
    pass
"""


def test_the_suite_has_a_watchdog(pytestconfig):
    assert 0 < float(pytestconfig.getini("faulthandler_timeout")) <= 1200 and pytestconfig.getini("faulthandler_exit_on_timeout")


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "workers"])
def test_a_test_that_hangs_ends_and_says_where(tmp_path, workers):
    (tmp_path / "test_it.py").write_text(HANGING)
    options = ("-o", "faulthandler_timeout=1", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", "-c", str(ROOT / "pyproject.toml"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", *options, *workers, "test_it.py"], cwd=tmp_path, capture_output=True, text=True, timeout=90, env=environment)
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "Timeout (0:00:01)!" in said and "in test_that_hangs" in said
    if workers:
        assert "2 passed" in said and "crashed while running" in said
