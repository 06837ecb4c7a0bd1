"""The Python key: operators as objects, `__torch_dispatch__` of tensor subclasses, and the stack of TorchDispatchModes.

A tensor of a class with `__torch_dispatch__` has the key Python; while modes are active it is among the thread's included keys. Its kernel
stands below Autograd and calls Python with the operator as an object, whose call dispatches again: to the next mode, to a subclass, or to the
backend. What is above the key stays excluded meanwhile, so that nothing is recorded twice, and versions are counted once.
"""
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.tensor cimport TensorBase, K_PYTHON, K_DECOMPOSE, K_DISPATCHED, K_AUTOGRAD, K_TRANSFORM, K_SPARSE, K_WRAPPED, KEY_PYTHON, KEY_DECOMPOSE, NUM_KEYS, hold_versions, alias_of
from tensorrt_lite._C.core.dispatch cimport attach, tls, trt_operator, trt_thread_state, trt_value, operator_named, OPS, FRESH, OUT, INPLACE, NO_OUT
from tensorrt_lite._C.core.row_schema cimport Schema, schema_of, REQUIRED
from tensorrt_lite._C.core.boxing cimport box_arguments, call_boxed, register_boxed
from importlib import import_module
from tensorrt_lite._C.core.return_types import classes as result_classes

attach()

cdef uint64_t ABOVE_PYTHON = ((<uint64_t>1 << NUM_KEYS) - 1) & ~((<uint64_t>K_PYTHON << 1) - 1) & ~<uint64_t>K_SPARSE      # sparse tensors are sparse to Python's code, too


# ---- operators as objects ------------------------------------------------------------------------------------------

