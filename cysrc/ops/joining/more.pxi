# Compositions: stacking, repeating, reordering, diagonals and grids. Their gradients follow from their parts.

# ---- stacking -------------------------------------------------------------------------------------------------------

def atleast_1d(*tensors):
    """The tensor (or a tuple of them) with 0-dimensional ones reshaped to (1)."""
    return each(tensors, 1)


def atleast_2d(*tensors):
    """The tensor (or a tuple of them) as views of at least two dimensions."""
    return each(tensors, 2)


def atleast_3d(*tensors):
    """The tensor (or a tuple of them) as views of at least three dimensions."""
    return each(tensors, 3)


cdef object each(tuple tensors, int n):
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return tuple([at_least(t, n) for t in tensors[0]])
    if len(tensors) == 1:
        return at_least(tensors[0], n)
    return tuple([at_least(t, n) for t in tensors])


cdef object at_least(object t, int n):
    cdef int d = as_tensor_arg(t, f"atleast_{n}d", "tensor").ndim
    if d == 0:
        return t.reshape((1,) * n)
    if d == 1 and n >= 2:
        t = t.unsqueeze(0)
        d = 2
    if d == 2 and n == 3:
        t = t.unsqueeze(-1)
    return t


def hstack(tensors, *, out=None):
    """The tensors side by side: along dimension 1, vectors along 0."""
    given = [at_least(t, 1) for t in tensor_list(tensors, "hstack", "tensors")]
    if not given:
        raise RuntimeError("hstack expects a non-empty TensorList")
    return cat(given, 0 if (<TensorBase>given[0]).ndim == 1 else 1, out=out)


def vstack(tensors, *, out=None):
    """The tensors below each other: along dimension 0, vectors as rows."""
    given = [at_least(t, 2) for t in tensor_list(tensors, "vstack", "tensors")]
    if not given:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return cat(given, 0, out=out)


def dstack(tensors, *, out=None):
    """The tensors along the third dimension."""
    given = [at_least(t, 3) for t in tensor_list(tensors, "dstack", "tensors")]
    if not given:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return cat(given, 2, out=out)


def column_stack(tensors, *, out=None):
    """The tensors side by side, vectors as columns."""
    given = tensor_list(tensors, "column_stack", "tensors")
    if not given:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return hstack([t.reshape((<TensorBase>t).numel, 1) if (<TensorBase>t).ndim <= 1 else t for t in given], out=out)


from tensorrt_lite._C.core.device import contiguous_format as contiguous_memory


# ---- repeating ------------------------------------------------------------------------------------------------------

def repeat(self, *repeats):
    """The tensor repeated repeats[i] times along dimension i; more repeats than dimensions add leading ones."""
    cdef TensorBase x = as_tensor_arg(self, "repeat", "self")
    cdef Dims d
    cdef int k, extra
    cdef list sizes = [], shape = [], final = []
    parse_size(repeats, &d, "repeat", "repeats")
    if d.n < x.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    extra = d.n - x.ndim
    for k in range(d.n):
        n = x.sizes[k - extra] if k >= extra else 1
        final.append(n * d.v[k])
        if d.v[k] < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {n * d.v[k]}: {[(x.sizes[j - extra] if j >= extra else 1) * d.v[j] for j in range(d.n)]}")
        if d.v[k] == 1 or n == 1:
            # one dimension serves for both: fewer dimensions, and room for 64 of them
            sizes.append(n)
            shape.append(final[k])
        else:
            sizes += [1, n]
            shape += [d.v[k], n]
    if 0 in final:
        return self.reshape(sizes).expand(shape).reshape(final) if len(shape) <= MAX_DIMS else self.new_empty(final)
    r = self.reshape(sizes).expand(shape)
    return _ops.clone(r).reshape(final) if shape == final else r.reshape(final) if not (<TensorBase>r).contiguous else _ops.clone(r).reshape(final)


def tile(input, *dims):
    """repeat with missing leading entries of dims taken for one."""
    cdef Dims d
    cdef int n = as_tensor_arg(input, "tile", "input").ndim
    parse_size(dims, &d, "tile", "dims")
    return repeat(input, [1] * (n - d.n) + list(dims_tuple(&d)))


