# Kernels of the view family: each computes sizes, strides and offset of a view, checks them, and never touches data.
from tensorrt_lite._C.core.device import contiguous_format
from tensorrt_lite._C.core.hints import hinted

cdef extern from "Python.h":
    bint PyLong_CheckExact(object)

cdef extern from "physical_memory.h" nogil:
    int64_t trt_physical()


cdef int check_number_of_views(str operator, TensorBase self, int64_t n) except -1:
    """MemoryError for more views than the machine's memory holds as objects: empty and expanded tensors have any number of pieces."""
    if n > trt_physical() // <int64_t>TensorBase.__basicsize__:
        raise MemoryError(f"{operator}: {n} views of a tensor of shape {shape_text(self)} do not fit into memory")
    return 0


cdef int infer_size(const Dims* size, int64_t numel, Dims* out) except -1:
    """Replace one -1 so that the product is `numel`; RuntimeError with PyTorch's text otherwise."""
    cdef int i, inferred = -1
    cdef int64_t product = 1
    out.n = size.n
    for i in range(size.n):
        out.v[i] = size.v[i]
        if size.v[i] == -1:
            if inferred >= 0:
                raise RuntimeError("only one dimension can be inferred")
            inferred = i
        elif size.v[i] < 0:
            raise RuntimeError(f"invalid shape dimension {size.v[i]}")
        elif size.v[i] != 0 and product > (<int64_t>1 << 62) // size.v[i]:
            raise RuntimeError(f"shape '{sizes_text(size.n, size.v)}' is invalid for input of size {numel}")
        else:
            product *= size.v[i]
    if inferred >= 0:
        if product == 0:
            raise RuntimeError(f"cannot reshape tensor of {numel} elements into shape {sizes_text(size.n, size.v)} because the unspecified dimension size -1 can be any value and is ambiguous")
        if numel % product:
            raise RuntimeError(f"shape '{sizes_text(size.n, size.v)}' is invalid for input of size {numel}")
        out.v[inferred] = numel // product
    elif product != numel:
        raise RuntimeError(f"shape '{sizes_text(size.n, size.v)}' is invalid for input of size {numel}")
    return 0


cdef bint view_strides(TensorBase t, const Dims* size, int64_t* strides) noexcept:
    """Strides that give `t` another shape without a copy; False when there are none."""
    cdef int view_d = size.n - 1, tensor_d
    cdef int64_t base, chunk = 1, view_n = 1
    if t.contiguous:
        contiguous_strides(size.n, size.v, strides)
        return True
    if t.numel == 0:
        contiguous_strides(size.n, size.v, strides)
        return True
    if t.ndim == 0:
        contiguous_strides(size.n, size.v, strides)
        return True
    base = t.strides[t.ndim - 1]
    for tensor_d in range(t.ndim - 1, -1, -1):
        chunk *= t.sizes[tensor_d]
        if tensor_d == 0 or (t.sizes[tensor_d - 1] != 1 and t.strides[tensor_d - 1] != chunk * base):
            while view_d >= 0 and (view_n < chunk or size.v[view_d] == 1):
                strides[view_d] = view_n * base
                view_n *= size.v[view_d]
                view_d -= 1
            if view_n != chunk:
                return False
            if tensor_d > 0:
                base = t.strides[tensor_d - 1]
                chunk = 1
                view_n = 1
    return view_d == -1


cdef TensorBase view_kernel(TensorBase self, const Dims* size):
    cdef Dims d
    cdef int64_t strides[MAX_DIMS]
    infer_size(size, self.numel, &d)
    if not view_strides(self, &d, strides):
        raise hinted("view", RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous subspaces). Use .reshape(...) instead."))
    return make_view(self, d.n, d.v, strides, self.offset)


def view(TensorBase self not None, *size, dtype=None):
    """The same elements in another shape (one size may be -1), or the same bytes as another dtype."""
    cdef Dims d
    if dtype is not None:
        return view_dtype(self, dtype)
    if len(size) == 1 and not isinstance(size[0], (int, tuple, list)) and parse_is_dtype(size[0]):
        return view_dtype(self, size[0])
    parse_size(size, &d, "view", "size")
    return op_view(self, &d)


cdef bint parse_is_dtype(object x):
    from tensorrt_lite._C.core.dtype import dtype
    return isinstance(x, dtype)


cdef TensorBase view_dtype(TensorBase self, object target):
    cdef int code = parse_dtype(target, "view")
    return op_view_dtype(self, code) if intercepted(self.keys) else view_dtype_kernel(self, code)


