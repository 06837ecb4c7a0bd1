"""The executor: walks the graph from the roots, most recent Node first, each Node once all its gradients have arrived.

Everything is iterative and the state belongs to the run, so runs nest (a backward inside a hook or a custom Function)
and run side by side in several threads. A Node only remembers the number of the last run that met it and its place in
that run; a run whose mark was overwritten by another one finds its Nodes through a hash table, built then. Discovery
executes no Python code, so it happens entirely under one hold of the GIL, which those marks rely on.

On CUDA a Node runs on the streams that were current in its forward call, a leaf's accumulation on those of its first use in the graph. Where a
gradient comes from other streams the Node's wait for them, and at the end the caller's wait for all that the run has used. A program that makes
no stream current pays one test per Node and gradient for it.
"""
from libc.stdlib cimport malloc, free, calloc, realloc
from libc.stdint cimport int64_t, uint64_t, uint32_t, uint8_t, uintptr_t
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_DECREF
from cpython.list cimport PyList_GET_ITEM
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.storage cimport DeviceHooks, installed_hooks
from tensorrt_lite._C.core.tensor cimport TensorBase, K_FORWARD_AD, K_WRAPPED, alias_of, place_of, shape_of, shape_text, same_sizes, strides_of, tensor_type
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.dispatch cimport tls, attach, operator_named, trt_operator, trt_thread_state, FRESH, INPLACE
from tensorrt_lite._C.core.iterator cimport PointwiseInfo
from tensorrt_lite._C.core.profiler cimport KIND_NODE, KIND_PASS, begin_record, end_record, follow_sequence, is_recorded
from tensorrt_lite._C.autograd.node cimport (
    Node, AccumulateGrad, newest_sequence, gradient_node, grad_fn_of, NODE_LEAF, NODE_FUNCTION, NOTE_TRACEBACK, NOTE_CHECK_NAN, gradient_agrees, fit_gradient, guard_gradients,
    private_gradient)
from tensorrt_lite._C.autograd.node import retain_grad
from tensorrt_lite._C.autograd.hooks import RetainGrad
from tensorrt_lite._C.autograd.nested_pass import run_in_thread
from tensorrt_lite._C.autograd.pointwise cimport call2

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1
    int PyGC_Disable()
    int PyGC_Enable()

cdef extern from "pythread.h" nogil:
    ctypedef void* PyThread_type_lock
    PyThread_type_lock PyThread_allocate_lock()
    int PyThread_acquire_lock(PyThread_type_lock, int)
    void PyThread_release_lock(PyThread_type_lock)

attach()
follow_sequence(&newest_sequence)


cdef struct Task:
    PyObject* node                 # owned
    PyObject* buffer               # owned: the sum of what arrived (a list for several outputs), or NULL
    int dependencies
    int capture                    # first entry of the capture list, or -1
    uint8_t reached                # runs or is captured: it lies on a path to a wanted input
    uint8_t execute
    uint8_t owned                  # the buffer is a sum made here: nobody else sees it

cdef struct Capture:
    int output_nr
    int position
    int next

cdef enum:
    NESTED_DEPTH = 20              # backward passes inside of each other that share a stack: each takes some ten Python frames of a thousand

cdef enum:
    LONG_GRADIENT = 4096           # elements of a gradient beyond which a Node may take long enough for a look at pending signals

cdef uint64_t _runs = 0            # numbers given out
cdef int _active = 0               # runs in progress, in all threads
cdef PyThread_type_lock _accumulate_lock = PyThread_allocate_lock()
cdef Scalar _one
_one.kind = 1
_one.i = 1
_one.d = 1.0
_one.im = 0.0
cdef trt_operator* _add = NULL     # the operator that sums gradients: of a family above, looked up by the first sum


cdef inline TensorBase sum_gradients(TensorBase a, TensorBase b, TensorBase out, int mode):
    """a + b, dispatched and recorded like any call."""
    global _add
    if _add == NULL:
        _add = operator_named("add")
    return call2(<PointwiseInfo*>_add.info, a, b, &_one, out, mode)


cdef inline PyObject* edge_of(Node n, int i) noexcept:
    """Borrowed; after discovery only Nodes, as that replaces leaves by their accumulators."""
    if i == 0:
        return <PyObject*>n.e0
    if i == 1:
        return <PyObject*>n.e1
    if i == 2:
        return <PyObject*>n.e2
    if i == 3:
        return <PyObject*>n.e3
    return <PyObject*>PyList_GET_ITEM(n.more, i - 4)


cdef inline uint64_t hash_of(PyObject* n) noexcept:
    return ((<uint64_t><uintptr_t>n >> 4) * <uint64_t>0x9E3779B97F4A7C15) >> 32


