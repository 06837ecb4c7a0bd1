"""Public functions, methods and properties as objects that ask `__torch_function__` before they run.

A `PublicFunction` stands in front of what does the work (a compiled function or one in Python) and is what the user sees:
`trt.add`, `Tensor.add` and `F.relu` are such objects. A call with plain arguments and no mode costs a look at each argument's
type; otherwise modes and the arguments' classes get the public object itself with what the caller wrote. The stack of modes
is the thread's own; `function_modes` in the thread state says whether there is one to ask.
"""
from sys import modules
from types import BuiltinFunctionType, FunctionType
from cpython.object cimport PyObject, PyTypeObject
from libc.stdint cimport int64_t
from tensorrt_lite._C.core.free_threading cimport keep_for_ever, lock_of, mutex, mutex_lock, mutex_unlock
from tensorrt_lite._C.core.tensor cimport TensorBase, tensor_type, parameter_type
from tensorrt_lite._C.core.dispatch cimport tls, attach
from tensorrt_lite._C.core.args cimport has_function
from tensorrt_lite._C.core.profiler cimport KIND_FUNCTION, begin_record, describe_call, end_record, is_recorded
from tensorrt_lite._C.core.profiler import _set_switch
from tensorrt_lite._C.core.python_key import dispatch_factory

from tensorrt_lite._C.core.hints import note_call

attach()

