# What the operator families of cysrc/cuda share: where a tensor lies, its stream, kernels, launches, scratch memory.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.cuda.driver cimport FunctionHandle, StreamHandle

cdef int current_device() noexcept
cdef StreamHandle stream_of(int index) noexcept              # this thread's current stream
cdef int enter(int index) except -1                          # its context, for the driver calls that follow

# The kernel `entry` of the unit of code `source` (CUDA C++ text), compiled and loaded at first use on each device.
cdef FunctionHandle kernel_of(str source, str entry, int index) except NULL

cdef int run(FunctionHandle kernel, int index, int64_t blocks, int threads, int shared, void** arguments) except -1
cdef int run3(FunctionHandle kernel, int index, int64_t x, int64_t y, int64_t z, int tx, int ty, int tz, int shared, void** arguments) except -1
cdef int64_t blocks_for(int64_t items, int per_block) noexcept
