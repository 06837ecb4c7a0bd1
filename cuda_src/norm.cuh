// Normalisations: statistics of rows (layer, root mean square and group norm) or channels (batch norm), and their gradients.
// Parameters come in a type W of their own; statistics are in the compute type.
#pragma once

#include "norm_steps.h"
#include "softmax.cuh"

namespace trt {

template <bool kGroups>
__device__ __forceinline__ long long parameter_of(const row_shape& l, long long row, long long i) {
    if constexpr (!kGroups) return i;
    const long long channel = divide(i, l.inner);
    return row % l.groups * l.per_group + channel;
}

// The first of `width` neighbours tells the others; `shared` holds a value per threadIdx.y.
template <class A>
__device__ __forceinline__ A tell(A value, int width, A* shared) {
    if (width <= 32) return __shfl_sync(0xffffffffu, value, 0, width);
    __syncthreads();
    if (threadIdx.x == 0) shared[threadIdx.y] = value;
    __syncthreads();
    return shared[threadIdx.y];
}

template <class A>
struct MomentsOp {
    using State = Moments<A>;
    static __device__ __forceinline__ void merge(State& a, const State& b) { a.merge(b); }
};
template <class A>
struct Pair {
    A first, second;
};
template <class A>
struct PairOp {
    using State = Pair<A>;
    static __device__ __forceinline__ void merge(State& a, const State& b) {
        a.first += b.first;
        a.second += b.second;
    }
};

// threadIdx.x walks a row, threadIdx.y the rows. kCentre: less the mean.
template <class T, class W, bool kCentre, bool kGroups>
__device__ __forceinline__ void row_norm(const row_shape& l, const T* x, const W* weight, const W* bias, T* y, compute_t<T>* mean, compute_t<T>* rstd) {
    using A = compute_t<T>;
    TRT_SHARED_STATES(Moments<A>, moments, 32);
    __shared__ A told[2][16];
    const int tx = blockDim.x, thread = threadIdx.y * tx + threadIdx.x;
    for (long long first = static_cast<long long>(blockIdx.x) * blockDim.y; first < l.rows; first += static_cast<long long>(gridDim.x) * blockDim.y) {
        const long long row = first + threadIdx.y;
        const T* source = x + row * l.n;
        const long long n = row < l.rows ? l.n : 0;
        A centre = A(0), scale;
        if constexpr (kCentre) {
            Moments<A> m{A(0), A(0), A(0)};
            for (long long i = threadIdx.x; i < n; i += tx) m.add(convert<A>(source[i]));
            m = merge_threads<MomentsOp<A>>(m, thread, tx, moments);
            centre = tell(m.mean, tx, told[0]);
            scale = tell(m.m2, tx, told[1]);
        } else {
            Pair<A> s{A(0), A(0)};
            for (long long i = threadIdx.x; i < n; i += tx) s.first += convert<A>(source[i]) * convert<A>(source[i]);
            s = merge_threads<PairOp<A>>(s, thread, tx, reinterpret_cast<Pair<A>*>(moments));
            scale = tell(s.first, tx, told[1]);
        }
        scale = A(1) / sqrt(scale / static_cast<A>(l.n) + static_cast<A>(l.eps));
        if (threadIdx.x == 0 && row < l.rows) {
            if (mean) mean[row] = centre;
            rstd[row] = scale;
        }
        for (long long i = threadIdx.x; i < n; i += tx) {
            A v = (convert<A>(source[i]) - centre) * scale;
            const long long at = parameter_of<kGroups>(l, row, i);
            if (weight) v *= convert<A>(weight[at]);
            if (bias) v += convert<A>(bias[at]);
            y[row * l.n + i] = convert<T>(v);
        }
    }
}

// dx = rstd (g - [mean g] - xhat mean(g xhat)) with g = dy w; the bracket only when centred.
template <class T, class W, bool kCentre, bool kGroups>
__device__ __forceinline__ void row_norm_backward(const row_shape& l, const T* grad, const T* x, const W* weight, const compute_t<T>* mean,
                                                  const compute_t<T>* rstd, T* out) {
    using A = compute_t<T>;
    TRT_SHARED_STATES(Pair<A>, pairs, 32);
    __shared__ A told[2][16];
    const int tx = blockDim.x, thread = threadIdx.y * tx + threadIdx.x;
    for (long long first = static_cast<long long>(blockIdx.x) * blockDim.y; first < l.rows; first += static_cast<long long>(gridDim.x) * blockDim.y) {
        const long long row = first + threadIdx.y, n = row < l.rows ? l.n : 0;
        const A centre = kCentre && n ? mean[row] : A(0), scale = n ? rstd[row] : A(0);
        Pair<A> s{A(0), A(0)};
        for (long long i = threadIdx.x; i < n; i += tx) {
            A g = convert<A>(grad[row * l.n + i]);
            if (weight) g *= convert<A>(weight[parameter_of<kGroups>(l, row, i)]);
            s.first += g;
            s.second += g * ((convert<A>(x[row * l.n + i]) - centre) * scale);
        }
        s = merge_threads<PairOp<A>>(s, thread, tx, pairs);
        const A sum = kCentre ? tell(s.first, tx, told[0]) / static_cast<A>(l.n) : A(0), dot = tell(s.second, tx, told[1]) / static_cast<A>(l.n);
        const A outer = kCentre && n == 1 ? A(0) : scale;  // 0, not what a fused multiply-subtract leaves of it
        for (long long i = threadIdx.x; i < n; i += tx) {
            A g = convert<A>(grad[row * l.n + i]);
            if (weight) g *= convert<A>(weight[parameter_of<kGroups>(l, row, i)]);
            out[row * l.n + i] = convert<T>(outer * (g - sum - (convert<A>(x[row * l.n + i]) - centre) * scale * dot));
        }
    }
}

// ---- sums by channel ---------------------------------------------------------------------------------------------

// dy and dy xhat summed for each channel.
template <class A>
__device__ __forceinline__ A statistic(const channel_shape& l, const A* values, long long sample, long long channel) {
    return values ? values[sample * l.by_sample + (l.by_channel ? channel / l.by_channel : 0)] : A(0);
}

// inner > 1: a block of 256 threads for a channel's piece of samples * inner elements.
template <class T>
__device__ __forceinline__ void sum_planes(const channel_shape& l, const T* grad, const T* x, const compute_t<T>* mean, const compute_t<T>* rstd,
                                           compute_t<T>* partials) {
    using A = compute_t<T>;
    TRT_SHARED_STATES(Pair<A>, shared, 8);
    const long long n = l.samples * l.inner, begin = blockIdx.y * l.chunk, end = begin + l.chunk < n ? begin + l.chunk : n;
    for (long long channel = blockIdx.x; channel < l.channels; channel += gridDim.x) {
        Pair<A> s{A(0), A(0)};
        for (long long i = begin + threadIdx.x; i < end; i += 256) {
            long long position = i;
            const long long sample = divide(position, l.inner), at = (sample * l.channels + channel) * l.inner + position;
            const A g = convert<A>(grad[at]);
            s.first += g;
            s.second += g * ((convert<A>(x[at]) - statistic(l, mean, sample, channel)) * statistic(l, rstd, sample, channel));
        }
        s = merge_threads<PairOp<A>>(s, threadIdx.x, 256, shared);
        if (threadIdx.x == 0) {
            partials[(2 * blockIdx.y) * l.channels + channel] = s.first;
            partials[(2 * blockIdx.y + 1) * l.channels + channel] = s.second;
        }
    }
}

// inner == 1: 32 channels side by side, threadIdx.y the samples.
template <class T>
__device__ __forceinline__ void sum_columns(const channel_shape& l, const T* grad, const T* x, const compute_t<T>* mean, const compute_t<T>* rstd,
                                            compute_t<T>* partials) {
    using A = compute_t<T>;
    TRT_SHARED_STATES(Pair<A>, shared, 256);
    const long long begin = blockIdx.y * l.chunk, end = begin + l.chunk < l.samples ? begin + l.chunk : l.samples;
    for (long long first = static_cast<long long>(blockIdx.x) * 32; first < l.channels; first += static_cast<long long>(gridDim.x) * 32) {
        const long long channel = first + threadIdx.x;
        Pair<A> s{A(0), A(0)};
        if (channel < l.channels) {
#pragma unroll 4
            for (long long sample = begin + threadIdx.y; sample < end; sample += 8) {
                const long long at = sample * l.channels + channel;
                const A g = convert<A>(grad[at]);
                s.first += g;
                s.second += g * ((convert<A>(x[at]) - statistic(l, mean, sample, channel)) * statistic(l, rstd, sample, channel));
            }
        }
        __syncthreads();
        shared[threadIdx.y * 32 + threadIdx.x] = s;
        __syncthreads();
        if (threadIdx.y == 0 && channel < l.channels) {
            for (int k = 1; k < 8; k++) PairOp<A>::merge(s, shared[k * 32 + threadIdx.x]);
            partials[(2 * blockIdx.y) * l.channels + channel] = s.first;
            partials[(2 * blockIdx.y + 1) * l.channels + channel] = s.second;
        }
    }
}

// The pieces added in order: gradients of bias and weight in the compute type. Either may be null.
template <class A>
__device__ __forceinline__ void sum_pieces(long long channels, int splits, const A* partials, A* bias, A* weight) {
    for (long long c = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; c < channels; c += static_cast<long long>(gridDim.x) * blockDim.x) {
        A sum = A(0), dot = A(0);
        for (int k = 0; k < splits; k++) {
            sum += partials[(2 * k) * channels + c];
            dot += partials[(2 * k + 1) * channels + c];
        }
        if (bias) bias[c] = sum;
        if (weight) weight[c] = dot;
    }
}

// ---- batch norm --------------------------------------------------------------------------------------------------

// From means and variances (of the batch, or the running ones): reciprocal deviations, y = x scale + shift, and in training the running
// statistics' new values; the variance is made unbiased there.
template <class A, class W>
__device__ __forceinline__ void batch_statistics(long long channels, long long count, double eps, double momentum, const W* weight, const W* bias,
                                                 const A* mean, A* variance_to_rstd, A* scale, A* shift, A* running_mean, A* running_var) {
    for (long long c = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; c < channels; c += static_cast<long long>(gridDim.x) * blockDim.x) {
        const A variance = variance_to_rstd[c], rstd = A(1) / sqrt(variance + static_cast<A>(eps)), keep = static_cast<A>(1 - momentum);
        if (running_mean) running_mean[c] = keep * running_mean[c] + static_cast<A>(momentum) * mean[c];
        if (running_var) running_var[c] = keep * running_var[c] + static_cast<A>(momentum) * (variance * (static_cast<A>(count) / static_cast<A>(count - 1)));
        variance_to_rstd[c] = rstd;
        scale[c] = weight ? rstd * convert<A>(weight[c]) : rstd;
        shift[c] = (bias ? convert<A>(bias[c]) : A(0)) - mean[c] * scale[c];
    }
}

template <class T>
__device__ __forceinline__ void batch_apply(long long numel, long long channels, long long inner, const T* x, const compute_t<T>* scale,
                                            const compute_t<T>* shift, T* y) {
    using A = compute_t<T>;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < numel; i += static_cast<long long>(gridDim.x) * blockDim.x) {
        long long position = i, channel = divide(position, inner);
        divide(channel, channels);
        y[i] = convert<T>(convert<A>(x[i]) * scale[channel] + shift[channel]);
    }
}

// dx = w rstd (dy - [mean dy + xhat mean(dy xhat)]); the bracket in training only, `count` elements a channel.
template <class T, class W>
__device__ __forceinline__ void batch_backward(long long numel, long long channels, long long inner, long long count, const T* grad, const T* x,
                                               const W* weight, const compute_t<T>* mean, const compute_t<T>* rstd, const compute_t<T>* sum,
                                               const compute_t<T>* dot, T* out) {
    using A = compute_t<T>;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < numel; i += static_cast<long long>(gridDim.x) * blockDim.x) {
        long long position = i, channel = divide(position, inner);
        divide(channel, channels);
        A g = convert<A>(grad[i]);
        const A scale = rstd[channel];
        if (count) g -= (sum[channel] + (convert<A>(x[i]) - mean[channel]) * scale * dot[channel]) / static_cast<A>(count);
        out[i] = convert<T>(g * (weight ? scale * convert<A>(weight[channel]) : scale));
    }
}

}  // namespace trt
