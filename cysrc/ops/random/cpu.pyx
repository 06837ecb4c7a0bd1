"""Random numbers on the CPU, beneath the checks of random.pyx. The draws are in core/random_streams.h; every step holds the GIL from its first word to its
last, and a lock where there is none, so that threads that share a generator draw one after the other."""
from libc.math cimport NAN, ceil, exp as c_exp, fabs, floor, lgamma, log, log1p, pow, sqrt
from libc.stdint cimport int64_t, uint8_t
from tensorrt_lite._C.core.allocator cimport block_drop, trt_block, trt_block_hold
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUSTOM, LAST_CUSTOM
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport BF16, F16, F32, F64, I64
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements, on_host
from tensorrt_lite._C.core.parallel cimport GRAIN, parallel_for
from tensorrt_lite._C.core.random cimport (
    GeneratorBase, generator_on, lock_state, unlock_state, RS_FILL_BERNOULLI, RS_FILL_EXPONENTIAL, RS_ROW_NEGATIVE, RS_ROW_NOT_FINITE, RS_ROW_SUM_ZERO, rs_bernoulli_tensor, rs_dtype, rs_fill, rs_fill_tensor,
    rs_multinomial_f32, rs_multinomial_f64, rs_next_normal, rs_next_u53, rs_randperm, rs_row_status, rs_state, state_of)
from tensorrt_lite._C.core.storage cimport hooks_of
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, empty_like_tensor, empty_tensor
from tensorrt_lite._C.ops.random.masks cimport noise_of
from tensorrt_lite._C.steps.random cimport (
    set_bernoulli_of, set_binomial, set_check_deviations, set_dropout_mask, set_fill, set_masked_scale, set_multinomial, set_permutation, set_poisson, set_rrelu,
    set_standard_gamma)


cdef extern from *:
    """
    #include "isa.h"
    typedef void (*trt_masked_scale_fn)(const void*, const uint8_t*, void*, int64_t, double);
    ISA_TABLE(trt_masked_scale_fn, trt_masked_scale)
    """
    ctypedef void (*trt_masked_scale_fn)(const void*, const uint8_t*, void*, int64_t, double) noexcept nogil
    const trt_masked_scale_fn* trt_masked_scale() nogil

# The instruction set of the loops: reading it anew costs a call of getenv.
cdef const trt_masked_scale_fn* MASKED_SCALE = trt_masked_scale()      # by dtype, from float16 on


cdef int fill(TensorBase t, const rs_fill* f, rs_state* state, object generator) except -1:
    if generator is not None and generator.device.type != "cpu":
        raise RuntimeError(f"Expected a 'cpu' device type for generator but found '{generator.device.type}'")
    lock_state(state)
    rs_fill_tensor(state, f, <rs_dtype>t.dtype, data_of(t), t.ndim, t.sizes, t.strides)
    unlock_state(state)
    return 0


# ---- bernoulli and dropout ---------------------------------------------------------------------------------------------

cdef int check_probabilities(TensorBase p) except -1:
    cdef TensorBase c = contiguous_of(p)
    cdef int64_t i
    cdef bint good = True
    if c.dtype == F64:
        for i in range(c.numel):
            good &= 0 <= (<double*>data_of(c))[i] <= 1
    else:
        for i in range(c.numel):
            good &= 0 <= (<float*>data_of(c))[i] <= 1
    if not good:
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")
    return 0


cdef int bernoulli_of(TensorBase p, TensorBase out, rs_state* state, object generator) except -1:
    cdef TensorBase values = p
    if p.device_type != DEV_CPU:
        raise RuntimeError("bernoulli: Expected all tensors to be on the same device, but the probabilities are not where the result is")
    if values.dtype == F16 or values.dtype == BF16:
        values = cast_to(values, F32)
    check_probabilities(values)
    lock_state(state)
    rs_bernoulli_tensor(state, <rs_dtype>out.dtype, data_of(out), <rs_dtype>values.dtype, data_of(values), out.ndim, out.sizes, out.strides, values.strides)
    unlock_state(state)
    return 0


cdef struct ScaleTask:
    trt_masked_scale_fn function
    const char* x
    const char* mask
    char* result
    int64_t item
    double scale


