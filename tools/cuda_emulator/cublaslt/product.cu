// The stand-in's product: an element of d per thread, sums in the widest type there is, so that nothing about NVIDIA's rounding is claimed
// beyond the factors' (tf32's ten bits) and the result's.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <math.h>
#include <string.h>

#include "product.h"

struct Number { double re, im; };

__device__ Number load(const void* p, int type, long long i) {
    switch (type) {
        case 0: return {static_cast<const float*>(p)[i], 0};
        case 1: return {static_cast<const double*>(p)[i], 0};
        case 2: return {__half2float(static_cast<const __half*>(p)[i]), 0};
        case 3: return {static_cast<double>(static_cast<const signed char*>(p)[i]), 0};
        case 4: return {static_cast<const float*>(p)[2 * i], static_cast<const float*>(p)[2 * i + 1]};
        case 5: return {static_cast<const double*>(p)[2 * i], static_cast<const double*>(p)[2 * i + 1]};
        case 10: return {static_cast<double>(static_cast<const int*>(p)[i]), 0};
        default: return {__bfloat162float(static_cast<const __nv_bfloat16*>(p)[i]), 0};
    }
}

__device__ void store(void* p, int type, long long i, Number x) {
    switch (type) {
        case 0: static_cast<float*>(p)[i] = static_cast<float>(x.re); break;
        case 1: static_cast<double*>(p)[i] = x.re; break;
        case 2: static_cast<__half*>(p)[i] = __float2half_rn(static_cast<float>(x.re)); break;
        case 4: static_cast<float*>(p)[2 * i] = static_cast<float>(x.re), static_cast<float*>(p)[2 * i + 1] = static_cast<float>(x.im); break;
        case 5: static_cast<double*>(p)[2 * i] = x.re, static_cast<double*>(p)[2 * i + 1] = x.im; break;
        case 10: static_cast<int*>(p)[i] = static_cast<int>(static_cast<long long>(x.re)); break;
        default: static_cast<__nv_bfloat16*>(p)[i] = __float2bfloat16_rn(static_cast<float>(x.re));
    }
}

__device__ Number times(Number x, Number y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }

__device__ double to_tf32(double x) {
    const unsigned bits = __float_as_uint(static_cast<float>(x));
    return (bits & 0x7F800000u) == 0x7F800000u ? x : __uint_as_float((bits + 0x1000u) & 0xFFFFE000u);
}

extern "C" __global__ void product(const Product p) {
    const long long index = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    if (index < p.workspace_size) p.workspace[index] = 0;  // shows where nobody may write
    if (index >= p.m * p.n * p.batch) return;
    const long long batch = index / (p.m * p.n), row = index % p.m, col = index / p.m % p.n;
    Number sum = {0, 0};
    for (long long k = 0; k < p.k; k++) {
        Number x = load(p.a, p.type_ab, batch * p.batch_a + (p.transpose_a ? k + row * p.lda : row + k * p.lda));
        Number y = load(p.b, p.type_ab, batch * p.batch_b + (p.transpose_b ? col + k * p.ldb : k + col * p.ldb));
        if (p.compute == 77) x = {to_tf32(x.re), to_tf32(x.im)}, y = {to_tf32(y.re), to_tf32(y.im)};
        const Number xy = times(x, y);
        sum = {sum.re + xy.re, sum.im + xy.im};
    }
    const Number beta = load(p.beta, p.scale, 0);
    sum = times(load(p.alpha, p.scale, 0), sum);
    if (beta.re != 0 || beta.im != 0) {
        const Number c = times(beta, load(p.c, p.type_cd, batch * p.batch_c + row + col * p.ldc));
        sum = {sum.re + c.re, sum.im + c.im};
    }
    if (p.bias) sum.re += load(p.bias, p.type_cd, row).re;
    if (p.activation == 1) sum.re = sum.re > 0 ? sum.re : 0;
    if (p.activation == 2) sum.re = 0.5 * sum.re * (1 + tanh(0.7978845608028654 * (sum.re + 0.044715 * sum.re * sum.re * sum.re)));
    store(p.d, p.type_cd, batch * p.batch_d + row + col * p.ldd, sum);
}
