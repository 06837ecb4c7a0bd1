# Results whose every dimension consists of pieces of the input's: flip, roll and margins, written in one pass.

cdef extern from "joining.h" nogil:
    enum:
        PIECE_CONSTANT
    ctypedef struct Piece:
        int64_t count, at
        int step
    ctypedef struct PieceArgs:
        int nd
        int64_t size[64]
        int64_t result[64]
        int64_t source[64]
        int pieces[64]
        Piece piece[64][3]
        char* to
        char* source_data "from"
        int64_t group
        int item, dtype, filled
        char constant[16]
    ctypedef struct CatArgs:
        int64_t n, row
        const char** part
        const int64_t* bytes
        char* out

cdef extern from *:
    """
    ISA_TASK(piece_copies)
    ISA_TASK(piece_sums)
    ISA_TASK(cat_rows)
    ISA_TASK(interleave_parts)
    """
    task_fn trt_piece_copies "piece_copies"()
    task_fn trt_piece_sums "piece_sums"()
    task_fn trt_cat_rows "cat_rows"()
    task_fn trt_interleave_parts "interleave_parts"()

cdef task_fn piece_copies = trt_piece_copies()
cdef task_fn piece_sums = trt_piece_sums()
cdef task_fn cat_rows = trt_cat_rows()
cdef task_fn interleave_parts = trt_interleave_parts()


# on CUDA, set by cysrc/cuda/indexing.pyx
cdef int (*device_triangle)(TensorBase x, TensorBase r, int64_t diagonal, bint upper) except -1
cdef int (*device_pieces)(PieceArgs* a, TensorBase result, bint sums) except -1


def _set_device_kernels(size_t triangle_, size_t pieces):
    (<void**>&device_triangle)[0] = <void*>triangle_
    (<void**>&device_pieces)[0] = <void*>pieces


cdef void add_piece(PieceArgs* given, int d, int64_t count, int64_t at, int step) noexcept:
    cdef int k = given.pieces[d]
    if count > 0:
        given.piece[d][k].count = count
        given.piece[d][k].at = at
        given.piece[d][k].step = step
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
        if size == 1 and given.piece[d][0].step != PIECE_CONSTANT:
            offset += given.piece[d][0].at * source.strides[d] * item
            continue
        whole = given.pieces[d] == 1 and given.piece[d][0].step == 1 and size == source.sizes[d]
        forward = True
        for k in range(a.pieces[n - 1] if n else 0):
            forward = forward and (a.piece[n - 1][k].step == 1 or a.piece[n - 1][k].step == PIECE_CONSTANT)
        if n and whole and forward and a.result[n - 1] == result.strides[d] * size * item and a.source[n - 1] == source.strides[d] * size * item:
            n -= 1
            for k in range(a.pieces[n]):
                a.piece[n][k].count *= size
                a.piece[n][k].at *= size
            a.size[n] *= size
        else:
            a.size[n] = size
            a.pieces[n] = given.pieces[d]
            for k in range(given.pieces[d]):
                a.piece[n][k] = given.piece[d][k]
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
    while k < n and a.pieces[k] == 1 and a.piece[k][0].step == 1:
        k += 1
    for j in range(k, n):
        a.group *= a.size[j]
    a.nd = n
    a.item = <int>item
    a.dtype = result.dtype
    a.to = data_of(result)
    a.source_data = data_of(source) + offset


