"""Checkpoint files to objects: storages from records, tensors from their checked geometry, devices by map_location.

Reads the zip format and the older one of consecutive pickles. The only calls a file can cause are the builders of
`_Session.table` and what the user allowed, and what it makes is counted (see `budget`). Called by `serialization.load`.
"""

from __future__ import annotations

import _compat_pickle
import os
import sys
from collections import OrderedDict as _OrderedDict
from typing import IO, TYPE_CHECKING, Any

from tensorrt_lite import _root as trt
from tensorrt_lite._C.core.hints import LazyModule
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.core.storage import exported
from tensorrt_lite._names.listing import own_module

from .archive import ArchiveReader, damaged, read_exactly
from .budget import Budget
from .names import DTYPE_NAMES, LEGACY_MAGIC, LEGACY_PROTOCOL, dtype_name, dtype_named, is_storage_name, storage_dtype
from .tensors import TensorBuilders, is_count, set_attributes
from .unpickler import Allowed, Builder, Inert, Layer, Storage, Unpickler, UnpicklingError, plain_builders

_cuda = LazyModule("tensorrt_lite.cuda")
_nn = LazyModule("tensorrt_lite.nn")
_executing = LazyModule("tensorrt_lite._checkpoint.executing")
_serialization = LazyModule("tensorrt_lite.serialization")

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["read_checkpoint", "unknown_globals"]

# What a storage takes beyond its bytes: the objects of Python and the header of the memory.
_STORAGE_COST = 240
# A mapping of a smaller file is not worth its pages, and memory that was read cannot be cut off by another process.
_MAPPED_SIZE = 1 << 20
# Where this package defines what PyTorch's modules of these names hold.
_HOMES = {"torch.nn.modules": "tensorrt_lite.nn.modules.", "torch.nn.functional": "tensorrt_lite.nn._functional."}


def read_checkpoint(
    f: Any,
    map_location: Any,
    safe: dict[str, Any],
    use_mmap: bool,
    options: dict[str, Any],
    layers: bool = False,
    memory_limit: int | None = None,
    executing: Any = None,
    default_order: str = "little",
    shared: bool = False,
    skip_data: bool = False,
) -> Any:
    """The object in a path or binary file. Raises as `serialization.load` says.

    options: of the unpickler; layers: whole modules of this package's layers may be built; executing: the pickle module
    whose unpickler may execute what the file names; default_order: the byte order of a file that does not say it; shared: writing to a mapped
    tensor changes the file; skip_data: leave the storages' bytes as they come.
    """
    session = _Session(_restorer(map_location), safe, options, layers, memory_limit)
    session.executing, session.default_order, session.shared, session.skip_data = executing, default_order, shared, skip_data
    if use_mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with _opened(f) as file:
        try:
            return session.read(file, use_mmap)
        except _CallersError as error:
            raise error.error from None


def unknown_globals(f: Any, safe: dict[str, Any]) -> list[str]:
    """Names of the globals in a file that reading it would refuse."""
    session = _Session(lambda storage, location: storage, safe, {}, False)
    session.unknown = set()
    with _opened(f) as file:
        session.read(file, False)
    return sorted(session.unknown)


class _CallersError(Exception):
    """Carries what a function of the caller raised through the handlers that take an error for a sign of a damaged file."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class _Kept:
    """A file of the caller: left open, and at the end of what was read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __enter__(self) -> IO[bytes]:
        return self._file

    def __exit__(self, *exc: object) -> None:
        pass


def _opened(f: Any) -> Any:
    if isinstance(f, (str, os.PathLike)):
        return open(f, "rb")
    if not hasattr(f, "read"):
        raise AttributeError(f"load needs a path or a binary file, but got {type(f).__name__}")
    if not (hasattr(f, "seek") and hasattr(f, "tell")):
        raise AttributeError(
            f"{type(f).__name__} has no attribute 'seek'. You can only load from a file that is seekable. "
            "Please pre-load the data into a buffer like io.BytesIO and try to load from it instead."
        )
    return _Kept(f)


