/* The reductions and their table: one translation unit per instruction set. An operation that cysrc/ops/reduction/steps.yaml declares and that has no loops
 * here does not compile. */
#include "reduce_operations.h"

#define REDUCTION(OP, T) {OP##_##T##_rows, OP##_##T##_cols, OP##_##T##_chunks, OP##_##T##_combine}
/* Types whose rows end at AVX2: seldom reduced, and at most a quarter faster with AVX-512 (tools/measure_isa.py). */
#if ISA_HAS(ISA_AVX2)
#define SELDOM(OP, T) REDUCTION(OP, T)
#else
#define SELDOM(OP, T) {0}
#endif
#define FOR_REAL_BOOL(OP)                                                                           \
    {                                                                                               \
        REDUCTION(OP, u8), REDUCTION(OP, u8), SELDOM(OP, i8), SELDOM(OP, i16), SELDOM(OP, i32),     \
            REDUCTION(OP, i64), FOR_FLOATS_LIST(OP)                                                 \
    }
#define FOR_FLOATS_LIST(OP) REDUCTION(OP, f16), REDUCTION(OP, bf16), REDUCTION(OP, f32), REDUCTION(OP, f64)
#define FOR_ALL(OP)                                                                                 \
    {                                                                                               \
        REDUCTION(OP, u8), REDUCTION(OP, u8), SELDOM(OP, i8), SELDOM(OP, i16), SELDOM(OP, i32),     \
            REDUCTION(OP, i64), FOR_FLOATS_LIST(OP), SELDOM(OP, c64), SELDOM(OP, c128)              \
    }
#define FOR_FLOAT(OP)                                                                               \
    { [DT_f16] = FOR_FLOATS_LIST(OP) }
#define FOR_FLOAT_COMPLEX(OP)                                                                       \
    { [DT_f16] = FOR_FLOATS_LIST(OP), SELDOM(OP, c64), SELDOM(OP, c128) }

#define ROW(OPERATION, LOOPS, FUNCTOR, TYPES) [REDUCE_##OPERATION] = FOR_##TYPES(LOOPS),
const reduce_kernels ISA_NAME(reduce_table)[REDUCE_COUNT][NUM_DTYPES] = {REDUCE_FOR_EACH(ROW)};
