"""The Nodes of declared operators: PointwiseNode, run by an operator's static description, and OpNode, run by a generated function.

A formula exists twice: composed of operators, for higher derivatives, and for pointwise operators as one fused kernel, which is an
operator of its own in the dispatcher's table (`mul_backward_self`) with a kernel for each backend that has one.
"""
from libc.stdint cimport int64_t, uint64_t
from cpython.object cimport PyObject, PyTypeObject
from tensorrt_lite._C.core.dtype cimport Scalar, dtype_of, category, is_complex_type, CAT_FLOAT, CAT_COMPLEX, C64
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, K_BACKENDS, K_PYTHON, K_CUSTOM, K_DERIVATIVES, KEY_META, KEY_CPU, KEY_CUDA, KEY_CUSTOM, KEY_PYTHON, KEY_AUTOGRAD, KEY_FORWARD_AD,
    KEY_TRANSFORM, K_WRAPPED, place_of, shape_of, version_of)
from tensorrt_lite._C.core.device cimport DEV_CUSTOM
from tensorrt_lite._C.core.dispatch cimport tls, attach, device_kernel, top_bit, register_kernel, take_storage_only, trt_operator, trt_thread_state, OPS
from tensorrt_lite._C.core.iterator cimport PointwiseInfo, pointwise
from tensorrt_lite._C.core.args cimport scalar_object
from tensorrt_lite._C.core.storage cimport hooks_of
from tensorrt_lite._C.autograd.node cimport (
    Node, SAVED_HOOKED, SAVED_IN_VIEW, SAVED_RELEASED, attach_output, check_version, device_at, grad_mode, next_sequence, node_class, ops_namespace, output_alias, raise_released, set_history, take_notes)
from tensorrt_lite._C.autograd.wanted cimport skipped_edges
from tensorrt_lite._C.autograd.saved_tensors cimport PackedTensor, pack_saved, unpack_saved, raw_saved
from tensorrt_lite._C.autograd.node import refuse_inference
from tensorrt_lite._C.core.dispatch import MissingStep
from tensorrt_lite._C.core.free_threading cimport load, publish

cdef extern from "node_class.h":
    ctypedef void* newfunc
    newfunc trt_take_new(PyTypeObject*) noexcept
    object trt_make(newfunc, PyTypeObject*, object)

attach()

cdef newfunc pointwise_new, op_new
cdef tuple _no_arguments = ()
cdef dict _saved_names = {}        # {operator's id: (names of its tensors, of its parameters as far as formulas read them)}
cdef dict _hook_orders = {}        # {operator's id: slots in the order of their names, in which hooks see them, as in PyTorch}


cdef inline int verify(Node node, TensorBase t, int64_t version) except -1:
    if version_of(t) != version or t.detached:
        check_version(node, t, version)
    return 0


cdef inline object history_of(Node node, TensorBase alias, int output_nr):
    """A saved output, with its history where gradients are recorded."""
    return attach_output(node, alias, output_nr) if tls().grad_mode else alias


cdef PointwiseNode new_pointwise_node(PointwiseInfo* info):
    cdef PointwiseNode n
    if load(info.node_type) == NULL:
        publish(info.node_type, node_class(info.node_name, PointwiseNode))
    n = <PointwiseNode>trt_make(pointwise_new, <PyTypeObject*>load(info.node_type), _no_arguments)
    n.info = info
    n.n_inputs = 1
    n.n_edges = info.nin
    n.seq = next_sequence()
    if tls().notes:
        take_notes(n)
    return n


cdef OpNode new_op_node(OpNodeInfo* info):
    cdef OpNode n
    if load(info.node_type) == NULL:
        publish(info.node_type, node_class(info.name, OpNode))
    n = <OpNode>trt_make(op_new, <PyTypeObject*>load(info.node_type), _no_arguments)
    n.info = info
    n.n_inputs = 1
    n.seq = next_sequence()
    if tls().notes:
        take_notes(n)
    return n


# ---- fused derivatives as operators

ctypedef object (*derivative_kernel)(const PointwiseInfo* fused, PyObject** inputs, const Scalar* params)


