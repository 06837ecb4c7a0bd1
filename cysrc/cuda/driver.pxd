# The CUDA driver, opened at run time: what other Cython modules use to allocate, copy and launch without Python.
#
# Every function needs `ensure_context()` on the calling thread first (the classes of driver.pyx see to it
# themselves) and raises RuntimeError("CUDA error: ...") on failure, also from nogil code.
from libc.stdint cimport uint64_t

ctypedef uint64_t DevicePointer
ctypedef void* FunctionHandle
ctypedef void* StreamHandle
ctypedef void* EventHandle

cdef enum:
    MAX_DEVICES = 64

# A function of tensorrt_lite.cuda by name: emulator_library, cublaslt, compile_unit, note_launch.
cdef object service(str name)

# Makes a context current on this thread: the primary context of the device set last, of device 0 at first.
cdef int ensure_context() except -1 nogil

# The same for one device, whose index is taken for valid; the tensors' path, which does not ask who made another context current.
cdef int enter_device(int device) except -1
cdef int check_device(int device) except -1
cdef int device_count_of() except -1

# What this thread may do while a stream is captured, 2: everything; returns the mode before.
cdef int exchange_capture_mode(int mode) noexcept
cdef DevicePointer try_allocate(size_t size) except? 0          # 0 where the device has too little

# Virtual memory: ranges of addresses into which pieces of memory are mapped. map_memory returns the piece's handle, 0 where there is too little.
cdef DevicePointer reserve_addresses(size_t size) except? 0
cdef int release_addresses(DevicePointer pointer, size_t size) except -1
cdef uint64_t map_memory(DevicePointer pointer, size_t size, int device) except? 0
cdef int unmap_memory(DevicePointer pointer, size_t size, uint64_t handle) except -1

# The driver's own stream-ordered pool.
cdef DevicePointer try_allocate_async(size_t size, StreamHandle stream) except? 0
cdef int release_async(DevicePointer pointer, StreamHandle stream) except -1
cdef int keep_pool(int device, bint keep) except -1

cdef int device_memory(size_t* free, size_t* total) except -1
cdef int synchronize_device() except -1
cdef EventHandle event_create(bint timing) except NULL
cdef int event_record(EventHandle event, StreamHandle stream) except -1
cdef int event_done(EventHandle event, bint wait) except -1
cdef int event_destroy(EventHandle event) except -1
cdef int stream_wait(StreamHandle stream, EventHandle event) except -1

cdef int host_free(void* pointer) except -1

cdef DevicePointer allocate(size_t size) except? 0 nogil
cdef int release(DevicePointer pointer) except -1 nogil
cdef int copy_to_device(DevicePointer to, const void* source, size_t size, StreamHandle stream) except -1 nogil
cdef int copy_to_host(void* to, DevicePointer source, size_t size, StreamHandle stream) except -1 nogil
cdef int copy_on_device(DevicePointer to, DevicePointer source, size_t size, StreamHandle stream) except -1 nogil
cdef int copy_between(DevicePointer to, int to_device, DevicePointer source, int device, size_t size, StreamHandle stream) except -1
cdef int synchronize_stream(StreamHandle stream) except -1 nogil

# `parameters` points to one pointer per kernel argument, as cuLaunchKernel takes them.
cdef int launch(FunctionHandle function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                StreamHandle stream, void** parameters) except -1 nogil


cdef class Module:
    cdef void* handle
    cdef readonly int device


cdef class Function:
    cdef FunctionHandle handle
    cdef Module module  # keeps the code loaded
    cdef readonly str name
