"""Rows, lines and flat positions: the geometry that steps of all devices are given, indices as byte offsets, and what operators read and write."""
from tensorrt_lite._C.core.hints import hinted
from libc.stdint cimport int64_t
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.core.args cimport is_number, to_scalar
from tensorrt_lite._C.core.dispatch cimport INPLACE, OUT, attach, intercepted
from tensorrt_lite._C.core.dtype cimport BOOL, C128, CAT_COMPLEX, F64, I32, I64, ITEM_SIZE, Scalar, U64, category, check_number
from tensorrt_lite._C.core.iterator cimport cast_to, check_internal_overlap, check_no_overlap, contiguous_of, copy_elements, fill_elements
from tensorrt_lite._C.core.tensor cimport (
    K_CPU, K_PYTHON, K_WRAPPED, MAX_DIMS, TensorBase, data_of, empty_like_tensor, empty_strided_tensor, empty_tensor, has_internal_overlap, make_view, number_tensor, place_of,
    shape_text)
from tensorrt_lite._C.core.text cimport dtype_text
from tensorrt_lite._C.steps.indexing cimport LineArgs, PUT_SET, RowArgs
from tensorrt_lite._C.ops.support cimport write_to_out
from tensorrt_lite._C.ops.memory cimport memory_of
from tensorrt_lite._C.steps.indexing cimport run_first_outside, run_gather_rows, run_lines, run_offsets, run_scatter_rows, run_unravel

cdef extern from "stage.h" nogil:
    void load_number "trt_load_scalar"(const char* source, int dtype, Scalar* value)

attach()

cdef object _ops = ops_namespace()


cdef TensorBase number_beside(TensorBase like, int dtype, const Scalar* value):
    """A number as a 0-dimensional tensor on the device of `like`."""
    cdef TensorBase r
    if like.keys & K_CPU:
        return number_tensor(dtype, value)
    if like.keys & (K_WRAPPED | K_PYTHON):
        return <TensorBase?>(<object>number_tensor(dtype, value)).to((<object>like).device)
    r = empty_tensor(0, NULL, dtype, place_of(like))
    fill_elements(r, value)
    return r


cdef TensorBase value_beside(TensorBase like, const Scalar* value):
    """A number that an operator writes into `like`, in its dtype. Where a mode or a class runs the operator, the number as it was given: those get it as one."""
    cdef TensorBase r
    if not intercepted(like.keys):
        return number_beside(like, like.dtype, value)
    r = number_tensor((BOOL, I64, F64, C128, U64)[value.kind], value)
    r.wrapped_number = 1
    return r


cdef TensorBase beside(TensorBase t, TensorBase like):
    """A tensor for use with `like`: a 0-dimensional one of the CPU may stand beside those of a device."""
    if t.device_type == like.device_type or t.ndim or not t.keys & K_CPU:
        return t
    return <TensorBase?>(<object>t).to((<object>like).device)


cdef TensorBase index64(TensorBase index):
    """A contiguous int64 copy of an index (itself when it is that)."""
    return contiguous_of(cast_to(index, I64))


cdef TensorBase without_repeats(TensorBase index):
    """`index` with one element along the dimensions that it repeats its memory in, as expand() makes them: all that there is to read."""
    cdef int64_t sizes[MAX_DIMS]
    cdef int k
    cdef bint repeats = False
    for k in range(index.ndim):
        sizes[k] = index.sizes[k]
        if sizes[k] > 1 and index.strides[k] == 0:
            sizes[k] = 1
            repeats = True
    return make_view(index, index.ndim, sizes, index.strides, index.offset) if repeats else index


cdef TensorBase index64_expanded(TensorBase index):
    """`index64` that leaves an expanded index expanded: the strides of its repeats stay 0."""
    cdef TensorBase compact = without_repeats(index), x
    cdef int64_t strides[MAX_DIMS]
    cdef int k
    if compact is index:
        return index64(index)
    x = index64(compact)
    for k in range(index.ndim):
        strides[k] = x.strides[k] if x.sizes[k] == index.sizes[k] else 0
    return make_view(x, index.ndim, index.sizes, strides, x.offset)


