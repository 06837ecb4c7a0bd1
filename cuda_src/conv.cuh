// Convolutions of one to three dimensions and their two gradients as matrix products whose operands are gathered as they are loaded:
// nothing is unfolded in memory. With P the positions of a grid (sample, d, h, w) and Q the pairs of a channel and a tap of the kernel,
//   result[channel, P] = sum over Q of kernel[channel, Q] image[P, Q]        forward; the input's gradient reads the output's by
//                                                                            strides: taps go backwards and hit only multiples
//   weight[channel, Q] = sum over P of grad[channel, P] image[P, Q]
// An operand says where its element (line, k) lies, in two parts that are made once for each: `line` for a row of A or column of B,
// `depth` for k. conv_tiles is gemm.cuh's blocked product over them (tensor cores for half types), conv_direct and conv_direct_weight
// are for groups of few channels. The host is cysrc/cuda/conv.pyx.
#pragma once

#include "gemm.cuh"

namespace trt {

// Mirrored by the host. Strides count elements; arrays run over d, h, w.
struct Conv {
    const void* image;         // what is gathered: x, or the gradient of the output
    const void* kernel;        // the weight; the gradient of the output in the weight's pass
    const void* bias;
    void* out;
    void* partial;             // (group, slice, line, column) sums of slices
    long long samples, positions, depth_channels, lines, groups, slices, slice_depth;
    long long grid[3];         // positions of P
    long long size[3], stride[3], image_sample, image_channel, image_group;
    long long taps[3], scale[3], shift[3], step[3], divisor[3];   // coordinate = (position * scale + shift + tap * step) / divisor
    long long channels_inner;  // Q: channels run fastest, otherwise taps
    long long kernel_line, kernel_channel, kernel_tap, kernel_group;
    long long grad_line, grad_sample, grad_stride[3], grad_group;
    long long out_line, out_sample, out_stride[3], out_group;      // of the weight's pass: kernel_* are those of the result
};

struct Spot {
    int sample, at[3];
};
__device__ __forceinline__ Spot spot_of(const Conv& p, unsigned i) {
    Spot s;
    const unsigned w = static_cast<unsigned>(p.grid[2]), h = static_cast<unsigned>(p.grid[1]), d = static_cast<unsigned>(p.grid[0]);
    s.at[2] = i % w;
    i /= w;
    s.at[1] = i % h;
    i /= h;
    s.at[0] = i % d;
    s.sample = i / d;
    return s;
}

struct Tap {
    int channel, tap, at[3];
};
__device__ __forceinline__ Tap tap_of(const Conv& p, unsigned i) {
    Tap t;
    const unsigned channels = static_cast<unsigned>(p.depth_channels), taps = static_cast<unsigned>(p.taps[0] * p.taps[1] * p.taps[2]);
    t.channel = p.channels_inner ? i % channels : i / taps;
    t.tap = p.channels_inner ? i / channels : i % taps;
    t.at[2] = t.tap % static_cast<unsigned>(p.taps[2]);
    t.at[1] = t.tap / static_cast<unsigned>(p.taps[2]) % static_cast<unsigned>(p.taps[1]);
    t.at[0] = t.tap / static_cast<unsigned>(p.taps[2]) / static_cast<unsigned>(p.taps[1]);
    return t;
}

// Offset in the image for a position and a tap; -1 outside.
struct Corner {
    long long base;
    int at[3];
};
struct Reach {
    long long base;
    int at[3];
};
__device__ __forceinline__ Corner corner_of(const Conv& p, unsigned i) {
    const Spot s = spot_of(p, i);
    Corner c;
    c.base = s.sample * p.image_sample;
#pragma unroll
    for (int d = 0; d < 3; d++) c.at[d] = s.at[d] * static_cast<int>(p.scale[d]) + static_cast<int>(p.shift[d]);
    return c;
}
__device__ __forceinline__ Reach reach_of(const Conv& p, unsigned i) {
    const Tap t = tap_of(p, i);
    Reach r;
    r.base = t.channel * p.image_channel;
#pragma unroll
    for (int d = 0; d < 3; d++) r.at[d] = t.at[d] * static_cast<int>(p.step[d]);
    return r;
}
__device__ __forceinline__ long long image_offset(const Conv& p, const Corner& c, const Reach& r) {
    long long offset = c.base + r.base;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        int at = c.at[d] + r.at[d];
        if (at < 0) return -1;
        if (p.divisor[d] > 1) {
            const int divisor = static_cast<int>(p.divisor[d]);
            if (at % divisor) return -1;
            at /= divisor;
        }
        if (at >= p.size[d]) return -1;
        offset += at * p.stride[d];
    }
    return offset;
}

