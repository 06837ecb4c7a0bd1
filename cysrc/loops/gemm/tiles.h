/* The tile of C by AMX: 32 x 32 sums in four tile registers, pairs of bfloat16 as units, 16 units of the depth a step.
   GEMM_TILES names a header with the instructions as functions of C (tests/loops/tile_emulation.h), so that all but they
   are tested where there are none. */
#ifndef TRT_GEMM_TILES_H
#define TRT_GEMM_TILES_H
#include <stdint.h>
#include <string.h>

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

/* The sums of a panel of A of `height` (16 or 32) rows and a panel of B of 32 columns, for `steps` steps: sums[height][32]. */
static void tile_sums(const char* a, const char* b, int64_t steps, int height, float* sums) {
  const int64_t b_row = 2 * 64, c_row = 2 * 64, a_step = height * 64, b_step = TILE_STEP * b_row;
  TILE_ZERO(0);
  TILE_ZERO(1);
  if (height > TILE_SIDE) {
    TILE_ZERO(2);
    TILE_ZERO(3);
    for (int64_t i = 0; i < steps; i++, a += a_step, b += b_step) {
      TILE_LOAD(4, a, 64);
      TILE_LOAD(6, b, b_row);
      TILE_LOAD(7, b + 64, b_row);
      TILE_LOAD(5, a + TILE_SIDE * 64, 64);
      TILE_DOT(0, 4, 6);
      TILE_DOT(1, 4, 7);
      TILE_DOT(2, 5, 6);
      TILE_DOT(3, 5, 7);
    }
    TILE_STORE(2, (char*)sums + TILE_SIDE * c_row, c_row);
    TILE_STORE(3, (char*)sums + TILE_SIDE * c_row + 64, c_row);
  } else {
    for (int64_t i = 0; i < steps; i++, a += a_step, b += b_step) {
      TILE_LOAD(4, a, 64);
      TILE_LOAD(6, b, b_row);
      TILE_LOAD(7, b + 64, b_row);
      TILE_DOT(0, 4, 6);
      TILE_DOT(1, 4, 7);
    }
  }
  TILE_STORE(0, (char*)sums, c_row);
  TILE_STORE(1, (char*)sums + 64, c_row);
}
#endif
