"""Boxed calls: one C function stands under every key whose kernels are Python's, of every operator.

An operator's packer (core/dispatch.h) stores its arguments as `trt_value`s and comes here; what is done depends on the dispatch key that
was looked up. `call_boxed` is the way back: from Python objects to the operator's unpacker, which dispatches.
"""
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport strlen
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_META
from tensorrt_lite._C.core.dtype cimport Scalar, dtype_of
from tensorrt_lite._C.core.tensor cimport TensorBase, KEY_AUTOGRAD, KEY_CUDA, KEY_CUSTOM, KEY_META, KEY_CPU, K_BACKENDS, bump_version, K_PYTHON, data_of, empty_tensor, hold_versions
from tensorrt_lite._C.core.dispatch cimport attach, tls, trt_operator, trt_thread_state, trt_value, boxed_call, CORE, OPS, FRESH, NO_OUT
from tensorrt_lite._C.core.return_types import classes as result_classes
from tensorrt_lite._C.core.row_schema cimport schema_of
from tensorrt_lite._C.core.args cimport (
    Dims, parse_dims, parse_bool, parse_int, parse_double, parse_dtype, to_scalar, scalar_object, dims_tuple, is_number, wrap_number)

attach()

cdef extern from "stage.h" nogil:
    void load_scalar "trt_load_scalar"(const char* source, int dtype, Scalar* value)

cdef enum:
    MOST_ARGUMENTS = 24
    MOST_DIMS = 8                  # arguments of one kind
    MOST_SCALARS = 8

cdef struct Room:
    Dims dims[MOST_DIMS]
    Scalar scalars[MOST_SCALARS]
    int n_dims, n_scalars

cdef boxed_kernel kernels[16]


cdef void register_boxed(int key, boxed_kernel kernel) noexcept:
    kernels[key] = kernel


cdef boxed_kernel registered_kernel(int key) noexcept:
    return kernels[key]


cdef bint may_be_none(trt_operator* op, Py_ssize_t i):
    """Whether a result may be absent: it says so, or is a gradient that `output_mask` does not ask for."""
    return op.row.results and (schema_of(op.row.schema).results[i].startswith("Tensor?") or schema_of(op.row.schema).name.endswith("_backward"))


