// The special functions of expressions (special_<name>): the loops' text (special_functions.h) compiled in double, for both types. Units whose expression
// names one include it.
#pragma once

#include "scalar_math.cuh"

namespace trt {

#ifdef CUEMU
#define TRT_SPECIAL static
#define TRT_SPECIAL_TABLE static const
#else
#define TRT_SPECIAL static __device__
#define TRT_SPECIAL_TABLE static __device__ const
#endif

namespace special {

using W = double;
TRT_SPECIAL W power(W x, W y) { return ::pow(x, y); }
TRT_SPECIAL W exp(W x) { return ::exp(x); }
TRT_SPECIAL W expm1(W x) { return ::expm1(x); }
TRT_SPECIAL W log(W x) { return ::log(x); }
TRT_SPECIAL W log1p(W x) { return ::log1p(x); }
TRT_SPECIAL W sqrt(W x) { return ::sqrt(x); }
TRT_SPECIAL W fabs(W x) { return ::fabs(x); }
TRT_SPECIAL W floor(W x) { return ::floor(x); }
TRT_SPECIAL W fma(W x, W y, W z) { return ::fma(x, y, z); }
TRT_SPECIAL W sin(W x) { return ::sin(x); }
TRT_SPECIAL W cos(W x) { return ::cos(x); }
TRT_SPECIAL W acos(W x) { return ::acos(x); }
TRT_SPECIAL W acosh(W x) { return ::acosh(x); }
TRT_SPECIAL W sinh(W x) { return ::sinh(x); }
TRT_SPECIAL W cosh(W x) { return ::cosh(x); }
TRT_SPECIAL W erf(W x) { return ::erf(x); }
TRT_SPECIAL W erfc(W x) { return ::erfc(x); }
TRT_SPECIAL W lgamma(W x) { return ::lgamma(x); }
TRT_SPECIAL W tgamma(W x) { return ::tgamma(x); }

#define S(name) own_##name
#define K(number) (number)
#define M(name) name
#define FUNCTION TRT_SPECIAL
#define TABLE(name) TRT_SPECIAL_TABLE W S(name)[]
#define EPSILON 0x1p-56
#include "special_functions.h"
#undef S
#undef K
#undef M
#undef FUNCTION
#undef TABLE
#undef EPSILON

}  // namespace special

#define TRT_SPECIAL_UNARY(name, call)                                                               \
    TRT_SPECIAL f64 special_##name(f64 x) { return special::own_##call; }                           \
    TRT_SPECIAL f32 special_##name(f32 v) { const f64 x = v; return static_cast<f32>(special::own_##call); }
#define TRT_SPECIAL_BINARY(name, call)                                                              \
    TRT_SPECIAL f64 special_##name(f64 x, f64 n) { return special::own_##call; }                    \
    TRT_SPECIAL f32 special_##name(f32 v, f32 u) { const f64 x = v, n = u; return static_cast<f32>(special::own_##call); }
TRT_SPECIAL_UNARY(airy_ai, airy_ai(x))
TRT_SPECIAL_UNARY(bessel_j0, bessel_j(x, 0))
TRT_SPECIAL_UNARY(bessel_j1, bessel_j(x, 1))
TRT_SPECIAL_UNARY(bessel_y0, bessel_y(x, 0))
TRT_SPECIAL_UNARY(bessel_y1, bessel_y(x, 1))
TRT_SPECIAL_UNARY(i0, bessel_i(x, 0))
TRT_SPECIAL_UNARY(i0e, bessel_i_scaled(x, 0))
TRT_SPECIAL_UNARY(i1, bessel_i(x, 1))
TRT_SPECIAL_UNARY(i1e, bessel_i_scaled(x, 1))
TRT_SPECIAL_UNARY(k0, bessel_k(x, 0, 0))
TRT_SPECIAL_UNARY(k0e, bessel_k(x, 0, 1))
TRT_SPECIAL_UNARY(k1, bessel_k(x, 1, 0))
TRT_SPECIAL_UNARY(k1e, bessel_k(x, 1, 1))
TRT_SPECIAL_UNARY(spherical_bessel_j0, spherical_bessel_j0(x))
TRT_SPECIAL_UNARY(erfcx, erfcx(x))
TRT_SPECIAL_UNARY(ndtr, ndtr(x))
TRT_SPECIAL_UNARY(log_ndtr, log_ndtr(x))
TRT_SPECIAL_UNARY(ndtri, ndtri(x))
TRT_SPECIAL_BINARY(gammainc, incomplete_gamma(x, n, 0))
TRT_SPECIAL_BINARY(gammaincc, incomplete_gamma(x, n, 1))
TRT_SPECIAL_BINARY(zeta, zeta(x, n))
TRT_SPECIAL_BINARY(polygamma, polygamma(x, n))
TRT_SPECIAL_BINARY(gamma_slope, gamma_slope(x, n))
TRT_SPECIAL_BINARY(chebyshev_t, chebyshev_polynomial(x, n, 0))
TRT_SPECIAL_BINARY(chebyshev_u, chebyshev_polynomial(x, n, 1))
TRT_SPECIAL_BINARY(chebyshev_v, chebyshev_polynomial(x, n, 2))
TRT_SPECIAL_BINARY(chebyshev_w, chebyshev_polynomial(x, n, 3))
TRT_SPECIAL_BINARY(shifted_chebyshev_t, chebyshev_polynomial(2 * x - 1, n, 0))
TRT_SPECIAL_BINARY(shifted_chebyshev_u, chebyshev_polynomial(2 * x - 1, n, 1))
TRT_SPECIAL_BINARY(shifted_chebyshev_v, chebyshev_polynomial(2 * x - 1, n, 2))
TRT_SPECIAL_BINARY(shifted_chebyshev_w, chebyshev_polynomial(2 * x - 1, n, 3))
TRT_SPECIAL_BINARY(laguerre, laguerre_polynomial(x, n))
TRT_SPECIAL_BINARY(legendre, legendre_polynomial(x, n))
#undef TRT_SPECIAL_UNARY
#undef TRT_SPECIAL_BINARY
TRT_SPECIAL f64 special_hermite_h(f64 x, f64 n) { return special::own_hermite_polynomial(x, n, 2, 512); }
TRT_SPECIAL f32 special_hermite_h(f32 x, f32 n) { return static_cast<f32>(special::own_hermite_polynomial(x, n, 2, 128)); }
TRT_SPECIAL f64 special_hermite_he(f64 x, f64 n) { return special::own_hermite_polynomial(x, n, 1, 512); }
TRT_SPECIAL f32 special_hermite_he(f32 x, f32 n) { return static_cast<f32>(special::own_hermite_polynomial(x, n, 1, 128)); }
TRT_SPECIAL f64 special_beta_slope(f64 x, f64 a, f64 total) { return special::own_beta_slope(x, a, total); }
TRT_SPECIAL f32 special_beta_slope(f32 x, f32 a, f32 total) { return static_cast<f32>(special::own_beta_slope(x, a, total)); }

template <class T>
TRT_SPECIAL T special_frexp_mantissa(T x) {
    int exponent;
    return static_cast<T>(::frexp(static_cast<f64>(x), &exponent));
}
template <class T>
TRT_SPECIAL T special_frexp_exponent(T x) {
    int exponent;
    ::frexp(static_cast<f64>(x), &exponent);
    return x - x == T(0) ? static_cast<T>(exponent) : T(0);
}
template <class T>
TRT_SPECIAL T special_ldexp(T x, T n) {
    return ::ldexp(x, static_cast<int>(n > T(3000) ? T(3000) : n < T(-3000) ? T(-3000) : n));
}

#undef TRT_SPECIAL
#undef TRT_SPECIAL_TABLE

}  // namespace trt
