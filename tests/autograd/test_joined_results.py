"""Gradients of operators that are composed of others, beside PyTorch: one Node for several results, graphs that are walked again, kinks that are none."""

from __future__ import annotations

import pytest

import tensorrt_lite as trt

torch = pytest.importorskip("torch")


def matrix(lib):
    return (lib.arange(9, dtype=lib.float64).sin().reshape(3, 3) + 3 * lib.eye(3, dtype=lib.float64)).requires_grad_()


SEVERAL = {
    "var_mean": lambda lib, x: lib.var_mean(x, 0),
    "var_mean of all": lambda lib, x: lib.var_mean(x),
    "std_mean": lambda lib, x: lib.std_mean(x, 1, keepdim=True),
    "aminmax": lambda lib, x: lib.aminmax(x),
    "aminmax along a dimension": lambda lib, x: lib.aminmax(x, dim=1, keepdim=True),
    "linalg.lu": lambda lib, x: lib.linalg.lu(x)[1:],
    "lu_unpack": lambda lib, x: lib.lu_unpack(*lib.linalg.lu_factor(x))[1:],
    "linalg.lstsq": lambda lib, x: lib.linalg.lstsq(x[:, :2], x[:, 2:], driver="gels")[:2],
    "native_group_norm": lambda lib, x: lib.native_group_norm(x, None, None, 3, 3, 1, 1, 1e-5),
}


def record(lib, name):
    x = matrix(lib)
    results = SEVERAL[name](lib, x)
    nodes = [t.grad_fn for t in results]
    seen = []
    nodes[0].register_prehook(lambda grads: seen.append([g is None for g in grads]))
    first = lib.autograd.grad(sum((t * t * (i + 2)).sum() for i, t in enumerate(results)), x, create_graph=True)[0]
    second = lib.autograd.grad((first * first).sum(), x)[0]
    return nodes[0].name(), [n.name() for n in nodes], seen[0], [*first.reshape(-1).tolist(), *second.reshape(-1).tolist()], nodes[0] is nodes[-1]


