/* Second half of the real functions: trigonometric, inverse, hyperbolic, powers, remainders, special functions.
 * The double versions are written out; float versions that are not hot evaluate the double one and round once, which
 * keeps them within 0.51 ulp and vectorised at half width. Included by vector_math.h. */
#ifndef TRT_VECTOR_MATH_SPECIAL_H
#define TRT_VECTOR_MATH_SPECIAL_H

#define PI_HI 0x1.921fb54442d18p+1
#define PI_LO 0x1.1a62633145c07p-53
#define HALF_PI_HI 0x1.921fb54442d18p+0
#define HALF_PI_LO 0x1.1a62633145c07p-54
#define NAN_f64 __builtin_nan("")
#define INF_f64 __builtin_inf()
#define NAN_f32 __builtin_nanf("")
#define INF_f32 __builtin_inff()

/* ---- sin, cos, tan ------------------------------------------------------------------------------------------------ */

/* x = n pi / 2 + r + lo with |r| <= pi / 4; odd tells n's lowest bit, n2 its second one in the sign bit's place */
typedef struct { f64 r, lo, t; b8 odd; } quarter_turn;

INL quarter_turn reduce_f64(f64 x)
{
    f64 t = fma_f64(x, 0x1.45f306dc9c883p-1, SHIFTER_f64), n = t - SHIFTER_f64;
    /* pi / 2 in three 33-bit parts, whose products with n are exact, and a rest: 150 bits, so that even the double
     * closest to a multiple keeps its relative accuracy */
    f64 r0 = fma_f64(n, -0x1.921fb544p+0, x);
    f64 w1 = (n * 0x1.0b4611a6p-34), r1 = r0 - w1, e1 = (r0 - r1) - w1;
    f64 w2 = (n * 0x1.3198a2ep-69), r2 = r1 - w2, e2 = (r1 - r2) - w2;
    f64 rest = fma_f64(n, -0x1.b839a252049c1p-104, e1 + e2);
    f64 r = r2 + rest, half = fma_f64(n, 0.5, SHIFTER_f64) - SHIFTER_f64;
    quarter_turn q = {r, (r2 - r) + rest, t, (n - 2 * half) != 0};
    return q;
}

INL f64 sin_kernel_f64(f64 r, f64 lo)
{
    f64 z = (r * r);
    return r + fma_f64((z * r), poly_sin_f64(z), fma_f64((-0.5 * z), lo, lo));
}

INL f64 cos_kernel_f64(f64 r, f64 lo)
{
    f64 z = (r * r), half = (0.5 * z), w = 1 - half;
    return w + (((1 - w) - half) + fma_f64((z * z), poly_cos_f64(z), -(r * lo)));
}

INL f64 flip_sign_f64(f64 y, u64 n) { return from_bits_f64(bits_f64(y) ^ (n & 2u) << 62); }
INL f32 flip_sign_f32(f32 y, u32 n) { return from_bits_f32(bits_f32(y) ^ (n & 2u) << 30); }

INL f64 sin_f64(f64 x)
{
    quarter_turn q = reduce_f64(x);
    f64 s = sin_kernel_f64(q.r, q.lo), c = cos_kernel_f64(q.r, q.lo);
    return x == 0 ? x : flip_sign_f64(q.odd ? c : s, bits_f64(q.t));
}

INL f64 cos_f64(f64 x)
{
    quarter_turn q = reduce_f64(x);
    f64 s = sin_kernel_f64(q.r, q.lo), c = cos_kernel_f64(q.r, q.lo);
    return flip_sign_f64(q.odd ? s : c, bits_f64(q.t) + 1);
}

INL f64 tan_f64(f64 x)
{
    quarter_turn q = reduce_f64(x);
    f64 s = sin_kernel_f64(q.r, q.lo), c = cos_kernel_f64(q.r, q.lo);
    f64 y = (q.odd ? -c : s) / (q.odd ? s : c);
    return x == 0 ? x : y;
}

/* reduced in double, evaluated in float */
typedef struct { f32 r, lo; u32 n; } quarter_turn_f32;

INL quarter_turn_f32 reduce_f32(f32 x)
{
    f64 wide = (f64)x, t = fma_f64(wide, 0x1.45f306dc9c883p-1, SHIFTER_f64), n = t - SHIFTER_f64;
    f64 r = fma_f64(n, -0x1.0b4611a626331p-34, fma_f64(n, -0x1.921fb544p+0, wide));
    quarter_turn_f32 q = {(f32)r, (f32)(r - (f64)(f32)r), (u32)bits_f64(t)};
    return q;
}

INL f32 sin_kernel_f32(f32 r) { f32 z = (r * r); return fma_f32((z * r), poly_sin_f32(z), r); }
INL f32 cos_kernel_f32(f32 r)
{
    f32 z = (r * r);
    return fma_f32(z, -0.5f, 1.0f) + ((z * z) * poly_cos_f32(z));
}

