# A prepared iteration, and what runs it.
from libc.stdint cimport int64_t
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dtype cimport Scalar, NUM_DTYPES
from tensorrt_lite._C.core.tensor cimport TensorBase, MAX_DIMS

cdef extern from "pointwise.h" nogil:
    ctypedef void (*loop_t)(char** data, const int64_t* strides, int64_t n, const Scalar* params) noexcept nogil

cdef extern from "stage.h" nogil:
    ctypedef void (*cast_fn "trt_cast_fn")(char* dst, int64_t dst_stride, const char* src, int64_t src_stride, int64_t n) noexcept nogil
    ctypedef cast_fn cast_row "trt_cast_row"[NUM_DTYPES]

cdef enum:
    MAX_OPERANDS = 7
    STAGE = 256                   # elements of a staged block (L1)
    ROWS = 2                      # any_stride of a loop whose elements are whole rows, which nothing transposes

# Operand 0 is the output; strides are bytes, dimension 0 runs fastest.
cdef struct Iter:
    int nop
    int ndim
    int tile_dim                  # 0: rows go one by one; otherwise the dimension that pairs with 0 in tiles
    int short_rows                # rows of a few elements: several at a time
    int direct                    # no operand needs staging
    int any_stride                # the loop takes operands of any stride but 0, in their own types
    int dtype[MAX_OPERANDS]
    int need[MAX_OPERANDS]
    char* base[MAX_OPERANDS]
    int64_t sizes[MAX_DIMS]
    int64_t stride[MAX_OPERANDS][MAX_DIMS]
    int scalar_forms
    unsigned on_host              # bit i: operand i is one number in host memory, beside operands on a device
    loop_t loop
    const Scalar* params

cdef const cast_row* cast_table                      # conversions by the types of source and destination
cdef int run_iteration(Iter* it, int cost, int64_t numel, TensorBase out, PyObject** inputs) except -1
