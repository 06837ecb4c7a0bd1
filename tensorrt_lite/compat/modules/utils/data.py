"""torch.utils.data: the decorator of data pipes, which are not here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class functional_datapipe:  # noqa: N801 (PyTorch's name)
    """A decorator that returns the class itself: it would make a method of IterDataPipe of it."""

    def __init__(self, name: str, enable_df_api_tracing: bool = False) -> None:
        self.name = name

    def __call__(self, cls: Callable[..., Any]) -> Callable[..., Any]:
        return cls
