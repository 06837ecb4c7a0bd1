"""The caching allocator's figures and switches. Sizes are in bytes; the allocator itself is cysrc/cuda/caching.pyx."""

from __future__ import annotations

import sys
from typing import Any

from tensorrt_lite._C.cuda import caching as _caching
from tensorrt_lite._C.cuda import driver as _driver
from tensorrt_lite._C.cuda import memory as _memory
from tensorrt_lite.cuda import _backend, _index, is_initialized
from tensorrt_lite.cuda import device as _guard
from tensorrt_lite.cuda import device_count as _device_count
from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_cuda_settings = _LazyModule("tensorrt_lite.cuda._settings")
_nvml = _LazyModule("tensorrt_lite.cuda.nvml")
_streams = _LazyModule("tensorrt_lite.cuda.streams")


class OutOfMemoryError(RuntimeError):
    """The device has no memory left for a request, after everything cached was given back."""


_caching._set_out_of_memory_error(OutOfMemoryError)


def empty_cache() -> None:
    """Give cached memory that no tensor uses back to the driver."""
    if is_initialized():
        _caching.empty_cache()


def _host_emptyCache() -> None:
    """Give cached page-locked host memory back to the driver."""
    if is_initialized():
        _backend()._empty_host_cache()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Statistics by kind, pool (all, large_pool, small_pool) and figure (current, peak, allocated, freed)."""
    return _memory.statistics(_index(device)) if is_initialized() else {}


def memory_stats(device: Any = None) -> dict[str, int]:
    """The same with flat names: ``allocated_bytes.all.current``."""
    return _flat(memory_stats_as_nested_dict(device))


def _flat(nested: dict[str, Any]) -> dict[str, int]:
    flat: dict[str, int] = {}

    def add(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, below in value.items():
                add(f"{prefix}.{key}" if prefix else key, below)
        else:
            flat[prefix] = value

    add("", nested)
    return dict(sorted(flat.items()))


def memory_allocated(device: Any = None) -> int:
    """Bytes that tensors hold."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors have held since the start or reset_peak_memory_stats()."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the driver, in use or cached."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes taken from the driver since the start or reset_peak_memory_stats()."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Peaks start again at the current figures."""
    _memory.reset_peak(_index(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """Figures of the page-locked host memory: allocation, segment, allocated_bytes, reserved_bytes; num_host_alloc, num_host_free."""
    return _backend()._host_statistics() if is_initialized() else {}


def host_memory_stats() -> dict[str, int]:
    """The same with flat names: ``allocated_bytes.current``."""
    return _flat(host_memory_stats_as_nested_dict())


def reset_peak_host_memory_stats() -> None:
    """Peaks start again at the current figures."""
    _backend()._reset_host_statistics(True)


def reset_accumulated_host_memory_stats() -> None:
    """Totals start again at 0."""
    _backend()._reset_host_statistics(False)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Totals start again at 0."""
    _memory.reset_accumulated(_index(device))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the device, as the driver counts them."""
    with _guard(_index(device)):
        _backend()._enter_current()
        return _driver.memory_info()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Reserve no more than this part of the device's memory. ValueError outside of 0 to 1, TypeError for what is no float."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _memory.set_fraction(_index(device), fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of the device's memory that may be reserved."""
    return _memory.get_fraction(_index(device))


def memory_snapshot(mempool_id: Any = None) -> list[dict[str, Any]]:
    """Every segment of the allocator with its blocks, by address; those of one MemPool by its id."""
    return _memory.snapshot(None if mempool_id is None else mempool_id[0]) if is_initialized() else []


_history: Any = None


