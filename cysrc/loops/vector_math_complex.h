/* Complex functions. Arithmetic is branch free; the transcendental functions are scalar, follow C99's table of special
 * values through the C library, and evaluate c64 in double, rounded once. Included by vector_math.h. */
#ifndef TRT_VECTOR_MATH_COMPLEX_H
#define TRT_VECTOR_MATH_COMPLEX_H

/* a / b by Smith's method: scaled by the larger part of b, so no intermediate overflows before the result does.
 * Division by zero divides the parts, as PyTorch does. */
#define DEFINE_COMPLEX_ARITHMETIC(C, T)                                                                              \
    INL C sel_##C(b8 condition, C a, C b)                                                                            \
    {                                                                                                                \
        return make_##C(condition ? __real__ a : __real__ b, condition ? __imag__ a : __imag__ b);                   \
    }                                                                                                                \
    INL T real_##C(C z) { return __real__ z; }                                                                       \
    INL T imag_##C(C z) { return __imag__ z; }                                                                       \
    INL C conj_##C(C z) { return make_##C(__real__ z, -__imag__ z); }                                                \
    INL T abs_##C(C z) { return hypot_##T(__real__ z, __imag__ z); }                                                 \
    INL T angle_##C(C z) { return atan2_##T(__imag__ z, __real__ z); }                                               \
    INL b8 isnan_##C(C z) { return (b8)((__real__ z != __real__ z) | (__imag__ z != __imag__ z)); }                  \
    INL b8 isinf_##C(C z) { return isinf_##T(__real__ z) | isinf_##T(__imag__ z); }                                  \
    INL b8 isfinite_##C(C z) { return isfinite_##T(__real__ z) & isfinite_##T(__imag__ z); }                         \
    INL C add_##C(C a, C b) { return make_##C(__real__ a + __real__ b, __imag__ a + __imag__ b); }                   \
    INL C sub_##C(C a, C b) { return make_##C(__real__ a - __real__ b, __imag__ a - __imag__ b); }                   \
    INL C neg_##C(C a) { return make_##C(-__real__ a, -__imag__ a); }                                                \
    INL C mul_##C(C a, C b)                                                                                          \
    {                                                                                                                \
        T re = fma_##T(__real__ a, __real__ b, -(__imag__ a * __imag__ b));                                   \
        T im = fma_##T(__real__ a, __imag__ b, (__imag__ a * __real__ b));                                    \
        return make_##C(re, im);                                                                                     \
    }                                                                                                                \
    INL C div_##C(C a, C b)                                                                                          \
    {                                                                                                                \
        /* near the largest number both operands are scaled: the divisor's sum of squares over its part must fit */    \
        T limit = sizeof(T) == 4 ? (T)0x1p125 : (T)0x1p1021;                                                         \
        T f = abs_##T(__real__ b) > limit || abs_##T(__imag__ b) > limit ? (T)0.25 : (T)1;                           \
        T c = __real__ b * f, d = __imag__ b * f;                                                                    \
        b8 swap = abs_##T(d) > abs_##T(c);                                                                           \
        T big = swap ? d : c, small = swap ? c : d, ratio = small / big, scale = fma_##T(small, ratio, big);         \
        T x = (swap ? __imag__ a : __real__ a) * f, y = (swap ? __real__ a : __imag__ a) * f;                                \
        T re = fma_##T(y, ratio, x) / scale, im = fma_##T(-x, ratio, y) / scale;                                     \
        b8 zero = (b8)((c == 0) & (d == 0));                                                                         \
        re = zero ? __real__ a / abs_##T(c) : re;                                                                    \
        im = zero ? __imag__ a / abs_##T(d) : (swap ? -im : im);                                                     \
        return make_##C(re, im);                                                                                     \
    }                                                                                                                \
    INL C reciprocal_##C(C z) { return div_##C(make_##C(1, 0), z); }                                                 \
    /* z / |z|, 0 at 0 */                                                                                            \
    INL C sign_##C(C z)                                                                                              \
    {                                                                                                                \
        T r = abs_##C(z);                                                                                            \
        return r == 0 ? make_##C(0, 0) : make_##C(__real__ z / r, __imag__ z / r);                                   \
    }
