# Generated: typed dispatchers of all operators.
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase, K_CPU
from tensorrt_lite._C.core.dispatch cimport OPS, resolve
from tensorrt_lite._C.core.args cimport Dims
from tensorrt_lite._C.core.iterator cimport PointwiseInfo
from tensorrt_lite._C.autograd.pointwise cimport call1, call2, call3

cdef enum:
    OP_ADD = 0
    OP_MUL = 1
    OP_EXP = 2
    OP_CLONE = 3
    OP_CONTIGUOUS = 4
    OP_TO_COPY = 5
    OP_COPY = 6
    OP_FILL = 7
    OP_ZERO = 8
    OP_SUM = 9
    OP_MEAN = 10
    OP_PROD = 11
    OP_AMAX = 12
    OP_AMIN = 13
    OP_MAX_DIM = 14
    OP_MIN_DIM = 15
    OP_ARGMAX = 16
    OP_ARGMIN = 17
    OP_ALL = 18
    OP_ANY = 19
    OP_COUNT_NONZERO = 20
    OP_VAR_KERNEL = 21
    OP_LOGSUMEXP = 22
    OP_VECTOR_NORM = 23
    OP_CUMSUM = 24
    OP_CUMPROD = 25
    OP_CUMMAX = 26
    OP_CUMMIN = 27
    OP_SOFTMAX = 28
    OP_LOG_SOFTMAX = 29
    OP_SOFTMAX_BACKWARD = 30
    OP_VIEW = 31
    OP_ALIAS = 32
    OP_AS_STRIDED = 33
    OP_EXPAND = 34
    OP_PERMUTE = 35
    OP_TRANSPOSE = 36
    OP_T = 37
    OP_SQUEEZE = 38
    OP_UNSQUEEZE = 39
    OP_SELECT = 40
    OP_SLICE = 41
    OP_NARROW = 42
    OP_DIAGONAL = 43
    OP_UNFOLD = 44
    OP_SPLIT = 45
    OP_SPLIT_WITH_SIZES = 46
    OP_UNBIND = 47
    OP_VIEW_AS_REAL = 48
    OP_VIEW_AS_COMPLEX = 49

cdef inline uint64_t keys_of_list(list tensors):
    cdef uint64_t k = 0
    for t in tensors:
        k |= (<TensorBase?>t).keys if t is not None else 0
    return k if k else K_CPU

cdef inline TensorBase op_add(TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode):
    return call2(<PointwiseInfo*>OPS[OP_ADD].info, a, b, params, out, mode)

cdef inline TensorBase op_mul(TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode):
    return call2(<PointwiseInfo*>OPS[OP_MUL].info, a, b, params, out, mode)

cdef inline TensorBase op_exp(TensorBase a, const Scalar* params, TensorBase out, int mode):
    return call1(<PointwiseInfo*>OPS[OP_EXP].info, a, params, out, mode)

ctypedef TensorBase (*fn_clone)(TensorBase, object)
cdef inline TensorBase op_clone(TensorBase self, object memory_format):
    return (<fn_clone>resolve(&OPS[OP_CLONE], self.keys))(self, memory_format)

ctypedef TensorBase (*fn_contiguous)(TensorBase, object)
cdef inline TensorBase op_contiguous(TensorBase self, object memory_format):
    return (<fn_contiguous>resolve(&OPS[OP_CONTIGUOUS], self.keys))(self, memory_format)

ctypedef TensorBase (*fn__to_copy)(TensorBase, int, object, object)
cdef inline TensorBase op__to_copy(TensorBase self, int dtype, object device, object memory_format):
    return (<fn__to_copy>resolve(&OPS[OP_TO_COPY], self.keys))(self, dtype, device, memory_format)

ctypedef TensorBase (*fn_copy)(TensorBase, TensorBase, TensorBase, int)
cdef inline TensorBase op_copy(TensorBase self, TensorBase src, TensorBase out, int mode):
    return (<fn_copy>resolve(&OPS[OP_COPY], self.keys | src.keys | (out.keys if mode else 0)))(self, src, out, mode)

ctypedef TensorBase (*fn_fill)(TensorBase, const Scalar*, TensorBase, int)
cdef inline TensorBase op_fill(TensorBase self, const Scalar* value, TensorBase out, int mode):
    return (<fn_fill>resolve(&OPS[OP_FILL], self.keys | (out.keys if mode else 0)))(self, value, out, mode)