INL f32 sin_f32(f32 x)
{
    quarter_turn_f32 q = reduce_f32(x);
    f32 s = sin_kernel_f32(q.r), c = cos_kernel_f32(q.r);
    return x == 0 ? x : flip_sign_f32((q.n & 1u) ? c : s, q.n);
}

INL f32 cos_f32(f32 x)
{
    quarter_turn_f32 q = reduce_f32(x);
    f32 s = sin_kernel_f32(q.r), c = cos_kernel_f32(q.r);
    return flip_sign_f32((q.n & 1u) ? s : c, q.n + 1u);
}

INL f32 tan_f32(f32 x)
{
    quarter_turn_f32 q = reduce_f32(x);
    f32 z = (q.r * q.r), t = q.r + fma_f32((q.r * z), poly_tan_f32(z), q.lo);
    f32 y = ((q.n & 1u) ? -1.0f : t) / ((q.n & 1u) ? t : 1.0f);
    return x == 0 ? x : y;
}

/* sin(pi x) / (pi x), reduced exactly: 0 at every integer */
INL f64 sinc_f64(f64 x)
{
    f64 n = round_f64(x), r = x - n;
    f64 odd = n - 2 * round_f64(0.5 * n);
    f64 a = (r * PI_HI), lo = fma_f64(r, PI_LO, product_error_f64(r, PI_HI, a));
    /* |a| <= pi / 2: one more quarter turn where |a| > pi / 4 */
    b8 outer = abs_f64(r) > 0.25;
    f64 d = abs_f64(r) - 0.5, b = (d * PI_HI), b_lo = fma_f64(d, PI_LO, product_error_f64(d, PI_HI, b));
    f64 s = outer ? copysign_f64(cos_kernel_f64(b, b_lo), r) : sin_kernel_f64(a, lo);
    s = odd != 0 ? -s : s;
    f64 w = (x * PI_HI), w_lo = fma_f64(x, PI_LO, product_error_f64(x, PI_HI, w)), y = s / w;
    f64 z = (a * a);
    y = outer || n != 0 ? y - y * (w_lo / w) : fma_f64(z, poly_sin_f64(z), 1); /* sin(a) / a directly */
    y = abs_f64(x) > 0x1p60 ? 0.0 : y; /* an even integer */
    y = x != x ? x : y;
    return y;
}

/* ---- inverse trigonometric ------------------------------------------------------------------------------------------- */

INL f64 asin_f64(f64 x)
{
    f64 a = abs_f64(x);
    b8 big = a > 0.5;
    f64 z = big ? (1 - a) * 0.5 : (a * a), s = big ? sqrt_f64(z) : a;
    f64 c = big ? (z - (s * s) - product_error_f64(s, s, (s * s))) / (s + s) : 0.0;
    c = z > 0 ? c : 0.0;
    f64 tail = fma_f64((s * z), poly_asin_f64(z), c);
    f64 y = big ? HALF_PI_HI - (2 * s - (HALF_PI_LO - 2 * tail)) : s + tail;
    return a <= 1 ? copysign_f64(y, x) : NAN_f64;
}

INL f64 acos_f64(f64 x)
{
    f64 a = abs_f64(x);
    b8 big = a > 0.5;
    f64 z = big ? (1 - a) * 0.5 : (a * a), s = big ? sqrt_f64(z) : x;
    f64 c = big ? (z - (s * s) - product_error_f64(s, s, (s * s))) / (s + s) : 0.0;
    c = z > 0 ? c : 0.0;
    f64 tail = fma_f64((s * z), poly_asin_f64(z), c);
    f64 outer = x < 0 ? PI_HI - (2 * s - (PI_LO - 2 * tail)) : 2 * (s + tail);
    f64 y = big ? outer : HALF_PI_HI - (s - (HALF_PI_LO - tail));
    return a <= 1 ? y : NAN_f64;
}

INL f32 asin_f32(f32 x)
{
    f32 a = abs_f32(x);
    b8 big = a > 0.5f;
    f32 z = big ? (1 - a) * 0.5f : (a * a), s = big ? sqrt_f32(z) : a;
    f32 tail = (s * z) * poly_asin_f32(z);
    f32 y = big ? ((f32)HALF_PI_HI - 2 * s) - (2 * tail - (f32)(HALF_PI_HI - (f32)HALF_PI_HI)) : s + tail;
    return a <= 1 ? copysign_f32(y, x) : NAN_f32;
}

INL f32 acos_f32(f32 x)
{
    f32 a = abs_f32(x);
    b8 big = a > 0.5f;
    f32 z = big ? (1 - a) * 0.5f : (a * a), s = big ? sqrt_f32(z) : x;
    f32 t = fma_f32((s * z), poly_asin_f32(z), s);
    f32 outer = x < 0 ? (f32)PI_HI - (2 * t - (f32)(PI_HI - (f32)PI_HI)) : 2 * t;
    f32 y = big ? outer : (f32)HALF_PI_HI - (t - (f32)(HALF_PI_HI - (f32)HALF_PI_HI));
    return a <= 1 ? y : NAN_f32;
}

