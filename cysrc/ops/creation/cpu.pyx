"""Sequences and windows on the CPU, beneath the checks of creation.pyx, and what is computed on the host for every device: few numbers, or of a kind that no
device's kernel makes."""
from libc.math cimport M_PI, cos as c_cos, exp as c_exp, fabs, log as c_log, pow as c_pow, sin as c_sin
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.allocator cimport block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUSTOM, LAST_CUSTOM
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport C128, F32, F64, I64, Scalar
from tensorrt_lite._C.core.iterator cimport copy_elements
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, empty_tensor
from tensorrt_lite._C.ops.creation.kinds cimport BARTLETT, COSINES, round_half
from tensorrt_lite._C.steps.creation cimport set_complex_sequence, set_half_sequence, set_powers, set_sequence, set_window

attach()

cdef extern from *:
    """
    #include "isa.h"
    typedef struct {
      void (*range_int)(void*, int64_t, int64_t, int64_t, int64_t);
      void (*range[2])(void*, int64_t, int64_t, double, double);
      void (*linspace[2])(void*, int64_t, int64_t, int64_t, double, double, double);
    } trt_sequence_loops;
    ISA_TABLE(trt_sequence_loops, trt_sequences)
    """
    ctypedef struct trt_sequence_loops:      # of two functions, float's and double's
        void (*range_int)(void*, int64_t, int64_t, int64_t, int64_t) noexcept nogil
        void (*range[2])(void*, int64_t, int64_t, double, double) noexcept nogil
        void (*linspace[2])(void*, int64_t, int64_t, int64_t, double, double, double) noexcept nogil
    const trt_sequence_loops* trt_sequences() nogil

cdef const trt_sequence_loops* SEQUENCES = trt_sequences()


cdef int take_from_host(TensorBase r, TensorBase c) except -1:
    """r = c, which was made in host memory."""
    return copy_elements(r, c if r.device_type == c.device_type else <TensorBase?>(<object>c).to((<object>r).device))


# ---- sequences ---------------------------------------------------------------------------------------------------------

cdef struct SequenceTask:
    int code                  # I64, F32 or F64
    bint both_ends
    char* data
    int64_t istart, istep, n
    double start, stop, step


