/* Special functions without branches, so that the compiler makes vectors of their loops: normal distribution, modified and plain Bessel functions. All in
 * double: float32 by the short polynomials, float64 by the long ones with the rounding errors of the critical steps carried along (`careful`, a
 * constant wherever these functions are inlined). Included by special_math.h; polynomials: tools/vmath_check/fit_special_vector.py. */
#ifndef TRT_SPECIAL_VECTOR_H
#define TRT_SPECIAL_VECTOR_H

#include "special_polynomials.h"

#define SQRT_HALF_HI 0x1.6a09e667f3bcdp-1
#define SQRT_HALF_LO -0x1.bdd3413b26456p-55
#define INV_SQRT_PI 0.56418958354775628695
#define TWO_OVER_PI 0x1.45f306dc9c883p-1
#define TWO_OVER_PI_LO -0x1.6b01ec5417056p-55
#define EULER_f64 0.57721566490153286061
#define LONG_OR_SHORT(name, x) (careful ? poly_##name(x) : poly_##name##_short(x))

/* What the rounding of sum = a + b took (Knuth 4.2.2). */
INL f64 sum_error(f64 a, f64 b, f64 sum)
{
    f64 part = sum - a;
    return (a - (sum - part)) + (b - part);
}

/* c0 + x (c1 + x tail) */
INL summed_f64 last_steps(f64 tail, f64 x, f64 c1, f64 c0, b8 careful)
{
    summed_f64 p = {tail, 0};
    if (careful)
        return horner_step(horner_step(p, x, c1), x, c0);
    p.value = fma_f64(x, fma_f64(x, tail, c1), c0);
    return p;
}
#define LAST_STEPS(name, NAME, x) (careful ? last_steps(poly_##name(x), x, NAME##_C1, NAME##_C0, 1) : last_steps(poly_##name##_short(x), x, NAME##_SHORT_C1, NAME##_SHORT_C0, 0))

INL summed_f64 times(summed_f64 p, f64 factor, b8 careful)
{
    f64 y = p.value * factor;
    summed_f64 r = {y, careful ? fma_f64(p.error, factor, product_error_f64(p.value, factor, y)) : 0};
    return r;
}

/* p / sqrt(x): what division and root lost is in the error */
INL summed_f64 over_root(summed_f64 p, f64 x, b8 careful)
{
    f64 root = sqrt_f64(x), inverse = 1 / root, q = p.value * inverse, lost = 0;
    if (careful) {
        f64 square = (root * root), back = (q * root);
        lost = (((p.value - back) - product_error_f64(q, root, back) + p.error) - 0.5 * q * inverse * ((x - square) - product_error_f64(root, root, square))) * inverse;
    }
    summed_f64 r = {q, lost};
    return r;
}

/* log_assemble_f64 with what its last two sums lost */
INL summed_f64 log_parts(f64 f, f64 k, f64 c)
{
    f64 s = f / (2.0 + f), z = (s * s), half = (0.5 * f * f);
    f64 rest = half - fma_f64(s, fma_f64(z, poly_log_f64(z), half), fma_f64(k, 1.90821492927058770002e-10, c));
    f64 t = f - rest, whole = k * 6.93147180369123816490e-01, y = whole + t;
    summed_f64 r = {y, (k == 0 ? 0 : t - (y - whole)) + ((f - t) - rest)};
    return r;
}

/* p e^x */
INL f64 times_exp(summed_f64 p, f64 x, f64 x_lo)
{
    scaled_f64 e = exp_scaled_f64(x, x_lo);
    return (p.value + fma_f64(p.value, e.fraction, p.error * e.mantissa)) * e.s1 * e.s2;
}

/* ---- normal distribution ---------------------------------------------------------------------------------------------------- */

