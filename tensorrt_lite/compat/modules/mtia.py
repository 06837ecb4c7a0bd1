"""torch.mtia: no such device is supported, which programs may ask."""

from __future__ import annotations

from tensorrt_lite.compat.modules._no_device import device_count, is_available, is_bf16_supported, is_initialized, manual_seed, manual_seed_all

__all__ = ["device_count", "is_available", "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all"]
