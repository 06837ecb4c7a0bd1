/* GEMMs that BLAS does slowly or not at all: tiny ones, few rows or columns, integers; dot products and column
   sums. Compiled once per instruction set; ops/matmul/cpu.pyx chooses a table. Plain pointers, strides in elements, no threads:
   the caller splits columns or rows, and no result depends on how it does. */
#include <stdint.h>
#include <string.h>
#include "../core/isa.h"
#include "matmul.h"
#include "scalar_types.h"
#include "gemm_tile.h"

#define INLINE static inline __attribute__((always_inline))

DEFINE_TILED_PRODUCT(float, f)
DEFINE_TILED_PRODUCT(double, d)

#define KERNEL f
#define T float
#include "gemm/narrow.h"

#define KERNEL d
#define T double
#include "gemm/narrow.h"

/* ---- few rows: A is (m <= 4, k) with unit column stride ---- */

#define KERNEL f
#define T float
#define B float
#define LOAD(p) (*(const lanes_f*)(p))
#define LOAD_ONE(p) (*(p))
#include "gemm/streams.h"

#define KERNEL d
#define T double
#define B double
#define LOAD(p) (*(const lanes_d*)(p))
#define LOAD_ONE(p) (*(p))
#include "gemm/streams.h"

/* halves, widened as they come; A and C are float32 */
typedef float lanes_h __attribute__((vector_size(NATIVE)));
INLINE lanes_h widen_bf16(const bf16* p) {
  typedef uint16_t halves16 __attribute__((vector_size(NATIVE / 2), aligned(2), may_alias));
  typedef uint32_t words __attribute__((vector_size(NATIVE)));
  return (lanes_h)(__builtin_convertvector(*(const halves16*)p, words) << 16);
}
INLINE lanes_h widen_f16(const f16* p) {
  lanes_h x;
  f16_to_f32_block(p, (float*)&x, NATIVE / 4);
  return x;
}
#define KERNEL b
#define T float
#define B bf16
#define LOAD(p) widen_bf16(p)
#define LOAD_ONE(p) ld_bf16(*(p))
#include "gemm/streams.h"

#define KERNEL h
#define T float
#define B f16
#define LOAD(p) widen_f16(p)
#define LOAD_ONE(p) ld_f16(*(p))
#include "gemm/streams.h"

