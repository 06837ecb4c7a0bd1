"""Convolutions that the GEMM serves better than kernels over planes: images of few positions, whose weight is most of what is read, by im2col; 1x1 kernels
on images that are matrices already: single ones, those of many channels, and halves, which it multiplies without widening whole images."""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_drop
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport BF16, F16, F32, F64, Scalar
from tensorrt_lite._C.core.iterator cimport contiguous_of, copy_elements
from tensorrt_lite._C.core.parallel cimport COPY_GRAIN, parallel_for
from tensorrt_lite._C.core.tensor cimport ITEM_SIZE, TensorBase, data_of, empty_tensor, make_view
from tensorrt_lite._C.ops.conv.kernels cimport CONV_COLUMNS, CONV_FORWARD, CONV_INPUT, CONV_WEIGHT, conv_kernels, conv_problem, conv_suits_maps, conv_work
from tensorrt_lite._C.ops.conv.problem cimport ConvProblem
from tensorrt_lite._C.ops.matmul.mat cimport Mat, matrix_of, transpose_mat
from tensorrt_lite._C.steps.matmul cimport run_gemm


cdef extern from "conv/columns.h" nogil:
    ctypedef struct conv_columns:
        int64_t channels, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w
        const char* image
        char* columns
        int item
    void columns_gather(void* context, int64_t begin, int64_t end)
    void columns_scatter(void* context, int64_t begin, int64_t end)

cdef enum:
    BY_KERNELS, BY_ROWS, BY_COLUMNS, BY_IMAGES, BY_GROUPS   # loops/conv.h; GEMMs over all output positions as rows or as columns, over those of an image, of some images

cdef enum:
    SMALL_IMAGE = 16             # positions up to which vectors of positions are mostly empty
    STRIDED_IMAGE = 64           # the same where Winograd's tiles do not fit anyway (1x1, strides),
    WHOLE_VECTORS = 32           # unless positions fill vectors and so many samples
    MANY_SAMPLES = 16            # make im2col's matrix larger than the caches
    LEAST_TILES = 4              # that pay for the transform of the kernel,
    LEAST_OF_TILE = 9            # of 16 outputs of a tile those within the image,
    LEAST_CHANNELS = 16          # and channels on both sides;
    LEAST_MAPS = 16              # maps of 2x2 whose gradients do
    LEAST_WORK = 1 << 16         # multiplications below which im2col costs more than it gives
    LEAST_COLUMNS = 16           # output positions of all samples that fill a vector, so that the weight lies as it is,
    LEAST_TURNED = 64            # and those that pay for packing a transposed weight
    LEAST_SINGLE = 1 << 18       # multiplications of a 1x1 kernel from which a GEMM beats the kernels
    SINGLE_IMAGE = 256           # positions of a single image up to which the kernels' packing of the weight shows
    DEEP = 128                   # channels summed over from which a 1x1 kernel reads its images more often than a GEMM does, which packs them
    LEAST_DEPTH = 128            # positions of an image that are worth a GEMM for each sample's share of a 1x1 kernel's gradient
    LARGE_WEIGHT = 1 << 15       # elements of it from which the kernels take longer
    LONG_STRIDE = 4              # from which the kernels use few elements of a vector that they load,
    SUMMED_CHANNELS = 64         # where so many channels
    LARGE_TAPS = 128             # or taps make a long sum;
    WIDE = 256                   # channels for which any stride does, in the input's gradient
    IMAGES_BYTES = 1 << 21        # of im2col's matrix, about, where samples are taken in groups


cdef inline bint is_pointwise(const ConvProblem* p) noexcept:
    """A kernel of one element, on all of an image (a transposed convolution's output may be larger than that)."""
    return (
        p.taps[1] * p.taps[2] == 1 and p.stride[1] * p.stride[2] == 1 and p.padding[1] == 0 and p.padding[2] == 0
        and p.inputs[1] == p.outputs[1] and p.inputs[2] == p.outputs[2]
    )


cdef inline bint is_map_of_2(const ConvProblem* p) noexcept:
    """2x2 with a padding of 1, for which Winograd's tiles have a form of their own."""
    return p.inputs[1] == 2 and p.inputs[2] == 2 and p.padding[1] == 1 and p.padding[2] == 1


