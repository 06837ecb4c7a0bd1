/* The table of conversions for TensorIterator. */
#include "casts.h"

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)

const cast_loop (*const JOIN(trt_cast_table, ISA))[DT_COUNT] = cast_table;
