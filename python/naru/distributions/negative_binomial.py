"""`NegativeBinomial`: the number of successes before a given number of failures."""

from __future__ import annotations

from typing import Any

from .. import _C
from ..nn import functional as F
from . import constraints
from ._binary import OfProbability
from .gamma import Gamma
from .utils import lazy_property

Tensor = _C.Tensor

__all__ = ["NegativeBinomial"]


class NegativeBinomial(OfProbability):
    """The number of successes, with success probability `probs` (or log odds `logits`), before `total_count` failures.

    Args:
        logits: log odds, instead of probs.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> import naru
    >>> NegativeBinomial(4.0, naru.tensor(0.5)).mean
    tensor(4.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._take(probs, logits, total_count), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(NegativeBinomial, batch_shape, _instance, "total_count", "probs", "logits")

    mean = property(lambda self: self.total_count * _C.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / _C.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(concentration=self.total_count, rate=_C.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        with _C.no_grad():
            return _C.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        unnormalized = self.total_count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        normalization = -_C.lgamma(self.total_count + value) + _C.lgamma(1.0 + value) + _C.lgamma(self.total_count)
        normalization = normalization.masked_fill(self.total_count + value == 0.0, 0.0)
        return unnormalized - normalization
