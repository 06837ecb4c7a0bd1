"""Convolutions of bfloat16 by AMX's tiles (loops/conv_tiles.h): images are padded and laid out once, weights packed."""
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_drop
from tensorrt_lite._C.core.device cimport DEV_CPU
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport BF16, F32
from tensorrt_lite._C.core.iterator cimport cast_to, contiguous_of, copy_elements
from tensorrt_lite._C.core.parallel cimport parallel_for
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, empty_tensor, make_view
from tensorrt_lite._C.ops.conv.kernels cimport CONV_FORWARD, CONV_INPUT, CONV_WEIGHT
from tensorrt_lite._C.ops.conv.problem cimport ConvProblem
from tensorrt_lite._C.ops.matmul.packed cimport bf16_by_tiles


cdef extern from "string.h" nogil:
    void* memset(void* to, int value, size_t bytes)

cdef extern from *:
    """
    #include "isa.h"
    #include "conv_tiles.h"
    ISA_TABLE(conv_tiles_table, trt_conv_tiles)
    #define NO_OFFSET INT64_MIN
    """
    const int64_t NO_OFFSET
    enum:
        CONV_TILE
        CONV_TAPS
    ctypedef struct conv_tiles:
        int64_t samples, c_in, c_out, taps, row
        int64_t shift[64]
        int64_t place[64]
        int64_t places
        int64_t out_h, out_w, stride_h, stride_w
        const char* image
        int64_t image_bytes
        const char* weight
        const float* bias
        char* out
        int64_t out_sample, out_row, out_pixel
        const char* planes
        int64_t plane, steps
        const char* grad
        float* dw
        const char* rows
        char* panels
        int64_t depth
    ctypedef struct conv_tiles_table:
        void (*forward)(void*, int64_t, int64_t) noexcept nogil
        void (*weight)(void*, int64_t, int64_t) noexcept nogil
        void (*pack)(void*, int64_t, int64_t) noexcept nogil
    const conv_tiles_table* trt_conv_tiles()

cdef const conv_tiles_table* TILES = trt_conv_tiles()

cdef enum:
    LEAST_TILE_WORK = 1 << 21         # multiplications below which laying images out costs more than tiles save
    LEAST_ROW = 5                # of a strided output: shorter ones leave most of a tile empty
    THREAD_WORK = 1 << 20        # multiplications worth another thread


cdef bint takes_tiles(int what, const ConvProblem* p, int dtype) except -1:
    cdef int64_t taps = p.taps[1] * p.taps[2], strides = p.stride[1] * p.stride[2]
    if dtype != BF16 or TILES.forward == NULL or p.n != 2 or p.groups != 1 or p.c_in % CONV_TILE or p.c_out % CONV_TILE or taps > CONV_TAPS:
        return False
    if p.samples * p.outputs[1] * p.outputs[2] * p.c_in * p.c_out * taps < LEAST_TILE_WORK or taps == 1 and strides == 1 and what != CONV_WEIGHT:
        return False             # 1x1 kernels are plain GEMMs
    if what == CONV_FORWARD and strides > 1 and p.outputs[2] < LEAST_ROW:
        return False
    return bf16_by_tiles()


cdef TensorBase zeros_of(int64_t n):
    cdef TensorBase t = empty_tensor(1, &n, BF16, DEV_CPU)
    memset(data_of(t), 0, 2 * n)
    return t


cdef TensorBase bordered_images(int64_t samples, int64_t height, int64_t width, int64_t c, int64_t top, int64_t left, int64_t inner_height, int64_t inner_width):
    """Room for images with channels last: zeros around the inner ones, and for a tile of pixels after the last image."""
    cdef int64_t n = samples * height * width * c + CONV_TILE * c, pixel = 2 * c, end = (top + inner_height - 1) * width + left + inner_width, i, h
    cdef TensorBase t = empty_tensor(1, &n, BF16, DEV_CPU)
    cdef char* image = data_of(t)
    for i in range(samples):
        memset(image, 0, (top * width + left) * pixel)
        for h in range(inner_height - 1):
            memset(image + ((top + h) * width + left + inner_width) * pixel, 0, (width - inner_width) * pixel)
        memset(image + end * pixel, 0, (height * width - end) * pixel)
        image += height * width * pixel
    memset(image, 0, CONV_TILE * pixel)
    return t


