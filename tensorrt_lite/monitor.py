"""torch.monitor: counters that log their statistics once a window, and events that go to registered handlers."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

__all__ = [
    "Aggregation", "Event", "EventHandlerHandle", "Stat", "TensorboardEventHandler", "data_value_t", "log_event", "register_event_handler",
    "unregister_event_handler",
]  # fmt: skip

data_value_t = float | int | bool | str


class Aggregation(enum.Enum):
    """What a Stat makes of the numbers of a window."""

    VALUE = 1
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6


class Event:
    """Something that happened: a name for all events of its kind, a time, and values by name, whose integers and bools become floats."""

    def __init__(self, name: str, timestamp: datetime, data: Mapping[str, data_value_t]) -> None:
        if not isinstance(timestamp, datetime):
            raise TypeError(f"Event(): timestamp must be a datetime (got {type(timestamp).__name__})")
        self.name = name
        self.timestamp = timestamp
        self.data = {key: value if isinstance(value, str) else float(value) for key, value in data.items()}


class EventHandlerHandle:
    """What `register_event_handler` returns, to unregister by."""

    def __init__(self, callback: Callable[[Event], None]) -> None:
        self._callback = callback


_handlers: list[EventHandlerHandle] = []
_lock = threading.Lock()


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Call `callback(event)` for each event that is logged from now on."""
    handle = EventHandlerHandle(callback)
    with _lock:
        _handlers.append(handle)
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Call it no longer. Nothing where it is not registered."""
    with _lock:
        if handler in _handlers:
            _handlers.remove(handler)


def log_event(event: Event) -> None:
    """Hand an event to all handlers, in this thread."""
    with _lock:
        handlers = list(_handlers)
    for handler in handlers:
        handler._callback(event)


class Stat:
    """Statistics of the numbers added in windows of `window_size`, logged as the event "torch.monitor.Stat" by the first `add` after a window's end.

    max_samples: a window that has so many is logged at once, and what is added until its end is dropped. The last window is logged when the Stat goes.
    """

    def __init__(self, name: str, aggregations: list[Aggregation], window_size: timedelta, max_samples: int = 2**63 - 1) -> None:
        self.name = name
        self._aggregations = list(aggregations)
        self._window = window_size.total_seconds()
        self._max_samples = max_samples
        self._values: list[float] = []
        self._begin = time.monotonic()
        self._full = False
        self._last = dict.fromkeys(self._aggregations, 0.0)

    @property
    def count(self) -> int:
        """How many numbers the window has so far."""
        return len(self._values)

    def add(self, v: float) -> None:
        """Add a number to the window."""
        now = time.monotonic()
        if now - self._begin >= self._window:
            self._log()
            self._begin, self._full = now, False
        if self._full:
            return
        self._values.append(float(v))
        if len(self._values) >= self._max_samples:
            self._log()
            self._full = True

    def get(self) -> dict[Aggregation, float]:
        """The statistics of the last window that was logged; zeros before."""
        return dict(self._last)

    def _log(self) -> None:
        values, self._values = self._values, []
        if not values:
            return
        results = {
            Aggregation.VALUE: values[-1], Aggregation.MEAN: sum(values) / len(values), Aggregation.COUNT: float(len(values)), Aggregation.SUM: sum(values),
            Aggregation.MAX: max(values), Aggregation.MIN: min(values),
        }  # fmt: skip
        self._last = {kind: results[kind] for kind in self._aggregations}
        log_event(Event("torch.monitor.Stat", datetime.now(), {f"{self.name}.{kind.name.lower()}": v for kind, v in self._last.items()}))

    def __del__(self) -> None:
        if getattr(self, "_values", None):
            self._log()


class TensorboardEventHandler:
    """A handler that writes the numbers of "torch.monitor.Stat" events as scalars of a `utils.tensorboard.SummaryWriter`."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == "torch.monitor.Stat":
            for key, value in event.data.items():
                if not isinstance(value, (int, float)):
                    raise AssertionError(f"expected numbers, got {type(value)}")
                self._writer.add_scalar(key, value, walltime=event.timestamp.timestamp())


def __dir__() -> list[str]:
    return sorted(__all__)
