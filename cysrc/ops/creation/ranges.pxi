# Sequences of numbers, identity matrices, layouts by permutation. Part of creation.pyx.
from libc.math cimport ceil, floor, pow as c_pow, cos as c_cos, sin as c_sin, log as c_log, fabs, exp as c_exp

cdef extern from *:
    """
    #include "scalar_types.h"
    static inline float trt_round_half(float x, int code) { return code == DT_f16 ? ld_f16(st_f16(x)) : ld_bf16(st_bf16(x)); }
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
    float trt_round_half(float, int) nogil
    const trt_sequence_loops* trt_sequences() nogil

cdef const trt_sequence_loops* SEQUENCES = trt_sequences()

# on CUDA, set by cysrc/cuda/indexing.pyx
cdef int (*device_sequence)(TensorBase r, int kind, double start, double stop, double step, int64_t istart, int64_t istep, int both_ends) except -1
cdef int (*device_powers)(TensorBase r, double base, double start, double stop, double step) except -1


def _set_device_kernels(size_t sequence_, size_t powers_):
    (<void**>&device_sequence)[0] = <void*>sequence_
    (<void**>&device_powers)[0] = <void*>powers_


cdef TensorBase from_host(TensorBase r, TensorBase c):
    """r = c, which was made in host memory: few numbers, or of a kind that no kernel makes."""
    copy_elements(r, c if r.device_type != DEV_CUDA else <TensorBase>(<object>c).to((<object>r).device))
    return r


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


cdef int fill_sequence(TensorBase r, SequenceTask* t) except -1:
    """Fill r (in index order, whatever its shape) by way of a contiguous tensor of the task's dtype where r has another."""
    cdef TensorBase c = r
    cdef trt_block* held
    if r.device_type == DEV_META or r.numel == 0:
        return 0
    if r.device_type == DEV_CUDA:
        c = r if r.contiguous else empty_tensor(r.ndim, r.sizes, r.dtype, place_of(r))
        device_sequence(c, t.code, t.start, t.stop, t.step, t.istart, t.istep, t.both_ends)
        if c is not r:
            copy_elements(r, c)
        return 0
    if r.dtype != t.code or not r.contiguous:
        c = empty_tensor(r.ndim, r.sizes, t.code, DEV_CPU)
    t.data = data_of(c)
    t.n = r.numel
    held = c.storage.block
    trt_block_hold(held)
    with nogil:
        parallel_for(t.n, GRAIN, 1024, sequence_range, t)
    block_drop(held)
    if c is not r:
        copy_elements(r, c)
    return 0


cdef int range_number(object x, Scalar* s, str op, str name) except -1:
    if x is None or isinstance(x, (str, bytes, tuple, list)):
        raise TypeError(f"{op}(): argument '{name}' must be Number, not {type(x).__name__}")
    to_scalar(x, s)
    if s.kind == 3:
        raise RuntimeError("value cannot be converted to type double without overflow")
    return 0


cdef int check_range(double start, double stop, double step) except -1:
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if start - start != 0 or stop - stop != 0:
        raise RuntimeError(f"unsupported range: {start:g} -> {stop:g}")
    if step > 0 and stop < start or step < 0 and stop > start:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    return 0


cdef int64_t truncated(const Scalar* s) noexcept:
    return s.i if s.kind < 2 else <int64_t>s.d


