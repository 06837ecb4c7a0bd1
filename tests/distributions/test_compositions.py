"""Divergences, and distributions made of distributions, beside PyTorch's."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest

import tensorrt_lite as trt
from tests.distributions.cases import CASES, LOGITS, SPD, SPD_BATCH, TRIL, WEIGHTS
from tests.distributions.test_against_torch import assert_same, make, outcome

torch = pytest.importorskip("torch")

PAIRS = sorted(((p, q) for p, q in torch.distributions.kl._KL_REGISTRY), key=lambda pair: (pair[0].__name__, pair[1].__name__))
NAMES = [(p.__name__, q.__name__) for p, q in PAIRS if p.__name__ in CASES and q.__name__ in CASES]
# Further parameters: those of CASES do not show what depends on how supports lie to each other.
MORE = {
    "Uniform": [{"low": 0.1, "high": 0.9}, {"low": -2.0, "high": 9.0}, {"low": 3.0, "high": 4.0}], "Pareto": [{"scale": 2.0, "alpha": 0.9}, {"scale": 0.05, "alpha": 2.5}], "Binomial": [{"total_count": 5, "probs": 0.6}],
    "Bernoulli": [{"probs": 0.0}, {"probs": 1.0}], "Categorical": [{"probs": [1.0, 0.0, 2.0]}, {"probs": [0.5, 0.5, 0.0]}], "OneHotCategorical": [{"probs": [1.0, 0.0, 2.0]}], "Poisson": [{"rate": 0.7}],
}  # fmt: skip


def instances(module: Any, name: str) -> list[Any]:
    made = []
    for parameters in (*CASES[name], *MORE.get(name, ())):
        given = {k: module.tensor(v, dtype=module.float64) if isinstance(v, (list, float)) else v for k, v in parameters.items()}
        made.append(getattr(module.distributions, name)(**given))
    return made


@pytest.mark.parametrize(("p", "q"), NAMES)
def test_divergences(p: str, q: str) -> None:
    """Of every registered pair, over all instances whose batch shapes broadcast."""
    ours, theirs = ([(a, b) for a in instances(m, p) for b in instances(m, q)] for m in (trt, torch))
    compared = 0
    for k, ((a, b), (c, d)) in enumerate(zip(ours, theirs, strict=True)):
        # masked assignments of PyTorch's fail, or land in the wrong place, where both are batches of different shapes
        if a.event_shape != b.event_shape or a.batch_shape and b.batch_shape and a.batch_shape != b.batch_shape:
            continue
        if (p, q) == ("ContinuousBernoulli", "Uniform"):  # PyTorch's is infinite although the support of q holds that of p
            finite = (b.low <= 0) & (b.high >= 1)
            kl = trt.distributions.kl_divergence(a, b)
            assert trt.equal(kl.isfinite(), finite.expand(kl.shape))
            compared += 1
            continue
        expected = outcome(lambda c=c, d=d: torch.distributions.kl_divergence(c, d))
        if expected[0] not in ("value", "NotImplementedError"):
            continue
        assert_same(outcome(lambda a=a, b=b: trt.distributions.kl_divergence(a, b)), expected, 1e-7, 1e-8, where=(k, a, b))
        compared += 1
    assert compared > 0


def test_the_table_of_divergences_is_whole() -> None:
    names = {(p.__name__, q.__name__) for p, q in trt.distributions.kl._KL_REGISTRY}
    assert names == {(p.__name__, q.__name__) for p, q in PAIRS}


@pytest.mark.parametrize(("p", "q"), [("Normal", "Normal"), ("Gamma", "Gamma"), ("Beta", "Normal"), ("Laplace", "Normal"), ("MultivariateNormal", "MultivariateNormal"), ("Dirichlet", "Dirichlet"), ("LowRankMultivariateNormal", "LowRankMultivariateNormal")])
def test_gradients_of_divergences(p: str, q: str) -> None:
    found = []
    for m in (trt, torch):
        (a, of_a), (b, of_b) = make(m, p, 0, dtype="float64"), make(m, q, 0, dtype="float64")
        leaves = [v for v in (*of_a.values(), *of_b.values()) if hasattr(v, "requires_grad")]
        if not leaves:
            (a, of_a), (b, of_b) = make(m, p, 1, dtype="float64"), make(m, q, -1, dtype="float64")
            leaves = [v for v in (*of_a.values(), *of_b.values()) if hasattr(v, "requires_grad")]
        kl = m.distributions.kl_divergence(a, b)
        found.append([g.tolist() for g in m.autograd.grad(kl.sum(), leaves, allow_unused=True)])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-9)


def test_registering_divergences() -> None:
    """The most specific pair is taken, an ambiguous one warns, none raises, and a new one counts from then on."""
    D = trt.distributions

    class P(D.Normal):
        pass

    class Q(D.Normal):
        pass

    table, memory = dict(D.kl._KL_REGISTRY), dict(D.kl._KL_MEMOIZE)
    try:
        assert D.kl_divergence(P(0.0, 1.0), Q(1.0, 1.0)).item() == 0.5
        D.register_kl(P, D.Normal)(lambda p, q: "left")
        assert D.kl_divergence(P(0.0, 1.0), Q(1.0, 1.0)) == "left" and D.kl_divergence(Q(0.0, 1.0), Q(1.0, 1.0)).item() == 0.5
        D.register_kl(D.Normal, Q)(lambda p, q: "right")
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(P, Q\). Please register_kl\(P, Q\)"):
            assert D.kl_divergence(P(0.0, 1.0), Q(1.0, 1.0)) == "left"
        D.register_kl(P, Q)(lambda p, q: "both")
        assert D.kl_divergence(P(0.0, 1.0), Q(1.0, 1.0)) == "both"
    finally:
        D.kl._KL_REGISTRY.clear(), D.kl._KL_MEMOIZE.clear()
        D.kl._KL_REGISTRY.update(table), D.kl._KL_MEMOIZE.update(memory)
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented for p type Normal and q type VonMises"):
        D.kl_divergence(D.Normal(0.0, 1.0), D.VonMises(0.0, 1.0))
    with pytest.raises(TypeError, match="Expected type_p to be a Distribution subclass"):
        D.register_kl(3, D.Normal)


def exponential_families(m: Any) -> list[Any]:
    D = m.distributions
    t = lambda v: m.tensor(v, dtype=m.float64)  # noqa: E731
    pairs = [
        (D.Normal(t([0.5]), t([2.0])), D.Normal(t([1.0]), t([0.7]))), (D.Gamma(t([0.5]), t([2.0])), D.Gamma(t([1.5]), t([0.7]))), (D.Beta(t([0.5]), t([2.0])), D.Beta(t([1.5]), t([0.7]))),
        (D.Dirichlet(t([0.5, 1.0, 2.0])), D.Dirichlet(t([1.5, 0.7, 0.2]))), (D.Exponential(t([2.0])), D.Exponential(t([0.3]))), (D.Poisson(t([2.0])), D.Poisson(t([0.3]))), (D.Bernoulli(t([0.2])), D.Bernoulli(t([0.7]))),
        (D.ContinuousBernoulli(t([0.2])), D.ContinuousBernoulli(t([0.7]))), (D.Wishart(t(4.0), t(SPD)), D.Wishart(t(5.0), t(TRIL) @ t(TRIL).mT)),
    ]  # fmt: skip
    return pairs


def test_exponential_families_by_their_log_normalizers() -> None:
    """Entropy and divergence by autograd are PyTorch's, and those of the closed forms."""
    E = trt.distributions.ExponentialFamily
    for (p, q), (r, s) in zip(exponential_families(trt), exponential_families(torch), strict=True):
        name = type(p).__name__
        if name not in ("Beta", "Dirichlet", "Poisson", "Wishart"):  # whose carrier measure has no mean in closed form; whose log-normaliser counts each pair of elements twice
            assert_same(outcome(lambda p=p: E.entropy(p)), outcome(lambda r=r: torch.distributions.ExponentialFamily.entropy(r)), 1e-9, 1e-9, where=name)
        ours = outcome(lambda p=p, q=q: trt.distributions.kl._kl_expfamily_expfamily(p, q))
        theirs = outcome(lambda r=r, s=s: torch.distributions.kl._kl_expfamily_expfamily(r, s))
        assert_same(ours, theirs, 1e-9, 1e-9, where=name)
        if name != "Wishart":
            np.testing.assert_allclose(ours[3], trt.distributions.kl_divergence(p, q).tolist(), rtol=1e-9)


