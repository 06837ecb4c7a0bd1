"""Nodes: what an operator leaves behind so that its gradient can be computed.

A graph has no reference cycles: edges point from results to inputs, saved inputs keep their tensor, saved outputs keep a
detached alias (block, geometry, version), leaves hold their accumulator weakly. So reference counts free it; Nodes pass
their edges to a worklist when they die, because a chain of a million Nodes must not recurse.
"""
from collections import namedtuple

cimport cython
from tensorrt_lite._C.core.hints import hinted
from libc.stdlib cimport malloc, calloc, free
from libc.string cimport memcpy
from cpython.object cimport PyObject, PyTypeObject
from cpython.list cimport PyList_GET_ITEM
from cpython.ref cimport Py_DECREF, Py_INCREF
from tensorrt_lite._C.core.dtype cimport dtype_of, category, CAT_COMPLEX
from tensorrt_lite._C.core.free_threading cimport allow_finding, find, held_at_most, keep_for_ever, lock_of, mutex, mutex_lock, mutex_unlock, publish, read_shared_pointer
from tensorrt_lite._C.core.tensor cimport (
    K_PYTHON, K_SPARSE, K_STANDS_IN, K_DERIVATIVES, TensorBase, tensor_type, size_type, K_AUTOGRAD, K_FORWARD_AD, alias_of, ITEM_SIZE, check_geometry, version_of, shape_of, same_sizes, shape_text, bump_version, data_of, shared_version, lock_views, unlock_views, strides_of, place_of,
    CREATED_DEFAULT, CREATED_NO_GRAD, CREATED_MULTI_OUTPUT, CREATED_INFERENCE, CREATED_IN_FUNCTION)
from tensorrt_lite._C.core.dispatch cimport tls, attach, trt_thread_state
from tensorrt_lite._C.core.device cimport has_index, make_device, DEV_META
from tensorrt_lite._C.core.custom cimport NOTE_CUSTOM_STREAMS
from tensorrt_lite._C.core.storage cimport is_writable, make_writable
from tensorrt_lite._C.autograd.streams cimport current_streams
from tensorrt_lite._C.autograd.replaced_leaves cimport ReplacedLeaf, keep_leaf, leaf_at
from tensorrt_lite._C.autograd.window cimport Window, as_parts, from_parts
from tensorrt_lite._C.autograd.hooks import add_hook, RetainGrad
from _weakref import ref as _ref

cdef extern from "node_class.h":
    ctypedef void* newfunc
    newfunc trt_take_new(PyTypeObject*) noexcept
    void trt_forget_first(PyTypeObject*, void (*forget)(AccumulateGrad) noexcept) noexcept

attach()

cdef uint64_t newest_sequence = 0


