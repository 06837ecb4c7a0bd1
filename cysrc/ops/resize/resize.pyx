# Kernels of resampling over loops/resize.h: interpolation in one to three dimensions, grid sampling, sliding windows.
from tensorrt_lite._C.core.memory_format cimport dense_in_format, empty_in_format, suggests_last
from tensorrt_lite._C.ops.resize.shapes cimport GridArgs, WindowArgs
from tensorrt_lite._C.steps.resize cimport (
    run_resample, run_sample_grid, run_window_columns, run_window_images, set_resample, set_sample_grid, set_window_columns, set_window_images)

cdef extern from "resize.h" nogil:
    enum:
        RESIZE_NEAREST
        RESIZE_NEAREST_EXACT
        RESIZE_LINEAR
        RESIZE_CUBIC
        RESIZE_LANCZOS
        GRID_BILINEAR
        GRID_NEAREST
        GRID_BICUBIC
        GRID_REFLECTION
    ctypedef struct ResizeAxis:
        int64_t sources "in"
        int64_t out, span, taps
        const int64_t* start
        const int32_t* index
        const void* weight
        const char* used
    ctypedef struct ResizeRule:
        int kind, align_corners, antialias, is_double
        double scale
        int64_t sources "in"
        int64_t out
    ctypedef struct ResizeArgs:
        const char* x
        char* y
        char* scratch
        int64_t worker_bytes, workers, planes, inner
        ResizeAxis axis[3]
        int dtype

ctypedef int64_t (*taps_fn)(const ResizeRule*) noexcept nogil
ctypedef int64_t (*table_fn)(const ResizeRule*, int, int64_t*, int32_t*, void*) noexcept nogil
ctypedef int64_t (*resize_scratch_fn)(const ResizeArgs*) noexcept nogil

cdef extern from *:
    """
    ISA_FUNCTION(int64_t, resize_taps, (const ResizeRule*))
    ISA_FUNCTION(int64_t, resize_table, (const ResizeRule*, int, int64_t*, int32_t*, void*))
    ISA_FUNCTION(int64_t, resize_scratch, (const ResizeArgs*))
    ISA_TASK(resize_planes)
    typedef void (*trt_grid_fn)(void*, int64_t, int64_t);
    ISA_TABLE(trt_grid_fn, trt_grid_tasks)
    ISA_TASK(window_columns)
    ISA_TASK(window_images)
    """
    taps_fn trt_resize_taps "resize_taps"()
    table_fn trt_resize_table "resize_table"()
    resize_scratch_fn trt_resize_scratch "resize_scratch"()
    task_fn trt_resize_planes "resize_planes"()
    const task_fn* trt_grid_tasks()
    task_fn trt_window_columns "window_columns"()
    task_fn trt_window_images "window_images"()

cdef taps_fn resize_taps = trt_resize_taps()
cdef table_fn resize_table = trt_resize_table()
cdef resize_scratch_fn resize_scratch = trt_resize_scratch()
cdef task_fn resize_planes = trt_resize_planes()
cdef const task_fn* GRID_TASKS = trt_grid_tasks()     # forward, gradient of the input, of the grid; each float, double
cdef task_fn window_columns = trt_window_columns()
cdef task_fn window_images = trt_window_images()


# ---- interpolation -------------------------------------------------------------------------------------------------

