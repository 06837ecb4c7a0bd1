# The gate for gradients: what a Node records of its outputs, and how gradients are brought to it. The executor compares every gradient with
# the output that it belongs to (`gradient_agrees`) when it is sent; once code of the program has run in a pass, which may hold gradients that
# wait at other Nodes, again at the Node itself (`guard_gradients`). Kernels trust what comes through.

cdef int record_output(Node node, int nr, TensorBase t) except -1:
    """Write down what a gradient for output `nr` must look like: the shape, type and device of `t`."""
    cdef int i
    if node.n_inputs <= 1 and t.ndim <= OUTPUT_DIMS and node.out_form != OUTPUT_LIST:
        for i in range(t.ndim):
            if t.sizes[i] >> 32:
                return record_in_list(node, nr, t)
            node.out.inline_sizes[i] = <uint32_t>t.sizes[i]
        node.out_form = t.ndim + 1
        node.out_dtype = t.dtype
        node.out_device = t.device_type
        node.out_index = t.device_index
        return 0
    return record_in_list(node, nr, t)


cdef int record_in_list(Node node, int nr, TensorBase t) except -1:
    cdef OutputMeta* m
    cdef int i, n = max(node.n_inputs, 1)
    if node.out_form != OUTPUT_LIST:
        m = <OutputMeta*>calloc(n, sizeof(OutputMeta))
        if m == NULL:
            raise MemoryError("autograd: no memory for the metadata of outputs")
        for i in range(n):
            m[i].ndim = -1
        node.out.list = m
        node.out_form = OUTPUT_LIST
    m = &node.out.list[nr]
    free(m.sizes)
    m.ndim = -1
    m.sizes = <int64_t*>malloc(max(t.ndim, 1) * sizeof(int64_t))
    if m.sizes == NULL:
        raise MemoryError("autograd: no memory for the metadata of outputs")
    for i in range(t.ndim):
        m.sizes[i] = t.sizes[i]
    m.ndim = t.ndim
    m.dtype = t.dtype
    m.device_type = t.device_type
    m.device_index = t.device_index
    return 0


cdef void free_outputs(Node node) noexcept:
    cdef int i
    for i in range(max(node.n_inputs, 1)):
        free(node.out.list[i].sizes)
    free(node.out.list)
    node.out_form = OUTPUT_UNKNOWN


cdef tuple output_metadata(Node n, int nr):
    """(shape, dtype code, place) of an output; None when it has no gradient. Of a leaf's accumulator: the leaf as it is now."""
    cdef TensorBase leaf
    cdef OutputMeta* m
    cdef int i
    if n.kind == NODE_LEAF:
        leaf = (<AccumulateGrad>n).variable
        return (shape_of(leaf), <int>leaf.dtype, place_of(leaf))
    if n.out_form == OUTPUT_UNKNOWN or nr < 0 or nr >= max(n.n_inputs, 1):
        return None
    if n.out_form != OUTPUT_LIST:
        return (size_of([n.out.inline_sizes[i] for i in range(n.out_form - 1)]), <int>n.out_dtype, place_number(n.out_device, n.out_index))
    m = &n.out.list[nr]
    if m.ndim < 0:
        return None
    return (size_of([m.sizes[i] for i in range(m.ndim)]), <int>m.dtype, place_number(m.device_type, m.device_index))


cdef inline object size_of(list sizes):
    return (<object>size_type)(sizes)


cdef inline int place_number(int device_type, int device_index) noexcept:
    """`place_of` a tensor with that device."""
    return device_type if device_type != DEV_CUDA else DEV_CUDA | (device_index + 1) << 8


cdef inline bint same_meta(TensorBase g, int ndim, const int64_t* sizes, int dtype, int device_type, int device_index) noexcept:
    cdef int i
    if g.ndim != ndim or g.dtype != dtype or place_of(g) != place_number(device_type, device_index):
        return False
    for i in range(ndim):
        if g.sizes[i] != sizes[i]:
            return False
    return True


cdef bint agrees_with_output(Node n, int nr, TensorBase g) noexcept:
    """`gradient_agrees` for the rarer kinds: leaves, several outputs, many dimensions, devices with an index."""
    cdef TensorBase leaf
    cdef OutputMeta* m
    cdef int64_t sizes[4]
    cdef int i
    if n.kind == NODE_LEAF:
        leaf = (<AccumulateGrad>n).variable
        return same_meta(g, leaf.ndim, leaf.sizes, leaf.dtype, leaf.device_type, leaf.device_index)
    if n.out_form == OUTPUT_LIST:
        if nr < 0 or nr >= max(n.n_inputs, 1):
            return False
        m = &n.out.list[nr]
        return same_meta(g, m.ndim, m.sizes, m.dtype, m.device_type, m.device_index)
    if n.out_form == OUTPUT_UNKNOWN:
        return False
    for i in range(n.out_form - 1):
        sizes[i] = n.out.inline_sizes[i]
    return same_meta(g, n.out_form - 1, sizes, n.out_dtype, n.out_device, n.out_index)