cdef void sequence_range(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef SequenceTask* t = <SequenceTask*>context
    if t.code == I64:
        SEQUENCES.range_int(t.data, begin, end, t.istart, t.istep)
    elif t.both_ends:
        SEQUENCES.linspace[t.code - F32](t.data, begin, end, t.n, t.start, t.stop, t.step)
    else:
        SEQUENCES.range[t.code - F32](t.data, begin, end, t.start, t.step)


cdef int sequence(TensorBase r, int kind, double start, double stop, double step, int64_t istart, int64_t istep, bint both_ends) except -1:
    """By way of a contiguous tensor of the kind's dtype where r is none."""
    cdef TensorBase c = r if r.dtype == kind and r.contiguous else empty_tensor(r.ndim, r.sizes, kind, DEV_CPU)
    cdef trt_block* block = c.storage.block
    cdef SequenceTask t
    t.code = kind
    t.both_ends = both_ends
    t.data = data_of(c)
    t.istart = istart
    t.istep = istep
    t.n = r.numel
    t.start = start
    t.stop = stop
    t.step = step
    trt_block_hold(block)
    with nogil:
        parallel_for(t.n, GRAIN, 1024, sequence_range, &t)
    block_drop(block)
    return 0 if c is r else copy_elements(r, c)


cdef int half_sequence(TensorBase r, double start, double stop) except -1:
    """linspace of a half type, every step rounded to it, as PyTorch computes there."""
    cdef TensorBase c = empty_tensor(r.ndim, r.sizes, F32, DEV_CPU)
    cdef float* p = <float*>data_of(c)
    cdef int64_t i, n = r.numel
    cdef int code = r.dtype
    cdef float first = round_half(<float>start, code), last = round_half(<float>stop, code), step
    step = round_half(round_half(last - first, code) / round_half(<float>(n - 1), code), code) if n > 1 else 0
    for i in range(n):
        if i < n // 2 or n == 1:
            p[i] = first + round_half(step * round_half(<float>i, code), code)
        else:
            p[i] = last - round_half(step * round_half(<float>(n - 1 - i), code), code)
    return take_from_host(r, c)


cdef int complex_sequence(TensorBase r, const Scalar* s, const Scalar* e, double base, bint power) except -1:
    """linspace of complex numbers, or base to that power."""
    cdef TensorBase c
    cdef double* p
    cdef int64_t i, n = r.numel, k
    cdef double re, im, step_re, step_im, size, angle
    c = empty_tensor(r.ndim, r.sizes, C128, DEV_CPU)
    p = <double*>data_of(c)
    step_re = (e.d - s.d) / (n - 1) if n > 1 else 0
    step_im = (e.im - s.im) / (n - 1) if n > 1 else 0
    for i in range(n):
        if i < n // 2 or n == 1:
            re = s.d + step_re * i
            im = s.im + step_im * i
        else:
            k = n - 1 - i
            re = e.d - step_re * k
            im = e.im - step_im * k
        if power:
            # base^(re + i im) = exp((re + i im) (log |base| + i arg base))
            angle = 0 if base >= 0 else 3.14159265358979323846
            size = c_exp(re * c_log(fabs(base)) - im * angle)
            angle = im * c_log(fabs(base)) + re * angle
            re = size * c_cos(angle)
            im = size * c_sin(angle)
        p[2 * i] = re
        p[2 * i + 1] = im
    return take_from_host(r, c)


cdef int powers(TensorBase r, double base, double start, double stop, double step) except -1:
    cdef TensorBase c = empty_tensor(r.ndim, r.sizes, F64, DEV_CPU)
    cdef double* p = <double*>data_of(c)
    cdef int64_t i, n = r.numel
    for i in range(n):
        p[i] = c_pow(base, start + step * i if i < n // 2 or n == 1 else stop - step * (n - 1 - i))
    return copy_elements(r, c)


# ---- windows -----------------------------------------------------------------------------------------------------------

cdef double bessel_i0(double x) noexcept:
    """The modified Bessel function of order 0 by its power series, scaled by exp(-|x|)."""
    cdef double scale = c_exp(-fabs(x)), term = 1, sum = 1, q = x * x / 4
    cdef int k = 1
    if fabs(x) > 600:
        # the leading terms of the asymptotic series suffice here: exp(x) itself overflows
        return (1 + 1 / (8 * fabs(x)) + 9 / (128 * x * x) + 225 / (3072 * fabs(x) * x * x) + 11025 / (98304 * x * x * x * x)) / (2 * M_PI * fabs(x)) ** 0.5
    while term > 1e-18 * sum:
        term *= q / (<double>k * k)
        sum += term
        k += 1
    return scale * sum


cdef int window(TensorBase r, int kind, bint periodic, double a, double b, double c) except -1:
    cdef TensorBase w = empty_tensor(1, &r.numel, F64, DEV_CPU)
    cdef double* p = <double*>data_of(w)
    cdef int64_t i, n = r.numel, last = n if periodic else n - 1
    cdef double x, top
    top = bessel_i0(a)
    for i in range(n):
        if n == 1:
            p[i] = 1
        elif kind == COSINES:
            x = 2 * M_PI * <double>i / <double>last
            p[i] = a - b * c_cos(x) + c * c_cos(2 * x)
        elif kind == BARTLETT:
            p[i] = 2.0 * i / last if 2 * i <= last else 2 - 2.0 * i / last
        else:
            x = 2.0 * i / last - 1
            x = a * (max(1 - x * x, 0.0)) ** 0.5
            # both values are scaled by exp(-argument)
            p[i] = bessel_i0(x) / top * c_exp(fabs(x) - fabs(a))
    return take_from_host(r, w)


cdef int sequence_on_host(TensorBase r, int kind, double start, double stop, double step, int64_t istart, int64_t istep, bint both_ends) except -1:
    """For devices without a kernel: numbers that are made of none go there from the host."""
    cdef TensorBase c = empty_tensor(r.ndim, r.sizes, r.dtype, DEV_CPU)
    sequence(c, kind, start, stop, step, istart, istep, both_ends)
    return copy_elements(r, c)


for _device in range(DEV_CUSTOM, LAST_CUSTOM + 1):
    set_sequence(_device, sequence_on_host)
    set_half_sequence(_device, half_sequence)
    set_complex_sequence(_device, complex_sequence)
    set_powers(_device, powers)
    set_window(_device, window)

set_sequence(DEV_CPU, sequence)
set_half_sequence(DEV_CPU, half_sequence)
set_complex_sequence(DEV_CPU, complex_sequence)
set_powers(DEV_CPU, powers)
set_window(DEV_CPU, window)
