"""Transforms, constraints and the registry beside PyTorch's."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

import tensorrt_lite as trt
from tests.distributions.test_against_torch import assert_same, outcome

torch = pytest.importorskip("torch")

# By name: the transform of a library, an x of its domain.
VECTOR = [[0.3, -1.2, 0.7], [2.0, 0.1, -0.4]]
SIX = [0.3, -1.2, 0.7, 2.0, 0.1, -0.4]
SQUARE = [[0.3, -1.2], [0.7, 0.5]]
POSITIVE = [[0.3, 1.2, 0.7], [2.0, 0.1, 0.4]]
BOTH = {
    "abs": (lambda m, t: t.AbsTransform(), VECTOR),
    "affine": (lambda m, t: t.AffineTransform(1.0, -2.0), VECTOR),
    "affine of tensors": (lambda m, t: t.AffineTransform(m.tensor([0.5, 1.0, 2.0]).double(), m.tensor([[0.5], [-3.0]]).double()), VECTOR),
    "affine of vectors": (lambda m, t: t.AffineTransform(m.tensor([0.5, 1.0, 2.0]).double(), m.tensor([0.5, -3.0, 1.0]).double(), event_dim=1), VECTOR),
    "affine of matrices": (lambda m, t: t.AffineTransform(0.0, 3.0, event_dim=2), VECTOR),
    "cat": (lambda m, t: t.CatTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)], dim=-1, lengths=[1, 2]), VECTOR),
    "cat of rows": (lambda m, t: t.CatTransform([t.ExpTransform(), t.SigmoidTransform()], dim=0), VECTOR),
    "cat of event dims": (lambda m, t: t.CatTransform([t.AffineTransform(0.0, 2.0, event_dim=1), t.ExpTransform()], dim=0, lengths=[1, 1]), VECTOR),
    "compose": (lambda m, t: t.ComposeTransform([t.AffineTransform(0.5, 2.0), t.ExpTransform(), t.PowerTransform(m.tensor(0.5).double())]), VECTOR),
    "compose of event dims": (lambda m, t: t.ComposeTransform([t.ExpTransform(), t.AffineTransform(0.0, 2.0, event_dim=1), t.StickBreakingTransform()]), VECTOR),
    "nothing": (lambda m, t: t.identity_transform, VECTOR),
    "corr_cholesky": (lambda m, t: t.CorrCholeskyTransform(), [SIX, [v / 2 for v in SIX]]),
    "distribution": (lambda m, t: t.CumulativeDistributionTransform(m.distributions.Normal(m.tensor(0.5).double(), 2.0)), VECTOR),
    "exp": (lambda m, t: t.ExpTransform(), VECTOR),
    "independent": (lambda m, t: t.IndependentTransform(t.ExpTransform(), 1), VECTOR),
    "inverse": (lambda m, t: t.ExpTransform().inv, POSITIVE),
    "inverse of compose": (lambda m, t: t.ComposeTransform([t.AffineTransform(0.5, 2.0), t.ExpTransform()]).inv, POSITIVE),
    "lower_cholesky": (lambda m, t: t.LowerCholeskyTransform(), SQUARE),
    "positive_definite": (lambda m, t: t.PositiveDefiniteTransform(), SQUARE),
    "power": (lambda m, t: t.PowerTransform(m.tensor([2.0, -0.5, 3.0]).double()), POSITIVE),
    "reshape": (lambda m, t: t.ReshapeTransform((3,), (3, 1)), VECTOR),
    "sigmoid": (lambda m, t: t.SigmoidTransform(), [[-800.0, 0.3, 40.0]]),
    "softmax": (lambda m, t: t.SoftmaxTransform(), VECTOR),
    "softplus": (lambda m, t: t.SoftplusTransform(), [[-30.0, 0.3, 25.0]]),
    "stack": (lambda m, t: t.StackTransform([t.ExpTransform(), t.AffineTransform(1.0, 2.0)], dim=0), VECTOR),
    "stack of columns": (lambda m, t: t.StackTransform([t.ExpTransform(), t.SigmoidTransform(), t.TanhTransform()], dim=-1), VECTOR),
    "stick_breaking": (lambda m, t: t.StickBreakingTransform(), VECTOR),
    "tanh": (lambda m, t: t.TanhTransform(), [[-30.0, 0.3, 3.0]]),
}  # fmt: skip


def in_both(call: Any, *bounds: float) -> None:
    """What `call(module, its transforms)` gives is the same for both libraries."""
    results = [outcome(lambda m=module: call(m, m.distributions.transforms)) for module in (trt, torch)]
    assert_same(*results, *(bounds or (1e-9, 1e-9)))


@pytest.mark.parametrize("name", list(BOTH))
@pytest.mark.parametrize("cache_size", [0, 1])
def test_values_inverses_and_determinants(name: str, cache_size: int) -> None:
    build, x = BOTH[name]

    def make(m: Any, t: Any) -> Any:
        return build(m, t).with_cache(cache_size)

    def of_x(m: Any) -> Any:
        return m.tensor(x, dtype=m.float64, requires_grad=True)

    def round_trip(m: Any, t: Any) -> Any:
        transform = make(m, t)
        return transform.inv(transform(of_x(m)))

    def determinant(m: Any, t: Any) -> Any:
        transform, value = make(m, t), of_x(m)
        return transform.log_abs_det_jacobian(value, transform(value))

    def gradient(m: Any, t: Any) -> Any:
        value = of_x(m)
        return m.autograd.grad((make(m, t)(value) ** 2).sum(), value)[0]

    def gradient_of_determinant(m: Any, t: Any) -> Any:
        transform, value = make(m, t), of_x(m)
        total = transform.log_abs_det_jacobian(value, transform(value)).sum()
        return m.autograd.grad(total, value)[0]

    for call in (lambda m, t: make(m, t)(of_x(m)), round_trip, determinant, gradient, gradient_of_determinant):
        in_both(call)
    in_both(lambda m, t: make(m, t).inv.log_abs_det_jacobian(make(m, t)(of_x(m)), of_x(m)))
    for shape in ((2, 3), (3,), (6,), (), (2, 2), (3, 1)):
        in_both(lambda m, t, s=shape: tuple(make(m, t).forward_shape(m.Size(s))))
        in_both(lambda m, t, s=shape: tuple(make(m, t).inverse_shape(m.Size(s))))
    for key in ("bijective", "sign", "event_dim"):
        in_both(lambda m, t, k=key: getattr(make(m, t), k))
    in_both(lambda m, t: (make(m, t).domain.event_dim, make(m, t).codomain.event_dim, repr(make(m, t)), type(make(m, t).inv).__name__))
    if not name.startswith(("cat", "stack", "distribution", "affine of tensors")):
        in_both(lambda m, t: (repr(make(m, t).domain), repr(make(m, t).codomain)))
    in_both(lambda m, t: bool(build(m, t) == build(m, t)))
    in_both(lambda m, t: bool(build(m, t).inv == build(m, t).inv))


def test_a_cache_gives_back_what_was_put_in() -> None:
    for name, (build, x) in BOTH.items():
        transform = build(trt, trt.distributions.transforms).with_cache(1)
        value = trt.tensor(x, dtype=trt.float64)
        y = transform(value)
        if name not in ("nothing", "inverse of compose", "compose", "compose of event dims", "affine of tensors"):
            assert transform.inv(y) is value, name
            if "inverse" not in name:
                assert transform(value) is y, name
        assert transform.with_cache(1) is transform
        assert transform.inv.inv is transform
        plain = build(trt, trt.distributions.transforms)
        assert plain.with_cache(0) is plain


def test_inverses_live_as_long_as_they_are_held() -> None:
    transform = trt.distributions.ExpTransform()
    inverse = transform.inv
    assert transform.inv is inverse
    watched = weakref.ref(inverse)
    del inverse
    gc.collect()
    assert watched() is None


def test_pickling() -> None:
    for name, (build, x) in BOTH.items():
        if name == "distribution":
            continue
        transform = build(trt, trt.distributions.transforms).with_cache(1)
        value = trt.tensor(x, dtype=trt.float64)
        y = transform(value)
        transform.inv  # noqa: B018 - the weak reference is what pickles must leave out
        again = pickle.loads(pickle.dumps(transform))
        assert trt.equal(again(value), y), name
    for distribution in (trt.distributions.Normal(0.0, 1.0), trt.distributions.Beta(2.0, 3.0), trt.distributions.LogNormal(trt.zeros(2), 1.0)):
        assert repr(pickle.loads(pickle.dumps(distribution))) == repr(distribution)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, t: t.ExpTransform(cache_size=2), lambda m, t: t.ReshapeTransform((2,), (3,)), lambda m, t: t.Transform()(m.ones(2)), lambda m, t: t.Transform().inv(m.ones(2)), lambda m, t: t.Transform().sign,
        lambda m, t: t.ReshapeTransform((2,), (2, 1)).forward_shape(m.Size((3,))), lambda m, t: t.StickBreakingTransform().event_dim if False else t.CorrCholeskyTransform().event_dim,
        lambda m, t: t.IndependentTransform(t.ExpTransform(), 1)(m.tensor(1.0)), lambda m, t: t.SoftmaxTransform().log_abs_det_jacobian(m.ones(2), m.ones(2)), lambda m, t: t.CorrCholeskyTransform().inverse_shape(m.Size((2, 3))),
        lambda m, t: t.StackTransform([3]), lambda m, t: t.CatTransform([3]), lambda m, t: t.StackTransform([t.ExpTransform()])(m.ones(2)), lambda m, t: t.CatTransform([t.ExpTransform()])(m.ones(2)),
        lambda m, t: m.distributions.TransformedDistribution(m.distributions.Normal(0, 1), [t.StickBreakingTransform()]), lambda m, t: m.distributions.TransformedDistribution(m.distributions.Normal(0, 1), 3),
        lambda m, t: m.distributions.TransformedDistribution(m.distributions.Normal(0, 1), [3]), lambda m, t: m.distributions.biject_to(m.distributions.constraints.positive_definite),
        lambda m, t: m.distributions.transform_to(m.distributions.constraints.boolean), lambda m, t: m.distributions.transform_to(3), lambda m, t: m.distributions.transform_to.register(3, 4),
    ],
)  # fmt: skip
def test_errors(call: Any) -> None:
    results = [outcome(lambda m=module: call(m, m.distributions.transforms)) for module in (trt, torch)]
    assert results[1][0] != "value"
    if results[1][0] == "AssertionError":
        assert results[0][0] == "AssertionError"
    else:
        assert results[0] == results[1]


C = {
    "boolean": lambda c, m: c.boolean, "cat": lambda c, m: c.cat([c.positive, c.real, c.unit_interval], dim=-1), "corr_cholesky": lambda c, m: c.corr_cholesky, "greater_than": lambda c, m: c.greater_than(0.5), "greater_than_eq": lambda c, m: c.greater_than_eq(1),
    "half_open_interval": lambda c, m: c.half_open_interval(0, 1), "independent": lambda c, m: c.independent(c.positive, 1), "integer_interval": lambda c, m: c.integer_interval(0, 2), "interval": lambda c, m: c.interval(-1.0, m.tensor([0.5, 1.0, 2.0], dtype=m.float64)),
    "less_than": lambda c, m: c.less_than(1), "lower_cholesky": lambda c, m: c.lower_cholesky, "lower_triangular": lambda c, m: c.lower_triangular, "multinomial": lambda c, m: c.multinomial(3), "nonnegative": lambda c, m: c.nonnegative,
    "nonnegative_integer": lambda c, m: c.nonnegative_integer, "one_hot": lambda c, m: c.one_hot, "positive": lambda c, m: c.positive, "positive_definite": lambda c, m: c.positive_definite, "positive_integer": lambda c, m: c.positive_integer,
    "positive_semidefinite": lambda c, m: c.positive_semidefinite, "real": lambda c, m: c.real, "real_vector": lambda c, m: c.real_vector, "simplex": lambda c, m: c.simplex, "square": lambda c, m: c.square, "stack": lambda c, m: c.stack([c.positive, c.real, c.boolean], dim=-1),
    "symmetric": lambda c, m: c.symmetric, "unit_interval": lambda c, m: c.unit_interval, "mixture": lambda c, m: c.MixtureSameFamilyConstraint(c.positive), "dependent": lambda c, m: c.dependent, "told": lambda c, m: c.dependent(is_discrete=True, event_dim=1),
}  # fmt: skip
VALUES = [
    [[0.2, 0.3, 0.5], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]], [[2.0, 0.5, 0.0], [0.5, 1.0, 0.1], [0.0, 0.1, 3.0]], [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]],
    [[-1.0, float("nan"), 2.0], [1.5, 1.0, float("inf")], [0.0, 3.0, 1.0]], [[1.0, 2.0, 3.0]], [[[1.0, 2.0, 0.0]] * 3] * 2, 1.0, [0.5, 2.0, 1.0],
]  # fmt: skip


@pytest.mark.parametrize("name", list(C))
def test_membership(name: str) -> None:
    for value in VALUES:
        in_both(lambda m, t, v=value: C[name](m.distributions.constraints, m).check(m.tensor(v, dtype=m.float64)))
    in_both(lambda m, t: repr(C[name](m.distributions.constraints, m)))
    for key in ("is_discrete", "event_dim"):
        in_both(lambda m, t, k=key: getattr(C[name](m.distributions.constraints, m), k))
    in_both(lambda m, t: m.distributions.constraints.is_dependent(C[name](m.distributions.constraints, m)))


def test_the_module_of_constraints_is_whole() -> None:
    assert sorted(trt.distributions.constraints.__all__) == sorted(torch.distributions.constraints.__all__)
    for name in ("transforms", "constraint_registry", "kl", "utils"):
        assert set(getattr(trt.distributions, name).__all__) == set(getattr(torch.distributions, name).__all__), name


@pytest.mark.parametrize("name", list(C))
@pytest.mark.parametrize("registry", ["biject_to", "transform_to"])
def test_transforms_onto_constraints(name: str, registry: str) -> None:
    """They are PyTorch's, and what they make satisfies the constraint."""
    def transform(m: Any) -> Any:
        return getattr(m.distributions, registry)(C[name](m.distributions.constraints, m))

    in_both(lambda m, t: repr(transform(m)))
    in_both(lambda m, t: transform(m)(m.tensor(VALUES[2], dtype=m.float64)))
    if outcome(lambda: transform(trt))[0] == "value":
        y = transform(trt)(trt.tensor([0.3, -1.0, 0.7] if "corr" in name else VALUES[2], dtype=trt.float64))
        assert C[name](trt.distributions.constraints, trt).check(y).all()


