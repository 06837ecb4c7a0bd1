# cython: language_level=3, embedsignature=True
"""The CUDA driver API, opened at run time: devices, memory, modules and launches.

libcuda.so.1 comes with NVIDIA's kernel driver and is never linked against: it is opened on the first question about
CUDA, from the path in TENSORRT_LITE_LIBCUDA where that is set (the emulator of tools/cuda_emulator, for instance).
Without it `available()` is False and everything else raises RuntimeError.

The primary context of a device is used, which the runtime API, cuBLAS, NCCL and PyCUDA share; it is retained once per
device and never released, since objects of other libraries may outlive this module's. Called by the allocator, the
kernel cache and the generated operators, through driver.pxd.
"""
from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uintptr_t
from libc.stdlib cimport getenv
from libc.string cimport memcpy, strcmp
from tensorrt_lite._C.core.dispatch cimport attach, tls
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.cuda.entry_points cimport AccessDescription, AllocationProperties, Driver, SharedHandle, access_of, pinned_on

attach()

cdef extern from "dlfcn.h" nogil:
    void* dlopen(const char* path, int flags)
    void* dlsym(void* library, const char* name)
    int RTLD_NOW
    int RTLD_LOCAL

cdef enum:
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_NOT_READY = 600
    EVENT_NO_TIMING = 2
    CAPTURE_RELAXED = 2
    RECENT = 16

# In the order of Driver's members.
cdef tuple ENTRY_POINTS = (
    b"cuInit", b"cuDriverGetVersion", b"cuDeviceGetCount", b"cuDeviceGet", b"cuDeviceGetName",
    b"cuDeviceGetAttribute", b"cuDevicePrimaryCtxRetain", b"cuCtxSetCurrent", b"cuCtxGetCurrent",
    b"cuCtxPushCurrent_v2", b"cuCtxPopCurrent_v2", b"cuMemAlloc_v2", b"cuMemFree_v2", b"cuMemGetInfo_v2",
    b"cuMemcpyHtoDAsync_v2", b"cuMemcpyDtoHAsync_v2", b"cuMemcpyDtoDAsync_v2", b"cuMemsetD8Async",
    b"cuModuleLoadData", b"cuModuleUnload", b"cuModuleGetFunction", b"cuCtxSynchronize", b"cuStreamSynchronize",
    b"cuGetErrorString", b"cuGetErrorName", b"cuLaunchKernel",
    b"cuStreamCreateWithPriority", b"cuStreamDestroy_v2", b"cuStreamQuery", b"cuStreamWaitEvent", b"cuCtxGetStreamPriorityRange",
    b"cuEventCreate", b"cuEventRecord", b"cuEventQuery", b"cuEventSynchronize", b"cuEventElapsedTime", b"cuEventDestroy_v2",
    b"cuMemHostAlloc", b"cuMemFreeHost", b"cuMemcpyPeerAsync",
    b"cuStreamBeginCapture_v2", b"cuStreamEndCapture", b"cuStreamIsCapturing", b"cuGraphInstantiateWithFlags", b"cuGraphLaunch", b"cuGraphDestroy",
    b"cuGraphExecDestroy", b"cuDeviceCanAccessPeer", b"cuDeviceTotalMem_v2", b"cuDeviceGetUuid_v2",
    b"cuThreadExchangeStreamCaptureMode",
    b"cuMemGetAllocationGranularity", b"cuMemAddressReserve", b"cuMemAddressFree", b"cuMemCreate", b"cuMemRelease", b"cuMemMap", b"cuMemUnmap",
    b"cuMemSetAccess", b"cuMemAllocAsync", b"cuMemFreeAsync", b"cuDeviceGetDefaultMemPool", b"cuMemPoolSetAttribute", b"cuMemPoolTrimTo",
    b"cuMemGetAddressRange_v2", b"cuIpcGetMemHandle", b"cuIpcOpenMemHandle_v2", b"cuIpcCloseMemHandle", b"cuIpcGetEventHandle", b"cuIpcOpenEventHandle",
    b"cuMemHostRegister_v2", b"cuMemHostUnregister", b"cuProfilerStart", b"cuProfilerStop",
)

