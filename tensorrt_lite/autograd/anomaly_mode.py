"""Anomaly mode: Nodes remember where the forward call stood, and gradients that contain NaN raise.

The executor calls ``print_forward_trace`` when the backward of a Node fails while the mode is on.
"""

from __future__ import annotations

import sys
import warnings

from tensorrt_lite._C.autograd.anomaly import _set_trace_printer
from tensorrt_lite._C.core.dispatch import _set_anomaly

__all__ = ["detect_anomaly", "set_detect_anomaly", "is_anomaly_enabled", "is_anomaly_check_nan_enabled"]

_ON, _CHECK_NAN = 1, 2


def _flags() -> int:
    before = _set_anomaly(0)
    _set_anomaly(before)
    return before


def is_anomaly_enabled() -> bool:
    """Whether anomaly mode is on in this thread.

    Example:
        >>> import tensorrt_lite as trt
        >>> with trt.autograd.detect_anomaly():
        ...     print(trt.is_anomaly_enabled())
        True
    """
    return bool(_flags() & _ON)


def is_anomaly_check_nan_enabled() -> bool:
    """Whether gradients are searched for NaN in this thread.

    Example:
        >>> import tensorrt_lite as trt
        >>> with trt.autograd.detect_anomaly():
        ...     print(trt.is_anomaly_check_nan_enabled())
        True
    """
    return bool(_flags() & _CHECK_NAN)


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode on or off in this thread.

    Parameters:
        mode (bool): whether it is on
        check_nan (bool, default True): whether a gradient with NaN raises an error

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_anomaly_enabled(False)
        >>> trt.is_anomaly_enabled()
        False
    """
    _set_anomaly((_ON | (_CHECK_NAN if check_nan else 0)) if mode else 0)


class set_detect_anomaly:
    """Switch anomaly mode on or off, at once and until the end of a ``with`` block. mode, check_nan: bool."""

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _set_anomaly((_ON | (_CHECK_NAN if check_nan else 0)) if mode else 0)

    def __enter__(self) -> None:
        pass

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _set_anomaly(self._before)


class detect_anomaly:
    """Inside, a backward that fails prints where its forward was called, and a gradient with NaN raises RuntimeError."""

    def __init__(self, check_nan: bool = True) -> None:
        self._flags = _ON | (_CHECK_NAN if check_nan else 0)
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.", stacklevel=2
        )

    def __enter__(self) -> None:
        self._before = _set_anomaly(self._flags)

    def __exit__(self, exc_type, exc_value, traceback) -> None:
        _set_anomaly(self._before)


def print_forward_trace(node) -> None:
    """Warn with the traceback of the forward call that made ``node``."""
    trace = node.metadata.get("traceback_")
    if trace is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. Enable detect anomaly during forward pass for more information.",
            stacklevel=2,
        )
        return
    trace = _from_program(trace)
    warnings.warn(f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{''.join(trace)}", stacklevel=2)


def _from_program(trace: list[str]) -> list[str]:
    """The formatted entries of a stack from the program's first frame on, where a command of this package runs the program."""
    runner = sys.modules.get("tensorrt_lite._commands.run_program")
    if runner is None:
        return trace
    first = max((i for i, entry in enumerate(trace) if entry.startswith(f'  File "{runner.__file__}"')), default=-1) + 1
    while 0 < first < len(trace) and trace[first].startswith('  File "<frozen runpy>"'):
        first += 1
    return trace[first:]


_set_trace_printer(print_forward_trace)
