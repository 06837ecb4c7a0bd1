# The caching CPU allocator. Blocks are 64-byte aligned; every function here needs the GIL.
from libc.stdint cimport int64_t

cdef extern from "block.h" nogil:
    ctypedef struct trt_block:
        char* data
        int64_t capacity
        int refs
        short size_class
        unsigned char flags
    ctypedef struct trt_external_block:
        trt_block block
        void (*release)(trt_block*) noexcept nogil
        void* context
    enum:
        TRT_BLOCK_EXTERNAL
        TRT_BLOCK_READ_ONLY
        TRT_BLOCK_LAZY
        TRT_BLOCK_EXPOSED
        TRT_BLOCK_NOT_WRITABLE
    void trt_block_hold(trt_block* b)
    bint trt_block_returns_by(const trt_block* b, void (*release)(trt_block*) noexcept nogil)
    void* trt_block_context(const trt_block* b)             # of an external block

cdef extern from "trt_allocator.h" nogil:
    ctypedef struct trt_allocator:
        void* (*allocate)(size_t bytes, size_t alignment, void* context)
        void (*free)(void* address, size_t bytes, void* context)
        void* context

cdef trt_block* block_alloc(int64_t nbytes) except NULL
cdef void block_drop(trt_block* b) noexcept
cdef trt_block* block_external(void* data, int64_t nbytes, void (*release)(trt_block*) noexcept nogil, void* context) except NULL
cdef void set_allocator(const trt_allocator* replacement) noexcept    # NULL: the built-in one; blocks remember the allocator they came from
