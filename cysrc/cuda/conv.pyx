"""Convolutions on CUDA beneath the checks of cysrc/ops/conv/conv.pyx: the geometry of each pass, tiles, slices of deep products."""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.dtype cimport BOOL, U8, I32, I64, F16, BF16, F32, F64, C64, C128, NUM_DTYPES, has_loops, compute_type, is_complex_type, is_integral_or_bool_type
from tensorrt_lite._C.cuda.matmul cimport kernel_type
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, ITEM_SIZE, data_of, place_of, empty_tensor, empty_strided_tensor, channels_last_strides, is_channels_last, is_channels_last_3d)
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.cuda.backend cimport kernel_of, run, run3, blocks_for
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.cuda.driver import device_attribute
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.iterator cimport contiguous_of, copy_elements
from tensorrt_lite._C.ops.conv.problem cimport ConvProblem
from tensorrt_lite._C.steps.conv cimport set_convolve
from tensorrt_lite._C.cuda import source as _source

attach()

# trt::Conv of cuda_src/conv.cuh
cdef struct Conv:
    const char* image
    const char* kernel
    const char* bias
    char* out
    char* partial
    int64_t samples, positions, depth_channels, lines, groups, slices, slice_depth
    int64_t grid[3]
    int64_t size[3]
    int64_t stride[3]
    int64_t image_sample, image_channel, image_group
    int64_t taps[3]
    int64_t scale[3]
    int64_t shift[3]
    int64_t step[3]
    int64_t divisor[3]
    int64_t channels_inner
    int64_t kernel_line, kernel_channel, kernel_tap, kernel_group
    int64_t grad_line, grad_sample
    int64_t grad_stride[3]
    int64_t grad_group
    int64_t out_line, out_sample
    int64_t out_stride[3]
    int64_t out_group

cdef enum:
    FORWARD = 0
    INPUT = 1
    WEIGHT = 2
    LARGE = 0
    SMALL = 1
    SUM = 2
    DIRECT = 3
    FEW = 4                      # channels of a group up to which threads work on their own

# tiles by bytes of a sum: rows, columns, and those of a thread; of half types: warps down and across, rows and columns of a warp
TILES = {4: ((128, 64, 8, 4), (64, 64, 4, 4)), 8: ((64, 64, 4, 4), (32, 32, 2, 2)), 16: ((32, 32, 2, 2), (32, 32, 2, 2))}
MMA_TILES = ((2, 4, 32, 32), (2, 4, 32, 16))
# by pass and layout (NCHW, channels_last): rows, columns, whether neighbouring threads load neighbouring lines of each, whether channels are rows
OPERANDS = (
    (("Kernel", "Image", 0, 1, 1), ("Image", "Kernel", 0, 0, 0)),
    (("Kernel", "Image", 0, 1, 1), ("Image", "Kernel", 0, 1, 0)),
    (("Gradient", "ImageByTaps", 0, 0, 1), ("Gradient", "ImageByTaps", 1, 1, 1)),
)
SUMS = {U8: "unsigned", I64: "unsigned long long", F16: "float", BF16: "float", F32: "float", F64: "double", C64: "trt::complex<float>", C128: "trt::complex<double>"}
BYTES_OF_SUM = {U8: 4, I64: 8, F16: 4, BF16: 4, F32: 4, F64: 8, C64: 8, C128: 16}

cdef FunctionHandle handles[64][NUM_DTYPES][3][2][4]
cdef int processors[64]
cdef int capability[64]


cdef inline bint on_tensor_cores(int index, int dtype) noexcept:
    return (dtype == F16 or dtype == BF16) and capability[index] >= 8


cdef tuple tile_of(int index, int dtype, int form):
    """Rows and columns of a block's tile."""
    if on_tensor_cores(index, dtype):
        t = MMA_TILES[form]
        return t[0] * t[2], t[1] * t[3]
    return TILES[BYTES_OF_SUM[kernel_type(dtype)]][form][:2]


