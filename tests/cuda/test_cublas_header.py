"""What cysrc/cuda/cublaslt.h says of cuBLASLt's interface, beside NVIDIA's headers where they are installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TOOLKIT = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"


def header_folders() -> list[Path]:
    """Folders with cublasLt.h: the one that CUBLAS_INCLUDE names, NVIDIA's wheels, the toolkit."""
    folders = [Path(p) for p in [os.environ.get("CUBLAS_INCLUDE")] if p]
    folders += [folder for p in sys.path for folder in (Path(p) / "nvidia").glob("*/include")]
    return [folder for folder in [*folders, TOOLKIT] if (folder / "cublasLt.h").exists()]


def test_header() -> None:
    folders = header_folders()
    if not folders or not (TOOLKIT / "library_types.h").exists():
        pytest.skip("no cublasLt.h (nvidia-cublas, or CUBLAS_INCLUDE) beside a CUDA toolkit")
    command = ["g++", "-std=c++17", "-fsyntax-only", f"-I{HERE.parents[1] / 'cysrc' / 'cuda'}", f"-I{folders[0]}", f"-I{TOOLKIT}", str(HERE / "cublaslt_header.cpp")]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
