// Pooling over planes, and resampling by tables of taps. One thread makes one element of a result, of forward and backward passes
// alike: gradients gather from the windows that cover an element, so that nothing is added atomically. The host is cysrc/cuda/pool.pyx.
#pragma once

#include "iteration.cuh"
#include "pool_steps.h"

namespace trt {

struct Place {
    long long h, w, base, step;  // base: of the plane in an image of the other size; step between its positions
};

// Position i of an image of size h x w, and its plane in one of size other_h x other_w.
__device__ __forceinline__ Place place_of(const pool_launch& p, long long i, long long h, long long w, long long other) {
    Place at;
    if (p.call.last) {
        const long long c = i % p.call.channels, position = i / p.call.channels;
        at.w = position % w;
        at.h = position / w % h;
        at.base = position / w / h * other * p.call.channels + c;
        at.step = p.call.channels;
    } else {
        at.w = i % w;
        at.h = i / w % h;
        at.base = i / w / h * other;
        at.step = 1;
    }
    return at;
}

struct Span {
    long long begin, end;
};

// The inputs of window o, from `first` on in steps of the dilation, cut to the input.
__device__ __forceinline__ Span window(bool adaptive, long long o, long long in, long long out, long long kernel, long long stride, long long pad, long long dilation) {
    if (adaptive) return {o * in / out, ((o + 1) * in + out - 1) / out};
    long long begin = o * stride - pad, end = begin + (kernel - 1) * dilation + 1;
    if (begin < 0) begin += (-begin + dilation - 1) / dilation * dilation;
    return {begin, end < in ? end : in};
}

// The windows that may cover input i.
__device__ __forceinline__ Span covering(bool adaptive, long long i, long long in, long long out, long long kernel, long long stride, long long pad, long long dilation) {
    if (adaptive) return {i * out / in, ((i + 1) * out + in - 1) / in};
    const long long reach = i + pad - (kernel - 1) * dilation, end = (i + pad) / stride + 1;
    return {reach > 0 ? (reach + stride - 1) / stride : 0, end < out ? end : out};
}

#define TRT_EACH(i, n)                                                                                                \
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x, step_ = static_cast<long long>(gridDim.x) * blockDim.x; \
         i < (n); i += step_)
#define TRT_WINDOW_H(o) window(p.call.adaptive, o, p.call.in_h, p.call.out_h, p.call.kernel_h, p.call.stride_h, p.call.pad_h, p.call.dilation_h)
#define TRT_WINDOW_W(o) window(p.call.adaptive, o, p.call.in_w, p.call.out_w, p.call.kernel_w, p.call.stride_w, p.call.pad_w, p.call.dilation_w)

template <class T>
__device__ __forceinline__ void pool_max(const pool_launch& p) {
    const long long step_h = p.call.adaptive ? 1 : p.call.dilation_h, step_w = p.call.adaptive ? 1 : p.call.dilation_w;
    TRT_EACH(i, p.numel) {
        const Place at = place_of(p, i, p.call.out_h, p.call.out_w, p.call.in_h * p.call.in_w);
        const Span rows = TRT_WINDOW_H(at.h), columns = TRT_WINDOW_W(at.w);
        const T* const plane = static_cast<const T*>(p.x) + at.base;
        long long found = rows.begin * p.call.in_w + columns.begin;
        compute_t<T> best = convert<compute_t<T>>(plane[found * at.step]);
        for (long long h = rows.begin; h < rows.end; h += step_h) {
            for (long long w = columns.begin; w < columns.end; w += step_w) {
                const compute_t<T> value = convert<compute_t<T>>(plane[(h * p.call.in_w + w) * at.step]);
                if (value > best || (value != value && best == best)) {
                    best = value;
                    found = h * p.call.in_w + w;
                }
            }
        }
        static_cast<T*>(p.y)[i] = convert<T>(best);
        p.indices[i] = found;
    }
}

// x: the gradient of the maxima, y: that of the input.
template <class T>
__device__ __forceinline__ void pool_max_backward(const pool_launch& p) {
    TRT_EACH(i, p.numel) {
        const Place at = place_of(p, i, p.call.in_h, p.call.in_w, p.call.out_h * p.call.out_w);
        const Span rows = covering(p.call.adaptive, at.h, p.call.in_h, p.call.out_h, p.call.kernel_h, p.call.stride_h, p.call.pad_h, p.call.dilation_h);
        const Span columns = covering(p.call.adaptive, at.w, p.call.in_w, p.call.out_w, p.call.kernel_w, p.call.stride_w, p.call.pad_w, p.call.dilation_w);
        const long long own = at.h * p.call.in_w + at.w;
        compute_t<T> sum = 0;
        for (long long h = rows.begin; h < rows.end; h++) {
            for (long long w = columns.begin; w < columns.end; w++) {
                const long long o = at.base + (h * p.call.out_w + w) * at.step;
                if (p.indices[o] == own) sum += convert<compute_t<T>>(static_cast<const T*>(p.x)[o]);
            }
        }
        static_cast<T*>(p.y)[i] = convert<T>(sum);
    }
}

