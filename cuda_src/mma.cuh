// Tensor-core products and asynchronous copies of one warp: PTX on a GPU, the emulator's bodies under CUEMU, so that a
// kernel is written once. All lanes of the warp call these together; compute capability 8.0 or newer.
//
// Fragments are the registers that PTX lays down (PTX ISA, "Matrix Fragments for mma.m16n8k16" and its neighbours). With
// g = lane / 4 and t = lane % 4, a lane of m16n8k16 holds
//   a[0]: A[g][2t..2t+1]      a[1]: A[g+8][2t..2t+1]      a[2]: A[g][2t+8..2t+9]      a[3]: A[g+8][2t+8..2t+9]
//   b[0]: B[2t..2t+1][g]      b[1]: B[2t+8..2t+9][g]
//   c[0], c[1]: C[g][2t], C[g][2t+1]                      c[2], c[3]: C[g+8][2t], C[g+8][2t+1]
// and load_matrix fills a from rows of A (lane l names row l % 16, columns from l / 16 * 8), b from rows of B transposed.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#ifdef CUEMU
#include "cuemu_mma.h"
#endif

#define TRT_DEVICE_INLINE __device__ __forceinline__
#if !defined(CUEMU) && (!defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800)
#define TRT_MMA_PTX 1
#else
#define TRT_MMA_PTX 0
#endif

namespace trt {

// c += a * b for T __half or __nv_bfloat16, sums in float.
template <class T>
TRT_DEVICE_INLINE void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]);

#if TRT_MMA_PTX
#define TRT_MMA_M16N8(shape, types, c, a, b)                                                                        \
    asm volatile("mma.sync.aligned." shape ".row.col." types " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" \
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])                                                   \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
template <>
TRT_DEVICE_INLINE void mma_m16n8k16<__half>(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    TRT_MMA_M16N8("m16n8k16", "f32.f16.f16.f32", c, a, b);
}
template <>
TRT_DEVICE_INLINE void mma_m16n8k16<__nv_bfloat16>(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    TRT_MMA_M16N8("m16n8k16", "f32.bf16.bf16.f32", c, a, b);
}
TRT_DEVICE_INLINE void mma_tf32_m16n8k8(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    TRT_MMA_M16N8("m16n8k8", "f32.tf32.tf32.f32", c, a, b);
}
#undef TRT_MMA_M16N8

TRT_DEVICE_INLINE void mma_s8_m16n8k32(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

TRT_DEVICE_INLINE void mma_f64_m8n8k4(double (&c)[2], double a, double b) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[0]), "+d"(c[1])
                 : "d"(a), "d"(b));
}

// The float rounded to tf32's ten bits of fraction, to nearest with ties away from zero.
TRT_DEVICE_INLINE unsigned to_tf32(float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}

TRT_DEVICE_INLINE unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

// kMatrices 8 x 8 matrices of 16-bit elements from shared memory, a register of each to every lane. Lane 8 j + r names row
// r of matrix j: 8 elements, aligned to 16 bytes. The addresses of further lanes are not used.
template <int kMatrices, bool kTransposed = false>
TRT_DEVICE_INLINE void load_matrix(unsigned (&r)[kMatrices], const void* row) {
    static_assert(kMatrices == 1 || kMatrices == 2 || kMatrices == 4, "ldmatrix loads 1, 2 or 4 matrices");
    const unsigned at = shared_address(row);
#define TRT_LDMATRIX(suffix)                                                                                        \
    if constexpr (kMatrices == 1) {                                                                                 \
        asm volatile("ldmatrix.sync.aligned.m8n8.x1" suffix " {%0}, [%1];" : "=r"(r[0]) : "r"(at) : "memory");       \
    } else if constexpr (kMatrices == 2) {                                                                          \
        asm volatile("ldmatrix.sync.aligned.m8n8.x2" suffix " {%0,%1}, [%2];"                                       \
                     : "=r"(r[0]), "=r"(r[1]) : "r"(at) : "memory");                                                \
    } else {                                                                                                        \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" suffix " {%0,%1,%2,%3}, [%4];"                                 \
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");                        \
    }
    if constexpr (kTransposed) {
        TRT_LDMATRIX(".trans.shared.b16")
    } else {
        TRT_LDMATRIX(".shared.b16")
    }
#undef TRT_LDMATRIX
}

