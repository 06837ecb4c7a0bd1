// Scalar functions of the declarations' expressions, for device code: the names of cysrc/loops/vector_math.h without its
// type suffixes, as overloads. An expression such as `1 / (1 + exp(-x))` is compiled inside namespace trt, where these
// are found before the C library's, whose unsuffixed names would compute float in double. Half types never arrive
// here: kernels compute them in float.
//
// Semantics are PyTorch's where C's differ: remainder takes the divisor's sign, maximum and minimum propagate NaN,
// round goes to even, sign(NaN) is 0. Integer arithmetic wraps, and integer division by zero gives 0.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "c_math.cuh"

namespace trt {

using b8 = bool;
using u8 = unsigned char;
using i8 = signed char;
using i16 = short;
using i32 = int;
using i64 = long long;
using f32 = float;
using f64 = double;

#define TRT_DEVICE static __device__ __forceinline__

template <class T>
constexpr bool is_real = false;
template <>
constexpr bool is_real<f32> = true;
template <>
constexpr bool is_real<f64> = true;
template <class T>
constexpr bool is_signed = T(-1) < T(0);
template <>
constexpr bool is_signed<b8> = false;

// The type two operands meet in: their own if it is one, else what C's arithmetic makes of them.
template <class A, class B>
struct Common { using type = decltype(A() + B()); };
template <class A>
struct Common<A, A> { using type = A; };
template <class A, class B>
using common_t = typename Common<A, B>::type;

// ---- the C library's functions of float and double ---------------------------------------------------------------

#define TRT_UNARY(name, c_name)                                 \
    TRT_DEVICE f32 name(f32 x) { return ::c_name##f(x); }       \
    TRT_DEVICE f64 name(f64 x) { return ::c_name(x); }
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

#define TRT_BINARY_C(name)                                                  \
    TRT_DEVICE f32 name(f32 x, f32 y) { return ::name##f(x, y); }           \
    TRT_DEVICE f64 name(f64 x, f64 y) { return ::name(x, y); }
TRT_BINARY_C(atan2)
TRT_BINARY_C(hypot)
TRT_BINARY_C(copysign)
#undef TRT_BINARY_C
TRT_DEVICE f32 fma(f32 x, f32 y, f32 z) { return ::fmaf(x, y, z); }
TRT_DEVICE f64 fma(f64 x, f64 y, f64 z) { return ::fma(x, y, z); }

// Rounding leaves integers as they are.
template <class T>
TRT_DEVICE T ceil(T x) { return x; }
template <class T>
TRT_DEVICE T floor(T x) { return x; }
template <class T>
TRT_DEVICE T trunc(T x) { return x; }
template <class T>
TRT_DEVICE T round(T x) { return x; }

// ---- tests and parts ---------------------------------------------------------------------------------------------

template <class A, class B>
TRT_DEVICE common_t<A, B> sel(bool condition, A a, B b) { return condition ? a : b; }
template <class T>
TRT_DEVICE bool isnan(T x) { return x != x; }
template <class T>
TRT_DEVICE bool isinf(T x) {
    if constexpr (is_real<T>) return x == T(INFINITY) || x == -T(INFINITY);
    return false;
}
template <class T>
TRT_DEVICE bool isfinite(T x) {
    if constexpr (is_real<T>) return x - x == T(0);
    return true;
}
template <class T>
TRT_DEVICE bool signbit(T x) {
    if constexpr (is_real<T>) return copysign(T(1), x) < T(0);
    return x < T(0);
}
template <class T>
TRT_DEVICE T abs(T x) {
    if constexpr (is_real<T>) return copysign(x, T(1));
    return x < T(0) ? static_cast<T>(0ull - static_cast<unsigned long long>(x)) : x;
}
template <class T>
TRT_DEVICE T sign(T x) { return static_cast<T>((T(0) < x) - (x < T(0))); }
template <class T>
TRT_DEVICE T conj(T x) { return x; }
template <class T>
TRT_DEVICE T real(T x) { return x; }
template <class T>
TRT_DEVICE T imag(T) { return T(0); }
template <class T>
TRT_DEVICE T angle(T x) { return isnan(x) ? x : (x < T(0) ? T(3.14159265358979323846) : T(0)); }
template <class T>
TRT_DEVICE T frac(T x) { return x - trunc(x); }
template <class T>
TRT_DEVICE T square(T x) { return static_cast<T>(x * x); }
template <class T>
TRT_DEVICE T reciprocal(T x) { return T(1) / x; }
template <class T>
TRT_DEVICE T relu(T x) { return isnan(x) || T(0) < x ? x : T(0); }

// ---- binary functions for every type -----------------------------------------------------------------------------

namespace same_type {

template <class T>
TRT_DEVICE T maximum(T x, T y) { return isnan(x) || y < x ? x : y; }
template <class T>
TRT_DEVICE T minimum(T x, T y) { return isnan(x) || x < y ? x : y; }
template <class T>
TRT_DEVICE T fmax(T x, T y) { return isnan(x) || x < y ? y : x; }
template <class T>
TRT_DEVICE T fmin(T x, T y) { return isnan(x) || y < x ? y : x; }

// Dividing the smallest integer by -1 overflows; negation modulo 2^64 wraps to the right value.
template <class T>
TRT_DEVICE T div_trunc(T x, T y) {
    if constexpr (is_real<T>) {
        return trunc(x / y);
    } else {
        if (y == T(0)) return T(0);
        if (is_signed<T> && y == static_cast<T>(-1)) return static_cast<T>(0ull - static_cast<unsigned long long>(x));
        return static_cast<T>(x / y);
    }
}
template <class T>
TRT_DEVICE T fmod(T x, T y) {
    if constexpr (is_real<T>) {
        if constexpr (sizeof(T) == 4) return ::fmodf(x, y);
        return static_cast<T>(::fmod(x, y));
    } else {
        if (y == T(0) || (is_signed<T> && y == static_cast<T>(-1))) return T(0);
        return static_cast<T>(x % y);
    }
}
template <class T>
TRT_DEVICE T remainder(T x, T y) {
    T r = fmod(x, y);
    return r != T(0) && (r < T(0)) != (y < T(0)) ? static_cast<T>(r + y) : r;
}
// Python's division: the quotient that belongs to the exact remainder.
template <class T>
TRT_DEVICE T floor_divide(T x, T y) {
    if constexpr (is_real<T>) {
        if (y == T(0)) return x / y;
        T r = fmod(x, y), quotient = (x - r) / y;
        if (r != T(0) && (y < T(0)) != (r < T(0))) quotient -= T(1);
        if (quotient == T(0)) return copysign(T(0), x / y);
        T whole = floor(quotient);
        return quotient - whole > T(0.5) ? whole + T(1) : whole;
    } else {
        T quotient = div_trunc(x, y), r = fmod(x, y);
        return r != T(0) && (r < T(0)) != (y < T(0)) ? static_cast<T>(quotient - 1) : quotient;
    }
}
// Integers by squaring; a negative exponent leaves only 1 and -1.
template <class T>
TRT_DEVICE T pow(T x, T y) {
    if constexpr (is_real<T>) {
        if constexpr (sizeof(T) == 4) return ::powf(x, y);
        return static_cast<T>(::pow(x, y));
    } else {
        if (y < T(0)) {
            if (x == T(1)) return T(1);
            return x == static_cast<T>(-1) ? static_cast<T>(y % 2 ? -1 : 1) : T(0);
        }
        unsigned long long base = static_cast<unsigned long long>(x), result = 1;
        for (unsigned long long n = static_cast<unsigned long long>(y); n; n >>= 1, base *= base) {
            if (n & 1) result *= base;
        }
        return static_cast<T>(result);
    }
}
template <class T>
TRT_DEVICE T gcd(T x, T y) {
    unsigned long long a = static_cast<unsigned long long>(abs(x)), b = static_cast<unsigned long long>(abs(y));
    while (b) {
        unsigned long long r = a % b;
        a = b;
        b = r;
    }
    return static_cast<T>(a);
}
template <class T>
TRT_DEVICE T lcm(T x, T y) {
    unsigned long long divisor = static_cast<unsigned long long>(gcd(x, y));
    if (!divisor) return T(0);
    unsigned long long a = static_cast<unsigned long long>(abs(x)), b = static_cast<unsigned long long>(abs(y));
    return abs(static_cast<T>(a / divisor * b));
}
// A shift by a negative count, or by the width and more, gives 0, or the sign to the right.
template <class T>
TRT_DEVICE T lshift(T x, T n) {
    bool inside = !(n < T(0)) && n < static_cast<T>(8 * sizeof(T));
    return inside ? static_cast<T>(static_cast<unsigned long long>(x) << n) : T(0);
}
template <class T>
TRT_DEVICE T rshift(T x, T n) {
    bool inside = !(n < T(0)) && n < static_cast<T>(8 * sizeof(T));
    if (inside) return static_cast<T>(x >> n);
    return x < T(0) ? static_cast<T>(-1) : T(0);
}
template <class T>
TRT_DEVICE T bitwise_and(T x, T y) { return static_cast<T>(x & y); }
template <class T>
TRT_DEVICE T bitwise_or(T x, T y) { return static_cast<T>(x | y); }
template <class T>
TRT_DEVICE T bitwise_xor(T x, T y) { return static_cast<T>(x ^ y); }

template <class T>
TRT_DEVICE T logaddexp(T x, T y) {
    T high = maximum(x, y), low = minimum(x, y);
    return isinf(high) && x == y ? high : high + log1p(exp(low - high));
}
template <class T>
TRT_DEVICE T xlogy(T x, T y) { return isnan(y) ? y : (x == T(0) ? T(0) : x * log(y)); }

}  // namespace same_type

#define TRT_BINARY(name)                                        \
    template <class A, class B>                                 \
    TRT_DEVICE common_t<A, B> name(A x, B y) {                  \
        return same_type::name<common_t<A, B>>(x, y);           \
    }
TRT_BINARY(maximum)
TRT_BINARY(minimum)
TRT_BINARY(fmax)
TRT_BINARY(fmin)
TRT_BINARY(div_trunc)
TRT_BINARY(fmod)
TRT_BINARY(remainder)
TRT_BINARY(floor_divide)
TRT_BINARY(pow)
TRT_BINARY(gcd)
TRT_BINARY(lcm)
TRT_BINARY(lshift)
TRT_BINARY(rshift)
TRT_BINARY(bitwise_and)
TRT_BINARY(bitwise_or)
TRT_BINARY(bitwise_xor)
TRT_BINARY(logaddexp)
TRT_BINARY(xlogy)
#undef TRT_BINARY

TRT_DEVICE bool bitwise_not(bool x) { return !x; }
template <class T>
TRT_DEVICE T bitwise_not(T x) { return static_cast<T>(~x); }
template <class T>
TRT_DEVICE T clamp(T x, T low, T high) { return minimum(maximum(x, low), high); }

// ---- activations and special functions ---------------------------------------------------------------------------

template <class T>
TRT_DEVICE T sigmoid(T x) { return T(1) / (T(1) + exp(-x)); }
template <class T>
TRT_DEVICE T silu(T x) { return x / (T(1) + exp(-x)); }
// log(1 + e^x) without overflow
template <class T>
TRT_DEVICE T log1pexp(T x) { return maximum(x, T(0)) + log1p(exp(-abs(x))); }
template <class T>
TRT_DEVICE T softplus(T x) { return log1pexp(x); }
template <class T>
TRT_DEVICE T logsigmoid(T x) { return -log1pexp(-x); }
template <class T>
TRT_DEVICE T mish(T x) { return x * tanh(log1pexp(x)); }
template <class T>
TRT_DEVICE T gelu(T x) { return T(0.5) * x * erfc(x * T(-0.70710678118654752440)); }
template <class T>
TRT_DEVICE T gelu_f16(T x) { return gelu(x); }  // of half types the CPU takes fewer terms
template <class T>
TRT_DEVICE T gelu_bf16(T x) { return gelu(x); }
template <class T>
TRT_DEVICE T gelu_tanh(T x) {
    return T(0.5) * x * (T(1) + tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x)));
}
// sin(pi x) / (pi x), reduced exactly
template <class T>
TRT_DEVICE T sinc(T x) {
    if (x == T(0)) return T(1);
    if (isinf(x)) return T(0);
    T n = round(x), pi = T(3.14159265358979323846), sine = sin(pi * (x - n));
    return (n - T(2) * round(n * T(0.5)) == T(0) ? sine : -sine) / (pi * x);
}
// Reflection for negative x, recurrence up to 12, then the asymptotic series. In double for float too: the terms cancel
// near the root.
TRT_DEVICE f64 digamma(f64 x) {
    if (x == 0) return ::copysign(static_cast<f64>(INFINITY), -x);
    f64 sum = 0;
    if (x < 0) {
        if (::floor(x) == x) return static_cast<f64>(NAN);
        sum = -3.14159265358979323846 / ::tan(3.14159265358979323846 * (x - ::rint(x)));
        x = 1 - x;
    }
    for (; x < 12; x += 1) sum -= 1 / x;
    f64 w = 1 / (x * x);
    f64 tail = w * (1.0 / 12 - w * (1.0 / 120 - w * (1.0 / 252 - w * (1.0 / 240 - w * (1.0 / 132 - w * (691.0 / 32760))))));
    return sum + (::log(x) - 0.5 / x - tail);
}
TRT_DEVICE f32 digamma(f32 x) { return static_cast<f32>(digamma(static_cast<f64>(x))); }

#ifdef CUEMU
// Winitzki's closed form, then Halley steps on erf, or on erfc where 1 - |x| is exact.
TRT_DEVICE f64 erfinv(f64 x) {
    f64 a = ::fabs(x);
    if (!(a < 1)) return a == 1 ? ::copysign(static_cast<f64>(INFINITY), x) : static_cast<f64>(NAN);
    if (a < 1e-8) return x * 0.88622692545275801365;
    f64 l = ::log1p(-a * a), b = 4.3307467508 + 0.5 * l, y = ::sqrt(::sqrt(b * b - l / 0.147) - b);
    for (int step = 0; step < 3; step++) {
        f64 difference = a < 0.5 ? ::erf(y) - a : (1 - a) - ::erfc(y);
        f64 newton = difference / (1.12837916709551257390 * ::exp(-y * y));
        y -= newton / (1 + y * newton);
    }
    return ::copysign(y, x);
}
TRT_DEVICE f32 erfinv(f32 x) { return static_cast<f32>(erfinv(static_cast<f64>(x))); }
TRT_DEVICE f64 i0(f64 x) { return std::cyl_bessel_i(0.0, ::fabs(x)); }
TRT_DEVICE f32 i0(f32 x) { return static_cast<f32>(i0(static_cast<f64>(x))); }
#else
TRT_DEVICE f64 erfinv(f64 x) { return ::erfinv(x); }
TRT_DEVICE f32 erfinv(f32 x) { return ::erfinvf(x); }
TRT_DEVICE f64 i0(f64 x) { return ::cyl_bessel_i0(x); }
TRT_DEVICE f32 i0(f32 x) { return ::cyl_bessel_i0f(x); }
#endif

#undef TRT_DEVICE

}  // namespace trt
