"""What several data pipes need: streams that are closed when nobody reads them, files by patterns, checks of functions."""

from __future__ import annotations

import fnmatch
import functools
import inspect
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from io import IOBase
from typing import Any

__all__ = ["StreamWrapper", "get_file_binaries_from_pathnames", "get_file_pathnames_from_root", "match_masks", "no_length", "validate_input_col", "validate_pathname_binary_tuple"]


def no_length(pipe: Any) -> TypeError:
    """The error for a pipe whose length is not known."""
    return TypeError(f"{type(pipe).__name__} instance doesn't have valid length")


def length_of(pipe: Any, source: Any) -> int:
    """The length of what a pipe reads. TypeError where it has none."""
    if not hasattr(type(source), "__len__"):
        raise no_length(pipe)
    return len(source)


def warn_of_lambda(fn: Any) -> None:
    """Warn of functions that cannot be pickled for worker processes. TypeError for what cannot be called."""
    if not callable(fn):
        raise TypeError(f"A callable function is expected, but {type(fn)} is provided.")
    inner = fn.func if isinstance(fn, functools.partial) else fn
    lambda_ = getattr(inner, "__name__", "") == "<lambda>"
    if lambda_ or "<locals>" in getattr(inner, "__qualname__", ""):
        kind = "Lambda" if lambda_ else "Local"
        warnings.warn(f"{kind} function is not supported by pickle, please use regular python function or functools.partial instead.", stacklevel=4)


def validate_input_col(fn: Callable[..., Any], input_col: Any) -> None:
    """ValueError where a function cannot take the columns input_col (an index, several, None for the whole element) as its positional arguments."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (ValueError, TypeError):  # a built-in function
        return
    given = len(input_col) if isinstance(input_col, (list, tuple)) else 1
    inner = fn.func if isinstance(fn, functools.partial) else fn
    name = getattr(inner, "__name__", repr(inner))
    keywords = sum(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in parameters)
    if keywords:
        raise ValueError(f"The function {name} takes {keywords} non-default keyword-only parameters, which is not allowed.")
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    too_few = len(positional) < given and not any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if too_few or any(p.default is p.empty for p in positional[given:]):
        count = f"{len(parameters)}" if len(parameters) < given else f"{len(positional)} positional"
        raise ValueError(f"The function {name} takes {count} parameters, but {given} are required.")


def match_masks(name: str, masks: str | list[str]) -> bool:
    """Whether a file's name matches one of the patterns; none match all."""
    return not masks or any(fnmatch.fnmatch(name, mask) for mask in ([masks] if isinstance(masks, str) else masks))


def get_file_pathnames_from_root(root: Any, masks: str | list[str], recursive: bool = False, abspath: bool = False, non_deterministic: bool = False) -> Iterator[str]:
    """Files below a folder in the order of their names (non_deterministic: of the file system), or the file itself; a warning for those that are not there."""
    root = os.fspath(root)
    if os.path.isfile(root):
        if match_masks(root, masks):
            yield os.path.abspath(root) if abspath else root
        return

    def tell(error: OSError) -> None:
        warnings.warn(f"{error.filename} : {error.strerror}", stacklevel=2)
        raise error

    for folder, folders, names in os.walk(root, onerror=tell):
        if not non_deterministic:
            folders.sort()
            names.sort()
        for name in names:
            if match_masks(name, masks):
                path = os.path.join(folder, name)
                yield os.path.abspath(path) if abspath else path
        if not recursive:
            return


def get_file_binaries_from_pathnames(pathnames: Iterable[Any], mode: str, encoding: str | None = None) -> Iterator[tuple[str, StreamWrapper]]:
    """(path, open file) of each path. TypeError for what is no path."""
    for path in pathnames if isinstance(pathnames, Iterable) else [pathnames]:
        if not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"Expected string type for pathname, but got {type(path)}")
        yield path, StreamWrapper(open(path, f"r{mode}" if mode in ("b", "t") else mode, encoding=encoding))  # type: ignore[misc] # noqa: SIM115 (the wrapper closes it)


def validate_pathname_binary_tuple(data: Any) -> None:
    """TypeError for what is no pair of a path and an open file."""
    if not isinstance(data, tuple):
        raise TypeError(f"pathname binary data should be tuple type, but it is type {type(data)}")
    if len(data) != 2:
        raise TypeError(f"pathname binary stream tuple length should be 2, but got {len(data)}")
    if not isinstance(data[0], str):
        raise TypeError(f"pathname within the tuple should have string type pathname, but it is type {type(data[0])}")
    if not isinstance(data[1], (IOBase, StreamWrapper)):
        raise TypeError(f"binary stream within the tuple should have IOBase orits subclasses as type, but it is type {type(data[1])}")


class StreamWrapper:
    """An open file that is closed when the last reference to it goes."""

    def __init__(self, file_obj: Any, parent_stream: Any = None, name: str | None = None) -> None:
        self.file_obj, self.parent_stream, self.name, self.closed = file_obj, parent_stream, name, False

    @classmethod
    def close_streams(cls, v: Any, depth: int = 0) -> None:
        """Close the streams in a structure of lists, tuples and dicts, up to ten levels."""
        if depth > 10:
            return
        if isinstance(v, StreamWrapper):
            v.close()
        elif isinstance(v, (dict, list, tuple)):
            for part in v.values() if isinstance(v, dict) else v:
                cls.close_streams(part, depth + 1)

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self.closed = True
            self.file_obj.close()

    def autoclose(self) -> None:
        """Close the file: nothing is read from it any more."""
        self.close()

    def __getattr__(self, name: str) -> Any:
        if name == "file_obj":
            raise AttributeError(name)
        return getattr(self.file_obj, name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(self.file_obj)]

    def __iter__(self) -> Iterator[Any]:
        yield from self.file_obj

    def __next__(self) -> Any:
        return next(self.file_obj)

    def __del__(self) -> None:
        if not self.closed and "file_obj" in self.__dict__:
            self.close()

    def __repr__(self) -> str:
        return f"StreamWrapper<{self.file_obj!r}>" if self.name is None else f"StreamWrapper<{self.name},{self.file_obj!r}>"

    def __getstate__(self) -> Any:
        return self.file_obj

    def __setstate__(self, state: Any) -> None:
        self.__init__(state)  # type: ignore[misc]