# ---- rows: indices on whole dimensions ------------------------------------------------------------------------------

cdef int gather_from(RowArgs* r, TensorBase table, TensorBase dense, TensorBase offsets) except -1:
    return run_gather_rows(table.device_type, r, table, dense, offsets) if dense.numel else 0


cdef int scatter_to(RowArgs* r, int64_t span, TensorBase table, TensorBase dense, TensorBase offsets, int op) except -1:
    cdef int k
    if r.m == 0:
        return 0
    for k in range(r.n_inner):
        if r.inner_size[k] == 0:
            return 0
    for k in range(r.n_outer):
        if r.outer_size[k] == 0:
            return 0
    return run_scatter_rows(table.device_type, r, span, table, dense, offsets, op)


cdef int dimension_rows(RowArgs* r, TensorBase table, TensorBase dense, int dim) except -1:
    """Fill in the geometry where the index runs along one dimension of both operands."""
    cdef int64_t ti = ITEM_SIZE[table.dtype], di = ITEM_SIZE[dense.dtype]
    cdef int k
    r.n_outer = 0
    r.n_inner = 0
    for k in range(dim):
        add_dim(&r.n_outer, r.outer_size, r.outer_table, r.outer_dense, table.sizes[k], table.strides[k] * ti, dense.strides[k] * di)
    for k in range(dim + 1, table.ndim):
        add_dim(&r.n_inner, r.inner_size, r.inner_table, r.inner_dense, table.sizes[k], table.strides[k] * ti, dense.strides[k] * di)
    r.table = memory_of(table)
    r.dense = memory_of(dense)
    r.dense_step = dense.strides[dim] * di if dense.ndim else 0
    return 0


cdef int64_t first_bad(TensorBase index, int64_t low, int64_t high) except -2:
    """Position of the first index outside of [low, high), -1 when all are inside or the device's kernels check theirs; `index` is contiguous int64."""
    cdef int64_t position = -1
    run_first_outside(index.device_type, index, low, high, &position)
    return position


# ---- lines: one index per element along a dimension -----------------------------------------------------------------

cdef int write_lines(str name, TensorBase table, TensorBase dense, TensorBase index, int dim, int op, bint gather, bint scalar, bint negative) except -1:
    """gather: dense[..i..] = table[..index..]; otherwise table[..index..] <op>= dense[..i..] over index's sizes.

    Returns 1 where an index was outside of [0, size), or of [-size, size) when `negative`: 0 was used for it.
    """
    cdef LineArgs a
    cdef int64_t ti = ITEM_SIZE[table.dtype]
    cdef int k, n = 0
    if index.numel == 0:
        return 0
    a.n = index.sizes[dim] if index.ndim else 1
    a.limit = table.sizes[dim] if table.ndim else 1
    a.wrap = a.limit if negative else 0
    a.bad = 0
    a.ts = table.strides[dim] * ti if table.ndim else 0
    a.ds = dense.strides[dim] * ti if not scalar and dense.ndim else 0
    a.xs = index.strides[dim] if index.ndim else 0
    for k in range(index.ndim):
        if k == dim or index.sizes[k] == 1:
            continue
        a.size[n] = index.sizes[k]
        a.t[n] = table.strides[k] * ti
        a.d[n] = 0 if scalar else dense.strides[k] * ti
        a.x[n] = index.strides[k]
        if n > 0 and a.t[n - 1] == a.t[n] * a.size[n] and a.d[n - 1] == a.d[n] * a.size[n] and a.x[n - 1] == a.x[n] * a.size[n]:
            a.size[n - 1] *= a.size[n]
            a.t[n - 1] = a.t[n]
            a.d[n - 1] = a.d[n]
            a.x[n - 1] = a.x[n]
        else:
            n += 1
    a.nd = n
    a.table = memory_of(table)
    a.dense = memory_of(dense)
    a.index = <const int64_t*>memory_of(index)
    a.item = <int>ti
    a.op = op
    a.dtype = table.dtype
    return run_lines(table.device_type, &a, table, dense, index, gather, name)


