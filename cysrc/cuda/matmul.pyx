"""Matrix products on CUDA: which kernel of cuda_src/gemm.cuh takes a GEMM, its tiles, its split-K slices, and their memory.

mm, bmm, addmm, linear and their kin check their arguments in cysrc/ops/matmul/matmul.pyx and end in `gemm` here. It asks cuBLASLt first, where there is one and
`backends.cuda.preferred_blas_library` allows it, for matrices with a dense dimension.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.dtype cimport Scalar, U8, I8, I32, I64, BOOL, F16, BF16, F32, F64, C64, C128, NUM_DTYPES, compute_type, has_loops, is_complex_type, is_integral_or_bool_type
from tensorrt_lite._C.core.iterator cimport cast_to, copy_elements, contiguous_of
from tensorrt_lite._C.core.tensor cimport TensorBase, ITEM_SIZE, data_of, place_of, empty_tensor, empty_strided_tensor, make_view
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, run3, blocks_for
from tensorrt_lite._C.cuda.cublas cimport Shape, is_available, multiply
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite._C.autograd.node cimport ops_namespace
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.ops.matmul.mat cimport column_of, matrix_of, row_of
from tensorrt_lite._C.ops.matmul.mat cimport dense as dense_mat
from tensorrt_lite._C.steps.matmul cimport set_dot, set_gemm, set_gemm_activated, set_int_mm
from tensorrt_lite._C.cuda import source as _source

attach()
cdef object _ops = ops_namespace()

cdef extern from "stage.h":
    void store_scalar(char* destination, int dtype, const Scalar* value) noexcept

cdef extern from "cublaslt.h":
    enum:
        COMPUTE_16F "TRT_CUBLAS_COMPUTE_16F"
        COMPUTE_32F "TRT_CUBLAS_COMPUTE_32F"
        COMPUTE_64F "TRT_CUBLAS_COMPUTE_64F"
        COMPUTE_32I "TRT_CUBLAS_COMPUTE_32I"
        COMPUTE_TF32 "TRT_CUBLAS_COMPUTE_32F_FAST_TF32"
        R_32F "TRT_CUDA_R_32F"
        R_64F "TRT_CUDA_R_64F"
        R_16F "TRT_CUDA_R_16F"
        R_16BF "TRT_CUDA_R_16BF"
        R_8I "TRT_CUDA_R_8I"
        R_32I "TRT_CUDA_R_32I"
        C_32F "TRT_CUDA_C_32F"
        C_64F "TRT_CUDA_C_64F"
        EPILOGUE_DEFAULT "TRT_CUBLASLT_EPILOGUE_DEFAULT"
        EPILOGUE_RELU "TRT_CUBLASLT_EPILOGUE_RELU"
        EPILOGUE_GELU "TRT_CUBLASLT_EPILOGUE_GELU"
        EPILOGUE_BIAS "TRT_CUBLASLT_EPILOGUE_BIAS"
        REDUCE_IN_COMPUTE_TYPE "TRT_CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE"
        REDUCE_ANY "TRT_CUBLASLT_REDUCTION_SCHEME_MASK"

# trt::Gemm
cdef struct Gemm:
    const char* a
    const char* b
    char* c
    const char* d
    char* partial
    int64_t m, n, k, batch
    int64_t a_batch, a_line, b_batch, b_line
    int64_t c_batch, c_row, c_col, d_batch, d_row, d_col
    int64_t slices, depth
    int64_t alpha[2]
    int64_t beta[2]

cdef enum:
    LARGE = 0                    # tiles that keep the arithmetic units busy
    SMALL = 1                    # tiles of a quarter, for problems of few
    SUM = 2
    ROWS = 3                     # of few columns
    COLUMNS = 4
    FORMS = 5
    VARIANTS = 4                 # the four transpositions, or 1, 2, 4, 8 columns
    FEW = 8                      # columns up to which A is streamed
    LARGEST_GRID = 65535
    BIAS_ALIGNMENT = 16          # of the vectors in which an epilogue may load it: the heuristic has no way to ask for less

# rows, columns and depth of a tile, rows and columns of a thread's part: by bytes of a sum (4, 8, 16), large and small
TILES = {4: ((128, 128, 16, 8, 8), (64, 64, 16, 4, 4)), 8: ((64, 64, 16, 4, 4), (32, 32, 16, 2, 2)), 16: ((64, 64, 8, 4, 4), (32, 32, 8, 2, 2))}
SUMS = {U8: "unsigned", I64: "unsigned long long", F16: "float", BF16: "float", F32: "float", F64: "double", C64: "trt::complex<float>", C128: "trt::complex<double>"}
BYTES_OF_SUM = {U8: 4, I64: 8, F16: 4, BF16: 4, F32: 4, F64: 8, C64: 8, C128: 16}

# warps down and across, rows and columns of a warp, depth: on tensor cores, large and small
MMA_TILES = {F16: ((2, 4, 64, 32, 32), (2, 2, 32, 32, 32)), F32: ((2, 4, 64, 32, 16), (2, 2, 32, 32, 32))}

cdef FunctionHandle handles[64][NUM_DTYPES][5][4]
cdef FunctionHandle tf32_handles[64][2][4]
# what backends.cuda says; `_set_options` tells
cdef bint allow_tf32 = False, reduce_f16 = True, reduce_bf16 = True, accumulate_f16 = False, use_cublaslt = True
cdef int64_t workspace_size = 0
cdef int processors_[64]
cdef int capability[64]              # the device's major number
cdef int64_t tile_side[NUM_DTYPES][2]
for _dtype in range(<int>NUM_DTYPES):
    for _form in range(2 if has_loops(_dtype) else 0):
        tile_side[_dtype][_form] = TILES[BYTES_OF_SUM[kernel_type(_dtype)]][_form][0]


cdef int processors(int index) except -1:
    if processors_[index] == 0:
        processors_[index] = device_attribute(16, index)
        capability[index] = device_attribute(75, index)
    return processors_[index]


cdef inline bint on_tensor_cores(int index, int dtype) noexcept:
    return (dtype == F16 or dtype == BF16 or dtype == F32 and allow_tf32) and capability[index] >= 8


cdef FunctionHandle load(int index, int dtype, int form, int variant) except NULL:
    cdef FunctionHandle* handle = &handles[index][dtype][form][variant]
    if form <= SMALL and dtype == F32 and on_tensor_cores(index, dtype):
        handle = &tf32_handles[index][form][variant]
    if handle[0] == NULL:
        t = _source.TYPES[dtype][1]
        t = f"trt::{t}" if is_complex_type(dtype) else t
        kind = kernel_type(dtype)
        total = SUMS[kind]
        text = "#include \"gemm.cuh\"\n\nextern \"C\" __global__ void "
        if form <= SMALL and on_tensor_cores(index, dtype):
            sizes = MMA_TILES[F32 if dtype == F32 else F16][form]
            numbers = ", ".join([str(x) for x in sizes])
            text += f"__launch_bounds__({sizes[0] * sizes[1] * 32}) gemm(const trt::Gemm p) {{ trt::gemm_mma<{t}, {numbers}, {variant & 1}, {variant >> 1}>(p); }}\n"
        elif form <= SMALL:
            sizes = TILES[BYTES_OF_SUM[kind]][form]
            threads = sizes[0] // sizes[3] * (sizes[1] // sizes[4])
            numbers = ", ".join([str(x) for x in sizes])
            text += f"__launch_bounds__({threads}) gemm(const trt::Gemm p) {{ trt::gemm_tiles<{t}, {total}, {numbers}, {variant & 1}, {variant >> 1}>(p); }}\n"
        elif form == SUM:
            text += f"__launch_bounds__(256) gemm(const trt::Gemm p) {{ trt::gemm_sum<{t}, {total}>(p); }}\n"
        else:
            text += f"__launch_bounds__(256) gemm(const trt::Gemm p) {{ trt::gemv_{'rows' if form == ROWS else 'columns'}<{t}, {total}, {1 << variant}>(p); }}\n"
        handle[0] = kernel_of(text, "gemm", index)
    return handle[0]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype, form, variant
    processors(index)
    for dtype in range(U8, C128 + 1):
        for form in range(FORMS):
            for variant in range(1 if form == SUM else VARIANTS):
                load(index, dtype, form, variant)


cdef TensorBase dense(TensorBase t, Mat* x):
    """The matrices in a tensor of their own, row by row; x is its geometry then."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    cdef TensorBase r
    sizes[0], sizes[1], sizes[2] = x.batch, x.rows, x.cols
    strides[0], strides[1], strides[2] = x.bs, x.rs, x.cs
    r = contiguous_of(make_view(t, 3, sizes, strides, t.offset))
    x.bs, x.rs, x.cs = x.rows * x.cols, x.cols, 1
    return r