cdef object make_axis(ResizeAxis* t, const ResizeRule* rule, bint transposed):
    """The table of one dimension; returns the tensors that hold it."""
    cdef int64_t room = resize_taps(rule), results = rule.sources if transposed else rule.out, sources = rule.out if transposed else rule.sources
    cdef int64_t i, k, low, high, count = results + 1, spare = room + 1
    cdef TensorBase start = empty_tensor(1, &count, I64, DEV_CPU), index = empty_tensor(1, &spare, I32, DEV_CPU)
    cdef TensorBase weight = empty_tensor(1, &spare, F64 if rule.is_double else F32, DEV_CPU), used = empty_tensor(1, &sources, U8, DEV_CPU)
    cdef int64_t* s = <int64_t*>data_of(start)
    cdef int32_t* at = <int32_t*>data_of(index)
    cdef char* mark = data_of(used)
    # a transposed table builds one result's taps behind its own
    resize_table(rule, transposed, s, at, data_of(weight))
    memset(mark, 0, sources)
    t.sources = sources
    t.out = results
    t.span = 1
    t.taps = s[1]
    for i in range(results):
        if s[i + 1] - s[i] != t.taps:
            t.taps = 0
        if s[i] == s[i + 1]:
            continue
        low = high = at[s[i]]
        for k in range(s[i], s[i + 1]):
            low = min(low, <int64_t>at[k])
            high = max(high, <int64_t>at[k])
            mark[at[k]] = 1
        t.span = max(t.span, high - low + 1)
    t.start = s
    t.index = at
    t.weight = data_of(weight)
    t.used = mark
    return (start, index, weight, used)


cdef int no_axis(ResizeAxis* t, TensorBase ones) noexcept:
    """A dimension of size 1 that stays; `ones` is [0, 1, 1.0 as REAL, 0, 1] in bytes of 8."""
    cdef char* p = data_of(ones)
    t.sources = t.out = t.span = t.taps = 1
    t.start = <int64_t*>p
    t.weight = p + 16
    t.index = <int32_t*>(p + 24)
    t.used = p + 32
    return 0


cdef int64_t axis_scale(object scales, int k, double* scale) except -1:
    value = None if scales is None else scales[k]
    scale[0] = 0.0 if value is None else value
    return 0


cdef int resample_cpu(TensorBase x, TensorBase y, int kind, object scales, bint align_corners, bint antialias, bint transposed) except -1:
    cdef ResizeArgs a
    cdef ResizeRule rule
    cdef int k, n = x.ndim - 2
    cdef bint last = not (x.contiguous and y.contiguous)    # where one of them is 1 x 1 it is both
    cdef int64_t ones_size = 5, work
    cdef TensorBase ones = empty_tensor(1, &ones_size, I64, DEV_CPU)
    cdef trt_block* scratch
    cdef list held = []
    memset(data_of(ones), 0, 40)
    (<int64_t*>data_of(ones))[1] = 1
    if x.dtype == F64:
        (<double*>data_of(ones))[2] = 1
    else:
        (<float*>data_of(ones))[4] = 1
    data_of(ones)[32] = 1
    a.dtype = x.dtype
    a.x = data_of(x)
    a.y = data_of(y)
    a.inner = x.sizes[1] if last else 1
    a.planes = x.sizes[0] * (1 if last else x.sizes[1])
    rule.kind = kind
    rule.align_corners = align_corners
    rule.antialias = antialias
    rule.is_double = x.dtype == F64
    for k in range(3):
        if k < 3 - n:
            no_axis(&a.axis[k], ones)
            continue
        rule.sources = (y if transposed else x).sizes[2 + k - (3 - n)]
        rule.out = (x if transposed else y).sizes[2 + k - (3 - n)]
        axis_scale(scales, k - (3 - n), &rule.scale)
        held.append(make_axis(&a.axis[k], &rule, transposed))
    work = x.numel + y.numel
    a.workers = min(<int64_t>num_threads(), a.planes) if work >= GRAIN // 4 else 1
    a.worker_bytes = resize_scratch(&a)
    scratch = block_alloc(a.worker_bytes * a.workers)
    a.scratch = scratch.data
    run_held(resize_planes, &a, a.workers, work * (GRAIN if a.workers > 1 else 1), x, y)
    block_drop(scratch)
    return 0


set_resample(DEV_CPU, resample_cpu)


def _axis_table(int kind, bint align_corners, bint antialias, bint is_double, double scale, int64_t sources, int64_t out, bint transposed):
    """(start, index, weight) of one dimension, on the host."""
    cdef ResizeRule rule
    cdef ResizeAxis axis
    rule.kind, rule.align_corners, rule.antialias, rule.is_double = kind, align_corners, antialias, is_double
    rule.scale, rule.sources, rule.out = scale, sources, out
    return make_axis(&axis, &rule, transposed)[:3]


