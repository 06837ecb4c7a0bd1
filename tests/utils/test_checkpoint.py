"""Checkpointing: the gradients of the plain pass bit for bit, nothing kept in between, errors where PyTorch has them."""

from __future__ import annotations

import warnings
import weakref
from contextlib import contextmanager

import pytest

import tensorrt_lite as trt
from tensorrt_lite import nn
from tensorrt_lite.utils.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

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


def test_a_captured_tensor_may_have_a_history():
    x, w = trt.rand(3, requires_grad=True), trt.rand(3, requires_grad=True)
    h = w * 2
    y = checkpoint(lambda x: (x * h).exp(), x, use_reentrant=False)
    expected = trt.autograd.grad((x * w * 2).exp().sum(), (x, w))
    for got, wanted in zip(trt.autograd.grad(y.sum(), (x, w)), expected, strict=True):
        trt.testing.assert_close(got, wanted)


def test_a_recomputation_that_does_something_else():
    x, runs = trt.rand(3, requires_grad=True), []

    def shorter(x):
        runs.append(0)
        return x.exp() if len(runs) % 2 else x.exp().sin()

    def longer(x):
        return shorter(x).cos()

    def wider(x):
        runs.append(0)
        return x.expand(1 + len(runs) % 2, 3).exp()

    for function, early_stop in ((shorter, False), (longer, False), (wider, True), (wider, False)):
        runs.clear()
        y = checkpoint(function, x, use_reentrant=False, early_stop=early_stop)
        with pytest.raises(CheckpointError, match="recomput"):
            y.sum().backward()
    runs.clear()
    y = checkpoint(lambda x: shorter(x).exp(), x, use_reentrant=False, determinism_check="none")
    y.sum().backward()  # exp, exp, then exp, sin: as many tensors of the same shape
    assert x.grad.shape == x.shape


def test_arguments_written_in_place():
    x = trt.rand(3, requires_grad=True)
    y = checkpoint(lambda h: h.add_(1).exp(), x * 1, use_reentrant=False)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    checkpoint(lambda h: h.add_(1) * 2, x * 1, use_reentrant=False).sum().backward()  # saves nothing, so nothing is run again
    assert x.grad.tolist() == [2.0] * 3
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
    assert ours[2:] == theirs[2:]


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


# ---- the function's own graph


def own_graph(lib, program):
    import importlib

    return program(lib, importlib.import_module(f"{lib.__name__}.utils.checkpoint"))


def as_in_pytorch(program):
    torch = pytest.importorskip("torch")
    here = own_graph(trt, program)
    assert here == own_graph(torch, program)
    return here


def test_a_hook_sees_one_gradient_of_a_parameter_of_two_calls():
    def program(lib, module):
        w = lib.ones(2, requires_grad=True)
        w.register_hook(lambda g: g * 10)
        y = module.checkpoint(lambda x: w * x, lib.ones(2, requires_grad=True), use_reentrant=False)
        (module.checkpoint(lambda x: w * x, y, use_reentrant=False).sum() + w.sum()).backward()
        return w.grad.tolist()

    assert as_in_pytorch(program) == [30.0, 30.0]


def test_results_have_the_nodes_of_their_operators():
    def program(lib, module):
        x, y = module.checkpoint(lambda a: (a.exp(), a.sin()), lib.ones(2, requires_grad=True), use_reentrant=False)
        return x.grad_fn.name(), y.grad_fn.name(), x.grad_fn.next_functions[0][0].name().rpartition("::")[2]

    as_in_pytorch(program)


def test_a_hook_may_run_the_graph_again():
    def program(lib, module):
        runs = []

        def function(a):
            y = a.sin().cos()
            return y, y.sin()

        a = lib.ones(1, requires_grad=True)
        x, out = module.checkpoint(function, a, use_reentrant=False)

        def hook(*_):
            runs.append(0)
            x.backward(retain_graph=True)

        out.grad_fn.register_hook(hook)
        out.backward(retain_graph=True)
        return len(runs)

    assert as_in_pytorch(program) == 1


@pytest.mark.parametrize("early_stop", [None, True, False])
def test_a_recomputation_stops_early(early_stop):
    def program(lib, module):
        steps = []

        def function(x):
            y = x.sin()
            steps.append("sin")
            y = y.exp()
            steps.append("exp")
            y = y * 2
            steps.append("end")
            return y

        def run(**options):
            steps.clear()
            module.checkpoint(function, lib.rand(2, requires_grad=True), use_reentrant=False, **options).sum().backward()
            return list(steps)

        if early_stop is None:
            return run()
        with module.set_checkpoint_early_stop(early_stop):
            return run(), run(early_stop=not early_stop)

    as_in_pytorch(program)


def test_a_function_that_saves_nothing_is_not_run_again():
    def program(lib, module):
        runs = []

        def function(x):
            runs.append(0)
            return x * 2 + 1

        module.checkpoint(function, lib.rand(2, requires_grad=True), use_reentrant=False).sum().backward()
        return len(runs)

    assert as_in_pytorch(program) == 1


