"""CUDA under the core: storages from the caching allocator, copies, and the launch of pointwise iterations.

It fills in the core's device hooks. A thread has a current device and, on each device, a current stream, on which all
its work is queued; nothing here waits for the device except copies to host memory.
"""
from cpython.object cimport PyObject
from libc.stdlib cimport calloc, realloc
from libc.string cimport memcmp, memcpy
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_context, trt_block_returns_by, block_external
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUDA, DEV_META
from tensorrt_lite._C.core.dtype cimport Scalar, C32, C128, CAT_COMPLEX, NUM_DTYPES, category, compute_type, is_reduced_floating_type
from tensorrt_lite._C.core.iterator cimport PointwiseInfo, Iter, MAX_OPERANDS, copy_elements
from tensorrt_lite._C.core.storage cimport Storage, DeviceHooks, device_storage, external_storage, install_device_hooks, installed_hooks
from tensorrt_lite._C.core.tensor cimport TensorBase, ITEM_SIZE, data_of, place_of, empty_tensor, non_overlapping_dense, same_sizes
from tensorrt_lite._C.core.text cimport dtype_text
from tensorrt_lite._C.core.dispatch cimport attach, tls
from tensorrt_lite._C.autograd.node cimport NOTE_STREAMS
from tensorrt_lite._C.cuda.caching cimport Block, MemoryPool, captures, cached_allocate, cached_free, cached_record_stream
from tensorrt_lite._C.cuda.driver cimport (
    Module, Function, FunctionHandle, StreamHandle, DevicePointer, MAX_DEVICES, enter_device, check_device, device_count_of, launch, copy_to_device, copy_to_host,
    copy_on_device, copy_between, exchange_capture_mode, synchronize_stream, try_allocate, host_free, event_create, event_record, event_done, event_destroy, service, stream_wait)
from tensorrt_lite._C.steps.copy cimport set_non_blocking
from tensorrt_lite._C.cuda.driver import host_allocate, kernel_names, stream_create

attach()

cdef extern from *:
    """
    #include <stdint.h>
    #include "../core/stage.h"
    static __thread int trt_cuda_device;
    static __thread void* trt_cuda_streams[64];
    static __thread int trt_cuda_set;              /* the number of this set of streams */
    static __thread void* trt_cuda_pool;           /* the MemoryPool that this thread allocates from, NULL: the default one, */
    static __thread int trt_cuda_pool_device;      /* on this device */
    static __thread int trt_cuda_non_blocking;
    enum { TRT_ANY_DIMS = 16, TRT_STRIDED_DIMS = 8, TRT_MAX_OPERANDS = 7 };

    /* As iteration.cuh declares them, for the largest number of operands. */
    typedef struct { const char* pointer; char value[24]; } trt_source;
    typedef struct {
      uint32_t ndim, numel, size[TRT_STRIDED_DIMS], multiplier[TRT_STRIDED_DIMS], shift[TRT_STRIDED_DIMS];
      int32_t stride[TRT_MAX_OPERANDS][TRT_STRIDED_DIMS];
    } trt_strided_layout;

    /* AnyLayout's members move with the number of operands: it is written as bytes. */
    static void trt_any_layout(char* to, int operands, int64_t numel, int ndim, const int* dtype, const int64_t* size,
                               const int64_t (*stride)[64]) {
      int64_t* wide = (int64_t*)to;
      wide[0] = numel;
      int32_t* narrow = (int32_t*)(to + 8);
      narrow[0] = ndim;
      for (int i = 0; i < operands; i++) narrow[1 + i] = dtype[i];
      wide += 1 + (1 + operands + (operands + 1) % 2) / 2;
      for (int d = 0; d < ndim; d++) wide[d] = size[d];
      wide += TRT_ANY_DIMS;
      for (int i = 0; i < operands; i++, wide += TRT_ANY_DIMS)
        for (int d = 0; d < ndim; d++) wide[d] = stride[i][d];
    }

    /* q = (mulhi(n, multiplier) + n) >> shift divides by size; iteration.cuh has the source. */
    static void trt_divisor(trt_strided_layout* layout, int d) {
      uint64_t size = layout->size[d], power = 1;
      uint32_t shift = 0;
      while (power < size) power <<= 1, shift++;
      layout->shift[d] = shift;
      layout->multiplier[d] = (uint32_t)(((power - size) << 32) / size + 1);
    }

    static long long trt_atomic_add(long long* p, long long change) { return __atomic_add_fetch(p, change, __ATOMIC_SEQ_CST); }
    """
    int tls_device "trt_cuda_device"
    void** tls_streams "trt_cuda_streams"
    int tls_set "trt_cuda_set"
    void* tls_pool "trt_cuda_pool"
    int tls_pool_device "trt_cuda_pool_device"
    bint tls_non_blocking "trt_cuda_non_blocking"
    enum:
        ANY_DIMS "TRT_ANY_DIMS"
        STRIDED_DIMS "TRT_STRIDED_DIMS"
    ctypedef struct Source "trt_source":
        const char* pointer
        char value[24]
    ctypedef struct StridedLayout "trt_strided_layout":
        unsigned ndim, numel
        unsigned size[8]
        int stride[7][8]
    void any_layout "trt_any_layout"(char* to, int operands, int64_t numel, int ndim, const int* dtype, const int64_t* size, const int64_t (*stride)[64]) noexcept
    long long atomic_add "trt_atomic_add"(long long* p, long long change) noexcept
    void divisor "trt_divisor"(StridedLayout* layout, int d) noexcept
    void read_scalar "trt_load_scalar"(const char* p, int dtype, Scalar* s) noexcept
    void store_scalar(char* destination, int dtype, const Scalar* value) noexcept

