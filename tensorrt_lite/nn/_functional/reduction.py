"""The `reduction` argument of losses: its integer form and the two deprecated flags that preceded it."""

from __future__ import annotations

import warnings
from typing import Any


class _ReductionTable(dict):
    def __missing__(self, reduction: Any) -> int:
        raise ValueError(f"{reduction} is not a valid value for reduction")


# "elementwise_mean" is the name "mean" had before PyTorch 1.0.
ENUM = _ReductionTable(none=0, mean=1, elementwise_mean=1, sum=2)


def legacy_string(size_average: bool | None, reduce: bool | None) -> str:
    """The reduction that size_average and reduce stood for, with a warning."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = ("mean" if size_average else "sum") if reduce else "none"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=3
    )
    return reduction


def reduced(loss: Any, reduction: str) -> Any:
    """The mean, the sum or the elements of `loss`."""
    mode = ENUM[reduction]
    return loss.mean() if mode == 1 else loss.sum() if mode == 2 else loss
