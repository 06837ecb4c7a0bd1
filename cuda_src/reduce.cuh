// Reductions: each output is the merged state of one run of elements, for any strides of kept and reduced dimensions.
//
// Two block shapes, chosen by the host (cysrc/cuda/reduction.pyx) by which kind of dimension lies closest in memory:
//   reduce_inner  threadIdx.x walks the reduced run, threadIdx.y the outputs: short runs put several outputs in a block
//   reduce_outer  threadIdx.x walks the outputs, threadIdx.y the reduced run
// A run may be cut along gridDim.y: each piece leaves its state in `partials`, and reduce_combine merges them in order.
// Pieces and trees depend on the shape and the device only, so that a sum has the same bits at every run.
//
// An operator is a struct with In, Out, State and identity(), absorb(State&, In, index), merge(State&, State),
// finish(State, n, outputs...). States are plain words: they travel by shuffles and through shared memory.
#pragma once

#include "iteration.cuh"
#include "reduction_steps.h"

namespace trt {

constexpr int kReduceThreads = 512;  // at most, of a block
constexpr int kLanes = 4;            // independent states of a thread

// ---- indices -----------------------------------------------------------------------------------------------------

// quotient = index / size, index %= size; with 32-bit arithmetic where it suffices.
__device__ __forceinline__ long long divide(long long& index, long long size) {
    if (((index | size) >> 32) == 0) {
        const unsigned q = static_cast<unsigned>(index) / static_cast<unsigned>(size);
        index = static_cast<unsigned>(index) - q * static_cast<unsigned>(size);
        return q;
    }
    const long long q = index / size;
    index -= q * size;
    return q;
}

__device__ __forceinline__ long long offset_of(long long index, int ndim, const long long* size, const long long* stride) {
    if (ndim == 0) return 0;
    long long offset = 0;
    for (int d = 0; d < ndim - 1; d++) {
        const long long rest = divide(index, size[d]);
        offset += index * stride[d];
        index = rest;
    }
    return offset + index * stride[ndim - 1];
}

// ---- states ------------------------------------------------------------------------------------------------------

template <class S>
__device__ __forceinline__ S shuffle_down(const S& state, int delta, int width) {
    static_assert(sizeof(S) % 4 == 0, "states are shuffled word by word");
    union Words {
        S state;
        unsigned word[sizeof(S) / 4];
        __device__ Words() {}
    } words;
    words.state = state;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(S) / 4); i++) words.word[i] = __shfl_down_sync(0xffffffffu, words.word[i], delta, width);
    return words.state;
}

// Merges the states of `width` neighbouring threads, a power of two that divides the block, into the first of them.
// All threads of the block take part; `shared` holds one state per warp.
template <class Op>
__device__ __forceinline__ typename Op::State merge_threads(typename Op::State state, int thread, int width, typename Op::State* shared) {
    for (int delta = (width < 32 ? width : 32) / 2; delta > 0; delta /= 2) Op::merge(state, shuffle_down(state, delta, width < 32 ? width : 32));
    if (width > 32) {
        __syncthreads();  // what an earlier round left there has been read
        if (thread % 32 == 0) shared[thread / 32] = state;
        __syncthreads();
        if (thread % width == 0) {
            for (int w = 1; w < width / 32; w++) Op::merge(state, shared[thread / 32 + w]);
        }
    }
    return state;
}

template <class Op>
__device__ __forceinline__ typename Op::State merge_lanes(typename Op::State (&lane)[kLanes]) {
#pragma unroll
    for (int i = 1; i < kLanes; i++) Op::merge(lane[0], lane[i]);
    return lane[0];
}