cdef class Operator:
    """One form of an operator: ``ops.aten.add.Tensor``, ``ops.aten.add_.Tensor``, ``ops.aten.add.out``.

    A call takes the schema's arguments and dispatches. Modes and ``__torch_dispatch__`` receive these objects; there is one per form in a process.
    """
    cdef trt_operator* op
    cdef readonly int mode
    cdef readonly str namespace, row_name, _name, overload
    cdef readonly tuple argument_names, argument_types
    cdef tuple defaults
    cdef int positional
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self):
        raise TypeError("operators are made by the library: ops.aten.<name>.<overload>")

    @property
    def __name__(self):
        return f"{self._name}.{self.overload}"

    @property
    def is_view(self):
        """Whether the result shares the first argument's memory."""
        return bool(self.op.row.view)

    @property
    def schema(self):
        """The schema of the functional form, in PyTorch's notation."""
        return self.op.row.schema.decode()

    @property
    def _schema(self):
        """The schema with attributes: name, arguments, returns."""
        return _schema_of(self)

    @property
    def overloadpacket(self):
        """All forms of the name: ``ops.aten.add``."""
        return _packet_of(self)

    @property
    def _opname(self):
        return self._name

    @property
    def _overloadname(self):
        return self.overload

    def name(self):
        """``aten::add.Tensor``; without a point for the default overload."""
        return f"{self.namespace}::{self._name}" + ("" if self.overload == "default" else "." + self.overload)

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._name}', overload='{self.overload}')>"

    def __str__(self):
        return f"{self.namespace}.{self._name}.{self.overload}"

    def __reduce__(self):
        return operator_object, (self.op.name.decode(), self.mode)

    def __deepcopy__(self, memo):
        return self

    def __call__(self, *args, **kwargs):
        cdef tuple given
        cdef object out = None, result
        cdef int mode = NO_OUT
        if self.op.row.written:
            mode = self.mode
            if mode == OUT:
                out = kwargs.pop("out", None)
                if out is None:
                    raise TypeError(f"{self}: missing the argument 'out'")
        elif self.mode == OUT:
            raise TypeError(f"{self}: has no form that writes to out")
        given = self.bind(args, kwargs)
        self.check_types(given)
        if mode == INPLACE:
            out = given[0]
        if mode == INPLACE or mode == OUT:
            check_target(self, given, out)
        result = call_boxed(self.op, given, out, mode)
        return out if mode == INPLACE else result

    cdef int check_types(self, tuple given) except -1:
        """What kernels rely on: tensors where the schema has tensors, numbers where it has numbers."""
        cdef Py_ssize_t i
        cdef str kind
        for i in range(len(given)):
            kind = self.argument_types[i]
            x = given[i]
            if x is None:
                if not kind.endswith("?") and self.defaults[i] is not None and (kind.startswith("Tensor") or self.op.row.kinds[i] != c'o'):
                    raise TypeError(f"{self}: argument '{self.argument_names[i]}' must be {kind}, not None")
            elif kind == "Tensor?[]" or kind == "Tensor[]":
                if not isinstance(x, (list, tuple)) or kind == "Tensor?[]" and not isinstance(x, list):
                    raise TypeError(f"{self}: argument '{self.argument_names[i]}' must be a list of Tensors, not {type(x).__name__}")
                for y in x:
                    if not isinstance(y, TensorBase) and (y is not None or kind == "Tensor[]"):
                        raise TypeError(f"{self}: argument '{self.argument_names[i]}' must be a list of Tensors, but has a {type(y).__name__}")
            elif kind.startswith("Tensor") and i == 0 and self.mode == INPLACE and not isinstance(x, TensorBase):
                raise TypeError(f"{self}: argument '{self.argument_names[i]}' must be Tensor, not {type(x).__name__}")
        return 0

    cdef tuple bind(self, tuple args, dict kwargs):
        cdef Py_ssize_t i, n = len(self.argument_names)
        cdef list values
        if len(args) > self.positional:
            raise TypeError(f"{self}: takes {self.positional} positional arguments, got {len(args)}")
        values = list(args)
        for i in range(len(args), n):
            name = self.argument_names[i]
            if name in kwargs:
                values.append(kwargs.pop(name))
            elif self.defaults[i] is REQUIRED:
                raise TypeError(f"{self}: missing the argument '{name}'")
            else:
                values.append(self.defaults[i])
        if kwargs:
            raise TypeError(f"{self}: unexpected arguments {sorted(kwargs)}. Schema: {self.schema}")
        return tuple(values)

    cpdef tuple split(self, tuple arguments):
        """(positional arguments without trailing defaults, keyword arguments that are no defaults) of a call with all arguments."""
        cdef Py_ssize_t i, n = self.positional
        cdef dict kwargs = {}
        while n > 0 and is_default(arguments[n - 1], self.defaults[n - 1]):
            n -= 1
        for i in range(self.positional, len(arguments)):
            if not is_default(arguments[i], self.defaults[i]):
                kwargs[self.argument_names[i]] = arguments[i]
        return arguments[:n], kwargs


cdef object _packet_of = None, _schema_of = None


def set_packet_functions(packet_of, schema_of):
    """packet_of(operator) and schema_of(operator) answer for operator objects."""
    global _packet_of, _schema_of
    _packet_of, _schema_of = packet_of, schema_of


cdef object _write_check = None


def _set_write_check(f):
    """f(target, operator's name, write mode, number of results) refuses what must not be written to."""
    global _write_check
    _write_check = f


cdef int check_target(Operator func, tuple given, object out) except -1:
    cdef int count = 1
    if func.op.row.returned != c't':
        count = <int>len(schema_of(func.op.row.schema).results)
        for x in out if isinstance(out, (tuple, list)) else (out,):
            for y in given:
                if isinstance(x, TensorBase) and isinstance(y, TensorBase) and x.device != y.device:
                    raise RuntimeError(f"{func}: Expected all tensors to be on the same device, but found at least two devices, {x.device} and {y.device}!")
    _write_check(out, func._name, func.mode, count)
    return 0


cdef list list_of_thread(PyObject** place):
    """The list in a field of the thread's state, made when it is first asked for; it stays for as long as the process."""
    if place[0] == NULL:
        fresh = []
        Py_INCREF(fresh)
        place[0] = <PyObject*>fresh
    return <list>place[0]


cdef dict _objects = {}            # (row's name, write mode): Operator


cdef bint is_default(object value, object default) except -1:
    if default is REQUIRED or type(value) is not type(default):
        return False
    return value is default or isinstance(value, (bool, int, float, str)) and value == default


