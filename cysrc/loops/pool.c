/* Adaptive maximum over planes: output o takes the inputs [floor(o in / out), ceil((o + 1) in / out)). The first of equals
 * in scan order wins, as does the last NaN. In planes the maximum of a large window is computed in lanes, row by row,
 * and then looked for in its row, unless the window is not finite (0 * x is not 0). Work items and layouts as in pool.h.
 * Instruction sets: base, avx2 (tools/measure_isa.py: others gain nothing). */
#include <math.h>
#include <string.h>
#include "../core/isa.h"
#include "pool_tables.h"
#include "scalar_types.h"

enum { CHANNEL_BLOCK = 256, LANES_f32 = 8, LANES_f16 = 8, LANES_bf16 = 8, LANES_f64 = 4, LARGE = 48 /* elements of a window from which two passes are faster */ };
typedef f32 lanes_f32 __attribute__((vector_size(32)));
typedef i32 mask_f32 __attribute__((vector_size(32)));
typedef f64 lanes_f64 __attribute__((vector_size(32)));
typedef i64 mask_f64 __attribute__((vector_size(32)));
typedef lanes_f32 lanes_f16, lanes_bf16;
typedef mask_f32 mask_f16, mask_bf16;
#define SAME(x) (x)
/* One instruction: the barrier keeps the compiler from a branch. */
#define LARGER(a, b) ({ __typeof__(b) larger_ = (a) > (b) ? (a) : (b); __asm__("" : "+x"(larger_)); larger_; })

INL i64 window_start(i64 o, i64 in, i64 out) { return o * in / out; }
INL i64 window_end(i64 o, i64 in, i64 out) { return ((o + 1) * in + out - 1) / out; }

