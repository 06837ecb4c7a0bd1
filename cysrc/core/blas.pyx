"""OpenBLAS from the package scipy-openblas32, opened by path at the first product and run on the package's thread pool.

All jobs of one call must run at once, since they wait for each other: a call is given no more threads than a parallel
region would get for certain, so one in a nested region, in a forked child, or under OMP_THREAD_LIMIT=1.
"""
import os
import sys
from tensorrt_lite._C.core.parallel cimport blas_runner, granted_threads, num_threads

cdef extern from "blas.h" nogil:
    const char* trt_blas_open(const char* path, void* runner, int threads)
    const char* TRT_BLAS_NO_MEMORY
    int trt_blas_ready
    void trt_blas_begin(int threads)
    void trt_blas_end()
    void trt_blas_gemm(int dtype, int ta, int tb, int m, int n, int k, const double* alpha, const void* a, int lda, const void* b, int ldb,
                       const double* beta, void* c, int ldc)
    int INT_MAX

cdef extern from *:
    """
    #define trt_blas_config() trt_blas.config()
    """
    const char* trt_blas_config()

cdef bint loaded = False           # some product has run; later ones of more threads need more memory


def find_library():
    """The path of OpenBLAS in the installed package scipy_openblas32, without importing it; None without the package."""
    folders = [os.path.join(p, "scipy_openblas32") for p in sys.path if p]
    if not any(map(os.path.isdir, folders)):
        from importlib.util import find_spec
        spec = find_spec("scipy_openblas32")
        folders = list(spec.submodule_search_locations) if spec is not None else []
    for folder in folders:
        lib = os.path.join(folder, "lib")
        if os.path.isdir(lib):
            for name in sorted(os.listdir(lib)):
                if "openblas" in name and (".so" in name or name.endswith((".dylib", ".dll"))):
                    return os.path.join(lib, name)
    return None


# Found when this module is imported: a search lets other threads run, which may resize the operands of the product that needs the library.
cdef str library_path = find_library()
cdef bytes library_file = os.fsencode(library_path) if library_path is not None else None


cdef int blas_load() except -1:
    """Open the library once, without running Python, with memory for the threads of this process; every later call costs one test. MemoryError."""
    global loaded
    cdef const char* missing
    if loaded and num_threads() <= trt_blas_ready:
        return 0
    if library_file is None:
        raise ImportError("matrix products need the package scipy-openblas32, which was not installed when tensorrt_lite was imported")
    missing = trt_blas_open(library_file, blas_runner(), granted_threads(num_threads()))
    if missing == TRT_BLAS_NO_MEMORY:
        raise MemoryError(f"matrix products: no memory to open OpenBLAS at {library_path} with {num_threads()} threads, each of which takes 40 MB of address space")
    if missing != NULL:
        raise ImportError(f"OpenBLAS at {library_path} can't be used: {missing.decode()}")
    loaded = True
    return 0


cdef bint blas_fits(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc) noexcept nogil:
    return m <= INT_MAX and n <= INT_MAX and k <= INT_MAX and lda <= INT_MAX and ldb <= INT_MAX and ldc <= INT_MAX


cdef void blas_begin(int threads) noexcept nogil:
    """Take the library for this thread; products until blas_end use at most `threads` threads."""
    trt_blas_begin(granted_threads(threads))


cdef void blas_end() noexcept nogil:
    trt_blas_end()


cdef void blas_gemm_raw(int dtype, int ta, int tb, int64_t m, int64_t n, int64_t k, const double* alpha, const void* a, int64_t lda, const void* b,
                        int64_t ldb, const double* beta, void* c, int64_t ldc) noexcept nogil:
    """C = alpha op(A) op(B) + beta C between blas_begin and blas_end; the sizes fit 32 bits (blas_fits)."""
    trt_blas_gemm(dtype, ta, tb, <int>m, <int>n, <int>k, alpha, a, <int>lda, b, <int>ldb, beta, c, <int>ldc)


cdef int blas_gemm(int dtype, int ta, int tb, int64_t m, int64_t n, int64_t k, const double* alpha, const void* a, int64_t lda, const void* b,
                   int64_t ldb, const double* beta, void* c, int64_t ldc) except -1 nogil:
    """C = alpha op(A) op(B) + beta C with all threads."""
    if not blas_fits(m, n, k, lda, ldb, ldc):
        with gil:
            raise RuntimeError(f"matrix product: sizes ({m}, {k}) and ({k}, {n}) with row strides {lda}, {ldb}, {ldc} don't fit 32 bits")
    blas_begin(num_threads())
    blas_gemm_raw(dtype, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
    blas_end()
    return 0


def library():
    """(path, configuration) of the BLAS in use; opens it."""
    blas_load()
    return library_path, trt_blas_config().decode()
