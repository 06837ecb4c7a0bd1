// Fused optimizer steps: one launch updates many tensors. The order of operations is that of loops/optim.c; half types compute in float.
#pragma once

#include "iteration.cuh"

namespace trt {

constexpr int kStepTensors = 32;    // of one launch: the argument stays below 4 KB
constexpr int kStepChunk = 8192;    // elements of one block

// As cysrc/cuda/optim.pyx fills it. Block b works on the tensor whose first_block is the last one that is not beyond b.
struct StepTensors {
    void* data[5][kStepTensors];
    long long n[kStepTensors];
    double bias1[kStepTensors], bias2_sqrt[kStepTensors];
    const float* steps[kStepTensors];                // counters to make the two of, or null
    const float *lr, *grad_scale, *found_inf;        // numbers to read in place of the parameters', so that a graph's replays see them change, or null
    int first_block[kStepTensors];
    int count;
};
struct SgdParameters {
    double lr, weight_decay, momentum, dampening, grad_scale;
    int nesterov, maximize, first, scaled;
};
struct AdamParameters {
    double lr, beta1, beta2, weight_decay, eps, bias1, bias2_sqrt, grad_scale;
    int amsgrad, maximize, decoupled, scaled;
};

__device__ __forceinline__ int tensor_of_block(const StepTensors& step, int block) {
    int found = 0;
    for (int width = kStepTensors / 2; width; width >>= 1) {
        if (found + width < step.count && step.first_block[found + width] <= block) found += width;
    }
    return found;
}

template <class F>
__device__ __forceinline__ void for_elements(const StepTensors& step, int t, const F& update) {
    const long long begin = static_cast<long long>(blockIdx.x - step.first_block[t]) * kStepChunk;
    const long long end = begin + kStepChunk < step.n[t] ? begin + kStepChunk : step.n[t];
    for (long long i = begin + threadIdx.x; i < end; i += blockDim.x) update(i);
}

__device__ __forceinline__ double number_or(const float* number, double otherwise) { return number ? static_cast<double>(*number) : otherwise; }

// The gradient scaler found an infinity: nothing is changed.
__device__ __forceinline__ bool is_skipped(const StepTensors& step) { return step.found_inf && *step.found_inf != 0; }

// Adds one to each of n counters, unless the step is skipped.
__device__ __forceinline__ void count_steps(float* const* counters, int n, const float* found_inf) {
    if (static_cast<int>(threadIdx.x) < n && !(found_inf && *found_inf != 0)) *counters[threadIdx.x] += 1;
}

// Gradients times a number that lies on the device; found_inf becomes 1 where one of them is not finite.
template <class S>
__device__ __forceinline__ void unscale(long long n, S* g, float* found_inf, const float* inv_scale) {
    using T = compute_t<S>;
    const T factor = static_cast<T>(*inv_scale);
    bool bad = false;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += static_cast<long long>(gridDim.x) * blockDim.x) {
        const T v = convert<T>(g[i]);
        bad = bad || !(v - v == T(0));
        g[i] = convert<S>(v * factor);
    }
    if (bad) *found_inf = 1.0f;  // all threads write the same
}

// By one thread.
__device__ __forceinline__ void update_scale(float* scale, int* tracker, const float* found_inf, double growth, double backoff, int interval) {
    if (*found_inf != 0) {
        *scale = static_cast<float>(*scale * backoff);
        *tracker = 0;
    } else if (*tracker + 1 == interval) {
        const float grown = static_cast<float>(*scale * growth);
        if (grown - grown == 0) *scale = grown;
        *tracker = 0;
    } else {
        *tracker += 1;
    }
}

template <class S>
__device__ __forceinline__ void sgd_step(const StepTensors& step, const SgdParameters& s) {
    using T = compute_t<S>;
    if (is_skipped(step)) return;
    const int t = tensor_of_block(step, static_cast<int>(blockIdx.x));
    const T lr = static_cast<T>(number_or(step.lr, s.lr)), decay = static_cast<T>(s.weight_decay), momentum = static_cast<T>(s.momentum);
    const T keep = static_cast<T>(1.0 - s.dampening), scale = static_cast<T>(number_or(step.grad_scale, s.grad_scale));
    for_elements(step, t, [&](long long i) {
        S* p = static_cast<S*>(step.data[0][t]);
        S* g = static_cast<S*>(step.data[1][t]);
        S* buffer = static_cast<S*>(step.data[2][t]);
        T grad = convert<T>(g[i]);
        const T x = convert<T>(p[i]);
        if (s.scaled) {
            grad = grad / scale;
            g[i] = convert<S>(grad);
        }
        if (s.maximize) grad = -grad;
        if (s.weight_decay != 0) grad = grad + decay * x;
        if (buffer) {
            const T kept = s.first ? grad : convert<T>(buffer[i]) * momentum + keep * grad;
            buffer[i] = convert<S>(kept);
            grad = s.nesterov ? grad + momentum * kept : kept;
        }
        p[i] = convert<S>(x - lr * grad);
    });
}

template <class S>
__device__ __forceinline__ void adam_step(const StepTensors& step, const AdamParameters& s) {
    using T = compute_t<S>;
    if (is_skipped(step)) return;
    const int t = tensor_of_block(step, static_cast<int>(blockIdx.x));
    __shared__ double bias[2];
    if (step.steps[t] && threadIdx.x == 0) {
        const double count = *step.steps[t];
        bias[0] = 1.0 - pow(s.beta1, count);
        bias[1] = sqrt(1.0 - pow(s.beta2, count));
    }
    __syncthreads();
    const double lr = number_or(step.lr, s.lr), bias1 = step.steps[t] ? bias[0] : step.bias1[t], bias2_sqrt = step.steps[t] ? bias[1] : step.bias2_sqrt[t];
    const T size = static_cast<T>(lr / bias1), root = static_cast<T>(1.0 / bias2_sqrt);
    const T decay = static_cast<T>(s.weight_decay), shrink = static_cast<T>(1.0 - lr * s.weight_decay);
    const T w1 = static_cast<T>(1.0 - s.beta1), beta2 = static_cast<T>(s.beta2), w2 = static_cast<T>(1.0 - s.beta2);
    const T eps = static_cast<T>(s.eps), scale = static_cast<T>(number_or(step.grad_scale, s.grad_scale));
    for_elements(step, t, [&](long long i) {
        S* p = static_cast<S*>(step.data[0][t]);
        S* g = static_cast<S*>(step.data[1][t]);
        S* m = static_cast<S*>(step.data[2][t]);
        S* v = static_cast<S*>(step.data[3][t]);
        S* top = static_cast<S*>(step.data[4][t]);
        T grad = convert<T>(g[i]), x = convert<T>(p[i]);
        if (s.scaled) {
            grad = grad / scale;
            g[i] = convert<S>(grad);
        }
        if (s.maximize) grad = -grad;
        if (s.weight_decay != 0) {
            if (s.decoupled) {
                x = x * shrink;
            } else {
                grad = grad + decay * x;
            }
        }
        const T m0 = convert<T>(m[i]);
        const T m1 = m0 + w1 * (grad - m0);
        T m2 = convert<T>(v[i]) * beta2 + w2 * grad * grad;
        m[i] = convert<S>(m1);
        v[i] = convert<S>(m2);
        if (s.amsgrad) {
            m2 = maximum(m2, convert<T>(top[i]));
            top[i] = convert<S>(m2);
        }
        p[i] = convert<S>(x - size * (m1 / (sqrt(m2) * root + eps)));
    });
}

}  // namespace trt
