"""Forward mode: dual tensors, and how tangents pass through operators.

A dual tensor has the key ForwardAD and a `Tangent`, so tensors without one pay nothing. A view of a dual tensor gets its
tangent when somebody asks: the same view of the tangent, so both alias alike. Operators run with the key excluded, as one
level of duals exists, and their results get tangents by one of these rules (tools/codegen writes them, one letter per
argument; pointwise operators need none, their gradients' formulas serve):

- constant: nothing is differentiated by the argument;
- zero: the result does not change with it;
- joint: linear in all such arguments together, so the operator of the tangents;
- formula: declared, a sum over the arguments;
- twice: the operator's own Node, which is linear in the incoming gradient; the gradient of that is the derivative.
"""
cimport cython
from libc.stdlib cimport malloc
from libc.stdint cimport int64_t, uint64_t
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dtype cimport Scalar, category, dtype_of, CAT_FLOAT, CAT_COMPLEX
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, K_AUTOGRAD, K_FORWARD_AD, KEY_FORWARD_AD, alias_of, same_sizes, shape_of, shape_text, strides_of, has_internal_overlap,
    lock_views, unlock_views, version_of)
from tensorrt_lite._C.core.dispatch cimport tls, attach, trt_thread_state, trt_operator, trt_value, FRESH, OUT, INPLACE, NO_OUT, OPS
from tensorrt_lite._C.core.boxing cimport box_arguments, call_boxed, register_boxed
from tensorrt_lite._C.core.iterator cimport PointwiseInfo, PROMOTE_REAL_OUT
cimport tensorrt_lite._C.autograd.node as _node
from tensorrt_lite._C.core.free_threading cimport mutex, mutex_lock, mutex_unlock
from tensorrt_lite._C.autograd.node cimport Node, set_history, ops_namespace
from tensorrt_lite._C.autograd.operator_nodes cimport OpNode, PointwiseNode, input_derivative
from tensorrt_lite._C.autograd.saved_tensors cimport PackedTensor

attach()
cdef object _ops = ops_namespace()
cdef PyObject* _first = NULL       # the level's tangents, so that leaving it ends them all
cdef mutex _tangents_lock          # of that list


cdef class Tangent:
    """The derivative that a dual tensor carries; it ends with its tensor or with the level, whichever is first."""

    def __dealloc__(self):
        unlink(self)


cdef void unlink(Tangent t) noexcept:
    mutex_lock(&_tangents_lock)
    unlink_locked(<PyObject*>t)
    mutex_unlock(&_tangents_lock)


cdef inline void unlink_locked(PyObject* p) noexcept:
    """The tangent may have lost its last reference: the pointer alone is passed."""
    global _first
    if (<Tangent>p).previous != NULL:
        (<Tangent>(<Tangent>p).previous).following = (<Tangent>p).following
    elif _first == p:
        _first = (<Tangent>p).following
    if (<Tangent>p).following != NULL:
        (<Tangent>(<Tangent>p).following).previous = (<Tangent>p).previous
    (<Tangent>p).previous = (<Tangent>p).following = NULL


# ---- levels --------------------------------------------------------------------------------------------------------

def enter_level():
    """Open the one level of forward mode that may be open; returns its number, 0."""
    if _node.dual_levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    _node.dual_levels = 1
    return 0


def exit_level(int level):
    """Close the level: all tangents end. Their graphs may lead back to the tensors that hold them, so this also frees memory."""
    cdef list values = []
    cdef PyObject* p
    if level < 0 or level != _node.dual_levels - 1:
        raise RuntimeError("Trying to exit a forward AD level that was not the last one that was created. This is not supported.")
    _node.dual_levels = 0
    mutex_lock(&_tangents_lock)
    while _first != NULL:
        p = _first
        unlink_locked(p)
        values.append((<Tangent>p).value)
        (<Tangent>p).value = None
    mutex_unlock(&_tangents_lock)
    values.clear()


def current_level():
    return _node.dual_levels - 1


def is_enabled():
    return not tls().excluded & K_FORWARD_AD


def set_enabled(bint enabled):
    """Whether tangents pass through operators in this thread."""
    if enabled:
        tls().excluded &= ~<uint64_t>K_FORWARD_AD
    else:
        tls().excluded |= K_FORWARD_AD


