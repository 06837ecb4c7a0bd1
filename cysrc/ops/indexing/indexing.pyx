# Kernels and entries of the indexing family: rows and lines by indices, search. rows.pyx has what they share, masks.pyx what masks do, getitem.pyx reads the
# keys of x[...]. Every index is checked before anything is written; contributions to one element add up in the order of the indices. What reads or writes
# elements are steps: cpu.pyx has the CPU's, cysrc/cuda/indexing.pyx CUDA's.
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.ops.indexing.rows cimport (
    NOT_SKIPPED, add_dim, bags_of_ends, begin_write, check_apart, check_source, check_sources, clone_of, copy_in_order, dimension_rows, empty_in_order, finish_write, first_bad, flat_offsets, flat_rows, gather_from, index64, index64_expanded, index_at,
    beside, cast_value, number_beside, one_dimensional, scalar_value, scatter_to, span_of, take_flat, vector_index, vector_offsets, warn_copied, warn_expanded, without_repeats, write_lines)
from tensorrt_lite._C.ops.memory cimport memory_of
from tensorrt_lite._C.steps.indexing cimport PUT_ADD, PUT_MAX, PUT_MIN, PUT_MUL, PUT_SET, RowArgs, SearchArgs, run_bag_gradient, run_bag_largest, run_bag_largest_gradient, run_bag_sums, run_embed, run_offsets, run_one_hot, run_search


# ---- index_select, index_add, index_copy, index_fill ----------------------------------------------------------------

cdef TensorBase index_select_kernel(TensorBase self, int64_t dim, TensorBase index, TensorBase out, int mode):
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
    offsets = vector_offsets("index_select", x, i64, d, False, None)
    dimension_rows(&r, x, one_dimensional(result), d)
    r.m = i64.numel
    r.offset = <const int64_t*>memory_of(offsets)
    gather_from(&r, x, result, offsets)
    return finish_write("index_select", result, out, mode)


cdef int put_along(str name, TensorBase target, int d, TensorBase index, TensorBase source, int op, bint negative, object error) except -1:
    """target[.., index[i], ..] <op>= source[.., i, ..]; all indices are checked first."""
    cdef TensorBase t = one_dimensional(target), s = one_dimensional(source), offsets
    cdef RowArgs r
    offsets = vector_offsets(name, t, index, d, negative, error)
    if memory_overlap(t, s):
        s = one_dimensional(clone_of(source))
    dimension_rows(&r, t, s, d)
    r.m = index.numel
    r.offset = <const int64_t*>memory_of(offsets)
    return scatter_to(&r, t.sizes[d] * t.strides[d] * ITEM_SIZE[t.dtype] + 1, t, s, offsets, op)


cdef enum:
    SCALED_BLOCK = 1 << 16           # elements that index_add has of alpha * source at a time


