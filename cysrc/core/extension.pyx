"""The C interface for extensions (tensorrt_lite/include/tensorrt_lite.h): its table of functions, and kernels in C as objects that Python calls.

Handles are references to tensors. What registers operators and calls them by name is Python's (`tensorrt_lite/_extension.py` hands it over); a kernel in C is there a
callable like any other. No function here lets a C++ or Python exception pass: an error is Python's, set in the thread, and the caller gets -1 or NULL.
"""
from cpython.object cimport PyObject
from cpython.pycapsule cimport PyCapsule_New
from cpython.ref cimport Py_INCREF, Py_DECREF, Py_XDECREF
from libc.stdint cimport int32_t, int64_t, uint32_t
from libc.stdlib cimport calloc, free
from libc.string cimport memset
from tensorrt_lite._C.core.device cimport DEV_CPU, has_index
from tensorrt_lite._C.core.dispatch cimport attach
from tensorrt_lite._C.core.dtype cimport dtype, dtype_of
from tensorrt_lite._C.core.parallel cimport parallel_for as run_parallel, num_threads as thread_count
from tensorrt_lite._C.core.storage cimport expose, external_storage, prepare_write
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, ITEM_SIZE, MAX_DIMS, checked_numel, contiguous_strides, data_of, empty_like_tensor, empty_tensor, set_geometry, set_storage)

attach()

cdef extern from "Python.h":
    ctypedef struct PyThreadState:
        pass
    PyThreadState* PyEval_SaveThread() nogil
    void PyEval_RestoreThread(PyThreadState*) nogil
    PyObject* PyErr_Occurred()
    int PyErr_WarnEx(object, const char*, Py_ssize_t)
    void PyErr_SetString(object, const char*)
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*) except NULL

cdef extern from "../../tensorrt_lite/include/tensorrt_lite.h":
    enum:
        TRTL_VERSION
        TRTL_NONE
        TRTL_TENSOR
        TRTL_INT
        TRTL_FLOAT
        TRTL_BOOLEAN
        TRTL_COMPLEX
        TRTL_STRING
        TRTL_DTYPE
        TRTL_DEVICE
        TRTL_TENSORS
        TRTL_INTS
        TRTL_FLOATS
        TRTL_LIST
    ctypedef void* trtl_tensor
    ctypedef void* trtl_context
    ctypedef void* trtl_list
    ctypedef union trtl_union:
        trtl_tensor tensor
        trtl_list list
        int64_t i
        double d
        double c[2]
        const char* s
        const trtl_tensor* tensors
        const int64_t* ints
        const double* floats
    ctypedef struct trtl_value:
        int32_t kind
        int64_t n
        trtl_union u
    ctypedef int (*trtl_kernel)(const trtl_value*, int, trtl_value*, int, void*)
    ctypedef int (*trtl_setup)(trtl_context, const trtl_value*, int, const trtl_value*, int, void*)
    ctypedef int (*trtl_backward)(trtl_context, const trtl_tensor*, int, trtl_tensor*, int, void*)
    ctypedef void (*trtl_task)(void*, int64_t, int64_t) noexcept nogil
    ctypedef void (*trtl_deleter)(void*) noexcept nogil
    ctypedef struct trtl_api:
        uint32_t version, size
        void* set_error
        void* error_occurred
        void* warn
        void* retain
        void* release
        void* dim
        void* numel
        void* sizes
        void* strides
        void* storage_offset
        void* dtype
        void* item_size
        void* device_type
        void* device_index
        void* is_contiguous
        void* requires_grad
        void* const_data
        void* data
        void* empty
        void* empty_like
        void* full
        void* contiguous
        void* to_dtype
        void* from_memory
        void* from_object
        void* to_object
        void* call
        void* set_list
        void* define
        void* implement
        void* set_gradient
        void* save
        void* n_saved
        void* saved
        void* needs_gradient
        void* set_number
        void* number
        void* release_gil
        void* acquire_gil
        void* parallel_for
        void* num_threads

cdef trtl_api table
cdef object _hooks = None            # what Python does: see _set_hooks
cdef tuple ERRORS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, MemoryError)

cdef enum:
    DTYPE_NUMBERS = 64
cdef int code_of_number[DTYPE_NUMBERS]       # the core's code of an element type by the header's number, -1 for none
cdef int number_of_code[DTYPE_NUMBERS]


