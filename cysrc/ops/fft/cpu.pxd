# What devices share of the family: tables of a length.
from libc.stdint cimport int64_t

cdef tuple tables_for_device(int64_t n, bint is_double)
