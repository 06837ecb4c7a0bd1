"""The executor: walks the graph from the roots, most recent Node first, each Node once all its gradients have arrived.

Everything is iterative and the state belongs to the run, so runs nest (a backward inside a hook or a custom Function) and run side by side in several threads. A
Node only remembers the number of the last run that met it and its place in that run; a run whose mark was overwritten by another one finds its Nodes through a hash
table, built then. Discovery executes no Python code, so it happens entirely under one hold of the GIL, which those marks rely on.

Nodes on devices other than the CPU run in threads of their devices (workers.pyx), all others in the calling thread. A pass that meets such Nodes has a lane for each
device: a heap of ready tasks. What lanes share is changed under the GIL, in steps between which nothing releases it; sums of gradients, which may, are made of what
was taken out of the shared place before. A pass over the CPU alone pays a test for all that.

On CUDA and custom devices a Node runs on the streams that were current in its forward call, a leaf's accumulation on those of its first use in the graph. Where a
gradient comes from other streams the Node's wait for them, and at the end the caller's wait for all that the run has used. A program that makes no stream current
pays one test per Node and gradient for it.
"""
from libc.stdlib cimport malloc, free, calloc, realloc
from libc.stdint cimport int64_t, uint64_t, uint32_t, uint8_t, uintptr_t
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_DECREF
from cpython.list cimport PyList_GET_ITEM
from tensorrt_lite._C.core.tensor cimport TensorBase, K_TRANSFORM, K_STANDS_IN, place_of, tensor_type
from tensorrt_lite._C.core.dispatch cimport tls, attach, trt_thread_state, FRESH, INPLACE
from tensorrt_lite._C.core.free_threading cimport FREE_THREADED, count_up, held_at_most, mutex, mutex_lock, mutex_unlock, read_shared, read_shared_number, write_shared, write_shared_number
from tensorrt_lite._C.core.profiler cimport KIND_NODE, KIND_PASS, begin_record, end_record, follow_sequence, is_recorded
from tensorrt_lite._C.autograd.node cimport (
    Node, AccumulateGrad, newest_sequence, gradient_node, grad_fn_of, NODE_LEAF, NODE_FUNCTION, NOTE_TRACEBACK, NOTE_CHECK_NAN, gradient_agrees, fit_gradient, guard_gradients,
    private_gradient)
from tensorrt_lite._C.autograd.accumulate cimport accumulate, sum_gradients
from tensorrt_lite._C.autograd.edges cimport edge_of, node_of, number_of
from tensorrt_lite._C.autograd.hook_calls cimport call_node_hooks, call_post_hooks, call_tensor_hooks, leaf_hooks, run_post_accumulate
from tensorrt_lite._C.autograd.streams cimport current_streams, hand_over, join, keep_for, other_streams, use_streams
from tensorrt_lite._C.autograd.node_run cimport answer_signals, run_node
from tensorrt_lite._C.autograd.wanted cimport Skipped, skip_edges
from tensorrt_lite._C.autograd.thread_snapshot cimport ThreadSnapshot, single_threaded
from tensorrt_lite._C.autograd.workers cimport (
    Work, Worker, device_of_node, devices_with_workers, enter_device, may_leave_thread, serve_one, submit, trt_bed, trt_free_bed, trt_new_bed, trt_sleep, trt_wake,
    withdraw, worker_here, worker_of)
from tensorrt_lite._C.autograd.node import retain_grad
from tensorrt_lite._C.autograd.nested_pass import run_in_thread

cdef extern from "Python.h":
    int PyGC_Disable()
    int PyGC_Enable()

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

cdef struct Queue:
    int* heap                      # tasks that are ready, the latest Node's on top
    int count
    int here                       # the streams that are current where its tasks run,
    int place                      # and of a lane the device

cdef struct Capture:
    int output_nr
    int position
    int next

cdef enum:
    NESTED_DEPTH = 20              # backward passes inside of each other that share a stack: each takes some ten Python frames of a thousand

cdef enum:
    PATIENCE = 50                  # milliseconds between looks at pending signals of a thread that waits for others
    LAST_MOMENT = 100              # milliseconds that Nodes which run have to end when their pass has failed