def _set_hooks(hooks not None, dict numbers not None):
    """hooks: an object with define, implement, set_gradient, call, contiguous, to_dtype and full; numbers: {dtype: its number in the header}."""
    global _hooks
    cdef int i
    _hooks = hooks
    for i in range(DTYPE_NUMBERS):
        code_of_number[i] = number_of_code[i] = -1
    for kind, number in numbers.items():
        code_of_number[<int>number] = (<dtype>kind).code
        number_of_code[(<dtype>kind).code] = number


cdef int code_of(int number) except -1:
    if not 0 <= number < DTYPE_NUMBERS or code_of_number[number] < 0:
        raise ValueError(f"{number} is no dtype of tensorrt_lite.h")
    return code_of_number[number]


# ---- values --------------------------------------------------------------------------------------------------------

cdef class Values:
    """Python objects as an array of trtl_value, whose memory it holds. Tensors are borrowed from the objects."""
    cdef trtl_value* v
    cdef int n
    cdef list blocks                 # bytearrays with ints, floats and handles

    def __cinit__(self, int n):
        self.n = n
        self.v = <trtl_value*>calloc(n + 1, sizeof(trtl_value))
        if self.v == NULL:
            raise MemoryError()
        self.blocks = []

    def __dealloc__(self):
        free(self.v)

    cdef int set(self, int i, object x) except -1:
        cdef trtl_value* v = &self.v[i]
        cdef Py_ssize_t size
        if x is None:
            v.kind = TRTL_NONE
        elif isinstance(x, TensorBase):
            v.kind = TRTL_TENSOR
            v.u.tensor = <trtl_tensor>x
        elif isinstance(x, bool):
            v.kind = TRTL_BOOLEAN
            v.u.i = x is True
        elif isinstance(x, int):
            v.kind = TRTL_INT
            v.u.i = x
        elif isinstance(x, float):
            v.kind = TRTL_FLOAT
            v.u.d = x
        elif isinstance(x, complex):
            v.kind = TRTL_COMPLEX
            v.u.c[0], v.u.c[1] = x.real, x.imag
        elif isinstance(x, str):
            v.kind = TRTL_STRING
            v.u.s = PyUnicode_AsUTF8AndSize(x, &size)
            v.n = size
            self.blocks.append(x)
        elif isinstance(x, dtype):
            v.kind = TRTL_DTYPE
            v.u.i = number_of_code[(<dtype>x).code]
        elif isinstance(x, (list, tuple)):
            self.set_list(v, list(x))
        elif type(x).__name__ == "device":
            v.kind = TRTL_DEVICE
            v.u.i = _hooks.device_type(x)
            v.n = -1 if x.index is None else x.index
        else:
            raise TypeError(f"an argument of type {type(x).__name__} cannot be handed to a kernel in C")
        return 0

    cdef int set_list(self, trtl_value* v, list values) except -1:
        cdef Py_ssize_t i, n = len(values)
        cdef bytearray block = bytearray(8 * n + 8)
        cdef char* memory = block
        self.blocks.append(block)
        self.blocks.append(values)
        v.n = n
        if all([isinstance(x, int) for x in values]):
            v.kind = TRTL_INTS
            for i in range(n):
                (<int64_t*>memory)[i] = values[i]
            v.u.ints = <int64_t*>memory
        elif all([isinstance(x, (int, float)) for x in values]):
            v.kind = TRTL_FLOATS
            for i in range(n):
                (<double*>memory)[i] = values[i]
            v.u.floats = <double*>memory
        elif all([x is None or isinstance(x, TensorBase) for x in values]):
            v.kind = TRTL_TENSORS
            for i in range(n):
                (<trtl_tensor*>memory)[i] = NULL if values[i] is None else <trtl_tensor>(values[i])
            v.u.tensors = <trtl_tensor*>memory
        else:
            raise TypeError("a list that is handed to a kernel in C holds ints, floats or tensors")
        return 0


cdef Values values_of(object items):
    cdef Values v = Values.__new__(Values, len(items))
    cdef int i
    for i in range(v.n):
        v.set(i, items[i])
    return v


