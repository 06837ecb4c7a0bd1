/* PyTorch's CPU random streams, number for number: the engine, its state and every fill that draws from it.
 *
 * Plain C, no Python; all but loops/random_kernels.c is in this header. A fill writes n consecutive values of one dtype to `out`; a caller with a strided
 * tensor fills a staged block in its iteration order and scatters it. All fills but rs_normal_fill give the same
 * values however a tensor is cut into blocks. Integers and masks equal PyTorch's, and so do the float32 values of
 * rs_normal_fill; other floats are within 2 ulp.
 *
 * Note [libm for float64 normals]
 * float32 and half results come from the vectorised logarithm, sine and exponential of random_kernels.c. Where the
 * result itself is float64, an ulp in the logarithm and one in the sine add up to 4 ulp against PyTorch (exp of such a
 * value to more), so the rows with more than one such step call libm, as PyTorch does, and agree to the bit.
 *
 * Nothing here locks: a state belongs to one thread at a time. Used by random.pyx and by the random operators.
 *
 * Note [Iteration order of random fills]
 * PyTorch fills a tensor in the order of its memory: dimensions sorted by stride, the smallest innermost, whatever
 * the order of its indices. x.t().uniform_() therefore fills like x.uniform_(), x[::2] takes one draw per element it
 * has, a channels-last tensor is filled pixel by pixel. A new tensor (rand_like, the mask of dropout) has the strides
 * of empty_like and is filled in their order. Empty tensors draw nothing. A tensor with a stride of 0 and a size above
 * 1 is an error, other overlaps are written in order. bernoulli_ by a tensor p follows the strides of self; p is only
 * read. normal_ alone asks whether the tensor is contiguous in the plain sense: if so, and with 16 elements or more,
 * it is rs_normal_fill's blocks; otherwise rs_normal_serial, for channels-last and transposed tensors too.
 * rs_fill_tensor and rs_bernoulli_tensor are this note as code.
 *
 * Note [Dropout's draws]
 * dropout draws nothing when p is 0 or 1, outside training, or for an empty input. Else noise = empty_like(input)
 * .bernoulli_(1 - p).div_(1 - p), rounded to the dtype, and the result is input * noise; feature dropout's noise has
 * the input's first two sizes and 1 beyond. alpha_dropout draws the same bernoulli_(1 - p).
 * PyTorch built with MKL seeds MKL's own bernoulli stream with one word on processors made by Intel; the stream here
 * is that of all other processors and builds.
 */
#ifndef TENSORRT_LITE_RANDOM_STREAMS_H
#define TENSORRT_LITE_RANDOM_STREAMS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "random_kernels.h"

enum { RS_STATE_BYTES = 5056 };

/* Element types a fill can write. Half types are IEEE binary16 and bfloat16 bit patterns in uint16_t. */
typedef enum {
    RS_BOOL, RS_UINT8, RS_INT8, RS_INT16, RS_INT32, RS_INT64, RS_FLOAT16, RS_BFLOAT16, RS_FLOAT32, RS_FLOAT64,
    RS_UINT16, RS_UINT32, RS_UINT64 /* rs_random_from_to alone, as in PyTorch */
} rs_dtype;

typedef struct {
    uint32_t mt[RS_WORDS];   /* the recurrence's words, as PyTorch serialises them */
    uint32_t out[RS_WORDS];  /* the same words tempered; valid once a block was made */
    int32_t position;        /* next word of out; RS_WORDS: a new block is due */
    int32_t fresh;           /* seeded and nothing drawn: mt is the seed's expansion */
    uint64_t seed;
    double next_normal;      /* the sine's half of the last serial pair */
    float next_normal_float; /* part of PyTorch's state that no CPU operator reads; carried along */
    uint8_t has_next_normal, has_next_normal_float;
} rs_state;

ISA_TABLE(rs_kernels, rs_kernel_table)

static inline const rs_kernels *rs_best_kernels(void) {
    static const rs_kernels *best; /* racing threads store the same value */
    if (best == NULL) best = rs_kernel_table();
    return best;
}

/* ---- engine ---------------------------------------------------------------------------------------------------- */

/* Only the low 32 bits of the seed reach the engine; all 64 are reported as the initial seed. */
static inline void rs_manual_seed(rs_state *s, uint64_t seed) {
    memset(s, 0, sizeof *s);
    s->seed = seed;
    s->mt[0] = (uint32_t)seed;
    for (uint32_t k = 1; k < RS_WORDS; k++) s->mt[k] = 1812433253u * (s->mt[k - 1] ^ s->mt[k - 1] >> 30) + k;
    s->position = RS_WORDS;
    s->fresh = 1;
}

static inline uint64_t rs_initial_seed(const rs_state *s) { return s->seed; }

static inline void rs_refill(rs_state *s) {
    rs_best_kernels()->next_block(s->mt, s->out);
    s->position = 0;
    s->fresh = 0;
}

static inline uint32_t rs_random32(rs_state *s) {
    if (s->position == RS_WORDS) rs_refill(s);
    return s->out[s->position++];
}

static inline uint64_t rs_random64(rs_state *s) {
    uint64_t high = rs_random32(s);
    return high << 32 | rs_random32(s);
}

static inline float rs_next_u24(rs_state *s) { return (float)(rs_random32(s) & 0xffffffu) * 0x1p-24f; }
static inline double rs_next_u53(rs_state *s) { return (double)(rs_random64(s) & 0x1fffffffffffffu) * 0x1p-53; }

