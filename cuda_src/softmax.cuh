// softmax and log_softmax along one dimension of a contiguous tensor (outer, n, inner), with their gradients.
//
//   *_rows     inner == 1 and a row that fits its threads' registers: read once
//   *_long     inner == 1, rows of any length: one pass for the statistics (online, Milakov and Gimelshein 2018), one for the result
//   *_columns  inner > 1: threadIdx.x walks neighbouring columns, threadIdx.y the dimension
#pragma once

#include "fault.cuh"
#include "loss_steps.h"
#include "reduce.cuh"

namespace trt {

struct MaximumOf {
    template <class A>
    __device__ __forceinline__ A operator()(A a, A b) const { return maximum(a, b); }
};
struct SumOf {
    template <class A>
    __device__ __forceinline__ A operator()(A a, A b) const { return a + b; }
};

// Every one of `kThreads` neighbouring threads gets the combination of their values, in an order of its own that is the same each time.
// Groups beyond a warp fill the block along x and need `shared` for a value per warp.
template <int kThreads, class A, class F>
__device__ __forceinline__ A combine_all(A value, const F& f, A* shared) {
#pragma unroll
    for (int delta = (kThreads < 32 ? kThreads : 32) / 2; delta > 0; delta /= 2) value = f(value, __shfl_xor_sync(0xffffffffu, value, delta));
    if constexpr (kThreads > 32) {
        __syncthreads();
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
        __syncthreads();
        value = shared[0];
#pragma unroll
        for (int w = 1; w < kThreads / 32; w++) value = f(value, shared[w]);
    }
    return value;
}

template <class A>
__device__ __forceinline__ A lowest() { return -static_cast<A>(INFINITY); }

// The sum of exponentials as a softmax wants it: an infinite maximum makes all results NaN.
template <class A>
__device__ __forceinline__ A exp_total(const ExpSum<A>& s) { return isinf(s.top) ? static_cast<A>(NAN) : s.sum; }

template <class A, bool kLog>
struct SoftmaxValue {
    A top, scale;  // the logarithm of the sum, or its reciprocal
    __device__ __forceinline__ SoftmaxValue(A top_, A sum) : top(top_), scale(kLog ? log(sum) : A(1) / sum) {}
    __device__ __forceinline__ A operator()(A x) const { return kLog ? x - top - scale : exp(x - top) * scale; }
};

template <class T, bool kLog, int kThreads, int kItems>
__device__ __forceinline__ void softmax_rows(const T* in, T* out, long long rows, int n) {
    using A = compute_t<T>;
    __shared__ A shared[32];
    for (long long first = static_cast<long long>(blockIdx.x) * blockDim.y; first < rows; first += static_cast<long long>(gridDim.x) * blockDim.y) {
        const long long row = first + threadIdx.y;
        const bool active = row < rows;
        const T* source = in + row * n;
        A value[kItems], top = lowest<A>(), sum = A(0);
#pragma unroll
        for (int k = 0; k < kItems; k++) {
            const int i = k * kThreads + threadIdx.x;
            value[k] = active && i < n ? convert<A>(source[i]) : lowest<A>();
        }
#pragma unroll
        for (int k = 0; k < kItems; k++) top = maximum(top, value[k]);
        top = combine_all<kThreads>(top, MaximumOf(), shared);
#pragma unroll
        for (int k = 0; k < kItems; k++) {
            const int i = k * kThreads + threadIdx.x;
            if (i < n) sum += exp(value[k] - top);
        }
        sum = combine_all<kThreads>(sum, SumOf(), shared);
        const SoftmaxValue<A, kLog> result(top, sum);
#pragma unroll
        for (int k = 0; k < kItems; k++) {
            const int i = k * kThreads + threadIdx.x;
            if (active && i < n) out[row * n + i] = convert<T>(result(value[k]));
        }
    }
}

template <class T, bool kLog>
__device__ __forceinline__ void softmax_long(const T* in, T* out, long long rows, long long n) {
    using A = compute_t<T>;
    using Op = ReduceLogsumexp<T, T>;
    TRT_SHARED_STATES(ExpSum<A>, shared, 32);
    __shared__ A statistics[2];
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        const T* source = in + row * n;
        ExpSum<A> s = Op::identity();
        for (long long i = threadIdx.x; i < n; i += blockDim.x) s.add(convert<A>(source[i]));
        s = merge_threads<Op>(s, threadIdx.x, blockDim.x, shared);
        if (threadIdx.x == 0) statistics[0] = s.top, statistics[1] = exp_total(s);
        __syncthreads();
        const SoftmaxValue<A, kLog> result(statistics[0], statistics[1]);
        for (long long i = threadIdx.x; i < n; i += blockDim.x) out[row * n + i] = convert<T>(result(convert<A>(source[i])));
        __syncthreads();
    }
}

