# The tables of raw SIMD kernels (cysrc/loops/kernels.c), for the instruction set of this processor.
from libc.stdint cimport int64_t

cdef extern from "../loops/kernels.h" nogil:
    enum:
        REDUCE_SUM
        REDUCE_PROD
        REDUCE_MIN
        REDUCE_MAX
        REDUCE_ARGMIN
        REDUCE_ARGMAX
        REDUCE_ANY
        REDUCE_ALL
        REDUCE_COUNT_NONZERO
        REDUCE_ABS_SUM
        REDUCE_SQ_SUM
        REDUCE_NORM_P
        REDUCE_ABS_MAX
        REDUCE_ABS_MIN
        REDUCE_VAR
        REDUCE_LOGSUMEXP
        REDUCE_MEAN
        REDUCE_SQRT
        REDUCE_PARTIAL_BYTES
        REDUCE_CHUNK
        SCAN_CUMSUM
        SCAN_CUMPROD
        SOFTMAX
        LOG_SOFTMAX
        SOFTMAX_COLUMNS
    ctypedef struct reduce_params:
        double p
        double correction
        int64_t flags
        char* out2
        int64_t out2_stride
    ctypedef void (*reduce_rows_fn)(const char* data, int64_t row_stride, int64_t elem_stride, int64_t n, char* out, int64_t out_stride,
                                    int64_t rows_begin, int64_t rows_end, const void* params) noexcept nogil
    ctypedef void (*reduce_cols_fn)(const char* data, int64_t reduce_stride, int64_t n, char* out, int64_t cols_begin, int64_t cols_end,
                                    const void* params) noexcept nogil
    ctypedef void (*reduce_chunks_fn)(const char* data, int64_t elem_stride, int64_t n, int64_t chunk, char* partials, int64_t chunks_begin,
                                      int64_t chunks_end, const void* params) noexcept nogil
    ctypedef void (*reduce_combine_fn)(const char* partials, int64_t count, int64_t n, char* out, const void* params) noexcept nogil
    ctypedef struct reduce_kernels:
        reduce_rows_fn rows
        reduce_cols_fn cols
        reduce_chunks_fn chunks
        reduce_combine_fn combine
    ctypedef void (*scan_rows_fn)(const char* data, int64_t in_row_stride, int64_t in_elem_stride, char* out, int64_t out_row_stride,
                                  int64_t out_elem_stride, int64_t n, int64_t rows_begin, int64_t rows_end) noexcept nogil
    ctypedef void (*scan_cols_fn)(const char* data, int64_t in_stride, char* out, int64_t out_stride, int64_t n, int64_t cols_begin,
                                  int64_t cols_end) noexcept nogil
    ctypedef struct scan_kernels:
        scan_rows_fn rows
        scan_cols_fn cols
    ctypedef void (*softmax_rows_fn)(const char* data, int64_t in_row_stride, char* out, int64_t out_row_stride, int64_t n, int64_t rows_begin,
                                     int64_t rows_end) noexcept nogil
    ctypedef void (*softmax_cols_fn)(const char* data, int64_t in_outer_stride, int64_t in_stride, char* out, int64_t out_outer_stride,
                                     int64_t out_stride, int64_t n, int64_t inner, int64_t items_begin, int64_t items_end) noexcept nogil
    ctypedef void (*softmax_backward_rows_fn)(const char* grad, int64_t grad_row_stride, const char* result, int64_t result_row_stride, char* out,
                                              int64_t out_row_stride, int64_t n, int64_t rows_begin, int64_t rows_end) noexcept nogil
    ctypedef void (*softmax_backward_cols_fn)(const char* grad, int64_t grad_outer_stride, int64_t grad_stride, const char* result,
                                              int64_t result_outer_stride, int64_t result_stride, char* out, int64_t out_outer_stride,
                                              int64_t out_stride, int64_t n, int64_t inner, int64_t items_begin, int64_t items_end) noexcept nogil
    ctypedef void (*softmax_apply_fn)(const char* data, char* out, int64_t begin, int64_t end, double max, double sum) noexcept nogil
    ctypedef void (*softmax_combine_fn)(const char* partials, int64_t count, double* max, double* sum) noexcept nogil
    ctypedef struct softmax_kernels:
        softmax_rows_fn rows
        softmax_cols_fn cols
        softmax_apply_fn apply
        softmax_backward_rows_fn backward_rows
        softmax_backward_cols_fn backward_cols

cdef const reduce_kernels* reduce_table(int op, int dtype) noexcept
cdef const scan_kernels* scan_table(int op, int dtype) noexcept
cdef const softmax_kernels* softmax_table(int op, int dtype) noexcept
cdef softmax_combine_fn softmax_combiner() noexcept nogil
