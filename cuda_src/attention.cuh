// Attention in memory linear in the length (Dao et al. 2022): softmax(scale q k^T + mask) v without the weights in memory, and its
// gradients from the logarithms of the rows' sums. Sums are float for float and half types, double for double. Dropout draws its mask
// anew wherever weights are needed, from the seed and the places of query and key.
//
// 256 threads make tiles of rows x columns: 16 threads side by side share kRows / 16 rows, each takes every sixteenth column. Nothing
// is added atomically: a block of `attention_keys` owns a tile of keys and goes over the queries of all heads that share them, one of
// `attention_queries` owns a tile of queries and goes over the keys. The host is cysrc/cuda/attention.pyx.
#pragma once

#include "gemm.cuh"
#include "random.cuh"

namespace trt {

struct Operand {
    const void* data;
    long long batch, head, row;  // strides in elements; a row is contiguous
};

// Mirrored by the host.
struct Attention {
    Operand q, k, v, out, grad, dq, dk, dv;
    void* lse;                   // (batch, head, query), of the type of the sums
    void* delta;                 // sums of out * grad
    const void* mask;
    long long mask_batch, mask_head, mask_row, mask_column;
    long long batches, heads, key_heads, queries, keys, width, value_width;
    double scale, grow;          // grow: what dropout multiplies the weights with that it keeps
    unsigned long long seed, offset;
    const unsigned long long* state;  // inside a graph, as in random.cuh
    int causal, mask_kind;       // 0: none, 1: true where allowed, 2: added
    unsigned keep_below;         // words below are kept; 0: no dropout
};

constexpr int kAttentionThreads = 256;
constexpr float kNothing = -INFINITY;

template <class T>
__device__ __forceinline__ T* rows_at(const Operand& x, long long batch, long long head, long long row) {
    return static_cast<T*>(const_cast<void*>(x.data)) + batch * x.batch + head * x.head + row * x.row;
}

// The words that decide for four keys, 16 apart, of the 64 among which `key` is: word key / 16 % 4 for this one. A thread has such keys in
// every kernel below.
__device__ __forceinline__ Words dropout_words(const Attention& p, long long batch, long long head, long long query, long long key) {
    const unsigned long long row = (static_cast<unsigned long long>(batch) * p.heads + head) * p.queries + query, groups = (p.keys + 63) / 64;
    const unsigned long long seed = p.state ? p.state[0] : p.seed, offset = p.state ? p.state[1] + p.offset : p.offset;
    return Philox(seed, ((row * groups + key / 64) * 16 + key % 16) | 1ull << 62, offset).next();
}
__device__ __forceinline__ bool keeps(const Attention& p, const Words& words, long long key) {
    const int which = static_cast<int>(key / 16 % 4);
    return (which == 0 ? words.x : which == 1 ? words.y : which == 2 ? words.z : words.w) < p.keep_below;
}

// The mask itself, (batch, head, query, key): what the second derivative, which holds the weights, multiplies.
__device__ __forceinline__ void attention_kept(const Attention& p, bool* kept) {
    const long long total = p.batches * p.heads * p.queries * p.keys, step = static_cast<long long>(gridDim.x) * blockDim.x;
    for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < total; i += step) {
        const long long key = i % p.keys, query = i / p.keys % p.queries, head = i / p.keys / p.queries;
        kept[i] = keeps(p, dropout_words(p, head / p.heads, head % p.heads, query, key), key);
    }
}

// kRows rows of `width` elements to shared lines of kWidth + 4, with zeros beyond.
template <class T, int kRows, int kWidth>
__device__ __forceinline__ void load_rows(compute_t<T>* shared, const T* from, long long stride, long long rows, long long width) {
    for (int i = threadIdx.x; i < kRows * kWidth; i += kAttentionThreads) {
        const int row = i / kWidth, column = i % kWidth;
        shared[row * (kWidth + 4) + column] = row < rows && column < width ? convert<compute_t<T>>(from[row * stride + column]) : compute_t<T>(0);
    }
}

