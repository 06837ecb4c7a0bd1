"""torch.mps: no such device is supported, which programs may ask."""

from __future__ import annotations

from tensorrt_lite.compat.modules._no_device import device_count, is_available, manual_seed

__all__ = ["device_count", "is_available", "manual_seed"]