# -- devices ----------------------------------------------------------------------------------------------------------


def _default_restore(storage: Any, location: str) -> Any:
    """Put a storage where it was saved from. Raises RuntimeError when that device is not there."""
    if _serialization._packages:
        return _restored_by_package(_serialization, storage, location)
    return _restore_here(storage, location)


def _restored_by_package(serialization: Any, storage: Any, location: str) -> Any:
    try:
        return serialization.default_restore_location(storage, location)
    except Exception as error:
        raise _CallersError(error) from error


def _restore_here(storage: Any, location: str) -> Any:
    if location == "cpu":
        return storage
    if location.startswith("cuda") and not _cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but cuda.is_available() is False. If you are running on "
            "a CPU-only machine, please use load with map_location=device('cpu') to map your storages to the CPU."
        )
    return _moved(storage, location)


def _moved(storage: Any, device: Any) -> Any:
    device = trt.device(device)
    if device.type == "cpu":
        return storage
    if device.type == "meta":
        return trt.empty(storage.nbytes(), dtype=trt.uint8, device=device).untyped_storage()
    flat = trt.empty(0, dtype=trt.uint8).set_(storage, 0, (storage.nbytes(),), (1,))
    return flat.to(device).untyped_storage()


def _restorer(map_location: Any) -> Callable[[Any, str], Any]:
    """Function of storage and saved location that gives the storage where it is wanted."""
    if map_location is None:
        return _default_restore
    if isinstance(map_location, dict):
        return lambda storage, location: _default_restore(storage, str(map_location.get(location, location)))
    if callable(map_location):

        def restore(storage: Any, location: str) -> Any:
            try:
                chosen = map_location(storage, location)
            except Exception as error:
                raise _CallersError(error) from error
            if chosen is None:
                return _default_restore(storage, location)
            if not isinstance(chosen, trt.UntypedStorage):
                raise RuntimeError(f"map_location must return a storage or None, but it returned a {type(chosen).__name__}")
            return chosen

        return restore
    device = trt.device(map_location)
    return lambda storage, location: _moved(storage, device) if device.type == "cpu" else _to_device(storage, device)


def _to_device(storage: Any, device: Any) -> Any:
    return _moved(storage, device) if device.type == "meta" else _default_restore(storage, str(device))


def _set_state(target: Any, state: Any) -> None:
    if isinstance(target, (_OrderedDict, trt.Tensor)):
        set_attributes(target, state)
    elif type(target).__module__ == "builtins" or isinstance(target, (Builder, Storage, Allowed)):
        raise UnpicklingError(f"state is set on a {type(target).__name__}")
    elif hasattr(target, "__setstate__"):
        # Instances of other classes exist only where the user allowed the class to be called.
        target.__setstate__(state)
    else:
        set_attributes(target, state)


# -- files ------------------------------------------------------------------------------------------------------------


