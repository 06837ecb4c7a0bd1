"""Custom autograd Functions: the same programs on PyTorch and on tensorrt_lite, and what only the package promises."""

from __future__ import annotations

import gc
import warnings

import pytest

import tensorrt_lite as trt


def raised(action, length: int = 70) -> tuple[str, str]:
    try:
        action()
    except Exception as error:
        return type(error).__name__, str(error)[:length]
    return "no error", ""


def square_saving_input_and_output(lib):
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, power, note=None):
            y = x**power
            ctx.save_for_backward(x, None, y)
            ctx.power = power
            return y

        @staticmethod
        def backward(ctx, g):
            x, nothing, y = ctx.saved_tensors
            assert nothing is None and ctx.needs_input_grad == (True, False, False)
            return g * ctx.power * y / x, None, None

    x = lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
    y = Square.apply(x, 3, "text")
    (g,) = lib.autograd.grad(y, x, lib.ones_like(y), create_graph=True)
    (h,) = lib.autograd.grad(g, x, lib.ones_like(g))
    return y.tolist(), g.tolist(), h.tolist(), type(y.grad_fn).__name__, y.grad_fn.name()


def two_outputs(lib):
    class Both(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b, a + b, 7

        @staticmethod
        def backward(ctx, g1, g2, g3):
            a, b = ctx.saved_tensors
            return g1 * b + g2, g1 * a + g2

    a = lib.tensor([2.0, 3.0], requires_grad=True)
    b = lib.tensor([5.0, 7.0], requires_grad=True)
    p, q, seven = Both.apply(a, b)
    p.backward(lib.ones(2), retain_graph=True)
    q.backward(lib.ones(2))
    return a.grad.tolist(), b.grad.tolist(), seven, p.output_nr, q.output_nr


def undefined_gradients(lib):
    log = []

    class Split(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.set_materialize_grads(False)
            return a * 2, a * 3

        @staticmethod
        def backward(ctx, g1, g2):
            log.append((g1 is None, g2 is None))
            return g1 if g2 is None else g2

    a = lib.tensor([1.0], requires_grad=True)
    Split.apply(a)[1].backward()
    Split.apply(a)[0].backward()
    return log, a.grad.tolist()


def input_modified_in_place(lib):
    class Triple(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            a.mul_(3)
            ctx.mark_dirty(a)
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 3

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    h = x * 1
    y = Triple.apply(h)
    y.backward(lib.ones(2))
    base = lib.zeros(2, 2)
    w = lib.tensor([1.0, 2.0], requires_grad=True)
    base.select(0, 1).add_(w)
    Triple.apply(base.select(0, 1))
    base.backward(lib.ones(2, 2))
    return y is h, h._version, x.grad.tolist(), w.grad.tolist(), raised(lambda: Triple.apply(x), 30)


def input_returned(lib):
    class Seven(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a

        @staticmethod
        def backward(ctx, g):
            return g * 7

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = Seven.apply(x)
    y.backward(lib.ones(2))
    return y is x, x.grad.tolist(), raised(lambda: y.mul_(2), 24)


def outputs_without_gradient(lib):
    class Top(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            mask = a > 1
            other = a * 2
            ctx.mark_non_differentiable(other)
            return a * 3, mask, other

        @staticmethod
        def backward(ctx, g, *rest):
            return g * 3

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y, mask, other = Top.apply(x)
    y.backward(lib.ones(2))
    return mask.tolist(), mask.requires_grad, other.requires_grad, x.grad.tolist()


def context_set_up_apart(lib):
    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(x, factor):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx, g):
            (output,) = ctx.saved_tensors
            return g * ctx.factor, None

    x = lib.tensor([1.0], requires_grad=True)
    Scale.apply(x, 4.0).backward()
    return x.grad.tolist()


def wrong_backward(lib):
    def function(backward):
        class Wrong(lib.autograd.Function):
            @staticmethod
            def forward(ctx, a, b):
                return a * 2

        Wrong.backward = staticmethod(backward)
        return Wrong

    x = lib.tensor([1.0, 2.0], requires_grad=True)

    def run(backward, b=None):
        return raised(lambda: function(backward).apply(x, b).backward(lib.ones(2)))

    return [
        run(lambda ctx, g: g),
        run(lambda ctx, g: (g, None, g)),
        run(lambda ctx, g: (lib.ones(5), None)),
        run(lambda ctx, g: (g, g)),
        run(lambda ctx, g: (g, None, None, None)),
        run(lambda ctx, g: (g.expand(3, 2), None)),
        x.grad.tolist(),
    ]


def missing_methods(lib):
    class Nothing(lib.autograd.Function):
        pass

    class OnlyForward(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

    x = lib.tensor([1.0], requires_grad=True)
    return raised(lambda: Nothing.apply(x), 40), raised(lambda: OnlyForward.apply(x).backward(), 40), raised(lambda: OnlyForward.apply(3))[0]


def differentiable_once(lib):
    from importlib import import_module

    once = import_module(lib.__name__ + ".autograd.function").once_differentiable

    class Once(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * a

        @staticmethod
        @once
        def backward(ctx, g):
            return g * 2

    x = lib.tensor([1.0], requires_grad=True)
    Once.apply(x).backward()
    (g,) = lib.autograd.grad(Once.apply(x), x, create_graph=True)
    return x.grad.tolist(), raised(lambda: g.backward(), 60)


def saved_then_modified(lib):
    class Keep(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g * a

    x = lib.tensor([1.0], requires_grad=True)
    h = x * 1
    y = Keep.apply(h)
    h.add_(1)
    z = Keep.apply(x)
    z.backward()
    return raised(lambda: y.backward(), 50), raised(lambda: z.backward(), 50), x.grad.tolist()


def backward_inside_backward(lib):
    class Checkpoint(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * a * a

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            with lib.enable_grad():
                b = a.detach().requires_grad_()
                (b * b * b).backward(g)
            return b.grad

    x = lib.tensor([1.0, 2.0], requires_grad=True)
    y = x
    for _ in range(5):
        y = Checkpoint.apply(y) * 0.5
    y.backward(lib.ones(2))
    return x.grad.tolist()


def saved_through_hooks(lib):
    log = []

    class Keep(lib.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a * 2

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            return g * a

    x = lib.tensor([3.0], requires_grad=True)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: (log.append("pack"), t.tolist())[1], lambda v: lib.tensor(v) + 1):
        y = Keep.apply(x)
    y.backward()
    return log, x.grad.tolist()


SCENARIOS = [f for name, f in sorted(globals().items()) if callable(f) and getattr(f, "__module__", "") == __name__ and name != "raised"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda f: f.__name__)
def test_scenario(scenario) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert scenario(trt) == scenario(torch)


class Both(trt.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        product = a * b
        ctx.save_for_backward(a, b, product)
        return product, a + b

    @staticmethod
    def backward(ctx, g1, g2):
        a, b, product = ctx.saved_tensors
        return g1 * b + g2 + 0 * product, g1 * a + g2


def test_no_cycles_and_nothing_left() -> None:
    a = trt.ones(3, requires_grad=True)
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            p, q = Both.apply(a, a)
            p.backward(trt.ones(3))
            Both.apply(a, a)
        del p, q
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_without_jvp_or_vmap_the_call_says_so() -> None:
    with pytest.raises(NotImplementedError, match="jvp"):
        Both.jvp(None)
    with pytest.raises(NotImplementedError, match="vmap"):
        Both.vmap(None, None)


def test_keyword_arguments_are_bound() -> None:
    a = trt.tensor([2.0], requires_grad=True)
    product, _ = Both.apply(a, b=trt.tensor([5.0]))
    product.backward()
    assert a.grad.tolist() == [5.0]


# ---- jvp, defaults, results returned twice


def with_jvp(lib, forward, jvp):
    return type("WithJvp", (lib.autograd.Function,), {"forward": staticmethod(forward), "jvp": staticmethod(jvp)})


def tangent_through(lib, forward, jvp):
    ad = lib.autograd.forward_ad
    with ad.dual_level():
        out = with_jvp(lib, forward, jvp).apply(ad.make_dual(lib.ones(3), lib.full((3,), 2.0)))
        tangent = ad.unpack_dual(out).tangent
        return None if tangent is None else tangent.tolist()


def doubled_in_place(ctx, x):
    ctx.mark_dirty(x)
    return x.mul_(2)


def not_differentiable(ctx, x):
    y = x * 2
    ctx.mark_non_differentiable(y)
    return y


def saving_for_backward(ctx, x):
    ctx.save_for_backward(x)
    return x * 2


JVPS = {
    "a view": (lambda ctx, x: x[:2], lambda ctx, t: t[:2]),
    "a copy for a view": (lambda ctx, x: x[:2], lambda ctx, t: t[:2].clone()),
    "a view of something else": (lambda ctx, x: x[:2], lambda ctx, t: (t * 1)[:2]),
    "the tangent for the input": (lambda ctx, x: x, lambda ctx, t: t),
    "a view for the input": (lambda ctx, x: x, lambda ctx, t: t.view_as(t)),
    "a copy for the input": (lambda ctx, x: x, lambda ctx, t: t.clone()),
    "a view for a copy": (lambda ctx, x: x[:2].clone(), lambda ctx, t: t[:2]),
    "written": (doubled_in_place, lambda ctx, t: t.mul_(2)),
    "a copy for a written input": (doubled_in_place, lambda ctx, t: t * 2),
    "None for a written input": (doubled_in_place, lambda ctx, t: None),
    "no tangent": (not_differentiable, lambda ctx, t: None),
    "a tangent for no gradient": (not_differentiable, lambda ctx, t: t),
    "a tangent for integers": (lambda ctx, x: x.long(), lambda ctx, t: t),
    "None for integers": (lambda ctx, x: x.long(), lambda ctx, t: None),
    "saved for backward": (saving_for_backward, lambda ctx, t: t * (2 + len(ctx.saved_tensors))),
    "saved for both": (lambda ctx, x: (ctx.save_for_forward(x), saving_for_backward(ctx, x))[1], lambda ctx, t: t * (2 + len(ctx.saved_tensors))),
}


@pytest.mark.parametrize("name", JVPS)
def test_what_jvp_returns_aliases_as_forward_does(name) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = ([], [])
    for lib, seen in ((trt, ours), (torch, theirs)):
        seen.append(raised(lambda lib=lib, seen=seen: seen.append(tangent_through(lib, *JVPS[name])), 40))
    assert ours == theirs


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_forward_without_ctx_may_have_defaults(kind) -> None:
    torch = pytest.importorskip("torch")

    def program(lib):
        own = () if kind is staticmethod else (None,)

        if kind is staticmethod:

            def forward(x, y=3):
                return x**y
        else:

            def forward(cls, x, y=3):
                return x**y

        def setup_context(*args):
            ctx, inputs, _ = args[len(own) :]
            ctx.x, ctx.y = inputs

        def backward(*args):
            ctx, g = args[len(own) :]
            return ctx.y * ctx.x ** (ctx.y - 1) * g, None

        Power = type("Power", (lib.autograd.Function,), {"forward": kind(forward), "setup_context": kind(setup_context), "backward": kind(backward)})
        found = []
        for arguments in ((), (2,)):
            x = lib.tensor(2.0, requires_grad=True)
            Power.apply(x, *arguments).backward()
            found += [x.grad.item(), lib.func.grad(lambda x, a=arguments: Power.apply(x, *a))(lib.tensor(2.0)).item()]
        return found

    assert program(trt) == program(torch) == [12.0, 12.0, 4.0, 4.0]


@pytest.mark.parametrize("dirty", [False, True])
def test_a_tensor_returned_twice_is_one_tensor(dirty) -> None:
    torch = pytest.importorskip("torch")

    def program(lib):
        class Twice(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                if dirty:
                    ctx.mark_dirty(x)
                    return x, x
                y = x * 2
                return y, y

            @staticmethod
            def backward(ctx, a, b):
                return a + 10 * b

        x = lib.ones(2, requires_grad=True)
        y = x.clone()
        a, b = Twice.apply(y)
        (a * 3 + b).sum().backward()
        return a is b, b is y, a.output_nr, x.grad.tolist()

    assert program(trt) == program(torch)


def test_an_input_returned_twice_gives_two_views() -> None:
    torch = pytest.importorskip("torch")

    def program(lib):
        class Twice(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x, x

            @staticmethod
            def backward(ctx, a, b):
                return a + 10 * b

        x = lib.ones(2, requires_grad=True)
        a, b = Twice.apply(x)
        (a * 3 + b).sum().backward()
        return a is b, x.grad.tolist()

    assert program(trt) == program(torch) == (False, [13.0, 13.0])


@pytest.mark.parametrize("everywhere", [True, False])
def test_gradients_of_results_without_one_may_stay_none(everywhere) -> None:
    torch = pytest.importorskip("torch")

    def program(lib):
        seen = []

        class Several(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx._materialize_non_diff_grads = everywhere
                marked = x * 4
                ctx.mark_non_differentiable(marked)
                return x * 2, x * 3, marked, x.long()

            @staticmethod
            def backward(ctx, *grads):
                seen.extend(None if g is None else g.tolist() for g in grads)
                return grads[0]

        Several.apply(lib.ones(2, requires_grad=True))[0].sum().backward()
        return seen

    assert program(trt) == program(torch)


def test_a_saved_input_that_is_returned_stays_the_input() -> None:
    torch = pytest.importorskip("torch")

    def program(lib):
        seen = []

        class Same(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.save_for_backward(x, y)
                return x

            @staticmethod
            def backward(ctx, g):
                seen.extend((t.requires_grad, t.grad_fn is None) for t in ctx.saved_tensors)
                return None, g

        Same.apply(lib.ones(2), lib.ones(2, requires_grad=True)).sum().backward()
        return seen

    assert program(trt) == program(torch) == [(False, True), (True, True)]
