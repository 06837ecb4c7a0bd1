"""torch._dynamo.utils: what packages ask of it."""

from __future__ import annotations

from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """False: there is no compiler."""
    return False
