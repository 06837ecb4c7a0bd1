# Before memory is read: the tensor whose memory it is. Inline, so that what has memory pays a test of its keys.
from tensorrt_lite._C.core.tensor cimport TensorBase, K_PYTHON, K_WRAPPED

cdef inline TensorBase materialized(TensorBase t, str reader):
    """The tensor that `reader` (item, numpy, data_ptr) finds the elements of `t` in: itself, what a wrapper of a functional transform stands for, or what
    the `__materialize__` of its class makes."""
    if not t.keys & (K_WRAPPED | K_PYTHON):
        return t
    from tensorrt_lite._C.core.python_key import materialize
    return <TensorBase?>materialize(t, reader)