cdef TensorBase view_dtype_kernel(TensorBase self, int code):
    cdef int i
    cdef int64_t a = ITEM_SIZE[self.dtype], b = ITEM_SIZE[code]
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t offset = self.offset, ratio
    cdef TensorBase r
    for i in range(self.ndim):
        sizes[i] = self.sizes[i]
        strides[i] = self.strides[i]
    if a != b:
        if self.ndim == 0:
            raise RuntimeError(f"self.dim() cannot be 0 to view {dtype_of(self.dtype)!r} as {dtype_of(code)!r} (different element sizes)")
        if self.strides[self.ndim - 1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {dtype_of(self.dtype)!r} as {dtype_of(code)!r} (different element sizes), but got {self.strides[self.ndim - 1]}")
        if a > b:
            ratio = a // b
            sizes[self.ndim - 1] *= ratio
            offset *= ratio
            for i in range(self.ndim - 1):
                strides[i] *= ratio
        else:
            ratio = b // a
            if sizes[self.ndim - 1] % ratio:
                raise RuntimeError(f"self.size(-1) must be divisible by {ratio} to view {dtype_of(self.dtype)!r} as {dtype_of(code)!r} (different element sizes), but got {sizes[self.ndim - 1]}")
            if offset % ratio:
                raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} to view {dtype_of(self.dtype)!r} as {dtype_of(code)!r} (different element sizes), but got {offset}")
            for i in range(self.ndim - 1):
                if strides[i] % ratio:
                    raise RuntimeError(f"self.stride({i}) must be divisible by {ratio} to view {dtype_of(self.dtype)!r} as {dtype_of(code)!r} (different element sizes), but got {strides[i]}")
                strides[i] //= ratio
            sizes[self.ndim - 1] //= ratio
            offset //= ratio
    r = make_view(self, self.ndim, sizes, strides, offset)
    set_dtype(r, code)
    return r


cdef TensorBase detach_kernel(TensorBase self):
    return alias_of(self)


cdef TensorBase alias_kernel(TensorBase self):
    return make_view(self, self.ndim, self.sizes, self.strides, self.offset)


def reshape(TensorBase input not None, *shape):
    """The same elements in another shape: a view where strides allow it, otherwise a copy. One size may be -1."""
    cdef Dims d, full
    cdef int64_t strides[MAX_DIMS]
    cdef TensorBase r
    parse_size(shape, &d, "reshape", "shape")
    infer_size(&d, input.numel, &full)
    if view_strides(input, &full, strides):
        return op_view(input, &full)
    r = op_view(<TensorBase?>_ops.contiguous(input), &full)
    r.base = None                      # of a copy that nobody else sees
    return r


def reshape_keyword(TensorBase input not None, shape):
    return reshape(input, shape)


cdef TensorBase as_strided_kernel(TensorBase self, const Dims* size, const Dims* stride, object storage_offset):
    cdef int64_t offset = self.offset if storage_offset is None else parse_int(storage_offset, "as_strided", "storage_offset")
    if size.n != stride.n:
        raise RuntimeError(f"mismatch in length of strides and shape: as_strided got sizes {sizes_text(size.n, size.v)} and strides {sizes_text(stride.n, stride.v)}")
    check_geometry(self.storage, size.n, size.v, stride.v, offset, ITEM_SIZE[self.dtype], "as_strided")
    return make_view(self, size.n, size.v, stride.v, offset)


cdef TensorBase expand_kernel(TensorBase self, const Dims* size):
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int i, j
    cdef int64_t want
    if size.n < self.ndim:
        raise RuntimeError(f"expand({self_label(self)}, size={sizes_text(size.n, size.v)}): the number of sizes provided ({size.n}) must be greater or equal to the number of dimensions in the tensor ({self.ndim})")
    for i in range(size.n - 1, -1, -1):
        j = i - (size.n - self.ndim)
        want = size.v[i]
        if j < 0:
            if want < 0:
                raise RuntimeError(f"The expanded size of the tensor ({want}) isn't allowed in a leading, non-existing dimension {i}")
            sizes[i] = want
            strides[i] = sizes[i + 1] * strides[i + 1] if want == 1 and self.ndim else 0
            continue
        if want == -1:
            want = self.sizes[j]
        if want < 0:
            raise RuntimeError(f"expand: invalid size {want} at dimension {i}")
        if self.sizes[j] != want and self.sizes[j] != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({self.sizes[j]}) at non-singleton dimension {i}.  "
                f"Target sizes: {sizes_text(size.n, size.v)}.  Tensor sizes: {shape_text(self)}")
        sizes[i] = want
        strides[i] = self.strides[j] if self.sizes[j] == want else 0
    checked_numel(size.n, sizes)
    return make_view(self, size.n, sizes, strides, self.offset)