// products[i][j] = x[row i of the thread] . y[column j of the thread], both lines of kWidth + 4.
template <int kI, int kJ, int kWidth, class A>
__device__ __forceinline__ void dot_rows(A (&products)[kI][kJ], const A* x, const A* y, int down, int across) {
    constexpr int kV = 16 / sizeof(A);
#pragma unroll
    for (int i = 0; i < kI; i++) {
#pragma unroll
        for (int j = 0; j < kJ; j++) products[i][j] = 0;
    }
#pragma unroll 4
    for (int e = 0; e < kWidth; e += kV) {
        Vector<A, kV> a[kI], b[kJ];
#pragma unroll
        for (int i = 0; i < kI; i++) a[i] = *reinterpret_cast<const Vector<A, kV>*>(x + (down + 16 * i) * (kWidth + 4) + e);
#pragma unroll
        for (int j = 0; j < kJ; j++) b[j] = *reinterpret_cast<const Vector<A, kV>*>(y + (across + 16 * j) * (kWidth + 4) + e);
#pragma unroll
        for (int i = 0; i < kI; i++) {
#pragma unroll
            for (int j = 0; j < kJ; j++) {
#pragma unroll
                for (int l = 0; l < kV; l++) products[i][j] += a[i].at[l] * b[j].at[l];
            }
        }
    }
}

// sums[i][j] += sum over n of weights(row i, n) * y[n][column j]; weights lie as weights[row * kByRow + n * kByN].
template <int kI, int kJ, int kN, int kWidth, int kByRow, int kByN, class A>
__device__ __forceinline__ void add_weighted(A (&sums)[kI][kJ], const A* weights, const A* y, int down, int across) {
#pragma unroll 4
    for (int n = 0; n < kN; n++) {
        A w[kI], b[kJ];
#pragma unroll
        for (int i = 0; i < kI; i++) w[i] = weights[(down + 16 * i) * kByRow + n * kByN];
#pragma unroll
        for (int j = 0; j < kJ; j++) b[j] = y[n * (kWidth + 4) + across + 16 * j];
#pragma unroll
        for (int i = 0; i < kI; i++) {
#pragma unroll
            for (int j = 0; j < kJ; j++) sums[i][j] += w[i] * b[j];
        }
    }
}

// The score of a query and a key from their product; -infinity where attention is not allowed.
template <class T, class A>
__device__ __forceinline__ A score(const Attention& p, A product, long long batch, long long head, long long query, long long key) {
    if (query >= p.queries || key >= p.keys || (p.causal && key > query)) return kNothing;
    const A s = product * static_cast<A>(p.scale);
    if (p.mask_kind == 0) return s;
    const long long at = batch * p.mask_batch + head * p.mask_head + query * p.mask_row + key * p.mask_column;
    if (p.mask_kind == 1) return static_cast<const bool*>(p.mask)[at] ? s : kNothing;
    return s + convert<A>(static_cast<const T*>(p.mask)[at]);
}

// The sum or maximum over the 16 threads of a row.
template <class A>
__device__ __forceinline__ A row_sum(A x) {
    for (int mask = 8; mask; mask /= 2) x += __shfl_xor_sync(~0u, x, mask);
    return x;
}
template <class A>
__device__ __forceinline__ A row_maximum(A x) {
    for (int mask = 8; mask; mask /= 2) {
        const A y = __shfl_xor_sync(~0u, x, mask);
        x = y > x || y != y ? y : x;
    }
    return x;
}