cdef object box(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """Run the boxed kernel of the key that was looked up, and check what it returns: callers read it as the type in the schema."""
    cdef int key = tls().key
    cdef boxed_kernel kernel = kernels[key]
    cdef object result
    cdef Py_ssize_t i
    if op.python != NULL and op.python[key] != NULL and key != KEY_CUSTOM:
        kernel = run_backend_kernel           # that Python registered under this key
    result = kernel(op, v, out, mode)
    if op.row.returned == c't':
        if not isinstance(result, TensorBase):
            raise RuntimeError(f"{op.name.decode()}: a kernel must return a Tensor, not {type(result).__name__}")
    elif op.row.returned == c'l' or op.row.results:
        if not isinstance(result, (tuple, list)):
            raise RuntimeError(f"{op.name.decode()}: a kernel must return {f'a tuple of {op.row.results}' if op.row.results else 'a list of'} tensors, not {type(result).__name__}")
        if not op.row.results:
            result = tuple(result)          # as the kernels' own
        elif type(result) not in result_classes:
            result = tuple(result)          # whose length is the truth
        if op.row.results and len(result) != op.row.results:
            raise RuntimeError(f"{op.name.decode()}: a kernel must return {op.row.results} tensors, not {len(result)}")
        for i, x in enumerate(result):
            if not isinstance(x, TensorBase) and (x is not None or not may_be_none(op, i)):
                raise RuntimeError(f"{op.name.decode()}: a kernel must return tensors, not {type(x).__name__} (result {i})")
    return result


cdef object run_backend_kernel(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """A kernel that Python registered for a backend in the place of the row's own."""
    cdef int key = tls().key
    cdef tuple arguments = box_arguments(op, v, False)
    if mode == NO_OUT:
        return boxed_call(op, key, arguments)
    if out == NULL or <object>out is None:
        return boxed_call(op, key, arguments + (None,))
    hold_versions(1)                       # the write is the operator's, which counts it
    try:
        result = boxed_call(op, key, arguments + (<object>out,))
    finally:
        hold_versions(-1)
    if key == KEY_AUTOGRAD and isinstance(<object>out, TensorBase):
        bump_version(<TensorBase><object>out)    # as Autograd's own kernels do
    return result


for _key in (KEY_META, KEY_CPU, KEY_CUDA):
    register_boxed(_key, run_backend_kernel)


cdef object number_in(TensorBase t):
    """The number that a tensor was made from; no call of an operator, which modes would see."""
    cdef trt_thread_state* state = tls()
    cdef uint64_t included = state.included, excluded = state.excluded
    cdef Scalar s
    if t.device_type == DEV_CPU and not t.keys & K_PYTHON:
        load_scalar(data_of(t), t.dtype, &s)
        return scalar_object(&s)
    state.included, state.excluded = 0, ~<uint64_t>K_BACKENDS
    try:
        return t.item()
    finally:
        state.included, state.excluded = included, excluded


cdef object boxed_value(char kind, const trt_value* v, bint numbers):
    cdef object x
    if kind == c't':
        x = <object>v.p
        if numbers and x is not None and (<TensorBase>x).wrapped_number:
            return number_in(<TensorBase>x)
        return x
    if kind == c'l' or kind == c'o':
        return <object>v.p
    if kind == c'i':
        return v.i
    if kind == c'b':
        return v.i != 0
    if kind == c'd':
        return v.d
    if kind == c'y':
        return None if v.i < 0 else dtype_of(<int>v.i)
    if v.p == NULL:
        return None
    if kind == c's':
        return scalar_object(<const Scalar*>v.p)
    sizes = dims_tuple(<const Dims*>v.p)
    return list(sizes) if numbers else sizes


cdef tuple box_arguments(trt_operator* op, const trt_value* v, bint numbers):
    """The arguments as a tuple. numbers: as PyTorch hands them over, tensors made from Python numbers as those again, int[] as lists."""
    cdef const char* kinds = op.row.kinds
    cdef Py_ssize_t i, n = strlen(kinds)
    cdef tuple arguments = PyTuple_New(n)
    for i in range(n):
        x = boxed_value(kinds[i], &v[i], numbers)
        Py_INCREF(x)
        PyTuple_SET_ITEM(arguments, i, x)
    return arguments


cdef int unbox_value(trt_operator* op, Py_ssize_t i, object x, trt_value* v, Room* room) except -1:
    """`x` as the operator's argument i; the structures that v points to lie in the room."""
    cdef char kind = op.row.kinds[i]
    cdef str name
    if kind == c't':
        # who gives a number for a tensor keeps the tensor made of it alive
        if x is not None and not isinstance(x, TensorBase):
            raise TypeError(f"{op.name.decode()}(): argument {i + 1} must be Tensor, not {type(x).__name__}")
        v.p = <void*>x
    elif kind == c'l':
        if not isinstance(x, list):
            raise TypeError(f"{op.name.decode()}(): argument {i + 1} must be a list of Tensors, not {type(x).__name__}")
        v.p = <void*>x
    elif kind == c'o':
        v.p = <void*>x
    elif kind == c's' or kind == c'v':
        v.p = NULL
        if x is None:
            return 0
        name = op.name.decode()
        if kind == c's':
            if room.n_scalars == MOST_SCALARS:
                raise SystemError(f"{name}: more than {MOST_SCALARS} Scalars")
            v.p = &room.scalars[room.n_scalars]
            room.n_scalars += 1
            to_scalar(x, <Scalar*>v.p)
        else:
            if room.n_dims == MOST_DIMS:
                raise SystemError(f"{name}: more than {MOST_DIMS} lists of ints")
            v.p = &room.dims[room.n_dims]
            room.n_dims += 1
            parse_dims(x, <Dims*>v.p, name, f"of position {i + 1}")
    else:
        name = op.name.decode()
        if kind == c'i':
            v.i = parse_int(x, name, f"of position {i + 1}")
        elif kind == c'b':
            v.i = parse_bool(x, name, f"of position {i + 1}")
        elif kind == c'd':
            v.d = parse_double(x, name, f"of position {i + 1}")
        else:
            v.i = parse_dtype(x, name)
    return 0


cdef object number_with(object first, TensorBase number):
    """A number as an operator on meta tensors takes it: without memory, as those are."""
    cdef TensorBase r
    if not isinstance(first, TensorBase) or (<TensorBase>first).device_type != DEV_META or (<TensorBase>first).keys & K_PYTHON:
        return number
    r = empty_tensor(0, NULL, number.dtype, DEV_META)
    r.wrapped_number = 1
    return r


cdef object call_boxed(trt_operator* op, tuple arguments, object out, int mode):
    """Call an operator, through the dispatcher, with all its arguments in a tuple."""
    cdef trt_value v[MOST_ARGUMENTS]
    cdef Room room
    cdef list kept = None
    cdef Py_ssize_t i, n = strlen(op.row.kinds)
    if len(arguments) != n or n > MOST_ARGUMENTS:
        raise TypeError(f"{op.name.decode()}: expected {n} arguments, got {len(arguments)}")
    if out is not None and op.row.returned == c't' and not isinstance(out, TensorBase):
        raise TypeError(f"{op.name.decode()}(): argument 'out' must be Tensor, not {type(out).__name__}")
    room.n_dims = room.n_scalars = 0
    for i in range(n):
        x = arguments[i]
        if op.row.kinds[i] == c't' and is_number(x) or op.row.kinds[i] == c'l' and isinstance(x, tuple):
            x = list(x) if isinstance(x, tuple) else number_with(arguments[0], wrap_number(x))
            if kept is None:
                kept = []
            kept.append(x)
        unbox_value(op, i, x, &v[i], &room)
    if op.row.returned == c't' and op.row.written:
        # the unpacker reads `out` as a tensor
        mode = FRESH if out is None else mode
    return op.row.unpack(op, v, <void*>out, mode)


cdef object recall(int operator_id, tuple arguments, object out, int mode):
    return call_boxed(&OPS[operator_id], arguments, out, mode)


CORE.box = <void*>box
