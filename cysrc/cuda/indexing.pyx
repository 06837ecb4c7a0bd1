"""Indexing on CUDA: what cysrc/ops/indexing/indexing.pyx, joining.pyx and creation.pyx call once arguments are checked and dimensions merged.

Indices are checked by the kernels: an element whose index is out of range is read as 0 and not written, and the call that next waits for
the device (a copy to the host, `item`) raises IndexError naming the operator. Nothing waits for that check alone.
"""
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset
from tensorrt_lite._C.core.dtype cimport Scalar, BOOL, U8, I32, I64, F16, BF16, F32, F64, C64, C128, NUM_DTYPES, has_loops, is_complex_type, is_integral_type
from tensorrt_lite._C.core.iterator cimport copy_elements, fill_elements
from tensorrt_lite._C.core.tensor cimport TensorBase, ITEM_SIZE, alias_of, data_of, place_of, empty_tensor
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, blocks_for, stream_of, enter, zeroed_memory
from tensorrt_lite._C.cuda.backend import _set_after_wait
from tensorrt_lite._C.cuda.driver cimport FunctionHandle, StreamHandle, DevicePointer, copy_to_host, launch, synchronize_stream
from tensorrt_lite._C.cuda.radix cimport sort_pairs, scan_rows
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.steps.indexing cimport LineArgs, PUT_SET, RowArgs, SearchArgs
from tensorrt_lite._C.steps.indexing cimport (
    set_bag_gradient, set_bag_sums, set_embed, set_first_outside, set_gather_rows, set_lines, set_masked_fill, set_nonzero, set_offsets, set_one_hot, set_scatter_rows, set_search, set_unravel)
from tensorrt_lite._C.ops.indexing.rows cimport bags_of_ends, index64, vector_offsets
from tensorrt_lite._C.ops.creation.cpu cimport complex_sequence, half_sequence, window
from tensorrt_lite._C.steps.creation cimport set_complex_sequence, set_half_sequence, set_powers, set_sequence, set_window
from tensorrt_lite._C.steps.joining cimport PieceArgs
from tensorrt_lite._C.ops.joining.parts cimport copy_parts
from tensorrt_lite._C.steps.joining cimport set_join, set_pieces, set_triangle
from tensorrt_lite._C.cuda import source as _source

attach()

cdef object _ops = ops_namespace()

cdef enum:
    NOTED = 2                    # kNoted
    WATCHED = 16                 # streams of a device that are told apart
    DIMS = 12                    # kRowDims
    RUN = 256                    # kRun
    FLAGS_TILE = 2048            # kFlagsTile

# the structures of cuda_src/indexing.cuh
cdef struct Fault:
    int state, code
    int64_t index, size

cdef struct Rows:
    char* table
    char* dense
    const int64_t* offset
    const int64_t* source
    int64_t m, dense_step, unit, outers, inner
    int n_outer, n_inner
    int64_t outer_size[12]
    int64_t outer_table[12]
    int64_t outer_dense[12]
    int64_t inner_size[12]
    int64_t inner_table[12]
    int64_t inner_dense[12]

cdef struct Lines:
    char* table
    char* dense
    const int64_t* index
    int64_t numel, limit, wrap, index_step, table_step
    int nd, dimension
    int64_t size[13]
    int64_t table_stride[13]
    int64_t dense_stride[13]
    int64_t index_stride[13]

cdef struct PieceDim:
    int64_t size, result, source
    int64_t count[3]
    int64_t at[3]
    int64_t step[3]

cdef struct Pieces:
    char* to
    const char* origin
    int64_t numel, nd
    PieceDim dim[12]
    uint8_t constant[16]

cdef struct Shape:
    int ndim
    int64_t size[64]


# ---- faults --------------------------------------------------------------------------------------------------------

# The streams that were given kernels which may note a fault and that nobody has waited for since; of more than WATCHED, `n` alone tells.
cdef struct Watch:
    StreamHandle streams[WATCHED]
    int n