cdef Driver driver
cdef bint opened = False         # whether `_open` has run; guarded by the GIL
cdef str unavailable_reason = None
cdef int devices = 0
cdef int default_device = 0
cdef void* primary_contexts[MAX_DEVICES]
cdef bint forked = False         # this process was forked from one that had a context

# The last launches, for errors that the driver reports later: their operators, and their kernels where no operator was known.
cdef struct Launch:
    const char* operator_name
    void* function
cdef Launch recent[RECENT]
kernel_names = {}                # {function: name}
cdef unsigned int launched = 0
cdef const char* switch_ = getenv(b"CUDA_LAUNCH_BLOCKING")
cdef bint blocking = switch_ != NULL and switch_[0] != 0 and strcmp(switch_, b"0") != 0      # wait for each kernel


cdef object _services = None       # what finds the package's functions, see `service`


def _set_services(find not None):
    """`find(name)` returns a function of tensorrt_lite.cuda: emulator_library() and cublaslt() give paths of libraries, compile_unit(source,
    device) the image of CUDA C++ text, note_launch(source, entry) keeps the tests' list of launches."""
    global _services
    _services = find


cdef object service(str name):
    """A function of the package, found when it is needed: compilers and folders are Python's business."""
    if _services is None:
        raise RuntimeError(f"CUDA: {name} is asked for before tensorrt_lite.cuda is imported")
    return _services(name)


cdef int _open() except -1:
    """Opens the driver once; afterwards `unavailable_reason` is None if it can be used."""
    global opened, unavailable_reason, devices
    cdef const char* path
    cdef const char* wanted
    cdef void* library
    cdef void** entries = <void**>&driver
    cdef int status, index
    cdef bytes emulated
    if opened:
        return 0
    path = getenv(b"TENSORRT_LITE_LIBCUDA")
    wanted = getenv(b"TENSORRT_LITE_CUDA")
    assert sizeof(Driver) == len(ENTRY_POINTS) * sizeof(void*)
    opened = True
    if (path == NULL or path[0] == 0) and wanted != NULL and strcmp(wanted, b"emulate") == 0:
        emulated = service("emulator_library")().encode()
        path = emulated
    if path == NULL or path[0] == 0:
        path = "libcuda.so.1"
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL)
    if library == NULL:
        unavailable_reason = "no NVIDIA driver found: libcuda.so.1 cannot be opened"
        return 0
    for index, name in enumerate(ENTRY_POINTS):
        entries[index] = dlsym(library, PyBytes_AS_STRING(name))
        if entries[index] == NULL:
            unavailable_reason = f"the NVIDIA driver is too old: it lacks {name.decode()}"
            return 0
    status = driver.init(0)
    if status == CUDA_SUCCESS:
        status = driver.device_count(&devices)
    if status != CUDA_SUCCESS or devices == 0:
        devices = 0
        unavailable_reason = _describe(status if status != CUDA_SUCCESS else CUDA_ERROR_NO_DEVICE)
    devices = min(devices, <int>MAX_DEVICES)
    return 0


cdef str _describe(int status):
    cdef const char* text = NULL
    if driver.error_text(status, &text) != CUDA_SUCCESS or text == NULL:
        return f"unknown error {status}"
    return text.decode("utf-8", "replace")


cdef bint _is_of_kernel(int status) noexcept:
    """Whether a kernel made this error, which any later call may return."""
    return status == 700 or status == 702 or status == 710 or 714 <= status <= 719


cdef int _fail(int status) except -1 with gil:
    cdef str text = f"CUDA error: {_describe(status)}"
    cdef list names = []
    cdef int i
    if _is_of_kernel(status) and launched and not blocking:
        for i in range(min(launched, <unsigned int>RECENT)):
            name = _name_of(&recent[(launched - 1 - i) % RECENT])
            if name not in names:
                names.append(name)
        text += ("\nA kernel that was launched earlier has failed. The last operators, latest first: " + ", ".join(names) +
                 ". CUDA_LAUNCH_BLOCKING=1 makes the error name the one.")
    raise RuntimeError(text)


