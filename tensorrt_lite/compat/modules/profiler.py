"""torch.profiler: what programs ask before they profile."""

from __future__ import annotations

from typing import Any


def kineto_available() -> bool:
    """False: there is no profiler."""
    return False


def supported_activities() -> set[Any]:
    """None."""
    return set()
