"""`LogitRelaxedBernoulli`, `RelaxedBernoulli`: continuous, differentiable relaxations of the Bernoulli distribution."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from ._binary import OfProbability
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

Tensor = _C.Tensor

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(OfProbability):
    """The log odds of a `RelaxedBernoulli`.

    Args:
        temperature: a tensor; the distribution approaches a Bernoulli as it goes to 0.
        probs: probabilities of 1. logits: log odds instead.
        validate_args: whether arguments and values are checked (ValueError).

    >>> found = naru.distributions.relaxed_bernoulli.LogitRelaxedBernoulli(naru.tensor(1.0), logits=naru.tensor(0.0))
    >>> found.log_prob(naru.tensor(0.0)).exp()
    tensor(0.2500)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self.temperature = temperature
        super().__init__(self._take(probs, logits), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(LogitRelaxedBernoulli, batch_shape, _instance, "probs", "logits")
        new.temperature = self.temperature
        return new

    def rsample(self, sample_shape: Any = _C.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(_C.rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """Numbers between 0 and 1 with gradients. The distribution approaches a Bernoulli as the `temperature` goes to 0.

    Args:
        probs: probabilities of 1, a tensor or a number.
        logits: log odds, instead of probs.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> relaxed = naru.distributions.RelaxedBernoulli(naru.tensor(1.0), naru.tensor(0.5))
    >>> relaxed.log_prob(naru.tensor(0.3)).exp(), relaxed.sample() < 1
    (tensor(1.), tensor(True))
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedBernoulli, _instance))

    temperature = property(lambda self: self.base_dist.temperature, doc="How near it comes to the discrete one.")
    logits = property(lambda self: self.base_dist.logits, doc="The log odds.")
    probs = property(lambda self: self.base_dist.probs, doc="The probabilities.")