cdef enum:
    LONG_GRADIENT = 4096           # elements of a gradient beyond which a Node may take long enough for a look at pending signals

cdef class Lane
cdef uint64_t _runs = 0            # numbers given out
cdef int _active = 0               # runs in progress, in all threads; nobody asks or counts without the GIL
cdef mutex discovery_lock          # the Nodes' marks, while a run looks for its Nodes


cdef extern from *:
    """
    static __thread PyObject *trt_current_run __attribute__((tls_model("initial-exec")));
    """
    PyObject* current_run "trt_current_run"      # the GraphTask whose Node runs in this thread, borrowed from run_here


cdef inline uint64_t hash_of(PyObject* n) noexcept:
    return ((<uint64_t><uintptr_t>n >> 4) * <uint64_t>0x9E3779B97F4A7C15) >> 32


cdef class GraphTask:
    """One run: tasks in the order of discovery and a heap of the ready ones."""
    cdef Task* tasks
    cdef int count, capacity
    cdef Queue own                 # of the calling thread
    cdef uint64_t id
    cdef int* table                # open addressing: Node address -> task; NULL while the Nodes' marks are ours
    cdef uint32_t table_mask
    cdef Capture* captures
    cdef int* streams              # of each task, as numbers; NULL while only default streams were ever current
    cdef set used                  # those that tasks ran on
    cdef int home                  # the caller's
    cdef list callbacks            # run after the last Node; None while there are none
    cdef list captured             # the gradients that the caller asked for
    cdef bint keep_graph, create_graph
    cdef bint partial              # some Nodes have edges on no path to what the pass is after
    # of a pass with lanes
    cdef uint8_t* lane_of          # of each task its lane's number, 0: the calling thread; NULL: a pass without
    cdef list lanes                # Lane by number; first None
    cdef int outstanding           # tasks that are ready or run
    cdef int in_flight             # lanes whose tasks run
    cdef int depth                 # of passes inside of each other
    cdef int stopped               # an exception ends the pass: no task begins any more
    cdef object error              # a lane's exception
    cdef ThreadSnapshot snapshot   # the state that Nodes run with
    cdef Worker worker             # the calling thread's, where that is a device's
    cdef trt_bed* bed              # where the calling thread sleeps while lanes run

    def __cinit__(self):
        self.id = count_up(&_runs)
        self.capacity = 64
        self.tasks = <Task*>malloc(self.capacity * sizeof(Task))
        self.own.heap = <int*>malloc(self.capacity * sizeof(int))
        if self.tasks == NULL or self.own.heap == NULL:
            raise MemoryError("autograd: no memory for the tasks of a backward pass")

    def __dealloc__(self):
        cdef int i
        for i in range(self.count):
            Py_XDECREF(self.tasks[i].buffer)
        for i in range(self.count):
            Py_XDECREF(self.tasks[i].node)
        free(self.tasks)
        free(self.own.heap)
        free(self.lane_of)
        free(self.table)
        free(self.captures)
        free(self.streams)

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
        cdef int task = read_shared(&(<Node>n).task)        # without the GIL another run may be writing its mark over ours
        if read_shared_number(&(<Node>n).run) == self.id and (not FREE_THREADED or task < self.count and self.tasks[task].node == n):
            return task
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
        write_shared_number(&(<Node>n).run, self.id)
        write_shared(&(<Node>n).task, i)
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
        heap = <int*>realloc(self.own.heap, 2 * <size_t>self.capacity * sizeof(int))
        if heap == NULL:
            raise MemoryError("autograd: no memory for the tasks of a backward pass")
        self.own.heap = heap
        self.capacity *= 2
        return 0

    cdef inline uint64_t key(self, int task) noexcept:
        return (<Node>self.tasks[task].node).seq

    cdef inline void insert(self, Queue* queue, int task) noexcept:
        cdef int* heap = queue.heap
        cdef int i = queue.count, parent
        cdef uint64_t key = self.key(task)
        queue.count += 1
        while i > 0:
            parent = (i - 1) >> 1
            if self.key(heap[parent]) >= key:
                break
            heap[i] = heap[parent]
            i = parent
        heap[i] = task

    cdef inline int push(self, int task) except -1:
        if self.lane_of != NULL:
            return self.push_to_lane(task)
        self.insert(&self.own, task)
        return 0

    cdef int push_to_lane(self, int task) except -1:
        cdef Lane lane
        if self.stopped:
            return 0
        self.outstanding += 1
        if self.lane_of[task] == 0:
            self.insert(&self.own, task)
            self.wake()
            return 0
        lane = <Lane>self.lanes[self.lane_of[task]]
        self.insert(&lane.tasks, task)
        lane.waiting = lane.tasks.count
        return submit(lane.worker, lane)

    cdef inline void wake(self) noexcept:
        """The calling thread shall look again."""
        if self.bed != NULL:
            trt_wake(self.bed)

    cdef inline int pop(self, Queue* queue) noexcept:
        cdef int* heap = queue.heap
        cdef int top = heap[0], last, i = 0, child
        cdef uint64_t key
        queue.count -= 1
        last = heap[queue.count]
        key = self.key(last)
        while True:
            child = 2 * i + 1
            if child >= queue.count:
                break
            if child + 1 < queue.count and self.key(heap[child + 1]) > self.key(heap[child]):
                child += 1
            if self.key(heap[child]) <= key:
                break
            heap[i] = heap[child]
            i = child
        heap[i] = last
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
            if self.lane_of != NULL:
                return self.receive_shared(t, <TensorBase>g, in_place)
            old = <TensorBase>t.buffer
            # of batched gradients, which stand for others, and of sparse ones the sum may not fit into the first
            if in_place and t.owned and old.dtype == (<TensorBase>g).dtype and not (old.keys | (<TensorBase>g).keys) & K_STANDS_IN:
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
        if self.lane_of == NULL:
            several[nr] = g if several[nr] is None else sum_gradients(<TensorBase>several[nr], <TensorBase>g, None, FRESH)
            return 0
        while several[nr] is not None:
            old = <TensorBase>several[nr]
            several[nr] = None
            g = sum_gradients(old, <TensorBase>g, None, FRESH)
            old = None             # here, as in receive_shared
        several[nr] = g
        return 0

    cdef int receive_shared(self, Task* t, TensorBase g, bint in_place) except -1:
        """Add a gradient to a buffer that other lanes add to: what is there is taken out while a sum, which may release the GIL, is made of it.

        The flag leaves with its buffer: what another lane puts in its place meanwhile is not a sum. Both are read in one step, as the end of a tensor's
        life may release the GIL, too.
        """
        cdef TensorBase old = None
        cdef PyObject* p
        cdef bint owned = False, writable
        while t.buffer != NULL:
            p = t.buffer
            writable = in_place and t.owned
            t.buffer = NULL
            t.owned = 0
            old = <TensorBase>p
            Py_DECREF(<object>p)
            writable = writable and old.dtype == g.dtype and not (old.keys | g.keys) & K_STANDS_IN
            g = sum_gradients(old, g, old if writable else None, INPLACE if writable else FRESH)
            owned = True
            old = None
        Py_INCREF(g)
        t.buffer = <PyObject*>g
        t.owned = owned
        return 0

    cdef int fail(self, object error) except -1:
        """End the pass: the first exception is the one that the caller gets."""
        if not self.stopped:
            self.stopped = 1
            self.error = error
        self.wake()
        return 0