class _Namespace:
    """The flat namespace of compiled operators, filled by the package; derivatives and compositions call operators through it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise NotImplementedError(f"{name} is not implemented (docs/gaps.md)")


cdef object _ops = _Namespace()
keep_for_ever(_ops)


cdef object ops_namespace():
    return _ops


def namespace():
    return _ops


cdef int dual_levels = 0

# What `Node._input_metadata` says of a gradient.
_InputMetadata = namedtuple(
    "_InputMetadata", ("shape", "dtype", "device", "is_tensor_subclass", "is_nested_tensor", "is_cpp_nested_tensor"), defaults=(False, False, False))


cdef inline list dying_nodes(trt_thread_state* state):
    cdef list nodes
    if state.dying == NULL:
        nodes = []
        Py_INCREF(nodes)           # for as long as the thread's state
        state.dying = <PyObject*>nodes
    return <list>state.dying


@cython.no_gc_clear
cdef class Node:
    """One step of a backward pass."""

    def __init__(self):
        raise TypeError(f"cannot create '{type(self).__name__}' instances")

    def __dealloc__(self):
        cdef trt_thread_state* state
        cdef list dying
        if self.out_form == OUTPUT_LIST:
            free_outputs(self)
        if (self.e0 is None or self.leaf_edges & 1) and (self.e1 is None or self.leaf_edges & 2) and self.e2 is None and self.more is None and self.e3 is None:
            return             # nothing that could start a long chain of deallocations: leaves have no edges
        # hand over the edges; whoever is outermost frees them one after another
        state = tls()
        dying = dying_nodes(state)
        if self.e0 is not None and not self.leaf_edges & 1:
            dying.append(self.e0)
            self.e0 = None
        if self.e1 is not None and not self.leaf_edges & 2:
            dying.append(self.e1)
            self.e1 = None
        if self.e2 is not None and not self.leaf_edges & 4:
            dying.append(self.e2)
            self.e2 = None
        if self.e3 is not None and not self.leaf_edges & 8:
            dying.append(self.e3)
            self.e3 = None
        if self.more is not None:
            dying.extend(self.more)
            self.more = None
        if not state.draining:
            state.draining = 1
            while dying:
                dying.pop()
            state.draining = 0

    cdef object apply(self, object grad):
        raise NotImplementedError(f"{type(self).__name__} has no backward")

    cdef void release(self) noexcept:
        self.saved_state |= SAVED_RELEASED

    cdef object get_saved(self, int slot, int position):
        return None

    cdef int set_saved(self, int slot, int position, object value) except -1:
        return 0

    cdef object read_saved(self, int slot, int position):
        return None

    cdef bint saves_output(self, int slot, int position) noexcept:
        return False

    cdef object edge(self, int i):
        """The Node that edge i leads to. A leaf is replaced by its accumulator, which the graph then keeps alive."""
        if i < 4 and self.leaf_edges >> i & 1:
            self.leaf_edges &= ~(1 << i)
            if i == 0:
                self.e0 = accumulator_for(self, <TensorBase>self.e0)
            elif i == 1:
                self.e1 = accumulator_for(self, <TensorBase>self.e1)
            elif i == 2:
                self.e2 = accumulator_for(self, <TensorBase>self.e2)
            else:
                self.e3 = accumulator_for(self, <TensorBase>self.e3)
        if i == 0:
            return self.e0
        if i == 1:
            return self.e1
        if i == 2:
            return self.e2
        if i == 3:
            return self.e3
        return self.more[i - 4]

    cdef int edge_nr(self, int i) noexcept:
        if i == 0:
            return self.nr0
        if i == 1:
            return self.nr1
        if i == 2:
            return self.nr2
        if i == 3:
            return self.nr3
        return <int>self.more_nr[i - 4]

    cdef int set_edge(self, int i, TensorBase t) except -1:
        """Connect edge i to the Node that made `t` (or to a leaf; nothing when it needs no gradient)."""
        cdef object n = None
        cdef int nr = 0
        if i < 4:
            self.leaf_edges &= ~(1 << i)   # an edge may be set again
        if t is not None and t.requires_grad:
            n = grad_fn_of(t)
            nr = t.output_nr
            if n is None:
                # making an accumulator costs as much as the Node; most graphs meet each leaf once, in the backward pass
                if read_shared_pointer(&t.accumulator) != NULL or i >= 4:
                    n = accumulator_of(t)
                else:
                    n = t
                    self.leaf_edges |= 1 << i
        if i >= self.n_edges:
            self.n_edges = i + 1
        if i == 0:
            self.e0 = n
            self.nr0 = nr
        elif i == 1:
            self.e1 = n
            self.nr1 = nr
        elif i == 2:
            self.e2 = n
            self.nr2 = nr
        elif i == 3:
            self.e3 = n
            self.nr3 = nr
        else:
            if self.more is None:
                self.more = []
                self.more_nr = []
            while len(self.more) <= i - 4:
                self.more.append(None)
                self.more_nr.append(0)
            self.more[i - 4] = n
            self.more_nr[i - 4] = nr
        return 0

    def name(self):
        """The Node's name, for example ``AddBackward0``."""
        return type(self).__name__

    @property
    def next_functions(self):
        """((node, input number), …): where the gradients go."""
        return tuple([(self.edge(i), self.edge_nr(i)) for i in range(self.n_edges)])

    @property
    def _input_metadata(self):
        """Shape, dtype and device of each gradient that the Node takes; None for an output of the forward call without gradient."""
        cdef int nr
        found = [output_metadata(self, nr) for nr in range(1 if self.kind == NODE_LEAF else max(self.n_inputs, 1))]
        return tuple([None if m is None else _InputMetadata(m[0], dtype_of(m[1]), device_at(m[2])) for m in found])

    @property
    def metadata(self):
        if self.meta is None:
            self.meta = {}
        return self.meta

    def _sequence_nr(self):
        return self.seq

    def register_hook(self, hook):
        """Call ``hook(grad_inputs, grad_outputs)`` after this Node ran; it may return new grad_inputs."""
        if self.post_hooks is None:
            self.post_hooks = []
        return add_hook(self.post_hooks, hook)

    def register_prehook(self, hook):
        """Call ``hook(grad_outputs)`` before this Node runs; it may return new grad_outputs."""
        if self.pre_hooks is None:
            self.pre_hooks = []
        return add_hook(self.pre_hooks, (-1, hook))

    def __call__(self, *grads):
        """Run this Node alone: a gradient (or None) for each output of its forward call gives those of its inputs."""
        cdef int expected = max(self.n_inputs, 1), i
        cdef list given = []
        if len(grads) != expected:
            raise TypeError(f"expected {expected} arguments, got {len(grads)} instead")
        for i in range(expected):
            if grads[i] is not None and not isinstance(grads[i], TensorBase):
                raise TypeError(f"argument {i} is not a Variable")
            given.append(None if grads[i] is None else fit_gradient(self, i, self, i, private_gradient(<TensorBase>grads[i])))
        grad = given[0] if self.n_inputs <= 1 else guard_gradients(self, given)
        if self.kind == NODE_LEAF:
            from tensorrt_lite._C.autograd.accumulate import accumulate_gradient
            if grad is not None:
                accumulate_gradient((<AccumulateGrad>self).variable, grad)
            return ()
        if grad is None and self.kind == NODE_PLAIN:
            return None if self.n_edges <= 1 else (None,) * self.n_edges
        out = self.apply(grad)
        return tuple(out) if isinstance(out, list) else out


