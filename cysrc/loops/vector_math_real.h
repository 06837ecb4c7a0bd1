/* Template of the real functions that float and double share; vector_math.h includes it with REAL set to f32 and f64.
 * `lo` arguments carry what the rounding of the argument before them lost. No include guard: it is meant to repeat. */
#define VM_CAT_(a, b) a##_##b
#define VM_CAT(a, b) VM_CAT_(a, b)
#define FN(name) VM_CAT(name, REAL)
#if PRECISION == 32
#define K(single, dbl) (single)
#else
#define K(single, dbl) (dbl)
#endif
#define NAN_REAL ((REAL)__builtin_nan(""))
#define INF_REAL ((REAL)__builtin_inf())

INL REAL FN(sel)(b8 condition, REAL a, REAL b) { return condition ? a : b; }
INL b8 FN(isnan)(REAL x) { return x != x; }
INL b8 FN(isinf)(REAL x) { return FN(abs)(x) == INF_REAL; }
INL b8 FN(isfinite)(REAL x) { return FN(abs)(x) < INF_REAL; }
INL REAL FN(conj)(REAL x) { return x; }
INL REAL FN(real)(REAL x) { return x; }
INL REAL FN(imag)(REAL x) { (void)x; return 0; }
INL REAL FN(angle)(REAL x) { return x != x ? x : (x < 0 ? K(0x1.921fb6p1f, 0x1.921fb54442d18p1) : (REAL)0); }
INL REAL FN(sign)(REAL x) { return (REAL)(x > 0) - (REAL)(x < 0); } /* of NaN and -0: 0, as PyTorch's sign gives */
INL REAL FN(frac)(REAL x) { return x - FN(trunc)(x); }
INL REAL FN(reciprocal)(REAL x) { return 1 / x; }

/* C's fmax and fmin: a NaN loses; PyTorch's maximum and minimum: a NaN wins */
INL REAL FN(fmax)(REAL a, REAL b) { return a != a ? b : (a < b ? b : a); }
INL REAL FN(fmin)(REAL a, REAL b) { return a != a ? b : (a > b ? b : a); }
INL REAL FN(maximum)(REAL a, REAL b)
{
    if (__builtin_constant_p(b) && b == b)
        return b > a ? b : a; /* one instruction, whose second operand wins where one is NaN */
    REAL high = a > b ? a : b;
    return a != a ? a : high;
}
INL REAL FN(minimum)(REAL a, REAL b)
{
    if (__builtin_constant_p(b) && b == b)
        return b < a ? b : a;
    REAL low = a < b ? a : b;
    return a != a ? a : low;
}

/* ---- exponentials -------------------------------------------------------------------------------------------------- */

/* exp as (1 + fraction) * s1 * s2: the scale is split so that results may overflow and underflow gradually, with one
 * rounding there. A caller's own factor f goes in first, as f + f * fraction: one rounding less than f * mantissa. */
typedef struct { REAL fraction, mantissa, s1, s2; } FN(scaled);

INL FN(scaled) FN(scale_pair)(REAL fraction, REAL t)
{
    REAL n = t - FN(SHIFTER), t1 = FN(fma)(n, K(0.5f, 0.5), FN(SHIFTER)), n1 = t1 - FN(SHIFTER);
    FN(scaled) e = {fraction, 1 + fraction, FN(power_of_two)(t1), FN(power_of_two)(t - n1)};
    return e;
}

INL REAL FN(clamp_exponent)(REAL x)
{
    x = x > K(95.0f, 720.0) ? K(95.0f, 720.0) : x;
    return x < K(-110.0f, -760.0) ? K(-110.0f, -760.0) : x;
}

#define LOG2E_REAL K(0x1.715476p0f, 0x1.71547652b82fep0)
#define LN2_HI_REAL K(0.693145751953125f, 6.93147180369123816490e-01)
#define LN2_LO_REAL K(1.42860682e-6f, 1.90821492927058770002e-10)

INL FN(scaled) FN(exp_scaled)(REAL x, REAL lo)
{
    x = FN(clamp_exponent)(x);
    REAL t = FN(fma)(x, LOG2E_REAL, FN(SHIFTER)), n = t - FN(SHIFTER);
    REAL r = FN(fma)(n, -LN2_HI_REAL, x) + FN(fma)(n, -LN2_LO_REAL, lo);
    return FN(scale_pair)(FN(fma)((r * r), FN(poly_exp)(r), r), t);
}

