"""How an iteration runs: its rows along dimension 0 through the operator's loop, which is contiguous.

An operand that is strided or of another type passes through a staged block of STAGE elements. Rows of a few elements are brought together there, so that
one call of the loop serves many of them. An operand that is contiguous along another dimension than the output is transposed tile by tile, so that both
sides touch whole cache lines.
"""
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from cpython.object cimport PyObject
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_drop
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.parallel cimport parallel_for, num_threads, GRAIN
from tensorrt_lite._C.core.tensor cimport TensorBase, ITEM_SIZE, MAX_DIMS, HELD_NUMEL
from tensorrt_lite._C.core import isa  # noqa: F401 (refuses what the loops cannot run on before they are chosen)

attach()

cdef extern from *:
    """
    #include "isa.h"
    #include "stage.h"
    typedef const trt_cast_row* trt_cast_rows;
    ISA_TABLE(trt_cast_rows, trt_cast_table)
    """
    ctypedef const cast_row* cast_rows "trt_cast_rows"
    const cast_rows* load_casts "trt_cast_table"() noexcept nogil

if load_casts() != NULL:
    cast_table = load_casts()[0]

cdef extern from "stage.h" nogil:
    void transpose_block(char* dst, int64_t dst_row, const char* src, int64_t src_col_stride, int64_t rows, int64_t cols, int item)
    void fill_block(char* dst, const char* value, int64_t n, int item)
    void short_rows_run(char** data, const int64_t* stride, int64_t n, const Scalar* row)
    void repeat_run(char** data, const int64_t* stride, int64_t n, const Scalar* repeated)
    void gather_run(char* dst, const char* src, int64_t stride, int64_t n, int item)
    void gather_rows(char* dst, const char* src, int64_t row_stride, int64_t stride, int64_t rows, int64_t n, int item)
    void convert_elements "trt_convert"(const cast_row* table, int to, char* dst, int64_t dst_stride, int source, const char* src, int64_t src_stride, int64_t n)

cdef enum:
    TILE_ROWS = 64
    TILE_COLS = 128
    SHORT_ROW = 24               # elements of a row up to which several rows go to the loop at once
    REPEATED_ROW = 64            # the same where rows are staged in any case, or an operand's only once for all

cdef inline bint is_direct(Iter* it, int i, int64_t stride) noexcept nogil:
    if it.dtype[i] != it.need[i]:
        return False
    if it.any_stride and stride != 0:
        return True
    return stride == ITEM_SIZE[it.need[i]] or (stride == 0 and (it.scalar_forms >> i & 1) != 0)


cdef inline bint repeats_inputs(const Iter* it, const int64_t* stride) noexcept nogil:
    """Whether every element of a row has the same operands, as those of expanded tensors, in the types of the loop."""
    cdef int i
    for i in range(it.nop):
        if it.dtype[i] != it.need[i] or i > 0 and stride[i] != 0:
            return False
    return it.nop > 1 and not it.any_stride


