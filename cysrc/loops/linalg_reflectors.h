/* Householder reflectors of real matrices: QR, products with Q, and the reduction of a symmetric matrix to tridiagonal form. Reflectors are applied a block at
   a time, I - V T V' (Schreiber and Van Loan 1989), six columns at once that stay in the first cache between V' C and C - V (T V' C).
   Matrices are column-major; reflectors and their factors are stored as LAPACK does. `work` is of work_size(rows) elements, at a boundary of 64 bytes. */
#ifndef TRT_LINALG_REFLECTORS_H
#define TRT_LINALG_REFLECTORS_H
#include <stdint.h>

enum {
  REFLECTOR_BLOCK = 32,                 /* reflectors applied at once */
  REFLECTOR_ROWS = 16                   /* columns of `tridiagonal` and `pivoted_qr` are padded to a multiple */
};

typedef struct {
  double (*largest)(int64_t n, const void* x);          /* magnitude; NaN if one is */
  int64_t (*work_size)(int64_t rows);
  /* geqrf. `triangles`, unless NULL, receives (min(m, n) + 31) / 32 blocks of 32 x 32: -T, which generate_q needs not compute again */
  void (*qr)(int64_t m, int64_t n, void* a, int64_t lda, void* tau, void* triangles, void* work);
  /* orgqr: the first n columns of the product of k reflectors, which lie in the first k of q; triangles as of `qr`, or NULL */
  void (*generate_q)(int64_t m, int64_t n, int64_t k, void* q, int64_t ldq, const void* tau, const void* triangles, void* work);
  /* ormqr from the left: c, (m, n), becomes Q c or (transposed) Q' c */
  void (*multiply_q)(int transposed, int64_t m, int64_t n, int64_t k, const void* a, int64_t lda, const void* tau, void* c, int64_t ldc, void* work);
  /* sytrd of the lower triangle: diagonal d, subdiagonal e; the reflectors of rows 1 .. n stay below the subdiagonal. Columns begin at boundaries of 64 bytes
     and are padded with zeros; what is above the diagonal is overwritten */
  void (*tridiagonal)(int64_t n, void* a, int64_t lda, void* d, void* e, void* tau, void* work);
  /* geqp3 with all columns free: A P = Q R, P's columns from 1 in pivots. Columns as those of `tridiagonal`; `work` is of pivoted_work_size(m, n) */
  int64_t (*pivoted_work_size)(int64_t m, int64_t n);
  void (*pivoted_qr)(int64_t m, int64_t n, void* a, int64_t lda, void* tau, int* pivots, void* work);
} trt_reflector_kernels;
#endif