@cython.no_gc_clear
cdef class AccumulateGrad(Node):
    """The end of the graph at a leaf: the executor adds to its ``grad``."""

    def __repr__(self):
        return f"<AccumulateGrad object at {<size_t><PyObject*>self:#x}>"

    def __dealloc__(self):
        forget_accumulator(self)

    @property
    def variable(self):
        return self.variable


def retain_grad(TensorBase t not None):
    """Keep the gradient of a result in its ``grad``; nothing for leaves."""
    cdef Node n = grad_fn_of(t)
    if n is None or t.retains_grad:
        return
    t.retains_grad = 1
    _keep_at(t, n)


cdef int _keep_at(TensorBase t, Node n) except -1:
    ref = _ref(t)

    def keep(g):
        kept = ref()
        if kept is not None:
            keep_gradient(<TensorBase>kept, <TensorBase>g)

    entry = RetainGrad((t.output_nr, keep))
    entry.ref = ref
    if n.pre_hooks is None:
        n.pre_hooks = []
    n.pre_hooks.append(entry)
    return 0


def _bump_version(TensorBase t not None):
    """Count a write in place; autograd.graph.increment_version."""
    bump_version(t)


def _gradient_node(TensorBase t not None):
    """The Node to which a gradient of `t` goes; autograd.graph.get_gradient_edge."""
    return gradient_node(t)


cdef int keep_gradient(TensorBase t, TensorBase g) except -1:
    cdef object total = t.grad_
    t.grad_ = g.clone() if total is None else total + g
    return 0


cdef int move_keep(TensorBase t, Node before) except -1:
    """After a write in place the gradient to keep is that of the new value."""
    if before is not None and before.pre_hooks is not None:
        for entry in before.pre_hooks:
            if type(entry) is RetainGrad and entry.ref() is t:
                before.pre_hooks.remove(entry)
                break
    _keep_at(t, <Node>t.grad_fn_)
    return 0


