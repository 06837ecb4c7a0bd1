"""The profiler: what a program's time and memory go to, by operator, backward Node, named range, step, shape and line (docs/profiler.md).

    with trt.profiler.profile(record_shapes=True) as recorded:
        train()
    print(recorded.key_averages().table(sort_by="self_cpu_time_total", row_limit=10))
    recorded.export_chrome_trace("trace.json")      # for chrome://tracing or Perfetto
    recorded.export_flame_graph("flame.svg")
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

if TYPE_CHECKING:
    from tensorrt_lite.autograd.profiler import record_function
    from tensorrt_lite.profiler import itt
    from tensorrt_lite.profiler._types import DeviceType, ProfilerAction, ProfilerActivity, RecordScope
    from tensorrt_lite.profiler.profiler import _ExperimentalConfig, _KinetoProfile, profile, schedule, supported_activities, tensorboard_trace_handler

__all__ = ["DeviceType", "ProfilerAction", "ProfilerActivity", "kineto_available", "profile", "record_function", "schedule", "supported_activities",
           "tensorboard_trace_handler"]  # fmt: skip

_HOMES = {
    **dict.fromkeys(("record_function", "kineto_available", "KinetoStepTracker"), "autograd.profiler"),
    **dict.fromkeys(("DeviceType", "ProfilerAction", "ProfilerActivity", "RecordScope", "_ExperimentalConfig"), "profiler._types"),
    **dict.fromkeys(("profile", "schedule", "supported_activities", "tensorboard_trace_handler", "_KinetoProfile"), "profiler.profiler"),
}  # fmt: skip
_MODULES = {"profiler", "itt"}


def kineto_available() -> bool:
    """True: profiles have steps, traces and stacks."""
    return True


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(_import_module(f"tensorrt_lite.{_HOMES[name]}"), name)
    elif name in _MODULES:
        value = _import_module(f"tensorrt_lite.profiler.{name}")
    else:
        raise _missing.error("profiler", name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return _listing.public(globals(), [*_HOMES, *_MODULES])
