// Eigenvalues of Hermitian matrices and singular values by Jacobi's rotations (Golub and Van Loan, Matrix Computations, 8.5 and 8.6.3):
// each round turns n / 2 disjoint pairs of columns, n - 1 rounds meet all pairs (a sweep), a sweep without rotations ends it. Whole
// matrices are one block's; of large ones a round is a launch over the device. Matrices were scaled by a power of two, so that squares
// neither overflow nor vanish. The host is cysrc/cuda/linalg.pyx.
#pragma once

#include "linalg.cuh"

namespace trt {

constexpr int kSweeps = 60;

template <class R>
constexpr R kEpsilon = sizeof(R) == 4 ? R(1.1920928955078125e-7) : R(2.220446049250313e-16);
// Below the root of the smallest normal number (with a margin) a column's length says nothing about its angles.
template <class R>
constexpr R kVanishing = R(sizeof(R) == 4 ? 1e-17 : 1e-150);

// Pair number k of a round: all pairs of a tournament of n players, of an odd number one rests (q == n).
__device__ __forceinline__ void pair_of(int round, int k, int n, int& p, int& q) {
    const int last = n + n % 2 - 1;
    p = k ? (round + k) % last : round;
    q = k ? (round - k + last) % last : last;
    if (q < p) {
        const int held = p;
        p = q;
        q = held;
    }
}

// Columns p and q become c p - s conj(phase) q and s p + c conj(phase) q.
template <class T>
struct Rotation {
    T phase;
    real_t<T> c, s, shift;  // shift: what moves from the first diagonal element to the second
    __device__ __forceinline__ void turn(T& p, T& q) const {
        const T y = conjugate(phase) * q;
        q = p * s + y * c;
        p = p * c - y * s;
    }
};

// The rotation that makes [[app, apq], [conj(apq), aqq]] diagonal; apq is not zero.
template <class T>
__device__ __forceinline__ Rotation<T> rotation_of(real_t<T> app, real_t<T> aqq, T apq) {
    using R = real_t<T>;
    const R size = magnitude(apq), zeta = (aqq - app) / (2 * size);
    const R t = (zeta < 0 ? R(-1) : R(1)) / (magnitude(zeta) + hypotenuse(R(1), zeta));
    const R c = 1 / hypotenuse(R(1), t);
    return {apq / size, c, t * c, t * size};
}

// The power of two that brings a's largest number near 1 is multiplied in and kept in p.values, with the size that counts as zero off
// the diagonal: two numbers a matrix. What is not finite becomes zero, with a code.
template <class T>
__device__ __forceinline__ void scale_matrix(const Task& p) {
    using R = real_t<T>;
    __shared__ R slots[kWarp];
    const int rows = p.a.rows;
    const long long size = p.a.rows * p.a.cols;
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const Matrix<T> a = item<T>(p.a, b);
        R largest = 0;
        for (long long i = threadIdx.x; i < size; i += blockDim.x) {
            const T x = a(i % rows, i / rows);
            const R re = magnitude(real_part(x)), im = magnitude(imaginary_part(x));
            if (!(re <= largest)) largest = re - re == 0 ? re : R(INFINITY);
            if (!(im <= largest)) largest = im - im == 0 ? im : R(INFINITY);
        }
        largest = block_max(largest, slots);
        const bool finite = largest - largest == 0;
        int exponent = 0;
        if (finite && largest > 0) ::frexp(largest, &exponent);
        const R scale = static_cast<R>(::ldexp(R(1), -exponent / 2)), again = static_cast<R>(::ldexp(R(1), -exponent - (-exponent / 2)));
        R sum = 0;
        for (long long i = threadIdx.x; i < size; i += blockDim.x) {
            T& x = a(i % rows, i / rows);
            x = finite ? x * scale * again : T(0);
            sum += square_of(x);
        }
        sum = block_sum(sum, slots);
        if (threadIdx.x == 0) {
            static_cast<R*>(p.values)[2 * b] = static_cast<R>(exponent);
            static_cast<R*>(p.values)[2 * b + 1] = kEpsilon<R> * root(sum) / rows;
            if (!finite) p.info[b] = kNotFinite;
        }
        __syncthreads();
    }
}

