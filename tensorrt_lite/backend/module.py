"""The module that a device type has in the package: ``trt.npu.current_device()``, as ``trt.cuda`` has."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensorrt_lite.backend.device import Device

__all__ = ["NAMES", "module_of"]

NAMES = (
    "device_count", "is_available", "current_device", "set_device", "device", "synchronize", "Stream", "Event", "default_stream", "current_stream", "set_stream",
    "stream", "manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed", "get_rng_state", "set_rng_state", "get_rng_state_all", "set_rng_state_all",
    "default_generators", "get_amp_supported_dtype", "_is_in_bad_fork",
)  # fmt: skip


def module_of(device: Device) -> types.ModuleType:
    """A module with the device type's functions."""
    module = types.ModuleType(f"tensorrt_lite.{device.name}", f"The devices of the type '{device.name}'.")
    for name in NAMES:
        setattr(module, name, getattr(device, name))
    module.is_initialized = device.is_available  # type: ignore[attr-defined]
    module.__all__ = [name for name in NAMES if not name.startswith("_")]  # type: ignore[attr-defined]
    return module
