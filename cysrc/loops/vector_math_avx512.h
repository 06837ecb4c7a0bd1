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

/* ---- exponentials: (1 + fraction) 2^n ------------------------------------------------------------------------------------ */

#define LOG2E_f32 0x1.715476p0f
#define LN2_HI_f32 0x1.62e4p-1f
#define LN2_LO_f32 0x1.7f7d1cp-20f
#define LOG2E_f64 0x1.71547652b82fep0
#define LN2_HI_f64 0x1.62e42fee00000p-1
#define LN2_LO_f64 0x1.a39ef35793c76p-33

#define DEFINE_EXPONENTIALS(T, LOWEST, HIGHEST, LOWEST2, HIGHEST2)                                                   \
    typedef struct { lanes_##T fraction, n; } power_##T;                                                             \
    /* of x, and of x + lo, within the limits of exp */                                                              \
    INL power_##T exp_power_##T(lanes_##T x)                                                                         \
    {                                                                                                                \
        lanes_##T n = FMA(x, ALL_##T(LOG2E_##T), ALL_##T(SHIFTER_##T)) - SHIFTER_##T;                                \
        lanes_##T r = FMA(n, ALL_##T(-LN2_LO_##T), FMA(n, ALL_##T(-LN2_HI_##T), x));                                 \
        lanes_##T square = r * r;                                                                                    \
        return (power_##T){FMA(square, poly_exp_lanes_##T(r, square), r), n};                                        \
    }                                                                                                                \
    INL power_##T exp_power_of_pair_##T(lanes_##T x, lanes_##T lo)                                                   \
    {                                                                                                                \
        lanes_##T n = FMA(x, ALL_##T(LOG2E_##T), ALL_##T(SHIFTER_##T)) - SHIFTER_##T;                                \
        lanes_##T r = FMA(n, ALL_##T(-LN2_HI_##T), x) + FMA(n, ALL_##T(-LN2_LO_##T), lo);                            \
        lanes_##T square = r * r;                                                                                    \
        return (power_##T){FMA(square, poly_exp_lanes_##T(r, square), r), n};                                        \
    }                                                                                                                \
    INL lanes_##T exp_lanes_##T(lanes_##T x)                                                                         \
    {                                                                                                                \
        power_##T e = exp_power_##T(lower_##T(ALL_##T(HIGHEST), higher_##T(ALL_##T(LOWEST), x)));                    \
        return scale_##T(1 + e.fraction, e.n);                                                                       \
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

/* max(x, 0) less |x| P(X > |x|) of a standard normal X; that term is e^(-x^2 / 2) times pieces; NaN at -inf, as PyTorch's formula gives */
INL lanes_f32 gelu_lanes_f32(lanes_f32 x)
{
    lanes_f32 a = lower_f32(ALL_f32(14.5f), abs_lanes_f32(x)), square = a * a, lo = FMA(a, a, -square);
    power_f32 e = exp_power_of_pair_f32(square * -0.5f, lo * -0.5f);
    lanes_i32 i = piece_of(a);
    lanes_f32 t = a - look_up(tail_pieces[0], i), p = FMA(piece_slope(tail_pieces, i, t), t, look_up(tail_pieces[1], i));
    lanes_f32 term = scale_f32(FMA(p, e.fraction, p), e.n);
    lanes_f32 y = higher_f32((lanes_f32){0}, x) - term;
    return FMA(lower_f32(ALL_f32(1), x), (lanes_f32){0}, y);
}
/* the same to 2^-15, for what is rounded to a half type */
INL lanes_f32 gelu_half(lanes_f32 x)
{
    lanes_f32 a = lower_f32(ALL_f32(14.5f), abs_lanes_f32(x)), square = a * a, log2_of_power = square * (-0.5f * LOG2E_f32);
    lanes_f32 n = (log2_of_power + SHIFTER_f32) - SHIFTER_f32, r = log2_of_power - n;
    lanes_i32 i = piece_of(a);
    lanes_f32 t = a - look_up(tail_half_pieces[0], i);
    lanes_f32 p = look_up(tail_half_pieces[PIECES_HALF_DEGREE + 1], i);
    _Pragma("GCC unroll 4") for (int k = PIECES_HALF_DEGREE; k > 0; k--) p = FMA(p, t, look_up(tail_half_pieces[k], i));
    lanes_f32 y = higher_f32((lanes_f32){0}, x) - scale_f32(p * poly_exp2_half_lanes_f32(r, r * r), n);
    return FMA(lower_f32(ALL_f32(1), x), (lanes_f32){0}, y);
}
INL lanes_f32 gelu_f16_lanes_f32(lanes_f32 x) { return gelu_half(x); }
INL lanes_f32 gelu_bf16_lanes_f32(lanes_f32 x) { return gelu_half(x); }

#endif
#endif
