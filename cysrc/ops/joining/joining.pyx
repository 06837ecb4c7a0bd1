# Kernels of the joining family: cat, stack, triangles, and results whose every dimension consists of pieces of the input's (flip, roll, margins).
# What writes elements are steps: cpu.pyx has the CPU's, cysrc/cuda/indexing.pyx CUDA's.
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.autograd.autocast cimport autocasting, cast_operand
from tensorrt_lite._C.core.memory_format cimport empty_in_format, in_format, kept_format, suggests_last
from tensorrt_lite._C.steps.joining cimport PIECE_CONSTANT, PieceArgs
from tensorrt_lite._C.ops.joining.parts cimport ANY_PARTS, CHANNELS_LAST_PARTS, CONTIGUOUS_PARTS, is_nothing
from tensorrt_lite._C.ops.memory cimport memory_of
from tensorrt_lite._C.steps.joining cimport run_join, run_pieces, run_triangle


cdef int common_type(list tensors) except -1:
    cdef PyObject** p = <PyObject**>malloc(max(len(tensors), 1) * sizeof(void*))
    cdef int n = 0, code
    if p == NULL:
        raise MemoryError
    for t in tensors:
        p[n] = <PyObject*>t
        n += 1
    code = result_code(n, p)
    free(p)
    return code


cdef TensorBase cat_kernel(list tensors, int64_t dim, TensorBase out, int mode):
    cdef TensorBase first = None, t, r
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t total = 0, most = 9223372036854775807
    cdef int d, k, i = 0, code
    cdef bint direct = True, channels_last = True, dense = True      # dense: channels_last parts without gaps, of one type
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for x in tensors:
        t = <TensorBase>x
        if t.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
        if first is None and not is_nothing(t):
            first = t
        i += 1
    code = (<TensorBase>tensors[0]).dtype
    for x in tensors:
        if (<TensorBase>x).dtype != code:
            code = common_type(tensors)
            break
    if first is None:
        first = <TensorBase>tensors[0]
        sizes[0] = 0
        r = empty_tensor(1, sizes, code, place_of(first))
        return joined("cat", r, out, mode)
    d = wrap_dim(dim, first.ndim)
    i = 0
    for x in tensors:
        t = <TensorBase>x
        if not is_nothing(t):
            if t.ndim != first.ndim:
                raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {t.ndim}")
            for k in range(t.ndim):
                if k != d and t.sizes[k] != first.sizes[k]:
                    raise hinted("cat", RuntimeError(f"Sizes of tensors must match except in dimension {d}. Expected size {first.sizes[k]} but got size {t.sizes[k]} for tensor number {i} in the list."))
            if t.sizes[d] > most - total:
                raise RuntimeError(f"cat: the sizes along dimension {d} add up to more than {most}")
            total += t.sizes[d]
            if t.dtype != code or not t.contiguous:
                direct = False
            if channels_last:
                channels_last = suggests_last(t)
                dense = dense and t.dtype == code and (is_channels_last(t) or is_channels_last_3d(t))
        else:
            channels_last = False
        i += 1
    for k in range(first.ndim):
        sizes[k] = first.sizes[k]
    sizes[d] = total
    if channels_last:
        r = empty_in_format(first.ndim, sizes, code, place_of(first), True)
    else:
        if mode == OUT and out.dtype == code and direct and fits_as_it_is(out, first.ndim, sizes):
            prepare_out("cat", out, first.ndim, sizes, code, mode)
            for x in tensors:
                check_no_overlap("cat", out, <TensorBase>x, False)
            r = out
        else:
            r = empty_tensor(first.ndim, sizes, code, place_of(first))
    run_join(r.device_type, r, tensors, d, False, (CHANNELS_LAST_PARTS if dense else ANY_PARTS) if channels_last else CONTIGUOUS_PARTS if direct and r.contiguous else ANY_PARTS)
    return joined("cat", r, out, mode)


cdef bint fits_as_it_is(TensorBase out, int ndim, const int64_t* sizes) noexcept:
    """Whether preparing `out` will not warn: a filter of warnings is Python, which could change the pieces."""
    cdef int k
    if out.numel and out.ndim == ndim:
        for k in range(ndim):
            if out.sizes[k] != sizes[k]:
                return False
        return True
    return out.numel == 0


cdef TensorBase joined(str name, TensorBase r, TensorBase out, int mode):
    if mode == FRESH or r is out:
        return r
    if not can_cast(r.dtype, out.dtype):
        raise TypeError(f"torch.{name}(): input types can't be cast to the desired output type {dtype_text(out.dtype)}")
    return write_to_out(name, r, out, mode)