/* e^(x^2) erfc(x) for x = a + a_lo from 0 up: the factor of erfc_f64, then, where `whole`, the asymptotic series, by the same division */
INL summed_f64 scaled_erfc(f64 a, f64 a_lo, b8 whole, b8 careful)
{
    const f64 end = careful ? 28.0 : 10.2;
    b8 beyond = whole && a > end;
    f64 shift = beyond ? 0 : 1.6, d = a + shift, inverse = 1 / d;
    summed_f64 near;
    if (careful) {
        f64 above = a - shift, u = (above * inverse), u_lo = fma_f64((a - above) - shift, inverse, product_error_f64(above, inverse, u));
        f64 correction = fma_f64(reciprocal_error_f64(a, shift, d, inverse), fma_f64(u, -0.5, 1), fma_f64(-0.5, u_lo, -a_lo * inverse));
        near = times(last_steps(poly_erfc_f64(u), u, ERFC_C1, ERFC_C0, 1), inverse, 1);
        near.error = fma_f64(near.value, correction, near.error);
    } else {
        near.value = poly_erfc_short_f64(fma_f64(-3.2, inverse, 1)) * inverse;
        near.error = 0;
    }
    if (whole) {
        f64 far = INV_SQRT_PI * inverse, w = inverse * inverse, p = fma_f64(w, -135135.0 / 128, 10395.0 / 64);
        p = fma_f64(w, p, -945.0 / 32);
        p = fma_f64(w, p, 105.0 / 16);
        p = fma_f64(w, p, -15.0 / 8);
        p = fma_f64(w, p, 3.0 / 4);
        p = fma_f64(w, p, -0.5);
        f64 lost = careful ? ((INV_SQRT_PI - far * d) - product_error_f64(far, d, far * d)) * inverse : 0;
        near.error = beyond ? fma_f64(far * w, p, a < 0x1p1000 ? lost : 0) : near.error;
        near.value = beyond ? far : near.value;
    }
    return near;
}

INL f64 erfcx_by(f64 x, b8 careful)
{
    f64 a = abs_f64(x), clipped = a > 28.0 ? 28.0 : a, square = (clipped * clipped);
    summed_f64 f = scaled_erfc(a, 0, 1, careful);
    f64 lo = careful ? product_error_f64(clipped, clipped, square) : 0;
    scaled_f64 e = exp_scaled_f64(square, lo);
    f64 s = square < 16 ? 2 * (e.s1 * e.s2) : 0;
    f64 negative = square < 16 ? (s - f.value) + fma_f64(s, e.fraction, -f.error) : 2 * e.mantissa * e.s1 * e.s2 - f.value;
    return x < 0 ? negative : f.value + f.error;
}

/* |x| / sqrt(2) in two parts, |x| cut where the tail is 0 */
INL summed_f64 over_root_two(f64 x, f64 end)
{
    f64 a = abs_f64(x);
    a = a > end ? end : a;
    f64 y = a * SQRT_HALF_HI;
    summed_f64 r = {y, fma_f64(a, SQRT_HALF_LO, product_error_f64(a, SQRT_HALF_HI, y))};
    return r;
}

INL f64 special_ndtr_f64(f64 x)
{
    summed_f64 a = over_root_two(x, 39.5), f = scaled_erfc(a.value, a.error, 0, 1);
    f64 square = (a.value * a.value), lo = fma_f64(2 * a.value, a.error, product_error_f64(a.value, a.value, square));
    scaled_f64 e = exp_nonpositive_f64(-square, -lo);
    f64 tail = fma_f64(f.value, e.fraction, fma_f64(f.error, e.mantissa, f.value)) * e.s1 * (0.5 * e.s2);
    return x < 0 ? tail : 1 - tail;
}
INL f32 special_ndtr_f32(f32 x)
{
    f64 y = 0.5 * erfc_short((f64)x * -SQRT_HALF_HI);
    return x != x ? x : (f32)y;
}

/* for negative x log(e^(a^2) erfc(a) / 2) - a^2, else log(1 - tail), by one logarithm */
INL f64 log_ndtr_by(f64 x, b8 careful)
{
    b8 negative = x < 0;
    summed_f64 a = over_root_two(x, careful ? 0x1p900 : 0x1p200);
    summed_f64 f = scaled_erfc(a.value, a.error, 1, careful);
    f64 half = 0.5 * (f.value + f.error), v = a.value > 28 ? 28 : a.value;
    f64 square = (v * v), lo = careful ? fma_f64(2 * v, v < 28 ? a.error : 0, product_error_f64(v, v, square)) : 0;
    scaled_f64 e = exp_scaled_f64(-square, -lo);
    f64 tail = fma_f64(half, e.fraction, half) * e.s1 * e.s2;
    f64 u = negative ? half : 1 - tail, lost = negative ? 0 : (1 - u) - tail;
    split_f64 s = split_exponent_f64(u);
    b8 whole = !negative & (s.k == 0);
    summed_f64 l = log_parts(whole ? -tail : s.m - 1, s.k, whole ? 0 : lost / u);
    f64 y = negative ? fma_f64(-0.5 * x, x, l.value) + l.error : l.value + l.error;
    return x != x ? x : y;
}

