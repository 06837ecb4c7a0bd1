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

// A block a sorted line: the most frequent value, the smallest of several, where it occurs last. Each start of a run of equal values
// looks for its end in growing steps. NaNs differ from each other.
template <class T>
__device__ __forceinline__ void take_mode(const T* x, const int* position, T* values, long long* indices, long long lines, long long n) {
    __shared__ long long lengths[256], starts[256];
    for (long long line = blockIdx.x; line < lines; line += gridDim.x) {
        const int* const order = position + line * n;
        const auto value_at = [&](long long i) { return convert<compute_t<T>>(x[order[i]]); };
        long long longest = 0, start = 0;
        for (long long i = threadIdx.x; i < n; i += blockDim.x) {
            const compute_t<T> value = value_at(i);
            if (i > 0 && value == value_at(i - 1)) continue;
            long long last = i, step = 1;  // of the run, as far as it is known
            for (; last + step < n && value_at(last + step) == value; step *= 2) last += step;
            for (; step; step /= 2) {
                if (last + step < n && value_at(last + step) == value) last += step;
            }
            if (last - i + 1 > longest) longest = last - i + 1, start = i;
        }
        __syncthreads();
        lengths[threadIdx.x] = longest;
        starts[threadIdx.x] = start;
        for (unsigned half = blockDim.x / 2; half; half /= 2) {
            __syncthreads();
            if (threadIdx.x >= half) continue;
            const long long other = lengths[threadIdx.x + half], at = starts[threadIdx.x + half];
            if (other > lengths[threadIdx.x] || (other == lengths[threadIdx.x] && at < starts[threadIdx.x])) lengths[threadIdx.x] = other, starts[threadIdx.x] = at;
        }
        if (threadIdx.x == 0) {
            const int at = order[starts[0] + lengths[0] - 1];
            values[line] = x[at];
            indices[line] = at % n;
        }
    }
}

// ---- histograms ------------------------------------------------------------------------------------------------------

// flat = flat * bins + the bin of each x, -1 outside of all; with `adjust` equal bins are those that the edges say.
template <class T>
__device__ __forceinline__ void number_bins(const T* x, const double* edges, long long* flat, long long n, long long bins, int uniform, int adjust) {
    const double low = edges[0], high = edges[bins];
    TRT_EACH(i, n) {
        const double value = static_cast<double>(convert<compute_t<T>>(x[i]));
        if (!(value >= low && value <= high) || flat[i] < 0) {
            flat[i] = -1;
            continue;
        }
        long long at = 0;
        if (uniform) {
            at = static_cast<long long>((value - low) * static_cast<double>(bins) / (high - low));
            if (adjust) {
                const long long last = at + 1 < bins ? at + 1 : bins - 1;
                for (at = at > 0 ? at - 1 : 0; at < last && value >= edges[at + 1];) at++;
            }
        } else {
            for (long long end = bins + 1; at < end;) {
                const long long middle = (at + end) / 2;
                if (edges[middle] <= value) at = middle + 1;
                else end = middle;
            }
            at--;
        }
        flat[i] = flat[i] * bins + (at < bins - 1 ? at : bins - 1);
    }
}

constexpr int kSharedBins = 4096;  // the host's SHARED_BINS

// How often each number occurs; negative ones do not count. Few bins are counted in shared memory first.
template <bool kShared>
__device__ __forceinline__ void count_bins(const long long* flat, unsigned long long* counts, long long n, long long bins) {
    __shared__ unsigned found[kShared ? kSharedBins : 1];
    if (kShared) {
        for (int b = threadIdx.x; b < bins; b += blockDim.x) found[b] = 0;
        __syncthreads();
    }
    TRT_EACH(i, n) {
        const long long at = flat[i];
        if (at < 0 || at >= bins) continue;
        if (kShared) atomicAdd(&found[at], 1u);
        else atomicAdd(&counts[at], 1ull);
    }
    if (kShared) {
        __syncthreads();
        for (int b = threadIdx.x; b < bins; b += blockDim.x) {
            if (found[b]) atomicAdd(&counts[b], static_cast<unsigned long long>(found[b]));
        }
    }
}

}  // namespace trt