static inline void rs_random32_block(rs_state *s, uint32_t *w, int64_t n) {
    while (n > 0) {
        if (s->position == RS_WORDS) rs_refill(s);
        int64_t m = RS_WORDS - s->position;
        m = m < n ? m : n;
        memcpy(w, s->out + s->position, (size_t)m * 4);
        s->position += (int32_t)m;
        w += m;
        n -= m;
    }
}

/* n is at most RS_STAGE. */
static inline void rs_random64_block(rs_state *s, uint64_t *r, int n) {
    uint32_t w[2 * RS_STAGE];
    rs_random32_block(s, w, 2 * (int64_t)n);
    rs_best_kernels()->pair_words(w, r, n);
}

/* ---- state ----------------------------------------------------------------------------------------------------- */

/* PyTorch's layout, little-endian: u64 seed; i32 left, i32 seeded; u64 next; u64 words[624]; f64 normal_x, normal_y,
 * normal_rho; i32 normal_is_valid, i32 padding; f32 next_float_normal, u8 valid, 3 bytes padding.
 * left + next is 625, except before the first draw, when left is 1 and next is 0. normal_y holds the cached value. */
static inline void rs_put(uint8_t *p, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static inline uint64_t rs_take(const uint8_t *p, int bytes) {
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static inline void rs_get_state(const rs_state *s, uint8_t *bytes) {
    uint64_t normal = 0;
    uint32_t normal_float = 0;
    memset(bytes, 0, RS_STATE_BYTES);
    rs_put(bytes, s->seed, 8);
    rs_put(bytes + 8, s->fresh ? 1 : (uint64_t)(RS_WORDS + 1 - s->position), 4);
    rs_put(bytes + 12, 1, 4);
    rs_put(bytes + 16, s->fresh ? 0 : (uint64_t)s->position, 8);
    for (int k = 0; k < RS_WORDS; k++) rs_put(bytes + 24 + 8 * k, s->mt[k], 8);
    if (s->has_next_normal) memcpy(&normal, &s->next_normal, 8);
    rs_put(bytes + 5024, normal, 8);
    rs_put(bytes + 5040, s->has_next_normal, 4);
    if (s->has_next_normal_float) memcpy(&normal_float, &s->next_normal_float, 4);
    rs_put(bytes + 5048, normal_float, 4);
    bytes[5052] = s->has_next_normal_float;
}

typedef enum { RS_STATE_OK, RS_STATE_WRONG_SIZE, RS_STATE_INVALID } rs_state_status;

/* On any status but RS_STATE_OK the state is as it was. */
static inline rs_state_status rs_set_state(rs_state *s, const uint8_t *bytes, size_t size) {
    if (size != RS_STATE_BYTES) return RS_STATE_WRONG_SIZE;
    uint64_t left = rs_take(bytes + 8, 4), seeded = rs_take(bytes + 12, 4), next = rs_take(bytes + 16, 8);
    int fresh = left == 1 && next == 0;
    if (seeded == 0 || left < 1 || left > RS_WORDS || (!fresh && left + next != RS_WORDS + 1)) return RS_STATE_INVALID;
    for (int k = 0; k < RS_WORDS; k++)
        if (rs_take(bytes + 28 + 8 * k, 4) != 0) return RS_STATE_INVALID;
    rs_state t;
    memset(&t, 0, sizeof t);
    t.seed = rs_take(bytes, 8);
    t.fresh = fresh;
    t.position = fresh ? RS_WORDS : (int32_t)next;
    for (int k = 0; k < RS_WORDS; k++) {
        uint32_t y = t.mt[k] = (uint32_t)rs_take(bytes + 24 + 8 * k, 4);
        y ^= y >> 11;
        y ^= (y << 7) & 0x9d2c5680u;
        y ^= (y << 15) & 0xefc60000u;
        t.out[k] = y ^ (y >> 18);
    }
    if (rs_take(bytes + 5040, 4) != 0) {
        uint64_t normal = rs_take(bytes + 5024, 8);
        memcpy(&t.next_normal, &normal, 8);
        t.has_next_normal = 1;
    }
    if (bytes[5052] != 0) {
        uint32_t normal = (uint32_t)rs_take(bytes + 5048, 4);
        memcpy(&t.next_normal_float, &normal, 4);
        t.has_next_normal_float = 1;
    }
    *s = t;
    return RS_STATE_OK;
}

/* ---- conversion to the element type ---------------------------------------------------------------------------- */

static inline uint16_t rs_to_bfloat16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* Round to nearest even; the subnormal range goes through an addition that leaves the mantissa in the low bits. */
static inline uint16_t rs_to_float16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {
        float shifted;
        memcpy(&shifted, &magnitude, 4);
        shifted += 0.5f;
        memcpy(&magnitude, &shifted, 4);
        return (uint16_t)(sign | (magnitude - 0x3f000000u));
    }
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13);
}

static inline int64_t rs_item_size(rs_dtype dtype) {
    static const uint8_t sizes[] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 2, 4, 8};
    return sizes[dtype];
}

#define RS_STORE(type, convert) \
    do { \
        type *p = (type *)out; \
        for (int i = 0; i < n; i++) p[i] = (convert); \
    } while (0)

