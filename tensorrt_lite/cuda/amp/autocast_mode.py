"""Deprecated spellings of what `tensorrt_lite.amp` has for every device type."""

from __future__ import annotations

import warnings
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import amp
from tensorrt_lite._names.listing import public_name

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


def _deprecated(old: str, new: str) -> None:
    package = public_name()
    text = f"`{package}.cuda.amp.{old}(args...)` is deprecated. Please use `{package}.amp.{new}` instead."
    warnings.warn(text, FutureWarning, stacklevel=3)


class autocast(amp.autocast):
    """Deprecated: ``tensorrt_lite.autocast("cuda", ...)``."""

    def __init__(self, enabled: bool = True, dtype: Any = trt.float16, cache_enabled: bool = True) -> None:
        _deprecated("autocast", "autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """Deprecated: ``tensorrt_lite.amp.custom_fwd(..., device_type="cuda")``."""
    _deprecated("custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """Deprecated: ``tensorrt_lite.amp.custom_bwd(..., device_type="cuda")``."""
    _deprecated("custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")