cdef enum:
    THREADS = 256
    MAX_BLOCKS = 1 << 16
    CAPTURE_RELAXED = 2
    FORM_CONTIGUOUS = 0
    FORM_STRIDED = 1
    FORM_ANY = 2

cdef const char* COPY = b"copy_"
cdef tuple FORMS = ("contiguous", "strided", "any")


# ---- devices and streams -------------------------------------------------------------------------------------------

cdef int current_device() noexcept:
    return tls_device


cdef int current() except -1:
    device_count_of()
    return tls_device


cdef int use_device(int index) except -1:
    global tls_device
    cdef int before = tls_device
    if index != before:
        check_device(index)
        tls_device = index
        number_streams()
    return before


cdef StreamHandle stream_of(int index) noexcept:
    return tls_streams[index]


cdef int enter(int index) except -1:
    return enter_device(index)


def _current_device():
    return current()


def _set_device(int index):
    """Make a device current in this thread; returns the one before."""
    return use_device(index)


def _current_stream(int index):
    return <size_t>tls_streams[index]


def _set_stream(int index, size_t stream):
    """Make a stream current on a device in this thread; returns the one before."""
    cdef size_t before
    check_device(index)
    before = <size_t>tls_streams[index]
    tls_streams[index] = <void*>stream
    number_streams()
    return before


# Sets of current streams, and the current device, that threads have had; Nodes keep the number of theirs. The first has the default streams.
cdef struct StreamSet:
    void* streams[64]
    int device

cdef StreamSet* sets = <StreamSet*>calloc(16, sizeof(StreamSet))
cdef int n_sets = 1


cdef int number_streams() except -1:
    """Find or note this thread's set of streams, and have new Nodes remember it."""
    global sets, n_sets
    cdef StreamSet* grown
    cdef int i
    for i in range(n_sets):
        if sets[i].device == tls_device and memcmp(sets[i].streams, tls_streams, sizeof(sets[i].streams)) == 0:
            break
    else:
        if n_sets >= 16 and n_sets & (n_sets - 1) == 0:
            grown = <StreamSet*>realloc(sets, 2 * <size_t>n_sets * sizeof(StreamSet))
            if grown == NULL:
                raise MemoryError
            sets = grown
        i = n_sets
        memcpy(sets[i].streams, tls_streams, sizeof(sets[i].streams))
        sets[i].device = tls_device
        n_sets += 1
        installed_hooks().stream_sets = i
    tls_note(i)
    return 0


cdef inline void tls_note(int number) noexcept:
    global tls_set
    tls_set = number
    tls().notes = tls().notes | NOTE_STREAMS if number else tls().notes & ~NOTE_STREAMS