cdef TensorBase fresh_image(TensorBase like, const int64_t* sizes, bint last):
    checked_numel(like.ndim, sizes)
    return empty_in_format(like.ndim, sizes, like.dtype, place_of(like), last)


cdef int check_sizes(TensorBase x, int n, const int64_t* size, str name) except -1:
    cdef int k
    for k in range(n):
        if size[k] <= 0 or x.sizes[2 + k] <= 0:
            raise RuntimeError(f"Input and output sizes should be greater than 0, but got input of size {shape_text(x)} and output {[size[i] for i in range(n)]} ({name})")
        if size[k] >= (<int64_t>1 << 31) or x.sizes[2 + k] >= (<int64_t>1 << 31):
            raise RuntimeError(f"{name}: dimensions of 2**31 elements and more are not supported")
    return 0


cdef int check_image_type(TensorBase x, int kind, bint antialias, str name) except -1:
    if category[x.dtype] != CAT_FLOAT and not (x.dtype == U8 and (kind <= RESIZE_NEAREST_EXACT or x.ndim == 4)):
        raise NotImplementedError(f"\"{name}\" not implemented for '{dtype_text(x.dtype)}'")
    return 0


cdef TensorBase resize_impl(TensorBase self, int64_t kind, const Dims* size, object scales, bint align_corners, bint antialias):
    cdef int64_t sizes[MAX_DIMS]
    cdef int k
    cdef bint last = suggests_last(self)
    cdef TensorBase y
    if self.ndim < 3 or self.ndim > 5 or size.n != self.ndim - 2:
        raise RuntimeError(f"upsample: It is expected output_size equals to {self.ndim - 2}, but got size {size.n}")
    check_sizes(self, size.n, size.v, "upsample")
    check_image_type(self, kind, antialias, "upsample")
    for k in range(self.ndim):
        sizes[k] = self.sizes[k] if k < 2 else size.v[k - 2]
    y = fresh_image(self, sizes, last)
    if y.numel:
        run_resample(self.device_type, dense_in_format(self, last), y, kind, scales, align_corners, antialias, False)
    return y


cdef TensorBase resize_backward_impl(TensorBase grad_output, const Dims* input_size, int64_t kind, object scales, bint align_corners, bint antialias):
    cdef bint last = suggests_last(grad_output) and (kind == RESIZE_LINEAR or kind <= RESIZE_NEAREST_EXACT and grad_output.ndim == 4)      # of PyTorch's these alone keep it
    cdef TensorBase gx
    if input_size.n != grad_output.ndim or grad_output.ndim < 3 or grad_output.ndim > 5 or grad_output.sizes[0] != input_size.v[0] or grad_output.sizes[1] != input_size.v[1]:
        raise RuntimeError(f"upsample_backward: a gradient of shape {shape_text(grad_output)} does not fit an input of {list(dims_tuple(input_size))}")
    check_sizes(grad_output, grad_output.ndim - 2, input_size.v + 2, "upsample_backward")
    if category[grad_output.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"upsample_backward\" not implemented for '{dtype_text(grad_output.dtype)}'")
    gx = fresh_image(grad_output, input_size.v, last)
    if gx.numel:
        run_resample(gx.device_type, dense_in_format(grad_output, last), gx, kind, scales, align_corners, antialias, True)
    return gx


# ---- grids ---------------------------------------------------------------------------------------------------------

cdef TensorBase compute_typed(TensorBase t):
    """Contiguous, float for the half types."""
    return contiguous_of(cast_to(t, F32) if t.dtype == F16 or t.dtype == BF16 else t)


