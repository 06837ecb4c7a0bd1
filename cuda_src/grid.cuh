// Images and volumes sampled at the positions of a grid. The gradient of the image gathers: every tap of every position becomes a key,
// its pixel, the keys are sorted stably (radix.cuh), and each pixel adds what was read from it in the order of positions, as the CPU
// does. The host is cysrc/cuda/pool.pyx.
#pragma once

#include "iteration.cuh"

namespace trt {

#define TRT_EACH(i, n)                                                                                                \
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, step_ = static_cast<long long>(gridDim.x) * blockDim.x; \
         i < (n); i += step_)

enum { kGridBilinear, kGridNearest, kGridBicubic };  // loops/resize.h
enum { kGridZeros, kGridBorder, kGridReflection };
constexpr int kGridChannels = 8;  // that one thread goes through

// Mirrored by the host. x (N, C, [depth,] height, width), grid (N, positions, dimensions), y and gy (N, C, positions), all contiguous.
struct Grid {
    const void* x;
    const void* grid;
    const void* gy;
    void* result;                      // y, or the gradient of x or of the grid
    unsigned* keys;                    // of taps: the pixel of all samples, one beyond the last where there is none
    const int* order;                  // taps, by their keys
    void* weights;                     // of taps
    long long samples, channels, positions, taps, size[3];
    int padding, align_corners;
};

template <class A>
__device__ __forceinline__ A clipped(A x, long long size, const Grid& p, A& slope) {
    if (p.padding == kGridReflection) {
        const A low = p.align_corners ? A(0) : A(-0.5), span = static_cast<A>(p.align_corners ? size - 1 : size);
        if (span <= 0) {
            slope = 0;
            return 0;
        }
        A distance = x - low;
        if (distance < 0) {
            distance = -distance;
            slope = -slope;
        }
        const A flips = floor(distance / span);
        A extra = distance - flips * span;
        if (flips - 2 * floor(flips / 2) != 0) {
            extra = span - extra;
            slope = -slope;
        }
        x = extra + low;
    }
    const A last = static_cast<A>(size - 1);
    if (!(x > 0)) {
        slope = 0;
        return 0;
    }
    if (x >= last) {
        slope = 0;
        return last;
    }
    return x;
}

