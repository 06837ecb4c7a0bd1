// Factorisations of batches of matrices, as the host (cysrc/cuda/linalg.pyx) strings them together: kernels for what one block can
// hold (a small matrix, a panel of a large one, a triangle of 32 rows); between them the host multiplies with gemm.cuh. A block takes
// a matrix of the batch; a panel that fits is worked on in shared memory. Sums have a fixed order: the same bits in every run.
// The types are float, double and complex; matrices have any strides, LAPACK's conventions hold for what they contain.
#pragma once

#include "iteration.cuh"

namespace trt {

// A batch of matrices; strides count elements. Mirrored, as Task is, by cysrc/cuda/linalg.pyx.
struct Part {
    void* at;
    long long rows, cols, rs, cs, bs;
};

struct Task {
    Part a, b, c;
    void* values;            // numbers per matrix: tau, singular values, ...
    int* pivots;             // per matrix
    int* info;               // one per matrix
    int* counter;
    long long values_step, pivots_step, batch;
    double tolerance;
    int first;               // of the rows that pivots count, or a round of rotations
    int upper, unit, conjugated, adjoint, pivoting, staged, backwards;
};

template <class T>
struct Matrix {
    T* at;
    long long rs, cs;
    __device__ __forceinline__ T& operator()(long long row, long long col) const { return at[row * rs + col * cs]; }
};

template <class T>
__device__ __forceinline__ Matrix<T> item(const Part& part, long long batch) {
    return {static_cast<T*>(part.at) + batch * part.bs, part.rs, part.cs};
}

constexpr int kNotFinite = -1000;
constexpr int kWarp = 32;

// ---- numbers -----------------------------------------------------------------------------------------------------------

template <class T>
__device__ __forceinline__ T conjugate(T x) {
    if constexpr (is_complex<T>) return T(x.re, -x.im);
    else return x;
}
template <class T>
__device__ __forceinline__ T conjugate_if(bool yes, T x) { return yes ? conjugate(x) : x; }
template <class T>
__device__ __forceinline__ real_t<T> real_part(T x) {
    if constexpr (is_complex<T>) return x.re;
    else return x;
}
template <class T>
__device__ __forceinline__ real_t<T> imaginary_part(T x) {
    if constexpr (is_complex<T>) return x.im;
    else return T(0);
}
__device__ __forceinline__ float magnitude(float x) { return ::fabsf(x); }
__device__ __forceinline__ double magnitude(double x) { return ::fabs(x); }
template <class T>
__device__ __forceinline__ T magnitude(complex<T> x) { return abs(x); }
// What LAPACK compares where it looks for the largest.
template <class T>
__device__ __forceinline__ real_t<T> measure(T x) { return magnitude(real_part(x)) + magnitude(imaginary_part(x)); }
template <class T>
__device__ __forceinline__ real_t<T> square_of(T x) { return real_part(x) * real_part(x) + imaginary_part(x) * imaginary_part(x); }
__device__ __forceinline__ float root(float x) { return ::sqrtf(x); }
__device__ __forceinline__ double root(double x) { return ::sqrt(x); }
__device__ __forceinline__ float hypotenuse(float x, float y) { return ::hypotf(x, y); }
__device__ __forceinline__ double hypotenuse(double x, double y) { return ::hypot(x, y); }

template <class T>
__device__ __forceinline__ T lane_value(T x, int lane) {
    if constexpr (is_complex<T>) return T(__shfl_sync(~0u, x.re, lane), __shfl_sync(~0u, x.im, lane));
    else return __shfl_sync(~0u, x, lane);
}
template <class T>
__device__ __forceinline__ T lane_xor(T x, int mask) {
    if constexpr (is_complex<T>) return T(__shfl_xor_sync(~0u, x.re, mask), __shfl_xor_sync(~0u, x.im, mask));
    else return __shfl_xor_sync(~0u, x, mask);
}
template <class T>
__device__ __forceinline__ T warp_sum(T x) {
#pragma unroll
    for (int mask = kWarp / 2; mask; mask /= 2) x = x + lane_xor(x, mask);
    return x;
}

// Over all threads of the block, which all get the result. `slots`: 32 values in shared memory, free again after the call.
template <class T>
__device__ __forceinline__ T block_sum(T x, T* slots) {
    const int warps = blockDim.x / kWarp;
    x = warp_sum(x);
    if (warps == 1) {
        __syncwarp();  // as below: the caller may write what other threads have read
        return x;
    }
    if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = x;
    __syncthreads();
    x = slots[0];
    for (int i = 1; i < warps; i++) x = x + slots[i];
    __syncthreads();
    return x;
}

template <class T>
__device__ __forceinline__ T block_max(T x, T* slots) {
    const int warps = blockDim.x / kWarp;
    for (int mask = kWarp / 2; mask; mask /= 2) {
        const T other = lane_xor(x, mask);
        if (other > x) x = other;
    }
    if (warps == 1) {
        __syncwarp();  // as below: the caller may write what other threads have read
        return x;
    }
    if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = x;
    __syncthreads();
    x = slots[0];
    for (int i = 1; i < warps; i++) x = slots[i] > x ? slots[i] : x;
    __syncthreads();
    return x;
}

// The place of the largest value, of equal ones the first.
template <class T>
__device__ __forceinline__ int block_argmax(T value, int place, T* slots, int* places) {
    const int warps = blockDim.x / kWarp;
    for (int mask = kWarp / 2; mask; mask /= 2) {
        const T other = lane_xor(value, mask);
        const int there = lane_xor(place, mask);
        if (other > value || other == value && there < place) value = other, place = there;
    }
    if (warps == 1) {
        __syncwarp();
        return place;
    }
    if (threadIdx.x % kWarp == 0) slots[threadIdx.x / kWarp] = value, places[threadIdx.x / kWarp] = place;
    __syncthreads();
    value = slots[0], place = places[0];
    for (int i = 1; i < warps; i++) {
        if (slots[i] > value || slots[i] == value && places[i] < place) value = slots[i], place = places[i];
    }
    __syncthreads();
    return place;
}

// ---- copies ------------------------------------------------------------------------------------------------------------

enum { kAll, kLower, kUpper, kUnitLower, kHermitianLower, kHermitianUpper, kIdentity, kZero };

// Mirrored by the host. The source's batch dimensions have strides of their own.
struct Gather {
    Part to;
    const void* from;
    long long rs, cs, batch;
    int form, conjugated, batch_dims, unused;
    long long sizes[64], strides[64];
};

// Matrices to their place: whole, a triangle (zeros elsewhere; kUnitLower: ones on the diagonal), Hermitian from a triangle, or the
// identity or zeros without a source. Tiles go through shared memory, so that both sides are read and written along their lines.
template <class T>
__device__ __forceinline__ void gather(const Gather& p) {
    constexpr int kTile = 32;
    alignas(16) __shared__ unsigned char memory[kTile * (kTile + 1) * sizeof(T)];
    T* const tile = reinterpret_cast<T*>(memory);
    const int down = (p.to.rows + kTile - 1) / kTile, fast = threadIdx.x % kTile, slow = threadIdx.x / kTile;
    const long long row0 = blockIdx.x % down * static_cast<long long>(kTile), col0 = blockIdx.x / down * static_cast<long long>(kTile);
    const bool by_columns = p.rs <= p.cs, to_columns = p.to.rs <= p.to.cs;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        long long offset = 0, rest = b;
        for (int d = p.batch_dims - 1; d >= 0; d--) {
            offset += rest % p.sizes[d] * p.strides[d];
            rest /= p.sizes[d];
        }
        const T* const from = static_cast<const T*>(p.from) + offset;
        for (int step = slow; step < kTile; step += blockDim.x / kTile) {
            const int r = by_columns ? fast : step, c = by_columns ? step : fast;
            long long row = row0 + r, col = col0 + c;
            if (row >= p.to.rows || col >= p.to.cols) continue;
            T value(0);
            bool turned = p.conjugated;
            bool read = true;
            switch (p.form) {
            case kLower: read = row >= col; break;
            case kUpper: read = row <= col; break;
            case kUnitLower: read = row > col; break;
            case kHermitianLower:
            case kHermitianUpper:
                if (p.form == kHermitianLower ? row < col : row > col) {
                    const long long swap = row;
                    row = col, col = swap;
                    turned = !turned;
                }
                break;
            case kIdentity:
            case kZero: read = false; break;
            }
            if (read) value = conjugate_if(turned, from[row * p.rs + col * p.cs]);
            else if (row == col && (p.form == kUnitLower || p.form == kIdentity)) value = T(1);
            if (row == col && (p.form == kHermitianLower || p.form == kHermitianUpper)) value = T(real_part(value));
            tile[c * (kTile + 1) + r] = value;
        }
        __syncthreads();
        const Matrix<T> to = item<T>(p.to, b);
        for (int step = slow; step < kTile; step += blockDim.x / kTile) {
            const int r = to_columns ? fast : step, c = to_columns ? step : fast;
            if (row0 + r < p.to.rows && col0 + c < p.to.cols) to(row0 + r, col0 + c) = tile[c * (kTile + 1) + r];
        }
        __syncthreads();
    }
}