cdef int current_streams() noexcept:
    return tls_set


cdef int use_streams(int number) except -1:
    global tls_device
    memcpy(tls_streams, sets[number].streams, sizeof(sets[number].streams))
    tls_device = sets[number].device
    tls_note(number)
    return 0


cdef int order(StreamHandle after, int after_device, StreamHandle before, int before_device) except -1:
    """Work queued from now on in one stream runs after what another has been given. A default stream is that of the device entered."""
    cdef void* event
    enter_device(before_device)
    event = event_create(False)
    try:
        event_record(event, before)
        enter_device(after_device)
        stream_wait(after, event)
    finally:
        event_destroy(event)
    return 0


cdef int hand_over(object tensor, int producer, int consumer) except -1:
    cdef TensorBase t = <TensorBase>tensor
    cdef int index = t.device_index
    if sets[producer].streams[index] != sets[consumer].streams[index]:
        order(sets[consumer].streams[index], index, sets[producer].streams[index], index)
        keep_for(tensor, consumer)
    return 0


cdef int keep_for(object tensor, int consumer) except -1:
    cdef TensorBase t = <TensorBase>tensor
    return record_use(t, sets[consumer].streams[t.device_index])


cdef int join_streams(int producer, int consumer) except -1:
    cdef int index
    for index in range(device_count_of()):
        if sets[producer].streams[index] != sets[consumer].streams[index]:
            order(sets[consumer].streams[index], index, sets[producer].streams[index], index)
    return 0


# ---- memory --------------------------------------------------------------------------------------------------------

cdef void release_block(trt_block* b) noexcept nogil:
    with gil:
        free_block(<Block*>trt_block_context(b))


cdef int free_block(Block* block) noexcept:
    try:
        cached_free(block)
    except RuntimeError:
        pass                                    # the context is gone, and its memory with it
    return 0


cdef object allocate(int device_type, int64_t nbytes, int index):
    cdef Block* block
    cdef trt_block* b
    if index < 0:
        index = current()
    else:
        check_device(index)
    if nbytes == 0:
        return device_storage(block_external(NULL, 0, NULL, NULL), 0, DEV_CUDA, index)
    enter_device(index)
    block = cached_allocate(index, nbytes, tls_streams[index], <MemoryPool>tls_pool if tls_pool != NULL and tls_pool_device == index else None)
    b = block_external(<void*><size_t>block.address, block.size, release_block, block)
    return device_storage(b, nbytes, DEV_CUDA, index)


cdef int move(char* to, const char* source, int64_t nbytes, int device_type, int index) except -1:
    if nbytes:
        enter_device(index)
        copy_on_device(<DevicePointer><size_t>to, <DevicePointer><size_t>source, nbytes, tls_streams[index])
    return 0


cdef void* side_streams[64]              # of each device one for work that no graph shall record


cdef StreamHandle side_stream(int index) except NULL:
    if side_streams[index] == NULL:
        side_streams[index] = <void*><size_t>stream_create(index)
    return side_streams[index]


cdef DevicePointer zeroed_memory(int index, size_t size) except 0:
    cdef DevicePointer pointer
    cdef int mode
    cdef bytes zeros = bytes(size)
    enter_device(index)
    mode = exchange_capture_mode(CAPTURE_RELAXED)
    try:
        pointer = try_allocate(size)
        if pointer == 0:
            raise RuntimeError(f"CUDA error: no memory for {size} bytes on cuda:{index}")
        copy_to_device(pointer, <const char*>zeros, size, side_stream(index))
        synchronize_stream(side_stream(index))
    finally:
        exchange_capture_mode(mode)
    return pointer


cdef TensorBase constant_on_device(TensorBase host, int index):
    global tls_pool
    cdef TensorBase t
    cdef void* stream = tls_streams[index]
    cdef void* pool = tls_pool
    cdef int mode
    enter_device(index)
    mode = exchange_capture_mode(CAPTURE_RELAXED)
    try:
        tls_streams[index] = side_stream(index)
        tls_pool = NULL
        t = empty_tensor(host.ndim, host.sizes, host.dtype, DEV_CUDA | (index + 1) << 8)
        copy_to_device(<DevicePointer><size_t>data_of(t), data_of(host), t.numel * ITEM_SIZE[t.dtype], side_stream(index))
        synchronize_stream(side_stream(index))
    finally:
        tls_streams[index] = stream
        tls_pool = pool
        exchange_capture_mode(mode)
    return t


