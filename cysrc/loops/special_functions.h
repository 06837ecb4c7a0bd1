/* Special functions of the operators `special.*`, igamma and polygamma: scalar, one text for every type that it computes in. The includer defines
 *
 *   W         the type: loops compute float32 in double and float64 in the processor's 64-bit mantissas (long double), the device both in double
 *   S(name)   a function's or a table's name for W
 *   K(number) a number with more digits than W has
 *   M(name)   the C library's function for W; power is pow, or what takes its place
 *   FUNCTION  how functions are declared, TABLE(name) the head of an array of W
 *   EPSILON   where series end: below W's last place
 *
 * (special_math.h for the loops, special_math.cuh for the device). Coefficients: special_coefficients.h, written by tools/vmath_check/fit_special.py.
 * Relative errors are some units of W's last place, but for large conditions: near zeros of oscillating functions the error is of the amplitude's
 * last place. Formulas are named after the Digital Library of Mathematical Functions (DLMF). No include guard: included once for each W. */

#include "special_coefficients.h"

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
#define SERIES(table, t) S(chebyshev_series)(S(table), COUNT(S(table)), t)
#define POWERS(table, z) S(power_series)(S(table), COUNT(S(table)), z)
#define PI K(3.14159265358979323846264338328)
#define SQRT_PI K(1.77245385090551602729816748334)
#define SQRT_HALF K(0.707106781186547524400844362105)
#define EULER_GAMMA K(0.577215664901532860606512090082)
#define W_INF ((W)INFINITY)
#define W_NAN ((W)NAN)

/* Clenshaw's recurrence */
FUNCTION W S(chebyshev_series)(const W *c, int count, W t)
{
    W next = 0, after = 0;
    for (int k = count - 1; k > 0; k--) {
        W current = 2 * t * next + (c[k] - after);
        after = next;
        next = current;
    }
    return t * next + (c[0] - after);
}

FUNCTION W S(power_series)(const W *c, int count, W z)
{
    W sum = 0;
    for (int k = count - 1; k >= 0; k--)
        sum = sum * z + c[k];
    return sum;
}

/* ---- modified Bessel functions: power series, then Chebyshev series of what is left beside the exponential and the root ---- */

/* e^-|x| I(x) of order 0 or 1 */
FUNCTION W S(bessel_i_scaled)(W x, int order)
{
    W a = M(fabs)(x), y;
    if (a < 8)
        y = M(exp)(-a) * (order ? K(0.5) * a * POWERS(i1_series, a * a / 4) : POWERS(i0_series, a * a / 4));
    else
        y = (order ? SERIES(i1_far, 16 / a - 1) : SERIES(i0_far, 16 / a - 1)) / M(sqrt)(a);
    return x != x ? x : order && x < 0 ? -y : y;
}

FUNCTION W S(bessel_i)(W x, int order)
{
    W a = M(fabs)(x), y;
    if (a < 8)
        y = order ? K(0.5) * a * POWERS(i1_series, a * a / 4) : POWERS(i0_series, a * a / 4);
    else if (a > 12000)
        y = W_INF;
    else /* e^a in two steps: it overflows before the product */
        y = (order ? SERIES(i1_far, 16 / a - 1) : SERIES(i0_far, 16 / a - 1)) / M(sqrt)(a) * M(exp)(a / 2) * M(exp)(a / 2);
    return x != x ? x : order && x < 0 ? -y : y;
}

/* K of order 0 or 1, times e^x where scaled (DLMF 10.31.1, 10.31.2 up to 2) */
FUNCTION W S(bessel_k)(W x, int order, int scaled)
{
    if (!(x >= 0))
        return W_NAN;
    if (x == 0)
        return W_INF;
    if (x > 2) {
        W far = (order ? SERIES(k1_far, 4 / x - 1) : SERIES(k0_far, 4 / x - 1)) / M(sqrt)(x);
        return scaled ? far : far * M(exp)(-x);
    }
    W z = x * x / 4, l = M(log)(x / 2), near;
    if (order)
        near = 1 / x + l * (x / 2) * POWERS(i1_series, z) - x / 4 * POWERS(k1_series, z);
    else
        near = POWERS(k0_series, z) - (l + EULER_GAMMA) * POWERS(i0_series, z);
    return scaled ? near * M(exp)(x) : near;
}

