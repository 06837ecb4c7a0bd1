"""The Python key: operators as objects, `__torch_dispatch__` of tensor subclasses, and the stack of TorchDispatchModes.

A tensor of a class with `__torch_dispatch__` has the key Python; while modes are active it is among the thread's included keys. Its kernel
stands below Autograd and calls Python with the operator as an object, whose call dispatches again: to the next mode, to a subclass, or to the
backend. What is above the key stays excluded meanwhile, so that nothing is recorded twice, and versions are counted once.
"""
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport strcmp
from tensorrt_lite._C.core.tensor cimport TensorBase, K_PYTHON, K_DECOMPOSE, K_DISPATCHED, K_AUTOGRAD, K_TRANSFORM, K_SPARSE, K_WRAPPED, KEY_PYTHON, KEY_DECOMPOSE, NUM_KEYS, adopt_view, hold_versions, alias_of, same_sizes, shape_text
from tensorrt_lite._C.core.dtype cimport dtype_of
from tensorrt_lite._C.core.dispatch cimport attach, tls, trt_operator, trt_thread_state, trt_value, operator_named, OPS, FRESH, OUT, INPLACE, NO_OUT
from tensorrt_lite._C.core.row_schema cimport Schema, schema_of, REQUIRED
from tensorrt_lite._C.core.boxing cimport box_arguments, call_boxed, register_boxed
from importlib import import_module
from tensorrt_lite._C.core.return_types import classes as result_classes

attach()

cdef uint64_t ABOVE_PYTHON = ((<uint64_t>1 << NUM_KEYS) - 1) & ~((<uint64_t>K_PYTHON << 1) - 1) & ~<uint64_t>K_SPARSE      # sparse tensors are sparse to Python's code, too


# ---- operators as objects ------------------------------------------------------------------------------------------

cdef enum:
    TAKE_SAME = 0                  # the other side's argument as it is
    TAKE_CONSTANT                  # a constant
    TAKE_ONE                       # of a list the element, of an element the list
    TAKE_NONE_OF_EMPTY             # None in the place of an empty list
    TAKE_EMPTY_OF_NONE             # and the other way round
    TAKE_ITEM                      # an element of a list, None where there is no list
    TAKE_GATHER                    # a list of several arguments, None where all are None
    TAKE_SIZES                     # a tensor's sizes from a dimension on
    TAKE_CALL                      # what a function makes of it
    NEED_EQUAL = 0                 # the row's argument is a constant
    NEED_NUMBER                    # a Python number
    NEED_TENSOR                    # no Python number
    NEED_ONE                       # a list of one element
    NEED_ONE_OR_NONE
    NEED_ANY                       # not None
    NEED_LENGTH                    # a list of this length
    NEED_DIMENSIONS                # a tensor of so many dimensions


# For _declared/overloads.py, which makes the plans.
TAKES = (TAKE_SAME, TAKE_CONSTANT, TAKE_ONE, TAKE_NONE_OF_EMPTY, TAKE_EMPTY_OF_NONE, TAKE_ITEM, TAKE_GATHER, TAKE_SIZES, TAKE_CALL)
NEEDS = (NEED_EQUAL, NEED_NUMBER, NEED_TENSOR, NEED_ONE, NEED_ONE_OR_NONE, NEED_ANY, NEED_LENGTH, NEED_DIMENSIONS)
FORMS = (FRESH, OUT, INPLACE)


