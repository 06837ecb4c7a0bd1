/* Element types of the loops, conversions between the half types and float, and the Scalar an operator's
 * parameters arrive in. Everything is branch free, so a loop over it vectorises. Included by every loop; compiled
 * once per instruction set. Bit patterns are read through memcpy: no aliasing rule is bent. */
#ifndef TRT_SCALAR_TYPES_H
#define TRT_SCALAR_TYPES_H

#include <complex.h>
#include <stdint.h>
#include <string.h>
#include "dtype.h"
#undef I /* complex.h's macro would swallow a common template parameter name; use _Complex_I */

typedef uint8_t b8;
typedef uint8_t u8;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef struct { uint16_t v; } f16;
typedef struct { uint16_t v; } bf16;
typedef float f32;
typedef double f64;
typedef float _Complex c64;
typedef double _Complex c128;

#define INL static inline __attribute__((always_inline, unused))

INL u32 bits_f32(f32 x) { u32 u; memcpy(&u, &x, sizeof u); return u; }
INL f32 from_bits_f32(u32 u) { f32 x; memcpy(&x, &u, sizeof x); return x; }
INL u64 bits_f64(f64 x) { u64 u; memcpy(&u, &x, sizeof u); return u; }
INL f64 from_bits_f64(u64 u) { f64 x; memcpy(&x, &u, sizeof x); return x; }

INL c64 make_c64(f32 re, f32 im) { c64 z; __real__ z = re; __imag__ z = im; return z; }
INL c128 make_c128(f64 re, f64 im) { c128 z; __real__ z = re; __imag__ z = im; return z; }

/* ---- half types --------------------------------------------------------------------------------------------- */

/* The exponent and mantissa bits, read as a float, are the value times 2^-112; the product is exact for normal and
 * subnormal halves alike. Infinity and NaN get the exponent's remaining bits, NaN its quiet bit (as hardware does). */
INL f32 ld_f16(f16 h)
{
    u32 magnitude = (u32)(h.v & 0x7fffu) << 13;
    u32 bits = bits_f32(from_bits_f32(magnitude) * 0x1p112f);
    bits |= magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
    bits |= magnitude > 0x0f800000u ? 0x00400000u : 0u;
    return from_bits_f32(bits | (u32)(h.v & 0x8000u) << 16);
}

/* Normal results: add half of the last kept bit, less one when that bit is even, and shift. Subnormal results: adding
 * 0.5 lines the mantissa up with the half's subnormal bits and the adder rounds to nearest even. */
INL f16 st_f16(f32 x)
{
    u32 bits = bits_f32(x), magnitude = bits & 0x7fffffffu;
    u32 normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    u32 subnormal = bits_f32(from_bits_f32(magnitude) + 0.5f) - 0x3f000000u;
    u32 half = magnitude < 0x38800000u ? subnormal : normal;
    half = magnitude >= 0x477ff000u ? 0x7c00u : half; /* 65520 and above round to infinity */
    half = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : half;
    f16 h = {(uint16_t)(half | (bits >> 16 & 0x8000u))};
    return h;
}

INL f32 ld_bf16(bf16 h) { return from_bits_f32((u32)h.v << 16); }

INL bf16 st_bf16(f32 x)
{
    u32 bits = bits_f32(x);
    u32 rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    rounded = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded; /* PyTorch's NaN */
    bf16 h = {(uint16_t)rounded};
    return h;
}

#define TRT_FLOAT8_FUNCTION INL
#define trt_bits_of_float bits_f32
#define trt_float_of_bits from_bits_f32
#include "float8.h"

/* ---- types without loops ---------------------------------------------------------------------------------------- */

/* Each type and its conversions to and from the type it computes in, from the table's encoding: ld_<type>(x), st_<type>(x). */
#define TRT_ENCODING_INTEGER(type, compute, digits)                                                                  \
    INL compute ld_##type(type x) { return (compute)x; }                                                             \
    INL type st_##type(compute x) { return (type)x; }
#define TRT_ENCODING_FLOAT8(type, digits, encoding)                                                                  \
    typedef struct { uint8_t v; } type;                                                                              \
    INL f32 ld_##type(type x) { return ld_float8(x.v, digits, encoding); }                                           \
    INL type st_##type(f32 x) { type r = {(uint8_t)st_float8(x, digits, encoding)}; return r; }
#define TRT_ENCODING_IEEE(type, compute, digits) TRT_ENCODING_FLOAT8(type, digits, FLOAT8_IEEE)
#define TRT_ENCODING_FN(type, compute, digits) TRT_ENCODING_FLOAT8(type, digits, FLOAT8_FN)
#define TRT_ENCODING_FNUZ(type, compute, digits) TRT_ENCODING_FLOAT8(type, digits, FLOAT8_FNUZ)
#define TRT_ENCODING_POWER(type, compute, digits)                                                                    \
    typedef struct { uint8_t v; } type;                                                                              \
    INL f32 ld_##type(type x) { return ld_power(x.v); }                                                              \
    INL type st_##type(f32 x) { type r = {(uint8_t)st_power(x)}; return r; }
#define TRT_ENCODING_PAIR(type, compute, digits)                                                                     \
    typedef struct { f16 re, im; } type;                                                                             \
    INL compute ld_##type(type x) { return make_c64(ld_f16(x.re), ld_f16(x.im)); }                                   \
    INL type st_##type(compute x) { type r = {st_f16(__real__ x), st_f16(__imag__ x)}; return r; }