DEFINE_COMPLEX_ARITHMETIC(c64, f32)
DEFINE_COMPLEX_ARITHMETIC(c128, f64)

INL c128 sqrt_c128(c128 z) { return csqrt(z); }
INL c128 exp_c128(c128 z) { return cexp(z); }
INL c128 log_c128(c128 z) { return clog(z); }
INL c128 sin_c128(c128 z) { return csin(z); }
INL c128 cos_c128(c128 z) { return ccos(z); }
INL c128 tan_c128(c128 z) { return ctan(z); }
INL c128 asin_c128(c128 z) { return casin(z); }
INL c128 acos_c128(c128 z) { return cacos(z); }
INL c128 atan_c128(c128 z) { return catan(z); }
INL c128 sinh_c128(c128 z) { return csinh(z); }
INL c128 cosh_c128(c128 z) { return ccosh(z); }
INL c128 tanh_c128(c128 z) { return ctanh(z); }
INL c128 asinh_c128(c128 z) { return casinh(z); }
INL c128 acosh_c128(c128 z) { return cacosh(z); }
INL c128 atanh_c128(c128 z) { return catanh(z); }

INL c128 scale_c128(c128 z, f64 factor) { return make_c128(__real__ z * factor, __imag__ z * factor); }
INL c128 exp2_c128(c128 z) { return cexp(scale_c128(z, LN2_f64)); }
INL c128 log2_c128(c128 z) { return scale_c128(clog(z), 1.44269504088896340736); }
INL c128 log10_c128(c128 z) { return scale_c128(clog(z), 0.43429448190325182765); }

/* e^a cos b - 1 = (e^a - 1) cos b - 2 sin(b / 2)^2: no cancellation near 0 */
INL c128 expm1_c128(c128 z)
{
    f64 a = __real__ z, b = __imag__ z, s = sin(0.5 * b);
    if (b == 0)
        return make_c128(expm1_f64(a), b);
    return make_c128(fma(expm1_f64(a), cos(b), -2 * s * s), exp_f64(a) * sin(b));
}

/* near 0 the real part is log1p(2x + x^2 + y^2) / 2 */
INL c128 log1p_c128(c128 z)
{
    f64 x = __real__ z, y = __imag__ z;
    f64 near_zero = 0.5 * log1p_f64(fma(x, x + 2, y * y));
    f64 far = log_f64(hypot_f64(1 + x, y));
    b8 near = fabs(x) < 0.5 && fabs(y) < 0.5;
    return make_c128(near ? near_zero : far, atan2_f64(y, 1 + x));
}

INL c128 rsqrt_c128(c128 z) { return reciprocal_c128(csqrt(z)); }

/* 1 / (1 + e^-z) by the sign of the real part, so that the exponential does not overflow */
INL c128 sigmoid_c128(c128 z)
{
    b8 positive = __real__ z >= 0;
    c128 e = cexp(positive ? neg_c128(z) : z), one = make_c128(1, 0);
    return div_c128(positive ? one : e, add_c128(one, e));
}

INL c128 silu_c128(c128 z) { return mul_c128(z, sigmoid_c128(z)); }

INL c128 sinc_c128(c128 z)
{
    c128 w = scale_c128(z, PI_HI);
    return __real__ z == 0 && __imag__ z == 0 ? make_c128(1, 0) : div_c128(csin(w), w);
}

INL c128 pow_c128(c128 a, c128 b)
{
    if (__real__ b == 0 && __imag__ b == 0)
        return make_c128(1, 0);
    if (__imag__ b == 0 && __real__ b == 1)
        return a;
    if (__imag__ b == 0 && __real__ b == 2)
        return mul_c128(a, a);
    if (__imag__ b == 0 && __real__ b == 0.5)
        return csqrt(a);
    if (__real__ a == 0 && __imag__ a == 0 && __imag__ b == 0 && __real__ b > 0)
        return make_c128(0, 0);
    return cpow(a, b);
}

