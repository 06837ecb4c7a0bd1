"""The allocator of CPU memory: its figures, its cache, and others in its place.

The built-in one keeps free memory for the next tensors: at most a quarter of the recent peak plus 64 MB, or the bytes that the
environment variable TENSORRT_LITE_CPU_CACHE gives; what was not needed for a second goes back to the operating system, in an idle
process as well where it is more than 16 MB (less waits for the next large request), and all of it when memory is short.
TENSORRT_LITE_CPU_ALLOCATOR chooses another one for the whole process: ``system`` gives every tensor its own ``aligned_alloc`` of
exactly its bytes, which guard allocators and sanitizers need; a path names a library that exports
``trt_allocator trt_cpu_allocator`` (the header is ``tensorrt_lite/_C/core/trt_allocator.h``).
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

from tensorrt_lite._C.core import allocator as _allocator
from tensorrt_lite._C.core.allocator import empty_cache, memory_stats, reset_peak_memory_stats

__all__ = [
    "CPUPluggableAllocator", "change_current_allocator", "empty_cache", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
    "memory_reserved", "memory_stats", "reset_peak_memory_stats", "set_cache_bound",
]  # fmt: skip

_ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_void_p)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p)
_in_use: list[CPUPluggableAllocator] = []  # for good: tensors made by one give their memory back to it whenever they end


class CPUPluggableAllocator:
    """An allocator of CPU memory from a shared library or of two Python callables.

    ``CPUPluggableAllocator("lib.so", "allocate", "free")`` names C functions ``void* allocate(size_t bytes, size_t alignment, void*
    context)`` and ``void free(void* address, size_t bytes, void* context)``; context is NULL. ``CPUPluggableAllocator(allocate, free)``
    takes callables: ``allocate(bytes, alignment)`` returns an address that is a multiple of alignment (64), or 0 when there is no
    memory, and ``free(address, bytes)`` takes it back. bytes is never 0. A callable that raises counts as out of memory.

    Raises OSError when the library can't be opened and AttributeError when it has no such function.
    """

    def __init__(self, path_or_allocate: str | os.PathLike[str] | Callable[[int, int], int], allocate_name_or_free: str | Callable[[int, int], None],
                 free_name: str | None = None) -> None:  # fmt: skip
        if callable(path_or_allocate) and callable(allocate_name_or_free):
            allocate, free = path_or_allocate, allocate_name_or_free
            self._functions: tuple[object, object] = (
                _ALLOCATE(lambda nbytes, alignment, _: allocate(nbytes, alignment)),
                _FREE(lambda address, nbytes, _: free(address, nbytes)),
            )
        elif isinstance(path_or_allocate, (str, os.PathLike)) and isinstance(allocate_name_or_free, str) and free_name is not None:
            library = ctypes.CDLL(os.fspath(path_or_allocate))
            self._functions = (getattr(library, allocate_name_or_free), getattr(library, free_name))
        else:
            raise TypeError("CPUPluggableAllocator() takes the path of a shared library and the names of two functions, or two callables")

    def addresses(self) -> tuple[int, int]:
        """Where the two functions are, for C."""
        allocate, free = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self._functions)  # type: ignore[arg-type]
        return allocate, free


def change_current_allocator(allocator: CPUPluggableAllocator | None) -> None:
    """Take the memory of new CPU tensors from this allocator; None: from the built-in one again.

    Tensors that exist keep the memory that they have, and give it back to where it came from.
    """
    if allocator is None:
        _allocator._use_allocator(0, 0, 0)
        return
    if not isinstance(allocator, CPUPluggableAllocator):
        raise TypeError(f"change_current_allocator(): expected a CPUPluggableAllocator or None, not {type(allocator).__name__}")
    _in_use.append(allocator)
    _allocator._use_allocator(*allocator.addresses(), 0)


def set_cache_bound(nbytes: int | None) -> None:
    """Bound the free bytes that the allocator keeps; None: a quarter of the recent peak plus 64 MB again."""
    _allocator.set_cache_bound(nbytes)


def memory_allocated(device: object = None) -> int:
    """Bytes that tensors hold now."""
    return memory_stats()["allocated_bytes.current"]


def max_memory_allocated(device: object = None) -> int:
    """The most bytes that tensors held since the start or since ``reset_peak_memory_stats``."""
    return memory_stats()["allocated_bytes.peak"]


def memory_reserved(device: object = None) -> int:
    """Bytes that the allocator has from the operating system now."""
    return memory_stats()["reserved_bytes.current"]


def max_memory_reserved(device: object = None) -> int:
    """The most bytes that the allocator had from the operating system since the start or since ``reset_peak_memory_stats``."""
    return memory_stats()["reserved_bytes.peak"]
