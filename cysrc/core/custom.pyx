"""Custom devices: what the core asks of a device type that a program has registered (tensorrt_lite/backend).

Nothing here or above reads a device's memory. A device brings an allocator and copies of bytes to and from the host; all other copies (of views, in other
types, fills) are made of these, unless it has a kernel for them. Operators run the same compiled kernels as on CUDA, whose steps a device may register, or a
Python kernel in their place; where a step is missing, MissingStep goes up to the operator, which falls back to the host where that was asked for.

Invariants: the devices are in `_devices` by type, from their registration to the end of the process; a device's functions are called with the GIL.
"""
import sys
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.allocator cimport block_external, trt_block, trt_block_context
from cpython.ref cimport Py_INCREF, Py_XDECREF
from tensorrt_lite._C.core.args cimport scalar_object
from tensorrt_lite._C.core.boxing cimport box_arguments, call_boxed, register_boxed
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_CUSTOM, LAST_CUSTOM, device, device_type_name, make_device
from tensorrt_lite._C.core.dispatch cimport (
    BELOW, FRESH, NO_OUT, attach, call_kernel, compiled_kernel, device_kernel, existing_operator, redispatch, set_device_kernel, tls, trt_operator, trt_value)
from tensorrt_lite._C.core.dispatch import MissingStep
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.iterator cimport Iter, PointwiseInfo, cast_to, copy_elements
from tensorrt_lite._C.core.random cimport GeneratorBase
from tensorrt_lite._C.core.random import _swap_default_generator, device_generator
from tensorrt_lite._C.core.row_schema cimport schema_of
from tensorrt_lite._C.core.storage cimport DeviceHooks, device_storage, hooks_of, install_custom_hooks
from tensorrt_lite._C.core.tensor cimport (
    DEVICE_INDICES, ITEM_SIZE, KEY_CUSTOM, KEY_PYTHON, K_CUSTOM, K_STORAGE_ONLY, MAX_DIMS, TensorBase, alias_of, data_of, empty_strided_tensor, empty_tensor, hold_versions,
    non_overlapping_dense, place_of, resize_tensor, same_sizes, set_geometry)

attach()

cdef object is_finalizing = sys.is_finalizing    # a module's Python globals are gone when it is asked

cdef extern from "device_interface.h":
    ctypedef struct trt_device_operands:
        const char* name
        int index, compute, count, ndim, n_params
        const int64_t* sizes
        const int64_t* strides[7]
        char* data[7]
        int dtype[7]
        unsigned on_host
        const double* params
    ctypedef void* (*trt_device_allocate)(int64_t nbytes, int index) noexcept nogil
    ctypedef void (*trt_device_release)(void* address, int64_t nbytes, int index) noexcept nogil
    ctypedef int (*trt_device_copy)(void* destination, const void* source, int64_t nbytes, int index, int non_blocking) noexcept nogil
    ctypedef int (*trt_device_elementwise)(const trt_device_operands* operands) noexcept nogil

cdef extern from *:
    """
    static __thread int trt_custom_non_blocking __attribute__((tls_model("initial-exec")));
    static __thread int trt_custom_streams __attribute__((tls_model("initial-exec")));   /* the number of this thread's set (backend/stream_sets.py) */
    """
    int streams_now "trt_custom_streams"
    int non_blocking_now "trt_custom_non_blocking"


cdef class CustomDevice:
    """A registered device type. The functions are Python's, or addresses of C functions (core/device_interface.h) as integers."""
    cdef readonly int code
    cdef readonly str name
    cdef public object allocate, release, to_host, to_device, within, current_device, device_count
    cdef readonly dict elementwise         # {operator: kernel of a pointwise operator, or of "copy"}
    cdef public object any_elementwise     # for those without one: returns NotImplemented where it has none either
    cdef public object fallback            # called with the operator's name and arguments, or None
    cdef public object host_operators      # names of operators that fall back to the host; True: all
    cdef public object warn_fallback       # called with the operator's name when one falls back to the host, or None

    def __init__(self, str name not None, int code):
        if not DEV_CUSTOM <= code <= LAST_CUSTOM:
            raise ValueError(f"{code} is not the type of a custom device")
        self.name = name
        self.code = code
        self.elementwise = {}
        self.host_operators = frozenset()


