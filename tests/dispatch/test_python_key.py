"""`__torch_dispatch__`: modes and tensor subclasses see every operator below autograd, once, and may answer for it."""

from __future__ import annotations

import threading

import pytest

import tensorrt_lite as trt
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode, _disable_current_modes, _get_current_dispatch_mode_stack, return_and_correct_aliasing

F = trt.nn.functional
aten = trt.ops.aten


class Log(TorchDispatchMode):
    """Notes the operators and goes on."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Wrapper(trt.Tensor):
    """Has no memory of its own; holds a tensor and counts what runs on it."""

    calls: list = []

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        return trt.Tensor._make_wrapper_subclass(cls, inner.shape, inner.stride(), dtype=inner.dtype, device=inner.device, requires_grad=requires_grad)

    def __init__(self, inner, requires_grad=False):
        self.inner = inner

    __torch_function__ = trt._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(str(func))

        def unwrap(x):
            return x.inner if isinstance(x, Wrapper) else [unwrap(y) for y in x] if isinstance(x, list) else x

        def wrap(x):
            return Wrapper(x) if isinstance(x, trt.Tensor) else [wrap(y) for y in x] if isinstance(x, list) else tuple(map(wrap, x)) if isinstance(x, tuple) else x

        result = func(*map(unwrap, args), **{k: unwrap(v) for k, v in (kwargs or {}).items()})
        return return_and_correct_aliasing(func, args, kwargs, wrap(result))


@pytest.fixture(autouse=True)
def no_calls():
    Wrapper.calls.clear()


def test_a_mode_sees_operators_of_every_kind():
    x, log = trt.arange(6.0).reshape(2, 3), Log()
    with log:
        y = (x + 1).exp().sum(1, keepdim=True).view(2).mul_(2)
        z = trt.cat([y, y])
        v, i = x.max(1)
    assert log.seen == ["aten.add.Tensor", "aten.exp.default", "aten.sum.dim_IntList", "aten.view.default", "aten.mul_.Tensor", "aten.cat.default", "aten.max.dim"]
    assert z.tolist() == ((x + 1).exp().sum(1) * 2).tolist() * 2
    assert v.tolist() == [2, 5]
    assert log.seen[7:] == []


def test_a_mode_stands_below_autograd():
    log, w = Log(), trt.ones(3, requires_grad=True)
    with log:
        y = (w * trt.arange(3.0)).sum()
    assert log.seen[-2:] == ["aten.mul.Tensor", "aten.sum.default"]
    y.backward()
    assert w.grad.tolist() == [0, 1, 2]
    assert "MulBackward0" in repr(y.grad_fn.next_functions)


def test_a_mode_may_answer():
    class Zero(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {})) * 0

    with Zero():
        assert (trt.ones(2) + 1).tolist() == [0, 0]
    assert (trt.ones(2) + 1).tolist() == [2, 2]


def test_modes_nest_and_the_innermost_is_asked_first():
    order = []

    class Named(TorchDispatchMode):
        def __init__(self, name):
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    x = trt.ones(1)
    with Named("outer"), Named("inner"):
        x.neg()
        assert len(_get_current_dispatch_mode_stack()) == 2
        with _disable_current_modes():
            x.neg()
    assert order == ["inner", "outer"]
    assert _get_current_dispatch_mode_stack() == []


def test_modes_belong_to_their_thread():
    log = Log()
    with log:
        other = threading.Thread(target=lambda: trt.ones(2).neg())
        other.start()
        other.join()
    assert log.seen == []


def test_a_write_counts_one_version_under_a_mode():
    x = trt.zeros(3)
    before = x._version
    with Log() as log:
        x.add_(1)
        x.clamp_(0, 2)
    assert x._version == before + 2
    assert log.seen == ["aten.add_.Tensor", "aten.clamp_.default"]


def test_results_may_be_given_under_a_mode():
    out, x, y = trt.empty(2), trt.ones(2), trt.ones(2, 2)
    with Log() as log:
        assert trt.add(x, 1, out=out) is out
        trt.sum(y, 0, out=out)
    assert log.seen == ["aten.add.out", "aten.sum.IntList_out"]
    assert out.tolist() == [2, 2]


def test_numbers_arrive_as_numbers():
    x, y = trt.ones(2), trt.ones(2, 3)

    class Arguments(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.got = (args[1:], kwargs)
            return func(*args, **(kwargs or {}))

    with Arguments() as mode:
        x + 2
        assert mode.got == ((2,), {})
        trt.add(x, 2.5, alpha=2)
        assert mode.got == ((2.5,), {"alpha": 2})
        y.sum(1)
        assert mode.got == (([1],), {})
        y.sum(dtype=trt.float64)
        assert mode.got == ((), {"dtype": trt.float64})


@pytest.mark.parametrize("result, message", [(None, "Tensor, not NoneType"), (3, "Tensor, not int")])
def test_what_is_no_tensor_is_refused(result, message):
    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return result

    with Wrong(), pytest.raises(RuntimeError, match=message):
        trt.ones(2).sum()
    with Wrong(), pytest.raises(RuntimeError, match=message):
        trt.ones(2).neg()


def test_an_argument_that_comes_back_is_not_the_same_object():
    class Identity(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return args[0]

    w = trt.ones(2, requires_grad=True)
    with Identity():
        y = w.exp()
    assert y is not w and w.is_leaf and y.grad_fn is not None


def test_errors_of_a_mode_leave_the_thread_as_it_was():
    class Fails(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"), Fails():
        trt.ones(2) + 1
    assert (trt.ones(2) + 1).tolist() == [2, 2]
    w = trt.ones(2, requires_grad=True)
    (w * 2).sum().backward()
    assert w.grad.tolist() == [2, 2]


def test_a_wrapper_runs_in_its_class():
    a = Wrapper(trt.arange(4.0))
    b = (a * 2 + trt.ones(4)).view(2, 2).sum(0)
    assert type(b) is Wrapper
    assert b.inner.tolist() == [6, 10]
    assert b.shape == (2,) and b.dtype is trt.float32 and b.device.type == "cpu" and b.is_cpu and not b.is_meta
    assert Wrapper.calls == ["aten.mul.Tensor", "aten.add.Tensor", "aten.view.default", "aten.sum.dim_IntList"]


def test_a_wrapper_records():
    a = Wrapper(trt.arange(3.0), requires_grad=True)
    y = (a * a).sum()
    y.backward()
    assert type(a.grad) is Wrapper
    assert a.grad.inner.tolist() == [0, 2, 4]


def test_a_wrapper_in_place():
    a = Wrapper(trt.arange(3.0))
    before = a._version
    assert a.add_(1) is a
    assert a.inner.tolist() == [1, 2, 3]
    assert a._version == before + 1


def test_a_wrapper_trains():
    from tensorrt_lite import nn

    trt.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
    x, y = trt.randn(5, 4), trt.tensor([0, 1, 0, 1, 1])
    F.cross_entropy(model(x), y).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    loss = F.cross_entropy(model(Wrapper(x)), y)
    assert type(loss) is Wrapper
    loss.backward()
    for p, g in zip(model.parameters(), expected):
        got = p.grad.inner if type(p.grad) is Wrapper else p.grad
        assert trt.allclose(got, g, atol=1e-6)


def test_a_wrapper_has_no_memory_to_read():
    with pytest.raises((RuntimeError, TypeError, NotImplementedError)):
        Wrapper(trt.ones(2)).numpy()
    assert Wrapper(trt.ones(2)).data_ptr() == 0


def test_a_wrapper_answers_for_its_elements():
    a = Wrapper(trt.ones(2))
    assert (bool(a.sum() > 0), a.tolist(), a.sum().item()) == (True, [1, 1], 2)


def test_subclasses_before_their_bases_and_not_implemented():
    class Base(trt.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    a = trt.Tensor._make_subclass(Base, trt.ones(2))
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'aten.neg.default'"):
        a.neg()


def test_operators_are_objects():
    assert aten.add.Tensor is aten.add.Tensor
    assert str(aten.add.Tensor) == "aten.add.Tensor" and repr(aten.mm.default) == "<OpOverload(op='aten.mm', overload='default')>"
    assert aten.add.Tensor(trt.ones(2), trt.ones(2), alpha=3).tolist() == [4, 4]
    assert aten.add_.Tensor.name() == "aten::add_.Tensor"
    x = trt.ones(2)
    assert aten.add_.Tensor(x, 1) is x and x.tolist() == [2, 2]
    assert aten.sum.default is not aten.sum.dim_IntList and aten.sum.dim_IntList is aten.sum.dim_IntList
    assert aten.view.default.is_view and not aten.mm.default.is_view
    assert aten.add.Tensor.overloadpacket is aten.add
    assert aten.add(trt.ones(1), 1).item() == 2
    with pytest.raises(TypeError, match="missing the argument 'other'"):
        aten.add.Tensor(trt.ones(2))
    with pytest.raises(TypeError, match="unexpected arguments"):
        aten.add.Tensor(trt.ones(2), trt.ones(2), beta=1)
    with pytest.raises(AttributeError):
        aten.no_such_operator  # noqa: B018
