"""Streams of files' contents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe

__all__ = ["StreamReaderIterDataPipe"]


@functional_datapipe("read_from_stream")
class StreamReaderIterDataPipe(IterDataPipe):
    """(path, content) of (path, open file), in chunks of so many bytes where that is given; files are closed at their end."""

    def __init__(self, datapipe: Any, chunk: int | None = None) -> None:
        self.datapipe, self.chunk = datapipe, chunk

    def __iter__(self) -> Iterator[Any]:
        for path, stream in self.datapipe:
            while content := stream.read(self.chunk):
                yield path, content
            stream.close()