def make_dual(TensorBase primal not None, TensorBase tangent not None):
    """A view of `primal` that carries `tangent`."""
    cdef TensorBase dual
    if not _node.dual_levels:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    if tangent_of(primal) is not None:
        raise RuntimeError("Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported.")
    if tangent_of(tangent) is not None:
        raise RuntimeError("Setting a forward grad that itself has a forward gradient at the same level 0 is not supported.")
    check_tangent_size(primal, tangent)
    dual = plain_view(primal)
    set_tangent(dual, tangent)
    return dual


def unpack_dual(TensorBase dual not None):
    """(a view of the tensor without its tangent, the tangent or None)."""
    cdef TensorBase tangent = None if tls().excluded & K_FORWARD_AD else tangent_of(dual)
    return (dual if tangent is None else plain_view(dual)), tangent


def get_tangent(TensorBase t not None):
    """The tangent, or None."""
    return None if tls().excluded & K_FORWARD_AD else tangent_of(t)


cdef TensorBase plain_view(TensorBase t):
    cdef TensorBase view = <TensorBase?>_ops.alias(t)
    view.keys &= ~<uint64_t>K_FORWARD_AD
    view.tangent = None
    return view


cdef int check_tangent_size(TensorBase primal, TensorBase tangent) except -1:
    if not same_sizes(primal, tangent):
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is of size "
            f"{shape_text(primal)} while the given forward gradient is of size {shape_text(tangent)}.")
    return 0


# ---- tangents of tensors -------------------------------------------------------------------------------------------

cdef TensorBase tangent_of(TensorBase t):
    """The tangent of a dual tensor, None of others."""
    cdef TensorBase base, value = None
    if not t.keys & K_FORWARD_AD:
        return None
    if not _node.dual_levels:
        # left over from a level that was left
        t.keys &= ~<uint64_t>K_FORWARD_AD
        t.tangent = None
        return None
    if isinstance(t.tangent, Tangent):
        return (<Tangent>t.tangent).value
    # a view made before its base became dual knows only the base
    base = t.base if t.tangent is None else <TensorBase>t.tangent
    if base is not None and tangent_of(base) is not None:
        value = view_like(t, base)
    if value is not None:
        set_tangent(t, value)
    return value


cdef TensorBase view_like(TensorBase t, TensorBase base):
    """The view of base's tangent that t is of base; None where t's numbers are no derivable part of base's."""
    cdef object value
    cdef TensorBase whole
    cdef bint from_complex = category[base.dtype] == CAT_COMPLEX, to_complex = category[t.dtype] == CAT_COMPLEX
    if category[t.dtype] < CAT_FLOAT or from_complex == to_complex and t.dtype != base.dtype:
        return None
    whole = laid_out(base)
    shape, strides = shape_of(t), strides_of(t)
    if from_complex == to_complex:
        value = whole.as_strided(shape, strides, whole.offset + t.offset - base.offset)
    elif from_complex:
        value = _ops.view_as_real(whole).as_strided(shape, strides, 2 * (whole.offset - base.offset) + t.offset)
    else:
        strides = tuple([2 * s for s in strides]) + (1,)
        value = _ops.view_as_complex(whole.as_strided(tuple(shape) + (2,), strides, whole.offset + 2 * t.offset - base.offset))
    return <TensorBase?>value


cdef TensorBase laid_out(TensorBase t):
    """t's tangent, brought to t's strides: then a view of one is a view of the other."""
    cdef TensorBase value = tangent_of(t)
    cdef int i
    for i in range(t.ndim):
        if t.sizes[i] > 1 and t.strides[i] != value.strides[i] and t.numel:
            if has_internal_overlap(t):
                raise NotImplementedError("forward mode: a view of a dual tensor whose elements share memory, as expand() makes, needs a tangent that was expanded alike")
            fresh = value.new_empty_strided(shape_of(t), strides_of(t)).copy_(value)
            (<Tangent>t.tangent).value = <TensorBase>fresh
            return <TensorBase>fresh
    return value


