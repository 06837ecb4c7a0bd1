"""Functional transforms (vmap, grad, jvp and what is made of them): the stack of their levels, and tensors that stand for others.

A level is a call of a transform in progress. A wrapper is a tensor that belongs to a level and stands for a value: at a level of vmap for one of the
value's slices along the batch dimension, at a level of grad or jvp for the value itself, with a history or a tangent of that level alone. Values may be wrappers of
lower levels. A wrapper has the keys Python and Wrapped, geometry and no memory: its storage holds the value.

While levels are active the key FuncTorch is among the thread's keys, above all others. Its kernel looks at the innermost level:
- vmap: what belongs to it is unwrapped, and the operator's batching rule (tensorrt_lite/_transforms) runs with the level taken off the stack;
- grad, jvp: the operator goes on below the key, so Autograd and ForwardAD treat the level's wrappers as they treat any tensor. At last it meets
  the key Python, whose kernel unwraps and calls the operator with the level taken off the stack.

So each level sees only what belongs to it, and a derivative of one is never taken for that of another. The module installs its kernels when it is
first imported, which is with the first transform: programs without one pay nothing.
"""
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t
from tensorrt_lite._C.core.device cimport DEV_META
from tensorrt_lite._C.core.storage cimport Storage
from tensorrt_lite._C.core.tensor cimport (
    KEY_PYTHON, KEY_TRANSFORM, K_AUTOGRAD, K_DERIVATIVES, K_FORWARD_AD, K_PYTHON, K_SPARSE, K_TRANSFORM, K_WRAPPED, MAX_DIMS, TensorBase, alias_of, bump_version, make_view, new_alias, set_dtype,
    set_geometry, set_inference_flag, set_storage)
from tensorrt_lite._C.core.dispatch cimport FRESH, INPLACE, NO_OUT, OPS, OUT, attach, operator_named, tls, trt_operator, trt_thread_state, trt_value
from tensorrt_lite._C.core.boxing cimport box_arguments, boxed_kernel, call_boxed, register_boxed, registered_kernel
from tensorrt_lite._C.core.dispatch import _table_size
from tensorrt_lite._C.core.python_key import _set_make_transformed
from tensorrt_lite._C.core.sparse import set_wrappers

attach()

cdef extern from *:
    """
    static __thread PyObject* trt_levels __attribute__((tls_model("initial-exec")));   /* the thread's stack of levels, a list, or NULL */
    """
    PyObject* levels_of_thread "trt_levels"


cdef class WrappedStorage(Storage):
    """What a wrapper has in the place of memory: the value that it stands for, and where the level's batch dimension lies in it (-1: none)."""
    cdef TensorBase value
    cdef Level level
    cdef int batch_dim


cdef class Level:
    """A call of a transform in progress.

    kind: "vmap", "grad" or "jvp". batch_size and randomness ("error", "different" or "same") are vmap's. rule(level, name, place, arguments, target, mode) runs an
    operator on what belongs to a level of vmap, with the level off the stack.
    """
    cdef readonly str kind, randomness
    cdef readonly int64_t batch_size
    cdef readonly int number
    cdef bint maps
    cdef object rule
    cdef int grad_mode, inference_mode  # where the transform was called, for what runs below
    cdef uint64_t forward              # K_FORWARD_AD where forward mode was off there
    cdef uint64_t included, excluded   # of the call that is on its way from the key FuncTorch to the key Python
    cdef dict __dict__

    def __init__(self, str kind, object rule=None, int64_t batch_size=-1, str randomness="error"):
        self.kind, self.rule, self.batch_size, self.randomness = kind, rule, batch_size, randomness
        self.maps = kind == "vmap"

    def __repr__(self):
        return f"<level {self.number} of {self.kind}>"


cdef list stack():
    global levels_of_thread
    if levels_of_thread == NULL:
        fresh = []
        _stacks.append(fresh)          # for as long as the process: threads are few
        levels_of_thread = <PyObject*>fresh
    return <list>levels_of_thread


cdef list _stacks = []


cdef inline int note_levels(list levels, trt_thread_state* state) except -1:
    if PyList_GET_SIZE(levels):
        state.included |= K_TRANSFORM
    else:
        state.included &= ~<uint64_t>K_TRANSFORM
    return 0


