/* Integer and bool variants. Arithmetic wraps modulo 2^bits, as PyTorch's does, without overflow in C's sense. No
 * division traps: a zero divisor yields 0 (the caller raises ZeroDivisionError from a pass before) and INT_MIN / -1
 * wraps. Included by vector_math.h. */
#ifndef TRT_VECTOR_MATH_INTEGER_H
#define TRT_VECTOR_MATH_INTEGER_H

/* Quotient toward zero. Narrow types divide in floating point, which is exact there and vectorises: for a < 2^p a
 * quotient that is no integer is further from one than the division's rounding error when the type has over p bits. */
INL u8 quotient_u8(u8 a, u8 b) { return (u8)(i32)((f32)a / (f32)b); }
INL i8 quotient_i8(i8 a, i8 b) { return (i8)(i32)((f32)a / (f32)b); }
INL i16 quotient_i16(i16 a, i16 b) { return (i16)(i32)((f32)a / (f32)b); }
INL i32 quotient_i32(i32 a, i32 b) { return b == -1 ? (i32)(0u - (u32)a) : (i32)((f64)a / (f64)b); }
INL i64 quotient_i64(i64 a, i64 b) { return b == -1 ? (i64)(0u - (u64)a) : a / b; }

#define DEFINE_INTEGER(T, U, BITS, SIGNED)                                                                           \
    INL T sel_##T(b8 condition, T a, T b) { return condition ? a : b; }                                              \
    INL T maximum_##T(T a, T b) { return a > b ? a : b; }                                                            \
    INL T minimum_##T(T a, T b) { return a < b ? a : b; }                                                            \
    INL T fmax_##T(T a, T b) { return a > b ? a : b; }                                                               \
    INL T fmin_##T(T a, T b) { return a < b ? a : b; }                                                               \
    INL T abs_##T(T a) { return (T)(a < 0 ? (T)((U)0 - (U)a) : a); }                                                 \
    INL T sign_##T(T a) { return (T)((a > 0) - (a < 0)); }                                                           \
    INL b8 signbit_##T(T a) { return a < 0; }                                                                        \
    INL T conj_##T(T a) { return a; }                                                                                \
    INL T real_##T(T a) { return a; }                                                                                \
    INL b8 isnan_##T(T a) { (void)a; return 0; }                                                                     \
    INL b8 isinf_##T(T a) { (void)a; return 0; }                                                                     \
    INL b8 isfinite_##T(T a) { (void)a; return 1; }                                                                  \
    INL T floor_##T(T a) { return a; }                                                                               \
    INL T ceil_##T(T a) { return a; }                                                                                \
    INL T trunc_##T(T a) { return a; }                                                                               \
    INL T round_##T(T a) { return a; }                                                                               \
    INL T bitwise_and_##T(T a, T b) { return (T)(a & b); }                                                           \
    INL T bitwise_or_##T(T a, T b) { return (T)(a | b); }                                                            \
    INL T bitwise_xor_##T(T a, T b) { return (T)(a ^ b); }                                                           \
    INL T bitwise_not_##T(T a) { return (T)~a; }                                                                     \
    /* shifts by a negative count or by the width and more: 0, or the sign to the right */                           \
    INL T lshift_##T(T a, T b)                                                                                       \
    {                                                                                                                \
        b8 inside = (b8)((b >= 0) & (b < BITS));                                                                     \
        U shifted = (U)((U)a << (inside ? b : 0));                                                                   \
        return inside ? (T)shifted : 0;                                                                              \
    }                                                                                                                \
    INL T rshift_##T(T a, T b)                                                                                       \
    {                                                                                                                \
        b8 inside = (b8)((b >= 0) & (b < BITS));                                                                     \
        T shifted = (T)(a >> (inside ? b : BITS - 1));                                                               \
        return inside || SIGNED ? shifted : 0;                                                                       \
    }                                                                                                                \
    INL T div_trunc_##T(T a, T b)                                                                                    \
    {                                                                                                                \
        T q = quotient_##T(a, (T)(b == 0 ? 1 : b));                                                                  \
        return b == 0 ? 0 : q;                                                                                       \
    }                                                                                                                \
    INL T fmod_##T(T a, T b) { return b == 0 ? 0 : (T)((U)a - (U)((U)div_trunc_##T(a, b) * (U)b)); }                 \
    INL T remainder_##T(T a, T b)                                                                                    \
    {                                                                                                                \
        T m = fmod_##T(a, b);                                                                                        \
        /* a mask, as signs are as good as random to the branch predictor */                                         \
        return (T)(m + (b & (T)-(T)((m != 0) & ((m < 0) != (b < 0)))));                                              \
    }                                                                                                                \
    INL T floor_divide_##T(T a, T b)                                                                                 \
    {                                                                                                                \
        T q = div_trunc_##T(a, b), m = (T)((U)a - (U)((U)q * (U)b));                                                 \
        return (T)(q - ((b != 0) & (m != 0) & ((m < 0) != (b < 0))));                                                \
    }                                                                                                                \
    /* scalar: by squaring; a negative exponent leaves only 1 and -1 */                                              \
    INL T pow_##T(T a, T b)                                                                                          \
    {                                                                                                                \
        if (b < 0)                                                                                                   \
            return (T)(a == 1 ? 1 : (a == (T)-1 ? ((b & 1) ? -1 : 1) : 0));                                          \
        u64 result = 1, base = (u64)(i64)a;                                                                          \
        for (u64 n = (u64)b; n; n >>= 1) {                                                                           \
            result = n & 1 ? result * base : result;                                                                 \
            base *= base;                                                                                            \
        }                                                                                                            \
        return (T)result;                                                                                            \
    }                                                                                                                \
    /* scalar: Euclid on magnitudes */                                                                               \
    INL T gcd_##T(T a, T b)                                                                                          \
    {                                                                                                                \
        U x = (U)abs_##T(a), y = (U)abs_##T(b);                                                                      \
        while (y) {                                                                                                  \
            U r = (U)(x % y);                                                                                        \
            x = y;                                                                                                   \
            y = r;                                                                                                   \
        }                                                                                                            \
        return (T)x;                                                                                                 \
    }                                                                                                                \
    INL T lcm_##T(T a, T b)                                                                                          \
    {                                                                                                                \
        U g = (U)gcd_##T(a, b);                                                                                      \
        return g ? abs_##T((T)(U)((u64)(U)abs_##T(a) / g * (U)abs_##T(b))) : 0;                                      \
    }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtype-limits" /* the unsigned type is compared with 0 like the others */
