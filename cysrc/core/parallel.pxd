# One OpenMP pool for everything. A task runs over chunk numbers; which thread takes which chunk never changes results.
from libc.stdint cimport int64_t

ctypedef void (*task_fn)(void* context, int64_t begin, int64_t end) noexcept nogil

cdef enum:
    GRAIN = 32768            # elements of cheap work below which threads cost more than they bring (measured)

cdef int num_threads() noexcept nogil
cdef void parallel_for(int64_t n, int64_t grain, int64_t align, task_fn task, void* context) noexcept nogil
cdef bint in_parallel() noexcept nogil
cdef int granted_threads(int wanted) noexcept nogil
cdef void* blas_runner() noexcept nogil
