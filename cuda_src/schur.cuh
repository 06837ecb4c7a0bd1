// Eigenvalues of square matrices, in complex arithmetic: Hessenberg form by reflections, Schur form by shifted QR steps of Givens
// rotations (Golub and Van Loan, Matrix Computations, 7.4 to 7.6), a block a matrix; vectors by substitution in the triangle. A real
// matrix is taken as complex and its values are paired with their conjugates again. The host is cysrc/cuda/linalg.pyx.
#pragma once

#include "jacobi.cuh"

namespace trt {

template <class R>
constexpr R kHuge = R(sizeof(R) == 4 ? 1e15 : 1e140);

// Complex a from the real matrices b.
template <class T>
__device__ __forceinline__ void widen(const Task& p) {
    const long long size = p.a.rows * p.a.cols;
    for (long long b = blockIdx.y; b < p.batch; b += gridDim.y) {
        const Matrix<T> a = item<T>(p.a, b);
        const Matrix<real_t<T>> from = item<real_t<T>>(p.b, b);
        for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += static_cast<long long>(gridDim.x) * blockDim.x) {
            a(i % p.a.rows, i / p.a.rows) = T(from(i % p.a.rows, i / p.a.rows));
        }
    }
}

template <class T>
__device__ __forceinline__ T complex_root(T x) {
    using R = real_t<T>;
    const R size = magnitude(x);
    if (size == 0) return T(0);
    const R re = root((size + magnitude(x.re)) / 2), im = x.im / (2 * re);
    return x.re >= 0 ? T(re, im) : T(magnitude(im), x.im < 0 ? -re : re);
}

// a becomes upper Hessenberg, z (unless null) is multiplied by the reflections.
template <class T>
__device__ __forceinline__ void reduce_to_hessenberg(const Matrix<T>& a, const Matrix<T>& z, int n, real_t<T>* slots) {
    using R = real_t<T>;
    const int t = threadIdx.x, threads = blockDim.x, lane = t % kWarp, warp = t / kWarp, warps = threads / kWarp;
    for (int k = 0; k + 2 < n; k++) {
        const R below = norm_below(a, k + 2, n, k, slots);
        if (below == 0) continue;
        const T alpha = a(k + 1, k);
        R length = hypotenuse(magnitude(alpha), below);
        if (real_part(alpha) >= 0) length = -length;
        const T beta(length), tau = (beta - alpha) / length, divisor = alpha - beta;
        for (int i = k + 2 + t; i < n; i += threads) a(i, k) = a(i, k) / divisor;
        __syncthreads();
        for (int c = k + 1 + warp; c < n; c += warps) {
            T sum(0);
            for (int i = k + 2 + lane; i < n; i += kWarp) sum = sum + conjugate(a(i, k)) * a(i, c);
            sum = (warp_sum(sum) + a(k + 1, c)) * conjugate(tau);
            __syncwarp();
            if (lane == 0) a(k + 1, c) = a(k + 1, c) - sum;
            for (int i = k + 2 + lane; i < n; i += kWarp) a(i, c) = a(i, c) - sum * a(i, k);
        }
        __syncthreads();
        for (int r = t; r < (z.at ? 2 * n : n); r += threads) {
            const Matrix<T>& x = r < n ? a : z;
            const int row = r < n ? r : r - n;
            T sum = x(row, k + 1);
            for (int i = k + 2; i < n; i++) sum = sum + x(row, i) * a(i, k);
            sum = sum * tau;
            x(row, k + 1) = x(row, k + 1) - sum;
            for (int i = k + 2; i < n; i++) x(row, i) = x(row, i) - sum * conjugate(a(i, k));
        }
        __syncthreads();
        for (int i = k + 1 + t; i < n; i += threads) a(i, k) = i == k + 1 ? beta : T(0);
        __syncthreads();
    }
}

// The eigenvalue of a's 2 x 2 block ending at `last` that is nearer to its last element.
template <class T>
__device__ __forceinline__ T shift_of(const Matrix<T>& a, int last) {
    const T corner = a(last, last), product = complex_root(a(last - 1, last)) * complex_root(a(last, last - 1));
    if (product == T(0)) return corner;
    const T half = (a(last - 1, last - 1) - corner) / real_t<T>(2);
    T other = complex_root(half * half + product * product);
    if (half.re * other.re + half.im * other.im < 0) other = -other;
    return corner - product * (product / (half + other));
}

