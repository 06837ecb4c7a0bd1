/* Places of sparse matrices, which other threads may write to while they are read. */
#ifndef TRT_SPARSE_PLACES_H
#define TRT_SPARSE_PLACES_H
#include <stdint.h>

/* The row or column that an entry names, or 0. One load serves the test and the use: another thread may write to the index meanwhile. */
static inline int64_t named_row(const int64_t* entry, int64_t columns, int* bad) {
    int64_t c = *entry;
    __asm__("" : "+r"(c));
    if (__builtin_expect((uint64_t)c < (uint64_t)columns, 1)) return c;
    __atomic_store_n(bad, 1, __ATOMIC_RELAXED);
    return 0;
}

#endif
