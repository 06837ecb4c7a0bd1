"""The caching CPU allocator.

Small requests come from 64-byte size classes, medium ones from classes at quarter powers of two, large ones
(1 MiB and up) from a bounded best-fit cache. Large blocks stay mapped because a fresh mapping costs a page fault for
every 4 KiB: a 16M-element add took 38 ms into fresh pages against 8 ms into a reused block.
The debug build gives every block its own allocation, so that the address sanitizer sees overruns; so does the release build where
the environment has TENSORRT_LITE_CPU_ALLOCATOR=system.
All pools rely on the GIL; reference counts are atomic because kernels hold blocks without it.
"""
from libc.stdlib cimport free, malloc, getenv, strtoll
from libc.string cimport memset, strcmp


cdef extern from "<stdlib.h>" nogil:
    void* aligned_alloc(size_t, size_t)

cdef extern from *:
    """
    #include <sys/mman.h>
    #include <unistd.h>
    #include "block.h"
    #ifdef TRT_DEBUG
    #define TRT_POOLED 0
    #else
    #define TRT_POOLED 1
    #endif
    static inline void trt_advise(void* p, size_t n) { madvise(p, n, MADV_HUGEPAGE); }
    static inline int trt_unref(trt_block* b) { return __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) == 0; }
    static int64_t trt_physical(void) { return (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE); }
    """
    enum:
        TRT_POOLED
    void trt_advise(void*, size_t) nogil
    bint trt_unref(trt_block*) nogil
    int64_t trt_physical() nogil

cdef inline bint is_system(const char* name) noexcept:
    return name != NULL and strcmp(name, "system") == 0

cdef enum:
    SMALL_LIMIT = 4096            # bytes; classes of 64
    SMALL_CLASSES = 65
    MEDIUM_CLASSES = 40           # quarter powers of two from 4 KiB to 1 MiB
    POOL_DEPTH = 128
    LARGE = -2                    # size class of cached large blocks
    HUGE_PAGE = 2097152

cdef int64_t LARGE_LIMIT = 1 << 20
# TENSORRT_LITE_CPU_ALLOCATOR=system: every block has its own allocation in the release build, too (tools/guard.py)
cdef bint pooled = TRT_POOLED and not is_system(getenv("TENSORRT_LITE_CPU_ALLOCATOR"))
cdef trt_block* pool[SMALL_CLASSES + MEDIUM_CLASSES]
cdef int pool_count[SMALL_CLASSES + MEDIUM_CLASSES]
cdef trt_block* large_cache = NULL
cdef trt_block* header_cache = NULL
cdef int64_t large_cached = 0

cdef int64_t stat_allocated = 0, stat_peak = 0, stat_reserved = 0, stat_requests = 0, stat_system = 0


cdef int64_t _bound():
    """Bytes that the large cache may hold: TENSORRT_LITE_CPU_CACHE (bytes), or a quarter of the physical memory."""
    cdef const char* text = getenv("TENSORRT_LITE_CPU_CACHE")
    if text != NULL and text[0] != 0:
        return max(0, strtoll(text, NULL, 10))
    return trt_physical() // 4

cdef int64_t cache_bound = _bound()


