"""Custom autograd Functions: the Node that is also the `ctx` of forward and backward, and the call that records it.

An output that was saved is kept without its history, as declared operators do, so a Function leaves no reference cycle
unless a user puts an output into an attribute of ctx.
"""
cimport cython
from tensorrt_lite._C.core.hints import hinted
from libc.stdint cimport int64_t, uint64_t
from cpython.object cimport PyObject
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, K_AUTOGRAD, K_FORWARD_AD, K_PYTHON, K_STANDS_IN, K_TRANSFORM, adopt_view, make_view, version_of, shape_of, shape_text, same_sizes, bump_version, CREATED_IN_FUNCTION, CREATED_DEFAULT)
from tensorrt_lite._C.core.device cimport DEV_META
from tensorrt_lite._C.core.dtype cimport dtype_of, category, CAT_FLOAT
from tensorrt_lite._C.core.dispatch cimport tls, attach
from tensorrt_lite._C.autograd.node cimport (
    ops_namespace, Node, NODE_FUNCTION, SAVED_HOOKED, SAVED_RELEASED, set_history, rebase_history, check_recorded_write, check_version, node_of_output, output_alias, raise_released, next_sequence, grad_fn_of, take_notes, record_output, output_metadata,
    device_at)
from tensorrt_lite._C.autograd.forward cimport tangent_of, set_tangent, write_tangent
from tensorrt_lite._C.autograd.saved_tensors cimport PackedTensor, pack_saved, raw_saved, unpack_saved
from tensorrt_lite._C.autograd.node import refuse_inference

attach()
cdef object _ops = ops_namespace()