cdef inline bint by_rows(const Mat* x) noexcept:
    """Whether its inner dimension is the columns; for sizes of 1 either serves."""
    return x.cs == 1 or x.cols == 1 and x.rs != 1


cdef inline bint lies_in_lines(const Mat* x) noexcept:
    return x.cs == 1 or x.rs == 1 or x.cols == 1 or x.rows == 1


cdef inline void transpose(Mat* x) noexcept:
    x.rows, x.cols = x.cols, x.rows
    x.rs, x.cs = x.cs, x.rs


def _set_options(bint tf32, bint f16_reduction, bint bf16_reduction, bint f16_accumulation, bint cublaslt, int64_t workspace):
    """The flags of backends.cuda."""
    global allow_tf32, reduce_f16, reduce_bf16, accumulate_f16, use_cublaslt, workspace_size
    allow_tf32, reduce_f16, reduce_bf16, accumulate_f16, use_cublaslt, workspace_size = tf32, f16_reduction, bf16_reduction, f16_accumulation, cublaslt, workspace


# ---- cuBLASLt ----------------------------------------------------------------------------------------------------------

cdef int* library_type = [-1, -1, R_8I, -1, -1, -1, R_16F, R_16BF, R_32F, R_64F, C_32F, C_64F]


cdef inline int alignment(const char* data, int64_t line, int64_t batch, int size) noexcept:
    """The largest power of two, 256 at most, that all matrices' lines are aligned to."""
    cdef size_t bits = <size_t>data | <size_t>(line * size) | <size_t>(batch * size) | 256
    return <int>(bits & (~bits + 1))


