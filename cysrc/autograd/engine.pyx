"""The executor: walks the graph from the roots, most recent Node first, each Node once all its gradients have arrived.

Everything is iterative and the state belongs to the run, so runs nest (a backward inside a hook or a custom Function)
and run side by side. Accumulation into `.grad` relies on the GIL.
"""
from libc.stdlib cimport malloc, free, calloc, realloc
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from cpython.object cimport PyObject
from tensorrt_lite._C.core.tensor cimport TensorBase, shape_of, shape_text, same_sizes, alias_of
from tensorrt_lite._C.core.dtype cimport dtype_of, category
from tensorrt_lite._C.core.dispatch cimport tls, attach
from tensorrt_lite._C.autograd.node cimport Node, AccumulateGrad, gradient_node, grad_fn_of

attach()


cdef struct Task:
    PyObject* node                 # held alive by GraphTask.nodes
    int dependencies
    int needed
    int ready
    int captures                   # -1 or the first entry of the capture list


cdef class GraphTask:
    """One run: a hash table from Node to task, gradient buffers, a heap of ready tasks."""
    cdef Task* tasks
    cdef int count, capacity
    cdef int* table                # open addressing: Node address -> task number
    cdef int table_size
    cdef int* heap
    cdef int heap_count
    cdef list nodes
    cdef list buffers              # per task: a gradient, or a list for several outputs
    cdef list owned                # per task: whether the buffer may be added to in place

    def __cinit__(self):
        self.capacity = 64
        self.table_size = 256
        self.tasks = <Task*>malloc(self.capacity * sizeof(Task))
        self.heap = <int*>malloc(self.capacity * sizeof(int))
        self.table = <int*>malloc(self.table_size * sizeof(int))
        if self.tasks == NULL or self.heap == NULL or self.table == NULL:
            raise MemoryError
        for i in range(self.table_size):
            self.table[i] = -1
        self.nodes = []
        self.buffers = []
        self.owned = []

    def __dealloc__(self):
        free(self.tasks)
        free(self.heap)
        free(self.table)

    cdef int find(self, Node n) noexcept:
        cdef uint64_t h = (<uint64_t><uintptr_t><void*>n >> 4) * <uint64_t>0x9E3779B97F4A7C15
        cdef int i = <int>(h >> 32) & (self.table_size - 1)
        while self.table[i] >= 0:
            if self.tasks[self.table[i]].node == <PyObject*>n:
                return self.table[i]
            i = (i + 1) & (self.table_size - 1)
        return -1

    cdef int add(self, Node n) except -1:
        cdef int i = self.find(n)
        cdef uint64_t h
        cdef void* p
        if i >= 0:
            return i
        if self.count == self.capacity:
            self.grow()
        i = self.count
        self.count += 1
        self.tasks[i].node = <PyObject*>n
        self.tasks[i].dependencies = 0
        self.tasks[i].needed = 1
        self.tasks[i].ready = 0
        self.tasks[i].captures = -1
        self.nodes.append(n)
        self.buffers.append(None)
        self.owned.append(False)
        self.insert(i)
        return i

    cdef void insert(self, int task) noexcept:
        cdef uint64_t h = (<uint64_t><uintptr_t>self.tasks[task].node >> 4) * <uint64_t>0x9E3779B97F4A7C15
        cdef int i = <int>(h >> 32) & (self.table_size - 1)
        while self.table[i] >= 0:
            i = (i + 1) & (self.table_size - 1)
        self.table[i] = task

    cdef int grow(self) except -1:
        cdef int i
        cdef Task* tasks = <Task*>realloc(self.tasks, 2 * self.capacity * sizeof(Task))
        if tasks == NULL:
            raise MemoryError
        self.tasks = tasks
        cdef int* heap = <int*>realloc(self.heap, 2 * self.capacity * sizeof(int))
        if heap == NULL:
            raise MemoryError
        self.heap = heap
        cdef int* table = <int*>malloc(2 * self.table_size * sizeof(int))
        if table == NULL:
            raise MemoryError
        free(self.table)
        self.table = table
        self.capacity *= 2
        self.table_size *= 2
        for i in range(self.table_size):
            self.table[i] = -1
        for i in range(self.count):
            self.insert(i)
        return 0

    cdef inline uint64_t key(self, int task) noexcept:
        return (<Node>self.tasks[task].node).seq

    cdef void push(self, int task) noexcept:
        cdef int i = self.heap_count, parent
        self.heap_count += 1
        while i > 0:
            parent = (i - 1) >> 1
            if self.key(self.heap[parent]) >= self.key(task):
                break
            self.heap[i] = self.heap[parent]
            i = parent
        self.heap[i] = task

    cdef int pop(self) noexcept:
        cdef int top = self.heap[0], last, i = 0, child
        self.heap_count -= 1
        last = self.heap[self.heap_count]
        while True:
            child = 2 * i + 1
            if child >= self.heap_count:
                break
            if child + 1 < self.heap_count and self.key(self.heap[child + 1]) > self.key(self.heap[child]):
                child += 1
            if self.key(self.heap[child]) <= self.key(last):
                break
            self.heap[i] = self.heap[child]
            i = child
        self.heap[i] = last
        return top

    cdef int receive(self, int task, int nr, TensorBase g, bint in_place) except -1:
        """Add a gradient to a task's input buffer."""
        cdef Node n = <Node>self.tasks[task].node
        cdef list several
        cdef TensorBase old
        if g is None:
            return 0
        if n.n_inputs <= 1:
            if self.buffers[task] is None:
                self.buffers[task] = g
            else:
                old = <TensorBase>self.buffers[task]
                if in_place and self.owned[task] and old.dtype == g.dtype:
                    old.add_(g)
                else:
                    self.buffers[task] = old + g
                    self.owned[task] = True
            return 0
        if self.buffers[task] is None:
            self.buffers[task] = [None] * n.n_inputs
        several = <list>self.buffers[task]
        several[nr] = g if several[nr] is None else several[nr] + g
        return 0


