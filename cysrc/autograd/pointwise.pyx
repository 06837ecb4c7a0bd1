"""Entries, dispatch and autograd of declared pointwise operators: one set of functions, driven by each operator's description.

An entry accepts tensors and Python numbers, hands over to __torch_function__ when an argument's class asks for it,
dispatches on the keys of the tensors, and under the Autograd key records one PointwiseNode.
"""
from libc.stdint cimport int64_t, uint64_t
from cpython.object cimport PyObject
from tensorrt_lite._C.core.dtype cimport Scalar, category, dtype_of, CAT_FLOAT, CAT_BOOL, CAT_COMPLEX
from tensorrt_lite._C.core.storage cimport is_writable, make_writable
from tensorrt_lite._C.core.tensor cimport (
    TensorBase, same_sizes, version_of, bump_version, shape_text, K_AUTOGRAD, K_FORWARD_AD, K_DERIVATIVES, K_STORAGE_ONLY, K_BACKENDS, K_DISPATCHED, KEY_META, KEY_CPU, KEY_CUDA, KEY_AUTOGRAD, KEY_DECOMPOSE, KEY_FORWARD_AD, KEY_CUSTOM, KEY_PYTHON, KEY_SPARSE, KEY_TRACER, KEY_AUTOCAST, shape_of)
from tensorrt_lite._C.core.dispatch cimport (
    tls, attach, resolve, redispatch, BELOW, trt_operator, trt_row, trt_value, register_kernel, take_storage_only, FRESH, OUT, INPLACE, OPS, CORE)
from tensorrt_lite._C.core.boxing cimport box
from tensorrt_lite._C.core.iterator cimport PointwiseInfo, PROMOTE_BOOL_OUT, PROMOTE_FIRST_BOOL, PROMOTE_REAL_OUT, pointwise1, pointwise2, pointwise3, result_code
from tensorrt_lite._C.core.args cimport is_plain, is_number, to_scalar, wrap_number, scalar_object
from tensorrt_lite._C.autograd.node cimport set_history, rebase_history, check_inplace, check_recorded_write, output_alias, Node
from tensorrt_lite._C.autograd.operator_nodes cimport PointwiseNode, new_pointwise_node, input_meta, pack_inputs, name_saved
from tensorrt_lite._C.autograd.saved_tensors cimport pack_saved
from tensorrt_lite._C.autograd.forward cimport (
    tangent_of, fitting, give_tangent, write_tangent, tangent_of_pointwise, refuse_forward, refuse_forward_out)

from tensorrt_lite._C.autograd.node import refuse_inference

cdef extern from *:
    """
    #define TRT_SLOT(mask, i) ((mask) >> (i) & 1)
    """
    bint slot "TRT_SLOT"(unsigned mask, int i) nogil

attach()

cdef enum:
    BOXED = 8                      # most arguments of a pointwise operator

ctypedef TensorBase (*fn1)(PointwiseInfo* info, TensorBase a, const Scalar* params, TensorBase out, int mode)
ctypedef TensorBase (*fn2)(PointwiseInfo* info, TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode)
ctypedef TensorBase (*fn3)(PointwiseInfo* info, TensorBase a, TensorBase b, TensorBase c, const Scalar* params, TensorBase out, int mode)


cdef TensorBase cpu1(PointwiseInfo* info, TensorBase a, const Scalar* params, TensorBase out, int mode):
    return pointwise1(info, a, params, out, mode)


cdef TensorBase cpu2(PointwiseInfo* info, TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode):
    return pointwise2(info, a, b, params, out, mode)


cdef TensorBase cpu3(PointwiseInfo* info, TensorBase a, TensorBase b, TensorBase c, const Scalar* params, TensorBase out, int mode):
    return pointwise3(info, a, b, c, params, out, mode)


# Boxed: tensors, then parameters.
cdef TensorBase boxed1(PointwiseInfo* info, TensorBase a, const Scalar* params, TensorBase out, int mode):
    cdef trt_value v[BOXED]
    v[0].p = <void*>a
    return box_pointwise(info, v, 1, params, out, mode)


cdef TensorBase boxed2(PointwiseInfo* info, TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode):
    cdef trt_value v[BOXED]
    v[0].p = <void*>a
    v[1].p = <void*>b
    return box_pointwise(info, v, 2, params, out, mode)


