# Tensors from nested sequences, and the dtypes of what NumPy and pandas hold.
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef TensorBase from_sequence(object data, int code)       # code: -1 for the promoted dtype of what data holds
cdef int numpy_code(object dtype) except -1
cdef int labelled_code(object x) except -2
cdef bint is_table(object x)