cdef int check_grid(TensorBase x, TensorBase grid, int64_t mode, int64_t padding) except -1:
    cdef int k
    if x.ndim != 4 and x.ndim != 5 or grid.ndim != x.ndim:
        raise RuntimeError(f"grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {shape_text(x)} and grid with sizes {shape_text(grid)}")
    if x.dtype != grid.dtype:
        raise RuntimeError(f"grid_sampler(): expected input and grid to have the same dtype, but input has {dtype_text(x.dtype)} and grid has {dtype_text(grid.dtype)}")
    if x.sizes[0] != grid.sizes[0]:
        raise RuntimeError(f"grid_sampler(): expected grid and input to have same batch size, but got input with sizes {shape_text(x)} and grid with sizes {shape_text(grid)}")
    if grid.sizes[grid.ndim - 1] != x.ndim - 2:
        raise RuntimeError(f"grid_sampler(): expected grid to have size {x.ndim - 2} in last dimension, but got grid with sizes {shape_text(grid)}")
    for k in range(2, x.ndim):
        if x.sizes[k] <= 0:
            raise RuntimeError(f"grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes {shape_text(x)} with dimension {k} being empty")
    if not 0 <= mode <= 2 or not 0 <= padding <= 2:
        raise RuntimeError(f"grid_sampler(): unknown interpolation mode {mode} or padding mode {padding}")
    if mode == GRID_BICUBIC and x.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if category[x.dtype] != CAT_FLOAT:
        raise NotImplementedError(f"\"grid_sampler\" not implemented for '{dtype_text(x.dtype)}'")
    if x.numel // max(x.sizes[0] * x.sizes[1], <int64_t>1) >= (<int64_t>1 << 31):
        raise RuntimeError("grid_sampler(): planes of 2**31 elements and more are not supported")
    return 0


cdef void set_grid(GridArgs* a, TensorBase x, TensorBase grid, int64_t mode, int64_t padding, bint align_corners) noexcept:
    cdef int k
    a.dims = x.ndim - 2
    a.samples = x.sizes[0]
    a.channels = x.sizes[1]
    a.size[0] = 1
    for k in range(a.dims):
        a.size[3 - a.dims + k] = x.sizes[2 + k]
    a.positions = 1
    for k in range(1, grid.ndim - 1):
        a.positions *= grid.sizes[k]
    a.mode = mode
    a.padding = padding
    a.align_corners = align_corners


