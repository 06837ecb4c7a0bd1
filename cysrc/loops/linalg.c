/* Factorisations of matrices of few rows: LU with partial pivoting, the solution of systems, Cholesky. A call of LAPACK
   costs 3 µs before its first operation, an LU of 8 rows 0.3 µs.
 * Instruction sets: base (tools/measure_isa.py: others gain nothing). */
#include <complex.h>
#include <math.h>
#include <string.h>
#include "../core/isa.h"
#include "linalg.h"

/* T: element, R: its real type, SIZE: what pivots are chosen by (|re| + |im|, as in LAPACK), CONJ, REAL, ROOT. */
#define DEFINE_SMALL(T, R, S, SIZE, CONJ, REAL, ROOT)                                             \
  static int S##_lu(int n, void* matrix, int* pivots) {                                           \
    T* a = (T*)matrix;                                                                            \
    int info = 0;                                                                                 \
    for (int j = 0; j < n; j++) {                                                                 \
      T* x = a + j * n;                                                                           \
      int p = j;                                                                                  \
      R best = SIZE(x[j]);                                                                        \
      for (int i = j + 1; i < n; i++)                                                             \
        if (SIZE(x[i]) > best) { best = SIZE(x[i]); p = i; }                                      \
      pivots[j] = p + 1;                                                                          \
      if (best == 0) {                                                                            \
        if (!info) info = j + 1;                                                                  \
        continue;                                                                                 \
      }                                                                                           \
      if (p != j)                                                                                 \
        for (int c = 0; c < n; c++) { T t = a[c * n + j]; a[c * n + j] = a[c * n + p]; a[c * n + p] = t; } \
      for (int i = j + 1; i < n; i++) x[i] /= x[j];                                               \
      for (int c = j + 1; c < n; c++) {                                                           \
        T* y = a + c * n, f = y[j];                                                               \
        for (int i = j + 1; i < n; i++) y[i] -= x[i] * f;                                         \
      }                                                                                           \
    }                                                                                             \
    return info;                                                                                  \
  }                                                                                               \
  static void S##_solve(int n, int k, const void* lu, const int* pivots, void* b) {               \
    const T* a = (const T*)lu;                                                                    \
    for (int c = 0; c < k; c++) {                                                                 \
      T* x = (T*)b + (size_t)c * n;                                                               \
      for (int j = 0; j < n; j++) { T t = x[j]; x[j] = x[pivots[j] - 1]; x[pivots[j] - 1] = t; }  \
      for (int j = 0; j < n; j++)                                                                 \
        for (int i = j + 1; i < n; i++) x[i] -= a[j * n + i] * x[j];                              \
      for (int j = n - 1; j >= 0; j--) {                                                          \
        x[j] /= a[j * n + j];                                                                     \
        for (int i = 0; i < j; i++) x[i] -= a[j * n + i] * x[j];                                  \
      }                                                                                           \
    }                                                                                             \
  }                                                                                               \
  static int S##_cholesky(int n, void* matrix) {                                                  \
    T* a = (T*)matrix;                                                                            \
    for (int j = 0; j < n; j++) {                                                                 \
      T* x = a + j * n;                                                                           \
      R d = REAL(x[j]);                                                                           \
      if (!(d > 0)) return j + 1;                                                                 \
      d = ROOT(d);                                                                                \
      x[j] = d;                                                                                   \
      for (int i = j + 1; i < n; i++) x[i] /= d;                                                  \
      for (int c = j + 1; c < n; c++) {                                                           \
        T f = CONJ(x[c]);                                                                         \
        for (int i = c; i < n; i++) a[c * n + i] -= x[i] * f;                                     \
      }                                                                                           \
    }                                                                                             \
    return 0;                                                                                     \
  }
#define SAME(x) (x)
#define SIZE_C(x) (fabsf(crealf(x)) + fabsf(cimagf(x)))
#define SIZE_Z(x) (fabs(creal(x)) + fabs(cimag(x)))
DEFINE_SMALL(float, float, s, fabsf, SAME, SAME, sqrtf)
DEFINE_SMALL(double, double, d, fabs, SAME, SAME, sqrt)
DEFINE_SMALL(float complex, float, c, SIZE_C, conjf, crealf, sqrtf)
DEFINE_SMALL(double complex, double, z, SIZE_Z, conj, creal, sqrt)

const trt_linalg_table ISA_NAME(trt_linalg) = {
    {s_lu, d_lu, c_lu, z_lu}, {s_solve, d_solve, c_solve, z_solve}, {s_cholesky, d_cholesky, c_cholesky, z_cholesky}};