// Keys (1981), with a = -0.75.
template <class A>
__device__ __forceinline__ A cubic(A x) {
    x = x < 0 ? -x : x;
    return x < 1 ? (A(1.25) * x - A(2.25)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * A(-0.75) : A(0);
}

// Along one dimension: where the taps of a coordinate lie (-1: nowhere), their weights and the derivatives of these by the coordinate.
template <class A, int kMode>
struct AxisTaps {
    static constexpr int kCount = kMode == kGridNearest ? 1 : kMode == kGridBilinear ? 2 : 4;
    long long at[kCount];
    A weight[kCount], derivative[kCount];

    __device__ __forceinline__ void find(A g, long long size, const Grid& p) {
        A slope = static_cast<A>(p.align_corners ? size - 1 : size) / 2;
        A x = p.align_corners ? (g + 1) / 2 * static_cast<A>(size - 1) : ((g + 1) * static_cast<A>(size) - 1) / 2;
        if (kMode != kGridBicubic && p.padding != kGridZeros) x = clipped(x, size, p, slope);
        if (!(x > A(-1e9) && x < A(1e9))) x = -100;  // NaN and what no integer holds: outside
        if constexpr (kMode == kGridNearest) {
            at[0] = static_cast<long long>(round(x));
            weight[0] = 1;
            derivative[0] = 0;
        } else {
            const A whole = floor(x), f = x - whole;
            if constexpr (kMode == kGridBilinear) {
                at[0] = static_cast<long long>(whole);
                at[1] = at[0] + 1;
                weight[0] = 1 - f;
                weight[1] = f;
                derivative[0] = -slope;
                derivative[1] = slope;
            } else {
#pragma unroll
                for (int k = 0; k < kCount; k++) {
                    const A u = f + 1 - k, v = u < 0 ? -u : u, sign = u < 0 ? -slope : slope;
                    at[k] = static_cast<long long>(whole) - 1 + k;
                    weight[k] = cubic(u);
                    derivative[k] = sign * (v < 1 ? (A(3.75) * v - A(4.5)) * v : v < 2 ? A(-0.75) * ((3 * v - 10) * v + 8) : A(0));
                    A ignored = 1;
                    if (p.padding != kGridZeros) at[k] = static_cast<long long>(clipped(static_cast<A>(at[k]), size, p, ignored));
                }
            }
        }
#pragma unroll
        for (int k = 0; k < kCount; k++) {
            if (at[k] < 0 || at[k] >= size) at[k] = -1;
        }
    }
};

// The taps of one position.
template <class T, int kDims, int kMode>
struct GridTaps {
    using A = compute_t<T>;
    using Axis = AxisTaps<A, kMode>;
    static constexpr int kEach = Axis::kCount, kCount = kDims == 3 ? kEach * kEach * kEach : kEach * kEach;
    Axis axis[kDims];

    __device__ __forceinline__ GridTaps(const Grid& p, long long position) {
        const T* const g = static_cast<const T*>(p.grid) + position * kDims;  // its first number is the last dimension's
#pragma unroll
        for (int d = 0; d < kDims; d++) axis[d].find(convert<A>(g[kDims - 1 - d]), p.size[3 - kDims + d], p);
    }
    static __device__ __forceinline__ int part(int k, int d) {
        return k / (d == kDims - 1 ? 1 : d == kDims - 2 ? kEach : kEach * kEach) % kEach;
    }
    // In a plane, -1 where the tap reads nothing.
    __device__ __forceinline__ long long at(const Grid& p, int k) const {
        long long offset = 0;
#pragma unroll
        for (int d = 0; d < kDims; d++) {
            const long long here = axis[d].at[part(k, d)];
            offset = offset < 0 || here < 0 ? -1 : offset * p.size[3 - kDims + d] + here;
        }
        return offset;
    }
    __device__ __forceinline__ A weight(int k) const {
        A product = 1;
#pragma unroll
        for (int d = 0; d < kDims; d++) product *= axis[d].weight[part(k, d)];
        return product;
    }
    __device__ __forceinline__ A derivative(int k, int by) const {
        A product = axis[by].derivative[part(k, by)];
#pragma unroll
        for (int d = 0; d < kDims; d++) product *= d == by ? A(1) : axis[d].weight[part(k, d)];
        return product;
    }
};

// A thread a position and kGridChannels channels, so that neighbours write side by side.
template <class T, int kDims, int kMode>
__device__ __forceinline__ void grid_forward(const Grid& p) {
    using A = compute_t<T>;
    const long long plane = p.size[0] * p.size[1] * p.size[2], parts = (p.channels + kGridChannels - 1) / kGridChannels;
    TRT_EACH(i, p.samples * parts * p.positions) {
        const long long position = i % p.positions, n = i / p.positions / parts, first = i / p.positions % parts * kGridChannels;
        const GridTaps<T, kDims, kMode> taps(p, n * p.positions + position);
        const T* x = static_cast<const T*>(p.x) + (n * p.channels + first) * plane;
        T* y = static_cast<T*>(p.result) + (n * p.channels + first) * p.positions + position;
        for (long long c = first; c < p.channels && c < first + kGridChannels; c++, x += plane, y += p.positions) {
            A sum = 0;
#pragma unroll
            for (int k = 0; k < taps.kCount; k++) {
                const long long at = taps.at(p, k);
                if (at >= 0) sum += taps.weight(k) * convert<A>(x[at]);
            }
            *y = convert<T>(sum);
        }
    }
}

// A thread a position: the sums over channels of the gradient times what each tap read, then the derivatives.
template <class T, int kDims, int kMode>
__device__ __forceinline__ void grid_backward_grid(const Grid& p) {
    using A = compute_t<T>;
    const long long plane = p.size[0] * p.size[1] * p.size[2];
    TRT_EACH(i, p.samples * p.positions) {
        const long long n = i / p.positions;
        const GridTaps<T, kDims, kMode> taps(p, i);
        const T* const x = static_cast<const T*>(p.x) + n * p.channels * plane;
        const T* const g = static_cast<const T*>(p.gy) + n * p.channels * p.positions + i % p.positions;
        A sums[kDims] = {};
        if (kMode != kGridNearest) {
#pragma unroll
            for (int k = 0; k < taps.kCount; k++) {
                const long long at = taps.at(p, k);
                if (at < 0) continue;
                A sum = 0;
                for (long long c = 0; c < p.channels; c++) sum += convert<A>(g[c * p.positions]) * convert<A>(x[c * plane + at]);
#pragma unroll
                for (int d = 0; d < kDims; d++) sums[d] += taps.derivative(k, d) * sum;
            }
        }
#pragma unroll
        for (int d = 0; d < kDims; d++) static_cast<T*>(p.result)[i * kDims + kDims - 1 - d] = convert<T>(sums[d]);
    }
}

// What the gradient of the image sorts.
template <class T, int kDims, int kMode>
__device__ __forceinline__ void grid_keys(const Grid& p) {
    const long long plane = p.size[0] * p.size[1] * p.size[2];
    TRT_EACH(i, p.samples * p.positions) {
        const GridTaps<T, kDims, kMode> taps(p, i);
#pragma unroll
        for (int k = 0; k < taps.kCount; k++) {
            const long long at = taps.at(p, k);
            p.keys[i * taps.kCount + k] = static_cast<unsigned>(at < 0 ? p.samples * plane : i / p.positions * plane + at);
            static_cast<compute_t<T>*>(p.weights)[i * taps.kCount + k] = taps.weight(k);
        }
    }
}

// A thread a pixel and kGridChannels channels.
template <class T, int kTaps>
__device__ __forceinline__ void grid_backward_input(const Grid& p) {
    using A = compute_t<T>;
    const long long plane = p.size[0] * p.size[1] * p.size[2], parts = (p.channels + kGridChannels - 1) / kGridChannels;
    TRT_EACH(i, p.samples * parts * plane) {
        const long long n = i / plane / parts, first = i / plane % parts * kGridChannels, pixel = i % plane;
        const unsigned key = static_cast<unsigned>(n * plane + pixel);
        long long low = 0, high = p.taps;
        while (low < high) {
            const long long middle = low + (high - low) / 2;
            if (p.keys[middle] < key) low = middle + 1;
            else high = middle;
        }
        A sums[kGridChannels] = {};
        const T* const gy = static_cast<const T*>(p.gy) + (n * p.channels + first) * p.positions;
        for (; low < p.taps && p.keys[low] == key; low++) {
            const int tap = p.order[low];
            const A weight = static_cast<const A*>(p.weights)[tap];
            const T* const g = gy + (tap / kTaps - n * p.positions);
#pragma unroll
            for (int c = 0; c < kGridChannels; c++) {
                if (first + c < p.channels) sums[c] += weight * convert<A>(g[c * p.positions]);
            }
        }
#pragma unroll
        for (int c = 0; c < kGridChannels; c++) {
            if (first + c < p.channels) static_cast<T*>(p.result)[(n * p.channels + first + c) * plane + pixel] = convert<T>(sums[c]);
        }
    }
}

}  // namespace trt