// The panel of a block, in shared memory where the host says that it fits.
template <class T>
__device__ __forceinline__ Matrix<T> staged_panel(const Task& p, const Matrix<T>& given, T* memory) {
    if (!p.staged) return given;
    const Matrix<T> panel = {memory, 1, p.a.rows};
    const int rows = p.a.rows, size = rows * static_cast<int>(p.a.cols);
    for (int i = threadIdx.x; i < size; i += blockDim.x) memory[i] = given(i % rows, i / rows);
    __syncthreads();
    return panel;
}

template <class T>
__device__ __forceinline__ void unstage_panel(const Task& p, const Matrix<T>& given, const T* memory) {
    __syncthreads();
    if (!p.staged) return;
    const int rows = p.a.rows, size = rows * static_cast<int>(p.a.cols);
    for (int i = threadIdx.x; i < size; i += blockDim.x) given(i % rows, i / rows) = memory[i];
    __syncthreads();
}

// The threads of a block as `down` along rows times `across` along columns.
struct Spread {
    int row, col, down, across;
    __device__ __forceinline__ explicit Spread(long long rows) {
        down = kWarp;
        while (down < rows && down < static_cast<int>(blockDim.x)) down *= 2;
        if (blockDim.x % down) down = kWarp;
        across = blockDim.x / down;
        row = threadIdx.x % down;
        col = threadIdx.x / down;
    }
};

