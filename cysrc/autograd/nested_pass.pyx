"""Backward passes inside of backward passes, beyond the levels that share a stack: each takes a thread, whose state is that of the waiting one."""
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dispatch cimport tls, attach, trt_thread_state
from tensorrt_lite._C.autograd.thread_snapshot cimport ThreadSnapshot
from tensorrt_lite._C.autograd.workers cimport Worker, lend_worker, return_worker, worker_here

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1

cdef extern from "threads.h" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct trt_nested:
        PyObject* work
        int cancelled
    int trt_nested_start(trt_nested*, pthread_t*)
    bint trt_nested_wait(trt_nested*, int milliseconds)
    void trt_nested_join(trt_nested*, pthread_t)

attach()


cdef class NestedPass:
    """A backward pass that goes on in another thread with the state of the waiting one, and in its place where that one is a device's worker."""
    cdef ThreadSnapshot snapshot
    cdef trt_nested thread
    cdef tuple arguments
    cdef Worker worker
    cdef object run, result, error

    def __call__(self):
        try:
            self.snapshot.adopt(&self.thread.cancelled)
            if self.worker is None:
                self.result = self.run(*self.arguments)
                return
            before = lend_worker(self.worker)
            try:
                self.result = self.run(*self.arguments)
            finally:
                return_worker(self.worker, before)
        except BaseException as error:
            self.error = error


def run_in_thread(run, tuple arguments):
    """run(*arguments) in another thread: with a stack for every few levels, passes nest however deeply. The exception travels."""
    from contextvars import copy_context
    from functools import partial
    cdef trt_thread_state* state = tls()
    cdef NestedPass nested = NestedPass()
    cdef pthread_t handle
    cdef bint done = False
    nested.run = run
    nested.arguments = arguments
    nested.snapshot = ThreadSnapshot.__new__(ThreadSnapshot)
    nested.snapshot.take()
    nested.worker = worker_here()
    work = partial(copy_context().run, nested)
    nested.thread.work = <PyObject*>work
    if trt_nested_start(&nested.thread, &handle):
        raise RuntimeError("autograd: no thread could be started for a nested backward pass")
    interrupt = None
    while not done:
        with nogil:
            done = trt_nested_wait(&nested.thread, 50)
        try:
            PyErr_CheckSignals()
        except BaseException as error:
            interrupt = error
        nested.thread.cancelled = interrupt is not None or state.cancelled != NULL and state.cancelled[0]
    with nogil:
        trt_nested_join(&nested.thread, handle)
    if interrupt is not None:
        raise interrupt
    if nested.error is not None:
        raise nested.error
    return nested.result
