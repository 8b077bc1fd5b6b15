"""`Binomial`: the number of successes in independent trials."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from ._binary import OfProbability

Tensor = _C.Tensor

__all__ = ["Binomial"]


class Binomial(OfProbability):
    """The number of successes in `total_count` trials with success probability `probs` (or log odds `logits`).

    Args:
        total_count: nonnegative integers; a tensor or a number.
        probs: a tensor, or a number; in [0, 1].
        logits: log odds, instead of probs.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> import naru
    >>> Binomial(4, naru.tensor(0.5)).mean
    tensor(2.)
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real}
    has_enumerate_support = True

    def __init__(self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._take(probs, logits, total_count), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return self._expanded(Binomial, batch_shape, _instance, "total_count", "probs", "logits")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = _C.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with _C.no_grad():
            return _C.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        choices = _C.lgamma(self.total_count + 1) - _C.lgamma(value + 1) - _C.lgamma(self.total_count - value + 1)
        # n * log(1 + exp(logits)), without overflow for large |logits|.
        # At 0, max(logits, 0) has two subgradients; the gradient is their mean.
        positive = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        normalizer = self.total_count * positive + self.total_count * _C.log1p(_C.exp(-_C.abs(self.logits)))
        return value * self.logits + choices - normalizer

    def entropy(self) -> Tensor:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(_C.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = _C.arange(1 + count, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values
