# The argument blocks and functions of loops/sorting.c.
from libc.stdint cimport int64_t, uint32_t

cdef extern from "sorting.h" nogil:
    enum:
        SORT_ALL
        SORT_FIRST
        SORT_KTH
        SORT_MEDIAN
        SORT_NANMEDIAN
        SORT_MODE
        SORT_BLOCKS
    ctypedef struct SortArgs:
        const char* x
        char* values
        char* indices
        char* scratch
        int64_t worker_bytes, workers, lines
        int64_t n, keep, kth
        int64_t xs, vs
        int64_t along_indices "is"
        int nd
        int64_t size[64]
        int64_t xo[64]
        int64_t vo[64]
        int64_t io[64]
        int dtype, what, descending, ordered
        void* run
    ctypedef struct RunArgs:
        const char* x
        const int64_t* order
        char* values
        int64_t* inverse
        int64_t* counts
        int64_t n
        int dtype
    ctypedef struct RowsArgs:
        const char* x
        char* keys
        uint32_t* order
        uint32_t* spare
        int64_t n, c
        int dtype
    ctypedef struct BinArgs:
        const double* x
        const double* edges
        int64_t* flat
        int64_t n, bins
        int uniform, adjust
