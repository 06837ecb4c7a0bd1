/* Public face of the kernel headers: function-pointer types, parameter blocks and the tables that kernels_*.c
 * export once per instruction set (suffix _base, _avx2, _avx512). Cython declares these and nothing else.
 *
 * Tables are indexed by operator and by dtype code;
 * a null pointer means that the combination has no kernel. Strides are in bytes. */
#ifndef TRT_KERNELS_H
#define TRT_KERNELS_H

#include <stdint.h>
#include "../core/dtype.h"

/* ---- normalisation (f16, bf16, f32, f64); statistics in the compute type, layouts in norm.h ---- */
enum { NORM_ROWS = 32 }; /* rows whose sums by column the backward pass of a row norm keeps together */
typedef void (*row_norm_fn)(const char* in, int64_t in_row_stride, char* out, int64_t out_row_stride, int64_t n, const
    char* weight, const char* bias, double eps, char* mean, char* rstd, int64_t rows_begin, int64_t rows_end);
typedef void (*row_norm_backward_fn)(const char* grad, int64_t grad_row_stride, const char* in, int64_t in_row_stride,
    const char* weight, const char* mean, const char* rstd, char* out, int64_t out_row_stride, char* partials, int64_t n,
    int64_t rows, int64_t items_begin, int64_t items_end);
typedef void (*row_norm_backward_params_fn)(const char* partials, int64_t items, int64_t n, char* grad_weight, char*
    grad_bias, int64_t cols_begin, int64_t cols_end);
typedef void (*group_norm_fn)(const char* in, char* out, int64_t channels, int64_t hw, int64_t groups, const char*
    weight, const char* bias, double eps, char* mean, char* rstd, int64_t items_begin, int64_t items_end);
typedef void (*group_norm_backward_fn)(const char* grad, const char* in, int64_t channels, int64_t hw, int64_t groups,
    const char* weight, const char* mean, const char* rstd, char* out, double* sums, int64_t items_begin, int64_t
    items_end);
typedef void (*group_norm_backward_params_fn)(const double* sums, int64_t samples, int64_t channels, char*
    grad_weight, char* grad_bias, int64_t channels_begin, int64_t channels_end);
typedef void (*batch_norm_stats_planes_fn)(const char* in, int64_t sample_stride, int64_t channel_stride, int64_t
    samples, int64_t hw, char* mean, char* var, int64_t channels_begin, int64_t channels_end);
typedef void (*batch_norm_stats_last_fn)(const char* in, int64_t row_stride, int64_t rows, char* mean, char* var,
    int64_t channels_begin, int64_t channels_end);
typedef void (*batch_norm_apply_planes_fn)(const char* in, int64_t sample_stride, int64_t channel_stride, char* out,
    int64_t out_sample_stride, int64_t out_channel_stride, int64_t channels, int64_t hw, const char* scale, const
    char* shift, int64_t items_begin, int64_t items_end);
typedef void (*batch_norm_apply_last_fn)(const char* in, int64_t row_stride, char* out, int64_t out_row_stride,
    int64_t channels, const char* scale, const char* shift, int64_t rows_begin, int64_t rows_end);
typedef void (*batch_norm_backward_stats_planes_fn)(const char* grad, int64_t grad_sample_stride, int64_t
    grad_channel_stride, const char* in, int64_t sample_stride, int64_t channel_stride, int64_t samples, int64_t hw,
    const char* mean, char* sum, char* dot, int64_t channels_begin, int64_t channels_end);
typedef void (*batch_norm_backward_stats_last_fn)(const char* grad, int64_t grad_row_stride, const char* in, int64_t
    row_stride, int64_t rows, const char* mean, char* sum, char* dot, int64_t channels_begin, int64_t channels_end);
typedef void (*batch_norm_backward_apply_planes_fn)(const char* grad, int64_t grad_sample_stride, int64_t
    grad_channel_stride, const char* in, int64_t sample_stride, int64_t channel_stride, char* out, int64_t
    out_sample_stride, int64_t out_channel_stride, int64_t channels, int64_t hw, const char* mean, const char* a,
    const char* b, const char* k, int64_t items_begin, int64_t items_end);
typedef void (*batch_norm_backward_apply_last_fn)(const char* grad, int64_t grad_row_stride, const char* in, int64_t
    row_stride, char* out, int64_t out_row_stride, int64_t channels, const char* mean, const char* a, const char* b,
    const char* k, int64_t rows_begin, int64_t rows_end);
typedef struct {
    row_norm_fn forward;
    row_norm_backward_fn backward;
    row_norm_backward_params_fn backward_params;
} row_norm_kernels;
typedef struct {
    group_norm_fn forward;
    group_norm_backward_fn backward;
    group_norm_backward_params_fn backward_params;
} group_norm_kernels;
typedef struct {
    batch_norm_stats_planes_fn stats_planes;
    batch_norm_stats_last_fn stats_last;
    batch_norm_apply_planes_fn apply_planes;
    batch_norm_apply_last_fn apply_last;
    batch_norm_backward_stats_planes_fn backward_stats_planes;
    batch_norm_backward_stats_last_fn backward_stats_last;
    batch_norm_backward_apply_planes_fn backward_apply_planes;
    batch_norm_backward_apply_last_fn backward_apply_last;
} batch_norm_kernels;

/* ---- pooling; pool_shape counts elements, dilation is for max, the last two fields for average ---- */
typedef struct {
    int64_t channels, in_h, in_w, out_h, out_w;
    int64_t kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
    int64_t count_include_pad, divisor_override; /* divisor_override 0: none */
} pool_shape;
typedef void (*max_pool_fn)(const char* in, char* out, int64_t* indices, const pool_shape* shape, int64_t items_begin,
                            int64_t items_end);
typedef void (*max_pool_backward_fn)(const char* grad, const int64_t* indices, char* grad_in, const pool_shape* shape,
                                     int64_t items_begin, int64_t items_end);
typedef void (*avg_pool_fn)(const char* in, char* out, const pool_shape* shape, int64_t items_begin, int64_t items_end);
typedef struct {
    max_pool_fn planes, last;
    max_pool_backward_fn backward_planes, backward_last;
} max_pool_kernels;
typedef struct {
    avg_pool_fn planes, last, backward_planes, backward_last; /* backward: (grad, grad_in, ...) */
} avg_pool_kernels;

#endif