static inline void rs_store_f32(rs_dtype dtype, void *out, const float *x, int n) {
    switch (dtype) {
    case RS_FLOAT16: RS_STORE(uint16_t, rs_to_float16(x[i])); break;
    case RS_BFLOAT16: RS_STORE(uint16_t, rs_to_bfloat16(x[i])); break;
    case RS_FLOAT64: RS_STORE(double, x[i]); break;
    default: RS_STORE(float, x[i]); break;
    }
}

/* Values beyond int64 (an infinite geometric draw) saturate: the conversion is undefined in C. */
static inline int64_t rs_to_int64(double x) {
    return x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : (int64_t)x;
}

static inline void rs_store_f64(rs_dtype dtype, void *out, const double *x, int n) {
    switch (dtype) {
    case RS_BOOL: RS_STORE(uint8_t, x[i] != 0.0); break;
    case RS_UINT8: RS_STORE(uint8_t, (uint8_t)rs_to_int64(x[i])); break;
    case RS_INT8: RS_STORE(int8_t, (int8_t)rs_to_int64(x[i])); break;
    case RS_INT16: RS_STORE(int16_t, (int16_t)rs_to_int64(x[i])); break;
    case RS_INT32: RS_STORE(int32_t, (int32_t)rs_to_int64(x[i])); break;
    case RS_INT64: RS_STORE(int64_t, rs_to_int64(x[i])); break;
    case RS_FLOAT16: RS_STORE(uint16_t, rs_to_float16((float)x[i])); break;
    case RS_BFLOAT16: RS_STORE(uint16_t, rs_to_bfloat16((float)x[i])); break;
    case RS_FLOAT32: RS_STORE(float, (float)x[i]); break;
    default: RS_STORE(double, x[i]); break;
    }
}

static inline void rs_store_i64(rs_dtype dtype, void *out, const int64_t *x, int n) {
    switch (dtype) {
    case RS_BOOL: RS_STORE(uint8_t, x[i] != 0); break;
    case RS_UINT8: RS_STORE(uint8_t, (uint8_t)x[i]); break;
    case RS_INT8: RS_STORE(int8_t, (int8_t)x[i]); break;
    case RS_INT16: RS_STORE(int16_t, (int16_t)x[i]); break;
    case RS_INT32: RS_STORE(int32_t, (int32_t)x[i]); break;
    case RS_INT64: RS_STORE(int64_t, x[i]); break;
    case RS_FLOAT16: RS_STORE(uint16_t, rs_to_float16((float)x[i])); break;
    case RS_BFLOAT16: RS_STORE(uint16_t, rs_to_bfloat16((float)x[i])); break;
    case RS_FLOAT32: RS_STORE(float, (float)x[i]); break;
    case RS_FLOAT64: RS_STORE(double, (double)x[i]); break;
    case RS_UINT16: RS_STORE(uint16_t, (uint16_t)x[i]); break;
    case RS_UINT32: RS_STORE(uint32_t, (uint32_t)x[i]); break;
    case RS_UINT64: RS_STORE(uint64_t, (uint64_t)x[i]); break;
    }
}

/* 32-bit draws, already below 2^31, plus an offset. */
static inline void rs_store_u31(rs_dtype dtype, void *out, const uint32_t *x, int n, int64_t from) {
    switch (dtype) {
    case RS_BOOL: RS_STORE(uint8_t, (int64_t)x[i] + from != 0); break;
    case RS_UINT8: case RS_INT8: RS_STORE(uint8_t, (uint8_t)(x[i] + (uint32_t)from)); break;
    case RS_INT16: case RS_UINT16: RS_STORE(uint16_t, (uint16_t)(x[i] + (uint32_t)from)); break;
    case RS_INT32: case RS_UINT32: RS_STORE(uint32_t, x[i] + (uint32_t)from); break;
    case RS_INT64: case RS_UINT64: RS_STORE(int64_t, (int64_t)x[i] + from); break;
    case RS_FLOAT16: RS_STORE(uint16_t, rs_to_float16((float)((int64_t)x[i] + from))); break;
    case RS_BFLOAT16: RS_STORE(uint16_t, rs_to_bfloat16((float)((int64_t)x[i] + from))); break;
    case RS_FLOAT32: RS_STORE(float, (float)((int64_t)x[i] + from)); break;
    case RS_FLOAT64: RS_STORE(double, (double)((int64_t)x[i] + from)); break;
    }
}

static inline void rs_store_u8(rs_dtype dtype, void *out, const uint8_t *x, int n) {
    switch (dtype) {
    case RS_BOOL: case RS_UINT8: case RS_INT8: memcpy(out, x, (size_t)n); break;
    case RS_INT16: RS_STORE(int16_t, x[i]); break;
    case RS_INT32: RS_STORE(int32_t, x[i]); break;
    case RS_INT64: RS_STORE(int64_t, x[i]); break;
    case RS_FLOAT16: RS_STORE(uint16_t, x[i] ? 0x3c00 : 0); break;
    case RS_BFLOAT16: RS_STORE(uint16_t, x[i] ? 0x3f80 : 0); break;
    case RS_FLOAT32: RS_STORE(float, x[i]); break;
    default: RS_STORE(double, x[i]); break;
    }
}
#undef RS_STORE

/* Runs the body on blocks of m <= RS_STAGE elements, `out` advancing by the element size. */
#define RS_BLOCKS(dtype, body) \
    do { \
        for (int64_t left_ = n; left_ > 0;) { \
            int m = left_ < RS_STAGE ? (int)left_ : RS_STAGE; \
            body; \
            out = (char *)out + m * rs_item_size(dtype); \
            left_ -= m; \
        } \
    } while (0)

