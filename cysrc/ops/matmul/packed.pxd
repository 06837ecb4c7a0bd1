# The packed GEMM (cysrc/loops/gemm) on tensors' memory, for every float type and int64, and any strides. With the GIL: packed_begin; then, with or without it,
# packed_run; with it again: packed_end, which raises what went wrong. The caller holds the operands' blocks in between.
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.allocator cimport trt_block
from tensorrt_lite._C.ops.matmul.mat cimport Mat

cdef extern from "gemm/gemm.h" nogil:
    enum:
        GEMM_F32, GEMM_F64, GEMM_BF16, GEMM_F16, GEMM_I64, GEMM_TYPES, GEMM_BF16_PAIRS, GEMM_BF16_TILES, GEMM_F16_SPLIT, GEMM_F32_SPLIT, GEMM_F32_ROUNDED, GEMM_KERNELS
        GEMM_IDENTITY, GEMM_RELU
    ctypedef struct gemm_kernel:
        int type, element, width

    ctypedef struct gemm_matrices:
        int64_t m, n, k
        const char* a
        const char* b
        const char* d
        char* c
        int64_t ars, acs, brs, bcs, crs, ccs, drs, dcs
        double alpha, beta
        int activation
        int64_t integer_alpha, integer_beta

    ctypedef struct gemm_plan:
        gemm_matrices g
        const gemm_kernel* kernel
        int64_t packed_bytes, row_panels, column_tasks, columns, depth_block, blocks
        char* packed
        int failed

cdef struct PackedGemm:
    gemm_matrices g             # of the first item of the batch
    int64_t batch, abs, bbs, cbs, dbs   # strides of the batch, in elements
    const gemm_kernel* kernel
    gemm_plan plan
    trt_block* workspace
    int threads, failed
    bint by_items               # threads take whole items of the batch

cdef bint bf16_by_tiles() except -1
cdef bint bf16_by_pairs() except -1
cdef bint lowers_precision(int64_t m, int64_t n, int64_t k) noexcept   # whether AMX's tiles multiply such matrices of float32, as set_float32_matmul_precision allows
cdef void packed_operands(PackedGemm* p, const Mat* a, const Mat* b, const Mat* c, const Mat* d) noexcept nogil
cdef int packed_begin(PackedGemm* p, int dtype) except -1
cdef void packed_run(PackedGemm* p) noexcept nogil
cdef int packed_end(PackedGemm* p, str name) except -1
# C -= A B in one thread, of float or double by `dtype`; C and B column-major. The workspace grows as needed, the caller frees it. -1: no memory
cdef int subtract_product(int dtype, int64_t m, int64_t n, int64_t k, const char* a, int64_t ars, int64_t acs, const char* b, int64_t ldb, char* c, int64_t ldc,
                          char** workspace, int64_t* nbytes) noexcept nogil