cdef list _devices = [None] * 8             # CustomDevice by type


cdef CustomDevice device_of(int code):
    d = _devices[code - DEV_CUSTOM] if DEV_CUSTOM <= code <= LAST_CUSTOM else None
    if d is None:
        raise RuntimeError(f"no device of the type '{device_type_name(code)}' has been registered: see tensorrt_lite.backend.register_device")
    return <CustomDevice>d


def _register(CustomDevice d not None):
    """Make a device type known to the core; a second registration takes the place of the first."""
    _devices[d.code - DEV_CUSTOM] = d
    install_custom_hooks(&hooks)


# ---- memory --------------------------------------------------------------------------------------------------------

cdef class DeviceMemory:
    """What a device's allocator gave: an address, or an object that keeps memory of the host. It goes back when the last tensor is gone."""
    cdef CustomDevice device
    cdef readonly size_t address
    cdef readonly int64_t nbytes
    cdef readonly int index
    cdef object owner

    def __dealloc__(self):
        release = self.device.release if self.device is not None else None
        if release is None or self.owner is not None:
            return
        if isinstance(release, int):
            (<trt_device_release><size_t>release)(<void*>self.address, self.nbytes, self.index)
        elif not is_finalizing():
            # at the end of the interpreter other threads have stopped where they were, one perhaps with a lock that Python's release would wait for
            release(self.address, self.nbytes, self.index)


cdef void release_memory(trt_block* b) noexcept nogil:
    with gil:
        Py_XDECREF(<PyObject*>trt_block_context(b))


cdef object allocate(int device_type, int64_t nbytes, int index):
    cdef CustomDevice d = device_of(device_type)
    cdef DeviceMemory m
    cdef int count = d.device_count()
    if index < 0:
        index = current(device_type)
    if index >= count:
        raise RuntimeError(f"{d.name} error: invalid device ordinal {index}: there are {count}")
    m = DeviceMemory.__new__(DeviceMemory)
    m.nbytes = nbytes
    m.index = index
    if nbytes:
        if isinstance(d.allocate, int):
            m.address = <size_t>(<trt_device_allocate><size_t>d.allocate)(nbytes, index)
        else:
            given = d.allocate(nbytes, index)
            if isinstance(given, int):
                m.address = given
            elif given is not None:
                m.address, m.owner = given          # host memory that an object keeps
        if not m.address:
            raise MemoryError(f"{d.name} out of memory: tried to allocate {nbytes} bytes on {d.name}:{index}")
        m.device = d
    Py_INCREF(m)
    return device_storage(block_external(<void*>m.address, nbytes, release_memory, <void*>m), nbytes, device_type, index)


cdef object allocate_pinned(int64_t nbytes):
    raise RuntimeError("page-locked memory is CUDA's")


cdef int current(int device_type) except -1:
    cdef int index = device_of(device_type).current_device()
    if not 0 <= index < DEVICE_INDICES:
        raise RuntimeError(f"{device_type_name(device_type)}: the current device is {index}; indices are from 0 to {DEVICE_INDICES - 1}")
    return index


# ---- streams -------------------------------------------------------------------------------------------------------

cdef object _stream_sets = None             # tensorrt_lite.backend.stream_sets


def _use_stream_sets(module not None):
    """What numbers the sets of current streams."""
    global _stream_sets
    _stream_sets = module