INL c128 xlogy_c128(c128 x, c128 y)
{
    return __real__ x == 0 && __imag__ x == 0 && !isnan_c128(y) ? make_c128(0, 0) : mul_c128(x, clog(y));
}

/* log(e^x + e^y) by the one of larger real part, whose imaginary part is not reduced modulo 2 pi */
INL c128 logaddexp_c128(c128 x, c128 y)
{
    b8 swap = __real__ x < __real__ y;
    c128 low = swap ? x : y, high = swap ? y : x;
    if (isnan_c128(x) || isnan_c128(y))
        return make_c128(NAN_f64, NAN_f64);
    if (__real__ low == __real__ high && isinf(__real__ low))
        return __real__ low < 0 ? low : clog(add_c128(cexp(low), cexp(high)));
    return add_c128(high, log1p_c128(cexp(sub_c128(low, high))));
}

#define COMPLEX_FLOAT_VIA_DOUBLE(name)                                                                               \
    INL c64 name##_c64(c64 z)                                                                                        \
    {                                                                                                                \
        c128 w = name##_c128(make_c128(__real__ z, __imag__ z));                                                     \
        return make_c64((f32)__real__ w, (f32)__imag__ w);                                                           \
    }
COMPLEX_FLOAT_VIA_DOUBLE(sqrt)
COMPLEX_FLOAT_VIA_DOUBLE(exp)
COMPLEX_FLOAT_VIA_DOUBLE(log)
COMPLEX_FLOAT_VIA_DOUBLE(sin)
COMPLEX_FLOAT_VIA_DOUBLE(cos)
COMPLEX_FLOAT_VIA_DOUBLE(tan)
COMPLEX_FLOAT_VIA_DOUBLE(asin)
COMPLEX_FLOAT_VIA_DOUBLE(acos)
COMPLEX_FLOAT_VIA_DOUBLE(atan)
COMPLEX_FLOAT_VIA_DOUBLE(sinh)
COMPLEX_FLOAT_VIA_DOUBLE(cosh)
COMPLEX_FLOAT_VIA_DOUBLE(tanh)
COMPLEX_FLOAT_VIA_DOUBLE(asinh)
COMPLEX_FLOAT_VIA_DOUBLE(acosh)
COMPLEX_FLOAT_VIA_DOUBLE(atanh)
COMPLEX_FLOAT_VIA_DOUBLE(exp2)
COMPLEX_FLOAT_VIA_DOUBLE(expm1)
COMPLEX_FLOAT_VIA_DOUBLE(log2)
COMPLEX_FLOAT_VIA_DOUBLE(log10)
COMPLEX_FLOAT_VIA_DOUBLE(log1p)
COMPLEX_FLOAT_VIA_DOUBLE(rsqrt)
COMPLEX_FLOAT_VIA_DOUBLE(sigmoid)
COMPLEX_FLOAT_VIA_DOUBLE(silu)
COMPLEX_FLOAT_VIA_DOUBLE(sinc)

INL c64 pow_c64(c64 a, c64 b)
{
    c128 w = pow_c128(make_c128(__real__ a, __imag__ a), make_c128(__real__ b, __imag__ b));
    return make_c64((f32)__real__ w, (f32)__imag__ w);
}
INL c64 logaddexp_c64(c64 x, c64 y)
{
    c128 w = logaddexp_c128(make_c128(__real__ x, __imag__ x), make_c128(__real__ y, __imag__ y));
    return make_c64((f32)__real__ w, (f32)__imag__ w);
}
INL c64 xlogy_c64(c64 x, c64 y)
{
    c128 w = xlogy_c128(make_c128(__real__ x, __imag__ x), make_c128(__real__ y, __imag__ y));
    return make_c64((f32)__real__ w, (f32)__imag__ w);
}

#endif
