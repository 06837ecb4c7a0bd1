# Storage: the bytes that tensors view. The address is always read from the block, never kept elsewhere.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.allocator cimport trt_block

cdef class Storage:
    cdef trt_block* block
    cdef int64_t length
    cdef int device_type
    cdef int device_index
    cdef bint can_resize
    cdef object owner              # what keeps external memory alive
    cdef object __weakref__

cdef Storage new_storage(int64_t nbytes)
cdef Storage meta_storage(int64_t nbytes)
cdef Storage shared_storage(trt_block* block, int64_t nbytes)
cdef Storage external_storage(void* data, int64_t nbytes, object owner)
cdef int storage_resize(Storage s, int64_t nbytes) except -1
