# Entries and autograd of declared pointwise operators.
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.core.iterator cimport PointwiseInfo
from tensorrt_lite._C.core.dispatch cimport trt_operator, trt_row, trt_value

cdef object entry1(PointwiseInfo* info, object a, const Scalar* params, object out, bint inplace)
cdef object entry2(PointwiseInfo* info, object a, object b, const Scalar* params, object out, bint inplace)
cdef object entry3(PointwiseInfo* info, object a, object b, object c, const Scalar* params, object out, bint inplace)
cdef TensorBase call1(PointwiseInfo* info, TensorBase a, const Scalar* params, TensorBase out, int mode)
cdef TensorBase call2(PointwiseInfo* info, TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode)
cdef TensorBase call3(PointwiseInfo* info, TensorBase a, TensorBase b, TensorBase c, const Scalar* params, TensorBase out, int mode)
cdef object unpack_pointwise(trt_operator* op, const trt_value* v, void* out, int mode)
cdef object invoke_pointwise(trt_operator* op, void* kernel, const trt_value* v, void* out, int mode)
cdef int register_pointwise(PointwiseInfo* info, int operator_id, const trt_row* row, str tensors, str params) except -1
cdef int param(object x, Scalar* s, str op, str name) except -1
cdef bint is_operand(object x) noexcept
cdef void unit_scalar(Scalar* s) noexcept
