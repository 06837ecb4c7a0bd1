# The devices' threads in backward passes.
from cpython.object cimport PyObject
from tensorrt_lite._C.autograd.node cimport Node

cdef extern from "threads.h" nogil:
    ctypedef struct trt_bed:
        pass
    trt_bed* trt_new_bed()
    void trt_free_bed(trt_bed*)
    void trt_wake(trt_bed*)
    void trt_sleep(trt_bed*, int milliseconds)

cdef class Work:
    """What one pass has for one device: tasks, of which `waiting` are ready."""
    cdef int waiting
    cdef int depth                     # of passes inside of each other
    cdef bint queued                   # it stands in the worker's queue
    cdef int run_tasks(self) except -1

cdef class Worker:
    cdef int place                     # the device, as `place_of` a tensor on it
    cdef list queue
    cdef trt_bed* bed                  # of the thread that serves the queue now

cdef int devices_with_workers      # device types with workers: 0 spares a pass the look at its Nodes
cdef int device_of_node(Node n) noexcept
cdef bint may_leave_thread() except -1
cdef Worker worker_of(int place)
cdef Worker worker_here()
cdef int submit(Worker worker, Work work) except -1
cdef int withdraw(Worker worker, Work work) except -1
cdef bint serve_one(Worker worker, int depth) except -1
cdef int enter_device(int place) except -1
cdef object lend_worker(Worker worker)
cdef int return_worker(Worker worker, object before) except -1