cdef TensorBase image_view(TensorBase memory, TensorBase like, int64_t sample, int64_t channel, int64_t row, int64_t column, int64_t offset):
    """(samples, channels, height, width) of `like` in memory, by strides."""
    cdef int64_t strides[4]
    strides[0], strides[1], strides[2], strides[3] = sample, channel, row, column
    return make_view(memory, 4, like.sizes, strides, offset)


cdef TensorBase weight_rows(TensorBase w, bint of_input):
    """(taps, c_in, c_out) of a weight (c_out, c_in, height, width); for the gradient of the input (taps, c_out, c_in)."""
    cdef int64_t c_out = w.sizes[0], c_in = w.sizes[1], tap = c_in * c_out, n = w.numel
    cdef TensorBase rows = empty_tensor(1, &n, BF16, DEV_CPU)
    copy_elements(image_view(rows, w, c_in if of_input else 1, 1 if of_input else c_out, w.sizes[3] * tap, tap, 0), w)
    return rows


cdef int run_tiles(void (*task)(void*, int64_t, int64_t) noexcept nogil, conv_tiles* call, int64_t tasks, int64_t work, list tensors) except -1:
    """Without the GIL; `work`: multiplications of all tasks."""
    cdef trt_block* blocks[8]
    cdef TensorBase t
    cdef int i, n = 0
    for t in tensors:
        if t is not None:
            blocks[n] = t.storage.block
            trt_block_hold(blocks[n])
            n += 1
    with nogil:
        parallel_for(tasks, THREAD_WORK // (work // tasks + 1) + 1, 1, task, call)
    for i in range(n):
        block_drop(blocks[i])
    return 0


cdef TensorBase packed(conv_tiles* call, TensorBase rows, int64_t batch, int64_t depth):
    """`batch` matrices (depth, c_out) as panels of tiles."""
    cdef int64_t n = batch * depth * call.c_out
    cdef TensorBase panels = empty_tensor(1, &n, BF16, DEV_CPU)
    call.rows, call.panels, call.depth = data_of(rows), data_of(panels), depth
    run_tiles(TILES.pack, call, batch * (call.c_out // CONV_TILE), n, [rows, panels])
    return panels


cdef int run_forward(conv_tiles* call, list tensors) except -1:
    return run_tiles(TILES.forward, call, call.samples * (call.c_out // CONV_TILE), call.samples * call.out_h * call.out_w * call.taps * call.c_in * call.c_out, tensors)


cdef int forward_pass(conv_tiles* call, const ConvProblem* p, bint last, TensorBase x, TensorBase w, TensorBase bias, TensorBase out) except -1:
    cdef int64_t height = p.inputs[1] + 2 * p.padding[1], width = p.inputs[2] + 2 * p.padding[2], c = p.c_in, n = out.numel, i, j
    cdef TensorBase image = bordered_images(p.samples, height, width, c, p.padding[1], p.padding[2], p.inputs[1], p.inputs[2]), result = out if last else empty_tensor(1, &n, BF16, DEV_CPU)
    cdef TensorBase wide = None if bias is None else contiguous_of(cast_to(bias, F32)), weight
    copy_elements(image_view(image, x, height * width * c, 1, width * c, c, (p.padding[1] * width + p.padding[2]) * c), x)
    call.row, call.image_bytes = width, height * width * c * 2
    call.stride_h, call.stride_w = p.stride[1], p.stride[2]
    for i in range(p.taps[1]):
        for j in range(p.taps[2]):
            call.shift[i * p.taps[2] + j] = i * p.dilation[1] * width + j * p.dilation[2]
            call.place[i * p.taps[2] + j] = i * p.taps[2] + j
    weight = packed(call, weight_rows(w, False), 1, call.taps * c)
    call.image, call.weight, call.out = data_of(image), data_of(weight), data_of(result)
    call.bias = NULL if bias is None else <const float*>data_of(wide)
    call.out_h, call.out_w = p.outputs[1], p.outputs[2]
    call.out_pixel, call.out_row, call.out_sample = 2 * p.c_out, 2 * p.c_out * p.outputs[2], 2 * p.c_out * p.outputs[1] * p.outputs[2]
    run_forward(call, [image, weight, result, wide])
    return 0 if last else copy_elements(out, channels_last_view(result, out))


cdef TensorBase channels_last_view(TensorBase memory, TensorBase like):
    cdef int64_t c = like.sizes[1]
    return image_view(memory, like, like.sizes[2] * like.sizes[3] * c, 1, like.sizes[3] * c, c, 0)


cdef inline int64_t offset_of(const ConvProblem* p, int k, int64_t phase, int64_t tap) noexcept nogil:
    """The position in the output that meets input phase + stride * u by the tap, minus u, or NO_OFFSET."""
    cdef int64_t at = phase + p.padding[k] - tap * p.dilation[k]
    if at % p.stride[k]:
        return NO_OFFSET
    return at // p.stride[k]


cdef int input_pass(conv_tiles* call, const ConvProblem* p, bint last, TensorBase dy, TensorBase w, TensorBase out) except -1:
    """dx[h] = sum of w[i] dy[(h + padding - i dilation) / stride] where that is whole: inputs of each remainder by the stride are a convolution of stride 1
    over dy, with the taps that meet them."""
    cdef int64_t before[3]
    cdef int64_t size[3]
    cdef int64_t phase, tap, offset, n = out.numel, c = p.c_out, a, b, i, j, di, dj
    cdef int k
    for k in range(1, 3):
        before[k], size[k] = 0, p.outputs[k]
        for phase in range(p.stride[k]):
            for tap in range(p.taps[k]):
                offset = offset_of(p, k, phase, tap)
                if offset != NO_OFFSET:
                    before[k] = max(before[k], -offset)
                    size[k] = max(size[k], (p.inputs[k] - 1 - phase) // p.stride[k] + 1 + offset)
        size[k] += before[k]
    cdef TensorBase image = bordered_images(p.samples, size[1], size[2], c, before[1], before[2], p.outputs[1], p.outputs[2]), result = out if last else empty_tensor(1, &n, BF16, DEV_CPU), weight
    copy_elements(image_view(image, dy, size[1] * size[2] * c, 1, size[2] * c, c, (before[1] * size[2] + before[2]) * c), dy)
    call.row, call.image_bytes = size[2], size[1] * size[2] * c * 2
    call.taps = p.taps[1] * p.taps[2]
    weight = packed(call, weight_rows(w, True), 1, call.places * c)
    call.image, call.weight, call.bias = data_of(image), data_of(weight), NULL
    call.out_sample = 2 * p.c_in * p.inputs[1] * p.inputs[2]
    call.out_row, call.out_pixel = 2 * p.c_in * p.inputs[2] * p.stride[1], 2 * p.c_in * p.stride[2]
    for a in range(min(p.stride[1], p.inputs[1])):
        for b in range(min(p.stride[2], p.inputs[2])):
            call.taps = 0
            for i in range(p.taps[1]):
                di = offset_of(p, 1, a, i)
                for j in range(p.taps[2]):
                    dj = offset_of(p, 2, b, j)
                    if di != NO_OFFSET and dj != NO_OFFSET:
                        call.shift[call.taps] = (di + before[1]) * size[2] + dj + before[2]
                        call.place[call.taps] = i * p.taps[2] + j
                        call.taps += 1
            call.out = data_of(result) + 2 * p.c_in * (a * p.inputs[2] + b)
            call.out_h, call.out_w = (p.inputs[1] - 1 - a) // p.stride[1] + 1, (p.inputs[2] - 1 - b) // p.stride[2] + 1
            run_forward(call, [image, weight, result])      # without taps: zeros
    return 0 if last else copy_elements(out, channels_last_view(result, out))


cdef int weight_pass(conv_tiles* call, const ConvProblem* p, TensorBase dy, TensorBase x, TensorBase out) except -1:
    """dw[tap] = planes shifted by the tap, times the gradient at the positions that met them. Rows and columns of the padded image of each remainder by the
    stride are a plane of their own, so that positions are adjacent."""
    cdef int64_t rows = p.outputs[1] + p.dilation[1] * (p.taps[1] - 1) // p.stride[1], width = p.outputs[2] + p.dilation[2] * (p.taps[2] - 1) // p.stride[2]
    cdef int64_t part = (rows * width + 2 * CONV_TILE - 1) // CONV_TILE * CONV_TILE, c = p.c_out, n, i, j, a, b
    cdef TensorBase planes, gradient, sums
    call.steps = ((p.outputs[1] - 1) * width + p.outputs[2] + CONV_TILE - 1) // CONV_TILE
    call.plane = part * p.stride[1] * p.stride[2]
    planes = zeros_of(p.samples * p.c_in * call.plane)
    for a in range(p.stride[1]):
        for b in range(p.stride[2]):
            copy_part(planes, x, p, a, b, rows, width, call.plane, (a * p.stride[2] + b) * part)
    gradient = zeros_of(p.samples * (call.steps * CONV_TILE) * c)
    copy_elements(image_view(gradient, dy, call.steps * CONV_TILE * c, 1, width * c, c, 0), dy)
    gradient = packed(call, gradient, p.samples, call.steps * CONV_TILE)
    for i in range(p.taps[1]):
        for j in range(p.taps[2]):
            a, b = i * p.dilation[1], j * p.dilation[2]
            call.shift[i * p.taps[2] + j] = (a % p.stride[1] * p.stride[2] + b % p.stride[2]) * part + a // p.stride[1] * width + b // p.stride[2]
    n = call.taps * p.c_in * c
    sums = empty_tensor(1, &n, F32, DEV_CPU)
    call.planes, call.grad, call.dw = data_of(planes), data_of(gradient), <float*>data_of(sums)
    run_tiles(TILES.weight, call, call.taps * (p.c_in // CONV_TILE), p.samples * call.steps * CONV_TILE * n, [planes, gradient, sums])
    return copy_elements(out, image_view(sums, out, 1, c, p.taps[2] * p.c_in * c, p.c_in * c, 0))


cdef int copy_part(TensorBase planes, TensorBase x, const ConvProblem* p, int64_t a, int64_t b, int64_t rows, int64_t width, int64_t plane, int64_t offset) except -1:
    """The rows and columns of the padded x whose remainders by the stride are a and b, as far as taps reach them."""
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    cdef int64_t first[3]
    cdef int64_t at[3]
    cdef int64_t remainder[3]
    cdef int64_t most[3]
    cdef int k
    remainder[1], remainder[2], most[1], most[2] = a, b, rows, width
    sizes[0], sizes[1] = x.sizes[0], x.sizes[1]
    strides[0], strides[1] = x.strides[0], x.strides[1]
    for k in range(1, 3):
        first[k] = (remainder[k] - p.padding[k]) % p.stride[k]           # in x; cdivision: of the dividend's sign
        if first[k] < 0:
            first[k] += p.stride[k]
        at[k] = (first[k] + p.padding[k]) // p.stride[k]                # in the plane
        sizes[k + 1] = min((p.inputs[k] - 1 - first[k] + p.stride[k]) // p.stride[k], most[k] - at[k])
        strides[k + 1] = x.strides[k + 1] * p.stride[k]
        if sizes[k + 1] <= 0:
            return 0
    cdef TensorBase part = make_view(x, 4, sizes, strides, x.offset + first[1] * x.strides[2] + first[2] * x.strides[3])
    return copy_elements(image_view(planes, part, p.c_in * plane, plane, width, 1, offset + at[1] * width + at[2]), part)


cdef int tiles_pass(int what, const ConvProblem* p, bint last, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """One pass; a, b and out as run_convolve has them."""
    cdef conv_tiles call
    call.samples, call.taps = p.samples, p.taps[1] * p.taps[2]
    call.places = call.taps
    call.c_in = p.c_out if what == CONV_INPUT else p.c_in
    call.c_out = p.c_in if what == CONV_INPUT else p.c_out
    call.stride_h = call.stride_w = 1
    if what == CONV_FORWARD:
        return forward_pass(&call, p, last, a, b, bias, out)
    if what == CONV_INPUT:
        return input_pass(&call, p, last, a, b, out)
    return weight_pass(&call, p, a, b, out)
