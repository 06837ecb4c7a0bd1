"""Operator families on the emulated device, beside the CPU's results: each file of checks in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
FAMILIES = sorted(path.stem.removesuffix("_checks") for path in HERE.glob("*_checks.py") if "device_checks import" in path.read_text())


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str, cache: Path) -> None:
    """Every check of the family's file."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUEMU_")}
    environment |= {"TENSORRT_LITE_CUDA": "emulate", "TENSORRT_LITE_CUDA_CACHE": str(cache), "PYTHONPATH": str(HERE.parents[1])}
    command = [sys.executable, str(HERE / "device_checks.py"), str(HERE / f"{family}_checks.py")]
    result = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
