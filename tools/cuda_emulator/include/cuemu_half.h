// __half and __nv_bfloat16: IEEE binary16 and the upper half of binary32, stored as 16 bits, computed in float and
// rounded to nearest even after each operation. The toolkit's own headers are not needed.
#pragma once

#include <cstdint>
#include <cmath>
#include <cstring>
#include <type_traits>

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
        template <class I, class = std::enable_if_t<std::is_integral<I>::value>>                       \
        type(I value) : bits(encode(static_cast<float>(value))) {}                                     \
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

// Pairs, which compute element by element.
#define CUEMU_PAIR_TYPE(pair, type)                                                                    \
    struct alignas(4) pair {                                                                           \
        type x, y;                                                                                     \
        friend pair operator+(pair a, pair b) { return {a.x + b.x, a.y + b.y}; }                       \
        friend pair operator-(pair a, pair b) { return {a.x - b.x, a.y - b.y}; }                       \
        friend pair operator*(pair a, pair b) { return {a.x * b.x, a.y * b.y}; }                       \
        friend pair operator/(pair a, pair b) { return {a.x / b.x, a.y / b.y}; }                       \
        friend pair operator-(pair a) { return {-a.x, -a.y}; }                                         \
        pair& operator+=(pair other) { return *this = *this + other; }                                 \
        pair& operator-=(pair other) { return *this = *this - other; }                                 \
        pair& operator*=(pair other) { return *this = *this * other; }                                 \
        friend bool operator==(pair a, pair b) { return a.x == b.x && a.y == b.y; }                    \
    };
CUEMU_PAIR_TYPE(__half2, __half)
CUEMU_PAIR_TYPE(__nv_bfloat162, __nv_bfloat16)
#undef CUEMU_PAIR_TYPE
using half2 = __half2;
using nv_bfloat162 = __nv_bfloat162;

