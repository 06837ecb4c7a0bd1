"""Random numbers on CUDA: launches of cuda_src/random.cuh on PyTorch's grids."""
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.dtype cimport BOOL, I64, I32, F16, F32, F64, DIGITS, NUM_DTYPES, has_loops, is_complex_type, is_floating_type, is_integral_or_bool_type
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements
from tensorrt_lite._C.core.random cimport (
    rs_fill, rs_state, RS_FILL_UNIFORM, RS_FILL_NORMAL, RS_FILL_LOG_NORMAL, RS_FILL_CAUCHY, RS_FILL_EXPONENTIAL, RS_FILL_GEOMETRIC, RS_FILL_BERNOULLI, RS_FILL_RANDOM,
    RS_FILL_RANDOM_FROM_TO, RS_FILL_RANDOM_FULL64)
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, ITEM_SIZE, place_of, empty_like_tensor, empty_tensor, non_overlapping_dense
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, run3, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite._C.cuda.radix cimport sort_pairs
from tensorrt_lite._C.cuda.source import storage_type
from tensorrt_lite._C.ops.random.masks cimport noise_of, same_geometry
from tensorrt_lite._C.steps.random cimport (
    set_bernoulli_of, set_binomial, set_check_deviations, set_dropout_mask, set_fill, set_masked_scale, set_multinomial, set_permutation, set_poisson, set_rrelu,
    set_standard_gamma)

attach()
cdef object _ops = ops_namespace()

cdef extern from *:
    """
    /* As random.cuh declares it. */
    typedef struct { unsigned long long numel, seed, offset, state; double a, b; long long low; unsigned long long range; } trt_fill_params;
    """
    ctypedef struct Params "trt_fill_params":
        unsigned long long numel, seed, offset, state
        double a, b
        long long low
        unsigned long long range

cdef enum:
    BLOCK = 256
    MULTIPROCESSOR_COUNT = 16      # CU_DEVICE_ATTRIBUTE_*
    THREADS_PER_MULTIPROCESSOR = 39

# The devices' generators, objects of the package: their class, what finds one, those in use by device.
cdef type _generator_type = None
cdef object _generator_for = None
cdef dict _generators = None
cdef dict _handles = {}
cdef dict _grids = {}


def _use_generators(type kind not None, find not None, dict in_use not None):
    """Objects of class `kind` have `advance(words)`; find(index, generator) checks the one that a caller gave, or returns the device's."""
    global _generator_type, _generator_for, _generators
    _generator_type, _generator_for, _generators = kind, find, in_use


# parameters and call of the kernels that are no fills; {t} is the dtype's type
FORMS = {
    "masked_scale": ("unsigned long long numel, const {t}* x, const bool* mask, double scale, {t}* out", "masked_scale(numel, x, mask, scale, out)"),
    "bernoulli_of_float": ("const trt::FillParams p, const float* probability, {t}* out", "bernoulli_of(p, probability, out)"),
    "bernoulli_of_double": ("const trt::FillParams p, const double* probability, {t}* out", "bernoulli_of(p, probability, out)"),
    "shuffle_equal": ("const trt::FillParams p, const {t}* keys, int* positions", "shuffle_equal(p, keys, positions)"),
    "sample_rows": ("const trt::FillParams p, const {t}* sums, const {t}* weights, long long* out", "sample_rows(p, sums, weights, out)"),
    "random_slopes": ("const trt::FillParams p, const {t}* x, {t}* slopes, {t}* out", "random_slopes(p, x, slopes, out)"),
    "binomial": ("const trt::FillParams p, const {t}* count, const {t}* probability, {t}* out", "binomial(p, count, probability, out)"),
    "standard_gamma": ("const trt::FillParams p, const {t}* shape, {t}* out", "standard_gamma(p, shape, out)"),
    "poisson": ("const trt::FillParams p, const {t}* rate, {t}* out", "poisson(p, rate, out)"),
}


