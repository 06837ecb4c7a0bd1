"""Functions of items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import MapDataPipe
from ..utils.common import warn_of_lambda

__all__ = ["MapperMapDataPipe", "default_fn"]


def default_fn(data: Any) -> Any:
    """The item itself."""
    return data


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """fn of each item."""

    def __init__(self, datapipe: Any, fn: Callable[[Any], Any] = default_fn) -> None:
        super().__init__()
        warn_of_lambda(fn)
        self.datapipe, self.fn = datapipe, fn

    def __len__(self) -> int:
        return len(self.datapipe)

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])
