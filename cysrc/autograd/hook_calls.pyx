"""Calls of the program's code in a backward pass: hooks of tensors, of Nodes and of leaves after accumulation, each in the thread that runs the Node.

What a hook returns takes a gradient's place and is compared with it first: shape, type, device.
"""
from tensorrt_lite._C.core.dispatch cimport attach, tls, trt_thread_state
from tensorrt_lite._C.core.tensor cimport TensorBase, place_of, same_sizes, shape_text
from tensorrt_lite._C.autograd.node cimport Node, guard_gradients
from tensorrt_lite._C.autograd.hooks import RetainGrad

attach()


cdef object call_tensor_hooks(Node n, object grad):
    """Run the hooks of tensors on the gradients of a Node's outputs, then those that keep `grad` of results: before what a pass is after is taken out."""
    cdef list grads = [grad] if n.n_inputs <= 1 else list(grad) if grad is not None else [None] * n.n_inputs
    cdef list entries = list(n.pre_hooks)
    cdef bint keeps = False
    for entry in entries:
        nr, hook = entry.value
        if type(entry) is RetainGrad:
            keeps = True
        elif nr >= 0:
            r = call_hook(hook, (grads[nr],))
            if r is not None:
                check_hook_result(hook, grads[nr], r)
                grads[nr] = r
    if keeps:
        if tls().python_ran:
            grads = [guard_gradients(n, grads[0])] if n.n_inputs <= 1 else guard_gradients(n, grads) or grads
        for entry in list(n.pre_hooks):
            if type(entry) is RetainGrad:
                nr, hook = entry.value
                if grads[nr] is not None:
                    hook(grads[nr])
    return grads[0] if n.n_inputs <= 1 else grads


cdef object call_node_hooks(Node n, object grad):
    """Run the hooks of the Node itself, which belong to its step."""
    cdef list grads = None
    for entry in list(n.pre_hooks):
        nr, hook = entry.value
        if nr < 0:
            if grads is None:
                grads = [grad] if n.n_inputs <= 1 else list(grad) if grad is not None else [None] * n.n_inputs
            r = call_hook(hook, (tuple(grads),))
            if r is not None:
                check_hook_results(hook, tuple(grads), r)
                grads = list(r)
    return grad if grads is None else guard_gradients(n, grads[0] if n.n_inputs <= 1 else grads)


cdef object call_hook(object hook, tuple arguments):
    cdef trt_thread_state* state = tls()
    python_begins(state)
    r = hook(*arguments)
    python_ends(state)
    return r


cdef str name_of_hook(object hook):
    return str(getattr(hook, "__name__", "") or repr(hook))


cdef int check_hook_result(object hook, object given, object r) except -1:
    """What a hook may return for a gradient: None, or a tensor like it."""
    cdef TensorBase g, value
    if r is None:
        return 0
    if not isinstance(r, TensorBase):
        raise TypeError(f"expected Variable, but hook returned '{type(r).__name__}'")
    if given is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    g, value = given, r
    if not same_sizes(g, value):
        raise RuntimeError(f"hook '{name_of_hook(hook)}' has changed the size of value: {shape_text(g)} became {shape_text(value)}")
    if g.dtype != value.dtype or place_of(g) != place_of(value):
        raise RuntimeError(
            f"hook '{name_of_hook(hook)}' has changed the type of value (was {(<object>g).dtype} on {(<object>g).device} got {r.dtype} on {r.device})")
    return 0


cdef int check_hook_results(object hook, tuple given, object r) except -1:
    """The same for the hooks of Nodes, which see all gradients at once."""
    cdef Py_ssize_t i
    if not isinstance(r, tuple):
        raise TypeError(f"expected tuple, but hook returned '{type(r).__name__}'")
    if len(<tuple>r) != len(given):
        raise RuntimeError(f"hook '{name_of_hook(hook)}' has returned an incorrect number of values (got {len(<tuple>r)}, but expected {len(given)})")
    for i in range(len(given)):
        check_hook_result(hook, given[i], (<tuple>r)[i])
    return 0


cdef object call_post_hooks(Node n, object out, object grad):
    cdef tuple outs = (None,) * n.n_edges if out is None else tuple(out) if isinstance(out, (tuple, list)) else (out,)
    cdef tuple ins = (None,) * n.n_inputs if grad is None else (grad,) if n.n_inputs <= 1 else tuple(grad)
    for entry in list(n.post_hooks):
        r = call_hook(entry.value, (outs, ins))
        if r is not None:
            check_hook_results(entry.value, outs, r)
            outs = <tuple>r
    return outs


cdef object leaf_hooks(TensorBase leaf, object g):
    for entry in list(leaf.hooks):
        r = call_hook(entry.value, (g,))
        if r is not None:
            check_hook_result(entry.value, g, r)
            g = r
    return g


cdef int run_post_accumulate(TensorBase leaf) except -1:
    cdef object entries = leaf.post_accumulate
    if entries is None:
        return 0
    for entry in list(entries):
        r = call_hook(entry.value, (leaf,))
        if r is not None and r is not leaf:
            check_hook_result(entry.value, leaf, r)
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")
    return 0