cdef object _type_cache = {}


cdef PyTypeObject* node_class(const char* name, object base) except NULL:
    """A class with PyTorch's name for the grad_fn of one operator, made at first use."""
    cdef str n = name.decode()
    t = _type_cache.get((n, base))
    if t is None:
        t = type(n, (base,), {"__slots__": (), "__module__": "builtins"})     # no module is printed, as of PyTorch's
        # These classes add nothing to their base and live forever, so an instance needs none of what Python's general
        # deallocator does for a subclass, not even to give back its reference to the class: a third of a Node's cost.
        (<PyTypeObject*>t).tp_dealloc = (<PyTypeObject*>base).tp_dealloc
        t = _type_cache.setdefault((n, base), t)       # another thread's may have been first
    return <PyTypeObject*>t


cdef int take_notes(Node node) except -1:
    """What new Nodes remember of their forward call when that is asked for: its streams, and where it stood."""
    cdef int notes = tls().notes
    if notes & (NOTE_STREAMS | NOTE_CUSTOM_STREAMS):
        node.streams = current_streams()
    if notes & NOTE_TRACEBACK:
        import traceback
        node.metadata["traceback_"] = traceback.format_stack()
    if notes & NOTE_SAVED_HOOKS:
        node.saved_state |= SAVED_HOOKED
    return 0


cdef int raise_released(Node node) except -1:
    raise hinted("backward twice", RuntimeError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). Saved "
        "intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
        "backward through the graph a second time or if you need to access saved tensors after calling backward."))


cdef int check_version(Node node, TensorBase t, int64_t version) except -1:
    if t.detached & DETACHED and t.grad_fn_ is None and not FREE_THREADED and <uint64_t>t.grad_fn_version >= node.seq:
        raise RuntimeError(
            f"{type(node).__name__}: a tensor that was saved for the backward pass has been detached in place since, by detach_(): its history is lost. Use "
            "detach() instead, which leaves the tensor as it is.")
    if version_of(t) != version:
        raise hinted("modified", RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"[{dtype_of(t.dtype)!r} {shape_text(t)}], which is input or output of {type(node).__name__}, is at version {version_of(t)}; expected version {version} "
            "instead. Hint: enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True)."))
    return 0


cdef object device_at(int place):
    return make_device(place & 0xFF, (place >> 8) - 1 if place >> 8 else None)


cdef TensorBase output_alias(TensorBase t):
    """What a Node keeps of its own output: no grad_fn, so no cycle."""
    return alias_of(t) if not t.keys & K_PYTHON or t.keys & K_STANDS_IN else unrecorded_alias(t)


cdef TensorBase unrecorded_alias(TensorBase t):
    """What the class of a tensor with __torch_dispatch__ takes for its alias."""
    cdef uint64_t before = tls().excluded
    tls().excluded = before | K_DERIVATIVES
    try:
        return <TensorBase?>_ops.alias(t)
    finally:
        tls().excluded = before


cdef TensorBase attach_output(Node node, TensorBase alias, int output_nr):
    """A saved output with its history restored, for higher derivatives."""
    cdef TensorBase r
    if not tls().grad_mode:
        return alias
    r = output_alias(alias)
    r.grad_fn_ = node_of_output(node)
    r.output_nr = output_nr
    r.requires_grad = 1
    r.keys |= K_AUTOGRAD | alias.keys & K_FORWARD_AD
    r.tangent = alias.tangent
    return r


def refuse_inference():
    """Raise: an inference tensor would have to be saved."""
    raise RuntimeError(
        "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in computation tracked by autograd. To "
        "work around this, you can make a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` instead of "
        "`torch.inference_mode()`.")


cdef int set_history(TensorBase result, Node node, int output_nr) except -1:
    result.grad_fn_ = node
    result.output_nr = output_nr
    result.requires_grad = 1
    result.keys |= K_AUTOGRAD
    if result.version != NULL:
        result.grad_fn_version = result.version.value
    return record_output(node, output_nr, result)


