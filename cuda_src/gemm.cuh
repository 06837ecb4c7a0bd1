// Matrix products C = alpha A B + beta D for every dtype and any of the four transpositions, as the host (cysrc/cuda/matmul.pyx)
// plans them:
//   gemm_tiles    a block computes a tile of C: two buffers of A and B in shared memory, the next pair on its way through registers
//                 while each thread multiplies its own small tile
//   gemm_mma      the same for half types on tensor cores: tiles go to shared memory in the background, warps multiply 16 x 8 x 16;
//                 for float, where tf32 is allowed, 16 x 8 x 8
//   gemv_rows     few columns of C, A by rows: a warp per row, all columns at once, so that A is read once
//   gemv_columns  few columns of C, A by columns: the threads of a warp side by side along a column
// All take batches by strides, and a deep product of few tiles in slices of k, which `gemm_sum` adds in their order: the same bits in
// every run. Half types are multiplied as float; integers wrap around.
#pragma once

#include "iteration.cuh"
#include "mma.cuh"

namespace trt {

// Mirrored by cysrc/cuda/matmul.pyx. Strides count elements; A and B are given so that one of their strides is 1.
struct Gemm {
    const void* a;
    const void* b;
    void* c;
    const void* d;      // the addend, or null
    void* partial;      // (batch, slices, m, n) sums of slices of k, or null
    long long m, n, k, batch;
    long long a_batch, a_line, b_batch, b_line;
    long long c_batch, c_row, c_col, d_batch, d_row, d_col;
    long long slices, depth;
    long long alpha[2], beta[2];  // the bits of numbers of the type that sums are kept in
};

template <class Acc>
__device__ __forceinline__ Acc number(const long long (&bits)[2]) {
    Acc value;  // copied: a complex number of two doubles asks for more alignment than the bits have
    memcpy(&value, bits, sizeof(Acc));
    return value;
}

// One element of C from the complete sum.
template <class T, class Acc>
__device__ __forceinline__ T finish(const Gemm& p, Acc sum, long long batch, long long row, long long col) {
    sum = sum * number<Acc>(p.alpha);
    if (p.d) {
        const T* d = static_cast<const T*>(p.d) + batch * p.d_batch + row * p.d_row + col * p.d_col;
        sum = sum + convert<Acc>(*d) * number<Acc>(p.beta);
    }
    return convert<T>(sum);
}

template <class T, class Acc>
__device__ __forceinline__ void write(const Gemm& p, Acc sum, long long slice, long long batch, long long row, long long col) {
    if (p.partial) {
        static_cast<Acc*>(p.partial)[((batch * p.slices + slice) * p.m + row) * p.n + col] = sum;
    } else {
        static_cast<T*>(p.c)[batch * p.c_batch + row * p.c_row + col * p.c_col] = finish<T>(p, sum, batch, row, col);
    }
}

__host__ __device__ constexpr int smaller(int a, int b) { return a < b ? a : b; }

// kOuter lines of kInner consecutive elements, on their way from global to shared memory in the registers of a block.
template <class T, int kOuter, int kInner, int kThreads>
struct TileInRegisters {
    static constexpr int kCount = kOuter * kInner / kThreads;
    static constexpr int kWidth = smaller(smaller(kVectorBytes / static_cast<int>(sizeof(T)), kCount), kInner);
    static constexpr int kVectors = kCount / kWidth;
    static constexpr int kPerLine = kInner / kWidth;
    Vector<T, kWidth> held[kVectors];

    __device__ __forceinline__ void load(const T* base, long long stride, long long outer_left, long long inner_left, bool aligned) {
#pragma unroll
        for (int i = 0; i < kVectors; i++) {
            const int vector = threadIdx.x + i * kThreads, outer = vector / kPerLine, inner = vector % kPerLine * kWidth;
            const T* from = base + outer * stride + inner;
            if (aligned && outer < outer_left && inner + kWidth <= inner_left) {
                held[i] = *reinterpret_cast<const Vector<T, kWidth>*>(from);
            } else {
#pragma unroll
                for (int j = 0; j < kWidth; j++) held[i].at[j] = outer < outer_left && inner + j < inner_left ? from[j] : convert<T>(0);
            }
        }
    }