// ---- operands ----------------------------------------------------------------------------------------------------------

struct Image {  // lines are positions, k counts Q
    using Line = Corner;
    using Depth = Reach;
    static __device__ __forceinline__ Line line(const Conv& p, unsigned i) { return corner_of(p, i); }
    static __device__ __forceinline__ Depth depth(const Conv& p, unsigned k) { return reach_of(p, k); }
    static __device__ __forceinline__ long long offset(const Conv& p, const Line& l, const Depth& d) { return image_offset(p, l, d); }
    static __device__ __forceinline__ const void* base(const Conv& p) { return p.image; }
    static __device__ __forceinline__ long long group(const Conv& p) { return p.image_group; }
    static __device__ __forceinline__ long long lines(const Conv& p) { return p.positions; }
};

struct ImageByTaps {  // lines are Q, k counts positions
    using Line = Reach;
    using Depth = Corner;
    static __device__ __forceinline__ Line line(const Conv& p, unsigned i) { return reach_of(p, i); }
    static __device__ __forceinline__ Depth depth(const Conv& p, unsigned k) { return corner_of(p, k); }
    static __device__ __forceinline__ long long offset(const Conv& p, const Line& l, const Depth& d) { return image_offset(p, d, l); }
    static __device__ __forceinline__ const void* base(const Conv& p) { return p.image; }
    static __device__ __forceinline__ long long group(const Conv& p) { return p.image_group; }
    static __device__ __forceinline__ long long lines(const Conv& p) { return p.depth_channels * p.taps[0] * p.taps[1] * p.taps[2]; }
};

struct Kernel {  // lines are channels of the result, k counts Q
    using Line = long long;
    using Depth = long long;
    static __device__ __forceinline__ Line line(const Conv& p, unsigned i) { return i * p.kernel_line; }
    static __device__ __forceinline__ Depth depth(const Conv& p, unsigned k) {
        const Tap t = tap_of(p, k);
        return t.channel * p.kernel_channel + t.tap * p.kernel_tap;
    }
    static __device__ __forceinline__ long long offset(const Conv&, Line l, Depth d) { return l + d; }
    static __device__ __forceinline__ const void* base(const Conv& p) { return p.kernel; }
    static __device__ __forceinline__ long long group(const Conv& p) { return p.kernel_group; }
    static __device__ __forceinline__ long long lines(const Conv& p) { return p.lines; }
};

struct Gradient {  // of the output: lines are its channels, k counts positions
    using Line = long long;
    using Depth = long long;
    static __device__ __forceinline__ Line line(const Conv& p, unsigned i) { return i * p.grad_line; }
    static __device__ __forceinline__ Depth depth(const Conv& p, unsigned k) {
        const Spot s = spot_of(p, k);
        return s.sample * p.grad_sample + s.at[0] * p.grad_stride[0] + s.at[1] * p.grad_stride[1] + s.at[2] * p.grad_stride[2];
    }
    static __device__ __forceinline__ long long offset(const Conv&, Line l, Depth d) { return l + d; }
    static __device__ __forceinline__ const void* base(const Conv& p) { return p.kernel; }
    static __device__ __forceinline__ long long group(const Conv& p) { return p.grad_group; }
    static __device__ __forceinline__ long long lines(const Conv& p) { return p.lines; }
};

// ---- results -----------------------------------------------------------------------------------------------------------

