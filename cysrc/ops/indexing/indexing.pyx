# Indexing: x[...] and x[...] = v in indexing_getitem.pxi, operators on rows and lines here and in indexing_masks.pxi.
# Every index is checked before anything is written; contributions to one element add up in the order of the indices.
from tensorrt_lite._C.autograd.autocast import policy as autocast_policy
include "kernels.pxi"
include "getitem.pxi"
include "masks.pxi"
include "more.pxi"


cdef TensorBase one_dimensional(TensorBase t):
    """`t`, or a view of a 0-dimensional tensor with one dimension (the same memory)."""
    cdef int64_t one = 1
    return make_view(t, 1, &one, &one, t.offset) if t.ndim == 0 else t


cdef TensorBase begin_write(str name, TensorBase self, TensorBase out, int mode):
    """What a writing operator changes: the tensor itself in place, otherwise a contiguous copy."""
    cdef TensorBase r
    if mode == INPLACE:
        check_internal_overlap(name, self)
        return self
    r = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    copy_elements(r, self)
    return r


cdef TensorBase finish_write(str name, TensorBase result, TensorBase out, int mode):
    """The result, or `out` with it. An `out` whose elements share memory is refused although resizing would part them, as in PyTorch."""
    if mode == OUT:
        check_internal_overlap(name, out)
    return write_to_out(name, result, out, mode, True)


cdef int check_apart(str name, TensorBase out, int mode, TensorBase a, TensorBase b) except -1:
    """Refuse an `out` that shares memory with what the operator reads."""
    if mode == OUT:
        check_no_overlap(name, out, a, False)
        check_no_overlap(name, out, b, False)
    return 0


cdef TensorBase vector_index(str name, TensorBase index):
    """A 0- or 1-dimensional integer index as contiguous int64."""
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector" + ("" if name == "index_select" else f", but got dim: {index.ndim} with type: {dtype_text(index.dtype)} and size: {shape_text(index)}"))
    if index.dtype != I64 and index.dtype != I32:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {dtype_text(index.dtype)}")
    return index64(index)


cdef TensorBase vector_offsets(str name, TensorBase index, int64_t size, int64_t stride, int dim, bint negative, object error):
    """Byte offsets of a checked index (contiguous int64); without `error`, IndexError in the words of index_select and embedding."""
    cdef bint outside
    cdef TensorBase offsets = offsets_along(name, index, size, stride, negative, &outside)
    cdef int64_t bad = first_bad(index, -size if negative else 0, size) if outside else -1
    if bad >= 0:
        if error is None:
            raise IndexError(f"index out of range in self ({name}: index {index_at(index, bad)} at position {bad}, dimension {dim} has size {size})")
        raise error(f"{name}(): index {index_at(index, bad)} is out of bounds for dimension {dim} with size {size}")
    return offsets


# ---- index_select, index_add, index_copy, index_fill ----------------------------------------------------------------

cdef TensorBase index_select_cpu(TensorBase self, int64_t dim, TensorBase index, TensorBase out, int mode):
    cdef int d = wrap_dim(dim, self.ndim), k
    cdef int64_t sizes[MAX_DIMS]
    cdef RowArgs r
    cdef TensorBase x = one_dimensional(self), result, offsets, i64 = vector_index("index_select", index)
    check_apart("index_select", out, mode, self, index)
    for k in range(x.ndim):
        sizes[k] = x.sizes[k]
    sizes[d] = i64.numel
    if self.ndim == 0 and i64.numel != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {i64.numel} value(s)")
    result = empty_tensor(self.ndim, sizes, self.dtype, place_of(self))
    if self.device_type == DEV_META:
        return finish_write("index_select", result, out, mode)
    offsets = vector_offsets("index_select", i64, x.sizes[d], x.strides[d] * ITEM_SIZE[x.dtype], d, False, None)
    dimension_rows(&r, x, one_dimensional(result), d)
    r.m = i64.numel
    r.offset = <const int64_t*>data_of(offsets)
    run_gather(&r, x, result, offsets)
    return finish_write("index_select", result, out, mode)


