"""The base of all distributions: shapes, validation, expansion; what a distribution does not have raises NotImplementedError."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar

from tensorrt_lite import _root as trt
from tensorrt_lite.autograd.grad_mode import no_grad
from tensorrt_lite.distributions import constraints
from tensorrt_lite.distributions.utils import lazy_property

__all__ = ["Distribution"]


def _lacking(hint: str) -> NotImplementedError:
    """PyTorch's error, which has no text, with a note."""
    error = NotImplementedError()
    error.add_note(hint)
    return error


class Distribution:
    """A batch of distributions: `batch_shape` of them, each over values of `event_shape`.

    Samples have the shape ``sample_shape + batch_shape + event_shape``, `log_prob` gives one number for each of ``sample_shape + batch_shape``.
    validate_args: whether parameters are checked against `arg_constraints` and values against `support` (ValueError); `set_default_validate_args`
    sets it for all.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # The parameters that `expand` expands, by the number of their event dimensions. A class with a constructor of its own declares them.
    _parameters: ClassVar[dict[str, int]]

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments unless they are told: True, but under ``python -O``."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = trt.Size(), event_shape: Any = trt.Size(), validate_args: bool | None = None) -> None:  # noqa: B008 - immutable
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            declared = self.arg_constraints
        except NotImplementedError:
            declared = {}
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=4,
            )
        for name, constraint in declared.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # the other one of two parametrisations
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} to satisfy the "
                    f"constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution with its batch dimensions expanded to `batch_shape`; no memory is taken, and the constructor is not called.

        _instance: the instance to fill, for subclasses that override this method.
        """
        owner: Any = next((cls for cls in type(self).__mro__ if "_parameters" in vars(cls)), None)
        if owner is None:
            raise NotImplementedError
        new = self._get_checked_instance(owner, _instance)
        batch_shape = trt.Size(batch_shape)
        for name, event_dims in owner._parameters.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                new.__dict__[name] = value.expand(batch_shape + value.shape[value.dim() - event_dims :])
        self._expand_parts(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_parts(self, new: Any, batch_shape: Any) -> None:
        """Give a new instance what it needs beside its parameters."""

    @property
    def batch_shape(self) -> Any:
        """The shape over which parameters are batched."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The shape of a single value."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, Any]:
        """By the parameter's name the constraint that it satisfies."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that values satisfy."""
        raise _lacking(f"{type(self).__name__} has no support")

    @property
    def mean(self) -> Any:
        raise _lacking(f"{type(self).__name__} has no mean")

    @property
    def mode(self) -> Any:
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Any:
        raise _lacking(f"{type(self).__name__} has no variance")

    @property
    def stddev(self) -> Any:
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        """Values drawn without a gradient: (*sample_shape, *batch_shape, *event_shape)."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        """Values drawn as differentiable functions of the parameters (where `has_rsample`)."""
        raise _lacking(
            f"{type(self).__name__} has no differentiable samples (has_rsample is False): sample() draws without a gradient, log_prob() of what it drew has one"
        )

    def sample_n(self, n: int) -> Any:
        """`sample((n,))`, deprecated."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(trt.Size((n,)))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or of the probability, at value. ValueError outside of the support where arguments are checked."""
        raise _lacking(f"{type(self).__name__} has no log_prob()")

    def cdf(self, value: Any) -> Any:
        """The probability of values up to `value`."""
        raise _lacking(f"{type(self).__name__} has no cdf()")

    def icdf(self, value: Any) -> Any:
        """The value up to which the probability is `value`: the inverse of `cdf`."""
        raise _lacking(f"{type(self).__name__} has no icdf()")

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values of a discrete distribution along a new first dimension; the batch dimensions behind it have size 1 unless `expand`."""
        raise _lacking(f"{type(self).__name__} has no enumerate_support()")

    def entropy(self) -> Any:
        """The entropy in nats: (*batch_shape)."""
        raise _lacking(f"{type(self).__name__} has no entropy()")

    def perplexity(self) -> Any:
        """The exponential of the entropy."""
        return trt.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = trt.Size()) -> Any:  # noqa: B008 - immutable
        return trt.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Any) -> None:
        """ValueError for what `log_prob` and its kin cannot take: no tensor, a shape that does not fit, values outside of the support."""
        if not isinstance(value, trt.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.dim() - len(self._event_shape)
        if value.size()[start:] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {value.size()} vs {self._event_shape}.")
        actual, expected = value.size(), self._batch_shape + self._event_shape
        for i, j in zip(reversed(actual), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution with "
                "`validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if support is None:
            raise AssertionError("support is None")
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) of the "
                f"distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """The instance that `expand` of class `cls` fills; NotImplementedError for a subclass whose constructor makes more than `cls` knows of."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        shown = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        return f"{type(self).__name__}({', '.join(f'{name}: {v if v.numel() == 1 else v.size()}' for name, v in shown.items())})"
