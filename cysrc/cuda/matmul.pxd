# Products of matrices, for the families that are made of them.
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase
from libc.stdint cimport int64_t

cdef extern from "device_gemm.h" nogil:
    ctypedef struct Mat "trt_mat":
        int64_t batch, rows, cols, bs, rs, cs
        bint flipped

cdef int gemm(str name, TensorBase out, const Mat* mo, TensorBase a, const Mat* ma_, TensorBase b, const Mat* mb_, const Scalar* alpha, const Scalar* beta,
                 TensorBase d, const Mat* md) except -1
