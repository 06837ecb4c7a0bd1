/* Recurrent layers by sequences: a task takes rows of the batch through all steps, so that threads never wait for each other. The product with the
 * hidden state runs over panels of packed weights, whose sums meet the gates' activations while they are in registers or L1. Every sum follows the
 * order of its depth, whatever rows a task has. */
#include <immintrin.h>

#include "kernel_base.h"
#include "recurrent.h"

#if defined(__AVX512F__)
#include "recurrent_lanes.h"
#define IN_LANES
#endif
#define T f32
#include "recurrent_kernel.h"
#undef T
#undef IN_LANES
#define T f64
#include "recurrent_kernel.h"
#undef T

const recurrent_kernels ISA_NAME(recurrent)[2] = {
    {f32_of(forward), f32_of(backward), f32_of(pack_rows), f32_of(pack_columns), VECTOR_BYTES / sizeof(f32)},
    {f64_of(forward), f64_of(backward), f64_of(pack_rows), f64_of(pack_columns), VECTOR_BYTES / sizeof(f64)},
};
