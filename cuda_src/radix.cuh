// Stable sorting of keys with values by their bits, and prefix sums of counts: what deterministic scatters, positions of non-zeros
// and sorts are made of. A pass over eight bits is three kernels:
//   radix_count    each block counts the digits of its tile: counts[digit][block]
//   scan_rows      prefix sums along each row of counts, and the rows' totals
//   radix_move     each block moves its tile: the digit's start + its start for the block + the rank within the tile
// The host is cysrc/cuda/radix.pyx.
#pragma once

#include "iteration.cuh"

namespace trt {

constexpr int kDigits = 256;
constexpr int kRadixWarps = 8;
constexpr int kRadixItems = 8;                                   // per thread
constexpr int kRadixTile = kRadixWarps * 32 * kRadixItems;       // of a block; the host's TILE

// The sum of all threads before this one, and of all; every thread of a block of at most 1024 calls it.
__device__ __forceinline__ unsigned long long block_exclusive(unsigned long long value, unsigned long long& total) {
    __shared__ unsigned long long sums[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    unsigned long long inclusive = value;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const unsigned long long other = __shfl_up_sync(~0u, inclusive, step);
        if (lane >= step) inclusive += other;
    }
    __syncthreads();
    if (lane == 31) sums[warp] = inclusive;
    __syncthreads();
    unsigned long long before = 0;
    total = 0;
    for (int w = 0; w < warps; w++) {
        if (w < warp) before += sums[w];
        total += sums[w];
    }
    return before + inclusive - value;
}

// Each block: one row of `length` counts becomes the sums of what stands before them. totals[row]: the sum of all.
template <class T>
__device__ __forceinline__ void scan_rows(T* counts, T* totals, long long length) {
    T* const row = counts + blockIdx.x * length;
    unsigned long long carry = 0;
    for (long long start = 0; start < length; start += blockDim.x) {
        const long long i = start + threadIdx.x;
        unsigned long long total;
        const unsigned long long before = block_exclusive(i < length ? static_cast<unsigned long long>(row[i]) : 0, total);
        if (i < length) row[i] = static_cast<T>(carry + before);
        carry += total;
    }
    if (threadIdx.x == 0) totals[blockIdx.x] = static_cast<T>(carry);
}

template <class Key>
__device__ __forceinline__ void radix_count(const Key* keys, unsigned* counts, long long n, int shift) {
    __shared__ unsigned found[kDigits];
    for (int d = threadIdx.x; d < kDigits; d += blockDim.x) found[d] = 0;
    __syncthreads();
    const long long begin = static_cast<long long>(blockIdx.x) * kRadixTile;
    for (int i = threadIdx.x; i < kRadixTile && begin + i < n; i += blockDim.x) atomicAdd(&found[keys[begin + i] >> shift & (kDigits - 1)], 1u);
    __syncthreads();
    for (int d = threadIdx.x; d < kDigits; d += blockDim.x) counts[static_cast<long long>(d) * gridDim.x + blockIdx.x] = found[d];
}

// Blocks of kRadixWarps warps. values: null in the first pass of an argsort, whose values are the positions.
template <class Key, class Value>
__device__ __forceinline__ void radix_move(const Key* keys, const Value* values, Key* keys_out, Value* values_out, const unsigned* counts,
                                           const unsigned* totals, long long n, int shift) {
    __shared__ unsigned before_warp[kRadixWarps][kDigits];
    __shared__ unsigned long long start[kDigits];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned long long all;
    const unsigned long long digit_start = block_exclusive(totals[threadIdx.x], all);  // kDigits threads
    start[threadIdx.x] = digit_start + counts[static_cast<long long>(threadIdx.x) * gridDim.x + blockIdx.x];
    for (int w = 0; w < kRadixWarps; w++) before_warp[w][threadIdx.x] = 0;
    __syncthreads();
    // a warp's items follow each other, so that ranks in order of the warps, rounds and lanes are ranks in order of the items
    const long long begin = static_cast<long long>(blockIdx.x) * kRadixTile + warp * 32 * kRadixItems + lane;
    Key held[kRadixItems];
    unsigned rank[kRadixItems];
#pragma unroll
    for (int i = 0; i < kRadixItems; i++) {
        const bool inside = begin + i * 32 < n;
        held[i] = inside ? keys[begin + i * 32] : Key(0);
        const unsigned digit = held[i] >> shift & (kDigits - 1);
        const unsigned equal = __match_any_sync(~0u, inside ? digit : static_cast<unsigned>(kDigits));
        const unsigned earlier = equal & ((1u << lane) - 1);
        const unsigned seen = inside ? before_warp[warp][digit] : 0;
        __syncwarp();
        if (inside && earlier == 0) before_warp[warp][digit] = seen + __popc(equal);
        __syncwarp();
        rank[i] = seen + __popc(earlier);
    }
    __syncthreads();
    unsigned sum = 0;
    for (int w = 0; w < kRadixWarps; w++) {
        const unsigned count = before_warp[w][threadIdx.x];
        before_warp[w][threadIdx.x] = sum;
        sum += count;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kRadixItems; i++) {
        const long long at = begin + i * 32;
        if (at >= n) break;
        const unsigned digit = held[i] >> shift & (kDigits - 1);
        const unsigned long long to = start[digit] + before_warp[warp][digit] + rank[i];
        keys_out[to] = held[i];
        values_out[to] = values ? values[at] : static_cast<Value>(at);
    }
}

}  // namespace trt