def _frames() -> list[dict[str, Any]]:
    """The Python frames that asked for memory, innermost first."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        found.append({"filename": code.co_filename, "line": frame.f_lineno, "name": code.co_name})
        frame = frame.f_back  # type: ignore[assignment]
    return found


def _record_memory_history(enabled: str | None = "all", context: str | None = "all", stacks: str = "all", max_entries: int = sys.maxsize,
                           device: Any = None, clear_history: bool = False) -> None:  # fmt: skip
    """Note every request for memory from now on, for `_snapshot`: enabled "state" or "all", None stops; context None leaves out the frames."""
    global _history
    if enabled not in (None, "state", "all"):
        raise RuntimeError(f"expected enabled to be 'state', 'all' or None, got {enabled!r}")
    if enabled is None:
        _caching.record_history(None, None)
        return
    _backend()
    if _history is None or clear_history or _history.maxlen != min(max_entries, sys.maxsize):
        from collections import deque

        _history = deque(() if _history is None or clear_history else _history, maxlen=0 if enabled == "state" else min(max_entries, sys.maxsize))
    _caching.record_history(_history, None if context is None else _frames)


def _snapshot(device: Any = None) -> dict[str, Any]:
    """Segments, and the history of each device, in the form that PyTorch's memory viewer reads."""
    traces: list[list[Any]] = [[] for _ in range(_device_count())]
    for index, entry in _history or ():
        traces[index].append(entry)
    return {"segments": memory_snapshot(), "device_traces": traces, "external_annotations": []}


def _dump_snapshot(filename: str = "dump_snapshot.pickle") -> None:
    """`_snapshot` in a file."""
    import pickle

    with open(filename, "wb") as file:
        pickle.dump(_snapshot(), file)


class caching_allocator_disabled:
    """Inside, each request goes to the driver and its memory back at once, in all threads."""

    def __enter__(self) -> None:
        self._before = _caching.set_caching(False)

    def __exit__(self, *exception: object) -> None:
        _caching.set_caching(self._before)


def caching_allocator_enable(value: bool = True) -> None:
    """Switch the caching of freed memory on or off; PYTORCH_NO_CUDA_MEMORY_CACHING=1 has it off from the start."""
    _caching.set_caching(value)


def get_allocator_backend() -> str:
    """native, cudaMallocAsync or pluggable."""
    return _caching.backend_name()


def _set_allocator_settings(settings: str) -> None:
    """Settings as in PYTORCH_ALLOC_CONF, from now on. RuntimeError names what is unknown."""
    _cuda_settings.configure(settings)


class CUDAPluggableAllocator:
    """An allocator of a shared library.

    path_to_so_file: the library; alloc_fn_name: ``void* f(ssize_t size, int device, cudaStream_t stream)``; free_fn_name:
    ``void f(void* pointer, ssize_t size, int device, cudaStream_t stream)``. OSError where the library cannot be opened,
    AttributeError where it lacks a function.
    """

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        import ctypes

        self._library = ctypes.CDLL(path_to_so_file)
        self._functions = tuple(ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value for name in (alloc_fn_name, free_fn_name))

    def allocator(self) -> CUDAPluggableAllocator:
        """What a MemPool takes."""
        return self


def change_current_allocator(allocator: CUDAPluggableAllocator) -> None:
    """All memory comes from this allocator. RuntimeError once memory has been allocated."""
    global _plugged
    _backend()
    _caching.plug(*allocator._functions)
    _plugged = allocator  # its library stays loaded


_plugged: CUDAPluggableAllocator | None = None


class MemPool:
    """Memory of its own for what is allocated inside ``use_mem_pool``: from the driver, or from a CUDAPluggableAllocator.

    use_on_oom: its free memory serves other requests before they fail. Without users what is free goes back at the next empty_cache().
    """

    def __init__(self, allocator: Any = None, use_on_oom: bool = False) -> None:
        _backend()
        functions = (0, 0) if allocator is None else allocator._functions
        self.allocator = allocator
        self._pool = _caching.MemoryPool(*functions, allocator, use_on_oom)
        self._pool.hold(1)

    @property
    def id(self) -> tuple[int, int]:
        """The pool's name, which CUDA graphs take, too."""
        return self._pool.number, 0

    def use_count(self) -> int:
        """How many hold the pool: this object, blocks of ``use_mem_pool``, graphs."""
        return self._pool.use_count

    def snapshot(self) -> list[dict[str, Any]]:
        """The pool's segments with their blocks."""
        return memory_snapshot(self.id)

    def __del__(self) -> None:
        if hasattr(self, "_pool"):
            self._pool.hold(-1)