#define DEFINE_DOT(T, S)                                                                                                                  \
  /* the dot product of two contiguous runs */                                                                                            \
  static double S##_dot(int64_t n, const void* a_, const void* b_) {                                                                      \
    const T *a = a_, *b = b_;                                                                                                             \
    lanes_##S acc[8];                                                                                                                     \
    T s = 0;                                                                                                                              \
    int64_t p = 0;                                                                                                                        \
    UNROLL for (int r = 0; r < 8; r++) acc[r] = (lanes_##S){0};                                                                                  \
    for (; p + 8 * LANES_##S <= n; p += 8 * LANES_##S)                                                                                    \
      UNROLL for (int r = 0; r < 8; r++) acc[r] = FMA(*(const lanes_##S*)(a + p + r * LANES_##S), *(const lanes_##S*)(b + p + r * LANES_##S), acc[r]); \
    for (; p < n; p++) s = FMA(a[p], b[p], s);                                                                                            \
    UNROLL for (int h = 4; h > 0; h /= 2) UNROLL for (int r = 0; r < h; r++) acc[r] += acc[r + h];                                        \
    return add_lanes_##S(acc[0]) + s;                                                                                                     \
  }                                                                                                                                       \
  /* out[j] = sum over rows, in blocks of 64 rows so that rounding errors grow with the root of the count */                              \
  static void S##_sum_rows(int64_t m, int64_t n, const void* a_, int64_t ars, void* out_) {                                               \
    const T* a = a_;                                                                                                                      \
    T* out = out_;                                                                                                                        \
    T part[512] __attribute__((aligned(64)));                                                                                             \
    for (int64_t j0 = 0; j0 < n; j0 += 512) {                                                                                             \
      int64_t w = n - j0 < 512 ? n - j0 : 512;                                                                                            \
      memset(out + j0, 0, sizeof(T) * w);                                                                                                 \
      for (int64_t i0 = 0; i0 < m; i0 += 64) {                                                                                            \
        int64_t rows = m - i0 < 64 ? m - i0 : 64;                                                                                         \
        memset(part, 0, sizeof(T) * w);                                                                                                   \
        for (int64_t i = 0; i < rows; i++) {                                                                                              \
          const T* q = a + (i0 + i) * ars + j0;                                                                                           \
          for (int64_t j = 0; j < w; j++) part[j] += q[j];                                                                                \
        }                                                                                                                                 \
        for (int64_t j = 0; j < w; j++) out[j0 + j] += part[j];                                                                           \
      }                                                                                                                                   \
    }                                                                                                                                     \
  }

DEFINE_DOT(float, f)
DEFINE_DOT(double, d)

/* ---- integers: arithmetic modulo 2^bits, any strides; the row of C stays in L1 ---- */

#define DEFINE_INTEGER(T, S)                                                                                                              \
  static void S##_product(int64_t m, int64_t n, int64_t k, const void* a_, int64_t ars, int64_t acs, const void* b_, int64_t brs,         \
                          int64_t bcs, void* c_, int64_t crs, int64_t ccs, int64_t alpha_, int64_t beta_) {                               \
    const T *a = a_, *b = b_;                                                                                                             \
    T *c = c_, alpha = (T)alpha_, beta = (T)beta_, row[1024];                                                                             \
    for (int64_t j0 = 0; j0 < n; j0 += 1024) {                                                                                            \
      int64_t w = n - j0 < 1024 ? n - j0 : 1024;                                                                                          \
      for (int64_t i = 0; i < m; i++) {                                                                                                   \
        memset(row, 0, sizeof(T) * w);                                                                                                    \
        if (bcs == 1 || brs != 1) {                                                                                                       \
          int64_t p = 0;                                                                                                                  \
          /* four rows of B at a time: the row of C is read and written once for them */                                                  \
          for (; bcs == 1 && p + 4 <= k; p += 4) {                                                                                        \
            const T *x = a + i * ars + p * acs, *q = b + p * brs + j0, *r = q + brs, *s = r + brs, *t = s + brs;                          \
            const T x0 = x[0], x1 = x[acs], x2 = x[2 * acs], x3 = x[3 * acs];                                                             \
            for (int64_t j = 0; j < w; j++) row[j] += (T)(x0 * q[j] + x1 * r[j] + x2 * s[j] + x3 * t[j]);                                 \
          }                                                                                                                               \
          for (; p < k; p++) {                                                                                                            \
            T x = a[i * ars + p * acs];                                                                                                   \
            const T* q = b + p * brs + j0 * bcs;                                                                                          \
            if (bcs == 1) for (int64_t j = 0; j < w; j++) row[j] += (T)(x * q[j]);                                                        \
            else for (int64_t j = 0; j < w; j++) row[j] += (T)(x * q[j * bcs]);                                                           \
          }                                                                                                                               \
        } else {                                                                                                                          \
          for (int64_t j = 0; j < w; j++) {                                                                                               \
            const T* q = b + (j0 + j) * bcs;                                                                                              \
            T s = 0;                                                                                                                      \
            if (acs == 1) for (int64_t p = 0; p < k; p++) s += (T)(a[i * ars + p] * q[p]);                                                \
            else for (int64_t p = 0; p < k; p++) s += (T)(a[i * ars + p * acs] * q[p]);                                                   \
            row[j] = s;                                                                                                                   \
          }                                                                                                                               \
        }                                                                                                                                 \
        for (int64_t j = 0; j < w; j++) {                                                                                                 \
          T* to = c + i * crs + (j0 + j) * ccs;                                                                                           \
          *to = beta ? (T)(alpha * row[j] + beta * *to) : (T)(alpha * row[j]);                                                            \
        }                                                                                                                                 \
      }                                                                                                                                   \
    }                                                                                                                                     \
  }

DEFINE_INTEGER(uint8_t, u8)
DEFINE_INTEGER(uint16_t, u16)
DEFINE_INTEGER(uint32_t, u32)
DEFINE_INTEGER(uint64_t, u64)

/* ---- batches of tiny GEMMs: the calls of a tile would take longer than its multiplications ---- */

#define DEFINE_TINY(T, S)                                                                                                                 \
  INLINE void S##_tiny_items(const trt_tiny_batch* g, int64_t begin, int64_t end, int64_t k) {                                            \
    const T alpha = (T)g->alpha, beta = (T)g->beta;                                                                                       \
    for (int64_t at = begin; at < end; at++) {                                                                                            \
      const T *a = (const T*)g->a + at * g->abs, *b = (const T*)g->b + at * g->bbs;                                                       \
      T* c = (T*)g->c + at * g->cbs;                                                                                                      \
      for (int64_t i = 0; i < g->m; i++)                                                                                                  \
        for (int64_t j = 0; j < g->n; j++) {                                                                                              \
          const T *x = a + i * g->ars, *y = b + j * g->bcs;                                                                               \
          T sum = 0, *to = c + i * g->crs + j * g->ccs;                                                                                   \
          for (int64_t p = 0; p < k; p++) sum = FMA(x[p * g->acs], y[p * g->brs], sum);                                                   \
          *to = beta == 0 ? alpha * sum : FMA(beta, *to, alpha * sum);                                                                    \
        }                                                                                                                                 \
    }                                                                                                                                     \
  }                                                                                                                                       \
  static void S##_tiny(const trt_tiny_batch* g, int64_t begin, int64_t end) {                                                             \
    if (g->k == 2) S##_tiny_items(g, begin, end, 2);                                                                                      \
    else if (g->k == 3) S##_tiny_items(g, begin, end, 3);                                                                                 \
    else if (g->k == 4) S##_tiny_items(g, begin, end, 4);                                                                                 \
    else S##_tiny_items(g, begin, end, g->k);                                                                                             \
  }