cdef str _name_of(Launch* launch):
    if launch.operator_name != NULL:
        return launch.operator_name.decode()
    return f"kernel {kernel_names.get(<uintptr_t>launch.function, 'without a name')}"


cdef int _fail_launch(int status) except -1 with gil:
    if _is_of_kernel(status) and not blocking:
        return _fail(status)
    raise RuntimeError(f"CUDA error: {_describe(status)} (operator {_name_of(&recent[(launched - 1) % RECENT])})")


cdef inline int _check(int status) except -1 nogil:
    if status != CUDA_SUCCESS:
        return _fail(status)
    return 0


cdef int _require() except -1:
    _open()
    if unavailable_reason is not None:
        raise hinted("no driver", RuntimeError(f"CUDA error: {unavailable_reason}"))
    if forked:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start method")
    return 0


def _after_fork():
    """A child process has no contexts: CUDA cannot be used in it."""
    global forked
    cdef int i
    for i in range(MAX_DEVICES):
        if primary_contexts[i] != NULL:
            forked = True
            primary_contexts[i] = NULL


def in_bad_fork() -> bool:
    return forked


cdef int _require_device(int device) except -1:
    _require()
    if device < 0 or device >= devices:
        raise RuntimeError(f"CUDA error: invalid device ordinal: device {device}, but there are {devices}")
    return 0


cdef void* _primary_context(int device) except NULL:
    cdef int handle = 0
    cdef void* context = NULL
    _require_device(device)
    if primary_contexts[device] == NULL:
        _check(driver.device_get(&handle, device))
        _check(driver.retain_primary(&context, handle))
        primary_contexts[device] = context
    return primary_contexts[device]


cdef int _adopt_default_context() except -1 with gil:
    return _check(driver.set_context(_primary_context(default_device)))


cdef int ensure_context() except -1 nogil:
    cdef void* current = NULL
    if driver.get_context == NULL:
        with gil:
            _require()
    # A context that somebody else made current (PyCUDA, for instance) is left in place.
    if driver.get_context(&current) == CUDA_SUCCESS and current != NULL:
        return 0
    return _adopt_default_context()


cdef int check_device(int device) except -1:
    return _require_device(device)


cdef int device_count_of() except -1:
    _require()
    return devices


cdef int enter_device(int device) except -1:
    cdef void* current = NULL
    cdef void* wanted = primary_contexts[device]
    if wanted == NULL:
        wanted = _primary_context(device)
    if driver.get_context(&current) != CUDA_SUCCESS or current != wanted:
        _check(driver.set_context(wanted))
    return 0


cdef int exchange_capture_mode(int mode) noexcept:
    driver.exchange_capture_mode(&mode)
    return mode


cdef DevicePointer try_allocate(size_t size) except? 0:
    cdef DevicePointer pointer = 0
    cdef int mode = CAPTURE_RELAXED, status
    # memory for a graph that is being recorded is taken beside the recording
    driver.exchange_capture_mode(&mode)
    status = driver.allocate(&pointer, size)
    driver.exchange_capture_mode(&mode)
    if status == CUDA_ERROR_OUT_OF_MEMORY:
        return 0
    _check(status)
    return pointer


cdef DevicePointer reserve_addresses(size_t size) except? 0:
    cdef DevicePointer pointer = 0
    _check(driver.address_reserve(&pointer, size, 0, 0, 0))
    return pointer


cdef int release_addresses(DevicePointer pointer, size_t size) except -1:
    return _check(driver.address_free(pointer, size))