cdef int sample_grid_cpu(const GridArgs* shape, TensorBase x, TensorBase grid, TensorBase gy, TensorBase result, bint of_input) except -1:
    cdef GridArgs a = shape[0]
    cdef int64_t blocks = a.samples * ((a.positions + 63) // 64)
    cdef TensorBase source = compute_typed(x), at = compute_typed(grid), to = result, g
    cdef bint wide = source.dtype == F64
    if result.dtype != source.dtype:
        to = empty_tensor(result.ndim, result.sizes, source.dtype, DEV_CPU)
    a.x, a.grid, a.y = data_of(source), data_of(at), data_of(to)
    if gy is None:
        run_held(GRID_TASKS[wide], &a, blocks, 8 * to.numel, source, to, at)
    else:
        g = compute_typed(gy)
        a.gy = data_of(g)
        a.gx = a.ggrid = data_of(to)
        memset(data_of(to), 0, to.numel * ITEM_SIZE[to.dtype])
        run_held(GRID_TASKS[(2 if of_input else 4) + wide], &a, a.samples * a.channels if of_input else blocks, 8 * g.numel, source, to, at, g)
    return 0 if to is result else copy_elements(result, to)


set_sample_grid(DEV_CPU, sample_grid_cpu)


cdef TensorBase grid_sampler_impl(TensorBase input, TensorBase grid, int64_t interpolation_mode, int64_t padding_mode, bint align_corners):
    cdef GridArgs a
    cdef int64_t sizes[MAX_DIMS]
    cdef int k
    cdef TensorBase y
    check_grid(input, grid, interpolation_mode, padding_mode)
    for k in range(input.ndim):
        sizes[k] = input.sizes[k] if k < 2 else grid.sizes[k - 1]
    checked_numel(input.ndim, sizes)
    y = empty_tensor(input.ndim, sizes, input.dtype, place_of(input))
    set_grid(&a, input, grid, interpolation_mode, padding_mode, align_corners)
    if y.numel:
        run_sample_grid(input.device_type, &a, contiguous_of(input), contiguous_of(grid), None, y, False)
    return y


cdef TensorBase grid_sampler_backward_impl(TensorBase grad_output, TensorBase input, TensorBase grid, int64_t interpolation_mode, int64_t padding_mode,
                                           bint align_corners, bint of_input):
    cdef GridArgs a
    cdef Scalar zero
    cdef int k
    cdef TensorBase r
    check_grid(input, grid, interpolation_mode, padding_mode)
    for k in range(input.ndim):
        if grad_output.ndim != input.ndim or grad_output.dtype != input.dtype or grad_output.sizes[k] != (input.sizes[k] if k < 2 else grid.sizes[k - 1]):
            raise RuntimeError(f"grid_sampler_backward: a gradient of shape {shape_text(grad_output)} does not fit an input of {shape_text(input)} and a grid of {shape_text(grid)}")
    r = empty_tensor(input.ndim, (input if of_input else grid).sizes, input.dtype, place_of(input))
    set_grid(&a, input, grid, interpolation_mode, padding_mode, align_corners)
    if r.numel and grad_output.numel:
        run_sample_grid(input.device_type, &a, contiguous_of(input), contiguous_of(grid), contiguous_of(grad_output), r, of_input)
    elif r.numel:
        zero.kind = 1
        zero.i = 0
        zero.d = zero.im = 0
        fill_elements(r, &zero)
    return r


cdef object grid_gradient(object grad, object input, object grid, int64_t mode, int64_t padding, bint align_corners, bint of_input):
    """By the kernel, or, where it is differentiated again, by recorded operators."""
    if grad_mode():
        return _ops._grid_sampler_gradient(grad, input, grid, mode, padding, align_corners, of_input)
    return _ops._grid_sampler_backward(grad, input, grid, mode, padding, align_corners, of_input)


def grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sampler of images (N, C, H, W)."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners):
    """grid_sampler of volumes (N, C, D, H, W)."""
    return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


# ---- windows -------------------------------------------------------------------------------------------------------

cdef int fill_windows(WindowArgs* a, str name, int64_t height, int64_t width, const Dims* kernel, const Dims* dilation, const Dims* padding, const Dims* stride) except -1:
    """Check the arguments; lh and lw may come out smaller than one."""
    cdef int k
    cdef int64_t limit = <int64_t>1 << 40
    cdef int64_t v[8]
    cdef const Dims* given
    for k in range(4):
        given = kernel if k == 0 else dilation if k == 1 else padding if k == 2 else stride
        if given.n != 1 and given.n != 2:
            raise RuntimeError(f"{name}: It is expected {('kernel_size', 'dilation', 'padding', 'stride')[k]} equals to 2, but got size {given.n}")
        v[2 * k] = given.v[0]
        v[2 * k + 1] = given.v[given.n - 1]
        least = 0 if k == 2 else 1
        if v[2 * k] < least or v[2 * k + 1] < least:
            what = ("kernel_size", "dilation", "padding", "stride")[k]
            raise RuntimeError(f"{what} should be {'greater than zero' if least else 'non-negative'}, but got {what}_height: {v[2 * k]} {what}_width: {v[2 * k + 1]} ({name})")
        if v[2 * k] > limit or v[2 * k + 1] > limit:
            raise RuntimeError(f"{name}: an argument is too large")
    if height > limit or width > limit or v[0] * 1.0 * v[2] > limit or v[1] * 1.0 * v[3] > limit:
        raise RuntimeError(f"{name}: an argument is too large")
    a.height, a.width = height, width
    a.kh, a.kw, a.dh, a.dw, a.ph, a.pw, a.sh, a.sw = v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]
    a.lh = windows_of(height + 2 * a.ph - a.dh * (a.kh - 1) - 1, a.sh)
    a.lw = windows_of(width + 2 * a.pw - a.dw * (a.kw - 1) - 1, a.sw)
    return 0


cdef int64_t windows_of(int64_t span, int64_t stride) noexcept:
    return 0 if span < 0 else span // stride + 1


