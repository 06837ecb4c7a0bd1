"""The dispatcher's operator table, thread-local key sets, and kernels registered from Python."""
from tensorrt_lite._C.core.hints import hinted
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdlib cimport calloc, free
from tensorrt_lite._C.core.tensor cimport TensorBase, hold_versions, set_inference_flag, NUM_KEYS, KEY_AUTOGRAD, KEY_CUSTOM, KEY_PYTHON, KEY_SPARSE, KEY_TRACER, KEY_STORAGE_ONLY, K_STORAGE_ONLY, K_BACKENDS, K_AUTOGRAD, K_PYTHON, K_STANDS_IN, K_CPU, K_CUDA, K_CUSTOM, K_META, KEY_CUDA, INDEX_BITS, mixed_indices
from tensorrt_lite._C.core.device cimport DEV_CUDA, DEV_CUSTOM, DEV_META, device_type_name

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
cdef tuple key_names = ("Meta", "CPU", "CUDA", "Unused", "StorageOnly", "PrivateUse1", "Python", "Autograd", "ForwardAD",
                        "Decompose", "Tracer", "Autocast", "FuncTorch", "Wrapped", "Sparse")
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
    static int trt_agrees_with_head(void* t, const void* keys, const void* numel, const void* requires_grad, int key_autograd) {
      const trt_tensor_head* head = t;
      return keys == &head->keys && numel == &head->numel && requires_grad == &head->requires_grad && key_autograd == TRT_KEY_AUTOGRAD;
    }
    """
    bint agrees_with_head "trt_agrees_with_head"(void* t, const void* keys, const void* numel, const void* requires_grad, int key_autograd) noexcept


cdef int check_layout(TensorBase t) except -1:
    """dispatch.h reads the first fields of TensorBase."""
    if not agrees_with_head(<void*>t, &t.keys, &t.numel, &t.requires_grad, KEY_AUTOGRAD):
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
    if row.pack != NULL and row.invoke != NULL:
        register_kernel(operator_id, name, KEY_TRACER, row.pack)
        register_kernel(operator_id, name, KEY_SPARSE, row.pack)


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


class MissingStep(NotImplementedError):
    """A custom device has neither the kernel nor the step that an operator needs: whoever runs the operator may fall back."""


cdef int missing_step(const char* step, int device_type) except -1:
    if device_type == DEV_META:
        raise NotImplementedError(f"{step.decode()}(): the result depends on the data, which meta tensors do not have")
    raise (MissingStep if device_type >= DEV_CUSTOM else NotImplementedError)(
        f"'{step.decode()}' is not implemented for the device '{device_type_name(device_type)}': no step is registered for it")


def step_devices():
    """Return {step: [device types that have it]} of the loaded families; a step that returns nothing is nothing on meta tensors."""
    cdef int i, d
    cdef dict found = {}
    for i in range(TRT_STEPS):
        if steps[i].name != NULL:
            found[steps[i].name.decode()] = [device_type_name(d) for d in range(<int>DEVICE_TYPES) if steps[i].functions[d] != NULL]
    return found


cdef str backend_name(int key):
    return ("meta", "cpu", "cuda", "unused", "storage_only", device_type_name(DEV_CUSTOM))[key]


cdef str place_name(uint64_t keys, int number):
    """The device with an index that a number in the keys says (core/dispatch.h)."""
    cdef int index = number & ((1 << INDEX_BITS) - 1)
    return f"{device_type_name(DEV_CUSTOM + (number >> INDEX_BITS)) if keys & K_CUSTOM else 'cuda'}:{index}"


cdef int mixed_devices(trt_operator* op, uint64_t keys) except -1:
    if (keys | tls().included) & ~tls().excluded & op.mask & K_PYTHON or keys & K_STANDS_IN:
        return 0                                  # whoever dispatches in Python says what goes together
    cdef uint64_t differing = mixed_indices(keys), low = keys >> 40 & 511, backends = keys & K_BACKENDS & ~K_STORAGE_ONLY
    if not differing and not backends & (backends - 1):
        return 0                                  # one device: the kernel's key speaks for types without loops
    found = [place_name(<uint64_t>1 << k, low) if 1 << k & (K_CUDA | K_CUSTOM) and not differing else backend_name(k) for k in range(6) if backends >> k & 1]
    if differing and not backends & (backends - 1):
        # exact for numbers that differ in one bit; of others only a range is known
        found = [place_name(keys, low & ~differing), place_name(keys, low) if differing & (differing - 1) == 0 else "another device"]
    raise hinted("devices", RuntimeError(
        f"{op.name.decode()}: Expected all tensors to be on the same device, but found at least two devices, {found[0]} and {found[1]}!"))


# ---- kernels that Python registered --------------------------------------------------------------------------------

cdef enum:
    KEYS = 16                      # kernels of an operator; behind them those of the custom devices, which share a key
    PLACES = KEYS + 8

cdef dict _replaced = {}           # {(operator name, key): address of the compiled kernel that a Python one stands for}


cdef object python_kernel(trt_operator* op, int key):
    return None if op.python == NULL or op.python[key] == NULL else <object>op.python[key]


cdef int set_python_kernel(trt_operator* op, int key, object kernel) except -1:
    """None takes it away."""
    cdef PyObject* before
    if op.python == NULL:
        op.python = <PyObject**>calloc(PLACES, sizeof(PyObject*))
        if op.python == NULL:
            raise MemoryError()
    before = op.python[key]
    op.python[key] = NULL if kernel is None else <PyObject*>kernel
    Py_XINCREF(op.python[key])
    Py_XDECREF(before)
    return 0


cdef object device_kernel(trt_operator* op, int device_type):
    """The Python kernel of a custom device, or None. What is under the key itself is for all of them."""
    f = python_kernel(op, KEYS + device_type - DEV_CUSTOM)
    return python_kernel(op, KEY_CUSTOM) if f is None else f


cdef int set_device_kernel(trt_operator* op, int device_type, object kernel) except -1:
    return set_python_kernel(op, KEYS + device_type - DEV_CUSTOM, kernel)


cdef void* compiled_kernel(trt_operator* op) except? NULL:
    """The kernel of the operator's C type that serves devices with memory of their own, whose steps it runs; NULL without one."""
    cdef void* kernel = op.kernels[KEY_CUDA]
    if op.row == NULL or op.row.invoke == NULL or kernel == NULL:
        return NULL
    if _replaced and (op.name.decode(), KEY_CUDA) in _replaced:
        kernel = <void*><size_t>_replaced[op.name.decode(), KEY_CUDA]
    return NULL if op.row.pack != NULL and kernel == op.row.pack else kernel