cdef Watch watches[64]
cdef DevicePointer faults[64]    # of each device a Fault, and behind it the one that take_fault writes
cdef int64_t uses[64]
cdef list fault_names = []
cdef dict fault_codes = {}


cdef int prepare(int index) except -1:
    """Make the device's Fault, from memory that belongs to no pool and is zero before any stream's work: graphs and streams share it."""
    if faults[index] == 0:
        faults[index] = zeroed_memory(index, 2 * sizeof(Fault))
    return 0


cdef void watch(int index, StreamHandle stream) noexcept:
    cdef Watch* w = &watches[index]
    cdef int i
    for i in range(min(w.n, WATCHED)):
        if w.streams[i] == stream:
            return
    if w.n < WATCHED:
        w.streams[w.n] = stream
    w.n = min(w.n, WATCHED) + 1


cdef void unwatch(int index, StreamHandle stream, bint all) noexcept:
    cdef Watch* w = &watches[index]
    cdef int i
    if all:
        w.n = 0
    elif w.n <= WATCHED:
        for i in range(w.n):
            if w.streams[i] == stream:
                w.n -= 1
                w.streams[i] = w.streams[w.n]
                break


cdef char* fault_of(int index) except NULL:
    """Where kernels of this device note their first index out of range."""
    prepare(index)
    watch(index, stream_of(index))
    uses[index] += 1
    return <char*><size_t>faults[index]


def _prepare(int index):
    """Before a graph is recorded; how often kernels were told of the device's Fault by now."""
    prepare(index)
    return uses[index]


def _watch(int index, size_t stream):
    """A graph with such kernels was launched on this stream."""
    watch(index, <StreamHandle>stream)


cdef int code_of(str name) except -1:
    code = fault_codes.get(name)
    if code is None:
        code = fault_codes[name] = len(fault_names)
        fault_names.append(name)
    return code


cdef int after_wait(int index, StreamHandle stream, bint all) except -1:
    """IndexError for an index that a kernel found out of range. The host has waited for the stream, or for all of the device's."""
    cdef Fault fault
    cdef DevicePointer noted = faults[index], taken = noted + sizeof(Fault)
    cdef void* arguments[2]
    if watches[index].n == 0:
        return 0
    enter(index)
    copy_to_host(&fault, noted, sizeof(fault), stream)
    synchronize_stream(stream)
    unwatch(index, stream, all)
    if fault.state != NOTED:
        return 0
    arguments[0], arguments[1] = &noted, &taken
    launch(load("take_fault", index, None, None), 1, 1, 1, 1, 1, 1, 0, stream, arguments)
    copy_to_host(&fault, taken, sizeof(fault), stream)
    synchronize_stream(stream)
    if fault.state == NOTED:
        raise IndexError(f"{fault_names[fault.code]}(): index {fault.index} is out of bounds for a dimension of size {fault.size} (on cuda:{index}, where indices are "
                         "checked while kernels run)")
    return 0


# ---- kernels -------------------------------------------------------------------------------------------------------

