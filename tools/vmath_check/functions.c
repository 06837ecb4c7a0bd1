/* Contiguous loops over every function of vector_math.h, under the names the Python drivers look up:
 * u_NAME_TYPE(n, x, y) and b_NAME_TYPE(n, a, b, y). Built by build.py, once per instruction set. */
#include "special_math.h"
#include "vector_math_avx512.h"

#ifdef FORMS_ONLY
#define TEXT(...)
#else
#define TEXT(...) __VA_ARGS__
#endif

#define UNARY_TEXT(name, T, R)                                                                                       \
    void u_##name##_##T(i64 n, const T *restrict x, R *restrict y)                                                   \
    {                                                                                                                \
        _Pragma("omp simd")                                                                                          \
        for (i64 i = 0; i < n; i++)                                                                                  \
            y[i] = name##_##T(x[i]);                                                                                 \
    }
#define UNARY_FORM(name, T, R)                                                                                       \
    void u_##name##_##T(i64 n, const T *restrict x, R *restrict y)                                                   \
    {                                                                                                                \
        for (i64 i = 0; i < n; i += LANES_##T)                                                                       \
            write_##T(y + i, name##_lanes_##T(read_##T(x + i, n - i)), n - i);                                       \
    }
/* build.py defines FORM_<name>_<type> as a comma where the level has an own form of the function */
#define SECOND(first, second, ...) second
#define CHOOSE(...) SECOND(__VA_ARGS__)
#define UNARY_TEXT_UNLESS_FORMS(name, T, R) TEXT(UNARY_TEXT(name, T, R))
#define UNARY(name, T, R) CHOOSE(FORM_##name##_##T UNARY_FORM, UNARY_TEXT_UNLESS_FORMS)(name, T, R)
#define BINARY(name, T, R) TEXT(BINARY_TEXT(name, T, R))
#define BINARY_TEXT(name, T, R)                                                                                      \
    void b_##name##_##T(i64 n, const T *restrict a, const T *restrict b, R *restrict y)                              \
    {                                                                                                                \
        _Pragma("omp simd")                                                                                          \
        for (i64 i = 0; i < n; i++)                                                                                  \
            y[i] = name##_##T(a[i], b[i]);                                                                           \
    }
#define UNARY_REAL(name) UNARY(name, f32, f32) UNARY(name, f64, f64)
#define BINARY_REAL(name) BINARY(name, f32, f32) BINARY(name, f64, f64)
#define ANY_QUOTIENT(name) TEXT(ANY_QUOTIENT_TEXT(name))
#define ANY_QUOTIENT_TEXT(name)                                                                                      \
    void b_##name##_f32(i64 n, const f32 *a, const f32 *b, f32 *y)                                                   \
    {                                                                                                                \
        for (i64 i = 0; i < n; i++)                                                                                  \
            y[i] = any_##name##_f32(a[i], b[i]);                                                                     \
    }                                                                                                                \
    void b_##name##_f64(i64 n, const f64 *a, const f64 *b, f64 *y)                                                   \
    {                                                                                                                \
        for (i64 i = 0; i < n; i++)                                                                                  \
            y[i] = any_##name##_f64(a[i], b[i]);                                                                     \
    }
#define PREDICATE_REAL(name) UNARY(name, f32, b8) UNARY(name, f64, b8)
#define UNARY_COMPLEX(name) UNARY(name, c64, c64) UNARY(name, c128, c128)
#define BINARY_COMPLEX(name) BINARY(name, c64, c64) BINARY(name, c128, c128)
#define UNARY_INTEGER(name) UNARY(name, u8, u8) UNARY(name, i8, i8) UNARY(name, i16, i16) UNARY(name, i32, i32) UNARY(name, i64, i64)
#define BINARY_INTEGER(name) BINARY(name, u8, u8) BINARY(name, i8, i8) BINARY(name, i16, i16) BINARY(name, i32, i32) BINARY(name, i64, i64)
#define TRIG_BLOCK(name, T) TEXT(TRIG_BLOCK_TEXT(name, T))
#define TRIG_BLOCK_TEXT(name, T)                                                                                     \
    void u_##name##_block_##T(i64 n, const T *x, T *y) { name##_block_##T(x, y, n); }

UNARY_REAL(exp) UNARY_REAL(exp2) UNARY_REAL(expm1) UNARY_REAL(log) UNARY_REAL(log2) UNARY_REAL(log10)
UNARY_REAL(log1p) UNARY_REAL(sqrt) UNARY_REAL(rsqrt) UNARY_REAL(reciprocal) UNARY_REAL(sin) UNARY_REAL(cos)
UNARY_REAL(tan) UNARY_REAL(asin) UNARY_REAL(acos) UNARY_REAL(atan) UNARY_REAL(sinh) UNARY_REAL(cosh)
UNARY_REAL(tanh) UNARY_REAL(asinh) UNARY_REAL(acosh) UNARY_REAL(atanh) UNARY_REAL(erf) UNARY_REAL(erfc)
UNARY_REAL(erfinv) UNARY_REAL(lgamma) UNARY_REAL(digamma) UNARY_REAL(floor) UNARY_REAL(ceil) UNARY_REAL(trunc)
UNARY_REAL(round) UNARY_REAL(frac) UNARY_REAL(sign) UNARY_REAL(abs) UNARY_REAL(sigmoid) UNARY_REAL(logsigmoid)
UNARY_REAL(log1pexp) UNARY_REAL(sinc) UNARY_REAL(i0) UNARY_REAL(gelu) UNARY_REAL(gelu_tanh) UNARY_REAL(silu)
UNARY_REAL(mish) UNARY_REAL(angle)
UNARY(gelu_f16, f32, f32) UNARY(gelu_bf16, f32, f32)
PREDICATE_REAL(signbit) PREDICATE_REAL(isnan) PREDICATE_REAL(isinf) PREDICATE_REAL(isfinite)
BINARY_REAL(atan2) BINARY_REAL(pow) ANY_QUOTIENT(fmod) ANY_QUOTIENT(remainder) ANY_QUOTIENT(floor_divide)
BINARY_REAL(div_trunc) BINARY_REAL(fmax) BINARY_REAL(fmin) BINARY_REAL(maximum) BINARY_REAL(minimum)
BINARY_REAL(copysign) BINARY_REAL(nextafter) BINARY_REAL(hypot) BINARY_REAL(logaddexp) BINARY_REAL(xlogy)
TRIG_BLOCK(sin, f32) TRIG_BLOCK(cos, f32) TRIG_BLOCK(tan, f32) TRIG_BLOCK(sin, f64) TRIG_BLOCK(cos, f64)
TRIG_BLOCK(tan, f64)

UNARY_INTEGER(abs) UNARY_INTEGER(sign) UNARY_INTEGER(bitwise_not)
BINARY_INTEGER(floor_divide) BINARY_INTEGER(remainder) BINARY_INTEGER(fmod) BINARY_INTEGER(div_trunc)
BINARY_INTEGER(pow) BINARY_INTEGER(gcd) BINARY_INTEGER(lcm) BINARY_INTEGER(bitwise_and) BINARY_INTEGER(bitwise_or)
BINARY_INTEGER(bitwise_xor) BINARY_INTEGER(lshift) BINARY_INTEGER(rshift) BINARY_INTEGER(maximum)
BINARY_INTEGER(minimum)
UNARY(bitwise_not, b8, b8) BINARY(bitwise_and, b8, b8) BINARY(bitwise_or, b8, b8) BINARY(bitwise_xor, b8, b8)
BINARY(maximum, b8, b8) BINARY(minimum, b8, b8)

UNARY_COMPLEX(sqrt) UNARY_COMPLEX(exp) UNARY_COMPLEX(log) UNARY_COMPLEX(sin) UNARY_COMPLEX(cos) UNARY_COMPLEX(tan)
UNARY_COMPLEX(asin) UNARY_COMPLEX(acos) UNARY_COMPLEX(atan) UNARY_COMPLEX(sinh) UNARY_COMPLEX(cosh)
UNARY_COMPLEX(tanh) UNARY_COMPLEX(asinh) UNARY_COMPLEX(acosh) UNARY_COMPLEX(atanh) UNARY_COMPLEX(exp2)
UNARY_COMPLEX(expm1) UNARY_COMPLEX(log2) UNARY_COMPLEX(log10) UNARY_COMPLEX(log1p) UNARY_COMPLEX(rsqrt)
UNARY_COMPLEX(sigmoid) UNARY_COMPLEX(silu) UNARY_COMPLEX(sinc) UNARY_COMPLEX(reciprocal) UNARY_COMPLEX(sign)
UNARY_COMPLEX(conj)
BINARY_COMPLEX(add) BINARY_COMPLEX(mul) BINARY_COMPLEX(div) BINARY_COMPLEX(pow) BINARY_COMPLEX(xlogy)
UNARY(abs, c64, f32) UNARY(abs, c128, f64) UNARY(angle, c64, f32) UNARY(angle, c128, f64)
UNARY(isnan, c64, b8) UNARY(isinf, c64, b8) UNARY(isfinite, c64, b8)

#define SPECIAL_UNARY(name) UNARY_REAL(special_##name)
#define SPECIAL_BINARY(name) BINARY_REAL(special_##name)
SPECIAL_UNARY(airy_ai) SPECIAL_UNARY(bessel_j0) SPECIAL_UNARY(bessel_j1) SPECIAL_UNARY(bessel_y0) SPECIAL_UNARY(bessel_y1)
SPECIAL_UNARY(i0) SPECIAL_UNARY(i0e) SPECIAL_UNARY(i1) SPECIAL_UNARY(i1e) SPECIAL_UNARY(k0) SPECIAL_UNARY(k0e) SPECIAL_UNARY(k1)
SPECIAL_UNARY(k1e) SPECIAL_UNARY(spherical_bessel_j0) SPECIAL_UNARY(erfcx) SPECIAL_UNARY(ndtr) SPECIAL_UNARY(log_ndtr)
SPECIAL_UNARY(ndtri)
SPECIAL_BINARY(gammainc) SPECIAL_BINARY(gammaincc) SPECIAL_BINARY(zeta) SPECIAL_BINARY(polygamma)
SPECIAL_BINARY(chebyshev_t) SPECIAL_BINARY(chebyshev_u) SPECIAL_BINARY(chebyshev_v) SPECIAL_BINARY(chebyshev_w)
SPECIAL_BINARY(shifted_chebyshev_t) SPECIAL_BINARY(shifted_chebyshev_u) SPECIAL_BINARY(shifted_chebyshev_v)
SPECIAL_BINARY(shifted_chebyshev_w) SPECIAL_BINARY(hermite_h) SPECIAL_BINARY(hermite_he) SPECIAL_BINARY(laguerre)
SPECIAL_BINARY(legendre)
