from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.ops.conv.problem cimport ConvProblem

cdef bint takes_tiles(int what, const ConvProblem* p, int dtype) except -1
cdef int tiles_pass(int what, const ConvProblem* p, bint last, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1
