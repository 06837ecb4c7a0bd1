/* Shared ground of the kernel headers (reduce.h, softmax.h, norm.h, pool.h, gemm_kernel.h): names per instruction
 * set, vector types, staging of strided or half-precision rows into blocks, and block sums.
 *
 * Invariants: kernels take plain pointers, sizes and byte strides; they start no threads and allocate
 * nothing unless they say so; a range [begin, end) counts independent work items, and no result depends on
 * how the caller cuts that range. Every floating-point sum therefore follows a tree fixed by the shape alone
 * (never by alignment, which is why sums use explicit vector types instead of compiler-made reductions).
 * Each source is compiled once per instruction set; tables are exported, everything else is static. */
#ifndef TRT_KERNEL_BASE_H
#define TRT_KERNEL_BASE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "../core/isa.h"
#include "fused.h"
#include "scalar_types.h"
#include "vector_math.h"

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif

#define KERNEL_INLINE static inline __attribute__((always_inline, unused))
#define KERNEL_FN static __attribute__((unused))
/* One copy per instance where inlining would buy nothing but code size. */
#define KERNEL_ONCE static __attribute__((noinline, unused))
#define VECTORIZE _Pragma("omp simd")

typedef f32 vf32 __attribute__((vector_size(VECTOR_BYTES)));
typedef f64 vf64 __attribute__((vector_size(VECTOR_BYTES)));
typedef i32 vi32 __attribute__((vector_size(VECTOR_BYTES)));
typedef i64 vi64 __attribute__((vector_size(VECTOR_BYTES)));
typedef f32 vf32_u __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef f64 vf64_u __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

/* For loops over the registers of a tile, which must not end up as an array in memory. */
#define UNROLL _Pragma("GCC unroll 64")

/* A block is what a kernel stages and sums in one go: small enough that several live in L1. */
enum { REDUCE_BLOCK = 1024 };

KERNEL_INLINE int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
KERNEL_INLINE int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- staging: `n` elements at byte stride `es` as a contiguous run of the compute type C ----
 * Returns the row itself when it already is one, else fills and returns `buf`. LINKAGE: conversions are calls, so that
 * the halves' kernels do not each carry a copy. */
#define IDENTITY(v) (v)
#define COPY_RUN(src, dst, n) memcpy(dst, src, (size_t)(n) * sizeof *(src))
#define DEFINE_STAGE(LINKAGE, T, C, LOAD, RUN, DIRECT)                                              \
    LINKAGE const C* stage_##T(const char* p, int64_t es, int64_t n, C* restrict buf) {       \
        if (es == (int64_t)sizeof(T)) {                                                             \
            if (DIRECT) return (const C*)p;                                                         \
            RUN((const T*)p, buf, n);                                                               \
        } else {                                                                                    \
            for (int64_t i = 0; i < n; i++) buf[i] = LOAD(*(const T*)(p + i * es));                 \
        }                                                                                           \
        return buf;                                                                                 \
    }

/* The inverse: writes `n` compute-type elements of `buf` to byte stride `es`. */
#define DEFINE_UNSTAGE(LINKAGE, T, C, STORE, RUN)                                                   \
    LINKAGE void unstage_##T(const C* restrict buf, char* p, int64_t es, int64_t n) {         \
        if (es == (int64_t)sizeof(T)) {                                                             \
            RUN(buf, (T*)p, n);                                                                     \
        } else {                                                                                    \
            for (int64_t i = 0; i < n; i++) *(T*)(p + i * es) = STORE(buf[i]);                      \
        }                                                                                           \
    }

