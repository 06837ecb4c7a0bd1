/* Reductions of rows (inner dimension), of chunks of one long row, and the merging of their partials.
 *
 * An operator is a state S with four parts: init, absorb (a block of at most REDUCE_BLOCK contiguous elements
 * of the compute type), merge (two states), finish (store one result). DEFINE_REDUCE makes the three entry
 * points of reduction.h from them. Halves compute in f32, integers in i64; floating states are f64, so only the
 * fixed tree inside a block rounds in the compute type. bool (0 or 1) runs the u8 kernels. Columns are in
 * reduce_cols.h. */
#ifndef TRT_REDUCE_H
#define TRT_REDUCE_H

#include "kernel_base.h"
#include "reduction.h"

/* NAME: operator and dtype; T: storage; C: compute type; OP_C: operator and compute type; STAGE: row -> C run. */
#define DEFINE_REDUCE(NAME, T, C, S, OP_C, STAGE, FINISH)                                           \
    KERNEL_ONCE void NAME##_absorb_run(S* s, const char* p, int64_t es, int64_t n, int64_t first,   \
                                     const reduce_call* call) {                                     \
        C buf[REDUCE_BLOCK];                                                                        \
        for (int64_t i = 0; i < n; i += REDUCE_BLOCK) {                                             \
            int64_t m = min_i64(REDUCE_BLOCK, n - i);                                               \
            OP_C##_absorb(s, STAGE(p + i * es, es, m, buf), m, first + i, call);                    \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void NAME##_rows(const char* in, int64_t row_stride, int64_t elem_stride, int64_t n, char* out, \
                               int64_t out_stride, int64_t rows_begin, int64_t rows_end, const reduce_call* call) { \
        for (int64_t r = rows_begin; r < rows_end; r++) {                                           \
            S s = OP_C##_init();                                                                    \
            NAME##_absorb_run(&s, in + r * row_stride, elem_stride, n, 0, call);                    \
            FINISH(&s, n, out + r * out_stride, call && call->second ? call->second + r * call->second_stride : 0, \
                   call);                                                                           \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void NAME##_chunks(const char* in, int64_t elem_stride, int64_t n, int64_t chunk, char* partials, \
                                 int64_t chunks_begin, int64_t chunks_end, const reduce_call* call) { \
        _Static_assert(sizeof(S) <= REDUCE_PARTIAL_BYTES, "a partial must fit its slot");           \
        for (int64_t k = chunks_begin; k < chunks_end; k++) {                                       \
            S s = OP_C##_init();                                                                    \
            int64_t first = k * chunk;                                                              \
            NAME##_absorb_run(&s, in + first * elem_stride, elem_stride, min_i64(chunk, n - first), first, call); \
            memcpy(partials + k * REDUCE_PARTIAL_BYTES, &s, sizeof s);                              \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void NAME##_combine(const char* partials, int64_t count, int64_t n, char* out, const reduce_call* call) { \
        S s = OP_C##_init();                                                                        \
        for (int64_t k = 0; k < count; k++) {                                                       \
            S other;                                                                                \
            memcpy(&other, partials + k * REDUCE_PARTIAL_BYTES, sizeof other);                      \
            OP_C##_merge(&s, &other);                                                               \
        }                                                                                           \
        FINISH(&s, n, out, call ? call->second : 0, call);                                          \
    }

#define ABSORB_ARGS(S, C) S *s, const C *x, int64_t n, int64_t first, const reduce_call *call
#define FINISH_ARGS(S) const S *s, int64_t n, char *out, char *second, const reduce_call *call

KERNEL_INLINE int has_flag(const reduce_call* call, int flag) { return call && (call->flags & flag); }

/* ---- sum, sum of |x|, sum of squares, sum of |x|^p: one compensated f64 (Neumaier 1974) over block sums ---- */
typedef struct {
    f64 sum, lost;
} float_sum;
typedef struct {
    float_sum re, im;
} complex_sum;
typedef struct {
    uint64_t sum;
} int_sum; /* unsigned: wraps around without undefined behaviour */

KERNEL_INLINE void float_sum_add(float_sum* s, f64 v) {
    f64 t = s->sum + v;
    s->lost += fabs(s->sum) >= fabs(v) ? (s->sum - t) + v : (v - t) + s->sum;
    s->sum = t;
}
/* After an infinity the lost part is NaN and says nothing. */
KERNEL_INLINE f64 float_sum_value(const float_sum* s) {
    return isfinite(s->lost) && isfinite(s->sum) ? s->sum + s->lost : s->sum;
}
KERNEL_INLINE void float_sum_merge(float_sum* s, const float_sum* o) {
    float_sum_add(s, o->sum);
    s->lost += o->lost;
}

#define DEFINE_FLOAT_SUM_STATE(OP_C, C, BLOCK_EXPR)                                                 \
    KERNEL_INLINE float_sum OP_C##_init(void) { return (float_sum){0, 0}; }                         \
    KERNEL_ONCE void OP_C##_absorb(ABSORB_ARGS(float_sum, C)) {                                     \
        (void)first; (void)call;                                                                    \
        float_sum_add(s, BLOCK_EXPR);                                                               \
    }                                                                                               \
    KERNEL_INLINE void OP_C##_merge(float_sum* s, const float_sum* o) { float_sum_merge(s, o); }

DEFINE_FLOAT_SUM_STATE(sum_f32, f32, block_sum_f32(x, x, 0, n))
DEFINE_FLOAT_SUM_STATE(sum_f64, f64, block_sum_f64(x, x, 0, n))
DEFINE_FLOAT_SUM_STATE(abs_sum_f32, f32, block_abs_sum_f32(x, x, 0, n))
DEFINE_FLOAT_SUM_STATE(abs_sum_f64, f64, block_abs_sum_f64(x, x, 0, n))
DEFINE_FLOAT_SUM_STATE(sq_sum_f32, f32, block_sq_sum_f32(x, x, 0, n))
DEFINE_FLOAT_SUM_STATE(sq_sum_f64, f64, block_sq_sum_f64(x, x, 0, n))
DEFINE_FLOAT_SUM_STATE(sq_sum_c64, c64, block_sq_sum_f32((const f32*)x, (const f32*)x, 0, 2 * n))
DEFINE_FLOAT_SUM_STATE(sq_sum_c128, c128, block_sq_sum_f64((const f64*)x, (const f64*)x, 0, 2 * n))

#define DEFINE_BLOCK_POW_SUM(C)                                                                     \
    KERNEL_INLINE C block_pow_sum_##C(const C* x, int64_t n, f64 p) {                               \
        C powers[REDUCE_BLOCK];                                                                     \
        if (p == 3) {                                                                               \
            VECTORIZE for (int64_t i = 0; i < n; i++) powers[i] = (x[i] < 0 ? -x[i] : x[i]) * (x[i] * x[i]); \
        } else {                                                                                    \
            VECTORIZE for (int64_t i = 0; i < n; i++) powers[i] = pow_##C(x[i] < 0 ? -x[i] : x[i], (C)p); \
        }                                                                                           \
        return block_sum_##C(powers, powers, 0, n);                                                 \
    }
DEFINE_BLOCK_POW_SUM(f32)
DEFINE_BLOCK_POW_SUM(f64)
DEFINE_FLOAT_SUM_STATE(norm_p_f32, f32, block_pow_sum_f32(x, n, call->p))
DEFINE_FLOAT_SUM_STATE(norm_p_f64, f64, block_pow_sum_f64(x, n, call->p))

#define DEFINE_COMPLEX_SUM_STATE(C, R)                                                              \
    KERNEL_INLINE complex_sum sum_##C##_init(void) { return (complex_sum){{0, 0}, {0, 0}}; }        \
    KERNEL_ONCE void sum_##C##_absorb(ABSORB_ARGS(complex_sum, C)) {                                \
        (void)first; (void)call;                                                                    \
        R pair[2];                                                                                  \
        block_pair_sum_##R##_fold((const R*)x, (const R*)x, 0, 2 * n, pair);                        \
        float_sum_add(&s->re, pair[0]);                                                             \
        float_sum_add(&s->im, pair[1]);                                                             \
    }                                                                                               \
    KERNEL_INLINE void sum_##C##_merge(complex_sum* s, const complex_sum* o) {                      \
        float_sum_merge(&s->re, &o->re);                                                            \
        float_sum_merge(&s->im, &o->im);                                                            \
    }                                                                                               \
    KERNEL_INLINE void sum_finish_##C(FINISH_ARGS(complex_sum)) {                                   \
        (void)second;                                                                               \
        f64 scale = has_flag(call, REDUCE_MEAN) ? (f64)n : 1.0;                                     \
        ((R*)out)[0] = (R)(float_sum_value(&s->re) / scale);                                        \
        ((R*)out)[1] = (R)(float_sum_value(&s->im) / scale);                                        \
    }