def operator_object(str name, int mode=FRESH):
    """The operator of a row in one of its forms (0: returns fresh results, 1: writes to out, 2: in place), or None where no row has the name."""
    cdef Operator o = _objects.get((name, mode))
    cdef Schema schema
    cdef trt_operator* op
    if o is not None:
        return o
    op = operator_named(name)
    if op == NULL or op.row == NULL or mode != FRESH and not op.row.written:
        return None
    o = Operator.__new__(Operator)
    o.op = op
    o.mode = mode
    schema = schema_of(op.row.schema)
    o.row_name = name + ("_" if mode == INPLACE and not name.endswith("_") else "")
    o.namespace = "trtl" if name.startswith("trtl_") else "aten"
    o._name = o.row_name.removeprefix("trtl_")
    o.overload = ("out" if schema.overload in ("default", "Tensor") else schema.overload + "_out") if mode == OUT else schema.overload
    o.argument_names, o.defaults, o.positional = schema.names, schema.defaults, schema.positional
    o.argument_types = tuple([kind.partition("(")[0] for kind in schema.types])        # without marks of what is written
    return _objects.setdefault((name, mode), o)


# ---- the key's kernel ----------------------------------------------------------------------------------------------

cdef object _disabled = None


def _set_disabled_dispatch(f):
    """The function that stands for 'no __torch_dispatch__'."""
    global _disabled
    _disabled = f


def run_below(func, tuple args, dict kwargs):
    """The operator with the key Python excluded: what `super().__torch_dispatch__` does. Results are plain tensors."""
    cdef trt_thread_state* state = tls()
    cdef uint64_t excluded = state.excluded
    state.excluded = excluded | K_DISPATCHED
    try:
        return func(*args, **kwargs)
    finally:
        state.excluded = excluded


def dispatches(cls):
    """Whether tensors of a class have the key Python."""
    f = getattr(cls, "__torch_dispatch__", None)
    return f is not None and getattr(f, "__func__", f) is not _disabled


cdef int collect_types(object x, list types) except -1:
    """Append the classes with __torch_dispatch__ of tensors in the arguments, subclasses before their bases."""
    cdef Py_ssize_t i
    if isinstance(x, TensorBase):
        if (<TensorBase>x).keys & K_PYTHON and type(x) not in types:
            for i, t in enumerate(types):
                if issubclass(type(x), t):
                    types.insert(i, type(x))
                    return 0
            types.append(type(x))
    elif isinstance(x, (list, tuple)):
        for y in x:
            collect_types(y, types)
    return 0


cdef object ask(object func, list types, tuple args, dict kwargs):
    """The answer of the innermost mode, or else of the arguments' classes, with what stands above the key excluded."""
    cdef trt_thread_state* state = tls()
    cdef uint64_t included = state.included, excluded = state.excluded
    cdef tuple handed = tuple(types)
    cdef list modes
    cdef object result = NotImplemented, active = None
    state.excluded = excluded | ABOVE_PYTHON
    hold_versions(1)
    try:
        if included & K_PYTHON and state.dispatch_modes != NULL and PyList_GET_SIZE(<object>state.dispatch_modes):
            modes = <list>state.dispatch_modes
            active = modes.pop()
            if not modes:
                state.included = included & ~<uint64_t>K_DISPATCHED
            try:
                result = active.__torch_dispatch__(func, handed, args, kwargs)
            finally:
                modes.append(active)
        if result is NotImplemented:
            for cls in types:
                result = cls.__torch_dispatch__(func, handed, args, kwargs)
                if result is not NotImplemented:
                    break
    finally:
        state.included = included
        state.excluded = excluded
        hold_versions(-1)
    if result is NotImplemented:
        raise TypeError(
            f"Multiple dispatch failed for '{func}'; all __torch_dispatch__ handlers returned NotImplemented:\n\n"
            f"  - tensor subclasses {types}\n" + (f"  - mode object {active!r}\n" if active is not None else "") + "\nFor more information, try re-running with TORCH_LOGS=not_implemented")
    return result


