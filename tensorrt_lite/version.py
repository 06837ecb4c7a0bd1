"""The version under PyTorch's names. Programs compare `cuda` with None to learn whether CUDA can be used."""

from __future__ import annotations

from tensorrt_lite import __version__
from tensorrt_lite._C import DEBUG as debug
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_cuda = _LazyModule("tensorrt_lite.cuda")

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "xpu"]

git_version = "Unknown"  # a str in PyTorch, this for builds outside of a checkout
hip = xpu = None
cuda: str | None


def __getattr__(name: str) -> str | None:
    """`cuda`: the CUDA version of the driver, None without one; kernels are compiled on the machine that runs them, so the build has none."""
    if name != "cuda":
        raise AttributeError(f"module 'tensorrt_lite.version' has no attribute '{name}'")

    if not _cuda._driver.available():
        return None
    number = _cuda._driver.driver_version()
    return f"{number // 1000}.{number % 1000 // 10}"
