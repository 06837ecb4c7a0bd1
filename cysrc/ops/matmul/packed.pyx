"""The packed GEMM: which kernel serves a type, its workspace, and how threads share its panels, tasks and batches."""
from libc.stdint cimport int64_t
from libc.stdlib cimport free
from tensorrt_lite._C.core.allocator cimport trt_block, block_alloc, block_drop
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport BF16, F16, F32, F64, I64
from tensorrt_lite._C.core.parallel cimport num_threads, parallel_after, parallel_for
from tensorrt_lite._C.ops.matmul.mat cimport Mat

attach()

cdef extern from "stdlib.h" nogil:
    void* aligned_alloc(size_t alignment, size_t size)

cdef extern from *:
    """
    #include "isa.h"
    #include "gemm/gemm.h"
    ISA_TABLE(gemm_table, trt_gemm)
    #if defined(__x86_64__) && defined(__linux__)
    #include <sys/syscall.h>
    #include <unistd.h>
    static int has_bf16_pairs(void) { __builtin_cpu_init(); return __builtin_cpu_supports("avx512bf16"); }
    /* The system saves tile registers only for processes that asked for them: signal frames grow by their 8 KB. */
    static int ask_for_tiles(void) {
      enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
      __builtin_cpu_init();
      return __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-bf16") && !syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
    }
    #else
    static int has_bf16_pairs(void) { return 0; }
    static int ask_for_tiles(void) { return 0; }
    #endif
    """
    ctypedef struct gemm_table:
        const gemm_kernel* kernels[GEMM_KERNELS]
        void (*plan)(gemm_plan*, const gemm_kernel*, const gemm_matrices*, int) noexcept nogil
        bint (*next)(gemm_plan*) noexcept nogil
        void (*pack)(void*, int64_t, int64_t) noexcept nogil
        void (*run)(void*, int64_t, int64_t) noexcept nogil
        void (*whole)(gemm_plan*) noexcept nogil
    const gemm_table* trt_gemm()
    bint has_bf16_pairs()
    bint ask_for_tiles()

cdef const gemm_table* GEMM = trt_gemm()
cdef int kernel_of[GEMM_TYPES]      # -1: not chosen yet
cdef int lower_f32_kernel = -1      # of float32 at the precision that is set: GEMM_F32_SPLIT ("high"), GEMM_F32_ROUNDED ("medium"); -1: float32's own

cdef enum:
    THREAD_WORK = 1 << 18        # multiplications worth another thread: some 10 us
    LOWER_SIDE = 48              # rows and columns of float32 matrices,
    LOWER_DEPTH = 32             # depth
    LOWER_WORK = 1 << 19         # and multiplications from which on tiles beat FMAs


cdef int take_bf16_kernel(str wanted):
    """The fastest kernels that the processor has for bfloat16 and float16; no faster ones than `wanted`."""
    if wanted == "tiles" and GEMM.kernels[GEMM_BF16_TILES] != NULL and ask_for_tiles():
        kernel_of[GEMM_BF16] = GEMM_BF16_TILES
    elif wanted != "widened" and GEMM.kernels[GEMM_BF16_PAIRS] != NULL and has_bf16_pairs():
        kernel_of[GEMM_BF16] = GEMM_BF16_PAIRS
    else:
        kernel_of[GEMM_BF16] = GEMM_BF16
    kernel_of[GEMM_F16] = GEMM_F16_SPLIT if kernel_of[GEMM_BF16] == GEMM_BF16_TILES else GEMM_F16
    return 0


cdef inline int choose_kernels() except -1:
    if kernel_of[GEMM_BF16] < 0:
        take_bf16_kernel("tiles")
    return 0


cdef bint bf16_by_tiles() except -1:
    """Whether AMX multiplies bfloat16 matrices."""
    choose_kernels()
    return kernel_of[GEMM_BF16] == GEMM_BF16_TILES


