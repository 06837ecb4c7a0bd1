"""Checkpointing: the gradients of the plain pass bit for bit, nothing kept in between, errors where PyTorch has them."""

from __future__ import annotations

import warnings
import weakref
from contextlib import contextmanager

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, noop_context_fn, set_checkpoint_early_stop

REENTRANT = pytest.mark.parametrize("reentrant", [False, True])


def network() -> nn.Sequential:
    trt.manual_seed(0)
    return nn.Sequential(*(nn.Sequential(nn.Linear(6, 6), nn.GELU(), nn.Dropout(0.4), nn.LayerNorm(6)) for _ in range(4)))


def gradients(run, model, x):
    """Output and gradients of a run from the same random numbers."""
    trt.manual_seed(1)
    model.zero_grad()
    x = x.clone().requires_grad_()
    y = run(x * 2)
    (y * y).sum().backward()
    return [y.tolist(), x.grad.tolist(), trt.rand(3).tolist(), *(p.grad.tolist() for p in model.parameters())]


@REENTRANT
def test_gradients_are_those_of_the_plain_pass(reentrant):
    model, x = network(), trt.randn(5, 6)
    plain = gradients(model, model, x)
    assert gradients(lambda h: checkpoint(model, h, use_reentrant=reentrant), model, x) == plain

    def each(h):
        for layer in model:
            h = checkpoint(layer, h, use_reentrant=reentrant)
        return h

    assert gradients(each, model, x) == plain
    for segments in (1, 2, 3, 4):
        assert gradients(lambda h, n=segments: checkpoint_sequential(model, n, h, use_reentrant=reentrant), model, x) == plain


@REENTRANT
def test_nested(reentrant):
    model, x = network(), trt.randn(5, 6)

    def inner(h):
        return checkpoint(model[1], checkpoint(model[0], h, use_reentrant=reentrant), use_reentrant=reentrant)

    def outer(h):
        return model[3](model[2](checkpoint(inner, h, use_reentrant=reentrant)))

    assert gradients(outer, model, x) == gradients(model, model, x)


def test_without_preserving_random_numbers_others_are_drawn():
    trt.manual_seed(3)
    x = trt.ones(1000, requires_grad=True)
    y = checkpoint(nn.Dropout(0.5), x, use_reentrant=False, preserve_rng_state=False)
    y.sum().backward()
    assert ((y != 0) != (x.grad != 0)).any()


@REENTRANT
def test_intermediate_results_are_not_kept(reentrant):
    alive = []

    def function(x):
        h = (x * 2).exp()
        alive.append(weakref.ref(h))
        return h * h

    def held():
        return sum(r() is not None for r in alive)

    x = trt.ones(4, requires_grad=True)
    y = function(x)
    assert held() == 1  # the plain graph saves it
    y = x
    for _ in range(3):
        y = checkpoint(function, y * 0.01, use_reentrant=reentrant)
    assert held() == 0
    y.sum().backward()
    del y
    assert held() == 0
    assert len(alive) == 7


def test_keywords_structures_and_arguments_without_gradients():
    a, b, c = (trt.rand(3, requires_grad=True) for _ in range(3))
    index = trt.tensor([2, 0, 1])

    def function(pair, index, *, scale, offset=None):
        first, rest = pair
        return {"sum": (first * rest["b"])[index] * scale + offset, "same": index, "n": 3, "list": [first.exp(), rest["b"]]}

    def loss(result):
        assert result["n"] == 3
        assert not result["same"].requires_grad
        return (result["sum"] * trt.arange(3.0)).sum() + result["list"][0].sum() + (result["list"][1] ** 2).sum()

    call = ((a, {"b": b}), index)
    expected = trt.autograd.grad(loss(function(*call, scale=c, offset=0.5)), (a, b, c))
    got = trt.autograd.grad(loss(checkpoint(function, *call, scale=c, offset=0.5, use_reentrant=False)), (a, b, c))
    assert [g.tolist() for g in got] == [g.tolist() for g in expected]


def test_autograd_grad_and_inputs():
    model, x = network().eval(), trt.randn(2, 6, requires_grad=True)
    weight = model[0][0].weight
    expected = trt.autograd.grad(model(x).sum(), (x, weight))
    got = trt.autograd.grad(checkpoint(model, x, use_reentrant=False).sum(), (x, weight))
    assert [g.tolist() for g in got] == [g.tolist() for g in expected]
    assert weight.grad is None
    checkpoint(model, x, use_reentrant=False).sum().backward(inputs=[weight])
    assert weight.grad.tolist() == expected[1].tolist()
    assert x.grad is None
    for ask in (lambda y: trt.autograd.grad(y, x), lambda y: y.backward(inputs=[x])):
        with pytest.raises(RuntimeError, match="use_reentrant=True"):
            ask(checkpoint(model, x, use_reentrant=True).sum())