/* ---- fills ------------------------------------------------------------------------------------------------------ */

/* uniform_(from, to), rand. Floating dtypes. Half types draw float32 and convert; a value that the conversion rounds
 * up to `to` becomes `from` there too. */
static inline void rs_uniform(rs_state *s, rs_dtype dtype, void *out, int64_t n, double from, double to) {
    const rs_kernels *k = rs_best_kernels();
    if (dtype == RS_FLOAT64) {
        uint64_t r[RS_STAGE];
        RS_BLOCKS(dtype, rs_random64_block(s, r, m); k->uniform_f64(r, (double *)out, m, from, to));
        return;
    }
    uint32_t w[RS_STAGE];
    float x[RS_STAGE], low = (float)from, high = (float)to;
    if (dtype == RS_FLOAT32) {
        RS_BLOCKS(dtype, rs_random32_block(s, w, m); k->uniform_f32(w, (float *)out, m, low, high));
        return;
    }
    uint16_t half_low, half_high;
    rs_store_f32(dtype, &half_low, &low, 1);
    rs_store_f32(dtype, &half_high, &high, 1);
    RS_BLOCKS(dtype, {
        uint16_t *half = (uint16_t *)out;
        rs_random32_block(s, w, m);
        k->uniform_f32(w, x, m, low, high);
        rs_store_f32(dtype, half, x, m);
        for (int i = 0; i < m; i++) half[i] = half[i] == half_high ? half_low : half[i];
    });
}

/* Box and Muller on blocks of 16 uniforms in place: see Note [libm for float64 normals]. */
static inline void rs_normal_blocks_f64(double *p, int blocks, double mean, double std) {
    for (int b = 0; b < blocks; b++, p += 16) {
        double sine[8];
        for (int j = 0; j < 8; j++) {
            double radius = sqrt(-2.0 * log(1.0 - p[j])), angle = 6.283185307179586477 * p[j + 8];
            p[j] = radius * cos(angle);
            sine[j] = radius * sin(angle);
        }
        memcpy(p + 8, sine, sizeof sine);
        rs_best_kernels()->scale_f64(p, 16, mean, std);
    }
}

/* normal_ and randn of a contiguous tensor of 16 elements or more: blocks of 16 uniforms become 16 normals. When 16
 * does not divide n, the last 16 elements are drawn afresh and overlap the block before. float32 and float64 fill
 * all n first, so the tail's n % 16 draws are spent; half types make block after block and spend none. */
static inline void rs_normal_fill(rs_state *s, rs_dtype dtype, void *out, int64_t n, double mean, double std) {
    const rs_kernels *k = rs_best_kernels();
    int64_t item = rs_item_size(dtype), whole = n & ~(int64_t)15;
    int tail = (int)(n & 15), passes = tail ? 2 : 1;
    char *last = (char *)out + (n - 16) * item;
    n = whole;
    for (int pass = 0; pass < passes; pass++) {
        if (pass == 1) {
            uint32_t spent[32];
            if (dtype == RS_FLOAT32) rs_random32_block(s, spent, tail);
            if (dtype == RS_FLOAT64) rs_random32_block(s, spent, 2 * tail);
            out = last;
            n = 16;
        }
        if (dtype == RS_FLOAT64) {
            uint64_t r[RS_STAGE];
            RS_BLOCKS(dtype, {
                rs_random64_block(s, r, m);
                k->u53(r, (double *)out, m);
                rs_normal_blocks_f64((double *)out, m / 16, mean, std);
            });
        } else {
            uint32_t w[RS_STAGE];
            float x[RS_STAGE], *block = x;
            RS_BLOCKS(dtype, {
                block = dtype == RS_FLOAT32 ? (float *)out : x;
                rs_random32_block(s, w, m);
                k->uniform_f32(w, block, m, 0.0f, 1.0f);
                k->normal_blocks_f32(block, m / 16, (float)mean, (float)std);
                if (dtype != RS_FLOAT32) rs_store_f32(dtype, out, block, m);
            });
        }
    }
}

/* One serial pair from libm: the first draw makes the angle, the second the radius. */
static inline void rs_normal_pair(const uint64_t *r, double *cosine, double *sine) {
    double first = (double)(r[0] & 0x1fffffffffffffu) * 0x1p-53, second = (double)(r[1] & 0x1fffffffffffffu) * 0x1p-53;
    double radius = sqrt(-2.0 * log1p(-second)), angle = 6.283185307179586477 * first;
    *cosine = radius * cos(angle);
    *sine = radius * sin(angle);
}

/* n <= RS_STAGE standard normals of the serial path. A pair's second value waits in the state for the next call, of
 * whatever dtype: that pair is always libm's. */
static inline void rs_normal_block(rs_state *s, double *x, int n, int use_libm) {
    if (n > 0 && s->has_next_normal) {
        *x++ = s->next_normal;
        s->next_normal = 0.0;
        s->has_next_normal = 0;
        n--;
    }
    int pairs = n / 2;
    uint64_t r[RS_STAGE];
    rs_random64_block(s, r, 2 * pairs);
    if (use_libm)
        for (int i = 0; i < pairs; i++) rs_normal_pair(r + 2 * i, x + 2 * i, x + 2 * i + 1);
    else
        rs_best_kernels()->normal_pairs(r, x, pairs);
    if (n & 1) {
        rs_random64_block(s, r, 2);
        rs_normal_pair(r, x + n - 1, &s->next_normal);
        s->has_next_normal = 1;
    }
}

