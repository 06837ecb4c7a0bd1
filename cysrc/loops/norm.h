/* Normalisation: layer_norm, rms_norm, group_norm and batch_norm, forward and backward (f16, bf16, f32, f64).
 *
 * Layouts: "rows" are contiguous runs of n elements; group_norm's rows are (sample, group) of a contiguous
 * (N, C, HW) tensor; batch_norm has "planes" (NCHW: sample and channel strides, contiguous HW) and "last"
 * (channels_last: M rows of C contiguous channels). Statistics are kept in the compute type (f32 for halves)
 * and come from blocks merged in order, in one pass over memory. x and dx may share memory, as may x and y. */
#ifndef TRT_NORM_H
#define TRT_NORM_H

#include "norm_tables.h"
#include "reduce_operations.h"

/* ---- the last pass: one element's formula over a run, from the compute type or from memory to memory ----
 * normalise_run: y = (x - mean) rstd w + b of a staged run; weight and bias of the compute type, either may be null.
 * affine_run: y = (x - mean) scale + shift; affine_columns: y = x scale[c] + shift[c]. */
#define DEFINE_RUNS(T, C)                                                                           \
    KERNEL_INLINE void normalise_run_##T(const C* x, char* out, int64_t m, C mean, C rstd, const C* w, const C* b) { \
        C* y = (C*)out;                                                                             \
        if (w && b) {                                                                               \
            VECTORIZE for (int64_t j = 0; j < m; j++) y[j] = FMA((x[j] - mean) * rstd, w[j], b[j]); \
        } else if (w) {                                                                             \
            VECTORIZE for (int64_t j = 0; j < m; j++) y[j] = (x[j] - mean) * rstd * w[j];           \
        } else {                                                                                    \
            VECTORIZE for (int64_t j = 0; j < m; j++) y[j] = (x[j] - mean) * rstd;                  \
            if (b) VECTORIZE for (int64_t j = 0; j < m; j++) y[j] += b[j];                          \
        }                                                                                           \
    }                                                                                               \
    KERNEL_INLINE void affine_run_##T(const char* in, char* out, int64_t m, C mean, C scale, C shift) { \
        const C* x = (const C*)in;                                                                  \
        C* y = (C*)out;                                                                             \
        VECTORIZE for (int64_t j = 0; j < m; j++) y[j] = FMA(x[j] - mean, scale, shift);            \
    }                                                                                               \
    KERNEL_INLINE void affine_columns_##T(const char* in, char* out, int64_t m, const C* scale, const C* shift) { \
        const C* x = (const C*)in;                                                                  \
        C* y = (C*)out;                                                                             \
        VECTORIZE for (int64_t j = 0; j < m; j++) y[j] = FMA(x[j], scale[j], shift[j]);             \
    }
DEFINE_RUNS(f32, f32)
DEFINE_RUNS(f64, f64)