cdef class Way:
    """How an overload is a call of a row. Without `take` and `give` the arguments of both are the same.

    take: by argument of the row, give: by argument of the overload (where from, TAKE_..., constant). needs: what the row's arguments must be for
    the overload to stand for them, (argument, NEED_..., constant); fixed: what the overload's must be for the row to compute it.
    """
    cdef trt_operator* op
    cdef readonly Operator func
    cdef readonly tuple take, give, needs, fixed

    @property
    def row_name(self):
        """The row's name."""
        return self.op.name.decode()

    cdef bint fits(self, tuple given) except -1:
        cdef Py_ssize_t i
        cdef int kind
        for i, kind, constant in self.needs:
            x = given[i]
            if kind == NEED_NUMBER:
                if x is None or isinstance(x, TensorBase):
                    return False
            elif kind == NEED_TENSOR:
                if x is not None and not isinstance(x, TensorBase):
                    return False
            elif kind == NEED_EQUAL:
                if not is_equal(x, constant):
                    return False
            elif kind == NEED_ANY:
                if x is None:
                    return False
            elif kind == NEED_LENGTH:
                if len(x) != constant:
                    return False
            elif kind == NEED_DIMENSIONS:
                if (<TensorBase?>x).ndim != constant:
                    return False
            elif x is None:
                if kind == NEED_ONE:
                    return False
            elif isinstance(x, (list, tuple)) and len(x) != 1:
                return False
        return True

    cdef bint computes(self, tuple given) except -1:
        cdef Py_ssize_t i
        for i, constant in self.fixed:
            if not is_equal(given[i], constant):
                return False
        return True


cdef bint is_equal(object x, object constant) except -1:
    if x is constant:
        return True
    if isinstance(x, (list, tuple)) and isinstance(constant, (list, tuple)):
        return list(x) == list(constant)
    if isinstance(constant, str):
        return isinstance(x, str) and x == constant
    if isinstance(constant, bool) or isinstance(x, bool):
        return type(x) is type(constant) and x == constant
    return isinstance(x, (int, float, complex)) and isinstance(constant, (int, float, complex)) and x == constant


cdef tuple rearranged(tuple plan, tuple given):
    """The arguments on one side of a way, from those on the other."""
    cdef Py_ssize_t i
    cdef int kind
    cdef list made = []
    for i, kind, constant in plan:
        if kind == TAKE_CONSTANT:
            made.append(constant)
        elif kind == TAKE_GATHER:
            x = [given[j] for j in constant]
            made.append(None if x.count(None) == len(x) else x)
        else:
            x = given[i]
            if kind == TAKE_ITEM:
                x = None if x is None else x[constant]
            elif kind == TAKE_SIZES:
                x = list(x.shape[constant:])
            elif kind == TAKE_CALL:
                x = constant(x)
            elif kind == TAKE_NONE_OF_EMPTY:
                x = None if x is None or not len(x) else x
            elif kind == TAKE_EMPTY_OF_NONE:
                x = [] if x is None else x
            elif kind == TAKE_ONE and x is not None:
                x = x[0] if isinstance(x, (list, tuple)) else [x]
            made.append(x)
    return tuple(made)


