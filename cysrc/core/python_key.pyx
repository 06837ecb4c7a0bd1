"""The Python key: operators as objects, `__torch_dispatch__` of tensor subclasses, and the stack of TorchDispatchModes.

A tensor of a class with `__torch_dispatch__` has the key Python; while modes are active it is among the thread's included keys. Its kernel
stands below Autograd and calls Python with the operator as an object, whose call dispatches again: to the next mode, to a subclass, or to the
backend. What is above the key stays excluded meanwhile, so that nothing is recorded twice, and versions are counted once.
"""
import ast
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.tensor cimport TensorBase, K_PYTHON, K_AUTOGRAD, KEY_PYTHON, NUM_KEYS, hold_versions, alias_of
from tensorrt_lite._C.core.dispatch cimport attach, tls, trt_operator, trt_thread_state, trt_value, operator_named, FRESH, OUT, INPLACE, NO_OUT
from tensorrt_lite._C.core.boxing cimport box_arguments, call_boxed, register_boxed

attach()

cdef uint64_t ABOVE_PYTHON = ((<uint64_t>1 << NUM_KEYS) - 1) & ~((<uint64_t>K_PYTHON << 1) - 1)


# ---- operators as objects ------------------------------------------------------------------------------------------

cdef list split_arguments(str text):
    """The parts between the commas of a schema that are in no brackets."""
    cdef list parts = []
    cdef int depth = 0
    cdef str current = ""
    for c in text:
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += c
    if current.strip():
        parts.append(current.strip())
    return parts


cdef object parse_default(str text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


cdef class Operator:
    """One form of an operator: ``ops.aten.add.Tensor``, ``ops.aten.add_.Tensor``, ``ops.aten.add.out``.

    A call takes the schema's arguments and dispatches. Modes and ``__torch_dispatch__`` receive these objects; there is one per form in a process.
    """
    cdef trt_operator* op
    cdef readonly int mode
    cdef readonly str _name, overload
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
    def namespace(self):
        return "aten"

    @property
    def is_view(self):
        """Whether the result shares the first argument's memory."""
        return bool(self.op.row.view)

    @property
    def schema(self):
        """The schema of the functional form, in PyTorch's notation."""
        return self.op.row.schema.decode()

    def name(self):
        """``aten::add.Tensor``; without a point for the default overload."""
        return f"aten::{self._name}" + ("" if self.overload == "default" else "." + self.overload)

    def __repr__(self):
        return f"<OpOverload(op='aten.{self._name}', overload='{self.overload}')>"

    def __str__(self):
        return f"aten.{self._name}.{self.overload}"

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
        if mode == INPLACE:
            out = given[0]
        return call_boxed(self.op, given, out, mode)

    def split_arguments(self, tuple arguments not None):
        """(positional arguments without trailing defaults, keyword arguments that are no defaults) of a call with all arguments."""
        return self.split(arguments)

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

    cdef tuple split(self, tuple arguments):
        """(positional arguments without trailing defaults, keyword arguments that are no defaults)."""
        cdef Py_ssize_t i, n = self.positional
        cdef dict kwargs = {}
        while n > 0 and is_default(arguments[n - 1], self.defaults[n - 1]):
            n -= 1
        for i in range(self.positional, len(arguments)):
            if not is_default(arguments[i], self.defaults[i]):
                kwargs[self.argument_names[i]] = arguments[i]
        return arguments[:n], kwargs


cdef object REQUIRED = object()
cdef dict _objects = {}            # (row's name, write mode): Operator


cdef bint is_default(object value, object default) except -1:
    if default is REQUIRED or type(value) is not type(default):
        return False
    return value is default or isinstance(value, (bool, int, float, str)) and value == default


def operator_object(str name, int mode=FRESH):
    """The operator of a row in one of its forms (0: returns fresh results, 1: writes to out, 2: in place), or None where no row has the name."""
    cdef Operator o = _objects.get((name, mode))
    cdef trt_operator* op
    if o is not None:
        return o
    op = operator_named(name)
    if op == NULL or op.row == NULL:
        return None
    o = Operator.__new__(Operator)
    o.op = op
    o.mode = mode
    schema = op.row.schema.decode()
    base = schema[:schema.index("(")].partition(".")[2] or "default"
    o._name = name + ("_" if mode == INPLACE and not name.endswith("_") else "")
    o.overload = ("out" if base in ("default", "Tensor") else base + "_out") if mode == OUT else base
    names, types, defaults, positional = [], [], [], -1
    for part in split_arguments(schema[schema.index("(") + 1:schema.rindex(") ->")]):
        if part == "*":
            positional = len(names)
            continue
        kind, _, rest = part.partition(" ")
        argument, equals, default = rest.partition("=")
        names.append(argument)
        types.append(kind)
        defaults.append(parse_default(default) if equals else REQUIRED)
    o.argument_names, o.argument_types, o.defaults = tuple(names), tuple(types), tuple(defaults)
    o.positional = len(names) if positional < 0 else positional
    return _objects.setdefault((name, mode), o)


# ---- the key's kernel ----------------------------------------------------------------------------------------------

cdef object _disabled = None


def _set_disabled_dispatch(f):
    """The function that stands for 'no __torch_dispatch__'."""
    global _disabled
    _disabled = f


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
    cdef object result = NotImplemented, active
    state.excluded = excluded | ABOVE_PYTHON
    hold_versions(1)
    try:
        if included & K_PYTHON and state.dispatch_modes != NULL and PyList_GET_SIZE(<object>state.dispatch_modes):
            modes = <list>state.dispatch_modes
            active = modes.pop()
            if not modes:
                state.included = included & ~<uint64_t>K_PYTHON
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
            f"  - tensor subclasses {types}\n\nFor more information, try re-running with TORCH_LOGS=not_implemented")
    return result