// ---- LU ----------------------------------------------------------------------------------------------------------------

// a = P L U in place; pivots count rows from p.first + 1. info: the first zero pivot, of what has none yet.
template <class T>
__device__ __forceinline__ void lu_panel(const Task& p) {
    using R = real_t<T>;
    extern __shared__ __align__(16) unsigned char dynamic[];
    __shared__ R slots[kWarp];
    __shared__ int places[kWarp];
    const int m = p.a.rows, n = p.a.cols;
    const Spread at(m);
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const Matrix<T> given = item<T>(p.a, b), a = staged_panel(p, given, reinterpret_cast<T*>(dynamic));
        int* const pivots = p.pivots + b * p.pivots_step;
        int failed = 0;
        for (int j = 0; j < m && j < n; j++) {
            int best = j;
            if (p.pivoting) {
                R largest = R(-1);
                for (int i = j + threadIdx.x; i < m; i += blockDim.x) {
                    const R size = measure(a(i, j));
                    if (size > largest) largest = size, best = i;
                }
                best = block_argmax(largest, best, slots, places);
            }
            const T pivot = a(best, j);
            if (threadIdx.x == 0) pivots[j] = p.first + best + 1;
            const bool zero = pivot == T(0);
            if (zero && !failed) failed = p.first + j + 1;
            __syncthreads();  // `pivot` was read
            if (best != j) {
                for (int c = threadIdx.x; c < n; c += blockDim.x) {
                    const T held = a(j, c);
                    a(j, c) = a(best, c);
                    a(best, c) = held;
                }
                __syncthreads();
            }
            if (!zero || !p.pivoting) {
                for (int i = j + 1 + threadIdx.x; i < m; i += blockDim.x) a(i, j) = a(i, j) / pivot;
            }
            __syncthreads();
            for (int i = j + 1 + at.row; i < m; i += at.down) {
                const T factor = a(i, j);
                for (int c = j + 1 + at.col; c < n; c += at.across) a(i, c) = a(i, c) - factor * a(j, c);
            }
            __syncthreads();
        }
        if (threadIdx.x == 0 && failed && p.info[b] == 0) p.info[b] = failed;
        unstage_panel(p, given, reinterpret_cast<T*>(dynamic));
    }
}

// Rows of b change places as pivots p.first .. p.first + p.a.rows say, forwards or backwards; a pivot that names no row makes NaN.
template <class T>
__device__ __forceinline__ void swap_rows(const Task& p) {
    const int count = p.a.rows;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> x = item<T>(p.b, b);
        const int* const pivots = p.pivots + b * p.pivots_step;
        for (long long col = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; col < p.b.cols; col += static_cast<long long>(gridDim.x) * blockDim.x) {
            for (int i = 0; i < count; i++) {
                const int row = p.first + (p.backwards ? count - 1 - i : i), other = pivots[row] - 1;
                if (other == row) continue;
                if (other < 0 || other >= p.b.rows) {
                    x(row, col) = T(NAN);
                    continue;
                }
                const T held = x(row, col);
                x(row, col) = x(other, col);
                x(other, col) = held;
            }
        }
    }
}