cdef TensorBase factor(TensorBase t, Mat* x, int* transposed, int64_t* ld, bint by_columns):
    """A factor as cuBLASLt takes it, `t` or a copy. Read by columns, its rows are columns: `transposed` is 1 where they are not dense."""
    if not lies_in_lines(x) or (x.rows > 1 and x.rs < x.cols if by_rows(x) else x.cols > 1 and x.cs < x.rows):
        t = dense(t, x)
    if by_columns and by_rows(x) or not by_columns and not by_rows(x) and t.dtype == I8:
        # int8 wants one order of each factor
        if by_columns:
            transpose(x)
            t = dense(t, x)
            transpose(x)
        else:
            t = dense(t, x)
    transposed[0] = 0 if by_rows(x) else 1
    ld[0] = max(x.rs if by_rows(x) else x.cs, x.cols if by_rows(x) else x.rows)
    return t


cdef bint by_library(TensorBase out, const Mat* mo, TensorBase a, const Mat* ma_, TensorBase b, const Mat* mb_, const Scalar* alpha, const Scalar* beta,
                     TensorBase d, const Mat* md_, int activation) except -1:
    """The GEMM by cuBLASLt; False where it does not take it, with nothing done to `out`'s addend. Read by columns, all matrices are transposed: it
    computes b^T a^T."""
    cdef Shape s
    cdef Mat ma = ma_[0], mb = mb_[0], mc = mo[0], md
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    cdef int64_t numbers[4]
    cdef Scalar one
    cdef int kind, dtype = a.dtype, size = ITEM_SIZE[out.dtype]
    cdef const char* bias = NULL
    cdef const char* c = data_of(out)
    cdef TensorBase whole
    if library_type[dtype] < 0 or dtype == I8 and out.dtype != I32 or ma_.cols == 0 or not use_cublaslt or not is_available():
        return False
    if (mc.rows == 1 or mc.cols == 1) and activation == 0 and dtype != I8:
        return False                            # a matrix by a vector: the kernels here read it once
    if md_ != NULL:
        md = md_[0]
    if mc.rs == 1 and mc.cs != 1 and mc.cols > 1:
        a, b = b, a
        ma, mb = mb, ma
        transpose(&ma)
        transpose(&mb)
        transpose(&mc)
        if md_ != NULL:
            md.rs, md.cs = md.cs, md.rs
    if mc.cs != 1 and mc.cols > 1 or mc.rs < mc.cols and mc.rows > 1:
        return False
    memset(&s, 0, sizeof(s))
    b = factor(b, &mb, &s.transpose_a, &s.lda, dtype == I8)
    a = factor(a, &ma, &s.transpose_b, &s.ldb, False)
    s.device = out.device_index
    s.type_ab = library_type[dtype]
    s.type_cd = R_32I if dtype == I8 else s.type_ab
    s.compute = COMPUTE_64F if dtype == F64 or dtype == C128 else COMPUTE_32I if dtype == I8 else COMPUTE_16F if dtype == F16 and accumulate_f16 else COMPUTE_32F
    if allow_tf32 and (dtype == F32 or dtype == C64):
        s.compute = COMPUTE_TF32
    kind = F16 if s.compute == COMPUTE_16F else I32 if dtype == I8 else F32 if is_integral_or_bool_type(dtype) else compute_type[dtype]
    s.scale = R_32I if dtype == I8 else library_type[kind]
    s.reduction_mask = REDUCE_IN_COMPUTE_TYPE if dtype == F16 and not reduce_f16 or dtype == BF16 and not reduce_bf16 else REDUCE_ANY
    s.workspace = workspace_size
    s.m, s.n, s.k, s.batch = mc.cols, mc.rows, ma.cols, mc.batch
    s.batch_a, s.batch_b, s.batch_c, s.batch_d = mb.bs, ma.bs, mc.bs, mc.bs
    s.ldc = s.ldd = max(mc.rs, mc.cols)
    s.epilogue = EPILOGUE_DEFAULT if activation == 0 else EPILOGUE_RELU if activation == 1 else EPILOGUE_GELU
    one.kind = 1
    one.i = 1
    one.d = 1
    one.im = 0
    store_scalar(<char*>&numbers[0], kind, &one if alpha == NULL else alpha)
    numbers[2] = numbers[3] = 0
    s.align_a = alignment(data_of(b), s.lda, s.batch_a, ITEM_SIZE[dtype])
    s.align_b = alignment(data_of(a), s.ldb, s.batch_b, ITEM_SIZE[dtype])
    s.align_c = s.align_d = alignment(data_of(out), s.ldd, s.batch_d, size)
    if md_ != NULL:
        if md.rs == 0 and md.cs == 1 and mc.rows > 1 and (md.bs == 0 or mc.batch == 1) and beta.d == 1 and (beta.kind < 3 or beta.im == 0) and not is_complex_type(dtype) and dtype != I8 and <size_t>data_of(d) % BIAS_ALIGNMENT == 0:
            bias = data_of(d)
            s.epilogue = (0 if activation == 0 else s.epilogue) | EPILOGUE_BIAS
            if multiply(&s, out, numbers, numbers + 2, data_of(b), data_of(a), c, data_of(out), bias):
                return True
            s.epilogue = EPILOGUE_DEFAULT if activation == 0 else s.epilogue & ~<int>EPILOGUE_BIAS
            bias = NULL
        store_scalar(<char*>&numbers[2], kind, beta)
        if (md.cs == 1 or mc.cols == 1) and (md.rs >= mc.cols or mc.rows == 1):
            c = data_of(d)
            s.ldc = max(md.rs, mc.cols)
            s.batch_c = md.bs
            s.align_c = alignment(c, s.ldc, s.batch_c, size)
        else:
            # an addend that repeats itself: written to where the result goes
            sizes[0], sizes[1], sizes[2] = mc.batch, mc.rows, mc.cols
            strides[0], strides[1], strides[2] = md.bs, md.rs, md.cs
            whole = make_view(d, 3, sizes, strides, d.offset)
            strides[0], strides[1], strides[2] = mc.bs, mc.rs, mc.cs
            copy_elements(make_view(out, 3, sizes, strides, out.offset), whole)
    return multiply(&s, out, numbers, numbers + 2, data_of(b), data_of(a), c, data_of(out), NULL)