def _note_streams(int number, int newest):
    """This thread's set of current devices and streams; the last number that was given out."""
    global streams_now
    streams_now = number
    tls().notes = tls().notes | NOTE_CUSTOM_STREAMS if number else tls().notes & ~NOTE_CUSTOM_STREAMS
    hooks.stream_sets = newest
    hooks_of(DEV_CUSTOM).stream_sets = newest


cdef int current_streams() noexcept:
    return streams_now


cdef int use_streams(int number) except -1:
    _stream_sets.use(number)
    return 0


cdef int hand_over(object tensor, int producer, int consumer) except -1:
    _stream_sets.hand_over(tensor, producer, consumer)
    return 0


cdef int keep_for(object tensor, int consumer) except -1:
    _stream_sets.keep_for(tensor, consumer)
    return 0


cdef int join(int producer, int consumer) except -1:
    _stream_sets.join(producer, consumer)
    return 0


# ---- copies --------------------------------------------------------------------------------------------------------

cdef int transfer(object function, void* destination, const void* source, int64_t nbytes, int index, bint non_blocking, str what) except -1:
    if not nbytes:
        return 0
    if isinstance(function, int):
        if (<trt_device_copy><size_t>function)(destination, source, nbytes, index, non_blocking):
            raise RuntimeError(f"{what}: copying {nbytes} bytes failed")
    else:
        function(<size_t>destination, <size_t>source, nbytes, index, non_blocking)
    return 0


cdef int64_t extent_of(TensorBase t) noexcept:
    """Bytes from a tensor's first element to the end of its last."""
    cdef int64_t last = 0
    cdef int i
    if t.numel == 0:
        return 0
    for i in range(t.ndim):
        last += (t.sizes[i] - 1) * t.strides[i]
    return (last + 1) * ITEM_SIZE[t.dtype]


cdef TensorBase image_of(TensorBase t):
    """Host memory for the bytes from a device tensor's first element to its last, under the same geometry."""
    return empty_strided_tensor(t.ndim, t.sizes, t.strides, t.dtype, DEV_CPU)


cdef bint same_layout(TensorBase a, TensorBase b) noexcept:
    """Whether the bytes of two tensors lie in the same order without gaps."""
    cdef int i
    if a.dtype != b.dtype or not same_sizes(a, b) or not non_overlapping_dense(a):
        return False
    for i in range(a.ndim):
        if a.sizes[i] != 1 and a.strides[i] != b.strides[i]:
            return False
    return True


cdef TensorBase read_out(TensorBase t):
    """A tensor of a custom device in host memory, under the same geometry."""
    cdef CustomDevice d = device_of(t.device_type)
    cdef TensorBase r = image_of(t)
    transfer(d.to_host, data_of(r), data_of(t), extent_of(t), t.device_index, False, "to_host")
    return r


cdef int write_in(TensorBase destination, TensorBase host) except -1:
    """Elements of a host tensor, broadcast and converted, to a custom device."""
    cdef CustomDevice d = device_of(destination.device_type)
    cdef TensorBase image
    if same_layout(destination, host):
        return transfer(d.to_device, data_of(destination), data_of(host), extent_of(destination), destination.device_index, non_blocking_now, "to_device")
    image = image_of(destination) if non_overlapping_dense(destination) else read_out(destination)      # between a view's elements are others
    copy_elements(image, host)
    return transfer(d.to_device, data_of(destination), data_of(image), extent_of(destination), destination.device_index, False, "to_device")


cdef TensorBase host_copy(TensorBase t):
    """On the host, whatever device it is of."""
    cdef TensorBase r
    if t.device_type == DEV_CPU:
        return t
    if DEV_CUSTOM <= t.device_type:
        return read_out(t)
    r = empty_tensor(t.ndim, t.sizes, t.dtype, DEV_CPU)
    copy_elements(r, t)
    return r


