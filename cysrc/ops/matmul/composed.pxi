# Operators composed of mm, bmm, mv and dot; they record through those, so that they need no derivatives of their own.
# Modules of operators are compiled without index checks; functions over Python lists and shapes here turn them on.


cdef object shaped(TensorBase t, const Dims* d):
    """view where strides allow it without a look, otherwise reshape."""
    if t.contiguous:
        return op_view(t, d)
    return _ops.reshape(t, dims_tuple(d))


cdef object batched_matmul(TensorBase a, TensorBase b):
    """matmul of at least 2-dimensional tensors with broadcast batch dimensions."""
    cdef Dims full, da, db, flat
    cdef int i, n = max(a.ndim, b.ndim)
    cdef int64_t x, y, batch = 1
    full.n = n
    da.n = db.n = n
    for i in range(n - 2):
        x = a.sizes[i - n + a.ndim] if i >= n - a.ndim else 1
        y = b.sizes[i - n + b.ndim] if i >= n - b.ndim else 1
        if x != y and x != 1 and y != 1:
            raise RuntimeError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension {i}")
        full.v[i] = da.v[i] = db.v[i] = y if x == 1 else x
        batch *= full.v[i]
    da.v[n - 2] = a.sizes[a.ndim - 2]
    da.v[n - 1] = a.sizes[a.ndim - 1]
    db.v[n - 2] = b.sizes[b.ndim - 2]
    db.v[n - 1] = b.sizes[b.ndim - 1]
    full.v[n - 2] = da.v[n - 2]
    full.v[n - 1] = db.v[n - 1]
    if da.v[n - 1] != db.v[n - 2]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {da.v[n - 1]}] but got: [{batch}, {db.v[n - 2]}].")
    a = fold_batch(a, &da, batch)
    b = fold_batch(b, &db, batch)
    r = op_bmm(a, b, None, FRESH)
    return r if n == 3 else op_view(r, &full)


cdef TensorBase fold_batch(TensorBase t, const Dims* d, int64_t batch):
    """(*d) expanded and folded to three dimensions."""
    cdef Dims flat
    cdef int i
    cdef bint same = t.ndim == d.n
    for i in range(d.n):
        if same and t.sizes[i] != d.v[i]:
            same = False
    if not same:
        t = op_expand(t, d)
    if d.n == 3:
        return t
    flat.n = 3
    flat.v[0] = batch
    flat.v[1] = d.v[d.n - 2]
    flat.v[2] = d.v[d.n - 1]
    return <TensorBase?>shaped(t, &flat)


