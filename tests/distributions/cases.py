"""Distributions to compare with PyTorch's: by the class's name the parameters of several instances. Lists become tensors, which are leaves that require a gradient
where they are floating; numbers stay numbers."""

from __future__ import annotations

from typing import Any

SPD = [[2.0, 0.5], [0.5, 1.0]]
SPD_BATCH = [SPD, [[1.0, -0.3], [-0.3, 3.0]], [[0.5, 0.1], [0.1, 0.4]]]
TRIL = [[1.2, 0.0], [0.4, 0.8]]
SHAPES = [[0.3, 2.0, 5.0], [1.0, 1.5, 0.7]]
WEIGHTS = [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2]]
LOGITS = [[-1.0, 0.5, 2.0], [0.0, 0.0, 0.3]]

CASES: dict[str, list[dict[str, Any]]] = {
    "Bernoulli": [{"probs": 0.3}, {"probs": [0.1, 0.5, 0.9]}, {"logits": [[-2.0], [0.7]]}, {"logits": 0.3}],
    "Beta": [{"concentration1": 0.5, "concentration0": 2.0}, {"concentration1": [0.4, 2.0, 7.0], "concentration0": [1.0, 0.6, 3.0]}, {"concentration1": [2.5], "concentration0": 2.0}],
    "Binomial": [{"total_count": 5, "probs": 0.3 * 1.0}, {"total_count": [3.0, 8.0], "probs": [0.2, 0.7]}, {"total_count": 40, "logits": [[-1.0, 0.4]]}],
    "Categorical": [{"probs": WEIGHTS}, {"logits": LOGITS}, {"probs": [2.0, 3.0]}],
    "Cauchy": [{"loc": 0.0, "scale": 1.0}, {"loc": [0.5, -2.0], "scale": [0.3, 4.0]}],
    "Chi2": [{"df": 3.0}, {"df": [0.7, 4.0, 9.0]}],
    "ContinuousBernoulli": [{"probs": 0.2}, {"probs": [0.1, 0.4995, 0.5, 0.93]}, {"logits": [-1.5, 0.001, 2.0]}],
    "Dirichlet": [{"concentration": [0.5, 1.5, 3.0]}, {"concentration": SHAPES}],
    "Exponential": [{"rate": 2.0}, {"rate": [0.2, 3.0]}],
    "FisherSnedecor": [{"df1": 3.0, "df2": 7.0}, {"df1": [1.5, 4.0, 6.0], "df2": [2.0, 5.0, 3.0]}],
    "Gamma": [{"concentration": 1.5, "rate": 2.0}, {"concentration": [0.3, 1.0, 7.0], "rate": [2.0, 0.5, 1.0]}, {"concentration": [[0.7], [3.0]], "rate": 1.0}],
    "GeneralizedPareto": [{"loc": 0.5, "scale": 1.5, "concentration": 0.2}, {"loc": [0.0, 1.0, -1.0, 0.0], "scale": [1.0, 2.0, 0.5, 1.0], "concentration": [0.3, -0.4, 0.0, 1.5]}],
    "Geometric": [{"probs": 0.3}, {"probs": [0.2, 0.8, 1.0]}, {"logits": [-0.5, 1.0]}],
    "Gumbel": [{"loc": 0.5, "scale": 2.0}, {"loc": [0.0, 1.0], "scale": [1.0, 0.3]}],
    "HalfCauchy": [{"scale": 1.5}, {"scale": [0.3, 2.0]}],
    "HalfNormal": [{"scale": 1.5}, {"scale": [0.3, 2.0]}],
    "InverseGamma": [{"concentration": 3.0, "rate": 2.0}, {"concentration": [0.5, 1.5, 4.0], "rate": [1.0, 0.5, 2.0]}],
    "Kumaraswamy": [{"concentration1": 2.0, "concentration0": 3.0}, {"concentration1": [0.5, 2.0], "concentration0": [1.5, 4.0]}],
    "LKJCholesky": [{"dim": 3, "concentration": 0.5}, {"dim": 2, "concentration": [1.0, 3.0]}, {"dim": 4, "concentration": 2.0}],
    "Laplace": [{"loc": 0.0, "scale": 1.0}, {"loc": [0.5, -2.0], "scale": [0.3, 4.0]}],
    "LogNormal": [{"loc": 0.0, "scale": 1.0}, {"loc": [0.5, -1.0], "scale": [0.3, 0.8]}],
    "LogisticNormal": [{"loc": [0.5, -1.0], "scale": [0.3, 0.8]}, {"loc": [[0.5, -1.0, 0.0]], "scale": 1.0}],
    "LowRankMultivariateNormal": [
        {"loc": [0.5, -1.0, 2.0], "cov_factor": [[1.0], [0.5], [-0.3]], "cov_diag": [0.5, 1.0, 2.0]},
        {"loc": [[0.5, -1.0], [1.0, 0.0]], "cov_factor": [[1.0, 0.2], [0.5, -0.7]], "cov_diag": [0.5, 1.0]},
    ],
    "Multinomial": [{"total_count": 7, "probs": WEIGHTS}, {"total_count": 4, "logits": LOGITS[0]}],
    "MultivariateNormal": [
        {"loc": [0.5, -1.0], "covariance_matrix": SPD}, {"loc": [[0.5, -1.0]], "precision_matrix": SPD_BATCH}, {"loc": [[0.5, -1.0], [0.0, 1.0]], "scale_tril": TRIL},
        {"loc": [0.0, 0.0], "covariance_matrix": SPD_BATCH},
    ],
    "NegativeBinomial": [{"total_count": 3, "probs": [0.4]}, {"total_count": [2.0, 5.5], "probs": [0.2, 0.7]}, {"total_count": 4, "logits": [-1.0, 0.4]}],
    "Normal": [{"loc": 0.0, "scale": 1.0}, {"loc": [0.5, -2.0], "scale": [0.3, 4.0]}, {"loc": [[0.5], [1.0]], "scale": 2.0}],
    "OneHotCategorical": [{"probs": WEIGHTS}, {"logits": LOGITS}],
    "OneHotCategoricalStraightThrough": [{"probs": WEIGHTS}, {"logits": LOGITS}],
    "Pareto": [{"scale": 1.0, "alpha": 3.0}, {"scale": [0.5, 2.0], "alpha": [1.5, 4.0]}],
    "Poisson": [{"rate": 3.0}, {"rate": [0.2, 4.0, 25.0]}],
    "RelaxedBernoulli": [{"temperature": [0.7], "probs": [0.2, 0.6]}, {"temperature": [1.5], "logits": [0.4, -1.0]}],
    "RelaxedOneHotCategorical": [{"temperature": [0.7], "probs": WEIGHTS}, {"temperature": [1.5], "logits": LOGITS}],
    "StudentT": [{"df": 3.0}, {"df": [0.8, 1.5, 6.0], "loc": [0.0, 1.0, 2.0], "scale": [1.0, 2.0, 0.5]}],
    "Uniform": [{"low": 0.0, "high": 2.0}, {"low": [-1.0, 0.5], "high": [1.0, 3.0]}],
    "VonMises": [{"loc": [0.5], "concentration": [2.0]}, {"loc": [0.0, 1.0, -2.0], "concentration": [1e-6, 0.5, 30.0]}],
    "Weibull": [{"scale": 1.5, "concentration": 2.0}, {"scale": [0.5, 2.0], "concentration": [0.8, 3.0]}],
    "Wishart": [{"df": 4.0, "covariance_matrix": SPD}, {"df": [3.0, 5.0, 4.5], "precision_matrix": SPD_BATCH}, {"df": 3.5, "scale_tril": TRIL}],
}  # fmt: skip


def tensors(module: Any, parameters: dict[str, Any], dtype: str) -> dict[str, Any]:
    """The parameters for one library."""
    made = {}
    for name, value in parameters.items():
        if isinstance(value, list):
            value = module.tensor(value, dtype=getattr(module, dtype), requires_grad=True)
        elif name in ("probs", "logits", "concentration") and isinstance(value, float):
            value = module.tensor(value, dtype=getattr(module, dtype), requires_grad=True)
        made[name] = value
    return made
