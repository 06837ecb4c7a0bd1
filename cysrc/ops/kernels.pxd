# The tables of raw SIMD kernels (cysrc/loops/kernels_*.c), for the instruction set of this processor.
from libc.stdint cimport int64_t

cdef extern from "../loops/kernels.h" nogil:
    enum:
        NORM_ROWS
    ctypedef struct row_norm_kernels:
        void (*forward)(const char* data, int64_t row_stride, char* out, int64_t out_row_stride, int64_t n, const char* weight, const char* bias,
                        double eps, char* mean, char* rstd, int64_t rows_begin, int64_t rows_end) noexcept nogil
        void (*backward)(const char* grad, int64_t grad_row_stride, const char* data, int64_t row_stride, const char* weight, const char* mean,
                         const char* rstd, char* out, int64_t out_row_stride, char* partials, int64_t n, int64_t rows, int64_t items_begin,
                         int64_t items_end) noexcept nogil
        void (*backward_params)(const char* partials, int64_t items, int64_t n, char* grad_weight, char* grad_bias, int64_t cols_begin,
                                int64_t cols_end) noexcept nogil
    ctypedef struct group_norm_kernels:
        void (*forward)(const char* data, char* out, int64_t channels, int64_t hw, int64_t groups, const char* weight, const char* bias, double eps,
                        char* mean, char* rstd, int64_t items_begin, int64_t items_end) noexcept nogil
        void (*backward)(const char* grad, const char* data, int64_t channels, int64_t hw, int64_t groups, const char* weight, const char* mean,
                         const char* rstd, char* out, double* sums, int64_t items_begin, int64_t items_end) noexcept nogil
        void (*backward_params)(const double* sums, int64_t samples, int64_t channels, char* grad_weight, char* grad_bias, int64_t channels_begin,
                                int64_t channels_end) noexcept nogil
    ctypedef struct batch_norm_kernels:
        void (*stats_planes)(const char* data, int64_t sample_stride, int64_t channel_stride, int64_t samples, int64_t hw, char* mean, char* var,
                             int64_t channels_begin, int64_t channels_end) noexcept nogil
        void (*stats_last)(const char* data, int64_t row_stride, int64_t rows, char* mean, char* var, int64_t channels_begin,
                           int64_t channels_end) noexcept nogil
        void (*apply_planes)(const char* data, int64_t sample_stride, int64_t channel_stride, char* out, int64_t out_sample_stride,
                             int64_t out_channel_stride, int64_t channels, int64_t hw, const char* scale, const char* shift, int64_t items_begin,
                             int64_t items_end) noexcept nogil
        void (*apply_last)(const char* data, int64_t row_stride, char* out, int64_t out_row_stride, int64_t channels, const char* scale,
                           const char* shift, int64_t rows_begin, int64_t rows_end) noexcept nogil
        void (*backward_stats_planes)(const char* grad, int64_t grad_sample_stride, int64_t grad_channel_stride, const char* data,
                                      int64_t sample_stride, int64_t channel_stride, int64_t samples, int64_t hw, const char* mean, char* sum,
                                      char* dot, int64_t channels_begin, int64_t channels_end) noexcept nogil
        void (*backward_stats_last)(const char* grad, int64_t grad_row_stride, const char* data, int64_t row_stride, int64_t rows, const char* mean,
                                    char* sum, char* dot, int64_t channels_begin, int64_t channels_end) noexcept nogil
        void (*backward_apply_planes)(const char* grad, int64_t grad_sample_stride, int64_t grad_channel_stride, const char* data,
                                      int64_t sample_stride, int64_t channel_stride, char* out, int64_t out_sample_stride, int64_t out_channel_stride,
                                      int64_t channels, int64_t hw, const char* mean, const char* a, const char* b, const char* k,
                                      int64_t items_begin, int64_t items_end) noexcept nogil
        void (*backward_apply_last)(const char* grad, int64_t grad_row_stride, const char* data, int64_t row_stride, char* out,
                                    int64_t out_row_stride, int64_t channels, const char* mean, const char* a, const char* b, const char* k,
                                    int64_t rows_begin, int64_t rows_end) noexcept nogil
    ctypedef struct pool_shape:
        int64_t channels, in_h, in_w, out_h, out_w
        int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w
        int64_t count_include_pad, divisor_override
    ctypedef void (*max_pool_fn)(const char* data, char* out, int64_t* indices, const pool_shape* shape, int64_t begin, int64_t end) noexcept nogil
    ctypedef void (*max_pool_backward_fn)(const char* grad, const int64_t* indices, char* grad_in, const pool_shape* shape, int64_t begin,
                                          int64_t end) noexcept nogil
    ctypedef void (*avg_pool_fn)(const char* data, char* out, const pool_shape* shape, int64_t begin, int64_t end) noexcept nogil
    ctypedef struct max_pool_kernels:
        max_pool_fn planes, last
        max_pool_backward_fn backward_planes, backward_last
    ctypedef struct avg_pool_kernels:
        avg_pool_fn planes, last, backward_planes, backward_last

cdef const row_norm_kernels* layer_norm_table(int dtype) noexcept
cdef const row_norm_kernels* rms_norm_table(int dtype) noexcept
cdef const group_norm_kernels* group_norm_table(int dtype) noexcept
cdef const batch_norm_kernels* batch_norm_table(int dtype) noexcept
cdef const max_pool_kernels* max_pool_table(int dtype) noexcept
cdef const avg_pool_kernels* avg_pool_table(int dtype) noexcept
cdef const avg_pool_kernels* adaptive_avg_pool_table(int dtype) noexcept