cdef class GraphTask:
    """One run: tasks in the order of discovery and a heap of the ready ones."""
    cdef Task* tasks
    cdef int count, capacity
    cdef int heap_count
    cdef int* heap
    cdef uint64_t id
    cdef int* table                # open addressing: Node address -> task; NULL while the Nodes' marks are ours
    cdef uint32_t table_mask
    cdef Capture* captures
    cdef DeviceHooks* hooks
    cdef int* streams              # of each task, by the numbers of DeviceHooks; NULL while only default streams were ever current
    cdef char* used                # which of the n_sets sets there were tasks ran on
    cdef int n_sets
    cdef int home, here            # the caller's, and those of the task that runs
    cdef list callbacks            # run after the last Node; None while there are none

    def __cinit__(self):
        global _runs
        _runs += 1
        self.id = _runs
        self.capacity = 64
        self.tasks = <Task*>malloc(self.capacity * sizeof(Task))
        self.heap = <int*>malloc(self.capacity * sizeof(int))
        if self.tasks == NULL or self.heap == NULL:
            raise MemoryError("autograd: no memory for the tasks of a backward pass")

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            Py_XDECREF(self.tasks[i].buffer)
        for i in range(self.count):
            Py_XDECREF(self.tasks[i].node)
        free(self.tasks)
        free(self.heap)
        free(self.table)
        free(self.captures)
        free(self.streams)
        free(self.used)

    cdef int build_table(self) except -1:
        cdef uint32_t size = 16, at
        cdef int i
        while size < <uint32_t>(2 * self.count):
            size *= 2
        self.table = <int*>malloc(size * sizeof(int))
        if self.table == NULL:
            raise MemoryError("autograd: no memory for the table of a backward pass")
        self.table_mask = size - 1
        for i in range(<int>size):
            self.table[i] = -1
        for i in range(self.count):
            at = <uint32_t>hash_of(self.tasks[i].node) & self.table_mask
            while self.table[at] >= 0:
                at = (at + 1) & self.table_mask
            self.table[at] = i
        return 0

    cdef int search(self, PyObject* n) except -2:
        """Find the task of a Node whose mark is not ours; -1 when it is not part of this run."""
        cdef uint32_t at
        if self.table == NULL:
            self.build_table()
        at = <uint32_t>hash_of(n) & self.table_mask
        while self.table[at] >= 0:
            if self.tasks[self.table[at]].node == n:
                return self.table[at]
            at = (at + 1) & self.table_mask
        return -1

    cdef inline int find(self, PyObject* n) except -2:
        if (<Node>n).run == self.id:
            return (<Node>n).task
        return self.search(n)

    cdef inline int add(self, PyObject* n) except -1:
        """The task of a Node, made when it is new. Only during discovery."""
        cdef Task* t
        cdef int i
        if (<Node>n).run == self.id:
            return (<Node>n).task
        if self.count == self.capacity:
            self.grow()
        i = self.count
        self.count = i + 1
        (<Node>n).run = self.id
        (<Node>n).task = i
        t = &self.tasks[i]
        Py_INCREF(<object>n)
        t.node = n
        t.buffer = NULL
        t.dependencies = 0
        t.capture = -1
        t.reached = 1
        t.execute = 1
        t.owned = 0
        return i

    cdef int grow(self) except -1:
        cdef Task* tasks = <Task*>realloc(self.tasks, 2 * <size_t>self.capacity * sizeof(Task))
        cdef int* heap
        if self.capacity > (1 << 29):
            raise MemoryError("autograd: a graph has too many Nodes")
        if tasks == NULL:
            raise MemoryError("autograd: no memory for the tasks of a backward pass")
        self.tasks = tasks
        heap = <int*>realloc(self.heap, 2 * <size_t>self.capacity * sizeof(int))
        if heap == NULL:
            raise MemoryError("autograd: no memory for the tasks of a backward pass")
        self.heap = heap
        self.capacity *= 2
        return 0

    cdef inline uint64_t key(self, int task) noexcept:
        return (<Node>self.tasks[task].node).seq

    cdef inline void push(self, int task) noexcept:
        cdef int i = self.heap_count, parent
        cdef uint64_t key = self.key(task)
        self.heap_count += 1
        while i > 0:
            parent = (i - 1) >> 1
            if self.key(self.heap[parent]) >= key:
                break
            self.heap[i] = self.heap[parent]
            i = parent
        self.heap[i] = task

    cdef inline int pop(self) noexcept:
        cdef int top = self.heap[0], last, i = 0, child
        cdef uint64_t key
        self.heap_count -= 1
        last = self.heap[self.heap_count]
        key = self.key(last)
        while True:
            child = 2 * i + 1
            if child >= self.heap_count:
                break
            if child + 1 < self.heap_count and self.key(self.heap[child + 1]) > self.key(self.heap[child]):
                child += 1
            if self.key(self.heap[child]) <= key:
                break
            self.heap[i] = self.heap[child]
            i = child
        self.heap[i] = last
        return top

    cdef int receive(self, int task, int nr, object g, bint in_place) except -1:
        """Add a gradient to a task's buffer."""
        cdef Task* t = &self.tasks[task]
        cdef Node n = <Node>t.node
        cdef list several
        cdef TensorBase old, total
        if n.n_inputs <= 1:
            if t.buffer == NULL:
                Py_INCREF(g)
                t.buffer = <PyObject*>g
                return 0
            old = <TensorBase>t.buffer
            # of batched gradients, which stand for others, the sum may not fit into the first
            if in_place and t.owned and old.dtype == (<TensorBase>g).dtype and not (old.keys | (<TensorBase>g).keys) & K_WRAPPED:
                sum_gradients(old, <TensorBase>g, old, INPLACE)
                return 0
            total = sum_gradients(old, <TensorBase>g, None, FRESH)
            t = &self.tasks[task]
            t.owned = 1
            Py_INCREF(total)
            Py_XDECREF(t.buffer)
            t.buffer = <PyObject*>total
            return 0
        if t.buffer == NULL:
            several = [None] * n.n_inputs
            Py_INCREF(several)
            t.buffer = <PyObject*>several
        several = <list>t.buffer
        if nr >= n.n_inputs:
            raise RuntimeError(f"{n.name()}: a gradient arrived for output {nr} of {n.n_inputs}")
        several[nr] = g if several[nr] is None else sum_gradients(<TensorBase>several[nr], <TensorBase>g, None, FRESH)
        return 0