cdef int assign_streams(GraphTask run) except -1:
    """Give every task the streams of its forward call; a leaf those of the earliest Node that used it."""
    cdef int i, k, t
    cdef PyObject* m
    cdef uint64_t* first
    run.streams = <int*>calloc(run.count + 1, sizeof(int))
    run.used = set()
    first = <uint64_t*>malloc((run.count + 1) * sizeof(uint64_t))
    if run.streams == NULL or first == NULL:
        free(first)
        raise MemoryError("autograd: no memory for the streams of a backward pass")
    run.home = run.own.here = current_streams()
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


cdef int run_on_streams(GraphTask run, Queue* queue, int streams) except -1:
    if streams != queue.here:
        use_streams(streams)
        queue.here = streams
        if queue.place:
            enter_device(queue.place)
    run.used.add(streams)
    return 0


cdef int receive_across(GraphTask run, Queue* queue, int task, int nr, object g, bint in_place) except -1:
    """`receive` of a gradient that may come from other streams: those of the task wait for it, and sums are made there."""
    cdef int producer = queue.here, consumer = run.streams[task]
    if consumer == producer:
        return run.receive(task, nr, g, in_place)
    hand_over(g, producer, consumer)
    run_on_streams(run, queue, consumer)
    run.receive(task, nr, g, in_place)
    return run_on_streams(run, queue, producer)


