/* Tables of layer, RMS, group and batch normalisation. */
#include "norm_tables.h"
#include "norm.h"

#define ROW_NORM_ENTRY(T, OP) {OP##_##T, OP##_backward_##T, OP##_backward_params_##T}
const row_norm_kernels ISA_NAME(layer_norm_table)[NUM_DTYPES] = FLOATS_OF(ROW_NORM_ENTRY, layer_norm);
const row_norm_kernels ISA_NAME(rms_norm_table)[NUM_DTYPES] = FLOATS_OF(ROW_NORM_ENTRY, rms_norm);
#define GROUP_NORM_ENTRY(T) {group_norm_##T, group_norm_backward_##T, group_norm_backward_params_##T}
const group_norm_kernels ISA_NAME(group_norm_table)[NUM_DTYPES] = FLOATS_OF(GROUP_NORM_ENTRY);
#define BATCH_NORM_ENTRY(T)                                                                          \
    {batch_norm_stats_planes_##T,          batch_norm_stats_last_##T,                                \
     batch_norm_apply_planes_##T,          batch_norm_apply_last_##T,                                \
     batch_norm_backward_stats_planes_##T, batch_norm_backward_stats_last_##T,                       \
     batch_norm_backward_apply_planes_##T, batch_norm_backward_apply_last_##T}
const batch_norm_kernels ISA_NAME(batch_norm_table)[NUM_DTYPES] = FLOATS_OF(BATCH_NORM_ENTRY);