cdef extern from *:
    """
    #include "dispatch.h"
    #include "public.h"
    enum { INTERNAL = 2 };             /* of opaque: overrides are not asked */
    enum { TRT_K_PYTHON = 64 | 4096 }; /* K_PYTHON and K_TRANSFORM of tensor.pxd */
    static PyTypeObject *trt_plain_tensor, *trt_plain_parameter;
    static PyObject *trt_name_of_function, *trt_disabled_method, *trt_disabled_function;
    static PyObject* (*trt_ask)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
    static PyObject* trt_as_it_stands; /* its answer where the call is to run */
    static PyObject* (*trt_make_in_python)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
    static PyObject* (*trt_call_respelled)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
    static PyObject* (*trt_call_profiled)(PyObject*, PyObject* const*, size_t, PyObject*);
    static int trt_profiled;           /* a profiler runs, in whichever thread */
    static PyObject* trt_note_call; /* core/hints.pyx */

    /* After a call that failed: a keyword that the function does not have gets a note with the nearest one, a wrong number of arguments the signature. */
    static __attribute__((noinline)) PyObject* trt_explain(PyObject* f, PyObject* keywords) {
      PyObject *type, *value, *traceback, *done;
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) return NULL;
      PyErr_Fetch(&type, &value, &traceback);
      PyErr_NormalizeException(&type, &value, &traceback);
      done = PyObject_CallFunctionObjArgs(trt_note_call, f, value, keywords ? keywords : Py_None, NULL);
      if (!done) PyErr_Clear();
      Py_XDECREF(done);
      PyErr_Restore(type, value, traceback);
      return NULL;
    }
    static inline PyObject* trt_explained(PyObject* result, PyObject* f, PyObject* keywords) {
      return __builtin_expect(!result, 0) ? trt_explain(f, keywords) : result;
    }

    #define trt_is_basic(type) trt_is_basic_type(type, trt_plain_tensor, trt_plain_parameter)
    static PyTypeObject* trt_entry_type;
    static vectorcallfunc trt_call_entry_in_public;
    /* Whether the class has a __torch_function__ that is neither Tensor's for plain tensors nor the disabled one. */
    static int trt_class_overrides(PyTypeObject* t) {
      PyObject* f = _PyType_Lookup(t, trt_name_of_function);
      return f && f != trt_disabled_method && f != trt_disabled_function;
    }
    static __attribute__((noinline)) int trt_may_override(PyObject* x, int opaque) {
      if (!PyTuple_Check(x) && !PyList_Check(x)) return trt_class_overrides(Py_TYPE(x));
      if (opaque) return 0;
      for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); i++) {
        PyTypeObject* t = Py_TYPE(PySequence_Fast_GET_ITEM(x, i));
        if (!trt_is_basic(t) && trt_class_overrides(t)) return 1;
      }
      return 0;
    }
    /* Whether a factory's call goes to a functional transform, a TorchDispatchMode or to the __torch_dispatch__ of what it is to make something like. */
    static inline int trt_makes_in_python(PyObject* const* args, Py_ssize_t n) {
      uint64_t keys = trt_tls()->included;
      if (n && PyObject_TypeCheck(args[0], trt_core->tensor_base)) keys |= TRT_KEYS(args[0]);
      return (keys & ~trt_tls()->excluded & TRT_K_PYTHON) != 0;
    }
    static __attribute__((noinline)) PyObject* trt_call_public_general(PyObject* f, PyObject* const* args, size_t nargsf, PyObject* keywords) {
      trt_public* s = (trt_public*)f;
      Py_ssize_t n = PyVectorcall_NARGS(nargsf), all = n + (keywords ? PyTuple_GET_SIZE(keywords) : 0);
      int asks = s->opaque == INTERNAL ? 0 : trt_tls()->function_modes;
      for (Py_ssize_t i = 0; i < all && !asks && s->opaque != INTERNAL; i++)
        if (!trt_is_basic(Py_TYPE(args[i]))) asks = trt_may_override(args[i], s->opaque);
      if (__builtin_expect(asks, 0)) {
        PyObject* r = trt_ask(f, args, n, keywords);
        if (r != trt_as_it_stands) return r;
        Py_DECREF(r);
      }
      if (s->factory && trt_makes_in_python(args, n)) return trt_make_in_python(f, args, n, keywords);
      if (s->spellings && keywords)
        for (Py_ssize_t i = 0; i < all - n; i++)
          if (PyDict_GetItemWithError(s->spellings, PyTuple_GET_ITEM(keywords, i))) return trt_call_respelled(f, args, n, keywords);
      if (__builtin_expect(trt_profiled, 0) && Py_TYPE(s->impl) != trt_entry_type) return trt_call_profiled(f, args, nargsf, keywords);
      return trt_explained(s->run(s->impl, args, nargsf, keywords), f, keywords);
    }
    static inline PyObject* trt_run_public(PyObject* f, PyObject* const* args, size_t nargsf, PyObject* keywords) {
      return ((trt_public*)f)->run(((trt_public*)f)->impl, args, nargsf, keywords);
    }
    /* Calls with plain arguments; it needs no frame, as what it calls takes its place. */
    static PyObject* trt_call_public(PyObject* f, PyObject* const* args, size_t nargsf, PyObject* keywords) {
      trt_public* s = (trt_public*)f;
      Py_ssize_t n = PyVectorcall_NARGS(nargsf);
      int asks = trt_cached_modes() | trt_profiled;
      if (keywords) {
        n += PyTuple_GET_SIZE(keywords);
        asks |= s->spellings != NULL;
      }
      for (Py_ssize_t i = 0; i < n && !asks; i++) asks = !trt_is_basic_argument(args[i], trt_plain_tensor, trt_plain_parameter);
      return __builtin_expect(asks, 0) ? trt_call_public_general(f, args, nargsf, keywords) : trt_explained(s->run(s->impl, args, nargsf, keywords), f, keywords);
    }
    static PyObject* trt_call_without_vectorcall(PyObject* f, PyObject* const* args, size_t nargsf, PyObject* keywords) {
      return PyObject_Vectorcall(f, args, nargsf, keywords);
    }
    static void trt_set_public_call(PyObject* f, PyObject* impl) {
      trt_public* s = (trt_public*)f;
      s->vectorcall = s->factory ? trt_call_public_general : Py_TYPE(impl) == trt_entry_type && !s->opaque ? trt_call_entry_in_public : trt_call_public;
      s->run = PyVectorcall_Function(impl);
      if (!s->run) s->run = trt_call_without_vectorcall;
      s->impl = impl;                  /* the object holds it */
    }
    static void trt_prepare_public_type(PyTypeObject* t) {
      t->tp_vectorcall_offset = offsetof(trt_public, vectorcall);
      t->tp_call = PyVectorcall_Call;
      t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
      PyType_Modified(t);
    }
    static inline int trt_is_quick(PyObject* o) {
      return (Py_TYPE(o) == trt_plain_tensor || Py_TYPE(o) == trt_plain_parameter) && !trt_tls()->function_modes;
    }
    static inline PyObject* trt_call_one(PyObject* f, PyObject* x) { return PyObject_Vectorcall(f, &x, 1, NULL); }
    """
    ctypedef PyObject* (*vectorcallfunc)(PyObject*, PyObject**, size_t, PyObject*)
    PyTypeObject* trt_plain_tensor
    PyTypeObject* trt_plain_parameter
    PyObject* trt_name_of_function
    PyObject* trt_disabled_method
    PyObject* trt_disabled_function
    void* trt_ask
    PyObject* trt_as_it_stands
    PyObject* trt_note_call
    void* trt_call_respelled
    void* trt_make_in_python
    void* trt_call_profiled
    int trt_profiled
    object trt_run_public(object f, PyObject** args, size_t nargsf, PyObject* keywords)
    void trt_set_public_call(object f, object impl)
    void trt_prepare_public_type(PyTypeObject* t)
    PyTypeObject* trt_entry_type
    vectorcallfunc trt_call_entry_in_public
    void* trt_call_public_general
    bint trt_is_quick(object o) noexcept
    object trt_call_one(object f, object x)

