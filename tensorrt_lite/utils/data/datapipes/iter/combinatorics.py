"""Streams in another order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tensorrt_lite import _root as trt

from ...sampler import SequentialSampler
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_of

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


def new_seed() -> int:
    """A seed from the global generator."""
    return int(trt.empty((), dtype=trt.int64, device="cpu").random_().item())


class SamplerIterDataPipe(IterDataPipe):
    """The indices that a sampler draws for a stream of known length."""

    def __init__(self, datapipe: Any, sampler: Any = SequentialSampler, sampler_args: Any = None, sampler_kwargs: Any = None) -> None:
        if not hasattr(type(datapipe), "__len__"):
            raise AssertionError("Sampler class requires input datapipe implemented `__len__`")
        super().__init__()
        self.datapipe = datapipe
        self.sampler_args = sampler_args or ()
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sampler)

    def __len__(self) -> int:
        return length_of(self, self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """A stream in random order, by a buffer whose elements leave at random. The seed is a loader's, `set_seed`'s, or drawn for each iterator.

    unbatch_level: batches are taken apart before, as `unbatch` does.
    """

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        super().__init__()
        self._buffer: list[Any] = []
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level=unbatch_level)
        self.buffer_size = buffer_size
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
        if not self._enabled:
            yield from self.datapipe
            return
        buffer, place = self._buffer, self._rng.randint
        for element in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(element)
                continue
            index = place(0, len(buffer) - 1)
            leaving, buffer[index] = buffer[index], element
            yield leaving
        while buffer:
            yield buffer.pop(place(0, len(buffer) - 1))

    def __len__(self) -> int:
        return length_of(self, self.datapipe)

    def reset(self) -> None:
        self._buffer = []
        if self._enabled:
            self._rng.seed(new_seed() if self._seed is None else self._seed)
            self._seed = None
