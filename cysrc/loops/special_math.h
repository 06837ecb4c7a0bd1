/* The functions of special_functions.h under the names of expressions: special_<name>_f32, computed in double and rounded once, and special_<name>_f64,
 * computed with 64-bit mantissas (zeta, polygamma: in double). Scalar, and those alone that special_vector.h does not have. Included by the loops of the family
 * `special`; accuracy: tools/vmath_check. */
#ifndef TRT_SPECIAL_MATH_H
#define TRT_SPECIAL_MATH_H

#include "vector_math.h"
#include "special_vector.h"

#define FUNCTION static __attribute__((unused))
#define TABLE(name) static __attribute__((unused)) const W S(name)[]
#define K(number) ((W)number##L)

#define W f64
#define S(name) name##_wide_f32
#define M(name) LIBRARY_f64_##name
#define EPSILON 0x1p-56
#define LIBRARY_f64_fabs fabs
#define LIBRARY_f64_sqrt sqrt
#define LIBRARY_f64_exp exp
#define LIBRARY_f64_expm1 expm1
#define LIBRARY_f64_log log
#define LIBRARY_f64_log1p log1p
#define LIBRARY_f64_power pow
#define LIBRARY_f64_sin sin
#define LIBRARY_f64_cos cos
#define LIBRARY_f64_acos acos
#define LIBRARY_f64_acosh acosh
#define LIBRARY_f64_sinh sinh
#define LIBRARY_f64_cosh cosh
#define LIBRARY_f64_erf erf
#define LIBRARY_f64_erfc erfc
#define LIBRARY_f64_lgamma lgamma_f64 /* no write to the process-wide signgam */
#define LIBRARY_f64_tgamma tgamma
#define LIBRARY_f64_floor floor
#define LIBRARY_f64_fma fma
#include "special_functions.h"
#undef W
#undef S
#undef M
#undef EPSILON

typedef long double f80;
static __attribute__((unused)) f80 special_lgammal(f80 x) { int sign; return lgammal_r(x, &sign); }
#define W f80
#define S(name) name##_wide_f64
#define M(name) LIBRARY_f80_##name
#define EPSILON 0x1p-68L
#define LIBRARY_f80_fabs fabsl
#define LIBRARY_f80_sqrt sqrtl
#define LIBRARY_f80_exp expl
#define LIBRARY_f80_expm1 expm1l
#define LIBRARY_f80_log logl
#define LIBRARY_f80_log1p log1pl
#define LIBRARY_f80_power powl
#define LIBRARY_f80_sin sinl
#define LIBRARY_f80_cos cosl
#define LIBRARY_f80_acos acosl
#define LIBRARY_f80_acosh acoshl
#define LIBRARY_f80_sinh sinhl
#define LIBRARY_f80_cosh coshl
#define LIBRARY_f80_erf erfl
#define LIBRARY_f80_erfc erfcl
#define LIBRARY_f80_lgamma special_lgammal
#define LIBRARY_f80_tgamma tgammal
#define LIBRARY_f80_floor floorl
#define LIBRARY_f80_fma fmal
#include "special_functions.h"
#undef W
#undef S
#undef M
#undef EPSILON
#undef K
#undef TABLE
#undef FUNCTION

