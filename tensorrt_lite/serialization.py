"""`save` and `load` in PyTorch's file formats, in both directions. Nothing that a file says is executed, unless you ask for it by name."""

# This module is the public face and cheap to import; the work is in `_checkpoint`: `reader` (archive to objects),
# `unpickler` (an interpreter of pickle opcodes that builds data only), `writer` (objects to archive).

from __future__ import annotations

import os
import sys
import threading
import warnings
from enum import Enum
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")
_names = _LazyModule("tensorrt_lite._checkpoint.names")
_reader = _LazyModule("tensorrt_lite._checkpoint.reader")
_writer = _LazyModule("tensorrt_lite._checkpoint.writer")

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    FileLike = str | os.PathLike[str] | IO[bytes]
    MapLocation = Callable[[Any, str], Any] | str | dict[str, Any] | Any | None

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
]

DEFAULT_PROTOCOL = 2
STORAGE_KEY_SEPARATOR = ","

_safe_globals: dict[str, Any] = {}


class SourceChangeWarning(Warning):
    """PyTorch's warning of classes whose source is not the one in the file; never given here."""


class LoadEndianness(Enum):
    """The byte order of files that do not tell theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Settings(threading.local):
    skip_data = False


_settings = _Settings()
_default_endianness: LoadEndianness | None = None
_compute_crc32 = True
_mmap_flags: int | None = None
_mmap_by_default = False


# ---- safe globals


def _named(entry: Any) -> tuple[str, Any]:
    """Full name and object of one entry of a list of safe globals: an object, or a pair of object and name."""
    if isinstance(entry, tuple):
        if len(entry) != 2 or not isinstance(entry[1], str):
            raise ValueError(f"Expected a (object, full name) tuple among the safe globals, but got {entry!r}")
        return entry[1], entry[0]
    if not hasattr(entry, "__module__") or not hasattr(entry, "__qualname__"):
        raise TypeError(f"A safe global is a class or function, or a tuple of it and its name, but got {entry!r}")
    return f"{entry.__module__}.{entry.__qualname__}", entry


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow `load` to call these classes and functions; a tuple `(object, "module.name")` allows it under that name."""
    _safe_globals.update(map(_named, safe_globals))


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has allowed."""
    return list(_safe_globals.values())


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` has allowed."""
    _safe_globals.clear()


class safe_globals:  # noqa: N801 (PyTorch's name)
    """Context in which `load` may also call the given classes and functions."""

    def __init__(self, safe_globals: list[Any]) -> None:
        self._added = dict(map(_named, safe_globals))
        self._before: dict[str, Any] = {}

    def __enter__(self) -> safe_globals:
        self._before = dict(_safe_globals)
        _safe_globals.update(self._added)
        return self

    def __exit__(self, *exc: object) -> None:
        _safe_globals.clear()
        _safe_globals.update(self._before)


# ---- options


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order that `load` takes for files that do not tell theirs; None: little."""
    return _default_endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Set it. TypeError for anything else than a LoadEndianness or None."""
    global _default_endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _default_endianness = endianness


def get_crc32_options() -> bool:
    """Whether `save` computes checksums of records."""
    return _compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """Whether `save` computes checksums of records: without them it is a little faster, and other programs take the file for damaged."""
    global _compute_crc32
    _compute_crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int | None:
    """How `load(mmap=True)` maps files: `mmap.MAP_PRIVATE` (writing to a tensor changes memory alone) or `mmap.MAP_SHARED` (it changes the file)."""
    import mmap

    return mmap.MAP_PRIVATE if _mmap_flags is None else _mmap_flags


class set_default_mmap_options:  # noqa: N801 (PyTorch's name)
    """Set how `load(mmap=True)` maps files, also as a context. ValueError for other flags than `mmap.MAP_PRIVATE` and `mmap.MAP_SHARED`."""

    def __init__(self, flags: int) -> None:
        import mmap

        global _mmap_flags
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}")
        self._before, _mmap_flags = _mmap_flags, flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        global _mmap_flags
        _mmap_flags = self._before