def composed(m: Any) -> dict[str, Any]:
    D, T = m.distributions, m.distributions.transforms
    t = lambda v: m.tensor(v, dtype=m.float64)  # noqa: E731
    weights, logits = t(WEIGHTS), t(LOGITS)
    return {
        "mixture of normals": D.MixtureSameFamily(D.Categorical(weights), D.Normal(t([[0.0, 1.0, 5.0], [2.0, -2.0, 0.5]]), t([1.0, 2.0, 0.5]))),
        "mixture with one set of weights": D.MixtureSameFamily(D.Categorical(t([0.3, 0.7])), D.Gamma(t([[0.5, 3.0]] * 4), 1.0)),
        "mixture of vectors": D.MixtureSameFamily(D.Categorical(weights), D.Independent(D.Normal(t([[[0.0, 1.0]] * 3] * 2), t([[1.0, 2.0], [0.5, 0.1], [3.0, 1.0]])), 1)),
        "mixture of matrices": D.MixtureSameFamily(D.Categorical(t([0.2, 0.5, 0.3])), D.MultivariateNormal(t([0.0, 1.0]), t(SPD_BATCH))),
        "mixture of counts": D.MixtureSameFamily(D.Categorical(logits=logits), D.Poisson(t([1.0, 5.0, 20.0]).expand(2, 3))),
        "independent": D.Independent(D.Normal(t([[0.0, 1.0], [2.0, 3.0]]), 2.0), 1),
        "independent of two": D.Independent(D.Laplace(t([[0.0, 1.0], [2.0, 3.0]]), 2.0), 2),
        "independent of none": D.Independent(D.Bernoulli(t([0.2, 0.7])), 0),
        "independent categories": D.Independent(D.Categorical(weights), 1),
        "log-normal": D.TransformedDistribution(D.Normal(t([0.0, 1.0]), 1.0), T.ExpTransform()),
        "logistic": D.TransformedDistribution(D.Uniform(t(0.0), t(1.0)), [T.SigmoidTransform().inv, T.AffineTransform(t(1.0), t([2.0, -0.5]))]),
        "falling": D.TransformedDistribution(D.Normal(t([0.0, 1.0]), 1.0), [T.AffineTransform(0.5, -2.0)]),
        "vectors": D.TransformedDistribution(D.Normal(t([[0.0, 1.0]]), 1.0), [T.AffineTransform(0.0, 2.0), T.StickBreakingTransform()]),
        "reshaped": D.TransformedDistribution(D.Normal(t([0.0, 1.0, 2.0, 3.0]), 1.0), [T.ReshapeTransform((4,), (2, 2)), T.ExpTransform()]),
        "of a vector's distribution": D.TransformedDistribution(D.MultivariateNormal(t([0.0, 1.0]), t(SPD)), [T.ExpTransform(), T.AffineTransform(1.0, 2.0)]),
        "of nothing": D.TransformedDistribution(D.Normal(t([0.0]), 1.0), []),
        "of counts": D.TransformedDistribution(D.Poisson(t([3.0])), [T.AffineTransform(1.0, 2.0)]),
        "correlations": D.TransformedDistribution(D.Normal(t([[0.1, 0.2, 0.3]]), 1.0), [T.CorrCholeskyTransform()]),
    }  # fmt: skip


