/* Distances of rows. Forward, vectors hold rows of x2 beside each other: some elements of a block of rows are transposed into `packed`, so that no sum crosses a
 * vector, whatever d is. Where x1 has few rows that does not pay, and vectors run along d. Gradients run along d, in registers over a block of distances. */
/* Measured: trt.cdist(row.reshape(-1, 16)[:200], row.reshape(-1, 16)[:200], p=1); trt.cdist(row.reshape(-1, 16)[:200], row.reshape(-1, 16)[:200], p=3) */
#include "distance_steps.h"
#include "kernel_base.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

enum {
    DEPTH = 64,   /* elements of a row that are packed at a time; their sum is added to that of those before */
    FEW_ROWS = 4, /* of x1, for which packing does not pay */
    COLUMNS = 128 /* distances whose factors are computed at a time, of gradients */
};

#define BITS_f32(x) ((vi32)(x))
#define BITS_f64(x) ((vi64)(x))
#define ROOT_f32(x) __builtin_sqrtf(x)
#define ROOT_f64(x) __builtin_sqrt(x)

/* The distance of pair (i, j), i < j, of n rows. */
KERNEL_INLINE int64_t pair_place(int64_t n, int64_t i, int64_t j) { return i * (2 * n - i - 1) / 2 + j - i - 1; }

/* Even and odd elements have sums of their own, for an addition waits for the one before. */
#define TERM(T, at, sum, EXPR) { v##T v = *(const v##T##_u*)(packed + (at)) - x[k], s = sum; sum = EXPR; }
#define ACCUMULATE(T, EXPR, JOINED)                                                                                         \
    for (; k + 1 < depth; k++) {                                                                                            \
        TERM(T, k * W, s0, EXPR)                                                                                            \
        TERM(T, k * W + L, s1, EXPR)                                                                                        \
        k++;                                                                                                                \
        TERM(T, k * W, s2, EXPR)                                                                                            \
        TERM(T, k * W + L, s3, EXPR)                                                                                        \
    }                                                                                                                       \
    if (k < depth) {                                                                                                        \
        TERM(T, k * W, s0, EXPR)                                                                                            \
        TERM(T, k * W + L, s1, EXPR)                                                                                        \
    }                                                                                                                       \
    s0 = JOINED(s0, s2);                                                                                                    \
    s1 = JOINED(s1, s3);                                                                                                    \
    break
#define PLUS(a, b) ((a) + (b))
#define MAGNITUDE(T, v) ((v##T)(BITS_##T(v) & BITS_##T(magnitude)))
/* Magnitudes have the order of their bits, with NaN behind infinity. */
#if defined(__AVX512F__)
#define LARGER_f32(a, s) ((vf32)_mm512_max_epi32((__m512i)(a), (__m512i)(s)))
#define LARGER_f64(a, s) ((vf64)_mm512_max_epi64((__m512i)(a), (__m512i)(s)))
#else
#define LARGER_f32(a, s) ((vf32)((BITS_f32(a) & (BITS_f32(a) > BITS_f32(s))) | (BITS_f32(s) & ~(BITS_f32(a) > BITS_f32(s)))))
#define LARGER_f64(a, s) ((vf64)((BITS_f64(a) & (BITS_f64(a) > BITS_f64(s))) | (BITS_f64(s) & ~(BITS_f64(a) > BITS_f64(s)))))
#endif

