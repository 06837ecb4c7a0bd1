"""Ranges for Intel's VTune: its library is not used here, so that all but the question raises RuntimeError."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["is_available", "mark", "range", "range_pop", "range_push"]


def is_available() -> bool:
    """False."""
    return False


def _refuse() -> NoReturn:
    raise RuntimeError("ITT functions not installed. Are you sure you have a ITT build?")


def range_push(msg: str) -> int:
    """Open a range."""
    _refuse()


def range_pop() -> int:
    """Close the last one."""
    _refuse()


def mark(msg: str) -> None:
    """Mark a moment."""
    _refuse()


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A range as a context."""
    _refuse()
    yield
