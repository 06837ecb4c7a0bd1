"""Every distribution beside PyTorch's: samples of the same seed, gradients through them, densities, moments, distribution functions, supports, expansion, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tensorrt_lite as trt
from tests.distributions.cases import CASES, tensors

torch = pytest.importorskip("torch")

ALL = [(name, i) for name, cases in CASES.items() for i in range(len(cases))]
IDS = [f"{name}{i}" for name, i in ALL]
each = pytest.mark.parametrize(("name", "i"), ALL, ids=IDS)
DTYPES = ("float32", "float64")
PYTORCHS_DTYPE = {"GeneralizedPareto": "float32"}  # some of PyTorch's methods fail for others
PYTORCHS_ERROR = {"VonMises": 3e-6}  # its Bessel functions are short series
# Gradients by shapes are exact here; PyTorch's are approximations, within 3e-3.
IMPLICIT = {"Beta", "Chi2", "Dirichlet", "FisherSnedecor", "Gamma", "InverseGamma", "StudentT", "Wishart"}


def make(module: Any, name: str, i: int, dtype: str | None = None, **more: Any) -> tuple[Any, dict[str, Any]]:
    dtype = dtype or PYTORCHS_DTYPE.get(name, "float64")
    parameters = tensors(module, CASES[name][i], dtype)
    return getattr(module.distributions, name)(**parameters, **more), parameters


def numbers(value: Any) -> Any:
    return np.asarray(value.detach().tolist()) if hasattr(value, "detach") else value


def outcome(call: Any) -> Any:
    """What a call gives: ("value", shape, dtype, numbers), or the type and text of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = call()
    except Exception as error:
        return type(error).__name__.removeprefix("_"), str(error).replace("tensorrt_lite.", "torch.")
    if hasattr(value, "detach"):
        return "value", tuple(value.shape), str(value.dtype), numbers(value)
    return "value", value


def assert_same(ours: Any, theirs: Any, rtol: float = 1e-10, atol: float = 1e-10, where: Any = "") -> None:
    assert ours[0] == theirs[0], (where, ours, theirs)
    if len(ours) == 4:
        assert ours[1:3] == theirs[1:3], (where, ours, theirs)
        if "float32" in theirs[2]:  # of parameters that are numbers, too
            rtol, atol = 3e-5, 3e-6
        np.testing.assert_allclose(ours[3], theirs[3], rtol=rtol, atol=atol, err_msg=str(where))
    else:
        assert ours[1] == theirs[1], (where, ours, theirs)


def tolerance(dtype: str) -> dict[str, float]:
    return {"rtol": 2e-5, "atol": 2e-6} if dtype == "float32" else {"rtol": 1e-9, "atol": 1e-10}


def test_no_distribution_is_forgotten() -> None:
    classes = {n for n in torch.distributions.__all__ if isinstance(getattr(torch.distributions, n), type)}
    distributions = {n for n in classes if issubclass(getattr(torch.distributions, n), torch.distributions.Distribution)}
    assert set(CASES) == distributions - {"Distribution", "ExponentialFamily", "Independent", "MixtureSameFamily", "TransformedDistribution"}
    assert trt.distributions.__all__ == sorted(torch.distributions.__all__)


@each
def test_samples_of_the_same_seed(name: str, i: int) -> None:
    for dtype in DTYPES:
        for shape in ((), (3,), (2, 5), (0,)):
            drawn = []
            for module in (trt, torch):
                distribution, _ = make(module, name, i, dtype)
                module.manual_seed(17)
                for method in ("sample", "rsample"):
                    drawn.append(outcome(lambda d=distribution, m=method, s=shape: getattr(d, m)(s)))  # noqa: B023
            assert_same(drawn[0], drawn[2], **tolerance(dtype), where=(dtype, shape))
            assert_same(drawn[1], drawn[3], **tolerance(dtype), where=(dtype, shape, "rsample"))