#define DEFINE_DISTANCES(T)                                                                                                 \
    enum { LANES_##T = VECTOR_BYTES / sizeof(T), WIDTH_##T = 2 * LANES_##T };                                                \
    /* Sums (largest, counts) over `depth` elements of one row with a block of packed ones. */                               \
    static void distance_tile_##T(const distance_call* a, const T* x, const T* packed, int64_t depth, T* sums) {             \
        enum { L = LANES_##T, W = WIDTH_##T };                                                                              \
        v##T s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, one = s0 + 1;\
        int64_t k = 0;                                                                              \
        const v##T magnitude = (v##T)~BITS_##T(-(s0 + (T)0.0));                                                             \
        switch (a->kind) {                                                                                                  \
        case DISTANCE_COUNT: ACCUMULATE(T, s + (v##T)(BITS_##T(one) & BITS_##T(v != 0)), PLUS); \
        case DISTANCE_ONE: ACCUMULATE(T, s + MAGNITUDE(T, v), PLUS); \
        case DISTANCE_TWO: ACCUMULATE(T, s + v * v, PLUS); \
        case DISTANCE_THREE: ACCUMULATE(T, s + MAGNITUDE(T, v) * v * v, PLUS); \
        case DISTANCE_LARGEST: ACCUMULATE(T, LARGER_##T(MAGNITUDE(T, v), s), LARGER_##T); \
        default: {                                                                                                          \
            T total[W] = {0}, p = (T)a->p;                                                                                  \
            for (; k < depth; k++) {                                                                                        \
                if (p == (T)0.5)                                                                                            \
                    VECTORIZE for (int w = 0; w < W; w++) total[w] += ROOT_##T(abs_##T(packed[k * W + w] - x[k]));           \
                else                                                                                                        \
                    VECTORIZE for (int w = 0; w < W; w++) total[w] += pow_##T(abs_##T(packed[k * W + w] - x[k]), p);         \
            }                                                                                                               \
            memcpy(sums, total, sizeof total);                                                                              \
            return;                                                                                                         \
        }                                                                                                                   \
        }                                                                                                                   \
        *(v##T##_u*)sums = s0;                                                                                              \
        *(v##T##_u*)(sums + L) = s1;                                                                                        \
    }                                                                                                                       \
    static void distance_roots_##T(const distance_call* a, T* x, int64_t n) {                                               \
        const T p = (T)(1 / a->p);                                                                                          \
        if (a->kind == DISTANCE_TWO)                                                                                        \
            VECTORIZE for (int64_t i = 0; i < n; i++) x[i] = ROOT_##T(x[i]);                                                \
        else if (a->kind == DISTANCE_GENERAL && a->p == 0.5)                                                                \
            VECTORIZE for (int64_t i = 0; i < n; i++) x[i] *= x[i];                                                         \
        else if (a->kind == DISTANCE_GENERAL || a->kind == DISTANCE_THREE)                                                  \
            VECTORIZE for (int64_t i = 0; i < n; i++) x[i] = pow_##T(x[i], p);                                              \
    }                                                                                                                       \
    /* Few rows: each distance by itself, its elements in vectors. */                                                       \
    static T distance_alone_##T(const distance_call* a, const T* x, const T* y) {                                           \
        enum { W = WIDTH_##T };                                                                                             \
        T packed[W], sums[W], zero = 0, total[W] = {0}, result = 0;                                                         \
        for (int64_t k = 0; k < a->d; k += W) {                                                                             \
            const int64_t n = min_i64(W, a->d - k);                                                                         \
            for (int w = 0; w < W; w++) packed[w] = 0;                                                                      \
            for (int64_t w = 0; w < n; w++) packed[w] = y[k + w] - x[k + w];                                                \
            distance_tile_##T(a, &zero, packed, 1, sums);                                                                   \
            if (a->kind == DISTANCE_LARGEST)                                                                                \
                for (int w = 0; w < W; w++) total[w] = sums[w] > total[w] || sums[w] != sums[w] ? sums[w] : total[w];         \
            else                                                                                                            \
                for (int w = 0; w < W; w++) total[w] += sums[w];                                                            \
        }                                                                                                                   \
        for (int w = 0; w < W; w++)                                                                                         \
            if (a->kind != DISTANCE_LARGEST) result += total[w];                                                            \
            else if (total[w] > result || total[w] != total[w]) result = total[w];                                          \
        distance_roots_##T(a, &result, 1);                                                                                  \
        return result;                                                                                                      \
    }                                                                                                                       \
    static void distance_rows_##T(const distance_call* a, const T* x1, const T* x2, T* out, int64_t first, int64_t last) {    \
        enum { W = WIDTH_##T };                                                                                             \
        T packed[DEPTH * W], sums[W];                                                                                       \
        const int64_t d = a->d;                                                                                             \
        for (int64_t j = a->pairs ? (first + 1) / W * W : 0; j < a->m; j += W) {                                            \
            const int64_t width = min_i64(W, a->m - j);                                                                     \
            for (int64_t k = 0; k < d || k == 0; k += DEPTH) {                                                              \
                const int64_t depth = min_i64(DEPTH, d - k);                                                                \
                for (int64_t w = 0; w < width; w++)                                                                         \
                    for (int64_t c = 0; c < depth; c++) packed[c * W + w] = x2[(j + w) * d + k + c];                         \
                for (int64_t c = 0; c < depth && width < W; c++)                                                            \
                    for (int64_t w = width; w < W; w++) packed[c * W + w] = 0;                                              \
                for (int64_t i = first; i < last; i++) {                                                                    \
                    const int64_t skip = a->pairs ? max_i64(0, i + 1 - j) : 0;                                              \
                    if (skip >= width) break;                                                                               \
                    T* to = a->pairs ? out + pair_place(a->n, i, j + skip) : out + i * a->m + j;                            \
                    distance_tile_##T(a, x1 + i * d + k, packed, depth, sums);                                              \
                    if (k == 0)                                                                                             \
                        for (int64_t w = skip; w < width; w++) to[w - skip] = sums[w];                                      \
                    else if (a->kind == DISTANCE_LARGEST)                                                                   \
                        for (int64_t w = skip; w < width; w++) to[w - skip] = sums[w] > to[w - skip] || sums[w] != sums[w] ? sums[w] : to[w - skip]; \
                    else                                                                                                    \
                        for (int64_t w = skip; w < width; w++) to[w - skip] += sums[w];                                     \
                    if (k + DEPTH >= d) distance_roots_##T(a, to, width - skip);                                            \
                }                                                                                                           \
            }                                                                                                               \
        }                                                                                                                   \
    }                                                                                                                       \
    static void row_distances_##T(const distance_call* a, int64_t begin, int64_t end) {                                     \
        while (begin < end) {                                                                                               \
            const int64_t batch = begin / a->n, first = begin % a->n, last = min_i64(a->n, first + end - begin);             \
            const T *x1 = (const T*)a->x1 + batch * a->n * a->d, *x2 = (const T*)a->x2 + batch * a->m * a->d;                \
            T* out = (T*)a->out + batch * a->n * a->m;                                                                      \
            if (a->n < FEW_ROWS && !a->pairs)                                                                               \
                for (int64_t i = first; i < last; i++)                                                                      \
                    for (int64_t j = 0; j < a->m; j++) out[i * a->m + j] = distance_alone_##T(a, x1 + i * a->d, x2 + j * a->d); \
            else                                                                                                            \
                distance_rows_##T(a, x1, x2, out, first, last);                                                             \
            begin += last - first;                                                                                          \
        }                                                                                                                   \
    }
ROW_DISTANCES_TYPES(DEFINE_DISTANCES)
ROW_DISTANCES_TASK

/* ---- gradients: the factor of each distance is grad * distance^(1 - p), that of each element sign(v) |v|^(p - 1) -------------------------------- */

/* Vectors of the last elements of a row: 4 and 2 or 1 of them beside the widest. */
typedef f32 v4f32 __attribute__((vector_size(16)));
typedef f64 v4f64 __attribute__((vector_size(32)));
typedef f32 v1f32 __attribute__((vector_size(4)));
typedef f64 v1f64 __attribute__((vector_size(8)));
typedef i32 v4i32 __attribute__((vector_size(16)));
typedef i64 v4i64 __attribute__((vector_size(32)));
typedef i32 v1i32 __attribute__((vector_size(4)));
typedef i64 v1i64 __attribute__((vector_size(8)));
typedef vf32 vLf32;
typedef vf64 vLf64;
typedef vi32 vLi32;
typedef vi64 vLi64;
#define INTEGERS_f32 i32
#define INTEGERS_f64 i64
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define EACH_COLUMN(EXPR)                                                                                                   \
    for (int64_t j = 0; j < count; j++) {                                                                                   \
        UNROLL for (int q = 0; q < COUNT; q++) {                                                                            \
            V v, s, c = (V){0} + factor[j];                                                                                 \
            memcpy(&v, y + j * d + q * N, sizeof v);                                                                        \
            v = mine[q] - v;                                                                                                \
            s = EXPR;                                                                                                       \
            sum[q] += s;                                                                                                    \
        }                                                                                                                   \
    }                                                                                                                       \
    break
/* sign(v) * c: 0 for 0, NaN for NaN */
#define SIGNED(v, c) ((V)((((I)(c) ^ ((I)(v) & (I)sign)) & ((I)(v > 0) | (I)(v < 0))) | ((I)(v) & (I)(v != v))))

/* Vectors of v<NAME><T>, of so many elements each: the gradient of these elements of a row grows by what `count` distances give. */
#define DEFINE_GRADIENT_PIECE(T, NAME, ELEMENTS, VECTORS)                                                                           \
    static void JOIN(gradient_##NAME##VECTORS##_, T)(const distance_call* a, const T* x, const T* y, const T* factor, const T* distance, int64_t count, T* to) { \
        typedef JOIN(v##NAME, T) V;                                                                                         \
        typedef JOIN(v##NAME, INTEGERS_##T) I;                                                                              \
        enum { N = ELEMENTS, COUNT = VECTORS };                                                                             \
        const int64_t d = a->d;                                                                                             \
        const V zero = {0}, sign = -(zero + (T)0.0);                                                                        \
        V mine[COUNT], sum[COUNT];                                                                                          \
        memcpy(mine, x, sizeof mine);                                                                                       \
        memcpy(sum, to, sizeof sum);                                                                                        \
        switch (a->kind) {                                                                                                  \
        case DISTANCE_ONE: EACH_COLUMN(SIGNED(v, c));                                                                       \
        case DISTANCE_TWO: EACH_COLUMN(v * c);                                                                              \
        case DISTANCE_THREE: EACH_COLUMN(v * (V)((I)v & ~(I)sign) * c);                                                     \
        default: EACH_COLUMN((V)((I)SIGNED(v, c) & ((I)((V)((I)v & ~(I)sign) == distance[j]) | (I)(v != v))));                      \
        }                                                                                                                   \
        memcpy(to, sum, sizeof sum);                                                                                        \
    }

#define DEFINE_GRADIENTS(T)                                                                                                 \
    DEFINE_GRADIENT_PIECE(T, L, LANES_##T, 4)                                                                               \
    DEFINE_GRADIENT_PIECE(T, L, LANES_##T, 1)                                                                               \
    DEFINE_GRADIENT_PIECE(T, 4, 4, 1)                                                                                       \
    DEFINE_GRADIENT_PIECE(T, 1, 1, 1)                                                                                       \
    static void gradient_powers_##T(const distance_call* a, const T* x, const T* y, const T* factor, int64_t count, T* to) { \
        const T p = (T)(a->p - 1);                                                                                          \
        for (int64_t j = 0; j < count; j++, y += a->d)                                                                      \
            VECTORIZE for (int64_t k = 0; k < a->d; k++) {                                                                  \
                const T v = x[k] - y[k], size = pow_##T(abs_##T(v), p) * factor[j];                                         \
                to[k] += v == 0 ? 0 : copysign_##T(1, v) * size;                                                            \
            }                                                                                                               \
    }                                                                                                                       \
    static void row_distances_gradient_##T(const distance_call* a, int64_t begin, int64_t end) {                            \
        T factor[COLUMNS], distance[COLUMNS];                                                                               \
        const T power = (T)(1 - a->p);                                                                                      \
        for (int64_t row = begin; row < end; row++) {                                                                       \
            const int64_t batch = row / a->n, i = row % a->n, d = a->d, base = batch * a->n * a->m;                          \
            const T *x = (const T*)a->x1 + row * d, *g = (const T*)a->grad, *r = (const T*)a->distances;                      \
            T* to = (T*)a->out + row * d;                                                                                   \
            memset(to, 0, (size_t)d * sizeof(T));                                                                           \
            for (int64_t first = 0; first < a->m; first += COLUMNS) {                                                       \
                const int64_t count = min_i64(COLUMNS, a->m - first);                                                       \
                const T* y = (const T*)a->x2 + (batch * a->m + first) * d;                                                  \
                int64_t j = 0, place = base + i * a->row_step + first * a->column_step, step = a->column_step;              \
                if (a->pairs) {                                                                                             \
                    place = first < i ? pair_place(a->n, first, i) : 0;                                                     \
                    for (step = a->n - first - 2; j < count && first + j < i; j++, place += step--) {                       \
                        factor[j] = g[place];                                                                               \
                        distance[j] = r[place];                                                                             \
                    }                                                                                                       \
                    if (j < count && first + j == i) factor[j] = distance[j] = 0, j++;                                      \
                    place = j < count ? pair_place(a->n, i, first + j) : 0;                                                 \
                    step = 1;                                                                                               \
                }                                                                                                           \
                for (; j < count; j++, place += step) {                                                                     \
                    factor[j] = g[place];                                                                                   \
                    distance[j] = r[place];                                                                                 \
                }                                                                                                           \
                if (a->kind == DISTANCE_TWO)                                                                                \
                    VECTORIZE for (int64_t j = 0; j < count; j++) factor[j] = distance[j] == 0 ? 0 : factor[j] / distance[j]; \
                else if (a->kind == DISTANCE_THREE)                                                                         \
                    VECTORIZE for (int64_t j = 0; j < count; j++) factor[j] = distance[j] == 0 ? 0 : factor[j] / (distance[j] * distance[j]); \
                else if (a->kind == DISTANCE_GENERAL)                                                                       \
                    VECTORIZE for (int64_t j = 0; j < count; j++) factor[j] = distance[j] == 0 ? 0 : factor[j] * pow_##T(distance[j], power); \
                if (a->kind == DISTANCE_GENERAL) {                                                                          \
                    gradient_powers_##T(a, x, y, factor, count, to);                                                        \
                    continue;                                                                                               \
                }                                                                                                           \
                int64_t k = 0;                                                                                              \
                for (; k + 4 * LANES_##T <= d; k += 4 * LANES_##T) gradient_L4_##T(a, x + k, y + k, factor, distance, count, to + k); \
                for (; k + LANES_##T <= d; k += LANES_##T) gradient_L1_##T(a, x + k, y + k, factor, distance, count, to + k);  \
                for (; k + 4 <= d; k += 4) gradient_41_##T(a, x + k, y + k, factor, distance, count, to + k);                \
                for (; k < d; k++) gradient_11_##T(a, x + k, y + k, factor, distance, count, to + k);                        \
            }                                                                                                               \
        }                                                                                                                   \
    }
ROW_DISTANCES_GRADIENT_TYPES(DEFINE_GRADIENTS)
ROW_DISTANCES_GRADIENT_TASK