// ---- two-sided: Hermitian a ----------------------------------------------------------------------------------------------

template <class T>
__device__ __forceinline__ bool find_rotation(const Matrix<T>& a, int n, int round, int k, real_t<T> tolerance, Rotation<T>* rotations) {
    int p, q;
    pair_of(round, k, n, p, q);
    const T apq = q < n ? a(p, q) : T(0);
    const bool turns = magnitude(apq) > tolerance;
    if (turns) rotations[k] = rotation_of(real_part(a(p, p)), real_part(a(q, q)), apq);
    else rotations[k] = {T(1), 1, 0, 0};
    return turns;
}

// The rows of pair k and the columns of pair l, which no other thread touches in this round.
template <class T>
__device__ __forceinline__ void rotate_crossing(const Matrix<T>& a, int n, int round, int k, int l, const Rotation<T>* rotations) {
    int p, q, u, v;
    pair_of(round, k, n, p, q);
    pair_of(round, l, n, u, v);
    const Rotation<T> down = rotations[k], across = rotations[l];
    if (k == l) {
        if (down.s == 0) return;
        a(p, p) = T(real_part(a(p, p)) - down.shift);
        a(q, q) = T(real_part(a(q, q)) + down.shift);
        a(p, q) = a(q, p) = T(0);
        return;
    }
    if (down.s == 0 && across.s == 0) return;
    T x[2][2] = {{a(p, u), v < n ? a(p, v) : T(0)}, {q < n ? a(q, u) : T(0), q < n && v < n ? a(q, v) : T(0)}};
    across.turn(x[0][0], x[0][1]);
    across.turn(x[1][0], x[1][1]);
    // rows turn by the conjugate
    Rotation<T> turned = down;
    turned.phase = conjugate(down.phase);
    turned.turn(x[0][0], x[1][0]);
    turned.turn(x[0][1], x[1][1]);
    a(p, u) = x[0][0];
    if (v < n) a(p, v) = x[0][1];
    if (q < n) a(q, u) = x[1][0];
    if (q < n && v < n) a(q, v) = x[1][1];
}

template <class T>
__device__ __forceinline__ void rotate_vectors(const Matrix<T>& v, int n, int round, int k, int row, const Rotation<T>* rotations) {
    int p, q;
    pair_of(round, k, n, p, q);
    if (q < n && rotations[k].s != 0) rotations[k].turn(v(row, p), v(row, q));
}

