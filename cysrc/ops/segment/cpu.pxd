# What devices share of the family's steps: operators do the work.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef int check_lengths(TensorBase lengths, int64_t n) except -1