cdef int keep_for_recording(object tables) except -1:
    if captures and tls_pool != NULL:
        (<MemoryPool>tls_pool).kept.append(tables)
    return 0


def _use_pool(MemoryPool pool, int index):
    """Allocate from a pool on a device in this thread, None for the default one; returns what was in use. Whoever asks keeps the pool."""
    global tls_pool, tls_pool_device
    before = (<MemoryPool>tls_pool if tls_pool != NULL else None, tls_pool_device)
    tls_pool = NULL if pool is None else <void*>pool
    tls_pool_device = index
    return before


def _uses_default_pool():
    """Whether this thread allocates as all others do."""
    return tls_pool == NULL


cdef int use_non_blocking(bint on) except -1:
    """Copies between host and device in this thread do not wait, where the host's memory is pinned."""
    global tls_non_blocking
    tls_non_blocking = on
    return 0


set_non_blocking(DEV_CUDA, use_non_blocking)


# ---- pinned memory -------------------------------------------------------------------------------------------------

cdef list in_flight = []                # (event, storage): pinned memory that a queued copy still reads or writes
cdef dict pinned_free = {}              # {bytes: [addresses]} for the next request: locking pages takes long. Sizes are powers of two.
# current, peak, allocated, freed of: storages, pieces of the driver, and the bytes of each
cdef int64_t host_figures[4][4]
cdef int64_t host_calls[2]
cdef tuple HOST_FIGURES = ("allocation", "segment", "allocated_bytes", "reserved_bytes")


cdef void count_host(int what, int64_t change) noexcept:
    cdef int64_t* f = host_figures[what]
    f[0] += change
    f[1] = max(f[0], f[1])
    f[2 if change > 0 else 3] += abs(change)


cdef void release_pinned(trt_block* b) noexcept nogil:
    with gil:
        free_pinned(b.data, b.capacity)


cdef int free_pinned(void* pointer, int64_t nbytes) noexcept:
    pinned_free.setdefault(nbytes, []).append(<size_t>pointer)
    count_host(0, -1)
    count_host(2, -nbytes)
    return 0


def _empty_host_cache():
    """Give page-locked memory that nobody uses back to the driver."""
    collect_copies()
    for nbytes, addresses in pinned_free.items():
        for address in addresses:
            host_free(<void*><size_t>address)
            host_calls[1] += 1
            count_host(1, -1)
            count_host(3, -<int64_t>nbytes)
    pinned_free.clear()


def _host_statistics():
    cdef int i
    cdef dict found = {}
    for i in range(4):
        found[HOST_FIGURES[i]] = {"current": host_figures[i][0], "peak": host_figures[i][1], "allocated": host_figures[i][2], "freed": host_figures[i][3]}
    found["num_host_alloc"] = host_calls[0]
    found["num_host_free"] = host_calls[1]
    return found


def _reset_host_statistics(bint peaks):
    """Peaks start again at what is current, or totals at 0."""
    cdef int i
    for i in range(4):
        if peaks:
            host_figures[i][1] = host_figures[i][0]
        else:
            host_figures[i][2] = host_figures[i][3] = 0
    if not peaks:
        host_calls[0] = host_calls[1] = 0


cdef list registered = []               # (start, end) of memory that programs had locked


def _note_registered(size_t pointer, size_t nbytes):
    """Pinned from here on; with 0 bytes: no longer."""
    registered[:] = [r for r in registered if r[0] != pointer]
    if nbytes:
        registered.append((pointer, pointer + nbytes))


cdef bint is_pinned(TensorBase t) except -1:
    cdef size_t address
    if t.device_type != DEV_CPU or t.storage.block == NULL:
        return False
    if trt_block_returns_by(t.storage.block, release_pinned):
        return True
    address = <size_t>t.storage.block.data
    for start, end in registered:
        if start <= address and address + t.storage.length <= end:
            return True
    return False