DEFINE_COMPLEX_SUM_STATE(c64, f32)
DEFINE_COMPLEX_SUM_STATE(c128, f64)

#define DEFINE_INT_SUM_STATE(C)                                                                     \
    KERNEL_INLINE int_sum sum_##C##_init(void) { return (int_sum){0}; }                             \
    KERNEL_ONCE void sum_##C##_absorb(ABSORB_ARGS(int_sum, C)) {                                    \
        (void)first; (void)call;                                                                    \
        uint64_t block = 0;                                                                         \
        if (sizeof(C) <= 2) { /* a block of 1024 16-bit values cannot overflow 32 bits */           \
            i32 narrow = 0;                                                                         \
            for (int64_t i = 0; i < n; i++) narrow += (i32)x[i];                                    \
            block = (uint64_t)(int64_t)narrow;                                                      \
        } else {                                                                                    \
            for (int64_t i = 0; i < n; i++) block += (uint64_t)(int64_t)x[i];                       \
        }                                                                                           \
        s->sum += block;                                                                            \
    }                                                                                               \
    KERNEL_INLINE void sum_##C##_merge(int_sum* s, const int_sum* o) { s->sum += o->sum; }
DEFINE_INT_SUM_STATE(u8)
DEFINE_INT_SUM_STATE(i8)
DEFINE_INT_SUM_STATE(i16)
DEFINE_INT_SUM_STATE(i32)
DEFINE_INT_SUM_STATE(i64)

