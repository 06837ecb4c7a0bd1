"""Streams and events: queues of a device's work, and marks in them that the host and other streams can wait for."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as tensorrt_lite
from tensorrt_lite._C.cuda import driver as _driver
from tensorrt_lite.cuda import _backend, _index
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_reductions = _LazyModule("tensorrt_lite.multiprocessing.reductions")

_POOL_SIZE = 32
# Streams are made once and handed out in turns, as in PyTorch: a Stream object that dies gives nothing back.
_pools: dict[tuple[int, int], list[int]] = {}
_next: dict[tuple[int, int], int] = {}


class Stream:
    """A queue of work on a device, which runs beside other streams'.

    priority: 0, or negative for work that goes first, as far as the device has levels. Work that uses another stream's results has to
    wait for it: ``wait_stream``, ``wait_event``.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, stream_ptr: int | None = None) -> None:
        self.device_index = _index(device)
        self.priority = priority
        self.cuda_stream = _from_pool(self.device_index, priority) if stream_ptr is None else stream_ptr

    @property
    def device(self) -> Any:
        return tensorrt_lite.device("cuda", self.device_index)

    @property
    def stream_id(self) -> int:
        """The stream's handle; 0 is the default stream."""
        return self.cuda_stream

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """(least, greatest) priority; greater ones are lower numbers."""
        return _driver.stream_priority_range()

    def query(self) -> bool:
        """Whether all work submitted has run."""
        return _driver.stream_query(self.device_index, self.cuda_stream)

    def synchronize(self) -> None:
        """Wait on the host for all work submitted."""
        _driver.stream_synchronize(self.device_index, self.cuda_stream)
        _backend()._waited(self.device_index, self.cuda_stream)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default."""
        event = event if event is not None else Event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Work submitted from now on runs after the event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Work submitted from now on runs after what the other stream has been given so far."""
        self.wait_event(stream.record_event())

    @property
    def __cuda_stream__(self) -> tuple[int, int]:
        """(protocol version, handle), for other libraries."""
        return 0, self.cuda_stream

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and (self.device_index, self.cuda_stream) == (other.device_index, other.cuda_stream)

    def __hash__(self) -> int:
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device=cuda:{self.device_index} cuda_stream={self.cuda_stream:#x}>"

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(f"cannot pickle '{type(self).__name__}' object: a stream belongs to its process")

    def __enter__(self) -> Stream:
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._context.__exit__(*exception)


class ExternalStream(Stream):
    """A stream that another library made; it must outlive this object."""

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        super().__init__(device, stream_ptr=stream_ptr)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """A stream that another library made, by its handle."""
    return ExternalStream(data_ptr, device)


def _from_pool(device: int, priority: int) -> int:
    least, greatest = _driver.stream_priority_range()
    priority = max(min(priority, least), greatest)
    key = (device, priority)
    pool = _pools.setdefault(key, [])
    turn = _next.get(key, 0)
    _next[key] = turn + 1
    if len(pool) < _POOL_SIZE:
        pool.append(_driver.stream_create(device, priority))
        return pool[-1]
    return pool[turn % _POOL_SIZE]


class Event:
    """A mark in a stream. enable_timing: it can be asked for times; blocking: waiting for it gives up the processor."""

    _options = (False, False, False)
    _event, _device = 0, -1  # of an object that was made without __init__, too

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._options = (enable_timing, blocking, interprocess)
        if enable_timing and interprocess:
            raise ValueError("an event for other processes cannot record time: enable_timing and interprocess exclude each other")

    def _make(self, device: int) -> int:
        if not self._event:
            self._event, self._device = _driver.new_event(device, *self._options), device
        elif device != self._device:
            raise RuntimeError(f"Event device {self._device} does not match recording stream's device {device}.")
        return self._event

    def ipc_handle(self) -> bytes:
        """The name under which other processes open the event; made with ``interprocess=True``, which excludes times."""
        if not self._options[2]:
            raise RuntimeError("Event.ipc_handle: the event was made without interprocess=True")
        event = self._make(_backend()._current_device() if self._device < 0 else self._device)
        return _driver.share_event(self._device, event)

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: bytes) -> Event:
        """Another process's event."""
        event = cls(interprocess=True)
        event._device = _index(device)
        event._event = _driver.open_event(event._device, handle)
        return event

    @property
    def cuda_event(self) -> int:
        """The handle; 0 before the first record."""
        return self._event

    @property
    def device(self) -> Any:
        return tensorrt_lite.device("cuda", self._device) if self._event else None

    def record(self, stream: Stream | None = None) -> None:
        """Mark what the stream (the current one by default) has been given so far."""
        stream = stream if stream is not None else current_stream()
        _driver.record_event(stream.device_index, self._make(stream.device_index), stream.cuda_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Work that the stream (the current one by default) is given from now on runs after the mark."""
        if self._event:
            stream = stream if stream is not None else current_stream()
            _driver.stream_wait_event(stream.device_index, stream.cuda_stream, self._event)

    def query(self) -> bool:
        """Whether everything before the mark has run."""
        return not self._event or _driver.query_event(self._event)

    def synchronize(self) -> None:
        """Wait on the host for everything before the mark."""
        if self._event:
            _driver.synchronize_event(self._event)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two recorded events. ValueError unless both record time; RuntimeError before they have run."""
        if not (self._options[0] and end_event._options[0]):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self._event and end_event._event):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return _driver.event_elapsed(self._event, end_event._event)

    def __reduce__(self) -> tuple[Any, ...]:
        """For other processes, as from_ipc_handle takes it. RuntimeError for an event made without ``interprocess=True``."""
        return _reductions.reduce_event(self)

    def __del__(self) -> None:
        if self._event:
            try:
                _driver.destroy_event(self._device, self._event)
            except (RuntimeError, AttributeError, TypeError):  # the driver is gone at the interpreter's end
                pass

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self._event:#x}>" if self._event else "<torch.cuda.Event uninitialized>"


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work on a device is queued on."""
    index = _index(device)
    return Stream(index, stream_ptr=_backend()._current_stream(index))


def default_stream(device: Any = None) -> Stream:
    """The device's default stream."""
    return Stream(_index(device), stream_ptr=0)


def set_stream(stream: Stream | None) -> None:
    """Make a stream current, on its device, in this thread. None changes nothing."""
    if stream is not None:
        _backend()._set_device(stream.device_index)
        _backend()._set_stream(stream.device_index, stream.cuda_stream)


class StreamContext:
    """Makes a stream, and its device, current inside a ``with`` block; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            backend = _backend()
            self._device = backend._set_device(self.stream.device_index)
            self._before = backend._set_stream(self.stream.device_index, self.stream.cuda_stream)

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            _backend()._set_stream(self.stream.device_index, self._before)
            _backend()._set_device(self._device)


def stream(stream: Stream | None) -> StreamContext:
    """``with stream(s):`` work inside is queued on s."""
    return StreamContext(stream)