cdef int count_dependencies(GraphTask run) except -1:
    """Discover the graph from the tasks already added; iterative."""
    cdef int i = 0, k, t
    cdef Node n, m
    while i < run.count:
        n = <Node>run.tasks[i].node
        for k in range(n.n_edges):
            m = n.edge(k)
            if m is not None:
                t = run.add(m)
                run.tasks[t].dependencies += 1
        i += 1
    return 0


cdef int mark_needed(GraphTask run, list targets) except -1:
    """Only Nodes on a path to the wanted inputs run: walk in reverse discovery with an explicit stack."""
    cdef int i, k, t
    cdef Node n, m
    cdef list users = [[] for _ in range(run.count)]
    cdef list stack
    for i in range(run.count):
        n = <Node>run.tasks[i].node
        run.tasks[i].needed = 0
        for k in range(n.n_edges):
            m = n.edge(k)
            if m is not None:
                (<list>users[run.find(m)]).append(i)
    stack = []
    for m in targets:
        i = run.find(m)
        if i >= 0 and not run.tasks[i].needed:
            run.tasks[i].needed = 1
            stack.append(i)
    while stack:
        i = stack.pop()
        for t in users[i]:
            if not run.tasks[t].needed:
                run.tasks[t].needed = 1
                stack.append(t)
    return 0


cdef object call_pre_hooks(Node n, object grad):
    cdef list grads = [grad] if n.n_inputs <= 1 else list(grad)
    for entry in list(n.pre_hooks):
        nr, hook = entry.value
        if nr < 0:
            r = hook(tuple(grads))
            if r is not None:
                grads = list(r) if isinstance(r, (tuple, list)) else [r]
        elif grads[nr] is not None:
            r = hook(grads[nr])
            if r is not None:
                grads[nr] = r
    return grads[0] if n.n_inputs <= 1 else grads


cdef object call_post_hooks(Node n, object out, object grad):
    cdef tuple outs = (out,) if (isinstance(out, TensorBase) or out is None) else tuple(out)
    cdef tuple ins = (grad,) if n.n_inputs <= 1 else tuple(grad)
    for entry in list(n.post_hooks):
        r = entry.value(outs, ins)
        if r is not None:
            outs = tuple(r) if isinstance(r, (tuple, list)) else (r,)
    return outs


