/* A register-blocked GEMM for matrices that are packed, or blocked so that they stay in cache:
 *
 *     C[r][j] (+)= sum_k A[r][k] B[k][j]     for one tile of up to GEMM_ROWS rows and two vectors of columns.
 *
 * The tile's sums stay in registers while broadcast elements of A meet vectors of B. Included once per element type, with
 * T defined as f32 or f64; the order of every sum is that of k. */
#ifndef GEMM_KERNEL_H
#define GEMM_KERNEL_H
#include "kernel_base.h"

#define JOIN_NAMES(a, b) a##b
#define JOIN_EXPANDED(a, b) JOIN_NAMES(a, b)
#define FN(name) JOIN_EXPANDED(JOIN_EXPANDED(name, _), T)
#define VECTOR JOIN_EXPANDED(v, T)
#define VECTOR_U JOIN_EXPANDED(JOIN_EXPANDED(v, T), _u)
#define LANES ((int64_t)(VECTOR_BYTES / sizeof(T)))
#define GEMM_COLS (2 * LANES)

#if VECTOR_BYTES == 64
enum { GEMM_ROWS = 12 };
#else
enum { GEMM_ROWS = 6 }; /* 16 registers: 12 sums, 2 columns, 1 broadcast */
#endif
#endif

typedef struct {
    const T *a, *b;
    T* c;
    int64_t a_row, a_depth;    /* strides of A; b_depth: the stride of k in B, whose columns are adjacent, as C's */
    int64_t b_depth, c_row;
    int64_t depth;
    int64_t segments, a_segment; /* the sum runs over `segments` stretches of `depth` terms, a_segment apart in A */
    int64_t b_skip;              /* elements between two stretches in B: 0 where they are adjacent */
    int64_t rows, cols;          /* of C; B has all GEMM_COLS columns (one vector of them where cols fit it) */
    const T *row_start, *column_start; /* what sums begin with, one for each row or one for each column; null: zero */
    int add;                     /* to what C holds */
} FN(gemm_tile);

/* R >= rows rows and V vectors are computed. BY_ROW: a_depth is 1, else a_row is 1. All three constants where inlined. */
KERNEL_INLINE void FN(gemm_body)(const FN(gemm_tile)* g, const int R, const int V, const int BY_ROW) {
    enum { W = VECTOR_BYTES / sizeof(T) };
    const T *a = g->a, *b = g->b;
    T* c = g->c;
    int64_t a_row = BY_ROW ? g->a_row : 1, a_depth = BY_ROW ? 1 : g->a_depth, b_depth = g->b_depth, c_row = g->c_row;
    VECTOR sum[GEMM_ROWS][2];
    if (g->row_start) {
        UNROLL for (int r = 0; r < R; r++) sum[r][0] = sum[r][1] = FN(splat)(r < g->rows ? g->row_start[r] : 0);
    } else if (g->column_start) {
        UNROLL for (int r = 0; r < R; r++) {
            sum[r][0] = *(const VECTOR_U*)g->column_start;
            if (V == 2) sum[r][1] = *(const VECTOR_U*)(g->column_start + W);
        }
    } else {
        UNROLL for (int r = 0; r < R; r++) sum[r][0] = sum[r][1] = (VECTOR){0};
    }
    /* rows that do not exist repeat the last one, so that nothing outside A is read */
    const T* row[GEMM_ROWS];
    UNROLL for (int r = 0; r < R; r++) row[r] = a + (BY_ROW ? min_i64(r, g->rows - 1) * a_row : 0);
    for (int64_t s = 0; s < g->segments; s++) {
        for (int64_t k = 0; k < g->depth; k++) {
            VECTOR b0 = *(const VECTOR_U*)b, b1 = V == 2 ? *(const VECTOR_U*)(b + W) : (VECTOR_U)b0;
            b += b_depth;
            UNROLL for (int r = 0; r < R; r++) {
                VECTOR v = FN(splat)(BY_ROW ? row[r][k] : a[r]);
                sum[r][0] = FMA(v, b0, sum[r][0]);
                if (V == 2) sum[r][1] = FMA(v, b1, sum[r][1]);
            }
            if (!BY_ROW) a += a_depth;
        }
        b += g->b_skip;
        UNROLL for (int r = 0; r < R; r++) row[r] += g->a_segment;
        if (!BY_ROW) a += g->a_segment - g->depth * a_depth;
    }
    if (g->cols == V * W) {
        UNROLL for (int r = 0; r < R; r++) {
            if (r >= g->rows) break;
            VECTOR_U* out = (VECTOR_U*)(c + r * c_row);
            out[0] = g->add ? (VECTOR)out[0] + sum[r][0] : sum[r][0];
            if (V == 2) out[1] = g->add ? (VECTOR)out[1] + sum[r][1] : sum[r][1];
        }
        return;
    }
    T spill[GEMM_ROWS][W]; /* of the last vector: before it, there are columns for all lanes */
    UNROLL for (int r = 0; r < R; r++) *(VECTOR_U*)spill[r] = sum[r][V - 1];
    UNROLL for (int r = 0; r < R; r++) {
        if (r >= g->rows) break;
        VECTOR_U* out = (VECTOR_U*)(c + r * c_row);
        if (V == 2) *out = g->add ? (VECTOR)*out + sum[r][0] : sum[r][0];
        for (int64_t j = (V - 1) * W; j < g->cols; j++) c[r * c_row + j] = g->add ? c[r * c_row + j] + spill[r][j - (V - 1) * W] : spill[r][j - (V - 1) * W];
    }
}

/* Few rows or columns get narrower bodies: 64 rows are 10 tiles of 6 and one of 4. */
#define GEMM_BODIES(V, BY_ROW)                                                                      \
    if (g->rows > GEMM_ROWS * 2 / 3) FN(gemm_body)(g, GEMM_ROWS, V, BY_ROW);                        \
    else if (g->rows > GEMM_ROWS / 3) FN(gemm_body)(g, GEMM_ROWS * 2 / 3, V, BY_ROW);               \
    else FN(gemm_body)(g, GEMM_ROWS / 3, V, BY_ROW)

/* A's rows are contiguous (a_depth is 1). */
KERNEL_ONCE void FN(gemm_by_row)(const FN(gemm_tile)* g) {
    if (g->cols > LANES) { GEMM_BODIES(2, 1); }
    else { GEMM_BODIES(1, 1); }
}
/* A's columns are contiguous (a_row is 1): A transposed in place, or packed in blocks of GEMM_ROWS. All rows of the body that
 * is chosen are read: at most GEMM_ROWS from a. */
KERNEL_ONCE void FN(gemm_by_column)(const FN(gemm_tile)* g) {
    if (g->cols > LANES) { GEMM_BODIES(2, 0); }
    else { GEMM_BODIES(1, 0); }
}
#undef GEMM_BODIES