cdef object taken(trtl_value* v):
    """The Python object of a result, whose handle is ours from here on."""
    cdef object x
    cdef int kind = v.kind
    v.kind = TRTL_NONE
    if kind == TRTL_NONE:
        return None
    if kind == TRTL_TENSOR or kind == TRTL_LIST:
        if v.u.tensor == NULL:
            return None
        x = <object>v.u.tensor
        Py_DECREF(x)
        return x
    if kind == TRTL_INT:
        return v.u.i
    if kind == TRTL_FLOAT:
        return v.u.d
    if kind == TRTL_BOOLEAN:
        return v.u.i != 0
    if kind == TRTL_COMPLEX:
        return complex(v.u.c[0], v.u.c[1])
    if kind == TRTL_STRING:
        return v.u.s[:v.n].decode()
    if kind == TRTL_DTYPE:
        return dtype_of(code_of(<int>v.u.i))
    if kind == TRTL_INTS:
        return [v.u.ints[i] for i in range(v.n)]
    if kind == TRTL_FLOATS:
        return [v.u.floats[i] for i in range(v.n)]
    raise TypeError(f"a kernel in C returned a value of kind {kind}, which no result has")


cdef class Kernel:
    """A kernel in C, as Python calls it."""
    cdef trtl_kernel function
    cdef void* context
    cdef str name
    cdef int returns
    cdef object __weakref__

    def __call__(self, *args, **kwargs):
        cdef Values given = values_of(args + tuple(kwargs.values()))
        cdef Values results = Values.__new__(Values, self.returns)
        cdef int status, i
        status = self.function(given.v, given.n, results.v, results.n, self.context)
        if status != 0 or PyErr_Occurred() != NULL:
            drop_results(results)
            check_failed(self.name)
        found = [taken(&results.v[i]) for i in range(results.n)]
        return None if not found else found[0] if len(found) == 1 else tuple(found)

    def __repr__(self):
        return f"<kernel in C of {self.name}>"


cdef class Function(Kernel):
    """A function of an extension module, of positional arguments."""
    cdef str documentation

    @property
    def __name__(self):
        return self.name

    @property
    def __doc__(self):
        return self.documentation

    def __repr__(self):
        return f"<function in C {self.name}>"


def function(str name not None, size_t address, int returns, str doc not None):
    """The kernel at an address as a function that returns so many values."""
    cdef Function f = Function.__new__(Function)
    f.function, f.context, f.name, f.returns, f.documentation = <trtl_kernel>address, NULL, name, returns, doc
    return f


cdef int check_failed(str name) except -1:
    if PyErr_Occurred() == NULL:
        raise RuntimeError(f"{name}: a kernel in C failed without saying why")
    return -1


cdef void drop_results(Values results) noexcept:
    cdef int i
    for i in range(results.n):
        if results.v[i].kind == TRTL_TENSOR or results.v[i].kind == TRTL_LIST:
            Py_XDECREF(<PyObject*>results.v[i].u.tensor)
            results.v[i].kind = TRTL_NONE


cdef class Setup:
    """What keeps a call's tensors for its gradient, in C."""
    cdef trtl_setup function
    cdef void* context
    cdef str name

    def __call__(self, ctx, *given):
        inputs, output = given[0] + tuple(given[1].values() if len(given) == 3 else ()), given[len(given) - 1]
        cdef Values v = values_of(inputs)
        cdef Values o = values_of(output if isinstance(output, tuple) else (output,))
        if self.function(<trtl_context><void*>ctx, v.v, v.n, o.v, o.n, self.context) != 0 or PyErr_Occurred() != NULL:
            check_failed(self.name)


cdef class Backward:
    """A gradient in C."""
    cdef trtl_backward function
    cdef void* context
    cdef str name
    cdef int n_inputs

    def __call__(self, ctx, *grads):
        cdef Values given
        cdef bytearray block = bytearray(8 * (len(grads) + self.n_inputs) + 8)
        cdef char* memory = block
        cdef trtl_tensor* g = <trtl_tensor*>memory
        cdef trtl_tensor* out = g + len(grads)
        cdef int i, status
        for i in range(<int>len(grads)):
            if grads[i] is not None and not isinstance(grads[i], TensorBase):
                raise NotImplementedError(f"{self.name}: the gradient of a list of results is not handed to C (docs/gaps.md)")
            g[i] = NULL if grads[i] is None else <trtl_tensor>(grads[i])
        status = self.function(<trtl_context><void*>ctx, g, <int>len(grads), out, self.n_inputs, self.context)
        found = []
        for i in range(self.n_inputs):
            if out[i] == NULL:
                found.append(None)
            else:
                found.append(<object>out[i])
                Py_DECREF(<object>out[i])
        if status != 0 or PyErr_Occurred() != NULL:
            check_failed(self.name)
        return tuple(found)