cdef int copy(object destination_, object source_, bint non_blocking) except -1:
    """Between two devices, of which one at least is a custom one."""
    cdef TensorBase destination = destination_, source = source_
    cdef CustomDevice d
    if destination.device_type >= DEV_CUSTOM:
        return write_in(destination, host_copy(source))
    if destination.device_type == DEV_CPU and same_layout(source, destination):
        d = device_of(source.device_type)
        return transfer(d.to_host, data_of(destination), data_of(source), extent_of(source), source.device_index, non_blocking_now, "to_host")
    return copy_elements(destination, read_out(source))


cdef int move(char* to, const char* source, int64_t nbytes, int device_type, int index) except -1:
    cdef CustomDevice d = device_of(device_type)
    cdef TensorBase room
    if d.within is not None:
        return transfer(d.within, to, source, nbytes, index, False, "within")
    room = empty_tensor(1, &nbytes, 0, DEV_CPU)
    transfer(d.to_host, data_of(room), source, nbytes, index, False, "to_host")
    return transfer(d.to_device, to, data_of(room), nbytes, index, False, "to_device")


def _use_non_blocking(bint on):
    """Whether copies of this thread may return before they are done."""
    global non_blocking_now
    non_blocking_now = on


# ---- pointwise operators, copies on a device, fills ----------------------------------------------------------------

cdef bint computes(int device_type, const char* name) noexcept:
    cdef CustomDevice d = <CustomDevice>_devices[device_type - DEV_CUSTOM]
    return d is not None and (d.any_elementwise is not None or name.decode() in d.elementwise)


cdef int fall_back(int device_type, const char* name) except -1:
    cdef CustomDevice d = device_of(device_type)
    cdef str step = name.decode()
    if d.host_operators is not True and step not in d.host_operators:
        raise MissingStep(f"'{step}' is not implemented for the device '{d.name}': no step is registered for it, and the backend does not fall back to the CPU")
    if d.warn_fallback is not None:
        d.warn_fallback(step)
    return 0


cdef TensorBase spread(TensorBase t, TensorBase like):
    """`t` under the sizes of `like`, which it broadcasts to."""
    cdef int64_t strides[MAX_DIMS]
    cdef TensorBase r = alias_of(t)
    cdef int i, j
    if same_sizes(t, like):
        return r
    for i in range(like.ndim):
        j = i - (like.ndim - t.ndim)
        strides[i] = t.strides[j] if j >= 0 and t.sizes[j] != 1 else 0
    set_geometry(r, like.ndim, like.sizes, strides)
    return r


cdef object number_of(TensorBase t):
    return (<object>t).item()


cdef int call_elementwise(CustomDevice d, object function, str name, const PointwiseInfo* info, TensorBase result, list operands, const Scalar* params, int compute) except -1:
    """operands: tensors of the device under the result's sizes, in the type to compute in, and Python numbers."""
    cdef list numbers = [] if info == NULL else [scalar_object(&params[i]) for i in range(info.nparams)]
    tls().python_ran = 1
    hold_versions(1)                       # the write is the operator's, which counts it
    try:
        if function is not None:
            function(result, *operands, *numbers)
        elif d.any_elementwise(name, result, operands, numbers) is NotImplemented:
            raise_missing(d, name)
    finally:
        hold_versions(-1)
    return 0


