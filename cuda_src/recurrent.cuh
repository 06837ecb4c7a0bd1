// One step of a recurrent layer: gates fused over (rows, hidden), an element a thread, between the GEMMs of the hidden states.
// T is the compute type, float or double.
#pragma once

#include "iteration.cuh"
#include "recurrent_steps.h"
#include "scalar_math.cuh"

namespace trt {

// The state of a row before the step: of the step before, or the initial one.
template <class T>
__device__ __forceinline__ const T* recurrent_before(const recurrent_step& s, const void* by_steps, long long stride, const void* initial, long long width, long long row) {
    return row < s.continued ? static_cast<const T*>(by_steps) + (s.before + row) * stride : static_cast<const T*>(initial) + row * width;
}

template <class T, int kMode>
__device__ __forceinline__ void recurrent_forward(const recurrent_step& s) {
    constexpr int kGates = kMode == RECURRENT_LSTM ? 4 : kMode == RECURRENT_GRU ? 3 : 1;
    const long long hidden = s.hidden, total = s.rows * hidden;
    for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; at < total; at += static_cast<long long>(gridDim.x) * blockDim.x) {
        const long long row = at / hidden, j = at % hidden;
        const T* product = static_cast<const T*>(s.product) + row * kGates * hidden + j;
        if constexpr (kMode == RECURRENT_LSTM) {
            T* gates = static_cast<T*>(s.reserve) + (s.first + row) * s.reserve_row + j;
            const T before = recurrent_before<T>(s, static_cast<T*>(s.reserve) + 4 * hidden, s.reserve_row, s.c0, hidden, row)[j];
            const T i = sigmoid(gates[0] + product[0]), f = sigmoid(gates[hidden] + product[hidden]);
            const T g = tanh(gates[2 * hidden] + product[2 * hidden]), o = sigmoid(gates[3 * hidden] + product[3 * hidden]);
            const T cell = f * before + i * g, h = o * tanh(cell);
            gates[0] = i;
            gates[hidden] = f;
            gates[2 * hidden] = g;
            gates[3 * hidden] = o;
            gates[4 * hidden] = cell;
            if (s.reserve_row > 5 * hidden) gates[5 * hidden] = h;
            else static_cast<T*>(s.out)[(s.first + row) * hidden + j] = h;
        } else if constexpr (kMode == RECURRENT_GRU) {
            T* gates = static_cast<T*>(s.reserve) + (s.first + row) * s.reserve_row + j;
            const T* bias = static_cast<const T*>(s.bias);
            const T r = sigmoid(gates[0] + (product[0] + (bias ? bias[j] : T(0))));
            const T z = sigmoid(gates[hidden] + (product[hidden] + (bias ? bias[hidden + j] : T(0))));
            const T h = product[2 * hidden] + (bias ? bias[2 * hidden + j] : T(0)), x = tanh(gates[2 * hidden] + r * h);
            const T before = recurrent_before<T>(s, s.out, hidden, s.h0, hidden, row)[j];
            gates[0] = r;
            gates[hidden] = z;
            gates[2 * hidden] = x;
            gates[3 * hidden] = h;
            static_cast<T*>(s.out)[(s.first + row) * hidden + j] = (before - x) * z + x;
        } else {
            T* out = static_cast<T*>(s.out) + (s.first + row) * hidden + j;
            const T x = *out + *product;
            *out = kMode == RECURRENT_TANH ? tanh(x) : x < T(0) ? T(0) : x;
        }
    }
}

// dh of a GRU leaves as what goes past the gates.
template <class T, int kMode>
__device__ __forceinline__ void recurrent_backward(const recurrent_step& s) {
    const long long hidden = s.hidden, total = s.rows * hidden;
    for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; at < total; at += static_cast<long long>(gridDim.x) * blockDim.x) {
        const long long row = at / hidden, j = at % hidden, place = s.first + row;
        T d;
        if (s.dm) d = static_cast<const T*>(s.dm)[at];
        else d = static_cast<const T*>(s.dh)[at] + (s.grad ? static_cast<const T*>(s.grad)[place * hidden + j] : T(0));
        if constexpr (kMode == RECURRENT_LSTM) {
            const T* gates = static_cast<const T*>(s.reserve) + place * s.reserve_row + j;
            T* dgates = static_cast<T*>(s.dgates) + place * 4 * hidden + j;
            T* dc = static_cast<T*>(s.dc) + at;
            const T before = recurrent_before<T>(s, static_cast<T*>(s.reserve) + 4 * hidden, s.reserve_row, s.c0, hidden, row)[j];
            const T i = gates[0], f = gates[hidden], g = gates[2 * hidden], o = gates[3 * hidden], t = tanh(gates[4 * hidden]);
            const T cell = *dc + d * o * (T(1) - t * t);
            *dc = cell * f;
            dgates[0] = cell * g * (i * (T(1) - i));
            dgates[hidden] = cell * before * (f * (T(1) - f));
            dgates[2 * hidden] = cell * i * (T(1) - g * g);
            dgates[3 * hidden] = d * t * (o * (T(1) - o));
        } else if constexpr (kMode == RECURRENT_GRU) {
            const T* gates = static_cast<const T*>(s.reserve) + place * s.reserve_row + j;
            T* dgates = static_cast<T*>(s.dgates) + place * 3 * hidden + j;
            T* dhidden = static_cast<T*>(s.dhidden) + place * 3 * hidden + j;
            const T before = recurrent_before<T>(s, s.out, hidden, s.h0, hidden, row)[j];
            const T r = gates[0], z = gates[hidden], x = gates[2 * hidden], h = gates[3 * hidden];
            const T of_new = d * (T(1) - z) * (T(1) - x * x);
            static_cast<T*>(s.dh)[at] = d * z;
            dgates[0] = dhidden[0] = of_new * h * (r * (T(1) - r));
            dgates[hidden] = dhidden[hidden] = d * (before - x) * (z * (T(1) - z));
            dgates[2 * hidden] = of_new;
            dhidden[2 * hidden] = of_new * r;
        } else {
            const T y = static_cast<const T*>(s.out)[place * hidden + j];
            static_cast<T*>(s.dgates)[place * hidden + j] = kMode == RECURRENT_TANH ? d * (T(1) - y * y) : y <= T(0) ? T(0) : d;
        }
    }
}

}  // namespace trt
