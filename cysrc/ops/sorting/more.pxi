# Compositions: what follows from sorting, counting and differences. Their gradients follow from the parts.
import builtins as _builtins

cdef object range_of = _builtins.range          # `range` and `sorted` are names of parameters here

cdef object deliver_counts(str name, object counts, object out):
    """Into an `out` that may require gradients: PyTorch refuses that of differentiable operators alone."""
    cdef int recording = tls().grad_mode
    tls().grad_mode = 0
    try:
        return deliver_result(name, counts, out, True)
    finally:
        tls().grad_mode = recording


def argsort(input, dim=-1, descending=False, *, stable=False):
    """The positions that sort input along dim; equal elements keep their order."""
    as_tensor_arg(input, "argsort", "input")
    return _ops.sort(input, dim, descending, stable=stable)[1]


def msort(input, *, out=None):
    """input sorted along its first dimension."""
    as_tensor_arg(input, "msort", "input")
    if out is not None:
        check_out(out, "msort")
    return deliver_result("msort", _ops.sort(input, 0)[0], out, True)


cdef object median_of(object function, str name, object input, object dim, object keepdim, object out, bint skip_nan):
    cdef TensorBase self
    self = as_tensor_arg(input, name, "input")
    if dim is None:
        if out is not None:
            return deliver_result(name, op_median_all(self, skip_nan), out)
        return op_median_all(self, skip_nan)
    along = parse_int(dim, name, "dim")
    keep = parse_bool(keepdim, name, "keepdim")
    if out is not None:
        check_outs(out, name, 2)
        resolve(&OPS[OP_MEDIAN_DIM], self.keys | keys_of_list(list(out)))
    pair = (op_nanmedian_dim if skip_nan else op_median_dim)(self, along, keep, out, FRESH if out is None else OUT)
    if out is not None:
        bump_outs(out)
    return pair


def median(input, dim=None, keepdim=False, *, out=None):
    """The lower median of all elements, or (values, indices) along dim; NaN where there is one."""
    return median_of(median, "median", input, dim, keepdim, out, False)


def nanmedian(input, dim=None, keepdim=False, *, out=None):
    """The lower median of the elements that are not NaN, of all or as (values, indices) along dim."""
    return median_of(nanmedian, "nanmedian", input, dim, keepdim, out, True)


# ---- quantiles ------------------------------------------------------------------------------------------------------

cdef object quantile_of(str name, object input, object q, object dim, object keepdim, object interpolation, object out, bint skip_nan):
    cdef TensorBase x = as_tensor_arg(input, name, "input"), t
    if x.dtype != F32 and x.dtype != F64:
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if x.numel == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
    if isinstance(q, TensorBase):
        t = <TensorBase>q
        if t.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
        if t.dtype != x.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
        if t.device_type != DEV_META and t.numel and not _ops.all((q.detach() >= 0) & (q.detach() <= 1)).item():
            raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    else:
        if not 0 <= parse_double(q, name, "q") <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = _ops.full((), q, dtype=dtype_of(x.dtype), device=input.device)
    if out is not None and (<TensorBase?>out).dtype != x.dtype:
        raise RuntimeError(f"{name}() out tensor must be same dtype as the input tensor")
    d = wrap_dim(0 if dim is None else parse_int(dim, name, "dim"), 1 if dim is None else x.ndim)
    ordered = _ops.sort(input.reshape(-1) if dim is None else input, d)[0]
    if ordered.dim() == 0:
        ordered = ordered.unsqueeze(0)
    ordered = ordered.movedim(d, -1)
    n = ordered.size(-1)
    # ranks (*, number of q) are positions in the ordered lines, with a fraction
    fractions = q.reshape(-1)
    missing = ordered.detach().isnan()
    if skip_nan:
        ranks = fractions * (n - 1 - missing.sum(-1, True)).clamp(min=0).to(q.dtype)
    else:
        # the last element of a line with a NaN is one
        ranks = (fractions * (n - 1)).expand((*missing.sum(-1).shape, fractions.numel()))
        ranks = ranks.masked_fill(missing[..., -1:], n - 1)
    if interpolation == "lower":
        ranks = ranks.floor()
    elif interpolation == "higher":
        ranks = ranks.ceil()
    elif interpolation == "nearest":
        ranks = ranks.round()
    below = ranks.detach().floor().long()
    result = ordered.gather(-1, below)
    if interpolation == "linear" or interpolation == "midpoint":
        weights = _ops.full_like(ranks.detach(), 0.5) if interpolation == "midpoint" else ranks - below
        result = _ops.lerp(result, ordered.gather(-1, ranks.detach().ceil().long()), weights)
    # the q dimension first, or none for a number
    if keepdim:
        if dim is None:
            result = result.reshape((1,) * x.ndim + (-1,))
        elif x.ndim:
            result = result.unsqueeze(d)
    result = result.movedim(-1, 0) if q.dim() else result.squeeze(-1)
    return deliver_result(name, result, out)