cdef extern from "Python.h":
    bint PyMethod_Check(object)
    PyObject* PyMethod_GET_SELF(object)
    PyObject* PyThreadState_GetDict()
    object PyMethod_New(object, object)
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)
    Py_ssize_t PyTuple_Size(PyObject*) except -1

AS_CALLED = 0      # what the caller wrote
BY_NAME = 1        # required arguments by position, all others by name with their defaults: as PyTorch's functions in Python do

NOT_ASKED = 2      # `opaque` of functions that the package itself calls


cdef void set_entry_call(PyTypeObject* entry, void* call) noexcept:
    global trt_entry_type, trt_call_entry_in_public
    trt_entry_type = entry
    trt_call_entry_in_public = <vectorcallfunc>call


cdef void* general_call() noexcept:
    return <void*>trt_call_public_general


# ---- the thread's stack of modes -----------------------------------------------------------------------------------

cdef enum:
    ALL_DISABLED = 1 << 16          # in function_disabled: the units of DisableTorchFunction, above those of ...Subclass

cdef list mode_stack():
    cdef dict state = <dict>PyThreadState_GetDict()
    stack = state.get("tensorrt_lite.function_modes")
    if stack is None:
        stack = state["tensorrt_lite.function_modes"] = []
    return <list>stack


cdef void update_modes(list stack) noexcept:
    tls().function_modes = <int>len(stack) if tls().function_disabled < ALL_DISABLED else 0


def push_mode(mode):
    """Put a mode on top of this thread's stack."""
    stack = mode_stack()
    stack.append(mode)
    update_modes(stack)


def pop_mode():
    """Take the top mode off this thread's stack. IndexError when there is none."""
    stack = mode_stack()
    mode = stack.pop()
    update_modes(stack)
    return mode


def modes():
    """This thread's modes, the outermost first."""
    return list(mode_stack())


class DisableTorchFunctionSubclass:
    """Inside, the __torch_function__ of arguments is not asked; modes are."""

    _units = 1

    def __enter__(self):
        tls().function_disabled += <int>self._units
        update_modes(mode_stack())

    def __exit__(self, *exc):
        tls().function_disabled -= <int>self._units
        update_modes(mode_stack())


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """Inside, neither modes nor the __torch_function__ of arguments are asked."""

    _units = ALL_DISABLED


class FunctionState:
    """Whether the __torch_function__ of arguments is asked, as it was when this was made: inside, it is so again. A backward pass disables it."""

    def __init__(self):
        self._disabled = tls().function_disabled
        self._before = []

    def __enter__(self):
        self._before.append(tls().function_disabled)
        tls().function_disabled = <int>self._disabled

    def __exit__(self, *exc):
        tls().function_disabled = <int>self._before.pop()


# ---- asking --------------------------------------------------------------------------------------------------------

cdef int collect(object x, list found, list types, bint plain, bint nested) except -1:
    """The first argument of each class that overrides, subclasses before their bases; `plain` lists plain tensors, too."""
    cdef int at, i
    if isinstance(x, (tuple, list)):
        if not nested:
            for v in x:
                collect(v, found, types, plain, True)
        return 0
    if not has_function(x) and not (plain and type(x) is <object>tensor_type):
        return 0
    for t in types:
        if t is type(x):
            return 0
    at = <int>len(types)
    for i in range(at):
        if issubclass(type(x), types[i]):
            at = i
            break
    types.insert(at, type(x))
    found.insert(at, x)
    return 0


cdef int warn_of_plain_method() except -1:
    import warnings
    warnings.warn("Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please define it as a classmethod.", stacklevel=2)
    return 0


