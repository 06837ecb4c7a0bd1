# A call of linear algebra as the steps receive it, see core/linalg_job.h.
from libc.stdint cimport int64_t

cdef extern from "linalg_job.h" nogil:
    ctypedef struct trt_stack:
        const char* data
        int64_t rows, cols, rs, cs
        int batch_dims
        int64_t sizes[64]
        int64_t strides[64]
    enum:
        LU "TRT_LU"
        LU_SOLVE "TRT_LU_SOLVE"
        PERMUTATION "TRT_PERMUTATION"
        SOLVE "TRT_SOLVE"
        INVERSE "TRT_INVERSE"
        DETERMINANT "TRT_DETERMINANT"
        CHOLESKY "TRT_CHOLESKY"
        CHOLESKY_SOLVE "TRT_CHOLESKY_SOLVE"
        CHOLESKY_INVERSE "TRT_CHOLESKY_INVERSE"
        TRIANGULAR "TRT_TRIANGULAR"
        LDL "TRT_LDL"
        LDL_SOLVE "TRT_LDL_SOLVE"
        QR "TRT_QR"
        GEQRF "TRT_GEQRF"
        HOUSEHOLDER "TRT_HOUSEHOLDER"
        ORMQR "TRT_ORMQR"
        EIGH "TRT_EIGH"
        EIG "TRT_EIG"
        SVD "TRT_SVD"
        LEAST_SQUARES "TRT_LEAST_SQUARES"
        GELS "TRT_GELS"
        GELSY "TRT_GELSY"
        GELSD "TRT_GELSD"
        GELSS "TRT_GELSS"
    ctypedef struct Job "trt_linalg_job":
        int t, size, m, n, k, flag
        char uplo, trans, side, diag
        int lwork, liwork
        double tolerance
        int64_t count, scratch
        int64_t part[6]
        int (*one)(Job* w, int64_t i, char* scratch) noexcept nogil
        int* info
        trt_stack a, b, c
        char* out[4]
        int64_t step[4]

cdef enum:
    # info codes besides LAPACK's own
    NOT_FINITE = -1000
    BAD_PIVOTS = -1001
    NO_MEMORY = -1002
