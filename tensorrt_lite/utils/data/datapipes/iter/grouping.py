"""Streams of batches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import DataChunk, IterDataPipe
from ..utils.common import length_of, warn_of_lambda

__all__ = ["BatcherIterDataPipe", "GrouperIterDataPipe", "UnBatcherIterDataPipe"]


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Batches of batch_size elements; the last one may be shorter, or is dropped."""

    def __init__(self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = DataChunk) -> None:
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        super().__init__()
        self.datapipe, self.batch_size, self.drop_last, self.wrapper_class = datapipe, batch_size, drop_last, wrapper_class

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        for element in self.datapipe:
            batch.append(element)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        whole, rest = divmod(length_of(self, self.datapipe), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The elements of batches; unbatch_level: of batches of batches, -1 for all levels. IndexError where there are fewer."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            yield from self._dive(element, self.unbatch_level)

    def _dive(self, element: Any, unbatch_level: int) -> Iterator[Any]:
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        if unbatch_level == 0 or (unbatch_level == -1 and not isinstance(element, list)):
            yield element
        elif not isinstance(element, list):
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the DataPipe")
        else:
            for part in element:
                yield from self._dive(part, max(unbatch_level - 1, -1))


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Batches of elements of the same key (keep_key: (key, batch)), of group_size, or as many as buffer_size lets wait.

    A full buffer gives its largest group away: one below guaranteed_group_size (group_size by default) is a RuntimeError, or dropped with
    drop_remaining.
    """

    def __init__(self, datapipe: Any, group_key_fn: Callable[[Any], Any], *, keep_key: bool = False, buffer_size: int = 10000, group_size: int | None = None,
                 guaranteed_group_size: int | None = None, drop_remaining: bool = False) -> None:  # fmt: skip
        warn_of_lambda(group_key_fn)
        if group_size is not None and buffer_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        if guaranteed_group_size is not None and (group_size is None or not 0 < guaranteed_group_size <= group_size):
            raise AssertionError("guaranteed_group_size must be > 0 and <= group_size and group_size must be set")
        self.datapipe, self.group_key_fn, self.keep_key, self.max_buffer_size = datapipe, group_key_fn, keep_key, buffer_size
        self.group_size, self.drop_remaining, self.wrapper_class = group_size, drop_remaining, DataChunk
        self.guaranteed_group_size = group_size if guaranteed_group_size is None else guaranteed_group_size
        self.reset()

    def reset(self) -> None:
        self.buffer_elements: dict[Any, list[Any]] = defaultdict(list)
        self.curr_buffer_size = 0

    def _take(self, key: Any) -> Any:
        """A group as it is yielded."""
        group = self.wrapper_class(self.buffer_elements.pop(key))
        self.curr_buffer_size -= len(group)
        return (key, group) if self.keep_key else group

    def __iter__(self) -> Iterator[Any]:
        for element in self.datapipe:
            key = self.group_key_fn(element)
            self.buffer_elements[key].append(element)
            self.curr_buffer_size += 1
            if self.group_size is not None and len(self.buffer_elements[key]) == self.group_size:
                yield self._take(key)
            if self.curr_buffer_size == self.max_buffer_size:
                largest = max(self.buffer_elements, key=lambda k: len(self.buffer_elements[k]))
                small = self.guaranteed_group_size is not None and len(self.buffer_elements[largest]) < self.guaranteed_group_size
                if small and not self.drop_remaining:
                    raise RuntimeError("Failed to group items", str(self.buffer_elements[largest]))
                group = self._take(largest)
                if not small:
                    yield group
        for key in tuple(self.buffer_elements):
            yield self._take(key)
