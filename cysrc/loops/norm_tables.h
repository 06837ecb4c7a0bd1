/* What the loops of the normalisations export: tables by dtype code (f16, bf16, f32, f64, else null); statistics in the compute type, layouts in norm.h. */
#ifndef TRT_NORM_TABLES_H
#define TRT_NORM_TABLES_H

#include <stdint.h>
#include "../core/dtype.h"
#include "norm_steps.h"

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

#endif