@cython.no_gc_clear
cdef class FunctionNode(Node):
    """The ctx of a custom Function; the class of each Function's Nodes derives from this and FunctionCtx."""
    cdef dict __dict__
    cdef readonly tuple needs_input_grad
    cdef object to_save                # what save_for_backward got
    cdef tuple saved_for_forward       # what save_for_forward got, else the same; for jvp alone, which runs at once
    cdef list saved                    # [(tensor or None, version, is an output of this Node)]
    cdef tuple dirty
    cdef tuple non_differentiable
    cdef list without_gradient         # for each output whether it has none; None: not to be told apart
    cdef tuple positions               # for each edge the number of its argument
    cdef bint materialize
    cdef bint skip_non_differentiable  # materialize gradients of differentiable outputs alone
    cdef bint in_jvp
    cdef int n_arguments

    def __cinit__(self):
        self.kind = NODE_FUNCTION
        self.materialize = True
        self.n_inputs = 1

    def __init__(self):
        pass

    def name(self):
        return type(self).__name__

    def save_for_backward(self, *tensors):
        """Keep tensors for backward, which reads them from ``saved_tensors``; to be called once, in forward or setup_context."""
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for jvp, which reads them from ``saved_tensors``; to be called once, in forward or setup_context."""
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Say which inputs forward has modified in place; each must be returned as an output."""
        self.dirty = args

    def mark_non_differentiable(self, *args):
        """Say which outputs have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, bint value):
        """Whether backward gets zeros (the default) or None where no gradient arrived."""
        self.materialize = value

    @property
    def materialize_grads(self):
        return self.materialize

    @materialize_grads.setter
    def materialize_grads(self, bint value):
        self.materialize = value

    @property
    def _materialize_non_diff_grads(self):
        """Whether backward gets zeros, too, for outputs without gradient (the default)."""
        return not self.skip_non_differentiable

    @_materialize_non_diff_grads.setter
    def _materialize_non_diff_grads(self, bint value):
        self.skip_non_differentiable = not value

    @property
    def saved_tensors(self):
        """The tensors given to save_for_backward. RuntimeError when they were freed or modified in place since."""
        cdef TensorBase t, r
        cdef list result = []
        if self.saved_state & SAVED_RELEASED:
            raise_released(self)
        if self.in_jvp:
            return self.saved_for_forward or ()
        if self.saved is None:
            return ()
        for entry in self.saved:
            if type((<tuple>entry)[0]) is PackedTensor:
                result.append(unpack_saved(self, (<tuple>entry)[0]))
                continue
            t = <TensorBase>(<tuple>entry)[0]
            if t is None:
                result.append(None)
                continue
            check_version(self, t, (<tuple>entry)[1])
            if (<tuple>entry)[2] >= 0:
                # an output: history restored only now, since keeping it would make a cycle
                r = output_alias(t)
                r.grad_fn_ = node_of_output(self)
                r.output_nr = (<tuple>entry)[2]
                r.requires_grad = 1
                r.keys |= K_AUTOGRAD | t.keys & K_FORWARD_AD
                r.tangent = t.tangent
                r.grad_fn_version = version_of(r)
                t = r
            result.append(t)
        return tuple(result)

    cdef object get_saved(self, int slot, int position):
        return None if self.saved is None else (<tuple>self.saved[position])[0]

    cdef int set_saved(self, int slot, int position, object value) except -1:
        self.saved[position] = (value,) + (<tuple>self.saved[position])[1:]
        return 0

    cdef object read_saved(self, int slot, int position):
        return self.saved_tensors[position]

    cdef bint saves_output(self, int slot, int position) noexcept:
        return self.saved is not None and (<tuple>self.saved[position])[2] >= 0

    @property
    def _raw_saved_tensors(self):
        """A SavedTensor for each tensor given to save_for_backward, to register hooks on."""
        if self.saved_state & SAVED_RELEASED:
            raise_released(self)
        return tuple([raw_saved(self, 0, i) for i in range(0 if self.saved is None else len(self.saved))])

    @property
    def saved_variables(self):
        return self.saved_tensors

    @property
    def dirty_tensors(self):
        return self.dirty

    cdef void release(self) noexcept:
        if self.saved:
            self.saved_state |= SAVED_RELEASED
            self.saved = None

    cdef object apply(self, object grad):
        cdef list grads
        cdef int i, k, n
        if self.n_inputs <= 1:
            grads = [grad]
        else:
            grads = [None] * self.n_inputs if grad is None else list(grad)
        if self.materialize:
            for i in range(len(grads)):
                if grads[i] is None and (self.without_gradient is None or not self.without_gradient[i]) and (expected := output_metadata(self, i)) is not None:
                    shape, code, place = expected
                    grads[i] = _ops.zeros(shape, dtype=dtype_of(code), device=device_at(place) if place != DEV_META else device_beside(grads))
        tls().python_ran = 1
        result = type(self)._forward_cls._backward_function()(self, *grads)
        if not isinstance(result, tuple):
            result = (result,)
        n = len(result)
        if n > self.n_arguments and all([r is None for r in result[self.n_arguments:]]):
            result = result[:self.n_arguments]
            n = self.n_arguments
        if n != self.n_arguments:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {self.n_arguments}, got {n})")
        for k in range(n):
            if result[k] is not None and not isinstance(result[k], TensorBase):
                raise RuntimeError(f"function {self.name()} returned gradient {k}: expected Variable or None (got {type(result[k]).__name__})")
        if n == 1 and self.n_edges == 1:
            return result[0]
        out = []
        i = 0
        for k in range(n):
            if i < self.n_edges and <int>self.positions[i] == k:
                out.append(result[k])
                i += 1
            elif result[k] is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {k + 1}, but the corresponding forward input was not a "
                    "Variable")
        return tuple(out)


cdef object device_beside(list grads):
    """Where zeros belong that stand in for a gradient of what has no memory of its own: to the others."""
    for g in grads:
        if g is not None:
            return g.device
    return device_at(DEV_META)


cdef inline bint contains(tuple tensors, object t):
    if tensors is not None:
        for x in tensors:
            if x is t:
                return True
    return False


cdef TensorBase view_as_self(TensorBase t):
    """What stands for an input that forward returned unchanged: a view, so that the input keeps its own history."""
    cdef TensorBase r
    if t.keys & K_PYTHON and not t.keys & K_STANDS_IN:
        r = output_alias(t)                 # the class's own
        adopt_view(r, t, True)
    else:
        r = make_view(t, t.ndim, t.sizes, t.strides, t.offset)
    r.creation_meta = CREATED_IN_FUNCTION
    return r


cdef object finish_output(FunctionNode ctx, object y, int i, tuple inputs, bint record):
    cdef TensorBase t
    cdef bint is_input, modified, differentiable
    if not isinstance(y, TensorBase):
        return y
    t = <TensorBase>y
    is_input = contains(inputs, y)
    modified = contains(ctx.dirty, y)
    differentiable = record and category[t.dtype] >= CAT_FLOAT and not contains(ctx.non_differentiable, y)
    if not differentiable:
        if is_input and not modified:
            t = view_as_self(t)
        elif t.base is not None and not is_input and not t.requires_grad:
            t.creation_meta = CREATED_IN_FUNCTION
        elif t.requires_grad and not (is_input and modified):
            t = output_alias(t)
        elif is_input and modified and t.requires_grad and record:
            t.grad_fn_ = None
            t.requires_grad = 0
            t.keys &= ~<uint64_t>K_AUTOGRAD
        return t
    if is_input and modified:
        if t.requires_grad and t.grad_fn_ is None:
            raise hinted("leaf", RuntimeError("a leaf Variable that requires grad has been used in an in-place operation."))
        check_recorded_write(t)
        rebase_history(t, ctx)
        if i and t.base is None:
            t.output_nr = i
            if t.retains_grad:
                entry = ctx.pre_hooks[len(ctx.pre_hooks) - 1]      # that keeps its gradient, of output 0 so far
                entry.value = (i, entry.value[1])
    elif is_input:
        t = view_as_self(t)
        set_history(t, ctx, i)
    else:
        if t.requires_grad:
            # made by recording code inside forward, or a tensor from outside: its own history does not count here
            t = output_alias(t)
        if t.base is not None:
            t.creation_meta = CREATED_IN_FUNCTION
        set_history(t, ctx, i)
    return t


cdef int pass_tangents(FunctionNode ctx, object cls, tuple args, list tangents, list outputs, list finished) except -1:
    """Call jvp with the tangents of the inputs and give the outputs what it returns."""
    cdef int i
    cdef TensorBase t
    cdef list given = tangents
    if ctx.materialize:
        tangents = [_ops.zeros_like(x.detach()) if t is None and isinstance(x, TensorBase) and category[(<TensorBase>x).dtype] >= CAT_FLOAT else t
                    for x, t in zip(args, tangents)]
    ctx.in_jvp = True
    try:
        result = cls.jvp(ctx, *tangents)
    finally:
        ctx.in_jvp = False
    if not isinstance(result, tuple):
        result = (result,)
    if len(result) != len(outputs):
        raise RuntimeError(f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got {len(result)})")
    for i, g in enumerate(result):
        if g is not None and not isinstance(g, TensorBase):
            raise RuntimeError(f"expected Variable or None (got {type(g).__name__}) for grad output {i}.")
        if not isinstance(finished[i], TensorBase) or category[(<TensorBase>finished[i]).dtype] < CAT_FLOAT or contains(ctx.non_differentiable, outputs[i]):
            if g is not None:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {i}, but the corresponding forward output is not a differentiable Tensor. You should return "
                    "None at that position instead.")
            continue
        t = <TensorBase>finished[i]
        if check_aliases(ctx, outputs[i], t, g, args, given):
            continue
        if g is None:
            g = _ops.zeros_like(t.detach())
        elif not same_sizes(<TensorBase>g, t):
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not supported. Tensor is of size "
                f"{shape_text(t)} while the given forward gradient is of size {shape_text(<TensorBase>g)}.")
        if contains(ctx.dirty, outputs[i]):
            write_tangent(t, <TensorBase>g)
        else:
            set_tangent(t, <TensorBase>g)
            if ctx.saved is not None:
                for entry in ctx.saved:
                    if (<tuple>entry)[2] == i and type((<tuple>entry)[0]) is PackedTensor:
                        (<PackedTensor>(<tuple>entry)[0]).tangent = t.tangent
                    elif (<tuple>entry)[2] == i:
                        set_tangent(<TensorBase>(<tuple>entry)[0], <TensorBase>g)
    return 0


cdef bint check_aliases(FunctionNode ctx, object output, TensorBase t, object g, tuple args, list tangents) except -1:
    """Refuse a tangent that does not alias an input's as its output aliases the input. Whether the output has its tangent already: an input that was
    written to."""
    cdef TensorBase tangent, base
    cdef int k
    if contains(ctx.dirty, output):
        for k in range(len(args)):
            if args[k] is output and tangents[k] is not None:
                if g is not tangents[k]:
                    raise RuntimeError(
                        "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an input inplace, then "
                        "the jvp function must modify the corresponding gradient inplace.")
                return True
        return False
    if t.base is None:
        return False
    for k in range(len(args)):
        if tangents[k] is None or args[k] is not t.base and (<TensorBase>args[k]).base is not t.base:
            continue
        tangent = <TensorBase>tangents[k]
        base = tangent if tangent.base is None else tangent.base
        if g is None or (<TensorBase>g).base is None:
            raise RuntimeError("A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view.")
        if (<TensorBase>g).base is not base:
            raise RuntimeError("A custom Function is returning a view but the jvp is not returning a view of the given grad input.")
    return False


cdef object finish_outputs(FunctionNode ctx, list outputs, tuple args, bint record):
    """What apply returns for each output of forward: one tensor for one that forward returned twice."""
    cdef list finished = []
    cdef int i, k
    for i in range(len(outputs)):
        for k in range(i):
            if outputs[k] is outputs[i] and isinstance(outputs[i], TensorBase) and (contains(ctx.dirty, outputs[i]) or not contains(args, outputs[i])):
                if (<TensorBase>finished[k]).grad_fn_ is ctx:
                    (<TensorBase>finished[k]).output_nr = i          # to which all gradients go
                finished.append(finished[k])
                break
        else:
            finished.append(finish_output(ctx, outputs[i], i, args, record))
    return finished


def apply(cls, *args, **kwargs):
    """Run a Function: forward with recording off, then attach the Node to its outputs."""
    if tls().included & ~tls().excluded & K_TRANSFORM and not cls._below_transform:
        from tensorrt_lite._C.core.transform import rule_of
        return rule_of("function")(cls, cls._bind(args, kwargs) if kwargs or cls._has_defaults else args)
    cdef FunctionNode ctx = <FunctionNode?>cls._backward_cls()
    cdef TensorBase t
    cdef int i, n = len(args)
    cdef bint before = tls().grad_mode, record = False, single
    cdef list needs = [False] * n
    if kwargs or cls._has_defaults:
        args = cls._bind(args, kwargs)
        n = len(args)
        needs = [False] * n
    cdef list positions = [], outputs, tangents = None
    cdef uint64_t excluded = tls().excluded
    if ctx.seq:
        raise RuntimeError(f"{ctx.name()}: a ctx belongs to one call")
    for i in range(n):
        x = args[i]
        if isinstance(x, TensorBase):
            t = <TensorBase>x
            if t.keys & K_FORWARD_AD and not excluded & K_FORWARD_AD and tangent_of(t) is not None:
                if tangents is None:
                    tangents = [None] * n
                tangents[i] = tangent_of(t)
            if t.requires_grad:
                needs[i] = True
                record = True
            if before:
                ctx.set_edge(len(positions), t)
                positions.append(i)
    record = record and before
    ctx.needs_input_grad = tuple(needs)
    ctx.n_arguments = n
    ctx.positions = tuple(positions)
    ctx.seq = next_sequence()
    if tls().notes:
        take_notes(ctx)
    tls().grad_mode = 0
    tls().excluded |= K_FORWARD_AD
    try:
        if cls._separate_context:
            result = cls.forward(*args)
            cls.setup_context(ctx, args, result)
        else:
            result = cls.forward(ctx, *args)
    finally:
        tls().grad_mode = before
        tls().excluded = excluded
    single = not isinstance(result, tuple)
    outputs = [result] if single else list(result)
    ctx.n_inputs = len(outputs)
    if ctx.dirty is not None:
        for x in ctx.dirty:
            if not contains(tuple(outputs), x):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified inplace must all be "
                    "outputs of the Function.")
            bump_version(<TensorBase?>x)
    if ctx.dirty is not None and record:
        for x in ctx.dirty:
            t = <TensorBase>x
            if t.base is not None and len(outputs) > 1:
                raise RuntimeError(
                    "If your Function modifies views inplace with mark_dirty, it must return a single Tensor, got {} outputs".format(len(outputs)))
    cdef list finished = [finish_output(ctx, outputs[0], 0, args, record)] if single else finish_outputs(ctx, outputs, args, record)
    for i in range(len(outputs)):
        if isinstance(finished[i], TensorBase):
            record_output(ctx, i, <TensorBase>finished[i])
    if ctx.skip_non_differentiable:
        ctx.without_gradient = [not isinstance(x, TensorBase) or not (<TensorBase>x).requires_grad for x in finished]
    if record:
        if ctx.to_save is not None:
            save_all(ctx, ctx.to_save, args, outputs, finished)
    if tangents is not None:
        tls().excluded |= K_FORWARD_AD
        try:
            pass_tangents(ctx, cls, args, tangents, outputs, finished)
        finally:
            tls().excluded = excluded
    ctx.to_save = ctx.saved_for_forward = None
    return finished[0] if single else tuple(finished)


cdef int save_all(FunctionNode ctx, tuple tensors, tuple args, list outputs, list finished) except -1:
    cdef list saved = []
    cdef TensorBase t
    cdef int i, k, nr
    for i in range(len(tensors)):
        x = tensors[i]
        if x is None:
            saved.append((None, 0, -1))
            continue
        if not isinstance(x, TensorBase):
            raise TypeError(f"save_for_backward can only save variables, but argument {i} is of type {type(x).__name__}")
        t = <TensorBase>x
        if t.inference:
            refuse_inference()
        nr = -1
        for k in range(0 if contains(args, x) and not contains(ctx.dirty, x) else len(outputs)):      # an input that is returned as it is stays one
            if outputs[k] is x and isinstance(finished[k], TensorBase) and (<TensorBase>finished[k]).grad_fn_ is ctx:
                nr = k
        if nr >= 0:
            t = output_alias(t)
            t.output_nr = nr
        saved.append((pack_saved(t, nr >= 0, False) if ctx.saved_state & SAVED_HOOKED else t, version_of(t), nr))
    ctx.saved = saved
    return 0