    // Element (outer, inner) to shared[inner][outer] or to shared[outer][inner].
    template <bool kTransposed, class Acc>
    __device__ __forceinline__ void store(Acc* shared, int pitch) const {
#pragma unroll
        for (int i = 0; i < kVectors; i++) {
            const int vector = threadIdx.x + i * kThreads, outer = vector / kPerLine, inner = vector % kPerLine * kWidth;
#pragma unroll
            for (int j = 0; j < kWidth; j++) {
                shared[kTransposed ? (inner + j) * pitch + outer : outer * pitch + inner + j] = convert<Acc>(held[i].at[j]);
            }
        }
    }
};

template <int kWidth, class T>
__device__ __forceinline__ bool lines_aligned(const T* base, long long stride) {
    return is_aligned<kWidth>(base) && stride % kWidth == 0;
}

// The tile of block number `index`: eight rows of tiles go along the columns together, so that what they share stays in the L2 cache.
__device__ __forceinline__ void tile_of(long long index, long long rows, long long columns, long long& row, long long& column) {
    constexpr int kGroup = 8;
    const long long group = index / (kGroup * columns), first = group * kGroup;
    const long long height = rows - first < kGroup ? rows - first : kGroup;
    const long long inside = index - group * kGroup * columns;
    row = first + inside % height;
    column = inside / height;
}

// kARows: A's rows lie in memory one after the other (k is its inner dimension); kBRows: likewise B's (n is).
template <class T, class Acc, int kM, int kN, int kK, int kTM, int kTN, bool kARows, bool kBRows>
__device__ __forceinline__ void gemm_tiles(const Gemm& p) {
    constexpr int kThreads = (kM / kTM) * (kN / kTN);
    constexpr int kGroup = smaller(smaller(kTM, kTN), kVectorBytes / static_cast<int>(sizeof(Acc)));
    constexpr int kPad = kVectorBytes / static_cast<int>(sizeof(Acc));
    constexpr int kPitchA = kM + kPad, kPitchB = kN + kPad;
    constexpr int kGroupsM = kTM / kGroup, kGroupsN = kTN / kGroup;
    using TileA = TileInRegisters<T, kARows ? kM : kK, kARows ? kK : kM, kThreads>;
    using TileB = TileInRegisters<T, kBRows ? kK : kN, kBRows ? kN : kK, kThreads>;
    alignas(16) __shared__ unsigned char memory[2 * kK * (kPitchA + kPitchB) * sizeof(Acc)];
    Acc* const shared_a = reinterpret_cast<Acc*>(memory);
    Acc* const shared_b = shared_a + 2 * kK * kPitchA;

    const int across = threadIdx.x % (kN / kTN), down = threadIdx.x / (kN / kTN);
    long long tile_row, tile_column;
    tile_of(blockIdx.x, (p.m + kM - 1) / kM, (p.n + kN - 1) / kN, tile_row, tile_column);
    const long long row0 = tile_row * kM, col0 = tile_column * kN;

    for (long long z = blockIdx.z; z < p.batch * p.slices; z += gridDim.z) {
        const long long batch = z / p.slices, slice = z % p.slices;
        const long long k_begin = slice * p.depth, k_end = k_begin + p.depth < p.k ? k_begin + p.depth : p.k;
        const T* a = static_cast<const T*>(p.a) + batch * p.a_batch + (kARows ? row0 * p.a_line : row0);
        const T* b = static_cast<const T*>(p.b) + batch * p.b_batch + (kBRows ? col0 : col0 * p.b_line);
        const bool aligned_a = lines_aligned<TileA::kWidth>(a, p.a_line) && (!kARows || k_begin % TileA::kWidth == 0);
        const bool aligned_b = lines_aligned<TileB::kWidth>(b, p.b_line) && (kBRows || k_begin % TileB::kWidth == 0);
        TileA tile_a;
        TileB tile_b;
        const auto load = [&](long long k) {
            if (kARows) tile_a.load(a + k, p.a_line, p.m - row0, k_end - k, aligned_a);
            else tile_a.load(a + k * p.a_line, p.a_line, k_end - k, p.m - row0, aligned_a);
            if (kBRows) tile_b.load(b + k * p.b_line, p.b_line, k_end - k, p.n - col0, aligned_b);
            else tile_b.load(b + k, p.b_line, p.n - col0, k_end - k, aligned_b);
        };
        const auto store = [&](int buffer) {
            tile_a.template store<kARows>(shared_a + buffer * kK * kPitchA, kPitchA);
            tile_b.template store<!kBRows>(shared_b + buffer * kK * kPitchB, kPitchB);
        };

        Acc sum[kTM][kTN];
#pragma unroll
        for (int i = 0; i < kTM; i++) {
#pragma unroll
            for (int j = 0; j < kTN; j++) sum[i][j] = Acc(0);
        }
        if (k_begin < k_end) {
            load(k_begin);
            store(0);
        }
        __syncthreads();
        int buffer = 0;
        for (long long k = k_begin; k < k_end; k += kK, buffer ^= 1) {
            const bool more = k + kK < k_end;
            if (more) load(k + kK);
            const Acc* const lines_a = shared_a + buffer * kK * kPitchA + down * kGroup;
            const Acc* const lines_b = shared_b + buffer * kK * kPitchB + across * kGroup;
#pragma unroll
            for (int kk = 0; kk < kK; kk++) {
                Vector<Acc, kGroup> x[kGroupsM], y[kGroupsN];
#pragma unroll
                for (int g = 0; g < kGroupsM; g++) x[g] = *reinterpret_cast<const Vector<Acc, kGroup>*>(lines_a + kk * kPitchA + g * (kM / kGroupsM));
#pragma unroll
                for (int g = 0; g < kGroupsN; g++) y[g] = *reinterpret_cast<const Vector<Acc, kGroup>*>(lines_b + kk * kPitchB + g * (kN / kGroupsN));
#pragma unroll
                for (int i = 0; i < kTM; i++) {
#pragma unroll
                    for (int j = 0; j < kTN; j++) sum[i][j] = sum[i][j] + x[i / kGroup].at[i % kGroup] * y[j / kGroup].at[j % kGroup];
                }
            }
            // the other buffer was read before the last barrier
            if (more) store(buffer ^ 1);
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < kTM; i++) {
            const long long row = row0 + i / kGroup * (kM / kGroupsM) + down * kGroup + i % kGroup;
            if (row >= p.m) continue;
#pragma unroll
            for (int g = 0; g < kGroupsN; g++) {
                const long long col = col0 + g * (kN / kGroupsN) + across * kGroup;
                T* const c = static_cast<T*>(p.c) + batch * p.c_batch + row * p.c_row + col;
                if (!p.partial && p.c_col == 1 && col + kGroup <= p.n && is_aligned<kGroup>(c)) {
                    Vector<T, kGroup> line;
#pragma unroll
                    for (int j = 0; j < kGroup; j++) line.at[j] = finish<T>(p, sum[i][g * kGroup + j], batch, row, col + j);
                    *reinterpret_cast<Vector<T, kGroup>*>(c) = line;
                } else {
#pragma unroll
                    for (int j = 0; j < kGroup; j++) {
                        if (col + j < p.n) write<T>(p, sum[i][g * kGroup + j], slice, batch, row, col + j);
                    }
                }
            }
        }
    }
}

// ---- tensor cores ------------------------------------------------------------------------------------------------------

// Lines of shared memory are 16 bytes longer than they need be, so that the eight rows of a matrix lie in different banks; 32 for float
// where k goes down, whose fragments are read as eight elements of four lines.
constexpr int kLinePad = 8;
template <class T, bool kDeepLines>
__host__ __device__ constexpr int pitch_of(int inner) { return inner + (sizeof(T) == 4 && kDeepLines ? 4 : kLinePad); }

// kOuter lines of kInner elements to shared memory: in the background where 16 bytes lie together, zeros beyond the edges.
template <class T, int kOuter, int kInner, int kThreads, int kPitch = kInner + kLinePad>
__device__ __forceinline__ void stage(T* shared, const T* base, long long stride, long long outer_left, long long inner_left, bool aligned) {
    constexpr int kWidth = 16 / static_cast<int>(sizeof(T)), kPerLine = kInner / kWidth;
#pragma unroll
    for (int v = threadIdx.x; v < kOuter * kPerLine; v += kThreads) {
        const int outer = v / kPerLine, inner = v % kPerLine * kWidth;
        T* const to = shared + outer * kPitch + inner;
        const T* const from = base + outer * stride + inner;
        if (aligned && (outer >= outer_left || inner >= inner_left || inner + kWidth <= inner_left)) {
            const bool inside = outer < outer_left && inner < inner_left;
            copy_async<16>(to, inside ? from : base, inside);
        } else {
            for (int j = 0; j < kWidth; j++) to[j] = outer < outer_left && inner + j < inner_left ? from[j] : convert<T>(0);
        }
    }
}

// One step in k of a warp: fragments from shared memory, products. at_a and at_b point to the warp's part of the tile at this k.
template <class T, int kTilesM, int kTilesN, int kPitchA, int kPitchB, bool kARows, bool kBRows>
__device__ __forceinline__ void multiply(float (&sum)[kTilesM][kTilesN][4], const T* at_a, const T* at_b) {
    const int lane = threadIdx.x % 32;
    if constexpr (sizeof(T) == 4) {
        const int group = lane / 4, inside = lane % 4;
        const auto a = [&](int m, int k) { return to_tf32(at_a[kARows ? m * kPitchA + k : k * kPitchA + m]); };
        const auto b = [&](int k, int n) { return to_tf32(at_b[kBRows ? k * kPitchB + n : n * kPitchB + k]); };
        unsigned x[kTilesM][4];
#pragma unroll
        for (int i = 0; i < kTilesM; i++) {
#pragma unroll
            for (int e = 0; e < 4; e++) x[i][e] = a(i * 16 + e % 2 * 8 + group, e / 2 * 4 + inside);
        }
#pragma unroll
        for (int j = 0; j < kTilesN; j++) {
            const unsigned y[2] = {b(inside, j * 8 + group), b(4 + inside, j * 8 + group)};
#pragma unroll
            for (int i = 0; i < kTilesM; i++) mma_tf32_m16n8k8(sum[i][j], x[i], y);
        }
    } else {
        unsigned x[kTilesM][4], y[kTilesN / 2][4];
#pragma unroll
        for (int i = 0; i < kTilesM; i++) {
            if constexpr (kARows) load_matrix<4>(x[i], at_a + (i * 16 + lane % 16) * kPitchA + lane / 16 * 8);
            else load_matrix<4, true>(x[i], at_a + (lane / 16 * 8 + lane % 8) * kPitchA + i * 16 + lane / 8 % 2 * 8);
        }
#pragma unroll
        for (int j = 0; j < kTilesN / 2; j++) {  // two tiles of eight columns at once
            if constexpr (kBRows) load_matrix<4, true>(y[j], at_b + (lane / 8 % 2 * 8 + lane % 8) * kPitchB + j * 16 + lane / 16 * 8);
            else load_matrix<4>(y[j], at_b + (j * 16 + lane / 16 * 8 + lane % 8) * kPitchB + lane / 8 % 2 * 8);
        }
#pragma unroll
        for (int i = 0; i < kTilesM; i++) {
#pragma unroll
            for (int j = 0; j < kTilesN; j++) {
                const unsigned pair[2] = {y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]};
                mma_m16n8k16<T>(sum[i][j], x[i], pair);
            }
        }
    }
}

