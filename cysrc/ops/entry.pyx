"""Entries of operators: one type, driven by rows, stands behind `trt.add`, `Tensor.sum_` and `F.relu`.

entry.h parses a call by the row's schema; here is what happens seldom: the first call of an entry, unusual arguments, errors, and calls that write.
"""
import warnings

from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t, uint64_t, uint32_t
from libc.stdlib cimport calloc, free
from tensorrt_lite._C.core.free_threading cimport keep_for_ever, lock_of, mutex, mutex_lock, mutex_unlock, publish
from tensorrt_lite._C.core.dtype cimport Scalar
from tensorrt_lite._C.core.tensor cimport TensorBase, tensor_type, parameter_type, bump_version
from tensorrt_lite._C.core.dispatch cimport attach, trt_operator, trt_value, resolve, OPS, FRESH, OUT, INPLACE
from tensorrt_lite._C.core.args cimport Dims, as_tensor_arg, tensor_list, parse_int, parse_double, parse_bool, parse_dims, parse_dtype
from tensorrt_lite._C.core.overrides cimport set_entry_call, general_call
from tensorrt_lite._C.core.hints import keyword_hint
from tensorrt_lite._C.core.return_types import result_type
from tensorrt_lite._C.core.row_schema cimport Schema, schema_of, REQUIRED
from tensorrt_lite._C.autograd.node cimport check_inplace
from tensorrt_lite._C.autograd.pointwise cimport entry1, entry2, entry3, param
from tensorrt_lite._C.ops.support cimport check_out, check_outs, bump_outs, finish_inplace, keys_of_list

cdef extern from "entry.h":
    enum:
        TRT_ENTRY_INPLACE
        TRT_ENTRY_OUT
        TRT_ENTRY_POINTWISE
        TRT_ENTRY_VARARGS
        TRT_ENTRY_NAMED
        TRT_MOST_ARGUMENTS
        TRT_MOST_DIMS
        TRT_MOST_SCALARS
        TRT_TOO_MANY
        TRT_UNEXPECTED
        TRT_TWICE
        TRT_MISSING
    ctypedef struct trt_room:
        int n_dims, n_scalars, n_kept
        Scalar scalars[6]
        Dims dims[6]
    ctypedef struct trt_arguments:
        int n, positional, first_dims
        uint32_t required
        char kinds[24]
        PyObject* names[24]
        PyObject* other_names[24][3]
        trt_value defaults[24]
        trt_room room
    PyTypeObject** trt_plain_tensor
    PyTypeObject** trt_plain_parameter
    PyObject* trt_out_name
    void* trt_prepare_entry
    void* trt_convert_argument
    void* trt_finish_entry
    void** trt_pointwise_entries
    void* trt_bad_call
    void* trt_older_call
    void* trt_call_entry
    void* trt_call_public_entry
    void* trt_call_overridden
    int trt_keep(trt_room* room, object x) noexcept
    void trt_prepare_entry_type(PyTypeObject* t)

attach()

cdef str OUT_NAME = "out"
trt_plain_tensor = &tensor_type
trt_plain_parameter = &parameter_type
trt_out_name = <PyObject*>OUT_NAME

# NumPy's names of arguments, as PyTorch takes them
cdef dict NUMPY_NAMES = {"dim": ("axis",), "keepdim": ("keepdims",), "other": ("x2",)}
cdef dict KINDS = {
    "Tensor": b"t", "Tensor?": b"T", "Tensor[]": b"l", "int": b"i", "bool": b"b", "float": b"d", "Scalar": b"s", "Scalar?": b"S", "int[]": b"v", "int[]?": b"V",
    "ScalarType": b"y", "ScalarType?": b"y"}


