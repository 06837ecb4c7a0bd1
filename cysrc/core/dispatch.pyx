"""The dispatcher's operator table, thread-local key sets, and kernels registered from Python."""
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdlib cimport calloc, free
from tensorrt_lite._C.core.tensor cimport TensorBase, set_inference_flag, NUM_KEYS, KEY_CUSTOM, KEY_PYTHON, KEY_STORAGE_ONLY, K_STORAGE_ONLY, K_BACKENDS, K_AUTOGRAD, K_PYTHON, K_CPU, K_META, mixed_indices
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
            f"\"{op.name.decode()}\" not implemented for the types that are only stored, moved and cast (dtypes without loops): convert the tensor with .to() first")
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


# ---- kernels that Python registered --------------------------------------------------------------------------------

cdef enum:
    KEYS = 16                      # kernels of an operator

cdef dict _fallbacks = {}
cdef dict _replaced = {}           # {(operator name, key): address of the compiled kernel that a Python one stands for}


cdef object python_kernel(trt_operator* op, int key):
    return None if op.python == NULL or op.python[key] == NULL else <object>op.python[key]


cdef int set_python_kernel(trt_operator* op, int key, object kernel) except -1:
    """None takes it away."""
    cdef PyObject* before
    if op.python == NULL:
        op.python = <PyObject**>calloc(KEYS, sizeof(PyObject*))
        if op.python == NULL:
            raise MemoryError()
    before = op.python[key]
    op.python[key] = NULL if kernel is None else <PyObject*>kernel
    Py_XINCREF(op.python[key])
    Py_XDECREF(before)
    return 0


cdef object boxed_call(trt_operator* op, int key, tuple arguments):
    """Run the Python kernel of an operator; arguments are those of its schema, then `out` and the write mode."""
    cdef const char* before
    f = python_kernel(op, key)
    tls().python_ran = 1
    if f is not None:
        before = tls().operator_name
        tls().operator_name = op.name
        try:
            return f(*arguments)
        finally:
            tls().operator_name = before
    n = op.name.decode()
    f = _fallbacks.get(key)
    if f is not None:
        return f(n, *arguments)
    raise NotImplementedError(
        f"Could not run '{n}' with arguments from the '{_backend_name(key) if key < 6 else key_names[key]}' backend: no kernel is "
        f"registered for it and the backend has no fallback")


cdef trt_operator* existing_operator(str name) except NULL:
    cdef trt_operator* op = operator_named(name)
    if op == NULL:
        raise ValueError(f"there is no operator '{name}'")
    return op


def register_python_kernel(str name not None, int key, kernel):
    """A Python kernel under a key whose kernels are boxed, as those of a custom device. Raises ValueError where no operator has the name."""
    set_python_kernel(existing_operator(name), key, kernel)


def _python_kernel(str name not None, int key):
    """The kernel that Python registered for an operator under a key, or None."""
    return python_kernel(existing_operator(name), key)


def register_row_kernel(str name not None, int key, kernel):
    """Put a Python kernel in the place of a row's own under a backend's key; None puts the own one back. Called with the row's arguments and, where
    a result may be given, `out`. Raises ValueError where no loaded row has the name."""
    cdef trt_operator* op = existing_operator(name)
    if op.row == NULL:
        raise ValueError(f"there is no operator '{name}'")
    if (name, key) not in _replaced:
        _replaced[name, key] = <size_t>op.kernels[key]
    set_python_kernel(op, key, kernel)
    if kernel is None:
        op.kernels[key] = <void*><size_t>_replaced.pop((name, key))
    else:
        op.kernels[key] = op.kernels[KEY_PYTHON] if op.row.pack == NULL else op.row.pack        # one boxed kernel stands under every key


cdef void stand_in() noexcept:
    """The address under the keys of an operator that Python defined: nothing compiled calls those."""


cdef class DefinedOperator:
    """An operator that Python defined, in the table with all others: a kernel by key, each a Python callable, looked up as theirs are."""
    cdef trt_operator* op
    cdef bytes name

    def __init__(self, str name not None):
        cdef int i
        if operator_named(name) != NULL:
            raise RuntimeError(f"there is an operator '{name}' already")
        for i in range(MAX_OPERATORS - 1, -1, -1):
            if table[i].name == NULL:
                break
        else:
            raise RuntimeError(f"no room for another operator: the table has {MAX_OPERATORS}")
        self.name = name.encode()
        self.op = &table[i]
        self.op.name = self.name
        self.op.mask = K_BACKENDS & ~<uint64_t>K_STORAGE_ONLY       # kernels in Python take every type
        _by_name.clear()

    def __dealloc__(self):
        self.release()

    def release(self):
        """Leave the table."""
        cdef int key
        if self.op == NULL:
            return
        for key in range(KEYS):
            self.op.kernels[key] = NULL
            if self.op.python != NULL:
                Py_XDECREF(self.op.python[key])
        free(self.op.python)
        self.op.python = NULL
        self.op.name = NULL
        self.op.mask = 0
        self.op = NULL
        _by_name.clear()

    def set_kernel(self, int key, kernel):
        """Called with what is handed to `call`; None leaves the key without one."""
        if not 0 <= key < <int>NUM_KEYS:
            raise ValueError(f"no dispatch key {key}")
        self.check()
        set_python_kernel(self.op, key, kernel)
        self.op.kernels[key] = NULL if kernel is None else <void*>stand_in
        if kernel is not None:
            self.op.mask |= <uint64_t>1 << key
        elif not K_BACKENDS >> key & 1:
            self.op.mask &= ~(<uint64_t>1 << key)

    cdef int check(self) except -1:
        if self.op == NULL:
            raise RuntimeError(f"the operator '{self.name.decode()}' was taken back")
        return 0

    def call(self, list tensors not None, arguments, int below=NUM_KEYS, uint64_t also=0):
        """Dispatch on the keys of `tensors` and on `also`, among the keys below `below`: kernel(arguments). Meta tensors decide for all."""
        cdef uint64_t keys = 0
        self.check()
        for t in tensors:
            keys |= (<TensorBase?>t).keys
        if not keys & K_BACKENDS:
            keys |= K_CPU
        if keys & K_META:
            keys &= ~(K_BACKENDS & ~<uint64_t>K_META)
        redispatch(self.op, keys | also, BELOW(below))
        kernel = <object>self.op.python[tls().key]
        return kernel(arguments)


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
