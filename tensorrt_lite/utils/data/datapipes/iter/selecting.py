"""Streams of some elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, validate_input_col, warn_of_lambda

__all__ = ["FilterIterDataPipe"]


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The elements for which filter_fn, of them or of their columns input_col, is True. ValueError where it gives no bool."""

    def __init__(self, datapipe: Any, filter_fn: Callable[..., Any], input_col: Any = None) -> None:
        super().__init__()
        warn_of_lambda(filter_fn)
        validate_input_col(filter_fn, input_col)
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def _wanted(self, data: Any) -> Any:
        if self.input_col is None:
            return self.filter_fn(data)
        columns = self.input_col if isinstance(self.input_col, (list, tuple)) else [self.input_col]
        return self.filter_fn(*(data[column] for column in columns))

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            wanted = self._wanted(element)
            if not isinstance(wanted, bool):
                raise ValueError("Boolean output is required for `filter_fn` of FilterIterDataPipe, got", type(wanted))
            if wanted:
                yield element
            else:
                StreamWrapper.close_streams(element)