// A block a matrix: a becomes diagonal, b (unless null) the vectors; c: room for rotations. In shared memory where p.staged.
template <class T>
__device__ __forceinline__ void eigh_sweeps(const Task& p) {
    using R = real_t<T>;
    extern __shared__ __align__(16) unsigned char dynamic[];
    __shared__ int turned;
    const int n = p.a.rows, pairs = (n + 1) / 2, rounds = n + n % 2 - 1;
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const Matrix<T> a0 = item<T>(p.a, b), v0 = item<T>(p.b, b);
        Matrix<T> a = a0, v = v0;
        Rotation<T>* rotations = reinterpret_cast<Rotation<T>*>(static_cast<T*>(p.c.at) + b * p.c.bs);
        if (p.staged) {
            T* const memory = reinterpret_cast<T*>(dynamic);
            a = {memory, 1, n};
            v = {memory + n * n, 1, n};
            rotations = reinterpret_cast<Rotation<T>*>(memory + (p.b.at ? 2 : 1) * n * n);
            for (int i = threadIdx.x; i < n * n; i += blockDim.x) {
                memory[i] = a0(i % n, i / n);
                if (p.b.at) memory[n * n + i] = v0(i % n, i / n);
            }
        }
        const R tolerance = static_cast<const R*>(p.values)[2 * b + 1];
        bool done = false;
        for (int sweep = 0; sweep < kSweeps && !done; sweep++) {
            __syncthreads();
            if (threadIdx.x == 0) turned = 0;
            __syncthreads();
            for (int round = 0; round < rounds; round++) {
                for (int k = threadIdx.x; k < pairs; k += blockDim.x) {
                    if (find_rotation(a, n, round, k, tolerance, rotations)) turned = 1;
                }
                __syncthreads();
                for (int i = threadIdx.x; i < pairs * pairs; i += blockDim.x) rotate_crossing(a, n, round, i % pairs, i / pairs, rotations);
                if (p.b.at) {
                    for (int i = threadIdx.x; i < pairs * n; i += blockDim.x) rotate_vectors(v, n, round, i / n, i % n, rotations);
                }
                __syncthreads();
            }
            done = turned == 0;
        }
        if (threadIdx.x == 0 && !done && p.info[b] == 0) p.info[b] = 1;
        if (p.staged) {
            for (int i = threadIdx.x; i < n * n; i += blockDim.x) {
                a0(i % n, i / n) = a(i % n, i / n);
                if (p.b.at) v0(i % n, i / n) = v(i % n, i / n);
            }
        }
        __syncthreads();
    }
}

// A round (p.first) over the device: its rotations, then what they turn. *p.counter becomes 1 where there are any.
template <class T>
__device__ __forceinline__ void eigh_find(const Task& p) {
    const int n = p.a.rows, pairs = (n + 1) / 2;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        Rotation<T>* const rotations = reinterpret_cast<Rotation<T>*>(static_cast<T*>(p.c.at) + b * p.c.bs);
        for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < pairs; k += gridDim.x * blockDim.x) {
            if (find_rotation(item<T>(p.a, b), n, p.first, k, static_cast<const real_t<T>*>(p.values)[2 * b + 1], rotations)) *p.counter = 1;
        }
    }
}

template <class T>
__device__ __forceinline__ void eigh_turn(const Task& p) {
    const int n = p.a.rows, pairs = (n + 1) / 2;
    const long long crossings = static_cast<long long>(pairs) * pairs, all = crossings + (p.b.at ? static_cast<long long>(pairs) * n : 0);
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Rotation<T>* const rotations = reinterpret_cast<const Rotation<T>*>(static_cast<const T*>(p.c.at) + b * p.c.bs);
        for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < all; i += static_cast<long long>(gridDim.x) * blockDim.x) {
            if (i < crossings) rotate_crossing(item<T>(p.a, b), n, p.first, i % pairs, i / pairs, rotations);
            else rotate_vectors(item<T>(p.b, b), n, p.first, (i - crossings) / n, (i - crossings) % n, rotations);
        }
    }
}

// ---- one-sided: the columns of a become orthogonal -----------------------------------------------------------------------

// By a warp, or by a block (`slots`: 32 values). True where the pair had to be turned.
template <class T, bool kBlockWide>
__device__ __forceinline__ bool rotate_columns(const Matrix<T>& a, const Matrix<T>& v, int rows, int n, int p, int q, T* slots, real_t<T>* real_slots) {
    using R = real_t<T>;
    const int first = kBlockWide ? threadIdx.x : threadIdx.x % kWarp, step = kBlockWide ? blockDim.x : kWarp;
    R app = 0, aqq = 0;
    T apq(0);
    for (int i = first; i < rows; i += step) {
        const T x = a(i, p), y = a(i, q);
        app += square_of(x);
        aqq += square_of(y);
        apq = apq + conjugate(x) * y;
    }
    if constexpr (kBlockWide) {
        app = block_sum(app, real_slots);
        aqq = block_sum(aqq, real_slots);
        apq = block_sum(apq, slots);
    } else {
        app = warp_sum(app);
        aqq = warp_sum(aqq);
        apq = warp_sum(apq);
    }
    const R p_length = root(app), q_length = root(aqq);
    if (!(p_length > kVanishing<R> && q_length > kVanishing<R>) || !(magnitude(apq) > kEpsilon<R> * root(R(rows)) * p_length * q_length)) return false;
    const Rotation<T> rotation = rotation_of(app, aqq, apq);
    for (int i = first; i < rows; i += step) rotation.turn(a(i, p), a(i, q));
    if (v.at) {
        for (int i = first; i < n; i += step) rotation.turn(v(i, p), v(i, q));
    }
    return true;
}