cdef int assign_streams(GraphTask run) except -1:
    """Give every task the streams of its forward call; a leaf those of the earliest Node that used it."""
    cdef int i, k, t
    cdef PyObject* m
    cdef uint64_t* first
    run.hooks = installed_hooks()
    run.n_sets = run.hooks.stream_sets + 1
    run.streams = <int*>calloc(run.count + 1, sizeof(int))
    run.used = <char*>calloc(run.n_sets, 1)
    first = <uint64_t*>malloc((run.count + 1) * sizeof(uint64_t))
    if run.streams == NULL or run.used == NULL or first == NULL:
        free(first)
        raise MemoryError("autograd: no memory for the streams of a backward pass")
    run.home = run.here = run.hooks.current_streams()
    for i in range(run.count):
        run.streams[i] = run.home if (<Node>run.tasks[i].node).kind == NODE_LEAF else (<Node>run.tasks[i].node).streams
        first[i] = <uint64_t>-1
    for i in range(run.count):
        for k in range((<Node>run.tasks[i].node).n_edges):
            m = edge_of(<Node>run.tasks[i].node, k)
            if m != <PyObject*>None and (<Node>m).kind == NODE_LEAF:
                t = run.find(m)
                if run.key(i) < first[t]:
                    first[t] = run.key(i)
                    run.streams[t] = run.streams[i]
    free(first)
    return 0


cdef int use_streams(GraphTask run, int streams) except -1:
    if streams != run.here:
        run.hooks.use_streams(streams)
        run.here = streams
    run.used[streams] = 1
    return 0


cdef int receive_across(GraphTask run, int task, int nr, object g, bint in_place) except -1:
    """`receive` of a gradient that may come from other streams: those of the task wait for it, and sums are made there."""
    cdef int producer = run.here, consumer = run.streams[task]
    if consumer == producer:
        return run.receive(task, nr, g, in_place)
    if (<TensorBase>g).device_type == DEV_CUDA:
        run.hooks.hand_over(g, producer, consumer)
    use_streams(run, consumer)
    run.receive(task, nr, g, in_place)
    return use_streams(run, producer)


cdef int keep_for_caller(GraphTask run, object g) except -1:
    """The caller's work reads a gradient that other streams made: they must not get its memory back too early."""
    if run.here != run.home and g is not None and (<TensorBase>g).device_type == DEV_CUDA:
        run.hooks.keep_for(g, run.home)
    return 0


cdef int join_caller(GraphTask run) except -1:
    """The caller's streams wait for all that the run has used."""
    cdef int i
    for i in range(run.n_sets):
        if i != run.home and run.used[i]:
            run.hooks.join(i, run.home)
    return 0


cdef int discover(GraphTask run) except -1:
    """Add everything reachable from the tasks already there and count the uses of each Node."""
    cdef int i = 0, k
    cdef PyObject* m
    cdef PyObject* n
    while i < run.count:
        n = run.tasks[i].node
        for k in range((<Node>n).n_edges):
            if (<Node>n).leaf_edges:
                (<Node>n).edge(k)
            m = edge_of(<Node>n, k)
            if m != <PyObject*>None:
                run.tasks[run.add(m)].dependencies += 1
        i += 1
    return 0


