"""The old name of autograd's profiler, which is the one there is."""

from __future__ import annotations

from tensorrt_lite.autograd.profiler import DeviceType, EventList, FunctionEvent, profile

__all__ = ["DeviceType", "EventList", "FunctionEvent", "profile"]