/* ---- Bessel functions: Chebyshev series up to 8, from there on modulus and phase (DLMF 10.17) ------------------------- */

FUNCTION W S(bessel_j0_near)(W a)
{
    W first = ((a - J0_ZERO_1_HI) - J0_ZERO_1_LO) * (a + J0_ZERO_1_HI + J0_ZERO_1_LO);
    W second = ((a - J0_ZERO_2_HI) - J0_ZERO_2_LO) * (a + J0_ZERO_2_HI + J0_ZERO_2_LO);
    return first * second * SERIES(j0_near, a * a / 32 - 1);
}

FUNCTION W S(bessel_j1_near)(W a)
{
    W first = ((a - J1_ZERO_1_HI) - J1_ZERO_1_LO) * (a + J1_ZERO_1_HI + J1_ZERO_1_LO);
    W second = ((a - J1_ZERO_2_HI) - J1_ZERO_2_LO) * (a + J1_ZERO_2_HI + J1_ZERO_2_LO);
    return first * second * SERIES(j1_near, a * a / 32 - 1) * a;
}

/* J (kind 0) or Y (kind 1) from 8 on: the phase is a less an odd multiple of pi / 4, whose sine and cosine are sums of those of a */
FUNCTION W S(bessel_far)(W a, int order, int kind)
{
    if (a - a != 0)
        return a == a ? 0 : a;
    W t = 128 / a / a - 1, s = M(sin)(a), c = M(cos)(a);
    W p = order ? SERIES(p1, t) : SERIES(p0, t), q = (order ? SERIES(q1, t) : SERIES(q0, t)) / a;
    W cosine = order ? s - c : c + s, sine = order ? -(s + c) : s - c;
    return (kind ? p * sine + q * cosine : p * cosine - q * sine) / M(sqrt)(PI * a);
}

FUNCTION W S(bessel_j)(W x, int order)
{
    W a = M(fabs)(x), y;
    if (a < 8)
        y = order ? S(bessel_j1_near)(a) : S(bessel_j0_near)(a);
    else
        y = S(bessel_far)(a, order, 0);
    return order && x < 0 ? -y : y;
}

FUNCTION W S(bessel_y)(W x, int order)
{
    if (!(x >= 0))
        return W_NAN;
    if (x == 0)
        return -W_INF;
    if (x >= 8)
        return S(bessel_far)(x, order, 1);
    W t = x * x / 32 - 1, l = M(log)(x);
    if (order)
        return x * SERIES(y1_near, t) + 2 / PI * (l * S(bessel_j1_near)(x) - 1 / x);
    return SERIES(y0_near, t) + 2 / PI * l * S(bessel_j0_near)(x);
}

FUNCTION W S(spherical_bessel_j0)(W x)
{
    return x == 0 ? 1 : x - x != 0 ? (x == x ? 0 : x) : M(sin)(x) / x;
}