// The complete sum of (channel, position) or, of the weight's pass, (channel, Q).
template <class T, class Acc, bool kOfWeight>
__device__ __forceinline__ void put_result(const Conv& p, Acc sum, long long group, long long channel, long long column) {
    T* const out = static_cast<T*>(p.out);
    if constexpr (kOfWeight) {
        const Tap t = tap_of(p, static_cast<unsigned>(column));
        out[group * p.kernel_group + channel * p.kernel_line + t.channel * p.kernel_channel + t.tap * p.kernel_tap] = convert<T>(sum);
    } else {
        const Spot s = spot_of(p, static_cast<unsigned>(column));
        if (p.bias) sum = sum + convert<Acc>(static_cast<const T*>(p.bias)[group * p.lines + channel]);
        out[group * p.out_group + channel * p.out_line + s.sample * p.out_sample + s.at[0] * p.out_stride[0] + s.at[1] * p.out_stride[1] +
            s.at[2] * p.out_stride[2]] = convert<T>(sum);
    }
}

template <class T, class Acc, bool kOfWeight>
__device__ __forceinline__ void put(const Conv& p, Acc sum, long long group, long long slice, long long channel, long long column, long long columns) {
    if (p.partial) static_cast<Acc*>(p.partial)[((group * p.slices + slice) * p.lines + channel) * columns + column] = sum;
    else put_result<T, Acc, kOfWeight>(p, sum, group, channel, column);
}

// ---- tiles -------------------------------------------------------------------------------------------------------------

// The elements of a tile that one thread brings. kLineFast: neighbouring threads on neighbouring lines, otherwise on neighbouring k.
template <class T, class Operand, int kLines, int kK, int kThreads, bool kLineFast>
struct Fetch {
    static constexpr int kCount = kLines * kK / kThreads;
    static constexpr int kStep = kLineFast ? kThreads / kLines : kThreads / kK;
    typename Operand::Line line[kLineFast ? 1 : kCount];
    bool inside[kLineFast ? 1 : kCount];
    T held[kCount];

    static __device__ __forceinline__ int line_of(int i) { return kLineFast ? threadIdx.x % kLines : threadIdx.x / kK + i * kStep; }
    static __device__ __forceinline__ int depth_of(int i) { return kLineFast ? threadIdx.x / kLines + i * kStep : threadIdx.x % kK; }

    __device__ __forceinline__ void start(const Conv& p, long long first) {
#pragma unroll
        for (int i = 0; i < (kLineFast ? 1 : kCount); i++) {
            inside[i] = first + line_of(i) < Operand::lines(p);
            line[i] = Operand::line(p, static_cast<unsigned>(inside[i] ? first + line_of(i) : 0));
        }
    }
    __device__ __forceinline__ void load(const Conv& p, const T* base, long long k, long long k_end) {
        typename Operand::Depth depth;
        if (!kLineFast) depth = Operand::depth(p, static_cast<unsigned>(k + depth_of(0)));
#pragma unroll
        for (int i = 0; i < kCount; i++) {
            if (kLineFast) depth = Operand::depth(p, static_cast<unsigned>(k + depth_of(i)));
            const bool wanted = inside[kLineFast ? 0 : i] && k + depth_of(i) < k_end;
            const long long offset = wanted ? Operand::offset(p, line[kLineFast ? 0 : i], depth) : -1;
            held[i] = offset >= 0 ? base[offset] : convert<T>(0);
        }
    }
    // Element (line, k) to shared[k * pitch_k + line * pitch_line].
    template <class S>
    __device__ __forceinline__ void store(S* shared, int pitch_k, int pitch_line) const {
#pragma unroll
        for (int i = 0; i < kCount; i++) shared[depth_of(i) * pitch_k + line_of(i) * pitch_line] = convert<S>(held[i]);
    }
};

