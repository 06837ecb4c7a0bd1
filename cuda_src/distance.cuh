// Distances of rows: a thread makes one distance, or one element of a gradient, as cysrc/loops/distance.c does.
#pragma once

#include "distance_steps.h"
#include "iteration.cuh"

namespace trt {

__device__ __forceinline__ long long pair_place(long long n, long long i, long long j) { return i * (2 * n - i - 1) / 2 + j - i - 1; }

template <class T>
__device__ __forceinline__ void row_distances(const distance_call& a, long long at) {
    long long batch = 0, i, j;
    if (a.pairs) {
        long long low = 0, high = a.n - 2;  // the last row whose first pair is not behind `at`
        while (low < high) {
            const long long middle = (low + high + 1) / 2;
            if (pair_place(a.n, middle, middle + 1) <= at) low = middle;
            else high = middle - 1;
        }
        i = low;
        j = at - pair_place(a.n, i, i + 1) + i + 1;
    } else {
        batch = at / (a.n * a.m);
        i = at / a.m % a.n;
        j = at % a.m;
    }
    const T* x = reinterpret_cast<const T*>(a.x1) + (batch * a.n + i) * a.d;
    const T* y = reinterpret_cast<const T*>(a.x2) + (batch * a.m + j) * a.d;
    T sum = 0;
    for (long long k = 0; k < a.d; k++) {
        const T v = x[k] - y[k], size = v < 0 ? -v : v;
        if (a.kind == DISTANCE_COUNT) sum += v != 0;
        else if (a.kind == DISTANCE_ONE) sum += size;
        else if (a.kind == DISTANCE_TWO) sum += v * v;
        else if (a.kind == DISTANCE_THREE) sum += size * v * v;
        else if (a.kind == DISTANCE_LARGEST) sum = size > sum || size != size ? size : sum;
        else sum += T(pow(double(size), a.p));
    }
    if (a.kind == DISTANCE_TWO) sum = T(sqrt(sum));
    else if (a.kind == DISTANCE_THREE || a.kind == DISTANCE_GENERAL) sum = T(pow(double(sum), 1 / a.p));
    reinterpret_cast<T*>(a.out)[at] = sum;
}

template <class T>
__device__ __forceinline__ void row_distances_gradient(const distance_call& a, long long at) {
    const long long k = at % a.d, row = at / a.d, i = row % a.n, batch = row / a.n;
    const T x = reinterpret_cast<const T*>(a.x1)[at];
    const T* y = reinterpret_cast<const T*>(a.x2) + batch * a.m * a.d + k;
    T sum = 0;
    for (long long j = 0; j < a.m; j++) {
        if (a.pairs && j == i) continue;
        const long long place = !a.pairs ? batch * a.n * a.m + i * a.row_step + j * a.column_step : j > i ? pair_place(a.n, i, j) : pair_place(a.n, j, i);
        const T g = reinterpret_cast<const T*>(a.grad)[place], r = reinterpret_cast<const T*>(a.distances)[place], v = x - y[j * a.d];
        const T size = v < 0 ? -v : v, sign = v > 0 ? T(1) : v < 0 ? T(-1) : v;
        if (a.kind == DISTANCE_ONE) sum += sign * g;
        else if (a.kind == DISTANCE_LARGEST) sum += size == r || v != v ? sign * g : T(0);
        else if (r == 0) continue;
        else if (a.kind == DISTANCE_TWO) sum += v * (g / r);
        else if (a.kind == DISTANCE_THREE) sum += v * size * (g / (r * r));
        else if (v != 0) sum += sign * T(pow(double(size), a.p - 1)) * (g * T(pow(double(r), 1 - a.p)));
    }
    reinterpret_cast<T*>(a.out)[at] = sum;
}

}  // namespace trt
