// Kernels for the emulator's own tests: what block-level CUDA code uses, and the errors it has to catch.
#include <cassert>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

template <class T>
__device__ T warp_sum(T value) {
    for (int offset = 16; offset; offset >>= 1) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

// out[0] += sum of a: shuffles within a warp, shared memory between warps, an atomic between blocks.
extern "C" __global__ void __launch_bounds__(1024) block_sum(float* out, const float* a, int n) {
    __shared__ float partial[32];
    float sum = 0.0f;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = warp_sum(threadIdx.x < (blockDim.x + 31) / 32 ? partial[threadIdx.x] : 0.0f);
        if (threadIdx.x == 0) atomicAdd(out, sum);
    }
}

// c (M, N) = a (M, K) @ b (K, N) with tiles in dynamic shared memory. Without the second barrier, a fast thread
// overwrites a tile that others still read.
template <bool kSecondBarrier>
__device__ void matmul(float* c, const float* a, const float* b, int M, int N, int K) {
    constexpr int kTile = 8;
    extern __shared__ __align__(16) float tiles[];
    float *tile_a = tiles, *tile_b = tiles + kTile * kTile;
    int tx = threadIdx.x, ty = threadIdx.y, row = blockIdx.y * kTile + ty, column = blockIdx.x * kTile + tx;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += kTile) {
        tile_a[ty * kTile + tx] = row < M && k0 + tx < K ? a[row * K + k0 + tx] : 0.0f;
        tile_b[ty * kTile + tx] = column < N && k0 + ty < K ? b[(k0 + ty) * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < kTile; k++) sum += tile_a[ty * kTile + k] * tile_b[k * kTile + tx];
        if (kSecondBarrier) __syncthreads();
    }
    if (row < M && column < N) c[row * N + column] = sum;
}
extern "C" __global__ void matmul_tiled(float* c, const float* a, const float* b, int M, int N, int K) {
    matmul<true>(c, a, b, M, N, K);
}
extern "C" __global__ void matmul_missing_barrier(float* c, const float* a, const float* b, int M, int N, int K) {
    matmul<false>(c, a, b, M, N, K);
}

// Reverses each block's elements through shared memory; `staged` chooses the version with the barrier.
extern "C" __global__ void reverse_block(int* out, const int* in, int staged) {
    __shared__ int line[256];
    int base = blockIdx.x * blockDim.x;
    line[threadIdx.x] = in[base + threadIdx.x];
    if (staged) __syncthreads();
    out[base + threadIdx.x] = line[blockDim.x - 1 - threadIdx.x];
}

// Four results per thread: shuffles under sub-masks in divergent halves, a counting barrier with early exits, a
// ballot in a loop whose length differs between the halves, and an 8-byte shuffle within segments of 8.
extern "C" __global__ void divergent_collectives(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    if (i >= n) return;
    __shared__ int arrivals;
    if (threadIdx.x == 0) arrivals = 0;
    __syncthreads();
    unsigned half = lane < 16 ? 0x0000ffffu : 0xffff0000u;
    int shuffled = lane < 16 ? __shfl_xor_sync(half, i, 3) : __shfl_down_sync(half, i, 2, 16);
    atomicAdd(&arrivals, 1);
    int odd = __syncthreads_count(i & 1);
    unsigned ballot = 0;
    for (int k = 0; k < (lane < 16 ? 3 : 5); k++) ballot = __ballot_sync(half, (i >> k) & 1);
    double wide = __shfl_sync(~0u, i + 0.5, 5, 8);
    out[4 * i] = shuffled;
    out[4 * i + 1] = odd * 10000 + arrivals;
    out[4 * i + 2] = static_cast<int>(ballot);
    out[4 * i + 3] = static_cast<int>(2 * wide);
}

// Each value to half or bfloat16 and back.
extern "C" __global__ void round_half(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __half2float(__float2half_rn(in[i]));
}
extern "C" __global__ void round_bfloat16(float* out, const float* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = __bfloat162float(__float2bfloat16_rn(in[i]));
}

// Errors.
extern "C" __global__ void barrier_in_two_branches(float* out) {
    if (threadIdx.x < 7) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    out[threadIdx.x] = 1.0f;
}
extern "C" __global__ void barrier_against_shuffle(float* out) {
    if (threadIdx.x < 7) {
        out[0] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
    } else {
        __syncthreads();
    }
}
extern "C" __global__ void shuffle_with_exited_lane(float* out) {
    if (threadIdx.x == 3) return;
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.0f, 1);
}
extern "C" __global__ void shared_index(float* out, int offset) {
    __shared__ float line[32];
    line[threadIdx.x] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = line[threadIdx.x + offset];
}
extern "C" __global__ void dynamic_shared_index(float* out, int offset) {
    extern __shared__ float line[];
    line[threadIdx.x + offset] = 1.0f;
    __syncthreads();
    out[threadIdx.x] = line[threadIdx.x];
}
extern "C" __global__ void global_index(float* out, long long offset) {
    __syncthreads();
    out[threadIdx.x + offset] = 1.0f;
}

// What the checks of streams and graphs launch.
__device__ int counter = 5;
__constant__ float table[3] = {1.0f, 2.0f, 3.0f};
extern "C" __global__ void set_value(int* out, int value, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = value;
}
extern "C" __global__ void multiply_add(int* out, const int* in, int factor, int summand, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * in[i] + summand;
}
extern "C" __global__ void use_variables(float* out) {
    atomicAdd(&counter, 1);
    if (threadIdx.x < 3) out[threadIdx.x] = table[threadIdx.x];
}
extern "C" __global__ void assert_positive(const int* x) { assert(x[threadIdx.x] > 0); }
extern "C" __global__ void copy_vectors(int* out, const int* in, int offset) {
    reinterpret_cast<int4*>(out)[threadIdx.x] = reinterpret_cast<const int4*>(in + offset)[threadIdx.x];
}