// The result's channels are the rows of the tile where kChannelsAreRows, otherwise its columns.
template <class T, class Acc, class A, class B, int kM, int kN, int kTM, int kTN, bool kALineFast, bool kBLineFast, bool kOfWeight, bool kChannelsAreRows>
__device__ __forceinline__ void conv_tiles(const Conv& p) {
    constexpr int kK = 16, kThreads = 256;
    static_assert((kM / kTM) * (kN / kTN) == kThreads, "a block has 256 threads");
    constexpr int kGroup = smaller(smaller(kTM, kTN), kVectorBytes / static_cast<int>(sizeof(Acc)));
    constexpr int kPad = kVectorBytes / static_cast<int>(sizeof(Acc));
    constexpr int kPitchA = kM + kPad, kPitchB = kN + kPad, kGroupsM = kTM / kGroup, kGroupsN = kTN / kGroup;
    alignas(16) __shared__ unsigned char memory[2 * kK * (kPitchA + kPitchB) * sizeof(Acc)];
    Acc* const shared_a = reinterpret_cast<Acc*>(memory);
    Acc* const shared_b = shared_a + 2 * kK * kPitchA;
    const int across = threadIdx.x % (kN / kTN), down = threadIdx.x / (kN / kTN);
    const long long m = A::lines(p), n = B::lines(p), columns = kChannelsAreRows ? n : m;
    const long long depth = kOfWeight ? p.positions : p.depth_channels * p.taps[0] * p.taps[1] * p.taps[2];
    long long tile_row, tile_column;
    tile_of(blockIdx.x, (m + kM - 1) / kM, (n + kN - 1) / kN, tile_row, tile_column);
    const long long row0 = tile_row * kM, col0 = tile_column * kN;
    Fetch<T, A, kM, kK, kThreads, kALineFast> fetch_a;
    Fetch<T, B, kN, kK, kThreads, kBLineFast> fetch_b;
    fetch_a.start(p, row0);
    fetch_b.start(p, col0);

    for (long long z = blockIdx.z; z < p.groups * p.slices; z += gridDim.z) {
        const long long group = z / p.slices, slice = z % p.slices;
        const long long k_begin = slice * p.slice_depth, k_end = k_begin + p.slice_depth < depth ? k_begin + p.slice_depth : depth;
        const T* const base_a = static_cast<const T*>(A::base(p)) + group * A::group(p);
        const T* const base_b = static_cast<const T*>(B::base(p)) + group * B::group(p);
        Acc sum[kTM][kTN];
#pragma unroll
        for (int i = 0; i < kTM; i++) {
#pragma unroll
            for (int j = 0; j < kTN; j++) sum[i][j] = Acc(0);
        }
        fetch_a.load(p, base_a, k_begin, k_end);
        fetch_b.load(p, base_b, k_begin, k_end);
        fetch_a.store(shared_a, kPitchA, 1);
        fetch_b.store(shared_b, kPitchB, 1);
        __syncthreads();
        int buffer = 0;
        for (long long k = k_begin; k < k_end; k += kK, buffer ^= 1) {
            const bool more = k + kK < k_end;
            if (more) {
                fetch_a.load(p, base_a, k + kK, k_end);
                fetch_b.load(p, base_b, k + kK, k_end);
            }
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
            if (more) {
                fetch_a.store(shared_a + (buffer ^ 1) * kK * kPitchA, kPitchA, 1);
                fetch_b.store(shared_b + (buffer ^ 1) * kK * kPitchB, kPitchB, 1);
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < kTM; i++) {
            const long long row = row0 + i / kGroup * (kM / kGroupsM) + down * kGroup + i % kGroup;
            if (row >= m) continue;
#pragma unroll
            for (int j = 0; j < kTN; j++) {
                const long long col = col0 + j / kGroup * (kN / kGroupsN) + across * kGroup + j % kGroup;
                if (col < n) put<T, Acc, kOfWeight>(p, sum[i][j], group, slice, kChannelsAreRows ? row : col, kChannelsAreRows ? col : row, columns);
            }
        }
    }
}

// The same for half types: 8 warps, each kWM x kWN of the tile by tensor cores; lines of k lie together in shared memory.
template <class T, class A, class B, int kWarpsM, int kWarpsN, int kWM, int kWN, bool kALineFast, bool kBLineFast, bool kOfWeight, bool kChannelsAreRows>
__device__ __forceinline__ void conv_mma(const Conv& p) {
    constexpr int kK = 32, kThreads = kWarpsM * kWarpsN * 32, kM = kWarpsM * kWM, kN = kWarpsN * kWN, kPitch = kK + kLinePad;
    constexpr int kTilesM = kWM / 16, kTilesN = kWN / 8;
    alignas(16) __shared__ unsigned char memory[2 * (kM + kN) * kPitch * sizeof(T)];
    T* const shared_a = reinterpret_cast<T*>(memory);
    T* const shared_b = shared_a + 2 * kM * kPitch;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, m0 = warp / kWarpsN * kWM, n0 = warp % kWarpsN * kWN;
    const long long m = A::lines(p), n = B::lines(p), columns = kChannelsAreRows ? n : m;
    const long long depth = kOfWeight ? p.positions : p.depth_channels * p.taps[0] * p.taps[1] * p.taps[2];
    long long tile_row, tile_column;
    tile_of(blockIdx.x, (m + kM - 1) / kM, (n + kN - 1) / kN, tile_row, tile_column);
    const long long row0 = tile_row * kM, col0 = tile_column * kN;
    Fetch<T, A, kM, kK, kThreads, kALineFast> fetch_a;
    Fetch<T, B, kN, kK, kThreads, kBLineFast> fetch_b;
    fetch_a.start(p, row0);
    fetch_b.start(p, col0);

    for (long long z = blockIdx.z; z < p.groups * p.slices; z += gridDim.z) {
        const long long group = z / p.slices, slice = z % p.slices;
        const long long k_begin = slice * p.slice_depth, k_end = k_begin + p.slice_depth < depth ? k_begin + p.slice_depth : depth;
        const T* const base_a = static_cast<const T*>(A::base(p)) + group * A::group(p);
        const T* const base_b = static_cast<const T*>(B::base(p)) + group * B::group(p);
        float sum[kTilesM][kTilesN][4] = {};
        fetch_a.load(p, base_a, k_begin, k_end);
        fetch_b.load(p, base_b, k_begin, k_end);
        fetch_a.store(shared_a, 1, kPitch);
        fetch_b.store(shared_b, 1, kPitch);
        __syncthreads();
        int buffer = 0;
        for (long long k = k_begin; k < k_end; k += kK, buffer ^= 1) {
            const bool more = k + kK < k_end;
            if (more) {
                fetch_a.load(p, base_a, k + kK, k_end);
                fetch_b.load(p, base_b, k + kK, k_end);
            }
            const T* const at_a = shared_a + buffer * kM * kPitch;
            const T* const at_b = shared_b + buffer * kN * kPitch;
#pragma unroll
            for (int kk = 0; kk < kK; kk += 16) {
                unsigned x[kTilesM][4], y[kTilesN / 2][4];
#pragma unroll
                for (int i = 0; i < kTilesM; i++) load_matrix<4>(x[i], at_a + (m0 + i * 16 + lane % 16) * kPitch + kk + lane / 16 * 8);
#pragma unroll
                for (int j = 0; j < kTilesN / 2; j++) load_matrix<4>(y[j], at_b + (n0 + j * 16 + lane / 16 * 8 + lane % 8) * kPitch + kk + lane / 8 % 2 * 8);
#pragma unroll
                for (int i = 0; i < kTilesM; i++) {
#pragma unroll
                    for (int j = 0; j < kTilesN; j++) {
                        const unsigned pair[2] = {y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]};
                        mma_m16n8k16<T>(sum[i][j], x[i], pair);
                    }
                }
            }
            if (more) {
                fetch_a.store(shared_a + (buffer ^ 1) * kM * kPitch, 1, kPitch);
                fetch_b.store(shared_b + (buffer ^ 1) * kN * kPitch, 1, kPitch);
            }
            __syncthreads();
        }
#pragma unroll
        for (int i = 0; i < kTilesM; i++) {
#pragma unroll
            for (int j = 0; j < kTilesN; j++) {
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const long long row = row0 + m0 + i * 16 + e / 2 * 8 + lane / 4, col = col0 + n0 + j * 8 + lane % 4 * 2 + e % 2;
                    if (row < m && col < n) put<T, float, kOfWeight>(p, sum[i][j][e], group, slice, kChannelsAreRows ? row : col, kChannelsAreRows ? col : row, columns);
                }
            }
        }
    }
}

