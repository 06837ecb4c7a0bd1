"""Products where cuBLASLt is installed and cannot be used: the library refuses to make a handle."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.cuda_emulator import compiler

EMULATOR_ONLY = True
os.environ["TENSORRT_LITE_CUBLASLT"] = str(compiler.build_cublaslt(Path(os.environ["TENSORRT_LITE_CUDA_CACHE"]), ROOT / "cysrc" / "cuda" / "cublaslt.h"))
os.environ["CUBLASLT_CALLS"] = CALLS = tempfile.mkstemp()[1]
os.environ["CUBLASLT_CREATE_STATUS"] = "1"  # NOT_INITIALIZED: what CUDA 13's library says on CUDA 12's driver

import tensorrt_lite as torch
from device_checks import agree


def check_own_kernels_take_over() -> None:
    """The first product and the next ones have results, by the kernels here."""
    for bias in (torch.randn(33), torch.randn(20, 33)):
        agree(torch.addmm, bias, torch.randn(20, 70), torch.randn(70, 33))
    agree(torch.mm, torch.randn(20, 70, requires_grad=True), torch.randn(70, 33, requires_grad=True))
    assert Path(CALLS).read_text() == ""
    from tensorrt_lite._C.cuda import cublas

    assert cublas._version() is None