// The state of a column, merged over threadIdx.y and known to all of them. `shared` holds one per thread.
template <class S, class Merge>
__device__ __forceinline__ S merge_columns(S state, S* shared, const Merge& merge) {
    if (blockDim.y == 1) return state;
    __syncthreads();
    shared[threadIdx.y * blockDim.x + threadIdx.x] = state;
    __syncthreads();
    state = shared[threadIdx.x];
    for (int y = 1; y < static_cast<int>(blockDim.y); y++) merge(state, shared[y * blockDim.x + threadIdx.x]);
    return state;
}

struct MergeStates {
    template <class S>
    __device__ __forceinline__ void operator()(S& a, const S& b) const { a.merge(b); }
};
struct AddStates {
    template <class S>
    __device__ __forceinline__ void operator()(S& a, const S& b) const { a += b; }
};

template <class T, bool kLog>
__device__ __forceinline__ void softmax_columns(const T* in, T* out, long long outer, long long n, long long inner) {
    using A = compute_t<T>;
    TRT_SHARED_STATES(ExpSum<A>, shared, 256);
    const long long columns = outer * inner;
    for (long long first = static_cast<long long>(blockIdx.x) * blockDim.x; first < columns; first += static_cast<long long>(gridDim.x) * blockDim.x) {
        const long long column = first + threadIdx.x, base = column < columns ? column / inner * n * inner + column % inner : 0;
        ExpSum<A> s{lowest<A>(), A(0)};
        if (column < columns) {
            for (long long i = threadIdx.y; i < n; i += blockDim.y) s.add(convert<A>(in[base + i * inner]));
        }
        s = merge_columns(s, shared, MergeStates());
        const SoftmaxValue<A, kLog> result(s.top, exp_total(s));
        if (column < columns) {
            for (long long i = threadIdx.y; i < n; i += blockDim.y) out[base + i * inner] = convert<T>(result(convert<A>(in[base + i * inner])));
        }
    }
}

// ---- gradients: y (g - sum(g y)), or g - exp(y) sum(g) -----------------------------------------------------------

template <bool kLog, class A>
__device__ __forceinline__ A gradient_term(A g, A y) { return kLog ? g : g * y; }
template <bool kLog, class A>
__device__ __forceinline__ A gradient_value(A g, A y, A total) { return kLog ? g - exp(y) * total : y * (g - total); }

template <class T, bool kLog, int kThreads, int kItems>
__device__ __forceinline__ void softmax_backward_rows(const T* grad, const T* y, T* out, long long rows, int n) {
    using A = compute_t<T>;
    __shared__ A shared[32];
    for (long long first = static_cast<long long>(blockIdx.x) * blockDim.y; first < rows; first += static_cast<long long>(gridDim.x) * blockDim.y) {
        const long long row = first + threadIdx.y;
        const bool active = row < rows;
        A g[kItems], v[kItems], total = A(0);
#pragma unroll
        for (int k = 0; k < kItems; k++) {
            const int i = k * kThreads + threadIdx.x;
            g[k] = active && i < n ? convert<A>(grad[row * n + i]) : A(0);
            v[k] = active && i < n ? convert<A>(y[row * n + i]) : A(0);
        }
#pragma unroll
        for (int k = 0; k < kItems; k++) total += gradient_term<kLog>(g[k], v[k]);
        total = combine_all<kThreads>(total, SumOf(), shared);
#pragma unroll
        for (int k = 0; k < kItems; k++) {
            const int i = k * kThreads + threadIdx.x;
            if (active && i < n) out[row * n + i] = convert<T>(gradient_value<kLog>(g[k], v[k], total));
        }
    }
}

