"""Backward passes inside of backward passes, beyond the levels that share a stack: each takes a thread, whose state is that of the waiting one."""
from cpython.object cimport PyObject
from tensorrt_lite._C.core.device import get_default_device, set_default_device
from tensorrt_lite._C.core.dispatch cimport tls, attach, trt_thread_state
from tensorrt_lite._C.core.storage cimport installed_hooks
from tensorrt_lite._C.core.tensor cimport set_inference_flag
from tensorrt_lite._C.autograd.saved_tensors import stack_for_thread

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1

cdef extern from "nested_thread.h" nogil:
    ctypedef unsigned long pthread_t
    ctypedef struct trt_nested:
        PyObject* work
        int cancelled
    int trt_nested_start(trt_nested*, pthread_t*)
    bint trt_nested_wait(trt_nested*, int milliseconds)
    void trt_nested_join(trt_nested*, pthread_t)

attach()


cdef class NestedPass:
    """A backward pass that goes on in another thread with the state of the waiting one: dispatch keys, modes, hooks, device, streams."""
    cdef trt_thread_state state
    cdef trt_nested thread
    cdef tuple arguments
    cdef object run, hooks, autocast, default_device, levels, result, error
    cdef int streams

    def __call__(self):
        cdef trt_thread_state* state = tls()
        try:
            state[0] = self.state
            state.cancelled = &self.thread.cancelled
            set_inference_flag(state.inference_mode)
            set_default_device(self.default_device)
            if self.hooks is not None:
                self.hooks()
            if self.autocast is not None:
                self.autocast()
            if self.levels is not None:
                self.levels()
            if self.streams:
                installed_hooks().use_streams(self.streams)  # and the current device, which belongs to the set
            self.result = self.run(*self.arguments)
        except BaseException as error:
            self.error = error


def run_in_thread(run, tuple arguments):
    """run(*arguments) in another thread: with a stack for every few levels, passes nest however deeply. The exception travels."""
    from contextvars import copy_context
    from functools import partial
    from sys import modules
    cdef trt_thread_state* state = tls()
    cdef NestedPass nested = NestedPass()
    cdef pthread_t handle
    cdef bint done = False
    nested.run = run
    nested.arguments = arguments
    nested.state = state[0]
    nested.default_device = get_default_device()
    nested.hooks = stack_for_thread()
    autocast = modules.get("tensorrt_lite._C.autograd.autocast")
    if autocast is not None:
        nested.autocast = autocast.ThreadState()
    transform = modules.get("tensorrt_lite._C.core.transform")
    if transform is not None:
        nested.levels = transform.ThreadState()
    if installed_hooks().current_streams != NULL:
        nested.streams = installed_hooks().current_streams()
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