cdef object consult(object function, list found, list types, tuple args, dict kwargs, bint symbol=False):
    """The answer of the top mode or else of the arguments' classes; NotImplemented when there is nobody to ask. A symbol that all
    decline is NotImplemented, too: Python tries the other operand's."""
    cdef tuple given = tuple(types)
    cdef bint asked = False
    if tls().function_modes:
        mode = pop_mode()
        try:
            result = mode.__torch_function__(function, given, args, kwargs)
        finally:
            push_mode(mode)
        if result is not NotImplemented:
            return result
        asked = True
    else:
        mode = None
    if not tls().function_disabled:
        for x in found:
            if type(x) is <object>tensor_type:
                continue
            asked = True
            override = x.__torch_function__
            if PyMethod_Check(override) and PyMethod_GET_SELF(override) == <PyObject*>x:
                warn_of_plain_method()
            result = override(function, given, args, kwargs)
            if result is not NotImplemented:
                return result
    if not asked or symbol:
        return NotImplemented
    message = f"no implementation found for '{full_name(function)}' on types that implement __torch_function__: {list(types)}"
    raise TypeError(message if mode is None else message + f" nor in mode {mode}")


cdef frozenset SYMBOLS = frozenset([f"__{p}{s}__" for s in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "matmul", "pow", "and", "or", "xor", "lshift", "rshift") for p in ("", "r", "i")]
    + ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"])


def full_name(function):
    """`tensorrt_lite.nn.functional.relu`, `tensorrt_lite.Tensor.grad.__get__`."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, PublicProperty):
        return f"{owner.__objclass__.__module__.partition('.')[0]}.{owner.__qualname__}.{function.__name__}"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or str(function)
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if module else name


cdef object AS_IT_STANDS = object()
trt_as_it_stands = <PyObject*>AS_IT_STANDS


cdef object ask(PyObject* f, PyObject** args, Py_ssize_t n, PyObject* keywords):
    """Off the quick path of a PublicFunction: AS_IT_STANDS when the call is to run; NotImplemented of a symbol that all decline."""
    cdef PublicFunction function = <PublicFunction>f
    cdef list found = [], types = []
    cdef Py_ssize_t i
    cdef tuple given
    cdef dict named
    cdef bint plain
    if not tls().function_modes and tls().function_disabled or (<dict>PyThreadState_GetDict()).pop(SKIP, False):
        return AS_IT_STANDS
    given = tuple([<object>args[i] for i in range(n)])
    named = {}
    if keywords != NULL:
        for i in range(PyTuple_Size(keywords)):
            named[<object>PyTuple_GET_ITEM(keywords, i)] = <object>args[n + i]
    plain = function.manner == 1
    if not tls().function_disabled:
        for x in given:
            collect(x, found, types, plain, function.opaque)
        for x in named.values():
            collect(x, found, types, plain, function.opaque)
    if not tls().function_modes and not any_overrides(found):
        return AS_IT_STANDS
    if function.manner == 1:
        given, named = by_name(function, given, named)
    handed = function if function.handed is None else function.handed
    if function.name_ == "__eq__" and all([isinstance(x, TensorBase) for x in found]):
        handed = function       # of the symbols PyTorch has this one alone by its own name, except to objects that are no tensors
    return consult(handed, found, types, given, named, function.name_ in SYMBOLS)


cdef object call_respelled(PyObject* f, PyObject** args, Py_ssize_t n, PyObject* keywords):
    """A call with a keyword that the implementation knows by another name or position."""
    cdef PublicFunction function = <PublicFunction>f
    cdef Py_ssize_t i
    cdef list given = [<object>args[i] for i in range(n)]
    cdef dict named = {}
    rest = ()
    for i in range(PyTuple_Size(keywords)):
        keyword = <object>PyTuple_GET_ITEM(keywords, i)
        name = function.spellings.get(keyword, keyword)
        if name == "*":
            rest = (<object>args[n + i],)
        elif name in named:
            raise TypeError(f"{function.name_}() got multiple values for argument '{keyword}'")
        else:
            named[name] = <object>args[n + i]
    if rest and not given:
        for first in ("input", "self"):
            if first in named:
                given.append(named.pop(first))
                break
    if rest and len(given) > 1:
        raise TypeError(f"{function.name_}() got positional and keyword values for the same argument")
    return function.impl(*given, *rest, **named)


cdef bint any_overrides(list found):
    for x in found:
        if type(x) is not <object>tensor_type:
            return True
    return False


def call_overrides(function, relevant, tuple args, dict kwargs):
    """`handle_torch_function`: ask this thread's modes, then the classes of the relevant arguments. NotImplemented without any."""
    cdef list found = [], types = []
    for x in relevant:
        collect(x, found, types, True, True)
    return consult(function, found, types, args, kwargs)