def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element (or slice along dim) repeated in place; repeats: an int or one count per slice."""
    cdef TensorBase x = as_tensor_arg(input, "repeat_interleave", "input"), counts
    cdef int d
    cdef int64_t n
    if repeats is None:
        counts = x
        if x.ndim != 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        return interleave_index(counts, output_size)
    if dim is None:
        input = input.reshape(-1)
        dim = 0
    x = input
    d = wrap_dim(parse_int(dim, "repeat_interleave", "dim"), x.ndim)
    if x.ndim == 0:
        input = input.reshape(1)
        x = input
    n = x.sizes[d]
    if not isinstance(repeats, TensorBase):
        k = parse_int(repeats, "repeat_interleave", "repeats")
        if k < 0:
            raise RuntimeError("repeats can not be negative")
        if output_size is not None and output_size != n * k:
            raise RuntimeError(f"repeat_interleave: Invalid output_size, expected {n * k} but got {output_size}")
        shape = list(shape_of(x))
        wide = input.unsqueeze(d + 1).expand(shape[:d + 1] + [k] + shape[d + 1:])
        shape[d] = n * k
        return _ops.clone(wide, memory_format=contiguous_memory).reshape(shape)
    counts = <TensorBase>repeats
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    if counts.dtype != I64 and counts.dtype != I32:
        raise RuntimeError("repeats has to be Long or Int tensor")
    if counts.numel == 1:
        counts = (<object>counts).reshape(1).expand(n)
    elif counts.numel != n:
        raise RuntimeError(f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.numel} and input.size({d}) = {n}")
    return input.index_select(d, interleave_index(counts, output_size))


cdef object interleave_index(TensorBase counts, object output_size):
    """i repeated counts[i] times, int64."""
    cdef TensorBase c, r
    cdef int64_t total = 0, i, j, k = 0
    cdef const int64_t* p
    cdef int64_t* q
    if counts.device_type == DEV_META:
        raise NotImplementedError("repeat_interleave: the result's shape depends on the data, which meta tensors do not have")
    if counts.dtype != I64 and counts.dtype != I32:
        raise RuntimeError("repeats has to be Long or Int tensor")
    # the length of the result depends on them: those of a device are read here
    c = contiguous_of(cast_to(counts if counts.device_type == DEV_CPU else <TensorBase>(<object>counts).cpu(), I64))
    p = <const int64_t*>data_of(c)
    for i in range(c.numel):
        if p[i] < 0:
            raise RuntimeError("repeats can not be negative")
        if p[i] > (<int64_t>1 << 50) or total > (<int64_t>1 << 55):
            raise RuntimeError("repeat_interleave: the result is too large")
        total += p[i]
    if output_size is not None and output_size != total:
        raise RuntimeError(f"allocated size does not match required size: output_size is {output_size}, repeats sum to {total}")
    r = empty_tensor(1, &total, I64, DEV_CPU)
    q = <int64_t*>data_of(r)
    for i in range(c.numel):
        for j in range(p[i]):
            q[k] = i
            k += 1
    if counts.device_type != DEV_CPU:
        r = <TensorBase>(<object>r).to((<object>counts).device)
    return r if counts.dtype == I64 else (<object>r).to(dtype_of(I32))


# ---- reordering -----------------------------------------------------------------------------------------------------

def fliplr(input):
    """flip along dimension 1."""
    if as_tensor_arg(input, "fliplr", "input").ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


def flipud(input):
    """flip along dimension 0."""
    if as_tensor_arg(input, "flipud", "input").ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


def rot90(input, k=1, dims=(0, 1)):
    """The tensor turned k times by 90 degrees in the plane of two dims, from the first towards the second."""
    cdef TensorBase x = as_tensor_arg(input, "rot90", "input")
    cdef Dims d
    parse_dims(dims, &d, "rot90", "dims")
    if d.n != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {d.n}")
    if x.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {x.ndim}")
    if d.v[0] == d.v[1] or abs(d.v[0] - d.v[1]) == x.ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {d.v[0]} and dim1 = {d.v[1]}")
    a = wrap_dim(d.v[0], x.ndim)
    b = wrap_dim(d.v[1], x.ndim)
    k = parse_int(k, "rot90", "k") % 4
    if k < 0:
        k += 4
    if k == 1:
        return flip(input, b).transpose(a, b)
    if k == 2:
        return flip(input, a, b)
    if k == 3:
        return flip(input, a).transpose(a, b)
    return input.clone()


def swapaxes(input, axis0, axis1):
    """transpose under its NumPy name."""
    as_tensor_arg(input, "swapaxes", "input")
    return input.transpose(axis0, axis1)


def swapaxes_(self, axis0, axis1):
    as_tensor_arg(self, "swapaxes_", "self")
    return self.transpose_(axis0, axis1)


def moveaxis(input, source, destination):
    """movedim under its NumPy name."""
    as_tensor_arg(input, "moveaxis", "input")
    return input.movedim(source, destination)


def adjoint(input):
    """The conjugate transpose of the last two dimensions."""
    as_tensor_arg(input, "adjoint", "input")
    r = input.transpose(-2, -1)
    return r.conj() if r.is_complex() else r


def ravel(input):
    """All elements in one dimension: a view where strides allow it."""
    as_tensor_arg(input, "ravel", "input")
    return input.contiguous().view(-1)


def narrow_copy(input, dim, start, length):
    """A copy of narrow."""
    cdef TensorBase x = as_tensor_arg(input, "narrow_copy", "input")
    if x.ndim == 0 or parse_int(dim, "narrow_copy", "dim") >= x.ndim:
        raise RuntimeError(f"narrow_copy: dimension {dim} of a tensor of {x.ndim} dimensions")
    return input.narrow(dim, start, length).clone()


def unsafe_chunk(input, chunks, dim=0):
    """chunk, whose results may be written in place."""
    as_tensor_arg(input, "unsafe_chunk", "input")
    return tuple([t.clone() for t in input.chunk(chunks, dim)])


def unsafe_split(input, split_size, dim=0):
    """split, whose results may be written in place."""
    as_tensor_arg(input, "unsafe_split", "input")
    return tuple([t.clone() for t in input.split(split_size, dim)])


cdef object split_along(object input, object sections, int dim, str name, int least):
    cdef TensorBase x = as_tensor_arg(input, name, "input")
    if x.ndim < least:
        raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but got a tensor with {x.ndim} dimensions!")
    if not isinstance(sections, (tuple, list)):
        if sections <= 0 or x.sizes[dim] % sections:
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {x.sizes[dim]} is not divisible by the split_size {sections}!")
    return input.tensor_split(sections, dim)


def hsplit(input, indices_or_sections):
    """tensor_split along dimension 1 (0 for vectors)."""
    return split_along(input, indices_or_sections, 0 if as_tensor_arg(input, "hsplit", "input").ndim == 1 else 1, "hsplit", 1)


def vsplit(input, indices_or_sections):
    """tensor_split along dimension 0."""
    return split_along(input, indices_or_sections, 0, "vsplit", 2)


def dsplit(input, indices_or_sections):
    """tensor_split along dimension 2."""
    return split_along(input, indices_or_sections, 2, "dsplit", 3)


# ---- diagonals and triangles ----------------------------------------------------------------------------------------

def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices in dimensions dim1 and dim2 that hold input's last dimension on their diagonal, zero elsewhere."""
    cdef TensorBase x = as_tensor_arg(input, "diag_embed", "input")
    cdef int a, b
    cdef list shape = list(shape_of(x))
    if x.ndim == 0:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2) (diag_embed of a 0-dim tensor)")
    a = wrap_dim(parse_int(dim1, "diag_embed", "dim1"), x.ndim + 1)
    b = wrap_dim(parse_int(dim2, "diag_embed", "dim2"), x.ndim + 1)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = shape.pop() + abs(offset)
    for d in sorted((a, b)):
        shape.insert(d, n)
    r = input.new_zeros(shape)
    r.diagonal(offset, a, b).copy_(input)
    return r