cdef uint64_t map_memory(DevicePointer pointer, size_t size, int device) except? 0:
    cdef AllocationProperties properties = pinned_on(device)
    cdef AccessDescription access[MAX_DEVICES]
    cdef unsigned long long handle = 0
    cdef int mode = CAPTURE_RELAXED, status, other, count = 1, can = 0
    access[0] = access_of(device)
    # copies between cards need the other one's access, which enabling peer access does not give to mapped memory
    for other in range(devices):
        if other != device and driver.peer_access(&can, other, device) == CUDA_SUCCESS and can:
            access[count] = access_of(other)
            count += 1
    driver.exchange_capture_mode(&mode)
    status = driver.memory_create(&handle, size, &properties, 0)
    if status == CUDA_SUCCESS:
        status = driver.memory_map(pointer, size, 0, handle, 0)
        if status == CUDA_SUCCESS:
            status = driver.memory_access(pointer, size, access, count)
        if status != CUDA_SUCCESS:
            driver.memory_release(handle)
    driver.exchange_capture_mode(&mode)
    if status == CUDA_ERROR_OUT_OF_MEMORY:
        return 0
    _check(status)
    return handle


cdef int unmap_memory(DevicePointer pointer, size_t size, uint64_t handle) except -1:
    _check(driver.memory_unmap(pointer, size))
    return _check(driver.memory_release(handle))


cdef DevicePointer try_allocate_async(size_t size, StreamHandle stream) except? 0:
    cdef DevicePointer pointer = 0
    cdef int status = driver.allocate_async(&pointer, size, stream)
    if status == CUDA_ERROR_OUT_OF_MEMORY:
        return 0
    _check(status)
    return pointer


cdef int release_async(DevicePointer pointer, StreamHandle stream) except -1:
    return _check(driver.release_async(pointer, stream))


cdef int keep_pool(int device, bint keep) except -1:
    """What is given back to the driver's pool stays there (keep), or the pool gives up what nobody uses."""
    cdef void* pool = NULL
    cdef unsigned long long threshold = <unsigned long long>-1
    cdef int handle = 0
    _check(driver.device_get(&handle, device))
    _check(driver.default_pool(&pool, handle))
    return _check(driver.pool_set(pool, 4, &threshold) if keep else driver.pool_trim(pool, 0))     # CU_MEMPOOL_ATTR_RELEASE_THRESHOLD


cdef int device_memory(size_t* free, size_t* total) except -1:
    return _check(driver.memory_info(free, total))


cdef int synchronize_device() except -1:
    cdef int status
    with nogil:
        status = driver.synchronize()
    return _check(status)


cdef EventHandle event_create(bint timing) except NULL:
    cdef EventHandle event = NULL
    _check(driver.event_create(&event, 0 if timing else EVENT_NO_TIMING))
    return event


cdef int event_record(EventHandle event, StreamHandle stream) except -1:
    return _check(driver.event_record(event, stream))


cdef int event_done(EventHandle event, bint wait) except -1:
    """1 when what was recorded has run; with `wait`, after it has."""
    cdef int status
    if wait:
        with nogil:
            status = driver.event_synchronize(event)
    else:
        status = driver.event_query(event)
    if status == CUDA_ERROR_NOT_READY:
        return 0
    _check(status)
    return 1


cdef int event_destroy(EventHandle event) except -1:
    return _check(driver.event_destroy(event))


cdef int stream_wait(StreamHandle stream, EventHandle event) except -1:
    return _check(driver.stream_wait(stream, event, 0))


cdef DevicePointer allocate(size_t size) except? 0 nogil:
    cdef DevicePointer pointer = 0
    _check(driver.allocate(&pointer, size))
    return pointer


cdef int release(DevicePointer pointer) except -1 nogil:
    return _check(driver.release(pointer))


cdef int copy_to_device(DevicePointer to, const void* source, size_t size, StreamHandle stream) except -1 nogil:
    return _check(driver.to_device(to, source, size, stream))


cdef int copy_to_host(void* to, DevicePointer source, size_t size, StreamHandle stream) except -1 nogil:
    return _check(driver.to_host(to, source, size, stream))


