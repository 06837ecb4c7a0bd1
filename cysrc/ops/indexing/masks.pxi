# Masks and positions of non-zeros: masked_fill, masked_select, masked_scatter, nonzero.

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


cdef TensorBase masked_fill_cpu(TensorBase self, TensorBase mask, TensorBase value, TensorBase out, int mode):
    cdef int64_t shape[MAX_DIMS]
    cdef MaskArgs a
    cdef TensorBase r, m, s, v
    cdef int ndim, k, n = 0
    cdef int64_t item = ITEM_SIZE[self.dtype]
    if mask.dtype != BOOL:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {dtype_of(mask.dtype).name}")
    if value.ndim:
        raise RuntimeError(f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s).")
    if category[value.dtype] == CAT_COMPLEX and category[self.dtype] != CAT_COMPLEX:
        raise RuntimeError(f"value cannot be converted to type {dtype_text(self.dtype)} without overflow")
    v = cast_to(value, self.dtype)
    ndim = broadcast_pair("masked_fill", self, mask, shape)
    if mode == INPLACE:
        if not same_shape_as(self, ndim, shape):
            raise RuntimeError(f"output with shape {shape_text(self)} doesn't match the broadcast shape {sizes_text(ndim, shape)} (masked_fill_)")
        check_internal_overlap("masked_fill", self)
        check_no_overlap("masked_fill_", self, mask, True)
        r = self
    elif same_shape_as(self, ndim, shape):
        r = empty_like_tensor(self, self.dtype)
    else:
        r = empty_tensor(ndim, shape, self.dtype, place_of(self))
    if r.device_type == DEV_META or r.numel == 0:
        return r
    if r.device_type == DEV_CUDA:
        copy_elements(r, <TensorBase>_ops.where(alias_of(mask), beside(v, r), alias_of(self)))
        return r
    s = expanded(self, ndim, shape)
    m = expanded(mask, ndim, shape)
    for k in range(ndim):
        if shape[k] == 1:
            continue
        a.size[n] = shape[k]
        a.d[n] = r.strides[k] * item
        a.s[n] = s.strides[k] * item
        a.m[n] = m.strides[k]
        if n > 0 and a.d[n - 1] == a.d[n] * a.size[n] and a.s[n - 1] == a.s[n] * a.size[n] and a.m[n - 1] == a.m[n] * a.size[n]:
            a.size[n - 1] *= a.size[n]
            a.d[n - 1] = a.d[n]
            a.s[n - 1] = a.s[n]
            a.m[n - 1] = a.m[n]
        else:
            n += 1
    if n == 0:
        n = 1
        a.size[0] = 1
        a.d[0] = a.s[0] = a.m[0] = 0
    a.nd = n
    a.dst = data_of(r)
    a.src = data_of(s)
    a.mask = data_of(m)
    a.item = <int>item
    memcpy(a.value, data_of(v), item)
    run_task(masked_fill_task, &a, r.numel, r.numel, GRAIN // 2, r, s, m)
    return r


cdef TensorBase fill_value(TensorBase self, object value):
    cdef Scalar s
    if isinstance(value, TensorBase):
        return beside(<TensorBase>value, self)
    if not is_number(value):
        raise TypeError(f"masked_fill(): argument 'value' must be Number or Tensor, not {type(value).__name__}")
    to_scalar(value, &s)
    if s.kind == 3 and category[self.dtype] != CAT_COMPLEX:
        raise RuntimeError(f"value cannot be converted to type {dtype_text(self.dtype)} without overflow")
    return number_beside(self, self.dtype, &s)


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
    cdef TensorBase x, r
    cdef int64_t n
    check_device_data(t, "nonzero")
    x = contiguous_of(t)
    if x.device_type == DEV_CUDA:
        return <TensorBase>device_nonzero(x)
    n = count_nonzero_in(data_of(x), x.dtype, x.numel)
    r = empty_tensor(1, &n, I64, DEV_CPU)
    write_nonzero(data_of(x), x.dtype, x.numel, n, <int64_t*>data_of(r))
    return r


cdef list coordinates_of(TensorBase t):
    """One int64 vector per dimension: the coordinates of the non-zero elements."""
    cdef TensorBase flat, r
    cdef int64_t sizes[2]
    cdef int64_t stride = 1
    cdef int k
    if intercepted(t.keys):
        return list(_ops.unbind(op_nonzero(t, None, FRESH), 1))
    resolve(&OPS[OP_NONZERO], t.keys)              # raises where there is no kernel
    flat = flat_nonzero(t)
    if t.ndim == 1:
        return [flat]
    sizes[0] = t.ndim
    sizes[1] = flat.numel
    r = empty_tensor(2, sizes, I64, place_of(t))
    if t.device_type == DEV_CUDA:
        device_unravel(flat, t.ndim, t.sizes, r, 1, flat.numel)
        return [make_view(r, 1, &flat.numel, &stride, k * flat.numel) for k in range(t.ndim)]
    unravel(<const int64_t*>data_of(flat), flat.numel, t.ndim, t.sizes, <int64_t*>data_of(r), 1, flat.numel)
    return [make_view(r, 1, &flat.numel, &stride, k * flat.numel) for k in range(t.ndim)]


cdef TensorBase nonzero_cpu(TensorBase self, TensorBase out, int mode):
    cdef TensorBase flat = flat_nonzero(self), r
    cdef int64_t sizes[2]
    sizes[0] = flat.numel
    sizes[1] = self.ndim
    r = empty_tensor(2, sizes, I64, place_of(self))
    if self.device_type == DEV_CUDA:
        device_unravel(flat, self.ndim, self.sizes, r, self.ndim, 1)
    else:
        unravel(<const int64_t*>data_of(flat), flat.numel, self.ndim, self.sizes, <int64_t*>data_of(r), self.ndim, 1)
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


cdef TensorBase masked_select_cpu(TensorBase self, TensorBase mask, TensorBase out, int mode):
    cdef int64_t shape[MAX_DIMS]
    cdef int ndim
    cdef TensorBase flat, x, r
    if mask.dtype != BOOL:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    if mode == OUT and out.dtype != self.dtype:
        raise RuntimeError(f"masked_select(): self and result must have the same scalar type")
    check_apart("masked_select", out, mode, self, mask)
    ndim = broadcast_pair("masked_select", self, mask, shape)
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


cdef TensorBase masked_scatter_cpu(TensorBase self, TensorBase mask, TensorBase source, TensorBase out, int mode):
    cdef int64_t shape[MAX_DIMS]
    cdef int ndim
    cdef TensorBase flat, r, s, offsets
    cdef RowArgs rows
    if self.dtype != source.dtype:
        raise RuntimeError(f"masked_scatter: expected self and source to have same dtypes but got {dtype_text(self.dtype)} and {dtype_text(source.dtype)}")
    if mask.dtype != BOOL:
        raise RuntimeError(f"masked_scatter_ only supports boolean masks, but got mask with dtype {dtype_of(mask.dtype).name}")
    ndim = broadcast_pair("masked_scatter", self, mask, shape)
    if mode == INPLACE and not same_shape_as(self, ndim, shape):
        raise RuntimeError(f"output with shape {shape_text(self)} doesn't match the broadcast shape {sizes_text(ndim, shape)} (masked_scatter_)")
    if self.device_type == DEV_META:
        return self if mode == INPLACE else empty_tensor(ndim, shape, self.dtype, DEV_META)
    flat = flat_nonzero(expanded(mask, ndim, shape))
    if flat.numel > source.numel:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    s = clone_of(source) if not source.contiguous or memory_overlap(source, self) else source
    r = begin_write("masked_scatter_", self if mode == INPLACE else expanded(self, ndim, shape), out, mode)
    offsets = flat_offsets(flat, r)
    flat_rows(&rows, r, s, offsets)
    run_scatter(&rows, 0, span_of(r) if r.numel else 0, r, s, offsets, PUT_SET)
    return r


cdef object masked_scatter_backward(object grad, object mask, object shape):
    cdef object g = grad.masked_select(mask)
    cdef int64_t n = 1
    for k in shape:
        n *= k
    if g.shape[0] < n:
        g = enlarged(g, (n,))
    return g.reshape(shape)
