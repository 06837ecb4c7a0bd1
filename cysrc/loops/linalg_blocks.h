/* LU with partial pivoting and triangular systems of larger real matrices: halves, until a substitution or a panel of columns in registers is left; what lies
   between are matrix products, which the caller brings. Matrices are column-major. */
#ifndef TRT_LINALG_BLOCKS_H
#define TRT_LINALG_BLOCKS_H
#include <stdint.h>

/* `subtract`: C -= A B, C (m, n) with adjacent rows and columns ldc apart, A (m, k) and B (k, n) of any strides, in elements. */
typedef struct trt_products {
  void (*subtract)(struct trt_products* self, int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, int64_t acs, const void* b, int64_t ldb, void* c, int64_t ldc);
  char* workspace;                  /* of the products, and its bytes */
  int64_t bytes;
  int type;                         /* 0: float, 1: double */
  int failed;                       /* for want of memory */
} trt_products;

typedef struct {
  /* getrf: pivots from 1; the first column whose pivot is zero, from 1, or 0 */
  int (*lu)(trt_products* p, int64_t m, int64_t n, void* a, int64_t lda, int* pivots);
  /* the (n, columns) matrix b becomes T^-1 b. Element (i, j) of T lies at i * rs + j * cs; the triangle above the diagonal counts, or that below it */
  void (*triangle)(trt_products* p, int64_t n, const void* t, int64_t rs, int64_t cs, int upper, int unit, void* b, int64_t ldb, int64_t columns);
  void (*swap_rows)(void* a, int64_t lda, int64_t columns, const int* pivots, int64_t count, int backwards);
  /* to[i + j * ldt] = from[i * ldf + j], for any type of that size */
  void (*transpose)(int64_t rows, int64_t columns, const void* from, int64_t ldf, void* to, int64_t ldt);
} trt_block_kernels;
#endif