static inline double rs_next_normal(rs_state *s) {
    double x;
    rs_normal_block(s, &x, 1, 1);
    return x;
}

/* normal_ of fewer than 16 elements or of a tensor that is not contiguous: float64 pairs whatever the dtype. */
static inline void rs_normal_serial(rs_state *s, rs_dtype dtype, void *out, int64_t n, double mean, double std) {
    const rs_kernels *k = rs_best_kernels();
    double x[RS_STAGE];
    RS_BLOCKS(dtype, {
        rs_normal_block(s, x, m, dtype == RS_FLOAT64);
        k->scale_f64(x, m, mean, std);
        rs_store_f64(dtype, out, x, m);
    });
}

/* normal_ of a contiguous tensor of any size. */
static inline void rs_normal(rs_state *s, rs_dtype dtype, void *out, int64_t n, double mean, double std) {
    if (n >= 16)
        rs_normal_fill(s, dtype, out, n, mean, std);
    else
        rs_normal_serial(s, dtype, out, n, mean, std);
}

static inline void rs_log_normal(rs_state *s, rs_dtype dtype, void *out, int64_t n, double mean, double std) {
    const rs_kernels *k = rs_best_kernels();
    double x[RS_STAGE];
    int use_libm = dtype == RS_FLOAT64;
    RS_BLOCKS(dtype, {
        rs_normal_block(s, x, m, use_libm);
        k->scale_f64(x, m, mean, std);
        if (use_libm)
            for (int i = 0; i < m; i++) x[i] = exp(x[i]);
        else
            k->exp_block(x, m);
        rs_store_f64(dtype, out, x, m);
    });
}

/* A floating dtype cannot hold every bound of random_(from, to): PyTorch moves a bound that rounding would push out of
 * the range inwards, by one step of the dtype at that magnitude. Call it before rs_random_from_to; the range may have
 * become empty, which is the caller's error to raise. Other dtypes are left alone. */
static inline void rs_narrow_range(rs_dtype dtype, int64_t *from, int64_t *to) {
    int digits = dtype == RS_FLOAT16 ? 11 : dtype == RS_BFLOAT16 ? 8 : dtype == RS_FLOAT32 ? 24 : 53;
    if (dtype < RS_FLOAT16 || dtype > RS_FLOAT64) return;
    for (int upper = 0; upper < 2; upper++) {
        int64_t bound = upper ? *to - 1 : *from + 1;
        uint64_t magnitude = bound < 0 ? 0 - (uint64_t)bound : (uint64_t)bound;
        int log2 = 0;
        while (magnitude >> (log2 + 1)) log2++;
        if (log2 < digits) continue;
        /* Nearest multiple of the step, ties to even; all bounds of interest are exact in int64. */
        uint64_t step = UINT64_C(1) << (log2 - digits + 1), rest = magnitude & (step - 1), kept = magnitude - rest;
        if (rest > step / 2 || (rest == step / 2 && (kept / step & 1))) kept += step;
        int64_t rounded = bound < 0 ? (int64_t)(0 - kept) : kept > INT64_MAX ? INT64_MAX : (int64_t)kept;
        if (upper && rounded >= *to) *to = rounded - (int64_t)step;
        if (!upper && rounded < *from) *from = rounded + (int64_t)step;
    }
}

/* random_(from, to) and randint: draws from + [0, range), range >= 1. From 2^28 on a draw takes two words. */
static inline void rs_random_from_to(rs_state *s, rs_dtype dtype, void *out, int64_t n, int64_t from, uint64_t range) {
    if (range < 1u << 28) {
        const rs_kernels *k = rs_best_kernels();
        uint32_t w[RS_STAGE], x[RS_STAGE];
        RS_BLOCKS(dtype, {
            rs_random32_block(s, w, m);
            k->remainder(w, x, m, (uint32_t)range);
            rs_store_u31(dtype, out, x, m, from);
        });
        return;
    }
    uint64_t r[RS_STAGE];
    int64_t x[RS_STAGE];
    RS_BLOCKS(dtype, {
        rs_random64_block(s, r, m);
        for (int i = 0; i < m; i++) x[i] = (int64_t)(r[i] % range + (uint64_t)from);
        rs_store_i64(dtype, out, x, m);
    });
}

/* random_(-2^63, None): all 64 bits. */
static inline void rs_random_full64(rs_state *s, rs_dtype dtype, void *out, int64_t n) {
    uint64_t r[RS_STAGE];
    RS_BLOCKS(dtype, rs_random64_block(s, r, m); rs_store_i64(dtype, out, (const int64_t *)r, m));
}