/* atan(low / high), 0 <= low <= high: above tan(pi / 8) by the difference with pi / 4 */
INL f64 atan_ratio(f64 low, f64 high)
{
    b8 big = low > 0.41421356237309503 * high;
    f64 t = (big ? low - high : low) / (big ? low + high : high), z = (t * t);
    f64 y = fma_f64((t * z), poly_atan_f64(z), big ? HALF_PI_LO * 0.5 : 0.0);
    return big ? HALF_PI_HI * 0.5 + (t + y) : t + y;
}

INL f64 atan_f64(f64 x)
{
    f64 a = abs_f64(x);
    b8 swap = a > 1;
    f64 r = atan_ratio(swap ? 1 : a, swap ? a : 1);
    return copysign_f64(swap ? HALF_PI_HI - (r - HALF_PI_LO) : r, x);
}

INL f64 atan2_f64(f64 y, f64 x)
{
    f64 ax = abs_f64(x), ay = abs_f64(y);
    b8 swap = ay > ax;
    f64 high = swap ? ay : ax, low = swap ? ax : ay;
    b8 diagonal = low == INF_f64;
    low = diagonal ? 1 : low;
    high = diagonal ? 1 : high;
    f64 scale = high > 0x1p1000 ? 0.25 : 1.0;
    f64 r = atan_ratio(low * scale, high == 0 ? 1 : high * scale);
    r = swap ? HALF_PI_HI - (r - HALF_PI_LO) : r;
    /* the sign bit as a number: -0 turns by half a circle too */
    r = copysign_f64(1, x) < 0 ? PI_HI - (r - PI_LO) : r;
    r = copysign_f64(r, y);
    r = x != x ? x : r;
    return y != y ? y : r;
}

/* ---- hyperbolic ---------------------------------------------------------------------------------------------------------- */

INL f64 sinh_f64(f64 x)
{
    f64 a = abs_f64(x), m = expm1_f64(a > 25 ? 25 : a);
    scaled_f64 e = exp_scaled_f64(a, 0);
    f64 large = e.mantissa * e.s1 * (0.5 * e.s2), small = 0.5 * (m + m / (m + 1));
    return x != x ? x : copysign_f64(a > 22 ? large : small, x);
}

INL f64 cosh_f64(f64 x)
{
    scaled_f64 e = exp_scaled_f64(abs_f64(x), 0);
    f64 half = e.mantissa * e.s1 * (0.5 * e.s2);
    return half + 0.25 / half;
}

INL f32 sinh_f32(f32 x)
{
    f32 a = abs_f32(x), z = (a * a), small = fma_f32((a * z), poly_sinh_f32(z), a);
    scaled_f32 e = exp_scaled_f32(a, 0);
    f32 half = e.mantissa * e.s1 * (0.5f * e.s2);
    return x != x ? x : copysign_f32(a < 1 ? small : half - 0.25f / half, x);
}

INL f32 cosh_f32(f32 x)
{
    scaled_f32 e = exp_scaled_f32(abs_f32(x), 0);
    f32 half = e.mantissa * e.s1 * (0.5f * e.s2);
    return half + 0.25f / half;
}

#define LN2_f64 0.69314718055994530942

INL f64 asinh_f64(f64 x)
{
    f64 a = abs_f64(x);
    b8 huge = a > 0x1p500;
    f64 square = (a * a);
    f64 t = huge ? a : a + square / (1 + sqrt_f64(1 + square));
    return copysign_f64(log1p_f64(t) + (huge ? LN2_f64 : 0.0), x);
}

INL f64 acosh_f64(f64 x)
{
    b8 huge = x > 0x1p500;
    f64 t = x - 1;
    f64 y = log1p_f64(huge ? x : t + sqrt_f64(fma_f64(t, t, 2 * t))) + (huge ? LN2_f64 : 0.0);
    return x >= 1 ? y : NAN_f64;
}

INL f64 atanh_f64(f64 x)
{
    f64 a = abs_f64(x), twice = 2 * a;
    f64 t = a < 0.5 ? twice + twice * a / (1 - a) : twice / (1 - a);
    return a <= 1 ? copysign_f64(0.5 * log1p_f64(t), x) : NAN_f64;
}

/* below 0.5 an odd polynomial; above, the logarithm of a quotient of at least 3 */
INL f32 atanh_f32(f32 x)
{
    f32 a = abs_f32(x), z = (a * a), small = fma_f32((a * z), poly_atanh_f32(z), a);
    f32 y = a < 0.5f ? small : 0.5f * log_f32((1 + a) / (1 - a));
    return a <= 1 ? copysign_f32(y, x) : NAN_f32;
}

/* ---- roots, logarithms, powers -------------------------------------------------------------------------------------------- */

INL f64 rsqrt_f64(f64 x)
{
    f64 root = sqrt_f64(x), y = 1 / root;
    /* one correction step: y's error is what 1 - x y^2 says */
    f64 yy = (root * y), error = (1 - yy) - product_error_f64(root, y, yy);
    f64 rest = x - (root * root) - product_error_f64(root, root, (root * root));
    f64 better = fma_f64(y, error - 0.5 * rest * y * y, y);
    return abs_f64(x) > 0 && x < INF_f64 ? better : y;
}

