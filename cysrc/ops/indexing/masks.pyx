"""Masks and positions of non-zeros: masked_fill, masked_select, masked_scatter, nonzero."""
from libc.stdint cimport int64_t
from cpython.object cimport PyObject
from tensorrt_lite._C.autograd.node cimport check_inplace, ops_namespace
from tensorrt_lite._C.core.args cimport as_tensor_arg, is_number, to_scalar
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport FRESH, INPLACE, OPS, OUT, attach, intercepted, resolve
from tensorrt_lite._C.core.dtype cimport BOOL, CAT_COMPLEX, I64, Scalar, category, check_number, dtype_of, has_loops
from tensorrt_lite._C.core.iterator cimport broadcast_shapes, cast_to, check_no_overlap, contiguous_of, unrepeated
from tensorrt_lite._C.core.tensor cimport MAX_DIMS, TensorBase, bump_version, empty_like_tensor, empty_tensor, has_internal_overlap, make_view, memory_overlap, new_tensor, place_of, set_dtype, set_geometry, set_storage, shape_text
from tensorrt_lite._C.core.text cimport dtype_text, sizes_text
from tensorrt_lite._C.operators cimport OP_NONZERO, op_masked_fill, op_nonzero
from tensorrt_lite._C.steps.indexing cimport PUT_SET, RowArgs
from tensorrt_lite._C.ops.indexing.rows cimport (
    begin_write, beside, cast_value, check_apart, clone_of, finish_write, flat_offsets, flat_rows, one_dimensional, scatter_to, span_of, take_flat, value_beside, warn_expanded)
from tensorrt_lite._C.ops.support cimport check_out, finish_inplace
from tensorrt_lite._C.steps.indexing cimport run_masked_fill, run_masked_scatter, run_nonzero, run_unravel, set_masked_scatter



cdef int broadcast_pair(str name, TensorBase a, TensorBase b, int64_t* shape) except -1:
    cdef PyObject* p[2]
    p[0] = <PyObject*>a
    p[1] = <PyObject*>b
    return broadcast_shapes(name, 2, p, shape)


cdef TensorBase expanded(TensorBase t, int ndim, const int64_t* shape):
    """A view of `t` broadcast to a shape that it is known to broadcast to."""
    cdef int64_t strides[MAX_DIMS]
    cdef int k, j
    for k in range(ndim):
        j = k - (ndim - t.ndim)
        strides[k] = t.strides[j] if j >= 0 and t.sizes[j] == shape[k] and t.sizes[j] != 1 else 0
    return make_view(t, ndim, shape, strides, t.offset)


cdef int same_shape_as(TensorBase t, int ndim, const int64_t* shape) noexcept:
    cdef int k
    if t.ndim != ndim:
        return 0
    for k in range(ndim):
        if t.sizes[k] != shape[k]:
            return 0
    return 1


cdef TensorBase fill_repeated(TensorBase self, object mask, TensorBase value):
    """masked_fill_ of an expanded tensor: an element is written where the mask is true for any of its places."""
    cdef TensorBase once = unrepeated(self)
    cdef int k
    for k in range(self.ndim):
        if once.sizes[k] != self.sizes[k]:
            mask = _ops.any(mask, k, True)
    if once.numel:
        run_masked_fill(self.device_type, once, expanded(<TensorBase>mask, once.ndim, once.sizes), value, once)
    return self