cdef void scale_range(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef ScaleTask* t = <ScaleTask*>context
    t.function(t.x + begin * t.item, <const uint8_t*>t.mask + begin, t.result + begin * t.item, end - begin, t.scale)


cdef int masked_scale(TensorBase x, TensorBase mask, double scale, TensorBase out) except -1:
    cdef ScaleTask task
    cdef trt_block* blocks[3]
    cdef int64_t n = x.numel
    cdef int i
    task.function = MASKED_SCALE[x.dtype - F16]
    task.x = data_of(x)
    task.mask = data_of(mask)
    task.result = data_of(out)
    task.item = ITEM_SIZE[x.dtype]
    task.scale = scale
    if n < 4096:
        scale_range(&task, 0, n)
        return 0
    blocks[0] = x.storage.block
    blocks[1] = mask.storage.block
    blocks[2] = out.storage.block
    for i in range(3):
        trt_block_hold(blocks[i])
    with nogil:
        parallel_for(n, GRAIN // 4, 64, scale_range, &task)
    for i in range(3):
        block_drop(blocks[i])
    return 0


cdef int dropout_mask(TensorBase x, double keep, bint fresh, TensorBase mask, double* scale) except -1:
    cdef rs_fill f
    f.kind = RS_FILL_BERNOULLI
    f.a = keep
    scale[0] = noise_of(keep, x.dtype)
    return fill(mask, &f, state_of(None), None)


# ---- sampling ----------------------------------------------------------------------------------------------------------

cdef int check_deviations(TensorBase std) except -1:
    if not (<object>std).detach().min().ge(0):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    return 0


cdef int permutation(TensorBase out, rs_state* state, object generator) except -1:
    cdef TensorBase order = out
    if out.dtype != I64 or not out.contiguous:
        order = empty_tensor(1, &out.numel, I64, DEV_CPU)
    lock_state(state)
    rs_randperm(state, <int64_t*>data_of(order), order.numel)
    unlock_state(state)
    return 0 if order is out else copy_elements(out, order)


cdef double ratio_at(const char* p, const char* q, int64_t i, int code) noexcept:
    """p / q as the dtype computes it: float32 rounds once."""
    if code == F64:
        return (<const double*>p)[i] / (<const double*>q)[i]
    return <double>((<const float*>p)[i] / (<const float*>q)[i])


cdef int largest(const double* v, int64_t n, int64_t k, int64_t* order, int64_t* heap) except -1:
    """Indices of the k largest values, largest first, the lower index first among equals; heap: k numbers of scratch."""
    cdef int64_t i, j, child, held = 0, value
    for i in range(n):
        if held == k:
            # the root is the worst that is kept
            if not v[i] > v[heap[0]]:
                continue
            value = i
            j = 0
        else:
            j = held
            held += 1
            while j > 0 and worse(v, i, heap[(j - 1) // 2]):
                heap[j] = heap[(j - 1) // 2]
                j = (j - 1) // 2
            heap[j] = i
            continue
        sift(v, heap, held, value)
    while held > 0:
        order[held - 1] = heap[0]
        held -= 1
        if held > 0:
            sift(v, heap, held, heap[held])
    return 0


cdef inline bint worse(const double* v, int64_t a, int64_t b) noexcept:
    return v[a] < v[b] or (v[a] == v[b] and a > b)


cdef inline void sift(const double* v, int64_t* heap, int64_t n, int64_t value) noexcept:
    """Put `value` at the root of a heap of n whose root is free."""
    cdef int64_t j = 0, child
    while True:
        child = 2 * j + 1
        if child >= n:
            break
        if child + 1 < n and worse(v, heap[child + 1], heap[child]):
            child += 1
        if not worse(v, heap[child], value):
            break
        heap[j] = heap[child]
        j = child
    heap[j] = value


cdef int multinomial_on_cpu(TensorBase input, int64_t k, bint again, rs_state* state, object generator, TensorBase result) except -1:
    cdef int64_t n = input.sizes[input.ndim - 1], rows = input.numel // n, i, j
    cdef bint half = input.dtype == F16 or input.dtype == BF16
    cdef TensorBase p = contiguous_of(cast_to(input, F32) if half else input), q, values, order
    cdef int code = p.dtype
    cdef double total, x
    cdef rs_fill f
    cdef rs_row_status status
    if not again or k == 1:
        for i in range(p.numel):
            x = (<double*>data_of(p))[i] if code == F64 else (<float*>data_of(p))[i]
            if not 0 <= x < 1e400:
                raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
        for j in range(rows):
            total = 0
            for i in range(j * n, (j + 1) * n):
                total += (<double*>data_of(p))[i] if code == F64 else (<float*>data_of(p))[i]
            if not total > 0:
                raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
        q = empty_like_tensor(input, input.dtype)
        f.kind = RS_FILL_EXPONENTIAL
        f.a = 1
        fill(q, &f, state, generator)
        q = contiguous_of(cast_to(q, F32) if half else q)
        values = empty_tensor(1, &n, F64, DEV_CPU)
        order = empty_tensor(1, &k, I64, DEV_CPU)
        for j in range(rows):
            for i in range(n):
                (<double*>data_of(values))[i] = ratio_at(data_of(p), data_of(q), j * n + i, code)
            if half:
                values = cast_to(cast_to(values, input.dtype), F64)
            largest(<double*>data_of(values), n, k, <int64_t*>data_of(result) + j * k, <int64_t*>data_of(order))
    else:
        values = empty_tensor(1, &n, code, DEV_CPU)
        for j in range(rows):
            lock_state(state)
            if code == F64:
                status = rs_multinomial_f64(state, <double*>data_of(p) + j * n, n, <double*>data_of(values), <int64_t*>data_of(result) + j * k, k)
            else:
                status = rs_multinomial_f32(state, <float*>data_of(p) + j * n, n, <float*>data_of(values), <int64_t*>data_of(result) + j * k, k)
            unlock_state(state)
            if status == RS_ROW_NEGATIVE:
                raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
            if status == RS_ROW_NOT_FINITE:
                raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
            if status == RS_ROW_SUM_ZERO:
                raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    return 0


cdef int64_t one_poisson(rs_state* s, double rate) noexcept:
    """Hörmann's transformed rejection (1993, algorithm PTRS) from rate 10 on, products of uniforms below."""
    cdef double slam, loglam, b, a, invalpha, vr, u, v, us, limit, product
    cdef int64_t k
    if rate == 0:
        return 0
    if rate < 10:
        limit = c_exp(-rate)
        product = 1
        k = 0
        while True:
            product *= rs_next_u53(s)
            if product <= limit:
                return k
            k += 1
    slam = sqrt(rate)
    loglam = log(rate)
    b = 0.931 + 2.53 * slam
    a = -0.059 + 0.02483 * b
    invalpha = 1.1239 + 1.1328 / (b - 3.4)
    vr = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = rs_next_u53(s) - 0.5
        v = rs_next_u53(s)
        us = 0.5 - fabs(u)
        k = <int64_t>floor((2 * a / us + b) * u + rate + 0.43)
        if us >= 0.07 and v <= vr:
            return k
        if k < 0 or (us < 0.013 and v > us):
            continue
        if log(v) + log(invalpha) - log(a / (us * us) + b) <= -rate + k * loglam - lgamma(k + 1.0):
            return k


cdef int poisson_on_cpu(TensorBase self, TensorBase r, rs_state* state, object generator) except -1:
    cdef TensorBase rates = contiguous_of(cast_to(self, F64)), drawn = empty_tensor(self.ndim, self.sizes, F64, DEV_CPU)
    cdef double* rate = <double*>data_of(rates)
    cdef int64_t i
    lock_state(state)
    try:
        for i in range(self.numel):
            if not rate[i] >= 0:
                raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
            if rate[i] > 9e17:
                raise RuntimeError(f"invalid Poisson rate {rate[i]:g}: counts beyond 2^63 have no value")
            (<double*>data_of(drawn))[i] = <double>one_poisson(state, rate[i])
    finally:
        unlock_state(state)
    return copy_elements(r, drawn)


cdef double stirling_tail(double k) noexcept:
    """What Stirling's approximation of log(k!) leaves."""
    cdef double n = k + 1
    if k <= 9:
        return lgamma(n) - (0.91893853320467274178 + (k + 0.5) * log(n) - n)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / (n * n)) / (n * n)) / n


cdef double few_successes(rs_state* s, double count, double prob) noexcept:
    """Geometric gaps between successes, summed until the trials are used up (Devroye 1986): of count * prob below 10."""
    cdef double gaps = 0, found = 0, scale = log1p(-prob)
    while True:
        gaps += ceil(log(rs_next_u53(s)) / scale)
        if gaps > count:
            return found
        found += 1


cdef double many_successes(rs_state* s, double count, double prob) noexcept:
    """Hörmann's transformed rejection (1993, algorithm BTRS), prob at most a half."""
    cdef double deviation = sqrt(count * prob * (1 - prob)), b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * prob, centre = count * prob + 0.5
    cdef double edge = 0.92 - 4.2 / b, odds = prob / (1 - prob), alpha = (2.83 + 5.1 / b) * deviation, mode = floor((count + 1) * prob), u, v, us, k, bound
    while True:
        u = rs_next_u53(s) - 0.5
        v = rs_next_u53(s)
        us = 0.5 - fabs(u)
        k = floor((2 * a / us + b) * u + centre)
        if us >= 0.07 and v <= edge:
            return k
        if k < 0 or k > count:
            continue
        v = log(v * alpha / (a / (us * us) + b))
        bound = ((mode + 0.5) * log((mode + 1) / (odds * (count - mode + 1))) + (count + 1) * log((count - mode + 1) / (count - k + 1))
                 + (k + 0.5) * log(odds * (count - k + 1) / (k + 1)) + stirling_tail(mode) + stirling_tail(count - mode) - stirling_tail(k) - stirling_tail(count - k))
        if v <= bound:
            return k


cdef double one_binomial(rs_state* s, double count, double prob) noexcept:
    cdef double rare = prob if prob <= 0.5 else 1 - prob, k
    if count <= 0 or prob <= 0:
        return 0
    if prob >= 1:
        return count
    if prob != prob or not count < 1.7e308:      # rejection would never end
        return NAN
    k = many_successes(s, count, rare) if count * rare >= 10 else few_successes(s, count, rare)
    return k if prob <= 0.5 else count - k


cdef int binomial_on_cpu(TensorBase count, TensorBase prob, TensorBase r, rs_state* state, object generator) except -1:
    cdef TensorBase n = cast_to(count, F64), p = cast_to(prob, F64), drawn = empty_tensor(r.ndim, r.sizes, F64, DEV_CPU)
    cdef int64_t i
    lock_state(state)
    for i in range(r.numel):
        (<double*>data_of(drawn))[i] = one_binomial(state, (<double*>data_of(n))[i], (<double*>data_of(p))[i])
    unlock_state(state)
    return copy_elements(r, drawn)


cdef double one_gamma(rs_state* s, double d, double scale) noexcept:
    """scale times a number of the gamma distribution of shape d + 1/3, at least 1: Marsaglia and Tsang's rejection (2000)."""
    cdef double c = 1 / sqrt(9 * d), x, y, v, u
    while True:
        y = 0
        while y <= 0:
            x = rs_next_normal(s)
            y = 1 + c * x
        v = y * y * y
        u = 1 - rs_next_u53(s)
        x *= x
        if u < 1 - <double><float>0.0331 * x * x or log(u) < 0.5 * x + d * (1 - v + log(v)):
            return scale * d * v


cdef double gamma_f64(rs_state* s, double shape) noexcept:
    """A shape below 1 is raised by 1 and the number multiplied by a power of a uniform one. Constants are float32's, as PyTorch's are."""
    cdef double scale = 1
    if not 0 < shape < 1.7e308:      # rejection would never end
        return shape if shape >= 0 else NAN
    if shape < 1:
        scale = pow(1 - rs_next_u53(s), 1 / shape)
        shape += 1
    return one_gamma(s, shape - <double>(<float>1 / <float>3), scale)


cdef float gamma_f32(rs_state* s, float shape) noexcept:
    """What is computed of the shape alone is float32, the rest double."""
    cdef double scale = 1
    if not 0 < shape < 3e38:
        return shape if shape >= 0 else NAN
    if shape < 1:
        scale = pow(1 - rs_next_u53(s), <double><float>(1 / shape))
        shape += 1
    return <float>one_gamma(s, <double><float>(shape - <float>1 / <float>3), scale)


cdef int standard_gamma(TensorBase shape, TensorBase r, rs_state* state, object generator) except -1:
    cdef int64_t i
    cdef double wide
    cdef float narrow
    lock_state(state)
    if shape.dtype == F64:
        for i in range(r.numel):
            wide = gamma_f64(state, (<double*>data_of(shape))[i])
            (<double*>data_of(r))[i] = 2.2250738585072014e-308 if wide < 2.2250738585072014e-308 else wide
    else:
        for i in range(r.numel):
            narrow = gamma_f32(state, (<float*>data_of(shape))[i])
            (<float*>data_of(r))[i] = <float>1.1754943508222875e-38 if narrow < <float>1.1754943508222875e-38 else narrow
    unlock_state(state)
    return 0


# ---- rrelu -------------------------------------------------------------------------------------------------------------

cdef int rrelu_on_cpu(TensorBase self, TensorBase noise, double lower, double upper, bint training, rs_state* state, object generator, TensorBase r) except -1:
    cdef TensorBase x = contiguous_of(cast_to(self, F64)), slopes = empty_tensor(self.ndim, self.sizes, F64, DEV_CPU), product
    cdef double* v = <double*>data_of(x)
    cdef double* s = <double*>data_of(slopes)
    cdef double slope = (lower + upper) / 2
    cdef int64_t i
    lock_state(state)
    for i in range(self.numel):
        if v[i] > 0:
            s[i] = 1
        elif training:
            s[i] = rs_next_u53(state) * (upper - lower) + lower
        else:
            s[i] = slope
    unlock_state(state)
    if training:
        # the slope as the noise tensor holds it: the product is rounded from there
        copy_elements(noise, slopes)
        slopes = contiguous_of(cast_to(noise, F64))
        s = <double*>data_of(slopes)
    slopes = contiguous_of(slopes)
    x = contiguous_of(cast_to(self, F64))
    v = <double*>data_of(x)
    product = empty_tensor(self.ndim, self.sizes, F64, DEV_CPU)
    for i in range(self.numel):
        (<double*>data_of(product))[i] = v[i] * s[i]
    return copy_elements(r, product)


# ---- custom devices: what is drawn without reading a tensor is drawn on the host, from the device's generator ----------

cdef GeneratorBase checked_generator(object generator, TensorBase t):
    """The device's generator, or a caller's, which must be of the same device."""
    cdef GeneratorBase g = generator_on(generator, t.device_type, t.device_index)
    if generator is not None and generator.device != (<object>t).device:
        raise RuntimeError(f"Expected a '{(<object>t).device}' device type for generator but found '{generator.device}'")
    return g


cdef int fill_on_host(TensorBase t, const rs_fill* f, rs_state* state, object generator) except -1:
    cdef TensorBase c = empty_tensor(t.ndim, t.sizes, t.dtype, DEV_CPU)
    cdef GeneratorBase g = checked_generator(generator, t)
    lock_state(&g.state)
    rs_fill_tensor(&g.state, f, <rs_dtype>c.dtype, data_of(c), c.ndim, c.sizes, c.strides)
    unlock_state(&g.state)
    return copy_elements(t, c)


cdef int permutation_on_host(TensorBase out, rs_state* state, object generator) except -1:
    cdef TensorBase c = empty_tensor(out.ndim, out.sizes, out.dtype, DEV_CPU)
    cdef GeneratorBase g = checked_generator(generator, out)
    permutation(c, &g.state, None)
    return copy_elements(out, c)


cdef int multinomial_on_host(TensorBase input, int64_t k, bint again, rs_state* state, object generator, TensorBase result) except -1:
    cdef GeneratorBase g = checked_generator(generator, input)
    cdef TensorBase c
    hooks_of(input.device_type).fall_back(input.device_type, b"multinomial")
    c = empty_tensor(result.ndim, result.sizes, result.dtype, DEV_CPU)
    multinomial_on_cpu(on_host(input), k, again, &g.state, None, c)
    return copy_elements(result, c)


cdef int dropout_mask_on_host(TensorBase x, double keep, bint fresh, TensorBase mask, double* scale) except -1:
    cdef rs_fill f
    f.kind = RS_FILL_BERNOULLI
    f.a = keep
    scale[0] = noise_of(keep, x.dtype)
    return fill_on_host(mask, &f, NULL, None)


for _device in range(DEV_CUSTOM, LAST_CUSTOM + 1):
    set_fill(_device, fill_on_host)
    set_permutation(_device, permutation_on_host)
    set_multinomial(_device, multinomial_on_host)
    set_dropout_mask(_device, dropout_mask_on_host)
    set_check_deviations(_device, check_deviations)

set_fill(DEV_CPU, fill)
set_bernoulli_of(DEV_CPU, bernoulli_of)
set_masked_scale(DEV_CPU, masked_scale)
set_dropout_mask(DEV_CPU, dropout_mask)
set_check_deviations(DEV_CPU, check_deviations)
set_permutation(DEV_CPU, permutation)
set_multinomial(DEV_CPU, multinomial_on_cpu)
set_binomial(DEV_CPU, binomial_on_cpu)
set_poisson(DEV_CPU, poisson_on_cpu)
set_rrelu(DEV_CPU, rrelu_on_cpu)
set_standard_gamma(DEV_CPU, standard_gamma)