def push(Level level not None):
    """Make a level the innermost one of this thread."""
    cdef list levels = stack()
    cdef trt_thread_state* state = tls()
    level.number = len(levels) + 1
    level.grad_mode, level.inference_mode = state.grad_mode, state.inference_mode
    if not level.maps:
        set_inference_mode(0)              # what a level of grad or jvp differentiates is no inference tensor to it
    level.forward = state.excluded & K_FORWARD_AD
    level.included, level.excluded = state.included, state.excluded
    levels.append(level)
    note_levels(levels, state)


def pop():
    """Take the innermost level off the stack."""
    cdef list levels = stack()
    cdef Level level = <Level>levels.pop()
    note_levels(levels, tls())
    if not level.maps:
        set_inference_mode(level.inference_mode)


cdef int set_inference_mode(int mode) except -1:
    tls().inference_mode = mode
    set_inference_flag(mode)
    return 0


def innermost():
    """The innermost level of this thread whose operators are looked at, None without one."""
    return top() if tls().included & K_TRANSFORM else None


def is_inside():
    """Whether the thread is between a level of grad or jvp and its lower ones: wrappers of that level go to the key Python."""
    return bool(tls().included & tls().excluded & K_TRANSFORM)


cdef inline Level top():
    cdef list levels = stack()
    return <Level>levels[len(levels) - 1] if levels else None


def all_levels():
    """The levels, outermost first."""
    return tuple(stack())


cdef class Lowered:
    """A context without the innermost level: what it contains runs as the level's own operators do."""
    cdef Level level
    cdef uint64_t included, excluded
    cdef int grad_mode, inference_mode

    def __enter__(self):
        enter_lower(self)
        return self.level

    def __exit__(self, *exception):
        leave_lower(self)


cdef int enter_lower(Lowered here) except -1:
    cdef trt_thread_state* state = tls()
    cdef list levels = stack()
    cdef Level level = <Level>levels.pop()
    here.level = level
    here.included, here.excluded, here.grad_mode, here.inference_mode = state.included, state.excluded, state.grad_mode, state.inference_mode
    if state.excluded & K_TRANSFORM:
        state.included, state.excluded = level.included, level.excluded & ~<uint64_t>K_TRANSFORM
    note_levels(levels, state)
    if not level.maps:
        state.grad_mode = level.grad_mode
        set_inference_mode(level.inference_mode)
        state.excluded = state.excluded & ~<uint64_t>K_FORWARD_AD | level.forward
    return 0


cdef int leave_lower(Lowered here) except -1:
    cdef trt_thread_state* state = tls()
    stack().append(here.level)
    state.included, state.excluded, state.grad_mode = here.included, here.excluded, here.grad_mode
    if not here.level.maps:
        set_inference_mode(here.inference_mode)
    return 0


def lowered():
    """The context in which the innermost level is off the stack."""
    return Lowered()


# ---- wrappers ------------------------------------------------------------------------------------------------------

cdef inline WrappedStorage storage_at(object x, Level level):
    """The storage of a wrapper that belongs to a level, None of anything else."""
    cdef Storage s
    if not isinstance(x, TensorBase) or not (<TensorBase>x).keys & K_WRAPPED:
        return None
    s = (<TensorBase>x).storage
    return <WrappedStorage>s if isinstance(s, WrappedStorage) and (<WrappedStorage>s).level is level else None


cdef WrappedStorage storage_around(TensorBase value, Level level, int batch_dim):
    cdef WrappedStorage s = WrappedStorage.__new__(WrappedStorage)
    s.device_type = DEV_META
    s.value, s.level, s.batch_dim = value, level, batch_dim
    return s


cdef int take_geometry(TensorBase t, TensorBase value, int batch_dim) except -1:
    cdef int64_t sizes[MAX_DIMS]
    cdef int64_t strides[MAX_DIMS]
    cdef int i, n = 0
    for i in range(value.ndim):
        if i != batch_dim:
            sizes[n] = value.sizes[i]
            strides[n] = value.strides[i]
            n += 1
    set_geometry(t, n, sizes, strides)
    t.offset = value.offset
    return 0


