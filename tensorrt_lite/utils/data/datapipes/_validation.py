"""Checks of data pipes by their annotations: what a pipe takes (`argument_validation`) and gives (`runtime_validation`)."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from .datapipe import IterDataPipe

_enabled = True


def _element_type(kind: Any) -> Any:
    """The T of IterDataPipe[T], also of a class that derives from it; Any where none is stated."""
    bases = [kind] if typing.get_origin(kind) is not None else [b for c in getattr(kind, "__mro__", ()) for b in c.__dict__.get("__orig_bases__", ())]
    for base in bases:
        origin = typing.get_origin(base)
        if isinstance(origin, type) and issubclass(origin, IterDataPipe) and typing.get_args(base) and not isinstance(typing.get_args(base)[0], typing.TypeVar):
            return typing.get_args(base)[0]
    return Any


def _fits(value: Any, kind: Any) -> bool:
    """Whether a value is of a type: classes, unions, and containers by their class and elements; other annotations hold for everything."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or isinstance(kind, typing.TypeVar):
        return True
    if kind is None:
        return value is None
    if origin is typing.Union:
        return any(_fits(value, k) for k in arguments)
    if isinstance(origin, type):
        if not isinstance(value, origin):
            return False
        if origin is tuple and arguments:
            if arguments[-1] is Ellipsis:
                return all(_fits(v, arguments[0]) for v in value)
            return len(value) == len(arguments) and all(map(_fits, value, arguments))
        if origin in (list, set) and arguments:
            return all(_fits(v, arguments[0]) for v in value)
        return origin is not dict or not arguments or all(_fits(k, arguments[0]) and _fits(v, arguments[1]) for k, v in value.items())
    return not isinstance(kind, type) or isinstance(value, kind)


def argument_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of a pipe's `__init__`: TypeError where an argument annotated as IterDataPipe[T] is no pipe, or one of other elements."""
    signature = inspect.signature(f)
    hints = typing.get_type_hints(f)

    @wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            hint = hints.get(name)
            kind = typing.get_origin(hint) or hint
            if not isinstance(kind, type) or not issubclass(kind, IterDataPipe):
                continue
            if not isinstance(value, IterDataPipe):
                raise TypeError(f"Expected argument '{name}' as a IterDataPipe, but found {type(value)}")
            wanted, stated = _element_type(hint), _element_type(type(value))
            if wanted is not Any and not (stated is wanted or isinstance(stated, type) and isinstance(wanted, type) and issubclass(stated, wanted)):
                raise TypeError(f"Expected type of argument '{name}' as a subtype of hint {wanted}, but found {stated}")
        return f(*args, **kwargs)

    return wrapper


def runtime_validation(f: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of a pipe's `__iter__`: RuntimeError at an element that is not of the T of the pipe's IterDataPipe[T]. TypeError for other methods."""
    if f.__name__ != "__iter__":
        raise TypeError(f"Can not decorate function {f.__name__} with 'runtime_validation'")

    @wraps(f)
    def wrapper(self: Any) -> Iterator[Any]:
        kind = _element_type(type(self))
        for element in f(self):
            if _enabled and not _fits(element, kind):
                raise RuntimeError(f"Expected an instance as subtype of {kind}, but found {element}({type(element)})")
            yield element

    return wrapper


class runtime_validation_disabled:  # noqa: N801 (PyTorch's name)
    """From here on, and until the end of a `with` block, `runtime_validation` checks nothing."""

    def __init__(self) -> None:
        global _enabled
        self.prev = _enabled
        _enabled = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *details: object) -> None:
        global _enabled
        _enabled = self.prev
