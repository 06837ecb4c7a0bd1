/* Two-dimensional convolution of contiguous NCHW tensors: forward, gradient of the input, gradient of the weight
 * (f32, f64; halves are staged to f32 by the caller). Groups, stride, padding, dilation.
 *
 * Implicit GEMM with its own micro kernel: CONV_ROWS x 2 vectors of accumulators stay in registers while one
 * broadcast operand (packed weights) meets panels of CONV_COLS output positions. Panels of the input are
 * packed tile by tile into a per-thread workspace that fits L2, never for a whole image; a 1x1 convolution reads
 * the input itself. Depthwise convolutions have direct loops. Work items are independent and every sum runs in an
 * order fixed by the shape, so results do not depend on threads. The caller packs weights once per call:
 *
 *   packed = buffer(conv.packed_weight_bytes(s)); conv.pack_forward(s, weight, packed)
 *   in each thread: conv.forward(s, x, packed, weight, bias or null, y, workspace(conv.workspace_bytes(s)), begin, end)
 *   with items [0, conv.forward_items(s)); likewise backward_input (pack_backward_input) and backward_weight. */
#ifndef TRT_CONV_H
#define TRT_CONV_H

#include "kernel_base.h"
#include "kernels.h"

#if VECTOR_BYTES == 64
enum { CONV_ROWS = 12 };
#else
enum { CONV_ROWS = 6 }; /* 16 registers: 12 accumulators, 2 columns, 1 broadcast */
#endif
/* CONV_PIXELS: output positions of one tile of the weight gradient; its leading dimension is no multiple of 4 KB. */
enum { CONV_TILE_BYTES = 1 << 18, CONV_MAX_PANELS = 8, CONV_PIXELS = 256, CONV_PIXELS_LD = 272, CONV_DOT = 4 };
#define CONV_COLS(T) (2 * VECTOR_BYTES / (int64_t)sizeof(T))

KERNEL_INLINE int64_t conv_blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }
KERNEL_INLINE int64_t conv_depth(const conv_shape* s) { return s->c_in / s->groups * s->kernel_h * s->kernel_w; }
KERNEL_INLINE int64_t conv_pixels(const conv_shape* s) { return s->out_h * s->out_w; }
KERNEL_INLINE int conv_is_depthwise(const conv_shape* s) { return s->groups > 1 && s->groups == s->c_in; }
KERNEL_INLINE int conv_is_pointwise(const conv_shape* s) {
    return s->kernel_h * s->kernel_w == 1 && s->stride_h * s->stride_w == 1 && s->pad_h == 0 && s->pad_w == 0;
}
/* Positions t in [*lo, *hi) have 0 <= start + t * stride < size. */
KERNEL_INLINE void conv_range(int64_t start, int64_t stride, int64_t size, int64_t* lo, int64_t* hi) {
    int64_t first = start >= 0 ? 0 : (-start + stride - 1) / stride;
    int64_t last = size > start ? (size - start + stride - 1) / stride : 0;
    *lo = max_i64(*lo, first);
    *hi = min_i64(*hi, last);
}

/* Input channels of one work item of a backward pass, which then works on about `target` rows of K. */
KERNEL_INLINE int64_t conv_channel_block(const conv_shape* s, int64_t target) {
    return min_i64(max_i64(target / (s->kernel_h * s->kernel_w), 1), s->c_in / s->groups);
}
enum { CONV_INPUT_ROWS = 144, CONV_WEIGHT_ROWS = 288 };
KERNEL_INLINE int64_t conv_weight_blocks(const conv_shape* s) {
    return conv_blocks(s->c_in / s->groups, conv_channel_block(s, CONV_WEIGHT_ROWS));
}
/* Output channels of one item of the weight gradient: fewer where there would be too few items to share. */
KERNEL_INLINE int64_t conv_out_block(const conv_shape* s) {
    return conv_weight_blocks(s) * conv_blocks(s->c_out / s->groups, 64) >= 4 ? 64 : 32;
}

/* One run of output positions of a panel that share an output row. */
typedef struct {
    int64_t at, length, h, w; /* first column; input position of kernel element (0, 0) */
} conv_run;

KERNEL_INLINE int conv_runs(const conv_shape* s, int64_t p0, int64_t cols, conv_run* runs) {
    int count = 0;
    for (int64_t j = 0; j < cols;) {
        int64_t oh = (p0 + j) / s->out_w, ow = (p0 + j) % s->out_w, length = min_i64(cols - j, s->out_w - ow);
        runs[count++] = (conv_run){j, length, oh * s->stride_h - s->pad_h, ow * s->stride_w - s->pad_w};
        j += length;
    }
    return count;
}

#if VECTOR_BYTES == 64
KERNEL_INLINE __mmask16 lanes_inside(int64_t start, int64_t size) {
    int64_t lo = min_i64(max_i64(-start, 0), 16), hi = min_i64(max_i64(size - start, 0), 16);
    return (__mmask16)(((1u << hi) - 1) & ~((1u << lo) - 1));
}
#endif
/* dst[t] = row[start + t * stride], zero outside [0, size), for t < length; the same for each of `channels` planes,
 * so that the masks are made once */