/* DLMF 9.7.5 and 9.7.9 as Chebyshev series in 1 / zeta, zeta = 2 / 3 |x|^(3 / 2), and one between */
FUNCTION W S(airy_ai)(W x)
{
    if (x - x != 0)
        return x == x ? 0 : x;
    W z = M(fabs)(x), root = M(sqrt)(z);
    if (x > 2) {
        W zeta = 2 * x * root / 3;
        return SERIES(airy_decay, K(3.5) / zeta - 1) * M(exp)(-zeta) / (2 * SQRT_PI * M(sqrt)(root));
    }
    if (x >= K(-4.5))
        return SERIES(airy_middle, (x + K(1.25)) / K(3.25));
    /* zeta in two parts: its rounding error would be one of the angle */
    W low = M(fma)(-root, root, z) / (2 * root), product = z * root, zeta = 2 * product / 3;
    low = (M(fma)(-3, zeta, 2 * product) + 2 * (M(fma)(z, root, -product) + z * low)) / 3;
    W s = M(sin)(zeta), c = M(cos)(zeta), sine = s + low * c, cosine = c - low * s, t = 72 / zeta / zeta - 1;
    if (M(fabs)(low) > K(1e-9)) {
        /* far out it is no small angle: the sums above would leave the unit circle */
        W low_s = M(sin)(low), low_c = M(cos)(low);
        sine = s * low_c + c * low_s;
        cosine = c * low_c - s * low_s;
    }
    W p = SERIES(airy_p, t), q = SERIES(airy_q, t) / zeta;
    return (p * (sine + cosine) - q * (cosine - sine)) * SQRT_HALF / (SQRT_PI * M(sqrt)(root));
}

/* ---- error function and normal distribution ------------------------------------------------------------------------------ */

FUNCTION W S(erfcx)(W x)
{
    if (x < 0)
        return 2 * M(exp)(x * x) - S(erfcx)(-x);
    if (x > K(1e12)) /* 1 / (x sqrt(pi)) (1 - 1 / (2 x^2) + ...) */
        return 1 / (x * SQRT_PI);
    return SERIES(erfcx_series, (x - 2) / (x + 2)) / (x + 2);
}

FUNCTION W S(ndtr)(W x) { return K(0.5) * M(erfc)(-x * SQRT_HALF); }

FUNCTION W S(log_ndtr)(W x)
{
    if (x < -1)
        return M(log)(S(erfcx)(-x * SQRT_HALF) / 2) - x * x / 2;
    return M(log1p)(K(-0.5) * M(erfc)(x * SQRT_HALF));
}

/* Abramowitz and Stegun 26.2.23, to 4.5e-4, then two steps of Halley's method */
FUNCTION W S(ndtri)(W y)
{
    if (!(y > 0 && y < 1))
        return y == 0 ? -W_INF : y == 1 ? W_INF : W_NAN;
    W p = y <= K(0.5) ? y : 1 - y, t = M(sqrt)(-2 * M(log)(p));
    W x = t - (K(2.515517) + t * (K(0.802853) + t * K(0.010328))) / (1 + t * (K(1.432788) + t * (K(0.189269) + t * K(0.001308))));
    for (int step = 0; step < 2; step++) {
        W excess = p > K(0.25) ? (K(0.5) - p) - K(0.5) * M(erf)(x * SQRT_HALF) : K(0.5) * M(erfc)(x * SQRT_HALF) - p;
        W newton = excess / (M(exp)(-x * x / 2) * SQRT_HALF / SQRT_PI);
        x += newton / (1 - K(0.5) * newton * x);
    }
    return y < K(0.5) ? -x : x; /* 0 at one half */
}

/* ---- incomplete gamma functions (DLMF 8.7, 8.9, 8.12) ------------------------------------------------------------------------ */

/* log(1 + mu) - mu for x = a (1 + mu) */
FUNCTION W S(log_less)(W x, W a)
{
    W mu = (x - a) / a;
    if (mu < K(-0.4) || mu > K(0.6))
        return M(log)(x / a) - mu;
    /* log(1 + mu) = 2 atanh(r), and 2 r - mu = -mu r */
    W r = mu / (2 + mu), z = r * r, sum = 0;
    for (int k = 19; k >= 1; k--)
        sum = sum * z + K(1.0) / (2 * k + 1);
    return 2 * r * z * sum - mu * r;
}

/* x^a e^-x / Gamma(a + 1) */
FUNCTION W S(gamma_factor)(W a, W x)
{
    if (a < 16)
        return M(exp)(a * M(log)(x) - x - M(lgamma)(a + 1));
    W correction = POWERS(stirling, 1 / (a * a)) / a;
    return M(exp)(a * S(log_less)(x, a) - correction) / M(sqrt)(2 * PI * a);
}

