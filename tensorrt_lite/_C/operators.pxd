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
    OP_VIEW = 9
    OP_ALIAS = 10
    OP_AS_STRIDED = 11
    OP_EXPAND = 12
    OP_PERMUTE = 13
    OP_TRANSPOSE = 14
    OP_T = 15
    OP_SQUEEZE = 16
    OP_UNSQUEEZE = 17
    OP_SELECT = 18
    OP_SLICE = 19
    OP_NARROW = 20
    OP_DIAGONAL = 21
    OP_UNFOLD = 22
    OP_SPLIT = 23
    OP_SPLIT_WITH_SIZES = 24
    OP_UNBIND = 25
    OP_VIEW_AS_REAL = 26
    OP_VIEW_AS_COMPLEX = 27

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