cdef TensorBase matmul_tensors(TensorBase a, TensorBase b):
    cdef Dims d
    cdef int i
    cdef object r
    if a.ndim == 2 and b.ndim == 2:
        return op_mm(a, b, None, FRESH)
    if autocasting():
        # a matrix with a vector is op_mv, which casts on CUDA alone
        a = cast_operand(a, "ll")
        b = cast_operand(b, "ll")
    if a.ndim == 2:
        if b.ndim == 1:
            return op_mv(a, b, None, FRESH)
    if a.ndim == 1 and b.ndim == 1:
        return op_dot(a, b, None, FRESH)
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.ndim == 1 and b.ndim == 2:
        if a.sizes[0] != b.sizes[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied (1x{a.sizes[0]} and {b.sizes[0]}x{b.sizes[1]})")
        return op_mv(op_t(b), a, None, FRESH)
    if b.ndim <= 2 and a.numel > 0:                      # fold the batch of the first into its rows
        if a.sizes[a.ndim - 1] != b.sizes[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({a.numel // a.sizes[a.ndim - 1]}x{a.sizes[a.ndim - 1]} and "
                               f"{b.sizes[0]}x{b.sizes[1] if b.ndim == 2 else 1})")
        d.n = 2
        d.v[1] = a.sizes[a.ndim - 1]
        d.v[0] = a.numel // d.v[1]
        folded = <TensorBase?>shaped(a, &d)
        d.n = a.ndim - (1 if b.ndim == 1 else 0)
        for i in range(a.ndim - 1):
            d.v[i] = a.sizes[i]
        if b.ndim == 1:
            return op_view(op_mv(folded, b, None, FRESH), &d)
        d.v[d.n - 1] = b.sizes[1]
        return op_view(op_mm(folded, b, None, FRESH), &d)
    if a.ndim == 1:
        r = batched_matmul(<TensorBase?>_ops.unsqueeze(a, 0), b)
        return <TensorBase?>_ops.squeeze(r, -2)
    if b.ndim == 1:
        r = batched_matmul(a, <TensorBase?>_ops.unsqueeze(b, -1))
        return <TensorBase?>_ops.squeeze(r, -1)
    return <TensorBase?>batched_matmul(a, b)


def matmul(input, other, *, out=None):
    """The matrix product of the last two dimensions, batch dimensions broadcast; vectors as a row or a column."""
    cdef TensorBase a, b
    a = <TensorBase>input if isinstance(input, TensorBase) else as_tensor_arg(input, "matmul", "input")
    b = <TensorBase>other if isinstance(other, TensorBase) else as_tensor_arg(other, "matmul", "other")
    if out is None:
        return matmul_tensors(a, b)
    if a.ndim == 2 and b.ndim == 2:
        return _ops.mm(a, b, out=out)
    return deliver_result("matmul", matmul_tensors(a, b), out, True)


def matmul_symbol(self, other):
    """self @ other."""
    if not isinstance(self, TensorBase) or not isinstance(other, TensorBase):
        return NotImplemented
    return matmul(self, other)


def rmatmul_symbol(self, other):
    return matmul_symbol(other, self)


# ---- outer products ------------------------------------------------------------------------------------------------

cdef TensorBase tensor_of(object x, str op, str name):
    return <TensorBase>x if isinstance(x, TensorBase) else as_tensor_arg(x, op, name)


cdef int check_vectors(str name, TensorBase a, TensorBase b) except -1:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"{name}: Expected 1-D argument {'self' if a.ndim != 1 else 'vec2'}, but got {a.ndim if a.ndim != 1 else b.ndim}-D")
    return 0


def outer(input, vec2, *, out=None):
    """input: (n,), vec2: (m,) -> (n, m), the products of all pairs."""
    check_vectors("outer", tensor_of(input, "outer", "input"), tensor_of(vec2, "outer", "vec2"))
    column = _ops.unsqueeze(input, 1)
    return _ops.mul(column, vec2) if out is None else _ops.mul(column, vec2, out=out)


def ger(input, vec2, *, out=None):
    """outer under its BLAS name."""
    return outer(input, vec2, out=out)


cdef object addr_value(object input, object vec1, object vec2, object beta, object alpha):
    cdef TensorBase a = tensor_of(vec1, "addr", "vec1"), b = tensor_of(vec2, "addr", "vec2"), s = tensor_of(input, "addr", "input")
    cdef int64_t sizes[2]
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"addr: Expected 1-D argument {'vec1' if a.ndim != 1 else 'vec2'}, but got {a.ndim if a.ndim != 1 else b.ndim}-D")
    sizes[0] = a.numel
    sizes[1] = b.numel
    check_expandable("addr", s, 2, sizes)
    for value, what in ((alpha, "alpha"), (beta, "beta")):
        if isinstance(value, float) and category[s.dtype] <= CAT_INT and category[a.dtype] <= CAT_INT and category[b.dtype] <= CAT_INT:
            raise RuntimeError(f"For integral input tensors, argument {what} must not be a floating point number.")
        if isinstance(value, bool) and max(category[s.dtype], category[a.dtype], category[b.dtype]) > CAT_BOOL:
            raise RuntimeError(f"Boolean {what} only supported for Boolean results.")
    pairs = _ops.mul(_ops.unsqueeze(vec1, 1), vec2)
    if s.dtype == BOOL and a.dtype == BOOL and b.dtype == BOOL:
        pairs = pairs if alpha else _ops.zeros_like(pairs)
        return _ops.logical_or(input, pairs) if beta else pairs
    if alpha != 1:
        pairs = pairs * alpha
    if beta == 0:
        code = promotion[(<TensorBase?>pairs).dtype][s.dtype]
        return pairs.to(dtype_of(code))
    return _ops.add(input if beta == 1 else input * beta, pairs)


@autocast_policy(cuda="lower")
def addr(input, vec1, vec2, *, beta=1, alpha=1, out=None):
    """beta input + alpha outer(vec1, vec2). input: broadcasts to (n, m); vec1: (n,), vec2: (m,)."""
    return deliver_result("addr", addr_value(input, vec1, vec2, beta, alpha), out, True)


def addr_(input, vec1, vec2, *, beta=1, alpha=1):
    """addr into input."""
    cdef TensorBase r, s = tensor_of(input, "addr_", "input")
    r = <TensorBase?>addr_value(input, vec1, vec2, beta, alpha)
    if not same_sizes(r, s):
        raise RuntimeError(f"The input tensor must be a matrix with size {shape_text(r)}, but got a {s.ndim}-D tensor with size {shape_text(s)}")
    if not can_cast(r.dtype, s.dtype):
        raise RuntimeError(f"result type {dtype_text(r.dtype)} can't be cast to the desired output type {dtype_text(s.dtype)}")
    return input.copy_(r)


@cython.wraparound(True)
@cython.boundscheck(True)
def kron(input, other, *, out=None):
    """The Kronecker product: sizes multiply, missing leading dimensions count 1."""
    as_tensor_arg(input, "kron", "input")
    as_tensor_arg(other, "kron", "other")
    n = max(input.dim(), other.dim())
    a = (1,) * (n - input.dim()) + tuple(input.shape)
    b = (1,) * (n - other.dim()) + tuple(other.shape)
    left = input.reshape([s for x in a for s in (x, 1)])
    right = other.reshape([s for x in b for s in (1, x)])
    return deliver_result("kron", _ops.mul(left, right).reshape([x * y for x, y in zip(a, b)]), out, True)


# ---- sums of products over dimensions ------------------------------------------------------------------------------------

@cython.wraparound(True)
@cython.boundscheck(True)
@autocast_policy(cuda="promote")
def tensordot(a, b, dims=2, out=None):
    """Sum over dims (a number: the last of a with the first of b; or two lists) of the products of a and b."""
    as_tensor_arg(a, "tensordot", "a")
    as_tensor_arg(b, "tensordot", "b")
    if isinstance(dims, TensorBase):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        left, right = list(range(a.dim() - dims, a.dim())), list(range(dims))
    else:
        left, right = [list(x) if isinstance(x, (list, tuple)) else [x] for x in dims]
        if len(left) != len(right):
            raise RuntimeError("both dimension lists should have same length")
    left = [wrap_dim(d, a.dim()) for d in left]
    right = [wrap_dim(d, b.dim()) for d in right]
    if len(set(left)) != len(left) or len(set(right)) != len(right):
        raise RuntimeError("tensordot: a dim appears multiple times in the list of dims")
    for x, y in zip(left, right):
        if a.shape[x] == 1 and b.shape[y] != 1:
            b = b.sum(y, keepdim=True)
        elif b.shape[y] == 1 and a.shape[x] != 1:
            a = a.sum(x, keepdim=True)
        elif a.shape[x] != b.shape[y]:
            raise RuntimeError(f"contracted dimensions need to match, but first has size {a.shape[x]} in dim {x} and second has size {b.shape[y]} in dim {y}")
    keep_a = [d for d in range(a.dim()) if d not in left]
    keep_b = [d for d in range(b.dim()) if d not in right]
    inner_size = count(a.shape, left)
    rows, cols = count(a.shape, keep_a), count(b.shape, keep_b)
    pa = a.permute(keep_a + left).reshape((rows, inner_size))
    pb = b.permute(right + keep_b).reshape((inner_size, cols))
    # one number is PyTorch's dot product, too: autocast on the CPU casts products of matrices alone
    result = _ops.dot(pa.reshape(-1), pb.reshape(-1)) if left and rows == cols == 1 else _ops.mm(pa, pb)
    result = result.reshape([a.shape[d] for d in keep_a] + [b.shape[d] for d in keep_b])
    return deliver_result("tensordot", result, out, True)


@cython.wraparound(True)
@cython.boundscheck(True)
def inner(input, other, *, out=None):
    """Dot products of the last dimensions: (..., n) and (..., n) -> all pairs; with a number, its multiple."""
    as_tensor_arg(input, "inner", "input")
    as_tensor_arg(other, "inner", "other")
    if input.dim() == 0 or other.dim() == 0:
        return deliver_result("inner", _ops.mul(input, other), out, True)
    if input.shape[-1] != other.shape[-1]:
        raise RuntimeError(f"inner() the last dimension must match on both input tensors but got shapes {list(input.shape)} and {list(other.shape)}")
    return tensordot(input, other, ([-1], [-1]), out)


@cython.wraparound(True)
@cython.boundscheck(True)
@autocast_policy(cuda="promote")
def bilinear(input1, input2, weight, bias=None):
    """input1: (..., in1), input2: (..., in2), weight: (out, in1, in2), bias: (out,) -> (..., out)."""
    as_tensor_arg(input1, "bilinear", "input1")
    as_tensor_arg(input2, "bilinear", "input2")
    as_tensor_arg(weight, "bilinear", "weight")
    if bias is not None:
        as_tensor_arg(bias, "bilinear", "bias")
    if input1.dim() != input2.dim():
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}")
    for i in range(input1.dim() - 1):
        if input1.shape[i] != input2.shape[i]:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {input1.shape[i]} and {input2.shape[i]}")
    for i, x in enumerate((input1, input2)):
        if x.shape[-1] != weight.shape[i + 1]:
            raise RuntimeError(f"bilinear(): input{i + 1} size does not match weight size: got {x.shape[-1]} but expected {weight.shape[i + 1]}")
    if bias is not None and bias.shape[0] != weight.shape[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}")
    shape = input1.shape[:-1]
    n = count(shape, list(range(len(shape))))
    result = op__bilinear(<TensorBase?>input1.reshape((n, input1.shape[-1])), <TensorBase?>input2.reshape((n, input2.shape[-1])), <TensorBase?>weight)
    result = (<object>result).reshape(tuple(shape) + (weight.shape[0],))
    return result if bias is None else result + bias