cdef inline int medium_class(int64_t n, int64_t* rounded) noexcept:
    cdef int shift = 12, c = 0
    cdef int64_t step
    while (<int64_t>1 << (shift + 1)) < n:
        shift += 1
        c += 4
    step = <int64_t>1 << (shift - 2)
    c += <int>((n - (<int64_t>1 << shift) + step - 1) // step)
    rounded[0] = (<int64_t>1 << shift) + step * ((n - (<int64_t>1 << shift) + step - 1) // step)
    return SMALL_CLASSES + c


cdef trt_block* new_header() except NULL:
    global header_cache
    cdef trt_block* b = header_cache
    if b != NULL:
        header_cache = b.next
    else:
        b = <trt_block*>malloc(sizeof(trt_block))
        if b == NULL:
            raise MemoryError("out of memory for a block header")
    memset(b, 0, sizeof(trt_block))
    b.refs = 1
    return b


cdef inline void free_header(trt_block* b) noexcept:
    global header_cache
    b.next = header_cache
    header_cache = b


cdef int out_of_memory(int64_t nbytes) except -1:
    raise RuntimeError(
        f"[enforce fail] CPUAllocator: can't allocate memory: you tried to allocate {nbytes} bytes "
        f"({nbytes / 2.0**30:.2f} GiB); {stat_allocated} bytes are in use and {large_cached} bytes were cached")


cdef trt_block* system_block(int64_t nbytes, int64_t align, int size_class) except NULL:
    global stat_reserved, stat_system
    cdef trt_block* b
    cdef char* p
    if nbytes > trt_physical():
        out_of_memory(nbytes)
    cdef int64_t wanted = (nbytes + align - 1) // align * align if pooled else nbytes     # to the byte: tools see what lies behind
    p = <char*>aligned_alloc(align, wanted)
    if p == NULL:
        empty_cache()
        p = <char*>aligned_alloc(align, wanted)
        if p == NULL:
            out_of_memory(nbytes)
    b = new_header()
    b.data = p
    b.capacity = nbytes
    b.size_class = size_class
    stat_reserved += nbytes
    stat_system += 1
    return b


cdef trt_block* block_alloc(int64_t nbytes) except NULL:
    """A block of at least ``nbytes`` bytes, reference count 1. RuntimeError when memory is exhausted."""
    global stat_allocated, stat_peak, stat_requests, large_cache, large_cached
    cdef trt_block* b
    cdef trt_block* best
    cdef trt_block* before
    cdef trt_block* before_best
    cdef int c
    cdef int64_t rounded
    stat_requests += 1
    if not pooled:
        b = system_block(nbytes if nbytes > 0 else 1, 64, -1)
        stat_allocated += b.capacity
        return b
    if nbytes <= LARGE_LIMIT:
        if nbytes <= SMALL_LIMIT:
            c = <int>((nbytes + 63) >> 6)
            rounded = (c if c > 0 else 1) * 64
        else:
            c = medium_class(nbytes, &rounded)
        b = pool[c]
        if b != NULL:
            pool[c] = b.next
            pool_count[c] -= 1
            b.refs = 1
        else:
            b = system_block(rounded, 64, c)
    else:
        # a block is reused for requests down to 4/5 of it, counted from the size that a fresh one would get
        rounded = (nbytes + HUGE_PAGE - 1) // HUGE_PAGE * HUGE_PAGE
        best = NULL
        before = before_best = NULL
        b = large_cache
        while b != NULL:
            if nbytes <= b.capacity <= rounded + (rounded >> 2) and (best == NULL or b.capacity < best.capacity):
                best = b
                before_best = before
                if b.capacity <= rounded:
                    break
            before = b
            b = b.next
        if best != NULL:
            if before_best == NULL:
                large_cache = best.next
            else:
                before_best.next = best.next
            large_cached -= best.capacity
            best.refs = 1
            b = best
        else:
            b = system_block(rounded, HUGE_PAGE, LARGE)
            trt_advise(b.data, rounded)
    stat_allocated += b.capacity
    if stat_allocated > stat_peak:
        stat_peak = stat_allocated
    return b


cdef void system_free(trt_block* b) noexcept:
    global stat_reserved
    stat_reserved -= b.capacity
    free(b.data)
    free_header(b)


cdef void block_drop(trt_block* b) noexcept:
    """Give back one reference; the last one returns the memory to its pool."""
    global stat_allocated, large_cache, large_cached
    cdef int c
    if b == NULL or not trt_unref(b):
        return
    if b.external:
        if b.release != NULL:
            b.release(b)
        free_header(b)
        return
    stat_allocated -= b.capacity
    c = b.size_class
    if c >= 0:
        if pool_count[c] < POOL_DEPTH and pool_count[c] * b.capacity <= (LARGE_LIMIT << 4):
            b.next = pool[c]
            pool[c] = b
            pool_count[c] += 1
            return
    elif c == LARGE and b.capacity <= cache_bound:
        b.next = large_cache
        large_cache = b
        large_cached += b.capacity
        if large_cached > cache_bound:
            trim(cache_bound)
        return
    system_free(b)


cdef void trim(int64_t bound) noexcept:
    """Free the least recently returned large blocks until the cache is within ``bound`` bytes."""
    global large_cache, large_cached
    cdef trt_block* b = large_cache
    cdef trt_block* keep_last = NULL
    cdef trt_block* following
    cdef int64_t kept = 0
    while b != NULL and kept + b.capacity <= bound:
        kept += b.capacity
        keep_last = b
        b = b.next
    if keep_last == NULL:
        large_cache = NULL
    else:
        keep_last.next = NULL
    while b != NULL:
        following = b.next
        large_cached -= b.capacity
        system_free(b)
        b = following


cdef trt_block* block_external(void* data, int64_t nbytes, void (*release)(trt_block*) noexcept nogil, void* context) except NULL:
    """A block over memory that somebody else owns; ``release`` runs when the last reference goes (GIL held)."""
    cdef trt_block* b = new_header()
    b.data = <char*>data
    b.capacity = nbytes
    b.size_class = -1
    b.external = 1
    b.release = release
    b.context = context
    return b


def empty_cache():
    """Return all cached CPU memory to the operating system."""
    cdef int c
    cdef trt_block* b
    cdef trt_block* following
    trim(0)
    for c in range(SMALL_CLASSES + MEDIUM_CLASSES):
        b = pool[c]
        while b != NULL:
            following = b.next
            system_free(b)
            b = following
        pool[c] = NULL
        pool_count[c] = 0


def memory_stats():
    """Return the CPU allocator's figures (bytes and counts) as a dict."""
    return {
        "allocated_bytes.current": stat_allocated,
        "allocated_bytes.peak": stat_peak,
        "reserved_bytes.current": stat_reserved,
        "cached_bytes.current": stat_reserved - stat_allocated,
        "large_cached_bytes.current": large_cached,
        "cache_bound_bytes": cache_bound,
        "requests": stat_requests,
        "system_allocations": stat_system,
    }


def reset_peak_memory_stats():
    """Start a new peak measurement at the current use."""
    global stat_peak
    stat_peak = stat_allocated


def set_cache_bound(int64_t nbytes):
    """Bound the bytes that the cache of large blocks may hold."""
    global cache_bound
    if nbytes < 0:
        raise ValueError(f"the cache bound must not be negative, got {nbytes}")
    cache_bound = nbytes
    trim(cache_bound)
