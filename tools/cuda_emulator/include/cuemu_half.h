// __half and __nv_bfloat16: IEEE binary16 and the upper half of binary32, stored as 16 bits, computed in float and
// rounded to nearest even after each operation. The toolkit's own headers are not needed.
#pragma once

#include <cstdint>
#include <cstring>

namespace cuemu {

inline uint32_t float_bits(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return bits;
}
inline float bits_float(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, 4);
    return value;
}

// Discards the lowest `shift` bits of a significand, rounding to nearest, ties to even.
inline uint32_t round_shift(uint32_t significand, int shift) {
    uint32_t kept = significand >> shift, rest = significand & ((1u << shift) - 1), half = 1u << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

inline uint16_t half_from_float(float value) {
    uint32_t bits = float_bits(value), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) return static_cast<uint16_t>(0x7FFFu);
    int exponent = static_cast<int>(magnitude >> 23) - 112;  // biased for binary16
    if (exponent >= 31) return static_cast<uint16_t>(sign | 0x7C00u);
    if (exponent < -10) return static_cast<uint16_t>(sign);
    uint32_t significand = (magnitude & 0x7FFFFFu) | 0x800000u;
    if (exponent <= 0) return static_cast<uint16_t>(sign | round_shift(significand, 14 - exponent));
    // A carry out of the significand increments the exponent, up to infinity.
    return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent - 1) << 10) + round_shift(significand, 13)));
}

inline float half_to_float(uint16_t bits) {
    uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, exponent = bits >> 10 & 31, fraction = bits & 0x3FFu;
    if (exponent == 31) return bits_float(sign | 0x7F800000u | fraction << 13);
    if (exponent) return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
    float magnitude = static_cast<float>(fraction) * 5.9604644775390625e-08f;  // 2^-24, exact
    return sign ? -magnitude : magnitude;
}

inline uint16_t bfloat16_from_float(float value) {
    uint32_t bits = float_bits(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>(0x7FFFu);
    return static_cast<uint16_t>((bits + 0x7FFFu + (bits >> 16 & 1)) >> 16);
}

inline float bfloat16_to_float(uint16_t bits) { return bits_float(static_cast<uint32_t>(bits) << 16); }

}  // namespace cuemu

// The default constructor is trivial, so that arrays may stand in shared memory and in unions.
#define CUEMU_HALF_TYPE(type, encode, decode)                                                          \
    struct alignas(2) type {                                                                           \
        uint16_t bits;                                                                                 \
        type() = default;                                                                              \
        type(float value) : bits(encode(value)) {}                                                     \
        type(double value) : bits(encode(static_cast<float>(value))) {}                                \
        type(int value) : bits(encode(static_cast<float>(value))) {}                                   \
        operator float() const { return decode(bits); }                                                \
        type& operator+=(type other) { return *this = *this + other; }                                 \
        type& operator-=(type other) { return *this = *this - other; }                                 \
        type& operator*=(type other) { return *this = *this * other; }                                 \
        type& operator/=(type other) { return *this = *this / other; }                                 \
        friend type operator+(type a, type b) { return float(a) + float(b); }                          \
        friend type operator-(type a, type b) { return float(a) - float(b); }                          \
        friend type operator*(type a, type b) { return float(a) * float(b); }                          \
        friend type operator/(type a, type b) { return float(a) / float(b); }                          \
        friend type operator-(type a) { return -float(a); }                                            \
        friend bool operator==(type a, type b) { return float(a) == float(b); }                        \
        friend bool operator!=(type a, type b) { return float(a) != float(b); }                        \
        friend bool operator<(type a, type b) { return float(a) < float(b); }                          \
        friend bool operator<=(type a, type b) { return float(a) <= float(b); }                        \
        friend bool operator>(type a, type b) { return float(a) > float(b); }                          \
        friend bool operator>=(type a, type b) { return float(a) >= float(b); }                        \
    };

CUEMU_HALF_TYPE(__half, cuemu::half_from_float, cuemu::half_to_float)
CUEMU_HALF_TYPE(__nv_bfloat16, cuemu::bfloat16_from_float, cuemu::bfloat16_to_float)
#undef CUEMU_HALF_TYPE

using half = __half;
using nv_bfloat16 = __nv_bfloat16;
struct alignas(4) __half2 { __half x, y; };
struct alignas(4) __nv_bfloat162 { __nv_bfloat16 x, y; };
using half2 = __half2;
using nv_bfloat162 = __nv_bfloat162;

static inline float __half2float(__half value) { return float(value); }
static inline __half __float2half(float value) { return __half(value); }
static inline __half __float2half_rn(float value) { return __half(value); }
static inline float __bfloat162float(__nv_bfloat16 value) { return float(value); }
static inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
static inline __nv_bfloat16 __float2bfloat16_rn(float value) { return __nv_bfloat16(value); }
static inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
static inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
static inline __half __low2half(__half2 value) { return value.x; }
static inline __half __high2half(__half2 value) { return value.y; }
static inline float __low2float(__half2 value) { return float(value.x); }
static inline float __high2float(__half2 value) { return float(value.y); }
static inline unsigned short __half_as_ushort(__half value) { return value.bits; }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
static inline __half __ushort_as_half(unsigned short bits) { __half value; value.bits = bits; return value; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
    __nv_bfloat16 value;
    value.bits = bits;
    return value;
}
