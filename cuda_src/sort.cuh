// Sorting of lines: keys are unsigned numbers in the order of the values. NaN is the largest, both zeros are equal, descending keys are
// the complement, so that equal values keep their order either way. Short lines are sorted by a block in shared memory, long ones by the
// stable passes of radix.cuh: by value, then by line. The host is cysrc/cuda/sorting.pyx.
#pragma once

#include "iteration.cuh"

namespace trt {

#define TRT_EACH(i, n)                                                                                                \
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, step_ = static_cast<long long>(gridDim.x) * blockDim.x; \
         i < (n); i += step_)

// Key, of as many bits as the value has (32 at least for its type), in the order of the values.
template <class Key, class T>
__device__ __forceinline__ Key key_of(T value, bool descending) {
    constexpr int kBits = 8 * sizeof(T);
    constexpr Key kTop = Key(1) << (kBits - 1), kAll = kTop | (kTop - 1);
    Key key;
    if constexpr (T(0.5) != T(0)) {  // a floating point type
        if (value != value) {
            key = kAll;
        } else {
            if (value == T(0)) value = T(0);
            if constexpr (sizeof(T) == 8) key = static_cast<Key>(__double_as_longlong(value));
            else key = __float_as_uint(value);
            key = key & kTop ? ~key & kAll : key | kTop;
        }
    } else {
        key = static_cast<Key>(value) & kAll;
        if (T(-1) < T(0)) key ^= kTop;
    }
    return descending ? ~key & kAll : key;
}

template <class Key, class T>
__device__ __forceinline__ void sort_keys_of(const T* x, Key* keys, long long n, bool descending) {
    TRT_EACH(i, n) keys[i] = key_of<Key>(convert<compute_t<T>>(x[i]), descending);
}

__device__ __forceinline__ void line_keys(const int* position, unsigned* keys, long long total, long long n) {
    TRT_EACH(i, total) keys[i] = static_cast<unsigned>(position[i] / n);
}

// A block a line of n <= kSize elements: (key, place) in bitonic order, the places of the first `keep` written.
template <class T, class Key, int kSize>
__device__ __forceinline__ void sort_short(const T* x, int* position, long long lines, long long n, long long keep, bool descending) {
    __shared__ Key keys[kSize];
    __shared__ unsigned places[kSize];
    for (long long line = blockIdx.x; line < lines; line += gridDim.x) {
        __syncthreads();
        for (int i = threadIdx.x; i < kSize; i += blockDim.x) {
            keys[i] = i < n ? key_of<Key>(convert<compute_t<T>>(x[line * n + i]), descending) : ~Key(0);
            places[i] = i;  // what lies beyond the line sorts behind the keys that equal it
        }
        for (int run = 2; run <= kSize; run *= 2) {
            for (int step = run / 2; step; step /= 2) {
                __syncthreads();
                for (int pair = threadIdx.x; pair < kSize / 2; pair += blockDim.x) {
                    const int i = pair / step * step * 2 + pair % step, j = i + step;
                    const bool behind = keys[i] > keys[j] || (keys[i] == keys[j] && places[i] > places[j]);
                    if (behind == ((i & run) == 0)) {
                        const Key key = keys[i];
                        const unsigned place = places[i];
                        keys[i] = keys[j];
                        places[i] = places[j];
                        keys[j] = key;
                        places[j] = place;
                    }
                }
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < keep; i += blockDim.x) position[line * keep + i] = static_cast<int>(line * n + places[i]);
    }
}

// Values and their places in the lines of the first `keep` of each line's sorted positions.
template <class T>
__device__ __forceinline__ void take_sorted(const T* x, const int* position, T* values, long long* indices, long long lines, long long n, long long stride, long long keep) {
    TRT_EACH(i, lines * keep) {
        const int at = position[i / keep * stride + i % keep];
        values[i] = x[at];
        indices[i] = at % n;
    }
}

// One element of each sorted line: the kth (kind 0), the median, which is NaN where there is one (1), or that of the others (2).
template <class T>
__device__ __forceinline__ void take_one(const T* x, const int* position, T* values, long long* indices, long long lines, long long n, long long kth, int kind) {
    TRT_EACH(line, lines) {
        const int* const order = position + line * n;
        long long numbers = 0, high = n;  // those that are not NaN come first
        while (numbers < high) {
            const long long middle = numbers + (high - numbers) / 2;
            const compute_t<T> value = convert<compute_t<T>>(x[order[middle]]);
            if (value == value) numbers = middle + 1;
            else high = middle;
        }
        long long wanted = kind == 0 ? kth : ((kind == 2 ? numbers : n) - 1) / 2;
        if ((kind == 1 && numbers < n) || (kind == 2 && numbers == 0)) wanted = numbers;
        values[line] = x[order[wanted]];
        indices[line] = order[wanted] % n;
    }
}

}  // namespace trt
