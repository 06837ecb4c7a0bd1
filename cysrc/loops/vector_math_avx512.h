/* Forms of functions in AVX-512's own instructions, where they are faster than what the compiler makes of vector_math.h's text: NAME_lanes_f32,
 * NAME_lanes_f64. The generator takes them for the loops of an expression whose functions all have one (tools/codegen/pointwise.py).
 *
 * Scale by 2^n (vscalef) rounds once into the denormals and overflows by itself. What levels off, or keeps a smooth factor, is a table of 32
 * polynomials over quarters of octaves of |x|, each coefficient a permutation of two registers (vpermt2ps); its last piece in use is level, and
 * larger arguments are taken for that piece's middle, where the constant alone remains. minps and maxps return their second operand where one
 * is NaN. Errors: tools/vmath_check. */
#ifndef TRT_VECTOR_MATH_AVX512_H
#define TRT_VECTOR_MATH_AVX512_H
#ifdef __AVX512F__

#include "lanes.h"
#include "vector_math.h"

typedef unsigned short lane_mask_f32;
typedef unsigned char lane_mask_f64;
typedef lanes_i32 lanes_if32;
typedef lanes_i64 lanes_if64;

#define ALL_f32(x) SPLAT(lanes_f32, (f32)(x))
#define ALL_f64(x) SPLAT(lanes_f64, (f64)(x))
INL lanes_f32 lower_f32(lanes_f32 a, lanes_f32 b) { return __builtin_ia32_minps512_mask(a, b, a, -1, 4); }
INL lanes_f64 lower_f64(lanes_f64 a, lanes_f64 b) { return __builtin_ia32_minpd512_mask(a, b, a, -1, 4); }
INL lanes_f32 higher_f32(lanes_f32 a, lanes_f32 b) { return __builtin_ia32_maxps512_mask(a, b, a, -1, 4); }
INL lanes_f64 higher_f64(lanes_f64 a, lanes_f64 b) { return __builtin_ia32_maxpd512_mask(a, b, a, -1, 4); }
INL lanes_f32 scale_f32(lanes_f32 x, lanes_f32 n) { return __builtin_ia32_scalefps512_mask(x, n, x, -1, 4); }
INL lanes_f64 scale_f64(lanes_f64 x, lanes_f64 n) { return __builtin_ia32_scalefpd512_mask(x, n, x, -1, 4); }
INL lanes_f32 scale_where_f32(lane_mask_f32 k, lanes_f32 x, lanes_f32 n) { return __builtin_ia32_scalefps512_mask(x, n, x, k, 4); }
INL lanes_f64 scale_where_f64(lane_mask_f64 k, lanes_f64 x, lanes_f64 n) { return __builtin_ia32_scalefpd512_mask(x, n, x, k, 4); }
INL lane_mask_f32 negative_f32(lanes_f32 x) { return __builtin_ia32_cvtd2mask512((lanes_i32)x); }
INL lane_mask_f64 negative_f64(lanes_f64 x) { return __builtin_ia32_cvtq2mask512((lanes_i64)x); }
INL lane_mask_f32 above_f32(lanes_f32 a, lanes_f32 b) { return __builtin_ia32_cmpps512_mask(a, b, 0x1e, -1, 4); }
INL lane_mask_f64 above_f64(lanes_f64 a, lanes_f64 b) { return __builtin_ia32_cmppd512_mask(a, b, 0x1e, -1, 4); }
INL lanes_f32 choose_f32(lane_mask_f32 k, lanes_f32 a, lanes_f32 b) { return __builtin_ia32_blendmps_512_mask(b, a, k); }
INL lanes_f64 choose_f64(lane_mask_f64 k, lanes_f64 a, lanes_f64 b) { return __builtin_ia32_blendmpd_512_mask(b, a, k); }
INL lanes_f32 abs_lanes_f32(lanes_f32 x) { return (lanes_f32)((lanes_i32)x & 0x7fffffff); }
INL lanes_f64 abs_lanes_f64(lanes_f64 x) { return (lanes_f64)((lanes_i64)x & 0x7fffffffffffffffLL); }
INL lanes_f32 with_sign_f32(lanes_f32 y, lanes_f32 x) { return (lanes_f32)(((lanes_i32)y & 0x7fffffff) | ((lanes_i32)x & (i32)0x80000000)); }
INL lanes_f64 with_sign_f64(lanes_f64 y, lanes_f64 x) { return (lanes_f64)(((lanes_i64)y & 0x7fffffffffffffffLL) | ((lanes_i64)x & (i64)0x8000000000000000ULL)); }
#include "vector_math_pieces.h"

