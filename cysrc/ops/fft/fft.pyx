# Fourier transforms over loops/fft.h: one dimension after another, plans kept between calls.
from libc.math cimport sqrt
from tensorrt_lite._C.steps.fft cimport run_transform_dim, set_transform_dim

cdef extern from "fft.h" nogil:
    enum:
        FFT_C2C
        FFT_R2C
        FFT_C2R
    ctypedef struct FftPlan:
        pass
    ctypedef struct FftArgs:
        const FftPlan* plan
        const char* x
        char* y
        int64_t n, x_stride, y_stride
        int64_t lines
        int dims
        int64_t size[64]
        int64_t x_strides[64]
        int64_t y_strides[64]
        int kind, inverse, twosided, is_double
        double scale
        char* scratch
        int64_t worker_bytes, workers, groups, group_lines
        int by_lines

ctypedef FftPlan* (*plan_fn)(int64_t, int, int, int) noexcept nogil
ctypedef void (*free_fn)(FftPlan*) noexcept nogil
ctypedef void (*prepare_fn)(FftArgs*) noexcept nogil
ctypedef int64_t (*scratch_fn)(const FftArgs*) noexcept nogil

cdef extern from *:
    """
    ISA_FUNCTION(FftPlan*, fft_plan, (int64_t, int, int, int))
    ISA_FUNCTION(void, fft_plan_free, (FftPlan*))
    ISA_FUNCTION(void, fft_prepare, (FftArgs*))
    ISA_FUNCTION(int64_t, fft_scratch, (const FftArgs*))
    ISA_TASK(fft_lines)
    """
    plan_fn fft_plan()
    free_fn fft_plan_free()
    prepare_fn fft_prepare()
    scratch_fn fft_scratch()
    task_fn fft_lines()

cdef plan_fn make_plan = fft_plan()
cdef free_fn free_plan = fft_plan_free()
cdef prepare_fn prepare = fft_prepare()
cdef scratch_fn scratch_bytes = fft_scratch()
cdef task_fn run_lines = fft_lines()

cdef enum:
    KEPT_PLANS = 64
    KEPT_LENGTHS = 1 << 22           # of all kept plans together, in elements: about 200 MB at most, of a few very long ones



@cython.final
cdef class Plan:
    """Twiddle factors of one length, shared by the calls that run with it."""
    cdef FftPlan* plan
    cdef int64_t n

    def __dealloc__(self):
        if self.plan != NULL:
            free_plan(self.plan)


cdef dict _plans = {}                # least recently used first; relies on the GIL
cdef int64_t _kept_lengths = 0


cdef Plan plan_of(int64_t n, bint is_double, bint is_real, bint by_lines):
    global _kept_lengths
    cdef tuple key = (n, is_double, is_real, by_lines)
    cdef Plan plan = _plans.pop(key, None)
    if plan is None:
        plan = Plan.__new__(Plan)
        plan.n = n
        with nogil:
            plan.plan = make_plan(n, is_double, is_real, by_lines)
        if plan.plan == NULL:
            raise MemoryError(f"fft: no memory for the plan of a transform of {n} elements")
        if key in _plans:            # another thread made one meanwhile
            return <Plan>_plans[key]
        if n > KEPT_LENGTHS:
            return plan
        _kept_lengths += n
        while _plans and (len(_plans) >= KEPT_PLANS or _kept_lengths > KEPT_LENGTHS):
            _kept_lengths -= (<Plan>_plans.pop(next(iter(_plans)))).n
    _plans[key] = plan
    return plan


