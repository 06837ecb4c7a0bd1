"""tools/scratch.py on a few operators: they take no more scratch memory than PyTorch and 1 MB, and the counter sees what a call takes."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch")

from tools import scratch

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts the heap of glibc")


def test_operators_of_each_kind(tmp_path):
    """Pointwise, reduced, sorted, gathered, transformed; whatever is over fails by name."""
    names = "add,sum,sort,median,index_add,fft.ifft"
    command = [sys.executable, "-m", "tools.scratch", "--ops", names, "--samples", "1", "--jobs", "1", "--check", "--json", str(tmp_path / "found.json")]
    result = subprocess.run(command, cwd=scratch.ROOT, env=scratch.environment() | {"PYTHONPATH": str(scratch.ROOT)}, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "6 operators measured" in result.stdout


def test_temporaries_are_counted():
    """A call that makes a vector of 4 MB and leaves none of it."""
    program = (
        "import ctypes, functools, tensorrt_lite as trt; from tools import scratch; x = trt.ones(1 << 20); counter = ctypes.CDLL(str(scratch.LIBRARY));"
        "print(scratch.peak(counter, trt.Tensor, lambda: (x + 1).sum()), scratch.peak(counter, trt.Tensor, lambda: x + 1))"
    )
    result = subprocess.run([sys.executable, "-c", program], cwd=scratch.ROOT, env=scratch.environment() | {"PYTHONPATH": str(scratch.ROOT)}, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    whole, kept = map(int, result.stdout.split())
    assert 4 << 20 <= whole < 5 << 20 and kept < 1 << 16
