/* Running sums and products. */
#include "reduce_cols.h"

/* ---- scans: f64 carries for real floats, u64 for integers. Four rows side by side hide the latency of an addition ---- */
#define DEFINE_SCAN(NAME, T, A, O, START, STEP, LOAD, STORE)                                        \
    KERNEL_FN void NAME##_scan_rows(const char* in, int64_t in_row_stride, int64_t in_elem_stride, char* out, \
                                    int64_t out_row_stride, int64_t out_elem_stride, int64_t n, int64_t rows_begin, \
                                    int64_t rows_end) {                                             \
        int64_t r = rows_begin;                                                                     \
        for (; r + 4 <= rows_end; r += 4) {                                                         \
            const char* p = in + r * in_row_stride;                                                 \
            char* q = out + r * out_row_stride;                                                     \
            A acc[4] = {START, START, START, START};                                                \
            for (int64_t i = 0; i < n; i++, p += in_elem_stride, q += out_elem_stride)              \
                UNROLL for (int k = 0; k < 4; k++) {                                                \
                    acc[k] = STEP(acc[k], LOAD(*(const T*)(p + k * in_row_stride)));                \
                    *(O*)(q + k * out_row_stride) = STORE(acc[k]);                                  \
                }                                                                                   \
        }                                                                                           \
        for (; r < rows_end; r++) {                                                                 \
            const char* p = in + r * in_row_stride;                                                 \
            char* q = out + r * out_row_stride;                                                     \
            A acc = START;                                                                          \
            for (int64_t i = 0; i < n; i++) {                                                       \
                acc = STEP(acc, LOAD(*(const T*)(p + i * in_elem_stride)));                         \
                *(O*)(q + i * out_elem_stride) = STORE(acc);                                        \
            }                                                                                       \
        }                                                                                           \
    }                                                                                               \
    KERNEL_FN void NAME##_scan_cols(const char* in, int64_t in_stride, char* out, int64_t out_stride, int64_t n, \
                                    int64_t cols_begin, int64_t cols_end) {                         \
        A acc[MOMENT_COLUMNS];                                                                      \
        for (int64_t c0 = cols_begin; c0 < cols_end; c0 += MOMENT_COLUMNS) {                        \
            int64_t w = min_i64(MOMENT_COLUMNS, cols_end - c0);                                     \
            for (int64_t c = 0; c < w; c++) acc[c] = START;                                         \
            for (int64_t r = 0; r < n; r++) {                                                       \
                const T* x = (const T*)(in + r * in_stride) + c0;                                   \
                O* y = (O*)(out + r * out_stride) + c0;                                             \
                VECTORIZE for (int64_t c = 0; c < w; c++) {                                         \
                    acc[c] = STEP(acc[c], LOAD(x[c]));                                              \
                    y[c] = STORE(acc[c]);                                                           \
                }                                                                                   \
            }                                                                                       \
        }                                                                                           \
    }
#define STEP_FLOAT_ADD(a, v) ((a) + (v))
#define CAST_c64(v) ((c64)(v))
/* Written out: C's complex product calls a library function to repair infinities. Fused in so many words, as gcc 12 makes vfmaddsub of a
 * difference beside a sum even where nothing is to be contracted, in the vectors of columns and not in rows. */
KERNEL_INLINE c128 complex_product(c128 a, c128 b) {
    const f64 *x = (const f64*)&a, *y = (const f64*)&b;
    return make_c128(FMA(x[0], y[0], -(x[1] * y[1])), FMA(x[0], y[1], x[1] * y[0]));
}
#define DEFINE_FLOAT_SCANS(T, LOAD, STORE)                                                          \
    DEFINE_SCAN(sum_##T, T, f64, T, 0, STEP_FLOAT_ADD, LOAD, STORE)                                 \
    DEFINE_SCAN(prod_##T, T, f64, T, 1, STEP_MULTIPLY, LOAD, STORE)
#define DEFINE_INT_SCANS(T)                                                                         \
    DEFINE_SCAN(sum_##T, T, uint64_t, uint64_t, 0, STEP_ADD, IDENTITY, IDENTITY)                    \
    DEFINE_SCAN(prod_##T, T, uint64_t, uint64_t, 1, STEP_INT_MULTIPLY, IDENTITY, IDENTITY)
#define DEFINE_COMPLEX_SCANS(T, STORE)                                                              \
    DEFINE_SCAN(sum_##T, T, c128, T, 0, STEP_FLOAT_ADD, IDENTITY, STORE)                            \
    DEFINE_SCAN(prod_##T, T, c128, T, 1, complex_product, IDENTITY, STORE)
DEFINE_INT_SCANS(u8)
DEFINE_INT_SCANS(i8)
DEFINE_INT_SCANS(i16)
DEFINE_INT_SCANS(i32)
DEFINE_INT_SCANS(i64)
DEFINE_FLOAT_SCANS(f16, ld_f16, st_f16)
DEFINE_FLOAT_SCANS(bf16, ld_bf16, st_bf16)
DEFINE_FLOAT_SCANS(f32, IDENTITY, IDENTITY)
DEFINE_FLOAT_SCANS(f64, IDENTITY, IDENTITY)
DEFINE_COMPLEX_SCANS(c64, CAST_c64)
DEFINE_COMPLEX_SCANS(c128, IDENTITY)

#define SCAN(OP, T) {OP##_##T##_scan_rows, OP##_##T##_scan_cols}
/* Types whose rows end at AVX2: at most a quarter faster with AVX-512 (tools/measure_isa.py). */
#if ISA_HAS(ISA_AVX2)
#define SELDOM(OP, T) SCAN(OP, T)
#else
#define SELDOM(OP, T) {0}
#endif
#define SCANS(OP)                                                                                   \
    {                                                                                               \
        SELDOM(OP, u8), SELDOM(OP, u8), SELDOM(OP, i8), SELDOM(OP, i16), SELDOM(OP, i32), SCAN(OP, i64), \
            SCAN(OP, f16), SCAN(OP, bf16), SCAN(OP, f32), SCAN(OP, f64), SELDOM(OP, c64), SELDOM(OP, c128) \
    }
const scan_kernels ISA_NAME(scan_table)[SCAN_COUNT][NUM_DTYPES] = {
    [SCAN_SUM] = SCANS(sum),
    [SCAN_PROD] = SCANS(prod),
    [SCAN_MAX] = {{0}}, /* extremes and their places: reduction_scan.c */
    [SCAN_MIN] = {{0}},
};
