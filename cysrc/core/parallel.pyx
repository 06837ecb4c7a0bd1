"""One OpenMP pool: thread counts, the parallel loop that all kernels use, and OpenBLAS's place on it."""

cdef extern from "parallel.h" nogil:
    int trt_threads
    int trt_forked
    void trt_parallel_init()
    int trt_usable_threads()
    void trt_parallel_for(int64_t n, int64_t grain, int64_t align, task_fn task, void* context)
    int omp_in_parallel()
    int trt_granted_threads(int wanted)
    void trt_blas_run()

trt_parallel_init()


cdef int num_threads() noexcept nogil:
    return trt_usable_threads()


cdef bint in_parallel() noexcept nogil:
    return omp_in_parallel()


cdef void parallel_for(int64_t n, int64_t grain, int64_t align, task_fn task, void* context) noexcept nogil:
    trt_parallel_for(n, grain, align, task, context)


cdef int granted_threads(int wanted) noexcept nogil:
    return trt_granted_threads(wanted)


cdef void* blas_runner() noexcept nogil:
    """The function that runs OpenBLAS's jobs on this module's pool."""
    return <void*>trt_blas_run


def set_num_threads(int n):
    """Set the number of threads that operators use; results do not depend on it."""
    global trt_threads
    if n <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {n}")
    trt_threads = n


def get_num_threads():
    """Return the number of threads that operators use."""
    return 1 if trt_forked else trt_threads
