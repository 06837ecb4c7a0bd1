"""What distributions share of which either `probs` or `logits` is given."""

from __future__ import annotations

from typing import Any

from tensorrt_lite.distributions.distribution import Distribution
from tensorrt_lite.distributions.utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["ProbsOrLogits", "choose_given"]


def choose_given(probs: Any, logits: Any) -> tuple[str, Any]:
    """The name and the value of the one that is given. ValueError unless one of both is."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return ("logits", logits) if probs is None else ("probs", probs)


class ProbsOrLogits(Distribution):
    """The one that was given is `_param` as well; the other is computed when it is first read.

    logits are log-odds where `_is_binary`, else unnormalised log-probabilities along the last dimension.
    """

    _param: Any
    _is_binary = True

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        new._param = new.__dict__["probs" if "probs" in self.__dict__ else "logits"]

    def _new(self, *args: Any, **kwargs: Any) -> Any:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self) -> Any:
        return probs_to_logits(self.probs, is_binary=self._is_binary)

    @lazy_property
    def probs(self) -> Any:
        return logits_to_probs(self.logits, is_binary=self._is_binary)

    @property
    def param_shape(self) -> Any:
        return self._param.size()
