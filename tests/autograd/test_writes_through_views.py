"""In-place operators on views: first and second derivatives, and the writes that are refused, beside PyTorch."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")

# each takes (library, view), positive numbers below 1
OPERATORS = {
    "sigmoid_": lambda lib, v: v.sigmoid_(),
    "tanh_": lambda lib, v: v.tanh_(),
    "exp_": lambda lib, v: v.exp_(),
    "exp2_": lambda lib, v: v.exp2_(),
    "expm1_": lambda lib, v: v.expm1_(),
    "sqrt_": lambda lib, v: v.sqrt_(),
    "rsqrt_": lambda lib, v: v.rsqrt_(),
    "reciprocal_": lambda lib, v: v.reciprocal_(),
    "tan_": lambda lib, v: v.tan_(),
    "sin_": lambda lib, v: v.sin_(),
    "log_": lambda lib, v: v.log_(),
    "erfinv_": lambda lib, v: v.erfinv_(),
    "logit_": lambda lib, v: v.logit_(),
    "sinc_": lambda lib, v: v.sinc_(),
    "acos_": lambda lib, v: v.acos_(),
    "digamma_": lambda lib, v: v.digamma_(),
    "cumprod_": lambda lib, v: v.cumprod_(0),
    "cumsum_": lambda lib, v: v.cumsum_(0),
    "pow_": lambda lib, v: v.pow_(3),
    "mul_": lambda lib, v: v.mul_(v.clone()),
    "div_": lambda lib, v: v.div_(v.exp()),
    "addcmul_": lambda lib, v: v.addcmul_(v.clone(), v.clone()),
    "lerp_": lambda lib, v: v.lerp_(v.clone(), 0.3),
    "atan2_": lambda lib, v: v.atan2_(v.exp()),
    "hypot_": lambda lib, v: v.hypot_(v * 2),
    "renorm_": lambda lib, v: v.unsqueeze(-1).unsqueeze(-1).renorm_(2, 0, 0.1),
    "elu": lambda lib, v: lib.nn.functional.elu(v.sub_(0.5), 1.3, inplace=True),
    "celu": lambda lib, v: lib.nn.functional.celu(v.sub_(0.5), 2.0, inplace=True),
    "selu": lambda lib, v: lib.nn.functional.selu(v.sub_(0.5), inplace=True),
    "leaky_relu": lambda lib, v: lib.nn.functional.leaky_relu(v.sub_(0.5), 0.2, inplace=True),
    "rrelu": lambda lib, v: lib.nn.functional.rrelu(v.sub_(0.5), 0.2, 0.2, inplace=True),
    "relu": lambda lib, v: lib.nn.functional.relu(v.sub_(0.5), inplace=True),
    "threshold": lambda lib, v: lib.nn.functional.threshold(v, 0.3, 0.1, inplace=True),
    "hardtanh": lambda lib, v: lib.nn.functional.hardtanh(v, 0.2, 0.6, inplace=True),
    "silu": lambda lib, v: lib.nn.functional.silu(v, inplace=True),
    "mish": lambda lib, v: lib.nn.functional.mish(v, inplace=True),
    "hardswish": lambda lib, v: lib.nn.functional.hardswish(v, inplace=True),
    "two writes": lambda lib, v: v.sin_().sigmoid_(),
}

# of a tensor of shape (4, 6); `whole` is no view
VIEWS = {
    "whole": lambda h: h,
    "view": lambda h: h.view(24),
    "reshape": lambda h: h.reshape(2, 12),
    "narrow": lambda h: h.narrow(1, 1, 3),
    "slice": lambda h: h[:2],
    "select": lambda h: h[1],
    "transpose": lambda h: h.t(),
    "diagonal": lambda h: h.diagonal(),
    "step": lambda h: h[::2, 1::3],
    "as_strided": lambda h: h.as_strided((3, 2), (6, 2), 1),
    "view of a view": lambda h: h[1:].t()[2:4],
}


def derivatives(lib, operator, view, base_too):
    start = lib.linspace(0.1, 0.8, 24, dtype=lib.float64).reshape(4, 6)
    x, w = start.clone().requires_grad_(), lib.full((6,), 0.9, dtype=lib.float64, requires_grad=True)
    h = x * w
    part = operator(lib, view(h))
    loss = (h * h).sum() + part.sum() if base_too else (part * part).sum()
    first = lib.autograd.grad(loss, (x, w), create_graph=True)
    second = lib.autograd.grad(sum((g * g).sum() for g in first) + loss, (x, w))
    return [*first, *second]


@pytest.mark.parametrize("name", OPERATORS)
def test_second_derivatives(name) -> None:
    for kind, view in VIEWS.items():
        for base_too in (False, True):
            ours, theirs = (derivatives(lib, OPERATORS[name], view, base_too) for lib in (trt, torch))
            for mine, wanted in zip(ours, theirs, strict=True):
                trt.testing.assert_close(mine.detach(), trt.tensor(wanted.tolist(), dtype=trt.float64), rtol=1e-9, atol=1e-9, msg=lambda m, k=kind: f"{k}: {m}")


def weighted(operator, view):
    """First and second derivatives of what an operator makes of a view."""
    x = trt.linspace(0.1, 0.8, 24, dtype=trt.float64).reshape(4, 6).requires_grad_()
    w = trt.full((6,), 0.9, dtype=trt.float64, requires_grad=True)
    y = operator(view(x * w))
    first = trt.autograd.grad((y * y * trt.arange(y.numel(), dtype=trt.float64).reshape(y.shape)).sum(), (x, w), create_graph=True)
    return [*first, *trt.autograd.grad(sum((g * g).sum() for g in first), (x, w), allow_unused=True)]


def arguments():
    """Samples of what operators take beside a tensor of shape (2, 6)."""
    o, i = trt.full((2, 6), 0.3, dtype=trt.float64), trt.tensor([0, 1])
    mask = trt.tensor([[True, False] * 3] * 2)
    return [(), (o,), (2,), (0.3,), (0,), (0, 1), (o, o), (o, 0.3), (mask, 0.5), (mask, o), (0, i, o), (0, i, 0.5), (0.2, 0.6), (2, 0, 1.0)]


GEOMETRY = {"requires_grad_", "detach_", "resize_", "resize_as_", "set_", "squeeze_", "unsqueeze_", "transpose_", "t_", "swapaxes_", "swapdims_", "as_strided_"}


@pytest.mark.filterwarnings("ignore:This overload")
def test_every_method_in_place_has_the_derivatives_of_its_form_out_of_place() -> None:
    names = [n for n in dir(trt.Tensor) if n.endswith("_") and n[0] != "_" and n not in GEOMETRY and hasattr(trt.Tensor, n[:-1])]
    compared, different = set(), []
    for name in names:
        for given in arguments():
            for view in (VIEWS["narrow"], lambda h: h.t()[:, 1:3].t(), lambda h: h[1:3]):
                try:
                    expected = weighted(lambda v, n=name, a=given: getattr(v.clone(), n[:-1])(*a), view)
                except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
                    continue  # not of these arguments
                compared.add(name)
                for got, wanted in zip(weighted(lambda v, n=name, a=given: getattr(v, n)(*a), view), expected, strict=True):
                    same = got is wanted if got is None or wanted is None else trt.allclose(got, wanted, rtol=1e-9, atol=1e-9, equal_nan=True)
                    if not same and not (wanted is None and (got == 0).all() or got is None and (wanted == 0).all()):
                        different.append((name, [type(a).__name__ for a in given]))
    assert different == [] and len(compared) > 80


def test_second_derivatives_of_writes_to_parts_of_complex_numbers() -> None:
    def run(lib):
        x = lib.linspace(0.1, 0.8, 8, dtype=lib.float64).requires_grad_()
        z = lib.view_as_complex((x * x).reshape(4, 2))
        z.real.sigmoid_()
        g = lib.autograd.grad(lib.view_as_real(z * z).sum(), x, create_graph=True)[0]
        return lib.autograd.grad((g * g).sum(), x)[0].tolist()

    assert run(trt) == pytest.approx(run(torch), rel=1e-9)


def test_second_derivatives_of_a_function_that_writes_to_a_view() -> None:
    def run(lib):
        class Exp(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                x.exp_()
                ctx.save_for_backward(x)
                return x

            @staticmethod
            def backward(ctx, g):
                return g * ctx.saved_tensors[0]

        x = lib.linspace(0.1, 0.8, 6, dtype=lib.float64).requires_grad_()
        h = x * x
        Exp.apply(h[:4])
        g = lib.autograd.grad((h * h).sum(), x, create_graph=True)[0]
        return lib.autograd.grad((g * g).sum(), x)[0].tolist()

    assert run(trt) == pytest.approx(run(torch), rel=1e-9)


def test_second_derivatives_under_hooks_on_saved_tensors() -> None:
    def run(lib, hooked):
        x = lib.linspace(0.1, 0.8, 6, dtype=lib.float64).requires_grad_()
        h = x * x
        if hooked:
            with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                h[:4].tanh_()
        else:
            h[:4].tanh_()
        g = lib.autograd.grad((h * h).sum(), x, create_graph=True)[0]
        return lib.autograd.grad((g * g).sum(), x)[0].tolist()

    assert run(trt, True) == pytest.approx(run(torch, False), rel=1e-9)


# ---- writes that are refused


def recorded(lib, *shape):
    return lib.ones(*shape, requires_grad=True).clone()


def without_gradients(lib, make):
    with lib.no_grad():
        return make()


def made_in_inference(lib):
    plain = lib.ones(4)
    with lib.inference_mode():
        return plain.view(4)


def as_is(lib, x):
    class Same(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return g

    return Same.apply(x)


REFUSED = {
    "unbind": lambda lib: recorded(lib, 4).unbind()[0].mul_(2),
    "view of unbind": lambda lib: recorded(lib, 4, 2).unbind()[0].view(2).mul_(2),
    "slice of split": lambda lib: recorded(lib, 4).split(2)[0][0:1].mul_(2),
    "two views of chunk": lambda lib: recorded(lib, 4).chunk(2)[1].view(2, 1).t().exp_(),
    "view without gradients": lambda lib: (lambda l: without_gradients(lib, lambda: l.view(4)).mul_(2))(recorded(lib, 4)),
    "view of one without gradients": lambda lib: (lambda l: without_gradients(lib, lambda: l.view(4)).view(2, 2).mul_(2))(recorded(lib, 4)),
    "both without gradients": lambda lib: (lambda l: without_gradients(lib, lambda: l.view(4).view(2, 2)).mul_(2))(recorded(lib, 4)),
    "view in inference mode": lambda lib: made_in_inference(lib).mul_(lib.ones(4, requires_grad=True)),
    "view of one in inference mode": lambda lib: made_in_inference(lib).view(2, 2).mul_(lib.ones(2, 2, requires_grad=True)),
    "split of a plain tensor": lambda lib: lib.ones(4).split(2)[0].add_(lib.ones(2, requires_grad=True)),
    "unbind of a plain tensor": lambda lib: lib.ones(4).unbind()[0].add_(lib.ones((), requires_grad=True)),
    "view of a split of a plain tensor": lambda lib: lib.ones(4).split(2)[0].view(2, 1).mul_(lib.ones(2, 1, requires_grad=True)),
    "copy_ into a split": lambda lib: lib.ones(4).split(2)[0].copy_(lib.ones(2, requires_grad=True)),
    "setitem into a split": lambda lib: lib.ones(4).split(2)[0].__setitem__(0, lib.ones((), requires_grad=True)),
    "addcmul_ into a split": lambda lib: lib.ones(4).split(2)[0].addcmul_(lib.ones(2), lib.ones(2, requires_grad=True)),
    "addmm_ into a split": lambda lib: lib.ones(4, 2).split(2)[0].addmm_(lib.ones(2, 2), lib.ones(2, 2, requires_grad=True)),
    "a Function's view": lambda lib: as_is(lib, recorded(lib, 4)).mul_(2),
    "a Function's view of a plain tensor": lambda lib: as_is(lib, lib.ones(4)).mul_(lib.ones(4, requires_grad=True)),
    "leaf that is a view": lambda lib: lib.ones(4).view(4).requires_grad_().mul_(2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_writes_that_gradients_cannot_follow_are_refused(name) -> None:
    for lib in (trt, torch):
        with pytest.raises(RuntimeError, match="[Vv]iew|leaf"):
            REFUSED[name](lib)


def test_a_refused_write_changes_nothing() -> None:
    base = trt.ones(4)
    with pytest.raises(RuntimeError, match="multiple views"):
        base.split(2)[0].add_(trt.ones(2, requires_grad=True))
    assert base.tolist() == [1.0] * 4


@pytest.mark.parametrize(
    "write",
    [
        lambda lib: lib.ones(4).split(2)[0].mul_(2),
        lambda lib: without_gradients(lib, lambda: recorded(lib, 4).split(2)[0].mul_(2)),
        lambda lib: recorded(lib, 4).unbind()[0].detach().mul_(2),
        lambda lib: lib.ones(4)[:2].mul_(lib.ones(2, requires_grad=True)),
    ],
    ids=["plain", "no_grad", "detached", "slice"],
)
def test_writes_that_are_allowed(write) -> None:
    for lib in (trt, torch):
        assert write(lib).tolist() is not None


def test_a_view_whose_base_was_written_is_printed() -> None:
    for lib in (trt, torch):
        base = recorded(lib, 4)
        part = base.split(2)[0]
        base.mul_(2)
        assert repr(part) == "tensor([2., 2.], grad_fn=<Invalid>)"
        with pytest.raises(RuntimeError, match="multiple views"):
            part.grad_fn  # noqa: B018
        if lib is trt:
            assert "Invalid" in part._repr_html_()
