"""`LogisticNormal`: normal vectors mapped to the simplex."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform

Tensor = _C.Tensor

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Vectors on the simplex, made from normal vectors by stick breaking.

    Args:
        loc: means of the normal vectors.
        scale: their standard deviations.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> naru.distributions.LogisticNormal(naru.zeros(2), naru.ones(2)).sample().sum() - 1 < 1e-5
    tensor(True)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(LogisticNormal, _instance))

    loc = property(lambda self: self.base_dist.base_dist.loc, doc="The normal distribution's mean.")
    scale = property(lambda self: self.base_dist.base_dist.scale, doc="The normal distribution's standard deviation.")
