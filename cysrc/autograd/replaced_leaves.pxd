# Leaves as they were before set_.
from libc.stdint cimport uint64_t
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef class ReplacedLeaf:
    cdef uint64_t seq              # when set_ was called
    cdef object like               # a Node that has the metadata of the leaf's gradients
    cdef object accumulator        # returns it, or None: a weak reference, as accumulators hold the leaf

cdef ReplacedLeaf leaf_at(TensorBase t, uint64_t seq)
cdef int keep_leaf(TensorBase t, bint first, uint64_t seq, object like, object accumulator) except -1
