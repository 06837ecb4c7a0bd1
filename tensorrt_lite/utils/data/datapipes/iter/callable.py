"""Functions of elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..._utils.collate import default_collate
from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_of, validate_input_col, warn_of_lambda

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """fn of each element, or of its columns input_col (an index, or several). The result takes the place of the columns, or goes to output_col (-1: behind)."""

    def __init__(self, datapipe: Any, fn: Callable[..., Any], input_col: Any = None, output_col: Any = None) -> None:
        super().__init__()
        warn_of_lambda(fn)
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        if isinstance(output_col, (list, tuple)):
            if len(output_col) > 1:
                raise ValueError("`output_col` must be a single-element list or tuple")
            output_col = output_col[0]
        validate_input_col(fn, input_col)
        self.datapipe, self.fn, self.input_col, self.output_col = datapipe, fn, input_col, output_col

    def _apply_fn(self, data: Any) -> Any:
        if self.input_col is None:
            return self.fn(data)
        several = isinstance(self.input_col, (list, tuple))
        columns = list(self.input_col) if several else [self.input_col]
        result = self.fn(*(data[column] for column in columns))
        row = list(data) if isinstance(data, tuple) else data
        if self.output_col == -1:
            row.append(result)
        elif self.output_col is not None:
            row[self.output_col] = result
        else:
            row[columns[0]] = result
            for column in sorted(columns[1:], reverse=True):
                del row[column]
        return tuple(row) if isinstance(data, tuple) else row

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield self._apply_fn(element)

    def __len__(self) -> int:
        return length_of(self, self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Batches of tensors of batches of samples, by `default_collate` or a function of one's own. NotImplementedError for a dict, which is for data frames."""

    def __init__(self, datapipe: Any, conversion: Any = default_collate, collate_fn: Callable[[Any], Any] | None = None) -> None:
        function = conversion if collate_fn is None else collate_fn
        if not callable(function):
            raise NotImplementedError("collate: conversions by column are for data frames, which are not implemented (docs/gaps.md)")
        super().__init__(datapipe, function)