cdef str self_label(TensorBase t):
    return f"torch.{dtype_text(t.dtype)}Tensor{{{shape_text(t)}}}"


def expand(TensorBase self not None, *size, implicit=False):
    """A view in which dimensions of size 1 (and new leading ones) are repeated; -1 keeps a size."""
    cdef Dims d
    parse_size(size, &d, "expand", "size")
    return op_expand(self, &d)


def expand_as(TensorBase self not None, TensorBase other not None):
    """expand to the sizes of another tensor."""
    cdef Dims d
    cdef int i
    d.n = other.ndim
    for i in range(d.n):
        d.v[i] = other.sizes[i]
    return op_expand(self, &d)


def broadcast_to(TensorBase input not None, size):
    """expand under its NumPy name."""
    return expand(input, size)


cdef TensorBase permute_kernel(TensorBase self, const Dims* dims):
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef bint seen[MAX_DIMS]
    cdef int i, d
    if dims.n != self.ndim:
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to len(dims) = {dims.n}")
    for i in range(dims.n):
        seen[i] = False
    for i in range(dims.n):
        d = wrap_dim(dims.v[i], self.ndim)
        if seen[d]:
            raise RuntimeError("permute(): duplicate dims are not allowed.")
        seen[d] = True
        sizes[i] = self.sizes[d]
        strides[i] = self.strides[d]
    return make_view(self, self.ndim, sizes, strides, self.offset)


cdef tuple inverse_permutation(tuple dims):
    cdef list r = [0] * len(dims)
    for i, d in enumerate(dims):
        r[d % len(dims)] = i
    return tuple(r)


cdef TensorBase transpose_kernel(TensorBase self, int64_t dim0, int64_t dim1):
    cdef int a = wrap_dim(dim0, self.ndim), b = wrap_dim(dim1, self.ndim)
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int i
    for i in range(self.ndim):
        sizes[i] = self.sizes[i]
        strides[i] = self.strides[i]
    if self.ndim:
        sizes[a] = self.sizes[b]
        strides[a] = self.strides[b]
        sizes[b] = self.sizes[a]
        strides[b] = self.strides[a]
    return make_view(self, self.ndim, sizes, strides, self.offset)


cdef TensorBase t_kernel(TensorBase self):
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    if self.ndim < 2:
        return alias_kernel(self)
    return transpose_kernel(self, 0, 1)


cdef TensorBase squeeze_kernel(TensorBase self, const Dims* dim):
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef bint drop[MAX_DIMS]
    cdef int i, n = 0
    for i in range(self.ndim):
        drop[i] = dim == NULL
    if dim != NULL:
        for i in range(dim.n):
            if self.ndim:
                drop[wrap_dim(dim.v[i], self.ndim)] = True
            else:
                wrap_dim(dim.v[i], 0)
    for i in range(self.ndim):
        if drop[i] and self.sizes[i] == 1:
            continue
        sizes[n] = self.sizes[i]
        strides[n] = self.strides[i]
        n += 1
    return make_view(self, n, sizes, strides, self.offset)


cdef TensorBase unsqueeze_kernel(TensorBase self, int64_t dim):
    cdef int64_t sizes[MAX_DIMS + 1]
    cdef int64_t strides[MAX_DIMS + 1]
    cdef int d = wrap_dim(dim, self.ndim + 1), i, j = 0
    if self.ndim == MAX_DIMS:
        raise RuntimeError(f"unsqueeze: a tensor has at most {MAX_DIMS} dimensions")
    for i in range(self.ndim + 1):
        if i == d:
            sizes[i] = 1
            strides[i] = self.sizes[d] * self.strides[d] if d < self.ndim else 1
        else:
            sizes[i] = self.sizes[j]
            strides[i] = self.strides[j]
            j += 1
    return make_view(self, self.ndim + 1, sizes, strides, self.offset)


cdef TensorBase select_kernel(TensorBase self, int64_t dim, int64_t index):
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int d, i, n = 0
    cdef int64_t k = index
    if self.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, self.ndim)
    if index < -self.sizes[d] or index >= self.sizes[d]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {shape_text(self)} at dimension {d}")
    if k < 0:
        k += self.sizes[d]
    for i in range(self.ndim):
        if i != d:
            sizes[n] = self.sizes[i]
            strides[n] = self.strides[i]
            n += 1
    return make_view(self, n, sizes, strides, self.offset + k * self.strides[d])


