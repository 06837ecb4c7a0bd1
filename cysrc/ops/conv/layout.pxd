from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef int turn(TensorBase source, TensorBase target, bint to_last) except -1
cdef TensorBase turned(TensorBase t)
cdef TensorBase samples_of(TensorBase t, int64_t begin, int64_t count)
