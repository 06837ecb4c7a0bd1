// One warp multiplies small matrices with each instruction of cuda_src/mma.cuh: fragments are loaded by ldmatrix where it
// applies and element by element elsewhere. Matrices are row-major: c (M, N) += a (M, K) @ b (K, N), N = 8.
#include "mma.cuh"

using namespace trt;

template <class T>
__device__ void product_16(float* c, const T* a, const T* b) {
    __shared__ __align__(16) T tile_a[16 * 16], tile_b[16 * 8];
    const int lane = threadIdx.x;
    copy_async<16>(tile_a + lane * 8, a + lane * 8);
    copy_async_commit();
    copy_async<8>(tile_b + lane * 4, b + lane * 4);
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
    unsigned fragment_a[4], fragment_b[2];
    load_matrix(fragment_a, tile_a + lane % 16 * 16 + lane / 16 * 8);
    load_matrix<2, true>(fragment_b, tile_b + lane % 16 * 8);
    const int g = lane / 4, t = lane % 4;
    float sums[4] = {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t], c[(g + 8) * 8 + 2 * t + 1]};
    mma_m16n8k16<T>(sums, fragment_a, fragment_b);
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
}
extern "C" __global__ void product_f16(float* c, const __half* a, const __half* b) { product_16(c, a, b); }
extern "C" __global__ void product_bf16(float* c, const __nv_bfloat16* a, const __nv_bfloat16* b) { product_16(c, a, b); }

extern "C" __global__ void product_tf32(float* c, const float* a, const float* b) {
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    const unsigned fragment_a[4] = {to_tf32(a[g * 8 + t]), to_tf32(a[(g + 8) * 8 + t]), to_tf32(a[g * 8 + t + 4]),
                                    to_tf32(a[(g + 8) * 8 + t + 4])};
    const unsigned fragment_b[2] = {to_tf32(b[t * 8 + g]), to_tf32(b[(t + 4) * 8 + g])};
    float sums[4] = {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t], c[(g + 8) * 8 + 2 * t + 1]};
    mma_tf32_m16n8k8(sums, fragment_a, fragment_b);
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
}

extern "C" __global__ void product_s8(int* c, const signed char* a, const signed char* b) {
    __shared__ __align__(16) signed char tile_a[16 * 32];
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    for (int i = 0; i < 16; i++) tile_a[lane * 16 + i] = a[lane * 16 + i];
    __syncwarp();
    // Two neighbours in k are one 16-bit element for ldmatrix.
    unsigned fragment_a[4], fragment_b[2] = {0, 0};
    load_matrix(fragment_a, tile_a + lane % 16 * 32 + lane / 16 * 16);
    for (int i = 0; i < 8; i++) {
        const unsigned byte = static_cast<unsigned char>(b[(4 * t + i % 4 + i / 4 * 16) * 8 + g]);
        fragment_b[i / 4] |= byte << 8 * (i % 4);
    }
    int sums[4] = {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1], c[(g + 8) * 8 + 2 * t], c[(g + 8) * 8 + 2 * t + 1]};
    mma_s8_m16n8k32(sums, fragment_a, fragment_b);
    for (int i = 0; i < 4; i++) c[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sums[i];
}

extern "C" __global__ void product_f64(double* c, const double* a, const double* b) {
    const int lane = threadIdx.x, g = lane / 4, t = lane % 4;
    double sums[2] = {c[g * 8 + 2 * t], c[g * 8 + 2 * t + 1]};
    mma_f64_m8n8k4(sums, a[g * 4 + t], b[t * 8 + g]);
    c[g * 8 + 2 * t] = sums[0];
    c[g * 8 + 2 * t + 1] = sums[1];
}

// Transposes an 8 x 8 matrix of 16-bit elements four times, by the one- and four-matrix forms.
extern "C" __global__ void transpose(unsigned* out, const unsigned short* in) {
    __shared__ __align__(16) unsigned short tile[64];
    const int lane = threadIdx.x;
    tile[lane] = in[lane];
    tile[lane + 32] = in[lane + 32];
    __syncthreads();
    unsigned one[1], four[4];
    load_matrix<1, true>(one, tile + lane % 8 * 8);
    load_matrix<4, true>(four, tile + lane % 8 * 8);
    out[lane] = one[0];
    for (int i = 0; i < 4; i++) out[32 * (i + 1) + lane] = four[i];
}

// Sums tiles of a block's threads through a ring of two stages that is filled in the background. `mistake` leaves something
// out: 1 the wait, 2 the barrier after reading, 3 waits for one group too few.
extern "C" __global__ void staged_sum(float* out, const float* in, int tiles, int rest, int mistake) {
    __shared__ __align__(16) float stage[2][4 * 64];
    const int i = threadIdx.x;
    auto fill = [&](int tile) {
        copy_async<16>(&stage[tile % 2][4 * i], in + (tile * 64 + i) * 4, tile < tiles - 1 || i < rest);
        copy_async_commit();
    };
    float sum = 0.0f;
    fill(0);
    for (int tile = 0; tile < tiles; tile++) {
        if (tile + 1 < tiles) fill(tile + 1);
        if (mistake == 3) {
            copy_async_wait<1>();
        } else if (mistake != 1) {
            if (tile + 1 < tiles) {
                copy_async_wait<1>();
            } else {
                copy_async_wait<0>();
            }
        }
        __syncthreads();
        for (int k = 0; k < 4; k++) sum += stage[tile % 2][4 * (63 - i) + k];
        if (mistake != 2) __syncthreads();
    }
    out[i] = sum;
}

// Half types: out[0..] are results of intrinsics on pairs, atomics on half types.
extern "C" __global__ void half_arithmetic(float* out, __half* half_sum, __nv_bfloat16* bfloat16_sum, double* double_sum,
                                           unsigned long long* word_sum, unsigned short* count) {
    const int i = threadIdx.x;
    const __half2 a = __floats2half2_rn(1.5f + i, -2.0f), b = __float2half2_rn(0.25f);
    const __half2 fused = __hfma2(a, b, __hadd2(a, b));
    const __nv_bfloat162 c = __floats2bfloat162_rn(i, 3.0f), d = __hmul2(c, c);
    out[4 * i] = __low2float(fused);
    out[4 * i + 1] = __high2float(fused);
    out[4 * i + 2] = __low2float(__hmax2(d, __float2bfloat162_rn(50.0f)));
    out[4 * i + 3] = __half2float(hexp(__float2half(0.5f))) + (__hlt(a.x, b.x) ? 100.0f : 0.0f);
    atomicAdd(half_sum, __float2half(0.5f));
    atomicAdd(bfloat16_sum, __float2bfloat16(2.0f));
    atomicAdd(double_sum, 0.1);
    atomicAdd(word_sum, 1ull << 40);
    const long long wide = __shfl_xor_sync(~0u, (1ll << 40) + i, 1);
    const unsigned equal = __reduce_add_sync(~0u, static_cast<unsigned>(wide & 31));
    int same;
    const unsigned all = __match_all_sync(~0u, equal, &same);
    if (all != ~0u || !same || equal != 496) return;
    unsigned short seen = *count, expected;
    do {
        expected = seen;
        seen = atomicCAS(count, expected, static_cast<unsigned short>(expected + 1));
    } while (seen != expected);
}