# ---- operands ----------------------------------------------------------------------------------------------------------

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
    if mode == OUT:
        check_no_overlap(name, out, self, True)
    r = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    copy_elements(r, self)
    return r


cdef int warn_expanded(str name, TensorBase self, str instead) except -1:
    """Writes of one value by positions into elements that share memory are carried out, as in PyTorch."""
    if has_internal_overlap(self):
        from tensorrt_lite._C.core.warning import warn
        warn(f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. "
             f"This also applies to advanced indexing e.g. {instead}")
    return 0


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


cdef int check_sources(str name, TensorBase self, int mode, TensorBase index, TensorBase source) except -1:
    """Refuse, in place, indices and values that share memory with what is written."""
    if mode == INPLACE:
        check_no_overlap(name, self, index, False)
        check_no_overlap(name, self, source, False)
    return 0


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


cdef int warn_copied(TensorBase t, str what) except -1:
    """searchsorted's warning of a copy, given once."""
    if not t.contiguous:
        from tensorrt_lite._C.core.warning import warn_once
        warn_once(f"torch.searchsorted(): {what} tensor is non-contiguous, this will lower the performance due to extra data copy when converting non-contiguous "
                  f"tensor to contiguous, please use contiguous {what} tensor if possible. This message will only appear once per program.")
    return 0


cdef TensorBase vector_index(str name, TensorBase index):
    """A 0- or 1-dimensional integer index as contiguous int64."""
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector" + ("" if name == "index_select" else f", but got dim: {index.ndim} with type: {dtype_text(index.dtype)} and size: {shape_text(index)}"))
    if index.dtype != I64 and index.dtype != I32:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {dtype_text(index.dtype)}")
    return index64(index)


cdef TensorBase vector_offsets(str name, TensorBase table, TensorBase index, int dim, bint negative, object error, int64_t skipped=NOT_SKIPPED):
    """Byte offsets of a checked index (contiguous int64) along a dimension; without `error`, IndexError in the words of index_select and embedding."""
    cdef TensorBase offsets = empty_tensor(1, &index.numel, I64, place_of(index))
    cdef int64_t size = table.sizes[dim], bad = -1
    if run_offsets(table.device_type, offsets, index, size, table.strides[dim] * ITEM_SIZE[table.dtype], negative, False, skipped, name):
        bad = first_bad(index, -size if negative else 0, size)
    if bad >= 0:
        if name == "embedding_bag":
            raise hinted("embedding", RuntimeError(f"Index {bad} of input takes value {index_at(index, bad)} which is not in the valid range [0, {size})"))
        if error is None:
            raise hinted("embedding", IndexError(f"index out of range in self ({name}: index {index_at(index, bad)} at position {bad}, dimension {dim} has size {size})"))
        raise error(f"{name}(): index {index_at(index, bad)} is out of bounds for dimension {dim} with size {size}")
    return offsets


cdef object bags_of_ends(object ends, int64_t count):
    """The bag of each of `count` indices, of where bags begin and the last one ends."""
    return _ops.repeat_interleave(_ops.arange(ends.shape[0] - 1, device=ends.device), ends[1:] - ends[:-1], output_size=count)


cdef TensorBase clone_of(TensorBase t):
    cdef TensorBase r = empty_tensor(t.ndim, t.sizes, t.dtype, place_of(t))
    copy_elements(r, t)
    return r


cdef TensorBase copy_in_order(TensorBase t):
    """A copy with the order of dimensions in memory that t has."""
    cdef TensorBase r = empty_like_tensor(t, t.dtype)
    copy_elements(r, t)
    return r