cdef class Operator:
    """An overload of an operator: ``ops.aten.add.Tensor``, ``ops.aten.add_.Tensor``, ``ops.aten.add.out``.

    A call takes the schema's arguments and dispatches. Modes and ``__torch_dispatch__`` receive these objects; there is one per overload in a process.
    """
    cdef trt_operator* op
    cdef readonly int mode
    cdef readonly str namespace, row_name, _name, overload, schema
    cdef readonly tuple argument_names, argument_types, out_names
    cdef readonly list ways
    cdef tuple defaults
    cdef int positional
    cdef bint alone                # the only overload of its one row, with the same arguments
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
    def _schema(self):
        """The schema with attributes: name, arguments, returns."""
        return _schema_of(self)

    def redispatch(self, keyset, *args, **kwargs):
        """The call with the keys of a `DispatchKeySet` alone: what a kernel goes on with below its own key."""
        cdef trt_thread_state* state = tls()
        cdef uint64_t excluded = state.excluded
        state.excluded = excluded | <uint64_t>keyset.left_out
        try:
            return self(*args, **kwargs)
        finally:
            state.excluded = excluded

    @property
    def tags(self):
        """PyTorch's tags of the overload, a list of `Tag`."""
        return _tags_of(self)

    @property
    def overloadpacket(self):
        """All forms of the name: ``ops.aten.add``."""
        return _packet_of(self)

    @property
    def _overloadpacket(self):
        return _packet_of(self)

    @property
    def _opname(self):
        return self._name

    @property
    def _overloadname(self):
        return self.overload

    @property
    def _qualified_op_name(self):
        return f"{self.namespace}::{self._name}.{self.overload}"

    def name(self):
        """``aten::add.Tensor``; without a point for the default overload."""
        return f"{self.namespace}::{self._name}" + ("" if self.overload == "default" else "." + self.overload)

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._name}', overload='{self.overload}')>"

    def __str__(self):
        return f"{self.namespace}.{self._name}.{self.overload}"

    def __reduce__(self):
        return overload_object, (self._name if self.namespace == "aten" else f"{self.namespace}_{self._name}", self.overload)

    def __deepcopy__(self, memo):
        return self

    def __call__(self, *args, **kwargs):
        cdef tuple given
        cdef object out = None, result
        cdef int mode = NO_OUT
        cdef Way way
        cdef list calls
        if self.mode == OUT:
            out = self.given_results(kwargs)
        given = self.bind(args, kwargs)
        self.check_types(given)
        if self.mode == INPLACE:
            out = given[0]
        if self.alone:
            way = <Way>self.ways[0]
        else:
            way = self.way_for(given)
            if way.take is not None:
                given = rearranged(way.take, given)
        if way.op.row.written:
            mode = self.mode
        if mode == INPLACE or mode == OUT:
            check_target(self, given, out)
        if self.alone:
            result = call_boxed(way.op, given, out, mode)
        else:
            calls = called_overloads()
            calls.append(way)                  # so that a mode gets this overload and no other one that the row's arguments fit
            try:
                result = call_boxed(way.op, given, out, mode)
            finally:
                calls.pop()
        return out if mode == INPLACE else result

    def row_call(self, tuple args, dict kwargs):
        """(the row, its arguments) that a call of this overload comes to."""
        cdef tuple given
        cdef Way way
        kwargs = dict(kwargs)
        if self.mode == OUT:
            self.given_results(kwargs)
        given = self.bind(args, kwargs)
        way = self.way_for(given)
        return way.op.name.decode(), given if way.take is None else rearranged(way.take, given)

    cdef Way way_for(self, tuple given):
        cdef Way way
        for way in self.ways:
            if way.computes(given) and (len(self.ways) == 1 or way.fits(given if way.take is None else rearranged(way.take, given))):
                return way
        for way in self.ways:
            if way.computes(given):
                return way                     # which refuses the arguments
        way = <Way>self.ways[0]
        said = [f"{self.argument_names[i]}={given[i]!r}" for i, constant in way.fixed if not is_equal(given[i], constant)]
        raise NotImplementedError(f"{self}: {', '.join(said)} is not implemented")

    cdef object given_results(self, dict kwargs):
        """The results to write to: by the schema's names, or all as `out`."""
        out = kwargs.pop("out", None)
        if out is None and len(self.out_names) > 1:
            out = tuple([kwargs.pop(name, None) for name in self.out_names])
            if None in [None if x is None else 0 for x in out]:
                out = None
        if out is None:
            raise TypeError(f"{self}: missing the argument '{self.out_names[0]}'")
        return out

    cdef int check_types(self, tuple given) except -1:
        """What kernels rely on: tensors where the schema has tensors, numbers where it has numbers."""
        cdef Py_ssize_t i
        cdef str kind
        for i in range(len(given)):
            kind = self.argument_types[i]
            x = given[i]
            if x is None:
                if not kind.endswith("?") and self.defaults[i] is not None and not kind.partition("|")[0].endswith("?"):
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


def split_arguments_of_row(Operator func, tuple arguments):
    """A call of a row as (args, kwargs) of the overload."""
    cdef Way way
    for way in func.ways:
        if way.func is func and way.op == func.op:
            return func.split(arguments if way.give is None else rearranged(way.give, arguments))


cdef object _packet_of = None, _schema_of = None, _forms_of = None


def set_packet_functions(packet_of, schema_of, forms_of, tags_of):
    """packet_of(operator), schema_of(operator) and tags_of(operator) answer for operator objects; forms_of(row, mode), or of a name and an overload, has their schemas
    and ways."""
    global _packet_of, _schema_of, _forms_of, _tags_of
    _packet_of, _schema_of, _forms_of, _tags_of = packet_of, schema_of, forms_of, tags_of


cdef object _tags_of = None


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


