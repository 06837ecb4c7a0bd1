"""One map of several."""

from __future__ import annotations

from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe

__all__ = ["ConcaterMapDataPipe", "ZipperMapDataPipe"]


def _checked(datapipes: tuple[Any, ...]) -> tuple[Any, ...]:
    if not datapipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in datapipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")
    if not all(hasattr(type(pipe), "__len__") for pipe in datapipes):
        raise TypeError("Expected all inputs to be `Sized`")
    return datapipes


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """Maps of indices from 0 one after the other."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: Any) -> Any:
        place = index
        for pipe in self.datapipes:
            if place < len(pipe):
                return pipe[place]
            place -= len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the items at an index."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = _checked(datapipes)

    def __getitem__(self, index: Any) -> Any:
        items = []
        for pipe in self.datapipes:
            try:
                items.append(pipe[index])
            except IndexError as error:
                raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes {pipe}.") from error
        return tuple(items)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))