def diag(input, diagonal=0, *, out=None):
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    cdef TensorBase x = as_tensor_arg(input, "diag", "input")
    if x.ndim == 1:
        r = diag_embed(input, diagonal)
    elif x.ndim == 2:
        r = input.diagonal(diagonal).clone()
    else:
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D")
    return deliver_result("diag", r, out)


def diagflat(input, offset=0):
    """The matrix with the flattened input on its diagonal."""
    as_tensor_arg(input, "diagflat", "input")
    return diag_embed(input.contiguous().reshape(-1), offset)


def trace(input):
    """The sum of a matrix's diagonal."""
    if as_tensor_arg(input, "trace", "input").ndim != 2:
        raise RuntimeError("trace: expected a matrix")
    return input.diagonal().sum()


def block_diag(*tensors):
    """A matrix with the given matrices (vectors are rows) along its diagonal."""
    cdef list given = [at_least(t, 2) for t in tensors]
    cdef list rows = []
    cdef int64_t before = 0, total = 0
    if not given:
        return _ops.empty(1, 0)
    for i, t in enumerate(given):
        if (<TensorBase>t).ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {(<TensorBase>t).ndim} dimensions")
        total += t.shape[1]
    for t in given:
        rows.append(_ops.constant_pad_nd(t, [before, total - before - t.shape[1]], 0))
        before += t.shape[1]
    return cat(rows, 0)