cdef TensorBase bilinear_impl(TensorBase input1, TensorBase input2, TensorBase weight):
    """input1: (n, in1), input2: (n, in2), weight: (out, in1, in2) -> (n, out)."""
    cdef object a = alias_of(input1), b = alias_of(input2), w = alias_of(weight)
    n_out, n1, n2 = w.shape
    rows = _ops.mm(a, w.permute(1, 0, 2).reshape((n1, n_out * n2))).reshape((a.shape[0], n_out, n2))
    return <TensorBase?>_ops.bmm(rows, b.unsqueeze(-1)).squeeze(-1)


# ---- batches, chains, powers ---------------------------------------------------------------------------------------

cdef tuple joined_batches(object batch1, object batch2):
    """The sum over the batch of products as one product: (n, b m) and (b m, p)."""
    check_batches("batch1", tensor_of(batch1, "addbmm", "batch1"), "batch2", tensor_of(batch2, "addbmm", "batch2"))
    b, n, m = batch1.shape
    return batch1.permute(1, 0, 2).reshape((n, b * m)), batch2.reshape((b * m, batch2.shape[2]))


def addbmm(input, batch1, batch2, *, beta=1, alpha=1, out=None):
    """beta input + alpha (the sum over the batch of batch1 @ batch2). batch1: (b, n, m), batch2: (b, m, p) -> (n, p)."""
    a, b = joined_batches(batch1, batch2)
    return _ops.addmm(input, a, b, beta=beta, alpha=alpha) if out is None else _ops.addmm(input, a, b, beta=beta, alpha=alpha, out=out)


