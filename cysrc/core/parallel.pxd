# One OpenMP pool for everything. A task runs over chunk numbers; which thread takes which chunk never changes results.
from libc.stdint cimport int64_t

ctypedef void (*task_fn)(void* context, int64_t begin, int64_t end) noexcept nogil

cdef extern from "grain.h" nogil:
    enum:
        GRAIN                # elements of cheap work that a thread gets at least
        COPY_GRAIN           # bytes copied

cdef int num_threads() noexcept nogil
cdef void parallel_for(int64_t n, int64_t grain, int64_t align, task_fn task, void* context) noexcept nogil
# one region: all of `before`, then all of `task`
cdef void parallel_after(int64_t n_before, task_fn before, int64_t n, int64_t grain, task_fn task, void* context) noexcept nogil
cdef bint in_parallel() noexcept nogil
cdef int granted_threads(int wanted) noexcept nogil
cdef void* blas_runner() noexcept nogil
