"""Autocast: operators of PyTorch's lists run in the dtype that suits them, whatever dtype their arguments have.

A row of such an operator has two letters, the policy on the CPU and that on CUDA and custom devices: `l` casts floating-point arguments to the device's lower
precision, `f` to float32, `p` to the widest among them, `s` leaves them and makes float32 the dtype of the result where none is asked for, `b` refuses
to run, `-` does nothing. The boxed kernel under the key Autocast, which threads include while autocast is on for a device, casts above Autograd, so that
graphs save what was cast, and goes on with the key excluded. Operators off the lists have no kernel there and take their usual road.
float64, integers, complex numbers, Python's numbers, sparse tensors and tensors of other devices are never cast; forms that write to out or in place run as they are.

All state is the thread's own, also the cache of casts of leaves that require gradients: a weight that is used twice is cast once.
"""
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_DECREF
from libc.stdint cimport uint64_t
from libc.string cimport strlen
from weakref import ref
from tensorrt_lite._C.core.dtype cimport dtype, dtype_of, category, CAT_FLOAT, F32, F64
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_META, device as device_class
from tensorrt_lite._C.core.tensor cimport TensorBase, KEY_AUTOCAST, K_PYTHON, K_SPARSE, version_of
from tensorrt_lite._C.core.dispatch cimport DEVICE_TYPES, attach, operator_named, trt_operator, trt_value, FRESH, NO_OUT
from tensorrt_lite._C.core.boxing cimport register_boxed

attach()

cdef extern from *:
    """
    #include "thread_state.h"
    typedef struct { int enabled, dtype; } trt_autocast_device;
    typedef struct {
      trt_autocast_device device[11];  /* by device type */
      int nesting;                     /* contexts entered and not left */
      int cache_off;
      PyObject* cache;                 /* {id of a leaf: (weak reference, version, cast)}, or NULL */
    } trt_autocast_state;
    static __thread trt_autocast_state trt_autocast = {{{0, 7}, [1 ... 10] = {0, 6}}, 0, 0, NULL};   /* BF16, F16 */

    enum { TRT_KEY_AUTOCAST = 11 };    /* compared with the core's when the module is loaded */

    /* A function with policies, in front of `impl`; the first members of PolicyFunction. */
    typedef struct { PyObject_HEAD vectorcallfunc vectorcall; PyObject* impl; } trt_policy_function;
    static PyObject* (*trt_call_cast)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
    static PyObject* trt_call_policy(PyObject* f, PyObject* const* args, size_t nargsf, PyObject* keywords) {
      trt_thread_state* state = trt_tls();
      if (__builtin_expect((state->included & ~state->excluded) >> TRT_KEY_AUTOCAST & 1, 0)) return trt_call_cast(f, args, PyVectorcall_NARGS(nargsf), keywords);
      return PyObject_Vectorcall(((trt_policy_function*)f)->impl, args, nargsf, keywords);
    }
    static void trt_prepare_policy_type(PyTypeObject* t) {
      t->tp_vectorcall_offset = offsetof(trt_policy_function, vectorcall);
      t->tp_call = PyVectorcall_Call;
      t->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
      PyType_Modified(t);
    }
    """
    ctypedef struct trt_autocast_device:
        int enabled
        int dtype
    ctypedef struct trt_autocast_state:
        trt_autocast_device device[11]
        int nesting
        int cache_off
        PyObject* cache
    trt_autocast_state state_of_thread "trt_autocast"
    enum:
        TRT_KEY_AUTOCAST
    void* trt_call_policy
    void* trt_call_cast
    void trt_prepare_policy_type(object t)

cdef extern from "Python.h":
    object PyMethod_New(object, object)
    Py_ssize_t PyTuple_GET_SIZE(PyObject*)
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)

cdef enum:
    MOST_ARGUMENTS = 24

if TRT_KEY_AUTOCAST != KEY_AUTOCAST:
    raise SystemError("autocast.pyx: TRT_KEY_AUTOCAST is not the key Autocast")


# ---- casts ---------------------------------------------------------------------------------------------------------

cdef inline int letter_of(int device) noexcept:
    """Which letter of a row says what a device type casts: custom ones do as CUDA."""
    return device != DEV_CPU