cdef int gemm_activated(str name, TensorBase out, const Mat* mo, TensorBase a, const Mat* ma, TensorBase b, const Mat* mb, const Scalar* alpha, const Scalar* beta,
                        TensorBase d, const Mat* md, bint gelu) except -1:
    """gelu by tanh, as PyTorch's: in the epilogue of cuBLASLt's kernel where it takes the GEMM, otherwise apart."""
    if same_device(out, a, b, d) and by_library(out, mo, a, ma, b, mb, alpha, beta, d, md, 2 if gelu else 1):
        return 0
    gemm(name, out, mo, a, ma, b, mb, alpha, beta, d, md)
    if gelu:
        return copy_elements(out, <TensorBase?>_ops._gelu_tanh(out))
    _ops.relu_(out)
    return 0


cdef int int_mm(TensorBase out, TensorBase a, TensorBase b) except -1:
    cdef Mat ma, mb, mo
    if a.dtype != I8 or a.sizes[1] == 0:
        a, b = cast_to(a, I32), cast_to(b, I32)
    matrix_of(a, &ma)
    matrix_of(b, &mb)
    matrix_of(out, &mo)
    return gemm("_int_mm", out, &mo, a, &ma, b, &mb, NULL, NULL, None, NULL)


cdef int dot(TensorBase out, TensorBase a, TensorBase b) except -1:
    cdef Mat ma, mb, mo
    row_of(a, &ma)
    column_of(b, &mb)
    dense_mat(&mo, 1, 1, 1, False)
    return gemm("dot", out, &mo, a, &ma, b, &mb, NULL, NULL, None, NULL)