def test_the_graph_can_run_twice_and_outputs_be_written_in_place():
    x = trt.rand(3, requires_grad=True)
    y = checkpoint(lambda x: x.exp() * x, x, use_reentrant=False)
    first = trt.autograd.grad(y.sum(), x, retain_graph=True)[0]
    assert trt.autograd.grad(y.sum(), x)[0].tolist() == first.tolist()
    y = checkpoint(lambda x: x.exp() * x, x, use_reentrant=False)
    y.mul_(2)
    assert trt.autograd.grad(y.sum(), x)[0].tolist() == (2 * first).tolist()


def test_functions_that_return_their_argument_or_use_it_twice():
    x = trt.rand(3, requires_grad=True)
    for function in (lambda h: h, lambda h: (h, h * 2), lambda h: h * x):
        for h in (x, x * 1.5):
            expected = function(h)
            got = checkpoint(function, h, use_reentrant=False)
            total = [sum(t.sum() for t in (y if isinstance(y, tuple) else (y,))) for y in (expected, got)]
            wanted, found = (trt.autograd.grad(t, x, retain_graph=True)[0].tolist() for t in total)
            assert wanted == found


def test_a_captured_tensor_with_a_history_is_kept_whole_with_a_warning():
    x, w = trt.rand(3, requires_grad=True), trt.rand(3, requires_grad=True)
    h = w * 2
    with pytest.warns(UserWarning, match="not among its arguments"):
        y = checkpoint(lambda x: (x * h).exp(), x, use_reentrant=False)
    expected = trt.autograd.grad((x * w * 2).exp().sum(), (x, w))
    for got, wanted in zip(trt.autograd.grad(y.sum(), (x, w)), expected, strict=True):
        trt.testing.assert_close(got, wanted)


def test_a_recomputation_that_does_something_else():
    x, runs = trt.rand(3, requires_grad=True), []

    def shorter(x):
        runs.append(0)
        return x.exp() if len(runs) % 2 else x.exp().sin()

    def other(x):
        runs.append(0)
        return x.exp() if len(runs) % 2 else x.sin()

    def wider(x):
        runs.append(0)
        return x.expand(1 + len(runs) % 2, 3)

    for function in (shorter, other, wider):
        runs.clear()
        y = checkpoint(function, x, use_reentrant=False)
        with pytest.raises(CheckpointError, match="recomput"):
            y.sum().backward()
    runs.clear()
    checkpoint(other, x, use_reentrant=False, determinism_check="none").sum().backward()
    assert x.grad.tolist() == x.cos().tolist()


def test_arguments_written_in_place():
    x = trt.rand(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="in place"):
        checkpoint(lambda h: h.add_(1) * 2, x * 1, use_reentrant=False)
    for reentrant in (False, True):
        h = x * 1
        y = checkpoint(lambda h: h * h, h, use_reentrant=reentrant)
        h.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()


def test_contexts():
    entered = []

    @contextmanager
    def note(name):
        entered.append(name)
        yield

    x = trt.rand(3, requires_grad=True)
    y = checkpoint(trt.exp, x, use_reentrant=False, context_fn=lambda: (note("forward"), note("again")))
    assert entered == ["forward"]
    with set_checkpoint_early_stop(False):
        y.sum().backward()
    assert entered == ["forward", "again"]


def test_without_gradients_the_function_runs_once():
    runs = []
    with trt.no_grad():
        for reentrant in (False, True):
            y = checkpoint(lambda x: runs.append(0) or x * 2, trt.ones(2), use_reentrant=reentrant)
            assert not y.requires_grad
    assert len(runs) == 2
    assert checkpoint(lambda: 5, use_reentrant=False) == 5


@pytest.mark.parametrize("shared", [False, True])
def test_second_derivatives(shared):
    trt.manual_seed(0)
    layers = [nn.Linear(4, 4, dtype=trt.float64) for _ in range(3)]
    chain = [layers[0]] * 3 if shared else layers
    x = trt.rand(2, 4, dtype=trt.float64, requires_grad=True)
    weights = [x, *{id(p): p for layer in chain for p in layer.parameters()}.values()]

    def second(through):
        h = x * 1.5
        for layer in chain:
            h = through(lambda h, layer=layer: layer(h).tanh(), h)
        first = trt.autograd.grad((h**3).sum(), weights, create_graph=True)
        return [*first, *trt.autograd.grad(sum((g * g).sum() for g in first), weights)]

    plain = second(lambda f, h: f(h))
    for through in (lambda f, h: checkpoint(f, h, use_reentrant=False), lambda f, h: checkpoint(lambda h: checkpoint(f, h, use_reentrant=False), h, use_reentrant=False)):
        for got, expected in zip(second(through), plain, strict=True):
            trt.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