/* random_() without bounds: up to the largest value of an integer, up to 2^digits, inclusive, of a floating type. */
static inline void rs_random(rs_state *s, rs_dtype dtype, void *out, int64_t n) {
    static const uint32_t masks[] = {1u, 0xffu, 0x7fu, 0x7fffu, 0x7fffffffu};
    if (dtype == RS_INT64 || dtype == RS_FLOAT64) {
        uint64_t r[RS_STAGE], range = (UINT64_C(1) << 53) + 1;
        RS_BLOCKS(dtype, {
            rs_random64_block(s, r, m);
            for (int i = 0; i < m; i++) r[i] = dtype == RS_INT64 ? r[i] & INT64_MAX : r[i] % range;
            rs_store_i64(dtype, out, (const int64_t *)r, m);
        });
    } else if (dtype <= RS_INT32) {
        uint32_t w[RS_STAGE], mask = masks[dtype];
        RS_BLOCKS(dtype, {
            rs_random32_block(s, w, m);
            for (int i = 0; i < m; i++) w[i] &= mask;
            rs_store_u31(dtype, out, w, m, 0);
        });
    } else {
        int digits = dtype == RS_FLOAT16 ? 11 : dtype == RS_BFLOAT16 ? 8 : 24;
        rs_random_from_to(s, dtype, out, n, 0, (UINT64_C(1) << digits) + 1);
    }
}

/* bernoulli_(p), 0 <= p <= 1: u53 < p. dropout keeps with probability 1 - p from this fill. */
static inline void rs_bernoulli(rs_state *s, rs_dtype dtype, void *out, int64_t n, double p) {
    const rs_kernels *k = rs_best_kernels();
    int64_t threshold = (int64_t)ceil(p * 0x1p53);
    uint64_t r[RS_STAGE];
    uint8_t x[RS_STAGE];
    RS_BLOCKS(dtype, {
        rs_random64_block(s, r, m);
        k->below(r, x, m, threshold);
        rs_store_u8(dtype, out, x, m);
    });
}

/* bernoulli(p) and bernoulli_(p) with float32 (and half) probabilities: u24 < p[i], one word each. */
static inline void rs_bernoulli_f32(rs_state *s, rs_dtype dtype, void *out, int64_t n, const float *p) {
    uint32_t w[RS_STAGE];
    uint8_t x[RS_STAGE];
    RS_BLOCKS(dtype, {
        rs_random32_block(s, w, m);
        for (int i = 0; i < m; i++) x[i] = (float)(int32_t)(w[i] & 0xffffffu) * 0x1p-24f < p[i];
        rs_store_u8(dtype, out, x, m);
        p += m;
    });
}

/* The same with float64 probabilities: u53 < p[i]. */
static inline void rs_bernoulli_f64(rs_state *s, rs_dtype dtype, void *out, int64_t n, const double *p) {
    const rs_kernels *k = rs_best_kernels();
    uint64_t r[RS_STAGE];
    double u[RS_STAGE];
    uint8_t x[RS_STAGE];
    RS_BLOCKS(dtype, {
        rs_random64_block(s, r, m);
        k->u53(r, u, m);
        for (int i = 0; i < m; i++) x[i] = u[i] < p[i];
        rs_store_u8(dtype, out, x, m);
        p += m;
    });
}

/* exponential_(lambd): float64 draws for every floating dtype. */
static inline void rs_exponential(rs_state *s, rs_dtype dtype, void *out, int64_t n, double lambd) {
    const rs_kernels *k = rs_best_kernels();
    uint64_t r[RS_STAGE];
    double x[RS_STAGE];
    RS_BLOCKS(dtype, {
        rs_random64_block(s, r, m);
        k->exponential(r, x, m, lambd);
        rs_store_f64(dtype, out, x, m);
    });
}

/* geometric_(p), 0 < p < 1: the number of trials up to the first success. */
static inline void rs_geometric(rs_state *s, rs_dtype dtype, void *out, int64_t n, double p) {
    const rs_kernels *k = rs_best_kernels();
    uint64_t r[RS_STAGE];
    double x[RS_STAGE], log_q = log1p(-p);
    RS_BLOCKS(dtype, {
        rs_random64_block(s, r, m);
        k->geometric(r, x, m, log_q);
        rs_store_f64(dtype, out, x, m);
    });
}

static inline void rs_cauchy(rs_state *s, rs_dtype dtype, void *out, int64_t n, double median, double sigma) {
    const rs_kernels *k = rs_best_kernels();
    uint64_t r[RS_STAGE];
    double x[RS_STAGE];
    RS_BLOCKS(dtype, {
        rs_random64_block(s, r, m);
        if (dtype == RS_FLOAT64) {
            k->u53(r, x, m);
            for (int i = 0; i < m; i++) x[i] = tan(3.14159265358979323846 * (x[i] - 0.5));
            k->scale_f64(x, m, median, sigma);
        } else {
            k->cauchy(r, x, m, median, sigma);
        }
        rs_store_f64(dtype, out, x, m);
    });
}

/* randperm(n) into int64: Fisher and Yates from the front, one word a step, none for the last element. From
 * 2^32 / 20 elements on, where a word's remainder would be skewed, PyTorch shuffles from the inside out with two words
 * for every element, the first included. */