cdef object sequence(str op, const Scalar* start, const Scalar* stop, const Scalar* step, bint inclusive, object out, object dtype, object layout, object device, object pin_memory, object requires_grad, int default_code):
    cdef Dims d
    cdef Options o
    cdef SequenceTask t
    cdef TensorBase r
    cdef double length
    factory_options(&o, op, dtype, device, layout, pin_memory, default_code)
    if out is not None:
        check_out(out, op)
        o.dtype = (<TensorBase>out).dtype
    if o.dtype == BOOL or category[o.dtype] == CAT_COMPLEX:
        raise NotImplementedError(f"\"{op}_cpu\" not implemented for '{dtype_text(o.dtype)}'")
    t.both_ends = False
    t.start = start.d
    t.step = step.d
    t.istart = truncated(start)
    t.istep = truncated(step)
    d.n = 1
    if o.dtype == I64 and not inclusive:
        check_range(start.d, stop.d, step.d)
        if t.istep == 0:
            raise ValueError("step must be nonzero")
        # Python's integers: the distance of two int64 may exceed int64
        distance = <object>truncated(stop) - <object>t.istart
        count = -(-distance // t.istep)
        length = <double>count
    else:
        check_range(start.d, stop.d, step.d)
        length = floor((stop.d - start.d) / step.d + 1) if inclusive else ceil((stop.d - start.d) / step.d)
    if not 0 <= length < 9223372036854775808.0:
        raise RuntimeError("invalid size, possible overflow?")
    d.v[0] = count if o.dtype == I64 and not inclusive else <int64_t>length
    if out is not None:
        r = sized_out(out, op, &d, dtype)
    else:
        r = factory_tensor(&d, &o)
    t.code = I64 if category[o.dtype] == CAT_INT and start.kind < 2 and step.kind < 2 or o.dtype == I64 else F64 if o.dtype != F32 else F32
    if t.code == F64 and category[o.dtype] == CAT_INT:
        # integers step from the truncated start, as in PyTorch
        t.start = <double>t.istart
        t.step = <double>t.istep
    fill_sequence(r, &t)
    return finish_factory(r, requires_grad)


cdef TensorBase sized_out(object out, str op, const Dims* d, object dtype):
    """factory_out, with PyTorch's warning when elements are lost."""
    cdef TensorBase t = <TensorBase>out
    if dtype is not None and parse_dtype(dtype, op) != t.dtype:
        raise RuntimeError(f"dtype {dtype_text(parse_dtype(dtype, op))} does not match dtype of out parameter ({dtype_text(t.dtype)})")
    if t.numel != d.v[0]:
        if t.numel > 0:
            import warnings
            warnings.warn(
                f"The number of elements in the out tensor of shape {shape_text(t)} is {t.numel} which does not match the computed number of elements {d.v[0]}. "
                f"Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of shape ({d.v[0]},).", UserWarning, stacklevel=2)
        resize_tensor(t, d.n, d.v, -1)
    check_internal_overlap(op, t)
    bump_version(t)
    return t


def arange(*args, start=None, end=None, step=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """arange(end), arange(start, end, step=1): numbers from [start, end); int64 when all arguments are integers."""
    cdef Scalar s, e, p
    cdef int code, n = len(args)
    if n == 1 and end is None:
        end = args[0]
    elif n == 1 and start is None:
        start = args[0]
    elif n == 2 and end is None and start is None:
        start, end = args
    elif n == 3 and end is None and start is None and step is None:
        start, end, step = args
    elif n > 0 or end is None:
        raise TypeError(f"arange() received an invalid combination of arguments - got ({', '.join([type(x).__name__ for x in args])}), but expected (end), (start, end) or (start, end, step)")
    range_number(0 if start is None else start, &s, "arange", "start")
    range_number(end, &e, "arange", "end")
    range_number(1 if step is None else step, &p, "arange", "step")
    code = I64 if s.kind < 2 and e.kind < 2 and p.kind < 2 else default_float_code()
    result = sequence("arange", &s, &e, &p, False, out, dtype, layout, device, pin_memory, requires_grad, code)
    return result if out is None else out


def range_inclusive(start, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Numbers from start to end, both included where the step allows; arange is what Python's range is."""
    cdef Scalar s, e, p
    if end is None:
        raise TypeError("range() missing 1 required positional arguments: \"end\"")
    import warnings
    warnings.warn("torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. "
                  "Instead, use torch.arange, which produces values in [start, end).", UserWarning, stacklevel=2)
    range_number(start, &s, "range", "start")
    range_number(end, &e, "range", "end")
    range_number(step, &p, "range", "step")
    result = sequence("range", &s, &e, &p, True, out, dtype, layout, device, pin_memory, requires_grad, default_float_code())
    return result if out is None else out


cdef int end_number(object x, Scalar* s, str op, str name) except -1:
    if isinstance(x, TensorBase) and (<TensorBase>x).ndim != 0:
        raise RuntimeError(f"{op} only supports 0-dimensional start and end tensors, but got {name} with {(<TensorBase>x).ndim} dimension(s).")
    if x is None or isinstance(x, (str, bytes, tuple, list)):
        raise TypeError(f"{op}(): argument '{name}' must be Number, not {type(x).__name__}")
    return to_scalar(x, s)


cdef TensorBase spaced(str op, object start, object end, object steps, Scalar* s, Scalar* e, object out, object dtype, object layout, object device, object pin_memory):
    """The tensor to fill, after the checks that linspace and logspace share."""
    cdef Dims d
    cdef Options o
    end_number(start, s, op, "start")
    end_number(end, e, op, "end")
    d.n = 1
    d.v[0] = parse_int(steps, op, "steps")
    if d.v[0] < 0:
        raise RuntimeError("number of steps must be non-negative")
    factory_options(&o, op, dtype, device, layout, pin_memory, default_complex_code() if s.kind == 3 or e.kind == 3 else default_float_code())
    if (s.kind == 3 or e.kind == 3) and category[o.dtype] != CAT_COMPLEX:
        raise RuntimeError(f"torch.{op}(): inferred dtype c10::complex<float> can't be safely cast to passed dtype {dtype_text(o.dtype)}")
    if out is not None:
        check_out(out, op)
        o.dtype = (<TensorBase>out).dtype
    if o.dtype == BOOL and d.v[0] > 0:
        raise NotImplementedError(f"\"{op}_cpu\" not implemented for 'Bool'")
    if d.v[0] > 0 and op == "linspace":
        check_number(s, o.dtype)
        check_number(e, o.dtype)
    if out is None:
        return factory_tensor(&d, &o)
    if (<TensorBase>out).numel == d.v[0]:
        # as many elements: PyTorch keeps the shape, whatever it is
        return factory_out(out, op, shape_dims(<TensorBase>out, &d), dtype)
    return factory_out(out, op, &d, dtype)


cdef Dims* shape_dims(TensorBase t, Dims* d) noexcept:
    cdef int i
    d.n = t.ndim
    for i in range(t.ndim):
        d.v[i] = t.sizes[i]
    return d


cdef int fill_halves(TensorBase r, double start, double stop) except -1:
    """linspace of a half type, every step rounded to it, as PyTorch computes there."""
    cdef TensorBase c = empty_tensor(r.ndim, r.sizes, F32, DEV_CPU)
    cdef float* p = <float*>data_of(c)
    cdef int64_t i, n = r.numel
    cdef int code = r.dtype
    cdef float first = trt_round_half(<float>start, code), last = trt_round_half(<float>stop, code), step
    step = trt_round_half(trt_round_half(last - first, code) / trt_round_half(<float>(n - 1), code), code) if n > 1 else 0
    for i in range(n):
        if i < n // 2 or n == 1:
            p[i] = first + trt_round_half(step * trt_round_half(<float>i, code), code)
        else:
            p[i] = last - trt_round_half(step * trt_round_half(<float>(n - 1 - i), code), code)
    from_host(r, c)
    return 0


def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """`steps` numbers from start to end, both included, equally far apart."""
    cdef Scalar s, e
    cdef SequenceTask t
    cdef TensorBase r
    r = spaced("linspace", start, end, steps, &s, &e, out, dtype, layout, device, pin_memory)
    if category[r.dtype] == CAT_COMPLEX:
        fill_complex(r, &s, &e, 0, False)
    elif r.dtype == F16 or r.dtype == BF16:
        if r.numel and r.device_type != DEV_META:
            fill_halves(r, s.d, e.d)
    else:
        t.both_ends = r.numel > 1
        t.code = F32 if r.dtype == F32 else F64
        t.start = s.d if category[r.dtype] != CAT_INT else <double>truncated(&s)
        t.stop = e.d if category[r.dtype] != CAT_INT else <double>truncated(&e)
        t.step = (t.stop - t.start) / <double>(r.numel - 1) if r.numel > 1 else 0
        fill_sequence(r, &t)
    return finish_factory(r, requires_grad)


cdef int fill_complex(TensorBase r, const Scalar* s, const Scalar* e, double base, bint power) except -1:
    """linspace of complex numbers, or base to that power."""
    cdef TensorBase c
    cdef double* p
    cdef int64_t i, n = r.numel, k
    cdef double re, im, step_re, step_im, size, angle
    if r.device_type == DEV_META or n == 0:
        return 0
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
    from_host(r, c)
    return 0


def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """base to the powers linspace(start, end, steps)."""
    cdef Scalar s, e
    cdef TensorBase r, c
    cdef double b = parse_double(base, "logspace", "base"), step
    cdef double* p
    cdef int64_t i, n
    r = spaced("logspace", start, end, steps, &s, &e, out, dtype, layout, device, pin_memory)
    if category[r.dtype] == CAT_COMPLEX:
        fill_complex(r, &s, &e, b, True)
    elif r.numel and r.device_type != DEV_META:
        n = r.numel
        c = empty_tensor(r.ndim, r.sizes, F64, DEV_CPU)
        p = <double*>data_of(c)
        if category[r.dtype] == CAT_INT:
            # the ends are integers then
            s.d = <double>truncated(&s)
            e.d = <double>truncated(&e)
        elif r.dtype == F16 or r.dtype == BF16:
            # the ends are numbers of the type, what lies between is not rounded before the power
            s.d = trt_round_half(<float>s.d, r.dtype)
            e.d = trt_round_half(<float>e.d, r.dtype)
        step = (e.d - s.d) / (n - 1) if n > 1 else 0
        if r.device_type == DEV_CUDA:
            c = r if r.contiguous else empty_tensor(r.ndim, r.sizes, r.dtype, place_of(r))
            device_powers(c, b, s.d, e.d, step)
            if c is not r:
                copy_elements(r, c)
            return finish_factory(r, requires_grad)
        for i in range(n):
            p[i] = c_pow(b, s.d + step * i if i < n // 2 or n == 1 else e.d - step * (n - 1 - i))
        copy_elements(r, c)
    return finish_factory(r, requires_grad)


cdef object _no_columns = object()


def eye(n, m=_no_columns, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """Ones on the diagonal of an (n, m) matrix, zeros elsewhere; m is n when it is left out."""
    cdef Scalar s
    cdef Dims d
    cdef Options o
    cdef TensorBase r
    cdef int64_t k, step[1]
    d.n = 2
    d.v[0] = parse_int(n, "eye", "n")
    if d.v[0] < 0:
        raise RuntimeError(f"n must be greater or equal to 0, got {d.v[0]}")
    if m is _no_columns:
        d.v[1] = d.v[0]
    else:
        d.v[1] = parse_int(m, "eye", "m")
        if d.v[1] < 0:
            raise RuntimeError(f"m must be greater or equal to 0, got {d.v[1]}")
    factory_options(&o, "eye", dtype, device, layout, pin_memory, default_float_code())
    r = factory_tensor(&d, &o) if out is None else factory_out(out, "eye", &d, dtype)
    set_number(&s, 0)
    fill_elements(r, &s)
    k = min(d.v[0], d.v[1])
    step[0] = r.strides[0] + r.strides[1]
    set_number(&s, 1)
    fill_elements(make_view(r, 1, &k, step, r.offset), &s)
    return finish_factory(r, requires_grad)


def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A tensor with undefined contents, dense, whose dimensions lie in memory in the order physical_layout (slowest first)."""
    cdef Dims d, p
    cdef Options o
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t step = 1
    cdef bint seen[MAX_DIMS]
    cdef int i, k
    parse_dims(size, &d, "empty_permuted", "size")
    parse_dims(physical_layout, &p, "empty_permuted", "physical_layout")
    if d.n != p.n:
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {d.n} is not equal to len(physical_layout) = {p.n}")
    factory_options(&o, "empty_permuted", dtype, device, layout, pin_memory, default_float_code())
    checked_numel(d.n, d.v)
    for i in range(d.n):
        seen[i] = False
    for i in range(d.n):
        if p.v[i] < 0 or p.v[i] >= d.n:
            raise RuntimeError(f"Dimension out of range (expected to be between 0 and {d.n - 1}, but got {p.v[i]} at index {i}).  NB: negative dims not currently supported; file an issue if you want it.")
        if seen[p.v[i]]:
            raise RuntimeError("Duplicate dim not allowed")
        seen[p.v[i]] = True
    for i in range(d.n - 1, -1, -1):
        k = <int>p.v[i]
        strides[k] = step
        step *= max(d.v[k], <int64_t>1)
    return finish_factory(empty_strided_tensor(d.n, d.v, strides, o.dtype, o.device), requires_grad)


def vander(TensorBase x not None, N=None, increasing=False):
    """The Vandermonde matrix of x: (n,): columns of powers, (n, N), highest first unless increasing."""
    cdef int64_t n
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.sizes[0] if N is None else parse_int(N, "vander", "N")
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    t = <object>x
    result = t.new_ones((x.sizes[0], n), dtype=dtype_of(I64) if category[x.dtype] <= CAT_INT else t.dtype)
    if n > 1:
        powers = _ops.cumprod(t.to(result.dtype).unsqueeze(1).expand(x.sizes[0], n - 1), 1)
        result = _ops.cat([result.narrow(1, 0, 1), powers], 1)
    return result if increasing else _ops.flip(result, (1,))
