"""torch._dynamo without a compiler: marks for it mark nothing, and its questions have the answers of an eager program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorrt_lite.compat.modules._dynamo import config
from tensorrt_lite.compat.modules._dynamo.eval_frame import OptimizedModule
from tensorrt_lite.compiler import disable, is_compiling

__all__ = ["OptimizedModule", "allow_in_graph", "assume_constant_result", "config", "disable", "is_compiling", "mark_dynamic", "mark_static", "reset"]


def _unchanged(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return fn


allow_in_graph = assume_constant_result = disallow_in_graph = forbid_in_graph = graph_break_on = _unchanged


def mark_dynamic(tensor: Any, index: Any, **bounds: Any) -> None:
    """No effect."""


maybe_mark_dynamic = mark_unbacked = mark_dynamic


def mark_static(tensor: Any, index: Any = None) -> None:
    """No effect."""


def mark_static_address(tensor: Any, guard: bool = True) -> None:
    """No effect."""


def reset() -> None:
    """No effect: nothing was compiled."""


def is_dynamo_supported() -> bool:
    """False: there is no compiler."""
    return False


def graph_break(msg: str = "") -> None:
    """No effect: nothing is being compiled."""