// Storage for states in shared memory, which has no constructors.
#define TRT_SHARED_STATES(S, name, count)                            \
    alignas(16) __shared__ unsigned char name##_bytes[sizeof(S) * (count)]; \
    S* const name = reinterpret_cast<S*>(name##_bytes)

template <class Op, class Second>
__device__ __forceinline__ void put_result(const reduce_layout& l, const reduce_call& call, typename Op::State state, long long output, int split,
                                           typename Op::State* partials, typename Op::Out* out, Second* second) {
    if (l.splits > 1) {
        partials[split * l.outputs + output] = state;
    } else {
        const long long at = offset_of(output, l.kept_ndim, l.kept_size, l.out_stride);
        Op::finish(state, l.n, call, out + at, second ? second + at : nullptr);
    }
}

// ---- kernels -----------------------------------------------------------------------------------------------------

template <class Op>
__device__ __forceinline__ void reduce_inner(const reduce_layout& l, const reduce_call& call, const typename Op::In* in, typename Op::Out* out,
                                             typename Op::Second* second, typename Op::State* partials) {
    using In = typename Op::In;
    using State = typename Op::State;
    static_assert(sizeof(State) <= REDUCE_PARTIAL_BYTES, "a state must fit the partial result's slot");
    constexpr int kVector = sizeof(In) < kVectorBytes ? kVectorBytes / sizeof(In) : 1;
    TRT_SHARED_STATES(State, shared, kReduceThreads / 32);
    const int tx = blockDim.x, thread = threadIdx.y * tx + threadIdx.x;
    const long long begin = blockIdx.y * l.chunk, end = begin + l.chunk < l.n ? begin + l.chunk : l.n;
    // The bound is the same for all threads of a block: they meet at barriers.
    for (long long first = static_cast<long long>(blockIdx.x) * blockDim.y; first < l.outputs; first += static_cast<long long>(gridDim.x) * blockDim.y) {
        const long long output = first + threadIdx.y;
        State lane[kLanes];
#pragma unroll
        for (int i = 0; i < kLanes; i++) lane[i] = Op::identity();
        if (output < l.outputs) {
            const In* run = in + offset_of(output, l.kept_ndim, l.kept_size, l.kept_stride);
            if (l.vectors) {  // one dimension without gaps, every run aligned; chunks are multiples of the vector
                const Vector<In, kVector>* vectors = reinterpret_cast<const Vector<In, kVector>*>(run);
                const long long last = end / kVector;
#pragma unroll 4
                for (long long v = begin / kVector + threadIdx.x; v < last; v += tx) {
                    const Vector<In, kVector> value = vectors[v];
#pragma unroll
                    for (int i = 0; i < kVector; i++) Op::absorb(lane[i % kLanes], value.at[i], v * kVector + i, call);
                }
                for (long long i = last * kVector + threadIdx.x; i < end; i += tx) Op::absorb(lane[0], run[i], i, call);
            } else if (l.reduced_ndim == 1) {
                const long long stride = l.reduced_stride[0];
                long long i = begin + threadIdx.x;
                for (; i + (kLanes - 1) * tx < end; i += kLanes * tx) {
                    In value[kLanes];
#pragma unroll
                    for (int k = 0; k < kLanes; k++) value[k] = run[(i + k * tx) * stride];
#pragma unroll
                    for (int k = 0; k < kLanes; k++) Op::absorb(lane[k], value[k], i + k * tx, call);
                }
                for (; i < end; i += tx) Op::absorb(lane[0], run[i * stride], i, call);
            } else {
                for (long long i = begin + threadIdx.x; i < end; i += tx) {
                    Op::absorb(lane[0], run[offset_of(i, l.reduced_ndim, l.reduced_size, l.reduced_stride)], i, call);
                }
            }
        }
        const State state = merge_threads<Op>(merge_lanes<Op>(lane), thread, tx, shared);
        if (threadIdx.x == 0 && output < l.outputs) put_result<Op>(l, call, state, output, blockIdx.y, partials, out, second);
    }
}

template <class Op>
__device__ __forceinline__ void reduce_outer(const reduce_layout& l, const reduce_call& call, const typename Op::In* in, typename Op::Out* out,
                                             typename Op::Second* second, typename Op::State* partials) {
    using In = typename Op::In;
    using State = typename Op::State;
    TRT_SHARED_STATES(State, shared, kReduceThreads);
    const int tx = blockDim.x, ty = blockDim.y;
    const long long begin = blockIdx.y * l.chunk, end = begin + l.chunk < l.n ? begin + l.chunk : l.n;
    for (long long first = static_cast<long long>(blockIdx.x) * tx; first < l.outputs; first += static_cast<long long>(gridDim.x) * tx) {
        const long long output = first + threadIdx.x;
        State lane[kLanes];
#pragma unroll
        for (int i = 0; i < kLanes; i++) lane[i] = Op::identity();
        if (output < l.outputs) {
            const In* run = in + offset_of(output, l.kept_ndim, l.kept_size, l.kept_stride);
            long long i = begin + threadIdx.y;
            if (l.reduced_ndim <= 1) {
                const long long stride = l.reduced_stride[0];
                for (; i + (kLanes - 1) * ty < end; i += kLanes * ty) {
                    In value[kLanes];
#pragma unroll
                    for (int k = 0; k < kLanes; k++) value[k] = run[(i + k * ty) * stride];
#pragma unroll
                    for (int k = 0; k < kLanes; k++) Op::absorb(lane[k], value[k], i + k * ty, call);
                }
                for (; i < end; i += ty) Op::absorb(lane[0], run[i * stride], i, call);
            } else {
                for (; i < end; i += ty) Op::absorb(lane[0], run[offset_of(i, l.reduced_ndim, l.reduced_size, l.reduced_stride)], i, call);
            }
        }
        State state = merge_lanes<Op>(lane);
        if (ty > 1) {
            __syncthreads();
            shared[threadIdx.y * tx + threadIdx.x] = state;
            for (int half = ty / 2; half > 0; half /= 2) {
                __syncthreads();
                if (static_cast<int>(threadIdx.y) < half) {
                    Op::merge(state, shared[(threadIdx.y + half) * tx + threadIdx.x]);
                    shared[threadIdx.y * tx + threadIdx.x] = state;
                }
            }
        }
        if (threadIdx.y == 0 && output < l.outputs) put_result<Op>(l, call, state, output, blockIdx.y, partials, out, second);
    }
}

// One block of 128 threads per output merges the states of its pieces.
template <class Op>
__device__ __forceinline__ void reduce_combine(const reduce_layout& l, const reduce_call& call, const typename Op::State* partials,
                                               typename Op::Out* out, typename Op::Second* second) {
    using State = typename Op::State;
    TRT_SHARED_STATES(State, shared, 4);
    for (long long output = blockIdx.x; output < l.outputs; output += gridDim.x) {
        State state = Op::identity();
        for (int k = threadIdx.x; k < l.splits; k += 128) Op::merge(state, partials[k * l.outputs + output]);
        state = merge_threads<Op>(state, threadIdx.x, 128, shared);
        if (threadIdx.x == 0) {
            const long long at = offset_of(output, l.kept_ndim, l.kept_size, l.out_stride);
            Op::finish(state, l.n, call, out + at, second ? second + at : nullptr);
        }
    }
}

// ---- operators ---------------------------------------------------------------------------------------------------

// The type sums are kept in: wide integers, float for halves, otherwise the type itself.
template <class T>
struct Accumulator { using type = compute_t<T>; };
template <> struct Accumulator<bool> { using type = unsigned long long; };
template <> struct Accumulator<unsigned char> { using type = unsigned long long; };
template <> struct Accumulator<signed char> { using type = unsigned long long; };
template <> struct Accumulator<short> { using type = unsigned long long; };
template <> struct Accumulator<int> { using type = unsigned long long; };
template <> struct Accumulator<long long> { using type = unsigned long long; };
template <class T>
using accumulator_t = typename Accumulator<T>::type;

// Integers reach unsigned arithmetic, which wraps, through their sign extension.
template <class A>
struct Widen {
    template <class T>
    static __device__ __forceinline__ A from(T value) { return convert<A>(value); }
};
template <>
struct Widen<unsigned long long> {
    template <class T>
    static __device__ __forceinline__ unsigned long long from(T value) { return static_cast<unsigned long long>(convert<long long>(value)); }
};

// What all have in common where nothing else is said.
template <class I, class O, class S>
struct ReduceTypes {
    using In = I;
    using Out = O;
    using Second = O;
    using State = S;
};

template <class A>
__device__ __forceinline__ A scaled(A total, long long n, const reduce_call& call) {
    if (call.flags & REDUCE_MEAN) total = total / A(static_cast<real_t<A>>(n));
    if constexpr (!is_complex<A>) {
        if (call.flags & REDUCE_SQRT) total = static_cast<A>(sqrt(total));
    }
    return total;
}

template <class I, class O>
struct ReduceSum : ReduceTypes<I, O, accumulator_t<O>> {
    using A = accumulator_t<O>;
    static __device__ __forceinline__ A identity() { return A(0); }
    static __device__ __forceinline__ void absorb(A& s, I x, long long, const reduce_call&) { s = s + Widen<A>::from(x); }
    static __device__ __forceinline__ void merge(A& s, A o) { s = s + o; }
    static __device__ __forceinline__ void finish(A s, long long n, const reduce_call& call, O* out, O*) {
        if constexpr (is_real<A> || is_complex<A>) s = scaled(s, n, call);
        *out = convert<O>(s);
    }
};

template <class I, class O>
struct ReduceNanSum : ReduceSum<I, O> {
    using A = typename ReduceSum<I, O>::A;
    static __device__ __forceinline__ void absorb(A& s, I x, long long, const reduce_call&) {
        const A v = Widen<A>::from(x);
        s = s + (v == v ? v : A(0));
    }
};

template <class I, class O>
struct ReduceProd : ReduceTypes<I, O, accumulator_t<O>> {
    using A = accumulator_t<O>;
    static __device__ __forceinline__ A identity() { return A(1); }
    static __device__ __forceinline__ void absorb(A& s, I x, long long, const reduce_call&) { s = s * Widen<A>::from(x); }
    static __device__ __forceinline__ void merge(A& s, A o) { s = s * o; }
    static __device__ __forceinline__ void finish(A s, long long, const reduce_call&, O* out, O*) { *out = convert<O>(s); }
};

// Extremes: the first of equal values, and of NaN, which wins. index < 0: no element yet.
template <class V>
struct Extreme {
    V value;
    long long index;
};

template <class V, bool kLargest>
struct ExtremeOf {
    using State = Extreme<V>;
    static __device__ __forceinline__ State identity() { return State{V(), -1}; }
    static __device__ __forceinline__ bool precedes(const State& a, const State& b) {
        if (a.index < 0 || b.index < 0) return b.index < 0;
        const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
        if (a_nan || b_nan) return a_nan && (!b_nan || a.index < b.index);
        if (a.value == b.value) return a.index < b.index;
        return kLargest ? b.value < a.value : a.value < b.value;
    }
    static __device__ __forceinline__ void merge(State& s, const State& o) {
        if (!precedes(s, o)) s = o;
    }
    static __device__ __forceinline__ void take(State& s, V value, long long index) { merge(s, State{value, index}); }
};

template <class I, bool kLargest>
struct ReduceArg : ReduceTypes<I, long long, Extreme<compute_t<I>>>, ExtremeOf<compute_t<I>, kLargest> {
    using Second = I;
    using V = compute_t<I>;
    using State = Extreme<V>;
    static __device__ __forceinline__ void absorb(State& s, I x, long long i, const reduce_call&) { ExtremeOf<V, kLargest>::take(s, convert<V>(x), i); }
    static __device__ __forceinline__ void finish(const State& s, long long, const reduce_call&, long long* out, I* value) {
        *out = s.index;
        if (value) *value = convert<I>(s.value);
    }
};
template <class I, class O>
using ReduceArgmax = ReduceArg<I, true>;
template <class I, class O>
using ReduceArgmin = ReduceArg<I, false>;

// Without the index: the state is a value, and whether there is one.
template <class V>
struct Bound {
    V value;
    int any;
};
template <class I, class O, bool kLargest, bool kAbsolute>
struct ReduceBound : ReduceTypes<I, O, Bound<compute_t<O>>> {
    using V = compute_t<O>;
    using State = Bound<V>;
    static __device__ __forceinline__ State identity() { return State{V(), 0}; }
    static __device__ __forceinline__ void take(State& s, V v) {
        if (!s.any || v != v || (kLargest ? s.value < v : v < s.value)) s.value = v;
        s.any = 1;
    }
    static __device__ __forceinline__ void absorb(State& s, I x, long long, const reduce_call&) {
        if constexpr (kAbsolute) take(s, convert<V>(abs(convert<compute_t<I>>(x))));
        else take(s, convert<V>(x));
    }
    static __device__ __forceinline__ void merge(State& s, const State& o) {
        if (o.any) take(s, o.value);
    }
    static __device__ __forceinline__ void finish(const State& s, long long, const reduce_call&, O* out, O*) { *out = convert<O>(s.value); }
};
template <class I, class O>
using ReduceMax = ReduceBound<I, O, true, false>;
template <class I, class O>
using ReduceMin = ReduceBound<I, O, false, false>;
template <class I, class O>
using ReduceAbsMax = ReduceBound<I, O, true, true>;
template <class I, class O>
using ReduceAbsMin = ReduceBound<I, O, false, true>;

// Counts of nonzero elements; `all` is "no zeros".
template <class I, class O, bool kAll>
struct ReduceCounted : ReduceTypes<I, O, long long> {
    static __device__ __forceinline__ long long identity() { return 0; }
    static __device__ __forceinline__ void absorb(long long& s, I x, long long, const reduce_call&) { s += truth(convert<compute_t<I>>(x)) != kAll; }
    static __device__ __forceinline__ void merge(long long& s, long long o) { s += o; }
    static __device__ __forceinline__ void finish(long long s, long long, const reduce_call&, O* out, O*) { *out = kAll ? O(s == 0) : O(s); }
};
template <class I, class O>
using ReduceAny = ReduceCounted<I, O, false>;
template <class I, class O>
using ReduceCountNonzero = ReduceCounted<I, O, false>;
template <class I, class O>
using ReduceAll = ReduceCounted<I, O, true>;

// Sums of |x|, |x|^2 and |x|^p.
template <class I, class O, int kPower>
struct ReduceNorm : ReduceTypes<I, O, compute_t<O>> {
    using A = compute_t<O>;
    static __device__ __forceinline__ A identity() { return A(0); }
    static __device__ __forceinline__ void absorb(A& s, I x, long long, const reduce_call& call) {
        const compute_t<I> v = convert<compute_t<I>>(x);
        if constexpr (kPower == 1) {
            s += convert<A>(abs(v));
        } else if constexpr (kPower == 2) {
            if constexpr (is_complex<compute_t<I>>) s += convert<A>(v.re) * convert<A>(v.re) + convert<A>(v.im) * convert<A>(v.im);
            else s += convert<A>(v) * convert<A>(v);
        } else {
            s += pow(convert<A>(abs(v)), static_cast<A>(call.p));
        }
    }
    static __device__ __forceinline__ void merge(A& s, A o) { s += o; }
    static __device__ __forceinline__ void finish(A s, long long n, const reduce_call& call, O* out, O*) {
        *out = convert<O>(kPower ? scaled(s, n, call) : static_cast<A>(pow(s, static_cast<A>(1 / call.p))));
    }
};
template <class I, class O>
using ReduceAbsSum = ReduceNorm<I, O, 1>;
template <class I, class O>
using ReduceSqSum = ReduceNorm<I, O, 2>;
template <class I, class O>
using ReduceNormP = ReduceNorm<I, O, 0>;

// Mean and sum of squared differences (Welford 1962), merged by Chan, Golub and LeVeque 1983.
template <class A>
struct Moments {
    A mean, m2, count;
    __device__ __forceinline__ void add(A x) {
        const A difference = x - mean;
        count += A(1);
        mean += difference / count;
        m2 += difference * (x - mean);
    }
    __device__ __forceinline__ void merge(const Moments& o) {
        if (o.count == A(0)) return;
        if (count == A(0)) {
            *this = o;
            return;
        }
        const A total = count + o.count, difference = o.mean - mean, share = o.count / total;
        mean += difference * share;
        m2 += o.m2 + difference * difference * count * share;
        count = total;
    }
};
template <class I, class O>
struct ReduceVar : ReduceTypes<I, O, Moments<compute_t<I>>> {
    using A = compute_t<I>;
    using State = Moments<A>;
    static __device__ __forceinline__ State identity() { return State{A(0), A(0), A(0)}; }
    static __device__ __forceinline__ void absorb(State& s, I x, long long, const reduce_call&) { s.add(convert<A>(x)); }
    static __device__ __forceinline__ void merge(State& s, const State& o) { s.merge(o); }
    static __device__ __forceinline__ void finish(const State& s, long long n, const reduce_call& call, O* out, O* mean) {
        const double divisor = static_cast<double>(n) - call.correction;
        A var = n == 0 ? static_cast<A>(NAN) : s.m2 / static_cast<A>(divisor > 0 ? divisor : 0);
        if (call.flags & REDUCE_SQRT) var = sqrt(var);
        *out = convert<O>(var);
        if (mean) *mean = convert<O>(n == 0 ? static_cast<A>(NAN) : s.mean);
    }
};

// The largest element and the sum of exp(x - largest), online (Milakov and Gimelshein 2018). An infinite largest element is not
// subtracted: inf - inf would be NaN.
template <class A>
struct ExpSum {
    A top, sum;
    static __device__ __forceinline__ A shift(A top) { return isinf(top) ? A(0) : top; }
    __device__ __forceinline__ void add(A x) {
        if (x <= top) {
            sum += exp(x - shift(top));
        } else {  // also where x is NaN
            sum = (sum == A(0) ? A(0) : sum * exp(shift(top) - shift(x))) + exp(x - shift(x));
            top = x;
        }
    }
    __device__ __forceinline__ void merge(const ExpSum& o) {
        const A high = o.top > top || o.top != o.top ? o.top : top;
        const A mine = sum == A(0) ? A(0) : sum * exp(shift(top) - shift(high));
        sum = mine + (o.sum == A(0) ? A(0) : o.sum * exp(shift(o.top) - shift(high)));
        top = high;
    }
};
template <class I, class O>
struct ReduceLogsumexp : ReduceTypes<I, O, ExpSum<compute_t<I>>> {
    using A = compute_t<I>;
    using State = ExpSum<A>;
    static __device__ __forceinline__ State identity() { return State{-static_cast<A>(INFINITY), A(0)}; }
    static __device__ __forceinline__ void absorb(State& s, I x, long long, const reduce_call&) { s.add(convert<A>(x)); }
    static __device__ __forceinline__ void merge(State& s, const State& o) { s.merge(o); }
    static __device__ __forceinline__ void finish(const State& s, long long, const reduce_call&, O* out, O*) {
        *out = convert<O>(isinf(s.top) ? s.top : log(s.sum) + s.top);
    }
};

}  // namespace trt