class skip_data:  # noqa: N801 (PyTorch's name)
    """Context in which `save` writes zeros in the place of storages' bytes, holes where the file can have such, and `load` does not read them: the
    tensors' memory is what it was. For writing or reading the bytes in a pass of one's own. materialize_fake_tensors is not implemented."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        if materialize_fake_tensors:
            raise NotImplementedError("skip_data(materialize_fake_tensors=True) is not implemented (docs/gaps.md)")
        self._before = False

    def __enter__(self) -> None:
        self._before, _settings.skip_data = _settings.skip_data, True

    def __exit__(self, *exc: object) -> None:
        _settings.skip_data = self._before


# ---- devices

_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]) -> None:
    """Take part in saying where storages lie: tagger(storage) gives the location that a file names, deserializer(storage, location) puts one there, both
    None for what is not theirs. They are asked by priority, the least first; the library's own (the CPU 10, CUDA 20, meta 22) stand among them. TypeError
    for a priority that is no number."""
    if not isinstance(priority, (int, float)):
        raise TypeError(f"register_package(): the priority must be a number, not {type(priority).__name__}")
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda entry: entry[0])


def _own_tag(storage: Any) -> str:
    return str(storage.device)


def _own_priority(device: str) -> int:
    return {"cpu": 10, "cuda": 20, "meta": 22}.get(device.partition(":")[0], 30)


def location_tag(storage: Any) -> str:
    """The location under which a storage is saved: "cpu", "cuda:0"."""
    storage = storage.untyped() if hasattr(storage, "untyped") else storage
    own = _own_tag(storage)
    for priority, tagger, _ in _packages:
        if priority > _own_priority(own):
            break
        location = tagger(storage)
        if location:
            return location
    return own


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage at a location. RuntimeError for one that nobody knows."""
    known = location.partition(":")[0] in ("cpu", "cuda", "meta")
    for priority, _, deserializer in _packages:
        if known and priority > _own_priority(location):
            break
        result = deserializer(storage, location)
        if result is not None:
            return result
    try:
        return _reader._restore_here(storage, location)
    except RuntimeError:
        if known:
            raise
        raise RuntimeError(f"don't know how to restore data location of an UntypedStorage (tagged with {location})") from None


def validate_cuda_device(location: str) -> int:
    """The index of a location such as "cuda:1". RuntimeError where there is no such device."""
    trt = _listing.root()
    if not trt.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are running on a CPU-only machine, please use "
            "torch.load with map_location=torch.device('cpu') to map your storages to the CPU."
        )
    index = trt.device(location).index
    device = trt.cuda.current_device() if index is None else index
    if device >= trt.cuda.device_count():
        raise RuntimeError(f"Attempting to deserialize object on CUDA device {device} but torch.cuda.device_count() is {trt.cuda.device_count()}.")
    return device


class StorageType:
    """The type of a storage by the name of its class: StorageType("FloatStorage").dtype."""

    def __init__(self, name: str) -> None:
        self._dtype = _names.storage_dtype(name)

    @property
    def dtype(self) -> Any:
        return self._dtype

    def __str__(self) -> str:
        return f"StorageType(dtype={self._dtype})"

    __repr__ = __str__


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of storages by which files name this one."""
    trt = _listing.root()
    return getattr(trt, storage_type.__name__, storage_type)


def storage_to_tensor_type(storage: Any) -> Any:
    """The class of tensors that goes with a storage: FloatTensor."""
    trt = _listing.root()
    return getattr(trt, type(storage).__name__.replace("Storage", "Tensor"))


def mkdtemp() -> Any:
    """A folder for the time of a context."""
    from tempfile import TemporaryDirectory

    return TemporaryDirectory()


def check_module_version_greater_or_equal(module: Any, req_version_tuple: tuple[Any, ...], error_if_malformed: bool = True) -> bool:
    """Whether a module's `__version__` is at least this one; versions that cannot be read are a RuntimeError, or a warning and True."""
    try:
        parts = module.__version__.split(".")
        found = tuple(type(wanted)(part) for wanted, part in zip(req_version_tuple, parts))
    except Exception as error:
        message = f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared with tuple {req_version_tuple!s}"
        if error_if_malformed:
            raise RuntimeError(message) from error
        import warnings

        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True
    return found >= tuple(req_version_tuple)


# ---- files


