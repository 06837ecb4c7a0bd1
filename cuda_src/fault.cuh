// The first index out of range that a kernel of this device has met; the host (cysrc/cuda/indexing.pyx) reads it when it next waits.
#pragma once

#include "iteration.cuh"

namespace trt {

// Mirrored by the host.
struct Fault {
    int happened, code;
    long long index, size;
};

__device__ __forceinline__ void note(Fault* fault, int code, long long index, long long size) {
    if (atomicCAS(&fault->happened, 0, 1) == 0) {
        fault->code = code;
        fault->index = index;
        fault->size = size;
    }
}

}  // namespace trt
