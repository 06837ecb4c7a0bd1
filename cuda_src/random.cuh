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

// Box and Muller 1958: sine first. By the functions that cuRAND's device code has, whose last digits PyTorch's numbers are made of.
__device__ __forceinline__ void sine_and_cosine(float angle, float* sine, float* cosine) {
#ifdef __CUDA_ARCH__
    __sincosf(angle, sine, cosine);
#else
    *sine = sin(angle);
    *cosine = cos(angle);
#endif
}
// PyTorch's fills take the card's fast functions of float, whose last digits their numbers are made of.
__device__ __forceinline__ float fast_log(float x) { return __logf(x); }
__device__ __forceinline__ double fast_log(double x) { return log(x); }
__device__ __forceinline__ float fast_log1p(float x) { return __logf(1.0f + x); }
__device__ __forceinline__ double fast_log1p(double x) { return log1p(x); }
__device__ __forceinline__ float fast_exp(float x) { return __expf(x); }
__device__ __forceinline__ double fast_exp(double x) { return exp(x); }
__device__ __forceinline__ float fast_tan(float x) { return __tanf(x); }
__device__ __forceinline__ double fast_tan(double x) { return tan(x); }
// Of pi times a number.
__device__ __forceinline__ void sine_and_cosine_pi(double turns, double* sine, double* cosine) {
#ifdef __CUDA_ARCH__
    ::sincospi(turns, sine, cosine);
#else
    *sine = sin(turns * 3.14159265358979323846);
    *cosine = cos(turns * 3.14159265358979323846);
#endif
}
__device__ __forceinline__ void normal_pair(unsigned x, unsigned y, float* out) {
    const float u = unit_float(x), v = static_cast<float>(y) * (kUnit * 6.2831855f) + kUnit * 6.2831855f / 2.0f, s = sqrt(-2.0f * log(u));
    float sine, cosine;
    sine_and_cosine(v, &sine, &cosine);
    out[0] = sine * s;
    out[1] = cosine * s;
}
__device__ __forceinline__ void normal_pair(Words w, double* out) {
    const double u = unit_double(w.x, w.y);
    const unsigned long long bits = w.z ^ static_cast<unsigned long long>(w.w) << 21;
    const double v = static_cast<double>(bits) * (kUnitDouble * 2.0) + kUnitDouble, s = sqrt(-2.0 * log(u));
    double sine, cosine;
    sine_and_cosine_pi(v, &sine, &cosine);
    out[0] = sine * s;
    out[1] = cosine * s;
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
    const unsigned long long* state;  // of a generator inside a graph, written before each replay: its seed, and an offset that `offset` is added to
    double a, b;
    long long low;
    unsigned long long range;
};
__device__ __forceinline__ unsigned long long seed_of(const FillParams& p) { return p.state ? p.state[0] : p.seed; }
__device__ __forceinline__ unsigned long long offset_of(const FillParams& p) { return p.state ? p.state[1] + p.offset : p.offset; }

