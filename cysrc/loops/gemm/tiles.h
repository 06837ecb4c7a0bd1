/* The tile of C by AMX: 32 x 32 sums in four tile registers, pairs of bfloat16 as units, 16 units of the depth a step.
   GEMM_TILES names a header with the instructions as functions of C (tests/loops/tile_emulation.h), so that all but they
   are tested where there are none. */
#ifndef TRT_GEMM_TILES_H
#define TRT_GEMM_TILES_H
#include <stdint.h>
#include <string.h>
#include "../kernel_base.h"

enum { TILE_SIDE = 16, TILE_STEP = 16 };

#ifdef GEMM_TILES
#include GEMM_TILES

#else

/* palette 1: all eight tiles have 16 rows of 64 bytes. The configuration belongs to a thread. */
static const struct { uint8_t palette, start, reserved[14]; uint16_t bytes[16]; uint8_t rows[16]; } tile_config
    __attribute__((aligned(64))) = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
static inline void tiles_begin(void) { __asm__ volatile("ldtilecfg %0" : : "m"(tile_config)); }
static inline void tiles_end(void) { __asm__ volatile("tilerelease" : : : "memory"); }
#define TILE_ZERO(N) __asm__ volatile("tilezero %%tmm" #N : :)
#define TILE_LOAD(N, P, ROW) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #N : : "r"(P), "r"((int64_t)(ROW)) : "memory")
#define TILE_STORE(N, P, ROW) __asm__ volatile("tilestored %%tmm" #N ", (%0,%1,1)" : : "r"(P), "r"((int64_t)(ROW)) : "memory")
#define TILE_DOT(C, A, B) __asm__ volatile("tdpbf16ps %%tmm" #B ", %%tmm" #A ", %%tmm" #C : :)

#endif

#define TILE_EACH(DO, tall, wide)                                                                        \
    DO(0, sums, sums_row);                                                                                \
    if (wide) DO(1, sums + 64, sums_row);                                                                 \
    if (tall) DO(2, sums + TILE_SIDE * sums_row, sums_row);                                               \
    if (tall && wide) DO(3, sums + TILE_SIDE * sums_row + 64, sums_row)

/* those that are there, or zeros */
#define BEGIN_SUMS(adds, tall, wide)                                                                     \
    do {                                                                                                 \
        if (adds) {                                                                                      \
            TILE_EACH(TILE_LOAD, tall, wide);                                                            \
        } else {                                                                                         \
            TILE_ZERO(0);                                                                                \
            if (wide) TILE_ZERO(1);                                                                      \
            if (tall) TILE_ZERO(2);                                                                      \
            if (tall && wide) TILE_ZERO(3);                                                              \
        }                                                                                                \
    } while (0)

/* The sums of one tile of C. A: rows at `a_row` bytes and steps of the depth at `a_step`, so that it is a packed panel or the matrix itself;
   B: a packed panel of 32 columns. tall, wide: 32 rows, columns instead of 16; adds: to the sums that are there. These three are constants.
   Operands come by value: a vector's load of a structure that was just written would wait for the tiles' stores before it. */
static inline __attribute__((always_inline)) void tile_sums_of(const char* a, int64_t a_row, int64_t a_step, const char* b, int64_t steps, char* sums,
                                                               int64_t sums_row, const int tall, const int wide, const int adds) {
    const int64_t b_row = 2 * 64, tall_half = TILE_SIDE * a_row;
    BEGIN_SUMS(adds, tall, wide);
    for (; steps > 0; steps--, a += a_step, b += TILE_STEP * b_row) {
        TILE_LOAD(4, a, a_row);
        TILE_LOAD(6, b, b_row);
        TILE_DOT(0, 4, 6);
        if (wide) {
            TILE_LOAD(7, b + 64, b_row);
            TILE_DOT(1, 4, 7);
        }
        if (tall) {
            TILE_LOAD(5, a + tall_half, a_row);
            TILE_DOT(2, 5, 6);
            if (wide) TILE_DOT(3, 5, 7);
        }
    }
    TILE_EACH(TILE_STORE, tall, wide);
}
static void tile_sums(const char* a, int64_t a_row, int64_t a_step, const char* b, int64_t steps, char* sums, int64_t sums_row, int tall, int wide, int adds) {
#define TILE_CASE(tall, wide, adds) case tall * 4 + wide * 2 + adds: tile_sums_of(a, a_row, a_step, b, steps, sums, sums_row, tall, wide, adds); break
    switch (tall * 4 + wide * 2 + adds) {
        TILE_CASE(0, 0, 0);
        TILE_CASE(0, 0, 1);
        TILE_CASE(0, 1, 0);
        TILE_CASE(0, 1, 1);
        TILE_CASE(1, 0, 0);
        TILE_CASE(1, 0, 1);
        TILE_CASE(1, 1, 0);
        TILE_CASE(1, 1, 1);
    }
#undef TILE_CASE
}

/* ---- from and to bfloat16 ---- */

typedef int16_t bf16_results __attribute__((vector_size(32), aligned(2), may_alias));
#ifdef GEMM_TILES
#define TILES_TARGET
KERNEL_INLINE void store_bf16_row(char* to, vf32 low, vf32 high, int wide) {
    for (int j = 0; j < 16; j++) store_bf16(to + 2 * j, low[j]);
    if (wide) for (int j = 0; j < 16; j++) store_bf16(to + 32 + 2 * j, high[j]);
}
#else
#define TILES_TARGET __attribute__((target("avx512bf16")))
typedef int16_t bf16_two_results __attribute__((vector_size(64), aligned(2), may_alias));
/* by an instruction of AVX512-BF16, which processors with tiles have */
KERNEL_INLINE TILES_TARGET void store_bf16_row(char* to, vf32 low, vf32 high, int wide) {
    if (wide) *(bf16_two_results*)to = __builtin_ia32_cvtne2ps2bf16_v32hi(high, low);
    else *(bf16_results*)to = __builtin_ia32_cvtneps2bf16_v16sf(low);
}
#endif
typedef uint16_t bf16_bits __attribute__((vector_size(32), aligned(2), may_alias));
KERNEL_INLINE vf32 widen_bf16(const char* p) { return (vf32)(__builtin_convertvector(*(const bf16_bits*)p, vi32) << 16); }
#endif
