# The tables of the reduction family's loops (cysrc/loops/reduction.h), for the instruction set of this processor.
from libc.stdint cimport int64_t
from tensorrt_lite._C.steps.reduction cimport reduce_call

cdef extern from "reduction.h" nogil:
    ctypedef struct reduce_kernels:
        void (*rows)(const char* data, int64_t row_stride, int64_t elem_stride, int64_t n, char* out, int64_t out_stride, int64_t rows_begin, int64_t rows_end,
                     const reduce_call* call) noexcept nogil
        void (*cols)(const char* data, int64_t reduce_stride, int64_t n, char* out, int64_t cols_begin, int64_t cols_end, const reduce_call* call) noexcept nogil
        void (*chunks)(const char* data, int64_t elem_stride, int64_t n, int64_t chunk, char* partials, int64_t chunks_begin, int64_t chunks_end,
                       const reduce_call* call) noexcept nogil
        void (*combine)(const char* partials, int64_t count, int64_t n, char* out, const reduce_call* call) noexcept nogil
    ctypedef struct scan_kernels:
        void (*rows)(const char* data, int64_t in_row_stride, int64_t in_elem_stride, char* out, int64_t out_row_stride, int64_t out_elem_stride, int64_t n,
                     int64_t rows_begin, int64_t rows_end) noexcept nogil
        void (*cols)(const char* data, int64_t in_stride, char* out, int64_t out_stride, int64_t n, int64_t cols_begin, int64_t cols_end) noexcept nogil
    ctypedef struct softmax_kernels:
        void (*rows)(const char* data, int64_t in_row_stride, char* out, int64_t out_row_stride, int64_t n, int64_t rows_begin, int64_t rows_end) noexcept nogil
        void (*cols)(const char* data, int64_t in_outer_stride, int64_t in_stride, char* out, int64_t out_outer_stride, int64_t out_stride, int64_t n,
                     int64_t inner, int64_t items_begin, int64_t items_end) noexcept nogil
        void (*apply)(const char* data, char* out, int64_t begin, int64_t end, double max, double sum) noexcept nogil
        void (*backward_rows)(const char* grad, int64_t grad_row_stride, const char* result, int64_t result_row_stride, char* out, int64_t out_row_stride,
                              int64_t n, int64_t rows_begin, int64_t rows_end) noexcept nogil
        void (*backward_cols)(const char* grad, int64_t grad_outer_stride, int64_t grad_stride, const char* result, int64_t result_outer_stride,
                              int64_t result_stride, char* out, int64_t out_outer_stride, int64_t out_stride, int64_t n, int64_t inner, int64_t items_begin,
                              int64_t items_end) noexcept nogil
    ctypedef void (*softmax_combine_fn)(const char* partials, int64_t count, double* max, double* sum) noexcept nogil
