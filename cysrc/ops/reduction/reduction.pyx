# Kernels of the reduction family: bring the input into one of the layouts of loops/kernels.h and call the raw kernel.
#
# Layouts: rows (the reduced run has one stride, one result per row), columns (results lie side by side in memory and the
# reduction runs across), chunks (one long run, cut in pieces of REDUCE_CHUNK whose partial results merge in order), packed
# (many short rows, turned block by block into columns: a vector then serves several rows).
# Which one is taken depends on shape and strides only, never on the number of threads.
from libc.math cimport INFINITY, NAN, fabs
from tensorrt_lite._C.ops.kernels cimport *

cdef inline int64_t at_least_one(int64_t n) noexcept nogil:
    return n if n > 1 else 1


cdef extern from "stage.h" nogil:
    void transpose_block(char* dst, int64_t dst_row, const char* src, int64_t src_col_stride, int64_t rows, int64_t cols, int item)

cdef enum:
    MIN_COLUMNS = 16               # columns below which rows are faster than the column kernel
    SHORT_ROW = 48                 # elements up to which rows are turned into columns, when there are MIN_ROWS of them
    MIN_ROWS = 32
    PACK = 2048                    # elements of a packed block, a share of the work


# What cysrc/cuda/reduction.pyx and its neighbours install: the kernels of tensors on a CUDA device, beneath the same checks.
ctypedef int (*device_reduce_fn)(TensorBase self, const bint* reduced, int op, const reduce_params* params, TensorBase result, TensorBase second) except -1
ctypedef int (*device_scan_fn)(TensorBase x, int dim, int op, TensorBase result, TensorBase indices) except -1
ctypedef int (*device_softmax_fn)(TensorBase x, int dim, bint log, TensorBase result) except -1
ctypedef int (*device_softmax_backward_fn)(TensorBase grad, TensorBase y, int dim, bint log, TensorBase result) except -1
cdef device_reduce_fn device_reduce
cdef device_scan_fn device_scan
cdef device_softmax_fn device_softmax
cdef device_softmax_backward_fn device_softmax_backward


def _install_device_kernel(str name, size_t function):
    global device_reduce, device_scan, device_softmax, device_softmax_backward
    if name == "reduce":
        device_reduce = <device_reduce_fn>function
    elif name == "scan":
        device_scan = <device_scan_fn>function
    elif name == "softmax":
        device_softmax = <device_softmax_fn>function
    elif name == "softmax_backward":
        device_softmax_backward = <device_softmax_backward_fn>function
    else:
        raise ValueError(name)


cdef struct Reduction:
    const reduce_kernels* kernels
    reduce_params params
    const char* data
    char* out
    char* partials
    int64_t n                      # length of the reduced run
    int64_t elem_stride
    int64_t rows
    int64_t row_stride
    int64_t out_item
    int outer_ndim                 # kept dimensions that don't merge into `rows`
    int64_t outer_sizes[MAX_DIMS]
    int64_t outer_strides[MAX_DIMS]
    int64_t outer_out[MAX_DIMS]
    int64_t base
    int64_t out_base
    int64_t item
    int64_t group                  # packed: rows (or blocks of rows) a share


cdef void run_reduce_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Reduction* r = <Reduction*>context
    r.kernels.rows(r.data + r.base, r.row_stride, r.elem_stride, r.n, r.out + r.out_base, r.out_item, begin, end, &r.params)


