# cython: language_level=3
"""A module in Cython: lengths of runs of equal numbers."""
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t
from tensorrt_lite_api cimport TRTL_CPU, TRTL_INT64, trtl_api, trtl_import, trtl_tensor

cdef const trtl_api* api = trtl_import()


def run_lengths(x):
    """The lengths of the runs of equal numbers in a one-dimensional int64 tensor, as an int64 tensor. TypeError for other tensors."""
    cdef trtl_tensor given = api.from_object(<void*>x), dense = NULL, result
    cdef int64_t i, n, runs = 0
    cdef const int64_t* p
    cdef int64_t* q
    try:
        if api.dtype(given) != TRTL_INT64 or api.device_type(given) != TRTL_CPU or api.dim(given) != 1:
            raise TypeError("run_lengths(): expected a one-dimensional int64 tensor on the CPU")
        dense = api.contiguous(given)
        n = api.numel(dense)
        p = <const int64_t*>api.const_data(dense)
        for i in range(n):
            runs += i == 0 or p[i] != p[i - 1]
        result = api.full(1, &runs, 0, TRTL_INT64, TRTL_CPU, -1)
        q = <int64_t*>api.data(result)
        runs = -1
        for i in range(n):
            runs += i == 0 or p[i] != p[i - 1]
            q[runs] += 1
        return take(result)
    finally:
        api.release(given)
        api.release(dense)


cdef object take(trtl_tensor t):
    """The Python object of a handle that we own."""
    found = <object>api.to_object(t)
    Py_DECREF(found)                   # to_object's reference; `found` has its own
    api.release(t)
    return found