MOVED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long", 16: "trt::Vector<long long, 2>"}
COMBINATIONS = ("", "trt::kAdd", "trt::kMultiply", "trt::kLeast", "trt::kGreatest")
cdef str COMBINED = "const trt::Rows r, const unsigned* key, const int* position, unsigned beyond, trt::kept_t<{t}, {u}>* pieces"
# parameters and call; {t} and {u} are types, or a type and a combination
cdef dict KERNELS = {
    "offsets_along": ("long long* offset, const long long* index, long long n, long long size, long long wrap, long long stride, int add, long long skipped, "
                      "trt::Fault* fault, int code", "offsets_along(offset, index, n, size, wrap, stride, add, skipped, fault, code)"),
    "take_fault": ("trt::Fault* fault, trt::Fault* taken", "take_fault(fault, taken)"),
    "gather_rows": ("const trt::Rows r", "gather_rows<{t}>(r)"),
    "claim": ("int* owner, const long long* offset, long long m, long long unit", "claim(owner, offset, m, unit)"),
    "put_claimed": ("const trt::Rows r, const int* owner", "put_claimed<{t}>(r, owner)"),
    "sort_keys": ("unsigned* key, const long long* offset, long long m, long long unit, unsigned beyond", "sort_keys(key, offset, m, unit, beyond)"),
    "combine_pieces": (COMBINED, "combine_pieces<{t}, {u}>(r, key, position, beyond, pieces)"),
    "combine_runs": (COMBINED, "combine_runs<{t}, {u}>(r, key, position, beyond, pieces)"),
    "gather_lines": ("const trt::Lines a, trt::Fault* fault, int code", "gather_lines<{t}>(a, fault, code)"),
    "line_offsets": ("const trt::Lines a, long long* offset, long long* source, trt::Fault* fault, int code", "line_offsets(a, offset, source, fault, code)"),
    "nonzero_count": ("const {t}* x, long long n, long long* counts", "nonzero_count(x, n, counts)"),
    "nonzero_write": ("const {t}* x, long long n, const long long* counts, long long* position", "nonzero_write(x, n, counts, position)"),
    "unravel": ("const long long* position, long long n, const trt::Shape shape, long long* out, long long step, long long dim_step",
                "unravel(position, n, shape, out, step, dim_step)"),
    "search_sorted": ("const {t}* sorted, const {t}* values, const long long* sorter, {u}* result, long long total, long long count, long long n, long long row_step, int right",
                      "search_sorted(sorted, values, sorter, result, total, count, n, row_step, right)"),
    "triangle": ("const {t}* x, {t}* out, long long n, long long rows, long long cols, long long diagonal, int upper", "triangle(x, out, n, rows, cols, diagonal, upper)"),
    "copy_pieces": ("const trt::Pieces p", "copy_pieces<{t}>(p)"),
    "sum_pieces": ("const trt::Pieces p", "sum_pieces<{t}>(p)"),
    "sequence": ("{t}* out, long long n, {u} start, {u} stop, {u} step, int both_ends", "sequence(out, n, start, stop, step, both_ends)"),
    "powers": ("{t}* out, long long n, double base, double start, double stop, double step", "powers(out, n, base, start, stop, step)"),
}
cdef dict handles = {}


cdef FunctionHandle load(str name, int index, str t, str u) except NULL:
    """The kernel of one function of indexing.cuh for its types."""
    key = (name, t, u, index)
    h = handles.get(key)
    if h is None:
        parameters, call = KERNELS[name]
        text = f"#include \"indexing.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__(256) kernel({parameters.format(t=t, u=u)}) {{ trt::{call.format(t=t, u=u)}; }}\n"
        h = handles[key] = <size_t>kernel_of(text, "kernel", index)
    return <FunctionHandle><size_t>h


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype, op
    for name in ("take_fault", "offsets_along", "claim", "sort_keys", "line_offsets", "unravel"):
        load(name, index, None, None)
    for t in MOVED.values():
        for name in ("gather_rows", "put_claimed", "gather_lines", "triangle", "copy_pieces"):
            load(name, index, t, None)
    for dtype in range(<int>NUM_DTYPES):
        if not has_loops(dtype):
            continue
        t = type_of(dtype)
        for op in range(1, 3 if is_complex_type(dtype) else 5):
            load("combine_pieces", index, t, COMBINATIONS[op])
            load("combine_runs", index, t, COMBINATIONS[op])
        for name in ("nonzero_count", "nonzero_write", "sum_pieces"):
            load(name, index, t, None)
        if not is_complex_type(dtype):
            load("search_sorted", index, t, "int")
            load("search_sorted", index, t, "long long")
        if dtype != BOOL and not is_complex_type(dtype):
            # integers count in integers, or in double where the ends are given (linspace); halves in double as well as in float
            if is_integral_type(dtype):
                load("sequence", index, t, type_of(I64))
            elif dtype != F64:
                load("sequence", index, t, type_of(F32))
            if dtype != F32:
                load("sequence", index, t, type_of(F64))
            load("powers", index, t, None)


