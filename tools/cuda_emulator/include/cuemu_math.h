// Device functions that the C++ library lacks: intrinsics, bit operations, reinterpretations, cached loads. The fast
// intrinsics (__expf and its kin) are the accurate functions here, so results differ from hardware in the last bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

using std::max;
using std::min;

#if !__GLIBC_PREREQ(2, 42)  // C23's functions, which newer C libraries declare themselves
static inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
static inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
#endif
static inline float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
static inline void sincospif(float x, float* sine, float* cosine) {
    *sine = static_cast<float>(std::sin(x * 3.141592653589793));
    *cosine = static_cast<float>(std::cos(x * 3.141592653589793));
}

static inline float __fdividef(float a, float b) { return a / b; }
static inline float __frcp_rn(float a) { return 1.0f / a; }
static inline float __fsqrt_rn(float a) { return std::sqrt(a); }
static inline float __frsqrt_rn(float a) { return rsqrtf(a); }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double a) { return std::sqrt(a); }
static inline double __drcp_rn(double a) { return 1.0 / a; }
static inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
static inline float sinpif(float x) { return static_cast<float>(std::sin(std::fmod(x, 2.0) * 3.141592653589793)); }
static inline float cospif(float x) { return static_cast<float>(std::cos(std::fmod(x, 2.0) * 3.141592653589793)); }
static inline double sinpi(double x) { return std::sin(std::fmod(x, 2.0) * 3.141592653589793); }
static inline double cospi(double x) { return std::cos(std::fmod(x, 2.0) * 3.141592653589793); }
static inline float normcdff(float x) { return static_cast<float>(0.5 * std::erfc(-x * 0.7071067811865476)); }
static inline double normcdf(double x) { return 0.5 * std::erfc(-x * 0.7071067811865476); }
static inline float fdividef(float a, float b) { return a / b; }
static inline float rnorm3df(float a, float b, float c) { return 1.0f / std::hypot(a, b, c); }
static inline float norm3df(float a, float b, float c) { return std::hypot(a, b, c); }
static inline float rhypotf(float a, float b) { return 1.0f / std::hypot(a, b); }
static inline float __saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }

// glibc declares functions with some of these names, so they are renamed rather than overloaded.
#define __expf(x) std::exp(static_cast<float>(x))
#define __exp10f(x) std::pow(10.0f, static_cast<float>(x))
#define __logf(x) std::log(static_cast<float>(x))
#define __log2f(x) std::log2(static_cast<float>(x))
#define __log10f(x) std::log10(static_cast<float>(x))
#define __powf(x, y) std::pow(static_cast<float>(x), static_cast<float>(y))
#define __sinf(x) std::sin(static_cast<float>(x))
#define __cosf(x) std::cos(static_cast<float>(x))
#define __tanf(x) std::tan(static_cast<float>(x))

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll(static_cast<unsigned long long>(x)) : 64; }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }
static inline unsigned __brev(unsigned x) {
    unsigned reversed = 0;
    for (int i = 0; i < 32; i++) reversed |= (x >> i & 1u) << (31 - i);
    return reversed;
}
static inline unsigned __umulhi(unsigned a, unsigned b) {
    return static_cast<unsigned>(static_cast<uint64_t>(a) * b >> 32);
}
static inline int __mulhi(int a, int b) { return static_cast<int>(static_cast<int64_t>(a) * b >> 32); }
static inline int __mul24(int a, int b) { return (a << 8 >> 8) * (b << 8 >> 8); }
static inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xFFFFFFu) * (b & 0xFFFFFFu); }
static inline unsigned __sad(int a, int b, unsigned c) { return c + static_cast<unsigned>(a < b ? b - a : a - b); }
static inline long long __mul64hi(long long a, long long b) {
    return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
static inline unsigned long long __brevll(unsigned long long x) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned>(x))) << 32 | __brev(static_cast<unsigned>(x >> 32));
}
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector) {
    uint64_t bytes = static_cast<uint64_t>(y) << 32 | x;
    unsigned result = 0;
    for (int i = 0; i < 4; i++) result |= static_cast<unsigned>(bytes >> 8 * (selector >> 4 * i & 7) & 0xFF) << 8 * i;
    return result;
}
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}

static inline unsigned __funnelshift_r(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}

static inline unsigned __float_as_uint(float x) { return cuemu::float_bits(x); }
static inline int __float_as_int(float x) { return static_cast<int>(cuemu::float_bits(x)); }
static inline float __uint_as_float(unsigned x) { return cuemu::bits_float(x); }
static inline float __int_as_float(int x) { return cuemu::bits_float(static_cast<unsigned>(x)); }
static inline long long __double_as_longlong(double x) { return cuemu::from_bits<long long>(cuemu::to_bits(x)); }
static inline double __longlong_as_double(long long x) { return cuemu::from_bits<double>(cuemu::to_bits(x)); }
static inline int __float2int_rn(float x) { return static_cast<int>(std::nearbyint(x)); }
static inline int __float2int_rz(float x) { return static_cast<int>(x); }
static inline float __int2float_rn(int x) { return static_cast<float>(x); }
static inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
static inline float __ll2float_rn(long long x) { return static_cast<float>(x); }
static inline float __ull2float_rn(unsigned long long x) { return static_cast<float>(x); }
static inline double __int2double_rn(int x) { return x; }
static inline double __ll2double_rn(long long x) { return static_cast<double>(x); }
static inline unsigned __float2uint_rn(float x) { return static_cast<unsigned>(std::nearbyint(x)); }
static inline unsigned __float2uint_rz(float x) { return static_cast<unsigned>(x); }
static inline int __float2int_rd(float x) { return static_cast<int>(std::floor(x)); }
static inline int __float2int_ru(float x) { return static_cast<int>(std::ceil(x)); }
static inline long long __float2ll_rn(float x) { return static_cast<long long>(std::nearbyint(x)); }
static inline long long __float2ll_rz(float x) { return static_cast<long long>(x); }
static inline int __double2int_rn(double x) { return static_cast<int>(std::nearbyint(x)); }
static inline int __double2int_rz(double x) { return static_cast<int>(x); }
static inline long long __double2ll_rn(double x) { return static_cast<long long>(std::nearbyint(x)); }
static inline float __double2float_rn(double x) { return static_cast<float>(x); }
static inline int __double2hiint(double x) { return static_cast<int>(cuemu::to_bits(x) >> 32); }
static inline int __double2loint(double x) { return static_cast<int>(cuemu::to_bits(x)); }

template <class T> inline T __ldg(const T* address) { return *address; }
template <class T> inline T __ldcg(const T* address) { return *address; }
template <class T> inline T __ldcs(const T* address) { return *address; }
template <class T> inline T __ldca(const T* address) { return *address; }
template <class T> inline T __ldcv(const T* address) { return *address; }
template <class T> inline T __ldlu(const T* address) { return *address; }
template <class T> inline void __stwb(T* address, T value) { *address = value; }
template <class T> inline void __stwt(T* address, T value) { *address = value; }
template <class T> inline void __stcg(T* address, T value) { *address = value; }
template <class T> inline void __stcs(T* address, T value) { *address = value; }

static inline void __nanosleep(unsigned) {}
static inline void __trap() { cuemu_trap("__trap()"); }
static inline long long clock64() { return static_cast<long long>(__builtin_ia32_rdtsc()); }
#define __builtin_assume(condition) ((void)0)
#define __assume(condition) ((void)0)
