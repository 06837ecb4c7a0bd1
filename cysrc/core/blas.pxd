# Matrix products by OpenBLAS on the package's own OpenMP pool. Row-major; dtype is F32, F64, C64 or C128.
#
# From a thread that is in no parallel region:   blas_load(); blas_gemm(dtype, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
# From inside an own parallel region:            blas_load(); blas_begin(1); parallel_for(... blas_gemm_raw(...) ...); blas_end()
#   Several threads may call blas_gemm_raw at once then; each call uses one thread. Never nest begin/end.
# ta, tb: 0 as is, 1 transposed, 2 conjugate transposed: A is (m, k) as is, (k, m) stored when transposed; lda its row stride.
# alpha, beta: two doubles (real, imaginary). blas_load needs the GIL; the rest does not, and should run without it.
from libc.stdint cimport int64_t

cdef int blas_load() except -1
cdef bint blas_fits(int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc) noexcept nogil
cdef void blas_begin(int threads) noexcept nogil
cdef void blas_end() noexcept nogil
cdef void blas_gemm_raw(int dtype, int ta, int tb, int64_t m, int64_t n, int64_t k, const double* alpha, const void* a, int64_t lda, const void* b,
                        int64_t ldb, const double* beta, void* c, int64_t ldc) noexcept nogil
cdef int blas_gemm(int dtype, int ta, int tb, int64_t m, int64_t n, int64_t k, const double* alpha, const void* a, int64_t lda, const void* b,
                   int64_t ldb, const double* beta, void* c, int64_t ldc) except -1 nogil
