// The first index out of range that a kernel of this device has met; the host (cysrc/cuda/indexing.pyx) looks at it when it has waited for
// a stream, and takes it by a kernel: others may be noting one meanwhile.
#pragma once

#include "iteration.cuh"

namespace trt {

constexpr int kNone = 0, kWritten = 1, kNoted = 2;

// Mirrored by the host. Whoever changes state from kNone to kWritten fills the rest in and goes on to kNoted.
struct Fault {
    int state, code;
    long long index, size;
};

__device__ __forceinline__ void note(Fault* fault, int code, long long index, long long size) {
    if (atomicCAS(&fault->state, kNone, kWritten) == kNone) {
        fault->code = code;
        fault->index = index;
        fault->size = size;
        __threadfence();
        atomicExch(&fault->state, kNoted);
    }
}

// Moves a noted fault to `taken`, whose state says whether there was one. One thread.
__device__ __forceinline__ void take_fault(Fault* fault, Fault* taken) {
    taken->state = atomicCAS(&fault->state, kNoted, kWritten);
    if (taken->state != kNoted) return;
    __threadfence();
    taken->code = fault->code;
    taken->index = fault->index;
    taken->size = fault->size;
    __threadfence();
    atomicExch(&fault->state, kNone);
}

}  // namespace trt
