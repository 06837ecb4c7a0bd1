// Gathers and scatters by indices. Indices become byte offsets into the table first (`offsets_along`, `line_offsets`), -1 where one is
// out of range: its element is skipped (0 when it is read) and the first such index is noted in `Fault`, which the host reads when it
// next waits for the device.
//
// Scatters are deterministic. Where values replace, the last of equal positions wins (`claim`, then `put_claimed`). Where they are
// combined, the positions are sorted stably and every run of equal ones is combined in its order by one thread per element: runs that
// cross multiples of kRun positions in pieces (`combine_pieces`), which `combine_runs` puts together.
#pragma once

#include "fault.cuh"
#include "radix.cuh"

namespace trt {

constexpr int kRowDims = 12;
constexpr int kRun = 256;

// Mirrored by cysrc/cuda/indexing.pyx, as are the structures below. Sizes and strides are in bytes unless said otherwise.
struct Rows {
    char* table;
    char* dense;
    const long long* offset;      // of each row in the table
    const long long* source;      // of each row in `dense`; null: row * dense_step
    long long m, dense_step, unit;
    long long outers, inner;      // products of the sizes below
    int n_outer, n_inner;
    long long outer_size[kRowDims], outer_table[kRowDims], outer_dense[kRowDims];
    long long inner_size[kRowDims], inner_table[kRowDims], inner_dense[kRowDims];  // fastest last
};

struct Lines {
    char* table;
    char* dense;
    const long long* index;
    long long numel, limit, wrap, index_step, table_step;  // `table_step` times the index, in the table
    int nd, dimension;                                     // of `size`, the one that the index runs along
    long long size[kRowDims + 1], table_stride[kRowDims + 1], dense_stride[kRowDims + 1], index_stride[kRowDims + 1];
};

#define TRT_EACH(i, n)                                                                                                \
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, step_ = static_cast<long long>(gridDim.x) * blockDim.x; \
         i < (n); i += step_)

__device__ __forceinline__ long long checked(long long index, long long limit, long long wrap, Fault* fault, int code) {
    const long long i = index < 0 ? index + wrap : index;
    if (i >= 0 && i < limit) return i;
    note(fault, code, index, limit);
    return -1;
}

__device__ __forceinline__ void offsets_along(long long* offset, const long long* index, long long n, long long size, long long wrap, long long stride,
                                              bool add, long long skipped, Fault* fault, int code) {
    TRT_EACH(i, n) {
        const long long at = index[i] == skipped ? -1 : checked(index[i], size, wrap, fault, code);
        if (!add) offset[i] = at < 0 ? -1 : at * stride;
        else if (at < 0) offset[i] = -1;
        else if (offset[i] >= 0) offset[i] += at * stride;
    }
}

// Offsets of element e of a row: first over the inner dimensions, then the outer ones.
__device__ __forceinline__ void inside_row(const Rows& r, long long e, long long& table, long long& dense) {
    table = dense = 0;
    for (int d = r.n_inner - 1; d >= 0; d--) {
        const long long c = e % r.inner_size[d];
        e /= r.inner_size[d];
        table += c * r.inner_table[d];
        dense += c * r.inner_dense[d];
    }
    for (int d = r.n_outer - 1; d >= 0; d--) {
        const long long c = e % r.outer_size[d];
        e /= r.outer_size[d];
        table += c * r.outer_table[d];
        dense += c * r.outer_dense[d];
    }
}

// Elements in the order outer, row, inner: as they lie in a contiguous `dense`. T: a type of the elements' size.
template <class T, class F>
__device__ __forceinline__ void each_of_rows(const Rows& r, const F& f) {
    TRT_EACH(i, r.outers * r.m * r.inner) {
        const long long e = i % r.inner, row = i / r.inner % r.m, outer = i / r.inner / r.m;
        long long table, dense;
        inside_row(r, outer * r.inner + e, table, dense);
        dense += r.source ? r.source[row] : row * r.dense_step;
        f(row, r.offset[row], r.table + table, reinterpret_cast<T*>(r.dense + dense));
    }
}

template <class T>
__device__ __forceinline__ void gather_rows(const Rows& r) {
    each_of_rows<T>(r, [](long long, long long offset, char* table, T* dense) {
        if (offset >= 0) *dense = *reinterpret_cast<const T*>(table + offset);
        else *dense = T();
    });
}

__device__ __forceinline__ void claim(int* owner, const long long* offset, long long m, long long unit) {
    TRT_EACH(i, m) {
        if (offset[i] >= 0) atomicMax(owner + offset[i] / unit, static_cast<int>(i));
    }
}

