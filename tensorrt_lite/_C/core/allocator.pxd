# The caching CPU allocator. Blocks are 64-byte aligned; every function here needs the GIL.
from libc.stdint cimport int64_t

cdef extern from "block.h" nogil:
    ctypedef struct trt_block:
        char* data
        int64_t capacity
        int64_t refs
        int size_class
        int external
        void (*release)(trt_block*) noexcept nogil
        void* context
        trt_block* next
    void trt_block_hold(trt_block* b)

cdef trt_block* block_alloc(int64_t nbytes) except NULL
cdef void block_drop(trt_block* b) noexcept
cdef trt_block* block_external(void* data, int64_t nbytes, void (*release)(trt_block*) noexcept nogil, void* context) except NULL
