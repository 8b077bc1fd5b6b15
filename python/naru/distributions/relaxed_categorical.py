"""`ExpRelaxedCategorical`, `RelaxedOneHotCategorical`: continuous, differentiable relaxations of OneHotCategorical."""

from __future__ import annotations

from typing import Any

from .. import _C
from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

Tensor = _C.Tensor

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of a `RelaxedOneHotCategorical`.

    Args:
        temperature: a tensor; the distribution approaches a OneHotCategorical as it goes to 0.
        probs: weights (..., K). logits: unnormalized log probabilities instead.
        validate_args: whether arguments and values are checked (ValueError).

    >>> found = naru.distributions.relaxed_categorical.ExpRelaxedCategorical(naru.tensor(1.0), naru.tensor([1.0, 1.0]))
    >>> found.sample().logsumexp(-1).abs() < 1e-5
    tensor(True)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._expanded(ExpRelaxedCategorical, batch_shape, _instance)
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(_C.Size(batch_shape))
        return new

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    param_shape = property(lambda self: self._categorical.param_shape, doc="The shape of the parameter.")
    logits = property(lambda self: self._categorical.logits, doc="Logarithms of the probabilities.")
    probs = property(lambda self: self._categorical.probs, doc="The probabilities.")

    def rsample(self, sample_shape: Any = _C.Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(_C.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-uniforms.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        scale = _C.full_like(_C.as_tensor(self.temperature).to(logits), float(k)).lgamma() - _C.as_tensor(self.temperature).log().mul(-(k - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors on the simplex with gradients. The distribution approaches a OneHotCategorical as the `temperature` goes to 0.

    Args:
        probs: weights (..., K); each row is normalized to sum 1.
        logits: unnormalized log probabilities, instead of probs.
        validate_args: whether parameters and values are checked (ValueError); by default they are, unless Python runs with -O.

    >>> naru.distributions.RelaxedOneHotCategorical(naru.tensor(2.0), naru.ones(3)).sample().sum() - 1 < 1e-5
    tensor(True)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        return super().expand(batch_shape, _instance=self._get_checked_instance(RelaxedOneHotCategorical, _instance))

    temperature = property(lambda self: self.base_dist.temperature, doc="How near it comes to the discrete one.")
    logits = property(lambda self: self.base_dist.logits, doc="Logarithms of the probabilities.")
    probs = property(lambda self: self.base_dist.probs, doc="The probabilities.")
