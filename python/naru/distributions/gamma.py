"""`Gamma`: the gamma distribution."""

from __future__ import annotations

from typing import Any

from .. import _C, special
from .._functions.dtype_limits import finfo
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

Tensor = _C.Tensor

__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    return _C._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """The gamma distribution with shape `concentration` and inverse scale `rate`.

    Args:
        concentration, rate: tensors that broadcast, or numbers; above 0.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> Gamma(2.0, 4.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Gamma, batch_shape, _instance, "concentration", "rate")

    def rsample(self, sample_shape: Any = _C.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=finfo(value.dtype).tiny)  # 0 is outside of the density's support
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = _C.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        a, b = self.concentration, self.rate
        return _C.xlogy(a, b) + _C.xlogy(a - 1, value) - b * value - _C.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - _C.log(self.rate) + _C.lgamma(a) + (1.0 - a) * _C.digamma(a)

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        return _C.lgamma(x + 1) + (x + 1) * _C.log(-y.reciprocal())

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return special.gammainc(self.concentration, self.rate * value)