cdef Node gradient_node(TensorBase t):
    """The Node to which a gradient of `t` goes: its grad_fn, or the accumulator of a leaf."""
    cdef Node n = grad_fn_of(t)
    return n if n is not None else accumulator_of(t)


cdef AccumulateGrad known_accumulator(TensorBase t, AccumulateGrad fresh):
    """The leaf's accumulator; `fresh` from now on where it has none. None where neither is there."""
    cdef AccumulateGrad known = fresh
    cdef mutex* lock = lock_of(<PyObject*>t)
    mutex_lock(lock)
    if t.accumulator != NULL and find(t.accumulator):       # it may be about to go in another thread
        known = <AccumulateGrad>t.accumulator
        Py_DECREF(known)                                    # `find` took a reference, and so did the line above
    elif fresh is not None:
        publish(t.accumulator, <PyObject*>fresh)
    mutex_unlock(lock)
    return known


cdef AccumulateGrad new_accumulator(TensorBase t):
    cdef AccumulateGrad a = AccumulateGrad.__new__(AccumulateGrad)
    a.variable = t
    a.n_inputs = 1
    a.kind = NODE_LEAF
    a.seq = <uint64_t>-1
    allow_finding(a)
    return a


cdef Node accumulator_of(TensorBase t):
    cdef AccumulateGrad a = known_accumulator(t, None)
    return a if a is not None else known_accumulator(t, new_accumulator(t))


cdef Node accumulator_for(Node user, TensorBase t):
    """The accumulator to which `user`, made earlier, sends gradients of the leaf: not today's where set_ has given the leaf other memory since."""
    cdef ReplacedLeaf past = leaf_at(t, user.seq) if t.detached & REPLACED else None
    cdef object a
    if past is None:
        return accumulator_of(t)
    a = past.accumulator()
    if a is None:
        a = new_accumulator(t)
        copy_output(<Node>a, <Node>past.like)
        past.accumulator = _ref(a)
    return <Node>a


cdef int leave_history(TensorBase t, int how) except -1:
    """`t` is about to lose its history by detach_() (DETACHED), or a leaf its memory by set_() (REPLACED): older Nodes are to know."""
    cdef AccumulateGrad a
    cdef Node like
    cdef mutex* lock
    if how == DETACHED:
        t.grad_fn_version = <int64_t>(next_sequence())
    elif FREE_THREADED:
        return 0
    else:
        like = Node.__new__(Node)
        record_output(like, 0, t)
        a = known_accumulator(t, None)
        if a is not None:
            copy_output(a, like)
        keep_leaf(t, not t.detached & REPLACED, next_sequence(), like, a)
        lock = lock_of(<PyObject*>t)
        mutex_lock(lock)
        publish(t.accumulator, NULL)
        mutex_unlock(lock)
    t.detached |= how
    return 0


cdef void forget_accumulator(AccumulateGrad a) noexcept:
    """The accumulator's last reference is gone."""
    cdef mutex* lock
    if a.variable is not None:
        lock = lock_of(<PyObject*>a.variable)
        mutex_lock(lock)
        if a.variable.accumulator == <PyObject*>a:
            publish(a.variable.accumulator, NULL)
        mutex_unlock(lock)


cdef Node grad_fn_of(TensorBase t):
    """grad_fn, made anew for a view whose base was written to since."""
    cdef Node n
    if t.base is not None and t.base.requires_grad and t.version != NULL and t.grad_fn_version != t.version.value and t.requires_grad:
        if t.creation_meta != CREATED_DEFAULT and tls().grad_mode:
            refuse_view(t, True)
        if t.creation_meta == CREATED_DEFAULT:
            n = regenerate(t)
            t.grad_fn_ = n
            t.output_nr = 0
            t.grad_fn_version = t.version.value
            if t.retains_grad:
                move_keep(t, None)
    return <Node>t.grad_fn_