cdef object run_fused(const PointwiseInfo* fused, PyObject** inputs, const Scalar* params):
    """One pass over the operands. A loop exists in the types where the formula means the same; elsewhere operators compute it."""
    cdef int i
    for i in range(fused.nin):
        if is_complex_type((<TensorBase>inputs[i]).dtype):
            if fused.loops[C64] == NULL:
                return run_composed(fused, inputs, params)
            break
    return pointwise(fused, fused.nin, inputs, params, None, 0)


cdef object run_composed(const PointwiseInfo* fused, PyObject** inputs, const Scalar* params):
    cdef PyObject* slots[5]
    cdef int j
    slots[0] = slots[1] = slots[2] = slots[3] = slots[4] = <PyObject*>None
    for j in range(fused.nin):
        slots[<int>fused.used[0][j]] = inputs[j]
    return fused.formula[0](slots, params)


cdef object run_custom(const PointwiseInfo* fused, PyObject** inputs, const Scalar* params):
    """A custom device's kernel for the derivative, else its kernels for what the formula is made of."""
    cdef int i, device = DEV_CUSTOM
    for i in range(fused.nin):
        if (<TensorBase>inputs[i]).keys & K_CUSTOM:
            device = (<TensorBase>inputs[i]).device_type
            break
    kernel = device_kernel(fused.op, device)
    if kernel is None:
        if hooks_of(device).computes(device, fused.name):
            try:
                return run_fused(fused, inputs, params)
            except MissingStep:
                pass
        return run_composed(fused, inputs, params)
    tls().python_ran = 1
    return <TensorBase?>kernel(*[<object>inputs[i] for i in range(fused.nin)], *[scalar_object(&params[i]) for i in range(fused.nparams)], None)


cdef int register_derivative(PointwiseInfo* fused, const PointwiseInfo* of, int i, int operator_id) except -1:
    """Make the fused derivative of input `i` of a pointwise operator an operator. Modes, subclasses, transforms and autograd see the operators
    that its formula is composed of."""
    cdef int j
    fused.op = &OPS[operator_id]
    fused.id = operator_id
    take_storage_only(operator_id)
    OPS[operator_id].info = fused
    fused.formula[0] = of.formula[i]
    for j in range(fused.nin):
        fused.used[0][j] = of.used[i][j]
    register_kernel(operator_id, fused.name, KEY_CPU, <void*>run_fused)
    register_kernel(operator_id, fused.name, KEY_CUDA, <void*>run_fused)
    register_kernel(operator_id, fused.name, KEY_META, <void*>run_fused)
    register_kernel(operator_id, fused.name, KEY_CUSTOM, <void*>run_custom)
    for j in (KEY_PYTHON, KEY_AUTOGRAD, KEY_FORWARD_AD, KEY_TRANSFORM):
        register_kernel(operator_id, fused.name, j, <void*>run_composed)
    return 0


cdef object input_derivative(const PointwiseInfo* info, int i, PyObject** slots, const Scalar* params, bint composed):
    """The derivative of input i for what stands in slot 0: by its fused operator, or composed of operators that record."""
    cdef PyObject* inputs[5]
    cdef uint64_t keys
    cdef trt_thread_state* state
    cdef const PointwiseInfo* fused = info.fused[i]
    cdef void* kernel
    cdef int j
    if info.unit_pass >> i & 1 and params[0].kind == 1 and params[0].i == 1:
        return <object>slots[0]
    if composed or fused == NULL:
        if info.formula[i] == NULL:
            raise RuntimeError(f"derivative for {info.name.decode()} with respect to argument {i} is not implemented")
        return info.formula[i](slots, params)
    # the gradient says where to compute: beside it a saved number may lie on the CPU
    keys = (<TensorBase>slots[0]).keys & K_BACKENDS
    for j in range(info.n_used[i]):
        inputs[j] = slots[<int>info.used[i][j]]
        keys |= (<TensorBase>inputs[j]).keys & ~<uint64_t>(K_BACKENDS | K_DERIVATIVES)
    state = tls()
    kernel = fused.op.kernels[top_bit((keys | state.included) & ~state.excluded & fused.op.mask)]
    if kernel == NULL:
        kernel = <void*>run_composed
    return (<derivative_kernel>kernel)(fused, inputs, params)