def save(
    obj: object,
    f: FileLike,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object to a path or binary file; PyTorch's `load` reads it, with `weights_only=True` when it is data.

    Tensors that share storage keep sharing it. _use_new_zipfile_serialization=False writes PyTorch's format before 1.6. RuntimeError for a path in a folder that does not
    exist, TypeError for tensors without strided storage, and what pickling raises for other objects.

    Parameters:
        obj (object): tensors, or what has tensors in it, such as a state_dict
        f (str, path or file): where it is written
        pickle_module (module or None, default None): the module that pickles; None is Python's
        pickle_protocol (int, default 2): the version of the pickle format
        _use_new_zipfile_serialization (bool, default True): False writes the format from before PyTorch 1.6
        _disable_byteorder_record (bool, default False): whether the record of the byte order is left out

    Example:
        >>> import tensorrt_lite as trt
        >>> import io
        >>> file = io.BytesIO()
        >>> trt.save({"weight": trt.ones(2)}, file)
        >>> file.seek(0)
        0
        >>> trt.load(file)
        {'weight': tensor([1., 1.])}
    """
    legacy = not _use_new_zipfile_serialization
    if legacy and _settings.skip_data:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    _writer.write_checkpoint(obj, f, pickle_protocol, _writer.Layout(legacy, _compute_crc32, _settings.skip_data, not _disable_byteorder_record, location_tag if _packages else None))


def load(
    f: FileLike,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    allow_code: bool | None = None,
    memory_limit: int | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read an object from a path or a seekable binary file that `save`, here or in PyTorch, has written.

    map_location: device, name, dict of names, or `fn(storage, location)`; mmap: map the file's tensors instead of
    reading them (path only). A global beyond tensors and plain data raises `pickle.UnpicklingError` unless
    `add_safe_globals` allows it; a damaged file RuntimeError, an empty one EOFError.
    weights_only=False is Python's pickle (or `pickle_module`): it imports and calls whatever the file names, so it is for files whose writer you
    trust with your account. With allow_code=False it builds whole modules of this package's layers and executes nothing.
    memory_limit: bytes that reading may take, tensors included, instead of twice the file's size and 16 MB.

    Parameters:
        f (str, path or file): where it is read
        map_location (device, str, dict or function, default None): the device of tensors; None is the one that
            they were saved from
        pickle_module (module or None, default None): the module that unpickles, with weights_only=False; None is
            Python's
        weights_only (bool or None, default None): whether only tensors and plain data are read; None is True
        mmap (bool or None, default None): whether tensors are mapped, not read
        allow_code (bool or None, default None): False builds whole modules and executes nothing of the file
        memory_limit (int or None, default None): how many bytes reading may take; None is twice the file's size
            and 16 MB
        **pickle_load_args: what the unpickler takes, such as encoding

    Example:
        >>> import tensorrt_lite as trt
        >>> import io
        >>> file = io.BytesIO()
        >>> trt.save({"weight": trt.ones(2)}, file)
        >>> file.seek(0)
        0
        >>> trt.load(file, map_location="cpu")
        {'weight': tensor([1., 1.])}
    """
    import mmap as mmap_module
    import pickle

    weights_only = _forced(weights_only)
    if weights_only and (allow_code or pickle_module is not None):
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified" if not allow_code else "load(): weights_only=True and allow_code=True contradict each other")
    executes = allow_code if allow_code is not None else weights_only is False
    order = sys.byteorder if _default_endianness is LoadEndianness.NATIVE else "big" if _default_endianness is LoadEndianness.BIG else "little"
    try:
        return _reader.read_checkpoint(
            f,
            map_location,
            safe=_safe_globals,
            use_mmap=_mmap_by_default if mmap is None else bool(mmap),
            options=pickle_load_args,
            layers=weights_only is False,
            memory_limit=memory_limit,
            executing=(pickle_module or pickle) if executes else None,
            default_order=order,
            shared=_mmap_flags == mmap_module.MAP_SHARED,
            skip_data=_settings.skip_data,
        )
    except pickle.UnpicklingError as error:
        raise error.with_traceback(None)  # noqa: B904 (the reader's frames tell nothing of the file)


def _forced(weights_only: bool | None) -> bool | None:
    """What PyTorch's environment variables make of the argument while this package answers to `import torch`; elsewhere they say nothing."""
    if not _listing.alias_in_force():
        return weights_only
    on = ("1", "y", "yes", "true")
    safe, unsafe = (os.environ.get(name, "0") in on for name in ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"))
    if safe and unsafe:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set.")
    if safe:
        return True
    if unsafe and weights_only is None:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the `weights_only` argument was not explicitly passed to `torch.load`, forcing "
            "weights_only=False.", stacklevel=3)  # fmt: skip
        return False
    return weights_only


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """Full names of the classes and functions in a file that `load` would refuse."""
    return _reader.unknown_globals(f, _safe_globals)


def __getattr__(name: str) -> object:
    raise _missing.error("serialization", name)


def __dir__() -> list[str]:
    return _listing.public(globals())
