/* The translation unit of the kernel headers: compiled once per instruction set, exports the tables of kernels.h.
 * The core picks one instruction set's tables at import by CPU feature. */
#include "kernels.h"

#include "conv.h"
#include "norm.h"
#include "pool.h"
#include "softmax.h"

#define REDUCTION(OP, T) {OP##_##T##_rows, OP##_##T##_cols, OP##_##T##_chunks, OP##_##T##_combine}
#define FOR_REALS(OP)                                                                                \
    {                                                                                                \
        REDUCTION(OP, u8), REDUCTION(OP, u8), REDUCTION(OP, i8), REDUCTION(OP, i16), REDUCTION(OP, i32), \
            REDUCTION(OP, i64), FOR_FLOATS_LIST(OP)                                                  \
    }
#define FOR_FLOATS_LIST(OP) REDUCTION(OP, f16), REDUCTION(OP, bf16), REDUCTION(OP, f32), REDUCTION(OP, f64)
#define FOR_ALL(OP)                                                                                  \
    {                                                                                                \
        REDUCTION(OP, u8), REDUCTION(OP, u8), REDUCTION(OP, i8), REDUCTION(OP, i16), REDUCTION(OP, i32), \
            REDUCTION(OP, i64), FOR_FLOATS_LIST(OP), REDUCTION(OP, c64), REDUCTION(OP, c128)         \
    }
#define FOR_FLOATS(OP)                                                                               \
    { [DT_f16] = FOR_FLOATS_LIST(OP) }
#define FOR_INEXACT(OP)                                                                              \
    { [DT_f16] = FOR_FLOATS_LIST(OP), REDUCTION(OP, c64), REDUCTION(OP, c128) }

const reduce_kernels ISA_NAME(reduce_table)[REDUCE_OP_COUNT][KERNEL_DTYPES] = {
    [REDUCE_SUM] = FOR_ALL(sum),
    [REDUCE_PROD] = FOR_ALL(prod),
    [REDUCE_MIN] = FOR_REALS(min),
    [REDUCE_MAX] = FOR_REALS(max),
    [REDUCE_ARGMIN] = FOR_REALS(argmin),
    [REDUCE_ARGMAX] = FOR_REALS(argmax),
    [REDUCE_ANY] = FOR_ALL(any),
    [REDUCE_ALL] = FOR_ALL(all),
    [REDUCE_COUNT_NONZERO] = FOR_ALL(count),
    [REDUCE_ABS_SUM] = FOR_INEXACT(abs_sum),
    [REDUCE_SQ_SUM] = FOR_INEXACT(sq_sum),
    [REDUCE_NORM_P] = FOR_INEXACT(norm_p),
    [REDUCE_ABS_MAX] = FOR_INEXACT(abs_max),
    [REDUCE_ABS_MIN] = FOR_INEXACT(abs_min),
    [REDUCE_VAR] = FOR_FLOATS(var),
    [REDUCE_LOGSUMEXP] = FOR_FLOATS(logsumexp),
};

#define SCAN(OP, T) {OP##_##T##_scan_rows, OP##_##T##_scan_cols}
#define SCANS(OP)                                                                                    \
    {                                                                                                \
        SCAN(OP, u8), SCAN(OP, u8), SCAN(OP, i8), SCAN(OP, i16), SCAN(OP, i32), SCAN(OP, i64), SCAN(OP, f16), \
            SCAN(OP, bf16), SCAN(OP, f32), SCAN(OP, f64), SCAN(OP, c64), SCAN(OP, c128)              \
    }
const scan_kernels ISA_NAME(scan_table)[SCAN_OP_COUNT][KERNEL_DTYPES] = {
    [SCAN_CUMSUM] = SCANS(cumsum),
    [SCAN_CUMPROD] = SCANS(cumprod),
};

