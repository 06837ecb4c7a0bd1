# Casts of arguments while autocast is on: what compositions, which have no row that says how, ask.
from tensorrt_lite._C.core.tensor cimport TensorBase, K_AUTOCAST
from tensorrt_lite._C.core.dispatch cimport tls, trt_thread_state

cdef inline bint autocasting() noexcept:
    """Whether a composition on PyTorch's lists has arguments to cast: then it calls `recast`."""
    return tls().included & ~tls().excluded & K_AUTOCAST != 0

cdef object recast(str policies, object function, tuple args, dict kwargs)
cdef TensorBase cast_operand(TensorBase t, str policies)