cdef int mark_paths(GraphTask run, list targets, bint execute_targets) except -1:
    """Only Nodes on a path to a target run. A target itself is reached; it runs when asked, or when it leads to another target."""
    cdef int i, k, t, top = 0, user
    cdef PyObject* m
    cdef PyObject* n
    cdef int* start = <int*>calloc(run.count + 2, sizeof(int))
    cdef int* users = NULL
    cdef int* stack = <int*>malloc((run.count + 1) * sizeof(int))
    cdef size_t edges = 0
    try:
        if start == NULL or stack == NULL:
            raise MemoryError("autograd: no memory for the paths of a backward pass")
        for i in range(run.count):
            run.tasks[i].reached = 0
            run.tasks[i].execute = 0
            start[i + 2] = start[i + 1] + run.tasks[i].dependencies
        edges = start[run.count + 1]
        users = <int*>malloc((edges + 1) * sizeof(int))
        if users == NULL:
            raise MemoryError("autograd: no memory for the paths of a backward pass")
        for i in range(run.count):
            n = run.tasks[i].node
            for k in range((<Node>n).n_edges):
                m = edge_of(<Node>n, k)
                if m != <PyObject*>None:
                    t = run.find(m)
                    users[start[t + 1]] = i
                    start[t + 1] += 1
        # the users of task i are now users[start[i] .. start[i + 1] - 1]
        for target in targets:
            i = run.find(<PyObject*>target)
            if i < 0:
                continue
            if execute_targets:
                run.tasks[i].execute = 1
            if not run.tasks[i].reached:
                run.tasks[i].reached = 1
                stack[top] = i
                top += 1
        while top:
            top -= 1
            i = stack[top]
            for k in range(start[i], start[i + 1]):
                user = users[k]
                run.tasks[user].execute = 1
                if not run.tasks[user].reached:
                    run.tasks[user].reached = 1
                    stack[top] = user
                    top += 1
    finally:
        free(start)
        free(users)
        free(stack)
    return 0


cdef inline void python_begins(trt_thread_state* state) noexcept:
    """Before code of the program runs in a pass. Between such calls __torch_function__ is disabled: it sees the calls of the program, not
    those of which Nodes consist. After an error run_here restores it."""
    state.python_ran = 1
    state.function_disabled -= 1


cdef inline void python_ends(trt_thread_state* state) noexcept:
    state.function_disabled += 1


cdef object call_pre_hooks(Node n, object grad):
    """Run the hooks on the gradients of a Node's outputs: first the users', then those that keep `grad` of results."""
    cdef list grads = [grad] if n.n_inputs <= 1 else list(grad) if grad is not None else [None] * n.n_inputs
    cdef bint keeps = False
    for entry in list(n.pre_hooks):
        if type(entry) is RetainGrad:
            keeps = True
            continue
        nr, hook = entry.value
        if nr < 0:
            r = call_hook(hook, (tuple(grads),))
            if r is not None:
                check_hook_results(hook, tuple(grads), r)
                grads = list(r)
        elif grads[nr] is not None:
            r = call_hook(hook, (grads[nr],))
            if r is not None:
                check_hook_result(hook, grads[nr], r)
                grads[nr] = r
    if keeps:
        if tls().python_ran:
            grads = [guard_gradients(n, grads[0])] if n.n_inputs <= 1 else guard_gradients(n, grads) or grads
        for entry in list(n.pre_hooks):
            if type(entry) is RetainGrad:
                nr, hook = entry.value
                if grads[nr] is not None:
                    hook(grads[nr])
    return grads[0] if n.n_inputs <= 1 else grads


cdef object call_hook(object hook, tuple arguments):
    cdef trt_thread_state* state = tls()
    python_begins(state)
    r = hook(*arguments)
    python_ends(state)
    return r


cdef str name_of_hook(object hook):
    return str(getattr(hook, "__name__", "") or repr(hook))


cdef int check_hook_result(object hook, object given, object r) except -1:
    """What a hook may return for a gradient: None, or a tensor like it."""
    cdef TensorBase g, value
    if r is None:
        return 0
    if not isinstance(r, TensorBase):
        raise TypeError(f"expected Variable, but hook returned '{type(r).__name__}'")
    if given is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    g, value = given, r
    if not same_sizes(g, value):
        raise RuntimeError(f"hook '{name_of_hook(hook)}' has changed the size of value: {shape_text(g)} became {shape_text(value)}")
    if g.dtype != value.dtype or place_of(g) != place_of(value):
        raise RuntimeError(
            f"hook '{name_of_hook(hook)}' has changed the type of value (was {(<object>g).dtype} on {(<object>g).device} got {r.dtype} on {r.device})")
    return 0