/* log2 and log10: log(m) = hi + lo with hi short, so that its product with the high part of the constant is exact */
INL f64 log_scaled_f64(f64 x, f64 inverse_hi, f64 inverse_lo, f64 step_hi, f64 step_lo)
{
    split_f64 p = split_exponent_f64(x);
    f64 f = p.m - 1, s = f / (2 + f), z = (s * s), half = (0.5 * f * f);
    f64 hi = from_bits_f64(bits_f64(f - half) & 0xffffffff00000000u);
    f64 lo = ((f - hi) - half) + (s * fma_f64(z, poly_log_f64(z), half));
    f64 large = p.k * step_hi, product = hi * inverse_hi, sum = large + product;
    f64 rest = fma_f64(lo + hi, inverse_lo, fma_f64(lo, inverse_hi, fma_f64(p.k, step_lo, (large - sum) + product)));
    return log_specials_f64(x, sum + rest);
}

INL f64 log2_f64(f64 x) { return log_scaled_f64(x, 0x1.7154765200000p+0, 0x1.705fc2eefa200p-33, 1.0, 0.0); }
INL f64 log10_f64(f64 x)
{
    return log_scaled_f64(x, 4.34294481878168880939e-01, 2.50829467116452752298e-11, 3.01029995663611771306e-01,
                          3.69423907715893078616e-13);
}

/* log(m) times the constant in two parts, added to what the exponent gives */
INL f32 log_scaled_f32(f32 x, f32 inverse_hi, f32 inverse_lo, f32 step_hi, f32 step_lo)
{
    split_f32 p = split_exponent_f32(x);
    f32 t = log_assemble_f32(p.m - 1, 0, 0);
    return log_specials_f32(x, fma_f32(p.k, step_hi, fma_f32(t, inverse_hi, fma_f32(t, inverse_lo, (p.k * step_lo)))));
}

INL f32 log2_f32(f32 x) { return log_scaled_f32(x, 0x1.715476p+0f, 0x1.4ae0cp-26f, 1.0f, 0.0f); }
INL f32 log10_f32(f32 x) { return log_scaled_f32(x, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f, 0x1.344p-2f, 0x1.3509f8p-18f); }

/* What C says of powers beyond |x|^y, for x and y of either width as doubles */
INL f64 pow_specials(f64 x, f64 y, f64 magnitude)
{
    f64 half = 0.5 * y;
    b8 integer = round_f64(y) == y, odd = integer && round_f64(half) != half;
    f64 r = (integer || x >= 0 || abs_f64(x) == INF_f64) ? magnitude : NAN_f64;
    r = odd ? copysign_f64(r, x) : r;
    r = abs_f64(x) == 1 && abs_f64(y) == INF_f64 ? 1 : r;
    r = x != x || y != y ? NAN_f64 : r;
    return x == 1 || y == 0 ? 1 : r;
}

/* log2|x| as hi + lo to 2^-66, then 2^(y hi + y lo) */
INL f64 pow_f64(f64 x, f64 y)
{
    f64 a = abs_f64(x);
    split_f64 p = split_exponent_f64(a);
    f64 f = p.m - 1, d = 2 + f, d_lo = f - (d - 2), inverse = 1 / d;
    f64 s = (f * inverse), sd = (s * d);
    f64 s_lo = (((f - sd) - product_error_f64(s, d, sd)) - s * d_lo) * inverse;
    f64 z = (s * s), z_lo = fma_f64(2 * s, s_lo, product_error_f64(s, s, z));
    /* log2(m) = s (A + B z + z^2 Q(z)), A = 2 / ln 2, B = A / 3 */
    f64 t = (z * 0x1.ec709dc3a03fdp-1);
    f64 t_lo = fma_f64(z, 0x1.d27f05548af0cp-55, fma_f64(z_lo, 0x1.ec709dc3a03fdp-1,
                       product_error_f64(z, 0x1.ec709dc3a03fdp-1, t)));
    t_lo = fma_f64((z * z), poly_log2_remainder_f64(z), t_lo);
    f64 u = 0x1.71547652b82fep+1 + t, u_lo = (0x1.71547652b82fep+1 - u) + t + (t_lo + 0x1.777d0ffda0d24p-55);
    f64 v = (s * u), v_lo = fma_f64(s, u_lo, fma_f64(s_lo, u, product_error_f64(s, u, v)));
    f64 high = p.k + v, low = ((p.k - high) + v) + v_lo;
    high = a == 0 ? -INF_f64 : (a == INF_f64 ? INF_f64 : high);
    f64 e = (y * high);
    f64 e_lo = fma_f64(y, low, product_error_f64(y, high, e));
    e_lo = abs_f64(e) < 2000 ? e_lo : 0;
    e = e > 1100 ? 1100 : e;
    e = e < -1100 ? -1100 : e;
    f64 shifted = e + SHIFTER_f64, r = (e - (shifted - SHIFTER_f64)) + e_lo;
    scaled_f64 power = scale_pair_f64(r * poly_exp2_f64(r), shifted);
    return pow_specials(x, y, power.mantissa * power.s1 * power.s2);
}

