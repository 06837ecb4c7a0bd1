"""Streams and events of custom devices; a thread has a current stream on each of them. For CUDA the classes are those of `tensorrt_lite.cuda`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule

_cuda = LazyModule("tensorrt_lite.cuda")
_device = LazyModule("tensorrt_lite.backend.device")

if TYPE_CHECKING:
    from tensorrt_lite.backend.device import Device

__all__ = ["Event", "Stream", "StreamContext"]


def _accelerator(device: Any) -> Any:
    """The device that a stream is for: one of a type with streams, by default the current accelerator's."""
    from tensorrt_lite import accelerator

    if device is None:
        return accelerator.current_accelerator()
    return trt.device(device)


def _device_of(place: Any) -> Device:
    return _device.device_of(place)


class _AnyDevice(type):
    """CUDA's classes count as subclasses of the general ones."""

    def __instancecheck__(cls, instance: object) -> bool:
        return type.__instancecheck__(cls, instance) or isinstance(instance, cls._of_cuda())  # type: ignore[attr-defined]


class Stream(metaclass=_AnyDevice):
    """A queue of work on a device. device: where, by default the current accelerator's current device; priority: lower numbers go first.

    ``with stream:`` makes it, and its device, the thread's current ones.
    """

    def __new__(cls, device: Any = None, *, priority: int = 0, **of_cuda: Any) -> Any:
        place = _accelerator(device)
        if place.type == "cuda":
            return _cuda.Stream(place, priority=priority, **of_cuda)
        d = _device_of(place)
        index = d.index_of(place)
        return cls._make(d, index, d.interface.create_stream(index, priority))

    @staticmethod
    def _of_cuda() -> type:
        return _cuda.Stream

    @classmethod
    def _make(cls, device: Device, index: int, handle: int) -> Stream:
        self = object.__new__(cls)
        self._device, self._index, self.stream_id = device, index, handle
        self._outer: list[tuple[int, Stream]] = []
        return self

    @property
    def device(self) -> Any:
        """Where the stream is."""
        return trt.device(self._device.name, self._index)

    @property
    def device_index(self) -> int:
        return self._index

    def query(self) -> bool:
        """Whether all work is done."""
        return bool(self._device.interface.query_stream(self._index, self.stream_id))

    def synchronize(self) -> None:
        """Wait for all work."""
        self._device.interface.synchronize_stream(self._index, self.stream_id)

    def record_event(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default, and return it."""
        event = Event(self.device) if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Later work waits for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Later work waits for all that another stream has been given."""
        self.wait_event(stream.record_event())

    def __enter__(self) -> Stream:
        d = self._device
        self._outer.append((d.current_device(), d.current_stream(self._index)))
        d.set_device(self._index)
        d.set_stream(self)
        return self

    def __exit__(self, *exception: object) -> None:
        index, stream = self._outer.pop()
        self._device.set_stream(stream)
        self._device.set_device(index)

    def __eq__(self, other: object) -> bool:
        return type(other) is Stream and (self._device, self._index, self.stream_id) == (other._device, other._index, other.stream_id)

    def __hash__(self) -> int:
        return hash((self._device.code, self._index, self.stream_id))

    def __repr__(self) -> str:
        return f"torch.Stream device_type={self._device.name}, device_index={self._index}, stream_id={self.stream_id}"


class Event(metaclass=_AnyDevice):
    """A mark in a stream. enable_timing: `elapsed_time` can be asked; device: by default the current accelerator's."""

    def __new__(cls, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> Any:
        place = _accelerator(device)
        if place.type == "cuda":
            return _cuda.Event(enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)
        if interprocess:
            raise NotImplementedError("events of custom devices are not shared between processes")
        self = object.__new__(cls)
        self._device, self._timing = _device_of(place), enable_timing
        self._handle = None
        self._index = self._device.index_of(place)
        return self

    @staticmethod
    def _of_cuda() -> type:
        return _cuda.Event

    @property
    def device(self) -> Any:
        """Where the event is recorded."""
        return trt.device(self._device.name, self._index)

    def record(self, stream: Stream | None = None) -> None:
        """Mark what a stream, the current one by default, has been given so far."""
        stream = self._device.current_stream(self._index) if stream is None else stream
        if stream._device is not self._device:
            raise RuntimeError(f"Event device type {self._device.name} does not match recording stream's device type {stream._device.name}")
        self._index = stream._index
        self._handle = self._device.interface.record_event(self._index, stream.stream_id, self._handle, self._timing)

    def wait(self, stream: Stream | None = None) -> None:
        """Later work of a stream, the current one by default, waits for the event; nothing where it was never recorded."""
        stream = self._device.current_stream(self._index) if stream is None else stream
        if self._handle is not None:
            stream._device.interface.wait_event(stream._index, stream.stream_id, self._handle)

    def query(self) -> bool:
        """Whether the work before the event is done."""
        return self._handle is None or bool(self._device.interface.query_event(self._index, self._handle))

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        if self._handle is not None:
            self._device.interface.synchronize_event(self._index, self._handle)

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another. ValueError for events without timing or that were not recorded."""
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._handle is None or end_event._handle is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end_event.query()):
            raise ValueError("Both events must be completed before calculating elapsed time.")
        return self._device.interface.elapsed_time(self._index, self._handle, end_event._handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self._device.interface.destroy_event(self._index, self._handle)

    def __repr__(self) -> str:
        return f"torch.Event device_type={self._device.name}, device_index={self._index}, event_flag={int(self._timing)}"


class StreamContext:
    """``with device.stream(s):`` the thread's work goes to `s`; nothing for None."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.__enter__()

    def __exit__(self, *exception: object) -> None:
        if self.stream is not None:
            self.stream.__exit__(*exception)