cdef int call_compiled(CustomDevice d, size_t function, const char* name, const PointwiseInfo* info, TensorBase result, list operands, const Scalar* params, int compute) except -1:
    cdef trt_device_operands o
    cdef int64_t strides[7][MAX_DIMS]
    cdef double numbers[8]
    cdef TensorBase t
    cdef int i, k, n = 1
    o.name = name
    o.index = result.device_index
    o.compute = compute
    o.count = 1 + len(operands)
    o.ndim = result.ndim
    o.sizes = result.sizes
    o.on_host = 0
    o.n_params = 0 if info == NULL else info.nparams
    for i in range(o.n_params):
        numbers[i] = params[i].d if params[i].kind > 1 else <double>params[i].i
    o.params = numbers
    cdef list kept = [result]
    for x in operands:
        if not isinstance(x, TensorBase):
            t = empty_tensor(0, NULL, compute, DEV_CPU)
            (<object>t).fill_(x)
            x = t
            o.on_host |= 1 << len(kept)
        kept.append(x)
    for i in range(o.count):
        t = <TensorBase>kept[i]
        o.data[i] = data_of(t)
        o.dtype[i] = t.dtype
        for k in range(result.ndim):
            strides[i][k] = 0 if o.on_host >> i & 1 else t.strides[k] * ITEM_SIZE[t.dtype]
        o.strides[i] = strides[i]
    n = (<trt_device_elementwise>function)(&o)
    if n == 1:
        raise_missing(d, name.decode())
    if n:
        raise RuntimeError(f"{name.decode()}: the kernel of the device '{d.name}' failed with code {n}")
    return 0


cdef int raise_missing(CustomDevice d, str name) except -1:
    raise MissingStep(f"'{name}' is not implemented for the device '{d.name}': no elementwise kernel is registered for it")


cdef int iterate(const void* info_, void* it_, int compute, object result_, PyObject** inputs) except -1:
    """A pointwise operator whose result is on a custom device, or (info NULL) a copy within one, or a fill from a number of the host."""
    cdef const PointwiseInfo* info = <const PointwiseInfo*>info_
    cdef Iter* it = <Iter*>it_
    cdef TensorBase result = result_, target, x
    cdef CustomDevice d = device_of(result.device_type)
    cdef str name = "copy" if info == NULL else info.name.decode()
    cdef list operands = []
    cdef bytes label
    cdef int i, need
    function = d.elementwise.get(name)
    if info == NULL:
        if function is None:
            return copy_within(d, result, <TensorBase>inputs[0])
        x = <TensorBase>inputs[0]
        operands.append(number_of(x) if x.device_type == DEV_CPU else spread(x, result))
        target = alias_of(result)
    else:
        if function is None and d.any_elementwise is None:
            raise_missing(d, name)
        for i in range(info.nin):
            x = <TensorBase>inputs[i]
            if x.device_type == DEV_CPU:
                operands.append(number_of(x))
            else:
                operands.append(spread(cast_to(x, it.need[i + 1]), result))
        need = it.need[0]
        target = alias_of(result) if need == result.dtype else empty_tensor(result.ndim, result.sizes, need, place_of(result))
    if isinstance(function, int):
        label = name.encode()
        call_compiled(d, function, label, info, target, operands, it.params, compute)
    else:
        call_elementwise(d, function, name, info, target, operands, it.params, compute)
    if target.dtype != result.dtype:
        copy_elements(result, target)
    return 0


cdef int copy_within(CustomDevice d, TensorBase destination, TensorBase source) except -1:
    """Through the host, but for bytes in the same order, which a device may move itself."""
    if source.device_type == DEV_CPU:
        return write_in(destination, source)
    if d.within is not None and same_layout(destination, source):
        return transfer(d.within, data_of(destination), data_of(source), extent_of(source), source.device_index, False, "within")
    return write_in(destination, read_out(source))


cdef DeviceHooks hooks
hooks.allocate = allocate
hooks.allocate_pinned = allocate_pinned
hooks.current = current
hooks.move = move
hooks.copy = copy
hooks.iterate = iterate
hooks.computes = computes
hooks.fall_back = fall_back
hooks.current_streams = current_streams
hooks.use_streams = use_streams
hooks.hand_over = hand_over
hooks.keep_for = keep_for
hooks.join = join


# ---- operators -----------------------------------------------------------------------------------------------------

