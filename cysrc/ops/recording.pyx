"""What the generated kernels of recording.h do where there is something to do: record a Node by an operator's table, hold operands, give late warnings."""
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.string cimport memcpy, strlen
from tensorrt_lite._C.autograd.node cimport check_recorded_write, ops_namespace, rebase_history, set_history
from tensorrt_lite._C.autograd.operator_nodes cimport is_transposed, OpNode, OpNodeInfo, input_meta, new_op_node, save, save_output, save_tensors
from tensorrt_lite._C.core.boxing cimport boxed_value
from tensorrt_lite._C.core.dispatch cimport CORE, FRESH, INPLACE, NO_OUT, OPS, OUT, attach, trt_operator, trt_value
from tensorrt_lite._C.core.iterator cimport LateWarnings, begin_late_warnings, drop_late_warnings, end_late_warnings
from tensorrt_lite._C.core.tensor cimport TensorBase, any_large, bump_version, held, held_list, is_large, is_listed, shape_of, strides_of
from tensorrt_lite._C.ops.support cimport any_requires_grad, differentiable, note_view, refuse_out, set_list_edges, set_list_history, set_tuple_history, shapes_of_list

attach()
cdef object _ops = ops_namespace()

cdef enum:
    MOST_ARGUMENTS = 24


cdef object value_to_save(trt_operator* op, const trt_value* v, char what, int i):
    cdef TensorBase t
    if what == c'v':
        return boxed_value(op.row.kinds[i], &v[i], False)
    if what == c'l':
        return shapes_of_list(<list>v[i].p)
    t = <TensorBase>v[i].p
    if what == c'c':
        return is_transposed(t)
    if what == c't':
        return (shape_of(t), strides_of(t), t.offset)
    return None if t is None else shape_of(t) if what == c's' else input_meta(t)


# What Nodes of products save, without a new tuple for each: whether one or both operands are transposed.
cdef tuple ONE_TRANSPOSED = ((False,), (True,))
cdef tuple TWO_TRANSPOSED = ((False, False), (False, True), (True, False), (True, True))


cdef tuple values_to_save(trt_operator* op, const trt_value* v, const char* values):
    cdef Py_ssize_t i, n = strlen(values) // 2
    cdef tuple saved
    if values[0] == c'c' and n <= 2:        # the last kind, so that there is no other
        i = is_transposed(<TensorBase>v[values[1] - c'a'].p)
        return <tuple>(ONE_TRANSPOSED[i] if n == 1 else TWO_TRANSPOSED[2 * i + is_transposed(<TensorBase>v[values[3] - c'a'].p)])
    saved = PyTuple_New(n)
    for i in range(n):
        x = value_to_save(op, v, values[2 * i], values[2 * i + 1] - c'a')
        Py_INCREF(x)
        PyTuple_SET_ITEM(saved, i, x)
    return saved