cdef int copy_on_device(DevicePointer to, DevicePointer source, size_t size, StreamHandle stream) except -1 nogil:
    return _check(driver.on_device(to, source, size, stream))


cdef int copy_between(DevicePointer to, int to_device, DevicePointer source, int device, size_t size, StreamHandle stream) except -1:
    """Memory of one device to another, queued on a stream of the first one."""
    enter_device(to_device)
    return _check(driver.peer_copy(to, _primary_context(to_device), source, _primary_context(device), size, stream))


cdef int synchronize_stream(StreamHandle stream) except -1 nogil:
    return _check(driver.stream_synchronize(stream))


cdef int launch(FunctionHandle function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
                unsigned int block_x, unsigned int block_y, unsigned int block_z, unsigned int shared_bytes,
                StreamHandle stream, void** parameters) except -1 nogil:
    global launched
    cdef int status = driver.launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters, NULL)
    recent[launched % RECENT].operator_name = tls().operator_name
    recent[launched % RECENT].function = function
    launched += 1
    if blocking and status == CUDA_SUCCESS:
        status = wait_for_launch(stream)
    return _fail_launch(status) if status != CUDA_SUCCESS else 0


cdef int wait_for_launch(StreamHandle stream) noexcept nogil:
    cdef int capturing = 0
    driver.capture_status(stream, &capturing)
    return CUDA_SUCCESS if capturing else driver.stream_synchronize(stream)


def available() -> bool:
    """Whether a CUDA driver with at least one device is present. Never raises."""
    _open()
    return unavailable_reason is None


def require() -> None:
    """RuntimeError, with the reason, where there is no device."""
    _require()


def device_count() -> int:
    """Number of devices; 0 without a driver."""
    _open()
    return devices


def driver_version() -> int:
    """The CUDA version the driver supports, as 1000 * major + 10 * minor."""
    cdef int version = 0
    _require()
    _check(driver.version(&version))
    return version


def device_name(int device = 0) -> str:
    """The device's name."""
    cdef char[256] name
    _require_device(device)
    _check(driver.device_name(name, sizeof(name), device))
    return (<const char*>name).decode()


def device_attribute(int attribute, int device = 0) -> int:
    """A CUdevice_attribute, by its number in the driver API."""
    cdef int value = 0
    _require_device(device)
    _check(driver.device_attribute(&value, attribute, device))
    return value


def set_device(int device) -> None:
    """Makes the device's primary context current on this thread, and the default of threads that have none."""
    global default_device
    _check(driver.set_context(_primary_context(device)))
    default_device = device


def push_context(int device = 0) -> None:
    """Pushes the device's primary context onto this thread's stack; undone by `pop_context`."""
    _check(driver.push_context(_primary_context(device)))


def pop_context() -> None:
    """Removes the context that `push_context` made current."""
    cdef void* context = NULL
    _require()
    _check(driver.pop_context(&context))


def device_total_memory(int device) -> int:
    """Bytes of the device's memory."""
    cdef size_t total = 0
    cdef int handle = 0
    _require_device(device)
    _check(driver.device_get(&handle, device))
    _check(driver.total_memory(&total, handle))
    return total


def device_uuid(int device) -> bytes:
    """The device's 16 bytes of identity."""
    cdef char[16] uuid
    cdef int handle = 0
    _require_device(device)
    _check(driver.device_get(&handle, device))
    _check(driver.uuid(uuid, handle))
    return (<char*>uuid)[:16]


def can_access_peer(int device, int peer) -> bool:
    """Whether kernels of one device can address the other's memory."""
    cdef int value = 0, a = 0, b = 0
    _require_device(device)
    _require_device(peer)
    _check(driver.device_get(&a, device))
    _check(driver.device_get(&b, peer))
    _check(driver.peer_access(&value, a, b))
    return bool(value)


def memory_info() -> tuple[int, int]:
    """(free, total) bytes of the current device's memory."""
    cdef size_t free = 0, total = 0
    ensure_context()
    _check(driver.memory_info(&free, &total))
    return free, total


