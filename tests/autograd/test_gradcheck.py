"""gradcheck and gradgradcheck accept right gradients, find each sort of wrong one, and judge as PyTorch's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import gradcheck, gradgradcheck
from tensorrt_lite.autograd.gradcheck import GradcheckError

VALUES = [[0.3, -1.2, 0.8], [1.5, 0.1, -0.4]]


def leaf(library: Any = trt, values: Any = VALUES, dtype: str = "float64") -> Any:
    return library.tensor(values, dtype=getattr(library, dtype), requires_grad=True)


def custom(library: Any, forward: Callable[[Any], Any], backward: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A function of one tensor with a gradient of its own: `backward(x, grad)`."""

    class Custom(library.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return backward(ctx.saved_tensors[0], grad)

    return Custom.apply


# name: (function of the library that gives func, inputs of the library)
RIGHT: dict[str, tuple[Callable[[Any], Callable[..., Any]], Callable[[Any], Any]]] = {
    "tanh": (lambda t: t.tanh, lambda t: leaf(t)),
    "tuple of one": (lambda t: t.exp, lambda t: (leaf(t),)),
    "product": (lambda t: t.mul, lambda t: (leaf(t), leaf(t, [[1.0, 2.0, 3.0]]))),
    "scalar": (lambda t: lambda x: (x * x).sum(), lambda t: leaf(t)),
    "zero-dimensional": (lambda t: t.sin, lambda t: leaf(t, 0.7)),
    "two outputs": (lambda t: lambda x: (x.sin(), x.exp()), lambda t: leaf(t)),
    "output without gradient": (lambda t: lambda x: (x.sin(), x.detach().floor().long()), lambda t: leaf(t)),
    "unbind": (lambda t: lambda x: t.unbind(x * 2), lambda t: leaf(t)),
    "matmul": (lambda t: t.matmul, lambda t: (leaf(t), leaf(t, [[1.0], [2.0], [-1.0]]))),
    "number argument": (lambda t: lambda x, k: x * k, lambda t: (leaf(t), 3)),
    "input without gradient": (lambda t: t.mul, lambda t: (leaf(t), t.ones(2, 3, dtype=t.float64))),
    "unused input": (lambda t: lambda x, y: x.exp(), lambda t: (leaf(t), leaf(t))),
    "strided input": (lambda t: t.exp, lambda t: leaf(t).detach().t().requires_grad_()),
    "empty": (lambda t: t.exp, lambda t: leaf(t, [])),
    "complex": (lambda t: lambda z: z * z, lambda t: leaf(t, [0.5 + 1j, -0.3 - 2j], "complex128")),
    "complex to real": (lambda t: t.abs, lambda t: leaf(t, [0.5 + 1j, -0.3 - 2j], "complex128")),
    "real to complex": (lambda t: lambda x: x * (1 + 2j), lambda t: leaf(t)),
}

WRONG: dict[str, tuple[Callable[[Any], Callable[..., Any]], Callable[[Any], Any]]] = {
    "factor": (lambda t: custom(t, t.sin, lambda x, grad: grad * x.cos() * 1.01), lambda t: leaf(t)),
    "sign": (lambda t: custom(t, t.sin, lambda x, grad: -grad * x.cos()), lambda t: leaf(t)),
    "one element": (
        lambda t: custom(t, t.exp, lambda x, grad: grad * x.exp() * (x < 1.0)),
        lambda t: leaf(t),
    ),
    "ignores the cotangent": (lambda t: custom(t, t.clone, lambda x, grad: t.ones_like(x)), lambda t: leaf(t)),
    "no gradient": (lambda t: custom(t, t.exp, lambda x, grad: t.zeros_like(grad)), lambda t: leaf(t)),
    "detached": (lambda t: lambda x: x.sin() + x.detach(), lambda t: leaf(t)),
    "nan": (lambda t: custom(t, t.exp, lambda x, grad: grad * float("nan")), lambda t: leaf(t)),
    "conjugated": (
        lambda t: custom(t, lambda z: z * z, lambda z, grad: grad * 2 * z),
        lambda t: leaf(t, [0.5 + 1j, -0.3 - 2j], "complex128"),
    ),
    "nothing differentiable": (lambda t: lambda x: x.detach() * 2, lambda t: leaf(t)),
}


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", RIGHT)
def test_right_gradients_pass(name: str, fast_mode: bool) -> None:
    func, inputs = RIGHT[name]
    assert gradcheck(func(trt), inputs(trt), fast_mode=fast_mode) is True


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", RIGHT)
def test_right_second_derivatives_pass(name: str, fast_mode: bool) -> None:
    func, inputs = RIGHT[name]
    assert gradgradcheck(func(trt), inputs(trt), fast_mode=fast_mode) is True


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_gradients_are_found(name: str, fast_mode: bool) -> None:
    func, inputs = WRONG[name]
    with pytest.raises(GradcheckError):
        gradcheck(func(trt), inputs(trt), fast_mode=fast_mode)
    assert gradcheck(func(trt), inputs(trt), fast_mode=fast_mode, raise_exception=False) is False


def wrong_second(library: Any) -> Callable[[Any], Any]:
    inner = custom(library, library.cos, lambda x, grad: grad * x.sin())
    return custom(library, library.sin, lambda x, grad: grad * inner(x))


def test_wrong_second_derivative_is_found_by_gradgradcheck_only() -> None:
    assert gradcheck(wrong_second(trt), leaf())
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(wrong_second(trt), leaf())
    assert gradgradcheck(wrong_second(trt), leaf(), raise_exception=False) is False


def test_message_names_output_and_input_and_shows_both_jacobians() -> None:
    bad = custom(trt, trt.sin, lambda x, grad: grad)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 1 with respect to input 1") as caught:
        gradcheck(lambda x, y: (x + y, bad(y)), (leaf(), leaf()))
    assert "numerical:tensor([[" in str(caught.value)
    assert "analytical:tensor([[" in str(caught.value)
    with pytest.raises(GradcheckError, match="While considering the imaginary part of complex outputs only"):
        conjugate = custom(trt, lambda x: x * 1j, lambda x, grad: (grad * 1j).real)
        gradcheck(conjugate, leaf())


def test_inputs_are_restored() -> None:
    x = leaf()
    version = x._version
    gradcheck(trt.tanh, x)
    assert x.tolist() == VALUES
    assert x._version == version
    assert x.grad is None

    def fails(x: Any) -> Any:
        if x.tolist() != VALUES:
            raise OverflowError
        return x.sin()

    with pytest.raises(OverflowError):
        gradcheck(fails, x)
    assert x.tolist() == VALUES


def test_functions_may_capture_their_inputs() -> None:
    weight = leaf()
    assert gradcheck(lambda x, w: (x * weight).sum(), (leaf(), weight))


def test_backward_that_differs_between_runs_is_found() -> None:
    calls = iter(range(1000))
    shaky = custom(trt, trt.sin, lambda x, grad: grad * x.cos() * (1 + 1e-9 * next(calls)))
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(shaky, leaf())
    assert gradcheck(shaky, leaf(), nondet_tol=1e-6)


def test_gradient_dtypes_are_checked_on_request() -> None:
    single = custom(trt, lambda x: x.float(), lambda x, grad: grad.double())
    with pytest.raises(GradcheckError):
        gradcheck(single, leaf())
    assert gradcheck(trt.sin, leaf(), check_grad_dtypes=True)


def test_tolerances_decide() -> None:
    slightly = custom(trt, trt.sin, lambda x, grad: grad * x.cos() * 1.01)
    assert gradcheck(slightly, leaf(), rtol=0.1)
    assert gradcheck(slightly, leaf(), atol=0.1)


def test_backward_must_accept_absent_output_gradients() -> None:
    class Demanding(trt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            if grad is None:
                raise RuntimeError("the gradient is absent")
            return grad * 2

    with pytest.raises(GradcheckError, match="undefined output grads"):
        gradcheck(Demanding.apply, leaf())
    assert gradcheck(Demanding.apply, leaf(), check_undefined_grad=False)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(trt.sin, trt.ones(2, dtype=trt.float64))
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(trt.sin, trt.ones(1, dtype=trt.float64).expand(3).requires_grad_())
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(trt.sin, leaf(dtype="float32"), eps=1e-2, atol=1e-2, rtol=1e-2)
    with pytest.raises(AssertionError, match="at least one of check_forward_ad or check_backward_ad"):
        gradcheck(trt.sin, leaf(), check_backward_ad=False)
    with pytest.raises(AssertionError, match="requires check_forward_ad"):
        gradcheck(trt.sin, leaf(), check_batched_forward_grad=True)


def test_batched_gradients_are_those_one_by_one() -> None:
    assert gradcheck(lambda x: x.sin() * x.sum(), leaf(), check_batched_grad=True, check_forward_ad=True, check_batched_forward_grad=True)
    assert gradgradcheck(lambda x: x.sin() * x.sum(), leaf(), check_batched_grad=True)

    class Careless(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2 if g.sum().item() > -1e9 else g

    with pytest.raises(GradcheckError, match="batched gradients"):
        gradcheck(Careless.apply, leaf(), check_batched_grad=True)


def test_output_shape_must_not_depend_on_the_values() -> None:
    with pytest.raises(AssertionError, match="same shape"):
        gradcheck(lambda x: x[: 2 if float(x.detach()[0]) > 0.5 else 1], leaf(values=[0.5, 1.0]))


def test_given_and_strided_cotangents() -> None:
    assert gradgradcheck(trt.tanh, leaf(), leaf(values=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    assert gradgradcheck(trt.tanh, leaf(), gen_non_contig_grad_outputs=True)


@pytest.mark.parametrize("fast_mode", [False, True])
@pytest.mark.parametrize("check", ["gradcheck", "gradgradcheck"])
def test_judges_as_pytorch_does(check: str, fast_mode: bool) -> None:
    torch = pytest.importorskip("torch", reason="compared with PyTorch (extra `conformance`)")
    theirs_check = getattr(torch.autograd, check)
    mine_check = {"gradcheck": gradcheck, "gradgradcheck": gradgradcheck}[check]
    cases = {**RIGHT, **WRONG, "second": (wrong_second, lambda t: leaf(t))}
    for name, (func, inputs) in cases.items():
        if check == "gradgradcheck" and name == "nothing differentiable":
            continue
        options = {"raise_exception": False, "fast_mode": fast_mode}
        mine = mine_check(func(trt), inputs(trt), **options)
        assert mine is theirs_check(func(torch), inputs(torch), **options), name
