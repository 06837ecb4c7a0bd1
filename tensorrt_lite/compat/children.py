"""Processes that `multiprocessing` starts by spawn or forkserver get the alias of the process that starts them, before they import its main module.

Forked ones have it anyway; programs started by `subprocess` get it by the environment (`run --children`).
"""

from __future__ import annotations

import multiprocessing.spawn as _spawn
from collections.abc import Callable
from typing import Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_compat = _LazyModule("tensorrt_lite.compat")

__all__ = ["begin"]


def _in_child() -> str:
    _compat.install()
    return "in force"


class _Activation:
    """Travels with what multiprocessing tells a new process; unpickling it there puts the alias in force."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _in_child, ()


def begin() -> Callable[[], object]:
    """Have multiprocessing pass the alias on; the result ends that."""
    original = _spawn.get_preparation_data

    def get_preparation_data(name: str, *args: Any) -> dict[str, Any]:
        return {**original(name, *args), "tensorrt_lite_alias": _Activation()}

    _spawn.get_preparation_data = get_preparation_data

    def end() -> None:
        _spawn.get_preparation_data = original

    return end
