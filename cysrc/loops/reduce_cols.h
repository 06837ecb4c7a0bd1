/* Reductions over an outer dimension with contiguous inner columns, vectorised over the columns.
 *
 * Columns are independent, so any cut of the column range gives the same bits. Rows are read in groups of
 * GROUP_ROWS: inside a group the compute type accumulates, groups add up in f64 (sums) or merge by the
 * formulas of reduce.h (variance, logsumexp). COLUMN_BLOCK columns at a time keep the accumulators in L1. */
#ifndef TRT_REDUCE_COLS_H
#define TRT_REDUCE_COLS_H

#include "lanes.h"
#include "reduce.h"

enum { COLUMN_BLOCK = 1024, MOMENT_COLUMNS = 256, GROUP_ROWS = 64, COLUMN_VECTORS = 4, NARROW = 32, FOLDED_ROWS = 8 };

/* A register of the compute type from memory. */
KERNEL_INLINE vf32 vector_at_f32(const char* p) { return *(const vf32_u*)p; }
KERNEL_INLINE vf64 vector_at_f64(const char* p) { return *(const vf64_u*)p; }
#ifdef LANE_BYTES
KERNEL_INLINE vf32 vector_at_f16(const char* p) { return (vf32)read_f16((const f16*)p, LANES_f16); }
KERNEL_INLINE vf32 vector_at_bf16(const char* p) { return (vf32)read_bf16((const bf16*)p, LANES_bf16); }
#else
KERNEL_INLINE vf32 vector_at_f16(const char* p) { return (vf32){ld_f16(((const f16*)p)[0]), ld_f16(((const f16*)p)[1]), ld_f16(((const f16*)p)[2]), ld_f16(((const f16*)p)[3])}; }
KERNEL_INLINE vf32 vector_at_bf16(const char* p) { return (vf32){ld_bf16(((const bf16*)p)[0]), ld_bf16(((const bf16*)p)[1]), ld_bf16(((const bf16*)p)[2]), ld_bf16(((const bf16*)p)[3])}; }
#endif

#define COLS_ARGS                                                                                   \
    const char *in, int64_t reduce_stride, int64_t n, char *out, int64_t cols_begin, int64_t cols_end, \
        const reduce_call *call

/* ---- sums: EXPR(v) of four rows at a time, so that the accumulator is loaded once for four elements ---- */
#define DEFINE_SUM_COLS(NAME, T, C, EXPR, FINISH)                                                   \
    /* A group of rows of few elements that follow each other: FOLDED_ROWS rows are one row. */     \
    KERNEL_FN void NAME##_narrow_group(const char* p, int64_t w, C* part, const reduce_call* call) { \
        C buf[4][FOLDED_ROWS * NARROW], wide[FOLDED_ROWS * NARROW] = {0};                           \
        const int64_t n = FOLDED_ROWS * w, bytes = n * (int64_t)sizeof(T);                          \
        (void)call;                                                                                 \
        for (int64_t k = 0; k < GROUP_ROWS / FOLDED_ROWS; k += 4, p += 4 * bytes) {                 \
            const C* x0 = stage_##T(p, sizeof(T), n, buf[0]);                                       \
            const C* x1 = stage_##T(p + bytes, sizeof(T), n, buf[1]);                               \
            const C* x2 = stage_##T(p + 2 * bytes, sizeof(T), n, buf[2]);                           \
            const C* x3 = stage_##T(p + 3 * bytes, sizeof(T), n, buf[3]);                           \
            VECTORIZE for (int64_t c = 0; c < n; c++)                                               \
                wide[c] += (EXPR(x0[c]) + EXPR(x1[c])) + (EXPR(x2[c]) + EXPR(x3[c]));               \
        }                                                                                           \
        for (int64_t k = 0; k < FOLDED_ROWS; k++)                                                   \
            VECTORIZE for (int64_t c = 0; c < w; c++) part[c] += wide[k * w + c];                   \
    }                                                                                               \
    KERNEL_FN void NAME##_cols(COLS_ARGS) {                                                         \
        C buf[4][COLUMN_BLOCK], part[COLUMN_BLOCK];                                                 \
        f64 total[COLUMN_BLOCK];                                                                    \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += COLUMN_BLOCK) {                          \
            int64_t w = min_i64(COLUMN_BLOCK, cols_end - c0);                                       \
            const char* base = in + c0 * (int64_t)sizeof(T);                                        \
            for (int64_t c = 0; c < w; c++) total[c] = 0;                                           \
            for (int64_t r0 = 0; r0 < n; r0 += GROUP_ROWS) {                                        \
                int64_t r = r0, end = min_i64(r0 + GROUP_ROWS, n);                                  \
                for (int64_t c = 0; c < w; c++) part[c] = 0;                                        \
                if (w <= NARROW && end - r0 == GROUP_ROWS && reduce_stride == w * (int64_t)sizeof(T)) { \
                    NAME##_narrow_group(base + r * reduce_stride, w, part, call);                   \
                    r = end;                                                                        \
                }                                                                                   \
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
            FINISH##_run(total, n, part, out + c0 * (int64_t)sizeof(T), w, call);                   \
        }                                                                                           \
    }