cdef int put_along(str name, TensorBase target, int d, TensorBase index, TensorBase source, int op, bint negative, object error) except -1:
    """target[.., index[i], ..] <op>= source[.., i, ..]; all indices are checked first."""
    cdef TensorBase t = one_dimensional(target), s = one_dimensional(source), offsets
    cdef RowArgs r
    if target.device_type == DEV_META:
        return 0
    offsets = vector_offsets(name, index, t.sizes[d], t.strides[d] * ITEM_SIZE[t.dtype], d, negative, error)
    if memory_overlap(t, s):
        s = one_dimensional(clone_of(source))
    dimension_rows(&r, t, s, d)
    r.m = index.numel
    r.offset = <const int64_t*>data_of(offsets)
    return run_scatter(&r, 0, t.sizes[d] * t.strides[d] * ITEM_SIZE[t.dtype] + 1, t, s, offsets, op)


cdef TensorBase clone_of(TensorBase t):
    cdef TensorBase r = empty_tensor(t.ndim, t.sizes, t.dtype, place_of(t))
    copy_elements(r, t)
    return r


cdef int check_source(str name, TensorBase self, int d, TensorBase index, TensorBase source, object error) except -1:
    """Source must look like self except along `d`, where it has an entry per index."""
    cdef TensorBase t = one_dimensional(self), s = one_dimensional(source)
    cdef int k
    if s.dtype != t.dtype:
        raise RuntimeError(f"{name}(): self and source expected to have the same dtype, but got (self) {dtype_text(t.dtype)} and (source) {dtype_text(s.dtype)}")
    if s.ndim != t.ndim and source.ndim != 0 and self.ndim != 0:
        raise error(f"{name}(): When source and destination are not scalars, their dimensionality must match. Source dimensionality ({source.ndim}), destination dimensionality ({self.ndim})")
    if (s.sizes[d] if d < s.ndim else 1) != index.numel:
        raise error(f"{name}(): Number of indices ({index.numel}) should be equal to source.size(dim): ({s.sizes[d] if d < s.ndim else 1}), for dim: {d}")
    if s.ndim != t.ndim:
        raise error(f"{name}(): Source/destination tensor must have same slice shapes. Destination slice shape: {shape_text(self)} at dimension {d} and source slice shape: {shape_text(source)} at dimension 0.")
    for k in range(t.ndim):
        if k != d and t.sizes[k] != s.sizes[k]:
            raise error(f"{name}(): Source/destination tensor must have same slice shapes. Destination slice shape: {shape_text(self)} at dimension {d} and source slice shape: {shape_text(source)} at dimension {d}.")
    return 0


cdef TensorBase index_add_cpu(TensorBase self, int64_t dim, TensorBase index, TensorBase source, const Scalar* alpha, TensorBase out, int mode):
    cdef int d = wrap_dim(dim, self.ndim)
    cdef TensorBase i64 = vector_index("index_add", index), r, s = source
    check_source("index_add_", self, d, i64, source, RuntimeError)
    if alpha != NULL and not (alpha.kind <= 1 and alpha.i == 1 or alpha.kind == 2 and alpha.d == 1):
        s = cast_to(<TensorBase>_ops.mul(alias_of(source), scalar_object(alpha)), source.dtype)
    if mode == INPLACE:
        check_no_overlap("index_add_", self, index, False)
        check_no_overlap("index_add_", self, source, False)
    r = begin_write("index_add", self, out, mode)
    put_along("index_add", r, d, i64, s, PUT_ADD, False, RuntimeError)
    return finish_write("index_add", r, out, mode)


cdef TensorBase index_copy_cpu(TensorBase self, int64_t dim, TensorBase index, TensorBase source, TensorBase out, int mode):
    cdef int d = wrap_dim(dim, self.ndim)
    cdef TensorBase i64, r
    if index.dtype != I64:
        raise IndexError(f"index_copy_(): Expected a long tensor for index, but got {dtype_text(index.dtype)}")
    i64 = vector_index("index_copy_", index)
    check_source("index_copy_", self, d, i64, source, IndexError)
    r = begin_write("index_copy", self, out, mode)
    put_along("index_copy_", r, d, i64, source, PUT_SET, True, IndexError)
    return finish_write("index_copy", r, out, mode)