/* a large and x near it: the normal distribution's tail and a correction in powers of 1 / a */
FUNCTION W S(gamma_uniform)(W a, W x, int upper)
{
    W half_square = -S(log_less)(x, a), eta = M(sqrt)(2 * half_square), power = 1, sum = 0;
    eta = x < a ? -eta : eta;
    const int columns = COUNT(S(temme)) / 7;
    for (int k = 0; k < 7; k++) {
        sum += power * S(power_series)(S(temme) + k * columns, columns, eta);
        power /= a;
    }
    W tail = M(sqrt)(a * half_square), rest = M(exp)(-a * half_square) * sum / M(sqrt)(2 * PI * a);
    tail = (x < a) == (upper != 0) ? -tail : tail;
    return K(0.5) * M(erfc)(tail) + (upper ? rest : -rest);
}

FUNCTION W S(gamma_series)(W a, W x)
{
    W term = 1, sum = 1;
    for (int n = 1; n < 100000 && term > sum * EPSILON; n++) {
        term *= x / (a + n);
        sum += term;
    }
    return sum * S(gamma_factor)(a, x);
}

/* Lentz's evaluation of the continued fraction */
FUNCTION W S(gamma_fraction)(W a, W x)
{
    W b = x + 1 - a, c = K(1e300), d = 1 / b, h = d;
    for (int n = 1; n < 100000; n++) {
        W numerator = -n * (n - a);
        b += 2;
        d = 1 / (numerator * d + b);
        c = b + numerator / c;
        W factor = d * c;
        h *= factor;
        if (M(fabs)(factor - 1) < EPSILON)
            break;
    }
    return h * a * S(gamma_factor)(a, x);
}

/* Q for a <= 1 and small x, where 1 - P would cancel */
FUNCTION W S(gamma_small)(W a, W x)
{
    W logarithm = a * M(log)(x) - a * SERIES(lgamma1p, 2 * a - 1), term = 1, sum = 0;
    for (int n = 1; n < 60; n++) {
        term *= -x / n;
        sum += term / (a + n);
    }
    return -M(expm1)(logarithm) - M(exp)(logarithm) * a * sum;
}

/* Q(a, x) where upper, else P(a, x) */
FUNCTION W S(incomplete_gamma)(W a, W x, int upper)
{
    if (!(a >= 0 && x >= 0))
        return W_NAN;
    if (a == 0)
        return x > 0 ? !upper : W_NAN;
    if (x == 0)
        return upper;
    if (a == W_INF)
        return x == W_INF ? W_NAN : upper;
    if (x == W_INF)
        return !upper;
    if (a > 1000 && M(fabs)(x - a) < K(0.5) * a)
        return S(gamma_uniform)(a, x, upper);
    if (a <= 1 && x < K(1.5))
        return upper ? S(gamma_small)(a, x) : S(gamma_series)(a, x);
    if (x <= a + 1)
        return upper ? 1 - S(gamma_series)(a, x) : S(gamma_series)(a, x);
    return upper ? S(gamma_fraction)(a, x) : 1 - S(gamma_fraction)(a, x);
}

/* ---- zeta and polygamma ---------------------------------------------------------------------------------------------------- */

