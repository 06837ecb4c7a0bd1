/* What the cross entropy loops export; their arguments are declared in cysrc/ops/loss/steps.yaml. */
#ifndef TRT_LOSS_H
#define TRT_LOSS_H
#include <stdint.h>
#include "loss_steps.h"

/* Cross entropy of rows by dtype code (f32, f64; else null): weight may be null; loss, lse, row_weight: one value per row. */
typedef int64_t (*cross_entropy_fn)(const char* logits, int64_t row_stride, int64_t classes, const int64_t* target,
                                    const char* weight, int64_t ignore_index, double smoothing, char* loss, char* lse,
                                    char* row_weight, int64_t rows_begin, int64_t rows_end);
typedef int64_t (*cross_entropy_backward_fn)(const char* logits, int64_t row_stride, int64_t classes,
                                             const int64_t* target, const char* weight, int64_t ignore_index,
                                             double smoothing, const char* lse, const char* grad, int64_t grad_stride,
                                             double grad_scale, char* out, int64_t out_row_stride, int64_t rows_begin,
                                             int64_t rows_end);
typedef struct {
    cross_entropy_fn forward;
    cross_entropy_backward_fn backward;
} cross_entropy_kernels;
#endif
