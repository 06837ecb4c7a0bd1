"""How PyTorch's files name dtypes: storage classes and dtype globals. Shared by `reader` and `writer`."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root
from tensorrt_lite._C.core.dtype import labels

__all__ = ["DTYPE_NAMES", "LEGACY_MAGIC", "LEGACY_PROTOCOL", "STORAGE_OF_DTYPE", "dtype_name", "dtype_named", "storage_dtype"]

LEGACY_MAGIC = 0x1950A86A20F9469CFC6C  # what a file of PyTorch's format before 1.6 begins with
LEGACY_PROTOCOL = 1001

STORAGE_OF_DTYPE = {
    "float64": "DoubleStorage",
    "float32": "FloatStorage",
    "float16": "HalfStorage",
    "bfloat16": "BFloat16Storage",
    "int64": "LongStorage",
    "int32": "IntStorage",
    "int16": "ShortStorage",
    "int8": "CharStorage",
    "uint8": "ByteStorage",
    "bool": "BoolStorage",
    "complex128": "ComplexDoubleStorage",
    "complex64": "ComplexFloatStorage",
    "quint8": "QUInt8Storage",
    "qint8": "QInt8Storage",
    "qint32": "QInt32Storage",
}

_DTYPE_OF_STORAGE = {storage: dtype for dtype, storage in STORAGE_OF_DTYPE.items()}

# Aliases are there for files that name a dtype by one.
DTYPE_NAMES = frozenset(
    [*STORAGE_OF_DTYPE, *(dtype.name for dtype in labels()), *("half", "float", "double", "short", "int", "long", "cfloat", "cdouble", "chalf")]
)


def dtype_name(dtype: Any) -> str:
    """Name of a dtype without the package."""
    return str(dtype).rpartition(".")[2]


def dtype_named(name: str) -> Any:
    """The dtype of a name. Raises RuntimeError when this build does not have it."""
    dtype = getattr(_root, name, None)
    if dtype is None:
        raise RuntimeError(f"the file holds tensors of dtype {name}, which this build does not support")
    return dtype


def storage_dtype(storage: str) -> Any:
    """The dtype of a storage class: `FloatStorage` gives float32; untyped storages count bytes."""
    return dtype_named(_DTYPE_OF_STORAGE.get(storage, "uint8"))


def is_storage_name(name: str) -> bool:
    """Whether a global is the class of a storage."""
    return name in _DTYPE_OF_STORAGE or name in ("UntypedStorage", "TypedStorage")
