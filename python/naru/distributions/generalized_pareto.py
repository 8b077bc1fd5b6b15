"""`GeneralizedPareto`: the generalized Pareto distribution."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

Tensor = _C.Tensor

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution with location `loc`, `scale` and shape `concentration`.

    Args:
        loc: a tensor, or a number.
        scale: a tensor, or a number; above 0.
        concentration: a tensor, or a number.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> import naru
    >>> GeneralizedPareto(0.0, 1.0, 0.0).cdf(naru.tensor(0.0))
    tensor(0.)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(GeneralizedPareto, batch_shape, _instance, "loc", "scale", "concentration")

    def _is_exponential(self) -> Tensor:
        return _C.isclose(self.concentration, _C.tensor(0.0, dtype=self.concentration.dtype, device=self.concentration.device))

    def _shape(self) -> Tensor:
        return _C.where(self._is_exponential(), _C.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Any = _C.Size()) -> Tensor:
        return self.icdf(_C.rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        z, k = self._z(value), self._shape()
        general = -_C.log(self.scale) - (1 + 1 / k) * _C.log1p(k * z)
        return _C.where(self._is_exponential(), -z - _C.log(self.scale), general)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of exceeding `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z, k = self._z(value), self._shape()
        return _C.where(self._is_exponential(), -z, -_C.log1p(k * z) / k)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return _C.log1p(-_C.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return _C.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        k = self._shape()
        general = self.loc + self.scale * _C.expm1(-k * _C.log1p(-value)) / k
        return _C.where(self._is_exponential(), self.loc - self.scale * _C.log1p(-value), general)

    @property
    def mean(self) -> Tensor:
        valid = self.concentration < 1
        safe = _C.where(valid, self.concentration, _C.full_like(self.concentration, 0.5))
        return _C.where(valid, self.loc + self.scale / (1 - safe), _C.full_like(self.loc, float("inf")))

    @property
    def variance(self) -> Tensor:
        valid = self.concentration < 0.5
        safe = _C.where(valid, self.concentration, _C.full_like(self.concentration, 0.25))
        return _C.where(valid, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), _C.full_like(self.loc, float("inf")))

    def entropy(self) -> Tensor:
        return (_C.log(self.scale) + self.concentration + 1).expand(self._batch_shape)

    mode = property(lambda self: self.loc)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        upper = _C.where(self.concentration < 0, self.loc - self.scale / self.concentration, _C.full_like(self.loc, float("inf")))
        return constraints.interval(self.loc, upper)
