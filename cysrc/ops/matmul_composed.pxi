# Operators composed of mm, bmm, mv and dot; they record through those, so that they need no derivatives of their own.

cdef object overridden(object function, tuple tensors, tuple args, dict kwargs):
    """NotImplemented, or what a tensor subclass's __torch_function__ made of the call."""
    if tls().function_modes:
        return call_torch_function(function, args, kwargs)
    for t in tensors:
        if t is not None and not is_plain(t) and has_function(t):
            return call_torch_function(function, args, kwargs)
    return NotImplemented


cdef object into(str name, object result, object out):
    """`result` itself, or copied into `out`."""
    cdef TensorBase r = <TensorBase?>result, o
    if out is None:
        return result
    check_out(out, name)
    if r.requires_grad and grad_mode():
        refuse_out(name)
    o = <TensorBase>out
    if o.dtype != r.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {_cpp_name(r.dtype)}, but got {_cpp_name(o.dtype)} instead ({name})")
    prepare_out(name, o, r.ndim, r.sizes, r.dtype, OUT)
    if o.device_type != DEV_META:
        copy_elements(o, r)
    bump_version(o)
    return out


cdef object shaped(TensorBase t, const Dims* d):
    """view where strides allow it without a look, otherwise reshape."""
    if t.contiguous:
        return op_view(t, d)
    return _ops.reshape(t, dims_tuple(d))


cdef object batched_matmul(TensorBase a, TensorBase b):
    """matmul of at least 2-dimensional tensors with broadcast batch dimensions."""
    cdef Dims full, da, db, flat
    cdef int i, n = max(a.ndim, b.ndim)
    cdef int64_t x, y, batch = 1
    full.n = n
    da.n = db.n = n
    for i in range(n - 2):
        x = a.sizes[i - n + a.ndim] if i >= n - a.ndim else 1
        y = b.sizes[i - n + b.ndim] if i >= n - b.ndim else 1
        if x != y and x != 1 and y != 1:
            raise RuntimeError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}")
        full.v[i] = da.v[i] = db.v[i] = y if x == 1 else x
        batch *= full.v[i]
    da.v[n - 2] = a.sizes[a.ndim - 2]
    da.v[n - 1] = a.sizes[a.ndim - 1]
    db.v[n - 2] = b.sizes[b.ndim - 2]
    db.v[n - 1] = b.sizes[b.ndim - 1]
    full.v[n - 2] = da.v[n - 2]
    full.v[n - 1] = db.v[n - 1]
    if da.v[n - 1] != db.v[n - 2]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {da.v[n - 1]}] but got: [{batch}, {db.v[n - 2]}].")
    a = fold_batch(a, &da, batch)
    b = fold_batch(b, &db, batch)
    r = op_bmm(a, b, None, FRESH)
    return r if n == 3 else op_view(r, &full)


cdef TensorBase fold_batch(TensorBase t, const Dims* d, int64_t batch):
    """(*d) expanded and folded to three dimensions."""
    cdef Dims flat
    cdef int i
    cdef bint same = t.ndim == d.n
    for i in range(d.n):
        if same and t.sizes[i] != d.v[i]:
            same = False
    if not same:
        t = op_expand(t, d)
    if d.n == 3:
        return t
    flat.n = 3
    flat.v[0] = batch
    flat.v[1] = d.v[d.n - 2]
    flat.v[2] = d.v[d.n - 1]
    return <TensorBase?>shaped(t, &flat)


cdef TensorBase matmul_tensors(TensorBase a, TensorBase b):
    cdef Dims d
    cdef int i
    cdef object r
    if a.ndim == 2:
        if b.ndim == 2:
            return op_mm(a, b, None, FRESH)
        if b.ndim == 1:
            return op_mv(a, b, None, FRESH)
    if a.ndim == 1 and b.ndim == 1:
        return op_dot(a, b, None, FRESH)
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.ndim == 1 and b.ndim == 2:
        if a.sizes[0] != b.sizes[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied (1x{a.sizes[0]} and {b.sizes[0]}x{b.sizes[1]})")
        return op_mv(op_t(b), a, None, FRESH)
    if b.ndim <= 2 and a.numel > 0:                      # fold the batch of the first into its rows
        if a.sizes[a.ndim - 1] != b.sizes[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.numel // a.sizes[a.ndim - 1]}x{a.sizes[a.ndim - 1]} and "
                               f"{b.sizes[0]}x{b.sizes[1] if b.ndim == 2 else 1})")
        d.n = 2
        d.v[1] = a.sizes[a.ndim - 1]
        d.v[0] = a.numel // d.v[1]
        folded = <TensorBase?>shaped(a, &d)
        d.n = a.ndim - (1 if b.ndim == 1 else 0)
        for i in range(a.ndim - 1):
            d.v[i] = a.sizes[i]
        if b.ndim == 1:
            return op_view(op_mv(folded, b, None, FRESH), &d)
        d.v[d.n - 1] = b.sizes[1]
        return op_view(op_mm(folded, b, None, FRESH), &d)
    if a.ndim == 1:
        r = batched_matmul(<TensorBase?>_ops.unsqueeze(a, 0), b)
        return <TensorBase?>_ops.squeeze(r, -2)
    if b.ndim == 1:
        r = batched_matmul(a, <TensorBase?>_ops.unsqueeze(b, -1))
        return <TensorBase?>_ops.squeeze(r, -1)
    return <TensorBase?>batched_matmul(a, b)


def matmul(input, other, *, out=None):
    """The matrix product of the last two dimensions, batch dimensions broadcast; vectors as a row or a column."""
    cdef TensorBase a, b
    if not is_plain(input) or not is_plain(other) or tls().function_modes:
        r = overridden(matmul, (input, other), (input, other), {} if out is None else {"out": out})
        if r is not NotImplemented:
            return r
    a = <TensorBase>input if isinstance(input, TensorBase) else as_tensor_arg(input, "matmul", "input")
    b = <TensorBase>other if isinstance(other, TensorBase) else as_tensor_arg(other, "matmul", "other")
    if out is None:
        return matmul_tensors(a, b)
    if a.ndim == 2 and b.ndim == 2:
        return _ops.mm(a, b, out=out)
    return into("matmul", matmul_tensors(a, b), out)


def matmul_symbol(self, other):
    """self @ other."""
    if not isinstance(self, TensorBase) or not isinstance(other, TensorBase):
        if has_function(other):
            return matmul(self, other)
        return NotImplemented
    return matmul(self, other)


def rmatmul_symbol(self, other):
    return matmul_symbol(other, self)
