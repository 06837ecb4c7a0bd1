"""What untyped storages do by means of tensors: moves between devices, conversions to typed storages, storages of a buffer's elements. Imported on first use."""

from __future__ import annotations

import sys
from typing import Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core.storage import Storage as UntypedStorage
from tensorrt_lite._checkpoint.names import dtype_named
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_typed_storage = _LazyModule("tensorrt_lite._legacy.typed_storage")

__all__ = ["byteswap", "converted", "elements", "from_buffer", "moved"]


def elements(storage: UntypedStorage) -> Any:
    """The bytes as a tensor that shares them."""
    return _ops.empty(0, dtype=dtype_named("uint8"), device=storage.device).set_(storage, 0, (storage.nbytes(),), (1,))


def moved(storage: UntypedStorage, device: Any, non_blocking: bool = False) -> UntypedStorage:
    """The storage where it is on the device, else a copy there."""
    there = elements(storage).to(device=device, non_blocking=non_blocking)
    return storage if there.device == storage.device else there.untyped_storage()


def converted(storage: UntypedStorage, dtype: str) -> Any:
    """A typed storage with each byte as a number of the dtype."""
    return _typed_storage.TypedStorage._of(elements(storage).to(dtype_named(dtype), copy=True).untyped_storage(), dtype_named(dtype))


def byteswap(storage: UntypedStorage, dtype: Any) -> None:
    """Reverse the bytes of each element of the dtype; bytes behind the last whole one stay."""
    size = dtype.itemsize // 2 if dtype.is_complex and dtype.itemsize > 1 else dtype.itemsize
    whole = elements(storage)[: storage.nbytes() // size * size].view(-1, size)
    whole.copy_(whole.flip(1))


def from_buffer(buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: Any = None) -> UntypedStorage:
    """See `UntypedStorage.from_buffer`."""
    if dtype is None:
        raise RuntimeError("argument 'dtype' cannot be None")
    if byte_order not in ("big", "little", "native") and not (byte_order is None and dtype.itemsize == 1):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    given = bytes(memoryview(buffer))
    if not 0 <= offset <= len(given):
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({offset}) , but got {len(given)}")
    rest = len(given) - offset
    if count < 0:
        if rest % dtype.itemsize:
            raise ValueError(f"buffer size ({rest}) must be a multiple of element size ({dtype.itemsize})")
        count = rest // dtype.itemsize
    if count * dtype.itemsize > rest:
        raise ValueError(f"buffer has only {rest} elements after offset {offset}, but specified a size of {count}")
    made = UntypedStorage(count * dtype.itemsize)
    if count:
        part = _ops.frombuffer(bytearray(given), dtype=dtype_named("uint8"), count=count * dtype.itemsize, offset=offset)
        elements(made).copy_(part != 0 if dtype == dtype_named("bool") else part)
        if byte_order not in (None, "native", sys.byteorder):
            byteswap(made, dtype)
    return made
