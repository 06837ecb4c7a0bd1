/* What the convolution kernels share: sizes, copies of strided runs, transposes. Vectors of AVX-512 have masked forms. */
#ifndef CONV_COMMON_H
#define CONV_COMMON_H
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "../core/transpose.h"
#include "conv.h"
#include "kernel_base.h"
#include "lanes.h"

KERNEL_INLINE int64_t conv_blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }
KERNEL_INLINE int64_t conv_rounded(int64_t n, int64_t block) { return (n + block - 1) / block * block; }
KERNEL_INLINE int64_t conv_taps(const conv_problem* s) { return s->kernel_h * s->kernel_w; }
KERNEL_INLINE int64_t conv_group_in(const conv_problem* s) { return s->c_in / s->groups; }
KERNEL_INLINE int64_t conv_group_out(const conv_problem* s) { return s->c_out / s->groups; }
KERNEL_INLINE int64_t conv_pixels(const conv_problem* s) { return s->out_h * s->out_w; }
KERNEL_INLINE int conv_is_depthwise(const conv_problem* s) { return s->groups > 1 && s->groups == s->c_in; }
KERNEL_INLINE int conv_is_reversible(const conv_problem* s) { return s->stride_h * s->stride_w == 1; }
/* On all of an image: a transposed convolution's output may be larger than its input by an output_padding. */
KERNEL_INLINE int conv_is_pointwise(const conv_problem* s) {
    return conv_taps(s) == 1 && s->stride_h * s->stride_w == 1 && s->pad_h == 0 && s->pad_w == 0 && s->in_h == s->out_h && s->in_w == s->out_w;
}

/* The problem whose forward pass is the gradient of the input of a stride-1 convolution: channels and planes change places. */
KERNEL_INLINE conv_problem conv_reversed(const conv_problem* s) {
    conv_problem r = *s;
    r.c_in = s->c_out, r.in_h = s->out_h, r.in_w = s->out_w;
    r.c_out = s->c_in, r.out_h = s->in_h, r.out_w = s->in_w;
    r.pad_h = s->dilation_h * (s->kernel_h - 1) - s->pad_h;
    r.pad_w = s->dilation_w * (s->kernel_w - 1) - s->pad_w;
    r.w_out = s->w_in, r.w_in = s->w_out;
    r.w_first = s->w_first + (conv_taps(s) - 1) * s->w_tap, r.w_tap = -s->w_tap;
    return r;
}

/* Positions t in [*lo, *hi) have 0 <= start + t * stride < size. */
KERNEL_INLINE void conv_range(int64_t start, int64_t stride, int64_t size, int64_t* lo, int64_t* hi) {
    if (start + *lo * stride >= 0 && start + (*hi - 1) * stride < size) return; /* mostly, and without a division */
    int64_t first = start >= 0 ? 0 : (-start + stride - 1) / stride;
    int64_t last = size > start ? (size - start + stride - 1) / stride : 0;
    *lo = min_i64(max_i64(*lo, first), *hi);
    *hi = max_i64(min_i64(*hi, last), *lo);
}

#if VECTOR_BYTES == 64
KERNEL_INLINE __mmask16 lanes_inside(int64_t start, int64_t size) {
    int64_t lo = min_i64(max_i64(-start, 0), 16), hi = min_i64(max_i64(size - start, 0), 16);
    return (__mmask16)(((1u << hi) - 1) & ~((1u << lo) - 1));
}
#endif

/* A square of vectors a side: to[j * to_row + i] = from[i * from_row + j]. */
KERNEL_INLINE void conv_square_f32(const f32* from, int64_t from_row, f32* to, int64_t to_row) { transpose_words((const uint32_t*)from, from_row, (uint32_t*)to, to_row); }
KERNEL_INLINE void conv_square_f64(const f64* from, int64_t from_row, f64* to, int64_t to_row) { transpose_longs((const uint64_t*)from, from_row, (uint64_t*)to, to_row); }