// A block of kWarpsM x kWarpsN warps, each of which computes kWM x kWN of the tile. T is __half, __nv_bfloat16, or float, whose factors
// are rounded to tf32; sums are float.
template <class T, int kWarpsM, int kWarpsN, int kWM, int kWN, int kK, bool kARows, bool kBRows>
__device__ __forceinline__ void gemm_mma(const Gemm& p) {
    constexpr int kM = kWarpsM * kWM, kN = kWarpsN * kWN, kThreads = kWarpsM * kWarpsN * 32;
    constexpr int kTilesM = kWM / 16, kTilesN = kWN / 8;
    constexpr int kPitchA = pitch_of<T, kARows>(kARows ? kK : kM), kPitchB = pitch_of<T, !kBRows>(kBRows ? kN : kK);
    constexpr int kWidth = 16 / static_cast<int>(sizeof(T)), kStep = 32 / static_cast<int>(sizeof(T));
    constexpr int kSizeA = (kARows ? kM : kK) * kPitchA, kSizeB = (kBRows ? kK : kN) * kPitchB;
    alignas(16) __shared__ unsigned char memory[2 * (kSizeA + kSizeB) * sizeof(T)];
    T* const shared_a = reinterpret_cast<T*>(memory);
    T* const shared_b = shared_a + 2 * kSizeA;

    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int m0 = warp / kWarpsN * kWM, n0 = warp % kWarpsN * kWN;  // the warp's part of the tile
    long long tile_row, tile_column;
    tile_of(blockIdx.x, (p.m + kM - 1) / kM, (p.n + kN - 1) / kN, tile_row, tile_column);
    const long long row0 = tile_row * kM, col0 = tile_column * kN;

    for (long long z = blockIdx.z; z < p.batch * p.slices; z += gridDim.z) {
        const long long batch = z / p.slices, slice = z % p.slices;
        const long long k_begin = slice * p.depth, k_end = k_begin + p.depth < p.k ? k_begin + p.depth : p.k;
        const T* a = static_cast<const T*>(p.a) + batch * p.a_batch + (kARows ? row0 * p.a_line : row0);
        const T* b = static_cast<const T*>(p.b) + batch * p.b_batch + (kBRows ? col0 : col0 * p.b_line);
        const bool aligned_a = lines_aligned<kWidth>(a, p.a_line) && (!kARows || k_begin % kWidth == 0);
        const bool aligned_b = lines_aligned<kWidth>(b, p.b_line) && (kBRows || k_begin % kWidth == 0);
        const auto load = [&](long long k, int buffer) {
            if constexpr (kARows) stage<T, kM, kK, kThreads, kPitchA>(shared_a + buffer * kSizeA, a + k, p.a_line, p.m - row0, k_end - k, aligned_a);
            else stage<T, kK, kM, kThreads, kPitchA>(shared_a + buffer * kSizeA, a + k * p.a_line, p.a_line, k_end - k, p.m - row0, aligned_a);
            if constexpr (kBRows) stage<T, kK, kN, kThreads, kPitchB>(shared_b + buffer * kSizeB, b + k * p.b_line, p.b_line, k_end - k, p.n - col0, aligned_b);
            else stage<T, kN, kK, kThreads, kPitchB>(shared_b + buffer * kSizeB, b + k, p.b_line, p.n - col0, k_end - k, aligned_b);
        };

        float sum[kTilesM][kTilesN][4] = {};
        if (k_begin < k_end) load(k_begin, 0);
        copy_async_commit();
        int buffer = 0;
        for (long long k = k_begin; k < k_end; k += kK, buffer ^= 1) {
            if (k + kK < k_end) load(k + kK, buffer ^ 1);
            copy_async_commit();
            copy_async_wait<1>();
            __syncthreads();
            const T* const at_a = shared_a + buffer * kSizeA + m0 * (kARows ? kPitchA : 1);
            const T* const at_b = shared_b + buffer * kSizeB + n0 * (kBRows ? 1 : kPitchB);
#pragma unroll
            for (int kk = 0; kk < kK; kk += kStep) {
                multiply<T, kTilesM, kTilesN, kPitchA, kPitchB, kARows, kBRows>(sum, at_a + kk * (kARows ? 1 : kPitchA), at_b + kk * (kBRows ? kPitchB : 1));
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < kTilesM; i++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const long long row = row0 + m0 + i * 16 + half * 8 + lane / 4;
                if (row >= p.m) continue;
#pragma unroll
                for (int j = 0; j < kTilesN; j++) {
                    const long long col = col0 + n0 + j * 8 + lane % 4 * 2;
                    T* const c = static_cast<T*>(p.c) + batch * p.c_batch + row * p.c_row + col;
                    if (!p.partial && p.c_col == 1 && col + 2 <= p.n && is_aligned<2>(c)) {
                        Vector<T, 2> line;
                        for (int e = 0; e < 2; e++) line.at[e] = finish<T>(p, sum[i][j][half * 2 + e], batch, row, col + e);
                        *reinterpret_cast<Vector<T, 2>*>(c) = line;
                    } else {
                        for (int e = 0; e < 2; e++) {
                            if (col + e < p.n) write<T>(p, sum[i][j][half * 2 + e], slice, batch, row, col + e);
                        }
                    }
                }
            }
        }
    }
}

