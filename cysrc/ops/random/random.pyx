# Random numbers in PyTorch's streams: fills in place, factories, sampling, dropout. The draws themselves are in
# core/random_streams.h; every fill holds the GIL from its first word to its last. Meta and empty tensors draw nothing.
from libc.math cimport sqrt, floor, fabs, log, lgamma, exp as c_exp
from libc.stdint cimport INT64_MIN, INT64_MAX
from tensorrt_lite._C.core.random cimport *

cdef extern from *:
    """
    typedef void (*trt_masked_scale_fn)(const void*, const uint8_t*, void*, int64_t, double);
    ISA_TABLE(trt_masked_scale_fn, trt_masked_scale)
    """
    ctypedef void (*trt_masked_scale_fn)(const void*, const uint8_t*, void*, int64_t, double) noexcept nogil
    const trt_masked_scale_fn* trt_masked_scale() nogil

# What cysrc/cuda/random.pyx installs: fills of real tensors, dropout's product and its mask, draws by probabilities, the positions of
# random keys, draws from rows of running sums, rrelu's slopes, Poisson counts.
ctypedef int (*device_fill_fn)(TensorBase t, const rs_fill* fill, object generator) except -1
ctypedef int (*device_masked_scale_fn)(TensorBase x, TensorBase mask, double scale, TensorBase out) except -1
cdef device_fill_fn device_fill
cdef device_masked_scale_fn device_masked_scale
cdef int (*device_dropout_mask)(TensorBase x, double keep, TensorBase mask) except -1
cdef int (*device_bernoulli_of)(TensorBase probability, TensorBase out, object generator) except -1
cdef object (*device_permutation)(int64_t n, int bits, int place, object generator)
cdef int (*device_sample_rows)(TensorBase sums, TensorBase weights, TensorBase out, object generator) except -1
cdef int (*device_slopes)(TensorBase x, TensorBase slopes, TensorBase out, double low, double high, object generator) except -1
cdef int (*device_poisson)(TensorBase rate, TensorBase out, object generator) except -1


def _install_device_kernels(size_t fill, size_t masked_scale, size_t dropout_mask, size_t bernoulli_of, size_t permutation, size_t sample_rows, size_t slopes, size_t poisson_):
    global device_fill, device_masked_scale
    device_fill = <device_fill_fn>fill
    device_masked_scale = <device_masked_scale_fn>masked_scale
    (<void**>&device_dropout_mask)[0] = <void*>dropout_mask
    (<void**>&device_bernoulli_of)[0] = <void*>bernoulli_of
    (<void**>&device_permutation)[0] = <void*>permutation
    (<void**>&device_sample_rows)[0] = <void*>sample_rows
    (<void**>&device_slopes)[0] = <void*>slopes
    (<void**>&device_poisson)[0] = <void*>poisson_


# The instruction set of the loops: reading it anew costs a call of getenv.
cdef const trt_masked_scale_fn* MASKED_SCALE = trt_masked_scale()      # by dtype, from float16 on



cdef int refuse_dtype(str kernel, TensorBase t) except -1:
    raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype_text(t.dtype)}'")


cdef str number_text(double v):
    return f"{v:g}"


cdef TensorBase run_fill(TensorBase t, const rs_fill* fill, object generator):
    """Draw into a tensor of a dtype that the fill supports; complex tensors are filled as their real views."""
    cdef rs_state* state = state_of(generator)
    check_internal_overlap("random fill", t)
    if t.numel == 0 or t.device_type == DEV_META:
        return t
    if category[t.dtype] == CAT_COMPLEX:
        run_fill(<TensorBase>_ops.view_as_real((<object>t).detach()), fill, generator)
        return t
    if t.device_type == DEV_CUDA:
        device_fill(t, fill, generator)
        return t
    if generator is not None and generator.device.type != "cpu":
        raise RuntimeError(f"Expected a 'cpu' device type for generator but found '{generator.device.type}'")
    rs_fill_tensor(state, fill, <rs_dtype>t.dtype, data_of(t), t.ndim, t.sizes, t.strides)
    return t


# ---- kernels of the fills ------------------------------------------------------------------------------------------

cdef TensorBase uniform_cpu(TensorBase self, double low, double high, object generator, TensorBase out, int mode):
    cdef rs_fill f
    cdef int real = to_real(self.dtype)
    if category[self.dtype] < CAT_FLOAT:
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
    return run_fill(self, &f, generator)