cdef int keep_for_caller(GraphTask run, Queue* queue, object g) except -1:
    """The caller's work reads a gradient that other streams made: they must not get its memory back too early."""
    if queue.here != run.home and g is not None:
        keep_for(g, run.home)
    return 0


cdef int join_caller(GraphTask run) except -1:
    """The caller's streams wait for all that the run has used."""
    for streams in run.used:
        if streams != run.home:
            join(streams, run.home)
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
    run.partial = True
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


cdef int run_leaf(GraphTask run, Queue* queue, int task) except -1:
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
        if leaf.hooks is not None or execute and a.pre_hooks is not None:
            g = <object>p
            if leaf.hooks is not None:
                g = leaf_hooks(leaf, g)
            shown = g if c >= 0 else None
            if execute and a.pre_hooks is not None:
                g = call_node_hooks(a, g)
            if <PyObject*>g != p:
                Py_INCREF(g)
                Py_XDECREF(p)
                p = <PyObject*>g
            g = None
        if p == <PyObject*>None:
            return 0
        if c >= 0 and shown is None:
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
            run.captured[run.captures[c].position] = shown
            if run.streams != NULL:
                keep_for_caller(run, queue, <object>p)
            c = run.captures[c].next
        if execute:
            accumulate(leaf, &p, _active > 1)
            if run.streams != NULL:
                keep_for_caller(run, queue, leaf.grad_)
            if a.post_hooks is not None:
                call_post_hooks(a, (), <object>p)
            Py_XDECREF(p)
            p = NULL
            run_post_accumulate(leaf)
    finally:
        Py_XDECREF(p)
    return 0


cdef int run_leaf_recorded(GraphTask run, Queue* queue, int task) except -1:
    cdef int64_t token = begin_record(KIND_NODE, <void*>AccumulateGrad, 0)
    try:
        return run_leaf(run, queue, task)
    finally:
        end_record(token)


cdef inline int send(GraphTask run, Queue* queue, Node source, int index, PyObject* m, int nr, object g, bint in_place) except -1:
    """Give gradient `index` of `source` (or the news that there is none) to a Node; it becomes ready with the last one."""
    cdef int t = run.find(m)
    if not run.tasks[t].reached:
        return 0
    if g is not None and not gradient_agrees(<Node>m, nr, <TensorBase>g):
        g = fit_gradient(source, index, <Node>m, nr, <TensorBase>g)
    if g is not None:
        if run.streams == NULL:
            run.receive(t, nr, g, in_place)
        else:
            receive_across(run, queue, t, nr, g, in_place)
    run.tasks[t].dependencies -= 1
    if run.tasks[t].dependencies == 0:
        run.push(t)
    return 0


cdef object run_partly(GraphTask run, Node n, object grad, int anomaly, trt_thread_state* state):
    """Run a Node that need not compute the gradients of edges that no path is on."""
    cdef Skipped before
    cdef uint64_t edges = 0
    cdef PyObject* m
    cdef int k
    for k in range(min(n.n_edges, 64)):
        m = edge_of(n, k)
        if m != <PyObject*>None and not run.tasks[run.find(m)].reached:
            edges |= <uint64_t>1 << k
    before = skip_edges(<PyObject*>n if edges else NULL, edges)
    try:
        return run_node(n, grad, anomaly, state)
    finally:
        skip_edges(before.node, before.edges)


