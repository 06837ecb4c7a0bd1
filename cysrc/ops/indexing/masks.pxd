# Kernels and derivatives by masks.
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef TensorBase masked_fill_kernel(TensorBase self, TensorBase mask, TensorBase value, TensorBase out, int mode)
cdef object masked_zero(object grad, object mask)
cdef object masked_part(object grad, object mask)
cdef list coordinates_of(TensorBase t)
cdef TensorBase nonzero_kernel(TensorBase self, TensorBase out, int mode)
cdef TensorBase masked_select_kernel(TensorBase self, TensorBase mask, TensorBase out, int mode)
cdef object masked_select_backward(object grad, object shape, object mask)
cdef TensorBase masked_scatter_kernel(TensorBase self, TensorBase mask, TensorBase source, TensorBase out, int mode)