cdef object call_kernel(trt_operator* op, object kernel, tuple arguments):
    """Call a Python kernel; arguments are those of the operator's schema, then `out` where it takes one."""
    cdef const char* before = tls().operator_name
    tls().python_ran = 1
    tls().operator_name = op.name
    try:
        return kernel(*arguments)
    finally:
        tls().operator_name = before


cdef object boxed_call(trt_operator* op, int key, tuple arguments):
    """Run the Python kernel of an operator under a key."""
    f = python_kernel(op, key)
    if f is None:
        raise NotImplementedError(
            f"Could not run '{op.name.decode()}' with arguments from the '{backend_name(key) if key < 6 else key_names[key]}' backend: no kernel is registered for it")
    return call_kernel(op, f, arguments)


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
    if not 0 <= key < <int>NUM_KEYS or op.kernels[KEY_PYTHON] == NULL and op.row.pack == NULL:
        raise ValueError(f"'{name}' takes no kernel under the key {key}")
    if (name, key) not in _replaced:
        _replaced[name, key] = <size_t>op.kernels[key]
    set_python_kernel(op, key, kernel)
    if kernel is None:
        op.kernels[key] = <void*><size_t>_replaced.pop((name, key))
        if op.kernels[key] == NULL and not K_BACKENDS >> key & 1:
            op.mask &= ~(<uint64_t>1 << key)
    else:
        op.kernels[key] = op.kernels[KEY_PYTHON] if op.row.pack == NULL else op.row.pack        # one boxed kernel stands under every key
        op.mask |= <uint64_t>1 << key


