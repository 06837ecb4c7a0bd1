"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The chi-squared distribution of `df` degrees of freedom: the sum of as many squares of standard normal numbers."""

    arg_constraints = {"df": constraints.positive}
    _parameters = {"concentration": 0, "rate": 0}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Any:
        return self.concentration * 2
