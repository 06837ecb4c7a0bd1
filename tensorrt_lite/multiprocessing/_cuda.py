"""How a CUDA tensor goes from one process to another: as a handle of its memory, not as its bytes.

The sender keeps the memory until the receiver has let go of the tensor. Each message has a counter in a file that both map: the sender sets it
to 1, the receiver subtracts 1 when its tensor dies and its work on it has run, and `collect` drops what is at 0: at the next message, before the
allocator asks the driver for memory, and in ``cuda.ipc_collect()``. The sender's work so far is behind an event, for which the receiver's
current stream waits.
"""

from __future__ import annotations

import atexit
import mmap
import os
import tempfile
import warnings
import weakref
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.cuda import streams
from tensorrt_lite.cuda import _driver

_cuda = LazyModule("tensorrt_lite.cuda")
_caching = LazyModule("tensorrt_lite._C.cuda.caching")

_COUNTERS = 1024


class _Counters:
    """A file of counters that this process has made, and what each counter keeps alive."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        folder = "/dev/shm" if os.path.isdir("/dev/shm") else None
        descriptor, self.path = tempfile.mkstemp(prefix="tensorrt_lite_", dir=folder)
        try:
            os.ftruncate(descriptor, 8 * _COUNTERS)
            self.values = memoryview(mmap.mmap(descriptor, 8 * _COUNTERS)).cast("q")
        finally:
            os.close(descriptor)
        self.free = list(range(_COUNTERS))
        self.sent: dict[int, tuple[Any, Any]] = {}


class _Mapping:
    """Another process's allocation, open in this one while a tensor lies in it."""

    def __init__(self, device: int, handle: bytes) -> None:
        self.device, self.address = device, _driver.open_memory(device, handle)

    def __del__(self) -> None:
        if hasattr(self, "address"):
            _driver.close_memory(self.device, self.address)


class _Received:
    """What keeps a received storage's memory, and tells the sender when it is gone."""

    def __init__(self, mapping: _Mapping, counters: Any, place: int) -> None:
        self.mapping, self.counters, self.place = mapping, counters, place

    def __del__(self) -> None:
        try:
            _cuda._driver.synchronize_on(self.mapping.device)  # work that reads it
            _cuda._backend()._shared_add(self.counters, self.place, -1)
        except (RuntimeError, AttributeError, TypeError, ImportError):  # the driver is gone at the interpreter's end
            pass


_files: list[_Counters] = []
_opened: dict[str, Any] = {}
_mappings: weakref.WeakValueDictionary[tuple[int, bytes], _Mapping] = weakref.WeakValueDictionary()


def collect() -> bool:
    """Let go of what receivers no longer use; whether there was any."""
    found = []
    for counters in _files:
        for place in [place for place in counters.sent if counters.values[place] <= 0]:
            found.append(counters.sent.pop(place))
            counters.free.append(place)
    return bool(found)


def _keep(storage: Any, event: Any) -> tuple[str, int]:
    """(the file, the counter) that keeps a storage until the receiver is done."""
    collect()
    if not any(counters.free for counters in _files):
        if not _files:
            _caching._set_collector(collect)
            atexit.register(_at_exit)
        _files.append(_Counters())
    counters = next(c for c in _files if c.free)
    place = counters.free.pop()
    counters.values[place] = 1
    counters.sent[place] = storage, event
    return counters.path, place


def _at_exit() -> None:
    own = [counters for counters in _files if counters.owner == os.getpid()]  # a forked process leaves them alone
    collect()
    if any(counters.sent for counters in own):
        warnings.warn(
            "Producer process has been terminated before all shared CUDA tensors released: receivers must not use them any more, and the producer "
            "should outlive them.", stacklevel=1)  # fmt: skip
    for counters in own:
        os.unlink(counters.path)


def _counters_of(path: str) -> Any:
    if path not in _opened:
        with open(path, "r+b") as file:
            _opened[path] = memoryview(mmap.mmap(file.fileno(), 8 * _COUNTERS)).cast("q")
    return _opened[path]


def reduce_cuda_tensor(tensor: Any) -> tuple[Any, ...]:
    """What is sent for a tensor. RuntimeError for memory that cannot be shared."""
    storage, device = tensor.untyped_storage(), tensor.get_device()
    layout = (tensor.dtype, device, tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.requires_grad)
    if storage.nbytes() == 0:
        return rebuild_empty, layout
    obstacle = _cuda._backend()._share_obstacle(storage)
    if obstacle:
        raise RuntimeError(obstacle)
    handle, offset = _driver.share_memory(device, storage.data_ptr())
    event = streams.Event(interprocess=True)
    event.record(streams.current_stream(device))
    path, place = _keep(storage, event)
    return rebuild_cuda_tensor, (*layout, handle, offset, storage.nbytes(), path, place, event.ipc_handle())


def rebuild_empty(dtype: Any, device: int, shape: Any, stride: Any, offset: int, requires_grad: bool) -> Any:
    """A received tensor without memory."""
    return trt.empty_strided(shape, stride, dtype=dtype, device=f"cuda:{device}", requires_grad=requires_grad)


def rebuild_cuda_tensor(dtype: Any, device: int, shape: Any, stride: Any, offset: int, requires_grad: bool, handle: bytes, start: int, nbytes: int,
                        path: str, place: int, event: bytes) -> Any:  # fmt: skip
    """A received tensor, over the sender's memory."""
    counters = _counters_of(path)
    mapping = _mappings.get((device, handle))
    if mapping is None:
        mapping = _mappings[device, handle] = _Mapping(device, handle)
    streams.Event.from_ipc_handle(trt.device("cuda", device), event).wait(streams.current_stream(device))
    storage = _cuda._backend()._opened_storage(mapping.address + start, nbytes, device, _Received(mapping, counters, place))
    tensor = trt.empty(0, dtype=dtype, device=f"cuda:{device}")
    tensor.set_(storage, offset, shape, stride)
    return tensor.requires_grad_(requires_grad)