cdef TensorBase boxed3(PointwiseInfo* info, TensorBase a, TensorBase b, TensorBase c, const Scalar* params, TensorBase out, int mode):
    cdef trt_value v[BOXED]
    v[0].p = <void*>a
    v[1].p = <void*>b
    v[2].p = <void*>c
    return box_pointwise(info, v, 3, params, out, mode)


cdef TensorBase box_pointwise(PointwiseInfo* info, trt_value* v, int n, const Scalar* params, TensorBase out, int mode):
    cdef int i
    for i in range(info.nparams):
        v[n + i].p = <void*>&params[i]
    return <TensorBase>box(info.op, v, <PyObject*>out, mode)


cdef object unpack_pointwise(trt_operator* op, const trt_value* v, void* out, int mode):
    """The call of a pointwise operator from boxed arguments."""
    cdef PointwiseInfo* info = <PointwiseInfo*>op.info
    cdef Scalar params[4]
    cdef int i
    for i in range(info.nparams):
        params[i] = (<const Scalar*>v[info.nin + i].p)[0]
    if info.nin == 1:
        return call1(info, <TensorBase>v[0].p, params, <TensorBase>out, mode)
    if info.nin == 2:
        return call2(info, <TensorBase>v[0].p, <TensorBase>v[1].p, params, <TensorBase>out, mode)
    return call3(info, <TensorBase>v[0].p, <TensorBase>v[1].p, <TensorBase>v[2].p, params, <TensorBase>out, mode)


cdef object invoke_pointwise(trt_operator* op, void* kernel, const trt_value* v, void* out, int mode):
    """A kernel's call from boxed arguments, undispatched."""
    cdef PointwiseInfo* info = <PointwiseInfo*>op.info
    cdef TensorBase target = None if out == NULL else <TensorBase>out
    cdef Scalar params[4]
    cdef int i
    for i in range(info.nparams):
        params[i] = (<const Scalar*>v[info.nin + i].p)[0]
    if info.nin == 1:
        return (<fn1>kernel)(info, <TensorBase>v[0].p, params, target, mode)
    if info.nin == 2:
        return (<fn2>kernel)(info, <TensorBase>v[0].p, <TensorBase>v[1].p, params, target, mode)
    return (<fn3>kernel)(info, <TensorBase>v[0].p, <TensorBase>v[1].p, <TensorBase>v[2].p, params, target, mode)


cdef inline int refuse_out(PointwiseInfo* info) except -1:
    raise RuntimeError(
        f"{info.name.decode()}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")


cdef inline unsigned slots_to_save(PointwiseInfo* info, PointwiseNode n) noexcept:
    """Bit i: what slot i + 1 holds is read by a gradient that is wanted."""
    cdef unsigned m = info.save_mask, wanted = 0
    if n.e0 is not None:
        wanted = m >> 8
    if n.e1 is not None:
        wanted |= m >> 16
    if n.e2 is not None:
        wanted |= m >> 24
    return wanted


cdef inline int finish(PointwiseNode n, unsigned wanted, TensorBase r, int mode) except -1:
    if slot(wanted, 3):
        n.s4 = output_alias(r) if not n.saved_state else pack_saved(output_alias(r), True, False)
        n.v4 = version_of(r) + (1 if mode == INPLACE else 0)
    if mode == INPLACE:
        bump_version(r)
        rebase_history(r, n)
    else:
        set_history(r, n, 0)
    return 0


cdef inline int64_t version_to_save(TensorBase t) except -1:
    if t.inference:
        refuse_inference()
    return version_of(t)


cdef inline bint differentiable_result(TensorBase r) noexcept:
    return category[r.dtype] >= CAT_FLOAT


cdef inline object meta_of(TensorBase x, TensorBase r):
    return None if x.dtype == r.dtype and same_sizes(x, r) else input_meta(x)


cdef TensorBase autograd1(PointwiseInfo* info, TensorBase a, const Scalar* params, TensorBase out, int mode):
    cdef TensorBase r, original = a
    cdef PointwiseNode n
    cdef int i
    if not tls().grad_mode or not info.differentiable or not a.requires_grad:
        r = (<fn1>redispatch(info.op, a.keys, BELOW(KEY_AUTOGRAD)))(info, a, params, out, mode)
        if mode == INPLACE:
            bump_version(r)
        return r
    if mode == OUT:
        refuse_out(info)
    if mode == INPLACE:
        check_recorded_write(out)
    n = new_pointwise_node(info)
    if slot(info.save_mask, 1):
        if mode == INPLACE:
            original = a.clone()
        n.s1 = original
        n.v1 = version_to_save(original)
    n.set_edge(0, a)
    if n.saved_state:
        pack_inputs(n)
    for i in range(info.nparams):
        n.params[i] = params[i]
    r = (<fn1>redispatch(info.op, a.keys, BELOW(KEY_AUTOGRAD)))(info, a, params, out, mode)
    if r.dtype != a.dtype:
        n.m1 = input_meta(a)
    if differentiable_result(r):
        finish(n, info.save_mask >> 8, r, mode)
    elif mode == INPLACE:
        bump_version(r)
    return r