# ---- pointwise operators

cdef class PointwiseNode(Node):
    """The Node of every declared pointwise operator; the static description says what it saved and which kernels run."""

    cdef void release(self) noexcept:
        # a Node that saved nothing may run again
        if self.s1 is not None or self.s2 is not None or self.s3 is not None or self.s4 is not None:
            self.saved_state |= SAVED_RELEASED
            self.s1 = self.s2 = self.s3 = self.s4 = None

    cdef object apply(self, object grad):
        cdef PyObject* slots[5]
        if self.info.save_mask:
            return apply_saved(self, <TensorBase>grad)
        slots[0] = <PyObject*>grad
        slots[1] = slots[2] = slots[3] = slots[4] = <PyObject*>None
        return input_gradients(self, slots)

    cdef object get_saved(self, int slot, int position):
        return self.s1 if slot == 1 else self.s2 if slot == 2 else self.s3 if slot == 3 else self.s4

    cdef int set_saved(self, int slot, int position, object value) except -1:
        if slot == 1:
            self.s1 = value
        elif slot == 2:
            self.s2 = value
        elif slot == 3:
            self.s3 = value
        else:
            self.s4 = value
        return 0

    cdef bint saves_output(self, int slot, int position) noexcept:
        return slot == 4

    cdef object read_saved(self, int slot, int position):
        cdef object x = self.get_saved(slot, position)
        if x is None:
            return None
        if type(x) is PackedTensor:
            return unpack_saved(self, x)
        check_version(self, <TensorBase>x, self.v1 if slot == 1 else self.v2 if slot == 2 else self.v3 if slot == 3 else self.v4)
        return attach_output(self, <TensorBase>x, 0) if slot == 4 else x

    def __getattr__(self, str name):
        cdef int slot
        key = name.removeprefix("_raw").removeprefix("_saved_")
        if "_saved_" in name and key:
            tensors, params = _saved_names[self.info.id]
            slot = 4 if key == "result" else tensors.index(key) + 1 if key in tensors else 0
            if slot and self.info.save_mask >> slot & 1:
                if name[1] == "r":
                    return raw_saved(self, slot, -1)
                if self.saved_state & SAVED_RELEASED:
                    raise_released(self)
                return self.read_saved(slot, -1)
            if key in params and name[1] == "s":
                return scalar_object(&self.params[<int>params.index(key)])
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self):
        tensors, params = _saved_names[self.info.id]
        found = [x for i, x in enumerate((*tensors, "result")) if self.info.save_mask >> <int>(4 if x == "result" else i + 1) & 1]
        return [*object.__dir__(self), *[f"_saved_{x}" for x in (*found, *params) if x], *[f"_raw_saved_{x}" for x in found]]


cdef int name_saved(const PointwiseInfo* info, str tensors, str params) except -1:
    """Names, with commas between them, of an operator's tensors and of its parameters ('' for one that no formula reads)."""
    names = tensors.split(",")
    _saved_names[info.id] = (tuple(names), tuple(params.split(",")))
    _hook_orders[info.id] = [names.index(x) + 1 if x in names else 4 for x in sorted([*names, "result"])]
    return 0


cdef int pack_inputs(PointwiseNode node) except -1:
    """Under hooks: what was saved of the inputs goes through them."""
    cdef int slot
    for slot in _hook_orders[node.info.id]:
        if slot != 4:
            node.set_saved(slot, -1, pack_saved(<TensorBase>node.get_saved(slot, -1), False, False))
    return 0


cdef object apply_hooked(PointwiseNode n, TensorBase g):
    cdef list values = [g, None, None, None, None]
    cdef PyObject* slots[5]
    cdef int slot
    if n.saved_state & SAVED_RELEASED:
        raise_released(n)
    for slot in _hook_orders[n.info.id]:
        values[slot] = n.read_saved(slot, -1)
    for slot in range(5):
        slots[slot] = <PyObject*>values[slot]
    return input_gradients(n, slots)


