/* Matrices by strides, as the steps of GEMMs take them (cysrc/ops/matmul/steps.yaml). */
#ifndef TRT_DEVICE_GEMM_H
#define TRT_DEVICE_GEMM_H
#include <stdint.h>

typedef struct {                      /* a batch of matrices inside a tensor; strides in elements */
  int64_t batch, rows, cols, bs, rs, cs;
  int flipped;                        /* transposed against the order of the tensor's dimensions */
} trt_mat;

#endif
