/* Reductions over an outer dimension with contiguous inner columns, vectorised over the columns, and scans.
 *
 * Columns are independent, so any cut of the column range gives the same bits. Rows are read in groups of
 * GROUP_ROWS: inside a group the compute type accumulates, groups add up in f64 (sums) or merge by the
 * formulas of reduce.h (variance, logsumexp). COLUMN_BLOCK columns at a time keep the accumulators in L1. */
#ifndef TRT_REDUCE_COLS_H
#define TRT_REDUCE_COLS_H

#include "reduce.h"

enum { COLUMN_BLOCK = 1024, MOMENT_COLUMNS = 256, GROUP_ROWS = 64 };

#define COLS_ARGS                                                                                   \
    const char *in, int64_t reduce_stride, int64_t n, char *out, int64_t cols_begin, int64_t cols_end, \
        const void *params_

/* ---- sums: EXPR(v) of four rows at a time, so that the accumulator is loaded once for four elements ---- */
#define DEFINE_SUM_COLS(NAME, T, C, EXPR, FINISH)                                                   \
    KERNEL_FN void NAME##_cols(COLS_ARGS) {                                                         \
        const reduce_params* params = params_;                                                      \
        C buf[4][COLUMN_BLOCK], part[COLUMN_BLOCK];                                                 \
        f64 total[COLUMN_BLOCK];                                                                    \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += COLUMN_BLOCK) {                          \
            int64_t w = min_i64(COLUMN_BLOCK, cols_end - c0);                                       \
            const char* base = in + c0 * (int64_t)sizeof(T);                                        \
            for (int64_t c = 0; c < w; c++) total[c] = 0;                                           \
            for (int64_t r0 = 0; r0 < n; r0 += GROUP_ROWS) {                                        \
                int64_t r = r0, end = min_i64(r0 + GROUP_ROWS, n);                                  \
                for (int64_t c = 0; c < w; c++) part[c] = 0;                                        \
                for (; r + 4 <= end; r += 4) {                                                      \
                    const char* p = base + r * reduce_stride;                                       \
                    const C* x0 = stage_##T(p, sizeof(T), w, buf[0]);                               \
                    const C* x1 = stage_##T(p + reduce_stride, sizeof(T), w, buf[1]);               \
                    const C* x2 = stage_##T(p + 2 * reduce_stride, sizeof(T), w, buf[2]);           \
                    const C* x3 = stage_##T(p + 3 * reduce_stride, sizeof(T), w, buf[3]);           \
                    VECTORIZE for (int64_t c = 0; c < w; c++)                                       \
                        part[c] += (EXPR(x0[c]) + EXPR(x1[c])) + (EXPR(x2[c]) + EXPR(x3[c]));       \
                }                                                                                   \
                for (; r < end; r++) {                                                              \
                    const C* x = stage_##T(base + r * reduce_stride, sizeof(T), w, buf[0]);         \
                    VECTORIZE for (int64_t c = 0; c < w; c++) part[c] += EXPR(x[c]);                \
                }                                                                                   \
                VECTORIZE for (int64_t c = 0; c < w; c++) total[c] += part[c];                      \
            }                                                                                       \
            FINISH##_run(total, n, part, out + c0 * (int64_t)sizeof(T), w, params);                 \
        }                                                                                           \
    }

#define SQUARE(v) ((v) * (v))
#define ABSOLUTE(v) ((v) < 0 ? -(v) : (v))
#define POWER_f32(v) pow_f32(ABSOLUTE(v), (f32)params->p)
#define POWER_f64(v) pow_f64(ABSOLUTE(v), params->p)

