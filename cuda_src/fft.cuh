// Fourier transforms along one dimension: Stockham's self-sorting passes in shared memory, as cysrc/loops/fft_real.h has them in registers.
//
//   fft_lines  lines that fit in shared memory, several a block: read, transformed, written, with the convolution of a length with a large prime
//   fft_pass   one pass of a longer line, of a radix of up to some hundred, which is itself transformed in shared memory: neighbouring
//              columns of the line's matrix a block, so that memory is read in whole sectors. The first reads the operand, the last writes the result
//
// Columns are innermost in shared memory. All loop over the grid. Real lines are transformed as complex ones.
#pragma once

#include "fft_steps.h"
#include "iteration.cuh"

namespace trt {

// exp(-2 pi i j k / R) of the small radices by sums; others by the table.
template <int R, class T>
__device__ __forceinline__ void fft_butterfly(complex<T>* v) {
    using C = complex<T>;
    if constexpr (R == 2) {
        const C a = v[0], b = v[1];
        v[0] = a + b, v[1] = a - b;
    } else if constexpr (R == 3) {
        const C a = v[0], t = v[1] + v[2], u = v[1] - v[2], h = a - T(0.5) * t;
        const T k = T(0.86602540378443864676);
        const C g(k * u.im, -k * u.re);
        v[0] = a + t, v[1] = h + g, v[2] = h - g;
    } else if constexpr (R == 4) {
        const C t = v[0] + v[2], u = v[0] - v[2], w = v[1] + v[3], d = v[1] - v[3], z(d.im, -d.re);
        v[0] = t + w, v[1] = u + z, v[2] = t - w, v[3] = u - z;
    } else {
        const T c1 = T(0.30901699437494742410), c2 = T(-0.80901699437494742410), s1 = T(0.95105651629515357212), s2 = T(0.58778525229247312917);
        const C a = v[0], t1 = v[1] + v[4], t2 = v[2] + v[3], t3 = v[1] - v[4], t4 = v[2] - v[3];
        const C h1 = a + c1 * t1 + c2 * t2, h2 = a + c2 * t1 + c1 * t2, e1 = s1 * t3 + s2 * t4, e2 = s2 * t3 - s1 * t4;
        const C g1(e1.im, -e1.re), g2(e2.im, -e2.re);
        v[0] = a + t1 + t2, v[1] = h1 + g1, v[2] = h2 + g2, v[3] = h2 - g2, v[4] = h1 - g1;
    }
}

// One pass over `columns` lines of m * r * s numbers; roots[j * step] is exp(-2 pi i j / (m * r * s)).
template <int R, class T>
__device__ __forceinline__ void fft_radix_pass(const complex<T>* x, complex<T>* y, int m, int s, int columns, const complex<T>* roots, long long step) {
    for (int t = threadIdx.x; t < m * s * columns; t += blockDim.x) {
        const int c = t % columns, i = t / columns, q = i % s, p = i / s;
        complex<T> v[R];
        #pragma unroll
        for (int j = 0; j < R; j++) v[j] = x[(i + s * m * j) * columns + c];
        fft_butterfly<R>(v);
        #pragma unroll
        for (int k = 0; k < R; k++) y[(q + s * (R * p + k)) * columns + c] = k == 0 || p == 0 ? v[k] : v[k] * roots[static_cast<long long>(p * k) * s * step];
    }
}

// The same of any radix: a thread makes one output.
template <class T>
__device__ __forceinline__ void fft_prime_pass(const complex<T>* x, complex<T>* y, int r, int m, int s, int columns, const complex<T>* roots, long long step) {
    for (int t = threadIdx.x; t < r * m * s * columns; t += blockDim.x) {
        const int c = t % columns, o = t / columns, q = o % s, k = o / s % r, p = o / s / r;
        complex<T> sum = x[(q + s * p) * columns + c];
        int turn = 0;
        for (int j = 1; j < r; j++) {
            turn = turn + k < r ? turn + k : turn + k - r;
            sum = sum + x[(q + s * p + s * m * j) * columns + c] * roots[static_cast<long long>(turn) * m * s * step];
        }
        y[o * columns + c] = sum * roots[static_cast<long long>(p * k) * s * step];
    }
}

// `columns` lines of n numbers in a, by way of b; returns whichever holds the result. Every thread of the block calls it.
template <class T>
__device__ __forceinline__ complex<T>* fft_in_shared(complex<T>* a, complex<T>* b, int n, int columns, const fft_call& l) {
    const complex<T>* roots = reinterpret_cast<const complex<T>*>(l.roots);
    const long long step = l.length / n;
    int m = n, s = 1;
    for (int i = 0; i < l.factors; i++) {
        const int r = l.radices[i];
        m /= r;
        if (r == 4) fft_radix_pass<4>(a, b, m, s, columns, roots, step);
        else if (r == 2) fft_radix_pass<2>(a, b, m, s, columns, roots, step);
        else if (r == 3) fft_radix_pass<3>(a, b, m, s, columns, roots, step);
        else if (r == 5) fft_radix_pass<5>(a, b, m, s, columns, roots, step);
        else fft_prime_pass(a, b, r, m, s, columns, roots, step);
        __syncthreads();
        s *= r;
        complex<T>* t = a;
        a = b, b = t;
    }
    return a;
}

// Where a line begins, in elements.
static __device__ __forceinline__ void fft_offsets(const fft_call& l, long long line, long long& x, long long& y) {
    x = y = 0;
    for (int d = l.dims - 1; d >= 0; d--) {
        const long long i = line % l.size[d];
        line /= l.size[d];
        x += i * l.x_strides[d];
        y += i * l.y_strides[d];
    }
}

// Number k of what is transformed: the inverse swaps real and imaginary parts on both ends, a Hermitian half is mirrored.
template <class T>
__device__ __forceinline__ complex<T> fft_load(const fft_call& l, long long offset, long long k) {
    complex<T> v;
    if (k >= l.n) return v;
    if (l.kind == FFT_R2C) {
        v.re = reinterpret_cast<const T*>(l.x)[offset + k * l.x_stride];
    } else if (l.kind == FFT_C2C) {
        v = reinterpret_cast<const complex<T>*>(l.x)[offset + k * l.x_stride];
    } else {
        const bool mirrored = 2 * k > l.n;
        v = reinterpret_cast<const complex<T>*>(l.x)[offset + (mirrored ? l.n - k : k) * l.x_stride];
        if (k == 0 || 2 * k == l.n) v.im = T(0);  // zero in a Hermitian spectrum; what is given there is ignored
        if (mirrored) v.im = -v.im;
    }
    if (l.inverse && l.kind != FFT_R2C) v = complex<T>(v.im, v.re);
    return l.chirp ? v * reinterpret_cast<const complex<T>*>(l.chirp)[k] : v;
}

template <class T>
__device__ __forceinline__ void fft_store(const fft_call& l, long long offset, long long k, complex<T> v) {
    if (k >= l.n) return;
    if (l.chirp) v = conj(v) * reinterpret_cast<const complex<T>*>(l.chirp)[k];
    v = v * T(l.scale);
    if (l.kind == FFT_C2R) {
        reinterpret_cast<T*>(l.y)[offset + k * l.y_stride] = l.inverse ? v.im : v.re;
        return;
    }
    complex<T>* y = reinterpret_cast<complex<T>*>(l.y) + offset;
    if (l.kind == FFT_C2C) {
        y[k * l.y_stride] = l.inverse ? complex<T>(v.im, v.re) : v;
        return;
    }
    if (2 * k > l.n) return;
    if (l.inverse) v.im = -v.im;
    y[k * l.y_stride] = v;
    if (l.twosided && k > 0 && 2 * k < l.n) y[(l.n - k) * l.y_stride] = conj(v);
}

template <class T>
__device__ __forceinline__ complex<T> fft_multiplied(const fft_call& l, long long k, complex<T> v) {
    return conj(v * reinterpret_cast<const complex<T>*>(l.spectrum)[k]);  // conjugated, so that the next transform is an inverse one
}

constexpr int kFftColumns = 64;  // lines a block at most

template <class T>
__device__ __forceinline__ void fft_lines(const fft_call& l) {
    extern __shared__ __align__(16) unsigned char dynamic[];
    __shared__ long long x_of[kFftColumns], y_of[kFftColumns];
    const int n = static_cast<int>(l.length), columns = l.columns;
    complex<T>* const a = reinterpret_cast<complex<T>*>(dynamic);
    complex<T>* const b = a + n * columns;
    for (long long group = blockIdx.x; group * columns < l.lines; group += gridDim.x) {
        const long long rest = l.lines - group * columns;
        const int count = rest < columns ? static_cast<int>(rest) : columns;
        for (int c = threadIdx.x; c < count; c += blockDim.x) fft_offsets(l, group * columns + c, x_of[c], y_of[c]);
        __syncthreads();
        for (int t = threadIdx.x; t < n * columns; t += blockDim.x) {
            const int c = l.by_lines ? t % columns : t / n, k = l.by_lines ? t / columns : t % n;
            a[k * columns + c] = c < count ? fft_load<T>(l, x_of[c], k) : complex<T>();
        }
        __syncthreads();
        complex<T>* done = fft_in_shared(a, b, n, columns, l);
        if (l.chirp) {
            for (int t = threadIdx.x; t < n * columns; t += blockDim.x) done[t] = fft_multiplied(l, t / columns, done[t]);
            __syncthreads();
            done = fft_in_shared(done, done == a ? b : a, n, columns, l);
        }
        for (int t = threadIdx.x; t < n * columns; t += blockDim.x) {
            const int c = l.by_lines ? t % columns : t / n, k = l.by_lines ? t / columns : t % n;
            if (c < count) fft_store(l, y_of[c], k, done[k * columns + c]);
        }
        __syncthreads();
    }
}

template <class T>
__device__ __forceinline__ void fft_pass(const fft_call& l) {
    extern __shared__ __align__(16) unsigned char dynamic[];
    const int r = l.radix, columns = l.columns;
    const long long width = l.m * l.s, tiles = (width + columns - 1) / columns;
    complex<T>* const a = reinterpret_cast<complex<T>*>(dynamic);
    complex<T>* const b = a + r * columns;
    const complex<T>* roots = reinterpret_cast<const complex<T>*>(l.roots);
    for (long long tile = blockIdx.x; tile < tiles * l.lines; tile += gridDim.x) {
        const long long line = tile / tiles, first = tile % tiles * columns;
        const int count = width - first < columns ? static_cast<int>(width - first) : columns;
        const complex<T>* source = reinterpret_cast<const complex<T>*>(l.source) + line * l.length;
        complex<T>* target = reinterpret_cast<complex<T>*>(l.target) + line * l.length;
        long long x_at = 0, y_at = 0;
        if (!l.source || !l.target) fft_offsets(l, l.first_line + line, x_at, y_at);
        for (int t = threadIdx.x; t < r * columns; t += blockDim.x) {
            const int c = t % columns;
            const long long k = first + c + width * (t / columns);
            a[t] = c >= count ? complex<T>() : l.source ? source[k] : fft_load<T>(l, x_at, k);
        }
        __syncthreads();
        const complex<T>* done = fft_in_shared(a, b, r, columns, l);
        for (int t = threadIdx.x; t < r * columns; t += blockDim.x) {
            // results of one column lie side by side where s is 1, columns of one result otherwise
            const int c = l.s == 1 ? t / r : t % columns, k = l.s == 1 ? t % r : t / columns;
            if (c >= count) continue;
            const long long column = first + c, p = column / l.s, q = column % l.s, at = (p * r + k) * l.s + q;
            complex<T> v = done[k * columns + c] * roots[p * k * l.s];
            if (l.multiplied) v = fft_multiplied(l, at, v);
            if (l.target) target[at] = v;
            else fft_store(l, y_at, at, v);
        }
        __syncthreads();
    }
}

}  // namespace trt
