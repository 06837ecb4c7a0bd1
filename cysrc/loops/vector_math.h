/* The mathematical functions of the loops: NAME_f32, NAME_f64, NAME_c64, NAME_c128 and integer variants NAME_u8 … NAME_i64.
 *
 * Every real function is branch free (polynomials, selects, bit arithmetic) unless its comment says "scalar", so a loop
 * that calls it vectorises; the same expression serves the vector body and the remainder, so an element's result does
 * not depend on its position. Compile with -fno-math-errno -fno-trapping-math -ffp-contract=off, never -ffast-math:
 * the rounding tricks below need additions in the order written, and the code says fma where it means one. What AVX-512's own
 * instructions do faster has a second form in vector_math_avx512.h. Accuracy: tools/vmath_check prints the table.
 *
 * sin, cos and tan are accurate for |x| <= TRIG_LIMIT; a caller that meets larger arguments uses the block functions
 * (sin_block_f32 …), which test the block once and send only the large elements to the C library. */
#ifndef TRT_VECTOR_MATH_H
#define TRT_VECTOR_MATH_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* lgamma_r: no write to the process-wide signgam */
#endif
#include "scalar_types.h"
#include <math.h>

/* Cody-Waite reduction is exact up to here: n * (33-bit part of pi / 2) fits a double for n < 2^20. */
#define TRIG_LIMIT 1e6