/* The Hurwitz zeta function sum (q + k)^-s, s > 1, by Euler and Maclaurin (DLMF 25.11.5) */
FUNCTION W S(zeta)(W s, W q)
{
    if (s != s || q != q || s < 1)
        return W_NAN;
    if (s == 1)
        return W_INF;
    if (q <= 0) {
        if (M(floor)(q) == q)
            return W_INF;
        if (M(floor)(s) != s || q < -1000000)
            return W_NAN;
    }
    W sum = 0, lost = 0, w = q, w_lost = 0, enough = 10 + s; /* what the rounding of sums and of q + k took */
    while (w < enough) {
        W term = M(power)(w, -s), next = sum + term, part = next - sum;
        lost += (sum - (next - part)) + (term - part) - s * term * (w_lost / w);
        sum = next;
        if (w > 0 && !(term > M(fabs)(sum) * EPSILON)) /* also where infinities of both signs met */
            return lost - lost == 0 ? sum + lost : sum;
        next = w + 1;
        part = next - w;
        w_lost += (w - (next - part)) + (1 - part);
        w = next;
    }
    W last = M(power)(w, -s);
    if (last != 0) {
        last -= s * last * (w_lost / w);
        W factor = s * last / w, tail = last / 2;
        for (int j = 0; j < COUNT(S(bernoulli)); j++) {
            tail += S(bernoulli)[j] * factor;
            factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (w * w);
        }
        const W product = last * w, integral = product / (s - 1), next = sum + integral, part = next - sum;
        lost += (M(fma)(last, w, -product) + M(fma)(-integral, s - 1, product)) / (s - 1) + (sum - (next - part)) + (integral - part) + tail;
        sum = next;
    }
    return lost - lost == 0 ? sum + lost : sum;
}

/* zeta(2, x), x > 0: the recurrence up to 12, then the asymptotic series (DLMF 5.15.8), of which the next term is below 3e-18 */
FUNCTION W S(trigamma)(W x)
{
    W sum = 0;
    for (; x < 12; x += 1)
        sum += 1 / (x * x);
    const W r = 1 / x, z = r * r;
    const W series = K(1.0) / 6 - z * (K(1.0) / 30 - z * (K(1.0) / 42 - z * (K(1.0) / 30 - z * (K(5.0) / 66 - z * (K(691.0) / 2730 - z * (K(7.0) / 6 - z * (K(3617.0) / 510)))))));
    return sum + (r + z / 2 + z * r * series);
}

/* (-1)^(n + 1) n! zeta(n + 1, x) for n >= 1 */
FUNCTION W S(polygamma)(W n, W x)
{
    if (n == 1 && x > 0)
        return S(trigamma)(x);
    if (n == 1 && x < K(-0.5)) {
        W sine = M(sin)(PI * (x - M(floor)(x + K(0.5))));
        return PI / sine * (PI / sine) - S(trigamma)(1 - x);
    }
    W factorial = 1;
    for (W k = 2; k <= n && factorial < W_INF; k += 1)
        factorial *= k;
    W value = factorial * S(zeta)(n + 1, x);
    return n - 2 * M(floor)(n / 2) == 0 ? -value : value;
}

/* ---- derivatives of samples by their shapes ---------------------------------------------------------------------------------

 * A sample x of a distribution F(x; a) moves by dx = -(dF/da) / f(x) da where its quantile is held. dF/da is an integral of the density times log(t) less its
 * mean; the side of x is taken on which that keeps its sign, so that nothing cancels, and integrated over panels that double from the integrand's
 * narrowest feature (peaks, powers and exponentials are smooth on such a panel) by Gauss's rule of 12 nodes. */
TABLE(gauss_nodes) = {
    K(0.125233408511468915472441), K(0.367831498998180193752692), K(0.587317954286617447296702),
    K(0.769902674194304687036894), K(0.904117256370474856678466), K(0.981560634246719250690549)};
TABLE(gauss_weights) = {
    K(0.249147045813402785000562), K(0.23349253653835480876085), K(0.203167426723065921749064),
    K(0.160078328543346226334653), K(0.106939325995318430960255), K(0.047175336386511827194616)};

/* digamma(a) - log(a), a > 0: the recurrence up to 16, then the asymptotic series (DLMF 5.11.2) */
FUNCTION W S(digamma_less_log)(W a)
{
    W b = a, sum = 0;
    for (; b < 16; b += 1)
        sum += 1 / b;
    const W z = 1 / (b * b);
    const W series = z * (K(1.0) / 12 - z * (K(1.0) / 120 - z * (K(1.0) / 252 - z * (K(1.0) / 240 - z * (K(1.0) / 132 - z * (K(691.0) / 32760 - z / 12))))));
    return (b == a ? 0 : M(log)(b / a) - sum) - 1 / (2 * b) - series;
}

