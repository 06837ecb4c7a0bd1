/* A call of linear algebra, as cysrc/ops/linalg/linalg.pyx prepares it: stacks of matrices with any strides come in, dense column-major
   results leave. The CPU hands each matrix to `one` (ops/linalg/cpu.pyx); CUDA runs the routine on the whole batch (cysrc/cuda/linalg.pyx). */
#ifndef TRT_LINALG_JOB_H
#define TRT_LINALG_JOB_H
#include <stdint.h>

enum { TRT_STACK_DIMS = 64 };
typedef struct {
  const char* data;
  int64_t rows, cols, rs, cs;                   /* strides in elements */
  int batch_dims;
  int64_t sizes[TRT_STACK_DIMS], strides[TRT_STACK_DIMS];
} trt_stack;

enum {                                          /* routines */
  TRT_LU, TRT_LU_SOLVE, TRT_PERMUTATION, TRT_SOLVE, TRT_INVERSE, TRT_DETERMINANT, TRT_CHOLESKY, TRT_CHOLESKY_SOLVE, TRT_CHOLESKY_INVERSE,
  TRT_TRIANGULAR, TRT_LDL, TRT_LDL_SOLVE, TRT_QR, TRT_GEQRF, TRT_HOUSEHOLDER, TRT_ORMQR, TRT_EIGH, TRT_EIG, TRT_SVD, TRT_LEAST_SQUARES
};

enum { TRT_GELS, TRT_GELSY, TRT_GELSD, TRT_GELSS };     /* methods of least squares, LAPACK's names; of full rank, any rank */

typedef struct trt_linalg_job {
  int t;                                        /* LAPACK's type: 0 float, 1 double, 2 complex float, 3 complex double */
  int size;                                     /* bytes of an element */
  int m, n, k;
  int flag;                                     /* the routine's own; of least squares the method */
  char uplo, trans, side, diag;
  int lwork, liwork;
  double tolerance;
  int64_t count;                                /* matrices */
  int64_t scratch;                              /* bytes that one thread needs */
  int64_t part[6];                              /* where its parts begin */
  int (*one)(struct trt_linalg_job* job, int64_t i, char* scratch);
  int* info;                                    /* what `one` returned, per matrix */
  trt_stack a, b, c;                            /* inputs */
  char* out[4];                                 /* dense results */
  int64_t step[4];                              /* bytes between one matrix's and the next's */
} trt_linalg_job;
#endif
