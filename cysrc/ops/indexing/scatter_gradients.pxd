# Derivatives of scatter and scatter_reduce.
from libc.stdint cimport int64_t

cdef object enlarged(object g, object shape)
cdef object source_gradient(object grad, int64_t dim, object index, object shape)
cdef object scatter_reduce_backward(object grad, object self, int64_t dim, object index, object source, object reduce, bint include_self, object result, bint to_self)
