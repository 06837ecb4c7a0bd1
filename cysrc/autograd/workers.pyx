"""The devices' threads in backward passes: each device but the CPU has a worker, which runs the Nodes of all passes on it.

A worker has a queue of works: what a pass has ready for the device. It takes the innermost pass first, as an outer one waits for it. A worker whose Node
runs a backward pass serves its own queue while it waits for that pass, whose Nodes may lie on the worker's device: works of passes at least as deep, which
is enough for progress (the deepest pass waits for none) and bounds its stack. Everything here happens under the GIL; workers sleep without it. An interpreter
whose GIL is off leaves all Nodes to the calling thread.

A worker begins with the first Node for its device and ends with the process, which does not wait for it. In a child after fork the workers are new ones.
"""
import sys
from cpython.object cimport PyObject
from libc.stdio cimport snprintf
from tensorrt_lite._C.core.device cimport device_type_name
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.free_threading cimport FREE_THREADED
from tensorrt_lite._C.core.storage cimport hooks_of
from tensorrt_lite._C.core.tensor cimport TensorBase
from tensorrt_lite._C.autograd.node cimport NODE_LEAF, OUTPUT_LIST, OUTPUT_UNKNOWN, AccumulateGrad, Node

cdef extern from "threads.h" nogil:
    int trt_start_worker(PyObject* work, const char* name)

cdef extern from "unistd.h" nogil:
    int getpid()

cdef extern from *:
    """
    static __thread PyObject* trt_worker_here __attribute__((tls_model("initial-exec")));   /* the Worker whose queue this thread serves, borrowed */
    """
    PyObject* trt_worker_here

attach()

cdef int devices_with_workers = 0
cdef dict _devices = {}                # {device type: (function that makes an index current, whether passes may leave the calling thread now)}
cdef bint _used[256]                   # whether a device type is there
cdef dict _workers = {}                # {place: Worker}
cdef list _kept = []                   # the workers of this process and, after fork, those of its parent, whose threads are not here
cdef int _process = getpid()


def use_workers(int device_type, set_device, may_leave=None):
    """Backward passes run the Nodes on devices of this type in threads of their own. set_device(index): makes a device the thread's current one;
    may_leave(): whether a pass may leave the calling thread now."""
    global devices_with_workers
    _devices[device_type] = (set_device, may_leave)
    _used[<int>device_type] = True
    devices_with_workers = <int>len(_devices)


cdef bint has_worker(int device_type) noexcept:
    return _used[device_type]


cdef bint may_leave_thread() except -1:
    """Whether nothing of the calling thread's state forbids that Nodes run elsewhere, and the GIL guards what passes and workers share."""
    if FREE_THREADED and not sys._is_gil_enabled():
        return False
    for _, may_leave in _devices.values():
        if may_leave is not None and not may_leave():
            return False
    return True


cdef int enter_device(int place) except -1:
    """Make a device the calling thread's current one."""
    cdef int device_type = place & 0xFF, index = (place >> 8) - 1
    if hooks_of(device_type).current(device_type) != index:
        _devices[device_type][0](index)
    return 0


cdef int device_of_node(Node n) noexcept:
    """The device, as `place_of` a tensor, whose worker runs a Node: that of its forward call's results, 0 where the calling thread does."""
    cdef int i, device_type = 0, index = 0
    cdef TensorBase leaf
    if n.kind == NODE_LEAF:
        leaf = (<AccumulateGrad>n).variable
        device_type, index = leaf.device_type, leaf.device_index
    elif n.out_form == OUTPUT_LIST:
        for i in range(max(n.n_inputs, 1)):
            if n.out.list[i].ndim >= 0 and has_worker(n.out.list[i].device_type):
                device_type, index = n.out.list[i].device_type, n.out.list[i].device_index
                break
    elif n.out_form != OUTPUT_UNKNOWN:
        device_type, index = n.out_device, n.out_index
    return device_type | (index + 1) << 8 if has_worker(device_type) else 0


cdef class Work:
    cdef int run_tasks(self) except -1:
        """Run the tasks that are ready. What they raise belongs to their pass."""
        raise NotImplementedError


cdef int serve_all(Worker worker) noexcept:
    """What is raised here is no pass's, as those keep theirs; it is reported, and the thread lives on."""
    while serve_one(worker, 0):
        pass
    return 0


cdef class Worker:
    def __cinit__(self):
        self.queue = []
        self.bed = trt_new_bed()
        if self.bed == NULL:
            raise MemoryError("autograd: no memory for a device's thread")

    def __call__(self):
        """The thread's life."""
        global trt_worker_here
        cdef trt_bed* bed = self.bed
        trt_worker_here = <PyObject*>self
        while True:
            serve_all(self)
            with nogil:
                trt_sleep(bed, -1)


cdef Worker worker_of(int place):
    """The worker of a device, begun when it is first asked for. RuntimeError where no thread can be had."""
    global _process
    cdef Worker w
    cdef char name[16]
    cdef bytes device_name
    if _process != getpid():
        _workers.clear()
        _process = getpid()
    w = <Worker>_workers.get(place)
    if w is not None:
        return w
    w = Worker()
    w.place = place
    device_name = device_type_name(place & 0xFF).encode()
    snprintf(name, 16, b"grad_%.6s:%d", <const char*>device_name, (place >> 8) - 1)
    _kept.append(w)
    if trt_start_worker(<PyObject*>w, name):
        _kept.pop()
        raise RuntimeError("autograd: no thread could be started for the backward passes of a device")
    _workers[place] = w
    return w


cdef Worker worker_here():
    return None if trt_worker_here == NULL else <Worker>trt_worker_here


cdef int submit(Worker worker, Work work) except -1:
    """Something of `work` is ready."""
    if not work.queued:
        worker.queue.append(work)
        work.queued = True
    trt_wake(worker.bed)
    return 0


cdef int withdraw(Worker worker, Work work) except -1:
    if work.queued:
        work.queued = False
        worker.queue.remove(work)
    return 0


cdef bint serve_one(Worker worker, int depth) except -1:
    """Run what a pass at least so deep has ready for the calling thread's device; False where there is none."""
    cdef Work best = None, work
    cdef int i = 0
    while i < len(worker.queue):
        work = <Work>worker.queue[i]
        if work.waiting == 0:
            work.queued = False
            del worker.queue[i]
            continue
        if work.depth >= depth and (best is None or work.depth > best.depth):
            best = work
        i += 1
    if best is None:
        return False
    best.run_tasks()
    return True


cdef object lend_worker(Worker worker):
    """The calling thread goes on in the place of a worker that waits for it; returns what gives the place back."""
    global trt_worker_here
    cdef BedOfWorker before = BedOfWorker.__new__(BedOfWorker)
    cdef trt_bed* bed = trt_new_bed()
    if bed == NULL:
        raise MemoryError("autograd: no memory for a nested backward pass")
    before.bed = worker.bed
    worker.bed = bed
    trt_worker_here = <PyObject*>worker
    return before


cdef int return_worker(Worker worker, object before) except -1:
    global trt_worker_here
    trt_free_bed(worker.bed)
    worker.bed = (<BedOfWorker>before).bed
    trt_worker_here = NULL
    return 0


cdef class BedOfWorker:
    cdef trt_bed* bed