/* q = y - 1 / 2 times a polynomial in its square; in the tails s = sqrt(-2 log y) times one in 1 / (s + 3) */
INL f64 ndtri_by(f64 y, b8 careful)
{
    f64 p = y <= 0.5 ? y : 1 - y, q = y - 0.5, square = (q * q);
    b8 centre = square < 0.1332;
    f64 t = fma_f64(square, 2 / 0.1332, -1);
    split_f64 parts = split_exponent_f64(p);
    summed_f64 l = log_parts(parts.m - 1, parts.k, 0);
    f64 w = -2 * l.value, s = sqrt_f64(w);
    f64 d = s + 3, inverse = 1 / d, scaled = NDTRI_SCALE * inverse, u = scaled - NDTRI_SHIFT;
    t = centre ? t : 0;
    summed_f64 near = LAST_STEPS(ndtri_centre, NDTRI_CENTRE, t), far = LAST_STEPS(ndtri_tail, NDTRI_TAIL, u);
    f64 slip = 0;
    if (careful) { /* what root and reciprocal lost; dx / ds lies between 1 and 1.3 */
        f64 u_lo = sum_error(scaled, -NDTRI_SHIFT, u) + product_error_f64(NDTRI_SCALE, inverse, scaled);
        far.error = fma_f64(fma_f64(scaled, reciprocal_error_f64(s, 3, d, inverse), u_lo), poly_ndtri_slope(u), far.error);
        f64 s_square = (s * s);
        slip = ((w - s_square) - product_error_f64(s, s, s_square) - 2 * l.error) * 0.58 / s;
        slip = centre ? 0 : (y < 0.5 ? -slip : slip);
    }
    near.value = centre ? near.value : far.value;
    near.error = centre ? near.error : far.error;
    f64 factor = centre ? q : (y < 0.5 ? -s : s);
    summed_f64 x = times(near, factor, careful);
    x.error += slip;
    f64 result = x.value + x.error;
    result = p > 0 ? result : (p == 0 ? copysign_f64(INF_f64, q) : NAN_f64);
    return result;
}

/* ---- modified Bessel functions ---------------------------------------------------------------------------------------------- */

/* I of order 0 or 1, times e^-|x| where scaled: below 7.75 the power series in z = x^2 / 4, above a polynomial in 1 / x beside the exponential and the root.
 * What the rounding of z does is added: times the logarithmic derivative, of which two digits suffice. */
INL f64 bessel_i_by(f64 x, int order, b8 scaled, b8 careful)
{
    f64 a = abs_f64(x);
    b8 small = a < 7.75;
    f64 z = small ? (a * a) * 0.25 : 0, tail = order ? LONG_OR_SHORT(i1_small, z) : poly_i0_small_f64(z);
    summed_f64 near = last_steps(fma_f64(tail, z, order ? (careful ? I1_SMALL_C1 : I1_SMALL_SHORT_C1) : I0_SMALL_C1), z, order ? (careful ? I1_SMALL_C0 : I1_SMALL_SHORT_C0) : I0_SMALL_C0, 1, careful);
    if (careful) {
        f64 rounded = small ? product_error_f64(a, a, (a * a)) * 0.25 : 0;
        f64 slope = order ? 1 / (0.75 + sqrt_f64(1.5625 + z)) : 1 / (0.5 + sqrt_f64(0.25 + z));
        near.error = fma_f64(rounded * near.value, slope, near.error);
    }
    if (order)
        near = times(near, 0.5 * a, careful);
    f64 clipped = small ? 7.75 : (!scaled && a > 800 ? 800 : a), u = fma_f64(2 * 7.75, 1 / clipped, -1);
    summed_f64 far = over_root(order ? LAST_STEPS(i1_large, I1_LARGE, u) : LAST_STEPS(i0_scaled, I0_SCALED, u), clipped, careful);
    near.value = small ? near.value : far.value;
    near.error = small ? near.error : far.error;
    f64 y = times_exp(near, scaled ? (small ? -a : 0) : (small ? 0 : clipped), 0);
    y = scaled && a == INF_f64 ? 0 : y;
    y = x != x ? x : y;
    return order ? copysign_f64(y, x) : y;
}

