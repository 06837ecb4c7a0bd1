"""Calls that have fast paths of their own go through the dispatcher where a mode or a subclass looks on, and count writes once."""

from __future__ import annotations

import contextlib

import pytest

import tensorrt_lite as trt
from tensorrt_lite.nn import functional as F
from tensorrt_lite.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    """Notes the operators' names and goes on."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(func.name().removeprefix("aten::").partition(".")[0])
        return func(*args, **(kwargs or {}))


def assign(x, key, value):
    x[key] = value
    return x


CALLS = {
    "x[1]": (lambda x: x[1], ["select"]),
    "x[:, 1]": (lambda x: x[:, 1], ["select"]),
    "x[0:1, None]": (lambda x: x[0:1, None], ["slice", "unsqueeze"]),
    "x[...]": (lambda x: x[...], ["alias"]),
    "x[[0, 1]]": (lambda x: x[trt.tensor([0, 1])], ["index"]),
    "x[1] = 2": (lambda x: assign(x, 1, 2.0), ["select", "fill_"]),
    "x[1] = y": (lambda x: assign(x, 1, trt.ones(3)), ["select", "copy_"]),
    "x[mask] = 2": (lambda x: assign(x, x > 1, 2.0), ["gt", "masked_fill_"]),
    "detach": (lambda x: x.detach(), ["detach"]),
    "copy_": (lambda x: x.copy_(trt.ones(2, 3)), ["copy_"]),
    "view(dtype)": (lambda x: x.view(trt.int32), ["view"]),
    "fill_": (lambda x: x.fill_(3), ["fill_"]),
    "zero_": (lambda x: x.zero_(), ["zero_"]),
    "data": (lambda x: x.data, ["detach"]),
    "x[i]": (lambda x: x[trt.tensor(1)], ["_local_scalar_dense", "select"]),
    "dropout": (lambda x: seeded(F.dropout, x, 0.3), ["empty_like", "bernoulli_", "div_", "mul"]),
    "dropout_": (lambda x: seeded(F.dropout, x, 0.3, inplace=True), ["empty_like", "bernoulli_", "div_", "mul_"]),
    "rrelu": (lambda x: seeded(F.rrelu, x, training=True), ["empty_like", "rrelu_with_noise"]),
    "rrelu_": (lambda x: seeded(F.rrelu, x, training=True, inplace=True), ["empty_like", "rrelu_with_noise_"]),
}
FUSED = {"dropout", "dropout_"}  # without a mode one operator computes them


def seeded(function, *args, **kwargs):
    trt.manual_seed(7)
    return function(*args, **kwargs)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_a_mode_sees(call, recorded) -> None:
    function, expected = CALLS[call]

    def operand():
        x = trt.arange(6.0).reshape(2, 3).clone()
        return x.requires_grad_() * 1 if recorded else x

    plain, watched = operand(), operand()
    before = watched._version
    first = function(plain)
    with Log() as log:
        second = function(watched)
    made = {"ones", "tensor", "arange", "empty", "lift_fresh"}
    assert [name for name in log.seen if name not in made] == expected
    assert trt.equal(first, second) and trt.equal(plain, watched)
    assert watched._version - before == plain._version - before, "a write counts once"
    assert second.requires_grad == first.requires_grad
    assert call in FUSED or type(second.grad_fn) is type(first.grad_fn)


READS = {
    "item": lambda x: x.item(),
    "bool": bool,
    "if": lambda x: 1 if x else 0,
    "float": float,
    "int": int,
    "complex": complex,
    "index": lambda x: "abc"[x],
    "range": lambda x: list(range(x)),
    "is_nonzero": lambda x: x.is_nonzero(),
    "tolist": lambda x: x.tolist(),
    "format": lambda x: f"{x:d}",
}


@pytest.mark.parametrize("read", READS)
def test_a_mode_sees_that_an_element_is_read(read) -> None:
    x = trt.tensor(2)
    with Log() as log:
        result = READS[read](x)
    assert log.seen == ["_local_scalar_dense"]
    assert result == READS[read](x)


def test_a_mode_sees_each_element_that_tolist_reads() -> None:
    x = trt.arange(6).reshape(2, 3)
    with Log() as log:
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
        assert trt.empty(0, 2).tolist() == []
    assert log.seen.count("_local_scalar_dense") == 6


def test_a_mode_may_answer_for_an_element() -> None:
    class Three(Log):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return 3 if func is trt.ops.aten._local_scalar_dense.default else super().__torch_dispatch__(func, types, args, kwargs)

    x = trt.tensor(1)
    with Three():
        assert (x.item(), float(x), int(x), bool(x), x.tolist(), trt.arange(5)[x].tolist()) == (3, 3.0, 3, True, 3, 3)


def test_printing_is_not_seen() -> None:
    x = trt.ones(2)
    with Log() as log:
        assert repr(x) == "tensor([1., 1.])"
    assert log.seen == []


def test_a_subclass_sees_reads_and_data() -> None:
    seen = []

    class Watching(trt.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(func._name)
            plain = [a.as_subclass(trt.Tensor) if isinstance(a, Watching) else a for a in args]
            result = func(*plain, **(kwargs or {}))
            return result.as_subclass(Watching) if isinstance(result, trt.Tensor) else result

    x = trt.tensor(2.5).as_subclass(Watching)
    assert (x.item(), float(x), bool(x), type(x.data)) == (2.5, 2.5, True, Watching)
    assert seen == ["_local_scalar_dense"] * 3 + ["detach"]


@pytest.mark.parametrize("call", [
    lambda x: x.masked_fill(x > 1, 0.1), lambda x: x.masked_fill_(x > 1, 0.1), lambda x: assign(x, x > 1, 0.1), lambda x: x.index_fill(0, trt.tensor([0]), 0.1),
    lambda x: trt.where(x > 1, x, 0.1), lambda x: trt.where(x > 1, 0.1, x), lambda x: x.fill_(0.1), lambda x: x.add(0.1), lambda x: x.clamp(0.1, 2.0),
])  # fmt: skip
def test_a_number_is_a_number_to_modes(call) -> None:
    class Numbers(Log):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen += [a for a in (*args, *(kwargs or {}).values()) if type(a) is float and a == 0.1] if not func._name.startswith(("gt", "tensor")) else []
            assert not any(isinstance(a, trt.Tensor) and a.dim() == 0 for a in args), func
            return func(*args, **(kwargs or {}))

    x, y = trt.arange(6.0).reshape(2, 3), trt.arange(6.0).reshape(2, 3)
    with Numbers() as mode:
        result = call(x)
    assert mode.seen == [0.1]
    assert trt.equal(result, call(y))


@pytest.mark.parametrize("call", [lambda x: x.prod(), lambda x: x.prod(0), lambda x: x.cumprod(0), lambda x: trt.linalg.det(x)], ids=["prod", "prod(0)", "cumprod", "det"])
def test_gradients_below_a_mode_do_not_depend_on_elements(call) -> None:
    x = trt.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=trt.float64, requires_grad=True)
    (expected,) = trt.autograd.grad(call(x).sum(), x)
    with Log() as log:
        (found,) = trt.autograd.grad(call(x).sum(), x)
    assert "_local_scalar_dense" not in log.seen
    assert trt.allclose(found, expected)


@pytest.mark.parametrize("make", [lambda p: trt.optim.SGD(p, 0.1, momentum=0.9, fused=True), lambda p: trt.optim.Adam(p, 0.1, fused=True), lambda p: trt.optim.AdamW(p, 0.1, fused=True)], ids=["SGD", "Adam", "AdamW"])
def test_a_mode_sees_the_optimizers_fused_steps(make) -> None:
    results = []
    for watched in (False, True):
        w = trt.ones(3, requires_grad=True)
        optimizer = make([w])
        (w * w).sum().backward()
        before = w._version
        if watched:
            with Log() as log:
                optimizer.step()
            assert any(name.startswith("_fused_") for name in log.seen), log.seen
        else:
            optimizer.step()
        results.append((w.tolist(), w._version - before))
    assert results[0] == results[1]


STEPS = [
    (trt.optim.SGD, {}, ["add_"]),
    (trt.optim.SGD, {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}, ["add", "mul_", "add_", "add", "add_"]),
    (trt.optim.Adam, {}, ["add_", "lerp_", "mul_", "addcmul_", "sqrt", "div", "add_", "addcdiv_"]),
    (trt.optim.AdamW, {}, ["add_", "mul_", "lerp_", "mul_", "addcmul_", "sqrt", "div", "add_", "addcdiv_"]),
]


@pytest.mark.parametrize(("kind", "options", "expected"), STEPS, ids=lambda x: x.__name__ if isinstance(x, type) else "")
def test_a_step_that_is_not_fused_is_pytorchs_operators_to_a_mode(kind, options, expected) -> None:
    results = []
    for watched in (False, True):
        w = trt.tensor([1.0, 2.0], requires_grad=True)
        optimizer = kind([w], **options)
        for last in (False, True):
            optimizer.zero_grad()
            (w * w).sum().backward()
            with Log() if watched and last else contextlib.nullcontext() as log:
                optimizer.step()
        results.append(w.detach())
    assert [name for name in log.seen if name not in ("_local_scalar_dense", "detach")] == expected
    assert trt.allclose(*results, rtol=1e-6)


def test_a_mode_sees_the_operators_of_a_fused_derivative() -> None:
    w = trt.tensor([0.5, 2.0], requires_grad=True)
    y = (w * w).sigmoid() + w.relu()
    expected = trt.autograd.grad(y, w, trt.ones(2), retain_graph=True)[0]
    with Log() as log:
        (g,) = trt.autograd.grad(y, w, trt.ones(2))
    assert trt.allclose(g, expected)
    assert "mul" in log.seen and not any("backward" in name for name in log.seen)


def test_fused_derivatives_are_in_the_table() -> None:
    kernels = trt._C.core.dispatch.operator_kernels()
    assert {"CPU", "CUDA", "Meta", "PrivateUse1", "Python", "Autograd", "ForwardAD"} <= set(kernels["mul_backward_self"])


@pytest.mark.parametrize("make", [lambda: trt.zeros(2, 3), lambda: trt.zeros((2, 3)), lambda: trt.zeros(size=(2, 3)), lambda: trt.randint(0, 3, (2, 3)), lambda: trt.randint(3, (2, 3)), lambda: trt.ones(1).new_empty(2, 3), lambda: trt.zeros(trt.tensor(2), 3)])
def test_factories_sizes_are_a_list_to_modes(make) -> None:
    class Sizes(Log):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen += [list(a) for a in args if isinstance(a, (list, tuple))]
            return func(*args, **(kwargs or {}))

    with Sizes() as mode:
        assert make().shape == (2, 3)
    assert mode.seen[-1] == [2, 3]