cdef int run_pieces(PieceArgs* given, TensorBase source, TensorBase result, bint sums=False) except -1:
    """result <- pieces of source, or the adjoint: source += the pieces of result."""
    cdef PieceArgs a
    cdef int d
    if result.numel == 0:
        return 0
    a.constant = given.constant
    a.filled = given.filled
    arrange_pieces(&a, given, source, result)
    if result.device_type == DEV_CUDA and sums:
        # each element of the source gathers the positions it went to: dimension by dimension
        given.nd = result.ndim
        given.to = data_of(source)
        given.source_data = data_of(result)
        for d in range(result.ndim):
            given.size[d] = source.sizes[d]
            given.result[d] = result.strides[d] * ITEM_SIZE[result.dtype]
            given.source[d] = source.strides[d] * ITEM_SIZE[source.dtype]
        return device_pieces(given, result, True)
    if result.device_type == DEV_CUDA:
        return device_pieces(&a, result, False)
    if sums:
        return run_held(piece_sums, &a, result.numel // a.group, result.numel, source, result)
    return run_held(piece_copies, &a, result.numel, result.numel, source, result)


cdef void no_pieces(PieceArgs* given, int ndim) noexcept:
    cdef int d
    given.filled = 0
    for d in range(ndim):
        given.pieces[d] = 0


# ---- flip and roll --------------------------------------------------------------------------------------------------

cdef TensorBase flip_cpu(TensorBase self, const Dims* dims):
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
    if self.device_type == DEV_META:
        return r
    no_pieces(&given, self.ndim)
    for d in range(self.ndim):
        add_piece(&given, d, self.sizes[d], self.sizes[d] - 1 if flipped[d] else 0, -1 if flipped[d] else 1)
    run_pieces(&given, self, r)
    return r


def flip(input, *positions, dims=None):
    """A copy with the order of the elements reversed along dims: flip(0, 1), flip((0, 1)) or flip(dims=(0, 1))."""
    cdef Dims d
    cdef TensorBase x = as_tensor_arg(input, "flip", "input")
    if dims is None:
        dims = positions
    elif positions:
        raise TypeError("flip() got multiple values for argument 'dims'")
    elif isinstance(dims, int):
        raise TypeError("flip(): argument 'dims' must be tuple of ints, not int")
    parse_size(tuple(dims), &d, "flip", "dims")
    return op_flip(x, &d)


cdef TensorBase roll_cpu(TensorBase self, const Dims* shifts, const Dims* dims):
    cdef int64_t shift[MAX_DIMS]
    cdef PieceArgs given
    cdef TensorBase r = empty_like_tensor(self, self.dtype)
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
    if self.device_type == DEV_META:
        return r
    no_pieces(&given, self.ndim)
    for d in range(self.ndim):
        add_piece(&given, d, shift[d], self.sizes[d] - shift[d], 1)
        add_piece(&given, d, self.sizes[d] - shift[d], 0, 1)
    run_pieces(&given, self, r)
    return r


def roll(input, shifts, dims=None):
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
    cdef int64_t strides[MAX_DIMS]
    if keep_format and not self.contiguous and (is_channels_last(self) or is_channels_last_3d(self)):
        checked_numel(self.ndim, sizes)
        channels_last_strides(self.ndim, sizes, strides)
        return empty_strided_tensor(self.ndim, sizes, strides, self.dtype, place_of(self))
    return empty_tensor(self.ndim, sizes, self.dtype, place_of(self))


cdef enum:
    SHORT_LINE = 64                # elements of a line below which margins are filled before, all at once


cdef TensorBase constant_pad_nd_cpu(TensorBase self, const Dims* pad, const Scalar* value):
    """Margins of a value (or, where negative, cuts) at both ends of the last dimensions."""
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t before, after, inner
    cdef PieceArgs given
    cdef TensorBase r, v
    cdef int k, d, n = pad.n // 2
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
        inner = max(<int64_t>0, self.sizes[d] + min(before, <int64_t>0) + min(after, <int64_t>0))
        add_piece(&given, d, before if inner else sizes[d], 0, PIECE_CONSTANT)
        add_piece(&given, d, inner, max(-before, <int64_t>0), 1)
        add_piece(&given, d, after if inner else 0, 0, PIECE_CONSTANT)
    r = padded_result(self, sizes, True)
    check_number(value, r.dtype)
    if r.device_type == DEV_META:
        return r
    if r.ndim and r.sizes[r.ndim - 1] < SHORT_LINE and r.device_type == DEV_CPU:
        fill_elements(r, value)
        given.filled = 1
    v = number_tensor(self.dtype, value)          # in host memory
    memcpy(given.constant, data_of(v), ITEM_SIZE[v.dtype])
    run_pieces(&given, self, r)
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


cdef TensorBase _pad_margins_cpu(TensorBase self, const Dims* pad, int64_t kind):
    cdef int64_t sizes[MAX_DIMS]
    cdef PieceArgs given
    cdef TensorBase r
    margin_pieces(&given, self.ndim, self.sizes, pad, kind, sizes)
    r = padded_result(self, sizes, kind != CIRCULAR)
    if self.device_type != DEV_META:
        run_pieces(&given, self, r)
    return r


cdef TensorBase _pad_margins_backward_cpu(TensorBase grad_output, const Dims* size, const Dims* pad, int64_t kind):
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
    if r.device_type != DEV_META:
        (<object>r).zero_()
        run_pieces(&given, r, grad_output, True)
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
        return _ops.constant_pad_nd(input, dims_tuple(&d), 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f"Padding mode \"{mode}\" doesn't take in value argument")
    if mode not in margin_kinds:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if not (n <= 3 and (x.ndim == n + 1 or x.ndim == n + 2)):
        raise NotImplementedError("Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now")
    for k in range(x.ndim - n):
        if x.sizes[k] == 0 and (k > 0 or x.ndim == n + 1):
            raise RuntimeError(f"Expected {n + 1}D or {n + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {shape_text(x)}")
    if autocasting() and (mode == "replicate" or mode == "reflect" and n < 3):
        x = cast_operand(x, "f-")
    return op__pad_margins(x, &d, margin_kinds[mode])


def _pad_circular(input, pad):
    """pad with mode circular."""
    return _ops.pad(input, pad, "circular")