cdef int type_of(TensorBase t) except -1:
    """The device type of a tensor, of one that stands for another what it says: wrappers of transforms, subclasses without memory."""
    if t.device_type != DEV_META or t.keys & (K_PYTHON | K_SPARSE) != K_PYTHON:
        return t.device_type
    return (<device_class?>(<object>t).device).code


cdef inline bint eligible(TensorBase t, int device) except -1:
    return type_of(t) == device and category[t.dtype] == CAT_FLOAT and t.dtype != F64 and not t.wrapped_number


cdef trt_operator* _to_copy = NULL

cdef TensorBase converted(TensorBase t, int code):
    """`t.to(dtype)`, recorded."""
    global _to_copy
    cdef trt_value v[4]
    if _to_copy == NULL:
        _to_copy = operator_named("_to_copy")
    v[0].p = <void*>t
    v[1].i = code
    v[2].p = v[3].p = <void*>None
    return <TensorBase>_to_copy.row.unpack(_to_copy, v, NULL, NO_OUT)


cdef TensorBase cached_cast(TensorBase t, int code, int device):
    """The tensor in another dtype. The cast of a leaf that requires gradients is kept while gradients are recorded, so that all uses share its Node."""
    cdef trt_autocast_state* state = &state_of_thread
    cdef TensorBase result
    cdef tuple entry
    if not eligible(t, device) or t.dtype == code:
        return t
    if not (t.requires_grad and t.grad_fn_ is None and t.base is None and t.dtype == F32 and tls().grad_mode and not state.cache_off
            and code == state.device[device].dtype and state.nesting):
        return converted(t, code)
    if state.cache == NULL:
        fresh = {}
        Py_INCREF(fresh)               # cleared when the outermost context ends
        state.cache = <PyObject*>fresh
    entry = (<dict>state.cache).get(id(t))
    # the address may be another tensor's by now, and the weight may have been written to
    if entry is not None and entry[0]() is t and entry[1] == version_of(t) and (<TensorBase>entry[2]).dtype == code:
        return <TensorBase>entry[2]
    result = converted(t, code)
    if state.cache != NULL:
        (<dict>state.cache)[id(t)] = (ref(t), version_of(t), result)
    return result


cdef void clear_cache() noexcept:
    cdef PyObject* cache = state_of_thread.cache
    state_of_thread.cache = NULL
    if cache != NULL:
        Py_DECREF(<object>cache)


cdef int device_of(object x) except -2:
    """The device type that tensors among the arguments bring, CUDA before the CPU and custom ones before it; -1: none that autocast knows."""
    cdef int found = -1, other
    if isinstance(x, TensorBase):
        other = type_of(<TensorBase>x)
        return other if other != DEV_META and not (<TensorBase>x).wrapped_number else -1
    if isinstance(x, (list, tuple)):
        for y in x:
            other = device_of(y)
            if other > found:
                found = other
    return found


cdef int widest(object x, int device, int code) except -1:
    """The promoted dtype of `code` and the arguments in x."""
    if isinstance(x, TensorBase):
        if not eligible(<TensorBase>x, device) or code == F32:
            return code
        if (<TensorBase>x).dtype == F32:
            return F32
        if (<TensorBase>x).dtype != code:
            raise RuntimeError(f"autocast: expected {dtype_of(code)} or float32 to promote, got {dtype_of((<TensorBase>x).dtype)}")
        return code
    if isinstance(x, (list, tuple)):
        for y in x:
            code = widest(y, device, code)
    return code


cdef object cast_all(object x, int code, int device):
    """Casts tensors, also those in lists and tuples."""
    if isinstance(x, TensorBase):
        return cached_cast(<TensorBase>x, code, device)
    if type(x) is list:
        return [cast_all(y, code, device) for y in x]
    if type(x) is tuple:
        return tuple([cast_all(y, code, device) for y in x])
    return x


cdef TensorBase cast_operand(TensorBase t, str policies):
    """One operand of a composition, by the policy `l`, `f` or `-` of its device."""
    cdef str policy
    cdef int device = type_of(t)
    if device == DEV_META or not state_of_thread.device[device].enabled:
        return t
    policy = policies[letter_of(device)]
    return t if policy == "-" else cached_cast(t, F32 if policy == "f" else state_of_thread.device[device].dtype, device)


