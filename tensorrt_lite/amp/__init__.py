"""Automatic mixed precision: `autocast` runs operators in the dtype that suits them, `GradScaler` keeps small gradients of float16 above zero.

>>> import tensorrt_lite as trt
>>> model, x = trt.nn.Linear(4, 2), trt.ones(3, 4)
>>> with trt.autocast("cpu"):
...     y = model(x)
>>> y.dtype
torch.bfloat16
"""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.core.hints import LookUp as _LookUp
from tensorrt_lite.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from tensorrt_lite.amp.grad_scaler import GradScaler
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def __getattr__(name: str) -> Any:
    raise _missing.error("amp", name)


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals())