cdef TensorBase scalar_value(TensorBase self, object value, str name):
    """A number or 0-dimensional tensor as a 0-dimensional tensor of self's type."""
    cdef Scalar s
    cdef TensorBase v
    if isinstance(value, TensorBase):
        v = <TensorBase>value
        if v.ndim:
            raise RuntimeError(f"{name} only supports a 0-dimensional value tensor, but got tensor with {v.ndim} dimension(s).")
        if category[v.dtype] == CAT_COMPLEX and category[self.dtype] != CAT_COMPLEX:
            raise RuntimeError(f"{name}(): Converting complex Scalar to non-complex type is not supported")
        return beside(cast_to(v, self.dtype), self)
    if not is_number(value):
        raise TypeError(f"{name}(): argument 'value' must be Number, not {type(value).__name__}")
    to_scalar(value, &s)
    if s.kind == 3 and category[self.dtype] != CAT_COMPLEX:
        raise RuntimeError(f"{name}(): Converting complex Scalar to non-complex type is not supported")
    return number_beside(self, self.dtype, &s)


cdef TensorBase index_fill_cpu(TensorBase self, int64_t dim, TensorBase index, object value, TensorBase out, int mode):
    cdef int d = wrap_dim(dim, self.ndim), k
    cdef TensorBase i64, r, t, v = scalar_value(self, value, "index_fill_")
    cdef int64_t zeros[MAX_DIMS]
    if index.dtype != I64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    i64 = vector_index("index_fill_", index)
    r = begin_write("index_fill", self, out, mode)
    t = one_dimensional(r)
    for k in range(t.ndim):
        zeros[k] = 0
    if r.device_type != DEV_META:
        put_along("index_fill", r, d, i64, make_view(v, t.ndim, t.sizes, zeros, v.offset), PUT_SET, True, IndexError)
    return r


def index_fill(TensorBase input not None, dim, TensorBase index not None, value):
    """A copy in which the slices named by index along dim hold a value (a number or a 0-dimensional tensor)."""
    if isinstance(value, TensorBase) and (<TensorBase>value).keys & K_DERIVATIVES:
        return fill_with_gradient(input.clone(), dim, index, value)
    return op_index_fill(input, parse_int(dim, "index_fill", "dim"), index, value, None, FRESH)


def index_fill_(TensorBase self not None, dim, TensorBase index not None, value):
    """index_fill in place."""
    check_inplace(self, "index_fill_")
    if isinstance(value, TensorBase) and (<TensorBase>value).keys & K_DERIVATIVES:
        return fill_with_gradient(self, dim, index, value)
    return finish_inplace(op_index_fill(self, parse_int(dim, "index_fill", "dim"), index, value, self, INPLACE), self.keys)


cdef object fill_with_gradient(object self, object dim, TensorBase index, object value):
    """The value's gradient needs a recorded write; a slice named twice counts once, as in a mask."""
    cdef TensorBase t = self
    cdef int d = wrap_dim(parse_int(dim, "index_fill", "dim"), t.ndim)
    if (<TensorBase>value).ndim:
        raise RuntimeError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {(<TensorBase>value).ndim} dimension(s).")
    mask = _ops.zeros(t.sizes[d] if t.ndim else 1, dtype=dtype_of(BOOL), device=self.device).index_fill_(0, index.reshape(-1), True)
    return self.masked_fill_(mask.reshape([-1 if k == d else 1 for k in range(t.ndim)]), value)


cdef object selected(object grad, int64_t dim, object index, object shape):
    """Gradient of a source whose slices went to the slices named by index."""
    if not grad.dim():
        return grad.reshape(shape)
    return grad.index_select(dim, index).reshape(shape)


cdef object index_select_backward(object grad, object shape, int64_t dim, object index):
    if not shape:
        return grad.reshape(())
    return grad.new_zeros(shape).index_add(dim, index.reshape(-1), grad)


# ---- gather and scatter ---------------------------------------------------------------------------------------------

cdef TensorBase line_index(str name, TensorBase index):
    if index.dtype == I64 or index.dtype == I32 or index.numel == 0:
        return index64(index)
    raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


cdef int check_lines(str name, TensorBase index, int64_t size, int d) except -1:
    cdef int64_t bad = -1 if index.device_type == DEV_CUDA else first_bad(contiguous_of(index), 0, size)
    if bad >= 0:
        raise RuntimeError(f"index {index_at(index, bad)} is out of bounds for dimension {d} with size {size} ({name})")
    return 0