cdef int add_scaled(TensorBase r, int d, TensorBase index, TensorBase source, const Scalar* alpha) except -1:
    """index_add of alpha * source, which is never whole in memory unless source is r's; nothing is written where an index is out of range."""
    cdef int64_t first, count, n = index.numel, step = n
    cdef object factor = bool(scalar_object(alpha)) if source.dtype == BOOL else scalar_object(alpha), part, s = alias_of(source), i = alias_of(index)
    if source.numel > SCALED_BLOCK and n > 1 and not memory_overlap(r, source):
        step = max(1, SCALED_BLOCK * n // source.numel)
        vector_offsets("index_add", one_dimensional(r), index, d, False, None if r.ndim <= 1 else RuntimeError)
    for first in range(0, max(n, 1), max(step, 1)):
        count = min(step, n - first)
        part = s if count == n else s.narrow(d, first, count)
        put_along("index_add", r, d, index if count == n else <TensorBase?>i.narrow(0, first, count), cast_to(<TensorBase?>_ops.mul(part, factor), source.dtype), PUT_ADD, False, None if r.ndim <= 1 else RuntimeError)
    return 0


cdef TensorBase index_add_kernel(TensorBase self, int64_t dim, TensorBase index, TensorBase source, const Scalar* alpha, TensorBase out, int mode):
    cdef int d = wrap_dim(dim, self.ndim)
    cdef TensorBase i64 = vector_index("index_add", index), r
    check_source("index_add_", self, d, i64, source, RuntimeError)
    check_sources("index_add_", self, mode, index, source)
    r = begin_write("index_add", self, out, mode)
    if alpha != NULL:
        check_number(alpha, self.dtype)
    if alpha != NULL and not (alpha.kind <= 1 and alpha.i == 1 or alpha.kind == 2 and alpha.d == 1):
        add_scaled(r, d, i64, source, alpha)
    else:
        put_along("index_add", r, d, i64, source, PUT_ADD, False, None if r.ndim <= 1 else RuntimeError)   # PyTorch's vectors raise IndexError
    return finish_write("index_add", r, out, mode)


cdef TensorBase index_copy_kernel(TensorBase self, int64_t dim, TensorBase index, TensorBase source, TensorBase out, int mode):
    cdef int d = wrap_dim(dim, self.ndim)
    cdef TensorBase i64, r
    if index.dtype != I64:
        raise IndexError(f"index_copy_(): Expected a long tensor for index, but got {dtype_text(index.dtype)}")
    i64 = vector_index("index_copy_", index)
    check_source("index_copy_", self, d, i64, source, IndexError)
    check_sources("index_copy_", self, mode, index, source)
    r = begin_write("index_copy", self, out, mode)
    put_along("index_copy_", r, d, i64, source, PUT_SET, False, IndexError)
    return finish_write("index_copy", r, out, mode)


cdef TensorBase index_fill_kernel(TensorBase self, int64_t dim, TensorBase index, object value, TensorBase out, int mode):
    cdef int d = wrap_dim(dim, self.ndim), k
    cdef TensorBase i64, r, t, v = scalar_value(self, value, "index_fill_")
    cdef int64_t zeros[MAX_DIMS]
    if index.dtype != I64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    i64 = vector_index("index_fill_", index)
    if mode == INPLACE:
        check_no_overlap("index_fill_", self, index, False)
        warn_expanded("index_fill_", self, "tensor[mask] = scalar")
    r = self if mode == INPLACE else copy_in_order(self) if mode == FRESH else begin_write("index_fill", self, out, mode)
    t = one_dimensional(r)
    for k in range(t.ndim):
        zeros[k] = 0
    put_along("index_fill", r, d, i64, make_view(v, t.ndim, t.sizes, zeros, v.offset), PUT_SET, True, IndexError)
    return r


cdef object slices_filled(object input, object dim, object index, object value, object out, bint inplace):
    """The slices named by index along dim hold a value (a number or a 0-dimensional tensor)."""
    cdef TensorBase self = as_tensor_arg(input, "index_fill", "input"), at = as_tensor_arg(index, "index_fill", "index")
    if inplace:
        check_inplace(self, "index_fill_")
    if isinstance(value, TensorBase) and (<TensorBase>value).keys & K_DERIVATIVES:
        return fill_with_gradient(self, dim, at, value, inplace)
    d = parse_int(dim, "index_fill", "dim")
    if inplace:
        return finish_inplace(op_index_fill(self, d, at, value, self, INPLACE), self.keys)
    return op_index_fill(self, d, at, value, None, FRESH)


cdef object fill_with_gradient(object self, object dim, TensorBase index, object value, bint inplace):
    """The value's gradient needs a recorded write; a slice named twice counts once, as in a mask."""
    cdef TensorBase t = self
    cdef int d = wrap_dim(parse_int(dim, "index_fill", "dim"), t.ndim)
    if (<TensorBase>value).ndim:
        raise RuntimeError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {(<TensorBase>value).ndim} dimension(s).")
    mask = _ops.zeros(t.sizes[d] if t.ndim else 1, dtype=dtype_of(BOOL), device=self.device).index_fill(0, index.reshape(-1), True)
    mask = mask.reshape([-1 if k == d else 1 for k in range(t.ndim)])
    return self.masked_fill_(mask, value) if inplace else self.masked_fill(mask, value)


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
        return index64_expanded(index)
    raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")


cdef int check_lines(str name, TensorBase index, int64_t size, int d) except -1:
    cdef TensorBase named = contiguous_of(without_repeats(index))
    cdef int64_t bad = first_bad(named, 0, size)
    if bad >= 0:
        raise RuntimeError(f"index {index_at(named, bad)} is out of bounds for dimension {d} with size {size} ({name})")
    return 0


cdef TensorBase gather_kernel(TensorBase self, int64_t dim, TensorBase index, bint sparse_grad, TensorBase out, int mode):
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
    if write_lines("gather", x, one_dimensional(result), i64, d, PUT_SET, True, False, False):
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
        if not scalar:
            raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
        s = beside(cast_value(src, target.dtype), target)
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
    if mode == INPLACE or op == CHECK_ONLY:
        check_lines(name, i64, t.sizes[d], d)
    if mode == INPLACE:
        check_no_overlap(name, target, index, False)
        if not scalar:
            check_no_overlap(name, target, src, False)
    if op != CHECK_ONLY and write_lines(name, t, s, i64, d, op, False, scalar, False) and mode != INPLACE:
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


cdef TensorBase scatter_kernel(TensorBase self, int64_t dim, TensorBase index, TensorBase src, object reduce, TensorBase out, int mode):
    cdef int op = reduction_code(reduce)
    cdef TensorBase r = begin_write("scatter", self, out, mode)
    put_lines("scatter", r, dim, index, src, op, mode)
    return finish_write("scatter", r, out, mode)


cdef TensorBase scatter_add_kernel(TensorBase self, int64_t dim, TensorBase index, TensorBase src, TensorBase out, int mode):
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
    if intercepted(self.keys) and is_number(src):
        return wrap_number(src)
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


cdef TensorBase scatter_reduce_kernel(TensorBase self, int64_t dim, TensorBase index, TensorBase src, object reduce, bint include_self, TensorBase out, int mode):
    cdef TensorBase r, count = None, start
    if reduce == "min" or reduce == "max":
        reduce = "a" + reduce
    if reduce not in reduction_names:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if reduction_names[reduce] >= PUT_MIN and category[self.dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"scatter_reduce(): {reduce} is not implemented for '{dtype_text(self.dtype)}', which has no order")
    r = begin_write("scatter_reduce", self, out, mode)
    if index.numel and (reduce == "mean" or not include_self):
        put_lines("scatter_reduce", r, dim, index, src, CHECK_ONLY, mode)
        count = contributions(r, dim, index, reduce == "mean")
    if index.numel and not include_self:
        start = scalar_value(self, neutral_value(self, reduce), "scatter_reduce")
        if count is not None:
            masked_fill_kernel(r, <TensorBase?>_ops.ne(count, 0), start, None, INPLACE)
        else:
            start.wrapped_number = 1
            put_lines("scatter_reduce", r, dim, index, start, PUT_SET, mode)
    put_lines("scatter_reduce", r, dim, index, src, reduction_names[reduce], mode)
    if reduce == "mean" and index.numel:
        counted = _ops.add(count, 1) if include_self else _ops.clamp(count, 1)
        start = alias_of(r)
        copy_elements(r, <TensorBase?>(_ops.div(start, counted) if category[r.dtype] >= CAT_FLOAT else _ops.div(start, counted, rounding_mode="floor")))
    return finish_write("scatter_reduce", r, out, mode)


cdef TensorBase contributions(TensorBase r, int64_t dim, TensorBase index, bint always):
    """How often index names each element of r, as a tensor that broadcasts to r: of size 1 along the dimensions in which an expanded index is the same for all.

    int64 for integers, float32 for 16-bit floats, which would stop at 256. None where it would be as large as r, unless `always`.
    """
    cdef TensorBase table = one_dimensional(r), named = one_dimensional(index64_expanded(index)), count, one
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t places[MAX_DIMS]
    cdef int64_t numel = 1
    cdef int d = wrap_dim(dim, r.ndim), k, code = I64
    cdef Scalar value
    if category[r.dtype] >= CAT_FLOAT:
        code = F64 if r.dtype == F64 or r.dtype == C128 else F32
    for k in range(table.ndim):
        sizes[k], places[k] = table.sizes[k], named.sizes[k]
        if k != d and named.strides[k] == 0 and named.sizes[k] == table.sizes[k]:
            sizes[k] = places[k] = 1
        numel *= sizes[k]
    if numel == r.numel and not always:
        return None
    count = empty_tensor(table.ndim, sizes, code, place_of(r))
    value.kind = 1
    value.i = 0
    value.d = value.im = 0
    fill_elements(count, &value)
    value.i = 1
    value.d = 1
    one = number_beside(count, code, &value)
    one.wrapped_number = 1
    put_lines("scatter_reduce", count, d, make_view(named, named.ndim, places, named.strides, named.offset), one, PUT_ADD, FRESH)
    return count if r.ndim else <TensorBase>alias_of(count).reshape(())


# ---- take and put ---------------------------------------------------------------------------------------------------

cdef TensorBase take_kernel(TensorBase self, TensorBase index, TensorBase out, int mode):
    cdef TensorBase i64, r
    if index.dtype != I64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {dtype_text(index.dtype)}")
    if self.numel == 0 and index.numel != 0:
        raise IndexError("take(): tried to take from an empty tensor")
    check_apart("take", out, mode, self, index)
    i64 = index64(index)
    r = empty_tensor(index.ndim, index.sizes, self.dtype, place_of(self))
    take_flat(self, i64, r)
    return finish_write("take", r, out, mode)


cdef TensorBase put_kernel(TensorBase self, TensorBase index, TensorBase source, bint accumulate, TensorBase out, int mode):
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
    check_sources("put_", self, mode, index, source)
    i64 = index64(index)
    s = clone_of(source) if not source.contiguous or memory_overlap(source, self) else source
    r = begin_write("put_", self, out, mode)
    offsets = flat_offsets(i64, r)
    flat_rows(&rows, r, s, offsets)
    scatter_to(&rows, span_of(r), r, s, offsets, PUT_ADD if accumulate else PUT_SET)
    return r


# ---- embedding ------------------------------------------------------------------------------------------------------

cdef TensorBase embedding_kernel(TensorBase weight, TensorBase indices, int64_t padding_idx, bint scale_grad_by_freq, bint sparse):
    cdef int64_t sizes[MAX_DIMS]
    cdef TensorBase r
    cdef RowArgs rows
    cdef int k
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype != I64 and indices.dtype != I32:
        raise hinted("indices", RuntimeError(f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got torch.{dtype_text(indices.dtype)}Tensor instead (while checking arguments for embedding)"))
    if indices.ndim >= MAX_DIMS:
        raise RuntimeError(f"embedding: a tensor has at most {MAX_DIMS} dimensions")
    for k in range(indices.ndim):
        sizes[k] = indices.sizes[k]
    sizes[indices.ndim] = weight.sizes[1]
    r = empty_tensor(indices.ndim + 1, sizes, weight.dtype, place_of(weight))
    rows.n_outer = 0
    rows.n_inner = 0
    rows.m = indices.numel
    add_dim(&rows.n_inner, rows.inner_size, rows.inner_table, rows.inner_dense, weight.sizes[1], weight.strides[1] * ITEM_SIZE[weight.dtype], ITEM_SIZE[weight.dtype])
    rows.table = memory_of(weight)
    rows.dense = memory_of(r)
    rows.dense_step = weight.sizes[1] * ITEM_SIZE[weight.dtype]
    run_embed(weight.device_type, &rows, weight, r, indices)
    return r


cdef object embedding_gradient(object grad, object indices, object shape, int64_t padding_idx, bint scale_grad_by_freq, bint sparse):
    """The gradient of embedding's weight: with `sparse` a sparse_coo tensor with an entry for each index, in their order."""
    if not sparse:
        return embedding_backward(grad, indices, shape, padding_idx, scale_grad_by_freq)
    if scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    flat = indices.reshape(-1).to(dtype_of(I64))
    g2 = grad.reshape(-1, shape[1]) if shape[1] else grad.new_zeros((flat.shape[0], 0))
    if padding_idx >= 0:
        kept = _ops.ne(flat, padding_idx).nonzero().reshape(-1)
        flat, g2 = flat.index_select(0, kept), g2.index_select(0, kept)
    return _ops.sparse_coo_tensor(flat.reshape(1, -1), g2, tuple(shape))


cdef object embedding_backward(object grad, object indices, object shape, int64_t padding_idx, bint scale_grad_by_freq):
    """Rows of the gradient added at their index; the padding row gets none; optionally divided by their frequency."""
    cdef TensorBase r, i64, g, offsets
    cdef RowArgs rows
    flat = indices.reshape(-1).to(dtype_of(I64))
    g2 = grad.reshape(-1, shape[1]) if shape[1] else grad.new_zeros((flat.shape[0], 0))
    if scale_grad_by_freq:
        counts = _ops.bincount(flat, minlength=shape[0])
        g2 = g2 / counts.index_select(0, flat).to(grad.dtype).unsqueeze(1)
    if grad_mode():
        if padding_idx >= 0:
            g2 = g2.masked_fill((flat == padding_idx).unsqueeze(1), 0)
        return grad.new_zeros(shape).index_add(0, flat, g2)
    r = grad.new_zeros(shape)
    i64 = index64(<TensorBase>flat)
    g = contiguous_of(<TensorBase>g2)
    offsets = vector_offsets("embedding", r, i64, 0, False, None, padding_idx if padding_idx >= 0 else NOT_SKIPPED)
    dimension_rows(&rows, r, g, 0)
    if g.ndim != 2 or g.sizes[0] != offsets.numel or g.sizes[1] != r.sizes[1]:
        raise RuntimeError(f"embedding: a gradient of shape {shape_text(<TensorBase>grad)} does not fit indices of shape {shape_text(<TensorBase>indices)}")
    rows.m = offsets.numel
    rows.offset = <const int64_t*>memory_of(offsets)
    scatter_to(&rows, span_of(r), r, g, offsets, PUT_ADD)
    return r


def embedding_dense_backward(TensorBase grad_output not None, TensorBase indices not None, num_weights, padding_idx, scale_grad_by_freq):
    """The gradient of embedding's weight (num_weights, D) from that of its result."""
    if grad_output.ndim == 0:
        raise RuntimeError("embedding_dense_backward: expected a gradient with rows, got a 0-dimensional one")
    return embedding_backward(grad_output, indices, (num_weights, grad_output.sizes[grad_output.ndim - 1]), padding_idx, scale_grad_by_freq)


cdef int check_bags(TensorBase weight, TensorBase indices, TensorBase ends) except -1:
    if weight.ndim != 2 or indices.ndim != 1 or ends.ndim != 1 or ends.numel < 1:
        raise RuntimeError(f"embedding_bag: weight {shape_text(weight)}, indices {shape_text(indices)} and ends {shape_text(ends)} do not fit")
    if not is_floating_type(weight.dtype) or not has_loops(weight.dtype):
        raise NotImplementedError(f"\"embedding_bag\" not implemented for '{dtype_text(weight.dtype)}'")
    return 0


cdef TensorBase _embedding_bag_sums_kernel(TensorBase weight, TensorBase indices, TensorBase ends, TensorBase scale, int64_t padding_idx):
    cdef int64_t sizes[2]
    cdef TensorBase r
    check_bags(weight, indices, ends)
    if scale is not None and scale.dtype != weight.dtype:
        raise RuntimeError(f"embedding_bag: expected per_sample_weights of weight's type {dtype_text(weight.dtype)}, got {dtype_text(scale.dtype)}")
    sizes[0], sizes[1] = ends.numel - 1, weight.sizes[1]
    r = empty_tensor(2, sizes, weight.dtype, place_of(weight))
    if r.numel:
        run_bag_sums(weight.device_type, contiguous_of(weight), indices, index64(ends), None if scale is None else contiguous_of(scale), padding_idx, r)
    return r


cdef object _embedding_bag_largest_kernel(TensorBase weight, TensorBase indices, TensorBase ends, int64_t padding_idx):
    cdef int64_t sizes[2]
    cdef TensorBase r, largest
    check_bags(weight, indices, ends)
    sizes[0], sizes[1] = ends.numel - 1, weight.sizes[1]
    r, largest = empty_tensor(2, sizes, weight.dtype, place_of(weight)), empty_tensor(2, sizes, I64, place_of(weight))
    if r.numel:
        run_bag_largest(weight.device_type, contiguous_of(weight), indices, index64(ends), padding_idx, r, largest)
    return r, largest


cdef object bag_largest_backward(object grad, object largest, object shape):
    cdef TensorBase r
    if grad is None:
        return None
    if grad_mode() or ((<TensorBase?>grad).keys | (<TensorBase?>largest).keys) & (K_WRAPPED | K_FORWARD_AD):
        return grad.new_zeros(shape).scatter_add(0, largest.clamp_min(0), grad.masked_fill(largest < 0, 0)) if shape[0] else grad.new_zeros(shape)
    check_saved_like("embedding_bag", <TensorBase>largest, <TensorBase>grad, I64)
    if grad.dim() != 2 or len(shape) != 2 or grad.shape[1] != shape[1]:
        raise RuntimeError(f"embedding_bag: the backward pass expects a gradient of {shape[1:]} columns, got shape {tuple(grad.shape)}")
    r = grad.new_zeros(shape)
    if r.numel and grad.numel():
        run_bag_largest_gradient(r.device_type, contiguous_of(<TensorBase>grad), contiguous_of(<TensorBase>largest), r)
    return r


cdef object bag_sums_backward(object grad, object indices, object ends, object scale, object shape, int64_t padding_idx):
    cdef TensorBase r, g, factors
    bag = bags_of_ends(ends, indices.shape[0])
    if grad_mode():
        rows = indices.to(dtype_of(I64))
        picked = grad.index_select(0, bag) if scale is None else grad.index_select(0, bag) * scale.unsqueeze(1)
        if padding_idx >= 0:
            picked = picked.masked_fill((rows == padding_idx).unsqueeze(1), 0)
        return grad.new_zeros(shape).index_add(0, rows, picked)
    r = grad.new_zeros(shape)
    if r.numel and indices.numel():
        g, factors = contiguous_of(<TensorBase>grad), None if scale is None else contiguous_of(<TensorBase>scale)
        run_bag_gradient(r.device_type, g, <TensorBase>indices, index64(<TensorBase>bag), factors, padding_idx, r)
    return r


cdef object bag_scale_backward(object grad, object weight, object indices, object ends, int64_t padding_idx):
    bag = bags_of_ends(ends, indices.shape[0])
    r = (weight.index_select(0, indices.to(dtype_of(I64))) * grad.index_select(0, bag)).sum(1)
    return r if padding_idx < 0 else r.masked_fill(indices == padding_idx, 0)


cdef object masked_scatter_backward(object grad, object mask, object shape):
    cdef object g
    cdef int64_t n = 1
    for k in shape:
        n *= k
    if n and ((<TensorBase?>grad).keys | (<TensorBase?>mask).keys) & K_PYTHON:
        # fake tensors have no count of them, and of a batch each element takes another number: what is taken is added to the place that it came from, all else to a place more
        flat = mask.expand(grad.shape).reshape(-1)
        places = _ops.where(flat, flat.cumsum(0) - 1, n)
        return _ops.zeros(n + 1, dtype=grad.dtype, device=grad.device).scatter_add(0, places, grad.reshape(-1)).narrow(0, 0, n).reshape(shape)
    g = grad.masked_select(mask)
    if g.shape[0] < n:
        g = enlarged(g, (n,))
    return g.reshape(shape)


# ---- index and index_put -------------------------------------------------------------------------------------------

cdef struct IndexShape:
    int n                         # dimensions of the broadcast indices
    int64_t sizes[MAX_DIMS]
    int before                    # dimensions of the result in front of them
    int ndim                      # dimensions of the result
    int64_t result[MAX_DIMS]


cdef int index_shape(TensorBase self, list indices, IndexShape* s) except -1:
    """The result's shape: the indices' dimensions stand where the indexed ones are when those are adjacent, else in front."""
    cdef int first = -1, last = -1, k, j, d, count = 0
    cdef TensorBase t
    s.n = 0
    for d in range(len(indices)):
        if indices[d] is not None:
            t = <TensorBase>indices[d]
            if first < 0:
                first = d
            last = d
            count += 1
            s.n = max(s.n, t.ndim)
    for k in range(s.n):
        s.sizes[k] = 1
    for x in indices:
        if x is None:
            continue
        t = <TensorBase>x
        for k in range(t.ndim):
            j = k + s.n - t.ndim
            if t.sizes[k] != 1 and t.sizes[k] != s.sizes[j]:
                if s.sizes[j] != 1:
                    raise IndexError("shape mismatch: indexing tensors could not be broadcast together with shapes "
                                     + ", ".join([shape_text(<TensorBase>y) for y in indices if y is not None]))
                s.sizes[j] = t.sizes[k]
    s.before = first if count and last - first + 1 == count else 0
    s.ndim = self.ndim - count + s.n
    if s.ndim > MAX_DIMS:
        raise IndexError(f"index: the result has more than {MAX_DIMS} dimensions")
    j = 0
    for d in range(self.ndim):
        if j == s.before:
            j += s.n
        if d < len(indices) and indices[d] is not None:
            continue
        s.result[j] = self.sizes[d]
        j += 1
    for k in range(s.n):
        s.result[s.before + k] = s.sizes[k]
    return 0


cdef TensorBase index_offsets(TensorBase self, list indices, IndexShape* s):
    """Byte offsets of the indexed positions, in the row-major order of the broadcast indices; all indices are checked."""
    cdef TensorBase offsets = empty_tensor(s.n, s.sizes, I64, place_of(self)), t
    cdef Scalar zero
    cdef int64_t bad, touched = 1
    cdef int d, before = 0
    cdef object x
    for d in range(s.ndim):
        touched *= s.result[d]
    for d in range(len(indices)):
        if indices[d] is None:
            continue
        t = <TensorBase>indices[d]
        if not same_sizes(t, offsets):
            x = alias_of(t)
            t = <TensorBase?>x.expand([s.sizes[k] for k in range(s.n)])
        t = contiguous_of(t)
        if run_offsets(self.device_type, offsets, t, self.sizes[d], self.strides[d] * ITEM_SIZE[self.dtype], True, before, NOT_SKIPPED, "index") and touched:
            bad = first_bad(t, -self.sizes[d], self.sizes[d])
            if bad >= 0:
                raise_bounds(index_at(t, bad), d, self.sizes[d])
        before = 1
    if not before:
        zero.kind = 1
        zero.i = 0
        zero.d = zero.im = 0
        fill_elements(offsets, &zero)
    return offsets


cdef int index_rows(RowArgs* r, TensorBase self, list indices, IndexShape* s, TensorBase dense, TensorBase offsets) except -1:
    """Geometry for the row kernels; dense has the result's shape, its index dimensions collapse to one step."""
    cdef int64_t item = ITEM_SIZE[self.dtype]
    cdef int d, j = 0
    r.n_outer = 0
    r.n_inner = 0
    for d in range(self.ndim):
        if j == s.before:
            j += s.n
        if d < len(indices) and indices[d] is not None:
            continue
        if j < s.before:
            add_dim(&r.n_outer, r.outer_size, r.outer_table, r.outer_dense, self.sizes[d], self.strides[d] * item, dense.strides[j] * item)
        else:
            add_dim(&r.n_inner, r.inner_size, r.inner_table, r.inner_dense, self.sizes[d], self.strides[d] * item, dense.strides[j] * item)
        j += 1
    r.m = offsets.numel
    r.offset = <const int64_t*>memory_of(offsets)
    r.dense_step = 0
    for d in range(s.n - 1, -1, -1):
        if s.sizes[d] != 1:
            r.dense_step = dense.strides[s.before + d] * item
            break
    r.table = memory_of(self)
    r.dense = memory_of(dense)
    return 0


cdef TensorBase index_result(TensorBase self, list indices, IndexShape* s):
    """An empty result. Its dimensions that are not indexed have the order in memory that they have in self."""
    cdef int64_t source[MAX_DIMS]
    cdef int d, j = 0
    if self.contiguous:
        return empty_tensor(s.ndim, s.result, self.dtype, place_of(self))
    for d in range(s.ndim):
        source[d] = 0             # of indexed dimensions, which keep their place
    for d in range(self.ndim):
        if j == s.before:
            j += s.n
        if d < len(indices) and indices[d] is not None:
            continue
        source[j] = self.strides[d] if self.sizes[d] > 1 else 0
        j += 1
    return empty_in_order(s.ndim, s.result, source, self.dtype, place_of(self))


cdef TensorBase index_kernel(TensorBase self, list indices):
    cdef list full = expand_masks(self, indices)
    cdef IndexShape s
    cdef RowArgs r
    cdef TensorBase result, offsets
    index_shape(self, full, &s)
    result = index_result(self, full, &s)
    offsets = index_offsets(self, full, &s)
    if result.numel == 0:
        return result  # the indices may be out of bounds then, as in PyTorch
    index_rows(&r, self, full, &s, result, offsets)
    gather_from(&r, self, result, offsets)
    return result


cdef TensorBase added_in_compute_type(TensorBase self, list indices, TensorBase values, int mode):
    """index_put with accumulate in a type without loops."""
    cdef TensorBase target = self if mode == INPLACE else clone_of(self), r
    if category[self.dtype] < CAT_FLOAT:
        raise NotImplementedError(f"\"index_put\" not implemented for '{dtype_text(self.dtype)}'")
    r = index_put_kernel(cast_to(self, loop_type[self.dtype]), indices, cast_to(values, loop_type[self.dtype]), True, None, FRESH)
    copy_elements(target, r)
    return target


cdef bint has_mask(list indices) noexcept:
    for x in indices:
        if x is not None and (<TensorBase>x).dtype in (BOOL, U8):
            return True
    return False


cdef TensorBase index_put_kernel(TensorBase self, list indices, TensorBase values, bint accumulate, TensorBase out, int mode):
    cdef list full = None if self.keys & K_META and has_mask(indices) else expand_masks(self, indices)       # where masks have no elements
    cdef IndexShape s
    cdef RowArgs r
    cdef TensorBase offsets, target, dense
    cdef int64_t strides[MAX_DIMS]
    cdef int k, j
    if values.dtype != self.dtype:
        raise RuntimeError(f"Index put requires the source and destination dtypes match, got {dtype_text(self.dtype)} for the destination and {dtype_text(values.dtype)} for the source.")
    if accumulate and not has_loops(self.dtype):
        return added_in_compute_type(self, indices, values, mode)
    if full is None:
        return self if mode == INPLACE else copy_in_order(self)
    index_shape(self, full, &s)
    j = values.ndim - s.ndim
    for k in range(s.ndim):
        strides[k] = 0
    for k in range(values.ndim):
        if k < j:
            if values.sizes[k] == 1:
                continue
        elif values.sizes[k] == 1 or values.sizes[k] == s.result[k - j]:
            strides[k - j] = 0 if values.sizes[k] == 1 else values.strides[k]
            continue
        raise RuntimeError(f"shape mismatch: value tensor of shape {shape_text(values)} cannot be broadcast to indexing result of shape {sizes_text(s.ndim, s.result)}")
    if mode == INPLACE:
        warn_expanded("index_put_", self, "tensor[indices] = tensor")
        check_no_overlap("index_put_", self, values, False)
        for x in full:
            if x is not None:
                check_no_overlap("index_put_", self, <TensorBase>x, False)
    target = self if mode == INPLACE else copy_in_order(self)
    offsets = index_offsets(target, full, &s)
    dense = make_view(values, s.ndim, s.result, strides, values.offset)
    if dense.numel == 0:
        return target
    if memory_overlap(dense, target) or values.numel > 1 and s.n > 1:
        # the indices' dimensions must be one step apart, and the values must not change under the writes
        dense = clone_of(dense)
    index_rows(&r, target, full, &s, dense, offsets)
    scatter_to(&r, span_of(target), target, dense, offsets, PUT_ADD if accumulate else PUT_SET)
    return target


cdef object elements_put(object input, object indices, object values, object accumulate, object out, bint inplace):
    """input[indices] = values (or += when accumulate), in the order of the indices."""
    cdef TensorBase self = as_tensor_arg(input, "index_put", "input"), v = as_tensor_arg(values, "index_put", "values")
    cdef bint adds = parse_bool(accumulate, "index_put", "accumulate")
    if not inplace:
        return op_index_put(self, checked_indices(self, copied(indices)), v, adds, None, FRESH)
    check_inplace(self, "index_put_")
    return finish_inplace(op_index_put(self, checked_indices(self, copied(indices)), v, adds, self, INPLACE), self.keys | v.keys)


cdef object index_backward(object grad, object shape, list indices):
    cdef TensorBase mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.dtype == BOOL and mask.ndim == len(shape):
        return grad.new_zeros(shape).masked_scatter(mask, grad)
    return grad.new_zeros(shape).index_put_(indices, grad, True)


cdef object put_values_backward(object grad, object indices, object meta):
    cdef TensorBase g = op_index(<TensorBase>grad, <list>indices)
    cdef int extra = len(meta[0]) - g.ndim
    if extra > 0:
        return g.sum_to_size(tuple(meta[0])[extra:]).reshape(meta[0])
    return reduce_gradient(g, meta)


# ---- search and one_hot ---------------------------------------------------------------------------------------------

cdef TensorBase searchsorted_kernel(TensorBase sorted_sequence, TensorBase self, bint out_int32, bint right, TensorBase sorter, TensorBase out, int mode):
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
    if v.numel == 0:
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
        order = held(contiguous_of(order))
        bad = first_bad(order, 0, a.n)
        if bad >= 0:
            raise RuntimeError("torch.searchsorted(): sorter index out of range")
        a.sorter = <const int64_t*>memory_of(order)
    if ITEM_SIZE[s.dtype] < 4:
        # there are kernels for types of 4 and 8 bytes, which hold the others exactly
        s = cast_to(s, F32 if category[s.dtype] == CAT_FLOAT else I32)
        v = cast_to(v, s.dtype)
    a.sorted = memory_of(s)
    a.values = memory_of(v)
    a.out = memory_of(r)
    a.count = v.sizes[v.ndim - 1] if v.ndim else 1
    a.row_step = 0 if s.ndim == 1 else a.n
    a.right = right
    a.out_int32 = out_int32
    a.dtype = s.dtype
    run_search(v.device_type, &a, s, v, r)
    return finish_write("searchsorted", r, out, mode)


cdef TensorBase compared_number(TensorBase boundaries, object value, str name):
    """A number in the type that it and boundaries are compared in: 1.5 beside int64 is a float."""
    cdef Scalar number
    cdef PyObject* given[2]
    cdef TensorBase v
    if not is_number(value):
        raise TypeError(f"{name}(): argument '{'input' if name == 'bucketize' else 'self'}' must be Tensor or Number, not {type(value).__name__}")
    to_scalar(value, &number)
    v = wrap_number(value)
    given[0], given[1] = <PyObject*>boundaries, <PyObject*>v
    return number_beside(boundaries, result_code(2, given), &number)


cdef object search(object boundaries, object values, bint out_int32, bint right, object sorter, object out, str name):
    """Boundaries and values of different types are compared in the type they promote to; op_searchsorted takes one type."""
    cdef TensorBase s = as_tensor_arg(boundaries, name, "boundaries"), v
    cdef PyObject* given[2]
    cdef int code
    if isinstance(values, TensorBase):
        v = <TensorBase>values
    else:
        if s.ndim != 1:
            raise RuntimeError(f"torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor dim({s.ndim}) and input value's dim(0) numel(1)")
        v = compared_number(s, values, name)
    given[0], given[1] = <PyObject*>s, <PyObject*>v
    code = result_code(2, given)
    if s.dtype != code:
        s = <TensorBase?>(<object>s).to(dtype_of(code))
    if v.dtype != code:
        v = <TensorBase?>(<object>v).to(dtype_of(code))
    warn_copied(s, "boundary")
    warn_copied(v, "input value")
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


def one_hot(tensor, num_classes=-1):
    """Class numbers (*) as rows of zeros with a one, (*, num_classes), int64."""
    cdef TensorBase t = as_tensor_arg(tensor, "one_hot", "tensor"), x, r
    cdef int64_t classes = parse_int(num_classes, "one_hot", "num_classes")
    cdef int64_t sizes[MAX_DIMS]
    cdef int k
    if t.dtype != I64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor.")
    if classes == 0 or classes < -1:
        raise RuntimeError("num_classes should be positive" if t.numel else "Can not infer total number of classes from empty tensor.")
    if t.numel == 0 and classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    x = held(index64(t))  # finding the largest class may run Python, where another thread resizes the tensor
    if x.ndim == MAX_DIMS:
        raise RuntimeError(f"one_hot: a tensor has at most {MAX_DIMS} dimensions")
    if classes == -1:
        if t.keys & K_META and not t.keys & K_PYTHON:
            raise NotImplementedError("one_hot(): the result's shape depends on the data, which meta tensors do not have")
        low, high = [bound.item() for bound in _ops.aminmax(output_alias(t) if t.keys & K_PYTHON else x)]
        if low < 0 or high == 0x7FFFFFFFFFFFFFFF:
            raise RuntimeError("Class values must be non-negative." if low < 0 else "one_hot: the result is too large")
        classes = high + 1
    if t.keys & K_PYTHON:
        return _ops.eq(t.detach().unsqueeze(-1), _ops.arange(classes, device=(<object>t).device)).to(dtype_of(I64))
    for k in range(x.ndim):
        sizes[k] = x.sizes[k]
    sizes[x.ndim] = classes
    checked_numel(x.ndim + 1, sizes)
    r = empty_tensor(x.ndim + 1, sizes, I64, place_of(t))
    if r.numel and run_one_hot(t.device_type, x, classes, r):
        raise RuntimeError("Class values must be non-negative." if first_bad(x, 0, 0x7FFFFFFFFFFFFFFF) >= 0 else "Class values must be smaller than num_classes.")
    return r


# ---- for index_reduce (tensorrt_lite/_compositions/indexing.py) --------------------------------------------------------

def _checked_rows(str name not None, TensorBase self not None, int dim, TensorBase index not None, TensorBase source not None):
    """index as int64 of a shape that names, for each element of source, where it goes along dim of self."""
    cdef TensorBase i = vector_index(name, index)
    check_source(name + "_", self, dim, i, source, RuntimeError)
    return i


WITHOUT_ROW = {"embedding_dense_backward": ""}
METHOD_ALIASES = {"__getitem__": getitem, "__setitem__": setitem, "__delitem__": delitem}