cdef int take(Params* p, int index, object generator, int64_t words) except -1:
    """Seed and offset of the next `words` of each thread, of the device's generator where none is given."""
    if generator is None:
        generator = _generators.get(index)
    if type(generator) is not _generator_type:
        generator = _generator_for(index, generator)
    p.seed, p.offset, p.state = generator.advance(words)
    return 0


def advance(int index, int64_t words):
    """(seed, offset, state), as signed numbers, of the next `words` of each thread of the device's generator."""
    cdef Params p
    take(&p, index, None, words)
    return <int64_t>p.seed, <int64_t>p.offset, <int64_t>p.state


cdef FunctionHandle kernel(str name, int dtype, int index) except NULL:
    key = (name, dtype, index)
    found = _handles.get(key)
    if found is None:
        t = storage_type(dtype)
        parameters, call = FORMS.get(name, ("const trt::FillParams p, {t}* out", f"{name}(p, out)"))
        text = f'#include "random.cuh"\nextern "C" __global__ void __launch_bounds__(512) kernel({parameters.format(t=t)}) {{ trt::{call}; }}\n'
        found = _handles[key] = <size_t>kernel_of(text, "kernel", index)
    return <FunctionHandle><size_t>found


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype
    for dtype in range(<int>NUM_DTYPES):
        if not has_loops(dtype):
            continue
        kernel("masked_scale", dtype, index)
        if not is_complex_type(dtype):
            for name in ("fill_bernoulli", "fill_random_words", "fill_random_wide", "fill_between", "fill_between_wide", "bernoulli_of_float"):
                kernel(name, dtype, index)
        if is_floating_type(dtype):
            for name in ("fill_uniform", "fill_normal", "fill_log_normal", "fill_cauchy", "fill_exponential", "sample_rows", "random_slopes", "poisson"):
                kernel(name, dtype, index)
        if dtype != BOOL and not is_complex_type(dtype):
            kernel("fill_geometric", dtype, index)
    kernel("bernoulli_of_double", F64, index)
    kernel("binomial", F32, index)
    kernel("binomial", F64, index)
    kernel("standard_gamma", F32, index)
    kernel("standard_gamma", F64, index)
    for dtype in (I32, I64):
        kernel("shuffle_equal", dtype, index)
    for name in MASKS:
        if name:
            kernel(name, BOOL, index)


