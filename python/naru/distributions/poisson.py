"""`Poisson`: counts of events."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

Tensor = _C.Tensor

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """The number of events, when `rate` events occur on average.

    Args:
        rate: a tensor, or a number; 0 or more.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> Poisson(3.0).variance
    tensor(3.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Poisson, batch_shape, _instance, "rate")

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        with _C.no_grad():
            return _C.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (_C.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return _C.exp(x)