def skip_row_key(str name not None, int key, bint skipped):
    """Whether calls of a row pass by a key as if it had no kernel there."""
    cdef trt_operator* op = existing_operator(name)
    if K_BACKENDS >> key & 1:
        raise ValueError("a backend's key is not skipped")
    if skipped or op.kernels[key] == NULL:
        op.mask &= ~(<uint64_t>1 << key)
    else:
        op.mask |= <uint64_t>1 << key


def key_names_in_order():
    """The names of the dispatch keys; a key's number is its place."""
    return key_names


def row_keys(str name not None):
    """The names of the keys under which a row has a kernel that calls find."""
    cdef trt_operator* op = existing_operator(name)
    cdef int k
    return [key_names[k] for k in range(<int>NUM_KEYS) if op.kernels[k] != NULL and op.mask >> k & 1]


cdef dict _boxed_steps = {}        # {(place, device type): the Python function that is the device's step}


cdef object call_step(int place, tuple arguments):
    """What a boxed step does: the function of the device that the step was looked up for. The write is the operator's, which counts it."""
    function = _boxed_steps[place, tls().step_device]
    tls().python_ran = 1
    hold_versions(1)
    try:
        return function(*arguments)
    finally:
        hold_versions(-1)


cdef int place_of_step(str name) except -1:
    cdef int i
    cdef bytes wanted = name.encode()
    for i in range(STEPS):
        if steps[i].name != NULL and <bytes>steps[i].name == wanted:
            return i
    raise ValueError(f"there is no step '{name}'")


def _step_arguments(str name not None):
    """The step's arguments as C declares them. ValueError where no step has the name."""
    cdef const char* text = steps[place_of_step(name)].arguments
    return "" if text == NULL else text.decode()


def _set_step(str name not None, int device_type, function):
    """Put a step of a custom device in its place: the address of a function of the step's type, or a Python function; None takes it away."""
    cdef int place = place_of_step(name)
    if not DEV_CUSTOM <= device_type < DEVICE_TYPES:
        raise ValueError(f"steps of device type {device_type} are not set so")
    _boxed_steps.pop((place, device_type), None)
    if function is None:
        steps[place].functions[device_type] = NULL
    elif isinstance(function, int):
        steps[place].functions[device_type] = <void*><size_t>function
    else:
        _boxed_steps[place, device_type] = function
        steps[place].functions[device_type] = steps[place].boxed


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
            for key in range(PLACES):
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
        if below == NUM_KEYS and tls().included >> KEY_TRACER & 1:
            return record_call(self.name.decode(), kernel, arguments)
        return kernel(arguments)


cdef object _begin_record = None, _end_record = None


def _set_recorder(begin not None, end not None):
    """begin(name) opens a profiler's range and returns what end() closes it by."""
    global _begin_record, _end_record
    _begin_record = begin
    _end_record = end


cdef object record_call(str name, object kernel, object arguments):
    token = _begin_record(name)
    try:
        return kernel(arguments)
    finally:
        _end_record(token)


def operator_kernels():
    """Return {operator name: [key names with a compiled kernel]} of the loaded operators."""
    cdef int i, k
    cdef dict found = {}
    for i in range(MAX_OPERATORS):
        if table[i].name != NULL:
            found[table[i].name.decode()] = [key_names[k] for k in range(<int>NUM_KEYS) if table[i].kernels[k] != NULL]
    return found


def _table_size():
    """How many places for operators the table has."""
    return MAX_OPERATORS


def is_grad_enabled():
    """Return whether operators record Nodes in this thread.

    Example:
        >>> import tensorrt_lite as trt
        >>> with trt.no_grad():
        ...     print(trt.is_grad_enabled())
        False
    """
    return bool(tls().grad_mode)


def _set_grad_enabled(bint mode):
    tls().grad_mode = mode


def is_inference_mode_enabled():
    """Return whether inference mode is on in this thread.

    Example:
        >>> import tensorrt_lite as trt
        >>> with trt.inference_mode():
        ...     print(trt.is_inference_mode_enabled())
        True
    """
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
