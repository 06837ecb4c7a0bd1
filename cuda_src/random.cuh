// Random numbers: Philox4x32-10 (Salmon et al. 2011), one subsequence per thread, distributed over elements as PyTorch does it on CUDA,
// so that a seed gives the same numbers there and here on a device with as many multiprocessors.
#pragma once

#include "iteration.cuh"

namespace trt {

struct Words {
    unsigned x, y, z, w;
};

__device__ __forceinline__ Words philox_round(Words c, unsigned key0, unsigned key1) {
    const unsigned long long a = 0xD2511F53ull * c.x, b = 0xCD9E8D57ull * c.z;
    return Words{static_cast<unsigned>(b >> 32) ^ c.y ^ key0, static_cast<unsigned>(b), static_cast<unsigned>(a >> 32) ^ c.w ^ key1, static_cast<unsigned>(a)};
}

__device__ __forceinline__ Words philox(Words counter, unsigned key0, unsigned key1) {
#pragma unroll
    for (int round = 0; round < 9; round++) {
        counter = philox_round(counter, key0, key1);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return philox_round(counter, key0, key1);
}

// The stream of one thread: four words a call, from word `offset` (a multiple of four) of its subsequence.
struct Philox {
    unsigned key0, key1;
    unsigned long long block, sequence;
    __device__ __forceinline__ Philox(unsigned long long seed, unsigned long long thread, unsigned long long offset)
        : key0(static_cast<unsigned>(seed)), key1(static_cast<unsigned>(seed >> 32)), block(offset / 4), sequence(thread) {}
    __device__ __forceinline__ Words next() {
        const Words counter{static_cast<unsigned>(block), static_cast<unsigned>(block >> 32), static_cast<unsigned>(sequence), static_cast<unsigned>(sequence >> 32)};
        if (++block == 0) sequence++;
        return philox(counter, key0, key1);
    }
};

// ---- from words to numbers ---------------------------------------------------------------------------------------

constexpr float kUnit = 2.3283064e-10f;  // 2^-32
constexpr double kUnitDouble = 1.1102230246251565e-16;  // 2^-53

// In (0, 1].
__device__ __forceinline__ float unit_float(unsigned word) { return static_cast<float>(word) * kUnit + kUnit / 2.0f; }
__device__ __forceinline__ double unit_double(unsigned low, unsigned high) {
    const unsigned long long bits = low ^ static_cast<unsigned long long>(high) << 21;
    return static_cast<double>(bits) * kUnitDouble + kUnitDouble / 2.0;
}

// Box and Muller 1958: sine first.
__device__ __forceinline__ void normal_pair(unsigned x, unsigned y, float* out) {
    const float u = unit_float(x), v = static_cast<float>(y) * (kUnit * 6.2831855f) + kUnit * 6.2831855f / 2.0f, s = sqrt(-2.0f * log(u));
    out[0] = sin(v) * s;
    out[1] = cos(v) * s;
}
__device__ __forceinline__ void normal_pair(Words w, double* out) {
    const double u = unit_double(w.x, w.y);
    const unsigned long long bits = w.z ^ static_cast<unsigned long long>(w.w) << 21;
    const double v = static_cast<double>(bits) * (kUnitDouble * 2.0) + kUnitDouble, s = sqrt(-2.0 * log(u));
    out[0] = sin(v * 3.14159265358979323846) * s;
    out[1] = cos(v * 3.14159265358979323846) * s;
}

// Draws(Philox&, float or double[4 or 2]): uniform or normal numbers; or words for integers.
template <class A>
struct Draw;
template <>
struct Draw<float> {
    static constexpr int kCount = 4;
    static __device__ __forceinline__ void uniform(Philox& stream, float* out) {
        const Words w = stream.next();
        out[0] = unit_float(w.x), out[1] = unit_float(w.y), out[2] = unit_float(w.z), out[3] = unit_float(w.w);
    }
    static __device__ __forceinline__ void normal(Philox& stream, float* out) {
        const Words w = stream.next();
        normal_pair(w.x, w.y, out);
        normal_pair(w.z, w.w, out + 2);
    }
};
template <>
struct Draw<double> {
    static constexpr int kCount = 2;
    static __device__ __forceinline__ void uniform(Philox& stream, double* out) {
        const Words w = stream.next();
        out[0] = unit_double(w.x, w.y), out[1] = unit_double(w.z, w.w);
    }
    static __device__ __forceinline__ void normal(Philox& stream, double* out) { normal_pair(stream.next(), out); }
};
template <>
struct Draw<unsigned> {
    static constexpr int kCount = 4;
    static __device__ __forceinline__ void words(Philox& stream, unsigned* out) {
        const Words w = stream.next();
        out[0] = w.x, out[1] = w.y, out[2] = w.z, out[3] = w.w;
    }
};
template <>
struct Draw<unsigned long long> {
    static constexpr int kCount = 2;
    static __device__ __forceinline__ void words(Philox& stream, unsigned long long* out) {
        const Words w = stream.next();
        out[0] = static_cast<unsigned long long>(w.x) << 32 | w.y, out[1] = static_cast<unsigned long long>(w.z) << 32 | w.w;
    }
};

struct FillParams {
    unsigned long long numel, seed, offset;
    double a, b;
    long long low;
    unsigned long long range;
};

// Element i + k * threads gets the k-th number of a call: the order of PyTorch's grid.
template <class A, class F, class Put>
__device__ __forceinline__ void fill_random(const FillParams& p, const F& draw, const Put& put) {
    constexpr int kCount = Draw<A>::kCount;
    const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const unsigned long long threads = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
    Philox stream(p.seed, thread, p.offset);
    for (unsigned long long first = thread; first < p.numel; first += threads * kCount) {
        A number[kCount];
        draw(stream, number);
#pragma unroll
        for (int k = 0; k < kCount; k++) {
            const unsigned long long at = first + threads * k;
            if (at < p.numel) put(at, number[k]);
        }
    }
}

// The type that numbers for T are drawn in.
template <class T>
struct DrawType { using type = float; };
template <>
struct DrawType<double> { using type = double; };

// ---- the fills: one kernel each ----------------------------------------------------------------------------------

#define TRT_FILL(name, Number, call)                                                         \
    template <class T>                                                                       \
    __device__ __forceinline__ void name(const FillParams& p, T* out) {                      \
        using A = Number;                                                                    \
        fill_random<A>(p, [](Philox& s, A* to) { Draw<A>::call(s, to); }, [&](unsigned long long i, A x)
#define TRT_FILL_END );  }

TRT_FILL(fill_uniform, typename DrawType<T>::type, uniform) {
    const A low = static_cast<A>(p.a), high = static_cast<A>(p.b);
    const T value = convert<T>(x * static_cast<A>(p.b - p.a) + low);
    out[i] = convert<A>(value) == convert<A>(convert<T>(high)) ? convert<T>(low) : value;  // from (0, 1] to [0, 1)
} TRT_FILL_END
TRT_FILL(fill_normal, typename DrawType<T>::type, normal) { out[i] = convert<T>(x * static_cast<A>(p.b) + static_cast<A>(p.a)); } TRT_FILL_END
TRT_FILL(fill_log_normal, typename DrawType<T>::type, normal) { out[i] = convert<T>(exp(x * static_cast<A>(p.b) + static_cast<A>(p.a))); } TRT_FILL_END
TRT_FILL(fill_cauchy, typename DrawType<T>::type, uniform) {
    const A edge = sizeof(A) == 4 ? A(1.1920929e-7f) : A(2.220446049250313e-16);
    x = x > A(1) - edge ? A(1) - edge : x < edge ? edge : x;
    out[i] = convert<T>(static_cast<A>(p.a) + static_cast<A>(p.b) * tan(A(3.14159265358979323846) * (x - A(0.5))));
} TRT_FILL_END
TRT_FILL(fill_exponential, typename DrawType<T>::type, uniform) {
    const A half = (sizeof(A) == 4 ? A(1.1920929e-7f) : A(2.220446049250313e-16)) / A(2);
    out[i] = convert<T>(A(-1) / static_cast<A>(p.a) * (x >= A(1) - half ? -half : log(x)));
} TRT_FILL_END
TRT_FILL(fill_geometric, typename DrawType<T>::type, uniform) { out[i] = convert<T>(ceil(log(x) / log1p(-static_cast<A>(p.a)))); } TRT_FILL_END
TRT_FILL(fill_bernoulli, typename DrawType<T>::type, uniform) { out[i] = convert<T>(x < static_cast<A>(p.a)); } TRT_FILL_END
TRT_FILL(fill_random_words, unsigned, words) { out[i] = convert<T>(static_cast<long long>(x % p.range)); } TRT_FILL_END
TRT_FILL(fill_random_wide, unsigned long long, words) { out[i] = convert<T>(static_cast<long long>(x % p.range)); } TRT_FILL_END
TRT_FILL(fill_between, unsigned, words) { out[i] = convert<T>(static_cast<long long>(x % p.range) + p.low); } TRT_FILL_END
TRT_FILL(fill_between_wide, unsigned long long, words) {
    out[i] = convert<T>(static_cast<long long>((p.range ? x % p.range : x) + static_cast<unsigned long long>(p.low)));
} TRT_FILL_END
#undef TRT_FILL
#undef TRT_FILL_END

// x * (mask * scale), the mask one byte per element.
template <class T>
__device__ __forceinline__ void masked_scale(unsigned long long numel, const T* x, const bool* mask, double scale, T* out) {
    using A = compute_t<T>;
    const T factor = convert<T>(static_cast<A>(scale));
    for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < numel;
         i += static_cast<unsigned long long>(gridDim.x) * blockDim.x) {
        out[i] = convert<T>(convert<A>(x[i]) * (mask[i] ? convert<A>(factor) : A(0)));
    }
}

}  // namespace trt