cdef int execute(GraphTask run, bint keep_graph, bint create_graph, list captures, list captured, bint accumulate) except -1:
    """Run tasks until the heap is empty. captures: [(node, output number, position)] in the order of task.captures."""
    cdef int task, k, t
    cdef Node n, m
    cdef object grad, out
    cdef TensorBase g
    while run.heap_count:
        task = run.pop()
        n = <Node>run.tasks[task].node
        grad = run.buffers[task]
        run.buffers[task] = None
        if grad is None and n.n_inputs <= 1:
            # nothing arrived (all paths undefined): still count down
            out = None
        else:
            if n.pre_hooks is not None and grad is not None:
                grad = call_pre_hooks(n, grad)
            if captures is not None and run.tasks[task].captures >= 0:
                for node, nr, position in captures:
                    if node is n:
                        value = grad if n.n_inputs <= 1 else grad[nr]
                        if n.n_inputs <= 1 and type(n) is AccumulateGrad:
                            value = leaf_hooks((<AccumulateGrad>n).variable, value)
                        captured[position] = value
            if not run.tasks[task].needed or (not accumulate and type(n) is AccumulateGrad) or (captures is not None and run.tasks[task].captures >= 0 and n.n_edges == 0):
                continue
            out = n.apply(grad)
            if n.post_hooks is not None:
                out = call_post_hooks(n, out, grad)
            if not keep_graph:
                n.release()
        grad = None
        if n.n_edges == 1:
            m = <Node>n.e0
            if m is None:
                continue
            t = run.find(m)
            if isinstance(out, TensorBase):
                g = <TensorBase>out
            elif out is None:
                g = None
            else:
                g = <TensorBase?>out[0]
            if run.tasks[t].needed:
                run.receive(t, n.nr0, g, not create_graph)
            run.tasks[t].dependencies -= 1
            if run.tasks[t].dependencies == 0 and run.tasks[t].needed:
                run.push(t)
            continue
        for k in range(n.n_edges):
            m = n.edge(k)
            if m is None:
                continue
            t = run.find(m)
            if out is not None and run.tasks[t].needed:
                g = <TensorBase?>out[k]
                run.receive(t, n.edge_nr(k), g, not create_graph)
            run.tasks[t].dependencies -= 1
            if run.tasks[t].dependencies == 0 and run.tasks[t].needed:
                run.push(t)
        out = None
    return 0


cdef object leaf_hooks(TensorBase leaf, object g):
    if leaf.hooks is not None and g is not None:
        for entry in list(leaf.hooks):
            r = entry.value(g)
            if r is not None:
                g = r
    return g


def run_backward(list roots, list grads, bint keep_graph, bint create_graph, inputs, bint allow_unused, bint accumulate):
    """Compute gradients of ``roots`` (weighted by ``grads``); returns those of ``inputs`` unless accumulating.

    roots: tensors that require grad; grads: tensors of the same shapes; inputs: None or a list of tensors.
    """
    cdef GraphTask run = GraphTask()
    cdef TensorBase t
    cdef Node n
    cdef int i, task
    cdef list captures = None, captured = None, targets
    cdef bint before = tls().grad_mode
    for i in range(len(roots)):
        t = <TensorBase>roots[i]
        n = gradient_node(t)
        task = run.add(n)
        run.receive(task, t.output_nr if grad_fn_of(t) is not None else 0, <TensorBase>grads[i], False)
    cdef int n_roots = run.count
    count_dependencies(run)
    if inputs is not None:
        captures = []
        captured = [None] * len(inputs)
        targets = []
        for i in range(len(inputs)):
            t = <TensorBase>inputs[i]
            n = gradient_node(t)
            targets.append(n)
            task = run.find(n)
            if task < 0:
                continue
            if not accumulate:
                run.tasks[task].captures = i
                captures.append((n, t.output_nr if grad_fn_of(t) is not None else 0, i))
        mark_needed(run, targets)
        if accumulate:
            captures = None
    for i in range(n_roots):
        if run.tasks[i].dependencies == 0 and run.tasks[i].needed:
            run.push(i)
    tls().grad_mode = create_graph
    tls().in_backward += 1
    try:
        execute(run, keep_graph, create_graph, captures, captured, inputs is None or accumulate)
    finally:
        tls().grad_mode = before
        tls().in_backward -= 1
    if captured is None or accumulate:
        return None
    for i in range(len(inputs)):
        if captured[i] is None and not allow_unused:
            raise RuntimeError(
                "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.")
    return captured