cdef class Entry:
    """A function, method or in-place form of an operator. Called as the schema says, with `out` where the operator can write to one."""
    cdef void* vectorcall              # the first four as in trt_entry: no cdef method may be added, its table would come before them
    cdef const trt_entry_spec* spec
    cdef trt_operator* op
    cdef trt_arguments* arguments
    cdef tuple held                    # what the arguments point to
    cdef str name, operator            # the entry's and its operator's, for checks
    cdef int target                    # the argument that a call in place writes to
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self):
        raise TypeError("entries are made by the library")

    def __dealloc__(self):
        free(self.arguments)

    def __call__(self, *args, **kwargs):
        raise SystemError("the type's slot is a vectorcall's")       # here for `__call__` in dir()

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def __name__(self):
        return self.spec.name.decode()

    @property
    def __qualname__(self):
        return self.spec.name.decode()

    @property
    def __module__(self):
        return "tensorrt_lite"

    @property
    def schema(self):
        """The schema, in PyTorch's notation."""
        return public_schema(self).decode()

    @property
    def __defaults__(self):
        return tuple([p.default for p in self.__signature__.parameters.values() if p.kind is not p.KEYWORD_ONLY and p.default is not p.empty]) or None

    @property
    def __kwdefaults__(self):
        return {p.name: p.default for p in self.__signature__.parameters.values() if p.kind is p.KEYWORD_ONLY} or None

    @property
    def __signature__(self):
        from inspect import Parameter, Signature
        from keyword import iskeyword
        cdef Schema schema = schema_of(public_schema(self))
        cdef int i
        cdef list parameters = []
        for i in range(len(schema.names)):
            kind = Parameter.KEYWORD_ONLY if i >= schema.positional else Parameter.POSITIONAL_OR_KEYWORD
            default = schema.defaults[i]
            name = public_name(schema.names[i])
            parameters.append(Parameter(name + "_" * iskeyword(name), kind, default=Parameter.empty if default is REQUIRED else default))
        if self.spec.flags & TRT_ENTRY_OUT:
            parameters.append(Parameter("out", Parameter.KEYWORD_ONLY, default=None))
        return Signature(parameters)

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<entry of {self.op.name.decode()}: {self.spec.name.decode()}>"


cdef extern from "Python.h":
    object PyMethod_New(object, object)


cdef str public_name(str name):
    return "input" if name == "self" else name


cdef char kind_of(str type, bint pointwise) except 0:
    cdef bytes kind = KINDS.get(type, b"o")
    return c'p' if pointwise and type == "Tensor" else kind[0]


cdef const char* public_schema(Entry e) noexcept:
    return e.op.row.schema if e.spec.schema == NULL else e.spec.schema


cdef int prepare(Entry e) except -1:
    """Take the schema apart for the first call."""
    cdef Schema schema = schema_of(public_schema(e))
    cdef bint pointwise = e.spec.flags & TRT_ENTRY_POINTWISE != 0, first
    cdef mutex* lock = lock_of(<PyObject*>e)
    cdef trt_arguments* a
    cdef int i, k, target
    if len(schema.names) > TRT_MOST_ARGUMENTS:
        raise SystemError(f"{e!r}: more than {TRT_MOST_ARGUMENTS} arguments")
    a = <trt_arguments*>calloc(1, sizeof(trt_arguments))
    if a == NULL:
        raise MemoryError()
    held = []
    try:
        a.n = <int>len(schema.names)
        a.positional = schema.positional
        a.first_dims = -1
        for i in range(a.n):
            name = public_name(schema.names[i])
            a.kinds[i] = c'o' if e.spec.body != NULL else kind_of(schema.types[i], pointwise)
            if e.spec.flags & TRT_ENTRY_VARARGS and a.first_dims < 0 and i == schema.positional - 1:
                a.first_dims = i
            held.append(name)
            a.names[i] = <PyObject*>name
            others = NUMPY_NAMES.get(name, ()) if name != "input" else ("x", "a", "x1")
            k = 0
            for other in others:
                if other not in schema.names:            # another argument's name stays that argument's
                    held.append(other)
                    a.other_names[i][k] = <PyObject*>other
                    k += 1
            if schema.defaults[i] is REQUIRED:
                a.required |= <uint32_t>1 << i
            else:
                held.append(schema.defaults[i])
                convert(e, i, schema.defaults[i], &a.defaults[i], &a.room, a.kinds[i], name)
        everything, name, operator = tuple(held), e.spec.name.decode(), e.op.name.decode()
        target = first_tensor(a)
    except:
        free(a)
        raise
    mutex_lock(lock)
    first = e.arguments == NULL
    if first:                          # what is held is what `a` points to, so both are one thread's
        e.held, e.name, e.operator, e.target = everything, name, operator, target
        publish(e.arguments, a)
    mutex_unlock(lock)
    if not first:
        free(a)
    return 0


cdef int prepare_entry(object e) except -1:
    return prepare(<Entry>e)


