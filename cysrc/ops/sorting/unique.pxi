# Distinct elements and rows: runs of equals in a sorted copy (unique) or in the tensor itself (unique_consecutive).

cdef TensorBase shortened(TensorBase t, int64_t n):
    """The first n elements of a fresh vector; a copy when most of its memory would be waste."""
    cdef int64_t one = 1
    cdef TensorBase r
    if 2 * n >= t.numel:
        set_geometry(t, 1, &n, &one)
        return t
    r = empty_tensor(1, &n, t.dtype, t.device_type)
    memcpy(data_of(r), data_of(t), n * ITEM_SIZE[t.dtype])
    return r


cdef object distinct_elements(TensorBase self, bint ordered, bint inverse, bint counts):
    """(values, inverse or None, counts or None) of all elements; of runs of neighbours unless `ordered`."""
    cdef TensorBase x = contiguous_of(self), order = None, values, places = None, numbers = None
    cdef int64_t one = 1, n = self.numel, m
    cdef RunArgs r
    cdef SortArgs a
    cdef trt_block* held
    x = make_view(x, 1, &n, &one, x.offset)
    if ordered and n:
        values = empty_tensor(1, &n, x.dtype, DEV_CPU)
        if inverse:
            order = empty_tensor(1, &n, I64, DEV_CPU)
        a.what = SORT_ALL
        a.descending = 0
        a.ordered = 1
        a.keep = n
        run_lines(&a, x, values, order, 0)
        x = values
    values = empty_tensor(1, &n, x.dtype, DEV_CPU)
    if inverse:
        places = empty_tensor(self.ndim, self.sizes, I64, DEV_CPU)
    if counts:
        numbers = empty_tensor(1, &n, I64, DEV_CPU)
    r.x = data_of(x)
    r.order = <const int64_t*>data_of(order) if order is not None else NULL
    r.values = data_of(values)
    r.inverse = <int64_t*>data_of(places) if places is not None else NULL
    r.counts = <int64_t*>data_of(numbers) if numbers is not None else NULL
    r.n = n
    r.dtype = x.dtype
    held = x.storage.block
    trt_block_hold(held)
    with nogil:
        m = sort_runs(&r)
    block_drop(held)
    return shortened(values, m), places, shortened(numbers, m) if numbers is not None else None


cdef object distinct_rows(TensorBase self, int64_t dim, bint ordered, bint inverse, bint counts):
    """The same of slices along a dimension, in lexicographic order when `ordered`."""
    cdef int d, i
    cdef TensorBase x, order, places, starts, keys, first, numbers
    cdef RowsArgs r
    cdef int64_t m, n, whole
    cdef const int64_t* s
    if self.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, self.ndim)
    n = self.sizes[d]
    for i in range(self.ndim):
        if i != d and self.sizes[i] == 0:
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    if n >= (<int64_t>1 << 32):
        raise RuntimeError(f"unique: dimensions of 2**32 elements and more are not supported, got shape {shape_text(self)}")
    x = held(contiguous_of(<TensorBase>(<object>self).detach().movedim(d, 0)))
    r.x = data_of(x)
    r.n = n
    r.c = x.numel // n if n else 0
    r.dtype = x.dtype
    whole = x.numel * (8 if ITEM_SIZE[x.dtype] == 8 else 4) + 64
    keys = empty_tensor(1, &whole, U8, DEV_CPU)
    whole = n + 1
    order = empty_tensor(1, &whole, I64, DEV_CPU)          # two halves of 32-bit numbers: the order, and room to merge
    starts = empty_tensor(1, &n, I64, DEV_CPU)
    places = empty_tensor(1, &n, I64, DEV_CPU)
    r.keys = data_of(keys)
    r.order = <uint32_t*>data_of(order)
    r.spare = r.order + n
    cdef int64_t* start_of = <int64_t*>data_of(starts)
    cdef int64_t* place_of = <int64_t*>data_of(places)
    with nogil:
        sort_rows(&r, ordered)
        m = sort_row_runs(&r, start_of, place_of)
    starts = shortened(starts, m)
    s = <const int64_t*>data_of(starts)
    first = empty_tensor(1, &m, I64, DEV_CPU)
    numbers = empty_tensor(1, &m, I64, DEV_CPU)
    start_of = <int64_t*>data_of(first)
    place_of = <int64_t*>data_of(numbers)
    for whole in range(m):
        start_of[whole] = r.order[s[whole]]
        place_of[whole] = (s[whole + 1] if whole + 1 < m else n) - s[whole]
    return (<object>self).detach().index_select(d, first), places if inverse else None, numbers if counts else None


