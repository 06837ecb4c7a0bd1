# Indices as index and index_put take them.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef list expand_masks(TensorBase self, object given)
cdef object copied(object indices)
cdef list checked_indices(TensorBase self, object given)
cdef int raise_bounds(int64_t i, int dim, int64_t size) except -1
