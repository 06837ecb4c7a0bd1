"""torch.onnx.symbolic_helper: the decorators of functions that an exporter would call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def parse_args(*descriptors: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that returns the function itself: nobody calls it with nodes of a graph."""
    return lambda fn: fn


def quantized_args(*which: bool, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that returns the function itself."""
    return lambda fn: fn
