/* Pooling over windows of two dimensions: max (with indices), average, adaptive average; forward and backward.
 *
 * Layouts: "planes" is contiguous NCHW, one work item per (sample, channel) plane; "last" is contiguous NHWC
 * (channels_last), vectorised over channels, one work item per (sample, output row) forward and per (sample,
 * input row) backward; max backward on "last" takes one item per sample. Sizes come from the caller, who has
 * applied ceil_mode. One output row is accumulated window position by window position, so that the inner loop
 * is a plain loop over the outputs for which the position lies inside the input. Halves accumulate in f32. */
#ifndef TRT_POOL_H
#define TRT_POOL_H

#include "kernel_base.h"
#include "pool_tables.h"

enum { POOL_BLOCK = 512, POOL_PIXELS = 16 /* collected before they are added */, POOL_TAPS = 32 /* of a window that is not clamped */ };
enum { POOL_FEW = 8, POOL_PLANE = 1 << 16 /* outputs of a row, and pixels, of planes that are taken several at a time */ };
enum { POOL_QUOTIENTS = 4096, POOL_LANES = 4 /* kept for the windows over a pixel, and fewest channels at a time */ };

KERNEL_INLINE int64_t ceil_div(int64_t a, int64_t b) { return a >= 0 ? (a + b - 1) / b : -(-a / b); }

/* Outputs o in [*lo, *hi) have 0 <= o * stride + offset < size. */
KERNEL_INLINE void valid_outputs(int64_t offset, int64_t stride, int64_t size, int64_t* lo, int64_t* hi) {
    *lo = max_i64(*lo, ceil_div(-offset, stride));
    *hi = min_i64(*hi, ceil_div(size - offset, stride));
}

/* First input position of a window that lies inside the input. */
KERNEL_INLINE int64_t first_valid(int64_t start, int64_t dilation) {
    return start >= 0 ? start : start + ceil_div(-start, dilation) * dilation;
}

/* Taps k in [*lo, *hi) of a long window are all that meet the input for some output: windows begin in [first, last]. Short ones are taken whole. */
KERNEL_INLINE void window_taps(int64_t first, int64_t last, int64_t size, int64_t dilation, int64_t kernel, int64_t* lo, int64_t* hi) {
    *lo = 0, *hi = kernel;
    if (kernel <= POOL_TAPS) return;
    *lo = max_i64(0, ceil_div(-last, dilation));
    *hi = min_i64(kernel, ceil_div(size - first, dilation));
}

/* Outputs of a row that are taken together. Where steps are longer than the input there are two or three, whose windows have no taps in common. */
KERNEL_INLINE int64_t pool_block(const pool_call* s) { return s->stride_w > s->in_w ? 1 : POOL_BLOCK; }

/* Divisor of the average over the window of output (oh, ow). */
KERNEL_INLINE int64_t pool_divisor(const pool_call* s, int64_t oh, int64_t ow) {
    if (s->divisor_override) return s->divisor_override;
    int64_t h0 = oh * s->stride_h - s->pad_h, w0 = ow * s->stride_w - s->pad_w;
    int64_t h1 = min_i64(h0 + s->kernel_h, s->in_h + s->pad_h), w1 = min_i64(w0 + s->kernel_w, s->in_w + s->pad_w);
    if (s->count_include_pad) return (h1 - h0) * (w1 - w0);
    return (min_i64(h1, s->in_h) - max_i64(h0, 0)) * (min_i64(w1, s->in_w) - max_i64(w0, 0));
}