KERNEL_INLINE void int_sum_finish(FINISH_ARGS(int_sum)) {
    (void)n; (void)second; (void)call;
    *(i64*)out = (i64)s->sum;
}

#define COMPUTE_f16 f32
#define COMPUTE_bf16 f32
#define COMPUTE_f32 f32
#define COMPUTE_f64 f64
#define DEFINE_FLOAT_SUM_FINISH(T)                                                                  \
    KERNEL_INLINE void sum_finish_##T(FINISH_ARGS(float_sum)) {                                     \
        (void)second;                                                                               \
        f64 v = float_sum_value(s);                                                                 \
        if (has_flag(call, REDUCE_MEAN)) v /= (f64)n;                                               \
        if (has_flag(call, REDUCE_SQRT)) v = sqrt(v);                                               \
        store_##T(out, v);                                                                          \
    }                                                                                               \
    KERNEL_INLINE void norm_p_finish_##T(FINISH_ARGS(float_sum)) {                                  \
        (void)n; (void)second;                                                                      \
        store_##T(out, pow(float_sum_value(s), 1.0 / call->p));                                     \
    }                                                                                               \
    /* the same for sums that lie side by side, through `run` of their compute type */              \
    KERNEL_INLINE void sum_finish_##T##_run(const f64* sum, int64_t n, COMPUTE_##T* run, char* out, int64_t count, \
                                            const reduce_call* call) {                              \
        f64 divisor = has_flag(call, REDUCE_MEAN) ? (f64)n : 1;                                     \
        if (divisor == 1 && !has_flag(call, REDUCE_SQRT)) {                                         \
            VECTORIZE for (int64_t c = 0; c < count; c++) run[c] = (COMPUTE_##T)sum[c];             \
        } else if (!has_flag(call, REDUCE_SQRT)) {                                                  \
            VECTORIZE for (int64_t c = 0; c < count; c++) run[c] = (COMPUTE_##T)(sum[c] / divisor); \
        } else {                                                                                    \
            VECTORIZE for (int64_t c = 0; c < count; c++) run[c] = (COMPUTE_##T)__builtin_sqrt(sum[c] / divisor); \
        }                                                                                           \
        unstage_##T(run, out, sizeof(T), count);                                                    \
    }                                                                                               \
    KERNEL_INLINE void norm_p_finish_##T##_run(const f64* sum, int64_t n, COMPUTE_##T* run, char* out, int64_t count, \
                                               const reduce_call* call) {                           \
        (void)n;                                                                                    \
        for (int64_t c = 0; c < count; c++) run[c] = (COMPUTE_##T)pow(sum[c], 1.0 / call->p);       \
        unstage_##T(run, out, sizeof(T), count);                                                    \
    }
DEFINE_FLOAT_SUM_FINISH(f16)
DEFINE_FLOAT_SUM_FINISH(bf16)
DEFINE_FLOAT_SUM_FINISH(f32)
DEFINE_FLOAT_SUM_FINISH(f64)

/* |z| as a run of reals; f64 arithmetic keeps c64 from overflowing, hypot does it for c128. */
KERNEL_INLINE const f32* stage_abs_c64(const char* p, int64_t es, int64_t n, f32* buf) {
    for (int64_t i = 0; i < n; i++) {
        const f32* z = (const f32*)(p + i * es);
        buf[i] = (f32)sqrt((f64)z[0] * z[0] + (f64)z[1] * z[1]);
    }
    return buf;
}
KERNEL_INLINE const f64* stage_abs_c128(const char* p, int64_t es, int64_t n, f64* buf) {
    for (int64_t i = 0; i < n; i++) buf[i] = hypot(((const f64*)(p + i * es))[0], ((const f64*)(p + i * es))[1]);
    return buf;
}

/* ---- product: 32 f64 lanes for floats, enough to hide the latency of a multiplication, two-element arithmetic for complex ---- */
typedef struct {
    f64 re, im;
} product_state;
typedef struct {
    uint64_t product;
} int_product;

#define DEFINE_FLOAT_PROD_STATE(C)                                                                  \
    KERNEL_INLINE product_state prod_##C##_init(void) { return (product_state){1, 0}; }             \
    KERNEL_ONCE void prod_##C##_absorb(ABSORB_ARGS(product_state, C)) {                             \
        (void)first; (void)call;                                                                    \
        f64 lane[32];                                                                               \
        int64_t i = 0;                                                                              \
        for (int j = 0; j < 32; j++) lane[j] = 1;                                                   \
        for (; i + 32 <= n; i += 32)                                                                \
            UNROLL for (int j = 0; j < 32; j++) lane[j] *= x[i + j];                                \
        for (int j = 0; i + j < n; j++) lane[j] *= x[i + j];                                        \
        for (int w = 16; w > 0; w /= 2)                                                             \
            for (int j = 0; j < w; j++) lane[j] *= lane[j + w];                                     \
        s->re *= lane[0];                                                                           \
    }                                                                                               \
    KERNEL_INLINE void prod_##C##_merge(product_state* s, const product_state* o) { s->re *= o->re; }
DEFINE_FLOAT_PROD_STATE(f32)
DEFINE_FLOAT_PROD_STATE(f64)

KERNEL_INLINE void complex_multiply(product_state* s, f64 re, f64 im) {
    f64 r = FMA(s->re, re, -(s->im * im)); /* as mul_c128, so that rows and columns have the same bits */
    s->im = FMA(s->re, im, s->im * re);
    s->re = r;
}
#define DEFINE_COMPLEX_PROD_STATE(C, R)                                                             \
    KERNEL_INLINE product_state prod_##C##_init(void) { return (product_state){1, 0}; }             \
    KERNEL_ONCE void prod_##C##_absorb(ABSORB_ARGS(product_state, C)) {                             \
        (void)first; (void)call;                                                                    \
        const R* z = (const R*)x;                                                                   \
        for (int64_t i = 0; i < n; i++) complex_multiply(s, z[2 * i], z[2 * i + 1]);                \
    }                                                                                               \
    KERNEL_INLINE void prod_##C##_merge(product_state* s, const product_state* o) { complex_multiply(s, o->re, \
            o->im); }                                                                               \
    KERNEL_INLINE void prod_finish_##C(FINISH_ARGS(product_state)) {                                \
        (void)n; (void)second; (void)call;                                                          \
        ((R*)out)[0] = (R)s->re;                                                                    \
        ((R*)out)[1] = (R)s->im;                                                                    \
    }