// What the sum of window (oh, ow) is divided by.
__device__ __forceinline__ long long divisor_of(const pool_launch& p, long long oh, long long ow, const Span& rows, const Span& columns) {
    if (!p.call.adaptive && p.call.divisor_override) return p.call.divisor_override;
    if (p.call.adaptive || !p.call.count_include_pad) return (rows.end - rows.begin) * (columns.end - columns.begin);
    const long long h = oh * p.call.stride_h - p.call.pad_h, w = ow * p.call.stride_w - p.call.pad_w;
    const long long below = h + p.call.kernel_h < p.call.in_h + p.call.pad_h ? h + p.call.kernel_h : p.call.in_h + p.call.pad_h;
    const long long right = w + p.call.kernel_w < p.call.in_w + p.call.pad_w ? w + p.call.kernel_w : p.call.in_w + p.call.pad_w;
    return (below - h) * (right - w);
}

template <class T>
__device__ __forceinline__ void pool_average(const pool_launch& p) {
    TRT_EACH(i, p.numel) {
        const Place at = place_of(p, i, p.call.out_h, p.call.out_w, p.call.in_h * p.call.in_w);
        const Span rows = TRT_WINDOW_H(at.h), columns = TRT_WINDOW_W(at.w);
        const T* const plane = static_cast<const T*>(p.x) + at.base;
        compute_t<T> sum = 0;
        for (long long h = rows.begin; h < rows.end; h++) {
            for (long long w = columns.begin; w < columns.end; w++) sum += convert<compute_t<T>>(plane[(h * p.call.in_w + w) * at.step]);
        }
        static_cast<T*>(p.y)[i] = rows.begin < rows.end && columns.begin < columns.end
            ? convert<T>(sum / static_cast<compute_t<T>>(divisor_of(p, at.h, at.w, rows, columns))) : convert<T>(0);
    }
}

template <class T>
__device__ __forceinline__ void pool_average_backward(const pool_launch& p) {
    TRT_EACH(i, p.numel) {
        const Place at = place_of(p, i, p.call.in_h, p.call.in_w, p.call.out_h * p.call.out_w);
        const Span outs = covering(p.call.adaptive, at.h, p.call.in_h, p.call.out_h, p.call.kernel_h, p.call.stride_h, p.call.pad_h, p.call.dilation_h);
        const Span across = covering(p.call.adaptive, at.w, p.call.in_w, p.call.out_w, p.call.kernel_w, p.call.stride_w, p.call.pad_w, p.call.dilation_w);
        compute_t<T> sum = 0;
        for (long long h = outs.begin; h < outs.end; h++) {
            for (long long w = across.begin; w < across.end; w++) {
                const Span rows = TRT_WINDOW_H(h), columns = TRT_WINDOW_W(w);
                sum += convert<compute_t<T>>(static_cast<const T*>(p.x)[at.base + (h * p.call.out_w + w) * at.step]) /
                       static_cast<compute_t<T>>(divisor_of(p, h, w, rows, columns));
            }
        }
        static_cast<T*>(p.y)[i] = convert<T>(sum);
    }
}

// ---- sliding windows ---------------------------------------------------------------------------------------------------

struct Windows {
    const void* x;
    void* y;
    long long numel, height, width, kh, kw, dh, dw, ph, pw, sh, sw, lh, lw;
};

// Columns (plane, tap, window) of images (plane, height, width).
template <class T>
__device__ __forceinline__ void window_columns(const Windows& p) {
    TRT_EACH(i, p.numel) {
        const long long ow = i % p.lw, oh = i / p.lw % p.lh, tap = i / p.lw / p.lh % (p.kh * p.kw), plane = i / p.lw / p.lh / (p.kh * p.kw);
        const long long h = oh * p.sh - p.ph + tap / p.kw * p.dh, w = ow * p.sw - p.pw + tap % p.kw * p.dw;
        static_cast<T*>(p.y)[i] = h >= 0 && h < p.height && w >= 0 && w < p.width ? static_cast<const T*>(p.x)[(plane * p.height + h) * p.width + w] : convert<T>(0);
    }
}

// The adjoint: every element sums the places that it has in the columns.
template <class T>
__device__ __forceinline__ void window_images(const Windows& p) {
    TRT_EACH(i, p.numel) {
        const long long w = i % p.width, h = i / p.width % p.height, plane = i / p.width / p.height;
        compute_t<T> sum = compute_t<T>(0);
        for (long long kh = 0; kh < p.kh; kh++) {
            const long long y = h + p.ph - kh * p.dh;
            if (y < 0 || y % p.sh || y / p.sh >= p.lh) continue;
            for (long long kw = 0; kw < p.kw; kw++) {
                const long long x = w + p.pw - kw * p.dw;
                if (x < 0 || x % p.sw || x / p.sw >= p.lw) continue;
                sum = sum + convert<compute_t<T>>(static_cast<const T*>(p.x)[((plane * p.kh * p.kw + kh * p.kw + kw) * p.lh + y / p.sh) * p.lw + x / p.sw]);
            }
        }
        static_cast<T*>(p.y)[i] = convert<T>(sum);
    }
}