/* K of order 0 or 1, times e^x where scaled (DLMF 10.31.1 and 10.31.2 up to 1) */
INL f64 bessel_k_by(f64 x, int order, b8 scaled, b8 careful)
{
    b8 small = x < 1;
    f64 v = small ? x : 1, h = 0.5 * v, z = h * h, t = fma_f64(2 * v, v, -1), l = log_f64(h);
    summed_f64 near;
    if (order) {
        f64 i1 = fma_f64(h * z, LONG_OR_SHORT(ik1, t), h);
        near.value = 1 / v + fma_f64(l, i1, -0.25 * v * LONG_OR_SHORT(k1_near, t));
    } else {
        f64 L = l + EULER_f64;
        near.value = z * fma_f64(-L, LONG_OR_SHORT(ik0, t), LONG_OR_SHORT(k0_near, t)) - L;
    }
    f64 clipped = small ? 1 : x, u = fma_f64(2, 1 / clipped, -1);
    summed_f64 far = over_root(order ? LAST_STEPS(k1_far, K1_FAR, u) : LAST_STEPS(k0_far, K0_FAR, u), clipped, careful);
    near.value = small ? near.value : far.value;
    near.error = small ? 0 : far.error;
    f64 y = times_exp(near, scaled ? (small ? x : 0) : (small ? 0 : -x), 0);
    y = x == INF_f64 ? 0 : y;
    y = x == 0 ? INF_f64 : y;
    return x >= 0 ? y : NAN_f64;
}

/* ---- Bessel functions --------------------------------------------------------------------------------------------------------- */

INL summed_f64 bessel_j_near(f64 a, f64 t, int order, b8 careful)
{
    const f64 hi = order ? J1_SQUARE_HI : J0_SQUARE_HI, lo = order ? J1_SQUARE_LO : J0_SQUARE_LO;
    f64 square = (a * a), distance = square - hi, rest = careful ? product_error_f64(a, a, square) + sum_error(square, -hi, distance) : 0;
    summed_f64 p = order ? LAST_STEPS(j1_near, J1_NEAR, t) : LAST_STEPS(j0_near, J0_NEAR, t), y = times(p, distance, careful);
    y.error = fma_f64(p.value, rest - lo, y.error);
    return order ? times(y, a, careful) : y;
}

/* modulus and phase (DLMF 10.17) from 4 on, by the sine and cosine of a */
INL f64 bessel_far_by(f64 a, f64 s, f64 c, int order, int kind, b8 careful)
{
    f64 inverse = 1 / a, u = fma_f64(32 * inverse, inverse, -1);
    summed_f64 p = order ? LAST_STEPS(p1, P1, u) : LAST_STEPS(p0, P0, u);
    f64 q = (order ? LONG_OR_SHORT(q1, u) : LONG_OR_SHORT(q0, u)) * inverse;
    /* the phase is a less an odd multiple of pi / 4 */
    f64 cosine = order ? s - c : c + s, sine = order ? -(s + c) : s - c, main = kind ? sine : cosine, other = kind ? cosine : -sine;
    summed_f64 y;
    if (careful) {
        f64 first = order && kind ? -s : s, second = order || kind ? -c : c, lost = sum_error(first, second, main);
        f64 product = p.value * main, rest = q * other;
        y.value = product + rest;
        y.error = fma_f64(p.value, lost, fma_f64(p.error, main, product_error_f64(p.value, main, product))) + sum_error(product, rest, y.value);
    } else {
        y.value = fma_f64(p.value, main, q * other);
        y.error = 0;
    }
    y = over_root(y, a, careful);
    return y.value + y.error;
}

