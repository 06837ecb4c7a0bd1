# Scans of the reduction family: what the rows' kernels call.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.steps.reduction cimport line_call

cdef TensorBase meta_scan(line_call* call, str name, TensorBase self, int64_t dim, int dtype, TensorBase out, int mode, int step_dtype)
cdef object cumulative_extreme(TensorBase self, int64_t dim, int operation, object out, int mode, str name)