class use_mem_pool:
    """``with use_mem_pool(pool):`` what this thread allocates on the device (the current one by default) comes from the pool."""

    def __init__(self, pool: MemPool, device: Any = None) -> None:
        self._pool, self._device = pool._pool, _index(device)

    def __enter__(self) -> None:
        self._pool.hold(1)
        self._before = _backend()._use_pool(self._pool, self._device)

    def __exit__(self, *exception: object) -> None:
        _backend()._use_pool(*self._before)
        self._pool.hold(-1)


def list_gpu_processes(device: Any = None) -> str:
    """The processes that use a GPU and their memory, as NVML tells; a text that says so where its Python package is missing."""
    try:
        processes = _nvml.processes(device)
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    except RuntimeError as error:
        return f"cuda driver can't be loaded, is cuda enabled? ({error})"
    lines = [f"GPU:{_index(device)}", *(f"process {pid:>10d} uses {used / (1 << 20):>12.3f} MB GPU memory" for pid, used in processes)]
    return "\n".join(lines if processes else [*lines, "no processes are running"])


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of memory from the allocator, for other libraries; to be given back with caching_allocator_delete."""
    index = _index(device)
    handle = _streams.current_stream(index) if stream is None else stream
    return _memory.raw_allocate(index, size, handle if isinstance(handle, int) else handle.cuda_stream)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give memory of caching_allocator_alloc back."""
    _memory.raw_delete(mem_ptr)


def _format(size: float, unit: str = "B") -> str:
    for prefix in ("", "Ki", "Mi", "Gi"):
        if abs(size) < 10240 or prefix == "Gi":
            return f"{size:.0f} {prefix}{unit}"
        size /= 1024
    return ""


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """A table of the statistics."""
    index = _index(device)
    stats = memory_stats(index)
    rows = [("Allocated memory", "allocated_bytes", True), ("Active memory", "active_bytes", True), ("Requested memory", "requested_bytes", True),
            ("GPU reserved memory", "reserved_bytes", True), ("Non-releasable memory", "inactive_split_bytes", True), ("Allocations", "allocation", False),
            ("Active allocs", "active", False), ("GPU reserved segments", "segment", False), ("Non-releasable allocs", "inactive_split", False)]  # fmt: skip
    pools = [("", "all")] if abbreviated else [("", "all"), ("      from large pool", "large_pool"), ("      from small pool", "small_pool")]
    line = "|" + "=" * 75 + "|"
    text = [line, f"|{f'CUDA memory summary, device ID {index}':^75}|", line]
    text.append(f"| CUDA OOMs: {stats.get('num_ooms', 0):<24}| cudaMalloc retries: {stats.get('num_alloc_retries', 0):<16}|")
    text.append(line)
    text.append(f"|{'Metric':^23}|{'Cur Usage':^12}|{'Peak Usage':^12}|{'Tot Alloc':^12}|{'Tot Freed':^12}|")
    for title, key, bytes_ in rows:
        text.append("|" + "-" * 75 + "|")
        for label, pool in pools:
            figures = [stats.get(f"{key}.{pool}.{figure}", 0) for figure in ("current", "peak", "allocated", "freed")]
            shown = [_format(v) if bytes_ else f"{v} " for v in figures]
            text.append(f"| {label or title:<22}|" + "|".join(f"{v:>12}" for v in shown) + "|")
    text.append(line)
    return "\n".join(text) + "\n"