/* in double: log2 to 2^-36 and 2^t to 2^-29 leave only the final rounding visible */
INL f32 pow_f32(f32 x, f32 y)
{
    f64 a = abs_f64((f64)x), wide = (f64)y;
    split_f64 p = split_exponent_f64(a);
    f64 s = (p.m - 1) / (p.m + 1);
    f64 l = fma_f64(s, poly_log2_short_f64((s * s)), p.k);
    l = a == 0 ? -INF_f64 : (a == INF_f64 ? INF_f64 : l);
    f64 e = (wide * l);
    e = e > 300 ? 300 : e;
    e = e < -300 ? -300 : e;
    f64 t = e + SHIFTER_f64, r = e - (t - SHIFTER_f64);
    return (f32)pow_specials((f64)x, wide, poly_exp2_short_f64(r) * power_of_two_f64(t));
}

INL f64 hypot_f64(f64 x, f64 y)
{
    f64 ax = abs_f64(x), ay = abs_f64(y), high = ax > ay ? ax : ay, low = ax > ay ? ay : ax;
    f64 scale = high > 0x1p500 ? 0x1p-600 : (high < 0x1p-400 ? 0x1p600 : 1.0);
    f64 back = high > 0x1p500 ? 0x1p600 : (high < 0x1p-400 ? 0x1p-600 : 1.0);
    f64 h = high * scale, l = low * scale;
    f64 r = sqrt_f64(fma_f64(h, h, (l * l))) * back;
    r = x != x || y != y ? NAN_f64 : r;
    return ax == INF_f64 || ay == INF_f64 ? INF_f64 : r;
}

INL f32 hypot_f32(f32 x, f32 y)
{
    f64 r = sqrt_f64(fma_f64((f64)x, (f64)x, ((f64)y * (f64)y)));
    return abs_f32(x) == __builtin_inff() || abs_f32(y) == __builtin_inff() ? __builtin_inff() : (f32)r;
}

/* ---- remainders ------------------------------------------------------------------------------------------------------------ */

/* fmod, remainder and floor_divide (double only) are exact where the quotient is within QUOTIENT_LIMIT; a caller that
 * meets larger ones uses the any_ functions, which leave them to the C library. Infinite and zero divisors count as
 * beyond: quotient_within looks at both operands. Without FMA no quotient of doubles is within. */
INL b8 quotient_within_f32(f32 x, f32 y) { return abs_f32(x) < abs_f32(y) * 0x1p27f && abs_f32(y) < INF_f32; }
#ifdef __FMA__
INL b8 quotient_within_f64(f64 x, f64 y) { return (abs_f64(x) < abs_f64(y) * 0x1p51) & (abs_f64(y) < INF_f64); }
#else
INL b8 quotient_within_f64(f64 x, f64 y) { (void)x; (void)y; return 0; }
#endif

/* in double the quotient of two floats truncates correctly, and its product with y is exact */
INL f32 fmod_f32(f32 x, f32 y)
{
    f64 q = trunc_f64((f64)x / (f64)y);
    return copysign_f32((f32)((f64)x - q * (f64)y), x);
}

/* the quotient may have rounded up to the next integer: then the rest has the other sign */
INL f64 fmod_f64(f64 x, f64 y)
{
    f64 r = fma_f64(-trunc_f64(x / y), y, x);
    r = (r < 0) != (x < 0) && r != 0 ? r + copysign_f64(y, x) : r;
    return copysign_f64(r, x);
}

#define DEFINE_REMAINDERS(T)                                                                                         \
    INL T div_trunc_##T(T x, T y) { return trunc_##T(x / y); }                                                       \
    INL T remainder_of_##T(T m, T y) { return (m != 0) & ((y < 0) != (m < 0)) ? m + y : m; } /* y's sign, as in Python */ \
    INL T remainder_##T(T x, T y) { return remainder_of_##T(fmod_##T(x, y), y); }                                    \
    INL T any_fmod_##T(T x, T y) { return quotient_within_##T(x, y) ? fmod_##T(x, y) : (T)fmod((f64)x, (f64)y); }    \
    INL T any_remainder_##T(T x, T y) { return remainder_of_##T(any_fmod_##T(x, y), y); }
DEFINE_REMAINDERS(f32)
DEFINE_REMAINDERS(f64)

/* PyTorch's steps from the remainder m */
INL f64 floor_quotient(f64 x, f64 y, f64 m)
{
    f64 q = (x - m) / y, y0 = x / y;
    q = (m != 0) & ((y < 0) != (m < 0)) ? q - 1 : q;
    f64 whole = floor_f64(q);
    whole = q - whole > 0.5 ? whole + 1 : whole;
    return y == 0 ? y0 : (q != 0 ? whole : copysign_f64(0, y0));
}
INL f64 floor_divide_f64(f64 x, f64 y) { return floor_quotient(x, y, fmod_f64(x, y)); }
INL f64 any_floor_divide_f64(f64 x, f64 y) { return floor_quotient(x, y, any_fmod_f64(x, y)); }

