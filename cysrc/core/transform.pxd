# Functional transforms: whether one is active in this thread.
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef TensorBase value_of_wrapped(TensorBase t)
