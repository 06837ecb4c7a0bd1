"""Joining on the CPU, beneath the checks of joining.pyx: rows out of parts, triangles, and results whose dimensions consist of pieces."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
from tensorrt_lite._C.core.allocator cimport block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.iterator cimport fill_elements
from tensorrt_lite._C.core.parallel cimport COPY_GRAIN, GRAIN, parallel_for, task_fn
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, make_view
from tensorrt_lite._C.steps.joining cimport CatArgs, PieceArgs
from tensorrt_lite._C.ops.joining.parts cimport CHANNELS_LAST_PARTS, CONTIGUOUS_PARTS, copy_parts
from tensorrt_lite._C.ops.support cimport run_held
from tensorrt_lite._C.steps.joining cimport set_join, set_pieces, set_triangle


cdef extern from *:
    """
    #include "isa.h"
    ISA_TASK(piece_copies)
    ISA_TASK(piece_sums)
    ISA_TASK(cat_rows)
    ISA_TASK(interleave_parts)
    """
    task_fn trt_piece_copies "piece_copies"()
    task_fn trt_piece_sums "piece_sums"()
    task_fn trt_cat_rows "cat_rows"()
    task_fn trt_interleave_parts "interleave_parts"()

cdef task_fn piece_copies = trt_piece_copies()
cdef task_fn piece_sums = trt_piece_sums()
cdef task_fn cat_rows = trt_cat_rows()
cdef task_fn interleave_parts = trt_interleave_parts()


# ---- rows out of parts ---------------------------------------------------------------------------------------------------

cdef TensorBase channels_first_view(TensorBase t):
    """A channels-last tensor with its dimensions in the order they lie in memory: N, spatial..., C."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int k
    sizes[0] = t.sizes[0]
    strides[0] = t.strides[0]
    for k in range(2, t.ndim):
        sizes[k - 1] = t.sizes[k]
        strides[k - 1] = t.strides[k]
    sizes[t.ndim - 1] = t.sizes[1]
    strides[t.ndim - 1] = t.strides[1]
    return make_view(t, t.ndim, sizes, strides, t.offset)


cdef int join_rows(TensorBase out, list pieces, int64_t outer) except -1:
    """Fill `out` (contiguous) with rows that consist of one part of each piece (contiguous, of out's type)."""
    cdef CatArgs a
    cdef int n = 0, k, total = len(pieces)
    cdef TensorBase t
    cdef int64_t nbytes = out.numel * ITEM_SIZE[out.dtype]
    cdef char* memory
    cdef trt_block** held
    cdef trt_block* target
    cdef bint words
    if nbytes == 0:
        return 0
    memory = <char*>malloc(total * 3 * sizeof(void*))
    if memory == NULL:
        raise MemoryError
    a.part = <const char**>memory
    held = <trt_block**>(memory + 2 * total * sizeof(void*))
    a.bytes = <const int64_t*>(memory + total * sizeof(void*))
    for x in pieces:
        t = <TensorBase>x
        if t.numel:
            a.part[n] = data_of(t)
            (<int64_t*>a.bytes)[n] = t.numel // outer * ITEM_SIZE[t.dtype]
            held[n] = t.storage.block
            n += 1
    a.n = n
    a.out = data_of(out)
    a.row = nbytes // outer
    words = n > 1 and a.bytes[0] in (1, 2, 4, 8, 16)
    for k in range(1, n):
        words = words and a.bytes[k] == a.bytes[0]
    if nbytes < 65536:
        if words:
            interleave_parts(&a, 0, outer)
        else:
            cat_rows(&a, 0, nbytes)
        free(memory)
        return 0
    target = out.storage.block
    for k in range(n):
        trt_block_hold(held[k])
    trt_block_hold(target)
    with nogil:
        if words:
            parallel_for(outer, 1 + COPY_GRAIN // a.row, 64, interleave_parts, &a)
        else:
            parallel_for(nbytes, COPY_GRAIN, 4096, cat_rows, &a)
    for k in range(n):
        block_drop(held[k])
    block_drop(target)
    free(memory)
    return 0


cdef int join_on_cpu(TensorBase result, list tensors, int d, bint stacked, int layout) except -1:
    cdef int64_t outer = 1
    cdef int k
    if layout == CHANNELS_LAST_PARTS:
        # in the order in which the dimensions lie in memory the parts are contiguous
        d = 0 if d == 0 else result.ndim - 1 if d == 1 else d - 1
        result = channels_first_view(result)
        tensors = [channels_first_view(<TensorBase>x) for x in tensors]
    elif layout != CONTIGUOUS_PARTS:
        return copy_parts(result, tensors, d, stacked)
    for k in range(d):
        outer *= result.sizes[k]
    return join_rows(result, tensors, outer)


# ---- triangles ------------------------------------------------------------------------------------------------------

cdef struct TriangleJob:
    char* dst
    const char* src
    int64_t rows, cols, diagonal
    bint upper
    int item


cdef void triangle_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Rows [begin, end) of the stacked matrices."""
    cdef TriangleJob* job = <TriangleJob*>context
    cdef int64_t row, edge, width = job.cols * job.item
    cdef char* d
    cdef const char* s
    for row in range(begin, end):
        d = job.dst + row * width
        s = job.src + row * width
        # columns before `edge` belong to the lower part
        edge = row % job.rows + job.diagonal + (0 if job.upper else 1)
        edge = max(<int64_t>0, min(edge, job.cols)) * job.item
        if job.upper:
            memset(d, 0, edge)
            if d != s:
                memcpy(d + edge, s + edge, width - edge)
        else:
            if d != s:
                memcpy(d, s, edge)
            memset(d + edge, 0, width - edge)


cdef int triangle_on_cpu(TensorBase x, TensorBase r, int64_t diagonal, bint upper) except -1:
    cdef TriangleJob job
    cdef int64_t rows
    cdef trt_block* target = r.storage.block
    cdef trt_block* source = x.storage.block
    job.rows = x.sizes[x.ndim - 2]
    job.cols = x.sizes[x.ndim - 1]
    # clamped so that adding a row number can't overflow
    job.diagonal = max(-job.rows - 1, min(diagonal, job.cols + 1))
    job.upper = upper
    job.item = ITEM_SIZE[x.dtype]
    job.dst = data_of(r)
    job.src = data_of(x)
    rows = x.numel // job.cols
    if x.numel < 8192:
        triangle_task(&job, 0, rows)
        return 0
    trt_block_hold(source)
    trt_block_hold(target)
    with nogil:
        parallel_for(rows, max(<int64_t>1, GRAIN // job.cols), 1, triangle_task, &job)
    block_drop(source)
    block_drop(target)
    return 0


# ---- pieces ---------------------------------------------------------------------------------------------------------

cdef enum:
    SHORT_LINE = 64                # elements of a line below which margins are filled before, all at once


cdef int pieces(PieceArgs* a, PieceArgs* given, TensorBase source, TensorBase result, const Scalar* margin, bint sums) except -1:
    if sums:
        return run_held(piece_sums, a, result.numel // a.group, result.numel, source, result)
    if margin != NULL and result.ndim and result.sizes[result.ndim - 1] < SHORT_LINE:
        fill_elements(result, margin)
        a.filled = 1
    return run_held(piece_copies, a, result.numel, result.numel, source, result)


set_join(DEV_CPU, join_on_cpu)
set_triangle(DEV_CPU, triangle_on_cpu)
set_pieces(DEV_CPU, pieces)