cdef int check_hook_results(object hook, tuple given, object r) except -1:
    """The same for the hooks of Nodes, which see all gradients at once."""
    cdef Py_ssize_t i
    if not isinstance(r, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(r).__name__}'")
    if len(<tuple>r) != len(given):
        raise RuntimeError(f"hook '{name_of_hook(hook)}' has returned an incorrect number of values (got {len(<tuple>r)}, but expected {len(given)})")
    for i in range(len(given)):
        check_hook_result(hook, given[i], (<tuple>r)[i])
    return 0


cdef object call_post_hooks(Node n, object out, object grad):
    cdef tuple outs = (None,) * n.n_edges if out is None else tuple(out) if isinstance(out, (tuple, list)) else (out,)
    cdef tuple ins = (None,) * n.n_inputs if grad is None else (grad,) if n.n_inputs <= 1 else tuple(grad)
    for entry in list(n.post_hooks):
        r = call_hook(entry.value, (outs, ins))
        if r is not None:
            check_hook_results(entry.value, outs, r)
            outs = <tuple>r
    return outs


cdef object leaf_hooks(TensorBase leaf, object g):
    for entry in list(leaf.hooks):
        r = call_hook(entry.value, (g,))
        if r is not None:
            check_hook_result(entry.value, g, r)
            g = r
    return g


cdef inline bint same_layout(TensorBase g, TensorBase leaf) noexcept:
    cdef int i
    if g.ndim != leaf.ndim:
        return False
    for i in range(g.ndim):
        if g.strides[i] != leaf.strides[i] and g.sizes[i] != 1:
            return False
    return True


cdef object clone_like(TensorBase g, TensorBase leaf):
    cdef object r
    if same_layout(g, leaf):
        return g.clone()
    r = g.new_empty_strided(shape_of(leaf), strides_of(leaf))
    return r.copy_(g)


cdef int accumulate(TensorBase leaf, PyObject** owned) except -1:
    """Add the gradient `*owned` (whose only reference may be this one) to `leaf.grad`."""
    cdef TensorBase g
    cdef PyObject* p = owned[0]
    cdef bint locked = False, record = tls().grad_mode
    # A write that releases the GIL must not meet one from another thread; alone, no lock is needed.
    if _active > 1:
        if not PyThread_acquire_lock(_accumulate_lock, 0):
            with nogil:
                PyThread_acquire_lock(_accumulate_lock, 1)
        locked = True
    try:
        if (<TensorBase>p).keys & K_FORWARD_AD:
            # `grad` takes the values alone
            g = alias_of(<TensorBase>p)
            Py_INCREF(g)
            Py_DECREF(<object>p)
            p = owned[0] = <PyObject*>g
            g = None
        if leaf.grad_ is None:
            g = <TensorBase>p
            if record:
                leaf.grad_ = clone_like(g, leaf)
            elif (
                p.ob_refcnt == 2 and (<PyObject*>g.storage).ob_refcnt == 1 and g.storage.block != NULL and g.storage.block.flags == 0
                and not g.wrapped_number and not g.requires_grad and same_layout(g, leaf)
            ):
                leaf.grad_ = g
            else:
                leaf.grad_ = clone_like(g, leaf)
        elif record:
            leaf.grad_ = sum_gradients(<TensorBase>leaf.grad_, <TensorBase>p, None, FRESH)
        else:
            sum_gradients(<TensorBase>leaf.grad_, <TensorBase>p, <TensorBase>leaf.grad_, INPLACE)
    finally:
        if locked:
            PyThread_release_lock(_accumulate_lock)
    return 0


cdef int run_leaf(GraphTask run, int task, list captured) except -1:
    """The end of a path: hooks, captures, accumulation. The buffer is handed on, not copied, when nobody else holds it."""
    cdef Task* t = &run.tasks[task]
    cdef AccumulateGrad a = <AccumulateGrad>t.node
    cdef TensorBase leaf = a.variable
    cdef PyObject* p = t.buffer
    cdef object g, shown = None
    cdef int c = t.capture
    cdef bint execute = t.execute
    t.buffer = NULL
    if p == NULL:
        return 0
    try:
        if leaf.hooks is not None or a.pre_hooks is not None:
            g = <object>p
            if leaf.hooks is not None:
                g = leaf_hooks(leaf, g)
            if a.pre_hooks is not None:
                g = call_pre_hooks(a, g)
            if <PyObject*>g != p:
                Py_INCREF(g)
                Py_XDECREF(p)
                p = <PyObject*>g
            g = None
        if p == <PyObject*>None:
            return 0
        if c >= 0:
            shown = <object>p
        if tls().python_ran:
            g = <object>p
            Py_DECREF(g)
            p = NULL
            g = guard_gradients(a, g)
            Py_INCREF(g)
            p = <PyObject*>g
            g = None
        while c >= 0:
            captured[run.captures[c].position] = shown
            if run.streams != NULL:
                keep_for_caller(run, <object>p)
            c = run.captures[c].next
        if execute:
            accumulate(leaf, &p)
            if run.streams != NULL:
                keep_for_caller(run, leaf.grad_)
            if a.post_hooks is not None:
                call_post_hooks(a, (), <object>p)
            Py_XDECREF(p)
            p = NULL
            run_post_accumulate(leaf)
    finally:
        Py_XDECREF(p)
    return 0


