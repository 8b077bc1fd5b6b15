"""`torch.distributions.constraint_registry`: transforms from the real numbers to constrained sets.

`biject_to(constraint)` returns a bijective transform, `transform_to(constraint)` one that is well-behaved in optimization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import constraints, transforms

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Maps constraints to transforms by the constraint's class.

    >>> from naru.distributions import constraints, transforms
    >>> from naru.distributions.constraint_registry import ConstraintRegistry
    >>> registry = ConstraintRegistry()
    >>> _ = registry.register(constraints.positive, lambda constraint: transforms.ExpTransform())
    >>> registry(constraints.positive)
    ExpTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Any = None) -> Any:
        """Registers a factory for a class of constraints (or the class of a constraint); without a factory, returns a decorator. Raises TypeError
        for anything else."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """Returns the transform for a constraint. Raises NotImplementedError if none is registered."""
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _for_both(*kinds: Any) -> Callable[[Any], Any]:
    def decorate(factory: Any) -> Any:
        for kind in kinds:
            biject_to.register(kind, factory)
            transform_to.register(kind, factory)
        return factory

    return decorate


@_for_both(constraints.real)
def _real(constraint: Any) -> Any:
    return transforms.identity_transform


def _independent(registry: ConstraintRegistry) -> Callable[[Any], Any]:
    return lambda constraint: transforms.IndependentTransform(registry(constraint.base_constraint), constraint.reinterpreted_batch_ndims)


biject_to.register(constraints.independent, _independent(biject_to))
transform_to.register(constraints.independent, _independent(transform_to))


@_for_both(constraints.positive, constraints.nonnegative)
def _positive(constraint: Any) -> Any:
    return transforms.ExpTransform()


@_for_both(constraints.greater_than, constraints.greater_than_eq)
def _greater(constraint: Any) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)])


@_for_both(constraints.less_than)
def _less(constraint: Any) -> Any:
    return transforms.ComposeTransform([transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)])


@_for_both(constraints.interval, constraints.half_open_interval)
def _interval(constraint: Any) -> Any:
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if isinstance(lower, (int, float)) and isinstance(upper, (int, float)) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(loc=lower, scale=upper - lower)])


@biject_to.register(constraints.simplex)
def _bijection_to_simplex(constraint: Any) -> Any:
    return transforms.StickBreakingTransform()


@transform_to.register(constraints.simplex)
def _transform_to_simplex(constraint: Any) -> Any:
    return transforms.SoftmaxTransform()


@transform_to.register(constraints.lower_cholesky)
def _lower_cholesky(constraint: Any) -> Any:
    return transforms.LowerCholeskyTransform()


@transform_to.register(constraints.positive_definite)
@transform_to.register(constraints.positive_semidefinite)
def _positive_definite(constraint: Any) -> Any:
    return transforms.PositiveDefiniteTransform()


@_for_both(constraints.corr_cholesky)
def _corr_cholesky(constraint: Any) -> Any:
    return transforms.CorrCholeskyTransform()


def _parts(registry: ConstraintRegistry, kind: type, *more: str) -> Callable[[Any], Any]:
    return lambda c: kind([registry(part) for part in c.cseq], c.dim, *(getattr(c, name) for name in more))


for _registry in (biject_to, transform_to):
    _registry.register(constraints.cat, _parts(_registry, transforms.CatTransform, "lengths"))
    _registry.register(constraints.stack, _parts(_registry, transforms.StackTransform))