/* the same for x <= 0, where one scale of 2^(n + 64) (2^(n + 600)) and a constant suffice: a third fewer operations */
INL FN(scaled) FN(exp_nonpositive)(REAL x, REAL lo)
{
    x = x < K(-110.0f, -760.0) ? K(-110.0f, -760.0) : x;
    REAL t = FN(fma)(x, LOG2E_REAL, FN(SHIFTER)), n = t - FN(SHIFTER);
    REAL r = FN(fma)(n, -LN2_LO_REAL, FN(fma)(n, -LN2_HI_REAL, x) + lo);
    REAL fraction = FN(fma)((r * r), FN(poly_exp)(r), r);
    FN(scaled) e = {fraction, 1 + fraction, FN(power_of_two)(t + K(64.0f, 600.0)), K(0x1p-64f, 0x1p-600)};
    return e;
}

/* exp(x + lo) where the result is a normal number: |x| below 87 (708) */
INL REAL FN(exp_normal)(REAL x, REAL lo)
{
    REAL t = FN(fma)(x, LOG2E_REAL, FN(SHIFTER)), n = t - FN(SHIFTER);
    REAL r = FN(fma)(n, -LN2_HI_REAL, x) + FN(fma)(n, -LN2_LO_REAL, lo);
    return (1 + FN(fma)((r * r), FN(poly_exp)(r), r)) * FN(power_of_two)(t);
}

INL REAL FN(exp)(REAL x)
{
    FN(scaled) e = FN(exp_scaled)(x, 0);
    return e.mantissa * e.s1 * e.s2;
}

INL REAL FN(exp2)(REAL x)
{
    x = x > K(130.0f, 1030.0) ? K(130.0f, 1030.0) : x;
    x = x < K(-155.0f, -1080.0) ? K(-155.0f, -1080.0) : x;
    REAL t = x + FN(SHIFTER), r = x - (t - FN(SHIFTER));
    FN(scaled) e = FN(scale_pair)(r * FN(poly_exp2)(r), t);
    return e.mantissa * e.s1 * e.s2;
}

/* 2^n (e^r - 1) + (2^n - 1), computed at half scale so that n = 1024 does not overflow early. r's own rounding error
 * goes in with the polynomial: the result may be smaller than r. */
INL REAL FN(expm1)(REAL x)
{
    REAL v = x > K(89.0f, 710.0) ? K(89.0f, 710.0) : x; /* overflows already, and n stays 128 (1024): beyond, half_scale would be inf */
    v = v < K(-20.0f, -40.0) ? K(-20.0f, -40.0) : v;
    REAL t = FN(fma)(v, LOG2E_REAL, FN(SHIFTER)), n = t - FN(SHIFTER);
    REAL high = FN(fma)(n, -LN2_HI_REAL, v), low = (n * -LN2_LO_REAL);
    REAL r = high + low, error = (high - r) + low;
    REAL tail = FN(fma)((r * r), FN(poly_exp)(r), error);
    REAL half_scale = FN(power_of_two)(t - 1), offset = half_scale - K(0.5f, 0.5);
    REAL y = 2 * (FN(fma)(half_scale, r, offset) + half_scale * tail);
    y = n == 0 ? r + tail : y;
    return x == 0 ? x : y;
}

/* ---- logarithms ------------------------------------------------------------------------------------------------------ */

INL REAL FN(log_specials)(REAL x, REAL y)
{
    y = x > 0 ? y : (x == 0 ? -INF_REAL : NAN_REAL);
    return x == INF_REAL ? x : y;
}

INL REAL FN(log)(REAL x)
{
    FN(split) s = FN(split_exponent)(x);
    return FN(log_specials)(x, FN(log_assemble)(s.m - 1, s.k, 0));
}

/* u = 1 + x rounds; what it lost enters through log(u + c) = log(u) + c / u. Near 0 nothing is split off and x itself
 * is the argument. */
INL REAL FN(log1p)(REAL x)
{
    REAL u = 1 + x;
    FN(split) s = FN(split_exponent)(u);
    REAL lost = x > 1 ? 1 - (u - x) : x - (u - 1);
    REAL f = s.k == 0 ? x : s.m - 1;
    REAL c = s.k == 0 ? (REAL)0 : lost / u;
    REAL y = FN(log_specials)(u, FN(log_assemble)(f, s.k, c));
    return x == 0 ? x : y;
}

