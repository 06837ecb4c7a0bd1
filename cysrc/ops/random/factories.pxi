# New tensors of random numbers, and sampling from distributions that tensors describe. Part of random.pyx.
cdef TensorBase new_random(str op, tuple size, object named_size, object out, object dtype, object layout, object device, object pin_memory, int default_code):
    """The tensor that a factory fills: fresh, or `out` resized."""
    cdef Dims d
    cdef Options o
    if named_size is not None:
        if size:
            raise TypeError(f"{op}() got multiple values for argument 'size'")
        size = (named_size,)
    elif not size:
        raise TypeError(f"{op}() received an invalid combination of arguments - got (), but expected size")
    parse_size(size, &d, op, "size")
    factory_options(&o, op, dtype, device, layout, pin_memory, default_code)
    if out is not None:
        return factory_out(out, op, &d, dtype)
    return factory_tensor(&d, &o)


def rand(*args, size=None, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, names=None):
    """Numbers drawn uniformly from [0, 1). size: ints or one sequence."""
    cdef TensorBase t
    t = new_random("rand", args, size, out, dtype, layout, device, pin_memory, default_float_code())
    return finish_factory(op_uniform(t, 0.0, 1.0, generator, t, INPLACE), requires_grad)


def randn(*args, size=None, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, names=None):
    """Normally distributed numbers of mean 0 and variance 1. size: ints or one sequence."""
    cdef TensorBase t
    t = new_random("randn", args, size, out, dtype, layout, device, pin_memory, default_float_code())
    return finish_factory(op_normal(t, 0.0, 1.0, generator, t, INPLACE), requires_grad)


def randint(*args, low=None, high=None, size=None, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """randint(high, size), randint(low, high, size): integers from [low, high), int64 unless a dtype is named."""
    cdef TensorBase t
    cdef list given = list(args)
    cdef int64_t a = 0, b
    if size is None and given:
        size = given.pop()
    if high is None and given:
        high = given.pop()
    if low is None and given:
        low = given.pop()
    if given or high is None or size is None:
        raise TypeError(f"randint() received an invalid combination of arguments - got ({', '.join([type(x).__name__ for x in args])}), but expected one of: (high, size), (low, high, size)")
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"randint(): argument 'size' (position {len(args)}) must be tuple of ints, not {type(size).__name__}")
    b = parse_int(high, "randint", "high")
    if low is not None:
        a = parse_int(low, "randint", "low")
    t = new_random("randint", (size,), None, out, dtype, layout, device, pin_memory, I64)
    return finish_factory(op_random(t, a, b, generator, t, INPLACE), requires_grad)


def rand_like(TensorBase input not None, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False, generator=None):
    """rand of the sizes, dtype and device of another tensor."""
    cdef TensorBase t
    t = factory_like(input, "rand_like", dtype, layout, device, memory_format, pin_memory)
    return finish_factory(op_uniform(t, 0.0, 1.0, generator, t, INPLACE), requires_grad)


def randn_like(TensorBase input not None, *, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False, generator=None):
    """randn of the sizes, dtype and device of another tensor."""
    cdef TensorBase t
    t = factory_like(input, "randn_like", dtype, layout, device, memory_format, pin_memory)
    return finish_factory(op_normal(t, 0.0, 1.0, generator, t, INPLACE), requires_grad)


def randint_like(TensorBase input not None, *bounds, low=None, high=None, dtype=None, layout=None, device=None, requires_grad=False, memory_format=None, pin_memory=False, generator=None):
    """randint_like(input, high), randint_like(input, low, high): integers in the dtype of another tensor."""
    cdef TensorBase t
    cdef list given = list(bounds)
    if high is None and given:
        high = given.pop()
    if low is None and given:
        low = given.pop()
    if given or high is None:
        raise TypeError("randint_like() received an invalid combination of arguments, expected (input, high) or (input, low, high)")
    t = factory_like(input, "randint_like", dtype, layout, device, memory_format, pin_memory)
    return finish_factory(op_random(t, 0 if low is None else parse_int(low, "randint_like", "low"), parse_int(high, "randint_like", "high"), generator, t, INPLACE), requires_grad)


