# Kernels of convolution. With x the input, w the weight and y the output of a convolution, `conv_forward` is y(x, w),
# `conv_input` is x's gradient (which is also the transposed convolution) and `conv_weight` is w's.
#
# float32 and float64 run in the raw kernels of loops/conv.h over contiguous images, NCHW or channels_last; halves go through
# float32, complex numbers through four real convolutions, integers through a direct loop. One spatial dimension is two with a
# height of 1. Three are two with planes gathered along the depth: (N, C, D, H, W) becomes (N * OD, C * KD, H, W), whose weight
# has the same memory, a part of them at a time; those of one element along two neighbouring dimensions are two without any. Small images, and 1x1 kernels on halves, are GEMMs (gemm.pyx).
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.core.allocator cimport block_alloc
from tensorrt_lite._C.core.memory_format cimport dense_in_format, empty_in_format, in_format, suggests_last
from tensorrt_lite._C.ops.conv.kernels cimport CONV_FORWARD, CONV_INPUT, CONV_WEIGHT, conv_kernels, conv_problem, conv_work
from tensorrt_lite._C.ops.conv.problem cimport ConvProblem
from tensorrt_lite._C.steps.conv cimport run_convolve, set_convolve

cdef extern from *:
    """
    ISA_TABLE(conv_kernels, conv_table)
    """
    const conv_kernels* conv_table()

cdef const conv_kernels* TABLE = conv_table()      # float, double, depthwise bfloat16

cdef extern from *:
    """
    static inline int trt_next_slot(int* n) { return __atomic_fetch_add(n, 1, __ATOMIC_RELAXED); }
    """
    int next_slot "trt_next_slot"(int* n) noexcept nogil

cdef enum:
    FLOPS_PER_THREAD = 400000      # multiply-adds worth another thread: some 5 us of small images, whose passes have other work as well
    GROUP_BYTES = 1 << 20          # of halves' samples in float32, about, where some are converted at a time,
    GROUP_WEIGHTS = 16             # and a multiple of the weight's bytes, which is packed for each part (4 times, as float32)
    EXACT_WORK = 20000             # multiply-adds up to which float32 is summed in double: the time goes elsewhere there (see is_short)


cdef struct Plan:                  # a ConvProblem as planes
    int n                          # spatial dimensions
    conv_problem s                 # of one image; samples is the batch, of three dimensions times the depth of y
    int64_t depth, kernel_d, stride_d, pad_d, dilation_d, out_d
    int64_t out[5]                 # sizes of y


cdef struct ConvRun:
    const conv_kernels* kernels
    conv_work work
    int64_t phase
    char* workspace
    int64_t workspace_bytes
    int slots


cdef void run_items(void* context, int64_t begin, int64_t end) noexcept nogil:
    cdef ConvRun* r = <ConvRun*>context
    cdef int slot = next_slot(&r.slots)
    r.kernels.run(&r.work, r.phase, r.workspace + slot * r.workspace_bytes, begin, end)


cdef int spatial(const Dims* d, int n, int64_t* out, str name, int64_t least, str complaint) except -1:
    """`n` values from one or `n`, each at least `least`."""
    cdef int i
    if d.n != 1 and d.n != n:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {n} values to match the convolution dimensions, but got {name}={sizes_text(d.n, d.v)}")
    for i in range(n):
        out[i] = d.v[i] if d.n == n else d.v[0]
        if out[i] < least:
            raise RuntimeError(complaint)
        if out[i] > (<int64_t>1 << 40):
            raise RuntimeError(f"{name}={out[i]} is too large for a convolution")
    return 0