cdef int run_leaf_recorded(GraphTask run, int task, list captured) except -1:
    cdef int64_t token = begin_record(KIND_NODE, <void*>AccumulateGrad, 0)
    try:
        return run_leaf(run, task, captured)
    finally:
        end_record(token)


cdef int run_post_accumulate(TensorBase leaf) except -1:
    cdef object entries = leaf.post_accumulate
    if entries is None:
        return 0
    for entry in list(entries):
        r = call_hook(entry.value, (leaf,))
        if r is not None:
            check_hook_result(entry.value, leaf, r)
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    return 0


cdef inline int send(GraphTask run, Node source, int index, PyObject* m, int nr, object g, bint in_place) except -1:
    """Give gradient `index` of `source` (or the news that there is none) to a Node; it becomes ready with the last one."""
    cdef int t = (<Node>m).task if (<Node>m).run == run.id else run.search(m)
    if not run.tasks[t].reached:
        return 0
    if g is not None and not gradient_agrees(<Node>m, nr, <TensorBase>g):
        g = fit_gradient(source, index, <Node>m, nr, <TensorBase>g)
    if g is not None:
        if run.streams == NULL:
            run.receive(t, nr, g, in_place)
        else:
            receive_across(run, t, nr, g, in_place)
    run.tasks[t].dependencies -= 1
    if run.tasks[t].dependencies == 0:
        run.push(t)
    return 0


cdef int check_nan(Node n, object out) except -1:
    values = out if isinstance(out, (tuple, list)) else (out,)
    for i, g in enumerate(values):
        if g is not None and (g.is_floating_point() or g.is_complex()) and bool((g != g).any()):
            raise RuntimeError(f"Function '{n.name()}' returned nan values in its {i}th output.")
    return 0


cdef object _print_forward_trace = None


def _set_trace_printer(function not None):
    """What anomaly mode calls with a Node whose backward has failed."""
    global _print_forward_trace
    _print_forward_trace = function


cdef object apply_traced(Node n, object grad, int anomaly):
    """Anomaly mode: print where the forward call stood when its backward fails or makes NaN."""
    try:
        out = n.apply(grad)
        if anomaly & NOTE_CHECK_NAN:
            check_nan(n, out)
    except Exception:
        if _print_forward_trace is not None:
            _print_forward_trace(n)
        raise
    return out


cdef inline object run_node(Node n, object grad, int anomaly, trt_thread_state* state):
    """The gradients of a Node's inputs; None where nothing arrived on any path: the Nodes behind still count this one."""
    if n.kind == NODE_FUNCTION:
        python_begins(state)
        out = n.apply(grad) if not anomaly else apply_traced(n, grad, anomaly)
        python_ends(state)
        return out
    if grad is None:
        return None
    return n.apply(grad) if not anomaly else apply_traced(n, grad, anomaly)


cdef object run_node_recorded(Node n, object grad, int anomaly, trt_thread_state* state):
    cdef int64_t token = begin_record(KIND_NODE, <void*>(<PyObject*>n).ob_type, <int64_t>n.seq)
    try:
        return run_node(n, grad, anomaly, state)
    finally:
        end_record(token)


cdef int answer_signals(trt_thread_state* state) except -1:
    """Ctrl-C ends the pass here; in a thread that goes on for another when that one says so."""
    PyErr_CheckSignals()
    if state.cancelled != NULL and state.cancelled[0]:
        raise KeyboardInterrupt
    return 0