cdef TensorBase autograd2(PointwiseInfo* info, TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode):
    cdef TensorBase r, original = a
    cdef PointwiseNode n
    cdef unsigned wanted
    cdef int i
    if not tls().grad_mode or not info.differentiable or not (a.requires_grad or b.requires_grad):
        r = (<fn2>redispatch(info.op, a.keys | b.keys, BELOW(KEY_AUTOGRAD)))(info, a, b, params, out, mode)
        if mode == INPLACE:
            bump_version(r)
        return r
    if mode == OUT:
        refuse_out(info)
    if mode == INPLACE:
        check_recorded_write(out)
    n = new_pointwise_node(info)
    n.set_edge(0, a)
    n.set_edge(1, b)
    wanted = slots_to_save(info, n)
    if slot(wanted, 0):
        if mode == INPLACE:
            original = a.clone()
        n.s1 = original
        n.v1 = version_to_save(original)
    if slot(wanted, 1):
        n.s2 = b
        n.v2 = version_to_save(b)
        if b is out:
            n.s2 = original = b.clone()
            n.v2 = version_to_save(original)
    for i in range(info.nparams):
        n.params[i] = params[i]
    if n.saved_state:
        pack_inputs(n)
    r = (<fn2>redispatch(info.op, a.keys | b.keys, BELOW(KEY_AUTOGRAD)))(info, a, b, params, out, mode)
    if not differentiable_result(r):
        if mode == INPLACE:
            bump_version(r)
        return r
    n.m1 = meta_of(a, r)
    n.m2 = meta_of(b, r)
    finish(n, wanted, r, mode)
    return r


cdef TensorBase autograd3(PointwiseInfo* info, TensorBase a, TensorBase b, TensorBase c, const Scalar* params, TensorBase out, int mode):
    cdef TensorBase r, original = a
    cdef PointwiseNode n
    cdef unsigned wanted
    cdef int i
    if not tls().grad_mode or not info.differentiable or not (a.requires_grad or b.requires_grad or c.requires_grad):
        r = (<fn3>redispatch(info.op, a.keys | b.keys | c.keys, BELOW(KEY_AUTOGRAD)))(info, a, b, c, params, out, mode)
        if mode == INPLACE:
            bump_version(r)
        return r
    if mode == OUT:
        refuse_out(info)
    if mode == INPLACE:
        check_recorded_write(out)
    n = new_pointwise_node(info)
    n.set_edge(0, a)
    n.set_edge(1, b)
    n.set_edge(2, c)
    wanted = slots_to_save(info, n)
    if slot(wanted, 0):
        if mode == INPLACE and a is out:
            original = a.clone()
        n.s1 = original
        n.v1 = version_to_save(original)
    if slot(wanted, 1):
        n.s2 = b.clone() if b is out else b
        n.v2 = version_to_save(<TensorBase>n.s2)
    if slot(wanted, 2):
        n.s3 = c
        n.v3 = version_to_save(c)
    for i in range(info.nparams):
        n.params[i] = params[i]
    if n.saved_state:
        pack_inputs(n)
    r = (<fn3>redispatch(info.op, a.keys | b.keys | c.keys, BELOW(KEY_AUTOGRAD)))(info, a, b, c, params, out, mode)
    if not differentiable_result(r):
        if mode == INPLACE:
            bump_version(r)
        return r
    n.m1 = meta_of(a, r)
    n.m2 = meta_of(b, r)
    n.m3 = meta_of(c, r)
    finish(n, wanted, r, mode)
    return r