cdef object cat_backward(object grad, object shapes, int64_t dim):
    cdef list r = []
    cdef int64_t start = 0, n
    for shape in shapes:
        if tuple(shape) == (0,):
            r.append(grad.new_zeros(shape))
            continue
        n = shape[dim]
        r.append(grad.narrow(dim, start, n))
        start += n
    return tuple(r)


cdef object stack_backward(object grad, int64_t dim):
    return tuple(grad.unbind(dim))


cdef list promoted(list tensors):
    """The tensors in their common type; conversions are recorded."""
    cdef int code
    cdef TensorBase t
    if not tensors:
        return tensors
    code = (<TensorBase>tensors[0]).dtype
    for x in tensors:
        if (<TensorBase>x).dtype != code:
            code = common_type(tensors)
            return [x if (<TensorBase>x).dtype == code else x.to(dtype_of(code)) for x in tensors]
    return tensors


cdef object join(str name, object tensors, object dim, object out, bint stacking):
    cdef list given
    given = tensor_list(tensors, name, "tensors")
    if not stacking:
        if not given:
            raise ValueError("torch.cat(): expected a non-empty list of Tensors")
        for i, t in enumerate(given):
            if (<TensorBase>t).ndim == 0:
                raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    given = promoted(given)
    d = parse_int(dim, name, "dim")
    if out is None:
        return op_stack(given, d, None, FRESH) if stacking else op_cat(given, d, None, FRESH)
    check_out(out, name)
    if any_requires_grad(given) and grad_mode():
        refuse_out(name)
    r = op_stack(given, d, <TensorBase>out, OUT) if stacking else op_cat(given, d, <TensorBase>out, OUT)
    bump_version(<TensorBase>out)
    return r


cdef object cat_of(object tensors, object dim, object out, bint inplace):
    """One after another along dim. Their other sizes must agree (RuntimeError); types are promoted."""
    return join("cat", tensors, dim, out, False)


cdef object stack_of(object tensors, object dim, object out, bint inplace):
    """All of one shape, along a new dimension."""
    return join("stack", tensors, dim, out, True)


cdef TensorBase stacked_last(TensorBase first, int d, int64_t count, int dtype):
    """An empty stack of channels_last tensors: what they are joined to along d, that dimension split."""
    cdef int64_t sizes[6]
    cdef int64_t strides[6]
    cdef int64_t joined_sizes[5]
    cdef int k
    cdef TensorBase whole
    for k in range(first.ndim):
        joined_sizes[k] = first.sizes[k] * (count if k == d else 1)
    whole = empty_in_format(first.ndim, joined_sizes, dtype, place_of(first), True)
    for k in range(first.ndim + 1):
        sizes[k] = first.sizes[k] if k < d else count if k == d else first.sizes[k - 1]
        strides[k] = whole.strides[k] if k < d else whole.strides[k - 1]
    strides[d] = whole.strides[d] * first.sizes[d]
    return empty_strided_tensor(first.ndim + 1, sizes, strides, dtype, place_of(first))


cdef TensorBase stack_kernel(list tensors, int64_t dim, TensorBase out, int mode):
    cdef TensorBase first, t, r
    cdef int64_t sizes[MAX_DIMS + 1]
    cdef int d, k, i = 0
    cdef bint direct = True, last
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = <TensorBase>tensors[0]
    if first.ndim == MAX_DIMS:
        raise RuntimeError(f"stack: a tensor has at most {MAX_DIMS} dimensions")
    d = wrap_dim(dim, first.ndim + 1)
    last = d < first.ndim
    for x in tensors:
        t = <TensorBase>x
        last = last and suggests_last(t)
        if not same_sizes(t, first):
            raise hinted("stack", RuntimeError(f"stack expects each tensor to be equal size, but got {shape_text(first)} at entry 0 and {shape_text(t)} at entry {i}"))
        if t.dtype != first.dtype or not t.contiguous:
            direct = False
        i += 1
    for k in range(first.ndim + 1):
        sizes[k] = first.sizes[k] if k < d else len(tensors) if k == d else first.sizes[k - 1]
    r = None
    if mode == OUT and out.dtype == first.dtype and direct and fits_as_it_is(out, first.ndim + 1, sizes):
        prepare_out("stack", out, first.ndim + 1, sizes, first.dtype, mode)
        for x in tensors:
            check_no_overlap("stack", out, <TensorBase>x, False)
        r = out
    if r is None and last:
        r = stacked_last(first, d, len(tensors), common_type(tensors))
    if r is None:
        r = empty_tensor(first.ndim + 1, sizes, common_type(tensors), place_of(first))
    run_join(r.device_type, r, tensors, d, True, CONTIGUOUS_PARTS if direct and r.contiguous else ANY_PARTS)
    return joined("stack", r, out, mode)