cdef bint has_winograd_tiles(int what, const ConvProblem* p) noexcept:
    """Whether Winograd's tiles serve images of few positions better than im2col (loops/conv_winograd.h, "forward of few tiles")."""
    cdef bint fills = p.outputs[1] * p.outputs[2] >= LEAST_OF_TILE or is_map_of_2(p) and (what == CONV_FORWARD or p.samples >= LEAST_MAPS)
    return (
        p.n == 2 and p.taps[1] == 3 and p.taps[2] == 3 and p.stride[1] * p.stride[2] == 1 and p.dilation[1] * p.dilation[2] == 1 and p.samples >= LEAST_TILES
        and fills and p.c_in >= LEAST_CHANNELS and p.c_out >= LEAST_CHANNELS
    )


cdef int small_image_way(int what, const ConvProblem* p, int dtype) noexcept:
    """Which GEMM: rows of positions leave the weight as it is for the input's gradient, columns for the others; and columns need no transposed copies."""
    cdef int64_t columns = p.samples * p.outputs[1] * p.outputs[2]
    if dtype != F32 and dtype != F64 or is_pointwise(p) and p.outputs[1] * p.outputs[2] == 1:
        return BY_ROWS
    if what == CONV_INPUT:
        return BY_COLUMNS if columns >= LEAST_TURNED and p.taps[1] * p.taps[2] == 1 and p.padding[1] + p.padding[2] == 0 else BY_ROWS
    return BY_COLUMNS if columns >= LEAST_COLUMNS else BY_ROWS


cdef void set_planes(conv_problem* s, const ConvProblem* p) noexcept:
    """Images in NCHW as the kernels' problem, without the weight's strides."""
    s.samples, s.c_in, s.c_out, s.groups, s.last = p.samples, p.c_in, p.c_out, p.groups, 0
    s.in_h, s.in_w, s.out_h, s.out_w = p.inputs[1], p.inputs[2], p.outputs[1], p.outputs[2]
    s.kernel_h, s.kernel_w, s.stride_h, s.stride_w = p.taps[1], p.taps[2], p.stride[1], p.stride[2]
    s.pad_h, s.pad_w, s.dilation_h, s.dilation_w = p.padding[1], p.padding[2], p.dilation[1], p.dilation[2]


cdef bint wants_groups(int what, const ConvProblem* p) noexcept:
    """Whether im2col of groups of samples serves strided images of many positions better than the kernels."""
    cdef int64_t stride = max(p.stride[1], p.stride[2]), taps = p.taps[1] * p.taps[2]
    if stride == 1 or taps == 1:
        return False
    if taps >= LARGE_TAPS:
        return stride >= LONG_STRIDE
    if what == CONV_WEIGHT:
        return p.c_in >= SUMMED_CHANNELS
    return stride >= LONG_STRIDE and p.c_in >= SUMMED_CHANNELS or what == CONV_INPUT and p.c_in >= WIDE


cdef int gemm_way(int what, const ConvProblem* p, int dtype) noexcept:
    """How images in NCHW are convolved."""
    cdef int64_t positions = p.outputs[1] * p.outputs[2], taps = p.taps[1] * p.taps[2], work
    cdef conv_problem s
    cdef bint half = dtype == F16 or dtype == BF16, single = is_pointwise(p) and positions == 1, strided
    if p.n > 2 or p.groups != 1 or not half and dtype != F32 and dtype != F64:
        return BY_KERNELS
    if p.c_in < 16 or p.c_out < 16:
        if half or positions <= STRIDED_IMAGE or p.c_in < 16 and p.c_out < 16:
            return BY_KERNELS
        if is_pointwise(p):
            return BY_IMAGES if what == CONV_FORWARD and p.c_in >= LEAST_CHANNELS else BY_KERNELS
        return BY_GROUPS if p.c_out >= 16 and wants_groups(what, p) else BY_KERNELS
    work = p.samples * positions * p.c_out * p.c_in * taps
    if work < LEAST_WORK:
        return BY_KERNELS
    if half and is_pointwise(p) and positions > SMALL_IMAGE:
        return BY_KERNELS if what == CONV_WEIGHT else BY_IMAGES
    if half and what == CONV_INPUT and not single:
        return BY_KERNELS        # columns would be rounded before they are added
    if dtype == F32 and has_winograd_tiles(what, p):
        return BY_KERNELS
    if not half and taps > 1:
        set_planes(&s, p)
        if conv_suits_maps(&s, what):
            return BY_KERNELS
    if positions <= SMALL_IMAGE:
        return small_image_way(what, p, dtype)
    if not half and wants_groups(what, p):
        return BY_GROUPS
    strided = positions <= STRIDED_IMAGE and p.stride[1] * p.stride[2] > 1 and (positions % WHOLE_VECTORS or p.samples < MANY_SAMPLES)
    if half:
        return BY_ROWS if strided and taps > 1 else BY_KERNELS
    if is_pointwise(p) and work >= LEAST_SINGLE:
        if p.samples == 1 and (what == CONV_WEIGHT or positions <= SINGLE_IMAGE):
            return BY_COLUMNS    # no copy of anything
        if positions <= STRIDED_IMAGE and (what == CONV_WEIGHT or positions % WHOLE_VECTORS):
            return BY_COLUMNS
        if what == CONV_WEIGHT:
            return BY_IMAGES if positions >= LEAST_DEPTH and p.c_in * p.c_out >= LARGE_WEIGHT else BY_KERNELS
        if positions > STRIDED_IMAGE and (p.c_in if what == CONV_FORWARD else p.c_out) >= DEEP:
            return BY_IMAGES
    return small_image_way(what, p, dtype) if strided else BY_KERNELS


