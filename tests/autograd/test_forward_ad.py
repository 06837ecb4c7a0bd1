"""Forward mode: levels, dual tensors, views and writes of them, both orders of mixing with backward mode, custom Functions.

Which operators pass tangents on rightly is compared over all of them in tests/conformance (kind forward_ad).
"""

from __future__ import annotations

import gc
import weakref

import pytest

import tensorrt_lite as trt
from tensorrt_lite.autograd import forward_ad as fwAD
from tensorrt_lite.autograd import functional
from tensorrt_lite.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck


def numbers(*values, **options):
    return trt.tensor(values, dtype=trt.float64, **options)


def tangent(t):
    return fwAD.unpack_dual(t).tangent


def random(*shape, dtype=trt.float64, seed=0):
    return trt.randn(*shape, dtype=dtype, generator=trt.Generator().manual_seed(seed))


# ---- levels and dual tensors ----


def test_a_dual_tensor_exists_in_its_level_only() -> None:
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(trt.ones(2), trt.ones(2))
    with fwAD.dual_level() as level:
        assert level == 0
        dual = fwAD.make_dual(trt.ones(2), trt.ones(2))
        result = dual * 3
        assert tangent(result).tolist() == [3, 3]
    assert tangent(dual) is None and tangent(result) is None
    assert "tangent" not in repr(result)
    with fwAD.dual_level():
        assert tangent(dual) is None and tangent(result * 2) is None
        assert tangent(fwAD.make_dual(dual, trt.ones(2)) * 5).tolist() == [5, 5]


def test_levels_do_not_nest_and_end_in_order() -> None:
    with fwAD.dual_level(), pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        fwAD.enter_dual_level()
    with pytest.raises(RuntimeError, match="must be a positive number"):
        fwAD.exit_dual_level()
    level = fwAD.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one"):
        fwAD.exit_dual_level(level=level + 3)
    fwAD.exit_dual_level(level=level)


def test_a_level_is_left_when_its_body_raises() -> None:
    with pytest.raises(KeyError), fwAD.dual_level():
        raise KeyError
    with fwAD.dual_level():
        pass


def test_dual_level_decorates_functions() -> None:
    @fwAD.dual_level()
    def derivative(x):
        return tangent(fwAD.make_dual(x, trt.ones_like(x)).square())

    assert derivative(numbers(3)).tolist() == [6]


def test_make_dual_views_the_primal_and_unpack_gives_the_parts_back() -> None:
    x, t = numbers(1, 2), numbers(3, 4)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, t)
        assert dual._base is x and tangent(dual) is t
        primal, same = fwAD.unpack_dual(dual)
        assert same is t and primal._base is x and tangent(primal) is None
        assert fwAD.unpack_dual(x).primal is x and tangent(x) is None
        assert "tangent=tensor([3., 4.]" in repr(dual)


def test_arguments_of_make_dual_are_checked() -> None:
    x = trt.ones(3)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, x)
        for primal, other, error, text in (
            (dual, x, RuntimeError, "already has a forward gradient"),
            (x, dual, RuntimeError, "itself has a forward gradient"),
            (x, trt.ones(4), RuntimeError, r"size \[3\] while the given forward gradient is of size \[4\]"),
            (trt.arange(3), x, ValueError, "Expected primal to be floating point"),
            (x, trt.arange(3), ValueError, "Expected tangent to be floating point"),
        ):
            with pytest.raises(error, match=text):
                fwAD.make_dual(primal, other)
        with pytest.raises(RuntimeError, match="Invalid level"):
            fwAD.make_dual(x, x, level=2)
        with pytest.raises(TypeError, match="must be Tensor"):
            fwAD.unpack_dual(3)


def test_a_level_frees_what_its_tangents_hold_without_the_collector() -> None:
    gc.disable()
    try:
        with fwAD.dual_level():
            x = fwAD.make_dual(numbers(0.5, requires_grad=True), numbers(1))
            y = x.tanh()  # its Node keeps the result, whose tangent leads back to the Node
            watched = weakref.ref(y), weakref.ref(tangent(y))
            del x, y
        assert [r() for r in watched] == [None, None]
    finally:
        gc.enable()


# ---- what passes tangents on, and what ends them ----


def test_tangents_end_at_detach_data_and_parameters_not_at_no_grad() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(trt.ones(2), trt.ones(2))
        for ended in (x.detach(), x.data, trt.nn.Parameter(x), x.long(), x > 0):
            assert tangent(ended) is None
        with trt.no_grad():
            assert tangent(x * 2).tolist() == [2, 2]
        with trt.inference_mode():
            assert tangent(x * 2) is None
        with fwAD._set_fwd_grad_enabled(False):
            assert tangent(x * 2) is None and not fwAD._is_fwd_grad_enabled()
        assert tangent(x * 2) is not None