# ---- triangles ------------------------------------------------------------------------------------------------------

cdef TensorBase triangle(str name, TensorBase self, int64_t diagonal, bint upper, TensorBase out, int mode):
    cdef TensorBase r
    if self.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    if mode == INPLACE:
        prepare_write(out.storage, name)
    elif mode == OUT:
        check_out_type(name, out, self.dtype)
    r = self if mode == INPLACE and self.contiguous else empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    if self.numel:
        run_triangle(self.device_type, contiguous_of(self), r, diagonal, upper)
    if mode == INPLACE and r is not self:
        copy_elements(self, r)
        return self
    return r if mode == INPLACE else joined(name, r, out, mode)


cdef TensorBase tril_kernel(TensorBase self, int64_t diagonal, TensorBase out, int mode):
    return triangle("tril", self, diagonal, False, out, mode)


cdef TensorBase triu_kernel(TensorBase self, int64_t diagonal, TensorBase out, int mode):
    return triangle("triu", self, diagonal, True, out, mode)


# ---- pieces: what each dimension of a result consists of ---------------------------------------------------------------

cdef void add_piece(PieceArgs* given, int d, int64_t count, int64_t at, int step) noexcept:
    cdef int k = given.pieces[d]
    if count > 0:
        given.along[d].piece[k].count = count
        given.along[d].piece[k].at = at
        given.along[d].piece[k].step = step
        given.pieces[d] = k + 1


cdef void arrange_pieces(PieceArgs* a, PieceArgs* given, TensorBase source, TensorBase result) noexcept:
    """Geometry for the kernels from the pieces of each dimension: in the order in which result lies, dimensions joined where both sides allow."""
    cdef int order[MAX_DIMS]
    cdef int d, k, j, n = 0
    cdef int64_t item = ITEM_SIZE[result.dtype], size, offset = 0
    cdef bint whole, forward
    for d in range(result.ndim):
        k = d
        while k > 0 and result.strides[order[k - 1]] < result.strides[d]:
            order[k] = order[k - 1]
            k -= 1
        order[k] = d
    a.group = 1
    for j in range(result.ndim):
        d = order[j]
        size = result.sizes[d]
        if size == 1 and given.along[d].piece[0].step != PIECE_CONSTANT:
            offset += given.along[d].piece[0].at * source.strides[d] * item
            continue
        whole = given.pieces[d] == 1 and given.along[d].piece[0].step == 1 and size == source.sizes[d]
        forward = True
        for k in range(a.pieces[n - 1] if n else 0):
            forward = forward and (a.along[n - 1].piece[k].step == 1 or a.along[n - 1].piece[k].step == PIECE_CONSTANT)
        if n and whole and forward and a.result[n - 1] == result.strides[d] * size * item and a.source[n - 1] == source.strides[d] * size * item:
            n -= 1
            for k in range(a.pieces[n]):
                a.along[n].piece[k].count *= size
                a.along[n].piece[k].at *= size
            a.size[n] *= size
        else:
            a.size[n] = size
            a.pieces[n] = given.pieces[d]
            for k in range(given.pieces[d]):
                a.along[n].piece[k] = given.along[d].piece[k]
        a.result[n] = result.strides[d] * item
        a.source[n] = source.strides[d] * item
        n += 1
    if n == 0:
        a.size[0] = 1
        a.result[0] = a.source[0] = item
        a.pieces[0] = 0
        add_piece(a, 0, 1, 0, 1)
        n = 1
    k = 0
    while k < n and a.pieces[k] == 1 and a.along[k].piece[0].step == 1:
        k += 1
    for j in range(k, n):
        a.group *= a.size[j]
    a.nd = n
    a.item = <int>item
    a.dtype = result.dtype
    a.to = memory_of(result)
    a.from_data = memory_of(source) + offset