cdef int refuse(str name) except -1:
    raise RuntimeError(
        f"{name} is unsafe to autocast: its gradients leave float16's range. Use binary_cross_entropy_with_logits (BCEWithLogitsLoss) on what goes "
        f"into the sigmoid, which is safe, or run {name} in float32 inside autocast(enabled=False).")


# ---- the key's kernel ----------------------------------------------------------------------------------------------

cdef object run_autocast(trt_operator* op, const trt_value* given, PyObject* out, int mode):
    cdef trt_thread_state* state = tls()
    cdef uint64_t excluded = state.excluded
    cdef const char* kinds = op.row.kinds
    cdef int n = <int>strlen(kinds), i, device = -1, other, code
    cdef trt_value v[MOST_ARGUMENTS]
    cdef char policy = c'-'
    cdef bint first = False, seen = False
    cdef list kept
    if mode == FRESH or mode == NO_OUT:
        for i in range(n):
            v[i] = given[i]
            if kinds[i] == c't' or kinds[i] == c'l':
                other = device_of(<object>given[i].p)
                if other > device:
                    device = other
        if device >= 0 and state_of_thread.device[device].enabled:
            policy = op.row.autocast[letter_of(device)]
    state.excluded = excluded | K_AUTOCAST
    try:
        if policy == c'-':
            return op.row.unpack(op, given, out, mode)
        if policy == c'b':
            refuse(op.name.decode().lstrip("_"))
        if policy == c's':
            for i in range(n):
                if kinds[i] == c't' and not seen:
                    seen = True
                    first = <object>given[i].p is not None and eligible(<TensorBase>given[i].p, device)
                elif kinds[i] == c'y' and first and v[i].i < 0:
                    v[i].i = F32
            return op.row.unpack(op, v, out, mode)
        code = F32 if policy == c'f' else state_of_thread.device[device].dtype
        if policy == c'p':
            for i in range(n):
                if kinds[i] == c't' or kinds[i] == c'l':
                    code = widest(<object>given[i].p, device, code)
        kept = []
        for i in range(n):
            if kinds[i] == c't' or kinds[i] == c'l':
                x = cast_all(<object>given[i].p, code, device)
                kept.append(x)
                v[i].p = <void*>x
        return op.row.unpack(op, v, out, mode)
    finally:
        state.excluded = excluded


register_boxed(KEY_AUTOCAST, run_autocast)


# ---- compositions --------------------------------------------------------------------------------------------------

cdef object recast(str policies, object function, tuple args, dict kwargs):
    """The composition's own call with cast arguments, the key excluded; NotImplemented where nothing is cast: the caller goes on."""
    cdef trt_thread_state* state = tls()
    cdef uint64_t excluded = state.excluded
    cdef int device = device_of(args), code
    cdef str policy
    if kwargs is not None:
        if kwargs.get("out") is not None:
            return NotImplemented
        device = max(device, device_of(list(kwargs.values())))
    if device < 0 or not state_of_thread.device[device].enabled:
        return NotImplemented
    policy = policies[letter_of(device)]
    if policy == "-":
        return NotImplemented
    if policy == "b":
        refuse(function.__name__)
    state.excluded = excluded | K_AUTOCAST
    try:
        code = F32 if policy == "f" else state_of_thread.device[device].dtype
        if policy == "p":
            code = widest(args, device, code)
            if kwargs is not None:
                code = widest(list(kwargs.values()), device, code)
        args = <tuple>cast_all(args, code, device)
        if kwargs is None:
            return function(*args)
        return function(*args, **{name: cast_all(value, code, device) for name, value in kwargs.items()})
    finally:
        state.excluded = excluded


cdef object call_cast(PyObject* function, PyObject** args, Py_ssize_t n, PyObject* keywords):
    cdef PolicyFunction f = <PolicyFunction>function
    cdef Py_ssize_t i
    cdef tuple given = tuple([<object>args[i] for i in range(n)])
    cdef dict named = {}
    if keywords != NULL:
        for i in range(PyTuple_GET_SIZE(keywords)):
            named[<object>PyTuple_GET_ITEM(keywords, i)] = <object>args[n + i]
    result = recast(f.policies, f.impl, given, named)
    return f.impl(*given, **named) if result is NotImplemented else result