cdef object SKIP = "tensorrt_lite.skip_one_override"


class skip_one:
    """Inside, the first question whether a call is overridden is answered with no."""

    def __enter__(self):
        (<dict>PyThreadState_GetDict())[SKIP] = True

    def __exit__(self, *exc):
        (<dict>PyThreadState_GetDict()).pop(SKIP, None)


def has_overrides(relevant):
    """Whether a mode is active or one of the arguments overrides."""
    if (<dict>PyThreadState_GetDict()).pop(SKIP, False):
        return False
    if tls().function_modes:
        return True
    if not tls().function_disabled:
        for x in relevant:
            if has_function(x):
                return True
    return False


# ---- the objects ---------------------------------------------------------------------------------------------------

cdef class PublicFunction:
    """A function of the package. help() of it lists its parameters and shows an example."""
    # `owner`: the name of the module of a function, the class of a method; `impl` does the work.
    # manner: how overrides get the arguments, AS_CALLED or BY_NAME; handed: what they get as `func`, this object when None (`a + b` hands
    # over `Tensor.add`); opaque: lists among the arguments are data (1), or overrides are not asked at all, as the package itself calls it
    # (2); spellings: {keyword: the name that impl has for it, or "*" for one that becomes the last positional argument, as `dims` of
    # `permute(*dims)`}; factory: it makes tensors out of none, or like its first argument.
    cdef void* vectorcall          # the first six as in trt_public: no cdef method may be added, its table would come before them
    cdef void* run
    cdef PyObject* called
    cdef int opaque
    cdef readonly int factory
    cdef PyObject* spelled
    cdef readonly object impl
    cdef readonly object spellings
    cdef object owner
    cdef public object handed
    cdef public int manner
    cdef object name_
    cdef object signature
    cdef tuple plan
    cdef object range_name         # what calls are in a profile; False: no range of their own; None: nobody has asked
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self, impl, str name not None, owner, *, manner=AS_CALLED, handed=None, opaque=False, dict spellings=None, factory=False):
        if not callable(impl):
            raise TypeError(f"{impl!r} is not callable")
        self.impl = impl
        self.name_ = name
        self.owner = owner
        self.manner = manner
        self.handed = handed
        self.opaque = opaque
        self.factory = factory
        trt_set_public_call(self, impl)
        self.spellings = spellings
        self.spelled = NULL if spellings is None else <PyObject*>spellings
        keep_for_ever(self)

    def __call__(self, *args, **kwargs):
        return self.impl(*args, **kwargs)   # never run: the type's slot is a vectorcall's; here for `__call__` in dir()

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def __name__(self):
        return self.name_

    @property
    def __qualname__(self):
        return f"{self.owner.__qualname__}.{self.name_}" if isinstance(self.owner, type) else self.name_

    @property
    def __module__(self):
        return "tensorrt_lite" if isinstance(self.owner, type) else self.owner

    @property
    def __objclass__(self):
        if not isinstance(self.owner, type):
            raise AttributeError("__objclass__")
        return self.owner

    @property
    def __class__(self):
        """What `inspect` and `help` take a function for: PyTorch's are Python's own, some built in. Methods are what their type's name says."""
        if isinstance(self.owner, type):
            return type(self)
        return FunctionType if type(self.impl) is FunctionType else BuiltinFunctionType

    @property
    def __self__(self):
        if self.__class__ is not BuiltinFunctionType:
            raise AttributeError("__self__")
        return modules[self.owner]            # as a built-in function has its module

    @property
    def __code__(self):
        return self.impl.__code__

    @property
    def __globals__(self):
        return self.impl.__globals__

    @property
    def __closure__(self):
        return self.impl.__closure__

    @property
    def __doc__(self):
        return _documentation_of(self)

    @property
    def __wrapped__(self):
        return self.impl

    @property
    def __defaults__(self):
        return getattr(self.impl, "__defaults__", None)

    @property
    def __kwdefaults__(self):
        return getattr(self.impl, "__kwdefaults__", None)

    @property
    def __annotations__(self):
        return getattr(self.impl, "__annotations__", {})

    @property
    def __signature__(self):
        if self.signature is None:
            self.signature = _signature_of(self)
        return self.signature

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        if isinstance(self.owner, type):
            return f"<method '{self.name_}' of '{self.owner.__module__.partition('.')[0]}.{self.owner.__qualname__}' objects>"
        return f"<function {self.owner}.{self.name_}>"