def test_out_is_refused() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(trt.ones(2), trt.ones(2))
        for call in (
            lambda: trt.add(x, 1, out=trt.empty(2)),
            lambda: trt.add(trt.ones(2), 1, out=x),
            lambda: trt.cumsum(x, 0, out=trt.empty(2)),
            lambda: trt.outer(x, x, out=trt.empty(2, 2)),
            lambda: trt.round(x, decimals=1, out=trt.empty(2)),
        ):
            with pytest.raises(NotImplementedError, match="it is an out= function"):
                call()


def test_an_operator_without_derivative_is_named() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(trt.ones(2), trt.ones(2))
        with pytest.raises(NotImplementedError, match="forward AD with heaviside that does not support it"):
            trt.heaviside(x, trt.ones(2))


def test_the_tangent_has_the_results_type_and_shape() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(trt.ones(3), trt.arange(3.0))
        r = trt.zeros(2, 3, dtype=trt.float64) + x
        assert tangent(r).dtype is trt.float64 and tangent(r).tolist() == [[0, 1, 2], [0, 1, 2]]
        z = x * trt.tensor(2j)
        assert tangent(z).dtype is trt.complex64 and tangent(z).tolist() == [0, 2j, 4j]


def test_a_result_never_shares_its_tangents_memory_with_an_input() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(numbers(1, 2), numbers(1, 1))
        for y in (x + 1, x.clone(), x.contiguous() + 0, trt.cat([x]), x.relu()):
            y.mul_(7)
            assert tangent(y).tolist() == [7, 7] and tangent(x).tolist() == [1, 1]


# ---- views and writes ----


def test_views_of_a_dual_tensor_share_its_tangent() -> None:
    with fwAD.dual_level():
        t = random(3, 4, seed=1)
        x = fwAD.make_dual(random(3, 4), t)
        for view in (lambda a: a.t(), lambda a: a[1], lambda a: a[:, 1::2], lambda a: a.view(2, 6), lambda a: a.expand(2, 3, 4), lambda a: a.unbind(1)[2],
                     lambda a: a.diagonal(), lambda a: a.unsqueeze(0).transpose(0, 2)[1:], lambda a: a.split(2)[1]):  # fmt: skip
            assert tangent(view(x)).tolist() == view(t).tolist()
            assert tangent(view(x)).data_ptr() == view(t).data_ptr()
        x[1].mul_(2)
        assert tangent(x)[1].tolist() == t[1].tolist() and tangent(x) is t


def test_a_view_is_a_view_of_a_tangent_with_other_strides() -> None:
    with fwAD.dual_level():
        t = random(4, 3).t()
        x = fwAD.make_dual(random(3, 4), t)
        assert tangent(x[1]).tolist() == t[1].tolist()
        assert tangent(x.view(12)).tolist() == t.reshape(12).tolist()


def test_real_and_complex_views() -> None:
    with fwAD.dual_level():
        t = random(3, dtype=trt.complex128)
        z = fwAD.make_dual(random(3, dtype=trt.complex128, seed=1), t)
        assert tangent(trt.view_as_real(z)).tolist() == trt.view_as_real(t).tolist()
        assert tangent(z.real).tolist() == t.real.tolist() and tangent(z[1:].imag).tolist() == t[1:].imag.tolist()
        pairs = fwAD.make_dual(random(3, 2), trt.view_as_real(t))
        assert tangent(trt.view_as_complex(pairs)[1:]).tolist() == t[1:].tolist()


def test_a_write_through_a_view_gives_the_base_a_tangent() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(numbers(1, 2), numbers(5, 6))
        base = numbers(0, 0, 0, 0)
        early = base[1:]
        base[1:3].copy_(x)
        assert tangent(base).tolist() == [0, 5, 6, 0] and tangent(early).tolist() == [5, 6, 0]
        base.mul_(2)
        assert tangent(early).tolist() == [10, 12, 0]
        early.zero_()
        assert tangent(base).tolist() == [0, 0, 0, 0]