cdef int convert(Entry e, int i, object x, trt_value* v, trt_room* room, char kind, str name) except -1:
    """What entry.h's quick conversions leave."""
    cdef str label = e.op.name.decode()
    cdef list tensors
    if kind == c't':
        as_tensor_arg(x, label, name)
        v.p = <void*>x
    elif kind == c'T':
        if x is not None:
            as_tensor_arg(x, label, name)
        v.p = <void*>x
    elif kind == c'o' or kind == c'p':
        v.p = <void*>x
    elif kind == c'l':
        tensors = tensor_list(x, label, name)
        if trt_keep(room, tensors) < 0:
            raise SystemError(f"{label}: too many lists")
        v.p = <void*>tensors
    elif kind == c'i':
        v.i = parse_int(x, label, name)
    elif kind == c'b':
        v.i = parse_bool(x, label, name)
    elif kind == c'd':
        v.d = parse_double(x, label, name)
    elif kind == c'y':
        v.i = parse_dtype(x, label)
    elif kind == c's' or kind == c'S':
        v.p = NULL
        if kind == c'S' and x is None:
            return 0
        if room.n_scalars == TRT_MOST_SCALARS:
            raise SystemError(f"{label}: more than {TRT_MOST_SCALARS} numbers")
        param(x, &room.scalars[room.n_scalars], label, name)
        v.p = &room.scalars[room.n_scalars]
        room.n_scalars += 1
    else:
        v.p = NULL
        if x is None:
            if kind == c'V':
                return 0
            raise TypeError(f"{label}(): argument '{name}' must be tuple of ints, not NoneType")
        if room.n_dims == TRT_MOST_DIMS:
            raise SystemError(f"{label}: more than {TRT_MOST_DIMS} lists of ints")
        parse_dims(x, &room.dims[room.n_dims], label, name)
        v.p = &room.dims[room.n_dims]
        room.n_dims += 1
    return 0


cdef int convert_argument(object e, int i, object x, trt_value* v, trt_room* room) except -1:
    cdef Entry entry = <Entry>e
    return convert(entry, i, x, v, room, entry.arguments.kinds[i], <str>entry.arguments.names[i])


cdef int bad_call(object e, int what, PyObject* keyword, Py_ssize_t given) except -1:
    cdef Entry entry = <Entry>e
    cdef trt_arguments* a = entry.arguments
    cdef str name = entry.spec.name.decode()
    cdef int i
    if what == TRT_TOO_MANY:
        raise TypeError(f"{name}() takes {a.positional} positional argument{'s' * (a.positional != 1)} but {given} were given")
    if what == TRT_UNEXPECTED:
        raise keyword_hint(e, TypeError(f"{name}() got an unexpected keyword argument '{<object>keyword}'"), <object>keyword)
    if what == TRT_TWICE:
        raise TypeError(f"{name}() got multiple values for argument '{<object>keyword}'")
    missing = [<object>a.names[i] for i in range(a.n) if a.required >> i & 1 and not given >> i & 1]
    raise TypeError(f"{name}() missing {len(missing)} required positional argument{'s' * (len(missing) != 1)}: " + ", ".join([f'"{m}"' for m in missing]))


# Deprecated signatures that PyTorch has and older optimizers use, `x.addcmul_(0.5, a, b)`, `torch.addmm(beta, m, alpha, a, b)`: the numbers' keywords today.
cdef dict DEPRECATED_NUMBERS = {
    "add": ("alpha",), "sub": ("alpha",), "addcmul": ("value",), "addcdiv": ("value",), "addmm": ("beta", "alpha"), "addmv": ("beta", "alpha"), "baddbmm": ("beta", "alpha")}
cdef set _warned = set()  # names of operators


cdef object older_call(object e, object f, PyObject** args, Py_ssize_t n, PyObject* keywords):
    """A call with too many positional arguments: one of a deprecated signature, whose last arguments are tensors, or a TypeError."""
    cdef Entry entry = <Entry>e
    cdef str name = entry.spec.name.decode()
    cdef tuple names = DEPRECATED_NUMBERS.get(name.rstrip("_"), ())
    cdef list given = [<object>args[i] for i in range(n)], tensors = [x for x in given if isinstance(x, TensorBase)]
    cdef list numbers = [x for x in given if not isinstance(x, TensorBase)]
    cdef dict named = {}
    cdef Py_ssize_t wanted = entry.arguments.positional
    if len(tensors) != wanted or len(numbers) > len(names) or not all([isinstance(x, (int, float, complex)) for x in numbers]) \
            or not all([isinstance(x, TensorBase) for x in given[n - wanted + 1:]]):
        bad_call(e, TRT_TOO_MANY, NULL, n)
    if keywords != NULL:
        named = {key: <object>args[n + j] for j, key in enumerate(<tuple><object>keywords)}
    for key, value in zip(names, numbers):
        if key in named:
            raise TypeError(f"{name}() got multiple values for argument '{key}'")
        named[key] = value
    if name not in _warned:
        _warned.add(name)
        warnings.warn(f"This overload of {name} is deprecated: give {' and '.join(names[:len(numbers)])} by keyword, after the tensors", UserWarning)
    return f(*tensors, **named)