@autocast_policy(cpu="float32")
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The q-th quantiles (a number or a vector in [0, 1], whose dimension leads) of all elements or along dim."""
    return quantile_of("quantile", input, q, dim, keepdim, interpolation, out, False)


@autocast_policy(cpu="float32")
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """quantile of the elements that are not NaN."""
    return quantile_of("nanquantile", input, q, dim, keepdim, interpolation, out, True)


# ---- histograms -----------------------------------------------------------------------------------------------------

cdef object double_vector(object t):
    return contiguous_of(cast_to(<TensorBase>t.detach().reshape(-1), F64))


cdef int check_same_device(str name, TensorBase x, TensorBase other, str argument) except -1:
    if x.device_type != other.device_type or x.device_index != other.device_index:
        raise RuntimeError(f"{name}(): Expected all tensors to be on the same device, but the input is on {(<object>x).device} and {argument} is on {(<object>other).device}")
    return 0


cdef int number_bins(TensorBase flat, object x, object edges, bint uniform, bint adjust) except -1:
    """flat = flat * bins + the bin of each element of x, -1 outside of all."""
    cdef BinArgs b
    cdef TensorBase v, e
    if flat.device_type == DEV_CUDA:
        return run_number_bins(DEV_CUDA, contiguous_of(<TensorBase>x.detach()), <TensorBase>double_vector(edges), flat, uniform, adjust) if flat.numel else 0
    v, e = held(double_vector(x)), held(double_vector(edges))
    if v.numel != flat.numel:
        raise RuntimeError(f"histogram: {v.numel} elements where there were {flat.numel} before")
    b.x = <const double*>data_of(v)
    b.edges = <const double*>data_of(e)
    b.flat = <int64_t*>data_of(flat)
    b.n = v.numel
    b.bins = e.numel - 1
    b.uniform = uniform
    b.adjust = adjust
    with nogil:
        sort_bins(&b)
    return 0


cdef object tally(TensorBase flat, object weight, int64_t bins):
    """How often each number below `bins` occurs (int64), or with what total weight (float64)."""
    cdef TensorBase counts, w = None
    cdef const double* p = NULL
    cdef const int64_t* at = <const int64_t*>data_of(flat)
    cdef char* total
    cdef int64_t n = flat.numel
    if flat.device_type == DEV_CUDA:
        counts = _ops.zeros(bins + (weight is not None), dtype=dtype_of(I64 if weight is None else F64), device=(<object>flat).device)
        if weight is None:
            if n:
                run_count_bins(DEV_CUDA, flat, counts)
            return counts
        # a bin more for what lies in none
        return (<object>counts).index_add_(0, _ops.where((<object>flat).lt(0), bins, flat), double_vector(weight))[:bins]
    counts = empty_tensor(1, &bins, I64 if weight is None else F64, DEV_CPU)
    total = data_of(counts)
    memset(total, 0, bins * 8)
    if weight is not None:
        w = held(double_vector(weight))
        if w.numel != n:
            raise RuntimeError(f"{w.numel} weights of {n} elements")
        p = <const double*>data_of(w)
    with nogil:
        sort_count(at, p, n, bins, total)
    return counts


def bincount(input, weights=None, minlength=0):
    """How often (or with which total weight) each value of a vector of non-negative integers occurs."""
    cdef TensorBase x = as_tensor_arg(input, "bincount", "input"), flat
    cdef int64_t n = parse_int(minlength, "bincount", "minlength"), low = 0, high = -1
    if n < 0:
        raise RuntimeError("minlength should be >= 0")
    if x.ndim != 1 or category[x.dtype] > CAT_INT or x.dtype == BOOL:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if x.device_type == DEV_META:
        raise NotImplementedError("bincount(): the result's shape depends on the data, which meta tensors do not have")
    if weights is not None and ((<TensorBase?>weights).ndim != 1 or (<TensorBase>weights).numel != x.numel):
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is not None:
        check_same_device("bincount", x, <TensorBase>weights, "weights")
    if x.device_type == DEV_CUDA:
        if x.numel:
            low, high = input.min().item(), input.max().item()
        if low < 0:
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        flat = contiguous_of(cast_to(x, I64))
        if weights is None or (<TensorBase>weights).dtype != F32:
            counts = tally(flat, weights, max(n, high + 1))
        else:
            counts = _ops.zeros(max(n, high + 1), dtype=weights.dtype, device=input.device).index_add_(0, flat, weights.detach())
        return without_derivative(counts, "aten::bincount", (weights,))
    # where another thread raises a value between the two passes, the second leaves it out
    flat = held(contiguous_of(cast_to(x, I64)))
    cdef const int64_t* p = <const int64_t*>data_of(flat)
    if x.numel:
        with nogil:
            sort_range(p, flat.numel, &low, &high)
        if low < 0:
            raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
        if high >= (<int64_t>1 << 58):
            raise RuntimeError(f"bincount(): a value of {high} would need as many bins")
    n = max(n, high + 1)
    counts = tally(flat, weights, n)
    return without_derivative(counts.float() if weights is not None and (<TensorBase>weights).dtype == F32 else counts, "aten::bincount", (weights,))


cdef object outer_edges(TensorBase x, object low, object high, str name):
    """The given range, or that of the data; widened when it is a point."""
    if low == high and x.numel:
        low, high = x.amin().item(), x.amax().item()
    low, high = float(low), float(high)
    if not (-1e400 < low < 1e400 and -1e400 < high < 1e400):
        raise RuntimeError(f"torch.{name}: range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"torch.{name}: max must be larger than min")
    return (low - 1, high + 1) if low == high else (low, high)


def histc(input, bins=100, min=0, max=0, *, out=None):
    """How many elements fall into each of `bins` equal bins between min and max (those of the data when equal)."""
    cdef TensorBase x = as_tensor_arg(input, "histc", "input"), flat
    n = parse_int(bins, "histc", "bins")
    if category[x.dtype] != CAT_FLOAT and not (x.device_type == DEV_CUDA and category[x.dtype] == CAT_INT and x.dtype != BOOL):
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{dtype_text(x.dtype)}'")
    if n <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {n} for dimension 0")
    if x.device_type == DEV_META:
        return _ops.empty(n, dtype=dtype_of(x.dtype), device="meta")
    low, high = outer_edges(x, parse_double(min, "histc", "min"), parse_double(max, "histc", "max"), "histc")
    flat = _ops.zeros(x.numel, dtype=dtype_of(I64), device=input.device)
    number_bins(flat, input, _ops.linspace(low, high, n + 1, dtype=dtype_of(F64), device=input.device), True, False)
    return deliver_counts("histc", cast_to(tally(flat, None, n), x.dtype), out)


cdef object histogram_edges(TensorBase x, object bins, object range, str name, int dimension):
    """(edges in x's type, whether they are equally spaced)."""
    if isinstance(bins, TensorBase):
        if (<TensorBase>bins).ndim != 1 or (<TensorBase>bins).numel < 1:
            raise RuntimeError(f"torch.{name}(): bins tensor should have one dimension, but got {(<TensorBase>bins).ndim} dimensions in the bins tensor for dimension {dimension}")
        check_same_device(name, x, <TensorBase>bins, "bins")
        if (<TensorBase>bins).dtype != x.dtype:
            raise RuntimeError(f"torch.{name}(): input tensor and bins tensors should have the same dtype, but got input with dtype {dtype_text(x.dtype)} and bins for dimension {dimension} with dtype {dtype_text(bins.dtype)}")
        return bins, False
    n = parse_int(bins, name, "bins")
    if n <= 0:
        raise RuntimeError(f"torch.{name}(): bins must be > 0, but got {n} for dimension {dimension}")
    if range is None:
        low, high = (x.amin().item(), x.amax().item()) if x.numel else (0.0, 1.0)
    else:
        low, high = range
        if low > high:
            raise RuntimeError(f"torch.{name}: dimension {dimension} of leftmost edge {low} must be smaller than the rightmost edge {high}")
    if not (-1e400 < low < 1e400 and -1e400 < high < 1e400):
        raise RuntimeError(f"torch.{name}: dimension {dimension}'s range [{low}, {high}] is not finite")
    if low == high:
        low, high = low - 0.5, high + 0.5
    return _ops.linspace(low, high, n + 1, dtype=dtype_of(x.dtype), device=(<object>x).device), True


cdef object histogram_of(object samples, list bins, object range, object weight, object density, str name):
    """(counts, [edges of each dimension]) of samples (n, dimensions)."""
    cdef TensorBase x = samples, flat
    cdef int k
    if x.dtype != F32 and x.dtype != F64:
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{dtype_text(x.dtype)}'")
    if x.device_type == DEV_META:
        raise NotImplementedError(f"{name}(): the edges depend on the data, which meta tensors do not have")
    if weight is not None:
        check_same_device(name, x, <TensorBase?>weight, "weight")
        if (<TensorBase?>weight).dtype != x.dtype:
            raise RuntimeError(f"torch.{name}(): if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got input({dtype_text(x.dtype)}), and weight({dtype_text(weight.dtype)})")
        if (<TensorBase>weight).numel != x.sizes[0]:
            raise RuntimeError(f"torch.{name}(): if weight tensor is provided it should have the same shape as the input tensor excluding its innermost dimension, but got input with shape {shape_text(x)} and weight with shape {shape_text(weight)}")
    flat = _ops.zeros(x.sizes[0], dtype=dtype_of(I64), device=samples.device)
    shape, edges = [], []
    for k in range_of(len(bins)):
        column = samples[:, k]
        e, uniform = histogram_edges(column, bins[k], None if range is None else (range[2 * k], range[2 * k + 1]), name, k)
        number_bins(flat, column, e, uniform, True)
        shape.append((<TensorBase>e).numel - 1)
        edges.append(e)
    total = 1
    for n in shape:
        total *= n
    counts = cast_to(tally(flat, weight, total), x.dtype).reshape(shape)
    if density:
        counts = counts / counts.sum()
        for k in range_of(len(bins)):
            counts = counts / edges[k].diff().reshape([-1 if i == k else 1 for i in range_of(len(bins))])
    return counts, edges


def histogram(input, bins, *, range=None, weight=None, density=False, out=None):
    """(hist, bin_edges): counts or weights of elements in `bins` equal bins over range, or between the edges in the tensor bins."""
    if range is not None and not isinstance(range, (tuple, list)):
        raise TypeError(f"histogram(): argument 'range' must be tuple of floats, not {type(range).__name__}")
    as_tensor_arg(input, "histogram", "input")
    counts, edges = histogram_of(input.detach().reshape(-1, 1), [bins], range, None if weight is None else (<object>as_tensor_arg(weight, "histogram", "weight")).detach().reshape(-1), density, "histogram")
    if isinstance(bins, TensorBase):
        edges[0] = edges[0].clone()
    if out is not None:
        check_outs(out, "histogram", 2)
        deliver_counts("histogram", counts, out[0])
        deliver_counts("histogram", edges[0], out[1])
        return out
    without_derivative((counts, edges[0]), "aten::histogram", (input, weight, bins if isinstance(bins, TensorBase) else None))
    return result_type("histogram", ("hist", "bin_edges"))((counts, edges[0]))


def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """(hist, bin_edges) of points input (*, D): counts of shape bins, and a tuple of D vectors of edges."""
    cdef TensorBase x = as_tensor_arg(input, "histogramdd", "input")
    if x.ndim < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, but got {x.ndim}")
    dimensions = x.sizes[x.ndim - 1]
    wanted = list(bins) if isinstance(bins, (list, tuple)) else [bins] * dimensions
    if len(wanted) != dimensions:
        raise RuntimeError(f"torch.histogramdd: expected {dimensions} bin counts or sequences of bin edges, but got {len(wanted)}")
    if range is not None and len(range) != 2 * dimensions:
        raise RuntimeError(f"torch.histogramdd: for a {dimensions}-dimensional histogram range should have {2 * dimensions} elements, but got {len(range)}")
    counts, edges = histogram_of(input.detach().reshape(-1, dimensions), wanted, range, None if weight is None else (<object>as_tensor_arg(weight, "histogramdd", "weight")).detach().reshape(-1), density, "histogramdd")
    without_derivative(counts, "aten::_histogramdd_from_bin_cts", (input, weight))
    return result_type("histogramdd", ("hist", "bin_edges"))((counts, tuple(edges)))


# ---- differences and integrals --------------------------------------------------------------------------------------

def diff(input, n=1, dim=-1, prepend=None, append=None, *, out=None):
    """The n-th difference along dim, of input with prepend before and append after it."""
    cdef TensorBase x = as_tensor_arg(input, "diff", "input")
    cdef int64_t order = parse_int(n, "diff", "n"), size
    cdef int d
    if x.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    d = wrap_dim(parse_int(dim, "diff", "dim"), x.ndim)
    for part in (prepend, append):
        if part is not None and (<TensorBase?>part).ndim != x.ndim:
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    if order < 0:
        raise RuntimeError(f"order must be non-negative but got {order}")
    r = input
    if order == 0:
        if out is not None:
            check_out(out, "diff")
        return deliver_result("diff", input.clone(), out, True)
    if prepend is not None or append is not None:
        r = _ops.cat([t for t in (prepend, input, append) if t is not None], d)
    size = r.size(d)
    order = min(order, max(size, 1))           # nothing is left to subtract afterwards
    while order > 0:
        order -= 1
        size -= 1
        after, before = r.narrow(d, 1 if size >= 0 else 0, size if size > 0 else 0), r.narrow(d, 0, size if size > 0 else 0)
        last = out if order == 0 else None
        r = _ops.logical_xor(after, before, out=last) if x.dtype == BOOL else _ops.sub(after, before, out=last)
    return r


cdef object gradient_along(object x, int d, object spacing, int64_t edge_order):
    """Central differences inside, one-sided ones at the ends; `spacing` a number or a vector of coordinates."""
    n = x.size(d)
    before, here, after = x.narrow(d, 0, n - 2), x.narrow(d, 1, n - 2), x.narrow(d, 2, n - 2)
    first = [x.narrow(d, i, 1) for i in range_of(edge_order + 1)]
    last = [x.narrow(d, n - 1 - i, 1) for i in range_of(edge_order + 1)]
    if not isinstance(spacing, TensorBase):
        inside = (after - before) / (2 * spacing)
        if edge_order == 1:
            low, high = (first[1] - first[0]) / spacing, (last[0] - last[1]) / spacing
        else:
            low = (4 * first[1] - 3 * first[0] - first[2]) / (2 * spacing)
            high = (3 * last[0] - 4 * last[1] + last[2]) / (2 * spacing)
        return _ops.cat([low, inside, high], d)
    shape = [1] * x.dim()
    shape[d] = n - 1
    h = spacing.diff().reshape(shape)
    a, b = h.narrow(d, 0, n - 2), h.narrow(d, 1, n - 2)
    inside = before * (-b / (a * (a + b))) + here * ((b - a) / (a * b)) + after * (a / (b * (a + b)))
    a, b = h.narrow(d, 0, 1), h.narrow(d, n - 2, 1)
    if edge_order == 1:
        return _ops.cat([(first[1] - first[0]) / a, inside, (last[0] - last[1]) / b], d)
    c, e = h.narrow(d, 1, 1), h.narrow(d, n - 3, 1)
    low = first[0] * (-(2 * a + c) / (a * (a + c))) + first[1] * ((a + c) / (a * c)) - first[2] * (a / (c * (a + c)))
    high = last[0] * ((2 * b + e) / (b * (b + e))) - last[1] * ((b + e) / (b * e)) + last[2] * (b / (e * (b + e)))
    return _ops.cat([low, inside, high], d)


def gradient(input, *, spacing=None, dim=None, edge_order=1):
    """The derivative along each of the dimensions dim (all), by second-order differences; spacing: a number, a list of
    numbers or of vectors of coordinates."""
    cdef TensorBase x = as_tensor_arg(input, "gradient", "input")
    order = parse_int(edge_order, "gradient", "edge_order")
    if order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if dim is None:
        dims = list(range_of(x.ndim))
    else:
        dims = [wrap_dim(d, x.ndim) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"dim {dims} names a dimension more than once (gradient)")
    if isinstance(spacing, (list, tuple)):
        spaces = list(spacing)
        if len(spaces) != len(dims):
            raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = {len(dims)}', since dim argument is {'None' if dim is None else 'given'}, but got a list of length {len(spaces)}")
    elif isinstance(spacing, TensorBase):
        raise TypeError("gradient(): argument 'spacing' must be a number or a list, not Tensor")
    else:
        spaces = [1 if spacing is None else spacing] * len(dims)
    result = []
    for d, space in zip(dims, spaces):
        if x.sizes[d] < order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
        if isinstance(space, TensorBase) and (<TensorBase>space).ndim != 1:
            raise RuntimeError(f"torch.gradient expected each element of spacing to have one dimension, but got {(<TensorBase>space).ndim}")
        if isinstance(space, TensorBase) and (<TensorBase>space).numel != x.sizes[d]:
            raise RuntimeError(f"torch.gradient expected spacing to have {x.sizes[d]} coordinates for dimension {d}, but got {(<TensorBase>space).numel}")
        result.append(gradient_along(input, d, space, order))
    return tuple(result)
