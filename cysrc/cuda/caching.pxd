# The caching allocator of device memory. Every function needs the GIL.
from libc.stdint cimport int64_t
from libc.stdint cimport uint64_t
from tensorrt_lite._C.cuda.driver cimport DevicePointer, EventHandle, StreamHandle

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

# Statistics are kept for all blocks and for the two pools: current, peak, all ever allocated, all ever freed.
cdef enum:
    S_ALLOCATION = 0            # blocks in use
    S_SEGMENT = 1
    S_ACTIVE = 2                # in use, or waiting for a stream
    S_INACTIVE = 3              # free parts of segments that are in use
    S_ALLOCATED_BYTES = 4
    S_RESERVED_BYTES = 5
    S_ACTIVE_BYTES = 6
    S_INACTIVE_BYTES = 7
    S_REQUESTED_BYTES = 8
    N_STATS = 9

cdef struct Stat:
    int64_t current, peak, allocated, freed

cdef struct Waiting:            # a freed block and the event of a stream that still uses it
    Block* block
    EventHandle event

cdef struct Arena:              # a range of addresses; memory is mapped in chunks
    DevicePointer base
    int64_t chunk
    int n_chunks
    uint64_t* handles           # of each chunk's memory, 0: none
    int n_mapped
    Block* first                # all blocks in order of address
    StreamHandle stream
    void* pool
    bint small

cdef struct Device:
    Waiting* waiting
    int n_waiting, waiting_capacity
    Block** segments            # the first block of each
    int n_segments, segments_capacity
    Arena** arenas
    int n_arenas
    Stat stats[3][9]            # all, large, small
    Stat oversize[2]            # of max_split_size and more: allocations, segments
    int64_t retries, ooms, synchronizations, driver_allocations, driver_frees
    double fraction             # of the device's memory that may be reserved

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

# For cuda/memory.pyx: what is known of a device, the size from which blocks are not split (-1: none), the Python frames of a block's request.
cdef Device* device_state(int device) except NULL
cdef int64_t largest_split() noexcept
cdef list frames_at(int device, DevicePointer address)
