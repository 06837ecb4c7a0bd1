# Storage: the bytes that tensors view. The address is always read from the block, never kept elsewhere.
from libc.stdint cimport int64_t, int8_t, uint8_t
from cpython.object cimport PyObject
from tensorrt_lite._C.core.allocator cimport trt_block, TRT_BLOCK_NOT_WRITABLE, TRT_BLOCK_READ_ONLY

cdef class Storage:
    # 48 bytes with Python's header, and nothing that the garbage collector has to see: the owner of external memory is held by its block
    cdef trt_block* block
    cdef int64_t length
    cdef int8_t device_type       # set once, where the storage is made (storage.pyx): tensors keep a copy
    cdef int8_t device_index
    cdef uint8_t can_resize
    cdef object __weakref__

# What devices with memory of their own do for the core: one table for CUDA, one for all custom devices (core/custom.pyx). A module fills
# them in when it is first needed. Addresses on a device
# are kept where host addresses are: nothing of the core reads through them.
cdef struct DeviceHooks:
    object (*allocate)(int device_type, int64_t nbytes, int index)      # a Storage; index -1: the current device
    object (*allocate_pinned)(int64_t nbytes)                           # a Storage of page-locked host memory
    int (*current)(int device_type) except -1                           # index of this thread's current device
    int (*move)(char* to, const char* source, int64_t nbytes, int device_type, int index) except -1     # within one device
    int (*copy)(object destination, object source, bint non_blocking) except -1        # tensors of two devices
    # info: a PointwiseInfo (NULL: a copy); it: an Iter, over a result and its operands, tensors
    int (*iterate)(const void* info, void* it, int compute, object result, PyObject** operands) except -1
    bint (*computes)(int device_type, const char* name) noexcept        # whether there may be a kernel for a pointwise operator
    int (*fall_back)(int device_type, const char* name) except -1       # before a step runs on the host, on copies: an error where that isn't wanted
    # A thread has a current stream on each device. The sets of them that threads have had are numbered; 0 are the default streams.
    int stream_sets                                                     # the last number: 0 until a program makes a stream current
    int (*current_streams)() noexcept                                   # the number of this thread's set
    int (*use_streams)(int number) except -1                            # makes a set this thread's
    int (*hand_over)(object tensor, int producer, int consumer) except -1   # before one set uses what another has queued the making of
    int (*keep_for)(object tensor, int consumer) except -1              # its memory is not reused before that set's work has run
    int (*join)(int producer, int consumer) except -1                   # one set waits for all that another has been given

# Whether a block may be written to is its own mark, so that views, `.data` and `set_` carry it along. Each operator asks before it
# writes: memory that others declared read-only (arrays and maps that are not writeable, bytes, DLPack's flag) is refused, because a
# write would end the process or change an object that Python takes for immutable; memory that lazy clones share is copied first.
cdef int make_writable(Storage s, str op) except -1

cdef inline bint is_writable(Storage s) noexcept:
    return s.block == NULL or not s.block.flags & TRT_BLOCK_NOT_WRITABLE

cdef inline int prepare_write(Storage s, str op) except -1:
    """Before anything of a storage is written, and before the address to write to is read from its block."""
    if not is_writable(s):
        make_writable(s, op)
    return 0

cdef inline bint is_read_only(Storage s) noexcept:
    return s.block != NULL and s.block.flags & TRT_BLOCK_READ_ONLY

cdef int set_read_only(Storage s) except -1
cdef int expose(Storage s) except -1                                    # before an address is given away that may be written to later
cdef Storage lazy_clone_of(Storage s)                                   # None where the bytes have to be copied at once

cdef DeviceHooks* device_hooks() except NULL                            # CUDA's
cdef DeviceHooks* hooks_of(int device_type) except NULL
cdef void install_custom_hooks(const DeviceHooks* given) noexcept
cdef DeviceHooks* installed_hooks() noexcept                            # the same without loading anything: zeros until then
cdef void install_device_hooks(const DeviceHooks* given) noexcept
cdef Storage device_storage(trt_block* block, int64_t nbytes, int device_type, int index)
cdef Storage new_storage(int64_t nbytes)
cdef Storage meta_storage(int64_t nbytes)
cdef Storage alias_storage(Storage s)
cdef Storage external_storage(void* data, int64_t nbytes, object owner, int device_type=*, int device_index=*)
cdef object owner_of(Storage s)
cdef int storage_resize(Storage s, int64_t nbytes) except -1
