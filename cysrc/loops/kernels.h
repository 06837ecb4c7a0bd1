/* Public face of the kernel headers: function-pointer types, parameter blocks and the tables that kernels_*.c
 * export once per instruction set (suffix _base, _avx2, _avx512). Cython declares these and nothing else.
 *
 * Tables are indexed by operator and by dtype code;
 * a null pointer means that the combination has no kernel. Strides are in bytes. */
#ifndef TRT_KERNELS_H
#define TRT_KERNELS_H

#include <stdint.h>
#include "../core/dtype.h"

/* ---- reductions ---- */
typedef enum {
    REDUCE_SUM,            /* integers and bool -> i64; flag REDUCE_MEAN divides (floating only) */
    REDUCE_PROD,           /* integers and bool -> i64 */
    REDUCE_MIN,            /* NaN wins */
    REDUCE_MAX,
    REDUCE_ARGMIN,         /* -> i64, first of equals, NaN wins; out2 (optional) receives the value */
    REDUCE_ARGMAX,
    REDUCE_ANY,            /* -> b8 */
    REDUCE_ALL,            /* -> b8 */
    REDUCE_COUNT_NONZERO,  /* -> i64 */
    REDUCE_ABS_SUM,        /* sum |x|; complex -> real, as the next four */
    REDUCE_SQ_SUM,         /* sum |x|^2; flag REDUCE_SQRT gives the 2-norm */
    REDUCE_NORM_P,         /* (sum |x|^p)^(1/p), p = params.p */
    REDUCE_ABS_MAX,
    REDUCE_ABS_MIN,
    REDUCE_VAR,            /* M2 / (n - correction); flag REDUCE_SQRT gives std; out2 receives the mean */
    REDUCE_LOGSUMEXP,
    REDUCE_OP_COUNT
} reduce_op;

enum { REDUCE_MEAN = 1, REDUCE_SQRT = 2 };

/* Bytes of one partial result of a chunk, whatever the operator. */
enum { REDUCE_PARTIAL_BYTES = 32, REDUCE_CHUNK = 16384 };

typedef struct {
    double p;
    double correction;
    int64_t flags;
    char* out2; /* second result or null; for rows: byte stride out2_stride, for columns: contiguous */
    int64_t out2_stride;
} reduce_params;

/* Inner reduction: row r has n elements at in + r * row_stride + i * elem_stride; result at out + r * out_stride. */
typedef void (*reduce_rows_fn)(const char* in, int64_t row_stride, int64_t elem_stride, int64_t n, char* out,
                               int64_t out_stride, int64_t rows_begin, int64_t rows_end, const void* params);
/* Outer reduction: element i of column c at in + i * reduce_stride + c * itemsize; results contiguous. */
typedef void (*reduce_cols_fn)(const char* in, int64_t reduce_stride, int64_t n, char* out, int64_t cols_begin,
                               int64_t cols_end, const void* params);
/* Full reduction: chunk k covers elements [k * chunk, min(n, (k + 1) * chunk)) and writes partial k. */
typedef void (*reduce_chunks_fn)(const char* in, int64_t elem_stride, int64_t n, int64_t chunk, char* partials,
                                 int64_t chunks_begin, int64_t chunks_end, const void* params);
/* Merges partials 0..count-1 in order into one result; n is the number of elements they cover. */
typedef void (*reduce_combine_fn)(const char* partials, int64_t count, int64_t n, char* out, const void* params);

typedef struct {
    reduce_rows_fn rows;
    reduce_cols_fn cols;
    reduce_chunks_fn chunks;
    reduce_combine_fn combine;
} reduce_kernels;

/* ---- scans: integers and bool accumulate into i64 outputs, the rest keep their dtype ---- */
typedef enum { SCAN_CUMSUM, SCAN_CUMPROD, SCAN_OP_COUNT } scan_op;
typedef void (*scan_rows_fn)(const char* in, int64_t in_row_stride, int64_t in_elem_stride, char* out,
                             int64_t out_row_stride, int64_t out_elem_stride, int64_t n, int64_t rows_begin,
                             int64_t rows_end);
typedef void (*scan_cols_fn)(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t n,
                             int64_t cols_begin, int64_t cols_end);
typedef struct {
    scan_rows_fn rows;
    scan_cols_fn cols;
} scan_kernels;

/* ---- softmax family (f16, bf16, f32, f64); see softmax.h for what a work item is ---- */
typedef enum { SOFTMAX, LOG_SOFTMAX, SOFTMAX_OP_COUNT } softmax_op;
enum { SOFTMAX_COLUMNS = 256 }; /* columns of one work item of the cols kernels */
typedef void (*softmax_rows_fn)(const char* in, int64_t in_row_stride, char* out, int64_t out_row_stride, int64_t n,
                                int64_t rows_begin, int64_t rows_end);
typedef void (*softmax_cols_fn)(const char* in, int64_t in_outer_stride, int64_t in_stride, char* out,
                                int64_t out_outer_stride, int64_t out_stride, int64_t n, int64_t inner,
                                int64_t items_begin, int64_t items_end);
typedef void (*softmax_backward_rows_fn)(const char* grad, int64_t grad_row_stride, const char* result,
                                         int64_t result_row_stride, char* out, int64_t out_row_stride, int64_t n,
                                         int64_t rows_begin, int64_t rows_end);
typedef void (*softmax_backward_cols_fn)(const char* grad, int64_t grad_outer_stride, int64_t grad_stride,
                                         const char* result, int64_t result_outer_stride, int64_t result_stride,
                                         char* out, int64_t out_outer_stride, int64_t out_stride, int64_t n,
                                         int64_t inner, int64_t items_begin, int64_t items_end);
/* One row cut between threads: logsumexp chunks, then softmax_combine, then apply on ranges of elements. */
typedef void (*softmax_apply_fn)(const char* in, char* out, int64_t begin, int64_t end, double max, double sum);
typedef void (*softmax_combine_fn)(const char* partials, int64_t count, double* max, double* sum);
typedef struct {
    softmax_rows_fn rows;
    softmax_cols_fn cols;
    softmax_apply_fn apply;
    softmax_backward_rows_fn backward_rows;
    softmax_backward_cols_fn backward_cols;
} softmax_kernels;

/* Cross entropy over class indices (f32, f64); weight may be null; loss, lse, row_weight: one value per row. */
typedef int64_t (*cross_entropy_fn)(const char* logits, int64_t row_stride, int64_t classes, const int64_t* target,
                                    const char* weight, int64_t ignore_index, double smoothing, char* loss, char* lse,
                                    char* row_weight, int64_t rows_begin, int64_t rows_end);
typedef int64_t (*cross_entropy_backward_fn)(const char* logits, int64_t row_stride, int64_t classes,
                                             const int64_t* target, const char* weight, int64_t ignore_index,
                                             double smoothing, const char* lse, const char* grad, int64_t grad_stride,
                                             double grad_scale, char* out, int64_t out_row_stride, int64_t rows_begin,
                                             int64_t rows_end);
typedef struct {
    cross_entropy_fn forward;
    cross_entropy_backward_fn backward;
} cross_entropy_kernels;

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
