/* The table of linalg.c's kernels for small matrices, by LAPACK's types: float, double, complex float, complex double.
   Matrices are dense and column-major. Used by lapack.h in LAPACK's place. */
#ifndef TRT_LINALG_H
#define TRT_LINALG_H

enum { TRT_SMALL = 16 };          /* rows up to which a call of LAPACK costs more than the work (measured) */

typedef struct {
  int (*lu[4])(int n, void* a, int* pivots);                                    /* getrf's results and info */
  void (*solve[4])(int n, int k, const void* lu, const int* pivots, void* b);   /* b: (n, k) becomes A^-1 b */
  int (*cholesky[4])(int n, void* a);                                           /* the lower triangle; potrf's info */
} trt_linalg_table;

#endif