cdef TensorBase run_below(PointwiseInfo* info, int n, PyObject** inputs, const Scalar* params, TensorBase out, int mode):
    """The operator below ForwardAD, on the same arguments."""
    cdef uint64_t grad = 0, keys = 0
    cdef TensorBase t
    cdef int i
    cdef void* f
    for i in range(n):
        t = <TensorBase>inputs[i]
        grad |= t.keys & K_AUTOGRAD
        # neither a number nor, of two, a scalar beside something on a device says where to compute
        if not t.wrapped_number and not (n == 2 and t.ndim == 0 and (<TensorBase>inputs[1 - i]).ndim and (<TensorBase>inputs[1 - i]).device_type):
            keys |= t.keys & (K_BACKENDS | K_DISPATCHED)
    if keys == 0:
        keys = (<TensorBase>inputs[0]).keys & (K_BACKENDS | K_DISPATCHED)
    f = resolve(info.op, keys | grad | (out.keys & (K_AUTOGRAD | K_BACKENDS | K_DISPATCHED) if mode else 0))
    if n == 1:
        return (<fn1>f)(info, <TensorBase>inputs[0], params, out, mode)
    if n == 2:
        return (<fn2>f)(info, <TensorBase>inputs[0], <TensorBase>inputs[1], params, out, mode)
    return (<fn3>f)(info, <TensorBase>inputs[0], <TensorBase>inputs[1], <TensorBase>inputs[2], params, out, mode)


cdef TensorBase forward_pointwise(PointwiseInfo* info, int n, PyObject** inputs, const Scalar* params, TensorBase out, int mode):
    cdef PyObject* slots[5]
    cdef uint64_t before = tls().excluded
    cdef list tangents = [tangent_of(<TensorBase>inputs[i]) for i in range(n)], kept = []
    cdef TensorBase r
    cdef int i
    cdef bint found = False, recorded = False
    for i in range(n):
        found = found or tangents[i] is not None and not tls().inference_mode
        recorded = recorded or (<TensorBase>inputs[i]).requires_grad
    if mode == OUT and (found or tangent_of(out) is not None):
        refuse_forward_out(info.name)
    if mode == INPLACE and recorded and tls().grad_mode and found and category[out.dtype] >= CAT_FLOAT:
        return write_recorded(info, n, inputs, params, out)
    tls().excluded = before | K_FORWARD_AD
    try:
        slots[0] = slots[4] = NULL
        for i in range(3):
            slots[i + 1] = inputs[i] if i < n else NULL
            if i < n and found and mode == INPLACE and <TensorBase>inputs[i] is out and slot(info.save_mask, i + 1):
                # the formula reads the value before the write
                kept.append((<TensorBase>inputs[i]).clone())
                slots[i + 1] = <PyObject*>kept[len(kept) - 1]
        r = run_below(info, n, inputs, params, out, mode)
        if found and category[r.dtype] >= CAT_FLOAT:
            if not info.differentiable:
                if mode == INPLACE and info.promote & (PROMOTE_BOOL_OUT | PROMOTE_FIRST_BOOL):      # a comparison's answer
                    write_tangent(r, None)
                    return r
                refuse_forward(info.name)
            slots[4] = <PyObject*>r
            value = tangent_of_pointwise(info, r, slots, params, tangents)
            if mode != INPLACE:
                give_tangent(r, value, tangents)
            else:
                write_tangent(r, None if value is None else fitting(<TensorBase>value, r, tangents))
        elif mode == INPLACE:
            write_tangent(r, None)
    finally:
        tls().excluded = before
    return r


cdef TensorBase write_recorded(PointwiseInfo* info, int n, PyObject** inputs, const Scalar* params, TensorBase out):
    """In place where a Node saves the old value, whose tangent it needs: a copy of what the call without writing returns."""
    cdef PyObject* given[3]
    cdef int i
    cdef TensorBase old = out.clone(), r
    for i in range(n):
        given[i] = <PyObject*>old if <TensorBase>inputs[i] is out else inputs[i]
    r = forward_pointwise(info, n, given, params, None, FRESH)
    if category[r.dtype] > category[out.dtype]:
        raise RuntimeError(f"result type {dtype_of(r.dtype)!r} can't be cast to the desired output type {dtype_of(out.dtype)!r} ({info.name.decode()})")
    return out.copy_(r)


cdef TensorBase forward1(PointwiseInfo* info, TensorBase a, const Scalar* params, TensorBase out, int mode):
    cdef PyObject* inputs[3]
    inputs[0] = <PyObject*>a
    return forward_pointwise(info, 1, inputs, params, out, mode)


