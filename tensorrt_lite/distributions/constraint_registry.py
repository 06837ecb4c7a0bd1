"""From constraints to transforms: `biject_to` finds a bijection of unconstrained numbers onto a constraint's set, `transform_to` any map onto it.

>>> import tensorrt_lite as trt
>>> from tensorrt_lite.distributions import constraints, transform_to
>>> transform_to(constraints.greater_than(2))(trt.tensor(0.0)).item()
3.0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorrt_lite.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Factories of transforms by the type of the constraint: called with a constraint, it makes the transform onto its set."""

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Let `factory(constraint)` make the transform for constraints of a type (or of that of an instance). A decorator without `factory`.

        TypeError for what is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, constraints.Constraint) else constraint
        if not isinstance(kind, type) or not issubclass(kind, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform onto the constraint's set; NotImplementedError for a type without a factory."""
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _in_both(*kinds: Any) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    def register(factory: Callable[[Any], Any]) -> Callable[[Any], Any]:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return register


@_in_both(constraints.real)
def _onto_real(constraint: Any) -> Any:
    return transforms.identity_transform


@_in_both(constraints.positive, constraints.nonnegative)
def _onto_greater_than(constraint: Any) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


@_in_both(constraints.less_than)
def _onto_less_than(constraint: Any) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


@_in_both(constraints.interval, constraints.half_open_interval)
def _onto_interval(constraint: Any) -> Any:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low == 0 and high == 1:
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


def _onto_independent(registry: ConstraintRegistry) -> Callable[[Any], Any]:
    return lambda constraint: transforms.IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)


def _onto_cat(registry: ConstraintRegistry) -> Callable[[Any], Any]:
    return lambda constraint: transforms.CatTransform([registry(c) for c in constraint.cseq], constraint.dim, constraint.lengths)


def _onto_stack(registry: ConstraintRegistry) -> Callable[[Any], Any]:
    return lambda constraint: transforms.StackTransform([registry(c) for c in constraint.cseq], constraint.dim)


for _registry in (biject_to, transform_to):
    _registry.register(constraints.independent, _onto_independent(_registry))
    _registry.register(constraints.cat, _onto_cat(_registry))
    _registry.register(constraints.stack, _onto_stack(_registry))


@_in_both(constraints.corr_cholesky)
def _onto_corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


# What has a dimension less than its coordinates has a bijection of its own, or none.


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _transform_to_lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _transform_to_positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()