cdef str type_of(int dtype):
    t = _source.TYPES[dtype][1]
    return f"trt::{t}" if is_complex_type(dtype) else t


cdef int offsets_along(TensorBase offsets, TensorBase index, int64_t size, int64_t stride, bint negative, bint add, int64_t skipped, str name) except -1:
    """offsets (+)= bytes to each index (contiguous int64), -1 where it is `skipped` or out of range."""
    cdef char* p[3]
    cdef int64_t n = index.numel, wrap = size if negative else 0
    cdef int code = code_of(name), device = index.device_index
    cdef void* arguments[10]
    if n == 0:
        return 0
    p[0], p[1], p[2] = data_of(offsets), data_of(index), fault_of(device)
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5] = &p[0], &p[1], &n, &size, &wrap, &stride
    arguments[6], arguments[7], arguments[8], arguments[9] = &add, &skipped, &p[2], &code
    return run(load("offsets_along", device, None, None), device, blocks_for(n, 256), 256, 0, arguments)


cdef int fill_rows(Rows* q, const RowArgs* r, TensorBase table) except -1:
    """The geometry, with elements of several items where rows of both operands are contiguous."""
    cdef int k
    cdef int64_t run_bytes
    if r.n_outer > DIMS or r.n_inner > DIMS:
        raise NotImplementedError(f"indexing: tensors of more than {DIMS} dimensions that cannot be merged on CUDA")
    memset(q, 0, sizeof(Rows))
    q.table, q.dense, q.offset = r.table, r.dense, r.offset
    q.m, q.dense_step, q.n_outer, q.n_inner = r.m, r.dense_step, r.n_outer, r.n_inner
    q.outers = q.inner = 1
    for k in range(r.n_outer):
        q.outer_size[k], q.outer_table[k], q.outer_dense[k] = r.outer_size[k], r.outer_table[k], r.outer_dense[k]
        q.outers *= r.outer_size[k]
    for k in range(r.n_inner):
        q.inner_size[k], q.inner_table[k], q.inner_dense[k] = r.inner_size[k], r.inner_table[k], r.inner_dense[k]
        q.inner *= r.inner_size[k]
    # offsets are multiples of a dense row
    q.unit = q.inner * r.item if table.contiguous and (r.n_inner == 0 or r.n_inner == 1 and r.inner_table[0] == r.item) else r.item
    return 0


cdef int widen(Rows* q, int item) noexcept:
    """The bytes to move at once: 16 where all that is added to addresses is a multiple of it."""
    cdef int64_t bits
    cdef int k
    if q.n_inner != 1 or q.inner_table[0] != item or q.inner_dense[0] != item or q.unit != q.inner * item:
        return item
    bits = q.unit | q.dense_step | <int64_t><size_t>q.table | <int64_t><size_t>q.dense
    for k in range(q.n_outer):
        bits |= q.outer_table[k] | q.outer_dense[k]
    if bits % 16:
        return item
    q.inner = q.inner_size[0] = q.unit // 16
    q.inner_table[0] = q.inner_dense[0] = 16
    return 16


cdef int gather_rows(RowArgs* r, TensorBase table, TensorBase dense, TensorBase offsets) except -1:
    cdef Rows q
    cdef int item, device = table.device_index
    cdef void* arguments[1]
    r.item = ITEM_SIZE[table.dtype]
    fill_rows(&q, r, table)
    item = widen(&q, r.item)
    arguments[0] = &q
    return run(load("gather_rows", device, MOVED[item], None), device, blocks_for(q.outers * q.m * q.inner, 256), 256, 0, arguments)


cdef int embed(RowArgs* r, TensorBase table, TensorBase dense, TensorBase indices) except -1:
    cdef TensorBase offsets = vector_offsets("embedding", table, index64(indices), 0, False, None)
    r.offset = <const int64_t*>data_of(offsets)
    return gather_rows(r, table, dense, offsets) if dense.numel else 0