static inline void rs_randperm(rs_state *s, int64_t *out, int64_t n) {
    uint32_t w[RS_STAGE];
    if (n >= UINT32_MAX / 20) {
        for (int64_t i = 0; i < n; i++) {
            int64_t other = (int64_t)(rs_random64(s) % (uint64_t)(i + 1));
            out[i] = i;
            out[i] = out[other];
            out[other] = i;
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) out[i] = i;
    for (int64_t i = 0; i < n - 1;) {
        int m = n - 1 - i < RS_STAGE ? (int)(n - 1 - i) : RS_STAGE;
        rs_random32_block(s, w, m);
        for (int j = 0; j < m; j++, i++) {
            int64_t other = i + w[j] % (uint32_t)(n - i), value = out[i];
            out[i] = out[other];
            out[other] = value;
        }
    }
}
#undef RS_BLOCKS

/* multinomial with replacement and two samples or more, one row: the first index whose cumulative probability is not
 * below u53. The sum runs in the row's own precision (half types: float32), one addition after the other. `cumulative`
 * is scratch of n elements. Rows of a matrix are drawn one after the other. (One sample, or no replacement: argmax or
 * sorted top-k of p / q, q = empty_like(p).exponential_(1), in p's dtype.) */
typedef enum { RS_ROW_OK, RS_ROW_NEGATIVE, RS_ROW_NOT_FINITE, RS_ROW_SUM_ZERO } rs_row_status;

#define RS_MULTINOMIAL(suffix, type) \
    static inline rs_row_status rs_multinomial_##suffix(rs_state *s, const type *p, int64_t n, type *cumulative, \
                                                        int64_t *out, int64_t samples) { \
        type sum = 0; \
        for (int64_t i = 0; i < n; i++) { \
            if (!(p[i] >= 0)) return RS_ROW_NEGATIVE; /* a NaN too */ \
            if (isinf(p[i])) return RS_ROW_NOT_FINITE; \
            sum += p[i]; \
            cumulative[i] = sum; \
        } \
        if (!(sum > 0)) return RS_ROW_SUM_ZERO; \
        for (int64_t i = 0; i < n; i++) cumulative[i] /= sum; \
        for (int64_t j = 0; j < samples; j++) { \
            double u = rs_next_u53(s); \
            int64_t left = 0, right = n - 1; \
            while (left < right) { \
                int64_t middle = left + (right - left) / 2; \
                if (cumulative[middle] < u) \
                    left = middle + 1; \
                else \
                    right = middle; \
            } \
            out[j] = left; \
        } \
        return RS_ROW_OK; \
    }
RS_MULTINOMIAL(f32, float)
RS_MULTINOMIAL(f64, double)
#undef RS_MULTINOMIAL

/* ---- whole tensors ---------------------------------------------------------------------------------------------- */

enum { RS_MAX_DIMS = 64 };

/* Elements are moved as bits of their size, whatever type wrote them: the compiler must not assume otherwise. */
#if defined(__GNUC__)
#define RS_MAY_ALIAS __attribute__((may_alias))
#else
#define RS_MAY_ALIAS
#endif
typedef uint8_t RS_MAY_ALIAS rs_bits8;
typedef uint16_t RS_MAY_ALIAS rs_bits16;
typedef uint32_t RS_MAY_ALIAS rs_bits32;
typedef uint64_t RS_MAY_ALIAS rs_bits64;

/* Walks a strided tensor in the order of its memory: see Note [Iteration order of random fills]. order[0] is the
 * innermost dimension. Dimensions of size 1 are left out, and neighbours that follow on each other become one. */
typedef struct {
    int dims;
    int64_t sizes[RS_MAX_DIMS], strides[RS_MAX_DIMS], index[RS_MAX_DIMS]; /* strides in bytes */
    char *at;
} rs_cursor;

static inline int rs_memory_order(int ndim, const int64_t *sizes, const int64_t *strides, int *order) {
    int dims = 0;
    for (int d = ndim - 1; d >= 0; d--) {
        if (sizes[d] == 1) continue;
        int k = dims++;
        for (; k > 0 && strides[order[k - 1]] > strides[d]; k--) order[k] = order[k - 1];
        order[k] = d;
    }
    return dims;
}

static inline void rs_cursor_start(rs_cursor *c, void *data, int dims, const int *order, const int64_t *sizes,
                                   const int64_t *strides, int64_t item) {
    c->dims = 0;
    c->at = (char *)data;
    for (int k = 0; k < dims; k++) {
        int64_t size = sizes[order[k]], stride = strides[order[k]] * item;
        int last = c->dims - 1;
        if (last >= 0 && stride == c->sizes[last] * c->strides[last]) {
            c->sizes[last] *= size;
            continue;
        }
        c->sizes[c->dims] = size;
        c->strides[c->dims] = stride;
        c->index[c->dims++] = 0;
    }
}

/* The elements that can follow `at` with the innermost stride, and the step over m of them. */
static inline int64_t rs_cursor_run(const rs_cursor *c) { return c->dims ? c->sizes[0] - c->index[0] : 1; }

static inline void rs_cursor_step(rs_cursor *c, int64_t m) {
    if (c->dims == 0) return;
    c->index[0] += m;
    c->at += m * c->strides[0];
    for (int d = 0; c->index[d] == c->sizes[d]; d++) {
        c->at -= c->sizes[d] * c->strides[d];
        c->index[d] = 0;
        if (d + 1 == c->dims) break;
        c->index[d + 1]++;
        c->at += c->strides[d + 1];
    }
}

/* Moves n staged elements to (or, with `gather`, from) the cursor's place. */
static inline void rs_cursor_move(rs_cursor *c, void *staged, int64_t n, int64_t item, int gather) {
    char *block = (char *)staged;
    while (n > 0) {
        int64_t m = rs_cursor_run(c), stride = c->dims ? c->strides[0] : item;
        m = m < n ? m : n;
#define RS_MOVE(type) \
    for (int64_t i = 0; i < m; i++) \
        if (gather) \
            ((type *)block)[i] = *(type *)(c->at + i * stride); \
        else \
            *(type *)(c->at + i * stride) = ((type *)block)[i];
        switch (item) {
        case 1: RS_MOVE(rs_bits8) break;
        case 2: RS_MOVE(rs_bits16) break;
        case 4: RS_MOVE(rs_bits32) break;
        default: RS_MOVE(rs_bits64) break;
        }
#undef RS_MOVE
        rs_cursor_step(c, m);
        block += m * item;
        n -= m;
    }
}