/* ---- one accumulator per column, four rows at a time as above. STEP(acc[c], x[c]) takes in an element ---- */
#define FOLD_ROWS(T, C, STEP, BEGIN)                                                                \
    int64_t r = BEGIN;                                                                              \
    for (; r + 4 <= n; r += 4) {                                                                    \
        const char* p = base + r * reduce_stride;                                                   \
        const C* x0 = stage_##T(p, sizeof(T), w, buf[0]);                                           \
        const C* x1 = stage_##T(p + reduce_stride, sizeof(T), w, buf[1]);                           \
        const C* x2 = stage_##T(p + 2 * reduce_stride, sizeof(T), w, buf[2]);                       \
        const C* x3 = stage_##T(p + 3 * reduce_stride, sizeof(T), w, buf[3]);                       \
        VECTORIZE for (int64_t c = 0; c < w; c++) {                                                 \
            acc[c] = STEP(acc[c], x0[c]);                                                           \
            acc[c] = STEP(acc[c], x1[c]);                                                           \
            acc[c] = STEP(acc[c], x2[c]);                                                           \
            acc[c] = STEP(acc[c], x3[c]);                                                           \
        }                                                                                           \
    }                                                                                               \
    for (; r < n; r++) {                                                                            \
        const C* x = stage_##T(base + r * reduce_stride, sizeof(T), w, buf[0]);                     \
        VECTORIZE for (int64_t c = 0; c < w; c++) acc[c] = STEP(acc[c], x[c]);                      \
    }
#define DEFINE_FOLD_COLS(NAME, T, C, A, START, STEP, O, STORE)                                      \
    KERNEL_FN void NAME##_cols(COLS_ARGS) {                                                         \
        (void)params_;                                                                              \
        C buf[4][COLUMN_BLOCK];                                                                     \
        A acc[COLUMN_BLOCK];                                                                        \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += COLUMN_BLOCK) {                          \
            int64_t w = min_i64(COLUMN_BLOCK, cols_end - c0);                                       \
            const char* base = in + c0 * (int64_t)sizeof(T);                                        \
            for (int64_t c = 0; c < w; c++) acc[c] = START;                                         \
            FOLD_ROWS(T, C, STEP, 0)                                                                \
            for (int64_t c = 0; c < w; c++) ((O*)out)[c0 + c] = STORE(acc[c]);                      \
        }                                                                                           \
    }
#define STEP_ADD(a, v) ((a) + (uint64_t)(int64_t)(v))
#define STEP_MULTIPLY(a, v) ((a) * (v))
#define STEP_INT_MULTIPLY(a, v) ((a) * (uint64_t)(int64_t)(v))
#define STEP_COUNT(a, v) ((a) + ((v) != 0))
#define STEP_ANY(a, v) ((a) | ((v) != 0))
#define STEP_ALL(a, v) ((a) & ((v) != 0))
/* (v != v) lets NaN in, and no comparison removes it again. */
#define STEP_MAX(a, v) (((v) > (a)) | ((v) != (v)) ? (v) : (a))
#define STEP_MIN(a, v) (((v) < (a)) | ((v) != (v)) ? (v) : (a))
#define STEP_ABS_MAX(a, v) STEP_MAX(a, ABSOLUTE(v))
#define STEP_ABS_MIN(a, v) STEP_MIN(a, ABSOLUTE(v))

/* ---- min, max, argmin, argmax: the first row starts the accumulator; n >= 1 ---- */
#define DEFINE_EXTREME_COLS(NAME, T, C, FIRST, STEP, STORE)                                         \
    KERNEL_FN void NAME##_cols(COLS_ARGS) {                                                         \
        (void)params_;                                                                              \
        C buf[4][COLUMN_BLOCK], acc[COLUMN_BLOCK];                                                  \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += COLUMN_BLOCK) {                          \
            int64_t w = min_i64(COLUMN_BLOCK, cols_end - c0);                                       \
            const char* base = in + c0 * (int64_t)sizeof(T);                                        \
            const C* first = stage_##T(base, sizeof(T), w, buf[0]);                                 \
            for (int64_t c = 0; c < w; c++) acc[c] = FIRST(first[c]);                               \
            FOLD_ROWS(T, C, STEP, 1)                                                                \
            for (int64_t c = 0; c < w; c++) ((T*)out)[c0 + c] = STORE(acc[c]);                      \
        }                                                                                           \
    }
