"""segment_reduce on the CPU (cysrc/loops/segment.c), beneath the checks of segment.pyx."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.parallel cimport task_fn
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of
from tensorrt_lite._C.ops.support cimport run_held
from tensorrt_lite._C.steps.segment cimport segment_call, set_check_lengths, set_segment_reduce

attach()

cdef extern from *:
    """
    #include "isa.h"
    ISA_TASK(segment_reduce)
    """
    task_fn segment_reduce_loop "segment_reduce"()

cdef task_fn segment_task = segment_reduce_loop()


cdef int check_lengths(TensorBase lengths, int64_t n) except -1:
    if bool((<object>lengths < 0).any()):
        raise RuntimeError("lengths contains negative value!")
    if not bool((<object>lengths.sum(-1) == n).all()):
        raise RuntimeError("segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.")
    return 0


cdef int segment_reduce(segment_call* call, TensorBase data, TensorBase offsets, TensorBase out) except -1:
    call.data, call.offsets, call.out = data_of(data), <const int64_t*>data_of(offsets), data_of(out)
    return run_held(segment_task, call, call.outer * call.segments, data.numel + out.numel, data, offsets, out)


set_check_lengths(DEV_CPU, check_lengths)
set_segment_reduce(DEV_CPU, segment_reduce)