cdef TensorBase normal_cpu(TensorBase self, double mean, double std, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {number_text(std)}")
    if category[self.dtype] < CAT_FLOAT:
        refuse_dtype("normal_kernel_cpu", self)
    f.kind = RS_FILL_NORMAL
    f.a = mean
    f.b = std / sqrt(2.0) if category[self.dtype] == CAT_COMPLEX else std
    return run_fill(self, &f, generator)


cdef int check_random_bound(TensorBase t, str name, int64_t bound) except -1:
    """Whether the dtype can hold a bound; floating types warn where not every integer has a value of its own."""
    cdef int code = t.dtype
    cdef double v = <double>bound
    if category[code] == CAT_FLOAT:
        if not -LARGEST[code] <= v <= LARGEST[code]:
            raise RuntimeError(f"{name} is out of bounds for {cpp_type_text(code)}")
        if v > <double>(<int64_t>1 << DIGITS[code]) or v < -<double>(<int64_t>1 << DIGITS[code]):
            import warnings
            warnings.warn(
                f"{name} is out of bounds [-(2^{DIGITS[code]}), 2^{DIGITS[code]}]. Due to precision limitations {cpp_type_text(code)} can support discrete uniform "
                "distribution only within this range. This warning will become an error in version 1.7 release, please fix the code in advance", UserWarning, stacklevel=2)
    elif not is_signed_type(code) and bound < 0 or code != I64 and bound >> DIGITS[code] != (-1 if bound < 0 else 0):
        raise RuntimeError(f"{name} is out of bounds for {cpp_type_text(code)}")
    return 0


cdef TensorBase random_cpu(TensorBase self, object low, object high, object generator, TensorBase out, int mode):
    cdef rs_fill f
    cdef int64_t a = 0, b = 0, dummy = 1
    if category[self.dtype] == CAT_COMPLEX:
        if low is None and high is None:
            refuse_dtype("random_kernel_cpu", self)
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    f.low = 0
    f.range = 0
    if low is None and high is None:
        f.kind = RS_FILL_RANDOM
        return run_fill(self, &f, generator)
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
        return run_fill(self, &f, generator)
    f.kind = RS_FILL_RANDOM_FROM_TO
    f.low = a
    return run_fill(self, &f, generator)


cdef TensorBase bernoulli_cpu(TensorBase self, double p, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={number_text(p)}")
    if category[self.dtype] == CAT_COMPLEX:
        refuse_dtype("bernoulli_scalar_cpu_", self)
    f.kind = RS_FILL_BERNOULLI
    f.a = p
    return run_fill(self, &f, generator)


cdef TensorBase _bernoulli_tensor_cpu(TensorBase self, TensorBase p, object generator, TensorBase out, int mode):
    cdef TensorBase values, drawn
    cdef Scalar low, high
    cdef rs_state* state = state_of(generator)
    cdef Dims d
    cdef int i
    if category[self.dtype] == CAT_COMPLEX:
        refuse_dtype("bernoulli_tensor_cpu_self_", self)
    check_internal_overlap("bernoulli_", self)
    if category[p.dtype] != CAT_FLOAT:
        refuse_dtype("bernoulli_tensor_cpu_p_", p)
    if p.device_type != self.device_type and self.device_type != DEV_META:
        raise RuntimeError("bernoulli: Expected all tensors to be on the same device, but the probabilities are not where the result is")
    d.n = self.ndim
    for i in range(self.ndim):
        d.v[i] = self.sizes[i]
    values = p if same_sizes(p, self) else op_expand(<TensorBase>(<object>p).detach(), &d)
    if self.numel == 0 or self.device_type == DEV_META:
        return self
    if self.device_type == DEV_CUDA:
        # the probabilities are not looked at: that would wait for the device
        values = cast_to(values, F64 if self.dtype == F64 else F32)
        if same_geometry(self, values) and non_overlapping_dense(self):
            device_bernoulli_of(values, self, generator)
            return self
        drawn = empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
        device_bernoulli_of(contiguous_of(values), drawn, generator)
        copy_elements(self, drawn)
        return self
    if values.dtype == F16 or values.dtype == BF16:
        values = cast_to(values, F32)
    check_probabilities(values)
    rs_bernoulli_tensor(state, <rs_dtype>self.dtype, data_of(self), <rs_dtype>values.dtype, data_of(values), self.ndim, self.sizes, self.strides, values.strides)
    return self


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


cdef TensorBase exponential_cpu(TensorBase self, double lambd, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if category[self.dtype] != CAT_FLOAT:
        raise RuntimeError(f"Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified {dtype_text(self.dtype)}")
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={number_text(lambd)}")
    f.kind = RS_FILL_EXPONENTIAL
    f.a = lambd
    return run_fill(self, &f, generator)


cdef TensorBase geometric_cpu(TensorBase self, double p, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={number_text(p)}")
    if self.dtype == BOOL or category[self.dtype] == CAT_COMPLEX:
        refuse_dtype("geometric_cpu", self)
    f.kind = RS_FILL_GEOMETRIC
    f.a = p
    return run_fill(self, &f, generator)


cdef TensorBase cauchy_cpu(TensorBase self, double median, double sigma, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={number_text(sigma)}")
    if category[self.dtype] != CAT_FLOAT:
        raise RuntimeError(f"Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified {cpp_type_text(self.dtype)}")
    f.kind = RS_FILL_CAUCHY
    f.a = median
    f.b = sigma
    return run_fill(self, &f, generator)


cdef TensorBase log_normal_cpu(TensorBase self, double mean, double std, object generator, TensorBase out, int mode):
    cdef rs_fill f
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={number_text(std)}")
    if category[self.dtype] != CAT_FLOAT:
        refuse_dtype("log_normal_cpu", self)
    f.kind = RS_FILL_LOG_NORMAL
    f.a = mean
    f.b = std
    return run_fill(self, &f, generator)


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


def uniform_(TensorBase self not None, *args, generator=None, **bounds):
    """uniform_(from=0, to=1): fill with numbers drawn uniformly from [from, to)."""
    low, high = two_bounds("uniform_", args, bounds, 0.0, 1.0)
    check_inplace(self, "uniform_")
    return finish_inplace(op_uniform(self, parse_double(low, "uniform_", "from"), parse_double(high, "uniform_", "to"), generator, self, INPLACE), self.keys)


def normal_(TensorBase self not None, mean=0.0, std=1.0, *, generator=None):
    """Fill with normally distributed numbers."""
    check_inplace(self, "normal_")
    return finish_inplace(op_normal(self, parse_double(mean, "normal_", "mean"), parse_double(std, "normal_", "std"), generator, self, INPLACE), self.keys)


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


def _bernoulli_tensor_(TensorBase self not None, TensorBase p not None, generator=None):
    """bernoulli_ by a tensor of probabilities."""
    return finish_inplace(op__bernoulli_tensor(self, p, generator, self, INPLACE), self.keys | p.keys)


def bernoulli_(TensorBase self not None, p=0.5, *, generator=None):
    """Fill with zeros and ones, a one with probability p (a number or a tensor that broadcasts)."""
    check_inplace(self, "bernoulli_")
    if isinstance(p, TensorBase):
        return _bernoulli_tensor_(self, <TensorBase>p, generator)
    return finish_inplace(op_bernoulli(self, parse_double(p, "bernoulli_", "p"), generator, self, INPLACE), self.keys)


def exponential_(TensorBase self not None, lambd=1.0, *, generator=None):
    """Fill with exponentially distributed numbers of rate lambd."""
    check_inplace(self, "exponential_")
    return finish_inplace(op_exponential(self, parse_double(lambd, "exponential_", "lambd"), generator, self, INPLACE), self.keys)


def geometric_(TensorBase self not None, p, *, generator=None):
    """Fill with the number of trials up to the first success, each with probability p."""
    check_inplace(self, "geometric_")
    return finish_inplace(op_geometric(self, parse_double(p, "geometric_", "p"), generator, self, INPLACE), self.keys)


def cauchy_(TensorBase self not None, median=0.0, sigma=1.0, *, generator=None):
    """Fill with Cauchy distributed numbers."""
    check_inplace(self, "cauchy_")
    return finish_inplace(op_cauchy(self, parse_double(median, "cauchy_", "median"), parse_double(sigma, "cauchy_", "sigma"), generator, self, INPLACE), self.keys)


def log_normal_(TensorBase self not None, mean=1.0, std=2.0, *, generator=None):
    """Fill with numbers whose logarithm is normally distributed."""
    check_inplace(self, "log_normal_")
    return finish_inplace(op_log_normal(self, parse_double(mean, "log_normal_", "mean"), parse_double(std, "log_normal_", "std"), generator, self, INPLACE), self.keys)


include "factories.pxi"
include "dropout.pxi"

EXTRA_EXPORTS = {n: "m" for n in ("uniform_", "normal_", "random_", "exponential_", "geometric_", "cauchy_", "log_normal_", "bernoulli_")}
EXTRA_EXPORTS.update({n: "f" for n in (
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal", "dropout", "dropout_", "feature_dropout", "feature_dropout_",
    "alpha_dropout", "alpha_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_", "native_dropout", "rrelu", "rrelu_")})
EXTRA_EXPORTS.update({"bernoulli": "fm", "multinomial": "fm", "rrelu_with_noise": "", "_masked_scale": ""})