template <class T, bool kLog>
__device__ __forceinline__ void softmax_backward_long(const T* grad, const T* y, T* out, long long rows, long long n) {
    using A = compute_t<T>;
    __shared__ A shared[32];
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        A total = A(0);
        for (long long i = threadIdx.x; i < n; i += blockDim.x) total += gradient_term<kLog>(convert<A>(grad[row * n + i]), convert<A>(y[row * n + i]));
        total = combine_all<1024>(total, SumOf(), shared);
        for (long long i = threadIdx.x; i < n; i += blockDim.x) {
            out[row * n + i] = convert<T>(gradient_value<kLog>(convert<A>(grad[row * n + i]), convert<A>(y[row * n + i]), total));
        }
    }
}

template <class T, bool kLog>
__device__ __forceinline__ void softmax_backward_columns(const T* grad, const T* y, T* out, long long outer, long long n, long long inner) {
    using A = compute_t<T>;
    __shared__ A shared[256];
    const long long columns = outer * inner;
    for (long long first = static_cast<long long>(blockIdx.x) * blockDim.x; first < columns; first += static_cast<long long>(gridDim.x) * blockDim.x) {
        const long long column = first + threadIdx.x, base = column < columns ? column / inner * n * inner + column % inner : 0;
        A total = A(0);
        if (column < columns) {
            for (long long i = threadIdx.y; i < n; i += blockDim.y) {
                total += gradient_term<kLog>(convert<A>(grad[base + i * inner]), convert<A>(y[base + i * inner]));
            }
        }
        total = merge_columns(total, shared, AddStates());
        if (column < columns) {
            for (long long i = threadIdx.y; i < n; i += blockDim.y) {
                out[base + i * inner] = convert<T>(gradient_value<kLog>(convert<A>(grad[base + i * inner]), convert<A>(y[base + i * inner]), total));
            }
        }
    }
}

// ---- losses over class indices -----------------------------------------------------------------------------------

// Of x (rows / inner, classes, inner). A target outside of the classes makes its loss NaN.

template <class T>
__device__ __forceinline__ compute_t<T> class_weight(const compute_t<T>* weight, long long c) { return weight ? weight[c] : compute_t<T>(1); }

template <class A>
struct ClassState {
    ExpSum<A> s;
    A smooth, weights;  // sums of w x and of w, for smoothed labels
    __device__ __forceinline__ void merge(const ClassState& o) {
        s.merge(o.s);
        smooth += o.smooth;
        weights += o.weights;
    }
};
template <class A>
struct ClassStates {
    using State = ClassState<A>;
    static __device__ __forceinline__ void merge(State& a, const State& b) { a.merge(b); }
};

// Per row: its loss, the weight of its target, and the logarithm of the sum of exponentials. threadIdx.x walks the classes
// where they lie side by side, the rows otherwise; threadIdx.y the other.
template <class T, bool kAcross>
__device__ __forceinline__ void cross_entropy(const class_loss& l, const T* x, const long long* target, const compute_t<T>* weight, compute_t<T>* loss,
                                              compute_t<T>* row_weight, compute_t<T>* lse) {
    using A = compute_t<T>;
    using State = ClassState<A>;
    using Op = ClassStates<A>;
    TRT_SHARED_STATES(State, shared, 256);
    const int step = kAcross ? blockDim.y : blockDim.x, lane = kAcross ? threadIdx.y : threadIdx.x;
    const int group = kAcross ? blockDim.x : blockDim.y, member = kAcross ? threadIdx.x : threadIdx.y;
    for (long long first = static_cast<long long>(blockIdx.x) * group; first < l.rows; first += static_cast<long long>(gridDim.x) * group) {
        const long long row = first + member;
        const bool active = row < l.rows;
        const T* source = active ? x + row / l.inner * l.classes * l.inner + row % l.inner : x;
        State state{{lowest<A>(), A(0)}, A(0), A(0)};
        if (active) {
            for (long long c = lane; c < l.classes; c += step) {
                const A v = convert<A>(source[c * l.inner]);
                state.s.add(v);
                if (l.smoothing > 0) {
                    state.smooth += class_weight<T>(weight, c) * v;
                    state.weights += class_weight<T>(weight, c);
                }
            }
        }
        if constexpr (kAcross) state = merge_columns(state, shared, MergeStates());
        else state = merge_threads<Op>(state, threadIdx.y * step + lane, step, shared);
        if (lane == 0 && active) {
            const long long t = target[row];
            const bool valid = t != l.ignore_index, inside = t >= 0 && t < l.classes;
            const A total = isinf(state.s.top) ? state.s.top : log(state.s.sum) + state.s.top;
            const A w = valid && inside ? class_weight<T>(weight, t) : A(0);
            A value = A(0);
            if (valid && inside) {
                value = w * (total - convert<A>(source[t * l.inner]));
                if (l.smoothing > 0) {
                    const A smooth = total * state.weights - state.smooth;
                    value = value * static_cast<A>(1 - l.smoothing) + smooth * static_cast<A>(l.smoothing / static_cast<double>(l.classes));
                }
            } else if (valid) {
                value = static_cast<A>(NAN);
                note(static_cast<Fault*>(l.fault), l.code, t, l.classes);
            }
            lse[row] = total;
            loss[row] = value;
            row_weight[row] = w;
        }
    }
}

