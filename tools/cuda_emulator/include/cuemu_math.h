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
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
static inline unsigned __funnelshift_l(unsigned low, unsigned high, unsigned shift) {
    return static_cast<unsigned>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
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

template <class T> inline T __ldg(const T* address) { return *address; }
template <class T> inline T __ldcg(const T* address) { return *address; }
template <class T> inline T __ldcs(const T* address) { return *address; }
template <class T> inline void __stcg(T* address, T value) { *address = value; }
template <class T> inline void __stcs(T* address, T value) { *address = value; }

static inline void __nanosleep(unsigned) {}
static inline void __trap() { cuemu_trap("__trap()"); }
static inline long long clock64() { return static_cast<long long>(__builtin_ia32_rdtsc()); }