cdef TensorBase gather_cpu(TensorBase self, int64_t dim, TensorBase index, bint sparse_grad, TensorBase out, int mode):
    cdef int d = wrap_dim(dim, self.ndim), k
    cdef TensorBase x = one_dimensional(self), i64 = line_index("gather", index), result
    check_apart("gather", out, mode, self, index)
    result = empty_tensor(index.ndim, index.sizes, self.dtype, place_of(self))
    if index.numel == 0:
        return finish_write("gather", result, out, mode)
    if mode == OUT and out.dtype == self.dtype and not same_sizes(out, index):
        # resized, it may come to lie over what is read
        x, i64 = held(x), held(i64)
        prepare_out("gather", out, index.ndim, index.sizes, self.dtype, mode)
        check_apart("gather", out, mode, self, index)
    i64 = one_dimensional(i64)
    if x.ndim != i64.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    for k in range(x.ndim):
        if k != d and i64.sizes[k] > x.sizes[k]:
            raise RuntimeError(f"Size does not match at dimension {k} expected index {shape_text(index)} to be no larger than self {shape_text(self)} apart from dimension {d}")
    if self.device_type != DEV_META:
        if run_lines("gather", x, one_dimensional(result), i64, d, PUT_SET, True, False, False):
            check_lines("gather", i64, x.sizes[d], d)
    return finish_write("gather", result, out, mode)


cdef enum:
    CHECK_ONLY = -1


cdef int put_lines(str name, TensorBase target, int64_t dim, TensorBase index, TensorBase src, int op, int mode) except -1:
    """target[.., index[i], ..] <op>= src[.., i, ..] elementwise over index's sizes; in place, the indices are checked first."""
    cdef int d = wrap_dim(dim, target.ndim), k
    cdef TensorBase t = one_dimensional(target), s = src, i64 = one_dimensional(line_index(name, index))
    cdef bint scalar = src.wrapped_number
    if index.numel == 0:
        return 0
    if src.dtype != target.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if i64.ndim != t.ndim:
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if not scalar:
        s = one_dimensional(src)
        if s.ndim != i64.ndim:
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for k in range(t.ndim):
        if k != d and i64.sizes[k] > t.sizes[k] or not scalar and i64.sizes[k] > s.sizes[k]:
            raise RuntimeError(f"Expected index {shape_text(index)} to be no larger than self {shape_text(target)} apart from dimension {d}"
                               + ("" if scalar else f" and to be no larger size than src {shape_text(src)}"))
    if target.device_type == DEV_META:
        return 0
    if mode == INPLACE or op == CHECK_ONLY:
        check_lines(name, i64, t.sizes[d], d)
    if mode == INPLACE:
        check_no_overlap(name, target, index, False)
        if not scalar:
            check_no_overlap(name, target, src, False)
    if op != CHECK_ONLY and run_lines(name, t, s, i64, d, op, False, scalar, False) and mode != INPLACE:
        check_lines(name, i64, t.sizes[d], d)
    return 0


cdef int reduction_code(object reduce) except -1:
    if reduce is None:
        return PUT_SET
    if reduce == "add":
        return PUT_ADD
    if reduce == "multiply":
        return PUT_MUL
    raise RuntimeError("reduce argument must be either add or multiply.")


cdef TensorBase scatter_cpu(TensorBase self, int64_t dim, TensorBase index, TensorBase src, object reduce, TensorBase out, int mode):
    cdef int op = reduction_code(reduce)
    cdef TensorBase r = begin_write("scatter", self, out, mode)
    put_lines("scatter", r, dim, index, src, op, mode)
    return finish_write("scatter", r, out, mode)


cdef TensorBase scatter_add_cpu(TensorBase self, int64_t dim, TensorBase index, TensorBase src, TensorBase out, int mode):
    cdef TensorBase r = begin_write("scatter_add", self, out, mode)
    put_lines("scatter", r, dim, index, src, PUT_ADD, mode)
    return finish_write("scatter_add", r, out, mode)


cdef TensorBase scatter_source(TensorBase self, object src, object value):
    cdef TensorBase v
    if src is None:
        src = value
    if isinstance(src, TensorBase):
        return <TensorBase>src
    v = scalar_value(self, src, "scatter")
    v.wrapped_number = 1
    return v