def memory_allocate(size_t size) -> int:
    """Address of `size` fresh bytes of device memory. Raises RuntimeError when there is not enough."""
    ensure_context()
    return allocate(size)


def memory_free(DevicePointer pointer) -> None:
    """Gives memory of `memory_allocate` back."""
    ensure_context()
    release(pointer)


def memory_fill(DevicePointer pointer, unsigned char value, size_t size, uintptr_t stream = 0) -> None:
    """Sets `size` bytes to `value`, ordered on `stream`."""
    ensure_context()
    _check(driver.fill(pointer, value, size, <void*>stream))


def memory_copy_from_host(DevicePointer to, source, uintptr_t stream = 0) -> None:
    """Copies a C-contiguous buffer to the device and waits for it."""
    cdef Py_buffer view
    ensure_context()
    PyObject_GetBuffer(source, &view, PyBUF_C_CONTIGUOUS)
    try:
        with nogil:
            copy_to_device(to, view.buf, view.len, <void*>stream)
            synchronize_stream(<void*>stream)
    finally:
        PyBuffer_Release(&view)


def memory_copy_to_host(to, DevicePointer source, uintptr_t stream = 0) -> None:
    """Fills a writable C-contiguous buffer from the device, waiting for work on `stream`."""
    cdef Py_buffer view
    ensure_context()
    PyObject_GetBuffer(to, &view, PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE)
    try:
        with nogil:
            copy_to_host(view.buf, source, view.len, <void*>stream)
            synchronize_stream(<void*>stream)
    finally:
        PyBuffer_Release(&view)


def memory_copy_on_device(DevicePointer to, DevicePointer source, size_t size, uintptr_t stream = 0) -> None:
    """Copies device memory, ordered on `stream`; does not wait."""
    ensure_context()
    copy_on_device(to, source, size, <void*>stream)


def synchronize() -> None:
    """Waits for all work of the current context."""
    cdef int status
    ensure_context()
    with nogil:
        status = driver.synchronize()
    _check(status)


cdef class Module:
    """Device code loaded into the current context from a cubin, fatbin, PTX or, on the emulator, a shared object.

    Unloaded when the last reference, its functions' included, is gone.
    """

    def __init__(self, const unsigned char[::1] image not None):
        cdef void* handle = NULL
        cdef int mode, status
        if image.shape[0] == 0:
            raise RuntimeError("CUDA error: empty module image")
        if self.handle != NULL:
            raise RuntimeError("CUDA error: a Module is loaded once")
        ensure_context()
        # code for a graph that is being recorded is loaded beside the recording
        mode = exchange_capture_mode(CAPTURE_RELAXED)
        status = driver.module_load(&handle, &image[0])
        exchange_capture_mode(mode)
        _check(status)
        self.handle = handle
        self.device = default_device

    def __dealloc__(self):
        # A failure here means that the context is gone, and the module with it.
        if self.handle != NULL:
            driver.module_unload(self.handle)

    def get_function(self, str name not None) -> Function:
        """The kernel of this name. Raises RuntimeError when the module has none."""
        cdef Function function = Function.__new__(Function)
        cdef bytes encoded = name.encode()
        cdef int mode, status
        ensure_context()
        # the driver may load the code only now (CUDA_MODULE_LOADING=LAZY)
        mode = exchange_capture_mode(CAPTURE_RELAXED)
        status = driver.module_function(&function.handle, self.handle, PyBytes_AS_STRING(encoded))
        exchange_capture_mode(mode)
        _check(status)
        function.module = self
        kernel_names[<uintptr_t>function.handle] = name
        function.name = name
        return function


