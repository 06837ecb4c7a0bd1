// Connectionist temporal classification, as cysrc/loops/loss_ctc.c: a block takes a sample through all steps, its threads the states of a step.
// Sums over states of one class follow a chain, so that their order, and the bits, are fixed.
#pragma once

#include "iteration.cuh"
#include "loss_steps.h"
#include "scalar_math.cuh"

namespace trt {

template <class T>
__device__ __forceinline__ T ctc_sum(T a, T b, T c) {
    T top = a > b ? a : b;
    top = top > c ? top : c;
    if (top == -T(INFINITY)) return top;
    return log(exp(a - top) + exp(b - top) + exp(c - top)) + top;
}

__device__ __forceinline__ long long ctc_class(const ctc_args& a, const long long* target, long long s) { return s & 1 ? target[s >> 1] : a.blank; }

// NaN for a class that there is not
template <class T>
__device__ __forceinline__ T ctc_emission(const ctc_args& a, const long long* target, long long s, const T* row) {
    const long long c = ctc_class(a, target, s);
    return c >= 0 && c < a.classes ? row[c] : T(NAN);
}

__device__ __forceinline__ bool ctc_skips(const long long* target, long long s) { return (s & 1) && s > 1 && target[s >> 1] != target[(s >> 1) - 1]; }

template <class T>
__device__ __forceinline__ void ctc_forward(const ctc_args& a) {
    const T none = -T(INFINITY);
    for (long long n = blockIdx.x; n < a.batch; n += gridDim.x) {
        const long long steps = a.input_lengths[n], length = a.target_lengths[n], states = 2 * length + 1, span = a.span;
        const long long* target = reinterpret_cast<const long long*>(a.targets) + a.offsets[n];
        const T* x = reinterpret_cast<const T*>(a.log_probs) + n * a.classes;
        T* alpha = reinterpret_cast<T*>(a.log_alpha) + n * a.steps * span;
        for (long long t = 0; t < a.steps; t++) {
            T *now = alpha + t * span, *before = now - span;
            for (long long s = threadIdx.x; s < span; s += blockDim.x) {
                T value = none;
                if (t < steps && s < states) {
                    if (t == 0) value = s < 2 ? T(0) : none;
                    else value = ctc_sum(before[s], s > 0 ? before[s - 1] : none, s > 1 && ctc_skips(target, s) ? before[s - 2] : none);
                    if (value != none) value += ctc_emission(a, target, s, x + t * a.batch * a.classes);
                }
                now[s] = value;
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            T* loss = reinterpret_cast<T*>(a.loss) + n;
            const T* last = alpha + (steps - 1) * span;
            if (steps == 0) *loss = length == 0 ? T(0) : T(INFINITY);
            else *loss = -ctc_sum(last[states - 1], length ? last[states - 2] : none, none);
        }
        __syncthreads();
    }
}

// chains: by sample two lines, the next state of a state's class (-1: none), and whether it is the class's first
template <class T>
__device__ __forceinline__ void ctc_backward(const ctc_args& a, int* chains) {
    const T none = -T(INFINITY);
    for (long long n = blockIdx.x; n < a.batch; n += gridDim.x) {
        const long long steps = a.input_lengths[n], length = a.target_lengths[n], states = 2 * length + 1, span = a.span, row = a.batch * a.classes;
        const long long* target = reinterpret_cast<const long long*>(a.targets) + a.offsets[n];
        const T *x = reinterpret_cast<const T*>(a.log_probs) + n * a.classes, *alpha = reinterpret_cast<const T*>(a.log_alpha) + n * a.steps * span;
        T *next = reinterpret_cast<T*>(a.scratch) + n * 3 * span, *beta = next + span, *posterior = beta + span;
        T* out = reinterpret_cast<T*>(a.out) + n * a.classes;
        const T g = reinterpret_cast<const T*>(a.grad)[n * a.grad_stride], loss = reinterpret_cast<const T*>(a.loss)[n];
        const bool nothing = steps == 0 || a.zero_infinity && loss == T(INFINITY);
        int *following = chains + n * 2 * span, *first = following + span;
        for (long long s = threadIdx.x; s < states; s += blockDim.x) {
            const long long c = ctc_class(a, target, s);
            int found = -1, leads = 1;
            for (long long r = s + 1; r < states && found < 0; r++) found = ctc_class(a, target, r) == c ? static_cast<int>(r) : -1;
            for (long long r = 0; r < s && leads; r++) leads = ctc_class(a, target, r) != c;
            following[s] = found;
            first[s] = leads && c >= 0 && c < a.classes;
        }
        __syncthreads();
        for (long long t = a.steps - 1; t >= 0; t--) {
            const T* log_p = x + t * row;
            T* to = out + t * row;
            for (long long c = threadIdx.x; c < a.classes; c += blockDim.x) to[c] = T(0);
            if (nothing || t >= steps) continue;
            for (long long s = threadIdx.x; s < states; s += blockDim.x) {
                T value = none;
                const T emission = ctc_emission(a, target, s, log_p);
                if (t == steps - 1) value = s >= states - 2 ? T(0) : none;
                else value = ctc_sum(next[s], s + 1 < states ? next[s + 1] : none, s + 2 < states && ctc_skips(target, s + 2) ? next[s + 2] : none);
                if (value != none) value += emission;
                beta[s] = value;
                const T joint = alpha[t * span + s] + value;
                posterior[s] = joint == none ? T(0) : exp(joint - emission + loss);
            }
            __syncthreads();
            for (long long s = threadIdx.x; s < states; s += blockDim.x) {
                if (!first[s]) continue;
                T sum = T(0);
                for (long long r = s; r >= 0; r = following[r]) sum += posterior[r];
                to[ctc_class(a, target, s)] = sum;
            }
            __syncthreads();
            for (long long c = threadIdx.x; c < a.classes; c += blockDim.x)
                to[c] = (exp(log_p[c]) - to[c] + (loss == T(INFINITY) ? T(NAN) : T(0))) * g;
            T* swap = beta;
            beta = next;
            next = swap;
            __syncthreads();
        }
    }
}

}  // namespace trt