@pytest.mark.parametrize("name", list(composed(torch)))
def test_composed_distributions(name: str) -> None:
    found = []
    for m in (trt, torch):
        for d in (composed(m)[name], composed(m)[name].expand((3, *composed(m)[name].batch_shape))):
            m.manual_seed(11)
            drawn = outcome(lambda d=d: d.sample((4,)))
            # without batch dimensions of its own the mixture chooses once for all of the batch, which `gather` refuses
            value = m.tensor(drawn[3].tolist() if drawn[0] == "value" else 0.7, dtype=m.float64)
            results = {
                "sample": drawn, "rsample": outcome(lambda d=d: d.rsample((2,))), "log_prob": outcome(lambda d=d, v=value: d.log_prob(v)), "cdf": outcome(lambda d=d, v=value: d.cdf(v)),
                "entropy": outcome(d.entropy), "repr": outcome(lambda d=d: repr(d)), "batch": tuple(d.batch_shape), "event": tuple(d.event_shape), "has_rsample": d.has_rsample,
                "icdf": outcome(lambda d=d, m=m: d.icdf(m.full((2, *d.batch_shape), 0.3, dtype=m.float64))), "enumerate": outcome(d.enumerate_support), "support": outcome(lambda d=d: repr(d.support)),
                "outside": outcome(lambda d=d, v=value: d.log_prob(v * math.nan))[:1] + (None,), "has": d.has_enumerate_support,
                **{k: outcome(lambda d=d, k=k: getattr(d, k)) for k in ("mean", "mode", "variance", "stddev")},
            }  # fmt: skip
            found.append(results)
    for ours, theirs in ((found[0], found[2]), (found[1], found[3])):
        for key in ours:
            if isinstance(ours[key], tuple) and ours[key] and isinstance(ours[key][0], str):
                assert_same(ours[key], theirs[key], 1e-8, 1e-9, where=key)
            else:
                assert ours[key] == theirs[key], key


