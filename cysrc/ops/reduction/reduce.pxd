# The reductions' step on the CPU; of it other families' steps need the loops of one operation and type.
from tensorrt_lite._C.ops.reduction.loops cimport reduce_kernels

cdef const reduce_kernels* reduce_loops(int operation, int dtype) noexcept