#ifdef LANE_BYTES
/* Halves are converted in registers. Staged runs lie in buffers of whole registers, so the last one may be read whole. */
#define REGISTER_AT(p) (*(const lanes_f32_u*)(p))
typedef f32 lanes_f32_u __attribute__((vector_size(LANE_BYTES), aligned(4), may_alias));
#define DEFINE_HALF_RUNS(T)                                                                         \
    KERNEL_INLINE void normalise_run_##T(const f32* x, char* out, int64_t m, f32 mean, f32 rstd, const f32* w, const f32* b) { \
        for (int64_t j = 0; j < m; j += LANES_##T) {                                                \
            lanes_f32 y = (REGISTER_AT(x + j) - mean) * rstd;                                       \
            if (w && b) y = FMA(y, REGISTER_AT(w + j), REGISTER_AT(b + j));                         \
            else if (w) y *= REGISTER_AT(w + j);                                                    \
            else if (b) y += REGISTER_AT(b + j);                                                    \
            write_##T((T*)out + j, y, m - j);                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_INLINE void affine_run_##T(const char* in, char* out, int64_t m, f32 mean, f32 scale, f32 shift) { \
        lanes_f32 slope = SPLAT(lanes_f32, scale), start = SPLAT(lanes_f32, shift);                 \
        for (int64_t j = 0; j < m; j += LANES_##T)                                                  \
            write_##T((T*)out + j, FMA(read_##T((const T*)in + j, m - j) - mean, slope, start), m - j); \
    }                                                                                               \
    KERNEL_INLINE void affine_columns_##T(const char* in, char* out, int64_t m, const f32* scale, const f32* shift) { \
        int64_t j = 0;                                                                              \
        for (; j + LANES_##T <= m; j += LANES_##T)                                                  \
            write_##T((T*)out + j, FMA(read_##T((const T*)in + j, LANES_##T), REGISTER_AT(scale + j), REGISTER_AT(shift + j)), LANES_##T); \
        for (; j < m; j++) ((T*)out)[j] = st_##T(FMA(ld_##T(((const T*)in)[j]), scale[j], shift[j])); \
    }
#else
#define DEFINE_HALF_RUNS(T)                                                                         \
    KERNEL_INLINE void normalise_run_##T(const f32* x, char* out, int64_t m, f32 mean, f32 rstd, const f32* w, const f32* b) { \
        f32 y[REDUCE_BLOCK];                                                                        \
        normalise_run_f32(x, (char*)y, m, mean, rstd, w, b);                                        \
        unstage_##T(y, out, sizeof(T), m);                                                          \
    }                                                                                               \
    KERNEL_INLINE void affine_run_##T(const char* in, char* out, int64_t m, f32 mean, f32 scale, f32 shift) { \
        f32 x[REDUCE_BLOCK];                                                                        \
        stage_##T(in, sizeof(T), m, x);                                                             \
        affine_run_f32((char*)x, (char*)x, m, mean, scale, shift);                                  \
        unstage_##T(x, out, sizeof(T), m);                                                          \
    }                                                                                               \
    KERNEL_INLINE void affine_columns_##T(const char* in, char* out, int64_t m, const f32* scale, const f32* shift) { \
        f32 x[REDUCE_BLOCK];                                                                        \
        stage_##T(in, sizeof(T), m, x);                                                             \
        affine_columns_f32((char*)x, (char*)x, m, scale, shift);                                    \
        unstage_##T(x, out, sizeof(T), m);                                                          \
    }
#endif
DEFINE_HALF_RUNS(f16)
DEFINE_HALF_RUNS(bf16)

