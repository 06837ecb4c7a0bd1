"""A device whose memory faults when the host touches it: mapped without access but while one of its own kernels or copies runs.

A program imports this in a process of its own: `npu` has no kernel at first, `host(t)` is a tensor's memory as a kernel sees it."""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import mmap
import re
import threading
from typing import Any

import tensorrt_lite as trt
from tensorrt_lite import backend
from tensorrt_lite._declared import declarations as _declarations
from tensorrt_lite._C.core import storage as _storage

faulthandler.enable()
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


class Guarded(backend.DeviceInterface):
    def __init__(self, count: int = 2) -> None:
        self.count = count
        self.regions: dict[int, int] = {}
        self.open = 0
        self.protecting = False
        self.released: list[int] = []
        self.lock = threading.RLock()
        self.calls: list[Any] = []
        self.streams: list[Any] = []

    def device_count(self) -> int:
        return self.count

    def allocate(self, nbytes: int, index: int) -> int:
        size = -(-nbytes // 4096) * 4096
        with self.lock:
            address = libc.mmap(None, size, 3 if self.open else 0, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
            self.regions[address] = size
        return address

    def release(self, address: int, nbytes: int, index: int) -> None:
        with self.lock:
            if self.protecting:  # by this thread: the garbage collector freed a tensor meanwhile
                self.released.append(address)
            else:
                libc.munmap(address, self.regions.pop(address))

    @contextlib.contextmanager
    def running(self) -> Any:
        """One of the device's own kernels runs: its memory can be read."""
        with self.lock:
            self.open += 1
            if self.open == 1:
                self.protect(3)
            try:
                yield
            finally:
                self.open -= 1
                if not self.open:
                    self.protect(0)

    def protect(self, access: int) -> None:
        self.protecting = True
        for address, size in list(self.regions.items()):
            assert libc.mprotect(address, size, access) == 0
        self.protecting = False
        while self.released:
            self.release(self.released.pop(), 0, 0)

    def to_host(self, destination: int, source: int, nbytes: int, index: int, non_blocking: bool) -> None:
        self.calls.append(("copy", index, non_blocking))
        with self.running():
            ctypes.memmove(destination, source, nbytes)

    to_device = to_host

    def set_current_stream(self, index: int, stream: int) -> None:
        self.streams.append((index, stream))


def host(t: Any) -> Any:
    """The memory of a tensor as a kernel of the device sees it."""
    if not isinstance(t, trt.Tensor) or t.is_cpu:
        return t
    r = trt.empty(0, dtype=t.dtype)
    return r.set_(_storage.host_alias(t.untyped_storage()), t.storage_offset(), tuple(t.shape), t.stride())


interface = Guarded()
npu = backend.register_device("npu", interface)
ran: list[str] = []


def numbers_of(operator: str) -> list[str]:
    """The names of the arguments that are numbers."""
    return re.findall(r"Scalar\??\s+(\w+)", _declarations.of(operator).schema)


def add_elementwise(device: Any = npu) -> None:
    """All pointwise operators, computed by the CPU's kernels on the device's memory."""

    @device.elementwise
    def run(name: str, result: Any, operands: list[Any], numbers: list[Any]) -> Any:
        function = getattr(trt.ops.aten, name, None)
        if function is None:
            return NotImplemented                    # a fused derivative: composed of others
        ran.append(name)
        with interface.running():
            given = [host(x) if isinstance(x, trt.Tensor) else trt.tensor(x) for x in operands]
            names = numbers_of(name)
            if name == "polygamma":
                value = trt.polygamma(numbers[0], *given)
            elif len(names) == len(numbers):
                value = function(*given, **dict(zip(names, numbers, strict=True)))
            else:
                value = getattr(trt, name)(*given, *numbers)
            host(result).copy_(value)
        return None
