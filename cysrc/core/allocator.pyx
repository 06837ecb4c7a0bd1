"""The caching CPU allocator: slabs of small blocks over spans that split and join (allocator.h, heap.h), or one that replaces it.

The debug build gives every block its own allocation, as TENSORRT_LITE_CPU_ALLOCATOR=system does, so that the address
sanitizer sees overruns. Slabs and figures rely on the GIL, or belong to a thread where there is none; the heaps have a mutex; reference
counts are atomic because kernels hold blocks without the GIL.
"""
from libc.stdlib cimport getenv, malloc, strtoll


cdef extern from "allocator.h" nogil:
    """
    #ifdef TRT_DEBUG
    #define TRT_POOLED 0
    #else
    #define TRT_POOLED 1
    #endif
    """
    enum:
        TRT_POOLED
        TRT_EXTERNAL
    ctypedef struct trt_heap:
        int64_t cached
    trt_heap* LARGE_HEAP
    ctypedef struct trt_memory_figures:
        int64_t live, live_peak, mapped, mapped_peak, segments, mappings, splits, joins, returned, returned_idle, returned_pressure
    ctypedef struct trt_block_figures:
        int64_t allocated, peak, requests, slab_bytes, replaced
    trt_memory_figures trt_memory
    trt_block_figures trt_figures()
    void trt_start_peak()
    const trt_allocator trt_system_allocator
    const trt_allocator* trt_replacement
    void trt_heap_init()
    const char* trt_choose_allocator(const char* name)
    void trt_set_allocator(const trt_allocator* a)
    trt_block* trt_block_alloc(int64_t nbytes)
    void trt_block_drop(trt_block* b)
    trt_external_block* trt_new_header()
    int64_t trt_cached_bytes()
    int64_t trt_cache_bound()
    void trt_empty_cache()
    void trt_set_cache_bound(int64_t nbytes)
    void trt_reset_peaks()
    int trt_lock()
    void trt_unlock(int locked)


def _start():
    cdef const char* text = getenv("TENSORRT_LITE_CPU_CACHE")
    cdef const char* wrong
    trt_heap_init()
    if text != NULL and text[0] != 0:
        trt_set_cache_bound(max(0, strtoll(text, NULL, 10)))
    if not TRT_POOLED:
        trt_set_allocator(&trt_system_allocator)
    wrong = trt_choose_allocator(getenv("TENSORRT_LITE_CPU_ALLOCATOR"))
    if wrong != NULL:
        raise ImportError(f"TENSORRT_LITE_CPU_ALLOCATOR={getenv('TENSORRT_LITE_CPU_ALLOCATOR').decode()}: {wrong.decode()}")

_start()


cdef int out_of_memory(int64_t nbytes) except -1:
    raise RuntimeError(
        f"[enforce fail] CPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes "
        f"({nbytes / 2.0**30:.2f} GiB); {trt_figures().allocated} bytes are in use and {trt_cached_bytes()} bytes were cached")


ctypedef void (*memory_watch)(void* address, int64_t nbytes, int64_t in_use) noexcept

cdef memory_watch watch = NULL


def _watch_memory(size_t function):
    """Call a function, given by its address, with every block that is handed out or comes back (negative bytes); 0: none."""
    global watch
    watch = <memory_watch>function


cdef trt_block* block_alloc(int64_t nbytes) except NULL:
    """A block of at least ``nbytes`` bytes, reference count 1. RuntimeError when memory is exhausted."""
    cdef trt_block* b = trt_block_alloc(nbytes)
    if b == NULL:
        out_of_memory(nbytes)
    if watch != NULL:
        watch(b.data, b.capacity, trt_figures().allocated)
    return b


cdef void block_drop(trt_block* b) noexcept:
    """Give back one reference; the last one returns the memory to its pool."""
    if watch != NULL and b != NULL and b.refs == 1 and not b.flags & TRT_BLOCK_EXTERNAL:
        watch(b.data, -b.capacity, trt_figures().allocated - b.capacity)
    trt_block_drop(b)


