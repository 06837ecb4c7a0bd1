"""A thread's state, for another thread that goes on with its work: dispatch keys, modes, hooks on saved tensors, autocast, device, streams.

`take` notes the state of the calling thread, `adopt` gives it to another one, `restore` puts it back in the thread that it was taken in. Lists that a
thread changes (modes, hooks, levels) are copied, as the first thread may go on meanwhile.
"""
from tensorrt_lite._C.core.device import get_default_device, set_default_device
from tensorrt_lite._C.core.dispatch cimport attach, tls, trt_thread_state
from tensorrt_lite._C.core.python_key import mode_stack, set_modes
from tensorrt_lite._C.core.tensor cimport set_inference_flag
from tensorrt_lite._C.autograd.streams cimport current_streams, use_streams
from tensorrt_lite._C.autograd.saved_tensors import copy_of_stack, exchange_stack
from sys import modules as _modules

cdef extern from *:
    """
    static __thread int trt_single_threaded __attribute__((tls_model("initial-exec")));   /* set_multithreading_enabled(False) */
    """
    int trt_single_threaded

attach()


cdef int single_threaded() noexcept:
    return trt_single_threaded


def set_multithreading_enabled(bint mode):
    """Whether backward passes that this thread begins use the devices' threads."""
    global trt_single_threaded
    trt_single_threaded = not mode


def is_multithreading_enabled():
    """Whether backward passes that this thread begins use the devices' threads."""
    return trt_single_threaded == 0


cdef trt_thread_state* replace_state(const trt_thread_state* given) noexcept:
    """Give the calling thread a state, but for what is its own: its lists, the Nodes that are being freed in it, the number of its newest one."""
    cdef trt_thread_state* own = tls()
    cdef trt_thread_state before = own[0]
    own[0] = given[0]
    own.called_overloads = before.called_overloads
    own.dispatch_modes = before.dispatch_modes
    own.dying = before.dying
    own.draining = before.draining
    own.newest_sequence = before.newest_sequence
    return own


cdef class ThreadSnapshot:
    cdef int take(self) except -1:
        """Note the calling thread's state."""
        self.state = tls()[0]
        self.single_threaded = trt_single_threaded
        self.default_device = get_default_device()
        self.hooks = copy_of_stack()
        self.modes = list(mode_stack()) if self.state.dispatch_modes != NULL else None
        autocast = _modules.get("tensorrt_lite._C.autograd.autocast")
        if autocast is not None:
            self.autocast = autocast.ThreadState()
        transform = _modules.get("tensorrt_lite._C.core.transform")
        if transform is not None:
            self.levels = transform.ThreadState()
        self.streams = current_streams()
        return 0

    cdef int adopt(self, const int* cancelled) except -1:
        """Give the state to the calling thread, another one. cancelled: where it reads that it has to stop."""
        cdef trt_thread_state* own = replace_state(&self.state)
        own.late_warnings = NULL
        own.cancelled = cancelled
        return self.put()

    cdef int restore(self) except -1:
        """Put the state back in the thread that it was taken in."""
        replace_state(&self.state)
        return self.put()

    cdef int put(self) except -1:
        global trt_single_threaded
        cdef trt_thread_state* own = tls()
        trt_single_threaded = self.single_threaded
        set_inference_flag(own.inference_mode)
        set_default_device(self.default_device)
        exchange_stack(list(self.hooks))
        if self.modes is not None or own.dispatch_modes != NULL:
            set_modes(self.modes or ())
        if self.autocast is not None:
            self.autocast()
        if self.levels is not None:
            self.levels()
        use_streams(self.streams)      # and the current device, which belongs to the set
        return 0
