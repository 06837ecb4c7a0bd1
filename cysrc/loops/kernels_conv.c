/* Table of direct convolution. */
#include "kernels.h"
#include "conv.h"

#define CONV_ENTRY(T)                                                                                \
    [DT_##T] = {conv_packed_weight_bytes_##T, conv_workspace_bytes_##T,       conv_forward_items_##T, \
                conv_backward_input_items_##T, conv_backward_weight_items_##T, conv_pack_forward_##T, \
                conv_pack_backward_input_##T,  conv_forward_##T,               conv_backward_input_##T, \
                conv_backward_weight_##T}
const conv_kernels ISA_NAME(conv_table)[KERNEL_DTYPES] = {CONV_ENTRY(f32), CONV_ENTRY(f64)};