KERNEL_INLINE void conv_copy_f32(f32* dst, int64_t ld, const f32* row, int64_t plane, int64_t channels, int64_t start,
                                 int64_t stride, int64_t size, int64_t length) {
#if VECTOR_BYTES == 64
    if (stride <= 2) {
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        for (int64_t t = 0; t < length; t += 16) {
            int64_t at = start + stride * t;
            __mmask16 first = lanes_inside(at, size), second = lanes_inside(at + 16, size);
            __mmask16 write = lanes_inside(0, length - t);
            const f32* p = row + at;
            f32* q = dst + t;
            if (stride == 1) {
                for (int64_t c = 0; c < channels; c++, p += plane, q += ld)
                    _mm512_mask_storeu_ps(q, write, _mm512_maskz_loadu_ps(first, p));
            } else {
                for (int64_t c = 0; c < channels; c++, p += plane, q += ld) {
                    __m512 low = _mm512_maskz_loadu_ps(first, p), high = _mm512_maskz_loadu_ps(second, p + 16);
                    _mm512_mask_storeu_ps(q, write, _mm512_permutex2var_ps(low, even, high));
                }
            }
        }
        return;
    }
#endif
    int64_t lo = 0, hi = length;
    conv_range(start, stride, size, &lo, &hi);
    for (int64_t c = 0; c < channels; c++, row += plane, dst += ld)
        for (int64_t t = 0; t < length; t++) dst[t] = t >= lo && t < hi ? row[start + t * stride] : 0;
}
KERNEL_INLINE void conv_copy_f64(f64* dst, int64_t ld, const f64* row, int64_t plane, int64_t channels, int64_t start,
                                 int64_t stride, int64_t size, int64_t length) {
    int64_t lo = 0, hi = length;
    conv_range(start, stride, size, &lo, &hi);
    for (int64_t c = 0; c < channels; c++, row += plane, dst += ld)
        for (int64_t t = 0; t < length; t++) dst[t] = t >= lo && t < hi ? row[start + t * stride] : 0;
}

/* dst[j][i] = src[i][j] for i < rows, j < cols */
KERNEL_INLINE void conv_transpose_f64(const f64* src, int64_t ld, f64* dst, int64_t ldt, int64_t rows, int64_t cols) {
    for (int64_t j = 0; j < cols; j++)
        for (int64_t i = 0; i < rows; i++) dst[j * ldt + i] = src[i * ld + j];
}
KERNEL_INLINE void conv_transpose_f32(const f32* src, int64_t ld, f32* dst, int64_t ldt, int64_t rows, int64_t cols) {
    int64_t i = 0;
#if VECTOR_BYTES == 64
    for (; i + 16 <= rows; i += 16) {
        for (int64_t j = 0; j < cols; j += 16) {
            __m512 r[16], t[16];
            __mmask16 inside = lanes_inside(0, cols - j);
            _Pragma("GCC unroll 16") for (int k = 0; k < 16; k++)
                r[k] = _mm512_maskz_loadu_ps(inside, src + (i + k) * ld + j);
            _Pragma("GCC unroll 8") for (int k = 0; k < 16; k += 2) {
                t[k] = _mm512_unpacklo_ps(r[k], r[k + 1]);
                t[k + 1] = _mm512_unpackhi_ps(r[k], r[k + 1]);
            }
            _Pragma("GCC unroll 4") for (int k = 0; k < 16; k += 4) {
                __m512d a = (__m512d)t[k], b = (__m512d)t[k + 1], c = (__m512d)t[k + 2], d = (__m512d)t[k + 3];
                r[k] = (__m512)_mm512_unpacklo_pd(a, c);
                r[k + 1] = (__m512)_mm512_unpackhi_pd(a, c);
                r[k + 2] = (__m512)_mm512_unpacklo_pd(b, d);
                r[k + 3] = (__m512)_mm512_unpackhi_pd(b, d);
            }
            _Pragma("GCC unroll 4") for (int k = 0; k < 4; k++) {
                __m512 ab = _mm512_shuffle_f32x4(r[k], r[k + 4], 0x88), cd = _mm512_shuffle_f32x4(r[k + 8],
                        r[k + 12], 0x88);
                t[k] = _mm512_shuffle_f32x4(ab, cd, 0x88);
                t[k + 8] = _mm512_shuffle_f32x4(ab, cd, 0xdd);
                ab = _mm512_shuffle_f32x4(r[k], r[k + 4], 0xdd), cd = _mm512_shuffle_f32x4(r[k + 8], r[k + 12], 0xdd);
                t[k + 4] = _mm512_shuffle_f32x4(ab, cd, 0x88);
                t[k + 12] = _mm512_shuffle_f32x4(ab, cd, 0xdd);
            }
            _Pragma("GCC unroll 16") for (int k = 0; k < 16; k++)
                if (j + k < cols) _mm512_storeu_ps(dst + (j + k) * ldt + i, t[k]);
        }
    }
#endif
    for (int64_t j = 0; j < cols; j++)
        for (int64_t k = i; k < rows; k++) dst[j * ldt + k] = src[k * ld + j];
}

/* The shape whose forward is the gradient of the input of a stride-1 convolution: channels and planes change places. */
KERNEL_INLINE conv_shape conv_reversed(const conv_shape* s) {
    conv_shape r = *s;
    r.c_in = s->c_out, r.in_h = s->out_h, r.in_w = s->out_w;
    r.c_out = s->c_in, r.out_h = s->in_h, r.out_w = s->in_w;
    r.pad_h = s->dilation_h * (s->kernel_h - 1) - s->pad_h;
    r.pad_w = s->dilation_w * (s->kernel_w - 1) - s->pad_w;
    return r;
}
KERNEL_INLINE int conv_is_reversible(const conv_shape* s) { return s->stride_h * s->stride_w == 1; }

/* Depthwise: a plane padded by zeros on all sides, so that every vector of every output row can be loaded whole. */
KERNEL_INLINE int64_t conv_padded_h(const conv_shape* s) {
    return (s->out_h - 1) * s->stride_h + (s->kernel_h - 1) * s->dilation_h + 1;
}
KERNEL_INLINE int64_t conv_padded_w(const conv_shape* s, int64_t lanes) {
    return (conv_blocks(s->out_w, lanes) + 1) * lanes * s->stride_w + (s->kernel_w - 1) * s->dilation_w;
}