def test_registering_a_constraint() -> None:
    from tensorrt_lite.distributions import constraints, transforms

    class Even(constraints.Constraint):
        pass

    registry = trt.distributions.constraint_registry.ConstraintRegistry()

    @registry.register(Even)
    def even(constraint: Any) -> Any:
        return transforms.AffineTransform(0, 2)

    assert registry(Even()).scale == 2
    with pytest.raises(TypeError, match="Expected constraint to be either a Constraint subclass or instance"):
        registry.register(int, even)


def test_utilities() -> None:
    matrix = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]
    for diag in (-3, -2, -1, 0, 1, 2, 3, -4):
        in_both(lambda m, t, d=diag: m.distributions.utils.tril_matrix_to_vec(m.tensor(matrix), d))
    for n in (1, 2, 3, 6, 10):
        for diag in (-1, 0, 1):
            in_both(lambda m, t, d=diag, n=n: m.distributions.utils.vec_to_tril_matrix(m.arange(2.0 * n).reshape(2, n), d))
    for call in ("clamp_probs", "probs_to_logits", "logits_to_probs"):
        in_both(lambda m, t, c=call: getattr(m.distributions.utils, c)(m.tensor([0.0, 0.3, 1.0], dtype=m.float64)))
    for call in ("probs_to_logits", "logits_to_probs"):
        in_both(lambda m, t, c=call: getattr(m.distributions.utils, c)(m.tensor([0.0, 0.3, 1.0], dtype=m.float64), is_binary=True))
    in_both(lambda m, t: m.stack(m.distributions.utils.broadcast_all(1, m.zeros(2, 1).double(), m.ones(3).double())))
    in_both(lambda m, t: m.distributions.utils.broadcast_all(1, 2.5)[1])
    np.testing.assert_allclose(trt.distributions.utils.euler_constant, torch.distributions.utils.euler_constant)


def test_lazy_properties() -> None:
    from tensorrt_lite.distributions.utils import lazy_property

    calls = []

    class Holder:
        @lazy_property
        def value(self) -> Any:
            """What it is."""
            calls.append(trt.is_grad_enabled())
            return len(calls)

    holder = Holder()
    with trt.no_grad():
        assert holder.value == holder.value == 1 and calls == [True]
    assert isinstance(Holder.value, property) and Holder.value.__doc__ == "What it is."