def _is_pinned(TensorBase t not None):
    return is_pinned(t)


cdef object pinned_storage(int64_t nbytes):
    """A storage of page-locked host memory."""
    cdef Storage s
    cdef int64_t size = 64
    cdef size_t address
    cdef list cached
    collect_copies()
    while size < nbytes:
        size *= 2
    cached = pinned_free.get(size)
    if cached:
        address = cached.pop()
    else:
        address = host_allocate(size)
        host_calls[0] += 1
        count_host(1, 1)
        count_host(3, size)
    s = Storage.__new__(Storage)
    s.block = block_external(<void*>address, size, release_pinned, NULL)
    s.length = nbytes
    count_host(0, 1)
    count_host(2, size)
    return s


cdef int collect_copies() except -1:
    """Let go of pinned memory whose copies have run."""
    global in_flight
    cdef list left = []
    if captures:
        return 0                                # a graph that is being recorded: the driver must not be asked
    for event, storage in in_flight:
        if event_done(<void*><size_t>event, False):
            event_destroy(<void*><size_t>event)
        else:
            left.append((event, storage))
    in_flight = left
    return 0


cdef int keep_until_done(Storage s, StreamHandle stream) except -1:
    cdef void* event
    if captures and tls_pool != NULL:
        (<MemoryPool>tls_pool).kept.append(s)
        return 0
    event = event_create(False)
    event_record(event, stream)
    in_flight.append((<size_t>event, s))
    return 0


# ---- memory of other processes -------------------------------------------------------------------------------------

def _opened_storage(size_t address, int64_t nbytes, int index, owner):
    """A storage over device memory that `owner` keeps open."""
    return external_storage(<void*>address, nbytes, owner, DEV_CUDA, index)


def _share_obstacle(Storage s not None):
    """Why the driver cannot share the storage's memory with other processes; None when it can."""
    if not trt_block_returns_by(s.block, release_block):
        return "Attempted to send CUDA tensor received from another process (or library); this is not currently supported. Consider cloning before sending."
    if (<Block*>trt_block_context(s.block)).arena != NULL:
        return "Attempted to send a CUDA tensor of an expandable segment, which cannot be shared; set expandable_segments:False in PYTORCH_ALLOC_CONF."
    return None


def _shared_add(long long[::1] counters not None, int place, long long change):
    """Add to a counter that processes share; returns the sum."""
    if place < 0 or place >= counters.shape[0]:
        raise IndexError(f"there are {counters.shape[0]} counters, and no counter {place}")
    return atomic_add(&counters[place], change)


def _record_stream(TensorBase t not None, size_t stream):
    """The tensor's memory is used on `stream`: it is not given out again before what is queued there by its end has run."""
    if t.device_type != DEV_CUDA:
        raise RuntimeError("record_stream: the tensor is not on a CUDA device")
    record_use(t, <void*>stream)


cdef int record_use(TensorBase t, StreamHandle stream) except -1:
    # memory of other libraries has no block here
    if t.storage.block != NULL and trt_block_returns_by(t.storage.block, release_block):
        cached_record_stream(<Block*>trt_block_context(t.storage.block), stream)
    return 0


# ---- kernels -------------------------------------------------------------------------------------------------------

from os import environ

cdef dict _modules = {}            # (device, source) -> Module
cdef dict _functions = {}          # (device, source, entry) -> Function; keeps handles alive


cdef list _recorded = None         # where `kernel_of` notes texts instead of compiling them


def _record_units(list into):
    """From here on every kernel asked for is only noted: its unit's text is appended to `into`. For processes that launch nothing
    (tools/compile_kernels.py): a family's handles are no kernels then."""
    global _recorded
    _recorded = into


cdef FunctionHandle kernel_of(str source, str entry, int index) except NULL:
    if _recorded is not None:
        _recorded.append(source)
        return <FunctionHandle>1
    key = (index, source, entry)
    f = _functions.get(key)
    if f is None:
        module = _modules.get((index, source))
        if module is None:
            image = service("compile_unit")(source, index)
            enter_device(index)
            module = _modules[(index, source)] = Module(image)
        enter_device(index)
        f = _functions[key] = (<Module>module).get_function(entry)
        header, dot, _ = source.partition('#include "')[2].partition(".cuh")
        kernel_names[<size_t>(<Function>f).handle] = f"{header}.{entry}" if dot else entry
        if "TENSORRT_LITE_CUDA_TRACE" in environ:
            service("note_launch")(source, entry)
    return (<Function>f).handle