template <class T>
__device__ __forceinline__ void nll_loss(const class_loss& l, const T* x, const long long* target, const compute_t<T>* weight, compute_t<T>* loss,
                                         compute_t<T>* row_weight) {
    using A = compute_t<T>;
    for (long long row = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; row < l.rows; row += static_cast<long long>(gridDim.x) * blockDim.x) {
        const long long t = target[row];
        const bool valid = t != l.ignore_index, inside = t >= 0 && t < l.classes;
        const A w = valid && inside ? class_weight<T>(weight, t) : A(0);
        row_weight[row] = w;
        if (valid && !inside) note(static_cast<Fault*>(l.fault), l.code, t, l.classes);
        loss[row] = !valid ? A(0) : !inside ? static_cast<A>(NAN) : -w * convert<A>(x[row / l.inner * l.classes * l.inner + t * l.inner + row % l.inner]);
    }
}

// One block of 512 threads: the sum or the mean of the losses, and the sum of the weights.
template <class A, class T>
__device__ __forceinline__ void class_loss_total(const class_loss& l, const A* loss, const A* row_weight, T* result, A* total_weight) {
    __shared__ A shared[32];
    A total = A(0), weights = A(0);
    for (long long i = threadIdx.x; i < l.rows; i += 512) {
        total += loss[i];
        weights += row_weight[i];
    }
    total = combine_all<512>(total, SumOf(), shared);
    weights = combine_all<512>(weights, SumOf(), shared);
    if (threadIdx.x == 0) {
        *total_weight = weights;
        *result = convert<T>(l.reduction == LOSS_MEAN ? total / weights : total);
    }
}

// The gradient of either loss, element by element; `weights` is the sum of the class weights, or null for the number of classes.
template <class T, bool kNll>
__device__ __forceinline__ void class_loss_backward(const class_loss& l, const T* grad, const T* x, const long long* target, const compute_t<T>* weight,
                                                    const compute_t<T>* lse, const compute_t<T>* total_weight, const compute_t<T>* weights, T* out) {
    using A = compute_t<T>;
    const long long numel = l.rows * l.classes;
    const A share = static_cast<A>(l.smoothing / static_cast<double>(l.classes));
    const A all = weights ? *weights : static_cast<A>(l.classes), divisor = l.reduction == LOSS_MEAN ? *total_weight : A(1);
    for (long long at = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; at < numel; at += static_cast<long long>(gridDim.x) * blockDim.x) {
        long long c = at;
        long long rest = divide(c, l.inner);  // c: the position inside, rest: (sample, class)
        const long long j = c;
        c = rest;
        const long long row = divide(c, l.classes) * l.inner + j;
        const long long t = target[row];
        A value = A(0);
        if (t != l.ignore_index) {
            const A w = t >= 0 && t < l.classes ? class_weight<T>(weight, t) * static_cast<A>(1 - l.smoothing) : static_cast<A>(NAN);
            const A g = convert<A>(grad[l.reduction == LOSS_NONE ? row : 0]) / divisor;
            if constexpr (kNll) {
                value = c == t ? -w * g : w == w ? A(0) : w;
            } else {
                const A mine = (c == t ? w : A(0)) + share * class_weight<T>(weight, c);
                value = (exp(convert<A>(x[at]) - lse[row]) * (w + share * all) - mine) * g;
            }
        }
        out[at] = convert<T>(value);
    }
}

}  // namespace trt
