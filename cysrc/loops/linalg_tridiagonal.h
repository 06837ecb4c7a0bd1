/* Eigenvalues and eigenvectors of symmetric tridiagonal matrices of few rows: the leaves of divide and conquer (`lapack.h`). */
#ifndef TRT_LINALG_TRIDIAGONAL_H
#define TRT_LINALG_TRIDIAGONAL_H
#include <stdint.h>

enum {
  QL_MOST = 32                          /* rows at most */
};
/* Elements of its workspace, which lies at a boundary of 64 bytes. */
#define QL_WORK(n) (((int64_t)(n) + 15) / 16 * 16 * (n))

/* The diagonal d becomes the eigenvalues in ascending order, the columns of q (n, n) their eigenvectors; e, the subdiagonal, is overwritten. Elements are at most
   about 1. Returns how many elements of e are left where the iteration does not converge (steqr's info code), else 0. */
typedef int (*trt_implicit_ql)(int n, void* d, void* e, void* q, int64_t ldq, void* work);
typedef struct {
  trt_implicit_ql ql[2];                /* of float and double */
} trt_tridiagonal_kernels;
#endif
