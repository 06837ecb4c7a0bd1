/* Functions that few programs call (nextafter) and powers with a constant exponent. Included by vector_math.h after the functions they use. */
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

/* The neighbour among the bfloat16 (2^16 bits of float apart) of numbers that are such */
INL f32 nextafter_bf16_f32(f32 a, f32 b)
{
    u32 bits = bits_f32(a), step = (a < b) == (a > 0) ? 0x10000u : -0x10000u;
    f32 y = a == 0 ? copysign_f32(from_bits_f32(0x10000u), b) : from_bits_f32(bits + step);
    y = a == b ? b : y;
    return (a != a) | (b != b) ? a + b : y;
}

/* The neighbour among the halves of numbers that are such: a last place away, 2^-24 below the normal ones; infinity follows 65504 */
INL f32 nextafter_f16_f32(f32 a, f32 b)
{
    f32 size = abs_f32(a), place = from_bits_f32((bits_f32(size) & 0x7f800000u) - (10u << 23));
    b8 outward = (a < b) == (a > 0), power = (bits_f32(a) & 0x7fffffu) == 0;
    place = size < 0x1p-14f || (size == 0x1p-14f && !outward) ? 0x1p-24f : (power && !outward ? 0.5f * place : place);
    f32 y = copysign_f32(outward ? size + place : size - place, a);
    y = size == INF_f32 ? copysign_f32(65504.0f, a) : (size == 65504.0f && outward ? copysign_f32(INF_f32, a) : y);
    y = a == 0 ? copysign_f32(0x1p-24f, b) : y;
    y = a == b ? b : y;
    return (a != a) | (b != b) ? a + b : y;
}

/* what AVX-512 does with fewer terms for results of half types */
INL f32 gelu_f16_f32(f32 x) { return gelu_f32(x); }
INL f32 gelu_bf16_f32(f32 x) { return gelu_f32(x); }

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
