# Products of matrices, for the families that are made of them.
from tensorrt_lite._C.core.dtype cimport Scalar, I64, U8, is_integral_or_bool_type
from tensorrt_lite._C.core.tensor cimport TensorBase
from libc.stdint cimport int64_t

from tensorrt_lite._C.ops.matmul.mat cimport Mat

cdef int gemm(str name, TensorBase out, const Mat* mo, TensorBase a, const Mat* ma_, TensorBase b, const Mat* mb_, const Scalar* alpha, const Scalar* beta,
                 TensorBase d, const Mat* md) except -1

cdef inline int kernel_type(int dtype) noexcept:
    """The type whose kernel a dtype runs: bool and integers of up to 32 bits are summed in 32 bits, as uint8 is."""
    return U8 if is_integral_or_bool_type(dtype) and dtype != I64 else dtype
