/* AMX's instructions in C: cysrc/loops/gemm/tiles.h includes this where GEMM_TILES names it. */
#ifndef TRT_TILE_EMULATION_H
#define TRT_TILE_EMULATION_H
#include <stdint.h>
#include <string.h>

static _Thread_local struct { int configured; uint32_t tile[8][16][16]; } tile_unit;
static void tiles_begin(void) { tile_unit.configured = 1; }
static void tiles_end(void) { tile_unit.configured = 0; }
#define TILE_ZERO(N) memset(tile_unit.tile[N], 0, sizeof tile_unit.tile[N])
#define TILE_LOAD(N, P, ROW) for (int i = 0; i < 16; i++) memcpy(tile_unit.tile[N][i], (P) + i * (ROW), 64)
#define TILE_STORE(N, P, ROW) for (int i = 0; i < 16; i++) memcpy((P) + i * (ROW), tile_unit.tile[N][i], 64)
#define TILE_DOT(C, A, B) tile_dot(tile_unit.tile[C], tile_unit.tile[A], tile_unit.tile[B])
static float tile_half(uint32_t pair, int high) {
  uint32_t bits = high ? pair & 0xffff0000u : pair << 16;
  float x;
  if (!(bits & 0x7f800000u)) bits &= 0x80000000u; /* denormals are zeros */
  memcpy(&x, &bits, 4);
  return x;
}
/* the sums of even and of odd elements are apart until they are added to C */
static void tile_dot(uint32_t c[16][16], uint32_t a[16][16], uint32_t b[16][16]) {
  if (!tile_unit.configured) __builtin_trap();
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 16; j++) {
      float even = 0, odd = 0, sum;
      for (int p = 0; p < 16; p++) {
        even = __builtin_fmaf(tile_half(a[i][p], 0), tile_half(b[p][j], 0), even);
        odd = __builtin_fmaf(tile_half(a[i][p], 1), tile_half(b[p][j], 1), odd);
      }
      memcpy(&sum, &c[i][j], 4);
      sum += even + odd;
      memcpy(&c[i][j], &sum, 4);
    }
}
#endif