cdef object apply_saved(PointwiseNode n, TensorBase g):
    # held here: another thread's pass may release the Node while a kernel of this one runs
    cdef object s1 = n.s1, s2 = n.s2, s3 = n.s3, result = n.s4
    cdef PyObject* slots[5]
    if n.saved_state & ~SAVED_IN_VIEW:
        return apply_hooked(n, g)
    if s1 is not None:
        verify(n, <TensorBase>s1, n.v1)
    if s2 is not None:
        verify(n, <TensorBase>s2, n.v2)
    if s3 is not None:
        verify(n, <TensorBase>s3, n.v3)
    if result is not None:
        verify(n, <TensorBase>result, n.v4)
        result = history_of(n, <TensorBase>result, 0)
    slots[0] = <PyObject*>g
    slots[1] = <PyObject*>s1
    slots[2] = <PyObject*>s2
    slots[3] = <PyObject*>s3
    slots[4] = <PyObject*>result
    return input_gradients(n, slots)


cdef inline object input_gradients(PointwiseNode n, PyObject** slots):
    """The gradients of a pointwise operator's inputs. slots: of the result, three inputs, the result."""
    cdef const PointwiseInfo* info = n.info
    cdef object r0 = None, r1 = None, r2 = None
    cdef int i
    cdef bint composed = grad_mode()
    cdef uint64_t skipped = skipped_edges(n) if info.nin > 1 else 0
    for i in range(info.nin):
        if (n.e0 if i == 0 else n.e1 if i == 1 else n.e2) is None or skipped >> i & 1:
            continue
        value = input_derivative(info, i, slots, n.params, composed)
        if i == 0:
            r0 = value if n.m1 is None else reduce_gradient(<TensorBase?>value, n.m1)
        elif i == 1:
            r1 = value if n.m2 is None else reduce_gradient(<TensorBase?>value, n.m2)
        else:
            r2 = value if n.m3 is None else reduce_gradient(<TensorBase?>value, n.m3)
    if info.nin == 1:
        return r0
    return (r0, r1) if info.nin == 2 else (r0, r1, r2)


cdef object input_meta(TensorBase t):
    """What `reduce_gradient` needs to bring a gradient back to an input's shape and type."""
    return (shape_of(t), <int>t.dtype, place_of(t))


cdef TensorBase reduce_gradient(TensorBase g, object meta):
    """Sum over broadcast dimensions and convert; differentiable."""
    cdef int code = meta[1]
    cdef object r = g
    if g is None:
        return None
    if category[g.dtype] == CAT_COMPLEX and category[code] != CAT_COMPLEX:
        r = r.real
    if shape_of(<TensorBase>r) != meta[0]:
        r = r.sum_to_size(meta[0])
    if (<TensorBase>r).dtype != code:
        r = r.to(dtype_of(code))
    if place_of(<TensorBase>r) != <int>meta[2]:
        r = r.to(device_at(meta[2]))
    return <TensorBase>r


cdef inline bint is_foreign(object grad) noexcept:
    """Whether a gradient is not for kernels to read: a mode or a subclass sees to its operators, or it lies on a custom device."""
    cdef trt_thread_state* state = tls()
    if state.included & ~state.excluded & K_PYTHON:
        return True
    if isinstance(grad, list):
        for g in <list>grad:
            if g is not None:
                return (<TensorBase>g).keys & (K_PYTHON | K_CUSTOM) != 0
        return False
    return grad is not None and (<TensorBase>grad).keys & (K_PYTHON | K_CUSTOM) != 0


cdef object apply_composed(OpNode n, object grad):
    cdef trt_thread_state* state = tls()
    state.composed += 1
    try:
        return (<op_apply>n.info.apply)(n, grad)
    finally:
        state.composed -= 1


