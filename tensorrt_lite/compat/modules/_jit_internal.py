"""torch._jit_internal: marks for a compiler that is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tensorrt_lite.jit import export, ignore, is_scripting, unused

__all__ = ["Final", "boolean_dispatch", "export", "ignore", "is_scripting", "unused"]


def _overload(func: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself: what is defined last is what is called, as in Python."""
    return func


_overload_method = _copy_to_script_wrapper = weak_script = weak_module = weak_script_method = _overload


def boolean_dispatch(arg_name: str, arg_index: int, default: bool, if_true: Any, if_false: Any, module_name: str, func_name: str) -> Callable[..., Any]:
    """A function that calls one of two by the value of a bool argument."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        value = args[arg_index] if len(args) > arg_index else kwargs.get(arg_name, default)
        return (if_true if value else if_false)(*args, **kwargs)

    chosen.__name__ = func_name
    return chosen