cdef int64_t blocks_for(int64_t items, int per_block) noexcept:
    cdef int64_t n = (items + per_block - 1) // per_block
    return 1 if n < 1 else MAX_BLOCKS if n > MAX_BLOCKS else n


cdef int run(FunctionHandle kernel, int index, int64_t blocks, int threads, int shared, void** arguments) except -1:
    """Queue a kernel on this thread's current stream of the device."""
    enter_device(index)
    return launch(kernel, blocks, 1, 1, threads, 1, 1, shared, tls_streams[index], arguments)


cdef int run3(FunctionHandle kernel, int index, int64_t x, int64_t y, int64_t z, int tx, int ty, int tz, int shared, void** arguments) except -1:
    enter_device(index)
    return launch(kernel, x, y, z, tx, ty, tz, shared, tls_streams[index], arguments)


# ---- pointwise iterations ------------------------------------------------------------------------------------------

# The handles of one loop in one type: forms by device.
cdef struct Kernels:
    FunctionHandle form[64][3]

cdef Kernels* copies[NUM_DTYPES][NUM_DTYPES]            # by source, destination


cdef Kernels* kernels_for(const PointwiseInfo* info, int source, int compute) except NULL:
    cdef Kernels** slot = &copies[source][compute] if info == NULL else <Kernels**>&(<PointwiseInfo*>info).on_device[compute]
    if slot[0] == NULL:
        slot[0] = <Kernels*>calloc(1, sizeof(Kernels))
        if slot[0] == NULL:
            raise MemoryError
    return slot[0]


cdef FunctionHandle load(const PointwiseInfo* info, int source, int compute, int form, int index) except NULL:
    cdef Kernels* k = kernels_for(info, source, compute)
    if k.form[index][form] == NULL:
        from tensorrt_lite._C.cuda import source as _source
        if info == NULL:
            text = _source.copy_source(source, compute)
        else:
            try:
                text = _source.pointwise_source(info.name.decode(), compute)
            except KeyError:
                raise NotImplementedError(f"\"{info.name.decode()}_cuda\" not implemented for '{dtype_text(compute)}'") from None
        k.form[index][form] = kernel_of(text, FORMS[form], index)
    return k.form[index][form]


