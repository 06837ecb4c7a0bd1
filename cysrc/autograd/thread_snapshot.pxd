# A thread's state, for another thread that goes on with its work.
from tensorrt_lite._C.core.dispatch cimport trt_thread_state

cdef class ThreadSnapshot:
    cdef trt_thread_state state
    cdef object default_device, autocast, levels
    cdef list hooks, modes
    cdef int streams
    cdef int single_threaded
    cdef int take(self) except -1
    cdef int adopt(self, const int* cancelled) except -1
    cdef int restore(self) except -1
    cdef int put(self) except -1

cdef int single_threaded() noexcept