cdef class AsStridedBackward0(Node):
    """The gradient of a view given by its geometry inside its base."""
    cdef Window window

    cdef object apply(self, object grad):
        cdef Window w = self.window
        if w.parts == 2:
            grad = as_parts(grad)
        shape, strides = w.shape, w.strides
        for d, s in enumerate(strides):
            if s == 0 and shape[d] > 1:      # an expanded dimension: its places are one
                grad = grad.sum(d, keepdim=True)
                shape = shape[:d] + (1,) + shape[d + 1:]
        memory, base = w.gradient_of_base(grad, True)
        # through views of one memory, so that the sum over overlapping places and higher derivatives come out right
        memory.as_strided(shape, strides, w.start + w.offset).add_(grad)
        base = memory.as_strided(w.real_base_shape(), w.real_base_strides(), w.start)
        return from_parts(base) if w.parts == 1 else base


cdef Node regenerate(TensorBase t):
    cdef AsStridedBackward0 n
    n = AsStridedBackward0.__new__(AsStridedBackward0)
    n.n_inputs = 1
    n.seq = next_sequence()
    if tls().notes:
        take_notes(n)
    n.window = Window.of(t.base, t)
    n.set_edge(0, t.base)
    record_output(n, 0, t)
    return n


cdef extern from *:
    """
    static __thread PyObject *trt_running_slices __attribute__((tls_model("initial-exec")));
    """
    PyObject* running_slices "trt_running_slices"      # the CopySlices whose writer runs in this thread, borrowed from the pass


cdef Node node_of_output(Node node):
    """The Node to which a gradient of what `node` has saved of its own output goes.

    A write through a view is a step of the base's history, in which the writer is only a part: the output is a view of the base after the write.
    """
    cdef CopySlices c
    cdef AsStridedBackward0 view
    if not node.saved_state & SAVED_IN_VIEW or running_slices == NULL or (<CopySlices>running_slices).writer is not node:
        return node
    c = <CopySlices>running_slices
    view = AsStridedBackward0.__new__(AsStridedBackward0)
    view.n_inputs = 1
    view.seq = next_sequence()
    view.window = c.window
    view.n_edges = 1
    view.e0 = c
    copy_output(view, node)
    return view


cdef class CopySlices(Node):
    """A write through a view: the gradient of the written part goes to the writer, the rest to the old base."""
    cdef Node writer
    cdef Window window

    def __dealloc__(self):
        # the writer leads into the old history, too: it dies on the worklist like the edges
        if self.writer is not None:
            dying_nodes(tls()).append(self.writer)

    cdef void release(self) noexcept:
        if self.writer is not None:
            self.writer.release()

    cdef object apply(self, object grad):
        global running_slices
        cdef Window w = self.window
        cdef list result
        cdef PyObject* outer = running_slices
        whole = as_parts(grad) if w.parts == 1 else grad
        memory, base = w.gradient_of_base(whole, False)
        base.copy_(whole)
        part = w.view_in(memory).clone()
        running_slices = <PyObject*>self
        try:
            inner = self.writer.apply(from_parts(part) if w.parts == 2 else part)
        finally:
            running_slices = outer
        result = [inner] if isinstance(inner, TensorBase) or inner is None else list(inner)
        if self.e0 is not None:
            part = w.view_in(memory)
            if result[0] is None:
                part.zero_()
            else:
                part.copy_(as_parts(result[0]) if w.parts == 2 else result[0])
            base = memory.as_strided(w.real_base_shape(), w.real_base_strides(), w.start)
            result[0] = from_parts(base) if w.parts == 1 else base
        else:
            result[0] = None
        return tuple(result) if len(result) > 1 else result[0]


cdef int mark_views(TensorBase base) except -1:
    """After the base began to need gradients: its views do, too."""
    cdef PyObject* v
    if base.version == NULL:
        return 0
    lock_views(base.version)
    v = base.version.views
    while v != NULL:
        if (<TensorBase>v).base is base and (<TensorBase>v).creation_meta != CREATED_NO_GRAD:
            (<TensorBase>v).requires_grad = 1
            (<TensorBase>v).keys |= K_AUTOGRAD
        v = (<TensorBase>v).next_view
    unlock_views(base.version)
    return 0