# ---- the table's functions -----------------------------------------------------------------------------------------

cdef void set_error(int kind, const char* message) noexcept:
    PyErr_SetString(ERRORS[kind] if 0 <= kind < 6 else RuntimeError, message)


cdef int error_occurred() noexcept:
    return PyErr_Occurred() != NULL


cdef int warn(const char* message) noexcept:
    return PyErr_WarnEx(UserWarning, message, 1)


cdef void retain(trtl_tensor t) noexcept:
    Py_INCREF(<object>t)


cdef void release(trtl_tensor t) noexcept:
    Py_XDECREF(<PyObject*>t)


cdef int dim(trtl_tensor t) noexcept:
    return (<TensorBase>t).ndim


cdef int64_t numel(trtl_tensor t) noexcept:
    return (<TensorBase>t).numel


cdef const int64_t* sizes(trtl_tensor t) noexcept:
    return (<TensorBase>t).sizes


cdef const int64_t* strides(trtl_tensor t) noexcept:
    return (<TensorBase>t).strides


cdef int64_t storage_offset(trtl_tensor t) noexcept:
    return (<TensorBase>t).offset


cdef int dtype_number(trtl_tensor t) noexcept:
    return number_of_code[(<TensorBase>t).dtype]


cdef int item_size(int number) noexcept:
    return ITEM_SIZE[code_of_number[number]] if 0 <= number < DTYPE_NUMBERS and code_of_number[number] >= 0 else 0


cdef int device_type(trtl_tensor t) noexcept:
    return (<TensorBase>t).device_type           # numbered as the header numbers them


cdef int device_index(trtl_tensor t) noexcept:
    return (<TensorBase>t).device_index if has_index((<TensorBase>t).device_type) else -1


cdef int is_contiguous(trtl_tensor t) noexcept:
    return (<TensorBase>t).contiguous


cdef int requires_grad(trtl_tensor t) noexcept:
    return (<TensorBase>t).requires_grad


cdef const void* const_data(trtl_tensor t) except? NULL:
    cdef TensorBase x = <TensorBase>t
    if x.storage.block == NULL:
        raise RuntimeError(f"a tensor on {(<object>x).device} has no memory to read")
    return data_of(x)


cdef void* data(trtl_tensor t) except? NULL:
    cdef TensorBase x = <TensorBase>t
    if x.storage.block == NULL:
        raise RuntimeError(f"a tensor on {(<object>x).device} has no memory to write to")
    prepare_write(x.storage, "an extension")
    expose(x.storage)
    return data_of(x)


cdef void* given_out(object x) except NULL:
    """A new reference as a handle."""
    if not isinstance(x, TensorBase):
        raise TypeError(f"expected a tensor, got {type(x).__name__}")
    Py_INCREF(x)
    return <void*>x


cdef void* empty(int ndim, const int64_t* shape, int number, int device, int index) except NULL:
    if not 0 <= ndim <= MAX_DIMS:
        raise ValueError(f"a tensor has at most {MAX_DIMS} dimensions, not {ndim}")
    return given_out(_hooks.empty([shape[i] for i in range(ndim)], dtype_of(code_of(number)), device, index))


cdef void* empty_like(trtl_tensor t) except NULL:
    return given_out(empty_like_tensor(<TensorBase>t, (<TensorBase>t).dtype))


cdef void* full(int ndim, const int64_t* shape, double value, int number, int device, int index) except NULL:
    if not 0 <= ndim <= MAX_DIMS:
        raise ValueError(f"a tensor has at most {MAX_DIMS} dimensions, not {ndim}")
    return given_out(_hooks.full([shape[i] for i in range(ndim)], value, dtype_of(code_of(number)), device, index))


cdef void* contiguous(trtl_tensor t) except NULL:
    return given_out(<object>t if (<TensorBase>t).contiguous else (<object>t).contiguous())


cdef void* to_dtype(trtl_tensor t, int number) except NULL:
    return given_out((<object>t).to(dtype_of(code_of(number))))


