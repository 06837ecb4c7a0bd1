"""TypedStorage: a storage seen as elements of a dtype, as `Tensor.storage()` gives it. Deprecated in PyTorch, and so here: the first use
in a process warns. Imported on first use."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from operator import index
from typing import Any

from tensorrt_lite import _ops
from tensorrt_lite._C.core.device import device as _device
from tensorrt_lite._C.core.dtype import get_default_dtype
from tensorrt_lite._C.core.storage import Storage as UntypedStorage
from tensorrt_lite._checkpoint.names import STORAGE_OF_DTYPE, dtype_name, dtype_named

__all__ = ["TypedStorage"]

_warned = False


def _is_size(x: Any) -> bool:
    """Whether it is an integer: Python's, or a scalar of NumPy."""
    return hasattr(type(x), "__index__") and not hasattr(type(x), "__len__")


def warn_once(stacklevel: int) -> None:
    """PyTorch's warning, once in a process."""
    global _warned
    from tensorrt_lite._functions.package_facts import is_warn_always_enabled

    if not _warned or is_warn_always_enabled():
        _warned = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This should only matter to you "
            "if you are using storages directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()",
            UserWarning,
            stacklevel=stacklevel + 1,
        )


class TypedStorage:
    """Elements of one dtype over an untyped storage, which views of it share. ``TypedStorage(n)``, ``TypedStorage(sequence)`` or wrap_storage."""

    def __init__(self, *args: Any, wrap_storage: UntypedStorage | None = None, dtype: Any = None, device: Any = None) -> None:
        warn_once(2)
        self.dtype = dtype_named("float32") if dtype is None else dtype
        if wrap_storage is not None:
            if args or not isinstance(wrap_storage, UntypedStorage):
                raise TypeError(
                    f"TypedStorage(): argument 'wrap_storage' must be UntypedStorage alone, not {type(wrap_storage).__name__} beside {len(args)} others"
                )
            self._untyped_storage = wrap_storage
        elif not args or _is_size(args[0]):
            self._untyped_storage = _ops.empty(*map(index, args or (0,)), dtype=self.dtype, device=device).untyped_storage()
        else:
            self._untyped_storage = _ops.tensor(args[0], dtype=self.dtype, device=device).untyped_storage()

    @classmethod
    def _of(cls, storage: UntypedStorage, dtype: Any) -> TypedStorage:
        made = cls.__new__(cls)
        made._untyped_storage, made.dtype = storage, dtype
        return made

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0, *, dtype: Any = None) -> TypedStorage:
        """Elements of a mapped file; see `UntypedStorage.from_file`."""
        dtype = dtype_named("float32") if dtype is None else dtype
        return cls._of(UntypedStorage.from_file(filename, shared, size * dtype.itemsize), dtype)

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any = None, device: Any = None, **kwargs: Any) -> TypedStorage:
        """(buffer, byte_order, count=-1, offset=0): a copy of the elements behind `offset` bytes; see `UntypedStorage.from_buffer`. dtype: float32 where it is None."""
        warn_once(2)
        if device is not None and _device(device).type != "cpu":
            raise RuntimeError(f"TypedStorage.from_buffer: Not available for device {_device(device).type}")
        dtype = get_default_dtype() if dtype is None else dtype
        return cls._of(UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs), dtype)

    def _flat(self) -> Any:
        """A tensor of the elements."""
        storage = self._untyped_storage
        return _ops.empty(0, dtype=self.dtype, device=storage.device).set_(storage, 0, (self.size(),), (1,))

    @property
    def device(self) -> Any:
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return self._untyped_storage.is_cuda

    def untyped(self) -> UntypedStorage:
        """The storage without a dtype."""
        return self._untyped_storage

    def size(self) -> int:
        """The number of elements."""
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    __len__ = size

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def _checked(self, index: Any) -> int:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        size = self.size()
        if not -size <= index < size:
            raise IndexError(f"index {index} out of range for storage of size {size}")
        return index % size

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._flat()[self._checked(index)].item()

    def __setitem__(self, index: int | slice, value: Any) -> None:
        self._flat()[index if isinstance(index, slice) else self._checked(index)] = value

    def __iter__(self) -> Any:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return self._flat().tolist()

    def fill_(self, value: Any) -> TypedStorage:
        self._flat().fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """The elements of another storage of the same length, converted."""
        if len(source) != len(self):
            raise RuntimeError(f"copy_(): storage sizes do not match: {len(self)} and {len(source)}")
        other = source if isinstance(source, TypedStorage) else TypedStorage._of(source, dtype_named("uint8"))
        self._flat().copy_(other._flat(), non_blocking)
        return self

    def resize_(self, size: int) -> None:
        """Another number of elements; those added are undefined."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def clone(self) -> TypedStorage:
        return self._of(self._flat().clone().untyped_storage(), self.dtype)

    def _to(self, dtype: Any = None, device: Any = None) -> TypedStorage:
        dtype = self.dtype if dtype is None else dtype
        if dtype == self.dtype and (device is None or _device(device) == self.device):
            return self
        return self._of(self._flat().to(device=device or self.device, dtype=dtype).untyped_storage(), dtype)

    def cpu(self) -> TypedStorage:
        """This storage in host memory: itself, or a copy."""
        return self._to(device="cpu")

    def to(self, *, device: Any, non_blocking: bool = False) -> TypedStorage:
        """This storage on a device: itself, or a copy."""
        return self._to(device=device)

    def get_device(self) -> int | None:
        """The device's index, None on the CPU."""
        return self.device.index

    def resizable(self) -> bool:
        """Whether `resize_` may change the size."""
        return self._untyped_storage.resizable()

    @property
    def is_sparse(self) -> bool:
        return False

    def is_pinned(self, device: Any = None) -> bool:
        """Whether the elements lie in page-locked memory."""
        return self._untyped_storage.is_pinned(device)

    def pin_memory(self, device: Any = None) -> TypedStorage:
        """The elements in page-locked memory."""
        return self._of(self._untyped_storage.pin_memory(device), self.dtype)

    def cuda(self, device: Any = None, non_blocking: bool = False) -> TypedStorage:
        """This storage on a CUDA device: itself, or a copy."""
        return self._to(device="cuda" if device is None else _device("cuda", device) if isinstance(device, int) else device)

    def type(self, dtype: Any = None) -> Any:
        """The name of the storage's type, as in torch.FloatStorage; with a dtype, a storage of it."""
        return f"torch.{self.pickle_storage_type()}" if dtype is None else self._to(dtype)

    def pickle_storage_type(self) -> str:
        """The type's name in files."""
        return STORAGE_OF_DTYPE.get(dtype_name(self.dtype), "UntypedStorage")

    def is_shared(self) -> bool:
        """Whether other processes can be given the memory as it is."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        """Move the elements to memory that other processes can be given."""
        self._untyped_storage.share_memory_()
        return self

    @property
    def filename(self) -> str | None:
        """The file that is mapped, or None."""
        return self._untyped_storage.filename

    @classmethod
    def _new_shared(cls, size: int, *, dtype: Any = None, device: Any = "cpu") -> TypedStorage:
        dtype = dtype_named("float32") if dtype is None else dtype
        return cls._of(UntypedStorage._new_shared(size * dtype.itemsize, device=device), dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self.data_ptr() == other.data_ptr()

    __hash__ = object.__hash__

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        # tensors copied with it go on sharing the copy
        return self._of(self._untyped_storage.__deepcopy__(memo), self.dtype)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self._flat(),)

    def __repr__(self) -> str:
        head = "".join(f" {value}\n" for value in self.tolist()) if self.device.type != "meta" else "...\n"
        home = type(self).__module__  # torch.storage while the alias is in force
        return f"{head}[{home if home.startswith('torch.') else 'tensorrt_lite.storage'}.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    __str__ = __repr__


def _rebuild(flat: Any) -> TypedStorage:
    return TypedStorage._of(flat.untyped_storage(), flat.dtype)


def _conversion(name: str) -> Any:
    def convert(self: TypedStorage) -> TypedStorage:
        return self._to(dtype_named(name))

    convert.__doc__ = f"This storage's elements as {name}: itself, or a copy."
    return convert


for _method, _dtype in {
    "double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32", "short": "int16", "char": "int8",
    "byte": "uint8", "bool": "bool", "complex_double": "complex128", "complex_float": "complex64", "float8_e5m2": "float8_e5m2", "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2fnuz": "float8_e5m2fnuz", "float8_e4m3fnuz": "float8_e4m3fnuz",
}.items():  # fmt: skip
    _convert = _conversion(_dtype)
    _convert.__name__ = _method
    setattr(TypedStorage, _method, _convert)


class _LegacyStorageMeta(type):
    """The class of `FloatStorage` and its kin: calling one makes a TypedStorage, and every TypedStorage of the dtype is an instance."""

    dtype: Any

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        refusal = (
            f"{cls}.__new__ received an invalid combination of arguments. Expected one of:\n * no arguments\n * (int size)\n * (Sequence data)\n"
            " * (*, UntypedStorage wrap_storage)"
        )
        for name in ("device", "dtype"):
            if name in kwargs:
                raise RuntimeError(f"{refusal}\nKeyword argument '{name}' cannot be specified")
        if len(args) > 1 or args and kwargs:
            raise RuntimeError(f"{refusal}\nToo many positional arguments")
        if args and not _is_size(args[0]) and not isinstance(args[0], Sequence):
            raise TypeError(f"{refusal}\nArgument type not recognized: {type(args[0])}")
        return TypedStorage(*args, dtype=cls.dtype, device="cpu", **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return type(instance) is TypedStorage and instance.dtype == cls.dtype and instance.device.type == "cpu"


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The base of the storage classes that are named after a dtype."""

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0, **kwargs: Any) -> TypedStorage:
        """Elements of a mapped file; see `UntypedStorage.from_file`."""
        return TypedStorage.from_file(filename, shared, size, dtype=cls.dtype)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """A copy of a buffer's elements; see `UntypedStorage.from_buffer`. RuntimeError for `dtype` and `device`."""
        for name in ("dtype", "device"):
            if kwargs.get(name) is not None or name == "dtype" and len(args) == 5:
                raise RuntimeError(f"from_buffer: '{name}' can only be specified in UntypedStorage.from_buffer and TypedStorage.from_buffer")
        return TypedStorage.from_buffer(*args, **kwargs, dtype=cls.dtype)


def legacy_class(name: str) -> type:
    """The class of a name such as "FloatStorage"."""
    dtype = LEGACY_NAMES[name]
    doc = f"A TypedStorage of {dtype} elements on the CPU, of (), (size), (sequence) or (wrap_storage=UntypedStorage). Other arguments are a RuntimeError."
    return _LegacyStorageMeta(name, (_LegacyStorage,), {"dtype": dtype_named(dtype), "__module__": "torch", "__doc__": doc})


LEGACY_NAMES = {storage: dtype for dtype, storage in STORAGE_OF_DTYPE.items() if not storage.startswith("Q")}
