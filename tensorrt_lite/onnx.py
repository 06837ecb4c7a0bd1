"""torch.onnx without export."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """False: there is no export."""
    return False


def __getattr__(name: str) -> Any:
    raise _missing.error("onnx", name)


def __dir__() -> list[str]:
    return _listing.public(globals())