cdef int execute(GraphTask run, bint keep_graph, bint create_graph, list captured) except -1:
    """Run tasks until the heap is empty."""
    cdef trt_thread_state* state = tls()
    cdef int task, k, c, anomaly, steps = 0
    cdef Node n
    cdef PyObject* m
    cdef PyObject* p
    cdef object grad, out, shown = None
    cdef bint in_place = not create_graph
    while run.heap_count:
        task = run.pop()
        n = <Node>run.tasks[task].node
        if run.streams != NULL:
            use_streams(run, run.streams[task])
        if n.kind == NODE_LEAF:
            if is_recorded():
                run_leaf_recorded(run, task, captured)
            else:
                run_leaf(run, task, captured)
            continue
        p = run.tasks[task].buffer
        run.tasks[task].buffer = NULL
        steps += 1
        if not steps & 15 or p != NULL and (n.n_inputs > 1 or (<TensorBase>p).numel > LONG_GRADIENT):
            answer_signals(state)  # that is a tenth of a small Node's time
        if p != NULL:
            grad = <object>p
            Py_DECREF(grad)
            if n.pre_hooks is not None:
                grad = call_pre_hooks(n, grad)
        else:
            grad = None
        c = run.tasks[task].capture
        if c >= 0:
            shown = grad if n.n_inputs <= 1 or grad is None else list(grad)      # the caller gets what was sent, the Node a tensor of its own
        if state.python_ran and grad is not None:
            grad = guard_gradients(n, grad)
        while c >= 0:
            captured[run.captures[c].position] = None if grad is None else shown if n.n_inputs <= 1 else shown[run.captures[c].output_nr]
            if run.streams != NULL:
                keep_for_caller(run, captured[run.captures[c].position])
            c = run.captures[c].next
            if c < 0:
                shown = None
        if not run.tasks[task].execute:
            continue
        anomaly = state.notes & (NOTE_TRACEBACK | NOTE_CHECK_NAN)
        out = run_node(n, grad, anomaly, state) if not is_recorded() else run_node_recorded(n, grad, anomaly, state)
        if grad is not None or n.kind == NODE_FUNCTION:
            if n.post_hooks is not None:
                out = call_post_hooks(n, out, grad)
            if not keep_graph:
                n.release()
        grad = None
        if n.n_edges == 1 and not isinstance(out, (tuple, list)):
            m = <PyObject*>n.e0
            if m != <PyObject*>None:
                if out is not None and not isinstance(out, TensorBase):
                    raise TypeError(f"{n.name()}: expected a Tensor or None as gradient, got {type(out).__name__}")
                send(run, n, 0, m, n.nr0, out, in_place)
            out = None             # the buffer's reference is now the only one, so that a leaf may take it over
            continue
        if out is not None and len(out) < n.n_edges:
            raise RuntimeError(f"{n.name()} returned {len(out)} gradients, expected {n.n_edges}")
        for k in range(n.n_edges):
            m = edge_of(n, k)
            if m != <PyObject*>None:
                send(run, n, k, m, n.edge_nr(k), None if out is None or out[k] is None else <TensorBase?>out[k], in_place)
        out = None
    return 0


def accumulate_gradient(TensorBase leaf not None, TensorBase g not None):
    """Add a gradient to ``leaf.grad``: what a leaf's Node does when it is called by hand."""
    cdef PyObject* p = <PyObject*>g
    Py_INCREF(g)
    try:
        accumulate(leaf, &p)
    finally:
        Py_DECREF(<object>p)


cdef extern from *:
    """
    static __thread PyObject *trt_current_run __attribute__((tls_model("initial-exec")));
    """
    PyObject* current_run "trt_current_run"      # the GraphTask whose Node runs in this thread, borrowed from run_here


cdef GraphTask running_task():
    if current_run == NULL:
        return None
    return <GraphTask>current_run


def current_task_id():
    """The number of the backward pass that runs in this thread, -1 outside of all."""
    cdef GraphTask run = running_task()
    return -1 if run is None else run.id


def will_execute(Node node not None):
    """Whether the pass that runs in this thread runs the Node, or hands out what reaches it. RuntimeError outside of all passes."""
    cdef GraphTask run = running_task()
    cdef int task
    if run is None:
        raise RuntimeError("_will_engine_execute_node(): expected to be called during a backward pass")
    task = run.find(<PyObject*>node)
    return task >= 0 and (run.tasks[task].execute != 0 or run.tasks[task].capture >= 0)


def queue_callback(callback):
    """Call something when the pass that runs in this thread has run its last Node. RuntimeError outside of all passes."""
    cdef GraphTask run = running_task()
    if run is None:
        raise RuntimeError("Final callbacks can only be installed during backward pass.")
    if run.callbacks is None:
        run.callbacks = []
    run.callbacks.append(callback)


cdef int run_callbacks(GraphTask run) except -1:
    cdef int i = 0
    while run.callbacks is not None and i < len(run.callbacks):     # one may queue another
        run.callbacks[i]()
        i += 1
    return 0


cdef str PASS_NAME = "autograd::engine::execute"