cdef int rebase_history(TensorBase t, Node node) except -1:
    """`node` has just written `t` in place: give it (and the base it views) the new history. The version was bumped before."""
    cdef CopySlices c
    cdef TensorBase b = t.base
    cdef Node before = <Node>t.grad_fn_
    cdef int i
    if b is None:
        set_history(t, node, 0)
        mark_views(t)
        if t.retains_grad:
            move_keep(t, before)
        return 0
    c = CopySlices.__new__(CopySlices)
    c.n_inputs = 1
    c.seq = next_sequence()
    if tls().notes:
        take_notes(c)
    c.writer = node
    node.saved_state |= SAVED_IN_VIEW
    record_output(node, 0, t)
    c.window = Window.of(b, t)
    c.set_edge(0, b)
    for i in range(1, node.n_edges):
        copy_edge(c, node, i)
    before_base = <Node>b.grad_fn_
    set_history(b, c, 0)
    mark_views(b)
    if b.retains_grad:
        move_keep(b, before_base)
    t.requires_grad = 1
    t.keys |= K_AUTOGRAD
    t.grad_fn_ = regenerate(t)
    t.output_nr = 0
    t.grad_fn_version = version_of(t)
    if t.retains_grad:
        move_keep(t, before)
    return 0


cdef int copy_edge(Node to, Node source, int i) except -1:
    cdef Node n = source.edge(i)
    to.set_edge(i, None)
    if i == 1:
        to.e1 = n
        to.nr1 = source.nr1
    elif i == 2:
        to.e2 = n
        to.nr2 = source.nr2
    elif i == 3:
        to.e3 = n
        to.nr3 = source.nr3
    else:
        to.more[i - 4] = n
        to.more_nr[i - 4] = source.edge_nr(i)
    return 0


cdef int refuse_view(TensorBase t, bint indirect) except -1:
    """Raise for a view that a write (through it, or `indirect`ly through its base) has made impossible to differentiate."""
    cdef str what = " and its base or another view of its base has been modified inplace" if indirect else " and is being modified inplace"
    cdef str who
    if t.grad_fn_ is not None:
        # the operator: the Node's name without Backward and a number
        who = f"Output {t.output_nr} of {type(t.grad_fn_).__name__.rstrip('0123456789').removesuffix('Backward')} is a view{what}"
    else:
        who = f"A view was created without gradients{what} with grad mode enabled"
    if t.creation_meta == CREATED_NO_GRAD or t.creation_meta == CREATED_INFERENCE:
        mode = "no_grad" if t.creation_meta == CREATED_NO_GRAD else "inference_mode"
        now = "with grad mode enabled" if t.creation_meta == CREATED_NO_GRAD else "in normal mode"
        raise RuntimeError(
            f"A view was created in {mode.removesuffix('_mode')} mode{what} {now}. Given that this use case is ambiguous and "
            "error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both inside the "
            f"{mode} block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked).")
    if t.creation_meta == CREATED_MULTI_OUTPUT:
        raise RuntimeError(
            f"{who}. This view is the output of a function that returns multiple views. Such functions do not allow the output views to be "
            "modified inplace. You should replace the inplace operation by an out-of-place one.")
    if t.creation_meta == CREATED_IN_FUNCTION:
        raise RuntimeError(
            f"{who}. This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic to handle "
            "view+inplace would override the custom backward associated with the custom Function, leading to incorrect gradients. This behavior is "
            "forbidden. You can fix this by cloning the output of the custom Function.")
    return 0