cdef object distinct_on_device(TensorBase self, object dim, bint ordered, bint inverse, bint counts):
    """The same out of sorts, comparisons of neighbours and sums. Rows are ordered by stable sorts from their last column to the first."""
    cdef trt_thread_state* state = tls()
    cdef int saved_mode = state.grad_mode
    cdef object x = (<object>self).detach(), rows, order = None
    state.grad_mode = 0
    try:
        rows = x.reshape(-1, 1) if dim is None else x.movedim(dim, 0)
        if dim is not None and self.numel == 0 and rows.shape[0]:
            raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
        n = rows.shape[0]
        rows = rows.reshape(n, -1 if self.numel else 1)
        if ordered and n:
            for c in range(rows.shape[1] - 1, -1, -1):
                column = rows.select(1, c)
                found = _ops.sort(column if order is None else column.index_select(0, order), 0, stable=True)[1]
                order = found if order is None else order.index_select(0, found)
            rows = rows.index_select(0, order)
        if n:
            starts_run = _ops.cat([_ops.ones(1, dtype=dtype_of(BOOL), device=x.device), _ops.ne(rows[1:], rows[:-1]).any(1)])
        else:
            starts_run = _ops.zeros(0, dtype=dtype_of(BOOL), device=x.device)
        starts = _ops.nonzero(starts_run).reshape(-1)
        values = rows.index_select(0, starts).reshape(-1) if dim is None else x.index_select(dim, starts if order is None else order.index_select(0, starts))
        places = numbers = None
        if inverse:
            places = _ops.cumsum(starts_run.to(dtype_of(I64)), 0) - 1
            if order is not None:
                places = _ops.empty_like(places).index_copy_(0, order, places)
            if dim is None:
                places = places.reshape(x.shape)
        if counts:
            numbers = _ops.cat([starts[1:], _ops.full((1 if n else 0,), n, dtype=dtype_of(I64), device=x.device)]) - starts
        return values, places, numbers
    finally:
        state.grad_mode = saved_mode


cdef object distinct_cpu(TensorBase self, object dim, bint ordered, bint inverse, bint counts):
    cdef str name = "unique" if ordered else "unique_consecutive"
    if category[self.dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"\"unique\" not implemented for '{dtype_text(self.dtype)}'")
    if self.device_type == DEV_META:
        raise NotImplementedError(f"{name}(): the result's shape depends on the data, which meta tensors do not have")
    if self.device_type == DEV_CUDA:
        return distinct_on_device(self, None if dim is None else wrap_dim(parse_int(dim, name, "dim"), self.ndim), ordered, inverse, counts)
    if dim is None:
        return distinct_elements(self, ordered, inverse, counts)
    return distinct_rows(self, parse_int(dim, name, "dim"), ordered, inverse, counts)


cdef object no_derivative(str name):
    raise NotImplementedError(f"the derivative for '{name}' is not implemented.")


cdef object chosen_results(tuple found):
    found = tuple([t for t in found if t is not None])
    return found if len(found) > 1 else found[0]


def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    """The distinct elements (or slices along dim) in order; with return_inverse where each element went, with counts how many there were."""
    return chosen_results(op_distinct(as_tensor_arg(input, "unique", "input"), dim, True, return_inverse, return_counts))


def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of each run of equal elements (or slices along dim), where each element went and how long the runs are."""
    return chosen_results(op_distinct(as_tensor_arg(input, "unique_consecutive", "input"), dim, False, return_inverse, return_counts))
