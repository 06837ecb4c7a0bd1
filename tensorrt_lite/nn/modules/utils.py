"""Sizes given as one number or as one per dimension."""

from __future__ import annotations

from typing import Any


def ntuple(value: Any, n: int) -> tuple[Any, ...]:
    """`value` as a tuple: itself if iterable, else n copies."""
    return tuple(value) if hasattr(value, "__iter__") else (value,) * n


def reverse_repeat_tuple(values: Any, n: int) -> tuple[Any, ...]:
    """Each value n times, last value first: the order of functional.pad."""
    return tuple(value for value in reversed(values) for _ in range(n))
