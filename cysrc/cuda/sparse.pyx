"""Sparse matrices in compressed rows on CUDA (cuda_src/sparse.cuh), beneath the checks of cysrc/ops/sparse/sparse.pyx."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport BF16, C128, C64, CAT_COMPLEX, CAT_FLOAT, F16, F32, F64, I64, NUM_DTYPES, category
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of
from tensorrt_lite._C.cuda.backend cimport kernel_of, run3
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.indexing cimport code_of, fault_of
from tensorrt_lite._C.cuda.source import storage_type
from tensorrt_lite._C.steps.sparse cimport SPARSE_MM, SPARSE_SAMPLED, set_sparse_dtype, set_sparse_rows, sparse_call

attach()

cdef enum:
    VECTOR = 0
    COLUMNS = 1
    SAMPLED = 2
    EXTREMES = 3
    THREADS = 256
    MAX_X = 1 << 20
    MAX_Y = 1 << 15
    TILE = 4                  # kSparseColumns

cdef tuple KERNELS = ("rows_vector", "rows_columns", "sampled", "extremes")
cdef FunctionHandle handles[64][NUM_DTYPES][4]


def unit(int dtype):
    """The text of a type's kernels; complex numbers have no order, integers no extremes of products in PyTorch."""
    t = storage_type(dtype)
    entries = KERNELS if dtype in (F16, BF16, F32, F64) else KERNELS[:3]
    return '#include "sparse.cuh"\n' + "".join(
        f'extern "C" __global__ void __launch_bounds__({THREADS}) {entry}(const sparse_call a, trt::Fault* fault, int code) {{\n'
        f"    trt::sparse_{entry}<{t}>(a, fault, code);\n}}\n" for entry in entries)


cdef FunctionHandle load(int which, int dtype, int index) except NULL:
    if handles[index][dtype][which] == NULL:
        handles[index][dtype][which] = kernel_of(unit(dtype), KERNELS[which], index)
    return handles[index][dtype][which]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    for dtype in (F16, BF16, F32, F64, C64, C128, I64):
        load(0, dtype, index)


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
    if dtype in (F16, BF16, F32, F64, C64, C128):
        code[0] = dtype
    elif category[dtype] == CAT_COMPLEX:
        code[0] = C64
    else:
        code[0] = F32 if category[dtype] == CAT_FLOAT else I64
    return 0


set_sparse_dtype(DEV_CUDA, sparse_dtype)
set_sparse_rows(DEV_CUDA, sparse_rows)