/* What to fill with; a, b, from and range as in the function of that name. RS_FILL_NORMAL picks blocks or serial. */
typedef enum {
    RS_FILL_UNIFORM, RS_FILL_NORMAL, RS_FILL_LOG_NORMAL, RS_FILL_CAUCHY, RS_FILL_EXPONENTIAL, RS_FILL_GEOMETRIC,
    RS_FILL_BERNOULLI, RS_FILL_RANDOM, RS_FILL_RANDOM_FROM_TO, RS_FILL_RANDOM_FULL64
} rs_fill_kind;

typedef struct {
    rs_fill_kind kind;
    double a, b;
    int64_t from;
    uint64_t range;
} rs_fill;

static inline void rs_fill_run(rs_state *s, const rs_fill *f, rs_dtype dtype, void *out, int64_t n) {
    switch (f->kind) {
    case RS_FILL_UNIFORM: rs_uniform(s, dtype, out, n, f->a, f->b); break;
    case RS_FILL_NORMAL: rs_normal_serial(s, dtype, out, n, f->a, f->b); break;
    case RS_FILL_LOG_NORMAL: rs_log_normal(s, dtype, out, n, f->a, f->b); break;
    case RS_FILL_CAUCHY: rs_cauchy(s, dtype, out, n, f->a, f->b); break;
    case RS_FILL_EXPONENTIAL: rs_exponential(s, dtype, out, n, f->a); break;
    case RS_FILL_GEOMETRIC: rs_geometric(s, dtype, out, n, f->a); break;
    case RS_FILL_BERNOULLI: rs_bernoulli(s, dtype, out, n, f->a); break;
    case RS_FILL_RANDOM: rs_random(s, dtype, out, n); break;
    case RS_FILL_RANDOM_FROM_TO: rs_random_from_to(s, dtype, out, n, f->from, f->range); break;
    case RS_FILL_RANDOM_FULL64: rs_random_full64(s, dtype, out, n); break;
    }
}

static inline int rs_is_contiguous(int ndim, const int64_t *sizes, const int64_t *strides) {
    int64_t expected = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        if (sizes[d] != 1 && strides[d] != expected) return 0;
        expected *= sizes[d];
    }
    return 1;
}

static inline int64_t rs_numel(int ndim, const int64_t *sizes) {
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= sizes[d];
    return n;
}

/* Fills a tensor of at most RS_MAX_DIMS dimensions; strides in elements, not negative. The caller has refused zero
 * strides, checked the parameters and bumped the version. */
static inline void rs_fill_tensor(rs_state *s, const rs_fill *f, rs_dtype dtype, void *data, int ndim,
                                  const int64_t *sizes, const int64_t *strides) {
    int64_t n = rs_numel(ndim, sizes), item = rs_item_size(dtype);
    if (n == 0) return;
    if (f->kind == RS_FILL_NORMAL && rs_is_contiguous(ndim, sizes, strides)) {
        rs_normal(s, dtype, data, n, f->a, f->b);
        return;
    }
    int order[RS_MAX_DIMS];
    rs_cursor c;
    rs_cursor_start(&c, data, rs_memory_order(ndim, sizes, strides, order), order, sizes, strides, item);
    if (c.dims == 0 || (c.dims == 1 && c.strides[0] == item)) {
        rs_fill_run(s, f, dtype, data, n);
        return;
    }
    uint64_t staged[RS_STAGE];
    for (int64_t done = 0; done < n;) {
        int64_t m = n - done < RS_STAGE ? n - done : RS_STAGE;
        rs_fill_run(s, f, dtype, staged, m);
        rs_cursor_move(&c, staged, m, item, 0);
        done += m;
    }
}

/* bernoulli_(p) by a tensor of float32 or float64 probabilities of the same sizes (strides of 0 where broadcast). */
static inline void rs_bernoulli_tensor(rs_state *s, rs_dtype dtype, void *data, rs_dtype p_dtype, const void *p,
                                       int ndim, const int64_t *sizes, const int64_t *strides,
                                       const int64_t *p_strides) {
    int64_t n = rs_numel(ndim, sizes), item = rs_item_size(dtype), p_item = rs_item_size(p_dtype);
    if (n == 0) return;
    int order[RS_MAX_DIMS], dims = rs_memory_order(ndim, sizes, strides, order);
    rs_cursor c, pc;
    rs_cursor_start(&c, data, dims, order, sizes, strides, item);
    rs_cursor_start(&pc, (void *)(uintptr_t)p, dims, order, sizes, p_strides, p_item);
    uint64_t staged[RS_STAGE], probabilities[RS_STAGE];
    for (int64_t done = 0; done < n;) {
        int64_t m = n - done < RS_STAGE ? n - done : RS_STAGE;
        rs_cursor_move(&pc, probabilities, m, p_item, 1);
        if (p_dtype == RS_FLOAT64)
            rs_bernoulli_f64(s, dtype, staged, m, (const double *)probabilities);
        else
            rs_bernoulli_f32(s, dtype, staged, m, (const float *)probabilities);
        rs_cursor_move(&c, staged, m, item, 0);
        done += m;
    }
}

#endif