/* In double no quotient of floats rounds to an integer that it is not, so that floor is right at once. */
INL f32 floor_divide_f32(f32 x, f32 y)
{
    f64 q = (f64)x / (f64)y, whole = floor_f64(q);
    whole = (abs_f32(y) == INF_f32) & (((x < 0) & (y > 0)) | ((x > 0) & (y < 0))) ? -1 : whole;
    whole = (abs_f32(x) == INF_f32) & (y != 0) ? NAN_f64 : whole;
    return (f32)(y == 0 ? q : whole);
}
INL f32 any_floor_divide_f32(f32 x, f32 y) { return floor_divide_f32(x, y); }

/* ---- special functions ---------------------------------------------------------------------------------------------------- */

/* what 1 / d lost, relative to it, where d = fl(a + shift) and a >= 0 */
INL f64 reciprocal_error_f64(f64 a, f64 shift, f64 d, f64 inverse)
{
    f64 product = (d * inverse);
    return (1 - product) - product_error_f64(d, inverse, product) - (a - (d - shift)) * inverse;
}

/* p z + c, whose rounding error is added to that of p */
typedef struct { f64 value, error; } summed_f64;
INL summed_f64 horner_step(summed_f64 p, f64 z, f64 c)
{
    f64 t = (p.value * z), s = t + c, part = s - t;
    summed_f64 r = {s, fma_f64(p.error, z, product_error_f64(p.value, z, t) + ((t - (s - part)) + (c - part)))};
    return r;
}

/* Near 0 1 - erf. Else e^-x^2 with the square in two parts (its rounding error would be amplified by x^2), times a
 * polynomial in u = (x - A) / (x + A) over x + A, all before the scale that may underflow. The division's error enters
 * twice: the polynomial's relative slope is about -0.5. */
INL f64 erfc_f64(f64 x)
{
    f64 a = abs_f64(x);
    f64 near_zero = 1 - fma_f64(x, poly_erf_f64((a * a)), x);
    b8 small = a < 0.5;
    a = a > 28.0 ? 28.0 : a;
    f64 square = (a * a), lo = product_error_f64(a, a, square);
    const f64 shift = 1.6;
    f64 d = a + shift, inverse = 1 / d, above = a - shift, u = (above * inverse);
    f64 u_lo = fma_f64((a - above) - shift, inverse, product_error_f64(above, inverse, u));
    f64 correction = fma_f64(reciprocal_error_f64(a, shift, d, inverse), fma_f64(u, -0.5, 1), -0.5 * u_lo);
    summed_f64 p = {poly_erfc_f64(u), 0};
    p = horner_step(horner_step(p, u, ERFC_C1), u, ERFC_C0);
    scaled_f64 e = exp_scaled_f64(-square, -lo);
    f64 q = p.value * inverse, error = fma_f64(p.error, inverse, product_error_f64(p.value, inverse, q));
    f64 y = (q + fma_f64(q, fma_f64(e.mantissa, correction, e.fraction), error)) * e.s1 * e.s2;
    y = x < 0 ? 2 - y : y;
    return small ? near_zero : y;
}

/* in double with polynomials of float accuracy, as pow_f32 */
INL f64 erfc_short(f64 x)
{
    f64 a = abs_f64(x);
    a = a > 10.2 ? 10.2 : a;
    f64 inverse = 1 / (a + 1.6), e = (a * a) * -0x1.71547652b82fep0, t = e + SHIFTER_f64, r = e - (t - SHIFTER_f64);
    f64 y = poly_exp2_short_f64(r) * power_of_two_f64(t) * (poly_erfc_short_f64(fma_f64(-3.2, inverse, 1)) * inverse);
    return x < 0 ? 2 - y : y;
}
INL f32 erfc_f32(f32 x)
{
    f64 y = erfc_short((f64)x);
    return x != x ? x : (f32)y;
}

/* Modified Bessel function of order 0: below 7.75 a power series in z = x^2 / 4, above e^x / sqrt(x) times a polynomial in 1 / x. For double the last
 * steps of the series and what the rounding of z does (times the derivative, of which two digits suffice) are added. */
INL f64 i0_by(f64 x, b8 careful)
{
    f64 a = abs_f64(x);
    b8 small = a < 7.75;
    f64 z = small ? (a * a) * 0.25 : 0;
    summed_f64 series = {fma_f64(poly_i0_small_f64(z), z, I0_SMALL_C1), 0};
    if (careful) {
        series = horner_step(horner_step(series, z, I0_SMALL_C0), z, 1);
        f64 rounded = small ? product_error_f64(a, a, (a * a)) * 0.25 : 0;
        series.value += fma_f64(rounded * series.value, 1 / (0.5 + sqrt_f64(0.25 + z)), series.error);
    } else {
        series.value = fma_f64(z, fma_f64(series.value, z, I0_SMALL_C0), 1);
    }
    f64 clipped = small ? 7.75 : (a > 800 ? 800 : a);
    scaled_f64 e = exp_scaled_f64(clipped, 0);
    f64 p = poly_i0_large_f64(fma_f64(2 * 7.75, 1 / clipped, -1)), root = sqrt_f64(clipped), q = p / root, lost = 0;
    if (careful) { /* by the division and by the root */
        f64 square = (root * root), back = (q * root);
        lost = (((p - back) - product_error_f64(q, root, back)) - 0.5 * q / root * ((clipped - square) - product_error_f64(root, root, square))) / root;
    }
    f64 far = (q + fma_f64(q, e.fraction, lost)) * e.s1 * e.s2;
    return x != x ? x : (small ? series.value : far);
}
INL f64 i0_f64(f64 x) { return i0_by(x, 1); }
INL f32 i0_f32(f32 x) { return (f32)i0_by((f64)x, 0); }

