"""torch._VF: operators by the names under which recurrent modules and composed functions call them."""

from __future__ import annotations

from typing import Any

import tensorrt_lite


def __getattr__(name: str) -> Any:
    return getattr(tensorrt_lite, name)