/* J (kind 0) or Y (kind 1) of order 0 or 1, |x| within TRIG_LIMIT: below 4 a series in x^2 over the zero there */
INL f64 bessel_by(f64 x, int order, int kind, b8 careful)
{
    f64 a = abs_f64(x);
    b8 small = a < 4;
    f64 v = small ? a : 4, t = fma_f64(0.125 * v, v, -1);
    summed_f64 j = bessel_j_near(v, t, order, careful);
    f64 near = j.value + j.error; /* float32: the zero's second part */
    if (kind) {
        split_f64 split = split_exponent_f64(v);
        summed_f64 l = log_parts(split.m - 1, split.k, 0), regular = order ? LAST_STEPS(y1_near, Y1_NEAR, t) : LAST_STEPS(y0_near, Y0_NEAR, t);
        f64 factor = l.value * TWO_OVER_PI, lost = 0;
        if (careful) {
            lost = fma_f64(l.error, TWO_OVER_PI, fma_f64(l.value, TWO_OVER_PI_LO, product_error_f64(l.value, TWO_OVER_PI, factor)));
            lost = fma_f64(lost, j.value, factor * j.error);
        }
        if (order) {
            regular = times(regular, v, careful);
            f64 pole = -TWO_OVER_PI / v, sum = regular.value + pole;
            lost += careful ? sum_error(pole, regular.value, sum) : 0;
            regular.value = sum;
        }
        f64 product = factor * j.value;
        near = regular.value + product;
        if (careful)
            near += lost + regular.error + product_error_f64(factor, j.value, product) + sum_error(regular.value, product, near);
    }
    f64 far_a = small ? 4 : a;
    quarter_turn turn = reduce_f64(far_a);
    f64 s = sin_kernel_f64(turn.r, turn.lo), c = cos_kernel_f64(turn.r, turn.lo);
    f64 sine = flip_sign_f64(turn.odd ? c : s, bits_f64(turn.t)), cosine = flip_sign_f64(turn.odd ? s : c, bits_f64(turn.t) + 1);
    f64 y = small ? near : bessel_far_by(far_a, sine, cosine, order, kind, careful);
    y = a == INF_f64 ? 0 : y;
    y = x != x ? x : y;
    if (kind) {
        y = x == 0 ? -INF_f64 : y;
        return x >= 0 ? y : NAN_f64;
    }
    return order && x < 0 ? -y : y;
}

/* beyond TRIG_LIMIT */
static __attribute__((unused, noinline)) f64 bessel_library(f64 x, int order, int kind)
{
    f64 a = abs_f64(x);
    if (kind && x < 0)
        return NAN_f64;
    f64 s = sin(a), c = cos(a);
    f64 y = a == INF_f64 ? 0 : order ? (kind ? bessel_far_by(a, s, c, 1, 1, 1) : bessel_far_by(a, s, c, 1, 0, 1)) : kind ? bessel_far_by(a, s, c, 0, 1, 1) : bessel_far_by(a, s, c, 0, 0, 1);
    return order && x < 0 ? -y : y;
}

INL f64 spherical_j0_f64(f64 x)
{
    f64 y = sin_f64(x) / x;
    y = x == 0 ? 1 : y;
    return abs_f64(x) == INF_f64 ? 0 : y;
}
static __attribute__((unused, noinline)) f64 spherical_library(f64 x) { return abs_f64(x) == INF_f64 ? 0 : sin(x) / x; }

/* ---- trigamma ------------------------------------------------------------------------------------------------------------------- */

