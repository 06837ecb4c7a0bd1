# Element types, from the one table of them (dtype_table.h). Codes have no order: ask the predicates what a type is like.
from libc.stdint cimport int64_t, uint64_t, uint32_t

cdef extern from "scalar_types.h" nogil:
    ctypedef struct Scalar:
        int kind          # 0 bool, 1 int, 2 float, 3 complex, 4 an integer from 2**63 to 2**64
        double d
        double im
        int64_t i

cdef extern from "dtype.h" nogil:
    enum:
        BOOL "DT_b8"
        U8 "DT_u8"
        I8 "DT_i8"
        I16 "DT_i16"
        I32 "DT_i32"
        I64 "DT_i64"
        F16 "DT_f16"
        BF16 "DT_bf16"
        F32 "DT_f32"
        F64 "DT_f64"
        C64 "DT_c64"
        C128 "DT_c128"
        U16 "DT_u16"
        U32 "DT_u32"
        U64 "DT_u64"
        C32 "DT_c32"
        NUM_DTYPES
    enum:
        CAT_BOOL "TRT_CAT_BOOL"          # categories do have an order: the higher one wins in promotion
        CAT_INT "TRT_CAT_INT"
        CAT_FLOAT "TRT_CAT_FLOAT"
        CAT_COMPLEX "TRT_CAT_COMPLEX"
    const int* ITEM_SIZE "trt_item_size"                        # bytes
    const int* category "trt_category"
    const int* DIGITS "trt_digits"                              # bits that are exact
    const double* LARGEST "trt_largest"
    const signed char* DLPACK_CODE "trt_dlpack_code"
    const signed char* compute_type "trt_compute_type"          # what arithmetic is done in
    const signed char* loop_type "trt_loop_type"                # whose loops serve the type: its own, or those of its compute type
    const signed char* real_type "trt_real_type"
    const signed char* complex_type "trt_complex_type"
    bint is_integral_type "trt_is_integral_type"(int code)                          # bool is none
    bint is_integral_or_bool_type "trt_is_integral_or_bool_type"(int code)
    bint is_floating_type "trt_is_floating_type"(int code)                          # real ones
    bint is_complex_type "trt_is_complex_type"(int code)
    bint is_reduced_floating_type "trt_is_reduced_floating_type"(int code)          # real ones that compute in float32
    bint is_signed_type "trt_is_signed_type"(int code)
    bint is_blas_type "trt_is_blas_type"(int code)                                  # floats and complex numbers that compute in themselves
    bint has_loops "trt_has_loops"(int code)                                        # operators compute with it; others are stored and cast

cdef enum:
    NO_PROMOTION = -2
cdef int promotion[NUM_DTYPES][NUM_DTYPES]                                          # NO_PROMOTION: raise_promotion says why
cdef int raise_promotion(int a, int b) except -1

cdef class dtype:
    cdef readonly int code
    cdef readonly str name
    cdef readonly int itemsize
    cdef object __weakref__

cdef list dtypes
cdef dtype dtype_of(int code)
cdef const char* dtype_label(int code) noexcept
cdef const char* dtype_cpp_name(int code) noexcept
cdef int default_float_code() noexcept
cdef int default_complex_code() noexcept
cdef int to_real(int code) noexcept
cdef int to_complex(int code) noexcept
cdef bint can_cast(int source, int target) noexcept
cdef int check_number(const Scalar* value, int code) except -1

cdef inline int number_category(const Scalar* s) noexcept:
    return CAT_INT if s.kind == 4 else s.kind


cdef inline bint number_fits(const Scalar* value, int code) noexcept:
    """Whether a number certainly goes into a type: the usual ones at a glance, check_number looks at the others."""
    if category[code] == CAT_FLOAT:
        return value.kind < 3 and -LARGEST[code] <= value.d <= LARGEST[code]
    return value.kind <= CAT_INT and 0 <= value.i <= 127