#define TRT_ROW_ENCODING(type, name, label, cpp, size, category, compute, real, complex_, digits, largest, properties, dlpack, encoding, ...) \
    TRT_ENCODING_##encoding(type, compute, digits)
TRT_STORAGE_DTYPES(TRT_ROW_ENCODING)
#undef TRT_ROW_ENCODING

/* A float as uint64: from 2^63 on without its highest bit, which no conversion to int64 can hold; negative numbers wrap. */
INL u64 real_as_u64(f64 x) { return x >= 0x1p63 ? (u64)(i64)(x - 0x1p63) ^ (u64)1 << 63 : (u64)(i64)x; }

/* Blocks of contiguous halves: the conversion instructions where there are any, the same bits either way. The compiler's
 * builtins name them, not immintrin.h, which takes every unit a third of a second to read. */
#if defined(__AVX512F__)
#define HALVES 16
#elif defined(__F16C__)
#define HALVES 8
#endif
#ifdef HALVES
typedef short halves __attribute__((vector_size(2 * HALVES)));
typedef f32 floats_of_halves __attribute__((vector_size(4 * HALVES)));
#endif

INL void f16_to_f32_block(const f16 *restrict src, f32 *restrict dst, i64 n)
{
    i64 i = 0;
#ifdef HALVES
    for (; i + HALVES <= n; i += HALVES) {
        halves h;
        floats_of_halves x;
        memcpy(&h, src + i, sizeof h);
#if HALVES == 16
        x = __builtin_ia32_vcvtph2ps512_mask(h, (floats_of_halves){0}, -1, 4); /* 4: the current rounding, as all results are exact */
#else
        x = __builtin_ia32_vcvtph2ps256(h);
#endif
        memcpy(dst + i, &x, sizeof x);
    }
#endif
    for (; i < n; i++)
        dst[i] = ld_f16(src[i]);
}

INL void f32_to_f16_block(const f32 *restrict src, f16 *restrict dst, i64 n)
{
    i64 i = 0;
#ifdef HALVES
    for (; i + HALVES <= n; i += HALVES) {
        halves h;
        floats_of_halves x;
        memcpy(&x, src + i, sizeof x);
#if HALVES == 16
        h = __builtin_ia32_vcvtps2ph512_mask(x, 0, (halves){0}, -1); /* 0: to the nearest, ties to even */
#else
        h = __builtin_ia32_vcvtps2ph256(x, 0);
#endif
        memcpy(dst + i, &h, sizeof h);
    }
#endif
    for (; i < n; i++)
        dst[i] = st_f16(src[i]);
}

INL void bf16_to_f32_block(const bf16 *restrict src, f32 *restrict dst, i64 n)
{
    for (i64 i = 0; i < n; i++)
        dst[i] = ld_bf16(src[i]);
}

INL void f32_to_bf16_block(const f32 *restrict src, bf16 *restrict dst, i64 n)
{
    for (i64 i = 0; i < n; i++)
        dst[i] = st_bf16(src[i]);
}

/* ---- parameters of operators ---------------------------------------------------------------------------------- */

enum { SCALAR_BOOL, SCALAR_INT, SCALAR_FLOAT, SCALAR_COMPLEX, SCALAR_UNSIGNED };

/* A Python number: `i` holds bool and int, `d` a float or the real part, `im` the imaginary part. Integers from 2^63 to 2^64 are SCALAR_UNSIGNED: `i` has
   their bits, `d` their value. */
typedef struct Scalar {
    int kind;
    int pad;
    double d;
    double im;
    int64_t i;
} Scalar;

/* the conversion of a float parameter to an integer type wraps modulo 2^64 without overflow in C's sense */
INL i64 scalar_as_i64(const Scalar *s)
{
    if (s->kind <= SCALAR_INT || s->kind == SCALAR_UNSIGNED)
        return s->i;
    return s->d >= -0x1p63 && s->d < 0x1p63 ? (i64)s->d : INT64_MIN;
}
INL f64 scalar_as_f64(const Scalar *s) { return s->kind <= SCALAR_INT ? (f64)s->i : s->d; }

INL b8 par_b8(const Scalar *s)
{
    return s->kind <= SCALAR_INT ? s->i != 0 : s->d != 0.0 || (s->kind == SCALAR_COMPLEX && s->im != 0.0);
}
INL u8 par_u8(const Scalar *s) { return (u8)scalar_as_i64(s); }
INL i8 par_i8(const Scalar *s) { return (i8)scalar_as_i64(s); }
INL i16 par_i16(const Scalar *s) { return (i16)scalar_as_i64(s); }
INL i32 par_i32(const Scalar *s) { return (i32)scalar_as_i64(s); }
INL i64 par_i64(const Scalar *s) { return scalar_as_i64(s); }
INL f32 par_f32(const Scalar *s) { return s->kind <= SCALAR_INT ? (f32)s->i : (f32)s->d; }
INL f64 par_f64(const Scalar *s) { return scalar_as_f64(s); }
INL f32 par_f16(const Scalar *s) { return par_f32(s); } /* half types compute in float */
INL f32 par_bf16(const Scalar *s) { return par_f32(s); }
INL c64 par_c64(const Scalar *s) { return make_c64(par_f32(s), s->kind == SCALAR_COMPLEX ? (f32)s->im : 0.0f); }
INL c128 par_c128(const Scalar *s) { return make_c128(par_f64(s), s->kind == SCALAR_COMPLEX ? s->im : 0.0); }

#endif
