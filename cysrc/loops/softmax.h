/* softmax, log_softmax and cross entropy, forward and backward.
 *
 * "rows": the normalised dimension is contiguous, one work item per row. "cols": the normalised dimension has a
 * contiguous remainder of `inner` columns; a work item is one (outer index, block of SOFTMAX_COLUMNS columns).
 * A row that fits L2 takes three passes (maximum, exp and sum, scale), a longer one reads memory twice with a
 * running maximum and sum (Milakov and Gimelshein 2018). Sums are f64 over fixed blocks. Output may be the input. */
#ifndef TRT_SOFTMAX_H
#define TRT_SOFTMAX_H

#include "reduce_operations.h"

enum { SOFTMAX_STAGED_ROW = 4096, SOFTMAX_CACHED_ROW = 65536, SOFTMAX_CACHED_ROWS = 256 };
/* Rows of at most SOFTMAX_SHORT elements go SOFTMAX_LANES at a time, one row a lane. Fewer than SOFTMAX_NARROW columns
 * fill no vectors: each is gathered and taken for a row; eight are a vector's copy, worth lanes up to SOFTMAX_FEW elements. */
enum { SOFTMAX_SHORT = 24, SOFTMAX_FEW = 64, SOFTMAX_LANES = 64, SOFTMAX_NARROW = 16 };
/* A kernel keeps at most this on its stack: a thread may have 128 KB in all. */
enum { SOFTMAX_STACK = 32768 };
/* Narrow columns too long to be gathered: so many rows lie side by side, as more columns, whose sums are added up. */
#define SOFTMAX_FOLD(T, inner, stride, second, third)                                               \
    ((inner) < SOFTMAX_NARROW && (stride) == (inner) * (int64_t)sizeof(T) && (second) == (stride) && (third) == (stride) ? SOFTMAX_COLUMNS / (inner) : 1)
_Static_assert(SOFTMAX_FEW * SOFTMAX_LANES <= SOFTMAX_STAGED_ROW && SOFTMAX_STAGED_ROW * 8 <= SOFTMAX_STACK, "one buffer serves rows and lanes");

#define DEFINE_SOFTMAX_ROW(C)                                                                       \
    /* e[i] = exp(x[i] - max), returns the sum; e may be x */                                       \
    KERNEL_INLINE f64 exp_and_sum_##C(const C* x, C* e, C max, int64_t n) {                         \
        f64 sum = 0;                                                                                \
        for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {                                             \
            int64_t m = min_i64(REDUCE_BLOCK, n - i);                                               \
            VECTORIZE for (int64_t j = i; j < i + m; j++) e[j] = exp_below_zero_##C(x[j] - max);    \
            sum += block_sum_##C(e + i, e, 0, m);                                                   \
        }                                                                                           \
        return sum;                                                                                 \
    }                                                                                               \
    KERNEL_ONCE void softmax_run_##C(const C* x, C* y, int64_t n) {                                 \
        C scale = (C)(1.0 / exp_and_sum_##C(x, y, block_max_##C(x, n), n));                         \
        VECTORIZE for (int64_t i = 0; i < n; i++) y[i] *= scale;                                    \
    }                                                                                               \
    KERNEL_ONCE void log_softmax_run_##C(const C* x, C* y, int64_t n) {                             \
        C e[REDUCE_BLOCK], max = block_max_##C(x, n);                                               \
        f64 sum = 0;                                                                                \
        for (int64_t i = 0; i < n; i += REDUCE_BLOCK) sum += exp_and_sum_##C(x + i, e, max,         \
                min_i64(REDUCE_BLOCK, n - i));                                                      \
        C log_sum = (C)log(sum);                                                                    \
        VECTORIZE for (int64_t i = 0; i < n; i++) y[i] = x[i] - max - log_sum;                      \
    }                                                                                               \
    KERNEL_INLINE void softmax_block_##C(const C* x, C* y, int64_t n, C max, f64 sum) {             \
        C scale = (C)(1.0 / sum);                                                                   \
        VECTORIZE for (int64_t i = 0; i < n; i++) y[i] = exp_below_zero_##C(x[i] - max) * scale;    \
    }                                                                                               \
    KERNEL_INLINE void log_softmax_block_##C(const C* x, C* y, int64_t n, C max, f64 sum) {         \
        C log_sum = (C)log(sum);                                                                    \
        VECTORIZE for (int64_t i = 0; i < n; i++) y[i] = x[i] - max - log_sum;                      \
    }