cdef int set_tangent(TensorBase t, TensorBase value) except -1:
    """Make `value` the tangent of t itself; views of t, older ones too, see it."""
    cdef Tangent holder
    cdef PyObject* v
    global _first
    if not _node.dual_levels:
        return 0
    holder = Tangent.__new__(Tangent)
    holder.value = value
    mutex_lock(&_tangents_lock)
    holder.following = _first
    if _first != NULL:
        (<Tangent>_first).previous = <PyObject*>holder
    _first = <PyObject*>holder
    mutex_unlock(&_tangents_lock)
    t.tangent = holder
    t.keys |= K_FORWARD_AD
    if t.base is None and t.version != NULL:
        lock_views(t.version)
        v = t.version.views
        while v != NULL:
            if (<TensorBase>v).base is t:
                (<TensorBase>v).keys |= K_FORWARD_AD
            v = (<TensorBase>v).next_view
        unlock_views(t.version)
    return 0


cdef int write_tangent(TensorBase t, TensorBase value) except -1:
    """After a write in place: the new tangent (None: zero) goes to the place of the old one, which other views may see."""
    cdef TensorBase old = tangent_of(t), base
    cdef object zeros
    if old is None and value is None:
        return 0
    if old is not None:
        if value is None:
            old.zero_()
        else:
            old.copy_(value)
        return 0
    base = None if isinstance(t.tangent, Tangent) else <TensorBase>t.tangent if t.tangent is not None else t.base
    if base is None:
        set_tangent(t, value)
        return 0
    # a view of a tensor without tangent: the whole base becomes dual
    zeros = value.new_empty_strided(shape_of(base), strides_of(base), dtype=dtype_of(base.dtype)).zero_()
    set_tangent(base, <TensorBase>zeros)
    t.keys |= K_FORWARD_AD
    old = tangent_of(t)
    if old is not None:
        old.copy_(value)
    return 0


cdef TensorBase fitting(TensorBase value, TensorBase like, list tangents):
    """A derivative in like's type and shape, in memory that no input's tangent shares: a later write must not reach that."""
    cdef object r = value
    if value.dtype != like.dtype:
        if category[value.dtype] == CAT_COMPLEX and category[like.dtype] != CAT_COMPLEX:
            r = r.real
        r = r.to(dtype_of(like.dtype))
    if not same_sizes(<TensorBase>r, like):
        r = r.expand(shape_of(like)).contiguous()
    for t in tangents:
        if t is not None and not isinstance(t, list) and (<TensorBase>t).storage is (<TensorBase>r).storage:
            return <TensorBase>r.clone()
    return <TensorBase>r


cdef int give_tangent(TensorBase result, object value, list tangents) except -1:
    """The tangent of a fresh result; also of what its Node saved of it, which higher derivatives read. None: zero."""
    cdef TensorBase t
    cdef OpNode node
    cdef int i
    if category[result.dtype] < CAT_FLOAT:
        return 0
    t = fitting(<TensorBase?>(_ops.zeros_like(result.detach()) if value is None else value), result, tangents)
    set_tangent(result, t)
    if isinstance(result.grad_fn_, PointwiseNode):
        if (<PointwiseNode>result.grad_fn_).s4 is not None:
            give_saved((<PointwiseNode>result.grad_fn_).s4, result, t)
    elif isinstance(result.grad_fn_, OpNode):
        node = <OpNode>result.grad_fn_
        for i, s in enumerate((node.s0, node.s1, node.s2, node.s3, node.s4, node.s5)):
            if node.outputs >> i & 1 and s is not None and output_nr_of(s) == result.output_nr:
                give_saved(s, result, t)
    return 0


cdef inline int output_nr_of(object saved) noexcept:
    return (<PackedTensor>saved).output_nr if type(saved) is PackedTensor else (<TensorBase>saved).output_nr


cdef int give_saved(object saved, TensorBase result, TensorBase tangent) except -1:
    if type(saved) is PackedTensor:
        (<PackedTensor>saved).tangent = result.tangent
        return 0
    return set_tangent(<TensorBase>saved, tangent)


cdef object added(object total, object value):
    return value if total is None else total if value is None else total + value


cdef int refuse_forward_out(const char* name) except -1:
    raise NotImplementedError(f"Trying to use forward AD with {name.decode()}_out that does not support it because it is an out= function")


cdef int refuse_forward(const char* name) except -1:
    raise NotImplementedError(f"Trying to use forward AD with {name.decode()} that does not support it because it has not been implemented yet.")


