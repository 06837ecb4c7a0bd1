"""What a device type has to do: subclasses of DeviceInterface, which `register_device` takes."""

from __future__ import annotations

import ctypes
import time
from typing import Any

from tensorrt_lite import _root as trt

__all__ = ["DeviceInterface", "HostMemoryInterface"]


class DeviceInterface:
    """A device type: how much memory it gives, how bytes come there and back, its streams and events.

    `allocate`, `to_host` and `to_device` are needed. The host never reads through an address of the device, it only adds offsets to it. Addresses are
    integers, `index` says which device of the type, sizes are bytes. A method may also be an attribute that is a C function, a `ctypes` function pointer
    or its address, of the type in ``cysrc/core/device_interface.h``: `allocate`, `release`, `to_host`, `to_device`, `within`. The methods of streams and events
    are for devices that work asynchronously; without them all work is done when a call returns.
    """

    within: Any = None
    """within(destination, source, nbytes, index, non_blocking): copies bytes on the device; None: by way of the host."""

    def device_count(self) -> int:
        """The number of devices, at most 64."""
        return 1

    def allocate(self, nbytes: int, index: int) -> Any:
        """The address of nbytes > 0 bytes, aligned to 16, or 0 where memory has run out; (address, object) for memory that lasts as long as the object."""
        raise NotImplementedError

    def release(self, address: int, nbytes: int, index: int) -> None:
        """Give back what `allocate` has returned as an address. Any thread may call it at any allocation of Python's, also from within another method of the
        interface: locks that both take must be reentrant. What is left when the interpreter ends goes with the process, unless this is a C function."""

    def to_host(self, destination: int, source: int, nbytes: int, index: int, non_blocking: bool) -> None:
        """Copy bytes from the device to the host, behind the work of the current stream; non_blocking: it may return before."""
        raise NotImplementedError

    def to_device(self, destination: int, source: int, nbytes: int, index: int, non_blocking: bool) -> None:
        """Copy bytes from the host to the device, in the same way."""
        raise NotImplementedError

    def set_current(self, index: int) -> None:
        """The calling thread's current device is another one."""

    def synchronize(self, index: int) -> None:
        """Wait for all work of a device."""

    def autocast_dtypes(self) -> list[Any]:
        """The lower precisions of autocast."""
        return [trt.float16, trt.bfloat16]

    # -- streams: handles are integers, 0 is the default stream ----------------------------------------------------------

    def create_stream(self, index: int, priority: int) -> int:
        """A new stream's handle, not 0."""
        self._streams = getattr(self, "_streams", 0) + 1
        return self._streams

    def set_current_stream(self, index: int, stream: int) -> None:
        """The calling thread's work goes to another stream."""

    def query_stream(self, index: int, stream: int) -> bool:
        """Whether all work of a stream is done."""
        return True

    def synchronize_stream(self, index: int, stream: int) -> None:
        """Wait for all work of a stream."""

    def record_stream(self, address: int, nbytes: int, index: int, stream: int) -> None:
        """Memory is used by a stream's work, and not to be given out again before that has run."""

    # -- events: what `record_event` returns is the program's handle of an event, any object ------------------------------

    def record_event(self, index: int, stream: int, event: Any, timing: bool) -> Any:
        """Note what a stream has been given so far. event: the handle of an earlier recording that this replaces, or None."""
        return time.perf_counter()

    def wait_event(self, index: int, stream: int, event: Any) -> None:
        """Later work of a stream waits for an event."""

    def query_event(self, index: int, event: Any) -> bool:
        """Whether the work before an event is done."""
        return True

    def synchronize_event(self, index: int, event: Any) -> None:
        """Wait for the work before an event."""

    def elapsed_time(self, index: int, start: Any, end: Any) -> float:
        """Milliseconds between two recorded events."""
        return (end - start) * 1000

    def destroy_event(self, index: int, event: Any) -> None:
        """An event's handle is not used any more."""


class HostMemoryInterface(DeviceInterface):
    """A device whose memory is the host's: `allocator` returns writable objects with the buffer protocol, bytearrays where it is None."""

    def __init__(self, name: str, allocator: Any = None) -> None:
        self._name, self._allocator = name, allocator

    def allocate(self, nbytes: int, index: int) -> Any:
        memory = bytearray(nbytes) if self._allocator is None else self._allocator(nbytes)
        with memoryview(memory) as view:
            if view.readonly or view.nbytes < nbytes:
                raise RuntimeError(f"the allocator of backend '{self._name}' returned {view.nbytes} bytes, {'read-only' if view.readonly else 'too few'}, for {nbytes}")
            array = (ctypes.c_char * view.nbytes).from_buffer(view)
        return ctypes.addressof(array), array

    def to_host(self, destination: int, source: int, nbytes: int, index: int, non_blocking: bool) -> None:
        ctypes.memmove(destination, source, nbytes)

    to_device = to_host
    within = to_host
