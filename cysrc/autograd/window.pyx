"""Where views lie inside their bases: what the gradient of a view, and of a write through one, is laid out by."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport CAT_COMPLEX, category
from tensorrt_lite._C.core.tensor cimport TensorBase, shape_of, strides_of

attach()


cdef class Window:
    """Where a view lies inside its base, both over one storage; element types may differ as a complex number and its parts do."""
    @staticmethod
    cdef Window of(TensorBase base, TensorBase view):
        cdef Window w = Window.__new__(Window)
        cdef int64_t base_offset = base.offset
        cdef int64_t low, high
        w.base_shape = tuple(shape_of(base))
        w.base_strides = strides_of(base)
        w.shape = tuple(shape_of(view))
        w.strides = strides_of(view)
        w.offset = view.offset
        if category[base.dtype] == CAT_COMPLEX and category[view.dtype] != CAT_COMPLEX:
            w.parts = 1
            base_offset *= 2
        elif category[base.dtype] != CAT_COMPLEX and category[view.dtype] == CAT_COMPLEX:
            w.parts = 2
            w.offset *= 2
            w.shape += (2,)
            w.strides = tuple([2 * s for s in w.strides]) + (1,)
        w.offset -= base_offset
        # in elements of the memory that both are cut from: real numbers where the types differ
        low = min(<int64_t>0, w.offset)
        high = max(<int64_t>span(w.real_base_shape(), w.real_base_strides()), w.offset + <int64_t>span(w.shape, w.strides))
        w.start = -low
        w.length = high - low
        return w

    cdef tuple real_base_shape(self):
        return self.base_shape + (2,) if self.parts == 1 else self.base_shape

    cdef tuple real_base_strides(self):
        return tuple([2 * s for s in self.base_strides]) + (1,) if self.parts == 1 else self.base_strides

    cdef object gradient_of_base(self, object g, bint zero):
        """(memory, base): a gradient in the base's geometry over a memory of its own, filled from `g` or with zeros."""
        like = g.real if self.parts == 1 and g.is_complex() else g
        if zero:
            memory = like.new_zeros((self.length,))
        else:
            memory = like.new_empty((self.length,))
        base = memory.as_strided(self.real_base_shape(), self.real_base_strides(), self.start)
        return memory, base

    cdef object view_in(self, object memory):
        part = memory.as_strided(self.shape, self.strides, self.start + self.offset)
        return part


cdef object as_parts(object g):
    return ops_namespace().view_as_real(g.contiguous())


cdef object from_parts(object g):
    return ops_namespace().view_as_complex(g.contiguous())


cdef object span(shape, strides):
    """Elements of memory from the first to the last, 0 for an empty tensor."""
    n = 1
    for a, b in zip(shape, strides):
        if a == 0:
            return 0
        n += (a - 1) * b
    return n