// A block a matrix, a warp a pair: the columns of a become singular vectors times values, b (unless null) collects the rotations.
template <class T>
__device__ __forceinline__ void svd_sweeps(const Task& p) {
    extern __shared__ __align__(16) unsigned char dynamic[];
    __shared__ int turned;
    const int rows = p.a.rows, n = p.a.cols, pairs = (n + 1) / 2, rounds = n + n % 2 - 1, size = rows * n, warp = threadIdx.x / kWarp, warps = blockDim.x / kWarp;
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const Matrix<T> a0 = item<T>(p.a, b), v0 = p.b.at ? item<T>(p.b, b) : Matrix<T>{nullptr, 0, 0};
        Matrix<T> a = a0, v = v0;
        if (p.staged) {
            T* const memory = reinterpret_cast<T*>(dynamic);
            a = {memory, 1, rows};
            for (int i = threadIdx.x; i < size; i += blockDim.x) memory[i] = a0(i % rows, i / rows);
            if (v0.at) {
                v = {memory + size, 1, n};
                for (int i = threadIdx.x; i < n * n; i += blockDim.x) v.at[i] = v0(i % n, i / n);
            }
        }
        bool done = false;
        for (int sweep = 0; sweep < kSweeps && !done; sweep++) {
            __syncthreads();
            if (threadIdx.x == 0) turned = 0;
            __syncthreads();
            for (int round = 0; round < rounds; round++) {
                for (int k = warp; k < pairs; k += warps) {
                    int i, j;
                    pair_of(round, k, n, i, j);
                    if (j < n && rotate_columns<T, false>(a, v, rows, n, i, j, nullptr, nullptr)) turned = 1;
                }
                __syncthreads();
            }
            done = turned == 0;
        }
        if (threadIdx.x == 0 && !done && p.info[b] == 0) p.info[b] = 1;
        if (p.staged) {
            for (int i = threadIdx.x; i < size; i += blockDim.x) a0(i % rows, i / rows) = a.at[i];
            if (v0.at) {
                for (int i = threadIdx.x; i < n * n; i += blockDim.x) v0(i % n, i / n) = v.at[i];
            }
        }
        __syncthreads();
    }
}

// A round (p.first) over the device, a block a pair.
template <class T>
__device__ __forceinline__ void svd_round(const Task& p) {
    alignas(16) __shared__ unsigned char memory[kWarp * sizeof(T)];
    __shared__ real_t<T> real_slots[kWarp];
    const int n = p.a.cols, pairs = (n + 1) / 2;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> v = p.b.at ? item<T>(p.b, b) : Matrix<T>{nullptr, 0, 0};
        for (int k = blockIdx.x; k < pairs; k += gridDim.x) {
            int i, j;
            pair_of(p.first, k, n, i, j);
            if (j < n && rotate_columns<T, true>(item<T>(p.a, b), v, p.a.rows, n, i, j, reinterpret_cast<T*>(memory), real_slots)) *p.counter = 1;
        }
    }
}

// ---- values in order, vectors in theirs ----------------------------------------------------------------------------------

