"""Operator families on the emulated device, beside the CPU's results: each file of checks in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tools import compile_kernels

HERE = Path(__file__).resolve().parent
FAMILIES = sorted(path.stem.removesuffix("_checks") for path in HERE.glob("*_checks.py") if "device_checks import" in path.read_text())


@pytest.fixture(scope="session")
def listed() -> set[str]:
    """The units that tools/compile_kernels.py knows."""
    return {unit.source for unit in compile_kernels.units()}


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str, cache: Path, listed: set[str], tmp_path: Path) -> None:
    """Every check of the family's file; what it launches is in the list of what compilers and caches are given."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CUEMU_")}
    used = tmp_path / "units"
    environment |= {"TENSORRT_LITE_CUDA": "emulate", "TENSORRT_LITE_CUDA_CACHE": str(cache), "PYTHONPATH": str(HERE.parents[1]), "UNITS_USED": str(used)}
    command = [sys.executable, str(HERE / "device_checks.py"), str(HERE / f"{family}_checks.py")]
    result = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stdout + result.stderr
    unlisted = {json.loads(line) for line in used.read_text().splitlines()} - listed
    assert not unlisted, "_load_all of the family does not ask for:\n" + "\n".join(unlisted)