/* row[t * stride] += d[t] for t in [lo, hi) */
KERNEL_INLINE void conv_add_run_f32(f32* row, const f32* d, int64_t stride, int64_t lo, int64_t hi) {
#if VECTOR_BYTES == 64
    if (stride == 1) { /* runs are short: one masked vector instead of a scalar remainder */
        for (int64_t t = lo; t < hi; t += 16) {
            __mmask16 m = lanes_inside(0, hi - t);
            __m512 sum = _mm512_add_ps(_mm512_maskz_loadu_ps(m, row + t), _mm512_maskz_loadu_ps(m, d + t));
            _mm512_mask_storeu_ps(row + t, m, sum);
        }
        return;
    }
#endif
    for (int64_t t = lo; t < hi; t++) row[t * stride] += d[t];
}
KERNEL_INLINE void conv_add_run_f64(f64* row, const f64* d, int64_t stride, int64_t lo, int64_t hi) {
    for (int64_t t = lo; t < hi; t++) row[t * stride] += d[t];
}

#define DEFINE_CONV(T)                                                                              \
    /* c[r][j] = bias[r] + sum_k a[k][r] b[k][j] for r < rows, j < cols; a is packed in CONV_ROWS, b has full panels. \
     * R >= rows rows and V vectors of columns are computed: constants where this is inlined */     \
    KERNEL_INLINE void conv_micro_body_##T(const T* a, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t depth, \
                                           int64_t rows, int64_t cols, const T* bias, const int R, const int V) { \
        enum { W = VECTOR_BYTES / sizeof(T) };                                                      \
        v##T acc[CONV_ROWS][2];                                                                     \
        _Pragma("GCC unroll 16") for (int r = 0; r < R; r++)                                        \
            acc[r][0] = acc[r][1] = splat_##T(bias && r < rows ? bias[r] : 0);                      \
        for (int64_t k = 0; k < depth; k++, a += CONV_ROWS, b += ldb) {                             \
            v##T b0 = *(const v##T##_u*)b, b1 = V == 2 ? *(const v##T##_u*)(b + W) : (v##T##_u)b0;  \
            _Pragma("GCC unroll 16") for (int r = 0; r < R; r++) {                                  \
                acc[r][0] += a[r] * b0;                                                             \
                if (V == 2) acc[r][1] += a[r] * b1;                                                 \
            }                                                                                       \
        }                                                                                           \
        if (cols == V * W) {                                                                        \
            _Pragma("GCC unroll 16") for (int r = 0; r < R; r++) {                                  \
                if (r >= rows) break;                                                               \
                *(v##T##_u*)(c + r * ldc) = acc[r][0];                                              \
                if (V == 2) *(v##T##_u*)(c + r * ldc + W) = acc[r][1];                              \
            }                                                                                       \
        } else {                                                                                    \
            T spill[CONV_ROWS][2 * W];                                                              \
            _Pragma("GCC unroll 16") for (int r = 0; r < R; r++) {                                  \
                *(v##T##_u*)spill[r] = acc[r][0];                                                   \
                if (V == 2) *(v##T##_u*)(spill[r] + W) = acc[r][1];                                 \
            }                                                                                       \
            for (int64_t r = 0; r < rows; r++)                                                      \
                for (int64_t j = 0; j < cols; j++) c[r * ldc + j] = spill[r][j];                    \
        }                                                                                           \
    }                                                                                               \
    /* Remainders of rows and columns get narrower bodies: 64 output channels are 5 blocks of 12 and one of 4. */ \
    KERNEL_ONCE void conv_micro_##T(const T* a, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t depth, \
            int64_t rows,                                                                           \
                                    int64_t cols, const T* bias) {                                  \
        if (cols > VECTOR_BYTES / (int64_t)sizeof(T)) {                                             \
            if (rows > CONV_ROWS * 2 / 3) conv_micro_body_##T(a, b, ldb, c, ldc, depth, rows, cols, bias, \
                    CONV_ROWS, 2);                                                                  \
            else if (rows > CONV_ROWS / 3) conv_micro_body_##T(a, b, ldb, c, ldc, depth, rows, cols, bias, \
                    CONV_ROWS * 2 / 3, 2);                                                          \
            else conv_micro_body_##T(a, b, ldb, c, ldc, depth, rows, cols, bias, CONV_ROWS / 3, 2); \
        } else {                                                                                    \
            if (rows > CONV_ROWS * 2 / 3) conv_micro_body_##T(a, b, ldb, c, ldc, depth, rows, cols, bias, \
                    CONV_ROWS, 1);                                                                  \
            else conv_micro_body_##T(a, b, ldb, c, ldc, depth, rows, cols, bias, CONV_ROWS * 2 / 3, 1); \
        }                                                                                           \
    }                                                                                               \
    /* panel[k][j] = the input under kernel element k = (ic, kh, kw) of output position p0 + j, zero up to `width` */ \
    KERNEL_ONCE void conv_pack_panel_##T(const conv_shape* s, const T* x, int64_t channels, int64_t p0, int64_t cols, \
                                         T* panel, int64_t ld, int64_t width) {                     \
        conv_run runs[CONV_PIXELS];                                                                 \
        int count = conv_runs(s, p0, cols, runs);                                                   \
        int64_t kernel = s->kernel_h * s->kernel_w, plane = s->in_h * s->in_w;                      \
        for (int64_t kh = 0; kh < s->kernel_h; kh++)                                                \
            for (int64_t kw = 0; kw < s->kernel_w; kw++, panel += ld)                               \
                for (int i = 0; i < count; i++) {                                                   \
                    int64_t h = runs[i].h + kh * s->dilation_h, w = runs[i].w + kw * s->dilation_w; \
                    int64_t size = h >= 0 && h < s->in_h ? s->in_w : 0;                             \
                    conv_copy_##T(panel + runs[i].at, kernel * ld, x + (size ? h * s->in_w : 0), plane, channels, w, \
                                  s->stride_w, size, runs[i].length);                               \
                }                                                                                   \
        panel -= kernel * ld;                                                                       \
        if (cols < width)                                                                           \
            for (int64_t k = 0; k < channels * kernel; k++)                                         \
                for (int64_t j = cols; j < width; j++) panel[k * ld + j] = 0;                       \
    }                                                                                               \
    /* weights (c_out, K) -> per group, per block of CONV_ROWS output channels: [K][CONV_ROWS] */   \
    KERNEL_FN void conv_pack_forward_##T(const conv_shape* s, const char* weight, char* packed) {   \
        int64_t depth = conv_depth(s), per_group = s->c_out / s->groups;                            \
        T* q = (T*)packed;                                                                          \
        for (int64_t g = 0; g < s->groups; g++)                                                     \
            for (int64_t o = 0; o < per_group; o += CONV_ROWS)                                      \
                for (int64_t k = 0; k < depth; k++)                                                 \
                    for (int64_t r = 0; r < CONV_ROWS; r++)                                         \
                        *q++ = o + r < per_group ? ((const T*)weight)[(g * per_group + o + r) * depth + k] : 0; \
    }                                                                                               \
    /* stride 1: the forward packing of the reversed convolution (channels swapped, kernel turned round); \
     * else per group and block of CONV_ROWS rows k: [c_out / groups][CONV_ROWS] */                 \
    KERNEL_FN void conv_pack_backward_input_##T(const conv_shape* s, const char* weight, char* packed) { \
        int64_t depth = conv_depth(s), per_group = s->c_out / s->groups, in_group = s->c_in / s->groups; \
        int64_t kernel = s->kernel_h * s->kernel_w;                                                 \
        T* q = (T*)packed;                                                                          \
        if (conv_is_reversible(s)) {                                                                \
            for (int64_t g = 0; g < s->groups; g++)                                                 \
                for (int64_t i = 0; i < in_group; i += CONV_ROWS)                                   \
                    for (int64_t o = 0; o < per_group; o++)                                         \
                        for (int64_t k = 0; k < kernel; k++)                                        \
                            for (int64_t r = 0; r < CONV_ROWS; r++)                                 \
                                *q++ = i + r < in_group ? ((const T*)weight)[((g * per_group + o)   \
                                        * in_group + i + r) * kernel +                              \
                                                                             kernel - 1 - k]        \
                                                        : 0;                                        \
            return;                                                                                 \
        }                                                                                           \
        for (int64_t g = 0; g < s->groups; g++)                                                     \
            for (int64_t k = 0; k < depth; k += CONV_ROWS)                                          \
                for (int64_t o = 0; o < per_group; o++)                                             \
                    for (int64_t r = 0; r < CONV_ROWS; r++)                                         \
                        *q++ = k + r < depth ? ((const T*)weight)[(g * per_group + o) * depth + k + r] : 0; \
    }                                                                                               \
    KERNEL_FN int64_t conv_packed_weight_bytes_##T(const conv_shape* s) {                           \
        int64_t depth = conv_depth(s), per_group = s->c_out / s->groups;                            \
        int64_t forward = conv_blocks(per_group, CONV_ROWS) * depth, backward = conv_blocks(depth,  \
                CONV_ROWS) * per_group;                                                             \
        int64_t reversed = conv_blocks(s->c_in / s->groups, CONV_ROWS) * per_group * s->kernel_h * s->kernel_w; \
        return s->groups * max_i64(max_i64(forward, backward), reversed) * CONV_ROWS * (int64_t)sizeof(T); \
    }                                                                                               \
    /* panels of one tile: as many as keep the packed tile within CONV_TILE_BYTES */                \
    KERNEL_INLINE int64_t conv_tile_panels_##T(int64_t depth) {                                     \
        int64_t fit = CONV_TILE_BYTES / (depth * CONV_COLS(T) * (int64_t)sizeof(T));                \
        return min_i64(max_i64(fit, 1), CONV_MAX_PANELS);                                           \
    }                                                                                               \
    KERNEL_INLINE int64_t conv_tiles_##T(const conv_shape* s) {                                     \
        return conv_blocks(conv_pixels(s), CONV_COLS(T) * conv_tile_panels_##T(conv_depth(s)));     \
    }                                                                                               \
    KERNEL_INLINE int64_t conv_depthwise_elements_##T(const conv_shape* s) {                        \
        return conv_padded_h(s) * conv_padded_w(s, VECTOR_BYTES / sizeof(T)) + 2 * s->kernel_h * s->kernel_w; \
    }                                                                                               \
    KERNEL_FN int64_t conv_workspace_bytes_##T(const conv_shape* s) {                               \
        int64_t depth = conv_depth(s), kernel = s->kernel_h * s->kernel_w;                          \
        conv_shape r = conv_reversed(s);                                                            \
        if (conv_is_depthwise(s))                                                                   \
            return max_i64(conv_depthwise_elements_##T(s), conv_is_reversible(s)                    \
                    ? conv_depthwise_elements_##T(&r) : 0) *                                        \
                   (int64_t)sizeof(T);                                                              \
        int64_t forward = depth * conv_tile_panels_##T(depth) * CONV_COLS(T), reversed_depth = conv_depth(&r); \
        int64_t reversed = reversed_depth * conv_tile_panels_##T(reversed_depth) * CONV_COLS(T);    \
        int64_t input_rows = conv_channel_block(s, CONV_INPUT_ROWS) * kernel + CONV_ROWS;           \
        int64_t weight_rows = conv_channel_block(s, CONV_WEIGHT_ROWS) * kernel + CONV_ROWS, out_block = \
                conv_out_block(s);                                                                  \
        int64_t input = (input_rows + s->c_out / s->groups) * CONV_COLS(T);                         \
        int64_t weight = weight_rows * (CONV_PIXELS_LD + out_block) + CONV_PIXELS * out_block;      \
        return max_i64(max_i64(forward, reversed), max_i64(input, weight)) * (int64_t)sizeof(T);    \
    }                                                                                               \
                                                                                                    \
    /* ---- depthwise: vectors of output positions over a padded plane ---- */                      \
    KERNEL_INLINE void conv_pad_plane_##T(const conv_shape* s, const T* plane, T* padded) {         \
        int64_t height = conv_padded_h(s), width = conv_padded_w(s, VECTOR_BYTES / sizeof(T));      \
        int64_t w0 = max_i64(-s->pad_w, 0), count = min_i64(s->in_w - w0, width - s->pad_w - w0);   \
        memset(padded, 0, (size_t)(height * width) * sizeof(T));                                    \
        for (int64_t i = 0; i < height; i++) {                                                      \
            int64_t h = i - s->pad_h;                                                               \
            if (h >= 0 && h < s->in_h && count > 0)                                                 \
                memcpy(padded + i * width + w0 + s->pad_w, plane + h * s->in_w + w0, (size_t)count * sizeof(T)); \
        }                                                                                           \
    }                                                                                               \
    /* lane t = p[t * stride] */                                                                    \
    KERNEL_INLINE v##T conv_strided_##T(const T* p, int64_t stride) {                               \
        enum { W = VECTOR_BYTES / sizeof(T) };                                                      \
        if (stride == 1) return *(const v##T##_u*)p;                                                \
        v##T v;                                                                                     \
        for (int t = 0; t < W; t++) v[t] = p[t * stride];                                           \
        return v;                                                                                   \
    }                                                                                               \
    /* y = start + sum of taps over the padded plane; kernel size and stride are constants where this is inlined */ \
    KERNEL_INLINE void conv_taps_##T(const conv_shape* s, const T* padded, const T* taps, T start, int add, T* y, \
                                     int64_t kernel_h, int64_t kernel_w, int64_t stride) {          \
        enum { W = VECTOR_BYTES / sizeof(T) };                                                      \
        int64_t width = conv_padded_w(s, W);                                                        \
        for (int64_t oh = 0; oh < s->out_h; oh++)                                                   \
            for (int64_t ow = 0; ow < s->out_w; ow += W) {                                          \
                const T* p = padded + oh * s->stride_h * width + ow * stride;                       \
                T* out = y + oh * s->out_w + ow;                                                    \
                v##T acc = splat_##T(start);                                                        \
                for (int64_t kh = 0; kh < kernel_h; kh++)                                           \
                    for (int64_t kw = 0; kw < kernel_w; kw++)                                       \
                        acc += taps[kh * kernel_w + kw] *                                           \
                               conv_strided_##T(p + kh * s->dilation_h * width + kw * s->dilation_w, stride); \
                int64_t m = min_i64(W, s->out_w - ow);                                              \
                if (m == W) *(v##T##_u*)out = add ? (v##T)(*(v##T##_u*)out) + acc : acc;            \
                else for (int64_t j = 0; j < m; j++) out[j] = add ? out[j] + acc[j] : acc[j];       \
            }                                                                                       \
    }                                                                                               \
    KERNEL_ONCE void conv_depthwise_plane_##T(const conv_shape* s, const T* plane, const T* taps, T start, \
            int add, T* y,                                                                          \
                                              T* padded) {                                          \
        conv_pad_plane_##T(s, plane, padded);                                                       \
        int small = s->kernel_h == 3 && s->kernel_w == 3;                                           \
        if (small && s->stride_w == 1) conv_taps_##T(s, padded, taps, start, add, y, 3, 3, 1);      \
        else if (small && s->stride_w == 2) conv_taps_##T(s, padded, taps, start, add, y, 3, 3, 2); \
        else if (s->stride_w == 1) conv_taps_##T(s, padded, taps, start, add, y, s->kernel_h, s->kernel_w, 1); \
        else conv_taps_##T(s, padded, taps, start, add, y, s->kernel_h, s->kernel_w, s->stride_w);  \
    }                                                                                               \
    KERNEL_INLINE void conv_depthwise_forward_##T(const conv_shape* s, const T* x, const T* weight, \
            const T* bias, T* y,                                                                    \
                                                  T* workspace, int64_t item) {                     \
        int64_t oc = item % s->c_out, multiplier = s->c_out / s->c_in;                              \
        const T* plane = x + (item / s->c_out * s->c_in + oc / multiplier) * s->in_h * s->in_w;     \
        conv_depthwise_plane_##T(s, plane, weight + oc * s->kernel_h * s->kernel_w, bias ? bias[oc] : 0, 0, \
                                 y + item * conv_pixels(s), workspace);                             \
    }                                                                                               \
    /* stride 1: the taps backwards over the output gradient; else scattered from each output row */ \
    KERNEL_INLINE void conv_depthwise_backward_input_##T(const conv_shape* s, const T* grad, const T* weight, T* dx, \
                                                         T* workspace, int64_t item) {              \
        int64_t multiplier = s->c_out / s->c_in, sample = item / s->c_in, ic = item % s->c_in, stride = s->stride_w; \
        int64_t kernel = s->kernel_h * s->kernel_w;                                                 \
        T* plane = dx + item * s->in_h * s->in_w;                                                   \
        conv_shape r = conv_reversed(s);                                                            \
        if (!conv_is_reversible(s)) memset(plane, 0, (size_t)(s->in_h * s->in_w) * sizeof(T));      \
        for (int64_t oc = ic * multiplier; oc < (ic + 1) * multiplier; oc++) {                      \
            const T *gy = grad + (sample * s->c_out + oc) * conv_pixels(s), *w = weight + oc * kernel; \
            if (conv_is_reversible(s)) {                                                            \
                for (int64_t k = 0; k < kernel; k++) workspace[k] = w[kernel - 1 - k];              \
                conv_depthwise_plane_##T(&r, gy, workspace, 0, oc > ic * multiplier, plane, workspace + kernel); \
                continue;                                                                           \
            }                                                                                       \
            for (int64_t oh = 0; oh < s->out_h; oh++)                                               \
                for (int64_t kh = 0; kh < s->kernel_h; kh++) {                                      \
                    int64_t h = oh * s->stride_h - s->pad_h + kh * s->dilation_h;                   \
                    if (h < 0 || h >= s->in_h) continue;                                            \
                    for (int64_t kw = 0; kw < s->kernel_w; kw++) {                                  \
                        int64_t offset = kw * s->dilation_w - s->pad_w, lo = 0, hi = s->out_w;      \
                        T *row = plane + h * s->in_w, tap = w[kh * s->kernel_w + kw];               \
                        conv_range(offset, stride, s->in_w, &lo, &hi);                              \
                        for (int64_t o = lo; o < hi; o++) row[o * stride + offset] += tap * gy[oh * s->out_w + o]; \
                    }                                                                               \
                }                                                                                   \
        }                                                                                           \
    }                                                                                               \
    /* One pass over a plane for kernel columns [0, kernel_w) of one kernel row; sums[kw] += sum gy * input. */ \
    KERNEL_INLINE void conv_depthwise_dots_##T(const conv_shape* s, const T* padded, const T* gy, f64* sums, \
                                               int64_t columns, int64_t stride) {                   \
        enum { W = VECTOR_BYTES / sizeof(T) };                                                      \
        int64_t width = conv_padded_w(s, W);                                                        \
        v##T acc[CONV_DOT];                                                                         \
        for (int j = 0; j < CONV_DOT; j++) acc[j] = (v##T){0};                                      \
        for (int64_t oh = 0; oh < s->out_h; oh++)                                                   \
            for (int64_t ow = 0; ow < s->out_w; ow += W) {                                          \
                const T *g = gy + oh * s->out_w + ow, *p = padded + oh * s->stride_h * width + ow * stride; \
                v##T a = ow + W <= s->out_w ? (v##T)(*(const v##T##_u*)g) : partial_##T(g, s->out_w - ow, 0); \
                _Pragma("GCC unroll 4") for (int j = 0; j < CONV_DOT; j++)                          \
                    if (j < columns) acc[j] += a * conv_strided_##T(p + j * s->dilation_w, stride); \
            }                                                                                       \
        for (int64_t j = 0; j < columns; j++) {                                                     \
            T lanes[W];                                                                             \
            memcpy(lanes, &acc[j], sizeof lanes);                                                   \
            sums[j] += block_sum_##T(lanes, lanes, 0, W);                                           \
        }                                                                                           \
    }                                                                                               \
    KERNEL_INLINE void conv_depthwise_backward_weight_##T(const conv_shape* s, const T* grad, const T* x, T* dw, \
                                                          T* workspace, int64_t oc) {               \
        int64_t multiplier = s->c_out / s->c_in, kernel = s->kernel_h * s->kernel_w;                \
        int64_t width = conv_padded_w(s, VECTOR_BYTES / sizeof(T));                                 \
        f64* sums = (f64*)workspace;                                                                \
        T* padded = (T*)(sums + kernel);                                                            \
        for (int64_t k = 0; k < kernel; k++) sums[k] = 0;                                           \
        for (int64_t n = 0; n < s->samples; n++) {                                                  \
            const T* gy = grad + (n * s->c_out + oc) * conv_pixels(s);                              \
            conv_pad_plane_##T(s, x + (n * s->c_in + oc / multiplier) * s->in_h * s->in_w, padded); \
            for (int64_t kh = 0; kh < s->kernel_h; kh++)                                            \
                for (int64_t kw = 0; kw < s->kernel_w; kw += CONV_DOT) {                            \
                    int64_t columns = min_i64(CONV_DOT, s->kernel_w - kw);                          \
                    const T* p = padded + kh * s->dilation_h * width + kw * s->dilation_w;          \
                    f64* out = sums + kh * s->kernel_w + kw;                                        \
                    if (columns == 3 && s->stride_w == 1) conv_depthwise_dots_##T(s, p, gy, out, 3, 1); \
                    else conv_depthwise_dots_##T(s, p, gy, out, columns, s->stride_w);              \
                }                                                                                   \
        }                                                                                           \
        for (int64_t k = 0; k < kernel; k++) dw[oc * kernel + k] = (T)sums[k];                      \
    }                                                                                               \
                                                                                                    \
    /* ---- forward: an item is (sample, group, tile of output positions) ---- */                   \
    KERNEL_FN int64_t conv_forward_items_##T(const conv_shape* s) {                                 \
        return conv_is_depthwise(s) ? s->samples * s->c_out : s->samples * s->groups * conv_tiles_##T(s); \
    }                                                                                               \
    KERNEL_FN void conv_forward_##T(const conv_shape* s, const char* in, const char* packed, const char* weight, \
                                    const char* bias, char* out, char* workspace, int64_t items_begin, \
                                    int64_t items_end) {                                            \
        const T* x = (const T*)in;                                                                  \
        T* panel = (T*)workspace;                                                                   \
        int64_t depth = conv_depth(s), per_group = s->c_out / s->groups, in_group = s->c_in / s->groups; \
        int64_t pixels = conv_pixels(s), width = CONV_COLS(T), tile = width * conv_tile_panels_##T(depth); \
        int64_t tiles = conv_tiles_##T(s), blocks = conv_blocks(per_group, CONV_ROWS);              \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            if (conv_is_depthwise(s)) {                                                             \
                conv_depthwise_forward_##T(s, x, (const T*)weight, (const T*)bias, (T*)out, panel, item); \
                continue;                                                                           \
            }                                                                                       \
            int64_t image = item / tiles, p0 = item % tiles * tile, end = min_i64(p0 + tile, pixels); \
            int64_t g = image % s->groups;                                                          \
            const T* source = x + image * in_group * s->in_h * s->in_w;                             \
            T* y = (T*)out + image * per_group * pixels;                                            \
            for (int64_t p = p0; p < end; p += width) {                                             \
                int64_t cols = min_i64(width, end - p);                                             \
                if (!conv_is_pointwise(s) || cols < width)                                          \
                    conv_pack_panel_##T(s, source, in_group, p, cols, panel + (p - p0) * depth, width, width); \
            }                                                                                       \
            for (int64_t block = 0; block < blocks; block++) {                                      \
                const T* a = (const T*)packed + (g * blocks + block) * depth * CONV_ROWS;           \
                const T* b = bias ? (const T*)bias + g * per_group + block * CONV_ROWS : 0;         \
                int64_t rows = min_i64(CONV_ROWS, per_group - block * CONV_ROWS);                   \
                for (int64_t p = p0; p < end; p += width) {                                         \
                    int64_t cols = min_i64(width, end - p), direct = conv_is_pointwise(s) && cols == width; \
                    conv_micro_##T(a, direct ? source + p : panel + (p - p0) * depth, direct ? pixels : width, \
                                   y + block * CONV_ROWS * pixels + p, pixels, depth, rows, cols, b); \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
                                                                                                    \
    /* ---- gradient of the input: stride 1, the forward of the reversed convolution; else an item is \
     * (sample, group, block of input channels), which it writes completely ---- */                 \
    KERNEL_FN int64_t conv_backward_input_items_##T(const conv_shape* s) {                          \
        conv_shape r = conv_reversed(s);                                                            \
        if (conv_is_depthwise(s)) return s->samples * s->c_in;                                      \
        if (conv_is_reversible(s)) return conv_forward_items_##T(&r);                               \
        return s->samples * s->groups * conv_blocks(s->c_in / s->groups, conv_channel_block(s, CONV_INPUT_ROWS)); \
    }                                                                                               \
    KERNEL_INLINE void conv_add_panel_##T(const conv_shape* s, const T* panel, int64_t ld, int64_t channels, \
            int64_t p0,                                                                             \
                                          int64_t cols, T* dx) {                                    \
        conv_run runs[CONV_PIXELS];                                                                 \
        int count = conv_runs(s, p0, cols, runs);                                                   \
        int64_t stride = s->stride_w;                                                               \
        for (int64_t ic = 0; ic < channels; ic++, dx += s->in_h * s->in_w)                          \
            for (int64_t kh = 0; kh < s->kernel_h; kh++)                                            \
                for (int64_t kw = 0; kw < s->kernel_w; kw++, panel += ld)                           \
                    for (int i = 0; i < count; i++) {                                               \
                        int64_t h = runs[i].h + kh * s->dilation_h, w = runs[i].w + kw * s->dilation_w; \
                        int64_t lo = 0, hi = runs[i].length;                                        \
                        if (h < 0 || h >= s->in_h) continue;                                        \
                        conv_range(w, stride, s->in_w, &lo, &hi);                                   \
                        conv_add_run_##T(dx + h * s->in_w + w, panel + runs[i].at, stride, lo, hi); \
                    }                                                                               \
    }                                                                                               \
    KERNEL_FN void conv_backward_input_##T(const conv_shape* s, const char* grad, const char* packed, \
            const char* weight,                                                                     \
                                           char* grad_in, char* workspace, int64_t items_begin, int64_t items_end) { \
        int64_t depth = conv_depth(s), per_group = s->c_out / s->groups, in_group = s->c_in / s->groups; \
        int64_t pixels = conv_pixels(s), width = CONV_COLS(T), block = conv_channel_block(s, CONV_INPUT_ROWS); \
        int64_t blocks = conv_blocks(in_group, block), kernel = s->kernel_h * s->kernel_w;          \
        conv_shape r = conv_reversed(s);                                                            \
        if (!conv_is_depthwise(s) && conv_is_reversible(s)) {                                       \
            conv_forward_##T(&r, grad, packed, weight, 0, grad_in, workspace, items_begin, items_end); \
            return;                                                                                 \
        }                                                                                           \
        T *panel = (T*)workspace, *tail = panel + (block * kernel + CONV_ROWS) * width;             \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            if (conv_is_depthwise(s)) {                                                             \
                conv_depthwise_backward_input_##T(s, (const T*)grad, (const T*)weight, (T*)grad_in, \
                                                      (T*)workspace, item);                         \
                continue;                                                                           \
            }                                                                                       \
            int64_t image = item / blocks, ic = item % blocks * block, channels = min_i64(block, in_group - ic); \
            int64_t g = image % s->groups, k0 = ic * kernel, k1 = k0 + channels * kernel;           \
            const T* gy = (const T*)grad + image * per_group * pixels;                              \
            T* dx = (T*)grad_in + (image * in_group + ic) * s->in_h * s->in_w;                      \
            memset(dx, 0, (size_t)(channels * s->in_h * s->in_w) * sizeof(T));                      \
            for (int64_t p = 0; p < pixels; p += width) {                                           \
                int64_t cols = min_i64(width, pixels - p), ld = pixels;                             \
                const T* b = gy + p;                                                                \
                if (cols < width) {                                                                 \
                    for (int64_t o = 0; o < per_group; o++)                                         \
                        for (int64_t j = 0; j < width; j++) tail[o * width + j] = j < cols ? gy[o * pixels \
                                + p + j] : 0;                                                       \
                    b = tail;                                                                       \
                    ld = width;                                                                     \
                }                                                                                   \
                /* blocks of CONV_ROWS rows of K start at multiples of CONV_ROWS: the first may begin before k0 */ \
                int64_t first = k0 / CONV_ROWS * CONV_ROWS, lead = k0 - first;                      \
                for (int64_t k = first; k < k1; k += CONV_ROWS) {                                   \
                    const T* a = (const T*)packed +                                                 \
                                 (g * conv_blocks(depth, CONV_ROWS) + k / CONV_ROWS) * per_group * CONV_ROWS; \
                    conv_micro_##T(a, b, ld, panel + (k - first) * width, width, per_group,         \
                                   min_i64(CONV_ROWS, k1 - k), width, 0);                           \
                }                                                                                   \
                conv_add_panel_##T(s, panel + lead * width, width, channels, p, cols, dx);          \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
                                                                                                    \
    /* ---- gradient of the weight: an item is (group, block of input channels, block of output channels) ---- */ \
    /* c[r][j] += sum_p panel[r][p] gy[p][j] for R rows */                                          \
    KERNEL_INLINE void conv_micro_weight_body_##T(const T* a, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t n, \
                                                  const int R) {                                    \
        enum { W = VECTOR_BYTES / sizeof(T) };                                                      \
        v##T acc[CONV_ROWS][2];                                                                     \
        _Pragma("GCC unroll 16") for (int r = 0; r < R; r++) acc[r][0] = acc[r][1] = (v##T){0};     \
        for (int64_t p = 0; p < n; p++, b += ldb) {                                                 \
            v##T b0 = *(const v##T##_u*)b, b1 = *(const v##T##_u*)(b + W);                          \
            _Pragma("GCC unroll 16") for (int r = 0; r < R; r++) {                                  \
                acc[r][0] += a[r * CONV_PIXELS_LD + p] * b0;                                        \
                acc[r][1] += a[r * CONV_PIXELS_LD + p] * b1;                                        \
            }                                                                                       \
        }                                                                                           \
        _Pragma("GCC unroll 16") for (int r = 0; r < R; r++) {                                      \
            *(v##T##_u*)(c + r * ldc) += acc[r][0];                                                 \
            *(v##T##_u*)(c + r * ldc + W) += acc[r][1];                                             \
        }                                                                                           \
    }                                                                                               \
    KERNEL_ONCE void conv_micro_weight_##T(const T* a, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t n, \
            int64_t rows) {                                                                         \
        if (rows > CONV_ROWS * 2 / 3) conv_micro_weight_body_##T(a, b, ldb, c, ldc, n, CONV_ROWS);  \
        else if (rows > CONV_ROWS / 3) conv_micro_weight_body_##T(a, b, ldb, c, ldc, n, CONV_ROWS * 2 / 3); \
        else conv_micro_weight_body_##T(a, b, ldb, c, ldc, n, CONV_ROWS / 3);                       \
    }                                                                                               \
    KERNEL_FN int64_t conv_backward_weight_items_##T(const conv_shape* s) {                         \
        if (conv_is_depthwise(s)) return s->c_out;                                                  \
        return s->groups * conv_weight_blocks(s) * conv_blocks(s->c_out / s->groups, conv_out_block(s)); \
    }                                                                                               \
    KERNEL_FN void conv_backward_weight_##T(const conv_shape* s, const char* grad, const char* in, char* grad_weight, \
                                            char* workspace, int64_t items_begin, int64_t items_end) { \
        int64_t depth = conv_depth(s), per_group = s->c_out / s->groups, in_group = s->c_in / s->groups; \
        int64_t pixels = conv_pixels(s), block = conv_channel_block(s, CONV_WEIGHT_ROWS), blocks =  \
                conv_weight_blocks(s);                                                              \
        int64_t kernel = s->kernel_h * s->kernel_w, ldo = conv_out_block(s), out_blocks = conv_blocks(per_group, ldo); \
        T *panel = (T*)workspace, *gy_t = panel + (block * kernel + CONV_ROWS) * CONV_PIXELS_LD;    \
        T* c = gy_t + CONV_PIXELS * ldo;                                                            \
        for (int64_t item = items_begin; item < items_end; item++) {                                \
            if (conv_is_depthwise(s)) {                                                             \
                conv_depthwise_backward_weight_##T(s, (const T*)grad, (const T*)in, (T*)grad_weight, panel, item); \
                continue;                                                                           \
            }                                                                                       \
            int64_t o0 = item % out_blocks * ldo, outs = min_i64(ldo, per_group - o0);              \
            int64_t ic = item / out_blocks % blocks * block, g = item / (out_blocks * blocks);      \
            int64_t channels = min_i64(block, in_group - ic), rows = channels * kernel;             \
            memset(c, 0, (size_t)((rows + CONV_ROWS) * ldo) * sizeof(T));                           \
            memset(panel, 0, (size_t)((rows + CONV_ROWS) * CONV_PIXELS_LD) * sizeof(T));            \
            memset(gy_t, 0, (size_t)(CONV_PIXELS * ldo) * sizeof(T));                               \
            for (int64_t n = 0; n < s->samples; n++) {                                              \
                const T* x = (const T*)in + ((n * s->groups + g) * in_group + ic) * s->in_h * s->in_w; \
                const T* gy = (const T*)grad + ((n * s->groups + g) * per_group + o0) * pixels;     \
                for (int64_t p0 = 0; p0 < pixels; p0 += CONV_PIXELS) {                              \
                    int64_t m = min_i64(CONV_PIXELS, pixels - p0);                                  \
                    conv_pack_panel_##T(s, x, channels, p0, m, panel, CONV_PIXELS_LD, m);           \
                    conv_transpose_##T(gy + p0, pixels, gy_t, ldo, outs, m);                        \
                    for (int64_t o = 0; o < ldo; o += CONV_COLS(T))                                 \
                        for (int64_t r = 0; r < rows; r += CONV_ROWS)                               \
                            conv_micro_weight_##T(panel + r * CONV_PIXELS_LD, gy_t + o, ldo, c + r * ldo + o, ldo, m, \
                                                  min_i64(CONV_ROWS, rows - r));                    \
                }                                                                                   \
            }                                                                                       \
            for (int64_t o = 0; o < outs; o++)                                                      \
                for (int64_t r = 0; r < rows; r++)                                                  \
                    ((T*)grad_weight)[(g * per_group + o0 + o) * depth + ic * kernel + r] = c[r * ldo + o]; \
        }                                                                                           \
    }
DEFINE_CONV(f32)
DEFINE_CONV(f64)

#endif
