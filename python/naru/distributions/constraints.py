"""`torch.distributions.constraints`: sets of values. `constraint.check(value)` returns, for each event, whether it is in the set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C, _missing, linalg
from ._constraint_bases import Constraint, MixtureSameFamilyConstraint, _Dependent, _DependentProperty, _IndependentConstraint, is_dependent

if TYPE_CHECKING:
    from collections.abc import Sequence

Tensor = _C.Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer",
    "positive_semidefinite", "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """A vector with one 1 among 0s."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & value.sum(-1).eq(1)


class _IntegerInterval(Constraint):
    """Integers from lower_bound to upper_bound.

    Args:
        lower_bound, upper_bound: numbers or tensors, both inclusive.

    >>> naru.distributions.constraints.integer_interval(0, 2).check(naru.tensor([2.0, 1.5, 3.0]))
    tensor([ True, False, False])
    """

    is_discrete = True

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"


class _IntegerLessThan(Constraint):
    """Integers up to upper_bound."""

    is_discrete = True

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}(upper_bound={self.upper_bound})"


class _IntegerGreaterThan(Constraint):
    """Integers from lower_bound up."""

    is_discrete = True

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}(lower_bound={self.lower_bound})"


class _Real(Constraint):
    """Everything but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(Constraint):
    """Numbers greater than lower_bound.

    Args:
        lower_bound: a number or a tensor.

    >>> naru.distributions.constraints.greater_than(1.0).check(naru.tensor([1.0, 2.0]))
    tensor([False,  True])
    """

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}(lower_bound={self.lower_bound})"


class _GreaterThanEq(_GreaterThan):
    """Numbers greater than or equal to lower_bound.

    Args:
        lower_bound: a number or a tensor.

    >>> naru.distributions.constraints.greater_than_eq(1.0).check(naru.tensor([1.0, 0.0]))
    tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(Constraint):
    """Numbers less than upper_bound.

    Args:
        upper_bound: a number or a tensor.

    >>> naru.distributions.constraints.less_than(1.0).check(naru.tensor([1.0, 0.0]))
    tensor([False,  True])
    """

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}(upper_bound={self.upper_bound})"


class _Interval(Constraint):
    """The closed interval from lower_bound to upper_bound.

    Args:
        lower_bound, upper_bound: numbers or tensors, both inclusive.

    >>> naru.distributions.constraints.interval(0.0, 1.0).check(naru.tensor([1.0, 2.0]))
    tensor([ True, False])
    """

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)

    def __repr__(self) -> str:
        return f"{type(self).__name__[1:]}(lower_bound={self.lower_bound}, upper_bound={self.upper_bound})"


class _HalfOpenInterval(_Interval):
    """The half-open interval from lower_bound to upper_bound.

    Args:
        lower_bound, upper_bound: numbers or tensors; the upper one is exclusive.

    >>> naru.distributions.constraints.half_open_interval(0.0, 1.0).check(naru.tensor([0.0, 1.0]))
    tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers with sum 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return _C.all(value >= 0, dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors of nonnegative integers with sum at most upper_bound.

    Args:
        upper_bound: a number or a tensor.

    >>> naru.distributions.constraints.multinomial(3).check(naru.tensor([[1.0, 2.0], [2.0, 2.0]]))
    tensor([ True, False])
    """

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: int) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(dim=-1) & (x.sum(dim=-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Square matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).reshape(value.shape[:-2] + (-1,)).min(-1)[0]


class _LowerCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        lower = (value.tril() == value).reshape(value.shape[:-2] + (-1,)).min(-1)[0]
        return lower & (value.diagonal(dim1=-2, dim2=-1) > 0).min(-1)[0]


class _CorrCholesky(Constraint):
    """Lower triangular matrices with a positive diagonal and rows of norm 1."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = _finfo(value.dtype) * value.size(-1) * 10
        length = linalg.norm(value.detach(), dim=-1)
        return lower_cholesky.check(value) & (length - 1).abs().le(tolerance).all(dim=-1)


def _finfo(dtype: Any) -> float:
    from .._functions.dtype_limits import finfo

    return finfo(dtype).eps


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return _C.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=_C.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices."""

    def check(self, value: Tensor) -> Tensor:
        found = super().check(value)
        return _C.isclose(value, value.mT, atol=1e-6).all(-2).all(-1) if found.all() else found


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        found = super().check(value)
        return linalg.eigvalsh(value).ge(0).all(-1) if found.all() else found


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices whose eigenvalues are positive."""

    def check(self, value: Tensor) -> Tensor:
        found = super().check(value)
        return linalg.cholesky_ex(value).info.eq(0) if found.all() else found


class _Cat(Constraint):
    """Applies each constraint to a piece of the value along a dimension.

    Args:
        cseq: constraints, one for each piece.
        dim: the dimension that is split.
        lengths: lengths of the pieces; 1 each if None.

    >>> from naru.distributions import constraints
    >>> constraints.cat([constraints.positive, constraints.real]).check(naru.tensor([1.0, -1.0]))
    tensor([True, True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        assert all(isinstance(c, Constraint) for c in cseq)
        self.cseq = list(cseq)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        assert len(self.lengths) == len(self.cseq)
        self.dim = dim
        super().__init__()

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq), doc="Whether it is countable.")
    event_dim = property(lambda self: max(c.event_dim for c in self.cseq), doc="How many dimensions a value has.")

    def check(self, value: Tensor) -> Tensor:
        assert -value.dim() <= self.dim < value.dim()
        parts, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            parts.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return _C.cat(parts, self.dim)


class _Stack(Constraint):
    """Applies each constraint to one slice along a dimension.

    Args:
        cseq: constraints, one for each slice.
        dim: the dimension of the slices.

    >>> from naru.distributions import constraints
    >>> constraints.stack([constraints.positive, constraints.real]).check(naru.tensor([-1.0, -1.0]))
    tensor([False,  True])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        assert all(isinstance(c, Constraint) for c in cseq)
        self.cseq = list(cseq)
        self.dim = dim
        super().__init__()

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq), doc="Whether it is countable.")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """The maximum over its parts; one more if the stacking dimension lies within the event."""
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        assert -value.dim() <= self.dim < value.dim()
        slices = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        return _C.stack([constraint.check(v) for v, constraint in zip(slices, self.cseq)], self.dim)


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

__getattr__ = _missing.module_getattr(__name__)
