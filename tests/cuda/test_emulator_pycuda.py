"""PyCUDA, where it is installed, on the emulator."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from tools.cuda_emulator import compiler

if TYPE_CHECKING:
    from conftest import EmulatorProcess


@pytest.mark.skipif(importlib.util.find_spec("pycuda") is None, reason="PyCUDA is not installed")
@pytest.mark.parametrize("streams", ["eager", "late"])
def test_pycuda(emulator: EmulatorProcess, cache: Path, streams: str) -> None:
    """PyCUDA links against libcuda.so.1, so the emulator's folder is where the loader finds it."""
    module = compiler.compile_module(HERE / "kernels.cu", cache)
    library = Path(emulator.environment["TENSORRT_LITE_LIBCUDA"])
    environment = {**emulator.environment, "LD_LIBRARY_PATH": str(library.parent.resolve()), "CUEMU_STREAMS": streams}
    environment["PYTHONPATH"] = ":".join(filter(None, sys.path))
    command = [sys.executable, str(HERE / "pycuda_checks.py"), str(module)]
    result = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr
