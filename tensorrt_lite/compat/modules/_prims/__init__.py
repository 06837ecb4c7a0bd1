"""torch._prims: primitive operators. Those with an operator of the same name are that operator; the others are not implemented."""

from __future__ import annotations

from typing import Any

import tensorrt_lite


def __getattr__(name: str) -> Any:
    value = None if name.startswith("_") else getattr(tensorrt_lite, name, None)
    if not callable(value):
        raise AttributeError(f"module 'torch._prims' has no attribute '{name}'")
    return value