DEFINE_COMPLEX_PROD_STATE(c64, f32)
DEFINE_COMPLEX_PROD_STATE(c128, f64)

#define DEFINE_FLOAT_PROD_FINISH(T)                                                                 \
    KERNEL_INLINE void prod_finish_##T(FINISH_ARGS(product_state)) {                                \
        (void)n; (void)second; (void)call;                                                          \
        store_##T(out, s->re);                                                                      \
    }
DEFINE_FLOAT_PROD_FINISH(f16)
DEFINE_FLOAT_PROD_FINISH(bf16)
DEFINE_FLOAT_PROD_FINISH(f32)
DEFINE_FLOAT_PROD_FINISH(f64)

#define DEFINE_INT_PROD_STATE(C)                                                                    \
    KERNEL_INLINE int_product prod_##C##_init(void) { return (int_product){1}; }                    \
    KERNEL_ONCE void prod_##C##_absorb(ABSORB_ARGS(int_product, C)) {                               \
        (void)first; (void)call;                                                                    \
        uint64_t lane[8] = {s->product, 1, 1, 1, 1, 1, 1, 1};                                       \
        int64_t i = 0;                                                                              \
        for (; i + 8 <= n; i += 8)                                                                  \
            UNROLL for (int j = 0; j < 8; j++) lane[j] *= (uint64_t)(int64_t)x[i + j];              \
        for (; i < n; i++) lane[0] *= (uint64_t)(int64_t)x[i];                                      \
        s->product = ((lane[0] * lane[1]) * (lane[2] * lane[3])) * ((lane[4] * lane[5]) * (lane[6] * lane[7])); \
    }                                                                                               \
    KERNEL_INLINE void prod_##C##_merge(int_product* s, const int_product* o) { s->product *= o->product; }