# The ways of calls of overload objects in this thread that have not come to a mode yet.
cdef list called_overloads():
    return list_of_thread(&tls().called_overloads)


cdef list list_of_thread(PyObject** place):
    """The list in a field of the thread's state, made when it is first asked for; it stays for as long as the process."""
    if place[0] == NULL:
        fresh = []
        Py_INCREF(fresh)
        place[0] = <PyObject*>fresh
    return <list>place[0]


cdef dict _objects = {}            # (name with the namespace of trtl in front, overload): Operator
cdef dict _ways = {}               # 4 * a row's place in the table + write mode: its ways


cdef bint is_default(object value, object default) except -1:
    if value is default:
        return True
    if default is REQUIRED:
        return False
    if type(value) is list:
        if isinstance(default, tuple):
            return value == list(default)
        return isinstance(default, int) and len(value) > 1 and value == [default] * len(value)      # `int[2] stride=1`
    return type(value) is type(default) and isinstance(value, (bool, int, float, str)) and value == default


def operator_object(str name, int mode=FRESH):
    """An overload of a row in one of its forms (0: returns fresh results, 1: writes to out, 2: in place): the one with the most of the row's arguments.
    None where no row has the name."""
    cdef trt_operator* op = operator_named(name)
    if op == NULL or op.row == NULL or mode != FRESH and not op.row.written:
        return None
    cdef list ways = ways_of(op, mode)
    return (<Way>ways[-1] if ways else own_way(op, mode)).func


def functional_form(Operator func):
    """The overload with fresh results that takes the same arguments, None where there is none."""
    cdef Way way, found = None
    for way in ways_of(func.op, FRESH):
        if way.func.argument_names == func.argument_names:
            return way.func
        found = way
    return None if found is None else found.func


def row_schema(str name):
    """The schema of a row's kernel, None where no row has the name."""
    cdef trt_operator* op = operator_named(name)
    return None if op == NULL or op.row == NULL else op.row.schema.decode()


def row_arguments(str name):
    """The names of a row's arguments."""
    return schema_of(operator_named(name).row.schema).names


def row_types(str name):
    """The types of a row's arguments, as its schema writes them."""
    return schema_of(operator_named(name).row.schema).types


cdef list ways_of(trt_operator* op, int mode):
    """The overloads that stand for calls of a row, those with the fewest arguments first."""
    cdef Py_ssize_t key = 4 * (op - OPS) + mode
    cdef list found = _ways.get(key)
    cdef Way way
    if found is not None:
        return found
    found = []
    for name, overload in _forms_of(op.name.decode(), mode, op.row.schema.decode()):
        for way in overload_object(name, overload).ways:
            if way.op == op:
                found.append(way)
    return _ways.setdefault(key, found)


def overload_object(str name, str overload):
    """The overload of this name; None where no row has it."""
    cdef Operator o = _objects.get((name, overload))
    cdef Schema schema
    cdef Way way
    cdef trt_operator* op
    if o is not None:
        return o
    o = Operator.__new__(Operator)
    o.ways = []
    for row, mode, text, outs, take, give, needs, fixed in _forms_of(name, overload, None):
        op = operator_named(row)
        if op == NULL or op.row == NULL or mode != FRESH and not op.row.written:
            continue
        if not o.ways:
            schema = schema_of(text.encode())
            o.op, o.mode, o.row_name, o.schema, o.out_names = op, mode, row, text, outs
            o.namespace = "trtl" if name.startswith("trtl_") else "aten"
            o._name, o.overload = name.removeprefix("trtl_"), overload
            n = len(schema.names) - len(outs)
            o.argument_names, o.defaults, o.positional = schema.names[:n], schema.defaults[:n], min(schema.positional, n)
            o.argument_types = tuple([kind_of(kind) for kind in schema.types[:n]])
        way = Way.__new__(Way)
        way.op, way.func, way.take, way.give, way.needs, way.fixed = op, o, take, give, needs, fixed
        o.ways.append(way)
    if not o.ways:
        return None
    way = <Way>o.ways[0]
    o.alone = len(o.ways) == 1 and way.take is None and not way.needs and (
        name.startswith("trtl_") or len(_forms_of(way.op.name.decode(), o.mode, way.op.row.schema.decode())) == 1)
    return _objects.setdefault((name, overload), o)


