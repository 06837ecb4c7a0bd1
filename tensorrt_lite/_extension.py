"""What extensions in C reach by the capsule `tensorrt_lite._extension.api`: the compiled table (`_C.core.extension`), and the parts of it that are Python."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from tensorrt_lite import _C
from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
import tensorrt_lite._declared.schema as _schema
from tensorrt_lite import library
from tensorrt_lite._C.core import extension as _core

_library = LazyModule("tensorrt_lite.library")
_libraries = LazyModule("tensorrt_lite.compat.libraries")

# dtypes by their numbers in tensorrt_lite.h
_NUMBERS = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7, "complex32": 8, "complex64": 9, "complex128": 10, "bool": 11,
    "bfloat16": 15, "float8_e5m2": 23, "float8_e4m3fn": 24, "float8_e5m2fnuz": 25, "float8_e4m3fnuz": 26, "uint16": 27, "uint32": 28, "uint64": 29, "float8_e8m0fnu": 44,
}  # fmt: skip
_DEVICES = ("cpu", "cuda", "meta")


class _Hooks:
    """What the compiled table calls."""

    @staticmethod
    def device(kind: int, index: int) -> Any:
        if not 0 <= kind < len(_DEVICES):
            name = _C._get_privateuse1_backend_name() if hasattr(_C, "_get_privateuse1_backend_name") else "privateuseone"
        else:
            name = _DEVICES[kind]
        return trt.device(name) if index < 0 or name in ("cpu", "meta") else trt.device(name, index)

    @staticmethod
    def device_type(device: Any) -> int:
        return _DEVICES.index(device.type) if device.type in _DEVICES else len(_DEVICES)

    def empty(self, sizes: list[int], dtype: Any, kind: int, index: int) -> Any:
        return trt.empty(sizes, dtype=dtype, device=self.device(kind, index))

    def full(self, sizes: list[int], value: float, dtype: Any, kind: int, index: int) -> Any:
        whole = not dtype.is_floating_point and not dtype.is_complex
        return trt.full(sizes, int(value) if whole else value, dtype=dtype, device=self.device(kind, index))

    @staticmethod
    def call(name: str, arguments: list[Any]) -> Any:
        space, separator, rest = name.partition("::")
        operator, _, overload = rest.partition(".")
        if not separator:
            raise ValueError(f"an operator is called as namespace::name, not {name!r}")
        packet = getattr(getattr(_library.ops, space), operator)
        return (getattr(packet, overload) if overload else packet)(*arguments)

    @staticmethod
    def define(schema: str) -> None:
        library._replace(_schema.parse(schema.strip()))

    @staticmethod
    def implement(name: str, key: str, kernel: Any) -> int:
        library.impl(name, key, kernel)
        return len(library._find(name)._schema.returns)

    @staticmethod
    def set_gradient(name: str, setup: Any, backward: Any) -> int:
        found = library._find(name)
        library.register_autograd(found, backward, setup_context=setup)
        return len(found._schema.positional)


_core._set_hooks(_Hooks(), {getattr(trt, name): number for name, number in _NUMBERS.items()})
api = _core.capsule(b"tensorrt_lite._extension.api")


def function(name: str, address: int, n_arguments: int, n_returned: int, doc: str) -> Any:
    """What TRTL_MODULE puts into a module for a C++ function."""
    return _core.function(name, address, n_returned, doc)


def load_library(path: str | os.PathLike[str]) -> None:
    """Load a shared library and have it register its operators. OSError where it cannot be loaded or is none of tensorrt_lite's."""
    path = os.fspath(path)
    if _libraries.load_replacement(path):
        return
    loaded = ctypes.PyDLL(path)
    try:
        init = loaded.trtl_library_init
    except AttributeError:
        raise OSError(
            f"{path}: the library exports no trtl_library_init (tensorrt_lite.h); libraries of PyTorch's C++ operators cannot be loaded (docs/extensions.md)"
        ) from None
    init.argtypes, init.restype = [ctypes.c_void_p], ctypes.c_int
    if init(_core.address()) != 0:  # an error that it has set is raised by ctypes
        raise OSError(f"{path}: trtl_library_init failed without saying why")
