from tensorrt_lite._C.ops.conv.kernels cimport conv_kernels
from tensorrt_lite._C.ops.conv.problem cimport ConvProblem

cdef bint takes_pairs(int what, const ConvProblem* p, int dtype, bint last) except -1
cdef const conv_kernels* pairs_kernels() noexcept