DEFINE_STAGE(KERNEL_INLINE, u8, u8, IDENTITY, COPY_RUN, 1)
DEFINE_STAGE(KERNEL_INLINE, i8, i8, IDENTITY, COPY_RUN, 1)
DEFINE_STAGE(KERNEL_INLINE, i16, i16, IDENTITY, COPY_RUN, 1)
DEFINE_STAGE(KERNEL_INLINE, i32, i32, IDENTITY, COPY_RUN, 1)
DEFINE_STAGE(KERNEL_INLINE, i64, i64, IDENTITY, COPY_RUN, 1)
DEFINE_STAGE(KERNEL_ONCE, f16, f32, ld_f16, f16_to_f32_block, 0)
DEFINE_STAGE(KERNEL_ONCE, bf16, f32, ld_bf16, bf16_to_f32_block, 0)
DEFINE_STAGE(KERNEL_INLINE, f32, f32, IDENTITY, COPY_RUN, 1)
DEFINE_STAGE(KERNEL_INLINE, f64, f64, IDENTITY, COPY_RUN, 1)
DEFINE_STAGE(KERNEL_INLINE, c64, c64, IDENTITY, COPY_RUN, 1)
DEFINE_STAGE(KERNEL_INLINE, c128, c128, IDENTITY, COPY_RUN, 1)
DEFINE_UNSTAGE(KERNEL_ONCE, f16, f32, st_f16, f32_to_f16_block)
DEFINE_UNSTAGE(KERNEL_ONCE, bf16, f32, st_bf16, f32_to_bf16_block)
DEFINE_UNSTAGE(KERNEL_INLINE, f32, f32, IDENTITY, COPY_RUN)
DEFINE_UNSTAGE(KERNEL_INLINE, f64, f64, IDENTITY, COPY_RUN)

KERNEL_INLINE f32 load_f16(const char* p) { return ld_f16(*(const f16*)p); }
KERNEL_INLINE f32 load_bf16(const char* p) { return ld_bf16(*(const bf16*)p); }
KERNEL_INLINE f32 load_f32(const char* p) { return *(const f32*)p; }
KERNEL_INLINE f64 load_f64(const char* p) { return *(const f64*)p; }
KERNEL_INLINE void store_f16(char* p, f32 v) { *(f16*)p = st_f16(v); }
KERNEL_INLINE void store_bf16(char* p, f32 v) { *(bf16*)p = st_bf16(v); }
KERNEL_INLINE void store_f32(char* p, f32 v) { *(f32*)p = v; }
KERNEL_INLINE void store_f64(char* p, f64 v) { *(f64*)p = v; }

/* ---- block sums: acc[k] = STEP of itself, a = x[i], b = y[i] and c, with 256 bytes of accumulator lanes ----
 * Element i of a block always lands in lane i % LANES and lanes fold in halves, so the tree is the same for
 * every instruction set. `c` is one number for all; a padded element (a = pad_a, b = 0) must add 0. */
KERNEL_INLINE vf32 splat_f32(f32 v) { return v - (vf32){0}; }
KERNEL_INLINE vf64 splat_f64(f64 v) { return v - (vf64){0}; }
KERNEL_INLINE vf32 vabs_f32(vf32 v) { return (vf32)((vi32)v & 0x7fffffff); }
KERNEL_INLINE vf64 vabs_f64(vf64 v) { return (vf64)((vi64)v & 0x7fffffffffffffffLL); }

/* DIRECT: T is its own compute type, so blocks are read and written in place. */
#define OUT_RUN(T, C, DIRECT, p, buf) (DIRECT ? (C*)(p) : (buf))
#define OUT_DONE(T, DIRECT, p, buf, m)                                                              \
    if (!DIRECT) unstage_##T((buf), (p), sizeof(T), (m))

/* The first n < W elements at p, the rest of the vector filled with `pad`. */
KERNEL_INLINE vf32 partial_f32(const f32* p, int64_t n, f32 pad) {
#if defined(__AVX512F__)
    return __builtin_ia32_loadups512_mask(p, splat_f32(pad), (unsigned short)((1u << n) - 1));
#else
    vf32 v = splat_f32(pad);
    for (int64_t j = 0; j < n; j++) v[j] = p[j];
    return v;
#endif
}
KERNEL_INLINE vf64 partial_f64(const f64* p, int64_t n, f64 pad) {
#if defined(__AVX512F__)
    return __builtin_ia32_loadupd512_mask(p, splat_f64(pad), (unsigned char)((1u << n) - 1));
#else
    vf64 v = splat_f64(pad);
    for (int64_t j = 0; j < n; j++) v[j] = p[j];
    return v;
#endif
}