cdef TensorBase matrix_view(TensorBase t, int64_t rows, int64_t cols, int64_t begin=0):
    """A contiguous tensor, from element `begin` on, as a matrix."""
    cdef int64_t sizes[2]
    cdef int64_t strides[2]
    sizes[0], sizes[1] = rows, cols
    strides[0], strides[1] = cols, 1
    return make_view(t, 2, sizes, strides, t.offset + begin)


cdef TensorBase images_view(TensorBase t, int64_t samples, int64_t rows, int64_t cols, bint turned):
    """A contiguous tensor as (samples, rows, cols), or with turned as (samples, cols, rows)."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    sizes[0] = samples
    sizes[1 + turned], sizes[2 - turned] = rows, cols
    strides[0], strides[1 + turned], strides[2 - turned] = rows * cols, cols, 1
    return make_view(t, 3, sizes, strides, t.offset)


cdef int multiply(TensorBase out, TensorBase a, bint turn_a, TensorBase b, bint turn_b, TensorBase bias, bint bias_of_rows) except -1:
    """out = a b + bias, of contiguous matrices or batches of them, transposed where told. A factor of two dimensions serves all of a batch."""
    cdef Mat mo, ma, mb, md
    cdef Scalar one
    matrix_of(out, &mo)
    matrix_of(a, &ma)
    matrix_of(b, &mb)
    if turn_a:
        transpose_mat(&ma)
    if turn_b:
        transpose_mat(&mb)
    ma.batch = mb.batch = mo.batch
    if bias is None:
        return run_gemm(DEV_CPU, "convolution", out, &mo, a, &ma, b, &mb, NULL, NULL, None, NULL)
    md = mo
    md.bs = 0
    md.rs = bias.strides[0] if bias_of_rows else 0
    md.cs = 0 if bias_of_rows else bias.strides[0]
    one.kind = one.i = 1
    one.d = 1
    one.im = 0
    if bias_of_rows:
        bias = matrix_view(contiguous_of(bias), bias.numel, 1)
        md.rs = 1
    return run_gemm(DEV_CPU, "convolution", out, &mo, a, &ma, b, &mb, NULL, &one, bias, &md)


cdef void set_columns(conv_columns* g, const ConvProblem* p, TensorBase image, TensorBase columns) noexcept:
    g.channels, g.in_h, g.in_w, g.out_h, g.out_w = p.c_in, p.inputs[1], p.inputs[2], p.outputs[1], p.outputs[2]
    g.kernel_h, g.kernel_w, g.stride_h, g.stride_w = p.taps[1], p.taps[2], p.stride[1], p.stride[2]
    g.pad_h, g.pad_w, g.dilation_h, g.dilation_w = p.padding[1], p.padding[2], p.dilation[1], p.dilation[2]
    g.image, g.columns, g.item = data_of(image), data_of(columns), ITEM_SIZE[image.dtype]


cdef TensorBase columns_of(const ConvProblem* p, TensorBase x):
    """im2col: (samples * positions, c_in * taps); x itself where that is what it is."""
    cdef int64_t positions = p.outputs[1] * p.outputs[2], length = p.c_in * p.taps[1] * p.taps[2]
    cdef int64_t sizes[2]
    cdef conv_columns g
    cdef TensorBase columns
    cdef trt_block* block = x.storage.block
    if is_pointwise(p) and positions == 1:
        return matrix_view(x, p.samples, p.c_in)
    sizes[0], sizes[1] = p.samples * positions, length
    columns = empty_tensor(2, sizes, x.dtype, DEV_CPU)
    set_columns(&g, p, x, columns)
    trt_block_hold(block)
    with nogil:
        parallel_for(p.samples * positions, COPY_GRAIN // (length * g.item + 1) + 1, 1, columns_gather, &g)
    block_drop(block)
    return columns


cdef TensorBase rows_of_outputs(const ConvProblem* p, TensorBase y):
    """y (samples, c_out, positions) as (samples * positions, c_out)."""
    cdef int64_t positions = p.outputs[1] * p.outputs[2]
    cdef TensorBase rows
    cdef int64_t sizes[3]
    if positions == 1:
        return matrix_view(y, p.samples, p.c_out)
    sizes[0], sizes[1], sizes[2] = p.samples, positions, p.c_out
    rows = empty_tensor(3, sizes, y.dtype, DEV_CPU)
    copy_elements(rows, images_view(y, p.samples, p.c_out, positions, True))
    return matrix_view(rows, p.samples * positions, p.c_out)


cdef TensorBase joined(TensorBase t, int64_t samples, int64_t channels, int64_t positions):
    """t (samples, channels, positions) as (channels, samples * positions): itself where there is one sample."""
    cdef int64_t sizes[3]
    cdef TensorBase r
    if samples == 1:
        return matrix_view(t, channels, positions)
    sizes[0], sizes[1], sizes[2] = channels, samples, positions
    r = empty_tensor(3, sizes, t.dtype, DEV_CPU)
    copy_elements(r, samples_second(t, samples, channels, positions))
    return matrix_view(r, channels, samples * positions)


cdef TensorBase samples_second(TensorBase t, int64_t samples, int64_t channels, int64_t positions):
    """A contiguous t (samples, channels, positions) seen as (channels, samples, positions)."""
    cdef int64_t sizes[3]
    cdef int64_t strides[3]
    sizes[0], sizes[1], sizes[2] = channels, samples, positions
    strides[0], strides[1], strides[2] = positions, channels * positions, 1
    return make_view(t, 3, sizes, strides, t.offset)


cdef struct ColumnsGather:
    const conv_kernels* kernels
    conv_work work


cdef void gather_items(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef ColumnsGather* g = <ColumnsGather*>context
    g.kernels.run(&g.work, 0, NULL, begin, end)


cdef TensorBase turned_columns(const conv_kernels* kernels, const ConvProblem* p, TensorBase x):
    """im2col: (c_in * taps, samples * positions)."""
    cdef int64_t sizes[2]
    cdef int64_t items
    cdef ColumnsGather g
    cdef TensorBase columns
    cdef trt_block* block = x.storage.block
    sizes[0], sizes[1] = p.c_in * p.taps[1] * p.taps[2], p.samples * p.outputs[1] * p.outputs[2]
    columns = empty_tensor(2, sizes, x.dtype, DEV_CPU)
    memset(&g, 0, sizeof(ColumnsGather))
    g.kernels = &kernels[x.dtype == F64]
    set_planes(&g.work.s, p)
    g.work.direction, g.work.a, g.work.out = CONV_COLUMNS, data_of(x), data_of(columns)
    g.kernels.plan(&g.work)
    items = g.kernels.items(&g.work, 0)
    trt_block_hold(block)
    with nogil:
        parallel_for(items, COPY_GRAIN * items // (columns.numel * ITEM_SIZE[x.dtype]) + 1, 1, gather_items, &g)
    block_drop(block)
    return columns


cdef int place_columns(const ConvProblem* p, TensorBase image, TensorBase columns) except -1:
    """The image (samples, c_in, ...) that the columns (c_in, samples * positions) of a kernel of one element without padding were taken from, zero elsewhere."""
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    cdef int64_t plane = p.inputs[1] * p.inputs[2]
    cdef TensorBase source
    sizes[0], sizes[1], sizes[2], sizes[3] = p.c_in, p.samples, p.outputs[1], p.outputs[2]
    strides[3], strides[2], strides[1] = 1, sizes[3], sizes[2] * sizes[3]
    strides[0] = p.samples * strides[1]
    source = make_view(columns, 4, sizes, strides, columns.offset)
    strides[0], strides[1], strides[2], strides[3] = plane, p.c_in * plane, p.stride[1] * p.inputs[2], p.stride[2]
    memset(data_of(image), 0, image.numel * ITEM_SIZE[image.dtype])
    return copy_elements(make_view(image, 4, sizes, strides, image.offset), source)


cdef int columns_pass(const conv_kernels* kernels, int what, const ConvProblem* p, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """One pass with a column for each output position of each sample."""
    cdef int64_t positions = p.outputs[1] * p.outputs[2], length = p.c_in * p.taps[1] * p.taps[2], all = p.samples * positions
    cdef int64_t sizes[2]
    cdef bint plain = is_pointwise(p)
    cdef TensorBase columns, weight, result
    sizes[0], sizes[1] = length, all
    if what == CONV_INPUT:
        weight = matrix_view(b, p.c_out, length)
        columns = matrix_view(out, length, all) if plain and p.samples == 1 else empty_tensor(2, sizes, out.dtype, DEV_CPU)
        multiply(columns, weight, True, joined(a, p.samples, p.c_out, positions), False, None, False)
        if not plain:
            return place_columns(p, out, columns)
        return 0 if p.samples == 1 else copy_elements(samples_second(out, p.samples, p.c_in, positions), split(columns, p.samples, p.c_in, positions))
    if plain:
        columns = joined(a if what == CONV_FORWARD else b, p.samples, p.c_in, positions)
    else:
        columns = turned_columns(kernels, p, a if what == CONV_FORWARD else b)
    if what == CONV_WEIGHT:
        return multiply(matrix_view(out, p.c_out, length), joined(a, p.samples, p.c_out, positions), False, columns, True, None, False)
    sizes[0] = p.c_out
    result = matrix_view(out, p.c_out, all) if p.samples == 1 else empty_tensor(2, sizes, out.dtype, DEV_CPU)
    multiply(result, matrix_view(b, p.c_out, length), False, columns, False, bias, True)
    return 0 if p.samples == 1 else copy_elements(samples_second(out, p.samples, p.c_out, positions), split(result, p.samples, p.c_out, positions))


cdef TensorBase split(TensorBase t, int64_t samples, int64_t channels, int64_t positions):
    """A contiguous t (channels, samples * positions) seen as (channels, samples, positions)."""
    return images_view(t, channels, samples, positions, False)


cdef int groups_pass(const conv_kernels* kernels, int what, const ConvProblem* p, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """One pass over as many samples at a time as keep im2col's matrix within some IMAGES_BYTES."""
    cdef int64_t positions = p.outputs[1] * p.outputs[2], length = p.c_in * p.taps[1] * p.taps[2], begin = 0
    cdef int64_t image = p.c_in * p.inputs[1] * p.inputs[2], result = p.c_out * positions
    cdef ConvProblem q = p[0]
    cdef TensorBase some, columns
    q.samples = max(IMAGES_BYTES // (positions * length * ITEM_SIZE[out.dtype]), 1)
    while begin < p.samples:
        q.samples = min(q.samples, p.samples - begin)
        if what == CONV_FORWARD:
            columns_pass(kernels, what, &q, matrix_view(a, q.samples, image, begin * image), b, bias, matrix_view(out, q.samples, result, begin * result))
        elif what == CONV_INPUT:
            gemm_pass(kernels, BY_ROWS, what, &q, matrix_view(a, q.samples, result, begin * result), b, None, matrix_view(out, q.samples, image, begin * image))
        else:
            some = joined(matrix_view(a, q.samples, result, begin * result), q.samples, p.c_out, positions)
            columns = turned_columns(kernels, &q, matrix_view(b, q.samples, image, begin * image))
            add_product(matrix_view(out, p.c_out, length), some, columns, begin > 0)
        begin += q.samples
    return 0


cdef int add_product(TensorBase sum, TensorBase a, TensorBase b, bint add) except -1:
    """sum = a b^T, or with `add` sum += a b^T, of contiguous matrices."""
    cdef Mat mo, ma, mb
    cdef Scalar one
    one.kind = one.i = 1
    one.d = 1
    one.im = 0
    matrix_of(sum, &mo)
    matrix_of(a, &ma)
    matrix_of(b, &mb)
    transpose_mat(&mb)
    return run_gemm(DEV_CPU, "convolution", sum, &mo, a, &ma, b, &mb, NULL, &one if add else NULL, sum if add else None, &mo if add else NULL)


cdef int sum_over_images(const ConvProblem* p, TensorBase grad, TensorBase x, TensorBase weight) except -1:
    """weight (c_out, c_in) = the sum over samples of grad[s] (c_out, positions) times x[s] (c_in, positions) transposed, in their order."""
    cdef int64_t positions = p.outputs[1] * p.outputs[2], s
    for s in range(p.samples):
        add_product(weight, matrix_view(grad, p.c_out, positions, s * p.c_out * positions), matrix_view(x, p.c_in, positions, s * p.c_in * positions), s > 0)
    return 0


cdef bint takes_rows(const ConvProblem* p, int dtype) noexcept:
    """Whether a 1x1 kernel on images in channels_last, whose positions are rows of a matrix, is a GEMM: packing the weight shows least there."""
    cdef int64_t size = p.c_in * p.c_out
    return (
        (dtype == F32 or dtype == F64) and p.n <= 2 and p.groups == 1 and (size >= LARGE_WEIGHT or p.c_in == 16 and p.c_out == 16) and is_pointwise(p)
        and p.samples * p.outputs[1] * p.outputs[2] * size >= LEAST_SINGLE
    )


cdef int rows_pass(const conv_kernels* kernels, int what, const ConvProblem* p, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """One pass over images and a weight in channels_last: that of a batch of single positions."""
    cdef ConvProblem q = p[0]
    q.samples = p.samples * p.outputs[1] * p.outputs[2]
    q.inputs[1] = q.inputs[2] = q.outputs[1] = q.outputs[2] = 1
    a = matrix_view(a, q.samples, p.c_in if what == CONV_FORWARD else p.c_out)
    b = matrix_view(b, q.samples, p.c_in) if what == CONV_WEIGHT else matrix_view(b, p.c_out, p.c_in)
    out = matrix_view(out, p.c_out if what == CONV_WEIGHT else q.samples, p.c_out if what == CONV_FORWARD else p.c_in)
    return gemm_pass(kernels, BY_ROWS, what, &q, a, b, bias, out)


cdef int gemm_pass(const conv_kernels* kernels, int way, int what, const ConvProblem* p, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """One pass over contiguous images; a and b as run_convolve has them, kernels of float and of double."""
    cdef int64_t positions = p.outputs[1] * p.outputs[2], length = p.c_in * p.taps[1] * p.taps[2]
    cdef int64_t sizes[2]
    cdef TensorBase rows, weight
    cdef conv_columns g
    a, b = contiguous_of(a), contiguous_of(b)
    if way == BY_GROUPS:
        return groups_pass(kernels, what, p, a, b, bias, out)
    if way == BY_COLUMNS:
        return columns_pass(kernels, what, p, a, b, bias, out)
    if way == BY_IMAGES:
        if what == CONV_WEIGHT:
            return sum_over_images(p, a, b, matrix_view(out, p.c_out, p.c_in))
        weight = matrix_view(b, p.c_out, p.c_in)
        if what == CONV_FORWARD:
            return multiply(images_view(out, p.samples, p.c_out, positions, False), weight, False, images_view(a, p.samples, p.c_in, positions, False), False, bias, True)
        return multiply(images_view(out, p.samples, p.c_in, positions, False), weight, True, images_view(a, p.samples, p.c_out, positions, False), False, None, False)
    if what == CONV_WEIGHT:
        return multiply(matrix_view(out, p.c_out, length), rows_of_outputs(p, a), True, columns_of(p, b), False, None, False)
    weight = matrix_view(b, p.c_out, length)
    sizes[0], sizes[1] = p.samples * positions, p.c_out if what == CONV_FORWARD else length
    if positions == 1 and (what == CONV_FORWARD or is_pointwise(p)):
        rows = matrix_view(out, sizes[0], sizes[1])
    else:
        rows = empty_tensor(2, sizes, out.dtype, DEV_CPU)
    if what == CONV_FORWARD:
        multiply(rows, columns_of(p, a), False, weight, True, bias, False)
        return 0 if positions == 1 else copy_elements(images_view(out, p.samples, p.c_out, positions, True), images_view(rows, p.samples, positions, p.c_out, False))
    multiply(rows, rows_of_outputs(p, a), False, weight, False, None, False)
    if positions == 1 and is_pointwise(p):
        return 0
    set_columns(&g, p, out, rows)
    with nogil:
        parallel_for(p.samples, COPY_GRAIN // (positions * length * g.item + 1) + 1, 1, columns_scatter, &g)
    return 0