DEFINE_INT_PROD_STATE(u8)
DEFINE_INT_PROD_STATE(i8)
DEFINE_INT_PROD_STATE(i16)
DEFINE_INT_PROD_STATE(i32)
DEFINE_INT_PROD_STATE(i64)
KERNEL_INLINE void int_prod_finish(FINISH_ARGS(int_product)) {
    (void)n; (void)second; (void)call;
    *(i64*)out = (i64)s->product;
}

/* ---- min, max, argmin, argmax, max and min of |x|: one state, the index is unused where not asked for ---- */
#define DEFINE_INT_EXTREME(C, CMP)                                                                  \
    KERNEL_INLINE C block_##CMP##_##C(const C* x, int64_t n) {                                      \
        C m = x[0];                                                                                 \
        for (int64_t i = 1; i < n; i++) m = EXTREME_##CMP(x[i], m);                                 \
        return m;                                                                                   \
    }
#define DEFINE_BLOCK_ABS_EXTREME(C, CMP)                                                            \
    KERNEL_INLINE C block_abs_##CMP##_##C(const C* x, int64_t n) {                                  \
        C a[REDUCE_BLOCK];                                                                          \
        VECTORIZE for (int64_t i = 0; i < n; i++) a[i] = x[i] < 0 ? -x[i] : x[i];                   \
        return block_##CMP##_##C(a, n);                                                             \
    }
DEFINE_BLOCK_ABS_EXTREME(f32, max)
DEFINE_BLOCK_ABS_EXTREME(f32, min)
DEFINE_BLOCK_ABS_EXTREME(f64, max)
DEFINE_BLOCK_ABS_EXTREME(f64, min)