// Row swaps (p.c: int32 as given) as the order in which P L U takes the rows: p.a, int64 (batch, rows).
__device__ __forceinline__ void row_order(const Task& p, const Gather& given) {
    for (long long b = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; b < p.batch; b += static_cast<long long>(gridDim.x) * blockDim.x) {
        long long offset = 0, rest = b;
        for (int d = given.batch_dims - 1; d >= 0; d--) {
            offset += rest % given.sizes[d] * given.strides[d];
            rest /= given.sizes[d];
        }
        const int* const pivots = static_cast<const int*>(given.from) + offset;
        long long* const order = static_cast<long long*>(p.a.at) + b * p.a.rows;
        for (int i = 0; i < p.a.rows; i++) order[i] = i;
        for (int i = 0; i < p.a.cols; i++) {
            const int other = pivots[i * given.rs] - 1;
            if (other < 0 || other >= p.a.rows) continue;
            const long long held = order[i];
            order[i] = order[other];
            order[other] = held;
        }
    }
}

// From the factors a, a warp a matrix: p.b the determinants, or signs with the logarithms of absolute values in p.values.
template <class T>
__device__ __forceinline__ void determinant(const Task& p) {
    using R = real_t<T>;
    struct Wide { double re, im; };
    const int lane = threadIdx.x % kWarp, n = p.a.rows;
    const long long warps = static_cast<long long>(gridDim.x) * blockDim.x / kWarp;
    for (long long b = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp; b < p.batch; b += warps) {
        const Matrix<T> a = item<T>(p.a, b);
        const int* const pivots = p.pivots + b * p.pivots_step;
        Wide total = {1, 0};
        double logarithm = 0;
        for (int j0 = 0; j0 < n; j0 += kWarp) {
            T mine(1);
            if (j0 + lane < n) {
                mine = a(j0 + lane, j0 + lane);
                if (pivots[j0 + lane] != j0 + lane + 1) mine = -mine;
            }
            for (int j = 0; j < kWarp && j0 + j < n; j++) {
                const T d = lane_value(mine, j);
                double re = real_part(d), im = imaginary_part(d);
                if (p.values) {
                    const double size = is_complex<T> ? ::hypot(re, im) : ::fabs(re);
                    logarithm += ::log(size);
                    if (size > 0) re /= size, im /= size;
                }
                if constexpr (is_complex<T>) total = {total.re * re - total.im * im, total.re * im + total.im * re};
                else total.re = p.values ? total.re * re : static_cast<double>(static_cast<R>(total.re * re));
            }
        }
        if (lane == 0) {
            if constexpr (is_complex<T>) static_cast<T*>(p.b.at)[b] = T(static_cast<R>(total.re), static_cast<R>(total.im));
            else static_cast<T*>(p.b.at)[b] = static_cast<T>(total.re);
            if (p.values) static_cast<R*>(p.values)[b] = static_cast<R>(logarithm);
        }
    }
}

// ---- Cholesky ----------------------------------------------------------------------------------------------------------

// The lower triangle of a becomes L with a = L L^H. info: the first minor that is not positive-definite, counted from p.first + 1.
template <class T>
__device__ __forceinline__ void cholesky_panel(const Task& p) {
    using R = real_t<T>;
    extern __shared__ __align__(16) unsigned char dynamic[];
    const int n = p.a.rows;
    const Spread at(n);
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        if (p.info[b]) continue;
        const Matrix<T> given = item<T>(p.a, b), a = staged_panel(p, given, reinterpret_cast<T*>(dynamic));
        int failed = 0;
        for (int j = 0; j < n; j++) {
            const R squared = real_part(a(j, j));
            if (!(squared > 0)) {
                failed = p.first + j + 1;
                break;
            }
            const R diagonal = root(squared);
            for (int i = j + 1 + threadIdx.x; i < n; i += blockDim.x) a(i, j) = a(i, j) / diagonal;
            __syncthreads();
            if (threadIdx.x == 0) a(j, j) = T(diagonal);
            for (int i = j + 1 + at.row; i < n; i += at.down) {
                const T factor = a(i, j);
                for (int c = j + 1 + at.col; c <= i; c += at.across) a(i, c) = a(i, c) - factor * conjugate(a(c, j));
            }
            __syncthreads();
        }
        __syncthreads();  // info was read by all
        if (threadIdx.x == 0 && failed) p.info[b] = failed;
        unstage_panel(p, given, reinterpret_cast<T*>(dynamic));
    }
}