@pytest.mark.parametrize("name", SEVERAL)
def test_results_of_one_operator_have_one_node(name) -> None:
    ours, theirs = record(trt, name), record(torch, name)
    assert ours[:2] == theirs[:2] and ours[4]
    assert theirs[4] or name in ("linalg.lu", "lu_unpack")  # whose wrapper in Python is a new object each time
    assert [x for x in ours[2] if not x] == [x for x in theirs[2] if not x]
    assert ours[3] == pytest.approx(theirs[3], rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", ["var_mean", "aminmax along a dimension"])
def test_results_without_gradient_are_left_out(name) -> None:
    for lib in (trt, torch):
        x = matrix(lib)
        a, b = SEVERAL[name](lib, x)
        b.sum().backward()
        assert x.grad.sum().item() == pytest.approx(3 if name == "var_mean" else 3)
        assert a.requires_grad


# ---- graphs that save nothing


@pytest.mark.parametrize("corners", [True, False])
@pytest.mark.parametrize("n", [2, 3])
def test_a_grid_is_walked_again(n, corners) -> None:
    def run(lib):
        size = [2, 1, 3, 4, 5][: 2 + n]
        theta = lib.arange(2 * n * (n + 1), dtype=lib.float64).sin().reshape(2, n, n + 1).requires_grad_()
        grid = lib.nn.functional.affine_grid(theta, size, align_corners=corners)
        first = lib.autograd.grad((grid * grid).sum(), theta, create_graph=True)[0]
        second = lib.autograd.grad((first * first).sum(), theta)[0]
        grid.sum().backward()
        grid.sum().backward()
        tangent = lib.func.jvp(lambda t: lib.nn.functional.affine_grid(t, size, align_corners=corners), (theta.detach(),), (theta.detach() * 2,))[1]
        mapped = lib.func.vmap(lambda t: lib.nn.functional.affine_grid(t[None], [1, *size[1:]], align_corners=corners))(theta.detach())
        return [v for t in (grid, first, second, theta.grad, tangent, mapped) for v in t.reshape(-1).tolist()]

    assert run(trt) == pytest.approx(run(torch), rel=1e-9, abs=1e-12)


def test_a_grid_may_be_written_to() -> None:
    theta = trt.ones(1, 2, 3, requires_grad=True)
    grid = trt.nn.functional.affine_grid(theta, [1, 1, 2, 2], align_corners=True)
    grid.mul_(2)
    grid.sum().backward()
    assert theta.grad.tolist() == [[[0.0, 0.0, 8.0]] * 2] and not grid._is_view()


# ---- smooth where their parts are not

LOGITS = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 20.0, -20.0, 200.0, -200.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weight", [None, 3.0])
def test_cross_entropy_of_logits_is_smooth_at_zero(dtype, weight) -> None:
    def run(lib, target):
        kind = getattr(lib, dtype)
        x, p = lib.tensor(LOGITS, dtype=kind, requires_grad=True), lib.tensor(2.0, dtype=kind)
        t = lib.full((len(LOGITS),), target, dtype=kind, requires_grad=True)
        w = None if weight is None else lib.full((len(LOGITS),), weight, dtype=kind)
        y = lib.nn.functional.binary_cross_entropy_with_logits(x, t, weight=w, pos_weight=p, reduction="none")
        first = lib.autograd.grad(y.sum(), (x, t), create_graph=True)
        second = lib.autograd.grad(first[0].sum(), (x, t))
        return [v for q in (y, *first, *second) for v in q.reshape(-1).tolist()]

    for target in (0.0, 0.3, 1.0):
        assert run(trt, target) == pytest.approx(run(torch, target), rel=2e-6, abs=1e-7)


def test_half_types_learn_at_zero() -> None:
    for lib in (trt, torch):
        for kind in (lib.float16, lib.bfloat16):
            x = lib.zeros(1, dtype=kind, requires_grad=True)
            lib.nn.functional.binary_cross_entropy_with_logits(x, lib.zeros(1, dtype=kind), pos_weight=lib.tensor(2.0, dtype=kind)).backward()
            assert x.grad.item() == 0.5


def smooth(lib, points, f):
    x = lib.tensor(points, dtype=lib.float64, requires_grad=True)
    first = lib.autograd.grad(f(lib, x).sum(), x, create_graph=True)[0]
    second = lib.autograd.grad(first.sum(), x, allow_unused=True)[0] if first.requires_grad else None
    return first.tolist(), [0.0] * len(points) if second is None else second.tolist()


SMOOTH = {
    "softplus": lambda lib, x: lib.nn.functional.softplus(x),
    "logsigmoid": lambda lib, x: lib.nn.functional.logsigmoid(x),
    "mish": lambda lib, x: lib.nn.functional.mish(x),
    "silu": lambda lib, x: lib.nn.functional.silu(x),
    "gelu": lambda lib, x: lib.nn.functional.gelu(x),
    "logaddexp": lambda lib, x: lib.logaddexp(x, lib.zeros_like(x)),
    "logaddexp2": lambda lib, x: lib.logaddexp2(x, lib.zeros_like(x)),
    "sinc": lambda lib, x: lib.sinc(x),
    "soft margin": lambda lib, x: lib.nn.functional.soft_margin_loss(x, lib.ones_like(x), reduction="sum"),
    "bce": lambda lib, x: lib.nn.functional.binary_cross_entropy_with_logits(x, lib.ones_like(x)),
    "hypot": lambda lib, x: lib.hypot(x, lib.ones_like(x)),
    "log_ndtr": lambda lib, x: lib.special.log_ndtr(x),
    "erfcx": lambda lib, x: lib.special.erfcx(x),
    "i0e": lambda lib, x: lib.special.i0(x),
    "tanhshrink": lambda lib, x: lib.nn.functional.tanhshrink(x),
    "softmax": lambda lib, x: lib.softmax(x, 0) ** 2,
    "logsumexp": lambda lib, x: lib.logsumexp(x, 0),
    "normalize": lambda lib, x: lib.nn.functional.normalize(x, dim=0) * lib.arange(7, dtype=lib.float64),
    "cosine": lambda lib, x: lib.nn.functional.cosine_similarity(x, lib.arange(7, dtype=lib.float64), dim=0),
    "gaussian nll": lambda lib, x: lib.nn.functional.gaussian_nll_loss(x, lib.zeros_like(x), lib.ones_like(x)),
    "poisson nll": lambda lib, x: lib.nn.functional.poisson_nll_loss(x, lib.ones_like(x), full=True),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_at_ordinary_numbers(name) -> None:
    ours, theirs = (smooth(lib, [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0], SMOOTH[name]) for lib in (trt, torch))
    for mine, wanted in zip(ours, theirs, strict=True):
        assert mine == pytest.approx(wanted, rel=1e-6, abs=1e-9, nan_ok=True)


# ---- others


@pytest.mark.parametrize("reduce", ["scatter_reduce", "index_reduce"])
@pytest.mark.parametrize("zeros", [0, 1, 2])
def test_products_with_several_zeros_have_no_second_derivative(reduce, zeros) -> None:
    def run(lib):
        start = lib.ones(3, dtype=lib.float64, requires_grad=True)
        source = lib.tensor([0.0] * zeros + [2.0] * (4 - zeros), dtype=lib.float64, requires_grad=True)
        index = lib.tensor([0, 0, 1, 1])
        y = lib.scatter_reduce(start, 0, index, source, "prod") if reduce == "scatter_reduce" else lib.index_reduce(start, 0, index, source, "prod")
        first = lib.autograd.grad(y.sum(), (start, source), create_graph=True)
        try:
            second = lib.autograd.grad(sum((g * g).sum() for g in first), (start, source))
        except RuntimeError as error:
            return [g.tolist() for g in first], "Double backward is unsupported" in str(error)
        return [g.tolist() for g in first], [g.tolist() for g in second]

    assert run(trt) == run(torch)


COMPARISONS = ["eq_", "ne_", "lt_", "le_", "gt_", "ge_", "greater_", "less_equal_", "not_equal_"]


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons_in_place_have_zero_tangents(name) -> None:
    def run(lib, dual):
        ad = lib.autograd.forward_ad
        with ad.dual_level():
            x, y = lib.tensor([1.0, 2.0]), lib.tensor([1.0, 3.0])
            if dual == "self":
                x = ad.make_dual(x, lib.full((2,), 5.0))
            else:
                y = ad.make_dual(y, lib.full((2,), 5.0))
            getattr(x, name)(y)
            primal, tangent = ad.unpack_dual(x)
            return primal.tolist(), None if tangent is None else tangent.tolist()

    for dual in ("self", "other"):
        assert run(trt, dual) == run(torch, dual)


@pytest.mark.parametrize("name", ["logical_and_", "logical_or_", "logical_xor_", "logical_not_"])
def test_logical_operators_in_place_have_zero_tangents(name) -> None:
    ad = trt.autograd.forward_ad
    with ad.dual_level():
        x = ad.make_dual(trt.tensor([1.0, 2.0]), trt.full((2,), 5.0))
        getattr(x, name)(*() if name == "logical_not_" else (trt.ones(2),))
        assert ad.unpack_dual(x).tangent.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dual", ["input mean", "input var", "mean", "weight mean", "bias var", "input"])
def test_running_statistics_have_no_tangents(dual, training) -> None:
    def run(lib, call):
        ad, kinds = lib.autograd.forward_ad, dual.split()
        with ad.dual_level():
            made = {"input": lib.ones(3, 2), "mean": lib.zeros(2), "var": lib.ones(2), "weight": lib.ones(2), "bias": lib.ones(2)}
            made = {k: ad.make_dual(t, lib.ones_like(t)) if k in kinds else t for k, t in made.items()}
            try:
                return ad.unpack_dual(call(lib, made)).tangent is not None
            except RuntimeError as error:
                return str(error)[:80]

    for call in (
        lambda lib, a: lib.nn.functional.batch_norm(a["input"], a["mean"], a["var"], a["weight"], a["bias"], training),
        lambda lib, a: lib.native_batch_norm(a["input"], a["weight"], a["bias"], a["mean"], a["var"], training, 0.1, 1e-5)[0],
        lambda lib, a: lib.nn.functional.instance_norm(a["input"][:, :, None].expand(3, 2, 4), a["mean"], a["var"], a["weight"], a["bias"], training),
    ):
        assert run(trt, call) == run(torch, call)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("parameters", ["float32", "same"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_statistics_of_native_batch_norm_have_pytorchs_type(dtype, parameters, training) -> None:
    if (dtype, parameters) == ("float64", "float32"):
        return  # PyTorch refuses it

    def run(lib):
        kind = getattr(lib, dtype)
        other = kind if parameters == "same" else lib.float32
        found = lib.native_batch_norm(lib.ones(3, 2, dtype=kind), None, None, lib.zeros(2, dtype=other), lib.ones(2, dtype=other), training, 0.1, 1e-5)
        return [(str(t.dtype), tuple(t.shape)) for t in found]

    assert run(trt) == run(torch)


@pytest.mark.parametrize("geometry", [((2, 2), (1, 2), 0), ((2, 2), (1, 2), 1), ((2,), (3,), 2)])
def test_gradients_of_as_strided_scatter_are_those_of_finite_differences(geometry) -> None:
    size, stride, offset = geometry
    source = trt.arange(float(trt.zeros(size).numel()), dtype=trt.float64).reshape(size).requires_grad_()
    start = trt.arange(6, dtype=trt.float64).sin().reshape(2, 3).requires_grad_()
    assert trt.autograd.gradgradcheck(lambda a, s: trt.as_strided_scatter(a, s, size, stride, offset).sin(), (start, source))


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "nearest"])
@pytest.mark.parametrize("n", [2, 3])
def test_second_derivatives_of_grid_sample(n, mode) -> None:
    if (n, mode) == (3, "bicubic"):
        return  # neither has it

    def run(lib, padding):
        image = lib.arange(2 * 2 * 4**n, dtype=lib.float64).sin().reshape(2, 2, *[4] * n).requires_grad_()
        grid = (lib.arange(2 * 3**n * n, dtype=lib.float64) * 1.7).sin().mul(1.1).reshape(2, *[3] * n, n).requires_grad_()
        y = lib.nn.functional.grid_sample(image, grid, mode=mode, padding_mode=padding, align_corners=False)
        first = lib.autograd.grad((y * y).sum(), (image, grid), create_graph=True)
        second = lib.autograd.grad(sum((g * g).sum() for g in first), (image, grid))
        return [v for t in (*first, *second) for v in t.reshape(-1).tolist()]

    for padding in ("zeros", "border", "reflection"):
        try:
            wanted = run(torch, padding)
        except RuntimeError as error:
            assert "not implemented" in str(error)
            continue
        assert run(trt, padding) == pytest.approx(wanted, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize(
    "activation",
    [lambda f, x: f.leaky_relu(x, -0.5, inplace=True), lambda f, x: f.elu(x, -0.5, inplace=True), lambda f, x: f.celu(x, -0.5, inplace=True), lambda f, x: f.rrelu(x, -0.5, -0.5, inplace=True)],
    ids=["leaky_relu", "elu", "celu", "rrelu"],
)
def test_negative_slopes_in_place_have_gradients(activation) -> None:
    start = trt.tensor([-1.0, -0.3, 0.4, 2.0], dtype=trt.float64, requires_grad=True)
    assert trt.autograd.gradgradcheck(lambda x: activation(trt.nn.functional, x * 1), (start,))