// a becomes the triangle of its Schur form, b (unless null) is multiplied by what makes it. In shared memory where p.staged.
template <class T>
__device__ __forceinline__ void schur_form(const Task& p) {
    using R = real_t<T>;
    extern __shared__ __align__(16) unsigned char dynamic[];
    __shared__ R slots[kWarp];
    __shared__ int places[kWarp];
    const int n = p.a.rows, t = threadIdx.x, threads = blockDim.x;
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const Matrix<T> a0 = item<T>(p.a, b), z0 = p.b.at ? item<T>(p.b, b) : Matrix<T>{nullptr, 0, 0};
        Matrix<T> a = a0, z = z0;
        if (p.staged) {
            T* const memory = reinterpret_cast<T*>(dynamic);
            a = {memory, 1, n};
            if (z.at) z = {memory + n * n, 1, n};
            for (int i = t; i < n * n; i += threads) {
                a.at[i] = a0(i % n, i / n);
                if (z.at) z.at[i] = z0(i % n, i / n);
            }
        }
        __syncthreads();
        reduce_to_hessenberg(a, z, n, slots);
        const R least = static_cast<const R*>(p.values)[2 * b + 1];
        int last = n - 1, steps = 0;
        while (last > 0) {
            // the active block begins behind the last element below the diagonal that is negligible
            int first = 0;
            for (int i = 1 + t; i <= last; i += threads) {
                const R around = measure(a(i - 1, i - 1)) + measure(a(i, i));
                if (measure(a(i, i - 1)) <= kEpsilon<R> * (around > least ? around : least)) first = i;
            }
            first = block_max(first, places);
            if (t == 0 && first > 0) a(first, first - 1) = T(0);
            if (first == last) {
                last--;
                steps = 0;
                __syncthreads();
                continue;
            }
            if (steps == 30) break;
            steps++;
            T shift = shift_of(a, last);
            if (steps % 10 == 0) shift = a(last, last) + T(R(0.75) * magnitude(real_part(a(last, last - 1))));  // out of a cycle
            const int right = z.at ? n : last + 1, top = z.at ? 0 : first;
            for (int k = first; k < last; k++) {
                const T f = k == first ? a(k, k) - shift : a(k, k - 1), g = k == first ? a(k + 1, k) : a(k + 1, k - 1);
                const R f_size = magnitude(f), g_size = magnitude(g), size = hypotenuse(f_size, g_size);
                const R c = size > 0 ? f_size / size : R(1);
                const T phase = f_size > 0 ? f / f_size : T(1), s = size > 0 ? phase * conjugate(g) / size : T(0);
                if (k == first) __syncthreads();  // the shift and f were read
                for (int j = k + t; j < right; j += threads) {
                    const T x = a(k, j), y = a(k + 1, j);
                    a(k, j) = x * c + s * y;
                    a(k + 1, j) = y * c - conjugate(s) * x;
                }
                __syncthreads();
                const int rows = (k + 2 < last ? k + 2 : last) + 1 - top;
                for (int i = t; i < rows + (z.at ? n : 0); i += threads) {
                    const Matrix<T>& m = i < rows ? a : z;
                    const int row = i < rows ? top + i : i - rows;
                    const T x = m(row, k), y = m(row, k + 1);
                    m(row, k) = x * c + conjugate(s) * y;
                    m(row, k + 1) = y * c - s * x;
                }
                if (t == 0 && k > first) a(k, k - 1) = phase * size, a(k + 1, k - 1) = T(0);
                __syncthreads();
            }
        }
        __syncthreads();
        if (t == 0 && last > 0 && p.info[b] == 0) p.info[b] = last + 1;
        if (p.staged) {
            for (int i = t; i < n * n; i += threads) {
                a0(i % n, i / n) = a.at[i];
                if (z.at) z0(i % n, i / n) = z.at[i];
            }
        }
        __syncthreads();
    }
}