// Slices added in their order.
template <class T, class Acc>
__device__ __forceinline__ void gemm_sum(const Gemm& p) {
    const long long size = p.m * p.n, step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.batch * size; i += step) {
        const long long batch = i / size, inside = i % size, row = inside / p.n, col = inside % p.n;
        const Acc* partial = static_cast<const Acc*>(p.partial) + batch * p.slices * size + inside;
        Acc sum = partial[0];
        for (long long s = 1; s < p.slices; s++) sum = sum + partial[s * size];
        static_cast<T*>(p.c)[batch * p.c_batch + row * p.c_row + col * p.c_col] = finish<T>(p, sum, batch, row, col);
    }
}

// ---- few columns -------------------------------------------------------------------------------------------------------

template <class T>
__device__ __forceinline__ T from_lane(T value, int mask) {
    if constexpr (is_complex<T>) return T(__shfl_xor_sync(~0u, value.re, mask), __shfl_xor_sync(~0u, value.im, mask));
    else return __shfl_xor_sync(~0u, value, mask);
}

// A by rows, B by columns; grid (rows / warps of a block, slices, batch). Each lane keeps kColumns sums.
template <class T, class Acc, int kColumns>
__device__ __forceinline__ void gemv_rows(const Gemm& p) {
    constexpr int kWidth = kVectorBytes / static_cast<int>(sizeof(T));
    const long long row = static_cast<long long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x % 32;
    const long long slice = blockIdx.y, k_begin = slice * p.depth, k_end = k_begin + p.depth < p.k ? k_begin + p.depth : p.k;
    if (row >= p.m) return;  // whole warps
    for (long long batch = blockIdx.z; batch < p.batch; batch += gridDim.z) {
        const T* a = static_cast<const T*>(p.a) + batch * p.a_batch + row * p.a_line;
        const T* b = static_cast<const T*>(p.b) + batch * p.b_batch;
        Acc sum[kColumns];
#pragma unroll
        for (int j = 0; j < kColumns; j++) sum[j] = Acc(0);
        long long k = k_begin + lane * kWidth;
        if (is_aligned<kWidth>(a) && lines_aligned<kWidth>(b, kColumns > 1 ? p.b_line : 0) && k_begin % kWidth == 0) {
            for (; k + kWidth <= k_end; k += 32 * kWidth) {
                const Vector<T, kWidth> x = *reinterpret_cast<const Vector<T, kWidth>*>(a + k);
#pragma unroll
                for (int j = 0; j < kColumns; j++) {
                    const Vector<T, kWidth> y = *reinterpret_cast<const Vector<T, kWidth>*>(b + (j < p.n ? j : p.n - 1) * p.b_line + k);
#pragma unroll
                    for (int i = 0; i < kWidth; i++) sum[j] = sum[j] + convert<Acc>(x.at[i]) * convert<Acc>(y.at[i]);
                }
            }
        } else {
            for (; k + kWidth <= k_end; k += 32 * kWidth) {
#pragma unroll
                for (int i = 0; i < kWidth; i++) {
                    const Acc x = convert<Acc>(a[k + i]);
#pragma unroll
                    for (int j = 0; j < kColumns; j++) sum[j] = sum[j] + x * convert<Acc>(b[(j < p.n ? j : p.n - 1) * p.b_line + k + i]);
                }
            }
        }
        // of the last vector, which one lane at most has in part
        for (; k < k_end; k++) {
#pragma unroll
            for (int j = 0; j < kColumns; j++) sum[j] = sum[j] + convert<Acc>(a[k]) * convert<Acc>(b[(j < p.n ? j : p.n - 1) * p.b_line + k]);
        }
        for (int mask = 16; mask; mask /= 2) {
#pragma unroll
            for (int j = 0; j < kColumns; j++) sum[j] = sum[j] + from_lane(sum[j], mask);
        }
#pragma unroll
        for (int j = 0; j < kColumns; j++) {
            if (j < p.n && lane == j) write<T>(p, sum[j], slice, batch, row, j);
        }
    }
}

