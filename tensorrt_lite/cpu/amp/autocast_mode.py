"""Deprecated spellings of what `tensorrt_lite.amp` has for every device type."""

from __future__ import annotations

import warnings
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import amp
from tensorrt_lite._names.listing import public_name

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Deprecated: ``tensorrt_lite.autocast("cpu", ...)``."""

    def __init__(self, enabled: bool = True, dtype: Any = trt.bfloat16, cache_enabled: bool = True) -> None:
        warnings.warn(
            f"`{public_name()}.cpu.amp.autocast(args...)` is deprecated. Please use `{public_name()}.amp.autocast('cpu', args...)` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
