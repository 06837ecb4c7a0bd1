/* C = alpha A B + beta C by tiles of C in registers, for GEMMs too small for a library that packs both operands: the panels
   of B are packed where they are not contiguous, A is read as it lies. Any strides of A and B, in elements; C has unit column
   stride. Each element is summed in the order of the depth, so a GEMM may be cut by rows and columns at will.
   DEFINE_TILED_PRODUCT(T, S) makes S_tiled(m, n, k, a, ars, acs, b, brs, bcs, c, crs, alpha, beta). */
#ifndef TRT_GEMM_TILE_H
#define TRT_GEMM_TILE_H
#include <stdint.h>
#include <string.h>
#include "../core/transpose.h"
#include "fused.h"
#include "lanes.h"

#define OUTLINE static __attribute__((noinline))
#ifndef UNROLL
#define UNROLL _Pragma("GCC unroll 16")
#endif

enum { PANEL_DEPTH = 256 };   /* of a packed panel, which stays in L1 */

/* A tile consists of native vectors: gcc keeps wider ones in memory, which takes ten times as long. Eight sums hide the latency of two additions a cycle: 4 rows of two vectors on AVX2; AVX-512 has registers for 8. */
#if defined(__AVX512F__)
#define NATIVE 64
#define DEFINE_TALL_TILE(T, S, KIND, BYTES, V) DEFINE_TILE(T, S, KIND, 8, BYTES, V)
#define TALL_TILES(NAME) for (; i + 8 <= m; i += 8) NAME##_tile_8(s, a + i * s->ars, b, c + i * s->crs);
#else
#define DEFINE_TALL_TILE(T, S, KIND, BYTES, V)
#define TALL_TILES(NAME)
#if defined(__AVX2__)
#define NATIVE 32
#else
#define NATIVE 16
#endif
#endif

enum { PACK_ROWS = 32, FAR_ROWS = 256 };   /* rows of C from which a panel of B with such far rows is packed */

/* The first n elements (n > 0) of a vector of 64 bytes to C, or added to beta times what is there; and those of B before zeros: by masks, where AVX-512 has them. */
#if defined(__AVX512F__)
enum { PUTS_PARTS = 1 };
#define DEFINE_PUT_PART(T, S, KIND)                                                                                                       \
  static inline void S##_put_part(T* to, const void* sums, T beta, int64_t n) {                                                           \
    lanes_##KIND v;                                                                                                                       \
    memcpy(&v, sums, sizeof v);                                                                                                           \
    write_##KIND(to, beta != 0 ? FMA((lanes_##KIND){0} + beta, read_##KIND(to, n), v) : v, n);                                            \
  }                                                                                                                                       \
  static inline void S##_take_part(T* to, const T* from, int64_t n) {                                                                     \
    const lanes_##KIND v = read_##KIND(from, n);                                                                                          \
    memcpy(to, &v, sizeof v);                                                                                                             \
  }
DEFINE_PUT_PART(float, f, f32)
DEFINE_PUT_PART(double, d, f64)
#else
enum { PUTS_PARTS = 0 };
static inline void f_put_part(float* to, const void* sums, float beta, int64_t n) {}
static inline void d_put_part(double* to, const void* sums, double beta, int64_t n) {}
static inline void f_take_part(float* to, const float* from, int64_t n) {}
static inline void d_take_part(double* to, const double* from, int64_t n) {}
#endif
static inline void f_transpose(const float* from, int64_t from_row, float* to, int64_t to_row) { transpose_words((const uint32_t*)from, from_row, (uint32_t*)to, to_row); }
static inline void d_transpose(const double* from, int64_t from_row, double* to, int64_t to_row) { transpose_longs((const uint64_t*)from, from_row, (uint64_t*)to, to_row); }

/* What the tiles of one GEMM share; strides in elements. */
#define DEFINE_PRODUCT(T, S)                                                                                                              \
  typedef struct { int64_t k, ars, acs, ldb, crs; int cols; T alpha, beta; } S##_product_shape;

/* KIND: the name of a tile of V vectors of BYTES bytes a row. Tiles are calls: inlined, their address arithmetic would be set
   up for all of them before the first, which takes longer than a GEMM of 4x4. */