/* log(x / y) */
FUNCTION W S(log_quotient)(W x, W y)
{
    return M(fabs)(x - y) < y / 2 ? M(log1p)((x - y) / y) : M(log)(x) - M(log)(y);
}

/* The integral from 0 up of e^(growth q(w) - decay w) (lift + s(w)) with, by kind:
 *   0, gamma above x:  q = s = log(1 + w)
 *   1, gamma below x:  q = 1 - e^-w, s = w
 *   2, beta above x:   q = s = log(1 + odds (1 - e^-w))
 *   3, beta below x:   q the same, s = w */
FUNCTION W S(slope_integral)(int kind, W growth, W decay, W odds, W lift, W reach)
{
    W from = 0, sum = 0;
    for (int panel = 0; panel < 3000; panel++) {
        W part = 0;
        for (int k = 0; k < 12; k++) {
            const int half = k / 2;
            const W w = from + reach * (K(0.5) + (k % 2 ? K(0.5) : K(-0.5)) * S(gauss_nodes)[half]);
            const W q = kind == 0 ? M(log1p)(w) : kind == 1 ? -M(expm1)(-w) : M(log1p)(-odds * M(expm1)(-w));
            part += S(gauss_weights)[half] * M(exp)(growth * q - decay * w) * (lift + (kind % 2 ? w : q));
        }
        part *= reach / 2;
        sum += part;
        if (!(part > sum * EPSILON))
            break;
        from += reach;
        if (panel > 0)
            reach = from;
    }
    return sum;
}

/* Of a gamma distribution of shape a and rate 1 */
FUNCTION W S(gamma_slope)(W a, W x)
{
    if (!(a > 0 && x >= 0) || a == W_INF || x == W_INF)
        return W_NAN;
    if (x == 0)
        return 0;
    const W lift = S(log_quotient)(x, a) - S(digamma_less_log)(a), reach = 1 / (1 + M(fabs)(a - x) + M(sqrt)(x));
    return x * (lift > 0 ? S(slope_integral)(0, a - 1, x, 0, lift, reach) : S(slope_integral)(1, x, a, 0, -lift, reach));
}

/* Of the first of two coordinates with a Dirichlet distribution of shapes a and b = total - a (a beta distribution), divided by 1 - x; x beside 0 and 1 are taken
 * as their neighbours */
FUNCTION W S(beta_slope)(W x, W a, W total)
{
    const W b = total - a;
    if (!(a > 0 && b > 0) || total == W_INF || !(x >= 0 && x <= 1))
        return W_NAN;
    x = x < K(1e-300) ? K(1e-300) : x > 1 - K(0x1p-53) ? 1 - K(0x1p-53) : x;
    const W lift = S(log_quotient)(x, a / total) - S(digamma_less_log)(a) + S(digamma_less_log)(total);
    const W odds = lift > 0 ? (1 - x) / x : x / (1 - x), growth = (lift > 0 ? a : b) - 1, decay = lift > 0 ? b : a;
    const W reach = 1 / (1 + odds + M(fabs)(growth * odds - decay) + M(sqrt)(M(fabs)(growth) * odds * (1 + odds)));
    return lift > 0 ? S(slope_integral)(2, growth, decay, odds, lift, reach) : odds * S(slope_integral)(3, growth, decay, odds, -lift, reach);
}

/* ---- orthogonal polynomials by their recurrences (DLMF 18.9), the degree cut to an integer ------------------------------ */

/* -1: no polynomial, whose value is 0 */
FUNCTION long long S(degree_of)(W n) { return n > -1 && n < K(9.2e18) ? (long long)n : -1; }

