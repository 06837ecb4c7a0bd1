# Forward mode: tangents of tensors, and the rules by which they pass through operators.
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.core.dispatch cimport trt_operator
from tensorrt_lite._C.core.iterator cimport PointwiseInfo

cdef class Tangent:
    cdef TensorBase value              # None after its level was left
    cdef PyObject* following           # borrowed links of the level's list
    cdef PyObject* previous

cdef enum:
    WRITES_ONLY = 1                    # the operator exists in place only
    READS_RESULT = 2                   # a formula reads the result

ctypedef object (*forward_formula)(tuple arguments, tuple tangents, object result)

cdef TensorBase tangent_of(TensorBase t)
cdef int set_tangent(TensorBase t, TensorBase value) except -1
cdef int write_tangent(TensorBase t, TensorBase value) except -1
cdef TensorBase fitting(TensorBase value, TensorBase like, list tangents)
cdef int give_tangent(TensorBase result, object value, list tangents) except -1
cdef int refuse_forward_out(const char* name) except -1
cdef int refuse_forward(const char* name) except -1
cdef object added(object total, object value)
cdef object tangent_of_pointwise(const PointwiseInfo* info, TensorBase result, PyObject** slots, const Scalar* params, list tangents)
cdef int register_forward(int operator_id, const char* rules, int flags, forward_formula formula) except -1
cdef object underived(trt_operator* op, object result)
