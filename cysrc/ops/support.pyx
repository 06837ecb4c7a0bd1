"""What generated operator modules share: autograd helpers, checks of outputs, allocation of results."""
from tensorrt_lite._C.core.hints import hinted
from tensorrt_lite._C.core.storage cimport device_hooks
from tensorrt_lite._C.core.tensor cimport (
    PLACE_PINNED,     TensorBase, bump_version, version_of, shape_of, K_AUTOGRAD, empty_tensor, empty_strided_tensor, empty_like_tensor, non_overlapping_dense,
    channels_last_strides, checked_numel, resize_tensor, same_sizes, CREATED_NO_GRAD, CREATED_INFERENCE, CREATED_MULTI_OUTPUT, K_PYTHON, K_WRAPPED, shape_text, place_of, place_of_device, MAX_DIMS)
from tensorrt_lite._C.core.dtype cimport dtype as dtype_type, category, CAT_INT, CAT_FLOAT, CAT_COMPLEX, Scalar, F16, F32, F64, BF16, C32, C64, I64, BOOL, check_number, dtype_of, has_loops, is_reduced_floating_type
from tensorrt_lite._C.core.device cimport DEV_CPU, DEV_META, parse_device, memory_format, MF_CONTIGUOUS, MF_PRESERVE, MF_CHANNELS_LAST
from tensorrt_lite._C.core.device import strided
from tensorrt_lite._C.core.python_key import _set_write_check
from tensorrt_lite._C.core import storage_types  # noqa: F401 (the kernel of the key StorageOnly)
from tensorrt_lite._C.core.args cimport Dims, to_scalar, parse_dtype, parse_int, parse_double, parse_bool, parse_dims, parse_size, as_tensor_arg, tensor_list, dims_tuple, wrap_dim
from tensorrt_lite._C.core.dispatch cimport tls, attach, OUT, INPLACE, FRESH
from tensorrt_lite._C.core.allocator cimport trt_block, trt_block_hold, block_drop
from tensorrt_lite._C.core.iterator cimport prepare_out, copy_elements
from tensorrt_lite._C.core.text cimport dtype_text, cpp_type_text
from tensorrt_lite._C.core.storage cimport prepare_write
from tensorrt_lite._C.core.parallel cimport parallel_for, GRAIN
from tensorrt_lite._C.autograd.node cimport Node, check_inplace, set_history, ops_namespace
from tensorrt_lite._C.autograd.operator_nodes cimport OpNode, without_derivative as without_derivative_of
from tensorrt_lite._C.autograd.forward cimport tangent_of, refuse_forward_out

cdef extern from "numpy_names.h":
    int trt_take_numpy_names(object function) except -1

attach()


cdef object _ops = ops_namespace()


def take_numpy_names(function):
    """Let a compiled function take NumPy's names of its arguments, too: axis, keepdims, x, a, x1 and x2."""
    trt_take_numpy_names(function)


cdef bint any_requires_grad(list tensors) noexcept:
    for t in tensors:
        if t is not None and (<TensorBase>t).requires_grad:
            return True
    return False


cdef int set_list_edges(OpNode node, list tensors) except -1:
    cdef int i = 0
    for t in tensors:
        node.set_edge(i, <TensorBase>t)
        i += 1
    return 0


cdef object shapes_of_list(list tensors):
    return [shape_of(<TensorBase>t) for t in tensors]


cdef bint differentiable(TensorBase t) noexcept:
    return category[t.dtype] >= CAT_FLOAT


cdef bint holds_any(object condition, bint unknown=True) except -1:
    """Whether any element is true, for formulas that choose a way that is right for all numbers. Inside of transforms the whole batch is looked at.
    `unknown` is the answer where elements are not to be read: of meta tensors, and where a mode or a class runs operators, which would have to read, too."""
    if (<TensorBase?>condition).keys & K_WRAPPED:
        from tensorrt_lite._C.core.transform import value_of
        while (<TensorBase>condition).keys & K_WRAPPED:
            condition = value_of(condition)
    if (<TensorBase>condition).device_type == DEV_META or ((<TensorBase>condition).keys | tls().included) & ~tls().excluded & K_PYTHON:
        return unknown
    return bool(condition.any())


cdef int set_list_history(object result, OpNode node, bint views) except -1:
    cdef int i = 0
    cdef TensorBase t
    node.n_inputs = len(result)
    for x in result:
        t = <TensorBase>x
        set_history(t, node, i)
        if views:
            t.creation_meta = CREATED_MULTI_OUTPUT
        i += 1
    return 0


