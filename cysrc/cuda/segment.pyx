"""segment_reduce on CUDA, beneath the checks of cysrc/ops/segment/segment.pyx."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport F32, F64
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of
from tensorrt_lite._C.cuda.backend cimport blocks_for, kernel_of, run
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.ops.segment.cpu cimport check_lengths
from tensorrt_lite._C.steps.segment cimport segment_call, set_check_lengths, set_segment_reduce

attach()
cdef FunctionHandle handles[64][2]       # by device and type


cdef FunctionHandle load(int index, int dtype) except NULL:
    cdef FunctionHandle* slot = &handles[index][dtype == F64]
    if slot[0] == NULL:
        t = "double" if dtype == F64 else "float"
        slot[0] = kernel_of(f"#include \"segment.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__(256) kernel(const segment_call a) {{ trt::segment_reduce<{t}>(a); }}\n", "kernel", index)
    return slot[0]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    load(index, F32)
    load(index, F64)


cdef int segment_reduce(segment_call* call, TensorBase data, TensorBase offsets, TensorBase out) except -1:
    cdef void* arguments[1]
    call.data, call.offsets, call.out = data_of(data), <const int64_t*>data_of(offsets), data_of(out)
    arguments[0] = call
    return run(load(data.device_index, data.dtype), data.device_index, blocks_for(out.numel, 256), 256, 0, arguments)


set_check_lengths(DEV_CUDA, check_lengths)
set_segment_reduce(DEV_CUDA, segment_reduce)
