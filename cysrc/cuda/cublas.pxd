# GEMMs by NVIDIA's cuBLASLt, opened by path at first use.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase

# What a plan depends on, in cuBLASLt's order: matrices by columns. Hashed as bytes: clear it before filling it in.
cdef struct Shape:
    int device, type_ab, type_cd, compute, scale, epilogue, transpose_a, transpose_b, reduction_mask, align_a, align_b, align_c, align_d
    int64_t m, n, k, batch, lda, ldb, ldc, ldd, batch_a, batch_b, batch_c, batch_d, workspace

cdef bint is_available() except -1
# d = alpha a b + beta c with the epilogue, queued on the current stream; False where the library has no algorithm for the shape.
cdef bint multiply(const Shape* shape, TensorBase like, const void* alpha, const void* beta, const char* a, const char* b, const char* c, char* d, const char* bias) except -1
