# Element types: codes 0..11 have kernels in every operator, the rest are storage types so far.
from libc.stdint cimport int64_t, uint64_t, uint32_t

cdef extern from "scalar_types.h" nogil:
    ctypedef struct Scalar:
        int kind          # 0 bool, 1 int, 2 float, 3 complex
        double d
        double im
        int64_t i

cdef enum:
    BOOL = 0
    U8 = 1
    I8 = 2
    I16 = 3
    I32 = 4
    I64 = 5
    F16 = 6
    BF16 = 7
    F32 = 8
    F64 = 9
    C64 = 10
    C128 = 11
    NUM_TYPES = 12

cdef enum:
    CAT_BOOL = 0
    CAT_INT = 1
    CAT_FLOAT = 2
    CAT_COMPLEX = 3

cdef int item_size[12]
cdef int category[12]
cdef int promotion[12][12]

cdef class dtype:
    cdef readonly int code
    cdef readonly str name
    cdef readonly int itemsize
    cdef object __weakref__

cdef list dtypes
cdef dtype dtype_of(int code)
cdef const char* dtype_label(int code) noexcept
cdef int default_float_code() noexcept
cdef int default_complex_code() noexcept
cdef int to_real(int code) noexcept
cdef int to_complex(int code) noexcept
cdef bint can_cast(int source, int target) noexcept
