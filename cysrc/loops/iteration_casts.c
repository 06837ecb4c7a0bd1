/* The table of conversions for TensorIterator. */
#include "../core/isa.h"
#include "casts.h"

const cast_loop (*const ISA_NAME(trt_cast_table))[NUM_DTYPES] = cast_table;