#define ADAPTIVE_MAX(T, C, I, LD, ST)                                                                                \
    static void adaptive_max_planes_##T(const char *in, char *out, i64 *indices, const pool_call *s, i64 begin, i64 end)\
    {                                                                                                                \
        i64 at = begin * s->out_h * s->out_w;                                                                        \
        for (i64 item = begin; item < end; item++) {                                                                 \
            const T *plane = (const T *)in + item * s->in_h * s->in_w;                                               \
            for (i64 oh = 0; oh < s->out_h; oh++)                                                                    \
                for (i64 ow = 0; ow < s->out_w; ow++, at++) {                                                        \
                    i64 h0 = window_start(oh, s->in_h, s->out_h), h1 = window_end(oh, s->in_h, s->out_h);            \
                    i64 w0 = window_start(ow, s->in_w, s->out_w), w1 = window_end(ow, s->in_w, s->out_w);            \
                    i64 index = h0 * s->in_w + w0;                                                                   \
                    i64 rows = h1 - h0, row = w1 - w0;                                                               \
                    C best = -INFINITY;                                                                              \
                    if (row == s->in_w)                                                                              \
                        row *= rows, rows = 1; /* rows of whole lines lie one behind the other */                    \
                    if (rows * row >= LARGE) {                                                                       \
                        C most = -INFINITY, last[LANES_##T], spread = 0;                                             \
                        i64 first = 0, w;                                                                            \
                        lanes_##T low, odd = {0};                                                                    \
                        for (int k = 0; k < LANES_##T; k++)                                                          \
                            low[k] = -INFINITY;                                                                      \
                        for (i64 h = 0; h < rows; h++) {                                                             \
                            const T *x = plane + index + h * s->in_w;                                                \
                            lanes_##T top = low, v;                                                                  \
                            for (w = 0; w + LANES_##T <= row; w += LANES_##T) {                                      \
                                for (int k = 0; k < LANES_##T; k++)                                                  \
                                    v[k] = LD(x[w + k]);                                                             \
                                mask_##T larger = v > top;                                                           \
                                top = (lanes_##T)(((mask_##T)v & larger) | ((mask_##T)top & ~larger));               \
                                odd += v * 0;                                                                        \
                            }                                                                                        \
                            memcpy(last, &top, sizeof last);                                                         \
                            for (; w < row; w++) {                                                                   \
                                C v = LD(x[w]);                                                                      \
                                last[0] = LARGER(v, last[0]), spread += v * 0;                                       \
                            }                                                                                        \
                            for (int n = LANES_##T / 2; n; n /= 2)                                                   \
                                for (int k = 0; k < n; k++)                                                          \
                                    last[k] = LARGER(last[k + n], last[k]);                                          \
                            first = last[0] > most ? h : first;                                                      \
                            most = LARGER(last[0], most);                                                            \
                        }                                                                                            \
                        for (int k = 0; k < LANES_##T; k++)                                                          \
                            spread += odd[k];                                                                        \
                        if (spread == 0) { /* finite: it lies in the first row whose maximum it is */                \
                            for (index += first * s->in_w, w = 1; w < row && LD(plane[index]) != most; w++)          \
                                index++;                                                                             \
                            ((T *)out)[at] = plane[index];                                                           \
                            indices[at] = index;                                                                     \
                            continue;                                                                                \
                        }                                                                                            \
                    }                                                                                                \
                    for (i64 h = h0; h < h1; h++)                                                                    \
                        for (i64 w = w0; w < w1; w++) {                                                              \
                            C v = LD(plane[h * s->in_w + w]);                                                        \
                            if (v > best || v != v) {                                                                \
                                best = v;                                                                            \
                                index = h * s->in_w + w;                                                             \
                            }                                                                                        \
                        }                                                                                            \
                    ((T *)out)[at] = ST(best);                                                                       \
                    indices[at] = index;                                                                             \
                }                                                                                                    \
        }                                                                                                            \
    }                                                                                                                \
    static void adaptive_max_last_##T(const char *in, char *out, i64 *indices, const pool_call *s, i64 begin, i64 end) \
    {                                                                                                                \
        const i64 channels = s->channels;                                                                            \
        C best[CHANNEL_BLOCK];                                                                                       \
        I index[CHANNEL_BLOCK];                                                                                      \
        for (i64 item = begin; item < end; item++) {                                                                 \
            const T *image = (const T *)in + item / s->out_h * s->in_h * s->in_w * channels;                         \
            i64 oh = item % s->out_h, h0 = window_start(oh, s->in_h, s->out_h), h1 = window_end(oh, s->in_h, s->out_h); \
            for (i64 ow = 0; ow < s->out_w; ow++)                                                                    \
                for (i64 c0 = 0; c0 < channels; c0 += CHANNEL_BLOCK) {                                               \
                    i64 m = channels - c0 < CHANNEL_BLOCK ? channels - c0 : CHANNEL_BLOCK;                           \
                    i64 w0 = window_start(ow, s->in_w, s->out_w), w1 = window_end(ow, s->in_w, s->out_w);            \
                    i64 at = (item * s->out_w + ow) * channels + c0;                                                 \
                    for (i64 c = 0; c < m; c++) {                                                                    \
                        best[c] = -INFINITY;                                                                         \
                        index[c] = (I)(h0 * s->in_w + w0);                                                           \
                    }                                                                                                \
                    for (i64 h = h0; h < h1; h++)                                                                    \
                        for (i64 w = w0; w < w1; w++) {                                                              \
                            const T *x = image + (h * s->in_w + w) * channels + c0;                                  \
                            I position = (I)(h * s->in_w + w);                                                       \
                            for (i64 c = 0; c < m; c++) {                                                            \
                                C v = LD(x[c]);                                                                      \
                                int better = (v > best[c]) | (v != v);                                               \
                                best[c] = better ? v : best[c];                                                      \
                                index[c] = better ? position : index[c];                                             \
                            }                                                                                        \
                        }                                                                                            \
                    for (i64 c = 0; c < m; c++)                                                                      \
                        ((T *)out)[at + c] = ST(best[c]);                                                            \
                    for (i64 c = 0; c < m; c++)                                                                      \
                        indices[at + c] = index[c];                                                                  \
                }                                                                                                    \
        }                                                                                                            \
    }
/* 32-bit values carry 32-bit positions, so that one vector shape serves both: planes have fewer than 2^31 elements. */
ADAPTIVE_MAX(f16, f32, i32, ld_f16, st_f16)
ADAPTIVE_MAX(bf16, f32, i32, ld_bf16, st_bf16)
ADAPTIVE_MAX(f32, f32, i32, SAME, SAME)
ADAPTIVE_MAX(f64, f64, i64, SAME, SAME)

void ISA_NAME(adaptive_max)(int dtype, int last, const char *in, char *out, int64_t *indices, const pool_call *s, int64_t begin, int64_t end)
{
    switch (dtype) {
#define CASE(T) case DT_##T: (last ? adaptive_max_last_##T : adaptive_max_planes_##T)(in, out, indices, s, begin, end); break;
    CASE(f16) CASE(bf16) CASE(f32) CASE(f64)
    }
}