ctypedef TensorBase (*fn_zero)(TensorBase, TensorBase, int)
cdef inline TensorBase op_zero(TensorBase self, TensorBase out, int mode):
    return (<fn_zero>resolve(&OPS[OP_ZERO], self.keys | (out.keys if mode else 0)))(self, out, mode)

ctypedef TensorBase (*fn_sum)(TensorBase, const Dims*, bint, int, TensorBase, int)
cdef inline TensorBase op_sum(TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode):
    return (<fn_sum>resolve(&OPS[OP_SUM], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, dtype, out, mode)

ctypedef TensorBase (*fn_mean)(TensorBase, const Dims*, bint, int, TensorBase, int)
cdef inline TensorBase op_mean(TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode):
    return (<fn_mean>resolve(&OPS[OP_MEAN], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, dtype, out, mode)

ctypedef TensorBase (*fn_prod)(TensorBase, const Dims*, bint, int, TensorBase, int)
cdef inline TensorBase op_prod(TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode):
    return (<fn_prod>resolve(&OPS[OP_PROD], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, dtype, out, mode)

ctypedef TensorBase (*fn_amax)(TensorBase, const Dims*, bint, TensorBase, int)
cdef inline TensorBase op_amax(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    return (<fn_amax>resolve(&OPS[OP_AMAX], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, out, mode)

ctypedef TensorBase (*fn_amin)(TensorBase, const Dims*, bint, TensorBase, int)
cdef inline TensorBase op_amin(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    return (<fn_amin>resolve(&OPS[OP_AMIN], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, out, mode)

ctypedef object (*fn_max_dim)(TensorBase, int64_t, bint, object, int)
cdef inline object op_max_dim(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return (<fn_max_dim>resolve(&OPS[OP_MAX_DIM], self.keys))(self, dim, keepdim, out, mode)

ctypedef object (*fn_min_dim)(TensorBase, int64_t, bint, object, int)
cdef inline object op_min_dim(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return (<fn_min_dim>resolve(&OPS[OP_MIN_DIM], self.keys))(self, dim, keepdim, out, mode)

ctypedef TensorBase (*fn_argmax)(TensorBase, object, bint, TensorBase, int)
cdef inline TensorBase op_argmax(TensorBase self, object dim, bint keepdim, TensorBase out, int mode):
    return (<fn_argmax>resolve(&OPS[OP_ARGMAX], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, out, mode)

ctypedef TensorBase (*fn_argmin)(TensorBase, object, bint, TensorBase, int)
cdef inline TensorBase op_argmin(TensorBase self, object dim, bint keepdim, TensorBase out, int mode):
    return (<fn_argmin>resolve(&OPS[OP_ARGMIN], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, out, mode)

ctypedef TensorBase (*fn_all)(TensorBase, const Dims*, bint, TensorBase, int)
cdef inline TensorBase op_all(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    return (<fn_all>resolve(&OPS[OP_ALL], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, out, mode)

ctypedef TensorBase (*fn_any)(TensorBase, const Dims*, bint, TensorBase, int)
cdef inline TensorBase op_any(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    return (<fn_any>resolve(&OPS[OP_ANY], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, out, mode)

ctypedef TensorBase (*fn_count_nonzero)(TensorBase, const Dims*)
cdef inline TensorBase op_count_nonzero(TensorBase self, const Dims* dim):
    return (<fn_count_nonzero>resolve(&OPS[OP_COUNT_NONZERO], self.keys))(self, dim)

ctypedef TensorBase (*fn_var_kernel)(TensorBase, const Dims*, double, bint, bint, TensorBase, int)
cdef inline TensorBase op_var_kernel(TensorBase self, const Dims* dim, double correction, bint keepdim, bint root, TensorBase out, int mode):
    return (<fn_var_kernel>resolve(&OPS[OP_VAR_KERNEL], self.keys | (out.keys if mode else 0)))(self, dim, correction, keepdim, root, out, mode)

ctypedef TensorBase (*fn_logsumexp)(TensorBase, const Dims*, bint, TensorBase, int)
cdef inline TensorBase op_logsumexp(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    return (<fn_logsumexp>resolve(&OPS[OP_LOGSUMEXP], self.keys | (out.keys if mode else 0)))(self, dim, keepdim, out, mode)

ctypedef TensorBase (*fn_vector_norm)(TensorBase, double, const Dims*, bint, int, TensorBase, int)
cdef inline TensorBase op_vector_norm(TensorBase self, double ord, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode):
    return (<fn_vector_norm>resolve(&OPS[OP_VECTOR_NORM], self.keys | (out.keys if mode else 0)))(self, ord, dim, keepdim, dtype, out, mode)

ctypedef TensorBase (*fn_cumsum)(TensorBase, int64_t, int, TensorBase, int)
cdef inline TensorBase op_cumsum(TensorBase self, int64_t dim, int dtype, TensorBase out, int mode):
    return (<fn_cumsum>resolve(&OPS[OP_CUMSUM], self.keys | (out.keys if mode else 0)))(self, dim, dtype, out, mode)

ctypedef TensorBase (*fn_cumprod)(TensorBase, int64_t, int, TensorBase, int)
cdef inline TensorBase op_cumprod(TensorBase self, int64_t dim, int dtype, TensorBase out, int mode):
    return (<fn_cumprod>resolve(&OPS[OP_CUMPROD], self.keys | (out.keys if mode else 0)))(self, dim, dtype, out, mode)

ctypedef object (*fn_cummax)(TensorBase, int64_t, object, int)
cdef inline object op_cummax(TensorBase self, int64_t dim, object out, int mode):
    return (<fn_cummax>resolve(&OPS[OP_CUMMAX], self.keys))(self, dim, out, mode)

ctypedef object (*fn_cummin)(TensorBase, int64_t, object, int)
cdef inline object op_cummin(TensorBase self, int64_t dim, object out, int mode):
    return (<fn_cummin>resolve(&OPS[OP_CUMMIN], self.keys))(self, dim, out, mode)

ctypedef TensorBase (*fn__softmax)(TensorBase, int64_t, int, TensorBase, int)
cdef inline TensorBase op__softmax(TensorBase self, int64_t dim, int dtype, TensorBase out, int mode):
    return (<fn__softmax>resolve(&OPS[OP_SOFTMAX], self.keys | (out.keys if mode else 0)))(self, dim, dtype, out, mode)

ctypedef TensorBase (*fn__log_softmax)(TensorBase, int64_t, int, TensorBase, int)
cdef inline TensorBase op__log_softmax(TensorBase self, int64_t dim, int dtype, TensorBase out, int mode):
    return (<fn__log_softmax>resolve(&OPS[OP_LOG_SOFTMAX], self.keys | (out.keys if mode else 0)))(self, dim, dtype, out, mode)

ctypedef TensorBase (*fn__softmax_backward)(TensorBase, TensorBase, int64_t, bint)
cdef inline TensorBase op__softmax_backward(TensorBase grad_output, TensorBase output, int64_t dim, bint log):
    return (<fn__softmax_backward>resolve(&OPS[OP_SOFTMAX_BACKWARD], grad_output.keys | output.keys))(grad_output, output, dim, log)

ctypedef TensorBase (*fn_view)(TensorBase, const Dims*)
cdef inline TensorBase op_view(TensorBase self, const Dims* size):
    return (<fn_view>resolve(&OPS[OP_VIEW], self.keys))(self, size)

ctypedef TensorBase (*fn_alias)(TensorBase)
cdef inline TensorBase op_alias(TensorBase self):
    return (<fn_alias>resolve(&OPS[OP_ALIAS], self.keys))(self)

ctypedef TensorBase (*fn_as_strided)(TensorBase, const Dims*, const Dims*, object)
cdef inline TensorBase op_as_strided(TensorBase self, const Dims* size, const Dims* stride, object storage_offset):
    return (<fn_as_strided>resolve(&OPS[OP_AS_STRIDED], self.keys))(self, size, stride, storage_offset)

ctypedef TensorBase (*fn_expand)(TensorBase, const Dims*)
cdef inline TensorBase op_expand(TensorBase self, const Dims* size):
    return (<fn_expand>resolve(&OPS[OP_EXPAND], self.keys))(self, size)

ctypedef TensorBase (*fn_permute)(TensorBase, const Dims*)
cdef inline TensorBase op_permute(TensorBase self, const Dims* dims):
    return (<fn_permute>resolve(&OPS[OP_PERMUTE], self.keys))(self, dims)

ctypedef TensorBase (*fn_transpose)(TensorBase, int64_t, int64_t)
cdef inline TensorBase op_transpose(TensorBase self, int64_t dim0, int64_t dim1):
    return (<fn_transpose>resolve(&OPS[OP_TRANSPOSE], self.keys))(self, dim0, dim1)

ctypedef TensorBase (*fn_t)(TensorBase)
cdef inline TensorBase op_t(TensorBase self):
    return (<fn_t>resolve(&OPS[OP_T], self.keys))(self)

ctypedef TensorBase (*fn_squeeze)(TensorBase, const Dims*)
cdef inline TensorBase op_squeeze(TensorBase self, const Dims* dim):
    return (<fn_squeeze>resolve(&OPS[OP_SQUEEZE], self.keys))(self, dim)

ctypedef TensorBase (*fn_unsqueeze)(TensorBase, int64_t)
cdef inline TensorBase op_unsqueeze(TensorBase self, int64_t dim):
    return (<fn_unsqueeze>resolve(&OPS[OP_UNSQUEEZE], self.keys))(self, dim)

ctypedef TensorBase (*fn_select)(TensorBase, int64_t, int64_t)
cdef inline TensorBase op_select(TensorBase self, int64_t dim, int64_t index):
    return (<fn_select>resolve(&OPS[OP_SELECT], self.keys))(self, dim, index)

ctypedef TensorBase (*fn_slice)(TensorBase, int64_t, int64_t, int64_t, int64_t)
cdef inline TensorBase op_slice(TensorBase self, int64_t dim, int64_t start, int64_t end, int64_t step):
    return (<fn_slice>resolve(&OPS[OP_SLICE], self.keys))(self, dim, start, end, step)

ctypedef TensorBase (*fn_narrow)(TensorBase, int64_t, int64_t, int64_t)
cdef inline TensorBase op_narrow(TensorBase self, int64_t dim, int64_t start, int64_t length):
    return (<fn_narrow>resolve(&OPS[OP_NARROW], self.keys))(self, dim, start, length)

ctypedef TensorBase (*fn_diagonal)(TensorBase, int64_t, int64_t, int64_t)
cdef inline TensorBase op_diagonal(TensorBase self, int64_t offset, int64_t dim1, int64_t dim2):
    return (<fn_diagonal>resolve(&OPS[OP_DIAGONAL], self.keys))(self, offset, dim1, dim2)

ctypedef TensorBase (*fn_unfold)(TensorBase, int64_t, int64_t, int64_t)
cdef inline TensorBase op_unfold(TensorBase self, int64_t dimension, int64_t size, int64_t step):
    return (<fn_unfold>resolve(&OPS[OP_UNFOLD], self.keys))(self, dimension, size, step)

ctypedef object (*fn_split)(TensorBase, int64_t, int64_t)
cdef inline object op_split(TensorBase self, int64_t split_size, int64_t dim):
    return (<fn_split>resolve(&OPS[OP_SPLIT], self.keys))(self, split_size, dim)

ctypedef object (*fn_split_with_sizes)(TensorBase, const Dims*, int64_t)
cdef inline object op_split_with_sizes(TensorBase self, const Dims* split_sizes, int64_t dim):
    return (<fn_split_with_sizes>resolve(&OPS[OP_SPLIT_WITH_SIZES], self.keys))(self, split_sizes, dim)

ctypedef object (*fn_unbind)(TensorBase, int64_t)
cdef inline object op_unbind(TensorBase self, int64_t dim):
    return (<fn_unbind>resolve(&OPS[OP_UNBIND], self.keys))(self, dim)

ctypedef TensorBase (*fn_view_as_real)(TensorBase)
cdef inline TensorBase op_view_as_real(TensorBase self):
    return (<fn_view_as_real>resolve(&OPS[OP_VIEW_AS_REAL], self.keys))(self)

ctypedef TensorBase (*fn_view_as_complex)(TensorBase)
cdef inline TensorBase op_view_as_complex(TensorBase self):
    return (<fn_view_as_complex>resolve(&OPS[OP_VIEW_AS_COMPLEX], self.keys))(self)