cdef void run_row(Iter* it, char** data, const int64_t* stride, int64_t n) noexcept nogil:
    """One row along dimension 0, staging what the loop can't take as it is."""
    cdef char stage[MAX_OPERANDS][STAGE * 16]
    cdef char* d[MAX_OPERANDS]
    cdef int64_t s[MAX_OPERANDS]
    cdef bint direct[MAX_OPERANDS]
    cdef bint all_direct = True
    cdef int i
    cdef int64_t begin = 0, count
    if n > 4 and stride[0] == ITEM_SIZE[it.dtype[0]] and repeats_inputs(it, stride):
        # one element, written n times
        for i in range(it.nop):
            d[i], s[i] = data[i], ITEM_SIZE[it.need[i]]
        d[0] = stage[0]
        it.loop(d, s, 1, it.params)
        fill_block(data[0], stage[0], n, ITEM_SIZE[it.dtype[0]])
        return
    for i in range(it.nop):
        direct[i] = is_direct(it, i, stride[i]) or (n == 1 and it.dtype[i] == it.need[i])
        if not direct[i]:
            all_direct = False
    if all_direct:
        it.loop(data, stride, n, it.params)
        return
    for i in range(1, it.nop):
        if not direct[i] and stride[i] == 0:
            # one value for the whole row: convert once, then repeat it
            convert_elements(cast_table, it.need[i], stage[i], 0, it.dtype[i], data[i], 0, 1)
            fill_block(stage[i], stage[i], n if n < STAGE else STAGE, ITEM_SIZE[it.need[i]])
    while begin < n:
        count = n - begin if n - begin < STAGE else STAGE
        for i in range(it.nop):
            s[i] = ITEM_SIZE[it.need[i]]
            if direct[i]:
                s[i] = stride[i]
                d[i] = data[i] + begin * stride[i]
            else:
                d[i] = stage[i]
                if i > 0 and stride[i] != 0 and it.dtype[i] == it.need[i]:
                    gather_run(stage[i], data[i] + begin * stride[i], stride[i], count, <int>s[i])
                elif i > 0 and stride[i] != 0:
                    convert_elements(cast_table, it.need[i], stage[i], s[i], it.dtype[i], data[i] + begin * stride[i], stride[i], count)
        it.loop(d, s, count, it.params)
        if not direct[0]:
            convert_elements(cast_table, it.dtype[0], data[0] + begin * stride[0], stride[0], it.need[0], stage[0], s[0], count)
        begin += count


cdef void run_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Rows [begin, end) of the flattened outer dimensions."""
    cdef Iter* it = <Iter*>context
    cdef int64_t index[MAX_DIMS]
    cdef char* data[MAX_OPERANDS]
    cdef int64_t stride[MAX_OPERANDS]
    cdef int64_t row, q = begin
    cdef int i, k
    for i in range(it.nop):
        data[i] = it.base[i]
        stride[i] = it.stride[i][0]
    for k in range(1, it.ndim):
        index[k] = q % it.sizes[k]
        q //= it.sizes[k]
        for i in range(it.nop):
            data[i] += index[k] * it.stride[i][k]
    for row in range(begin, end):
        if it.direct:
            it.loop(data, stride, it.sizes[0], it.params)
        else:
            run_row(it, data, stride, it.sizes[0])
        for k in range(1, it.ndim):
            index[k] += 1
            for i in range(it.nop):
                data[i] += it.stride[i][k]
            if index[k] < it.sizes[k]:
                break
            for i in range(it.nop):
                data[i] -= it.sizes[k] * it.stride[i][k]
            index[k] = 0


cdef void run_span(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Elements [begin, end) of a one-dimensional iteration."""
    cdef Iter* it = <Iter*>context
    cdef char* data[MAX_OPERANDS]
    cdef int64_t stride[MAX_OPERANDS]
    cdef int i
    for i in range(it.nop):
        stride[i] = it.stride[i][0]
        data[i] = it.base[i] + begin * stride[i]
    if it.direct:
        it.loop(data, stride, end - begin, it.params)
    else:
        run_row(it, data, stride, end - begin)


cdef bint has_short_rows(const Iter* it) noexcept:
    """Whether a call of the loop for each row would take longer than bringing several together does."""
    cdef int64_t n = it.sizes[0]
    cdef int i
    if it.ndim == 1 or n > REPEATED_ROW or it.sizes[1] < 4 or it.any_stride or it.tile_dim or it.stride[0][0] != ITEM_SIZE[it.dtype[0]]:
        return False
    if n <= SHORT_ROW or not it.direct:
        return True
    for i in range(1, it.nop):
        if it.stride[i][0] != 0 and it.stride[i][1] == 0:
            return True
    return False


