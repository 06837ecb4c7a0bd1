"""torch._refs: operators written over others: here each is the operator itself."""

from __future__ import annotations

from typing import Any

import tensorrt_lite
from tensorrt_lite.compat.modules._refs import nn as nn


def __getattr__(name: str) -> Any:
    value = None if name.startswith("_") else getattr(tensorrt_lite, name, None)
    if not callable(value):
        raise AttributeError(f"module 'torch._refs' has no attribute '{name}'")
    return value