cdef TensorBase operand_on_device(trt_operator* op, const trt_value* v, PyObject* out):
    """The tensor that has brought a call here."""
    cdef const char* kinds = op.row.kinds
    cdef int i = 0
    while kinds[i]:
        if kinds[i] == c't' and <object>v[i].p is not None and (<TensorBase>v[i].p).keys & K_CUSTOM:
            return <TensorBase>v[i].p
        if kinds[i] == c'l' or kinds[i] == c'o':
            found = first_on_device(<object>v[i].p)
            if found is not None:
                return <TensorBase>found
        i += 1
    found = None if out == NULL else first_on_device(<object>out)
    if found is None:
        raise RuntimeError(f"{op.name.decode()}: no argument is a tensor of a custom device")
    return <TensorBase>found


cdef uint64_t keys_of(trt_operator* op, const trt_value* v, PyObject* out) except? 0:
    """The keys of all tensors of a call."""
    cdef const char* kinds = op.row.kinds
    cdef uint64_t keys = 0 if out == NULL else keys_in(<object>out)
    cdef int i = 0
    while kinds[i]:
        if kinds[i] == c't' or kinds[i] == c'l':
            keys |= keys_in(<object>v[i].p)
        i += 1
    return keys


cdef uint64_t keys_in(object x):
    cdef uint64_t keys = 0
    if isinstance(x, TensorBase):
        return (<TensorBase>x).keys
    if isinstance(x, (list, tuple)):
        for y in x:
            keys |= keys_in(y)
    return keys


cdef object first_on_device(object x):
    if isinstance(x, TensorBase):
        return x if (<TensorBase>x).keys & K_CUSTOM else None
    if isinstance(x, (list, tuple)):
        for y in x:
            found = first_on_device(y)
            if found is not None:
                return found
    return None