/* First i with x[i] == v, or the first NaN when v is one; v is known to be there. */
#define DEFINE_FIND_FIRST(C)                                                                        \
    KERNEL_INLINE int64_t find_first_##C(const C* x, C v, int64_t n) {                              \
        int64_t i = 0;                                                                              \
        for (; i + 64 <= n; i += 64) {                                                              \
            int hit = 0;                                                                            \
            VECTORIZE for (int j = 0; j < 64; j++) hit |= (x[i + j] == v) | ((x[i + j] != x[i + j]) & (v != v)); \
            if (hit) break;                                                                         \
        }                                                                                           \
        while (i < n - 1 && !(x[i] == v || (x[i] != x[i] && v != v))) i++;                          \
        return i;                                                                                   \
    }

#define DEFINE_EXTREME_STATE(NAME, C, CMP, LESS, BLOCK)                                             \
    KERNEL_INLINE extreme_##C NAME##_##C##_init(void) { return (extreme_##C){0, -1}; }              \
    KERNEL_ONCE void NAME##_##C##_absorb(ABSORB_ARGS(extreme_##C, C)) {                             \
        (void)call;                                                                                 \
        C m = BLOCK(x, n);                                                                          \
        if (s->index < 0 || s->value LESS m || (m != m && s->value == s->value)) *s = (extreme_##C){m, first}; \
    }                                                                                               \
    KERNEL_INLINE void NAME##_##C##_merge(extreme_##C* s, const extreme_##C* o) {                   \
        if (o->index < 0) return;                                                                   \
        if (s->index < 0 || s->value LESS o->value || (o->value != o->value && s->value == s->value)) *s = *o; \
    }
#define DEFINE_ARG_STATE(NAME, C, CMP, LESS)                                                        \
    KERNEL_INLINE extreme_##C NAME##_##C##_init(void) { return (extreme_##C){0, -1}; }              \
    KERNEL_ONCE void NAME##_##C##_absorb(ABSORB_ARGS(extreme_##C, C)) {                             \
        (void)call;                                                                                 \
        C m = block_##CMP##_##C(x, n);                                                              \
        if (s->index < 0 || s->value LESS m || (m != m && s->value == s->value))                    \
            *s = (extreme_##C){m, first + find_first_##C(x, m, n)};                                 \
    }                                                                                               \
    KERNEL_INLINE void NAME##_##C##_merge(extreme_##C* s, const extreme_##C* o) { CMP##_##C##_merge(s, o); }

#define DEFINE_EXTREMES(C)                                                                          \
    typedef struct {                                                                                \
        C value;                                                                                    \
        int64_t index;                                                                              \
    } extreme_##C;                                                                                  \
    DEFINE_FIND_FIRST(C)                                                                            \
    DEFINE_EXTREME_STATE(max, C, max, <, block_max_##C)                                             \
    DEFINE_EXTREME_STATE(min, C, min, >, block_min_##C)                                             \
    DEFINE_ARG_STATE(argmax, C, max, <)                                                             \
    DEFINE_ARG_STATE(argmin, C, min, >)
#define DEFINE_INT_EXTREMES(C)                                                                      \
    DEFINE_INT_EXTREME(C, max)                                                                      \
    DEFINE_INT_EXTREME(C, min)                                                                      \
    DEFINE_EXTREMES(C)
DEFINE_INT_EXTREMES(u8)
DEFINE_INT_EXTREMES(i8)
DEFINE_INT_EXTREMES(i16)
DEFINE_INT_EXTREMES(i32)
DEFINE_INT_EXTREMES(i64)
DEFINE_EXTREMES(f32)
DEFINE_EXTREMES(f64)
DEFINE_EXTREME_STATE(abs_max, f32, max, <, block_abs_max_f32)
DEFINE_EXTREME_STATE(abs_min, f32, min, >, block_abs_min_f32)
DEFINE_EXTREME_STATE(abs_max, f64, max, <, block_abs_max_f64)
DEFINE_EXTREME_STATE(abs_min, f64, min, >, block_abs_min_f64)

#define DEFINE_EXTREME_FINISH(T, C, STORE)                                                          \
    KERNEL_INLINE void extreme_finish_##T(FINISH_ARGS(extreme_##C)) {                               \
        (void)n; (void)second; (void)call;                                                          \
        *(T*)out = STORE(s->value);                                                                 \
    }                                                                                               \
    KERNEL_INLINE void arg_finish_##T(FINISH_ARGS(extreme_##C)) {                                   \
        (void)n; (void)call;                                                                        \
        *(i64*)out = s->index;                                                                      \
        if (second) *(T*)second = STORE(s->value);                                                  \
    }