cdef bint expandable(shape, got):
    """Whether a tensor of `shape` broadcasts to `got`: then the gradient is summed."""
    cdef int n = len(shape), m = len(got), i
    if n > m:
        return False
    for i in range(n):
        if shape[n - 1 - i] != 1 and shape[n - 1 - i] != got[m - 1 - i]:
            return False
    return True


cdef TensorBase fit_gradient(Node source, int index, Node n, int nr, TensorBase g):
    """Gradient `index` that `source` made, brought to the shape and type of the output `nr` of `n`. RuntimeError when it cannot be;
    None where that output has no gradient."""
    cdef tuple expected
    if gradient_agrees(n, nr, g):
        return g
    expected = output_metadata(n, nr)
    if expected is None:
        return None
    shape, code, place = expected
    who = f"Function {source.name()} returned an invalid gradient at index {index} -"
    g = private_gradient(g)
    if shape_of(g) != shape:
        if not expandable(shape, shape_of(g)):
            raise RuntimeError(f"{who} got {shape_text(g)} but expected shape compatible with {list(shape)}")
        g = <TensorBase?>_ops.sum_to_size(g, shape)
    if g.dtype != code:
        if category[g.dtype] == CAT_COMPLEX and category[code] != CAT_COMPLEX:
            if source.kind == NODE_FUNCTION:
                raise RuntimeError(f"{who} got {dtype_of(g.dtype)!r} but expected {dtype_of(code)!r}")
            g = <TensorBase?>_ops.real(g)
        g = <TensorBase?>g.to(dtype_of(code))
    if place_of(g) != place:
        if g.ndim:
            raise RuntimeError(f"{who} expected device {device_at(place)} but got {(<object>g).device}")
        g = <TensorBase?>g.to(device_at(place))
    if not gradient_agrees(n, nr, g):
        raise RuntimeError(f"{who} it cannot be brought to the metadata of the forward call")
    return g


cdef TensorBase private_gradient(TensorBase g):
    """`g` as an object that no Python code knows, so that its geometry stays; a plain tensor with the same memory and history."""
    cdef TensorBase r
    if g.storage is None or g.storage.block == NULL and g.device_type != DEV_META:
        raise RuntimeError("a gradient has no memory: the tensor was never initialised")
    r = alias_of(g)
    if g.requires_grad:
        r.grad_fn_ = gradient_node(g)
        r.output_nr = g.output_nr if grad_fn_of(g) is not None else 0
        r.requires_grad = 1
        r.keys |= K_AUTOGRAD
    r.keys |= g.keys & K_FORWARD_AD
    r.tangent = g.tangent
    return r


cdef TensorBase guarded(Node n, int nr, PyObject* p):
    """p: a gradient that the executor holds once. Whoever else holds it could change its geometry."""
    cdef TensorBase g = <TensorBase>p
    if p.ob_refcnt > 2 or p.ob_type != tensor_type:
        g = private_gradient(g)
    if not gradient_agrees(n, nr, g):
        expected = output_metadata(n, nr)
        if expected is None:
            return None
        shape, code, place = expected
        raise RuntimeError(
            f"{n.name()}: the gradient of output {nr} must be a {dtype_of(code)!r} tensor of shape {list(shape)} on device {device_at(place)}, but code that "
            f"ran in the backward pass has made it {dtype_of(g.dtype)!r} of shape {shape_text(g)} on {(<object>g).device}")
    if not g.contiguous or (g.offset + g.numel) * ITEM_SIZE[g.dtype] > g.storage.length:
        check_geometry(g.storage, g.ndim, g.sizes, g.strides, g.offset, ITEM_SIZE[g.dtype], "backward")
    return g


cdef object guard_gradients(Node n, object grad):
    """The gradients that a Node runs with after Python code has run in the pass: they agree with the Node's outputs and stay as they are,
    whatever a hook or another thread does with the tensors that it was given. None when there is none."""
    cdef list given
    cdef int i
    cdef bint found = False
    if grad is None:
        return None
    if n.n_inputs <= 1:
        return guarded(n, 0, <PyObject*>grad)
    given = <list>grad
    for i in range(len(given)):
        if given[i] is not None:
            given[i] = guarded(n, i, PyList_GET_ITEM(given, i))
            found = found or given[i] is not None
    return given if found else None
