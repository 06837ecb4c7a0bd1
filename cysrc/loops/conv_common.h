/* What the convolution kernels share: sizes, copies of strided runs, transposes. Vectors of AVX-512 have masked forms. */
#ifndef CONV_COMMON_H
#define CONV_COMMON_H
#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "../core/transpose.h"
#include "conv.h"
#include "kernel_base.h"

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
#endif