#define DEFINE_ARG_COLS(NAME, T, C, BETTER, STORE)                                                  \
    KERNEL_FN void NAME##_cols(COLS_ARGS) {                                                         \
        const reduce_params* params = params_;                                                      \
        C buf[COLUMN_BLOCK], acc[COLUMN_BLOCK];                                                     \
        int64_t index[COLUMN_BLOCK];                                                                \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += COLUMN_BLOCK) {                          \
            int64_t w = min_i64(COLUMN_BLOCK, cols_end - c0);                                       \
            const char* base = in + c0 * (int64_t)sizeof(T);                                        \
            const C* x = stage_##T(base, sizeof(T), w, buf);                                        \
            for (int64_t c = 0; c < w; c++) acc[c] = x[c], index[c] = 0;                            \
            for (int64_t r = 1; r < n; r++) {                                                       \
                x = stage_##T(base + r * reduce_stride, sizeof(T), w, buf);                         \
                VECTORIZE for (int64_t c = 0; c < w; c++) {                                         \
                    int better = (x[c] BETTER acc[c]) | ((x[c] != x[c]) & (acc[c] == acc[c]));      \
                    acc[c] = better ? x[c] : acc[c];                                                \
                    index[c] = better ? r : index[c];                                               \
                }                                                                                   \
            }                                                                                       \
            for (int64_t c = 0; c < w; c++) {                                                       \
                ((i64*)out)[c0 + c] = index[c];                                                     \
                if (params && params->out2) ((T*)params->out2)[c0 + c] = STORE(acc[c]);             \
            }                                                                                       \
        }                                                                                           \
    }

/* ---- variance: groups of rows stay in L2 for the two passes of block_moments ---- */
#define DEFINE_VAR_COLS(T, C)                                                                       \
    KERNEL_ONCE void column_moments_##T(const char* base, int64_t stride, int64_t n, int64_t w, moments* s) { \
        C buf[MOMENT_COLUMNS], mean[MOMENT_COLUMNS], dev[MOMENT_COLUMNS], sq[MOMENT_COLUMNS];       \
        for (int64_t c = 0; c < w; c++) s[c] = (moments){0, 0, 0};                                  \
        for (int64_t r0 = 0; r0 < n; r0 += GROUP_ROWS) {                                            \
            int64_t end = min_i64(r0 + GROUP_ROWS, n);                                              \
            C scale = (C)(1.0 / (f64)(end - r0));                                                   \
            for (int64_t c = 0; c < w; c++) mean[c] = dev[c] = sq[c] = 0;                           \
            for (int64_t r = r0; r < end; r++) {                                                    \
                const C* x = stage_##T(base + r * stride, sizeof(T), w, buf);                       \
                VECTORIZE for (int64_t c = 0; c < w; c++) mean[c] += x[c];                          \
            }                                                                                       \
            for (int64_t c = 0; c < w; c++) mean[c] *= scale;                                       \
            for (int64_t r = r0; r < end; r++) {                                                    \
                const C* x = stage_##T(base + r * stride, sizeof(T), w, buf);                       \
                VECTORIZE for (int64_t c = 0; c < w; c++) {                                         \
                    C d = x[c] - mean[c];                                                           \
                    dev[c] += d;                                                                    \
                    sq[c] += d * d;                                                                 \
                }                                                                                   \
            }                                                                                       \
            for (int64_t c = 0; c < w; c++) {                                                       \
                f64 count = (f64)(end - r0), d = dev[c];                                            \
                moments_merge(&s[c], count, (f64)mean[c] + d / count, fmax((f64)sq[c] - d * d / count, 0)); \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void var_##T##_cols(COLS_ARGS) {                                                      \
        const reduce_params* params = params_;                                                      \
        moments s[MOMENT_COLUMNS];                                                                  \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += MOMENT_COLUMNS) {                        \
            int64_t w = min_i64(MOMENT_COLUMNS, cols_end - c0);                                     \
            column_moments_##T(in + c0 * (int64_t)sizeof(T), reduce_stride, n, w, s);               \
            for (int64_t c = 0; c < w; c++)                                                         \
                var_finish_##T(&s[c], n, out + (c0 + c) * (int64_t)sizeof(T),                       \
                               params->out2 ? params->out2 + (c0 + c) * (int64_t)sizeof(T) : 0, params); \
        }                                                                                           \
    }

