/* Argument blocks of the sorting kernels, declared again in ops/sorting/loops.pxd and defined in sorting.c. Strides are in bytes. */
#ifndef TRT_SORTING_H
#define TRT_SORTING_H
#include <stdint.h>

enum { SORT_DIMS = 64, SORT_BLOCKS = 64 };
/* What is made of a line (all elements along the dimension): the sorted line, its first elements, or one element of it. */
enum { SORT_ALL, SORT_FIRST, SORT_KTH, SORT_MEDIAN, SORT_NANMEDIAN, SORT_MODE };

typedef void (*sort_task)(void *context, int64_t begin, int64_t end);
typedef void (*sort_runner)(int64_t n, int64_t grain, int64_t align, sort_task task, void *context);

/* Worker w of `workers` does its share of the lines in scratch + w * worker_bytes; with one line it is the line that is
 * shared (SORT_ALL; other work on one line is one worker's). Results are keep elements a line: positions in indices. */
typedef struct {
    const char *x;
    char *values, *indices; /* NULL: not wanted */
    char *scratch;
    int64_t worker_bytes, workers, lines;
    int64_t n, keep, kth; /* kth from 0 */
    int64_t xs, vs, is;   /* along the dimension */
    int nd;               /* the other dimensions, fastest last */
    int64_t size[SORT_DIMS], xo[SORT_DIMS], vo[SORT_DIMS], io[SORT_DIMS];
    int dtype, what, descending, ordered;
    sort_runner run;
} SortArgs;

/* Runs of equal neighbours in x (n elements); the results of elements lie at order[i] where an order is given. */
typedef struct {
    const char *x;
    const int64_t *order;
    char *values;              /* the first of each run; NULL: not wanted */
    int64_t *inverse, *counts; /* NULL: not wanted */
    int64_t n;
    int dtype;
} RunArgs;

/* Rows of c elements: their lexicographic order, and which of the ordered rows differ from their predecessor. */
typedef struct {
    const char *x;
    char *keys; /* 4 or 8 bytes an element */
    uint32_t *order, *spare;
    int64_t n, c;
    int dtype;
} RowsArgs;

/* Bins between edges[0] and edges[bins]: equal ones by arithmetic (uniform), any by search. */
typedef struct {
    const double *x, *edges;
    int64_t *flat; /* becomes flat * bins + bin, or -1 outside */
    int64_t n, bins;
    int uniform, adjust; /* adjust: a computed bin is corrected by its edges */
} BinArgs;

#endif
