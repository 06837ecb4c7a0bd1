"""CUDA's place in the API. ``is_available()`` tells whether GPUs can be used and costs nothing where there is no driver.

This build has no operators for GPUs: there are no devices, and whatever needs one raises one clear RuntimeError.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MESSAGE = "Torch not compiled with CUDA enabled: tensorrt_lite has no CUDA device here (tensorrt_lite.cuda.is_available() is False)"

# Functions of PyTorch's module that need a device.
_NEED_DEVICE = {
    "Event", "Stream", "CUDAGraph", "can_device_access_peer", "clock_rate", "current_blas_handle", "current_device", "current_stream", "default_stream",
    "get_device_capability", "get_device_name", "get_device_properties", "get_rng_state", "get_rng_state_all", "graph", "init", "initial_seed", "ipc_collect",
    "make_graphed_callables", "mem_get_info", "memory_snapshot", "memory_summary", "memory_usage", "power_draw", "seed", "seed_all", "set_device",
    "set_rng_state", "set_rng_state_all", "set_stream", "synchronize", "temperature", "utilization",
}  # fmt: skip


def is_available() -> bool:
    """Whether tensors can live on a GPU: False."""
    return False


def device_count() -> int:
    """The number of usable GPUs: 0."""
    return 0


def is_initialized() -> bool:
    """Whether a GPU context exists: False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False: there is no device."""
    return False


def is_current_stream_capturing() -> bool:
    """False: there is no stream."""
    return False


def get_arch_list() -> list[str]:
    """The GPU architectures with compiled kernels: none."""
    return []


def manual_seed(seed: int) -> None:
    """Nothing without a device, as in PyTorch: programs seed before they look for GPUs."""


def manual_seed_all(seed: int) -> None:
    """Nothing without a device, as in PyTorch."""


def empty_cache() -> None:
    """Nothing is cached."""


def memory_allocated(device: Any = None) -> int:
    """0 bytes."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """0 bytes."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """0 bytes."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """0 bytes."""
    return 0


def memory_stats(device: Any = None) -> dict[str, int]:
    """No statistics."""
    return {}


@contextmanager
def stream(stream: Any) -> Iterator[None]:
    """A context without effect for None; streams need a device."""
    if stream is not None:
        _refuse("stream")
    yield


class device(AbstractContextManager):
    """Selects a GPU inside a ``with`` block; None and negative indices select nothing."""

    def __init__(self, device: Any) -> None:
        if device is not None and not (isinstance(device, int) and device < 0):
            _refuse("device")

    def __exit__(self, *exception: object) -> None:
        return None


def _refuse(name: str) -> NoReturn:
    raise RuntimeError(f"cuda.{name}: {_MESSAGE}")


def _refusing(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        _refuse(name)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = "RuntimeError: there is no CUDA device."
    return call


def __getattr__(name: str) -> Any:
    if name == "amp":
        from importlib import import_module

        return import_module("tensorrt_lite.amp")
    if name in _NEED_DEVICE or name in ("reset_peak_memory_stats", "reset_accumulated_memory_stats"):
        return _refusing(name)
    raise AttributeError(f"module 'tensorrt_lite.cuda' has no attribute '{name}'")
