"""Whether mixed precision on CUDA is out of the question."""

from __future__ import annotations

from tensorrt_lite import cuda as _cuda

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """True where there is no GPU."""
    return not _cuda.is_available()