cdef FunctionHandle load(int index, int dtype, int what, bint last, int form) except NULL:
    cdef FunctionHandle* slot = &handles[index][dtype][what][last][form]
    if slot[0] == NULL:
        t = _source.TYPES[dtype][1]
        t = f"trt::{t}" if is_complex_type(dtype) else t
        kind = kernel_type(dtype)
        total, of_weight = SUMS[kind], int(what == WEIGHT)
        a, b, fast_a, fast_b, channels_are_rows = OPERANDS[what][last]
        if form == SUM:
            call = f"conv_sum<{t}, {total}, {of_weight}>"
        elif form == DIRECT:
            call = f"conv_direct{'_weight' if what == WEIGHT else ''}<{t}, {total}>"
        else:
            tile = MMA_TILES[form] if on_tensor_cores(index, dtype) else TILES[BYTES_OF_SUM[kind]][form]
            numbers = ", ".join([str(x) for x in (*tile, fast_a, fast_b, of_weight, channels_are_rows)])
            call = f"conv_{'mma' if on_tensor_cores(index, dtype) else 'tiles'}<{t}, {'' if on_tensor_cores(index, dtype) else total + ', '}trt::{a}, trt::{b}, {numbers}>"
        slot[0] = kernel_of(f"#include \"conv.cuh\"\n\nextern \"C\" __global__ void __launch_bounds__(256) kernel(const trt::Conv p) {{ trt::{call}(p); }}\n", "kernel", index)
    return slot[0]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    cdef int dtype, what, last, form
    capability[index] = device_attribute(75, index)
    for dtype in range(<int>NUM_DTYPES):
        if not has_loops(dtype) or dtype == BOOL:
            continue
        for what in range(3):
            for last in range(2):
                for form in range(4):
                    load(index, dtype, what, last, form)


cdef void dense_strides(bint last, int64_t channels, const int64_t* size, int64_t* sample, int64_t* channel, int64_t* stride) noexcept:
    """Of a tensor (N, channels, *size) in one of the two orders."""
    cdef int64_t unit = channels if last else 1
    stride[2] = unit
    stride[1] = unit * size[2]
    stride[0] = unit * size[2] * size[1]
    channel[0] = 1 if last else size[0] * size[1] * size[2]
    sample[0] = channels * size[0] * size[1] * size[2]


cdef TensorBase in_order(TensorBase t, bint last):
    """t contiguous or in channels_last: itself, or a copy."""
    cdef int64_t strides[5]
    cdef TensorBase r
    if not last:
        return contiguous_of(t)
    if is_channels_last(t) or t.ndim == 5 and is_channels_last_3d(t):
        return t
    channels_last_strides(t.ndim, t.sizes, strides)
    r = empty_strided_tensor(t.ndim, t.sizes, strides, t.dtype, place_of(t))
    copy_elements(r, t)
    return r