cdef class OpNode(Node):
    """The Node of a declared operator that is not pointwise; a static table names its backward function and slots."""

    cdef void release(self) noexcept:
        if (
            self.s0 is not None or self.s1 is not None or self.s2 is not None or self.s3 is not None or self.s4 is not None
            or self.s5 is not None or self.saved_list is not None
        ):
            self.saved_state |= SAVED_RELEASED
            self.s0 = self.s1 = self.s2 = self.s3 = self.s4 = self.s5 = None
            self.saved_list = None

    cdef object apply(self, object grad):
        if self.saved_state & SAVED_RELEASED:
            raise_released(self)
        if is_foreign(grad):
            return apply_composed(self, grad)
        return (<op_apply>self.info.apply)(self, grad)

    cdef object get_saved(self, int slot, int position):
        if position >= 0:
            return None if self.saved_list is None else self.saved_list[2 * slot][position]
        return self.s0 if slot == 0 else self.s1 if slot == 1 else self.s2 if slot == 2 else self.s3 if slot == 3 else self.s4 if slot == 4 else self.s5

    cdef int set_saved(self, int slot, int position, object value) except -1:
        cdef list changed
        if position >= 0:
            # the list may be one that the program holds, too
            changed = list(self.saved_list[2 * slot])
            changed[position] = value
            self.saved_list[2 * slot] = changed
        elif slot == 0:
            self.s0 = value
        elif slot == 1:
            self.s1 = value
        elif slot == 2:
            self.s2 = value
        elif slot == 3:
            self.s3 = value
        elif slot == 4:
            self.s4 = value
        else:
            self.s5 = value
        return 0

    cdef bint saves_output(self, int slot, int position) noexcept:
        return position < 0 and self.outputs >> slot & 1

    cdef object read_saved(self, int slot, int position):
        return saved(self, slot) if position < 0 else saved_tensors(self, slot)[position]

    def __getattr__(self, str name):
        cdef int i, lists
        cdef bint raw = name.startswith("_raw_saved_")
        if raw or name.startswith("_saved_"):
            names = (<bytes>self.info.saved_names).decode().split(",")
            key = name[11:] if raw else name[7:]
            if key in names:
                i = names.index(key)
                lists = self.info.n_saved + (0 if self.args is None else len(self.args))
                if i < self.info.n_saved and raw:
                    return raw_saved(self, i, -1)
                if raw and not self.saved_state & SAVED_RELEASED and i >= lists:
                    return tuple([raw_saved(self, i - lists, k) for k in range(len(self.saved_list[2 * (i - lists)]))])
                if not raw or i >= lists:
                    if self.saved_state & SAVED_RELEASED:
                        raise_released(self)
                    return saved(self, i) if i < self.info.n_saved else tuple(saved_tensors(self, i - lists)) if i >= lists else self.args[i - self.info.n_saved]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self):
        names = [x for x in (<bytes>self.info.saved_names).decode().split(",") if x]
        lists = self.info.n_saved + (0 if self.args is None else len(self.args))
        return [*object.__dir__(self), *[f"_saved_{x}" for x in names], *[f"_raw_saved_{x}" for x in (*names[:self.info.n_saved], *names[lists:])]]


# ---- derivatives that nobody has written: the backward pass says so, as PyTorch's does

cdef extern from *:
    """
    static OpNodeInfo trt_missing_info = {"NotImplemented", "", 0, 0, 0};
    """
    OpNodeInfo trt_missing_info


cdef object missing_derivative(str message):
    """Stands as a formula where an operator has none."""
    raise RuntimeError(message)


cdef object run_missing(OpNode node, object grad):
    missing_derivative(f"derivative for {(<tuple>node.args)[0]} is not implemented")


trt_missing_info.apply = <void*><op_apply>run_missing


