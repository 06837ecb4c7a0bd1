"""cuBLASLt under GEMMs: the library opened by path at first use, a plan (descriptors and the algorithm its heuristics choose) kept per shape.

Nothing is linked: the package says where the library is, and without one `is_available()` is False. Scratch memory comes from the
caching allocator on the current stream.
"""
from os import environ

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.dtype cimport U8
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, place_of, empty_tensor
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport enter, stream_of
from tensorrt_lite._C.cuda.driver cimport exchange_capture_mode, service

attach()

cdef extern from "dlfcn.h" nogil:
    void* dlopen(const char* path, int flags)
    void* dlsym(void* library, const char* name)
    const char* dlerror()
    int RTLD_NOW
    int RTLD_LOCAL

cdef extern from "cublaslt.h":
    ctypedef struct Algorithm "trt_lt_algo":
        uint64_t data[8]
    ctypedef struct Result "trt_lt_result":
        Algorithm algo
        size_t workspace
        int state
    ctypedef struct Library "trt_lt":
        int (*create)(void**) noexcept
        int (*desc_create)(void**, int, int) noexcept
        int (*desc_destroy)(void*) noexcept
        int (*desc_set)(void*, int, const void*, size_t) noexcept
        int (*layout_create)(void**, int, uint64_t, uint64_t, int64_t) noexcept
        int (*layout_destroy)(void*) noexcept
        int (*layout_set)(void*, int, const void*, size_t) noexcept
        int (*preference_create)(void**) noexcept
        int (*preference_destroy)(void*) noexcept
        int (*preference_set)(void*, int, const void*, size_t) noexcept
        int (*heuristic)(void*, void*, void*, void*, void*, void*, void*, int, Result*, int*) noexcept
        int (*matmul)(void*, void*, const void*, const void*, void*, const void*, void*, const void*, const void*, void*, void*, void*, const Algorithm*,
                      void*, size_t, void*) noexcept
        size_t (*version)() noexcept
    const char** symbols "trt_lt_symbols"
    enum:
        NOT_INITIALIZED "TRT_CUBLAS_STATUS_NOT_INITIALIZED"
        ARCH_MISMATCH "TRT_CUBLAS_STATUS_ARCH_MISMATCH"
        NOT_SUPPORTED "TRT_CUBLAS_STATUS_NOT_SUPPORTED"
        INVALID_VALUE "TRT_CUBLAS_STATUS_INVALID_VALUE"
        DESC_TRANSA "TRT_CUBLASLT_MATMUL_DESC_TRANSA"
        DESC_TRANSB "TRT_CUBLASLT_MATMUL_DESC_TRANSB"
        DESC_EPILOGUE "TRT_CUBLASLT_MATMUL_DESC_EPILOGUE"
        DESC_BIAS "TRT_CUBLASLT_MATMUL_DESC_BIAS_POINTER"
        LAYOUT_BATCH "TRT_CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT"
        LAYOUT_OFFSET "TRT_CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET"
        PREFERENCE_WORKSPACE "TRT_CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES"
        PREFERENCE_REDUCTION "TRT_CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK"
        PREFERENCE_ALIGN_A "TRT_CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES"

STATUS = {1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR", 13: "EXECUTION_FAILED", 14: "INTERNAL_ERROR",
          15: "NOT_SUPPORTED", 16: "LICENSE_ERROR"}
cdef enum:
    PLANS = 4096                 # more shapes than programs have; then all are forgotten

cdef Library library
cdef bint opened = False, found = False
cdef set ABSENT = {NOT_INITIALIZED, ARCH_MISMATCH}     # of a library that does not go with the driver or the card
cdef void* handles[64]           # by device
cdef dict _plans = {}


cdef int check(int status, str call) except -1:
    if status:
        raise RuntimeError(f"CUDA error: CUBLAS_STATUS_{STATUS.get(status, status)} when calling `{call}`")
    return 0


