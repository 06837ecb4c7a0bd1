# Derivatives of reductions and scans: what the formulas of reduction.yaml call.
from libc.stdint cimport int64_t

cdef object restore_dims(object g, object shape, object dim, bint keepdim)
cdef object sum_backward(object grad, object meta, object dim, bint keepdim)
cdef object nansum_backward(object grad, object self, object dim, bint keepdim)
cdef object mean_backward(object grad, object meta, object dim, bint keepdim)
cdef object extreme_backward(object grad, object self, object result, object dim, bint keepdim)
cdef object selected_backward(object grad, object shape, object indices, int64_t dim, bint keepdim)
cdef object selected_tangent(object tangent, object indices, int64_t dim, bint keepdim)
cdef object cumulative_selected_backward(object grad, object shape, object indices, int64_t dim)
cdef object var_backward(object grad, object self, object result, object dim, double correction, bint keepdim, bint root)
cdef object logsumexp_backward(object grad, object self, object result, object dim, bint keepdim)
cdef object norm_backward(object grad, object self, object result, double p, object dim, bint keepdim)
cdef object cumsum_backward(object grad, object meta, int64_t dim)
cdef object cumprod_backward(object grad, object self, object result, int64_t dim)
cdef object prod_backward(object grad, object self, object result, object dim, bint keepdim)