cdef Way own_way(trt_operator* op, int mode):
    """A row under its own name, for calls that no overload of PyTorch's stands for: `trtl.prod.default` of several dimensions."""
    cdef str row = op.name.decode()
    cdef Operator o = overload_object("trtl_" + row, ("default", "out", "inplace")[mode])
    return <Way>o.ways[0]


cpdef str kind_of(str kind):
    """`Tensor[]` of `Tensor(a!)[]`, `int[]?` of `SymInt[2]?`: without marks and sizes."""
    cdef int depth = 0
    cdef str made = ""
    for c in kind.replace("SymInt", "int"):
        depth += c == "("
        if not depth and not c.isdigit():
            made += c
        depth -= c == ")"
    return made


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
    cdef object result
    if op.mask & K_DECOMPOSE:
        result = pieces_of(op, v, out, mode)           # called in __torch_dispatch__, where the key above Autograd is excluded
        if result is not NotImplemented:
            return result
    cdef tuple arguments = box_arguments(op, v, True), given = arguments
    cdef Way way = way_taken(op, FRESH if mode == NO_OUT else mode, arguments)
    cdef Operator func = way.func
    cdef list types = []
    cdef object target = <object>out if out != NULL else None
    if way.give is not None:
        given = rearranged(way.give, arguments)
    args, kwargs = func.split(given)
    if mode == INPLACE and not args:
        args = given[:1]
    if mode == OUT:
        if len(func.out_names) > 1 and isinstance(target, (tuple, list)):
            kwargs.update(zip(func.out_names, target))
        else:
            kwargs["out"] = target
    collect_types(arguments, types)
    collect_types(target, types)
    result = ask(func, types, args, kwargs)
    if mode == INPLACE:
        if result is not None and not isinstance(result, TensorBase) and op.row.returned == c't':
            raise RuntimeError(f"{op.name.decode()}: a kernel must return a Tensor, not {type(result).__name__}")
        return target
    if mode == OUT:
        return result
    if op.row.view:
        note_views(op, arguments[0], result)
        return result
    if isinstance(result, (tuple, list)):
        parts = tuple([apart(x, arguments) for x in result])
        return type(result)(parts) if type(result) in result_classes else parts
    return apart(result, arguments)


cdef Way way_taken(trt_operator* op, int mode, tuple arguments):
    """The overload that stands for a call of a row: the one that was called, or the first that fits."""
    cdef list ways, calls
    cdef Way way
    if tls().called_overloads != NULL:
        calls = called_overloads()
        if calls and calls[-1] is not None and (<Way>calls[-1]).op == op and (<Way>calls[-1]).func.mode == mode:
            way = <Way>calls[-1]
            calls[-1] = None
            if way.fits(arguments) or not way.needs:
                return way
    ways = ways_of(op, mode)
    for way in ways:
        if way.fits(arguments):
            return way
    return own_way(op, mode)


cdef int note_views(trt_operator* op, object source, object result) except -1:
    """Results of a view that a class made as new tensors become views of its argument, as far as autograd and the counts of writes go."""
    cdef bint differentiable
    if isinstance(source, TensorBase):
        differentiable = not tls().excluded & K_AUTOGRAD and strcmp(op.name, b"detach") != 0
        for x in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(x, TensorBase) and (<TensorBase>x).keys & K_PYTHON:
                adopt_view(<TensorBase>x, <TensorBase>source, differentiable)
    return 0


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
cdef dict _decompositions = {}     # {operator's id: a function, or "module.function" of tensorrt_lite._decompositions}


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


cdef dict _pieces = {}             # {"module.function": the function}


def composition(str name not None):
    """A function of tensorrt_lite._decompositions by its name, for compositions in Cython."""
    found = _pieces.get(name)
    if found is None:
        module, _, function = name.rpartition(".")
        found = _pieces[name] = getattr(import_module("tensorrt_lite._decompositions." + module), function)
    return found


cdef object decomposition_of(trt_operator* op):
    cdef int place = <int>(op - OPS)
    function = _decompositions[place]
    return composition(function) if isinstance(function, str) else function