// Zeros above the diagonal of a (below it, where p.upper).
template <class T>
__device__ __forceinline__ void clear_triangle(const Task& p) {
    const long long size = p.a.rows * p.a.cols;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> a = item<T>(p.a, b);
        for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += static_cast<long long>(gridDim.x) * blockDim.x) {
            const long long row = i % p.a.rows, col = i / p.a.rows;
            if (p.upper ? row > col : row < col) a(row, col) = T(0);
        }
    }
}

// info: the first zero on the diagonal of a.
template <class T>
__device__ __forceinline__ void find_zero_diagonal(const Task& p) {
    for (long long b = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; b < p.batch; b += static_cast<long long>(gridDim.x) * blockDim.x) {
        const Matrix<T> a = item<T>(p.a, b);
        for (int i = 0; i < p.a.rows && i < p.a.cols; i++) {
            if (!(a(i, i) == T(0))) continue;
            p.info[b] = i + 1;
            break;
        }
    }
}

// ---- triangular systems ------------------------------------------------------------------------------------------------

// b becomes a^-1 b, a a triangle of at most 32 rows: 32 columns of b at a time in shared memory, a warp takes one after the other,
// its lanes the rows.
template <class T>
__device__ __forceinline__ void triangle(const Task& p) {
    constexpr int kSide = 32, kPitch = kSide + 1;
    alignas(16) __shared__ unsigned char memory[2 * kSide * kPitch * sizeof(T)];
    T* const factor = reinterpret_cast<T*>(memory);  // by columns
    T* const tile = factor + kSide * kPitch;         // by columns
    const int n = p.a.rows, lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
    const bool a_columns = p.a.rs <= p.a.cs, b_columns = p.b.rs <= p.b.cs;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> a = item<T>(p.a, b), x = item<T>(p.b, b);
        for (int step = warp; step < kSide; step += warps) {
            const int r = a_columns ? lane : step, c = a_columns ? step : lane;
            if (r < n && c < n) factor[c * kPitch + r] = conjugate_if(p.conjugated, a(r, c));
        }
        for (long long col0 = static_cast<long long>(blockIdx.x) * kSide; col0 < p.b.cols; col0 += static_cast<long long>(gridDim.x) * kSide) {
            for (int step = warp; step < kSide; step += warps) {
                const int r = b_columns ? lane : step, c = b_columns ? step : lane;
                if (r < n && col0 + c < p.b.cols) tile[c * kPitch + r] = x(r, col0 + c);
            }
            __syncthreads();
            for (int c = warp; c < kSide && col0 + c < p.b.cols; c += warps) {
                T value = lane < n ? tile[c * kPitch + lane] : T(0);
                for (int step = 0; step < n; step++) {
                    const int i = p.upper ? n - 1 - step : step;
                    if (lane == i && !p.unit) value = value / factor[i * kPitch + i];
                    const T solved = lane_value(value, i);
                    if (lane < n && (p.upper ? lane < i : lane > i)) value = value - factor[i * kPitch + lane] * solved;
                }
                if (lane < n) tile[c * kPitch + lane] = value;
            }
            __syncthreads();
            for (int step = warp; step < kSide; step += warps) {
                const int r = b_columns ? lane : step, c = b_columns ? step : lane;
                if (r < n && col0 + c < p.b.cols) x(r, col0 + c) = tile[c * kPitch + r];
            }
            __syncthreads();
        }
    }
}

// ---- reflections -------------------------------------------------------------------------------------------------------

// The 2-norm of a column below row `from`, without overflow.
template <class T>
__device__ __forceinline__ real_t<T> norm_below(const Matrix<T>& a, int from, int rows, int col, real_t<T>* slots) {
    using R = real_t<T>;
    R largest = 0, sum = 0;
    for (int i = from + threadIdx.x; i < rows; i += blockDim.x) {
        const R size = measure(a(i, col));
        if (size > largest) largest = size;
        if (size != size) largest = R(INFINITY);  // NaN: the same for all threads
    }
    largest = block_max(largest, slots);
    if (largest == 0 || !(largest - largest == 0)) return largest;
    for (int i = from + threadIdx.x; i < rows; i += blockDim.x) sum += square_of(a(i, col) / largest);
    return largest * root(block_sum(sum, slots));
}

