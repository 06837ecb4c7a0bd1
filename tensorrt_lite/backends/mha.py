"""Whether `nn.TransformerEncoder` leaves padding out of its computation in evaluation, as PyTorch's fused path does."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_is_fastpath_enabled: bool = True


def get_fastpath_enabled() -> bool:
    """Whether padding may be left out; True unless `set_fastpath_enabled(False)` was called."""
    return _is_fastpath_enabled


def set_fastpath_enabled(value: bool) -> None:
    """Allow padding to be left out, or not."""
    global _is_fastpath_enabled
    _is_fastpath_enabled = value