@each
def test_gradients_through_samples(name: str, i: int) -> None:
    found = []
    for module in (trt, torch):
        distribution, parameters = make(module, name, i)
        if not distribution.has_rsample or name == "Wishart":  # PyTorch's backward pass of that fails
            return
        leaves = [p for p in parameters.values() if hasattr(p, "requires_grad")]
        module.manual_seed(3)
        sample = distribution.rsample((4,))
        assert sample.requires_grad == bool(leaves)
        if not leaves:
            return
        weights = module.arange(1, sample.numel() + 1, dtype=sample.dtype).reshape(sample.shape) / sample.numel()
        found.append([numbers(g) for g in module.autograd.grad((sample * weights).sum(), leaves, allow_unused=True) if g is not None])
    for ours, theirs in zip(*found, strict=True):
        bound = {"rtol": 5e-3, "atol": 5e-3 * abs(theirs).max()} if name in IMPLICIT else tolerance(PYTORCHS_DTYPE.get(name, "float64"))
        np.testing.assert_allclose(ours, theirs, **bound)


@each
def test_densities_and_their_gradients(name: str, i: int) -> None:
    torch.manual_seed(5)
    values = make(torch, name, i)[0].sample((6,))
    found = []
    for module in (trt, torch):
        distribution, parameters = make(module, name, i)
        value = module.tensor(values.tolist(), dtype=getattr(module, str(values.dtype).rpartition(".")[2]))
        leaves = [p for p in parameters.values() if hasattr(p, "requires_grad")]
        if value.is_floating_point():
            leaves.append(value.requires_grad_())
        log_prob = distribution.log_prob(value)
        grads = module.autograd.grad(log_prob.sum(), leaves, allow_unused=True) if log_prob.requires_grad else []
        rest = {m: outcome(lambda d=distribution, m=m, v=value: getattr(d, m)(v)) for m in ("cdf",)}
        found.append((outcome(lambda v=log_prob: v), [g if g is None else outcome(lambda g=g: g) for g in grads], rest))
    bound = PYTORCHS_ERROR.get(name, 1e-8)
    assert_same(found[0][0], found[1][0], bound, bound)
    for ours, theirs in zip(found[0][1], found[1][1], strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            assert_same(ours, theirs, max(bound, 1e-7), bound)
    for key in found[0][2]:
        assert_same(found[0][2][key], found[1][2][key], 1e-8, 1e-9, where=key)


@each
def test_moments_and_entropy(name: str, i: int) -> None:
    for key in ("mean", "mode", "variance", "stddev", "entropy", "perplexity"):
        found = []
        for module in (trt, torch):
            distribution, parameters = make(module, name, i)
            found.append(outcome(lambda d=distribution, k=key: getattr(d, k)() if k in ("entropy", "perplexity") else getattr(d, k)))
        bound = PYTORCHS_ERROR.get(name, 1e-8)
        assert_same(*found, max(bound, 1e-7), bound, where=key)


@each
def test_entropy_has_gradients(name: str, i: int) -> None:
    found = []
    for module in (trt, torch):
        distribution, parameters = make(module, name, i)
        leaves = [p for p in parameters.values() if hasattr(p, "requires_grad")]
        try:
            entropy = distribution.entropy()
        except NotImplementedError:
            return
        if not leaves or not entropy.requires_grad:
            return
        found.append([g if g is None else numbers(g) for g in module.autograd.grad(entropy.sum(), leaves, allow_unused=True)])
    for ours, theirs in zip(*found, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-8)


@each
def test_quantiles_and_supports(name: str, i: int) -> None:
    found = []
    for module in (trt, torch):
        distribution, _ = make(module, name, i)
        levels = module.linspace(0.05, 0.95, 7, dtype=getattr(module, PYTORCHS_DTYPE.get(name, "float64"))).reshape(7, *(1,) * len(distribution.batch_shape))
        results = {
            "icdf": outcome(lambda d=distribution, q=levels: d.icdf(q)),
            "support": outcome(lambda d=distribution: repr(d.support)),
            "discrete": outcome(lambda d=distribution: (d.support.is_discrete, d.support.event_dim)),
            "constraints": outcome(lambda d=distribution: {k: repr(v) for k, v in d.arg_constraints.items()}),
            "repr": outcome(lambda d=distribution: repr(d)),
            "shapes": outcome(lambda d=distribution: (tuple(d.batch_shape), tuple(d.event_shape), d.has_rsample, d.has_enumerate_support)),
            "enumerated": outcome(lambda d=distribution: d.enumerate_support()),
            "not expanded": outcome(lambda d=distribution: d.enumerate_support(expand=False)),
            "param_shape": outcome(lambda d=distribution: tuple(d.param_shape)),
            "probs": outcome(lambda d=distribution: d.probs),
            "logits": outcome(lambda d=distribution: d.logits),
            **{m: outcome(lambda d=distribution, m=m: getattr(d, m)) for m in ("covariance_matrix", "precision_matrix", "scale_tril")},
        }
        found.append(results)
    for key in found[0]:
        assert_same(found[0][key], found[1][key], 1e-8, 1e-9, where=key)


@each
def test_expansion(name: str, i: int) -> None:
    """An expanded distribution draws, measures and validates as PyTorch's, and expands again."""
    found = []
    for module in (trt, torch):
        distribution, _ = make(module, name, i)
        shape = (4, *distribution.batch_shape)
        expanded = distribution.expand(shape)
        assert type(expanded) is type(distribution) and tuple(expanded.batch_shape) == shape and expanded.event_shape == distribution.event_shape
        again = expanded.expand((2, *shape))
        module.manual_seed(23)
        sample = expanded.sample((3,))
        results = [outcome(lambda v=sample: v), outcome(lambda d=again: tuple(d.sample().shape))]
        results += [outcome(lambda d=expanded, k=k: getattr(d, k)) for k in ("mean", "variance")]
        results += [outcome(lambda d=expanded, v=sample: d.log_prob(v))]
        results += [outcome(lambda d=expanded: d.entropy())] if name != "Multinomial" else []  # PyTorch's expanded one has none
        found.append(results)
    bound = PYTORCHS_ERROR.get(name, 1e-8)
    for ours, theirs in zip(*found, strict=True):
        assert_same(ours, theirs, bound, bound)


WRONG = {
    "Bernoulli": [{"probs": 1.5}, {"probs": 0.5, "logits": 0.0}, {}], "Beta": [{"concentration1": -1.0, "concentration0": 1.0}], "Binomial": [{"total_count": -1, "probs": [0.5]}, {"total_count": 1}],
    "Categorical": [{"probs": [-0.1, 1.0]}, {"probs": 0.5}, {}, {"logits": [float("nan"), 0.0]}], "Cauchy": [{"loc": 0.0, "scale": 0.0}, {"loc": float("nan"), "scale": 1.0}], "Chi2": [{"df": 0.0}],
    "ContinuousBernoulli": [{}], "Dirichlet": [{"concentration": [1.0, -1.0]}], "Exponential": [{"rate": -2.0}], "FisherSnedecor": [{"df1": -1.0, "df2": 2.0}],
    "Gamma": [{"concentration": 0.0, "rate": 1.0}, {"concentration": 1.0, "rate": [-1.0, 2.0]}], "GeneralizedPareto": [{"loc": 0.0, "scale": -1.0, "concentration": 0.0}], "Geometric": [{"probs": 0.0}, {"probs": -1.0}, {}],
    "Gumbel": [{"loc": 0.0, "scale": -1.0}], "HalfCauchy": [{"scale": -1.0}], "HalfNormal": [{"scale": -1.0}], "InverseGamma": [{"concentration": -1.0, "rate": 1.0}], "Kumaraswamy": [{"concentration1": -1.0, "concentration0": 1.0}],
    "LKJCholesky": [{"dim": 1}, {"dim": 3, "concentration": -1.0}], "Laplace": [{"loc": 0.0, "scale": -1.0}], "LogNormal": [{"loc": 0.0, "scale": -1.0}], "LogisticNormal": [{"loc": [0.0], "scale": -1.0}],
    "LowRankMultivariateNormal": [{"loc": [0.0, 0.0], "cov_factor": [[1.0], [1.0], [1.0]], "cov_diag": [1.0, 1.0]}, {"loc": [0.0, 0.0], "cov_factor": [[1.0], [1.0]], "cov_diag": [1.0]}, {"loc": [0.0, 0.0], "cov_factor": [1.0, 1.0], "cov_diag": [1.0, 1.0]}],
    "Multinomial": [{"total_count": [1.0], "probs": [1.0]}, {"total_count": 2}], "MultivariateNormal": [{"loc": [0.0, 0.0]}, {"loc": [0.0, 0.0], "covariance_matrix": [1.0, 1.0]}, {"loc": [0.0, 0.0], "covariance_matrix": [[1.0, 2.0], [2.0, 1.0]]}, {"loc": [0.0, 0.0], "scale_tril": [[1.0, 1.0], [0.0, 1.0]]}],
    "NegativeBinomial": [{"total_count": -1, "probs": [0.5]}, {"total_count": 1, "probs": [1.0]}, {"total_count": 1}], "Normal": [{"loc": 0.0, "scale": -1.0}, {"loc": "a", "scale": 1.0}, {"loc": [0.0, 1.0], "scale": [1.0, 0.0]}],
    "OneHotCategorical": [{"probs": [-1.0, 2.0]}, {}], "OneHotCategoricalStraightThrough": [{}], "Pareto": [{"scale": -1.0, "alpha": 1.0}], "Poisson": [{"rate": -1.0}], "RelaxedBernoulli": [{"temperature": [1.0]}, {"temperature": [1.0], "probs": [2.0]}],
    "RelaxedOneHotCategorical": [{"temperature": [1.0]}], "StudentT": [{"df": -1.0}], "Uniform": [{"low": 1.0, "high": 0.0}], "VonMises": [{"loc": [0.0], "concentration": [-1.0]}], "Weibull": [{"scale": -1.0, "concentration": 1.0}],
    "Wishart": [{"df": 1.0, "covariance_matrix": SPD} for SPD in ([[1.0, 0.0], [0.0, 1.0]],)] + [{"df": 3.0}, {"df": 3.0, "covariance_matrix": [1.0, 2.0]}, {"df": 3.0, "covariance_matrix": [[1.0, 2.0], [2.0, 1.0]]}],
}  # fmt: skip


@pytest.mark.parametrize("name", list(WRONG))
def test_parameters_are_validated(name: str) -> None:
    for case in WRONG[name]:
        found = []
        for module in (trt, torch):
            parameters = {k: module.tensor(v, dtype=module.float64) if isinstance(v, list) else v for k, v in case.items()}
            found.append(outcome(lambda m=module, p=parameters: getattr(m.distributions, name)(**p)))
        assert found[1][0] != "value", (name, case)
        assert found[0] == found[1], (name, case)
        for module in (trt, torch):
            parameters = {k: module.tensor(v, dtype=module.float64) if isinstance(v, list) else v for k, v in case.items()}
            found.append(outcome(lambda m=module, p=parameters: type(getattr(m.distributions, name)(**p, validate_args=False)).__name__))
        assert found[2][0] == found[3][0], (name, case, found[2:])


@each
def test_values_are_validated(name: str, i: int) -> None:
    """Values outside of the support, of a wrong event shape, of a shape that does not broadcast, of a wrong type."""
    found = []
    for module in (trt, torch):
        distribution, _ = make(module, name, i)
        event, batch = tuple(distribution.event_shape), tuple(distribution.batch_shape)
        nan = module.full((*batch, *event), float("nan"), dtype=module.float64)
        values = [nan, nan * 0 - 1, nan * 0 + 0.5, module.zeros((7, *(n + 2 for n in (*batch, *event))), dtype=module.float64), module.zeros((*batch, *(n + 1 for n in event)))]
        results = [outcome(lambda d=distribution, v=v, m=m: getattr(d, m)(v)) for v in values for m in ("log_prob", "cdf")]
        results = [r if r[0] != "value" else ("value",) for r in results]
        lenient, _ = make(module, name, i, validate_args=False)
        results += [outcome(lambda d=distribution: d.log_prob("text"))[:1], outcome(lambda d=lenient, v=values[1]: d.log_prob(v))[:3]]
        found.append(results)
    for k, (ours, theirs) in enumerate(zip(*found, strict=True)):
        assert ours[:1] == theirs[:1], (k, ours, theirs)
        if ours[0] == "ValueError":
            head = [r[1].split(" but found")[0].replace("dtype=torch.float64", "") for r in (ours, theirs) if len(r) > 1]
            assert len(set(head)) <= 1, (k, head)