/* One rounding where the hardware has the instruction, two otherwise; never a library call. */
#ifdef __FMA__
INL f32 fma_f32(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
INL f64 fma_f64(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
/* the rounding error of p = a * b */
INL f32 product_error_f32(f32 a, f32 b, f32 p) { return __builtin_fmaf(a, b, -p); }
INL f64 product_error_f64(f64 a, f64 b, f64 p) { return __builtin_fma(a, b, -p); }
#else
INL f32 fma_f32(f32 a, f32 b, f32 c) { return a * b + c; }
INL f64 fma_f64(f64 a, f64 b, f64 c) { return a * b + c; }
INL f32 product_error_f32(f32 a, f32 b, f32 p) { return (f32)((f64)a * (f64)b - (f64)p); }
/* Dekker's product, the halves cut by a mask so that nothing overflows */
INL f64 product_error_f64(f64 a, f64 b, f64 p)
{
    f64 ah = from_bits_f64(bits_f64(a) & 0xfffffffff8000000u), al = a - ah;
    f64 bh = from_bits_f64(bits_f64(b) & 0xfffffffff8000000u), bl = b - bh;
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl;
}
#endif

#include "vector_math_polynomials.h"

/* ---- what differs between float and double ---------------------------------------------------------------------- */

/* t = n + SHIFTER holds the integer n in its low bits, and adding it rounds to nearest even. */
#define SHIFTER_f32 0x1.8p23f
#define SHIFTER_f64 0x1.8p52

/* 2^n from t = n + SHIFTER, n within the exponents of normal numbers */
INL f32 power_of_two_f32(f32 t) { return from_bits_f32((bits_f32(t) + 127u) << 23); }
INL f64 power_of_two_f64(f64 t) { return from_bits_f64((bits_f64(t) + 1023u) << 52); }

INL f32 abs_f32(f32 x) { return __builtin_fabsf(x); }
INL f64 abs_f64(f64 x) { return __builtin_fabs(x); }
INL f32 sqrt_f32(f32 x) { return __builtin_sqrtf(x); }
INL f64 sqrt_f64(f64 x) { return __builtin_sqrt(x); }
INL f32 copysign_f32(f32 x, f32 s) { return __builtin_copysignf(x, s); }
INL f64 copysign_f64(f64 x, f64 s) { return __builtin_copysign(x, s); }
INL b8 signbit_f32(f32 x) { return (b8)(bits_f32(x) >> 31); }
INL b8 signbit_f64(f64 x) { return (b8)(bits_f64(x) >> 63); }

/* Rounding to integers. Without SSE4.1 the additions of 2^23 (2^52) round, and larger numbers are integers already. */
#ifdef __SSE4_1__
INL f32 floor_f32(f32 x) { return __builtin_floorf(x); }
INL f64 floor_f64(f64 x) { return __builtin_floor(x); }
INL f32 ceil_f32(f32 x) { return __builtin_ceilf(x); }
INL f64 ceil_f64(f64 x) { return __builtin_ceil(x); }
INL f32 trunc_f32(f32 x) { return __builtin_truncf(x); }
INL f64 trunc_f64(f64 x) { return __builtin_trunc(x); }
INL f32 round_f32(f32 x) { return __builtin_rintf(x); }
INL f64 round_f64(f64 x) { return __builtin_rint(x); }
#else
#define DEFINE_ROUNDING(T, TWO_P)                                                                                    \
    INL T round_##T(T x)                                                                                             \
    {                                                                                                                \
        T a = abs_##T(x), r = (a + TWO_P) - TWO_P;                                                                   \
        return a < TWO_P ? copysign_##T(r, x) : x;                                                                   \
    }                                                                                                                \
    INL T floor_##T(T x)                                                                                             \
    {                                                                                                                \
        T r = round_##T(x), d = r > x ? (T)1 : (T)0;                                                                 \
        return copysign_##T(r - d, x);                                                                               \
    }                                                                                                                \
    INL T ceil_##T(T x)                                                                                              \
    {                                                                                                                \
        T r = round_##T(x), d = r < x ? (T)1 : (T)0;                                                                 \
        return copysign_##T(r + d, x);                                                                               \
    }                                                                                                                \
    INL T trunc_##T(T x)                                                                                             \
    {                                                                                                                \
        T a = abs_##T(x), r = abs_##T(round_##T(x)), d = r > a ? (T)1 : (T)0;                                        \
        return copysign_##T(r - d, x);                                                                               \
    }
DEFINE_ROUNDING(f32, 0x1p23f)
DEFINE_ROUNDING(f64, 0x1p52)
#endif

/* x = m * 2^k with m in [sqrt(1/2), sqrt(2)); x > 0, finite or not; subnormals are scaled up first. k in x's type. */
typedef struct { f32 m, k; } split_f32;
typedef struct { f64 m, k; } split_f64;

INL split_f32 split_exponent_f32(f32 x)
{
    f32 scaled = x < 0x1p-126f ? x * 0x1p25f : x;
    f32 shift = x < 0x1p-126f ? -25.0f : 0.0f;
    u32 u = bits_f32(scaled) + (0x3f800000u - 0x3f3504f3u);
    split_f32 r = {from_bits_f32((u & 0x007fffffu) + 0x3f3504f3u), (f32)((i32)(u >> 23) - 127) + shift};
    return r;
}

/* the exponent becomes a double through its bits: there is no vector conversion from 64-bit integers before AVX-512 */
INL split_f64 split_exponent_f64(f64 x)
{
    f64 scaled = x < 0x1p-1022 ? x * 0x1p54 : x;
    f64 shift = x < 0x1p-1022 ? -54.0 : 0.0;
    u64 u = bits_f64(scaled) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
    f64 k = from_bits_f64((u >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
    split_f64 r = {from_bits_f64((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu), k + shift};
    return r;
}

/* log(m) as hi + lo - f's part: f = m - 1 (exact or given); c is a correction to f far below its last bit */
INL f64 log_assemble_f64(f64 f, f64 k, f64 c)
{
    f64 s = f / (2.0 + f), z = (s * s), half = (0.5 * f * f);
    f64 inner = fma_f64(s, fma_f64(z, poly_log_f64(z), half), fma_f64(k, 1.90821492927058770002e-10, c));
    return fma_f64(k, 6.93147180369123816490e-01, -((half - inner) - f));
}

INL f32 log_assemble_f32(f32 f, f32 k, f32 c)
{
    f32 z = (f * f);
    f32 inner = fma_f32((z * f), poly_log_f32(f), fma_f32(k, 1.42860682e-6f, c));
    return fma_f32(k, 0.693145751953125f, f + fma_f32(-0.5f, z, inner));
}

#define REAL f32
#define PRECISION 32
#include "vector_math_real.h"
#undef REAL
#undef PRECISION
#define REAL f64
#define PRECISION 64
#include "vector_math_real.h"
#undef REAL
#undef PRECISION

#include "vector_math_special.h"
#include "vector_math_integer.h"
#include "vector_math_complex.h"
#include "vector_math_rare.h"

#endif