# ---- calls that write, results with names --------------------------------------------------------------------------

cdef uint64_t keys_of(Entry e, trt_value* v) except? 0:
    cdef trt_arguments* a = e.arguments
    cdef uint64_t keys = 0
    cdef int i
    for i in range(a.n):
        if a.kinds[i] == c't' or a.kinds[i] == c'T' and v[i].p != <void*>None:
            keys |= (<TensorBase>v[i].p).keys
        elif a.kinds[i] == c'l':
            keys |= keys_of_list(<list>v[i].p)
    return keys


cdef object named(Entry e, object result):
    """Several results with names come as a named tuple."""
    if not e.spec.flags & TRT_ENTRY_NAMED:
        return result
    fields = tuple([r.rpartition(" ")[2] for r in schema_of(e.op.row.schema).results])
    return result_type(e.op.name.decode(), fields)(result)


cdef object finish(object entry, trt_value* v, PyObject* given_out, unsigned given):
    cdef Entry e = <Entry>entry
    cdef trt_operator* op = e.op
    cdef object out = None if given_out == NULL else <object>given_out, result
    cdef TensorBase target
    cdef str name
    cdef int i
    cdef bint single = op.row.returned == c't'
    if e.spec.flags & TRT_ENTRY_INPLACE:
        target = <TensorBase>v[e.target].p
        check_inplace(target, e.name)
        return finish_inplace(<TensorBase>op.row.unpack(op, v, <void*>target, INPLACE), keys_of(e, v))
    if out is None:
        return named(e, op.row.unpack(op, v, <void*>None, FRESH))
    name = e.operator
    if e.spec.needed >= 0 and not given >> e.spec.needed & 1:
        missing = <object>e.arguments.names[e.spec.needed]
        raise TypeError(f"{name}(): out= needs {missing}, which may be None")
    if single:
        check_out(out, name)
        result = op.row.unpack(op, v, <void*>out, OUT)
        bump_version(<TensorBase>out)
        return result
    check_outs(out, name, <int>len(schema_of(op.row.schema).results))
    # a dispatcher sees the keys of one result alone
    resolve(op, keys_of(e, v) | keys_of_list(list(out)))
    result = op.row.unpack(op, v, <void*>out, OUT)
    bump_outs(out)
    return named(e, result)


cdef int first_tensor(trt_arguments* a) noexcept:
    cdef int i = 0
    while i < a.n and a.kinds[i] != c't':
        i += 1
    return i


trt_prepare_entry = <void*>prepare_entry
trt_convert_argument = <void*>convert_argument
trt_bad_call = <void*>bad_call
trt_older_call = <void*>older_call
trt_finish_entry = <void*>finish
trt_pointwise_entries[0] = <void*>entry1
trt_pointwise_entries[1] = <void*>entry2
trt_pointwise_entries[2] = <void*>entry3
trt_prepare_entry_type(<PyTypeObject*>Entry)
trt_call_overridden = general_call()
set_entry_call(<PyTypeObject*>Entry, <void*>trt_call_public_entry)


cdef int add_entries(dict namespace, const trt_entry_spec* specs, int n) except -1:
    """Make the entries of a family's table under their names."""
    cdef Entry e
    cdef int i
    for i in range(n):
        e = Entry.__new__(Entry)
        e.vectorcall = <void*>trt_call_entry
        e.spec = &specs[i]
        e.op = &OPS[specs[i].id]
        keep_for_ever(e)
        namespace[specs[i].name.decode()] = e
        if specs[i].aliases != NULL:
            for alias in specs[i].aliases.decode().split(" "):
                namespace[alias] = e
    return 0
