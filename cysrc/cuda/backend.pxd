# What the operator families of cysrc/cuda share: where a tensor lies, its stream, kernels, launches, scratch memory.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.cuda.driver cimport DevicePointer, FunctionHandle, StreamHandle

cdef int current_device() noexcept
cdef StreamHandle stream_of(int index) noexcept              # this thread's current stream
cdef int enter(int index) except -1                          # its context, for the driver calls that follow

# Beside everything that streams do or record: zeroed memory of no pool, which is never given back; a copy of a contiguous host tensor, for
# tables that kernels only read; and what keeps such tables for as long as the graph that this thread records.
cdef DevicePointer zeroed_memory(int index, size_t size) except 0
cdef TensorBase constant_on_device(TensorBase host, int index)
cdef int keep_for_recording(object tables) except -1

# The kernel `entry` of the unit of code `source` (CUDA C++ text), compiled and loaded at first use on each device.
cdef FunctionHandle kernel_of(str source, str entry, int index) except NULL

cdef int run(FunctionHandle kernel, int index, int64_t blocks, int threads, int shared, void** arguments) except -1
cdef int run3(FunctionHandle kernel, int index, int64_t x, int64_t y, int64_t z, int tx, int ty, int tz, int shared, void** arguments) except -1
cdef int64_t blocks_for(int64_t items, int per_block) noexcept