/* Folds a vector in halves down to 16 bytes: lane j takes in lane j + w, w = half the lanes, then a quarter, ... */
typedef f32 vf32_16 __attribute__((vector_size(16)));
typedef f64 vf64_16 __attribute__((vector_size(16)));
typedef f32 vf32_32 __attribute__((vector_size(32)));
typedef f64 vf64_32 __attribute__((vector_size(32)));
#if VECTOR_BYTES == 64
#define DEFINE_FOLD_TO_16(T)                                                                        \
    KERNEL_INLINE v##T##_16 fold_to_16_##T(v##T v) {                                                \
        const v##T##_32* half = (const v##T##_32*)&v;                                               \
        v##T##_32 sum = half[0] + half[1];                                                          \
        const v##T##_16* quarter = (const v##T##_16*)&sum;                                          \
        return quarter[0] + quarter[1];                                                             \
    }
#elif VECTOR_BYTES == 32
#define DEFINE_FOLD_TO_16(T)                                                                        \
    KERNEL_INLINE v##T##_16 fold_to_16_##T(v##T v) {                                                \
        const v##T##_16* half = (const v##T##_16*)&v;                                               \
        return half[0] + half[1];                                                                   \
    }
#else
#define DEFINE_FOLD_TO_16(T)                                                                        \
    KERNEL_INLINE v##T##_16 fold_to_16_##T(v##T v) { return v; }
#endif
DEFINE_FOLD_TO_16(f32)
DEFINE_FOLD_TO_16(f64)