// grid: (tiles of queries, heads, batches). kWidth: the widths rounded up.
template <class T, int kRows, int kColumns, int kWidth, bool kDropout>
__device__ __forceinline__ void attention_forward(const Attention& p) {
    using A = compute_t<T>;
    constexpr int kI = kRows / 16, kJ = kColumns / 16, kE = kWidth / 16;
    __shared__ __align__(16) A queries[kRows * (kWidth + 4)];
    __shared__ __align__(16) A other[kColumns * (kWidth + 4)];
    __shared__ A weights[kRows * (kColumns + 1)];
    const int across = threadIdx.x % 16, down = threadIdx.x / 16;
    const long long batch = blockIdx.z, head = blockIdx.y, first = static_cast<long long>(blockIdx.x) * kRows, key_head = head / (p.heads / p.key_heads);
    load_rows<T, kRows, kWidth>(queries, rows_at<T>(p.q, batch, head, first), p.q.row, p.queries - first, p.width);
    A sums[kI][kE] = {}, highest[kI], total[kI];
#pragma unroll
    for (int i = 0; i < kI; i++) highest[i] = kNothing, total[i] = 0;
    const long long end = p.causal && first + kRows < p.keys ? first + kRows : p.keys;
    for (long long key = 0; key < end; key += kColumns) {
        __syncthreads();
        load_rows<T, kColumns, kWidth>(other, rows_at<T>(p.k, batch, key_head, key), p.k.row, p.keys - key, p.width);
        __syncthreads();
        A s[kI][kJ];
        dot_rows<kI, kJ, kWidth>(s, queries, other, down, across);
#pragma unroll
        for (int i = 0; i < kI; i++) {
            A top = highest[i];
#pragma unroll
            for (int j = 0; j < kJ; j++) {
                s[i][j] = score<T>(p, s[i][j], batch, head, first + down + 16 * i, key + across + 16 * j);
                top = s[i][j] > top || s[i][j] != s[i][j] ? s[i][j] : top;
            }
            top = row_maximum(top);
            const A origin = top == kNothing ? 0 : top, shrink = exp(highest[i] - origin);
            A sum = 0;
            Words words = {};
            if (kDropout) words = dropout_words(p, batch, head, first + down + 16 * i, key + across);
#pragma unroll
            for (int j = 0; j < kJ; j++) {
                const A weight = exp(s[i][j] - origin);
                weights[(down + 16 * i) * (kColumns + 1) + across + 16 * j] = !kDropout || keeps(p, words, key + across + 16 * j) ? weight : A(0);
                sum += weight;
            }
            total[i] = total[i] * shrink + row_sum(sum);
            highest[i] = top;
#pragma unroll
            for (int e = 0; e < kE; e++) sums[i][e] *= shrink;
        }
        __syncthreads();
        load_rows<T, kColumns, kWidth>(other, rows_at<T>(p.v, batch, key_head, key), p.v.row, p.keys - key, p.value_width);
        __syncthreads();
        add_weighted<kI, kE, kColumns, kWidth, kColumns + 1, 1>(sums, weights, other, down, across);
    }
#pragma unroll
    for (int i = 0; i < kI; i++) {
        const long long query = first + down + 16 * i;
        if (query >= p.queries) continue;
        // a row without anything to attend to gives zeros
        const A scale = total[i] == 0 ? A(0) : (kDropout ? static_cast<A>(p.grow) : A(1)) / total[i];
        T* const out = rows_at<T>(p.out, batch, head, query);
#pragma unroll
        for (int e = 0; e < kE; e++) {
            if (across + 16 * e < p.value_width) out[across + 16 * e] = convert<T>(sums[i][e] * scale);
        }
        if (across == 0) static_cast<A*>(p.lse)[(batch * p.heads + head) * p.queries + query] = total[i] == 0 ? A(kNothing) : highest[i] + log(total[i]);
    }
}