cdef int iterate(const void* info_, void* it_, int compute, object result, PyObject** operands) except -1:
    """Launch one loop over what TensorIterator has prepared: dimensions merged, strides in bytes, dimension 0 fastest."""
    cdef const PointwiseInfo* info = <const PointwiseInfo*>info_
    cdef Iter* it = <Iter*>it_
    cdef Source sources[MAX_OPERANDS]
    cdef char parameters[MAX_OPERANDS][16]
    cdef void* arguments[2 * MAX_OPERANDS + 4]
    cdef char layout[8 + 32 + 8 * 16 * 8]
    cdef StridedLayout strided
    cdef Scalar number
    cdef char* out = it.base[0]
    cdef char* value
    cdef int index = (<TensorBase>result).device_index
    cdef int64_t numel = (<TensorBase>result).numel
    cdef int form = FORM_CONTIGUOUS, i, d, n = 0, nparams = info.nparams if info != NULL else 0
    cdef int64_t extent, reach = 0
    cdef unsigned long long count = numel
    for i in range(it.nop):
        if it.on_host >> i & 1:
            continue
        # a copy has kernels for each pair of types
        if it.dtype[i] != it.need[i]:
            form = FORM_ANY
        elif form == FORM_CONTIGUOUS and (it.ndim > 1 or it.stride[i][0] != ITEM_SIZE[it.dtype[i]]):
            form = FORM_STRIDED
    if form == FORM_STRIDED:
        if it.ndim > STRIDED_DIMS or numel >= (<int64_t>1 << 31):
            form = FORM_ANY
        else:
            for i in range(it.nop):
                extent = 0
                for d in range(it.ndim):
                    if it.stride[i][d] % ITEM_SIZE[it.dtype[i]]:
                        form = FORM_ANY
                    extent += (it.sizes[d] - 1) * abs(it.stride[i][d] // ITEM_SIZE[it.dtype[i]])
                if extent >= (<int64_t>1 << 31) and not it.on_host >> i & 1:
                    form = FORM_ANY
    if form == FORM_ANY and it.ndim > ANY_DIMS:
        raise NotImplementedError(f"{info.name.decode() if info != NULL else 'copy_'}: tensors of {it.ndim} dimensions that cannot be merged, at most {ANY_DIMS} on CUDA")
    arguments[n] = &out
    n += 1
    for i in range(1, it.nop):
        sources[i].pointer = it.base[i]
        if it.on_host >> i & 1:
            sources[i].pointer = NULL
            read_scalar(it.base[i], it.dtype[i], &number)
            # 16 bytes of complex128 are aligned to 16
            value = sources[i].value + (8 if it.need[i] == C128 else 0)
            store_scalar(value, it.need[i], &number)
            if is_reduced_floating_type(it.need[i]) or it.need[i] == C32:
                # rounded to the operand's type, but for products and quotients of halves by a number
                if not (info != NULL and info.wide_number and i == 2 and category[it.dtype[i]] != CAT_COMPLEX):
                    read_scalar(value, it.need[i], &number)
                store_scalar(value, compute_type[it.need[i]], &number)
        arguments[n] = &sources[i]
        n += 1
    for i in range(nparams):
        store_scalar(parameters[i], 8 if compute == 6 or compute == 7 else compute, &it.params[i])
        arguments[n] = parameters[i]
        n += 1
    if form == FORM_CONTIGUOUS:
        arguments[n] = &count
    elif form == FORM_STRIDED:
        strided.ndim = it.ndim
        strided.numel = <unsigned>numel
        for d in range(it.ndim):
            strided.size[d] = <unsigned>it.sizes[d]
            divisor(&strided, d)
            for i in range(it.nop):
                strided.stride[i][d] = <int>(it.stride[i][d] // ITEM_SIZE[it.dtype[i]])
        arguments[n] = &strided
    else:
        any_layout(layout, it.nop, numel, it.ndim, it.dtype, it.sizes, it.stride)
        arguments[n] = layout
    return run_named(info.name if info != NULL else COPY, load(info, it.need[1] if info == NULL else compute, compute, form, index), index,
                     blocks_for(numel, 4 * THREADS), arguments)


cdef int run_named(const char* name, FunctionHandle kernel, int index, int64_t blocks, void** arguments) except -1:
    """`run`, with the operator that an error shall name."""
    cdef const char* before = tls().operator_name
    tls().operator_name = name
    try:
        return run(kernel, index, blocks, THREADS, 0, arguments)
    finally:
        tls().operator_name = before


# ---- copies between devices ----------------------------------------------------------------------------------------

cdef int copy(object destination_, object source_, bint non_blocking) except -1:
    """destination[...] = source on two devices: elements of one type in one order cross as bytes, anything else is brought to that form
    on the side where it is read or written."""
    cdef TensorBase destination = <TensorBase>destination_, source = <TensorBase>source_, staged
    cdef int64_t nbytes
    if destination.device_type == DEV_META:
        return 0
    if destination.numel == 0:
        return 0
    if destination.dtype == source.dtype and same_sizes(destination, source) and same_order(destination, source):
        return transfer(destination, source, destination.numel * ITEM_SIZE[source.dtype], non_blocking or tls_non_blocking)
    # convert where the elements come from, spread them where they go
    staged = empty_tensor(source.ndim, source.sizes, destination.dtype if source.numel <= destination.numel else source.dtype, place_of(source))
    copy_elements(staged, source)
    if staged.dtype == destination.dtype and destination.contiguous and same_sizes(destination, staged):
        return transfer(destination, staged, destination.numel * ITEM_SIZE[staged.dtype], False)
    source = empty_tensor(staged.ndim, staged.sizes, staged.dtype, place_of(destination))
    transfer(source, staged, staged.numel * ITEM_SIZE[staged.dtype], False)
    return copy_elements(destination, source)


cdef bint same_order(TensorBase a, TensorBase b) noexcept:
    cdef int i
    if a.contiguous and b.contiguous:
        return True
    if not non_overlapping_dense(a) or not non_overlapping_dense(b):
        return False
    for i in range(a.ndim):
        if a.sizes[i] > 1 and a.strides[i] != b.strides[i]:
            return False
    return True


cdef int transfer(TensorBase destination, TensorBase source, int64_t nbytes, bint non_blocking) except -1:
    """The bytes of two dense tensors. Returns when the host's memory may be touched again."""
    cdef StreamHandle stream
    cdef int index
    cdef char* to = data_of(destination)
    cdef const char* origin = data_of(source)
    if nbytes == 0:
        return 0
    index = destination.device_index if destination.device_type == DEV_CUDA else source.device_index
    enter_device(index)
    stream = tls_streams[index]
    if source.device_type == DEV_CPU:
        # the driver has read pageable memory when the call returns
        with nogil:
            copy_to_device(<DevicePointer><size_t>to, origin, nbytes, stream)
        if not non_blocking:
            note_wait()
            with nogil:
                synchronize_stream(stream)
        elif is_pinned(source):
            collect_copies()
            keep_until_done(source.storage, stream)
    elif destination.device_type == DEV_CPU:
        with nogil:
            copy_to_host(to, <DevicePointer><size_t>origin, nbytes, stream)
        if non_blocking and is_pinned(destination):
            collect_copies()
            keep_until_done(destination.storage, stream)
        else:
            note_wait()
            with nogil:
                synchronize_stream(stream)
            if after_wait != NULL:
                after_wait(index, stream, False)
    elif destination.device_index == source.device_index:
        copy_on_device(<DevicePointer><size_t>to, <DevicePointer><size_t>origin, nbytes, stream)
    else:
        # ordered after the work of both devices' current streams, and before what they are given next: either's memory may be reused then
        order(stream, destination.device_index, tls_streams[source.device_index], source.device_index)
        copy_between(<DevicePointer><size_t>to, destination.device_index, <DevicePointer><size_t>origin, source.device_index, nbytes, stream)
        order(tls_streams[source.device_index], source.device_index, stream, destination.device_index)
    return 0


cdef int waits = 0                       # 1: an operation that waits for the device warns, 2: it raises


def _set_sync_debug_mode(int mode):
    """Returns the mode before; a negative one changes nothing."""
    global waits
    before = waits
    if mode >= 0:
        waits = mode
    return before


cdef inline int note_wait() except -1:
    return tell_of_wait() if waits else 0


cdef int tell_of_wait() except -1:
    if waits == 2:
        raise RuntimeError("called a synchronizing CUDA operation")
    from tensorrt_lite._C.core.warning import warn
    warn("called a synchronizing CUDA operation")
    return 0


# what families look at when the host has waited for a stream, or for all of a device: 0, or an exception for what kernels found
cdef int (*after_wait)(int index, StreamHandle stream, bint all) except -1


def _set_after_wait(size_t function):
    (<void**>&after_wait)[0] = <void*>function


def _waited(int index, stream=None):
    """The host has waited for a stream of this device, or for all of its work: raises what kernels found meanwhile."""
    if after_wait != NULL:
        after_wait(index, tls_streams[index] if stream is None else <void*><size_t>stream, stream is None)


cdef int current_of_cuda(int device_type) except -1:
    return current()


cdef DeviceHooks hooks
hooks.allocate = allocate
hooks.allocate_pinned = pinned_storage
hooks.current = current_of_cuda
hooks.move = move
hooks.copy = copy
hooks.iterate = iterate
hooks.current_streams = current_streams
hooks.use_streams = use_streams
hooks.hand_over = hand_over
hooks.keep_for = keep_for
hooks.join = join_streams


def _install():
    """Give the core these hooks, and with them tensors on the device: once every family has its kernels."""
    install_device_hooks(&hooks)


def _enter_current():
    """Make the current device's context the thread's, for calls of the driver."""
    enter_device(current())
