from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.ops.conv.kernels cimport conv_kernels
from tensorrt_lite._C.ops.conv.problem cimport ConvProblem

cdef enum:
    BY_KERNELS, BY_ROWS, BY_COLUMNS, BY_IMAGES, BY_GROUPS   # loops/conv.h; GEMMs over all output positions as rows or as columns, over those of an image, of some images

cdef int gemm_way(int what, const ConvProblem* p, int dtype) noexcept
cdef int gemm_pass(const conv_kernels* kernels, int way, int what, const ConvProblem* p, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1
cdef bint takes_rows(const ConvProblem* p, int dtype) noexcept
cdef int rows_pass(const conv_kernels* kernels, int what, const ConvProblem* p, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1
