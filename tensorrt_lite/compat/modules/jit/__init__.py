"""torch.jit: further marks and switches of a compiler that is not there, as PyTorch has them under PYTORCH_JIT=0."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from tensorrt_lite.compat.modules._jit_internal import _overload, _overload_method
from tensorrt_lite.jit import script_if_tracing as _script_if_tracing

__all__ = ["_overload", "_overload_method", "_script_if_tracing", "interface", "optimized_execution", "script_method", "strict_fusion"]


def script_method(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


def interface(obj: type) -> type:
    """The class itself."""
    return obj


class strict_fusion(contextlib.nullcontext):  # type: ignore[type-arg]  # noqa: N801 (PyTorch's name)
    """No effect: nothing is fused by a compiler."""


def optimized_execution(should_optimize: bool) -> contextlib.nullcontext[None]:
    """A context without effect."""
    return contextlib.nullcontext()


def fuser(name: str) -> contextlib.nullcontext[None]:
    """A context without effect."""
    return contextlib.nullcontext()
