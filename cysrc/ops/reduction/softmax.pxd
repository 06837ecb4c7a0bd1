# softmax and log_softmax: what the rows' kernels and formulas call.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.steps.reduction cimport line_call

cdef TensorBase meta_softmax(line_call* call, str name, TensorBase self, int64_t dim, int dtype, TensorBase out, int mode)
cdef TensorBase meta_aten_softmax(line_call* call, str name, TensorBase self, int64_t dim, bint half_to_float, TensorBase out, int mode)
cdef TensorBase softmax_backward_impl(TensorBase grad_output, TensorBase output, int64_t dim, int input_dtype)
cdef TensorBase log_softmax_backward_impl(TensorBase grad_output, TensorBase output, int64_t dim, int input_dtype)
cdef object softmax_second(object grad, object grad_output, object output, int64_t dim)
cdef object softmax_grad(object grad, object result, int64_t dim, object meta)
cdef object log_softmax_grad(object grad, object result, int64_t dim, object meta)
cdef object softmax_tangent(object tangent, object result, int64_t dim)
cdef object log_softmax_tangent(object tangent, object result, int64_t dim)
