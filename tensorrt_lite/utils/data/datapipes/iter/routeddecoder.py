"""Streams of decoded files."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

from .._decorator import functional_datapipe
from ..datapipe import IterDataPipe
from ..utils.common import length_of
from ..utils.decoder import Decoder, basichandlers, extension_extract_fn, imagehandler

__all__ = ["RoutedDecoderIterDataPipe"]


@functional_datapipe("routed_decode")
class RoutedDecoderIterDataPipe(IterDataPipe):
    """(path, object) of (path, binary stream), by handlers of extensions: texts and images as tensors where none are given. Deprecated."""

    def __init__(self, datapipe: Any, *handlers: Callable[[str, bytes], Any], key_fn: Callable[[str], str] = extension_extract_fn) -> None:
        super().__init__()
        warnings.warn(
            "`RoutedDecoderIterDataPipe` and its functional API `.routed_decode` are deprecated since 1.12 and will be removed in 1.13.", FutureWarning, stacklevel=2
        )
        self.datapipe = datapipe
        self.decoder = Decoder(*(handlers or (basichandlers, imagehandler("torch"))), key_fn=key_fn)

    def add_handler(self, *handler: Callable[[str, bytes], Any]) -> None:
        """Handlers to be asked before those there are."""
        self.decoder.add_handler(*handler)

    def __iter__(self) -> Iterator[Any]:
        for data in self.datapipe:
            yield data[0], self.decoder(data)[data[0]]

    def __len__(self) -> int:
        return length_of(self, self.datapipe)
