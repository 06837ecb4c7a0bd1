"""torch.signal: window functions."""

from __future__ import annotations

from tensorrt_lite.signal import windows

__all__ = ["windows"]


def __dir__() -> list[str]:
    return sorted(__all__)