def test_writes_of_all_sorts() -> None:
    def run(lib):
        ad = lib.autograd.forward_ad
        x = lib.tensor([0.5, -1.5, 2.0], dtype=lib.float64)
        t = lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64)
        found = []
        for write in (
            lambda y, d: y.mul_(d), lambda y, d: y.add_(d, alpha=3), lambda y, d: y.exp_(), lambda y, d: y.sigmoid_().mul_(d), lambda y, d: y.copy_(d * 2),
            lambda y, d: y.fill_(2), lambda y, d: y.cumsum_(0), lambda y, d: y.cumprod_(0), lambda y, d: y.clamp_(min=0), lambda y, d: y.__setitem__(1, 7.0),
            lambda y, d: y.__setitem__(slice(1, 3), d[:2]), lambda y, d: y.masked_fill_(y > 0, 3.0), lambda y, d: y.index_add_(0, lib.tensor([0, 0]), d[1:]),
            lambda y, d: y.unsqueeze_(0).mul_(2), lambda y, d: y.relu_(), lambda y, d: y.normal_(), lambda y, d: y.lerp_(d, 0.25), lambda y, d: y.addcmul_(d, d),
            lambda y, d: y.scatter_(0, lib.tensor([2]), d[:1]), lambda y, d: y.pow_(3), lambda y, d: y.tril_() if y.dim() > 1 else y.neg_(),
        ):  # fmt: skip
            for start in (lambda d: d * 1, lambda d: d.detach().clone()):
                with ad.dual_level():
                    dual = ad.make_dual(x, t)
                    y = start(dual)
                    write(y, dual)
                    value = ad.unpack_dual(y).tangent
                    found.append(None if value is None else value.flatten().tolist())
        return found

    torch = pytest.importorskip("torch")
    for a, b in zip(run(trt), run(torch), strict=True):
            assert a == (None if b is None else pytest.approx(b))


def test_a_tensor_that_is_written_with_itself() -> None:
    with fwAD.dual_level():
        y = fwAD.make_dual(numbers(0.5, -1.5), numbers(1, 2)) * 1
        y.mul_(y)
        assert tangent(y).tolist() == [1, -6]
        y.add_(y)
        assert tangent(y).tolist() == [2, -12]


# ---- complex numbers ----

HOLOMORPHIC = ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "atan", "acosh", "sqrt", "rsqrt", "reciprocal", "sigmoid", "square", "neg")
OTHERS = ("abs", "angle", "sgn", "conj_physical", "real", "imag")


@pytest.mark.parametrize("name", HOLOMORPHIC + OTHERS)
def test_functions_of_complex_numbers(name: str) -> None:
    z = (random(4, dtype=trt.complex128) + 0.3).requires_grad_()
    assert gradcheck(getattr(trt, name), (z,), check_forward_ad=True)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "matmul", "vdot", "dot"])
def test_two_complex_arguments_and_a_real_one(name: str) -> None:
    z = [random(3, dtype=trt.complex128, seed=s).requires_grad_() for s in (1, 2)]
    assert gradcheck(getattr(trt, name), z, check_forward_ad=True)
    if name in ("add", "sub", "mul", "div", "pow"):
        assert gradcheck(getattr(trt, name), (random(3).abs().requires_grad_(), z[0]), check_forward_ad=True)


# ---- mixed with backward mode ----


def network(x, w, b):
    h = trt.nn.functional.layer_norm(trt.nn.functional.gelu(x @ w + b), (w.shape[1],))
    return (trt.nn.functional.log_softmax(h, 1) * h.tanh()).sum()


def test_forward_over_reverse_and_reverse_over_forward_give_the_hessian() -> None:
    arguments = (random(2, 3), random(3, 3, seed=1), random(3, seed=2))
    expected = functional.hessian(network, arguments)
    forward = functional.hessian(network, arguments, vectorize=True, outer_jacobian_strategy="forward-mode")
    for row, other in zip(expected, forward, strict=True):
        for a, b in zip(row, other, strict=True):
            assert trt.allclose(a, b, rtol=1e-9, atol=1e-12)
    # reverse over forward, for one direction
    x, w, b = arguments
    way = random(3, 3, seed=3)
    leaf = w.clone().requires_grad_()
    with fwAD.dual_level():
        slope = tangent(network(x, fwAD.make_dual(leaf, way), b))
        (found,) = trt.autograd.grad(slope, leaf)
    assert trt.allclose(found, trt.tensordot(expected[1][1], way, dims=2), rtol=1e-9, atol=1e-12)


def test_forward_over_reverse_reaches_tensors_that_need_no_gradient() -> None:
    x = random(3, 4).requires_grad_()
    w, way = random(2, 4, seed=1), random(2, 4, seed=2)

    def gradient(v):
        y = trt.nn.functional.layer_norm(x, (4,), v[0], v[1]).prod(1).sum()
        return trt.autograd.grad(y, x)[0]

    with fwAD.dual_level():
        found = tangent(gradient(fwAD.make_dual(w, way)))
    difference = (gradient(w + 1e-6 * way) - gradient(w - 1e-6 * way)) / 2e-6
    assert trt.allclose(found, difference, rtol=1e-6, atol=1e-7)