cdef TensorBase wrapped(TensorBase value, Level level, int batch_dim):
    cdef TensorBase t = new_alias(value)       # what stands for a sparse tensor is one, to Python and to the dispatcher
    set_storage(t, storage_around(value, level, batch_dim))
    t.keys |= K_PYTHON | K_WRAPPED | value.keys & K_SPARSE
    t.layout = value.layout if value.keys & K_SPARSE else t.layout
    set_dtype(t, value.dtype)
    t.wrapped_number = value.wrapped_number
    t.inference = t.inference if level.maps else 0
    take_geometry(t, value, batch_dim)
    return t


def wrap(TensorBase value not None, Level level not None, int batch_dim=-1):
    """A tensor of a level that stands for `value`, or for its slices along batch_dim."""
    if batch_dim >= value.ndim:
        raise IndexError(f"the batch dimension {batch_dim} is none of a tensor with {value.ndim} dimensions")
    return wrapped(value, level, batch_dim)


def unwrap(x, Level level not None):
    """(the value, its batch dimension or None) of a level's tensor; (x, None) of anything else."""
    cdef WrappedStorage s = storage_at(x, level)
    if s is None:
        return x, None
    return s.value, (s.batch_dim if s.batch_dim >= 0 else None)


def element(x, Level level not None, int64_t i):
    """Slice i of a batch at the level; anything else as it is."""
    value, dim = unwrap(x, level)
    return value if dim is None else value.select(dim, i)


def belongs(x, Level level not None):
    """Whether x is a wrapper of the level."""
    return storage_at(x, level) is not None


def is_wrapper(x):
    """Whether x stands for another tensor."""
    return isinstance(x, TensorBase) and (<TensorBase>x).keys & K_WRAPPED != 0


def wrapper_parts(TensorBase t not None):
    """(value, level, batch dimension or None) of a wrapper. TypeError for other tensors."""
    cdef WrappedStorage s
    if not t.keys & K_WRAPPED or not isinstance(t.storage, WrappedStorage):
        raise TypeError("the tensor stands for no other one")
    s = <WrappedStorage>t.storage
    return s.value, s.level, (s.batch_dim if s.batch_dim >= 0 else None)


def is_number(x):
    """Whether x is a Python number in a tensor's form, which gives way to all tensors in promotion."""
    return isinstance(x, TensorBase) and (<TensorBase>x).wrapped_number != 0


cdef TensorBase value_of_wrapped(TensorBase t):
    return (<WrappedStorage?>t.storage).value


def value_of(TensorBase t not None):
    """The value that a wrapper stands for."""
    return value_of_wrapped(t)


def readable_value(TensorBase t not None, str what):
    """The value whose numbers a wrapper has, for `item` and its kin. RuntimeError where it has many, at a level of vmap."""
    cdef WrappedStorage s
    while t.keys & K_WRAPPED:
        s = <WrappedStorage?>t.storage
        if s.level.maps:
            if what == "bool":
                raise RuntimeError(
                    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet: choose between values by "
                    "where(condition, a, b), which computes both.")
            if what == "item":
                raise RuntimeError(
                    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to rewrite "
                    "what you're doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug report.")
            refused = BufferError if what == "__dlpack__" else RuntimeError        # what consumers of DLPack expect
            raise refused(f"vmap: Tensor.{what}() needs the numbers of one tensor, and here is a batch of them")
        t = s.value
    return t.detach() if t.requires_grad else t


def in_transform():
    """Whether a transform is running in this thread."""
    return PyList_GET_SIZE(stack()) > 0


def check_may_require_grad(TensorBase t not None, bint anywhere=False):
    """RuntimeError at a level of vmap: what its tensors record are their values' histories. `anywhere`: at every level, for requires_grad_()."""
    if anywhere or (<WrappedStorage?>t.storage).level.maps:
        raise RuntimeError(
            "You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) inside of a function being transformed by a functorch "
            "transform. This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or call requires_grad_() outside of "
            "a function being transformed instead.")


# ---- the key FuncTorch ---------------------------------------------------------------------------------------------