/* Per column: largest element and sum of exp(x - largest), rescaled when a later group has a larger one. */
#define DEFINE_LOGSUMEXP_COLS(T, C)                                                                 \
    KERNEL_INLINE void column_max_and_exp_sum_##T(const char* base, int64_t stride, int64_t n, int64_t w, \
            C* restrict max,                                                                        \
                                                  C* restrict sum) {                                \
        C buf[MOMENT_COLUMNS], group[MOMENT_COLUMNS], part[MOMENT_COLUMNS], shift[MOMENT_COLUMNS];  \
        for (int64_t c = 0; c < w; c++) max[c] = -INFINITY, sum[c] = 0;                             \
        for (int64_t r0 = 0; r0 < n; r0 += GROUP_ROWS) {                                            \
            int64_t end = min_i64(r0 + GROUP_ROWS, n);                                              \
            for (int64_t c = 0; c < w; c++) group[c] = max[c], part[c] = 0;                         \
            for (int64_t r = r0; r < end; r++) {                                                    \
                const C* x = stage_##T(base + r * stride, sizeof(T), w, buf);                       \
                VECTORIZE for (int64_t c = 0; c < w; c++) group[c] = STEP_MAX(group[c], x[c]);      \
            }                                                                                       \
            VECTORIZE for (int64_t c = 0; c < w; c++) shift[c] = ABSOLUTE(group[c]) == (C)INFINITY ? 0 : group[c]; \
            for (int64_t r = r0; r < end; r++) {                                                    \
                const C* x = stage_##T(base + r * stride, sizeof(T), w, buf);                       \
                VECTORIZE for (int64_t c = 0; c < w; c++) part[c] += exp_below_zero_##C(x[c] - shift[c]); \
            }                                                                                       \
            VECTORIZE for (int64_t c = 0; c < w; c++) {                                             \
                C old = ABSOLUTE(max[c]) == (C)INFINITY ? 0 : max[c];                               \
                C rescaled = sum[c] * exp_below_zero_##C(old - shift[c]);                           \
                sum[c] = (sum[c] == 0 ? 0 : rescaled) + part[c];                                    \
                max[c] = group[c];                                                                  \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void logsumexp_##T##_cols(COLS_ARGS) {                                                \
        (void)params_;                                                                              \
        C max[MOMENT_COLUMNS], sum[MOMENT_COLUMNS];                                                 \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += MOMENT_COLUMNS) {                        \
            int64_t w = min_i64(MOMENT_COLUMNS, cols_end - c0);                                     \
            column_max_and_exp_sum_##T(in + c0 * (int64_t)sizeof(T), reduce_stride, n, w, max, sum); \
            for (int64_t c = 0; c < w; c++) {                                                       \
                logsumexp_state s = {max[c], sum[c]};                                               \
                logsumexp_finish_##T(&s, n, out + (c0 + c) * (int64_t)sizeof(T), 0, 0);             \
            }                                                                                       \
        }                                                                                           \
    }

/* ---- complex columns: pairs of reals ---- */
#define DEFINE_COMPLEX_COLS(T, R)                                                                   \
    KERNEL_FN void sum_##T##_cols(COLS_ARGS) {                                                      \
        reduce_params flags = {.flags = params_ ? ((const reduce_params*)params_)->flags : 0};      \
        sum_##R##_cols(in, reduce_stride, n, out, 2 * cols_begin, 2 * cols_end, &flags);            \
    }                                                                                               \
    KERNEL_FN void prod_##T##_cols(COLS_ARGS) {                                                     \
        prod_##T##_rows(in, sizeof(T), reduce_stride, n, out, sizeof(T), cols_begin, cols_end, params_); \
    }
/* The rest of the complex reductions are rare: each column is a strided row. */
#define DEFINE_COLS_BY_ROWS(NAME, T, OUT_BYTES)                                                     \
    KERNEL_FN void NAME##_cols(COLS_ARGS) {                                                         \
        NAME##_rows(in, sizeof(T), reduce_stride, n, out, OUT_BYTES, cols_begin, cols_end, params_); \
    }