cdef object run_on_custom_device(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """A device's Python kernel, or the compiled kernel over its steps, or where it lacks one a fallback."""
    cdef TensorBase where = operand_on_device(op, v, out)
    cdef CustomDevice d = device_of(where.device_type)
    cdef void* compiled
    cdef tuple arguments
    function = device_kernel(op, d.code)
    if function is not None:
        arguments = box_arguments(op, v, False)
        if mode == NO_OUT:
            return call_kernel(op, function, arguments)
        if out == NULL or <object>out is None:
            return call_kernel(op, function, arguments + (None,))
        hold_versions(1)                       # the write is the operator's, which counts it
        try:
            return call_kernel(op, function, arguments + (<object>out,))
        finally:
            hold_versions(-1)
    if keys_of(op, v, out) & K_STORAGE_ONLY & op.mask:
        return op.row.invoke(op, redispatch(op, K_STORAGE_ONLY, BELOW(KEY_CUSTOM)), v, <void*>out, mode)     # which comes back with types that have loops
    compiled = compiled_kernel(op)
    reason = None
    if compiled != NULL:
        try:
            return op.row.invoke(op, compiled, v, <void*>out, mode)
        except MissingStep as error:
            reason = error
    name = op.name.decode()
    if op.kernels[KEY_PYTHON] == NULL and reason is not None:
        raise reason                           # it is made of differentiable operators, which fall back themselves
    if d.host_operators is True or name in d.host_operators:
        if d.warn_fallback is not None:
            d.warn_fallback(name)
        return run_on_host(op, name, v, out, mode, where)
    if d.fallback is not None:
        arguments = box_arguments(op, v, False)
        tls().python_ran = 1
        return d.fallback(name, *(arguments if mode == NO_OUT else arguments + (None if out == NULL else <object>out,)))
    if reason is not None and getattr(reason, "operator", None) is not None:
        raise reason                           # of an operator that this one is made of
    failure = MissingStep(f"Could not run '{name}' with arguments from the '{d.name}' backend: "
                          f"{'no kernel is registered for it' if reason is None else reason}, and the backend does not fall back to the CPU")
    failure.operator = name
    raise failure from None


register_boxed(KEY_CUSTOM, run_on_custom_device)


# ---- the fallback to the host --------------------------------------------------------------------------------------

cdef object to_host_argument(object x, dict copies):
    """An argument for the CPU's kernel; copies: {id: (tensor, its copy)}, so that a tensor given twice stays one."""
    cdef TensorBase t, r
    if isinstance(x, TensorBase):
        t = <TensorBase>x
        if not t.keys & K_CUSTOM:
            return t
        if id(t) not in copies:
            r = read_out(t)
            r.wrapped_number = t.wrapped_number
            copies[id(t)] = (t, r)
        return copies[id(t)][1]
    if isinstance(x, list):
        return [to_host_argument(y, copies) for y in x]
    if isinstance(x, tuple):
        return tuple([to_host_argument(y, copies) for y in x])
    if isinstance(x, device) and (<device>x).code >= DEV_CUSTOM:
        return make_device(DEV_CPU, None)
    return x


cdef object to_device_result(object x, dict originals, int place):
    """originals: {id of a copy: the tensor that it is of}."""
    cdef TensorBase t, r
    if isinstance(x, TensorBase):
        t = <TensorBase>x
        if id(t) in originals:
            return originals[id(t)]
        if t.device_type != DEV_CPU:
            return t
        if non_overlapping_dense(t):
            r = empty_strided_tensor(t.ndim, t.sizes, t.strides, t.dtype, place)
        else:
            r = empty_tensor(t.ndim, t.sizes, t.dtype, place)
        copy_elements(r, t)
        return r
    if isinstance(x, list):
        return [to_device_result(y, originals, place) for y in x]
    if isinstance(x, tuple):
        if type(x) is tuple:
            return tuple([to_device_result(y, originals, place) for y in x])
        return type(x)([to_device_result(y, originals, place) for y in x])
    return x


cdef int write_back(object written, dict copies) except -1:
    """A tensor that the operator has written to, or a list of them."""
    cdef TensorBase t, host
    if isinstance(written, (list, tuple)):
        for x in written:
            write_back(x, copies)
        return 0
    if not isinstance(written, TensorBase) or id(written) not in copies:
        return 0
    t = <TensorBase>written
    host = <TensorBase>copies[id(written)][1]
    if not same_sizes(t, host):
        resize_tensor(t, host.ndim, host.sizes, -1)
    return copy_elements(t, host)


cdef object run_on_host(trt_operator* op, str name, const trt_value* v, PyObject* out, int mode, TensorBase where):
    """The operator on copies of its tensors on the host; what it writes goes back, results go to the device."""
    cdef dict copies = {}
    cdef tuple given = box_arguments(op, v, False)
    cdef tuple arguments = to_host_argument(given, copies)
    cdef object target = None if out == NULL or mode == NO_OUT else <object>out
    cdef object host_target = to_host_argument(target, copies)
    cdef object before
    # what draws without being given a generator draws from the device's
    before = _swap_default_generator(device_generator(where.device_type, where.device_index))
    try:
        result = call_boxed(op, arguments, host_target, FRESH if mode == NO_OUT else mode)
    finally:
        _swap_default_generator(before)
    if target is not None:
        write_back(target, copies)
    for i in written_positions(op):
        write_back(given[i], copies)
    originals = {id(pair[1]): pair[0] for pair in copies.values()}
    return to_device_result(result, originals, place_of(where))


cdef dict _written = {}             # {schema: positions of the arguments that an operator writes to beside its result}


cdef object written_positions(trt_operator* op):
    cdef str schema = op.row.schema.decode()
    if schema not in _written:
        _written[schema] = [i for i, kind in enumerate(schema_of(op.row.schema).types) if kind.endswith("!)")]
    return _written[schema]


# ---- what the package registers ------------------------------------------------------------------------------------

def _set_kernel(int code, str operator not None, function):
    """The kernel of an operator on a device type, or None. ValueError where no operator has the name."""
    set_device_kernel(existing_operator(operator), code, function)


def _has_kernel(int code, str operator not None):
    return device_kernel(existing_operator(operator), code) is not None