#define DEFINE_TILE(T, S, KIND, ROWS, BYTES, V)                                                                                           \
  OUTLINE void S##KIND##_tile_##ROWS(const S##_product_shape* s, const T* a, const T* b, T* c) {                                          \
    typedef T vec __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                                                     \
    enum { LANES = BYTES / sizeof(T), COLS = V * LANES };                                                                                 \
    vec acc[ROWS][V];                                                                                                                     \
    int64_t ars = s->ars, acs = s->acs, ldb = s->ldb;                                                                                     \
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < V; v++) acc[r][v] = (vec){0};                                        \
    for (int64_t p = s->k; p > 0; p--, a += acs, b += ldb) {                                                                              \
      vec bv[V];                                                                                                                          \
      UNROLL for (int v = 0; v < V; v++) bv[v] = *(const vec*)(b + v * LANES);                                                            \
      UNROLL for (int r = 0; r < ROWS; r++) {                                                                                             \
        vec x = SPLAT(vec, a[r * ars]);                                                                                                   \
        UNROLL for (int v = 0; v < V; v++) acc[r][v] = FMA(x, bv[v], acc[r][v]);                                                          \
      }                                                                                                                                   \
    }                                                                                                                                     \
    UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < V; v++) acc[r][v] *= s->alpha;                                       \
    if (s->cols == COLS) {                                                                                                                \
      if (s->beta != 0)                                                                                                                   \
        UNROLL for (int r = 0; r < ROWS; r++)                                                                                             \
          UNROLL for (int v = 0; v < V; v++) acc[r][v] = FMA(SPLAT(vec, s->beta), *(const vec*)(c + r * s->crs + v * LANES), acc[r][v]);  \
      UNROLL for (int r = 0; r < ROWS; r++) UNROLL for (int v = 0; v < V; v++) *(vec*)(c + r * s->crs + v * LANES) = acc[r][v];           \
    } else if (PUTS_PARTS && BYTES == 64) {                                                                                               \
      UNROLL for (int r = 0; r < ROWS; r++)                                                                                               \
        UNROLL for (int v = 0; v < V; v++) if (s->cols > v * LANES) S##_put_part(c + r * s->crs + v * LANES, &acc[r][v], s->beta, s->cols - v * LANES); \
    } else {                                                                                                                              \
      UNROLL for (int r = 0; r < ROWS; r++) {                                                                                             \
        T *to = c + r * s->crs, part[COLS];                                                                                               \
        UNROLL for (int v = 0; v < V; v++) *(vec*)(part + v * LANES) = acc[r][v];                                                         \
        if (s->beta != 0) for (int j = 0; j < s->cols; j++) part[j] = FMA(s->beta, to[j], part[j]);                                       \
        memcpy(to, part, sizeof(T) * s->cols);                                                                                            \
      }                                                                                                                                   \
    }                                                                                                                                     \
  }

