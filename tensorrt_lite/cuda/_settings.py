"""The allocator's settings: PYTORCH_ALLOC_CONF, or PYTORCH_CUDA_ALLOC_CONF, as ``name:value,name:value``."""

from __future__ import annotations

import os
import re
from typing import Any

from tensorrt_lite._C.core.hints import LazyModule as _LazyModule

_caching = _LazyModule("tensorrt_lite._C.cuda.caching")

_MB = 1 << 20
_BOOLEANS = ("expandable_segments", "graph_capture_record_stream_reuse", "release_lock_on_cudamalloc", "pinned_use_cuda_host_register",
             "pinned_use_background_threads")  # fmt: skip
# Taken and without effect: they trade time in PyTorch's allocator, or memory in captures, and change no result.
_WITHOUT_EFFECT = {*_BOOLEANS[1:], "pinned_num_register_threads", "pinned_reserve_segment_size_mb"}


def parse(text: str) -> dict[str, Any]:
    """The settings as `caching.configure` takes them. RuntimeError names what is unknown or out of range.

    backend native or cudaMallocAsync; max_split_size_mb and max_non_split_rounding_mb over 20; garbage_collection_threshold and
    per_process_memory_fraction between 0 and 1; expandable_segments True or False; roundup_power2_divisions a power of two, or
    ``[256:1,512:2,>:8]`` by the size in MB.
    """
    found: dict[str, Any] = {}
    text = re.sub(r"\s", "", text)
    for item in filter(None, re.split(r",(?![^\[]*\])", text)):
        name, colon, value = item.partition(":")
        if not colon or not value:
            raise RuntimeError(f"Error parsing CachingAllocator settings: expected name:value, got '{item}'")
        if name == "backend":
            if value not in ("native", "cudaMallocAsync"):
                raise RuntimeError(f"Unknown allocator backend, options are native and cudaMallocAsync, got '{value}'")
            found["backend"] = value
        elif name in ("max_split_size_mb", "max_non_split_rounding_mb"):
            number = _integer(name, value)
            if number <= 20:
                raise RuntimeError(f"CachingAllocator option {name} too small, must be > 20, got {number}")
            found[name.removesuffix("_mb")] = number * _MB
        elif name in ("garbage_collection_threshold", "per_process_memory_fraction"):
            found[name] = _fraction(name, value)
        elif name == "roundup_power2_divisions":
            found["divisions"] = _divisions(value)
        elif name in _BOOLEANS:
            if value not in ("True", "False"):
                raise RuntimeError(f"Expected True or False for CachingAllocator option {name}, got '{value}'")
            if name == "expandable_segments":
                found[name] = value == "True"
        elif name not in _WITHOUT_EFFECT:
            raise RuntimeError(f"Unrecognized CachingAllocator option: {name}")
    return found


def _integer(name: str, value: str) -> int:
    if not value.isdigit():
        raise RuntimeError(f"CachingAllocator option {name}: expected a number, got '{value}'")
    return int(value)


def _fraction(name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not 0 < number <= 1 or name.startswith("garbage") and number == 1:
        raise RuntimeError(f"CachingAllocator option {name}: expected a number between 0 and 1, got '{value}'")
    return number


def _power(value: str) -> int:
    number = _integer("roundup_power2_divisions", value)
    if number & (number - 1):
        raise RuntimeError(f"For roundups, the divisions has to be power of 2 or 0 to disable roundup, got {number}")
    return number


def _divisions(value: str) -> list[int]:
    """For each power of two from 1 MB to 64 GB."""
    if not value.startswith("["):
        return [_power(value)] * 16
    result, last = [0] * 16, -1
    for pair in value.strip("[]").split(","):
        size, _, number = pair.partition(":")
        if size == ">":
            result[last + 1 :] = [_power(number)] * (15 - last)
            break
        megabytes = _integer("roundup_power2_divisions", size)
        if megabytes < 1 or megabytes & (megabytes - 1):
            raise RuntimeError(f"For roundups, the intervals have to be power of 2, got {megabytes}")
        place = min(megabytes.bit_length() - 1, 15)
        result[place if last >= 0 else 0 : place + 1] = [_power(number)] * (1 if last >= 0 else place + 1)
        last = place
    return result


def configure(text: str | None = None) -> None:
    """Apply settings, those of the environment by default."""
    if text is None:
        text = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
        if os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") != "0":
            _caching.set_caching(False)
    _caching.configure(parse(text))