/* zeta(2, x): below 2 a polynomial over x^2, above 1 / x + 1 / (2 x^2) and one in 1 / x^2; for negative x by reflection */
INL f64 trigamma_by(f64 x, b8 careful)
{
    b8 negative = x < 0;
    f64 z = negative ? 1 - x : x;
    b8 small = z < 2;
    f64 v = small ? z : 1, square = (v * v), inverse = 1 / square;
    summed_f64 p = LAST_STEPS(trigamma_near, TRIGAMMA_NEAR, v - 1);
    f64 near = p.value * inverse;
    if (careful) {
        f64 back = (near * square), lost = ((p.value - back) - product_error_f64(near, square, back)) + p.error - near * product_error_f64(v, v, square);
        near = abs_f64(near) < 0x1p1000 ? fma_f64(lost, inverse, near) : near;
    }
    f64 r = 1 / z, w = small ? 0 : r * r, lost = careful ? ((1 - r * z) - product_error_f64(r, z, r * z)) * r : 0;
    f64 far = r + fma_f64(r * w, LONG_OR_SHORT(trigamma_far, fma_f64(8, w, -1)), fma_f64(0.5, w, w == 0 ? 0 : lost));
    f64 y = small ? near : far;
    f64 a = abs_f64(x - round_f64(x)), turn = a > 0.25 ? 0.5 - a : a, angle = turn * PI_HI, angle_lo = fma_f64(turn, PI_LO, product_error_f64(turn, PI_HI, angle));
    f64 sine = a > 0.25 ? cos_kernel_f64(angle, angle_lo) : sin_kernel_f64(angle, angle_lo);
    y = negative ? 9.8696044010893586188 / (sine * sine) - y : y;
    return x == 0 ? INF_f64 : y;
}

/* ---- loops ---------------------------------------------------------------------------------------------------------------------
 * One loop serves all operators of a function, and both scaled forms, to keep the library small: the code generator calls
 * special_<name>_block_<type> for an expression that is this function. Without vectors a function of its own takes the place of
 * a copy in each loop, and the careful one serves float32, too. */
#ifdef __AVX2__
#define SPECIAL_FUNCTION INL
#define SHORT 0
#else
#define SPECIAL_FUNCTION static __attribute__((unused, noinline))
#define SHORT 1
#endif
#define SPECIAL_LOOP static __attribute__((unused, noinline)) void
#define EACH _Pragma("GCC ivdep") for (i64 i = 0; i < n; i++)

/* the loop `block` over float64 for float32, where that is fast enough */
#define WIDENED(block)                                           \
    f64 wide[128];                                               \
    for (i64 start = 0; start < n; start += 128) {               \
        const i64 count = n - start < 128 ? n - start : 128;     \
        for (i64 i = 0; i < count; i++)                          \
            wide[i] = (f64)a[start + i];                         \
        block;                                                   \
        for (i64 i = 0; i < count; i++)                          \
            o[start + i] = (f32)wide[i];                         \
    }
#define DEFINE_DOUBLE(name, call) SPECIAL_FUNCTION f64 special_##name##_f64(f64 x) { enum { careful = 1 }; return call; }
#define DEFINE_LOOP(name)                                                                                          \
    SPECIAL_LOOP special_##name##_block_f64(f64 *o, const f64 *a, i64 n) { EACH o[i] = special_##name##_f64(a[i]); }
#define DEFINE_WIDE(name, call)                                                                                    \
    DEFINE_DOUBLE(name, call)                                                                                      \
    INL f32 special_##name##_f32(f32 x) { return (f32)special_##name##_f64((f64)x); }                              \
    DEFINE_LOOP(name)                                                                                              \
    SPECIAL_LOOP special_##name##_block_f32(f32 *o, const f32 *a, i64 n) { WIDENED(special_##name##_block_f64(wide, wide, count)) }
#define DEFINE_BOTH(name, call)                                                                                    \
    DEFINE_DOUBLE(name, call)                                                                                      \
    SPECIAL_FUNCTION f32 special_##name##_f32(f32 v) { const f64 x = (f64)v; enum { careful = SHORT }; return (f32)call; } \
    DEFINE_LOOP(name)                                                                                              \
    SPECIAL_LOOP special_##name##_block_f32(f32 *o, const f32 *a, i64 n) { EACH o[i] = special_##name##_f32(a[i]); }