#define UNARY(name, call, T, WIDE) INL T special_##name##_##T(T v) { const WIDE x = v; return (T)call; }
#define BINARY(name, call, T, WIDE) INL T special_##name##_##T(T v, T u) { const WIDE x = v, n = u; return (T)call; }
/* referred to by address, and for high degrees alone */
#define POLYNOMIAL(name, call, T, WIDE) static __attribute__((unused, noinline)) T special_##name##_##T(T v, T u) { const WIDE x = v, n = u; return (T)call; }
#define DEFINE_SPECIAL(T, WIDE, HERMITE_LIMIT)                                                                        \
    UNARY(airy_ai, airy_ai_wide_##T(x), T, WIDE)                                                                      \
    BINARY(gammainc, incomplete_gamma_wide_##T(x, n, 0), T, WIDE)                                                     \
    BINARY(gammaincc, incomplete_gamma_wide_##T(x, n, 1), T, WIDE)                                                    \
    INL T special_zeta_##T(T s, T q) { return (T)zeta_wide_f32(s, q); }                                               \
    static __attribute__((unused, noinline)) T polygamma_##T(T n, T x) { return (T)polygamma_wide_f32(n, x); }        \
    INL T special_polygamma_##T(T n, T x) { return __builtin_constant_p(n) && n == 1 ? trigamma_##T(x) : polygamma_##T(n, x); } \
    POLYNOMIAL(chebyshev_t, chebyshev_polynomial_wide_##T(x, n, 0), T, WIDE)                                              \
    POLYNOMIAL(chebyshev_u, chebyshev_polynomial_wide_##T(x, n, 1), T, WIDE)                                              \
    POLYNOMIAL(chebyshev_v, chebyshev_polynomial_wide_##T(x, n, 2), T, WIDE)                                              \
    POLYNOMIAL(chebyshev_w, chebyshev_polynomial_wide_##T(x, n, 3), T, WIDE)                                              \
    POLYNOMIAL(shifted_chebyshev_t, chebyshev_polynomial_wide_##T(2 * x - 1, n, 0), T, WIDE)                              \
    POLYNOMIAL(shifted_chebyshev_u, chebyshev_polynomial_wide_##T(2 * x - 1, n, 1), T, WIDE)                              \
    POLYNOMIAL(shifted_chebyshev_v, chebyshev_polynomial_wide_##T(2 * x - 1, n, 2), T, WIDE)                              \
    POLYNOMIAL(shifted_chebyshev_w, chebyshev_polynomial_wide_##T(2 * x - 1, n, 3), T, WIDE)                              \
    POLYNOMIAL(hermite_h, hermite_polynomial_wide_##T(x, n, 2, HERMITE_LIMIT), T, WIDE)                                   \
    POLYNOMIAL(hermite_he, hermite_polynomial_wide_##T(x, n, 1, HERMITE_LIMIT), T, WIDE)                                  \
    POLYNOMIAL(laguerre, laguerre_polynomial_wide_##T(x, n), T, WIDE)                                                     \
    POLYNOMIAL(legendre, legendre_polynomial_wide_##T(x, n), T, WIDE)
DEFINE_SPECIAL(f32, f64, 128)
DEFINE_SPECIAL(f64, f80, 512)
/* By the fields of the bits, which vectorises: frexp took 170 ns an element. Zero, infinity and NaN are their own mantissa, of exponent zero. */
#define DEFINE_FREXP(T, U, DIGITS, FIELD)                                                                             \
    INL T special_frexp_normal_##T(T x) { return (bits_##T(x) >> (DIGITS) & (FIELD)) == 0 ? x * (T)((U)1 << ((DIGITS) + 1)) : x; } \
    INL int special_frexp_is_regular_##T(T x) { return x - x == 0 && x != 0; }                                        \
    INL T special_frexp_mantissa_##T(T x)                                                                             \
    {                                                                                                                 \
        const U bits = bits_##T(special_frexp_normal_##T(x)), half = (U)((FIELD) / 2 - 1) << (DIGITS);                \
        const T mantissa = from_bits_##T((bits & ~((U)(FIELD) << (DIGITS))) | half);                                  \
        return special_frexp_is_regular_##T(x) ? mantissa : x;                                                        \
    }                                                                                                                 \
    INL T special_frexp_exponent_##T(T x)                                                                             \
    {                                                                                                                 \
        const T normal = special_frexp_normal_##T(x);                                                                 \
        const int field = (int)(bits_##T(normal) >> (DIGITS) & (FIELD)), shift = normal != x ? (DIGITS) + 1 : 0;      \
        return special_frexp_is_regular_##T(x) ? (T)(field - ((FIELD) / 2 - 1) - shift) : (T)0;                       \
    }
/* x * 2^n of an integer n, rounded once: what a float and a power make fits a double; a double's mantissa times all but the last power is exact. */
INL f64 special_power_of_two(f64 n) { return from_bits_f64((u64)((i64)n + 1023) << 52); }
INL f32 special_ldexp_f32(f32 x, f32 n)
{
    const f32 within = n > 300 ? 300 : n < -300 ? -300 : n;
    return (f32)((f64)x * special_power_of_two((f64)within));
}
DEFINE_FREXP(f32, u32, 23, 255)
DEFINE_FREXP(f64, u64, 52, 2047)
INL f64 special_ldexp_f64(f64 x, f64 n)
{
    const f64 exponent = special_frexp_exponent_f64(x) + (n > 3000 ? 3000 : n < -3000 ? -3000 : n);
    const f64 first = exponent > 1000 ? 1000 : exponent < -1000 ? -1000 : exponent, rest = exponent - first;
    const f64 last = rest > 1000 ? 1000 : rest < -1000 ? -1000 : rest;
    return special_frexp_mantissa_f64(x) * special_power_of_two(first) * special_power_of_two(last);
}
/* in double for both: some hundred exponentials, and random numbers */
#define DEFINE_SLOPES(T)                                                                                              \
    INL T special_gamma_slope_##T(T a, T x) { return (T)gamma_slope_wide_f32(a, x); }                                 \
    INL T special_beta_slope_##T(T x, T a, T total) { return (T)beta_slope_wide_f32(x, a, total); }
DEFINE_SLOPES(f32)
DEFINE_SLOPES(f64)
#undef DEFINE_SLOPES
#undef DEFINE_FREXP
#undef UNARY
#undef BINARY
#undef POLYNOMIAL
#undef DEFINE_SPECIAL

#include "special_recurrences.h"

#endif