cdef class Lent:
    """Owns memory that an extension has lent, until no tensor is left over it."""
    cdef trtl_deleter deleter
    cdef void* context

    def __dealloc__(self):
        if self.deleter != NULL:
            self.deleter(self.context)


cdef void* from_memory(void* address, int ndim, const int64_t* shape, int number, trtl_deleter deleter, void* context) except NULL:
    cdef int64_t strides_[MAX_DIMS]
    cdef int code = code_of(number)
    cdef TensorBase t
    cdef Lent owner
    cdef int64_t n
    if not 0 <= ndim <= MAX_DIMS:
        raise ValueError(f"a tensor has at most {MAX_DIMS} dimensions, not {ndim}")
    n = checked_numel(ndim, shape)
    if address == NULL and n:
        raise ValueError("from_memory(): no address")
    t = empty_tensor(0, NULL, code, DEV_CPU)
    owner = Lent.__new__(Lent)
    set_storage(t, external_storage(address, n * ITEM_SIZE[code], owner))
    contiguous_strides(ndim, shape, strides_)
    set_geometry(t, ndim, shape, strides_)
    owner.deleter, owner.context = deleter, context      # the caller's again where something above fails
    return given_out(t)


cdef void* from_object(void* x) except NULL:
    return given_out(<object>x)


cdef void* to_object(trtl_tensor t) noexcept:
    Py_INCREF(<object>t)
    return <void*>t


cdef object object_of(const trtl_value* v):
    """An argument's Python object; handles stay the caller's."""
    cdef Py_ssize_t i
    cdef trtl_value copy
    if v.kind == TRTL_TENSOR:
        return <object>v.u.tensor if v.u.tensor != NULL else None
    if v.kind == TRTL_TENSORS:
        return [None if v.u.tensors[i] == NULL else <object>v.u.tensors[i] for i in range(v.n)]
    if v.kind == TRTL_DEVICE:
        return _hooks.device(<int>v.u.i, <int>v.n)
    if v.kind == TRTL_LIST:
        return <object>v.u.list
    copy = v[0]
    return taken(&copy)


cdef int call(const char* name, const trtl_value* arguments, int n_arguments, trtl_value* results, int n_results) except -1:
    cdef int i
    cdef object result = _hooks.call(name.decode(), [object_of(&arguments[i]) for i in range(n_arguments)])
    cdef tuple parts = () if result is None and n_results == 0 else tuple(result) if isinstance(result, (tuple, list)) and n_results != 1 else (result,)
    cdef Values v
    if len(parts) != n_results:
        raise RuntimeError(f"{name.decode()}: returned {len(parts)} values, and {n_results} were expected")
    v = values_of(parts)
    for i in range(n_results):
        if v.v[i].kind in (TRTL_STRING, TRTL_INTS, TRTL_FLOATS):
            raise TypeError(f"{name.decode()}: a result of type {type(parts[i]).__name__} cannot be handed to C")
    memset(results, 0, n_results * sizeof(trtl_value))
    for i in range(n_results):
        if v.v[i].kind == TRTL_TENSORS:
            results[i].kind = TRTL_LIST
            results[i].n = v.v[i].n
            listed = list(parts[i])
            Py_INCREF(listed)
            results[i].u.list = <trtl_list><void*>listed
        else:
            results[i] = v.v[i]
            if v.v[i].kind == TRTL_TENSOR:
                Py_INCREF(<object>v.v[i].u.tensor)
    return 0


cdef int set_list(trtl_value* result, const trtl_tensor* tensors, int64_t n) except -1:
    cdef int64_t i
    listed = [None if tensors[i] == NULL else <object>tensors[i] for i in range(n)]
    Py_INCREF(listed)
    result.kind = TRTL_LIST
    result.n = n
    result.u.list = <trtl_list><void*>listed
    return 0


cdef int define(const char* schema) except -1:
    _hooks.define(schema.decode())
    return 0


cdef int implement(const char* name, const char* key, trtl_kernel kernel, void* context) except -1:
    cdef Kernel k = Kernel.__new__(Kernel)
    if kernel == NULL:
        raise ValueError(f"{name.decode()}: no kernel")
    k.function, k.context, k.name = kernel, context, name.decode()
    k.returns = _hooks.implement(k.name, key.decode(), k)
    return 0