cdef dict _names = {}                  # {place in the table: name}
cdef object _draws = frozenset()       # places of operators that draw random numbers


def set_random_operators(names):
    """Operators that vmap sees although nothing of its level is among their arguments."""
    global _draws
    cdef set places = set()
    cdef trt_operator* op
    for name in names:
        op = operator_named(name)
        if op != NULL:
            places.add(<int>(op - OPS))
    _draws = frozenset(places)


cdef bint concerns(tuple arguments, object target, Level level) except -1:
    for x in arguments:
        if isinstance(x, TensorBase):
            if storage_at(x, level) is not None:
                return True
        elif isinstance(x, (list, tuple)):
            for y in x:
                if storage_at(y, level) is not None:
                    return True
    if isinstance(target, (list, tuple)):
        for y in target:
            if storage_at(y, level) is not None:
                return True
        return False
    return target is not None and storage_at(target, level) is not None


cdef object detached_from(object x, Level level):
    """A tensor from below a level of grad or jvp as that level sees it: a constant. Derivatives of lower levels are taken below."""
    if isinstance(x, TensorBase):
        return wrapped(<TensorBase>x, level, -1) if (<TensorBase>x).keys & (K_DERIVATIVES | K_WRAPPED) and storage_at(x, level) is None else x
    if isinstance(x, list):
        return [detached_from(y, level) for y in x]
    return x


cdef str name_at(int place):
    name = _names.get(place)
    if name is None:
        name = _names[place] = OPS[place].name.decode()
    return name


cdef int refuse_captured(trt_operator* op) except -1:
    raise RuntimeError(
        f"During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call in-place operation (aten::{op.name.decode()}_) that would mutate a captured "
        "Tensor. This is not supported; please rewrite the function being transformed to explicitly accept the mutated Tensor(s) as inputs.")