// The same for half types on tensor cores: 4 warps of 16 queries each, whose scores, weights and sums stay in registers; keys and values
// come in the background, the next keys while the weights are applied. grid as before, tiles of 64 queries.
template <class T, int kWidth, bool kDropout>
__device__ __forceinline__ void attention_forward_mma(const Attention& p) {
    constexpr int kThreads = 128, kRows = 64, kKeys = 64, kPitch = kWidth + kLinePad;
    constexpr float kLog2e = 1.44269504088896340736f;
    __shared__ __align__(16) unsigned char memory[2 * kKeys * kPitch * sizeof(T)];
    T* const keys = reinterpret_cast<T*>(memory);
    T* const values = keys + kKeys * kPitch;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long batch = blockIdx.z, head = blockIdx.y, first = static_cast<long long>(blockIdx.x) * kRows, key_head = head / (p.heads / p.key_heads);
    const T* const q = rows_at<T>(p.q, batch, head, first);
    const T* const k = rows_at<T>(p.k, batch, key_head, 0);
    const T* const v = rows_at<T>(p.v, batch, key_head, 0);
    const bool aligned_k = lines_aligned<8>(k, p.k.row), aligned_v = lines_aligned<8>(v, p.v.row);
    const long long end = p.causal && first + kRows < p.keys ? first + kRows : p.keys;

    unsigned x[kWidth / 16][4];
    stage<T, kRows, kWidth, kThreads>(keys, q, p.q.row, p.queries - first, p.width, lines_aligned<8>(q, p.q.row));
    copy_async_commit();
    copy_async_wait<0>();
    __syncthreads();
#pragma unroll
    for (int e = 0; e < kWidth / 16; e++) load_matrix<4>(x[e], keys + (warp * 16 + lane % 16) * kPitch + e * 16 + lane / 16 * 8);
    __syncthreads();
    stage<T, kKeys, kWidth, kThreads>(keys, k, p.k.row, p.keys, p.width, aligned_k);
    copy_async_commit();
    stage<T, kKeys, kWidth, kThreads>(values, v, p.v.row, p.keys, p.value_width, aligned_v);
    copy_async_commit();

    float sums[kWidth / 8][4] = {}, highest[2] = {kNothing, kNothing}, total[2] = {0, 0};
    for (long long key = 0; key < end; key += kKeys) {
        copy_async_wait<1>();
        __syncthreads();
        float s[kKeys / 8][4] = {};
#pragma unroll
        for (int e = 0; e < kWidth / 16; e++) {
#pragma unroll
            for (int n = 0; n < kKeys / 16; n++) {
                unsigned y[4];
                load_matrix<4>(y, keys + (n * 16 + lane / 16 * 8 + lane % 8) * kPitch + e * 16 + lane / 8 % 2 * 8);
                const unsigned low[2] = {y[0], y[1]}, high[2] = {y[2], y[3]};
                mma_m16n8k16<T>(s[2 * n], x[e], low);
                mma_m16n8k16<T>(s[2 * n + 1], x[e], high);
            }
        }
        float shrink[2];
#pragma unroll
        for (int half = 0; half < 2; half++) {  // rows lane / 4 and lane / 4 + 8 of the warp, each of four threads
            const long long query = first + warp * 16 + half * 8 + lane / 4;
            float top = highest[half];
#pragma unroll
            for (int n = 0; n < kKeys / 8; n++) {
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    float& value = s[n][half * 2 + j];
                    value = score<T>(p, value, batch, head, query, key + n * 8 + lane % 4 * 2 + j);
                    top = value > top || value != value ? value : top;
                }
            }
            for (int mask = 2; mask; mask /= 2) {
                const float other = __shfl_xor_sync(~0u, top, mask);
                top = other > top || other != other ? other : top;
            }
            const float origin = top == kNothing ? 0 : top;
            shrink[half] = ::exp2f((highest[half] - origin) * kLog2e);
            float sum = 0;
#pragma unroll
            for (int n = 0; n < kKeys / 8; n++) {
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    float& value = s[n][half * 2 + j];
                    value = ::exp2f((value - origin) * kLog2e);
                    sum += value;
                }
            }
            for (int mask = 2; mask; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
            total[half] = total[half] * shrink[half] + sum;
            highest[half] = top;
            if (kDropout) {
#pragma unroll
                for (int c = 0; c < 4; c++) {
                    const long long at = key + c / 2 * 8 + lane % 4 * 2 + c % 2;
                    const Words words = dropout_words(p, batch, head, query, at);
#pragma unroll
                    for (int w = 0; w < 4; w++) {
                        if (!keeps(p, words, at + 16 * w)) s[2 * w + c / 2][half * 2 + c % 2] = 0;
                    }
                }
            }
        }
#pragma unroll
        for (int e = 0; e < kWidth / 8; e++) {
#pragma unroll
            for (int j = 0; j < 4; j++) sums[e][j] *= shrink[j / 2];
        }
        copy_async_wait<0>();
        __syncthreads();
        if (key + kKeys < end) stage<T, kKeys, kWidth, kThreads>(keys, k + (key + kKeys) * p.k.row, p.k.row, p.keys - key - kKeys, p.width, aligned_k);
        copy_async_commit();
#pragma unroll
        for (int n = 0; n < kKeys / 16; n++) {
            const unsigned weights[4] = {pack<T>(s[2 * n][0], s[2 * n][1]), pack<T>(s[2 * n][2], s[2 * n][3]), pack<T>(s[2 * n + 1][0], s[2 * n + 1][1]),
                                         pack<T>(s[2 * n + 1][2], s[2 * n + 1][3])};
#pragma unroll
            for (int e = 0; e < kWidth / 16; e++) {
                unsigned y[4];
                load_matrix<4, true>(y, values + (n * 16 + lane / 8 % 2 * 8 + lane % 8) * kPitch + e * 16 + lane / 16 * 8);
                const unsigned low[2] = {y[0], y[1]}, high[2] = {y[2], y[3]};
                mma_m16n8k16<T>(sums[2 * e], weights, low);
                mma_m16n8k16<T>(sums[2 * e + 1], weights, high);
            }
        }
        __syncthreads();
        if (key + kKeys < end) stage<T, kKeys, kWidth, kThreads>(values, v + (key + kKeys) * p.v.row, p.v.row, p.keys - key - kKeys, p.value_width, aligned_v);
        copy_async_commit();
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const long long query = first + warp * 16 + half * 8 + lane / 4;
        if (query >= p.queries) continue;
        const float scale = total[half] == 0 ? 0 : (kDropout ? static_cast<float>(p.grow) : 1.f) / total[half];
        T* const out = rows_at<T>(p.out, batch, head, query);
#pragma unroll
        for (int e = 0; e < kWidth / 8; e++) {
            const int column = e * 8 + lane % 4 * 2;
            if (column + 2 <= p.value_width && is_aligned<2>(out)) {
                reinterpret_cast<unsigned*>(out + column)[0] = pack<T>(sums[e][half * 2] * scale, sums[e][half * 2 + 1] * scale);
            } else {
                for (int j = 0; j < 2; j++) {
                    if (column + j < p.value_width) out[column + j] = convert<T>(sums[e][half * 2 + j] * scale);
                }
            }
        }
        if (lane % 4 == 0) static_cast<float*>(p.lse)[(batch * p.heads + head) * p.queries + query] = total[half] == 0 ? kNothing : highest[half] + ::logf(total[half]);
    }
}