#define SQUARE(v) ((v) * (v))
#define ABSOLUTE(v) ((v) < 0 ? -(v) : (v))
#define POWER_f32(v) pow_f32(ABSOLUTE(v), (f32)call->p)
#define POWER_f64(v) pow_f64(ABSOLUTE(v), call->p)

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
                if (call && call->second) ((T*)call->second)[c0 + c] = STORE(acc[c]);               \
            }                                                                                       \
        }                                                                                           \
    }

/* ---- variance: groups of rows stay in L2 for the two passes of block_moments, COLUMN_VECTORS registers of columns at a time ---- */
#define DEFINE_VAR_COLS(T, C)                                                                       \
    KERNEL_ONCE void column_moments_##T(const char* base, int64_t stride, int64_t n, int64_t w, moments* s) { \
        C mean[MOMENT_COLUMNS], dev[MOMENT_COLUMNS], sq[MOMENT_COLUMNS];                            \
        enum { W = VECTOR_BYTES / sizeof(C) };                                                      \
        for (int64_t c = 0; c < w; c++) s[c] = (moments){0, 0, 0};                                  \
        for (int64_t r0 = 0; r0 < n; r0 += GROUP_ROWS) {                                            \
            int64_t end = min_i64(r0 + GROUP_ROWS, n), c = 0;                                       \
            C scale = (C)(1.0 / (f64)(end - r0));                                                   \
            for (; c + COLUMN_VECTORS * W <= w; c += COLUMN_VECTORS * W) {                          \
                v##C first[COLUMN_VECTORS], second[COLUMN_VECTORS], center[COLUMN_VECTORS];         \
                UNROLL for (int k = 0; k < COLUMN_VECTORS; k++) center[k] = first[k] = second[k] = (v##C){0}; \
                for (int64_t r = r0; r < end; r++)                                                  \
                    UNROLL for (int k = 0; k < COLUMN_VECTORS; k++)                                 \
                        center[k] += vector_at_##T(base + r * stride + (c + k * W) * (int64_t)sizeof(T)); \
                UNROLL for (int k = 0; k < COLUMN_VECTORS; k++) center[k] *= scale;                 \
                for (int64_t r = r0; r < end; r++)                                                  \
                    UNROLL for (int k = 0; k < COLUMN_VECTORS; k++) {                               \
                        v##C d = vector_at_##T(base + r * stride + (c + k * W) * (int64_t)sizeof(T)) - center[k]; \
                        first[k] += d;                                                              \
                        second[k] = FMA(d, d, second[k]);                                           \
                    }                                                                               \
                memcpy(mean + c, center, sizeof center);                                            \
                memcpy(dev + c, first, sizeof first);                                               \
                memcpy(sq + c, second, sizeof second);                                              \
            }                                                                                       \
            for (; c < w; c++) {                                                                    \
                const char* column = base + c * (int64_t)sizeof(T);                                 \
                mean[c] = dev[c] = sq[c] = 0;                                                       \
                for (int64_t r = r0; r < end; r++) mean[c] += load_##T(column + r * stride);        \
                mean[c] *= scale;                                                                   \
                for (int64_t r = r0; r < end; r++) {                                                \
                    C d = load_##T(column + r * stride) - mean[c];                                  \
                    dev[c] += d;                                                                    \
                    sq[c] = FMA(d, d, sq[c]);                                                       \
                }                                                                                   \
            }                                                                                       \
            for (c = 0; c < w; c++) {                                                               \
                f64 count = (f64)(end - r0), d = dev[c];                                            \
                moments_merge(&s[c], count, (f64)mean[c] + d / count, fmax((f64)sq[c] - d * d / count, 0)); \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void var_##T##_cols(COLS_ARGS) {                                                      \
        moments s[MOMENT_COLUMNS];                                                                  \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += MOMENT_COLUMNS) {                        \
            int64_t w = min_i64(MOMENT_COLUMNS, cols_end - c0);                                     \
            column_moments_##T(in + c0 * (int64_t)sizeof(T), reduce_stride, n, w, s);               \
            for (int64_t c = 0; c < w; c++)                                                         \
                var_finish_##T(&s[c], n, out + (c0 + c) * (int64_t)sizeof(T),                       \
                               call->second ? call->second + (c0 + c) * (int64_t)sizeof(T) : 0, call); \
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
        reduce_call flags = {.flags = call ? call->flags : 0};                                      \
        sum_##R##_cols(in, reduce_stride, n, out, 2 * cols_begin, 2 * cols_end, &flags);            \
    }                                                                                               \
    KERNEL_FN void prod_##T##_cols(COLS_ARGS) {                                                     \
        prod_##T##_rows(in, sizeof(T), reduce_stride, n, out, sizeof(T), cols_begin, cols_end, call); \
    }