cdef int scatter_rows(RowArgs* r, int64_t span, TensorBase table, TensorBase dense, TensorBase offsets, int op) except -1:
    """table[offset] <op>= dense, in the order of the offsets."""
    cdef Rows q
    r.item = ITEM_SIZE[table.dtype]
    fill_rows(&q, r, table)
    return scatter(&q, span, table, op)


cdef int scatter(Rows* q, int64_t span, TensorBase table, int op) except -1:
    cdef TensorBase owner, keys, pieces
    cdef Scalar none
    cdef int item = ITEM_SIZE[table.dtype], device = table.device_index, bits = 1
    cdef int64_t slots = (span + q.unit - 1) // q.unit, n
    cdef unsigned beyond = <unsigned>slots
    cdef const char* p[4]
    cdef void* arguments[6]
    if q.m == 0 or q.inner == 0 or q.outers == 0:
        return 0
    if q.m >= (<int64_t>1 << 31) or slots >= (<int64_t>1 << 32) - 1:
        raise NotImplementedError(f"scattering {q.m} rows into {slots} on CUDA")
    if op == PUT_SET:
        memset(&none, 0, sizeof(none))
        none.kind = 1
        none.i = -1
        none.d = -1
        owner = empty_tensor(1, &slots, I32, place_of(table))
        fill_elements(owner, &none)
        p[0], p[1] = data_of(owner), <const char*>q.offset
        arguments[0], arguments[1], arguments[2], arguments[3] = &p[0], &p[1], &q.m, &q.unit
        run(load("claim", device, None, None), device, blocks_for(q.m, 256), 256, 0, arguments)
        if q.source == NULL:
            n = q.unit
            item = widen(q, item)
            q.unit = n
        arguments[0], arguments[1] = q, &p[0]
        return run(load("put_claimed", device, MOVED[item], None), device, blocks_for(q.outers * q.m * q.inner, 256), 256, 0, arguments)
    keys = empty_tensor(1, &q.m, I32, place_of(table))
    p[0], p[1] = data_of(keys), <const char*>q.offset
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4] = &p[0], &p[1], &q.m, &q.unit, &beyond
    run(load("sort_keys", device, None, None), device, blocks_for(q.m, 256), 256, 0, arguments)
    while bits < 32 and <int64_t>beyond >> bits:
        bits += 1
    sorted_keys, position = sort_pairs(keys, None, bits)
    n = (q.m - 1) // RUN * q.outers * q.inner * max(ITEM_SIZE[table.dtype], 4)
    pieces = empty_tensor(1, &n, U8, place_of(table))
    p[0], p[1], p[2] = data_of(<TensorBase>sorted_keys), data_of(<TensorBase>position), data_of(pieces)
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4] = q, &p[0], &p[1], &beyond, &p[2]
    t = type_of(table.dtype)
    if n:
        run(load("combine_pieces", device, t, COMBINATIONS[op]), device, blocks_for((q.m - 1) // RUN * q.outers * q.inner, 128), 128, 0, arguments)
    return run(load("combine_runs", device, t, COMBINATIONS[op]), device, blocks_for(q.m * q.outers * q.inner, 256), 256, 0, arguments)


cdef int lines(LineArgs* a, TensorBase table, TensorBase dense, TensorBase index, bint gather, str name) except -1:
    """gather: dense[i] = table[index[i]], otherwise table[index[i]] <op>= dense[i]."""
    cdef Lines q
    cdef Rows rows
    cdef TensorBase offset, source
    cdef int k, code = code_of(name), device = table.device_index
    cdef bint last
    cdef int64_t span = 0
    cdef char* p[3]
    cdef void* arguments[5]
    if a.nd == 0:
        a.nd = 1
        a.size[0] = 1
        a.t[0], a.d[0], a.x[0] = 0, a.ds, a.xs
    if a.nd > DIMS:
        raise NotImplementedError(f"{name}: tensors of more than {DIMS} dimensions that cannot be merged on CUDA")
    memset(&q, 0, sizeof(q))
    q.table, q.dense, q.index = a.table, a.dense, a.index
    q.limit, q.wrap, q.table_step = a.limit, a.wrap, a.ts
    # the dimension of the index is the fastest where its elements lie closest
    last = a.xs <= a.x[a.nd - 1] or a.size[a.nd - 1] == 1
    q.dimension = a.nd if last else 0
    q.nd = a.nd + 1
    q.numel = a.n
    for k in range(a.nd):
        q.size[k + (not last)], q.table_stride[k + (not last)] = a.size[k], a.t[k]
        q.dense_stride[k + (not last)], q.index_stride[k + (not last)] = a.d[k], a.x[k]
        q.numel *= a.size[k]
    q.size[q.dimension], q.dense_stride[q.dimension], q.index_stride[q.dimension] = a.n, a.ds, a.xs
    p[2] = fault_of(device)
    arguments[0], arguments[1], arguments[2] = &q, &p[2], &code
    if gather:
        return run(load("gather_lines", device, MOVED[a.item], None), device, blocks_for(q.numel, 256), 256, 0, arguments)
    offset = empty_tensor(1, &q.numel, I64, place_of(table))
    source = empty_tensor(1, &q.numel, I64, place_of(table))
    p[0], p[1] = data_of(offset), data_of(source)
    arguments[1], arguments[2], arguments[3], arguments[4] = &p[0], &p[1], &p[2], &code
    run(load("line_offsets", device, None, None), device, blocks_for(q.numel, 256), 256, 0, arguments)
    memset(&rows, 0, sizeof(rows))
    rows.table, rows.dense, rows.offset, rows.source = a.table, a.dense, <const int64_t*>p[0], <const int64_t*>p[1]
    rows.m = q.numel
    rows.outers = rows.inner = 1
    rows.unit = a.item
    for k in range(table.ndim):
        span += (table.sizes[k] - 1) * table.strides[k]
    return scatter(&rows, (span + 1) * a.item, table, a.op)


# ---- positions -----------------------------------------------------------------------------------------------------

cdef TensorBase nonzero(TensorBase x, int dims):
    """Row-major positions of the non-zero elements of a contiguous tensor, int64. Waits for their number."""
    cdef int64_t blocks = (x.numel + FLAGS_TILE - 1) // FLAGS_TILE, n = x.numel, total
    cdef TensorBase counts, totals, r
    cdef int device = x.device_index
    cdef char* p[3]
    cdef void* arguments[4]
    cdef int64_t none = 0
    if n == 0:
        return empty_tensor(1, &none, I64, place_of(x))
    counts = empty_tensor(1, &blocks, I64, place_of(x))
    p[0], p[1] = data_of(x), data_of(counts)
    arguments[0], arguments[1], arguments[2] = &p[0], &n, &p[1]
    t = type_of(x.dtype)
    run(load("nonzero_count", device, t, None), device, blocks, 256, 0, arguments)
    totals = scan_rows(counts, 1, blocks)
    total = totals.item()
    r = empty_tensor(1, &total, I64, place_of(x))
    if total:
        p[2] = data_of(r)
        arguments[2], arguments[3] = &p[1], &p[2]
        run(load("nonzero_write", device, t, None), device, blocks, 256, 0, arguments)
    return r


cdef int unravel(TensorBase flat, int ndim, const int64_t* sizes, TensorBase out, int64_t step, int64_t dim_step) except -1:
    cdef Shape shape
    cdef int64_t n = flat.numel
    cdef char* p[2]
    cdef void* arguments[6]
    if n == 0 or ndim == 0:
        return 0
    shape.ndim = ndim
    for k in range(ndim):
        shape.size[k] = sizes[k]
    p[0], p[1] = data_of(flat), data_of(out)
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5] = &p[0], &n, &shape, &p[1], &step, &dim_step
    return run(load("unravel", flat.device_index, None, None), flat.device_index, blocks_for(n, 256), 256, 0, arguments)


cdef int search(SearchArgs* a, TensorBase s, TensorBase values, TensorBase r) except -1:
    cdef int64_t total = values.numel
    cdef int device = values.device_index
    cdef void* arguments[9]
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4] = &a.sorted, &a.values, &a.sorter, &a.out, &total
    arguments[5], arguments[6], arguments[7], arguments[8] = &a.count, &a.n, &a.row_step, &a.right
    t, out = type_of(a.dtype), "int" if a.out_int32 else "long long"
    return run(load("search_sorted", device, t, out), device, blocks_for(total, 256), 256, 0, arguments)