// Element i + k * threads gets the k-th number of a call: the order of PyTorch's grid.
template <class A, class F, class Put>
__device__ __forceinline__ void fill_random(const FillParams& p, const F& draw, const Put& put) {
    constexpr int kCount = Draw<A>::kCount;
    const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const unsigned long long threads = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
    Philox stream(seed_of(p), thread, offset_of(p));
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
TRT_FILL(fill_log_normal, typename DrawType<T>::type, normal) { out[i] = convert<T>(fast_exp(x * static_cast<A>(p.b) + static_cast<A>(p.a))); } TRT_FILL_END
TRT_FILL(fill_cauchy, typename DrawType<T>::type, uniform) {
    const A edge = sizeof(A) == 4 ? A(1.1920929e-7f) : A(2.220446049250313e-16);
    x = x > A(1) - edge ? A(1) - edge : x < edge ? edge : x;
    out[i] = convert<T>(static_cast<A>(p.a) + static_cast<A>(p.b) * fast_tan(A(3.14159265358979323846) * (x - A(0.5))));
} TRT_FILL_END
TRT_FILL(fill_exponential, typename DrawType<T>::type, uniform) {
    const A half = (sizeof(A) == 4 ? A(1.1920929e-7f) : A(2.220446049250313e-16)) / A(2);
    out[i] = convert<T>(A(-1) / static_cast<A>(p.a) * (x >= A(1) - half ? -half : fast_log(x)));
} TRT_FILL_END
TRT_FILL(fill_geometric, typename DrawType<T>::type, uniform) { out[i] = convert<T>(ceil(fast_log(x) / fast_log1p(-static_cast<A>(p.a)))); } TRT_FILL_END
TRT_FILL(fill_bernoulli, typename DrawType<T>::type, uniform) { out[i] = convert<T>(x < static_cast<A>(p.a)); } TRT_FILL_END
TRT_FILL(fill_random_words, unsigned, words) { out[i] = convert<T>(static_cast<long long>(x % p.range)); } TRT_FILL_END
TRT_FILL(fill_random_wide, unsigned long long, words) { out[i] = convert<T>(static_cast<long long>(x % p.range)); } TRT_FILL_END
TRT_FILL(fill_between, unsigned, words) { out[i] = convert<T>(static_cast<long long>(x % p.range) + p.low); } TRT_FILL_END
TRT_FILL(fill_between_wide, unsigned long long, words) {
    out[i] = convert<T>(static_cast<long long>((p.range ? x % p.range : x) + static_cast<unsigned long long>(p.low)));
} TRT_FILL_END
#undef TRT_FILL
#undef TRT_FILL_END

// ---- draws that follow other grids of PyTorch's ------------------------------------------------------------------------

// Dropout's mask: each thread draws for kVector neighbours, four words a call; the words of a call that are left over are not used.
template <int kVector>
__device__ __forceinline__ void dropout_mask(const FillParams& p, bool* mask) {
    const float keep = static_cast<float>(p.a);
    const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const unsigned long long threads = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
    if constexpr (kVector == 1) {
        fill_random<float>(p, [](Philox& s, float* to) { Draw<float>::uniform(s, to); }, [&](unsigned long long i, float x) { mask[i] = x < keep; });
    } else {
        Philox stream(seed_of(p), thread, offset_of(p));
        for (unsigned long long first = thread * kVector; first < p.numel; first += threads * kVector) {  // numel is a multiple of kVector
            Vector<bool, kVector> kept;
#pragma unroll
            for (int k = 0; k < kVector; k += 4) {
                float number[4];
                Draw<float>::uniform(stream, number);
#pragma unroll
                for (int l = 0; l < 4 && l < kVector; l++) kept.at[k + l] = number[l] < keep;
            }
            *reinterpret_cast<Vector<bool, kVector>*>(mask + first) = kept;
        }
    }
}

// out = 1 with the probability of each element: a thread draws once, for four neighbours.
template <class P, class T>
__device__ __forceinline__ void bernoulli_of(const FillParams& p, const P* probability, T* out) {
    const unsigned long long thread = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    float number[4];
    Philox stream(seed_of(p), thread, offset_of(p));
    Draw<float>::uniform(stream, number);
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (thread * 4 + k < p.numel) out[thread * 4 + k] = convert<T>(static_cast<P>(number[k]) <= probability[thread * 4 + k]);
    }
}

// Positions whose sorted keys are equal are shuffled (Fisher and Yates, from the back), by the thread of the first of them.
template <class Key>
__device__ __forceinline__ void shuffle_equal(const FillParams& p, const Key* keys, int* positions) {
    const long long n = static_cast<long long>(p.numel), step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n - 1; i += step) {
        if (keys[i] != keys[i + 1] || (i > 0 && keys[i] == keys[i - 1])) continue;
        unsigned size = 2;
        while (i + size < n && keys[i + size] == keys[i]) size++;
        Philox stream(seed_of(p), i, offset_of(p));
        Words words = {};
        unsigned drawn = 0;
        for (unsigned last = size - 1; last > 0; last--, drawn++) {
            if (drawn % 4 == 0) words = stream.next();
            const unsigned word = drawn % 4 == 0 ? words.x : drawn % 4 == 1 ? words.y : drawn % 4 == 2 ? words.z : words.w, other = word % (last + 1);
            const int held = positions[i + last];
            positions[i + last] = positions[i + other];
            positions[i + other] = held;
        }
    }
}