cdef object run_in_python(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel under the key."""
    if op.mask & K_DECOMPOSE:
        return run_decomposed(op, v, out, mode)        # called in __torch_dispatch__, where the key above Autograd is excluded
    cdef tuple arguments = box_arguments(op, v, True)
    cdef Operator func = operator_object(op.name.decode(), FRESH if mode == NO_OUT else mode)
    cdef list types = []
    cdef object target = <object>out if out != NULL else None, result
    args, kwargs = func.split(arguments)
    if mode == INPLACE and not args:
        args = arguments[:1]
    if mode == OUT:
        kwargs["out"] = target
    collect_types(arguments, types)
    collect_types(target, types)
    result = ask(func, types, args, kwargs)
    if mode == INPLACE:
        if result is not None and not isinstance(result, TensorBase) and op.row.returned == c't':
            raise RuntimeError(f"{op.name.decode()}: a kernel must return a Tensor, not {type(result).__name__}")
        return target
    if mode == OUT or op.row.view:
        return result
    if isinstance(result, (tuple, list)):
        parts = tuple([apart(x, arguments) for x in result])
        return type(result)(parts) if type(result) in result_classes else parts
    return apart(result, arguments)


cdef object apart(object result, tuple arguments):
    """A result that is an argument as another tensor, because what stands above gives it a history."""
    if isinstance(result, TensorBase) and not (<TensorBase>result).keys & K_PYTHON:
        for x in arguments:
            if x is result:
                return alias_of(<TensorBase>result)
    return result


register_boxed(KEY_PYTHON, run_in_python)


# ---- rows that modes see taken apart -------------------------------------------------------------------------------

# A fused row names by `decompose` what it is made of. Its key is above Autograd and is on where the key Python is, so that each piece is recorded with
# a Node of its own, and a mode sees the operators that PyTorch shows it, forward and backward.
cdef dict _decompositions = {}     # {operator's id: a function, or "module.function" of tensorrt_lite._decompositions until it is first called}


def set_decomposition(int operator_id, function):
    """Let a row be taken apart by a function of the schema's arguments."""
    cdef trt_operator* op = &OPS[operator_id]
    op.kernels[<int>KEY_DECOMPOSE] = op.kernels[<int>KEY_PYTHON] if op.row.pack == NULL else op.row.pack
    op.mask |= K_DECOMPOSE
    _decompositions[operator_id] = function


def decomposition(str name not None):
    """The function that a row is taken apart by, None where it is not."""
    cdef trt_operator* op = operator_named(name)
    return None if op == NULL or not op.mask & K_DECOMPOSE else decomposition_of(op)


cdef object decomposition_of(trt_operator* op):
    cdef int place = <int>(op - OPS)
    function = _decompositions[place]
    if isinstance(function, str):
        module, _, name = function.rpartition(".")
        function = getattr(import_module("tensorrt_lite._decompositions." + module), name)
        _decompositions[place] = function
    return function


cdef object run_decomposed(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel under the key Decompose."""
    cdef tuple arguments = box_arguments(op, v, False)
    result = decomposition_of(op)(*arguments)
    if mode == OUT or mode == INPLACE:
        target = <object>out
        if mode == OUT and result.shape != target.shape:
            target.resize_(result.shape)
        return target.copy_(result)
    return result


register_boxed(KEY_DECOMPOSE, run_decomposed)


def is_active(arguments):
    """Whether a call with these arguments goes to Python: a mode is active, or one of them is of a class with __torch_dispatch__."""
    cdef list types = []
    if tls().excluded & K_PYTHON:
        return False
    if tls().included & K_PYTHON:
        return True
    collect_types(arguments, types)
    return bool(types)


def dispatch_object(func, tuple args, dict kwargs):
    """The call of an operator that is no row, under the key Python."""
    cdef list types = []
    collect_types(args, types)
    collect_types(list(kwargs.values()), types)
    return ask(func, types, args, kwargs)


def records():
    """Whether operators record gradients in this thread: not below Autograd."""
    return bool(tls().grad_mode) and not tls().excluded & K_AUTOGRAD


# ---- factories -----------------------------------------------------------------------------------------------------

class Factory:
    """A function that makes tensors out of none, or like its first argument, as modes receive it: `ops.aten.zeros.default`."""

    namespace = "aten"
    overload = _overloadname = "default"
    mode = FRESH
    is_view = False

    def __init__(self, function):
        self.function = function
        self._name = self._opname = function.__name__
        self.__name__ = f"{self._name}.default"

    @property
    def overloadpacket(self):
        """``ops.aten.zeros``"""
        return _packet_of(self)

    @property
    def _schema(self):
        return _schema_of(self)

    @property
    def schema(self):
        """The schema, in PyTorch's notation."""
        return str(_schema_of(self))

    def name(self):
        """``aten::zeros``"""
        return f"aten::{self._name}"

    def __repr__(self):
        return f"<OpOverload(op='aten.{self._name}', overload='default')>"

    def __str__(self):
        return f"aten.{self._name}.default"

    def __call__(self, *args, **kwargs):
        cdef uint64_t keys = tls().included
        if args and isinstance(args[0], TensorBase):
            keys |= (<TensorBase>args[0]).keys
        if keys & ~tls().excluded & K_PYTHON:
            return dispatch_factory(self.function, args, kwargs)
        return self.function.impl(*args, **kwargs)


cdef dict _factories = {}


def factory_object(function):
    """The object that stands for a public factory; one in a process."""
    found = _factories.get(function.__name__)
    return _factories.setdefault(function.__name__, Factory(function)) if found is None else found


# Factories whose sizes may stand one by one: operators have them as one list.
cdef frozenset SIZED = frozenset(("empty", "ones", "zeros", "rand", "randn"))


cdef object _make_transformed = None


def _set_make_transformed(f):
    """f(function, args, kwargs): a factory's call inside a functional transform, NotImplemented outside of one."""
    global _make_transformed
    _make_transformed = f


def dispatch_factory(function, tuple args, dict kwargs):
    """A factory's call under the key Python, or inside a functional transform."""
    cdef list types = []
    if _make_transformed is not None:
        result = _make_transformed(function, args, kwargs)
        if result is not NotImplemented:
            return result
    if args and isinstance(args[0], TensorBase) and function.__name__ in ("tensor", "as_tensor", "asarray"):
        return function.impl(*args, **kwargs)          # a copy or a conversion, which is made of operators
    if function.__name__ in SIZED and (args and isinstance(args[0], int) or not args and "size" in kwargs):
        args = (list(args or kwargs.pop("size")),)
    collect_types(args, types)
    requires_grad = kwargs.pop("requires_grad", False)
    result = ask(factory_object(function), types, args, kwargs)
    if not isinstance(result, TensorBase):
        raise RuntimeError(f"{function.__name__}: a kernel must return a Tensor, not {type(result).__name__}")
    if requires_grad:
        result.requires_grad = True
    return result


# ---- modes ---------------------------------------------------------------------------------------------------------

cdef list modes_of_thread():
    return list_of_thread(&tls().dispatch_modes)


cdef int note_modes(list modes) except -1:
    if modes:
        tls().included |= K_DISPATCHED
    else:
        tls().included &= ~<uint64_t>K_DISPATCHED
    return 0


def push_mode(mode):
    """Make a TorchDispatchMode this thread's innermost one."""
    cdef list modes = modes_of_thread()
    modes.append(mode)
    note_modes(modes)


def pop_mode():
    """Take the innermost mode off the stack and return it."""
    cdef list modes = modes_of_thread()
    mode = modes.pop()
    note_modes(modes)
    return mode


def mode_stack():
    """The active modes of this thread, outermost first."""
    return tuple(modes_of_thread())


def set_modes(modes):
    """Make these the modes of this thread, which goes on for another one."""
    cdef list own = modes_of_thread()
    own[:] = modes
    note_modes(own)


def innermost_transform():
    """The innermost level of a functional transform in this thread, None outside of one."""
    if not tls().included & K_TRANSFORM:
        return None
    from tensorrt_lite._C.core.transform import innermost
    return innermost()


def is_transformed(list tensors not None):
    """Whether a tensor stands for another one inside a functional transform."""
    for t in tensors:
        if (<TensorBase?>t).keys & K_WRAPPED:
            return True
    return False


def has_key(TensorBase t not None):
    """Whether the tensor's operators go to its class's __torch_dispatch__."""
    return t.keys & K_PYTHON != 0