template <class T>
__device__ __forceinline__ void put_claimed(const Rows& r, const int* owner) {
    each_of_rows<T>(r, [&](long long row, long long offset, char* table, T* dense) {
        if (offset >= 0 && owner[offset / r.unit] == row) *reinterpret_cast<T*>(table + offset) = *dense;
    });
}

__device__ __forceinline__ void sort_keys(unsigned* key, const long long* offset, long long m, long long unit, unsigned beyond) {
    TRT_EACH(i, m) key[i] = offset[i] < 0 ? beyond : static_cast<unsigned>(offset[i] / unit);
}

enum { kAdd = 1, kMultiply, kLeast, kGreatest };  // PUT_* of loops/indexing.h

// What sums and products are kept in: integers wrap around.
template <class T> struct Kept { using type = compute_t<T>; };
template <> struct Kept<signed char> { using type = unsigned; };
template <> struct Kept<short> { using type = unsigned; };
template <> struct Kept<int> { using type = unsigned; };
template <> struct Kept<long long> { using type = unsigned long long; };

template <bool kFirst, class A, class B> struct Either { using type = A; };
template <class A, class B> struct Either<false, A, B> { using type = B; };
template <class T> constexpr bool is_bool = false;
template <> constexpr bool is_bool<bool> = true;

template <class T, int kOp>
using kept_t = typename Either<(kOp <= kMultiply), typename Kept<T>::type, compute_t<T>>::type;

template <int kOp, bool kBool, class A>
__device__ __forceinline__ A combined(A a, A b) {
    if constexpr (kOp == kAdd && kBool) return a || b;
    else if constexpr (kOp == kMultiply && kBool) return a && b;
    else if constexpr (kOp == kAdd) return a + b;
    else if constexpr (kOp == kMultiply) return a * b;
    else if constexpr (kOp == kLeast) return b < a || b != b ? b : a;
    else return a < b || b != b ? b : a;
}

// Of sorted positions [begin, end) with one key, combined into `sum`.
template <class T, int kOp, class A>
__device__ __forceinline__ A combine(A sum, const Rows& r, const int* position, long long begin, long long end, const char* dense) {
    for (long long j = begin; j < end; j++) {
        const long long row = position[j];
        const T value = *reinterpret_cast<const T*>(dense + (r.source ? r.source[row] : row * r.dense_step));
        sum = combined<kOp, is_bool<T>>(sum, convert<A>(value));
    }
    return sum;
}

__device__ __forceinline__ long long end_of_run(const unsigned* key, long long j, long long m, unsigned own) {
    const long long limit = (j / kRun + 1) * kRun < m ? (j / kRun + 1) * kRun : m;
    for (j++; j < limit && key[j] == own; j++) {}
    return j;
}

// pieces[c][e]: of the run that goes on at position c * kRun, as far as it reaches before the next multiple.
template <class T, int kOp>
__device__ __forceinline__ void combine_pieces(const Rows& r, const unsigned* key, const int* position, unsigned beyond, kept_t<T, kOp>* pieces) {
    using A = kept_t<T, kOp>;
    const long long width = r.outers * r.inner;
    TRT_EACH(i, (r.m - 1) / kRun * width) {
        const long long piece = i / width + 1, e = i % width, j = piece * kRun;
        const unsigned own = key[j];
        if (own == beyond || key[j - 1] != own) continue;
        long long table, dense;
        inside_row(r, e, table, dense);
        const A first = convert<A>(*reinterpret_cast<const T*>(r.dense + dense + (r.source ? r.source[position[j]] : position[j] * r.dense_step)));
        pieces[i] = combine<T, kOp>(first, r, position, j + 1, end_of_run(key, j, r.m, own), r.dense + dense);
    }
}

template <class T, int kOp>
__device__ __forceinline__ void combine_runs(const Rows& r, const unsigned* key, const int* position, unsigned beyond, const kept_t<T, kOp>* pieces) {
    using A = kept_t<T, kOp>;
    const long long width = r.outers * r.inner;
    TRT_EACH(i, r.m * width) {
        const long long j = i / width, e = i % width;
        const unsigned own = key[j];
        if (own == beyond || (j && key[j - 1] == own)) continue;
        long long table, dense;
        inside_row(r, e, table, dense);
        T* const to = reinterpret_cast<T*>(r.table + table + r.offset[position[j]]);
        A sum = combine<T, kOp>(convert<A>(*to), r, position, j, end_of_run(key, j, r.m, own), r.dense + dense);
        for (long long c = j / kRun + 1; c * kRun < r.m && key[c * kRun] == own && key[c * kRun - 1] == own; c++) sum = combined<kOp, is_bool<T>>(sum, pieces[(c - 1) * width + e]);
        *to = convert<T>(sum);
    }
}

