"""Maps in random order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ..datapipe import IterDataPipe, MapDataPipe
from ..iter.combinatorics import new_seed

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(IterDataPipe):
    """A stream of a map's items (all, or those at indices) in random order, by a seed as that of the stream of the same name."""

    def __init__(self, datapipe: Any, *, indices: list[Any] | None = None) -> None:
        super().__init__()
        self.datapipe = datapipe
        self.indices = list(range(len(datapipe))) if indices is None else indices
        self._enabled = True
        self._seed: int | None = None
        self._rng = random.Random()

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Whether the order changes at all."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The seed of the next iterator."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        order = self.indices if not self._enabled else reversed(self._shuffled_indices)  # PyTorch takes them from the end
        for index in order:
            yield self.datapipe[index]

    def reset(self) -> None:
        if self._enabled:
            self._rng.seed(new_seed() if self._seed is None else self._seed)
            self._shuffled_indices = self._rng.sample(self.indices, len(self.indices))
        self._seed = None

    def __len__(self) -> int:
        return len(self.datapipe)


MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)
