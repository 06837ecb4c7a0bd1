# Random numbers in PyTorch's streams: fills in place, factories, sampling, dropout. Meta and empty tensors draw nothing. The draws are steps: cpu.pyx
# has the CPU's, cysrc/cuda/random.pyx CUDA's.
from libc.math cimport sqrt
from libc.stdint cimport INT64_MIN, INT64_MAX
from tensorrt_lite._C.core.device import contiguous_format
from tensorrt_lite._C.core.random cimport *
from tensorrt_lite._C.ops.random.masks cimport same_geometry
from tensorrt_lite._C.steps.random cimport (
    run_bernoulli_of, run_binomial, run_check_deviations, run_dropout_mask, run_fill, run_masked_scale, run_multinomial, run_permutation, run_poisson, run_rrelu,
    run_standard_gamma)


cdef int refuse_dtype(str kernel, TensorBase t) except -1:
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype_text(t.dtype)}'")


cdef str number_text(double v):
    return f"{v:g}"


cdef TensorBase draw(TensorBase t, const rs_fill* fill, object generator):
    """Fill a tensor of a dtype that the fill supports; complex tensors are filled as their real views."""
    cdef rs_state* state = state_of(generator)
    if not has_loops(to_real(t.dtype)):
        refuse_dtype("random fill", t)
    check_internal_overlap("random fill", t)
    if t.numel == 0:
        return t
    if category[t.dtype] == CAT_COMPLEX:
        draw(<TensorBase?>_ops.view_as_real((<object>t).detach()), fill, generator)
        return t
    run_fill(t.device_type, t, fill, state, generator)
    return t


# ---- kernels of the fills ------------------------------------------------------------------------------------------

cdef TensorBase uniform_kernel(TensorBase self, double low, double high, object generator, TensorBase out, int mode):
    cdef rs_fill f
    cdef int real = to_real(self.dtype)
    if category[self.dtype] < CAT_FLOAT or not has_loops(real):
        refuse_dtype("check_uniform_bounds", self)
    if not -LARGEST[real] <= low <= LARGEST[real]:
        raise RuntimeError(f"from is out of bounds for {cpp_type_text(real)}")
    if not -LARGEST[real] <= high <= LARGEST[real]:
        raise RuntimeError(f"to is out of bounds for {cpp_type_text(real)}")
    if low > high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={number_text(low)} > to={number_text(high)}")
    if high - low > LARGEST[real]:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{dtype_text(self.dtype)}>::max(), but found to={number_text(high)} and from={number_text(low)} "
            "which result in to-from to exceed the limit")
    f.kind = RS_FILL_UNIFORM
    f.a = low
    f.b = high
    return draw(self, &f, generator)