cdef int open_library() except -1:
    global opened, found
    cdef void** entries = <void**>&library
    cdef void* opened_library
    cdef bytes path
    cdef size_t i
    opened = True
    name = service("cublaslt")()
    if name is None:
        return 0
    path = name.encode()
    opened_library = dlopen(path, RTLD_NOW | RTLD_LOCAL)
    if opened_library == NULL and not environ.get("TENSORRT_LITE_CUBLASLT"):
        return 0
    if opened_library == NULL:
        raise RuntimeError(f"cuBLASLt cannot be opened: {(<bytes>dlerror()).decode()}")
    for i in range(sizeof(Library) // sizeof(void*)):
        entries[i] = dlsym(opened_library, symbols[i])
        if entries[i] == NULL:
            raise RuntimeError(f"{name} lacks {(<bytes>symbols[i]).decode()}")
    found = True
    return 0


cdef bint is_available() except -1:
    if not opened:
        open_library()
    return found


def _version():
    """cuBLASLt's version (130101 is 13.1.1), None without the library."""
    return library.version() if is_available() else None


def _plan_count():
    """How many shapes have a plan."""
    return len(_plans)


cdef class Plan:
    """Descriptors and the algorithm of one shape; `usable` is False where the library has none."""
    cdef void* desc
    cdef void* layouts[4]
    cdef Algorithm algo
    cdef size_t workspace
    cdef bint usable

    def __dealloc__(self):
        cdef int i
        if self.desc != NULL:
            library.desc_destroy(self.desc)
        for i in range(4):
            if self.layouts[i] != NULL:
                library.layout_destroy(self.layouts[i])


cdef int make_layout(void** layout, int dtype, int64_t rows, int64_t cols, int64_t ld, int64_t batch, int64_t offset) except -1:
    cdef int count = <int>batch
    check(library.layout_create(layout, dtype, rows, cols, ld), "cublasLtMatrixLayoutCreate")
    if batch > 1:
        check(library.layout_set(layout[0], LAYOUT_BATCH, &count, sizeof(count)), "cublasLtMatrixLayoutSetAttribute")
        check(library.layout_set(layout[0], LAYOUT_OFFSET, &offset, sizeof(offset)), "cublasLtMatrixLayoutSetAttribute")
    return 0


cdef Plan make_plan(const Shape* s, const char* bias):
    cdef Plan plan = Plan()
    cdef void* preference = NULL
    cdef Result result
    cdef int count = 0, status, i
    cdef unsigned aligned[4]
    cdef unsigned mask = s.reduction_mask
    cdef size_t workspace = s.workspace
    check(library.desc_create(&plan.desc, s.compute, s.scale), "cublasLtMatmulDescCreate")
    check(library.desc_set(plan.desc, DESC_TRANSA, &s.transpose_a, sizeof(int)), "cublasLtMatmulDescSetAttribute")
    check(library.desc_set(plan.desc, DESC_TRANSB, &s.transpose_b, sizeof(int)), "cublasLtMatmulDescSetAttribute")
    check(library.desc_set(plan.desc, DESC_EPILOGUE, &s.epilogue, sizeof(int)), "cublasLtMatmulDescSetAttribute")
    if bias != NULL:
        check(library.desc_set(plan.desc, DESC_BIAS, &bias, sizeof(void*)), "cublasLtMatmulDescSetAttribute")
    make_layout(&plan.layouts[0], s.type_ab, s.k if s.transpose_a else s.m, s.m if s.transpose_a else s.k, s.lda, s.batch, s.batch_a)
    make_layout(&plan.layouts[1], s.type_ab, s.n if s.transpose_b else s.k, s.k if s.transpose_b else s.n, s.ldb, s.batch, s.batch_b)
    make_layout(&plan.layouts[2], s.type_cd, s.m, s.n, s.ldc, s.batch, s.batch_c)
    make_layout(&plan.layouts[3], s.type_cd, s.m, s.n, s.ldd, s.batch, s.batch_d)
    aligned[0], aligned[1], aligned[2], aligned[3] = s.align_a, s.align_b, s.align_c, s.align_d
    check(library.preference_create(&preference), "cublasLtMatmulPreferenceCreate")
    try:
        check(library.preference_set(preference, PREFERENCE_WORKSPACE, &workspace, sizeof(workspace)), "cublasLtMatmulPreferenceSetAttribute")
        check(library.preference_set(preference, PREFERENCE_REDUCTION, &mask, sizeof(mask)), "cublasLtMatmulPreferenceSetAttribute")
        for i in range(4):
            check(library.preference_set(preference, PREFERENCE_ALIGN_A + i, &aligned[i], sizeof(unsigned)), "cublasLtMatmulPreferenceSetAttribute")
        status = library.heuristic(handles[s.device], plan.desc, plan.layouts[0], plan.layouts[1], plan.layouts[2], plan.layouts[3], preference, 1, &result, &count)
    finally:
        library.preference_destroy(preference)
    # refused in either way, the GEMM goes to the kernels of gemm.cuh
    if status != NOT_SUPPORTED and status != INVALID_VALUE:
        check(status, "cublasLtMatmulAlgoGetHeuristic")
    if status == 0 and count > 0 and result.state == 0:
        plan.algo = result.algo
        plan.workspace = result.workspace
        plan.usable = True
    return plan


cdef bint multiply(const Shape* shape, TensorBase like, const void* alpha, const void* beta, const char* a, const char* b, const char* c, char* d, const char* bias) except -1:
    cdef Plan plan
    cdef TensorBase scratch
    cdef char* workspace = NULL
    cdef int64_t size
    cdef int mode, status
    cdef bytes key = PyBytes_FromStringAndSize(<const char*>shape, sizeof(Shape))
    global found
    enter(shape.device)
    if handles[shape.device] == NULL:
        # it loads code and takes memory, also beside the recording of a graph
        mode = exchange_capture_mode(2)
        status = library.create(&handles[shape.device])
        exchange_capture_mode(mode)
        if status in ABSENT:
            # the kernels of gemm.cuh take this GEMM and all that follow
            handles[shape.device] = NULL
            found = False
            return False
        check(status, "cublasLtCreate")
    found_plan = _plans.get(key)
    if found_plan is None:
        if len(_plans) >= PLANS:
            _plans.clear()
        found_plan = _plans[key] = make_plan(shape, bias)
    plan = <Plan>found_plan
    if not plan.usable:
        return False
    if bias != NULL:
        check(library.desc_set(plan.desc, DESC_BIAS, &bias, sizeof(void*)), "cublasLtMatmulDescSetAttribute")
    if plan.workspace:
        size = plan.workspace
        scratch = empty_tensor(1, &size, U8, place_of(like))
        workspace = data_of(scratch)
    check(library.matmul(handles[shape.device], plan.desc, alpha, a, plan.layouts[0], b, plan.layouts[1], beta, c, plan.layouts[2], d, plan.layouts[3], &plan.algo,
                         workspace, plan.workspace, stream_of(shape.device)), "cublasLtMatmul")
    return True
