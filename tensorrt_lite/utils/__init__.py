"""Utilities beside the operators, imported on first use: `utils.data` (datasets and loaders), `utils.checkpoint`, `utils.safetensors`."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.util import find_spec

    if not name.startswith("_") and find_spec(f"{__name__}.{name}") is not None:
        return import_module(f"{__name__}.{name}")
    from tensorrt_lite._missing import error

    raise error("utils", name)
