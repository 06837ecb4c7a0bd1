# Kernels of cat, stack, tril and triu; flip, roll and padding are in joining_pieces.pxi, compositions in joining_more.pxi.
from tensorrt_lite._C.autograd.autocast cimport autocasting, cast_operand
include "pieces.pxi"
include "more.pxi"


cdef int run_cat(TensorBase out, list pieces, int64_t outer) except -1:
    """Fill `out` (contiguous) with rows that consist of one part of each piece (contiguous, of out's type)."""
    cdef CatArgs a
    cdef int n = 0, k, total = len(pieces)
    cdef TensorBase t
    cdef int64_t nbytes = out.numel * ITEM_SIZE[out.dtype]
    cdef char* memory
    cdef trt_block** held
    cdef trt_block* target
    cdef bint words
    if nbytes == 0:
        return 0
    memory = <char*>malloc(total * 3 * sizeof(void*))
    if memory == NULL:
        raise MemoryError
    a.part = <const char**>memory
    held = <trt_block**>(memory + 2 * total * sizeof(void*))
    a.bytes = <const int64_t*>(memory + total * sizeof(void*))
    for x in pieces:
        t = <TensorBase>x
        if t.numel:
            a.part[n] = data_of(t)
            (<int64_t*>a.bytes)[n] = t.numel // outer * ITEM_SIZE[t.dtype]
            held[n] = t.storage.block
            n += 1
    a.n = n
    a.out = data_of(out)
    a.row = nbytes // outer
    words = n > 1 and a.bytes[0] in (1, 2, 4, 8, 16)
    for k in range(1, n):
        words = words and a.bytes[k] == a.bytes[0]
    if nbytes < 65536:
        if words:
            interleave_parts(&a, 0, outer)
        else:
            cat_rows(&a, 0, nbytes)
        free(memory)
        return 0
    target = out.storage.block
    for k in range(n):
        trt_block_hold(held[k])
    trt_block_hold(target)
    with nogil:
        if words:
            parallel_for(outer, 1 + COPY_GRAIN // a.row, 64, interleave_parts, &a)
        else:
            parallel_for(nbytes, COPY_GRAIN, 4096, cat_rows, &a)
    for k in range(n):
        block_drop(held[k])
    block_drop(target)
    free(memory)
    return 0


cdef bint is_nothing(TensorBase t) noexcept:
    """A tensor of shape (0), which cat skips whatever the other shapes are."""
    return t.ndim == 1 and t.sizes[0] == 0


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


cdef TensorBase channels_first_view(TensorBase t):
    """A channels-last tensor with its dimensions in the order they lie in memory: N, spatial..., C."""
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int k
    sizes[0] = t.sizes[0]
    strides[0] = t.strides[0]
    for k in range(2, t.ndim):
        sizes[k - 1] = t.sizes[k]
        strides[k - 1] = t.strides[k]
    sizes[t.ndim - 1] = t.sizes[1]
    strides[t.ndim - 1] = t.strides[1]
    return make_view(t, t.ndim, sizes, strides, t.offset)


cdef TensorBase cat_cpu(list tensors, int64_t dim, TensorBase out, int mode):
    cdef TensorBase first = None, t, r, target
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int64_t total = 0, outer = 1, start
    cdef int d, k, i = 0, code, last_format = 0
    cdef bint direct = True, channels_last = True
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
        wrap_dim(dim, 1)
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
                    raise RuntimeError(f"Sizes of tensors must match except in dimension {d}. Expected size {first.sizes[k]} but got size {t.sizes[k]} for tensor number {i} in the list.")
            total += t.sizes[d]
            if t.dtype != code or not t.contiguous:
                direct = False
            if channels_last and (t.dtype != code or t.contiguous or not (is_channels_last(t) or is_channels_last_3d(t))):
                channels_last = False
        else:
            channels_last = False
        i += 1
    for k in range(first.ndim):
        sizes[k] = first.sizes[k]
    sizes[d] = total
    if channels_last:
        channels_last_strides(first.ndim, sizes, strides)
        r = empty_strided_tensor(first.ndim, sizes, strides, code, place_of(first))
    else:
        if mode == OUT and out.dtype == code and direct and fits_as_it_is(out, first.ndim, sizes):
            prepare_out("cat", out, first.ndim, sizes, code, mode)
            for x in tensors:
                check_no_overlap("cat", out, <TensorBase>x, False)
            r = out
        else:
            r = empty_tensor(first.ndim, sizes, code, place_of(first))
    if r.device_type == DEV_META:
        return joined("cat", r, out, mode)
    if channels_last and r.device_type == DEV_CPU:
        d = 0 if d == 0 else first.ndim - 1 if d == 1 else d - 1
        target = channels_first_view(r)
        for k in range(d):
            outer *= target.sizes[k]
        run_cat(target, [channels_first_view(<TensorBase>x) for x in tensors], outer)
    elif direct and r.contiguous and r.device_type == DEV_CPU:
        for k in range(d):
            outer *= sizes[k]
        run_cat(r, tensors, outer)
    else:
        start = 0
        for x in tensors:
            t = <TensorBase>x
            if is_nothing(t):
                continue
            sizes[d] = t.sizes[d]
            copy_elements(make_view(r, r.ndim, sizes, r.strides, r.offset + start * r.strides[d]), t)
            start += t.sizes[d]
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


cdef object join(object function, str name, object tensors, object dim, object out, bint stacking):
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


def cat(tensors, dim=0, *, out=None):
    """The tensors one after another along dim. Their other sizes must agree (RuntimeError); types are promoted."""
    return join(cat, "cat", tensors, dim, out, False)


def stack(tensors, dim=0, *, out=None):
    """The tensors, all of one shape, along a new dimension."""
    return join(stack, "stack", tensors, dim, out, True)


cdef TensorBase stack_cpu(list tensors, int64_t dim, TensorBase out, int mode):
    cdef TensorBase first, t, r
    cdef int64_t sizes[MAX_DIMS + 1]
    cdef int64_t strides[MAX_DIMS + 1]
    cdef int64_t outer = 1
    cdef int d, k, i = 0
    cdef bint direct = True
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    first = <TensorBase>tensors[0]
    if first.ndim == MAX_DIMS:
        raise RuntimeError(f"stack: a tensor has at most {MAX_DIMS} dimensions")
    d = wrap_dim(dim, first.ndim + 1)
    for x in tensors:
        t = <TensorBase>x
        if not same_sizes(t, first):
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {shape_text(first)} at entry 0 and {shape_text(t)} at entry {i}")
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
    if r is None:
        r = empty_tensor(first.ndim + 1, sizes, common_type(tensors), place_of(first))
    if r.device_type == DEV_META:
        return joined("stack", r, out, mode)
    if direct and r.contiguous and r.device_type == DEV_CPU:
        for k in range(d):
            outer *= sizes[k]
        run_cat(r, tensors, outer)
    else:
        for k in range(first.ndim):
            strides[k] = r.strides[k] if k < d else r.strides[k + 1]
        i = 0
        for x in tensors:
            copy_elements(make_view(r, first.ndim, first.sizes, strides, r.offset + i * r.strides[d]), <TensorBase>x)
            i += 1
    return joined("stack", r, out, mode)


# ---- triangles ------------------------------------------------------------------------------------------------------

cdef struct TriangleJob:
    char* dst
    const char* src
    int64_t rows, cols, diagonal
    bint upper
    int item


cdef void triangle_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Rows [begin, end) of the stacked matrices."""
    cdef TriangleJob* job = <TriangleJob*>context
    cdef int64_t row, edge, width = job.cols * job.item
    cdef char* d
    cdef const char* s
    for row in range(begin, end):
        d = job.dst + row * width
        s = job.src + row * width
        # columns before `edge` belong to the lower part
        edge = row % job.rows + job.diagonal + (0 if job.upper else 1)
        edge = max(<int64_t>0, min(edge, job.cols)) * job.item
        if job.upper:
            memset(d, 0, edge)
            if d != s:
                memcpy(d + edge, s + edge, width - edge)
        else:
            if d != s:
                memcpy(d, s, edge)
            memset(d + edge, 0, width - edge)


cdef TensorBase triangle(str name, TensorBase self, int64_t diagonal, bint upper, TensorBase out, int mode):
    cdef TriangleJob job
    cdef TensorBase x, r
    cdef trt_block* held[2]
    cdef int64_t rows
    if self.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
    if mode == INPLACE:
        prepare_out(name, out, self.ndim, self.sizes, self.dtype, mode)
    elif mode == OUT:
        check_out_type(name, out, self.dtype)
    r = self if mode == INPLACE and self.contiguous else empty_tensor(self.ndim, self.sizes, self.dtype, place_of(self))
    if self.device_type != DEV_META and self.numel:
        x = contiguous_of(self)
        if x.device_type == DEV_CUDA:
            device_triangle(x, r, diagonal, upper)
            if mode == INPLACE and r is not self:
                copy_elements(self, r)
                return self
            return r if mode == INPLACE else joined(name, r, out, mode)
        job.rows = self.sizes[self.ndim - 2]
        job.cols = self.sizes[self.ndim - 1]
        # clamped so that adding a row number can't overflow
        job.diagonal = max(-job.rows - 1, min(diagonal, job.cols + 1))
        job.upper = upper
        job.item = ITEM_SIZE[self.dtype]
        job.dst = data_of(r)
        job.src = data_of(x)
        rows = self.numel // job.cols
        if self.numel < 8192:
            triangle_task(&job, 0, rows)
        else:
            held[0] = x.storage.block
            held[1] = r.storage.block
            trt_block_hold(held[0])
            trt_block_hold(held[1])
            with nogil:
                parallel_for(rows, max(<int64_t>1, GRAIN // job.cols), 1, triangle_task, &job)
            block_drop(held[0])
            block_drop(held[1])
    if mode == INPLACE and r is not self:
        copy_elements(self, r)
        return self
    return r if mode == INPLACE else joined(name, r, out, mode)


cdef TensorBase tril_cpu(TensorBase self, int64_t diagonal, TensorBase out, int mode):
    return triangle("tril", self, diagonal, False, out, mode)


cdef TensorBase triu_cpu(TensorBase self, int64_t diagonal, TensorBase out, int mode):
    return triangle("triu", self, diagonal, True, out, mode)


EXTRA_EXPORTS = {
    "cat": "f", "stack": "f", "flip": "fm", "hstack": "f", "vstack": "f", "dstack": "f", "column_stack": "f", "repeat": "m", "tile": "fm",
    "repeat_interleave": "fm", "fliplr": "fm", "flipud": "fm", "roll": "fm", "rot90": "fm", "tril_indices": "f", "triu_indices": "f", "diag": "fm",
    "diag_embed": "fm", "diagflat": "fm", "block_diag": "f", "meshgrid": "f", "cartesian_prod": "f", "combinations": "f", "pad": "",
    "pixel_shuffle": "f", "pixel_unshuffle": "f", "channel_shuffle": "f", "swapaxes": "fm", "atleast_1d": "f", "atleast_2d": "f",
    "atleast_3d": "f", "ravel": "fm", "unsafe_chunk": "fm", "unsafe_split": "fm", "hsplit": "fm", "vsplit": "fm", "dsplit": "fm", "narrow_copy": "fm",
    "_pad_circular": "", "swapaxes_": "m", "trace": "fm",
}
METHOD_ALIASES = {"swapdims": swapaxes, "moveaxis": moveaxis, "swapdims_": swapaxes_, "adjoint": adjoint}
FUNCTION_ALIASES = {"row_stack": vstack, "swapdims": swapaxes, "moveaxis": moveaxis, "adjoint": adjoint}