/* ---- layer_norm and rms_norm ---- */
/* CENTER 1: subtract the mean (layer_norm); 0: rms_norm, whose mean output may be null. */
#define DEFINE_ROW_NORM(OP, T, C, DIRECT, CENTER)                                                   \
    KERNEL_FN void OP##_##T(const char* in, int64_t in_row_stride, char* out, int64_t out_row_stride, int64_t n, \
                            const char* weight, const char* bias, double eps, char* mean_, char* rstd_, \
                            int64_t rows_begin, int64_t rows_end) {                                 \
        C xbuf[REDUCE_BLOCK], wbuf[REDUCE_BLOCK], bbuf[REDUCE_BLOCK];                               \
        const C *x = 0, *w = 0, *b = 0;                                                             \
        int whole = n <= REDUCE_BLOCK; /* a row is staged once, weight and bias once for all rows */ \
        if (weight && whole) w = stage_##T(weight, sizeof(T), n, wbuf);                             \
        if (bias && whole) b = stage_##T(bias, sizeof(T), n, bbuf);                                 \
        for (int64_t r = rows_begin; r < rows_end; r++) {                                           \
            const char* p = in + r * in_row_stride;                                                 \
            moments s = {0, 0, 0};                                                                  \
            for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {                                         \
                int64_t m = min_i64(REDUCE_BLOCK, n - i);                                           \
                x = stage_##T(p + i * (int64_t)sizeof(T), sizeof(T), m, xbuf);                      \
                if (CENTER) block_moments_##C(&s, x, m);                                            \
                else s.m2 += block_sq_sum_##C(x, x, 0, m);                                          \
            }                                                                                       \
            C mean = (C)s.mean, rstd = (C)(1.0 / sqrt(s.m2 / (f64)n + eps));                        \
            if (mean_) ((C*)mean_)[r] = mean;                                                       \
            if (rstd_) ((C*)rstd_)[r] = rstd;                                                       \
            for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {                                         \
                int64_t m = min_i64(REDUCE_BLOCK, n - i), at = i * (int64_t)sizeof(T);              \
                if (!whole) {                                                                       \
                    x = stage_##T(p + at, sizeof(T), m, xbuf);                                      \
                    if (weight) w = stage_##T(weight + at, sizeof(T), m, wbuf);                     \
                    if (bias) b = stage_##T(bias + at, sizeof(T), m, bbuf);                         \
                }                                                                                   \
                normalise_run_##T(x, out + r * out_row_stride + at, m, mean, rstd, w, b);           \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* dx = rstd (g - [mean g] - xhat mean(g xhat)), g = dy w; the bracket only when centred. A work item is NORM_ROWS \
     * rows, whose sums of dy xhat and dy by column go to partials (2, n): one pass over memory makes all gradients. */ \
    KERNEL_FN void OP##_backward_##T(const char* grad, int64_t grad_row_stride, const char* in, int64_t in_row_stride, \
                                     const char* weight, const char* mean_, const char* rstd_, char* out, \
                                     int64_t out_row_stride, char* partials, int64_t n, int64_t rows, \
                                     int64_t items_begin, int64_t items_end) {                      \
        C gbuf[REDUCE_BLOCK], xbuf[REDUCE_BLOCK], wbuf[REDUCE_BLOCK], gw[REDUCE_BLOCK], dbuf[REDUCE_BLOCK]; \
        const C *g = 0, *x = 0, *w = 0;                                                             \
        int whole = n <= REDUCE_BLOCK; /* a row is staged once */                                   \
        if (weight && whole) w = stage_##T(weight, sizeof(T), n, wbuf);                             \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            C* part = partials ? (C*)partials + item * 2 * n : 0;                                   \
            if (part) memset(part, 0, (size_t)(2 * n) * sizeof(C));                                 \
            for (int64_t r = item * NORM_ROWS; r < min_i64((item + 1) * NORM_ROWS, rows); r++) {    \
                const char *gp = grad + r * grad_row_stride, *xp = in + r * in_row_stride;          \
                C mean = CENTER ? ((const C*)mean_)[r] : 0, rstd = ((const C*)rstd_)[r];            \
                f64 sum = 0, dot = 0;                                                               \
                for (int64_t i = 0; i < n && (out || whole); i += REDUCE_BLOCK) {                   \
                    int64_t m = min_i64(REDUCE_BLOCK, n - i), at = i * (int64_t)sizeof(T);          \
                    g = stage_##T(gp + at, sizeof(T), m, gbuf);                                     \
                    x = stage_##T(xp + at, sizeof(T), m, xbuf);                                     \
                    const C* product = g;                                                           \
                    if (!out) break;                                                                \
                    if (weight) {                                                                   \
                        if (!whole) w = stage_##T(weight + at, sizeof(T), m, wbuf);                 \
                        VECTORIZE for (int64_t j = 0; j < m; j++) gw[j] = g[j] * w[j];              \
                        product = gw;                                                               \
                    }                                                                               \
                    if (CENTER) sum += block_sum_##C(product, product, 0, m);                       \
                    dot += block_dev_dot_##C(x, product, mean, m);                                  \
                }                                                                                   \
                C mean_g = (C)(sum / (f64)n), slope = (C)(dot / (f64)n * rstd * rstd);              \
                C scale = CENTER && n == 1 ? 0 : rstd; /* 0, not what mean_g's rounding leaves of it */ \
                for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {                                     \
                    int64_t m = min_i64(REDUCE_BLOCK, n - i), at = i * (int64_t)sizeof(T);          \
                    if (!whole) {                                                                   \
                        g = stage_##T(gp + at, sizeof(T), m, gbuf);                                 \
                        x = stage_##T(xp + at, sizeof(T), m, xbuf);                                 \
                        if (weight) w = stage_##T(weight + at, sizeof(T), m, wbuf);                 \
                    }                                                                               \
                    if (part) {                                                                     \
                        C *sum_w = part + i, *sum_b = part + n + i;                                 \
                        VECTORIZE for (int64_t j = 0; j < m; j++) {                                 \
                            sum_w[j] = FMA(g[j], (x[j] - mean) * rstd, sum_w[j]);                   \
                            sum_b[j] += g[j];                                                       \
                        }                                                                           \
                    }                                                                               \
                    if (!out) continue;                                                             \
                    C* d = OUT_RUN(T, C, DIRECT, out + r * out_row_stride + at, dbuf);              \
                    if (weight) {                                                                   \
                        VECTORIZE for (int64_t j = 0; j < m; j++)                                   \
                            d[j] = scale * FMA(mean - x[j], slope, FMA(g[j], w[j], -mean_g));       \
                    } else {                                                                        \
                        VECTORIZE for (int64_t j = 0; j < m; j++) d[j] = scale * FMA(mean - x[j], slope, g[j] - mean_g); \
                    }                                                                               \
                    OUT_DONE(T, DIRECT, out + r * out_row_stride + at, d, m);                       \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* gradients of weight and bias (either may be null): the partials of all items, for a range of columns */ \
    KERNEL_FN void OP##_backward_params_##T(const char* partials, int64_t items, int64_t n, char* grad_weight, \
                                            char* grad_bias, int64_t cols_begin, int64_t cols_end) { \
        f64 total[MOMENT_COLUMNS];                                                                  \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += MOMENT_COLUMNS)                          \
            for (int which = 0; which < 2; which++) {                                               \
                int64_t w = min_i64(MOMENT_COLUMNS, cols_end - c0);                                 \
                char* out = which ? grad_bias : grad_weight;                                        \
                if (!out) continue;                                                                 \
                for (int64_t c = 0; c < w; c++) total[c] = 0;                                       \
                for (int64_t k = 0; k < items; k++) {                                               \
                    const C* part = (const C*)partials + (2 * k + which) * n + c0;                  \
                    VECTORIZE for (int64_t c = 0; c < w; c++) total[c] += part[c];                  \
                }                                                                                   \
                for (int64_t c = 0; c < w; c++) store_##T(out + (c0 + c) * (int64_t)sizeof(T), (C)total[c]); \
            }                                                                                       \
    }

/* ---- group_norm: x is (N, C, HW) contiguous, a work item is sample * groups + group ---- */
#define DEFINE_GROUP_NORM(T, C, DIRECT)                                                             \
    KERNEL_FN void group_norm_##T(const char* in, char* out, int64_t channels, int64_t hw, int64_t groups, \
                                  const char* weight, const char* bias, double eps, char* mean_, char* rstd_, \
                                  int64_t items_begin, int64_t items_end) {                         \
        C xbuf[REDUCE_BLOCK];                                                                       \
        int64_t per_group = channels / groups, n = per_group * hw;                                  \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            const char* p = in + item * n * (int64_t)sizeof(T);                                     \
            char* q = out + item * n * (int64_t)sizeof(T);                                          \
            moments s = {0, 0, 0};                                                                  \
            for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {                                         \
                int64_t m = min_i64(REDUCE_BLOCK, n - i);                                           \
                block_moments_##C(&s, stage_##T(p + i * (int64_t)sizeof(T), sizeof(T), m, xbuf), m); \
            }                                                                                       \
            C mean = (C)s.mean, rstd = (C)(1.0 / sqrt(s.m2 / (f64)n + eps));                        \
            if (mean_) ((C*)mean_)[item] = mean;                                                    \
            if (rstd_) ((C*)rstd_)[item] = rstd;                                                    \
            for (int64_t c = 0; c < per_group; c++) {                                               \
                int64_t channel = item % groups * per_group + c;                                    \
                C scale = rstd * (weight ? load_##T(weight + channel * (int64_t)sizeof(T)) : 1);    \
                C shift = bias ? load_##T(bias + channel * (int64_t)sizeof(T)) : 0;                 \
                for (int64_t i = 0; i < hw; i += REDUCE_BLOCK) {                                    \
                    int64_t m = min_i64(REDUCE_BLOCK, hw - i), at = (c * hw + i) * (int64_t)sizeof(T); \
                    affine_run_##T(p + at, q + at, m, mean, scale, shift);                          \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* dx (may be null) and, per (sample, channel), sums[0] = sum dy xhat and sums[1] = sum dy in f64 */ \
    KERNEL_FN void group_norm_backward_##T(const char* grad, const char* in, int64_t channels, int64_t hw, \
                                           int64_t groups, const char* weight, const char* mean_, const char* rstd_, \
                                           char* out, double* sums, int64_t items_begin, int64_t items_end) { \
        C gbuf[REDUCE_BLOCK], xbuf[REDUCE_BLOCK], dbuf[REDUCE_BLOCK];                               \
        int64_t per_group = channels / groups, n = per_group * hw;                                  \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            C mean = ((const C*)mean_)[item], rstd = ((const C*)rstd_)[item];                       \
            int64_t start = item * n * (int64_t)sizeof(T);                                          \
            f64 sum_g = 0, sum_gx = 0;                                                              \
            for (int64_t c = 0; c < per_group; c++) {                                               \
                int64_t channel = item % groups * per_group + c;                                    \
                f64 dot = 0, sum = 0, w = weight ? load_##T(weight + channel * (int64_t)sizeof(T)) : 1; \
                for (int64_t i = 0; i < hw; i += REDUCE_BLOCK) {                                    \
                    int64_t m = min_i64(REDUCE_BLOCK, hw - i), at = start + (c * hw + i) * (int64_t)sizeof(T); \
                    const C *g = stage_##T(grad + at, sizeof(T), m, gbuf), *x = stage_##T(in + at, sizeof(T), \
                            m, xbuf);                                                               \
                    dot += block_dev_dot_##C(x, g, mean, m);                                        \
                    sum += block_sum_##C(g, g, 0, m);                                               \
                }                                                                                   \
                dot *= rstd;                                                                        \
                sums[2 * (item * per_group + c)] = dot;                                             \
                sums[2 * (item * per_group + c) + 1] = sum;                                         \
                sum_gx += w * dot;                                                                  \
                sum_g += w * sum;                                                                   \
            }                                                                                       \
            if (!out) continue;                                                                     \
            C mean_g = (C)(sum_g / (f64)n), slope = (C)(sum_gx / (f64)n * rstd), scale = n == 1 ? 0 : rstd; \
            for (int64_t c = 0; c < per_group; c++) {                                               \
                C w = weight ? load_##T(weight + (item % groups * per_group + c) * (int64_t)sizeof(T)) : 1; \
                for (int64_t i = 0; i < hw; i += REDUCE_BLOCK) {                                    \
                    int64_t m = min_i64(REDUCE_BLOCK, hw - i), at = start + (c * hw + i) * (int64_t)sizeof(T); \
                    const C *g = stage_##T(grad + at, sizeof(T), m, gbuf), *x = stage_##T(in + at, sizeof(T), \
                            m, xbuf);                                                               \
                    C* d = OUT_RUN(T, C, DIRECT, out + at, dbuf);                                   \
                    VECTORIZE for (int64_t j = 0; j < m; j++)                                       \
                        d[j] = scale * FMA(mean - x[j], slope, FMA(g[j], w, -mean_g));              \
                    OUT_DONE(T, DIRECT, out + at, d, m);                                            \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* the sums of group_norm_backward added over the samples */                                    \
    KERNEL_FN void group_norm_backward_params_##T(const double* sums, int64_t samples, int64_t channels, \
                                                  char* grad_weight, char* grad_bias, int64_t channels_begin, \
                                                  int64_t channels_end) {                           \
        for (int64_t c = channels_begin; c < channels_end; c++) {                                   \
            f64 w = 0, b = 0;                                                                       \
            for (int64_t s = 0; s < samples; s++) {                                                 \
                w += sums[2 * (s * channels + c)];                                                  \
                b += sums[2 * (s * channels + c) + 1];                                              \
            }                                                                                       \
            if (grad_weight) store_##T(grad_weight + c * (int64_t)sizeof(T), (C)w);                 \
            if (grad_bias) store_##T(grad_bias + c * (int64_t)sizeof(T), (C)b);                     \
        }                                                                                           \
    }

/* ---- batch_norm: statistics, affine apply, and the two passes of the backward ----
 * stats: per channel mean and biased variance. apply: y = x * scale[c] + shift[c]. backward_stats: per channel
 * sum dy and dot = sum dy (x - mean). backward_apply: dx = dy * a[c] + (x - mean[c]) * b[c] + k[c].
 * The per-channel factors are the caller's few lines:  scale = w rstd, shift = bias - mean scale;  a = w rstd,
 * b = -a rstd^2 dot / M, k = -a sum / M (training), b = k = 0 (evaluation). */
#define DEFINE_BATCH_NORM(T, C, DIRECT)                                                             \
    KERNEL_FN void batch_norm_stats_planes_##T(const char* in, int64_t sample_stride, int64_t channel_stride, \
                                               int64_t samples, int64_t hw, char* mean, char* var,  \
                                               int64_t channels_begin, int64_t channels_end) {      \
        C buf[REDUCE_BLOCK];                                                                        \
        for (int64_t c = channels_begin; c < channels_end; c++) {                                   \
            moments s = {0, 0, 0};                                                                  \
            for (int64_t b = 0; b < samples; b++) {                                                 \
                const char* p = in + b * sample_stride + c * channel_stride;                        \
                for (int64_t i = 0; i < hw; i += REDUCE_BLOCK) {                                    \
                    int64_t m = min_i64(REDUCE_BLOCK, hw - i);                                      \
                    block_moments_##C(&s, stage_##T(p + i * (int64_t)sizeof(T), sizeof(T), m, buf), m); \
                }                                                                                   \
            }                                                                                       \
            ((C*)mean)[c] = (C)s.mean;                                                              \
            ((C*)var)[c] = (C)(s.m2 / s.count);                                                     \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void batch_norm_stats_last_##T(const char* in, int64_t row_stride, int64_t rows, char* mean, char* var, \
                                             int64_t channels_begin, int64_t channels_end) {        \
        moments s[MOMENT_COLUMNS];                                                                  \
        for (int64_t c0 = channels_begin; c0 < channels_end; c0 += MOMENT_COLUMNS) {                \
            int64_t w = min_i64(MOMENT_COLUMNS, channels_end - c0);                                 \
            column_moments_##T(in + c0 * (int64_t)sizeof(T), row_stride, rows, w, s);               \
            for (int64_t c = 0; c < w; c++) {                                                       \
                ((C*)mean)[c0 + c] = (C)s[c].mean;                                                  \
                ((C*)var)[c0 + c] = (C)(s[c].m2 / s[c].count);                                      \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* work item: sample * channels + channel */                                                    \
    KERNEL_FN void batch_norm_apply_planes_##T(const char* in, int64_t sample_stride, int64_t channel_stride, \
            char* out,                                                                              \
                                               int64_t out_sample_stride, int64_t out_channel_stride, \
                                                       int64_t channels,                            \
                                               int64_t hw, const char* scale, const char* shift, int64_t items_begin, \
                                               int64_t items_end) {                                 \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            int64_t b = item / channels, c = item % channels;                                       \
            const char* p = in + b * sample_stride + c * channel_stride;                            \
            char* q = out + b * out_sample_stride + c * out_channel_stride;                         \
            C a = ((const C*)scale)[c], k = ((const C*)shift)[c];                                   \
            for (int64_t i = 0; i < hw; i += REDUCE_BLOCK) {                                        \
                int64_t m = min_i64(REDUCE_BLOCK, hw - i), at = i * (int64_t)sizeof(T);             \
                affine_run_##T(p + at, q + at, m, 0, a, k);                                         \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void batch_norm_apply_last_##T(const char* in, int64_t row_stride, char* out, int64_t out_row_stride, \
                                             int64_t channels, const char* scale_, const char* shift_, \
                                             int64_t rows_begin, int64_t rows_end) {                \
        for (int64_t r = rows_begin; r < rows_end; r++)                                             \
            for (int64_t i = 0; i < channels; i += REDUCE_BLOCK) {                                  \
                int64_t m = min_i64(REDUCE_BLOCK, channels - i), at = i * (int64_t)sizeof(T);       \
                affine_columns_##T(in + r * row_stride + at, out + r * out_row_stride + at, m, (const C*)scale_ + i, (const C*)shift_ + i); \
            }                                                                                       \
    }                                                                                               \
    KERNEL_FN void batch_norm_backward_stats_planes_##T(                                            \
        const char* grad, int64_t grad_sample_stride, int64_t grad_channel_stride, const char* in,  \
                int64_t sample_stride,                                                              \
        int64_t channel_stride, int64_t samples, int64_t hw, const char* mean, char* sum, char* dot, \
        int64_t channels_begin, int64_t channels_end) {                                             \
        C gbuf[REDUCE_BLOCK], xbuf[REDUCE_BLOCK];                                                   \
        for (int64_t c = channels_begin; c < channels_end; c++) {                                   \
            f64 total = 0, product = 0;                                                             \
            for (int64_t b = 0; b < samples; b++) {                                                 \
                const char* gp = grad + b * grad_sample_stride + c * grad_channel_stride;           \
                const char* xp = in + b * sample_stride + c * channel_stride;                       \
                for (int64_t i = 0; i < hw; i += REDUCE_BLOCK) {                                    \
                    int64_t m = min_i64(REDUCE_BLOCK, hw - i), at = i * (int64_t)sizeof(T);         \
                    const C *g = stage_##T(gp + at, sizeof(T), m, gbuf), *x = stage_##T(xp + at, sizeof(T), m, xbuf); \
                    total += block_sum_##C(g, g, 0, m);                                             \
                    product += block_dev_dot_##C(x, g, ((const C*)mean)[c], m);                     \
                }                                                                                   \
            }                                                                                       \
            ((C*)sum)[c] = (C)total;                                                                \
            ((C*)dot)[c] = (C)product;                                                              \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void batch_norm_backward_stats_last_##T(const char* grad, int64_t grad_row_stride, const char* in, \
                                                      int64_t row_stride, int64_t rows, const char* mean_, char* sum, \
                                                      char* dot, int64_t channels_begin, int64_t channels_end) { \
        C part_g[MOMENT_COLUMNS], part_gx[MOMENT_COLUMNS];                                          \
        f64 total_g[MOMENT_COLUMNS], total_gx[MOMENT_COLUMNS];                                      \
        enum { W = VECTOR_BYTES / sizeof(C) };                                                      \
        for (int64_t c0 = channels_begin; c0 < channels_end; c0 += MOMENT_COLUMNS) {                \
            int64_t w = min_i64(MOMENT_COLUMNS, channels_end - c0), at = c0 * (int64_t)sizeof(T);   \
            const C* mean = (const C*)mean_ + c0;                                                   \
            for (int64_t c = 0; c < w; c++) total_g[c] = total_gx[c] = 0;                           \
            for (int64_t r0 = 0; r0 < rows; r0 += GROUP_ROWS) {                                     \
                int64_t end = min_i64(r0 + GROUP_ROWS, rows), c = 0;                                \
                for (; c + COLUMN_VECTORS * W <= w; c += COLUMN_VECTORS * W) {                      \
                    v##C sum_g[COLUMN_VECTORS], sum_gx[COLUMN_VECTORS], center[COLUMN_VECTORS];     \
                    UNROLL for (int k = 0; k < COLUMN_VECTORS; k++) {                               \
                        sum_g[k] = sum_gx[k] = (v##C){0};                                           \
                        center[k] = *(const v##C##_u*)(mean + c + k * W);                           \
                    }                                                                               \
                    for (int64_t r = r0; r < end; r++)                                              \
                        UNROLL for (int k = 0; k < COLUMN_VECTORS; k++) {                           \
                            int64_t column = at + (c + k * W) * (int64_t)sizeof(T);                 \
                            v##C g = vector_at_##T(grad + r * grad_row_stride + column);            \
                            v##C x = vector_at_##T(in + r * row_stride + column);                   \
                            sum_g[k] += g;                                                          \
                            sum_gx[k] = FMA(g, x - center[k], sum_gx[k]);                           \
                        }                                                                           \
                    memcpy(part_g + c, sum_g, sizeof sum_g);                                        \
                    memcpy(part_gx + c, sum_gx, sizeof sum_gx);                                     \
                }                                                                                   \
                for (; c < w; c++) {                                                                \
                    part_g[c] = part_gx[c] = 0;                                                     \
                    for (int64_t r = r0; r < end; r++) {                                            \
                        C g = load_##T(grad + r * grad_row_stride + at + c * (int64_t)sizeof(T));   \
                        part_g[c] += g;                                                             \
                        part_gx[c] = FMA(g, load_##T(in + r * row_stride + at + c * (int64_t)sizeof(T)) - mean[c], part_gx[c]); \
                    }                                                                               \
                }                                                                                   \
                for (c = 0; c < w; c++) total_g[c] += part_g[c], total_gx[c] += part_gx[c];         \
            }                                                                                       \
            for (int64_t c = 0; c < w; c++) {                                                       \
                ((C*)sum)[c0 + c] = (C)total_g[c];                                                  \
                ((C*)dot)[c0 + c] = (C)total_gx[c];                                                 \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void batch_norm_backward_apply_planes_##T(                                            \
        const char* grad, int64_t grad_sample_stride, int64_t grad_channel_stride, const char* in,  \
                int64_t sample_stride,                                                              \
        int64_t channel_stride, char* out, int64_t out_sample_stride, int64_t out_channel_stride, int64_t channels, \
        int64_t hw, const char* mean_, const char* a_, const char* b_, const char* k_, int64_t items_begin, \
                int64_t items_end) {                                                                \
        C gbuf[REDUCE_BLOCK], xbuf[REDUCE_BLOCK], dbuf[REDUCE_BLOCK];                               \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            int64_t s = item / channels, c = item % channels;                                       \
            C mean = ((const C*)mean_)[c], a = ((const C*)a_)[c], b = ((const C*)b_)[c], k = ((const C*)k_)[c]; \
            for (int64_t i = 0; i < hw; i += REDUCE_BLOCK) {                                        \
                int64_t m = min_i64(REDUCE_BLOCK, hw - i), at = i * (int64_t)sizeof(T);             \
                const C* g = stage_##T(grad + s * grad_sample_stride + c * grad_channel_stride + at, sizeof(T), \
                        m, gbuf);                                                                   \
                const C* x = stage_##T(in + s * sample_stride + c * channel_stride + at, sizeof(T), m, xbuf); \
                char* q = out + s * out_sample_stride + c * out_channel_stride + at;                \
                C* d = OUT_RUN(T, C, DIRECT, q, dbuf);                                              \
                VECTORIZE for (int64_t j = 0; j < m; j++) d[j] = FMA(g[j], a, FMA(x[j] - mean, b, k)); \
                OUT_DONE(T, DIRECT, q, d, m);                                                       \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void batch_norm_backward_apply_last_##T(const char* grad, int64_t grad_row_stride, const char* in, \
                                                      int64_t row_stride, char* out, int64_t out_row_stride, \
                                                      int64_t channels, const char* mean_, const char* a_, \
                                                              const char* b_,                       \
                                                      const char* k_, int64_t rows_begin, int64_t rows_end) { \
        C gbuf[REDUCE_BLOCK], xbuf[REDUCE_BLOCK], dbuf[REDUCE_BLOCK];                               \
        for (int64_t r = rows_begin; r < rows_end; r++)                                             \
            for (int64_t i = 0; i < channels; i += REDUCE_BLOCK) {                                  \
                int64_t m = min_i64(REDUCE_BLOCK, channels - i), at = i * (int64_t)sizeof(T);       \
                const C *mean = (const C*)mean_ + i, *a = (const C*)a_ + i, *b = (const C*)b_ + i, *k = \
                        (const C*)k_ + i;                                                           \
                const C* g = stage_##T(grad + r * grad_row_stride + at, sizeof(T), m, gbuf);        \
                const C* x = stage_##T(in + r * row_stride + at, sizeof(T), m, xbuf);               \
                C* d = OUT_RUN(T, C, DIRECT, out + r * out_row_stride + at, dbuf);                  \
                VECTORIZE for (int64_t j = 0; j < m; j++) d[j] = FMA(g[j], a[j], FMA(x[j] - mean[j], b[j], k[j])); \
                OUT_DONE(T, DIRECT, out + r * out_row_stride + at, d, m);                           \
            }                                                                                       \
    }

#define DEFINE_NORMS(T, C, DIRECT)                                                                  \
    DEFINE_ROW_NORM(layer_norm, T, C, DIRECT, 1)                                                    \
    DEFINE_ROW_NORM(rms_norm, T, C, DIRECT, 0)                                                      \
    DEFINE_GROUP_NORM(T, C, DIRECT)                                                                 \
    DEFINE_BATCH_NORM(T, C, DIRECT)
DEFINE_NORMS(f16, f32, 0)
DEFINE_NORMS(bf16, f32, 0)
DEFINE_NORMS(f32, f32, 1)
DEFINE_NORMS(f64, f64, 1)

#endif