// delta = sums of out * grad; a warp per row.
template <class T>
__device__ __forceinline__ void attention_delta(const Attention& p) {
    using A = compute_t<T>;
    const long long rows = p.batches * p.heads * p.queries, warps = static_cast<long long>(gridDim.x) * (blockDim.x / 32);
    for (long long row = static_cast<long long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32; row < rows; row += warps) {
        const long long query = row % p.queries, head = row / p.queries % p.heads, batch = row / p.queries / p.heads;
        const T* const out = rows_at<T>(p.out, batch, head, query);
        const T* const grad = rows_at<T>(p.grad, batch, head, query);
        A sum = 0;
        for (long long e = threadIdx.x % 32; e < p.value_width; e += 32) sum += convert<A>(out[e]) * convert<A>(grad[e]);
        for (int mask = 16; mask; mask /= 2) sum += __shfl_xor_sync(~0u, sum, mask);
        if (threadIdx.x % 32 == 0) static_cast<A*>(p.delta)[row] = sum;
    }
}

// Tiles of queries, keys, values and gradients in shared memory. Of wide heads (kLean) only two fit: queries share theirs with gradients,
// keys with values, and both are loaded again for every use.
template <class T, int kTile, int kWidth>
struct Tiles {
    using A = compute_t<T>;
    static constexpr bool kLean = sizeof(A) * kWidth > 512;
    static constexpr int kSize = kTile * (kWidth + 4), kLine = kTile + 1;
    A* q;
    A* k;
    A* v;
    A* g;
    A* weights;  // lines of kLine
    A* scores;

    static __device__ __forceinline__ void load(A* shared, const Operand& x, long long batch, long long head, long long row, long long rows, long long width) {
        load_rows<T, kTile, kWidth>(shared, rows_at<T>(x, batch, head, row), x.row, rows - row, width);
    }
};

// Weights and the gradients of scores of a tile of queries and one of keys. Lean: queries and keys are loaded here, gradients are left.
template <class T, int kTile, int kWidth, bool kDropout>
__device__ __forceinline__ void tile_gradients(const Attention& p, const Tiles<T, kTile, kWidth>& t, long long batch, long long head, long long key_head,
                                               long long query0, long long key0, int down, int across) {
    using A = compute_t<T>;
    using S = Tiles<T, kTile, kWidth>;
    constexpr int kI = kTile / 16;
    A s[kI][kI], d[kI][kI];
    if (S::kLean) {
        S::load(t.q, p.q, batch, head, query0, p.queries, p.width);
        S::load(t.k, p.k, batch, key_head, key0, p.keys, p.width);
        __syncthreads();
    }
    dot_rows<kI, kI, kWidth>(s, t.q, t.k, down, across);
    if (S::kLean) {
        __syncthreads();
        S::load(t.g, p.grad, batch, head, query0, p.queries, p.value_width);
        S::load(t.v, p.v, batch, key_head, key0, p.keys, p.value_width);
        __syncthreads();
    }
    dot_rows<kI, kI, kWidth>(d, t.g, t.v, down, across);
#pragma unroll
    for (int i = 0; i < kI; i++) {
        const long long query = query0 + down + 16 * i, row = (batch * p.heads + head) * p.queries + (query < p.queries ? query : 0);
        const A lse = static_cast<const A*>(p.lse)[row], delta = static_cast<const A*>(p.delta)[row];
        Words words = {};
        if (kDropout) words = dropout_words(p, batch, head, query, key0 + across);
#pragma unroll
        for (int j = 0; j < kI; j++) {
            const A value = score<T>(p, s[i][j], batch, head, query, key0 + across + 16 * j);
            const A weight = value == kNothing ? 0 : exp(value - lse);
            const A grow = !kDropout ? A(1) : keeps(p, words, key0 + across + 16 * j) ? static_cast<A>(p.grow) : A(0);
            const int at = (down + 16 * i) * S::kLine + across + 16 * j;
            t.weights[at] = weight * grow;
            t.scores[at] = weight * (d[i][j] * grow - delta) * static_cast<A>(p.scale);
        }
    }
}