// The arithmetic both types have. A fused multiply-add is rounded to float on its way, which differs from one rounding
// only where that lands on a tie.
#define CUEMU_HALF_FUNCTIONS(type, pair)                                                               \
    static inline type __hadd(type a, type b) { return a + b; }                                        \
    static inline type __hsub(type a, type b) { return a - b; }                                        \
    static inline type __hmul(type a, type b) { return a * b; }                                        \
    static inline type __hdiv(type a, type b) { return a / b; }                                        \
    static inline type __hadd_rn(type a, type b) { return a + b; }                                     \
    static inline type __hsub_rn(type a, type b) { return a - b; }                                     \
    static inline type __hmul_rn(type a, type b) { return a * b; }                                     \
    static inline type __hfma(type a, type b, type c) { return type(std::fma(float(a), float(b), float(c))); } \
    static inline type __hneg(type a) { return -a; }                                                   \
    static inline type __habs(type a) { return type(std::fabs(float(a))); }                            \
    static inline type __hmax(type a, type b) { return type(std::fmax(float(a), float(b))); }          \
    static inline type __hmin(type a, type b) { return type(std::fmin(float(a), float(b))); }          \
    static inline type __hmax_nan(type a, type b) { return a != a ? a : b != b ? b : __hmax(a, b); }   \
    static inline type __hmin_nan(type a, type b) { return a != a ? a : b != b ? b : __hmin(a, b); }   \
    static inline bool __heq(type a, type b) { return a == b; }                                        \
    static inline bool __hne(type a, type b) { return a != b; }                                        \
    static inline bool __hlt(type a, type b) { return a < b; }                                         \
    static inline bool __hle(type a, type b) { return a <= b; }                                        \
    static inline bool __hgt(type a, type b) { return a > b; }                                         \
    static inline bool __hge(type a, type b) { return a >= b; }                                        \
    static inline bool __hisnan(type a) { return a != a; }                                             \
    static inline int __hisinf(type a) { return std::isinf(float(a)) ? (float(a) < 0 ? -1 : 1) : 0; }  \
    static inline type hexp(type a) { return type(std::exp(float(a))); }                               \
    static inline type hlog(type a) { return type(std::log(float(a))); }                               \
    static inline type hsqrt(type a) { return type(std::sqrt(float(a))); }                             \
    static inline type hrsqrt(type a) { return type(1.0f / std::sqrt(float(a))); }                     \
    static inline type hrcp(type a) { return type(1.0f / float(a)); }                                  \
    static inline type hsin(type a) { return type(std::sin(float(a))); }                               \
    static inline type hcos(type a) { return type(std::cos(float(a))); }                               \
    static inline type htanh(type a) { return type(std::tanh(float(a))); }                             \
    static inline type hfloor(type a) { return type(std::floor(float(a))); }                           \
    static inline type hceil(type a) { return type(std::ceil(float(a))); }                             \
    static inline pair __hadd2(pair a, pair b) { return a + b; }                                       \
    static inline pair __hsub2(pair a, pair b) { return a - b; }                                       \
    static inline pair __hmul2(pair a, pair b) { return a * b; }                                       \
    static inline pair __h2div(pair a, pair b) { return a / b; }                                       \
    static inline pair __hfma2(pair a, pair b, pair c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
    static inline pair __hneg2(pair a) { return -a; }                                                  \
    static inline pair __habs2(pair a) { return {__habs(a.x), __habs(a.y)}; }                          \
    static inline pair __hmax2(pair a, pair b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }        \
    static inline pair __hmin2(pair a, pair b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }        \
    static inline pair h2exp(pair a) { return {hexp(a.x), hexp(a.y)}; }                                \
    static inline pair h2rcp(pair a) { return {hrcp(a.x), hrcp(a.y)}; }
CUEMU_HALF_FUNCTIONS(__half, __half2)
CUEMU_HALF_FUNCTIONS(__nv_bfloat16, __nv_bfloat162)
#undef CUEMU_HALF_FUNCTIONS

static inline float __half2float(__half value) { return float(value); }
static inline __half __float2half(float value) { return __half(value); }
static inline __half __float2half_rn(float value) { return __half(value); }
static inline __half __double2half(double value) { return __half(value); }
static inline __half __int2half_rn(int value) { return __half(value); }
static inline int __half2int_rn(__half value) { return static_cast<int>(std::nearbyint(float(value))); }
static inline int __half2int_rz(__half value) { return static_cast<int>(float(value)); }
static inline __half2 __float2half2_rn(float value) { return {__half(value), __half(value)}; }
static inline __half2 __half2half2(__half value) { return {value, value}; }
static inline __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
static inline __half2 __halves2half2(__half x, __half y) { return {x, y}; }
static inline __half2 make_half2(__half x, __half y) { return {x, y}; }
static inline __half2 __float22half2_rn(float2 value) { return {__half(value.x), __half(value.y)}; }
static inline float2 __half22float2(__half2 value) { return {float(value.x), float(value.y)}; }
static inline __half __low2half(__half2 value) { return value.x; }
static inline __half __high2half(__half2 value) { return value.y; }
static inline float __low2float(__half2 value) { return float(value.x); }
static inline float __high2float(__half2 value) { return float(value.y); }
static inline unsigned short __half_as_ushort(__half value) { return value.bits; }
static inline short __half_as_short(__half value) { return static_cast<short>(value.bits); }
static inline __half __ushort_as_half(unsigned short bits) { __half value; value.bits = bits; return value; }

static inline float __bfloat162float(__nv_bfloat16 value) { return float(value); }
static inline __nv_bfloat16 __float2bfloat16(float value) { return __nv_bfloat16(value); }
static inline __nv_bfloat16 __float2bfloat16_rn(float value) { return __nv_bfloat16(value); }
static inline __nv_bfloat16 __double2bfloat16(double value) { return __nv_bfloat16(value); }
static inline __nv_bfloat16 __int2bfloat16_rn(int value) { return __nv_bfloat16(value); }
static inline __nv_bfloat162 __float2bfloat162_rn(float value) { return {__nv_bfloat16(value), __nv_bfloat16(value)}; }
static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__nv_bfloat16(x), __nv_bfloat16(y)}; }
static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
static inline __nv_bfloat162 __float22bfloat162_rn(float2 value) { return __floats2bfloat162_rn(value.x, value.y); }
static inline float2 __bfloat1622float2(__nv_bfloat162 value) { return {float(value.x), float(value.y)}; }
static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 value) { return value.x; }
static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 value) { return value.y; }
static inline float __low2float(__nv_bfloat162 value) { return float(value.x); }
static inline float __high2float(__nv_bfloat162 value) { return float(value.y); }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
static inline short __bfloat16_as_short(__nv_bfloat16 value) { return static_cast<short>(value.bits); }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
    __nv_bfloat16 value;
    value.bits = bits;
    return value;
}