cdef TensorBase normal_kernel(TensorBase self, double mean, double std, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {number_text(std)}")
    if category[self.dtype] < CAT_FLOAT or not has_loops(to_real(self.dtype)):
        refuse_dtype("normal_kernel_cpu", self)
    f.kind = RS_FILL_NORMAL
    f.a = mean
    f.b = std / sqrt(2.0) if category[self.dtype] == CAT_COMPLEX else std
    return draw(self, &f, generator)


cdef int check_random_bound(TensorBase t, str name, int64_t bound) except -1:
    """Whether the dtype can hold a bound; floating types warn where not every integer has a value of its own."""
    cdef int code = t.dtype
    cdef double v = <double>bound
    if category[code] == CAT_FLOAT:
        if not -LARGEST[code] <= v <= LARGEST[code]:
            raise RuntimeError(f"{name} is out of bounds for {cpp_type_text(code)}")
        if v > <double>(<int64_t>1 << DIGITS[code]) or v < -<double>(<int64_t>1 << DIGITS[code]):
            from tensorrt_lite._C.core.warning import warn
            warn(
                f"{name} is out of bounds [-(2^{DIGITS[code]}), 2^{DIGITS[code]}]. Due to precision limitations {cpp_type_text(code)} can support discrete uniform "
                "distribution only within this range. This warning will become an error in version 1.7 release, please fix the code in advance")
    elif not is_signed_type(code) and bound < 0 or code != I64 and bound >> min(DIGITS[code], 63) != (-1 if bound < 0 else 0):
        raise RuntimeError(f"{name} is out of bounds for {cpp_type_text(code)}")
    return 0


cdef TensorBase random_kernel(TensorBase self, object low, object high, object generator, TensorBase out, int mode):
    cdef rs_fill f
    cdef int64_t a = 0, b = 0, dummy = 1
    cdef TensorBase wide
    if category[self.dtype] == CAT_COMPLEX:
        if low is None and high is None:
            refuse_dtype("random_kernel_cpu", self)
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    f.low = 0
    f.range = 0
    if low is None and high is None:
        f.kind = RS_FILL_RANDOM
        return draw(self, &f, generator)
    a = parse_int(low, "random_", "from") if low is not None else 0
    if high is not None:
        b = parse_int(high, "random_", "to")
        if a >= b:
            raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={a} >= to={b}")
        if category[self.dtype] == CAT_FLOAT:
            rs_narrow_range(<rs_dtype>self.dtype, &a, &b)
            if a >= b:
                raise RuntimeError(f"random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from={a} >= to={b}")
        check_random_bound(self, "from", a)
        check_random_bound(self, "to - 1", b - 1)
        f.range = <uint64_t>b - <uint64_t>a
    elif a != INT64_MIN:
        if category[self.dtype] == CAT_FLOAT:
            b = <int64_t>1 << DIGITS[self.dtype]
            dummy = INT64_MAX
            rs_narrow_range(<rs_dtype>self.dtype, &a, &dummy)
            if a >= b:
                raise RuntimeError(f"random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got from={a} > to_inc={b}")
        else:
            b = INT64_MAX if self.dtype == I64 else (<int64_t>1 << DIGITS[self.dtype]) - 1
        check_random_bound(self, "from", a)
        check_random_bound(self, "to", b)
        f.range = <uint64_t>b - <uint64_t>a + 1
    else:
        if self.dtype == BOOL or self.dtype == F16:
            refuse_dtype("random_full_64_bits_range_kernel_cpu", self)
        if self.dtype != I64 and category[self.dtype] == CAT_INT:
            raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
        f.kind = RS_FILL_RANDOM_FULL64
        return draw(self, &f, generator)
    f.kind = RS_FILL_RANDOM_FROM_TO
    f.low = a
    if category[self.dtype] == CAT_INT and not has_loops(self.dtype):
        # the stream depends on the range, not on the type
        wide = empty_tensor(self.ndim, self.sizes, I64, place_of(self))
        draw(wide, &f, generator)
        copy_elements(self, wide)
        return self
    return draw(self, &f, generator)


cdef TensorBase bernoulli_kernel(TensorBase self, double p, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={number_text(p)}")
    if category[self.dtype] == CAT_COMPLEX:
        refuse_dtype("bernoulli_scalar_cpu_", self)
    f.kind = RS_FILL_BERNOULLI
    f.a = p
    return draw(self, &f, generator)


cdef TensorBase _bernoulli_tensor_kernel(TensorBase self, TensorBase p, object generator, TensorBase out, int mode):
    cdef TensorBase values
    cdef rs_state* state = state_of(generator)
    cdef Dims d
    cdef int i
    if category[self.dtype] == CAT_COMPLEX or not has_loops(self.dtype):
        refuse_dtype("bernoulli_tensor_cpu_self_", self)
    check_internal_overlap("bernoulli_", self)
    if category[p.dtype] != CAT_FLOAT or not has_loops(p.dtype):
        refuse_dtype("bernoulli_tensor_cpu_p_", p)
    d.n = self.ndim
    for i in range(self.ndim):
        d.v[i] = self.sizes[i]
    values = p if same_sizes(p, self) else op_expand(<TensorBase?>(<object>p).detach(), &d)
    if self.numel:
        run_bernoulli_of(self.device_type, values, self, state, generator)
    return self


cdef TensorBase exponential_kernel(TensorBase self, double lambd, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if category[self.dtype] != CAT_FLOAT:
        raise RuntimeError(f"Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified {dtype_text(self.dtype)}")
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={number_text(lambd)}")
    f.kind = RS_FILL_EXPONENTIAL
    f.a = lambd
    return draw(self, &f, generator)


cdef TensorBase geometric_kernel(TensorBase self, double p, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={number_text(p)}")
    if self.dtype == BOOL or category[self.dtype] == CAT_COMPLEX:
        refuse_dtype("geometric_cpu", self)
    f.kind = RS_FILL_GEOMETRIC
    f.a = p
    return draw(self, &f, generator)


cdef TensorBase cauchy_kernel(TensorBase self, double median, double sigma, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={number_text(sigma)}")
    if category[self.dtype] != CAT_FLOAT:
        raise RuntimeError(f"Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified {cpp_type_text(self.dtype)}")
    f.kind = RS_FILL_CAUCHY
    f.a = median
    f.b = sigma
    return draw(self, &f, generator)


cdef TensorBase log_normal_kernel(TensorBase self, double mean, double std, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={number_text(std)}")
    if category[self.dtype] != CAT_FLOAT:
        refuse_dtype("log_normal_cpu", self)
    f.kind = RS_FILL_LOG_NORMAL
    f.a = mean
    f.b = std
    return draw(self, &f, generator)


# ---- methods that fill ---------------------------------------------------------------------------------------------
# `from` is a Python keyword, so bounds named from= and to= arrive in **bounds.

cdef tuple two_bounds(str op, tuple args, dict bounds, object first, object second):
    cdef int n = len(args)
    if n > 2:
        raise TypeError(f"{op}() takes at most 2 positional arguments ({n} given)")
    if n > 0:
        first = args[0]
    if n > 1:
        second = args[1]
    for k, v in bounds.items():
        if k == "from" and n < 1:
            first = v
        elif k == "to" and n < 2:
            second = v
        else:
            raise TypeError(f"{op}() got an unexpected keyword argument '{k}'")
    return first, second


cdef object uniformly_filled(object input, object low, object high, object generator, object out, bint inplace):
    """Numbers drawn uniformly from [low, high)."""
    cdef TensorBase self = as_tensor_arg(input, "uniform_", "self")
    check_inplace(self, "uniform_")
    return finish_inplace(op_uniform(self, parse_double(low, "uniform_", "from"), parse_double(high, "uniform_", "to"), generator, self, INPLACE), self.keys)


cdef object filled_with_trials(object input, object p, object generator, object out, bint inplace):
    """Zeros and ones, a one with probability p (a number or a tensor that broadcasts)."""
    cdef TensorBase self = as_tensor_arg(input, "bernoulli_", "self"), q
    check_inplace(self, "bernoulli_")
    if isinstance(p, TensorBase):
        q = <TensorBase>p
        return finish_inplace(op__bernoulli_tensor(self, q, generator, self, INPLACE), self.keys | q.keys)
    return finish_inplace(op_bernoulli(self, parse_double(p, "bernoulli_", "p"), generator, self, INPLACE), self.keys)


def random_(TensorBase self not None, *args, generator=None, **bounds):
    """random_(), random_(to), random_(from, to): fill with integers from [from, to), or from all that the dtype holds."""
    if len(args) == 1 and not bounds:
        low, high = 0, args[0]
    else:
        low, high = two_bounds("random_", args, bounds, None, None)
        if low is None and high is not None:
            low = 0
    for v in (low, high):
        if v is not None:
            parse_int(v, "random_", "from" if v is low else "to")
    check_inplace(self, "random_")
    return finish_inplace(op_random(self, low, high, generator, self, INPLACE), self.keys)


# ---- new tensors -------------------------------------------------------------------------------------------------------

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
    cdef TensorBase t
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
    if category[code] == CAT_INT and code != I64 and d.v[0] > 0 and (d.v[0] - 1) >> DIGITS[code]:
        raise RuntimeError(f"value cannot be converted to type {dtype_cpp_name(code).decode()} without overflow")
    t = factory_tensor(&d, &o) if out is None else factory_out(out, "randperm", &d, dtype)
    if code == BOOL or category[code] == CAT_COMPLEX:
        refuse_dtype("randperm", t)
    if t.numel:
        run_permutation(t.device_type, t, state, generator)
    return finish_factory(t, requires_grad)


# ---- normal --------------------------------------------------------------------------------------------------------

cdef TensorBase _sample_normal_kernel(TensorBase mean, TensorBase std, double mean_value, double std_value, object generator):
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
        if std.numel:
            run_check_deviations(std.device_type, std)
    if mean is not None and std is not None:
        pair[0] = <PyObject*>mean
        pair[1] = <PyObject*>std
        ndim = broadcast_shapes("normal", 2, pair, shape)
        if out is None:
            z = empty_tensor(ndim, shape, like.dtype, place_of(like))
        else:
            z = out
            prepare_out("normal", out, ndim, shape, out.dtype, OUT)           # whose type the kernel refuses in its own words
    elif out is None:
        z = empty_tensor(like.ndim, like.sizes, like.dtype, place_of(like))
    else:
        z = out
        if mean is None:
            prepare_out("normal", out, like.ndim, like.sizes, out.dtype, OUT)
    normal_kernel(z, 0.0, std_value if std is None else 1.0, generator, z, INPLACE)
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
        if out is None and intercepted(0):
            t = <TensorBase?>_ops.empty(shape_of(t), dtype=(<object>t).dtype, device=(<object>t).device)     # which a mode sees
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

cdef TensorBase _sample_bernoulli_kernel(TensorBase self, object generator):
    cdef TensorBase r = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    return _bernoulli_tensor_kernel(r, self, generator, r, INPLACE)


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
            _bernoulli_tensor_kernel(t, input, generator, t, INPLACE)
        else:
            bernoulli_kernel(t, parse_double(p, "bernoulli", "p"), generator, t, INPLACE)
        bump_version(t)
        return out
    if p is None:
        return op__sample_bernoulli(input, generator)
    t = <TensorBase?>_ops.empty_like(input.detach()) if is_transformed(input) else empty_tensor(input.ndim, input.sizes, input.dtype, place_of(input))
    return op_bernoulli(t, parse_double(p, "bernoulli", "p"), generator, t, INPLACE)


def multinomial(TensorBase input not None, num_samples, replacement=False, *, generator=None, out=None):
    """Indices drawn with the probabilities (not necessarily normalised) in each row. input: (N,) or (R, N); result (num_samples,) or (R, num_samples)."""
    cdef int64_t k, n, rows
    cdef int64_t sizes[2]
    cdef rs_state* state = state_of(generator)
    cdef TensorBase result
    cdef bint again = parse_bool(replacement, "multinomial", "replacement")
    k = parse_int(num_samples, "multinomial", "num_samples")
    if out is not None:
        check_out(out, "multinomial")
        if (<TensorBase>out).dtype != I64:
            raise RuntimeError(f"multinomial expects Long tensor out, got: {dtype_text((<TensorBase>out).dtype)}")
    if not 1 <= input.ndim <= 2:
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if category[input.dtype] != CAT_FLOAT:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {dtype_text(input.dtype)}")
    if not has_loops(input.dtype):
        refuse_dtype("aminmax_cpu", input)
    if k <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if is_transformed(input) and out is None:
        from tensorrt_lite._C.core.transform import rule_of
        return rule_of("multinomial")(input, k, again, generator)
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
    sizes[0] = rows if input.ndim == 2 else k
    sizes[1] = k
    result = empty_tensor(input.ndim, sizes, I64, place_of(input))
    if result.numel:
        run_multinomial(input.device_type, input, k, again, state, generator, result)
    if out is None:
        return finish_factory(result, False)
    prepare_out("multinomial", <TensorBase>out, result.ndim, result.sizes, I64, OUT)
    copy_elements(<TensorBase>out, result)
    bump_version(<TensorBase>out)
    return out


cdef TensorBase poisson_kernel(TensorBase self, object generator):
    cdef TensorBase r = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    cdef rs_state* state = state_of(generator)
    if category[self.dtype] != CAT_FLOAT:
        refuse_dtype("poisson_cpu", self)
    if self.numel:
        run_poisson(self.device_type, self, r, state, generator)
    return r


cdef TensorBase binomial_kernel(TensorBase count, TensorBase prob, object generator):
    cdef TensorBase r, n, p
    cdef PyObject* operands[2]
    cdef int64_t sizes[MAX_DIMS]
    cdef rs_state* state = state_of(generator)
    for what, t in (("count", count), ("prob", prob)):
        if category[(<TensorBase>t).dtype] != CAT_FLOAT:
            raise ValueError(f"binomial only supports floating-point dtypes for {what}, got: {dtype_text((<TensorBase>t).dtype)}")
    if count.dtype != prob.dtype:
        raise RuntimeError(f"Found dtype {dtype_text(prob.dtype)} but expected {dtype_text(count.dtype)}")
    if place_of(count) != place_of(prob):
        raise RuntimeError(f"binomial: Expected all tensors to be on the same device, but found at least two devices, {(<object>count).device} and {(<object>prob).device}!")
    if count.dtype != F32 and count.dtype != F64:
        refuse_dtype("binomial_cpu", count)
    operands[0], operands[1] = <PyObject*>count, <PyObject*>prob
    r = empty_tensor(broadcast_shapes("binomial", 2, operands, sizes), sizes, count.dtype, place_of(count))
    n, p = _ops.expand(count, shape_of(r)), _ops.expand(prob, shape_of(r))
    if r.numel:
        run_binomial(r.device_type, contiguous_of(n), contiguous_of(p), r, state, generator)
    return r


cdef TensorBase gamma_numbers(TensorBase shape, object generator):
    cdef TensorBase r = empty_tensor(shape.ndim, shape.sizes, shape.dtype, place_of(shape))
    if shape.numel:
        run_standard_gamma(shape.device_type, contiguous_of(shape), r, state_of(generator), generator)
    return r


cdef TensorBase _standard_gamma_kernel(TensorBase self, object generator):
    if self.dtype != F32 and self.dtype != F64:
        refuse_dtype("gamma_cpu", self)
    return gamma_numbers(self, generator)


cdef TensorBase _sample_dirichlet_kernel(TensorBase self, object generator):
    """Gamma numbers over their sum, in double: small shapes give numbers below the range of float32."""
    cdef TensorBase r
    if self.dtype != F32 and self.dtype != F64:
        refuse_dtype("dirichlet", self)
    if self.numel == 0:
        return empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    r = gamma_numbers(cast_to(self, F64), generator)
    r = cast_to(<TensorBase?>(<object>r / _ops.sum(r, -1, True)), self.dtype)
    return <TensorBase?>_ops.clamp(r, 2.2250738585072014e-308 if self.dtype == F64 else 1.1754943508222875e-38, 1 - (1.1102230246251565e-16 if self.dtype == F64 else 5.960464477539063e-08))


cdef object dirichlet_gradient(object grad, object self, object result):
    """A coordinate moves as one of a beta distribution; what it takes, the others give in proportion."""
    total = _ops.sum(self, -1, True).expand_as(self)
    return _ops._dirichlet_grad(result, self, total) * (grad - _ops.sum(result * grad, -1, True))


cdef object binomial_gradient():
    raise RuntimeError("derivative for aten::binomial is not implemented")


# ---- dropout: a mask of one byte an element is drawn in PyTorch's order; the scale is what PyTorch's noise tensor would hold, so that products agree ------

cdef TensorBase _masked_scale_kernel(TensorBase self, TensorBase mask, double scale, TensorBase out, int mode):
    """self * (mask * scale)."""
    cdef TensorBase r, x = self
    cdef bint direct = same_geometry(self, mask)
    if self.dtype not in (F16, BF16, F32, F64) or mask.dtype != BOOL or not direct and not same_sizes(self, mask) or mask.device_type != self.device_type:
        raise RuntimeError(f"_masked_scale: expected a floating-point input and a bool mask of its size, got {shape_text(self)} of {dtype_of(self.dtype).name} "
                           f"and {shape_text(mask)} of {dtype_of(mask.dtype).name}")
    if not non_overlapping_dense(mask):
        mask = contiguous_of(mask)
        direct = same_geometry(self, mask)
    r = self if mode == INPLACE and direct else empty_like_tensor(mask, self.dtype)
    if self.numel == 0:
        return self if mode == INPLACE else r
    if not direct:
        copy_elements(r, self)
        x = r
    run_masked_scale(self.device_type, x, mask, scale, r)
    if mode == INPLACE and not direct:
        copy_elements(self, r)
        return self
    return r


def _masked_scale(TensorBase input not None, TensorBase mask not None, double scale):
    """input * (mask * scale): the gradient of dropout."""
    return op__masked_scale(input, mask, scale, None, FRESH)


def _masked_scale_(TensorBase input not None, TensorBase mask not None, double scale):
    """_masked_scale in place."""
    check_inplace(input, "_masked_scale_")
    return finish_inplace(op__masked_scale(input, mask, scale, input, INPLACE), input.keys)


cdef int check_dropout(TensorBase x, double p) except -1:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {number_text(p)}")
    return 0


cdef int check_dropout_dtype(TensorBase x) except -1:
    if category[x.dtype] == CAT_COMPLEX:
        refuse_dtype("bernoulli_scalar_cpu_", x)
    if category[x.dtype] != CAT_FLOAT:
        raise RuntimeError(f"result type Float can't be cast to the desired output type {dtype_text(x.dtype)}")
    return 0


cdef bint is_transformed(TensorBase x) noexcept:
    """Whether a functional transform sees to what is drawn for x."""
    return (tls().included & K_TRANSFORM | x.keys & K_WRAPPED) != 0


cdef TensorBase _keep_mask_kernel(TensorBase self, double p):
    cdef TensorBase mask = empty_like_tensor(self, BOOL)
    cdef double scale = 0
    run_dropout_mask(self.device_type, self, 1 - p, True, mask, &scale)
    return mask


cdef TensorBase drawn_mask(TensorBase x, double p):
    """Which elements dropout keeps, drawn by an operator, so that vmap draws for its batch as it was told to."""
    return op__keep_mask(<TensorBase?>x.detach(), p)


cdef bint is_seen(TensorBase x) noexcept:
    """Whether a mode or a class runs the operators of x: it has to see what is drawn."""
    return not is_transformed(x) and (tls().included | x.keys) & ~tls().excluded & K_PYTHON != 0


cdef TensorBase drop_by_operators(TensorBase x, double p, int mode):
    """What `drop` computes, by PyTorch's operators, which draw the same mask."""
    noise = _ops.div_(_ops.bernoulli_(_ops.empty_like(x), 1 - p), 1 - p)
    return <TensorBase?>(_ops.mul_(x, noise) if mode == INPLACE else _ops.mul(x, noise))


cdef TensorBase drop(TensorBase x, double p, int mode):
    cdef TensorBase mask
    cdef double scale
    if p == 1:
        zero = _ops.zeros((), dtype=dtype_of(x.dtype), device=(<object>x).device)
        return _ops.mul_(x, zero) if mode == INPLACE else _ops.mul(x, zero)
    check_dropout_dtype(x)
    scale = 1 / (1 - p)
    if is_seen(x) and (mode == INPLACE or x.device_type == DEV_CPU or x.device_type == DEV_META):
        return drop_by_operators(x, p, mode)
    if is_transformed(x) or is_seen(x):
        mask = drawn_mask(x, p)
    else:
        mask = empty_like_tensor(x, BOOL)
        run_dropout_mask(x.device_type, x, 1 - p, mode != INPLACE, mask, &scale)
    return op__masked_scale(x, mask, scale, x if mode == INPLACE else None, mode)


def dropout(input, p, train):
    """Zero each element with probability p and scale the rest by 1 / (1 - p); the input itself outside of training."""
    cdef TensorBase x
    cdef double q
    x = as_tensor_arg(input, "dropout", "input")
    q = parse_double(p, "dropout", "p")
    check_dropout(x, q)
    if q == 0 or not train or x.numel == 0:
        return x
    return drop(x, q, FRESH)


def dropout_(input, p, train):
    """dropout in place."""
    cdef TensorBase x
    cdef double q
    x = as_tensor_arg(input, "dropout_", "input")
    q = parse_double(p, "dropout_", "p")
    check_dropout(x, q)
    if q == 0 or not train or x.numel == 0:
        return x
    check_inplace(x, "dropout_")
    if q == 1:
        return drop(x, q, INPLACE)
    return drop(x, q, INPLACE) if is_seen(x) else finish_inplace(drop(x, q, INPLACE), x.keys)


def native_dropout(input, p, train):
    """Dropout with its mask: (result, mask)."""
    cdef TensorBase x, mask
    cdef double q, scale
    cdef Scalar one
    x = as_tensor_arg(input, "native_dropout", "input")
    q = parse_double(p, "native_dropout", "p")
    check_dropout(x, q)
    if x.numel == 0:
        return x, empty_like_tensor(x, x.dtype)
    if train is not None and not train and is_transformed(x):
        return _ops.clone(x), _ops.ones_like(x.detach(), dtype=dtype_of(BOOL))
    if train is not None and not train:
        mask = empty_like_tensor(x, BOOL)
        one.kind = 0
        one.i = 1
        one.d = 1
        one.im = 0
        fill_elements(mask, &one)
        return _ops.clone(x), mask
    check_dropout_dtype(x)
    if is_transformed(x) or is_seen(x):
        mask = drawn_mask(x, q)
        return op__masked_scale(x, mask, 0.0 if q == 1 else 1 / (1 - q), None, FRESH), mask
    mask = empty_like_tensor(x, BOOL)
    scale = 0
    run_dropout_mask(x.device_type, x, 1 - q, True, mask, &scale)
    return op__masked_scale(x, mask, 0.0 if q == 1 else 1 / (1 - q), None, FRESH), mask


# ---- rrelu ---------------------------------------------------------------------------------------------------------

cdef TensorBase rrelu_with_noise_kernel(TensorBase self, TensorBase noise, double lower, double upper, bint training, object generator, TensorBase out, int mode):
    """In training x * noise, where noise is 1 for x > 0 and else a double drawn from [lower, upper); leaky_relu otherwise."""
    cdef rs_state* state = state_of(generator)
    cdef TensorBase r
    if category[self.dtype] != CAT_FLOAT:
        refuse_dtype("rrelu_with_noise_out_cpu", self)
    if not same_sizes(self, noise):
        raise RuntimeError(f"noise tensor shape must match self tensor shape. Got self.shape = {shape_text(self)} noise.shape = {shape_text(noise)}")
    if not lower <= upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, got {number_text(lower)} and {number_text(upper)}")
    r = self if mode == INPLACE else empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    if self.numel:
        run_rrelu(self.device_type, self, noise, lower, upper, training, state, generator, r)
    return r


cdef object rrelu_gradient(object grad, object noise, object x, object lower, object upper, object training):
    """x: the input, or what was written over it: the slope's sign is positive, so either tells which elements were positive."""
    if training:
        return _ops.mul(grad, noise)
    slope = _ops.where(_ops.gt(x, 0), 1.0, (lower + upper) / 2).to(grad.dtype)
    return _ops.mul(grad, slope)


cdef int check_bounds(TensorBase input, object lower, object upper) except -1:
    cdef Scalar s
    for bound, which in ((lower, "lower"), (upper, "upper")):
        s.kind, s.d, s.im = 2, parse_double(bound, "rrelu", which), 0
        if s.d - s.d != 0:
            raise RuntimeError(f"rrelu: {which} bound must be finite, got {bound}")
        check_number(&s, F32 if is_reduced_floating_type(input.dtype) else input.dtype)
    return 0


def rrelu_with_noise(TensorBase input not None, TensorBase noise not None, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    """rrelu that leaves the slopes it drew in `noise`."""
    check_bounds(input, lower, upper)
    return op_rrelu_with_noise(input, noise, parse_double(lower, "rrelu_with_noise", "lower"), parse_double(upper, "rrelu_with_noise", "upper"), bool(training), generator, None, FRESH)


def rrelu_with_noise_(TensorBase input not None, TensorBase noise not None, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    """rrelu_with_noise in place."""
    check_inplace(input, "rrelu_with_noise_")
    check_bounds(input, lower, upper)
    return finish_inplace(op_rrelu_with_noise(input, noise, parse_double(lower, "rrelu_with_noise_", "lower"), parse_double(upper, "rrelu_with_noise_", "upper"), bool(training), generator, input, INPLACE), input.keys)


cdef TensorBase noise_for(TensorBase input):
    if is_seen(input):
        return <TensorBase?>_ops.empty_like(input, memory_format=contiguous_format)
    return <TensorBase?>_ops.empty_like(input.detach()) if is_transformed(input) else empty_tensor(input.ndim, input.sizes, input.dtype, place_of(input))


def rrelu(TensorBase input not None, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    """Leaky ReLU whose slope is drawn from [lower, upper) per element in training, its mean otherwise."""
    return rrelu_with_noise(input, noise_for(input), lower, upper, training, generator)


def rrelu_(TensorBase input not None, lower=0.125, upper=0.3333333333333333, training=False, generator=None):
    """rrelu in place."""
    return rrelu_with_noise_(input, noise_for(input), lower, upper, training, generator)


WITHOUT_ROW = {"_masked_scale": ""}