// ---- resampling --------------------------------------------------------------------------------------------------------

// Result o of a dimension: the sum of weight[k] x[index[k]] for k from start[o] to start[o + 1].
template <class W>
struct Taps {
    const long long* start;
    const int* index;
    const W* weight;
};

template <class W>
struct Resample {
    const void* x;
    void* y;
    long long numel, inner;                // inner: channels of channels_last, otherwise 1
    long long in[3], out[3];
    Taps<W> taps[3];
};

template <class T, class W>
__device__ __forceinline__ void resample(const Resample<W>& p) {
    TRT_EACH(i, p.numel) {
        const long long c = i % p.inner, position = i / p.inner;
        const long long o[3] = {position / p.out[2] / p.out[1] % p.out[0], position / p.out[2] % p.out[1], position % p.out[2]};
        const long long plane = position / p.out[2] / p.out[1] / p.out[0];
        const T* const x = static_cast<const T*>(p.x) + plane * p.in[0] * p.in[1] * p.in[2] * p.inner + c;
        W sum = 0;
        for (long long a = p.taps[0].start[o[0]]; a < p.taps[0].start[o[0] + 1]; a++) {
            for (long long b = p.taps[1].start[o[1]]; b < p.taps[1].start[o[1] + 1]; b++) {
                const T* const line = x + (p.taps[0].index[a] * p.in[1] + p.taps[1].index[b]) * p.in[2] * p.inner;
                W part = 0;
                for (long long k = p.taps[2].start[o[2]]; k < p.taps[2].start[o[2] + 1]; k++) part += p.taps[2].weight[k] * convert<W>(line[p.taps[2].index[k] * p.inner]);
                sum += p.taps[0].weight[a] * p.taps[1].weight[b] * part;
            }
        }
        static_cast<T*>(p.y)[i] = convert<T>(sum);
    }
}

// ---- fractional max pooling ----------------------------------------------------------------------------------------------

// A step's number as the storage type rounds it; the operations are computed in T.
template <class T>
__device__ __forceinline__ T rounded_to(int dtype, T v) {
    if (dtype == DT_f16) return convert<T>(convert<__half>(v));
    if (dtype == DT_bf16) return convert<T>(convert<__nv_bfloat16>(v));
    return v;
}

template <class T>
__device__ __forceinline__ long long fractional_start(const fractional_call& a, int d, T sample, long long i) {
    if (i == a.out[d] - 1) return a.size[d] - a.kernel[d];
    const T alpha = rounded_to(a.rounding, rounded_to(a.rounding, T(a.size[d] - a.kernel[d])) / rounded_to(a.rounding, T(a.out[d] - 1)));
    return static_cast<long long>(rounded_to(a.rounding, rounded_to(a.rounding, T(i) + sample) * alpha)) - static_cast<long long>(rounded_to(a.rounding, sample * alpha));
}

template <class T>
__device__ __forceinline__ void fractional_max(const fractional_call& a, long long at) {
    const long long in_plane = a.size[0] * a.size[1] * a.size[2], out_plane = a.out[0] * a.out[1] * a.out[2];
    const long long plane = at / out_plane, i = at % out_plane;
    const T *x = reinterpret_cast<const T*>(a.x) + plane * in_plane, *sample = reinterpret_cast<const T*>(a.samples) + plane * a.dims;
    const long long s0 = a.dims == 3 ? fractional_start(a, 0, sample[0], i / a.out[2] / a.out[1]) : 0;
    const long long s1 = fractional_start(a, 1, sample[1], i / a.out[2] % a.out[1]), s2 = fractional_start(a, 2, sample[a.dims == 3 ? 2 : 0], i % a.out[2]);
    long long best = (s0 * a.size[1] + s1) * a.size[2] + s2;
    T most = -T(INFINITY);
    for (long long k0 = s0; k0 < s0 + a.kernel[0]; k0++)
        for (long long k1 = s1; k1 < s1 + a.kernel[1]; k1++)
            for (long long k2 = s2; k2 < s2 + a.kernel[2]; k2++) {
                const long long place = (k0 * a.size[1] + k1) * a.size[2] + k2;
                const T v = x[place];
                if (v > most || v != v) {
                    most = v;
                    best = place;
                }
            }
    reinterpret_cast<T*>(a.y)[at] = most;
    a.indices[at] = best;
}

}  // namespace trt
