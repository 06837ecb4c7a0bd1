# The parts of a joined tensor: how they lie, and a copy of each into its place.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.iterator cimport copy_elements
from tensorrt_lite._C.core.tensor cimport MAX_DIMS, TensorBase, make_view

cdef enum PartsLayout:
    ANY_PARTS
    CONTIGUOUS_PARTS               # each of the result's dtype, as the result is
    CHANNELS_LAST_PARTS

cdef inline bint is_nothing(TensorBase t) noexcept:
    """A tensor of shape (0), which cat skips whatever the other shapes are."""
    return t.ndim == 1 and t.sizes[0] == 0

cdef inline int copy_parts(TensorBase result, list tensors, int d, bint stacked) except -1:
    """Each tensor into its part of result along d; stacked: the part is a slice of one element without that dimension."""
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t start = 0
    cdef int k, n = 0
    cdef TensorBase t
    for k in range(result.ndim):
        if k != d or not stacked:
            sizes[n] = result.sizes[k]
            strides[n] = result.strides[k]
            n += 1
    for x in tensors:
        t = <TensorBase>x
        if not stacked:
            if is_nothing(t):
                continue
            sizes[d] = t.sizes[d]
        copy_elements(make_view(result, n, sizes, strides, result.offset + start * result.strides[d]), t)
        start += 1 if stacked else t.sizes[d]
    return 0
