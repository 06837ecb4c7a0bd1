"""Utilities beside the operators, imported on first use: `utils.data` (datasets and loaders), `utils.benchmark`, `utils.checkpoint`, `utils.hooks`, `utils.safetensors`, `utils.tensorboard`."""

from __future__ import annotations

from typing import Any

__all__ = ["benchmark", "checkpoint", "cpp_extension", "data", "dlpack", "flop_counter", "generate_methods_for_privateuse1_backend", "hooks", "model_zoo", "rename_privateuse1_backend", "safetensors", "tensorboard"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("generate_methods_for_privateuse1_backend", "rename_privateuse1_backend"):
        return getattr(import_module("tensorrt_lite.backend.privateuse1"), name)
    if name in __all__ or name in ("_pytree", "_python_dispatch"):
        return import_module(f"{__name__}.{name}")
    from tensorrt_lite._missing import error

    raise error("utils", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names import public

    return public(globals())