cdef class Function:
    """A kernel of a loaded module, from `Module.get_function`."""

    def launch(self, tuple grid not None, tuple block not None, const unsigned char[::1] parameters not None,
               unsigned int shared_bytes = 0, uintptr_t stream = 0) -> None:
        """Launches with the arguments packed as the driver lays them out: in order, each at its natural alignment.

        grid, block: (x, y, z). Cython code calls `launch` of driver.pxd instead.
        """
        cdef unsigned int gx, gy, gz, bx, by, bz
        cdef size_t size = parameters.shape[0]
        cdef void* extra[5]
        cdef int status
        if self.handle == NULL:
            raise RuntimeError("CUDA error: a Function comes from Module.get_function")
        gx, gy, gz = grid
        bx, by, bz = block
        extra[0] = <void*><uintptr_t>1  # CU_LAUNCH_PARAM_BUFFER_POINTER
        extra[1] = <void*>&parameters[0] if size else NULL
        extra[2] = <void*><uintptr_t>2  # CU_LAUNCH_PARAM_BUFFER_SIZE
        extra[3] = &size
        extra[4] = NULL                 # CU_LAUNCH_PARAM_END
        ensure_context()
        with nogil:
            status = driver.launch(self.handle, gx, gy, gz, bx, by, bz, shared_bytes, <void*>stream, NULL,
                                   extra if size else NULL)
        _check(status)


# ---- streams, events, pinned memory: handles as numbers, for tensorrt_lite.cuda --------------------------------------

def stream_create(int device, int priority=0) -> int:
    """A stream that does not wait for the default stream. Lower numbers run first."""
    cdef void* stream = NULL
    enter_device(device)
    _check(driver.stream_create(&stream, 1, priority))
    return <uintptr_t>stream


def stream_destroy(int device, uintptr_t stream) -> None:
    enter_device(device)
    _check(driver.stream_destroy(<void*>stream))


def stream_query(int device, uintptr_t stream) -> bool:
    """Whether all work submitted so far has run."""
    cdef int status
    enter_device(device)
    status = driver.stream_query(<void*>stream)
    if status == CUDA_ERROR_NOT_READY:
        return False
    _check(status)
    return True


def stream_synchronize(int device, uintptr_t stream) -> None:
    cdef int status
    enter_device(device)
    with nogil:
        status = driver.stream_synchronize(<void*>stream)
    _check(status)


def stream_wait_event(int device, uintptr_t stream, uintptr_t event) -> None:
    enter_device(device)
    _check(driver.stream_wait(<void*>stream, <void*>event, 0))


def stream_priority_range() -> tuple[int, int]:
    """(least, greatest) priority of the current device."""
    cdef int least = 0, greatest = 0
    ensure_context()
    _check(driver.stream_priorities(&least, &greatest))
    return least, greatest


def new_event(int device, bint timing, bint blocking=False, bint interprocess=False) -> int:
    cdef void* event = NULL
    enter_device(device)
    _check(driver.event_create(&event, (0 if timing else EVENT_NO_TIMING) | (1 if blocking else 0) | (4 if interprocess else 0)))
    return <uintptr_t>event


def record_event(int device, uintptr_t event, uintptr_t stream) -> None:
    enter_device(device)
    event_record(<void*>event, <void*>stream)


def query_event(uintptr_t event) -> bool:
    return bool(event_done(<void*>event, False))


def synchronize_event(uintptr_t event) -> None:
    event_done(<void*>event, True)


def event_elapsed(uintptr_t start, uintptr_t end) -> float:
    """Milliseconds between two recorded events."""
    cdef float milliseconds = 0
    _check(driver.event_time(&milliseconds, <void*>start, <void*>end))
    return milliseconds


def destroy_event(int device, uintptr_t event) -> None:
    enter_device(device)
    event_destroy(<void*>event)


def synchronize_on(int device) -> None:
    """Waits for all work of a device."""
    enter_device(device)
    synchronize_device()


def host_allocate(size_t size) -> int:
    """Page-locked host memory that every device can copy from and to without a detour."""
    cdef void* pointer = NULL
    ensure_context()
    _check(driver.host_allocate(&pointer, size, 1))  # CU_MEMHOSTALLOC_PORTABLE
    return <uintptr_t>pointer


