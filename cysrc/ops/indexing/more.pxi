# Compositions over the indexing operators, and searching: their gradients follow from the parts.

def take_along_dim(input, indices, dim=None, *, out=None):
    """input's elements along dim at indices (from the end where negative), broadcast in the other dimensions; over the flat input without dim."""
    cdef TensorBase x = as_tensor_arg(input, "take_along_dim", "input"), i = as_tensor_arg(indices, "take_along_dim", "indices")
    cdef int d, k
    if i.dtype != I64 and i.dtype != I32:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {dtype_text(i.dtype)}")
    if dim is None:
        return _ops.gather(input.reshape(-1), 0, indices.reshape(-1), out=out)
    if x.requires_grad and tls().grad_mode:
        # the gradient reads a copy: the indices may be written to, as PyTorch's may
        indices = indices.clone()
    if x.ndim != i.ndim:
        raise RuntimeError(f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {x.ndim} dimensions for input, and {i.ndim} dimensions for indices")
    d = wrap_dim(parse_int(dim, "take_along_dim", "dim"), x.ndim)
    shape_x = list(shape_of(x))
    shape_i = list(shape_of(i))
    for k in range(x.ndim):
        if k == d:
            continue
        if shape_x[k] != shape_i[k] and shape_x[k] != 1 and shape_i[k] != 1:
            raise RuntimeError(f"The size of tensor a ({shape_x[k]}) must match the size of tensor b ({shape_i[k]}) at non-singleton dimension {k} (take_along_dim)")
        shape_x[k] = shape_i[k] = shape_i[k] if shape_x[k] == 1 else shape_x[k]
    if i.device_type != DEV_CPU or i.numel and extremes(i)[0] < 0:
        indices = _ops.where(_ops.lt(indices, 0), _ops.add(indices, shape_x[d]), indices)
    return _ops.gather(input.expand(shape_x), d, indices.expand(shape_i), out=out)


def one_hot(tensor, num_classes=-1):
    """Class numbers (*) as rows of zeros with a one, (*, num_classes), int64."""
    cdef TensorBase t = as_tensor_arg(tensor, "one_hot", "tensor"), x, r
    cdef int64_t classes = parse_int(num_classes, "one_hot", "num_classes"), low, high
    cdef int64_t sizes[MAX_DIMS]
    cdef OneHotArgs a
    cdef int k
    if t.dtype != I64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor.")
    if classes == 0 or classes < -1:
        raise RuntimeError("num_classes should be positive" if t.numel else "Can not infer total number of classes from empty tensor.")
    if t.numel == 0:
        if classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return _ops.empty((*shape_of(t), classes), dtype=dtype_of(I64), device=tensor.device)
    check_device_data(t, "one_hot")
    if t.ndim == MAX_DIMS:
        raise RuntimeError(f"one_hot: a tensor has at most {MAX_DIMS} dimensions")
    if t.device_type != DEV_CUDA and (is_large(t) or t.numel * <double>classes >= HELD_NUMEL or classes == -1):
        t = held(t)
    x = index64(t)
    if classes == -1:
        low, high = extremes(x)
        if low < 0 or high == 0x7FFFFFFFFFFFFFFF:
            raise RuntimeError("Class values must be non-negative." if low < 0 else "one_hot: the result is too large")
        classes = high + 1
    for k in range(t.ndim):
        sizes[k] = t.sizes[k]
    sizes[t.ndim] = classes
    if t.device_type == DEV_CUDA:
        # checked as it is written
        return _ops.zeros((*shape_of(t), classes), dtype=dtype_of(I64), device=tensor.device).scatter_(-1, tensor.unsqueeze(-1), 1)
    r = empty_tensor(t.ndim + 1, sizes, I64, DEV_CPU)
    a.index = <const int64_t*>data_of(x)
    a.out = <int64_t*>data_of(r)
    a.classes = classes
    a.bad = 0
    run_task(one_hot_task, &a, t.numel, r.numel, GRAIN // 2 // classes, x, r, r)
    if a.bad:
        low, high = extremes(x)
        raise RuntimeError("Class values must be non-negative." if low < 0 else "Class values must be smaller than num_classes.")
    return r


cdef tuple extremes(TensorBase t):
    """Smallest and largest element of a non-empty integer tensor."""
    cdef TensorBase x = index64(t if t.device_type == DEV_CPU else <TensorBase>(<object>t).cpu())
    cdef const int64_t* p = <const int64_t*>data_of(x)
    cdef int64_t low = p[0], high = p[0], i
    for i in range(x.numel):
        low = min(low, p[i])
        high = max(high, p[i])
    return low, high


def nonzero_static(input, *, size, fill_value=-1, out=None):
    """The first `size` rows of nonzero(input), with rows of fill_value when there are fewer."""
    cdef TensorBase x = as_tensor_arg(input, "nonzero_static", "input")
    cdef int64_t n = parse_int(size, "nonzero_static", "size")
    if n < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, but got {n}")
    r = _ops.full((n, x.ndim), fill_value, dtype=dtype_of(I64), device=input.device)
    if x.device_type != DEV_META:
        found = _ops.nonzero(input)
        count = min(n, (<TensorBase>found).sizes[0])
        r.narrow(0, 0, count).copy_(found.narrow(0, 0, count))
    if out is None:
        return r
    check_out(out, "nonzero_static")
    check_out_type("nonzero_static", <TensorBase>out, I64)
    finish_write("nonzero_static", <TensorBase>r, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return out


def unravel_index(indices, shape):
    """Positions in a flattened array of the given shape as a tuple of one tensor a dimension."""
    cdef TensorBase i = as_tensor_arg(indices, "unravel_index", "indices")
    cdef int64_t total = 1
    if category[i.dtype] != CAT_INT:
        raise TypeError(f"expected 'indices' to be integer tensor, but got {dtype_of(i.dtype)}")
    sizes = [shape] if isinstance(shape, int) else list(shape)
    for s in sizes:
        if s < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
        total *= s
    if i.device_type != DEV_META and i.numel:
        low, high = extremes(i)
        if low < -total or high >= total:
            raise ValueError(f"unravel_index: indices from {low} to {high} are out of bounds for shape {tuple(sizes)}")
    indices = indices.long()
    found, rest = [], _ops.remainder(indices, total) if total else indices
    for s in reversed(sizes):
        found.append(_ops.remainder(rest, s) if s else rest)
        rest = _ops.floor_divide(rest, s) if s else rest
    return tuple(reversed(found))


def fill_diagonal_(self, fill_value, wrap=False):
    """Fill the diagonal in place; wrap: again below, with a row between, where a matrix is taller than wide."""
    cdef TensorBase t = as_tensor_arg(self, "fill_diagonal_", "self")
    cdef int64_t least, step = 0, k, high
    if t.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    for k in range(1, t.ndim):
        if t.ndim > 2 and t.sizes[k] != t.sizes[0]:
            raise RuntimeError("all dimensions of input must be of equal length")
    least = min([t.sizes[k] for k in range(t.ndim)])
    for k in range(t.ndim):
        step += t.strides[k]
    if least == 0:
        return self
    _ops.as_strided(self, (least,), (step,), t.offset).fill_(fill_value)
    if wrap and t.ndim == 2:
        high = t.sizes[0]
        for k in range(t.sizes[1] + 1, high, t.sizes[1] + 1):
            fill_diagonal_(self.narrow(0, k, high - k), fill_value)
    return self


@autocast_policy(cuda="float32")
def renorm(input, p, dim, maxnorm, *, out=None):
    """input with each slice along dim scaled down to a p-norm of at most maxnorm."""
    cdef TensorBase x = as_tensor_arg(input, "renorm", "input")
    cdef int d, k
    power, most = parse_double(p, "renorm", "p"), parse_double(maxnorm, "renorm", "maxnorm")
    if power <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if most < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {most}")
    if x.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {x.ndim} dimensions")
    if category[x.dtype] < CAT_FLOAT:
        raise RuntimeError(f"renorm: expected a floating point or complex tensor, got {dtype_text(x.dtype)}")
    d = wrap_dim(parse_int(dim, "renorm", "dim"), x.ndim)
    if out is not None:
        check_out(out, "renorm")
        check_out_type("renorm", <TensorBase>out, x.dtype)
    norms = _ops.linalg_vector_norm(input, power, [k for k in range(x.ndim) if k != d], True)
    factor = _ops.where(norms > most, most / (norms + 1e-7), _ops.ones_like(norms))
    return _ops.mul(input, factor, out=out)


def renorm_(self, p, dim, maxnorm):
    """renorm in place."""
    as_tensor_arg(self, "renorm_", "self")
    return self.copy_(renorm(self.clone(), p, dim, maxnorm))


# ---- scatter into views ---------------------------------------------------------------------------------------------

cdef object embedded(object input, object src, object view, str name):
    """`view` is a view of a copy of input; write src into it. Shapes must agree exactly."""
    cdef TensorBase s = src, v = view
    if s.ndim != v.ndim or not same_sizes(s, v):
        raise RuntimeError(f"expected src to have a size equal to the {name} of self. src size = {shape_text(s)}, {name} size = {shape_text(v)}")
    view.copy_(src)


def select_scatter(input, src, dim, index):
    """A copy of input with src written into input.select(dim, index)."""
    as_tensor_arg(input, "select_scatter", "input")
    as_tensor_arg(src, "select_scatter", "src")
    r = input.clone()
    embedded(input, src, r.select(dim, index), "slice")
    return r


def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """A copy of input with src written into input[..., start:end:step, ...]."""
    as_tensor_arg(input, "slice_scatter", "input")
    as_tensor_arg(src, "slice_scatter", "src")
    r = input.clone()
    cdef TensorBase t = r
    cdef int64_t low = 0 if start is None else start
    cdef int64_t high = 0x7fffffffffffffff if end is None else end
    embedded(input, src, op_slice(t, parse_int(dim, "slice_scatter", "dim"), low, high, parse_int(step, "slice_scatter", "step")), "slice")
    return r


def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """A copy of input with src written into its diagonal."""
    as_tensor_arg(input, "diagonal_scatter", "input")
    as_tensor_arg(src, "diagonal_scatter", "src")
    r = input.clone()
    embedded(input, src, r.diagonal(offset, dim1, dim2), "slice")
    return r


def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of input (contiguous) with src written into its as_strided view."""
    as_tensor_arg(input, "as_strided_scatter", "input")
    as_tensor_arg(src, "as_strided_scatter", "src")
    r = input.clone()
    embedded(input, src, r.as_strided(size, stride, storage_offset), "slice")
    return r


# ---- index_reduce ---------------------------------------------------------------------------------------------------

def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """A copy of input in which the slices of source are combined with those that index names: prod, mean, amin or amax."""
    cdef TensorBase x = as_tensor_arg(input, "index_reduce", "input"), i = as_tensor_arg(index, "index_reduce", "index"), s = as_tensor_arg(source, "index_reduce", "source")
    cdef int d = wrap_dim(parse_int(dim, "index_reduce", "dim"), x.ndim)
    if reduce not in ("prod", "mean", "amin", "amax"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    i = vector_index("index_reduce", i)
    check_source("index_reduce_", x, d, i, s, RuntimeError)
    shape = [1] * max(s.ndim, 1)
    shape[d] = i.numel
    whole = (<object>i).reshape(shape).expand(shape_of(one_dimensional(s)))
    if x.ndim == 0:
        whole = whole.reshape(shape_of(s))
    return _ops.scatter_reduce(input, d, whole, source, reduce, include_self=include_self, out=out)


def index_reduce_(self, dim, index, source, reduce, *, include_self=True):
    """index_reduce in place."""
    return self.copy_(index_reduce(self.clone(), dim, index, source, reduce, include_self=include_self))


# ---- search ---------------------------------------------------------------------------------------------------------

cdef TensorBase searchsorted_cpu(TensorBase sorted_sequence, TensorBase self, bint out_int32, bint right, object sorter, TensorBase out, int mode):
    cdef TensorBase s = contiguous_of(sorted_sequence), v = contiguous_of(self), r, order = s
    cdef SearchArgs a
    cdef int k
    cdef int64_t bad
    a.n = s.sizes[s.ndim - 1] if s.ndim else 1
    if s.ndim != 1:
        if v.ndim != s.ndim or s.ndim == 0:
            raise RuntimeError(f"torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor {shape_text(s)} and input value tensor {shape_text(v)}")
        for k in range(s.ndim - 1):
            if s.sizes[k] != v.sizes[k]:
                raise RuntimeError(f"torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor must match, but we got boundaries tensor {shape_text(s)} and input value tensor {shape_text(v)}")
    if s.dtype != v.dtype:
        raise RuntimeError(f"torch.searchsorted(): boundary tensor and input value tensor should have same dtype, but got boundary tensor dtype {dtype_text(s.dtype)} and input value tensor dtype {dtype_text(v.dtype)}")
    if category[s.dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"\"searchsorted_out_cpu\" not implemented for '{dtype_text(s.dtype)}'")
    r = empty_tensor(v.ndim, v.sizes, I32 if out_int32 else I64, place_of(v))
    if out_int32 and a.n > 0x7fffffff:
        raise RuntimeError(f"torch.searchsorted(): the size of boundaries' last dimension should be less than INT_MAX, but we got {a.n}")
    if mode == OUT and out.dtype != r.dtype:
        raise RuntimeError(f"torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype {dtype_text(out.dtype)} and out_int32 flag is {'True' if out_int32 else 'False'}")
    if v.device_type == DEV_META or v.numel == 0:
        return finish_write("searchsorted", r, out, mode)
    a.sorter = NULL
    if sorter is not None:
        order = <TensorBase?>sorter
        if place_of(order) != place_of(s):
            raise RuntimeError("torch.searchsorted(): Expected all tensors to be on the same device, but the sorter is not where the boundaries are")
        if not same_sizes(order, s):
            raise RuntimeError(f"torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor {shape_text(s)} and got sorter tensor {shape_text(order)}")
        if order.dtype != I64:
            raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {dtype_text(order.dtype)}")
        order = clone_of(order)  # the search believes what was checked here; another thread could change the sorter
        bad = first_bad(order, 0, a.n)
        if bad >= 0:
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        a.sorter = <const int64_t*>data_of(order)
    if ITEM_SIZE[s.dtype] < 4:
        # there are kernels for types of 4 and 8 bytes, which hold the others exactly
        s = cast_to(s, F32 if category[s.dtype] == CAT_FLOAT else I32)
        v = cast_to(v, s.dtype)
    a.sorted = data_of(s)
    a.values = data_of(v)
    a.out = data_of(r)
    a.count = v.sizes[v.ndim - 1] if v.ndim else 1
    a.row_step = 0 if s.ndim == 1 else a.n
    a.right = right
    a.out_int32 = out_int32
    a.dtype = s.dtype
    if v.device_type == DEV_CUDA:
        device_search(&a, v)
        return finish_write("searchsorted", r, out, mode)
    run_task(search_task, &a, v.numel, v.numel * 16, 8192, s, v, r)
    return finish_write("searchsorted", r, out, mode)


cdef object search(object boundaries, object values, bint out_int32, bint right, object sorter, object out, str name):
    cdef TensorBase s = as_tensor_arg(boundaries, name, "boundaries"), v
    if isinstance(values, TensorBase):
        v = <TensorBase>values
    else:
        if s.ndim != 1:
            raise RuntimeError(f"torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor dim({s.ndim}) and input value's dim(0) numel(1)")
        v = scalar_value(s, values, name)
    if out is None:
        return op_searchsorted(s, v, out_int32, right, sorter, None, FRESH)
    check_out(out, name)
    r = op_searchsorted(s, v, out_int32, right, sorter, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return r


cdef bint right_side(object right, object side) except -1:
    if side is None:
        return bool(right)
    if side != "left" and side != "right":
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError("torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True")
    return side == "right"


def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """Where each value of input belongs in the sorted rows of sorted_sequence (*, n): left (default) or right of equals."""
    return search(sorted_sequence, input, out_int32, right_side(right, side), sorter, out, "searchsorted")


def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """Which interval between sorted boundaries (n) each value lies in."""
    cdef TensorBase b = as_tensor_arg(boundaries, "bucketize", "boundaries")
    if b.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({b.ndim})")
    return search(boundaries, input, out_int32, right, None, out, "bucketize")


def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """Whether each of elements is among test_elements, as a bool tensor of its shape."""
    cdef TensorBase e, t
    if not isinstance(elements, TensorBase):
        elements = _ops.tensor(elements, device=test_elements.device if isinstance(test_elements, TensorBase) else None)
    if not isinstance(test_elements, TensorBase):
        test_elements = _ops.tensor(test_elements, dtype=elements.dtype if not isinstance(test_elements, float) else None, device=elements.device)
    flat = test_elements.reshape(-1)
    t = flat
    if t.numel == 0:
        r = _ops.zeros(shape_of(<TensorBase>elements), dtype=dtype_of(BOOL), device=elements.device)
        return deliver_result("isin", _ops.logical_not(r) if invert else r, out, True)
    r = None
    e = elements
    if t.numel <= 4:
        for k in range(t.numel):
            hit = _ops.eq(elements, flat[k])
            r = hit if r is None else _ops.logical_or(r, hit)
    else:
        ordered = _ops.sort(flat)[0].to(elements.dtype)
        at = searchsorted(ordered, elements).clamp(max=t.numel - 1)
        r = _ops.eq(ordered[at], elements)
    return deliver_result("isin", _ops.logical_not(r) if invert else r, out, True)
