"""NVIDIA's libraries where they are installed: found by path at first use, never linked against."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from tensorrt_lite._C.cuda.driver import driver_version as _driver_version
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_compiler = _LazyModule("tensorrt_lite.cuda._compiler")
_toolchain = _LazyModule("tensorrt_lite.cuda._toolchain")


@functools.cache
def cublaslt() -> str | None:
    """The path of cuBLASLt: what TENSORRT_LITE_CUBLASLT names, else of NVIDIA's wheels, else in CUDA's folders; None without one.

    On the emulator nothing but the variable counts: NVIDIA's library needs NVIDIA's driver. The variable set to nothing means none.
    """
    named = os.environ.get("TENSORRT_LITE_CUBLASLT")
    if named is not None or _compiler.is_emulated():
        return named or None

    folders = [folder for place in _toolchain.places() for part in ("nvidia/*/lib", "lib64", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu", "lib") for folder in sorted(place.glob(part))]
    folders += [Path(p) for p in os.environ.get("LD_LIBRARY_PATH", "").split(":") if p]
    return find("cublasLt", folders, _driver_version())


def find(library: str, folders: list[Path], driver_version: int) -> str | None:
    """The library's path for a driver (1000 * major + 10 * minor): of its major version or of an older one, never of a newer one, whose code it refuses."""
    for major in range(driver_version // 1000, 11, -1):
        for folder in folders:
            if (folder / f"lib{library}.so.{major}").exists():
                return str(folder / f"lib{library}.so.{major}")
    return None