#define SOFTMAX_ENTRY(OP, T) \
    [DT_##T] = {OP##_##T##_rows, OP##_##T##_cols, OP##_##T##_apply, OP##_backward_##T##_rows, OP##_backward_##T##_cols}
#define SOFTMAX_ENTRIES(OP) \
    { SOFTMAX_ENTRY(OP, f16), SOFTMAX_ENTRY(OP, bf16), SOFTMAX_ENTRY(OP, f32), SOFTMAX_ENTRY(OP, f64) }
const softmax_kernels ISA_NAME(softmax_table)[SOFTMAX_OP_COUNT][KERNEL_DTYPES] = {
    [SOFTMAX] = SOFTMAX_ENTRIES(softmax),
    [LOG_SOFTMAX] = SOFTMAX_ENTRIES(log_softmax),
};
const softmax_combine_fn ISA_NAME(softmax_combine) = softmax_combine;
const cross_entropy_kernels ISA_NAME(cross_entropy_table)[KERNEL_DTYPES] = {
    [DT_f32] = {cross_entropy_f32, cross_entropy_backward_f32},
    [DT_f64] = {cross_entropy_f64, cross_entropy_backward_f64},
};

#define FLOATS_OF(ENTRY, ...) \
    {                                                                                                \
        [DT_f16] = ENTRY(f16, ##__VA_ARGS__), ENTRY(bf16, ##__VA_ARGS__), ENTRY(f32, ##__VA_ARGS__), \
        ENTRY(f64, ##__VA_ARGS__)                                                                    \
    }
#define ROW_NORM_ENTRY(T, OP) {OP##_##T, OP##_backward_##T, OP##_backward_params_##T}
const row_norm_kernels ISA_NAME(layer_norm_table)[KERNEL_DTYPES] = FLOATS_OF(ROW_NORM_ENTRY, layer_norm);
const row_norm_kernels ISA_NAME(rms_norm_table)[KERNEL_DTYPES] = FLOATS_OF(ROW_NORM_ENTRY, rms_norm);
#define GROUP_NORM_ENTRY(T) {group_norm_##T, group_norm_backward_##T, group_norm_backward_params_##T}
const group_norm_kernels ISA_NAME(group_norm_table)[KERNEL_DTYPES] = FLOATS_OF(GROUP_NORM_ENTRY);
#define BATCH_NORM_ENTRY(T)                                                                          \
    {batch_norm_stats_planes_##T,          batch_norm_stats_last_##T,                                \
     batch_norm_apply_planes_##T,          batch_norm_apply_last_##T,                                \
     batch_norm_backward_stats_planes_##T, batch_norm_backward_stats_last_##T,                       \
     batch_norm_backward_apply_planes_##T, batch_norm_backward_apply_last_##T}
const batch_norm_kernels ISA_NAME(batch_norm_table)[KERNEL_DTYPES] = FLOATS_OF(BATCH_NORM_ENTRY);

#define POOL_ENTRY(T, OP) {OP##_planes_##T, OP##_last_##T, OP##_backward_planes_##T, OP##_backward_last_##T}
const max_pool_kernels ISA_NAME(max_pool_table)[KERNEL_DTYPES] = {
    [DT_u8] = POOL_ENTRY(u8, max_pool),     POOL_ENTRY(i8, max_pool),  POOL_ENTRY(i16, max_pool),
    POOL_ENTRY(i32, max_pool),              POOL_ENTRY(i64, max_pool), POOL_ENTRY(f16, max_pool),
    POOL_ENTRY(bf16, max_pool),             POOL_ENTRY(f32, max_pool), POOL_ENTRY(f64, max_pool),
};
const avg_pool_kernels ISA_NAME(avg_pool_table)[KERNEL_DTYPES] = {
    [DT_i64] = POOL_ENTRY(i64, avg_pool), POOL_ENTRY(f16, avg_pool), POOL_ENTRY(bf16, avg_pool),
    POOL_ENTRY(f32, avg_pool),            POOL_ENTRY(f64, avg_pool),
};
const avg_pool_kernels ISA_NAME(adaptive_avg_pool_table)[KERNEL_DTYPES] = FLOATS_OF(POOL_ENTRY, adaptive_avg_pool);

#define CONV_ENTRY(T)                                                                                \
    [DT_##T] = {conv_packed_weight_bytes_##T, conv_workspace_bytes_##T,       conv_forward_items_##T, \
                conv_backward_input_items_##T, conv_backward_weight_items_##T, conv_pack_forward_##T, \
                conv_pack_backward_input_##T,  conv_forward_##T,               conv_backward_input_##T, \
                conv_backward_weight_##T}
const conv_kernels ISA_NAME(conv_table)[KERNEL_DTYPES] = {CONV_ENTRY(f32), CONV_ENTRY(f64)};
