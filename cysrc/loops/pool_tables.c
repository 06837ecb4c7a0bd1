/* Tables of max, average and adaptive average pooling.
 * Instruction sets: base, avx2 (tools/measure_isa.py: others gain nothing). */
#include "pool_tables.h"
#include "pool.h"

#define POOL_ENTRY(T, OP) {OP##_planes_##T, OP##_last_##T, OP##_backward_planes_##T, OP##_backward_last_##T}
const max_pool_kernels ISA_NAME(max_pool_table)[NUM_DTYPES] = {
    [DT_i32] = POOL_ENTRY(i32, max_pool), POOL_ENTRY(i64, max_pool), POOL_ENTRY(f16, max_pool),
    POOL_ENTRY(bf16, max_pool),           POOL_ENTRY(f32, max_pool), POOL_ENTRY(f64, max_pool),
};
const avg_pool_kernels ISA_NAME(avg_pool_table)[NUM_DTYPES] = {
    [DT_i64] = POOL_ENTRY(i64, avg_pool), POOL_ENTRY(f16, avg_pool), POOL_ENTRY(bf16, avg_pool),
    POOL_ENTRY(f32, avg_pool),            POOL_ENTRY(f64, avg_pool),
};
const avg_pool_kernels ISA_NAME(adaptive_avg_pool_table)[NUM_DTYPES] = FLOATS_OF(POOL_ENTRY, adaptive_avg_pool);