cdef int window_columns_cpu(const WindowArgs* shape, TensorBase x, TensorBase y) except -1:
    cdef WindowArgs a = shape[0]
    a.source, a.to, a.item, a.dtype = data_of(x), data_of(y), ITEM_SIZE[x.dtype], x.dtype
    return run_held(window_columns, &a, x.numel // (a.height * a.width) * a.kh * a.kw, y.numel, x, y)


cdef int window_images_cpu(const WindowArgs* shape, TensorBase x, TensorBase y) except -1:
    """Half types are added up in float32."""
    cdef WindowArgs a = shape[0]
    cdef TensorBase to = y
    x = compute_typed(x)
    if y.dtype != x.dtype:
        to = empty_tensor(y.ndim, y.sizes, x.dtype, DEV_CPU)
    memset(data_of(to), 0, to.numel * ITEM_SIZE[to.dtype])
    a.source, a.to, a.item, a.dtype = data_of(x), data_of(to), ITEM_SIZE[x.dtype], x.dtype
    run_held(window_images, &a, to.numel // (a.height * a.width), x.numel, x, to)
    return 0 if to is y else copy_elements(y, to)


set_window_columns(DEV_CPU, window_columns_cpu)
set_window_images(DEV_CPU, window_images_cpu)


cdef TensorBase im2col_impl(TensorBase self, const Dims* kernel_size, const Dims* dilation, const Dims* padding, const Dims* stride):
    """Sliding windows of images (N, C, H, W) or (C, H, W) as columns (N, C * kh * kw, lh * lw)."""
    cdef WindowArgs a
    cdef int64_t sizes[3]
    cdef int n = self.ndim
    cdef TensorBase y
    if n != 3 and n != 4 or self.sizes[n - 1] == 0 or self.sizes[n - 2] == 0 or self.sizes[n - 3] == 0:
        raise RuntimeError(f"Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: {shape_text(self)}")
    fill_windows(&a, "im2col", self.sizes[n - 2], self.sizes[n - 1], kernel_size, dilation, padding, stride)
    if a.lh < 1 or a.lw < 1:
        raise RuntimeError(f"Given input with spatial size ({a.height}, {a.width}), kernel_size=({a.kh}, {a.kw}), dilation=({a.dh}, {a.dw}), padding=({a.ph}, {a.pw}), stride=({a.sh}, {a.sw}), calculated shape of the array of sliding blocks as ({a.lh}, {a.lw}), but its components must be at least one.")
    if category[self.dtype] < CAT_FLOAT and self.dtype != BOOL:
        raise NotImplementedError(f"\"im2col_out_cpu\" not implemented for '{dtype_text(self.dtype)}'")
    sizes[0] = self.sizes[0]
    sizes[n - 3] = self.sizes[n - 3]
    sizes[n - 2] = a.lh
    if mul_overflow(sizes[n - 3], a.kh, &sizes[n - 3]) or mul_overflow(sizes[n - 3], a.kw, &sizes[n - 3]) or mul_overflow(a.lh, a.lw, &sizes[n - 2]):
        raise RuntimeError("im2col: the result is too large")
    y = empty_tensor(n - 1, sizes, self.dtype, place_of(self))
    if y.numel:
        run_window_columns(self.device_type, &a, contiguous_of(self), y)
    return y


cdef TensorBase col2im_impl(TensorBase self, const Dims* output_size, const Dims* kernel_size, const Dims* dilation, const Dims* padding, const Dims* stride):
    """The adjoint of im2col: columns (N, C * kh * kw, L) added up into images (N, C, H, W)."""
    cdef WindowArgs a
    cdef int64_t sizes[4]
    cdef int64_t taps, places
    cdef int n = self.ndim, code = self.dtype
    cdef TensorBase y
    if output_size.n != 2:
        raise RuntimeError(f"It is expected output_size equals to 2, but got size {output_size.n} (col2im)")
    if n != 2 and n != 3 or self.sizes[n - 1] == 0 or self.sizes[n - 2] == 0:
        raise RuntimeError(f"Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but got: {shape_text(self)}")
    fill_windows(&a, "col2im", output_size.v[0], output_size.v[1], kernel_size, dilation, padding, stride)
    if mul_overflow(a.kh, a.kw, &taps) or self.sizes[n - 2] % taps:
        raise RuntimeError(f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={self.sizes[n - 2]} and kernel_size=({a.kh}, {a.kw}).")
    if a.lh < 1 or a.lw < 1 or mul_overflow(a.lh, a.lw, &places) or self.sizes[n - 1] != places:
        raise RuntimeError(f"Given output_size=({a.height}, {a.width}), kernel_size=({a.kh}, {a.kw}), dilation=({a.dh}, {a.dw}), padding=({a.ph}, {a.pw}), stride=({a.sh}, {a.sw}), expected size of input's dimension 2 to match the calculated number of sliding blocks {a.lh} * {a.lw} = {a.lh * a.lw}, but got input.size(2)={self.sizes[n - 1]}.")
    if category[code] < CAT_FLOAT:
        raise NotImplementedError(f"\"col2im_out_cpu\" not implemented for '{dtype_text(self.dtype)}'")
    sizes[0] = self.sizes[0]
    sizes[n - 2] = self.sizes[n - 2] // taps
    sizes[n - 1] = a.height
    sizes[n] = a.width
    checked_numel(n + 1, sizes)
    y = empty_tensor(n + 1, sizes, code, place_of(self))
    if y.numel:
        run_window_images(self.device_type, &a, contiguous_of(self), y)
    return y


cdef extern from *:
    """
    #define trt_mul_overflow(a, b, r) __builtin_mul_overflow(a, b, r)
    """
    bint mul_overflow "trt_mul_overflow"(int64_t a, int64_t b, int64_t* r) noexcept nogil


# ---- names of PyTorch's ---------------------------------------------------------------------------------------------

cdef object output_sizes(object x, int n, object size, object scales, str name):
    """The given size, or the input's times the scales."""
    as_tensor_arg(x, name, "input")
    if x.dim() != n + 2:
        raise RuntimeError(f"It is expected input_size equals to {n + 2}, but got size {x.dim()} ({name})")
    if (size is None) == (scales is None):
        raise RuntimeError(f"Must specify exactly one of output_size and scale_factors ({name})")
    if size is not None:
        return [size] if isinstance(size, int) else list(size)
    if len(scales) != n:
        raise RuntimeError(f"It is expected scale_factors to have {n} numbers, but got {len(scales)} ({name})")
    found = []
    for k in range(n):
        wanted = x.size(k + 2) * <double>scales[k]
        if not -1e18 < wanted < 1e18:
            raise RuntimeError(f"{name}: a scale factor of {scales[k]} gives no size")
        found.append(int(wanted))
    return found


def _upsampler(name, n, kind, corners, antialias):
    """The function of one of PyTorch's names: (input, output_size, [align_corners,] scale_factors)."""
    if corners:
        def upsample(input, output_size, align_corners, scale_factors=None):
            return _resize(input, kind, output_sizes(input, n, output_size, scale_factors, name), scale_factors, align_corners, antialias)
    else:
        def upsample(input, output_size, scale_factors=None):
            return _resize(input, kind, output_sizes(input, n, output_size, scale_factors, name), scale_factors, False, antialias)
    upsample.__name__ = upsample.__qualname__ = name
    return upsample


WITHOUT_ROW = {}
for _n, _linear in ((1, "linear"), (2, "bilinear"), (3, "trilinear")):
    for _name, _kind, _corners, _antialias in (
        (f"upsample_nearest{_n}d", RESIZE_NEAREST, False, False), (f"_upsample_nearest_exact{_n}d", RESIZE_NEAREST_EXACT, False, False),
        (f"upsample_{_linear}{_n}d", RESIZE_LINEAR, True, False),
    ):
        globals()[_name] = _upsampler(_name, _n, _kind, _corners, _antialias)
        WITHOUT_ROW[_name] = ""
for _name, _kind, _antialias in (("upsample_bicubic2d", RESIZE_CUBIC, False), ("_upsample_bilinear2d_aa", RESIZE_LINEAR, True), ("_upsample_bicubic2d_aa", RESIZE_CUBIC, True),
                                 ("_upsample_lanczos2d_aa", RESIZE_LANCZOS, True)):
    globals()[_name] = _upsampler(_name, 2, _kind, True, _antialias)
    WITHOUT_ROW[_name] = ""