def test_samples_lie_in_their_supports() -> None:
    trt.manual_seed(0)
    for name in CASES:
        for i in range(len(CASES[name])):
            d, _ = make(trt, name, i)
            assert d.support.check(d.sample((50,))).all(), (name, i)
            assert d.sample((50,)).requires_grad is False


def test_samples_of_no_distribution_are_nan() -> None:
    """Without validation, parameters that are none neither raise nor end in a loop."""
    nan = trt.tensor([math.nan, 1.0])
    for name, parameters in (("VonMises", (nan * 0, nan)), ("Gamma", (nan, 1.0)), ("Gamma", (-nan, 1.0)), ("Normal", (nan, 1.0)), ("Beta", (nan, nan))):
        assert getattr(trt.distributions, name)(*parameters, validate_args=False).sample((3,))[:, 0].isnan().all(), name


def test_wrong_compositions() -> None:
    calls = [
        lambda m, D: D.MixtureSameFamily(D.Normal(0, 1), D.Normal(0, 1)), lambda m, D: D.MixtureSameFamily(D.Categorical(m.ones(3)), 3), lambda m, D: D.MixtureSameFamily(D.Categorical(m.ones(3)), D.Normal(m.zeros(2), 1)),
        lambda m, D: D.MixtureSameFamily(D.Categorical(m.ones(2, 3)), D.Normal(m.zeros(4, 3), 1)), lambda m, D: D.Independent(D.Normal(0, 1), 1), lambda m, D: D.Independent(D.Categorical(m.ones(2, 3)), 1).enumerate_support(),
        lambda m, D: D.Multinomial(m.tensor(3), m.ones(3)), lambda m, D: D.Binomial(m.tensor([1, 2]), m.tensor(0.5)).enumerate_support(), lambda m, D: D.Distribution(validate_args=False).mean, lambda m, D: D.Normal(0, 1).enumerate_support(),
        lambda m, D: D.VonMises(0.0, 1.0).rsample(), lambda m, D: D.Poisson(1.0).rsample(), lambda m, D: D.Distribution.set_default_validate_args(3), lambda m, D: type("N", (D.Normal,), {"__init__": lambda self: D.Normal.__init__(self, 0, 1)})().expand([2]),
        lambda m, D: D.kl_divergence(D.Independent(D.Normal(m.zeros(2), 1), 1), D.Independent(D.Normal(m.zeros(2, 2), 1), 2)),
        lambda m, D: D.kl_divergence(D.LogNormal(0, 1), D.HalfCauchy(1)), lambda m, D: D.kl_divergence(D.MultivariateNormal(m.zeros(2), m.eye(2)), D.MultivariateNormal(m.zeros(3), m.eye(3))),
    ]  # fmt: skip
    for k, call in enumerate(calls):
        ours, theirs = (outcome(lambda m=m: call(m, m.distributions)) for m in (trt, torch))
        theirs = theirs[0], " ".join(str(theirs[1]).split()) if k == len(calls) - 1 else theirs[1]
        assert theirs[0] != "value" and ours == theirs, (k, ours, theirs)