cdef TensorBase forward2(PointwiseInfo* info, TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode):
    cdef PyObject* inputs[3]
    inputs[0] = <PyObject*>a
    inputs[1] = <PyObject*>b
    return forward_pointwise(info, 2, inputs, params, out, mode)


cdef TensorBase forward3(PointwiseInfo* info, TensorBase a, TensorBase b, TensorBase c, const Scalar* params, TensorBase out, int mode):
    cdef PyObject* inputs[3]
    inputs[0] = <PyObject*>a
    inputs[1] = <PyObject*>b
    inputs[2] = <PyObject*>c
    return forward_pointwise(info, 3, inputs, params, out, mode)


cdef inline int check_target(PointwiseInfo* info, TensorBase out) except -1:
    """prepare_write of an output; the operator's name is made where it is needed."""
    if not is_writable(out.storage):
        make_writable(out.storage, info.name.decode())
    return 0


cdef TensorBase call1(PointwiseInfo* info, TensorBase a, const Scalar* params, TensorBase out, int mode):
    cdef TensorBase r
    cdef uint64_t keys = a.keys | (out.keys if mode else 0)
    if mode:
        check_target(info, out)
    r = (<fn1>resolve(info.op, keys))(info, a, params, out, mode)
    if mode and not (keys & K_AUTOGRAD):
        bump_version(out)
    elif mode == OUT:
        bump_version(out)
    return r


cdef TensorBase call2(PointwiseInfo* info, TensorBase a, TensorBase b, const Scalar* params, TensorBase out, int mode):
    cdef TensorBase r
    cdef uint64_t keys = a.keys | b.keys | (out.keys if mode else 0)
    if a.wrapped_number or (a.ndim == 0 and b.ndim > 0 and b.device_type):
        keys = b.keys | (a.keys & (K_DERIVATIVES | K_STORAGE_ONLY)) | (out.keys if mode else 0)
    elif b.wrapped_number or (b.ndim == 0 and a.ndim > 0 and a.device_type):
        keys = a.keys | (b.keys & (K_DERIVATIVES | K_STORAGE_ONLY)) | (out.keys if mode else 0)
    if mode:
        check_target(info, out)
    r = (<fn2>resolve(info.op, keys))(info, a, b, params, out, mode)
    if mode and (mode == OUT or not (keys & K_AUTOGRAD)):
        bump_version(out)
    return r


cdef TensorBase call3(PointwiseInfo* info, TensorBase a, TensorBase b, TensorBase c, const Scalar* params, TensorBase out, int mode):
    cdef TensorBase r
    cdef uint64_t keys = 0, grad = (a.keys | b.keys | c.keys) & K_DERIVATIVES
    if not a.wrapped_number:
        keys |= a.keys
    if not b.wrapped_number:
        keys |= b.keys
    if not c.wrapped_number:
        keys |= c.keys
    if keys == 0:
        keys = a.keys
    keys |= grad | (out.keys if mode else 0)
    if mode:
        check_target(info, out)
    r = (<fn3>resolve(info.op, keys))(info, a, b, c, params, out, mode)
    if mode and (mode == OUT or not (keys & K_AUTOGRAD)):
        bump_version(out)
    return r


cdef int param(object x, Scalar* s, str op, str name) except -1:
    """A number that is a parameter of the operator (alpha, negative_slope, …)."""
    if not is_number(x) and (not isinstance(x, TensorBase) or (<TensorBase>x).ndim or (<TensorBase>x).requires_grad):
        raise TypeError(f"{op}(): argument '{name}' must be Number, not {type(x).__name__}")
    return to_scalar(x, s)


cdef inline int out_mode(PointwiseInfo* info, object out) except -1:
    if out is None:
        return FRESH
    if not isinstance(out, TensorBase):
        raise TypeError(f"{info.name.decode()}(): argument 'out' must be Tensor, not {type(out).__name__}")
    if (<TensorBase>out).requires_grad and info.differentiable and tls().grad_mode:
        raise RuntimeError(
            f"{info.name.decode()}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")
    return OUT


cdef object entry1(PointwiseInfo* info, object a, const Scalar* params, object out, bint inplace):
    cdef int mode
    if not isinstance(a, TensorBase):
        raise TypeError(f"{info.name.decode()}(): argument 'input' (position 1) must be Tensor, not {type(a).__name__}")
    if inplace:
        check_inplace(<TensorBase>a, info.name.decode())
        if info.promote & PROMOTE_REAL_OUT and category[(<TensorBase>a).dtype] == CAT_COMPLEX:
            raise RuntimeError(f"In-place {info.name.decode()} is not supported for complex tensors.")
        return call1(info, <TensorBase>a, params, <TensorBase>a, INPLACE)
    if out is None:
        return (<fn1>resolve(info.op, (<TensorBase>a).keys))(info, <TensorBase>a, params, None, FRESH)
    mode = out_mode(info, out)
    return call1(info, <TensorBase>a, params, <TensorBase>out, mode)