cdef void stage_rows(const Iter* it, int i, char* to, const char* source, int64_t rows) noexcept nogil:
    """Rows of operand i, one after the other, in the type that the loop needs."""
    cdef char raw[STAGE * 16]
    cdef char* data[2]
    cdef int64_t stride[2]
    cdef int64_t n = it.sizes[0]
    cdef int item = ITEM_SIZE[it.dtype[i]]
    cdef Scalar row
    data[0] = to if it.dtype[i] == it.need[i] else raw
    data[1] = <char*>source
    stride[0], stride[1] = n * item, it.stride[i][1]
    row.kind = item
    if it.stride[i][0] == item:
        row.i = n * item
        short_rows_run(data, stride, rows, &row)
    elif it.stride[i][0] == 0 and item <= 8:
        row.i = n
        repeat_run(data, stride, rows, &row)
    else:
        gather_rows(data[0], source, it.stride[i][1], it.stride[i][0], rows, n, item)
    if it.dtype[i] != it.need[i]:
        convert_elements(cast_table, it.need[i], to, ITEM_SIZE[it.need[i]], it.dtype[i], raw, item, rows * n)


cdef void run_short_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    """As run_rows, for rows of a few elements: up to STAGE elements of neighbouring rows at a time."""
    cdef Iter* it = <Iter*>context
    cdef char stage[MAX_OPERANDS][STAGE * 16]
    cdef const char* staged[MAX_OPERANDS]      # what lies in the stage, where it is the same for all rows along dimension 1
    cdef int64_t staged_rows[MAX_OPERANDS]
    cdef bint direct[MAX_OPERANDS]
    cdef int64_t index[MAX_DIMS]
    cdef char* origin[MAX_OPERANDS]
    cdef char* data[MAX_OPERANDS]
    cdef int64_t stride[MAX_OPERANDS]
    cdef int64_t n = it.sizes[0], q = begin, row = begin, rows, at_once = STAGE // n
    cdef int i, k, item
    cdef Scalar bytes_of_row
    for i in range(it.nop):
        item = ITEM_SIZE[it.dtype[i]]
        origin[i] = it.base[i]
        staged[i] = NULL
        stride[i] = ITEM_SIZE[it.need[i]]
        direct[i] = it.dtype[i] == it.need[i] and it.stride[i][0] == item and it.stride[i][1] == n * item
        if it.dtype[i] == it.need[i] and it.stride[i][0] == 0 and it.stride[i][1] == 0 and i > 0 and it.scalar_forms >> i & 1:
            direct[i], stride[i] = True, 0
        if not direct[i]:
            data[i] = stage[i]
    for k in range(1, it.ndim):
        index[k] = q % it.sizes[k]
        q //= it.sizes[k]
        for i in range(it.nop):
            origin[i] += index[k] * it.stride[i][k]
    bytes_of_row.i = n * ITEM_SIZE[it.dtype[0]]
    while row < end:
        rows = min(min(it.sizes[1] - index[1], end - row), at_once)
        for i in range(it.nop):
            if direct[i]:
                data[i] = origin[i]
            elif i > 0 and (staged[i] != origin[i] or staged_rows[i] < rows):
                stage_rows(it, i, stage[i], origin[i], rows)
                staged[i], staged_rows[i] = (origin[i] if it.stride[i][1] == 0 else NULL), rows
        it.loop(data, stride, rows * n, it.params)
        if not direct[0]:
            put_rows(it, stage[0], origin[0], rows, &bytes_of_row)
        row += rows
        index[1] += rows
        for i in range(it.nop):
            origin[i] += rows * it.stride[i][1]
        k = 1
        while index[k] == it.sizes[k] and k + 1 < it.ndim:
            index[k] = 0
            index[k + 1] += 1
            for i in range(it.nop):
                origin[i] += it.stride[i][k + 1] - it.sizes[k] * it.stride[i][k]
            k += 1