# ---- kernels of gemm.cuh -------------------------------------------------------------------------------------------------

cdef inline bint same_device(TensorBase out, TensorBase a, TensorBase b, TensorBase d) noexcept:
    return a.device_index == out.device_index and b.device_index == out.device_index and (d is None or d.device_index == out.device_index)


cdef int gemm(str name, TensorBase out, const Mat* mo, TensorBase a, const Mat* ma_, TensorBase b, const Mat* mb_, const Scalar* alpha, const Scalar* beta,
                 TensorBase d, const Mat* md) except -1:
    cdef Gemm g
    cdef Mat ma = ma_[0], mb = mb_[0], mt
    cdef TensorBase temporary, partial
    cdef Scalar one
    cdef int index = out.device_index, dtype = a.dtype, kind, form, variant
    cdef int64_t sizes[1]
    cdef int64_t tiles, side, blocks
    cdef void* arguments[1]
    if dtype == BOOL:
        raise RuntimeError(f"\"{name}_cuda\" not implemented for 'Bool'")
    if mo.rows == 0 or mo.cols == 0 or mo.batch == 0:
        return 0
    if not same_device(out, a, b, d):
        raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but found cuda:{a.device_index}, cuda:{b.device_index} and cuda:{index}")
    if out.storage is a.storage or out.storage is b.storage:
        temporary = empty_tensor(out.ndim, out.sizes, out.dtype, place_of(out))
        mt = mo[0]
        mt.bs = mo.rows * mo.cols
        mt.rs = 1 if mo.flipped else mo.cols
        mt.cs = mo.rows if mo.flipped else 1
        gemm(name, temporary, &mt, a, ma_, b, mb_, alpha, beta, d, md)
        return copy_elements(out, temporary)
    if by_library(out, mo, a, ma_, b, mb_, alpha, beta, d, md, 0):
        return 0
    if out.dtype != dtype:
        # _int_mm: bytes summed as int32
        a = <TensorBase>(<object>dense(a, &ma)).to((<object>out).dtype)
        b = <TensorBase>(<object>dense(b, &mb)).to((<object>out).dtype)
        return gemm(name, out, mo, a, &ma, b, &mb, alpha, beta, d, md)
    if not lies_in_lines(&ma):
        a = dense(a, &ma)
    if not lies_in_lines(&mb):
        b = dense(b, &mb)
    memset(&g, 0, sizeof(g))
    g.c_row, g.c_col, g.c_batch = mo.rs, mo.cs, mo.bs
    if md != NULL:
        g.d = data_of(d)
        g.d_row, g.d_col, g.d_batch = md.rs, md.cs, md.bs
    # the transposed GEMM where C has few rows, or else lies by columns
    if mo.rows <= FEW if (mo.rows <= FEW) != (mo.cols <= FEW) else mo.rs == 1 and mo.cs != 1:
        a, b = b, a
        ma, mb = mb, ma
        transpose(&ma)
        transpose(&mb)
        g.c_row, g.c_col = g.c_col, g.c_row
        g.d_row, g.d_col = g.d_col, g.d_row
    g.batch, g.m, g.n, g.k = mo.batch, ma.rows, mb.cols, ma.cols
    if g.n <= FEW and g.k > 1:
        form = ROWS if by_rows(&ma) else COLUMNS
        if mb.rs != 1:
            # few columns: cheap to lay one after the other
            transpose(&mb)
            b = dense(b, &mb)
            transpose(&mb)
        variant = 0 if g.n == 1 else 1 if g.n == 2 else 2 if g.n <= 4 else 3
    else:
        variant = (1 if by_rows(&ma) else 0) | (2 if by_rows(&mb) else 0)
        side = tile_side[dtype][LARGE]
        tiles = (g.m + side - 1) // side * ((g.n + side - 1) // side) * g.batch
        form = LARGE if tiles >= processors(index) else SMALL
    g.a, g.b, g.c = data_of(a), data_of(b), data_of(out)
    g.a_batch, g.b_batch = ma.bs, mb.bs
    g.a_line = ma.rs if form == ROWS or form <= SMALL and variant & 1 else ma.cs
    g.b_line = mb.rs if form <= SMALL and variant & 2 else mb.cs
    # blocks without slices, and slices to keep the device busy
    if form == ROWS:
        blocks = (g.m + 7) // 8
    elif form == COLUMNS:
        side = 32 * min(4, 16 // ITEM_SIZE[dtype])
        blocks = (g.m + side - 1) // side
    else:
        side = tile_side[dtype][form]
        blocks = (g.m + side - 1) // side * ((g.n + side - 1) // side)
    plan_slices(&g, blocks * g.batch, 2048 if form == ROWS else 256, 2 * processors(index) if form <= SMALL else 4 * processors(index))
    kind = I64 if is_integral_or_bool_type(dtype) else compute_type[dtype]
    one.kind = 1
    one.i = 1
    one.d = 1
    one.im = 0
    store_scalar(<char*>g.alpha, kind, &one if alpha == NULL else alpha)
    if md != NULL:
        store_scalar(<char*>g.beta, kind, beta)
    if g.slices > 1:
        # sums are kept in 4 bytes at least
        sizes[0] = g.batch * g.slices * g.m * g.n
        partial = empty_tensor(1, sizes, I32 if is_integral_or_bool_type(dtype) and dtype != I64 else kind, place_of(out))
        g.partial = data_of(partial)
    arguments[0] = &g
    if form <= SMALL:
        run3(load(index, dtype, form, variant), index, blocks, 1, min(g.batch * g.slices, LARGEST_GRID),
             128 if form == SMALL and on_tensor_cores(index, dtype) else 256, 1, 1, 0, arguments)
    else:
        run3(load(index, dtype, form, variant), index, blocks, g.slices, min(g.batch, LARGEST_GRID), 256, 1, 1, 0, arguments)
    if g.slices > 1:
        run(load(index, dtype, SUM, 0), index, blocks_for(g.batch * g.m * g.n, 256), 256, 0, arguments)
    return 0


cdef void plan_slices(Gemm* g, int64_t blocks, int64_t least, int64_t wanted) noexcept:
    """Cut k where the blocks do not fill the device: into equal slices of at least `least`, multiples of 64."""
    cdef int64_t slices = min(wanted // blocks if blocks < wanted else 1, g.k // least)
    g.slices = 1
    g.depth = g.k
    if slices > 1:
        g.depth = ((g.k + slices - 1) // slices + 63) // 64 * 64
        g.slices = (g.k + g.depth - 1) // g.depth


set_gemm(DEV_CUDA, gemm)
set_gemm_activated(DEV_CUDA, gemm_activated)
set_int_mm(DEV_CUDA, int_mm)
set_dot(DEV_CUDA, dot)
