# Logits by rows.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase, make_view

cdef inline TensorBase class_rows(TensorBase x):
    """(N, C, inner) seen as (N, inner, C): where the classes of a position lie side by side, its rows."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    sizes[0] = x.sizes[0]
    sizes[1] = x.sizes[2]
    sizes[2] = x.sizes[1]
    strides[0] = x.strides[0]
    strides[1] = x.strides[2]
    strides[2] = x.strides[1]
    return make_view(x, 3, sizes, strides, x.offset)

cdef inline bint lies_by_rows(TensorBase x):
    """Whether the classes of each position of (N, C, inner) lie side by side, one position after the other."""
    return x.ndim == 3 and not x.contiguous and class_rows(x).contiguous
