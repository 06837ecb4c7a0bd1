"""torch._guards: questions about a trace in progress, with the answers of an eager program."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_fake_tensor = _LazyModule("tensorrt_lite._subclasses.fake_tensor")
_python_dispatch = _LazyModule("tensorrt_lite.utils._python_dispatch")
_pytree = _LazyModule("tensorrt_lite.utils._pytree")

__all__ = ["CompileContext", "TracingContext", "active_fake_mode", "compile_context", "detect_fake_mode", "tracing"]


def detect_fake_mode(inputs: Any = None) -> Any:
    """The mode of the fake tensors among the inputs, a nest of lists, tuples and dicts; else the active one, or None."""
    for value in _pytree.tree_leaves(inputs):
        if isinstance(value, _fake_tensor.FakeTensor):
            return value.fake_mode
    return active_fake_mode()


def active_fake_mode() -> Any:
    """The innermost FakeTensorMode in force, or None."""
    return next((mode for mode in reversed(_python_dispatch._get_current_dispatch_mode_stack()) if isinstance(mode, _fake_tensor.FakeTensorMode)), None)


class TracingContext:
    """The state of a trace: there is never one."""

    @staticmethod
    def try_get() -> None:
        """None: nothing is being traced."""

    @staticmethod
    def get() -> Any:
        """RuntimeError: nothing is being traced."""
        raise RuntimeError("TracingContext.get() must be called within an ongoing trace.")


class CompileContext(TracingContext):
    """The state of a compilation: there is never one."""


@contextlib.contextmanager
def tracing(context: Any) -> Iterator[Any]:
    """A block that runs as it is."""
    yield context


compile_context = tracing