cdef int convolve(int what, const ConvProblem* given, bint last, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    cdef Conv p
    cdef int index = out.device_index, dtype = a.dtype, d, form
    cdef int64_t samples = given.samples, c_in = given.c_in, c_out = given.c_out, groups = given.groups
    cdef const int64_t* inputs = given.inputs
    cdef const int64_t* outputs = given.outputs
    cdef const int64_t* taps = given.taps
    cdef const int64_t* stride = given.stride
    cdef const int64_t* padding = given.padding
    cdef const int64_t* dilation = given.dilation
    cdef int64_t per_in = c_in // groups, per_out = c_out // groups, tap_count = taps[0] * taps[1] * taps[2], m, n, depth, blocks, wanted, sizes[1]
    cdef int64_t kernel_channel = 1 if last else tap_count, kernel_tap = per_in if last else 1, y_channel
    cdef TensorBase partial
    cdef void* arguments[1]
    if b.device_index != a.device_index or bias is not None and bias.device_index != a.device_index:
        raise RuntimeError("convolution: Expected all tensors to be on the same device")
    a, b = in_order(a, last), in_order(b, last)
    if bias is not None:
        bias = contiguous_of(bias)
    if processors[index] == 0:
        processors[index] = device_attribute(16, index)
        capability[index] = device_attribute(75, index)
    memset(&p, 0, sizeof(p))
    p.samples, p.groups, p.channels_inner = samples, groups, last
    p.kernel_group = per_out * per_in * tap_count
    p.kernel_tap = kernel_tap
    p.positions = samples
    for d in range(3):
        p.taps[d] = taps[d]
        p.grid[d] = inputs[d] if what == INPUT else outputs[d]
        p.size[d] = outputs[d] if what == INPUT else inputs[d]
        p.scale[d] = 1 if what == INPUT else stride[d]
        p.shift[d] = padding[d] if what == INPUT else -padding[d]
        p.step[d] = -dilation[d] if what == INPUT else dilation[d]
        p.divisor[d] = stride[d] if what == INPUT else 1
        p.positions *= p.grid[d]
    dense_strides(last, c_out if what == INPUT else c_in, p.size, &p.image_sample, &p.image_channel, p.stride)
    p.out = data_of(out)
    if what == WEIGHT:
        p.image, p.kernel = data_of(b), data_of(a)
        p.lines, p.depth_channels = per_out, per_in
        p.kernel_line, p.kernel_channel = per_in * tap_count, kernel_channel
        dense_strides(last, c_out, outputs, &p.grad_sample, &p.grad_line, p.grad_stride)
        p.grad_group = per_out * p.grad_line
        p.image_group = per_in * p.image_channel
        depth = p.positions
    else:
        p.image, p.kernel = data_of(a), data_of(b)
        p.bias = NULL if bias is None else data_of(bias)
        p.lines = per_in if what == INPUT else per_out
        p.depth_channels = per_out if what == INPUT else per_in
        p.kernel_line = kernel_channel if what == INPUT else per_in * tap_count
        p.kernel_channel = per_in * tap_count if what == INPUT else kernel_channel
        dense_strides(last, c_in if what == INPUT else c_out, p.grid, &p.out_sample, &p.out_line, p.out_stride)
        p.out_group = p.lines * p.out_line
        p.image_group = p.depth_channels * p.image_channel
        depth = p.depth_channels * tap_count
    if p.positions >= (<int64_t>1 << 31) or p.depth_channels * tap_count >= (<int64_t>1 << 31):
        raise NotImplementedError(f"convolution: {p.positions} positions and {p.depth_channels * tap_count} products for each, on CUDA")
    arguments[0] = &p
    p.slices, p.slice_depth = 1, depth
    if groups > 1 and per_in <= FEW and per_out <= FEW:
        blocks = out.numel if what == WEIGHT else (out.numel + 255) // 256
        return run(load(index, dtype, what, last, DIRECT), index, min(blocks, <int64_t>1 << 30), 256, 0, arguments)
    m = p.lines
    n = per_in * tap_count if what == WEIGHT else p.positions
    if what != WEIGHT and last:
        m, n = n, m
    for form in range(2):
        rows, columns = tile_of(index, dtype, form)
        blocks = (m + rows - 1) // rows * ((n + columns - 1) // columns)
        if blocks * groups >= processors[index]:
            break
    wanted = min(2 * processors[index] // (blocks * groups), depth // 256)
    if wanted > 1:
        p.slice_depth = ((depth + wanted - 1) // wanted + 63) // 64 * 64
        p.slices = (depth + p.slice_depth - 1) // p.slice_depth
        sizes[0] = groups * p.slices * m * n
        partial = empty_tensor(1, sizes, I64 if dtype == I64 else I32 if is_integral_or_bool_type(dtype) else compute_type[dtype], place_of(out))
        p.partial = data_of(partial)
    run3(load(index, dtype, what, last, form), index, blocks, 1, min(groups * p.slices, <int64_t>65535), 256, 1, 1, 0, arguments)
    if p.partial != NULL:
        run(load(index, dtype, what, last, SUM), index, blocks_for(groups * m * n, 256), 256, 0, arguments)
    return 0


set_convolve(DEV_CUDA, convolve)
