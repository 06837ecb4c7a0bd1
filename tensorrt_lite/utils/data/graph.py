"""Which data pipes a data pipe is made of."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Union

from .datapipes.datapipe import IterDataPipe, MapDataPipe

__all__ = ["traverse", "traverse_dps"]

DataPipe = Union[IterDataPipe, MapDataPipe]
DataPipeGraph = dict[int, tuple[Any, Any]]


def _pipes_in(value: Any, everything: bool, seen: set[int]) -> Iterator[Any]:
    """The pipes that a value is or holds, in collections and (everything) in attributes of other objects."""
    if isinstance(value, (IterDataPipe, MapDataPipe)):
        yield value
        return
    if isinstance(value, (str, bytes, range)) or id(value) in seen:
        return
    parts: Any = ()
    if isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = value
    elif everything and not isinstance(value, type):
        parts = getattr(value, "__dict__", {}).values()
    seen.add(id(value))
    for part in parts:
        yield from _pipes_in(part, everything, seen)


def _graph_of(pipe: Any, everything: bool, above: set[int]) -> DataPipeGraph:
    if not isinstance(pipe, (IterDataPipe, MapDataPipe)):
        raise RuntimeError(f"Expected `IterDataPipe` or `MapDataPipe`, but {type(pipe)} is found")
    if id(pipe) in above:
        return {}
    inner: DataPipeGraph = {}
    for part in _pipes_in(list(vars(pipe).values()), everything, set()):
        inner.update(_graph_of(part, everything, above | {id(pipe)}))
    return {id(pipe): (pipe, inner)}


def traverse_dps(datapipe: Any) -> DataPipeGraph:
    """{id: (pipe, the same of the pipes in its attributes and in collections there)} of a data pipe. RuntimeError for what is none."""
    return _graph_of(datapipe, False, set())


def traverse(datapipe: Any, only_datapipe: bool | None = None) -> DataPipeGraph:
    """`traverse_dps`, also through attributes of other objects unless only_datapipe. Deprecated."""
    text = "`traverse` function is deprecated and will be removed after 1.13. Please use `traverse_dps` instead."
    if not only_datapipe:
        text += " And, the behavior will be changed to the equivalent of `only_datapipe=True`."
    warnings.warn(text, FutureWarning, stacklevel=2)
    return _graph_of(datapipe, not only_datapipe, set())