@pytest.mark.parametrize("reads", [1, 2])
def test_saved_tensors_are_read_once_in_a_pass(reads):
    def program(lib, module):
        class Square(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, g):
                for _ in range(reads):
                    (x,) = ctx.saved_tensors
                return 2 * x * g

        x = lib.ones(2, requires_grad=True)
        y = module.checkpoint(lambda x: Square.apply(x).exp(), x, use_reentrant=False)
        try:
            y.sum().backward()
        except module.CheckpointError:
            return "refused"
        return x.grad is not None

    assert as_in_pytorch(program) == (True if reads == 1 else "refused")


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("early_stop", [True, False])
def test_nested_calls_run_as_often(depth, early_stop):
    def program(lib, module):
        counts = [0] * (depth + 1)

        def level(k):
            def function(x):
                counts[k] += 1
                y = (x * 1.5).sin()
                return y.cos() if k == depth else module.checkpoint(level(k + 1), y, use_reentrant=False).cos()

            return function

        x = lib.linspace(0, 1, 4, dtype=lib.float64).requires_grad_()
        with module.set_checkpoint_early_stop(early_stop):
            y = module.checkpoint(level(0), x, use_reentrant=False)
            first = lib.autograd.grad(y.sum(), x, create_graph=True)[0]
            second = lib.autograd.grad((first * first).sum(), x)[0]
        return counts, [round(v, 10) for v in (*first.tolist(), *second.tolist())]

    as_in_pytorch(program)


def test_gradients_of_tensors_inside_can_be_kept():
    def program(lib, module):
        inside = []

        def function(x):
            h = x.sin()
            if not inside:
                h.retain_grad()
            inside.append(h)
            return h.exp()

        x = lib.zeros(2, requires_grad=True)
        module.checkpoint(function, x, use_reentrant=False).sum().backward()
        return inside[0].grad.tolist()

    assert as_in_pytorch(program) == [1.0, 1.0]


def test_a_pass_inside_of_the_function():
    def program(lib, module):
        def function(x):
            y = x.sin().exp()
            (g,) = lib.autograd.grad(y.sum(), x, create_graph=True)
            return y * g

        x = lib.linspace(0, 1, 4, dtype=lib.float64).requires_grad_()
        module.checkpoint(function, x, use_reentrant=False).sum().backward()
        return [round(v, 10) for v in x.grad.tolist()]

    as_in_pytorch(program)


def test_autocast_is_that_of_the_forward_pass():
    def program(lib, module):
        seen = []
        w = lib.rand(4, 4, requires_grad=True)

        def function(x):
            y = x @ w
            seen.append(str(y.dtype))
            return y.float().sin()

        with lib.autocast("cpu", dtype=lib.bfloat16):
            y = module.checkpoint(function, lib.rand(2, 4), use_reentrant=False)
        y.sum().backward()
        return seen, str(w.grad.dtype)

    as_in_pytorch(program)


def test_debug_lists_the_operators_of_both_runs():
    runs = []

    def function(x):
        runs.append(0)
        return x.exp().sin() if len(runs) == 1 else x.exp()

    def differing(**options):
        runs.clear()
        checkpoint(function, trt.rand(3, requires_grad=True), use_reentrant=False, early_stop=False, **options).sum().backward()

    for options in ({"debug": True}, {}):
        with pytest.raises(CheckpointError) as error, set_checkpoint_debug_enabled(None if options else True):
            differing(**options)
        text = str(error.value)
        assert "Operators of the forward pass" in text and text.count("aten.exp.default") == 2 and text.count("aten.sin.default") == 1
        assert "test_checkpoint.py" in text
    with pytest.raises(ValueError, match="context_fn"):
        checkpoint(function, trt.rand(3), use_reentrant=False, debug=True, context_fn=lambda: noop_context_fn())
    with set_checkpoint_debug_enabled(False), pytest.raises(CheckpointError) as error:
        differing(debug=True)
    assert "Operators" not in str(error.value)


@pytest.mark.parametrize("layer", ["conv", "norms", "attention", "lstm", "losses", "linalg"])
def test_operators_save_and_read_each_tensor_once(layer):
    trt.manual_seed(0)
    double = {"dtype": trt.float64}
    x = trt.rand(2, 4, 6, **double)
    function = {
        "conv": lambda: nn.Sequential(nn.Conv1d(4, 4, 3, padding=1, **double), nn.PReLU(**double), nn.MaxPool1d(2, 1), nn.AvgPool1d(2, 1), nn.Upsample(scale_factor=2, mode="linear")),
        "norms": lambda: nn.Sequential(nn.BatchNorm1d(4, **double), nn.GroupNorm(2, 4, **double), nn.LayerNorm(6, **double), nn.InstanceNorm1d(4), nn.RMSNorm(6, **double), nn.GELU(), nn.Softmax(-1), nn.GLU()),
        "attention": lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.2, **double),
        "lstm": lambda: (lambda lstm: lambda h: lstm(h)[0])(nn.LSTM(6, 6, 2, **double)),
        "losses": lambda: lambda h: nn.functional.cross_entropy(h, trt.tensor([[0, 1, 2, 3, 0, 1]] * 2)) + nn.functional.smooth_l1_loss(h, h.flip(0)) + h.logsumexp(1).sum() + h.prod(),
        "linalg": lambda: lambda h: trt.linalg.inv(h @ h.transpose(1, 2) + 3 * trt.eye(4, **double)).cumsum(1).sort(-1)[0].cumprod(-1) + trt.linalg.pinv(h @ h.transpose(1, 2)),
    }[layer]()

    def gradient(call):
        trt.manual_seed(1)
        h = x.clone().requires_grad_()
        call(h).sum().backward()
        return h.grad

    assert trt.equal(gradient(function), gradient(lambda h: checkpoint(function, h, use_reentrant=False)))


def test_a_reentrant_call_whose_result_needs_no_gradient():
    def program(lib, module):
        kept, other = lib.ones(2), lib.ones(2, requires_grad=True)
        try:
            module.checkpoint(lambda a, b: a, kept, other, use_reentrant=True).sum().backward()
        except RuntimeError as error:
            return str(error)
        return None

    assert as_in_pytorch(program) is not None