DEFINE_EXTREME_FINISH(u8, u8, IDENTITY)
DEFINE_EXTREME_FINISH(i8, i8, IDENTITY)
DEFINE_EXTREME_FINISH(i16, i16, IDENTITY)
DEFINE_EXTREME_FINISH(i32, i32, IDENTITY)
DEFINE_EXTREME_FINISH(i64, i64, IDENTITY)
DEFINE_EXTREME_FINISH(f16, f32, st_f16)
DEFINE_EXTREME_FINISH(bf16, f32, st_bf16)
DEFINE_EXTREME_FINISH(f32, f32, IDENTITY)
DEFINE_EXTREME_FINISH(f64, f64, IDENTITY)

/* ---- any, all, count_nonzero: NaN is not zero ---- */
typedef struct {
    int64_t count; /* nonzero elements; for `all` elements that are zero */
} count_state;

#define DEFINE_COUNT_STATES(C, NONZERO)                                                             \
    KERNEL_INLINE count_state count_##C##_init(void) { return (count_state){0}; }                   \
    KERNEL_ONCE void count_##C##_absorb(ABSORB_ARGS(count_state, C)) {                              \
        (void)first; (void)call;                                                                    \
        i32 block = 0;                                                                              \
        for (int64_t i = 0; i < n; i++) block += NONZERO;                                           \
        s->count += block;                                                                          \
    }                                                                                               \
    KERNEL_INLINE void count_##C##_merge(count_state* s, const count_state* o) { s->count += o->count; } \
    KERNEL_INLINE count_state any_##C##_init(void) { return (count_state){0}; }                     \
    KERNEL_ONCE void any_##C##_absorb(ABSORB_ARGS(count_state, C)) {                                \
        if (!s->count) count_##C##_absorb(s, x, n, first, call);                                    \
    }                                                                                               \
    KERNEL_INLINE void any_##C##_merge(count_state* s, const count_state* o) { s->count |= o->count; } \
    KERNEL_INLINE count_state all_##C##_init(void) { return (count_state){0}; }                     \
    KERNEL_ONCE void all_##C##_absorb(ABSORB_ARGS(count_state, C)) {                                \
        if (s->count) return;                                                                       \
        count_##C##_absorb(s, x, n, first, call);                                                   \
        s->count = n - s->count;                                                                    \
    }                                                                                               \
    KERNEL_INLINE void all_##C##_merge(count_state* s, const count_state* o) { s->count |= o->count; }
DEFINE_COUNT_STATES(u8, (x[i] != 0))
DEFINE_COUNT_STATES(i8, (x[i] != 0))
DEFINE_COUNT_STATES(i16, (x[i] != 0))
DEFINE_COUNT_STATES(i32, (x[i] != 0))
DEFINE_COUNT_STATES(i64, (x[i] != 0))
DEFINE_COUNT_STATES(f32, (x[i] != 0))
DEFINE_COUNT_STATES(f64, (x[i] != 0))
DEFINE_COUNT_STATES(c64, ((((const f32*)x)[2 * i] != 0) | (((const f32*)x)[2 * i + 1] != 0)))
DEFINE_COUNT_STATES(c128, ((((const f64*)x)[2 * i] != 0) | (((const f64*)x)[2 * i + 1] != 0)))