cdef int first_outside(TensorBase index, int64_t low, int64_t high, int64_t* position) except -1:
    """Kernels check as they read: looking at the indices here would wait for the device."""
    return 0


cdef int masked_fill(TensorBase s, TensorBase m, TensorBase v, TensorBase r) except -1:
    value = (<object>v).to((<object>r).device)
    return copy_elements(r, <TensorBase>_ops.where(alias_of(m), value, alias_of(s)))


cdef int one_hot(TensorBase given, int64_t classes, TensorBase r) except -1:
    (<object>r).zero_().scatter_(-1, (<object>given).unsqueeze(-1), 1)
    return 0


cdef object scaled_rows(object rows, object indices, object scale, int64_t skipped):
    r = rows if scale is None else rows * scale.unsqueeze(1)
    return r if skipped < 0 else r.masked_fill((indices == skipped).unsqueeze(1), 0)


cdef int bag_sums(TensorBase weight, TensorBase indices, TensorBase ends, TensorBase scale, int64_t skipped, TensorBase r) except -1:
    bag = bags_of_ends(ends, indices.numel)
    (<object>r).zero_().index_add_(0, bag, scaled_rows((<object>weight).index_select(0, indices), indices, scale, skipped))
    return 0


cdef int bag_gradient(TensorBase grad, TensorBase indices, TensorBase bag, TensorBase scale, int64_t skipped, TensorBase r) except -1:
    (<object>r).index_add_(0, indices, scaled_rows((<object>grad).index_select(0, bag), indices, scale, skipped))
    return 0


