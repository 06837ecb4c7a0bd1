"""How tensors and storages go from one process to another: as handles of shared memory, not as their bytes.

`ForkingPickler`, with which multiprocessing's queues and pipes pickle, calls these functions; `pickle` itself does not. A storage on the CPU moves
to shared memory when it is first sent (`cysrc/core/mapped.pyx`). A process that receives a storage which it has already gets that one,
so that two tensors over one storage are so on the other side, too. CUDA's tensors are the business of `_cuda.py`.
"""

from __future__ import annotations

import os
import weakref
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite.tensor import UntypedStorage
from tensorrt_lite._C.core import mapped
from tensorrt_lite._legacy.typed_storage import TypedStorage
from tensorrt_lite.tensor import Parameter, _restored, _state_of

_cuda = LazyModule("tensorrt_lite.cuda")
_multiprocessing_cuda = LazyModule("tensorrt_lite.multiprocessing._cuda")

__all__ = [
    "StorageWeakRef", "fd_id", "init_reductions", "rebuild_event", "rebuild_meta_tensor", "rebuild_storage_empty", "rebuild_storage_fd",
    "rebuild_storage_filename", "rebuild_tensor", "rebuild_typed_storage", "reduce_event", "reduce_storage", "reduce_tensor", "reduce_typed_storage",
    "shared_cache", "storage_from_cache",
]  # fmt: skip


class StorageWeakRef:
    """A reference that does not keep a storage; equal to others of the same storage."""

    def __init__(self, storage: Any) -> None:
        storage = getattr(storage, "_untyped_storage", storage)
        self.cdata = storage._cdata
        self._reference = weakref.ref(storage)

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return self._reference() is None

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata


# Storages that have been sent or received, by what names their memory in all processes.
shared_cache: weakref.WeakValueDictionary[Any, UntypedStorage] = weakref.WeakValueDictionary()
os.register_at_fork(after_in_child=shared_cache.clear)


def fd_id(fd: int) -> Any:
    """What is equal for two descriptors of the same memory."""
    return mapped.identity_of_descriptor(fd)


def storage_from_cache(cls: Any, key: Any) -> Any:
    """The storage of this process that lies in some shared memory, or None."""
    storage = shared_cache.get(key)
    return storage if storage is not None and mapped.identity_of(storage) == key else None  # resizing may have moved it away


def reduce_storage(storage: Any) -> tuple[Any, ...]:
    """What is sent for a storage. RuntimeError for those of CUDA and meta."""
    device = storage.device.type
    if device != "cpu":
        name = "CUDA" if device == "cuda" else device
        raise RuntimeError(f"Cannot pickle {name} storage; try pickling a {name} tensor instead")
    if storage.nbytes() == 0:
        return rebuild_storage_empty, (type(storage),)
    if mapped.is_named(storage, mapped.sharing_strategy() == "file_system"):
        manager, name, size = storage._share_filename_cpu_()
        storage._shared_incref()
        shared_cache[name] = storage
        return rebuild_storage_filename, (type(storage), manager, name, size)
    descriptor, size = storage._share_fd_cpu_()
    shared_cache[fd_id(descriptor)] = storage
    return rebuild_storage_fd, (type(storage), reduction.DupFd(descriptor), size)


def rebuild_storage_empty(cls: Any) -> Any:
    """A storage of no bytes."""
    return cls(0)


def rebuild_storage_fd(cls: Any, df: Any, size: int) -> Any:
    """The storage over a descriptor that another process has sent."""
    descriptor = df.detach()
    key = fd_id(descriptor)
    storage = storage_from_cache(cls, key)
    if storage is not None:
        os.close(descriptor)
        return storage
    storage = shared_cache[key] = mapped.from_descriptor(descriptor, size)
    return storage


def rebuild_storage_filename(cls: Any, manager: bytes, handle: bytes, size: int, dtype: Any = None) -> Any:
    """The storage over named memory, whose reference by the message ends here."""
    storage = storage_from_cache(cls, handle)
    if storage is None:
        storage = shared_cache[handle] = cls._new_shared_filename_cpu(manager, handle, size)
    storage._shared_decref()
    return storage if dtype is None else TypedStorage._of(storage, dtype)