/* two functions by one flag */
#define DEFINE_SCALED(name, both, call)                                                                            \
    SPECIAL_FUNCTION f64 both##_f64(f64 x, b8 scaled) { enum { careful = 1 }; return call; }                       \
    SPECIAL_LOOP both##_block_f64(f64 *o, const f64 *a, i64 n, b8 scaled) { EACH o[i] = both##_f64(a[i], scaled); } \
    SCALED_OF(name, both, 0) SCALED_OF(name##e, both, 1)
#define SCALED_OF(name, both, scaled)                                                                              \
    INL f64 special_##name##_f64(f64 x) { return both##_f64(x, scaled); }                                          \
    INL f32 special_##name##_f32(f32 x) { return (f32)both##_f64((f64)x, scaled); }                                \
    INL void special_##name##_block_f64(f64 *o, const f64 *a, i64 n) { both##_block_f64(o, a, n, scaled); }        \
    SCALED_##both(name, both, scaled)
#define SCALED_bessel_k0 SCALED_WIDE
#define SCALED_bessel_k1 SCALED_WIDE
#define SCALED_bessel_i0 SCALED_NARROW
#define SCALED_bessel_i1 SCALED_NARROW
#define SCALED_WIDE(name, both, scaled)                                                                            \
    SPECIAL_LOOP special_##name##_block_f32(f32 *o, const f32 *a, i64 n) { WIDENED(both##_block_f64(wide, wide, count, scaled)) }
#define SCALED_NARROW(name, both, scaled) \
    INL void special_##name##_block_f32(f32 *o, const f32 *a, i64 n) { both##_block_f32(o, a, n, scaled); }
#define DEFINE_NARROW(both, order)                                                                                 \
    SPECIAL_LOOP both##_block_f32(f32 *o, const f32 *a, i64 n, b8 scaled) { EACH o[i] = (f32)bessel_i_by((f64)a[i], order, scaled, SHORT); }
/* at any angle: for the elements of a block with one beyond TRIG_LIMIT */
#define DEFINE_ANGLE(name, beyond)                                                                                                                 \
    INL f64 any_special_##name##_f64(f64 x) { f64 y; special_##name##_block_f64(&y, &x, 1); return abs_f64(x) > TRIG_LIMIT ? beyond : y; }         \
    INL f32 any_special_##name##_f32(f32 v) { const f64 x = (f64)v; f32 y; special_##name##_block_f32(&y, &v, 1); return abs_f64(x) > TRIG_LIMIT ? (f32)beyond : y; }
SPECIAL_FUNCTION f64 trigamma_f64(f64 x) { return trigamma_by(x, 1); }
SPECIAL_FUNCTION f32 trigamma_f32(f32 x) { return (f32)trigamma_by((f64)x, SHORT); }
DEFINE_BOTH(erfcx, erfcx_by(x, careful))
DEFINE_WIDE(log_ndtr, log_ndtr_by(x, careful))
DEFINE_WIDE(ndtri, ndtri_by(x, careful))
DEFINE_NARROW(bessel_i0, 0)
DEFINE_NARROW(bessel_i1, 1)
DEFINE_SCALED(i0, bessel_i0, bessel_i_by(x, 0, scaled, careful))
DEFINE_SCALED(i1, bessel_i1, bessel_i_by(x, 1, scaled, careful))
DEFINE_SCALED(k0, bessel_k0, bessel_k_by(x, 0, scaled, careful))
DEFINE_SCALED(k1, bessel_k1, bessel_k_by(x, 1, scaled, careful))
DEFINE_BOTH(bessel_j0, bessel_by(x, 0, 0, careful))
DEFINE_BOTH(bessel_j1, bessel_by(x, 1, 0, careful))
DEFINE_WIDE(bessel_y0, bessel_by(x, 0, 1, careful))
DEFINE_WIDE(bessel_y1, bessel_by(x, 1, 1, careful))
DEFINE_WIDE(spherical_bessel_j0, ((void)careful, spherical_j0_f64(x)))
DEFINE_ANGLE(bessel_j0, bessel_library(x, 0, 0))
DEFINE_ANGLE(bessel_j1, bessel_library(x, 1, 0))
DEFINE_ANGLE(bessel_y0, bessel_library(x, 0, 1))
DEFINE_ANGLE(bessel_y1, bessel_library(x, 1, 1))
DEFINE_ANGLE(spherical_bessel_j0, spherical_library(x))
#undef DEFINE_DOUBLE
#undef DEFINE_LOOP
#undef DEFINE_WIDE
#undef DEFINE_BOTH
#undef DEFINE_SCALED
#undef DEFINE_NARROW
#undef DEFINE_ANGLE

#endif
