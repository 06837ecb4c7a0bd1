/* GEMMs that BLAS does slowly or not at all: tiny ones, few rows or columns, integers; dot products and column
   sums. Compiled once per instruction set; ops/matmul/cpu.pyx chooses a table. Plain pointers, strides in elements, no threads:
   the caller splits columns or rows, and no result depends on how it does. */
#include <stdint.h>
#include <string.h>
#include "../core/isa.h"
#include "matmul.h"
#include "gemm_tile.h"

#define INLINE static inline __attribute__((always_inline))

DEFINE_TILED_PRODUCT(float, f)
DEFINE_TILED_PRODUCT(double, d)

/* ---- few rows: A is (m <= 4, k) with unit column stride; B is streamed once ---- */

#define DEFINE_DOTS(T, S)                                                                                                                 \
  typedef T S##_lanes __attribute__((vector_size(NATIVE), aligned(sizeof(T)), may_alias));                                                \
  enum { S##_LANES = NATIVE / sizeof(T) };                                                                                                \
  INLINE T S##_add_lanes(S##_lanes v) {                                                                                                   \
    T lane[S##_LANES];                                                                                                                    \
    *(S##_lanes*)lane = v;                                                                                                                \
    for (int h = S##_LANES / 2; h > 0; h /= 2) for (int i = 0; i < h; i++) lane[i] += lane[i + h];                                        \
    return lane[0];                                                                                                                       \
  }                                                                                                                                       \
  /* C[i, j] = A[i, :] . B[j, :] for one row j of a transposed B, which is a single stream of memory (several at a time take              \
     longer), in `runs` vectors at a time: eight sums hide the latency of an addition */                                                  \
  INLINE void S##_dots(const int m, const int runs, int64_t k, const T* a, int64_t ars, const T* b, T* c, int64_t crs, T alpha, T beta) { \
    S##_lanes acc[4][8];                                                                                                                  \
    int64_t p = 0;                                                                                                                        \
    UNROLL for (int i = 0; i < m; i++) UNROLL for (int r = 0; r < runs; r++) acc[i][r] = (S##_lanes){0};                                  \
    for (; p + runs * S##_LANES <= k; p += runs * S##_LANES)                                                                              \
      UNROLL for (int r = 0; r < runs; r++) {                                                                                             \
        S##_lanes bv = *(const S##_lanes*)(b + p + r * S##_LANES);                                                                        \
        UNROLL for (int i = 0; i < m; i++) acc[i][r] += *(const S##_lanes*)(a + i * ars + p + r * S##_LANES) * bv;                        \
      }                                                                                                                                   \
    for (; p + S##_LANES <= k; p += S##_LANES)                                                                                            \
      UNROLL for (int i = 0; i < m; i++) acc[i][0] += *(const S##_lanes*)(a + i * ars + p) * *(const S##_lanes*)(b + p);                  \
    UNROLL for (int i = 0; i < m; i++) {                                                                                                  \
      UNROLL for (int h = runs / 2; h > 0; h /= 2) UNROLL for (int r = 0; r < h; r++) acc[i][r] += acc[i][r + h];                         \
      T s = S##_add_lanes(acc[i][0]), *to = c + i * crs;                                                                                  \
      for (int64_t q = p; q < k; q++) s += a[i * ars + q] * b[q];                                                                         \
      *to = beta != 0 ? alpha * s + beta * *to : alpha * s;                                                                               \
    }                                                                                                                                     \
  }                                                                                                                                       \
  INLINE void S##_dots_all(const int m, const int runs, int64_t n, int64_t k, const T* a, int64_t ars, const T* b, int64_t ldb, T* c,     \
                           int64_t crs, int64_t ccs, T alpha, T beta) {                                                                   \
    for (int64_t j = 0; j < n; j++) S##_dots(m, runs, k, a, ars, b + j * ldb, c + j * ccs, crs, alpha, beta);                             \
  }                                                                                                                                       \
  static void S##_rows_by_rows(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t ldb, void* c,          \
                               int64_t crs, int64_t ccs, double alpha, double beta) {                                                     \
    switch (m) {                                                                                                                          \
      case 1: S##_dots_all(1, 8, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;                                            \
      case 2: S##_dots_all(2, 4, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;                                            \
      case 3: S##_dots_all(3, 2, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;                                            \
      case 4: S##_dots_all(4, 2, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;                                            \
    }                                                                                                                                     \
  }                                                                                                                                       \
  /* C[i, :] = sum over p of A[i, p] B[p, :], eight rows of B at a time into sums that stay in L1 */                                      \
  INLINE void S##_combine(const int m, int64_t n, int64_t k, const T* a, int64_t ars, const T* b, int64_t ldb, T* c, int64_t crs,         \
                          int64_t ccs, T alpha, T beta) {                                                                                 \
    const int64_t block = 4096 / (m == 3 ? 4 : m);                                                                                        \
    T sums[4096] __attribute__((aligned(64)));                                                                                            \
    for (int64_t j0 = 0; j0 < n; j0 += block) {                                                                                           \
      int64_t w = n - j0 < block ? n - j0 : block, p = 0;                                                                                 \
      for (int i = 0; i < m; i++) memset(sums + i * block, 0, sizeof(T) * w);                                                             \
      for (; p + 8 <= k; p += 8) {                                                                                                        \
        const T* q = b + p * ldb + j0;                                                                                                    \
        int64_t j = 0;                                                                                                                    \
        for (; j + S##_LANES <= w; j += S##_LANES) {                                                                                      \
          S##_lanes acc[4];                                                                                                               \
          for (int i = 0; i < m; i++) acc[i] = *(S##_lanes*)(sums + i * block + j);                                                       \
          for (int r = 0; r < 8; r++) {                                                                                                   \
            S##_lanes bv = *(const S##_lanes*)(q + r * ldb + j);                                                                          \
            for (int i = 0; i < m; i++) acc[i] += a[i * ars + p + r] * bv;                                                                \
          }                                                                                                                               \
          for (int i = 0; i < m; i++) *(S##_lanes*)(sums + i * block + j) = acc[i];                                                       \
        }                                                                                                                                 \
        for (; j < w; j++)                                                                                                                \
          for (int i = 0; i < m; i++) {                                                                                                   \
            T s = sums[i * block + j];                                                                                                    \
            for (int r = 0; r < 8; r++) s += a[i * ars + p + r] * q[r * ldb + j];                                                         \
            sums[i * block + j] = s;                                                                                                      \
          }                                                                                                                               \
      }                                                                                                                                   \
      for (; p < k; p++)                                                                                                                  \
        for (int i = 0; i < m; i++) {                                                                                                     \
          T x = a[i * ars + p];                                                                                                           \
          const T* q = b + p * ldb + j0;                                                                                                  \
          for (int64_t j = 0; j < w; j++) sums[i * block + j] += x * q[j];                                                                \
        }                                                                                                                                 \
      for (int i = 0; i < m; i++)                                                                                                         \
        for (int64_t j = 0; j < w; j++) {                                                                                                 \
          T* to = c + i * crs + (j0 + j) * ccs;                                                                                           \
          *to = beta != 0 ? alpha * sums[i * block + j] + beta * *to : alpha * sums[i * block + j];                                       \
        }                                                                                                                                 \
    }                                                                                                                                     \
  }                                                                                                                                       \
  static void S##_rows_by_cols(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t ldb, void* c,          \
                               int64_t crs, int64_t ccs, double alpha, double beta) {                                                     \
    switch (m) {                                                                                                                          \
      case 1: S##_combine(1, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;                                                \
      case 2: S##_combine(2, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;                                                \
      case 3: S##_combine(3, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;                                                \
      case 4: S##_combine(4, n, k, a, ars, b, ldb, c, crs, ccs, (T)alpha, (T)beta); break;                                                \
    }                                                                                                                                     \
  }                                                                                                                                       \
  /* the dot product of two contiguous runs */                                                                                            \
  static double S##_dot(int64_t n, const void* a_, const void* b_) {                                                                      \
    const T *a = a_, *b = b_;                                                                                                             \
    S##_lanes acc[8];                                                                                                                     \
    T s = 0;                                                                                                                              \
    int64_t p = 0;                                                                                                                        \
    for (int r = 0; r < 8; r++) acc[r] = (S##_lanes){0};                                                                                  \
    for (; p + 8 * S##_LANES <= n; p += 8 * S##_LANES)                                                                                    \
      for (int r = 0; r < 8; r++) acc[r] += *(const S##_lanes*)(a + p + r * S##_LANES) * *(const S##_lanes*)(b + p + r * S##_LANES);      \
    for (; p < n; p++) s += a[p] * b[p];                                                                                                  \
    for (int h = 4; h > 0; h /= 2) for (int r = 0; r < h; r++) acc[r] += acc[r + h];                                                      \
    return S##_add_lanes(acc[0]) + s;                                                                                                     \
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

DEFINE_DOTS(float, f)
DEFINE_DOTS(double, d)

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
          for (int64_t p = 0; p < k; p++) {                                                                                               \
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
        re += xr * yr - xi * yi;
        im += xr * yi + xi * yr;
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
    {f_tiled, d_tiled}, {f_rows_by_rows, d_rows_by_rows}, {f_rows_by_cols, d_rows_by_cols}, c_tiny, {f_dot, d_dot}, {f_sum_rows, d_sum_rows},
    {u8_product, u16_product, u32_product, u64_product},
};