cdef object triangle_indices(object row, object col, object offset, object dtype, object device, bint upper):
    cdef int64_t rows = parse_int(row, "tril_indices", "row"), cols = parse_int(col, "tril_indices", "col"), shift = parse_int(offset, "tril_indices", "offset")
    if rows < 0 or cols < 0:
        raise RuntimeError(f"{'row must be non-negative, got ' + str(rows) if rows < 0 else 'col must be non-negative, got ' + str(cols)}")
    mask = _ops.ones((rows, cols), dtype=dtype_of(BOOL))
    mask = mask.triu(shift) if upper else mask.tril(shift)
    r = stack(_ops.nonzero(mask, as_tuple=True), 0)
    return r.to(dtype=dtype if dtype is not None else dtype_of(I64), device=device)


def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None, requires_grad=False, pin_memory=False):
    """The coordinates (2, n) of a matrix's lower triangle."""
    return triangle_indices(row, col, offset, dtype, device, False)


def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None, requires_grad=False, pin_memory=False):
    """The coordinates (2, n) of a matrix's upper triangle."""
    return triangle_indices(row, col, offset, dtype, device, True)


# ---- grids ----------------------------------------------------------------------------------------------------------

def meshgrid(*tensors, indexing=None):
    """Views of vectors expanded to the grid they span; indexing "ij" (default) or "xy"."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    given = list(tensors)
    if not given:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for t in given:
        if as_tensor_arg(t, "meshgrid", "tensors").ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {(<TensorBase>t).ndim}D")
        if (<TensorBase>t).dtype != (<TensorBase>given[0]).dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    if indexing is not None and indexing != "ij" and indexing != "xy":
        raise RuntimeError(f"torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {indexing}")
    swap = indexing == "xy" and len(given) >= 2
    if swap:
        given[0], given[1] = given[1], given[0]
    shape = [(<TensorBase>t).numel for t in given]
    grids = []
    for k, t in enumerate(given):
        view = [1] * len(given)
        view[k] = shape[k]
        grids.append(t.reshape(view).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors):
    """All combinations of one element per vector, as rows; a single vector stays as it is."""
    for t in tensors:
        if as_tensor_arg(t, "cartesian_prod", "tensors").ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {shape_text(<TensorBase>t)}")
    if len(tensors) == 1:
        return tensors[0]
    return stack([g.reshape(-1) for g in meshgrid(*tensors)], 1)


def combinations(input, r=2, with_replacement=False):
    """All choices of r elements of a vector, in order, as rows."""
    cdef TensorBase x = as_tensor_arg(input, "combinations", "input")
    if x.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {shape_text(x)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty((0,))
    import itertools
    import math
    n = x.numel + (r - 1 if with_replacement and x.numel else 0)
    if n >= r and math.lgamma(n + 1) - math.lgamma(r + 1) - math.lgamma(n - r + 1) > 22:
        raise MemoryError(f"combinations: too many choices of {r} of {x.numel} elements")
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = list(choose(range(x.numel), r))
    if not rows:
        return input.new_empty((0, r))
    return input[_ops.tensor(rows, dtype=dtype_of(I64))]


# ---- channels -------------------------------------------------------------------------------------------

def pixel_shuffle(input, upscale_factor):
    """(*, C * r * r, H, W) to (*, C, H * r, W * r)."""
    as_tensor_arg(input, "pixel_shuffle", "input")
    from tensorrt_lite.nn._functional.vision import pixel_shuffle as composed
    return composed(input, parse_int(upscale_factor, "pixel_shuffle", "upscale_factor"))


def pixel_unshuffle(input, downscale_factor):
    """(*, C, H * r, W * r) to (*, C * r * r, H, W)."""
    as_tensor_arg(input, "pixel_unshuffle", "input")
    from tensorrt_lite.nn._functional.vision import pixel_unshuffle as composed
    return composed(input, parse_int(downscale_factor, "pixel_unshuffle", "downscale_factor"))


def channel_shuffle(input, groups):
    """(N, C, *) with the channels of the groups interleaved."""
    cdef TensorBase x = as_tensor_arg(input, "channel_shuffle", "input")
    if x.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {shape_text(x)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if x.sizes[1] % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {x.sizes[1]} channels and {groups} groups.")
    shape = tuple(shape_of(x))
    return input.reshape(shape[0], groups, x.sizes[1] // groups, -1).transpose(1, 2).reshape(shape) if x.numel else input.clone()
