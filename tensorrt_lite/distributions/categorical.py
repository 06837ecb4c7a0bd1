"""The categorical distribution."""

from __future__ import annotations

from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite._functions.dtype_limits import finfo
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions._probs_or_logits import ProbsOrLogits, choose_given

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits):
    """Indices 0 ... n - 1 with the probabilities `probs` (*, n), which are divided by their sum, or of the unnormalised log-probabilities `logits`.

    ValueError unless one of both is given, with a dimension.

    >>> import tensorrt_lite as trt
    >>> trt.distributions.Categorical(trt.tensor([1.0, 3.0])).probs.tolist()
    [0.25, 0.75]
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _parameters = {"probs": 1, "logits": 1}
    _is_binary = False

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        name, given = choose_given(probs, logits)
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        self._param = given - given.logsumexp(dim=-1, keepdim=True) if probs is None else given / given.sum(-1, keepdim=True)
        setattr(self, name, self._param)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        super()._expand_parts(new, batch_shape)
        new._num_events = self._num_events

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.integer_interval(0, self._num_events - 1)

    def _none(self) -> Any:
        return trt.full(self._extended_shape(), trt.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self) -> Any:
        return self._none()

    @property
    def mode(self) -> Any:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Any:
        return self._none()

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        count = trt.Size(sample_shape).numel()
        rows = self.probs.reshape(-1, self._num_events)
        return trt.multinomial(rows.detach(), count, True).T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Any) -> Any:
        if self._validate_args:
            self._validate_sample(value)
        value, logits = trt.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Any:
        logits = trt.clamp(self.logits, min=finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Any:
        values = trt.arange(self._num_events, dtype=trt.long, device=self._param.device).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