/* Whether rows have few outputs (more where steps are no vectors either) and all windows lie inside the input. */
KERNEL_INLINE int pool_is_small(const pool_call* s) {
    return (s->out_w <= POOL_FEW || (s->stride_w > 1 && s->out_w <= 4 * POOL_FEW)) && s->pad_h == 0 && s->pad_w == 0 && s->out_h * s->out_w <= POOL_BLOCK && s->in_h * s->in_w <= POOL_PLANE &&
           (s->out_h - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h < s->in_h &&
           (s->out_w - 1) * s->stride_w + (s->kernel_w - 1) * s->dilation_w < s->in_w;
}

/* The windows that cover a position of the padded input, found from those of a position before it without divisions. */
typedef struct {
    int64_t last, first;
} pool_cover;
KERNEL_INLINE void cover_position(pool_cover* c, int64_t at, int64_t kernel, int64_t stride, int64_t outputs) {
    while (c->last + 1 < outputs && (c->last + 1) * stride <= at) c->last++;
    while (c->first * stride + kernel <= at) c->first++;
}

/* ---- max ---- */
#define DEFINE_MAX_POOL(T, C, I, LOAD, STORE, LOWEST)                                               \
    /* outputs [lo, hi) take in row[o * stride + offset], whose index in the plane is base + o * stride */ \
    KERNEL_INLINE void max_pool_step_##T(C* best, I* index, const T* row, int64_t stride, int64_t offset, \
            int64_t base,                                                                           \
                                         int64_t lo, int64_t hi) {                                  \
        VECTORIZE for (int64_t o = lo; o < hi; o++) {                                               \
            C v = LOAD(row[o * stride + offset]);                                                   \
            int better = (v > best[o]) | (v != v);                                                  \
            best[o] = better ? v : best[o];                                                         \
            index[o] = better ? (I)(base + o * stride) : index[o];                                  \
        }                                                                                           \
    }                                                                                               \
    /* whole planes at a time, whose outputs' windows begin at start[o]: a row of few outputs fills no vector */\
    KERNEL_ONCE void max_pool_small_##T(const char* in, char* out, int64_t* indices, const pool_call* s, int64_t items_begin, int64_t items_end) {\
        C best[POOL_BLOCK];                                                                         \
        I tap[POOL_BLOCK];                                                                          \
        int32_t start[POOL_BLOCK], first[POOL_BLOCK];                                               \
        const int64_t size = s->in_h * s->in_w, positions = s->out_h * s->out_w, planes = min_i64(POOL_BLOCK / positions, items_end - items_begin);\
        for (int64_t p = 0, o = 0; p < planes; p++)                                                 \
            for (int64_t oh = 0; oh < s->out_h; oh++)                                               \
                for (int64_t ow = 0; ow < s->out_w; ow++, o++) {                                    \
                    first[o] = (int32_t)(oh * s->stride_h * s->in_w + ow * s->stride_w);            \
                    start[o] = (int32_t)(p * size) + first[o];                                      \
                }                                                                                   \
        for (int64_t item = items_begin; item < items_end; item += planes) {                        \
            const int64_t m = min_i64(planes, items_end - item) * positions, at = item * positions; \
            for (int64_t o = 0; o < m; o++) best[o] = LOWEST, tap[o] = 0;                           \
            for (int64_t kh = 0; kh < s->kernel_h; kh++)                                            \
                for (int64_t kw = 0; kw < s->kernel_w; kw++) {                                      \
                    const I offset = (I)(kh * s->dilation_h * s->in_w + kw * s->dilation_w);        \
                    const T* x = (const T*)in + item * size + offset;                               \
                    VECTORIZE for (int64_t o = 0; o < m; o++) {                                     \
                        C v = LOAD(x[start[o]]);                                                    \
                        int better = (v > best[o]) | (v != v);                                      \
                        best[o] = better ? v : best[o];                                             \
                        tap[o] = better ? offset : tap[o];                                          \
                    }                                                                               \
                }                                                                                   \
            for (int64_t o = 0; o < m; o++) ((T*)out)[at + o] = STORE(best[o]);                     \
            if (indices)                                                                            \
                for (int64_t o = 0; o < m; o++) indices[at + o] = first[o] + tap[o];                \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void max_pool_planes_##T(const char* in, char* out, int64_t* indices, const pool_call* s, \
                                       int64_t items_begin, int64_t items_end) {                    \
        if (pool_is_small(s)) {                                                                     \
            max_pool_small_##T(in, out, indices, s, items_begin, items_end);                        \
            return;                                                                                 \
        }                                                                                           \
        C best_[POOL_BLOCK];                                                                        \
        I index_[POOL_BLOCK];                                                                       \
        const int64_t block = pool_block(s);                                                        \
        int64_t kh0, kh1, kw0, kw1;                                                                 \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            const T* plane = (const T*)in + item * s->in_h * s->in_w;                               \
            for (int64_t oh = 0; oh < s->out_h; oh++)                                               \
                for (int64_t o0 = 0; o0 < s->out_w; o0 += block) {                                  \
                    int64_t end = min_i64(o0 + block, s->out_w), h0 = oh * s->stride_h - s->pad_h;  \
                    window_taps(h0, h0, s->in_h, s->dilation_h, s->kernel_h, &kh0, &kh1);           \
                    window_taps(o0 * s->stride_w - s->pad_w, (end - 1) * s->stride_w - s->pad_w, s->in_w, s->dilation_w, s->kernel_w, &kw0, &kw1); \
                    C* best = best_ - o0;                                                           \
                    I* index = index_ - o0;                                                         \
                    for (int64_t o = o0; o < end; o++) {                                            \
                        best[o] = LOWEST;                                                           \
                        index[o] = (I)(first_valid(h0, s->dilation_h) * s->in_w +                   \
                                       first_valid(o * s->stride_w - s->pad_w, s->dilation_w));     \
                    }                                                                               \
                    for (int64_t kh = kh0; kh < kh1; kh++) {                                        \
                        int64_t h = h0 + kh * s->dilation_h;                                        \
                        if (h < 0 || h >= s->in_h) continue;                                        \
                        for (int64_t kw = kw0; kw < kw1; kw++) {                                    \
                            int64_t offset = kw * s->dilation_w - s->pad_w, lo = o0, hi = end;      \
                            int64_t base = h * s->in_w + offset;                                    \
                            valid_outputs(offset, s->stride_w, s->in_w, &lo, &hi);                  \
                            const T* row = plane + h * s->in_w;                                     \
                            if (s->stride_w == 1) max_pool_step_##T(best, index, row, 1, offset, base, lo, hi); \
                            else if (s->stride_w == 2) max_pool_step_##T(best, index, row, 2, offset, base, lo, hi); \
                            else max_pool_step_##T(best, index, row, s->stride_w, offset, base, lo, hi); \
                        }                                                                           \
                    }                                                                               \
                    int64_t at = (item * s->out_h + oh) * s->out_w;                                 \
                    for (int64_t o = o0; o < end; o++) ((T*)out)[at + o] = STORE(best[o]);          \
                    if (indices)                                                                    \
                        for (int64_t o = o0; o < end; o++) indices[at + o] = index[o];              \
                }                                                                                   \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void max_pool_last_##T(const char* in, char* out, int64_t* indices, const pool_call* s, \
                                     int64_t items_begin, int64_t items_end) {                      \
        C best[POOL_BLOCK];                                                                         \
        I index[POOL_BLOCK];                                                                        \
        int64_t channels = s->channels, kh0, kh1, kw0, kw1;                                         \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            const T* image = (const T*)in + item / s->out_h * s->in_h * s->in_w * channels;         \
            int64_t h0 = item % s->out_h * s->stride_h - s->pad_h;                                  \
            window_taps(h0, h0, s->in_h, s->dilation_h, s->kernel_h, &kh0, &kh1);                   \
            for (int64_t ow = 0; ow < s->out_w; ow++)                                               \
                for (int64_t c0 = 0; c0 < channels; c0 += POOL_BLOCK) {                             \
                    int64_t m = min_i64(POOL_BLOCK, channels - c0), w0 = ow * s->stride_w - s->pad_w; \
                    window_taps(w0, w0, s->in_w, s->dilation_w, s->kernel_w, &kw0, &kw1);           \
                    I first = (I)(first_valid(h0, s->dilation_h) * s->in_w + first_valid(w0, s->dilation_w)); \
                    for (int64_t c = 0; c < m; c++) best[c] = LOWEST, index[c] = first;             \
                    for (int64_t kh = kh0; kh < kh1; kh++)                                          \
                        for (int64_t kw = kw0; kw < kw1; kw++) {                                    \
                            int64_t h = h0 + kh * s->dilation_h, w = w0 + kw * s->dilation_w;       \
                            if (h < 0 || h >= s->in_h || w < 0 || w >= s->in_w) continue;           \
                            const T* x = image + (h * s->in_w + w) * channels + c0;                 \
                            I position = (I)(h * s->in_w + w);                                      \
                            VECTORIZE for (int64_t c = 0; c < m; c++) {                             \
                                C v = LOAD(x[c]);                                                   \
                                int better = (v > best[c]) | (v != v);                              \
                                best[c] = better ? v : best[c];                                     \
                                index[c] = better ? position : index[c];                            \
                            }                                                                       \
                        }                                                                           \
                    int64_t at = (item * s->out_w + ow) * channels + c0;                            \
                    for (int64_t c = 0; c < m; c++) ((T*)out)[at + c] = STORE(best[c]);             \
                    if (indices)                                                                    \
                        for (int64_t c = 0; c < m; c++) indices[at + c] = index[c];                 \
                }                                                                                   \
        }                                                                                           \
    }                                                                                               \
    /* grad_in is written completely; indices are those of the forward */                           \
    KERNEL_FN void max_pool_backward_planes_##T(const char* grad, const int64_t* indices, char* grad_in, \
                                                const pool_call* s, int64_t items_begin, int64_t items_end) { \
        int64_t in_size = s->in_h * s->in_w, out_size = s->out_h * s->out_w;                        \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            T* d = (T*)grad_in + item * in_size;                                                    \
            const T* g = (const T*)grad + item * out_size;                                          \
            memset(d, 0, (size_t)in_size * sizeof(T));                                              \
            for (int64_t o = 0; o < out_size; o++) {                                                \
                int64_t at = indices[item * out_size + o];                                          \
                if (at >= 0 && at < in_size) d[at] = STORE(LOAD(d[at]) + LOAD(g[o]));               \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void max_pool_backward_last_##T(const char* grad, const int64_t* indices, char* grad_in, \
                                              const pool_call* s, int64_t items_begin, int64_t items_end) { \
        int64_t in_size = s->in_h * s->in_w, out_size = s->out_h * s->out_w, channels = s->channels; \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            T* d = (T*)grad_in + item * in_size * channels;                                         \
            memset(d, 0, (size_t)(in_size * channels) * sizeof(T));                                 \
            for (int64_t o = 0; o < out_size; o++) {                                                \
                const T* g = (const T*)grad + (item * out_size + o) * channels;                     \
                const int64_t* index = indices + (item * out_size + o) * channels;                  \
                for (int64_t c = 0; c < channels; c++) {                                            \
                    if (index[c] < 0 || index[c] >= in_size) continue;                              \
                    T* p = d + index[c] * channels + c;                                             \
                    *p = STORE(LOAD(*p) + LOAD(g[c]));                                              \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }

/* ---- average ---- */
#define DEFINE_AVG_POOL(T, C, LOAD, STORE)                                                          \
    KERNEL_INLINE void add_strided_##T(C* sum, const T* row, int64_t stride, int64_t offset, int64_t lo, int64_t hi) { \
        VECTORIZE for (int64_t o = lo; o < hi; o++) sum[o] += LOAD(row[o * stride + offset]);       \
    }                                                                                               \
    /* adds pixels of m channels, four at a time and one after the other, so that sums are read and written less often */ \
    KERNEL_INLINE void add_pixels_##T(C* sum, const T* const* pixel, int64_t n, int64_t m) {        \
        int64_t i = 0;                                                                              \
        for (; i + 4 <= n; i += 4) {                                                                \
            const T *p0 = pixel[i], *p1 = pixel[i + 1], *p2 = pixel[i + 2], *p3 = pixel[i + 3];     \
            VECTORIZE for (int64_t c = 0; c < m; c++)                                               \
                sum[c] = sum[c] + LOAD(p0[c]) + LOAD(p1[c]) + LOAD(p2[c]) + LOAD(p3[c]);            \
        }                                                                                           \
        for (; i < n; i++) add_strided_##T(sum, pixel[i], 1, 0, 0, m);                              \
    }                                                                                               \
    /* sums of quotients, in order; most windows overlap in few positions */                        \
    KERNEL_INLINE void store_sums_##T(T* out, const C* const* run, int64_t n, int64_t m) {          \
        const C *q0 = run[0], *q1 = run[1], *q2 = run[2], *q3 = run[3];                             \
        C sum[POOL_BLOCK];                                                                          \
        if (n == 1) VECTORIZE for (int64_t c = 0; c < m; c++) out[c] = STORE(0 + q0[c]);            \
        else if (n == 2) VECTORIZE for (int64_t c = 0; c < m; c++) out[c] = STORE(0 + q0[c] + q1[c]); \
        else if (n == 4) VECTORIZE for (int64_t c = 0; c < m; c++) out[c] = STORE(0 + q0[c] + q1[c] + q2[c] + q3[c]); \
        else {                                                                                      \
            for (int64_t c = 0; c < m; c++) sum[c] = 0;                                             \
            for (int64_t i = 0; i < n; i++) {                                                       \
                const C* q = run[i];                                                                \
                VECTORIZE for (int64_t c = 0; c < m; c++) sum[c] += q[c];                           \
            }                                                                                       \
            for (int64_t c = 0; c < m; c++) out[c] = STORE(sum[c]);                                 \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void avg_pool_planes_##T(const char* in, char* out, const pool_call* s, int64_t items_begin, \
                                       int64_t items_end) {                                         \
        C sum_[POOL_BLOCK];                                                                         \
        const int64_t block = pool_block(s);                                                        \
        int64_t kh0, kh1, kw0, kw1;                                                                 \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            const T* plane = (const T*)in + item * s->in_h * s->in_w;                               \
            for (int64_t oh = 0; oh < s->out_h; oh++)                                               \
                for (int64_t o0 = 0; o0 < s->out_w; o0 += block) {                                  \
                    int64_t end = min_i64(o0 + block, s->out_w), h0 = oh * s->stride_h - s->pad_h;  \
                    C* sum = sum_ - o0;                                                             \
                    window_taps(h0, h0, s->in_h, 1, s->kernel_h, &kh0, &kh1);                       \
                    window_taps(o0 * s->stride_w - s->pad_w, (end - 1) * s->stride_w - s->pad_w, s->in_w, 1, s->kernel_w, &kw0, &kw1); \
                    for (int64_t o = o0; o < end; o++) sum[o] = 0;                                  \
                    for (int64_t kh = kh0; kh < kh1; kh++) {                                        \
                        int64_t h = h0 + kh;                                                        \
                        if (h < 0 || h >= s->in_h) continue;                                        \
                        for (int64_t kw = kw0; kw < kw1; kw++) {                                    \
                            int64_t offset = kw - s->pad_w, lo = o0, hi = end;                      \
                            const T* row = plane + h * s->in_w;                                     \
                            valid_outputs(offset, s->stride_w, s->in_w, &lo, &hi);                  \
                            if (s->stride_w == 1) add_strided_##T(sum, row, 1, offset, lo, hi);     \
                            else if (s->stride_w == 2) add_strided_##T(sum, row, 2, offset, lo, hi); \
                            else add_strided_##T(sum, row, s->stride_w, offset, lo, hi);            \
                        }                                                                           \
                    }                                                                               \
                    T* y = (T*)out + (item * s->out_h + oh) * s->out_w;                             \
                    for (int64_t o = o0; o < end; o++) y[o] = STORE(sum[o] / (C)pool_divisor(s, oh, o)); \
                }                                                                                   \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void avg_pool_last_##T(const char* in, char* out, const pool_call* s, int64_t items_begin, \
                                     int64_t items_end) {                                           \
        C sum[POOL_BLOCK];                                                                          \
        const T* pixel[POOL_PIXELS];                                                                \
        int64_t channels = s->channels;                                                             \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            const T* image = (const T*)in + item / s->out_h * s->in_h * s->in_w * channels;         \
            int64_t oh = item % s->out_h, top = oh * s->stride_h - s->pad_h;                        \
            int64_t h0 = max_i64(top, 0), h1 = min_i64(top + s->kernel_h, s->in_h);                 \
            for (int64_t ow = 0; ow < s->out_w; ow++) {                                             \
                int64_t left = ow * s->stride_w - s->pad_w;                                         \
                int64_t w0 = max_i64(left, 0), w1 = min_i64(left + s->kernel_w, s->in_w);           \
                C divisor = (C)pool_divisor(s, oh, ow);                                             \
                for (int64_t c0 = 0; c0 < channels; c0 += POOL_BLOCK) {                             \
                    int64_t m = min_i64(POOL_BLOCK, channels - c0), n = 0;                          \
                    for (int64_t c = 0; c < m; c++) sum[c] = 0;                                     \
                    for (int64_t h = h0; h < h1; h++)                                               \
                        for (int64_t w = w0; w < w1; w++) {                                         \
                            if (n == POOL_PIXELS) add_pixels_##T(sum, pixel, n, m), n = 0;          \
                            pixel[n++] = image + (h * s->in_w + w) * channels + c0;                 \
                        }                                                                           \
                    add_pixels_##T(sum, pixel, n, m);                                               \
                    T* y = (T*)out + (item * s->out_w + ow) * channels + c0;                        \
                    VECTORIZE for (int64_t c = 0; c < m; c++) y[c] = STORE(sum[c] / divisor);       \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* Each input row gathers from the output rows whose windows cover it. */                       \
    KERNEL_FN void avg_pool_backward_planes_##T(const char* grad, char* grad_in, const pool_call* s, \
                                                int64_t items_begin, int64_t items_end) {           \
        C sum[POOL_BLOCK], part[POOL_BLOCK];                                                        \
        const int64_t block = pool_block(s);                                                        \
        int64_t kw0, kw1;                                                                           \
        for (int64_t item = items_begin; item < items_end; item++)                                  \
            for (int64_t h = 0; h < s->in_h; h++)                                                   \
                for (int64_t w0 = 0; w0 < s->in_w; w0 += POOL_BLOCK) {                              \
                    int64_t m = min_i64(POOL_BLOCK, s->in_w - w0);                                  \
                    for (int64_t i = 0; i < m; i++) sum[i] = 0;                                     \
                    const int64_t bottom = h + s->pad_h, last = min_i64(bottom / s->stride_h, s->out_h - 1); \
                    for (int64_t oh = last; oh >= 0 && bottom - oh * s->stride_h < s->kernel_h; oh--) { \
                        const T* g = (const T*)grad + (item * s->out_h + oh) * s->out_w;            \
                        for (int64_t o0 = 0; o0 < s->out_w; o0 += block) {                          \
                            int64_t end = min_i64(o0 + block, s->out_w), start = s->pad_w + w0;     \
                            window_taps(o0 * s->stride_w - start, (end - 1) * s->stride_w - start, m, 1, s->kernel_w, &kw0, &kw1); \
                            for (int64_t o = o0; o < end; o++) part[o - o0] = LOAD(g[o]) / (C)pool_divisor(s, oh, o); \
                            for (int64_t kw = kw0; kw < kw1; kw++) {                                \
                                int64_t offset = kw - s->pad_w - w0, lo = o0, hi = end, stride = s->stride_w; \
                                valid_outputs(offset, stride, m, &lo, &hi);                         \
                                VECTORIZE for (int64_t o = lo; o < hi; o++) sum[o * stride + offset] += part[o - o0]; \
                            }                                                                       \
                        }                                                                           \
                    }                                                                               \
                    T* d = (T*)grad_in + (item * s->in_h + h) * s->in_w + w0;                       \
                    for (int64_t i = 0; i < m; i++) d[i] = STORE(sum[i]);                           \
                }                                                                                   \
    }                                                                                               \
    /* Windows that overlap in more than a thousand positions: divided at each use. */              \
    KERNEL_FN void avg_pool_backward_wide_##T(const char* grad, char* grad_in, const pool_call* s,  \
                                              int64_t items_begin, int64_t items_end) {             \
        C sum[POOL_BLOCK];                                                                          \
        int64_t channels = s->channels;                                                             \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            int64_t sample = item / s->in_h, h = item % s->in_h;                                    \
            for (int64_t w = 0; w < s->in_w; w++)                                                   \
                for (int64_t c0 = 0; c0 < channels; c0 += POOL_BLOCK) {                             \
                    int64_t m = min_i64(POOL_BLOCK, channels - c0);                                 \
                    for (int64_t c = 0; c < m; c++) sum[c] = 0;                                     \
                    const int64_t bottom = h + s->pad_h, right = w + s->pad_w;                      \
                    const int64_t oh_last = min_i64(bottom / s->stride_h, s->out_h - 1), ow_last = min_i64(right / s->stride_w, s->out_w - 1); \
                    for (int64_t oh = oh_last; oh >= 0 && bottom - oh * s->stride_h < s->kernel_h; oh--) \
                        for (int64_t ow = ow_last; ow >= 0 && right - ow * s->stride_w < s->kernel_w; ow--) { \
                            const T* g = (const T*)grad + ((sample * s->out_h + oh) * s->out_w + ow) * channels + c0; \
                            C divisor = (C)pool_divisor(s, oh, ow);                                 \
                            VECTORIZE for (int64_t c = 0; c < m; c++) sum[c] += LOAD(g[c]) / divisor; \
                        }                                                                           \
                    T* d = (T*)grad_in + (item * s->in_w + w) * channels + c0;                      \
                    VECTORIZE for (int64_t c = 0; c < m; c++) d[c] = STORE(sum[c]);                 \
                }                                                                                   \
        }                                                                                           \
    }                                                                                               \
    /* An output pixel is divided once for all the pixels of the row that it covers: the quotients of the windows over the \
     * current pixel are kept, a column of outputs in the place of the one that no longer covers it. */ \
    KERNEL_FN void avg_pool_backward_last_##T(const char* grad, char* grad_in, const pool_call* s,  \
                                              int64_t items_begin, int64_t items_end) {             \
        C quotients[POOL_QUOTIENTS];                                                                \
        const C* run[POOL_QUOTIENTS / POOL_LANES];                                                  \
        int64_t channels = s->channels, width = ceil_div(s->kernel_w, s->stride_w);                 \
        int64_t windows = width * ceil_div(s->kernel_h, s->stride_h);                               \
        int64_t block = min_i64(POOL_BLOCK, POOL_QUOTIENTS / windows / POOL_LANES * POOL_LANES);    \
        if (!block) {                                                                               \
            avg_pool_backward_wide_##T(grad, grad_in, s, items_begin, items_end);                   \
            return;                                                                                 \
        }                                                                                           \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            int64_t sample = item / s->in_h;                                                        \
            pool_cover rows = {-1, 0};                                                              \
            cover_position(&rows, item % s->in_h + s->pad_h, s->kernel_h, s->stride_h, s->out_h);   \
            int64_t oh_last = min_i64(rows.last, s->out_h - 1);                                     \
            for (int64_t c0 = 0; c0 < channels; c0 += block) {                                      \
                int64_t m = min_i64(block, channels - c0), next = 0;                                \
                pool_cover columns = {-1, 0};                                                       \
                for (int64_t w = 0; w < s->in_w; w++) {                                             \
                    cover_position(&columns, w + s->pad_w, s->kernel_w, s->stride_w, s->out_w);     \
                    int64_t ow_last = min_i64(columns.last, s->out_w - 1), n = 0;                   \
                    for (; next <= ow_last; next++)                                                 \
                        for (int64_t oh = oh_last; oh >= rows.first; oh--) {                        \
                            const T* g = (const T*)grad + ((sample * s->out_h + oh) * s->out_w + next) * channels + c0; \
                            C* q = quotients + ((oh_last - oh) * width + next % width) * block;     \
                            C divisor = (C)pool_divisor(s, oh, next);                               \
                            VECTORIZE for (int64_t c = 0; c < m; c++) q[c] = LOAD(g[c]) / divisor;  \
                        }                                                                           \
                    for (int64_t oh = oh_last; oh >= rows.first; oh--)                              \
                        for (int64_t ow = ow_last; ow >= columns.first; ow--)                       \
                            run[n++] = quotients + ((oh_last - oh) * width + ow % width) * block;   \
                    store_sums_##T((T*)grad_in + (item * s->in_w + w) * channels + c0, run, n, m);  \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }

/* ---- adaptive average: output o covers [floor(o in / out), ceil((o + 1) in / out)) ---- */
KERNEL_INLINE int64_t adaptive_start(int64_t o, int64_t out, int64_t in) { return o * in / out; }
KERNEL_INLINE int64_t adaptive_end(int64_t o, int64_t out, int64_t in) { return ((o + 1) * in + out - 1) / out; }

/* The outputs that cover input position i, floor(i out / in) .. ceil((i + 1) out / in) - 1, moved along without divisions. */
typedef struct {
    int64_t begin, end;
    int changed; /* since the position before */
} adaptive_cover;
KERNEL_INLINE void adaptive_advance(adaptive_cover* c, int64_t i, int64_t in, int64_t out) {
    c->changed = i == 0;
    while ((c->begin + 1) * in <= i * out) c->begin++, c->changed = 1;
    while (c->end * in < (i + 1) * out) c->end++, c->changed = 1;
}

#define DEFINE_ADAPTIVE_POOL(T, C, LOAD, STORE)                                                     \
    KERNEL_FN void adaptive_avg_pool_planes_##T(const char* in, char* out, const pool_call* s, int64_t items_begin, \
                                                int64_t items_end) {                                \
        C buf[POOL_BLOCK], column[POOL_BLOCK];                                                      \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            const T* plane = (const T*)in + item * s->in_h * s->in_w;                               \
            for (int64_t oh = 0; oh < s->out_h; oh++) {                                             \
                int64_t h0 = adaptive_start(oh, s->out_h, s->in_h), h1 = adaptive_end(oh, s->out_h, s->in_h); \
                /* several narrow windows: the rows are added up first, vector by vector */         \
                int narrow = s->out_w > 1 && s->in_w <= POOL_BLOCK;                                 \
                for (int64_t w = 0; narrow && w < s->in_w; w++) column[w] = 0;                      \
                for (int64_t h = h0; narrow && h < h1; h++) add_strided_##T(column, plane + h * s->in_w, 1, 0, 0, s->in_w); \
                for (int64_t ow = 0; ow < s->out_w; ow++) {                                         \
                    int64_t w0 = adaptive_start(ow, s->out_w, s->in_w), w1 = adaptive_end(ow, s->out_w, s->in_w); \
                    f64 sum = 0;                                                                    \
                    int64_t rows = narrow ? 0 : h1 - h0, width = w1 - w0;                           \
                    for (int64_t w = w0; narrow && w < w1; w++) sum += column[w];                   \
                    if (width == s->in_w) { /* whole rows: one run */                               \
                        width *= rows;                                                              \
                        rows = min_i64(rows, 1);                                                    \
                    }                                                                               \
                    for (int64_t h = h0; h < h0 + rows; h++)                                        \
                        for (int64_t i = 0; i < width; i += POOL_BLOCK) {                           \
                            int64_t m = min_i64(POOL_BLOCK, width - i);                             \
                            const T* p = plane + h * s->in_w + w0 + i;                              \
                            sum += block_sum_##C(stage_##T((const char*)p, sizeof(T), m, buf), buf, 0, m); \
                        }                                                                           \
                    ((T*)out)[(item * s->out_h + oh) * s->out_w + ow] = STORE((C)(sum / (f64)((h1 - h0) * (w1 - w0)))); \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void adaptive_avg_pool_last_##T(const char* in, char* out, const pool_call* s, int64_t items_begin, \
                                              int64_t items_end) {                                  \
        C sum[POOL_BLOCK];                                                                          \
        const T* pixel[POOL_PIXELS];                                                                \
        int64_t channels = s->channels;                                                             \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            const T* image = (const T*)in + item / s->out_h * s->in_h * s->in_w * channels;         \
            int64_t oh = item % s->out_h;                                                           \
            int64_t h0 = adaptive_start(oh, s->out_h, s->in_h), h1 = adaptive_end(oh, s->out_h, s->in_h); \
            for (int64_t ow = 0; ow < s->out_w; ow++) {                                             \
                int64_t w0 = adaptive_start(ow, s->out_w, s->in_w), w1 = adaptive_end(ow, s->out_w, s->in_w); \
                for (int64_t c0 = 0; c0 < channels; c0 += POOL_BLOCK) {                             \
                    int64_t m = min_i64(POOL_BLOCK, channels - c0), n = 0;                          \
                    for (int64_t c = 0; c < m; c++) sum[c] = 0;                                     \
                    for (int64_t h = h0; h < h1; h++)                                               \
                        for (int64_t w = w0; w < w1; w++) {                                         \
                            if (n == POOL_PIXELS) add_pixels_##T(sum, pixel, n, m), n = 0;          \
                            pixel[n++] = image + (h * s->in_w + w) * channels + c0;                 \
                        }                                                                           \
                    add_pixels_##T(sum, pixel, n, m);                                               \
                    T* y = (T*)out + (item * s->out_w + ow) * channels + c0;                        \
                    C divisor = (C)((h1 - h0) * (w1 - w0));                                         \
                    VECTORIZE for (int64_t c = 0; c < m; c++) y[c] = STORE(sum[c] / divisor);       \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    /* Rows (and pixels) that the same outputs cover have the same gradient: it is made once and copied. */ \
    KERNEL_FN void adaptive_avg_pool_backward_planes_##T(const char* grad, char* grad_in, const pool_call* s, \
                                                         int64_t items_begin, int64_t items_end) {  \
        C sum[POOL_BLOCK];                                                                          \
        for (int64_t item = items_begin; item < items_end; item++)                                  \
            for (int64_t w0 = 0; w0 < s->in_w; w0 += POOL_BLOCK) {                                  \
                int64_t m = min_i64(POOL_BLOCK, s->in_w - w0);                                      \
                adaptive_cover rows = {0, 0, 1};                                                    \
                T* d = (T*)grad_in + item * s->in_h * s->in_w + w0;                                 \
                for (int64_t h = 0; h < s->in_h; h++, d += s->in_w) {                               \
                    adaptive_advance(&rows, h, s->in_h, s->out_h);                                  \
                    if (!rows.changed) {                                                            \
                        memcpy(d, d - s->in_w, (size_t)m * sizeof(T));                              \
                        continue;                                                                   \
                    }                                                                               \
                    for (int64_t w = 0; w < m; w++) sum[w] = 0;                                     \
                    for (int64_t oh = rows.begin; oh < rows.end; oh++) {                            \
                        int64_t height = adaptive_end(oh, s->out_h, s->in_h) - adaptive_start(oh, s->out_h, s->in_h); \
                        const T* g = (const T*)grad + (item * s->out_h + oh) * s->out_w;            \
                        for (int64_t ow = 0; ow < s->out_w; ow++) {                                 \
                            int64_t first = adaptive_start(ow, s->out_w, s->in_w);                  \
                            int64_t end = adaptive_end(ow, s->out_w, s->in_w);                      \
                            C v = LOAD(g[ow]) / (C)(height * (end - first));                        \
                            for (int64_t w = max_i64(first - w0, 0); w < min_i64(end - w0, m); w++) sum[w] += v; \
                        }                                                                           \
                    }                                                                               \
                    for (int64_t w = 0; w < m; w++) d[w] = STORE(sum[w]);                           \
                }                                                                                   \
            }                                                                                       \
    }                                                                                               \
    KERNEL_FN void adaptive_avg_pool_backward_last_##T(const char* grad, char* grad_in, const pool_call* s, \
                                                       int64_t items_begin, int64_t items_end) {    \
        C sum[POOL_BLOCK];                                                                          \
        int64_t channels = s->channels;                                                             \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            int64_t sample = item / s->in_h, h = item % s->in_h;                                    \
            int64_t top = adaptive_start(h, s->in_h, s->out_h), bottom = adaptive_end(h, s->in_h, s->out_h); \
            adaptive_cover columns = {0, 0, 1};                                                     \
            T* d = (T*)grad_in + item * s->in_w * channels;                                         \
            for (int64_t w = 0; w < s->in_w; w++, d += channels) {                                  \
                adaptive_advance(&columns, w, s->in_w, s->out_w);                                   \
                if (!columns.changed) {                                                             \
                    memcpy(d, d - channels, (size_t)channels * sizeof(T));                          \
                    continue;                                                                       \
                }                                                                                   \
                for (int64_t c0 = 0; c0 < channels; c0 += POOL_BLOCK) {                             \
                    int64_t m = min_i64(POOL_BLOCK, channels - c0);                                 \
                    for (int64_t c = 0; c < m; c++) sum[c] = 0;                                     \
                    for (int64_t oh = top; oh < bottom; oh++)                                       \
                        for (int64_t ow = columns.begin; ow < columns.end; ow++) {                  \
                            int64_t rows = adaptive_end(oh, s->out_h, s->in_h) - adaptive_start(oh, s->out_h, s->in_h); \
                            int64_t width = adaptive_end(ow, s->out_w, s->in_w) - adaptive_start(ow, s->out_w, s->in_w); \
                            const T* g = (const T*)grad + ((sample * s->out_h + oh) * s->out_w + ow) * channels + c0; \
                            C divisor = (C)(rows * width);                                          \
                            VECTORIZE for (int64_t c = 0; c < m; c++) sum[c] += LOAD(g[c]) / divisor; \
                        }                                                                           \
                    VECTORIZE for (int64_t c = 0; c < m; c++) d[c0 + c] = STORE(sum[c]);            \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }

/* 32-bit compute types carry 32-bit indices, so that one vector shape serves both: in_h * in_w < 2^31. */
DEFINE_MAX_POOL(i32, i32, int32_t, IDENTITY, IDENTITY, INT32_MIN)
DEFINE_MAX_POOL(i64, i64, int64_t, IDENTITY, IDENTITY, INT64_MIN)
DEFINE_MAX_POOL(f16, f32, int32_t, ld_f16, st_f16, -INFINITY)
DEFINE_MAX_POOL(bf16, f32, int32_t, ld_bf16, st_bf16, -INFINITY)
DEFINE_MAX_POOL(f32, f32, int32_t, IDENTITY, IDENTITY, -INFINITY)
DEFINE_MAX_POOL(f64, f64, int64_t, IDENTITY, IDENTITY, -INFINITY)
DEFINE_AVG_POOL(i64, i64, IDENTITY, IDENTITY)
DEFINE_AVG_POOL(f16, f32, ld_f16, st_f16)
DEFINE_AVG_POOL(bf16, f32, ld_bf16, st_bf16)
DEFINE_AVG_POOL(f32, f32, IDENTITY, IDENTITY)
DEFINE_AVG_POOL(f64, f64, IDENTITY, IDENTITY)
DEFINE_ADAPTIVE_POOL(f16, f32, ld_f16, st_f16)
DEFINE_ADAPTIVE_POOL(bf16, f32, ld_bf16, st_bf16)
DEFINE_ADAPTIVE_POOL(f32, f32, IDENTITY, IDENTITY)
DEFINE_ADAPTIVE_POOL(f64, f64, IDENTITY, IDENTITY)

#endif