def addbmm_(input, batch1, batch2, *, beta=1, alpha=1):
    """addbmm into input."""
    a, b = joined_batches(batch1, batch2)
    return input.addmm_(a, b, beta=beta, alpha=alpha)


@cython.wraparound(True)
@cython.boundscheck(True)
@autocast_policy(cuda="lower")
def linalg_multi_dot(tensors, *, out=None):
    """The product of two or more matrices (the first and the last may be vectors) in the cheapest order."""
    cdef list ts = tensor_list(tensors, "multi_dot", "tensors")
    n = len(ts)
    if n < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {n}")
    first, last = ts[0].dim(), ts[-1].dim()
    for i, t in enumerate(ts):
        if i in (0, n - 1):
            if t.dim() not in (1, 2):
                raise RuntimeError(f"multi_dot(): the {'first' if i == 0 else 'last'} tensor must be 1D or 2D but got {t.dim()}D")
        elif t.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {t.dim()}D")
        if t.dtype != ts[0].dtype:
            raise RuntimeError(f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {ts[0].dtype} and tensor {i} {t.dtype}")
    if first == 1:
        ts[0] = ts[0].unsqueeze(0)
    if last == 1:
        ts[-1] = ts[-1].unsqueeze(-1)
    for i in range(n - 1):
        if ts[i].shape[1] != ts[i + 1].shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(ts[i].shape)} and {list(ts[i + 1].shape)} cannot be multiplied")
    dims = [t.shape[0] for t in ts] + [ts[-1].shape[1]]
    best = {(i, i): (0, 0) for i in range(n)}
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            costs = [(best[i, k][0] + best[k + 1, j][0] + dims[i] * dims[k + 1] * dims[j + 1], k) for k in range(i, j)]
            # of equal costs PyTorch takes the first split, but of three matrices the left product
            least = min([cost for cost, k in costs])
            best[i, j] = [split for split in costs if split[0] == least][-1 if n == 3 else 0]
    result = chain_product(ts, best, 0, n - 1)
    if first == 1:
        result = result.squeeze(0)
    if last == 1:
        result = result.squeeze(-1)
    return deliver_result("multi_dot", result, out, True)