cdef class method_descriptor(PublicFunction):
    """A method of tensors: `x.sum(dim=1)`, or `Tensor.sum(x, dim=1)`. help() of a method lists its parameters and shows an example."""
    # `help` shows the type's name, which is that of Python's own methods of built-in classes.

    @property
    def __doc__(self):                       # a type's own text would stand before an inherited property
        return _documentation_of(self)


cdef object MISSING = object()


cdef tuple plan_of(PublicFunction function):
    """(names, defaults or MISSING, how many may be positional) of the parameters; empty where some are `*` or `**`."""
    from inspect import Parameter
    parameters = list(function.__signature__.parameters.values())
    if any([p.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD) for p in parameters]):
        return ()
    defaults = tuple([MISSING if p.default is Parameter.empty else p.default for p in parameters])
    return tuple([p.name for p in parameters]), defaults, sum([p.kind is not Parameter.KEYWORD_ONLY for p in parameters])


cdef tuple by_name(PublicFunction function, tuple args, dict kwargs):
    """The call as PyTorch's Python functions hand it over. A call that does not fit is handed over as it is: it fails when it runs."""
    cdef tuple names, defaults
    cdef list required = []
    cdef dict named = {}
    cdef Py_ssize_t i, given = len(args), used = 0
    if function.plan is None:
        function.plan = plan_of(function)
    if not function.plan:
        return starred_by_name(function, args, kwargs)
    names, defaults, positional = function.plan
    if given > <Py_ssize_t>positional:
        return args, kwargs
    for i in range(len(names)):
        if i < given:
            value = args[i]
        elif names[i] in kwargs:
            value = kwargs[names[i]]
            used += 1
        elif defaults[i] is MISSING:
            return args, kwargs
        else:
            value = defaults[i]
        if defaults[i] is MISSING and i < <Py_ssize_t>positional:
            required.append(value)
        else:
            named[names[i]] = value
    return (tuple(required), named) if used == len(kwargs) else (args, kwargs)