cdef int64_t largest_grid(int index) except -1:
    found = _grids.get(index)
    if found is None:
        found = _grids[index] = device_attribute(MULTIPROCESSOR_COUNT, index) * (device_attribute(THREADS_PER_MULTIPROCESSOR, index) // BLOCK)
    return found


cdef int draw(TensorBase t, const rs_fill* f, object generator) except -1:
    """t real and not empty. The stream advances as far as the thread that draws most, by whole calls of four words."""
    cdef Params p
    cdef int index = t.device_index, digits = DIGITS[t.dtype], count
    cdef int64_t blocks
    cdef str name
    cdef char* out
    cdef void* arguments[2]
    cdef TensorBase dense = t
    if not non_overlapping_dense(t):
        dense = empty_tensor(t.ndim, t.sizes, t.dtype, place_of(t))
    p.numel = t.numel
    p.a = f.a
    p.b = f.b
    p.low = f.low
    p.range = f.range
    count = 2 if t.dtype == F64 else 4
    if f.kind == RS_FILL_UNIFORM:
        name = "fill_uniform"
    elif f.kind == RS_FILL_NORMAL:
        name = "fill_normal"
    elif f.kind == RS_FILL_LOG_NORMAL:
        name = "fill_log_normal"
    elif f.kind == RS_FILL_CAUCHY:
        name = "fill_cauchy"
    elif f.kind == RS_FILL_EXPONENTIAL:
        name = "fill_exponential"
    elif f.kind == RS_FILL_GEOMETRIC:
        name = "fill_geometric"
    elif f.kind == RS_FILL_BERNOULLI:
        name = "fill_bernoulli"
    elif f.kind == RS_FILL_RANDOM:
        count = 2 if t.dtype == I64 or t.dtype == F64 else 4
        name = "fill_random_wide" if count == 2 else "fill_random_words"
        p.range = (<uint64_t>1 << digits) + (0 if is_integral_or_bool_type(t.dtype) else 1)
    else:
        count = 2 if f.kind == RS_FILL_RANDOM_FULL64 or f.range >= (1 << 28) or f.range == 0 else 4
        if f.kind == RS_FILL_RANDOM_FULL64:
            p.low = 0
            p.range = 0
        name = "fill_between_wide" if count == 2 else "fill_between"
    blocks = min((t.numel + BLOCK - 1) // BLOCK, largest_grid(index))
    take(&p, index, generator, ((t.numel - 1) // (BLOCK * blocks * count) + 1) * 4)
    out = data_of(dense)
    arguments[0] = &p
    arguments[1] = &out
    run(kernel(name, t.dtype, index), index, blocks, BLOCK, 0, arguments)
    if dense is not t:
        copy_elements(t, dense)
    return 0


cdef int launch(str name, int dtype, int index, int64_t blocks, int threads, Params* p, TensorBase a, TensorBase b, TensorBase c) except -1:
    cdef char* pointers[3]
    cdef void* arguments[4]
    cdef int i, n = 1
    arguments[0] = p
    for t in (a, b, c):
        if t is not None:
            pointers[n - 1] = data_of(<TensorBase>t)
            arguments[n] = &pointers[n - 1]
            n += 1
    return run(kernel(name, dtype, index), index, blocks, threads, 0, arguments)


cdef tuple MASKS = ("", "dropout_mask<1>", "dropout_mask<2>", "", "dropout_mask<4>", "", "", "", "dropout_mask<8>")


cdef int64_t start(Params* p, int64_t numel, int index, object generator, int count) except -1:
    """Prepare a draw of `count` numbers a call on the grid of fills; the number of its blocks."""
    cdef int64_t blocks = min((numel + BLOCK - 1) // BLOCK, largest_grid(index))
    p.numel = numel
    take(p, index, generator, ((numel - 1) // (BLOCK * blocks * count) + 1) * 4)
    return blocks


cdef int fresh_mask(TensorBase x, double keep, TensorBase mask) except -1:
    """mask: true with probability keep. Its numbers depend on x: on how many elements 16 bytes hold, its address and its size."""
    cdef Params p
    cdef int vector = 16 // ITEM_SIZE[x.dtype]
    cdef int64_t blocks = start(&p, x.numel, x.device_index, None, 4)
    cdef TensorBase to = mask
    if not non_overlapping_dense(x):
        vector = 1
    while vector > 1 and (<size_t>data_of(x) % (vector * ITEM_SIZE[x.dtype]) or x.numel % vector):
        vector //= 2
    if vector == 1 and not mask.contiguous:
        to = empty_tensor(mask.ndim, mask.sizes, mask.dtype, place_of(mask))
    p.a = keep
    launch(<str>MASKS[vector], mask.dtype, x.device_index, blocks, BLOCK, &p, to, None, None)
    return 0 if to is mask else copy_elements(mask, to)


cdef int draw_bernoulli(TensorBase probability, TensorBase out, object generator) except -1:
    """out: 1 with each element's probability; of one size, both dense in one order, probability double for a double result and else float."""
    cdef Params p
    p.numel = out.numel
    take(&p, out.device_index, generator, 12)
    return launch("bernoulli_of_double" if probability.dtype == F64 else "bernoulli_of_float", out.dtype, out.device_index, (out.numel + 2047) // 2048, 512, &p, probability, out, None)


cdef TensorBase order_of_keys(int64_t n, int bits, int place, object generator):
    """The order of n random keys of so many bits, as int32, and equal keys shuffled."""
    cdef rs_fill f
    cdef Params p
    cdef int dtype = I32 if bits <= 32 else I64
    cdef TensorBase keys = empty_tensor(1, &n, dtype, place), positions
    f.kind = RS_FILL_RANDOM_FROM_TO
    f.low = -(<int64_t>1 << 31) if dtype == I32 else <int64_t>(<uint64_t>1 << 63)
    f.range = <uint64_t>0xFFFFFFFF if dtype == I32 else <uint64_t>0xFFFFFFFFFFFFFFFF
    draw(keys, &f, generator)
    # only so many bits count; whole words are sorted as signed numbers
    if bits == 32 or bits == 64:
        (<object>keys).bitwise_xor_(<int64_t>-1 << (bits - 1))
    else:
        (<object>keys).bitwise_and_((<int64_t>1 << bits) - 1)
    keys, positions = sort_pairs(keys, None, bits)
    p.numel = n
    take(&p, keys.device_index, generator, (n + 3) // 4 * 4)
    launch("shuffle_equal", dtype, keys.device_index, blocks_for(n, BLOCK), BLOCK, &p, keys, positions, None)
    return positions


cdef int sample_rows(TensorBase sums, TensorBase weights, TensorBase out, object generator) except -1:
    """out (rows, draws) from rows of running sums of weights (rows, categories), all contiguous and not empty."""
    cdef Params p
    cdef int index = out.device_index
    cdef int64_t rows = min(out.sizes[0], <int64_t>65535)
    cdef char* pointers[3]
    cdef void* arguments[4]
    p.numel, p.low, p.range = out.sizes[0], out.sizes[1], sums.sizes[1]
    take(&p, index, generator, ((out.sizes[0] - 1) // rows + 1) * 4)
    pointers[0], pointers[1], pointers[2] = data_of(sums), data_of(weights), data_of(out)
    arguments[0], arguments[1], arguments[2], arguments[3] = &p, &pointers[0], &pointers[1], &pointers[2]
    return run3(kernel("sample_rows", sums.dtype, index), index, (p.low + 127) // 128, rows, 1, 128, 1, 1, 0, arguments)


cdef int random_slopes(TensorBase x, TensorBase slopes, TensorBase out, double low, double high, object generator) except -1:
    """All contiguous, of one type and not empty."""
    cdef Params p
    cdef int64_t blocks = start(&p, x.numel, x.device_index, generator, 4)
    p.a, p.b = low, high
    return launch("random_slopes", x.dtype, x.device_index, blocks, BLOCK, &p, x, slopes, out)


cdef int draw_poisson(TensorBase rate, TensorBase out, object generator) except -1:
    """Both contiguous, of one type and not empty."""
    cdef Params p
    p.numel = out.numel
    take(&p, out.device_index, generator, 20)
    return launch("poisson", rate.dtype, out.device_index, blocks_for(p.numel, BLOCK), BLOCK, &p, rate, out, None)


cdef int masked_scale(TensorBase x, TensorBase mask, double scale, TensorBase out) except -1:
    """x, mask and out of one dense geometry, not empty."""
    cdef unsigned long long numel = x.numel
    cdef char* source = data_of(x)
    cdef char* bits = data_of(mask)
    cdef char* target = data_of(out)
    cdef void* arguments[5]
    arguments[0] = &numel
    arguments[1] = &source
    arguments[2] = &bits
    arguments[3] = &scale
    arguments[4] = &target
    return run(kernel("masked_scale", x.dtype, x.device_index), x.device_index, blocks_for(numel, 4 * BLOCK), BLOCK, 0, arguments)


# ---- steps -------------------------------------------------------------------------------------------------------------

cdef int fill(TensorBase t, const rs_fill* f, rs_state* state, object generator) except -1:
    return draw(t, f, generator)


cdef int bernoulli_of(TensorBase p, TensorBase out, rs_state* state, object generator) except -1:
    """The probabilities are not looked at: that would wait for the device."""
    cdef TensorBase values, drawn
    if p.device_type != DEV_CUDA:
        raise RuntimeError("bernoulli: Expected all tensors to be on the same device, but the probabilities are not where the result is")
    values = cast_to(p, F64 if out.dtype == F64 else F32)
    if same_geometry(out, values) and non_overlapping_dense(out):
        return draw_bernoulli(values, out, generator)
    drawn = empty_tensor(out.ndim, out.sizes, out.dtype, place_of(out))
    draw_bernoulli(contiguous_of(values), drawn, generator)
    return copy_elements(out, drawn)


cdef int dropout_mask(TensorBase x, double keep, bint fresh, TensorBase mask, double* scale) except -1:
    """The numbers of a fresh result are drawn in another order than those of one in place, as PyTorch does."""
    cdef rs_fill f
    cdef TensorBase noise
    if fresh:
        return fresh_mask(x, keep, mask)
    scale[0] = noise_of(keep, x.dtype)
    f.kind = RS_FILL_BERNOULLI
    f.a = keep
    if x.dtype != F64:
        return draw(mask, &f, None)
    noise = empty_like_tensor(x, F64)
    draw(noise, &f, None)
    return copy_elements(mask, noise)


cdef int check_deviations(TensorBase std) except -1:
    if not (<object>std).detach().min().ge(0):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    return 0


cdef int permutation(TensorBase out, rs_state* state, object generator) except -1:
    """The order of keys of as many bits as make equal ones improbable (0.9 that there are none)."""
    import math
    cdef double n = out.numel
    bits = math.ceil(math.log2(n - (6.0 * n * n + 1) / (12 * math.log(0.9))))
    return copy_elements(out, order_of_keys(out.numel, min(64, bits), place_of(out), generator))


cdef int multinomial(TensorBase input, int64_t k, bint again, rs_state* state, object generator, TensorBase result) except -1:
    """The largest quotients by exponential numbers, or where uniform numbers fall among the running sums."""
    p = (<object>input).detach()
    total = p.sum(-1, keepdim=True)
    if not bool(((p >= 0) & (p < float("inf"))).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not bool((total > 0).all()):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if again and k > 1:
        weights = (p / total).reshape(-1, p.size(-1))
        return sample_rows(contiguous_of(<TensorBase>weights.cumsum(-1)), contiguous_of(<TensorBase>weights), <TensorBase>(<object>result).reshape(-1, k), generator)
    quotients = p / _ops.empty_like(p).exponential_(1, generator=generator)
    return copy_elements(result, <TensorBase>(quotients.argmax(-1, keepdim=True) if k == 1 else quotients.topk(k, -1)[1]))


cdef int poisson(TensorBase self, TensorBase r, rs_state* state, object generator) except -1:
    """A rate that is none makes its count NaN: looking at them would wait for the device."""
    return draw_poisson(contiguous_of(self), r, generator)


cdef int binomial(TensorBase count, TensorBase prob, TensorBase r, rs_state* state, object generator) except -1:
    cdef Params p
    p.numel = r.numel
    take(&p, r.device_index, generator, 20)
    return launch("binomial", r.dtype, r.device_index, blocks_for(p.numel, BLOCK), BLOCK, &p, count, prob, r)


cdef int standard_gamma(TensorBase shape, TensorBase r, rs_state* state, object generator) except -1:
    cdef Params p
    p.numel = r.numel
    take(&p, r.device_index, generator, 40)
    return launch("standard_gamma", r.dtype, r.device_index, blocks_for(p.numel, BLOCK), BLOCK, &p, shape, r, None)


cdef int rrelu(TensorBase x, TensorBase noise, double lower, double upper, bint training, rs_state* state, object generator, TensorBase r) except -1:
    cdef TensorBase slopes, result
    if not training:
        return copy_elements(r, <TensorBase>_ops.leaky_relu((<object>x).detach(), (lower + upper) / 2))
    slopes = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
    result = empty_tensor(x.ndim, x.sizes, x.dtype, place_of(x))
    random_slopes(contiguous_of(x), slopes, result, lower, upper, generator)
    copy_elements(noise, slopes)
    return copy_elements(r, result)


set_fill(DEV_CUDA, fill)
set_bernoulli_of(DEV_CUDA, bernoulli_of)
set_masked_scale(DEV_CUDA, masked_scale)
set_dropout_mask(DEV_CUDA, dropout_mask)
set_check_deviations(DEV_CUDA, check_deviations)
set_permutation(DEV_CUDA, permutation)
set_multinomial(DEV_CUDA, multinomial)
set_binomial(DEV_CUDA, binomial)
set_poisson(DEV_CUDA, poisson)
set_rrelu(DEV_CUDA, rrelu)
set_standard_gamma(DEV_CUDA, standard_gamma)