def host_register(size_t pointer, size_t size, unsigned int flags) -> int:
    """Lock the pages of memory that somebody else has allocated; the driver's status."""
    ensure_context()
    return driver.host_register(<void*>pointer, size, flags)


def host_unregister(size_t pointer) -> int:
    ensure_context()
    return driver.host_unregister(<void*>pointer)


def profiler(bint on) -> int:
    """Have a profiler begin or stop to collect; the driver's status."""
    ensure_context()
    return driver.profiler_start() if on else driver.profiler_stop()


def error_text(int status) -> str:
    """What the driver says of a status."""
    _require()
    return _describe(status)


cdef int host_free(void* pointer) except -1:
    return _check(driver.host_free(pointer))


# ---- graphs: work of a stream recorded once, submitted as one --------------------------------------------------------

def capture_begin(int device, uintptr_t stream, int mode) -> None:
    """Work submitted to the stream is recorded from here on. mode: 0 global, 1 thread local, 2 relaxed."""
    enter_device(device)
    _check(driver.capture_begin(<void*>stream, mode))


def capture_end(int device, uintptr_t stream) -> int:
    """Ends the recording; returns the graph."""
    cdef void* graph = NULL
    enter_device(device)
    _check(driver.capture_end(<void*>stream, &graph))
    return <uintptr_t>graph


def is_capturing(int device, uintptr_t stream) -> bool:
    cdef int status = 0
    enter_device(device)
    _check(driver.capture_status(<void*>stream, &status))
    return status == 1


def graph_instantiate(int device, uintptr_t graph) -> int:
    """Makes a graph ready to be launched."""
    cdef void* instance = NULL
    enter_device(device)
    _check(driver.graph_instantiate(&instance, <void*>graph, 0))
    return <uintptr_t>instance


def graph_launch(int device, uintptr_t instance, uintptr_t stream) -> None:
    enter_device(device)
    _check(driver.graph_launch(<void*>instance, <void*>stream))


def graph_destroy(uintptr_t graph, uintptr_t instance) -> None:
    if instance:
        _check(driver.graph_exec_destroy(<void*>instance))
    if graph:
        _check(driver.graph_destroy(<void*>graph))


# ---- sharing between processes: handles are 64 bytes ------------------------------------------------------------------

def share_memory(int device, DevicePointer pointer) -> tuple[bytes, int]:
    """(the handle under which other processes open the allocation that `pointer` lies in, the distance from its start)."""
    cdef SharedHandle handle
    cdef DevicePointer base = 0
    cdef size_t size = 0
    enter_device(device)
    _check(driver.address_range(&base, &size, pointer))
    _check(driver.share_memory(&handle, base))
    return (<char*>handle.bytes)[:64], pointer - base


def open_memory(int device, bytes handle not None) -> int:
    """The address at which this process sees another one's allocation."""
    cdef SharedHandle shared
    cdef DevicePointer pointer = 0
    if len(handle) != 64:
        raise ValueError(f"the handle of shared memory has 64 bytes, not {len(handle)}")
    enter_device(device)
    memcpy(shared.bytes, PyBytes_AS_STRING(handle), 64)
    _check(driver.open_memory(&pointer, shared, 1))      # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
    return pointer


def close_memory(int device, DevicePointer pointer) -> None:
    enter_device(device)
    _check(driver.close_memory(pointer))


def share_event(int device, uintptr_t event) -> bytes:
    """The handle under which other processes open an event made for it."""
    cdef SharedHandle handle
    enter_device(device)
    _check(driver.share_event(&handle, <void*>event))
    return (<char*>handle.bytes)[:64]


def open_event(int device, bytes handle not None) -> int:
    cdef SharedHandle shared
    cdef void* event = NULL
    if len(handle) != 64:
        raise ValueError(f"the handle of an event has 64 bytes, not {len(handle)}")
    enter_device(device)
    memcpy(shared.bytes, PyBytes_AS_STRING(handle), 64)
    _check(driver.open_event(&event, shared))
    return <uintptr_t>event
