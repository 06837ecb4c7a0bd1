# Stable sorting of keys with values, and prefix sums, over cuda_src/radix.cuh.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase

# keys: contiguous int32 or int64, taken for unsigned, of which bits [0, bits) count. positions: None, or contiguous int32 or int64
# values that go along (None: the numbers 0..n-1 as int32). Returns (sorted keys, values); what was passed may be overwritten.
cdef tuple sort_pairs(TensorBase keys, TensorBase values, int bits)

# Exclusive prefix sums of each row of `length` int64 numbers, in place; the rows' sums.
cdef TensorBase scan_rows(TensorBase counts, int64_t rows, int64_t length)