// p.low draws from each of p.numel rows of p.range categories: where a uniform number falls among the running sums of the weights,
// which add up to 1. A thread a draw, in blocks of 128; grid (draws, rows).
template <class T>
__device__ __forceinline__ void sample_rows(const FillParams& p, const T* sums, const T* weights, long long* out) {
    using A = compute_t<T>;
    const long long draw = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, categories = static_cast<long long>(p.range);
    Philox stream(seed_of(p), static_cast<unsigned long long>(blockIdx.y) * gridDim.x * blockDim.x + draw, offset_of(p));
    if (draw >= p.low) return;
    for (unsigned long long row = blockIdx.y; row < p.numel; row += gridDim.y) {
        const A wanted = convert<A>(convert<T>(unit_float(stream.next().x)));
        const T* const sum = sums + row * categories;
        const T* const weight = weights + row * categories;
        long long low = 0, high = categories;
        while (low < high) {
            const long long middle = low + (high - low) / 2;
            if (convert<A>(sum[middle]) < wanted) low = middle + 1;
            else high = middle;
        }
        if (low == categories) low--;  // rounding
        while (low > 0 && convert<A>(weight[low]) == 0) low--;
        out[row * p.low + draw] = low;
    }
}

// Slopes from [a, b) where x is not positive, otherwise 1; out = x * slope.
template <class T>
__device__ __forceinline__ void random_slopes(const FillParams& p, const T* x, T* slopes, T* out) {
    using A = typename DrawType<T>::type;
    fill_random<A>(p, [](Philox& s, A* to) { Draw<A>::uniform(s, to); }, [&](unsigned long long i, A number) {
        const A value = convert<A>(x[i]);
        const double drawn = static_cast<double>(convert<A>(convert<T>(number)));
        const T slope = convert<T>(value <= 0 ? static_cast<A>(drawn * (p.b - p.a) + p.a) : A(1));
        slopes[i] = slope;
        out[i] = convert<T>(value * convert<A>(slope));
    });
}

// A count of mean `rate`, with two numbers of a call each round: Hörmann's transformed rejection (1993, algorithm PTRS) from rate 10 on,
// the inverse of the distribution below. NaN where there is no such distribution.
__device__ __forceinline__ double poisson_count(double rate, Philox& stream) {
    if (!(rate >= 0) || rate > 1.7e308) return NAN;
    if (rate < 10) {
        const Words w = stream.next();
        double number = unit_double(w.x, w.y), weight = ::exp(-rate), count = 0;
        for (; number > weight && count < 200; weight *= rate / ++count) number -= weight;
        return count;
    }
    const double b = 0.931 + 2.53 * ::sqrt(rate), a = -0.059 + 0.02483 * b, inverse = 1.1239 + 1.1328 / (b - 3.4), edge = 0.9277 - 3.6224 / (b - 2);
    while (true) {
        const Words w = stream.next();
        const double u = unit_double(w.x, w.y) - 0.5, v = unit_double(w.z, w.w), us = 0.5 - ::fabs(u);
        const double count = ::floor((2 * a / us + b) * u + rate + 0.43);
        if (us >= 0.07 && v <= edge) return count;
        if (count < 0 || (us < 0.013 && v > us)) continue;
        if (::log(v) + ::log(inverse) - ::log(a / (us * us) + b) <= -rate + count * ::log(rate) - ::lgamma(count + 1)) return count;
    }
}

// An element a sequence, of those that no fill uses; rounds of a call do not meet those of the next.
template <class T>
__device__ __forceinline__ void poisson(const FillParams& p, const T* rate, T* out) {
    for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.numel;
         i += static_cast<unsigned long long>(gridDim.x) * blockDim.x) {
        Philox stream(seed_of(p), i | 1ull << 63, offset_of(p) << 20);
        out[i] = convert<T>(poisson_count(static_cast<double>(convert<compute_t<T>>(rate[i])), stream));
    }
}

__device__ __forceinline__ double stirling_tail(double k) {
    const double n = k + 1;
    if (k <= 9) return ::lgamma(n) - (0.91893853320467274178 + (k + 0.5) * ::log(n) - n);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / (n * n)) / (n * n)) / n;
}

