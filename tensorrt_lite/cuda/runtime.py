"""What programs ask of the CUDA runtime by its own names, and the ranges and sections of profilers."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from tensorrt_lite.cuda import _backend, _driver, device_count, memory, synchronize
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_cuda_toolchain = _LazyModule("tensorrt_lite.cuda._toolchain")


class cudaStatus:
    """Statuses of the runtime that `check_error` knows by name."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class CudaError(RuntimeError):
    """A call of the runtime failed."""

    def __init__(self, code: int) -> None:
        super().__init__(f"{_driver.error_text(code)} ({code})")


def check_error(res: int) -> None:
    """CudaError for a status that is no success."""
    if res != cudaStatus.SUCCESS:
        raise CudaError(res)


class _Runtime:
    """The runtime's functions; each returns a status, 0 for success, unless it is a query."""

    cudaError = SimpleNamespace(success=0)

    @staticmethod
    def cudaMemGetInfo(device: int) -> tuple[int, int]:
        return memory.mem_get_info(device)

    @staticmethod
    def cudaGetDeviceCount() -> int:
        return device_count()

    @staticmethod
    def cudaDeviceSynchronize() -> int:
        synchronize()
        return 0

    @staticmethod
    def cudaHostRegister(pointer: int, size: int, flags: int) -> int:
        """Pin memory of the host: tensors in it are pinned."""
        _backend()
        status = _driver.host_register(pointer, size, flags)
        if status == 0:
            _backend()._note_registered(pointer, size)
        return status

    @staticmethod
    def cudaHostUnregister(pointer: int) -> int:
        status = _driver.host_unregister(pointer)
        if status == 0:
            _backend()._note_registered(pointer, 0)
        return status

    @staticmethod
    def cudaProfilerStart() -> int:
        return _driver.profiler(True)

    @staticmethod
    def cudaProfilerStop() -> int:
        return _driver.profiler(False)

    @staticmethod
    def cudaGetErrorString(status: int) -> str:
        return _driver.error_text(status)


def cudart() -> Any:
    """The functions of the CUDA runtime that programs use by name. RuntimeError without a device."""
    _backend()
    return _Runtime


_MODES = {"default": 0, "warn": 1, "error": 2}


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """What operations do that wait for the device, as copies to the host: "default" 0 nothing, "warn" 1, "error" 2. RuntimeError for other modes."""
    mode = _MODES.get(debug_mode, -1) if isinstance(debug_mode, str) else debug_mode
    if mode not in _MODES.values():
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
    _backend()._set_sync_debug_mode(mode)


def get_sync_debug_mode() -> int:
    """0, 1 or 2, as `set_sync_debug_mode` takes them."""
    return _backend()._set_sync_debug_mode(-1)


class nvtx:
    """Ranges and marks that NVIDIA's profilers show; RuntimeError where their library is missing."""

    _library: Any = None

    @staticmethod
    def _open() -> Any:
        """NVTX: a library of its own up to CUDA 12, then the interoperation library of NVTX 3, which has the same functions."""
        names = ("libnvToolsExt.so.1", "libnvtx3interop.so.1")
        folders = [folder for place in _cuda_toolchain.places() for part in ("lib64", "lib", "nvidia/*/lib") for folder in sorted(place.glob(part))]
        for path in [*(str(folder / name) for folder in folders for name in names if (folder / name).exists()), *names]:
            try:
                return ctypes.CDLL(path)
            except OSError:
                continue
        raise RuntimeError(f"NVTX functions not installed: neither {' nor '.join(names)} can be opened (pip install nvidia-nvtx)")

    @classmethod
    def _call(cls, name: str, *arguments: Any) -> int:
        if cls._library is None:
            cls._library = cls._open()
        return getattr(cls._library, name)(*arguments)

    @classmethod
    def range_push(cls, msg: str) -> int:
        """Begin a range inside those that are open; its depth."""
        return cls._call("nvtxRangePushA", msg.encode())

    @classmethod
    def range_pop(cls) -> int:
        """End the innermost range; its depth."""
        return cls._call("nvtxRangePop")

    @classmethod
    def mark(cls, msg: str) -> None:
        """An event at one time."""
        cls._call("nvtxMarkA", msg.encode())

    @classmethod
    @contextmanager
    def range(cls, msg: str, *args: Any, **kwargs: Any) -> Iterator[None]:
        """``with nvtx.range("step {}", 3):``"""
        cls.range_push(msg.format(*args, **kwargs))
        try:
            yield
        finally:
            cls.range_pop()


class profiler:
    """The section that an outer profiler collects."""

    @staticmethod
    def start() -> None:
        """Begin to collect."""
        _backend()
        check_error(_driver.profiler(True))

    @staticmethod
    def stop() -> None:
        """Stop collecting."""
        _backend()
        check_error(_driver.profiler(False))

    @staticmethod
    @contextmanager
    def profile() -> Iterator[None]:
        """``with cuda.profiler.profile():`` collect inside."""
        profiler.start()
        try:
            yield
        finally:
            profiler.stop()
