/* Argument block of the running extremes, declared again in ops/reduction/scan.pxi. */
#ifndef TRT_REDUCTION_SCAN_H
#define TRT_REDUCTION_SCAN_H
#include <stdint.h>

enum { EXTREME_COLUMNS = 128 };

/* (outer, n, inner), contiguous, n >= 1. Items are rows where inner is 1, else (outer, block of EXTREME_COLUMNS columns). */
typedef struct {
    const char *x;
    char *values;
    int64_t *indices;
    int64_t n, inner;
    int largest, dtype;
} ExtremeScanArgs;
#endif
