"""Scans on CUDA: launches of cuda_src/scan.cuh, one where there are rows enough for the device, three where they are cut."""
from libc.stdint cimport int64_t
from libc.stdlib cimport calloc
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport CAT_FLOAT, I64, NUM_DTYPES, U8, category, is_integral_or_bool_type
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, place_of, empty_tensor
from tensorrt_lite._C.cuda.backend cimport kernel_of, run3
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite._C.steps.reduction cimport SCAN_COUNT, SCAN_PROD, SCAN_STATE_BYTES, SCAN_SUM, line_call, scan_functors, scan_layout, scan_takes, set_scan
from tensorrt_lite._C.cuda.source import storage_type

attach()

cdef enum:
    ROWS = 0
    ROW_TOTALS = 1
    COLUMNS = 2
    COLUMN_TOTALS = 3
    TOTALS = 4
    TILE = 1024                    # elements that a block of scan_rows takes at a time
    MULTIPROCESSOR_COUNT = 16      # CU_DEVICE_ATTRIBUTE_*

cdef tuple ENTRIES = ("rows", "row_totals", "columns", "column_totals", "totals")
cdef str ARGUMENTS = "(const scan_layout l, const Op::In* in, Op::Out* out, long long* index, Op::State* totals)"
cdef str UNIT = f"""#include "scan.cuh"
using Op = trt::Scan%s<%s, %s>;
extern "C" __global__ void __launch_bounds__(256) rows{ARGUMENTS} {{
    trt::scan_rows<Op, false>(l, in, out, index, totals);
}}
extern "C" __global__ void __launch_bounds__(256) row_totals{ARGUMENTS} {{
    trt::scan_rows<Op, true>(l, in, out, index, totals);
}}
extern "C" __global__ void __launch_bounds__(256) columns{ARGUMENTS} {{
    trt::scan_columns<Op, false>(l, in, out, index, totals);
}}
extern "C" __global__ void __launch_bounds__(256) column_totals{ARGUMENTS} {{
    trt::scan_columns<Op, true>(l, in, out, index, totals);
}}
extern "C" __global__ void __launch_bounds__(256) totals{ARGUMENTS} {{
    trt::scan_totals<Op>(l, totals);
}}
"""

cdef struct Handles:
    FunctionHandle entry[64][5]

cdef Handles* handles[SCAN_COUNT][NUM_DTYPES][NUM_DTYPES]


cdef FunctionHandle handle_of(int op, int source, int target, int entry, int index) except NULL:
    cdef Handles* h = handles[op][source][target]
    if h == NULL:
        h = handles[op][source][target] = <Handles*>calloc(1, sizeof(Handles))
        if h == NULL:
            raise MemoryError
    if h.entry[index][entry] == NULL:
        h.entry[index][entry] = kernel_of(UNIT % (scan_functors[op].decode(), storage_type(source), storage_type(target)), ENTRIES[entry], index)
    return h.entry[index][entry]


cdef int scan(line_call* call, TensorBase self, TensorBase result, TensorBase indices) except -1:
    cdef scan_layout l
    cdef TensorBase x = contiguous_of(cast_to(self, result.dtype) if category[result.dtype] >= CAT_FLOAT else self)
    cdef int64_t blocks, wanted, most, nbytes
    cdef int op = call.operation, index = x.device_index, form, tx = 256
    cdef char* source = data_of(x)
    cdef char* target = data_of(result)
    cdef char* positions = NULL if indices is None else data_of(indices)
    cdef char* totals = NULL
    cdef TensorBase scratch
    cdef void* arguments[5]
    l.n = call.n
    l.inner = call.inner
    l.lines = call.outer * l.inner
    if l.inner == 1:
        form = ROWS
        blocks = l.lines
        most = l.n // (4 * TILE)
    else:
        form = COLUMNS
        tx = 32 if l.lines < 8192 else 256
        blocks = (l.lines + tx - 1) // tx
        most = l.n // 64
    l.pieces = 1
    l.chunk = l.n
    wanted = 4 * <int>device_attribute(MULTIPROCESSOR_COUNT, index) * (256 // tx)
    if blocks < wanted // 4 and most > 1:
        l.pieces = <int>min(wanted // blocks, most, <int64_t>4096)
        l.chunk = (l.n + l.pieces - 1) // l.pieces
        if form == ROWS:
            l.chunk = (l.chunk + TILE - 1) // TILE * TILE
        l.pieces = <int>((l.n + l.chunk - 1) // l.chunk)
    if l.pieces > 1:
        nbytes = l.lines * l.pieces * SCAN_STATE_BYTES
        scratch = empty_tensor(1, &nbytes, U8, place_of(x))
        totals = data_of(scratch)
    blocks = min(blocks, (<int64_t>1 << 31) - 1)
    arguments[0] = &l
    arguments[1] = &source
    arguments[2] = &target
    arguments[3] = &positions
    arguments[4] = &totals
    if l.pieces > 1:
        run3(handle_of(op, x.dtype, result.dtype, form + 1, index), index, blocks, l.pieces, 1, tx, 1, 1, 0, arguments)
        run3(handle_of(op, x.dtype, result.dtype, TOTALS, index), index, min(l.lines, (<int64_t>1 << 31) - 1), 1, 1, 256, 1, 1, 0, arguments)
    run3(handle_of(op, x.dtype, result.dtype, form, index), index, blocks, l.pieces, 1, tx, 1, 1, 0, arguments)
    return 0


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int op, source
    for op in range(<int>SCAN_COUNT):
        for source in range(<int>NUM_DTYPES):
            if scan_takes(op, source):
                handle_of(op, source, I64 if op in (SCAN_SUM, SCAN_PROD) and is_integral_or_bool_type(source) else source, ROWS, index)


set_scan(DEV_CUDA, scan)