/* of comparisons, which are whole lanes of bits */
INL lanes_f32 select_lanes_f32(lanes_i32 c, lanes_f32 a, lanes_f32 b) { return choose_f32(__builtin_ia32_cvtd2mask512(c), a, b); }
INL lanes_f64 select_lanes_f64(lanes_i64 c, lanes_f64 a, lanes_f64 b) { return choose_f64(__builtin_ia32_cvtq2mask512(c), a, b); }

/* a table of 16 numbers, by the four low bits of i; look_up below takes float tables of 32 */
INL lanes_f32 look_up_f32(const f32 *table, lanes_i32 i) { return __builtin_ia32_permvarsf512_mask(*(const lanes_f32 *)table, i, (lanes_f32){0}, -1); }
INL lanes_f64 look_up_f64(const f64 *table, lanes_i64 i)
{
    return __builtin_ia32_vpermt2varpd512_mask(i, *(const lanes_f64 *)table, *(const lanes_f64 *)(table + 8), -1);
}

/* ---- exponentials: (1 + fraction) 2^n ------------------------------------------------------------------------------------ */

#define LOG2E_f32 0x1.715476p0f
#define LN2_HI_f32 0x1.62e4p-1f
#define LN2_LO_f32 0x1.7f7d1cp-20f
#define LN2_SHORT 0x1.62ep-1f
#define LN2_SHORT_LO 0x1.0bfbe8p-15f
#define LOG2E_f64 0x1.71547652b82fep0
#define LN2_HI_f64 0x1.62e42fee00000p-1
#define LN2_LO_f64 0x1.a39ef35793c76p-33