/* scalar */
INL f64 lgamma_f64(f64 x) { int sign; return lgamma_r(x, &sign); }

/* sum B_2j / (2 j (2 j - 1)) w^(j - 1) of Stirling's formula, w = v^-2 <= 1 / 64 */
INL f64 stirling_rest(f64 w)
{
    f64 p = fma_f64(w, -691.0 / 360360, 1.0 / 1188);
    p = fma_f64(w, p, -1.0 / 1680);
    p = fma_f64(w, p, 1.0 / 1260);
    p = fma_f64(w, p, -1.0 / 360);
    return fma_f64(w, p, 1.0 / 12);
}

/* z, ..., z + 7 multiplied through q = z (z + 7): 0 < z < 8 moves up to v = z + 8 */
INL f64 rising_product(f64 q) { return ((q * (q + 6)) * (q + 10)) * (q + 12); }

/* In double for a float: near the roots 1 and 2 a polynomial times both distances; else Stirling's formula, moved up by 8
 * where small. For negative x reflection: log |pi / (x sin(pi x))| - lgamma(-x), in one logarithm with the product. */
INL f32 lgamma_f32(f32 x)
{
    f64 wide = (f64)x, z = abs_f64(wide), q = z * (z + 7);
    b8 low = z < 8, negative = x < 0;
    f64 r = abs_f64(wide - round_f64(wide)), angle = (r > 0.25 ? 0.5 - r : r) * PI_HI;
    f64 sine = r > 0.25 ? cos_kernel_f64(angle, 0) : sin_kernel_f64(angle, 0);
    f64 product = low ? rising_product(q) : 1;
    product = negative ? PI_HI * product / (z * sine) : product;
    f64 v = low ? z + 8 : z, inverse = 1 / v;
    f64 stirling = fma_f64(v - 0.5, log_f64(v), fma_f64(stirling_rest(inverse * inverse), inverse, 0.91893853320467274178 - v));
    f64 y = stirling - log_f64(product);
    y = negative ? -y : y;
    b8 middle = (x > 0.78f) & (x < 2.22f);
    f64 near_roots = (wide - 1) * (wide - 2) * poly_lgamma_f64(middle ? wide - 1.5 : 0) + 0.0; /* no -0 */
    y = middle ? near_roots : y;
    y = (x == 0) | (negative & (r == 0)) | (abs_f32(x) == INF_f32) ? INF_f64 : y;
    return x != x ? x : (f32)y;
}

/* In (1, 2) a polynomial times the distance to the root there, in (0, 1) and (2, 4) steps from it; else log(x) - 1 / (2 x) and a polynomial in 1 / x^2,
 * and for negative x reflection. Poles: PyTorch gives -inf at +0, +inf at -0, NaN at -1, -2 ... */
INL f64 digamma_f64(f64 x)
{
    b8 negative = x < 0;
    f64 z = negative ? 1 - x : x;
    b8 middle = z < 4, below = z < 1;
    f64 inverse = 1 / z, w = inverse * inverse;
    f64 series = log_f64(z) - fma_f64(0.5, inverse, w * poly_digamma_series_f64(middle ? 0 : w));
    f64 r = x - round_f64(x), a = abs_f64(r);
    b8 outer = a > 0.25;
    f64 angle = (outer ? 0.5 - a : a) * PI_HI, s = sin_kernel_f64(angle, 0), c = cos_kernel_f64(angle, 0);
    f64 cotangent = copysign_f64((outer ? s : c) / (outer ? c : s), r);
    f64 t = below ? z + 1 : (z > 3 ? z - 2 : (z > 2 ? z - 1 : z));
    b8 two = z > 3;
    f64 over = two ? 2 * z - 3 : (below ? -1 : (z > 2)), under = two ? (z - 1) * (z - 2) : (below ? z : t), step = over / under;
    f64 product = (step * under), under_lo = two ? product_error_f64(z - 1, z - 2, under) : 0;
    f64 lost = (((over - product) - product_error_f64(step, under, product)) - step * under_lo) / under;
    lost = abs_f64(step) < 0x1p1000 ? lost : 0;
    f64 u = middle ? t - 1.5 : 0;
    summed_f64 slope = {poly_digamma_root_f64(u), 0};
    slope = horner_step(horner_step(slope, u, DIGAMMA_ROOT_C1), u, DIGAMMA_ROOT_C0);
    f64 distance = (t - DIGAMMA_ROOT_HI) - DIGAMMA_ROOT_LO, part = (distance * slope.value);
    f64 near_root = (part + step) + fma_f64(distance, slope.error, lost + product_error_f64(distance, slope.value, part));
    f64 y = (middle ? near_root : series) - (negative ? PI_HI * cotangent : 0);
    y = x == INF_f64 ? x : y;
    y = (negative & (r == 0)) | (x == -INF_f64) ? NAN_f64 : y;
    return x == 0 ? copysign_f64(INF_f64, -x) : y;
}