cdef object entry2(PointwiseInfo* info, object a, object b, const Scalar* params, object out, bint inplace):
    cdef int mode
    cdef TensorBase x, y
    if is_plain(a) and is_plain(b):
        x = <TensorBase>a
        y = <TensorBase>b
    else:
        x = operand(info, a, 1)
        y = operand(info, b, 2)
        # two numbers, not a number that a Node has saved
        if x.wrapped_number and y.wrapped_number and not info.two_numbers and not isinstance(a, TensorBase) and not isinstance(b, TensorBase):
            x.wrapped_number = y.wrapped_number = 0
            bad_operand(info, a, 1)
    if inplace:
        check_inplace(x, info.name.decode())
        return call2(info, x, y, params, x, INPLACE)
    mode = out_mode(info, out)
    return call2(info, x, y, params, <TensorBase>out, mode)


cdef object entry3(PointwiseInfo* info, object a, object b, object c, const Scalar* params, object out, bint inplace):
    cdef int mode
    cdef TensorBase x, y, z
    x = operand(info, a, 1)
    y = operand(info, b, 2)
    z = operand(info, c, 3)
    if inplace:
        check_inplace(x, info.name.decode())
        return call3(info, x, y, z, params, x, INPLACE)
    mode = out_mode(info, out)
    return call3(info, x, y, z, params, <TensorBase>out, mode)


cdef bint is_operand(object x) noexcept:
    """What stands next to a tensor in `a + b`: a tensor or a number."""
    return is_plain(x) or isinstance(x, TensorBase) or is_number(x)


cdef void unit_scalar(Scalar* s) noexcept:
    s.kind = 1
    s.i = 1
    s.d = 1
    s.im = 0


cdef TensorBase operand(PointwiseInfo* info, object x, int position):
    if isinstance(x, TensorBase):
        return <TensorBase>x
    if is_number(x) and not info.tensor_only >> (position - 1) & 1:
        return wrap_number(x)
    bad_operand(info, x, position)


cdef int bad_operand(PointwiseInfo* info, object x, int position) except -1:
    name = "input" if position == 1 else "other"
    raise TypeError(f"{info.name.decode()}(): argument '{name}' (position {position}) must be Tensor, not {type(x).__name__}")


cdef int register_kernels(PointwiseInfo* info, const trt_row* row, void* iterated, void* boxed, void* recorded, void* dual) except -1:
    cdef int key
    for key in (KEY_CPU, KEY_META, KEY_CUDA):
        register_kernel(info.id, info.name, key, iterated)
    for key in (KEY_CUSTOM, KEY_PYTHON, KEY_TRACER, KEY_SPARSE):
        register_kernel(info.id, info.name, key, boxed)
    if row.autocast != NULL:
        register_kernel(info.id, info.name, KEY_AUTOCAST, boxed)
    register_kernel(info.id, info.name, KEY_AUTOGRAD, recorded)
    register_kernel(info.id, info.name, KEY_FORWARD_AD, dual)
    return 0


cdef int register_pointwise(PointwiseInfo* info, int operator_id, const trt_row* row, str tensors, str params) except -1:
    """Fill the operator's row; tensors and params name what its Node saves."""
    info.op = &OPS[operator_id]
    info.id = operator_id
    take_storage_only(operator_id)              # the iterator asks the operator which types without loops it takes, and converts the others
    name_saved(info, tensors, params)
    OPS[operator_id].info = info
    if info.nin == 1:
        register_kernels(info, row, <void*>cpu1, <void*>boxed1, <void*>autograd1, <void*>forward1)
    elif info.nin == 2:
        register_kernels(info, row, <void*>cpu2, <void*>boxed2, <void*>autograd2, <void*>forward2)
    else:
        register_kernels(info, row, <void*>cpu3, <void*>boxed3, <void*>autograd3, <void*>forward3)
    OPS[operator_id].row = row
    return 0


CORE.call1 = <void*>call1
CORE.call2 = <void*>call2
CORE.call3 = <void*>call3
