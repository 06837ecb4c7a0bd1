// Running sums, products and extremes along the middle dimension of a contiguous tensor (outer, n, inner).
//
//   scan_rows     inner == 1: a block walks its piece of a row tile by tile, a carry in hand
//   scan_columns  inner > 1: a thread walks its piece of a column, neighbours side by side
// Few rows or columns are cut into pieces: a first launch leaves each piece's total in `totals`, scan_totals turns these into what
// comes before each piece, and a second launch writes the results. The order of operations is that of the elements throughout.
#pragma once

#include "reduce.cuh"

namespace trt {

constexpr int kScanThreads = 256;
constexpr int kScanItems = 4;

// ---- operators: combine(earlier, later) --------------------------------------------------------------------------

template <class I, class O>
struct ScanSum {
    using In = I;
    using Out = O;
    using State = accumulator_t<O>;
    static __device__ __forceinline__ State identity() { return State(0); }
    static __device__ __forceinline__ State load(I x, long long) { return Widen<State>::from(x); }
    static __device__ __forceinline__ State combine(State a, State b) { return a + b; }
    static __device__ __forceinline__ void put(State s, O* out, long long*) { *out = convert<O>(s); }
};
template <class I, class O>
struct ScanProd : ScanSum<I, O> {
    using State = accumulator_t<O>;
    static __device__ __forceinline__ State identity() { return State(1); }
    static __device__ __forceinline__ State combine(State a, State b) { return a * b; }
};
// Equal values move the index on; NaN stays, and moves it on too.
template <class I, bool kLargest>
struct ScanExtreme {
    using In = I;
    using Out = I;
    using State = Extreme<compute_t<I>>;
    static __device__ __forceinline__ State identity() { return State{compute_t<I>(), -1}; }
    static __device__ __forceinline__ State load(I x, long long i) { return State{convert<compute_t<I>>(x), i}; }
    static __device__ __forceinline__ State combine(const State& a, const State& b) {
        if (a.index < 0 || b.index < 0) return b.index < 0 ? a : b;
        if (b.value != b.value) return b;
        if (a.value != a.value) return a;
        return (kLargest ? !(b.value < a.value) : !(a.value < b.value)) ? b : a;
    }
    static __device__ __forceinline__ void put(const State& s, I* out, long long* index) {
        *out = convert<I>(s.value);
        *index = s.index;
    }
};
template <class I, class O>
using ScanMax = ScanExtreme<I, true>;
template <class I, class O>
using ScanMin = ScanExtreme<I, false>;

// ---- kernels -----------------------------------------------------------------------------------------------------

template <class S>
__device__ __forceinline__ S shuffle_up(const S& state, int delta) {
    union Words {
        S state;
        unsigned word[sizeof(S) / 4];
        __device__ Words() {}
    } words;
    words.state = state;
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(S) / 4); i++) words.word[i] = __shfl_up_sync(0xffffffffu, words.word[i], delta);
    return words.state;
}

// What comes before this thread's state among the block's, and the whole block's total.
template <class Op>
__device__ __forceinline__ typename Op::State scan_block(typename Op::State state, typename Op::State* shared, typename Op::State& total) {
    using State = typename Op::State;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
    for (int delta = 1; delta < 32; delta *= 2) {
        const State before = shuffle_up(state, delta);
        if (lane >= delta) state = Op::combine(before, state);
    }
    State before = shuffle_up(state, 1);
    if (lane == 0) before = Op::identity();
    __syncthreads();
    if (lane == 31) shared[warp] = state;
    __syncthreads();
    State warps = Op::identity();
    total = Op::identity();
#pragma unroll
    for (int w = 0; w < kScanThreads / 32; w++) {
        if (w == warp) warps = total;
        total = Op::combine(total, shared[w]);
    }
    return Op::combine(warps, before);
}

template <class Op, bool kTotals>
__device__ __forceinline__ void scan_rows(const scan_layout& l, const typename Op::In* in, typename Op::Out* out, long long* index, typename Op::State* totals) {
    using State = typename Op::State;
    static_assert(sizeof(State) <= SCAN_STATE_BYTES, "a state must fit its slot among the totals");
    TRT_SHARED_STATES(State, shared, kScanThreads / 32);
    const int piece = blockIdx.y;
    const long long begin = piece * l.chunk, end = begin + l.chunk < l.n ? begin + l.chunk : l.n;
    for (long long line = blockIdx.x; line < l.lines; line += gridDim.x) {
        const typename Op::In* source = in + line * l.n;
        State carry = !kTotals && l.pieces > 1 ? totals[line * l.pieces + piece] : Op::identity();
        for (long long tile = begin; tile < end; tile += kScanThreads * kScanItems) {
            const long long first = tile + threadIdx.x * kScanItems;
            State item[kScanItems], total;
#pragma unroll
            for (int k = 0; k < kScanItems; k++) item[k] = first + k < end ? Op::load(source[first + k], first + k) : Op::identity();
#pragma unroll
            for (int k = 1; k < kScanItems; k++) item[k] = Op::combine(item[k - 1], item[k]);
            const State before = Op::combine(carry, scan_block<Op>(item[kScanItems - 1], shared, total));
            if constexpr (!kTotals) {
#pragma unroll
                for (int k = 0; k < kScanItems; k++) {
                    const long long at = line * l.n + first + k;
                    if (first + k < end) Op::put(Op::combine(before, item[k]), out + at, index + at);
                }
            }
            carry = Op::combine(carry, total);
        }
        if (kTotals && threadIdx.x == 0) totals[line * l.pieces + piece] = carry;
    }
}

template <class Op, bool kTotals>
__device__ __forceinline__ void scan_columns(const scan_layout& l, const typename Op::In* in, typename Op::Out* out, long long* index,
                                             typename Op::State* totals) {
    using State = typename Op::State;
    const int piece = blockIdx.y;
    const long long begin = piece * l.chunk, end = begin + l.chunk < l.n ? begin + l.chunk : l.n;
    for (long long line = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; line < l.lines; line += static_cast<long long>(gridDim.x) * blockDim.x) {
        const long long base = line / l.inner * l.n * l.inner + line % l.inner;
        State carry = !kTotals && l.pieces > 1 ? totals[line * l.pieces + piece] : Op::identity();
#pragma unroll 4
        for (long long i = begin; i < end; i++) {
            carry = Op::combine(carry, Op::load(in[base + i * l.inner], i));
            if constexpr (!kTotals) Op::put(carry, out + base + i * l.inner, index + base + i * l.inner);
        }
        if constexpr (kTotals) totals[line * l.pieces + piece] = carry;
    }
}

// Each line's totals become what comes before each piece.
template <class Op>
__device__ __forceinline__ void scan_totals(const scan_layout& l, typename Op::State* totals) {
    using State = typename Op::State;
    TRT_SHARED_STATES(State, shared, kScanThreads / 32);
    for (long long line = blockIdx.x; line < l.lines; line += gridDim.x) {
        State carry = Op::identity(), total;
        for (int first = 0; first < l.pieces; first += kScanThreads) {
            const int piece = first + threadIdx.x;
            const State mine = piece < l.pieces ? totals[line * l.pieces + piece] : Op::identity();
            const State before = scan_block<Op>(mine, shared, total);
            if (piece < l.pieces) totals[line * l.pieces + piece] = Op::combine(carry, before);
            carry = Op::combine(carry, total);
        }
    }
}

}  // namespace trt
