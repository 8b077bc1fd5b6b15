"""`InverseGamma`: the inverse gamma distribution."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

Tensor = _C.Tensor

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x for x from the gamma distribution.

    Args:
        concentration, rate: parameters of the gamma distribution.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> InverseGamma(3.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(InverseGamma, _instance))

    concentration = property(lambda self: self.base_dist.concentration, doc="The gamma distribution's shape.")
    rate = property(lambda self: self.base_dist.rate, doc="The gamma distribution's inverse scale.")

    @property
    def mean(self) -> Tensor:
        found = self.rate / (self.concentration - 1)
        return _C.where(self.concentration > 1, found, float("inf"))

    mode = property(lambda self: self.rate / (self.concentration + 1))

    @property
    def variance(self) -> Tensor:
        found = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return _C.where(self.concentration > 2, found, float("inf"))

    def entropy(self) -> Tensor:
        a = self.concentration
        return a + self.rate.log() + a.lgamma() - (1 + a) * a.digamma()
