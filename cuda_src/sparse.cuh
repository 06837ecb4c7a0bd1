// Sparse matrices in compressed rows: products with dense ones, chosen elements of dense products, extremes of rows.
//
//   sparse_rows_vector   a group of lanes walks a row's entries and merges its sums by a tree (Bell and Garland 2009): products by a vector
//   sparse_rows_columns  a group of lanes walks the columns of dense, each lane sums the entries in their order
//   sparse_sampled       a group of lanes walks the two lines whose product an entry is; its row is searched, so that long rows cost no balance
//   sparse_extremes      as sparse_rows_columns
//
// A group is threadIdx.x, as wide as the host chooses (cysrc/cuda/sparse.pyx): a power of two up to a warp. Every sum has an order of its own that
// depends on the shape alone. Places are checked where they are used: what is wrong is noted in Fault, and counts as absent.
#pragma once

#include "fault.cuh"
#include "reduce.cuh"
#include "sparse_steps.h"

namespace trt {

constexpr int kSparseColumns = 4;  // of dense, that a lane sums at once

struct SparseRow {
    long long begin, end;
};

__device__ __forceinline__ SparseRow sparse_row(const sparse_call& a, long long row, Fault* fault, int code) {
    const long long begin = a.crow[row], end = a.crow[row + 1];
    if (begin >= 0 && begin <= end && end <= a.count && (row || !begin) && (row + 1 < a.rows || end == a.count)) return {begin, end};
    note(fault, code, begin < 0 || begin > a.count ? begin : end, a.count);
    return {0, 0};
}

// The row of dense that an entry names, -1 where there is none.
__device__ __forceinline__ long long sparse_place(const sparse_call& a, long long k, Fault* fault, int code) {
    const long long at = a.col[k];
    if (at >= 0 && at < a.columns) return at;
    note(fault, code, at, a.columns);
    return -1;
}

template <class T, class A>
__device__ __forceinline__ A sparse_value(const sparse_call& a, long long k) {
    return a.values ? convert<A>(reinterpret_cast<const T*>(a.values)[k]) : A(1);
}

// The sum over the lanes of a group, in its first one. All threads of the warp take part.
template <class A>
__device__ __forceinline__ A sum_of_group(A sum) {
    for (int delta = blockDim.x / 2; delta > 0; delta /= 2) sum = sum + shuffle_down(sum, delta, blockDim.x);
    return sum;
}

template <class T>
__device__ __forceinline__ void sparse_rows_vector(const sparse_call& a, Fault* fault, int code) {
    using A = compute_t<T>;
    const T* const dense = reinterpret_cast<const T*>(a.dense);
    for (long long j = blockIdx.y; j < a.n; j += gridDim.y) {
        for (long long first = static_cast<long long>(blockIdx.x) * blockDim.y; first < a.rows; first += static_cast<long long>(gridDim.x) * blockDim.y) {
            const long long row = first + threadIdx.y;
            A sum = A(0);
            if (row < a.rows) {
                const SparseRow r = sparse_row(a, row, fault, code);
                for (long long k = r.begin + threadIdx.x; k < r.end; k += blockDim.x) {
                    const long long at = sparse_place(a, k, fault, code);
                    if (at >= 0) sum = sum + sparse_value<T, A>(a, k) * convert<A>(dense[at * a.n + j]);
                }
            }
            sum = sum_of_group(sum);
            if (row < a.rows && threadIdx.x == 0) reinterpret_cast<T*>(a.out)[row * a.n + j] = convert<T>(sum);
        }
    }
}

template <class T>
__device__ __forceinline__ void sparse_rows_columns(const sparse_call& a, Fault* fault, int code) {
    using A = compute_t<T>;
    const long long tile = static_cast<long long>(blockDim.x) * kSparseColumns;
    for (long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; row < a.rows; row += static_cast<long long>(gridDim.x) * blockDim.y) {
        const SparseRow r = sparse_row(a, row, fault, code);
        for (long long first = blockIdx.y * tile + threadIdx.x; first < a.n; first += gridDim.y * tile) {
            A sum[kSparseColumns] = {};
            for (long long k = r.begin; k < r.end; k++) {
                const long long at = sparse_place(a, k, fault, code);
                if (at < 0) continue;
                const A value = sparse_value<T, A>(a, k);
                const T* const line = reinterpret_cast<const T*>(a.dense) + at * a.n;
#pragma unroll
                for (int i = 0; i < kSparseColumns; i++) {
                    const long long j = first + i * static_cast<long long>(blockDim.x);
                    if (j < a.n) sum[i] = sum[i] + value * convert<A>(line[j]);
                }
            }
            T* const out = reinterpret_cast<T*>(a.out) + row * a.n;
#pragma unroll
            for (int i = 0; i < kSparseColumns; i++) {
                const long long j = first + i * static_cast<long long>(blockDim.x);
                if (j < a.n) out[j] = convert<T>(sum[i]);
            }
        }
    }
}

template <class T>
__device__ __forceinline__ void sparse_sampled(const sparse_call& a, Fault* fault, int code) {
    using A = compute_t<T>;
    for (long long first = static_cast<long long>(blockIdx.x) * blockDim.y; first < a.count; first += static_cast<long long>(gridDim.x) * blockDim.y) {
        const long long k = first + threadIdx.y;
        A sum = A(0);
        if (k < a.count) {
            long long row = 0, high = a.rows;  // the last row that begins at k or before
            while (high - row > 1) {
                const long long middle = row + (high - row) / 2;
                if (a.crow[middle] <= k) row = middle;
                else high = middle;
            }
            const SparseRow r = sparse_row(a, row, fault, code);
            const long long at = sparse_place(a, k, fault, code);
            if (at >= 0 && k >= r.begin && k < r.end) {
                const T *const left = reinterpret_cast<const T*>(a.values) + row * a.n, *const right = reinterpret_cast<const T*>(a.dense) + at * a.n;
                for (long long j = threadIdx.x; j < a.n; j += blockDim.x) sum = sum + convert<A>(left[j]) * convert<A>(right[j]);
            }
        }
        sum = sum_of_group(sum);
        if (k < a.count && threadIdx.x == 0) reinterpret_cast<T*>(a.out)[k] = convert<T>(sum);
    }
}

// NaN wins, and stays, as in the CPU's loop.
template <class T>
__device__ __forceinline__ void sparse_extremes(const sparse_call& a, Fault* fault, int code) {
    using A = compute_t<T>;
    const bool largest = a.operation == SPARSE_LARGEST;
    for (long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; row < a.rows; row += static_cast<long long>(gridDim.x) * blockDim.y) {
        const SparseRow r = sparse_row(a, row, fault, code);
        for (long long j = static_cast<long long>(blockIdx.y) * blockDim.x + threadIdx.x; j < a.n; j += static_cast<long long>(gridDim.y) * blockDim.x) {
            A best = A(0);
            long long which = -1;
            for (long long k = r.begin; k < r.end; k++) {
                const long long at = sparse_place(a, k, fault, code);
                if (at < 0) continue;
                const A x = sparse_value<T, A>(a, k) * convert<A>(reinterpret_cast<const T*>(a.dense)[at * a.n + j]);
                if (which < 0 || x != x || (largest ? x > best : x < best)) best = x, which = k;
            }
            reinterpret_cast<T*>(a.out)[row * a.n + j] = convert<T>(best);
            a.which[row * a.n + j] = which;
        }
    }
}

}  // namespace trt