class _Session:
    """One call of `load`: the table of globals, and the storages of the file that exist so far."""

    def __init__(
        self,
        restore: Callable[[Any, str], Any],
        safe: dict[str, Any],
        options: dict[str, Any],
        layers: bool,
        memory_limit: int | None = None,
    ) -> None:
        self._restore = restore
        self._safe = safe
        self._options = options
        self._layers = layers
        self.executing: Any = None
        self.default_order, self.shared, self.skip_data = "little", False, False
        self._memory_limit = memory_limit
        self._storages: dict[str, Storage] = {}
        self._size = 0
        self._start_counting()
        # Collects names instead of refusing them, when not None.
        self.unknown: set[str] | None = None

    def _start_counting(self) -> None:
        # What executes code can take any memory: it is not counted.
        self._budget = Budget(self._size, self._memory_limit if self.executing is None else 1 << 62)
        self.table = plain_builders(self._budget)
        self._tensors = TensorBuilders(self._budget)
        self.table.update(self._tensors.table())

    def read(self, file: IO[bytes], use_mmap: bool) -> Any:
        start = file.tell()
        self._size = file.seek(0, 2) - start
        self._start_counting()
        file.seek(start)
        magic = file.read(4)
        file.seek(start)
        if not magic:
            raise EOFError("Ran out of input: the file is empty")
        if magic.startswith(b"PK"):
            return self._read_zip(file, start, use_mmap)
        if use_mmap:
            raise RuntimeError("mmap can only be used with files saved in the zip format")
        return self._read_legacy(file, start)

    # -- globals --

    def find_global(self, module: str, name: str) -> Any:
        given = f"{module}.{name}"
        if (module, name) in _compat_pickle.NAME_MAPPING:  # protocol 2 writes Python 2's names
            module, name = _compat_pickle.NAME_MAPPING[module, name]
        else:
            module = _compat_pickle.IMPORT_MAPPING.get(module, module)
        full = f"{module}.{name}"
        known = self._known(module, name)
        if known is not None:
            return known
        for key in (full, given):
            if key in self._safe:
                return Allowed(self._safe[key])
        layer = _layer(module, name) if self._layers else None
        if layer is not None:
            return layer
        home = _HOMES.get(module) or _HOMES.get(module.rpartition(".")[0])
        if home is not None:
            # PyTorch's name of a layer or function: this package's own of that name, where the user allowed it
            for target in self._safe.values():
                if getattr(target, "__qualname__", None) == name and own_module(target).startswith(home):
                    return Allowed(target)
        if self.unknown is not None:
            self.unknown.add(full)
            return Inert()
        why = (
            "With allow_code=False whole modules of this package's layers are loaded as well, but nothing that a file names is executed."
            if self._layers
            else "Only tensors and plain data are loaded."
        )
        full = full.removeprefix("builtins.")
        raise hinted("global", UnpicklingError(
            f"Weights only load failed: GLOBAL {full} was not an allowed global by default. {why} If you trust the "
            f"file, allow it to be called with serialization.add_safe_globals([{full}]) or the "
            f"serialization.safe_globals([{full}]) context manager."
        ))

    def _known(self, module: str, name: str) -> Any:
        """What stands for a global that files of tensors and plain data name; None for others."""
        full = f"{module}.{name}"
        known = self.table.get(full)
        if known is not None:
            return known
        if module in ("torch", "torch.storage") and is_storage_name(name):
            return Builder(full, None)
        if module == "torch" and name in DTYPE_NAMES:
            return dtype_named(name)
        if full in ("torch.nn.parameter.Parameter", "torch.nn.Parameter"):
            # Not in the table, since that would import nn for files that hold no parameter.
            return Builder(full, None, _nn.Parameter)
        if full == "torch.serialization._get_layout":
            return Builder(full, lambda text: _torch_constant(text, ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")))
        return None

    def _unpickler(self, data: bytes, load_storage: Callable[[Any], Any]) -> Any:
        if self.executing is not None:
            return _executing.ExecutingUnpickler(data, self._known, load_storage, self.executing, **self._options)
        return Unpickler(data, self.find_global, load_storage, _set_state, self._budget, self._options.get("encoding", "utf-8"))

    def _storage_record(self, identifier: Any, length: int) -> tuple[Any, str, str, int]:
        """dtype, key, location and element count of a persistent id. Raises UnpicklingError when it is malformed."""
        if not isinstance(identifier, tuple) or len(identifier) != length or identifier[0] != "storage":
            raise UnpicklingError(f"unknown persistent id: a {type(identifier).__name__} that does not name a storage")
        kind, key, location, numel = identifier[1:5]
        if not isinstance(kind, Builder) or not isinstance(key, str) or not isinstance(location, str):
            raise UnpicklingError("a persistent id does not name a storage")
        if not is_count(numel):
            raise RuntimeError(f"corrupt checkpoint: a storage of {numel} elements")
        return storage_dtype(kind.name.rpartition(".")[2]), key, location, numel

    # -- the zip format --

    def _read_zip(self, file: IO[bytes], start: int, use_mmap: bool) -> Any:
        archive = ArchiveReader(file, start, self._size, self._budget)
        if "data.pkl" not in archive:
            raise damaged("there is no data.pkl: the file is not a checkpoint")
        if "constants.pkl" in archive:
            raise RuntimeError("the file is a TorchScript archive; load reads checkpoints")
        order = archive.read("byteorder") if "byteorder" in archive else self.default_order.encode()
        if order not in (b"little", b"big"):
            raise RuntimeError(f"corrupt checkpoint: byteorder is {order[:16]!r}, neither little nor big")
        swap = order.decode() != sys.byteorder
        if swap and use_mmap:
            raise RuntimeError("mmap cannot be used with a file of the other byte order")
        mapped = _mapped(file, self._size, self.shared) if use_mmap and not self.skip_data else None

        def load_storage(identifier: Any) -> Storage:
            dtype, key, location, numel = self._storage_record(identifier, 5)
            known = self._storages.get(key)
            self._budget.spend(_STORAGE_COST // 3)
            if known is not None:
                if known.untyped.nbytes() < numel * dtype.itemsize:
                    raise RuntimeError(f"corrupt checkpoint: storage {key} is named with different sizes")
                return Storage(known.untyped, dtype, numel)
            name = f"data/{key}"
            offset, size, crc = archive.location(name)
            if size != numel * dtype.itemsize:
                raise RuntimeError(
                    f"corrupt checkpoint: storage {key} has {size} bytes where {numel} elements of {dtype} need "
                    f"{numel * dtype.itemsize}"
                )
            self._budget.spend(size + _STORAGE_COST)
            if self.unknown is not None:
                untyped = trt.empty(size, dtype=trt.uint8, device="meta").untyped_storage()
            elif mapped is not None and size:
                untyped = trt.frombuffer(mapped, dtype=trt.uint8, count=size, offset=offset).untyped_storage()
            else:
                flat = trt.empty(size, dtype=trt.uint8)
                if size and not self.skip_data:
                    archive.fill(name, offset, crc, exported(flat.untyped_storage(), True))
                if swap and not self.skip_data:
                    _swap_bytes(flat, dtype)
                untyped = flat.untyped_storage()
            storage = Storage(self._restore(untyped, location), dtype, numel)
            self._storages[key] = storage
            return storage

        self._budget.spend(archive.location("data.pkl")[1])
        return self._unpickler(archive.read("data.pkl"), load_storage).load()

    # -- the format before PyTorch 1.6 --

    def _read_legacy(self, file: IO[bytes], start: int) -> Any:
        """Pickles of magic number, protocol, system, object, and storage keys; then the storages' sizes and bytes."""
        # The whole file, of which only the pickles are kept: the memory of storages is touched when they are filled.
        data = file.read()
        if type(data) is not bytes or len(data) > self._size:
            raise RuntimeError(f"a {type(file).__name__} read something else than the {self._size} bytes of the file")
        pending: dict[str, tuple[Any, Any]] = {}
        claimed = 0

        def load_storage(identifier: Any) -> Storage:
            nonlocal claimed
            dtype, key, location, numel = self._storage_record(identifier, 6)
            if identifier[5] is not None:
                raise RuntimeError("the file holds storage views of PyTorch 0.1, which are not supported")
            known = self._storages.get(key)
            if known is not None:
                return known
            size = numel * dtype.itemsize
            claimed += size
            if claimed > self._size:
                raise RuntimeError(f"corrupt checkpoint: storages of {claimed} bytes in a file of {self._size}")
            self._budget.spend(size + _STORAGE_COST)
            flat = trt.empty(size, dtype=trt.uint8)
            pending[key] = (flat, location)
            storage = Storage(flat.untyped_storage(), dtype, numel)
            self._storages[key] = storage
            return storage

        unpickler = self._unpickler(data, load_storage)
        refusal = "Weights only load failed: " if self.executing is None else ""
        protocol_2 = data.startswith(b"\x80\x02")
        try:
            is_legacy = unpickler.load() == LEGACY_MAGIC and unpickler.load() == LEGACY_PROTOCOL
            system = unpickler.load() if is_legacy else None
        except UnpicklingError as error:
            raise UnpicklingError(
                f"{refusal}not a checkpoint: neither a zip archive nor PyTorch's older format ({error})"
            ) from error
        if not is_legacy or not isinstance(system, dict):
            # PyTorch reads weights in protocol 2 alone: other pickles fail there before their magic number is looked at
            if self.executing is None and not protocol_2:
                raise UnpicklingError(f"{refusal}not a checkpoint: a pickle, but not of PyTorch's older format")
            raise RuntimeError("not a checkpoint: a pickle, but not of PyTorch's older format")
        little = system.get("little_endian", True)
        body = unpickler.position
        self._tensors.storages_are_empty = True
        result = unpickler.load()
        body_end = unpickler.position
        keys = unpickler.load()
        if not isinstance(keys, list) or not all(type(key) is str for key in keys) or set(keys) != set(pending):
            raise RuntimeError("corrupt checkpoint: the list of storages does not match the tensors")
        pickle = data[body:body_end]
        position = unpickler.position
        del data, unpickler
        order = "little" if little else "big"
        moved = False
        file.seek(start + position)
        for key in keys:
            flat, location = pending[key]
            storage = self._storages[key]
            size = flat.numel()
            position += 8 + size
            count = int.from_bytes(file.read(8), order, signed=True)
            complete = count == storage.numel and position <= self._size
            if not complete or size and not read_exactly(file, exported(flat.untyped_storage(), True)):
                raise RuntimeError(f"corrupt checkpoint: storage {key[:80]} is truncated or has another size")
            if order != sys.byteorder:
                _swap_bytes(flat, storage.dtype)
            given = flat.untyped_storage()
            storage.untyped, storage.typed = self._restore(given, location), None
            moved = moved or storage.untyped is not given
        if moved or self._tensors.read_again:
            # The tensors stand on the storages of the first pass, or are made of values: build them on the storages as they are now.
            del result
            self._start_counting()
            result = self._unpickler(pickle, lambda identifier: self._storages[identifier[2]]).load()
        return result


def _layer(module: str, name: str) -> Any:
    """A class of `nn`'s own layers, under this package's name or PyTorch's, or a function of `nn.functional`, which a file may only name."""
    own = module.replace("torch.", "tensorrt_lite.", 1) if module.startswith("torch.") else module
    if own.startswith("tensorrt_lite.nn.modules."):
        target = getattr(_nn, name, None) or getattr(sys.modules.get(own), name, None)
        known = isinstance(target, type) and issubclass(target, _nn.Module) and own_module(target).startswith("tensorrt_lite.nn.modules.")
        return Layer(target) if known else None
    if own in ("tensorrt_lite.nn.functional", "tensorrt_lite._C._nn") or own.startswith("tensorrt_lite.nn._functional."):
        function = getattr(_nn.functional, name, None)
        return Builder(f"{module}.{name}", None, function) if callable(function) and not name.startswith("_") and not isinstance(function, type) else None
    return None


def _torch_constant(text: Any, allowed: tuple[str, ...]) -> Any:
    name = text.rpartition(".")[2] if isinstance(text, str) else ""
    if name not in allowed:
        raise UnpicklingError(f"unknown constant {name[:80]!r}")
    return getattr(trt, name)


def _mapped(file: IO[bytes], size: int, shared: bool) -> Any:
    """The file as private memory: writing to a loaded tensor does not change the file, unless it is shared."""
    import mmap

    if shared:
        with open(file.name, "r+b") as writable:
            return mmap.mmap(writable.fileno(), size, access=mmap.ACCESS_WRITE)
    if size < _MAPPED_SIZE:
        file.seek(0)
        return bytearray(file.read(size))
    return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)


def _swap_bytes(flat: Any, dtype: Any) -> None:
    """Reverse the bytes of each number of the other byte order, in place."""
    width = dtype.itemsize // (2 if dtype_name(dtype).startswith("complex") else 1)
    if width > 1 and flat.numel():
        import numpy

        numpy.frombuffer(exported(flat.untyped_storage(), True), dtype=f"u{width}").byteswap(inplace=True)
