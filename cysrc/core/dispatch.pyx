"""The dispatcher's operator table, thread-local key sets, and kernels registered from Python."""
from cpython.object cimport PyTypeObject
from tensorrt_lite._C.core.tensor cimport TensorBase, set_inference_flag, NUM_KEYS, KEY_CUSTOM, KEY_PYTHON, KEY_STORAGE_ONLY, K_STORAGE_ONLY, K_BACKENDS, K_AUTOGRAD, K_PYTHON, mixed_indices
from tensorrt_lite._C.core.device cimport DEV_META
from tensorrt_lite._C.core.device import _custom_backend_name

cdef extern from *:
    """
    static __thread trt_thread_state trt_state __attribute__((tls_model("initial-exec"))) = {0, 0, 1};
    static trt_thread_state* trt_state_address(void) { return &trt_state; }
    """
    trt_thread_state* state_address "trt_state_address"() noexcept
    enum:
        TRT_STEPS

cdef enum:
    MAX_OPERATORS = 4096

cdef trt_operator table[MAX_OPERATORS]
cdef trt_step steps[TRT_STEPS]
cdef char moves_elements[MAX_OPERATORS]
cdef trt_core_table core
cdef tuple key_names = ("Meta", "CPU", "CUDA", "Sparse", "StorageOnly", "PrivateUse1", "Python", "ADInplaceOrView", "Autograd",
                        "ForwardAD", "Tracer", "Autocast", "FuncTorch")
core.operators = table
core.steps = steps
core.missing_step = <void*>missing_step
core.thread_state = <void*>state_address
core.tensor_base = <PyTypeObject*>TensorBase
core.missing = <void*>missing_kernel
core.mixed = <void*>mixed_devices
core.no_tensor = <void*>element_is_no_tensor


cdef trt_core_table* core_table() noexcept:
    return &core


attach()


cdef extern from *:
    """
    #define TRT_KEYS_OFFSET offsetof(trt_tensor_head, keys)
    """
    Py_ssize_t KEYS_OFFSET "TRT_KEYS_OFFSET"


cdef int check_layout(TensorBase t) except -1:
    """dispatch.h reads keys by the first fields of TensorBase."""
    if <char*>&t.keys - <char*><void*>t != KEYS_OFFSET:
        raise SystemError("dispatch.h: trt_tensor_head is not what TensorBase begins with")
    return 0


check_layout(TensorBase.__new__(TensorBase))


cdef void register_kernel(int operator_id, const char* name, int key, void* kernel) noexcept:
    table[operator_id].name = name
    table[operator_id].kernels[key] = kernel
    table[operator_id].mask |= (<uint64_t>1 << key) | (K_BACKENDS & ~K_STORAGE_ONLY if moves_elements[operator_id] else K_BACKENDS)


cdef void take_storage_only(int operator_id) noexcept:
    """The operator moves elements and computes with none: it takes types without loops."""
    moves_elements[operator_id] = 1
    table[operator_id].mask &= ~<uint64_t>K_STORAGE_ONLY


cdef void register_row(int operator_id, const char* name, const trt_row* row, uint64_t boxed) noexcept:
    """What the row says, and the boxed kernel under the keys of `boxed`."""
    cdef int key
    table[operator_id].row = row
    for key in range(NUM_KEYS):
        if boxed >> key & 1:
            register_kernel(operator_id, name, key, row.pack)


cdef dict _by_name = {}            # {name: place in the table}, made as names are asked for


cdef trt_operator* operator_named(str name):
    """The row of a loaded operator, or NULL."""
    cdef int i
    at = _by_name.get(name)
    if at is None:
        for i in range(MAX_OPERATORS):
            if table[i].name != NULL:
                _by_name[table[i].name.decode()] = i
        at = _by_name.get(name)
    return NULL if at is None else &table[<int>at]


cdef int element_is_no_tensor(trt_operator* op, void* element) except -1:
    raise TypeError(f"{op.name.decode()}(): expected a list of tensors, but an element is {type(<object>element).__name__}")


cdef str _keys_text(uint64_t keys):
    return ", ".join([key_names[k] for k in range(<int>NUM_KEYS) if keys >> k & 1])


cdef int missing_kernel(trt_operator* op, uint64_t keys) except -1:
    cdef int key = top_bit(keys & op.mask)
    if key == KEY_STORAGE_ONLY:
        raise NotImplementedError(
            f"\"{op.name.decode()}\" not implemented for the types that are only stored, copied and cast (float8_e4m3fn, float8_e5m2, uint16, uint32, uint64): "
            "convert the tensor with .to() first")
    raise NotImplementedError(
        f"Could not run '{op.name.decode()}' with arguments from the '{key_names[key]}' backend: no kernel is registered for that "
        f"key (argument keys: {_keys_text(keys)})")


cdef tuple device_names = ("cpu", "cuda", "meta")


cdef int missing_step(const char* step, int device_type) except -1:
    if device_type == DEV_META:
        raise NotImplementedError(f"{step.decode()}(): the result depends on the data, which meta tensors do not have")
    name = device_names[device_type] if device_type < 3 else _custom_backend_name()
    raise NotImplementedError(f"'{step.decode()}' is not implemented for the device '{name}': no step is registered for it")