# ---- triangles and sequences ---------------------------------------------------------------------------------------

cdef int triangle(TensorBase x, TensorBase r, int64_t diagonal, bint upper) except -1:
    """Contiguous matrices."""
    cdef int64_t n = x.numel, rows = x.sizes[x.ndim - 2], cols = x.sizes[x.ndim - 1]
    cdef char* p[2]
    cdef int is_upper = upper, item = ITEM_SIZE[x.dtype]
    cdef void* arguments[7]
    p[0], p[1] = data_of(x), data_of(r)
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5], arguments[6] = &p[0], &p[1], &n, &rows, &cols, &diagonal, &is_upper
    return run(load("triangle", x.device_index, MOVED[item], None), x.device_index, blocks_for(n, 256), 256, 0, arguments)


cdef int join(TensorBase result, list tensors, int d, bint stacked, int layout) except -1:
    return copy_parts(result, tensors, d, stacked)


cdef int pieces(PieceArgs* merged, PieceArgs* given, TensorBase source, TensorBase result, const Scalar* margin, bint sums) except -1:
    """A result of pieces of its source: flips, rolls, margins; or the sums over where each element went."""
    cdef Pieces q
    cdef PieceArgs* a = given if sums else merged
    cdef int d, k, item = ITEM_SIZE[result.dtype]
    cdef void* arguments[1]
    if sums:
        # each element of the source gathers the positions it went to: dimension by dimension
        given.nd = result.ndim
        given.to = data_of(source)
        given.from_data = data_of(result)
        for d in range(result.ndim):
            given.size[d] = source.sizes[d]
            given.result[d] = result.strides[d] * item
            given.source[d] = source.strides[d] * item
    if a.nd > DIMS:
        raise NotImplementedError(f"tensors of more than {DIMS} dimensions that cannot be merged, on CUDA")
    memset(&q, 0, sizeof(q))
    q.to, q.origin, q.nd, q.numel, q.constant = a.to, a.from_data, a.nd, 1, a.constant
    for d in range(a.nd):
        q.numel *= a.size[d]
        q.dim[d].size, q.dim[d].result, q.dim[d].source = a.size[d], a.result[d], a.source[d]
        for k in range(a.pieces[d]):
            q.dim[d].count[k], q.dim[d].at[k], q.dim[d].step[k] = a.along[d].piece[k].count, a.along[d].piece[k].at, a.along[d].piece[k].step
    arguments[0] = &q
    if sums:
        return run(load("sum_pieces", result.device_index, type_of(result.dtype), None), result.device_index, blocks_for(q.numel, 256), 256, 0, arguments)
    return run(load("copy_pieces", result.device_index, MOVED[item], None), result.device_index, blocks_for(q.numel, 256), 256, 0, arguments)


