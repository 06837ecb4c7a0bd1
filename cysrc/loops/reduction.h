/* What the loops of the reduction family export, once per instruction set (suffix _base, _avx2, _avx512): tables by operation and dtype code,
 * where a null pointer stands for a combination without loops. The operations and what a step asks for are declared in
 * cysrc/ops/reduction/steps.yaml. Strides are in bytes. */
#ifndef TRT_REDUCTION_H
#define TRT_REDUCTION_H

#include <stdint.h>
#include "../core/dtype.h"
#include "reduction_steps.h"

/* ---- reductions ---- */
/* Inner reduction: row r has n elements at in + r * row_stride + i * elem_stride; result at out + r * out_stride. */
typedef void (*reduce_rows_fn)(const char* in, int64_t row_stride, int64_t elem_stride, int64_t n, char* out,
                               int64_t out_stride, int64_t rows_begin, int64_t rows_end, const reduce_call* call);
/* Outer reduction: element i of column c at in + i * reduce_stride + c * itemsize; results contiguous. */
typedef void (*reduce_cols_fn)(const char* in, int64_t reduce_stride, int64_t n, char* out, int64_t cols_begin,
                               int64_t cols_end, const reduce_call* call);
/* Full reduction: chunk k covers elements [k * chunk, min(n, (k + 1) * chunk)) and writes partial k. */
typedef void (*reduce_chunks_fn)(const char* in, int64_t elem_stride, int64_t n, int64_t chunk, char* partials,
                                 int64_t chunks_begin, int64_t chunks_end, const reduce_call* call);
/* Merges partials 0..count-1 in order into one result; n is the number of elements they cover. */
typedef void (*reduce_combine_fn)(const char* partials, int64_t count, int64_t n, char* out, const reduce_call* call);

typedef struct {
    reduce_rows_fn rows;
    reduce_cols_fn cols;
    reduce_chunks_fn chunks;
    reduce_combine_fn combine;
} reduce_kernels;

/* ---- scans: integers and bool accumulate into i64 outputs, the rest keep their dtype ---- */
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

#endif
