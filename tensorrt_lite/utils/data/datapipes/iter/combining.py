"""Several streams of one, and one of several.

The children of `fork` and `demux` read one source, which is asked for an element when the first child wants it; what others have yet to read waits in
a buffer. A child that begins anew sends all of them back to the beginning.
"""

from __future__ import annotations

import copy as copying
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import StreamWrapper, length_of, no_length, warn_of_lambda

__all__ = ["ConcaterIterDataPipe", "DemultiplexerIterDataPipe", "ForkerIterDataPipe", "MultiplexerIterDataPipe", "ZipperIterDataPipe"]


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """Streams one after the other."""

    def __init__(self, *datapipes: Any) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("Expected all inputs to be `IterDataPipe`")
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for pipe in self.datapipes:
            yield from pipe

    def __len__(self) -> int:
        return sum(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """An element of each stream in turn, until the shortest ends."""

    def __init__(self, *datapipes: Any) -> None:
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        for row in zip(*self.datapipes, strict=False):
            yield from row

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes) * len(self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of an element of each stream, until the shortest ends."""

    def __init__(self, *datapipes: Any) -> None:
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        super().__init__()
        self.datapipes = datapipes

    def __iter__(self) -> Iterator[Any]:
        yield from zip(*self.datapipes, strict=False)

    def __len__(self) -> int:
        return min(length_of(self, pipe) for pipe in self.datapipes)


class _ContainerTemplate(IterDataPipe):
    """What children read. Subclasses fill the buffers; a child's place is the instance_id of its calls."""

    _verb = ""

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int) -> None:
        if buffer_size < 0:
            warnings.warn(f"Unlimited buffer size is set for `{self._verb}`, please be aware of OOM at random places", UserWarning, stacklevel=4)
        self.main_datapipe, self.num_instances, self.buffer_size = datapipe, num_instances, buffer_size
        self.reset()

    def reset(self) -> None:
        self._iterator: Iterator[Any] | None = None
        self._exhausted = False
        self._waiting: list[deque[Any]] = [deque() for _ in range(self.num_instances)]
        self._finished = [False] * self.num_instances

    def __getstate__(self) -> Any:
        state = {name: value for name, value in self.__dict__.items() if name != "_iterator"}
        return state if IterDataPipe.getstate_hook is None else IterDataPipe.getstate_hook(state)

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)
        self.reset()

    def is_every_instance_exhausted(self) -> bool:
        return self._exhausted and all(self._finished)

    def get_length_by_instance(self, instance_id: int) -> int:
        raise NotImplementedError

    def _read(self) -> None:
        """Take one element of the source to the buffers; StopIteration at its end."""
        raise NotImplementedError

    def get_next_element_by_instance(self, instance_id: int) -> Iterator[Any]:
        """The elements of a child."""
        if self._iterator is None:
            self._iterator = iter(self.main_datapipe)
        waiting = self._waiting[instance_id]
        try:
            while True:
                while waiting:
                    yield waiting.popleft()
                if self._exhausted:
                    return
                try:
                    self._read()
                except StopIteration:
                    self._exhausted = True
        finally:
            self._finished[instance_id] = True
            while waiting:
                StreamWrapper.close_streams(waiting.popleft())


class _ChildDataPipe(IterDataPipe):
    """One of several streams over a source."""

    _is_child_datapipe = True

    def __init__(self, main_datapipe: _ContainerTemplate, instance_id: int) -> None:
        self.main_datapipe, self.instance_id = main_datapipe, instance_id

    def _new_iterator(self) -> int:
        source = self.main_datapipe
        if source._valid_iterator_id is None:
            source._valid_iterator_id = 0
        elif source._valid_iterator_id == self._valid_iterator_id:
            source._valid_iterator_id += 1
            if not source.is_every_instance_exhausted():
                warnings.warn(
                    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer and each child DataPipe will read from the "
                    "start again.",
                    UserWarning,
                    stacklevel=3,
                )
            source.reset()
        self._valid_iterator_id = source._valid_iterator_id
        self._number_of_samples_yielded = 0
        return source._valid_iterator_id

    def _is_valid_iterator(self, number: int) -> bool:
        return number == self._valid_iterator_id == self.main_datapipe._valid_iterator_id

    def __iter__(self) -> Iterator[Any]:
        return self.main_datapipe.get_next_element_by_instance(self.instance_id)

    def __len__(self) -> int:
        return self.main_datapipe.get_length_by_instance(self.instance_id)