def test_forward_over_reverse_through_a_write() -> None:
    x, way = random(4), random(4, seed=1)

    def gradient(v):
        y = v.clone().sin_().cumprod_(0)
        return trt.autograd.grad(y.sum(), v)[0]

    with fwAD.dual_level():
        found = tangent(gradient(fwAD.make_dual(x.clone().requires_grad_(), way)))
    difference = (gradient((x + 1e-6 * way).requires_grad_()) - gradient((x - 1e-6 * way).requires_grad_())) / 2e-6
    assert trt.allclose(found, difference, rtol=1e-5, atol=1e-6)


def test_backward_inside_a_level_leaves_plain_gradients() -> None:
    w = random(3).requires_grad_()
    with fwAD.dual_level():
        (fwAD.make_dual(random(3), random(3)) * w).sum().backward()
        assert tangent(w.grad) is None


def test_tangents_that_need_gradients() -> None:
    t = random(3).requires_grad_()
    with fwAD.dual_level():
        r = tangent(trt.cumprod(fwAD.make_dual(random(3, seed=1), t), 0))
        (g,) = trt.autograd.grad(r.sum(), t)
        assert g.shape == (3,) and not fwAD.make_dual(random(3), t).requires_grad


def test_a_result_is_recorded_only_as_without_tangents() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(random(4), random(4))
        for y in (x.cumprod(0), x.logsumexp(0), x * x, trt.nn.functional.layer_norm(x, (4,))):
            assert not y.requires_grad and y.is_leaf and not tangent(y).requires_grad
        recorded = fwAD.make_dual(random(4).requires_grad_(), random(4)).cumprod(0)
        assert type(recorded.grad_fn).__name__ == "CumprodBackward0" and tangent(recorded).requires_grad


# ---- custom Functions ----


class Scaled(trt.autograd.Function):
    @staticmethod
    def forward(ctx, x, y, factor):
        assert tangent(x) is None
        ctx.save_for_forward(x, y)
        ctx.save_for_backward(y)
        ctx.factor = factor
        return x * y * factor

    @staticmethod
    def jvp(ctx, x_t, y_t, factor_t):
        assert factor_t is None
        x, y = ctx.saved_tensors
        return (x_t * y + x * y_t) * ctx.factor


def test_jvp_of_a_function() -> None:
    x, y, t = random(3), random(3, seed=1), random(3, seed=2)
    with fwAD.dual_level():
        assert trt.allclose(tangent(Scaled.apply(fwAD.make_dual(x, t), y, 2.0)), t * y * 2)
        assert trt.allclose(tangent(Scaled.apply(x, fwAD.make_dual(y, t), 2.0)), t * x * 2)
        assert tangent(Scaled.apply(x, y, 2.0)) is None


def test_a_function_that_writes_to_its_input() -> None:
    class Doubled(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, x_t):
            return x_t.mul_(2)

    with fwAD.dual_level():
        x = fwAD.make_dual(numbers(1, 2), numbers(3, 4))
        assert Doubled.apply(x) is x and tangent(x).tolist() == [6, 8] and x.tolist() == [2, 4]


