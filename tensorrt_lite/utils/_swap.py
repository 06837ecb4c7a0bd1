"""`swap_tensors`: two tensors change places behind the names that refer to them."""

from __future__ import annotations

import weakref
from typing import Any

from tensorrt_lite._C.autograd import attributes as _attributes
from tensorrt_lite._C.autograd.replaced_leaves import LeafRef


def swap_tensors(t1: Any, t2: Any) -> None:
    """Let t1 be what t2 is, and t2 what t1 is: class, elements, `requires_grad`, `grad`, attributes. Names go on referring to the same objects.

    Leaves alone (RuntimeError for results of operators), to which nothing refers weakly (RuntimeError). What a graph saved of them stays as it was.
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if any(type(r) is not LeafRef for r in weakref.getweakrefs(t)):  # that of a leaf is autograd's own
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
        if not t.is_leaf:
            raise RuntimeError(f"Cannot swap {name}: it is the result of an operator, and no leaf")
    before = [(type(t), t.detach(), t.requires_grad, t.grad, dict(vars(t))) for t in (t1, t2)]
    for t, (kind, values, requires_grad, grad, state) in zip((t1, t2), reversed(before)):
        t.grad = None
        t.requires_grad_(False)
        _attributes.assign_from(t, values)
        if type(t) is not kind:
            t.__class__ = kind
        t.requires_grad_(requires_grad)
        t.grad = grad
        vars(t).clear()
        vars(t).update(state)