def test_validation_can_be_switched_off() -> None:
    D = trt.distributions
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1.0
    try:
        D.Distribution.set_default_validate_args(False)
        assert D.Normal(0.0, -1.0).scale.item() == -1.0
        with pytest.raises(ValueError, match="to satisfy the constraint GreaterThan"):
            D.Normal(0.0, -1.0, validate_args=True)
    finally:
        D.Distribution.set_default_validate_args(True)

    class WithoutConstraints(D.Distribution):
        pass

    with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
        WithoutConstraints()
    with pytest.warns(FutureWarning, match="sample_n"):
        assert D.Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_subclasses_expand_by_their_own_instance() -> None:
    """The pattern of other packages: a class of its own constructor hands the instance that it has filled to the parent's `expand`."""
    D = trt.distributions

    class Named(D.Normal):
        def __init__(self, loc: Any, scale: Any, name: str) -> None:
            super().__init__(loc, scale)
            self.name = name

        def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
            new = self._get_checked_instance(Named, _instance)
            new.name = self.name
            return super().expand(batch_shape, _instance=new)

    class Mixin(D.Gamma):
        pass

    expanded = Named(0.0, trt.ones(2), "x").expand((3, 2))
    assert type(expanded) is Named and expanded.name == "x" and expanded.sample().shape == (3, 2)
    assert type(Mixin(1.0, trt.ones(2)).expand((3, 2))) is Mixin


def test_gradients_of_wishart_samples() -> None:
    """PyTorch's backward pass of them fails: beside finite differences, of the factor for the same seed."""
    factor = trt.tensor(TRIL, dtype=trt.float64, requires_grad=True)
    weights = trt.tensor([[1.0, -0.5], [2.0, 0.3]], dtype=trt.float64)

    def total(value: Any) -> Any:
        trt.manual_seed(4)
        return (trt.distributions.Wishart(trt.tensor(4.0, dtype=trt.float64), scale_tril=value).rsample((3,)) * weights).sum()

    (slope,) = trt.autograd.grad(total(factor), factor)
    for i, j in ((0, 0), (1, 0), (1, 1)):
        step = trt.zeros(2, 2, dtype=trt.float64)
        step[i, j] = 1e-6
        expected = (total(factor.detach() + step) - total(factor.detach() - step)) / 2e-6
        assert abs(slope[i, j].item() - expected.item()) < 1e-6 * max(1.0, abs(expected.item()))


def test_a_variational_fit() -> None:
    """Gradients through samples find the posterior of a rate: Gamma(3 + sum, 1 + n) by its conjugate prior."""
    D = trt.distributions
    trt.manual_seed(1)
    counts = trt.tensor([3.0, 5.0, 4.0, 6.0, 2.0, 4.0, 5.0, 3.0])
    shape, rate = trt.tensor(1.0, requires_grad=True), trt.tensor(0.0, requires_grad=True)
    optimizer = trt.optim.Adam([shape, rate], lr=0.05)
    for step in range(600):
        if step == 400:
            optimizer.param_groups[0]["lr"] = 0.005
        posterior = D.Gamma(shape.exp(), rate.exp())
        sample = posterior.rsample((20,))
        likelihood = D.Poisson(sample.unsqueeze(-1)).log_prob(counts).sum(-1)
        loss = D.kl_divergence(posterior, D.Gamma(3.0, 1.0)) - likelihood.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    exact = D.Gamma(3.0 + counts.sum(), 1.0 + len(counts))
    assert abs(posterior.mean.item() / exact.mean.item() - 1) < 0.05 and abs(posterior.stddev.item() / exact.stddev.item() - 1) < 0.2


def test_all_types_of_parameters_broadcast() -> None:
    """Numbers, tensors of any floating type, Parameters."""
    D = trt.distributions
    for dtype in (trt.float32, trt.float64, trt.bfloat16):
        d = D.Normal(trt.zeros(3, dtype=dtype), 2)
        assert d.sample().dtype == dtype and d.log_prob(d.sample()).dtype == dtype
    parameter = trt.nn.Parameter(trt.ones(3))
    assert D.Normal(0.0, parameter).rsample().requires_grad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, kind in itertools.product(("Normal", "Laplace", "Cauchy", "Gumbel", "Uniform"), (trt.float32, trt.float64)):
            a, b = trt.zeros(2, 1, dtype=kind), trt.ones(3, dtype=kind)
            assert getattr(D, name)(a, b).sample((4,)).shape == (4, 2, 3)


def test_what_a_distribution_lacks_is_named() -> None:
    p = trt.distributions.Bernoulli(0.5)
    calls = {"no differentiable samples": p.rsample, "no cdf()": lambda: p.cdf(trt.tensor(1.0)), "no icdf()": lambda: p.icdf(trt.tensor(0.5))}
    for said, call in {**calls, "no enumerate_support()": trt.distributions.LogNormal(0.0, 1.0).enumerate_support}.items():
        with pytest.raises(NotImplementedError) as caught:
            call()
        assert said in caught.value.__notes__[0]