/* ---- instances ---- */
#define DEFINE_COUNT_COLS(T, C)                                                                     \
    DEFINE_FOLD_COLS(any_##T, T, C, uint8_t, 0, STEP_ANY, uint8_t, IDENTITY)                        \
    DEFINE_FOLD_COLS(all_##T, T, C, uint8_t, 1, STEP_ALL, uint8_t, IDENTITY)                        \
    DEFINE_FOLD_COLS(count_##T, T, C, i64, 0, STEP_COUNT, i64, IDENTITY)
#define DEFINE_ORDER_COLS(T, C, STORE)                                                              \
    DEFINE_EXTREME_COLS(max_##T, T, C, IDENTITY, STEP_MAX, STORE)                                   \
    DEFINE_EXTREME_COLS(min_##T, T, C, IDENTITY, STEP_MIN, STORE)                                   \
    DEFINE_ARG_COLS(argmax_##T, T, C, >, STORE)                                                     \
    DEFINE_ARG_COLS(argmin_##T, T, C, <, STORE)                                                     \
    DEFINE_COUNT_COLS(T, C)
#define DEFINE_INT_COLS(T)                                                                          \
    DEFINE_FOLD_COLS(sum_##T, T, T, uint64_t, 0, STEP_ADD, uint64_t, IDENTITY)                      \
    DEFINE_FOLD_COLS(prod_##T, T, T, uint64_t, 1, STEP_INT_MULTIPLY, uint64_t, IDENTITY)            \
    DEFINE_ORDER_COLS(T, T, IDENTITY)
#define DEFINE_FLOAT_COLS(T, C, STORE)                                                              \
    DEFINE_SUM_COLS(sum_##T, T, C, IDENTITY, sum_finish_##T)                                        \
    DEFINE_SUM_COLS(abs_sum_##T, T, C, ABSOLUTE, sum_finish_##T)                                    \
    DEFINE_SUM_COLS(sq_sum_##T, T, C, SQUARE, sum_finish_##T)                                       \
    DEFINE_SUM_COLS(norm_p_##T, T, C, POWER_##C, norm_p_finish_##T)                                 \
    DEFINE_FOLD_COLS(prod_##T, T, C, f64, 1, STEP_MULTIPLY, T, STORE)                               \
    DEFINE_EXTREME_COLS(abs_max_##T, T, C, ABSOLUTE, STEP_ABS_MAX, STORE)                           \
    DEFINE_EXTREME_COLS(abs_min_##T, T, C, ABSOLUTE, STEP_ABS_MIN, STORE)                           \
    DEFINE_VAR_COLS(T, C)                                                                           \
    DEFINE_LOGSUMEXP_COLS(T, C)                                                                     \
    DEFINE_ORDER_COLS(T, C, STORE)
#define DEFINE_COMPLEX_COLS_ALL(T, R)                                                               \
    DEFINE_COMPLEX_COLS(T, R)                                                                       \
    DEFINE_COLS_BY_ROWS(abs_sum_##T, T, sizeof(R))                                                  \
    DEFINE_COLS_BY_ROWS(sq_sum_##T, T, sizeof(R))                                                   \
    DEFINE_COLS_BY_ROWS(norm_p_##T, T, sizeof(R))                                                   \
    DEFINE_COLS_BY_ROWS(abs_max_##T, T, sizeof(R))                                                  \
    DEFINE_COLS_BY_ROWS(abs_min_##T, T, sizeof(R))                                                  \
    DEFINE_COLS_BY_ROWS(any_##T, T, 1)                                                              \
    DEFINE_COLS_BY_ROWS(all_##T, T, 1)                                                              \
    DEFINE_COLS_BY_ROWS(count_##T, T, 8)

DEFINE_INT_COLS(u8)
DEFINE_INT_COLS(i8)
DEFINE_INT_COLS(i16)
DEFINE_INT_COLS(i32)
DEFINE_INT_COLS(i64)
DEFINE_FLOAT_COLS(f16, f32, st_f16)
DEFINE_FLOAT_COLS(bf16, f32, st_bf16)
DEFINE_FLOAT_COLS(f32, f32, IDENTITY)
DEFINE_FLOAT_COLS(f64, f64, IDENTITY)
DEFINE_COMPLEX_COLS_ALL(c64, f32)
DEFINE_COMPLEX_COLS_ALL(c128, f64)

/* ---- scans: f64 carries for real floats, u64 for integers. Four rows side by side hide the latency of an addition ---- */
#define DEFINE_SCAN(NAME, T, A, O, START, STEP, LOAD, STORE)                                        \
    KERNEL_FN void NAME##_scan_rows(const char* in, int64_t in_row_stride, int64_t in_elem_stride, char* out, \
                                    int64_t out_row_stride, int64_t out_elem_stride, int64_t n, int64_t rows_begin, \
                                    int64_t rows_end) {                                             \
        int64_t r = rows_begin;                                                                     \
        for (; r + 4 <= rows_end; r += 4) {                                                         \
            const char* p = in + r * in_row_stride;                                                 \
            char* q = out + r * out_row_stride;                                                     \
            A acc[4] = {START, START, START, START};                                                \
            for (int64_t i = 0; i < n; i++, p += in_elem_stride, q += out_elem_stride)              \
                UNROLL for (int k = 0; k < 4; k++) {                                                \
                    acc[k] = STEP(acc[k], LOAD(*(const T*)(p + k * in_row_stride)));                \
                    *(O*)(q + k * out_row_stride) = STORE(acc[k]);                                  \
                }                                                                                   \
        }                                                                                           \
        for (; r < rows_end; r++) {                                                                 \
            const char* p = in + r * in_row_stride;                                                 \
            char* q = out + r * out_row_stride;                                                     \
            A acc = START;                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                       \
                acc = STEP(acc, LOAD(*(const T*)(p + i * in_elem_stride)));                         \
                *(O*)(q + i * out_elem_stride) = STORE(acc);                                        \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void NAME##_scan_cols(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t n, \
                                    int64_t cols_begin, int64_t cols_end) {                         \
        A acc[MOMENT_COLUMNS];                                                                      \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += MOMENT_COLUMNS) {                        \
            int64_t w = min_i64(MOMENT_COLUMNS, cols_end - c0);                                     \
            for (int64_t c = 0; c < w; c++) acc[c] = START;                                         \
            for (int64_t r = 0; r < n; r++) {                                                       \
                const T* x = (const T*)(in + r * in_stride) + c0;                                   \
                O* y = (O*)(out + r * out_stride) + c0;                                             \
                VECTORIZE for (int64_t c = 0; c < w; c++) {                                         \
                    acc[c] = STEP(acc[c], LOAD(x[c]));                                              \
                    y[c] = STORE(acc[c]);                                                           \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }
#define STEP_FLOAT_ADD(a, v) ((a) + (v))
#define CAST_c64(v) ((c64)(v))
/* Written out: C's complex product calls a library function to repair infinities. */
KERNEL_INLINE c128 complex_product(c128 a, c128 b) {
    const f64 *x = (const f64*)&a, *y = (const f64*)&b;
    return make_c128(x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]);
}
#define DEFINE_FLOAT_SCANS(T, LOAD, STORE)                                                          \
    DEFINE_SCAN(cumsum_##T, T, f64, T, 0, STEP_FLOAT_ADD, LOAD, STORE)                              \
    DEFINE_SCAN(cumprod_##T, T, f64, T, 1, STEP_MULTIPLY, LOAD, STORE)
#define DEFINE_INT_SCANS(T)                                                                         \
    DEFINE_SCAN(cumsum_##T, T, uint64_t, uint64_t, 0, STEP_ADD, IDENTITY, IDENTITY)                 \
    DEFINE_SCAN(cumprod_##T, T, uint64_t, uint64_t, 1, STEP_INT_MULTIPLY, IDENTITY, IDENTITY)
#define DEFINE_COMPLEX_SCANS(T, STORE)                                                              \
    DEFINE_SCAN(cumsum_##T, T, c128, T, 0, STEP_FLOAT_ADD, IDENTITY, STORE)                         \
    DEFINE_SCAN(cumprod_##T, T, c128, T, 1, complex_product, IDENTITY, STORE)
DEFINE_INT_SCANS(u8)
DEFINE_INT_SCANS(i8)
DEFINE_INT_SCANS(i16)
DEFINE_INT_SCANS(i32)
DEFINE_INT_SCANS(i64)
DEFINE_FLOAT_SCANS(f16, ld_f16, st_f16)
DEFINE_FLOAT_SCANS(bf16, ld_bf16, st_bf16)
DEFINE_FLOAT_SCANS(f32, IDENTITY, IDENTITY)
DEFINE_FLOAT_SCANS(f64, IDENTITY, IDENTITY)
DEFINE_COMPLEX_SCANS(c64, CAST_c64)
DEFINE_COMPLEX_SCANS(c128, IDENTITY)

#endif
