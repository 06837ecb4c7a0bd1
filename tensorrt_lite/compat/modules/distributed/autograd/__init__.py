"""torch.distributed.autograd: whether it is there."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """False: gradients pass through the processes of a group by its collectives, not by remote procedure calls."""
    return False
