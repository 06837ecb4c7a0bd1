"""Fourier transforms on CUDA, beneath the checks of cysrc/ops/fft/fft.pyx: lines in shared memory, longer ones in passes through device memory."""
from libc.stdint cimport int64_t
from libc.string cimport memset
from tensorrt_lite._C.core.device cimport DEV_CUDA
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport C64, C128, F64
from tensorrt_lite._C.core.tensor cimport TensorBase, data_of, empty_tensor, place_of
from tensorrt_lite._C.cuda.backend cimport constant_on_device, keep_for_recording, kernel_of, run
from tensorrt_lite._C.cuda.driver cimport FunctionHandle
from tensorrt_lite._C.ops.fft.cpu cimport tables_for_device
from tensorrt_lite._C.steps.fft cimport fft_call, set_transform_dim

attach()

cdef enum:
    SHARED_BYTES = 46 * 1024         # of the two buffers of a block: with the lines' offsets, what a kernel has without asking for more
    PASS_COLUMNS = 8
    MOST_COLUMNS = 64                # kFftColumns of cuda_src/fft.cuh
    MOST_PASSES = 16
    KEPT_LENGTHS = 1 << 22           # of all kept tables together

cdef FunctionHandle handles[64][2][2]    # by device, type, kernel
cdef dict _tables = {}                   # (n, is_double, device) -> tables; least recently used first; relies on the GIL
cdef int64_t _kept_lengths = 0
cdef int64_t _scratch_bytes = 1 << 26    # of each buffer between passes: more lines are transformed one such part after another


cdef FunctionHandle load(int index, bint is_double, bint passes) except NULL:
    cdef FunctionHandle* slot = &handles[index][is_double][passes]
    if slot[0] == NULL:
        text = "#include \"fft.cuh\"\n"
        for name in ("fft_lines", "fft_pass"):
            text += f"\nextern \"C\" __global__ void __launch_bounds__(256) {name}(const fft_call l) {{ trt::{name}<{'double' if is_double else 'float'}>(l); }}"
        slot[0] = kernel_of(text + "\n", "fft_pass" if passes else "fft_lines", index)
    return slot[0]


def _load_all(int index):
    """Ask for every kernel of the family on a device."""
    load(index, False, False)
    load(index, True, False)


def _limit_scratch(nbytes):
    """Bytes of each buffer between passes from now on, for tests; returns what it was."""
    global _scratch_bytes
    before, _scratch_bytes = _scratch_bytes, nbytes
    return before


cdef tuple tables_of(int64_t n, bint is_double, int index):
    global _kept_lengths
    cdef tuple key = (n, is_double, index), found = _tables.pop(key, None)
    if found is None:
        found = tuple([None if t is None else constant_on_device(<TensorBase?>t, index) for t in tables_for_device(n, is_double)])
        if key in _tables:           # another thread made them meanwhile
            return _tables[key]
        if n <= KEPT_LENGTHS:
            _kept_lengths += n
            while _tables and _kept_lengths > KEPT_LENGTHS:
                oldest = next(iter(_tables))
                _kept_lengths -= oldest[0]
                del _tables[oldest]
    if n <= KEPT_LENGTHS:
        _tables[key] = found
    keep_for_recording(found)
    return found


cdef int factorize(int64_t n, int* radices) noexcept:
    """Radices of the passes in shared memory: fours first, then primes."""
    cdef int count = 0
    cdef int64_t p = 2
    while n % 4 == 0:
        radices[count] = 4
        count += 1
        n //= 4
    while n > 1:
        while n % p == 0:
            radices[count] = <int>p
            count += 1
            n //= p
        p += 1
    return count


cdef int split(int64_t n, int64_t largest, int64_t* lengths) noexcept:
    """The lengths of the fewest passes of at most `largest`, whose product is n: each factor goes where the product is least."""
    cdef int factors[64]
    cdef int count = factorize(n, factors), passes, i, k, least
    for passes in range(2, MOST_PASSES):
        for k in range(passes):
            lengths[k] = 1
        for i in range(count - 1, -1, -1):
            least = 0
            for k in range(passes):
                if lengths[k] < lengths[least]:
                    least = k
            lengths[least] *= factors[i]
        for k in range(passes):
            if lengths[k] > largest:
                break
        else:
            return passes
    return 0


