# The caching allocator of device memory. Every function needs the GIL.
from libc.stdint cimport int64_t
from tensorrt_lite._C.cuda.driver cimport DevicePointer, StreamHandle

cdef struct Block:
    DevicePointer address
    int64_t size                # bytes, a multiple of 512
    int64_t requested           # what was asked for
    int64_t freed_at            # by the count of requests
    int device
    bint allocated
    bint small                  # of the pool of small blocks
    bint mapped                 # False: addresses of an arena without memory
    int foreign                 # another allocator's
    StreamHandle stream         # where it was allocated: where it may be reused without waiting
    void* pool                  # its MemoryPool
    void* arena                 # the expandable segment it lies in, or NULL
    Block* before               # neighbours in its segment
    Block* after
    StreamHandle* used_by       # other streams that work on it (`record_stream`)
    int n_used_by
    int events_pending          # of those, after it was freed

cdef struct Pool:               # free blocks by (stream, size, address)
    Block** items
    int n, capacity

ctypedef void* (*allocate_function)(Py_ssize_t size, int device, void* stream) noexcept
ctypedef void (*release_function)(void* pointer, Py_ssize_t size, int device, void* stream) noexcept

cdef class MemoryPool:
    cdef readonly int number
    cdef Pool free_blocks[64][2]                    # by device: large, small
    cdef readonly int holders                       # graphs and programs that use it
    cdef int64_t segments
    cdef bint use_on_oom
    cdef allocate_function allocate                 # where its segments come from, NULL: the driver
    cdef release_function release
    cdef list kept                                  # host memory that recorded copies read or write
    cdef object owner                               # what keeps those functions loaded

cdef int captures                                  # graphs that are being recorded: the driver must not be asked for events then

cdef Block* cached_allocate(int device, int64_t nbytes, StreamHandle stream, MemoryPool pool) except NULL     # pool: None for the default one
cdef int cached_free(Block* block) except -1
cdef int cached_record_stream(Block* block, StreamHandle stream) except -1
