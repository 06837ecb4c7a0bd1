/* Argument blocks of the indexing kernels. Strides and offsets are in bytes unless said otherwise. Kernels bound the
 * indices they read, which other threads may change, and report those out of range. Declared in
 * ops/indexing/loops.pxd, defined in indexing.c and indexing_fill.c. */
#ifndef TRT_INDEXING_H
#define TRT_INDEXING_H
#include <stdint.h>

enum { INDEX_DIMS = 64 };
enum { PUT_SET, PUT_ADD, PUT_MUL, PUT_MIN, PUT_MAX, PUT_OPS };

/* Rows of a table named by offsets: for each outer position and each m, the inner block table[offset[m]] <-> dense[m]. */
typedef struct {
    int64_t m;
    const int64_t *offset;
    int64_t dense_step;
    int n_outer, n_inner;
    int64_t outer_size[INDEX_DIMS], outer_table[INDEX_DIMS], outer_dense[INDEX_DIMS];
    int64_t inner_size[INDEX_DIMS], inner_table[INDEX_DIMS], inner_dense[INDEX_DIMS]; /* fastest last */
    char *table, *dense;
    int item, op, dtype;
} RowArgs;

/* Lines along one dimension: dense[i] <-> table[index[i]], with `nd` >= 1 other dimensions, fastest last. */
typedef struct {
    int nd;
    int64_t n, ts, ds, xs;       /* along the dimension; xs in elements */
    int64_t limit, wrap;         /* indices are below limit >= 1; wrap is added to negative ones */
    int64_t size[INDEX_DIMS], t[INDEX_DIMS], d[INDEX_DIMS], x[INDEX_DIMS];
    char *table, *dense;
    const int64_t *index;
    int item, op, dtype;
    int bad;                     /* set by the kernels: an index was out of range and taken for 0 */
} LineArgs;

/* dst = mask ? value : src over nd >= 1 dimensions, fastest last. */
typedef struct {
    int nd;
    int64_t size[INDEX_DIMS], d[INDEX_DIMS], s[INDEX_DIMS], m[INDEX_DIMS];
    char *dst, *src, *mask;
    int item;
    char value[16];
} MaskArgs;

/* Positions in sorted rows of int32, int64, float32 or float64: `n` boundaries per row, `count` values per row. */
typedef struct {
    const char *sorted, *values;
    const int64_t *sorter;
    char *out;
    int64_t n, count, row_step; /* row_step 0: one row of boundaries for all values */
    int right, out_int32, dtype;
} SearchArgs;

/* Rows of `classes` >= 1 elements. */
typedef struct {
    const int64_t *index;
    int64_t *out;
    int64_t classes;
    int bad; /* set by the kernel: an index was out of range */
} OneHotArgs;

#endif
