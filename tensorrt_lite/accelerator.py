"""torch.accelerator: the questions and switches of the current accelerator: the custom device that was registered first, else CUDA."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._names import listing as _names
from tensorrt_lite._C.core import device as _device
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")

__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count", "device_index", "is_available", "set_device_idx",
    "set_device_index", "set_stream", "synchronize",
]  # fmt: skip


def _module(device: Any = None) -> Any:
    """The module of the accelerator, or of a device, which must be one of it."""
    place = _device._accelerator_type()
    if isinstance(device, (str, trt.device)) and trt.device(device).type != place:
        raise ValueError(f"{trt.device(device).type} doesn't match the current accelerator {place}.")
    return getattr(_names.root(), place)


def is_available() -> bool:
    """Whether there is a device of the accelerator."""
    return _module().is_available()


def device_count() -> int:
    """The number of its devices."""
    return _module().device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """`device("cuda")`, or that of the custom device that was registered first; None with check_available where there is no device."""
    return None if check_available and not is_available() else trt.device(_device._accelerator_type())


def current_device_index() -> int:
    """The current device. RuntimeError without one."""
    return _module().current_device()


def set_device_index(device: Any, /) -> None:
    """Make a device (index, name or device) the current one. RuntimeError without one."""
    _module(device).set_device(device)


def current_stream(device: Any = None, /) -> Any:
    """The thread's current stream on a device, the current one by default. RuntimeError without one."""
    return _module(device).current_stream(device)


def set_stream(stream: Any, /) -> None:
    """Make a stream, and its device, the thread's current ones."""
    module = _module(stream.device)
    module.set_device(stream.device)
    module.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait for all work of a device, the current one by default. RuntimeError without one."""
    _module(device).synchronize(device)


class device_index:  # noqa: N801
    """``with device_index(1):`` the current device for a block of statements; nothing for None."""

    def __init__(self, device: int | None, /) -> None:
        self.idx, self._outer = device, -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self._outer = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exception: object) -> None:
        if self.idx is not None:
            set_device_index(self._outer)


current_device_idx = current_device_index
set_device_idx = set_device_index


def __getattr__(name: str) -> Any:
    raise _missing.error("accelerator", name)


def __dir__() -> list[str]:
    return _listing.public(globals())