cdef int set_gradient(const char* name, trtl_setup setup, trtl_backward backward, void* context) except -1:
    cdef Setup s = None
    cdef Backward b = Backward.__new__(Backward)
    if backward == NULL:
        raise ValueError(f"{name.decode()}: no gradient")
    if setup != NULL:
        s = Setup.__new__(Setup)
        s.function, s.context, s.name = setup, context, name.decode()
    b.function, b.context, b.name = backward, context, name.decode()
    b.n_inputs = _hooks.set_gradient(b.name, s, b)
    return 0


cdef int save(trtl_context ctx, const trtl_tensor* tensors, int n) except -1:
    cdef int i
    (<object>ctx).save_for_backward(*[None if tensors[i] == NULL else <object>tensors[i] for i in range(n)])
    return 0


cdef int n_saved(trtl_context ctx) except -1:
    return <int>len((<object>ctx).saved_tensors)


cdef void* saved(trtl_context ctx, int i) except? NULL:
    cdef tuple found = (<object>ctx).saved_tensors
    if not 0 <= i < len(found):
        raise IndexError(f"{len(found)} tensors were saved, and {i} is asked for")
    return NULL if found[i] is None else given_out(found[i])


cdef int needs_gradient(trtl_context ctx, int i) except -1:
    cdef object needs = (<object>ctx).needs_input_grad
    if not 0 <= i < len(needs):
        raise IndexError(f"there are {len(needs)} inputs, and {i} is asked for")
    return any(needs[i]) if isinstance(needs[i], (list, tuple)) else bool(needs[i])


cdef int set_number(trtl_context ctx, const char* name, double value) except -1:
    setattr(<object>ctx, "trtl_" + name.decode(), value)
    return 0


cdef int number(trtl_context ctx, const char* name, double* value) except -1:
    value[0] = getattr(<object>ctx, "trtl_" + name.decode())
    return 0


cdef void* release_gil() noexcept nogil:
    return <void*>PyEval_SaveThread()


cdef void acquire_gil(void* state) noexcept nogil:
    PyEval_RestoreThread(<PyThreadState*>state)


cdef void run_tasks(int64_t n, int64_t grain, trtl_task task, void* context) noexcept nogil:
    run_parallel(n, grain if grain > 0 else 1, 1, task, context)


cdef int threads() noexcept nogil:
    return thread_count()


cdef void fill_table() noexcept:
    table.version, table.size = TRTL_VERSION, sizeof(trtl_api)
    table.set_error, table.error_occurred, table.warn = <void*>set_error, <void*>error_occurred, <void*>warn
    table.retain, table.release = <void*>retain, <void*>release
    table.dim, table.numel, table.sizes, table.strides, table.storage_offset = <void*>dim, <void*>numel, <void*>sizes, <void*>strides, <void*>storage_offset
    table.device_type, table.device_index, table.dtype, table.item_size = <void*>device_type, <void*>device_index, <void*>dtype_number, <void*>item_size
    table.is_contiguous, table.requires_grad, table.const_data, table.data = <void*>is_contiguous, <void*>requires_grad, <void*>const_data, <void*>data
    table.empty, table.empty_like, table.full, table.contiguous = <void*>empty, <void*>empty_like, <void*>full, <void*>contiguous
    table.to_dtype, table.from_memory, table.from_object, table.to_object = <void*>to_dtype, <void*>from_memory, <void*>from_object, <void*>to_object
    table.call, table.set_list, table.define, table.implement = <void*>call, <void*>set_list, <void*>define, <void*>implement
    table.set_gradient, table.save, table.n_saved, table.saved = <void*>set_gradient, <void*>save, <void*>n_saved, <void*>saved
    table.needs_gradient, table.set_number, table.number = <void*>needs_gradient, <void*>set_number, <void*>number
    table.release_gil, table.acquire_gil, table.parallel_for, table.num_threads = <void*>release_gil, <void*>acquire_gil, <void*>run_tasks, <void*>threads


fill_table()


def capsule(bytes name not None):
    """The table in a capsule of this name, which lives as long as the process."""
    _kept.append(name)
    return PyCapsule_New(&table, name, NULL)


def address():
    """The table's address, for libraries that are loaded without Python."""
    return <size_t>&table


cdef list _kept = []
