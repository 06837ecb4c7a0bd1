"""torch.fx without tracing: what only marks functions for it marks nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["has_side_effect", "wrap"]


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """The function itself, or the name: nothing is ever being traced."""
    return fn_or_name


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn
