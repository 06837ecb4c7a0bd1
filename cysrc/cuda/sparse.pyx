"""Sparse matrices in compressed rows on CUDA (cuda_src/sparse.cuh), beneath the checks of cysrc/ops/sparse/sparse.pyx."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport BF16, C128, C64, CAT_COMPLEX, CAT_FLOAT, F16, F32, F64, I64, NUM_DTYPES, category, compute_type
from tensorrt_lite._C.core.iterator cimport contiguous_of, copy_elements
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, empty_tensor, place_of
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.cuda.backend cimport kernel_of, run3
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.indexing cimport code_of, fault_of
from tensorrt_lite._C.cuda.source import storage_type
from tensorrt_lite._C.steps.sparse cimport SPARSE_MM, SPARSE_SAMPLED, set_sparse_count, set_sparse_dtype, set_sparse_fill, set_sparse_rows, sparse_call, sparse_product_call

attach()
cdef object _ops = ops_namespace()

cdef enum:
    VECTOR = 0                # places in KERNELS
    COLUMNS = 1
    SAMPLED = 2
    FILL = 3
    EXTREMES = 4
    THREADS = 256
    MAX_X = 1 << 20
    MAX_Y = 1 << 15
    TILE = 4                  # kSparseColumns

cdef tuple KERNELS = ("rows_vector", "rows_columns", "sampled", "fill", "extremes")
cdef FunctionHandle handles[64][NUM_DTYPES][5]
cdef FunctionHandle hashes[64]


def unit(int dtype):
    """The text of a type's kernels; complex numbers have no order, integers no extremes of products in PyTorch."""
    t = storage_type(dtype)
    entries = KERNELS if dtype in (F16, BF16, F32, F64) else KERNELS[:EXTREMES]
    text = '#include "sparse.cuh"\n'
    for entry in entries:
        call, more, passed = ("sparse_product_call", "void* sums, ", "sums, ") if entry == "fill" else ("sparse_call", "", "")
        text += (f'extern "C" __global__ void __launch_bounds__({THREADS}) {entry}(const {call} a, {more}trt::Fault* fault, int code) {{\n'
                 f"    trt::sparse_{entry}<{t}>(a, {passed}fault, code);\n}}\n")
    return text


# of no type, so a unit of its own
cdef str HASH_UNIT = f"""#include "sparse.cuh"
extern "C" __global__ void __launch_bounds__({THREADS}) hash(const sparse_product_call a, long long* table, const long long* starts, long long* counts, trt::Fault* fault, int code) {{
    trt::sparse_hash(a, table, starts, counts, fault, code);
}}
"""


cdef FunctionHandle load_hash(int index) except NULL:
    if hashes[index] == NULL:
        hashes[index] = kernel_of(HASH_UNIT, "hash", index)
    return hashes[index]


cdef FunctionHandle load(int which, int dtype, int index) except NULL:
    if handles[index][dtype][which] == NULL:
        handles[index][dtype][which] = kernel_of(unit(dtype), KERNELS[which], index)
    return handles[index][dtype][which]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    for dtype in (F16, BF16, F32, F64, C64, C128, I64):
        load(VECTOR, dtype, index)
    load_hash(index)


cdef int lanes(int64_t n) noexcept:
    """The threads of a group that has n elements to walk: a power of two, at most a warp."""
    cdef int width = 1
    while width < n and width < 32:
        width *= 2
    return width


cdef int sparse_rows(sparse_call* call, TensorBase crow, TensorBase col, TensorBase values, TensorBase dense, TensorBase out, TensorBase which) except -1:
    cdef int index = dense.device_index, code = code_of("sparse matrix product"), form, width
    cdef int64_t groups = call.rows, tiles, each
    cdef char* fault = fault_of(index)
    cdef void* arguments[3]
    call.crow, call.col, call.dense, call.out = <const int64_t*>data_of(crow), <const int64_t*>data_of(col), data_of(dense), data_of(out)
    call.values = NULL if values is None else data_of(values)
    call.which = NULL if which is None else <int64_t*>data_of(which)
    if call.operation == SPARSE_SAMPLED:
        form, groups, width, tiles = SAMPLED, call.count, lanes(call.n), 1
    elif call.operation == SPARSE_MM and (call.n == 1 or call.n <= TILE and call.count >= 8 * call.n * call.rows):
        # lanes as the mean row has entries: short rows share a warp
        form, width, tiles = VECTOR, lanes(call.count // call.rows), call.n
    else:
        form = COLUMNS if call.operation == SPARSE_MM else EXTREMES
        width = lanes(call.n)
        each = width * (TILE if form == COLUMNS else 1)
        tiles = (call.n + each - 1) // each
    arguments[0], arguments[1], arguments[2] = call, &fault, &code
    groups = (groups + THREADS // width - 1) // (THREADS // width)
    return run3(load(form, dense.dtype, index), index, min(groups, MAX_X), min(tiles, MAX_Y), 1, width, THREADS // width, 1, 0, arguments)


cdef int sparse_dtype(int dtype, int* code) except -1:
    """Half types are read and written as they are, and summed in float32."""
    if dtype in (F16, BF16):
        code[0] = dtype
    else:
        code[0] = compute_type[dtype] if category[dtype] in (CAT_FLOAT, CAT_COMPLEX) else I64
    return 0


cdef object differences(object ends):
    """(n + 1,) -> (n,): the lengths of lines from where they begin and end."""
    cdef int64_t n = (<TensorBase>ends).numel - 1
    return _ops.sub(_ops.narrow(ends, 0, 1, n), _ops.narrow(ends, 0, 0, n))


cdef object line_starts(object lengths):
    """(n,) -> (n + 1,): the inverse."""
    return _ops.pad(_ops.cumsum(lengths, 0), (1, 0))


cdef int sparse_count(sparse_product_call* call, TensorBase left_crow, TensorBase left_col, TensorBase right_crow, TensorBase right_col, TensorBase crow, list columns) except -1:
    """Every row has a hash table of twice as many places as it can have columns; what is in the tables is sorted by row and column."""
    cdef int index = crow.device_index, code = code_of("sparse matrix product")
    cdef char* fault = fault_of(index)
    cdef char* p[3]
    cdef void* arguments[6]
    cdef TensorBase table, starts, counts
    place = {"dtype": (<object>left_col).dtype, "device": (<object>left_col).device}
    pairs = line_starts(_ops.index_select(differences(right_crow), 0, left_col))
    most = _ops.clamp(differences(_ops.index_select(pairs, 0, left_crow)), 0, call.columns)
    starts = contiguous_of(<TensorBase>line_starts(_ops.add(_ops.mul(most, 2), 1)))
    table = <TensorBase>_ops.full((int(_ops.select(starts, 0, call.rows).item()),), -1, **place)
    counts = <TensorBase>_ops.zeros((call.rows,), **place)
    if call.rows:
        call.left_crow, call.left_col = <const int64_t*>data_of(left_crow), <const int64_t*>data_of(left_col)
        call.right_crow, call.right_col = <const int64_t*>data_of(right_crow), <const int64_t*>data_of(right_col)
        p[0], p[1], p[2] = data_of(table), data_of(starts), data_of(counts)
        arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5] = call, &p[0], &p[1], &p[2], &fault, &code
        run3(load_hash(index), index, min((call.rows + 7) // 8, MAX_X), 1, 1, 32, 8, 1, 0, arguments)
    copy_elements(crow, <TensorBase>line_starts(counts))
    found = _ops.index_select(table, 0, _ops.reshape(_ops.nonzero(_ops.ge(table, 0)), (-1,)))
    row = _ops.mul(_ops.repeat_interleave(_ops.arange(call.rows, **place), counts), call.columns)
    call.count = found.size(0)
    columns.append(_ops.sub(_ops.sort(_ops.add(found, row), 0)[0], row))
    return 0


cdef int sparse_fill(sparse_product_call* call, TensorBase left_crow, TensorBase left_col, TensorBase left_values, TensorBase right_crow, TensorBase right_col,
                     TensorBase right_values, TensorBase crow, TensorBase col, TensorBase values) except -1:
    cdef int index = crow.device_index, code = code_of("sparse matrix product"), kind = F32 if values.dtype in (F16, BF16) else values.dtype
    cdef char* fault = fault_of(index)
    cdef char* target
    cdef void* arguments[4]
    cdef TensorBase sums = values if kind == values.dtype else empty_tensor(1, values.sizes, kind, place_of(values))
    _ops.zero_(sums)
    call.left_crow, call.left_col, call.left_values = <const int64_t*>data_of(left_crow), <const int64_t*>data_of(left_col), data_of(left_values)
    call.right_crow, call.right_col, call.right_values = <const int64_t*>data_of(right_crow), <const int64_t*>data_of(right_col), data_of(right_values)
    call.crow, call.col, target = <int64_t*>data_of(crow), <int64_t*>data_of(col), data_of(sums)
    arguments[0], arguments[1], arguments[2], arguments[3] = call, &target, &fault, &code
    run3(load(FILL, values.dtype, index), index, min((call.rows + 7) // 8, MAX_X), 1, 1, 32, 8, 1, 0, arguments)
    return 0 if sums is values else copy_elements(values, sums)


set_sparse_count(DEV_CUDA, sparse_count)
set_sparse_fill(DEV_CUDA, sparse_fill)
set_sparse_dtype(DEV_CUDA, sparse_dtype)
set_sparse_rows(DEV_CUDA, sparse_rows)
