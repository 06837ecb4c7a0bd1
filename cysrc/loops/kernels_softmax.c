/* Tables of softmax, log_softmax and cross entropy. */
#include "kernels.h"
#include "softmax.h"

#define SOFTMAX_ENTRY(OP, T) \
    [DT_##T] = {OP##_##T##_rows, OP##_##T##_cols, OP##_##T##_apply, OP##_backward_##T##_rows, OP##_backward_##T##_cols}
#define SOFTMAX_ENTRIES(OP) \
    { SOFTMAX_ENTRY(OP, f16), SOFTMAX_ENTRY(OP, bf16), SOFTMAX_ENTRY(OP, f32), SOFTMAX_ENTRY(OP, f64) }
const softmax_kernels ISA_NAME(softmax_table)[SOFTMAX_OP_COUNT][NUM_DTYPES] = {
    [SOFTMAX] = SOFTMAX_ENTRIES(softmax),
    [LOG_SOFTMAX] = SOFTMAX_ENTRIES(log_softmax),
};
const softmax_combine_fn ISA_NAME(softmax_combine) = softmax_combine;
const cross_entropy_kernels ISA_NAME(cross_entropy_table)[NUM_DTYPES] = {
    [DT_f32] = {cross_entropy_f32, cross_entropy_backward_f32},
    [DT_f64] = {cross_entropy_f64, cross_entropy_backward_f64},
};