#define TRT_ATTENTION_TILES(t)                                                                                          \
    using S = Tiles<T, kTile, kWidth>;                                                                                  \
    __shared__ __align__(16) compute_t<T> operands_[(S::kLean ? 2 : 4) * S::kSize];                                     \
    __shared__ compute_t<T> products_[2 * kTile * S::kLine];                                                            \
    const S t{operands_, operands_ + S::kSize, operands_ + (S::kLean ? 1 : 2) * S::kSize, operands_ + (S::kLean ? 0 : 3) * S::kSize, products_, products_ + kTile * S::kLine}

// grid: (tiles of keys, heads of keys, batches): dk and dv.
template <class T, int kTile, int kWidth, bool kDropout>
__device__ __forceinline__ void attention_keys(const Attention& p) {
    constexpr int kI = kTile / 16, kE = kWidth / 16, kLine = kTile + 1;
    TRT_ATTENTION_TILES(t);
    const int across = threadIdx.x % 16, down = threadIdx.x / 16;
    const long long batch = blockIdx.z, key_head = blockIdx.y, first = static_cast<long long>(blockIdx.x) * kTile, shared_by = p.heads / p.key_heads;
    if (!S::kLean) {
        S::load(t.k, p.k, batch, key_head, first, p.keys, p.width);
        S::load(t.v, p.v, batch, key_head, first, p.keys, p.value_width);
    }
    compute_t<T> dk[kI][kE] = {}, dv[kI][kE] = {};
    for (long long head = key_head * shared_by; head < (key_head + 1) * shared_by; head++) {
        for (long long query = p.causal ? first : 0; query < p.queries; query += kTile) {
            __syncthreads();
            if (!S::kLean) {
                S::load(t.q, p.q, batch, head, query, p.queries, p.width);
                S::load(t.g, p.grad, batch, head, query, p.queries, p.value_width);
                __syncthreads();
            }
            tile_gradients<T, kTile, kWidth, kDropout>(p, t, batch, head, key_head, query, first, down, across);
            __syncthreads();
            add_weighted<kI, kE, kTile, kWidth, 1, kLine>(dv, t.weights, t.g, down, across);
            if (S::kLean) {
                __syncthreads();
                S::load(t.q, p.q, batch, head, query, p.queries, p.width);
                __syncthreads();
            }
            add_weighted<kI, kE, kTile, kWidth, 1, kLine>(dk, t.scores, t.q, down, across);
        }
    }
#pragma unroll
    for (int i = 0; i < kI; i++) {
        const long long key = first + down + 16 * i;
        if (key >= p.keys) continue;
#pragma unroll
        for (int e = 0; e < kE; e++) {
            const int column = across + 16 * e;
            if (p.dk.data && column < p.width) rows_at<T>(p.dk, batch, key_head, key)[column] = convert<T>(dk[i][e]);
            if (p.dv.data && column < p.value_width) rows_at<T>(p.dv, batch, key_head, key)[column] = convert<T>(dv[i][e]);
        }
    }
}

// grid: (tiles of queries, heads, batches): dq.
template <class T, int kTile, int kWidth, bool kDropout>
__device__ __forceinline__ void attention_queries(const Attention& p) {
    constexpr int kI = kTile / 16, kE = kWidth / 16, kLine = kTile + 1;
    TRT_ATTENTION_TILES(t);
    const int across = threadIdx.x % 16, down = threadIdx.x / 16;
    const long long batch = blockIdx.z, head = blockIdx.y, first = static_cast<long long>(blockIdx.x) * kTile, key_head = head / (p.heads / p.key_heads);
    if (!S::kLean) {
        S::load(t.q, p.q, batch, head, first, p.queries, p.width);
        S::load(t.g, p.grad, batch, head, first, p.queries, p.value_width);
    }
    compute_t<T> dq[kI][kE] = {};
    const long long end = p.causal && first + kTile < p.keys ? first + kTile : p.keys;
    for (long long key = 0; key < end; key += kTile) {
        __syncthreads();
        if (!S::kLean) {
            S::load(t.k, p.k, batch, key_head, key, p.keys, p.width);
            S::load(t.v, p.v, batch, key_head, key, p.keys, p.value_width);
            __syncthreads();
        }
        tile_gradients<T, kTile, kWidth, kDropout>(p, t, batch, head, key_head, first, key, down, across);
        __syncthreads();
        if (S::kLean) {
            S::load(t.k, p.k, batch, key_head, key, p.keys, p.width);
            __syncthreads();
        }
        add_weighted<kI, kE, kTile, kWidth, kLine, 1>(dq, t.scores, t.k, down, across);
    }
#pragma unroll
    for (int i = 0; i < kI; i++) {
        const long long query = first + down + 16 * i;
        if (query >= p.queries) continue;
#pragma unroll
        for (int e = 0; e < kE; e++) {
            if (across + 16 * e < p.width) rows_at<T>(p.dq, batch, head, query)[across + 16 * e] = convert<T>(dq[i][e]);
        }
    }
}
#undef TRT_ATTENTION_TILES

