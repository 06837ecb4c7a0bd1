# What is computed on the host for every device.
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef int half_sequence(TensorBase r, double start, double stop) except -1
cdef int complex_sequence(TensorBase r, const Scalar* s, const Scalar* e, double base, bint power) except -1
cdef int window(TensorBase r, int kind, bint periodic, double a, double b, double c) except -1
