/* Tables of softmax and log_softmax. */
#include "softmax.h"

#define SOFTMAX_ENTRY(OP, T) \
    [DT_##T] = {OP##_##T##_rows, OP##_##T##_cols, OP##_##T##_apply, OP##_backward_##T##_rows, OP##_backward_##T##_cols}
#define SOFTMAX_ENTRIES(OP) \
    { SOFTMAX_ENTRY(OP, f16), SOFTMAX_ENTRY(OP, bf16), SOFTMAX_ENTRY(OP, f32), SOFTMAX_ENTRY(OP, f64) }
#define ROW(OPERATION, LOOPS, FUNCTOR, TYPES) [SOFTMAX_##OPERATION] = SOFTMAX_ENTRIES(LOOPS),
const softmax_kernels ISA_NAME(softmax_table)[SOFTMAX_COUNT][NUM_DTYPES] = {SOFTMAX_FOR_EACH(ROW)};
const softmax_combine_fn ISA_NAME(softmax_combine) = softmax_combine;
