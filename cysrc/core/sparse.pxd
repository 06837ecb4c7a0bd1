# Sparse tensors: what a tensor has in the place of memory whose elements are mostly not stored.
from tensorrt_lite._C.core.storage cimport Storage
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef class SparseStorage(Storage):
    cdef tuple parts                  # plain tensors without history: (indices, values) of COO, (compressed indices, plain indices, values) of the others
    cdef int sparse_dim, dense_dim
    cdef bint coalesced

cdef object device_of_sparse(TensorBase t)