cdef void put_rows(const Iter* it, char* staged, char* to, int64_t rows, const Scalar* bytes_of_row) noexcept nogil:
    """Rows of the output from the stage to their places."""
    cdef char converted[STAGE * 16]
    cdef char* data[2]
    cdef int64_t stride[2]
    cdef int item = ITEM_SIZE[it.dtype[0]]
    data[0], data[1] = to, staged
    if it.dtype[0] != it.need[0]:
        data[1] = converted
        convert_elements(cast_table, it.dtype[0], converted, item, it.need[0], staged, ITEM_SIZE[it.need[0]], rows * it.sizes[0])
    stride[0], stride[1] = it.stride[0][1], bytes_of_row.i
    short_rows_run(data, stride, rows, bytes_of_row)


cdef void run_tile(Iter* it, char** origin, int64_t row0, int64_t rows, int64_t col0, int64_t cols, char** stage) noexcept nogil:
    """A tile of rows along `tile_dim` and columns along dimension 0: operands that have a `stage` are transposed there, all rows at once."""
    cdef char* data[MAX_OPERANDS]
    cdef int64_t stride[MAX_OPERANDS]
    cdef int i, item
    cdef int64_t r
    for i in range(it.nop):
        item = ITEM_SIZE[it.dtype[i]]
        stride[i] = it.stride[i][0]
        if stage[i] != NULL:
            stride[i] = item
            if i > 0:
                transpose_block(stage[i], TILE_COLS * item, origin[i] + row0 * it.stride[i][it.tile_dim] + col0 * it.stride[i][0],
                                it.stride[i][0], rows, cols, item)
    for r in range(rows):
        for i in range(it.nop):
            if stage[i] != NULL:
                data[i] = stage[i] + r * TILE_COLS * stride[i]
            else:
                data[i] = origin[i] + (row0 + r) * it.stride[i][it.tile_dim] + col0 * stride[i]
        run_row(it, data, stride, cols)
    if stage[0] != NULL:
        # the output itself is transposed: write it back with the roles of rows and columns exchanged
        item = ITEM_SIZE[it.dtype[0]]
        transpose_block(origin[0] + row0 * it.stride[0][it.tile_dim] + col0 * it.stride[0][0], it.stride[0][0], stage[0], TILE_COLS * item,
                        cols, rows, item)


