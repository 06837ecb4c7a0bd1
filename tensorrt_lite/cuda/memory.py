"""The caching allocator's figures and switches. Sizes are in bytes; the allocator itself is cysrc/cuda/caching.pyx."""

from __future__ import annotations

from typing import Any

from tensorrt_lite._C.cuda import caching as _caching
from tensorrt_lite._C.cuda import driver as _driver
from tensorrt_lite.cuda import _backend, _index, is_initialized


class OutOfMemoryError(RuntimeError):
    """The device has no memory left for a request, after everything cached was given back."""


_caching._set_out_of_memory_error(OutOfMemoryError)


def empty_cache() -> None:
    """Give cached memory that no tensor uses back to the driver."""
    if is_initialized():
        _caching.empty_cache()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Statistics by kind, pool (all, large_pool, small_pool) and figure (current, peak, allocated, freed)."""
    return _caching.statistics(_index(device)) if is_initialized() else {}


def memory_stats(device: Any = None) -> dict[str, int]:
    """The same with flat names: ``allocated_bytes.all.current``."""
    flat: dict[str, int] = {}

    def add(prefix: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, below in value.items():
                add(f"{prefix}.{key}" if prefix else key, below)
        else:
            flat[prefix] = value

    add("", memory_stats_as_nested_dict(device))
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
    _caching.reset_peak(_index(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Totals start again at 0."""
    _caching.reset_accumulated(_index(device))


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of the device, as the driver counts them."""
    from tensorrt_lite.cuda import device as guard

    with guard(_index(device)):
        _backend()._enter_current()
        return _driver.memory_info()


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Reserve no more than this part of the device's memory. ValueError outside of 0 to 1, TypeError for what is no float."""
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _caching.set_fraction(_index(device), fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of the device's memory that may be reserved."""
    return _caching.get_fraction(_index(device))


def memory_snapshot(mempool_id: Any = None) -> list[dict[str, Any]]:
    """Every segment of the allocator with its blocks, by address."""
    return _caching.snapshot() if is_initialized() else []


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of memory from the allocator, for other libraries; to be given back with caching_allocator_delete."""
    from tensorrt_lite.cuda import streams

    index = _index(device)
    handle = streams.current_stream(index) if stream is None else stream
    return _caching.raw_allocate(index, size, handle if isinstance(handle, int) else handle.cuda_stream)


def caching_allocator_delete(mem_ptr: int) -> None:
    """Give memory of caching_allocator_alloc back."""
    _caching.raw_delete(mem_ptr)


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