def _check_instances(num_instances: int) -> None:
    if num_instances < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {num_instances} is found")


class _ForkerIterDataPipe(_ContainerTemplate):
    _verb = "fork"

    def __init__(self, datapipe: Any, num_instances: int, buffer_size: int, copy: str | None) -> None:
        if copy not in (None, "shallow", "deep"):
            raise ValueError(f"Unknown copy method `{copy}` requested, choose one of None, `shallow` or `deep`.")
        super().__init__(datapipe, num_instances, buffer_size)
        self.copy = copy

    def _read(self) -> None:
        assert self._iterator is not None
        element = next(self._iterator)
        most = max((len(w) for w, finished in zip(self._waiting, self._finished, strict=True) if not finished), default=0)
        if 0 <= self.buffer_size <= most:
            raise BufferError(f"ForkerIterDataPipe buffer overflow,buffer size {self.buffer_size} is insufficient.")
        for waiting, finished in zip(self._waiting, self._finished, strict=True):
            if not finished:
                waiting.append(element if self.copy is None else copying.copy(element) if self.copy == "shallow" else copying.deepcopy(element))

    def get_length_by_instance(self, instance_id: int) -> int:
        return len(self.main_datapipe)


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """num_instances streams of the same elements (a list); copy: "shallow" or "deep" gives each child its own. BufferError where one is more than
    buffer_size (-1: any number) ahead of another."""

    def __new__(cls, datapipe: Any, num_instances: int, buffer_size: int = 1000, copy: str | None = None) -> Any:
        _check_instances(num_instances)
        if num_instances == 1:
            return datapipe
        source = _ForkerIterDataPipe(datapipe, num_instances, buffer_size, copy)
        return [_ChildDataPipe(source, i) for i in range(num_instances)]


class _DemultiplexerIterDataPipe(_ContainerTemplate):
    _verb = "demux"

    def __init__(self, datapipe: Any, num_instances: int, classifier_fn: Callable[[Any], Any], drop_none: bool, buffer_size: int) -> None:
        super().__init__(datapipe, num_instances, buffer_size)
        self.classifier_fn, self.drop_none = classifier_fn, drop_none

    def _read(self) -> None:
        assert self._iterator is not None
        element = next(self._iterator)
        place = self.classifier_fn(element)
        if place is None and self.drop_none:
            StreamWrapper.close_streams(element)
            return
        if place is None or not 0 <= place < self.num_instances:
            raise ValueError(f"Output of the classification fn should be between 0 and {self.num_instances - 1}. {place} is returned.")
        if 0 <= self.buffer_size < sum(map(len, self._waiting)):
            raise BufferError(f"DemultiplexerIterDataPipe buffer overflow, buffer size {self.buffer_size} is insufficient.")
        self._waiting[place].append(element)

    def get_length_by_instance(self, instance_id: int) -> int:
        raise no_length(self)  # a child has as many elements as the function says


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """num_instances streams (a list); each element goes to that whose number classifier_fn gives. ValueError for other numbers, and for None unless
    drop_none; BufferError where more than buffer_size (-1: any number) elements wait."""

    def __new__(cls, datapipe: Any, num_instances: int, classifier_fn: Callable[[Any], Any], drop_none: bool = False, buffer_size: int = 1000) -> Any:
        _check_instances(num_instances)
        warn_of_lambda(classifier_fn)
        source = _DemultiplexerIterDataPipe(datapipe, num_instances, classifier_fn, drop_none, buffer_size)
        return [_ChildDataPipe(source, i) for i in range(num_instances)]
