// Scalar functions of the declarations' expressions, for device code: one name for every dtype. An expression such as
// `1 / (1 + exp(-x))` is compiled inside namespace trt, where these overloads are found before the C library's,
// whose unsuffixed names would compute float in double. Half types never arrive here: kernels compute them in float.
//
// Semantics are PyTorch's where C's differ: remainder takes the divisor's sign, maximum and minimum propagate NaN,
// round goes to even, sign(0) is 0, integer division by zero gives 0 instead of undefined behaviour.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <math.h>

namespace trt {

#define TRT_DEVICE static __device__ __forceinline__

// name(float) -> C's namef, name(double) -> C's name. Integer arguments compute in float, as PyTorch's do.
#define TRT_UNARY(name, c_name)                                                     \
    TRT_DEVICE float name(float x) { return ::c_name##f(x); }                       \
    TRT_DEVICE double name(double x) { return ::c_name(x); }

TRT_UNARY(exp, exp)
TRT_UNARY(exp2, exp2)
TRT_UNARY(expm1, expm1)
TRT_UNARY(log, log)
TRT_UNARY(log2, log2)
TRT_UNARY(log10, log10)
TRT_UNARY(log1p, log1p)
TRT_UNARY(sin, sin)
TRT_UNARY(cos, cos)
TRT_UNARY(tan, tan)
TRT_UNARY(asin, asin)
TRT_UNARY(acos, acos)
TRT_UNARY(atan, atan)
TRT_UNARY(sinh, sinh)
TRT_UNARY(cosh, cosh)
TRT_UNARY(tanh, tanh)
TRT_UNARY(asinh, asinh)
TRT_UNARY(acosh, acosh)
TRT_UNARY(atanh, atanh)
TRT_UNARY(erf, erf)
TRT_UNARY(erfc, erfc)
TRT_UNARY(lgamma, lgamma)
TRT_UNARY(sqrt, sqrt)
TRT_UNARY(rsqrt, rsqrt)
TRT_UNARY(ceil, ceil)
TRT_UNARY(floor, floor)
TRT_UNARY(trunc, trunc)
TRT_UNARY(round, rint)  // ties to even
#undef TRT_UNARY

template <class T>
struct is_real { static constexpr bool value = false; };
template <>
struct is_real<float> { static constexpr bool value = true; };
template <>
struct is_real<double> { static constexpr bool value = true; };

TRT_DEVICE bool isnan(float x) { return x != x; }
TRT_DEVICE bool isnan(double x) { return x != x; }
TRT_DEVICE bool isinf(float x) { return ::fabsf(x) == static_cast<float>(INFINITY); }
TRT_DEVICE bool isinf(double x) { return ::fabs(x) == static_cast<double>(INFINITY); }
TRT_DEVICE bool isfinite(float x) { return ::fabsf(x) < static_cast<float>(INFINITY); }
TRT_DEVICE bool isfinite(double x) { return ::fabs(x) < static_cast<double>(INFINITY); }
template <class T>
TRT_DEVICE bool isnan(T) { return false; }
template <class T>
TRT_DEVICE bool isinf(T) { return false; }
template <class T>
TRT_DEVICE bool isfinite(T) { return true; }

TRT_DEVICE float abs(float x) { return ::fabsf(x); }
TRT_DEVICE double abs(double x) { return ::fabs(x); }
template <class T>
TRT_DEVICE T abs(T x) { return x < T(0) ? static_cast<T>(T(0) - x) : x; }

// NaN compares false both ways and gives 0, as PyTorch's sign does.
template <class T>
TRT_DEVICE T sign(T x) { return static_cast<T>((T(0) < x) - (x < T(0))); }

template <class T>
TRT_DEVICE T square(T x) { return x * x; }
template <class T>
TRT_DEVICE T reciprocal(T x) { return T(1) / x; }

template <class T>
TRT_DEVICE T maximum(T x, T y) { return isnan(x) || y < x ? x : y; }
template <class T>
TRT_DEVICE T minimum(T x, T y) { return isnan(x) || x < y ? x : y; }
template <class T>
TRT_DEVICE T clamp(T x, T low, T high) { return isnan(x) ? x : minimum(maximum(x, low), high); }

TRT_DEVICE float atan2(float y, float x) { return ::atan2f(y, x); }
TRT_DEVICE double atan2(double y, double x) { return ::atan2(y, x); }
TRT_DEVICE float hypot(float x, float y) { return ::hypotf(x, y); }
TRT_DEVICE double hypot(double x, double y) { return ::hypot(x, y); }
TRT_DEVICE float copysign(float x, float y) { return ::copysignf(x, y); }
TRT_DEVICE double copysign(double x, double y) { return ::copysign(x, y); }
TRT_DEVICE float fmod(float x, float y) { return ::fmodf(x, y); }
TRT_DEVICE double fmod(double x, double y) { return ::fmod(x, y); }
TRT_DEVICE float pow(float x, float y) { return ::powf(x, y); }
TRT_DEVICE double pow(double x, double y) { return ::pow(x, y); }

// Dividing the smallest value of a type by -1 overflows; negation in unsigned arithmetic wraps to the same value.
template <class T>
TRT_DEVICE T trunc_divide(T x, T y) {
    if (y == T(0)) return T(0);
    return T(0) - T(1) < T(0) && y == static_cast<T>(-1) ? static_cast<T>(0ull - static_cast<unsigned long long>(x))
                                                         : static_cast<T>(x / y);
}
template <class T>
TRT_DEVICE T fmod(T x, T y) {
    if (y == T(0) || (T(0) - T(1) < T(0) && y == static_cast<T>(-1))) return T(0);
    return static_cast<T>(x % y);
}
template <class T>
TRT_DEVICE T remainder(T x, T y) {
    T r = fmod(x, y);
    return r != T(0) && (r < T(0)) != (y < T(0)) ? static_cast<T>(r + y) : r;
}
template <class T>
TRT_DEVICE T floor_divide(T x, T y) {
    T q = trunc_divide(x, y);
    return y != T(0) && (x < T(0)) != (y < T(0)) && static_cast<T>(q * y) != x ? static_cast<T>(q - 1) : q;
}
// CPython's division: the quotient of the exact remainder, so that x == floor_divide(x, y) * y + remainder(x, y).
template <class T>
TRT_DEVICE T floor_divide_real(T x, T y) {
    if (y == T(0)) return x / y;
    T r = fmod(x, y), quotient = (x - r) / y;
    if (r != T(0) && (y < T(0)) != (r < T(0))) quotient -= T(1);
    if (quotient == T(0)) return copysign(T(0), x / y);
    T floored = floor(quotient);
    return quotient - floored > T(0.5) ? floored + T(1) : floored;
}
TRT_DEVICE float floor_divide(float x, float y) { return floor_divide_real(x, y); }
TRT_DEVICE double floor_divide(double x, double y) { return floor_divide_real(x, y); }
TRT_DEVICE float trunc_divide(float x, float y) { return ::truncf(x / y); }
TRT_DEVICE double trunc_divide(double x, double y) { return ::trunc(x / y); }

// Repeated squaring; the exponent is not negative, and overflow wraps as in PyTorch.
template <class T>
TRT_DEVICE T pow(T x, T y) {
    static_assert(!is_real<T>::value, "real pow is overloaded");
    unsigned long long base = static_cast<unsigned long long>(x), result = 1;
    for (unsigned long long e = static_cast<unsigned long long>(y); e; e >>= 1, base *= base) {
        if (e & 1) result *= base;
    }
    return static_cast<T>(result);
}

template <class T>
TRT_DEVICE T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <class T>
TRT_DEVICE T relu(T x) { return isnan(x) || T(0) < x ? x : T(0); }
template <class T>
TRT_DEVICE T softplus(T x) { return maximum(x, T(0)) + log1p(exp(-abs(x))); }

#undef TRT_DEVICE

}  // namespace trt