DEFINE_INTEGER(u8, u8, 8, 0)
DEFINE_INTEGER(i8, u8, 8, 1)
DEFINE_INTEGER(i16, uint16_t, 16, 1)
DEFINE_INTEGER(i32, u32, 32, 1)
DEFINE_INTEGER(i64, u64, 64, 1)
#pragma GCC diagnostic pop

/* bool: 0 or 1 in a byte */
INL b8 sel_b8(b8 condition, b8 a, b8 b) { return condition ? a : b; }
INL b8 maximum_b8(b8 a, b8 b) { return a | b; }
INL b8 minimum_b8(b8 a, b8 b) { return a & b; }
INL b8 fmax_b8(b8 a, b8 b) { return a | b; }
INL b8 fmin_b8(b8 a, b8 b) { return a & b; }
INL b8 bitwise_and_b8(b8 a, b8 b) { return a & b; }
INL b8 bitwise_or_b8(b8 a, b8 b) { return a | b; }
INL b8 bitwise_xor_b8(b8 a, b8 b) { return a ^ b; }
INL b8 bitwise_not_b8(b8 a) { return !a; }
INL b8 sign_b8(b8 a) { return a; }
INL b8 abs_b8(b8 a) { return a; }
INL b8 conj_b8(b8 a) { return a; }
INL b8 real_b8(b8 a) { return a; }
INL b8 signbit_b8(b8 a) { (void)a; return 0; }
INL b8 isnan_b8(b8 a) { (void)a; return 0; }
INL b8 isinf_b8(b8 a) { (void)a; return 0; }
INL b8 isfinite_b8(b8 a) { (void)a; return 1; }

#endif