template <int kCount>
struct Count { static constexpr int value = kCount; };

// The gradients of half types on tensor cores: a block of 4 warps owns 64 keys (kKeys: dk and dv) or queries (dq), whose lines stay in
// shared memory, and goes over the others, kTile at a time. Own rows times the others' columns are the scores and the products of
// gradients and values; both become weights in registers, which multiply the others' lines. grid: (tiles, heads, batches).
template <class T, int kTile, int kWidth, bool kKeys, bool kDropout>
__device__ __forceinline__ void attention_backward_mma(const Attention& p) {
    constexpr int kThreads = 128, kRows = 64, kPitch = kWidth + kLinePad;
    constexpr float kLog2e = 1.44269504088896340736f;
    __shared__ __align__(16) unsigned char memory[2 * (kRows + kTile) * kPitch * sizeof(T)];
    __shared__ float lse[kKeys ? kTile : kRows], delta[kKeys ? kTile : kRows];  // of queries
    T* const own = reinterpret_cast<T*>(memory);  // keys, or queries
    T* const own_too = own + kRows * kPitch;      // values, or gradients
    T* const other = own_too + kRows * kPitch;    // queries, or keys
    T* const other_too = other + kTile * kPitch;  // gradients, or values
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const long long batch = blockIdx.z, first = static_cast<long long>(blockIdx.x) * kRows, sharing = p.heads / p.key_heads;
    const long long key_head = kKeys ? blockIdx.y : blockIdx.y / sharing, head0 = kKeys ? key_head * sharing : blockIdx.y;
    // a thread's two keys lie 16 apart, so that one call of the generator serves both
    const auto row_of = [&](int r) { return kKeys ? warp / 2 * 32 + warp % 2 * 8 + r % 8 + r / 8 * 16 : warp * 16 + r; };
    const auto put = [&](T* to, const Operand& x, long long head, long long row, long long rows, long long width, auto count) {
        const T* const from = rows_at<T>(x, batch, head, row);
        stage<T, decltype(count)::value, kWidth, kThreads>(to, from, x.row, rows - row, width, lines_aligned<8>(from, x.row));
    };
    const auto put_sums = [&](long long head, long long row, int count) {
        const long long line = (batch * p.heads + head) * p.queries + row;
        for (int i = threadIdx.x; i < count; i += kThreads) {
            lse[i] = row + i < p.queries ? static_cast<const float*>(p.lse)[line + i] : 0.f;
            delta[i] = row + i < p.queries ? static_cast<const float*>(p.delta)[line + i] : 0.f;
        }
    };
    const Count<kRows> rows;
    const Count<kTile> tile;
    if (kKeys) {
        put(own, p.k, key_head, first, p.keys, p.width, rows);
        put(own_too, p.v, key_head, first, p.keys, p.value_width, rows);
    } else {
        put(own, p.q, head0, first, p.queries, p.width, rows);
        put(own_too, p.grad, head0, first, p.queries, p.value_width, rows);
        put_sums(head0, first, kRows);
    }
    copy_async_commit();
    float sums[kWidth / 8][4] = {}, sums_too[kKeys ? kWidth / 8 : 1][4] = {};  // of gradients of scores, and of weights
    const long long begin = kKeys && p.causal ? first : 0, end = kKeys ? p.queries : p.causal && first + kRows < p.keys ? first + kRows : p.keys;
    for (long long head = head0; head < head0 + (kKeys ? sharing : 1); head++) {
        for (long long at = begin; at < end; at += kTile) {
            __syncthreads();
            put(other, kKeys ? p.q : p.k, kKeys ? head : key_head, at, kKeys ? p.queries : p.keys, p.width, tile);
            put(other_too, kKeys ? p.grad : p.v, kKeys ? head : key_head, at, kKeys ? p.queries : p.keys, p.value_width, tile);
            copy_async_commit();
            if (kKeys) put_sums(head, at, kTile);
            copy_async_wait<0>();
            __syncthreads();
            float s[kTile / 8][4] = {}, d[kTile / 8][4] = {};
#pragma unroll
            for (int e = 0; e < kWidth / 16; e++) {
                unsigned x[4], y[4], z[4];
                const int from = row_of(lane % 16) * kPitch + e * 16 + lane / 16 * 8;
                load_matrix<4>(x, own + from);
                load_matrix<4>(y, own_too + from);
#pragma unroll
                for (int n = 0; n < kTile / 16; n++) {
                    const int column = (n * 16 + lane / 16 * 8 + lane % 8) * kPitch + e * 16 + lane / 8 % 2 * 8;
                    load_matrix<4>(z, other + column);
                    mma_m16n8k16<T>(s[2 * n], x, {z[0], z[1]});
                    mma_m16n8k16<T>(s[2 * n + 1], x, {z[2], z[3]});
                    load_matrix<4>(z, other_too + column);
                    mma_m16n8k16<T>(d[2 * n], y, {z[0], z[1]});
                    mma_m16n8k16<T>(d[2 * n + 1], y, {z[2], z[3]});
                }
            }
            Words words[2][2][2];  // by half of the rows, half of 16 columns and column of two; each serves several of n or both halves
#pragma unroll
            for (int n = 0; n < kTile / 8; n++) {
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    const int column = n * 8 + lane % 4 * 2 + j;
#pragma unroll
                    for (int half = 0; half < 2; half++) {
                        const int row = row_of(lane / 4 + half * 8);
                        const long long query = kKeys ? at + column : first + row, key = kKeys ? first + row : at + column;
                        if (kDropout && (kKeys ? half == 0 : n < 2)) words[half][n % 2][j] = dropout_words(p, batch, head, query, key);
                        const float value = score<T>(p, s[n][half * 2 + j], batch, head, query, key);
                        const float weight = value == kNothing ? 0.f : ::exp2f((value - lse[kKeys ? column : row]) * kLog2e);
                        const float grow = !kDropout ? 1.f : keeps(p, words[kKeys ? 0 : half][n % 2][j], key) ? static_cast<float>(p.grow) : 0.f;
                        s[n][half * 2 + j] = weight * grow;
                        d[n][half * 2 + j] = weight * (d[n][half * 2 + j] * grow - delta[kKeys ? column : row]) * static_cast<float>(p.scale);
                    }
                }
            }
#pragma unroll
            for (int n = 0; n < kTile / 16; n++) {
                const unsigned x[4] = {pack<T>(d[2 * n][0], d[2 * n][1]), pack<T>(d[2 * n][2], d[2 * n][3]), pack<T>(d[2 * n + 1][0], d[2 * n + 1][1]),
                                       pack<T>(d[2 * n + 1][2], d[2 * n + 1][3])};
                const unsigned y[4] = {pack<T>(s[2 * n][0], s[2 * n][1]), pack<T>(s[2 * n][2], s[2 * n][3]), pack<T>(s[2 * n + 1][0], s[2 * n + 1][1]),
                                       pack<T>(s[2 * n + 1][2], s[2 * n + 1][3])};
#pragma unroll
                for (int e = 0; e < kWidth / 16; e++) {
                    unsigned z[4];
                    const int line = (n * 16 + lane / 8 % 2 * 8 + lane % 8) * kPitch + e * 16 + lane / 16 * 8;
                    load_matrix<4, true>(z, other + line);
                    mma_m16n8k16<T>(sums[2 * e], x, {z[0], z[1]});
                    mma_m16n8k16<T>(sums[2 * e + 1], x, {z[2], z[3]});
                    if constexpr (kKeys) {
                        load_matrix<4, true>(z, other_too + line);
                        mma_m16n8k16<T>(sums_too[2 * e], y, {z[0], z[1]});
                        mma_m16n8k16<T>(sums_too[2 * e + 1], y, {z[2], z[3]});
                    }
                }
            }
        }
    }
    const auto write = [&](const Operand& to, long long head, const float (*values)[4], long long rows, long long width) {
        if (!to.data) return;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const long long row = first + row_of(lane / 4 + half * 8);
            if (row >= rows) continue;
            T* const line = rows_at<T>(to, batch, head, row);
#pragma unroll
            for (int e = 0; e < kWidth / 8; e++) {
                const int column = e * 8 + lane % 4 * 2;
                if (column + 2 <= width && is_aligned<2>(line)) {
                    reinterpret_cast<unsigned*>(line + column)[0] = pack<T>(values[e][half * 2], values[e][half * 2 + 1]);
                } else {
                    for (int j = 0; j < 2; j++) {
                        if (column + j < width) line[column + j] = convert<T>(values[e][half * 2 + j]);
                    }
                }
            }
        }
    };
    if constexpr (kKeys) {
        write(p.dk, key_head, sums, p.keys, p.width);
        write(p.dv, key_head, sums_too, p.keys, p.value_width);
    } else {
        write(p.dq, head0, sums, p.queries, p.width);
    }
}

}  // namespace trt