KERNEL_INLINE void count_finish(FINISH_ARGS(count_state)) {
    (void)n; (void)second; (void)call;
    *(i64*)out = s->count;
}
KERNEL_INLINE void any_finish(FINISH_ARGS(count_state)) {
    (void)n; (void)second; (void)call;
    *(uint8_t*)out = s->count != 0;
}
KERNEL_INLINE void all_finish(FINISH_ARGS(count_state)) {
    (void)n; (void)second; (void)call;
    *(uint8_t*)out = s->count == 0;
}

/* ---- variance and logsumexp ---- */
typedef struct {
    f64 max, sum; /* sum of exp(x - max) */
} logsumexp_state;

/* An infinite maximum is not subtracted: exp(-inf - -inf) would be NaN. */
KERNEL_INLINE f64 finite_shift(f64 max) { return isinf(max) ? 0 : max; }

KERNEL_INLINE void logsumexp_merge(logsumexp_state* s, const logsumexp_state* o) {
    f64 max = o->max > s->max || o->max != o->max ? o->max : s->max, shift = finite_shift(max);
    f64 mine = s->sum == 0 ? 0 : s->sum * exp(finite_shift(s->max) - shift);
    f64 other = o->sum == 0 ? 0 : o->sum * exp(finite_shift(o->max) - shift);
    *s = (logsumexp_state){max, mine + other};
}

#define DEFINE_VAR_LOGSUMEXP_STATES(C)                                                              \
    KERNEL_INLINE moments var_##C##_init(void) { return (moments){0, 0, 0}; }                       \
    KERNEL_ONCE void var_##C##_absorb(ABSORB_ARGS(moments, C)) {                                    \
        (void)first; (void)call;                                                                    \
        block_moments_##C(s, x, n);                                                                 \
    }                                                                                               \
    KERNEL_INLINE void var_##C##_merge(moments* s, const moments* o) { moments_merge(s, o->count, o->mean, o->m2); } \
    KERNEL_INLINE logsumexp_state logsumexp_##C##_init(void) { return (logsumexp_state){-INFINITY, 0}; } \
    KERNEL_ONCE void logsumexp_##C##_absorb(ABSORB_ARGS(logsumexp_state, C)) {                      \
        (void)first; (void)call;                                                                    \
        C e[REDUCE_BLOCK], max = block_max_##C(x, n), shift = (C)finite_shift(max);                 \
        VECTORIZE for (int64_t i = 0; i < n; i++) e[i] = exp_below_zero_##C(x[i] - shift);          \
        logsumexp_state block = {max, block_sum_##C(e, e, 0, n)};                                   \
        logsumexp_merge(s, &block);                                                                 \
    }                                                                                               \
    KERNEL_INLINE void logsumexp_##C##_merge(logsumexp_state* s, const logsumexp_state* o) { logsumexp_merge(s, o); }
DEFINE_VAR_LOGSUMEXP_STATES(f32)
DEFINE_VAR_LOGSUMEXP_STATES(f64)

/* A divisor below zero counts as zero, as in PyTorch: one element with correction 1 gives NaN. */
#define DEFINE_VAR_LOGSUMEXP_FINISH(T)                                                              \
    KERNEL_INLINE void var_finish_##T(FINISH_ARGS(moments)) {                                       \
        f64 divisor = (f64)n - call->correction, var = n == 0 ? NAN : s->m2 / (divisor > 0 ? divisor : 0); \
        store_##T(out, has_flag(call, REDUCE_SQRT) ? sqrt(var) : var);                              \
        if (second) store_##T(second, n == 0 ? NAN : s->mean);                                      \
    }                                                                                               \
    KERNEL_INLINE void logsumexp_finish_##T(FINISH_ARGS(logsumexp_state)) {                         \
        (void)n; (void)second; (void)call;                                                          \
        store_##T(out, isinf(s->max) ? s->max : log(s->sum) + s->max);                              \
    }
DEFINE_VAR_LOGSUMEXP_FINISH(f16)
DEFINE_VAR_LOGSUMEXP_FINISH(bf16)
DEFINE_VAR_LOGSUMEXP_FINISH(f32)
DEFINE_VAR_LOGSUMEXP_FINISH(f64)

#endif
