"""How a loader and a worker process talk: a socket, whose messages carry objects and, for large tensors, the descriptors of their memory.

A descriptor lies in the socket's buffer, so a message outlives the worker that has sent it, and nothing outlives both ends. The receiver closes it
once the memory is mapped: batches that a program keeps take no open files. Small tensors travel as bytes, and are put into one piece of shared
memory for the message. A view of part of a larger storage
travels alone. Memory that the program itself has shared is handed on as it is.
"""

from __future__ import annotations

import array
import os
import pickle
import socket
import struct
import threading
from io import BytesIO
from multiprocessing.reduction import ForkingPickler
from typing import Any
from weakref import WeakSet

from tensorrt_lite import _root as trt
from tensorrt_lite.tensor import UntypedStorage
from tensorrt_lite._C.core import mapped
from tensorrt_lite._C.core.storage import exported
from tensorrt_lite.multiprocessing import reductions

__all__ = ["INLINE_BYTES", "Connection", "new_batch_storage"]

INLINE_BYTES = 32768  # below, bytes cost less than a descriptor: 10 us to make the memory, as much to map it
_MOST_DESCRIPTORS = 250  # of a message; the system takes 253
_HEADER = struct.Struct("<QIQ")  # bytes of the pickle, number of descriptors, bytes of small tensors
_ALIGNMENT = 64

_made: WeakSet[UntypedStorage] = WeakSet()  # memory of batches, which nobody needs here once it is sent
_receiving = threading.local()


def new_batch_storage(nbytes: int) -> UntypedStorage:
    """Shared memory that a message hands over."""
    storage: UntypedStorage = mapped.new_shared(nbytes)
    _made.add(storage)
    return storage


class _Pickler(ForkingPickler):
    """Objects of a message; `descriptors` are those of its memory, which `keep` holds until they are sent."""

    def __init__(self, buffer: BytesIO) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self.descriptors: list[int] = []
        self.inline = 0  # bytes of small tensors, with room for their alignment
        self.keep: list[Any] = []

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is trt.Tensor:
            return self._reduce_tensor(obj)
        if type(obj) is UntypedStorage and obj.device.type == "cpu":
            return self._reduce_storage(obj)
        return NotImplemented

    def _reduce_tensor(self, tensor: Any) -> Any:
        if not tensor.is_cpu or tensor.requires_grad or getattr(tensor, "__dict__", None):
            return NotImplemented
        storage, shape, stride, offset = tensor.untyped_storage(), tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        if not storage.is_shared():
            itemsize = tensor.element_size()
            span = (1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))) * itemsize if tensor.numel() else 0
            if 2 * span < storage.nbytes():
                part = exported(storage)[offset * itemsize : offset * itemsize + span]
                storage = UntypedStorage(span) if span <= INLINE_BYTES else new_batch_storage(span)
                if span:
                    exported(storage, True)[:] = part
                offset = 0
        return _received_tensor, (storage, tensor.dtype, offset, shape, stride)

    def _reduce_storage(self, storage: Any) -> Any:
        nbytes, descriptor = storage.nbytes(), mapped.descriptor_of(storage)
        if descriptor < 0 and storage.is_shared():
            return NotImplemented
        if descriptor < 0 and nbytes <= INLINE_BYTES or len(self.descriptors) == _MOST_DESCRIPTORS:
            offset, self.inline = self.inline, self.inline + (nbytes + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
            return _storage_of_bytes, (bytes(exported(storage)) if nbytes else b"", offset)
        lent = descriptor >= 0 and storage not in _made
        if descriptor < 0:
            copy = mapped.new_shared(nbytes)
            exported(copy, True)[:] = exported(storage)
            descriptor, storage = mapped.descriptor_of(copy), copy
        self.keep.append(storage)
        self.descriptors.append(descriptor)
        return _received_storage, (len(self.descriptors) - 1, nbytes, lent)


def _received_tensor(storage: Any, dtype: Any, offset: int, shape: Any, stride: Any) -> Any:
    return trt.empty(0, dtype=dtype, device="cpu").set_(storage, offset, shape, stride)


def _storage_of_bytes(data: bytes, offset: int) -> Any:
    if not data:
        return UntypedStorage(0)
    if _receiving.pool is None:
        _receiving.pool = mapped.new_pool(_receiving.inline)
    return mapped.part_of(_receiving.pool, offset, data)


def _received_storage(place: int, nbytes: int, lent: bool) -> Any:
    descriptors = _receiving.descriptors
    descriptor, descriptors[place] = descriptors[place], -1
    if not lent:
        return mapped.from_descriptor(descriptor, nbytes, False)
    key = reductions.fd_id(descriptor)
    storage = reductions.storage_from_cache(UntypedStorage, key)
    if storage is not None:
        os.close(descriptor)
        return storage
    storage = reductions.shared_cache[key] = mapped.from_descriptor(descriptor, nbytes)
    return storage


class Connection:
    """One end of a socket for objects. It can be given to a new process."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, message: Any, wait: Any = None) -> None:
        """Send an object. wait: called where the socket takes no more, until it does; without, sending blocks. OSError when the other end is gone."""
        buffer = BytesIO()
        pickler = _Pickler(buffer)
        pickler.dump(message)
        data = memoryview(_HEADER.pack(buffer.tell(), len(pickler.descriptors), pickler.inline) + buffer.getbuffer())
        ancillary: Any = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", pickler.descriptors))] if pickler.descriptors else []
        flags = socket.MSG_NOSIGNAL | (socket.MSG_DONTWAIT if wait else 0)
        while data:
            try:
                data = data[self.socket.sendmsg([data], ancillary, flags) :]
                ancillary = []
            except BlockingIOError:
                wait()

    def recv(self) -> Any:
        """The next object, waiting for it. EOFError when the other end is gone, RuntimeError where this process may have no more open files."""
        header = bytearray()
        descriptors = array.array("i")
        while len(header) < _HEADER.size:
            part, ancillary, flags, _ = self.socket.recvmsg(_HEADER.size - len(header), socket.CMSG_SPACE(4 * _MOST_DESCRIPTORS), socket.MSG_CMSG_CLOEXEC)
            for level, kind, data in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    descriptors.frombytes(data[: len(data) - len(data) % 4])
            if not part:
                raise EOFError
            header += part
            if flags & socket.MSG_CTRUNC:
                self._drop(descriptors)
                raise RuntimeError(
                    "Too many open files. Communication with the workers is no longer possible. Please increase the limit using `ulimit -n` in the shell"
                )
        size, _, inline = _HEADER.unpack(header)
        buffer = bytearray(size)
        rest = memoryview(buffer)
        while rest:
            count = self.socket.recv_into(rest)
            if not count:
                self._drop(descriptors)
                raise EOFError
            rest = rest[count:]
        _receiving.descriptors, _receiving.inline, _receiving.pool = descriptors, inline, None
        try:
            return pickle.loads(buffer)
        finally:
            _receiving.pool = None
            self._drop(descriptors)

    @staticmethod
    def _drop(descriptors: array.array[int]) -> None:
        for descriptor in descriptors:
            if descriptor >= 0:
                os.close(descriptor)

    def end(self) -> None:
        """Tell the other end that nothing more comes, whatever processes have copies of this one."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self.socket.close()