/* ---- what is built from exp and log ------------------------------------------------------------------------------------ */

#if PRECISION == 32
/* y / (1 + e^(x + lo)) as y / (c + c e^(x + lo)) * c with c = 2^-30: e^x may exceed the largest number by that much, so the
 * quotient underflows gradually (n = 158 makes it 0). In float the plain quotient stays within 2.9 ulp and is twice as fast as
 * the one that repairs what sum and division lost (docs/decisions.md). */
#define LOGISTIC_C 0x1p-30f
INL REAL scaled_exp_plus_one_f32(REAL x, REAL lo)
{
    x = x > 109.6f ? 109.6f : x;
    x = x < -60.0f ? -60.0f : x;
    REAL t = fma_f32(x, LOG2E_REAL, SHIFTER_f32), n = t - SHIFTER_f32;
    REAL r = fma_f32(n, -LN2_HI_REAL, x) + fma_f32(n, -LN2_LO_REAL, lo);
    return fma_f32(1 + fma_f32((r * r), poly_exp_f32(r), r), power_of_two_f32(t - 30), LOGISTIC_C);
}

INL REAL sigmoid_f32(REAL x) { return LOGISTIC_C / scaled_exp_plus_one_f32(-x, 0); }

/* x sigmoid(-minus_x - lo); where sigmoid is 1 the quotient by c may overflow, and is x */
INL REAL gate_f32(REAL x, REAL minus_x, REAL lo)
{
    REAL y = x / scaled_exp_plus_one_f32(minus_x, lo) * LOGISTIC_C;
    return x > 100.0f ? x : y;
}

INL REAL silu_f32(REAL x) { return gate_f32(x, -x, 0); }
#else
/* 1 / (c + c e^(x + lo)), c = 2^-100, as q + q * correction: what sum and quotient lost is known. Whatever the sign of x, q is a normal number, and the
 * caller's product by c underflows gradually. s + c is exact or loses less than half an ulp. */
typedef struct { f64 q, correction; } logistic_f64;
#define LOGISTIC_C_f64 0x1p-100

INL logistic_f64 scaled_logistic_f64(f64 x, f64 lo)
{
    x = x > 760.0 ? 760.0 : x;
    x = x < -60.0 ? -60.0 : x;
    f64 t = fma_f64(x, LOG2E_REAL, SHIFTER_f64), n = t - SHIFTER_f64;
    f64 r = fma_f64(n, -LN2_LO_REAL, fma_f64(n, -LN2_HI_REAL, x) + lo);
    f64 fraction = fma_f64((r * r), poly_exp_f64(r), r), s = from_bits_f64((bits_f64(t) + (1023u - 100u)) << 52);
    f64 sum = s + LOGISTIC_C_f64, d = fma_f64(fraction, s, sum), lost = fma_f64(fraction, s, sum - d), q = 1 / d;
#ifdef __FMA__
    f64 residual = fma_f64(-q, d, 1);
#else
    f64 product = q * d, residual = (1 - product) - product_error_f64(q, d, product);
#endif
    logistic_f64 result = {q, fma_f64(-q, lost, residual)};
    return result;
}

INL f64 sigmoid_f64(f64 x)
{
    logistic_f64 e = scaled_logistic_f64(-x, 0);
    return fma_f64(e.q, e.correction, e.q) * LOGISTIC_C_f64;
}
#endif

/* x sigmoid(x) and its like tend to x; at -inf PyTorch's formulas give NaN */
INL REAL FN(gate_specials)(REAL x, REAL y) { return FN(abs)(x) == INF_REAL ? (x > 0 ? x : NAN_REAL) : y; }

#if PRECISION == 64
/* x sigmoid(-minus_x - lo), which is x from 50 on and 0 below -760 */
INL f64 gate_f64(f64 x, f64 minus_x, f64 lo)
{
    logistic_f64 e = scaled_logistic_f64(minus_x, lo);
    f64 factor = x < -760.0 ? -760.0 : x, y = factor * e.q, error = product_error_f64(factor, e.q, y);
    y = (y + fma_f64(y, e.correction, error)) * LOGISTIC_C_f64;
    y = x > 50.0 ? x : y;
    return x == -INF_REAL ? NAN_REAL : y;
}

INL f64 silu_f64(f64 x) { return gate_f64(x, -x, 0); }
#endif

