"""One OpenMP pool: thread counts, the parallel loop that all kernels use, and OpenBLAS's place on it."""
import os

cdef extern from "parallel.h" nogil:
    int trt_threads
    int trt_forked
    const char* trt_parallel_init(int threads, const char* bundled, bint exists)
    const char* trt_omp_path()
    int trt_in_parallel()
    int trt_usable_threads()
    void trt_parallel_for(int64_t n, int64_t grain, int64_t align, task_fn task, void* context)
    void trt_parallel_after(int64_t n_before, task_fn before, int64_t n, int64_t grain, task_fn task, void* context)
    int trt_granted_threads(int wanted)
    void trt_blas_run()
    int64_t trt_now_ns()
    ctypedef struct trt_cores_figures:
        int64_t until, pause, split, serial, lost
        int failures, suspicion, waking, divisor
    trt_cores_figures trt_cores
    void trt_judge_region(int64_t wall, int64_t lost)


def _default_threads():
    """The number of threads a runtime would choose; asking one would open it before other packages have loaded theirs."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(wanted) if wanted.isdecimal() and 0 < int(wanted) < 1 << 16 else len(os.sched_getaffinity(0))


def _start():
    cdef bytes bundled = os.fsencode(os.path.join(os.path.dirname(os.path.dirname(__file__)), "libgomp.so.1"))
    cdef const char* missing = trt_parallel_init(_default_threads(), bundled, os.path.exists(bundled))
    if missing != NULL:
        raise ImportError(f"tensorrt_lite needs an OpenMP runtime: {missing.decode()} (Debian and Ubuntu: apt install libgomp1)")


_start()

# A runtime that is refused a thread by the system ends the process.
cdef int MOST_THREADS = 16 * len(os.sched_getaffinity(0))
cdef int chosen_threads = 0


cdef int num_threads() noexcept nogil:
    return trt_usable_threads()


cdef bint in_parallel() noexcept nogil:
    return trt_in_parallel()


cdef void parallel_for(int64_t n, int64_t grain, int64_t align, task_fn task, void* context) noexcept nogil:
    trt_parallel_for(n, grain, align, task, context)


cdef void parallel_after(int64_t n_before, task_fn before, int64_t n, int64_t grain, task_fn task, void* context) noexcept nogil:
    trt_parallel_after(n_before, before, n, grain, task, context)


cdef int granted_threads(int wanted) noexcept nogil:
    return trt_granted_threads(wanted)


cdef void* blas_runner() noexcept nogil:
    """The function that runs OpenBLAS's jobs on this module's pool."""
    return <void*>trt_blas_run


def set_num_threads(int n):
    """Set the number of threads that operators use (at most 16 for each processor are); results do not depend on it.

    Parameters:
        n (int): how many, at least 1

    Example:
        >>> import tensorrt_lite as trt
        >>> before = trt.get_num_threads()
        >>> trt.set_num_threads(1)
        >>> trt.get_num_threads()
        1
        >>> trt.set_num_threads(before)
    """
    global trt_threads, chosen_threads
    if n <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer, got {n}")
    chosen_threads = n
    trt_threads = min(n, MOST_THREADS)


def get_num_threads():
    """Return the number of threads that operators use.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.get_num_threads() > 0
        True
    """
    return 1 if trt_forked else chosen_threads or trt_threads


def shared_cores():
    """How often split work lost time to other processes on this machine, as a dict.

    ``split``: regions that several threads ran; ``lost``: those of them that took longer than one thread would have; ``serial``:
    regions that one thread ran because of that; ``pause``: seconds that the last such phase lasts, ``pausing``: whether it does now.
    """
    return {
        "split": trt_cores.split,
        "lost": trt_cores.lost,
        "serial": trt_cores.serial,
        "pause": trt_cores.pause / 1e9,
        "pausing": trt_cores.until != 0 and trt_now_ns() < trt_cores.until,
    }


cdef void spin_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef double* sums = <double*>context
    cdef int64_t i, k
    cdef double x
    for i in range(begin, end):
        x = 1.0
        for k in range(1000):
            x = x * 0.999 + 0.001 * k            # each step waits for the last: about 4 us
        sums[i & 63] = x


def probe_cores(int regions):
    """Run some split regions of a quarter of a millisecond each; what ``shared_cores`` reports afterwards."""
    cdef double sums[64]
    cdef int i
    with nogil:
        for i in range(regions):
            parallel_for(64, 1, 1, spin_task, sums)
    return shared_cores()


def _judge_region(int64_t wall, int64_t lost):
    """What happens after a split region of `wall` ns that lost `lost` of them; for tests."""
    trt_judge_region(wall, lost)


def _split_small_work(int divisor):
    """Split what is worth `divisor` threads less work than usual, and never pause; 0: as usual. For tests of what threads may not change."""
    trt_cores.divisor = divisor


def _end_pause(bint waking=False):
    """Split regions again now, as if none had lost time yet; for tests."""
    trt_cores.until = 0
    trt_cores.failures = 0
    trt_cores.suspicion = 0
    trt_cores.waking = waking
cdef extern from *:
    """
    #if defined(__SSE2__)
    #include <immintrin.h>
    /* flush to zero (bit 15) and denormals are zero (bit 6) of this thread's MXCSR */
    static int trt_flush_denormals(int on) { _mm_setcsr(on ? _mm_getcsr() | 0x8040u : _mm_getcsr() & ~0x8040u); return 1; }
    #else
    static int trt_flush_denormals(int on) { (void)on; return 0; }
    #endif
    """
    bint trt_flush_denormals(bint on) nogil


def set_flush_denormal(mode):
    """Treat subnormal numbers as zero in the calling thread (mode: bool), as PyTorch does; False where the processor can't.

    Parameters:
        mode (bool): whether they are zero

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.set_flush_denormal(False)
        True
    """
    if not isinstance(mode, bool):
        raise TypeError(f"set_flush_denormal expects a bool, but got {type(mode).__name__}")
    return trt_flush_denormals(mode)


def runtime():
    """The file of the OpenMP runtime in use; opens it where no operator has needed it yet."""
    cdef const char* path = trt_omp_path()
    return None if path == NULL else os.path.realpath(os.fsdecode(path))