DEFINE_SOFTMAX_ROW(f32)
DEFINE_SOFTMAX_ROW(f64)

/* in place on x: (n, SOFTMAX_LANES) */
#define DEFINE_SOFTMAX_SHORT(OP, C)                                                                 \
    KERNEL_ONCE void OP##_short_##C(C* x, int64_t n) {                                              \
        C max[SOFTMAX_LANES], sum[SOFTMAX_LANES];                                                   \
        memcpy(max, x, sizeof max);                                                                 \
        for (int64_t i = 1; i < n; i++)                                                             \
            VECTORIZE for (int64_t c = 0; c < SOFTMAX_LANES; c++) max[c] = STEP_MAX(max[c], x[i * SOFTMAX_LANES + c]); \
        for (int64_t c = 0; c < SOFTMAX_LANES; c++) sum[c] = 0;                                     \
        for (int64_t i = 0; i < n; i++)                                                             \
            VECTORIZE for (int64_t c = 0; c < SOFTMAX_LANES; c++) {                                 \
                C d = x[i * SOFTMAX_LANES + c] - max[c], e = exp_below_zero_##C(d);                 \
                sum[c] += e;                                                                        \
                x[i * SOFTMAX_LANES + c] = SHORT_KEPT_##OP(d, e);                                   \
            }                                                                                       \
        VECTORIZE for (int64_t c = 0; c < SOFTMAX_LANES; c++) sum[c] = SHORT_FACTOR_##OP(C, sum[c]); \
        for (int64_t i = 0; i < n; i++)                                                             \
            VECTORIZE for (int64_t c = 0; c < SOFTMAX_LANES; c++)                                   \
                x[i * SOFTMAX_LANES + c] = SHORT_VALUE_##OP(x[i * SOFTMAX_LANES + c], sum[c]);      \
    }
#define SHORT_KEPT_softmax(d, e) (e)
#define SHORT_KEPT_log_softmax(d, e) (d)
#define SHORT_FACTOR_softmax(C, sum) (1 / (sum))
#define SHORT_FACTOR_log_softmax(C, sum) log_##C(sum)
#define SHORT_VALUE_softmax(v, factor) ((v) * (factor))
#define SHORT_VALUE_log_softmax(v, factor) ((v) - (factor))
DEFINE_SOFTMAX_SHORT(softmax, f32)
DEFINE_SOFTMAX_SHORT(softmax, f64)
DEFINE_SOFTMAX_SHORT(log_softmax, f32)
DEFINE_SOFTMAX_SHORT(log_softmax, f64)

/* softmax of a row whose maximum is infinite is NaN, as exp(inf - inf) is; the running sum would hide it. */
KERNEL_INLINE f64 softmax_sum(const logsumexp_state* s) { return isinf(s->max) ? NAN : s->sum; }