cdef int write_pieces(PieceArgs* given, TensorBase source, TensorBase result, const Scalar* margin=NULL, bint sums=False) except -1:
    """result <- pieces of source, margins of a number, or the adjoint: source += the pieces of result."""
    cdef PieceArgs a
    if result.numel == 0:
        return 0
    a.constant = given.constant
    a.filled = 0
    arrange_pieces(&a, given, source, result)
    return run_pieces(result.device_type, &a, given, source, result, margin, sums)


cdef void no_pieces(PieceArgs* given, int ndim) noexcept:
    cdef int d
    for d in range(ndim):
        given.pieces[d] = 0


# ---- flip and roll --------------------------------------------------------------------------------------------------

cdef TensorBase flip_kernel(TensorBase self, const Dims* dims):
    cdef bint flipped[MAX_DIMS]
    cdef PieceArgs given
    cdef TensorBase r
    cdef int k, d
    for k in range(MAX_DIMS):
        flipped[k] = False
    for k in range(dims.n):
        d = wrap_dim(dims.v[k], self.ndim)
        if flipped[d]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        flipped[d] = True
    r = empty_like_tensor(self, self.dtype)
    no_pieces(&given, self.ndim)
    for d in range(self.ndim):
        add_piece(&given, d, self.sizes[d], self.sizes[d] - 1 if flipped[d] else 0, -1 if flipped[d] else 1)
    write_pieces(&given, self, r)
    return r


def flip(input, *positions, dims=None):
    """A copy with the order of the elements reversed along dims: flip(0, 1), flip((0, 1)) or flip(dims=(0, 1))."""
    cdef Dims d
    cdef TensorBase x = as_tensor_arg(input, "flip", "input")
    if dims is None:
        if not positions:
            raise TypeError("flip() missing 1 required positional arguments: \"dims\"")
        dims = positions
    elif positions:
        raise TypeError("flip() got multiple values for argument 'dims'")
    elif isinstance(dims, int):
        raise TypeError("flip(): argument 'dims' must be tuple of ints, not int")
    parse_size(tuple(dims), &d, "flip", "dims")
    return op_flip(x, &d)


cdef TensorBase roll_kernel(TensorBase self, const Dims* shifts, const Dims* dims):
    cdef int64_t shift[MAX_DIMS]
    cdef PieceArgs given
    cdef TensorBase r = empty_in_format(self.ndim, self.sizes, self.dtype, place_of(self), suggests_last(self))
    cdef int k, d
    if shifts.n != dims.n:
        raise RuntimeError(f"shifts and dimensions must align. shifts: {shifts.n}, dims:{dims.n}")
    memset(shift, 0, sizeof(shift))
    for k in range(dims.n):
        if self.ndim == 0:
            raise IndexError(f"Dimension specified as {dims.v[k]} but tensor has no dimensions")
        d = wrap_dim(dims.v[k], self.ndim)
        if self.sizes[d]:
            shift[d] = (shift[d] + shifts.v[k] % self.sizes[d] + self.sizes[d]) % self.sizes[d]
    no_pieces(&given, self.ndim)
    for d in range(self.ndim):
        add_piece(&given, d, shift[d], self.sizes[d] - shift[d], 1)
        add_piece(&given, d, self.sizes[d] - shift[d], 0, 1)
    write_pieces(&given, self, r)
    return r


cdef object rolled(object input, object shifts, object dims, object out, bint inplace):
    """The elements moved by shifts along dims (over the flat tensor without dims); what leaves at the end enters at the start."""
    cdef TensorBase x = as_tensor_arg(input, "roll", "input")
    cdef Dims s, d
    parse_dims(shifts, &s, "roll", "shifts")
    d.n = 0
    if dims is not None:
        parse_dims(dims, &d, "roll", "dims")
    if s.n == 0:
        raise RuntimeError("`shifts` required")
    if d.n == 0 and s.n == 1:
        d.n = 1
        d.v[0] = 0
        return op_roll(x.reshape(-1), &s, &d).reshape(shape_of(x)) if x.ndim != 1 else op_roll(x, &s, &d)
    if d.n != s.n:
        raise RuntimeError(f"shifts and dimensions must align. shifts: {s.n}, dims:{d.n}")
    return op_roll(x, &s, &d)


# ---- margins --------------------------------------------------------------------------------------------------------

cdef enum Margin:
    REFLECT
    REPLICATE
    CIRCULAR

cdef dict margin_kinds = {"reflect": REFLECT, "replicate": REPLICATE, "circular": CIRCULAR}