/* log(1 + e^x) for x <= 0: the sum is below 2, so that one comparison splits it and nothing it lost is needed */
INL REAL FN(log1pexp_nonpositive)(REAL x)
{
    FN(scaled) e = FN(exp_nonpositive)(x, 0);
    REAL w = e.mantissa * e.s1 * e.s2;
    b8 upper = w > K(0.41421356f, 0.41421356237309503);
    return FN(log_assemble)(upper ? FN(fma)(w, K(0.5f, 0.5), K(-0.5f, -0.5)) : w, upper ? (REAL)1 : (REAL)0, 0);
}

/* log(1 + e^x): softplus with beta 1 */
INL REAL FN(log1pexp)(REAL x)
{
    REAL positive = x > 0 ? x : (REAL)0;
    return x != x ? x : positive + FN(log1pexp_nonpositive)(-FN(abs)(x));
}

INL REAL FN(logsigmoid)(REAL x)
{
    REAL negative = x < 0 ? x : (REAL)0;
    return x != x ? x : negative - FN(log1pexp_nonpositive)(-FN(abs)(x));
}

INL REAL FN(logaddexp)(REAL a, REAL b)
{
    REAL high = FN(maximum)(a, b);
    REAL y = high + FN(log1pexp_nonpositive)(-FN(abs)(a - b));
    return a == b && FN(abs)(a) == INF_REAL ? a : y;
}

INL REAL FN(xlogy)(REAL x, REAL y) { return y != y ? y : (x == 0 ? (REAL)0 : x * FN(log)(y)); }

/* Near 0 an odd polynomial; from 0.6 on 1 - 2 / (e^2x + 1), whose error shrinks with the small second term. */
INL REAL FN(tanh)(REAL x)
{
    REAL a = FN(abs)(x);
    REAL z = (a * a), e = FN(exp_normal)(2 * (a > K(10.0f, 22.0) ? K(10.0f, 22.0) : a), 0);
    b8 small = a < K(0.6f, 0.6);
#if PRECISION == 32
    REAL q = small ? z * poly_tanh_f32(z) : -2 / (e + 1);
#else
    REAL q = (small ? z * poly_tanh_num_f64(z) : -2) / (small ? poly_tanh_den_f64(z) : e + 1);
#endif
    REAL base = small ? a : 1;
    return x != x ? x : FN(copysign)(FN(fma)(base, q, base), x);
}

/* x tanh(log(1 + e^x)) with w = e^x: for x >= 0 x (1 - 2 / (w^2 + 2 w + 2)), below x w (w + 2) / (w^2 + 2 w + 2), the
 * quotient corrected by its residual */
INL REAL FN(mish)(REAL x)
{
    REAL v = x > K(20.0f, 40.0) ? K(20.0f, 40.0) : x;
    FN(scaled) e = FN(exp_scaled)(v, 0);
    REAL w = (e.mantissa * e.s1) * e.s2;
    REAL t = w + 2, t_lo = w - (t - 2);
    REAL product = (w * t), product_lo = FN(fma)(w, t_lo, FN(product_error)(w, t, product));
    REAL d = product + 2, d_lo = (product - (d - 2)) + product_lo;
    REAL top = x >= 0 ? 2 : t, top_lo = x >= 0 ? 0 : t_lo;
    REAL q = top / d, back = (q * d);
    REAL rest = (((top - back) - FN(product_error)(q, d, back)) + FN(fma)(-q, d_lo, top_lo)) / d;
    REAL factor = x < K(-110.0f, -760.0) ? K(-110.0f, -760.0) : x; /* e's own limit: the product underflows */
    REAL negative = factor * q, error = FN(fma)(factor, rest, FN(product_error)(factor, q, negative));
    negative = (negative + FN(fma)(negative, e.fraction, error)) * e.s1 * e.s2;
    REAL y = x >= 0 ? FN(fma)(-x, q, x) - x * rest : negative;
    return FN(gate_specials)(x, x > K(20.0f, 40.0) ? x : y);
}

/* ---- the error function and the normal distribution ------------------------------------------------------------------------ */

/* below 1 an odd polynomial, above 1 - e^-q(x): the second term is small there and so is its error */
INL REAL FN(erf)(REAL x)
{
    REAL a = FN(abs)(x);
    b8 small = a < K(0.92f, 1.0);
    REAL clipped = a > K(4.0f, 6.0) ? K(4.0f, 6.0) : a;
    REAL large = 1 - FN(exp_normal)(-FN(poly_neg_log_erfc)(clipped), 0);
    REAL y = small ? FN(fma)(a, FN(poly_erf)((clipped * clipped)), a) : large;
    return FN(copysign)(y, x);
}