// Copies kBytes (4, 8 or 16) to shared memory in the background, or writes zeros where `valid` is false. Both addresses are
// aligned to kBytes. Visible to the thread after copy_async_wait, to others after a barrier that follows it.
template <int kBytes>
TRT_DEVICE_INLINE void copy_async(void* shared, const void* global, bool valid = true) {
    static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
    const unsigned to = shared_address(shared);
    if constexpr (kBytes == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(valid ? 16 : 0) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(kBytes),
                     "r"(valid ? kBytes : 0) : "memory");
    }
}
// Ends a group of copies.
TRT_DEVICE_INLINE void copy_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kGroups of the thread's groups are outstanding, the latest ones.
template <int kGroups>
TRT_DEVICE_INLINE void copy_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

#elif defined(CUEMU)
template <class T>
TRT_DEVICE_INLINE void mma_m16n8k16(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    cuemu::mma<T, float, 16, 16, 2>(c, a, b);
}
TRT_DEVICE_INLINE void mma_tf32_m16n8k8(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    cuemu::mma<cuemu::Tf32, float, 16, 8, 1>(c, a, b);
}
TRT_DEVICE_INLINE void mma_s8_m16n8k32(int (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    cuemu::mma<signed char, int, 16, 32, 4>(c, a, b);
}
TRT_DEVICE_INLINE void mma_f64_m8n8k4(double (&c)[2], double a, double b) {
    cuemu::mma<double, double, 8, 4, 1>(c, &a, &b);
}
TRT_DEVICE_INLINE unsigned to_tf32(float x) {
    const unsigned bits = __float_as_uint(x);
    return (bits & 0x7F800000u) == 0x7F800000u ? bits : (bits + 0x1000u) & 0xFFFFE000u;
}
template <int kMatrices, bool kTransposed = false>
TRT_DEVICE_INLINE void load_matrix(unsigned (&r)[kMatrices], const void* row) {
    cuemu::load_matrix<kMatrices, kTransposed>(r, row);
}
template <int kBytes>
TRT_DEVICE_INLINE void copy_async(void* shared, const void* global, bool valid = true) {
    cuemu::async_copy(shared, global, kBytes, valid ? kBytes : 0);
}
TRT_DEVICE_INLINE void copy_async_commit() { cuemu_async_commit(); }
template <int kGroups>
TRT_DEVICE_INLINE void copy_async_wait() {
    cuemu_async_wait(kGroups);
}

#else  // an older GPU: a module for it may contain the kernels, but they are not launched there
template <class T>
TRT_DEVICE_INLINE void mma_m16n8k16(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]) { __trap(); }
TRT_DEVICE_INLINE void mma_tf32_m16n8k8(float (&)[4], const unsigned (&)[4], const unsigned (&)[2]) { __trap(); }
TRT_DEVICE_INLINE void mma_s8_m16n8k32(int (&)[4], const unsigned (&)[4], const unsigned (&)[2]) { __trap(); }
TRT_DEVICE_INLINE void mma_f64_m8n8k4(double (&)[2], double, double) { __trap(); }
TRT_DEVICE_INLINE unsigned to_tf32(float x) { return __float_as_uint(x); }
template <int kMatrices, bool kTransposed = false>
TRT_DEVICE_INLINE void load_matrix(unsigned (&)[kMatrices], const void*) { __trap(); }
template <int kBytes>
TRT_DEVICE_INLINE void copy_async(void*, const void*, bool = true) { __trap(); }
TRT_DEVICE_INLINE void copy_async_commit() {}
template <int kGroups>
TRT_DEVICE_INLINE void copy_async_wait() {}
#endif

// Two values in one register of a fragment, the first in the lower half.
template <class T>
TRT_DEVICE_INLINE unsigned pack(float low, float high);
template <>
TRT_DEVICE_INLINE unsigned pack<__half>(float low, float high) {
    return __half_as_ushort(__float2half_rn(low)) | static_cast<unsigned>(__half_as_ushort(__float2half_rn(high))) << 16;
}
template <>
TRT_DEVICE_INLINE unsigned pack<__nv_bfloat16>(float low, float high) {
    return __bfloat16_as_ushort(__float2bfloat16_rn(low)) |
           static_cast<unsigned>(__bfloat16_as_ushort(__float2bfloat16_rn(high))) << 16;
}

}  // namespace trt

#undef TRT_MMA_PTX