// Successes in count trials of probability p <= 1/2: sums of geometric gaps, or Hörmann's transformed rejection (1993, algorithm BTRS).
__device__ __forceinline__ double successes(double count, double p, Philox& stream) {
    if (count * p < 10) {
        const double scale = ::log1p(-p);
        double gaps = 0, found = 0;
        while (true) {
            const Words w = stream.next();
            gaps += ::ceil(::log(unit_double(w.x, w.y)) / scale);
            if (!(gaps <= count)) return found;
            found++;
        }
    }
    const double deviation = ::sqrt(count * p * (1 - p)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, centre = count * p + 0.5;
    const double edge = 0.92 - 4.2 / b, odds = p / (1 - p), alpha = (2.83 + 5.1 / b) * deviation, mode = ::floor((count + 1) * p);
    while (true) {
        const Words w = stream.next();
        const double u = unit_double(w.x, w.y) - 0.5, us = 0.5 - ::fabs(u), k = ::floor((2 * a / us + b) * u + centre);
        double v = unit_double(w.z, w.w);
        if (us >= 0.07 && v <= edge) return k;
        if (k < 0 || k > count) continue;
        v = ::log(v * alpha / (a / (us * us) + b));
        const double bound = (mode + 0.5) * ::log((mode + 1) / (odds * (count - mode + 1))) + (count + 1) * ::log((count - mode + 1) / (count - k + 1)) +
                             (k + 0.5) * ::log(odds * (count - k + 1) / (k + 1)) + stirling_tail(mode) + stirling_tail(count - mode) - stirling_tail(k) -
                             stirling_tail(count - k);
        if (v <= bound) return k;
    }
}

// An element a sequence, as poisson().
template <class T>
__device__ __forceinline__ void binomial(const FillParams& p, const T* counts, const T* probabilities, T* out) {
    for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.numel;
         i += static_cast<unsigned long long>(gridDim.x) * blockDim.x) {
        Philox stream(seed_of(p), i | 1ull << 63, offset_of(p) << 20);
        const double count = counts[i], chance = probabilities[i];
        double found = 0;
        if (!(count <= 0 || chance <= 0)) {
            if (chance >= 1) found = count;
            else if (chance != chance || !(count < 1.7e308)) found = NAN;
            else found = chance <= 0.5 ? successes(count, chance, stream) : count - successes(count, 1 - chance, stream);
        }
        out[i] = static_cast<T>(found);
    }
}

// A number of the gamma distribution of this shape: Marsaglia and Tsang's rejection (2000), a shape below 1 raised by 1. NaN where there is no such distribution.
__device__ __forceinline__ double gamma_number(double shape, Philox& stream) {
    if (!(shape > 0 && shape < 1.7e308)) return shape >= 0 ? shape : NAN;
    double scale = 1;
    if (shape < 1) {
        const Words w = stream.next();
        scale = ::pow(unit_double(w.x, w.y), 1 / shape);
        shape += 1;
    }
    const double d = shape - 1.0 / 3, c = 1 / ::sqrt(9 * d);
    while (true) {
        double x[2];
        normal_pair(stream.next(), x);
        const Words w = stream.next();
        const double y = 1 + c * x[0], v = y * y * y, u = unit_double(w.x, w.y), square = x[0] * x[0];
        if (y > 0 && (u < 1 - 0.0331 * square * square || ::log(u) < 0.5 * square + d * (1 - v + ::log(v)))) return scale * d * v;
    }
}

// An element a sequence, as poisson(); nothing below the smallest normal number.
template <class T>
__device__ __forceinline__ void standard_gamma(const FillParams& p, const T* shapes, T* out) {
    const T least = static_cast<T>(sizeof(T) == 4 ? 1.1754943508222875e-38 : 2.2250738585072014e-308);
    for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.numel;
         i += static_cast<unsigned long long>(gridDim.x) * blockDim.x) {
        Philox stream(seed_of(p), i | 1ull << 63, offset_of(p) << 20);
        const T number = static_cast<T>(gamma_number(static_cast<double>(shapes[i]), stream));
        out[i] = number < least ? least : number;
    }
}

// x * (mask * scale), the mask one byte per element.
template <class T>
__device__ __forceinline__ void masked_scale(unsigned long long numel, const T* x, const bool* mask, double scale, T* out) {
    using A = compute_t<T>;
    const A factor = static_cast<A>(scale);
    for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < numel;
         i += static_cast<unsigned long long>(gridDim.x) * blockDim.x) {
        out[i] = convert<T>(convert<A>(x[i]) * (mask[i] ? factor : A(0)));
    }
}

}  // namespace trt