cdef object without_derivative(object results, str operator, tuple inputs):
    """Results computed from the inputs out of autograd's sight: they require grad where one of those does, and their backward pass raises.

    operator: PyTorch's name of it. results: a tensor or several; returned as they are.
    """
    cdef OpNode node
    cdef int i = 0
    if any([x is not None and (<TensorBase>x).keys & K_WRAPPED for x in inputs]):
        from tensorrt_lite._C.core import transform
        level = transform.innermost()
        if level is not None:                  # lower levels, and autograd outside of them, may record what runs at this one
            with transform.lowered():
                unwrapped = [transform.unwrap(x, level)[0] for x in (results if isinstance(results, (tuple, list)) else (results,))]
                without_derivative(tuple(unwrapped), operator, tuple([transform.unwrap(x, level)[0] for x in inputs]))
    if not tls().grad_mode or not any([x is not None and (<TensorBase>x).requires_grad for x in inputs]):
        return results
    node = new_op_node(&trt_missing_info)
    node.args = (operator,)
    outputs = (results,) if isinstance(results, TensorBase) else tuple(results)
    node.n_inputs = len(outputs)
    for i, x in enumerate(inputs):
        node.set_edge(i, <TensorBase>x)
    for i, x in enumerate(outputs):
        if category[(<TensorBase>x).dtype] >= CAT_FLOAT:
            set_history(<TensorBase>x, node, i)
    return results


# ---- gradients that do not depend on what they are of

cdef object _ops = ops_namespace()

cdef extern from *:
    """
    static OpNodeInfo trt_flat_info = {"Flat", "", 0, 0, 0};
    """
    OpNodeInfo trt_flat_info


cdef object run_flat(OpNode node, object grad):
    return (grad if node.edge(0) is not None else None, _ops.zeros_like(grad) if node.edge(1) is not None else None)


trt_flat_info.apply = <void*><op_apply>run_flat


def flat_gradient(OpNode node not None, gradient):
    """The gradient of a Node's first input as a function of that input, too, whose derivative is zero: second derivatives of what is linear or piecewise
    linear are zeros, as PyTorch's, instead of absent. Nothing is saved for it."""
    cdef OpNode flat
    cdef TensorBase r
    if gradient is None or not tls().grad_mode or node.edge(0) is None:
        return gradient
    flat = new_op_node(&trt_flat_info)
    flat.set_edge(0, <TensorBase?>gradient)
    flat.set_edge(1, None)
    flat.e1 = node.edge(0)
    flat.nr1 = node.nr0
    r = output_alias(gradient)
    set_history(r, flat, 0)
    return r


# ---- results that are computed apart and belong to one operator

cdef extern from *:
    """
    static OpNodeInfo trt_joined_infos[] = {
        {"VarMeanBackward0", "", 0, 0, 0}, {"StdMeanBackward0", "", 0, 0, 0}, {"AminmaxBackward0", "", 0, 0, 0}, {"LinalgLuBackward0", "", 0, 0, 0},
        {"LuUnpackBackward0", "", 0, 0, 0}, {"LinalgLstsqBackward0", "", 0, 0, 0}, {"NativeGroupNormBackward0", "", 0, 0, 0},
        {"DelayedError", "", 0, 0, 0},
    };
    """
    OpNodeInfo* trt_joined_infos


cdef object pass_on(OpNode node, object grad):
    return tuple(grad[:node.n_edges])


cdef object run_delayed(OpNode node, object grad):
    raise RuntimeError((<tuple>node.args)[0])


cdef enum:
    JOINED = 7                         # the last entry of the table is not one

cdef dict joined_places():
    """Where the table has a Node's name; sets what its entries run."""
    cdef dict places = {}
    cdef int i
    for i in range(JOINED):
        trt_joined_infos[i].apply = <void*><op_apply>pass_on
        places[(<bytes>trt_joined_infos[i].name).decode().removesuffix("Backward0")] = i
    trt_joined_infos[JOINED].apply = <void*><op_apply>run_delayed
    return places


cdef dict _joined = joined_places()


def joined(str name not None, results):
    """Give results of one operator, new tensors that were computed apart, one Node `name` in front of their own. Returns `results`."""
    cdef OpNode node = None
    cdef TensorBase t
    cdef int i
    if not tls().grad_mode:
        return results
    for i, x in enumerate(results):
        t = <TensorBase?>x
        if t.grad_fn_ is None or t.keys & (K_WRAPPED | K_PYTHON):
            continue
        if node is None:
            node = new_op_node(&trt_joined_infos[<int>_joined[name]])
            node.n_inputs = len(results)
        for k in range(node.n_edges, i):
            node.set_edge(k, None)
        node.set_edge(i, t)
        set_history(t, node, i)
    return results


