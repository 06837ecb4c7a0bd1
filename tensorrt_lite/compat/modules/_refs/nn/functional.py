"""torch._refs.nn.functional: functions of modules, each the public one."""

from __future__ import annotations

from typing import Any

from tensorrt_lite.nn import functional


def __getattr__(name: str) -> Any:
    return getattr(functional, name)