cdef object run_transformed(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel under the key."""
    cdef trt_thread_state* state = tls()
    cdef tuple arguments = box_arguments(op, v, False)
    cdef object target = <object>out if out != NULL else None, result
    cdef Level level = top()
    cdef Lowered here
    cdef int place = <int>(op - OPS), write = FRESH if mode == NO_OUT else mode
    cdef uint64_t included = state.included, excluded = state.excluded
    if level.maps:
        here = Lowered()
        if not concerns(arguments, target, level) and place not in _draws:
            enter_lower(here)
            try:
                return call_below(op, arguments, target, write)
            finally:
                leave_lower(here)
        if write == OUT and level.maps:
            return copy_into(op, arguments, target)
        enter_lower(here)
        try:
            return level.rule(level, name_at(place), place, arguments, target, write)
        finally:
            leave_lower(here)
    if not concerns(arguments, target, level):
        here = Lowered()
        enter_lower(here)
        try:
            result = call_below(op, arguments, target, write)
        finally:
            leave_lower(here)
        return result if write else rewrapped(result, level)
    if write and storage_at(target, level) is None and isinstance(target, TensorBase):
        refuse_captured(op)
    arguments = tuple([x if x is target else detached_from(x, level) for x in arguments])
    level.included, level.excluded = included, excluded
    state.excluded = excluded | K_TRANSFORM
    try:
        return call_boxed(op, arguments, target, write)
    finally:
        state.excluded = excluded


cdef object copy_into(trt_operator* op, tuple arguments, object target):
    """A call with out= inside vmap: the results are copied."""
    result = call_boxed(op, arguments, None, FRESH)
    if isinstance(target, TensorBase):
        return target.copy_(result)
    return tuple([t.copy_(r) for t, r in zip(target, result)])


cdef object call_below(trt_operator* op, tuple arguments, object target, int mode):
    """The operator with a level off the stack. A write is counted here: entries above count those of wrappers."""
    cdef uint64_t keys = 0
    cdef object result
    cdef TensorBase t
    if mode == INPLACE:
        t = <TensorBase?>target
        if t.requires_grad and t.grad_fn_ is None and t.base is None and tls().grad_mode and not t.keys & K_WRAPPED:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    result = call_boxed(op, arguments, target, mode)
    if mode and op.info == NULL and isinstance(target, TensorBase):
        for x in arguments:
            if isinstance(x, TensorBase):
                keys |= (<TensorBase>x).keys
        if not (keys | (<TensorBase>target).keys) & K_AUTOGRAD:
            bump_version(<TensorBase>target)
    return result


def call_row(int place, arguments, target=None, int mode=FRESH):
    """The operator at a place of the table with all its arguments, dispatched. They must be what the operator's public function would hand on."""
    return call_below(&OPS[place], tuple(arguments), target, mode)


def place_of_operator(str name not None):
    """The place of a row in the table. ValueError where no loaded row has the name."""
    cdef trt_operator* op = operator_named(name)
    if op == NULL or op.row == NULL:
        raise ValueError(f"there is no operator '{name}'")
    return <int>(op - OPS)


def returns_of(int place):
    """(kind of result: t a tensor, l a list, o another; whether it is a view) of an operator."""
    return chr(OPS[place].row.returned), bool(OPS[place].row.view)


def is_pointwise(int place):
    """Whether an operator is declared as an expression of elements."""
    return OPS[place].info != NULL


# ---- the key Python, at a level of grad or jvp ------------------------------------------------------------------------

cdef object unwrapped(object x, Level level):
    cdef WrappedStorage s
    if isinstance(x, TensorBase):
        s = storage_at(x, level)
        return x if s is None else s.value
    if isinstance(x, list):
        return [unwrapped(y, level) for y in x]
    return x


cdef object rewrapped(object x, Level level):
    if isinstance(x, TensorBase):
        return wrapped(<TensorBase>x, level, -1)
    if isinstance(x, list):
        return [rewrapped(y, level) for y in x]
    if isinstance(x, tuple):
        return type(x)([rewrapped(y, level) for y in x])    # with the names of an operator's results
    return x


cdef object view_of(TensorBase base, object x, Level level, bint differentiable):
    """A result that shares memory with the wrapper `base`: a view of it at this level, too, so that writes to one count for the other."""
    cdef TensorBase r, value
    if isinstance(x, (list, tuple)):
        return [view_of(base, y, level, differentiable) for y in x]
    value = <TensorBase?>x
    if not differentiable:
        r = alias_of(base)
        r.storage = storage_around(value, level, -1)
        return r
    r = make_view(base, value.ndim, value.sizes, value.strides, value.offset)
    r.storage = storage_around(value, level, -1)
    set_dtype(r, value.dtype)
    return r


cdef object run_below(trt_operator* op, const trt_value* v, PyObject* out, int mode):
    """The boxed kernel under the key Python while a level of grad or jvp is on its way down; otherwise that of tensor subclasses and modes."""
    cdef trt_thread_state* state = tls()
    cdef Level level
    cdef Lowered here
    cdef tuple arguments
    cdef object target, result
    cdef int write = FRESH if mode == NO_OUT else mode
    if not state.included & state.excluded & K_TRANSFORM:
        if not state.included & K_TRANSFORM and holds_wrapper(op, v, out):
            arguments = tuple([outlived(x) for x in box_arguments(op, v, False)])
            return call_boxed(op, arguments, outlived(<object>out) if out != NULL else None, write)
        return boxed_python(op, v, out, mode)
    level = top()
    arguments = box_arguments(op, v, False)
    target = <object>out if out != NULL else None
    here = Lowered()
    enter_lower(here)
    try:
        given = unwrapped(target, level)
        result = call_below(op, tuple([unwrapped(x, level) for x in arguments]), given, write)
    finally:
        leave_lower(here)
    if write:
        if target is None or isinstance(target, TensorBase):
            renew_geometry(target, level)
        else:
            for t in target:
                renew_geometry(t, level)
        return target if target is not None else result
    if op.row.view and storage_at(arguments[0], level) is not None:
        return view_of(<TensorBase>arguments[0], result, level, op != _detach)
    return rewrapped(result, level)


cdef bint holds_wrapper(trt_operator* op, const trt_value* v, PyObject* out) except -1:
    for x in box_arguments(op, v, False):
        for y in (x if isinstance(x, (list, tuple)) else (x,)):
            if isinstance(y, TensorBase) and isinstance((<TensorBase>y).storage, WrappedStorage):
                return True
    return out != NULL and isinstance(<object>out, TensorBase) and isinstance((<TensorBase>out).storage, WrappedStorage)


cdef object outlived(object x):
    """The value of a wrapper whose level has ended. RuntimeError at a level of vmap: which of the batch's elements is meant, nothing says."""
    if isinstance(x, (list, tuple)):
        return type(x)([outlived(y) for y in x])
    while isinstance(x, TensorBase) and isinstance((<TensorBase>x).storage, WrappedStorage):
        if (<WrappedStorage>(<TensorBase>x).storage).level.maps:
            raise RuntimeError(
                "a tensor has escaped from inside a function being vmapped: it was kept beyond the call (in a list, a global, an attribute), where it stands for no "
                "element of the batch. Return it from the function instead. See https://pytorch.org/functorch/stable/ux_limitations.html")
        x = (<WrappedStorage>(<TensorBase>x).storage).value
    return x


cdef int renew_geometry(object target, Level level) except -1:
    """A wrapper's geometry after a write that may have resized its value."""
    cdef WrappedStorage s = storage_at(target, level)
    if s is not None:
        take_geometry(<TensorBase>target, s.value, s.batch_dim)
    return 0


# ---- factories -----------------------------------------------------------------------------------------------------

cdef object _make_mapped = None


cdef dict _rules = {}


def set_rule(str name, f):
    """What stands in the place of a call that is no operator's while levels are active: of "function" f(Function, arguments), of "multinomial" f(its arguments)."""
    _rules[name] = f


def rule_of(str name):
    """The function that `set_rule` was given."""
    return _rules[name]


def set_factory_rule(f):
    """f(level, function, args, kwargs) makes tensors at a level of vmap, with the level off the stack; NotImplemented: the same for all of the batch."""
    global _make_mapped
    _make_mapped = f


def make_transformed(function, tuple args, dict kwargs):
    """A factory's call while levels are active."""
    cdef trt_thread_state* state = tls()
    cdef Level level
    cdef Lowered here
    cdef object result = NotImplemented
    if not state.included & K_TRANSFORM:
        return NotImplemented
    if args and isinstance(args[0], TensorBase) and function.__name__ in ("tensor", "as_tensor", "asarray"):
        return NotImplemented              # a copy or a conversion, which is made of operators
    level = top()
    if level is None:
        return NotImplemented
    requires_grad = kwargs.pop("requires_grad", False)
    here = Lowered()
    enter_lower(here)
    try:
        if level.maps:
            result = _make_mapped(level, function, args, kwargs)
        else:
            args = tuple([unwrapped(x, level) for x in args])
        if result is NotImplemented:
            result = function(*args, **kwargs)
    finally:
        leave_lower(here)
    if not level.maps and isinstance(result, TensorBase):
        result = wrapped(<TensorBase>result, level, -1)
    if requires_grad:
        result.requires_grad = True
    return result


# ---- another thread --------------------------------------------------------------------------------------------------

class ThreadState:
    """What a thread that goes on with another's backward pass takes over from it."""

    def __init__(self):
        self.levels = list(stack())

    def __call__(self):
        stack()[:] = self.levels


cdef trt_operator* _detach = operator_named("detach")
cdef boxed_kernel boxed_python = registered_kernel(KEY_PYTHON)


def install():
    """Put the kernels under their keys, of every operator."""
    cdef trt_operator* op
    cdef int i
    for i in range(_table_size()):
        op = &OPS[i]
        if op.name != NULL and op.row != NULL and op.mask & K_PYTHON and not op.mask & K_TRANSFORM:
            # one boxed kernel stands under every key; rows without one under Python are composed of others
            op.kernels[<int>KEY_TRANSFORM] = op.kernels[<int>KEY_PYTHON] if op.row.pack == NULL else op.row.pack
            op.mask |= K_TRANSFORM
    register_boxed(KEY_TRANSFORM, run_transformed)
    register_boxed(KEY_PYTHON, run_below)
    _set_make_transformed(make_transformed)
    set_wrappers(wrapper_parts, wrap, all_levels)


install()