// LAPACK's geqr2: R in the upper triangle, the reflections below it and in p.values (tau).
template <class T>
__device__ __forceinline__ void qr_panel(const Task& p) {
    using R = real_t<T>;
    extern __shared__ __align__(16) unsigned char dynamic[];
    __shared__ R slots[kWarp];
    const int m = p.a.rows, n = p.a.cols, lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const Matrix<T> given = item<T>(p.a, b), a = staged_panel(p, given, reinterpret_cast<T*>(dynamic));
        T* const taus = static_cast<T*>(p.values) + b * p.values_step;
        for (int j = 0; j < m && j < n; j++) {
            const R below = norm_below(a, j + 1, m, j, slots);
            const T alpha = a(j, j);
            T tau(0), beta = alpha;
            if (!(below == 0) || !(imaginary_part(alpha) == 0)) {
                R length = hypotenuse(magnitude(alpha), below);
                if (real_part(alpha) >= 0) length = -length;
                beta = T(length);
                tau = (beta - alpha) / length;
                const T divisor = alpha - beta;
                for (int i = j + 1 + threadIdx.x; i < m; i += blockDim.x) a(i, j) = a(i, j) / divisor;
            }
            __syncthreads();
            if (threadIdx.x == 0) taus[j] = tau, a(j, j) = beta;
            // a column a warp: column - conj(tau) v (v^H column)
            if (!(tau == T(0))) {
                for (int c = j + 1 + warp; c < n; c += warps) {
                    T sum(0);
                    for (int i = j + 1 + lane; i < m; i += kWarp) sum = sum + conjugate(a(i, j)) * a(i, c);
                    sum = warp_sum(sum) + a(j, c);
                    sum = sum * conjugate(tau);
                    __syncwarp();
                    if (lane == 0) a(j, c) = a(j, c) - sum;
                    for (int i = j + 1 + lane; i < m; i += kWarp) a(i, c) = a(i, c) - sum * a(i, j);
                }
            }
            __syncthreads();
        }
        unstage_panel(p, given, reinterpret_cast<T*>(dynamic));
    }
}

// b becomes Q b or Q^H b (p.adjoint), Q the product of the reflections in a and p.values; p.conjugated: conj(Q) in its place.
// A warp a column of b.
template <class T>
__device__ __forceinline__ void reflect(const Task& p) {
    const int m = p.b.rows, k = p.a.cols, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> a = item<T>(p.a, b), x = item<T>(p.b, b);
        const T* const taus = static_cast<const T*>(p.values) + b * p.values_step;
        for (long long c = static_cast<long long>(blockIdx.x) * warps + threadIdx.x / kWarp; c < p.b.cols; c += static_cast<long long>(gridDim.x) * warps) {
            for (int step = 0; step < k; step++) {
                const int j = p.adjoint ? step : k - 1 - step;
                const T tau = conjugate_if(p.adjoint != p.conjugated, taus[j]);
                const int start = j / kWarp * kWarp + lane;  // a row stays with its lane
                T sum(0);
                for (int i = start; i < m; i += kWarp) {
                    if (i >= j) sum = sum + conjugate_if(!p.conjugated, i == j ? T(1) : a(i, j)) * x(i, c);
                }
                sum = warp_sum(sum) * tau;
                for (int i = start; i < m; i += kWarp) {
                    if (i >= j) x(i, c) = x(i, c) - conjugate_if(p.conjugated, i == j ? T(1) : a(i, j)) * sum;
                }
            }
        }
    }
}

// The triangle of the block reflector H_1 ... H_k = 1 - V T V^H from a = V^H V and tau, a warp a matrix of at most 32 rows: T in b,
// its conjugate in c.
template <class T>
__device__ __forceinline__ void reflector_triangle(const Task& p) {
    constexpr int kSide = 32;
    alignas(16) __shared__ unsigned char memory[kSide * (kSide + 1) * sizeof(T)];
    T* const triangle = reinterpret_cast<T*>(memory);
    const int k = p.a.rows, lane = threadIdx.x;
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const Matrix<T> a = item<T>(p.a, b), to = item<T>(p.b, b), turned = item<T>(p.c, b);
        const T* const taus = static_cast<const T*>(p.values) + b * p.values_step;
        for (int j = 0; j < k; j++) {
            const T tau = conjugate_if(p.conjugated, taus[j]);
            T sum(0);
            for (int l = lane; l < j; l++) sum = sum + triangle[l * (kSide + 1) + lane] * a(l, j);
            triangle[j * (kSide + 1) + lane] = lane < j ? -(tau * sum) : lane == j ? tau : T(0);
            __syncwarp();
        }
        if (lane < k) {
            for (int j = 0; j < k; j++) {
                to(lane, j) = triangle[j * (kSide + 1) + lane];
                turned(lane, j) = conjugate(triangle[j * (kSide + 1) + lane]);
            }
        }
        __syncwarp();
    }
}

