# Locks and reference counts of an interpreter without the GIL; with it the locks do nothing.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

cdef extern from "free_threading.h":
    const bint FREE_THREADED "TRT_FREE_THREADED"
    ctypedef struct mutex "trt_mutex":
        pass
    void mutex_lock "trt_mutex_lock"(mutex*) noexcept
    void mutex_unlock "trt_mutex_unlock"(mutex*) noexcept
    mutex* lock_of "trt_lock_of"(const void*) noexcept
    void* load "TRT_LOAD"(void* place) noexcept                          # of a pointer, as another thread published it
    void publish "TRT_PUBLISH"(void* place, void* value) noexcept
    uint64_t count_up "trt_count_up"(uint64_t*) noexcept                  # the number given out
    int read_shared "trt_read_shared"(int*) noexcept                      # what another thread may be writing
    uint64_t read_shared_number "trt_read_shared"(uint64_t*) noexcept
    int64_t read_shared_integer "trt_read_shared"(int64_t*) noexcept
    void* read_shared_pointer "trt_read_shared"(void*) noexcept           # the address of any pointer
    void write_shared "trt_write_shared"(int*, int) noexcept
    void write_shared_number "trt_write_shared"(uint64_t*, uint64_t) noexcept
    bint held_at_most "trt_held_at_most"(object, Py_ssize_t) noexcept     # whether nobody else than n holders can have it
    void keep_for_ever "trt_keep_for_ever"(object) noexcept
    void allow_finding "trt_allow_finding"(object) noexcept
    bint find "trt_find"(PyObject*) noexcept                              # a new reference, if the object is not about to go