def randperm(n, *, generator=None, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A random permutation of 0 ... n - 1, int64 unless a dtype is named."""
    cdef Dims d
    cdef Options o
    cdef TensorBase t, order
    cdef rs_state* state = state_of(generator)
    cdef int code
    d.n = 1
    d.v[0] = parse_int(n, "randperm", "n")
    factory_options(&o, "randperm", dtype, device, layout, pin_memory, I64)
    if out is not None:
        check_out(out, "randperm")
        o.dtype = (<TensorBase>out).dtype
        o.device = place_of(<TensorBase>out)
    code = o.dtype
    if d.v[0] < 0:
        factory_tensor(&d, &o)
    if category[code] == CAT_FLOAT and d.v[0] > (<int64_t>1 << DIGITS[code]) + 1:
        raise RuntimeError(f"n cannot be greater than {(<int64_t>1 << DIGITS[code]) + 1} for {dtype_text(code)} type.")
    if category[code] == CAT_INT and code != I64 and d.v[0] >> DIGITS[code]:
        raise RuntimeError(f"value cannot be converted to type {dtype_cpp_name(code).decode()} without overflow")
    t = factory_tensor(&d, &o) if out is None else factory_out(out, "randperm", &d, dtype)
    if code == BOOL or category[code] == CAT_COMPLEX:
        refuse_dtype("randperm", t)
    if t.device_type == DEV_META:
        return finish_factory(t, requires_grad)
    if t.device_type == DEV_CUDA:
        # the order of keys of as many bits as make equal ones improbable (0.9 that there are none)
        if t.numel:
            import math
            copy_elements(t, <TensorBase>device_permutation(t.numel, min(64, math.ceil(math.log2(t.numel - (6.0 * t.numel * t.numel + 1) / (12 * math.log(0.9))))), place_of(t), generator))
        return finish_factory(t, requires_grad)
    if code == I64 and t.contiguous:
        rs_randperm(state, <int64_t*>data_of(t), t.numel)
        return finish_factory(t, requires_grad)
    order = empty_tensor(1, d.v, I64, DEV_CPU)
    rs_randperm(state, <int64_t*>data_of(order), order.numel)
    copy_elements(t, order)
    return finish_factory(t, requires_grad)


# ---- normal --------------------------------------------------------------------------------------------------------

cdef TensorBase _sample_normal_cpu(TensorBase mean, TensorBase std, double mean_value, double std_value, object generator):
    return draw_normal(mean, std, mean_value, std_value, generator, None)


cdef TensorBase draw_normal(TensorBase mean, TensorBase std, double mean_value, double std_value, object generator, TensorBase out):
    """z * std + mean over the broadcast shape, in the dtype of the mean (or of std where the mean is a number)."""
    cdef TensorBase like = std if mean is None else mean
    cdef TensorBase z
    cdef PyObject* pair[2]
    cdef int64_t shape[MAX_DIMS]
    cdef int i, ndim
    cdef Dims d
    if std is not None:
        if category[std.dtype] == CAT_COMPLEX:
            raise RuntimeError("normal expects standard deviation to be non-complex")
        if std.numel and std.device_type != DEV_META and not (<object>std).detach().min().ge(0):
            raise RuntimeError("normal expects all elements of std >= 0.0")
    if mean is not None and std is not None:
        pair[0] = <PyObject*>mean
        pair[1] = <PyObject*>std
        ndim = broadcast_shapes("normal", 2, pair, shape)
        if out is None:
            z = empty_tensor(ndim, shape, like.dtype, place_of(like))
        else:
            z = out
            resize_tensor(out, ndim, shape, -1)
    elif out is None:
        z = empty_tensor(like.ndim, like.sizes, like.dtype, place_of(like))
    else:
        z = out
    normal_cpu(z, 0.0, std_value if std is None else 1.0, generator, z, INPLACE)
    result = (<object>z).detach() if out is not None else <object>z
    if std is not None:
        result.mul_((<object>std).detach())
    result.add_((<object>mean).detach() if mean is not None else mean_value)
    return z


def normal(mean, std=1.0, size=None, *, generator=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, names=None):
    """Normal numbers: normal(tensor, tensor), normal(tensor, float), normal(float, tensor), normal(float, float, size)."""
    cdef TensorBase t, m = None, s = None
    cdef double mean_value = 0, std_value = 1
    if isinstance(mean, TensorBase):
        m = <TensorBase>mean
    else:
        mean_value = parse_double(mean, "normal", "mean")
    if isinstance(std, TensorBase):
        s = <TensorBase>std
    else:
        std_value = parse_double(std, "normal", "std")
    if m is None and s is None:
        if size is None:
            raise TypeError("normal() received an invalid combination of arguments - got (float, float), but expected a tensor or size")
        t = new_random("normal", (size,), None, out, dtype, layout, device, pin_memory, default_float_code())
        return finish_factory(op_normal(t, mean_value, std_value, generator, t, INPLACE), requires_grad)
    if size is not None:
        raise TypeError("normal() received an invalid combination of arguments: size goes with numbers only")
    if out is not None:
        check_out(out, "normal")
        if tls().grad_mode and (m is not None and m.requires_grad or s is not None and s.requires_grad):
            refuse_out("normal")
        draw_normal(m, s, mean_value, std_value, generator, <TensorBase>out)
        bump_version(<TensorBase>out)
        return out
    return op__sample_normal(m, s, mean_value, std_value, generator)


# ---- bernoulli, multinomial, poisson -------------------------------------------------------------------------------

cdef TensorBase _sample_bernoulli_cpu(TensorBase self, object generator):
    cdef TensorBase r = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    return _bernoulli_tensor_cpu(r, self, generator, r, INPLACE)


def bernoulli(TensorBase input not None, p=None, *, generator=None, out=None):
    """Zeros and ones drawn with the probabilities in input, or all with probability p."""
    cdef TensorBase t
    cdef Dims d
    if out is not None:
        check_out(out, "bernoulli")
        if input.requires_grad and tls().grad_mode:
            refuse_out("bernoulli")
        t = <TensorBase>out
        resize_tensor(t, input.ndim, input.sizes, -1)
        if p is None:
            _bernoulli_tensor_cpu(t, input, generator, t, INPLACE)
        else:
            bernoulli_cpu(t, parse_double(p, "bernoulli", "p"), generator, t, INPLACE)
        bump_version(t)
        return out
    if p is None:
        return op__sample_bernoulli(input, generator)
    t = empty_tensor(input.ndim, input.sizes, input.dtype, place_of(input))
    return op_bernoulli(t, parse_double(p, "bernoulli", "p"), generator, t, INPLACE)


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


cdef object multinomial_on_device(object p, int64_t k, bint again, object generator, object out):
    """The largest quotients by exponential numbers, or where uniform numbers fall among the running sums."""
    p = p.detach()
    total = p.sum(-1, keepdim=True)
    if not bool(((p >= 0) & (p < float("inf"))).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not bool((total > 0).all()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if again and k > 1:
        result = p.new_empty((*shape_of(<TensorBase>p)[:-1], k), dtype=dtype_of(I64))
        if (<TensorBase>result).numel:
            weights = (p / total).reshape(-1, p.size(-1))
            device_sample_rows(contiguous_of(<TensorBase>weights.cumsum(-1)), contiguous_of(<TensorBase>weights), <TensorBase>result.reshape(-1, k), generator)
    else:
        quotients = p / _ops.empty_like(p).exponential_(1, generator=generator)
        result = quotients.argmax(-1, keepdim=True) if k == 1 else quotients.topk(k, -1)[1]
    return deliver_result("multinomial", result, out, True)


def multinomial(TensorBase input not None, num_samples, replacement=False, *, generator=None, out=None):
    """Indices drawn with the probabilities (not necessarily normalised) in each row. input: (N,) or (R, N); result (num_samples,) or (R, num_samples)."""
    cdef int64_t k, n, rows, i, j
    cdef int64_t sizes[2]
    cdef rs_state* state = state_of(generator)
    cdef TensorBase result, p, q, values, order
    cdef int code
    cdef rs_fill f
    cdef double largest_value, smallest_value, total, x
    cdef bint half, again = parse_bool(replacement, "multinomial", "replacement")
    cdef rs_row_status status
    k = parse_int(num_samples, "multinomial", "num_samples")
    if out is not None:
        check_out(out, "multinomial")
        if (<TensorBase>out).dtype != I64:
            raise RuntimeError(f"multinomial expects Long tensor out, got: {dtype_text((<TensorBase>out).dtype)}")
    if not 1 <= input.ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if category[input.dtype] != CAT_FLOAT:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {dtype_text(input.dtype)}")
    if k <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if is_large(input):
        input = held(input)
    n = input.sizes[input.ndim - 1]
    rows = input.sizes[0] if input.ndim == 2 else 1
    if not again and k > n:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if n > (<int64_t>1 << 24):
        raise RuntimeError("number of categories cannot exceed 2^24")
    if n == 0 and rows > 0:
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if input.device_type == DEV_CUDA:
        return multinomial_on_device(input, k, again, generator, out)
    sizes[0] = rows if input.ndim == 2 else k
    sizes[1] = k
    result = empty_tensor(input.ndim, sizes, I64, input.device_type)
    if result.numel and input.device_type != DEV_META:
        half = input.dtype == F16 or input.dtype == BF16
        p = contiguous_of(cast_to(input, F32) if half else input)
        code = p.dtype
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
            run_fill(q, &f, generator)
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
                if code == F64:
                    status = rs_multinomial_f64(state, <double*>data_of(p) + j * n, n, <double*>data_of(values), <int64_t*>data_of(result) + j * k, k)
                else:
                    status = rs_multinomial_f32(state, <float*>data_of(p) + j * n, n, <float*>data_of(values), <int64_t*>data_of(result) + j * k, k)
                if status == RS_ROW_NEGATIVE:
                    raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
                if status == RS_ROW_NOT_FINITE:
                    raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
                if status == RS_ROW_SUM_ZERO:
                    raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if out is None:
        return finish_factory(result, False)
    prepare_out("multinomial", <TensorBase>out, result.ndim, result.sizes, I64, OUT)
    copy_elements(<TensorBase>out, result)
    bump_version(<TensorBase>out)
    return out


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


cdef TensorBase poisson_cpu(TensorBase self, object generator):
    cdef TensorBase r = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self)), rates, drawn
    cdef rs_state* state = state_of(generator)
    cdef int64_t i
    cdef double* rate
    if category[self.dtype] != CAT_FLOAT:
        refuse_dtype("poisson_cpu", self)
    if self.numel == 0 or self.device_type == DEV_META:
        return r
    if self.device_type == DEV_CUDA:
        # a rate that is none makes its count NaN: looking at them would wait for the device
        device_poisson(contiguous_of(self), r, generator)
        return r
    rates = contiguous_of(cast_to(self, F64))
    drawn = empty_tensor(self.ndim, self.sizes, F64, DEV_CPU)
    rate = <double*>data_of(rates)
    for i in range(self.numel):
        if not rate[i] >= 0:
            raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
        if rate[i] > 9e17:
            raise RuntimeError(f"invalid Poisson rate {rate[i]:g}: counts beyond 2^63 have no value")
        (<double*>data_of(drawn))[i] = <double>one_poisson(state, rate[i])
    copy_elements(r, drawn)
    return r
