"""torch.distributed.rpc: whether it is there."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """False: there are no remote procedure calls."""
    return False
