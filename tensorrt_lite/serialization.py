"""`save` and `load` in PyTorch's file format, in both directions, without executing anything that a file says.

This module is the public face and cheap to import; the work is in `_checkpoint`: `reader` (archive to objects),
`unpickler` (an interpreter of pickle opcodes that builds data only), `writer` (objects to archive).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from typing import IO

    FileLike = str | os.PathLike[str] | IO[bytes]
    MapLocation = Callable[[Any, str], Any] | str | dict[str, Any] | Any | None

__all__ = [
    "add_safe_globals",
    "clear_safe_globals",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "safe_globals",
    "save",
]

DEFAULT_PROTOCOL = 2

_safe_globals: dict[str, Any] = {}


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


def save(
    obj: object,
    f: FileLike,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write an object to a path or binary file; PyTorch's `load` reads it, with `weights_only=True` when it is data.

    Tensors that share storage keep sharing it. Raises TypeError for tensors without strided storage,
    NotImplementedError for PyTorch's pre-1.6 format, and what pickling raises for other objects.
    """
    if not _use_new_zipfile_serialization:
        raise NotImplementedError("save writes the zip format only; load reads PyTorch's older format as well")
    from ._checkpoint.writer import write_checkpoint

    write_checkpoint(obj, f, pickle_protocol)


def load(
    f: FileLike,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    allow_code: bool = False,
    memory_limit: int | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read an object from a path or a seekable binary file that `save`, here or in PyTorch, has written.

    map_location: device, name, dict of names, or `fn(storage, location)`; mmap: map the file's tensors instead of
    reading them (path only). A global beyond tensors and plain data raises `pickle.UnpicklingError` unless
    `add_safe_globals` allows it; a damaged file RuntimeError, an empty one EOFError. weights_only=False also builds whole
    modules of this package's layers, and still executes nothing. allow_code=True does what PyTorch's weights_only=False
    does: it imports and calls whatever the file names, so it is for files whose writer you trust with your account.
    memory_limit: bytes that reading may take, tensors included, instead of twice the file's size and 16 MB.
    """
    if allow_code and weights_only:
        raise ValueError("load(): weights_only=True and allow_code=True contradict each other")
    import pickle

    from ._checkpoint.reader import read_checkpoint

    return read_checkpoint(
        f,
        map_location,
        safe=_safe_globals,
        use_mmap=bool(mmap),
        options=pickle_load_args,
        layers=weights_only is False,
        memory_limit=memory_limit,
        executing=(pickle_module or pickle) if allow_code else None,
    )


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """Full names of the classes and functions in a file that `load` would refuse."""
    from ._checkpoint.reader import unknown_globals

    return unknown_globals(f, _safe_globals)


def __getattr__(name: str) -> object:
    from tensorrt_lite._missing import error

    raise error("serialization", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names import public

    return public(globals())