cdef int execute(GraphTask run, Lane lane) except -1:
    """Run the ready tasks of a lane, without one the calling thread's, until none is left."""
    cdef trt_thread_state* state = tls()
    cdef Queue* queue = &run.own if lane is None else &lane.tasks
    cdef list captured = run.captured
    cdef bint keep_graph = run.keep_graph, in_place = not run.create_graph, running = False
    cdef int task, k, c, anomaly, steps = 0
    cdef Node n
    cdef PyObject* m
    cdef PyObject* p
    cdef object grad, out, shown = None
    while queue.count:
        if run.lane_of != NULL:
            if run.stopped:
                break
            run.outstanding -= running     # a task is done when its lane takes the next one, or has none
            running = True
            if lane is not None:
                lane.waiting = queue.count - 1
        task = run.pop(queue)
        n = <Node>run.tasks[task].node
        if run.streams != NULL:
            run_on_streams(run, queue, run.streams[task])
        if n.kind == NODE_LEAF:
            if is_recorded():
                run_leaf_recorded(run, queue, task)
            else:
                run_leaf(run, queue, task)
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
                grad = call_tensor_hooks(n, grad)
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
                keep_for_caller(run, queue, captured[run.captures[c].position])
            c = run.captures[c].next
            if c < 0:
                shown = None
        if not run.tasks[task].execute:
            continue
        if n.pre_hooks is not None and grad is not None:
            grad = call_node_hooks(n, grad)
        anomaly = state.notes & (NOTE_TRACEBACK | NOTE_CHECK_NAN)
        if run.partial and n.n_edges > 1:
            out = run_partly(run, n, grad, anomaly, state)
        else:
            out = run_node(n, grad, anomaly, state)
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
                send(run, queue, n, 0, m, n.nr0, out, in_place)
            out = None             # the buffer's reference is now the only one, so that a leaf may take it over
            continue
        if out is not None and len(out) < n.n_edges:
            raise RuntimeError(f"{n.name()} returned {len(out)} gradients, expected {n.n_edges}")
        for k in range(n.n_edges):
            m = edge_of(n, k)
            if m != <PyObject*>None:
                send(run, queue, n, k, m, n.edge_nr(k), None if out is None or out[k] is None else <TensorBase?>out[k], in_place)
        out = None
    run.outstanding -= running
    return 0


cdef class Lane(Work):
    """What a pass has for one device, whose worker runs it with the caller's state."""
    cdef GraphTask run
    cdef Worker worker
    cdef Queue tasks
    cdef object context            # of context variables, a copy of the caller's

    def __dealloc__(self):
        free(self.tasks.heap)

    cdef int run_tasks(self) except -1:
        if self.run.stopped:
            self.waiting = 0
            return 0
        self.context.run(self)
        return 0

    def __call__(self):
        global current_run
        cdef GraphTask run = self.run
        cdef PyObject* outer = current_run
        cdef ThreadSnapshot before = ThreadSnapshot.__new__(ThreadSnapshot)
        before.take()
        run.in_flight += 1
        try:
            run.snapshot.adopt(&run.stopped)
            current_run = <PyObject*>run
            self.tasks.here = run.home
            enter_device(self.tasks.place)
            execute(run, self)
        except BaseException as error:
            run.fail(error)
        finally:
            current_run = outer
            run.in_flight -= 1
            if run.outstanding == 0 or run.stopped:
                self.waiting = 0
                run.wake()
            before.restore()


cdef bint find_devices(GraphTask run) noexcept:
    """Whether Nodes lie on devices that have workers."""
    cdef int i
    for i in range(run.count):
        if device_of_node(<Node>run.tasks[i].node):
            return True
    return False


