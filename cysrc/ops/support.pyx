"""What generated operator modules share: autograd helpers, checks of outputs, allocation of results."""
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, bump_version, version_of, shape_of, K_AUTOGRAD, empty_tensor, CREATED_NO_GRAD, CREATED_MULTI_OUTPUT, shape_text)
from tensorrt_lite._C.core.dtype cimport category, CAT_FLOAT
from tensorrt_lite._C.core.dispatch cimport tls, attach, OUT, INPLACE, FRESH
from tensorrt_lite._C.core.iterator cimport prepare_out
from tensorrt_lite._C.autograd.node cimport Node, OpNode, set_history, check_version

attach()


class _Namespace:
    """The flat namespace of compiled operators, filled by the package; formulas call operators through it."""


_namespace = _Namespace()


cdef object ops_namespace():
    return _namespace


def namespace():
    return _namespace


cdef bint any_requires_grad(list tensors) noexcept:
    for t in tensors:
        if t is not None and (<TensorBase>t).requires_grad:
            return True
    return False


cdef int set_list_edges(OpNode node, list tensors) except -1:
    cdef int i = 0
    for t in tensors:
        node.set_edge(i, <TensorBase>t)
        i += 1
    return 0


cdef int save_tensors(OpNode node, list tensors) except -1:
    if node.saved_list is None:
        node.saved_list = []
    node.saved_list.append((tensors, [version_of(<TensorBase>t) for t in tensors]))
    return 0


cdef list saved_tensors(OpNode node, int i):
    tensors, versions = node.saved_list[i]
    for t, v in zip(tensors, versions):
        check_version(node, <TensorBase>t, v)
    return tensors


cdef object shapes_of_list(list tensors):
    return [shape_of(<TensorBase>t) for t in tensors]


cdef bint differentiable(TensorBase t) noexcept:
    return category[t.dtype] >= CAT_FLOAT


cdef int set_list_history(object result, OpNode node, bint views) except -1:
    cdef int i = 0
    cdef TensorBase t
    node.n_inputs = len(result)
    for x in result:
        t = <TensorBase>x
        set_history(t, node, i)
        if views:
            t.creation_meta = CREATED_MULTI_OUTPUT
        i += 1
    if node.n_inputs == 1:
        node.n_inputs = 1
    return 0


cdef int set_tuple_history(object result, OpNode node) except -1:
    cdef int i = 0
    for x in result:
        if x is not None and differentiable(<TensorBase>x):
            set_history(<TensorBase>x, node, i)
        i += 1
    return 0


cdef int note_view(object result) except -1:
    """A view made while nothing is recorded: later writes through it can't be followed."""
    cdef TensorBase t
    if isinstance(result, TensorBase):
        t = <TensorBase>result
        if t.base is not None and t.base.requires_grad and not tls().grad_mode:
            t.creation_meta = CREATED_NO_GRAD
        return 0
    for x in result:
        note_view(x)
    return 0


cdef int refuse_out(str name) except -1:
    raise RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")


cdef int check_out(object out, str name) except -1:
    if not isinstance(out, TensorBase):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if (<TensorBase>out).requires_grad and tls().grad_mode:
        refuse_out(name)
    return 0


cdef int check_outs(object out, str name, int n) except -1:
    if not isinstance(out, (tuple, list)) or len(out) != n:
        raise TypeError(f"{name}(): argument 'out' must be tuple of {n} Tensors, not {type(out).__name__}")
    for t in out:
        check_out(t, name)
    return 0


cdef int bump_outs(object out) except -1:
    for t in out:
        bump_version(<TensorBase>t)
    return 0


cdef object finish_inplace(TensorBase result, uint64_t keys):
    """The version is bumped here unless the autograd wrapper ran (it bumps before it records)."""
    if not keys & K_AUTOGRAD:
        bump_version(result)
    return result


cdef TensorBase new_like(TensorBase t, int ndim, const int64_t* sizes, int dtype):
    """A fresh contiguous tensor on `t`'s device."""
    return empty_tensor(ndim, sizes, dtype, t.device_type)


cdef TensorBase result_tensor(str name, TensorBase out, int mode, int ndim, const int64_t* sizes, int dtype, TensorBase like):
    """Where a kernel writes: a fresh tensor, or `out` checked and resized. The kernel must honour its strides and dtype."""
    if mode == FRESH:
        return empty_tensor(ndim, sizes, dtype, like.device_type)
    prepare_out(name, out, ndim, sizes, dtype, mode)
    return out
