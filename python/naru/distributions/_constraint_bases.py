"""Base classes of constraints, constraints that depend on other values, and constraints built from others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C

if TYPE_CHECKING:
    from collections.abc import Callable

Tensor = _C.Tensor


class Constraint:
    """A set of values. is_discrete: whether the set is countable; event_dim: number of dimensions of a value.

    >>> class Even(naru.distributions.constraints.Constraint):
    ...     is_discrete = True
    ...     def check(self, value):
    ...         return value % 2 == 0
    >>> Even().check(naru.tensor([1, 2, 4]))
    tensor([False,  True,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Tensor) -> Tensor:
        """For each event, as a bool tensor, whether it is in the set.

        Args:
            value: events.

        >>> naru.distributions.constraints.positive.check(naru.tensor([-1.0, 1.0]))
        tensor([False,  True])
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return type(self).__name__[1:] + "()"


class _Dependent(Constraint):
    """Placeholder for a support that depends on other values.

    Args:
        is_discrete, event_dim: those of the constraint, if known.

    >>> from naru.distributions import constraints
    >>> constraints.dependent(is_discrete=False, event_dim=1).event_dim
    1
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the set is countable, if known."""
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """Number of dimensions of a value, if known."""
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """Returns a dependent constraint with these properties."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Any) -> Any:
        """Raises ValueError: the constraint is not known."""
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """True if a constraint depends on other values.

    Args:
        constraint: a constraint.

    >>> from naru.distributions import constraints
    >>> constraints.is_dependent(constraints.dependent), constraints.is_dependent(constraints.real)
    (True, False)
    """
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property that returns a constraint when read from an object, and a dependent constraint when read from the class.

    Args:
        fn: the getter.
        is_discrete, event_dim: those of the constraint, if they do not depend on the object.

    >>> from naru.distributions import constraints
    >>> class Upto:
    ...     high = 3.0
    ...     @constraints.dependent_property(is_discrete=False, event_dim=0)
    ...     def support(self):
    ...         return constraints.interval(0.0, self.high)
    >>> Upto().support, constraints.is_dependent(Upto.support)
    (Interval(lower_bound=0.0, upper_bound=3.0), True)
    """

    def __init__(self, fn: Any = None, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        """Decorates a getter."""
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """Wraps a constraint so that its last batch dimensions count as event dimensions.

    Args:
        base_constraint: the other constraint.
        reinterpreted_batch_ndims: number of dimensions to reinterpret.

    >>> from naru.distributions import constraints
    >>> constraints.independent(constraints.positive, 1).check(naru.tensor([[1.0, 2.0], [1.0, -1.0]]))
    tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__()

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the base is countable."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The base's event dimensions plus the reinterpreted ones."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        """Whether all elements of an event are in the base's set. Raises ValueError for too few dimensions."""
        result = self.base_constraint.check(value)
        count = self.reinterpreted_batch_ndims
        if result.dim() < count:
            expected = self.base_constraint.event_dim + count
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return result.reshape(result.shape[: result.dim() - count] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: the support of its components. Each value is checked against all of them.

    Args:
        base_constraint: the components' support (AssertionError for anything but a Constraint).

    >>> from naru.distributions import constraints
    >>> constraints.MixtureSameFamilyConstraint(constraints.positive).check(naru.tensor([1.0, 2.0]))
    tensor([True, True])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint)}")
        self.base_constraint = base_constraint
        super().__init__()

    is_discrete = property(lambda self: self.base_constraint.is_discrete, doc="Whether it is countable.")
    event_dim = property(lambda self: self.base_constraint.event_dim, doc="How many dimensions a value has.")

    def check(self, value: Tensor) -> Tensor:
        """Whether a value is in the support of all components."""
        at = value.dim() - 1 - self.event_dim if value.dim() < self.event_dim else value.dim() - self.event_dim
        result = self.base_constraint.check(value.unsqueeze(at))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        count = value.dim() - self.event_dim
        return result.reshape(result.shape[:count] + (-1,)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"