@cython.wraparound(True)
@cython.boundscheck(True)
cdef object chain_product(list ts, dict best, int i, int j):
    if i == j:
        return ts[i]
    k = best[i, j][1]
    return _ops.mm(chain_product(ts, best, i, k), chain_product(ts, best, k + 1, j))


@cython.wraparound(True)
@cython.boundscheck(True)
@autocast_policy(cuda="lower")
def chain_matmul(*matrices, out=None):
    """The product of matrices in the cheapest order (older name of linalg.multi_dot)."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = tuple(matrices[0])
    for t in matrices:
        as_tensor_arg(t, "chain_matmul", "matrices")
        if t.dim() != 2:
            raise RuntimeError(f"Tensor dimension is {t.dim()}, expected 2 instead. (chain_matmul)")
    if len(matrices) == 1:
        return deliver_result("chain_matmul", matrices[0], out, True)
    return linalg_multi_dot(list(matrices), out=out)


def matrix_power(input, n, *, out=None):
    """input: (..., m, m) multiplied n times with itself; a negative n powers the inverse."""
    cdef TensorBase t = tensor_of(input, "matrix_power", "input")
    if t.ndim < 2:
        raise RuntimeError(f"linalg.matrix_power: The input tensor A must have at least 2 dimensions, but got shape {shape_text(t)}")
    if t.sizes[t.ndim - 1] != t.sizes[t.ndim - 2]:
        raise RuntimeError(f"linalg.matrix_power: A must be batches of square matrices, but they are {t.sizes[t.ndim - 2]} by {t.sizes[t.ndim - 1]} matrices")
    base = input
    n = parse_int(n, "matrix_power", "n")    # a plain int: what answers comparisons by code of its own may never become 0 below
    if n < 0:
        base = _ops.linalg_inv(input)
        n = -n
    # a last product goes into `out` of its own type, what is only copied may be converted
    exact = n in (2, 3) or n & (n - 1) != 0
    if n == 0:
        # of the input's graph, as PyTorch's is: the derivative is zero
        result = input.clone().copy_(_ops.eye(t.sizes[t.ndim - 1], dtype=dtype_of(t.dtype), device=input.device).expand(shape_of(t)))
    else:
        result = None
        while True:
            if n & 1:
                result = base if result is None else _ops.matmul(result, base)
            n >>= 1
            if not n:
                break
            base = _ops.matmul(base, base)
        if result is input:
            result = input.clone()
    return deliver_result("matrix_power", result, out, exact)


@autocast_policy(cpu="lower", cuda="lower")
def linalg_vecdot(x, y, *, dim=-1, out=None):
    """Dot products along a dimension, x conjugated; other dimensions broadcast."""
    return deliver_result("linalg_vecdot", _ops.mul(conj_of(x), y).sum(dim), out, True)


@cython.wraparound(True)
@cython.boundscheck(True)
def linalg_cross(input, other, *, dim=-1, out=None):
    """The cross product along a dimension of size 3; other dimensions broadcast."""
    as_tensor_arg(input, "linalg_cross", "input")
    as_tensor_arg(other, "linalg_cross", "other")
    if input.dim() != other.dim():
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    dim = wrap_dim(dim, input.dim())
    if input.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {input.shape[dim]} and {other.shape[dim]}")
    a = input.unbind(dim)
    b = other.unbind(dim)
    parts = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return deliver_result("linalg_cross", _ops.stack(parts, dim), out, True)


@cython.wraparound(True)
@cython.boundscheck(True)
@autocast_policy(cuda="promote")
def cross(input, other, dim=None, *, out=None):
    """linalg.cross along dim, by default the first dimension of size 3."""
    as_tensor_arg(input, "cross", "input")
    as_tensor_arg(other, "cross", "other")
    if dim is None:
        found = [i for i, n in enumerate(input.shape) if n == 3]
        if not found:
            raise RuntimeError("no dimension of size 3 in input")
        dim = found[0]
    return linalg_cross(input, other, dim=dim, out=out)