def delayed_error(str message not None, TensorBase result not None):
    """`result` with a derivative that raises RuntimeError(message)."""
    cdef OpNode node
    cdef TensorBase r
    if not tls().grad_mode or not result.requires_grad or result.keys & K_WRAPPED:
        return result
    node = new_op_node(&trt_joined_infos[JOINED])
    node.args = (message,)
    node.set_edge(0, result)
    r = output_alias(result)
    set_history(r, node, 0)
    return r


# ---- what an OpNode saves

cdef int save(OpNode node, int slot, TensorBase t) except -1:
    cdef int64_t v
    cdef object x = t
    if t is None:
        return 0
    if t.inference:
        refuse_inference()
    v = version_of(t)
    if node.saved_state & SAVED_HOOKED:
        x = pack_saved(t, node.outputs >> slot & 1, True)
    if slot == 0:
        node.s0 = x
        node.v0 = v
    elif slot == 1:
        node.s1 = x
        node.v1 = v
    elif slot == 2:
        node.s2 = x
        node.v2 = v
    elif slot == 3:
        node.s3 = x
        node.v3 = v
    elif slot == 4:
        node.s4 = x
        node.v4 = v
    else:
        node.s5 = x
        node.v5 = v
    return 0


cdef int save_output(OpNode node, int slot, TensorBase t) except -1:
    """Save an output of the node itself (output number: t.output_nr)."""
    cdef TensorBase a
    if t is None:
        return 0
    a = output_alias(t)
    a.output_nr = t.output_nr
    node.outputs |= 1 << slot
    return save(node, slot, a)


cdef TensorBase saved(OpNode node, int slot):
    """The saved tensor, its version checked; None when nothing was saved."""
    cdef object x
    cdef int64_t v
    if slot == 0:
        x = node.s0
        v = node.v0
    elif slot == 1:
        x = node.s1
        v = node.v1
    elif slot == 2:
        x = node.s2
        v = node.v2
    elif slot == 3:
        x = node.s3
        v = node.v3
    elif slot == 4:
        x = node.s4
        v = node.v4
    else:
        x = node.s5
        v = node.v5
    if x is None:
        return None
    if node.saved_state & SAVED_HOOKED and type(x) is PackedTensor:
        return unpack_saved(node, x)
    verify(node, <TensorBase>x, v)
    if node.outputs >> slot & 1:
        return <TensorBase>history_of(node, <TensorBase>x, (<TensorBase>x).output_nr)
    return <TensorBase>x


cdef int save_tensors(OpNode node, list tensors) except -1:
    """Appends the list and its versions, of a single tensor the number itself."""
    cdef object versions
    if len(tensors) == 1 and tensors[0] is not None:
        versions = version_of(<TensorBase>tensors[0])
    else:
        versions = [version_of(<TensorBase>t) if t is not None else 0 for t in tensors]
    if node.saved_state & SAVED_HOOKED:
        tensors = [pack_saved(<TensorBase>t, False, True) for t in tensors]
    if node.saved_list is None:
        node.saved_list = [tensors, versions]
    else:
        node.saved_list += [tensors, versions]
    return 0


cdef list saved_tensors(OpNode node, int i):
    cdef list tensors = node.saved_list[2 * i]
    cdef object versions = node.saved_list[2 * i + 1]
    if node.saved_state & SAVED_HOOKED:
        return unpack_list(node, tensors, versions)
    if not isinstance(versions, list):
        verify(node, <TensorBase>tensors[0], versions)
        return tensors
    for t, v in zip(tensors, <list>versions):
        if t is not None:
            verify(node, <TensorBase>t, v)
    return tensors


cdef list unpack_list(OpNode node, list tensors, object versions):
    cdef list read = []
    for t, v in zip(tensors, versions if isinstance(versions, list) else [versions]):
        if t is not None and type(t) is not PackedTensor:
            check_version(node, <TensorBase>t, v)
        read.append(None if t is None else unpack_saved(node, t))
    return read


pointwise_new = trt_take_new(<PyTypeObject*>PointwiseNode)
op_new = trt_take_new(<PyTypeObject*>OpNode)
