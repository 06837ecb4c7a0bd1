"""torch.compiler without a compiler: nothing is ever being compiled, and what is to be left out of compilation is left as it is."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = [
    "allow_in_graph", "assume_constant_result", "cudagraph_mark_step_begin", "disable", "is_compiling", "is_dynamo_compiling", "is_exporting", "list_backends", "reset",
]  # fmt: skip

_warned = False


def warn_uncompiled(stacklevel: int) -> None:
    """Say, once in a process, that nothing is compiled; `stacklevel` as that of warnings.warn in the caller."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn("torch.compile is not implemented: the function runs uncompiled (docs/gaps.md)", stacklevel=stacklevel + 1)


def is_compiling() -> bool:
    """False: operators run as they are called."""
    return False


def is_dynamo_compiling() -> bool:
    """False: operators run as they are called."""
    return False


def is_exporting() -> bool:
    """False: there is no export."""
    return False


def disable(fn: Callable[..., Any] | None = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """The function itself; as `@disable()` a decorator that returns it. What is never compiled needs no exception."""
    return (lambda function: function) if fn is None else fn


def allow_in_graph(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


def assume_constant_result(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """No effect: nothing was compiled into graphs."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """None: there is no compiler."""
    return []


def reset() -> None:
    """No effect: nothing was compiled."""


def __getattr__(name: str) -> Any:
    raise _missing.error("compiler", name)


def __dir__() -> list[str]:
    return _listing.public(globals())
