"""torch.onnx without export."""

from __future__ import annotations

from typing import Any

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """False: there is no export."""
    return False


def __getattr__(name: str) -> Any:
    from tensorrt_lite._names.missing import error

    raise error("onnx", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names.listing import public

    return public(globals())
