# What the steps of dropout share: whether two tensors' elements correspond in memory, and the scale of what is kept.
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dtype cimport F32, F64
from tensorrt_lite._C.core.iterator cimport cast_to
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, empty_tensor, same_sizes

cdef inline bint same_geometry(TensorBase a, TensorBase b) noexcept:
    cdef int i
    if not same_sizes(a, b):
        return False
    for i in range(a.ndim):
        if a.sizes[i] != 1 and a.strides[i] != b.strides[i]:
            return False
    return True

cdef inline double round_half(float v, int code):
    cdef TensorBase t = empty_tensor(0, NULL, F32, DEV_CPU)
    (<float*>data_of(t))[0] = v
    t = cast_to(cast_to(t, code), F32)
    return (<float*>data_of(t))[0]

cdef inline double noise_of(double keep, int code) except? -1:
    """1 / keep as a tensor of the dtype holds it."""
    cdef float f
    if code == F64:
        return 1.0 / keep
    f = <float>1.0 / <float>keep
    if code == F32:
        return f
    return round_half(f, code)
