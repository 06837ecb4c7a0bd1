# Conversion of Python arguments, shared by all entries.
from libc.stdint cimport int64_t, uint64_t
from cpython.object cimport PyObject, PyTypeObject
from tensorrt_lite._C.core.dtype cimport Scalar, dtype
from tensorrt_lite._C.core.tensor cimport TensorBase, tensor_type, parameter_type, MAX_DIMS

cdef struct Dims:
    int n
    int64_t v[MAX_DIMS]

cdef inline bint is_plain(object x) noexcept:
    """Exactly Tensor or Parameter: no __torch_function__ of the user's can be involved."""
    cdef PyTypeObject* t = <PyTypeObject*>(<PyObject*>x).ob_type
    return t == tensor_type or t == parameter_type

cdef bint is_number(object x) noexcept
cdef int to_scalar(object x, Scalar* s) except -1
cdef object scalar_object(const Scalar* s)
cdef TensorBase wrap_number(object x)
cdef TensorBase as_tensor_arg(object x, str op, str name)
cdef TensorBase as_operand(object x, str op, str name)
cdef int parse_dims(object x, Dims* d, str op, str name) except -1
cdef int parse_size(object x, Dims* d, str op, str name) except -1
cdef int64_t parse_int(object x, str op, str name) except? -9187343239835811840
cdef double parse_double(object x, str op, str name) except? -1.1e308
cdef bint parse_bool(object x, str op, str name) except -1
cdef int parse_dtype(object x, str op) except -2
cdef object dims_tuple(const Dims* d)
cdef int wrap_dim(int64_t dim, int ndim) except -1
cdef list tensor_list(object x, str op, str name)
cdef bint has_function(object x) noexcept