cdef TensorBase empty_in_order(int ndim, const int64_t* sizes, const int64_t* source, int dtype, int place):
    """An empty tensor without gaps whose dimensions have the order of the strides `source`; those of 0 keep their place."""
    cdef int64_t strides[MAX_DIMS]
    cdef int order[MAX_DIMS]
    cdef int64_t n = 1
    cdef int i, j, k
    for i in range(ndim):
        order[i] = k = i
        for j in range(i - 1, -1, -1):
            if source[order[j]] == 0 or source[order[k]] == 0:
                continue
            if source[order[j]] >= source[order[k]]:
                break
            order[j], order[k] = order[k], order[j]
            k = j
    for i in range(ndim - 1, -1, -1):
        strides[order[i]] = n
        n *= max(sizes[order[i]], <int64_t>1)
    return empty_strided_tensor(ndim, sizes, strides, dtype, place)


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
        if v.device_type != self.device_type and not v.keys & K_CPU:
            raise RuntimeError(f"{name}(): Expected all tensors to be on the same device, but found at least two devices, {(<object>self).device} and {(<object>v).device}!")
        return beside(cast_value(v, self.dtype), self)
    if not is_number(value):
        raise TypeError(f"{name}(): argument 'value' must be Number, not {type(value).__name__}")
    to_scalar(value, &s)
    if s.kind == 3 and category[self.dtype] != CAT_COMPLEX and name == "index_fill_":
        raise RuntimeError(f"{name}(): Converting complex Scalar to non-complex type is not supported")
    check_number(&s, self.dtype)
    return number_beside(self, self.dtype, &s)


cdef TensorBase cast_value(TensorBase value, int dtype):
    """A value without dimensions in another type, which has to hold it."""
    cdef Scalar s
    if value.dtype != dtype and value.keys & K_CPU and value.storage.block != NULL and not value.keys & K_WRAPPED:
        load_number(data_of(value), value.dtype, &s)
        if value.dtype == U64 and s.i < 0:
            s.kind = 4
        check_number(&s, dtype)
    return cast_to(value, dtype)


cdef TensorBase flat_offsets(TensorBase flat, TensorBase table):
    """Byte offsets of row-major positions (contiguous int64, may count from the end; IndexError) in a tensor of any strides."""
    cdef TensorBase coordinates, positions = empty_tensor(1, &flat.numel, I64, place_of(flat))
    cdef int64_t sizes[2]
    cdef int k
    cdef int64_t item = ITEM_SIZE[table.dtype], one = 1
    if run_offsets(table.device_type, positions, flat, table.numel, item if table.contiguous else 1, True, False, NOT_SKIPPED, "take"):
        check_flat(flat, table)
    if table.contiguous:
        return positions
    sizes[0] = table.ndim
    sizes[1] = flat.numel
    coordinates = empty_tensor(2, sizes, I64, place_of(flat))
    run_unravel(table.device_type, positions, table.ndim, table.sizes, coordinates, 1, flat.numel)
    for k in range(table.ndim):
        run_offsets(table.device_type, positions, make_view(coordinates, 1, &flat.numel, &one, k * flat.numel), table.sizes[k], table.strides[k] * item, False, k > 0, NOT_SKIPPED, "take")
    return positions


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
        if write_lines("take", flat_view(table), flat_view(r), flat_view(flat), 0, PUT_SET, True, False, True):
            check_flat(flat, table)
        return 0
    offsets = flat_offsets(flat, table)
    flat_rows(&rows, table, r, offsets)
    return gather_from(&rows, table, r, offsets)


cdef int flat_rows(RowArgs* r, TensorBase table, TensorBase dense, TensorBase offsets) except -1:
    r.n_outer = 0
    r.n_inner = 0
    r.m = offsets.numel
    r.offset = <const int64_t*>memory_of(offsets)
    r.table = memory_of(table)
    r.dense = memory_of(dense)
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