#define DEFINE_EXPONENTIALS(T, LOWEST, HIGHEST, LOWEST2, HIGHEST2)                                                   \
    typedef struct { lanes_##T fraction, n; } power_##T;                                                             \
    /* of x within the limits of exp */                                                                              \
    INL power_##T exp_power_##T(lanes_##T x)                                                                         \
    {                                                                                                                \
        lanes_##T n = FMA(x, ALL_##T(LOG2E_##T), ALL_##T(SHIFTER_##T)) - SHIFTER_##T;                                \
        lanes_##T r = FMA(n, ALL_##T(-LN2_LO_##T), FMA(n, ALL_##T(-LN2_HI_##T), x));                                 \
        lanes_##T square = r * r;                                                                                    \
        return (power_##T){FMA(square, poly_exp_lanes_##T(r, square), r), n};                                        \
    }                                                                                                                \
    INL lanes_##T exp2_lanes_##T(lanes_##T x)                                                                        \
    {                                                                                                                \
        x = lower_##T(ALL_##T(HIGHEST2), higher_##T(ALL_##T(LOWEST2), x));                                           \
        lanes_##T n = (x + SHIFTER_##T) - SHIFTER_##T, r = x - n;                                                    \
        return scale_##T(FMA(r, poly_exp2_lanes_##T(r, r * r), ALL_##T(1)), n);                                      \
    }                                                                                                                \
    /* e^-|x| */                                                                                                     \
    INL power_##T exp_nonpositive_lanes_##T(lanes_##T x)                                                             \
    {                                                                                                                \
        return exp_power_##T(higher_##T(ALL_##T(LOWEST), -abs_lanes_##T(x)));                                        \
    }
DEFINE_EXPONENTIALS(f32, -110, 90, -155, 130)
DEFINE_EXPONENTIALS(f64, -760, 720, -1080, 1030)
/* exp itself takes 2^(i/16) from a table, which halves the polynomial; n is in sixteenths, and vscalef takes its whole part. One rounding more: not for what divides by it. */
#define DEFINE_EXP(T, LOWEST, HIGHEST)                                                                               \
    INL lanes_##T exp_lanes_##T(lanes_##T x)                                                                         \
    {                                                                                                                \
        x = lower_##T(ALL_##T(HIGHEST), higher_##T(ALL_##T(LOWEST), x));                                             \
        lanes_##T t = FMA(x, ALL_##T(LOG2E_##T), ALL_##T(SHIFTER_##T / 16)), n = t - SHIFTER_##T / 16;               \
        lanes_##T r = FMA(n, ALL_##T(-LN2_LO_##T), FMA(n, ALL_##T(-LN2_HI_##T), x)), square = r * r;                 \
        lanes_##T step = look_up_##T(exp_steps_##T, (lanes_i##T)t);                                                  \
        return scale_##T(FMA(step, FMA(square, poly_exp_step_lanes_##T(r, square), r), step), n);                    \
    }
DEFINE_EXP(f32, -110, 90)
DEFINE_EXP(f64, -760, 720)

/* ---- 1 / (1 + e^-x) --------------------------------------------------------------------------------------------------- */

/* w / (1 + w) or 1 / (1 + w) with w = e^-|x|: three roundings. More terms would wait for each other longer than they take. */
#define DEFINE_SIGMOID(T, LOWEST, FINISH)                                                                            \
    INL lanes_##T sigmoid_lanes_##T(lanes_##T x)                                                                     \
    {                                                                                                                \
        power_##T e = exp_nonpositive_lanes_##T(x);                                                                  \
        lanes_##T w = scale_##T(1 + e.fraction, e.n), d = 1 + w, q = choose_##T(negative_##T(x), w, ALL_##T(1)) / d; \
        return FINISH;                                                                                               \
    }                                                                                                                \
    /* x sigmoid(x), scaled last where w may be no normal number; NaN at -inf, as PyTorch's formula gives */         \
    INL lanes_##T silu_lanes_##T(lanes_##T x)                                                                        \
    {                                                                                                                \
        power_##T e = exp_nonpositive_lanes_##T(x);                                                                  \
        lane_mask_##T negative = negative_##T(x);                                                                    \
        lanes_##T d = 1 + scale_##T(1 + e.fraction, e.n), factor = higher_##T(ALL_##T(LOWEST), x);                   \
        lanes_##T y = choose_##T(negative, FMA(factor, e.fraction, factor), x) / d;                                  \
        return scale_where_##T(negative, FMA(lower_##T(ALL_##T(1), x), (lanes_##T){0}, y), e.n);                     \
    }
DEFINE_SIGMOID(f32, -110, q)
DEFINE_SIGMOID(f64, -760, FMA(-q, w - (d - 1), q)) /* most of what d lost: 2.1 ulp without */

/* ---- pieces --------------------------------------------------------------------------------------------------------------- */

INL lanes_f32 look_up(const f32 *table, lanes_i32 i)
{
    return __builtin_ia32_vpermt2varps512_mask(i, *(const lanes_f32 *)table, *(const lanes_f32 *)(table + 16), -1);
}
/* the number of |x|'s piece, modulo 32 */
INL lanes_i32 piece_of(lanes_f32 a)
{
    return __builtin_ia32_pmaxsd512_mask((lanes_i32)((lanes_u32)a >> 21), (lanes_i32){0} + PIECES_LOW, (lanes_i32){0}, -1);
}
/* what t is multiplied by: a polynomial of four degrees */
INL lanes_f32 piece_slope(const f32 table[][32], lanes_i32 i, lanes_f32 t)
{
    lanes_f32 square = t * t, low = FMA(look_up(table[3], i), t, look_up(table[2], i)), high = FMA(look_up(table[5], i), t, look_up(table[4], i));
    return FMA(FMA(look_up(table[6], i), square, high), square, low);
}
/* functions of slope 1 at 0, given without it: t itself is added last, for a relative error that stays small there */
INL lanes_f32 level_off(const f32 table[][32], lanes_f32 a)
{
    lanes_i32 i = piece_of(a);
    lanes_f32 t = a - look_up(table[0], i);
    return look_up(table[1], i) + FMA(piece_slope(table, i, t), t, t);
}
INL lanes_f32 tanh_lanes_f32(lanes_f32 x) { return with_sign_f32(level_off(tanh_pieces, lower_f32(ALL_f32(11), abs_lanes_f32(x))), x); }
INL lanes_f32 erf_lanes_f32(lanes_f32 x) { return with_sign_f32(level_off(erf_pieces, lower_f32(ALL_f32(4.5f), abs_lanes_f32(x))), x); }

/* min(|x|, limit), and the limit where x is NaN */
INL lanes_f32 magnitude_below(lanes_f32 x, lanes_f32 limit) { return __builtin_ia32_rangeps512_mask(x, limit, 10, x, -1, 4); }
/* y, but NaN where x is NaN or -infinity */
INL lanes_f32 with_nan_of(lanes_f32 y, lanes_f32 x) { return __builtin_ia32_fixupimmps512_mask(y, x, (lanes_i32){0} + 0x30022, 0, -1, 4); }

/* max(x, 0) less |x| P(X > |x|) of a standard normal X; that term is e^(-x^2 / 2) times pieces; NaN at -inf, as PyTorch's formula gives */
INL lanes_f32 gelu_lanes_f32(lanes_f32 x)
{
    /* exp of -square / 2 with 2^(i/16) from a table. r is in units of -1/2: a a enters it unrounded, as n times the first part of ln 2, of 12 bits, is exact. */
    lanes_f32 a = magnitude_below(x, ALL_f32(14.5f)), steps = FMA(a * a, ALL_f32(-0.5f * LOG2E_f32), ALL_f32(SHIFTER_f32 / 16)), n = steps - SHIFTER_f32 / 16;
    lanes_f32 r = FMA(n, ALL_f32(2 * LN2_SHORT_LO), FMA(a, a, n * (2 * LN2_SHORT)));
    lanes_f32 fraction = r * FMA(r, FMA(r, ALL_f32(-1 / 48.0f), ALL_f32(1 / 8.0f)), ALL_f32(-1 / 2.0f));
    lanes_i32 i = piece_of(a);
    lanes_f32 t = a - look_up(tail_pieces[0], i), p = FMA(piece_slope(tail_pieces, i, t), t, look_up(tail_pieces[1], i));
    p = p * look_up_f32(exp_steps_f32, (lanes_i32)steps);
    return with_nan_of(higher_f32((lanes_f32){0}, x) - scale_f32(FMA(p, fraction, p), n), x);
}
/* the same to 2^-15, for what is rounded to a half type */
INL lanes_f32 gelu_half(lanes_f32 x)
{
    lanes_f32 a = magnitude_below(x, ALL_f32(14.5f)), square = a * a, log2_of_power = square * (-0.5f * LOG2E_f32);
    lanes_f32 n = (log2_of_power + SHIFTER_f32) - SHIFTER_f32, r = log2_of_power - n;
    lanes_i32 i = piece_of(a);
    lanes_f32 t = a - look_up(tail_half_pieces[0], i);
    lanes_f32 p = look_up(tail_half_pieces[PIECES_HALF_DEGREE + 1], i);
    _Pragma("GCC unroll 4") for (int k = PIECES_HALF_DEGREE; k > 0; k--) p = FMA(p, t, look_up(tail_half_pieces[k], i));
    return with_nan_of(higher_f32((lanes_f32){0}, x) - scale_f32(p * poly_exp2_half_lanes_f32(r, r * r), n), x);
}
INL lanes_f32 gelu_f16_lanes_f32(lanes_f32 x) { return gelu_half(x); }
INL lanes_f32 gelu_bf16_lanes_f32(lanes_f32 x) { return gelu_half(x); }

/* in double: 16 pieces of equal width */
INL lanes_f64 erf_lanes_f64(lanes_f64 x)
{
    lanes_f64 a = lower_f64(ALL_f64(5.99), abs_lanes_f64(x));
    lanes_i64 i = (lanes_i64)(FMA(a, ALL_f64(1 / 0.375), ALL_f64(-0.5)) + SHIFTER_f64);
    lanes_f64 t = a - look_up_f64(erf_pieces_f64[0], i), square = t * t;
    lanes_f64 even = look_up_f64(erf_pieces_f64[12], i), odd = look_up_f64(erf_pieces_f64[13], i);
    _Pragma("GCC unroll 5") for (int k = 10; k > 0; k -= 2)
    {
        even = FMA(even, square, look_up_f64(erf_pieces_f64[k], i));
        odd = FMA(odd, square, look_up_f64(erf_pieces_f64[k + 1], i));
    }
    return with_sign_f64(look_up_f64(erf_pieces_f64[1], i) + FMA(FMA(odd, t, even), t, t), x);
}

/* ---- logarithms ------------------------------------------------------------------------------------------------------------ */

/* x = m 2^e with m in [0.75, 1.5), so that neither part is small beside the other's error near 1; getexp and getmant take subnormals, 0 (-infinity and 1) and
 * infinity apart, and getmant gives NaN for negative numbers. A factor of 16, by m's four leading bits, leaves r in [-0.034, 0.0635]. */
INL lanes_f32 mantissa_of_f32(lanes_f32 x) { return __builtin_ia32_getmantps512_mask(x, 11, x, -1, 4); }
INL lanes_f64 mantissa_of_f64(lanes_f64 x) { return __builtin_ia32_getmantpd512_mask(x, 11, x, -1, 4); }
INL lanes_f32 exponent_of_f32(lanes_f32 x) { return __builtin_ia32_getexpps512_mask(x, x, -1, 4); }
INL lanes_f64 exponent_of_f64(lanes_f64 x) { return __builtin_ia32_getexppd512_mask(x, x, -1, 4); }
INL lanes_i32 leading_bits_f32(lanes_f32 m) { return (lanes_i32)m >> 19; }
INL lanes_i64 leading_bits_f64(lanes_f64 m) { return (lanes_i64)m >> 48; }

#define LOG2E_HI_f32 0x1.715476p0f
#define LOG2E_LO_f32 0x1.4ae0cp-26f
#define LOG10_2_HI_f32 0x1.344p-2f
#define LOG10_2_LO_f32 0x1.3509f8p-18f
#define LOG10E_HI_f32 0x1.bcb7b2p-2f
#define LOG10E_LO_f32 -0x1.5b235ep-27f
#define LOG2E_HI_f64 0x1.71547652b82fep0
#define LOG2E_LO_f64 0x1.777d0ffda0d24p-56
#define LOG10_2_HI_f64 0x1.34413509f78p-2
#define LOG10_2_LO_f64 0x1.fef311f12b358p-46
#define LOG10E_HI_f64 0x1.bcb7b1526e50ep-2
#define LOG10E_LO_f64 0x1.95355baaafad3p-57
/* e HIGH + value + r SLOPE, and what is below them: r (SLOPE_LO + r polynomial) + e LOW. LOW is positive, so that log 0 is not infinity less infinity. */
#define LOGARITHM(name, T, HIGH, LOW, SLOPE, SLOPE_LO)                                                               \
    {                                                                                                                \
        lanes_##T m = mantissa_of_##T(x), e = exponent_of_##T(x) - exponent_of_##T(m);                               \
        lanes_i##T i = leading_bits_##T(m);                                                                          \
        lanes_##T r = FMA(m, look_up_##T(name##_factors_##T, i), ALL_##T(-1)), square = r * r;                       \
        lanes_##T value = FMA(e, ALL_##T(HIGH), look_up_##T(name##_values_##T, i));                                  \
        lanes_##T p = poly_##name##_rest_lanes_##T(r, square);                                                       \
        p = SLOPE_LO == 0 ? p * square : r * FMA(p, r, ALL_##T(SLOPE_LO));                                           \
        p = LOW == 0 ? p : FMA(e, ALL_##T(LOW), p);                                                                  \
        return value + (SLOPE == 1 ? r + p : FMA(r, ALL_##T(SLOPE), p));                                             \
    }
INL lanes_f32 log_lanes_f32(lanes_f32 x) LOGARITHM(log, f32, LN2_HI_f32, LN2_LO_f32, 1, 0)
INL lanes_f64 log_lanes_f64(lanes_f64 x) LOGARITHM(log, f64, 0x1.62e42fefa3800p-1, 0x1.ef35793c76730p-45, 1, 0)
INL lanes_f32 log2_lanes_f32(lanes_f32 x) LOGARITHM(log2, f32, 1, 0, LOG2E_HI_f32, LOG2E_LO_f32)
INL lanes_f64 log2_lanes_f64(lanes_f64 x) LOGARITHM(log2, f64, 1, 0, LOG2E_HI_f64, LOG2E_LO_f64)
INL lanes_f32 log10_lanes_f32(lanes_f32 x) LOGARITHM(log10, f32, LOG10_2_HI_f32, LOG10_2_LO_f32, LOG10E_HI_f32, LOG10E_LO_f32)
INL lanes_f64 log10_lanes_f64(lanes_f64 x) LOGARITHM(log10, f64, LOG10_2_HI_f64, LOG10_2_LO_f64, LOG10E_HI_f64, LOG10E_LO_f64)

/* ---- roots ------------------------------------------------------------------------------------------------------------------ */

/* From the hardware's 14 bits of 1 / sqrt(x) by Newton's steps, g to sqrt(x) and h to half of its inverse, and Markstein's last one, whose residual is exact: rounded
 * as the instruction rounds (tests/loops/test_vector_math.py: float for every mantissa), and two to three times as fast. Numbers that are not within 2^-97 (double
 * 2^-927) and infinity are the instruction's: there the residual of small numbers is not exact, and 0 has no inverse. What decides is the number, not its neighbours in the register. */
INL lane_mask_f32 within_f32(lanes_f32 x)
{
    const u32 low = 0x0f000000, high = 0x7f800000; /* 2^-97, infinity */
    return __builtin_ia32_ucmpd512_mask((lanes_i32)((lanes_u32)x - low), (lanes_i32){0} + (i32)(high - low), 1, -1);
}
INL lane_mask_f64 within_f64(lanes_f64 x)
{
    const i64 low = 0x0600000000000000, high = 0x7ff0000000000000; /* 2^-927, infinity */
    return __builtin_ia32_ucmpq512_mask((lanes_i64)x - low, (lanes_i64){0} + (high - low), 1, -1);
}
INL lanes_f32 inverse_root_f32(lanes_f32 x) { return __builtin_ia32_rsqrt14ps512_mask(x, x, -1); }
INL lanes_f64 inverse_root_f64(lanes_f64 x) { return __builtin_ia32_rsqrt14pd512_mask(x, x, -1); }
INL lanes_f32 hardware_root_f32(lanes_f32 x) { return __builtin_ia32_sqrtps512_mask(x, x, -1, 4); }
INL lanes_f64 hardware_root_f64(lanes_f64 x) { return __builtin_ia32_sqrtpd512_mask(x, x, -1, 4); }
#define DEFINE_ROOTS(T, STEPS)                                                                                       \
    INL lanes_##T sqrt_lanes_##T(lanes_##T x)                                                                        \
    {                                                                                                                \
        lane_mask_##T within = within_##T(x);                                                                        \
        lanes_##T y = inverse_root_##T(x), g = x * y, h = y * (T)0.5;                                                \
        _Pragma("GCC unroll 2") for (int k = 0; k < STEPS; k++)                                                      \
        {                                                                                                            \
            lanes_##T residual = FMA(-g, h, ALL_##T(0.5));                                                           \
            g = FMA(g, residual, g), h = FMA(h, residual, h);                                                        \
        }                                                                                                            \
        g = FMA(FMA(-g, g, x), h, g);                                                                                \
        return __builtin_expect(within == (lane_mask_##T)-1, 1) ? g : choose_##T(within, g, hardware_root_##T(x));   \
    }                                                                                                                \
    INL lanes_##T rsqrt_lanes_##T(lanes_##T x)                                                                       \
    {                                                                                                                \
        lane_mask_##T within = within_##T(x);                                                                        \
        lanes_##T y = inverse_root_##T(x);                                                                           \
        _Pragma("GCC unroll 2") for (int k = 0; k < STEPS; k++)                                                      \
        {                                                                                                            \
            lanes_##T product = x * y, residual = FMA(-product, y, ALL_##T(1));                                      \
            if (k == STEPS - 1) /* what the product's rounding lost */                                               \
                residual = FMA(-FMA(x, y, -product), y, residual);                                                   \
            y = FMA(y * (T)0.5, residual, y);                                                                        \
        }                                                                                                            \
        return __builtin_expect(within == (lane_mask_##T)-1, 1) ? y : choose_##T(within, y, 1 / hardware_root_##T(x)); \
    }
DEFINE_ROOTS(f32, 1)
DEFINE_ROOTS(f64, 2)

/* ---- sine and cosine, up to TRIG_LIMIT ---------------------------------------------------------------------------------------- */

/* x = n pi / 8 + r: the sine of n pi / 8 is a table of 16 around the circle, the cosine the same four places on, so that no sign and no choice of a polynomial is left:
 * sin(n pi / 8) + (cos(n pi / 8) sin(r) + sin(n pi / 8) (cos(r) - 1)). n times the first part of pi leaves x exactly; lo is what the product by
 * the second part and the difference lose, which is most of r next to a zero. */
#define PI1_f32 0x1.921fb6p1f
#define PI2_f32 -0x1.777a5cp-24f
#define PI3_f32 -0x1.ee59dap-49f
#define PI1_f64 0x1.921fb54442d18p1
#define PI2_f64 0x1.1a62633145c07p-53
#define PI3_f64 -0x1.f1976b7ed8fbcp-109
#define DEFINE_SINES(T)                                                                                              \
    INL lanes_##T sine_of_turn_##T(lanes_##T x, int quarter)                                                         \
    {                                                                                                                \
        lanes_##T t = FMA(x, ALL_##T(0x1.45f306dc9c883p+1), ALL_##T(SHIFTER_##T)), n = t - SHIFTER_##T;              \
        lanes_i##T i = (lanes_i##T)t + 4 * quarter, j = (lanes_i##T)t + 4 * (quarter + 1);                           \
        lanes_##T near = FMA(n, ALL_##T(-PI1_##T / 8), x), second = n * (PI2_##T / 8), r = near - second;            \
        lanes_##T second_lo = FMA(n, ALL_##T(PI2_##T / 8), -second), lost = (near - r) - second, square = r * r;     \
        lanes_##T lo = FMA(n, ALL_##T(-PI3_##T / 8), lost - second_lo);                                              \
        lanes_##T sine = look_up_##T(sines_##T, i), cosine = look_up_##T(sines_##T, j), fourth = square * square;    \
        lanes_##T rest = FMA(square * r, poly_sine_rest_lanes_##T(square, fourth), lo);                              \
        lanes_##T less = square * poly_cosine_rest_lanes_##T(square, fourth);                                        \
        return sine + FMA(cosine, r, FMA(cosine, rest, sine * less));                                                \
    }                                                                                                                \
    INL lanes_##T sin_lanes_##T(lanes_##T x)                                                                         \
    {                                                                                                                \
        lanes_i##T negative = (lanes_i##T)x & (lanes_i##T)ALL_##T(-0.0); /* -0 has a sign, too */                    \
        return (lanes_##T)((lanes_i##T)sine_of_turn_##T(abs_lanes_##T(x), 0) ^ negative);                            \
    }                                                                                                                \
    INL lanes_##T cos_lanes_##T(lanes_##T x) { return sine_of_turn_##T(x, 1); }
DEFINE_SINES(f32)
DEFINE_SINES(f64)

#endif
#endif