cdef void run_reduce_cols(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Reduction* r = <Reduction*>context
    r.kernels.cols(r.data + r.base, r.elem_stride, r.n, r.out + r.out_base, begin, end, &r.params)


cdef void run_reduce_chunks(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Reduction* r = <Reduction*>context
    r.kernels.chunks(r.data, r.elem_stride, r.n, REDUCE_CHUNK, r.partials, begin, end, &r.params)


cdef void run_outer(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Outer positions [begin, end), each a block of rows."""
    cdef Reduction r = (<Reduction*>context)[0]
    cdef int64_t q, i
    cdef int k
    for i in range(begin, end):
        q = i
        r.base = 0
        r.out_base = 0
        for k in range(r.outer_ndim - 1, -1, -1):
            r.base += (q % r.outer_sizes[k]) * r.outer_strides[k]
            r.out_base += (q % r.outer_sizes[k]) * r.outer_out[k]
            q //= r.outer_sizes[k]
        if r.params.out2 != NULL:
            r.params.out2 = (<Reduction*>context).params.out2 + (r.out_base // r.out_item) * r.params.out2_stride
        if r.rows < 0:
            r.kernels.cols(r.data + r.base, r.elem_stride, r.n, r.out + r.out_base, 0, -r.rows, &r.params)
        else:
            r.kernels.rows(r.data + r.base, r.row_stride, r.elem_stride, r.n, r.out + r.out_base, r.out_item, 0, r.rows, &r.params)


cdef void reduce_packed(Reduction* r, const char* pack, int64_t first, int64_t columns) noexcept nogil:
    """Reduce a packed block (n, columns) into the results from `first` on."""
    cdef reduce_params params = r.params
    if params.out2 != NULL:
        params.out2 = params.out2 + first * params.out2_stride
    r.kernels.cols(pack, columns * r.item, r.n, r.out + first * r.out_item, 0, columns, &params)


cdef void run_short_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Shares [begin, end) of `group` rows, each row contiguous."""
    cdef Reduction* r = <Reduction*>context
    cdef double pack[PACK + 2 * SHORT_ROW]
    cdef int64_t share, first, columns
    for share in range(begin, end):
        first = share * r.group
        columns = r.group if r.group < r.rows - first else r.rows - first
        transpose_block(<char*>pack, columns * r.item, r.data + first * r.row_stride, r.row_stride, r.n, columns, <int>r.item)
        reduce_packed(r, <const char*>pack, first, columns)


cdef void run_narrow_blocks(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Shares of `group` outer positions, each a block (n, rows) with few rows side by side."""
    cdef Reduction* r = <Reduction*>context
    cdef double pack[PACK + 2 * SHORT_ROW]
    cdef int64_t share, first, blocks, o, k, width = r.rows * r.item
    cdef char* p
    cdef const char* block
    for share in range(begin, end):
        first = share * r.group
        blocks = r.group if r.group < r.outer_sizes[0] - first else r.outer_sizes[0] - first
        for o in range(blocks):
            block = r.data + (first + o) * r.outer_strides[0]
            p = <char*>pack + o * width
            for k in range(r.n):
                copy_few(p + k * blocks * width, block + k * r.elem_stride, r.rows, <int>r.item)
        reduce_packed(r, <const char*>pack, first * r.rows, blocks * r.rows)


cdef inline void copy_few(char* d, const char* s, int64_t n, int item) noexcept nogil:
    """Fewer elements than a call of memcpy is worth."""
    cdef int64_t i
    if item == 4:
        for i in range(n):
            (<int32_t*>d)[i] = (<const int32_t*>s)[i]
    elif item == 8:
        for i in range(n):
            (<int64_t*>d)[i] = (<const int64_t*>s)[i]
    else:
        memcpy(d, s, n * item)


cdef int dims_mask(TensorBase self, const Dims* dim, bint* reduced, str op) except -1:
    """Mark the reduced dimensions; an empty list means all."""
    cdef int i, d
    for i in range(self.ndim):
        reduced[i] = dim == NULL or dim.n == 0
    if dim != NULL and dim.n:
        for i in range(dim.n):
            d = wrap_dim(dim.v[i], self.ndim)
            if self.ndim and reduced[d]:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims ({op})")
            if self.ndim:
                reduced[d] = True
    return 0


cdef TensorBase reduced_tensor(TensorBase self, const bint* reduced, bint keepdim, int dtype):
    cdef int64_t sizes[MAX_DIMS]
    cdef int i, n = 0
    for i in range(self.ndim):
        if not reduced[i]:
            sizes[n] = self.sizes[i]
            n += 1
        elif keepdim:
            sizes[n] = 1
            n += 1
    return empty_tensor(n, sizes, dtype, place_of(self))


cdef inline void hold_all(trt_block* a, trt_block* b, trt_block* c) noexcept:
    trt_block_hold(a)
    trt_block_hold(b)
    trt_block_hold(c)


cdef inline void drop_all(trt_block* a, trt_block* b, trt_block* c) noexcept:
    block_drop(a)
    block_drop(b)
    block_drop(c)


cdef int reduce_into(TensorBase self, const bint* reduced, int op, reduce_params* params, TensorBase result, TensorBase second, str name) except -1:
    """Reduce `self` over the marked dimensions into `result` (contiguous, kept dimensions in order)."""
    cdef Reduction r
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t kept_sizes[MAX_DIMS]
    cdef int64_t kept_strides[MAX_DIMS]
    cdef int64_t item = ITEM_SIZE[self.dtype], out_stride, outer = 1, chunks
    cdef int i, n_reduced = 0, n_kept = 0
    cdef trt_block* held
    cdef trt_block* written
    cdef trt_block* written2
    cdef trt_block* scratch
    cdef TensorBase whole
    cdef bint large
    cdef task_fn task
    cdef int64_t shares = 0
    r.kernels = reduce_table(op, self.dtype)
    if r.kernels.rows == NULL:
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(self.dtype)}'")
    if self.device_type == DEV_META or result.numel == 0:
        return 0
    if self.device_type == DEV_CUDA:
        return device_reduce(self, reduced, op, params, result, second)
    r.params = params[0]
    r.data = data_of(self)
    r.out = data_of(result)
    r.out_item = ITEM_SIZE[result.dtype]
    r.item = item
    r.base = 0
    r.out_base = 0
    if second is not None:
        r.params.out2 = data_of(second)
        r.params.out2_stride = ITEM_SIZE[second.dtype]
    else:
        r.params.out2 = NULL
        r.params.out2_stride = 0
    # merge neighbours among the reduced and among the kept dimensions
    for i in range(self.ndim):
        if reduced[i]:
            if self.sizes[i] == 1:
                continue
            if n_reduced and strides[n_reduced - 1] == self.strides[i] * self.sizes[i]:
                sizes[n_reduced - 1] *= self.sizes[i]
                strides[n_reduced - 1] = self.strides[i]
            else:
                sizes[n_reduced] = self.sizes[i]
                strides[n_reduced] = self.strides[i]
                n_reduced += 1
        else:
            if self.sizes[i] == 1:
                continue
            if n_kept and kept_strides[n_kept - 1] == self.strides[i] * self.sizes[i]:
                kept_sizes[n_kept - 1] *= self.sizes[i]
                kept_strides[n_kept - 1] = self.strides[i]
            else:
                kept_sizes[n_kept] = self.sizes[i]
                kept_strides[n_kept] = self.strides[i]
                n_kept += 1
    if n_reduced > 1:
        if self.numel == 0:
            # nothing to read: the strides of several empty dimensions would never merge
            n_reduced = 1
            sizes[0] = 0
            strides[0] = 1
        elif op != REDUCE_ARGMAX and op != REDUCE_ARGMIN and n_kept == 0 and non_overlapping_dense(self):
            # all elements, in whatever order they lie
            n_reduced = 1
            sizes[0] = self.numel
            strides[0] = 1
        else:
            return reduce_permuted(self, reduced, op, params, result, second, name)
    r.n = sizes[0] if n_reduced else 1
    r.elem_stride = strides[0] * item if n_reduced else item
    large = self.numel >= 8192
    held = self.storage.block
    written = result.storage.block
    written2 = written if second is None else second.storage.block
    if n_kept == 0:
        r.row_stride = 0
        if r.n < 4 * REDUCE_CHUNK or r.kernels.chunks == NULL or r.params.out2 != NULL:
            if not large:
                run_reduce_rows(&r, 0, 1)
                return 0
            hold_all(held, written, written2)
            with nogil:
                run_reduce_rows(&r, 0, 1)
            drop_all(held, written, written2)
            return 0
        chunks = (r.n + REDUCE_CHUNK - 1) // REDUCE_CHUNK
        scratch = block_alloc(chunks * REDUCE_PARTIAL_BYTES)
        r.partials = scratch.data
        hold_all(held, written, written2)
        with nogil:
            parallel_for(chunks, GRAIN // REDUCE_CHUNK, 1, run_reduce_chunks, &r)
            r.kernels.combine(r.partials, chunks, r.n, r.out, &r.params)
        drop_all(held, written, written2)
        block_drop(scratch)
        return 0
    # results lie side by side: columns; otherwise the last kept dimension makes the rows
    r.rows = kept_sizes[n_kept - 1]
    r.row_stride = kept_strides[n_kept - 1] * item
    out_stride = r.out_item * r.rows
    if r.row_stride == item and r.n > 1 and r.kernels.cols != NULL and r.rows >= MIN_COLUMNS and r.elem_stride != item:
        r.rows = -r.rows
    r.outer_ndim = n_kept - 1
    for i in range(n_kept - 2, -1, -1):
        r.outer_sizes[i] = kept_sizes[i]
        r.outer_strides[i] = kept_strides[i] * item
        r.outer_out[i] = out_stride
        out_stride *= kept_sizes[i]
        outer *= kept_sizes[i]
    if not large:
        run_outer(&r, 0, outer)
        return 0
    if r.n > 1 and r.n <= SHORT_ROW and item <= 8 and r.kernels.cols != NULL and r.rows > 0:
        # one block of short rows, or many blocks of a few columns
        task = NULL
        if outer == 1 and r.rows >= MIN_ROWS and r.elem_stride == item:
            task = run_short_rows
            r.group = at_least_one(PACK // r.n)
            shares = (r.rows + r.group - 1) // r.group
        elif r.outer_ndim == 1 and r.row_stride == item and r.rows > 1 and outer * r.rows >= MIN_ROWS and r.n * r.rows <= PACK:
            task = run_narrow_blocks
            r.group = at_least_one(PACK // (r.n * r.rows))
            shares = (outer + r.group - 1) // r.group
        if task != NULL:
            hold_all(held, written, written2)
            with nogil:
                parallel_for(shares, GRAIN // PACK, 1, task, &r)
            drop_all(held, written, written2)
            return 0
    hold_all(held, written, written2)
    with nogil:
        if outer == 1 and r.rows < 0:
            parallel_for(-r.rows, at_least_one(GRAIN // r.n), 64, run_reduce_cols, &r)
        elif outer == 1:
            parallel_for(r.rows, at_least_one(GRAIN // at_least_one(r.n)), 1, run_reduce_rows, &r)
        else:
            parallel_for(outer, at_least_one(GRAIN // (r.n * (r.rows if r.rows > 0 else -r.rows))), 1, run_outer, &r)
    drop_all(held, written, written2)
    return 0


cdef int reduce_permuted(TensorBase self, const bint* reduced, int op, reduce_params* params, TensorBase result, TensorBase second, str name) except -1:
    """Several reduced runs: sums, products and extremes go run by run, the rest over a copy with the reduced dimensions last."""
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef bint mask[MAX_DIMS]
    cdef int i, n = 0, kept = 0, last = -1
    cdef TensorBase view, copy, partial
    cdef reduce_params plain
    cdef bint stepwise = (op == REDUCE_SUM or op == REDUCE_PROD or op == REDUCE_MIN or op == REDUCE_MAX) and is_blas_type(self.dtype) and params.flags == 0
    if op == REDUCE_SUM and is_blas_type(self.dtype) and is_floating_type(self.dtype) and params.flags == REDUCE_MEAN:
        stepwise = True
    if stepwise:
        # the outermost reduced dimension first (columns), the rest by another pass
        plain = params[0]
        plain.flags = 0
        for i in range(self.ndim):
            mask[i] = False
        for i in range(self.ndim):
            if reduced[i] and self.sizes[i] > 1:
                mask[i] = True
                break
        partial = reduced_tensor(self, mask, True, self.dtype)
        reduce_into(self, mask, op, &plain, partial, None, name)
        for i in range(self.ndim):
            mask[i] = reduced[i]
        reduce_into(partial, mask, op, &plain, result, None, name)
        if params.flags == REDUCE_MEAN:
            _ops.div_(result, self.numel // at_least_one(result.numel))
        return 0
    for i in range(self.ndim):
        if not reduced[i]:
            sizes[n] = self.sizes[i]
            strides[n] = self.strides[i]
            n += 1
    kept = n
    for i in range(self.ndim):
        if reduced[i]:
            sizes[n] = self.sizes[i]
            strides[n] = self.strides[i]
            n += 1
    view = make_view(self, n, sizes, strides, self.offset)
    copy = empty_tensor(n, sizes, self.dtype, self.device_type)
    copy_elements(copy, view)
    for i in range(n):
        mask[i] = i >= kept
    return reduce_into(copy, mask, op, params, result, second, name)


cdef TensorBase reduce_op(TensorBase self, const Dims* dim, bint keepdim, int op, reduce_params* params, int dtype, TensorBase out, int mode, str name):
    cdef bint reduced[MAX_DIMS]
    cdef TensorBase result
    dims_mask(self, dim, reduced, name)
    result = reduced_tensor(self, reduced, keepdim, dtype)
    if mode != FRESH and out.dtype == dtype and out.contiguous and same_sizes(out, result) and out.storage.block != self.storage.block:
        result = out
    reduce_into(self, reduced, op, params, result, None, name)
    if result is out:
        return out
    return write_to_out(name, result, out, mode)


cdef inline int clear(reduce_params* p) noexcept:
    p.p = 0
    p.correction = 0
    p.flags = 0
    p.out2 = NULL
    p.out2_stride = 0
    return 0


cdef inline TensorBase converted(TensorBase self, int dtype):
    """In the type of the sum or product; kernels of CUDA convert what they load."""
    return self if self.device_type == DEV_CUDA else cast_to(self, dtype)


cdef TensorBase sum_cpu(TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode):
    cdef reduce_params p
    cdef TensorBase t = self
    cdef int target = dtype
    clear(&p)
    if target < 0:
        target = out.dtype if mode == OUT else (I64 if is_integral_or_bool_type(self.dtype) else self.dtype)
    if category[target] >= CAT_FLOAT:
        t = converted(self, target)
        return reduce_op(t, dim, keepdim, REDUCE_SUM, &p, target, out, mode, "sum")
    if category[self.dtype] >= CAT_FLOAT:
        t = cast_to(self, target)
    r = reduce_op(t, dim, keepdim, REDUCE_SUM, &p, I64, None if target != I64 else out, FRESH if target != I64 else mode, "sum")
    if target != I64:
        return write_to_out("sum", cast_to(r, target), out, mode)
    return r


cdef TensorBase mean_cpu(TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode):
    cdef reduce_params p
    cdef int target = self.dtype if dtype < 0 else dtype
    clear(&p)
    if category[target] < CAT_FLOAT:
        raise RuntimeError(f"mean(): could not infer output dtype. {'Input' if dtype < 0 else 'Optional'} dtype must be either a floating point or complex dtype. Got: {dtype_text(target)}")
    p.flags = REDUCE_MEAN
    if mode == OUT and dim != NULL and category[target] == CAT_COMPLEX and category[out.dtype] == CAT_FLOAT:
        import warnings
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=2)
        return write_to_out("mean", cast_to(mean_cpu(self, dim, keepdim, dtype, None, FRESH), out.dtype), out, mode)
    return reduce_op(converted(self, target), dim, keepdim, REDUCE_SUM, &p, target, out, mode, "mean")


cdef TensorBase prod_cpu(TensorBase self, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode):
    cdef reduce_params p
    cdef TensorBase t = self
    cdef int target = dtype
    clear(&p)
    if target < 0:
        target = out.dtype if mode == OUT else (I64 if is_integral_or_bool_type(self.dtype) else self.dtype)
    if category[target] >= CAT_FLOAT:
        t = converted(self, target)
    elif category[self.dtype] >= CAT_FLOAT:
        t = cast_to(self, target)
    if category[target] >= CAT_FLOAT:
        return reduce_op(t, dim, keepdim, REDUCE_PROD, &p, target, out, mode, "prod")
    return write_to_out("prod", cast_to(reduce_op(t, dim, keepdim, REDUCE_PROD, &p, I64, None, FRESH, "prod"), target), out, mode)


cdef int check_not_empty(TensorBase self, const Dims* dim, str name) except -1:
    cdef int i
    if self.numel:
        return 0
    if dim == NULL or dim.n == 0:
        raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
    for i in range(dim.n):
        if self.ndim and self.sizes[wrap_dim(dim.v[i], self.ndim)] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {wrap_dim(dim.v[i], self.ndim)} to have non-zero size.")
    return 0


cdef TensorBase amax_cpu(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    cdef reduce_params p
    clear(&p)
    check_not_empty(self, dim, "amax")
    if mode == OUT and out.dtype != self.dtype:
        raise RuntimeError(f"Expected the dtype for input and out to match, but got {dtype_text(self.dtype)} for input's dtype and {dtype_text(out.dtype)} for out's dtype.")
    return reduce_op(self, dim, keepdim, REDUCE_MAX, &p, self.dtype, out, mode, "amax")


cdef TensorBase amin_cpu(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    cdef reduce_params p
    clear(&p)
    check_not_empty(self, dim, "amin")
    if mode == OUT and out.dtype != self.dtype:
        raise RuntimeError(f"Expected the dtype for input and out to match, but got {dtype_text(self.dtype)} for input's dtype and {dtype_text(out.dtype)} for out's dtype.")
    return reduce_op(self, dim, keepdim, REDUCE_MIN, &p, self.dtype, out, mode, "amin")


cdef object extreme_dim(TensorBase self, int64_t dim, bint keepdim, int op, str name, object out, int mode):
    """(values, indices) along one dimension."""
    cdef reduce_params p
    cdef bint reduced[MAX_DIMS]
    cdef Dims d
    cdef int i
    cdef TensorBase values, indices
    clear(&p)
    d.n = 1
    d.v[0] = wrap_dim(dim, self.ndim)
    check_not_empty(self, &d, name)
    if category[self.dtype] == CAT_COMPLEX:
        raise RuntimeError(f"{name}(): does not support complex input")
    for i in range(self.ndim):
        reduced[i] = i == d.v[0]
    if mode == OUT:
        check_out_type(name, <TensorBase>out[0], self.dtype)
        check_out_type(name, <TensorBase>out[1], I64)
    values = reduced_tensor(self, reduced, keepdim, self.dtype)
    indices = reduced_tensor(self, reduced, keepdim, I64)
    reduce_into(self, reduced, op, &p, indices, values, name)
    if mode == OUT:
        values = write_to_out(name, values, <TensorBase>out[0], OUT)
        indices = write_to_out(name, indices, <TensorBase>out[1], OUT)
    return (values, indices)


cdef object max_dim_cpu(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return extreme_dim(self, dim, keepdim, REDUCE_ARGMAX, "max", out, mode)


cdef object min_dim_cpu(TensorBase self, int64_t dim, bint keepdim, object out, int mode):
    return extreme_dim(self, dim, keepdim, REDUCE_ARGMIN, "min", out, mode)


cdef object named_result(str kind, object pair, tuple fields=("values", "indices")):
    from tensorrt_lite._C.core.return_types import result_type
    return result_type(kind, fields)(pair)


cdef object max_or_min(str name, bint largest, object input, object dim, object keepdim, object out):
    """max(input), max(input, dim, keepdim), max(input, other)."""
    cdef TensorBase self
    cdef object pair
    self = as_tensor_arg(input, name, "input")
    if dim is None:
        if not self.numel:
            raise RuntimeError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
        if category[self.dtype] == CAT_COMPLEX:
            raise RuntimeError(f"{name}(): does not support complex input")
        if isinstance(out, TensorBase) and (<TensorBase>out).dtype != self.dtype:
            # unlike amax, the extreme of all elements is converted
            check_out(out, name)
            if self.requires_grad and grad_mode():
                refuse_out(name)
            write_to_out(name, <TensorBase>(_ops.amax(self.detach()) if largest else _ops.amin(self.detach())), <TensorBase>out, OUT)
            bump_version(<TensorBase>out)
            return out
        return _ops.amax(self, out=out) if largest else _ops.amin(self, out=out)
    if isinstance(dim, TensorBase):
        return (_ops.maximum if largest else _ops.minimum)(self, dim, out=out)
    if out is not None:
        check_outs(out, name, 2)
        resolve(&OPS[OP_MAX_DIM], self.keys | keys_of_list(list(out)))
        pair = (op_max_dim if largest else op_min_dim)(self, parse_int(dim, name, "dim"), parse_bool(keepdim, name, "keepdim"), out, OUT)
        bump_outs(out)
    else:
        pair = (op_max_dim if largest else op_min_dim)(self, parse_int(dim, name, "dim"), parse_bool(keepdim, name, "keepdim"), None, FRESH)
    return named_result(name, pair)


def max(input, dim=None, keepdim=False, *, other=None, out=None):
    """The maximum of all elements, (values, indices) along a dimension, or the elementwise maximum with a tensor. NaN wins."""
    return max_or_min("max", True, input, other if dim is None else dim, keepdim, out)


def min(input, dim=None, keepdim=False, *, other=None, out=None):
    """The minimum of all elements, (values, indices) along a dimension, or the elementwise minimum with a tensor. NaN wins."""
    return max_or_min("min", False, input, other if dim is None else dim, keepdim, out)


cdef TensorBase arg_extreme(TensorBase self, object dim, bint keepdim, int op, str name, TensorBase out, int mode):
    cdef reduce_params p
    cdef Dims d
    clear(&p)
    if category[self.dtype] == CAT_COMPLEX or self.dtype == BOOL:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{dtype_text(self.dtype)}'")
    if mode == OUT:
        check_out_type(name, out, I64)
    if dim is None:
        if not self.numel:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
        return reduce_op(contiguous_of(self), NULL, keepdim, op, &p, I64, out, mode, name)
    d.n = 1
    d.v[0] = parse_int(dim, name, "dim")
    check_not_empty(self, &d, name)
    return reduce_op(self, &d, keepdim, op, &p, I64, out, mode, name)


cdef TensorBase argmax_cpu(TensorBase self, object dim, bint keepdim, TensorBase out, int mode):
    return arg_extreme(self, dim, keepdim, REDUCE_ARGMAX, "argmax", out, mode)


cdef TensorBase argmin_cpu(TensorBase self, object dim, bint keepdim, TensorBase out, int mode):
    return arg_extreme(self, dim, keepdim, REDUCE_ARGMIN, "argmin", out, mode)


cdef TensorBase truth(TensorBase self, const Dims* dim, bint keepdim, int op, str name, TensorBase out, int mode):
    cdef reduce_params p
    clear(&p)
    if mode == OUT and out.dtype != BOOL and out.dtype != U8:
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {dtype_text(out.dtype)}")
    if self.dtype == U8 and mode != OUT:
        return write_to_out(name, cast_to(reduce_op(self, dim, keepdim, op, &p, BOOL, None, FRESH, name), U8), out, mode)
    return reduce_op(self, dim, keepdim, op, &p, BOOL, out, mode, name)


cdef TensorBase all_cpu(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    return truth(self, dim, keepdim, REDUCE_ALL, "all", out, mode)


cdef TensorBase any_cpu(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    return truth(self, dim, keepdim, REDUCE_ANY, "any", out, mode)


cdef TensorBase count_nonzero_cpu(TensorBase self, const Dims* dim):
    cdef reduce_params p
    clear(&p)
    return reduce_op(self, dim, False, REDUCE_COUNT_NONZERO, &p, I64, None, FRESH, "count_nonzero")


cdef TensorBase var_kernel_cpu(TensorBase self, const Dims* dim, double correction, bint keepdim, bint root, TensorBase out, int mode):
    cdef reduce_params p
    cdef str name = "std" if root else "var"
    cdef TensorBase parts
    clear(&p)
    if category[self.dtype] < CAT_FLOAT:
        raise RuntimeError(f"std and var only support floating point and complex dtypes")
    if category[self.dtype] == CAT_COMPLEX:
        # the variance of a complex variable is that of its parts, added
        parts = <TensorBase>_ops.view_as_real(self.detach())
        if mode == OUT and category[out.dtype] == CAT_FLOAT and promotion[parts.dtype][out.dtype] == out.dtype:
            parts = cast_to(parts, out.dtype)
        re = var_kernel_cpu(<TensorBase>parts.select(-1, 0), dim, correction, keepdim, False, None, FRESH)
        im = var_kernel_cpu(<TensorBase>parts.select(-1, 1), dim, correction, keepdim, False, None, FRESH)
        total = re + im
        return write_to_out(name, <TensorBase>(total.sqrt() if root else total), out, mode)
    p.correction = correction
    p.flags = REDUCE_SQRT if root else 0
    if mode == OUT and category[out.dtype] == CAT_FLOAT and promotion[self.dtype][out.dtype] == out.dtype:
        self = cast_to(self, out.dtype)          # computed in the wider type of the output
    return reduce_op(self, dim, keepdim, REDUCE_VAR, &p, self.dtype, out, mode, name)


cdef object moments(object input, object dim, object unbiased, object correction, object keepdim, object out, bint root, str name):
    cdef Dims d
    cdef const Dims* dims = NULL
    cdef double c
    if isinstance(dim, bool):
        # var(input, unbiased)
        unbiased, dim = dim, None
    c = 1.0
    if correction is not None:
        c = parse_double(correction, name, "correction")
    elif unbiased is not None:
        c = 1.0 if unbiased else 0.0
    if dim is not None:
        parse_dims(dim, &d, name, "dim")
        dims = &d
    self = as_tensor_arg(input, name, "input")
    if out is None:
        return op_var_kernel(self, dims, c, keepdim, root, None, FRESH)
    check_out(out, name)
    r = op_var_kernel(self, dims, c, keepdim, root, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return r


def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The variance over dimensions, divided by n - correction (1 unless said otherwise)."""
    return moments(input, dim, unbiased, correction, keepdim, out, False, "var")


def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The standard deviation over dimensions, with n - correction in the denominator (1 unless said otherwise)."""
    return moments(input, dim, unbiased, correction, keepdim, out, True, "std")


def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(variance, mean)."""
    v = moments(input, dim, unbiased, correction, keepdim, None, False, "var_mean")
    return v, mean(input, None if isinstance(dim, bool) else dim, keepdim)


def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """(standard deviation, mean)."""
    v = moments(input, dim, unbiased, correction, keepdim, None, True, "std_mean")
    return v, mean(input, None if isinstance(dim, bool) else dim, keepdim)


cdef TensorBase logsumexp_cpu(TensorBase self, const Dims* dim, bint keepdim, TensorBase out, int mode):
    cdef reduce_params p
    clear(&p)
    if mode == OUT and category[out.dtype] < CAT_FLOAT:
        raise RuntimeError(f"logsumexp(): Expected floating point type for result tensor, but got: {dtype_text(out.dtype)}")
    if category[self.dtype] == CAT_COMPLEX:
        return write_to_out("logsumexp", <TensorBase>complex_logsumexp(self.detach(), dims_tuple(dim), keepdim), out, mode)
    if category[self.dtype] < CAT_FLOAT:
        self = cast_to(self, default_float_code())
    if mode == OUT and category[out.dtype] == CAT_FLOAT and promotion[self.dtype][out.dtype] == out.dtype:
        self = cast_to(self, out.dtype)
    return reduce_op(self, dim, keepdim, REDUCE_LOGSUMEXP, &p, self.dtype, out, mode, "logsumexp")


cdef object complex_logsumexp(object x, object dims, bint keepdim):
    """Shifted by the largest real part."""
    if not x.numel():
        return x.exp().sum(dims, keepdim).log()
    top = x.real.amax(dims, True)
    top = top.masked_fill(top.isinf(), 0)
    total = (x - top).exp().sum(dims, True).log() + top
    return total if keepdim or not x.dim() else total.squeeze(dims if len(dims) else tuple(range(x.dim())))


cdef TensorBase vector_norm_cpu(TensorBase self, double ord, const Dims* dim, bint keepdim, int dtype, TensorBase out, int mode):
    cdef reduce_params p
    cdef int op, target
    cdef bint reduced[MAX_DIMS]
    cdef int i
    clear(&p)
    if dtype >= 0:
        self = cast_to(self, dtype if category[dtype] == CAT_COMPLEX or category[self.dtype] != CAT_COMPLEX else to_complex(dtype))
    if category[self.dtype] < CAT_FLOAT:
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype_text(self.dtype)}")
    target = to_real(self.dtype)
    if mode == OUT:
        check_out_type("linalg.vector_norm", out, target)
    p.p = ord
    if ord == 2.0:
        op = REDUCE_SQ_SUM
        p.flags = REDUCE_SQRT
    elif ord == 1.0:
        op = REDUCE_ABS_SUM
    elif ord == 0.0:
        return write_to_out("linalg.vector_norm", cast_to(reduce_op(self, dim, keepdim, REDUCE_COUNT_NONZERO, &p, I64, None, FRESH, "linalg.vector_norm"), target), out, mode)
    elif ord == INFINITY:
        op = REDUCE_ABS_MAX
    elif ord == -INFINITY:
        op = REDUCE_ABS_MIN
    else:
        op = REDUCE_NORM_P
    if self.numel == 0 and (ord < 0 or ord == INFINITY):
        dims_mask(self, dim, reduced, "linalg.vector_norm")
        if dim == NULL or dim.n == 0:
            raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor because the operation does not have an identity")
        for i in range(self.ndim):
            if reduced[i] and self.sizes[i] == 0:
                raise RuntimeError(f"linalg.vector_norm cannot compute the {ord} norm on the dimension {i} because this dimension is empty and the operation does not have an identity")
    return reduce_op(self, dim, keepdim, op, &p, target, out, mode, "linalg.vector_norm")


def linalg_vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):
    """(sum |x|^ord)^(1/ord) over dimensions; ord inf and -inf give max and min of |x|, 0 counts nonzeros."""
    cdef Dims d
    cdef const Dims* dims = NULL
    cdef TensorBase self = as_tensor_arg(x, "linalg_vector_norm", "input")
    cdef int code = parse_dtype(dtype, "linalg.vector_norm")
    if dim is not None:
        parse_dims(dim, &d, "linalg.vector_norm", "dim")
        dims = &d
    if code >= 0:
        if category[code] < CAT_FLOAT:
            raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex. Got {dtype_text(code)}")
        if category[self.dtype] == CAT_COMPLEX and category[code] != CAT_COMPLEX:
            raise RuntimeError(f"linalg.vector_norm: dtype should be complex for complex inputs. Got {dtype_text(code)}")
        if promotion[self.dtype][code] != code:
            raise RuntimeError(f"linalg.vector_norm: the dtype of the input ({dtype_text(self.dtype)}) should be convertible without narrowing to the specified dtype ({dtype_text(code)})")
    if out is None:
        return op_vector_norm(self, parse_double(ord, "linalg.vector_norm", "ord"), dims, keepdim, code, None, FRESH)
    check_out(out, "linalg.vector_norm")
    r = op_vector_norm(self, parse_double(ord, "linalg.vector_norm", "ord"), dims, keepdim, code, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return r


include "scan.pxi"
include "softmax.pxi"
include "backward.pxi"


# ---- compositions --------------------------------------------------------------------------------------------------

def sum_to_size(TensorBase self not None, *size):
    """Sum over dimensions so that the result has the given size (which must broadcast to the tensor's)."""
    cdef Dims d
    cdef int i, lead
    parse_size(size, &d, "sum_to_size", "size")
    if d.n > self.ndim:
        raise RuntimeError(f"size {{{list(dims_tuple(&d))}}} is not expandable to size {{{shape_text(self)}}}.")
    lead = self.ndim - d.n
    cdef list dims = list(range(lead))
    for i in range(d.n):
        if d.v[i] == 1 and self.sizes[lead + i] != 1:
            dims.append(lead + i)
        elif d.v[i] != self.sizes[lead + i]:
            raise RuntimeError(f"size {{{list(dims_tuple(&d))}}} is not expandable to size {{{shape_text(self)}}}.")
    if d.n == 0:
        return sum(self)
    if not dims:
        return self
    r = sum(self, dims, True)
    return r.reshape(dims_tuple(&d)) if lead else r


def aminmax(input, *, dim=None, keepdim=False, out=None):
    """(min, max) over one dimension or all. out: a tensor for each."""
    as_tensor_arg(input, "aminmax", "input")
    if out is not None:
        if not isinstance(out, (tuple, list)) or len(out) != 2:
            raise TypeError(f"aminmax(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
        for o in out:
            if as_tensor_arg(o, "aminmax", "out").dtype != (<TensorBase>input).dtype:
                raise RuntimeError(f"Expected out tensor to have dtype {dtype_of((<TensorBase>input).dtype)}, but got {o.dtype} instead")
        dims = list(range((<TensorBase>input).ndim)) if dim is None else dim
        return named_result("aminmax", (amin(input, dims, keepdim, out=out[0]), amax(input, dims, keepdim, out=out[1])), ("min", "max"))
    if dim is None and keepdim:
        shape = (1,) * input.dim()
        return named_result("aminmax", (amin(input).reshape(shape), amax(input).reshape(shape)), ("min", "max"))
    return named_result("aminmax", (amin(input, dim, keepdim), amax(input, dim, keepdim)), ("min", "max"))


def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """sum with NaN counted as zero."""
    as_tensor_arg(input, "nansum", "input")
    x = input
    if x.is_floating_point() or x.is_complex():
        x = _ops.where(x.isnan(), _ops.zeros_like(x), x)
    return sum(x, dim, keepdim, dtype=dtype, out=out)


def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None):
    """mean of the elements that are not NaN."""
    as_tensor_arg(input, "nanmean", "input")
    total = nansum(input, dim, keepdim, dtype=dtype)
    count = sum(~input.isnan(), dim, keepdim)
    return _ops.div(total, count, out=out)


def norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm over dimensions, 'fro' for the 2-norm, 'nuc' for the sum of the singular values of matrices."""
    if p == "nuc":
        if dim is None:
            if input.dim() != 2:
                raise RuntimeError(f"norm: p='nuc' needs a matrix or two dimensions dim, got shape {list(input.shape)}")
            dim = (0, 1)
        return _ops.linalg_matrix_norm(input, "nuc", dim, keepdim, dtype=dtype, out=out)
    if isinstance(p, str) and p != "fro":
        raise RuntimeError(f"norm: unknown order {p!r}")
    if p is None or p == "fro":
        p = 2.0
    return linalg_vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)


def logcumsumexp(input, dim):
    """log of the running sum of exponentials. Sums of 1, 2, 4, ... elements join by logaddexp: each is shifted by its own largest term, so that
    neither a large nor a not finite element reaches those before it. Of complex numbers they join one by one: the multiple of 2 pi in the
    imaginary part depends on the order, and PyTorch's is that one."""
    cdef int64_t n, i, reach = 1
    as_tensor_arg(input, "logcumsumexp", "input")
    if category[(<TensorBase>input).dtype] < CAT_FLOAT:
        raise NotImplementedError(f"\"logcumsumexp\" not implemented for '{dtype_text(input.dtype)}'")
    n = (input if input.ndim else input.unsqueeze(0)).size(dim)
    if category[(<TensorBase>input).dtype] == CAT_COMPLEX and n > 1:
        sums = list(input.unbind(dim))
        for i in range(1, n):
            sums[i] = sums[i].logaddexp(sums[i - 1])
        return _ops.stack(sums, dim)
    r = input.float() if input.dtype.itemsize == 2 else input
    while reach < n:
        r = _ops.cat((r.narrow(dim, 0, reach), r.narrow(dim, reach, n - reach).logaddexp(r.narrow(dim, 0, n - reach))), dim)
        reach *= 2
    return r.to(input.dtype) if r is not input else input.clone()


EXTRA_EXPORTS = {
    "max": "fm", "min": "fm", "var": "fm", "std": "fm", "var_mean": "f", "std_mean": "f", "linalg_vector_norm": "", "softmax": "fm", "log_softmax": "fm",
    "sum_to_size": "m", "aminmax": "fm", "nansum": "fm", "nanmean": "fm", "norm": "fm", "logcumsumexp": "fm",
}
