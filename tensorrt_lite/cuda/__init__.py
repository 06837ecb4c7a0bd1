"""CUDA devices: what there is, which is current, their streams, events, memory and graphs; the names are PyTorch's.

``is_available()`` tells whether GPUs can be used and costs nothing where there is no driver; everything that needs one then raises the same
RuntimeError. ``TENSORRT_LITE_CUDA=emulate`` runs the device on the CPU through tools/cuda_emulator, for programs and tests without a GPU.
"""

from __future__ import annotations

import sys
from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from tensorrt_lite._C.core.hints import LookUp as _LookUp
from tensorrt_lite._C.core.device import device as _device
from tensorrt_lite._C.cuda import driver as _driver
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_cuda_kernels = _LazyModule("tensorrt_lite.cuda._kernels")
_listing = _LazyModule("tensorrt_lite._names.listing")
_missing = _LazyModule("tensorrt_lite._names.missing")
_typed_tensors = _LazyModule("tensorrt_lite._legacy.typed_tensors")

if TYPE_CHECKING:
    from tensorrt_lite.tensor import Tensor

_LAZY = {
    **dict.fromkeys(("Stream", "Event", "ExternalStream", "get_stream_from_external", "StreamContext", "stream", "current_stream", "default_stream", "set_stream"), "streams"),
    **dict.fromkeys((
        "CUDAPluggableAllocator", "MemPool", "caching_allocator_disabled", "caching_allocator_enable", "change_current_allocator", "get_allocator_backend", "host_memory_stats", "host_memory_stats_as_nested_dict",
        "list_gpu_processes", "reset_accumulated_host_memory_stats", "reset_peak_host_memory_stats", "use_mem_pool",
        "OutOfMemoryError", "caching_allocator_alloc", "caching_allocator_delete", "empty_cache", "get_per_process_memory_fraction", "max_memory_allocated",
        "max_memory_cached", "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
        "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
        "reset_peak_memory_stats", "set_per_process_memory_fraction",
    ), "memory"),
    **dict.fromkeys(("compile_source", "CompiledSource", "Kernel"), "modules"),
    **dict.fromkeys(("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing", "make_graphed_callables"), "graphs"),
    **dict.fromkeys((
        "get_rng_state", "get_rng_state_all", "set_rng_state", "set_rng_state_all", "manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed",
        "default_generators",
    ), "random"),
    **dict.fromkeys(("CudaError", "check_error", "cudart", "cudaStatus", "get_sync_debug_mode", "nvtx", "profiler", "set_sync_debug_mode"), "runtime"),
    **dict.fromkeys(("clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature", "utilization"), "nvml"),
}  # fmt: skip
_SUBMODULES = {"amp", "comm", "streams", "memory", "graphs", "random", "modules", "nvml", "sparse"}
_SERVICES = {"emulator_library": "_compiler", "compile_unit": "_compiler", "note_launch": "_compiler", "cublaslt": "_libraries"}


def _service(name: str) -> Any:
    """What the compiled backend needs of this package, by name and when it needs it."""
    return getattr(_import_module(f"tensorrt_lite.cuda.{_SERVICES[name]}"), name)


_driver._set_services(_service)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        value = getattr(_import_module(f"tensorrt_lite.cuda.{_LAZY[name]}"), name)
    elif name in _SUBMODULES:
        return _import_module(f"tensorrt_lite.cuda.{name}")
    elif name.endswith("Tensor") and name in _import_module("tensorrt_lite._legacy.typed_tensors").NAMES:
        value = _import_module("tensorrt_lite._legacy.typed_tensors").typed_class(name, cuda=True)
    else:
        raise _missing.error("cuda", name)
    globals()[name] = value
    return value


globals()["__getattr__"] = _LookUp(__getattr__)


def __dir__() -> list[str]:
    return _listing.public(globals(), [*_LAZY, *_SUBMODULES, *_typed_tensors.NAMES])


# ---- what there is


def is_available() -> bool:
    """Whether there is a driver with a device."""
    return _driver.available()


def device_count() -> int:
    """The number of devices; 0 without a driver."""
    return _driver.device_count()


def init() -> None:
    """Load the backend now. RuntimeError without a driver or a device."""
    _backend()


def is_initialized() -> bool:
    """Whether the backend has been loaded."""
    return "tensorrt_lite._C.cuda.backend" in sys.modules


