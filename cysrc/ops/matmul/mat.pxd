# Matrices in memory: what the family's kernels tell the devices' steps about the last two dimensions of tensors.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef extern from "device_gemm.h" nogil:
    ctypedef struct Mat "trt_mat":
        int64_t batch, rows, cols, bs, rs, cs
        bint flipped


cdef inline void matrix_of(TensorBase t, Mat* x) noexcept:
    """The last two dimensions of a 2- or 3-dimensional tensor."""
    cdef int d = t.ndim
    x.rows = t.sizes[d - 2]
    x.cols = t.sizes[d - 1]
    x.rs = t.strides[d - 2]
    x.cs = t.strides[d - 1]
    x.batch = t.sizes[0] if d == 3 else 1
    x.bs = t.strides[0] if d == 3 else 0
    x.flipped = False


cdef inline void column_of(TensorBase t, Mat* x) noexcept:
    """A vector as a matrix of one column."""
    x.batch = 1
    x.bs = 0
    x.rows = t.sizes[0]
    x.cols = 1
    x.rs = t.strides[0]
    x.cs = 1
    x.flipped = False


cdef inline void row_of(TensorBase t, Mat* x) noexcept:
    """A vector as a matrix of one row."""
    column_of(t, x)
    transpose_mat(x)
    x.rs = t.numel


cdef inline void dense(Mat* x, int64_t batch, int64_t rows, int64_t cols, bint flipped) noexcept:
    """The geometry after contiguous_of."""
    x.batch = batch
    x.rows = rows
    x.cols = cols
    x.cs = rows if flipped else 1
    x.rs = 1 if flipped else cols
    x.bs = rows * cols
    x.flipped = flipped


cdef inline void transpose_mat(Mat* x) noexcept nogil:
    x.rows, x.cols = x.cols, x.rows
    x.rs, x.cs = x.cs, x.rs
    x.flipped = not x.flipped
