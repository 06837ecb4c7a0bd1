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