#define DEFINE_PANEL(T, S, KIND, BYTES, V)                                                                                                \
  DEFINE_TILE(T, S, KIND, 1, BYTES, V)                                                                                                    \
  DEFINE_TILE(T, S, KIND, 2, BYTES, V)                                                                                                    \
  DEFINE_TILE(T, S, KIND, 4, BYTES, V)                                                                                                    \
  DEFINE_TALL_TILE(T, S, KIND, BYTES, V)                                                                                                  \
  /* columns j .. j + cols of C; B's are copied to `pack` where they are not contiguous or too few, and where many rows read them:        \
     at a stride of some powers of two they would share a few lines of the cache */                                                       \
  OUTLINE void S##KIND##_panel(S##_product_shape* s, int64_t m, const T* a, const T* b, int64_t brs, int64_t bcs, T* c, T* pack) {        \
    typedef T vec __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));                                                     \
    enum { LANES = BYTES / sizeof(T), COLS = V * LANES };                                                                               \
    int64_t i = 0;                                                                                                                        \
    s->ldb = brs;                                                                                                                         \
    if (bcs != 1 || s->cols < COLS || m >= PACK_ROWS && brs > FAR_ROWS) {                                                                 \
      enum { SIDE = SQUARE_BYTES / sizeof(T) };                                                                                           \
      int64_t p = 0;                                                                                                                      \
      /* B' lies by rows: squares of a vector a side are transposed in registers */                                                       \
      if (brs == 1 && bcs != 1 && s->cols >= 4 && COLS % SIDE == 0) {                                                                     \
        T square[SIDE * SIDE] = {0};                                                                                                      \
        for (; p + SIDE <= s->k; p += SIDE)                                                                                               \
          for (int j = 0; j < COLS; j += SIDE) {                                                                                          \
            const T* from = b + p + j * bcs;                                                                                              \
            int64_t row = bcs;                                                                                                            \
            if (j + SIDE > s->cols) {                                                                                                     \
              for (int i = 0; i < SIDE; i++) /* the square holds zeros, or columns that nobody reads */                                   \
                if (j + i < s->cols) memcpy(square + i * SIDE, from + i * bcs, sizeof(T) * SIDE);                                         \
              from = square;                                                                                                              \
              row = SIDE;                                                                                                                 \
            }                                                                                                                             \
            S##_transpose(from, row, pack + p * COLS + j, COLS);                                                                          \
          }                                                                                                                               \
      }                                                                                                                                   \
      for (; p < s->k; p++) {                                                                                                             \
        T *to = pack + p * COLS;                                                                                                          \
        const T *from = b + p * brs;                                                                                                      \
        UNROLL for (int v = 0; v < V; v++) *(vec*)(to + v * LANES) = (vec){0};                                                            \
        if (PUTS_PARTS && BYTES == 64 && bcs == 1) {                                                                                      \
          UNROLL for (int v = 0; v < V; v++) if (s->cols > v * LANES) S##_take_part(to + v * LANES, from + v * LANES, s->cols - v * LANES); \
        } else if (bcs == 1 && s->cols >= 4) {                                                                                                   \
          for (int j = 0; j + 4 < s->cols; j += 4) memcpy(to + j, from + j, 4 * sizeof(T));                                               \
          memcpy(to + s->cols - 4, from + s->cols - 4, 4 * sizeof(T));                                                                    \
        } else {                                                                                                                          \
          for (int j = 0; j < s->cols; j++) to[j] = from[j * bcs];                                                                        \
        }                                                                                                                                 \
      }                                                                                                                                   \
      b = pack;                                                                                                                           \
      s->ldb = COLS;                                                                                                                      \
    }                                                                                                                                     \
    TALL_TILES(S##KIND)                                                                                                                   \
    for (; i + 4 <= m; i += 4) S##KIND##_tile_4(s, a + i * s->ars, b, c + i * s->crs);                                                    \
    if (i + 2 <= m) { S##KIND##_tile_2(s, a + i * s->ars, b, c + i * s->crs); i += 2; }                                                   \
    if (i < m) S##KIND##_tile_1(s, a + i * s->ars, b, c + i * s->crs);                                                                    \
  }

#define DEFINE_TILED_PRODUCT(T, S)                                                                                                        \
  DEFINE_PRODUCT(T, S)                                                                                                                    \
  DEFINE_PANEL(T, S, _quad, 4 * sizeof(T), 1)                                                                                             \
  DEFINE_PANEL(T, S, _one, NATIVE, 1)                                                                                                     \
  DEFINE_PANEL(T, S, _two, NATIVE, 2)                                                                                                     \
  static void S##_tiled(int64_t m, int64_t n, int64_t k, const void* a_, int64_t ars, int64_t acs, const void* b_, int64_t brs, int64_t bcs,\
                       void* c_, int64_t crs, double alpha, double beta) {                                                                \
    enum { ONE = NATIVE / sizeof(T), TWO = 2 * ONE };                                                                                     \
    const T *a = a_, *b = b_;                                                                                                             \
    T *c = c_, pack[TWO * PANEL_DEPTH] __attribute__((aligned(64)));                                                                      \
    S##_product_shape s = {k, ars, acs, brs, crs, 0, (T)alpha, (T)beta};                                                                  \
    for (int64_t p = 0; p < k || p == 0; p += PANEL_DEPTH) {          /* later parts of a deep GEMM add to C */                        \
      s.k = k - p < PANEL_DEPTH ? k - p : PANEL_DEPTH;                                                                                    \
      for (int64_t j = 0; j < n; j += TWO) {                                                                                              \
        s.cols = n - j < TWO ? (int)(n - j) : TWO;                                                                                        \
        if (s.cols > ONE) S##_two_panel(&s, m, a + p * acs, b + p * brs + j * bcs, brs, bcs, c + j, pack);                                \
        else if (s.cols > 4) S##_one_panel(&s, m, a + p * acs, b + p * brs + j * bcs, brs, bcs, c + j, pack);                             \
        else S##_quad_panel(&s, m, a + p * acs, b + p * brs + j * bcs, brs, bcs, c + j, pack);                                            \
      }                                                                                                                                   \
      s.beta = 1;                                                                                                                         \
    }                                                                                                                                     \
  }
#endif