/* The first n lanes of p, the others zero; and the first n lanes of v written to p. Whole vectors where n is their width. */
#if VECTOR_BYTES == 64
KERNEL_INLINE vf32 conv_load_f32(const f32* p, int64_t n) { return (vf32)_mm512_maskz_loadu_ps(lanes_inside(0, n), p); }
KERNEL_INLINE void conv_store_f32(f32* p, vf32 v, int64_t n) { _mm512_mask_storeu_ps(p, lanes_inside(0, n), (__m512)v); }
#elif VECTOR_BYTES == 32
KERNEL_INLINE __m256i conv_lanes(int64_t n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)min_i64(n, 8)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
KERNEL_INLINE vf32 conv_load_f32(const f32* p, int64_t n) {
    return n >= 8 ? (vf32)(*(const vf32_u*)p) : (vf32)_mm256_maskload_ps(p, conv_lanes(n));
}
KERNEL_INLINE void conv_store_f32(f32* p, vf32 v, int64_t n) {
    if (n >= 8) *(vf32_u*)p = v;
    else _mm256_maskstore_ps(p, conv_lanes(n), (__m256)v);
}
#else
KERNEL_INLINE vf32 conv_load_f32(const f32* p, int64_t n) {
    vf32 v = {0};
    for (int64_t j = 0; j < min_i64(n, 4); j++) v[j] = p[j];
    return v;
}
KERNEL_INLINE void conv_store_f32(f32* p, vf32 v, int64_t n) {
    for (int64_t j = 0; j < min_i64(n, 4); j++) p[j] = v[j];
}
#endif
KERNEL_INLINE vf64 conv_load_f64(const f64* p, int64_t n) {
    enum { W = VECTOR_BYTES / 8 };
    if (n >= W) return *(const vf64_u*)p;
    vf64 v = {0};
    for (int64_t j = 0; j < n; j++) v[j] = p[j];
    return v;
}
KERNEL_INLINE void conv_store_f64(f64* p, vf64 v, int64_t n) {
    enum { W = VECTOR_BYTES / 8 };
    if (n >= W) *(vf64_u*)p = v;
    else
        for (int64_t j = 0; j < n; j++) p[j] = v[j];
}
typedef uint16_t half; /* the bits of one */
/* to[x * to_row + y] = from[y * from_row + x] for x < across and y < down. */
KERNEL_ONCE void turn_halves(const half* from, int64_t from_row, half* to, int64_t to_row, int64_t down, int64_t across) {
    enum { FEW = 4 };
    if (down <= FEW) {
        for (int64_t y = 0; y < down; y++)
            for (int64_t x = 0; x < across; x++) to[x * to_row + y] = from[y * from_row + x];
        return;
    }
#if VECTOR_BYTES == 64
    uint32_t square[16 * 16] __attribute__((aligned(64))), turned[16 * 16] __attribute__((aligned(64)));
    for (int64_t x = 0; x < across; x += 16)
        for (int64_t y = 0; y < down; y += 32) { /* pairs of rows are words, whose squares are transposed */
            const int64_t rows = min_i64(32, down - y), wide = min_i64(16, across - x);
            const __mmask16 mask = (__mmask16)((1u << wide) - 1);
            const half* at = from + y * from_row + x;
            for (int64_t i = 0; i < rows; i += 2, at += 2 * from_row) {
                const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at));
                const __m512i high = i + 1 < rows ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, at + from_row)) : _mm512_setzero_si512();
                _mm512_store_si512(square + i / 2 * 16, _mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
            }
            transpose_words(square, 16, turned, 16);
            half* out = to + x * to_row + y;
            if (rows == 32)
                for (int64_t i = 0; i < wide; i++) memcpy(out + i * to_row, turned + i * 16, 64);
            else if (rows == 16)
                for (int64_t i = 0; i < wide; i++) memcpy(out + i * to_row, turned + i * 16, 32);
            else
                for (int64_t i = 0; i < wide; i++) memcpy(out + i * to_row, turned + i * 16, (size_t)rows * 2);
        }
#else
    const int64_t whole_x = across / 8 * 8, whole_y = down / 8 * 8;
    for (int64_t x = 0; x < whole_x; x += 8)
        for (int64_t y = 0; y < whole_y; y += 8) transpose_halves(from + y * from_row + x, from_row, to + x * to_row + y, to_row);
    for (int64_t y = 0; y < down; y++)
        for (int64_t x = y < whole_y ? whole_x : 0; x < across; x++) to[x * to_row + y] = from[y * from_row + x];
#endif
}

/* bfloat16 as float32: what FN(...)_h32 works on, in memory and in registers */
typedef f32 h32;
typedef vf32 vh32;
typedef vf32_u vh32_u;
#if VECTOR_BYTES >= 32
KERNEL_INLINE vf32 conv_take_h32(const bf16* p, int64_t n) { return (vf32)read_bf16(p, n); }
KERNEL_INLINE void conv_put_h32(bf16* p, vf32 v, int64_t n) { write_bf16(p, (lanes_f32)v, n); }
#else
KERNEL_INLINE vf32 conv_take_h32(const bf16* p, int64_t n) {
    vf32 v = {0};
    for (int64_t j = 0; j < min_i64(n, 4); j++) v[j] = ld_bf16(p[j]);
    return v;
}
KERNEL_INLINE void conv_put_h32(bf16* p, vf32 v, int64_t n) {
    for (int64_t j = 0; j < min_i64(n, 4); j++) p[j] = st_bf16(v[j]);
}
#endif
#define conv_take_f32 conv_load_f32
#define conv_take_f64 conv_load_f64
#define conv_put_f32 conv_store_f32
#define conv_put_f64 conv_store_f64
#define conv_load_h32 conv_load_f32
#define conv_store_h32 conv_store_f32
#define conv_transpose_h32 conv_transpose_f32
#endif
