"""Iterables as streams."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from ..datapipe import IterDataPipe
from ..utils.common import length_of

__all__ = ["IterableWrapperIterDataPipe"]


class IterableWrapperIterDataPipe(IterDataPipe):
    """A stream of an iterable's elements; deepcopy: of a copy that is made for each iterator, with a warning where it cannot be."""

    def __init__(self, iterable: Iterable[Any], deepcopy: bool = True) -> None:
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator[Any]:
        source = self.iterable
        if self.deepcopy:
            try:
                source = copy.deepcopy(source)
            except TypeError:  # generators, open files
                warnings.warn("The input iterable can not be deepcopied, please be aware of in-place modification would affect source data.", stacklevel=2)
        yield from source

    def __len__(self) -> int:
        return length_of(self, self.iterable)