def run_backward(list roots, list grads, bint keep_graph, bint create_graph, inputs, bint allow_unused, bint accumulate):
    """Compute gradients of ``roots`` (weighted by ``grads``); returns those of ``inputs`` unless accumulating.

    roots: tensors that require grad; grads: tensors of the same shapes; inputs: None or a list of tensors.
    """
    cdef int depth = tls().in_backward
    cdef int64_t token
    if depth and depth % NESTED_DEPTH == 0:
        return run_in_thread(run_in_this_thread, (roots, grads, keep_graph, create_graph, inputs, allow_unused, accumulate))
    if is_recorded():
        token = begin_record(KIND_PASS, <void*>PASS_NAME, -1)
        try:
            return run_here(roots, grads, keep_graph, create_graph, inputs, allow_unused, accumulate)
        finally:
            end_record(token)
    return run_here(roots, grads, keep_graph, create_graph, inputs, allow_unused, accumulate)


def run_in_this_thread(list roots, list grads, bint keep_graph, bint create_graph, inputs, bint allow_unused, bint accumulate):
    return run_here(roots, grads, keep_graph, create_graph, inputs, allow_unused, accumulate)


cdef object run_here(list roots, list grads, bint keep_graph, bint create_graph, inputs, bint allow_unused, bint accumulate):
    global _active, current_run
    cdef PyObject* outer
    cdef GraphTask run = GraphTask()
    cdef TensorBase t
    cdef Node n
    cdef PyObject* p
    cdef int i, task, nr, n_roots, count = 0
    cdef list captured = None, targets
    cdef trt_thread_state* state = tls()
    cdef bint before = state.grad_mode
    cdef int python_ran = state.python_ran, disabled = state.function_disabled, modes = state.function_modes
    cdef int collecting
    cdef list first = [gradient_node(<TensorBase?>t) for t in roots]
    if inputs is not None:
        targets = []
        for i in range(len(inputs)):
            t = <TensorBase?>inputs[i]
            if accumulate and grad_fn_of(t) is not None:
                retain_grad(t)
            targets.append(gradient_node(t))
    # from here to the end of discover() nothing may run Python code or release the GIL
    for node in first:
        run.add(<PyObject*>node)
    n_roots = run.count
    collecting = PyGC_Disable()    # making accumulators must not start a collection, whose finalizers are Python code
    try:
        discover(run)
    finally:
        if collecting:
            PyGC_Enable()
    if inputs is not None:
        if not accumulate:
            captured = [None] * len(inputs)
            run.captures = <Capture*>malloc((len(inputs) + 1) * sizeof(Capture))
            if run.captures == NULL:
                raise MemoryError("autograd: no memory for captured gradients")
            for i in range(len(inputs)):
                n = <Node>targets[i]
                task = run.find(<PyObject*>n)
                if task >= 0:
                    run.captures[count].output_nr = (<TensorBase>inputs[i]).output_nr if n.kind != NODE_LEAF else 0
                    run.captures[count].position = i
                    run.captures[count].next = run.tasks[task].capture
                    run.tasks[task].capture = count
                    count += 1
        mark_paths(run, targets, accumulate)
    if installed_hooks().stream_sets:
        assign_streams(run)
    state.grad_mode = create_graph
    state.in_backward += 1
    state.python_ran = 0
    state.function_disabled += 1
    state.function_modes = 0
    _active += 1
    outer = current_run
    current_run = <PyObject*>run
    try:
        for i in range(len(first)):
            n = <Node>first[i]
            task = run.find(<PyObject*>n)
            nr = (<TensorBase>roots[i]).output_nr if n.kind != NODE_LEAF else 0
            p = PyList_GET_ITEM(grads, i)
            t = <TensorBase?>grads[i]
            # one with a history is passed on as it is: the gradient of a sum is this very tensor
            if (p.ob_refcnt > 2 or p.ob_type != tensor_type) and not (t.requires_grad and create_graph):
                t = private_gradient(t)
            t = fit_gradient(n, i, n, nr, t)
            if t is None:
                raise RuntimeError(f"{n.name()}: output {nr} has no gradient")
            if run.streams == NULL:
                run.receive(task, nr, t, False)
            else:
                receive_across(run, task, nr, t, False)
            t = None
        first = None
        for i in range(n_roots):
            if run.tasks[i].dependencies == 0 and run.tasks[i].reached:
                run.push(i)
        execute(run, keep_graph, create_graph, captured)
        if run.streams != NULL:
            join_caller(run)
        if run.callbacks is not None:
            state.function_disabled = disabled
            run_callbacks(run)
    finally:
        current_run = outer
        if run.streams != NULL:
            use_streams(run, run.home)
        _active -= 1
        state.in_backward -= 1
        state.grad_mode = before
        state.python_ran = python_ran
        state.function_disabled = disabled
        state.function_modes = modes
    if captured is None:
        return None
    if not allow_unused:
        for i in range(len(captured)):
            if captured[i] is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the desired "
                    "behavior.")
    return captured