# ---- pointwise operators -------------------------------------------------------------------------------------------

cdef object tangent_of_pointwise(const PointwiseInfo* info, TensorBase result, PyObject** slots, const Scalar* params, list tangents):
    """The sum over the inputs of the gradient's formula with the tangent in the gradient's place.

    A real function's derivative is its own transpose. A holomorphic one's gradient is g conj(f'), so f' t is its conjugate
    for conj(t); of a real function of a complex number it is g w with derivative Re(conj(w) t).
    """
    cdef object total = None, t, value
    cdef bint is_complex = category[result.dtype] == CAT_COMPLEX, composed = False, real_out
    cdef int i, k
    if tls().grad_mode:
        for k in range(1, 5):
            composed = composed or slots[k] != NULL and (<TensorBase>slots[k]).requires_grad
    for i in range(info.nin):
        t = tangents[i]
        if t is None or info.formula[i] == NULL:
            continue
        real_out = info.promote & PROMOTE_REAL_OUT and not is_complex and category[(<TensorBase>slots[i + 1]).dtype] == CAT_COMPLEX
        if real_out:
            value = _ops.ones_like(result.detach())
        elif (<TensorBase>t).dtype != result.dtype:
            value = t.to(dtype_of(result.dtype))
        else:
            value = t
        if is_complex and not info.self_adjoint:
            value = _ops.conj_physical(value)
        slots[0] = <PyObject*>value
        derivative = input_derivative(info, i, slots, params, composed or tls().grad_mode and (<TensorBase>value).requires_grad)
        if real_out:
            derivative = (_ops.conj_physical(derivative) * t).real
        elif is_complex and not info.self_adjoint:
            derivative = _ops.conj_physical(derivative)
        total = added(total, derivative)
    return total


# ---- other operators -----------------------------------------------------------------------------------------------

cdef struct ForwardInfo:
    const char* kinds              # by argument, see core/dispatch.h
    const char* rules              # by argument: - constant, z zero, j joint, f formula, d twice
    int flags
    trt_operator* op
    forward_formula formula


cdef int register_forward(int operator_id, const char* rules, int flags, forward_formula formula) except -1:
    cdef ForwardInfo* info = <ForwardInfo*>malloc(sizeof(ForwardInfo))
    if info == NULL:
        raise MemoryError
    info.op = &OPS[operator_id]
    info.kinds = info.op.row.kinds
    info.rules = rules
    info.flags = flags
    info.formula = formula
    info.op.forward = info
    return 0