#define DEFINE_BLOCK_SUM_FOLD(NAME, T, STEP, PAIR, PAD, KEEP)                                       \
    KERNEL_INLINE void NAME##_fold(const T* x, const T* y, T c_, int64_t n, T* out) {               \
        enum { W = VECTOR_BYTES / sizeof(T), NV = 256 / VECTOR_BYTES, LANES = 256 / sizeof(T) };    \
        v##T acc[NV], b = {0}, c = splat_##T(c_);                                                   \
        (void)c; (void)b; (void)y;                                                                  \
        UNROLL for (int k = 0; k < NV; k++) acc[k] = (v##T){0};                                            \
        int64_t i = 0;                                                                              \
        for (; i + LANES <= n; i += LANES)                                                          \
            UNROLL for (int k = 0; k < NV; k++) {                                                          \
                v##T a = *(const v##T##_u*)(x + i + k * W);                                         \
                if (PAIR) b = *(const v##T##_u*)(y + i + k * W);                                    \
                acc[k] = STEP;                                                                      \
            }                                                                                       \
        UNROLL for (int k = 0; k < NV && i < n; k++, i += W) {                                             \
            v##T a;                                                                                 \
            if (i + W <= n) {                                                                       \
                a = *(const v##T##_u*)(x + i);                                                      \
                if (PAIR) b = *(const v##T##_u*)(y + i);                                            \
            } else {                                                                                \
                a = partial_##T(x + i, n - i, PAD);                                                 \
                if (PAIR) b = partial_##T(y + i, n - i, 0);                                         \
            }                                                                                       \
            acc[k] = STEP;                                                                          \
        }                                                                                           \
        UNROLL for (int w = NV / 2; w > 0; w /= 2)                                                         \
            UNROLL for (int k = 0; k < w; k++) acc[k] += acc[k + w];                                       \
        v##T##_16 sum = fold_to_16_##T(acc[0]);                                                     \
        UNROLL for (int w = 8 / sizeof(T); w >= KEEP; w /= 2)                                              \
            UNROLL for (int j = 0; j < w; j++) sum[j] += sum[j + w];                                       \
        UNROLL for (int j = 0; j < KEEP; j++) out[j] = sum[j];                                             \
    }
#define DEFINE_BLOCK_SUM(NAME, T, STEP, PAIR, PAD)                                                  \
    DEFINE_BLOCK_SUM_FOLD(NAME, T, STEP, PAIR, PAD, 1)                                              \
    KERNEL_INLINE T NAME(const T* x, const T* y, T c, int64_t n) {                                  \
        T out;                                                                                      \
        NAME##_fold(x, y, c, n, &out);                                                              \
        return out;                                                                                 \
    }

DEFINE_BLOCK_SUM(block_sum_f32, f32, acc[k] + a, 0, 0)
DEFINE_BLOCK_SUM(block_sum_f64, f64, acc[k] + a, 0, 0)
DEFINE_BLOCK_SUM(block_abs_sum_f32, f32, acc[k] + vabs_f32(a), 0, 0)
DEFINE_BLOCK_SUM(block_abs_sum_f64, f64, acc[k] + vabs_f64(a), 0, 0)
DEFINE_BLOCK_SUM(block_sq_sum_f32, f32, FMA(a, a, acc[k]), 0, 0)
DEFINE_BLOCK_SUM(block_sq_sum_f64, f64, FMA(a, a, acc[k]), 0, 0)
DEFINE_BLOCK_SUM(block_dev_sum_f32, f32, acc[k] + (a - c), 0, c_)
DEFINE_BLOCK_SUM(block_dev_sum_f64, f64, acc[k] + (a - c), 0, c_)
DEFINE_BLOCK_SUM(block_dev_sq_sum_f32, f32, FMA(a - c, a - c, acc[k]), 0, c_)
DEFINE_BLOCK_SUM(block_dev_sq_sum_f64, f64, FMA(a - c, a - c, acc[k]), 0, c_)
DEFINE_BLOCK_SUM(block_dev_dot_f32, f32, FMA(a - c, b, acc[k]), 1, 0)
DEFINE_BLOCK_SUM(block_dev_dot_f64, f64, FMA(a - c, b, acc[k]), 1, 0)
DEFINE_BLOCK_SUM(block_dot_f32, f32, FMA(a, b, acc[k]), 1, 0)
DEFINE_BLOCK_SUM(block_dot_f64, f64, FMA(a, b, acc[k]), 1, 0)
DEFINE_BLOCK_SUM_FOLD(block_pair_sum_f32, f32, acc[k] + a, 0, 0, 2) /* even and odd elements apart: complex sums */
DEFINE_BLOCK_SUM_FOLD(block_pair_sum_f64, f64, acc[k] + a, 0, 0, 2)

/* Sums over rows of any length: block sums added up in double precision. */
#define DEFINE_ROW_SUM(T)                                                                           \
    KERNEL_INLINE f64 row_sum_##T(const T* x, int64_t n) {                                          \
        f64 s = 0;                                                                                  \
        for (int64_t i = 0; i < n; i += REDUCE_BLOCK) s += block_sum_##T(x + i, x, 0, min_i64(REDUCE_BLOCK, n - i)); \
        return s;                                                                                   \
    }                                                                                               \
    KERNEL_INLINE f64 row_dot_##T(const T* x, const T* y, int64_t n) {                              \
        f64 s = 0;                                                                                  \
        for (int64_t i = 0; i < n; i += REDUCE_BLOCK) s += block_dot_##T(x + i, y + i, 0, min_i64(REDUCE_BLOCK, \
                n - i));                                                                            \
        return s;                                                                                   \
    }
DEFINE_ROW_SUM(f32)
DEFINE_ROW_SUM(f64)

/* exp(x) for x <= 0 (or barely above), as softmax needs it: no overflow to guard, results below the normal range
 * are 0, NaN stays. About half the work of exp_f32, 1 ulp. Coefficients: least squares with Lawson's weights
 * on |r| <= ln(2) / 2, relative error 2^-34 before rounding. */
