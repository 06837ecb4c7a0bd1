"""torch.accelerator: the questions and switches of the current accelerator, which is CUDA where there is a device."""

from __future__ import annotations

from typing import Any

import tensorrt_lite as trt

__all__ = ["current_accelerator", "current_device_idx", "current_device_index", "device_count", "is_available", "set_device_idx", "set_device_index", "synchronize"]


def is_available() -> bool:
    """Whether there is a CUDA device."""
    return trt.cuda.is_available()


def device_count() -> int:
    """The number of CUDA devices."""
    return trt.cuda.device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """`device("cuda")`, the only accelerator that the package has been built for; None with check_available where there is no device."""
    return None if check_available and not is_available() else trt.device("cuda")


def current_device_index() -> int:
    """The current device. RuntimeError without one."""
    return trt.cuda.current_device()


def set_device_index(device: Any, /) -> None:
    """Make a device (index, name or device) the current one. RuntimeError without one."""
    trt.cuda.set_device(device)


def synchronize(device: Any = None, /) -> None:
    """Wait for all work of a device, the current one by default. RuntimeError without one."""
    trt.cuda.synchronize(device)


current_device_idx = current_device_index
set_device_idx = set_device_index


def __getattr__(name: str) -> Any:
    from tensorrt_lite._missing import error

    raise error("accelerator", name)


def __dir__() -> list[str]:
    from tensorrt_lite._names import public

    return public(globals())