/* x P(X <= x) of a standard normal X: max(x, 0) less |x| P(X > |x|), which keeps its relative accuracy, so negative x
 * have no cancellation. That term is e^(-x^2 / 2) v P(u) with v = |x| / (|x| + A), u = 2 v - 1; as
 * |x| P(X > |x|) e^(x^2 / 2) is nearly flat, an error in v hardly shows. In double, an odd polynomial serves near 0. */
INL REAL FN(gelu)(REAL x)
{
    REAL a = FN(abs)(x);
#if PRECISION == 32
    /* exp(-a^2 / 2) as in exp_nonpositive, the factor -1/2 in the first product: gelu is bound by the number of operations */
    a = a > 14.5f ? 14.5f : a;
    f32 half = -0.5f * a, square = half * a, lo = product_error_f32(half, a, square);
    f32 v = a / (a + 2.0f), p = poly_tail_f32(fma_f32(v, 2, -1)) * v;
    f32 t = fma_f32(square, LOG2E_REAL, SHIFTER_f32), n = t - SHIFTER_f32;
    f32 r = fma_f32(n, -LN2_HI_REAL, square) + fma_f32(n, -LN2_LO_REAL, lo);
    f32 fraction = fma_f32((r * r), poly_exp_f32(r), r);
    f32 term = fma_f32(p, fraction, p) * from_bits_f32((bits_f32(t) + (127u + 64u)) << 23) * 0x1p-64f;
    return x - (x < 0 ? x : 0) - term; /* NaN at -inf, as in PyTorch */
#else
    REAL near_zero = x * FN(fma)(x, poly_cdf_f64((a * a)), 0.5);
    b8 small = a < 0.5;
    a = a > 39.0 ? 39.0 : a;
    REAL square = (a * a), lo = FN(product_error)(a, a, square);
    REAL v = a / (a + 3.0), P = FN(poly_tail)(FN(fma)(v, 2, -1));
    REAL p = P * v, error = FN(product_error)(P, v, p);
    FN(scaled) e = FN(exp_nonpositive)(-0.5 * square, -0.5 * lo);
    REAL term = (p + FN(fma)(p, e.fraction, error)) * e.s1 * e.s2;
    REAL y = small ? near_zero : (x >= 0 ? x : 0) - term;
    return x != x ? x : FN(gate_specials)(x, y);
#endif
}

/* x sigmoid(2 k x (1 + 0.044715 x^2)), k = sqrt(2 / pi): the exponent is formed in two parts, as e^-w amplifies its
 * error by w */
INL REAL FN(gelu_tanh)(REAL x)
{
    REAL a = FN(abs)(x);
    a = a > K(16.0f, 40.0) ? K(16.0f, 40.0) : a;
#if PRECISION == 32
    f64 wide = (f64)a;
    f64 w = wide * (-1.5957691216057308 + wide * wide * -0.07135481627260025);
    w = x < 0 ? -w : w;
    REAL hi = (f32)w, lo = (f32)(w - (f64)hi);
    return gate_f32(x, hi, lo);
#else
    REAL z = (a * a), z_lo = product_error_f64(a, a, z);
    REAL cubic = (z * -0.07135481627260025), cubic_lo = product_error_f64(z, -0.07135481627260025, cubic);
    cubic_lo = fma_f64(z_lo, -0.07135481627260025, cubic_lo) + fma_f64(z, 6.175149918155315e-19, 9.96930880911092e-17);
    REAL sum = -1.5957691216057308 + cubic;
    REAL big = cubic < -1.5957691216057308 ? cubic : -1.5957691216057308;
    REAL other = cubic < -1.5957691216057308 ? -1.5957691216057308 : cubic;
    REAL sum_lo = ((big - sum) + other) + cubic_lo;
    REAL hi = (a * sum), lo = fma_f64(a, sum_lo, product_error_f64(a, sum, hi));
    return gate_f64(x, x < 0 ? -hi : hi, x < 0 ? -lo : lo);
#endif
}

#undef FN
#undef K
#undef VM_CAT
#undef VM_CAT_
#undef NAN_REAL
#undef INF_REAL
#undef LOG2E_REAL
#undef LN2_HI_REAL
#undef LN2_LO_REAL
