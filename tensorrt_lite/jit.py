"""torch.jit as PyTorch has it under PYTORCH_JIT=0: functions and modules stay Python, and what marks them for the compiler marks nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = ["Final", "annotate", "export", "ignore", "is_scripting", "is_tracing", "script", "script_if_tracing", "unused"]


def is_scripting() -> bool:
    """False: nothing is ever being scripted."""
    return False


def is_tracing() -> bool:
    """False: nothing is ever being traced."""
    return False


def script(obj: Any, optimize: None = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> Any:
    """The function, class or module itself, with a warning (Python shows one for each place that calls this): it runs as Python code and cannot
    be saved as TorchScript."""
    warnings.warn("jit.script: there is no TorchScript, what was given runs as Python code (docs/gaps.md)", stacklevel=2)
    return obj


def script_if_tracing(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: nothing is ever being traced."""
    return fn


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """The function itself, also as `@ignore()` and `@ignore(drop=True)`."""
    return drop if callable(drop) else lambda fn: fn


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


def export(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


def annotate(the_type: Any, the_value: Any) -> Any:
    """The value."""
    return the_value


def __getattr__(name: str) -> Any:
    raise _missing.error("jit", name)


def __dir__() -> list[str]:
    return _listing.public(globals())
