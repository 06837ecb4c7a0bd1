# Scans of the reduction family: running sums, products and extremes.

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


cdef TensorBase scan(TensorBase self, int64_t dim, int dtype, int op, TensorBase out, int mode, str name):
    cdef Scan s
    cdef int d = wrap_dim(dim, self.ndim), i, target = dtype
    cdef int64_t outer = 1
    cdef TensorBase x, r
    cdef trt_block* held
    if target >= 0 and mode == OUT:
        check_out_type(name, out, target)
    if target < 0:
        target = self.dtype if mode == INPLACE else out.dtype if mode == OUT else (I64 if is_integral_or_bool_type(self.dtype) else self.dtype)
    x = contiguous_of(cast_to(self, target) if category[target] >= CAT_FLOAT or category[self.dtype] >= CAT_FLOAT else self)
    r = empty_tensor(x.ndim, x.sizes, I64 if is_integral_or_bool_type(x.dtype) else x.dtype, place_of(x))
    if x.device_type == DEV_CUDA and x.numel:
        device_scan(x, d, op, r, None)
    elif x.device_type != DEV_META and x.numel:
        s.kernels = scan_table(op, x.dtype)
        if s.kernels.rows == NULL:
            raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{dtype_text(x.dtype)}'")
        s.data = data_of(x)
        s.out = data_of(r)
        s.item = ITEM_SIZE[x.dtype]
        s.out_item = ITEM_SIZE[r.dtype]
        s.n = x.sizes[d] if x.ndim else 1
        s.inner = 1
        for i in range(x.ndim):
            if i < d:
                outer *= x.sizes[i]
            elif i > d:
                s.inner *= x.sizes[i]
        held = x.storage.block
        trt_block_hold(held)
        with nogil:
            if s.inner == 1:
                parallel_for(outer, (GRAIN // 4 + s.n - 1) // s.n, 1, run_scan_rows, &s)
            else:
                parallel_for(outer, (GRAIN // 4 + s.n * s.inner - 1) // (s.n * s.inner), 1, run_scan_blocks, &s)
        block_drop(held)
    if r.dtype != target:
        r = cast_to(r, target)
    if mode == INPLACE:
        copy_elements(out, r)
        return out
    return write_to_out(name, r, out, mode)


cdef TensorBase cumsum_cpu(TensorBase self, int64_t dim, int dtype, TensorBase out, int mode):
    return scan(self, dim, dtype, SCAN_CUMSUM, out, mode, "cumsum")


cdef TensorBase cumprod_cpu(TensorBase self, int64_t dim, int dtype, TensorBase out, int mode):
    return scan(self, dim, dtype, SCAN_CUMPROD, out, mode, "cumprod")


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
    ISA_TASK(extreme_scan)
    """
    task_fn extreme_scan()

cdef task_fn extreme_scan_task = extreme_scan()

cdef enum:
    DEVICE_CUMMAX = 2              # the scan's number on a device, after SCAN_CUMSUM and SCAN_CUMPROD
    DEVICE_CUMMIN = 3


cdef object cumulative_extreme(TensorBase self, int64_t dim, bint largest, object out, int mode, str name):
    """Running extreme and where it was; equal values move the index on, NaN stays."""
    cdef int d = wrap_dim(dim, self.ndim), i
    cdef int64_t outer = 1
    cdef TensorBase x, values, indices
    cdef ExtremeScanArgs a
    if category[self.dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{dtype_text(self.dtype)}'")
    values = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    indices = empty_tensor(self.ndim, self.sizes, I64, place_of(self))
    if self.numel and self.device_type == DEV_CUDA:
        device_scan(contiguous_of(self), d, DEVICE_CUMMAX if largest else DEVICE_CUMMIN, values, indices)
    elif self.numel and self.device_type != DEV_META:
        x = contiguous_of(self)
        a.n = x.sizes[d] if x.ndim else 1
        a.inner = 1
        for i in range(x.ndim):
            if i < d:
                outer *= x.sizes[i]
            elif i > d:
                a.inner *= x.sizes[i]
        a.x = data_of(x)
        a.values = data_of(values)
        a.indices = <int64_t*>data_of(indices)
        a.largest = largest
        a.dtype = x.dtype
        run_held(extreme_scan_task, &a, outer if a.inner == 1 else outer * ((a.inner + EXTREME_COLUMNS - 1) // EXTREME_COLUMNS), x.numel, x, x)
    if mode == OUT:
        values = write_to_out(name, values, <TensorBase>out[0], OUT)
        indices = write_to_out(name, indices, <TensorBase>out[1], OUT)
    return named_result(name, (values, indices))


cdef object cummax_cpu(TensorBase self, int64_t dim, object out, int mode):
    return cumulative_extreme(self, dim, True, out, mode, "cummax")


cdef object cummin_cpu(TensorBase self, int64_t dim, object out, int mode):
    return cumulative_extreme(self, dim, False, out, mode, "cummin")