// ---- lines: an index per element ---------------------------------------------------------------------------------------

// f(number of the element, its offset in the table or -1, its place in `dense`) for each element of the index, fastest dimension last.
template <class F>
__device__ __forceinline__ void each_of_lines(const Lines& a, Fault* fault, int code, const F& f) {
    TRT_EACH(i, a.numel) {
        long long rest = i, table = 0, dense = 0, at = 0;
        for (int d = a.nd - 1; d >= 0; d--) {
            const long long c = rest % a.size[d];
            rest /= a.size[d];
            table += c * a.table_stride[d];
            dense += c * a.dense_stride[d];
            at += c * a.index_stride[d];
        }
        const long long index = checked(a.index[at], a.limit, a.wrap, fault, code);
        f(i, index < 0 ? -1 : table + index * a.table_step, dense);
    }
}

template <class T>
__device__ __forceinline__ void gather_lines(const Lines& a, Fault* fault, int code) {
    each_of_lines(a, fault, code, [&](long long, long long table, long long dense) {
        if (table >= 0) *reinterpret_cast<T*>(a.dense + dense) = *reinterpret_cast<const T*>(a.table + table);
        else *reinterpret_cast<T*>(a.dense + dense) = T();
    });
}

__device__ __forceinline__ void line_offsets(const Lines& a, long long* offset, long long* source, Fault* fault, int code) {
    each_of_lines(a, fault, code, [&](long long i, long long table, long long dense) {
        offset[i] = table;
        source[i] = dense;
    });
}

// ---- positions of non-zeros --------------------------------------------------------------------------------------------

constexpr int kFlagsTile = 2048;  // elements of a block of 256 threads

template <class T>
__device__ __forceinline__ void nonzero_count(const T* x, long long n, long long* counts) {
    const long long begin = static_cast<long long>(blockIdx.x) * kFlagsTile;
    int found = 0;
    for (int i = threadIdx.x; i < kFlagsTile && begin + i < n; i += blockDim.x) found += convert<bool>(x[begin + i]);
    unsigned long long total;
    block_exclusive(found, total);
    if (threadIdx.x == 0) counts[blockIdx.x] = total;
}

// counts: where each block's positions begin, by scan_rows.
template <class T>
__device__ __forceinline__ void nonzero_write(const T* x, long long n, const long long* counts, long long* position) {
    const long long begin = static_cast<long long>(blockIdx.x) * kFlagsTile;
    long long at = counts[blockIdx.x];
    for (int start = 0; start < kFlagsTile; start += blockDim.x) {
        const long long i = begin + start + threadIdx.x;
        const bool found = i < n && convert<bool>(x[i]);
        unsigned long long total;
        const unsigned long long before = block_exclusive(found, total);
        if (found) position[at + before] = i;
        at += total;
    }
}

struct Shape {
    int ndim;
    long long size[64];
};

// Coordinate d of position i to out[i * step + d * dim_step].
__device__ __forceinline__ void unravel(const long long* position, long long n, const Shape& shape, long long* out, long long step, long long dim_step) {
    TRT_EACH(i, n) {
        long long rest = position[i];
        for (int d = shape.ndim - 1; d >= 0; d--) {
            out[i * step + d * dim_step] = rest % shape.size[d];
            rest /= shape.size[d];
        }
    }
}

// ---- searching, triangles, sequences -----------------------------------------------------------------------------------

// Where values belong in sorted rows of n boundaries; row_step 0: one row for all. NaN is larger than all numbers.
template <class T, class Out>
__device__ __forceinline__ void search_sorted(const T* sorted, const T* values, const long long* sorter, Out* out, long long total, long long count,
                                              long long n, long long row_step, bool right) {
    using A = compute_t<T>;
    TRT_EACH(i, total) {
        const T* const row = sorted + i / count * row_step;
        const long long* const order = sorter ? sorter + i / count * row_step : nullptr;
        const A value = convert<A>(values[i]);
        long long low = 0, high = n;
        while (low < high) {
            const long long middle = low + (high - low) / 2;
            // a sorter is not checked: what it names beyond the row is read at the row's ends
            const long long place = !order ? middle : order[middle] < 0 ? 0 : order[middle] >= n ? n - 1 : order[middle];
            const A at = convert<A>(row[place]);
            // whether the boundary comes before the value's place
            const bool before = right ? !(value < at || (at != at && value == value)) : at < value || (value != value && at == at);
            if (before) low = middle + 1;
            else high = middle;
        }
        out[i] = static_cast<Out>(low);
    }
}