#define DEFINE_SOFTMAX_FORWARD(OP, T, C, DIRECT)                                                    \
    /* elements [begin, end) of one row whose maximum and sum are known */                          \
    KERNEL_FN void OP##_##T##_apply(const char* in, char* out, int64_t begin, int64_t end, double max, double sum) { \
        C xbuf[REDUCE_BLOCK], ybuf[REDUCE_BLOCK];                                                   \
        for (int64_t i = begin; i < end; i += REDUCE_BLOCK) {                                       \
            int64_t m = min_i64(REDUCE_BLOCK, end - i), at = i * (int64_t)sizeof(T);                \
            C* y = OUT_RUN(T, C, DIRECT, out + at, ybuf);                                           \
            OP##_block_##C(stage_##T(in + at, sizeof(T), m, xbuf), y, m, (C)max, sum);              \
            OUT_DONE(T, DIRECT, out + at, y, m);                                                    \
        }                                                                                           \
    }                                                                                               \
    /* w short rows at once, each n elements a stride apart; `together` of them lie side by side. lanes: room for (n, SOFTMAX_LANES) */ \
    KERNEL_INLINE void OP##_##T##_lanes(const char** from, int64_t in_stride, char** to, int64_t out_stride, int64_t n, int64_t w, \
                                        int64_t together, C* lanes) {                               \
        if (w < SOFTMAX_LANES) memset(lanes, 0, (size_t)n * SOFTMAX_LANES * sizeof(C));             \
        for (int64_t c = 0; c < w; c += together)                                                   \
            for (int64_t i = 0; i < n; i++)                                                         \
                for (int64_t k = 0; k < together; k++)                                              \
                    lanes[i * SOFTMAX_LANES + c + k] = load_##T(from[c] + i * in_stride + k * (int64_t)sizeof(T)); \
        OP##_short_##C(lanes, n);                                                                   \
        for (int64_t c = 0; c < w; c += together)                                                   \
            for (int64_t i = 0; i < n; i++)                                                         \
                for (int64_t k = 0; k < together; k++)                                              \
                    store_##T(to[c] + i * out_stride + k * (int64_t)sizeof(T), lanes[i * SOFTMAX_LANES + c + k]); \
    }                                                                                               \
    KERNEL_FN void OP##_##T##_rows(const char* in, int64_t in_row_stride, char* out, int64_t out_row_stride, \
                                   int64_t n, int64_t rows_begin, int64_t rows_end) {               \
        for (int64_t r = rows_begin; n <= SOFTMAX_SHORT && r < rows_end; r += SOFTMAX_LANES) {      \
            int64_t w = min_i64(SOFTMAX_LANES, rows_end - r);                                       \
            const char* from[SOFTMAX_LANES];                                                        \
            char* to[SOFTMAX_LANES];                                                                \
            for (int64_t c = 0; c < w; c++) from[c] = in + (r + c) * in_row_stride, to[c] = out + (r + c) * out_row_stride; \
            C lanes[SOFTMAX_SHORT * SOFTMAX_LANES];                                                 \
            OP##_##T##_lanes(from, sizeof(T), to, sizeof(T), n, w, 1, lanes);                       \
        }                                                                                           \
        for (int64_t r = rows_begin; n > SOFTMAX_SHORT && r < rows_end; r++) {                                           \
            const char* p = in + r * in_row_stride;                                                 \
            char* q = out + r * out_row_stride;                                                     \
            if (DIRECT && n <= SOFTMAX_CACHED_ROW) {                                                \
                OP##_run_##C((const C*)p, (C*)q, n);                                                \
            } else if (n <= SOFTMAX_STAGED_ROW) {                                                   \
                C buf[SOFTMAX_STAGED_ROW];                                                          \
                stage_##T(p, sizeof(T), n, buf);                                                    \
                OP##_run_##C(buf, buf, n);                                                          \
                OUT_DONE(T, DIRECT, q, buf, n);                                                     \
            } else {                                                                                \
                logsumexp_state s = logsumexp_##C##_init();                                         \
                logsumexp_##T##_absorb_run(&s, p, sizeof(T), n, 0, 0);                              \
                OP##_##T##_apply(p, q, 0, n, s.max, softmax_sum(&s));                               \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* columns [begin, end) of all outer positions, `inner` to each */                              \
    KERNEL_ONCE void OP##_##T##_narrow(const char* in, int64_t in_outer_stride, int64_t in_stride, char* out, \
                                       int64_t out_outer_stride, int64_t out_stride, int64_t n, int64_t inner, \
                                       int64_t begin, int64_t end) {                                \
        C row[SOFTMAX_STAGED_ROW];                                                                  \
        const char* from[SOFTMAX_LANES];                                                            \
        char* to[SOFTMAX_LANES];                                                                    \
        for (int64_t at = begin; at < end; at += SOFTMAX_LANES) {                                   \
            int64_t w = min_i64(SOFTMAX_LANES, end - at);                                           \
            for (int64_t c = 0; c < w; c++) {                                                       \
                int64_t outer = (at + c) / inner, column = (at + c) % inner * (int64_t)sizeof(T);   \
                from[c] = in + outer * in_outer_stride + column;                                    \
                to[c] = out + outer * out_outer_stride + column;                                    \
            }                                                                                       \
            if (n <= SOFTMAX_FEW && inner == 8) OP##_##T##_lanes(from, in_stride, to, out_stride, n, w, 8, row); \
            else if (n <= SOFTMAX_SHORT) OP##_##T##_lanes(from, in_stride, to, out_stride, n, w, 1, row); \
            else for (int64_t c = 0; c < w; c++) {                                                  \
                for (int64_t i = 0; i < n; i++) row[i] = load_##T(from[c] + i * in_stride);         \
                OP##_run_##C(row, row, n);                                                          \
                for (int64_t i = 0; i < n; i++) store_##T(to[c] + i * out_stride, row[i]);          \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* columns of few elements, w of them side by side */                                           \
    KERNEL_ONCE void OP##_##T##_few(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t n, int64_t w) {\
        C lanes[SOFTMAX_SHORT * SOFTMAX_LANES];                                                     \
        for (int64_t c = 0; c < w; c += SOFTMAX_LANES, in += SOFTMAX_LANES * sizeof(T), out += SOFTMAX_LANES * sizeof(T)) {\
            int64_t m = min_i64(SOFTMAX_LANES, w - c);                                              \
            if (m < SOFTMAX_LANES) memset(lanes, 0, (size_t)n * SOFTMAX_LANES * sizeof(C));         \
            for (int64_t i = 0; i < n; i++)                                                         \
                VECTORIZE for (int64_t k = 0; k < m; k++) lanes[i * SOFTMAX_LANES + k] = load_##T(in + i * in_stride + k * (int64_t)sizeof(T));\
            OP##_short_##C(lanes, n);                                                               \
            for (int64_t i = 0; i < n; i++)                                                         \
                VECTORIZE for (int64_t k = 0; k < m; k++) store_##T(out + i * out_stride + k * (int64_t)sizeof(T), lanes[i * SOFTMAX_LANES + k]);\
        }                                                                                           \
    }                                                                                               \
    /* n rows of w values of their columns, whose maximum and factor are known */                   \
    KERNEL_INLINE void OP##_##T##_finish(const char* p, int64_t in_stride, char* q, int64_t out_stride, int64_t n, int64_t w, const C* max,\
                                         const C* factor) {                                         \
        C xbuf[SOFTMAX_COLUMNS], ybuf[SOFTMAX_COLUMNS];                                             \
        for (int64_t r = 0; r < n; r++) {                                                           \
            const C* x = stage_##T(p + r * in_stride, sizeof(T), w, xbuf);                          \
            C* y = OUT_RUN(T, C, DIRECT, q + r * out_stride, ybuf);                                 \
            VECTORIZE for (int64_t c = 0; c < w; c++) y[c] = COLUMN_VALUE_##OP(C, x[c] - max[c], factor[c]);\
            OUT_DONE(T, DIRECT, q + r * out_stride, y, w);                                          \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void OP##_##T##_cols(const char* in, int64_t in_outer_stride, int64_t in_stride, char* out,\
                                   int64_t out_outer_stride, int64_t out_stride, int64_t n, int64_t inner,\
                                   int64_t items_begin, int64_t items_end) {                        \
        if (inner < SOFTMAX_NARROW && n <= SOFTMAX_STAGED_ROW) {                                    \
            OP##_##T##_narrow(in, in_outer_stride, in_stride, out, out_outer_stride, out_stride, n, inner,\
                              items_begin * inner, items_end * inner);                              \
            return;                                                                                 \
        }                                                                                           \
        C max[SOFTMAX_COLUMNS], sum[SOFTMAX_COLUMNS];                                               \
        int64_t blocks = (inner + SOFTMAX_COLUMNS - 1) / SOFTMAX_COLUMNS, fold = SOFTMAX_FOLD(T, inner, in_stride, out_stride, out_stride);\
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            int64_t outer = item / blocks, c0 = item % blocks * SOFTMAX_COLUMNS;                    \
            int64_t w = min_i64(SOFTMAX_COLUMNS, inner - c0) * fold, rows = n / fold, rest = n % fold;\
            const char *p = in + outer * in_outer_stride + c0 * (int64_t)sizeof(T), *end = p + rows * fold * in_stride;\
            char* q = out + outer * out_outer_stride + c0 * (int64_t)sizeof(T);                     \
            if (n <= SOFTMAX_SHORT) {                                                               \
                OP##_##T##_few(p, in_stride, q, out_stride, n, w);                                  \
                continue;                                                                           \
            }                                                                                       \
            column_max_and_exp_sum_##T(p, in_stride * fold, rows, w, max, sum);                     \
            for (int64_t c = 0; c < inner && fold > 1; c++) {                                       \
                logsumexp_state s = {max[c], sum[c]};                                               \
                for (int64_t k = 1; k < fold; k++) logsumexp_merge(&s, &(logsumexp_state){max[c + k * inner], sum[c + k * inner]});\
                for (int64_t r = 0; r < rest; r++) {                                                \
                    f64 x = load_##T(end + r * in_stride + c * (int64_t)sizeof(T));                 \
                    logsumexp_merge(&s, &(logsumexp_state){x, exp(x - finite_shift(x))});           \
                }                                                                                   \
                for (int64_t k = 0; k < fold; k++) max[c + k * inner] = (C)s.max, sum[c + k * inner] = (C)s.sum;\
            }                                                                                       \
            for (int64_t c = 0; c < w; c++) {                                                       \
                f64 s = ABSOLUTE(max[c]) == (C)INFINITY ? NAN : sum[c];                             \
                sum[c] = (C)COLUMN_FACTOR_##OP(s);                                                  \
            }                                                                                       \
            OP##_##T##_finish(p, in_stride * fold, q, out_stride * fold, rows, w, max, sum);        \
            if (rest) OP##_##T##_finish(end, 0, q + rows * fold * out_stride, 0, 1, rest * inner, max, sum);\
        }                                                                                           \
    }
#define COLUMN_FACTOR_softmax(s) (1.0 / (s))
#define COLUMN_VALUE_softmax(C, d, factor) (exp_below_zero_##C(d) * (factor))
#define COLUMN_FACTOR_log_softmax(s) log(s)
#define COLUMN_VALUE_log_softmax(C, d, factor) ((d) - (factor))

/* ---- backward: dx = y (g - sum g y), for the logarithm dx = g - exp(y) sum g ---- */
#define ROW_DOT_softmax(C, g, y, m) block_dot_##C(g, y, 0, m)
#define ROW_DOT_log_softmax(C, g, y, m) block_sum_##C(g, g, 0, m)
#define TERM_softmax(C, g, y) ((g) * (y))
#define TERM_log_softmax(C, g, y) (g)
#define GRAD_softmax(C, g, y, dot) ((y) * ((g) - (dot)))
#define GRAD_log_softmax(C, g, y, dot) ((g) - exp_below_zero_##C(y) * (dot))

#define DEFINE_SOFTMAX_BACKWARD(OP, T, C, DIRECT)                                                   \
    KERNEL_FN void OP##_backward_##T##_rows(const char* grad, int64_t grad_row_stride, const char* result, \
                                            int64_t result_row_stride, char* out, int64_t out_row_stride, int64_t n, \
                                            int64_t rows_begin, int64_t rows_end) {                 \
        C gbuf[REDUCE_BLOCK], ybuf[REDUCE_BLOCK], dbuf[REDUCE_BLOCK];                               \
        for (int64_t r = rows_begin; r < rows_end; r++) {                                           \
            const char *gp = grad + r * grad_row_stride, *yp = result + r * result_row_stride;      \
            char* q = out + r * out_row_stride;                                                     \
            f64 total = 0;                                                                          \
            for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {                                         \
                int64_t m = min_i64(REDUCE_BLOCK, n - i), at = i * (int64_t)sizeof(T);              \
                const C *g = stage_##T(gp + at, sizeof(T), m, gbuf), *y = stage_##T(yp + at, sizeof(T), m, ybuf); \
                (void)y;                                                                            \
                total += ROW_DOT_##OP(C, g, y, m);                                                  \
            }                                                                                       \
            C dot = (C)total;                                                                       \
            for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {                                         \
                int64_t m = min_i64(REDUCE_BLOCK, n - i), at = i * (int64_t)sizeof(T);              \
                const C *g = stage_##T(gp + at, sizeof(T), m, gbuf), *y = stage_##T(yp + at, sizeof(T), m, ybuf); \
                C* d = OUT_RUN(T, C, DIRECT, q + at, dbuf);                                         \
                VECTORIZE for (int64_t j = 0; j < m; j++) d[j] = GRAD_##OP(C, g[j], y[j], dot);     \
                OUT_DONE(T, DIRECT, q + at, d, m);                                                  \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_INLINE void OP##_##T##_add_terms(const char* grad, int64_t grad_stride, const char* result, int64_t result_stride, int64_t n, int64_t w,\
                                            f64* total) {                                           \
        C gbuf[SOFTMAX_COLUMNS], ybuf[SOFTMAX_COLUMNS];                                             \
        for (int64_t r = 0; r < n; r++) {                                                           \
            const C *g = stage_##T(grad + r * grad_stride, sizeof(T), w, gbuf), *y = stage_##T(result + r * result_stride, sizeof(T), w, ybuf);\
            (void)y;                                                                                \
            VECTORIZE for (int64_t c = 0; c < w; c++) total[c] += TERM_##OP(C, g[c], y[c]);         \
        }                                                                                           \
    }                                                                                               \
    KERNEL_INLINE void OP##_backward_##T##_finish(const char* grad, int64_t grad_stride, const char* result, int64_t result_stride, char* out,\
                                                  int64_t out_stride, int64_t n, int64_t w, const C* dot) {\
        C gbuf[SOFTMAX_COLUMNS], ybuf[SOFTMAX_COLUMNS], dbuf[SOFTMAX_COLUMNS];                      \
        for (int64_t r = 0; r < n; r++) {                                                           \
            const C *g = stage_##T(grad + r * grad_stride, sizeof(T), w, gbuf), *y = stage_##T(result + r * result_stride, sizeof(T), w, ybuf);\
            C* d = OUT_RUN(T, C, DIRECT, out + r * out_stride, dbuf);                               \
            VECTORIZE for (int64_t c = 0; c < w; c++) d[c] = GRAD_##OP(C, g[c], y[c], dot[c]);      \
            OUT_DONE(T, DIRECT, out + r * out_stride, d, w);                                        \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void OP##_backward_##T##_cols(const char* grad, int64_t grad_outer_stride, int64_t grad_stride, \
                                            const char* result, int64_t result_outer_stride, int64_t result_stride, \
                                            char* out, int64_t out_outer_stride, int64_t out_stride, int64_t n, \
                                            int64_t inner, int64_t items_begin, int64_t items_end) { \
        enum { MOST = SOFTMAX_STACK / 2 / sizeof(T) < SOFTMAX_STAGED_ROW ? SOFTMAX_STACK / 2 / sizeof(T) : SOFTMAX_STAGED_ROW }; \
        if (inner < SOFTMAX_NARROW && n <= MOST) {                                                  \
            T g[MOST], y[MOST];                                                                     \
            int64_t bytes = n * (int64_t)sizeof(T);                                                 \
            for (int64_t column = items_begin * inner; column < items_end * inner; column++) {      \
                int64_t outer = column / inner, at = column % inner * (int64_t)sizeof(T);           \
                const char *gp = grad + outer * grad_outer_stride + at, *yp = result + outer * result_outer_stride + at; \
                char* q = out + outer * out_outer_stride + at;                                      \
                for (int64_t i = 0; i < n; i++) g[i] = *(const T*)(gp + i * grad_stride), y[i] = *(const T*)(yp + i * result_stride); \
                OP##_backward_##T##_rows((const char*)g, bytes, (const char*)y, bytes, (char*)g, bytes, n, 0, 1); \
                for (int64_t i = 0; i < n; i++) *(T*)(q + i * out_stride) = g[i];                   \
            }                                                                                       \
            return;                                                                                 \
        }                                                                                           \
        C dot[SOFTMAX_COLUMNS];                                                                     \
        f64 total[SOFTMAX_COLUMNS];                                                                 \
        int64_t blocks = (inner + SOFTMAX_COLUMNS - 1) / SOFTMAX_COLUMNS, fold = SOFTMAX_FOLD(T, inner, grad_stride, result_stride, out_stride);\
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            int64_t outer = item / blocks, c0 = item % blocks * SOFTMAX_COLUMNS;                    \
            int64_t w = min_i64(SOFTMAX_COLUMNS, inner - c0) * fold, at = c0 * (int64_t)sizeof(T), rows = n / fold, rest = n % fold * inner;\
            const char *gp = grad + outer * grad_outer_stride + at, *yp = result + outer * result_outer_stride + at;\
            char* q = out + outer * out_outer_stride + at;                                          \
            for (int64_t c = 0; c < w; c++) total[c] = 0;                                           \
            OP##_##T##_add_terms(gp, grad_stride * fold, yp, result_stride * fold, rows, w, total); \
            if (rest) OP##_##T##_add_terms(gp + rows * fold * grad_stride, 0, yp + rows * fold * result_stride, 0, 1, rest, total);\
            for (int64_t c = inner; c < w && fold > 1; c++) total[c % inner] += total[c];           \
            for (int64_t c = 0; c < w; c++) dot[c] = (C)total[fold > 1 ? c % inner : c];            \
            OP##_backward_##T##_finish(gp, grad_stride * fold, yp, result_stride * fold, q, out_stride * fold, rows, w, dot);\
            if (rest) OP##_backward_##T##_finish(gp + rows * fold * grad_stride, 0, yp + rows * fold * result_stride, 0, q + rows * fold * out_stride, 0, 1, rest, dot);\
        }                                                                                           \
    }

#define DEFINE_SOFTMAX(T, C, DIRECT)                                                                \
    DEFINE_SOFTMAX_FORWARD(softmax, T, C, DIRECT)                                                   \
    DEFINE_SOFTMAX_FORWARD(log_softmax, T, C, DIRECT)                                               \
    DEFINE_SOFTMAX_BACKWARD(softmax, T, C, DIRECT)                                                  \
    DEFINE_SOFTMAX_BACKWARD(log_softmax, T, C, DIRECT)
DEFINE_SOFTMAX(f16, f32, 0)
DEFINE_SOFTMAX(bf16, f32, 0)
DEFINE_SOFTMAX(f32, f32, 1)
DEFINE_SOFTMAX(f64, f64, 1)

/* Merges the partials of REDUCE_LOGSUMEXP's chunks into what OP_apply takes. */
KERNEL_FN void softmax_combine(const char* partials, int64_t count, double* max, double* sum) {
    logsumexp_state s = {-INFINITY, 0};
    for (int64_t k = 0; k < count; k++) {
        logsumexp_state other;
        memcpy(&other, partials + k * REDUCE_PARTIAL_BYTES, sizeof other);
        logsumexp_merge(&s, &other);
    }
    *max = s.max;
    *sum = softmax_sum(&s);
}

/* ---- cross entropy over class indices, fused with log_softmax ----
 * loss = (1 - e) w[t] (lse - x[t]) + e / classes * sum_c w[c] (lse - x[c]), e = label smoothing, w = class weights.
 * Both kernels return the first row whose target is neither a class nor ignore_index, or -1; they skip such rows. */
#define DEFINE_CROSS_ENTROPY(T)                                                                     \
    KERNEL_FN int64_t cross_entropy_##T(const char* logits, int64_t row_stride, int64_t classes,    \
            const int64_t* target,                                                                  \
                                        const char* weight_, int64_t ignore_index, double smoothing, char* loss, \
                                        char* lse, char* row_weight, int64_t rows_begin, int64_t rows_end) { \
        const T* weight = (const T*)weight_;                                                        \
        int64_t bad = -1;                                                                           \
        for (int64_t r = rows_begin; r < rows_end; r++) {                                           \
            int64_t t = target[r];                                                                  \
            T *loss_r = (T*)loss + r, *lse_r = (T*)lse + r, *weight_r = (T*)row_weight + r;         \
            *loss_r = *lse_r = *weight_r = 0;                                                       \
            if (t == ignore_index) continue;                                                        \
            if (t < 0 || t >= classes) {                                                            \
                if (bad < 0) bad = r;                                                               \
                continue;                                                                           \
            }                                                                                       \
            const T* x = (const T*)(logits + r * row_stride);                                       \
            T e[REDUCE_BLOCK], max = block_max_##T(x, classes), shift = (T)finite_shift(max);       \
            f64 sum = 0;                                                                            \
            for (int64_t i = 0; i < classes; i += REDUCE_BLOCK)                                     \
                sum += exp_and_sum_##T(x + i, e, shift, min_i64(REDUCE_BLOCK, classes - i));        \
            f64 log_sum = isinf(max) ? NAN : (f64)shift + log(sum), w = weight ? weight[t] : 1;     \
            f64 value = w * (log_sum - x[t]);                                                       \
            if (smoothing > 0) {                                                                    \
                f64 spread = weight ? row_sum_##T(weight, classes) * log_sum - row_dot_##T(weight, x, classes) \
                                    : (f64)classes * log_sum - row_sum_##T(x, classes);             \
                value = (1 - smoothing) * value + smoothing / (f64)classes * spread;                \
            }                                                                                       \
            *loss_r = (T)value;                                                                     \
            *lse_r = (T)log_sum;                                                                    \
            *weight_r = (T)w;                                                                       \
        }                                                                                           \
        return bad;                                                                                 \
    }                                                                                               \
    /* grad: one value per row at byte stride grad_stride (0 repeats it), multiplied by grad_scale */ \
    KERNEL_FN int64_t cross_entropy_backward_##T(const char* logits, int64_t row_stride, int64_t classes, \
                                                 const int64_t* target, const char* weight_, int64_t ignore_index, \
                                                 double smoothing, const char* lse, const char* grad, \
                                                 int64_t grad_stride, double grad_scale, char* out, \
                                                 int64_t out_row_stride, int64_t rows_begin, int64_t rows_end) { \
        const T* weight = (const T*)weight_;                                                        \
        f64 spread = smoothing / (f64)classes, weights = weight ? row_sum_##T(weight, classes) : (f64)classes; \
        int64_t bad = -1;                                                                           \
        for (int64_t r = rows_begin; r < rows_end; r++) {                                           \
            int64_t t = target[r];                                                                  \
            T* d = (T*)(out + r * out_row_stride);                                                  \
            int valid = t >= 0 && t < classes;                                                      \
            if (t == ignore_index || !valid) {                                                      \
                if (t != ignore_index && bad < 0) bad = r;                                          \
                memset(d, 0, (size_t)classes * sizeof(T));                                          \
                continue;                                                                           \
            }                                                                                       \
            const T* x = (const T*)(logits + r * row_stride);                                       \
            f64 g = *(const T*)(grad + r * grad_stride) * grad_scale, w = weight ? weight[t] : 1;   \
            T log_sum = ((const T*)lse)[r], mass = (T)(g * ((1 - smoothing) * w + spread * weights)), \
              lift = (T)(g * spread);                                                               \
            if (smoothing > 0 && weight) {                                                          \
                VECTORIZE for (int64_t c = 0; c < classes; c++)                                             \
                    d[c] = FMA(exp_below_zero_##T(x[c] - log_sum), mass, -(lift * weight[c]));      \
            } else {                                                                                \
                VECTORIZE for (int64_t c = 0; c < classes; c++)                                             \
                    d[c] = FMA(exp_below_zero_##T(x[c] - log_sum), mass, -lift);                    \
            }                                                                                       \
            d[t] -= (T)(g * (1 - smoothing) * w);                                                   \
        }                                                                                           \
        return bad;                                                                                 \
    }
DEFINE_CROSS_ENTROPY(f32)
DEFINE_CROSS_ENTROPY(f64)

#endif