// Slices added in their order.
template <class T, class Acc, bool kOfWeight>
__device__ __forceinline__ void conv_sum(const Conv& p) {
    const long long columns = kOfWeight ? p.depth_channels * p.taps[0] * p.taps[1] * p.taps[2] : p.positions, size = p.lines * columns;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.groups * size; i += static_cast<long long>(gridDim.x) * blockDim.x) {
        const long long group = i / size, inside = i % size;
        const Acc* const partial = static_cast<const Acc*>(p.partial) + group * p.slices * size + inside;
        Acc sum = partial[0];
        for (long long s = 1; s < p.slices; s++) sum = sum + partial[s * size];
        put_result<T, Acc, kOfWeight>(p, sum, group, inside / columns, inside % columns);
    }
}

// ---- groups of few channels --------------------------------------------------------------------------------------------

// One thread an element of the result; neighbours are neighbours in memory.
template <class T, class Acc>
__device__ __forceinline__ void conv_direct(const Conv& p) {
    const unsigned depth = static_cast<unsigned>(p.depth_channels * p.taps[0] * p.taps[1] * p.taps[2]);
    const long long channels = p.groups * p.lines, spots = p.positions / p.samples;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < channels * p.positions; i += static_cast<long long>(gridDim.x) * blockDim.x) {
        const long long c = p.channels_inner ? i % channels : i / spots % channels;
        const long long position = p.channels_inner ? i / channels : i / spots / channels * spots + i % spots;
        const long long group = c / p.lines, line = c % p.lines;
        const T* const image = static_cast<const T*>(p.image) + group * p.image_group;
        const T* const kernel = static_cast<const T*>(p.kernel) + group * p.kernel_group + line * p.kernel_line;
        const Corner corner = corner_of(p, static_cast<unsigned>(position));
        Acc sum = Acc(0);
        for (unsigned k = 0; k < depth; k++) {
            const long long at = image_offset(p, corner, reach_of(p, k));
            if (at >= 0) sum = sum + convert<Acc>(image[at]) * convert<Acc>(kernel[Kernel::depth(p, k)]);
        }
        put_result<T, Acc, false>(p, sum, group, line, position);
    }
}