cdef object record(const trt_record* r, const trt_value* v, void* out, int mode, unsigned skipped):
    """The operator below Autograd, and its Node. skipped: slots of which the call saves nothing."""
    cdef trt_operator* op = &OPS[r.id]
    cdef const trt_saving* s
    cdef const char* edge = r.edges
    cdef OpNode node
    cdef TensorBase t
    cdef int i = 0, argument
    cdef unsigned wanted = 0           # bits of the arguments that require grad; a saved tensor whose readers are 0 is read by all gradients
    if mode == OUT:
        refuse_out(op.name.decode())
    if mode == INPLACE and r.outputs == 1 and r.inplace:
        check_recorded_write(<TensorBase>out)
    node = new_op_node(<OpNodeInfo*>r.node)
    if r.outputs > 1:
        node.n_inputs = r.outputs
    if r.list_edges:
        argument = edge[0] - c'a'
        set_list_edges(node, <list>v[argument].p)
        wanted = <unsigned>any_requires_grad(<list>v[argument].p) << argument
    else:
        while edge[i]:
            argument = edge[i] - c'a'
            node.set_edge(i, <TensorBase>v[argument].p)
            if v[argument].p != <void*>None and (<TensorBase>v[argument].p).requires_grad:
                wanted |= <unsigned>1 << argument
            i += 1
    s = r.tensors
    while s.slot >= 0:
        if not skipped >> s.slot & 1 and (s.readers == 0 or s.readers & wanted):
            t = <TensorBase>v[<int>s.source].p
            save(node, s.slot, <TensorBase>_ops.clone(t) if s.source == r.cloned and mode == INPLACE else t)
        s += 1
    edge = r.lists
    while edge[0]:
        save_tensors(node, <list>v[edge[0] - c'a'].p)
        edge += 1
    if r.values[0]:
        node.args = values_to_save(op, v, r.values)
    result = r.below(v, out, mode)
    s = r.results
    if r.outputs == 1:
        t = <TensorBase>result
        if mode == INPLACE:
            bump_version(t)
        while s.slot >= 0:
            if not skipped >> s.slot & 1 and (s.readers == 0 or s.readers & wanted):
                save_output(node, s.slot, t)
            s += 1
        if mode == INPLACE and r.inplace:
            rebase_history(t, node)
        elif differentiable(t):
            set_history(t, node, 0)
    elif r.outputs == 0:
        set_list_history(result, node, r.multi_view)
    else:
        set_tuple_history(result, node)
        while s.slot >= 0:
            if not skipped >> s.slot & 1 and (s.readers == 0 or s.readers & wanted):
                save_output(node, s.slot, <TensorBase>result[<int>s.source])
            s += 1
    return result


cdef bint must_hold(const trt_held* h, const trt_value* v, void* out, bint single) except -1:
    """Whether operands are large, or written by the call."""
    cdef int i = 0
    while (h.tensors | h.lists) >> i:
        if h.tensors >> i & 1:
            if is_large(<TensorBase>v[i].p) or (v[i].p == out if single else is_listed(<object>out, <TensorBase>v[i].p)):
                return True
        elif h.lists >> i & 1 and (any_large(<list>v[i].p) or single and is_listed(<object>v[i].p, <TensorBase>out)):
            return True
        i += 1
    return False


cdef object run_holding(const trt_held* h, const trt_value* given, void* out, int mode, bint single):
    """A kernel may let other threads run between its checks and its loops: it gets operands whose geometry and memory stay."""
    cdef trt_operator* op = &OPS[h.id]
    cdef trt_value v[MOST_ARGUMENTS]
    cdef list kept = []
    cdef void* target = out
    cdef int i = 0
    memcpy(v, given, strlen(op.row.kinds) * sizeof(trt_value))
    if single and mode == INPLACE:
        x = held(<TensorBase>out)
        kept.append(x)
        out = <void*>x
    while (h.tensors | h.lists) >> i:
        if h.tensors >> i & 1:
            if single and mode == INPLACE and v[i].p == target:
                v[i].p = out
            else:
                x = held(<TensorBase>v[i].p)
                kept.append(x)
                v[i].p = <void*>x
        elif h.lists >> i & 1:
            x = held_list(<list>v[i].p)
            kept.append(x)
            v[i].p = <void*>x
        i += 1
    if single and mode != FRESH:
        op.row.invoke(op, h.kernel, v, out, mode)
        return <object>target
    return op.row.invoke(op, h.kernel, v, out, mode)


cdef object hold(const trt_held* h, const trt_value* v, void* out, int mode):
    """A kernel on held operands. The warning that `out` was resized runs Python, which may change the operands: it is given at the end."""
    cdef trt_operator* op = &OPS[h.id]
    cdef LateWarnings late
    cdef bint single = mode != NO_OUT and op.row.returned == c't'
    cdef object result
    if mode != OUT:
        return run_holding(h, v, out, mode, single)
    begin_late_warnings(&late)
    try:
        result = run_holding(h, v, out, mode, single) if must_hold(h, v, out, single) else op.row.invoke(op, h.kernel, v, out, mode)
    except:
        drop_late_warnings(&late)
        raise
    end_late_warnings(&late)
    return result


cdef int count_write(TensorBase t) except -1:
    return bump_version(t)


cdef int note_made(object result) except -1:
    return note_view(result)


CORE.record = <void*>record
CORE.hold = <void*>hold
CORE.bump_version = <void*>count_write
CORE.note_view = <void*>note_made