cdef int transform_dim(TensorBase x, TensorBase y, int dim, int64_t n, int kind, bint inverse, bint twosided, double scale) except -1:
    """One dimension of x into y (of which x may be the same tensor): n elements of the real or complex signal along it. Both on the CPU."""
    cdef FftArgs a
    cdef int i
    cdef int64_t room
    cdef trt_block* hx = x.storage.block
    cdef trt_block* hy = y.storage.block
    cdef trt_block* scratch
    cdef Plan plan
    memset(&a, 0, sizeof(FftArgs))
    a.n = n
    a.kind = kind
    a.inverse = inverse
    a.twosided = twosided
    a.is_double = x.dtype in (F64, C128)
    a.scale = scale
    a.x_stride = x.strides[dim]
    a.y_stride = y.strides[dim]
    a.lines = 1
    for i in range(x.ndim):
        if i != dim:
            a.size[a.dims] = x.sizes[i]
            a.x_strides[a.dims] = x.strides[i]
            a.y_strides[a.dims] = y.strides[i]
            a.lines *= x.sizes[i]
            a.dims += 1
    a.x = data_of(x)
    a.y = data_of(y)
    trt_block_hold(hx)
    trt_block_hold(hy)
    try:
        prepare(&a)
        plan = plan_of(n, a.is_double, kind != FFT_C2C, a.by_lines)
        a.plan = plan.plan
        a.worker_bytes = (scratch_bytes(&a) + 63) // 64 * 64
        a.workers = max(1, min(min(<int64_t>num_threads(), a.groups), a.lines * n // 8192))
        scratch = block_alloc(a.worker_bytes * a.workers)
        a.scratch = scratch.data
        with nogil:
            parallel_for(a.workers, 1, 1, run_lines, &a)
        block_drop(scratch)
    finally:
        block_drop(hx)
        block_drop(hy)
    return 0


set_transform_dim(DEV_CPU, transform_dim)


cdef int check_signal(TensorBase t, const Dims* dim, int64_t normalization, bint is_complex, str op, int* dims) except -1:
    cdef int i, k
    if t.dtype not in ((C64, C128) if is_complex else (F32, F64)):
        raise RuntimeError(f"{op}: expected a {'complex' if is_complex else 'real floating point'} tensor of 32 or 64 bit numbers, but got {dtype_text(t.dtype)}")
    if normalization < 0 or normalization > 2:
        raise RuntimeError(f"{op}: unknown normalization {normalization}")
    if dim.n > t.ndim or (not is_complex and dim.n < 1):
        raise RuntimeError(f"{op}: {dim.n} dimensions to transform of a tensor of shape {shape_text(t)}")
    for i in range(dim.n):
        dims[i] = wrap_dim(dim.v[i], t.ndim)
        for k in range(i):
            if dims[k] == dims[i]:
                raise RuntimeError("FFT dims must be unique")
    return 0


cdef double scale_of(int64_t numel, int64_t normalization) noexcept:
    return 1.0 if normalization == 0 or numel == 0 else 1.0 / numel if normalization == 2 else 1.0 / sqrt(<double>numel)


cdef TensorBase _fft_c2c_kernel(TensorBase self, const Dims* dim, int64_t normalization, bint forward):
    cdef int dims[64]
    cdef int i
    cdef int64_t signal = 1
    cdef TensorBase x = alias_of(self), y
    check_signal(x, dim, normalization, True, "_fft_c2c", dims)
    for i in range(dim.n):
        signal *= x.sizes[dims[i]]
    y = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
    if y.numel == 0:
        return y
    if dim.n == 0:
        return _ops.copy_(y, x)
    for i in range(dim.n - 1, -1, -1):
        run_transform_dim(x.device_type, x, y, dims[i], x.sizes[dims[i]], FFT_C2C, not forward, False, scale_of(signal, normalization) if i == 0 else 1.0)
        x = y
    return y


cdef TensorBase _fft_r2c_kernel(TensorBase self, const Dims* dim, int64_t normalization, bint onesided):
    cdef int dims[64]
    cdef int64_t sizes[64]
    cdef int i, last
    cdef int64_t signal = 1
    cdef TensorBase x = alias_of(self), y
    check_signal(x, dim, normalization, False, "_fft_r2c", dims)
    last = dims[dim.n - 1]
    for i in range(dim.n):
        signal *= x.sizes[dims[i]]
    memcpy(sizes, x.sizes, x.ndim * sizeof(int64_t))
    if onesided:
        sizes[last] = x.sizes[last] // 2 + 1
    y = empty_tensor(x.ndim, sizes, C128 if x.dtype == F64 else C64, place_of(x))
    if y.numel == 0:
        return y
    if x.sizes[last] == 0:
        raise RuntimeError(f"_fft_r2c: dimension {last} of a tensor of shape {shape_text(x)} has no elements")
    run_transform_dim(x.device_type, x, y, last, x.sizes[last], FFT_R2C, False, not onesided, scale_of(signal, normalization) if dim.n == 1 else 1.0)
    for i in range(dim.n - 2, -1, -1):
        run_transform_dim(x.device_type, y, y, dims[i], y.sizes[dims[i]], FFT_C2C, False, False, scale_of(signal, normalization) if i == 0 else 1.0)
    return y


cdef TensorBase _fft_c2r_kernel(TensorBase self, const Dims* dim, int64_t normalization, int64_t last_dim_size):
    cdef int dims[64]
    cdef int64_t sizes[64]
    cdef int i, last
    cdef int64_t signal = 1
    cdef TensorBase x = alias_of(self), y, t
    check_signal(x, dim, normalization, True, "_fft_c2r", dims)
    if dim.n < 1:
        raise RuntimeError("_fft_c2r: at least one dimension is needed")
    last = dims[dim.n - 1]
    if last_dim_size < 1 or x.sizes[last] != last_dim_size // 2 + 1:
        raise RuntimeError(f"_fft_c2r: expected {max(0, last_dim_size) // 2 + 1} frequencies along dimension {last} for {last_dim_size} numbers, but got a tensor of shape {shape_text(x)}")
    memcpy(sizes, x.sizes, x.ndim * sizeof(int64_t))
    sizes[last] = last_dim_size
    checked_numel(x.ndim, sizes)
    for i in range(dim.n):
        signal *= sizes[dims[i]]
    y = empty_tensor(x.ndim, sizes, F64 if x.dtype == C128 else F32, place_of(x))
    if y.numel == 0:
        return y
    if dim.n > 1:
        t = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
        for i in range(dim.n - 1):
            run_transform_dim(x.device_type, x, t, dims[i], x.sizes[dims[i]], FFT_C2C, True, False, 1.0)
            x = t
    run_transform_dim(x.device_type, x, y, last, last_dim_size, FFT_C2R, True, False, scale_of(signal, normalization))
    return y


# ---- derivatives ---------------------------------------------------------------------------------------------------

cdef object real_to_complex_gradient(object grad, object dim, object normalization, bint onesided, object shape):
    """The transposed map: the missing frequencies have no gradient; of what an inverse transform gives the real part counts."""
    cdef object missing, last = dim[len(dim) - 1]
    if onesided:
        missing = shape[last] - grad.size(last)
        if missing > 0:
            shape = list(grad.shape)
            shape[last] = missing
            grad = _ops.cat([grad, grad.new_zeros(shape)], last)
    return _ops.real(_ops._fft_c2c(grad, dim, normalization, False))


cdef object complex_to_real_gradient(object grad, object dim, object normalization, object last_dim_size):
    """The transposed map: every frequency but the first and, of an even number, the last stood for itself and its mirror image."""
    cdef object spectrum = _ops._fft_r2c(grad, dim, normalization, True), last = dim[len(dim) - 1]
    cdef object size = spectrum.size(last), mirrored = last_dim_size - size
    if mirrored > 0:
        pieces = [spectrum.narrow(last, 0, 1), spectrum.narrow(last, 1, mirrored) * 2]
        if size > mirrored + 1:
            pieces.append(spectrum.narrow(last, mirrored + 1, size - mirrored - 1))
        spectrum = _ops.cat(pieces, last)
    return spectrum
