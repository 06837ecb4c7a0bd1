# Reductions for other families: `self` over the marked dimensions into `result` (contiguous, on the same device), op of loops/kernels.h.
from tensorrt_lite._C.ops.kernels cimport reduce_params
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef int reduce(TensorBase self, const bint* reduced, int op, const reduce_params* params, TensorBase result, TensorBase second) except -1
