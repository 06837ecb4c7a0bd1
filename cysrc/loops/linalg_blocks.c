/* LU and triangular systems by blocks (linalg_blocks.h). */
/* Measured: trt.linalg.inv(m); trt.linalg.lu_factor(d) */
#include "kernel_base.h"
#include "../core/transpose.h"
#include "linalg_blocks.h"

enum { BASE = 32, PANEL = 16 };     /* unknowns of a substitution; columns of a panel */

/* Squares of a vector a side, from `from` to `to`, rows and columns exchanged. */
KERNEL_INLINE void turn_f32(const f32* from, int64_t from_row, f32* to, int64_t to_row) { transpose_words((const uint32_t*)from, from_row, (uint32_t*)to, to_row); }
KERNEL_INLINE void turn_f64(const f64* from, int64_t from_row, f64* to, int64_t to_row) { transpose_longs((const uint64_t*)from, from_row, (uint64_t*)to, to_row); }

#define DEFINE_BLOCKS(T, ABS)                                                                                                                    \
    enum { SIDE_##T = VECTOR_BYTES / sizeof(T), LANES_##T = 4 * SIDE_##T };                                                                      \
    /* Columns of b become rows of lanes, of which four vectors are at work, and go back. */                                                     \
    KERNEL_INLINE void exchange_##T(T* b, int64_t ldb, int64_t n, int64_t columns, T* x, const int back) {                                       \
        const int64_t squares = columns == LANES_##T ? n / SIDE_##T * SIDE_##T : 0;                                                              \
        for (int64_t i = 0; i < squares; i += SIDE_##T)                                                                                          \
            for (int64_t c = 0; c < LANES_##T; c += SIDE_##T) {                                                                                  \
                if (back) turn_##T(x + i * LANES_##T + c, LANES_##T, b + i + c * ldb, ldb);                                                      \
                else turn_##T(b + i + c * ldb, ldb, x + i * LANES_##T + c, LANES_##T);                                                           \
            }                                                                                                                                    \
        for (int64_t c = 0; c < columns; c++)                                                                                                    \
            for (int64_t i = squares; i < n; i++) {                                                                                              \
                if (back) b[i + c * ldb] = x[i * LANES_##T + c];                                                                                 \
                else x[i * LANES_##T + c] = b[i + c * ldb];                                                                                      \
            }                                                                                                                                    \
    }                                                                                                                                            \
    static void substitute_##T(int64_t n, const T* t, int64_t rs, int64_t cs, int upper, int unit, T* b, int64_t ldb, int64_t columns) {         \
        T x[BASE * LANES_##T] __attribute__((aligned(64))), factors[BASE][BASE];                                                                 \
        for (int64_t i = 0; i < n; i++)                                                                                                          \
            for (int64_t j = upper ? i : 0; j < (upper ? n : i + 1); j++) factors[i][j] = t[i * rs + j * cs];                                    \
        for (int64_t i = 0; i < n; i++) factors[i][i] = unit ? 1 : 1 / factors[i][i];                                                            \
        for (int64_t begin = 0; begin < columns; begin += LANES_##T) {                                                                           \
            const int64_t wide = min_i64(columns - begin, LANES_##T);                                                                            \
            if (wide < LANES_##T) memset(x, 0, sizeof x);                                                                                        \
            exchange_##T(b + begin * ldb, ldb, n, wide, x, 0);                                                                                   \
            for (int64_t step = 0; step < n; step++) {                                                                                           \
                const int64_t i = upper ? n - 1 - step : step, first = upper ? i + 1 : 0, last = upper ? n : i;                                  \
                v##T sums[4], *row = (v##T*)(x + i * LANES_##T);                                                                                 \
                UNROLL for (int v = 0; v < 4; v++) sums[v] = row[v];                                                                             \
                for (int64_t j = first; j < last; j++) {                                                                                         \
                    const v##T f = splat_##T(-factors[i][j]);                                                                                    \
                    const v##T* known = (const v##T*)(x + j * LANES_##T);                                                                        \
                    UNROLL for (int v = 0; v < 4; v++) sums[v] = FMA(f, known[v], sums[v]);                                                      \
                }                                                                                                                                \
                UNROLL for (int v = 0; v < 4; v++) row[v] = unit ? sums[v] : sums[v] * factors[i][i];                                            \
            }                                                                                                                                    \
            exchange_##T(b + begin * ldb, ldb, n, wide, x, 1);                                                                                   \
        }                                                                                                                                        \
    }                                                                                                                                            \
    static void triangle_##T(trt_products* p, int64_t n, const void* triangle, int64_t rs, int64_t cs, int upper, int unit, void* right, int64_t ldb, int64_t columns) { \
        const T* t = triangle;                                                                                                                   \
        T* b = right;                                                                                                                            \
        if (n <= BASE) {                                                                                                                         \
            substitute_##T(n, t, rs, cs, upper, unit, b, ldb, columns);                                                                          \
            return;                                                                                                                              \
        }                                                                                                                                        \
        const int64_t half = (n / 2 + BASE - 1) / BASE * BASE;                                                                                   \
        if (upper) {                                                                                                                             \
            triangle_##T(p, n - half, t + half * (rs + cs), rs, cs, 1, unit, b + half, ldb, columns);                                            \
            p->subtract(p, half, columns, n - half, t + half * cs, rs, cs, b + half, ldb, b, ldb);                                               \
            triangle_##T(p, half, t, rs, cs, 1, unit, b, ldb, columns);                                                                          \
        } else {                                                                                                                                 \
            triangle_##T(p, half, t, rs, cs, 0, unit, b, ldb, columns);                                                                          \
            p->subtract(p, n - half, columns, half, t + half * rs, rs, cs, b, ldb, b + half, ldb);                                               \
            triangle_##T(p, n - half, t + half * (rs + cs), rs, cs, 0, unit, b + half, ldb, columns);                                            \
        }                                                                                                                                        \
    }                                                                                                                                            \
    static void transpose_##T(int64_t rows, int64_t columns, const void* source, int64_t ldf, void* target, int64_t ldt) {                           \
        const T* from = source;                                                                                                                      \
        T* to = target;                                                                                                                              \
        const int64_t high = rows / SIDE_##T * SIDE_##T, wide = columns / SIDE_##T * SIDE_##T;                                                       \
        for (int64_t i = 0; i < high; i += SIDE_##T) {                                                                                               \
            for (int64_t j = 0; j < wide; j += SIDE_##T) turn_##T(from + i * ldf + j, ldf, to + i + j * ldt, ldt);                                   \
            for (int64_t j = wide; j < columns; j++)                                                                                                 \
                for (int64_t k = i; k < i + SIDE_##T; k++) to[k + j * ldt] = from[k * ldf + j];                                                      \
        }                                                                                                                                            \
        for (int64_t i = high; i < rows; i++)                                                                                                        \
            for (int64_t j = 0; j < columns; j++) to[i + j * ldt] = from[i * ldf + j];                                                               \
    }                                                                                                                                                \
    static void swap_rows_##T(void* matrix, int64_t lda, int64_t columns, const int* pivots, int64_t count, int backwards) {                     \
        for (int64_t c = 0; c < columns; c++) {                                                                                                  \
            T* x = (T*)matrix + c * lda;                                                                                                         \
            for (int64_t k = 0; k < count; k++) {                                                                                                \
                const int64_t j = backwards ? count - 1 - k : k, q = pivots[j] - 1;                                                              \
                const T kept = x[j];                                                                                                             \
                x[j] = x[q];                                                                                                                     \
                x[q] = kept;                                                                                                                     \
            }                                                                                                                                    \
        }                                                                                                                                        \
    }                                                                                                                                            \
    static int panel_##T(int64_t m, int64_t n, T* a, int64_t lda, int* pivots) {                                                                 \
        int info = 0;                                                                                                                            \
        for (int64_t j = 0; j < n; j++) {                                                                                                        \
            T *x = a + j * lda, most = 0;                                                                                                        \
            int64_t q = j;                                                                                                                       \
            _Pragma("omp simd reduction(max : most)") for (int64_t i = j; i < m; i++) most = ABS(x[i]) > most ? ABS(x[i]) : most;                \
            /* the first of the largest; NaN is not larger than anything */                                                                      \
            if (ABS(x[j]) == ABS(x[j])) while (q < m && ABS(x[q]) != most) q++;                                                                  \
            if (q == m) q = j;                                                                                                                   \
            pivots[j] = (int)q + 1;                                                                                                              \
            if (x[q] == 0) {                                                                                                                     \
                if (!info) info = (int)j + 1;                                                                                                    \
                continue;                                                                                                                        \
            }                                                                                                                                    \
            if (q != j)                                                                                                                          \
                for (int64_t c = 0; c < n; c++) {                                                                                                \
                    const T kept = a[j + c * lda];                                                                                               \
                    a[j + c * lda] = a[q + c * lda];                                                                                             \
                    a[q + c * lda] = kept;                                                                                                       \
                }                                                                                                                                \
            const T pivot = x[j];                                                                                                                \
            VECTORIZE for (int64_t i = j + 1; i < m; i++) x[i] /= pivot;                                                                         \
            for (int64_t c = j + 1; c < n; c++) {                                                                                                \
                T *restrict y = a + c * lda, f = y[j];                                                                                           \
                VECTORIZE for (int64_t i = j + 1; i < m; i++) y[i] -= x[i] * f;                                                                  \
            }                                                                                                                                    \
        }                                                                                                                                        \
        return info;                                                                                                                             \
    }                                                                                                                                            \
    static int lu_##T(trt_products* p, int64_t m, int64_t n, void* matrix, int64_t lda, int* pivots) {                                           \
        T* a = matrix;                                                                                                                           \
        if (n > m) { /* the columns beyond are those of a system */                                                                              \
            const int info = lu_##T(p, m, m, a, lda, pivots);                                                                                    \
            swap_rows_##T(a + m * lda, lda, n - m, pivots, m, 0);                                                                                \
            triangle_##T(p, m, a, 1, lda, 0, 1, a + m * lda, lda, n - m);                                                                        \
            return info;                                                                                                                         \
        }                                                                                                                                        \
        if (n <= PANEL) return panel_##T(m, n, a, lda, pivots);                                                                                  \
        const int64_t half = (n / 2 + PANEL - 1) / PANEL * PANEL;                                                                                \
        const int left = lu_##T(p, m, half, a, lda, pivots);                                                                                     \
        swap_rows_##T(a + half * lda, lda, n - half, pivots, half, 0);                                                                           \
        triangle_##T(p, half, a, 1, lda, 0, 1, a + half * lda, lda, n - half);                                                                   \
        p->subtract(p, m - half, n - half, half, a + half, 1, lda, a + half * lda, lda, a + half + half * lda, lda);                             \
        const int right = lu_##T(p, m - half, n - half, a + half + half * lda, lda, pivots + half);                                              \
        swap_rows_##T(a + half, lda, half, pivots + half, n - half, 0);                                                                          \
        for (int64_t j = half; j < n; j++) pivots[j] += (int)half;                                                                               \
        return left ? left : right ? right + (int)half : 0;                                                                                      \
    }
DEFINE_BLOCKS(f32, fabsf)
DEFINE_BLOCKS(f64, fabs)

const trt_block_kernels ISA_NAME(trt_linalg_blocks)[] = {{lu_f32, triangle_f32, swap_rows_f32, transpose_f32}, {lu_f64, triangle_f64, swap_rows_f64, transpose_f64}};
