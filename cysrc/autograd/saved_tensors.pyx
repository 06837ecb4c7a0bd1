"""Hooks on what Nodes save: saved_tensors_hooks of a thread, and register_hooks of one saved tensor.

Where hooks are on when a Node is made (NOTE_SAVED_HOOKS), its slots hold PackedTensors in place of tensors: what the pack hook
returned, and the history that the tensor had. Each reading calls the unpack hook and puts that history back, so that higher
derivatives come out right. The hooks run with recording off, as in PyTorch; an output is packed without its grad_fn, which would
make a reference cycle.
"""
from tensorrt_lite._C.core.tensor cimport TensorBase, K_AUTOGRAD, K_FORWARD_AD, version_of, shape_of, place_of
from tensorrt_lite._C.core.dtype cimport dtype_of
from tensorrt_lite._C.core.dispatch cimport tls, attach
from tensorrt_lite._C.autograd.node cimport (
    Node, NODE_FUNCTION, NOTE_SAVED_HOOKS, SAVED_HOOKED, SAVED_RELEASED, device_at, gradient_node, grad_fn_of, node_of_output, output_alias, raise_released)
import threading

attach()


class _ThreadHooks(threading.local):
    """(pack, unpack) of the contexts open in a thread, the innermost last; why no more may be opened."""

    def __init__(self):
        self.stack = []
        self.refusal = None


cdef object _hooks = _ThreadHooks()


cdef int note_hooks() except -1:
    if _hooks.stack:
        tls().notes |= NOTE_SAVED_HOOKS
    else:
        tls().notes &= ~NOTE_SAVED_HOOKS
    return 0


def push_hooks(pack, unpack):
    """Open a context in this thread. TypeError for what cannot be called, RuntimeError where hooks are disabled."""
    if not callable(pack) or not callable(unpack):
        raise TypeError("saved_tensors_hooks(): pack_hook and unpack_hook must be callable")
    if _hooks.refusal is not None:
        raise RuntimeError(_hooks.refusal)
    _hooks.stack.append((pack, unpack))
    note_hooks()


def pop_hooks():
    """Close the innermost context of this thread."""
    _hooks.stack.pop()
    note_hooks()


def set_refusal(message):
    """Refuse new contexts in this thread with `message` (None: allow them); RuntimeError when one is open. Returns what was set before."""
    before = _hooks.refusal
    if message is not None and _hooks.stack:
        raise RuntimeError(message)
    _hooks.refusal = message
    return before


def exchange_stack(stack):
    """Put another stack of contexts in place of this thread's, which is returned."""
    before = _hooks.stack
    _hooks.stack = stack
    note_hooks()
    return before


def copy_of_stack():
    """The contexts open in this thread, for another one that goes on for it."""
    return list(_hooks.stack)


cdef class PackedTensor:
    """What a pack hook returned for a tensor, and the history that the tensor had."""


cdef object pack_saved(TensorBase t, bint is_output, bint strict):
    """What a slot holds for `t` under the innermost hooks; the tensor itself where they do not see it. strict: what is unpacked
    must have the same shape, type and device, as the code that reads it relies on that."""
    if t is None or t.wrapped_number or not _hooks.stack:
        return t
    pack, unpack = _hooks.stack[len(_hooks.stack) - 1]
    return packed(pack, unpack, t, t, is_output, strict)


cdef PackedTensor packed(object pack, object unpack, TensorBase t, TensorBase given, bint is_output, bint strict):
    """`given` through the hook, with the history of `t`."""
    cdef PackedTensor p = PackedTensor.__new__(PackedTensor)
    cdef int before = tls().grad_mode
    cdef object version = version_of(given)
    p.unpack_hook = unpack
    p.is_output = is_output
    p.requires_grad = t.requires_grad or is_output
    p.output_nr = t.output_nr
    p.tangent = t.tangent
    if strict:
        p.expected = (shape_of(t), <int>t.dtype, place_of(t))
    if t.requires_grad and not is_output:
        p.source = gradient_node(t)
        p.output_nr = t.output_nr if grad_fn_of(t) is not None else 0
    tls().grad_mode = 0
    tls().python_ran = 1
    try:
        p.value = pack(given)
    finally:
        tls().grad_mode = before
    if version_of(given) != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be modified by in-place operations as "
            "this can lead to unexpected side-effects. Please open an issue if you need to perform in-place operations on the input to a pack hook.")
    return p


