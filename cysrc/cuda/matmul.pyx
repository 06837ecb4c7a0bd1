"""Matrix products on CUDA: which kernel of cuda_src/gemm.cuh takes a product, its tiles, its slices of a deep one, and their memory.

mm, bmm, addmm, linear and their kin check their arguments in cysrc/ops/matmul.pyx and end in `product` here.
"""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.dtype cimport Scalar, U8, I32, I64, F16, BF16, F32, F64, C64, C128
from tensorrt_lite._C.core.iterator cimport copy_elements, contiguous_of
from tensorrt_lite._C.core.tensor cimport TensorBase, ITEM_SIZE, data_of, place_of, empty_tensor, empty_strided_tensor, make_view
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, run3, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite._C.ops import matmul as _matmul
from tensorrt_lite.cuda import _source

attach()

cdef extern from "product.h" nogil:
    ctypedef struct Mat "trt_mat":
        int64_t batch, rows, cols, bs, rs, cs
        bint flipped

cdef extern from "stage.h":
    void store_scalar(char* destination, int dtype, const Scalar* value) noexcept

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

# rows, columns and depth of a tile, rows and columns of a thread's part: by bytes of a sum (4, 8, 16), large and small
TILES = {4: ((128, 128, 16, 8, 8), (64, 64, 16, 4, 4)), 8: ((64, 64, 16, 4, 4), (32, 32, 16, 2, 2)), 16: ((64, 64, 8, 4, 4), (32, 32, 8, 2, 2))}
SUMS = {U8: "unsigned", I64: "unsigned long long", F16: "float", BF16: "float", F32: "float", F64: "double", C64: "trt::complex<float>", C128: "trt::complex<double>"}
BYTES_OF_SUM = {U8: 4, I64: 8, F16: 4, BF16: 4, F32: 4, F64: 8, C64: 8, C128: 16}

# warps down and across, rows and columns of a warp, depth: of half types on tensor cores, large and small
MMA_TILES = ((2, 4, 64, 32, 32), (2, 2, 32, 32, 32))

cdef FunctionHandle handles[64][12][5][4]
cdef int processors_[64]
cdef int capability[64]              # the device's major number
cdef int64_t tile_side[12][2]
for _dtype in range(U8, 12):
    for _form in range(2):
        tile_side[_dtype][_form] = TILES[BYTES_OF_SUM[_dtype if _dtype >= I64 else U8]][_form][0]


cdef int processors(int index) except -1:
    if processors_[index] == 0:
        processors_[index] = device_attribute(16, index)
        capability[index] = device_attribute(75, index)
    return processors_[index]


cdef inline bint on_tensor_cores(int index, int dtype) noexcept:
    return (dtype == F16 or dtype == BF16) and capability[index] >= 8


cdef FunctionHandle load(int index, int dtype, int form, int variant) except NULL:
    if handles[index][dtype][form][variant] == NULL:
        t = _source.TYPES[dtype][1]
        t = f"trt::{t}" if dtype >= C64 else t
        kind = dtype if dtype >= I64 else U8
        total = SUMS[kind]
        text = "#include \"gemm.cuh\"\n\nextern \"C\" __global__ void "
        if form <= SMALL and on_tensor_cores(index, dtype):
            sizes = MMA_TILES[form]
            numbers = ", ".join([str(x) for x in sizes])
            text += f"__launch_bounds__({sizes[0] * sizes[1] * 32}) product(const trt::Gemm p) {{ trt::gemm_mma<{t}, {numbers}, {variant & 1}, {variant >> 1}>(p); }}\n"
        elif form <= SMALL:
            sizes = TILES[BYTES_OF_SUM[kind]][form]
            threads = sizes[0] // sizes[3] * (sizes[1] // sizes[4])
            numbers = ", ".join([str(x) for x in sizes])
            text += f"__launch_bounds__({threads}) product(const trt::Gemm p) {{ trt::gemm_tiles<{t}, {total}, {numbers}, {variant & 1}, {variant >> 1}>(p); }}\n"
        elif form == SUM:
            text += f"__launch_bounds__(256) product(const trt::Gemm p) {{ trt::gemm_sum<{t}, {total}>(p); }}\n"
        else:
            text += f"__launch_bounds__(256) product(const trt::Gemm p) {{ trt::gemv_{'rows' if form == ROWS else 'columns'}<{t}, {total}, {1 << variant}>(p); }}\n"
        handles[index][dtype][form][variant] = kernel_of(text, "product", index)
    return handles[index][dtype][form][variant]


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


cdef int product(str name, TensorBase out, const Mat* mo, TensorBase a, const Mat* ma_, TensorBase b, const Mat* mb_, const Scalar* alpha, const Scalar* beta,
                 TensorBase d, const Mat* md) except -1:
    """out = alpha a b + beta d. Sizes and dtypes were checked; `out` is not empty."""
    cdef Gemm g
    cdef Mat ma = ma_[0], mb = mb_[0], mt
    cdef TensorBase temporary, partial
    cdef Scalar one
    cdef int index = out.device_index, dtype = a.dtype, kind, form, variant
    cdef int64_t sizes[1]
    cdef int64_t tiles, side, blocks
    cdef void* arguments[1]
    if a.device_index != index or b.device_index != index or d is not None and d.device_index != index:
        raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but found cuda:{a.device_index}, cuda:{b.device_index} and cuda:{index}")
    if out.storage is a.storage or out.storage is b.storage:
        temporary = empty_tensor(out.ndim, out.sizes, out.dtype, place_of(out))
        mt = mo[0]
        mt.bs = mo.rows * mo.cols
        mt.rs = 1 if mo.flipped else mo.cols
        mt.cs = mo.rows if mo.flipped else 1
        product(name, temporary, &mt, a, ma_, b, mb_, alpha, beta, d, md)
        return copy_elements(out, temporary)
    if not lies_in_lines(&ma):
        a = dense(a, &ma)
    if not lies_in_lines(&mb):
        b = dense(b, &mb)
    memset(&g, 0, sizeof(g))
    g.c_row, g.c_col, g.c_batch = mo.rs, mo.cs, mo.bs
    if md != NULL:
        g.d = data_of(d)
        g.d_row, g.d_col, g.d_batch = md.rs, md.cs, md.bs
    # the transposed product where C has few rows, or else lies by columns
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
    kind = I64 if dtype <= I64 else F32 if dtype <= F32 else dtype
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
        partial = empty_tensor(1, sizes, I32 if dtype < I64 else kind, place_of(out))
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


_matmul._set_device_product(<size_t>&product)