def scatter(TensorBase input not None, dim, TensorBase index not None, src=None, *, value=None, reduce=None, out=None):
    """A copy with src (or a number) written to the positions that index names along dim; reduce: "add" or "multiply"."""
    cdef TensorBase s
    s = scatter_source(input, src, value)
    if out is None:
        return op_scatter(input, parse_int(dim, "scatter", "dim"), index, s, reduce, None, FRESH)
    check_out(out, "scatter")
    r = op_scatter(input, parse_int(dim, "scatter", "dim"), index, s, reduce, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return r


def scatter_(TensorBase self not None, dim, TensorBase index not None, src=None, *, value=None, reduce=None):
    """scatter in place."""
    cdef TensorBase s = scatter_source(self, src, value)
    check_inplace(self, "scatter_")
    return finish_inplace(op_scatter(self, parse_int(dim, "scatter_", "dim"), index, s, reduce, self, INPLACE), self.keys | s.keys)


cdef object scatter_self_backward(object grad, int64_t dim, object index, object reduce):
    if reduce is None:
        return grad.scatter(dim, index, 0)
    if reduce == "add":
        return grad
    raise RuntimeError("scatter(): the derivative with reduce='multiply' is not defined; use scatter_reduce with 'prod'")


cdef object scatter_source_backward(object grad, int64_t dim, object index, object meta, object reduce):
    if reduce == "multiply":
        raise RuntimeError("scatter(): the derivative with reduce='multiply' is not defined; use scatter_reduce with 'prod'")
    return source_gradient(grad, dim, index, meta[0])


cdef object enlarged(object g, object shape):
    """`g` at the beginning of zeros of a larger shape."""
    if tuple(g.shape) == tuple(shape):
        return g
    r = g.new_zeros(shape)
    part = r
    for k in range(len(shape)):
        part = part.narrow(k, 0, g.shape[k])
    part.copy_(g)
    return r


cdef object source_gradient(object grad, int64_t dim, object index, object shape):
    if not shape and index.dim():
        return grad.gather(dim, index).reshape(shape)
    return enlarged(grad.gather(dim, index), shape)


# ---- scatter_reduce -------------------------------------------------------------------------------------------------

cdef dict reduction_names = {"sum": PUT_ADD, "mean": PUT_ADD, "prod": PUT_MUL, "amin": PUT_MIN, "amax": PUT_MAX}


cdef object neutral_value(TensorBase t, str reduce):
    """What a reduction that leaves self out starts from."""
    cdef int64_t top
    if reduce == "sum" or reduce == "mean":
        return 0
    if reduce == "prod":
        return 1
    if category[t.dtype] == CAT_FLOAT:
        return float("inf") if reduce == "amin" else float("-inf")
    if t.dtype == BOOL:
        return reduce == "amin"
    if t.dtype == U8:
        return 255 if reduce == "amin" else 0
    top = (<int64_t>1 << (8 * ITEM_SIZE[t.dtype] - 2)) - 1 + (<int64_t>1 << (8 * ITEM_SIZE[t.dtype] - 2))
    return top if reduce == "amin" else -top - 1


cdef TensorBase scatter_reduce_cpu(TensorBase self, int64_t dim, TensorBase index, TensorBase src, object reduce, bint include_self, TensorBase out, int mode):
    cdef TensorBase r, count, ones, start
    cdef Scalar one
    if reduce not in reduction_names:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    one.kind = 1
    one.i = 1
    one.d = 1
    one.im = 0
    r = begin_write("scatter_reduce", self, out, mode)
    if not include_self and index.numel:
        start = scalar_value(self, neutral_value(self, reduce), "scatter_reduce")
        start.wrapped_number = 1
        put_lines("scatter_reduce", r, dim, index, src, CHECK_ONLY, mode)
        put_lines("scatter_reduce", r, dim, index, start, PUT_SET, mode)
    put_lines("scatter_reduce", r, dim, index, src, reduction_names[reduce], mode)
    if reduce == "mean" and r.device_type != DEV_META:
        count = empty_tensor(r.ndim, r.sizes, r.dtype if category[r.dtype] >= CAT_FLOAT else I64, place_of(r))
        one.i = 1 if include_self else 0
        one.d = <double>one.i
        fill_elements(count, &one)
        one.i = 1
        one.d = 1
        ones = number_beside(count, count.dtype, &one)
        ones.wrapped_number = 1
        put_lines("scatter_reduce", count, dim, index, ones, PUT_ADD, FRESH)
        count = <TensorBase>_ops.masked_fill(count, _ops.eq(count, 0), 1)
        start = alias_of(r)
        copy_elements(r, <TensorBase>(_ops.div(start, count) if category[r.dtype] >= CAT_FLOAT else _ops.div(start, count, rounding_mode="floor")))
    return finish_write("scatter_reduce", r, out, mode)


cdef object scatter_reduce_backward(object grad, object self, int64_t dim, object index, object source, object reduce, bint include_self, object result, bint to_self):
    """Gradients of scatter_reduce: ties of amin and amax share, products leave their own factor out."""
    cdef object src = source, g, own
    if reduce == "sum":
        if to_self:
            return grad if include_self else grad.scatter(dim, index, 0)
        return source_gradient(grad, dim, index, source.shape)
    if tuple(source.shape) != tuple(index.shape) and index.dim():
        for k in range(index.dim()):
            src = src.narrow(k, 0, index.shape[k])
    if reduce == "mean":
        n = _ops.ones_like(grad) if include_self else _ops.zeros_like(grad)
        n = n.scatter_add(dim, index, _ops.ones_like(src))
        share = grad / n.masked_fill(n == 0, 1)
        own = share
        g = None if to_self else share.gather(dim, index)
    elif reduce == "prod":
        if to_self:
            kept = self.masked_fill(self == 0, 1)
            own = grad * kept.scatter_reduce(dim, index, src, "prod", include_self=include_self) / kept
        else:
            zero = src == 0
            zeros = _ops.zeros_like(self).scatter_add(dim, index, zero.to(self.dtype)).gather(dim, index)
            single = zero & (zeros == 1)
            others = self.scatter_reduce(dim, index, src.masked_fill(single, 1), "prod", include_self=include_self)
            g = _ops.where(single, (grad * others).gather(dim, index), (grad * result).gather(dim, index) / src.masked_fill(zero, 1))
    else:
        own_is = (self == result).to(grad.dtype)
        if not include_self:
            own_is = own_is.scatter(dim, index, 0)
        src_is = (src == result.gather(dim, index)).to(grad.dtype)
        share = grad / own_is.scatter_add(dim, index, src_is)
        own = own_is * share
        g = None if to_self else src_is * share.gather(dim, index)
    if to_self:
        return own if include_self else own.scatter(dim, index, 0)
    return enlarged(g, source.shape)


# ---- take and put ---------------------------------------------------------------------------------------------------

cdef TensorBase flat_offsets(TensorBase flat, TensorBase table):
    """Byte offsets of row-major positions (contiguous int64, may count from the end; IndexError) in a tensor of any strides."""
    cdef TensorBase offsets, positions, coordinates
    cdef int64_t sizes[2]
    cdef int k
    cdef int64_t item = ITEM_SIZE[table.dtype], one = 1
    cdef bint outside
    positions = offsets_along("take", flat, table.numel, item if table.contiguous else 1, True, &outside)
    if outside:
        check_flat(flat, table)
    if table.contiguous:
        return positions
    sizes[0] = table.ndim
    sizes[1] = flat.numel
    coordinates = empty_tensor(2, sizes, I64, place_of(flat))
    if flat.device_type == DEV_CUDA:
        device_unravel(positions, table.ndim, table.sizes, coordinates, 1, flat.numel)
        for k in range(table.ndim):
            device_offsets("take", positions, make_view(coordinates, 1, &flat.numel, &one, k * flat.numel), table.sizes[k], table.strides[k] * item, False, k > 0, NOT_SKIPPED)
        return positions
    unravel(<const int64_t*>data_of(positions), flat.numel, table.ndim, table.sizes, <int64_t*>data_of(coordinates), 1, flat.numel)
    offsets = positions
    memset(data_of(offsets), 0, flat.numel * 8)
    for k in range(table.ndim):
        byte_offsets(<int64_t*>data_of(offsets), <const int64_t*>data_of(coordinates) + k * flat.numel, flat.numel, table.sizes[k], 0, table.strides[k] * item, 1)
    return offsets


cdef TensorBase flat_view(TensorBase t):
    """A contiguous tensor's elements in one dimension."""
    cdef int64_t one = 1
    return make_view(t, 1, &t.numel, &one, t.offset)


cdef int take_flat(TensorBase table, TensorBase flat, TensorBase r) except -1:
    """r (contiguous) <- the elements at row-major positions, which are contiguous int64 and may count from the end."""
    cdef RowArgs rows
    cdef TensorBase offsets
    if flat.numel == 0:
        return 0
    if table.contiguous:
        if run_lines("take", flat_view(table), flat_view(r), flat_view(flat), 0, PUT_SET, True, False, True):
            check_flat(flat, table)
        return 0
    offsets = flat_offsets(flat, table)
    flat_rows(&rows, table, r, offsets)
    return run_gather(&rows, table, r, offsets)


cdef int flat_rows(RowArgs* r, TensorBase table, TensorBase dense, TensorBase offsets) except -1:
    r.n_outer = 0
    r.n_inner = 0
    r.m = offsets.numel
    r.offset = <const int64_t*>data_of(offsets)
    r.table = data_of(table)
    r.dense = data_of(dense)
    r.dense_step = ITEM_SIZE[dense.dtype]
    return 0


cdef int64_t span_of(TensorBase t) noexcept:
    """Bytes from the first element to the end of the last."""
    cdef int64_t last = 0
    cdef int k
    for k in range(t.ndim):
        last += (t.sizes[k] - 1) * t.strides[k]
    return (last + 1) * ITEM_SIZE[t.dtype]


cdef int check_flat(TensorBase index, TensorBase self) except -1:
    cdef int64_t bad = first_bad(index, -self.numel, self.numel)
    if bad >= 0:
        raise IndexError(f"out of range: tried to access index {index_at(index, bad)} on a tensor of {self.numel} elements.")
    return 0


cdef TensorBase take_cpu(TensorBase self, TensorBase index, TensorBase out, int mode):
    cdef TensorBase i64, r
    if index.dtype != I64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {dtype_text(index.dtype)}")
    if self.numel == 0 and index.numel != 0:
        raise IndexError("take(): tried to take from an empty tensor")
    check_apart("take", out, mode, self, index)
    i64 = index64(index)
    r = empty_tensor(index.ndim, index.sizes, self.dtype, place_of(self))
    if self.device_type != DEV_META:
        take_flat(self, i64, r)
    return finish_write("take", r, out, mode)


cdef TensorBase put_cpu(TensorBase self, TensorBase index, TensorBase source, bint accumulate, TensorBase out, int mode):
    cdef TensorBase i64, r, offsets, s
    cdef RowArgs rows
    if index.dtype != I64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {dtype_text(index.dtype)}")
    if self.dtype != source.dtype:
        raise RuntimeError(f"put_(): self and source expected to have the same dtype, but got self.dtype = {dtype_text(self.dtype)} and source.dtype = {dtype_text(source.dtype)}")
    if source.numel != index.numel:
        raise RuntimeError(f"put_(): Expected source and index to have the same number of elements, but got source.numel() = {source.numel}, index.numel() = {index.numel}")
    if self.numel == 0 and index.numel != 0:
        raise IndexError("put_(): Trying to put elements into an empty tensor")
    i64 = index64(index)
    s = clone_of(source) if not source.contiguous or memory_overlap(source, self) else source
    r = begin_write("put_", self, out, mode)
    if self.device_type != DEV_META:
        offsets = flat_offsets(i64, r)
        flat_rows(&rows, r, s, offsets)
        run_scatter(&rows, 0, span_of(r), r, s, offsets, PUT_ADD if accumulate else PUT_SET)
    return r


# ---- embedding ------------------------------------------------------------------------------------------------------

cdef TensorBase embedding_cpu(TensorBase weight, TensorBase indices, int64_t padding_idx, bint scale_grad_by_freq, bint sparse):
    cdef int64_t sizes[MAX_DIMS]
    cdef TensorBase r, i64, offsets
    cdef RowArgs rows
    cdef int k
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype != I64 and indices.dtype != I32:
        raise RuntimeError(f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.{dtype_text(indices.dtype)}Tensor instead (while checking arguments for embedding)")
    if indices.ndim >= MAX_DIMS:
        raise RuntimeError(f"embedding: a tensor has at most {MAX_DIMS} dimensions")
    for k in range(indices.ndim):
        sizes[k] = indices.sizes[k]
    sizes[indices.ndim] = weight.sizes[1]
    r = empty_tensor(indices.ndim + 1, sizes, weight.dtype, place_of(weight))
    if weight.device_type == DEV_META:
        return r
    i64 = index64(indices)
    offsets = vector_offsets("embedding", i64, weight.sizes[0], weight.strides[0] * ITEM_SIZE[weight.dtype], 0, False, None)
    rows.n_outer = 0
    rows.n_inner = 0
    rows.m = i64.numel
    rows.offset = <const int64_t*>data_of(offsets)
    add_dim(&rows.n_inner, rows.inner_size, rows.inner_table, rows.inner_dense, weight.sizes[1], weight.strides[1] * ITEM_SIZE[weight.dtype], ITEM_SIZE[weight.dtype])
    rows.table = data_of(weight)
    rows.dense = data_of(r)
    rows.dense_step = weight.sizes[1] * ITEM_SIZE[weight.dtype]
    run_gather(&rows, weight, r, offsets)
    return r


cdef object embedding_backward(object grad, object indices, object shape, int64_t padding_idx, bint scale_grad_by_freq):
    """Rows of the gradient added at their index; the padding row gets none; optionally divided by their frequency."""
    cdef TensorBase r, i64, g, offsets
    cdef RowArgs rows
    cdef int64_t k
    cdef int64_t* at
    flat = indices.reshape(-1).to(dtype_of(I64))
    g2 = grad.reshape(-1, shape[1]) if shape[1] else grad.new_zeros((flat.shape[0], 0))
    if scale_grad_by_freq:
        counts = _ops.bincount(flat, minlength=shape[0])
        g2 = g2 / counts.index_select(0, flat).to(grad.dtype).unsqueeze(1)
    if grad_mode() or (<TensorBase>grad).device_type == DEV_META:
        if padding_idx >= 0:
            g2 = g2.masked_fill((flat == padding_idx).unsqueeze(1), 0)
        return grad.new_zeros(shape).index_add(0, flat, g2)
    r = grad.new_zeros(shape)
    i64 = index64(<TensorBase>flat)
    g = contiguous_of(<TensorBase>g2)
    offsets = vector_offsets("embedding", i64, r.sizes[0], r.strides[0] * ITEM_SIZE[r.dtype], 0, False, None)
    if padding_idx >= 0 and r.device_type == DEV_CUDA:
        device_offsets("embedding", offsets, i64, r.sizes[0], r.strides[0] * ITEM_SIZE[r.dtype], False, False, padding_idx)
    elif padding_idx >= 0:
        at = <int64_t*>data_of(offsets)
        for k in range(offsets.numel):
            if index_at(i64, k) == padding_idx:
                at[k] = -1
    dimension_rows(&rows, r, g, 0)
    rows.m = offsets.numel
    rows.offset = <const int64_t*>data_of(offsets)
    run_scatter(&rows, 0, span_of(r), r, g, offsets, PUT_ADD)
    return r


def embedding_dense_backward(TensorBase grad_output not None, TensorBase indices not None, num_weights, padding_idx, scale_grad_by_freq):
    """The gradient of embedding's weight (num_weights, D) from that of its result."""
    return embedding_backward(grad_output, indices, (num_weights, grad_output.sizes[grad_output.ndim - 1]), padding_idx, scale_grad_by_freq)


EXTRA_EXPORTS = {
    "index_put": "fm", "index_put_": "fm", "index_fill": "fm", "index_fill_": "m", "scatter": "fm", "scatter_": "m", "masked_fill": "fm", "masked_fill_": "m",
    "nonzero": "fm", "argwhere": "fm", "take_along_dim": "fm", "one_hot": "", "bucketize": "f", "searchsorted": "f", "select_scatter": "fm", "nonzero_static": "fm", "unravel_index": "f", "fill_diagonal_": "m", "renorm": "fm", "renorm_": "m",
    "slice_scatter": "fm", "diagonal_scatter": "fm", "as_strided_scatter": "fm", "isin": "f", "embedding_dense_backward": "", "index_reduce": "fm", "index_reduce_": "m",
}
METHOD_ALIASES = {"__getitem__": getitem, "__setitem__": setitem, "__delitem__": delitem}
