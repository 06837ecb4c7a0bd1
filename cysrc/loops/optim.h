/* The updates of optimizers over one run of contiguous elements. Shared by loops/optim.c and ops/optim.pyx. */
#ifndef TRT_OPTIM_H
#define TRT_OPTIM_H
#include <stdint.h>

typedef struct {
    double lr, weight_decay, momentum, dampening;
    double grad_scale; /* gradients are divided by it; 1: none */
    int nesterov, maximize, first, scaled;
} sgd_params;

typedef struct {
    double lr, beta1, beta2, weight_decay, eps;
    double bias1, bias2_sqrt; /* 1 - beta1^t and sqrt(1 - beta2^t) */
    double grad_scale;
    int amsgrad, maximize, decoupled, scaled;
} adam_params;

/* tensors: parameter, gradient (written only when scaled), momentum buffer or NULL; elements [0, n) */
typedef void (*sgd_fn)(char *p, char *g, char *buffer, int64_t n, const sgd_params *s);
/* tensors: parameter, gradient, first and second moment, largest second moment or NULL */
typedef void (*adam_fn)(char *p, char *g, char *m, char *v, char *largest, int64_t n, const adam_params *s);

typedef struct {
    sgd_fn sgd[4]; /* f16, bf16, f32, f64 */
    adam_fn adam[4];
} optim_kernels;

extern const optim_kernels optim_table_base, optim_table_avx2, optim_table_avx512;
#endif
