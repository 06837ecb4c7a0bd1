# Where a view lies inside its base, both over one storage.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase

cdef class Window:
    cdef tuple base_shape, base_strides, shape, strides
    cdef int64_t offset, start, length
    cdef int parts                     # 0: same type, 1: real view of a complex base, 2: complex view of a real base

    @staticmethod
    cdef Window of(TensorBase base, TensorBase view)
    cdef tuple real_base_shape(self)
    cdef tuple real_base_strides(self)
    cdef object gradient_of_base(self, object g, bint zero)
    cdef object view_in(self, object memory)

cdef object as_parts(object g)
cdef object from_parts(object g)