cdef TensorBase unpack_saved(Node node, object x):
    """The tensor behind what a slot holds, with its history."""
    cdef PackedTensor p
    cdef TensorBase t, r
    cdef int before
    if type(x) is not PackedTensor:
        return <TensorBase?>x
    p = <PackedTensor>x
    before = tls().grad_mode
    tls().grad_mode = 0
    tls().python_ran = 1
    try:
        value = p.unpack_hook(p.value)
    finally:
        tls().grad_mode = before
    if not isinstance(value, TensorBase):
        raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(value).__name__}")
    t = <TensorBase>value
    if p.expected is not None and (shape_of(t), <int>t.dtype, place_of(t)) != p.expected:
        shape, code, place = p.expected
        raise RuntimeError(
            f"{node.name()}: the unpack hook returned a {dtype_of(t.dtype)!r} tensor of shape {list(shape_of(t))} on device {value.device} for a saved "
            f"{dtype_of(code)!r} tensor of shape {list(shape)} on device {device_at(place)}")
    if not p.requires_grad and not t.requires_grad and p.tangent is None:
        return t
    r = output_alias(t)
    if p.requires_grad:
        r.grad_fn_ = node_of_output(node) if p.is_output else p.source
        r.output_nr = p.output_nr
        r.requires_grad = 1
        r.keys |= K_AUTOGRAD
    if p.tangent is not None:
        r.keys |= K_FORWARD_AD
        r.tangent = p.tangent
    return r


cdef class SavedTensor:
    """One tensor that a Node has saved: its ``_raw_saved_*``."""

    def __init__(self):
        raise TypeError("cannot create 'SavedTensor' instances")

    def register_hooks(self, pack_hook, unpack_hook):
        """Keep ``pack_hook(tensor)`` in the tensor's place and give ``unpack_hook`` of it to whoever reads it. RuntimeError when it was
        freed, is None or has hooks already, or when the hook writes to its argument."""
        cdef object x = self.node.get_saved(self.slot, self.position)
        cdef TensorBase t
        if not callable(pack_hook) or not callable(unpack_hook):
            raise TypeError("register_hooks(): pack_hook and unpack_hook must be callable")
        if self.node.saved_state & SAVED_RELEASED:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are freed when you call .backward() or "
                "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved variables after "
                "calling backward.")
        if type(x) is PackedTensor:
            raise RuntimeError("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is allowed at a time.")
        if x is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        t = <TensorBase>x
        p = packed(pack_hook, unpack_hook, t, <TensorBase?>(<object>t).detach(), self.node.saves_output(self.slot, self.position), self.node.kind != NODE_FUNCTION)
        # the hook is the program's: it may have run the Node
        if not self.node.saved_state & SAVED_RELEASED:
            self.node.set_saved(self.slot, self.position, p)
            self.node.saved_state |= SAVED_HOOKED

    def unpack(self):
        """The saved tensor, through its hook where there is one; None where nothing was saved."""
        if self.node.saved_state & SAVED_RELEASED:
            raise_released(self.node)
        return self.node.read_saved(self.slot, self.position)

    @property
    def data(self):
        """What the Node holds: the tensor, or what the pack hook returned."""
        if self.node.saved_state & SAVED_RELEASED:
            raise_released(self.node)
        x = self.node.get_saved(self.slot, self.position)
        return (<PackedTensor>x).value if type(x) is PackedTensor else x

    @property
    def unpack_hook(self):
        x = self.node.get_saved(self.slot, self.position)
        return (<PackedTensor>x).unpack_hook if type(x) is PackedTensor else None


cdef SavedTensor raw_saved(Node node, int slot, int position):
    cdef SavedTensor s = SavedTensor.__new__(SavedTensor)
    s.node = node
    s.slot = slot
    s.position = position
    return s