// A block an element of the weight's gradient.
template <class T, class Acc>
__device__ __forceinline__ void conv_direct_weight(const Conv& p) {
    alignas(16) __shared__ unsigned char memory[32 * sizeof(Acc)];
    Acc* const shared = reinterpret_cast<Acc*>(memory);
    const long long columns = p.depth_channels * p.taps[0] * p.taps[1] * p.taps[2];
    for (long long i = blockIdx.x; i < p.groups * p.lines * columns; i += gridDim.x) {
        const long long group = i / columns / p.lines, line = i / columns % p.lines, column = i % columns;
        const T* const image = static_cast<const T*>(p.image) + group * p.image_group;
        const T* const grad = static_cast<const T*>(p.kernel) + group * p.grad_group + line * p.grad_line;
        const Reach reach = reach_of(p, static_cast<unsigned>(column));
        Acc sum = Acc(0);
        for (long long k = threadIdx.x; k < p.positions; k += blockDim.x) {
            const long long at = image_offset(p, corner_of(p, static_cast<unsigned>(k)), reach);
            if (at >= 0) sum = sum + convert<Acc>(image[at]) * convert<Acc>(grad[Gradient::depth(p, static_cast<unsigned>(k))]);
        }
        for (int mask = 16; mask; mask /= 2) sum = sum + from_lane(sum, mask);
        __syncthreads();
        if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < static_cast<int>(blockDim.x) / 32; w++) sum = sum + shared[w];
            put_result<T, Acc, true>(p, sum, group, line, column);
        }
    }
}

}  // namespace trt
