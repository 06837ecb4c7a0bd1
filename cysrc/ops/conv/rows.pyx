# The kernels of the rows `convolution` and `convolution_backward`, over conv.pyx, and their derivatives.

# ---- the rows ------------------------------------------------------------------------------------------------------

cdef int set_transposed(TensorBase x, TensorBase w, TensorBase bias, const Dims* stride, const Dims* padding, const Dims* dilation, const Dims* output_padding,
                        int64_t groups, Dims* size) except -1:
    """Check the arguments of a transposed convolution; fill in its result's sizes."""
    cdef int i, n = x.ndim - 2
    cdef int64_t s[3]
    cdef int64_t p[3]
    cdef int64_t d[3]
    cdef int64_t o[3]
    if n < 1 or n > 3:
        raise RuntimeError(f"convolution: expected tensors of 3, 4 or 5 dimensions, got {x.ndim}")
    spatial(stride, n, s, "stride", 1, "non-positive stride is not supported")
    spatial(padding, n, p, "padding", 0, "negative padding is not supported")
    spatial(dilation, n, d, "dilation", 1, "dilation should be greater than zero")
    spatial(output_padding, n, o, "output_padding", 0, "negative output_padding is not supported")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if w.ndim != x.ndim:
        raise RuntimeError(f"convolution: weight of size {sizes_text(w.ndim, w.sizes)} does not fit an input of size {sizes_text(x.ndim, x.sizes)}")
    if w.sizes[0] < groups or w.sizes[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {sizes_text(w.ndim, w.sizes)} instead")
    if x.sizes[1] != w.sizes[0]:
        raise hinted("channels", RuntimeError(f"Given transposed=1, weight of size {sizes_text(w.ndim, w.sizes)}, expected input{sizes_text(x.ndim, x.sizes)} to have {w.sizes[0]} channels, but got {x.sizes[1]} channels instead"))
    size.n = n + 2
    size.v[0] = x.sizes[0]
    size.v[1] = w.sizes[1] * groups
    for i in range(n):
        if o[i] >= s[i] and o[i] >= d[i]:
            raise RuntimeError(f"output padding must be smaller than either stride or dilation, but got output_padding={sizes_text(n, o)}, stride={sizes_text(n, s)}, dilation={sizes_text(n, d)}")
        size.v[2 + i] = (x.sizes[2 + i] - 1) * s[i] - 2 * p[i] + d[i] * (w.sizes[2 + i] - 1) + o[i] + 1
        if size.v[2 + i] < 1:
            raise RuntimeError(f"Given input size per channel: {sizes_text(n, x.sizes + 2)}. Calculated output size per channel: {sizes_text(i + 1, size.v + 2)}. Output size is too small")
    if bias is not None and (bias.ndim != 1 or bias.sizes[0] != size.v[1]):
        raise RuntimeError(f"Given transposed=1, weight of size {sizes_text(w.ndim, w.sizes)}, expected bias to be 1-dimensional with {size.v[1]} elements, but got bias of size {sizes_text(bias.ndim, bias.sizes)} instead")
    check_types(x, w, "weight")
    if bias is not None:
        check_types(x, bias, "bias")
    return 0


cdef TensorBase add_channels(TensorBase r, TensorBase bias):
    """r (N, C, *) plus bias (C), below all keys but the backend's."""
    cdef Scalar one
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    cdef int i
    one.kind = one.i = 1
    one.d = 1
    one.im = 0
    for i in range(r.ndim - 1):
        sizes[i] = 1
        strides[i] = 1
    sizes[0] = bias.numel
    strides[0] = bias.strides[0]
    return op_add(r, make_view(bias, r.ndim - 1, sizes, strides, bias.offset), &one, r, INPLACE)


cdef TensorBase convolution_impl(TensorBase input, TensorBase weight, TensorBase bias, const Dims* stride, const Dims* padding, const Dims* dilation, bint transposed,
                                 const Dims* output_padding, int64_t groups):
    cdef Dims size
    cdef uint64_t before
    if not transposed:
        return conv_forward(input, weight, bias, stride, padding, dilation, groups)
    set_transposed(input, weight, bias, stride, padding, dilation, output_padding, groups, &size)
    if bias is None:
        return conv_input(input, weight, &size, stride, padding, dilation, groups)
    before = enter_kernel()
    try:
        return add_channels(conv_input(input, weight, &size, stride, padding, dilation, groups), bias)
    finally:
        leave_kernel(before)


cdef TensorBase convolution_cpu_impl(TensorBase input, TensorBase weight, TensorBase bias, const Dims* stride, const Dims* padding, const Dims* dilation, bint transposed,
                                     const Dims* output_padding, int64_t groups):
    """Half types are computed in float32 anyway: the bias of a transposed convolution joins the sum before it is rounded."""
    if not transposed or bias is None or input.dtype != F16 and input.dtype != BF16 or weight.dtype != input.dtype or bias.dtype != input.dtype:
        return convolution_impl(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
    return cast_to(convolution_impl(cast_to(input, F32), cast_to(weight, F32), cast_to(bias, F32), stride, padding, dilation, True, output_padding, groups), input.dtype)


cdef int parse_mask(object mask, int n, bint* wanted, str name) except -1:
    """`n` bools."""
    cdef int i
    if not isinstance(mask, (list, tuple)) or len(mask) != n:
        raise RuntimeError(f"{name}(): argument 'output_mask' must be a list of {n} bools")
    for i in range(n):
        wanted[i] = parse_bool(mask[i], name, "output_mask")
    return 0


cdef TensorBase conjugate(TensorBase x):
    return <TensorBase?>_ops.conj_physical(alias_of(x)) if is_complex_type(x.dtype) else x


cdef TensorBase formatted(TensorBase r, TensorBase input, TensorBase weight):
    """A gradient in channels_last when the input or the weight was, whatever the layout of the cotangent."""
    return <TensorBase?>in_format(r, wants_last(input, weight))


cdef TensorBase cropped(TensorBase r, TensorBase like):
    """The positions that a transposed convolution's input has: see check_output."""
    return r if same_sizes(r, like) else make_view(r, r.ndim, like.sizes, r.strides, r.offset)


cdef object convolution_backward_impl(TensorBase grad_output, TensorBase input, TensorBase weight, const Dims* bias_sizes, const Dims* stride, const Dims* padding,
                                      const Dims* dilation, bint transposed, const Dims* output_padding, int64_t groups, object output_mask):
    cdef bint wanted[3]
    cdef Dims of_input, of_weight, expected, over
    cdef int i
    cdef TensorBase gi = None, gw = None, gb = None
    cdef uint64_t before
    parse_mask(output_mask, 3, wanted, "convolution_backward")
    check_types(grad_output, input, "input")
    check_types(grad_output, weight, "weight")
    set_dims(&of_input, input)
    set_dims(&of_weight, weight)
    if transposed:
        set_transposed(input, weight, None, stride, padding, dilation, output_padding, groups, &expected)
        for i in range(expected.n):
            if grad_output.ndim != expected.n or grad_output.sizes[i] != expected.v[i]:
                raise RuntimeError(f"convolution: expected a gradient of size {sizes_text(expected.n, expected.v)}, but got {sizes_text(grad_output.ndim, grad_output.sizes)}")
    if grad_output.ndim < 3 or grad_output.ndim != input.ndim or grad_output.ndim != weight.ndim:
        raise RuntimeError(f"convolution_backward: a gradient of size {sizes_text(grad_output.ndim, grad_output.sizes)}, an input of size {sizes_text(input.ndim, input.sizes)} "
                           f"and a weight of size {sizes_text(weight.ndim, weight.sizes)} do not fit")
    before = enter_kernel()
    try:
        if wanted[0]:
            if transposed:
                gi = cropped(conv_forward(grad_output, conjugate(weight), None, stride, padding, dilation, groups), input)
            else:
                gi = conv_input(grad_output, conjugate(weight), &of_input, stride, padding, dilation, groups)
            gi = formatted(gi, input, weight)
        if wanted[1]:
            if transposed:
                gw = conv_weight(conjugate(input), grad_output, &of_weight, stride, padding, dilation, groups)
            else:
                gw = conv_weight(grad_output, conjugate(input), &of_weight, stride, padding, dilation, groups)
            gw = formatted(gw, input, weight)
        if wanted[2]:
            over.n = grad_output.ndim - 1
            over.v[0] = 0
            for i in range(1, over.n):
                over.v[i] = i + 1
            gb = op_sum(grad_output, &over, False, -1, None, FRESH)
    finally:
        leave_kernel(before)
    return gi, gw, gb


cdef void set_dims(Dims* d, TensorBase t) noexcept:
    cdef int i
    d.n = t.ndim
    for i in range(t.ndim):
        d.v[i] = t.sizes[i]


# ---- derivatives ---------------------------------------------------------------------------------------------------

cdef object convolution_gradients(OpNode node, object grad, object input, object weight, object bias_shape, object stride, object padding, object dilation,
                                  bint transposed, object output_padding, int64_t groups):
    """Those that are wanted."""
    cdef Dims b, st, pad, dil, extra
    if grad is None:
        return None, None, None
    parse_dims(stride, &st, "convolution", "stride")
    parse_dims(padding, &pad, "convolution", "padding")
    parse_dims(dilation, &dil, "convolution", "dilation")
    parse_dims(output_padding, &extra, "convolution", "output_padding")
    b.n = 1
    b.v[0] = 0 if bias_shape is None else bias_shape[0]
    return op_convolution_backward(<TensorBase?>grad, <TensorBase?>input, <TensorBase?>weight, &b, &st, &pad, &dil, transposed, &extra, groups,
                                   [wants(node, 0), wants(node, 1), wants(node, 2)])


cdef object first_gradient(int which, object grad_output, object input, object weight, object stride, object padding, object dilation, bint transposed,
                           object output_padding, int64_t groups):
    """convolution_backward()'s gradient by the input or the weight, as a function of the others, with gradients."""
    mask = [which == 0, which == 1, False]
    return _ops.convolution_backward(grad_output, input, weight, None, stride, padding, dilation, transposed, output_padding, groups, mask)[which]


cdef object second_convolution(list grads, object input, object weight, object shape, object stride, object padding, object dilation, bint transposed,
                               object output_padding, int64_t groups):
    """The derivative of convolution_backward() by grad_output, in which it is linear."""
    cdef object r = None, part
    if grads[0] is not None:
        r = _ops.convolution(grads[0], weight, None, stride, padding, dilation, transposed, output_padding, groups)
    if grads[1] is not None:
        part = _ops.convolution(input, grads[1], None, stride, padding, dilation, transposed, output_padding, groups)
        r = part if r is None else r + part
    if grads[2] is not None:
        part = grads[2].reshape((-1,) + (1,) * (len(shape) - 2)).expand(shape)
        r = part if r is None else r + part
    return r
