"""Data pipes: datasets that are built of one another, `IterableWrapper(range(9)).shuffle().map(f).batch(3)`."""

from . import iter, map  # noqa: A004 (PyTorch's names)

__all__ = ["iter", "map"]