/* Of the first to fourth kind (T, U, V, W: kind 0 to 3); high degrees by angles, circular or hyperbolic */
FUNCTION W S(chebyshev_polynomial)(W x, W degree, int kind)
{
    const long long n = S(degree_of)(degree);
    if (n <= 0 || x != x)
        return n < 0 ? 0 : n == 0 ? 1 : x;
    const W sign = x > 0 || n % 2 == 0 ? 1 : -1, a = M(fabs)(x);
    if (a == 1)
        return sign * (kind == 0 ? 1 : kind == 1 ? (W)n + 1 : (kind == 2) == (x > 0) ? 1 : 2 * (W)n + 1);
    if (a < 1 && n > 8) {
        W theta = M(acos)(x), whole = (kind == 1 ? (W)n + 1 : kind ? (W)n + K(0.5) : (W)n) * theta;
        return kind == 0 ? M(cos)(whole) : kind == 1 ? M(sin)(whole) / M(sin)(theta) : kind == 2 ? M(cos)(whole) / M(cos)(theta / 2) : M(sin)(whole) / M(sin)(theta / 2);
    }
    if (a > 1 && n > 1000) { /* V(-x) = +-W(x) */
        W theta = M(acosh)(a), whole = (kind == 1 ? (W)n + 1 : kind ? (W)n + K(0.5) : (W)n) * theta;
        if (whole > 12000 || theta == W_INF)
            return sign * W_INF;
        if (kind == 0 || (kind == 2) == (x > 0 && kind != 1))
            return sign * M(cosh)(whole) / (kind ? M(cosh)(theta / 2) : 1);
        return sign * M(sinh)(whole) / M(sinh)(kind == 1 ? theta : theta / 2);
    }
    W before = 1, current = kind == 0 ? x : kind == 1 ? 2 * x : kind == 2 ? 2 * x - 1 : 2 * x + 1;
    for (long long k = 1; k < n; k++) {
        W next = 2 * x * current - before;
        before = current;
        current = next;
    }
    return current == current ? current : sign * W_INF;
}

/* H (scale 2) or He (scale 1); NaN above a degree that the result's type hardly holds */
FUNCTION W S(hermite_polynomial)(W x, W degree, int scale, int limit)
{
    const long long n = S(degree_of)(degree);
    if (n <= 0)
        return n < 0 ? 0 : 1;
    if (n > limit)
        return W_NAN;
    W before = 1, current = scale * x;
    for (long long k = 1; k < n && current - current == 0; k++) {
        W next = scale * (x * current - k * before);
        before = current;
        current = next;
    }
    return current - current == 0 || x != x ? current : x > 0 || n % 2 == 0 ? W_INF : -W_INF;
}

/* Recurrences of n steps that nothing shortens: NaN above 2^24 */
FUNCTION W S(laguerre_polynomial)(W x, W degree)
{
    const long long n = S(degree_of)(degree);
    if (n <= 0 || x == 0)
        return n < 0 ? 0 : 1;
    if (n > 16777216)
        return W_NAN;
    W before = 1, current = 1 - x;
    for (long long k = 1; k < n && current - current == 0; k++) {
        W next = ((2 * k + 1 - x) * current - k * before) / (k + 1);
        before = current;
        current = next;
    }
    return current - current == 0 || x != x ? current : x < 0 || n % 2 == 0 ? W_INF : -W_INF;
}

FUNCTION W S(legendre_polynomial)(W x, W degree)
{
    const long long n = S(degree_of)(degree);
    if (n <= 0)
        return n < 0 ? 0 : 1;
    const W sign = x > 0 || n % 2 == 0 ? 1 : -1;
    if (x == 1 || x == -1)
        return sign;
    if (n > 16777216)
        return W_NAN;
    W before = 1, current = x;
    for (long long k = 1; k < n && current - current == 0; k++) {
        W next = ((2 * k + 1) * x * current - k * before) / (k + 1);
        before = current;
        current = next;
    }
    return current - current == 0 || x != x ? current : sign * W_INF;
}

#undef COUNT
#undef SERIES
#undef POWERS
#undef PI
#undef SQRT_PI
#undef SQRT_HALF
#undef EULER_GAMMA
#undef W_INF
#undef W_NAN
