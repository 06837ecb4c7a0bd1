# Lines along one dimension of a contiguous (outer, n, inner).
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.core.args cimport wrap_dim
from tensorrt_lite._C.steps.reduction cimport line_call

cdef inline int fill_lines(line_call* call, TensorBase x, int64_t dim) except -1:
    """The shape of x around `dim`, which is checked."""
    cdef int i
    call.dim = wrap_dim(dim, x.ndim)
    call.n = x.sizes[call.dim] if x.ndim else 1
    call.outer = call.inner = 1
    for i in range(x.ndim):
        if i < call.dim:
            call.outer *= x.sizes[i]
        elif i > call.dim:
            call.inner *= x.sizes[i]
    return 0
