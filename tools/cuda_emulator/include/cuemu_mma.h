// Tensor-core instructions and asynchronous copies of one warp, as PTX defines them: the fragments' layouts in registers are
// those of the PTX ISA's sections on mma.sync and ldmatrix. cuda_src/mma.cuh calls these bodies where a GPU would run
// the instructions.
//
// Lanes hand in the address of their fragments, which the last lane to arrive reads and writes for all of them. Sums are
// formed in double precision and rounded once; hardware's rounding differs in the last bits.
#pragma once

#include "cuemu.h"

namespace cuemu {

// A lane's part of D = A * B + C. `a` and `b` hold sixteen-bit, eight-bit or tf32 elements in 32-bit registers.
struct Mma {
    const void *a, *b;
    void* c;
};

constexpr int kLanes = 32;

template <class T>
inline T element(const void* fragment, int index) {
    T value;
    std::memcpy(&value, static_cast<const char*>(fragment) + index * sizeof(T), sizeof(T));
    return value;
}

// The element types of fragments, and their values.
struct Tf32 {
    uint32_t bits;
    operator double() const { return bits_float(bits & 0xFFFFE000u); }  // hardware ignores the low 13 bits
};
inline double value_of(__half x) { return float(x); }
inline double value_of(__nv_bfloat16 x) { return float(x); }
inline double value_of(Tf32 x) { return x; }
inline double value_of(double x) { return x; }
inline int value_of(signed char x) { return x; }

// Where element i of a lane's fragment lies in its matrix. `kPacked` elements fill a register; the rows (of A) or columns
// (of B) of a register's elements are one lane's, its neighbours in k.
template <int kPacked>
struct Layout {
    static int a_row(int lane, int i) { return lane / 4 + (i / kPacked % 2) * 8; }
    static int a_k(int lane, int i) { return lane % 4 * kPacked + i % kPacked + i / (2 * kPacked) * 4 * kPacked; }
    static int b_k(int lane, int i) { return lane % 4 * kPacked + i % kPacked + i / kPacked * 4 * kPacked; }
    static int b_column(int lane) { return lane / 4; }
    static int c_row(int lane, int i) { return lane / 4 + i / 2 * 8; }
    static int c_column(int lane, int i) { return lane % 4 * 2 + i % 2; }
};

// M x 8 x K, with kA and kB elements of the inputs and kC of the sums in each lane.
template <class T, class Sum, int M, int K, int kPacked>
void warp_mma(unsigned mask, const uint64_t* value, const int*, uint64_t*) {
    constexpr int N = 8, kA = M * K / kLanes, kB = K * N / kLanes, kC = M * N / kLanes;
    using At = Layout<kPacked>;
    using Wide = decltype(value_of(T()));
    if (mask != ~0u) cuemu_trap("mma: all lanes of the warp have to take part");
    Wide a[M][K], b[K][N], c[M][N];
    for (int lane = 0; lane < kLanes; lane++) {
        const Mma& part = *reinterpret_cast<const Mma*>(value[lane]);
        for (int i = 0; i < kA; i++) a[At::a_row(lane, i)][At::a_k(lane, i)] = value_of(element<T>(part.a, i));
        for (int i = 0; i < kB; i++) b[At::b_k(lane, i)][At::b_column(lane)] = value_of(element<T>(part.b, i));
        for (int i = 0; i < kC; i++) c[At::c_row(lane, i)][At::c_column(lane, i)] = static_cast<Sum*>(part.c)[i];
    }
    for (int m = 0; m < M; m++) {
        for (int k = 0; k < K; k++) {
            for (int n = 0; n < N; n++) c[m][n] += a[m][k] * b[k][n];
        }
    }
    for (int lane = 0; lane < kLanes; lane++) {
        Sum* out = static_cast<Sum*>(reinterpret_cast<const Mma*>(value[lane])->c);
        for (int i = 0; i < kC; i++) out[i] = static_cast<Sum>(c[At::c_row(lane, i)][At::c_column(lane, i)]);
    }
}

// c += a * b.
template <class T, class Sum, int M, int K, int kPacked>
inline void mma(Sum* c, const void* a, const void* b) {
    Mma part{a, b, c};
    cuemu_warp_collective(~0u, reinterpret_cast<uint64_t>(&part), 0, warp_mma<T, Sum, M, K, kPacked>);
}

// A lane's part of ldmatrix: it names one row of 16 bytes, and receives a register of each of the 8 x 8 matrices.
struct MatrixLoad {
    const void* row;
    uint32_t* registers;
};

template <int kMatrices, bool kTransposed>
void warp_load_matrix(unsigned mask, const uint64_t* value, const int*, uint64_t*) {
    if (mask != ~0u) cuemu_trap("ldmatrix: all lanes of the warp have to take part");
    auto part = [value](int lane) { return reinterpret_cast<const MatrixLoad*>(value[lane]); };
    for (int j = 0; j < kMatrices; j++) {
        uint16_t matrix[8][8];
        for (int row = 0; row < 8; row++) {
            const void* from = part(8 * j + row)->row;
            if (reinterpret_cast<uintptr_t>(from) % 16) cuemu_trap("ldmatrix: a row is not aligned to 16 bytes");
            std::memcpy(matrix[row], from, 16);
        }
        for (int lane = 0; lane < kLanes; lane++) {
            int group = lane / 4, pair = lane % 4 * 2;
            uint32_t low = kTransposed ? matrix[pair][group] : matrix[group][pair];
            uint32_t high = kTransposed ? matrix[pair + 1][group] : matrix[group][pair + 1];
            part(lane)->registers[j] = low | high << 16;
        }
    }
}

template <int kMatrices, bool kTransposed>
inline void load_matrix(uint32_t* registers, const void* row) {
    MatrixLoad part{row, registers};
    cuemu_warp_collective(~0u, reinterpret_cast<uint64_t>(&part), 0, warp_load_matrix<kMatrices, kTransposed>);
}

// cp.async: `size` bytes, of which `valid` come from global memory and the rest are 0. The destination is spoiled at once
// and filled when the thread waits, so that whoever reads it too early, or still, reads nonsense.
inline void async_copy(void* shared, const void* global, int size, int valid) {
    constexpr int kSpoiled = 0xCB;
    uintptr_t to = reinterpret_cast<uintptr_t>(shared), from = reinterpret_cast<uintptr_t>(global);
    if (to % size || (valid && from % size)) cuemu_trap("cp.async: an address is not aligned to the size");
    for (int i = 0; i < size; i++) static_cast<volatile unsigned char*>(shared)[i] = kSpoiled;
    for (int i = 0; i < valid; i++) static_cast<void>(static_cast<const volatile unsigned char*>(global)[i]);
    cuemu_async_copy(shared, global, size, valid);
}

}  // namespace cuemu