// b (real, n per matrix): the diagonal of a, or where p.upper the lengths of its columns; a warp a number.
template <class T>
__device__ __forceinline__ void unsorted_values(const Task& p) {
    using R = real_t<T>;
    const int lane = threadIdx.x % kWarp, n = p.a.cols;
    const long long warps = static_cast<long long>(gridDim.x) * blockDim.x / kWarp;
    for (long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp; i < p.batch * n; i += warps) {
        const Matrix<T> a = item<T>(p.a, i / n);
        const int j = i % n;
        R value = 0;
        if (p.upper) {
            for (int row = lane; row < p.a.rows; row += kWarp) value += square_of(a(row, j));
            value = root(warp_sum(value));
        } else {
            value = real_part(a(j, j));
        }
        if (lane == 0) static_cast<R*>(p.b.at)[i] = value;
    }
}

// A block a matrix: the values of b to c, ascending or (p.backwards) descending and without the scale of p.values; pivots: their places.
// Where p.counter is given, it gets the number of columns of length zero.
template <class T>
__device__ __forceinline__ void sort_values(const Task& p) {
    using R = real_t<T>;
    __shared__ int vanishing;
    const int n = p.a.cols;
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const R* const values = static_cast<const R*>(p.b.at) + b * n;
        const int exponent = static_cast<int>(static_cast<const R*>(p.values)[2 * b]);
        if (threadIdx.x == 0) vanishing = 0;
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            const R mine = values[i];
            int rank = 0;
            for (int j = 0; j < n; j++) {
                const R other = values[j];
                rank += (p.backwards ? other > mine : other < mine) || other == mine && j < i;
            }
            p.pivots[b * p.pivots_step + i] = rank;
            static_cast<R*>(p.c.at)[b * n + rank] = static_cast<R>(::ldexp(mine, exponent));
            if (!(mine > kVanishing<R>)) atomicAdd(&vanishing, 1);
        }
        __syncthreads();
        if (p.counter && threadIdx.x == 0) p.counter[b] = vanishing;
        __syncthreads();
    }
}

// Column j of a to column pivots[j] of b, conjugated where asked; p.values: lengths to divide by, columns without one become zero.
template <class T>
__device__ __forceinline__ void permute_columns(const Task& p) {
    using R = real_t<T>;
    const long long size = p.a.rows * p.a.cols;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> a = item<T>(p.a, b), to = item<T>(p.b, b);
        for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += static_cast<long long>(gridDim.x) * blockDim.x) {
            const long long row = i % p.a.rows, col = i / p.a.rows;
            T value = conjugate_if(p.conjugated, a(row, col));
            if (p.values) {
                const R length = static_cast<const R*>(p.values)[b * p.a.cols + col];
                value = length > kVanishing<R> ? value / length : T(0);
            }
            to(row, p.pivots[b * p.pivots_step + col]) = value;
        }
    }
}

// Rows of a divided by singular values (p.values), those up to p.tolerance times the first become zero; p.pivots: int64 ranks.
template <class T>
__device__ __forceinline__ void divide_rows(const Task& p) {
    using R = real_t<T>;
    const long long size = p.a.rows * p.a.cols;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> a = item<T>(p.a, b);
        const R* const values = static_cast<const R*>(p.values) + b * p.a.rows;
        const R least = values[0] * static_cast<R>(p.tolerance);
        for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += static_cast<long long>(gridDim.x) * blockDim.x) {
            const long long row = i % p.a.rows, col = i / p.a.rows;
            T& x = a(row, col);
            x = values[row] > least ? x / values[row] : T(0);
        }
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            long long rank = 0;
            while (rank < p.a.rows && values[rank] > least) rank++;
            reinterpret_cast<long long*>(p.pivots)[b] = rank;
        }
    }
}

// The last columns of a, as many as p.counter says, from b.
template <class T>
__device__ __forceinline__ void complete_columns(const Task& p) {
    const long long size = p.a.rows * p.a.cols;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> a = item<T>(p.a, b), from = item<T>(p.b, b);
        for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += static_cast<long long>(gridDim.x) * blockDim.x) {
            const long long row = i % p.a.rows, col = i / p.a.rows;
            if (col >= p.a.cols - p.counter[b]) a(row, col) = from(row, col);
        }
    }
}

}  // namespace trt