cdef void run_tiles(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Bands of TILE_ROWS rows along `tile_dim`, numbered over the remaining dimensions. The stages lie on the heap: a thread's stack may
    have 128 KB. Where there is no memory for them the rows run one by one."""
    cdef Iter* it = <Iter*>context
    cdef char* origin[MAX_OPERANDS]
    cdef char* stage[MAX_OPERANDS]
    cdef int64_t room = 0
    cdef int item
    cdef char* memory
    cdef int64_t bands = (it.sizes[it.tile_dim] + TILE_ROWS - 1) // TILE_ROWS
    cdef int64_t band, q, row0, rows, col0, position
    cdef int i, k
    for i in range(it.nop):
        item = ITEM_SIZE[it.dtype[i]]
        stage[i] = NULL
        if it.stride[i][it.tile_dim] == item and it.stride[i][0] != item and it.stride[i][0] != 0:
            stage[i] = <char*>1
            room += TILE_ROWS * TILE_COLS * item
    memory = <char*>malloc(room + 64)
    room = 64 - <int64_t>(<size_t>memory & 63)
    for i in range(it.nop):
        if stage[i] != NULL:
            stage[i] = NULL if memory == NULL else memory + room
            room += TILE_ROWS * TILE_COLS * ITEM_SIZE[it.dtype[i]]
    for band in range(begin, end):
        q = band // bands
        row0 = (band % bands) * TILE_ROWS
        rows = min(<int64_t>TILE_ROWS, it.sizes[it.tile_dim] - row0)
        for i in range(it.nop):
            origin[i] = it.base[i]
        for k in range(1, it.ndim):
            if k == it.tile_dim:
                continue
            position = q % it.sizes[k]
            q //= it.sizes[k]
            for i in range(it.nop):
                origin[i] += position * it.stride[i][k]
        col0 = 0
        while col0 < it.sizes[0]:
            run_tile(it, origin, row0, rows, col0, min(<int64_t>TILE_COLS, it.sizes[0] - col0), stage)
            col0 += TILE_COLS
    free(memory)


cdef int run_iteration(Iter* it, int cost, int64_t numel, TensorBase out, PyObject** inputs) except -1:
    """Choose rows, spans or tiles, and run, with threads where it is long; on large operands without the GIL, on blocks that are held. Where they are not
    large (core/tensor.pxd) kernels that call this rely on the GIL for what they read afterwards, however long a loop takes."""
    cdef int i, k
    cdef int64_t rows = 1, grain = max(<int64_t>1, GRAIN // max(cost, 1))
    cdef trt_block* held[MAX_OPERANDS]
    it.direct = 1
    for i in range(it.nop):
        it.direct &= is_direct(it, i, it.stride[i][0])
    for k in range(1, it.ndim):
        rows *= it.sizes[k]
    it.tile_dim = choose_tile_dim(it)
    it.short_rows = has_short_rows(it)
    if numel < 4096 or numel * cost < HELD_NUMEL:
        if it.ndim == 1:
            run_span(it, 0, it.sizes[0])
        elif it.tile_dim and numel >= 4096:
            run_tiles(it, 0, tiles_of(it, rows))
        elif it.short_rows:
            run_short_rows(it, 0, rows)
        else:
            run_rows(it, 0, rows)
        return 0
    if numel < HELD_NUMEL:
        share_out(it, rows, grain)
        return 0
    for i in range(it.nop):
        held[i] = (out if i == 0 else <TensorBase>inputs[i - 1]).storage.block
        trt_block_hold(held[i])
    with nogil:
        share_out(it, rows, grain)
    for i in range(it.nop):
        block_drop(held[i])
    return 0


cdef inline int64_t tiles_of(const Iter* it, int64_t rows) noexcept nogil:
    return rows // it.sizes[it.tile_dim] * ((it.sizes[it.tile_dim] + TILE_ROWS - 1) // TILE_ROWS)


cdef void share_out(Iter* it, int64_t rows, int64_t grain) noexcept nogil:
    """Spans, tiles or rows to the threads."""
    if it.ndim == 1:
        parallel_for(it.sizes[0], grain, 1024, run_span, it)
    elif it.tile_dim:
        parallel_for(tiles_of(it, rows), max(<int64_t>1, grain // (TILE_ROWS * it.sizes[0])), 1, run_tiles, it)
    elif rows == 1 or (rows < 2 * num_threads() and it.sizes[0] >= 4 * grain):
        run_long_rows(it, rows, grain)
    else:
        parallel_for(rows, max(<int64_t>1, grain // it.sizes[0]), 1, run_short_rows if it.short_rows else run_rows, it)


cdef void run_long_rows(Iter* it, int64_t rows, int64_t grain) noexcept nogil:
    """A few long rows: each is split between the threads."""
    cdef Iter row = it[0]
    cdef int64_t r, q
    cdef int i, k
    row.ndim = 1
    for r in range(rows):
        q = r
        for i in range(it.nop):
            row.base[i] = it.base[i]
        for k in range(1, it.ndim):
            for i in range(it.nop):
                row.base[i] += (q % it.sizes[k]) * it.stride[i][k]
            q //= it.sizes[k]
        parallel_for(row.sizes[0], grain, 1024, run_span, &row)


cdef int choose_tile_dim(Iter* it) noexcept:
    cdef int i, k, item
    if it.ndim < 2 or it.sizes[0] < 16 or it.any_stride == ROWS:
        return 0
    for i in range(it.nop):
        item = ITEM_SIZE[it.dtype[i]]
        if item > 8 or it.stride[i][0] == item or it.stride[i][0] == 0:
            continue
        for k in range(1, it.ndim):
            if it.stride[i][k] == item and it.sizes[k] >= 8:
                return k
    return 0
