"""Objects to checkpoint files: a pickle of PyTorch's layout, and one aligned record for each storage.

Tensors are written as calls of PyTorch's own rebuild functions, so that PyTorch reads the file as its own; data_ptr and
size identify a storage, so that views keep sharing it. Called by `serialization.save`.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import IO, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule

from tensorrt_lite._C.autograd.hooks import RemovableHandle
from tensorrt_lite._C.core.python_key import materialize
from tensorrt_lite._C.core.storage import exported
from tensorrt_lite._names.listing import alias_in_force, own_module
from tensorrt_lite.tensor import Parameter, Tensor, _state_of

from .archive import ALIGNMENT, ArchiveWriter, is_plain_file, write_whole
from .replace import replacing
from .names import LEGACY_MAGIC, LEGACY_PROTOCOL, STORAGE_OF_DTYPE, dtype_name
from .pytorch_state import completed

_legacy_typed_storage = LazyModule("tensorrt_lite._legacy.typed_storage")
_nn = LazyModule("tensorrt_lite.nn")
_optim = LazyModule("tensorrt_lite.optim")
_tensor = LazyModule("tensorrt_lite._sparse.tensor")

__all__ = ["Layout", "write_checkpoint"]

# Types of most objects in a checkpoint, which none of the special cases below concerns.
_ORDINARY = frozenset([str, int, float, bool, type(None), list, tuple, dict, OrderedDict])


class _Global:
    """A class or function of PyTorch, written by name; one object per name, which the pickle's memo needs."""

    def __init__(self, name: str) -> None:
        self.module, _, self.name = name.rpartition(".")

    def __call__(self) -> None:
        raise TypeError(f"{self.module}.{self.name} is a name in a file")


class _StorageId:
    """Stands in the object graph where a tensor's storage is written."""

    def __init__(self, identifier: tuple[Any, ...]) -> None:
        self.identifier = identifier


@dataclass
class Layout:
    """What a file consists of. legacy: PyTorch's format before 1.6; checksums: of the records; holes: zeros in the place of storages' bytes; byteorder:
    whether the record is there that tells it; tag: what names a storage's device, by default the device's own name."""

    legacy: bool = False
    checksums: bool = True
    holes: bool = False
    byteorder: bool = True
    tag: Callable[[Any], str] | None = None


def write_checkpoint(obj: object, f: Any, protocol: int, layout: Layout) -> None:
    """Write obj to a path or a binary file. RuntimeError for a path in a folder that does not exist, AttributeError for anything else."""
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.dirname(os.fspath(f))
        if folder and not os.path.isdir(folder):
            raise RuntimeError(f"Parent directory {folder} does not exist.")
        stem = os.path.splitext(os.path.basename(os.fspath(f)))[0]
        with replacing(f) as file:
            _write(obj, file, stem if stem and stem.isascii() else "archive", protocol, layout)
    elif hasattr(f, "write"):
        _write(obj, f, "archive", protocol, layout)
        if callable(getattr(f, "flush", None)):
            f.flush()  # as PyTorch: writers of one's own (skorch's uploads) take it for the end of the file
    else:
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, got {f!r}"
        )


def _write(obj: object, file: IO[bytes], prefix: str, protocol: int, layout: Layout) -> None:
    buffer = io.BytesIO()
    pickler = _Pickler(buffer, protocol, layout)
    pickler.dump(obj)
    if layout.legacy:
        _write_legacy(file, protocol, buffer.getvalue(), pickler)
        return
    archive = ArchiveWriter(file, prefix, layout.checksums)
    archive.add("data.pkl", buffer.getvalue())
    archive.add(".format_version", b"1")
    archive.add(".storage_alignment", str(ALIGNMENT).encode())
    if layout.byteorder:
        archive.add("byteorder", sys.byteorder.encode())
    for key, storage in enumerate(pickler.storages):
        if layout.holes:
            archive.add_hole(f"data/{key}", storage.nbytes())
        else:
            archive.add(f"data/{key}", _bytes_of(storage))
    archive.add("version", b"3\n")
    archive.add(".data/serialization_id", f"{archive.checksum:040d}".encode())
    archive.close()