template <class T>
__device__ __forceinline__ void triangle(const T* x, T* out, long long numel, long long rows, long long cols, long long diagonal, bool upper) {
    TRT_EACH(i, numel) {
        const long long col = i % cols, row = i / cols % rows;
        out[i] = (upper ? col - row >= diagonal : col - row <= diagonal) ? x[i] : T();
    }
}

// A result whose every dimension consists of up to three pieces of its source's: step 1, -1, 0 (one element repeated) or 2 (the constant).
struct Pieces {
    char* to;
    const char* origin;
    long long numel, nd;
    struct { long long size, result, source, count[3], at[3], step[3]; } dim[kRowDims];  // fastest last; strides in bytes
    long long constant[2];
};

template <class T>
__device__ __forceinline__ void copy_pieces(const Pieces& p) {
    TRT_EACH(i, p.numel) {
        long long rest = i, from = 0, to = 0;
        bool constant = false;
        for (int d = static_cast<int>(p.nd) - 1; d >= 0; d--) {
            long long c = rest % p.dim[d].size;
            rest /= p.dim[d].size;
            to += c * p.dim[d].result;
            int k = 0;
            while (c >= p.dim[d].count[k]) c -= p.dim[d].count[k++];
            if (p.dim[d].step[k] == 2) constant = true;
            else from += (p.dim[d].at[k] + c * p.dim[d].step[k]) * p.dim[d].source;
        }
        T value;  // the parameters of a kernel lie at multiples of 8 bytes, complex<double> at those of 16
        if (constant) memcpy(&value, p.constant, sizeof(T));
        else value = *reinterpret_cast<const T*>(p.origin + from);
        *reinterpret_cast<T*>(p.to + to) = value;
    }
}

// The adjoint: here `to` and the sizes are the source's, `origin` is the result, and every element sums the positions that it went to.
template <class T>
__device__ __forceinline__ void sum_pieces(const Pieces& p) {
    using A = compute_t<T>;
    TRT_EACH(i, p.numel) {
        long long rest = i, to = 0, total = 1, coordinate[kRowDims], count[kRowDims];
        for (int d = static_cast<int>(p.nd) - 1; d >= 0; d--) {
            const auto& dim = p.dim[d];
            const long long c = rest % dim.size;
            rest /= dim.size;
            to += c * dim.source;
            coordinate[d] = c;
            count[d] = 0;
            for (int k = 0; k < 3; k++) {
                const long long at = dim.step[k] == -1 ? dim.at[k] - c : c - dim.at[k];
                if (dim.step[k] == 0) count[d] += at == 0 ? dim.count[k] : 0;
                else if (dim.step[k] != 2) count[d] += at >= 0 && at < dim.count[k];
            }
            total *= count[d];
        }
        A sum = A(0);
        for (long long j = 0; j < total; j++) {
            long long from = 0, left = j;
            for (int d = static_cast<int>(p.nd) - 1; d >= 0; d--) {
                const auto& dim = p.dim[d];
                long long nth = left % count[d], start = 0;
                left /= count[d];
                for (int k = 0; k < 3; start += dim.count[k++]) {
                    const long long at = dim.step[k] == -1 ? dim.at[k] - coordinate[d] : coordinate[d] - dim.at[k];
                    const bool repeated = dim.step[k] == 0 && at == 0, once = (dim.step[k] == 1 || dim.step[k] == -1) && at >= 0 && at < dim.count[k];
                    const long long here = repeated ? dim.count[k] : once;
                    if (nth < here) {
                        from += (start + (repeated ? nth : at)) * dim.result;
                        break;
                    }
                    nth -= here;
                }
            }
            sum = sum + convert<A>(*reinterpret_cast<const T*>(p.origin + from));
        }
        *reinterpret_cast<T*>(p.to + to) = convert<T>(sum);
    }
}

// start + i * step; with `both_ends` the second half from the stop backwards, so that the last number is exact.
template <class A>
__device__ __forceinline__ A along(long long i, long long n, A start, A stop, A step, bool both_ends) {
    return both_ends && i >= n / 2 ? stop - step * A(n - 1 - i) : start + step * A(i);
}

template <class T, class A>
__device__ __forceinline__ void sequence(T* out, long long n, A start, A stop, A step, bool both_ends) {
    TRT_EACH(i, n) out[i] = convert<T>(along(i, n, start, stop, step, both_ends));
}

template <class T>
__device__ __forceinline__ void powers(T* out, long long n, double base, double start, double stop, double step) {
    TRT_EACH(i, n) out[i] = convert<T>(::pow(base, along(i, n, start, stop, step, n > 1)));
}

}  // namespace trt