cdef TensorBase padded_result(TensorBase self, const int64_t* sizes, bint keep_format):
    """Contiguous, or in the channels_last format that self has."""
    checked_numel(self.ndim, sizes)
    return empty_in_format(self.ndim, sizes, self.dtype, place_of(self), keep_format and suggests_last(self))


cdef TensorBase constant_pad_nd_kernel(TensorBase self, const Dims* pad, const Scalar* value):
    """Margins of a value (or, where negative, cuts) at both ends of the last dimensions."""
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t before, after, inner
    cdef PieceArgs given
    cdef TensorBase r, v
    cdef int k, d, n = pad.n // 2
    cdef bint adds = False        # cuts alone keep the order of dimensions
    if pad.n % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {pad.n}")
    if n > self.ndim:
        raise RuntimeError(f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is {pad.n} while the input has {self.ndim} dimensions.")
    no_pieces(&given, self.ndim)
    for d in range(self.ndim):
        k = self.ndim - 1 - d
        before = pad.v[2 * k] if k < n else 0
        after = pad.v[2 * k + 1] if k < n else 0
        if before > (<int64_t>1 << 60) or after > (<int64_t>1 << 60) or before < -(<int64_t>1 << 60) or after < -(<int64_t>1 << 60):
            raise RuntimeError(f"constant_pad_nd: padding ({before}, {after}) is out of range")
        sizes[d] = self.sizes[d] + before + after
        if sizes[d] < 0:
            raise RuntimeError(f"The input size {self.sizes[d]}, plus negative padding {before} and {after} resulted in a negative output size, which is invalid. Check dimension {d} of your input.")
        adds = adds or before > 0 or after > 0
        inner = max(<int64_t>0, self.sizes[d] + min(before, <int64_t>0) + min(after, <int64_t>0))
        add_piece(&given, d, before if inner else sizes[d], 0, PIECE_CONSTANT)
        add_piece(&given, d, inner, max(-before, <int64_t>0), 1)
        add_piece(&given, d, after if inner else 0, 0, PIECE_CONSTANT)
    r = padded_result(self, sizes, True) if adds else empty_like_tensor(make_view(self, self.ndim, sizes, self.strides, self.offset), self.dtype)
    check_number(value, r.dtype)
    v = number_tensor(self.dtype, value)          # in host memory
    memcpy(given.constant, data_of(v), ITEM_SIZE[v.dtype])
    write_pieces(&given, self, r, value)
    return r


cdef object negated(object values):
    return [-v for v in values]


cdef int margin_pieces(PieceArgs* given, int ndim, const int64_t* sizes, const Dims* pad, int64_t kind, int64_t* padded) except -1:
    """Check the margins of the last dimensions, fill in their pieces and the padded sizes."""
    cdef int64_t n, before, after, at, kept
    cdef int d, k
    if pad.n % 2 or pad.n > 2 * ndim or kind < REFLECT or kind > CIRCULAR:
        raise RuntimeError(f"pad: {pad.n} margins of kind {kind} do not fit {ndim} dimensions")
    no_pieces(given, ndim)
    for d in range(ndim):
        k = ndim - 1 - d
        n = sizes[d]
        before = pad.v[2 * k] if 2 * k < pad.n else 0
        after = pad.v[2 * k + 1] if 2 * k < pad.n else 0
        if before or after:
            check_margin(ndim, sizes, d, before, after, kind)
        at = max(-before, <int64_t>0)
        kept = n - at - max(-after, <int64_t>0)
        if kind == REFLECT:
            add_piece(given, d, before, before, -1)
            add_piece(given, d, kept, at, 1)
            add_piece(given, d, after, n - 2, -1)
        elif kind == REPLICATE:
            add_piece(given, d, before, 0, 0)
            add_piece(given, d, kept, at, 1)
            add_piece(given, d, after, n - 1, 0)
        else:
            # what negative margins cut off does not come back at the other end
            add_piece(given, d, before, at + kept - before, 1)
            add_piece(given, d, kept, at, 1)
            add_piece(given, d, after, at, 1)
        padded[d] = n + before + after
    return 0


cdef int check_margin(int ndim, const int64_t* sizes, int dim, int64_t before, int64_t after, int64_t kind) except -1:
    cdef int64_t n = sizes[dim], kept = n + min(before, <int64_t>0) + min(after, <int64_t>0)
    cdef int64_t most = n - 1 if kind == REFLECT else kept if kind == CIRCULAR else <int64_t>1 << 60
    if n == 0:
        raise RuntimeError(f"Expected non-zero size along dimension {dim} for {list(margin_kinds)[kind]} padding, but got input of shape {sizes_text(ndim, sizes)}")
    if before > most or after > most:
        if kind == CIRCULAR:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        raise RuntimeError(f"Argument #{4 + 2 * (ndim - 1 - dim)}: Padding size should be less than the corresponding input dimension, but got: padding ({before}, {after}) at dimension {dim} of input {sizes_text(ndim, sizes)}")
    if before < -n or after < -n or n + before + after < 0 or n + before + after == 0 and kind != CIRCULAR:
        raise RuntimeError(f"input (size {n}) is too small: padding ({before}, {after}) at dimension {dim} gives size {n + before + after}")
    return 0


cdef TensorBase _pad_margins_kernel(TensorBase self, const Dims* pad, int64_t kind):
    cdef int64_t sizes[MAX_DIMS]
    cdef PieceArgs given
    cdef TensorBase r
    margin_pieces(&given, self.ndim, self.sizes, pad, kind, sizes)
    r = padded_result(self, sizes, kind != CIRCULAR)
    write_pieces(&given, self, r)
    return r


cdef TensorBase _pad_margins_backward_kernel(TensorBase grad_output, const Dims* size, const Dims* pad, int64_t kind):
    cdef int64_t sizes[MAX_DIMS]
    cdef PieceArgs given
    cdef TensorBase r
    cdef int d
    margin_pieces(&given, size.n, size.v, pad, kind, sizes)
    for d in range(grad_output.ndim):
        if grad_output.ndim != size.n or grad_output.sizes[d] != sizes[d]:
            raise RuntimeError(f"pad: a gradient of shape {shape_text(grad_output)} does not fit an input of {list(dims_tuple(size))}")
    if category[grad_output.dtype] < CAT_FLOAT:
        raise NotImplementedError(f"pad: there is no gradient of type {dtype_text(grad_output.dtype)}")
    r = padded_result(grad_output, size.v, kind != CIRCULAR)
    (<object>r).zero_()
    write_pieces(&given, r, grad_output, NULL, True)
    return r


def pad(input, pad, mode="constant", value=None):
    """Margins around the last dimensions, given from the last backwards: constant, reflect, replicate or circular."""
    cdef TensorBase x = as_tensor_arg(input, "pad", "input")
    cdef Dims d
    cdef int k, n
    parse_dims(pad, &d, "pad", "pad")
    n = d.n // 2
    if d.n % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if d.n > 2 * x.ndim:
        raise RuntimeError(f"Padding length should be less than or equal to two times the input dimension but got padding length {d.n} and input of dimension {x.ndim}")
    if mode == "constant":
        return _ops.constant_pad_nd(input, dims_tuple(&d), 0 if value is None else parse_double(value, "pad", "value"))
    if value is not None and value != 0:
        raise RuntimeError(f"Padding mode \"{mode}\" doesn't take in value argument")
    if mode not in margin_kinds:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if not (n <= 3 and (x.ndim == n + 1 or x.ndim == n + 2)):
        raise NotImplementedError("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
    for k in range(x.ndim - n):
        if mode != "circular" and x.sizes[k] == 0 and (k > 0 or x.ndim == n + 1):
            raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {shape_text(x)}")
    if autocasting() and (mode == "replicate" or mode == "reflect" and n < 3):
        x = cast_operand(x, "f-")
    return op__pad_margins(x, &d, margin_kinds[mode])


def _in_format_of(x, TensorBase like not None):
    """x, in channels_last where `like` suggests it: for compositions."""
    return in_format(x, suggests_last(like))


# ---- for repeat_interleave (tensorrt_lite/_compositions/joining.py) ----------------------------------------------------

def _interleave_index(TensorBase counts not None, output_size):
    """i repeated counts[i] times, int64. counts: int64, in host memory."""
    cdef TensorBase c, r
    cdef int64_t total = 0, i, j, k = 0
    cdef const int64_t* p
    cdef int64_t* q
    if counts.keys & K_WRAPPED:
        from tensorrt_lite._C.core.transform import readable_value
        counts = <TensorBase?>readable_value(counts, "repeat_interleave")
    if counts.device_type != DEV_CPU:
        raise NotImplementedError("repeat_interleave: the result's shape depends on the data, which meta tensors do not have")
    c = contiguous_of(counts)
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
        for j in range(min(p[i], total - k)):          # another thread may have changed them
            q[k] = i
            k += 1
    if k != total:
        raise RuntimeError("repeat_interleave: repeats changed while they were read")
    return r