cdef TensorBase slice_kernel(TensorBase self, int64_t dim, int64_t start, int64_t end, int64_t step):
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t sizes[MAX_DIMS]
    cdef int d, i
    cdef int64_t n
    if self.ndim == 0:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    d = wrap_dim(dim, self.ndim)
    n = self.sizes[d]
    if start < 0:
        start = max(start + n, <int64_t>0)
    if end < 0:
        end = max(end + n, <int64_t>0)
    start = min(start, n)
    end = max(min(end, n), start)
    for i in range(self.ndim):
        sizes[i] = self.sizes[i]
        strides[i] = self.strides[i]
    sizes[d] = (end - start - 1) // step + 1 if end > start else 0
    strides[d] = self.strides[d] * step if step < (<int64_t>1 << 40) else self.strides[d]
    return make_view(self, self.ndim, sizes, strides, self.offset + (start * self.strides[d] if sizes[d] > 0 or self.numel else 0))


cdef TensorBase narrow_kernel(TensorBase self, int64_t dim, int64_t start, int64_t length):
    cdef int d
    if self.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative.")
    d = wrap_dim(dim, self.ndim)
    if start < -self.sizes[d] or start > self.sizes[d]:
        raise IndexError(f"start out of range (expected to be in range of [{-self.sizes[d]}, {self.sizes[d]}], but got {start})")
    if start < 0:
        start += self.sizes[d]
    if length > self.sizes[d] - start:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({self.sizes[d]}).")
    return slice_kernel(self, d, start, start + length, 1)


cdef object narrowed(object input, object dim, object start, object length, object out, bint inplace):
    if isinstance(start, TensorBase):
        if (<TensorBase>start).ndim != 0 or category[(<TensorBase>start).dtype] != CAT_INT:
            raise RuntimeError("start must be an 0-dim integral Tensor.")
    return op_narrow(as_tensor_arg(input, "narrow", "input"), parse_int(dim, "narrow", "dim"), parse_int(start, "narrow", "start"), parse_int(length, "narrow", "length"))


cdef TensorBase diagonal_kernel(TensorBase self, int64_t offset, int64_t dim1, int64_t dim2):
    cdef int a = wrap_dim(dim1, self.ndim), b = wrap_dim(dim2, self.ndim), i, n = 0
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t length, start = self.offset
    if a == b or self.ndim < 2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    offset = max(offset, -self.sizes[a])          # -offset exists
    if offset >= 0:
        length = max(min(self.sizes[a], self.sizes[b] - min(offset, self.sizes[b])), <int64_t>0)
        if length:
            start += offset * self.strides[b]
    else:
        length = max(min(self.sizes[a] - min(-offset, self.sizes[a]), self.sizes[b]), <int64_t>0)
        if length:
            start -= offset * self.strides[a]
    for i in range(self.ndim):
        if i != a and i != b:
            sizes[n] = self.sizes[i]
            strides[n] = self.strides[i]
            n += 1
    sizes[n] = length
    strides[n] = self.strides[a] + self.strides[b]
    return make_view(self, n + 1, sizes, strides, start)


cdef TensorBase unfold_kernel(TensorBase self, int64_t dimension, int64_t size, int64_t step):
    cdef int d = wrap_dim(dimension, self.ndim), i
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t n = self.sizes[d] if self.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if self.ndim == MAX_DIMS:
        raise RuntimeError(f"unfold: a tensor has at most {MAX_DIMS} dimensions")
    for i in range(self.ndim):
        sizes[i] = self.sizes[i]
        strides[i] = self.strides[i]
    if self.ndim:
        sizes[d] = (n - size) // step + 1
        strides[d] = self.strides[d] * step
    sizes[self.ndim] = size
    strides[self.ndim] = self.strides[d] if self.ndim else 1
    return make_view(self, self.ndim + 1, sizes, strides, self.offset)


cdef tuple several_views(list views):
    """The result of an operator with several views, which must not be written to where a gradient would have to follow."""
    for v in views:
        if (<TensorBase>v).creation_meta == CREATED_DEFAULT:
            (<TensorBase>v).creation_meta = CREATED_MULTI_OUTPUT
    return tuple(views)


