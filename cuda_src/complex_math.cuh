// The functions of the declarations' expressions for complex numbers, as overloads beside scalar_math.cuh's, and real functions that few
// programs call. Inverse functions follow Kahan (Branch Cuts for Complex Elementary Functions, 1987).
#pragma once

#include "complex.cuh"
#include "scalar_math.cuh"

namespace trt {

#define TRT_COMPLEX(name) \
    template <class T>    \
    static __device__ __forceinline__ complex<T> name(complex<T> z)

TRT_COMPLEX(exp) {
    const T scale = exp(z.re);
    if (z.im == 0) return {scale, z.im};
    return {scale * cos(z.im), scale * sin(z.im)};
}
TRT_COMPLEX(log) { return {log(abs(z)), angle(z)}; }
TRT_COMPLEX(log2) { return log(z) * complex<T>(T(1.44269504088896340736)); }
TRT_COMPLEX(log10) { return log(z) * complex<T>(T(0.43429448190325182765)); }
// 2 x + x^2 + y^2 is |1 + z|^2 - 1 without the cancellation of small z.
TRT_COMPLEX(log1p) { return {T(0.5) * log1p(z.re * (T(2) + z.re) + z.im * z.im), atan2(z.im, T(1) + z.re)}; }
TRT_COMPLEX(expm1) {
    const T half = sin(T(0.5) * z.im), grown = expm1(z.re);
    return {grown * cos(z.im) - T(2) * half * half, (grown + T(1)) * sin(z.im)};
}
TRT_COMPLEX(exp2) { return exp(z * complex<T>(T(0.69314718055994530942))); }
TRT_COMPLEX(sqrt) {
    if (z.re == 0 && z.im == 0) return {T(0), z.im};
    if (isinf(z.im)) return {static_cast<T>(INFINITY), z.im};
    // halved first, so that the sum does not overflow
    const T t = sqrt(T(0.5) * abs(z.re) + T(0.5) * abs(z));
    if (!(z.re < 0)) return {t, z.im / (T(2) * t)};
    return {abs(z.im) / (T(2) * t), copysign(t, z.im)};
}
TRT_COMPLEX(reciprocal) { return complex<T>(T(1)) / z; }
TRT_COMPLEX(rsqrt) { return complex<T>(T(1)) / sqrt(z); }
TRT_COMPLEX(square) { return z * z; }
TRT_COMPLEX(sign) {
    const T size = abs(z);
    if (size == 0) return {T(0), T(0)};
    return {z.re / size, z.im / size};
}
TRT_COMPLEX(sinh) { return {sinh(z.re) * cos(z.im), cosh(z.re) * sin(z.im)}; }
TRT_COMPLEX(cosh) { return {cosh(z.re) * cos(z.im), sinh(z.re) * sin(z.im)}; }
TRT_COMPLEX(tanh) {
    if (abs(z.re) > T(20)) return {copysign(T(1), z.re), copysign(T(0), sin(T(2) * z.im))};
    const T scale = T(1) / (cosh(T(2) * z.re) + cos(T(2) * z.im));
    return {sinh(T(2) * z.re) * scale, sin(T(2) * z.im) * scale};
}
TRT_COMPLEX(sin) { return {sin(z.re) * cosh(z.im), cos(z.re) * sinh(z.im)}; }
TRT_COMPLEX(cos) { return {cos(z.re) * cosh(z.im), -sin(z.re) * sinh(z.im)}; }
TRT_COMPLEX(tan) {
    const complex<T> t = tanh(complex<T>(-z.im, z.re));
    return {t.im, -t.re};
}
TRT_COMPLEX(asin) {
    const complex<T> low = sqrt(complex<T>(T(1) - z.re, -z.im)), high = sqrt(complex<T>(T(1) + z.re, z.im));
    return {atan2(z.re, (low * high).re), asinh((conj(low) * high).im)};
}
TRT_COMPLEX(acos) {
    const complex<T> low = sqrt(complex<T>(T(1) - z.re, -z.im)), high = sqrt(complex<T>(T(1) + z.re, z.im));
    return {T(2) * atan2(low.re, high.re), asinh((conj(high) * low).im)};
}
TRT_COMPLEX(acosh) {
    const complex<T> low = sqrt(complex<T>(z.re - T(1), z.im)), high = sqrt(complex<T>(z.re + T(1), z.im));
    return {asinh((conj(low) * high).re), T(2) * atan2(low.im, high.re)};
}
TRT_COMPLEX(asinh) {
    const complex<T> w = asin(complex<T>(-z.im, z.re));
    return {w.im, -w.re};
}
TRT_COMPLEX(atanh) {
    const T below = T(1) - z.re;
    return {T(0.25) * log1p(T(4) * z.re / (below * below + z.im * z.im)), T(0.5) * atan2(T(2) * z.im, below * (T(1) + z.re) - z.im * z.im)};
}
TRT_COMPLEX(atan) {
    const complex<T> w = atanh(complex<T>(-z.im, z.re));
    return {w.im, -w.re};
}
TRT_COMPLEX(sigmoid) { return complex<T>(T(1)) / (complex<T>(T(1)) + exp(-z)); }
TRT_COMPLEX(silu) { return z / (complex<T>(T(1)) + exp(-z)); }
TRT_COMPLEX(sinc) {
    if (z.re == 0 && z.im == 0) return {T(1), T(0)};
    const complex<T> scaled = z * complex<T>(T(3.14159265358979323846));
    return sin(scaled) / scaled;
}
#undef TRT_COMPLEX

template <class T>
static __device__ __forceinline__ bool isinf(complex<T> z) { return isinf(z.re) || isinf(z.im); }
template <class T>
static __device__ __forceinline__ bool isfinite(complex<T> z) { return isfinite(z.re) && isfinite(z.im); }
template <class T>
static __device__ __forceinline__ complex<T> pow(complex<T> z, complex<T> e) {
    if (e.re == 0 && e.im == 0) return {T(1), T(0)};
    if (z.re == 0 && z.im == 0) return e.re > 0 && e.im == 0 ? complex<T>(T(0)) : exp(e * log(z));
    return exp(e * log(z));
}

// By the one of larger real part, whose imaginary part is not reduced modulo 2 pi.
template <class T>
static __device__ __forceinline__ complex<T> logaddexp(complex<T> x, complex<T> y) {
    const bool swap = x.re < y.re;
    const complex<T> low = swap ? x : y, high = swap ? y : x;
    if (isnan(x) || isnan(y)) return {static_cast<T>(NAN), static_cast<T>(NAN)};
    if (low.re == high.re && isinf(low.re)) return low.re < 0 ? low : log(exp(low) + exp(high));
    return high + log1p(exp(low - high));
}

// A power with one exponent for the whole tensor: small whole ones multiply out.
template <class T>
static __device__ __forceinline__ T pow_number(T x, T e) {
    if (e == T(1)) return x;
    if (e == T(2)) return static_cast<T>(x * x);
    if (e == T(3)) return static_cast<T>(x * x * x);
    if constexpr (is_real<T>) {
        if (e == T(-1)) return T(1) / x;
        if (e == T(-2)) return T(1) / (x * x);
        if (e == T(0.5)) return sqrt(x);
        if (e == T(-0.5)) return T(1) / sqrt(x);
    }
    return pow(x, e);
}

static __device__ __forceinline__ f32 nextafter(f32 x, f32 y) { return ::nextafterf(x, y); }
static __device__ __forceinline__ f64 nextafter(f64 x, f64 y) { return ::nextafter(x, y); }

// The neighbour among half types: bits that fall away when rounding, or one unit of the format's last place more or less.
template <class H>
static __device__ __forceinline__ f32 nextafter_half(f32 x, f32 y, H (*from)(unsigned short), unsigned short (*bits)(H)) {
    if (isnan(x) || isnan(y)) return x + y;
    if (x == y) return y;
    const unsigned short sign = signbit(x == 0 ? y : x) ? 0x8000 : 0;
    if (x == 0) return static_cast<f32>(from(sign | 1));
    const unsigned short b = bits(static_cast<H>(x));
    return static_cast<f32>(from((x < y) == (x > 0) ? b + 1 : b - 1));
}
static __device__ __forceinline__ f32 nextafter_f16(f32 x, f32 y) { return nextafter_half<__half>(x, y, __ushort_as_half, __half_as_ushort); }
static __device__ __forceinline__ f32 nextafter_bf16(f32 x, f32 y) { return nextafter_half<__nv_bfloat16>(x, y, __ushort_as_bfloat16, __bfloat16_as_ushort); }

}  // namespace trt
