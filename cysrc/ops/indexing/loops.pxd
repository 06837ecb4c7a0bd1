# The argument blocks of loops/indexing.c.
from libc.stdint cimport int64_t

cdef extern from "indexing.h" nogil:
    enum:
        INDEX_DIMS
        PUT_SET
        PUT_ADD
        PUT_MUL
        PUT_MIN
        PUT_MAX
    ctypedef struct RowArgs:
        int64_t m
        const int64_t* offset
        int64_t dense_step
        int n_outer, n_inner
        int64_t outer_size[64]
        int64_t outer_table[64]
        int64_t outer_dense[64]
        int64_t inner_size[64]
        int64_t inner_table[64]
        int64_t inner_dense[64]
        char* table
        char* dense
        int item, op, dtype
    ctypedef struct LineArgs:
        int nd
        int64_t n, ts, ds, xs, limit, wrap
        int64_t size[64]
        int64_t t[64]
        int64_t d[64]
        int64_t x[64]
        char* table
        char* dense
        const int64_t* index
        int item, op, dtype, bad
    ctypedef struct MaskArgs:
        int nd
        int64_t size[64]
        int64_t d[64]
        int64_t s[64]
        int64_t m[64]
        char* dst
        char* src
        char* mask
        int item
        char value[16]
    ctypedef struct SearchArgs:
        const char* sorted
        const char* values
        const int64_t* sorter
        char* out
        int64_t n, count, row_step
        int right, out_int32, dtype
    ctypedef struct OneHotArgs:
        const int64_t* index
        int64_t* out
        int64_t classes
        int bad

cdef enum:
    NOT_SKIPPED = -0x7FFFFFFFFFFFFFFF      # no index is this
