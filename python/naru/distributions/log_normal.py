"""`LogNormal`: exp of a normal variable."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform

Tensor = _C.Tensor

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """exp(x) for normal x with mean `loc` and standard deviation `scale`.

    Args:
        loc: a tensor, or a number.
        scale: a tensor, or a number; above 0.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> LogNormal(0.0, 1.0).mode
    tensor(0.3679)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogNormal, _instance))

    loc = property(lambda self: self.base_dist.loc, doc="The normal distribution's mean.")
    scale = property(lambda self: self.base_dist.scale, doc="The normal distribution's standard deviation.")
    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
