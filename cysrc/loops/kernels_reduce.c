/* Tables of reductions and scans: one translation unit per instruction set. */
#include "kernels.h"
#include "reduce_cols.h"

#define REDUCTION(OP, T) {OP##_##T##_rows, OP##_##T##_cols, OP##_##T##_chunks, OP##_##T##_combine}
/* Types whose rows end at AVX2: seldom reduced, and at most a quarter faster with AVX-512 (tools/measure_isa.py). */
#if ISA_HAS(ISA_AVX2)
#define SELDOM(OP, T) REDUCTION(OP, T)
#define SELDOM_SCAN(OP, T) SCAN(OP, T)
#else
#define SELDOM(OP, T) {0}
#define SELDOM_SCAN(OP, T) {0}
#endif
#define FOR_REALS(OP)                                                                                \
    {                                                                                                \
        REDUCTION(OP, u8), REDUCTION(OP, u8), SELDOM(OP, i8), SELDOM(OP, i16), SELDOM(OP, i32), \
            REDUCTION(OP, i64), FOR_FLOATS_LIST(OP)                                                  \
    }
#define FOR_FLOATS_LIST(OP) REDUCTION(OP, f16), REDUCTION(OP, bf16), REDUCTION(OP, f32), REDUCTION(OP, f64)
#define FOR_ALL(OP)                                                                                  \
    {                                                                                                \
        REDUCTION(OP, u8), REDUCTION(OP, u8), SELDOM(OP, i8), SELDOM(OP, i16), SELDOM(OP, i32), \
            REDUCTION(OP, i64), FOR_FLOATS_LIST(OP), SELDOM(OP, c64), SELDOM(OP, c128)         \
    }
#define FOR_FLOATS(OP)                                                                               \
    { [DT_f16] = FOR_FLOATS_LIST(OP) }
#define FOR_INEXACT(OP)                                                                              \
    { [DT_f16] = FOR_FLOATS_LIST(OP), SELDOM(OP, c64), SELDOM(OP, c128) }

const reduce_kernels ISA_NAME(reduce_table)[REDUCE_OP_COUNT][NUM_DTYPES] = {
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
        SELDOM_SCAN(OP, u8), SELDOM_SCAN(OP, u8), SELDOM_SCAN(OP, i8), SELDOM_SCAN(OP, i16), SELDOM_SCAN(OP, i32), SCAN(OP, i64), \
            SCAN(OP, f16), SCAN(OP, bf16), SCAN(OP, f32), SCAN(OP, f64), SELDOM_SCAN(OP, c64), SELDOM_SCAN(OP, c128)              \
    }
const scan_kernels ISA_NAME(scan_table)[SCAN_OP_COUNT][NUM_DTYPES] = {
    [SCAN_CUMSUM] = SCANS(cumsum),
    [SCAN_CUMPROD] = SCANS(cumprod),
};
