# The memory format that an operator gives its result, for all operators that keep channels_last.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.device cimport MF_CHANNELS_LAST, MF_CHANNELS_LAST_3D, MF_CONTIGUOUS
from tensorrt_lite._C.core.iterator cimport contiguous_of, copy_elements
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, channels_last_strides, empty_strided_tensor, empty_tensor, is_channels_last, is_channels_last_3d, place_of)


cdef inline int suggested_format(int ndim, const int64_t* sizes, const int64_t* strides) noexcept:
    """The format that strides suggest, by the rule of PyTorch's suggest_memory_format: channels_last (of 4 dimensions) or channels_last_3d (of 5)
    where strides ascend from the channels over the last dimension to the first, with gaps or without, otherwise contiguous.

    Strides of dimensions of size 1 count: they alone tell (N, 1, H, W) in channels_last from contiguous. `x[0][None]` and (N, 1, 1, 1) are contiguous.
    """
    cdef int64_t least = 0
    cdef int k, d
    if ndim != 4 and ndim != 5 or strides[1] == 0:
        return MF_CONTIGUOUS
    for k in range(ndim):
        d = 1 if k == 0 else 0 if k == ndim - 1 else ndim - k
        if sizes[d] == 0 or strides[d] < least or d == 0 and least == strides[1]:
            return MF_CONTIGUOUS
        least = strides[d] * max(sizes[d], <int64_t>1)
    return MF_CHANNELS_LAST if ndim == 4 else MF_CHANNELS_LAST_3D


cdef inline bint suggests_last(TensorBase t) noexcept:
    """Whether the result of an operator on `t` is channels_last (or channels_last_3d)."""
    return suggested_format(t.ndim, t.sizes, t.strides) != MF_CONTIGUOUS


cdef inline TensorBase empty_in_format(int ndim, const int64_t* sizes, int dtype, int place, bint last):
    """An empty tensor, channels_last where `last`."""
    cdef int64_t strides[5]
    if not last:
        return empty_tensor(ndim, sizes, dtype, place)
    channels_last_strides(ndim, sizes, strides)
    return empty_strided_tensor(ndim, sizes, strides, dtype, place)


cdef inline TensorBase dense_in_format(TensorBase x, bint last):
    """x itself if it has no gaps in the format, otherwise a copy."""
    cdef TensorBase r
    if not last:
        return contiguous_of(x)
    if is_channels_last(x) or is_channels_last_3d(x):
        return x
    r = empty_in_format(x.ndim, x.sizes, x.dtype, place_of(x), True)
    copy_elements(r, x)
    return r


cdef inline bint saved_last(tuple strided) except -1:
    """Whether a saved (shape, strides, offset) suggests channels_last."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int i, ndim
    shape = strided[0]
    ndim = len(shape)
    if ndim != 4 and ndim != 5:
        return False
    for i in range(ndim):
        sizes[i], strides[i] = shape[i], strided[1][i]
    return suggested_format(ndim, sizes, strides) != MF_CONTIGUOUS


cdef inline object in_format(object x, bint last):
    """x, or its elements in channels_last; differentiable."""
    if not last or suggests_last(<TensorBase?>x):
        return x
    from tensorrt_lite._C.core.device import channels_last, channels_last_3d
    return x.contiguous(memory_format=channels_last if (<TensorBase>x).ndim == 4 else channels_last_3d)


cdef inline object kept_format(object gradient, tuple strided):
    """A gradient in channels_last where the input, of which (shape, strides, offset) were kept, was: adjoints take the format of what they are given."""
    return in_format(gradient, saved_last(strided))
