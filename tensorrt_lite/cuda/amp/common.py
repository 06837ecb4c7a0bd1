"""Whether mixed precision on CUDA is out of the question."""

from __future__ import annotations

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """True where there is no GPU."""
    from tensorrt_lite import cuda

    return not cuda.is_available()
