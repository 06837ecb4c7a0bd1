"""cuda_src/mma.cuh: tensor-core products, ldmatrix and cp.async on the emulator, the same text accepted by nvcc."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

from tools.cuda_emulator import compiler

if TYPE_CHECKING:
    from conftest import EmulatorProcess


@pytest.mark.parametrize("check", ["products", "loads", "async_copies", "half_arithmetic"])
def test_warp_instructions(emulator: EmulatorProcess, cache: Path, check: str) -> None:
    """Against NumPy, in every thread order."""
    module = compiler.compile_module(HERE / "mma_kernels.cu", cache, include=[ROOT / "cuda_src"])
    command = [sys.executable, str(HERE / "mma_checks.py"), check, str(module)]
    environment = emulator.environment
    result = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90"])
def test_nvcc_compiles_the_header(tmp_path: Path, architecture: str) -> None:
    """The kernels from 8.0 on; before that, the header alone."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    source = HERE / "mma_kernels.cu"
    if architecture == "sm_75":
        source = tmp_path / "header.cu"
        source.write_text('#include "mma.cuh"\n__global__ void empty() { trt::copy_async_wait<0>(); }\n')
    command = [nvcc, "-std=c++17", f"-arch={architecture}", "-cubin", f"-I{ROOT / 'cuda_src'}"]
    command += ["-o", str(tmp_path / "out.cubin"), str(source)]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