// ---- symmetric indefinite ----------------------------------------------------------------------------------------------

template <class T>
__device__ __forceinline__ void exchange(T& x, T& y) {
    const T held = x;
    x = y;
    y = held;
}

// LAPACK's sytf2 and (p.conjugated) hetf2 of the lower triangle: Bunch and Kaufman's pivots of one and two rows. p.c: two columns to
// work in. A block a matrix.
template <class T>
__device__ __forceinline__ void ldl_factor(const Task& p) {
    using R = real_t<T>;
    extern __shared__ __align__(16) unsigned char dynamic[];
    __shared__ R slots[kWarp];
    __shared__ int places[kWarp];
    const R alpha = (1 + root(R(17))) / 8;
    const int n = p.a.rows, t = threadIdx.x, threads = blockDim.x;
    const bool hermitian = p.conjugated;
    const Spread at(n);
    const auto size_of = [&](T x) { return hermitian && is_complex<T> ? magnitude(real_part(x)) : measure(x); };
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const Matrix<T> given = item<T>(p.a, b), a = staged_panel(p, given, reinterpret_cast<T*>(dynamic)), work = item<T>(p.c, b);
        int* const pivots = p.pivots + b * p.pivots_step;
        int failed = 0;
        for (int k = 0; k < n;) {
            int largest = k + 1, pivot = k, step = 1;
            R column = 0;
            if (k + 1 < n) {
                R mine = -1;
                for (int i = k + 1 + t; i < n; i += threads) {
                    if (measure(a(i, k)) > mine) mine = measure(a(i, k)), largest = i;
                }
                largest = block_argmax(mine, largest, slots, places);
                column = measure(a(largest, k));
            }
            const R diagonal = size_of(a(k, k));
            const bool zero = !(diagonal > 0) && !(column > 0) || diagonal != diagonal;
            if (zero) {
                if (!failed) failed = k + 1;
            } else if (diagonal < alpha * column) {
                R row = 0;
                for (int j = k + t; j < n; j += threads) {
                    if (j == largest) continue;
                    const R size = measure(j < largest ? a(largest, j) : a(j, largest));
                    if (size > row) row = size;
                }
                row = block_max(row, slots);
                if (diagonal < alpha * column * (column / row)) {
                    pivot = largest;
                    if (size_of(a(largest, largest)) < alpha * row) step = 2;
                }
            }
            const int kk = k + step - 1;
            __syncthreads();  // what decided was read
            if (t == 0) {
                pivots[k] = step == 1 ? pivot + 1 : -(pivot + 1);
                if (step == 2) pivots[k + 1] = -(pivot + 1);
            }
            if (pivot != kk) {
                for (int i = pivot + 1 + t; i < n; i += threads) exchange(a(i, kk), a(i, pivot));
                for (int i = kk + 1 + t; i < pivot; i += threads) {
                    exchange(a(i, kk), a(pivot, i));
                    if (hermitian) a(i, kk) = conjugate(a(i, kk)), a(pivot, i) = conjugate(a(pivot, i));
                }
                if (t == 0) {
                    if (hermitian) a(pivot, kk) = conjugate(a(pivot, kk));
                    exchange(a(kk, kk), a(pivot, pivot));
                    if (step == 2) exchange(a(k + 1, k), a(pivot, k));
                }
            }
            if (hermitian && t == 0) {
                a(k, k) = T(real_part(a(k, k)));
                if (step == 2) a(k + 1, k + 1) = T(real_part(a(k + 1, k + 1)));
                if (pivot != kk) a(pivot, pivot) = T(real_part(a(pivot, pivot)));
            }
            __syncthreads();
            const int next = k + step;
            if (zero) {
                k = next;
                continue;
            }
            // columns of L to `work`, then the rest, then the columns to their place
            if (step == 1) {
                const T d = a(k, k);
                for (int i = next + t; i < n; i += threads) work(i, 0) = a(i, k) / d;
            } else {
                const T d11 = a(k, k), d21 = a(k + 1, k), d22 = a(k + 1, k + 1), d12 = hermitian ? conjugate(d21) : d21;
                // in units of d21, so that nothing overflows
                const T x = d22 / d21, y = d11 / d12, scale = T(1) / (x * y - T(1));
                for (int i = next + t; i < n; i += threads) {
                    const T u = a(i, k), v = a(i, k + 1);
                    work(i, 0) = (x * u - v) / d12 * scale;
                    work(i, 1) = (y * v - u) / d21 * scale;
                }
            }
            __syncthreads();
            for (int i = next + at.row; i < n; i += at.down) {
                for (int j = next + at.col; j <= i; j += at.across) {
                    T value = a(i, j) - a(i, k) * conjugate_if(hermitian, work(j, 0));
                    if (step == 2) value = value - a(i, k + 1) * conjugate_if(hermitian, work(j, 1));
                    a(i, j) = hermitian && i == j ? T(real_part(value)) : value;
                }
            }
            __syncthreads();
            for (int i = next + t; i < n; i += threads) {
                a(i, k) = work(i, 0);
                if (step == 2) a(i, k + 1) = work(i, 1);
            }
            __syncthreads();
            k = next;
        }
        if (t == 0) p.info[b] = failed;
        unstage_panel(p, given, reinterpret_cast<T*>(dynamic));
    }
}

