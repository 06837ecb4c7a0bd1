"""Utilities beside the operators, imported on first use: `utils.data` (datasets and loaders), `utils.benchmark`, `utils.checkpoint`, `utils.hooks`, `utils.safetensors`, `utils.tensorboard`."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from tensorrt_lite._C.core.hints import LookUp as _LookUp
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")
_package_facts = _LazyModule("tensorrt_lite._functions.package_facts")

__all__ = [
    "ThroughputBenchmark", "backcompat", "backend_registration", "benchmark", "checkpoint", "cmake_prefix_path", "collect_env", "cpp_backtrace", "cpp_extension",
    "data", "debug_log", "deterministic", "dlpack", "file_baton", "flop_counter", "generate_methods_for_privateuse1_backend", "get_cpp_backtrace", "hooks", "model_zoo", "module_tracker",
    "rename_privateuse1_backend", "safetensors", "serialization", "set_module", "swap_tensors", "tensorboard", "throughput_benchmark", "weak",
]  # fmt: skip

_FROM = {
    "ThroughputBenchmark": "utils.throughput_benchmark", "generate_methods_for_privateuse1_backend": "backend.privateuse1",
    "get_cpp_backtrace": "utils.cpp_backtrace", "rename_privateuse1_backend": "backend.privateuse1", "swap_tensors": "utils._swap",
}  # fmt: skip


def set_module(obj: Any, mod: str) -> None:
    """Let an object say that it is of the module `mod`. TypeError for what is no string."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name: str) -> Any:
    if name in _FROM:
        return getattr(_import_module(f"tensorrt_lite.{_FROM[name]}"), name)
    if name == "cmake_prefix_path":
        return _package_facts.get_file_path("torch", "share", "cmake")
    if name in __all__ or name in ("_pytree", "_python_dispatch"):
        return _import_module(f"{__package__}.{name}")

    raise _missing.error("utils", name)


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals())