trt_call_cast = <void*>call_cast

POLICIES = {"lower": "l", "float32": "f", "promote": "p", "banned": "b"}


cdef class PolicyFunction:
    """A Python function on PyTorch's lists: with autocast on its tensors are cast, and what it is composed of casts nothing more."""
    cdef void* vectorcall          # the first two as in trt_policy_function: no cdef method may be added, its table would come before them
    cdef readonly object impl
    cdef str policies
    cdef dict __dict__
    cdef object __weakref__

    def __init__(self, impl, str policies not None):
        self.vectorcall = trt_call_policy
        self.impl = impl
        self.policies = policies

    def __call__(self, *args, **kwargs):
        return self.impl(*args, **kwargs)   # never run: the type's slot is a vectorcall's; here for `__call__` in dir()

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __getattr__(self, name):
        return getattr(self.impl, name)

    @property
    def __doc__(self):
        return self.impl.__doc__

    @property
    def __module__(self):
        return self.impl.__module__

    @property
    def __wrapped__(self):
        return self.impl

    def __repr__(self):
        return repr(self.impl)


trt_prepare_policy_type(PolicyFunction)


def policy(cpu=None, cuda=None):
    """Decorates a part of a composition that casts on its own: `lower`, `float32`, `promote` or `banned` on a device; None: it casts nothing there.
    What a row names says so by its `autocast`."""
    cdef str letters = "".join(["-" if name is None else POLICIES[name] for name in (cpu, cuda)])
    return lambda function: PolicyFunction(function, letters)


def put_policies(dict namespace not None, names, dict table not None, spaces=("",)):
    """Puts the policies of composed rows in front of a module's functions, in place. table: {row: two letters}; a row's name is the function's behind
    one of `spaces` ("fft_"). Returns {id of a function: what took its place}."""
    replaced = {}
    for name in names:
        function = namespace.get(name)
        if function is None or type(function) is PolicyFunction:
            continue
        letters = next((table[space + name] for space in spaces if space + name in table), None)
        if letters is not None:
            namespace[name] = PolicyFunction(function, letters)
            replaced[id(function)] = namespace[name]
    return replaced


# ---- the thread's state --------------------------------------------------------------------------------------------

cdef void update_keys() noexcept:
    cdef int i, enabled = 0
    for i in range(DEVICE_TYPES):
        enabled |= state_of_thread.device[i].enabled
    if enabled:
        tls().included |= K_AUTOCAST
    else:
        tls().included &= ~<uint64_t>K_AUTOCAST


def set_enabled(int device, bint enabled):
    """device: the type's code."""
    state_of_thread.device[device].enabled = enabled
    update_keys()


def is_enabled(int device):
    return state_of_thread.device[device].enabled != 0


def set_dtype(int device, dtype kind not None):
    state_of_thread.device[device].dtype = kind.code


def get_dtype(int device):
    return dtype_of(state_of_thread.device[device].dtype)


def set_cache_enabled(bint enabled):
    state_of_thread.cache_off = not enabled


def is_cache_enabled():
    return state_of_thread.cache_off == 0


def clear_autocast_cache():
    """Drop the casts of weights that this thread keeps.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.clear_autocast_cache()
        >>> trt.is_autocast_cache_enabled()
        True
    """
    clear_cache()


def autocast_increment_nesting():
    """One more context is entered; returns how many are.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.autocast_increment_nesting()
        1
        >>> trt.autocast_decrement_nesting()
        0
    """
    state_of_thread.nesting += 1
    return state_of_thread.nesting


def autocast_decrement_nesting():
    """One context less; returns how many are left.

    Example:
        >>> import tensorrt_lite as trt
        >>> trt.autocast_increment_nesting()
        1
        >>> trt.autocast_decrement_nesting()
        0
    """
    state_of_thread.nesting -= 1
    return state_of_thread.nesting


cdef class ThreadState:
    """What a thread that goes on with another's work takes over from it; the cache of casts is not shared."""
    cdef trt_autocast_state state

    def __init__(self):
        self.state = state_of_thread
        self.state.cache = NULL

    def __call__(self):
        clear_cache()
        (&state_of_thread)[0] = self.state
        update_keys()