/* x times a polynomial in w = -log(1 - x^2), and in its root where that is large (M. Giles's split of the range) */
INL f32 erfinv_f32(f32 x)
{
    f32 a = abs_f32(x), w = -log_f32((1 - a) * (1 + a)), s = sqrt_f32(w);
    f32 y = x * (w < 5.0f ? poly_erfinv_f32(w - 2.5f) : poly_erfinv_tail_f32(s - 3.15f));
    return a < 1 ? y : (a == 1 ? copysign_f32(INF_f32, x) : NAN_f32);
}

INL f64 erfinv_f64(f64 x)
{
    f64 a = abs_f64(x), w = -log_f64((1 - a) * (1 + a)), s = sqrt_f64(w);
    f64 far = s < 4 ? poly_erfinv_tail_f64(s - 3.25) : poly_erfinv_end_f64(s - 5.05);
    f64 y = x * (w < 6.25 ? poly_erfinv_f64(w - 3.125) : far);
    return a < 1 ? y : (a == 1 ? copysign_f64(INF_f64, x) : NAN_f64);
}

/* ---- float by way of double ------------------------------------------------------------------------------------------------ */

#define FLOAT_VIA_DOUBLE(name) INL f32 name##_f32(f32 x) { return (f32)name##_f64((f64)x); }
FLOAT_VIA_DOUBLE(sinc)
FLOAT_VIA_DOUBLE(atan)
FLOAT_VIA_DOUBLE(asinh)
FLOAT_VIA_DOUBLE(acosh)
FLOAT_VIA_DOUBLE(digamma)
INL f32 atan2_f32(f32 y, f32 x) { return (f32)atan2_f64((f64)y, (f64)x); }
INL f32 rsqrt_f32(f32 x) { return 1.0f / sqrt_f32(x); }

/* ---- blocks with arguments of any size --------------------------------------------------------------------------------- */

/* y[i] = f(x[i]); elements beyond TRIG_LIMIT are redone by the C library. x and y may be the same block. */
#define DEFINE_TRIG_BLOCK(name, T, LIBRARY)                                                                          \
    static __attribute__((unused)) void name##_block_##T(const T *x, T *y, i64 n)                                    \
    {                                                                                                                \
        T large[256];                                                                                                \
        for (i64 start = 0; start < n; start += 256) {                                                               \
            i64 count = n - start < 256 ? n - start : 256;                                                           \
            const T *xs = x + start;                                                                                 \
            T *ys = y + start;                                                                                       \
            int any = 0;                                                                                             \
            _Pragma("omp simd reduction(| : any)")                                                                   \
            for (i64 i = 0; i < count; i++)                                                                          \
                any |= abs_##T(xs[i]) > (T)TRIG_LIMIT;                                                               \
            if (__builtin_expect(any, 0))                                                                            \
                memcpy(large, xs, (size_t)count * sizeof(T));                                                        \
            _Pragma("omp simd")                                                                                      \
            for (i64 i = 0; i < count; i++)                                                                          \
                ys[i] = name##_##T(xs[i]);                                                                           \
            if (__builtin_expect(any, 0))                                                                            \
                for (i64 i = 0; i < count; i++)                                                                      \
                    if (abs_##T(large[i]) > (T)TRIG_LIMIT)                                                           \
                        ys[i] = (T)LIBRARY((f64)large[i]);                                                           \
        }                                                                                                            \
    }
DEFINE_TRIG_BLOCK(sin, f32, sin)
DEFINE_TRIG_BLOCK(cos, f32, cos)
DEFINE_TRIG_BLOCK(tan, f32, tan)
DEFINE_TRIG_BLOCK(sin, f64, sin)
DEFINE_TRIG_BLOCK(cos, f64, cos)
DEFINE_TRIG_BLOCK(tan, f64, tan)


/* the same for one element at any angle */
#define DEFINE_ANY_ANGLE(name)                                                                                       \
    INL f32 any_##name##_f32(f32 x) { return abs_f32(x) > (f32)TRIG_LIMIT ? (f32)name((f64)x) : name##_f32(x); }      \
    INL f64 any_##name##_f64(f64 x) { return abs_f64(x) > TRIG_LIMIT ? name(x) : name##_f64(x); }
DEFINE_ANY_ANGLE(sin)
DEFINE_ANY_ANGLE(cos)
DEFINE_ANY_ANGLE(tan)

#endif