cdef int sequence(TensorBase given, int kind, double start, double stop, double step, int64_t istart, int64_t istep, bint both) except -1:
    """start + i * step in the arithmetic of `kind` (I64, F32, F64)."""
    cdef TensorBase r = given if given.contiguous else empty_tensor(given.ndim, given.sizes, given.dtype, place_of(given))
    cdef int64_t n = r.numel, izero = 0
    cdef int both_ends = both
    cdef float f[3]
    cdef char* p[1]
    cdef void* arguments[6]
    p[0] = data_of(r)
    f[0], f[1], f[2] = <float>start, <float>stop, <float>step
    arguments[0], arguments[1], arguments[5] = &p[0], &n, &both_ends
    if kind == I64:
        arguments[2], arguments[3], arguments[4] = &istart, &izero, &istep
    elif kind == F32:
        arguments[2], arguments[3], arguments[4] = &f[0], &f[1], &f[2]
    else:
        arguments[2], arguments[3], arguments[4] = &start, &stop, &step
    run(load("sequence", r.device_index, type_of(r.dtype), type_of(kind)), r.device_index, blocks_for(n, 256), 256, 0, arguments)
    return 0 if r is given else copy_elements(given, r)


cdef int powers(TensorBase given, double base, double start, double stop, double step) except -1:
    cdef TensorBase r = given if given.contiguous else empty_tensor(given.ndim, given.sizes, given.dtype, place_of(given))
    cdef int64_t n = r.numel
    cdef char* p[1]
    cdef void* arguments[6]
    p[0] = data_of(r)
    arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5] = &p[0], &n, &base, &start, &stop, &step
    run(load("powers", r.device_index, type_of(r.dtype), None), r.device_index, blocks_for(n, 256), 256, 0, arguments)
    return 0 if r is given else copy_elements(given, r)


_set_after_wait(<size_t>&after_wait)
set_offsets(DEV_CUDA, offsets_along)
set_first_outside(DEV_CUDA, first_outside)
set_unravel(DEV_CUDA, unravel)
set_gather_rows(DEV_CUDA, gather_rows)
set_embed(DEV_CUDA, embed)
set_scatter_rows(DEV_CUDA, scatter_rows)
set_lines(DEV_CUDA, lines)
set_masked_fill(DEV_CUDA, masked_fill)
set_nonzero(DEV_CUDA, nonzero)
set_one_hot(DEV_CUDA, one_hot)
set_bag_sums(DEV_CUDA, bag_sums)
set_bag_gradient(DEV_CUDA, bag_gradient)
set_search(DEV_CUDA, search)
set_join(DEV_CUDA, join)
set_triangle(DEV_CUDA, triangle)
set_pieces(DEV_CUDA, pieces)
set_sequence(DEV_CUDA, sequence)
set_powers(DEV_CUDA, powers)
set_half_sequence(DEV_CUDA, half_sequence)
set_complex_sequence(DEV_CUDA, complex_sequence)
set_window(DEV_CUDA, window)
