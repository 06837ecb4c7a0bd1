/* Running extremes and where they were: equal values move the index on, NaN stays. Rows (inner 1) one by one, as their
 * extremes change seldom; otherwise EXTREME_COLUMNS columns side by side.
 * Instruction sets: base, avx2 (tools/measure_isa.py: others gain nothing). */
#include "../core/isa.h"
#include "reduction_scan.h"
#include "scalar_types.h"

#define SAME(x) (x)

#define EXTREME_SCAN(NAME, T, C, LD, BEYOND)                                                                         \
    static void NAME##_rows_##T(const ExtremeScanArgs *a, i64 begin, i64 end)                                        \
    {                                                                                                                \
        for (i64 r = begin; r < end; r++) {                                                                          \
            const T *x = (const T *)a->x + r * a->n;                                                                 \
            T *y = (T *)a->values + r * a->n, kept = x[0];                                                           \
            i64 *index = a->indices + r * a->n, where = 0;                                                           \
            C best = LD(x[0]);                                                                                       \
            for (i64 k = 0; k < a->n; k++) {                                                                         \
                C v = LD(x[k]);                                                                                      \
                if (!(best BEYOND v) && (best == best || v != v)) {                                                  \
                    best = v;                                                                                        \
                    kept = x[k];                                                                                     \
                    where = k;                                                                                       \
                }                                                                                                    \
                y[k] = kept;                                                                                         \
                index[k] = where;                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
    }                                                                                                                \
    static void NAME##_columns_##T(const ExtremeScanArgs *a, i64 begin, i64 end)                                     \
    {                                                                                                                \
        T kept[EXTREME_COLUMNS];                                                                                     \
        C best[EXTREME_COLUMNS];                                                                                     \
        i64 where[EXTREME_COLUMNS], blocks = (a->inner + EXTREME_COLUMNS - 1) / EXTREME_COLUMNS;                     \
        for (i64 block = begin; block < end; block++) {                                                              \
            i64 c0 = block % blocks * EXTREME_COLUMNS, at = block / blocks * a->n * a->inner + c0;                   \
            i64 w = a->inner - c0 < EXTREME_COLUMNS ? a->inner - c0 : EXTREME_COLUMNS;                               \
            for (i64 c = 0; c < w; c++) {                                                                            \
                kept[c] = ((const T *)a->x)[at + c];                                                                 \
                best[c] = LD(kept[c]);                                                                               \
                where[c] = 0;                                                                                        \
            }                                                                                                        \
            for (i64 k = 0; k < a->n; k++, at += a->inner) {                                                         \
                const T *x = (const T *)a->x + at;                                                                   \
                T *y = (T *)a->values + at;                                                                          \
                i64 *index = a->indices + at;                                                                        \
                for (i64 c = 0; c < w; c++) {                                                                        \
                    C v = LD(x[c]);                                                                                  \
                    int take = (v BEYOND best[c]) | (v == best[c]) | (v != v);                                       \
                    best[c] = take ? v : best[c];                                                                    \
                    kept[c] = take ? x[c] : kept[c];                                                                 \
                    where[c] = take ? k : where[c];                                                                  \
                    y[c] = kept[c];                                                                                  \
                    index[c] = where[c];                                                                             \
                }                                                                                                    \
            }                                                                                                        \
        }                                                                                                            \
    }
#define BOTH(T, C, LD) EXTREME_SCAN(max, T, C, LD, >) EXTREME_SCAN(min, T, C, LD, <)
BOTH(u8, u8, SAME) BOTH(i8, i8, SAME) BOTH(i16, i16, SAME) BOTH(i32, i32, SAME) BOTH(i64, i64, SAME)
BOTH(f16, f32, ld_f16) BOTH(bf16, f32, ld_bf16) BOTH(f32, f32, SAME) BOTH(f64, f64, SAME)

void ISA_NAME(extreme_scan)(void *context, int64_t begin, int64_t end)
{
    const ExtremeScanArgs *a = context;
#define RUN(T)                                                                                                       \
    if (a->inner == 1)                                                                                               \
        (a->largest ? max_rows_##T : min_rows_##T)(a, begin, end);                                                   \
    else                                                                                                             \
        (a->largest ? max_columns_##T : min_columns_##T)(a, begin, end);                                             \
    break;
    switch (a->dtype) {
    case DT_b8: case DT_u8: RUN(u8)
    case DT_i8: RUN(i8)
    case DT_i16: RUN(i16)
    case DT_i32: RUN(i32)
    case DT_i64: RUN(i64)
    case DT_f16: RUN(f16)
    case DT_bf16: RUN(bf16)
    case DT_f32: RUN(f32)
    case DT_f64: RUN(f64)
    }
}