def test_gradgradcheck():
    x, w = (trt.rand(3, dtype=trt.float64, requires_grad=True) for _ in range(2))
    function = lambda x, w: checkpoint(lambda x, scale: (x * w).sin() * scale.exp(), x * w, scale=w, use_reentrant=False) + (0 * w)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trt.autograd.gradgradcheck(function, (x, w))


@pytest.mark.parametrize(
    "options",
    [
        {"use_reentrant": True, "scale": 2},
        {"use_reentrant": True, "debug": True},
        {"use_reentrant": True, "context_fn": lambda: noop_context_fn()},
        {"use_reentrant": False, "determinism_check": "some"},
    ],
    ids=["keyword", "debug", "context", "determinism"],
)
def test_arguments_are_refused_as_in_pytorch(options):
    torch = pytest.importorskip("torch")
    from torch.utils.checkpoint import checkpoint as reference

    with pytest.raises(ValueError) as here:
        checkpoint(lambda x, **_: x, trt.ones(1, requires_grad=True), **options)
    with pytest.raises(ValueError) as there:
        reference(lambda x, **_: x, torch.ones(1, requires_grad=True), **options)
    assert type(here.value) is type(there.value)


def test_warnings_are_pytorchs():
    torch = pytest.importorskip("torch")
    from torch.utils import checkpoint as there

    from tensorrt_lite.utils import checkpoint as here

    for library, module in ((trt, here), (torch, there)):
        with pytest.warns(UserWarning, match="use_reentrant"):
            module.checkpoint(lambda x: x * 2, library.ones(1, requires_grad=True)).sum().backward()
        with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
            module.checkpoint(lambda x: x * 2, library.ones(1), use_reentrant=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            module.checkpoint(lambda x: x * 2, library.ones(1), use_reentrant=False)


# ---- selective checkpointing


def selective(lib, policy_of):
    """Gradients, and how often mm and exp ran, forward and again."""
    from collections import Counter
    from functools import partial

    module = __import__(f"{lib.__name__}.utils._python_dispatch", fromlist=["TorchDispatchMode"])
    checkpoint = __import__(f"{lib.__name__}.utils.checkpoint", fromlist=["checkpoint"])
    ran = Counter()

    class Counting(module.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            ran[str(func)] += 1
            return func(*args, **(kwargs or {}))

    x = lib.arange(4.0).reshape(2, 2).div(4).requires_grad_()
    w = lib.ones(2, 2, requires_grad=True)
    policy = policy_of(lib, checkpoint)
    with Counting():
        out = checkpoint.checkpoint(lambda x: (x @ w).exp() @ w, x, use_reentrant=False, context_fn=partial(checkpoint.create_selective_checkpoint_contexts, policy))
        out.sum().backward()
    return x.grad.tolist(), w.grad.tolist(), ran["aten.mm.default"], ran["aten.exp.default"]


POLICIES = {
    "list": lambda lib, c: [lib.ops.aten.mm.default],
    "function": lambda lib, c: lambda ctx, op, *args, **kwargs: c.CheckpointPolicy.MUST_SAVE if op is lib.ops.aten.mm.default else c.CheckpointPolicy.PREFER_RECOMPUTE,
    "nothing": lambda lib, c: [],
    "exp": lambda lib, c: [lib.ops.aten.exp.default],
}


@pytest.mark.parametrize("name", POLICIES)
def test_chosen_results_are_kept(name):
    torch = pytest.importorskip("torch", reason="the comparison needs PyTorch (extra `conformance`)")
    ours, theirs = selective(trt, POLICIES[name]), selective(torch, POLICIES[name])
    for mine, wanted in zip(ours[:2], theirs[:2]):
        trt.testing.assert_close(trt.tensor(mine), trt.tensor(wanted))
    # backward takes four products; the last one of the forward pass is computed again here and not by PyTorch, which stops early
    again = 0 if name in ("list", "function") else 2
    assert ours[2] == 2 + 4 + again and ours[3] == (1 if name == "exp" else 2)


def test_kept_results_must_not_change():
    from tensorrt_lite.utils.checkpoint import create_selective_checkpoint_contexts

    x = trt.ones(2, 2, requires_grad=True)

    def run(allowed):
        kept = []

        def function(x):
            y = x @ x
            kept.append(y)
            return y.exp()

        out = checkpoint(function, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts([trt.ops.aten.mm.default], allowed))
        kept[0].detach().mul_(2)
        out.sum().backward()

    with pytest.raises(RuntimeError, match="has been mutated"):
        run(False)
    run(True)
    with pytest.raises(TypeError, match="function or a list"):
        create_selective_checkpoint_contexts(3)
    with pytest.raises(ValueError, match="OpOverload"):
        create_selective_checkpoint_contexts([trt.mm])
