/* What the pooling loops export: tables by dtype code, null where there are none. Windows are declared in cysrc/ops/pool/steps.yaml. */
#ifndef TRT_POOL_TABLES_H
#define TRT_POOL_TABLES_H

#include <stdint.h>
#include "../core/dtype.h"
#include "pool_steps.h"

typedef void (*max_pool_fn)(const char* in, char* out, int64_t* indices, const pool_call* call, int64_t items_begin,
                            int64_t items_end);
typedef void (*max_pool_backward_fn)(const char* grad, const int64_t* indices, char* grad_in, const pool_call* call,
                                     int64_t items_begin, int64_t items_end);
typedef void (*avg_pool_fn)(const char* in, char* out, const pool_call* call, int64_t items_begin, int64_t items_end);
typedef struct {
    max_pool_fn planes, last;
    max_pool_backward_fn backward_planes, backward_last;
} max_pool_kernels;
typedef struct {
    avg_pool_fn planes, last, backward_planes, backward_last; /* backward: (grad, grad_in, ...) */
} avg_pool_kernels;

#endif