cdef int run_passes(fft_call* l, int64_t* lengths, int passes, bint is_double, int index, char* buffers[2]) except -1:
    """All passes over l.lines lines, and over those of the convolution's second transform."""
    cdef int stage, i, rounds = 1 if l.chirp == NULL else 2, last = rounds * passes - 1
    cdef void* arguments[1]
    arguments[0] = l
    for stage in range(last + 1):
        i = stage % passes
        if i == 0:
            l.m, l.s = l.length, 1
        l.radix = <int>lengths[i]
        l.m //= l.radix
        l.factors = factorize(l.radix, l.radices)
        l.columns = PASS_COLUMNS
        l.source = NULL if stage == 0 else buffers[(stage - 1) % 2]
        l.target = NULL if stage == last else buffers[stage % 2]
        l.multiplied = rounds == 2 and stage == passes - 1
        run(load(index, is_double, True), index, min((l.m * l.s + PASS_COLUMNS - 1) // PASS_COLUMNS * l.lines, <int64_t>1 << 30), 256, l.radix * PASS_COLUMNS * 2 * (16 if is_double else 8), arguments)
        l.s *= l.radix
    return 0


cdef int transform_dim(TensorBase x, TensorBase y, int dim, int64_t n, int kind, bint inverse, bint twosided, double scale) except -1:
    cdef fft_call l
    cdef int i, passes, index = x.device_index, item
    cdef bint is_double = x.dtype in (F64, C128)
    cdef int64_t lengths[MOST_PASSES]
    cdef int64_t fit, lines, part, total, nbytes
    cdef char* buffers[2]
    cdef void* arguments[1]
    cdef TensorBase scratch
    cdef tuple tables = tables_of(n, is_double, index)
    memset(&l, 0, sizeof(fft_call))
    item = 16 if is_double else 8
    l.roots, l.length = data_of(<TensorBase>tables[0]), (<TensorBase>tables[0]).numel
    if tables[1] is not None:
        l.chirp, l.spectrum = data_of(<TensorBase>tables[1]), data_of(<TensorBase>tables[2])
    l.x, l.y, l.n, l.kind, l.inverse, l.twosided, l.scale = data_of(x), data_of(y), n, kind, inverse, twosided, scale
    l.x_stride, l.y_stride = x.strides[dim], y.strides[dim]
    lines = 1
    for i in range(x.ndim):
        if i != dim:
            l.size[l.dims], l.x_strides[l.dims], l.y_strides[l.dims] = x.sizes[i], x.strides[i], y.strides[i]
            lines *= x.sizes[i]
            l.dims += 1
    l.lines = lines
    fit = SHARED_BYTES // (2 * item)
    if l.length <= fit:
        l.by_lines = l.y_stride != 1
        l.columns = <int>max(<int64_t>1, min(min(fit // l.length, lines), min(<int64_t>MOST_COLUMNS, max(1024 // l.length, <int64_t>(8 if l.by_lines else 1)))))
        l.factors = factorize(l.length, l.radices)
        arguments[0] = &l
        return run(load(index, is_double, False), index, min((lines + l.columns - 1) // l.columns, <int64_t>1 << 30), 256, <int>(l.length * l.columns * 2 * item), arguments)
    passes = split(l.length, fit // PASS_COLUMNS, lengths)
    part = max(<int64_t>1, min(lines, _scratch_bytes // (l.length * item)))
    total = 1 if passes == 2 and l.chirp == NULL else 2
    nbytes = part * l.length * total
    scratch = empty_tensor(1, &nbytes, C128 if is_double else C64, place_of(x))
    buffers[0] = data_of(scratch)
    buffers[1] = buffers[0] + (total - 1) * part * l.length * item
    while l.first_line < lines:
        l.lines = min(part, lines - l.first_line)
        run_passes(&l, lengths, passes, is_double, index, buffers)
        l.first_line += part
    return 0


set_transform_dim(DEV_CUDA, transform_dim)