cdef int set_problem(ConvProblem* p, int ndim, const int64_t* x, const int64_t* w, const Dims* stride, const Dims* padding, const Dims* dilation,
                     int64_t groups, int64_t* y) except -1:
    """Check sizes x (N, C, ...) and w (C_out, C / groups, ...); fill in the problem and y's sizes."""
    cdef int n = ndim - 2, i, lead
    if n < 1 or n > 3:
        raise RuntimeError(f"convolution: expected tensors of 3, 4 or 5 dimensions, got {ndim}")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    lead = 3 - n
    p.n = n
    for i in range(3):
        p.stride[i] = p.dilation[i] = p.inputs[i] = p.taps[i] = 1
        p.padding[i] = 0
    spatial(stride, n, p.stride + lead, "stride", 1, "non-positive stride is not supported")
    spatial(padding, n, p.padding + lead, "padding", 0, "negative padding is not supported")
    spatial(dilation, n, p.dilation + lead, "dilation", 1, "dilation should be greater than zero")
    for i in range(n):
        p.inputs[lead + i] = x[2 + i]
        p.taps[lead + i] = w[2 + i]
    if w[0] < groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {sizes_text(ndim, w)} instead")
    if w[0] % groups:
        raise RuntimeError(f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size {sizes_text(ndim, w)} instead")
    if x[1] != w[1] * groups:
        raise hinted("channels", RuntimeError(f"Given groups={groups}, weight of size {sizes_text(ndim, w)}, expected input{sizes_text(ndim, x)} to have {w[1] * groups} channels, but got {x[1]} channels instead"))
    for i in range(3):
        if p.taps[i] > 0 and p.inputs[i] + 2 * p.padding[i] < p.dilation[i] * (p.taps[i] - 1) + 1:
            padded = " x ".join([str(p.inputs[j] + 2 * p.padding[j]) for j in range(lead, 3)])
            kernel = " x ".join([str(p.dilation[j] * (p.taps[j] - 1) + 1) for j in range(lead, 3)])
            raise RuntimeError(f"Calculated padded input size per channel: ({padded}). Kernel size: ({kernel}). Kernel size can't be greater than actual input size")
        if p.taps[i] <= 0:
            raise RuntimeError(f"convolution: kernel sizes must be positive, got weight of size {sizes_text(ndim, w)}")
        p.outputs[i] = (p.inputs[i] + 2 * p.padding[i] - p.dilation[i] * (p.taps[i] - 1) - 1) // p.stride[i] + 1
    p.samples, p.c_in, p.c_out, p.groups = x[0], x[1], w[0], groups
    y[0], y[1] = x[0], w[0]
    for i in range(n):
        y[2 + i] = p.outputs[lead + i]
    return 0


cdef void make_plan(Plan* p, const ConvProblem* c) noexcept:
    cdef int i
    p.n = c.n
    p.out[0], p.out[1] = c.samples, c.c_out
    for i in range(c.n):
        p.out[2 + i] = c.outputs[3 - c.n + i]
    p.depth, p.kernel_d, p.stride_d, p.pad_d, p.dilation_d, p.out_d = c.inputs[0], c.taps[0], c.stride[0], c.padding[0], c.dilation[0], c.outputs[0]
    p.s.samples = c.samples * c.outputs[0]
    p.s.c_in = c.c_in * c.taps[0]
    p.s.in_h, p.s.in_w = c.inputs[1], c.inputs[2]
    p.s.c_out = c.c_out
    p.s.out_h, p.s.out_w = c.outputs[1], c.outputs[2]
    p.s.kernel_h, p.s.kernel_w = c.taps[1], c.taps[2]
    p.s.stride_h, p.s.stride_w = c.stride[1], c.stride[2]
    p.s.pad_h, p.s.pad_w = c.padding[1], c.padding[2]
    p.s.dilation_h, p.s.dilation_w = c.dilation[1], c.dilation[2]
    p.s.groups = c.groups


# ---- two dimensions ------------------------------------------------------------------------------------------------

cdef int run_planes(int what, Plan* p, TensorBase a, TensorBase b, TensorBase bias, TensorBase out, bint last) except -1:
    """One call of the raw kernels; a, b and out have the memory order of p.s, NCHW or channels_last, float32 or float64. Images of bfloat16 go to
    the kernels of pairs, with weights of bfloat16, or depthwise to theirs, with weights of float32; a bias is float32.

    forward: a = x, b = w; input: a = dy, b = w; weight: a = dy, b = x."""
    cdef ConvRun r
    cdef conv_problem* s = &r.work.s
    cdef int64_t items, grain, work, inputs, taps
    cdef int threads = num_threads()
    cdef trt_block* scratch
    cdef trt_block* held[4]
    if a.dtype == BF16:
        r.kernels = &TABLE[2] if p.s.groups > 1 else pairs_kernels()
    else:
        r.kernels = &TABLE[out.dtype == F64]
    r.work.s = p.s
    r.work.direction = what
    r.work.a = data_of(a)
    r.work.b = data_of(b)
    r.work.bias = NULL if bias is None else data_of(bias)
    r.work.out = data_of(out)
    inputs, taps = s.c_in // s.groups, s.kernel_h * s.kernel_w
    s.last = last
    s.w_first = 0
    s.w_out = inputs * taps
    s.w_group = s.c_out // s.groups * s.w_out
    s.w_in = 1 if last else taps
    s.w_tap = inputs if last else 1
    work = s.samples * s.c_out * s.out_h * s.out_w * inputs * taps
    if work < 2 * FLOPS_PER_THREAD:
        threads = 1
    r.kernels.plan(&r.work)
    r.workspace_bytes = (r.work.workspace_bytes + 63) // 64 * 64
    r.work.shared_bytes = (r.work.shared_bytes + 63) // 64 * 64
    scratch = block_alloc(r.work.shared_bytes + (1 if threads == 1 else threads + 1) * r.workspace_bytes + 64)
    r.work.shared = scratch.data
    r.workspace = scratch.data + r.work.shared_bytes
    held[0] = a.storage.block
    held[1] = b.storage.block
    held[2] = out.storage.block
    held[3] = held[2] if bias is None else bias.storage.block
    trt_block_hold(held[0])
    trt_block_hold(held[1])
    trt_block_hold(held[2])
    trt_block_hold(held[3])
    with nogil:
        for r.phase in range(r.work.phases):
            items = r.kernels.items(&r.work, r.phase)
            grain = FLOPS_PER_THREAD * items // (work + 1) + 1
            r.slots = 0
            if threads == 1:
                run_items(&r, 0, items)
            else:
                # whole multiples of a thread's share: no more pieces than workspaces, whoever sets the number of threads meanwhile
                parallel_for(items, grain, (items + threads - 1) // threads, run_items, &r)
    block_drop(held[0])
    block_drop(held[1])
    block_drop(held[2])
    block_drop(held[3])
    block_drop(scratch)
    return 0


# ---- three dimensions ----------------------------------------------------------------------------------------------

cdef bint is_flat(const ConvProblem* p, int i) noexcept:
    """Whether a convolution leaves a dimension alone: output_padding may have made the input longer."""
    return p.taps[i] == 1 and p.stride[i] == 1 and p.padding[i] == 0 and p.inputs[i] == p.outputs[i]


cdef bint flattens(const ConvProblem* p, ConvProblem* flat) noexcept:
    """Three dimensions as two, where a kernel has one element along two neighbouring ones: they become one, and nothing is gathered."""
    cdef bint outer
    if p.n != 3 or not is_flat(p, 1) or not is_flat(p, 0) and not is_flat(p, 2):
        return False
    outer = is_flat(p, 0)
    flat[0] = p[0]
    flat.n = 2
    flat.taps[0] = flat.stride[0] = flat.dilation[0] = flat.inputs[0] = flat.outputs[0] = 1
    flat.padding[0] = 0
    if outer:
        flat.inputs[1] = p.inputs[0] * p.inputs[1]
        flat.outputs[1] = p.outputs[0] * p.outputs[1]
        return True
    flat.inputs[1], flat.outputs[1], flat.taps[1] = p.inputs[0], p.outputs[0], p.taps[0]
    flat.stride[1], flat.padding[1], flat.dilation[1] = p.stride[0], p.padding[0], p.dilation[0]
    flat.inputs[2] = p.inputs[1] * p.inputs[2]
    flat.outputs[2] = p.outputs[1] * p.outputs[2]
    return True


cdef TensorBase flattened(TensorBase t, bint outer, bint last):
    """A volume or its weight, contiguous or channels_last, as an image: depth and height are one with `outer`, else height and width."""
    cdef int64_t sizes[4]
    cdef int64_t strides[4]
    t = dense_in_format(t, last)
    sizes[0], sizes[1] = t.sizes[0], t.sizes[1]
    sizes[2] = t.sizes[2] * t.sizes[3] if outer else t.sizes[2]
    sizes[3] = t.sizes[4] if outer else t.sizes[3] * t.sizes[4]
    if last:
        channels_last_strides(4, sizes, strides)
    else:
        strides[3], strides[2] = 1, sizes[3]
        strides[1] = sizes[3] * sizes[2]
        strides[0] = strides[1] * sizes[1]
    return make_view(t, 4, sizes, strides, t.offset)


cdef enum:
    PLANES_BYTES = 1 << 23         # about, of planes at a time,
    LEAST_POSITIONS = 16384        # which have so many output positions at least: weights are packed, or transformed, for each part
    LEAST_STRIDED = 2048           # in a strided input's gradient, which neither transforms weights nor splits an image's positions between threads


cdef struct Part:                  # of the planes: of some samples all, or of one sample some
    Plan* p
    int64_t sample, samples, depth, planes


cdef void first_part(int what, Plan* p, int64_t item, Part* part) noexcept:
    """As many planes as fit PLANES_BYTES, in parts alike; the same for any number of threads."""
    cdef int64_t positions = p.s.out_h * p.s.out_w, batch = p.out[0]
    cdef bint strided = what == CONV_INPUT and p.s.stride_h * p.s.stride_w > 1
    cdef int64_t least = ((LEAST_STRIDED if strided else LEAST_POSITIONS) + positions - 1) // positions
    cdef int64_t count = max(least, PLANES_BYTES // (item * (p.s.c_in * p.s.in_h * p.s.in_w + p.s.c_out * positions)))
    part.p = p
    part.sample = part.depth = 0
    part.samples = min(max(count // p.out_d, 1), batch)
    part.samples = parts_alike(batch, part.samples)
    part.planes = parts_alike(p.out_d, min(count, p.out_d))


cdef int64_t parts_alike(int64_t all, int64_t most) noexcept:
    cdef int64_t parts = (all + most - 1) // most
    return (all + parts - 1) // parts


cdef bint next_part(Part* part, const Part* first) noexcept:
    part.depth += part.planes
    if part.depth >= part.p.out_d:
        part.depth = 0
        part.sample += part.samples
    part.samples = min(first.samples, part.p.out[0] - part.sample)
    part.planes = min(first.planes, part.p.out_d - part.depth)
    return part.samples > 0


cdef struct Gather:
    const Part* part
    char* volume
    char* planes
    int64_t channels
    int64_t plane                  # bytes
    bint double_precision


cdef void gather_planes(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Planes [begin, end) of a part: copy those under the kernel, zero where it hangs over."""
    cdef Gather* g = <Gather*>context
    cdef Plan* p = g.part.p
    cdef int64_t at, n, od, c, kd, d
    cdef char* out
    for at in range(begin, end):
        n = g.part.sample + at // g.part.planes
        od = g.part.depth + at % g.part.planes
        for c in range(g.channels):
            for kd in range(p.kernel_d):
                d = od * p.stride_d - p.pad_d + kd * p.dilation_d
                out = g.planes + ((at * g.channels + c) * p.kernel_d + kd) * g.plane
                if 0 <= d < p.depth:
                    memcpy(out, g.volume + ((n * g.channels + c) * p.depth + d) * g.plane, g.plane)
                else:
                    memset(out, 0, g.plane)


cdef void scatter_planes(void* context, int64_t begin, int64_t end) noexcept nogil:
    """Volumes n * C + c in [begin, end) of a part's samples: add the planes back where they came from."""
    cdef Gather* g = <Gather*>context
    cdef Plan* p = g.part.p
    cdef int64_t at, n, od, c, kd, d, i
    cdef const char* source
    cdef char* target
    cdef char* volume
    for at in range(begin, end):
        n = at // g.channels
        c = at % g.channels
        volume = g.volume + ((g.part.sample + n) * g.channels + c) * p.depth * g.plane
        if g.part.depth == 0:
            memset(volume, 0, p.depth * g.plane)
        for od in range(g.part.planes):
            for kd in range(p.kernel_d):
                d = (g.part.depth + od) * p.stride_d - p.pad_d + kd * p.dilation_d
                if d < 0 or d >= p.depth:
                    continue
                source = g.planes + (((n * g.part.planes + od) * g.channels + c) * p.kernel_d + kd) * g.plane
                target = volume + d * g.plane
                if g.double_precision:
                    for i in range(g.plane // 8):
                        (<double*>target)[i] += (<const double*>source)[i]
                else:
                    for i in range(g.plane // 4):
                        (<float*>target)[i] += (<const float*>source)[i]


cdef TensorBase planes_tensor(const Part* part, int dtype, int64_t channels, int64_t h, int64_t w):
    cdef int64_t sizes[4]
    sizes[0] = part.samples * part.planes
    sizes[1] = channels
    sizes[2] = h
    sizes[3] = w
    return empty_tensor(4, sizes, dtype, DEV_CPU)


cdef void set_gather(Gather* g, const Part* part, TensorBase volume, TensorBase planes) noexcept:
    g.part = part
    g.volume = data_of(volume)
    g.planes = data_of(planes)
    g.channels = part.p.s.c_in // part.p.kernel_d
    g.plane = part.p.s.in_h * part.p.s.in_w * ITEM_SIZE[volume.dtype]
    g.double_precision = volume.dtype == F64


cdef int gather(const Part* part, TensorBase volume, TensorBase planes) except -1:
    """A part of x (N, C, D, H, W) as planes (samples * planes, C * KD, H, W)."""
    cdef Gather g
    cdef trt_block* held = volume.storage.block
    set_gather(&g, part, volume, planes)
    trt_block_hold(held)
    with nogil:
        parallel_for(part.samples * part.planes, 1 + GRAIN * 4 // (part.p.s.c_in * g.plane + 1), 1, gather_planes, &g)
    block_drop(held)
    return 0


cdef int scatter(const Part* part, TensorBase planes, TensorBase volume) except -1:
    cdef Gather g
    cdef trt_block* held = volume.storage.block
    set_gather(&g, part, volume, planes)
    trt_block_hold(held)
    with nogil:
        parallel_for(part.samples * g.channels, 1 + GRAIN * 4 // (g.plane * (part.planes + 1) * part.p.kernel_d + 1), 1, scatter_planes, &g)
    block_drop(held)
    return 0


cdef TensorBase part_of_outputs(const Part* part, TensorBase y):
    """A part of y (N, C_out, OD, OH, OW), in any order."""
    cdef int64_t sizes[5]
    cdef int i
    for i in range(5):
        sizes[i] = y.sizes[i]
    sizes[0], sizes[2] = part.samples, part.planes
    return make_view(y, 5, sizes, y.strides, y.offset + part.sample * y.strides[0] + part.depth * y.strides[2])


cdef TensorBase depth_view(const Part* part, TensorBase planes):
    """Planes (samples * planes, C_out, OH, OW) seen as (samples, C_out, planes, OH, OW)."""
    cdef Plan* p = part.p
    cdef int64_t sizes[5]
    cdef int64_t strides[5]
    sizes[0], sizes[1], sizes[2], sizes[3], sizes[4] = part.samples, p.s.c_out, part.planes, p.s.out_h, p.s.out_w
    strides[4] = 1
    strides[3] = p.s.out_w
    strides[1] = p.s.out_w * p.s.out_h
    strides[2] = strides[1] * p.s.c_out
    strides[0] = strides[2] * part.planes
    return make_view(planes, 5, sizes, strides, planes.offset)


cdef int add_to(TensorBase sum, TensorBase term) except -1:
    """sum += term, contiguous float32 or float64."""
    cdef int64_t i
    cdef char* a = data_of(sum)
    cdef const char* b = data_of(term)
    if sum.dtype == F64:
        for i in range(sum.numel):
            (<double*>a)[i] += (<const double*>b)[i]
    else:
        for i in range(sum.numel):
            (<float*>a)[i] += (<const float*>b)[i]
    return 0


cdef int run_volumes(int what, Plan* p, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """run_planes of three dimensions, a part of the planes after the other; out is contiguous, but for the forward pass."""
    cdef Plan some = p[0]
    cdef Part first, part
    cdef TensorBase under, outputs, term
    first_part(what, p, ITEM_SIZE[out.dtype], &first)
    part = first
    under = planes_tensor(&first, out.dtype, p.s.c_in, p.s.in_h, p.s.in_w)
    outputs = planes_tensor(&first, out.dtype, p.s.c_out, p.s.out_h, p.s.out_w)
    term = out if what == CONV_WEIGHT else None
    while True:
        some.s.samples = part.samples * part.planes
        if what == CONV_FORWARD:
            gather(&part, a, under)
            run_planes(what, &some, under, b, bias, outputs, False)
            copy_elements(part_of_outputs(&part, out), depth_view(&part, outputs))
        else:
            copy_elements(depth_view(&part, outputs), part_of_outputs(&part, a))
            if what == CONV_INPUT:
                run_planes(what, &some, outputs, b, None, under, False)
                scatter(&part, under, out)
            else:
                gather(&part, b, under)
                run_planes(what, &some, outputs, under, None, term, False)
                if term is not out:
                    add_to(out, term)
        if not next_part(&part, &first):
            return 0
        if what == CONV_WEIGHT and term is out:
            term = empty_like_tensor(out, out.dtype)


# ---- element types -------------------------------------------------------------------------------------------------

cdef bint is_short(const Plan* p) noexcept:
    """Whether sums in double cost little: not where converting the weight would be most of the work."""
    cdef int64_t positions = p.s.samples * p.s.out_h * p.s.out_w
    cdef int64_t work = positions * p.s.c_out * (p.s.c_in // p.s.groups) * p.s.kernel_h * p.s.kernel_w
    return work <= EXACT_WORK or (positions >= 64 and work <= 6 * EXACT_WORK)


cdef bint wants_last(TensorBase a, TensorBase b) noexcept:
    """Whether one of two images or weights is channels_last: then the result is."""
    return suggests_last(a) or suggests_last(b)


cdef int run_float(int what, Plan* p, bint last, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """float32: short sums in double, rounded once."""
    cdef TensorBase wide
    if not is_short(p):
        return run_real(what, p, last, a, b, bias, out)
    wide = empty_like_tensor(out, F64)
    run_real(what, p, last, cast_to(a, F64), cast_to(b, F64), None if bias is None else cast_to(bias, F64), wide)
    return copy_elements(out, wide)


cdef int run_real(int what, Plan* p, bint last, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """float32, float64 and, with a bias of float32, bfloat16 by pairs; last: out lies in channels_last. Volumes are computed contiguous."""
    cdef TensorBase to = out
    last = last and p.n == 2
    if not last and not out.contiguous and not (p.n == 3 and what == CONV_FORWARD):
        to = empty_tensor(out.ndim, out.sizes, out.dtype, DEV_CPU)
    a = dense_in_format(a, last)
    b = dense_in_format(b, last)
    if bias is not None:
        bias = contiguous_of(bias)
    if p.n < 3:
        run_planes(what, p, a, b, bias, to, last)
    else:
        run_volumes(what, p, a, b, bias, to)
    return 0 if to is out else copy_elements(out, to)


cdef int run_depthwise(int what, Plan* p, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """bfloat16 in channels_last, or turned to it; a weight, and its gradient `out`, are float32."""
    cdef TensorBase to = out if is_channels_last(out) else empty_in_format(out.ndim, out.sizes, out.dtype, DEV_CPU, True)
    run_real(what, p, True, turned(a), turned(b) if what == CONV_WEIGHT else b, bias, to)
    if to is out:
        return 0
    return turn(to, out, False) if what != CONV_WEIGHT and out.contiguous else copy_elements(out, to)


cdef int run_widened(int what, Plan* p, bint last, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """Halves by way of float32; b of the forward pass and the input's gradient, and the weight's gradient, are float32."""
    cdef TensorBase wide = out if what == CONV_WEIGHT else empty_like_tensor(out, F32)
    run_real(what, p, last, cast_to(a, F32), cast_to(b, F32), bias, wide)
    return 0 if wide is out else copy_elements(out, wide)


cdef int run_halves(int what, Plan* p, bint last, bint depthwise, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """Some samples at a time, whose copies in another type or order stay in a cache; the same for any number of threads."""
    cdef Plan some = p[0]
    cdef TensorBase other, result, sum = None
    cdef int64_t samples = a.sizes[0], begin = 0, count, weight = out.numel if what == CONV_WEIGHT else b.numel
    cdef int64_t of_sample = 4 * (a.numel + (b.numel if what == CONV_WEIGHT else out.numel)) // max(samples, 1)
    count = samples if p.n > 2 else parts_alike(samples, min(max(max(GROUP_BYTES, GROUP_WEIGHTS * weight) // max(of_sample, 1), 1), samples))
    if what != CONV_WEIGHT:
        b = cast_to(b, F32)
    bias = None if bias is None else cast_to(bias, F32)
    while begin < samples:
        count = min(count, samples - begin)
        if p.n <= 2:
            some.s.samples = some.out[0] = count
        other = samples_of(b, begin, count) if what == CONV_WEIGHT else b
        result = empty_like_tensor(out, F32) if what == CONV_WEIGHT else samples_of(out, begin, count)
        if depthwise:
            run_depthwise(what, &some, samples_of(a, begin, count), other, bias, result)
        else:
            run_widened(what, &some, last, samples_of(a, begin, count), other, bias, result)
        if what == CONV_WEIGHT:
            if sum is None:
                sum = result
            else:
                add_to(sum, result)
        begin += count
    return copy_elements(out, sum) if what == CONV_WEIGHT else 0


cdef TensorBase real_of(int what, Plan* p, bint last, TensorBase a, TensorBase b, TensorBase out):
    """The same as a new tensor that lies as `out` does."""
    cdef TensorBase r = empty_like_tensor(out, a.dtype)
    run_real(what, p, last, a, b, None, r)
    return r


cdef void direct_i64(int what, const Plan* p, const int64_t* y, const int64_t* x, const int64_t* w, int64_t* result) noexcept nogil:
    """The trilinear sum over all (output position, kernel position) pairs, into y, x or w (zeroed before)."""
    cdef int64_t kd_ = p.kernel_d
    cdef int64_t samples = p.s.samples // p.out_d
    cdef int64_t c_in = p.s.c_in // kd_, per_in = c_in // p.s.groups, per_out = p.s.c_out // p.s.groups
    cdef int64_t n, o, i, od, oh, ow, kd, kh, kw, d, h, v, at_y, at_x, at_w
    for n in range(samples):
        for o in range(p.s.c_out):
            for i in range(per_in):
                for kd in range(kd_):
                    for kh in range(p.s.kernel_h):
                        for kw in range(p.s.kernel_w):
                            at_w = (((o * per_in + i) * kd_ + kd) * p.s.kernel_h + kh) * p.s.kernel_w + kw
                            for od in range(p.out_d):
                                d = od * p.stride_d - p.pad_d + kd * p.dilation_d
                                if d < 0 or d >= p.depth:
                                    continue
                                for oh in range(p.s.out_h):
                                    h = oh * p.s.stride_h - p.s.pad_h + kh * p.s.dilation_h
                                    if h < 0 or h >= p.s.in_h:
                                        continue
                                    for ow in range(p.s.out_w):
                                        v = ow * p.s.stride_w - p.s.pad_w + kw * p.s.dilation_w
                                        if v < 0 or v >= p.s.in_w:
                                            continue
                                        at_y = (((n * p.s.c_out + o) * p.out_d + od) * p.s.out_h + oh) * p.s.out_w + ow
                                        at_x = (((n * c_in + o // per_out * per_in + i) * p.depth + d) * p.s.in_h + h) * p.s.in_w + v
                                        if what == CONV_FORWARD:
                                            result[at_y] += x[at_x] * w[at_w]
                                        elif what == CONV_INPUT:
                                            result[at_x] += y[at_y] * w[at_w]
                                        else:
                                            result[at_w] += y[at_y] * x[at_x]


cdef TensorBase run_integer(int what, Plan* p, TensorBase a, TensorBase b, TensorBase like):
    cdef TensorBase out = empty_tensor(like.ndim, like.sizes, I64, DEV_CPU)
    cdef const int64_t* pa
    cdef const int64_t* pb
    cdef int64_t* po = <int64_t*>data_of(out)
    cdef trt_block* held[2]
    a = contiguous_of(cast_to(a, I64))
    b = contiguous_of(cast_to(b, I64))
    pa = <const int64_t*>data_of(a)
    pb = <const int64_t*>data_of(b)
    memset(po, 0, out.numel * 8)
    held[0] = a.storage.block
    held[1] = b.storage.block
    trt_block_hold(held[0])
    trt_block_hold(held[1])
    with nogil:
        if what == CONV_FORWARD:
            direct_i64(what, p, NULL, pa, pb, po)
        elif what == CONV_INPUT:
            direct_i64(what, p, pa, NULL, pb, po)
        else:
            direct_i64(what, p, pa, pb, NULL, po)
    block_drop(held[0])
    block_drop(held[1])
    return out


cdef TensorBase part_of(TensorBase z, int which):
    """The real (0) or imaginary (1) part of a complex tensor, copied."""
    cdef int64_t strides[MAX_DIMS]
    cdef int i
    cdef TensorBase v, r
    for i in range(z.ndim):
        strides[i] = 2 * z.strides[i]
    v = make_view(z, z.ndim, z.sizes, strides, 2 * z.offset + which)
    set_dtype(v, to_real(z.dtype))
    r = empty_tensor(z.ndim, z.sizes, v.dtype, DEV_CPU)
    copy_elements(r, v)
    return r


cdef object run_complex(int what, Plan* p, bint last, TensorBase a, TensorBase b, TensorBase out):
    cdef TensorBase ar = part_of(a, 0), ai = part_of(a, 1), br = part_of(b, 0), bi = part_of(b, 1)
    if a.dtype == C64 and is_short(p):
        ar, ai, br, bi = cast_to(ar, F64), cast_to(ai, F64), cast_to(br, F64), cast_to(bi, F64)
    re = _ops.sub(real_of(what, p, last, ar, br, out), real_of(what, p, last, ai, bi, out))
    im = _ops.add(real_of(what, p, last, ar, bi, out), real_of(what, p, last, ai, br, out))
    return _ops.view_as_complex(_ops.stack([re, im], -1))


cdef int convolve_cpu(int what, const ConvProblem* problem, bint last, TensorBase a, TensorBase b, TensorBase bias, TensorBase out) except -1:
    """grad mode is off around the operators that the rare types are composed of."""
    cdef int code = a.dtype
    cdef trt_thread_state* state = tls()
    cdef int saved_mode = state.grad_mode
    cdef Plan plan
    cdef Plan* p = &plan
    cdef ConvProblem flat
    cdef bint outer
    cdef int way
    if problem.n == 3 or a.numel >= 4096 or b.numel >= 4096:
        # a stage that gives up the GIL comes before another one that reads the operands
        a, b, bias = held(a), held(b), held(bias)
    if flattens(problem, &flat):
        outer = is_flat(problem, 0)
        return convolve_cpu(what, &flat, last, flattened(a, outer, last), flattened(b, outer, last), bias, flattened(out, outer, last))
    if takes_pairs(what, problem, code, last):
        make_plan(p, problem)
        return run_real(what, p, last, a, b, None if bias is None else cast_to(bias, F32), out)
    if code == BF16 and problem.n == 2 and problem.groups > 1 and problem.groups == problem.c_in == problem.c_out:
        make_plan(p, problem)
        return run_halves(what, p, True, True, held(a), held(b), held(bias), out)
    way = BY_KERNELS if last else gemm_way(what, problem, code)
    if way != BY_KERNELS:
        return gemm_pass(TABLE, way, what, problem, held(a), held(b), held(bias), out)
    if last and takes_rows(problem, code):
        return rows_pass(TABLE, what, problem, dense_in_format(a, True), dense_in_format(b, True), bias, out)
    if takes_tiles(what, problem, code):
        return tiles_pass(what, problem, last, a, b, bias, out)
    make_plan(p, problem)
    if code == F32:
        return run_float(what, p, last, a, b, bias, out)
    if code == F64:
        return run_real(what, p, last, a, b, bias, out)
    if code == F16 or code == BF16:
        return run_halves(what, p, last, False, a, b, bias, out)
    state.grad_mode = 0
    try:
        if code == C64 or code == C128:
            result = run_complex(what, p, last, a, b, out)
        else:
            result = run_integer(what, p, a, b, out)
        if bias is not None:
            # rounded to the type before the bias is added, as a sum of tensors is
            result = _ops.add(cast_to(<TensorBase?>result, code), bias.detach().reshape((-1,) + (1,) * (out.ndim - 2)))
        return copy_elements(out, <TensorBase?>result)
    finally:
        state.grad_mode = saved_mode


set_convolve(DEV_CPU, convolve_cpu)


cdef TensorBase run(int what, const ConvProblem* p, TensorBase a, TensorBase b, TensorBase bias, int ndim, const int64_t* sizes):
    """The result of a pass, in channels_last when one of the operands is."""
    cdef bint last = wants_last(a, b)
    cdef TensorBase out
    if a.dtype == BOOL:
        raise NotImplementedError("\"convolution\" not implemented for 'Bool'")
    if product(ndim, sizes) == 0 or a.numel == 0 or b.numel == 0:
        return without_work(ndim, sizes, a, bias)
    out = empty_in_format(ndim, sizes, a.dtype, place_of(a), last)
    run_convolve(a.device_type, what, p, last, a, b, bias, out)
    return out


cdef int check_types(TensorBase a, TensorBase b, str name) except -1:
    if a.dtype != b.dtype:
        raise RuntimeError(f"Input type ({(<str>dtype_of(a.dtype).name)}) and {name} type ({(<str>dtype_of(b.dtype).name)}) should be the same")
    return 0


cdef int64_t product(int n, const int64_t* sizes) noexcept:
    cdef int64_t r = 1
    cdef int i
    for i in range(n):
        r *= sizes[i]
    return r


cdef TensorBase without_work(int ndim, const int64_t* sizes, TensorBase like, TensorBase bias):
    """The result of a convolution that has no products to add: zeros, or the bias."""
    cdef TensorBase r = empty_tensor(ndim, sizes, like.dtype, place_of(like))
    cdef int64_t strides[5]
    cdef Scalar zero
    cdef int i
    zero.kind = 1
    zero.i = 0
    zero.d = zero.im = 0
    if bias is None:
        fill_elements(r, &zero)
    else:
        for i in range(ndim):
            strides[i] = 0
        strides[1] = bias.strides[0]
        copy_elements(r, make_view(bias, ndim, sizes, strides, bias.offset))
    return r


cdef TensorBase conv_forward(TensorBase input, TensorBase weight, TensorBase bias, const Dims* stride, const Dims* padding, const Dims* dilation, int64_t groups):
    cdef ConvProblem p
    cdef int64_t y[5]
    if weight.ndim != input.ndim:
        raise RuntimeError(f"expected stride to be a single integer value or a list of {input.ndim - 2} values to match the convolution dimensions: weight of size {sizes_text(weight.ndim, weight.sizes)}, input of size {sizes_text(input.ndim, input.sizes)}")
    set_problem(&p, input.ndim, input.sizes, weight.sizes, stride, padding, dilation, groups, y)
    check_types(input, weight, "weight")
    if bias is not None:
        if bias.ndim != 1 or bias.sizes[0] != weight.sizes[0]:
            raise RuntimeError(f"Given weight of size {sizes_text(weight.ndim, weight.sizes)}, expected bias to be 1-dimensional with {weight.sizes[0]} elements, but got bias of size {sizes_text(bias.ndim, bias.sizes)} instead")
        check_types(input, bias, "bias")
    checked_numel(input.ndim, y)
    return run(CONV_FORWARD, &p, input, weight, bias, input.ndim, y)


cdef int check_output(ConvProblem* p, TensorBase grad, const int64_t* y) except -1:
    """Take y's sizes from its gradient: a transposed convolution whose output_padding reaches its stride has fewer than the convolution would."""
    cdef int i
    cdef bint fits = grad.ndim == p.n + 2 and grad.sizes[0] == y[0] and grad.sizes[1] == y[1]
    for i in range(p.n):
        fits = fits and grad.sizes[2 + i] <= y[2 + i] and (grad.sizes[2 + i] > 0 or y[2 + i] == 0)
    if not fits:
        raise RuntimeError(f"convolution: expected a gradient of size {sizes_text(p.n + 2, y)}, but got {sizes_text(grad.ndim, grad.sizes)}")
    for i in range(p.n):
        p.outputs[3 - p.n + i] = grad.sizes[2 + i]
    return 0


cdef TensorBase conv_input(TensorBase grad_output, TensorBase weight, const Dims* size, const Dims* stride, const Dims* padding, const Dims* dilation, int64_t groups):
    cdef ConvProblem p
    cdef int64_t y[5]
    if weight.ndim != size.n:
        raise RuntimeError(f"convolution: weight of size {sizes_text(weight.ndim, weight.sizes)} does not fit an input of size {sizes_text(size.n, size.v)}")
    checked_numel(size.n, size.v)
    set_problem(&p, size.n, size.v, weight.sizes, stride, padding, dilation, groups, y)
    check_output(&p, grad_output, y)
    check_types(grad_output, weight, "weight")
    return run(CONV_INPUT, &p, grad_output, weight, None, size.n, size.v)


cdef TensorBase conv_weight(TensorBase grad_output, TensorBase input, const Dims* size, const Dims* stride, const Dims* padding, const Dims* dilation, int64_t groups):
    cdef ConvProblem p
    cdef int64_t y[5]
    if input.ndim != size.n:
        raise RuntimeError(f"convolution: input of size {sizes_text(input.ndim, input.sizes)} does not fit a weight of size {sizes_text(size.n, size.v)}")
    checked_numel(size.n, size.v)
    set_problem(&p, size.n, input.sizes, size.v, stride, padding, dilation, groups, y)
    check_output(&p, grad_output, y)
    check_types(grad_output, input, "input")
    return run(CONV_WEIGHT, &p, grad_output, input, None, size.n, size.v)


# ---- entries -------------------------------------------------------------------------------------------------------

cdef int all_of(const Dims* d, int64_t value) noexcept:
    cdef int i
    for i in range(d.n):
        if d.v[i] != value:
            return 0
    return 1


cdef object same_padding(TensorBase x, TensorBase weight, const Dims* stride, const Dims* dilation, int n, Dims* padding):
    """padding='same': symmetric padding, and one more element at the end where the total is odd."""
    cdef int i
    cdef int64_t total, d
    cdef bint odd = False
    cdef list extra = [0] * (2 * n)
    if not all_of(stride, 1):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    padding.n = n
    for i in range(n):
        d = dilation.v[i] if dilation.n == n else dilation.v[0]
        total = d * (weight.sizes[2 + i] - 1)
        padding.v[i] = total // 2
        if total % 2:
            from tensorrt_lite._C.core.warning import warn_once
            warn_once("Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be created")
            extra[2 * (n - 1 - i) + 1] = 1
            odd = True
    return _ops.constant_pad_nd(x, extra, 0) if odd else x


cdef object convolve(int n, str name, object input, object weight, object bias, object stride, object padding, object dilation, object groups):
    cdef Dims st, pad, dil, extra
    cdef int i
    cdef TensorBase x = as_tensor_arg(input, name, "input"), w = as_tensor_arg(weight, name, "weight"), b
    cdef int64_t g = parse_int(groups, name, "groups")
    cdef bint unbatched = x.ndim == n + 1
    b = None if bias is None else as_tensor_arg(bias, name, "bias")
    parse_dims(stride, &st, name, "stride")
    parse_dims(dilation, &dil, name, "dilation")
    if not unbatched and x.ndim != n + 2:
        raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {sizes_text(x.ndim, x.sizes)}")
    if w.ndim != n + 2:
        raise RuntimeError(f"{name}: expected weight of {n + 2} dimensions, but got weight of size {sizes_text(w.ndim, w.sizes)}")
    if unbatched:
        x = <TensorBase?>_ops.unsqueeze(x, 0)
    if isinstance(padding, str):
        if padding == "valid":
            pad.n = 1
            pad.v[0] = 0
        elif padding == "same":
            x = <TensorBase>same_padding(x, w, &st, &dil, n, &pad)
        else:
            raise RuntimeError(f"Invalid padding string: '{padding}'")
    else:
        parse_dims(padding, &pad, name, "padding")
    st.n = spread(&st, n)
    pad.n = spread(&pad, n)
    dil.n = spread(&dil, n)
    extra.n = n
    for i in range(n):
        extra.v[i] = 0
    r = op_convolution(x, w, b, &st, &pad, &dil, False, &extra, g)
    return r.squeeze(0) if unbatched else r


cdef int spread(Dims* d, int n) noexcept:
    """One value of all dimensions as `n`."""
    cdef int i
    if d.n != 1:
        return d.n
    for i in range(1, n):
        d.v[i] = d.v[0]
    return n


cdef object transposed(int n, str name, object input, object weight, object bias, object stride, object padding, object output_padding, object groups, object dilation):
    cdef Dims st, pad, dil, extra
    cdef TensorBase x = as_tensor_arg(input, name, "input"), w = as_tensor_arg(weight, name, "weight"), b
    cdef int64_t g = parse_int(groups, name, "groups")
    cdef bint unbatched = x.ndim == n + 1
    b = None if bias is None else as_tensor_arg(bias, name, "bias")
    parse_dims(stride, &st, name, "stride")
    parse_dims(padding, &pad, name, "padding")
    parse_dims(dilation, &dil, name, "dilation")
    parse_dims(output_padding, &extra, name, "output_padding")
    if not unbatched and x.ndim != n + 2:
        raise RuntimeError(f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {name}, but got input of size: {sizes_text(x.ndim, x.sizes)}")
    if w.ndim != n + 2:
        raise RuntimeError(f"{name}: expected weight of {n + 2} dimensions, but got weight of size {sizes_text(w.ndim, w.sizes)}")
    if unbatched:
        x = <TensorBase?>_ops.unsqueeze(x, 0)
    st.n, pad.n, dil.n, extra.n = spread(&st, n), spread(&pad, n), spread(&dil, n), spread(&extra, n)
    r = op_convolution(x, w, b, &st, &pad, &dil, True, &extra, g)
    return r.squeeze(0) if unbatched else r


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution of `input: (N, C, L)` or (C, L) with `weight: (O, C / groups, K)`; padding may be 'same' or 'valid'."""
    return convolve(1, "conv1d", input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution of `input: (N, C, H, W)` or (C, H, W) with `weight: (O, C / groups, KH, KW)`; padding may be 'same' or 'valid'."""
    return convolve(2, "conv2d", input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Convolution of `input: (N, C, D, H, W)` or (C, D, H, W) with `weight: (O, C / groups, KD, KH, KW)`."""
    return convolve(3, "conv3d", input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The adjoint of conv1d: `input: (N, C, L)`, `weight: (C, O / groups, K)`."""
    return transposed(1, "conv_transpose1d", input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The adjoint of conv2d: `input: (N, C, H, W)`, `weight: (C, O / groups, KH, KW)`."""
    return transposed(2, "conv_transpose2d", input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
    """The adjoint of conv3d: `input: (N, C, D, H, W)`, `weight: (C, O / groups, KD, KH, KW)`."""
    return transposed(3, "conv_transpose3d", input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_tbc(input, weight, bias, pad=0):
    """Convolution over time of `input: (T, B, C)` with `weight: (K, C, O)`, bias (O): (T', B, O)."""
    as_tensor_arg(input, "conv_tbc", "input")
    as_tensor_arg(weight, "conv_tbc", "weight")
    as_tensor_arg(bias, "conv_tbc", "bias")
    if input.dim() != 3 or weight.dim() != 3 or bias.dim() != 1:
        raise RuntimeError("conv_tbc: expected input (T, B, C), weight (K, C, O) and bias (O)")
    return conv1d(input.permute(1, 2, 0), weight.permute(2, 1, 0), bias, 1, pad).permute(2, 0, 1)
