"""torch._C._nn: how `Module.to` reads its arguments."""

from __future__ import annotations

from tensorrt_lite.nn.modules.module import _parse_to

__all__ = ["_parse_to"]
