"""Fourier transforms on the CPU (cysrc/loops/fft.c), beneath the checks of fft.pyx; plans are kept between calls."""
cimport cython
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.allocator cimport block_alloc, block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport C64, C128, F64
from tensorrt_lite._C.core.free_threading cimport mutex, mutex_lock, mutex_unlock
from tensorrt_lite._C.core.parallel cimport num_threads, parallel_for, task_fn
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, empty_tensor
from tensorrt_lite._C.steps.fft cimport FFT_C2C, set_transform_dim

attach()

cdef extern from "fft.h" nogil:
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
        int far, together, by_lines

ctypedef int64_t (*length_fn)(const FftPlan*) noexcept nogil
ctypedef void (*tables_fn)(const FftPlan*, void*, void*, void*) noexcept nogil
ctypedef FftPlan* (*plan_fn)(int64_t, int, int, int) noexcept nogil
ctypedef void (*free_fn)(FftPlan*) noexcept nogil
ctypedef void (*prepare_fn)(FftArgs*) noexcept nogil
ctypedef int64_t (*scratch_fn)(const FftArgs*) noexcept nogil

cdef extern from *:
    """
    #include "isa.h"
    ISA_FUNCTION(int64_t, fft_length, (const FftPlan*))
    ISA_FUNCTION(void, fft_tables, (const FftPlan*, void*, void*, void*))
    ISA_FUNCTION(FftPlan*, fft_plan, (int64_t, int, int, int))
    ISA_FUNCTION(void, fft_plan_free, (FftPlan*))
    ISA_FUNCTION(void, fft_prepare, (FftArgs*))
    ISA_FUNCTION(int64_t, fft_scratch, (const FftArgs*))
    ISA_TASK(fft_lines)
    """
    length_fn fft_length()
    tables_fn fft_tables()
    plan_fn fft_plan()
    free_fn fft_plan_free()
    prepare_fn fft_prepare()
    scratch_fn fft_scratch()
    task_fn fft_lines()

cdef length_fn length_of = fft_length()
cdef tables_fn write_tables = fft_tables()
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


cdef dict _plans = {}                # least recently used first; relies on the GIL or on the lock
cdef int64_t _kept_lengths = 0
cdef mutex _plans_lock


cdef Plan plan_of(int64_t n, bint is_double, bint is_real, bint by_lines):
    mutex_lock(&_plans_lock)
    try:
        return find_plan(n, is_double, is_real, by_lines)
    finally:
        mutex_unlock(&_plans_lock)


cdef Plan find_plan(int64_t n, bint is_double, bint is_real, bint by_lines):
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


cdef tuple tables_for_device(int64_t n, bint is_double):
    """What a device needs of a length: (exp(-2 pi i k / m) for k < m, None, None) of m = n, or, where a prime factor is too large for a pass, of m the length
    of the convolution, with the chirp (n) and its spectrum (m). Complex, on the CPU."""
    cdef Plan plan = plan_of(n, is_double, False, True)
    cdef int64_t m = length_of(plan.plan)
    cdef int dtype = C128 if is_double else C64
    cdef TensorBase roots = empty_tensor(1, &m, dtype, DEV_CPU), chirp = None, spectrum = None
    if m != n:
        chirp, spectrum = empty_tensor(1, &n, dtype, DEV_CPU), empty_tensor(1, &m, dtype, DEV_CPU)
    write_tables(plan.plan, data_of(roots), NULL if chirp is None else data_of(chirp), NULL if spectrum is None else data_of(spectrum))
    return roots, chirp, spectrum


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