cdef trt_block* block_external(void* data, int64_t nbytes, void (*release)(trt_block*) noexcept nogil, void* context) except NULL:
    """A block over memory that somebody else owns; ``release`` runs when the last reference goes (GIL held)."""
    cdef trt_external_block* b = trt_new_header()
    if b == NULL:
        raise MemoryError("out of memory for a block header")
    b.block.data = <char*>data
    b.block.capacity = nbytes
    b.block.size_class = TRT_EXTERNAL
    b.block.flags = TRT_BLOCK_EXTERNAL
    b.release = release
    b.context = context
    return &b.block


cdef void set_allocator(const trt_allocator* replacement) noexcept:
    trt_set_allocator(&trt_system_allocator if replacement == NULL and not TRT_POOLED else replacement)


def _use_allocator(size_t allocate, size_t release, size_t context):
    """Take new blocks from two C functions (see trt_allocator.h), given by address; 0: the built-in allocator.

    The structure lives as long as the process, since blocks point to it."""
    cdef trt_allocator* a = NULL
    if allocate:
        a = <trt_allocator*>malloc(sizeof(trt_allocator))
        if a == NULL:
            raise MemoryError
        a.allocate = <void* (*)(size_t, size_t, void*) noexcept>allocate
        a.free = <void (*)(void*, size_t, void*) noexcept>release
        a.context = <void*>context
    set_allocator(a)


def _allocator_kind():
    """"caching", "system", or "replaced"."""
    if trt_replacement == NULL:
        return "caching"
    return "system" if trt_replacement == &trt_system_allocator else "replaced"


def empty_cache():
    """Return all cached CPU memory to the operating system."""
    trt_empty_cache()


def memory_stats():
    """Return the CPU allocator's figures (bytes and counts) as a dict.

    ``allocated``: blocks that storages and running operators hold. ``active``: what those blocks occupy, slabs with free slots
    included. ``reserved``: what is mapped, so ``cached = reserved - active`` is free and whole. ``returned``: given back to the
    kernel since the start, of that ``idle`` after a second (or what misses made of it) without use and ``pressure`` because memory was short. ``segments``:
    mappings held now, ``mappings`` those made so far; ``splits`` and ``joins`` of free spans.
    """
    cdef trt_block_figures blocks = trt_figures()
    cdef int locked = trt_lock()
    cdef trt_memory_figures spans = trt_memory
    cdef int64_t cached = trt_cached_bytes(), large = LARGE_HEAP.cached, bound = trt_cache_bound()
    trt_unlock(locked)
    return {
        "allocated_bytes.current": blocks.allocated,
        "allocated_bytes.peak": blocks.peak,
        "active_bytes.current": spans.live + blocks.replaced,
        "active_bytes.peak": spans.live_peak,
        "reserved_bytes.current": spans.mapped + blocks.replaced,
        "reserved_bytes.peak": spans.mapped_peak,
        "cached_bytes.current": cached,
        "large_cached_bytes.current": large,
        "slab_bytes.current": blocks.slab_bytes,
        "cache_bound_bytes": bound,
        "returned_bytes": spans.returned,
        "returned_bytes.idle": spans.returned_idle,
        "returned_bytes.pressure": spans.returned_pressure,
        "segments": spans.segments,
        "mappings": spans.mappings,
        "splits": spans.splits,
        "joins": spans.joins,
        "requests": blocks.requests,
        "allocator": _allocator_kind(),
    }


def reset_peak_memory_stats():
    """Start a new peak measurement at the current use."""
    trt_start_peak()
    trt_reset_peaks()


def set_cache_bound(nbytes):
    """Bound the free bytes that the allocator keeps mapped; None: a quarter of the recent peak plus 64 MB."""
    if nbytes is not None and nbytes < 0:
        raise ValueError(f"the cache bound must not be negative, got {nbytes}")
    trt_set_cache_bound(-1 if nbytes is None else nbytes)