cdef TensorBase masked_fill_kernel(TensorBase self, TensorBase mask, TensorBase value, TensorBase out, int mode):
    cdef int64_t shape[MAX_DIMS]
    cdef TensorBase r, v
    cdef int ndim
    if mask.dtype != BOOL:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {dtype_of(mask.dtype).name}")
    if value.ndim:
        raise RuntimeError(f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
    v = beside(cast_value(value, self.dtype), self)
    ndim = broadcast_pair("masked_fill", self, mask, shape) if mode == INPLACE else broadcast_pair("masked_fill", mask, self, shape)
    if mode == INPLACE:
        if not same_shape_as(self, ndim, shape):
            raise RuntimeError(f"output with shape {shape_text(self)} doesn't match the broadcast shape {sizes_text(ndim, shape)} (masked_fill_)")
        warn_expanded("masked_fill_", self, "tensor[mask] = scalar")
        check_no_overlap("masked_fill_", self, mask, True)
        r = self
        if has_internal_overlap(self):
            return fill_repeated(self, expanded(mask, ndim, shape), v)
    else:
        r = empty_tensor(ndim, shape, self.dtype, place_of(self))
    if r.numel:
        run_masked_fill(r.device_type, expanded(self, ndim, shape), expanded(mask, ndim, shape), v, r)
    return r


cdef TensorBase fill_value(TensorBase self, object value):
    cdef Scalar s
    if isinstance(value, TensorBase):
        return beside(<TensorBase>value, self)
    if not is_number(value):
        raise TypeError(f"masked_fill(): argument 'value' must be Number or Tensor, not {type(value).__name__}")
    to_scalar(value, &s)
    check_number(&s, self.dtype)
    return value_beside(self, &s)


def masked_fill(input, mask, value):
    """A copy of input with value where mask is true. mask: bool, broadcast with input; value: a number or 0-dimensional tensor."""
    cdef TensorBase x, m
    x = as_tensor_arg(input, "masked_fill", "input")
    m = as_tensor_arg(mask, "masked_fill", "mask")
    return op_masked_fill(x, m, fill_value(x, value), None, FRESH)


def masked_fill_(TensorBase self not None, mask, value):
    """masked_fill in place."""
    cdef TensorBase m = as_tensor_arg(mask, "masked_fill_", "mask"), v = fill_value(self, value)
    check_inplace(self, "masked_fill_")
    return finish_inplace(op_masked_fill(self, m, v, self, INPLACE), self.keys | v.keys)


cdef object masked_zero(object grad, object mask):
    return grad.masked_fill(mask, 0)


cdef object masked_part(object grad, object mask):
    """The gradient where the mask is true, zero elsewhere."""
    return grad.masked_fill(_ops.logical_not(mask), 0)


# ---- positions ------------------------------------------------------------------------------------------------------

cdef TensorBase flat_nonzero(TensorBase t):
    """Row-major positions of the non-zero elements, int64."""
    return run_nonzero(t.device_type, contiguous_of(t), 1)


cdef list coordinates_of(TensorBase t):
    """One int64 vector per dimension: the coordinates of the non-zero elements."""
    cdef TensorBase r
    cdef int64_t stride = 1
    cdef int k
    if intercepted(t.keys):
        return list(_ops.unbind(op_nonzero(t, None, FRESH), 1))
    resolve(&OPS[OP_NONZERO], t.keys)              # raises where there is no kernel
    r = coordinates(t if has_loops(t.dtype) else cast_to(t, BOOL), False)
    return [make_view(r, 1, &r.sizes[1], &stride, r.offset + k * r.sizes[1]) for k in range(t.ndim)]


cdef TensorBase coordinates(TensorBase t, bint rows):
    """The coordinates of the non-zero elements, (n, dimensions) where `rows`, else (dimensions, n): int64. On the CPU they replace the positions in their memory."""
    cdef TensorBase flat = run_nonzero(t.device_type, contiguous_of(t), max(t.ndim, 1)), r
    cdef int64_t sizes[2]
    cdef int64_t strides[2]
    sizes[0], sizes[1] = flat.numel if rows else t.ndim, t.ndim if rows else flat.numel
    strides[0], strides[1] = max(sizes[1], <int64_t>1), 1
    if t.ndim == 1 or flat.offset:
        r = new_tensor()               # over the same memory, and no view of `flat`, which nobody else sees
        set_storage(r, flat.storage)
        set_dtype(r, I64)
        set_geometry(r, 2, sizes, strides)
    else:
        r = empty_tensor(2, sizes, I64, place_of(t))
    if t.ndim != 1:
        run_unravel(t.device_type, flat, t.ndim, t.sizes, r, t.ndim if rows else 1, 1 if rows else flat.numel)
    return r


cdef TensorBase nonzero_kernel(TensorBase self, TensorBase out, int mode):
    cdef TensorBase r = coordinates(self, True)
    if mode == OUT and (<TensorBase>out).dtype != I64:
        raise RuntimeError(f"nonzero: Expected out tensor to have scalar type Long but got scalar type {dtype_text(out.dtype)}")
    return finish_write("nonzero", r, out, mode)


def nonzero(TensorBase input not None, *, out=None, as_tuple=False):
    """The coordinates of the non-zero elements: (n, input.dim()), or with as_tuple one vector (n) per dimension."""
    if as_tuple:
        if out is not None:
            check_out(out, "nonzero")
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return tuple(coordinates_of(input if input.ndim else one_dimensional(input)))
    if out is None:
        return op_nonzero(input, None, FRESH)
    check_out(out, "nonzero")
    r = op_nonzero(input, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return r


def argwhere(input):
    """The coordinates of the non-zero elements, (n, input.dim())."""
    return nonzero(input)


cdef TensorBase masked_select_kernel(TensorBase self, TensorBase mask, TensorBase out, int mode):
    cdef int64_t shape[MAX_DIMS]
    cdef int ndim
    cdef TensorBase flat, x, r
    if mask.dtype != BOOL:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if mode == OUT and out.dtype != self.dtype:
        raise RuntimeError(f"masked_select(): self and result must have the same scalar type")
    check_apart("masked_select", out, mode, self, mask)
    ndim = broadcast_pair("masked_select", mask, self, shape)
    flat = flat_nonzero(expanded(mask, ndim, shape))
    x = contiguous_of(expanded(self, ndim, shape))
    r = empty_tensor(1, &flat.numel, self.dtype, place_of(self))
    take_flat(x, flat, r)
    return finish_write("masked_select", r, out, mode)


cdef object masked_select_backward(object grad, object shape, object mask):
    cdef TensorBase m = mask
    cdef list full = []
    cdef int n = max(len(shape), m.ndim), k
    for k in range(n):
        a = shape[k - (n - len(shape))] if k >= n - len(shape) else 1
        b = m.sizes[k - (n - m.ndim)] if k >= n - m.ndim else 1
        full.append(b if a == 1 else a)
    return grad.new_zeros(full).masked_scatter(mask, grad).sum_to_size(shape)


cdef TensorBase masked_scatter_kernel(TensorBase self, TensorBase mask, TensorBase source, TensorBase out, int mode):
    cdef int64_t shape[MAX_DIMS]
    cdef int ndim
    cdef TensorBase r
    if self.dtype != source.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got {dtype_text(self.dtype)} and {dtype_text(source.dtype)}")
    if mask.dtype != BOOL:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {dtype_of(mask.dtype).name}")
    ndim = broadcast_pair("masked_scatter", mask, self, shape)
    if mode == INPLACE and not same_shape_as(self, ndim, shape):
        raise RuntimeError(f"output with shape {shape_text(self)} doesn't match the broadcast shape {sizes_text(ndim, shape)} (masked_scatter_)")
    r = begin_write("masked_scatter_", self if mode == INPLACE else expanded(self, ndim, shape), out, mode)
    run_masked_scatter(self.device_type, r, expanded(mask, ndim, shape), source)
    return r


cdef int scatter_by_mask(TensorBase r, TensorBase mask, TensorBase source) except -1:
    """The step of every device that has those for positions and rows."""
    cdef TensorBase flat = flat_nonzero(mask), offsets, s
    cdef RowArgs rows
    if flat.numel > source.numel:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    s = clone_of(source) if not source.contiguous or memory_overlap(source, r) else source
    offsets = flat_offsets(flat, r)
    flat_rows(&rows, r, s, offsets)
    return scatter_to(&rows, span_of(r) if r.numel else 0, r, s, offsets, PUT_SET)


set_masked_scatter(DEV_CPU, scatter_by_mask)
set_masked_scatter(DEV_CUDA, scatter_by_mask)
