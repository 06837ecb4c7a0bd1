/* Functions that few programs call (nextafter; polygamma and I1, scalar) and powers with a constant exponent. Included by
 * vector_math.h after the functions they use. */
#ifndef TRT_VECTOR_MATH_RARE_H
#define TRT_VECTOR_MATH_RARE_H

/* The neighbour of a towards b: bits count magnitudes, so the next one is one more or one less. */
#define DEFINE_NEXTAFTER(T, U)                                                                                       \
    INL T nextafter_##T(T a, T b)                                                                                    \
    {                                                                                                                \
        U bits = bits_##T(a), step = (a < b) == (a > 0) ? (U)1 : (U)-1;                                              \
        T y = a == 0 ? copysign_##T(from_bits_##T(1), b) : from_bits_##T(bits + step);                               \
        y = a == b ? b : y;                                                                                          \
        return (a != a) | (b != b) ? a + b : y;                                                                      \
    }
DEFINE_NEXTAFTER(f32, u32)
DEFINE_NEXTAFTER(f64, u64)

/* The Hurwitz zeta function sum (q + k)^-s, s > 1, by Euler and Maclaurin: terms up to q + 12, the integral, half a
 * term and corrections B_2j / (2j)! s (s + 1) ... (s + 2j - 2) (q + 12)^(-s - 2j + 1). */
static __attribute__((noinline, unused)) f64 hurwitz_zeta(f64 s, f64 q)
{
    static const f64 bernoulli[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600, 1.0 / 47900160,
        -691.0 / 1307674368000.0, 1.0 / 74724249600.0, -3617.0 / 10670622842880000.0};
    f64 sum = 0;
    if (q <= 0) {
        if (floor(q) == q)
            return INF_f64;
        if (floor(s) != s)
            return NAN_f64;
    }
    f64 shift = q < 0 ? -q : 0;
    if (shift > 1e6)
        return NAN_f64;
    i64 terms = 12 + (i64)shift;
    for (i64 k = 0; k < terms; k++)
        sum += pow(q + (f64)k, -s);
    f64 w = q + (f64)terms, power = pow(w, -s), factor = s * power / w;
    sum += power * w / (s - 1) + 0.5 * power;
    for (int j = 0; j < 8; j++) {
        f64 correction = bernoulli[j] * factor;
        sum += correction;
        factor *= (s + 2 * j + 1) * (s + 2 * j + 2) / (w * w);
    }
    return sum;
}

/* (-1)^(n + 1) n! zeta(n + 1, x) */
INL f64 polygamma_f64(f64 n, f64 x)
{
    if (n == 0)
        return digamma_f64(x);
    f64 value = tgamma(n + 1) * hurwitz_zeta(n + 1, x);
    return fmod(n, 2) == 0 ? -value : value;
}
INL f32 polygamma_f32(f32 n, f32 x) { return (f32)polygamma_f64((f64)n, (f64)x); }

/* The modified Bessel function I1: its power series, whose terms all have one sign, and from 30 on the asymptotic series
 * (Abramowitz and Stegun 9.6.10, 9.7.1). */
static __attribute__((noinline, unused)) f64 special_i1_f64(f64 x)
{
    f64 a = fabs(x), sum, term;
    if (a < 30) {
        f64 quarter = 0.25 * a * a;
        term = 0.5 * a;
        sum = term;
        for (int k = 1; k < 120 && term > sum * 1e-18; k++) {
            term *= quarter / ((f64)k * (k + 1));
            sum += term;
        }
    } else {
        term = 1;
        sum = 1;
        for (int k = 1; k < 24; k++) {
            f64 odd = 2 * k - 1;
            term *= -(4 - odd * odd) / (8 * a * k);
            sum += term;
        }
        f64 half = exp(0.5 * a);
        sum = sum * half / sqrt(6.283185307179586477 * a) * half;
    }
    return x != x ? x : copysign(sum, x);
}
INL f32 special_i1_f32(f32 x) { return (f32)special_i1_f64((f64)x); }

/* x^e where e is one number for the whole loop: a constant e leaves one of these branches */
#define DEFINE_POW_NUMBER(T, ONE)                                                                                    \
    INL T pow_number_##T(T x, T e)                                                                                   \
    {                                                                                                                \
        if (__builtin_constant_p(e == 1) && e == 1)                                                                  \
            return x;                                                                                                \
        if (__builtin_constant_p(e == 2) && e == 2)                                                                  \
            return x * x;                                                                                            \
        if (__builtin_constant_p(e == 3) && e == 3)                                                                  \
            return x * x * x;                                                                                        \
        if (__builtin_constant_p(e == -1) && e == -1)                                                                \
            return ONE / x;                                                                                          \
        if (__builtin_constant_p(e == -2) && e == -2)                                                                \
            return ONE / (x * x);                                                                                    \
        if (__builtin_constant_p(e == -3) && e == -3)                                                                \
            return ONE / (x * x * x);                                                                                \
        if (__builtin_constant_p(e == (T)0.5) && e == (T)0.5)                                                        \
            return sqrt_##T(x);                                                                                      \
        if (__builtin_constant_p(e == (T)-0.5) && e == (T)-0.5)                                                      \
            return ONE / sqrt_##T(x);                                                                                \
        return pow_##T(x, e);                                                                                        \
    }
DEFINE_POW_NUMBER(f32, 1.0f)
DEFINE_POW_NUMBER(f64, 1.0)
#undef DEFINE_POW_NUMBER

/* complex numbers multiply out small whole exponents; integers square anyway */
#define DEFINE_POW_NUMBER_COMPLEX(T)                                                                                 \
    INL T pow_number_##T(T x, T e)                                                                                   \
    {                                                                                                                \
        if (e == (T)1)                                                                                               \
            return x;                                                                                                \
        if (e == (T)2)                                                                                               \
            return mul_##T(x, x);                                                                                    \
        if (e == (T)3)                                                                                               \
            return mul_##T(mul_##T(x, x), x);                                                                        \
        return pow_##T(x, e);                                                                                        \
    }
DEFINE_POW_NUMBER_COMPLEX(c64)
DEFINE_POW_NUMBER_COMPLEX(c128)
#undef DEFINE_POW_NUMBER_COMPLEX

INL u8 pow_number_u8(u8 x, u8 e) { return pow_u8(x, e); }
INL i8 pow_number_i8(i8 x, i8 e) { return pow_i8(x, e); }
INL i16 pow_number_i16(i16 x, i16 e) { return pow_i16(x, e); }
INL i32 pow_number_i32(i32 x, i32 e) { return pow_i32(x, e); }
INL i64 pow_number_i64(i64 x, i64 e) { return pow_i64(x, e); }

#endif