def _backend() -> Any:
    _driver.require()

    return _cuda_kernels.backend


def _index(device: Any = None, optional: bool = True) -> int:
    """The index that a device, a string, a number or None (the current device) means. ValueError for devices of another type."""
    if device is None:
        if not optional:
            raise ValueError("Expected a cuda device, but got: None")
        return _backend()._current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return device if device >= 0 else _backend()._current_device()
    parsed = device if isinstance(device, _device) else _device(device)
    if parsed.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return _backend()._current_device() if parsed.index is None else parsed.index


# ---- the current device


def current_device() -> int:
    """The index of this thread's current device."""
    return _backend()._current_device()


def set_device(device: Any) -> None:
    """Make a device current in this thread; negative indices do nothing."""
    index = device if isinstance(device, int) else _index(device)
    if index >= 0:
        _backend()._set_device(index)


class device:
    """Makes a device current inside a ``with`` block; None and negative indices change nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None or isinstance(device, int) and device < 0 else _index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _backend()._set_device(self.idx)

    def __exit__(self, *exception: object) -> None:
        if self.idx >= 0:
            _backend()._set_device(self.prev_idx)


class device_of(device):
    """Makes the device of a tensor current; tensors on the CPU change nothing."""

    def __init__(self, obj: Tensor) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def ipc_collect() -> None:
    """Let go of memory that was sent to other processes and is no longer used there."""
    sharing = sys.modules.get("tensorrt_lite.multiprocessing._cuda")
    if sharing is not None:
        sharing.collect()


def synchronize(device: Any = None) -> None:
    """Wait for all work of a device. IndexError where a kernel met an index out of range."""
    index = _index(device)
    _driver.synchronize_on(index)
    if is_initialized():
        _backend()._waited(index)


# ---- properties

# CUdevice_attribute numbers
_ATTRIBUTES = {
    "max_threads_per_block": 1, "shared_memory_per_block": 8, "warp_size": 10, "regs_per_block": 12, "multi_processor_count": 16, "is_integrated": 18,
    "pci_bus_id": 33, "pci_device_id": 34, "L2_cache_size": 38, "max_threads_per_multi_processor": 39, "pci_domain_id": 50, "major": 75, "minor": 76,
    "shared_memory_per_multiprocessor": 81, "regs_per_multiprocessor": 82, "is_multi_gpu_board": 84, "shared_memory_per_block_optin": 97,
}  # fmt: skip


class _DeviceProperties:
    """Attributes of a device, read once."""

    def __init__(self, index: int) -> None:
        self.name = _driver.device_name(index)
        for name, number in _ATTRIBUTES.items():
            setattr(self, name, _driver.device_attribute(number, index))
        self.total_memory = _driver.device_total_memory(index)
        import uuid

        self.uuid = uuid.UUID(bytes=_driver.device_uuid(index))
        self.gcnArchName = f"sm_{self.major}{self.minor}"  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        d = vars(self)
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={d['major']}, minor={d['minor']}, total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={d['multi_processor_count']}, uuid={self.uuid}, L2_cache_size={d['L2_cache_size'] // 2**20}MB)"
        )


_properties: dict[int, _DeviceProperties] = {}


def get_device_properties(device: Any = None) -> _DeviceProperties:
    """Name, compute capability, memory, multiprocessors and limits of a device."""
    index = _index(device)
    if index not in _properties:
        _properties[index] = _DeviceProperties(index)
    return _properties[index]


def get_device_name(device: Any = None) -> str:
    """The device's name."""
    return _driver.device_name(_index(device))


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """(major, minor) of the compute capability."""
    index = _index(device)
    return _driver.device_attribute(75, index), _driver.device_attribute(76, index)


def get_arch_list() -> list[str]:
    """The architectures that kernels exist for: those of the devices here, since kernels are compiled when they are first used."""
    found = {f"sm_{major}{minor}" for major, minor in map(get_device_capability, range(device_count()))}
    return sorted(found)


def get_gencode_flags() -> str:
    """The compiler's flags for the devices here."""
    numbers = [name.removeprefix("sm_") for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{n},code=sm_{n}" for n in numbers)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether kernels on one device can address the memory of another."""
    return _driver.can_access_peer(_index(device, False), _index(peer_device, False))


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 works: in hardware from compute capability 8.0 on, by conversion before."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether tensor cores multiply tf32: from compute capability 8.0 on."""
    return is_available() and get_device_capability()[0] >= 8