DEFINE_TINY(float, f)
DEFINE_TINY(double, d)

/* ---- small GEMMs of complex64: summed in double and rounded once; a library call would take as long ---- */

static void c_tiny(int64_t m, int64_t n, int64_t k, const void* a_, int64_t ars, int64_t acs, const void* b_, int64_t brs, int64_t bcs, void* c_,
                   int64_t crs, const double* alpha, const double* beta) {
  const float *a = a_, *b = b_;
  int scaled = alpha[0] != 1 || alpha[1] != 0, keep = beta[0] != 0 || beta[1] != 0;
  for (int64_t i = 0; i < m; i++)
    for (int64_t j = 0; j < n; j++) {
      const float *x = a + 2 * i * ars, *y = b + 2 * j * bcs;
      float* to = (float*)c_ + 2 * (i * crs + j);
      double re = 0, im = 0;
      for (int64_t p = 0; p < k; p++, x += 2 * acs, y += 2 * brs) {
        double xr = x[0], xi = x[1], yr = y[0], yi = y[1];
        re = FMA(-xi, yi, FMA(xr, yr, re));
        im = FMA(xi, yr, FMA(xr, yi, im));
      }
      if (scaled) {
        double r = re;
        re = alpha[0] * r - alpha[1] * im;
        im = alpha[0] * im + alpha[1] * r;
      }
      if (keep) {
        double r = to[0], q = to[1];
        re += beta[0] * r - beta[1] * q;
        im += beta[0] * q + beta[1] * r;
      }
      to[0] = (float)re;
      to[1] = (float)im;
    }
}

const trt_matmul_table ISA_NAME(trt_matmul) = {
    {f_tiled, d_tiled}, {f_tiny, d_tiny}, {narrow_f, narrow_d}, {gram_f, gram_d}, {rows_by_rows_f, rows_by_rows_d, rows_by_rows_b, rows_by_rows_h},
    {rows_by_cols_f, rows_by_cols_d, rows_by_cols_b, rows_by_cols_h},
    {rows_by_short_cols_f, rows_by_short_cols_d, rows_by_short_cols_b, rows_by_short_cols_h}, c_tiny, {f_dot, d_dot}, {f_sum_rows, d_sum_rows},
    {u8_product, u16_product, u32_product, u64_product},
};
