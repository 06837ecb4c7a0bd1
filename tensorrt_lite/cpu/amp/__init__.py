"""Deprecated spellings of `tensorrt_lite.amp` with the device type "cpu"."""

from __future__ import annotations

from tensorrt_lite.cpu.amp.autocast_mode import autocast
from tensorrt_lite.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