// b becomes A^-1 b from ldl_factor's a and pivots; a warp a column of b, its lanes the rows. Pivots that name no rows make NaN.
template <class T>
__device__ __forceinline__ void ldl_solve(const Task& p) {
    const int n = p.a.rows, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
    const bool hermitian = p.conjugated;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> a = item<T>(p.a, b), x = item<T>(p.b, b);
        const int* const pivots = p.pivots + b * p.pivots_step;
        bool valid = true;
        for (int k = 0; k < n; k++) {
            const int pivot = pivots[k];
            if (pivot == 0 || pivot > n || pivot < -n) valid = false;
            if (pivot < 0) {
                if (k + 1 >= n || pivots[k + 1] != pivot) valid = false;
                k++;
            }
        }
        for (long long c = static_cast<long long>(blockIdx.x) * warps + threadIdx.x / kWarp; c < p.b.cols; c += static_cast<long long>(gridDim.x) * warps) {
            if (!valid) {
                for (int i = lane; i < n; i += kWarp) x(i, c) = T(NAN);
                continue;
            }
            for (int k = 0; k < n;) {
                const bool two = pivots[k] < 0;
                const int pivot = (two ? -pivots[k] : pivots[k]) - 1, swapped = k + two;
                if (lane == 0 && pivot != swapped) exchange(x(swapped, c), x(pivot, c));
                __syncwarp();
                const T first = x(k, c), second = two ? x(k + 1, c) : T(0);
                for (int i = k + 1 + two + lane; i < n; i += kWarp) {
                    T value = x(i, c) - a(i, k) * first;
                    if (two) value = value - a(i, k + 1) * second;
                    x(i, c) = value;
                }
                __syncwarp();
                if (lane == 0) {
                    if (two) {
                        const T below = a(k + 1, k), above = hermitian ? conjugate(below) : below;
                        const T d1 = a(k, k) / above, d2 = a(k + 1, k + 1) / below, divisor = d1 * d2 - T(1), y1 = first / above, y2 = second / below;
                        x(k, c) = (d2 * y1 - y2) / divisor;
                        x(k + 1, c) = (d1 * y2 - y1) / divisor;
                    } else {
                        x(k, c) = first / a(k, k);
                    }
                }
                __syncwarp();
                k += 1 + two;
            }
            for (int k = n - 1; k >= 0;) {
                const bool two = pivots[k] < 0;
                T sum(0), other(0);
                for (int i = k + 1 + lane; i < n; i += kWarp) {
                    sum = sum + conjugate_if(hermitian, a(i, k)) * x(i, c);
                    if (two) other = other + conjugate_if(hermitian, a(i, k - 1)) * x(i, c);
                }
                sum = warp_sum(sum);
                other = warp_sum(other);
                if (lane == 0) {
                    const int pivot = (two ? -pivots[k] : pivots[k]) - 1;
                    x(k, c) = x(k, c) - sum;
                    if (two) x(k - 1, c) = x(k - 1, c) - other;
                    if (pivot != k) exchange(x(k, c), x(pivot, c));
                }
                __syncwarp();
                k -= 1 + two;
            }
        }
    }
}

}  // namespace trt
