/* How the GEMMs of cysrc/ops/matmul/matmul.pyx reach a device: matrices by strides, one function that multiplies them. */
#ifndef TRT_DEVICE_GEMM_H
#define TRT_DEVICE_GEMM_H
#include <stdint.h>

typedef struct {                      /* a batch of matrices inside a tensor; strides in elements */
  int64_t batch, rows, cols, bs, rs, cs;
  int flipped;                        /* transposed against the order of the tensor's dimensions */
} trt_mat;

#endif
