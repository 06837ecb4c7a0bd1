/* Argument block of the cross entropy kernels in loss.c, declared again in ops/loss/loss.pyx. */
#ifndef TRT_LOSS_H
#define TRT_LOSS_H
#include <stdint.h>

enum { ENTROPY_LANES = 64 }; /* positions of a block */
enum { ENTROPY_FEW = 24 };   /* classes up to which rows (inner 1) are taken */

/* Logits, and their gradient `out`, are (outer, classes, inner) and contiguous; the rest is (outer * inner). */
typedef struct {
    const char *x, *weight; /* weight: a number a class, or NULL */
    const int64_t *target;
    char *loss, *lse, *row_weight; /* written forward; lse is read backward */
    const char *grad;
    char *out;
    int64_t classes, inner, span; /* span: positions that follow each other, inner or (inner 1) all of them */
    int64_t ignore_index, grad_stride; /* grad_stride in bytes, 0 for one gradient of all */
    double smoothing, scale;
    int is_double;
    int bad; /* set by the forward kernel: a target is neither a class nor ignore_index */
} EntropyArgs;

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
