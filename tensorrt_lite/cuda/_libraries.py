"""NVIDIA's libraries where they are installed: found by path at first use, never linked against."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

_CUBLASLT = ("libcublasLt.so.13", "libcublasLt.so.12")


@functools.cache
def cublaslt() -> str | None:
    """The path of cuBLASLt: what TENSORRT_LITE_CUBLASLT names, else of NVIDIA's wheels, else in CUDA's folders; None without one.

    On the emulator nothing but the variable counts: NVIDIA's library needs NVIDIA's driver. The variable set to nothing means none.
    """
    from tensorrt_lite.cuda._compiler import is_emulated

    named = os.environ.get("TENSORRT_LITE_CUBLASLT")
    if named is not None or is_emulated():
        return named or None
    folders = [folder for p in sys.path for folder in sorted((Path(p) / "nvidia").glob("*/lib"))]
    folders += [Path(home) / part for home in (os.environ.get("CUDA_HOME"), "/usr/local/cuda") if home for part in ("lib64", "targets/x86_64-linux/lib")]
    folders += [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    folders.append(Path("/usr/lib/x86_64-linux-gnu"))
    return next((str(folder / name) for name in _CUBLASLT for folder in folders if (folder / name).exists()), None)