cdef object run_in_python(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel under the key."""
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
        return target
    if isinstance(result, TensorBase) and mode != OUT and not op.row.view and not (<TensorBase>result).keys & K_PYTHON:
        for x in arguments:
            if x is result:
                # what stands above gives it a history
                return alias_of(<TensorBase>result)
    return result


register_boxed(KEY_PYTHON, run_in_python)


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
    overload = "default"
    mode = FRESH
    is_view = False

    def __init__(self, function):
        self.function = function
        self._name = function.__name__
        self.__name__ = f"{self._name}.default"

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


def dispatch_factory(function, tuple args, dict kwargs):
    """A factory's call under the key Python."""
    cdef list types = []
    if args and isinstance(args[0], TensorBase) and function.__name__ in ("tensor", "as_tensor", "asarray"):
        return function.impl(*args, **kwargs)          # a copy or a conversion, which is made of operators
    collect_types(args, types)
    requires_grad = kwargs.pop("requires_grad", False)
    result = ask(factory_object(function), types, args, kwargs)
    if not isinstance(result, TensorBase):
        raise TypeError(f"{function.__name__}: a kernel must return a Tensor, not {type(result).__name__}")
    return result.requires_grad_() if requires_grad else result


# ---- modes ---------------------------------------------------------------------------------------------------------

cdef list modes_of_thread():
    cdef trt_thread_state* state = tls()
    if state.dispatch_modes == NULL:
        fresh = []
        Py_INCREF(fresh)           # one list for each thread that used a mode
        state.dispatch_modes = <PyObject*>fresh
    return <list>state.dispatch_modes


cdef int note_modes(list modes) except -1:
    if modes:
        tls().included |= K_PYTHON
    else:
        tls().included &= ~<uint64_t>K_PYTHON
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


def exclude_python(bint excluded):
    """Whether this thread's operators pass the key Python over; returns what was before."""
    cdef bint before = tls().excluded & K_PYTHON != 0
    if excluded:
        tls().excluded |= K_PYTHON
    else:
        tls().excluded &= ~<uint64_t>K_PYTHON
    return before


def has_key(TensorBase t not None):
    """Whether the tensor's operators go to its class's __torch_dispatch__."""
    return t.keys & K_PYTHON != 0
