"""Constraints: the sets that parameters and values of distributions lie in, with a test of membership.

`check(value)` gives a bool tensor of value's shape without the last `event_dim` dimensions, which are tested together; `is_discrete` tells sets of
integers. `constraint_registry` finds transforms onto a constraint's set.

>>> import tensorrt_lite as trt
>>> from tensorrt_lite.distributions import constraints
>>> constraints.positive.check(trt.tensor([-1.0, 2.0])).tolist()
[False, True]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tensorrt_lite import _root as trt
from tensorrt_lite import linalg
from tensorrt_lite._functions.dtype_limits import finfo

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than", "greater_than_eq",
    "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial",
    "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class Constraint:
    """A set of values; `event_dim` dimensions of a tensor make one of them."""

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Whether each value lies in the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}()"


class _Dependent(Constraint):
    """A set that depends on the parameters of its distribution: what is not told of it raises when it is asked for."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self._told(self._is_discrete, "is_discrete")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self._told(self._event_dim, "event_dim")

    @staticmethod
    def _told(value: Any, name: str) -> Any:
        if value is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """The same with what is told; what is not stays."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether the set depends on parameters, as a class's `support` may."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of instances whose class attribute is a dependent constraint. As a decorator, bare or with what is told of the set."""

    def __init__(self, fn: Callable[..., Any] | None = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        property.__init__(self, fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _all_rightmost(result: Any, kept: int) -> Any:
    return result.reshape((*result.shape[:kept], -1)).all(-1)


class _IndependentConstraint(Constraint):
    """`base_constraint` with its last `reinterpreted_batch_ndims` batch dimensions tested together."""

    def __init__(self, base_constraint: Any, reinterpreted_batch_ndims: int) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"Expected base_constraint to be a Constraint, got {type(base_constraint)}")
        if not isinstance(reinterpreted_batch_ndims, int):
            raise AssertionError(f"Expected reinterpreted_batch_ndims to be an int, got {type(reinterpreted_batch_ndims)}")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"Expected reinterpreted_batch_ndims >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Any) -> Any:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.base_constraint.event_dim + self.reinterpreted_batch_ndims} but got {value.dim()}")
        return _all_rightmost(result, result.dim() - self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """What all components of a mixture support; `base_constraint` has a batch dimension of components that values lack."""

    def __init__(self, base_constraint: Any) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"Expected base_constraint to be a Constraint, got {type(base_constraint)}")
        self.base_constraint = base_constraint
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Any) -> Any:
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        kept = value.dim() - self.event_dim
        return _all_rightmost(self.base_constraint.check(value.unsqueeze(-1 - self.event_dim)), kept)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors of zeros and one 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _Bounded(Constraint):
    """Sets with bounds, which are numbers or tensors."""

    lower_bound: Any
    upper_bound: Any
    _bounds: tuple[str, ...] = ()

    def __init__(self, *bounds: Any) -> None:
        for name, bound in zip(self._bounds, bounds, strict=True):
            setattr(self, name, bound)
        super().__init__()

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({', '.join(f'{name}={getattr(self, name)}' for name in self._bounds)})"


class _LowerBounded(_Bounded):
    _bounds = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound)


class _UpperBounded(_Bounded):
    _bounds = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound)


class _BothBounded(_Bounded):
    _bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound, upper_bound)


class _IntegerInterval(_BothBounded):
    """Integers from lower_bound to upper_bound, both included."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_UpperBounded):
    """Integers up to upper_bound."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_LowerBounded):
    """Integers from lower_bound."""

    is_discrete = True

    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """Numbers, infinite ones too: all but NaN."""

    def check(self, value: Any) -> Any:
        return value == value


class _GreaterThan(_LowerBounded):
    """Numbers above lower_bound."""

    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_LowerBounded):
    """Numbers from lower_bound."""

    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _LessThan(_UpperBounded):
    """Numbers below upper_bound."""

    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_BothBounded):
    """Numbers from lower_bound to upper_bound, both included."""

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_BothBounded):
    """Numbers from lower_bound up to, but not, upper_bound."""

    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of numbers from 0 that sum to 1 (within 1e-6)."""

    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_UpperBounded):
    """Vectors of counts that sum to upper_bound, or to less."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    __repr__ = Constraint.__repr__


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return _all_rightmost(value.tril() == value, value.dim() - 2)


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Cholesky factors of correlation matrices: rows of length 1."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        tolerance = finfo(value.dtype).eps * value.size(-1) * 10
        lengths = linalg.norm(value.detach(), dim=-1)
        return ((lengths - 1.0).abs() <= tolerance).all(-1) & lower_cholesky.check(value)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Any) -> Any:
        return trt.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=trt.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices (within 1e-6)."""

    def check(self, value: Any) -> Any:
        fits = super().check(value)
        if not fits.all():
            return fits
        return trt.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value: Any) -> Any:
        fits = super().check(value)
        return linalg.eigvalsh(value).ge(0).all(-1) if fits.all() else fits


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value: Any) -> Any:
        fits = super().check(value)
        return linalg.cholesky_ex(value).info.eq(0) if fits.all() else fits


def _check_constraints(cseq: Sequence[Any]) -> list[Any]:
    if not all(isinstance(c, Constraint) for c in cseq):
        raise AssertionError("All elements of cseq must be Constraint instances")
    return list(cseq)


class _Cat(Constraint):
    """Constraints for slices of the lengths `lengths` along `dim`, as `cat` joins them."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        self.cseq = _check_constraints(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"Expected lengths to have length {len(self.cseq)}, got {len(self.lengths)}")
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Any) -> Any:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")
        results, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths, strict=True):
            results.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return trt.cat(results, self.dim)


class _Stack(Constraint):
    """Constraints for the slices along `dim`, as `stack` joins them."""

    def __init__(self, cseq: Sequence[Any], dim: int = 0) -> None:
        self.cseq = _check_constraints(cseq)
        self.dim = dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Any) -> Any:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")
        slices = (value.select(self.dim, i) for i in range(value.size(self.dim)))
        return trt.stack([constraint.check(part) for part, constraint in zip(slices, self.cseq, strict=True)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