cdef object run_with_tangents(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel of ForwardAD."""
    cdef trt_thread_state* state = tls()
    cdef uint64_t before = state.excluded
    cdef tuple arguments = box_arguments(op, v, False)
    state.excluded = before | K_FORWARD_AD
    try:
        return with_tangents(op, arguments, <object>out if out != NULL else None, FRESH if mode == NO_OUT else mode)
    finally:
        state.excluded = before


register_boxed(KEY_FORWARD_AD, run_with_tangents)


cdef object underived(trt_operator* op, object result):
    """An operator that declares no derivative: nothing to do when it has none or is composed of others, else an error."""
    if isinstance(result, TensorBase) and category[(<TensorBase>result).dtype] >= CAT_FLOAT and not (<TensorBase>result).keys & K_FORWARD_AD and _node.dual_levels:
        refuse_forward(op.name)
    return result


cdef object tangents_of(object argument, char kind):
    """The tangent of a tensor, those of a list (None when there is none at all), None of anything else."""
    cdef list found
    if kind == c't':
        return None if argument is None else tangent_of(<TensorBase>argument)
    if kind == c'l':
        found = [None if x is None else tangent_of(<TensorBase>x) for x in argument]
        for x in found:
            if x is not None:
                return found
    return None


cdef object with_tangents(trt_operator* op, tuple arguments, object out, int mode):
    cdef ForwardInfo* info = <ForwardInfo*>op.forward
    cdef Py_ssize_t i, n = len(arguments)
    cdef list tangents = [tangents_of(arguments[i], info.kinds[i]) for i in range(n)], flat
    cdef bint any_tangent = False, twice = False, joint = False, formula = False, recorded
    cdef object result, value = None
    for i in range(n):
        if tangents[i] is not None and info.rules[i] != c'-' and not tls().inference_mode:
            any_tangent = True
            twice = twice or info.rules[i] == c'd'
            joint = joint or info.rules[i] == c'j'
            formula = formula or info.rules[i] == c'f'
    if mode == OUT:
        refuse_forward_out(op.name)
    if not any_tangent:
        result = call_boxed(info.op, arguments, out, mode)
        if mode == INPLACE:
            write_tangent(<TensorBase>result, None)
        return result
    flat = []
    for t in tangents:
        if isinstance(t, list):
            flat += t
        else:
            flat.append(t)
    if mode == INPLACE:
        recorded = tls().grad_mode and any_recorded(arguments)
        if not info.flags & WRITES_ONLY and (twice or recorded or info.flags & READS_RESULT):
            # a write is a copy of what the call without writing returns; a Node that saves the old value needs its tangent
            old = out.clone() if recorded else alias_of(<TensorBase>out)
            if recorded and tangents[0] is not None:
                set_tangent(<TensorBase>old, <TensorBase>tangents[0].clone())
            arguments = (old,) + arguments[1:]
            result, value = derive(info, op, arguments, tangents, twice, joint, formula)
            give_tangent(<TensorBase>result, value, flat)      # for what the Node saved of it
            value = None if value is None else fitting(<TensorBase>value, <TensorBase>out, flat)
            result = out.copy_(result)
        else:
            if twice:
                refuse_forward(op.name)
            value = rule_value(info, arguments, tangents, None, joint, formula)
            value = None if value is None else fitting(<TensorBase>value, <TensorBase>out, flat)
            result = call_boxed(info.op, arguments, out, mode)
        write_tangent(<TensorBase>result, <TensorBase>value)
        return result
    result, value = derive(info, op, arguments, tangents, twice, joint, formula)
    if isinstance(result, TensorBase):
        give_tangent(<TensorBase>result, value, flat)
    else:
        for i in range(len(result)):
            if result[i] is not None:
                give_tangent(<TensorBase>result[i], None if value is None else value[i], flat)
    return result


cdef object derive(ForwardInfo* info, trt_operator* op, tuple arguments, list tangents, bint twice, bint joint, bint formula):
    """(result, its derivative: a tensor, or one per result; None for zero)."""
    if twice:
        return by_double_backward(info, op, arguments, tangents)
    result = call_boxed(info.op, arguments, None, FRESH)
    return result, rule_value(info, arguments, tangents, result, joint, formula)


cdef object rule_value(ForwardInfo* info, tuple arguments, list tangents, object result, bint joint, bint formula):
    cdef object value = None
    cdef list given
    cdef Py_ssize_t i
    if joint:
        given = list(arguments)
        for i in range(len(given)):
            if info.rules[i] == c'j':
                given[i] = tangents_or_zeros(arguments[i], tangents[i])
        value = call_boxed(info.op, tuple(given), None, FRESH)
    if formula:
        value = added(value, info.formula(arguments, tuple(tangents), result))
    return value


cdef object tangents_or_zeros(object argument, object tangent):
    cdef TensorBase zeros
    if argument is None:
        return None
    if isinstance(argument, list):
        if tangent is None:
            tangent = [None] * len(argument)
        return [tangents_or_zeros(x, t) for x, t in zip(argument, tangent)]
    if tangent is not None:
        return tangent
    zeros = <TensorBase?>_ops.zeros_like(argument.detach())
    zeros.wrapped_number = (<TensorBase>argument).wrapped_number          # which operators like scatter take in the place of a tensor
    return zeros


cdef bint any_recorded(object x) noexcept:
    if isinstance(x, TensorBase):
        return (<TensorBase>x).requires_grad
    if isinstance(x, (list, tuple)):
        for y in x:
            if any_recorded(y):
                return True
    return False


cdef TensorBase as_leaf(TensorBase t, TensorBase tangent):
    """The same numbers as a leaf of a graph of their own, still dual for the caller's backward pass."""
    cdef TensorBase leaf = alias_of(t)
    leaf.requires_grad = 1
    leaf.keys |= K_AUTOGRAD
    set_tangent(leaf, tangent)
    return leaf


cdef object by_double_backward(ForwardInfo* info, trt_operator* op, tuple arguments, list tangents):
    """Run the operator recorded; its Node maps u to J^H u, whose gradient for the tangents is J t.

    Where the caller records, too, inputs that need gradients stay themselves, so that result and derivative hang on the
    caller's graph; all others become leaves, and nothing of this graph stays.
    """
    cdef trt_thread_state* state = tls()
    cdef int before = state.grad_mode
    cdef bint record = False, needed = False
    cdef list given = list(arguments), edges = [], made = []
    cdef Py_ssize_t i, k
    cdef Node node = None
    cdef object result, value
    cdef TensorBase plain
    for i in range(len(given)):
        for x, t in pairs(given[i], tangents[i], info.kinds[i]):
            if x is not None and before:
                needed = needed or (<TensorBase>x).requires_grad
                record = record or t is not None and (<TensorBase>t).requires_grad
    record = record or needed
    for i in range(len(given)):
        if info.rules[i] == c'-':
            if info.kinds[i] == c't' and given[i] is not None and not before:
                given[i] = given[i].detach()
            continue
        changed = []
        for x, t in pairs(given[i], tangents[i], info.kinds[i]):
            if x is not None:
                if before and (<TensorBase>x).requires_grad:
                    made.append(False)
                elif t is not None and category[(<TensorBase>x).dtype] >= CAT_FLOAT:
                    x = as_leaf(<TensorBase>x, <TensorBase>t)
                    made.append(True)
                else:
                    plain = alias_of(<TensorBase>x)
                    plain.wrapped_number = (<TensorBase>x).wrapped_number
                    x = plain
                    made.append(False)
            else:
                made.append(False)
            changed.append(x)
            edges.append(t)
        given[i] = changed if info.kinds[i] == c'l' else changed[0]
    state.grad_mode = 1
    try:
        result = call_boxed(info.op, tuple(given), None, FRESH)
        outputs = [result] if isinstance(result, TensorBase) else list(result)
        for x in outputs:
            if x is not None and (<TensorBase>x).grad_fn_ is not None:
                node = <Node>(<TensorBase>x).grad_fn_
        value = None if node is None else through_node(node, outputs, edges, record)
    finally:
        state.grad_mode = before
    if isinstance(result, TensorBase) and value is not None:
        value = value[0]
    if not needed:
        for x in outputs:
            if x is not None:
                forget_history(<TensorBase>x)
    elif node is not None:
        # the leaves made here take no gradients
        for k in range(len(made)):
            if made[k]:
                node.set_edge(<int>k, None)
    return result, value


cdef object pairs(object argument, object tangent, char kind):
    if kind == c't':
        return ((argument, tangent),)
    if kind == c'l':
        return list(zip(argument, [None] * len(argument) if tangent is None else tangent))
    return ()


cdef int forget_history(TensorBase t) except -1:
    t.grad_fn_ = None
    t.output_nr = 0
    t.requires_grad = 0
    t.keys &= ~<uint64_t>K_AUTOGRAD
    return 0


cdef object through_node(Node node, list outputs, list edges, bint record):
    """The derivative of each output, None for zero. edges: by edge of the Node the tangent of its input, or None."""
    from tensorrt_lite._C.autograd.engine import run_backward
    cdef list cotangents = [None] * len(outputs), roots = [], weights = [], leaves = [], found = [None] * len(outputs)
    cdef TensorBase u
    cdef int i
    for i, x in enumerate(outputs):
        if x is not None and (<TensorBase>x).grad_fn_ is node:
            u = <TensorBase?>_ops.zeros_like(x.detach())
            u.requires_grad = 1
            u.keys |= K_AUTOGRAD
            cotangents[i] = u
            leaves.append(u)
    gradients = node.apply(cotangents if node.n_inputs > 1 else cotangents[0])
    if gradients is None or isinstance(gradients, TensorBase):
        gradients = (gradients,)
    for g, t in zip(gradients, edges):
        if g is not None and t is not None and (<TensorBase>g).requires_grad:
            roots.append(g)
            weights.append(t if (<TensorBase>t).dtype == (<TensorBase>g).dtype else t.to(dtype_of((<TensorBase>g).dtype)))
    if not roots:
        return found
    derivatives = iter(run_backward(roots, weights, record, record, leaves, True, False))
    for i in range(len(found)):
        if cotangents[i] is not None:
            found[i] = next(derivatives)
    return found