// Column k of b: the eigenvector of the triangle a for its k-th diagonal element, a warp a vector.
template <class T>
__device__ __forceinline__ void triangle_vectors(const Task& p) {
    using R = real_t<T>;
    const int n = p.a.rows, lane = threadIdx.x % kWarp;
    const long long warps = static_cast<long long>(gridDim.x) * blockDim.x / kWarp;
    for (long long item_ = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp; item_ < p.batch * n; item_ += warps) {
        const long long b = item_ / n;
        const int k = item_ % n;
        const Matrix<T> a = item<T>(p.a, b), x = item<T>(p.b, b);
        const R norm = static_cast<const R*>(p.values)[2 * b + 1] * n, least = norm > 0 ? norm : kEpsilon<R>;
        const T value = a(k, k);
        for (int i = lane; i < n; i += kWarp) x(i, k) = i < k ? -a(i, k) : i == k ? T(1) : T(0);
        __syncwarp();
        for (int j = k - 1; j >= 0; j--) {
            T divisor = a(j, j) - value;
            if (!(magnitude(divisor) > least)) divisor = T(least);  // equal values
            const T solved = x(j, k) / divisor;
            const R size = measure(solved), again = size > kHuge<R> ? 1 / size : R(1);
            __syncwarp();
            for (int i = lane; i <= k; i += kWarp) {
                if (i == j) x(i, k) = solved * again;
                else if (i < j) x(i, k) = (x(i, k) - a(i, j) * solved) * again;
                else if (again != 1) x(i, k) = x(i, k) * again;
            }
            __syncwarp();
        }
    }
}

// b: the diagonal of a without its scale. Of real matrices (p.pivoting) pivots name each value's conjugate, the nearest of all: itself
// where it is real. A block a matrix.
template <class T>
__device__ __forceinline__ void schur_values(const Task& p) {
    using R = real_t<T>;
    const int n = p.a.rows;
    for (long long b = blockIdx.x; b < p.batch; b += gridDim.x) {
        const Matrix<T> a = item<T>(p.a, b);
        int* const partners = p.pivots + b * n;
        const int exponent = static_cast<int>(static_cast<const R*>(p.values)[2 * b]);
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            int nearest = i;
            if (p.pivoting) {
                const T mirrored = conjugate(a(i, i));
                R distance = magnitude(mirrored - a(i, i));
                for (int j = 0; j < n; j++) {
                    const R other = magnitude(mirrored - a(j, j));
                    if (other < distance) distance = other, nearest = j;
                }
            }
            partners[i] = nearest;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < n; i += blockDim.x) {
            T value = a(i, i);
            const int j = partners[i];
            if (p.pivoting && j == i) value = T(value.re);
            else if (p.pivoting && partners[j] == i) value = T((value.re + a(j, j).re) / 2, (value.im - a(j, j).im) / 2);
            static_cast<T*>(p.b.at)[b * n + i] = T(static_cast<R>(::ldexp(value.re, exponent)), static_cast<R>(::ldexp(value.im, exponent)));
        }
        __syncthreads();
    }
}

// Columns of a to b with norm 1 and a real largest element, a warp a column. Of real matrices (p.pivoting) with schur_values' pivots:
// real ones for real values, conjugates for conjugate values.
template <class T>
__device__ __forceinline__ void unit_columns(const Task& p) {
    using R = real_t<T>;
    const int n = p.a.rows, lane = threadIdx.x % kWarp;
    const long long warps = static_cast<long long>(gridDim.x) * blockDim.x / kWarp;
    for (long long item_ = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp; item_ < p.batch * n; item_ += warps) {
        const long long b = item_ / n;
        const int col = item_ % n;
        const Matrix<T> a = item<T>(p.a, b), to = item<T>(p.b, b);
        const int* const partners = p.pivots + b * n;
        const bool real = p.pivoting && partners[col] == col, mirrored = p.pivoting && !real && partners[partners[col]] == col && partners[col] < col;
        const int from = mirrored ? partners[col] : col;
        T largest(0);
        for (int i = lane; i < n; i += kWarp) {
            if (magnitude(a(i, from)) > magnitude(largest)) largest = a(i, from);
        }
        for (int mask = kWarp / 2; mask; mask /= 2) {  // the lower lane wins a draw, so that all agree
            const T other = lane_xor(largest, mask);
            const R mine = magnitude(largest), theirs = magnitude(other);
            if (theirs > mine || theirs == mine && lane & mask) largest = other;
        }
        const R size = magnitude(largest);
        const T turn = size > 0 ? conjugate(largest) / size / size : T(1);
        R sum = 0;
        for (int i = lane; i < n; i += kWarp) {
            const T x = a(i, from) * turn;
            sum += real ? x.re * x.re : square_of(x);
        }
        sum = root(warp_sum(sum));
        for (int i = lane; i < n; i += kWarp) {
            T x = a(i, from) * turn / sum;
            if (real) x.im = 0;
            to(i, col) = conjugate_if(mirrored, x);
        }
    }
}

}  // namespace trt