/* The rest of the complex reductions are rare: each column is a strided row. */
#define DEFINE_COLS_BY_ROWS(NAME, T, OUT_BYTES)                                                     \
    KERNEL_FN void NAME##_cols(COLS_ARGS) {                                                         \
        NAME##_rows(in, sizeof(T), reduce_stride, n, out, OUT_BYTES, cols_begin, cols_end, call);   \
    }

/* ---- a whole operation: the sum of EXPR(v) over real floating types, by rows, chunks and columns ---- */
#define DEFINE_SUM_OF_STATE(NAME, C, EXPR)                                                          \
    KERNEL_INLINE C block_##NAME##_##C(const C* x, int64_t n) {                                     \
        C values[REDUCE_BLOCK];                                                                     \
        VECTORIZE for (int64_t i = 0; i < n; i++) values[i] = EXPR(x[i]);                           \
        return block_sum_##C(values, values, 0, n);                                                 \
    }                                                                                               \
    DEFINE_FLOAT_SUM_STATE(NAME##_##C, C, block_##NAME##_##C(x, n))
#define DEFINE_SUM_OF_TYPE(NAME, T, C, EXPR)                                                        \
    DEFINE_REDUCE(NAME##_##T, T, C, float_sum, NAME##_##C, stage_##T, sum_finish_##T)               \
    DEFINE_SUM_COLS(NAME##_##T, T, C, EXPR, sum_finish_##T)
#define DEFINE_SUM_OF(NAME, EXPR)                                                                   \
    DEFINE_SUM_OF_STATE(NAME, f32, EXPR)                                                            \
    DEFINE_SUM_OF_STATE(NAME, f64, EXPR)                                                            \
    DEFINE_SUM_OF_TYPE(NAME, f16, f32, EXPR)                                                        \
    DEFINE_SUM_OF_TYPE(NAME, bf16, f32, EXPR)                                                       \
    DEFINE_SUM_OF_TYPE(NAME, f32, f32, EXPR)                                                        \
    DEFINE_SUM_OF_TYPE(NAME, f64, f64, EXPR)

#endif
