"""Reductions on the CPU: bring the input into one of the layouts of loops/reduction.h and call the loops.

Layouts: rows (the reduced run has one stride, one result per row), columns (results lie side by side in memory and the
reduction runs across), chunks (one long run, cut in pieces of REDUCE_CHUNK whose partial results merge in order), packed
(many short rows, turned block by block into columns: a vector then serves several rows).
Which one is taken depends on shape and strides only, never on the number of threads.
"""
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.core.allocator cimport block_alloc, block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport CAT_FLOAT, NUM_DTYPES, category, is_blas_type, is_floating_type
from tensorrt_lite._C.core.iterator cimport cast_to, copy_elements
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for, task_fn
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, MAX_DIMS, TensorBase, data_of, empty_tensor, make_view, non_overlapping_dense, place_of
from tensorrt_lite._C.core.text cimport dtype_text
from tensorrt_lite._C.ops.reduction.loops cimport reduce_kernels
from tensorrt_lite._C.steps.reduction cimport (
    REDUCE_ARGMAX, REDUCE_ARGMIN, REDUCE_CHUNK, REDUCE_COUNT, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_NAN_SUM, REDUCE_PARTIAL_BYTES, REDUCE_PROD, REDUCE_SUM,
    reduce_call, reduce_functors, set_reduce)


cdef extern from "stage.h" nogil:
    void transpose_block(char* dst, int64_t dst_row, const char* src, int64_t src_col_stride, int64_t rows, int64_t cols, int item)
    void gather_run(char* dst, const char* src, int64_t stride, int64_t n, int item)

cdef extern from *:
    """
    #include "isa.h"
    ISA_ROWS(reduce_kernels, reduce_table, REDUCE_COUNT * NUM_DTYPES)
    """
    const reduce_kernels* reduce_table()

cdef const reduce_kernels* REDUCERS = reduce_table()

cdef enum:
    MIN_COLUMNS = 16               # columns below which rows are faster than the column kernel
    MIN_FOLDED = 128               # rows from which sums take several rows of a few columns as one (reduce_cols.h)
    SHORT_ROW = 48                 # elements up to which rows are turned into columns, when there are MIN_ROWS of them
    MIN_ROWS = 32
    PACK = 2048                    # elements of a packed block, a share of the work


cdef inline int64_t at_least_one(int64_t n) noexcept nogil:
    return n if n > 1 else 1


cdef const reduce_kernels* reduce_loops(int operation, int dtype) noexcept:
    return REDUCERS + operation * NUM_DTYPES + dtype


cdef struct Reduction:
    const reduce_kernels* kernels
    reduce_call* call
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
    int64_t item
    int64_t group                  # packed: rows (or blocks of rows) a share


cdef void run_reduce_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Reduction* r = <Reduction*>context
    r.kernels.rows(r.data, r.row_stride, r.elem_stride, r.n, r.out, r.out_item, begin, end, r.call)


