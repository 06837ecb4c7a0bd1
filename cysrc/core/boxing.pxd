# Calls whose arguments are Python objects: from a kernel of an operator's C type and back.
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dispatch cimport trt_operator, trt_value

ctypedef object (*boxed_kernel)(trt_operator* op, const trt_value* v, PyObject* out, int mode)

cdef object box(trt_operator* op, const trt_value* v, PyObject* out, int mode)
cdef object boxed_value(char kind, const trt_value* v, bint numbers)
cdef tuple box_arguments(trt_operator* op, const trt_value* v, bint numbers)
cdef object recall(int operator_id, tuple arguments, object out, int mode)
cdef object call_boxed(trt_operator* op, tuple arguments, object out, int mode)
cdef void register_boxed(int key, boxed_kernel kernel) noexcept
cdef boxed_kernel registered_kernel(int key) noexcept