// A by columns, B by columns; blocks of 256 threads: 32 groups of neighbouring rows side by side, 8 of them one below the other in k.
template <class T, class Acc, int kColumns>
__device__ __forceinline__ void gemv_columns(const Gemm& p) {
    constexpr int kWidth = smaller(4, kVectorBytes / static_cast<int>(sizeof(T)));
    constexpr int kDown = 8;
    alignas(16) __shared__ unsigned char memory[kDown * 32 * kWidth * sizeof(Acc)];
    Acc* const shared = reinterpret_cast<Acc*>(memory);
    const int lane = threadIdx.x % 32, down = threadIdx.x / 32;
    const long long row0 = static_cast<long long>(blockIdx.x) * 32 * kWidth, row = row0 + lane * kWidth;
    const long long slice = blockIdx.y, k_begin = slice * p.depth, k_end = k_begin + p.depth < p.k ? k_begin + p.depth : p.k;
    for (long long batch = blockIdx.z; batch < p.batch; batch += gridDim.z) {
        const T* a = static_cast<const T*>(p.a) + batch * p.a_batch + row;
        const T* b = static_cast<const T*>(p.b) + batch * p.b_batch;
        const bool whole = row + kWidth <= p.m && lines_aligned<kWidth>(a, p.a_line);
        Acc sum[kColumns][kWidth];
#pragma unroll
        for (int j = 0; j < kColumns; j++) {
#pragma unroll
            for (int i = 0; i < kWidth; i++) sum[j][i] = Acc(0);
        }
        for (long long k = k_begin + down; k < k_end; k += kDown) {
            Vector<T, kWidth> x;
            if (whole) {
                x = *reinterpret_cast<const Vector<T, kWidth>*>(a + k * p.a_line);
            } else {
#pragma unroll
                for (int i = 0; i < kWidth; i++) x.at[i] = row + i < p.m ? a[k * p.a_line + i] : convert<T>(0);
            }
#pragma unroll
            for (int j = 0; j < kColumns; j++) {
                const Acc y = convert<Acc>(b[(j < p.n ? j : p.n - 1) * p.b_line + k]);
#pragma unroll
                for (int i = 0; i < kWidth; i++) sum[j][i] = sum[j][i] + convert<Acc>(x.at[i]) * y;
            }
        }
#pragma unroll
        for (int j = 0; j < kColumns; j++) {
            __syncthreads();
#pragma unroll
            for (int i = 0; i < kWidth; i++) shared[(down * 32 + lane) * kWidth + i] = sum[j][i];
            __syncthreads();
            if (j < p.n && threadIdx.x < 32 * kWidth && row0 + threadIdx.x < p.m) {
                Acc total = shared[threadIdx.x];
                for (int d = 1; d < kDown; d++) total = total + shared[d * 32 * kWidth + threadIdx.x];
                write<T>(p, total, slice, batch, row0 + threadIdx.x, j);
            }
        }
    }
}

}  // namespace trt
