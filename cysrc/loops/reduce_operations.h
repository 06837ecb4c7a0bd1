/* The reductions of each type: NAME_rows, NAME_chunks and NAME_combine by reduce.h, NAME_cols by reduce_cols.h, where NAME is the operation
 * (cysrc/ops/reduction/steps.yaml, in small letters) and the type. */
#pragma once

#include "reduce_cols.h"

/* ---- rows and chunks ---- */
#define DEFINE_COUNT_REDUCTIONS(T, C)                                                               \
    DEFINE_REDUCE(any_##T, T, C, count_state, any_##C, stage_##T, any_finish)                       \
    DEFINE_REDUCE(all_##T, T, C, count_state, all_##C, stage_##T, all_finish)                       \
    DEFINE_REDUCE(count_nonzero_##T, T, C, count_state, count_##C, stage_##T, count_finish)
#define DEFINE_ORDER_REDUCTIONS(T, C)                                                               \
    DEFINE_REDUCE(min_##T, T, C, extreme_##C, min_##C, stage_##T, extreme_finish_##T)               \
    DEFINE_REDUCE(max_##T, T, C, extreme_##C, max_##C, stage_##T, extreme_finish_##T)               \
    DEFINE_REDUCE(argmin_##T, T, C, extreme_##C, argmin_##C, stage_##T, arg_finish_##T)             \
    DEFINE_REDUCE(argmax_##T, T, C, extreme_##C, argmax_##C, stage_##T, arg_finish_##T)             \
    DEFINE_COUNT_REDUCTIONS(T, C)
#define DEFINE_INT_REDUCTIONS(T)                                                                    \
    DEFINE_REDUCE(sum_##T, T, T, int_sum, sum_##T, stage_##T, int_sum_finish)                       \
    DEFINE_REDUCE(prod_##T, T, T, int_product, prod_##T, stage_##T, int_prod_finish)                \
    DEFINE_ORDER_REDUCTIONS(T, T)
#define DEFINE_FLOAT_REDUCTIONS(T, C)                                                               \
    DEFINE_REDUCE(sum_##T, T, C, float_sum, sum_##C, stage_##T, sum_finish_##T)                     \
    DEFINE_REDUCE(prod_##T, T, C, product_state, prod_##C, stage_##T, prod_finish_##T)              \
    DEFINE_REDUCE(abs_sum_##T, T, C, float_sum, abs_sum_##C, stage_##T, sum_finish_##T)             \
    DEFINE_REDUCE(sq_sum_##T, T, C, float_sum, sq_sum_##C, stage_##T, sum_finish_##T)               \
    DEFINE_REDUCE(norm_p_##T, T, C, float_sum, norm_p_##C, stage_##T, norm_p_finish_##T)            \
    DEFINE_REDUCE(abs_max_##T, T, C, extreme_##C, abs_max_##C, stage_##T, extreme_finish_##T)       \
    DEFINE_REDUCE(abs_min_##T, T, C, extreme_##C, abs_min_##C, stage_##T, extreme_finish_##T)       \
    DEFINE_REDUCE(var_##T, T, C, moments, var_##C, stage_##T, var_finish_##T)                       \
    DEFINE_REDUCE(logsumexp_##T, T, C, logsumexp_state, logsumexp_##C, stage_##T, logsumexp_finish_##T) \
    DEFINE_ORDER_REDUCTIONS(T, C)
#define DEFINE_COMPLEX_REDUCTIONS(T, R)                                                             \
    DEFINE_REDUCE(sum_##T, T, T, complex_sum, sum_##T, stage_##T, sum_finish_##T)                   \
    DEFINE_REDUCE(prod_##T, T, T, product_state, prod_##T, stage_##T, prod_finish_##T)              \
    DEFINE_REDUCE(abs_sum_##T, T, R, float_sum, abs_sum_##R, stage_abs_##T, sum_finish_##R)         \
    DEFINE_REDUCE(sq_sum_##T, T, T, float_sum, sq_sum_##T, stage_##T, sum_finish_##R)               \
    DEFINE_REDUCE(norm_p_##T, T, R, float_sum, norm_p_##R, stage_abs_##T, norm_p_finish_##R)        \
    DEFINE_REDUCE(abs_max_##T, T, R, extreme_##R, abs_max_##R, stage_abs_##T, extreme_finish_##R)   \
    DEFINE_REDUCE(abs_min_##T, T, R, extreme_##R, abs_min_##R, stage_abs_##T, extreme_finish_##R)   \
    DEFINE_COUNT_REDUCTIONS(T, T)

DEFINE_INT_REDUCTIONS(u8)
DEFINE_INT_REDUCTIONS(i8)
DEFINE_INT_REDUCTIONS(i16)
DEFINE_INT_REDUCTIONS(i32)
DEFINE_INT_REDUCTIONS(i64)
DEFINE_FLOAT_REDUCTIONS(f16, f32)
DEFINE_FLOAT_REDUCTIONS(bf16, f32)
DEFINE_FLOAT_REDUCTIONS(f32, f32)
DEFINE_FLOAT_REDUCTIONS(f64, f64)
DEFINE_COMPLEX_REDUCTIONS(c64, f32)
DEFINE_COMPLEX_REDUCTIONS(c128, f64)

/* ---- columns ---- */
#define DEFINE_COUNT_COLS(T, C)                                                                     \
    DEFINE_FOLD_COLS(any_##T, T, C, uint8_t, 0, STEP_ANY, uint8_t, IDENTITY)                        \
    DEFINE_FOLD_COLS(all_##T, T, C, uint8_t, 1, STEP_ALL, uint8_t, IDENTITY)                        \
    DEFINE_FOLD_COLS(count_nonzero_##T, T, C, i64, 0, STEP_COUNT, i64, IDENTITY)
#define DEFINE_ORDER_COLS(T, C, STORE)                                                              \
    DEFINE_EXTREME_COLS(max_##T, T, C, IDENTITY, STEP_MAX, STORE)                                   \
    DEFINE_EXTREME_COLS(min_##T, T, C, IDENTITY, STEP_MIN, STORE)                                   \
    DEFINE_ARG_COLS(argmax_##T, T, C, >, STORE)                                                     \
    DEFINE_ARG_COLS(argmin_##T, T, C, <, STORE)                                                     \
    DEFINE_COUNT_COLS(T, C)
#define DEFINE_INT_COLS(T)                                                                          \
    DEFINE_FOLD_COLS(sum_##T, T, T, uint64_t, 0, STEP_ADD, uint64_t, IDENTITY)                      \
    DEFINE_FOLD_COLS(prod_##T, T, T, uint64_t, 1, STEP_INT_MULTIPLY, uint64_t, IDENTITY)            \
    DEFINE_ORDER_COLS(T, T, IDENTITY)
#define DEFINE_FLOAT_COLS(T, C, STORE)                                                              \
    DEFINE_SUM_COLS(sum_##T, T, C, IDENTITY, sum_finish_##T)                                        \
    DEFINE_SUM_COLS(abs_sum_##T, T, C, ABSOLUTE, sum_finish_##T)                                    \
    DEFINE_SUM_COLS(sq_sum_##T, T, C, SQUARE, sum_finish_##T)                                       \
    DEFINE_SUM_COLS(norm_p_##T, T, C, POWER_##C, norm_p_finish_##T)                                 \
    DEFINE_FOLD_COLS(prod_##T, T, C, f64, 1, STEP_MULTIPLY, T, STORE)                               \
    DEFINE_EXTREME_COLS(abs_max_##T, T, C, ABSOLUTE, STEP_ABS_MAX, STORE)                           \
    DEFINE_EXTREME_COLS(abs_min_##T, T, C, ABSOLUTE, STEP_ABS_MIN, STORE)                           \
    DEFINE_VAR_COLS(T, C)                                                                           \
    DEFINE_LOGSUMEXP_COLS(T, C)                                                                     \
    DEFINE_ORDER_COLS(T, C, STORE)
#define DEFINE_COMPLEX_COLS_ALL(T, R)                                                               \
    DEFINE_COMPLEX_COLS(T, R)                                                                       \
    DEFINE_COLS_BY_ROWS(abs_sum_##T, T, sizeof(R))                                                  \
    DEFINE_COLS_BY_ROWS(sq_sum_##T, T, sizeof(R))                                                   \
    DEFINE_COLS_BY_ROWS(norm_p_##T, T, sizeof(R))                                                   \
    DEFINE_COLS_BY_ROWS(abs_max_##T, T, sizeof(R))                                                  \
    DEFINE_COLS_BY_ROWS(abs_min_##T, T, sizeof(R))                                                  \
    DEFINE_COLS_BY_ROWS(any_##T, T, 1)                                                              \
    DEFINE_COLS_BY_ROWS(all_##T, T, 1)                                                              \
    DEFINE_COLS_BY_ROWS(count_nonzero_##T, T, 8)

DEFINE_INT_COLS(u8)
DEFINE_INT_COLS(i8)
DEFINE_INT_COLS(i16)
DEFINE_INT_COLS(i32)
DEFINE_INT_COLS(i64)
DEFINE_FLOAT_COLS(f16, f32, st_f16)
DEFINE_FLOAT_COLS(bf16, f32, st_bf16)
DEFINE_FLOAT_COLS(f32, f32, IDENTITY)
DEFINE_FLOAT_COLS(f64, f64, IDENTITY)

/* ---- sums without NaN ---- */
#define NAN_AS_ZERO(v) ((v) == (v) ? (v) : 0)
DEFINE_BLOCK_SUM(block_nan_sum_f32, f32, acc[k] + (vf32)((vi32)a & (a == a)), 0, 0)
DEFINE_BLOCK_SUM(block_nan_sum_f64, f64, acc[k] + (vf64)((vi64)a & (a == a)), 0, 0)
DEFINE_FLOAT_SUM_STATE(nan_sum_f32, f32, block_nan_sum_f32(x, x, 0, n))
DEFINE_FLOAT_SUM_STATE(nan_sum_f64, f64, block_nan_sum_f64(x, x, 0, n))
DEFINE_SUM_OF_TYPE(nan_sum, f16, f32, NAN_AS_ZERO)
DEFINE_SUM_OF_TYPE(nan_sum, bf16, f32, NAN_AS_ZERO)
DEFINE_SUM_OF_TYPE(nan_sum, f32, f32, NAN_AS_ZERO)
DEFINE_SUM_OF_TYPE(nan_sum, f64, f64, NAN_AS_ZERO)
DEFINE_COMPLEX_COLS_ALL(c64, f32)
DEFINE_COMPLEX_COLS_ALL(c128, f64)