cdef void run_reduce_cols(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Reduction* r = <Reduction*>context
    r.kernels.cols(r.data, r.elem_stride, r.n, r.out, begin, end, r.call)


cdef void run_reduce_chunks(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Reduction* r = <Reduction*>context
    r.kernels.chunks(r.data, r.elem_stride, r.n, REDUCE_CHUNK, r.partials, begin, end, r.call)


cdef void run_outer(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Outer positions [begin, end), each a block of rows."""
    cdef const Reduction* r = <const Reduction*>context
    cdef reduce_call moved
    cdef const reduce_call* call = r.call
    cdef int64_t q, i, base, out_base
    cdef int k
    if call.second != NULL:
        moved = call[0]
        call = &moved
    for i in range(begin, end):
        q = i
        base = 0
        out_base = 0
        for k in range(r.outer_ndim - 1, -1, -1):
            base += (q % r.outer_sizes[k]) * r.outer_strides[k]
            out_base += (q % r.outer_sizes[k]) * r.outer_out[k]
            q //= r.outer_sizes[k]
        if call.second != NULL:
            moved.second = r.call.second + (out_base // r.out_item) * moved.second_stride
        if r.rows < 0:
            r.kernels.cols(r.data + base, r.elem_stride, r.n, r.out + out_base, 0, -r.rows, call)
        else:
            r.kernels.rows(r.data + base, r.row_stride, r.elem_stride, r.n, r.out + out_base, r.out_item, 0, r.rows, call)


cdef void reduce_packed(Reduction* r, const char* pack, int64_t first, int64_t columns) noexcept nogil:
    """Reduce a packed block (n, columns) into the results from `first` on."""
    cdef reduce_call moved
    cdef const reduce_call* call = r.call
    if call.second != NULL:
        moved = call[0]
        moved.second = call.second + first * call.second_stride
        call = &moved
    r.kernels.cols(pack, columns * r.item, r.n, r.out + first * r.out_item, 0, columns, call)


cdef void run_short_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Shares [begin, end) of `group` rows, each row contiguous or strided."""
    cdef Reduction* r = <Reduction*>context
    cdef double pack[PACK + 2 * SHORT_ROW]
    cdef int64_t share, first, columns, k
    for share in range(begin, end):
        first = share * r.group
        columns = r.group if r.group < r.rows - first else r.rows - first
        if r.elem_stride == r.item:
            transpose_block(<char*>pack, columns * r.item, r.data + first * r.row_stride, r.row_stride, r.n, columns, <int>r.item)
        else:
            for k in range(r.n):
                gather_run(<char*>pack + k * columns * r.item, r.data + first * r.row_stride + k * r.elem_stride, r.row_stride, columns, <int>r.item)
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


cdef inline void hold_all(trt_block* a, trt_block* b, trt_block* c) noexcept:
    trt_block_hold(a)
    trt_block_hold(b)
    trt_block_hold(c)


cdef inline void drop_all(trt_block* a, trt_block* b, trt_block* c) noexcept:
    block_drop(a)
    block_drop(b)
    block_drop(c)


cdef int reduce(reduce_call* call, TensorBase self, TensorBase result, TensorBase second) except -1:
    cdef Reduction r
    cdef int op = call.operation
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
    cdef bint large
    cdef task_fn task
    cdef int64_t shares = 0
    if (op == REDUCE_SUM or op == REDUCE_PROD or op == REDUCE_NAN_SUM) and self.dtype != result.dtype and category[result.dtype] >= CAT_FLOAT:
        self = cast_to(self, result.dtype)
        item = ITEM_SIZE[result.dtype]
    r.kernels = REDUCERS + op * NUM_DTYPES + self.dtype
    if r.kernels.rows == NULL:
        raise NotImplementedError(f"'reduce' has no loops of {reduce_functors[op].decode()} for '{dtype_text(self.dtype)}'")
    r.call = call
    r.data = data_of(self)
    r.out = data_of(result)
    r.out_item = ITEM_SIZE[result.dtype]
    r.item = item
    call.second = NULL
    if second is not None:
        call.second = data_of(second)
        call.second_stride = ITEM_SIZE[second.dtype]
    # merge neighbours among the reduced and among the kept dimensions
    for i in range(self.ndim):
        if call.reduced[i]:
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
            return reduce_permuted(call, self, result, second)
    r.n = sizes[0] if n_reduced else 1
    r.elem_stride = strides[0] * item if n_reduced else item
    large = self.numel >= 8192
    held = self.storage.block
    written = result.storage.block
    written2 = written if second is None else second.storage.block
    if n_kept == 0:
        r.row_stride = 0
        if r.n < 4 * REDUCE_CHUNK or r.kernels.chunks == NULL or second is not None:
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
            r.kernels.combine(r.partials, chunks, r.n, r.out, call)
        drop_all(held, written, written2)
        block_drop(scratch)
        return 0
    # results lie side by side: columns; otherwise the last kept dimension makes the rows
    r.rows = kept_sizes[n_kept - 1]
    r.row_stride = kept_strides[n_kept - 1] * item
    out_stride = r.out_item * r.rows
    if r.row_stride == item and r.n > 1 and r.kernels.cols != NULL and r.elem_stride != item and (
            r.rows >= MIN_COLUMNS or op == REDUCE_SUM and r.n >= MIN_FOLDED and r.elem_stride == r.rows * item and is_floating_type(self.dtype)):
        r.rows = -r.rows
    r.outer_ndim = n_kept - 1
    for i in range(n_kept - 2, -1, -1):
        r.outer_sizes[i] = kept_sizes[i]
        r.outer_strides[i] = kept_strides[i] * item
        r.outer_out[i] = out_stride
        out_stride *= kept_sizes[i]
        outer *= kept_sizes[i]
    task = NULL
    if r.n > 1 and r.n <= SHORT_ROW and item <= 8 and r.kernels.cols != NULL and r.rows > 0:
        # one block of short rows, or many blocks of a few columns
        if outer == 1 and r.rows >= MIN_ROWS:
            task = run_short_rows
            r.group = at_least_one(PACK // r.n)
            shares = (r.rows + r.group - 1) // r.group
        elif r.outer_ndim == 1 and r.row_stride == item and r.rows > 1 and outer * r.rows >= MIN_ROWS and r.n * r.rows <= PACK:
            task = run_narrow_blocks
            r.group = at_least_one(PACK // (r.n * r.rows))
            shares = (outer + r.group - 1) // r.group
    if not large:
        if task != NULL:
            task(&r, 0, shares)
        else:
            run_outer(&r, 0, outer)
        return 0
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


cdef int reduce_permuted(reduce_call* call, TensorBase self, TensorBase result, TensorBase second) except -1:
    """Several reduced runs: sums, products and extremes go run by run, the rest over a copy with the reduced dimensions last."""
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int i, n = 0, kept = 0, op = call.operation
    cdef TensorBase view, copy, partial
    cdef reduce_call part = call[0]
    cdef bint stepwise = (op == REDUCE_SUM or op == REDUCE_PROD or op == REDUCE_MIN or op == REDUCE_MAX) and is_blas_type(self.dtype) and call.flags == 0
    if op == REDUCE_SUM and is_blas_type(self.dtype) and is_floating_type(self.dtype) and call.flags == REDUCE_MEAN:
        stepwise = True
    if stepwise:
        # the outermost reduced dimension first (columns), the rest by another pass
        part.flags = 0
        for i in range(self.ndim):
            part.reduced[i] = False
        for i in range(self.ndim):
            if call.reduced[i] and self.sizes[i] > 1:
                part.reduced[i] = True
                break
        for i in range(self.ndim):
            sizes[i] = 1 if part.reduced[i] else self.sizes[i]
        partial = empty_tensor(self.ndim, sizes, self.dtype, place_of(self))
        reduce(&part, self, partial, None)
        for i in range(self.ndim):
            part.reduced[i] = call.reduced[i]
        reduce(&part, partial, result, None)
        if call.flags == REDUCE_MEAN:
            _ops.div_(result, self.numel // at_least_one(result.numel))
        return 0
    for i in range(self.ndim):
        if not call.reduced[i]:
            sizes[n] = self.sizes[i]
            strides[n] = self.strides[i]
            n += 1
    kept = n
    for i in range(self.ndim):
        if call.reduced[i]:
            sizes[n] = self.sizes[i]
            strides[n] = self.strides[i]
            n += 1
    view = make_view(self, n, sizes, strides, self.offset)
    copy = empty_tensor(n, sizes, self.dtype, self.device_type)
    copy_elements(copy, view)
    for i in range(n):
        part.reduced[i] = i >= kept
    return reduce(&part, copy, result, second)


set_reduce(DEV_CPU, reduce)