def reduce_typed_storage(storage: Any) -> tuple[Any, ...]:
    """What is sent for a typed storage."""
    return rebuild_typed_storage, (storage._untyped_storage, storage.dtype)


def rebuild_typed_storage(storage: Any, dtype: Any) -> Any:
    """A typed view of a storage."""
    return TypedStorage._of(storage, dtype)


def reduce_tensor(tensor: Any) -> tuple[Any, ...]:
    """What is sent for a tensor. RuntimeError for results that require grad, and for memory that cannot be shared."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process boundaries.  If you "
            "just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on the queue).")  # fmt: skip
    tensor._warn_of_hooks()
    if tensor.is_cuda:
        function, arguments = _multiprocessing_cuda.reduce_cuda_tensor(tensor)
        return _rebuild_as, (type(tensor), function, arguments, _state_of(tensor))
    if tensor.is_meta:
        return rebuild_meta_tensor, (type(tensor), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad)
    if not tensor.is_cpu:
        return tensor.detach().__reduce_ex__(2)
    plain = tensor.detach()
    metadata = (plain.dtype, plain.storage_offset(), tuple(plain.shape), plain.stride(), tensor.requires_grad, _state_of(tensor))
    return rebuild_tensor, (type(tensor), plain.untyped_storage(), metadata)


class _Sent:
    """A storage on its way by a pickler that was made before storages were registered."""

    def __init__(self, storage: Any) -> None:
        self._storage = storage

    def __reduce__(self) -> tuple[Any, ...]:
        return reduce_storage(self._storage)


def reduce_tensor_unregistered(tensor: Any) -> tuple[Any, ...]:
    """`reduce_tensor` for a pickler that was made before `init_reductions`."""
    function, arguments = reduce_tensor(tensor)
    return function, tuple(_Sent(x) if isinstance(x, UntypedStorage) else x for x in arguments)


def _as_class(cls: Any, tensor: Any, requires_grad: bool, state: Any) -> Any:
    """The received tensor as what was sent: a parameter, a subclass."""
    if cls is Parameter:
        tensor = Parameter(tensor, requires_grad)
    else:
        tensor = tensor if cls is trt.Tensor else tensor.as_subclass(cls)
        tensor.requires_grad = requires_grad
    return tensor if state is None else _restored(tensor, state)


def rebuild_tensor(cls: Any, storage: Any, metadata: Any) -> Any:
    """The tensor over a received storage."""
    dtype, offset, shape, stride, requires_grad, state = metadata
    return _as_class(cls, trt.empty(0, dtype=dtype, device="cpu").set_(storage, offset, shape, stride), requires_grad, state)


def rebuild_meta_tensor(cls: Any, shape: Any, stride: Any, dtype: Any, requires_grad: bool) -> Any:
    """A received tensor of no memory."""
    return _as_class(cls, trt.empty_strided(shape, stride, dtype=dtype, device="meta"), requires_grad, None)


def _rebuild_as(cls: Any, function: Any, arguments: Any, state: Any) -> Any:
    tensor = function(*arguments)
    return _as_class(cls, tensor.detach(), tensor.requires_grad, state)


def reduce_event(event: Any) -> tuple[Any, ...]:
    """What is sent for an event of CUDA that was made with interprocess=True."""
    handle = event.ipc_handle()  # makes an event that nobody has recorded
    return rebuild_event, (event.device, handle)


def rebuild_event(device: Any, handle: bytes) -> Any:
    """Another process's event."""
    return _cuda.Event.from_ipc_handle(device, handle)


def __getattr__(name: str) -> Any:
    if name in ("rebuild_cuda_tensor", "reduce_cuda_tensor", "rebuild_empty"):
        return getattr(_multiprocessing_cuda, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def init_reductions() -> None:
    """Have multiprocessing's pickler send tensors and storages this way."""
    ForkingPickler.register(trt.Tensor, reduce_tensor)
    ForkingPickler.register(Parameter, reduce_tensor)
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, reduce_typed_storage)
