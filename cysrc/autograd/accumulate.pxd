# Sums of gradients, and the `grad` of leaves.
from cpython.object cimport PyObject
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef TensorBase sum_gradients(TensorBase a, TensorBase b, TensorBase out, int mode)
cdef int accumulate(TensorBase leaf, PyObject** owned, bint shared) except -1