KERNEL_INLINE f32 exp_below_zero_f32(f32 x) {
    const f32 shifter = 0x1.8p23f;
    x = x < -88.0f ? -88.0f : x; /* n = -127 gives the scale 0 */
    f32 t = FMA(x, 0x1.715476p0f, shifter), n = t - shifter;
    f32 r = FMA(n, -0x1.7f7d1cp-20f, FMA(n, -0x1.62e4p-1f, x));
    f32 p = FMA(0x1.9f07e4p-13f, r, 0x1.6d8db2p-10f);
    p = FMA(p, r, 0x1.111272p-7f);
    p = FMA(p, r, 0x1.55548ep-5f);
    p = FMA(p, r, 0x1.555554p-3f);
    p = FMA(p, r, 0.5f);
    p = FMA(p, r * r, r);
    f32 scale = from_bits_f32((bits_f32(t) + 127u) << 23);
    return FMA(p, scale, scale);
}
KERNEL_INLINE f64 exp_below_zero_f64(f64 x) { return exp_f64(x); }

/* Largest element, NaN when there is one, -inf when n = 0. Exact, hence free of order. */
#define DEFINE_BLOCK_EXTREME(NAME, T, CMP, START)                                                   \
    KERNEL_INLINE T NAME(const T* x, int64_t n) {                                                   \
        T m = START;                                                                                \
        int unordered = 0;                                                                          \
        SIMD_REDUCTION_##CMP                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                           \
            m = EXTREME_##CMP(x[i], m);                                                             \
            unordered |= x[i] != x[i];                                                              \
        }                                                                                           \
        return unordered ? (T)NAN : m;                                                              \
    }
#define SIMD_REDUCTION_max _Pragma("omp simd reduction(max:m) reduction(|:unordered)")
#define SIMD_REDUCTION_min _Pragma("omp simd reduction(min:m) reduction(|:unordered)")
#define EXTREME_max(a, b) ((a) > (b) ? (a) : (b))
#define EXTREME_min(a, b) ((a) < (b) ? (a) : (b))
DEFINE_BLOCK_EXTREME(block_max_f32, f32, max, -INFINITY)
DEFINE_BLOCK_EXTREME(block_max_f64, f64, max, -INFINITY)
DEFINE_BLOCK_EXTREME(block_min_f32, f32, min, INFINITY)
DEFINE_BLOCK_EXTREME(block_min_f64, f64, min, INFINITY)

/* Running mean and sum of squared deviations, merged by Chan, Golub and LeVeque (1979). */
typedef struct {
    f64 count, mean, m2;
} moments;

KERNEL_INLINE void moments_merge(moments* s, f64 count, f64 mean, f64 m2) {
    f64 total = s->count + count, delta = mean - s->mean;
    if (count == 0) return;
    s->mean += delta * (count / total);
    s->m2 += m2 + delta * delta * (s->count * count / total);
    s->count = total;
}

/* Two passes over a block in L1; the second corrects the rounding of the first pass's mean. */
#define DEFINE_BLOCK_MOMENTS(T)                                                                     \
    KERNEL_INLINE void block_moments_##T(moments* s, const T* x, int64_t n) {                       \
        if (n == 0) return;                                                                         \
        T mean = (T)((f64)block_sum_##T(x, x, 0, n) / (f64)n);                                      \
        f64 dev = block_dev_sum_##T(x, x, mean, n), sq = block_dev_sq_sum_##T(x, x, mean, n);       \
        moments_merge(s, (f64)n, (f64)mean + dev / (f64)n, fmax(sq - dev * dev / (f64)n, 0));       \
    }                                                                                               \
    KERNEL_INLINE void row_moments_##T(moments* s, const T* x, int64_t n) {                         \
        for (int64_t i = 0; i < n; i += REDUCE_BLOCK) block_moments_##T(s, x + i, min_i64(REDUCE_BLOCK, n - i)); \
    }
DEFINE_BLOCK_MOMENTS(f32)
DEFINE_BLOCK_MOMENTS(f64)

/* A table row of the floating types: ENTRY(T, ...) for each. */
#define FLOATS_OF(ENTRY, ...) \
    {                                                                                                \
        [DT_f16] = ENTRY(f16, ##__VA_ARGS__), ENTRY(bf16, ##__VA_ARGS__), ENTRY(f32, ##__VA_ARGS__), \
        ENTRY(f64, ##__VA_ARGS__)                                                                    \
    }

#endif
