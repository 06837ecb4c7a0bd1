"""Scans: running sums, products and extremes along one dimension. The meta functions, and the step on the CPU."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.allocator cimport block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport INPLACE, OUT, attach
from tensorrt_lite._C.core.dtype cimport CAT_FLOAT, I64, NUM_DTYPES, category, is_integral_or_bool_type
from tensorrt_lite._C.core.iterator cimport cast_to, check_internal_overlap, check_no_overlap, contiguous_of, copy_elements
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for, task_fn
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, empty_tensor, place_of
from tensorrt_lite._C.core.text cimport dtype_text
from tensorrt_lite._C.ops.reduction.lines cimport fill_lines
from tensorrt_lite._C.ops.reduction.loops cimport scan_kernels
from tensorrt_lite._C.ops.support cimport check_out_type, run_held, write_to_out
from tensorrt_lite._C.steps.reduction cimport SCAN_COUNT, SCAN_MAX, SCAN_MIN, line_call, run_scan, scan_functors, scan_takes, set_scan


cdef extern from "reduction_scan.h" nogil:
    enum:
        EXTREME_COLUMNS
    ctypedef struct ExtremeScanArgs:
        const char* x
        char* values
        int64_t* indices
        int64_t n, inner
        int largest, dtype

cdef extern from *:
    """
    #include "isa.h"
    ISA_ROWS(scan_kernels, scan_table, SCAN_COUNT * NUM_DTYPES)
    ISA_TASK(extreme_scan)
    """
    const scan_kernels* scan_table()
    task_fn extreme_scan()

cdef const scan_kernels* SCANS = scan_table()
cdef task_fn extreme_scan_task = extreme_scan()


cdef TensorBase meta_scan(line_call* call, str name, TensorBase self, int64_t dim, int dtype, TensorBase out, int mode, int step_dtype):
    """cumsum, cumprod: in the given type, that of `out` or the operand's, integers in int64."""
    if dtype >= 0 and mode == OUT:
        check_out_type(name, out, dtype)
    if mode == OUT:
        check_no_overlap(name, out, self, True)
    elif mode == INPLACE:
        check_internal_overlap(name, out)
    if not scan_takes(call.operation, self.dtype):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{dtype_text(self.dtype)}'")
    fill_lines(call, self, dim)
    return empty_tensor(self.ndim, self.sizes, step_dtype, place_of(self))


cdef object cumulative_extreme(TensorBase self, int64_t dim, int operation, object out, int mode, str name):
    """(running extremes, where they were); equal values move the index on, NaN stays."""
    cdef line_call call
    cdef TensorBase values, indices
    call.operation = operation
    if not scan_takes(operation, self.dtype):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{dtype_text(self.dtype)}'")
    fill_lines(&call, self, dim)
    values = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    indices = empty_tensor(self.ndim, self.sizes, I64, place_of(self))
    if self.numel:
        run_scan(self.device_type, &call, self, values, indices)
    if mode == OUT:
        values = write_to_out(name, values, <TensorBase>out[0], OUT)
        indices = write_to_out(name, indices, <TensorBase>out[1], OUT)
    return (values, indices)


# ---- on the CPU ----------------------------------------------------------------------------------------------------

cdef struct Scan:
    const scan_kernels* kernels
    const char* data
    char* out
    int64_t item, out_item
    int64_t n, inner               # contiguous (outer, n, inner)


cdef void run_scan_rows(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Scan* s = <Scan*>context
    s.kernels.rows(s.data, s.n * s.item, s.item, s.out, s.n * s.out_item, s.out_item, s.n, begin, end)


cdef void run_scan_blocks(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef Scan* s = <Scan*>context
    cdef int64_t k
    for k in range(begin, end):
        s.kernels.cols(s.data + k * s.n * s.inner * s.item, s.inner * s.item, s.out + k * s.n * s.inner * s.out_item, s.inner * s.out_item, s.n, 0, s.inner)


cdef int scan(line_call* call, TensorBase self, TensorBase result, TensorBase indices) except -1:
    cdef Scan s
    cdef ExtremeScanArgs a
    cdef TensorBase x = contiguous_of(cast_to(self, result.dtype) if category[result.dtype] >= CAT_FLOAT else self)
    cdef trt_block* held
    if call.operation == SCAN_MAX or call.operation == SCAN_MIN:
        a.n, a.inner = call.n, call.inner
        a.x = data_of(x)
        a.values = data_of(result)
        a.indices = <int64_t*>data_of(indices)
        a.largest = call.operation == SCAN_MAX
        a.dtype = x.dtype
        return run_held(extreme_scan_task, &a, call.outer if a.inner == 1 else call.outer * ((a.inner + EXTREME_COLUMNS - 1) // EXTREME_COLUMNS), x.numel, x, x)
    s.kernels = SCANS + call.operation * NUM_DTYPES + x.dtype
    if s.kernels.rows == NULL:
        raise NotImplementedError(f"'scan' has no loops of {scan_functors[call.operation].decode()} for '{dtype_text(x.dtype)}'")
    s.data = data_of(x)
    s.out = data_of(result)
    s.item = ITEM_SIZE[x.dtype]
    s.out_item = ITEM_SIZE[result.dtype]
    s.n, s.inner = call.n, call.inner
    held = x.storage.block
    trt_block_hold(held)
    with nogil:
        if s.inner == 1:
            parallel_for(call.outer, (GRAIN // 4 + s.n - 1) // s.n, 1, run_scan_rows, &s)
        else:
            parallel_for(call.outer, (GRAIN // 4 + s.n * s.inner - 1) // (s.n * s.inner), 1, run_scan_blocks, &s)
    block_drop(held)
    return 0


set_scan(DEV_CPU, scan)
