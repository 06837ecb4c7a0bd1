/* FMA(a, b, c): a * b + c with one rounding where the hardware has the instruction, two otherwise, of numbers and of vectors of 16, 32 and
 * 64 bytes; all three of one type. Loops are compiled with -ffp-contract=off: what is written as a product and a sum is rounded twice on
 * every instruction set, and what should be fused says so. */
#ifndef TRT_FUSED_H
#define TRT_FUSED_H

#ifdef __FMA__
typedef float fused_f32_16 __attribute__((vector_size(16)));
typedef float fused_f32_32 __attribute__((vector_size(32)));
typedef double fused_f64_16 __attribute__((vector_size(16)));
typedef double fused_f64_32 __attribute__((vector_size(32)));
#define FUSED(name, T, BODY) \
    static inline __attribute__((always_inline, unused)) T name(T a, T b, T c) { return BODY; }
FUSED(fused_one_f32, float, __builtin_fmaf(a, b, c))
FUSED(fused_one_f64, double, __builtin_fma(a, b, c))
FUSED(fused_four_f32, fused_f32_16, __builtin_ia32_vfmaddps(a, b, c))
FUSED(fused_two_f64, fused_f64_16, __builtin_ia32_vfmaddpd(a, b, c))
FUSED(fused_eight_f32, fused_f32_32, __builtin_ia32_vfmaddps256(a, b, c))
FUSED(fused_four_f64, fused_f64_32, __builtin_ia32_vfmaddpd256(a, b, c))
#ifdef __AVX512F__
typedef float fused_f32_64 __attribute__((vector_size(64)));
typedef double fused_f64_64 __attribute__((vector_size(64)));
FUSED(fused_sixteen_f32, fused_f32_64, __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4)) /* 4: the current rounding */
FUSED(fused_eight_f64, fused_f64_64, __builtin_ia32_vfmaddpd512_mask(a, b, c, -1, 4))
#define FUSED_64 , fused_f32_64: fused_sixteen_f32, fused_f64_64: fused_eight_f64
#else
#define FUSED_64
#endif
#undef FUSED
#define FMA(a, b, c)                                                                                                     \
    _Generic((c), float: fused_one_f32, double: fused_one_f64, fused_f32_16: fused_four_f32, fused_f64_16: fused_two_f64, \
        fused_f32_32: fused_eight_f32, fused_f64_32: fused_four_f64 FUSED_64)(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif
/* One number in every lane of a vector type. */
#define SPLAT(VECTOR_TYPE, x) ((x) - (VECTOR_TYPE){0})

#endif
