"""Deprecated spellings of `tensorrt_lite.amp` with the device type "cuda"."""

from __future__ import annotations

from tensorrt_lite.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from tensorrt_lite.cuda.amp.common import amp_definitely_not_available
from tensorrt_lite.cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