@pytest.mark.parametrize(
    ("returned", "error", "text"),
    [
        (lambda t: (t, t), RuntimeError, "expected 1 but got 2"),
        (lambda t: 3, RuntimeError, "got int"),
        (lambda t: trt.ones(7), RuntimeError, "different size"),
    ],
)
def test_what_jvp_returns_is_checked(returned, error, text) -> None:
    class Wrong(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def jvp(ctx, x_t):
            return returned(x_t)

    with fwAD.dual_level(), pytest.raises(error, match=text):
        Wrong.apply(fwAD.make_dual(trt.ones(2), trt.ones(2)))


def test_a_function_without_jvp_is_refused() -> None:
    class Plain(trt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with fwAD.dual_level(), pytest.raises(NotImplementedError, match="must implement the jvp function"):
        Plain.apply(fwAD.make_dual(trt.ones(2), trt.ones(2)))


# ---- the checks ----


class WrongTangent(trt.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.saved_tensors[0] * grad

    @staticmethod
    def jvp(ctx, x_t):
        return ctx.saved_tensors[0] * x_t


@pytest.mark.parametrize("fast_mode", [False, True])
def test_gradcheck_finds_a_wrong_tangent(fast_mode: bool) -> None:
    x = random(3).requires_grad_()
    assert gradcheck(WrongTangent.apply, (x,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch for output 0 with respect to input 0"):
        gradcheck(WrongTangent.apply, (x,), check_forward_ad=True, fast_mode=fast_mode)
    assert not gradcheck(WrongTangent.apply, (x,), check_forward_ad=True, check_backward_ad=False, raise_exception=False, fast_mode=fast_mode)
    assert gradcheck(trt.sin, (x,), check_forward_ad=True, check_backward_ad=False, fast_mode=fast_mode)


def test_gradgradcheck_forward_over_reverse() -> None:
    x, w = random(2, 3).requires_grad_(), random(3, 2, seed=1).requires_grad_()
    assert gradgradcheck(lambda a, b: (a @ b).tanh(), (x, w), check_fwd_over_rev=True, check_rev_over_rev=False)
    assert gradgradcheck(lambda a, b: trt.logsumexp(a @ b, 1), (x, w), check_fwd_over_rev=True)


# ---- functional ----


def test_jacobian_by_forward_mode() -> None:
    def f(a, b):
        return a.outer(b), (a * a).sum()

    a, b = numbers(1, 2), numbers(3, 4, 5)
    expected = functional.jacobian(f, (a, b))
    found = functional.jacobian(f, (a, b), strategy="forward-mode", vectorize=True)
    assert [[p.tolist() for p in row] for row in found] == [[p.tolist() for p in row] for row in expected]
    assert functional.jacobian(trt.sin, numbers(), strategy="forward-mode").shape == (0, 0)
    with pytest.raises(NotImplementedError, match="create_graph=True"):
        functional.jacobian(f, (a, b), strategy="forward-mode", create_graph=True)
    with pytest.raises(RuntimeError, match="strict=True"):
        functional.jacobian(f, (a, b), strategy="forward-mode", strict=True)


def test_a_model_beside_pytorch() -> None:
    torch = pytest.importorskip("torch")

    def run(lib):
        lib.manual_seed(0)
        nn = lib.nn
        model = nn.Sequential(nn.Conv2d(2, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(12, 4), nn.Softmax(1))
        model = model.double()
        x, t = lib.randn(3, 2, 4, 4, dtype=lib.float64), lib.randn(3, 2, 4, 4, dtype=lib.float64)
        ad = lib.autograd.forward_ad
        with ad.dual_level():
            return ad.unpack_dual(model(ad.make_dual(x, t))).tangent.flatten().tolist()

    assert run(trt) == pytest.approx(run(torch), rel=1e-9, abs=1e-12)


MATRICES = {
    "det": trt.linalg.det,
    "slogdet": lambda x: trt.linalg.slogdet(x)[1],
    "inv": lambda x: trt.linalg.inv(x) ** 2,
    "solve": lambda x: trt.linalg.solve(x, x[..., :2] * 3) ** 2,
    "solve_vector": lambda x: trt.linalg.solve(x, trt.ones(x.shape[-1], dtype=x.dtype)) ** 2 if x.dim() == 2 else x.sum(),
    "cholesky": lambda x: trt.linalg.cholesky(x @ x.mT + trt.eye(x.shape[-1], dtype=x.dtype)) ** 2,
    "eigvalsh": lambda x: trt.linalg.eigvalsh(x + x.mT) ** 2,
    "svdvals": lambda x: trt.linalg.svdvals(x) ** 3,
    "qr": lambda x: trt.linalg.qr(x)[1] ** 2,
    "lu_factor": lambda x: trt.linalg.lu_factor(x)[0] ** 2,
    "lstsq": lambda x: trt.linalg.lstsq(x, x[..., :1] * 2)[0] ** 2,
    "pinv": lambda x: trt.linalg.pinv(x) ** 2,
}


@pytest.mark.parametrize("shape", [(3, 3), (1, 1), (2, 3, 3)])
@pytest.mark.parametrize("name", MATRICES)
def test_tangents_of_gradients_of_linear_algebra(name, shape):
    """Forward over reverse without create_graph, beside differences of gradients."""
    trt.manual_seed(5)
    f, a = MATRICES[name], trt.randn(shape, dtype=trt.float64) + 2 * trt.eye(shape[-1], dtype=trt.float64)
    v = trt.randn(shape, dtype=trt.float64)

    def gradient(x):
        return trt.autograd.grad(f(x).sum(), x)[0]

    step = 1e-6
    expected = (gradient((a + step * v).requires_grad_()) - gradient((a - step * v).requires_grad_())) / (2 * step)
    with fwAD.dual_level():
        found = fwAD.unpack_dual(gradient(fwAD.make_dual(a.clone().requires_grad_(), v))).tangent
    found = trt.zeros_like(a) if found is None else found
    assert trt.allclose(found, expected, rtol=1e-6, atol=1e-6 * float(expected.abs().max() + 1))