cdef int assign_lanes(GraphTask run) except -1:
    """Give every device that Nodes lie on a lane. A device whose worker calls has none: its Nodes run in the calling thread."""
    from contextvars import copy_context
    cdef dict numbers = {0: 0}
    cdef Lane lane
    cdef int i, place, number
    run.worker = worker_here()
    if run.worker is not None:
        numbers[run.worker.place] = 0
    run.lanes = [None]
    run.lane_of = <uint8_t*>calloc(run.count + 1, 1)
    if run.lane_of == NULL:
        raise MemoryError("autograd: no memory for the lanes of a backward pass")
    for i in range(run.count):
        place = device_of_node(<Node>run.tasks[i].node)
        found = numbers.get(place)
        if found is None:
            if len(run.lanes) > 255:       # of what a byte numbers
                found = 0
            else:
                lane = Lane()
                lane.run = run
                lane.depth = tls().in_backward
                lane.worker = worker_of(place)
                lane.context = copy_context()
                lane.tasks.place = place
                lane.tasks.heap = <int*>malloc((run.count + 1) * sizeof(int))
                if lane.tasks.heap == NULL:
                    raise MemoryError("autograd: no memory for the lanes of a backward pass")
                found = len(run.lanes)
                run.lanes.append(lane)
            numbers[place] = found
        run.lane_of[i] = <uint8_t><int>found
    if len(run.lanes) == 1:
        free(run.lane_of)
        run.lane_of = NULL
        return 0
    run.depth = tls().in_backward
    run.bed = run.worker.bed if run.worker is not None else trt_new_bed()
    if run.bed == NULL:
        raise MemoryError("autograd: no memory for the lanes of a backward pass")
    run.snapshot = ThreadSnapshot.__new__(ThreadSnapshot)
    run.snapshot.take()
    return 0


cdef int execute_lanes(GraphTask run) except -1:
    """Run the calling thread's tasks, and sleep while only lanes have some. A worker that calls serves its own device meanwhile."""
    cdef trt_thread_state* state = tls()
    while not run.stopped:
        execute(run, None)
        if run.stopped or run.outstanding == 0:
            break
        if run.own.count or run.worker is not None and serve_one(run.worker, run.depth):
            continue
        with nogil:
            trt_sleep(run.bed, PATIENCE)
        answer_signals(state)
    if run.error is not None:
        raise run.error
    return 0


cdef int leave_lanes(GraphTask run) except -1:
    """The end of a pass, also by an exception: Nodes that run have a moment to end, as they may write to leaves; a hook that waits for others is not waited for."""
    cdef Lane lane
    cdef int i
    cdef bint wait = run.stopped or run.outstanding
    run.stopped = 1
    for lane in run.lanes[1:]:
        lane.waiting = 0
        withdraw(lane.worker, lane)
    for i in range(LAST_MOMENT):
        if not wait or not run.in_flight:
            break
        with nogil:
            trt_sleep(run.bed, 1)
    if run.worker is None:
        trt_free_bed(run.bed)
    run.bed = NULL
    run.error = None
    run.lanes = None               # they hold the run
    return 0


cdef GraphTask running_task():
    return None if current_run == NULL else <GraphTask>current_run


def current_task_id():
    """The number of the backward pass that runs in this thread, -1 outside of all."""
    return -1 if current_run == NULL else (<GraphTask>current_run).id


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
    for callback in run.callbacks:                                  # one may queue another
        callback()
    return 0


cdef str PASS_NAME = "autograd::engine::execute"


def begin_pass():
    """Record that a pass begins whose roots are made next; -1 where no profiler runs."""
    return begin_record(KIND_PASS, <void*>PASS_NAME, -1) if is_recorded() else -1


def end_pass(int64_t token):
    end_record(token)


