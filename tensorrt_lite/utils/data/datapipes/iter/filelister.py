"""Streams of files' names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import get_file_pathnames_from_root, no_length
from .utils import IterableWrapperIterDataPipe

__all__ = ["FileListerIterDataPipe"]


@functional_datapipe("list_files")
class FileListerIterDataPipe(IterDataPipe):
    """The paths of files in folders (one, several, or a stream of them) whose names match one of the patterns."""

    def __init__(self, root: Any = ".", masks: Any = "", *, recursive: bool = False, abspath: bool = False, non_deterministic: bool = False, length: int = -1) -> None:
        super().__init__()
        roots = [root] if isinstance(root, str) else root
        self.datapipe = roots if isinstance(roots, IterDataPipe) else IterableWrapperIterDataPipe(roots)
        self.masks, self.recursive, self.abspath, self.non_deterministic, self.length = masks, recursive, abspath, non_deterministic, length

    def __iter__(self) -> Iterator[str]:
        for path in self.datapipe:
            yield from get_file_pathnames_from_root(path, self.masks, self.recursive, self.abspath, self.non_deterministic)

    def __len__(self) -> int:
        if self.length == -1:
            raise no_length(self)
        return self.length