def step_devices():
    """Return {step: [device types that have it]} of the loaded families; a step that returns nothing is nothing on meta tensors."""
    cdef int i, d
    cdef dict found = {}
    for i in range(TRT_STEPS):
        if steps[i].name != NULL:
            found[steps[i].name.decode()] = [device_names[d] if d < 3 else _custom_backend_name() for d in range(4) if steps[i].functions[d] != NULL]
    return found


cdef str _backend_name(int key):
    return ("meta", "cpu", "cuda", "sparse", "storage_only", _custom_backend_name())[key]


cdef int mixed_devices(trt_operator* op, uint64_t keys) except -1:
    if (keys | tls().included) & ~tls().excluded & op.mask & K_PYTHON:
        return 0                                  # whoever dispatches in Python says what goes together
    cdef uint64_t differing = mixed_indices(keys), low = keys >> 40 & 63, backends = keys & K_BACKENDS & ~K_STORAGE_ONLY
    if not differing and not backends & (backends - 1):
        return 0                                  # one device: the kernel's key speaks for types without loops
    found = [_backend_name(k) for k in range(6) if backends >> k & 1]
    if differing:
        # exact for indices that differ in one bit; of others only a range is known
        found = [f"cuda:{low & ~differing}", f"cuda:{low}" if differing & (differing - 1) == 0 else "another CUDA device"]
    raise RuntimeError(
        f"{op.name.decode()}: Expected all tensors to be on the same device, but found at least two devices, {found[0]} and {found[1]}!")


# Kernels that Python registered: {(operator name, key): callable}
cdef dict _python_kernels = {}
cdef dict _fallbacks = {}
cdef dict _replaced = {}           # {(operator name, key): address of the compiled kernel that a Python one stands for}


cdef object boxed_call(const char* name, int key, tuple arguments):
    """Run the Python kernel of an operator; arguments are those of its schema, then `out` and the write mode."""
    cdef str n = name.decode()
    cdef const char* before
    f = _python_kernels.get((n, key))
    tls().python_ran = 1
    if f is not None:
        before = tls().operator_name
        tls().operator_name = name
        try:
            return f(*arguments)
        finally:
            tls().operator_name = before
    f = _fallbacks.get(key)
    if f is not None:
        return f(n, *arguments)
    raise NotImplementedError(
        f"Could not run '{n}' with arguments from the '{_backend_name(key) if key < 6 else key_names[key]}' backend: no kernel is "
        f"registered for it and the backend has no fallback")


def _register_python_kernel(str name, int key, kernel):
    _python_kernels[name, key] = kernel


def register_row_kernel(str name, int key, kernel):
    """Put a Python kernel in the place of a row's own under a backend's key; None puts the own one back. Called with the row's arguments and, where
    a result may be given, `out`. Raises ValueError where no loaded row has the name."""
    cdef trt_operator* op = operator_named(name)
    if op == NULL or op.row == NULL:
        raise ValueError(f"there is no operator '{name}'")
    if (name, key) not in _replaced:
        _replaced[name, key] = <size_t>op.kernels[key]
    if kernel is None:
        op.kernels[key] = <void*><size_t>_replaced.pop((name, key))
        _python_kernels.pop((name, key), None)
    else:
        _python_kernels[name, key] = kernel
        op.kernels[key] = op.kernels[KEY_PYTHON] if op.row.pack == NULL else op.row.pack        # one boxed kernel stands under every key


def _python_kernel(str name, int key):
    """The kernel that Python registered for an operator under a key, or None."""
    return _python_kernels.get((name, key))


def _register_fallback(int key, kernel):
    _fallbacks[key] = kernel


def operator_kernels():
    """Return {operator name: [key names with a compiled kernel]} of the loaded operators."""
    cdef int i, k
    cdef dict found = {}
    for i in range(MAX_OPERATORS):
        if table[i].name != NULL:
            found[table[i].name.decode()] = [key_names[k] for k in range(<int>NUM_KEYS) if table[i].kernels[k] != NULL]
    return found


def is_grad_enabled():
    """Return whether operators record Nodes in this thread."""
    return bool(tls().grad_mode)


def _set_grad_enabled(bint mode):
    tls().grad_mode = mode


def is_inference_mode_enabled():
    """Return whether inference mode is on in this thread."""
    return bool(tls().inference_mode)


def _set_inference_mode(bint mode):
    tls().inference_mode = mode
    set_inference_flag(mode)


def _set_anomaly(int flags):
    """0: off, 1: Nodes remember where they were made, 3: and their gradients are searched for NaN. Returns the flags before."""
    cdef int before = tls().notes & 3
    tls().notes = tls().notes & ~3 | flags & 3
    return before


def _exclude_keys(uint64_t keys):
    """Exclude dispatch keys in this thread; returns the previous set."""
    cdef uint64_t before = tls().excluded
    tls().excluded = keys
    return before