cdef bint bf16_by_pairs() except -1:
    """Whether AVX512-BF16 does, and AMX doesn't."""
    choose_kernels()
    return kernel_of[GEMM_BF16] == GEMM_BF16_PAIRS


cdef bint lowers_precision(int64_t m, int64_t n, int64_t k) noexcept:
    return lower_f32_kernel >= 0 and m >= LOWER_SIDE and n >= LOWER_SIDE and k >= LOWER_DEPTH and m * n * k >= LOWER_WORK and bf16_by_tiles()


def bf16_kernel():
    """What multiplies bfloat16 matrices: ``tiles`` (AMX), ``pairs`` (AVX512-BF16) or ``widened`` (float32 after packing)."""
    choose_kernels()
    return "tiles" if kernel_of[GEMM_BF16] == GEMM_BF16_TILES else "pairs" if kernel_of[GEMM_BF16] == GEMM_BF16_PAIRS else "widened"


def set_f32_precision(precision):
    """``highest``, ``high`` or ``medium``: what products of float32 may leave out where tiles serve."""
    global lower_f32_kernel
    lower_f32_kernel = GEMM_F32_SPLIT if precision == "high" else GEMM_F32_ROUNDED if precision == "medium" else -1


def _use_bf16_kernel(wanted):
    """Take no faster one of bf16_kernel()'s than `wanted`, and say which; for tests."""
    take_bf16_kernel(wanted)
    return bf16_kernel()


# those of halves are chosen at their first GEMM, because tiles change the process
kernel_of[GEMM_F32], kernel_of[GEMM_F64], kernel_of[GEMM_F16], kernel_of[GEMM_I64], kernel_of[GEMM_BF16] = GEMM_F32, GEMM_F64, GEMM_F16, GEMM_I64, -1


cdef void packed_operands(PackedGemm* p, const Mat* a, const Mat* b, const Mat* c, const Mat* d) noexcept nogil:
    """Sizes and strides; d may be NULL."""
    p.g.m, p.g.n, p.g.k, p.batch = c.rows, c.cols, a.cols, c.batch
    p.g.ars, p.g.acs, p.abs = a.rs, a.cs, a.bs
    p.g.brs, p.g.bcs, p.bbs = b.rs, b.cs, b.bs
    p.g.crs, p.g.ccs, p.cbs = c.rs, c.cs, c.bs
    p.g.drs = p.g.dcs = p.dbs = 0
    if d != NULL:
        p.g.drs, p.g.dcs, p.dbs = d.rs, d.cs, d.bs
    # a dimension of size 1 has any stride: the one that makes the other adjacent
    if p.g.n == 1 and p.g.crs != 1:
        p.g.ccs = 1
    elif p.g.m == 1 and p.g.ccs != 1:
        p.g.crs = 1


cdef int packed_begin(PackedGemm* p, int dtype) except -1:
    """Plan it and get its workspace; p.g and the batch are set."""
    if dtype == BF16 or dtype == F16:
        choose_kernels()
    p.kernel = GEMM.kernels[lower_f32_kernel if dtype == F32 and lowers_precision(p.g.m, p.g.n, p.g.k) else kernel_of[GEMM_F32 if dtype == F32 else GEMM_F64 if dtype == F64 else GEMM_BF16 if dtype == BF16 else GEMM_I64 if dtype == I64 else GEMM_F16]]
    p.workspace = NULL
    p.failed = 0
    p.threads = num_threads()
    p.by_items = p.batch > 1 and (p.batch >= p.threads or p.g.m * p.g.n * p.g.k < 2 * THREAD_WORK)
    GEMM.plan(&p.plan, p.kernel, &p.g, 1 if p.by_items else p.threads)
    if not p.by_items:
        p.workspace = block_alloc(p.plan.packed_bytes)
        p.plan.packed = <char*>p.workspace.data
    return 0


