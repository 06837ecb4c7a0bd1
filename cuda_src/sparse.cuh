// Sparse matrices in compressed rows: products with dense ones, chosen elements of dense products, extremes of rows.
//
//   sparse_rows_vector   a group of lanes walks a row's entries and merges its sums by a tree (Bell and Garland 2009): products by a vector
//   sparse_rows_columns  a group of lanes walks the columns of dense, each lane sums the entries in their order
//   sparse_sampled       a group of lanes walks the two lines whose product an entry is; its row is searched, so that long rows cost no balance
//   sparse_extremes      as sparse_rows_columns
//   sparse_hash, sparse_fill   the product of two sparse matrices: below
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

// ---- products of two sparse matrices ------------------------------------------------------------------------------
//
// sparse_hash counts: a warp puts the columns of one row of the product into that row's hash table, of which the host makes the sorted columns.
// sparse_fill adds: a warp goes through the left row's entries one after the other, its lanes through the right row, each looking its column up. An element
// is therefore summed in the order of the left row's entries; entries of one right row that have one column take turns.

__device__ __forceinline__ SparseRow product_row(const long long* crow, long long row, long long rows, long long count, Fault* fault, int code) {
    if (row < 0 || row >= rows) {
        note(fault, code, row, rows);
        return {0, 0};
    }
    const long long begin = crow[row], end = crow[row + 1];
    if (begin >= 0 && begin <= end && end <= count) return {begin, end};
    note(fault, code, begin < 0 || begin > count ? begin : end, count);
    return {0, 0};
}

__device__ __forceinline__ void sparse_hash(const sparse_product_call& a, long long* table, const long long* starts, long long* counts, Fault* fault, int code) {
    for (long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; row < a.rows; row += static_cast<long long>(gridDim.x) * blockDim.y) {
        long long* const slots = table + starts[row];
        const unsigned long long size = static_cast<unsigned long long>(starts[row + 1] - starts[row]);
        const SparseRow left = product_row(reinterpret_cast<const long long*>(a.left_crow), row, a.rows, a.left_count, fault, code);
        int fresh = 0;
        for (long long k = left.begin; k < left.end; k++) {
            const SparseRow right = product_row(reinterpret_cast<const long long*>(a.right_crow), a.left_col[k], a.right_rows, a.right_count, fault, code);
            for (long long m = right.begin + threadIdx.x; m < right.end; m += blockDim.x) {
                const long long column = a.right_col[m];
                if (column < 0 || column >= a.columns) {
                    note(fault, code, column, a.columns);
                    continue;
                }
                // Fibonacci hashing (Knuth 6.4), then the next places
                unsigned long long at = (static_cast<unsigned long long>(column) * 11400714819323198485ull) % size;
                for (unsigned long long tried = 0; tried < size; tried++) {
                    const long long before = static_cast<long long>(
                        atomicCAS(reinterpret_cast<unsigned long long*>(slots + at), static_cast<unsigned long long>(-1ll), static_cast<unsigned long long>(column)));
                    if (before == -1) fresh++;
                    if (before == -1 || before == column) break;
                    at = at + 1 == size ? 0 : at + 1;
                }
            }
        }
        for (int delta = 16; delta > 0; delta /= 2) fresh += __shfl_xor_sync(0xffffffffu, fresh, delta);
        if (threadIdx.x == 0) counts[row] = fresh;
    }
}

// sums: of the product's entries, zeros at first, in the type that T is computed in.
template <class T>
__device__ __forceinline__ void sparse_fill(const sparse_product_call& a, void* sums_, Fault* fault, int code) {
    using A = compute_t<T>;
    A* const sums = static_cast<A*>(sums_);
    for (long long row = static_cast<long long>(blockIdx.x) * blockDim.y + threadIdx.y; row < a.rows; row += static_cast<long long>(gridDim.x) * blockDim.y) {
        const SparseRow left = product_row(reinterpret_cast<const long long*>(a.left_crow), row, a.rows, a.left_count, fault, code);
        const long long first = a.crow[row], last = a.crow[row + 1];
        for (long long k = left.begin; k < left.end; k++) {
            const SparseRow right = product_row(reinterpret_cast<const long long*>(a.right_crow), a.left_col[k], a.right_rows, a.right_count, fault, code);
            const A value = convert<A>(reinterpret_cast<const T*>(a.left_values)[k]);
            for (long long begin = right.begin; begin < right.end; begin += 32) {
                const long long m = begin + threadIdx.x;
                long long at = -1 - static_cast<long long>(threadIdx.x);  // no other lane's
                A product = A(0);
                if (m < right.end) {
                    const long long column = a.right_col[m];
                    long long low = first, high = last;
                    while (low < high) {
                        const long long middle = low + (high - low) / 2;
                        if (a.col[middle] < column) low = middle + 1;
                        else high = middle;
                    }
                    if (low < last && a.col[low] == column) {
                        at = low;
                        product = value * convert<A>(reinterpret_cast<const T*>(a.right_values)[m]);
                    }
                }
                const unsigned equal = __match_any_sync(0xffffffffu, at);
                if (__all_sync(0xffffffffu, (equal & (equal - 1)) == 0)) {
                    if (at >= 0) sums[at] = sums[at] + product;
                } else {
                    for (int lane = 0; lane < 32; lane++) {
                        if (static_cast<int>(threadIdx.x) == lane && at >= 0) sums[at] = sums[at] + product;
                        __syncwarp();
                    }
                }
                __syncwarp();
            }
        }
    }
}

}  // namespace trt
