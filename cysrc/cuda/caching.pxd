# The caching allocator of device memory. Every function needs the GIL.
from libc.stdint cimport int64_t
from tensorrt_lite._C.cuda.driver cimport DevicePointer, StreamHandle

cdef struct Block:
    DevicePointer address
    int64_t size                # bytes, a multiple of 512
    int64_t requested           # what was asked for
    int device
    bint allocated
    bint small                  # of the pool of small blocks
    StreamHandle stream         # where it was allocated: where it may be reused without waiting
    Block* before               # neighbours in its segment
    Block* after
    StreamHandle* used_by       # other streams that work on it (`record_stream`)
    int n_used_by
    int events_pending          # of those, after it was freed

cdef Block* cached_allocate(int device, int64_t nbytes, StreamHandle stream) except NULL
cdef int cached_free(Block* block) except -1
cdef int cached_record_stream(Block* block, StreamHandle stream) except -1