cdef void item_task(void* context, int64_t begin, int64_t end) noexcept nogil:
    """The items begin .. end of a batch, each by one thread, in a workspace of this thread."""
    cdef PackedGemm* p = <PackedGemm*>context
    cdef gemm_plan plan = p.plan
    cdef gemm_matrices g
    cdef int64_t i
    cdef char* workspace = <char*>aligned_alloc(64, (plan.packed_bytes + 63) // 64 * 64)
    if workspace == NULL:
        p.failed = 1
        return
    for i in range(begin, end):
        g = p.g
        move_to_item(p, &g, i)
        GEMM.plan(&plan, p.kernel, &g, 1)
        plan.packed = workspace
        GEMM.whole(&plan)
        if plan.failed:
            p.failed = 1
    free(workspace)


cdef inline void move_to_item(const PackedGemm* p, gemm_matrices* g, int64_t i) noexcept nogil:
    cdef int64_t size = p.kernel.element
    g.a = p.g.a + i * p.abs * size
    g.b = p.g.b + i * p.bbs * size
    g.c = p.g.c + i * p.cbs * size
    if g.d != NULL:
        g.d = p.g.d + i * p.dbs * size


cdef void packed_run(PackedGemm* p) noexcept nogil:
    cdef gemm_plan* plan = &p.plan
    cdef gemm_matrices g
    cdef char* workspace = plan.packed
    cdef int64_t i, panels, depth, tasks, work
    if p.by_items:
        parallel_for(p.batch, THREAD_WORK // (p.g.m * p.g.n * p.g.k + 1) + 1, 1, item_task, p)
        return
    for i in range(p.batch):
        if i > 0:
            g = p.g
            move_to_item(p, &g, i)
            GEMM.plan(plan, p.kernel, &g, p.threads)
            plan.packed = workspace
        while GEMM.next(plan):
            panels, depth = (plan.columns + plan.kernel.width - 1) // plan.kernel.width, plan.blocks * plan.depth_block
            tasks = plan.row_panels * plan.column_tasks
            work = plan.g.m * plan.columns * depth // tasks
            parallel_after(panels, GEMM.pack, tasks, THREAD_WORK // (work + 1) + 1, GEMM.run, plan)
    if plan.failed:
        p.failed = 1


cdef int packed_end(PackedGemm* p, str name) except -1:
    if p.workspace != NULL:
        block_drop(p.workspace)
    if p.failed:
        raise MemoryError(f"{name}: no memory for the partial sums of a product of {p.g.m} x {p.g.k} by {p.g.k} x {p.g.n}")
    return 0


cdef int subtract_product(int dtype, int64_t m, int64_t n, int64_t k, const char* a, int64_t ars, int64_t acs, const char* b, int64_t ldb, char* c, int64_t ldc,
                          char** workspace, int64_t* nbytes) noexcept nogil:
    cdef gemm_matrices g
    cdef gemm_plan plan
    g.m, g.n, g.k, g.a, g.b, g.c, g.d = m, n, k, a, b, c, c
    g.ars, g.acs, g.brs, g.bcs, g.crs, g.ccs, g.drs, g.dcs = ars, acs, 1, ldb, 1, ldc, 1, ldc
    g.alpha, g.beta, g.activation, g.integer_alpha, g.integer_beta = -1, 1, GEMM_IDENTITY, -1, 1
    GEMM.plan(&plan, GEMM.kernels[GEMM_F64 if dtype == F64 else GEMM_F32], &g, 1)
    if plan.packed_bytes > nbytes[0]:
        free(workspace[0])
        nbytes[0] = (plan.packed_bytes + 63) // 64 * 64
        workspace[0] = <char*>aligned_alloc(64, nbytes[0])
        if workspace[0] == NULL:
            nbytes[0] = 0
            return -1
    plan.packed = workspace[0]
    GEMM.whole(&plan)
    return -1 if plan.failed else 0
