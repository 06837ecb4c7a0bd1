/* The table of matmul.c's kernels; index 0 is float, 1 double; where there are more, 2 is bfloat16 and
   3 float16 for B beside float for A and C. Strides are in elements. */
#ifndef TRT_MATMUL_H
#define TRT_MATMUL_H
#include <stdint.h>

enum { NARROW = 16, NARROW_DEPTH = 256 };    /* columns of B, and its rows, up to which `narrow` takes it */
enum { GRAM_DEPTH = 4096 };                   /* rows of A' and B in one sum of `gram` */
enum { SHALLOW = 32 };                        /* depth up to which the sums of a row of C stay in registers */

/* A batch of GEMMs of a few multiplications each; strides of items, rows and columns. */
typedef struct {
  int64_t m, n, k;
  const void *a, *b;
  void* c;
  int64_t abs, ars, acs, bbs, brs, bcs, cbs, crs, ccs;
  double alpha, beta;
} trt_tiny_batch;

typedef struct {
  void (*tiled[2])(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, int64_t acs, const void* b, int64_t brs, int64_t bcs, void* c,
                  int64_t crs, double alpha, double beta);                                  /* C has unit column stride */
  void (*tiny[2])(const trt_tiny_batch* g, int64_t begin, int64_t end);                       /* any strides */
  void (*narrow[2])(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t brs, int64_t bcs, const void* bias,
                   void* c, int64_t crs, double alpha, double beta);                        /* A and C have unit column stride; the bias, or NULL, replaces C */
  void (*gram[2])(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, int64_t acs, const void* b, int64_t brs, void* c, int64_t crs,
                  int64_t ccs, double alpha, double beta);                                  /* m, n <= NARROW; B has unit column stride */
  void (*rows_by_rows[4])(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t ldb, void* c, int64_t crs,
                          int64_t ccs, double alpha, double beta);                          /* m <= 4, B stored (n, k) */
  void (*rows_by_cols[4])(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t ldb, void* c, int64_t crs,
                          int64_t ccs, double alpha, double beta);                          /* m <= 12, B stored (k, n) */
  void (*rows_by_short_cols[4])(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, const void* b, int64_t ldb, void* c, int64_t crs,
                                int64_t ccs, double alpha, double beta);                    /* m <= 12, 2 <= k <= SHALLOW, B stored (n, k) */
  void (*tiny_complex)(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, int64_t acs, const void* b, int64_t brs, int64_t bcs,
                       void* c, int64_t crs, const double* alpha, const double* beta);      /* complex64, C has unit column stride */
  double (*dot[2])(int64_t n, const void* a, const void* b);
  void (*sum_rows[2])(int64_t m, int64_t n, const void* a, int64_t ars, void* out);
  void (*integer[4])(int64_t m, int64_t n, int64_t k, const void* a, int64_t ars, int64_t acs, const void* b, int64_t brs, int64_t bcs,
                     void* c, int64_t crs, int64_t ccs, int64_t alpha, int64_t beta);       /* by log2 of the element size */
} trt_matmul_table;

#endif
