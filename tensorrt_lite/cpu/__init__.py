"""The CPU as a device module: what `tensorrt_lite.cuda` is for GPUs, with streams that do nothing, and the allocator's statistics.

Operators on the CPU run to their end before they return, so there is nothing to wait for.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from contextlib import AbstractContextManager
from typing import Any

import tensorrt_lite.cpu.memory as memory
from tensorrt_lite.cpu.memory import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_peak_memory_stats,
)
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = [
    "Event", "Stream", "StreamContext", "amp", "current_device", "current_stream", "device_count", "empty_cache", "is_available", "is_initialized",
    "max_memory_allocated", "max_memory_reserved", "memory", "memory_allocated", "memory_reserved", "memory_stats", "reset_peak_memory_stats",
    "set_device", "stream", "synchronize",
]  # fmt: skip


class Stream:
    """A queue of work; on the CPU work is done when the call returns."""

    def __init__(self, priority: int = -1) -> None:
        self.priority = priority

    def wait_stream(self, stream: Stream) -> None:
        """Nothing: the other stream's work is done."""

    def record_event(self) -> None:
        """Nothing to record."""

    def wait_event(self, event: Event) -> None:
        """Nothing: the event has happened."""

    def synchronize(self) -> None:
        """Nothing to wait for."""


class Event:
    """A point in a stream, always reached."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Stream | None = None) -> None:
        """Nothing to record."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream: Stream | None = None) -> None:
        """Nothing to wait for."""


_current = Stream()


class StreamContext(AbstractContextManager):
    """Makes a stream the current one inside a ``with`` block."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: Stream | None = None

    def __enter__(self) -> None:
        global _current
        self._before = _current
        if self.stream is not None:
            _current = self.stream

    def __exit__(self, *exception: object) -> None:
        global _current
        if self._before is not None:
            _current = self._before


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """The number of CPU devices: 1, whatever the number of cores."""
    return 1


def current_device() -> str:
    """The name of the only device, "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is one CPU device."""


def synchronize(device: Any = None) -> None:
    """Nothing: every operator has finished when its call returns."""


def current_stream(device: Any = None) -> Stream:
    """The current stream."""
    return _current


def stream(stream: Stream | None) -> StreamContext:
    """A context in which the given stream is the current one."""
    return StreamContext(stream)


def __getattr__(name: str) -> Any:
    if name == "amp":
        return _import_module("tensorrt_lite.cpu.amp")

    raise _missing.error("cpu", name)
