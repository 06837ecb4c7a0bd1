/* What the convolution kernels share: sizes, copies of strided runs, transposes. Vectors of AVX-512 have masked forms. */
#ifndef CONV_COMMON_H
#define CONV_COMMON_H
#ifdef __AVX2__
#include <immintrin.h>
#endif

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
KERNEL_INLINE int conv_is_pointwise(const conv_problem* s) {
    return conv_taps(s) == 1 && s->stride_h * s->stride_w == 1 && s->pad_h == 0 && s->pad_w == 0;
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

/* A square of vectors transposed in registers: dst[j][i] = src[i][j], both LANES wide. */
#if VECTOR_BYTES == 64
KERNEL_INLINE void conv_square_f32(const vf32* src, vf32* dst) {
    __m512 r[16], t[16];
    UNROLL for (int k = 0; k < 16; k += 2) {
        t[k] = _mm512_unpacklo_ps((__m512)src[k], (__m512)src[k + 1]);
        t[k + 1] = _mm512_unpackhi_ps((__m512)src[k], (__m512)src[k + 1]);
    }
    UNROLL for (int k = 0; k < 16; k += 4) {
        __m512d a = (__m512d)t[k], b = (__m512d)t[k + 1], c = (__m512d)t[k + 2], d = (__m512d)t[k + 3];
        r[k] = (__m512)_mm512_unpacklo_pd(a, c);
        r[k + 1] = (__m512)_mm512_unpackhi_pd(a, c);
        r[k + 2] = (__m512)_mm512_unpacklo_pd(b, d);
        r[k + 3] = (__m512)_mm512_unpackhi_pd(b, d);
    }
    UNROLL for (int k = 0; k < 4; k++) {
        __m512 ab = _mm512_shuffle_f32x4(r[k], r[k + 4], 0x88), cd = _mm512_shuffle_f32x4(r[k + 8], r[k + 12], 0x88);
        dst[k] = (vf32)_mm512_shuffle_f32x4(ab, cd, 0x88);
        dst[k + 8] = (vf32)_mm512_shuffle_f32x4(ab, cd, 0xdd);
        ab = _mm512_shuffle_f32x4(r[k], r[k + 4], 0xdd), cd = _mm512_shuffle_f32x4(r[k + 8], r[k + 12], 0xdd);
        dst[k + 4] = (vf32)_mm512_shuffle_f32x4(ab, cd, 0x88);
        dst[k + 12] = (vf32)_mm512_shuffle_f32x4(ab, cd, 0xdd);
    }
}
#elif VECTOR_BYTES == 32
KERNEL_INLINE void conv_square_f32(const vf32* src, vf32* dst) {
    __m256 h[8], t[8];
    UNROLL for (int k = 0; k < 4; k++) {
        h[k] = _mm256_permute2f128_ps((__m256)src[k], (__m256)src[k + 4], 0x20);
        h[k + 4] = _mm256_permute2f128_ps((__m256)src[k], (__m256)src[k + 4], 0x31);
    }
    UNROLL for (int k = 0; k < 8; k += 2) {
        t[k] = _mm256_unpacklo_ps(h[k], h[k + 1]);
        t[k + 1] = _mm256_unpackhi_ps(h[k], h[k + 1]);
    }
    UNROLL for (int k = 0; k < 8; k += 4) {
        dst[k] = (vf32)_mm256_unpacklo_pd((__m256d)t[k], (__m256d)t[k + 2]);
        dst[k + 1] = (vf32)_mm256_unpackhi_pd((__m256d)t[k], (__m256d)t[k + 2]);
        dst[k + 2] = (vf32)_mm256_unpacklo_pd((__m256d)t[k + 1], (__m256d)t[k + 3]);
        dst[k + 3] = (vf32)_mm256_unpackhi_pd((__m256d)t[k + 1], (__m256d)t[k + 3]);
    }
}
#else
KERNEL_INLINE void conv_square_f32(const vf32* src, vf32* dst) {
    UNROLL for (int i = 0; i < 4; i++)
        UNROLL for (int j = 0; j < 4; j++) dst[j][i] = src[i][j];
}
#endif
KERNEL_INLINE void conv_square_f64(const vf64* src, vf64* dst) {
    enum { W = VECTOR_BYTES / 8 };
    UNROLL for (int i = 0; i < W; i++)
        UNROLL for (int j = 0; j < W; j++) dst[j][i] = src[i][j];
}

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
