/* The table of cross entropy. */
#include "loss.h"
#include "softmax.h"

const cross_entropy_kernels ISA_NAME(cross_entropy_table)[NUM_DTYPES] = {
    [DT_f32] = {cross_entropy_f32, cross_entropy_backward_f32},
    [DT_f64] = {cross_entropy_f64, cross_entropy_backward_f64},
};