def _write_legacy(file: IO[bytes], protocol: int, body: bytes, pickler: _Pickler) -> None:
    """Pickles of magic number, protocol, system, object and storage keys; then each storage's number of elements and bytes."""
    system = {"protocol_version": LEGACY_PROTOCOL, "little_endian": sys.byteorder == "little", "type_sizes": {"short": 2, "int": 4, "long": 4}}
    head = b"".join(pickle.dumps(part, protocol) for part in (LEGACY_MAGIC, LEGACY_PROTOCOL, system))
    plain = is_plain_file(file)
    write_whole(file, head + body + pickle.dumps([str(key) for key in range(len(pickler.storages))], protocol), plain)
    for storage, width in zip(pickler.storages, pickler.widths):
        write_whole(file, (storage.nbytes() // width).to_bytes(8, sys.byteorder), plain)
        write_whole(file, _bytes_of(storage), plain)


def _bytes_of(storage: Any) -> bytes | memoryview:
    """The bytes of a storage, without a copy when it is in main memory."""
    if storage.device.type != "cpu":
        size = storage.nbytes()
        flat = trt.empty(0, dtype=trt.uint8, device=storage.device).set_(storage, 0, (size,), (1,))
        storage = flat.cpu().untyped_storage()
    return exported(storage) if storage.nbytes() else b""


def _int(value: int) -> bytes:
    """Opcode and bytes of a number that is not negative."""
    if value < 256:
        return bytes((0x4B, value))
    if value < 1 << 31:
        return b"J" + value.to_bytes(4, "little")
    return b"\x8a\x09" + value.to_bytes(9, "little")


# How tensors are pickled unless their class does it in another way.
_OWN_REDUCTIONS = (Tensor.__reduce_ex__, Parameter.__reduce_ex__)


def _has_bit(tensor: Any, name: str) -> bool:
    """Whether a tensor is a lazily conjugated (`conj`) or negated (`neg`) view."""
    query = getattr(tensor, f"is_{name}", None)
    return query is not None and query()


def _reduce_for_pytorch(instance: Any, protocol: int) -> tuple[Any, ...]:
    """How a module or optimizer is pickled, with the attributes that PyTorch's class of the same name looks into."""
    reduced = instance.__reduce_ex__(protocol)
    if len(reduced) > 2 and isinstance(reduced[2], dict) and ("_modules" in reduced[2] or "param_groups" in reduced[2]):
        reduced = (*reduced[:2], completed(instance, reduced[2]), *reduced[3:])
    return reduced


def _table() -> dict[type, Any]:
    """The Python pickler's own functions by type, whatever other packages have put in their place."""
    plain = pickle._Pickler  # type: ignore[attr-defined]
    names = {bool: "bool", int: "long", float: "float", bytes: "bytes", bytearray: "bytearray", str: "str", tuple: "tuple", list: "list", dict: "dict",
             set: "set", frozenset: "frozenset", FunctionType: "global", type(None): "none"}  # fmt: skip
    own = {kind: function for kind, function in plain.dispatch.items() if function.__module__ == pickle.__name__}
    return {**own, **{kind: getattr(plain, f"save_{name}") for kind, name in names.items()}}


class LocalObjectError(pickle.PicklingError, AttributeError):
    """Of a function or class made within a function: an AttributeError from pickle's C code, which PyTorch uses, and a PicklingError from the Python one."""


def _check_global(obj: Any, name: str | None = None) -> None:
    path = name or getattr(obj, "__qualname__", "")
    if "<locals>" in path.split("."):
        raise LocalObjectError(f"Can't pickle local object {path!r}")


# The pickler written in Python, since the C one cannot write the name of a module that does not exist here.
class _Pickler(pickle._Pickler):  # type: ignore[name-defined]
    def __init__(self, file: IO[bytes], protocol: int, layout: Layout) -> None:
        super().__init__(file, protocol)
        self._layout = layout
        self.storages: list[Any] = []
        self.widths: list[int] = []  # bytes of an element, by which the older format counts
        self._keys: dict[tuple[int, int, str], tuple[str, str]] = {}
        self._globals: dict[str, _Global] = {}
        self._devices: dict[str, str] = {}
        # Objects made while writing: the memo knows objects by address, so none may be freed before the end.
        self._alive: list[Any] = []

    def _named(self, name: str) -> _Global:
        if name not in self._globals:
            self._globals[name] = _Global(name)
        return self._globals[name]

    def persistent_id(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in _ORDINARY:
            return None
        if kind is _StorageId:
            return obj.identifier
        if isinstance(obj, trt.UntypedStorage):
            return self._storage_id(obj, None).identifier
        if kind.__name__ == "TypedStorage" and isinstance(obj, _legacy_typed_storage.TypedStorage):
            return self._storage_id(obj.untyped(), dtype_name(obj.dtype)).identifier
        return None

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        if kind in _ORDINARY:
            return NotImplemented
        if kind is _Global:
            return "global"
        if isinstance(obj, trt.Tensor):
            if getattr(kind, "_made_of_parts", False):  # nested and masked ones: by their parts
                return self._reduce_nested(obj) if obj.layout == trt.strided and obj.is_nested else NotImplemented
            return self._reduce_tensor(obj)
        if kind is trt.Size:
            return self._named("torch.Size"), (tuple(obj),)
        if kind is trt.layout:
            return self._named("torch.serialization._get_layout"), (str(obj),)
        if kind is trt.device:
            return self._named("torch.device"), (obj.type,) if obj.index is None else (obj.type, obj.index)
        if kind is bytes and not obj and self.proto < 3:
            # The pickler would write a call of `bytes`, which PyTorch's restricted reader refuses.
            return self._named("_codecs.encode"), ("", "latin1")
        if kind is trt.dtype:
            return "global"
        if alias_in_force() and isinstance(obj, (_nn.Module, _optim.Optimizer)):
            return _reduce_for_pytorch(obj, self.proto)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        if isinstance(obj, trt.dtype):
            module, name = "torch", dtype_name(obj)
        elif isinstance(obj, _Global):
            module, name = obj.module, obj.name
        elif isinstance(obj, type) and issubclass(obj, trt.Tensor) and obj in (trt.Tensor, _nn.Parameter):
            module, name = ("torch", "Tensor") if obj is trt.Tensor else ("torch.nn.parameter", "Parameter")
        elif isinstance(obj, type) and issubclass(obj, trt.Tensor) and obj in (_nn.UninitializedParameter, _nn.UninitializedBuffer):
            module, name = "torch.nn.parameter", obj.__name__
        elif alias_in_force() and own_module(obj).startswith("tensorrt_lite."):
            # PyTorch's names: classes have them already
            module, name = obj.__module__ if isinstance(obj, type) else obj.__module__.replace("tensorrt_lite", "torch", 1), name or obj.__qualname__
        else:
            _check_global(obj, name)
            super().save_global(obj, name)
            return
        self.write(b"c" + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    # The inherited table names the inherited functions: classes must come to the override above. A package that pickles more (dill) replaces entries of
    # that table, which PyTorch's pickler, the one in C, does not see: a file would need the package to be read.
    dispatch = _table()

    def _save_type(self, obj: Any) -> None:
        if obj in (type(None), type(NotImplemented), type(...)):
            pickle._Pickler.save_type(self, obj)  # type: ignore[attr-defined]
        else:
            self.save_global(obj)

    dispatch[type] = _save_type

    def _save_function(self, obj: Any) -> None:
        _check_global(obj)
        pickle._Pickler.save_global(self, obj)  # type: ignore[attr-defined]

    dispatch[FunctionType] = _save_function

    def _save_handle(self, handle: RemovableHandle) -> None:
        """A handle of a hook that a module keeps (lazy ones do), as an instance of PyTorch's class."""
        self.save(self._named("torch.utils.hooks.RemovableHandle"))
        self.write(b")\x81")
        self.memoize(handle)
        state = handle.__reduce__()[2]
        self._alive.append(state)
        self.save(state)
        self.write(b"b")

    dispatch[RemovableHandle] = _save_handle

    def _storage_id(self, storage: Any, dtype: str | None) -> _StorageId:
        """The persistent id of a storage: `(storage, class, key, device, count)`; new storages get the next key."""
        size = storage.nbytes()
        device = str(storage.device) if self._layout.tag is None else self._layout.tag(storage)
        # Storages without memory share the address 0 and are all new.
        identity = (storage.data_ptr() or -len(self.storages) - 1, size, device)
        known = self._keys.get(identity)
        if known is None:
            storage_class = STORAGE_OF_DTYPE.get(dtype or "")
            if storage_class is None and self._layout.legacy:
                storage_class, dtype = "ByteStorage", "uint8"  # whose readers know typed storages alone
            full_name = f"torch.{storage_class}" if storage_class else "torch.storage.UntypedStorage"
            known = self._keys[identity] = (str(len(self.storages)), full_name)
            self.storages.append(storage)
            self.widths.append(getattr(trt, dtype).itemsize if dtype and storage_class else 1)
        key, full_name = known
        width = self.widths[int(key)]
        older = (None,) if self._layout.legacy else ()  # it could describe a view
        identifier = _StorageId(("storage", self._named(full_name), key, device, size // width, *older))
        self._alive.append(identifier)
        return identifier

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        if type(obj) is trt.Tensor and id(obj) not in self.memo and not getattr(obj, "__dict__", None):
            self._check_strided(obj)
            function, args = self._rebuild_call(obj, None)
            if isinstance(args[0], _StorageId):
                self._save_tensor(obj, function, args)
                return
        super().save(obj, save_persistent_id)

    def _save_tensor(self, tensor: Any, function: _Global, args: tuple[Any, ...]) -> None:
        """Write a plain tensor's opcodes without a trip through the generic pickler for each of its numbers.

        The same call as `_reduce_tensor` makes, in half of the time; a checkpoint is mostly this.
        """
        storage, offset, size, stride, requires_grad, _, *extra = args
        _, kind, key, device, count = storage.identifier[:5]
        self.save(function)
        self.write(b"((")
        self.save("storage")
        self.save(kind)
        self.write(b"X" + len(key).to_bytes(4, "little") + key.encode())
        self.save(self._devices.setdefault(device, device))
        self.write(_int(count) + b"N" * self._layout.legacy + b"tQ" + _int(offset))
        for numbers in (size, stride):
            self.write(b"(" + b"".join(map(_int, numbers)) + b"t")
        self.write(b"\x88" if requires_grad else b"\x89")
        self.save(OrderedDict)
        self.write(b")R")
        for value in extra:
            self.save(value)
        self.write(b"tR")
        self.memoize(tensor)

    @staticmethod
    def _check_strided(tensor: Any) -> None:
        if getattr(tensor, "layout", trt.strided) != trt.strided or getattr(tensor, "is_quantized", False):
            raise TypeError(f"save supports strided tensors, but got layout {tensor.layout} and dtype {tensor.dtype}")

    def _reduce_tensor(self, tensor: Any) -> tuple[Any, ...]:
        if getattr(tensor, "layout", trt.strided) != trt.strided:
            return self._reduce_sparse(tensor)
        self._check_strided(tensor)
        kind = type(tensor)
        if _nn.parameter.is_lazy(tensor):
            return tensor.__reduce_ex__(self.proto)  # a lazy module's, which answers nothing else
        if kind.__reduce_ex__ not in _OWN_REDUCTIONS:
            return tensor.__reduce_ex__(self.proto)  # the class says itself how it is rebuilt
        if (value := materialize(tensor, "save")) is not tensor:
            value = value.detach().requires_grad_(tensor.requires_grad and tensor.is_leaf)
            self._alive.append(value)
            return self._reduce_tensor(value)
        state = _state_of(tensor)
        hooks: OrderedDict[Any, Any] = OrderedDict()
        if issubclass(kind, Parameter):  # of a subclass a file tells no more than that, as PyTorch's
            data = tensor.detach().as_subclass(Tensor)
            self._alive.append(data)
            args = (data, tensor.requires_grad, hooks)
            if state:
                return self._named("torch._utils._rebuild_parameter_with_state"), (*args, state)
            return self._named("torch._utils._rebuild_parameter"), args
        function, args = self._rebuild_call(tensor, hooks)
        if kind is trt.Tensor and not state:
            return function, args
        return self._named("torch._tensor._rebuild_from_type_v2"), (function, kind, args, state)

    def _reduce_sparse(self, tensor: Any) -> tuple[Any, ...]:
        if isinstance(tensor, _nn.Parameter):
            data = tensor.detach()
            self._alive.append(data)
            return self._named("torch._utils._rebuild_parameter"), (data, tensor.requires_grad, OrderedDict())
        layout, parts = _tensor.state_of(tensor)
        parts = tuple(p.detach() if isinstance(p, trt.Tensor) else p for p in parts)
        self._alive.append(parts)
        return self._named("torch._utils._rebuild_sparse_tensor"), (layout, parts)

    def _reduce_nested(self, tensor: Any) -> tuple[Any, ...]:
        """The strided layout's buffer and geometry, as PyTorch writes them; that a leaf requires gradients is lost, as there."""
        whole = tensor.detach().contiguous()
        parts = (whole.values(), whole._nested_tensor_size(), whole._nested_tensor_strides(), whole._nested_tensor_storage_offsets())
        self._alive.append(parts)
        return self._named("torch._utils._rebuild_nested_tensor"), parts

    def _rebuild_call(self, tensor: Any, hooks: Any) -> tuple[_Global, tuple[Any, ...]]:
        size, stride = tuple(tensor.shape), tuple(tensor.stride())
        if tensor.device.type == "meta":
            function = self._named("torch._utils._rebuild_meta_tensor_no_storage")
            return function, (tensor.dtype, size, stride, tensor.requires_grad)
        dtype = dtype_name(tensor.dtype)
        storage = self._storage_id(tensor.untyped_storage(), dtype)
        geometry = (storage, tensor.storage_offset(), size, stride, tensor.requires_grad, hooks)
        metadata = {name: True for name in ("conj", "neg") if _has_bit(tensor, name)}
        extra = (metadata,) if metadata else ()
        if storage.identifier[1].name == STORAGE_OF_DTYPE.get(dtype):
            return self._named("torch._utils._rebuild_tensor_v2"), (*geometry, *extra)
        # dtypes without a storage class of their own, and views of a storage written under another dtype.
        return self._named("torch._utils._rebuild_tensor_v3"), (*geometry, tensor.dtype, *extra)