cdef int set_tuple_history(object result, OpNode node) except -1:
    cdef int i = 0
    for x in result:
        if x is not None and differentiable(<TensorBase>x):
            set_history(<TensorBase>x, node, i)
        i += 1
    return 0


cdef int note_view(object result) except -1:
    """A view made while nothing is recorded: later writes through it can't be followed."""
    cdef TensorBase t
    if isinstance(result, TensorBase):
        t = <TensorBase>result
        if t.base is not None and t.base.requires_grad and not tls().grad_mode:
            t.creation_meta = CREATED_INFERENCE if tls().inference_mode else CREATED_NO_GRAD
        return 0
    for x in result:
        note_view(x)
    return 0


cdef int refuse_out(str name) except -1:
    raise RuntimeError(
        f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")


cdef int check_out(object out, str name) except -1:
    if not isinstance(out, TensorBase):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if (<TensorBase>out).requires_grad and tls().grad_mode:
        refuse_out(name)
    prepare_write((<TensorBase>out).storage, name)
    return 0


cdef int check_out_type(str name, TensorBase out, int dtype) except -1:
    """For operators whose result is never converted on the way to `out`."""
    if out.dtype != dtype:
        raise RuntimeError(
            f"Expected out tensor to have dtype {cpp_type_text(dtype)}, but got {cpp_type_text(out.dtype)} instead ({name})")
    return 0


cdef TensorBase write_to_out(str name, TensorBase result, TensorBase out, int mode, bint exact=False):
    """What a kernel returns that computed its result apart from `out`: the result, or `out` resized to it and filled. `exact` refuses to convert."""
    if mode == FRESH or result is out:
        return result
    if exact:
        check_out_type(name, out, result.dtype)
    prepare_out(name, out, result.ndim, result.sizes, result.dtype, mode)
    copy_elements(out, result)
    return out


cdef int refuse_history(str name, TensorBase result) except -1:
    """A result that is recorded, or has a tangent, cannot go to `out`."""
    if result.requires_grad and tls().grad_mode:
        refuse_out(name)
    if tangent_of(result) is not None:
        refuse_forward_out(name.encode())
    return 0


cpdef object deliver_result(str name, object result, object out, bint exact=False):
    """What a composition returns: its result, or a checked `out` that copy_ fills, so that custom devices and versions see the write.

    Raises TypeError where `out` or the result is no tensor, RuntimeError where devices differ, where the result is recorded, and where its dtype
    differs (`exact`) or cannot be cast.
    """
    cdef TensorBase r, o
    if out is None:
        return result
    check_out(out, name)
    r = <TensorBase?>result
    o = <TensorBase>out
    if place_of(r) != place_of(o):
        raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but found at least two devices, {(<object>r).device} and {(<object>o).device}!")
    refuse_history(name, r)
    if exact:
        check_out_type(name, o, r.dtype)
    prepare_out(name, o, r.ndim, r.sizes, r.dtype, OUT)
    return _ops.copy_(o, r)


cdef int run_held(task_fn task, void* args, int64_t items, int64_t work, TensorBase a, TensorBase b, TensorBase c=None, TensorBase d=None) except -1:
    """Run a kernel on the memory of a to d, without the GIL and in several threads when its items are `work` elements of enough work."""
    cdef trt_block* blocks[4]
    cdef int i
    if work < 8192:
        task(args, 0, items)
        return 0
    blocks[0] = a.storage.block
    blocks[1] = b.storage.block
    blocks[2] = blocks[0] if c is None else c.storage.block
    blocks[3] = blocks[0] if d is None else d.storage.block
    for i in range(4):
        trt_block_hold(blocks[i])
    with nogil:
        parallel_for(items, 1 + GRAIN // 4 * items // (work + 1), 1, task, args)
    for i in range(4):
        block_drop(blocks[i])
    return 0


cdef int check_saved(str name, TensorBase t, int dtype, int64_t numel, TensorBase like) except -1:
    """A result that the forward pass kept: a dispatch mode may have answered with another one."""
    if t.dtype != dtype or t.numel != numel or not t.contiguous or place_of(t) != place_of(like):
        raise RuntimeError(f"{name}: the backward pass expects {numel} numbers of type {dtype_text(dtype)} from the forward pass, got {dtype_text(t.dtype)} of shape {shape_text(t)}")
    return 0


cdef int check_saved_like(str name, TensorBase t, TensorBase like, int dtype) except -1:
    """The same for what has the sizes of another tensor, a gradient among them, in any memory order."""
    if t.dtype != dtype or not same_sizes(t, like) or place_of(t) != place_of(like):
        raise RuntimeError(f"{name}: the backward pass expects type {dtype_text(dtype)} and shape {shape_text(like)}, got {dtype_text(t.dtype)} of shape {shape_text(t)}")
    return 0


cdef int check_outs(object out, str name, int n) except -1:
    if not isinstance(out, (tuple, list)) or len(out) != n:
        raise TypeError(f"{name}(): argument 'out' must be tuple of {n} Tensors, not {type(out).__name__}")
    for i, t in enumerate(out):
        check_out(t, name)
        if i and not has_loops((<TensorBase>t).dtype):
            raise NotImplementedError(f"\"{name}\" not implemented for a result of {dtype_of((<TensorBase>t).dtype)}")        # the dispatcher sees the first alone
    return 0


def check_target(target, str name not None, int mode, int count):
    """What entries check of a tensor that an operator is to write to, for operators that are called as objects."""
    if mode == INPLACE:
        check_inplace(<TensorBase?>target, name)
    elif count == 1:
        check_out(target, name)
    else:
        check_outs(target, name, count)


_set_write_check(check_target)


cdef int bump_outs(object out) except -1:
    for t in out:
        bump_version(<TensorBase>t)
    return 0


cdef object finish_inplace(TensorBase result, uint64_t keys):
    """The version is bumped here unless the autograd wrapper ran (it bumps before it records)."""
    if not keys & K_AUTOGRAD:
        bump_version(result)
    return result


cdef TensorBase new_like(TensorBase t, int ndim, const int64_t* sizes, int dtype):
    """A fresh contiguous tensor on `t`'s device."""
    return empty_tensor(ndim, sizes, dtype, place_of(t))


cdef TensorBase result_tensor(str name, TensorBase out, int mode, int ndim, const int64_t* sizes, int dtype, TensorBase like):
    """Where a kernel writes: a fresh tensor, or `out` checked and resized. The kernel must honour its strides and dtype."""
    if mode == FRESH:
        return empty_tensor(ndim, sizes, dtype, place_of(like))
    prepare_out(name, out, ndim, sizes, dtype, mode)
    return out


# ---- factories -----------------------------------------------------------------------------------------------------

cdef int factory_options(Options* o, str op, object dtype, object device, object layout, object pin_memory, int default_code) except -1:
    """dtype and device of a new tensor; the default device when none is named."""
    o.dtype = parse_dtype(dtype, op)
    if o.dtype < 0:
        o.dtype = default_code
    o.device = factory_place(device, -1, pin_memory)
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"{op}(): layout {layout} is not implemented, only torch.strided is")
    return 0


cdef int factory_place(object device, int place, object pin_memory) except -1:
    """Where a new tensor goes: to the device named, else to `place` (-1: the default device), pinned when that is asked for."""
    if device is not None or place < 0:
        place = place_of_device(parse_device(device))
    if not pin_memory:
        return place
    if place != DEV_CPU:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    try:
        device_hooks()
    except RuntimeError:
        raise RuntimeError("Cannot access accelerator device when none is available.") from None
    return PLACE_PINNED


cdef TensorBase finish_factory(TensorBase t, object requires_grad):
    if requires_grad is not False and requires_grad is not None:
        if requires_grad is not True and type(requires_grad).__name__ != "bool_":  # NumPy's
            raise TypeError(f"factory of a {dtype_text(t.dtype)} tensor of shape {shape_text(t)}: argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
        if requires_grad and category[t.dtype] < CAT_FLOAT:
            raise hinted("float gradient", RuntimeError("Only Tensors of floating point and complex dtype can require gradients"))
        if requires_grad:
            (<object>t).requires_grad = True
    if tls().inference_mode:
        t.inference = 1
    return t


cdef TensorBase factory_tensor(const Dims* d, const Options* o):
    checked_numel(d.n, d.v)
    return empty_tensor(d.n, d.v, o.dtype, o.device)


cdef TensorBase factory_out(object out, str op, const Dims* d, object dtype):
    """The given output of a factory, resized; a dtype named beside it must be the output's."""
    cdef TensorBase t
    check_out(out, op)
    t = <TensorBase>out
    if dtype is not None and parse_dtype(dtype, op) != t.dtype:
        raise RuntimeError(f"dtype {dtype_text(parse_dtype(dtype, op))} does not match dtype of out parameter ({dtype_text(t.dtype)})")
    checked_numel(d.n, d.v)
    resize_tensor(t, d.n, d.v, -1)
    bump_version(t)
    return t


cdef TensorBase factory_like(TensorBase t, str op, object dtype, object layout, object device, object fmt, object pin_memory):
    """An uninitialised tensor of t's sizes: its strides too when they are dense and no memory format is named."""
    cdef int code = parse_dtype(dtype, op), target = factory_place(device, place_of(t), pin_memory)
    cdef int64_t strides[MAX_DIMS]
    if layout is not None and layout is not strided:
        raise NotImplementedError(f"{op}(): layout {layout} is not implemented, only torch.strided is")
    if code < 0:
        code = t.dtype
    if fmt is not None and (<memory_format?>fmt).code != MF_PRESERVE:
        if (<memory_format>fmt).code == MF_CONTIGUOUS:
            return empty_tensor(t.ndim, t.sizes, code, target)
        if t.ndim != (4 if (<memory_format>fmt).code == MF_CHANNELS_LAST else 5):
            raise RuntimeError(f"required rank {4 if (<memory_format>fmt).code == MF_CHANNELS_LAST else 5} tensor to use channels_last format")
        channels_last_strides(t.ndim, t.sizes, strides)
        return empty_strided_tensor(t.ndim, t.sizes, strides, code, target)
    if target != place_of(t):
        if non_overlapping_dense(t):
            return empty_strided_tensor(t.ndim, t.sizes, t.strides, code, target)
        return empty_tensor(t.ndim, t.sizes, code, target)
    return empty_like_tensor(t, code)


cdef int check_filling(const Scalar* value, TensorBase t) except -1:
    """check_number of what fills a tensor. One element of a half type or float8 is converted, as PyTorch does: to infinity or the largest number."""
    if t.numel == 1 and is_reduced_floating_type(t.dtype) and value.kind != 3:
        return 0
    return check_number(value, C64 if t.dtype == C32 and t.numel != 1 else t.dtype)       # several of complex32 become infinite


def check_number_argument(value, dtype_type d not None):
    """check_number for compositions: the number itself, where it goes into the dtype."""
    cdef Scalar s
    to_scalar(value, &s)
    check_number(&s, d.code)
    return value


# ---- for compositions written in Python (tensorrt_lite/_compositions): arguments as compiled entries take them, with their errors --------------------

def tensor_argument(x, str function not None, str name not None):
    """x, which must be a tensor."""
    return as_tensor_arg(x, function, name)


def tensor_list_argument(x, str function not None, str name not None):
    """A list of the tensors of a sequence."""
    return tensor_list(x, function, name)


def int_argument(x, str function not None, str name not None):
    return parse_int(x, function, name)


def float_argument(x, str function not None, str name not None):
    return parse_double(x, function, name)


def bool_argument(x, str function not None, str name not None):
    return parse_bool(x, function, name)


def dims_argument(x, str function not None, str name not None):
    """One int or a sequence of ints, as a tuple."""
    cdef Dims d
    parse_dims(x, &d, function, name)
    return dims_tuple(&d)


def size_argument(tuple given not None, str function not None, str name not None):
    """Separate ints or one sequence of them, as a tuple."""
    cdef Dims d
    parse_size(given, &d, function, name)
    return dims_tuple(&d)


def wrapped_dim(int64_t dim, int ndim):
    """A dimension that may count from the end, in [0, ndim); IndexError."""
    return wrap_dim(dim, ndim)


def type_name(dtype_type d not None):
    """How errors name a dtype: Float, Long, ..."""
    return dtype_text(d.code)


def check_output(out, str name not None):
    """What entries check of `out`: a tensor that is not recorded and may be written to."""
    check_out(out, name)


def check_outputs(out, str name not None, int n):
    check_outs(out, name, n)


def without_derivative(results, str operator not None, tuple inputs not None):
    """Results computed out of autograd's sight: their backward pass raises, naming PyTorch's operator."""
    return without_derivative_of(results, operator, inputs)


def holds_elements(TensorBase t not None):
    """Whether a tensor's elements can be read: those of meta and fake tensors cannot."""
    return t.device_type != DEV_META or t.keys & K_PYTHON != 0 and not hasattr(t, "_holds_no_elements")


def deliver_unrecorded(str name not None, object result, object out):
    """Into an `out` that may require gradients: PyTorch refuses that of differentiable operators alone."""
    cdef int recording = tls().grad_mode
    tls().grad_mode = 0
    try:
        return deliver_result(name, result, out, True)
    finally:
        tls().grad_mode = recording