cdef int check_inplace(TensorBase t, str op) except -1:
    """Refuse writes that autograd can't follow and writes to read-only memory, take a copy of what lazy clones share; called before anything is written."""
    if not is_writable(t.storage) and op not in ("view", "set_"):       # those change the geometry alone
        make_writable(t.storage, op)
    if t.inference and not tls().inference_mode:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal tensor before doing inplace "
            "update. See https://github.com/pytorch/rfcs/pull/17 for more details.")
    if not tls().grad_mode or not (t.requires_grad or t.base is not None and t.base.requires_grad):
        return 0
    if t.base is not None:
        if t.creation_meta != CREATED_DEFAULT:
            refuse_view(t, False)
        if not t.base.requires_grad and t.grad_fn_ is None:
            raise hinted("leaf", RuntimeError(f"a leaf Variable that requires grad is being used in an in-place operation. ({op})"))
        if t.base.requires_grad and grad_fn_of(t.base) is None:
            raise hinted("leaf", RuntimeError(f"a view of a leaf Variable that requires grad is being used in an in-place operation. ({op})"))
    elif t.grad_fn_ is None:
        raise hinted("leaf", RuntimeError(f"a leaf Variable that requires grad is being used in an in-place operation. ({op})"))
    return 0


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


cdef int copy_output(Node to, Node source) except -1:
    """Write down for `to`, a new Node of one output, what `source` has of its first."""
    cdef OutputMeta* m
    cdef OutputMeta* made
    if source.out_form != OUTPUT_LIST:
        to.out = source.out
        to.out_form = source.out_form
        to.out_dtype, to.out_device, to.out_index = source.out_dtype, source.out_device, source.out_index
        return 0
    m = &source.out.list[0]
    made = <OutputMeta*>calloc(1, sizeof(OutputMeta))
    if made == NULL:
        raise MemoryError("autograd: no memory for the metadata of outputs")
    made[0] = m[0]
    made.sizes = <int64_t*>malloc(max(m.ndim, 1) * sizeof(int64_t))
    if made.sizes == NULL:
        free(made)
        raise MemoryError("autograd: no memory for the metadata of outputs")
    memcpy(made.sizes, m.sizes, max(m.ndim, 0) * sizeof(int64_t))
    to.out.list = made
    to.out_form = OUTPUT_LIST
    return 0


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
    """(shape, dtype code, place) of an output; None when it has no gradient. Of a leaf's accumulator: the leaf as it is now, or was before set_."""
    cdef TensorBase leaf
    cdef OutputMeta* m
    cdef int i
    if n.kind == NODE_LEAF and n.out_form == OUTPUT_UNKNOWN:
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
    return device_type | (device_index + 1) << 8 if has_index(device_type) else device_type


cdef inline bint same_meta(TensorBase g, int ndim, const int64_t* sizes, int dtype, int device_type, int device_index) noexcept:
    cdef int i
    # the class of a tensor with __torch_dispatch__ says where it is
    if g.ndim != ndim or g.dtype != dtype or place_of(g) != place_number(device_type, device_index) and not g.keys & K_PYTHON:
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
    if n.kind == NODE_LEAF and n.out_form == OUTPUT_UNKNOWN:
        leaf = (<AccumulateGrad>n).variable
        if leaf.keys & K_SPARSE:
            return g.dtype == leaf.dtype and same_sizes(g, leaf)       # its gradient may be dense
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
    if place_of(g) != place and not g.keys & K_PYTHON:
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
    r = output_alias(g)
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
    if not held_at_most(g, 2) or p.ob_type != tensor_type:
        g = private_gradient(g)
    if not gradient_agrees(n, nr, g):
        expected = output_metadata(n, nr)
        if expected is None:
            return None
        shape, code, place = expected
        raise RuntimeError(
            f"{n.name()}: the gradient of output {nr} must be a {dtype_of(code)!r} tensor of shape {list(shape)} on device {device_at(place)}, but code that "
            f"ran in the backward pass has made it {dtype_of(g.dtype)!r} of shape {shape_text(g)} on {(<object>g).device}")
    if g.keys & K_STANDS_IN:
        return g                       # no memory of its own
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


# Python makes no Nodes but those of custom Functions.
trt_take_new(<PyTypeObject*>AccumulateGrad)
trt_forget_first(<PyTypeObject*>AccumulateGrad, forget_accumulator)
trt_take_new(<PyTypeObject*>AsStridedBackward0)
trt_take_new(<PyTypeObject*>CopySlices)