cdef object split_view(TensorBase self, int64_t split_size, int64_t dim):
    cdef int d
    cdef int64_t n, start
    cdef list r = []
    if self.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, self.ndim)
    n = self.sizes[d]
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0 and n != 0:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    start = 0
    if split_size:
        check_number_of_views("split", self, n // split_size)
    while split_size and n - start > split_size:
        r.append(slice_kernel(self, d, start, start + split_size, 1))
        start += split_size
    r.append(slice_kernel(self, d, start, n, 1))
    return several_views(r)


def split(TensorBase tensor not None, split_size_or_sections, dim=0):
    """Views of pieces along `dim`: equal pieces of a size (the last may be smaller), or a list of sizes."""
    if isinstance(split_size_or_sections, (tuple, list)):
        return split_with_sizes(tensor, split_size_or_sections, dim)
    return op_split(tensor, parse_int(split_size_or_sections, "split", "split_size"), parse_int(dim, "split", "dim"))


cdef object split_with_sizes_kernel(TensorBase self, object split_sizes, int64_t dim):
    cdef tuple sizes = <tuple?>split_sizes
    cdef list r = []
    cdef int d
    cdef int64_t start = 0, total = 0, n
    if self.ndim == 0:
        raise RuntimeError("split_with_sizes expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, self.ndim)
    for v in sizes:
        n = v
        if n < 0:
            raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}")
        total = total + n if n <= self.sizes[d] - total else self.sizes[d] + 1   # a sum that overflows is too large, too
    if total != self.sizes[d]:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {self.sizes[d]} (input tensor's size at dimension {d}), but got split_sizes={list(sizes)}")
    for v in sizes:
        n = v
        r.append(slice_kernel(self, d, start, start + n, 1))
        start += n
    return several_views(r)


def split_with_sizes(TensorBase self not None, split_sizes, dim=0):
    """Views of the given sizes along `dim`, which they add up to."""
    cdef tuple sizes
    sizes = tuple(split_sizes) if isinstance(split_sizes, (tuple, list)) else (split_sizes,)
    for n in sizes:
        if not PyLong_CheckExact(n):
            sizes = tuple([parse_int(k, "split_with_sizes", "split_sizes") for k in sizes])
            break
    return op_split_with_sizes(self, sizes, parse_int(dim, "split_with_sizes", "dim"))


def chunk(TensorBase input not None, chunks, dim=0):
    """At most `chunks` views of nearly equal size along `dim`."""
    cdef int64_t n, k = parse_int(chunks, "chunk", "chunks"), size
    cdef int d
    cdef Dims sizes
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if k <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {k}")
    d = wrap_dim(parse_int(dim, "chunk", "dim"), input.ndim)
    n = input.sizes[d]
    size = n // k + (n % k != 0)
    if size == 0:
        check_number_of_views("chunk", input, k)
        return split_with_sizes(input, [0] * k, d)
    return op_split(input, size, d)


cdef object edges_of(TensorBase t):
    """A number of sections or a list of indices, given as a tensor."""
    if not t.keys & K_CPU and not (t.keys & K_PYTHON and (<object>t).device.type == "cpu"):
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {(<object>t).device}")
    if t.dtype != I64:
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to have dtype of long, but got {dtype_text(t.dtype)}")
    if t.ndim > 1:
        raise RuntimeError(f"tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got a tensor with {t.ndim} dims")
    return (<object>t).tolist()


def tensor_split(TensorBase input not None, indices_or_sections, dim=0):
    """Views between the given indices along `dim`, or of a given number of sections."""
    cdef int d
    cdef int64_t n, k, start, size
    if input.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    d = wrap_dim(parse_int(dim, "tensor_split", "dim"), input.ndim)
    n = input.sizes[d]
    if isinstance(indices_or_sections, TensorBase):
        indices_or_sections = edges_of(<TensorBase>indices_or_sections)
    if isinstance(indices_or_sections, (tuple, list)):
        edges = [0, *[parse_int(x, "tensor_split", "indices") for x in indices_or_sections]]
        pieces = []
        for i, a in enumerate(edges):
            b = edges[i + 1] if i + 1 < len(edges) else n
            pieces.append(op_slice(input, d, a, b, 1))
        return tuple(pieces)
    k = parse_int(indices_or_sections, "tensor_split", "sections")
    if k <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {k}")
    check_number_of_views("tensor_split", input, k)
    pieces = [None] * k
    start = 0
    for i in range(k):
        size = n // k + (1 if i < n % k else 0)
        pieces[i] = op_slice(input, d, start, start + size, 1)
        start += size
    return tuple(pieces)


cdef object unbind_kernel(TensorBase self, int64_t dim):
    cdef int d
    cdef int64_t i
    if self.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, self.ndim)
    check_number_of_views("unbind", self, self.sizes[d])
    return several_views([select_kernel(self, d, i) for i in range(self.sizes[d])])


cdef TensorBase view_as_real_kernel(TensorBase self):
    cdef int64_t sizes[MAX_DIMS + 1]
    cdef int64_t strides[MAX_DIMS + 1]
    cdef int i
    cdef TensorBase r
    if category[self.dtype] != CAT_COMPLEX:
        raise RuntimeError(f"view_as_real is only supported for complex tensors")
    if self.ndim == MAX_DIMS:
        raise RuntimeError(f"view_as_real: a tensor has at most {MAX_DIMS} dimensions")
    for i in range(self.ndim):
        sizes[i] = self.sizes[i]
        strides[i] = self.strides[i] * 2
    sizes[self.ndim] = 2
    strides[self.ndim] = 1
    r = make_view(self, self.ndim + 1, sizes, strides, self.offset * 2)
    set_dtype(r, to_real(self.dtype))
    return r


cdef TensorBase view_as_complex_kernel(TensorBase self):
    cdef int64_t strides[MAX_DIMS]
    cdef int i
    cdef TensorBase r
    if self.dtype != F16 and self.dtype != F32 and self.dtype != F64:
        raise RuntimeError(f"view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {dtype_text(self.dtype)}")
    if self.ndim == 0 or self.sizes[self.ndim - 1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if self.strides[self.ndim - 1] != 1:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    for i in range(self.ndim - 1):
        if self.strides[i] % 2:
            raise RuntimeError(f"Tensor must have a stride divisible by 2 for all but last dimension")
        strides[i] = self.strides[i] // 2
    if self.offset % 2:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    r = make_view(self, self.ndim - 1, self.sizes, strides, self.offset // 2)
    set_dtype(r, to_complex(self.dtype))
    return r


# ---- derivatives ---------------------------------------------------------------------------------------------------

cdef object select_backward(object grad, object shape, int64_t dim, int64_t index):
    r = grad.new_zeros(shape)
    r.select(dim, index).copy_(grad)
    return r


cdef object slice_backward(object grad, object shape, int64_t dim, int64_t start, int64_t end, int64_t step):
    cdef TensorBase r = grad.new_zeros(shape)
    op_slice(r, dim, start, end, step).copy_(grad)
    return r


cdef object diagonal_backward(object grad, object shape, int64_t offset, int64_t dim1, int64_t dim2):
    r = grad.new_zeros(shape)
    r.diagonal(offset, dim1, dim2).copy_(grad)
    return r


cdef object unfold_backward(object grad, object shape, int64_t dimension, int64_t size, int64_t step):
    """Windows are cut into pieces of `step` elements: the first pieces of all windows do not overlap, nor do the second ones, so each set is one copy or sum."""
    cdef int64_t windows, n, first, length
    if not shape:
        return grad.sum_to_size(shape)
    dimension = wrap_dim(dimension, len(shape))
    windows, n = grad.shape[dimension], shape[dimension]
    if not n or not size:
        return grad.new_zeros(shape)
    if grad_mode() or (<TensorBase?>grad).keys & K_WRAPPED:
        return folded(grad, dimension, n, windows, size, step)
    if size >= step:
        # the first pieces leave nothing but the end
        r = grad.new_empty(shape)
        r.narrow(dimension, windows * step, n - windows * step).zero_() if windows * step < n else None
    else:
        r = grad.new_zeros(shape)
    for first in range(0, size, step):
        length = min(step, size - first)
        piece = grad.narrow(-1, first, length)
        # of the last window's first piece only what is in reach: size may be less than step
        place = r.narrow(dimension, first, (windows - 1) * step + length).unfold(dimension, length, step)
        if first:
            place.add_(piece)
        else:
            place.copy_(piece)
    return r


cdef object folded(object grad, int64_t dimension, int64_t n, int64_t windows, int64_t size, int64_t step):
    """unfold_backward by operators that make their results: derivatives and batches of it."""
    cdef int64_t first, length
    cdef object r = None
    pad = [0, 0] * (grad.dim() - 2 - dimension)
    for first in range(0, size, step):
        length = min(step, size - first)
        piece = grad.narrow(-1, first, length)
        if length < step:
            piece = _ops.constant_pad_nd(piece, [0, step - length])
        piece = piece.movedim(-1, dimension + 1).flatten(dimension, dimension + 1)
        piece = _ops.constant_pad_nd(piece, pad + [first, n - first - windows * step])
        r = piece if r is None else r + piece
    return r


cdef object as_strided_backward(object grad, object geometry, object size, object stride, object storage_offset):
    """Gradient through arbitrary strides: scatter into the span of the storage, then read it back with the input's geometry."""
    in_size, in_stride, in_offset = geometry
    offset = in_offset if storage_offset is None else storage_offset
    low = min(in_offset, offset)
    span = 1
    for sizes, strides, start in ((in_size, in_stride, in_offset), (size, stride, offset)):
        if 0 not in sizes:
            span = max(span, sum([(n - 1) * s for n, s in zip(sizes, strides)]) + start - low + 1)
    flat = grad.new_zeros((span,))
    positions = _ops.arange(span, device=grad.device)
    target = positions.as_strided(size, stride, offset - low).reshape(-1)
    flat = flat.index_add(0, target, grad.reshape(-1))
    # elements that the input itself reads several times share their gradient
    source = positions.as_strided(in_size, in_stride, in_offset - low)
    real = grad.real if grad.is_complex() else grad
    counts = real.new_zeros((span,)).index_add(0, source.reshape(-1), real.new_ones((1,)).expand(source.numel()))
    return (flat / counts.clamp(min=1)).index_select(0, source.reshape(-1)).reshape(in_size)


cdef object _join(object grads, list shapes, int64_t dim, object shape):
    cdef object like = None
    for g in grads:
        if g is not None:
            like = g
            break
    if like is None:
        return None
    return _ops.cat([like.new_zeros(s) if g is None else g for g, s in zip(grads, shapes)], dim)


cdef object split_backward(object grads, object shape, int64_t split_size, int64_t dim):
    cdef int d = wrap_dim(dim, len(shape))
    cdef list shapes = []
    cdef int64_t start = 0
    if not isinstance(grads, list):
        grads = [grads]
    for _ in grads:
        s = list(shape)
        s[d] = min(split_size, shape[d] - start)
        start += split_size
        shapes.append(s)
    return _join(grads, shapes, d, shape)


cdef object split_sizes_backward(object grads, object shape, object split_sizes, int64_t dim):
    cdef int d = wrap_dim(dim, len(shape))
    cdef list shapes = []
    if not isinstance(grads, list):
        grads = [grads]
    for n in split_sizes:
        s = list(shape)
        s[d] = n
        shapes.append(s)
    return _join(grads, shapes, d, shape)


cdef object unbind_backward(object grads, object shape, int64_t dim):
    cdef int d = wrap_dim(dim, len(shape))
    cdef object like = None
    if not isinstance(grads, list):
        grads = [grads]
    for g in grads:
        if g is not None:
            like = g
            break
    rest = list(shape)
    del rest[d]
    return _ops.stack([like.new_zeros(rest) if g is None else g for g in grads], d)


# ---- compositions --------------------------------------------------------------------------------------------------

def flatten(TensorBase input not None, start_dim=0, end_dim=-1):
    """Merge the dimensions start_dim…end_dim into one."""
    cdef int a = wrap_dim(parse_int(start_dim, "flatten", "start_dim"), input.ndim), b = wrap_dim(parse_int(end_dim, "flatten", "end_dim"), input.ndim)
    if a > b:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if input.ndim == 0:
        return reshape(input, 1)
    if a == b:
        return input
    cdef list shape = list(shape_of(input))
    n = 1
    for s in shape[a:b + 1]:
        n *= s
    return reshape(input, shape[:a] + [n] + shape[b + 1:])


def unflatten(TensorBase input not None, dim, sizes):
    """Split one dimension into several; one of the sizes may be -1."""
    cdef int d = wrap_dim(parse_int(dim, "unflatten", "dim"), input.ndim)
    cdef list shape = list(shape_of(input))
    sizes = list(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = 1
    for s in sizes:
        if s != -1:
            known *= s
    if -1 in sizes and known and shape[d] % known == 0:
        sizes = [shape[d] // known if s == -1 else s for s in sizes]
    product = 1
    for s in sizes:
        product *= s
    if product != shape[d]:
        raise RuntimeError(f"unflatten: Provided sizes {sizes} don't multiply up to the size of dim {d} ({shape[d]}) in the input tensor")
    return reshape(input, shape[:d] + sizes + shape[d + 1:])


def movedim(TensorBase input not None, source, destination):
    """Move dimensions to new places, the others keep their order."""
    cdef list a = list(source) if isinstance(source, (tuple, list)) else [source]
    cdef list b = list(destination) if isinstance(destination, (tuple, list)) else [destination]
    if len(a) != len(b):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({a} dims) should contain the same number of dims as destination ({b} dims)")
    a = [wrap_dim(d, input.ndim) for d in a]
    b = [wrap_dim(d, input.ndim) for d in b]
    if len(set(a)) != len(a):
        raise RuntimeError(f"movedim: repeated dim in `source` ({a})")
    if len(set(b)) != len(b):
        raise RuntimeError(f"movedim: repeated dim in `destination` ({b})")
    order = [-1] * input.ndim
    for s, d in zip(a, b):
        order[d] = s
    rest = iter([d for d in range(input.ndim) if d not in a])
    order = [next(rest) if d < 0 else d for d in order]
    return permute(input, order)


def view_as(TensorBase self not None, TensorBase other not None):
    return self.view(shape_of(other))


def reshape_as(TensorBase self not None, TensorBase other not None):
    return reshape(self, shape_of(other))


def squeeze_(TensorBase self not None, dim=None):
    """squeeze in place: the tensor itself gets the smaller geometry."""
    return _regeometry(self, squeeze(self, dim))


def unsqueeze_(TensorBase self not None, dim):
    return _regeometry(self, unsqueeze(self, dim))


def transpose_(TensorBase self not None, dim0, dim1):
    return _regeometry(self, transpose(self, dim0, dim1))


def t_(TensorBase self not None):
    return _regeometry(self, t(self))


cdef object _regeometry(TensorBase self, TensorBase v):
    """Give a tensor the geometry of a view of it. Python that ran while the view was made (a mode's) may have set the tensor to other memory."""
    cdef TensorBase tangent = tangent_of(v)
    check_inplace(self, "view")
    if v.storage is not self.storage and self.storage.block != NULL and not self.keys & K_WRAPPED:
        raise RuntimeError(f"a view in place of {shape_text(self)}: the tensor was given other memory while its view of {shape_text(v)} was made")
    set_geometry(self, v.ndim, v.sizes, v.strides)
    if self.keys & K_WRAPPED:
        self.storage = v.storage               # it stands for the view now
    if tangent is not None:
        set_tangent(self, tangent)
    if v.requires_grad:
        set_history(self, grad_fn_of(v), 0)
    bump_version(self)
    return self


def slice_bounds(dim=0, start=None, end=None, step=1):
    """The arguments of `slice`, of which all may be left out."""
    return dim, 0 if start is None else start, 0x7fffffffffffffff if end is None else end, step


def _copying(name):
    """The function that copies what the view of that name shows."""
    def copied(input, *args, out=None, **kwargs):
        if name == "view" and not (args and isinstance(args[0], dtype)):
            r = _ops.reshape(input, *args, **kwargs)       # a copy needs no strides that a view could have
        elif name == "slice":
            r = _ops.slice(input, *slice_bounds(*args, **kwargs))
        elif hasattr(_ops, name):
            r = getattr(_ops, name)(input, *args, **kwargs)
        else:
            r = getattr(input, name)(*args, **kwargs)
        several = isinstance(r, (tuple, list))
        if out is None:
            return tuple([x.clone(memory_format=contiguous_format) for x in r]) if several else r.clone(memory_format=contiguous_format)
        if tls().grad_mode and (r[0] if several else r).requires_grad:
            refuse_out(name + "_copy")
        if several and len(out) != len(r):
            raise RuntimeError(f"{name}_copy: expected {len(r)} tensors in out, got {len(out)}")
        for x, y in zip(r if several else (r,), out if several else (out,)):
            if not isinstance(y, TensorBase) or not name.startswith("split"):
                check_out(y, name + "_copy")
            check_out_type(name + "_copy", <TensorBase>y, (<TensorBase>x).dtype)
            prepare_out(name + "_copy", <TensorBase>y, (<TensorBase>x).ndim, (<TensorBase>x).sizes, (<TensorBase>x).dtype, OUT)
            copy_elements(<TensorBase>y, <TensorBase>x)
            bump_version(<TensorBase>y)
        return None if several else out
    copied.__name__ = copied.__qualname__ = name + "_copy"
    return copied


for _name in ("alias", "as_strided", "detach", "diagonal", "expand", "permute", "select", "slice", "split", "split_with_sizes", "squeeze", "t", "transpose",
              "unbind", "unfold", "unsqueeze", "view", "view_as_complex", "view_as_real"):
    globals()[_name + "_copy"] = _copying(_name)
