// Reductions of segments: a thread makes one element of the result, in the order of positions, as cysrc/loops/segment.c does.
#pragma once

#include "iteration.cuh"
#include "segment_steps.h"

namespace trt {

template <class T>
__device__ __forceinline__ void segment_reduce(const segment_call& a, long long at) {
    const long long j = at % a.inner, i = at / a.inner, outer = i / a.segments, segment = i % a.segments;
    const long long* places = reinterpret_cast<const long long*>(a.offsets) + outer * (a.segments + 1) + segment;
    const long long begin = places[0] > 0 ? places[0] : 0, end = places[1] < a.n ? places[1] : a.n, count = places[1] - places[0];
    const T* data = reinterpret_cast<const T*>(a.data) + outer * a.n * a.inner + j;
    T value = T(a.initial);
    for (long long k = begin; k < end; k++) {
        const T x = data[k * a.inner];
        if (a.operation == SEGMENT_MAX) value = x > value || x != x ? x : value;
        else if (a.operation == SEGMENT_MIN) value = x < value || x != x ? x : value;
        else if (a.operation == SEGMENT_PROD) value = value * x;
        else value = value + x;
    }
    if (a.operation == SEGMENT_MEAN) value = count > 0 ? value / T(count) : a.empty_mean ? T(NAN) : value;
    reinterpret_cast<T*>(a.out)[at] = value;
}

}  // namespace trt