def run_backward(list roots, list grads, bint keep_graph, bint create_graph, inputs, bint allow_unused, bint accumulate, bint begun=False):
    """Compute gradients of ``roots`` (weighted by ``grads``); returns those of ``inputs`` unless accumulating.

    roots: tensors that require grad, or GradientEdges; grads: tensors of the same shapes; inputs: None or a list of the same. begun: the caller has recorded that
    the pass begins.
    """
    cdef int depth = tls().in_backward
    cdef int64_t token
    if depth and depth % NESTED_DEPTH == 0:
        return run_in_thread(run_in_this_thread, (roots, grads, keep_graph, create_graph, inputs, allow_unused, accumulate))
    if not begun and is_recorded():
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
    cdef list targets
    cdef trt_thread_state* state = tls()
    cdef bint before = state.grad_mode
    cdef int python_ran = state.python_ran, disabled = state.function_disabled, modes = state.function_modes
    cdef int collecting
    cdef bint elsewhere
    cdef list first = [node_of(end) for end in roots]
    if inputs is not None:
        targets = []
        for i in range(len(inputs)):
            if accumulate and isinstance(inputs[i], TensorBase) and grad_fn_of(<TensorBase>inputs[i]) is not None:
                retain_grad(<TensorBase>inputs[i])
            targets.append(node_of(inputs[i]))
    # from here to the end of discover() nothing may run Python code or release the GIL
    mutex_lock(&discovery_lock)
    collecting = not FREE_THREADED and PyGC_Disable()    # making accumulators must not start a collection, whose finalizers are Python code
    try:
        for node in first:
            run.add(<PyObject*>node)
        n_roots = run.count
        discover(run)
    finally:
        if collecting:
            PyGC_Enable()
        mutex_unlock(&discovery_lock)
    if inputs is not None:
        if not accumulate:
            run.captured = [None] * len(inputs)
            run.captures = <Capture*>malloc((len(inputs) + 1) * sizeof(Capture))
            if run.captures == NULL:
                raise MemoryError("autograd: no memory for captured gradients")
            for i in range(len(inputs)):
                n = <Node>targets[i]
                task = run.find(<PyObject*>n)
                if task >= 0:
                    run.captures[count].output_nr = number_of(inputs[i], n)
                    run.captures[count].position = i
                    run.captures[count].next = run.tasks[task].capture
                    run.tasks[task].capture = count
                    count += 1
        mark_paths(run, targets, accumulate)
    elsewhere = devices_with_workers and find_devices(run)
    if elsewhere and other_streams():
        assign_streams(run)
    run.keep_graph, run.create_graph = keep_graph, create_graph
    state.grad_mode = create_graph
    state.in_backward += 1
    state.python_ran = 0
    state.function_disabled += 1
    state.function_modes = 0
    if not FREE_THREADED: _active += 1
    outer = current_run
    current_run = <PyObject*>run
    try:
        if elsewhere and not single_threaded() and not state.included & K_TRANSFORM and may_leave_thread():
            state.python_ran = 1           # hooks that run in one lane may hold gradients of another
            assign_lanes(run)
        for i in range(len(first)):
            n = <Node>first[i]
            task = run.find(<PyObject*>n)
            nr = number_of(roots[i], n)
            p = PyList_GET_ITEM(grads, i)
            t = <TensorBase?>grads[i]
            # one with a history is passed on as it is: the gradient of a sum is this very tensor
            if (not held_at_most(<object>p, 2) or p.ob_type != tensor_type) and not (t.requires_grad and create_graph):
                t = private_gradient(t)
            t = fit_gradient(n, i, n, nr, t)
            if t is None:
                raise RuntimeError(f"{n.name()}: output {nr} has no gradient")
            if run.streams == NULL:
                run.receive(task, nr, t, False)
            else:
                receive_across(run, &run.own, task, nr, t, False)
            t = None
        first = None
        for i in range(n_roots):
            if run.tasks[i].dependencies == 0 and run.tasks[i].reached:
                run.push(i)
        if run.lane_of == NULL:
            execute(run, None)
        else:
            execute_lanes(run)
        if run.streams != NULL:
            join_caller(run)
        if run.callbacks is not None:
            state.function_disabled = disabled
            run_callbacks(run)
    finally:
        current_run = outer
        if run.streams != NULL:
            run_on_streams(run, &run.own, run.home)
        if run.lane_of != NULL:
            leave_lanes(run)
        if not FREE_THREADED: _active -= 1
        state.in_backward -= 1
        state.grad_mode = before
        state.python_ran = python_ran
        state.function_disabled = disabled
        state.function_modes = modes
    if run.captured is None:
        return None
    if not allow_unused:
        for i in range(len(run.captured)):
            if run.captured[i] is None:
                raise RuntimeError(
                    f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set allow_unused=True if this is the desired "
                    "behavior.")
    return run.captured