cdef object pieces_of(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """What the row's decomposition returns, NotImplemented where it leaves the call to the row."""
    cdef tuple arguments = box_arguments(op, v, False)
    result = decomposition_of(op)(*arguments)
    if result is NotImplemented:
        return result
    if mode == OUT or mode == INPLACE:
        target = <object>out
        if mode == OUT and result.shape != target.shape:
            target.resize_(result.shape)
        return target.copy_(result)
    return result


cdef object run_decomposed(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel under the key Decompose."""
    cdef uint64_t excluded = tls().excluded
    result = pieces_of(op, v, out, mode)
    if result is not NotImplemented:
        return result
    tls().excluded = excluded | K_DECOMPOSE
    try:
        return op.row.unpack(op, v, <void*>out, mode)
    finally:
        tls().excluded = excluded


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


# ---- reads of memory ------------------------------------------------------------------------------------------------

def materialize(TensorBase t not None, str reader not None):
    """The tensor whose memory `reader` ("item", "numpy", "data_ptr" and their kin) reads in the place of one that represents it.

    A wrapper of a functional transform has that of its value, which is an error where it is a batch. A class with `__torch_dispatch__` may define
    `__materialize__(self, reader)`: it returns a tensor of the same shape and dtype, with memory, as one that defers its operators does by running them.
    """
    cdef TensorBase made
    while t.keys & (K_WRAPPED | K_PYTHON):
        if t.keys & K_WRAPPED:
            from tensorrt_lite._C.core.transform import readable_value
            t = <TensorBase?>readable_value(t, reader)
            continue
        hook = getattr(type(t), "__materialize__", None)
        if hook is None:
            break
        result = hook(t, reader)
        if result is t or not isinstance(result, TensorBase):
            raise RuntimeError(f"{type(t).__name__}.__materialize__() must return another Tensor, not {'itself' if result is t else type(result).__name__}")
        made = <TensorBase>result
        if made.dtype != t.dtype or not same_sizes(made, t):
            raise RuntimeError(
                f"{type(t).__name__}.__materialize__() must return a Tensor of shape {shape_text(t)} and dtype {dtype_of(t.dtype).name}, not of shape {shape_text(made)} "
                f"and dtype {dtype_of(made.dtype).name}")
        t = made
    return t


# ---- factories -----------------------------------------------------------------------------------------------------

class Factory:
    """A function that makes tensors out of none, or like its first argument, as modes receive it: `ops.aten.zeros.default`."""

    namespace = "aten"
    overload = _overloadname = "default"
    mode = FRESH
    is_view = False
    _sizes_at = NotImplemented

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
    def tags(self):
        """PyTorch's tags of the operator, a list of `Tag`."""
        return _tags_of(self)

    @property
    def sizes_at(self):
        """The position of the argument `size`, None without one."""
        if self._sizes_at is NotImplemented:
            found = [i for i, a in enumerate(_schema_of(self).arguments) if a.name == "size" and a.type.is_list]
            self._sizes_at = found[0] if found else None
        return self._sizes_at

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


cdef tuple with_listed_sizes(object factory, tuple args, dict kwargs):
    """Positional arguments with the sizes as one list, as operators have them: `zeros(2, 3)` and `zeros(size=(2, 3))` become `zeros([2, 3])`."""
    at = factory.sizes_at
    if at is None or len(args) < at:
        return args
    if len(args) == at:
        if "size" not in kwargs or not isinstance(kwargs["size"], (list, tuple)):
            return args
        sizes = kwargs.pop("size")
    else:
        sizes = args[at] if isinstance(args[at], (list, tuple)) else args[at:]
        if len(args) > at + 1 and any([isinstance(n, (list, tuple)) for n in args[at:]]):
            return args                      # of another overload: randint(low, high, size)
    return args[:at] + ([int(n) if isinstance(n, TensorBase) else n for n in sizes],)


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
    factory = factory_object(function)
    args = with_listed_sizes(factory, args, kwargs)
    collect_types(args, types)
    requires_grad = kwargs.pop("requires_grad", False)
    result = ask(factory, types, args, kwargs)
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
