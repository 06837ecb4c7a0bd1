"""PyTorch's warnings, shown at the line of the user's that led to them, however many functions of the package lie between."""

from __future__ import annotations

import os
import sys
import warnings

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_given: set[str] = set()


def _frames_within() -> int:
    """How many Python frames of the package lie between the caller of warn or warn_once and the first one outside of it."""
    frame, count = sys._getframe(2), 0
    while frame is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, count = frame.f_back, count + 1
    return count


def warn(message: str) -> None:
    """A UserWarning at each occasion."""
    warnings.warn(message, UserWarning, stacklevel=2 + _frames_within())


def warn_once(message: str, direct: bool = False) -> None:
    """A UserWarning once in a process (`set_warn_always`); if `direct`, not where Python code of the package called the operator, who didn't choose to."""
    from tensorrt_lite._facts import is_warn_always_enabled

    if message in _given and not is_warn_always_enabled():
        return
    within = _frames_within()
    if direct and within:
        return
    _given.add(message)
    warnings.warn(message, UserWarning, stacklevel=2 + within)
