"""Subclasses of Tensor: deep copies, states, operators of unrelated classes, redispatch, indices that wrap tensors, gradients."""

from __future__ import annotations

import copy
import operator
import pickle

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")
BOTH = pytest.mark.parametrize("m", [trt, torch], ids=["ours", "pytorch"])


def plain(m, name="A", base=None, **members):
    return type(name, (base or m.Tensor,), members)


class Stateful(trt.Tensor):
    __slots__ = ("kept",)

    def __getstate__(self):
        return {"kept": getattr(self, "kept", None)}

    def __setstate__(self, state):
        self.kept = state["kept"]
        self.restored = True


class Slotted(trt.Tensor):
    __slots__ = ("kept",)


def test_pickling_asks_the_class_for_its_state():
    x = trt.ones(2).as_subclass(Stateful)
    x.kept = [1]
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is Stateful
    assert (y.kept, y.restored, y.tolist()) == ([1], True, [1, 1])


def test_slots_are_pickled_and_copied():
    x = trt.ones(2).as_subclass(Slotted)
    x.kept, x.note = [1], "n"
    y = pickle.loads(pickle.dumps(x))
    assert (type(y), y.kept, y.note) == (Slotted, [1], "n")


@BOTH
def test_deep_copies_need_new_empty_of_the_class(m):
    new_empty = lambda self, *size, **options: m.Tensor.new_empty(self, *size, **options).as_subclass(type(self))
    good, bad = plain(m, new_empty=new_empty), plain(m)
    x = m.ones(2).as_subclass(good)
    x.note = [1]
    y = copy.deepcopy(x)
    assert type(y) is good
    assert y.note == [1]
    assert y.note is not x.note
    with pytest.raises(RuntimeError, match="new_empty"):
        copy.deepcopy(m.ones(2).as_subclass(bad))


@BOTH
@pytest.mark.parametrize("symbol", [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.matmul, operator.pow, operator.lt])
def test_operators_of_unrelated_subclasses_are_refused(m, symbol):
    a, b = m.ones(2).as_subclass(plain(m, "A")), m.ones(2).as_subclass(plain(m, "B"))
    with pytest.raises(TypeError):
        symbol(a, b)
    assert type(symbol(a, a)) is type(a)
    derived = m.ones(2).as_subclass(plain(m, "C", type(a)))
    assert type(symbol(a, derived)) is type(symbol(derived, a)) is type(derived)


def wrapper(m):
    def new(cls, inner):
        made = m.Tensor._make_wrapper_subclass(cls, inner.size(), dtype=inner.dtype, device=inner.device)
        made.inner = inner
        return made

    def dispatch(cls, func, types, args=(), kwargs=None):
        def inner(x):
            return x.inner if isinstance(x, cls) else type(x)(map(inner, x)) if isinstance(x, (list, tuple)) else x

        result = func(*map(inner, args), **{k: inner(v) for k, v in (kwargs or {}).items()})
        return cls(result) if isinstance(result, m.Tensor) else result

    return plain(m, "W", __new__=staticmethod(new), __torch_dispatch__=classmethod(dispatch))


@BOTH
@pytest.mark.parametrize("kind", ["int64", "int32", "bool"])
def test_wrapped_tensors_index_plain_ones(m, kind):
    W = wrapper(m)
    x = m.arange(5.0)
    index = x > 2 if kind == "bool" else m.tensor([1, 2], dtype=getattr(m, kind))
    assert type(x[W(index)]) is W
    assert x[W(index)].inner.tolist() == x[index].tolist()
    assert W(x)[W(index)].inner.tolist() == x[index].tolist()
    if kind != "int32":  # of which PyTorch's index_put_ has no kernel
        written, wrapped = x.clone(), W(x.clone())
        written[W(index)] = 7.0
        wrapped[W(index)] = 7.0
        x[index] = 7.0
        assert written.tolist() == wrapped.inner.tolist() == x.tolist()


@BOTH
def test_super_redispatches_below_the_class(m):
    seen = []

    def dispatch(cls, func, types, args=(), kwargs=None):
        seen.append(str(func))
        return super(R, cls).__torch_dispatch__(func, types, args, kwargs or {})

    R = plain(m, "R", __torch_dispatch__=classmethod(dispatch))
    x = m.ones(2).as_subclass(R)
    assert (x + 1).tolist() == [2, 2]
    assert m.add(x, x, alpha=2).tolist() == [3, 3]
    x.mul_(2)
    assert seen == ["aten.add.Tensor", "aten.add.Tensor", "aten.mul_.Tensor"]
    seen.clear()
    y = m.ones(2, requires_grad=True)
    (y * x.detach()).sum().backward()
    assert y.grad.tolist() == [2, 2]


@BOTH
def test_grad_asks_the_classes_of_outputs_and_inputs(m):
    seen = []

    def function(cls, func, types, args=(), kwargs=None):
        if func is m.autograd.grad:
            seen.append((args, sorted(kwargs)))
            return "mine"
        return super(H, cls).__torch_function__(func, types, args, kwargs or {})

    H = plain(m, "H", __torch_function__=classmethod(function))
    p = m.ones(2).as_subclass(H).requires_grad_()
    q = m.ones(2, requires_grad=True)
    assert m.autograd.grad((p * 2).sum(), p) == "mine"
    assert m.autograd.grad([q.sum()], [q, p], allow_unused=True) == "mine"
    assert len(seen) == 2
    assert "allow_unused" in seen[0][1]
    assert m.autograd.grad((q * 2).sum(), q)[0].tolist() == [2, 2]


@BOTH
def test_backward_asks_too(m):
    seen = []

    def function(cls, func, types, args=(), kwargs=None):
        if func is m.autograd.backward:
            seen.append(sorted(kwargs))
        return super(H, cls).__torch_function__(func, types, args, kwargs or {})

    H = plain(m, "H", __torch_function__=classmethod(function))
    p = m.ones(2).as_subclass(H).requires_grad_()
    m.autograd.backward((p * 2).sum())
    m.autograd.backward([(p * 2).sum()], inputs=[p])
    assert p.grad.tolist() == [4, 4]
    assert seen == [["create_graph", "grad_tensors", "inputs", "retain_graph"]] * 2


def test_gradients_of_the_packages_own_classes():
    x = trt.eye(3).to_sparse().requires_grad_()
    (g,) = trt.autograd.grad(trt.sparse.sum(x), x)
    assert g.to_dense().diagonal().tolist() == [1, 1, 1]
    parameter = trt.nn.Parameter(trt.ones(2))
    assert type(trt.autograd.grad(parameter.sum(), parameter)[0]) is trt.Tensor