cdef tuple starred_by_name(PublicFunction function, tuple args, dict kwargs):
    """The same where the signature has `*operands` or `**options`."""
    from inspect import Parameter
    try:
        bound = function.__signature__.bind(*args, **kwargs)
    except TypeError:
        return args, kwargs
    bound.apply_defaults()
    required, named = [], {}
    for name, parameter in function.__signature__.parameters.items():
        value = bound.arguments[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            required += value
        elif parameter.kind is Parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is Parameter.empty and parameter.kind is not Parameter.KEYWORD_ONLY:
            required.append(value)
        else:
            named[name] = value
    return tuple(required), named


cdef class PublicProperty:
    """A property of tensors, such as `x.shape` or `x.grad`."""
    # Access asks overrides; they get `Tensor.grad.__get__`, `__set__` or `__delete__`.
    cdef readonly object fget, fset, fdel
    cdef object name_, owner

    def __init__(self, str name not None, owner, fget, fset=None, fdel=None):
        self.name_ = name
        self.owner = owner
        self.fget = fget
        self.fset = fset
        self.fdel = fdel
        keep_for_ever(self)
        if fget is not None:
            keep_for_ever(fget)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        if not trt_is_quick(instance):
            r = consulted(self, "__get__", (instance,))
            if r is not NotImplemented:
                return r
        return trt_call_one(self.fget, instance)

    def __set__(self, instance, value):
        if not trt_is_quick(instance) or has_function(value):
            if consulted(self, "__set__", (instance, value)) is not NotImplemented:
                return
        if self.fset is None:
            raise AttributeError(f"attribute '{self.name_}' of '{self.owner.__qualname__}' objects is not writable")
        self.fset(instance, value)

    def __delete__(self, instance):
        if not trt_is_quick(instance):
            if consulted(self, "__delete__", (instance,)) is not NotImplemented:
                return
        if self.fdel is None:
            raise AttributeError(f"attribute '{self.name_}' of '{self.owner.__qualname__}' objects cannot be deleted")
        self.fdel(instance)

    @property
    def __name__(self):
        return self.name_

    @property
    def __objclass__(self):
        return self.owner

    @property
    def __qualname__(self):
        return f"{self.owner.__qualname__}.{self.name_}"

    @property
    def __doc__(self):
        return self.fget.__doc__

    def __reduce__(self):
        return self.__qualname__

    def __repr__(self):
        return f"<attribute '{self.name_}' of '{self.owner.__module__.partition('.')[0]}.{self.owner.__qualname__}' objects>"


cdef object consulted(PublicProperty self, str access, tuple args):
    cdef list found = [], types = []
    if tls().function_disabled and not tls().function_modes:
        return NotImplemented
    if not tls().function_disabled:
        for x in args:
            collect(x, found, types, True, True)
        if not tls().function_modes and not any_overrides(found):
            return NotImplemented
    return consult(getattr(self, access), found, types, args, {})


def install(tensor, parameter, disabled, signature_of, documentation_of, range_name_of):
    """Tell the quick path which classes are plain. disabled: Parameter's __torch_function__, which stands for no override, as its class has
    it; signature_of and documentation_of answer for a public function, from its row where it has one; range_name_of says what a function over operators is called in a profile."""
    global trt_plain_tensor, trt_plain_parameter, trt_disabled_method, trt_disabled_function, trt_name_of_function
    global _signature_of, _documentation_of, _range_name_of
    trt_plain_tensor = <PyTypeObject*>tensor
    trt_plain_parameter = <PyTypeObject*>parameter
    trt_disabled_method = <PyObject*>disabled
    trt_disabled_function = <PyObject*>disabled.__func__
    _signature_of = signature_of
    _documentation_of = documentation_of
    _range_name_of = range_name_of
    _kept.extend([tensor, parameter, disabled, disabled.__func__, "__torch_function__"])
    trt_name_of_function = <PyObject*>_kept[-1]


cdef list _kept = []
cdef object _signature_of = None, _documentation_of = None
cdef object make_in_python(PyObject* f, PyObject** args, Py_ssize_t n, PyObject* keywords):
    cdef dict named = {}
    cdef Py_ssize_t i
    if keywords != NULL:
        for i in range(PyTuple_Size(keywords)):
            named[<object>PyTuple_GET_ITEM(keywords, i)] = <object>args[n + i]
    return dispatch_factory(<object>f, tuple([<object>args[i] for i in range(n)]), named)


# ---- profiling -----------------------------------------------------------------------------------------------------

cdef object _range_name_of = None    # the name in a profile of a public function that is no operator, or None


cdef object range_name(PublicFunction function):
    """What the function's calls are called in a profile, or False; kept for the function's life by the first thread that asks."""
    cdef mutex* lock = lock_of(<PyObject*>function)
    cdef object name, fresh = None
    mutex_lock(lock)
    name = function.range_name
    mutex_unlock(lock)
    if name is not None:
        return name
    fresh = _range_name_of(function) or False
    mutex_lock(lock)
    if function.range_name is None:
        function.range_name = fresh
    name = function.range_name
    mutex_unlock(lock)
    return name


cdef object call_profiled(PyObject* f, PyObject** args, size_t nargsf, PyObject* keywords):
    """A call while a profiler runs, of what is no operator."""
    cdef PublicFunction function = <PublicFunction>f
    cdef int64_t token
    if not is_recorded():
        return trt_run_public(function, args, nargsf, keywords)
    name = range_name(function)
    if name is False:
        return trt_run_public(function, args, nargsf, keywords)
    token = begin_record(KIND_FUNCTION, <void*>name, -1)
    describe_call(token, args, <Py_ssize_t>(nargsf & ~(<size_t>1 << (8 * sizeof(size_t) - 1))) + (PyTuple_Size(keywords) if keywords != NULL else 0))
    try:
        return trt_run_public(function, args, nargsf, keywords)
    finally:
        end_record(token)


def set_profiled(bint on):
    """Whether a profiler runs in any thread: public functions that are no operators ask then whether theirs is recorded."""
    global trt_profiled
    trt_profiled = on


trt_call_profiled = <void*>call_profiled
_set_switch(set_profiled)
trt_ask = <void*>ask
trt_note_call = <PyObject*>note_call
trt_make_in_python = <void*>make_in_python
trt_call_respelled = <void*>call_respelled
trt_prepare_public_type(<PyTypeObject*>PublicFunction)
trt_prepare_public_type(<PyTypeObject*>method_descriptor)
